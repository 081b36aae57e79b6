"""Whether what is to be written can be, asked before the work: nothing that took minutes or money is to be lost to a
folder that is not there."""

from __future__ import annotations

import io
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from hoicli.errors import UsageError
from hoicli.io.outputs import beside, compressor, is_to_be_replaced, writable

FIGURE_ENDINGS = (".png", ".svg", ".pdf")
NO_MATPLOTLIB = "--plot needs matplotlib: pip install 'hoicli[plot]'"


def check_file(path: str, option: str) -> None:
    """Raises `UsageError` where `atomic_path` would: by making a file beside `path`, and removing it again.

    Only that tells of a folder that takes no files whatever its mode says (a read-only disk, a quota).
    """
    if is_to_be_replaced(path, option):
        _check_inside(Path(os.path.realpath(path)).parent, f"{option} {path}", Path(path).parent)


def check_output(path: str, option: str = "-o") -> None:
    """Raises before the work what `open_output` would raise after it: `UsageError` where there can be no such file or
    no compressor for it, `DataError` where stdout is closed."""
    if path == "-":
        with writable("<stdout>"):
            os.write(sys.stdout.fileno(), b"")
        return
    check_file(path, option)
    with compressor(path, io.BytesIO()):
        pass


def _check_inside(folder: Path, given: str, shown: Path) -> None:
    with beside(folder / "hoicli", given, shown):
        pass


def check_figure(path: str, option: str = "--plot") -> None:
    """Raises `UsageError` where no figure could be written."""
    if Path(path).suffix.lower() not in FIGURE_ENDINGS:
        raise UsageError(f"{option} {path}: end the name in .png, .svg or .pdf")
    if find_spec("matplotlib") is None:
        raise UsageError(NO_MATPLOTLIB)
    check_file(path, option)


def check_page_folder(path: str, option: str) -> None:
    """Raises `UsageError` where there could be no folder with an index.html; the last part of its path may be new."""
    if Path(path).is_dir():
        check_file(str(Path(path, "index.html")), option)
    elif Path(path).exists():
        raise UsageError(f"{option} {path}: is a file; give a folder")
    else:
        check_file(path, option)


def check_folder(path: str, option: str) -> None:
    """Raises `UsageError` where no file can be made in a folder, which must be there."""
    if not Path(path).is_dir():
        raise UsageError(f"{option} {path}: there is no such folder; make it first")
    _check_inside(Path(path), f"{option} {path}", Path(path))


def check_folders(path: str, option: str) -> None:
    """The same of a folder that is made if need be, with those above it."""
    there = Path(path).absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise UsageError(f"{option} {path}: cannot be made ({there} is no folder)")
    _check_inside(there, f"{option} {path}", there)


def check_new_folder(path: str, option: str) -> None:
    """Raises `UsageError` where no folder could be made, or would have to be put in the place of what is there."""
    if path == "-":
        raise UsageError(f"--to mat writes a folder of files; name it with {option} DIR")
    target = Path(path).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{option} {path}: is there already; give a folder that does not exist, or an empty one")
    if not target.parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {target.parent}; make it first")
    _check_inside(target.parent, f"{option} {path}", target.parent)


def check_appended(path: str, option: str) -> None:
    """Raises `UsageError` where a file could not be read and added to, or made."""
    if not Path(path).exists():
        check_file(path, option)
    elif Path(path).is_dir():
        raise UsageError(f"{option} {path}: is a directory; give a file name")
    elif not os.access(path, os.R_OK | os.W_OK):
        raise UsageError(f"{option} {path}: cannot be read and written; give a file that can")
