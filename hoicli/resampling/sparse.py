"""Sparse matrices of whole numbers, and their product with weights: SciPy's C routine without SciPy's import.

`import scipy.sparse` takes a tenth of a second, since it also imports parts of NumPy that nothing here needs (f2py, its
tests). The routine is in an extension module without any of them, which is loaded by itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.records.kit import Bools, Ints, starts_of

Indices = NDArray[np.int32 | np.int64]
Multiply = Callable[["Sparse", NDArray[Any]], NDArray[Any]]
"""Takes a matrix [M, N] and weights [N, R] of the type of its values; returns their product [M, R]."""


class Sparse(NamedTuple):
    """A sparse matrix [M, N] of whole numbers.

    Row m has values[starts[m]:starts[m + 1]] in the columns of these indices; what it has twice in one column adds up.
    starts: [M + 1]; columns, values: [K]; width: N."""

    starts: Indices
    columns: Indices
    values: NDArray[Any]
    width: int

    @classmethod
    def make_ones(cls, counts: Ints, columns: Ints, width: int) -> Sparse:
        """Return a matrix with a 1 in each of some columns. counts: [M] how many ones each row has; columns: those of
        the first row, then those of the next, ..."""
        index = np.int32 if len(columns) < 1 << 31 else np.int64
        ones = np.ones(len(columns), dtype=np.int16)  # 16 bits take half the space and half the time of 32
        return cls(starts_of(counts).astype(index), columns.astype(index), ones, width)

    @classmethod
    def count_pairs(cls, row: Ints, column: Ints, shape: tuple[int, int]) -> Sparse:
        """Return a matrix of a shape that counts how often each pair (row, column) occurs."""
        order = np.argsort(row, kind="stable")
        return cls.make_ones(np.bincount(row, minlength=shape[0]), column[order], shape[1])

    @classmethod
    def drop_zeros(cls, matrix: Ints) -> Sparse:
        """Return a matrix [M, N] without its zeros."""
        is_used: Bools = matrix != 0
        row, column = np.nonzero(is_used)
        starts = starts_of(np.bincount(row, minlength=len(matrix)))
        return cls(starts, column, matrix[is_used], matrix.shape[1])

    def times(self, weights: NDArray[Any]) -> NDArray[Any]:
        """Return the product [M, R] of this matrix and weights [N, R], in the type of the weights, whole numbers."""
        matrix = self._replace(values=self.values.astype(weights.dtype, copy=False))
        return _multiply()(matrix, np.ascontiguousarray(weights))


@cache
def _multiply() -> Multiply:
    """Return the function that multiplies: SciPy's routine, or `scipy.sparse` itself if a version hides the routine."""
    scipy = find_spec("scipy")
    folders = scipy.submodule_search_locations if scipy else None
    spec = PathFinder.find_spec("_sparsetools", [str(Path(folder) / "sparse") for folder in folders or ()])
    if spec is None or spec.loader is None:
        return _multiply_by_scipy
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    routine: Callable[..., object] | None = getattr(module, "csr_matvecs", None)
    if routine is None:
        return _multiply_by_scipy

    def multiply(matrix: Sparse, weights: NDArray[Any]) -> NDArray[Any]:
        rows, rounds = len(matrix.starts) - 1, weights.shape[1]
        product = np.zeros((rows, rounds), dtype=weights.dtype)  # the routine adds to it
        data = matrix.starts, matrix.columns, matrix.values
        routine(rows, matrix.width, rounds, *data, weights.ravel(), product.ravel())
        return product

    return multiply


def _multiply_by_scipy(matrix: Sparse, weights: NDArray[Any]) -> NDArray[Any]:
    """Return the product by way of `scipy.sparse`."""
    from scipy.sparse import csr_array

    data, shape = (matrix.values, matrix.columns, matrix.starts), (len(matrix.starts) - 1, matrix.width)
    product: NDArray[Any] = csr_array(data, shape=shape) @ weights
    return product
