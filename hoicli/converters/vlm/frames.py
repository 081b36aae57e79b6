"""The conventions of `--coords` for a model's boxes, and the conversion to pixels and back.

| family | convention | evidence |
| --- | --- | --- |
| Qwen2-VL, Qwen3-VL, InternVL | 0-1000 of the image's sides, x first | QwenLM/Qwen3-VL#676, #1486 |
| Qwen2.5-VL | pixels of its processor's copy: sides a multiple of 28, area within bounds | QwenLM/Qwen3-VL#769 |
| Gemini | 0-1000, y first | its documentation |
| Groma | 0-1 | FoundationVision/Groma#11 |

Ranges of values cannot distinguish them, so no code here guesses from values."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from hoicli.errors import DataError, UsageError, arg
from hoicli.records.parsing import Record, is_number

if TYPE_CHECKING:
    from hoicli.converters.context import Context

CONVENTIONS = (
    "1000 (Qwen2-VL, Qwen3-VL, InternVL), 1000-yx (Gemini: y first), qwen2.5 (Qwen2.5-VL: pixels of the copy it "
    "resized; qwen2.5:MIN-MAX for other bounds on that copy's area), resized:WxH (pixels of a copy of that size), "
    "relative (0-1: Groma), pixels (of the original image)"
)
"""What `--coords` takes, for help and messages."""

PLAIN = ("1000", "1000-yx", "relative", "pixels")
"""The conventions without numbers; qwen2.5 may have numbers, resized must."""

FACTOR = 28
"""Qwen2.5-VL's processor makes both sides a multiple of this: patches of 14, merged two by two."""
QWEN_PIXELS = (4 * 28 * 28, 16384 * 28 * 28)
"""The bounds on the area of the copy in the preprocessor_config.json of the released Qwen2.5-VL, and in qwen_vl_utils.
A processor that is made without that file has 1,280 * 28 * 28 as the upper one."""

Size = tuple[float, float]
"""(width, height) of an image in pixels."""


@dataclass(frozen=True)
class Frame:
    """A convention for the numbers of boxes. kind: its name in `--coords`, without numbers. numbers: for qwen2.5 the
    bounds on the area of the resized image, for resized its (width, height)."""

    kind: str
    numbers: tuple[int, int] = (0, 0)

    def _scale(self, size: Size | None) -> tuple[float, float, float, float]:
        """Return (width, units across, height, units down): the image's sides in pixels, and how many of the
        convention's units each has. All are 1 for pixels, which need no size; else None raises `DataError`."""
        if self.kind == "pixels":
            return 1.0, 1.0, 1.0, 1.0
        if size is None:
            raise DataError(
                f"the image's size is not known; give the record width and height (or convert {arg('image_list')})"
            )
        width, height = size
        if self.kind == "relative":
            return width, 1.0, height, 1.0
        if self.kind.startswith("1000"):
            return width, 1000.0, height, 1000.0
        copy = self.numbers if self.kind == "resized" else resized_by_qwen(width, height, *self.numbers)
        return width, copy[0], height, copy[1]

    def scale_to_pixels(self, box: Sequence[float], size: Size | None) -> list[float]:
        """Return a box in this convention as [x1, y1, x2, y2] in pixels of the original image. size: of that image."""
        width, across, height, down = self._scale(size)
        x1, y1, x2, y2 = map(float, box)
        if self.kind == "1000-yx":
            x1, y1, x2, y2 = y1, x1, y2, x2
        return [x1 * width / across, y1 * height / down, x2 * width / across, y2 * height / down]

    def scale_from_pixels(self, box: Sequence[float], size: Size | None) -> list[float]:
        """Return a box [x1, y1, x2, y2] in pixels as this convention writes it, in whole numbers, or with four decimals
        if it is `relative`. size: of the original image. Raises `DataError` for a number that overflows."""
        width, across, height, down = self._scale(size)
        x1, x2 = (box[index] * across / width for index in (0, 2))
        y1, y2 = (box[index] * down / height for index in (1, 3))
        values = [y1, x1, y2, x2] if self.kind == "1000-yx" else [x1, y1, x2, y2]
        if not all(map(math.isfinite, values)):
            raise DataError("a number of a box is too large for a prompt", field="boxes")
        return [round(value, 4) for value in values] if self.kind == "relative" else [round(value) for value in values]

    def contradicts_scale(self, boxes: Sequence[Sequence[float]]) -> bool:
        """Return whether an answer's boxes cannot be in this convention: it is `relative`, where an image ends at 1,
        and a number is above 2; or it is another one, and all numbers are between 0 and 1, some of them fractions."""
        if self.kind == "relative":
            return any(max(box) > 2.0 for box in boxes)
        numbers = list(chain.from_iterable(boxes))
        return all(0 <= number <= 1 for number in numbers) and any(number % 1 for number in numbers)

    def __str__(self) -> str:
        """Return the text that `--coords` takes for this convention."""
        first, second = self.numbers
        texts = {"resized": f"resized:{first}x{second}", "qwen2.5": f"qwen2.5:{first}-{second}"}
        return texts.get(self.kind, self.kind)

    def copy_size(self, size: Size | None) -> tuple[int, int] | None:
        """Return (width, height) of the resized image that this convention counts the pixels of, None if it counts no
        such pixels. size: of the original image. Raises `DataError` if it is needed and None."""
        if self.kind == "resized":
            return self.numbers
        if self.kind != "qwen2.5":
            return None
        _, width, _, height = self._scale(size)
        return int(width), int(height)


