"""Drawing triplets on their image, for folders of pictures and for sheets of several.

Ground truth is cyan, and each model has its colour; the subject's box is solid and the object's dashed. Lines have a
dark edge, so that they are seen on any picture. A pair has a number at its subject's box, and its labels stand beside
this number below the picture, where they hide nothing. Needs Pillow.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hoicli.errors import DataError, arg, visible
from hoicli.io.file_claims import register_input
from hoicli.io.messages import note
from hoicli.io.outputs import stays_inside
from hoicli.records.picture_size import describe_misfit

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
BLANK, PAGE = "#d8d8d8", "#ffffff"
"""The colours of an image that is not there, and of the page around pictures."""
LINE_STYLES = "solid: subject, dashed: object"
"""What a legend says of the two boxes of a pair."""

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

    def pairs_with_inks(self) -> Iterator[tuple[str, Pair]]:
        """Yield each pair after the colour to draw it in."""
        for layer in self.layers:
            for pair in layer.pairs:
                yield layer.ink, pair


def image_file(folder: Path | None, file_name: object) -> Path | None:
    """Return the path of a file in a folder, and register it as an input; None if there is no such file. The name is
    from a record: one that leads out of the folder is not trusted, but links that the user put there are followed."""
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
    if wrong := describe_misfit(overlay.size, overlay.boxes, picture.size):
        place = overlay.file_name or overlay.image_id
        raise DataError(
            f"{wrong}; give the right image or correct the record",
            place=place,
            field="width" if overlay.size else "boxes",
        )


def draw_overlay(overlay: Overlay, picture: Image | None, longest: int) -> Image:
    """Return a new picture with boxes and numbers drawn on an image, and a caption below it: the image's name, then the
    labels of each number. picture: the image, None for a blank sheet of its size; longest: the most pixels of the
    longer side. Small images are enlarged to SMALLEST_SIDE."""
    from PIL import Image, ImageDraw

    width, height = _size(overlay, picture)
    longer_side = min(max(width, height, min(SMALLEST_SIDE, longest)), longest)
    scale = longer_side / max(width, height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    font = _font(max(size))
    canvas = Image.new("RGB", size, BLANK)
    if picture is not None:
        canvas.paste(picture.resize(size, Image.Resampling.LANCZOS), (0, 0))
    pen = ImageDraw.Draw(canvas)
    stroke = max(2, round(max(size) / 320))
    pairs = list(overlay.pairs_with_inks())
    for ink, pair in pairs:  # the subject's box, and the object's dashed one with a line to it
        subject = _scale_box(pair.subject, scale, size)
        _rectangle(pen, subject, ink, stroke)
        if pair.object is not None:
            object_ = _scale_box(pair.object, scale, size)
            _rectangle(pen, object_, ink, stroke, dash=5 * stroke)
            _link(pen, subject, object_, ink, stroke)
    occupied: list[Place] = []
    for number, (ink, pair) in enumerate(pairs, start=1):  # numbers after all boxes, so that no box covers one
        _put_number(pen, number, _scale_box(pair.subject, scale, size), size, ink, font, occupied)
    return stack([canvas, _caption(overlay, size[0], font, at_hand=picture is not None)])


def stack(pictures: Sequence[Image]) -> Image:
    """Return one picture with several, one below the other."""
    from PIL import Image

    size = max(picture.width for picture in pictures), sum(picture.height for picture in pictures)
    canvas, top = Image.new("RGB", size, PAGE), 0
    for picture in pictures:
        canvas.paste(picture, (0, top))
        top += picture.height
    return canvas


def sheet(pictures: Sequence[Image]) -> Image:
    """Return one picture with several of about the same size, in about as many rows as columns."""
    from PIL import Image

    column_count = max(1, round(len(pictures) ** 0.5 + 0.2))
    rows = [pictures[start : start + column_count] for start in range(0, len(pictures), column_count)]
    column_width = max(picture.width for picture in pictures) + SHEET_GAP
    heights = [max(picture.height for picture in row) + SHEET_GAP for row in rows]
    canvas = Image.new("RGB", (column_count * column_width + SHEET_GAP, sum(heights) + SHEET_GAP), PAGE)
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


def _put_number(
    pen: Any, number: int, box: Place, size: tuple[int, int], ink: str, font: Any, occupied: list[Place]
) -> None:
    """Draw a pair's number where no other number is: along the box's upper edge, outside, else in the nearest row above
    that, else below. If nothing is free, at the box's corner all the same.

    pen: of Pillow (ImageDraw); box: the subject's; size: of the picture; ink: the number's colour; occupied: the places
    of the numbers drawn so far, to which this one's is added."""
    (right_end, lower_end), width, height = size, _number_width(pen, number, font), _line_height(font)
    first_left = max(0, min(box[0], right_end - width))
    first_top = max(0, min(box[1] - height, lower_end - height))
    lefts = range(first_left, min(max(box[2], first_left + 4 * width), right_end) - width + 1, width) or [first_left]
    tops_below = range(first_top + height, lower_end - height + 1, height)
    tops = [first_top, *range(first_top - height, -1, -height), *tops_below]

    def is_free(corner: tuple[int, int]) -> bool:
        """Return whether a number with this upper left corner (top, left) overlaps no other."""
        top, left = corner
        right, bottom = left + width, top + height
        return not any(left < x2 and x1 < right and top < y2 and y1 < bottom for x1, y1, x2, y2 in occupied)

    top, left = next(filter(is_free, product(tops, lefts)), (first_top, first_left))
    occupied.append(_draw_number(pen, number, (left, top), ink, font))


