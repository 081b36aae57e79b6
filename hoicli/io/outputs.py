"""Bytes out: to stdout, to a device, or to files that appear whole or not at all; and checks before the work that an
output can be written, so that no long or costly run is lost to a missing folder.
"""

from __future__ import annotations

import errno
import gzip
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path, PurePosixPath, PureWindowsPath

from hoicli.errors import DataError, Place, UsageError
from hoicli.io.file_claims import refuse_input
from hoicli.io.process import hold_signals

WRITE_CHUNK = 1 << 18
"""Bytes collected before a write: enough that the system call costs little, few enough to stream."""
LIST_OF_FILES = ".hoicli-files"
"""What is in a folder that is replaced as a whole, one a line: what else is there is another's."""
NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})
"""What a file system says that cannot sync, as some of FUSE and of networks: no reason to lose the result."""
NOT_PACKED = {".zst": "zstd", ".xz": "xz", ".bz2": "bzip2"}
"""Endings of compressed files that are neither written nor read, and the program that does both."""
FIGURE_ENDINGS = (".png", ".svg", ".pdf")


def stays_inside(name: str) -> bool:
    """Return whether a file name from a record stays inside its folder, on POSIX and on Windows."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    return not (posix.is_absolute() or windows.anchor or ".." in {*posix.parts, *windows.parts} or "\0" in name)


def lies_in(path: Path, folder: Path) -> bool:
    """Return whether a path is in a folder when all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


@contextmanager
def open_output(path: str) -> Iterator[Callable[[bytes], object]]:
    """Give a `write(bytes)` function for `-` (stdout), or for a file that appears whole, under its name, or not at all.

    A file whose name ends in .gz is compressed, reproducibly. Complete lines that were written to stdout before an
    error are still printed. Raises as `atomic_path` does."""
    number = 1 if path == "-" else descriptor(path)
    if number is not None:  # an open stream: append at its position
        name = "<stdout>" if number == 1 else path
        with writable(name), open(os.dup(number), "wb", buffering=WRITE_CHUNK) as stream:
            yield stream.write
    else:
        with (
            atomic_path(path) as temporary,
            open(temporary, "wb", buffering=WRITE_CHUNK) as raw,
            gzip.GzipFile("", "wb", 6, raw, mtime=0) if path.endswith(".gz") else nullcontext(raw) as packed,
        ):
            yield packed.write


