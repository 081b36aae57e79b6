"""What a run reads, and where it writes: no file that it reads is written over, however it learned of the file.

A run says before its work where it will write (`writes`); whatever opens a file for reading says so, too (`reads`), and
the second of the two that name one file is refused. Links and ./ are followed, so that all names of a file are one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from hoicli.errors import UsageError


@dataclass
class _Claims:
    """read: how the user named a file, by its identity; written: (option, path) of an output, by its identity; whole:
    the same of a folder that is replaced, by its path."""

    read: dict[object, str] = field(default_factory=dict)
    written: dict[object, tuple[str, str]] = field(default_factory=dict)
    whole: dict[str, tuple[str, str]] = field(default_factory=dict)


_CLAIMS: ContextVar[_Claims | None] = ContextVar("claims", default=None)


@contextmanager
def watch_files() -> Iterator[None]:
    """In the block one run notes what it reads and writes; both are forgotten at the end."""
    before = _CLAIMS.set(_Claims())
    try:
        yield
    finally:
        _CLAIMS.reset(before)


def reads(path: str | Path, name: str = "", *, is_kept: bool = True) -> None:
    """Note that the run reads this file (or folder, or - for stdin). Raises `UsageError` if it is one of the run's
    outputs.

    name: what the user calls it. is_kept: whether outputs that are named later are checked against it, too; not for the
    images of a dataset, which are many, and are read when all outputs are known."""
    claims = _CLAIMS.get()
    if claims is None:
        return
    path, file = str(path), file_of(path)
    for output in [
        claims.written.get(file),
        *(claims.whole[folder] for folder in claims.whole if _is_within(path, folder)),
    ]:
        if output is not None:
            raise _refusal(*output, name or path)
    if is_kept and file is not None:
        claims.read.setdefault(file, name or path)


def writes(path: str, option: str, *, whole: bool = False) -> None:
    """Note that the run will write this file (- for stdout), or replace this folder as a `whole`. Raises `UsageError`
    if it is another option's output, or an input."""
    claims = _CLAIMS.get()
    if claims is None:
        return
    files = [file for file in ("stdout" if path == "-" else None, file_of(path, standard=1)) if file is not None]
    taken = [claims.written.get(file) for file in files] + [
        claims.whole[folder] for folder in claims.whole if _is_within(path, folder)
    ]
    if whole:
        folder = os.path.realpath(path)
        taken += [output for output in claims.written.values() if _is_within(output[1], folder)]
        claims.whole[folder] = (option, path)
    for output in taken:
        if output is not None and output[0] != option:
            problem = f"{option} {path}: is the output of {output[0]} already; give another file"
            raise UsageError(problem, code="bad-output")
    claims.written.update(dict.fromkeys(files, (option, path)))
    refuse_input(path, option)


def refuse_input(path: str | Path, option: str) -> None:
    """Raise `UsageError` if a file that is about to be written is one that the run has read."""
    claims = _CLAIMS.get()
    if claims is not None and (name := claims.read.get(file_of(path, standard=1))) is not None:
        raise _refusal(option, str(path), name)


def _refusal(option: str, path: str, name: str) -> UsageError:
    """Return the error that an output is an input, too, which the user calls `name`."""
    output = "stdout" if path == "-" else f"{option} {path}"
    return UsageError(f"{output}: is an input, too ({name}); give another name", code="bad-output")


def _is_within(path: str, folder: str) -> bool:
    """Return whether a path is a resolved folder, or lies in it."""
    return path != "-" and Path(os.path.realpath(path)).is_relative_to(folder)


def file_of(path: str | Path, *, standard: int = 0) -> object:
    """Return the identity of a file, the same under all its names; None for a pipe, a device or a folder, which may be
    shared.

    standard: the number of the stream that - means."""
    try:
        status = os.fstat(standard) if path == "-" else os.stat(path)
    except OSError:
        return None if path == "-" else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
