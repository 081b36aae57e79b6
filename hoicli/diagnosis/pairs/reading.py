"""Prediction records with the pairs that were handed to interaction classification, as columns."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import orjson

from hoicli.diagnosis.gather import protocol_of
from hoicli.errors import DataError
from hoicli.records import problems
from hoicli.scenes import (
    BATCH,
    Bools,
    ErrorPolicy,
    Floats,
    ImageRegister,
    Ints,
    Scenes,
    columns_of,
    sound_lines,
)
from hoicli.streams import Line
from hoicli.vocabulary import SUBJECT, Vocabulary


@dataclass(frozen=True)
class PairBatch:
    """Some images' predictions beside the pairs that were handed to interaction classification.

    scenes: the predictions, T triplets. verb_score [T]: of the verb alone, the triplet's score where there is none.
    pairs: the same images and boxes, with the P pairs in the place of triplets (verb 0, interaction -1) and their
    interactiveness as score. box_scores [B], None if some record has none. scored: pairs whose interactiveness is
    known; the others have 0.
    """

    scenes: Scenes
    verb_score: Floats
    pairs: Scenes
    box_scores: Floats | None
    scored: int


def read_pair_batches(
    lines: Iterable[Line],
    vocabulary: Vocabulary,
    *,
    policy: ErrorPolicy,
    known: Container[str] | None = None,
    box_scores: bool = False,
    batch: int = BATCH,
) -> Iterator[PairBatch]:
    """The prediction records of a stream with their pairs. `box_scores`: every record needs `scores`.

    The pairs of a record are its `pairs`; without that key, the distinct (subject, object) of its triplets. A pair
    without interactiveness has the best verb score of its triplets, or 0. Pairs whose subject is no person, and
    triplets of no interaction or of no_interaction, make no pair (protocol `diag`); V-COCO: those without object.

    Raises `DataError` naming file, line and field of the first bad record, or counts it in `policy` and goes on.
    """
    register = ImageRegister(known)
    lines = iter(lines)
    check = partial(problems, vocabulary=vocabulary, scored=True, besides=("scores",))
    while chunk := list(islice(lines, batch)):
        scenes = columns_of(chunk, vocabulary, scored=True)
        extras = None if scenes is None else _extras(chunk, need_scores=box_scores)
        if scenes is None or extras is None or not register.add_all(scenes.image_ids, chunk):
            sound = sound_lines(chunk, register, check, policy)
            chunk = list(_with_box_scores(sound, policy) if box_scores else sound)
            scenes, extras = columns_of(chunk, vocabulary, scored=True), _extras(chunk, need_scores=box_scores)
            if scenes is None or extras is None:
                raise AssertionError("a record passed the careful check and failed the fast one")
        if scenes.image_ids:
            yield _pair_batch(scenes, extras, vocabulary)


def _with_box_scores(lines: Iterable[Line], policy: ErrorPolicy) -> Iterator[Line]:
    """The lines that have `scores`; the others go to the policy."""
    for line in lines:
        if orjson.loads(line.data).get("scores") is None:
            policy.handle(
                DataError(
                    "missing; --det-threshold needs a detection score for each box", place=line.place, field="scores"
                )
            )
        else:
            yield line


@dataclass(frozen=True)
class _Extras:
    """What `Scenes` leaves out of N records: pairs with box indices of their own image, and scores.

    verb_score [H] of the H triplets that the records state, stated [N] of each; count [N] pairs, -1 for a record
    without the key; subject, object, interactiveness [P] (NaN where missing).
    """

    verb_score: Floats
    stated: Ints
    box_scores: Floats | None
    count: Ints
    subject: Ints
    object: Ints
    interactiveness: Floats


def _extras(lines: Iterable[Line], *, need_scores: bool) -> _Extras | None:
    """None if something is wrong with a record that `records.problems` (or `_with_box_scores`) can name.

    The records are sound otherwise: `scenes.columns_of` has passed them.
    """
    verb_score: list[Any] = []
    stated: list[int] = []
    box_scores: list[Any] = []
    has_scores = True
    count: list[int] = []
    subject: list[Any] = []
    object_: list[Any] = []
    interactiveness: list[Any] = []
    limit: list[int] = []
    try:
        for line in lines:
            record = orjson.loads(line.data)
            verb_score += [hoi.get("verb_score", hoi["score"]) for hoi in record["hois"]]
            stated.append(len(record["hois"]))
            boxes, scores, pairs = len(record["boxes"]), record.get("scores"), record.get("pairs")
            if scores is None:
                has_scores = False
            elif type(scores) is not list or len(scores) != boxes:
                return None
            else:
                box_scores += scores
            if pairs is None:
                count.append(-1)
                continue
            if type(pairs) is not list:
                return None
            count.append(len(pairs))
            limit += [boxes] * len(pairs)
            subject += [pair["subject"] for pair in pairs]
            object_ += [pair["object"] for pair in pairs]
            interactiveness += [pair.get("interactiveness", _MISSING) for pair in pairs]
    except (KeyError, TypeError, AttributeError):
        return None
    given = [value for value in interactiveness if value is not _MISSING]
    numbers, indices = chain(verb_score, box_scores, given), chain(subject, object_)
    if not set(map(type, numbers)) <= {int, float} or not set(map(type, indices)) <= {int}:
        return None
    try:
        rows = [np.array(column, dtype=np.int64) for column in (subject, object_)]
        values = [np.array(column, dtype=np.float64) for column in (verb_score, box_scores, given)]
    except OverflowError:
        return None
    if any(((row < 0) | (row >= np.array(limit, dtype=np.int64))).any() for row in rows):
        return None
    if not all(np.isfinite(value).all() for value in values) or (need_scores and not has_scores):
        return None
    return _Extras(
        verb_score=values[0],
        stated=np.array(stated, dtype=np.int64),
        box_scores=values[1] if has_scores else None,
        count=np.array(count, dtype=np.int64),
        subject=rows[0],
        object=rows[1],
        interactiveness=np.array(interactiveness, dtype=np.float64),
    )


_MISSING = float("nan")
"""Known by identity: JSON has no NaN, so no record can hold it."""


def _pair_batch(scenes: Scenes, extras: _Extras, vocabulary: Vocabulary) -> PairBatch:
    if vocabulary.roles:
        # What a record leaves unsaid comes after what it says, image by image: no pair was handed on for it.
        own = np.arange(len(scenes.score)) - scenes.hoi_start[scenes.image_of_hoi] < extras.stated[scenes.image_of_hoi]
        paired = actual_triplets(scenes, vocabulary)
        extras = replace(extras, verb_score=extras.verb_score[paired[own]])
        scenes = with_triplets(scenes, np.flatnonzero(own & paired))
    boxes = len(scenes.boxes)
    listed = extras.count >= 0
    image = np.repeat(np.arange(len(listed)), np.maximum(extras.count, 0))
    first_box = scenes.box_start[image]
    subject, object_ = extras.subject + first_box, extras.object + first_box

    # The pairs of triplets, in the order of their first triplets.
    triplet = np.flatnonzero(actual_triplets(scenes, vocabulary))
    keys, first, inverse = np.unique(
        scenes.subject[triplet] * boxes + scenes.object[triplet], return_index=True, return_inverse=True
    )
    best = np.full(len(keys), -np.inf)
    np.maximum.at(best, inverse, extras.verb_score[triplet])

    # A listed pair without interactiveness takes that of its triplets.
    score, silent = extras.interactiveness, np.isnan(extras.interactiveness)
    place, met = find(keys, subject * boxes + object_)
    score = np.where(silent, 0.0, score)
    borrowed = silent & met
    score[borrowed] = best[place[borrowed]]
    sound = _can_be_pairs(scenes, vocabulary, subject, object_)

    image_of_key = scenes.image_of_box[keys // boxes] if boxes else keys
    derived = np.flatnonzero(~listed[image_of_key])
    derived = derived[np.argsort(first[derived])]
    columns = [
        np.concatenate([mine[sound], other[derived]])
        for mine, other in ((image, image_of_key), (subject, keys // max(boxes, 1)), (object_, keys % max(boxes, 1)))
    ]
    scores = np.concatenate([score[sound], best[derived]])
    order = np.argsort(columns[0], kind="stable")
    images, subjects, objects = (column[order] for column in columns)
    zeros = np.zeros(len(order), dtype=np.int64)
    start = np.searchsorted(images, np.arange(len(listed) + 1))
    pairs = replace(
        scenes,
        subject=subjects,
        object=objects,
        verb=zeros,
        interaction=zeros - 1,
        score=scores[order],
        hoi_start=start,
    )
    known = len(derived) + int((sound & (~silent | borrowed)).sum())
    return PairBatch(scenes, extras.verb_score, pairs, extras.box_scores, known)


def actual_triplets(scenes: Scenes, vocabulary: Vocabulary) -> Bools:
    """[T] the triplets that the protocol looks at and that have an object: of `diag`, those of a person, of one of the
    interactions, not no_interaction; of `vcoco-s1`, those of an action-role."""
    protocol = protocol_of(vocabulary)
    actual = _can_be_pairs(scenes, vocabulary, scenes.subject, scenes.object) & (scenes.interaction >= 0)
    if protocol.classes:
        actual &= np.isin(scenes.interaction, sorted(vocabulary.subsets[protocol.classes]))
    if vocabulary.no_interaction is not None:
        actual &= scenes.verb != vocabulary.verb_ids[vocabulary.no_interaction]
    return actual


def _can_be_pairs(scenes: Scenes, vocabulary: Vocabulary, subject: Ints, object_: Ints) -> Bools:
    """Whether each (subject, object) can be a pair: the subject a person; or, in V-COCO, whose protocol looks at no
    labels, whether there is an object (a box of zeros is none, as official dumps write it)."""
    if not len(scenes.boxes):
        return np.zeros(len(subject), dtype=bool)
    if vocabulary.roles:
        present: Bools = (object_ >= 0) & scenes.boxes[object_].any(axis=1)
        return present
    person: Bools = scenes.labels[subject] == vocabulary.object_ids[SUBJECT]
    return person


def find(ascending: Ints, wanted: Ints) -> tuple[Ints, Bools]:
    """(place in `ascending`, whether it is there) of each wanted value."""
    if len(ascending) == 0:
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=bool)
    place: Ints = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return place, ascending[place] == wanted


def with_triplets(scenes: Scenes, rows: Ints) -> Scenes:
    """The same images and boxes with some of the triplets, in their order."""
    if len(rows) == len(scenes.score):
        return scenes
    return replace(
        scenes,
        subject=scenes.subject[rows],
        object=scenes.object[rows],
        verb=scenes.verb[rows],
        interaction=scenes.interaction[rows],
        score=scenes.score[rows],
        hoi_start=np.searchsorted(rows, scenes.hoi_start),
    )