def _draw_number(pen: Any, number: int, corner: tuple[int, int], ink: str, font: Any) -> Place:
    """Draw a number on a ground of its colour and return its place. pen: of Pillow (ImageDraw); corner: upper left."""
    left, top = corner
    place = left, top, left + _number_width(pen, number, font) - 1, top + _line_height(font) - 1
    pen.rectangle(place, fill=ink, outline=EDGE)
    pen.text((left + 4, top + 1), str(number), fill=EDGE, font=font)
    return place


def _number_width(pen: Any, number: int, font: Any) -> int:
    """Return the width in pixels of a number with its ground."""
    return int(pen.textlength(str(number), font)) + 8


def _caption(overlay: Overlay, width: int, font: Any, *, at_hand: bool) -> Image:
    """Return the strip below a picture, `width` pixels wide: the image's name, then the labels of each pair beside its
    number. at_hand: whether the image's file was there; if not, the caption says so."""
    from PIL import Image, ImageDraw

    ruler = ImageDraw.Draw(Image.new("RGB", (1, 1)))  # measures texts before the strip's height is known
    pairs = list(overlay.pairs_with_inks())
    labels_left = 8 + _number_width(ruler, len(pairs), font)
    lines_of_pairs = [_join_labels(ruler, pair.labels, font, width - labels_left - 4) for _, pair in pairs]
    line_count = 1 + sum(map(len, lines_of_pairs))
    line_height = _line_height(font)
    caption = Image.new("RGB", (width, line_count * line_height + 2 * len(pairs) + 6), PAGE)
    pen = ImageDraw.Draw(caption)
    name = overlay.image_id + ("" if at_hand else " (image not at hand)")
    pen.text((4, 2), fit_text(pen, name, font, width - 8), fill="#000000", font=font)
    top = 4 + line_height
    for number, ((ink, _), lines) in enumerate(zip(pairs, lines_of_pairs, strict=True), start=1):
        _draw_number(pen, number, (4, top), ink, font)
        for line in lines:
            pen.text((labels_left, top + 1), line, fill="#000000", font=font)
            top += line_height
        top += 2
    return caption


def _join_labels(pen: Any, labels: Sequence[str], font: Any, room: int) -> list[str]:
    """Return labels with commas between them, in lines of at most `room` pixels; a longer label is cut."""
    lines = [fit_text(pen, labels[0], font, room)]
    for label in labels[1:]:
        text = fit_text(pen, label, font, room)
        if pen.textlength(f"{lines[-1]}, {text}", font) <= room:
            lines[-1] += f", {text}"
        else:
            lines[-1] += ","
            lines.append(text)
    return lines


def draw_legend(layers: Sequence[Layer], width: int) -> Image:
    """Return a strip, `width` pixels wide, that says what colours and lines mean: for a picture or a whole sheet."""
    from PIL import Image, ImageDraw

    font, gap = _font(SMALLEST_SIDE), 4
    line_height = _line_height(font)
    square = round(line_height * 0.6)
    pen = ImageDraw.Draw(Image.new("RGB", (1, 1)))
    inks = [*(layer.ink for layer in layers), ""]
    texts = [
        fit_text(pen, text, font, width - line_height - 2 * gap)
        for text in (*(layer.name for layer in layers), LINE_STYLES)
    ]
    places, x, y = [], gap, gap
    for ink, text in zip(inks, texts, strict=True):
        length = (line_height if ink else 0) + round(pen.textlength(text, font)) + 4 * gap
        if x > gap and x + length > width:  # the next line
            x, y = gap, y + line_height
        places.append((x, y))
        x += length
    legend = Image.new("RGB", (width, y + line_height + gap), PAGE)
    pen = ImageDraw.Draw(legend)
    for ink, text, (left, top) in zip(inks, texts, places, strict=True):
        if ink:
            above = top + (line_height - square) // 2
            pen.rectangle((left, above, left + square, above + square), fill=ink, outline=EDGE)
        pen.text((left + (line_height if ink else 0), top), text, fill="#000000", font=font)
    return legend


def _font(side: int) -> Any:
    """Return Pillow's own font, the same on every machine, for a picture whose longer side has so many pixels."""
    from PIL import ImageFont

    return ImageFont.load_default(max(12, round(side / 48)))


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
