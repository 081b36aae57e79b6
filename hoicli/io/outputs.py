"""Writing bytes: to stdout, to a device, or to files that appear completely or not at all. And checks, before a command
starts, that its output can be written, so that no long or costly run is lost to a missing folder."""

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
"""The file that lists, one a line, the files that hoicli wrote into a folder. A folder with any others is never
replaced."""
NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})
"""Errors of file systems that cannot sync, such as some of FUSE and of networks. They are ignored: the result would be
lost otherwise."""
NOT_PACKED = {".zst": "zstd", ".xz": "xz", ".bz2": "bzip2"}
"""Endings of compressed files that hoicli neither writes nor reads, and the program that does both."""
FIGURE_ENDINGS = (".png", ".svg", ".pdf")
"""The endings of files that figures can be written to."""


def stays_inside(name: str) -> bool:
    """Return whether a file name stays in its folder, on POSIX and on Windows: no absolute path, no `..`."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    return not (posix.is_absolute() or windows.anchor or ".." in {*posix.parts, *windows.parts} or "\0" in name)


def lies_in(path: Path, folder: Path) -> bool:
    """Return whether a path is in a folder when all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


@contextmanager
def open_output(path: str) -> Iterator[Callable[[bytes], object]]:
    """Give a function `write(bytes)` for stdout (`-`) or for a file. The file appears under its name when the block
    ends, completely, or not at all.

    A file whose name ends in .gz is compressed; the same data give the same bytes. What was written to stdout before an
    error is still printed. Raises as `atomic_path` does."""
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
    """Turn an error of writing in the block, such as a full disk, into a `DataError` at `name`."""
    try:
        yield
    except BrokenPipeError:  # whoever reads stdout has stopped: no failure
        raise
    except OSError as error:
        problem = f"cannot be written ({error.strerror or error}); make room, or write elsewhere"
        raise DataError(problem, place=name, code="unwritable") from None


@contextmanager
def atomic_path(path: str, option: str = "-o") -> Iterator[str]:
    """Give the path of a temporary file to write to. It is renamed to `path` when the block ends, and removed if the
    block raises an error.

    The content is on disk before the renaming: a power cut leaves the old file or the new one. If several processes
    write the same path, the last one's complete file stays. Links are followed, and the new file keeps the mode of the
    file it replaces. A device or a pipe (/dev/null, `>(gzip)`) is written to directly. option: the option that named
    the path. Raises `UsageError`, naming it, if the file cannot be created, and `DataError` if writing fails."""
    if not is_to_be_replaced(path, option):
        with writable(path):
            yield path
        return
    refuse_input(path, option)
    target = Path(os.path.realpath(path))
    with temporary_file(target, f"{option} {path}", folder=Path(path).parent) as temporary, writable(path):
        yield str(temporary)
        _sync(temporary)
        refuse_input(path, option)  # again: it may have been opened for reading since
        _copy_mode_and_owner(temporary, target)
        os.replace(temporary, target)


def write_output(path: str, data: bytes) -> None:
    """Write data to stdout (`-`) or to a file, which appears completely or not at all. Raises as `atomic_path` does."""
    with open_output(path) as write:
        write(data)


def _sync(path: Path) -> None:
    """Wait until the content of a file is on disk. Raises `OSError` for a full or broken disk."""
    with open(path, "r+b") as file:  # Windows does this only for a file that may be written
        try:
            os.fsync(file.fileno())
        except OSError as error:
            if error.errno not in NO_SYNC:
                raise


