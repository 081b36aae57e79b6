"""Arrays of numbers and text in .npz and .npy files from untrusted sources.

An archive is a zip of .npy members, each a short header and then the numbers (numpy.lib.format documents it and reads
the header, a Python literal that is parsed and never evaluated). Arrays of objects, which are pickles, are refused.

What it may cost: an array unpacks to 4 MiB or 64 bytes a byte of the file on the disk, whatever the archive says."""

from __future__ import annotations

import math
import struct
import sys
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BytesIO
from tokenize import TokenError
from typing import IO, Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from hoicli.converters.containers.source import Source
from hoicli.errors import DataError

SUFFIX = ".npy"
DENSE, DENSEST = 1 << 22, 64
"""Bytes that any array may unpack to; beyond them, it may unpack to so many times its compressed size: the numbers of a
model hardly compress at all, so more is a bomb."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What numpy.savez and numpy.savez_compressed write. Other methods may ask for gigabytes before a byte is read."""
_DAMAGE = (
    zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, TypeError, IndexError, KeyError,
    AttributeError, OverflowError, RuntimeError, NotImplementedError, SyntaxError, MemoryError, TokenError,
)  # fmt: skip
"""The exceptions of zipfile and NumPy for damaged or unsupported bytes."""


@contextmanager
def _readable(source: Source, name: str = "") -> Iterator[None]:
    """Turn an exception that damaged bytes raise in this block of code into a `DataError`. name: the array's, or ""."""
    try:
        yield
    except _DAMAGE as error:
        problem = f"not readable as .npz ({error}); write it again with numpy.savez"
        raise DataError(problem, place=source.name, field=name, code="damaged") from None


def arrays(source: Source, names: Collection[str]) -> dict[str, NDArray[Any]]:
    """Return those arrays of an .npz file that have one of these names, by their names. Raises `DataError` for damage,
    for anything but numbers and text, and for an array that unpacks to more bytes than the file's size justifies."""
    arrays_read = {}
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
            arrays_read[name] = _array(stream, info.file_size)
    return arrays_read


def npy(source: Source) -> NDArray[Any]:
    """Return the array of a .npy file. Raises `DataError` for damage and for anything but numbers and text."""
    with _readable(source):
        return _array(BytesIO(source.data), len(source.data))


def _array(stream: IO[bytes], size: int) -> NDArray[Any]:
    """Return the array in a .npy file. Raises ValueError for damage and for arrays of objects."""
    read_header = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
    version = npy_format.read_magic(stream)
    if version not in read_header:
        raise ValueError(f"version {version}")
    with catch_warnings():  # NumPy warns of headers that Python 2 wrote
        simplefilter("ignore")
        shape, fortran, dtype = read_header[version](stream)
    if dtype.kind not in "fiuUS":
        raise ValueError(f"an array of {str(dtype)[:20]}, no numbers")
    if math.prod(shape) * dtype.itemsize != size - stream.tell():
        raise ValueError("its size is not what its header says")
    data = stream.read()
    # NumPy's text has four bytes a character; a number that is no character would crash whoever reads it later.
    if dtype.kind == "U" and data and np.frombuffer(data, f"{dtype.byteorder}u4").max() > sys.maxunicode:
        raise ValueError("text of impossible characters")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
