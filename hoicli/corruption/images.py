"""Image files: JPEG and PNG into pixels, and corrupted pixels into the same kind of file.

Pixels are read as Pillow reads them without rotation, as the loaders of HOI detectors do, and boxes are in those. What
8-bit grey, RGB or RGBA cannot hold is converted: palettes and CMYK to RGB, 16 bits to 8. A file written carries the
source's EXIF data (with its mark of rotation), colour profile and resolution, and a stamp: how it was made, and
its PSNR and SSIM, by which a later run knows it as finished.
"""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image

from hoicli.corruption.catalogue import JPEG_QUALITY
from hoicli.corruption.pixels import Image
from hoicli.corruption.sensor import decode_jpeg, encode_jpeg
from hoicli.errors import DataError

LARGEST_SIDE = 30_000
"""Pixels; OpenCV's warps count them in 16 bits."""

LARGEST_AREA = 64_000_000
"""Pixels. Photographs have up to 50 million; a corruption takes a hundred bytes for each."""

FORMATS = ("JPEG", "PNG")
"""The formats whose decoders are used (JPEG's also for MPO); Pillow has dozens."""
STAMP = b"hoicli corrupt "
"""What the comment (JPEG) or the text chunk (PNG) of a written file begins with; JSON follows."""
STAMP_WITHIN = 4096
"""Bytes from a file's start that hold its stamp: it is written before anything long."""

_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_END, _JPEG_END = b"IEND\xaeB`\x82", b"\xff\xd9"
_KEPT_CHUNKS = (b"iCCP", b"sRGB", b"gAMA", b"cHRM", b"pHYs", b"eXIf")
_KEPT_SEGMENTS = {0xE1: b"Exif\0\0", 0xE2: b"ICC_PROFILE\0"}


@dataclass(frozen=True)
class Picture:
    """A decoded file. pixels: uint8 [height, width, 1 or 3 (RGB)]; alpha: uint8 [height, width, 1], where it has any.

    kind: "JPEG" or "PNG"; metadata: the JPEG segments or PNG chunks that go into every file made of it.
    """

    pixels: Image
    alpha: Image | None
    kind: str
    metadata: bytes


def file_bytes(path: Path) -> bytes:
    """The bytes of an image file. Raises `OSError`, also for what is no file: a pipe would block, a device never
    end."""
    if path.exists() and not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "is no file")
    return path.read_bytes()


def check_size(width: int, height: int) -> None:
    """Raises `DataError` for more pixels than can be corrupted."""
    if max(width, height) > LARGEST_SIDE:
        raise DataError(f"is {width} x {height} pixels; at most {LARGEST_SIDE:,} a side can be warped")
    if width * height > LARGEST_AREA:
        raise DataError(f"is {width} x {height} pixels, more than {LARGEST_AREA:,}; make it smaller first")


