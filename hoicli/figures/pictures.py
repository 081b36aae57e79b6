"""Pictures as pages embed them: read from a folder by names out of records, which are not trusted, and known by their
bytes."""

from __future__ import annotations

import base64
import io
import struct
import warnings
from pathlib import Path

from hoicli.io.claims import reads
from hoicli.io.outputs import stays_inside

LARGEST_IMAGE = 8 * 1024 * 1024
"""Bytes; a larger image is not embedded, for a page of such would not open."""

LARGEST_AREA = 64_000_000
"""Pixels; a larger image is not unpacked to be scaled down."""

QUALITY = 82
"""Of the JPEG data of images that were scaled down."""

Size = tuple[float, float]


class Pictures:
    """The images at hand, each of them once a symbol of the page, which every card that shows it uses.

    longest: larger ones are scaled down to a side of so many pixels, where Pillow is installed; None: as they are.
    """

    def __init__(self, folder: Path | None, *, longest: int | None = None) -> None:
        self._folder = folder
        self._longest = longest
        self._known: dict[str, tuple[str, Size] | None] = {}

    def symbol(self, file_name: object) -> str:
        """What the page needs before the image is first shown: its data as a symbol; nothing after that, nor for an
        image that is not at hand."""
        if self._folder is None or not isinstance(file_name, str) or file_name in self._known:
            return ""
        self._known[file_name] = None
        data = image_bytes(self._folder, file_name)
        found = _kind_and_size(data)
        if found is None:
            return ""
        kind, size = found
        if self._longest is not None and max(size) > self._longest:
            kind, data = _scaled_down(kind, data, size, self._longest)
            if not data:
                return ""
        name = f"i{len(self._known) - 1}"
        self._known[file_name] = name, size
        # `use` scales no image, so each is drawn one unit wide and high, and the card stretches it to its own size.
        return (
            f'<svg class="store" aria-hidden="true"><defs><image id="{name}" width="1" height="1" '
            f'preserveAspectRatio="none" href="data:{kind};base64,{base64.b64encode(data).decode()}"/></defs></svg>\n'
        )

    def known(self, file_name: object) -> tuple[str, Size] | None:
        """(id of the symbol, width and height) of an image that was asked for; None when it is not at hand."""
        return self._known.get(file_name) if isinstance(file_name, str) else None


def image_bytes(folder: Path | None, file_name: str, largest: int = LARGEST_IMAGE) -> bytes:
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


def _kind_and_size(data: bytes) -> tuple[str, Size] | None:
    """("image/png" or "image/jpeg", (width, height)) by the bytes themselves; None for anything else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and data[12:16] == b"IHDR" and len(data) >= 24:
        size = struct.unpack(">II", data[16:24])
        return ("image/png", size) if all(size) else None
    if data.startswith(b"\xff\xd8\xff"):
        size = _jpeg_size(data)
        return ("image/jpeg", size) if all(size) else None
    return None


def _jpeg_size(data: bytes) -> tuple[int, int]:
    """Width and height from the frame header; (0, 0) when there is none. Segments before it are stepped over."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):  # a frame, not a table or an extension
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # no length follows
            at += 2
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return 0, 0


def _scaled_down(kind: str, data: bytes, size: Size, longest: int) -> tuple[str, bytes]:
    """(kind, data) of the image with its longer side at `longest` pixels, unturned; as it is without Pillow; no data
    for an image that cannot be unpacked."""
    try:
        from PIL import Image
    except ImportError:
        return kind, data
    if size[0] * size[1] > LARGEST_AREA:
        return kind, b""
    scaled = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what Pillow finds odd about a file is no news to whoever opens the page
        try:
            with Image.open(io.BytesIO(data), formats=["PNG", "JPEG"]) as image:
                image.draft("RGB", (longest, longest))  # a JPEG is unpacked at a fraction of its size
                small = image.convert("RGB")
            small.thumbnail((longest, longest))
            small.save(scaled, "JPEG", quality=QUALITY)
        except Exception:  # noqa: BLE001 (whatever is wrong with the data, the card shows an empty sheet)
            return kind, b""
    return "image/jpeg", scaled.getvalue()
