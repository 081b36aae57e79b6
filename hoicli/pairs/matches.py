"""The annotated pairs (human box, object box) of the ground truth and the detected pairs that match them; and the
columns that gather, batch by batch, what pair statistics are computed from."""

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
    first_largest,
    iterate_pairs,
    protocol_iou,
    reaches,
)
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import interpolated_ap, per_class, ranking
from hoicli.evaluation.recall_grids import GRID_TENTHS
from hoicli.evaluation.selection import main_protocol, protocols_for
from hoicli.evaluation.tally import Tally
from hoicli.pairs.pair_batches import PairBatch, distinct_pairs
from hoicli.records.boxes import take_columns
from hoicli.records.kit import Bools, Floats, Growing, Ints, among, rank_by_id
from hoicli.records.scenes import Scenes, box_kinds, class_actions
from hoicli.vocabulary.labels import Vocabulary

SHIFTING_PROTOCOLS = ("inp-cc", "vcoco-qpic")
"""The protocols that shift boxes as the released code of interactiveness AP does: from the 1-based corners of
HICO-DET's ground truth, and to the far edge x + w in V-COCO."""


class AnnotatedPairs:
    """The Q distinct pairs (human box, object box) of the ground truth in triplets that a protocol counts. As in the
    released code, two boxes with the same corners are different boxes.

    subject, object [Q]: rows of the ground truth's boxes; image [Q]: the image of each pair, ascending; start [N + 1]:
    where the pairs of each image begin. triplet [C]: the rows of the counted triplets; pair [C]: the pair that each
    belongs to. classes, in_subset: for each subset (full and the vocabulary's groups) a mask [K] of its interactions,
    and a mask [Q] of the pairs that are annotated with one of them. annotated_interactions: pair * K + interaction for
    each counted triplet, ascending."""

    def __init__(self, truth: GroundTruth, protocol: Protocol) -> None:
        """Find the distinct pairs of boxes of all triplets that the protocol counts and that have an object."""
        scenes = truth.scenes
        self.ground_truth, self.protocol = truth, protocol
        triplet = np.flatnonzero(truth.counted_triplets(protocol) & (scenes.object >= 0))
        keys, first, pair = distinct_pairs(scenes, triplet)
        self.triplet, self.pair = triplet.astype(np.int32), pair.astype(np.int32)
        self.subject, self.object = scenes.subject[first], scenes.object[first]
        self.image = (np.searchsorted(scenes.box_start, self.subject, side="right") - 1).astype(np.int32)
        self.start = np.searchsorted(self.image, np.arange(len(scenes.image_ids) + 1))
        interactions = len(truth.vocabulary.interactions)
        self.annotated_interactions = np.unique(self.pair * np.int64(interactions) + scenes.interaction[triplet])
        self.classes = {"full": np.ones(interactions, dtype=bool)}
        for name, ids in truth.vocabulary.groups.items():
            self.classes[name] = among(np.arange(interactions), ids)
        self.in_subset = {
            name: np.bincount(self.pair, weights=mask[scenes.interaction[self.triplet]], minlength=len(keys)) > 0
            for name, mask in self.classes.items()
        }

    def images(self, subset: str) -> Bools:
        """Return [N] whether each image has an annotated interaction of the subset, so that predictions in it are
        evaluated; True for all if the protocol evaluates all images."""
        if self.protocol.images == "all":
            return np.ones(len(self.ground_truth.scenes.image_ids), dtype=bool)
        counts = np.bincount(self.image[self.in_subset[subset]], minlength=len(self.ground_truth.scenes.image_ids))
        return counts > 0

    @cached_property
    def rank(self) -> Ints:
        """The place [N] of each image when all are sorted by id, which orders equal scores."""
        return rank_by_id(self.ground_truth.scenes.image_ids)

    def match_detections(
        self, scenes: Scenes, image: Ints, subject: Ints, object_: Ints, person: Ints | None = None
    ) -> tuple[Ints, Ints, Floats]:
        """Return every match of a detected pair and an annotated pair, as three columns: the detected pair (its place
        in the arguments, ascending), the annotated pair, and the smaller IoU of the two boxes.

        scenes: the detections; image [P]: the image of each detected pair, as a row of the ground truth; subject,
        object_ [P]: its boxes, as rows of `scenes.boxes`. person [P]: for a person-first protocol, which ignores
        labels, the ground-truth person that each pair belongs to."""
        count = self.start[image + 1] - self.start[image]
        check_pairs(count, image, self.ground_truth.scenes.image_ids, "pairs")
        truth, protocol = self.ground_truth.scenes, self.protocol
        kinds = box_kinds(scenes.labels, self.ground_truth.vocabulary)  # the label by which each box is compared
        blocks = []
        for row, true_pair in iterate_pairs(self.start[image], count):
            if person is None:  # both boxes must have the labels of the annotated ones
                fits = kinds[subject[row]] == self.ground_truth.kinds[self.subject[true_pair]]
                fits &= kinds[object_[row]] == self.ground_truth.kinds[self.object[true_pair]]
            else:
                fits = person[row] == self.subject[true_pair]
            row, true_pair = row[fits], true_pair[fits]
            overlap = np.full(len(row), np.inf)
            for box, true_box in ((subject, self.subject), (object_, self.object)):
                detected_boxes = take_columns(scenes.boxes, box[row])
                side_iou = protocol_iou(protocol, detected_boxes, take_columns(truth.boxes, true_box[true_pair]))
                enough = reaches(protocol, side_iou)
                row, true_pair, overlap = row[enough], true_pair[enough], np.minimum(overlap, side_iou)[enough]
            blocks.append((row, true_pair, overlap))
        rows, true_pairs, overlaps = map(np.concatenate, zip(*blocks, strict=True))
        return rows, true_pairs, overlaps


