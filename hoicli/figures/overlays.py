"""Triplets drawn on their image, as a picture of its own: for folders of pictures and contact sheets.

A colour for each stream (ground truth is cyan), a solid box for the subject and a dashed one for the object. Every
stroke has a dark edge and every label a ground of its own, so that both show on any picture. Needs Pillow.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hoicli.errors import visible
from hoicli.io.claims import reads
from hoicli.io.outputs import stays_inside

if TYPE_CHECKING:
    from PIL.Image import Image

TRUTH_INK = "#00ffff"
INKS = ("#ff3b30", "#ffb000", "#7aa2ff", "#d77bff", "#43d463")
"""Of the models, in turn."""

SMALLEST_SIDE = 480
"""Pixels of the longer side of a picture at least: on a smaller one no label can be read."""
LARGEST_FILE = 1 << 26
"""Bytes of an image file; photographs have a tenth."""
LARGEST_AREA = 64_000_000
"""Pixels; a larger image is not unpacked."""
SHEET_GAP = 8
EDGE = "#000000"
BLANK = "#d8d8d8"

Box = Sequence[float]


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
    """An image and what is drawn on it; size: its width and height in the pixels of the boxes, None if not known."""

    image_id: str
    size: tuple[float, float] | None
    layers: Sequence[Layer]


def image_bytes(folder: Path | None, file_name: str, largest: int) -> bytes:
    """What the file holds; nothing where the name leads out of the folder, or to no file, or to one over `largest`.

    The name is not trusted, the folder is: links that its owner put there are followed.
    """
    if folder is None or not stays_inside(file_name):
        return b""
    try:
        path = folder / file_name
        if not path.is_file() or path.stat().st_size > largest:  # is_file: a pipe would block for ever
            return b""
        reads(path, kept=False)
        return path.read_bytes()
    except (OSError, ValueError):  # unreadable; or a name that no file can have
        return b""


def opened(folder: Path | None, file_name: str | None) -> Image | None:
    """The image of a name in a folder, unturned, for boxes are in stored pixels; None where it is not at hand, is
    neither PNG nor JPEG, or has too many pixels. Names are not trusted (`image_bytes`)."""
    from PIL import Image

    data = image_bytes(folder, file_name, LARGEST_FILE) if file_name else b""
    if not data:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow finds odd about a file changes no pixel
        try:
            with Image.open(io.BytesIO(data), formats=["PNG", "JPEG"]) as image:
                return image.convert("RGB") if image.width * image.height <= LARGEST_AREA else None
        except Exception:  # noqa: BLE001 (decoders raise whatever a damaged file leads them to)
            return None


def drawn(overlay: Overlay, picture: Image | None, longest: int) -> Image:
    """The picture, or a blank sheet of its size, with the boxes and labels, above a line that names the image and the
    colours. Its longer side has at most `longest` pixels, and at least SMALLEST_SIDE if that is less."""
    from PIL import Image, ImageDraw

    width, height = _size(overlay, picture)
    scale = min(max(max(width, height), min(SMALLEST_SIDE, longest)), longest) / max(width, height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    font = _font(max(size))
    caption = _Caption(overlay, picture is not None, size[0], font)
    canvas = Image.new("RGB", (size[0], size[1] + caption.height), "#ffffff")
    if picture is None:
        canvas.paste(BLANK, (0, 0, *size))
    else:
        canvas.paste(picture.resize(size, Image.Resampling.LANCZOS), (0, 0))
    pen = ImageDraw.Draw(canvas)
    stroke = max(2, round(max(size) / 320))
    labels = _Labels(pen, font, size)
    every = [(layer, pair) for layer in overlay.layers for pair in layer.pairs]
    for layer, pair in every:
        boxes = [_scaled(box, scale, size) for box in (pair.subject, pair.object) if box is not None]
        for dashed, box in enumerate(boxes):
            _rectangle(pen, box, layer.ink, stroke, dashed=bool(dashed))
        if len(boxes) == 2:
            _link(pen, boxes, layer.ink, stroke)
    for layer, pair in every:  # over all boxes
        labels.put(_scaled(pair.subject, scale, size), pair.labels, layer.ink)
    pen.rectangle((0, size[1], size[0], canvas.height), fill="#ffffff")
    caption.draw(pen, size[1])
    return canvas


def sheet(pictures: Sequence[Image]) -> Image:
    """Pictures of about one size side by side, in about as many rows as columns."""
    from PIL import Image

    columns = max(1, round(len(pictures) ** 0.5 + 0.2))
    rows = [pictures[at : at + columns] for at in range(0, len(pictures), columns)]
    wide = max(picture.width for picture in pictures) + SHEET_GAP
    heights = [max(picture.height for picture in row) + SHEET_GAP for row in rows]
    whole = Image.new("RGB", (columns * wide + SHEET_GAP, sum(heights) + SHEET_GAP), "#ffffff")
    top = SHEET_GAP
    for row, high in zip(rows, heights, strict=True):
        for number, picture in enumerate(row):
            whole.paste(picture, (SHEET_GAP + number * wide, top))
        top += high
    return whole


def encoded(picture: Image, kind: str = "PNG") -> bytes:
    """The bytes of a PNG file, or of a JPEG."""
    data = io.BytesIO()
    picture.save(data, kind, **({"quality": 88} if kind == "JPEG" else {}))
    return data.getvalue()


def _size(overlay: Overlay, picture: Image | None) -> tuple[float, float]:
    """The size in the pixels of the boxes: as stated, else the picture's, else what holds all boxes."""
    if overlay.size is not None:
        width, height = overlay.size
        if max(width, height) <= 20 * min(width, height):  # else a line: the boxes say more
            return overlay.size
    if picture is not None:
        return float(picture.width), float(picture.height)
    boxes = [
        box
        for layer in overlay.layers
        for pair in layer.pairs
        for box in (pair.subject, pair.object)
        if box is not None
    ]
    sides = [max([1.0, *(min(1.05 * max(box[at], box[at + 2]), 1e5) for box in boxes)]) for at in (0, 1)]
    least = max(sides) / 20
    return max(sides[0], least), max(sides[1], least)


