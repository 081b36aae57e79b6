"""Which files a call of a command reads and writes, so that no output overwrites an input, whatever the input's name.

Outputs are registered before the command starts (`register_output`), inputs when they are opened (`register_input`). If
both name the same file, whichever comes second raises an error. Files are compared by identity, not by name: links and
./ do not matter."""

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
    """The inputs and outputs of one call. read, written: what the user calls an input, and (option, path) of an output,
    by the file's identity (`file_of`); whole: (option, path) by a folder's resolved path."""

    read: dict[object, str] = field(default_factory=dict)
    written: dict[object, tuple[str, str]] = field(default_factory=dict)
    whole: dict[str, tuple[str, str]] = field(default_factory=dict)


_CLAIMS: ContextVar[_Claims | None] = ContextVar("claims", default=None)


@contextmanager
def watch_files() -> Iterator[None]:
    """Register the inputs and outputs of the call that runs in the block; both are forgotten when it ends."""
    before = _CLAIMS.set(_Claims())
    try:
        yield
    finally:
        _CLAIMS.reset(before)


def register_input(path: str | Path, name: str = "", *, is_kept: bool = True) -> None:
    """Register a file (or folder, or - for stdin) as an input. Raises `UsageError` if it is one of the call's outputs.

    name: what the user calls it, if not by its path. is_kept: whether later outputs are checked against it."""
    claims = _CLAIMS.get()
    if claims is None:
        return
    # claims.whole, claims.written: (option, path) of the folders that are replaced as a whole, and of all other outputs
    path, file = str(path), file_of(path)
    outputs = [output for folder, output in claims.whole.items() if _is_within(path, folder)]
    if file in claims.written:
        outputs.insert(0, claims.written[file])
    if outputs:
        option, output_path = outputs[0]
        raise _input_error(option, output_path, name or path)
    if is_kept and file is not None:
        claims.read.setdefault(file, name or path)


def register_output(path: str, option: str, *, whole: bool = False) -> None:
    """Register a file (- for stdout), or a `whole` folder, as an output. Raises `UsageError` if it is taken."""
    claims = _CLAIMS.get()
    if claims is None:
        return
    # stdout counts under its name, and also as the file that it may be redirected to
    files = [file for file in ("stdout" if path == "-" else None, file_of(path, standard=1)) if file is not None]
    # the outputs (option, path) of this call that are the same file, or a folder around it, or in it
    outputs = [claims.written[file] for file in files if file in claims.written]
    outputs += [output for folder, output in claims.whole.items() if _is_within(path, folder)]
    if whole:
        folder = os.path.realpath(path)
        outputs += [output for output in claims.written.values() if _is_within(output[1], folder)]
        claims.whole[folder] = (option, path)
    for other_option, _ in outputs:
        if other_option != option:
            problem = f"{option} {path}: is the output of {other_option} already; give another file"
            raise UsageError(problem, code="bad-output")
    claims.written.update(dict.fromkeys(files, (option, path)))
    refuse_input(path, option)


def refuse_input(path: str | Path, option: str) -> None:
    """Raise `UsageError` if the file to be written, the output of an option, is one that the call has read."""
    claims = _CLAIMS.get()
    if claims is not None and (name := claims.read.get(file_of(path, standard=1))) is not None:
        raise _input_error(option, str(path), name)


def _input_error(option: str, path: str, name: str) -> UsageError:
    """Return the error that the output of an option is also an input. name: what the user calls the input."""
    output = "stdout" if path == "-" else f"{option} {path}"
    return UsageError(f"{output}: is an input, too ({name}); give another name", code="bad-output")


def _is_within(path: str, folder: str) -> bool:
    """Return whether a path is `folder`, or lies in it, with all links followed. folder: a resolved path."""
    return path != "-" and Path(os.path.realpath(path)).is_relative_to(folder)


def file_of(path: str | Path, *, standard: int = 0) -> object:
    """Return the identity of a file, which is the same for all its names: (device, inode), or the resolved path of a
    file that does not exist yet. None for a pipe, a device or a folder, which may be read and written at once.

    standard: the descriptor of the stream that - means: 0 is stdin, 1 stdout."""
    try:
        status = os.fstat(standard) if path == "-" else os.stat(path)
    except OSError:  # a closed stream, or no such file
        return None if path == "-" else os.path.realpath(path)
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
