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
    """The parts as one column; without parts, an empty one of `dtype`."""
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


class Growing:
    """Columns that grow part by part: `Growing(image=np.int64)`, `add(image=part)`, then `columns["image"]`."""

    def __init__(self, **types: type[np.generic]) -> None:
        self._types = types
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in types}

    def add(self, **parts: NDArray[Any]) -> None:
        """One more part of every column, as its type."""
        for name, column in self._parts.items():
            column.append(parts[name].astype(self._types[name], copy=False))

    def merge(self, other: Growing) -> None:
        """The rows of the same columns that grew elsewhere."""
        for name, column in self._parts.items():
            column += other._parts[name]

    @property
    def names(self) -> list[str]:
        """The columns."""
        return list(self._parts)

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The column; a row for each row of each part."""
        column = join_parts(self._parts[name], self._types[name])
        self._parts[name] = [column]
        return column


def starts_of(counts: Sequence[int] | Ints | Bools) -> Ints:
    """[N + 1] where each of N consecutive runs of these lengths begins, and where the last ends."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def runs_of(starts: Ints) -> Ints:
    """The run that each place belongs to; `starts` as from `starts_of`."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def distinct(values: NDArray[Scalar], below: int | None = None) -> NDArray[Scalar]:
    """The values, each once, ascending: as `np.unique`, which imports masked arrays to see that these are none. below:
    what they are all below, whole numbers from 0 on; if there are not many such, they are marked, which is faster."""
    if below is not None and below <= 8 * len(values):
        marked = np.zeros(below, dtype=bool)
        marked[values] = True
        return np.flatnonzero(marked).astype(values.dtype, copy=False)
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def sorted_by(values: Ints, below: int) -> Ints:
    """[M] the order of whole numbers from 0 to below `below`, equal ones as they stand. By their digits of 16 bits, the
    last first, which NumPy sorts by counting, nine times as fast as wider ones."""
    order = np.argsort(values.astype(np.uint16), kind="stable")
    for shift in range(16, below.bit_length(), 16):
        order = order[np.argsort((values[order] >> shift).astype(np.uint16), kind="stable")]
    return order


def run_starts(values: NDArray[Scalar]) -> Ints:
    """Where each run of equal neighbours begins."""
    begins = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def expand_runs(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Consecutive runs: (run, position) of each of the sum(count) places; run r is start[r], start[r] + 1, ... This
    joins rows with their counterparts without a loop: one run for each row, possibly empty."""
    run = np.repeat(np.arange(len(count)), count)
    within = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    return run, start[run] + within


def find(ascending: Ints, values: Ints) -> tuple[Ints, Bools]:
    """(place in `ascending`, whether it is there) of each value; the place is meaningless if it is not."""
    if len(ascending) == 0:
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
    place: Ints = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return place, ascending[place] == values


def among(values: Ints, members: Iterable[int]) -> Bools:
    """[M] which of the values are members: as `np.isin`, which imports masked arrays as `np.unique` does."""
    return find(np.array(sorted(members), dtype=np.int64), values)[1]


def groups(first_members: Ints, other: Ints, count: int) -> Ints:
    """[count] the group of each place, by its first place: `first_members` and `other` [K], and whatever a chain of
    such pairs connects, are of one group."""
    group = np.arange(count)
    while (group[first_members] != group[other]).any():
        first = np.minimum(group[first_members], group[other])
        np.minimum.at(group, group[first_members], first)
        np.minimum.at(group, group[other], first)
        group = group[group]
    return group


def ranks_in_groups(group: Ints, score: Floats) -> Ints:
    """[M] the place of each member in its group, from 0, by descending score, ties by their order."""
    order = np.lexsort((-score, group))
    first = run_starts(group[order])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    return rank


def rank_by_id(image_ids: Sequence[str]) -> Ints:
    """[N] each image's place among all images sorted by id: it breaks ties independently of the order of lines."""
    rank = np.empty(len(image_ids), dtype=np.int64)
    rank[sorted(range(len(rank)), key=list(image_ids).__getitem__)] = np.arange(len(rank))
    return rank
