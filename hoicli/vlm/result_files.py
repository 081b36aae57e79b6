"""Result files of hoi-benchmarks (SIT-AIGCDesignLab), as its scripts save them, a list of rows or JSON lines; and which
of the pairs in them are found (grounding).

Grounding: the pairs asked for (`gt_pairs`, or `ground_truth_pairs` of the scripts that ask at once) and those predicted
(`predicted_pairs`, `pred_pairs`, `pairs`), a pair being `person_bbox` and `object_bbox`, or `person_box` and
`object_box`. Referring: `ground_truth` and `prediction`, two phrases.

Average recall (AR) is that of recalculate_ground_metrics.py (commit 78ab063) and of its batch scripts: predicted pairs,
in their order, take the free true pair that they overlap most, if the mean of the two IoUs is at least the threshold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import Any, TypeVar

import numpy as np
import orjson

from hoicli.converters.containers.source import Source
from hoicli.converters.vlm.answer_rows import iterate_list, parsed_lines
from hoicli.errors import DataError
from hoicli.evaluation.box_rules import AREAS
from hoicli.evaluation.pairing import first_largest
from hoicli.io.messages import note
from hoicli.records.boxes import iou
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Floats, Ints, expand_runs, run_starts, runs_of, starts_of
from hoicli.records.parsing import short
from hoicli.vlm.bank import box_of
from hoicli.vlm.task_scores import Measured, Shares

TRUTH_KEYS = ("gt_pairs", "ground_truth_pairs")
FOUND_KEYS = ("predicted_pairs", "pred_pairs", "pairs")
_PHRASE_KEYS = ("prediction", "predicted_action")
_DENYING = frozenset({"present", "not_present", "absent", "exists", "interacting"})
"""Keys by which a model may say that what it lists is not there: a list holds what is."""
_IMAGE_KEYS = ("file_name", "image_path", "image_id", "custom_id")
THRESHOLDS: Floats = np.arange(50, 100, 5) / 100
RELEASED_THRESHOLDS: Floats = np.arange(0.5, 1.0, 0.05)
"""The IoU thresholds of AR. The released ones are a little more: an IoU of exactly 0.75 is below 0.7500000000000002."""
SIZES = {size: bounds for size, bounds in AREAS.items() if size != "all"}
"""For each size, the least area of the true pair's object in pixels, and the first area that is too large."""
_TESTED = 500
"""How many questions are looked at to find the scale of the boxes."""

Box = tuple[float, ...]
Pair = tuple[Box, Box]
"""The person's box and the other one's, [x1, y1, x2, y2] in pixels."""


@dataclass(frozen=True, order=True)
class Grounding:
    """The answer to a question for all pairs of an interaction in an image. truth: the true pairs; predicted: the
    predicted pairs in their order; failed: whether the request to the model failed."""

    image: str
    truth: tuple[Pair, ...]
    predicted: tuple[Pair, ...]
    failed: bool = False


@dataclass(frozen=True, order=True)
class Referring:
    """The answer to a question for what a pair does. truth: the true phrase; answer: the predicted one, "" for none;
    failed: whether the request to the model failed."""

    image: str
    truth: str
    answer: str
    failed: bool = False


@dataclass
class Oddities:
    """What is odd about some answers. counts: {oddity in words: (how often it occurs, the first place)}."""

    counts: dict[str, tuple[int, str]] = field(default_factory=dict)

    def count(self, what: str, place: str, more: int = 1) -> None:
        """Count an oddity, `more` times; what: the oddity in words; place: where the first of these is."""
        times, first = self.counts.get(what, (0, place))
        self.counts[what] = times + more, first

    def report(self) -> None:
        """Print a note about each oddity."""
        for what, (times, first) in self.counts.items():
            note(f"{what}: {times:,} (the first: {first})")


T = TypeVar("T", Grounding, Referring)


def read_results(
    sources: Sequence[Source], policy: ErrorPolicy, read: Callable[[Mapping[str, Any], str, Oddities], T]
) -> list[T]:
    """Return the rows of result files, sorted, and tell the user what is odd about them. read: `grounding` or
    `referring`, which makes an object of a row. Raises `DataError` for a row that is not of this kind, for a file that
    is given twice, and for files without a row."""
    results: list[T] = []
    odd = Oddities()
    path_of_content: dict[bytes, str] = {}
    for source in sources:
        digest = hashlib.sha256(source.data).digest()
        if digest in path_of_content:
            raise DataError(f"the same content as {path_of_content[digest]}; give each file once", place=source.path)
        path_of_content[digest] = source.path
        for place, row in _rows(source, policy):
            with policy.item(place):
                results.append(read(_check_row(row), place, odd))
    if not results:
        names = ", ".join(source.path for source in sources)
        raise DataError("no results in it; give files that hoi-benchmarks' scripts saved", place=names, code="empty")
    odd.report()
    return sorted(results)