def _font(longest: int) -> Any:
    """Pillow's own font: a file of the system would give other bytes on another machine."""
    from PIL import ImageFont

    return ImageFont.load_default(max(12, round(longest / 48)))


def _scaled(box: Box, scale: float, size: tuple[int, int]) -> tuple[int, int, int, int]:
    """A box in the picture's pixels, its edges in order, and those outside moved to the rim."""
    x1, x2 = sorted((box[0] * scale, box[2] * scale))
    y1, y2 = sorted((box[1] * scale, box[3] * scale))

    def inside(edge: float, limit: int) -> int:
        return round(min(max(edge, 0.0), limit - 1.0))

    return inside(x1, size[0]), inside(y1, size[1]), inside(x2, size[0]), inside(y2, size[1])


def _rectangle(pen: Any, box: tuple[int, int, int, int], ink: str, stroke: int, *, dashed: bool) -> None:
    x1, y1, x2, y2 = box
    sides = ((x1, y1, x2, y1), (x2, y1, x2, y2), (x2, y2, x1, y2), (x1, y2, x1, y1))
    for colour, width in ((EDGE, stroke + 2), (ink, stroke)):
        for side in sides:
            for line in _dashes(side, 5 * stroke, 3 * stroke) if dashed else (side,):
                pen.line(line, fill=colour, width=width)


def _dashes(side: tuple[int, int, int, int], on: int, off: int) -> Iterator[tuple[float, float, float, float]]:
    """The strokes of a broken line."""
    x1, y1, x2, y2 = side
    length = max(abs(x2 - x1), abs(y2 - y1), 1)
    for start in range(0, length, on + off):
        begin, end = start / length, min(start + on, length) / length
        yield x1 + (x2 - x1) * begin, y1 + (y2 - y1) * begin, x1 + (x2 - x1) * end, y1 + (y2 - y1) * end


