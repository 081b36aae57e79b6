"""Boxes as such: what a detector's labelled, scored boxes find of the annotated ones, by the rules of COCO and PASCAL
VOC, and the recall that the Diag-HOI paper prints.

Boxes are compared as recorded, with those of their label and image. A crowd's box (COCO's `iscrowd`) is ignored: it is
never missed, and what lies in it by half or more (COCO) or overlaps it most (as VOC's difficult boxes) is neither true
nor false; the paper's recall leaves it out. A label without annotated boxes is in no mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from hoicli.converters.named import truth_settings
from hoicli.errors import DataError
from hoicli.evaluation.box_matching import OUTSIDE, BoxPairs, Codes, match_best, match_free
from hoicli.evaluation.box_rules import ANY, AREAS, BEST, BoxMetric, BoxRule
from hoicli.evaluation.coverage import Coverage, check_computable
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import FALSE_POSITIVE, OUTCOME_CODES, check_pairs, iterate_pairs
from hoicli.evaluation.ranking import per_class, ranking
from hoicli.evaluation.scored_boxes import DetectedBoxes, read_detections
from hoicli.io.memory import no_garbage_collection
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records import caveats
from hoicli.records.boxes import iou, take_columns
from hoicli.records.columns import read_columns
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Bools, Floats, Growing, Ints, rank_by_id, ranks_in_groups
from hoicli.records.reading import checker
from hoicli.records.result_rows import Row, Setting, Settings, percent, result_row, row_ends
from hoicli.records.scenes import are_subjects

_OVER_THE_CAP = OUTCOME_CODES["over_the_cap"]
_NEAR = 0.5
"""The least threshold of the rules."""
INCOMPLETE = (
    "what nobody annotated counts as false, and only what interacts is annotated: precision is not reliable "
    "(Diag-HOI, section 6.7)"
)
"""The note on rows of AP."""


def _share_within(boxes: Floats, crowds: Floats) -> Floats:
    """Return [M] the share of each box's area that is inside the crowd's box beside it, 0 for a box without area.
    boxes, crowds [4, M]: their corners."""
    intersection = np.concatenate([np.maximum(boxes[:2], crowds[:2]), np.minimum(boxes[2:], crowds[2:])])
    shared = _areas(intersection)
    box_area = _areas(boxes)
    share: Floats = np.divide(shared, box_area, out=np.zeros(len(box_area)), where=box_area > 0)
    return share


def _areas(corners: Floats) -> Floats:
    """Return [M] the area of each box, from corners [4, M]; 0 for a box that ends before it begins."""
    sizes = np.maximum(corners[2:] - corners[:2], 0.0)  # width and height [2, M]
    areas: Floats = np.prod(sizes, axis=0)
    return areas


def _are_in_range(boxes: Floats, area: str) -> Bools:
    """Return a mask of the boxes [M, 4] whose area is in a range (`area`, a key of AREAS)."""
    low, high = AREAS[area]
    with np.errstate(over="ignore", invalid="ignore"):
        size = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    in_range: Bools = (size >= low) & (size <= high)
    return in_range


class _Ranking(NamedTuple):
    """How D detections rank. rank [D]: the rank of each among the detections of its image and label by descending
    score, from 0, equal scores in the record's order. order [D]: the detections sorted by label, then by descending
    score, then by image id; those of label l are order[bounds[l]:bounds[l + 1]]."""

    rank: Ints
    order: Ints
    bounds: Ints


class BoxEvaluation:
    """Gathers detections batch by batch, and then computes the metrics of any rule from all of them (`measure`).

    Kept are all D detections, and each pair of a detection and an annotated box of its image and label whose IoU is
    _NEAR or more, measured as edges or as pixels. The G annotated boxes that have a label are sorted by `key`, a number
    for each image and label, and those of one key by their order in the record."""

    def __init__(self, truth: GroundTruth, once: Bools) -> None:
        """Sort the annotated boxes by image and label, so that `add` finds those of a detection by bisection.

        once [B]: a mask with one box of each object, even if several annotated boxes repeat it; by rules that give a
        box to one detection only, the other boxes do not count."""
        scenes = truth.scenes
        self.truth = truth
        self._label_count = len(truth.vocabulary.objects)
        rows = np.flatnonzero(scenes.labels >= 0)
        key = scenes.image_of_box[rows] * self._label_count + scenes.labels[rows]
        order = np.argsort(key, kind="stable")
        rows = rows[order]
        # Columns about the annotated boxes
        self._key = key[order]
        self._boxes = scenes.boxes[rows]
        self._label = scenes.labels[rows]
        self._once = once[rows]
        self._crowd = scenes.crowd[rows]
        # Columns about the detections: image and label, score, and whether the area is in each range
        self._detections = Growing(key=np.int64, score=np.float64, **dict.fromkeys(AREAS, np.bool_))
        # Columns about pairs of a detection (row) and an annotated box (mate): the IoU by edges and by inclusive pixels
        self._pairs = Growing(row=np.int64, mate=np.int64, edges=np.float64, pixels=np.float64)
        self.coverage = Coverage()
        self.numbers = Counter[str]()
        self.caveats = truth.caveats

    def add(self, detected: DetectedBoxes, rule: BoxRule) -> None:
        """Add the detections of a batch of images. rule: one that the predictions must be able to serve. Raises
        `DataError` if they cannot, as scores of whole images without boxes."""
        scenes = detected.scenes
        batch = Batch(scenes, self.truth)
        batch.check_serves(rule.protocol)
        image = scenes.image_of_box[detected.row]
        boxes = scenes.boxes[detected.row]
        key = batch.image[image] * self._label_count + scenes.labels[detected.row]
        start = np.searchsorted(self._key, key)
        count = np.searchsorted(self._key, key, side="right") - start
        check_pairs(count, image, detected.image_ids, "boxes of one label")
        for row, mate in iterate_pairs(start, count):
            detections = take_columns(boxes, row)
            annotated = take_columns(self._boxes, mate)
            edges = iou(detections, annotated, inclusive=False)
            pixels = iou(detections, annotated, inclusive=True)
            crowd = self._crowd[mate]
            if crowd.any():  # the share of the detection that lies in it, as pycocotools has it
                edges[crowd] = _share_within(detections[:, crowd], annotated[:, crowd])
            near = np.maximum(edges, pixels) >= _NEAR
            row += self.numbers["detections"]  # from a row of this batch to one of all detections
            self._pairs.add(row=row[near], mate=mate[near], edges=edges[near], pixels=pixels[near])
        in_ranges = {area: _are_in_range(boxes, area) for area in AREAS}
        self._detections.add(key=key, score=detected.score, **in_ranges)
        self.numbers += detected.numbers + Counter(detections=len(key))
        self.coverage.add(batch)
        # facts about where the predictions came from that affect numbers, as a bit mask for signatures
        self.caveats |= scenes.every_caveat & caveats.PREDICTIONS

    @cached_property
    def _ranking(self) -> _Ranking:
        """The ranking of all detections."""
        key = self._detections["key"]
        score = self._detections["score"]
        image, label = np.divmod(key, self._label_count)
        id_rank = rank_by_id(self.truth.scenes.image_ids)
        order = ranking(label, score, lambda rows: [id_rank[image[rows]]])
        bounds = np.searchsorted(label[order], np.arange(self._label_count + 1))
        return _Ranking(rank=ranks_in_groups(key, score), order=order, bounds=bounds)

    def measure(self, rule: BoxRule) -> Iterator[tuple[BoxMetric, Floats, Ints]]:
        """Compute the metrics of a rule. Yield each metric with two columns [labels]: its value for each label, in
        [0, 1], and the number of annotated boxes of the label."""
        if rule.takes == ANY:
            yield from self._recalls_by_any(rule)
            return
        # Crowds may be matched, and of annotated boxes that repeat one object a single one (`once`).
        pairs = self._near_pairs(rule, self._once | self._crowd)
        # AP and recall, both [thresholds, labels], by range of areas and by cap: several metrics share them.
        ap_and_recall: dict[tuple[str, int | None], tuple[Floats, Floats]] = {}
        for area in dict.fromkeys(metric.area for metric in rule.metrics):
            codes = self._outcomes(rule, pairs, area)
            for cap in {metric.cap for metric in rule.metrics if metric.area == area}:
                capped = codes if cap is None else np.where(self._ranking.rank < cap, codes, _OVER_THE_CAP)
                ap_and_recall[area, cap] = self._ap_and_recall(rule, capped, self._positives(area))
        for metric in rule.metrics:
            ap, recall = ap_and_recall[metric.area, metric.cap]
            values = recall if metric.recall else ap
            if metric.threshold is not None:
                values = values[[rule.thresholds.index(metric.threshold)]]
            yield metric, values.mean(axis=0), self._positives(metric.area)

    def _near_pairs(self, rule: BoxRule, truth_kept: Bools) -> BoxPairs:
        """Return the pairs of a detection and an annotated box whose IoU, by the rule's convention, is _NEAR or more,
        of the boxes `truth_kept` [G]."""
        overlap = self._pairs["pixels" if rule.protocol.inclusive else "edges"]
        near = np.flatnonzero((overlap >= _NEAR) & truth_kept[self._pairs["mate"]])
        return BoxPairs(self._pairs["row"][near], self._pairs["mate"][near], overlap[near])

    def _countable(self, area: str) -> Bools:
        """Return a mask [G] of the annotated boxes that are no crowds and whose area is in a range (a key of AREAS)."""
        return _are_in_range(self._boxes, area) & ~self._crowd

    def _positives(self, area: str) -> Ints:
        """Return [labels] how many annotated boxes of each label count in a range of areas (a key of AREAS). Boxes that
        repeat an object count once, and crowds do not."""
        return self._count_by_label(np.flatnonzero(self._once & self._countable(area)))

    def _count_by_label(self, annotated: Ints) -> Ints:
        """Return [labels] how many of the given annotated boxes (indices) have each label."""
        return np.bincount(self._label[annotated], minlength=self._label_count)

    def _recalls_by_any(self, rule: BoxRule) -> Iterator[tuple[BoxMetric, Floats, Ints]]:
        """Yield the metrics of a rule of recall by which a detection finds all annotated boxes that it overlaps enough
        (ANY): each metric with its values and the numbers of annotated boxes, both [labels]. Every annotated box but
        crowds counts, even if it repeats an object."""
        boxes_found = np.unique(self._near_pairs(rule, ~self._crowd).mate)
        hits = self._count_by_label(boxes_found)
        for metric in rule.metrics:
            positives = self._count_by_label(np.flatnonzero(self._countable(metric.area)))
            yield metric, hits / np.maximum(positives, 1), positives

    def _outcomes(self, rule: BoxRule, pairs: BoxPairs, area: str) -> Codes:
        """Return the outcome codes [thresholds, D] of the detections by a rule, when only annotated boxes in a range of
        areas count (a key of AREAS). By COCO's rule a detection outside the range that takes nothing is ignored, not
        false."""
        rank = self._ranking.rank
        if rule.takes == BEST:
            return match_best(pairs, rank, self._crowd)
        codes = match_free(pairs, rule.thresholds, rank, self._crowd, self._countable(area))
        codes[(codes == FALSE_POSITIVE) & ~self._detections[area]] = OUTSIDE
        return codes

    def _ap_and_recall(self, rule: BoxRule, codes: Codes, positives: Ints) -> tuple[Floats, Floats]:
        """Return (AP, recall), both [thresholds, labels]."""
        _, order, bounds = self._ranking
        by_threshold = [per_class(code[order], bounds, positives, rule.protocol) for code in codes]
        ap, recall = map(np.array, zip(*by_threshold, strict=True))
        return ap, recall

    def rows(
        self, rules: Sequence[BoxRule], settings: Settings, tags: Mapping[str, str], *, per_class: bool
    ) -> Iterator[Row]:
        """Yield rows for each metric of each rule, in percent: its mean over all labels, over persons and over objects,
        where `n` is the number of labels. If no object of the predictions has a label, only persons have values.
        per_class: also yield a row for every label (over all areas), where `n` is the number of annotated boxes."""
        measurable = self._measurable_labels()
        # masks [labels]; a mean over all labels is given only if all can be measured: `full` is empty otherwise
        subsets = {
            "full": measurable & measurable.all(),
            "persons": self._persons,
            "objects": measurable & ~self._persons,
        }
        shared = {"data": self.truth.vocabulary.signed, **self.truth.signed, **settings}
        # Records without scores of boxes: the scores of their triplets stand in, as the signature says.
        if self.numbers["records"] > self.numbers["scored"]:
            shared["boxscore"] = "triplet"
        for rule in rules:
            label_rows: list[Row] = []
            row_settings = self._settings(rule, shared)
            for metric, values, positives in self.measure(rule):
                last_keys: Row = {"unit": "%", **row_ends(rule.protocol.name, tags, row_settings)}
                if not metric.recall:
                    last_keys["note"] = INCOMPLETE
                for subset, in_subset in subsets.items():
                    subset_values = values[in_subset & (positives > 0)]
                    value = percent(subset_values.mean()) if len(subset_values) else None
                    yield result_row(metric.name, subset=subset, value=value, n=len(subset_values), **last_keys)
                if per_class and metric.area == "all":
                    label_rows += self._label_rows(metric.name, values, np.where(measurable, positives, 0), last_keys)
            yield from label_rows

    @cached_property
    def _persons(self) -> Bools:
        """A mask [labels] of the labels that a subject may have (person)."""
        return are_subjects(np.arange(self._label_count), self.truth.vocabulary)

    def _measurable_labels(self) -> Bools:
        """Return a mask [labels] of the labels that can be measured: all of them, or persons alone if the predictions
        have objects but no label for any of them, as in files of V-COCO detections."""
        detected = np.bincount(self._detections["key"] % self._label_count, minlength=self._label_count)
        objects_are_labelled = detected[~self._persons].any() or not self.numbers["unlabelled"]
        measurable: Bools = self._persons | objects_are_labelled
        return measurable

    def _settings(self, rule: BoxRule, shared: dict[str, Setting]) -> dict[str, Setting]:
        """Return what the signatures of a rule's rows state. shared: what those of all rules state."""
        row_settings = shared | caveats.settings(self.caveats & rule.protocol.depends_on)
        if rule.takes == ANY:  # it counts every box, so it states no IoU (`same`) at which boxes are one object
            row_settings.pop("same", None)
            return row_settings
        return row_settings | truth_settings(self.truth.hash_sum, self.truth.box_order_hash)

    def _label_rows(self, metric: str, values: Floats, positives: Ints, last_keys: Row) -> Iterator[Row]:
        """Yield a row for each label that has annotated boxes."""
        for label in np.flatnonzero(positives):
            subset = "persons" if self._persons[label] else "objects"
            label_keys = {"subset": subset, "object": self.truth.vocabulary.objects[label]}
            yield result_row(metric, **label_keys, value=percent(values[label]), n=int(positives[label]), **last_keys)