def _check_row(row: Any) -> Mapping[str, Any]:
    """Return the row itself; raises `DataError` if it is no object, or has a key by which it may deny what it says."""
    if not isinstance(row, dict):
        raise DataError(f"{short(row)} is no row of results; a row is an object")
    _check_no_denial(row)
    return row


def _check_no_denial(item: Mapping[str, Any], field: str = "") -> None:
    """Raise `DataError` if a row or a pair has a key that may say that the thing is not there, such as "not_present".
    field: where a pair stands in its row, "" for a row."""
    for key in sorted(_DENYING & item.keys()):
        raise DataError("is not read; leave out what is not there", field=f"{field}.{key}" if field else key)


def _rows(source: Source, policy: ErrorPolicy) -> Iterable[tuple[str, Any]]:
    """Return (place, row) for each row of a file: a list, JSON lines, or an object with a list under `results`."""
    if source.is_list:
        return iterate_list(source, policy)
    first = source.first_line()
    whole = source.mapping if first is None else first
    if isinstance(whole, dict) and isinstance(whole.get("results"), list):
        return ((f"{source.name}: results[{index}]", item) for index, item in enumerate(whole["results"]))
    return parsed_lines(source, policy)


def task_in(source: Source) -> str | None:
    """Return the task of a file, "ground" or "refer", by the keys of its first row; None if these do not tell."""
    row = next((row for _, row in _rows(source, ErrorPolicy(skip=True))), None)
    keys = row.keys() if isinstance(row, dict) else set()
    if keys & set(TRUTH_KEYS):
        return "ground"
    return "refer" if {"ground_truth", "prediction"} <= keys else None


def grounding(row: Mapping[str, Any], place: str, odd: Oddities) -> Grounding:
    """Make a `Grounding` of a row, and count what is odd about its answer in `odd`. place: where the row is. Raises
    `DataError` for a row without true or without predicted pairs."""
    truth_key = _first_value(row, TRUTH_KEYS, "which pairs there are")
    pairs = _pairs(row, truth_key)
    if None in pairs:
        raise DataError("has no person_bbox or no object_bbox", field=f"{truth_key}[{pairs.index(None)}]")
    truth = tuple(filter(None, pairs))
    if not truth:
        odd.count("questions without a pair to find, left out of the means", place)
    if failed := _is_failed(row, place, odd):
        return Grounding(_image(row), truth, (), failed)
    predicted = _pairs(row, _first_value(row, FOUND_KEYS, "which pairs were found, [] for none"))
    if None in predicted:
        odd.count("predicted pairs without one of the boxes, which find nothing", place, predicted.count(None))
    return Grounding(_image(row), truth, tuple(filter(None, predicted)))


def _first_value(row: Mapping[str, Any], keys: Sequence[str], meaning: str) -> str:
    """Return the first of the keys that a row has; raises `DataError` if it has none. meaning: what the value says."""
    key = next((key for key in keys if key in row), None)
    if key is None:
        raise DataError(f"missing ({' or '.join(keys)}); the row says {meaning}", field=keys[0])
    return key


def _pairs(row: Mapping[str, Any], key: str) -> list[Pair | None]:
    """Return the pairs (person's box, object's box) in the list under a key of a row, None for a pair with a missing or
    empty box. Raises `DataError` for anything else."""
    if not isinstance(row[key], list):
        raise DataError(f"{short(row[key])} is no list of pairs", field=key)
    pairs: list[Pair | None] = []
    for index, pair in enumerate(row[key]):
        field = f"{key}[{index}]"
        if not isinstance(pair, dict):
            raise DataError(f"{short(pair)} is no pair; one has person_bbox and object_bbox", field=field)
        _check_no_denial(pair, field)
        person, object_ = (f"{side}_bbox" if f"{side}_bbox" in pair else f"{side}_box" for side in ("person", "object"))
        if pair.get(person) in (None, []) or pair.get(object_) in (None, []):
            pairs.append(None)
        else:
            pairs.append((box_of(pair[person], f"{field}.{person}"), box_of(pair[object_], f"{field}.{object_}")))
    return pairs


