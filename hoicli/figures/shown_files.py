"""Where `hoicli show` writes: a folder of pictures, or one sheet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from hoicli.errors import UsageError
from hoicli.figures.overlays import Overlay
from hoicli.io.outputs import atomic_folder, check_file, check_made_folder
from hoicli.records.parsing import dump

LIST = "shown.jsonl"
"""The file of a folder that says which picture is of which image, with what is drawn on it."""
SHEET, FOLDER = "sheet", "folder"
OTHERS = (".html", ".htm", ".jpg", ".jpeg", ".svg", ".pdf", ".gif", ".webp", ".md", ".json", ".jsonl", ".gz")
"""Endings that no folder is likely to have."""


def kind_of(path: str) -> str:
    """What a name asks for: a sheet (.png) or a folder. Raises `UsageError` for another ending."""
    ending = Path(path).suffix.lower()
    if path == "-" or ending in OTHERS:
        raise UsageError(f"-o {path}: give a name in .png for one sheet, or a folder for pictures")
    return SHEET if ending == ".png" else FOLDER


def check_shown(path: str, option: str) -> None:
    """Raises `UsageError` where writing would: for a folder with anything in it but earlier pictures, and without
    Pillow."""
    if kind_of(path) == FOLDER:
        check_made_folder(path, option)
    else:
        check_file(path, option)
    if find_spec("PIL") is None:
        raise UsageError("show needs Pillow: pip install 'hoicli[images]'")


def names_of(image_ids: Sequence[str]) -> list[str]:
    """A file name for each image, made of its id, which is not trusted: letters, digits and ._- only, and all
    different, also where case does not count."""
    taken: set[str] = set()
    names = []
    for image_id in image_ids:
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", image_id)[:100].lstrip(".") or "image"
        name, number = stem, 1
        while name.casefold() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.casefold())
        names.append(f"{name}.png")
    return names


def write_pictures(path: str, overlays: Sequence[Overlay], pictures: Iterable[bytes]) -> None:
    """Write a PNG file for each image, and LIST; whole or not at all. Raises as `check_shown`."""
    check_made_folder(path, "-o")
    names = names_of([overlay.image_id for overlay in overlays])
    with atomic_folder(path, replace=True) as folder:
        lines = []
        for name, overlay, data in zip(names, overlays, pictures, strict=True):
            (folder / name).write_bytes(data)
            drawn = {layer.name: [label for pair in layer.pairs for label in pair.labels] for layer in overlay.layers}
            lines.append(dump({"image_id": overlay.image_id, "file": name, "drawn": drawn}))
        (folder / LIST).write_bytes(b"".join(lines))
