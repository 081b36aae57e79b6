"""Lists cut into strips against the lists themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from hoicli.resampling.pieces import MOST_LAYERS, Strips

COUNTS = [[1], [3, 1], [8, 8, 7], [9, 8, 1], [16, 9, 2], [17, 17, 16, 5, 1], [40, 3]]


def laid_out(
    counts: list[int],
) -> tuple[Strips, list[list[list[int]]], np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """(strips, the rows of each list, the rows in layers), two rounds each."""
    strips = Strips(np.array(counts, dtype=np.int64))
    rows = np.random.default_rng(len(counts)).integers(0, 9, (sum(counts), 2))
    laid = np.zeros((strips.size, 2), dtype=np.int64)
    laid[strips.place] = rows
    ends = itertools.accumulate(counts)
    return strips, [rows[end - count : end].tolist() for count, end in zip(counts, ends, strict=True)], laid


@pytest.mark.parametrize("counts", COUNTS)
def test_each_row_has_a_place_of_its_own_and_little_is_filled_up(counts: list[int]) -> None:
    strips, _, _ = laid_out(counts)
    layers = min(max(counts), MOST_LAYERS)
    assert len(set(strips.place.tolist())) == sum(counts)
    assert strips.size == layers * sum(-(-count // layers) for count in counts)
    owner = np.tile(strips.owner, layers)
    assert owner[strips.place].tolist() == np.repeat(np.arange(len(counts)), counts).tolist()


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("operation", [np.add, np.maximum])
@pytest.mark.parametrize("backwards", [False, True])
def test_running_totals_go_down_each_list(counts: list[int], operation: np.ufunc, *, backwards: bool) -> None:
    strips, rows, laid = laid_out(counts)
    found = strips.running(operation, strips.layers(laid).copy(), backwards=backwards).reshape(-1, 2)[strips.place]
    step = -1 if backwards else 1
    expected = [operation.accumulate(np.array(each)[::step])[::step].tolist() for each in rows]
    assert found.tolist() == list(itertools.chain.from_iterable(expected))


@pytest.mark.parametrize("counts", COUNTS)
def test_a_step_is_what_a_row_has_more_than_the_one_before(counts: list[int]) -> None:
    strips, rows, laid = laid_out(counts)
    found = strips.steps(strips.layers(laid)).reshape(-1, 2)[strips.place]
    expected = [np.diff(np.array(each), axis=0, prepend=[[0, 0]]).tolist() for each in rows]
    assert found.tolist() == list(itertools.chain.from_iterable(expected))
