"""MATLAB 5 files (-v6, -v7): the container of HICO-DET's annotations and of the official evaluation's detections.

    variables(source) -> {name: Variable};   load(source, name) -> Numbers, Cells, Structs or text, nested

SciPy's reader is not used: it allocates any size that a header declares, and crashes the interpreter on a changed type
tag. Here every step stays within the bytes of the file. Sparse matrices, functions, objects and big-endian files are
refused, since annotations and detections have none.

What it may cost, in bytes of the file on the disk, whether it is compressed once, twice or not at all: a variable
unpacks to 64 MiB or 200 bytes a byte, 1 GiB at most, and has two million places or 32 a byte: a cell or field, of 16
bytes, is one, and a matrix in it, of 200 bytes, eight more.

The format: MAT-File Format, MathWorks (level 5). Every failure is a `DataError` that names the file.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.containers.source import Source
from hoicli.errors import DataError

HEADER = 128
"""Bytes before the first variable: text, version, and IM for the byte order."""

HEAD = 512
"""Bytes of a variable that hold its class, shape and name."""

TAG = struct.Struct("<II").unpack_from
"""(type, size) of a data element."""
FLAGS_AND_SHAPE = struct.Struct("<8I").unpack_from
MATRIX, COMPRESSED = 14, 15
FLAGS, DIMENSIONS = (6, 8), 5
CELL, STRUCT, TEXT, NUMBERS = 1, 2, 4, range(6, 16)
"""Types of data elements, and classes of matrices in HICO-DET's files: no objects, functions or sparse matrices."""

CODES = {1: "<b", 2: "<B", 3: "<h", 4: "<H", 5: "<i", 6: "<I", 7: "<f", 9: "<d", 12: "<q", 13: "<Q"}
"""Type of a data element -> its code in `struct` and NumPy."""

ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16-le", 16: "utf-8", 17: "utf-16-le"}
"""Type of a data element -> the encoding of its text."""

LARGEST, DENSE, DENSEST = 1 << 30, 1 << 26, 200
"""A variable may unpack to DENSE bytes, and to more only up to DENSEST times its compressed size, and LARGEST."""

PACKED_PIECE = 1 << 14
"""Compressed bytes that are unpacked at a time; at most a thousand times as many come of them."""

PLACES, PLACES_PER_BYTE = 1 << 21, 32
"""How many cells and fields of structs a variable may have, in all or for each byte of the file. Nearly all cells of
detections are empty, and take less than a byte each when compressed."""
OF_A_MATRIX = 8
"""The places that a matrix in a cell or field counts for; equal empty matrices are free. HICO-DET's annotations have
0.2 matrices a byte."""

MOST_DIMENSIONS, DEEPEST = 32, 32
"""The most dimensions, as in NumPy's arrays; the deepest structs within structs: bbox_test has four levels."""


class Numbers(NamedTuple):
    """A numeric matrix as stored, column by column. code: the format of one number, for `struct` and NumPy."""

    shape: tuple[int, ...]
    code: str
    data: bytes

    def flat(self) -> tuple[float, ...]:
        """Return the numbers, column by column."""
        return struct.unpack(f"<{len(self.data) // struct.calcsize(self.code)}{self.code[1]}", self.data)

    def array(self) -> NDArray[Any]:
        """Return the matrix as a NumPy array."""
        return np.frombuffer(self.data, self.code).reshape(self.shape, order="F")


NOTHING = Numbers((0, 0), "<d", b"")
"""MATLAB's []."""


class Cells(NamedTuple):
    """A cell array, whose items come column by column."""

    shape: tuple[int, ...]
    items: list[Any]


class Structs(NamedTuple):
    """A struct array, whose rows come column by column; each row has the values of the fields `names`."""

    names: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class Variable(NamedTuple):
    """A variable's place in the file (start, end), its shape, and its kind: cell, numbers, or a class's number."""

    start: int
    end: int
    kind: str
    shape: tuple[int, ...]


def variables(source: Source) -> dict[str, Variable]:
    """Return every variable by its name, without its content, which `load` reads. Raises `DataError` for a file that is
    cut off, or no MATLAB 5 file."""
    data, variables_read = source.data, {}
    version = data[124:HEADER]
    if version != b"\x00\x01IM":  # little-endian, level 5
        problem = "is no MATLAB 5 file, or cut off; fetch it again, or save it with -v7"
        raise DataError(problem, place=source.name, code="damaged")
    position = HEADER
    while position < len(data):
        with _damage_as_error(source):
            kind, size = TAG(data, position)
            end = position + 8 + size
            if kind not in (MATRIX, COMPRESSED) or end > len(data):
                raise ValueError("a variable goes beyond its end" if end > len(data) else f"unknown element {kind}")
            name, variable_kind, shape = _MatrixReader(_head(data, position, end)).head()
            variables_read[name] = Variable(position, end, variable_kind, shape)
        position = end
    return variables_read


