"""Boxes as such: what a detector's labelled, scored boxes find of the annotated ones, by the rules of COCO and PASCAL
VOC, and the recall that the Diag-HOI paper prints.

Boxes are compared as recorded, with those of their label and image. A crowd's box (COCO's `iscrowd`) is ignored: it is
never missed, and what lies in it by half or more (COCO) or overlaps it most (as VOC's difficult boxes) is neither true
nor false; the paper's recall leaves it out. A label without annotated boxes is in no mean."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from hoicli.converters.named import truth_settings
from hoicli.errors import DataError
from hoicli.evaluation.box_matching import COCO_CAP, OUTSIDE, BoxPairs, Codes, match_best, match_free
from hoicli.evaluation.coverage import Coverage, choose_computable
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import FALSE_POSITIVE, OUTCOME_CODES, check_pairs, counterparts
from hoicli.evaluation.protocols import EVERY_RECALL, GRID_ARANGE, Protocol
from hoicli.evaluation.ranking import per_class, ranking
from hoicli.evaluation.scored_boxes import DetectedBoxes, detected_boxes
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

AREAS = {"all": (0.0, math.inf), "small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, math.inf)}
"""COCO's ranges of areas in pixels. What is in another range is ignored, and so is what matches it."""
COCO_IOU = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.8999999999999999, 0.95)
"""numpy.linspace(0.5, 0.95, 10), as pycocotools has it."""
GRID_HUNDREDTHS = tuple(number * 0.01 for number in range(101))
"""numpy.linspace(0, 1, 101)."""
FREE, BEST, ANY = "free", "best", "any"
"""What a detection takes, the best-scored first: the free annotated box that it overlaps most; the one that it overlaps
most, or nothing if that is taken; all that it overlaps enough."""
DRAWN_ANEW = {"hico": 0.7, "hico-det-sg": 0.7}
"""The datasets that draw an object anew for each class, with the IoU from which on two of its boxes are one: 36 % of
HICO-DET's test boxes have such a double, which a detector does not find twice (docs/commands/audit.md)."""


@dataclass(frozen=True)
class BoxMetric:
    """One metric of boxes: average precision, or recall if `recall`. threshold: the IoU that a match needs, None for
    the mean over all thresholds of the rule; area: a key of AREAS; cap: how many detections of a label count in an
    image, the best-scored first, None for all."""

    name: str
    threshold: float | None = 0.5
    recall: bool = False
    area: str = "all"
    cap: int | None = None


@dataclass(frozen=True)
class BoxRule:
    """How boxes are matched and measured. row: its name, source, IoU convention and recall grid, and the rule in words.
    takes: which annotated box a detection takes (FREE, BEST or ANY). thresholds: the IoU thresholds of its metrics."""

    row: Protocol
    takes: str
    metrics: tuple[BoxMetric, ...]
    thresholds: tuple[float, ...] = (0.5,)

    def explain(self) -> str:
        """Return the rule in words: two lines about what it does, and one with the names of its metrics."""
        metrics = ", ".join(metric.name for metric in self.metrics)
        return f"{self.row.name}: {self.row.title} ({self.row.source})\n  {self.row.remark}\n  metrics: {metrics}"


def _coco_metrics() -> tuple[BoxMetric, ...]:
    """Return the twelve metrics that `COCOeval.summarize` prints, in its order."""
    precision = partial(BoxMetric, threshold=None, cap=COCO_CAP)
    recall = partial(precision, recall=True)
    sizes = [area for area in AREAS if area != "all"]
    return (
        *(precision("AP"), precision("AP50", threshold=0.5), precision("AP75", threshold=0.75)),
        *(precision(f"AP_{area}", area=area) for area in sizes),
        *(recall(f"AR@{cap}", cap=cap) for cap in (1, 10, COCO_CAP)),
        *(recall(f"AR_{area}", area=area) for area in sizes),
    )


