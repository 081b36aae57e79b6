"""An explorer as a folder that opens from disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from hoicli.errors import UsageError
from hoicli.io.outputs import atomic_folder, check_made_folder

HOW = {
    "link": "symbolic links to the images: nothing is copied, and the folder is for this machine",
    "copy": "copies: the folder can be sent on",
}
"""What stands in the folder for the pictures."""


def check_folder(path: str, option: str) -> None:
    """Raises `UsageError` where `write_folder` would: for a folder with anything in it but an explorer, and for the
    name of a new page (x.html)."""
    if path == "-":
        raise UsageError(f"give {option} DIR, the folder to write, or --serve to look at the page now")
    if path.lower().endswith((".html", ".htm")) and not Path(path).is_dir():
        raise UsageError(f"{option} {path}: a folder is written, whose index.html is the page; give a folder's name")
    check_made_folder(path, option)


def write_folder(path: str, files: Iterable[tuple[str, bytes]], pictures: Mapping[str, Path], how: str) -> None:
    """Write the page and its pictures, whole or not at all. how: a key of HOW.

    Raises as `check_folder`, and `DataError` if writing fails."""
    check_folder(path, "-o")
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
