"""Image files: JPEG and PNG into pixels, and corrupted pixels into the same kind of file.

Pixels are read as Pillow reads them without rotation, as the loaders of HOI detectors do, and boxes are in those. What
8-bit grey, RGB or RGBA cannot hold is converted: palettes and CMYK to RGB, 16 bits to 8. A file written carries the
source's EXIF data (with its mark of rotation), colour profile and resolution, and a stamp: how it was made, and
its PSNR and SSIM, by which a later run knows it as finished.
"""

from __future__ import annotations

import io
import json
import os
import struct
import warnings
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from hoicli.corruption.catalogue import JPEG_QUALITY
from hoicli.corruption.pixels import Image
from hoicli.corruption.sensor import decode_jpeg, encode_jpeg
from hoicli.errors import DataError, arg
from hoicli.records.picture_size import TURNED, describe_misfit

LARGEST_SIDE = 30_000
"""Pixels; OpenCV's warps count the pixels of a side in 16 bits."""

LARGEST_AREA = 64_000_000
"""Pixels. Photographs have up to 50 million; a corruption takes a hundred bytes for each."""

FORMATS = ("JPEG", "PNG")
"""The formats whose decoders are used (JPEG's also for MPO); Pillow has dozens."""
STAMP = b"hoicli corrupt "
"""The beginning of the comment (JPEG) or text chunk (PNG) of a written file; JSON follows."""
STAMP_WITHIN = 4096
"""Bytes from a file's start that hold its stamp: it is written before anything long."""

_PNG_HEAD = 8 + 12 + 13
"""Bytes of the signature and IHDR, which is the first chunk."""
_PNG_END, _JPEG_END = b"IEND\xaeB`\x82", b"\xff\xd9"
_JPEG_TABLES = b"\xff\xdb"
"""The beginning of the first table of a JPEG file; before it is only the head."""
_LONGEST_EXIF = 65_533
"""The most bytes that fit into a JPEG's segment."""


@dataclass(frozen=True)
class Picture:
    """A decoded image file. pixels: uint8 [height, width, channels], with 1 channel, 3 (RGB) or 4 (RGBA); kind: "JPEG"
    or "PNG"; metadata: options for Pillow (`exif`, `icc_profile`, `dpi`) that give files made of it its metadata."""

    pixels: Image
    kind: str
    metadata: Mapping[str, Any]

    @cached_property
    def head(self) -> bytes:
        """Return the beginning of a JPEG file with the picture's metadata, up to its first table, as Pillow writes it.
        OpenCV, which encodes the pixels faster, writes no metadata."""
        dot = PIL.Image.new("L", (1, 1))
        plain, full = _encode_image(dot, "JPEG"), _encode_image(dot, "JPEG", **self.metadata)
        metadata_length = len(full) - len(plain)
        return full[: metadata_length + plain.index(_JPEG_TABLES)]


def check_size(width: int, height: int) -> None:
    """Raise `DataError` for an image of more pixels, or a longer side, than can be corrupted. Its message has the image
    as its subject: "is 40000 x 10 pixels; ..."."""
    if max(width, height) > LARGEST_SIDE:
        raise DataError(f"is {width} x {height} pixels; at most {LARGEST_SIDE:,} a side can be warped")
    if width * height > LARGEST_AREA:
        raise DataError(f"is {width} x {height} pixels, more than {LARGEST_AREA:,}; make it smaller first")


def decode(data: bytes) -> Picture:
    """Return the picture in the bytes of an image file. Raises `DataError`, whose message does not name the file, if
    they are no complete JPEG or PNG image, or a too large one."""
    if not data:
        raise DataError("the file is empty (0 bytes); fetch it again", code="damaged")
    try:
        with warnings.catch_warnings():
            # Warnings of odd metadata and of large pictures do not matter: the pixels are what counts.
            warnings.simplefilter("ignore")
            image = PIL.Image.open(io.BytesIO(data), formats=FORMATS)
            check_size(image.width, image.height)
            image.load()
            kind = "PNG" if image.format == "PNG" else "JPEG"
            pixels = _channels(image)
    except (DataError, MemoryError):
        raise
    except PIL.UnidentifiedImageError:
        raise DataError("is no image that can be read; give JPEG or PNG", code="damaged") from None
    except PIL.Image.DecompressionBombError:
        raise DataError("has more pixels than an image should (Pillow's limit); make it smaller first") from None
    except Exception as error:  # noqa: BLE001 (Pillow's decoders raise whatever a damaged file leads them to)
        problem = f"is damaged ({' '.join(str(error).split()) or type(error).__name__}); fetch it again"
        raise DataError(problem, code="damaged") from None
    metadata: dict[str, Any] = {key: image.info[key] for key in ("exif", "icc_profile", "dpi") if key in image.info}
    if image.mode == "CMYK":  # its colour profile does not fit the RGB that we write
        metadata = {}
    if len(metadata.get("exif", b"")) > _LONGEST_EXIF:
        del metadata["exif"]
    return Picture(pixels, kind, metadata)