_VOC = (BoxMetric("AP50"), BoxMetric("recall50", recall=True))
_by_pixels = partial(Protocol, source="VOCdevkit VOCevaldet.m", inclusive=True, grid=EVERY_RECALL)
_MOST_OVERLAPPED = (
    "a detection takes the annotated box that it overlaps most, IoU >= 0.5 of boxes x2 - x1 + 1 wide, and is false if "
    "a better-scored one has taken that; AP is "
)
_RULES = (
    BoxRule(
        Protocol(
            name="coco-boxes",
            title="COCO",
            source="cocodataset/cocoapi PythonAPI/pycocotools/cocoeval.py",
            grid=GRID_HUNDREDTHS,
            remark="a detection takes the free annotated box that it overlaps most, of boxes x2 - x1 wide; at most 100 "
            "of a label and image count; AP reads 101 points; AP and AR are means over IoU 0.5, 0.55, ... 0.95",
        ),
        FREE,
        _coco_metrics(),
        COCO_IOU,
    ),
    BoxRule(
        _by_pixels("voc-boxes", "PASCAL VOC since 2010", remark=f"{_MOST_OVERLAPPED}the area under the envelope"),
        BEST,
        _VOC,
    ),
    BoxRule(
        _by_pixels("voc07-boxes", "PASCAL VOC 2007", grid=GRID_ARANGE, remark=f"{_MOST_OVERLAPPED}read at 11 points"),
        BEST,
        _VOC,
    ),
    BoxRule(
        _by_pixels(
            "diag-boxes",
            "recall of boxes as Diag-HOI prints it",
            source="the paper's section 6.7, which has no code; found as its code finds pairs",
            remark="an annotated box is found if any detection overlaps it, IoU >= 0.5 of boxes x2 - x1 + 1 wide",
        ),
        ANY,
        _VOC[1:],
    ),
)
BOX_RULES = {rule.row.name: rule for rule in _RULES}
"""The rules by name."""

_OVER_THE_CAP = OUTCOME_CODES["over_the_cap"]
_NEAR = 0.5
"""The least threshold of the rules."""
INCOMPLETE = (
    "what nobody annotated counts as false, and only what interacts is annotated: precision is not reliable "
    "(Diag-HOI, section 6.7)"
)
"""The note on rows of AP."""


def _share_within(boxes: Floats, crowds: Floats) -> Floats:
    """Return [M] the share of each box's area that is in the crowd's box beside it (both [4, M]), 0 without an area."""
    inner = np.concatenate([np.maximum(boxes[:2], crowds[:2]), np.minimum(boxes[2:], crowds[2:])])
    shared, own_area = (np.prod(np.maximum(sides[2:] - sides[:2], 0.0), axis=0) for sides in (inner, boxes))
    share: Floats = np.divide(shared, own_area, out=np.zeros(len(own_area)), where=own_area > 0)
    return share


def _within(boxes: Floats, area: str) -> Bools:
    """Return [M] whether the area of each box [M, 4] is in a range of AREAS. area: the range's key."""
    low, high = AREAS[area]
    with np.errstate(over="ignore", invalid="ignore"):
        size = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    within: Bools = (size >= low) & (size <= high)
    return within