def write_whole(path: Path, data: bytes, option: str = "--save-images", *, root: Path | None = None) -> None:
    """Write one of many files, such as an image, completely or not at all. Its folder is created if missing.

    Unlike `atomic_path`, it does not wait for the disk (5 ms, too long for every image of a benchmark), so a power cut
    may leave the file cut off. The name may come from a record and is not trusted: a link, a device or a pipe of that
    name is replaced. option: the option that named the folder. root: the folder that must not be left; `DataError` if a
    link leads out of it. Also raises `UsageError` if the file cannot be created, `DataError` if writing fails."""
    if root is not None and not lies_in(path.parent, root):
        raise DataError(f"leads out of {option} {root} by a link; remove the link", place=str(path.parent))
    with _explain_creation_errors(f"{option} {path}", path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir() and not path.is_symlink():
            raise IsADirectoryError
    refuse_input(path, option)
    with temporary_file(path, f"{option} {path}", folder=path.parent) as temporary, writable(str(path)):
        temporary.write_bytes(data)
        _copy_mode_and_owner(temporary, path)
        os.replace(temporary, path)


@contextmanager
def atomic_folder(path: str) -> Iterator[Path]:
    """Give a temporary folder to write files into. It is renamed to `path` when the block ends, in place of a folder of
    that name, and removed if the block raises an error. Raises `DataError` if writing fails.

    A list of the files is written into it (LIST_OF_FILES). A folder that has other files than its list says is never
    replaced. If several processes write the same folder, some may get an error."""
    target = Path(path).resolve()
    new = _temporary_path(target)
    old_folder = _temporary_path(target)  # what the folder is called until the new one is in its place
    with _remove_at_end(old_folder), _remove_at_end(new), writable(path):
        new.mkdir()
        yield new
        names = "".join(f"{name}\n" for name in sorted(_names_in(new)))
        (new / LIST_OF_FILES).write_text(names, encoding="utf-8")
        _copy_mode_and_owner(new, target)
        with hold_signals():  # between the two renamings there is no folder under the name
            if target.exists():
                if has_foreign_files(target):
                    problem = "other files were put into it meanwhile; move them, and run again"
                    raise DataError(problem, place=str(target), code="unwritable")
                target.rename(old_folder)
            try:
                new.rename(target)
            except OSError:
                if old_folder.exists():
                    old_folder.rename(target)  # put the old folder back
                raise


def has_foreign_files(folder: Path) -> bool:
    """Return whether a folder holds anything that `atomic_folder` did not write, or is none."""
    if not folder.is_dir():
        return True
    try:
        listed_files = (folder / LIST_OF_FILES).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError):
        listed_files = []
    return not _names_in(folder) <= {*listed_files, LIST_OF_FILES}


def _names_in(folder: Path) -> set[str]:
    """Return the paths, relative to the folder and with slashes, of everything in a folder and its subfolders."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def descriptor(path: str) -> int | None:
    """Return the file descriptor that a name stands for, 1 for /dev/stdout and 6 for /dev/fd/6; None for other names.

    Such a stream must be written to as it is open. If it leads to a file, that must not be replaced by a new one: the
    shell, and other commands, still write to the open one."""
    numbered = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", path)
    return int(numbered[1]) if numbered else {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}.get(path)


def is_to_be_replaced(path: str, option: str) -> bool:
    """Return whether writing replaces or creates a file at `path`; False for a device, a pipe or an open stream. Raises
    `UsageError` for a folder, and for the ending of a compression that hoicli does not write."""
    if descriptor(path) is not None:
        return False
    with _explain_creation_errors(f"{option} {path}", Path(path).parent):
        try:
            mode = os.stat(path).st_mode  # not of the resolved path: a pipe's link resolves to no file
        except (FileNotFoundError, NotADirectoryError):
            mode = stat.S_IFREG  # a regular file will be created
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
    if stat.S_ISREG(mode) and (program := NOT_PACKED.get(Path(path).suffix)):
        problem = f"{option} {path}: only .gz is compressed here; pipe it: hoicli ... | {program} > FILE"
        raise UsageError(problem, code="bad-output")
    return stat.S_ISREG(mode)


@contextmanager
def temporary_file(target: Path, path_given: str, *, folder: Path) -> Iterator[Path]:
    """Create an empty temporary file in the folder of `target`, give its path, and remove it after the block if it is
    still there. As long as `target` exists, only this user can read it. path_given, folder: what messages call them."""
    temporary = _temporary_path(target)
    mode = 0o600 if target.is_file() and not target.is_symlink() else 0o666
    with _remove_at_end(temporary):
        with _explain_creation_errors(path_given, folder):
            os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
        yield temporary


def _temporary_path(target: Path) -> Path:
    """Return a new random path beside `target` with at most 50 characters of its name (255 bytes are allowed)."""
    return target.parent / f".{target.name[:50]}.{os.urandom(5).hex()}.part"


@contextmanager
def _remove_at_end(part: Path) -> Iterator[None]:
    """Remove a temporary file or folder when the block ends, even if a signal (Ctrl-C, SIGTERM) arrives meanwhile."""
    try:
        try:
            yield
        finally:
            _remove(part)
    finally:  # again: a signal may have interrupted the first removal
        _remove(part)


def _remove(part: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if os.path.lexists(part):  # on a read-only file system, removing what does not exist is an error
        with suppress(FileNotFoundError, NotADirectoryError):
            shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink()


@contextmanager
def _explain_creation_errors(path_given: str, folder: Path) -> Iterator[None]:
    """Turn the system's errors of creating a file in the block into a `UsageError` that says why."""
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