def read_picture(record: Mapping[str, Any], path: Path, place: str) -> tuple[bytes, Picture]:
    """Return (the bytes, the picture) of the image file at `path`, which `record` names. Raises `DataError`, with the
    place of the record, for a file that is not there or cannot be read, and for one whose size contradicts the record
    or its boxes: it must be another picture."""
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait, a device might never end
            raise FileNotFoundError
        data = path.read_bytes()
    except FileNotFoundError:
        problem = f"no such file: {str(path)!r}; is {arg('images')} right?"
        raise DataError(problem, place=place, field="file_name", code="missing-picture") from None
    except OSError as error:
        problem = f"{str(path)!r}: {error.strerror}"
        raise DataError(problem, place=place, field="file_name", code="missing-picture") from None
    try:
        picture = decode(data)
    except DataError as error:
        problem = f"{record['file_name']!r} {error.problem}"
        raise DataError(problem, place=place, field="file_name", code=error.code) from None
    _check_fits_record(picture, record, place)
    return data, picture


def _check_fits_record(picture: Picture, record: Mapping[str, Any], place: str) -> None:
    """Raise `DataError`, with the place of the record, if the picture has another size than the record says, or if the
    record does not say its size and its boxes do not fit the picture."""
    height, width = picture.pixels.shape[:2]
    record_size = record.get("width", width), record.get("height", height)
    if record_size != (width, height):
        turned = TURNED if record_size == (height, width) else ""
        sizes = f"the record says {record_size[0]} x {record_size[1]}, the file has {width} x {height} pixels{turned}"
        raise DataError(f"{sizes}; give the right image or correct the record", place=place, field="width")
    known_size = (width, height) if "width" in record and "height" in record else None
    if problem := describe_misfit(known_size, record.get("boxes") or (), (width, height)):
        raise DataError(f"{problem}; give the right image or correct the record", place=place, field="boxes")


def _channels(image: PIL.Image.Image) -> Image:
    """Return the pixels of a Pillow image as 8-bit values [height, width, channels]: grey, RGB, or RGBA if it has
    transparency. Other modes, such as palettes and CMYK, are converted."""
    if image.mode.startswith("I"):  # 16-bit grey; Pillow's own conversion would cut values off at 255
        grey = np.asarray(image).astype(np.int64)
        return np.rint(grey / 257).clip(0, 255).astype(np.uint8)[:, :, None]  # 65535 / 257 is 255
    if "transparency" in image.info or image.mode in ("LA", "La", "RGBA", "RGBa", "PA"):
        return np.asarray(image.convert("RGBA"), dtype=np.uint8)
    image = image.convert("L" if image.mode in ("1", "L") else "RGB")
    return np.asarray(image, dtype=np.uint8).reshape(image.height, image.width, -1)


def encode(picture: Picture, pixels: Image, *, quality: int = JPEG_QUALITY) -> bytes:
    """Return the bytes of a file with these pixels, of the picture's kind and with its metadata. quality: of a JPEG; at
    JPEG_QUALITY its colours have full resolution, at others, where JPEG is itself the corruption, half of it."""
    if picture.kind == "JPEG":
        data = encode_jpeg(pixels, quality, full_colour=quality == JPEG_QUALITY)
        return picture.head + data[data.index(_JPEG_TABLES) :]  # the head has the metadata
    image = PIL.Image.fromarray(pixels if pixels.shape[2] > 1 else pixels[:, :, 0])
    return _encode_image(image, "PNG", compress_level=1, **picture.metadata)


def _encode_image(image: PIL.Image.Image, kind: str, **options: Any) -> bytes:
    """Return the bytes of an image file that Pillow writes. kind: "JPEG" or "PNG"; options: of Pillow's encoder."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def decoded_pixels(picture: Picture, pixels: Image, data: bytes) -> Image:
    """Return the pixels that a reader of an encoded file gets: those that were encoded, unless JPEG changed them.
    picture: the source, which is of the file's kind; pixels: those that were encoded; data: the file's bytes."""
    return decode_jpeg(data).reshape(pixels.shape) if picture.kind == "JPEG" else pixels


def add_stamp(picture: Picture, data: bytes, stamp: dict[str, Any]) -> bytes:
    """Return the encoded file `data` with a stamp, a JSON object that says how it was made, as a comment that image
    viewers ignore."""
    text = STAMP + json.dumps(stamp, separators=(",", ":")).encode()
    if picture.kind == "JPEG":
        # after the JFIF header (FF E0, then its length), which must be the first segment; FF FE begins a comment
        insert_at = 4 + int.from_bytes(data[4:6], "big") if data[2:4] == b"\xff\xe0" else 2
        return data[:insert_at] + b"\xff\xfe" + struct.pack(">H", len(text) + 2) + text + data[insert_at:]
    # a PNG chunk: its length without the type, type, content, and the checksum of both
    chunk = b"tEXtComment\0" + text
    length, checksum = struct.pack(">I", len(chunk) - 4), struct.pack(">I", zlib.crc32(chunk))
    return data[:_PNG_HEAD] + length + chunk + checksum + data[_PNG_HEAD:]


def stamp_of(path: Path) -> dict[str, Any] | None:
    """Return the stamp of an image file, a JSON object in a comment that says how it was made; None if
    there is no such file, it has no stamp, or its end is missing, as after a power cut."""
    try:
        with open(path, "rb") as file:
            head = file.read(STAMP_WITHIN)
            file.seek(max(0, file.seek(0, os.SEEK_END) - len(_PNG_END)))
            end = file.read()
    except OSError:
        return None
    stamp_at = head.find(STAMP)
    if stamp_at < 0 or not end.endswith((_PNG_END, _JPEG_END)):
        return None
    with suppress(ValueError):
        stamp, _ = json.JSONDecoder().raw_decode(head[stamp_at + len(STAMP) :].decode("latin-1"))
        if type(stamp) is dict:
            return stamp
    return None