class BoxEvaluation:
    """Gathers detections batch by batch, and then computes the metrics of any rule from all of them (`measure`).

    Kept are the detections, and the pairs of a detection and an annotated box of its image and label whose IoU is _NEAR
    or more, measured as edges or as pixels. The G annotated boxes with a label are sorted by `key`, a number for each
    image and label, and in one key by their order in the record. once [B]: whether an annotated box counts under rules
    that give a box to one detection; of boxes that repeat one object, one does."""

    def __init__(self, truth: GroundTruth, once: Bools) -> None:
        """Sort the annotated boxes by image and label, so that `add` finds those of a detection by bisection."""
        # In the columns below `row` is a detection and `mate` an annotated box; `_labels` is the number of labels.
        self.truth, self._labels, scenes = truth, len(truth.vocabulary.objects), truth.scenes
        rows = np.flatnonzero(scenes.labels >= 0)
        key = scenes.image_of_box[rows] * self._labels + scenes.labels[rows]
        order = np.argsort(key, kind="stable")
        rows, self._key = rows[order], key[order]
        self._boxes, self._label, self._once = scenes.boxes[rows], scenes.labels[rows], once[rows]
        self._crowd = scenes.crowd[rows]
        self._detections = Growing(key=np.int64, score=np.float64, **dict.fromkeys(AREAS, np.bool_))
        self._pairs = Growing(row=np.int64, mate=np.int64, edges=np.float64, pixels=np.float64)
        self.coverage, self.numbers, self.caveats = Coverage(), Counter[str](), truth.caveats

    def add(self, detected: DetectedBoxes, rule: BoxRule) -> None:
        """Add the detections of a batch of images. Raises `DataError` for scores of whole images, without boxes."""
        batch, scenes = Batch(detected.scenes, self.truth), detected.scenes
        batch.check_serves(rule.row)
        image, boxes = scenes.image_of_box[detected.row], scenes.boxes[detected.row]
        key = batch.image[image] * self._labels + scenes.labels[detected.row]
        start = np.searchsorted(self._key, key)
        count = np.searchsorted(self._key, key, side="right") - start
        check_pairs(count, image, detected.image_ids, "boxes of one label")
        for row, mate in counterparts(start, count):
            both_boxes = take_columns(boxes, row), take_columns(self._boxes, mate)
            edges, pixels = iou(*both_boxes, inclusive=False), iou(*both_boxes, inclusive=True)
            if (crowd := self._crowd[mate]).any():  # the share of the detection that lies in it, as pycocotools has it
                edges[crowd] = _share_within(*(corners[:, crowd] for corners in both_boxes))
            near = np.maximum(edges, pixels) >= _NEAR
            row += self.numbers["detections"]  # from a row of this batch to one of all detections
            self._pairs.add(row=row[near], mate=mate[near], edges=edges[near], pixels=pixels[near])
        self._detections.add(key=key, score=detected.score, **{area: _within(boxes, area) for area in AREAS})
        self.numbers += detected.numbers + Counter(detections=len(key))
        self.coverage.add(batch)
        self.caveats |= scenes.every_caveat & caveats.PREDICTIONS

    @cached_property
    def _ranking(self) -> tuple[Ints, Ints, Ints]:
        """Three columns: [D] the rank of each detection among the detections of its image and label, from 0, equal
        scores in the record's order; [D] the detections sorted by label, score and image id; [labels + 1] where the
        detections of each label begin in that order."""
        key, score = self._detections["key"], self._detections["score"]
        image, label = np.divmod(key, self._labels)
        by_id = rank_by_id(self.truth.scenes.image_ids)
        order = ranking(label, score, lambda rows: [by_id[image[rows]]])
        return ranks_in_groups(key, score), order, np.searchsorted(label[order], np.arange(self._labels + 1))

    def measure(self, rule: BoxRule) -> Iterator[tuple[BoxMetric, Floats, Ints]]:
        """Yield each metric of a rule with its value in [0, 1] and the number of annotated boxes, both [labels]."""
        if rule.takes == ANY:
            yield from self._recalls_by_any(rule)
            return
        pairs = self._near_pairs(rule, self._once | self._crowd)
        curves: dict[tuple[str, int | None], tuple[Floats, Floats]] = {}
        for area in dict.fromkeys(metric.area for metric in rule.metrics):
            codes = self._outcomes(rule, pairs, area)
            for cap in {metric.cap for metric in rule.metrics if metric.area == area}:
                curves[area, cap] = self._ap_and_recall(rule, self._within_cap(codes, cap), self._positives(area))
        for metric in rule.metrics:
            ap, recall = curves[metric.area, metric.cap]
            thresholds = slice(None) if metric.threshold is None else [rule.thresholds.index(metric.threshold)]
            yield metric, (recall if metric.recall else ap)[thresholds].mean(axis=0), self._positives(metric.area)

    def _near_pairs(self, rule: BoxRule, truth_kept: Bools) -> BoxPairs:
        """Return the pairs whose IoU, by the rule's convention, is _NEAR or more. truth_kept [G]: whether the pairs of
        an annotated box are wanted."""
        overlap = self._pairs["pixels" if rule.row.inclusive else "edges"]
        near = np.flatnonzero((overlap >= _NEAR) & truth_kept[self._pairs["mate"]])
        return BoxPairs(self._pairs["row"][near], self._pairs["mate"][near], overlap[near])

    def _countable(self, area: str) -> Bools:
        """Return [G] which annotated boxes are in a range of areas (a key of AREAS) and no crowds."""
        return _within(self._boxes, area) & ~self._crowd

    def _positives(self, area: str) -> Ints:
        """Return [labels] how many annotated boxes in a range of areas count, each object once."""
        return self._count_by_label(np.flatnonzero(self._once & self._countable(area)))

    def _count_by_label(self, annotated: Ints) -> Ints:
        """Return [labels] how many of some annotated boxes have each label."""
        return np.bincount(self._label[annotated], minlength=self._labels)

    def _recalls_by_any(self, rule: BoxRule) -> Iterator[tuple[BoxMetric, Floats, Ints]]:
        """Yield what `measure` does by a rule of recall that gives a detection all annotated boxes that it overlaps
        enough (ANY). Every annotated box counts, though it repeats an object, and crowds are left out."""
        hits = self._count_by_label(np.unique(self._near_pairs(rule, ~self._crowd).mate))
        for metric in rule.metrics:
            positives = self._count_by_label(np.flatnonzero(self._countable(metric.area)))
            yield metric, hits / np.maximum(positives, 1), positives

    def _outcomes(self, rule: BoxRule, pairs: BoxPairs, area: str) -> Codes:
        """Return [thresholds, D] the outcome codes of the detections where the annotated boxes of a range of areas
        count. A detection of another range that takes nothing is ignored, by COCO's rule, rather than false."""
        rank, crowd = self._ranking[0], self._crowd
        if rule.takes == BEST:
            return match_best(pairs, rank, crowd)
        codes = match_free(pairs, rule.thresholds, rank, crowd, self._countable(area))
        codes[(codes == FALSE_POSITIVE) & ~self._detections[area]] = OUTSIDE
        return codes

    def _within_cap(self, codes: Codes, cap: int | None) -> Codes:
        """Return the outcome codes with those of detections beyond the best `cap` of an image and label replaced."""
        return codes if cap is None else np.where(self._ranking[0] < cap, codes, _OVER_THE_CAP)

    def _ap_and_recall(self, rule: BoxRule, codes: Codes, positives: Ints) -> tuple[Floats, Floats]:
        """Return (AP, recall), both [thresholds, labels], of detections with these outcome codes [thresholds, D]."""
        _, order, bounds = self._ranking
        by_threshold = [per_class(code[order], bounds, positives, rule.row) for code in codes]
        ap, recall = map(np.array, zip(*by_threshold, strict=True))
        return ap, recall

    def rows(
        self, rules: Sequence[BoxRule], settings: Settings, tags: Mapping[str, str], *, per_class: bool
    ) -> Iterator[Row]:
        """Yield each metric of each rule in percent: its mean over all labels, over persons and over objects, where `n`
        is the number of labels. per_class: also yield the metric of every label for all areas, where `n` is the number
        of annotated boxes. Where no object of the predictions has a label, only persons have values."""
        persons, measured, numbers = self._persons, self._measured(), self.numbers
        # The mean over all labels exists only where all are measured: `full` has no member otherwise.
        subsets = {"full": measured & measured.all(), "persons": persons, "objects": measured & ~persons}
        shared = {"data": self.truth.vocabulary.signed, **self.truth.signed, **settings}
        shared |= {"boxscore": "triplet"} if numbers["records"] > numbers["scored"] else {}
        for rule in rules:
            of_labels: list[Row] = []
            row_settings = self._settings(rule, shared)
            for metric, values, positives in self.measure(rule):
                last_keys: Row = {"unit": "%", **row_ends(rule.row.name, tags, row_settings)}
                last_keys |= {} if metric.recall else {"note": INCOMPLETE}
                for subset, members in subsets.items():
                    values_here = values[members & (positives > 0)]
                    value = percent(values_here.mean()) if len(values_here) else None
                    yield result_row(metric.name, subset=subset, value=value, n=len(values_here), **last_keys)
                if per_class and metric.area == "all":
                    of_labels += self._label_rows(metric.name, values, np.where(measured, positives, 0), last_keys)
            yield from of_labels

    @cached_property
    def _persons(self) -> Bools:
        """Which labels [labels] are persons."""
        return are_subjects(np.arange(self._labels), self.truth.vocabulary)

    def _measured(self) -> Bools:
        """Return [labels] which labels can be measured: all of them, or persons alone if the predictions have objects
        but no label for any of them, as in files of V-COCO detections."""
        detected = np.bincount(self._detections["key"] % self._labels, minlength=self._labels)
        objects_are_labelled = detected[~self._persons].any() or not self.numbers["unlabelled"]
        measured: Bools = self._persons | objects_are_labelled
        return measured

    def _settings(self, rule: BoxRule, shared: dict[str, Setting]) -> dict[str, Setting]:
        """Return the settings of a rule's rows. shared: those of the rows of all rules."""
        row_settings = shared | caveats.settings(self.caveats & rule.row.depends_on)
        if rule.takes == ANY:  # it counts every annotated box, even if it repeats an object
            row_settings.pop("same", None)
            return row_settings
        return row_settings | truth_settings(self.truth.total, self.truth.order_of_boxes)

    def _label_rows(self, metric: str, values: Floats, positives: Ints, last_keys: Row) -> Iterator[Row]:
        """Yield a row for each label that has annotated boxes. values, positives [labels]: the metric of each label,
        and its number of annotated boxes; last_keys: the end of each row."""
        for label in np.flatnonzero(positives):
            subset = "persons" if self._persons[label] else "objects"
            label_keys = {"subset": subset, "object": self.truth.vocabulary.objects[label]}
            yield result_row(metric, **label_keys, value=percent(values[label]), n=int(positives[label]), **last_keys)