def load(source: Source, name: str) -> Any:
    """Return a variable: `Numbers`, `Cells`, `Structs` or text, nested. Raises `DataError` for a damaged file."""
    start, end, *_ = variables(source)[name]
    with _damage_as_error(source):
        element = _element(source.data, start, end, source.stored)
        value, end = _MatrixReader(element, source.stored).matrix(0, len(element), DEEPEST)
        if end != len(element):
            raise ValueError(f"{name} ends at byte {end:,} of {len(element):,}")
        return value


@contextmanager
def _damage_as_error(source: Source) -> Iterator[None]:
    """Turn errors of parsing damaged bytes into a `DataError`."""
    try:
        yield
    except (struct.error, zlib.error, ValueError) as error:
        problem = f"is damaged or cut off ({error}); fetch or save it again"
        raise DataError(problem, place=source.name, code="damaged") from None


def _head(data: bytes, start: int, end: int) -> bytes:
    """Return the first bytes of the matrix between `start` and `end`, decompressed: its header and its name."""
    content = data[start : min(end, start + PACKED_PIECE)]
    is_compressed = TAG(data, start)[0] == COMPRESSED
    return zlib.decompressobj().decompress(content[8:], HEAD) if is_compressed else content[:HEAD]


def _element(data: bytes, start: int, end: int, stored: int) -> bytes:
    """Return the matrix between `start` and `end`, decompressed. stored: the bytes of the file on the disk. Raises
    ValueError if it unpacks to more than that justifies, or has no end; what follows the end does not count."""
    if TAG(data, start)[0] == MATRIX:
        return data[start:end]
    stream = zlib.decompressobj()
    pieces: list[bytes] = []
    unpacked = 0
    for position in range(start + 8, end, PACKED_PIECE):
        pieces.append(stream.decompress(data[position : min(end, position + PACKED_PIECE)]))
        unpacked += len(pieces[-1])
        packed_bytes = min(stored, position + PACKED_PIECE - start - len(stream.unused_data))
        if unpacked > min(LARGEST, max(DENSE, DENSEST * packed_bytes)):
            raise ValueError(f"unpacks to more than {unpacked >> 20} MiB, as no file of {stored:,} bytes does")
        if stream.eof:
            return b"".join(pieces)
    raise ValueError("compressed data without an end")


