"""Checks before the work that an output can be written, so that no long or costly run is lost to a missing folder."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from hoicli.errors import UsageError, arg
from hoicli.io.outputs import beside, is_to_be_replaced, others_in, writable

FIGURE_ENDINGS = (".png", ".svg", ".pdf")
NO_MATPLOTLIB = "--plot needs matplotlib: pip install 'hoicli[plot]'"


def check_file(path: str, option: str) -> None:
    """Raises `UsageError` where `atomic_path` would: creates a file beside `path` and removes it again. A folder's mode
    alone does not show a read-only disk or a full quota."""
    if is_to_be_replaced(path, option):
        _check_inside(Path(os.path.realpath(path)).parent, f"{option} {path}", Path(path).parent)


def check_output(path: str, option: str = "-o") -> None:
    """Raises before the work what `open_output` would raise after it: `UsageError` if the file cannot be created,
    `DataError` if stdout is closed."""
    if path != "-":
        check_file(path, option)
        return
    with writable("<stdout>"):
        os.write(1, b"")


def _check_inside(folder: Path, given: str, shown: Path) -> None:
    with beside(folder / "hoicli", given, shown):
        pass


def check_figure(path: str, option: str = "--plot") -> None:
    """Raises `UsageError` if no figure can be written to `path`."""
    if Path(path).suffix.lower() not in FIGURE_ENDINGS:
        raise UsageError(f"{option} {path}: end the name in .png, .svg or .pdf")
    if find_spec("matplotlib") is None:
        raise UsageError(NO_MATPLOTLIB)
    check_file(path, option)


def check_made_folder(path: str, option: str) -> None:
    """Raises `UsageError` if the folder cannot be created or replaced: the last part of its path may be new, the folder
    may be empty, or hold what an earlier run made, and nothing else."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise UsageError(f"{option} {path}: is a file; give a folder")
    if target.is_dir() and others_in(target):
        problem = "there are other files in it, and the folder is replaced as a whole"
        raise UsageError(f"{option} {path}: {problem}; give a new folder, or an empty one")
    above = target.resolve().parent
    if not above.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {above}; make it first")
    _check_inside(above, f"{option} {path}", target.parent)


def check_folder(path: str, option: str) -> None:
    """Raises `UsageError` if the folder does not exist or no file can be created in it."""
    if not Path(path).is_dir():
        raise UsageError(f"{option} {path}: there is no such folder; make it first")
    _check_inside(Path(path), f"{option} {path}", Path(path))


def check_folders(path: str, option: str) -> None:
    """As `check_folder`, for a folder that is created with its parents if missing."""
    there = Path(path).absolute()
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        raise UsageError(f"{option} {path}: cannot be made ({there} is no folder)")
    _check_inside(there, f"{option} {path}", there)


def check_new_folder(path: str, option: str) -> None:
    """Raises `UsageError` if the folder cannot be created, or exists and is not empty."""
    if path == "-":
        raise UsageError(f"{arg('to', 'mat')} writes a folder of files; name it with {option} DIR")
    target = Path(path).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{option} {path}: is there already; give a folder that does not exist, or an empty one")
    if not target.parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {target.parent}; make it first")
    _check_inside(target.parent, f"{option} {path}", target.parent)


def check_appended(path: str, option: str) -> None:
    """Raises `UsageError` if the file cannot be read and appended to, or created."""
    if not Path(path).exists():
        check_file(path, option)
    elif Path(path).is_dir():
        raise UsageError(f"{option} {path}: is a directory; give a file name")
    elif not os.access(path, os.R_OK | os.W_OK):
        raise UsageError(f"{option} {path}: cannot be read and written; give a file that can")