def _copy_mode_and_owner(new: Path, old: Path) -> None:
    """Give a new file or folder the mode, and if allowed the group and owner, of an old one that is there."""
    if old.is_symlink() or not (old.is_file() or old.is_dir()):
        return
    before = old.stat()
    for user, group in ((-1, before.st_gid), (before.st_uid, -1)):
        with suppress(OSError, AttributeError):  # Windows has no groups
            os.chown(new, user, group)
    new.chmod(stat.S_IMODE(before.st_mode))  # last: a change of owner clears the special bits


def check_file(path: str, option: str) -> None:
    """Raise `UsageError` if `atomic_path` could not create a file, by creating one: its folder's mode may not tell."""
    if is_to_be_replaced(path, option):
        _check_writable_folder(Path(os.path.realpath(path)).parent, f"{option} {path}", Path(path).parent)


def check_output(path: str, option: str = "-o") -> None:
    """Raise `UsageError` if `open_output` could not create a file at `path`, `DataError` if stdout is closed."""
    if path != "-":
        check_file(path, option)
        return
    with writable("<stdout>"):
        os.write(1, b"")


def _check_writable_folder(folder: Path, path_given: str, folder_shown: Path) -> None:
    """Raise `UsageError` if no file can be created in a folder. folder_shown: as the user named it."""
    with temporary_file(folder / "hoicli", path_given, folder=folder_shown):
        pass


def temporary_folder() -> str:
    """Return the system's folder for temporary files (TMPDIR, /tmp, ...). Raises `DataError` if none is writable."""
    import tempfile  # it takes a twentieth of the start-up

    try:
        return tempfile.gettempdir()
    except FileNotFoundError:
        problem = "no folder takes temporary files, here or in /tmp; make room, or name one that can be written"
        raise DataError(problem, place=Place("TMPDIR"), code="unwritable") from None


def check_figure(path: str, option: str = "--plot") -> None:
    """Raise `UsageError` if no figure can be written to `path`, `DataError` if matplotlib has no folder for fonts."""
    if Path(path).suffix.lower() not in FIGURE_ENDINGS:
        raise UsageError(f"{option} {path}: end the name in .png, .svg or .pdf", code="bad-output")
    if find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'hoicli[plot]'", code="missing-package")
    if "MPLCONFIGDIR" not in os.environ:
        temporary_folder()  # where matplotlib's cache may go; raises an error if there is none
    check_file(path, option)


def check_made_folder(path: str, option: str) -> None:
    """Raise `UsageError` if `atomic_folder` could not create or replace the folder `path`."""
    target = Path(path)
    if target.exists() and not target.is_dir():
        raise UsageError(f"{option} {path}: is a file; give a folder", code="bad-output")
    if target.is_dir() and has_foreign_files(target):
        problem = "there are other files in it, and the folder is replaced as a whole"
        raise UsageError(f"{option} {path}: {problem}; give a new folder, or an empty one", code="bad-output")
    try:
        above = target.resolve().parent
    except (OSError, RuntimeError):  # links that lead to one another
        raise UsageError(f"{option} {path}: is a link that leads nowhere; give a folder", code="bad-output") from None
    if not above.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {above}; make it first", code="bad-output")
    _check_writable_folder(above, f"{option} {path}", target.parent)


def check_folder(path: str, option: str) -> None:
    """Raise `UsageError` if no file could be created in the folder `path`, which is made with its parents."""
    existing = Path(path).absolute()
    while not existing.exists() and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise UsageError(f"{option} {path}: cannot be created ({existing} is no folder)", code="bad-output")
    _check_writable_folder(existing, f"{option} {path}", existing)


def check_appended(path: str, option: str) -> None:
    """Raise `UsageError` if a file cannot be read and appended to, or a new one cannot be created."""
    if not os.path.isfile(path):
        check_file(path, option)
    elif not os.access(path, os.R_OK | os.W_OK):
        raise UsageError(f"{option} {path}: cannot be read and written; give a file that can", code="bad-output")
