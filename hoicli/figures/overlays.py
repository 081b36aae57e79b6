"""Triplets drawn on their image, as a picture of its own: for folders of pictures and contact sheets.

A colour for each stream (ground truth is cyan), a solid box for the subject and a dashed one for the object. Every
stroke has a dark edge and every label a ground of its own, so that both show on any picture. Needs Pillow.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hoicli.errors import DataError, arg, visible
from hoicli.io.file_claims import reads
from hoicli.io.messages import note
from hoicli.io.outputs import stays_inside
from hoicli.records.picture_size import misfit

if TYPE_CHECKING:
    from PIL.Image import Image

TRUTH_INK = "#00ffff"
INKS = ("#ff3b30", "#ffb000", "#7aa2ff", "#d77bff", "#43d463")
"""The models' colours, in turn."""

SMALLEST_SIDE = 480
"""Pixels of the longer side of a picture at least: on a smaller one no label can be read."""
LARGEST_AREA = 64_000_000
"""Pixels of the largest image that is decoded."""
SHEET_GAP = 8
EDGE = "#000000"
BLANK = "#d8d8d8"

Box = Sequence[float]
Place = tuple[int, int, int, int]
"""A box in the pixels of the picture, its edges in order."""


@dataclass(frozen=True)
class Pair:
    """A subject's box and its object's (None for none), with a label for each verb."""

    subject: Box
    object: Box | None
    labels: Sequence[str]


@dataclass(frozen=True)
class Layer:
    """What one stream says of an image, in the colour `ink`."""

    name: str
    ink: str
    pairs: Sequence[Pair]


@dataclass(frozen=True)
class Overlay:
    """An image and what is drawn on it. size: width and height in the pixels of the boxes, None if not known;
    file_name: in the folder of images, None if not known; boxes: all boxes of its records, drawn or not."""

    image_id: str
    size: tuple[float, float] | None
    layers: Sequence[Layer]
    file_name: str | None = None
    boxes: Sequence[Box] = ()


def image_file(folder: Path | None, file_name: object) -> Path | None:
    """Return the file of a name in a folder, None if the name leads out of the folder or to no file. The name is not
    trusted; the folder is: links that the user put there are followed."""
    if folder is None or not isinstance(file_name, str) or not stays_inside(file_name):
        return None
    path = folder / file_name
    try:
        if not path.is_file():  # a pipe would block for ever
            return None
        reads(path, is_kept=False)
    except (OSError, ValueError):  # unreadable; or a name that no file can have
        return None
    return path


def tell_missing(folder: object, missing: Sequence[str], images: int) -> None:
    """Note that a folder lacks the pictures of the `missing` among so many images; say nothing without a folder."""
    if missing and folder is not None:
        note(
            f"{arg('images', str(folder))}: no picture of {len(missing):,} of {images:,} images (the first: "
            f"{missing[0]}); their boxes are drawn on blank sheets"
        )


def open_image(folder: Path | None, file_name: str | None) -> Image | None:
    """Return the image of a name in a folder, not rotated, since boxes are in stored pixels. None if there is no such
    file (`image_file`), if it is neither PNG nor JPEG, or if it has too many pixels."""
    from PIL import Image

    path = image_file(folder, file_name)
    if path is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow finds odd about a file changes no pixel
        try:
            with Image.open(path, formats=["PNG", "JPEG"]) as image:
                return image.convert("RGB") if image.width * image.height <= LARGEST_AREA else None
        except Exception:  # noqa: BLE001 (decoders raise whatever a damaged file leads them to)
            return None


def check_fits(overlay: Overlay, picture: Image) -> None:
    """Raise `DataError` for a picture whose shape differs from its record, or that holds the boxes only when it is
    turned: the boxes would be drawn in wrong places."""
    if wrong := misfit(overlay.size, overlay.boxes, picture.size):
        place = overlay.file_name or overlay.image_id
        raise DataError(
            f"{wrong}; give the right image or correct the record",
            place=place,
            field="width" if overlay.size else "boxes",
        )


