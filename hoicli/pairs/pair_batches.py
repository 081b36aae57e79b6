"""Prediction records with the pairs that interaction classification received, as columns; and which pairs and triplets
each setting of a sweep keeps.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.filters import PairNms
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import protocol_of
from hoicli.io.streams import Line
from hoicli.records.boxes import hash_corners, pair_nms
from hoicli.records.columns import RawImages, check_types, indices, numbers, read_columns, require
from hoicli.records.fingerprint import row_hashes
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Bools, Floats, Ints, find, starts_of
from hoicli.records.parsing import Problem, Record
from hoicli.records.reading import checker, named_scenes, numbered_scenes, scores_by_box, stated_in_record
from hoicli.records.result_rows import Setting, Settings
from hoicli.records.scenes import Scenes, are_subjects
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class PairBatch:
    """Some images' predictions with the pairs that the detector's interaction classification received.

    scenes: the predictions, T triplets. pair [T]: which of the U distinct pairs (subject, object) each triplet forms,
    -1 for none (`actual_triplets`, without V-COCO's `unstated`); pair_first [U]: a triplet of each pair, one of
    no_interaction only if the pair has no other. verb_score [T]: the score of the verb alone, NaN if missing.

    pairs: the same images and boxes with P pairs in place of triplets (verb 0, interaction -1). Pair NMS and one-to-one
    use their score: interactiveness if a record gives it for all its pairs, else the best score of the pair's triplets,
    -inf for a pair without triplets. interacting [P]: the detector's confidence that the pair interacts: its
    interactiveness, else the largest verb score of its triplets, -inf if they are all of no_interaction, NaN if
    unknown. stated [P]: whether it is an interactiveness.

    box_scores [B]: detection scores, NaN where a record has none. denied: how many pairs exist, or are ranked, only by
    triplets of no_interaction."""

    scenes: Scenes
    pair: Ints
    pair_first: Ints
    verb_score: Floats
    pairs: Scenes
    interacting: Floats
    stated: Bools
    box_scores: Floats
    denied: int

    @property
    def image_ids(self) -> Sequence[str]:
        """The images' ids."""
        return self.scenes.image_ids

    @cached_property
    def mark(self) -> Floats:
        """A number [P] for the corners and the object label of each of `pairs`, which breaks ties between scores."""
        mark: Floats = hash_corners(self.pairs) + np.sqrt(11.0) * self.pairs.object_label
        return mark

    @cached_property
    def order(self) -> Ints:
        """The place [P] of each of `pairs` when they are sorted by `mark`, and equal ones by their triplets: an order
        of ties that does not depend on how a record lists them."""
        triplet, pair = self.listed
        has_pair = triplet >= 0
        hashes = np.zeros(len(pair) + 1, dtype=np.uint64)
        of_triplets = row_hashes(self.scenes.verb[has_pair], self.scenes.score[has_pair])
        np.add.at(hashes, triplet[has_pair], of_triplets)
        place = np.empty(len(pair), dtype=np.int64)
        place[np.lexsort((self.interacting, hashes[pair], self.mark))] = np.arange(len(pair))
        return place

    @cached_property
    def listed(self) -> tuple[Ints, Ints]:
        """The distinct (subject, object) of `pairs`, numbered: ([T] the number of each triplet's, -1 if `pairs` does
        not have it or there is no object; [P] the number of each pair's)."""
        scenes, pairs = self.scenes, self.pairs
        keys, number = np.unique(pair_key(scenes, pairs.subject, pairs.object), return_inverse=True)
        place, there = find(keys, pair_key(scenes, scenes.subject, scenes.object))
        return np.where(there & (scenes.object >= 0), place, -1), number


def read_pair_batches(
    lines: Iterable[Line],
    vocabulary: Vocabulary,
    *,
    protocol: Protocol | None = None,
    policy: ErrorPolicy,
    known_ids: Container[str] | None = None,
    box_scores: bool = False,
    triplet_scores: bool = False,
) -> Iterator[PairBatch]:
    """Yield the prediction records of a stream with their pairs, batch by batch.

    The pairs of a record are its `pairs`; without that key, the distinct (subject, object) of its triplets, those of
    no_interaction included: whether a pair is found does not depend on its label (Diag-HOI 2.4, 4.1). By protocol
    `diag`, pairs whose subject is not a person and triplets without a class are left out; in V-COCO, triplets without
    an object.

    protocol: which triplets count (None: `protocol_of`). box_scores: every record needs `scores`. triplet_scores: use a
    triplet's score as its verb's. Raises `DataError` naming file, line and field of the first bad record, or counts it
    in `policy` and goes on."""
    protocol = protocol or protocol_of(vocabulary)
    build = partial(
        pair_batch, vocabulary=vocabulary, protocol=protocol, box_scores=box_scores, triplet_scores=triplet_scores
    )
    check = partial(_problems, vocabulary=vocabulary, box_scores=box_scores)
    return read_columns(lines, build, check, policy, register=ImageRegister(known_ids))


def _problems(record: Record, vocabulary: Vocabulary, *, box_scores: bool = False) -> Iterator[Problem]:
    """Yield every problem of a record that keeps `pair_batch` from reading it."""
    yield from checker(vocabulary, scored=True, besides=("box_scores", "verb_scores", "pairs"))(record)
    if box_scores and record.get("scores") is None:
        yield Problem("scores", f"missing; {arg('det_threshold')} needs a detection score for each box")


_MISSING = float("nan")
"""It stands for a number that a record does not give."""


class PairRows(NamedTuple):
    """P detected pairs, all [P]: image: the record of each; subject, object: its boxes, as rows of the boxes of all
    records; interactiveness: NaN if it is not given."""

    image: Ints
    subject: Ints
    object: Ints
    interactiveness: Floats


def _listed_pairs(raw: RawImages, scenes: Scenes) -> PairRows:
    """Return the pairs that records list under `pairs`."""
    listed = [[] if pairs is None else pairs for pairs in raw.each("pairs")]
    check_types(listed, list)
    all_pairs = list(chain.from_iterable(listed))
    image = np.repeat(np.arange(len(listed)), [len(pairs) for pairs in listed])
    limit, first_box = np.diff(raw.box_start)[image], scenes.box_start[image]
    subject, object_ = (indices([pair[key] for pair in all_pairs], limit) + first_box for key in ("subject", "object"))
    return PairRows(image, subject, object_, numbers([pair.get("interactiveness", _MISSING) for pair in all_pairs]))


def _all_pairs(raw: RawImages, scenes: Scenes, vocabulary: Vocabulary, first: Ints) -> PairRows:
    """Return the pairs of all records, image by image: those that a record lists and that can be pairs; for a record
    without a list those of its triplets, in the order of the first ones. first [U]: the first triplet of each pair."""
    without_list = np.array([pairs is None for pairs in raw.each("pairs")], dtype=bool)
    triplet = np.sort(first[without_list[scenes.image_of_hoi[first]]])
    no_interactiveness = np.full(len(triplet), np.nan)
    derived = PairRows(
        scenes.image_of_hoi[triplet], scenes.subject[triplet], scenes.object[triplet], no_interactiveness
    )
    listed = _listed_pairs(raw, scenes)
    possible = _can_be_pairs(scenes, vocabulary, listed.subject, listed.object)
    columns = [np.concatenate([column[possible], more]) for column, more in zip(listed, derived, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return PairRows(*(column[order] for column in columns))


def distinct_pairs(scenes: Scenes, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the distinct (subject, object) of some triplets: (their keys, ascending; the first of `rows` with each;
    for each of `rows` the place of its key)."""
    keys, first, place = np.unique(
        pair_key(scenes, scenes.subject[rows], scenes.object[rows]), return_index=True, return_inverse=True
    )
    return keys, rows[first], place


def pair_key(scenes: Scenes, subject: Ints, object_: Ints) -> Ints:
    """Return one number for each (subject, object), which are rows of the boxes; it grows with the subject."""
    return subject.astype(np.int64) * len(scenes.boxes) + object_


def pair_batch(
    lines: Sequence[Line],
    vocabulary: Vocabulary,
    *,
    protocol: Protocol,
    box_scores: bool = False,
    triplet_scores: bool = False,
) -> PairBatch:
    """Return the records of some lines as columns; raises an error that `columns.attempt` expects for a record that
    `read_pair_batches` refuses."""
    raw = named_scenes(lines, vocabulary, scored=True, of_image=("scores", "pairs"), of_hoi={"verb_score": _MISSING})
    scenes = numbered_scenes(raw, vocabulary, scored=True)
    scores_of_boxes = scores_by_box(raw, scenes)
    require(not box_scores or None not in raw.each("scores"))
    in_record = stated_in_record(scenes.hoi_start, np.diff(raw.hoi_start))  # `unstated` triplets come from no pair
    verb_score = _verb_scores(raw, in_record)
    if triplet_scores:
        verb_score = scenes.score

    formed = in_record & _forming(scenes, vocabulary, protocol)
    actual = formed & actual_triplets(scenes, vocabulary, protocol)
    keys, first, place = distinct_pairs(scenes, np.flatnonzero(formed))
    pair = np.full(len(scenes.score), -1, dtype=np.int64)
    pair[formed] = place
    of_triplets = _triplet_scores(scenes, pair, actual, verb_score)
    pair[~actual] = -1

    # What does not state its interactiveness has the scores of its triplets; `score` is one or the other of an image.
    image, subject, object_, interactiveness = _all_pairs(raw, scenes, vocabulary, first)
    place, has_triplets = find(keys, pair_key(scenes, subject, object_))
    place = np.where(has_triplets, place, len(keys))
    stated = ~np.isnan(interactiveness)
    some_unstated = np.bincount(image[~stated], minlength=len(scenes.image_ids)) > 0
    zeros = np.zeros(len(image), dtype=np.int64)
    pairs = replace(
        scenes,
        subject=subject,
        object=object_,
        score=np.where(some_unstated[image], of_triplets.best_score[place], interactiveness),
        verb=zeros,
        interaction=zeros - 1,
        hoi_start=starts_of(np.bincount(image, minlength=len(scenes.image_ids))),
    )
    interacting = np.where(stated, interactiveness, of_triplets.surest_verb[place])
    denied = int((of_triplets.denied[place] & some_unstated[image]).sum())
    return PairBatch(scenes, pair, first, verb_score, pairs, interacting, stated, scores_of_boxes, denied)


def _verb_scores(raw: RawImages, in_record: Bools) -> Floats:
    """Return [T] the score of each triplet's verb, NaN if missing. in_record [T]: whether its record states it."""
    verb_score = np.full(len(in_record), np.nan)
    if stated_scores := raw.of_hoi["verb_score"]:
        verb_score[in_record] = numbers(stated_scores)
    return verb_score


class TripletScores(NamedTuple):
    """What the triplets of U pairs say of each pair, all [U + 1]; the last place is for pairs without triplets.

    denied: whether all its triplets are of no_interaction. surest_verb: the largest verb score of its other triplets,
    -inf if there are none, NaN if a verb score is missing. best_score: the largest score of a triplet, of
    no_interaction only if the pair is denied."""

    denied: Bools
    surest_verb: Floats
    best_score: Floats


def _triplet_scores(scenes: Scenes, pair: Ints, actual: Bools, verb_score: Floats) -> TripletScores:
    """Return what triplets say of their pairs. pair [T]: the pair of each triplet, -1 for none; actual [T]: whether it
    has one and is not of no_interaction; verb_score [T]: the score of its verb."""
    places = int(pair.max(initial=-1)) + 2
    denied = np.bincount(pair[actual], minlength=places) == 0
    denied[-1] = False  # the place that triplets without a pair (-1) read
    scoring = actual | denied[pair]
    actual_verb_score = np.where(actual | np.isnan(verb_score), verb_score, -np.inf)
    surest_verb, best_score = (np.full(places, -np.inf) for _ in range(2))
    with np.errstate(invalid="ignore"):
        np.maximum.at(surest_verb, pair[scoring], actual_verb_score[scoring])  # NaN if one of them is missing
    np.maximum.at(best_score, pair[scoring], scenes.score[scoring])
    surest_verb[-1] = np.nan
    return TripletScores(denied, surest_verb, best_score)


def actual_triplets(scenes: Scenes, vocabulary: Vocabulary, protocol: Protocol) -> Bools:
    """Return which triplets [T] have an object and are counted by the protocol: for `diag`, those with a person as
    subject and a class that is not no_interaction; for `vcoco-s1`, those of an action-role."""
    actual = _forming(scenes, vocabulary, protocol)
    if vocabulary.no_interaction is not None:
        actual &= scenes.verb != vocabulary.verb_ids[vocabulary.no_interaction]
    return actual


def _forming(scenes: Scenes, vocabulary: Vocabulary, protocol: Protocol) -> Bools:
    """Return which triplets [T] form a pair: `actual_triplets` and those of no_interaction."""
    formed = _can_be_pairs(scenes, vocabulary, scenes.subject, scenes.object) & (scenes.interaction >= 0)
    if protocol.classes:
        formed &= np.isin(scenes.interaction, sorted(vocabulary.members(protocol.classes)))
    return formed


def _can_be_pairs(scenes: Scenes, vocabulary: Vocabulary, subject: Ints, object_: Ints) -> Bools:
    """Return whether each (subject, object) can be a pair. Its subject must be a person; in V-COCO, whose protocol
    ignores labels, its object must exist instead (a box of zeros, as in official dumps, means no object)."""
    if not len(scenes.boxes):
        return np.zeros(len(subject), dtype=bool)
    if vocabulary.roles:
        present: Bools = (object_ >= 0) & scenes.boxes[object_].any(axis=1)
        return present
    person: Bools = are_subjects(scenes.labels[subject], vocabulary)
    return person


@dataclass(frozen=True)
class Sweep:
    """One setting of a sweep, which decides which detected pairs are kept.

    nms: the overlap above which pair NMS drops a pair for a better one of its object label, as `PairNms`.
    det_threshold: the least detection score that both boxes of a pair need. None: off."""

    nms: float | None = None
    det_threshold: float | None = None

    def signature(self) -> Settings:
        """Return the settings that are in force, for signatures."""
        settings: dict[str, Setting] = {}
        if self.det_threshold is not None:
            settings["det"] = self.det_threshold
        if self.nms is not None:
            settings["pairnms"] = str(PairNms(self.nms))
        return settings


def sweeps(nms: Sequence[float], det_thresholds: Sequence[float]) -> list[Sweep]:
    """Return the settings to measure: all pairs, then each NMS threshold, then each detection threshold, so that one
    thing changes at a time (Table 3). Raises `UsageError` for values out of range."""
    for value in nms:
        if not 0 <= value <= 1:
            raise UsageError(f"{arg('nms_sweep', value)}: the threshold is an overlap, between 0 and 1")
    rows = [Sweep(), *(Sweep(nms=value) for value in nms), *(Sweep(det_threshold=value) for value in det_thresholds)]
    return list(dict.fromkeys(rows))


def surviving_pairs(batch: PairBatch, setting: Sweep) -> Bools:
    """Return which pairs [P] of a batch a setting keeps."""
    pairs = batch.pairs
    keep = np.ones(len(pairs.score), dtype=bool)
    if setting.det_threshold is not None:
        is_high = batch.box_scores >= setting.det_threshold
        keep &= is_high[pairs.subject] & is_high[pairs.object]
    if setting.nms is not None:
        keep = pair_nms(pairs, keep, **PairNms(setting.nms)._asdict(), ties=batch.order)
    return keep


def surviving_triplets(batch: PairBatch, keep: Bools, setting: Sweep) -> Bools:
    """Return which triplets [T] are kept with the pairs of `keep`, whatever their verbs. Pair NMS keeps a triplet that
    belongs to no pair; a detection threshold checks only the person of a statement without object (V-COCO)."""
    scenes = batch.scenes
    survives = np.ones(len(scenes.score), dtype=bool)
    has_object = scenes.object >= 0
    if setting.det_threshold is not None:
        is_high = batch.box_scores >= setting.det_threshold
        survives = is_high[scenes.subject]
        survives[has_object] &= is_high[scenes.object[has_object]]
    if setting.nms is not None:
        triplet, pair = batch.listed
        in_kept, in_dropped = np.zeros((2, len(pair) + 1), dtype=bool)
        in_kept[pair[keep]] = True
        in_dropped[pair[~keep]] = True
        # a triplet of no pair (-1) reads the last entry, which is False in both
        survives &= in_kept[triplet] | ~in_dropped[triplet]
    return survives
