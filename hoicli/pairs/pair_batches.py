"""Prediction records with their pairs (human box, object box), as columns; and which pairs and triplets each setting of
a sweep over NMS and detection thresholds keeps."""

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
from hoicli.evaluation.selection import diagnosed_protocol
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
    """The predictions of some images with their detected pairs, which are what the detector classified interactions of.

    scenes: the predictions, T triplets on B boxes. pair [T]: which of the U distinct pairs (subject, object) each
    triplet forms, -1 for none (see `actual_triplets`; triplets that the option `unstated` adds form none); pair_first
    [U]: a triplet of each pair, one of no_interaction only if the pair has no other. verb_score [T]: the score of the
    verb alone, NaN if missing.

    pairs: the same images and boxes with P detected pairs in place of triplets (verb 0, interaction -1). Their `score`,
    by which pair NMS and one-to-one matching rank, is the interactiveness if a record gives it for all its pairs; else
    the best score of the pair's triplets, -inf for a pair without triplets. interacting [P]: the detector's confidence
    that the pair interacts: its interactiveness, else the largest verb score of its triplets, -inf if they are all of
    no_interaction, NaN if unknown. stated [P]: whether it is an interactiveness.

    box_scores [B]: detection scores, NaN where a record has none. denied: how many pairs exist, or are ranked, only
    because of triplets of no_interaction."""

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
        """The ids of the images."""
        return self.scenes.image_ids

    @cached_property
    def mark(self) -> Floats:
        """A number [P] made of the corners and the object label of each detected pair, for ties of score."""
        # an irrational factor, so that different corners and labels hardly ever give the same sum
        mark: Floats = hash_corners(self.pairs) + np.sqrt(11.0) * self.pairs.object_label
        return mark

    @cached_property
    def order(self) -> Ints:
        """The place [P] of each detected pair when they are sorted by `mark`, and equal ones by their triplets."""
        number_of_triplet, number_of_pair = self.pair_numbers
        has_pair = number_of_triplet >= 0
        # for each pair of boxes, the sum of the hashes of its triplets: the same in any order
        hashes = np.zeros(len(number_of_pair) + 1, dtype=np.uint64)
        triplet_hashes = row_hashes(self.scenes.verb[has_pair], self.scenes.score[has_pair])
        np.add.at(hashes, number_of_triplet[has_pair], triplet_hashes)
        place = np.empty(len(number_of_pair), dtype=np.int64)
        place[np.lexsort((self.interacting, hashes[number_of_pair], self.mark))] = np.arange(len(number_of_pair))
        return place

    @cached_property
    def pair_numbers(self) -> tuple[Ints, Ints]:
        """Numbers for the distinct (subject, object) of the detected pairs, as two columns: [T] the number of each
        triplet's boxes, -1 if they are no detected pair; [P] the number of each pair's boxes."""
        scenes, pairs = self.scenes, self.pairs
        keys, number_of_pair = np.unique(pair_key(scenes, pairs.subject, pairs.object), return_inverse=True)
        position, is_pair = find(keys, pair_key(scenes, scenes.subject, scenes.object))
        return np.where(is_pair & (scenes.object >= 0), position, -1), number_of_pair


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
    no_interaction included: whether a pair is detected does not depend on its label (Diag-HOI 2.4, 4.1). By protocol
    `diag`, pairs without a person as subject and triplets without a class are left out; in V-COCO, without object.

    protocol: which triplets count (None: the dataset's usual protocol). known_ids: the images of the ground truth;
    others are an error. box_scores: every record needs `scores`. triplet_scores: use a triplet's score as its verb's.
    Raises `DataError` naming file, line and field of the first bad record, or counts it in `policy` and goes on."""
    protocol = protocol or diagnosed_protocol(vocabulary)
    build = partial(
        pair_batch, vocabulary=vocabulary, protocol=protocol, box_scores=box_scores, triplet_scores=triplet_scores
    )
    check = partial(_problems, vocabulary=vocabulary, box_scores=box_scores)
    return read_columns(lines, build, check, policy, register=ImageRegister(known_ids))


def _problems(record: Record, vocabulary: Vocabulary, *, box_scores: bool = False) -> Iterator[Problem]:
    """Yield every problem of a record that keeps `pair_batch` from reading it."""
    yield from checker(vocabulary, scored=True, optional_fields=("box_scores", "verb_scores", "pairs"))(record)
    if box_scores and record.get("scores") is None:
        yield Problem("scores", f"missing; {arg('det_threshold')} needs a detection score for each box")


_MISSING = float("nan")
"""Stands for a number that a record does not give."""


class PairRows(NamedTuple):
    """P detected pairs, as columns [P]. image: the record of each; subject, object: its boxes, as rows of the boxes of
    all records; interactiveness: NaN if it is not given."""

    image: Ints
    subject: Ints
    object: Ints
    interactiveness: Floats


def _listed_pairs(raw: RawImages, scenes: Scenes) -> PairRows:
    """Return the pairs that records list under `pairs`, where each record numbers its boxes from 0."""
    pairs_by_record = [[] if pairs is None else pairs for pairs in raw.each("pairs")]
    check_types(pairs_by_record, list)
    all_pairs = list(chain.from_iterable(pairs_by_record))
    image = np.repeat(np.arange(len(pairs_by_record)), [len(pairs) for pairs in pairs_by_record])
    limit, first_box = np.diff(raw.box_start)[image], scenes.box_start[image]
    subject, object_ = (indices([pair[key] for pair in all_pairs], limit) + first_box for key in ("subject", "object"))
    return PairRows(image, subject, object_, numbers([pair.get("interactiveness", _MISSING) for pair in all_pairs]))


def _all_pairs(raw: RawImages, scenes: Scenes, vocabulary: Vocabulary, first: Ints) -> PairRows:
    """Return the pairs of all records, image by image: those that a record lists and that can be pairs; for a record
    without a list those of its triplets, in the order of their `first` [U] triplets."""
    without_list = np.array([pairs is None for pairs in raw.each("pairs")], dtype=bool)
    triplet = np.sort(first[without_list[scenes.image_of_hoi[first]]])
    no_interactiveness = np.full(len(triplet), np.nan)
    derived = PairRows(
        scenes.image_of_hoi[triplet], scenes.subject[triplet], scenes.object[triplet], no_interactiveness
    )
    listed = _listed_pairs(raw, scenes)
    possible = _can_be_pairs(scenes, vocabulary, listed.subject, listed.object)
    columns = [np.concatenate([column[possible], more]) for column, more in zip(listed, derived, strict=True)]
    order = np.argsort(columns[0], kind="stable")  # by image, the first column
    return PairRows(*(column[order] for column in columns))


def distinct_pairs(scenes: Scenes, rows: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the distinct pairs (subject, object) of the triplets `rows`, as three columns: the `pair_key` of each,
    ascending; the first triplet with it; and, for each of `rows`, the position of its key."""
    keys, first, place = np.unique(
        pair_key(scenes, scenes.subject[rows], scenes.object[rows]), return_index=True, return_inverse=True
    )
    return keys, rows[first], place


def pair_key(scenes: Scenes, subject: Ints, object_: Ints) -> Ints:
    """Return one number for each pair (subject, object) of rows of the boxes; a greater subject gives a greater one."""
    return subject.astype(np.int64) * len(scenes.boxes) + object_


def pair_batch(
    lines: Sequence[Line],
    vocabulary: Vocabulary,
    *,
    protocol: Protocol,
    box_scores: bool = False,
    triplet_scores: bool = False,
) -> PairBatch:
    """Return the prediction records of some lines with their pairs, as columns. box_scores, triplet_scores: as in
    `read_pair_batches`. Raises an error that `columns.attempt` catches for a record that cannot be read so."""
    raw = named_scenes(lines, vocabulary, scored=True, of_image=("scores", "pairs"), of_hoi={"verb_score": _MISSING})
    scenes = numbered_scenes(raw, vocabulary, scored=True)
    scores_of_boxes = scores_by_box(raw, scenes)
    require(not box_scores or None not in raw.each("scores"))
    # The triplets that the option `unstated` adds were not predicted, so no pair comes from them.
    in_record = stated_in_record(scenes.hoi_start, np.diff(raw.hoi_start))
    verb_score = _verb_scores(raw, in_record)
    if triplet_scores:
        verb_score = scenes.score

    # formed: the triplets that form a pair; actual: those of them that are not of no_interaction
    formed = in_record & _forming(scenes, vocabulary, protocol)
    actual = formed & actual_triplets(scenes, vocabulary, protocol)
    keys, first, place = distinct_pairs(scenes, np.flatnonzero(formed))
    pair = np.full(len(scenes.score), -1, dtype=np.int64)
    pair[formed] = place
    scores = _triplet_scores(scenes, pair, actual, verb_score)
    pair[~actual] = -1

    # A pair that does not state its interactiveness is ranked by the scores of its triplets. The score for NMS is
    # interactiveness only in images whose pairs all state it.
    image, subject, object_, interactiveness = _all_pairs(raw, scenes, vocabulary, first)
    place, has_triplets = find(keys, pair_key(scenes, subject, object_))
    place = np.where(has_triplets, place, len(keys))  # the last place is for pairs without triplets
    stated = ~np.isnan(interactiveness)
    some_unstated = np.bincount(image[~stated], minlength=len(scenes.image_ids)) > 0
    zeros = np.zeros(len(image), dtype=np.int64)
    pairs = replace(  # the same images and boxes, with pairs in place of triplets
        scenes,
        subject=subject,
        object=object_,
        score=np.where(some_unstated[image], scores.best_score[place], interactiveness),
        verb=zeros,
        interaction=zeros - 1,
        hoi_start=starts_of(np.bincount(image, minlength=len(scenes.image_ids))),
    )
    interacting = np.where(stated, interactiveness, scores.highest_verb_score[place])
    denied = int((scores.denied[place] & some_unstated[image]).sum())
    return PairBatch(
        scenes=scenes,
        pair=pair,
        pair_first=first,
        verb_score=verb_score,
        pairs=pairs,
        interacting=interacting,
        stated=stated,
        box_scores=scores_of_boxes,
        denied=denied,
    )


def _verb_scores(raw: RawImages, in_record: Bools) -> Floats:
    """Return [T] the score of each triplet's verb, NaN if missing. in_record [T]: whether its record states it."""
    verb_score = np.full(len(in_record), np.nan)
    if stated_scores := raw.of_hoi["verb_score"]:
        verb_score[in_record] = numbers(stated_scores)
    return verb_score


class TripletScores(NamedTuple):
    """The scores of U pairs by their triplets, as columns [U + 1]; the last place is for pairs without triplets.

    denied: whether all triplets of a pair are of no_interaction. highest_verb_score: the highest verb score of its
    other triplets, -inf if there are none, NaN if a verb score is missing. best_score: the highest score of its
    triplets; those of no_interaction count only if the pair is denied."""

    denied: Bools
    highest_verb_score: Floats
    best_score: Floats


def _triplet_scores(scenes: Scenes, pair: Ints, actual: Bools, verb_score: Floats) -> TripletScores:
    """Return the scores of pairs by their triplets. pair [T]: the pair of each triplet, -1 for none; verb_score [T]:
    the score of its verb; actual [T]: whether it has a pair and is not of no_interaction."""
    places = int(pair.max(initial=-1)) + 2  # one for each pair, and the last for triplets without one
    # A pair is denied if all its triplets are of no_interaction; only then these give it a score.
    denied = np.bincount(pair[actual], minlength=places) == 0
    denied[-1] = False
    scoring = actual | denied[pair]  # pair -1 reads the last place
    # a verb score of no_interaction is no confidence to interact: such a triplet lends its pair -inf
    actual_verb_score = np.where(actual | np.isnan(verb_score), verb_score, -np.inf)
    highest_verb_score, best_score = np.full(places, -np.inf), np.full(places, -np.inf)
    with np.errstate(invalid="ignore"):
        np.maximum.at(highest_verb_score, pair[scoring], actual_verb_score[scoring])  # NaN if one of them is missing
    np.maximum.at(best_score, pair[scoring], scenes.score[scoring])
    highest_verb_score[-1] = np.nan
    return TripletScores(denied, highest_verb_score, best_score)


def actual_triplets(scenes: Scenes, vocabulary: Vocabulary, protocol: Protocol) -> Bools:
    """Return [T] whether each triplet has an object and is counted by the protocol. For `diag` it must have a person as
    subject and a class other than no_interaction; for `vcoco-s1`, an action-role."""
    actual = _forming(scenes, vocabulary, protocol)
    if vocabulary.no_interaction is not None:
        actual &= scenes.verb != vocabulary.verb_ids[vocabulary.no_interaction]
    return actual


def _forming(scenes: Scenes, vocabulary: Vocabulary, protocol: Protocol) -> Bools:
    """Return [T] whether each triplet forms a pair: `actual_triplets`, and those of no_interaction as well."""
    formed = _can_be_pairs(scenes, vocabulary, scenes.subject, scenes.object) & (scenes.interaction >= 0)
    if protocol.classes:
        formed &= np.isin(scenes.interaction, sorted(vocabulary.members(protocol.classes)))
    return formed


def _can_be_pairs(scenes: Scenes, vocabulary: Vocabulary, subject: Ints, object_: Ints) -> Bools:
    """Return [M] whether each (subject, object), which are rows of the boxes, can be a pair. The subject must be a
    person; in V-COCO, whose protocol ignores labels, there must be an object instead (a box of zeros, as in official
    dumps, means that there is none)."""
    if not len(scenes.boxes):
        return np.zeros(len(subject), dtype=bool)
    if vocabulary.roles:
        present: Bools = (object_ >= 0) & scenes.boxes[object_].any(axis=1)
        return present
    person: Bools = are_subjects(scenes.labels[subject], vocabulary)
    return person


@dataclass(frozen=True)
class Sweep:
    """One setting of a sweep over thresholds, which decides which detected pairs are kept. None: off.

    nms: the overlap above which pair NMS drops a pair beside a better-scored one of its object label, as in `PairNms`.
    det_threshold: the lowest detection score that both boxes of a pair may have."""

    nms: float | None = None
    det_threshold: float | None = None

    def signature(self) -> Settings:
        """Return the settings that are not None, by the keys that signatures have for them."""
        settings: dict[str, Setting] = {}
        if self.det_threshold is not None:
            settings["det"] = self.det_threshold
        if self.nms is not None:
            settings["pairnms"] = str(PairNms(self.nms))
        return settings


def sweeps(nms: Sequence[float], det_thresholds: Sequence[float]) -> list[Sweep]:
    """Return the settings to measure: first all pairs are kept, then each NMS threshold is applied, then each detection
    threshold, never both (Diag-HOI Table 3). Raises `UsageError` for values out of range."""
    for value in nms:
        if not 0 <= value <= 1:
            raise UsageError(f"{arg('nms_sweep', value)}: the threshold is an overlap, between 0 and 1")
    rows = [Sweep(), *(Sweep(nms=value) for value in nms), *(Sweep(det_threshold=value) for value in det_thresholds)]
    return list(dict.fromkeys(rows))


def surviving_pairs(batch: PairBatch, setting: Sweep) -> Bools:
    """Return [P] whether each detected pair of a batch is kept: whether both boxes reach the detection threshold, and
    pair NMS does not drop it, as far as the setting has these."""
    pairs = batch.pairs
    keep = np.ones(len(pairs.score), dtype=bool)
    if setting.det_threshold is not None:
        is_high = batch.box_scores >= setting.det_threshold
        keep &= is_high[pairs.subject] & is_high[pairs.object]
    if setting.nms is not None:
        keep = pair_nms(pairs, keep, **PairNms(setting.nms)._asdict(), ties=batch.order)
    return keep


def surviving_triplets(batch: PairBatch, keep: Bools, setting: Sweep) -> Bools:
    """Return [T] whether each triplet is kept if the pairs of `keep` [P] are, whatever its verb. Pair NMS keeps
    triplets that belong to no pair. A detection threshold checks only the person of a triplet without an object."""
    scenes = batch.scenes
    survives = np.ones(len(scenes.score), dtype=bool)
    has_object = scenes.object >= 0
    if setting.det_threshold is not None:
        is_high = batch.box_scores >= setting.det_threshold
        survives = is_high[scenes.subject]
        survives[has_object] &= is_high[scenes.object[has_object]]
    if setting.nms is not None:
        number_of_triplet, number_of_pair = batch.pair_numbers  # equal for equal (subject, object)
        is_kept, is_dropped = np.zeros((2, len(number_of_pair) + 1), dtype=bool)
        is_kept[number_of_pair[keep]] = True
        is_dropped[number_of_pair[~keep]] = True
        # a triplet of no pair (-1) reads the last entry, which is False in both
        survives &= is_kept[number_of_triplet] | ~is_dropped[number_of_triplet]
    return survives
