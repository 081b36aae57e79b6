"""Prediction records with the pairs that were handed to interaction classification, as columns."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from hoicli.arrays.kit import Bools, Floats, Ints
from hoicli.arrays.reading import BATCH, columns_of, sound_lines
from hoicli.arrays.scenes import Scenes
from hoicli.errors import DataError
from hoicli.evaluation.protocols import protocol_of
from hoicli.io.streams import Line
from hoicli.records.image import problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class PairBatch:
    """Some images' predictions beside the pairs that were handed to interaction classification.

    scenes: the predictions, T triplets. paired [T]: those that make a pair (`actual_triplets`), but for V-COCO's
    `unstated`. verb_score [T]: of the verb alone, NaN where the record does not say.
    pairs: the same images and boxes, with the P pairs in the place of triplets (verb 0, interaction -1). Their score is
    what pair NMS and one-to-one go by: interactiveness where a record states it for all its pairs, else the best score
    of the pair's triplets, -inf for a pair without any.
    interacting [P]: how sure the detector is that the pair does something: its interactiveness, else the largest verb
    score of its triplets, NaN where that is not known. stated [P]: whether it is an interactiveness.
    box_scores [B], None if some record has none.
    """

    scenes: Scenes
    paired: Bools
    verb_score: Floats
    pairs: Scenes
    interacting: Floats
    stated: Bools
    box_scores: Floats | None


def read_pair_batches(
    lines: Iterable[Line],
    vocabulary: Vocabulary,
    *,
    policy: ErrorPolicy,
    known: Container[str] | None = None,
    box_scores: bool = False,
    triplet_scores: bool = False,
    batch: int = BATCH,
) -> Iterator[PairBatch]:
    """The prediction records of a stream with their pairs. `box_scores`: every record needs `scores`.

    The pairs of a record are its `pairs`; without that key, the distinct (subject, object) of its triplets. Pairs whose
    subject is no person, and triplets of no interaction or of no_interaction, make no pair (protocol `diag`); V-COCO:
    those without object. `triplet_scores`: every triplet's score stands in for its verb's.

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
            yield _pair_batch(scenes, extras, vocabulary, triplet_scores=triplet_scores)


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

    verb_score [H] of the H triplets that the records state, box_scores of the boxes; stated, boxes [N] how many of each
    a record has; count [N] pairs, -1 for a record without the key; subject, object, interactiveness [P]. NaN where
    missing.
    """

    verb_score: Floats
    stated: Ints
    boxes: Ints
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
    box_count: list[int] = []
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
            verb_score += [hoi.get("verb_score", _MISSING) for hoi in record["hois"]]
            stated.append(len(record["hois"]))
            boxes, scores, pairs = len(record["boxes"]), record.get("scores"), record.get("pairs")
            box_count.append(boxes)
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
    given = [value for value in chain(verb_score, interactiveness) if value is not _MISSING]
    numbers, indices = chain(box_scores, given), chain(subject, object_)
    if not set(map(type, numbers)) <= {int, float} or not set(map(type, indices)) <= {int}:
        return None
    try:
        rows = [np.array(column, dtype=np.int64) for column in (subject, object_)]
        values = [np.array(column, dtype=np.float64) for column in (box_scores, given)]
    except OverflowError:
        return None
    if any(((row < 0) | (row >= np.array(limit, dtype=np.int64))).any() for row in rows):
        return None
    if not all(np.isfinite(value).all() for value in values) or (need_scores and not has_scores):
        return None
    return _Extras(
        verb_score=np.array(verb_score, dtype=np.float64),
        stated=np.array(stated, dtype=np.int64),
        boxes=np.array(box_count, dtype=np.int64),
        box_scores=values[0] if has_scores else None,
        count=np.array(count, dtype=np.int64),
        subject=rows[0],
        object=rows[1],
        interactiveness=np.array(interactiveness, dtype=np.float64),
    )


_MISSING = float("nan")
"""Known by identity: JSON has no NaN, so no record can hold it."""


def _pair_batch(scenes: Scenes, extras: _Extras, vocabulary: Vocabulary, *, triplet_scores: bool) -> PairBatch:
    # What a V-COCO record leaves unsaid comes after what it says, image by image: no pair was handed on for it.
    own = np.arange(len(scenes.score)) - scenes.hoi_start[scenes.image_of_hoi] < extras.stated[scenes.image_of_hoi]
    paired = own & actual_triplets(scenes, vocabulary)
    verb_score = np.full(len(scenes.score), np.nan)
    verb_score[own] = extras.verb_score
    if triplet_scores:
        verb_score = scenes.score
    boxes = len(scenes.boxes)
    listed = extras.count >= 0
    image = np.repeat(np.arange(len(listed)), np.maximum(extras.count, 0))
    first_box = scenes.box_start[image]
    subject, object_ = extras.subject + first_box, extras.object + first_box

    # The pairs of triplets, in the order of their first triplets.
    triplet = np.flatnonzero(paired)
    keys, first, inverse = np.unique(
        scenes.subject[triplet] * boxes + scenes.object[triplet], return_index=True, return_inverse=True
    )
    surest_verb, best = (np.append(np.full(len(keys), -np.inf), missing) for missing in (np.nan, -np.inf))
    with np.errstate(invalid="ignore"):
        np.maximum.at(surest_verb, inverse, verb_score[triplet])  # NaN where one of them is not known
    np.maximum.at(best, inverse, scenes.score[triplet])

    # A listed pair without interactiveness takes what its triplets say; the last place says nothing.
    silent = np.isnan(extras.interactiveness)
    place, met = find(keys, subject * boxes + object_)
    place = np.where(met, place, len(keys))
    interacting = np.where(silent, surest_verb[place], extras.interactiveness)
    sound = _can_be_pairs(scenes, vocabulary, subject, object_)
    all_stated = np.bincount(image[silent & sound], minlength=len(listed)) == 0
    by_interactiveness = all_stated[image]
    score = np.where(by_interactiveness, extras.interactiveness, best[place])

    image_of_key = scenes.image_of_box[keys // boxes] if boxes else keys
    derived = np.flatnonzero(~listed[image_of_key])
    derived = derived[np.argsort(first[derived])]
    images = np.concatenate([image[sound], image_of_key[derived]])
    order = np.argsort(images, kind="stable")

    def together(of_listed: NDArray[Any], of_derived: NDArray[Any]) -> Any:
        return np.concatenate([of_listed[sound], of_derived])[order]

    zeros = np.zeros(len(order), dtype=np.int64)
    pairs = replace(
        scenes,
        subject=together(subject, keys[derived] // max(boxes, 1)),
        object=together(object_, keys[derived] % max(boxes, 1)),
        verb=zeros,
        interaction=zeros - 1,
        score=together(score, best[derived]),
        hoi_start=np.searchsorted(images[order], np.arange(len(listed) + 1)),
    )
    return PairBatch(
        scenes,
        paired,
        verb_score,
        pairs,
        interacting=together(interacting, surest_verb[derived]),
        stated=together(~silent, np.zeros(len(derived), dtype=bool)),
        box_scores=_of_all_boxes(extras, scenes),
    )


def _of_all_boxes(extras: _Extras, scenes: Scenes) -> Floats | None:
    """[B] the scores of the boxes, infinite for one that no record states: the object box of V-COCO's `unstated`, which
    nobody detected, so that of those statements the person alone decides."""
    if extras.box_scores is None:
        return None
    scores = np.full(len(scenes.boxes), np.inf)
    place = np.arange(len(scores)) - scenes.box_start[scenes.image_of_box]
    scores[place < extras.boxes[scenes.image_of_box]] = extras.box_scores
    return scores


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