def referring(row: Mapping[str, Any], place: str, odd: Oddities) -> Referring:
    """Make a `Referring` of a row, and count what is odd about its answer in `odd`. place: where the row is. Raises
    `DataError` if one of the phrases is no text, or the true one is missing."""
    truth, answer = row.get("ground_truth"), next((row[key] for key in _PHRASE_KEYS if key in row), None)
    if not isinstance(truth, str) or not truth.strip():
        raise DataError(f"{short(truth)} is no phrase; the row says what the pair does", field="ground_truth")
    if answer is not None and not isinstance(answer, str):
        raise DataError(f"{short(answer)} is no phrase", field="prediction")
    failed = _is_failed(row, place, odd)
    if not failed and not (answer or "").strip():
        odd.count("empty answers", place)
    return Referring(_image(row), truth, "" if failed else answer or "", failed)


def _is_failed(row: Mapping[str, Any], place: str, odd: Oddities) -> bool:
    """Return whether a row says that the request to the model failed, and count that in `odd`."""
    failed = "status" in row and row["status"] != "success"
    if failed:
        odd.count("requests that failed, which count as empty answers", place)
    return failed


def _image(row: Mapping[str, Any]) -> str:
    """Return the image that a row names; raises `DataError` if it names none."""
    name = next((row[key] for key in _IMAGE_KEYS if type(row.get(key)) in (str, int) and row[key] != ""), None)
    if name is None:
        raise DataError(f"names no image; a row has one of {', '.join(_IMAGE_KEYS)}")
    return str(name)


def asked_settings(rows: Sequence[Grounding] | Sequence[Referring]) -> dict[str, str]:
    """Return {setting: text} of signatures: a digest of what was asked, and how many requests failed."""
    failed = sum(row.failed for row in rows)
    digest = hashlib.sha256(orjson.dumps([[row.image, row.truth] for row in rows])).hexdigest()[:8]
    return {"gt": digest} | ({"failed": str(failed)} if failed else {})


def measure_grounding(rows: Sequence[Grounding], *, released: bool = False) -> Measured:
    """Return average recall: AR, AR@0.5 and AR@0.75, means over the questions that have a true pair, and AR for each
    size of object, a mean over the true pairs of that size. released: as the released scripts have it, with
    RELEASED_THRESHOLDS, and 0 where there is nothing to find."""
    if scale := _other_scale(rows):
        problem = f"the predicted boxes look like {scale} of the picture, and are read as pixels"
        note(f"{problem}: convert them to pixels")
    thresholds = RELEASED_THRESHOLDS if released else THRESHOLDS

    # The share of each question's true pairs that are found.
    rows_with_truth = [row for row in rows if row.truth]
    images = {name: number for number, name in enumerate(sorted({row.image for row in rows_with_truth}))}
    image = np.array([images[row.image] for row in rows_with_truth], dtype=np.int64)
    counts = np.array([len(row.truth) for row in rows_with_truth], dtype=np.int64)
    question = runs_of(starts_of(counts))  # of each true pair
    hits = _hits(rows_with_truth, (0.5, 0.75, *thresholds))  # two columns for AR@0.5 and AR@0.75, the others for AR
    found_counts = [np.bincount(question, column, len(image)) for column in hits.T]
    recall = np.stack(found_counts, axis=1) / counts[:, np.newaxis]  # [questions, thresholds]
    values = {"AR": recall[:, 2:].mean(axis=1), "AR@0.5": recall[:, 0], "AR@0.75": recall[:, 1]}
    n = {(metric, "full"): len(image) for metric in values}
    shares = [Shares(image, {(metric, "full"): (value, np.ones_like(image)) for metric, value in values.items()})]

    # The true pairs of each size of object, of all questions together.
    for size, has_size in _sizes(rows_with_truth).items():
        image_of_pair = image[question[has_size]]
        share_of_thresholds = hits[has_size, 2:].sum(axis=1) / len(thresholds)  # at which each pair is found
        shares.append(Shares(image_of_pair, {("AR", size): (share_of_thresholds, np.ones_like(image_of_pair))}))
        n["AR", size] = len(image_of_pair)
    settings = {**asked_settings(rows), "match": "mean"}  # of the person's and the object's IoU, for a pair's overlap
    return Measured(len(images), n, shares, "hoi-grounding", settings, empty=0.0 if released else None)


