"""Result files of hoi-benchmarks (SIT-AIGCDesignLab), as its scripts save them: a list of rows, or JSON lines.

Grounding: the pairs asked for (`gt_pairs`, or `ground_truth_pairs` of the scripts that ask at once) and those predicted
(`predicted_pairs`, `pred_pairs`, `pairs`), a pair being `person_bbox` and `object_bbox`, or `person_box` and
`object_box`. Referring: `ground_truth` and `prediction`, two phrases.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import orjson

from hoicli.converters.containers.source import Source
from hoicli.converters.vlm.rows import first_line, listed, parsed_lines
from hoicli.errors import DataError
from hoicli.io.messages import note
from hoicli.records.boxes import iou
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats
from hoicli.records.parsing import is_number, short
from hoicli.vlm.bank import box_of

TRUTH_KEYS = ("gt_pairs", "ground_truth_pairs")
FOUND_KEYS = ("predicted_pairs", "pred_pairs", "pairs")
_PHRASE_KEYS = ("prediction", "pred", "predicted_action")
_DENYING = frozenset({"present", "not_present", "absent", "exists", "interacting"})
"""Keys by which a model may say that what it lists is not there: a list holds what is."""
_IMAGE_KEYS = ("file_name", "image_path", "image_id", "custom_id")
_WRAPPERS = ("results", "predictions", "annotations", "data")
_FAILED = "requests that failed, which count as answered with nothing"

_TESTED = 500
"""Questions that are looked at to see the scale of the boxes."""

Box = tuple[float, ...]
Pair = tuple[Box, Box]
"""The person's box and the other one's, [x1, y1, x2, y2] in pixels."""
NOWHERE: Pair = ((), ())
"""A predicted pair without one of the boxes: it finds nothing, and has its place among those of its question."""


@dataclass(frozen=True, order=True)
class Grounding:
    """A question for all pairs of an interaction in an image: those there are, and those found, in their order;
    `failed`: the request."""

    image: str
    truth: tuple[Pair, ...]
    found: tuple[Pair, ...]
    failed: bool = False


@dataclass(frozen=True, order=True)
class Referring:
    """A question for what a pair does: the phrase it has, and the one predicted, "" for none; `failed`: the request."""

    image: str
    truth: str
    found: str
    failed: bool = False


@dataclass
class Oddities:
    """What is wrong with some answers: how often, and the first place."""

    named: dict[str, tuple[int, str]] = field(default_factory=dict)

    def count(self, what: str, place: str, more: int = 1) -> None:
        """So many more of it; `place`: where the first is."""
        times, first = self.named.get(what, (0, place))
        self.named[what] = times + more, first

    def report(self) -> None:
        """Say them all."""
        for what, (times, first) in self.named.items():
            note(f"{what}: {times:,} (the first: {first})")


def read_grounding(sources: Sequence[Source], policy: ErrorPolicy) -> list[Grounding]:
    """The rows of result files of grounding, sorted; what is odd is said. Raises `DataError` for what is no such row,
    and for files without one."""
    return _read(sources, policy, _grounding)


def read_referring(sources: Sequence[Source], policy: ErrorPolicy) -> list[Referring]:
    """The rows of result files of referring, sorted; what is odd is said. Raises `DataError` as above."""
    return _read(sources, policy, _referring)


def other_scale(rows: Sequence[Grounding]) -> str:
    """What the predicted boxes seem to be if not pixels ("thousandths", "fractions"), else "": most first pairs that
    overlap no true pair by half fit one well once each axis is scaled by a number of its own."""
    asked = [(row.truth, row.found[0]) for row in rows if row.truth and row.found and row.found[0] != NOWHERE][:_TESTED]
    highest = max((number for _, found in asked for box in found for number in box), default=0)
    if not asked or highest > 1000:
        return ""
    fits = 0
    for pairs, pair in asked:
        truth, found = np.array(pairs).reshape(-1, 2, 2, 2), np.array(pair).reshape(2, 2, 2)  # side, corner, axis
        with np.errstate(over="ignore", invalid="ignore"):
            size = (found * found).sum(axis=(0, 1))
            factor = (found * truth).sum(axis=(1, 2)) / np.where(size > 0, size, 1.0)
            scaled = found * factor[:, np.newaxis, np.newaxis]
        fits += _best_overlap(found + 0 * truth, truth) < 0.5 and _best_overlap(scaled, truth) > 0.75
    return ("fractions" if highest <= 1 else "thousandths") if fits > len(asked) / 2 else ""


def _best_overlap(found: Floats, truth: Floats) -> float:
    """The highest mean of the two IoUs of pairs [T, side, corner, axis]."""
    overlaps = iou(found.reshape(-1, 4).T, truth.reshape(-1, 4).T, inclusive=False)
    return float(overlaps.reshape(-1, 2).mean(axis=1).max())


def digest_of(content: Sequence[Any]) -> str:
    """Eight hexadecimal digits of what was asked."""
    return hashlib.sha256(orjson.dumps(content)).hexdigest()[:8]


T = TypeVar("T", Grounding, Referring)


def _read(
    sources: Sequence[Source], policy: ErrorPolicy, made: Callable[[Mapping[str, Any], str, Oddities], T]
) -> list[T]:
    found: list[T] = []
    odd = Oddities()
    given: dict[bytes, str] = {}
    asked: dict[bytes, str] = {}
    for source in sources:
        digest = hashlib.sha256(source.data).digest()
        if digest in given:
            raise DataError(f"the same content as {given[digest]}; give each file once", place=source.path)
        given[digest] = source.path
        for place, row in _rows(source, policy):
            try:
                if not isinstance(row, dict):
                    raise DataError(f"{short(row)} is no row of results; a row is an object")
                _refuse_denials(row)
                first = asked.setdefault(_question(row, place), place)
                if first != place:
                    raise DataError(f"answers the question of {first} again; keep one row a question")
                found.append(made(row, place, odd))
            except DataError as error:
                policy.handle(DataError(error.problem, place=place, field=error.field))
    if not found:
        names = ", ".join(source.path for source in sources)
        raise DataError("no results in it; give files that hoi-benchmarks' scripts saved", place=names)
    odd.report()
    return sorted(found)


def _question(row: Mapping[str, Any], place: str) -> bytes:
    """What a row says besides the answer; rows without an id of their request may ask for two pairs of one image."""
    if "custom_id" not in row:
        return place.encode()
    asked = {key: value for key, value in row.items() if key not in (*FOUND_KEYS, *_PHRASE_KEYS, "status")}
    return orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)


def _refuse_denials(item: Mapping[str, Any], field: str = "") -> None:
    """Raises `DataError` for a row or a pair with a key that may deny it."""
    for key in sorted(_DENYING & item.keys()):
        raise DataError("is not read; leave out what is not there", field=f"{field}.{key}" if field else key)


def _rows(source: Source, policy: ErrorPolicy) -> Iterable[tuple[str, Any]]:
    if source.is_list:
        return listed(source, policy)
    first = first_line(source)
    whole = source.mapping if first is None else first
    wrapper = next((key for key in _WRAPPERS if isinstance(whole, dict) and isinstance(whole.get(key), list)), None)
    if wrapper is None:
        return parsed_lines(source, policy)
    return ((f"{source.name}: {wrapper}[{index}]", item) for index, item in enumerate(whole[wrapper]))


def _grounding(row: Mapping[str, Any], place: str, odd: Oddities) -> Grounding:
    truth_key = next((key for key in TRUTH_KEYS if key in row), None)
    if truth_key is None:
        problem = f"missing ({' or '.join(TRUTH_KEYS)}); the row says which pairs there are"
        raise DataError(problem, field=TRUTH_KEYS[0])
    truth = []
    for index, pair in enumerate(_list(row, truth_key)):
        boxes = _pair(pair, f"{truth_key}[{index}]")
        if boxes is None:
            raise DataError("has no person_bbox or no object_bbox", field=f"{truth_key}[{index}]")
        truth.append(boxes)
    failed = _failed(row)
    found_key = next((key for key in FOUND_KEYS if key in row), None)
    if found_key is None and not failed:
        problem = f"missing ({' or '.join(FOUND_KEYS)}); the row says which pairs were found, [] for none"
        raise DataError(problem, field=FOUND_KEYS[0])
    found = []
    for index, pair in enumerate(() if found_key is None or failed else _list(row, found_key)):
        boxes = _pair(pair, f"{found_key}[{index}]")
        if boxes is None:
            odd.count("predicted pairs without one of the boxes, which find nothing", place)
            found.append(NOWHERE)
            continue
        found.append(boxes)
        if _outside(boxes, row):
            odd.count("predicted pairs with a box outside the picture", place)
        if any(box[2] <= box[0] or box[3] <= box[1] for box in boxes):
            odd.count("predicted pairs with a box without area", place)
    if failed:
        odd.count(_FAILED, place)
    if not truth:
        odd.count("questions without a pair to find, which are in no mean", place)
    return Grounding(_image(row), tuple(truth), tuple(found), failed)


def _list(row: Mapping[str, Any], key: str) -> list[Any]:
    value = row.get(key, [])
    if not isinstance(value, list):
        raise DataError(f"{short(value)} is no list of pairs", field=key)
    return value


def _pair(pair: Any, field: str) -> Pair | None:
    """Both boxes, None if one is missing or empty."""
    if not isinstance(pair, dict):
        raise DataError(f"{short(pair)} is no pair; one has person_bbox and object_bbox", field=field)
    _refuse_denials(pair, field)
    boxes = []
    for side in ("person", "object"):
        name = f"{side}_bbox" if f"{side}_bbox" in pair else f"{side}_box"
        box = pair.get(name)
        if box is None or box == []:
            return None
        boxes.append(box_of(box, f"{field}.{name}"))
    return boxes[0], boxes[1]


def _outside(boxes: Pair, row: Mapping[str, Any]) -> bool:
    width, height = (row[key] if is_number(row.get(key)) else float("inf") for key in ("width", "height"))
    return any(min(box) < 0 or max(box[0], box[2]) > width or max(box[1], box[3]) > height for box in boxes)


def _referring(row: Mapping[str, Any], place: str, odd: Oddities) -> Referring:
    truth = next((row[key] for key in ("ground_truth", "gt", "label") if key in row), None)
    if not isinstance(truth, str) or not truth.strip():
        raise DataError(f"{short(truth)} is no phrase; the row says what the pair does", field="ground_truth")
    found = next((row[key] for key in _PHRASE_KEYS if key in row), None)
    if found is not None and not isinstance(found, str):
        raise DataError(f"{short(found)} is no phrase", field="prediction")
    failed = _failed(row)
    if failed:
        odd.count(_FAILED, place)
    elif not (found or "").strip():
        odd.count("empty answers", place)
    return Referring(_image(row), truth, "" if failed else found or "", failed)


def _failed(row: Mapping[str, Any]) -> bool:
    return "status" in row and row["status"] != "success"


def _image(row: Mapping[str, Any]) -> str:
    name = next((row[key] for key in _IMAGE_KEYS if type(row.get(key)) in (str, int) and row[key] != ""), None)
    if name is None:
        raise DataError(f"names no image; a row has one of {', '.join(_IMAGE_KEYS)}")
    return str(name)
