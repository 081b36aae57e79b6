"""Boxes as such: what a detector's labelled, scored boxes find of the annotated ones, by BOX_RULES. No Python loop runs
per box: detections of one rank, each of another image or label, are matched together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.evaluation.box_rules import ANY, AREAS, COCO_CAP, FREE, BoxMetric, BoxRule
from hoicli.evaluation.coverage import Coverage, served
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.listed import ranking
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import blocks_of, check_pairs, first_largest
from hoicli.evaluation.run import gathered, no_image_twice
from hoicli.evaluation.tally import per_class
from hoicli.io.messages import note
from hoicli.io.streams import Line, Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records import caveats
from hoicli.records.boxes import iou
from hoicli.records.columns import read_columns
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Bools, Floats, Growing, Ints, expanded, rank_by_id, run_starts
from hoicli.records.outcomes import FALSE_POSITIVE, OUTCOME_CODES, TRUE_POSITIVE
from hoicli.records.reading import checker, named_scenes, numbered_scenes, scores_by_box, stated_in_record
from hoicli.records.results import Row, percent, row_ends
from hoicli.records.scenes import Scenes, are_subjects
from hoicli.vocabulary.labels import Vocabulary

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
    """The D detections of some images: row [D] of the boxes of `scenes`, ascending, and score [D]. numbers: of records
    with boxes, scored and unscored; of boxes, and those without a label."""

    image_ids: Sequence[str]
    scenes: Scenes
    row: Ints
    score: Floats
    numbers: Counter[str]


def detected_boxes(lines: Sequence[Line], vocabulary: Vocabulary) -> DetectedBoxes:
    """The labelled boxes of the lines with the record's `scores`; of a record without, the different boxes of its
    triplets, each with their best score. Raises an exception that `columns.attempt` expects for a bad record."""
    raw = named_scenes(lines, vocabulary, scored=True, of_image=("scores",))
    scenes = numbered_scenes(raw, vocabulary, scored=True)
    score, own = scores_by_box(raw, scenes), stated_in_record(scenes.hoi_start, np.diff(raw.hoi_start))
    without, best = np.isnan(score), np.full(len(score), -np.inf)
    for end in (scenes.subject, scenes.object):
        of_triplets = np.flatnonzero(own & (end >= 0))
        np.maximum.at(best, end[of_triplets], scenes.score[of_triplets])
    score = np.where(without, best, score)
    counts = np.isfinite(score) & (scenes.labels >= 0)
    alike = np.flatnonzero(counts & without)
    boxes = np.column_stack([scenes.image_of_box[alike], scenes.labels[alike], scenes.boxes[alike]])
    order = np.lexsort((-score[alike], *boxes.T))
    counts[alike[order[1:][(boxes[order[1:]] == boxes[order[:-1]]).all(axis=1)]]] = False
    given = [
        scores is not None for scores, count in zip(raw.each("scores"), np.diff(raw.box_start), strict=True) if count
    ]
    unlabelled = int((np.isfinite(score) & (scenes.labels < 0)).sum())
    numbers = Counter(scored=sum(given), unscored=len(given) - sum(given), boxes=len(score), unlabelled=unlabelled)
    row = np.flatnonzero(counts)
    return DetectedBoxes(scenes.image_ids, scenes, row, score[row], numbers)


class TruthBoxes:
    """The G annotated boxes with a label, by image and label, then in the order of the record: boxes [G, 4], label [G];
    key [G], ascending, is a number for each image and label. once [G]: whether a rule that gives a box to one detection
    counts it, where boxes repeat others."""

    def __init__(self, truth: GroundTruth, once: Bools) -> None:
        self.truth, scenes = truth, truth.scenes
        rows = np.flatnonzero(scenes.labels >= 0)
        key = self.key_of(scenes.image_of_box[rows], scenes.labels[rows])
        order = np.argsort(key, kind="stable")
        rows, self.key = rows[order], key[order]
        self.boxes, self.label, self.once = scenes.boxes[rows], scenes.labels[rows], once[rows]

    def key_of(self, image: Ints, label: Ints) -> Ints:
        """The number of each image and label."""
        return image * len(self.truth.vocabulary.objects) + label


class BoxColumns:
    """The detections of images, in any order, and the annotated boxes that each overlaps by _NEAR or more as edges or
    as pixels."""

    def __init__(self) -> None:
        self.image_ids: list[str] = []
        self.detections = Growing(key=np.int64, score=np.float64, size=np.float64)
        self.pairs = Growing(row=np.int64, mate=np.int64, edges=np.float64, pixels=np.float64)
        self.coverage, self.numbers, self.caveats = Coverage(), Counter[str](), 0

    def add(self, found: DetectedBoxes, truth: TruthBoxes, rule: BoxRule) -> None:
        """Add the detections of a batch of images. Raises `DataError` for what has no boxes, as a `rule` needs."""
        batch, scenes = Batch(found.scenes, truth.truth), found.scenes
        batch.check_serves(rule.row)
        image, boxes = scenes.image_of_box[found.row], scenes.boxes[found.row]
        key = truth.key_of(batch.image[image], scenes.labels[found.row])
        start = np.searchsorted(truth.key, key)
        count = np.searchsorted(truth.key, key, side="right") - start
        check_pairs(count, image, found.image_ids, "boxes of one label")
        for part in blocks_of(count):
            row, mate = expanded(start[part], count[part])
            row += part.start
            sides = boxes[row].T, truth.boxes[mate].T
            edges, pixels = iou(*sides, inclusive=False), iou(*sides, inclusive=True)
            near = np.maximum(edges, pixels) >= _NEAR
            columns = {"mate": mate[near], "edges": edges[near], "pixels": pixels[near]}
            self.pairs.add(row=row[near] + self.numbers["detections"], **columns)
        self.detections.add(key=key, score=found.score, size=_size(boxes))
        self.numbers += found.numbers + Counter(detections=len(key))
        self.image_ids += found.image_ids
        self.coverage.add(batch)
        self.caveats |= scenes.every_caveat & caveats.PREDICTIONS

    def merge(self, other: BoxColumns) -> None:
        """Add what was gathered of other images."""
        pairs = {name: other.pairs[name] for name in other.pairs.names}
        self.pairs.add(**{**pairs, "row": pairs["row"] + self.numbers["detections"]})
        self.detections.merge(other.detections)
        self.coverage.merge(other.coverage)
        self.numbers += other.numbers
        self.image_ids += other.image_ids
        self.caveats |= other.caveats


def _size(boxes: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        size: Floats = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    return size


def _within(size: Floats, area: str) -> Bools:
    low, high = AREAS[area]
    within: Bools = (size >= low) & (size <= high)
    return within


class MeasuredBoxes:
    """What all detections give. place [D]: the rank of each among those of its image and label, from 0, ties by the
    record's order. order [D]: by label, then score, then image id; those of label c begin at bounds[c]."""

    def __init__(self, found: BoxColumns, truth: TruthBoxes) -> None:
        self._found, self._truth, self._labels = found, truth, len(truth.truth.vocabulary.objects)
        key, score = found.detections["key"], found.detections["score"]
        (image, label), by_id = np.divmod(key, self._labels), rank_by_id(truth.truth.scenes.image_ids)
        best = np.lexsort((-score, key))
        first = run_starts(key[best])
        self._place = np.empty(len(key), dtype=np.int64)
        self._place[best] = np.arange(len(key)) - np.repeat(first, np.diff(np.r_[first, len(key)]))
        self._order = ranking(label, score, lambda: np.argsort(by_id[image], kind="stable"))
        self._bounds = np.searchsorted(label[self._order], np.arange(self._labels + 1))
        objects = ~are_subjects(label, truth.truth.vocabulary)
        self.knows_objects = not found.numbers["unlabelled"] or bool(objects.any())

    def of(self, rule: BoxRule) -> Iterator[tuple[BoxMetric, Floats, Ints]]:
        """Each metric of a rule: its value in [0, 1] and the number of annotated boxes, both [labels]."""
        pairs, sizes, labels = self._found.pairs, _size(self._truth.boxes), self._truth.label
        counts = self._truth.once | (rule.takes == ANY)
        overlap = pairs["pixels" if rule.row.inclusive else "edges"]
        near = np.flatnonzero((overlap >= _NEAR) & counts[pairs["mate"]])
        joined = pairs["row"][near], pairs["mate"][near], overlap[near]
        found: dict[tuple[str, int | None], tuple[Floats, Floats, Ints]] = {}
        for area in dict.fromkeys(metric.area for metric in rule.metrics):
            positives = np.bincount(labels[counts & _within(sizes, area)], minlength=self._labels)
            codes = self._codes(rule, *joined, area)
            for cap in {metric.cap for metric in rule.metrics if metric.area == area}:
                counted = codes if cap is None else np.where(self._place < cap, codes, _OVER_THE_CAP)
                each = [per_class(code[self._order], self._bounds, positives, rule.row) for code in counted]
                ap, recall = map(np.array, zip(*each, strict=True))
                found[area, cap] = ap, recall, positives
        for metric in rule.metrics:
            ap, recall, positives = found[metric.area, metric.cap]
            if rule.takes == ANY:
                hits = np.bincount(labels[np.unique(joined[1])], minlength=self._labels)
                recall = (hits / np.maximum(positives, 1))[np.newaxis]
            at = slice(None) if metric.threshold is None else [rule.thresholds.index(metric.threshold)]
            yield metric, (recall if metric.recall else ap)[at].mean(axis=0), positives

    def _codes(self, rule: BoxRule, row: Ints, mate: Ints, overlap: Floats, area: str) -> Codes:
        """[thresholds, D] the outcome of each detection."""
        if rule.takes == FREE:
            codes = self._taken(rule, row, mate, overlap, _within(_size(self._truth.boxes), area)[mate])
            outside = ~_within(self._found.detections["size"], area)
            return np.where(outside & (codes == FALSE_POSITIVE), np.uint8(_OUTSIDE), codes)
        best = first_largest(row, overlap)
        order = best[np.lexsort((self._place[row[best]], mate[best]))]
        codes = np.full((1, len(self._place)), FALSE_POSITIVE, dtype=np.uint8)
        codes[0, row[order[run_starts(mate[order])]]] = TRUE_POSITIVE
        return codes

    def _taken(self, rule: BoxRule, row: Ints, mate: Ints, overlap: Floats, inside: Bools) -> Codes:
        """[thresholds, D] the outcomes where each detection, the best first, takes one of the free annotated boxes:
        rather one `inside` the area than one that is ignored, the most overlapped, of equals the last (`evaluateImg`).
        """
        many, rank = len(row), np.empty(len(row), dtype=np.int64)
        rank[np.lexsort((mate, overlap))] = np.arange(many)
        pair_of, wish = np.argsort(rank), rank + many * inside
        enough = overlap >= np.minimum(rule.thresholds, _CERTAIN)[:, np.newaxis]
        free = np.ones((len(rule.thresholds), len(self._truth.key)), dtype=bool)
        codes = np.full((len(rule.thresholds), len(self._place)), FALSE_POSITIVE, dtype=np.uint8)
        turn = self._place[row]
        order = np.argsort(turn, kind="stable")
        order = order[turn[order] < COCO_CAP]
        for part in np.split(order, run_starts(turn[order])[1:]) if len(order) else ():
            first = run_starts(row[part])
            wishes = np.where(enough[:, part] & free[:, mate[part]], wish[part], -1)
            best = np.maximum.reduceat(wishes, first, axis=1)
            at, number = np.nonzero(best >= 0)
            chosen = best[at, number]
            free[at, mate[pair_of[chosen % many]]] = False
            codes[at, row[part[first[number]]]] = np.where(chosen >= many, TRUE_POSITIVE, _OUTSIDE)
        return codes


