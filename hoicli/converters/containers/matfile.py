"""MATLAB 5 files (-v6, -v7): the container of HICO-DET's annotations and of the official evaluation's detections.

    variables(source) -> {name: Variable};   load(source, name) -> Numbers, Cells, Structs or text, nested

SciPy's reader is not used: it allocates any size that a header declares, and crashes the interpreter on a changed type
tag. Here every step stays within the bytes of the file. Sparse matrices, functions, objects and big-endian files are
refused, since annotations and detections have none.

What it may cost, in bytes of the file on the disk, whether it is compressed once, twice or not at all: a variable
unpacks to 64 MiB or 200 bytes a byte, 1 GiB at most, and has two million places or 32 a byte: a cell or field, of 16
bytes, is one, and a matrix in it, of 200 bytes, eight more. The format: MAT-File Format, MathWorks (level 5)."""

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
"""The places that a matrix counts for; equal empty ones are free. HICO-DET's annotations have 0.2 matrices a byte."""

MOST_DIMENSIONS, DEEPEST = 32, 32
"""The most dimensions, as in NumPy's arrays; the deepest structs within structs: bbox_test has four levels."""


class Numbers(NamedTuple):
    """A numeric matrix as stored, column by column. code: the format of one number, for `struct` and NumPy."""

    shape: tuple[int, ...]
    code: str
    data: bytes

    def flat(self) -> tuple[float, ...]:
        """Return the numbers of the matrix, column by column."""
        count = len(self.data) // struct.calcsize(self.code)
        return struct.unpack(f"<{count}{self.code[1]}", self.data)

    def array(self) -> NDArray[Any]:
        """Return the matrix as a NumPy array of its shape."""
        return np.frombuffer(self.data, self.code).reshape(self.shape, order="F")  # "F": stored column by column


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
    """Where a variable is and what it holds. start, end: the bytes of the file that it takes. kind: "cell", "numbers",
    or "class N" with the number of another class of MATLAB's. shape: the sizes of its dimensions."""

    start: int
    end: int
    kind: str
    shape: tuple[int, ...]


def variables(source: Source) -> dict[str, Variable]:
    """Return where each variable of a MATLAB file is and what it holds, by its name. Only the beginning of each is
    read; `load` reads the content. Raises `DataError` for a file that is cut off, or no MATLAB 5 file."""
    data, variables_read = source.data, {}
    version = data[124:HEADER]
    if version != b"\x00\x01IM":  # little-endian, level 5
        problem = "is no MATLAB 5 file, or cut off; fetch it again, or save it with -v7"
        raise DataError(problem, place=source.name, code="damaged")
    position = HEADER
    while position < len(data):
        with _damage_as_error(source):
            element_type, size = TAG(data, position)
            end = position + 8 + size  # the tag takes eight bytes
            if end > len(data):
                raise ValueError("a variable goes beyond its end")
            if element_type not in (MATRIX, COMPRESSED):
                raise ValueError(f"unknown element {element_type}")
            content = data[position : min(end, position + PACKED_PIECE)]
            if element_type == COMPRESSED:
                content = zlib.decompressobj().decompress(content[8:], HEAD)
            name, kind, shape = _MatrixReader(content[:HEAD]).head()
            variables_read[name] = Variable(position, end, kind, shape)
        position = end
    return variables_read


def load(source: Source, name: str) -> Any:
    """Return the content of a variable: `Numbers`, `Cells`, `Structs` or text. Raises `DataError` for damage."""
    variable = variables(source)[name]
    with _damage_as_error(source):
        element = _element(source.data, variable.start, variable.end, source.stored)
        value, end = _MatrixReader(element, source.stored).matrix(0, len(element), DEEPEST)
        if end != len(element):
            raise ValueError(f"{name} ends at byte {end:,} of {len(element):,}")
        return value


@contextmanager
def _damage_as_error(source: Source) -> Iterator[None]:
    """Turn an error that damaged bytes raise in this block of code into a `DataError` that names the file."""
    try:
        yield
    except (struct.error, zlib.error, ValueError) as error:
        problem = f"is damaged or cut off ({error}); fetch or save it again"
        raise DataError(problem, place=source.name, code="damaged") from None