def _link(pen: Any, boxes: Sequence[tuple[int, int, int, int]], ink: str, stroke: int) -> None:
    """A line from the middle of the subject to that of the object, with a dot at the object's."""
    (x1, y1), (x2, y2) = (((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in boxes)
    dot = stroke + 1
    pen.line((x1, y1, x2, y2), fill=EDGE, width=stroke + 2)
    pen.line((x1, y1, x2, y2), fill=ink, width=stroke)
    pen.ellipse((x2 - dot, y2 - dot, x2 + dot, y2 + dot), fill=ink, outline=EDGE)


class _Labels:
    """Places labels where none stands yet: over a box's upper edge, or else as little below as there is room."""

    def __init__(self, pen: Any, font: Any, size: tuple[int, int]) -> None:
        self._pen, self._font, self._size = pen, font, size
        self._line = _line_height(font)
        self._taken: list[tuple[int, int, int, int]] = []

    def put(self, box: tuple[int, int, int, int], labels: Sequence[str], ink: str) -> None:
        """Draw the labels of a pair, a line each; lines for which there is no room anywhere are left out."""
        width, height = self._size
        texts = [fitted(self._pen, text, self._font, width - 8) for text in labels]
        texts = texts[: max(1, height // self._line)]
        wide = max(round(self._pen.textlength(text, self._font)) for text in texts) + 8
        high = self._line * len(texts) + 2
        left = max(0, min(box[0], width - wide))
        first = max(0, min(box[1] - high, height - high))
        down = range(first, max(height - high, first) + 1, max(1, self._line // 2))
        up = range(first, -1, -max(1, self._line // 2))
        at = next((top for top in (*down, *up) if not self._meets(left, top, wide, high)), first)
        place = (left, at, left + wide, at + high)
        self._taken.append(place)
        self._pen.rectangle(place, fill=ink, outline=EDGE)
        for number, text in enumerate(texts):
            self._pen.text((left + 4, at + 1 + number * self._line), text, fill="#000000", font=self._font)

    def _meets(self, left: int, top: int, wide: int, high: int) -> bool:
        return any(
            left < other[2] and other[0] < left + wide and top < other[3] and other[1] < top + high
            for other in self._taken
        )


class _Caption:
    """The lines below a picture: the image's name, then each stream's colour and name."""

    def __init__(self, overlay: Overlay, there: bool, width: int, font: Any) -> None:
        from PIL import Image, ImageDraw

        pen = ImageDraw.Draw(Image.new("RGB", (1, 1)))
        self._font, self._line = font, _line_height(font)
        name = visible(overlay.image_id) + ("" if there else " (image not at hand)")
        self._parts: list[tuple[int, int, str, str]] = [(4, 0, fitted(pen, name, font, width - 8), "")]
        x, row = 4, 1
        for layer in overlay.layers:
            text = fitted(pen, visible(layer.name), font, width - 16 - self._line)
            wide = round(pen.textlength(text, font)) + self._line + 12
            if x > 4 and x + wide > width:
                x, row = 4, row + 1
            self._parts.append((x, row, text, layer.ink))
            x += wide
        self.height = (row + 1) * self._line + 6

    def draw(self, pen: Any, top: int) -> None:
        """Draw it below `top`."""
        side = round(self._line * 0.6)
        for x, row, text, ink in self._parts:
            y = top + 2 + row * self._line
            if ink:
                mark = y + (self._line - side) // 2
                pen.rectangle((x, mark, x + side, mark + side), fill=ink, outline=EDGE)
                x += self._line
            pen.text((x, y), text, fill="#000000", font=self._font)


def _line_height(font: Any) -> int:
    ascent, descent = font.getmetrics()
    return int(ascent + descent + 2)


def fitted(pen: Any, text: str, font: Any, room: int) -> str:
    """A text as visible characters, cut with an ellipsis to so many pixels."""
    text = visible(text[:300])
    if pen.textlength(text, font) <= room:
        return text
    while text and pen.textlength(text + "...", font) > room:
        text = text[:-1]
    return text + "..."