def decode(data: bytes) -> Picture:
    """The picture in a file's bytes. Raises `DataError`, without a place, for what is no whole JPEG or PNG image."""
    if not data:
        raise DataError("the file is empty (0 bytes); fetch it again", code="damaged")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd metadata and large pictures: the pixels are what counts
            image = PIL.Image.open(io.BytesIO(data), formats=FORMATS)
            check_size(image.width, image.height)
            image.load()
            kind = "PNG" if image.format == "PNG" else "JPEG"
            pixels, alpha = _channels(image)
    except DataError:
        raise
    except PIL.UnidentifiedImageError:
        raise DataError("is no image that can be read; give JPEG or PNG", code="damaged") from None
    except PIL.Image.DecompressionBombError:
        raise DataError("has more pixels than an image should (Pillow's limit); make it smaller first") from None
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 (Pillow's decoders raise whatever a damaged file leads them to)
        problem = f"is damaged ({' '.join(str(error).split()) or type(error).__name__}); fetch it again"
        raise DataError(problem, code="damaged") from None
    if kind == "PNG":
        metadata = b"".join(chunk for name, chunk in _chunks(data) if name in _KEPT_CHUNKS)
    else:  # a colour profile of CMYK is none of RGB
        metadata = b"" if image.mode == "CMYK" else b"".join(_segments(data))
    return Picture(pixels, alpha, kind, metadata)


def _channels(image: PIL.Image.Image) -> tuple[Image, Image | None]:
    """(pixels, alpha)."""
    if image.mode.startswith("I"):  # 16-bit grey; Pillow's own conversion would cut it off at 255
        grey = np.asarray(image).astype(np.int64)
        return np.rint(grey / 257).clip(0, 255).astype(np.uint8)[:, :, None], None
    if "transparency" in image.info or image.mode in ("LA", "La", "RGBA", "RGBa", "PA"):
        values = np.asarray(image.convert("RGBA"), dtype=np.uint8)
        return np.ascontiguousarray(values[:, :, :3]), np.ascontiguousarray(values[:, :, 3:])
    image = image.convert("L" if image.mode in ("1", "L") else "RGB")
    return np.asarray(image, dtype=np.uint8).reshape(image.height, image.width, -1), None


def encode(picture: Picture, pixels: Image, alpha: Image | None, *, quality: int = JPEG_QUALITY) -> bytes:
    """A file of the picture's kind that holds these pixels, without its stamp and metadata (`finished` adds them).

    JPEG: at `quality`, with colours at full resolution if that is JPEG_QUALITY (otherwise JPEG is the corruption).
    """
    if picture.kind == "JPEG":
        return encode_jpeg(pixels, quality, full_colour=quality == JPEG_QUALITY)
    if alpha is not None:
        coded = cv2.cvtColor(np.concatenate([pixels, alpha], axis=2), cv2.COLOR_RGBA2BGRA)
    else:
        coded = cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR) if pixels.shape[2] == 3 else pixels
    return bytes(cv2.imencode(".png", coded)[1])


def shown(picture: Picture, pixels: Image, data: bytes) -> Image:
    """What a reader of the encoded file sees: the pixels themselves, unless JPEG changed them."""
    return decode_jpeg(data).reshape(pixels.shape) if picture.kind == "JPEG" else pixels


def finished(picture: Picture, data: bytes, stamp: dict[str, Any]) -> bytes:
    """The encoded file with its stamp and the source's metadata."""
    text = STAMP + json.dumps(stamp, separators=(",", ":")).encode()
    if picture.kind == "JPEG":
        # behind the JFIF header, which is to be the first segment
        at = 4 + int.from_bytes(data[4:6], "big") if data[2:4] == b"\xff\xe0" else 2
        return data[:at] + _segment(0xFE, text) + picture.metadata + data[at:]
    at = len(_PNG) + 12 + 13  # behind IHDR
    return data[:at] + _chunk(b"tEXt", b"Comment\0" + text) + picture.metadata + data[at:]


def stamp_of(path: Path) -> dict[str, Any] | None:
    """The stamp of a finished file; None where there is no such file, it has none, or it is cut off (a power cut)."""
    try:
        with open(path, "rb") as file:
            head = file.read(STAMP_WITHIN)
            file.seek(max(0, file.seek(0, os.SEEK_END) - len(_PNG_END)))
            end = file.read()
    except OSError:
        return None
    at = head.find(STAMP)
    if at < 0 or not end.endswith((_PNG_END, _JPEG_END)):
        return None
    with suppress(ValueError):
        stamp, _ = json.JSONDecoder().raw_decode(head[at + len(STAMP) :].decode("latin-1"))
        if type(stamp) is dict:
            return stamp
    return None


def _segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content


def _segments(data: bytes) -> Iterator[bytes]:
    """The JPEG segments to keep, up to the picture itself."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == 0xFF:  # padding
            at += 1
            continue
        if marker in _KEPT_SEGMENTS and data[at + 4 : at + 2 + length].startswith(_KEPT_SEGMENTS[marker]):
            yield data[at : at + 2 + length]
        at += 2 + max(length, 2)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(name, whole chunk) of a PNG file."""
    at = len(_PNG)
    while at + 12 <= len(data):
        length = int.from_bytes(data[at : at + 4], "big")
        yield data[at + 4 : at + 8], data[at : at + 12 + length]
        at += 12 + length