def evaluate_boxes(
    predictions: Stream, truth: GroundTruth, rule: BoxRule, policy: ErrorPolicy, once: Bools
) -> BoxEvaluation:
    """Read a stream of predictions, and return all of its detections, ready to be measured; notes tell what does not
    fit. rule: one that the predictions must be able to serve. once: a mask of the annotated boxes that count, of
    several for the same object one. Raises `DataError` for a bad line, and if only some records have scores of boxes.
    """
    evaluation = BoxEvaluation(truth, once)
    check_computable(truth, rule.protocol)
    check = checker(truth.vocabulary, scored=True, optional_fields=("box_scores",))  # also the optional scores of boxes
    build = partial(read_detections, vocabulary=truth.vocabulary)
    register = ImageRegister(truth.position)
    with no_garbage_collection():
        processes = predictions.processes()
        for batch in read_columns(predictions, build, check, policy, register=register, processes=processes):
            evaluation.add(batch, rule)

    # either all records state scores of their boxes, or none does
    numbers, coverage = evaluation.numbers, evaluation.coverage
    without = numbers["records"] - numbers["scored"]  # how many records have boxes, but no scores of them
    if numbers["scored"] and without:
        counted = f"{without:,} of {numbers['records']:,} records with boxes have none"
        problem = f"{counted}; give all of them scores, or none"
        raise DataError(problem, place=predictions.name, field="scores", code="mixed")

    # what the user should know of how the predictions fit the ground truth
    doubt = coverage.doubt(truth, [rule.protocol])
    equal_scores = coverage.equal_scores_question() if without else ""  # the scores of triplets stand in for boxes'
    coverage.fit.check(truth.scenes, predictions.name)
    for message in (*_notes_on_gaps(evaluation, without), doubt, equal_scores):
        if message:
            note(message)
    return evaluation


def _notes_on_gaps(evaluation: BoxEvaluation, without: int) -> Iterator[str]:
    """Yield notes on what the ground truth or the predictions lack, such as images without predictions and boxes
    without a label."""
    numbers, truth = evaluation.numbers, evaluation.truth
    if without:
        yield "no scores of boxes in the records: those of triplets count, each with its best triplet's score"
    if crowds := int(np.count_nonzero(truth.scenes.crowd)):
        yield f"{crowds:,} annotated boxes are crowds (iscrowd): ignored, as are the detections in them"
    images = len(truth.position)
    if missing := images - evaluation.coverage.numbers["images"]:
        yield f"{missing:,} of {images:,} ground-truth images have no predictions: their boxes are missed"
    if numbers["unlabelled"]:
        yield f"{numbers['unlabelled']:,} of {numbers['boxes']:,} boxes have no label: left out"
