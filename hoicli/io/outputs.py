"""Bytes out: to stdout, to a device, or to files that appear whole or not at all."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, BinaryIO, cast

from hoicli.errors import DataError, UsageError
from hoicli.io import zstd
from hoicli.io.signals import held

WRITE_CHUNK = 1 << 18
"""Bytes gathered before a write: large enough that a system call costs nothing, small enough to stream."""


def stays_inside(name: str) -> bool:
    """Whether a file name that a record gives leads to a place in its folder, whatever system reads it."""
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    return not (posix.is_absolute() or windows.anchor or ".." in {*posix.parts, *windows.parts} or "\0" in name)


@contextmanager
def open_output(path: str) -> Iterator[Callable[[bytes], object]]:
    """A `write(bytes)` function for `-` (stdout) or a file that appears whole, under its name, or not at all.

    A name ending in .gz or .zst is compressed, the same bytes in giving the same bytes out. Raises as `atomic_path`.
    """
    number = 1 if path == "-" else descriptor(path)
    if number == 1:
        with _gathered(sys.stdout.buffer) as write:
            yield write
    elif number is not None:  # an open stream goes on from where it stands, as it was opened
        with writable(path), open(os.dup(number), "wb", buffering=WRITE_CHUNK) as opened:
            yield opened.write
    else:
        with (
            atomic_path(path) as temporary,
            open(temporary, "wb", buffering=WRITE_CHUNK) as raw,
            compressor(path, raw) as stream,
        ):
            yield stream.write


@contextmanager
def _gathered(stdout: BinaryIO) -> Iterator[Callable[[bytes], None]]:
    """Writes in large pieces. Complete lines computed before an error are not lost."""
    chunks: list[bytes] = []
    size = 0

    def write(data: bytes, least: int = WRITE_CHUNK) -> None:
        nonlocal size
        chunks.append(data)
        size += len(data)
        if size >= least:
            with writable("<stdout>"):
                stdout.write(b"".join(chunks))
                stdout.flush()
            chunks.clear()
            size = 0

    try:
        yield write
    finally:
        write(b"", least=0)


@contextmanager
def compressor(path: str, raw: BinaryIO) -> Iterator[IO[bytes]]:
    """What writes to `raw`, compressed as the ending of `path` says. Raises `UsageError` where there is no zstd."""
    if path.endswith(".gz"):
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0, compresslevel=6) as stream:
            yield cast("IO[bytes]", stream)
    elif path.endswith(".zst"):
        module = zstd.module()
        if module is None:
            raise UsageError(f"-o {path}: writing zstd needs pip install 'hoicli[zstd]'; or end the name in .gz")
        with module.writer(raw) as stream:
            yield cast("IO[bytes]", stream)
    else:
        yield raw


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
    if not is_to_be_replaced(path, option):
        with writable(path):
            yield path
        return
    target = Path(os.path.realpath(path))
    with beside(target, f"{option} {path}", Path(path).parent) as temporary, writable(path):
        yield str(temporary)
        inherit(temporary, target)
        os.replace(temporary, target)


@held()  # it takes a moment, and then there is no part of a file to be removed
def write_whole(path: Path, data: bytes, option: str = "--out") -> None:
    """A file in a folder that is made if need be, whole or not at all. Raises as `atomic_path`."""
    with _refusing(f"{option} {path}", path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(str(path), option) as temporary:
        Path(temporary).write_bytes(data)


@contextmanager
def atomic_folder(path: str) -> Iterator[Path]:
    """A folder beside `path`, new or empty before, that takes its name when the block ends well and is removed when it
    does not. Raises `DataError` where the bytes do not fit."""
    target = Path(path).resolve()
    folder = _part_of(target)
    with _removed(folder), writable(path):
        folder.mkdir()
        yield folder
        if inherit(folder, target):
            target.rmdir()
        folder.rename(target)


def descriptor(path: str) -> int | None:
    """The number of the open stream that a name stands for (/dev/stdout, /dev/fd/6), None for any other name.

    What it leads to may be a file, and is not to be replaced: the shell goes on writing to the one that it has open.
    """
    numbered = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]{1,9})", path)
    return int(numbered[1]) if numbered else {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}.get(path)


def is_to_be_replaced(path: str, option: str) -> bool:
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
def beside(target: Path, given: str, folder: Path) -> Iterator[Path]:
    """An empty file in the folder of `target`, removed in the end if it is still there; while it is to replace a file,
    nobody else can read it. given, folder: what was asked for, and its folder, as messages name them."""
    temporary = _part_of(target)
    mode = 0o600 if target.exists() else 0o666
    with _removed(temporary):
        with _refusing(given, folder):
            os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
        yield temporary


def _part_of(target: Path) -> Path:
    """What a file or folder is called until it is whole. A name may have 255 bytes, and this one has some more than the
    target's first 50 characters."""
    return target.parent / f".{target.name[:50]}.{os.urandom(5).hex()}.part"


@contextmanager
def _removed(part: Path) -> Iterator[None]:
    """When the block ends there is no such file or folder, even if a signal (Ctrl-C, SIGTERM) comes while it is made
    or removed."""
    try:
        try:
            yield
        finally:
            _remove(part)
    finally:  # once more: a signal that comes on the way to the first
        _remove(part)


def _remove(part: Path) -> None:
    with suppress(FileNotFoundError, NotADirectoryError):
        shutil.rmtree(part, ignore_errors=True) if part.is_dir() else part.unlink()


@contextmanager
def _refusing(given: str, folder: Path) -> Iterator[None]:
    """Turn what the operating system says of making a file in a folder into a `UsageError` about what was given."""
    try:
        yield
    except IsADirectoryError:
        raise UsageError(f"{given}: is a directory; give a file name") from None
    except FileNotFoundError:
        raise UsageError(f"{given}: there is no folder {folder}; make it first") from None
    except (NotADirectoryError, FileExistsError):
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
