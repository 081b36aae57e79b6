"""Columns of millions of rows in few bytes: integers kept narrow, and columns that grow in place."""

from __future__ import annotations

from pickle import PickleBuffer
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.records.kit import Ints

_WIDTHS = [np.dtype(name) for name in ("int8", "int16", "int32", "int64")]


class Narrow(np.ndarray):
    """Integers in fewer bytes than an int64, which nobody who reads them needs to know: a row, a part, and whatever is
    computed from the column is int64, so that nothing overflows. Selecting rows costs what it costs; computing with the
    whole column makes a wide copy of it."""

    def __getitem__(self, key: Any) -> Any:
        found = self.view(np.ndarray)[key]
        return found.astype(np.int64) if isinstance(found, np.ndarray) else np.int64(found)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if ufunc in _COMPARISONS:
            return getattr(ufunc, method)(*map(_plain, inputs), **options)
        return getattr(ufunc, method)(*map(_wide, inputs), **{name: _wide(value) for name, value in options.items()})

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return function(*map(_wide, arguments), **{name: _wide(value) for name, value in options.items()})


_COMPARISONS = {np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal}
"""What gives the same however wide the numbers are."""


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Narrow) else value


def _wide(value: Any) -> Any:
    """An argument of a function with int64 for each `Narrow` in it."""
    if isinstance(value, Narrow):
        return value.view(np.ndarray).astype(np.int64)
    return type(value)(map(_wide, value)) if type(value) in (list, tuple) else value


def narrow(column: Ints) -> Ints:
    """The same numbers in the fewest bytes that hold all of them; read-only."""
    grown = Column(np.int8)
    grown.add(column)
    return grown.rows()


class Column:
    """A column that grows part by part. It is never in memory twice: its buffer is extended in place. One of signed
    integers gets wider when a part needs it, and is read as `Narrow`."""

    def __init__(self, dtype: type[np.generic], width: int | None = None) -> None:
        """dtype: of its rows; of integers, what they begin as. width: of rows that are vectors."""
        self._dtype, self._width = np.dtype(dtype), width
        self._data = bytearray()

    def add(self, part: NDArray[Any]) -> None:
        """Its next rows."""
        part = np.asarray(part)  # as narrow as it may be
        if self._dtype.kind == "i" and part.dtype != self._dtype and len(part):
            self._widen(int(part.min()), int(part.max()))
        data = np.ascontiguousarray(part, dtype=self._dtype).data
        try:
            self._data += data
        except BufferError:  # somebody holds the rows so far
            self._data = self._data + data

    def _widen(self, least: int, most: int) -> None:
        """Make room for numbers from `least` to `most`."""
        bits = max(most, ~least).bit_length() + 1
        width = next(width for width in _WIDTHS if 8 * width.itemsize >= max(bits, 8 * self._dtype.itemsize))
        if width != self._dtype:
            self._data = bytearray(np.frombuffer(self._data, dtype=self._dtype).astype(width).data)
            self._dtype = width

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        """For a fork that sends it: the rows go as they are, without a copy in the pickle."""
        data = PickleBuffer(self._data) if protocol >= 5 else self._data
        return Column._of, (self._dtype, self._width, data)

    @classmethod
    def _of(cls, dtype: np.dtype[Any], width: int | None, data: Any) -> Column:
        column = cls(dtype.type, width)
        column._data = data if isinstance(data, bytearray) else bytearray(data)
        return column

    def __len__(self) -> int:
        return len(self._data) // (self._dtype.itemsize * (self._width or 1))

    def rows(self) -> NDArray[Any]:
        """All rows so far; read-only."""
        rows = np.frombuffer(self._data, dtype=self._dtype)
        rows.setflags(write=False)
        if self._width is not None:
            return rows.reshape(-1, self._width)
        return rows.view(Narrow) if self._dtype.kind == "i" and self._dtype != np.int64 else rows
