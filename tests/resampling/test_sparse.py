"""Products of sparse matrices with weights, against SciPy's own, with its routine and without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from hoicli.resampling import sparse
from hoicli.resampling.sparse import Sparse

MULTIPLY = (sparse._multiply(), sparse._multiply_by_scipy)


def test_scipys_routine_is_found() -> None:
    """Else every interval waits for the import of scipy.sparse; look where this SciPy has `csr_matvecs`."""
    assert sparse._multiply() is not sparse._multiply_by_scipy
    code = (
        "import sys; import numpy as np; from hoicli.resampling.sparse import Sparse;"
        "product = Sparse.drop_zeros(np.array([[2, 0], [-1, 3]])).times(np.array([[1], [10]]));"
        "print(product.tolist(), 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[[2], [29]] False\n"


@pytest.mark.parametrize("multiply", MULTIPLY)
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_products_are_scipys(
    multiply: Callable[..., Any], dtype: type[np.signedinteger[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sparse, "_multiply", lambda: multiply)
    rng = np.random.default_rng(3)
    weights = rng.integers(-3, 9, (40, 7)).astype(dtype)
    dense = rng.integers(-2, 3, (5, 40)) * (rng.random((5, 40)) < 0.3)
    row, column = rng.integers(0, 5, 200), rng.integers(0, 40, 200)
    pairs = csr_array((np.ones(200, dtype=dtype), (row, column)), shape=(6, 40))  # the last row has none
    no_entries = np.zeros(0, dtype=np.int64)
    for matrix, expected in (
        (Sparse.drop_zeros(dense), csr_array(dense.astype(dtype))),
        (Sparse.count_pairs(row, column, (6, 40)), pairs),
        (
            Sparse.make_ones(np.zeros(2, dtype=np.int64), no_entries, 40),
            csr_array((2, 40), dtype=dtype),
        ),
    ):
        for some in (weights, weights[:, ::2], weights[:, :0]):  # also one whose rows are apart in memory
            product = matrix.times(some)
            assert product.dtype == dtype
            assert product.tolist() == (expected @ some).tolist()