def size_of(record: Record) -> Size | None:
    """Return the (width, height) that a row of an answer or a record states, None unless both are positive numbers."""
    width, height = (record[key] if is_number(record.get(key)) else 0 for key in ("width", "height"))
    return (width, height) if width > 0 and height > 0 else None


def parse_frame(text: str, place: str = "") -> Frame:
    """Return the convention that a text names as `--coords` does, such as "1000" or "resized:640x480". place: where a
    file has the text, "" if it is the option's. Raises `UsageError`, which lists all conventions, for other texts."""
    if text in PLAIN:
        return Frame(text)
    if text == "qwen2.5":
        return Frame("qwen2.5", QWEN_PIXELS)
    match = re.fullmatch(r"(resized):(\d{1,6})x(\d{1,6})|(qwen2\.5):(\d{1,12})-(\d{1,12})", text)
    if match is not None:
        kind, *numbers = (group for group in match.groups() if group is not None)
        first, second = map(int, numbers)  # width and height, or the least and the greatest area
        if first > 0 and second > 0 and (kind == "resized" or FACTOR * FACTOR <= first <= second):
            return Frame(kind, (first, second))
    raise UsageError(f"{f'{place} {text}' if place else arg('coords', text)}: choose from {CONVENTIONS}")


def resized_by_qwen(width: float, height: float, min_area: int, max_area: int) -> tuple[int, int]:
    """Return (width, height) of the resized image that Qwen2.5-VL's processor makes of one of this size. Each side is
    the nearest multiple of 28. If the area is then not between the two bounds, in pixels, both sides of the original
    are scaled by the factor that gives the bound, and rounded to multiples of 28 on the right side of it."""
    sides = [max(FACTOR, round(side / FACTOR) * FACTOR) for side in (width, height)]
    area = sides[0] * sides[1]
    if area > max_area:
        shrink = math.sqrt(width * height / max_area)
        sides = [max(FACTOR, math.floor(side / shrink / FACTOR) * FACTOR) for side in (width, height)]
    elif area < min_area:
        grow = math.sqrt(min_area / (width * height))
        sides = [math.ceil(side * grow / FACTOR) * FACTOR for side in (width, height)]
    return sides[0], sides[1]


def find_frame(
    row: dict[str, Any], key: str, answer: Any, tokens: str, option_frame: Frame | None, context: Context
) -> Frame | None:
    """Return the convention of the numbers in an answer's boxes, None if nothing says it. In this order: tokens that
    always count in one way, --coords, other box tokens, what the row states (`coords`, `box_scale`), what is known of
    rows of its shape.

    key: the row's key of the answer. tokens: the kind of the answer's box tokens (`Claims.tokens`). option_frame: the
    convention that --coords names, None without it. Raises `UsageError` if the row states another one than --coords."""
    if tokens in ("loc", "bins"):
        context.announce(f"boxes in <{tokens}> tokens: taken as their model writes them")
        return Frame("1000" if tokens == "loc" else "relative")
    # a row may state the convention itself; R1-SGG's rows state the size of the copy that the model saw (box_scale)
    name = "coords" if isinstance(row.get("coords"), str) else "box_scale"
    row_coords, copy = (row["coords"], None) if name == "coords" else (None, row.get("box_scale"))
    frame_text = _resized_coords(copy) if copy else row_coords
    row_frame = None if frame_text is None else parse_frame(frame_text, f"{context.place}: {name}")
    if option_frame is not None:
        if row_frame not in (None, option_frame):
            problem = f"{frame_text}, but the option is {arg('coords', context.options['coords'])}"
            raise UsageError(f"{context.place}: {name}: {problem}; leave the option out, or mend the rows")
        return option_frame
    if tokens == "box":
        return _assume_frame("1000", "boxes in <box> or <|box_start|> tokens", context)
    if key == "person_bbox":
        return _assume_frame("pixels", "person_bbox and object_bbox of the rows", context)
    if row_frame is not None:
        if name == "box_scale":
            context.announce("box_scale of R1-SGG's rows: taken as the size of the copy that boxes are pixels of")
        return row_frame
    if key == "predicted_pairs":
        return _assume_frame("pixels", "predicted_pairs of hoi-benchmarks", context)
    first = answer[0] if isinstance(answer, list) and answer else None
    if isinstance(first, dict) and {"sub_bbox", "obj_bbox"} <= first.keys():
        return _assume_frame("pixels", "sub_bbox and obj_bbox of mllms-zs-hoi", context)
    return None


def _assume_frame(kind: str, shape: str, context: Context) -> Frame:
    """Return the convention called `kind`, and add a note that it was assumed for a `shape` of rows."""
    context.announce(f"{shape}: taken as {kind}; {arg('coords')} says otherwise")
    return Frame(kind)


def _resized_coords(copy: Any) -> str:
    """Return the size of a resized image as `--coords` writes it, "resized:1000x750". copy: [width, height], which rows
    of R1-SGG state as the size of the image whose pixels their boxes count."""
    sides = copy if isinstance(copy, list) and all(map(is_number, copy)) else [copy]
    return "resized:" + "x".join(f"{side:.0f}" if is_number(side) else str(side) for side in sides)