def evaluated_boxes(
    predictions: Stream, truth: GroundTruth, rule: BoxRule, policy: ErrorPolicy, once: Bools
) -> BoxEvaluation:
    """Return all detections of a stream of predictions, gathered for evaluation. Notes on stderr tell what does not fit
    the ground truth. rule: the rule that the predictions must be able to serve; once: as of `BoxEvaluation`. Raises
    `DataError` for a bad line, and where only some records have scores of boxes."""
    evaluation, vocabulary = BoxEvaluation(truth, once), truth.vocabulary
    choose_computable(truth, [rule.row])
    check = checker(vocabulary, scored=True, besides=("box_scores",))
    build, register = partial(detected_boxes, vocabulary=vocabulary), ImageRegister(truth.position)
    with no_garbage_collection():
        processes = predictions.processes()
        for batch in read_columns(predictions, build, check, policy, register=register, processes=processes):
            evaluation.add(batch, rule)
    numbers, coverage = evaluation.numbers, evaluation.coverage
    without = numbers["records"] - numbers["scored"]
    if numbers["scored"] and without:
        problem = (
            f"{without:,} of {numbers['records']:,} records with boxes have none; give all of them scores, or none"
        )
        raise DataError(problem, place=predictions.name, field="scores", code="mixed")
    doubt, unranked = coverage.doubt(truth, [rule.row]), coverage.equal_scores_question() if without else ""
    coverage.fit.check(truth.scenes, predictions.name)
    for message in (*_gaps(evaluation, without), doubt, unranked):
        if message:
            note(message)
    return evaluation


def _gaps(evaluation: BoxEvaluation, without: int) -> Iterator[str]:
    """Yield notes that tell what the ground truth or the predictions lack. without: the number of records without
    scores of boxes."""
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
