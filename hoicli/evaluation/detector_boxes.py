"""Boxes as such: what a detector's labelled, scored boxes find of the annotated ones, by the rules of COCO and PASCAL
VOC, and the recall that the Diag-HOI paper prints.

Boxes are compared as recorded, with those of their label and image. A crowd's box (COCO's `iscrowd`) is ignored: it is
never missed, and what lies in it by half or more (COCO) or overlaps it most (as VOC's difficult boxes) is neither true
nor false; the paper's recall leaves it out. A label without annotated boxes is in no mean. No Python loop runs per box:
detections of one rank, each of another image or label, are matched together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.named import truth_settings
from hoicli.errors import DataError
from hoicli.evaluation.coverage import Coverage, choose_computable
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import (
    FALSE_POSITIVE,
    OUTCOME_CODES,
    TRUE_POSITIVE,
    check_pairs,
    counterparts,
    first_largest,
)
from hoicli.evaluation.protocols import EVERY_RECALL, GRID_ARANGE, Protocol
from hoicli.evaluation.ranking import per_class, ranking
from hoicli.io.messages import note
from hoicli.io.streams import Line, Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records import caveats
from hoicli.records.boxes import iou, take_columns
from hoicli.records.columns import read_columns
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Bools, Floats, Growing, Ints, rank_by_id, ranks_in_groups, run_starts
from hoicli.records.reading import checker, named_scenes, numbered_scenes, scores_by_box, stated_in_record
from hoicli.records.result_rows import Row, Settings, percent, result_row, row_ends
from hoicli.records.scenes import Scenes, are_subjects
from hoicli.vocabulary.labels import Vocabulary

AREAS = {"all": (0.0, math.inf), "small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, math.inf)}
"""COCO's ranges of areas in pixels. What is in another range is ignored, and so is what matches it."""
COCO_IOU = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.8999999999999999, 0.95)
"""numpy.linspace(0.5, 0.95, 10), as pycocotools has it."""
COCO_CAP = 100
"""The most detections of an image and label."""
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

Codes = NDArray[np.uint8]
_OUTSIDE, _OVER_THE_CAP = OUTCOME_CODES["outside_slice"], OUTCOME_CODES["over_the_cap"]
_NEAR, _CERTAIN = 0.5, 1 - 1e-10
"""The least threshold of the rules, and pycocotools' largest."""
INCOMPLETE = (
    "what nobody annotated counts as false, and only what interacts is annotated: precision is not reliable "
    "(Diag-HOI, section 6.7)"
)
"""The note on rows of AP."""


@dataclass(frozen=True)
class DetectedBoxes:
    """The D detections of some images. row [D]: the box of each detection, an index into the boxes of `scenes`,
    ascending; score [D]: its score. numbers: how many `records` have boxes, and how many of them are `scored` (state
    scores of boxes); how many `boxes` have a score, and how many of them are `unlabelled` and so left out."""

    image_ids: Sequence[str]
    scenes: Scenes
    row: Ints
    score: Floats
    numbers: Counter[str]


