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
from hoicli.io.claims import reads
from hoicli.io.messages import note
from hoicli.io.outputs import stays_inside
from hoicli.records.image import misfit

if TYPE_CHECKING:
    from PIL.Image import Image

TRUTH_INK = "#00ffff"
INKS = ("#ff3b30", "#ffb000", "#7aa2ff", "#d77bff", "#43d463")
"""Of the models, in turn."""

SMALLEST_SIDE = 480
"""Pixels of the longer side of a picture at least: on a smaller one no label can be read."""
LARGEST_AREA = 64_000_000
"""Pixels; a larger image is not unpacked."""
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
    """What one stream says of an image; ink: its colour."""

    name: str
    ink: str
    pairs: Sequence[Pair]


@dataclass(frozen=True)
class Overlay:
    """An image and what is drawn on it; size: its width and height in the pixels of the boxes, None if not known;
    file_name: in the folder of images, None where none is known; boxes: all of its records, drawn or not."""

    image_id: str
    size: tuple[float, float] | None
    layers: Sequence[Layer]
    file_name: str | None = None
    boxes: Sequence[Box] = ()


def image_file(folder: Path | None, file_name: object) -> Path | None:
    """The file of a name in a folder; None where it leads out of the folder, or to no file. The name is not trusted,
    the folder is: links that its owner put there are followed."""
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
    """A note of the images, out of so many, whose pictures are not at hand in a folder; nothing without a folder."""
    if missing and folder is not None:
        note(
            f"{arg('images', str(folder))}: no picture of {len(missing):,} of {images:,} images (the first: "
            f"{missing[0]}); their boxes are drawn on blank sheets"
        )


def open_image(folder: Path | None, file_name: str | None) -> Image | None:
    """The image of a name in a folder, unturned, for boxes are in stored pixels; None where it is not at hand
    (`image_file`), is neither PNG nor JPEG, or has too many pixels."""
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
    """Raises `DataError` for a picture of another shape than its record says, or that only holds the boxes when it is
    turned: it would be stretched, or lie across."""
    if wrong := misfit(overlay.size, overlay.boxes, picture.size):
        place = overlay.file_name or overlay.image_id
        raise DataError(
            f"{wrong}; give the right image or correct the record",
            place=place,
            field="width" if overlay.size else "boxes",
        )


def draw_overlay(overlay: Overlay, picture: Image | None, longest: int) -> Image:
    """The picture, or a blank sheet of its size, with the boxes and labels, above a line that names the image and the
    colours. Its longer side has at most `longest` pixels, and at least SMALLEST_SIDE if that is less."""
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
    for layer, pair in pairs:  # over all boxes
        _put_labels(pen, pair.labels, _scale_box(pair.subject, scale, size), size, layer.ink, font, taken)
    canvas.paste(caption, (0, size[1]))
    return canvas


def sheet(pictures: Sequence[Image]) -> Image:
    """Pictures of about one size side by side, in about as many rows as columns."""
    from PIL import Image

    columns = max(1, round(len(pictures) ** 0.5 + 0.2))
    rows = [pictures[at : at + columns] for at in range(0, len(pictures), columns)]
    wide = max(picture.width for picture in pictures) + SHEET_GAP
    heights = [max(picture.height for picture in row) + SHEET_GAP for row in rows]
    whole = Image.new("RGB", (columns * wide + SHEET_GAP, sum(heights) + SHEET_GAP), "#ffffff")
    for at, row in enumerate(rows):
        for number, picture in enumerate(row):
            whole.paste(picture, (SHEET_GAP + number * wide, SHEET_GAP + sum(heights[:at])))
    return whole


