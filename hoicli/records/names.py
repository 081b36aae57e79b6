"""Image ids and file names: what a record calls its image."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any

from hoicli.errors import DataError, arg
from hoicli.io.outputs import stays_inside

LONGEST_NUMBER = 18
"""The most digits of an image number; more digits are part of a name (and Python refuses to read thousands)."""


PICTURE_ENDINGS = frozenset({
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".jp2", ".ppm", ".pgm"),
    *(".heic", ".heif", ".avif"),
})  # fmt: skip
"""What a file name loses to be an image id, in any case; any other dot is part of the name (clip_1.5s, v2.0)."""


def image_id_of(file_name: str) -> str:
    """Return the image id of a file name, without folder and picture ending ("test2015/HICO_test2015_00000001.jpg")."""
    path = PurePosixPath(file_name.replace("\\", "/"))
    return path.stem if path.suffix.lower() in PICTURE_ENDINGS else path.name


def path_of(file_name: str) -> str:
    """Return a file name with its folder, but without its picture ending ("b/frame_1.jpg" -> "b/frame_1")."""
    path = PurePosixPath(file_name.replace("\\", "/"))
    return str(path.with_suffix("") if path.suffix.lower() in PICTURE_ENDINGS else path)


def image_number(image_id: str) -> int | None:
    """Return the number that ends an image id (HICO_test2015_00000042 -> 42) or is all of it; None without one."""
    digits = image_id.rsplit("_", 1)[-1]
    return int(digits) if digits.isdecimal() and len(digits) <= LONGEST_NUMBER else None


def number_or_name(image: Any) -> Any:
    """Return an image's number as an integer: 17 for 17, "17" and 17.0; a name, or anything else, unchanged."""
    is_number = type(image) is float and image.is_integer()
    is_digits = type(image) is str and image.isdecimal() and len(image) <= LONGEST_NUMBER
    return int(image) if is_number or is_digits else image


ID_RULES: Mapping[str, Callable[[str], str | int | None]] = {
    "name": image_id_of,
    "path": path_of,
    "number": lambda name: image_number(image_id_of(name)),
}
"""The choices of `convert --id`, each with the function from a file name to the image id: its base name, its path, or
the number at its end, None without one."""


def is_blank(image_id: str | int) -> bool:
    """Return whether an image id is a text without any visible character."""
    return type(image_id) is str and not image_id.strip()


def file_name_of(record: Mapping[str, Any], place: str) -> str:
    """Return a record's `file_name` in the folder of images. Raises `DataError` if it is missing or leads out."""
    name = record.get("file_name")
    if type(name) is not str or not name:
        raise DataError(f"missing; it names the image under {arg('images')}", place=place, field="file_name")
    if not stays_inside(name):
        text = f"{name!r} leads out of the folder; give a path under {arg('images')}"
        raise DataError(text, place=place, field="file_name")
    return name
