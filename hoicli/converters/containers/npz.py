""".npz archives read row by row, for arrays larger than memory and files from untrusted sources.

An archive is a zip of .npy members, each a short header and then the numbers (NumPy's numpy.lib.format documents it).
The header is a Python literal, parsed here and never evaluated; only arrays of numbers and of text are read, so that
nothing of a file can run. A member is decompressed as its rows are asked for.

What it may cost: an array unpacks to 4 MiB or 64 bytes a byte of the file on the disk, whatever the archive says.
"""

from __future__ import annotations

import ast
import math
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import IO, Any

import numpy as np

from hoicli.converters.containers.source import Source
from hoicli.errors import DataError
from hoicli.io.claims import reads
from hoicli.io.inputs import readable

SUFFIX = ".npy"
MAGIC = b"\x93NUMPY"
_LENGTHS = {1: "<H", 2: "<I", 3: "<I"}
"""The format of the header's length, by version."""
LONGEST_HEADER = 10_000
DENSE, DENSEST = 1 << 22, 64
"""Bytes that an array may unpack to, and beyond which it is a bomb if they are so many times what they come from: the
numbers of a model hardly compress at all."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What numpy.savez and numpy.savez_compressed write. Other methods may ask for gigabytes before a byte is read."""
_NUMBERS = re.compile(r"[<>=|]?([fiuUS])(\d{1,9})")
"""The element types that are read: floats, integers, text."""
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, TypeError, IndexError, KeyError,
    AttributeError, OverflowError, RuntimeError, NotImplementedError,
)  # fmt: skip
"""The exceptions of zipfile and NumPy for damaged or unsupported bytes."""


@contextmanager
def _whole(source: Source, name: str = "") -> Iterator[None]:
    """Turn the exceptions for damaged bytes into a `DataError`."""
    try:
        yield
    except _DAMAGE as error:
        problem = f"not readable as .npz ({error}); write it again with numpy.savez"
        raise DataError(problem, place=source.name, field=name) from None


class Archive:
    """The arrays of one .npz file, by name, read on first use. Raises `DataError` that names the file, and the array if
    it is the problem.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        plain = source.path.endswith(".npz")
        reads(source.path)
        with readable(source.path):
            self._stored = source.stored
            self._file: IO[bytes] = open(source.path, "rb") if plain else BytesIO(source.data)  # noqa: SIM115
        try:
            with _whole(source):
                self._zip = zipfile.ZipFile(self._file)
        except DataError:
            self._file.close()
            raise
        files = [
            info for info in self._zip.infolist() if not info.filename.endswith("/")
        ]  # is_dir() fails without a name
        self._members = {info.filename.removesuffix(SUFFIX): info for info in files}

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()
        self._file.close()  # an unfinished reader keeps it open, too

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._members)

    def shape(self, name: str) -> tuple[int, ...]:
        """An array's shape, from its header."""
        with self._opened(name) as (_, shape, _, _):
            return shape

    def whole(self, name: str) -> np.ndarray[Any, Any]:
        """All of a small array."""
        rows = list(self.rows(name, ()))
        return rows[0] if rows else np.zeros(self.shape(name))

    def rows(self, name: str, row: tuple[int, ...]) -> Iterator[np.ndarray[Any, Any]]:
        """An array of shape [N, *row] as N arrays of shape `row`; the whole for a `row` of (). Raises `DataError` if
        the array is cut off or has another shape.
        """
        with self._opened(name) as (stream, shape, fortran, dtype):
            part = row or shape
            if row and shape[-len(row) :] != row:
                raise DataError(f"shape {list(shape)}, not [N, {', '.join(map(str, row))}]", **self._at(name))
            if fortran and len(shape) > 1:  # rows lie apart: there is no way but to read it all
                flat = self._read(stream, math.prod(shape), dtype, name)
                yield from flat.reshape(shape, order="F").reshape((-1, *part))
                return
            size = math.prod(part)
            for _ in range(math.prod(shape) // size if size else 0):
                yield self._read(stream, size, dtype, name).reshape(part)

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[IO[bytes], tuple[int, ...], bool, np.dtype[Any]]]:
        """A member's stream after its header, and the header's shape, order and type."""
        if name not in self._members:
            has = ", ".join(self.names[:8]) or "nothing"
            raise DataError(f"has no array {name}; it holds {has[:120]}", place=self._source.name)
        info = self._members[name]
        if info.compress_type not in METHODS:
            raise DataError("compressed in a way that NumPy does not; save it with numpy.savez", **self._at(name))
        if info.file_size > max(DENSE, DENSEST * min(info.compress_size, self._stored)):
            raise DataError("would take more memory than its size can justify; save it again", **self._at(name))
        with _whole(self._source, name), self._zip.open(info) as stream:
            shape, fortran, kind = _header(stream)
            if _NUMBERS.fullmatch(kind) is None:
                raise DataError(f"an array of {kind[:20]}, no numbers; save it as float32", **self._at(name))
            dtype = np.dtype(kind)
            if math.prod(shape) * dtype.itemsize != info.file_size - stream.tell():
                raise DataError("its size is not what its header says; write it again", **self._at(name))
            yield stream, shape, fortran, dtype

    def _read(self, stream: IO[bytes], count: int, dtype: np.dtype[Any], name: str) -> np.ndarray[Any, Any]:
        """The next `count` elements."""
        data = stream.read(count * dtype.itemsize)
        if len(data) != count * dtype.itemsize:
            raise DataError("breaks off; write it again", **self._at(name))
        if dtype.kind == "U" and data and np.frombuffer(data, f"{dtype.byteorder}u4").max() > sys.maxunicode:
            raise DataError("text of impossible characters; write it again", **self._at(name))
        return np.frombuffer(data, dtype)

    def _at(self, name: str) -> dict[str, str]:
        return {"place": self._source.name, "field": name}


def npy(source: Source) -> np.ndarray[Any, Any]:
    """The array of a .npy file, as numpy.save writes it. Raises `DataError` for damage and for anything but numbers and
    text."""
    with _whole(source):
        stream = BytesIO(source.data)
        shape, fortran, kind = _header(stream)
        if _NUMBERS.fullmatch(kind) is None:
            raise DataError(f"an array of {kind[:20]}, no numbers; save it as float32", place=source.name)
        dtype, rest = np.dtype(kind), source.data[stream.tell() :]
        if math.prod(shape) * dtype.itemsize != len(rest):
            raise DataError("its size is not what its header says; write it again", place=source.name)
        return np.frombuffer(rest, dtype).reshape(shape, order="F" if fortran else "C")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, str]:
    """(shape, whether in Fortran's order, element type) of a .npy member. Raises ValueError for anything else."""
    start = stream.read(8)
    length = _LENGTHS.get(start[6]) if start.startswith(MAGIC) and len(start) == 8 else None
    if length is None:
        raise ValueError("no .npy header")
    (size,) = struct.unpack(length, stream.read(struct.calcsize(length)).ljust(struct.calcsize(length), b"\0"))
    if size > LONGEST_HEADER:
        raise ValueError("a header of more than 10,000 bytes")
    try:
        header = ast.literal_eval(stream.read(size).decode("latin-1").strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError("a header that is no literal") from None
    match header:
        case {"descr": kind, "fortran_order": bool(fortran), "shape": tuple(shape)}:
            if all(type(side) is int and side >= 0 for side in shape):
                return shape, fortran, str(kind)
    raise ValueError("a header without shape and type")