def encode_png(picture: Image) -> bytes:
    """The bytes of a PNG file."""
    data = io.BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def _size(overlay: Overlay, picture: Image | None) -> tuple[float, float]:
    """The size in the pixels of the boxes: as stated (unless it is all but a line), else the picture's, else what holds
    all boxes."""
    if overlay.size is not None and max(overlay.size) <= 20 * min(overlay.size):
        return overlay.size
    if picture is not None:
        return float(picture.width), float(picture.height)
    pairs = list(chain.from_iterable(layer.pairs for layer in overlay.layers))
    boxes = [box for box in chain.from_iterable((pair.subject, pair.object) for pair in pairs) if box is not None]
    sides = [max([1.0, *(min(1.05 * max(box[at], box[at + 2]), 1e5) for box in boxes)]) for at in (0, 1)]
    smallest = max(sides) / 20
    return max(sides[0], smallest), max(sides[1], smallest)


def _scale_box(box: Box, scale: float, size: tuple[int, int]) -> Place:
    """A box in the picture's pixels, its edges in order, and those outside moved to the rim."""

    def inside(edge: float, limit: int) -> int:
        return round(min(max(edge * scale, 0.0), limit - 1.0))

    (x1, x2), (y1, y2) = sorted((box[0], box[2])), sorted((box[1], box[3]))
    return inside(x1, size[0]), inside(y1, size[1]), inside(x2, size[0]), inside(y2, size[1])


def _rectangle(pen: Any, box: Place, ink: str, stroke: int, *, dash: int = 0) -> None:
    """A rectangle; dash: the length of the strokes of a broken line, 0 for a whole one."""
    x1, y1, x2, y2 = box
    for colour, width in ((EDGE, stroke + 2), (ink, stroke)):
        for ax, ay, bx, by in ((x1, y1, x2, y1), (x2, y1, x2, y2), (x2, y2, x1, y2), (x1, y2, x1, y1)):
            length = max(abs(bx - ax), abs(by - ay), 1)
            on = dash or length
            for start in range(0, length, on + 3 * stroke):
                begin, end = start / length, min(start + on, length) / length
                ends = [(ax + (bx - ax) * at, ay + (by - ay) * at) for at in (begin, end)]
                pen.line(ends, fill=colour, width=width)


def _link(pen: Any, subject: Place, object_: Place, ink: str, stroke: int) -> None:
    """A line from the middle of the subject to that of the object, with a dot at the object's."""
    (x1, y1), (x2, y2) = (((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in (subject, object_))
    dot = stroke + 1
    pen.line((x1, y1, x2, y2), fill=EDGE, width=stroke + 2)
    pen.line((x1, y1, x2, y2), fill=ink, width=stroke)
    pen.ellipse((x2 - dot, y2 - dot, x2 + dot, y2 + dot), fill=ink, outline=EDGE)


def _put_labels(
    pen: Any, labels: Sequence[str], box: Place, size: tuple[int, int], ink: str, font: Any, taken: list[Place]
) -> None:
    """The labels of a pair, a line each, where none stands yet: over the box's upper edge, or else as little below as
    there is room. Lines for which there is no room anywhere are left out."""
    (width, height), line = size, _line_height(font)
    texts = [fit_text(pen, text, font, width - 8) for text in labels[: max(1, height // line)]]
    wide = max(round(pen.textlength(text, font)) for text in texts) + 8
    high = line * len(texts) + 2
    left = max(0, min(box[0], width - wide))
    first = max(0, min(box[1] - high, height - high))

    def free(top: int) -> bool:
        return not any(left < x2 and x1 < left + wide and top < y2 and y1 < top + high for x1, y1, x2, y2 in taken)

    step = max(1, line // 2)
    tops = [*range(first, max(height - high, first) + 1, step), *range(first, -1, -step)]
    top = next(filter(free, tops), first)
    taken.append((left, top, left + wide, top + high))
    pen.rectangle(taken[-1], fill=ink, outline=EDGE)
    for number, text in enumerate(texts):
        pen.text((left + 4, top + 1 + number * line), text, fill="#000000", font=font)


def _caption(overlay: Overlay, width: int, font: Any, *, at_hand: bool) -> Image:
    """The lines below a picture: the image's name, then the colour and the name of each stream."""
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
    """A text as visible characters, cut with an ellipsis to so many pixels."""
    text = visible(text[:300])
    if pen.textlength(text, font) <= room:
        return text
    while text and pen.textlength(text + "...", font) > room:
        text = text[:-1]
    return text + "..."
