"""The pairs of the ground truth, the detected pairs that match them (by a protocol, or as pairs that interact), and the
columns that keep detected pairs and, for each setting, the triplets on its pairs with the scores of their verbs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hoicli.evaluation.fit import Fit
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import (
    FALSE_POSITIVE,
    TRUE_POSITIVE,
    check_pairs,
    counterparts,
    first_largest,
    protocol_iou,
    reaches,
)
from hoicli.evaluation.protocols import GRID_TENTHS, Protocol
from hoicli.evaluation.ranking import interpolated_ap, per_class, ranking
from hoicli.evaluation.selection import main_protocol, rows_of
from hoicli.evaluation.tally import Tally
from hoicli.pairs.pair_batches import PairBatch, distinct_pairs
from hoicli.records.boxes import take_columns
from hoicli.records.kit import Bools, Floats, Growing, Ints, among, rank_by_id
from hoicli.records.scenes import Scenes, box_kinds
from hoicli.vocabulary.labels import Vocabulary

COMPARED_AS = ("inp-cc", "vcoco-qpic")
"""The protocols that shift boxes as the released code does: 1-based ground truth of HICO-DET, x + w of V-COCO."""


class TruthPairs:
    """The Q distinct (human box, object box) of the ground truth that a protocol counts.

    subject, object [Q]: rows of the ground truth's boxes; image [Q]: ascending; start [N + 1]: where the pairs of each
    image begin. triplet [C]: the rows of the counted triplets, pair [C]: the pair that each belongs to. By subset (full
    and the vocabulary's groups), classes: a mask [K] of its interactions, and members: a mask [Q] of the pairs with one
    of them. statements: pair * K + interaction of the counted triplets, ascending. As in the released code, two boxes
    with the same corners are different boxes."""

    def __init__(self, truth: GroundTruth, protocol: Protocol) -> None:
        scenes = truth.scenes
        self.truth, self.protocol = truth, protocol
        triplet = np.flatnonzero(truth.counted_triplets(protocol) & (scenes.object >= 0))
        keys, first, pair = distinct_pairs(scenes, triplet)
        self.triplet, self.pair = triplet.astype(np.int32), pair.astype(np.int32)
        self.subject, self.object = scenes.subject[first], scenes.object[first]
        self.image = (np.searchsorted(scenes.box_start, self.subject, side="right") - 1).astype(np.int32)
        self.start = np.searchsorted(self.image, np.arange(len(scenes.image_ids) + 1))
        interactions = len(truth.vocabulary.interactions)
        self.statements = np.unique(self.pair * np.int64(interactions) + scenes.interaction[triplet])
        self.classes = {"full": np.ones(interactions, dtype=bool)}
        for name, ids in truth.vocabulary.groups.items():
            self.classes[name] = among(np.arange(interactions), ids)
        self.members = {
            name: np.bincount(self.pair, weights=mask[scenes.interaction[self.triplet]], minlength=len(keys)) > 0
            for name, mask in self.classes.items()
        }

    def images(self, subset: str) -> Bools:
        """Return which images [N] have an annotated interaction of the subset; all, if the protocol counts in all
        images."""
        if self.protocol.images == "all":
            return np.ones(len(self.truth.scenes.image_ids), dtype=bool)
        counts = np.bincount(self.image[self.members[subset]], minlength=len(self.truth.scenes.image_ids))
        return counts > 0

    @cached_property
    def rank(self) -> Ints:
        """The place [N] of each image when all images are sorted by id, so that ties do not depend on the order of
        lines."""
        return rank_by_id(self.truth.scenes.image_ids)

    def join(
        self, scenes: Scenes, image: Ints, subject: Ints, object_: Ints, person: Ints | None = None
    ) -> tuple[Ints, Ints, Floats]:
        """Return which detected pairs match which true pairs: (rows of the arguments, ascending; rows of the true
        pairs; the smaller of the two IoUs).

        image [P]: images of the ground truth; subject, object_ [P]: rows of `scenes.boxes`. person [P]: for a
        person-first protocol, which ignores labels, the ground-truth person that each pair belongs to."""
        count = self.start[image + 1] - self.start[image]
        check_pairs(count, image, self.truth.scenes.image_ids, "pairs")
        truth, protocol = self.truth.scenes, self.protocol
        kinds = box_kinds(scenes.labels, self.truth.vocabulary)
        joined = []
        for row, mate in counterparts(self.start[image], count):
            if person is not None:
                of_person = person[row] == self.subject[mate]
                row, mate = row[of_person], mate[of_person]
            overlap, sides = np.full(len(row), np.inf), ((subject, self.subject), (object_, self.object))
            if person is None:
                same_labels = np.all(
                    [kinds[mine[row]] == self.truth.kinds[theirs[mate]] for mine, theirs in sides], axis=0
                )
                row, mate, overlap = row[same_labels], mate[same_labels], overlap[same_labels]
            for mine, theirs in sides:
                side_iou = protocol_iou(
                    protocol, take_columns(scenes.boxes, mine[row]), take_columns(truth.boxes, theirs[mate])
                )
                enough = reaches(protocol, side_iou)
                row, mate, overlap = row[enough], mate[enough], np.minimum(overlap, side_iou)[enough]
            joined.append((row, mate, overlap))
        rows, mates, overlaps = map(np.concatenate, zip(*joined, strict=True))
        return rows, mates, overlaps


def compared_as(vocabulary: Vocabulary) -> Protocol:
    """Return the protocol by which boxes of pairs are compared: the dataset's, with boxes that extend from edge to
    edge."""
    rows = rows_of(vocabulary)
    row = next((rows[name] for name in COMPARED_AS if name in rows), main_protocol(vocabulary))
    return replace(row, inclusive=False, touching_overlap=True, inclusive_overlap=False)


class InteractingPairs:
    """The Q pairs of the ground truth that interact, for interactiveness AP: pairs of boxes with different coordinates,
    all of one class (enlighten0707/Body-Part-Map-for-Interactiveness binary_evaluation.py `calc_binary`, which printed
    the numbers of its paper).

    A detected pair belongs to the true pair with the largest min(IoU_subject, IoU_object), whatever the labels; among
    equal ones to the first by corners (in that code by place). If that IoU is at least 0.5, the pair is right if no
    other one that belongs to the same true pair has a better score."""

    def __init__(self, truth: TruthPairs) -> None:
        scenes = truth.truth.scenes
        corners = (truth.image[:, np.newaxis], scenes.boxes[truth.subject], scenes.boxes[truth.object])
        _, first = np.unique(np.hstack(corners), axis=0, return_index=True)
        self._scenes, self._image_ids = scenes, scenes.image_ids
        self._subject, self._object = truth.subject[first], truth.object[first]
        self._start = np.searchsorted(truth.image[first], np.arange(len(scenes.image_ids) + 1))
        self._protocol = compared_as(truth.truth.vocabulary)
        self.count = len(first)

    def mates(self, pairs: Scenes, image: Ints) -> Ints:
        """Return the true pair [P] that each detected pair belongs to, -1 for none. image [P]: images of the ground
        truth."""
        count = self._start[image + 1] - self._start[image]
        check_pairs(count, image, self._image_ids, "pairs")
        mates = np.full(len(image), -1, dtype=np.int64)
        for row, mate in counterparts(self._start[image], count):
            overlap = np.minimum(
                self._overlap(pairs.boxes[pairs.subject[row]], self._subject[mate]),
                self._overlap(pairs.boxes[pairs.object[row]], self._object[mate]),
            )
            best = first_largest(row, overlap)
            best = best[overlap[best] >= self._protocol.threshold]
            mates[row[best]] = mate[best]
        return mates

    def _overlap(self, boxes: Floats, truth_box: Ints) -> Floats:
        return protocol_iou(self._protocol, boxes.T, self._scenes.boxes[truth_box].T)

    def average_precision(self, mates: Ints) -> float | None:
        """Return the 11-point AP in [0, 1] of detected pairs, None if no annotated pair interacts. mates: the true pair
        of each, best score first."""
        if not self.count:
            return None
        # the first, best-scored pair of each true pair is a hit
        claimed, first = np.unique(mates, return_index=True)
        ranks = np.sort(first[claimed >= 0]) + 1
        ap = interpolated_ap(ranks, np.array([0, len(ranks)]), np.array([self.count]), GRID_TENTHS)
        return float(ap[0])


class Localised:
    """The U distinct pairs of a batch's triplets, and the true pairs that they match, for all settings.

    image [U]: the image of each pair, as a row of the ground truth; correct [U]: whether it matches a true pair; row,
    mate: which pair matches which true pair."""

    def __init__(self, batch: PairBatch, matched: Batch, truth: TruthPairs) -> None:
        scenes, first = batch.scenes, batch.pair_first
        self.batch, self.image_of_hoi = batch, matched.image_of_hoi
        self.image = matched.image_of_hoi[first]
        person = matched.best_people(truth.protocol)[0][first] if truth.protocol.person_first else None
        self.row, self.mate, _ = truth.join(scenes, self.image, scenes.subject[first], scenes.object[first], person)
        self.correct = np.zeros(len(first), dtype=bool)
        self.correct[self.row] = True
        self._truth, self._start = truth, np.searchsorted(self.row, np.arange(len(first) + 1))

    def states(self, pair: Ints, interaction: Ints) -> Bools:
        """Return whether [M] a true pair that each of these pairs matches is annotated with the interaction."""
        stated = np.zeros(len(pair), dtype=bool)
        classes = len(self._truth.truth.vocabulary.interactions)
        for row, match in counterparts(self._start[pair], np.diff(self._start)[pair]):
            statement = self.mate[match] * np.int64(classes) + interaction[row]
            stated[row[np.isin(statement, self._truth.statements)]] = True
        return stated


class Interactions:
    """The triplets on correctly localised pairs under one setting, the true pairs that some triplet localises, and the
    images with triplets that count."""

    def __init__(self, truth: TruthPairs) -> None:
        self._rows = Growing(
            **dict.fromkeys(("interaction", "image"), np.int32),
            **dict.fromkeys(("verb_score", "score"), np.float64),
            hit=np.bool_,
        )
        self._found = np.zeros(len(truth.image), dtype=bool)
        self._answered = np.zeros(len(truth.truth.scenes.image_ids), dtype=bool)

    def add(self, localised: Localised, code: NDArray[np.uint8]) -> None:
        """Add a batch of images. code [T]: the outcome of each of its triplets."""
        scenes, pair = localised.batch.scenes, localised.batch.pair
        counted = np.flatnonzero((code <= TRUE_POSITIVE) & (pair >= 0))
        has_counted = np.zeros(len(localised.image), dtype=bool)
        has_counted[pair[counted]] = True
        rows = counted[localised.correct[pair[counted]]]
        # By V-COCO's scenario 2 a triplet is right, too, by an annotation without an object, which is of no pair.
        objectless_hit = code[rows] == TRUE_POSITIVE
        objectless_hit[objectless_hit] = ~localised.states(
            pair[rows[objectless_hit]], scenes.interaction[rows[objectless_hit]]
        )
        rows = rows[~objectless_hit]
        # All others on a correct pair are duplicates or have the wrong verb.
        self._rows.add(
            interaction=scenes.interaction[rows],
            image=localised.image_of_hoi[rows],
            verb_score=localised.batch.verb_score[rows],
            score=scenes.score[rows],
            hit=code[rows] == TRUE_POSITIVE,
        )
        self._found[localised.mate[has_counted[localised.row]]] = True
        self._answered[localised.image[has_counted]] = True

    def merge(self, other: Interactions) -> None:
        """Add what was gathered from other images."""
        self._rows.merge(other._rows)
        self._found |= other._found
        self._answered |= other._answered

    def mean_ap(self, truth: TruthPairs, *, as_released: bool) -> dict[str, tuple[float | None, int]]:
        """Return for each subset (mAP over verbs, ranked by verb score; the number of verbs).

        Equal verb scores within an image are ordered by triplet score, then by place in the record, as in
        action_map_hicodet.py, which sorts an image's predictions by triplet score first; between images they are
        ordered by id, where the released code takes the order of the file."""
        verb_of = _labels_to_classify(truth.truth.vocabulary)
        annotated = self._annotated(truth, as_released=as_released)
        interaction, code = self._ranked_outcomes(truth, verb_of)
        means: dict[str, tuple[float | None, int]] = {}
        for subset, classes in truth.classes.items():
            positives = np.bincount(verb_of[annotated[classes[annotated]]], minlength=int(verb_of.max()) + 1)
            in_subset = classes[interaction]
            bounds = np.searchsorted(verb_of[interaction[in_subset]], np.arange(len(positives) + 1))
            # A true positive's triplet is on a localised pair, so a verb without ground truth has none.
            ap, recall = per_class(code[in_subset], bounds, positives, truth.protocol)
            in_mean = positives > 0
            if as_released:
                in_mean &= (recall > 0) | (np.diff(bounds) == 0)
            means[subset] = None, 0
            if in_mean.any() and (as_released or self._answered.any()):  # compute_map prints 0 without predictions
                means[subset] = float(ap[in_mean].mean()), int(in_mean.sum())
        return means

    def _annotated(self, truth: TruthPairs, *, as_released: bool) -> Ints:
        """Return the interaction of each counted triplet of the ground truth whose pair some triplet localises; as
        released, also of each in an image without predictions."""
        counted = self._found[truth.pair]
        if as_released:
            counted = counted | ~self._answered[truth.image[truth.pair]]
        return truth.truth.scenes.interaction[truth.triplet[counted]]

    def _ranked_outcomes(self, truth: TruthPairs, verb_of: Ints) -> tuple[Ints, NDArray[np.uint8]]:
        """Return ([M] the interaction, [M] the outcome code) of the triplets on localised pairs, verb by verb, the best
        verb score first. verb_of [K]: the verb of each interaction."""
        rows = self._rows
        order = ranking(
            verb_of[rows["interaction"]],
            rows["verb_score"],
            lambda tied: [-rows["score"][tied], truth.rank[rows["image"][tied]]],
        )
        return rows["interaction"][order], np.where(rows["hit"][order], TRUE_POSITIVE, FALSE_POSITIVE).astype(np.uint8)


def _labels_to_classify(vocabulary: Vocabulary) -> Ints:
    """Return [K] what each interaction is to be classified as: its verb or, if actions have roles, its action-role."""
    if vocabulary.roles:
        return np.arange(len(vocabulary.interactions), dtype=np.int32)
    return np.array([vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions], dtype=np.int32)


class PairColumns:
    """M images with P detected pairs and their triplets, under some settings; filled in any order, and by several
    processes.

    lines: image [M], rows of the ground truth, and pairs [M], how many pairs each image has; an image's pairs are
    together and in their order. detected [P]: score, interacting and stated as in `PairBatch`; ignored, whether the
    person that a pair belongs to has no annotated actions; own, the true pair that it belongs to (`InteractingPairs`),
    -1 unless that is asked for; mark, a number for its corners and label, which breaks ties. matches: each match of a
    detected pair (row, ascending) and a true pair (mate), with their overlap. kept [P], by the setting's number:
    whether it keeps the pair.

    interactions: those of each setting, while all triplets have verb scores. tally: the triplets, once, with their
    outcomes under each setting as if it were a protocol. fit: how the images' boxes fit the ground truth. numbers: how
    many pairs and triplets there are; and of the triplets that interaction mAP ranks, how many are scored or unscored,
    that is with or without a verb score."""

    def __init__(self, truth: TruthPairs, tally: Tally, settings: int) -> None:
        self.lines = Growing(image=np.int32, pairs=np.int32)
        self.detected = Growing(
            **dict.fromkeys(("interacting", "score", "mark"), np.float64),
            **dict.fromkeys(("stated", "ignored"), np.bool_),
            own=np.int32,
        )
        self.matches = Growing(row=np.int64, mate=np.int32, overlap=np.float64)
        self.kept = Growing(**{str(number): np.bool_ for number in range(settings)})
        self.interactions = [Interactions(truth) for _ in range(settings)]
        self.tally = tally
        self.fit = Fit()
        self.numbers: Counter[str] = Counter()

    def merge(self, other: PairColumns) -> None:
        """Add what was kept from other images under the same settings."""
        matches = {name: other.matches[name] for name in other.matches.names}
        self.matches.add(**{**matches, "row": matches["row"] + self.numbers["pairs"]})
        for name in ("lines", "detected", "kept", "tally", "fit"):
            getattr(self, name).merge(getattr(other, name))
        for mine, theirs in zip(self.interactions, other.interactions, strict=True):
            mine.merge(theirs)
        self.numbers += other.numbers