class _MatrixReader:
    """Reads the matrices of one variable. places: how many more it may have (`take_places`). empty: the bytes of the
    last empty cell, and its row. Raises ValueError or struct.error for damaged bytes."""

    def __init__(self, data: bytes, stored: int = 0) -> None:
        """stored: the bytes of the file on the disk."""
        self.data = data
        self.places = max(PLACES, PLACES_PER_BYTE * stored)
        self.field_names: dict[tuple[int, bytes], tuple[str, ...]] = {}
        self.empty = b"", (NOTHING,)

    def head(self) -> tuple[str, str, tuple[int, ...]]:
        """Return the variable's name (the third element, after the flags and the dimensions), kind and shape."""
        _, _, word, _, _, size, *_ = FLAGS_AND_SHAPE(self.data, 8)
        kind = word & 0xFF
        kind_name = "numbers" if kind in NUMBERS else "cell" if kind == CELL else f"class {kind}"
        name = self.content(32 + size + -size % 8, len(self.data))[1].decode("latin-1")
        return name, kind_name, struct.unpack_from(f"<{size // 4}I", self.data, 32)

    def matrix(self, start: int, limit: int, levels: int) -> tuple[Any, int]:
        """Return the matrix whose tag is at `start`, and where the next one begins. limit: where both must end. levels:
        how many matrices may still lie within each other."""
        data = self.data
        kind, size = TAG(data, start)
        end = start + 8 + size
        if kind != MATRIX:
            raise ValueError(f"no matrix at byte {start}")
        if end > limit or not levels:
            raise ValueError(f"a matrix goes beyond its end at byte {start}")
        self.take_places(OF_A_MATRIX)
        if not size:
            return NOTHING, end
        flags, flag_size, word, _, kind, dimension_size, *shape = FLAGS_AND_SHAPE(data, start + 8)
        if (flags, flag_size) != FLAGS or kind != DIMENSIONS or dimension_size < 8:
            raise ValueError(f"no matrix header at byte {start}")
        if dimension_size > 4 * MOST_DIMENSIONS:
            raise ValueError(f"{dimension_size // 4:,} dimensions at byte {start}")
        if dimension_size > 8:
            shape = [*struct.unpack_from(f"<{dimension_size // 4}I", data, start + 32)]
        position = start + 32 + dimension_size + -dimension_size % 8  # elements are padded to eight bytes
        kind, size = TAG(data, position)
        position += 8 if kind >> 16 else 8 + size + -size % 8  # the name
        kind = word & 0xFF
        if kind in NUMBERS:
            return self.numbers(position, end, tuple(shape)), end
        if kind == STRUCT:
            return self.structs(position, end, prod(shape), levels), end
        if kind == CELL:
            items = [item for (item,) in self.rows(position, end, prod(shape), 1, levels)]
            return Cells(tuple(shape), items), end
        if kind == TEXT:
            return self.text(position, end), end
        raise ValueError(f"a matrix of class {kind} at byte {start}")

    def take_places(self, number: int) -> None:
        """Raise ValueError for more cells, fields and matrices than the file's size justifies."""
        self.places -= number
        if self.places < 0:
            raise ValueError("more cells, fields and matrices than any file of its size has")

    def content(self, start: int, limit: int) -> tuple[int, bytes, int]:
        """Return the type and the bytes of the data element at `start`, and where the next element begins."""
        kind, size = TAG(self.data, start)
        small = kind >> 16  # a small element: its bytes are in place of the size
        begin = start + 4 if small else start + 8
        size = small or size
        if begin + size > limit or small > 4:
            raise ValueError(f"data goes beyond its end at byte {start}")
        return kind & 0xFFFF, self.data[begin : begin + size], start + 8 if small else begin + size + -size % 8

    def numbers(self, start: int, end: int, shape: tuple[int, ...]) -> Numbers:
        """Return a numeric matrix; of complex numbers it has the real part."""
        kind, content, _ = self.content(start, end)
        if kind not in CODES:
            raise ValueError(f"numbers of type {kind} at byte {start}")
        code = CODES[kind]
        if prod(shape) * struct.calcsize(code) != len(content):
            raise ValueError(f"{prod(shape):,} numbers declared in {len(content):,} bytes at byte {start}")
        return Numbers(shape, code, content)

    def structs(self, start: int, end: int, count: int, levels: int) -> Structs:
        """Return a struct array of `count` rows. The file has the length of a field's name, the names one after
        another, and the values row by row."""
        _, length_bytes, position = self.content(start, end)
        _, content, position = self.content(position, end)
        length = struct.unpack("<I", length_bytes)[0]
        if length < 1:
            raise ValueError(f"field names without a length at byte {start}")
        names = self.field_names.get((length, content))
        if names is None:
            parts = (content[offset : offset + length] for offset in range(0, len(content), length))
            self.take_places(len(content) // length)
            names = tuple(part.split(b"\0")[0].decode("latin-1") for part in parts)
            self.field_names[length, content] = names
        return Structs(names, self.rows(position, end, count, len(names), levels))

    def rows(self, position: int, end: int, count: int, width: int, levels: int) -> list[tuple[Any, ...]]:
        """Return `count` rows of `width` matrices. Only rows that are really there take room, whatever is declared."""
        self.take_places(min(count * width, (end - position) // 8))  # as many as there can be
        rows: list[tuple[Any, ...]] = []
        for _ in range(count if width else 0):
            empty_bytes, empty_row = self.empty
            if empty_bytes and width == 1 and self.data.startswith(empty_bytes, position):
                rows.append(empty_row)  # detections have millions of empty cells with equal bytes
                position += len(empty_bytes)
                continue
            start, row = position, []
            for _ in range(width):
                value, position = self.matrix(position, end, levels - 1)
                row.append(value)
            rows.append(tuple(row))
            if width == 1 and isinstance(row[0], Numbers) and not row[0].data:
                self.empty = self.data[start:position], rows[-1]
        if width and position != end:
            raise ValueError(f"only {count:,} items declared, but there are more at byte {position}")
        return rows

    def text(self, start: int, end: int) -> str:
        """Return a char matrix as text; if it has several rows, it comes out column by column."""
        kind, content, _ = self.content(start, end)
        if kind not in ENCODINGS:
            raise ValueError(f"text of type {kind} at byte {start}")
        return content.decode(ENCODINGS[kind], "replace")