def _hits(rows: Sequence[Grounding], thresholds: Sequence[float]) -> Bools:
    """Return [G, thresholds]: whether each true pair is found at each IoU threshold. The G true pairs are those of all
    rows, one row after the other."""
    truth_starts = starts_of([len(row.truth) for row in rows])
    predicted_starts = starts_of([len(row.predicted) for row in rows])
    truth = _boxes(chain.from_iterable(row.truth for row in rows))
    predicted = _boxes(chain.from_iterable(row.predicted for row in rows))
    question = runs_of(predicted_starts)
    # every predicted pair with every true pair of its question: [M] the numbers of both
    prediction, true_pair = expand_runs(truth_starts[question], np.diff(truth_starts)[question])
    # [M] each: the IoU of the persons' boxes, and that of the objects'
    people, others = (
        iou(predicted[side][:, prediction], truth[side][:, true_pair], inclusive=False) for side in (0, 1)
    )
    score = (people + others) / 2.0
    rank = (np.arange(len(question)) - predicted_starts[question])[prediction]  # its place in its answer
    hits = np.zeros((len(truth[0].T), len(thresholds)), dtype=bool)
    for number, threshold in enumerate(thresholds):
        close = np.flatnonzero(score >= threshold)
        _take_true_pairs(hits[:, number], prediction[close], true_pair[close], score[close], rank[close])
    return hits


def _sizes(rows: Sequence[Grounding]) -> dict[str, Bools]:
    """Return {one of SIZES: [G] whether the object of each true pair is of that size}. An object of negative area,
    whose corners are in the wrong order, is small."""
    _, objects = _boxes(chain.from_iterable(row.truth for row in rows))
    x1, y1, x2, y2 = objects
    with np.errstate(over="ignore", invalid="ignore"):
        area = (x2 - x1) * (y2 - y1)
    return {
        size: (area >= smallest) & (area < largest) | (area < 0) & (size == "small")
        for size, (smallest, largest) in SIZES.items()
    }


def _boxes(pairs: Iterable[Pair]) -> tuple[Floats, Floats]:
    """Return the people's boxes and the objects' boxes of N pairs, each [4, N]."""
    pair_boxes = np.array(list(pairs), dtype=np.float64).reshape(-1, 2, 4)
    return np.ascontiguousarray(pair_boxes[:, 0].T), np.ascontiguousarray(pair_boxes[:, 1].T)


def _take_true_pairs(is_taken: Bools, prediction: Ints, true_pair: Ints, score: Floats, rank: Ints) -> None:
    """Let every predicted pair take the free true pair that it overlaps most, and set what is taken in `is_taken` [G].
    prediction, true_pair, score, rank [M]: for each two that overlap enough, their numbers, the mean of their two IoUs,
    and the place of the predicted pair in its answer; the first pairs of all answers take first."""
    order = np.argsort(rank, kind="stable")
    bounds = [*run_starts(rank[order]).tolist(), len(order)]
    for begin, end in pairwise(bounds):  # one round for each rank, over all questions
        rows = order[begin:end]
        rows = rows[~is_taken[true_pair[rows]]]
        best = rows[first_largest(prediction[rows], score[rows])]
        is_taken[true_pair[best]] = True


def _other_scale(rows: Sequence[Grounding]) -> str:
    """Return the unit in which the predicted boxes seem to be, "thousandths" or "fractions" (of the picture's sides),
    "" for pixels. The first predicted pair of each answer is tested: it speaks for another unit if it overlaps no true
    pair by half, but fits one well once each axis is scaled by the factor that fits best. Most have to do so."""
    tested = [(row.truth, row.predicted[0]) for row in rows if row.truth and row.predicted][:_TESTED]
    boxes = chain.from_iterable(pair for _, pair in tested)
    highest = max(chain.from_iterable(boxes), default=0)
    if not tested or highest > 1000:
        return ""
    fits = 0
    for pairs, pair in tested:
        truth, predicted = np.array(pairs).reshape(-1, 2, 2, 2), np.array(pair).reshape(2, 2, 2)  # side, corner, axis
        with np.errstate(over="ignore", invalid="ignore"):
            # The least-squares factor of each axis, for each true pair.
            squares = (predicted * predicted).sum(axis=(0, 1))
            factor = (predicted * truth).sum(axis=(1, 2)) / np.where(squares > 0, squares, 1.0)
            scaled = predicted * factor[:, np.newaxis, np.newaxis]
        unscaled = np.broadcast_to(predicted, truth.shape)
        fits += _best_overlap(unscaled, truth) < 0.5 and _best_overlap(scaled, truth) > 0.75
    return ("fractions" if highest <= 1 else "thousandths") if fits > len(tested) / 2 else ""


def _best_overlap(predicted: Floats, truth: Floats) -> float:
    """Return the highest mean of the two IoUs of T predicted pairs and T true pairs, both [T, side, corner, axis]."""
    overlaps = iou(predicted.reshape(-1, 4).T, truth.reshape(-1, 4).T, inclusive=False)
    return float(overlaps.reshape(-1, 2).mean(axis=1).max())