def tally_boxes(
    predictions: Stream, truth: GroundTruth, rules: Sequence[BoxRule], policy: ErrorPolicy, once: Bools
) -> tuple[MeasuredBoxes, dict[str, str]]:
    """What the boxes of all predictions give, and the settings of signatures; what does not fit is said on stderr.
    once [B]: see `TruthBoxes`. Raises `DataError` for a bad line, and where only some records have scores of boxes."""
    boxes, vocabulary = TruthBoxes(truth, once), truth.vocabulary
    served(truth, [rules[0].row])

    def gather(lines: Iterable[Line], shared: ErrorPolicy) -> BoxColumns:
        found, build = BoxColumns(), partial(detected_boxes, vocabulary=vocabulary)
        check, register = checker(vocabulary, scored=True, besides=("box_scores",)), ImageRegister(truth.position)
        with no_garbage_collection():
            for batch in read_columns(lines, build, check, shared, register=register):
                found.add(batch, boxes, rules[0])
        return found

    parts = gathered(gather, predictions, policy, lambda parts: no_image_twice(part.image_ids for part in parts))
    for other in parts[1:]:
        parts[0].merge(other)
    found, numbers = parts[0], parts[0].numbers
    if numbers["scored"] and numbers["unscored"]:
        records = numbers["scored"] + numbers["unscored"]
        problem = (
            f"{numbers['unscored']:,} of {records:,} records with boxes have none; give all of them scores, or none"
        )
        raise DataError(problem, place=predictions.name, field="scores", code="mixed")
    question = found.coverage.doubt(truth, [rules[0].row])
    found.coverage.inverted.report(predictions.name)
    if numbers["unscored"]:
        note("no scores of boxes in the records: those of triplets count, each with its best triplet's score")
    if numbers["unlabelled"]:
        note(f"{numbers['unlabelled']:,} of {numbers['boxes']:,} predicted boxes have no label: left out")
    if missing := len(truth.position) - len(found.image_ids):
        note(f"{missing:,} of {len(truth.position):,} ground-truth images have no predictions: their boxes are missed")
    if question:
        note(question)
    stand_in = {"boxscore": "triplet"} if numbers["unscored"] else {}
    noted = caveats.settings((found.caveats | truth.caveats) & rules[0].row.depends_on)
    return MeasuredBoxes(found, boxes), {"data": vocabulary.signed, **truth.signed, **stand_in, **noted}


