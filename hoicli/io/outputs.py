"""Files that appear whole or not at all, and whether what is to be written can be: asked before the work.

Nothing that took minutes or money is to be lost to a folder that is not there.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from hoicli.errors import DataError, UsageError

FIGURE_ENDINGS = (".png", ".svg", ".pdf")
NO_MATPLOTLIB = "--plot needs matplotlib: pip install 'hoicli[plot]'"


@contextmanager
def writable(name: str) -> Iterator[None]:
    """Turn what a full disk says, at whichever write or at the end, into a `DataError` that names the file.

    Everything that is read turns its own errors into `DataError`s, so what comes here is of writing.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error}); make room, or write elsewhere"
        raise DataError(problem, place=name) from None


@contextmanager
def atomic_path(path: str, option: str = "-o") -> Iterator[str]:
    """A temporary path beside `path` that takes its name when the block ends well and is removed when it does not.

    A link is followed to the file it means, and a file that is there hands on its mode. A device or a pipe (/dev/null,
    `>(gzip)`) is no file to be replaced: it is written to as it is. Raises `UsageError`, in the name of `option`, where
    there can be no such file, and `DataError` where the bytes do not fit.
    """
    if not _is_to_be_replaced(path, option):
        with writable(path):
            yield path
        return
    target = Path(os.path.realpath(path))
    with _beside(target, f"{option} {path}", Path(path).parent) as temporary, writable(path):
        yield temporary
        if not inherit(temporary, target):
            os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)


def descriptor(path: str) -> int | None:
    """The number of the open stream that a name stands for (/dev/stdout, /dev/fd/6), None for any other name.

    What it leads to may be a file, and is not to be replaced: the shell goes on writing to the one that it has open.
    """
    numbered = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", path)
    return int(numbered[1]) if numbered else {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}.get(path)


def _is_to_be_replaced(path: str, option: str) -> bool:
    """Whether a name is that of a file, or of nothing yet; False for a device, a pipe or an open stream."""
    if descriptor(path) is not None:
        return False
    with _refusing(f"{option} {path}", Path(path).parent):
        try:
            mode = os.stat(path).st_mode  # before links are followed by hand: that of a pipe leads nowhere
        except (FileNotFoundError, NotADirectoryError):
            return True
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        return stat.S_ISREG(mode)


@contextmanager
def _beside(target: Path, given: str, folder: Path) -> Iterator[str]:
    """An empty file in the folder of `target`, which nobody else can read yet; removed in the end if it is still there.
    given, folder: what was asked for, and its folder, as messages name them.

    Its name is chosen before there is a file: whatever comes between (Ctrl-C, SIGTERM), it is known what to remove. A
    name may have 255 bytes, and this one has some more than the target's first 50 characters.
    """
    temporary = target.parent / f".{target.name[:50]}.{os.urandom(5).hex()}.part"
    try:
        try:
            with _refusing(given, folder):
                os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            yield str(temporary)
        finally:
            _remove(temporary)
    finally:  # once more: a signal that comes on the way to the first
        _remove(temporary)


def _remove(temporary: Path) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        temporary.unlink()


@contextmanager
def _refusing(given: str, folder: Path) -> Iterator[None]:
    """Turn what the operating system says of making a file in a folder into a `UsageError` about what was given."""
    try:
        yield
    except IsADirectoryError:
        raise UsageError(f"{given}: is a directory; give a file name") from None
    except FileNotFoundError:
        raise UsageError(f"{given}: there is no folder {folder}; make it first") from None
    except NotADirectoryError:
        raise UsageError(f"{given}: {folder} is no folder; give another") from None
    except PermissionError:
        raise UsageError(f"{given}: the folder {folder} is not writable") from None
    except OSError as error:
        raise UsageError(f"{given}: cannot be made ({error.strerror})") from None


def inherit(new: str | Path, old: str | Path) -> bool:
    """Give a file or folder the mode of the one it is to replace, and as far as this user may its group and owner; says
    whether there is one to replace. (Other hard links of the old one keep what they had.)"""
    try:
        before, now = os.stat(old), os.stat(new)
    except FileNotFoundError:
        return False
    if hasattr(os, "chown"):
        for user, group in ((-1, before.st_gid), (before.st_uid, -1)):
            if user not in (-1, now.st_uid) or group not in (-1, now.st_gid):
                with suppress(OSError):
                    os.chown(new, user, group)
    os.chmod(new, stat.S_IMODE(before.st_mode))  # after the owner, whose change takes the special bits away
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


# Before the work


def check_file(path: str, option: str) -> None:
    """Raises `UsageError` where `atomic_path` would: by making a file beside `path`, and removing it again.

    Only that tells of a folder that takes no files whatever its mode says (a read-only disk, a quota).
    """
    if _is_to_be_replaced(path, option):
        _check_inside(Path(os.path.realpath(path)).parent, f"{option} {path}", Path(path).parent)


def _check_inside(folder: Path, given: str, shown: Path) -> None:
    with _beside(folder / "hoicli", given, shown):
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
