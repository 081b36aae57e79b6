"""Reads arrays of any library (torch, JAX, CuPy) as NumPy's, without importing that library, and boxes in any form."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError, UsageError
from hoicli.records.columns import NO_BOX
from hoicli.records.kit import Ints
from hoicli.records.parsing import short

_READABLE = (1, 3)
"""DLPack's numbers of the kinds of memory that the processor can read: main memory, and its part pinned by CUDA."""


def read_array(values: Any, field: str) -> NDArray[Any]:
    """Return the values as a NumPy array. values: a list, or an array of a library with `__array__` or DLPack, such as
    torch's. Raises `DataError` for anything else, and for a masked array."""
    if isinstance(values, np.ma.MaskedArray):
        raise DataError("a masked array, whose mask would not count; drop the masked rows, give .data", field=field)
    if isinstance(values, np.ndarray):
        return values
    try:
        if hasattr(values, "__dlpack_device__") or hasattr(values, "__array__"):
            return _read_by_protocol(values, field)
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{type(values).__name__} is no array ({reason}); give NumPy's", field=field) from None


def _read_by_protocol(values: Any, field: str) -> NDArray[Any]:
    """Return an array of another library as a NumPy array, through `__array__` or DLPack. As torch needs it, a tensor
    with a gradient is detached, one on a GPU is copied to main memory, and bfloat16 is read as 32-bit floats."""
    if hasattr(values, "detach"):
        values = values.detach()
    if hasattr(values, "__dlpack_device__") and int(values.__dlpack_device__()[0]) not in _READABLE:
        if not hasattr(values, "cpu"):
            kind = type(values).__name__
            raise DataError(f"{kind} is not in the processor's memory; copy it there first, as NumPy's", field=field)
        values = values.cpu()
    if not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    try:
        return np.asarray(values)
    except TypeError:  # torch's bfloat16, which NumPy does not have: 32 bits hold it exactly
        if not hasattr(values, "float"):
            raise
        return np.asarray(values.float())


def to_plain(value: Any) -> Any:
    """Return an array, or a number, of any library as Python's lists and numbers, for JSON. Raises `TypeError` for
    anything else."""
    if hasattr(value, "__dlpack_device__") or hasattr(value, "__array__"):
        return read_array(value, "").tolist()
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")


def to_floats(array: NDArray[Any], field: str) -> NDArray[np.floating[Any]]:
    """Return a copy of an array of numbers: as float32 if its type is that or half precision, else as float64. Raises
    `DataError` for an array of anything else. field: what errors call it."""
    if array.dtype.kind not in "fiu" and array.size:
        raise DataError(f"has dtype {array.dtype}, wants numbers", field=field)
    return array.astype(np.float32 if array.dtype in (np.float32, np.float16) else np.float64, copy=True)


def box_array(values: Any) -> NDArray[np.floating[Any]]:
    """Return [B, 4] a copy of boxes from an array of any library, which may be empty. Raises `DataError` for another
    shape."""
    array = read_array(values, "boxes")
    if not array.size and array.ndim <= 2:
        array = array.reshape(0, 4)
    if array.ndim != 2 or array.shape[1] != 4:
        raise DataError(f"has shape {array.shape}, wants (n, 4)", field="boxes")
    return to_floats(array, "boxes")


def flat_array(array: NDArray[Any], field: str) -> NDArray[Any]:
    """Return the array unchanged if it has one dimension; raise `DataError` otherwise. field: what errors call it."""
    if array.ndim != 1:
        raise DataError(f"has shape {array.shape}, wants (n,)", field=field)
    return array


def read_integers(values: Any, field: str, meaning: str = "indices of boxes") -> Ints:
    """Return integers as an array [M], with NO_BOX for None. field, meaning: what errors call them, and say they are.
    Raises `DataError` for anything else."""
    if isinstance(values, list | tuple) and None in values:
        values = [NO_BOX if value is None else value for value in values]
    array = flat_array(read_array(values, field), field)
    if array.dtype.kind not in "iu" and array.size:
        raise DataError(f"has dtype {array.dtype}, wants integers: {meaning}", field=field)
    return array.astype(np.int64, copy=True)


def all_within(numbers: Ints, lowest: int, end: int) -> bool:
    """Return whether every number is at least `lowest` and less than `end`."""
    if not numbers.size:
        return True
    # one pass instead of two: read without its sign, a number below the lowest is larger than any end
    unsigned = (numbers - lowest if lowest else numbers).view(np.uint64)
    largest = int(unsigned[unsigned.argmax()])  # max() takes three times as long
    return largest < end - lowest


def check_range(numbers: Ints, count: int, field: str, meaning: str, *, lowest: int = 0) -> None:
    """Raise `DataError` for a number below `lowest`, or not below `count`. field: what the error calls the numbers;
    meaning: what they number, such as "boxes"."""
    if not all_within(numbers, lowest, count):
        row = int(np.flatnonzero((numbers < lowest) | (numbers >= count))[0])
        problem = f"number {numbers[row]}, but there are {count} {meaning}, numbered from 0"
        raise DataError(problem, field=f"{field}[{row}]")


BOX_FORMATS = ("xyxy", "xywh", "cxcywh")
"""What the four numbers of a box may be: two corners; a corner, width and height; the centre, width and height."""


def box_corners(boxes: NDArray[np.floating[Any]], box_format: str, size: Any) -> NDArray[np.floating[Any]]:
    """Return [B, 4] the boxes as x1, y1, x2, y2 in pixels: unchanged if they are that already, else as float64.

    box_format: what the four numbers of a box are, one of BOX_FORMATS. size: the image's (height, width) if they are
    shares of it, None for pixels. Raises `UsageError` for another format, `DataError` for an invalid size."""
    if box_format not in BOX_FORMATS:
        raise UsageError(f"box_format={box_format!r}: choose {', '.join(BOX_FORMATS[:-1])} or {BOX_FORMATS[-1]}")
    if box_format != "xyxy":
        point = boxes[:, :2].astype(np.float64)  # the first corner, or the centre
        extent = boxes[:, 2:].astype(np.float64)
        if box_format == "cxcywh":
            boxes = np.concatenate([point - extent / 2, point + extent / 2], axis=1)
        else:
            boxes = np.concatenate([point, point + extent], axis=1)
    if size is None:
        return boxes
    sides = read_array(size, "size")
    if sides.shape != (2,) or sides.dtype.kind not in "fiu" or not ((sides > 0) & (sides < np.inf)).all():
        raise DataError(f"{short(sides.tolist())}; give the image's height and width in pixels", field="size")
    return boxes * sides.astype(np.float64)[[1, 0, 1, 0]]  # (height, width) as a factor for each of x1, y1, x2, y2
