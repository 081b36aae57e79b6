"""Narrow columns are read and computed with as wide ones, and ground truth of columns takes few bytes."""

from __future__ import annotations

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.evaluation.run import read_truth
from hoicli.io.streams import Stream
from hoicli.records.compact import Column, Narrow, narrow
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load
from tests.support.growth import make_dump

NUMBERS = st.one_of(st.integers(-200, 200), st.integers(-(1 << 17), 1 << 17), st.integers(-(1 << 63), (1 << 63) - 1))


@given(st.lists(st.lists(NUMBERS, max_size=5), max_size=5))
def test_a_column_holds_what_was_added(parts: list[list[int]]) -> None:
    column, before, held = Column(np.int8), [], []
    for part in parts:
        column.add(np.array(part, dtype=np.int64))
        before += part
        held.append((column.rows(), list(before)))  # rows that somebody holds stay as they are
    assert all(rows.tolist() == wanted for rows, wanted in held)
    assert len(column) == len(before)
    assert all(pickle.loads(pickle.dumps(column, at)).rows().tolist() == before for at in (2, 5))
    width = next(width for width in (8, 16, 32, 64) if all(-(1 << width - 1) <= n < 1 << width - 1 for n in before))
    assert column.rows().dtype == f"int{width}"


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x * 1000, lambda x: x[1:] * 1000 + x[:-1], lambda x: x[2] * 10**9, lambda x: 5 - x, lambda x: ~x,
        lambda x: np.where(x < 100, -1, x) * 1000, lambda x: np.concatenate([x, x]) + 127, lambda x: np.repeat(x, 3),
        lambda x: np.append(x, 1000), lambda x: x.sum() + x.max(), lambda x: np.unique(x) * 300, lambda x: np.cumsum(x),
        lambda x: np.diff(x), lambda x: np.add.reduceat(x, [0, 2]), lambda x: x == 127, lambda x: x < 1000,
        lambda x: np.searchsorted(x, [5, 1000]), lambda x: np.divmod(x, 7), lambda x: np.bincount(x[x >= 0]),
        lambda x: x.reshape(2, -1) * 500, lambda x: [value * 1000 for value in x.tolist()],
    ],
)  # fmt: skip
def test_computing_with_a_narrow_column_is_computing_with_a_wide_one(compute: Any) -> None:
    wide = np.array([-128, 0, 5, 126, 127, 127])
    column = narrow(wide)
    assert isinstance(column, Narrow)
    assert column.dtype == np.int8
    for found, wanted in zip(np.atleast_1d(compute(column)), np.atleast_1d(compute(wide)), strict=True):
        assert np.array_equal(found, wanted)
        assert np.asarray(found).dtype == np.asarray(wanted).dtype


def test_ground_truth_takes_few_bytes_an_image(tmp_path: Path) -> None:
    """As many as its line has, about; dictionaries and wide columns took four times as many."""
    images, paths = 20_000, (tmp_path / "gt.jsonl", tmp_path / "predictions.jsonl")
    make_dump(*paths, images, 0)
    vocabulary = load("hico")
    tracemalloc.start()
    truth = read_truth(Stream([str(paths[0])], "ground truth"), vocabulary, ErrorPolicy())
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(truth.position) == images
    assert held < 2 * paths[0].stat().st_size
    assert peak < 2 * held