def box_protocol(vocabulary: Vocabulary) -> Protocol:
    """Return the protocol by which interactiveness AP compares boxes: that of the dataset, but with boxes as areas from
    edge to edge, without the pixel that other code adds to their sides."""
    rows = protocols_for(vocabulary)
    row = next((rows[name] for name in SHIFTING_PROTOCOLS if name in rows), main_protocol(vocabulary))
    return replace(row, inclusive=False, touching_overlap=True, inclusive_overlap=False)


class InteractingPairs:
    """The annotated pairs of boxes that interact, for interactiveness AP, which asks only whether a pair interacts, as
    if there were one class. Pairs with the same coordinates are one pair. (enlighten0707/
    Body-Part-Map-for-Interactiveness binary_evaluation.py `calc_binary`, which printed the numbers of its paper.)

    A detected pair belongs to the annotated pair with the largest min(IoU_subject, IoU_object), whatever the labels;
    among equal ones to the first by corners (in that code, as they are listed). If that IoU is at least 0.5, it is a
    true positive, unless another detected pair that belongs to the same annotated pair has a better score."""

    def __init__(self, annotated: AnnotatedPairs) -> None:
        """Find the pairs with different coordinates among all annotated pairs."""
        scenes = annotated.ground_truth.scenes
        corners = (annotated.image[:, np.newaxis], scenes.boxes[annotated.subject], scenes.boxes[annotated.object])
        _, first = np.unique(np.hstack(corners), axis=0, return_index=True)
        self._scenes, self._image_ids = scenes, scenes.image_ids
        self._subject, self._object = annotated.subject[first], annotated.object[first]
        self._start = np.searchsorted(annotated.image[first], np.arange(len(scenes.image_ids) + 1))
        self._protocol = box_protocol(annotated.ground_truth.vocabulary)
        self.count = len(first)

    def match_pairs(self, pairs: Scenes, image: Ints) -> Ints:
        """Return [P] the annotated pair that each detected pair belongs to, -1 for none. pairs: the detected pairs, as
        triplets; image [P]: the image of each, as a row of the ground truth."""
        count = self._start[image + 1] - self._start[image]
        check_pairs(count, image, self._image_ids, "pairs")
        true_pairs = np.full(len(image), -1, dtype=np.int64)
        for row, true_pair in iterate_pairs(self._start[image], count):
            overlap = np.minimum(
                self._overlap(pairs.boxes[pairs.subject[row]], self._subject[true_pair]),
                self._overlap(pairs.boxes[pairs.object[row]], self._object[true_pair]),
            )
            best = first_largest(row, overlap)
            best = best[overlap[best] >= self._protocol.threshold]
            true_pairs[row[best]] = true_pair[best]
        return true_pairs

    def _overlap(self, boxes: Floats, truth_box: Ints) -> Floats:
        """Return [M] the IoU of each predicted box [M, 4] with the ground-truth box in its row (a number)."""
        return protocol_iou(self._protocol, boxes.T, self._scenes.boxes[truth_box].T)

    def average_precision(self, true_pairs: Ints) -> float | None:
        """Return the AP of detected pairs at 11 recalls, in [0, 1]; None if there is no annotated pair. true_pairs: the
        annotated pair that each belongs to (-1 for none), best score first."""
        if not self.count:
            return None
        # the first detected pair of each annotated pair, which has the best score, is its true positive
        matched, first = np.unique(true_pairs, return_index=True)
        ranks = np.sort(first[matched >= 0]) + 1
        ap = interpolated_ap(ranks, np.array([0, len(ranks)]), np.array([self.count]), GRID_TENTHS)
        return float(ap[0])


