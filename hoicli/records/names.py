"""Image ids: of a file name, and their numbers."""

from __future__ import annotations

from pathlib import PurePosixPath

LONGEST_NUMBER = 18
"""Digits; what is longer numbers no image (and Python refuses to read thousands of them)."""


def image_id_of(file_name: str) -> str:
    """The image id of a file name: no folder, no extension ("test2015/HICO_test2015_00000001.jpg")."""
    return PurePosixPath(file_name.replace("\\", "/")).stem


def image_number(image_id: str) -> int | None:
    """The number at the end of an image id (HICO_test2015_00000042 -> 42), None without one."""
    digits = image_id.rsplit("_", 1)[-1]
    return int(digits) if digits.isdecimal() and len(digits) <= LONGEST_NUMBER else None


def is_blank(image_id: str | int) -> bool:
    """Whether an image id names no image: no text, or blanks alone."""
    return type(image_id) is str and not image_id.strip()
