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
    """Columns that grow part by part: `Growing(image=np.int64)`, `add(image=part)`, then `columns["image"]`."""

    def __init__(self, **types: type[np.generic]) -> None:
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
        """Return the column of this name: the rows of all its parts, in the order they were added."""
        column = join_parts(self._parts[name], self._types[name])
        self._parts[name] = [column]
        return column


def starts_of(counts: Sequence[int] | Ints | Bools) -> Ints:
    """Return [N + 1] where each of N consecutive runs of these lengths begins, followed by where the last one ends."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def runs_of(starts: Ints) -> Ints:
    """Return the number of the run that each position belongs to. starts: as `starts_of` returns it."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def distinct(values: NDArray[Scalar], below: int | None = None) -> NDArray[Scalar]:
    """Return the different values, ascending, as `np.unique` does; that function is slow to start, since it imports
    masked arrays. below: a limit above all values, which are whole numbers from 0 on. If the limit is low, the values
    are marked in a table of that length, which is faster than sorting."""
    if below is not None and below <= 8 * len(values):
        marked = np.zeros(below, dtype=bool)
        marked[values] = True
        return np.flatnonzero(marked).astype(values.dtype, copy=False)
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def sorted_by(values: Ints, below: int) -> Ints:
    """Return [M] the order that sorts whole numbers from 0 to below `below`; equal numbers keep their order. The
    numbers are sorted by 16 bits at a time, the lowest bits first (a radix sort): NumPy sorts 16-bit numbers by
    counting, nine times as fast as wider ones."""
    order = np.argsort(values.astype(np.uint16), kind="stable")
    for shift in range(16, below.bit_length(), 16):
        order = order[np.argsort((values[order] >> shift).astype(np.uint16), kind="stable")]
    return order


def run_starts(values: NDArray[Scalar]) -> Ints:
    """Return the positions where a run of equal neighbours begins."""
    begins = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=begins[1:])
    return np.flatnonzero(begins)


def expand_runs(start: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Return (run, position) of every member of consecutive runs, sum(count) in all; run r has the positions start[r],
    start[r] + 1, ... This joins rows with their counterparts without a loop: each row has one run, perhaps empty."""
    run = np.repeat(np.arange(len(count)), count)
    place_in_run = np.arange(len(run)) - np.repeat(np.cumsum(count) - count, count)
    return run, start[run] + place_in_run


def find(ascending: Ints, values: Ints) -> tuple[Ints, Bools]:
    """Return (its position in `ascending`, whether it is there) for each value; without it, the position is
    meaningless."""
    if len(ascending) == 0:
        return np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
    position: Ints = np.minimum(np.searchsorted(ascending, values), len(ascending) - 1)
    return position, ascending[position] == values


def among(values: Ints, members: Iterable[int]) -> Bools:
    """Return [M] a mask of the values that are members, as `np.isin` does; that function imports masked arrays, too."""
    return find(np.array(sorted(members), dtype=np.int64), values)[1]


def groups(first_members: Ints, other: Ints, count: int) -> Ints:
    """Return [count] the group of each item, named by the lowest item in it. first_members, other: [K] pairs of items
    that belong together; whatever a chain of such pairs connects is one group."""
    group = np.arange(count)
    while (group[first_members] != group[other]).any():
        lowest = np.minimum(group[first_members], group[other])
        np.minimum.at(group, group[first_members], lowest)
        np.minimum.at(group, group[other], lowest)
        group = group[group]  # a group that has joined another takes over that one's group
    return group


def ranks_in_groups(group: Ints, score: Floats) -> Ints:
    """Return [M] the rank of each member in its group, from 0, by descending score; equal ones keep their order."""
    order = np.lexsort((-score, group))
    first = run_starts(group[order])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    return rank


def rank_by_id(image_ids: Sequence[str]) -> Ints:
    """Return [N] each image's rank among all images sorted by id. It breaks ties, whatever the order of lines."""
    rank = np.empty(len(image_ids), dtype=np.int64)
    rank[sorted(range(len(rank)), key=list(image_ids).__getitem__)] = np.arange(len(rank))
    return rank