def detected_boxes(lines: Sequence[Line], vocabulary: Vocabulary) -> DetectedBoxes:
    """Return the labelled boxes of some prediction lines as detections. A box has the score that its record's `scores`
    states. In a record without `scores`, a box has the best score of the triplets that name it, boxes that no triplet
    names are left out, and of boxes with equal label and corners only the best-scored stays. Raises an exception that
    `columns.attempt` expects for a bad record."""
    raw = named_scenes(lines, vocabulary, scored=True, of_image=("scores",))
    scenes = numbered_scenes(raw, vocabulary, scored=True)
    score, stated = scores_by_box(raw, scenes), stated_in_record(scenes.hoi_start, np.diff(raw.hoi_start))
    without_score, best_of_triplets = np.isnan(score), np.full(len(score), -np.inf)
    for box_of_triplet in (scenes.subject, scenes.object):
        triplets = np.flatnonzero(stated & (box_of_triplet >= 0))
        np.maximum.at(best_of_triplets, box_of_triplet[triplets], scenes.score[triplets])
    score = np.where(without_score, best_of_triplets, score)
    counts, labelled = np.isfinite(score), scenes.labels >= 0
    # Sorted by image, label and corners, then score: a box that equals its predecessor repeats a better-scored one.
    candidates = np.flatnonzero(counts & without_score)
    boxes = np.column_stack([scenes.image_of_box[candidates], scenes.labels[candidates], scenes.boxes[candidates]])
    order = np.lexsort((-score[candidates], *boxes.T))
    repeats_previous = (boxes[order[1:]] == boxes[order[:-1]]).all(axis=1)
    counts[candidates[order[1:][repeats_previous]]] = False
    scored = np.array([scores is not None for scores in raw.each("scores")], dtype=bool)
    has_boxes, row = np.diff(raw.box_start) > 0, np.flatnonzero(counts & labelled)
    numbers = Counter(records=has_boxes.sum(), scored=(has_boxes & scored).sum(), boxes=counts.sum())
    numbers["unlabelled"] = (counts & ~labelled).sum()
    return DetectedBoxes(scenes.image_ids, scenes, row, score[row], numbers)


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
        # In these columns `row` is a detection and `mate` an annotated box; `_labels` is the number of labels.
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
        rank, order, bounds = self._ranking
        # Under ANY every annotated box counts, and crowds are left out. Under the other rules boxes that repeat an
        # object are left out, and crowds stay, so that the detections in them can be ignored.
        counts, overlap = self._once | (rule.takes == ANY), self._pairs["pixels" if rule.row.inclusive else "edges"]
        truth_kept = counts & ~self._crowd if rule.takes == ANY else counts | self._crowd
        near = np.flatnonzero((overlap >= _NEAR) & truth_kept[self._pairs["mate"]])
        row, mate, overlap = self._pairs["row"][near], self._pairs["mate"][near], overlap[near]
        values_of: dict[tuple[str, int | None], tuple[Floats, Floats, Ints]] = {}
        for area in dict.fromkeys(metric.area for metric in rule.metrics):
            inside = _within(self._boxes, area) & ~self._crowd
            positives = np.bincount(self._label[counts & inside], minlength=self._labels)
            if rule.takes == FREE:
                codes = self._match_detections(rule, row, mate, overlap, inside)
                codes[(codes == FALSE_POSITIVE) & ~self._detections[area]] = _OUTSIDE
            else:
                best = first_largest(row, overlap)
                best = best[np.lexsort((rank[row[best]], mate[best]))]  # by annotated box, the best-scored claim first
                codes = np.full((1, len(rank)), FALSE_POSITIVE, dtype=np.uint8)
                codes[0, row[best[run_starts(mate[best])]]] = TRUE_POSITIVE
                codes[0, row[best[self._crowd[mate[best]]]]] = _OUTSIDE
            for cap in {metric.cap for metric in rule.metrics if metric.area == area}:
                counted = codes if cap is None else np.where(rank < cap, codes, _OVER_THE_CAP)
                by_threshold = [per_class(code[order], bounds, positives, rule.row) for code in counted]
                ap, recall = map(np.array, zip(*by_threshold, strict=True))
                if rule.takes == ANY:
                    hits = np.bincount(self._label[np.unique(mate)], minlength=self._labels)
                    recall = (hits / np.maximum(positives, 1))[np.newaxis]
                values_of[area, cap] = ap, recall, positives
        for metric in rule.metrics:
            ap, recall, positives = values_of[metric.area, metric.cap]
            chosen = slice(None) if metric.threshold is None else [rule.thresholds.index(metric.threshold)]
            yield metric, (recall if metric.recall else ap)[chosen].mean(axis=0), positives

    def _match_detections(self, rule: BoxRule, row: Ints, mate: Ints, overlap: Floats, inside: Bools) -> Codes:
        """Return [thresholds, D] the outcome codes of pycocotools' greedy matching (`COCOeval.evaluateImg`).

        The detections of an image and label choose in the order of their scores. Each takes the annotated box that it
        overlaps most of those still free, a counted box before an ignored one, and the last of equally overlapped ones.
        row, mate, overlap: the pairs of a detection and an annotated box, with their overlap; inside [G]: whether an
        annotated box counts (not a crowd, and in the range of areas) rather than being ignored."""
        # A pair's wish is a number that orders pairs by preference: its place by overlap, and `pairs` more if its box
        # counts. So the largest wish is the pair to choose, and `wish % pairs` and `wish >= pairs` tell what it is.
        pairs, rank_of_pair, place = len(row), self._ranking[0][row], np.empty(len(row), dtype=np.int64)
        place[np.lexsort((mate, overlap))] = np.arange(pairs)
        pair_at_place, wish = np.argsort(place), place + pairs * inside[mate]
        enough = overlap >= np.minimum(rule.thresholds, _CERTAIN)[:, np.newaxis]
        free = np.ones((len(rule.thresholds), len(self._key)), dtype=bool)
        codes = np.full((len(rule.thresholds), len(self._ranking[0])), FALSE_POSITIVE, dtype=np.uint8)
        order = np.argsort(rank_of_pair, kind="stable")
        order = order[rank_of_pair[order] < COCO_CAP]
        for pairs_of_rank in np.split(order, run_starts(rank_of_pair[order])[1:]) if len(order) else ():
            first = run_starts(row[pairs_of_rank])
            wishes = np.where(enough[:, pairs_of_rank] & free[:, mate[pairs_of_rank]], wish[pairs_of_rank], -1)
            best_wish = np.maximum.reduceat(wishes, first, axis=1)
            threshold, detection = np.nonzero(best_wish >= 0)
            chosen = best_wish[threshold, detection]
            taken = mate[pair_at_place[chosen % pairs]]
            free[threshold, taken] = self._crowd[taken]  # a crowd has room for all
            outcome = np.where(chosen >= pairs, TRUE_POSITIVE, _OUTSIDE)
            codes[threshold, row[pairs_of_rank[first[detection]]]] = outcome
        return codes

    def rows(
        self, rules: Sequence[BoxRule], settings: Settings, tags: Mapping[str, str], *, per_class: bool
    ) -> Iterator[Row]:
        """Yield each metric of each rule in percent: its mean over all labels, over persons and over objects, where `n`
        is the number of labels. per_class: also yield the metric of every label for all areas, where `n` is the number
        of annotated boxes. Where no object of the predictions has a label, only persons have values."""
        vocabulary, numbers = self.truth.vocabulary, self.numbers
        persons = are_subjects(np.arange(self._labels), vocabulary)
        labelled = np.bincount(self._detections["key"] % self._labels, minlength=self._labels)
        objects_have_labels = labelled[~persons].any() or not numbers["unlabelled"]
        measured = persons | objects_have_labels
        # The mean over all labels exists only where all are measured: `full` has no member otherwise.
        subsets = {"full": measured & measured.all(), "persons": persons, "objects": measured & ~persons}
        shared = {"data": vocabulary.signed, **self.truth.signed, **settings}
        shared |= {"boxscore": "triplet"} if numbers["records"] > numbers["scored"] else {}
        for rule in rules:
            of_labels: list[Row] = []
            of_rule = shared | caveats.settings(self.caveats & rule.row.depends_on)
            if rule.takes == ANY:
                of_rule.pop("same", None)
            else:
                of_rule |= truth_settings(self.truth.total, self.truth.order_of_boxes)
            for metric, values, positives in self.measure(rule):
                last_keys: Row = {"unit": "%", **row_ends(rule.row.name, tags, of_rule)}
                last_keys |= {} if metric.recall else {"note": INCOMPLETE}
                for subset, members in subsets.items():
                    values_here = values[members & (positives > 0)]
                    value = percent(values_here.mean()) if len(values_here) else None
                    yield result_row(metric.name, subset=subset, value=value, n=len(values_here), **last_keys)
                for label in np.flatnonzero(measured & (positives > 0)) if per_class and metric.area == "all" else ():
                    subset = "persons" if persons[label] else "objects"
                    named = {"subset": subset, "object": vocabulary.objects[label]}
                    value, n = percent(values[label]), int(positives[label])
                    of_labels.append(result_row(metric.name, **named, value=value, n=n, **last_keys))
            yield from of_labels


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
    crowds = int(np.count_nonzero(truth.scenes.crowd))
    question, unranked = coverage.doubt(truth, [rule.row]), coverage.equal_scores_question() if without else ""
    coverage.fit.check(truth.scenes, predictions.name)
    missing, images = len(truth.position) - coverage.numbers["images"], len(truth.position)
    for applies, message in (
        (without, "no scores of boxes in the records: those of triplets count, each with its best triplet's score"),
        (crowds, f"{crowds:,} annotated boxes are crowds (iscrowd): ignored, as are the detections in them"),
        (missing, f"{missing:,} of {images:,} ground-truth images have no predictions: their boxes are missed"),
        (numbers["unlabelled"], f"{numbers['unlabelled']:,} of {numbers['boxes']:,} boxes have no label: left out"),
        (question, question),
        (unranked, unranked),
    ):
        if applies:
            note(message)
    return evaluation