class LocalisedPairs:
    """The U distinct pairs of a batch's triplets, and the annotated pairs that they match.

    image [U]: the image of each pair, as a row of the ground truth; correct [U]: whether it matches an annotated pair;
    row, true_pair: each match of a pair (ascending) and an annotated pair."""

    def __init__(self, batch: PairBatch, matched: Batch, annotated: AnnotatedPairs) -> None:
        """Match the pairs of a batch by the protocol of `annotated`. matched: the batch's triplets, matched by it."""
        scenes, first = batch.scenes, batch.pair_first
        self.batch, self.image_of_hoi = batch, matched.image_of_hoi
        self.image = matched.image_of_hoi[first]
        person = None
        if annotated.protocol.person_first:
            person_of_triplet, _ = matched.best_people(annotated.protocol)
            person = person_of_triplet[first]
        self.row, self.true_pair, _ = annotated.match_detections(
            scenes, self.image, scenes.subject[first], scenes.object[first], person
        )
        self.correct = np.zeros(len(first), dtype=bool)
        self.correct[self.row] = True
        self._annotated, self._start = annotated, np.searchsorted(self.row, np.arange(len(first) + 1))

    def is_annotated(self, pair: Ints, interaction: Ints) -> Bools:
        """Return [M] whether each of these pairs matches an annotated pair that has this interaction."""
        is_annotated = np.zeros(len(pair), dtype=bool)
        classes = len(self._annotated.ground_truth.vocabulary.interactions)
        for row, match in iterate_pairs(self._start[pair], np.diff(self._start)[pair]):
            pair_and_class = self.true_pair[match] * np.int64(classes) + interaction[row]
            is_annotated[row[np.isin(pair_and_class, self._annotated.annotated_interactions)]] = True
        return is_annotated


