"""What is written survives a power cut: content is on disk before it takes its name, and then the name is.

A file costs about 5 ms and a folder as much (on an SSD with ext4), which is nothing for a result and an hour for a
benchmark's images. So a file of results is synced by itself, and a tree of images once, as a whole, at its end: until
then a power cut may leave images under their names that are cut off, which the next run makes again.
"""

from __future__ import annotations

import ctypes
import errno
import os
from contextlib import suppress
from pathlib import Path

UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EBADF, errno.EACCES, errno.EPERM})
"""What a file system says that cannot sync, as some of FUSE and of networks: no reason to lose the result."""


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on disk. Raises `OSError` if it does not get there: a full or broken disk
    may say so only now."""
    number = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        _sync(number)
    finally:
        os.close(number)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk. Nothing can be done, and nothing is said, where that fails: the
    file is there under its name."""
    if hasattr(os, "O_DIRECTORY"):  # Windows has no way
        with suppress(OSError):
            number = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                _sync(number)
            finally:
                os.close(number)


def sync_tree(folder: Path) -> None:
    """Wait until all files below a folder are on disk, by one call for its whole file system. Raises `OSError` if they
    do not get there. Nothing happens for a folder that is not there."""
    try:
        number = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        _sync_file_system(number)
    finally:
        os.close(number)


def _sync(number: int) -> None:
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise


def _sync_file_system(number: int) -> None:
    """`syncfs` of the C library, which Python has not; elsewhere all file systems are synced."""
    try:
        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError, TypeError):  # macOS; TypeError: Windows has no library without a name
        if hasattr(os, "sync"):
            os.sync()
        return
    if syncfs(number) and (code := ctypes.get_errno()) not in UNSUPPORTED:
        raise OSError(code, os.strerror(code))