@contextmanager
def writable(name: str) -> Iterator[None]:
    """Turn an error of writing in the block, such as a full disk, into a `DataError` that names the file. Reading turns
    its own errors into `DataError`s, so an `OSError` in the block comes from writing."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error}); make room, or write elsewhere"
        raise DataError(problem, place=name, code="unwritable") from None


@contextmanager
def atomic_path(path: str, option: str = "-o") -> Iterator[str]:
    """Give a temporary path beside `path` that takes its name when the block ends well, and is removed when it does
    not.

    The new content is on disk before it takes the name: a power cut leaves the old file or the new one. If several
    processes write the same path, each does so whole, and the last one stays. Links are followed, and the new file
    keeps the mode of the file it replaces. A device or a pipe (/dev/null, `>(gzip)`) is written to directly. Raises
    `UsageError`, naming `option`, if the file cannot be created, and `DataError` if writing fails."""
    if not is_to_be_replaced(path, option):
        with writable(path):
            yield path
        return
    refuse_input(path, option)
    target = Path(os.path.realpath(path))
    with beside(target, f"{option} {path}", Path(path).parent) as temporary, writable(path):
        yield str(temporary)
        _sync(temporary)
        refuse_input(path, option)  # again: the run may have learned of it since
        _inherit(temporary, target)
        os.replace(temporary, target)


def write_output(path: str, data: bytes) -> None:
    """Write to `-` or a file, as `open_output` does."""
    with open_output(path) as write:
        write(data)


def _sync(path: Path) -> None:
    """Wait until the content of a file is on disk: a full or broken disk may say so only now."""
    with open(path, "r+b") as file:  # Windows does this only for a file that may be written
        try:
            os.fsync(file.fileno())
        except OSError as error:
            if error.errno not in NO_SYNC:
                raise


def write_whole(path: Path, data: bytes, option: str = "--save-images", *, root: Path | None = None) -> None:
    """Write one of many files whole or not at all, in a folder that is created if missing; raises as `atomic_path`.

    A power cut may leave the file cut off: to wait for the disk takes 5 ms, which is too long for every image of a
    benchmark. The name may come from a record: a link of that name is replaced, whatever it leads to, and so is a
    device or a pipe. root: the folder that must not be left; a linked folder that leads out of it is a `DataError`."""
    if root is not None and not lies_in(path.parent, root):
        raise DataError(f"leads out of {option} {root} by a link; remove the link", place=str(path.parent))
    with _refusing(f"{option} {path}", path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            raise IsADirectoryError
    refuse_input(path, option)
    with beside(path, f"{option} {path}", path.parent) as temporary, writable(str(path)):
        temporary.write_bytes(data)
        _inherit(temporary, path)
        os.replace(temporary, path)


@contextmanager
def atomic_folder(path: str) -> Iterator[Path]:
    """Give a temporary folder beside `path` that takes its name if the block succeeds, and is removed if not. Raises
    `DataError` if writing fails.

    The folder holds a list of its files (LIST_OF_FILES), and never replaces a folder that holds others. If several
    processes write the same folder, some may be refused."""
    target = Path(path).resolve()
    new, replaced = _part_of(target), _part_of(target)
    with _remove_at_end(replaced), _remove_at_end(new), writable(path):
        new.mkdir()
        yield new
        names = "".join(f"{name}\n" for name in sorted(_names_in(new)))
        (new / LIST_OF_FILES).write_text(names, encoding="utf-8")
        _inherit(new, target)
        with hold_signals():  # between the two names there is nothing under the folder's
            if target.exists():
                if others_in(target):
                    problem = "other files were put into it meanwhile; move them, and run again"
                    raise DataError(problem, place=str(target), code="unwritable")
                target.rename(replaced)
            try:
                new.rename(target)
            except OSError:
                if replaced.exists():
                    replaced.rename(target)
                raise


def others_in(folder: Path) -> bool:
    """Return whether a folder holds anything that `atomic_folder` did not write."""
    try:
        own_files = (folder / LIST_OF_FILES).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        own_files = []
    return not _names_in(folder) <= {*own_files, LIST_OF_FILES}


def _names_in(folder: Path) -> set[str]:
    """Return the paths of everything in a folder and its subfolders."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def descriptor(path: str) -> int | None:
    """Return the number of the open stream that a name stands for (/dev/stdout, /dev/fd/6), None for any other name.

    The stream may lead to a file, which must not be replaced, since the shell still writes to the open one."""
    numbered = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", path)
    return int(numbered[1]) if numbered else {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}.get(path)


def is_to_be_replaced(path: str, option: str) -> bool:
    """Return whether a path is a file or does not exist; False for a device, a pipe or an open stream. Raises
    `UsageError` for a file whose name promises a compression that is not written."""
    if descriptor(path) is not None:
        return False
    with _refusing(f"{option} {path}", Path(path).parent):
        try:
            mode = os.stat(path).st_mode  # not of the resolved path: a pipe's link resolves to no file
        except (FileNotFoundError, NotADirectoryError):
            mode = stat.S_IFREG
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
    if stat.S_ISREG(mode) and (program := NOT_PACKED.get(Path(path).suffix)):
        problem = f"{option} {path}: only .gz is compressed here; pipe it: hoicli ... | {program} > FILE"
        raise UsageError(problem, code="bad-output")
    return stat.S_ISREG(mode)


@contextmanager
def beside(target: Path, path_given: str, folder: Path) -> Iterator[Path]:
    """Give an empty temporary file in the folder of `target`, and remove it at the end if it is still there. If it will
    replace a file, only this user can read it. path_given, folder: the option's value and its folder, for messages."""
    temporary = _part_of(target)
    mode = 0o600 if target.is_file() and not target.is_symlink() else 0o666
    with _remove_at_end(temporary):
        with _refusing(path_given, folder):
            os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
        yield temporary


def _part_of(target: Path) -> Path:
    """Return a temporary name for a file or folder. Names are limited to 255 bytes, so it is cut."""
    return target.parent / f".{target.name[:50]}.{os.urandom(5).hex()}.part"


@contextmanager
def _remove_at_end(part: Path) -> Iterator[None]:
    """Remove the file or folder when the block ends, even if a signal (Ctrl-C, SIGTERM) arrives meanwhile."""
    try:
        try:
            yield
        finally:
            _remove(part)
    finally:  # again, for a signal that arrives before or in the first
        _remove(part)


