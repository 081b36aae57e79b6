"""Small arithmetic on columns: runs, ranks, ranges; and the array types of the package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

Scalar = TypeVar("Scalar", bound=np.generic)


def join_parts(parts: Sequence[NDArray[Scalar]], dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return the parts joined into one column; without parts, an empty column of type `dtype`."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


class Growing:
    """Named columns that grow part by part: `columns = Growing(image=np.int64)`, `columns.add(image=part)` for each
    part, then `columns["image"]` is all parts joined."""

    def __init__(self, **types: type[np.generic]) -> None:
        """Start with empty columns. types: the NumPy type of each column, by its name."""
        self._types = types
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in types}

    def add(self, **parts: NDArray[Any]) -> None:
        """Add one more part to every column, converted to the column's type."""
        for name, column in self._parts.items():
            column.append(parts[name].astype(self._types[name], copy=False))

    def merge(self, other: Growing) -> None:
        """Append the rows of `other`, which must have the same columns."""
        for name, column in self._parts.items():
            column += other._parts[name]

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self._parts)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the column of this name: all its parts joined, in the order they were added."""
        column = join_parts(self._parts[name], self._types[name])
        self._parts[name] = [column]  # so that the next call need not join them again
        return column


def starts_of(counts: Sequence[int] | Ints | Bools) -> Ints:
    """Return [N + 1] where each of N runs of the given lengths begins, and at last where all end: [2, 0, 3] gives
    [0, 2, 2, 5]."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def runs_of(starts: Ints) -> Ints:
    """Return the number of the run that each position belongs to. starts: from `starts_of`: [0, 2, 2, 5] gives
    [0, 0, 2, 2, 2]."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def distinct(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return the different values, ascending, as `np.unique` does (whose first call imports masked arrays)."""
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def run_starts(values: NDArray[Scalar]) -> Ints:
    """Return the positions where a run of equal neighbours begins: [0, 2, 3] for the values 7, 7, 4, 5, 5."""
    begins = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def expand_runs(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return (run, position), two columns of sum(count) rows: run r has the count[r] positions start[r], start[r] + 1,
    and so on. So each row r is joined with what belongs to it, if that stands together from start[r] on."""
    run = np.repeat(np.arange(len(count)), count)
    rows_before = np.repeat(np.cumsum(count) - count, count)  # in all earlier runs
    place_in_run = np.arange(len(run)) - rows_before
    return run, start[run] + place_in_run


def find(ascending: Ints, values: Ints) -> tuple[Ints, Bools]:
    """Return ([M] the position of each value in `ascending`, which is sorted; [M] whether it is there). The position of
    a value that is not there means nothing, but is a valid index unless `ascending` is empty."""
    if len(ascending) == 0:
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
    position: Ints = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return position, ascending[position] == values


def median(values: Floats) -> float:
    """Return the median, NaN of no values, as `np.median` (whose first call imports masked arrays)."""
    if not len(values):
        return np.nan
    middle = [(len(values) - 1) // 2, len(values) // 2]  # twice the same for an odd number
    return float(np.partition(values, middle)[middle].mean())


def among(values: Ints, members: Iterable[int]) -> Bools:
    """Return [M] a mask of the values that are `members`, as `np.isin` (whose first call is slow)."""
    _, is_member = find(np.array(sorted(members), dtype=np.int64), values)
    return is_member


def join_groups(first: Ints, second: Ints, count: int) -> Ints:
    """Return [count] the group of each item, named by the lowest item in it. first, second [K]: item first[k] is in one
    group with item second[k]."""
    group = np.arange(count)
    while (group[first] != group[second]).any():
        lowest = np.minimum(group[first], group[second])
        np.minimum.at(group, group[first], lowest)
        np.minimum.at(group, group[second], lowest)
        group = group[group]  # if a group's lowest item has moved to another group, the others follow it
    return group


def ranks_in_groups(group: Ints, score: Floats) -> Ints:
    """Return [M] the rank, from 0, of each item in its group by descending score; equal scores keep their order."""
    order = np.lexsort((-score, group))  # by group, then by descending score
    first = run_starts(group[order])
    group_sizes = np.diff(np.r_[first, len(order)])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, group_sizes)
    return rank


def rank_by_id(image_ids: Sequence[str]) -> Ints:
    """Return [N] each image's position among all sorted by id, whatever the order of the lines."""
    order = sorted(range(len(image_ids)), key=list(image_ids).__getitem__)
    rank = np.empty(len(image_ids), dtype=np.int64)
    rank[order] = np.arange(len(rank))
    return rank
