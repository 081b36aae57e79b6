"""Drawing triplets on their image, for folders of pictures and for sheets of several.

Ground truth is cyan, and each model has its colour; the subject's box is solid and the object's dashed. Lines have a
dark edge and labels a background, so that both are seen on any picture. Needs Pillow.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hoicli.errors import DataError, arg, visible
from hoicli.io.file_claims import register_input
from hoicli.io.messages import note
from hoicli.io.outputs import stays_inside
from hoicli.records.picture_size import misfit

if TYPE_CHECKING:
    from PIL.Image import Image

TRUTH_INK = "#00ffff"
"""The colour of ground truth."""
INKS = ("#ff3b30", "#ffb000", "#7aa2ff", "#d77bff", "#43d463")
"""The models' colours, in turn."""

SMALLEST_SIDE = 480
"""The least pixels of the longer side of a picture: on a smaller one no label can be read."""
LARGEST_AREA = 64_000_000
"""Pixels of the largest image that is decoded."""
SHEET_GAP = 8
"""Pixels between the pictures of a sheet."""
EDGE = "#000000"
"""The colour of the edges of lines and labels."""
BLANK = "#d8d8d8"
"""The colour of an image that is not there."""

Box = Sequence[float]
"""A box [x1, y1, x2, y2] in the pixels of the record."""
Place = tuple[int, int, int, int]
"""A rectangle (left, top, right, bottom) in the pixels of the drawn picture."""


@dataclass(frozen=True)
class Pair:
    """The boxes of a subject and of its object (None for no object), with a label for each triplet of the two."""

    subject: Box
    object: Box | None
    labels: Sequence[str]


@dataclass(frozen=True)
class Layer:
    """What the ground truth or one model has of an image. name: of the source; ink: the colour to draw it in."""

    name: str
    ink: str
    pairs: Sequence[Pair]


@dataclass(frozen=True)
class Overlay:
    """An image and what is drawn on it. size: the width and height that its record states, None if it does not; layers:
    what is drawn, one after the other; file_name: in the folder of images, None if not known; boxes: all boxes of its
    records, drawn or not."""

    image_id: str
    size: tuple[float, float] | None
    layers: Sequence[Layer]
    file_name: str | None = None
    boxes: Sequence[Box] = ()


def image_file(folder: Path | None, file_name: object) -> Path | None:
    """Return the path of a file in a folder, and register it as an input; None if there is no such file, or if the name
    leads out of the folder. The name comes from a record and is not trusted, but links that the user put into the
    folder are followed."""
    if folder is None or not isinstance(file_name, str) or not stays_inside(file_name):
        return None
    path = folder / file_name
    try:
        if not path.is_file():  # opening a pipe would wait for ever
            return None
        register_input(path, is_kept=False)
    except (OSError, ValueError):  # unreadable; or a name that no file can have
        return None
    return path


def tell_missing(folder: object, missing: Sequence[str], images: int) -> None:
    """Print a note if a folder of images lacks some that are drawn; nothing without a folder. missing: the ids of these
    images; images: how many are drawn."""
    if missing and folder is not None:
        note(
            f"{arg('images', str(folder))}: no picture of {len(missing):,} of {images:,} images (the first: "
            f"{missing[0]}); their boxes are drawn on blank sheets"
        )


def open_image(folder: Path | None, file_name: str | None) -> Image | None:
    """Return the image in a file of a folder, as RGB. It is not rotated as its EXIF data may say, since boxes are in
    the pixels as stored. Return None if there is no such file (`image_file`), if it is neither PNG nor JPEG, if it is
    damaged, or if it has more than LARGEST_AREA pixels."""
    from PIL import Image

    path = image_file(folder, file_name)
    if path is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of oddities that change no pixel
        try:
            with Image.open(path, formats=["PNG", "JPEG"]) as image:
                return image.convert("RGB") if image.width * image.height <= LARGEST_AREA else None
        except Exception:  # noqa: BLE001 (for a damaged file decoders raise all kinds of exceptions)
            return None


def check_fits(overlay: Overlay, picture: Image) -> None:
    """Raise `DataError` if boxes would be drawn in wrong places: if the picture's shape differs from the record's, or
    if the boxes fit only into the picture turned by 90 degrees."""
    if wrong := misfit(overlay.size, overlay.boxes, picture.size):
        place = overlay.file_name or overlay.image_id
        raise DataError(
            f"{wrong}; give the right image or correct the record",
            place=place,
            field="width" if overlay.size else "boxes",
        )