def _remove(part: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if os.path.lexists(part):  # to remove what is not there says, on a read-only file system, that it is read-only
        with suppress(FileNotFoundError, NotADirectoryError):
            shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink()


@contextmanager
def _refusing(path_given: str, folder: Path) -> Iterator[None]:
    """Turn the operating system's errors of creating a file in the block into a `UsageError` about the option."""
    try:
        yield
    except IsADirectoryError:
        raise UsageError(f"{path_given}: is a directory; give a file name", code="bad-output") from None
    except FileNotFoundError:
        raise UsageError(f"{path_given}: there is no folder {folder}; make it first", code="bad-output") from None
    except (NotADirectoryError, FileExistsError):
        raise UsageError(f"{path_given}: {folder} is no folder; give another", code="bad-output") from None
    except PermissionError:
        raise UsageError(f"{path_given}: the folder {folder} is not writable", code="bad-output") from None
    except OSError as error:
        raise UsageError(f"{path_given}: cannot be created ({error.strerror})", code="bad-output") from None


def _inherit(new: Path, old: Path) -> None:
    """Give a new file or folder the mode of the one that it replaces and, if this user may, its group and owner. Other
    hard links keep the old content."""
    if old.is_symlink() or not (old.is_file() or old.is_dir()):
        return
    before = old.stat()
    for user, group in ((-1, before.st_gid), (before.st_uid, -1)):
        with suppress(OSError, AttributeError):  # Windows has no groups
            os.chown(new, user, group)
    new.chmod(stat.S_IMODE(before.st_mode))  # last: a change of owner clears the special bits


def check_file(path: str, option: str) -> None:
    """Raise `UsageError` where `atomic_path` would, by creating a file beside `path` and removing it again: a folder's
    mode alone does not show a read-only disk or a full quota."""
    if is_to_be_replaced(path, option):
        _check_inside(Path(os.path.realpath(path)).parent, f"{option} {path}", Path(path).parent)


def check_output(path: str, option: str = "-o") -> None:
    """Raise before the work what `open_output` would raise after it: `UsageError` if the file cannot be created,
    `DataError` if stdout is closed."""
    if path != "-":
        check_file(path, option)
        return
    with writable("<stdout>"):
        os.write(1, b"")


def _check_inside(folder: Path, path_given: str, path_shown: Path) -> None:
    """Raise `UsageError` if no file can be created in a folder. The others are for messages.."""
    with beside(folder / "hoicli", path_given, path_shown):
        pass


def temporary_folder() -> str:
    """Return the folder for temporary files. Raises `DataError` if none can be written."""
    import tempfile  # it takes a twentieth of the start-up

    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        problem = "no folder takes temporary files, here or in /tmp; make room, or name one that can be written"
        raise DataError(problem, place=Place("TMPDIR"), code="unwritable") from None


def check_figure(path: str, option: str = "--plot") -> None:
    """Raise `UsageError` if no figure can be written to `path`, and `DataError` if matplotlib has no folder for its
    cache of fonts."""
    if Path(path).suffix.lower() not in FIGURE_ENDINGS:
        raise UsageError(f"{option} {path}: end the name in .png, .svg or .pdf", code="bad-output")
    if find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'hoicli[plot]'", code="missing-package")
    if "MPLCONFIGDIR" not in os.environ:
        temporary_folder()
    check_file(path, option)


def check_made_folder(path: str, option: str) -> None:
    """Raise `UsageError` if the folder cannot be created or replaced. The last part of its path may be new; a folder
    that is there must be empty, or hold only what an earlier run made."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise UsageError(f"{option} {path}: is a file; give a folder", code="bad-output")
    if target.is_dir() and others_in(target):
        problem = "there are other files in it, and the folder is replaced as a whole"
        raise UsageError(f"{option} {path}: {problem}; give a new folder, or an empty one", code="bad-output")
    try:
        above = target.resolve().parent
    except (OSError, RuntimeError):  # links that lead to one another
        raise UsageError(f"{option} {path}: is a link that leads nowhere; give a folder", code="bad-output") from None
    if not above.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {above}; make it first", code="bad-output")
    _check_inside(above, f"{option} {path}", target.parent)


def check_folder(path: str, option: str) -> None:
    """Raise `UsageError` if no file can be created in a folder, which will be made, with its parents, if missing."""
    existing = Path(path).absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise UsageError(f"{option} {path}: cannot be created ({existing} is no folder)", code="bad-output")
    _check_inside(existing, f"{option} {path}", existing)


def check_appended(path: str, option: str) -> None:
    """Raise `UsageError` if the file cannot be read and appended to, or cannot be created."""
    if not os.path.isfile(path):
        check_file(path, option)
    elif not os.access(path, os.R_OK | os.W_OK):
        raise UsageError(f"{option} {path}: cannot be read and written; give a file that can", code="bad-output")
