"""A folder of unfinished files under a fixed name, so that the next run finds and removes what a killed one left."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hoicli.errors import DataError

LOCK = ".lock"
"""The file in the folder that its process has locked. The system lets go of it when the process dies, by kill -9 too.
It is a file because network file systems lock no folders."""


@contextmanager
def work_folder(folder: Path) -> Iterator[Path]:
    """An empty folder, in the place of what a killed run left; removed at the end. Its parent is there.

    Raises `DataError` if another process has it now, as far as the file system has locks, and `OSError`.
    """
    lock = locked(folder)
    try:
        for left in folder.iterdir():
            if left.name != LOCK:
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def locked(folder: Path) -> int:
    """The open and locked file of the folder, which is made if missing; closing it lets go of the lock. Raises as
    `work_folder`."""
    while True:
        if folder.is_symlink():
            raise FileExistsError(errno.EEXIST, "its folder of unfinished files is a link")
        folder.mkdir(exist_ok=True)
        try:
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        except FileNotFoundError:  # removed meanwhile by the process that had it
            continue
        try:
            alone(lock, folder)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(lock), os.stat(folder / LOCK)):
                    return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def alone(file: int, place: Path) -> None:
    """Lock an open file until it is closed, by the end of the process too. Raises `DataError` that names `place` if
    another process has it, as far as the file system has locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        problem = "is written by another run; wait for it, or write elsewhere"
        raise DataError(problem, place=str(place)) from None
    except OSError:  # a file system without locks
        return