def _element(data: bytes, start: int, end: int, stored: int) -> bytes:
    """Return all bytes, decompressed, of the variable that the file's bytes from `start` to `end` hold. stored: the
    size of the file on the disk in bytes. Raises ValueError if it unpacks to more than LARGEST, or than both DENSE
    (bytes) and DENSEST times its compressed size, or if it is cut off; bytes that follow its end do not count."""
    element_type, _ = TAG(data, start)
    if element_type == MATRIX:
        return data[start:end]
    stream = zlib.decompressobj()
    pieces: list[bytes] = []
    unpacked = 0
    for position in range(start + 8, end, PACKED_PIECE):
        pieces.append(stream.decompress(data[position : min(end, position + PACKED_PIECE)]))
        unpacked += len(pieces[-1])
        # compressed bytes used so far: up to the end of this piece, without what follows the end of the data in it
        packed_bytes = min(stored, position + PACKED_PIECE - start - len(stream.unused_data))
        if unpacked > min(LARGEST, max(DENSE, DENSEST * packed_bytes)):
            raise ValueError(f"unpacks to more than {unpacked >> 20} MiB, as no file of {stored:,} bytes does")
        if stream.eof:
            return b"".join(pieces)
    raise ValueError("compressed data without an end")


class _MatrixReader:
    """Reads the matrices of one variable; all positions are bytes in its decompressed `data`. Raises ValueError or
    struct.error for damaged bytes.

    places: how many more cells, fields and matrices it may have (`take_places`). field_names: those of structs read
    before, by the length of a name and the bytes of all. empty: the bytes of the last empty cell, and its row."""

    def __init__(self, data: bytes, stored: int = 0) -> None:
        """Begin before the first matrix. data: the variable, decompressed. stored: the size of its file on the disk."""
        self.data = data
        self.places = max(PLACES, PLACES_PER_BYTE * stored)
        self.field_names: dict[tuple[int, bytes], tuple[str, ...]] = {}
        self.empty = b"", (NOTHING,)

    def head(self) -> tuple[str, str, tuple[int, ...]]:
        """Return the variable's name, its kind as in `Variable`, and its shape. They are in its first elements: at byte
        8 the flags, at 24 the dimensions, whose numbers begin at 32, and then the name."""
        _, _, flags, _, _, dimension_size, *_ = FLAGS_AND_SHAPE(self.data, 8)
        matrix_class = flags & 0xFF  # the lowest byte; the others say whether it is complex, global or logical
        kind = "cell" if matrix_class == CELL else f"class {matrix_class}"
        if matrix_class in NUMBERS:
            kind = "numbers"
        _, name, _ = self.content(32 + _size_with_padding(dimension_size), len(self.data))
        return name.decode("latin-1"), kind, struct.unpack_from(f"<{dimension_size // 4}I", self.data, 32)

    def matrix(self, start: int, limit: int, levels: int) -> tuple[Any, int]:
        """Return the matrix, of any class, that begins at `start`, and the position after it. limit: where it must have
        ended. levels: how many matrices may still lie within each other."""
        data = self.data
        element_type, size = TAG(data, start)
        end = start + 8 + size
        if element_type != MATRIX:
            raise ValueError(f"no matrix at byte {start}")
        if end > limit or not levels:
            raise ValueError(f"a matrix goes beyond its end at byte {start}")
        self.take_places(OF_A_MATRIX)
        if not size:
            return NOTHING, end  # MATLAB's []
        # type, size and content of the flags; type and size of the dimensions; the first two dimensions
        flags_type, flags_size, flags, _, second_type, dimension_size, *shape = FLAGS_AND_SHAPE(data, start + 8)
        if (flags_type, flags_size) != FLAGS or second_type != DIMENSIONS or dimension_size < 8:
            raise ValueError(f"no matrix header at byte {start}")
        if dimension_size > 4 * MOST_DIMENSIONS:
            raise ValueError(f"{dimension_size // 4:,} dimensions at byte {start}")
        if dimension_size > 8:  # more than the two that FLAGS_AND_SHAPE has read
            shape = [*struct.unpack_from(f"<{dimension_size // 4}I", data, start + 32)]
        position = start + 32 + _size_with_padding(dimension_size)
        name_type, name_size = TAG(data, position)
        # a name of up to four bytes is inside its tag of eight bytes; the upper half of the type then has its length
        position += 8 if name_type >> 16 else 8 + _size_with_padding(name_size)
        matrix_class = flags & 0xFF
        if matrix_class in NUMBERS:
            return self.numbers(position, end, tuple(shape)), end
        if matrix_class == STRUCT:
            return self.structs(position, end, prod(shape), levels), end
        if matrix_class == CELL:
            items = [item for (item,) in self.rows(position, end, prod(shape), 1, levels)]
            return Cells(tuple(shape), items), end
        if matrix_class == TEXT:
            return self.text(position, end), end
        raise ValueError(f"a matrix of class {matrix_class} at byte {start}")

    def take_places(self, number: int) -> None:
        """Count what will need memory; raise ValueError if it is more than the file's size justifies."""
        self.places -= number
        if self.places < 0:
            raise ValueError("more cells, fields and matrices than any file of its size has")

    def content(self, start: int, limit: int) -> tuple[int, bytes, int]:
        """Return the type and the bytes of the element at `start`, which must end before `limit`, and its end."""
        type_word, size = TAG(self.data, start)
        # At most four bytes may stand inside the tag, in place of the size: the upper half of the type is then their
        # number.
        small_size = type_word >> 16
        if small_size:
            begin, next_element = start + 4, start + 8
            size = small_size
        else:
            begin, next_element = start + 8, start + 8 + _size_with_padding(size)
        if begin + size > limit or small_size > 4:
            raise ValueError(f"data goes beyond its end at byte {start}")
        return type_word & 0xFFFF, self.data[begin : begin + size], next_element

    def numbers(self, start: int, end: int, shape: tuple[int, ...]) -> Numbers:
        """Return the numeric matrix in the bytes from `start` to `end`; of complex numbers the real parts."""
        element_type, content, _ = self.content(start, end)
        if element_type not in CODES:
            raise ValueError(f"numbers of type {element_type} at byte {start}")
        code = CODES[element_type]
        if prod(shape) * struct.calcsize(code) != len(content):
            raise ValueError(f"{prod(shape):,} numbers declared in {len(content):,} bytes at byte {start}")
        return Numbers(shape, code, content)

    def structs(self, start: int, end: int, count: int, levels: int) -> Structs:
        """Return the array of `count` structs in the bytes from `start` to `end`. The bytes hold the length of a name,
        the fields' names one after another, each filled with zeros to that length, and the values struct by struct."""
        _, length_bytes, position = self.content(start, end)
        _, name_bytes, position = self.content(position, end)
        (length,) = struct.unpack("<I", length_bytes)
        if length < 1:
            raise ValueError(f"field names without a length at byte {start}")
        names = self.field_names.get((length, name_bytes))
        if names is None:
            self.take_places(len(name_bytes) // length)
            padded_names = (name_bytes[offset : offset + length] for offset in range(0, len(name_bytes), length))
            names = tuple(padded_name.split(b"\0")[0].decode("latin-1") for padded_name in padded_names)
            self.field_names[length, name_bytes] = names  # the hundreds of thousands of equal structs share a tuple
        return Structs(names, self.rows(position, end, count, len(names), levels))

    def rows(self, position: int, end: int, count: int, width: int, levels: int) -> list[tuple[Any, ...]]:
        """Return `count` rows, each of `width` matrices, that follow one another in the bytes from `position` to `end`:
        structs with their fields, or cells, which are rows of one. Memory is only taken for rows that are there."""
        self.take_places(min(count * width, (end - position) // 8))  # each takes eight bytes at least
        rows: list[tuple[Any, ...]] = []
        for _ in range(count if width else 0):  # structs without fields have no values
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
        """Return the text of the char matrix in the bytes from `start` to `end`; several rows come column by column."""
        element_type, content, _ = self.content(start, end)
        if element_type not in ENCODINGS:
            raise ValueError(f"text of type {element_type} at byte {start}")
        return content.decode(ENCODINGS[element_type], "replace")


def _size_with_padding(size: int) -> int:
    """Return the size of an element in bytes with its padding: the next multiple of eight."""
    return size + -size % 8
