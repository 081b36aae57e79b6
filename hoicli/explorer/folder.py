"""The page as a folder that opens from disk, with pictures, or as one file."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from hoicli.errors import UsageError
from hoicli.io.outputs import atomic_folder, check_made_folder, check_output, open_output

HOW = {
    "link": "symbolic links to the images: nothing is copied, and the folder is for this machine",
    "copy": "copies: the folder can be sent on",
}
"""What stands in the folder for the pictures."""


def is_file(path: str) -> bool:
    """Whether a path names one file, by its ending, and no folder."""
    return path.lower().endswith((".html", ".htm")) and not Path(path).is_dir()


def check_page(path: str, option: str) -> None:
    """Raises `UsageError` where writing would: for a folder with anything in it but an earlier page."""
    if re.search(r"\.html?\.\w+$", path.lower()):
        raise UsageError(f"{option} {path}: no browser opens a compressed page; let its name end in .html")
    if path.lower().endswith((".pdf", ".md", ".png", ".jsonl")):
        raise UsageError(f"{option} {path}: the page is a folder or FILE.html; print that for a PDF")
    if path == "-":
        raise UsageError(f"give {option} DIR or {option} PAGE.html, what to write, or --serve to look at the page now")
    if is_file(path):
        check_output(path, option)
    else:
        check_made_folder(path, option)


def write_file(path: str, pieces: Iterable[bytes]) -> None:
    """Write the page as one file, whole or not at all."""
    with open_output(path) as write:
        for piece in pieces:
            write(piece)


def write_folder(path: str, files: Iterable[tuple[str, bytes]], pictures: Mapping[str, Path], how: str) -> None:
    """Write the page and its pictures, whole or not at all. how: a key of HOW.

    Raises as `check_page`, and `DataError` if writing fails."""
    with atomic_folder(path, replace=True) as folder:
        for name, content in files:
            target = folder / name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(content)
        if pictures:
            (folder / "pictures").mkdir()
        for name, source in pictures.items():
            if how == "copy":
                shutil.copyfile(source, folder / name)
            else:
                (folder / name).symlink_to(source.resolve())
