"""Arrays of other libraries as NumPy's, without importing those libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError

_CPU = 1, 3
"""DLPack's numbers of memory that the processor reads: its own, and CUDA's pinned part of it."""


def as_array(values: Any, field: str) -> NDArray[Any]:
    """A list, a NumPy array, or anything with `__array__` or DLPack as a NumPy array: torch's tensors too, those on a
    GPU copied to memory (`cpu`), those with a gradient taken from its graph (`detach`), bfloat16 read as `float`.

    Raises `DataError` for `field` if it is none of these.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise DataError("a masked array, whose mask would not count; drop the masked rows, give .data", field=field)
    if isinstance(values, np.ndarray):
        return values
    try:
        if hasattr(values, "__dlpack_device__") or hasattr(values, "__array__"):
            return _from_protocols(values, field)
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{type(values).__name__} is no array ({reason}); give NumPy's", field=field) from None


def _from_protocols(values: Any, field: str) -> NDArray[Any]:
    if hasattr(values, "detach"):
        values = values.detach()
    if hasattr(values, "__dlpack_device__") and int(values.__dlpack_device__()[0]) not in _CPU:
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


def plain(value: Any) -> Any:
    """For `orjson.dumps`: an array or number of a library as lists and Python's numbers, exactly. Raises `TypeError`
    for anything else."""
    if hasattr(value, "__dlpack_device__") or hasattr(value, "__array__"):
        return as_array(value, "").tolist()
    raise TypeError(f"{type(value).__name__} is nothing that JSON has")
