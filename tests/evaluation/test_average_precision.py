"""The integral and its grids: closed forms, and the three 11-point grids to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from hoicli.evaluation.ranking import enveloped_ap, interpolated_ap
from hoicli.evaluation.recall_grids import GRID_ARANGE, GRID_LINSPACE, GRID_TENTHS


def one(ranks: list[int], positives: int, grid: tuple[float, ...] = GRID_TENTHS) -> float:
    """The AP of a single class."""
    return float(interpolated_ap(np.array(ranks), np.array([0, len(ranks)]), np.array([positives]), grid)[0])


def test_the_grids_are_those_of_their_libraries() -> None:
    assert np.arange(0, 1.1, 0.1).tolist() == list(GRID_ARANGE)
    # torch.linspace in float64 counts up from the start to the middle and down from the end after it
    step = (1.0 - 0.0) / 10
    assert [step * i if i < 5 else 1.0 - step * (10 - i) for i in range(11)] == list(GRID_LINSPACE)
    assert [i / 10 for i in range(11)] == list(GRID_TENTHS)


@pytest.mark.parametrize(
    ("found", "arange", "linspace", "tenths"),
    [
        (1, 2, 2, 2),
        (2, 3, 3, 3),
        (3, 3, 3, 4),
        (5, 6, 6, 6),
        (6, 6, 7, 7),
        (7, 7, 8, 8),
        (8, 9, 9, 9),
        (10, 11, 11, 11),
    ],
)
def test_a_recall_of_exactly_so_many_tenths(found: int, arange: int, linspace: int, tenths: int) -> None:
    """With perfect precision the AP counts the grid points reached: 3/10, 6/10 and 7/10 are where grids differ."""
    ranks = list(range(1, found + 1))
    for grid, points in ((GRID_ARANGE, arange), (GRID_LINSPACE, linspace), (GRID_TENTHS, tenths)):
        assert one(ranks, 10, grid) == pytest.approx(points / 11)


@pytest.mark.parametrize(
    ("ranks", "positives", "ap"),
    [
        ([1], 1, 1.0),
        ([2], 1, 0.5),
        ([1, 2], 2, 1.0),
        ([2, 3], 2, 2 / 3),  # the envelope: precision 1/2 at recall 1/2 is lifted to 2/3
        ([1, 4], 2, (6 * 1 + 5 * 0.5) / 11),
        ([], 5, 0.0),
        ([], 0, 0.0),
    ],
)
def test_closed_forms(ranks: list[int], positives: int, ap: float) -> None:
    assert one(ranks, positives) == pytest.approx(ap)


@pytest.mark.parametrize(
    ("ranks", "positives", "ap"),
    [
        ([1], 1, 1.0),
        ([2], 1, 0.5),
        ([2, 3], 2, 2 / 3),  # the envelope: precision 1/2 at recall 1/2 is lifted to 2/3
        ([1, 4], 2, (1 + 0.5) / 2),
        ([1, 4], 4, (1 + 0.5) / 4),  # what is never found adds nothing
        ([3, 4, 5], 3, 3 / 5),
        ([], 5, 0.0),
        ([], 0, 0.0),
    ],
)
def test_closed_forms_of_the_envelope(ranks: list[int], positives: int, ap: float) -> None:
    first, second = np.array([*ranks, 1], dtype=np.int64), np.array([0, len(ranks), len(ranks) + 1])
    assert enveloped_ap(first, second, np.array([positives, 1])).tolist() == pytest.approx([ap, 1.0])
