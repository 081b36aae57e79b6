"""Arrays of numbers and text in .npz and .npy files from untrusted sources.

An archive is a zip of .npy members, each a short header and then the numbers (NumPy's numpy.lib.format documents it).
The header is a Python literal, parsed here and never evaluated, so that nothing of a file can run.

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
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.containers.source import Source
from hoicli.errors import DataError

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
_NUMBERS = re.compile(r"[<>=|]?[fiuUS]\d{1,9}")
"""The element types that are read: floats, integers, text."""
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, TypeError, IndexError, KeyError,
    AttributeError, OverflowError, RuntimeError, NotImplementedError,
)  # fmt: skip
"""The exceptions of zipfile and NumPy for damaged or unsupported bytes."""


@contextmanager
def _readable(source: Source, name: str = "") -> Iterator[None]:
    """Turn the exceptions for damaged bytes into a `DataError`."""
    try:
        yield
    except _DAMAGE as error:
        problem = f"not readable as .npz ({error}); write it again with numpy.savez"
        raise DataError(problem, place=source.name, field=name, code="damaged") from None


def arrays(source: Source, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Those of an .npz file's arrays that have one of these names. Raises `DataError` for damage, for anything but
    numbers and text, and for more bytes than the file's size justifies."""
    found = {}
    with _readable(source):
        archive = zipfile.ZipFile(BytesIO(source.data))
    for info in archive.infolist():
        name = info.filename.removesuffix(SUFFIX)
        if name not in names:
            continue
        if info.compress_type not in METHODS:
            problem = "compressed in a way that NumPy does not; save it with numpy.savez"
            raise DataError(problem, place=source.name, field=name, code="damaged")
        if info.file_size > max(DENSE, DENSEST * min(info.compress_size, source.stored)):
            problem = "would take more memory than its size can justify; save it again"
            raise DataError(problem, place=source.name, field=name, code="damaged")
        with _readable(source, name), archive.open(info) as stream:
            found[name] = _array(stream, info.file_size)
    return found


def npy(source: Source) -> NDArray[Any]:
    """The array of a .npy file. Raises `DataError` for damage and for anything but numbers and text."""
    with _readable(source):
        return _array(BytesIO(source.data), len(source.data))


def _array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """The array of a .npy file of so many bytes. Raises ValueError for anything else."""
    shape, fortran, kind = _header(stream)
    if _NUMBERS.fullmatch(kind) is None:
        raise ValueError(f"an array of {kind[:20]}, no numbers")
    dtype = np.dtype(kind)
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise ValueError("its size is not what its header says")
    data = stream.read()
    if dtype.kind == "U" and data and np.frombuffer(data, f"{dtype.byteorder}u4").max() > sys.maxunicode:
        raise ValueError("text of impossible characters")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, str]:
    """(shape, whether in Fortran's order, element type) of a .npy file. Raises ValueError for anything else."""
    start = stream.read(8)
    length = _LENGTHS.get(start[6]) if start.startswith(MAGIC) and len(start) == 8 else None
    if length is None:
        raise ValueError("no .npy header")
    (size,) = struct.unpack(length, stream.read(struct.calcsize(length)))
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
