"""Image files of every kind are read as detectors read them and written as what they were; damaged ones are told."""

from __future__ import annotations

import struct
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest

from hoicli.corruption.effects import EFFECTS, corrupt
from hoicli.corruption.images import add_stamp, decode, decoded_pixels, encode, stamp_of
from hoicli.errors import DataError
from tests.support.pictures import textured
from tests.support.project import complaint

SCENE = textured(40, 56)


def file_of(image: PIL.Image.Image, kind: str, **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def scene(mode: str = "RGB") -> PIL.Image.Image:
    return PIL.Image.fromarray(SCENE).convert(mode)


def written(data: bytes) -> PIL.Image.Image:
    picture = decode(data)
    image = PIL.Image.open(BytesIO(add_stamp(picture, encode(picture, picture.pixels), {"psnr": 1})))
    image.load()
    return image


@pytest.mark.parametrize("mode", ["1", "L", "RGB", "RGBA"])
def test_png_comes_out_as_it_went_in(mode: str) -> None:
    source = scene(mode)
    if mode == "RGBA":
        source.putalpha(PIL.Image.fromarray(SCENE[:, :, 0]))
    result = written(file_of(source, "PNG"))
    assert result.mode == ("L" if mode == "1" else mode)
    assert (np.asarray(result) == np.asarray(source.convert(result.mode))).all()


@pytest.mark.parametrize(("mode", "becomes"), [("P", "RGB"), ("LA", "RGBA"), ("CMYK", "RGB")])
def test_what_cannot_hold_a_corruption_is_converted(mode: str, becomes: str) -> None:
    source = scene(mode)
    data = file_of(source, "JPEG" if mode == "CMYK" else "PNG")
    picture = decode(data)
    expected = np.asarray(PIL.Image.open(BytesIO(data)).convert(becomes))
    assert (picture.pixels == expected).all()
    assert written(data).mode == becomes


def test_a_palette_with_a_transparent_colour_keeps_it() -> None:
    source = scene("P")
    data = file_of(source, "PNG", transparency=3)
    assert (np.asarray(written(data)) == np.asarray(PIL.Image.open(BytesIO(data)).convert("RGBA"))).all()


def test_sixteen_bits_are_rounded_to_eight_not_cut_off() -> None:
    deep = (SCENE[:, :, 0].astype(np.uint16) * 257 + 100).clip(0, 65535).astype(np.uint16)
    picture = decode(file_of(PIL.Image.fromarray(deep), "PNG"))
    assert (picture.pixels[:, :, 0] == SCENE[:, :, 0]).all()
    colour = np.stack([deep] * 3, axis=2)
    picture = decode(bytes(cv2.imencode(".png", colour)[1]))
    assert np.abs(picture.pixels.astype(int) - SCENE[:, :, :1]).max() <= 1


@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_a_turned_photograph_is_read_unturned_and_stays_marked(orientation: int) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    for kind in ("JPEG", "PNG"):
        data = file_of(scene(), kind, exif=exif)
        picture = decode(data)
        assert picture.pixels.shape == SCENE.shape
        assert (picture.pixels == np.asarray(PIL.Image.open(BytesIO(data)))).all()
        assert written(data).getexif()[0x0112] == orientation


def test_the_colour_profile_stays() -> None:
    profile = bytes(range(256)) * 300  # longer than a JPEG segment
    for kind in ("JPEG", "PNG"):
        assert written(file_of(scene(), kind, icc_profile=profile)).info["icc_profile"] == profile


def test_jpeg_is_written_as_jpeg_near_the_pixels() -> None:
    for mode in ("L", "RGB"):
        data = file_of(scene(mode), "JPEG", dpi=(300, 72), icc_profile=b"\xff\xdb")
        result = written(data)
        assert (result.format, result.mode) == ("JPEG", mode)
        apart = np.abs(np.asarray(result).astype(int) - np.asarray(PIL.Image.open(BytesIO(data))))
        assert apart.mean() < 2
        picture = decode(data)
        encoded = encode(picture, picture.pixels)
        assert (decoded_pixels(picture, picture.pixels, encoded).squeeze() == np.asarray(result)).all()
        again = PIL.Image.fromarray(picture.pixels.squeeze())
        assert encoded == file_of(again, "JPEG", quality=95, subsampling="4:4:4", **picture.metadata)


@pytest.mark.parametrize("name", EFFECTS)
def test_alpha_moves_with_what_moves_and_stays_with_the_rest(name: str) -> None:
    alpha = np.zeros((*SCENE.shape[:2], 1), dtype=np.uint8)
    alpha[10:30, 10:40] = 255
    after = corrupt(np.concatenate([SCENE, alpha], axis=2), name, 5)
    assert (after[:, :, :3] == corrupt(SCENE, name, 5)).all()
    assert (after[:, :, 3:] == alpha).all() == (EFFECTS[name].motion is None)


def cut(data: bytes, share: float) -> bytes:
    return data[: int(len(data) * share)]


def png_of_size(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    parts = [(struct.pack(">I", len(content)), name + content) for name, content in chunks]
    body = b"".join(size + named + struct.pack(">I", zlib.crc32(named)) for size, named in parts)
    return b"\x89PNG\r\n\x1a\n" + body


JPEG, PNG = file_of(scene(), "JPEG"), file_of(scene(), "PNG")


@pytest.mark.parametrize(("data", "words"), [
    (b"", "the file is empty (0 bytes)"),
    (b"<html>not found</html>", "is no image that can be read"),
    (b"\x00" * 1000, "is no image that can be read"),
    (cut(JPEG, 0.9), "is damaged ("),
    (cut(JPEG, 0.6), "is damaged ("),
    (JPEG[:-2], "is damaged ("),
    (cut(PNG, 0.5), "is damaged ("),
    (PNG[:60] + b"\xff" * 40 + PNG[100:], "is damaged ("),
    (png_of_size(0, 0), "is "),
    (png_of_size(0, 10), "is "),
    (png_of_size(60_000, 1), "at most 30,000 a side"),
    (png_of_size(29_000, 29_000), "has more pixels than an image should"),
    (file_of(scene(), "GIF"), "is no image that can be read; give JPEG or PNG"),
], ids=str)  # fmt: skip
def test_what_is_no_whole_image_is_told(data: bytes, words: str) -> None:
    said = complaint(DataError, decode, data)
    assert words in said
    assert "\n" not in said


@pytest.mark.parametrize("data", [JPEG, PNG], ids=["jpeg", "png"])
def test_every_cut_of_a_file_is_told_or_complete(data: bytes) -> None:
    """OpenCV fills what is missing with grey and says nothing."""
    whole, complete = decode(data).pixels, 0
    for length in range(0, len(data), 5):
        try:
            picture = decode(data[:length])
        except DataError:
            continue
        assert (picture.pixels == whole).all()
        complete += 1
    assert complete < 8  # the last bytes hold no pixels


def test_a_stamp_is_read_back_and_nothing_else_is_taken_for_one(tmp_path: Path) -> None:
    path = tmp_path / "b.jpg"
    for data in (JPEG, PNG):
        picture = decode(data)
        stamp = {"digest": "0f", "psnr": 31.25, "ssim": None}
        path.write_bytes(add_stamp(picture, encode(picture, picture.pixels), stamp))
        assert stamp_of(path) == stamp
        path.write_bytes(path.read_bytes()[:-1])
        assert stamp_of(path) is None
    for content in (JPEG, b"", b"hoicli corrupt {broken", b"hoicli corrupt [1]"):
        path.write_bytes(content)
        assert stamp_of(path) is None
    assert stamp_of(tmp_path / "nothing") is None
    assert stamp_of(tmp_path) is None