class Interactions:
    """What the interaction mAP under one setting is computed from: the triplets on correctly localised pairs, the
    annotated pairs that some triplet localises, and the images with predictions that count."""

    def __init__(self, annotated: AnnotatedPairs) -> None:
        """Start with no triplet. annotated: the pairs that triplets may localise."""
        self._rows = Growing(  # a row for each triplet on a correctly localised pair
            **dict.fromkeys(("interaction", "image"), np.int32),
            **dict.fromkeys(("verb_score", "score"), np.float64),
            hit=np.bool_,
        )
        # for each annotated pair, and for each image of the ground truth
        self._is_localised = np.zeros(len(annotated.image), dtype=bool)
        self._has_predictions = np.zeros(len(annotated.ground_truth.scenes.image_ids), dtype=bool)

    def add(self, localised: LocalisedPairs, code: NDArray[np.uint8]) -> None:
        """Add a batch of images. localised: its pairs; code [T]: the outcome of each triplet under the setting."""
        scenes, pair = localised.batch.scenes, localised.batch.pair
        counted = np.flatnonzero((code <= TRUE_POSITIVE) & (pair >= 0))
        has_counted = np.zeros(len(localised.image), dtype=bool)
        has_counted[pair[counted]] = True
        rows = counted[localised.correct[pair[counted]]]
        # By V-COCO's scenario 2 an annotation without an object, which has no pair, makes a triplet right, too. Such
        # true positives are left out: those whose pair is not annotated with their interaction.
        objectless_hit = code[rows] == TRUE_POSITIVE
        hits = rows[objectless_hit]
        objectless_hit[objectless_hit] = ~localised.is_annotated(pair[hits], scenes.interaction[hits])
        rows = rows[~objectless_hit]
        # All others on a correct pair are duplicates or have the wrong verb.
        self._rows.add(
            interaction=scenes.interaction[rows],
            image=localised.image_of_hoi[rows],
            verb_score=localised.batch.verb_score[rows],
            score=scenes.score[rows],
            hit=code[rows] == TRUE_POSITIVE,
        )
        self._is_localised[localised.true_pair[has_counted[localised.row]]] = True
        self._has_predictions[localised.image[has_counted]] = True

    def merge(self, other: Interactions) -> None:
        """Add what was gathered from other images."""
        self._rows.merge(other._rows)
        self._is_localised |= other._is_localised
        self._has_predictions |= other._has_predictions

    def mean_ap(self, annotated: AnnotatedPairs, *, as_released: bool) -> dict[str, tuple[float | None, int]]:
        """Return, by subset, the mean AP over verbs of triplets on localised pairs, ranked by verb score (None where
        there is none), and the number of verbs in it. as_released: as the released code averages.

        Equal verb scores within an image are ordered by triplet score, then by place in the record, as in
        action_map_hicodet.py, which sorts an image's predictions by triplet score first; between images they are
        ordered by id, where the released code takes the order of the file."""
        verb_of = class_actions(annotated.ground_truth.vocabulary)  # by interaction
        # The ground-truth triplets that count towards recall: those whose pair some prediction localises; as released,
        # also those in images without predictions.
        counted = self._is_localised[annotated.pair]
        if as_released:
            counted = counted | ~self._has_predictions[annotated.image[annotated.pair]]
        recallable = annotated.ground_truth.scenes.interaction[annotated.triplet[counted]]
        interaction, code = self._ranked_outcomes(annotated, verb_of)
        means: dict[str, tuple[float | None, int]] = {}
        for subset, classes in annotated.classes.items():
            positives = np.bincount(verb_of[recallable[classes[recallable]]], minlength=int(verb_of.max()) + 1)
            in_subset = classes[interaction]
            # the triplets of verb v are those from bounds[v] to bounds[v + 1]
            bounds = np.searchsorted(verb_of[interaction[in_subset]], np.arange(len(positives) + 1))
            # A true positive's triplet is on a localised pair, so a verb without ground truth has none.
            ap, recall = per_class(code[in_subset], bounds, positives, annotated.protocol)
            in_mean = positives > 0
            if as_released:
                # it leaves out verbs with predictions but no true positive
                in_mean &= (recall > 0) | (np.diff(bounds) == 0)
            # without any prediction there is no mean, but the released compute_map prints 0
            has_mean = in_mean.any() and (as_released or self._has_predictions.any())
            means[subset] = (float(ap[in_mean].mean()), int(in_mean.sum())) if has_mean else (None, 0)
        return means

    def _ranked_outcomes(self, annotated: AnnotatedPairs, verb_of: Ints) -> tuple[Ints, NDArray[np.uint8]]:
        """Return two columns about the triplets on localised pairs, verb by verb, the best verb score first: the
        interaction, and the outcome. verb_of [K]: the verb of each interaction."""
        rows = self._rows
        order = ranking(
            verb_of[rows["interaction"]],
            rows["verb_score"],
            lambda tied: [-rows["score"][tied], annotated.rank[rows["image"][tied]]],
        )
        return rows["interaction"][order], np.where(rows["hit"][order], TRUE_POSITIVE, FALSE_POSITIVE).astype(np.uint8)


class PairColumns:
    """What is gathered of M images with P detected pairs and their triplets, for pair statistics under several settings
    (`Sweep`). Batches come in any order, and from several processes.

    lines: `image` [M], rows of the ground truth, and `pairs` [M], how many pairs each image has; the pairs of an image
    follow those of the image before. detected [P]: `score`, `interacting` and `stated` as in `PairBatch`; `ignored`,
    whether the person that a pair belongs to has no annotated actions; `interacting_pair`, the annotated pair that it
    belongs to (`InteractingPairs`), -1 unless that is asked for; `mark`, a number made of its corners and label, which
    orders equal scores. matches: each match of a detected pair (`row`, ascending) and an annotated pair (`true_pair`),
    with their `overlap`. kept [P], by the number of a setting: whether it keeps the pair.

    interactions: for each setting what interaction mAP is computed from, as long as all triplets have verb scores.
    tally: the triplets with their outcomes under each setting, as if it were a protocol. fit: how the images' boxes fit
    the ground truth. numbers: how many `pairs` and `triplets` there are, and `denied` (`PairBatch`); of the triplets
    that interaction mAP ranks, how many are `scored` and `unscored`, with and without a verb score."""

    def __init__(self, annotated: AnnotatedPairs, tally: Tally, settings: int) -> None:
        """Start with no image, and columns that grow batch by batch. settings: how many the sweep has."""
        self.lines = Growing(image=np.int32, pairs=np.int32)
        self.detected = Growing(
            **dict.fromkeys(("interacting", "score", "mark"), np.float64),
            **dict.fromkeys(("stated", "ignored"), np.bool_),
            interacting_pair=np.int32,
        )
        self.matches = Growing(row=np.int64, true_pair=np.int32, overlap=np.float64)
        self.kept = Growing(**{str(number): np.bool_ for number in range(settings)})
        self.interactions = [Interactions(annotated) for _ in range(settings)]
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