def draw_overlay(overlay: Overlay, picture: Image | None, longest: int) -> Image:
    """Return the picture, or a blank sheet of its size, with boxes and labels, and below it the image's name and the
    colour of each stream. The longer side has at most `longest` pixels, and at least SMALLEST_SIDE if that is less."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = _size(overlay, picture)
    scale = min(max(max(width, height), min(SMALLEST_SIDE, longest)), longest) / max(width, height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    # Pillow's own font: a file of the system would give other bytes on another machine.
    font = ImageFont.load_default(max(12, round(max(size) / 48)))
    caption = _caption(overlay, size[0], font, at_hand=picture is not None)
    canvas = Image.new("RGB", (size[0], size[1] + caption.height), BLANK)
    if picture is not None:
        canvas.paste(picture.resize(size, Image.Resampling.LANCZOS), (0, 0))
    pen = ImageDraw.Draw(canvas)
    stroke = max(2, round(max(size) / 320))
    pairs = [(layer, pair) for layer in overlay.layers for pair in layer.pairs]
    for layer, pair in pairs:
        subject = _scale_box(pair.subject, scale, size)
        _rectangle(pen, subject, layer.ink, stroke)
        if pair.object is not None:
            object_ = _scale_box(pair.object, scale, size)
            _rectangle(pen, object_, layer.ink, stroke, dash=5 * stroke)
            _link(pen, subject, object_, layer.ink, stroke)
    taken: list[Place] = []
    for layer, pair in pairs:  # labels after all boxes, so that no box covers one
        _put_labels(pen, pair.labels, _scale_box(pair.subject, scale, size), size, layer.ink, font, taken)
    canvas.paste(caption, (0, size[1]))
    return canvas


def sheet(pictures: Sequence[Image]) -> Image:
    """Return pictures of about one size on one sheet, in about as many rows as columns."""
    from PIL import Image

    columns = max(1, round(len(pictures) ** 0.5 + 0.2))
    rows = [pictures[start : start + columns] for start in range(0, len(pictures), columns)]
    wide = max(picture.width for picture in pictures) + SHEET_GAP
    heights = [max(picture.height for picture in row) + SHEET_GAP for row in rows]
    canvas = Image.new("RGB", (columns * wide + SHEET_GAP, sum(heights) + SHEET_GAP), "#ffffff")
    for line, row in enumerate(rows):
        for column, picture in enumerate(row):
            canvas.paste(picture, (SHEET_GAP + column * wide, SHEET_GAP + sum(heights[:line])))
    return canvas


def encode_png(picture: Image) -> bytes:
    """Return a picture as the bytes of a PNG file."""
    data = io.BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def _size(overlay: Overlay, picture: Image | None) -> tuple[float, float]:
    """Return width and height in the pixels of the boxes: the stated ones (unless one is over 20 times the other), else
    the picture's, else what holds all boxes."""
    if overlay.size is not None and max(overlay.size) <= 20 * min(overlay.size):
        return overlay.size
    if picture is not None:
        return float(picture.width), float(picture.height)
    pairs = list(chain.from_iterable(layer.pairs for layer in overlay.layers))
    boxes = [box for box in chain.from_iterable((pair.subject, pair.object) for pair in pairs) if box is not None]
    sides = [max([1.0, *(min(1.05 * max(box[axis], box[axis + 2]), 1e5) for box in boxes)]) for axis in (0, 1)]
    smallest = max(sides) / 20
    return max(sides[0], smallest), max(sides[1], smallest)


def _scale_box(box: Box, scale: float, size: tuple[int, int]) -> Place:
    """Return a box in the picture's pixels with its edges in order; edges outside are moved to the rim."""

    def inside(edge: float, limit: int) -> int:
        return round(min(max(edge * scale, 0.0), limit - 1.0))

    (x1, x2), (y1, y2) = sorted((box[0], box[2])), sorted((box[1], box[3]))
    return inside(x1, size[0]), inside(y1, size[1]), inside(x2, size[0]), inside(y2, size[1])