def draw_overlay(overlay: Overlay, picture: Image | None, longest: int) -> Image:
    """Return a new picture with boxes and labels drawn on an image, and below it a caption: the image's name and the
    colour of each source. picture: the image, None for a blank sheet of its size; longest: the most pixels of the
    longer side. Small images are enlarged to SMALLEST_SIDE."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = _size(overlay, picture)
    longer_side = min(max(width, height, min(SMALLEST_SIDE, longest)), longest)
    scale = longer_side / max(width, height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    # Pillow's own font: with one of the system, another machine would make another picture
    font = ImageFont.load_default(max(12, round(max(size) / 48)))
    caption = _caption(overlay, size[0], font, at_hand=picture is not None)
    canvas = Image.new("RGB", (size[0], size[1] + caption.height), BLANK)
    if picture is not None:
        canvas.paste(picture.resize(size, Image.Resampling.LANCZOS), (0, 0))
    pen = ImageDraw.Draw(canvas)
    stroke = max(2, round(max(size) / 320))
    pairs = [(layer, pair) for layer in overlay.layers for pair in layer.pairs]
    for layer, pair in pairs:  # the subject's box, and the object's dashed one with a line to it
        subject = _scale_box(pair.subject, scale, size)
        _rectangle(pen, subject, layer.ink, stroke)
        if pair.object is not None:
            object_ = _scale_box(pair.object, scale, size)
            _rectangle(pen, object_, layer.ink, stroke, dash=5 * stroke)
            _link(pen, subject, object_, layer.ink, stroke)
    places_of_labels: list[Place] = []
    for layer, pair in pairs:  # labels after all boxes, so that no box covers one
        subject = _scale_box(pair.subject, scale, size)
        _put_labels(pen, pair.labels, subject, size, layer.ink, font, places_of_labels)
    canvas.paste(caption, (0, size[1]))
    return canvas


def sheet(pictures: Sequence[Image]) -> Image:
    """Return one picture with several of about the same size, in about as many rows as columns."""
    from PIL import Image

    column_count = max(1, round(len(pictures) ** 0.5 + 0.2))
    rows = [pictures[start : start + column_count] for start in range(0, len(pictures), column_count)]
    column_width = max(picture.width for picture in pictures) + SHEET_GAP
    heights = [max(picture.height for picture in row) + SHEET_GAP for row in rows]
    canvas = Image.new("RGB", (column_count * column_width + SHEET_GAP, sum(heights) + SHEET_GAP), "#ffffff")
    for row_number, row in enumerate(rows):
        for column, picture in enumerate(row):
            canvas.paste(picture, (SHEET_GAP + column * column_width, SHEET_GAP + sum(heights[:row_number])))
    return canvas


def encode_png(picture: Image) -> bytes:
    """Return a picture as the bytes of a PNG file."""
    data = io.BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()


def _size(overlay: Overlay, picture: Image | None) -> tuple[float, float]:
    """Return the width and height of an image, in the pixels of its boxes: those of its record (unless one is over 20
    times the other), else the picture's, else 1.05 times what all boxes need, but at most 100,000."""
    if overlay.size is not None and max(overlay.size) <= 20 * min(overlay.size):
        return overlay.size
    if picture is not None:
        return float(picture.width), float(picture.height)
    pairs = list(chain.from_iterable(layer.pairs for layer in overlay.layers))
    boxes = [box for box in chain.from_iterable((pair.subject, pair.object) for pair in pairs) if box is not None]
    right = max([0.0, *(max(box[0], box[2]) for box in boxes)])
    bottom = max([0.0, *(max(box[1], box[3]) for box in boxes)])
    width, height = (max(1.0, min(1.05 * edge, 1e5)) for edge in (right, bottom))
    shortest = max(width, height) / 20
    return max(width, shortest), max(height, shortest)


def _scale_box(box: Box, scale: float, size: tuple[int, int]) -> Place:
    """Return a box of a record in the pixels of the drawn picture, with x1 <= x2 and y1 <= y2. Edges that lie outside
    are moved to the picture's edge. scale: from the record's pixels to the picture's; size: the picture's."""

    def inside(edge: float, limit: int) -> int:
        """Return a scaled coordinate, moved into 0 to `limit` - 1."""
        return round(min(max(edge * scale, 0.0), limit - 1.0))

    (x1, x2), (y1, y2) = sorted((box[0], box[2])), sorted((box[1], box[3]))
    return inside(x1, size[0]), inside(y1, size[1]), inside(x2, size[0]), inside(y2, size[1])