def box_rows(
    measured: MeasuredBoxes,
    rules: Sequence[BoxRule],
    vocabulary: Vocabulary,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
    *,
    per_class: bool,
) -> Iterator[Row]:
    """Each metric of each rule in percent: its mean over all labels, persons and objects, with the number of labels;
    per_class: then those of every label, for all areas, with the number of annotated boxes."""
    persons = are_subjects(np.arange(len(vocabulary.objects)), vocabulary)
    every = np.full(len(persons), measured.knows_objects)
    subsets = {"full": every, "persons": persons, "objects": every & ~persons}
    for rule in rules:
        of_labels: list[Row] = []
        signed = {key: value for key, value in settings.items() if key != "same" or rule.takes != ANY}
        for metric, values, positives in measured.of(rule):
            ends: Row = {"unit": "%", **row_ends(rule.row.name, tags, signed)}
            ends |= {} if metric.recall else {"note": INCOMPLETE}
            for subset, members in subsets.items():
                found = values[members & (positives > 0)]
                value = percent(found.mean()) if len(found) else None
                yield {"metric": metric.name, "subset": subset, "value": value, "n": len(found), **ends}
            for label in (
                np.flatnonzero((every | persons) & (positives > 0)) if per_class and metric.area == "all" else ()
            ):
                subset = "persons" if persons[label] else "objects"
                row: Row = {"metric": metric.name, "subset": subset, "object": vocabulary.objects[label]}
                of_labels.append(row | {"value": percent(values[label]), "n": int(positives[label]), **ends})
        yield from of_labels