def _rectangle(pen: Any, box: Place, ink: str, stroke: int, *, dash: int = 0) -> None:
    """Draw a rectangle. dash: the length of the strokes of a broken line, 0 for a solid one."""
    x1, y1, x2, y2 = box
    for colour, width in ((EDGE, stroke + 2), (ink, stroke)):
        for ax, ay, bx, by in ((x1, y1, x2, y1), (x2, y1, x2, y2), (x2, y2, x1, y2), (x1, y2, x1, y1)):
            length = max(abs(bx - ax), abs(by - ay), 1)
            dash_length = dash or length
            for start in range(0, length, dash_length + 3 * stroke):
                begin, end = start / length, min(start + dash_length, length) / length
                points = [(ax + (bx - ax) * part, ay + (by - ay) * part) for part in (begin, end)]
                pen.line(points, fill=colour, width=width)


def _link(pen: Any, subject: Place, object_: Place, ink: str, stroke: int) -> None:
    """Draw a line from the subject's middle to the object's, with a dot at the object's."""
    (x1, y1), (x2, y2) = (((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in (subject, object_))
    dot = stroke + 1
    pen.line((x1, y1, x2, y2), fill=EDGE, width=stroke + 2)
    pen.line((x1, y1, x2, y2), fill=ink, width=stroke)
    pen.ellipse((x2 - dot, y2 - dot, x2 + dot, y2 + dot), fill=ink, outline=EDGE)


def _put_labels(
    pen: Any, labels: Sequence[str], box: Place, size: tuple[int, int], ink: str, font: Any, taken: list[Place]
) -> None:
    """Draw a pair's labels, one below the other, where no label is yet: over the box's upper edge, else at the nearest
    free height below, else above; if none is free, over the edge. Labels beyond the picture's height are left out.
    taken: the places of all labels, to which this adds."""
    (width, height), line = size, _line_height(font)
    texts = [fit_text(pen, text, font, width - 8) for text in labels[: max(1, height // line)]]
    block_width = max(round(pen.textlength(text, font)) for text in texts) + 8
    block_height = line * len(texts) + 2
    left = max(0, min(box[0], width - block_width))
    first = max(0, min(box[1] - block_height, height - block_height))

    def free(top: int) -> bool:
        return not any(
            left < x2 and x1 < left + block_width and top < y2 and y1 < top + block_height for x1, y1, x2, y2 in taken
        )

    step = max(1, line // 2)
    tops = [*range(first, max(height - block_height, first) + 1, step), *range(first, -1, -step)]
    top = next(filter(free, tops), first)
    taken.append((left, top, left + block_width, top + block_height))
    pen.rectangle(taken[-1], fill=ink, outline=EDGE)
    for number, text in enumerate(texts):
        pen.text((left + 4, top + 1 + number * line), text, fill="#000000", font=font)


def _caption(overlay: Overlay, width: int, font: Any, *, at_hand: bool) -> Image:
    """Return the strip below a picture: the image's name, then the colour and name of each stream."""
    from PIL import Image, ImageDraw

    name = overlay.image_id + ("" if at_hand else " (image not at hand)")
    rows = [(name, ""), *((layer.name, layer.ink) for layer in overlay.layers)]
    line = _line_height(font)
    caption = Image.new("RGB", (width, len(rows) * line + 6), "#ffffff")
    pen = ImageDraw.Draw(caption)
    side = round(line * 0.6)
    for row, (text, ink) in enumerate(rows):
        left, top = 4 + line * bool(ink), 2 + row * line
        if ink:
            mark = top + (line - side) // 2
            pen.rectangle((4, mark, 4 + side, mark + side), fill=ink, outline=EDGE)
        pen.text((left, top), fit_text(pen, text, font, width - left - 4), fill="#000000", font=font)
    return caption


def _line_height(font: Any) -> int:
    return int(sum(font.getmetrics()) + 2)


def fit_text(pen: Any, text: str, font: Any, room: int) -> str:
    """Return a text in visible characters, cut with an ellipsis if it is wider than `room` pixels."""
    text = visible(text[:300])
    if pen.textlength(text, font) <= room:
        return text
    while text and pen.textlength(text + "...", font) > room:
        text = text[:-1]
    return text + "..."