def _rectangle(pen: Any, box: Place, ink: str, stroke: int, *, dash: int = 0) -> None:
    """Draw a rectangle with a dark edge. pen: of Pillow (ImageDraw); ink: the colour; stroke: the width of its lines in
    pixels; dash: the length of the dashes, 0 for solid lines."""
    x1, y1, x2, y2 = box
    corners = [(x1, y1), (x2, y1), (x2, y2), (x1, y2), (x1, y1)]
    for colour, width in ((EDGE, stroke + 2), (ink, stroke)):  # the wider dark line first, so that its rim stays
        for (ax, ay), (bx, by) in pairwise(corners):
            length = max(abs(bx - ax), abs(by - ay), 1)
            dash_length = dash or length
            for start in range(0, length, dash_length + 3 * stroke):
                begin, end = start / length, min(start + dash_length, length) / length
                points = [(ax + (bx - ax) * share, ay + (by - ay) * share) for share in (begin, end)]
                pen.line(points, fill=colour, width=width)


def _link(pen: Any, subject: Place, object_: Place, ink: str, stroke: int) -> None:
    """Draw a line from the middle of the subject's box to the middle of the object's, with a dot at its end. pen: of
    Pillow (ImageDraw); ink: the colour; stroke: the line's width in pixels."""
    (x1, y1), (x2, y2) = (((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in (subject, object_))
    dot = stroke + 1
    pen.line((x1, y1, x2, y2), fill=EDGE, width=stroke + 2)
    pen.line((x1, y1, x2, y2), fill=ink, width=stroke)
    pen.ellipse((x2 - dot, y2 - dot, x2 + dot, y2 + dot), fill=ink, outline=EDGE)


def _put_labels(
    pen: Any, labels: Sequence[str], box: Place, size: tuple[int, int], ink: str, font: Any, occupied: list[Place]
) -> None:
    """Draw a pair's labels as a block, one below the other, where no other labels are: above the box's upper edge, else
    at the nearest free height below that, else further up. If nothing is free, above the edge all the same. Labels
    beyond the picture's height are left out.

    pen: of Pillow (ImageDraw); box: the subject's; size: of the picture; ink: the block's colour; occupied: the places
    of the blocks drawn so far, to which this one's is added."""
    (width, height), line_height = size, _line_height(font)
    texts = [fit_text(pen, text, font, width - 8) for text in labels[: max(1, height // line_height)]]
    block_width = max(round(pen.textlength(text, font)) for text in texts) + 8
    block_height = line_height * len(texts) + 2
    left = max(0, min(box[0], width - block_width))
    preferred_top = max(0, min(box[1] - block_height, height - block_height))

    def is_free(top: int) -> bool:
        """Return whether a block at this height overlaps no other."""
        right, bottom = left + block_width, top + block_height
        return not any(left < x2 and x1 < right and top < y2 and y1 < bottom for x1, y1, x2, y2 in occupied)

    step = max(1, line_height // 2)
    tops_below = range(preferred_top, max(height - block_height, preferred_top) + 1, step)
    tops_above = range(preferred_top, -1, -step)
    top = next(filter(is_free, [*tops_below, *tops_above]), preferred_top)
    place = (left, top, left + block_width, top + block_height)
    occupied.append(place)
    pen.rectangle(place, fill=ink, outline=EDGE)
    for number, text in enumerate(texts):
        pen.text((left + 4, top + 1 + number * line_height), text, fill="#000000", font=font)


def _caption(overlay: Overlay, width: int, font: Any, *, at_hand: bool) -> Image:
    """Return the strip below a picture, `width` pixels wide: the image's name, then the colour and name of each source.
    at_hand: whether the image's file was there; if not, the caption says so."""
    from PIL import Image, ImageDraw

    name = overlay.image_id + ("" if at_hand else " (image not at hand)")
    rows = [(name, ""), *((layer.name, layer.ink) for layer in overlay.layers)]
    line_height = _line_height(font)
    caption = Image.new("RGB", (width, len(rows) * line_height + 6), "#ffffff")
    pen = ImageDraw.Draw(caption)
    square_side = round(line_height * 0.6)
    for row, (text, ink) in enumerate(rows):
        left, top = 4, 2 + row * line_height
        if ink:
            square_top = top + (line_height - square_side) // 2
            pen.rectangle((4, square_top, 4 + square_side, square_top + square_side), fill=ink, outline=EDGE)
            left += line_height
        pen.text((left, top), fit_text(pen, text, font, width - left - 4), fill="#000000", font=font)
    return caption


def _line_height(font: Any) -> int:
    """Return the height in pixels of a line of text."""
    return int(sum(font.getmetrics()) + 2)


def fit_text(pen: Any, text: str, font: Any, room: int) -> str:
    """Return a text in visible characters; one wider than `room` pixels is cut and ends in three dots. pen: of Pillow
    (ImageDraw), which measures it."""
    text = visible(text[:300])
    if pen.textlength(text, font) <= room:
        return text
    while text and pen.textlength(text + "...", font) > room:
        text = text[:-1]
    return text + "..."
