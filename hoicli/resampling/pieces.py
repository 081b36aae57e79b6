"""The true positives of a few ranked lists, worked on as one: counts up to each for every round, and their AP. Their
rows are laid out so that running totals down every list are a few operations on large arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from hoicli.records.kit import Floats, Ints, expand_runs, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from hoicli.resampling.draws import Weights
    from hoicli.resampling.lists import ListColumns

Numbers = TypeVar("Numbers", bound="NDArray[Any]")

MOST_LAYERS = 8
"""Rows of a strip at most. A running total takes a step for each layer, and one for each strip of the longest list; on
average half of a list's last strip is filled up."""
SMALL = np.iinfo(np.int16).max
"""Whole numbers up to here take half the space and half the time; sums of them are exact in either type."""
WIDEST = SMALL // 16
"""Predictions that are added up at once: of images that are there up to 16 times, a small number."""


class Strips:
    """Lists of counts [O] rows, the longest first and none empty, cut into strips of the same length, the last of each
    filled up. Layer i holds the i-th row of all S strips, first the first strips of all lists, then the second strips
    of those that have two, and so on; so values of R rounds are [layers, S, R].

    place [K]: where each row stands, counted through all layers; size: layers * S; owner [S] the list of each strip.
    """

    def __init__(self, counts: Ints) -> None:
        self._layers = min(int(counts.max(initial=1)), MOST_LAYERS)
        strips = -(-counts // self._layers)
        having = np.searchsorted(-strips, -np.arange(1, int(strips.max(initial=0)) + 1), side="right")
        first = starts_of(having)  # the first of the first strips, of the second strips, ...
        self.owner: Ints = expand_runs(np.zeros_like(having), having)[1]
        self.size, self._lists = self._layers * len(self.owner), len(counts)
        owner, within = expand_runs(np.zeros_like(counts), counts)
        strip, layer = np.divmod(within, self._layers)
        self.place: Ints = layer * len(self.owner) + first[strip] + owner
        steps = zip(pairwise(first.tolist()), having[1:].tolist(), strict=False)
        self._steps = [
            (slice(first_row, first_row + count), slice(two, two + count)) for (first_row, two), count in steps
        ]
        self._before: Ints = np.concatenate(
            [np.arange(0), *(np.arange(span.start, span.stop) for span, _ in self._steps)]
        )

    def layers(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows [layers * S, R] as [layers, S, R]."""
        return rows.reshape(self._layers, len(self.owner), -1)

    def running(self, operation: np.ufunc, values: Numbers, *, backwards: bool = False) -> Numbers:
        """In place, the running totals (or maxima) of values >= 0 down each list."""
        for before, layer in pairwise(values[::-1] if backwards else values):
            operation(before, layer, out=layer)
        if self._steps:
            come_to = values[0] if backwards else values[-1]
            carried = np.zeros_like(come_to)  # what the strips before have come to
            for span, two in self._steps[::-1] if backwards else self._steps:
                before, strip = (two, span) if backwards else (span, two)
                operation(carried[before], come_to[before], out=carried[strip])
            operation(values, carried, out=values)
        return values

    def steps(self, values: Numbers) -> Numbers:
        """Return how much more each row has than the one before it in its list; the first of a list, all it has."""
        more: Numbers = values.copy()
        more[1:] -= values[:-1]
        more[0, len(self.owner) - len(self._before) :] -= values[-1, self._before]
        return more

    def totals(self, values: Floats, times: NDArray[Any]) -> Floats:
        """[O, R] the sum of values * times of each list, where `times` is 0 wherever strips are filled up."""
        of_strips = np.einsum("lsr,lsr->sr", values, times)
        total: Floats = of_strips[: self._lists]
        for _, strips in self._steps:
            total[: strips.stop - strips.start] += of_strips[strips]
        return total


@dataclass(frozen=True)
class Times:
    """How often each of N images is there in R rounds, as [N, R]."""

    weights: Weights

    @cached_property
    def _most(self) -> int:
        """How often an image is there at most."""
        return int(self.weights.max(initial=0))

    @cached_property
    def _small(self) -> NDArray[np.int16]:
        return self.weights.astype(np.int16)

    def type_of(self, largest: int) -> type[np.int16 | np.int32]:
        """One that is large enough for sums of `largest` weights."""
        return np.int16 if largest * self._most <= SMALL else np.int32

    def sum_products(self, matrix: csr_array, largest: int) -> NDArray[Any]:
        """matrix [M, N], `small`, @ weights, where each sum is of `largest` weights at most."""
        sums: NDArray[Any] = matrix @ (self._small if self.type_of(largest) is np.int16 else self.weights)
        return sums


class Counts(NamedTuple):
    """Whole numbers of each round, of each true positive, [layers, S, R]: what the true positives, and how many
    predictions, of its class come to with it."""

    hits: NDArray[Any]
    rank: NDArray[Any]


class Piece:
    """Rows of the classes `numbers` of ranked lists (`ListColumns.rows`), those with more rows first; classes [O] are
    those that have some. weighted: for `count`, not for `alone` only."""

    def __init__(self, lists: ListColumns, numbers: Ints, *, weighted: bool = True) -> None:
        every = lists.rows
        counts = np.diff(every.bounds)[numbers]
        self.classes: Ints = numbers[counts > 0]
        counts = counts[counts > 0]
        rows = expand_runs(every.bounds[self.classes], counts)[1]
        self._grid, self._cap, self._unit, self._area = lists.grid, lists.cap, lists.unit, lists.area
        self._strips = Strips(counts)
        first, end = every.first[rows], every.first[rows + 1]
        self._row_of_hit: Ints = np.repeat(self._strips.place, end - first)
        self._gain: NDArray[Any] | None = None
        if lists.gain is not None:
            (gain,) = self._place_columns(lists.gain[lists.hits[first]])
            self._gain = self._strips.layers(gain)
        of_row, begin, behind = end - first, every.begin[rows], lists.hits[end - 1] + 1 - every.begin[rows]
        # the true positives of a list, and the predictions up to its last one
        self._most, self._longest = (
            int(np.add.reduceat(of, starts_of(counts)[:-1]).max(initial=0)) for of in (of_row, behind)
        )
        first, begin, self._of_row, self._behind = self._place_columns(first, begin, of_row, behind)
        if weighted:
            hits = lists.hits[expand_runs(first, self._of_row)[1]]
            # wide rows are cut, so that the sums of each part are small
            parts = -(-self._behind // WIDEST)
            self._cut: Ints = np.flatnonzero(parts > 1)
            further = parts[self._cut] - 1
            self._further: Ints = starts_of(further)[:-1]
            cut, part = np.repeat(self._cut, further), WIDEST * expand_runs(np.ones_like(further), further)[1]
            counts_of = np.minimum(np.append(self._behind, self._behind[cut] - part), WIDEST)
            _, entry = expand_runs(np.append(begin, begin[cut] + part), counts_of)
            counts_of = np.append(self._of_row, counts_of)
            self._counted = _present(counts_of, lists.image[np.append(hits, entry)], lists.images)
            self._widest = int(counts_of.max(initial=0))

    def _place_columns(self, *columns: Ints) -> Ints:
        """Columns of the rows where they stand in the strips, 0 where those are filled up."""
        placed = np.zeros((len(columns), self._strips.size), dtype=np.int64)
        placed[:, self._strips.place] = columns
        return placed

    def count(self, times: Times) -> Counts:
        """The counts when the images are there so many times."""
        size, sums = self._strips.size, times.sum_products(self._counted, self._widest)
        copies = sums[:size].astype(times.type_of(self._most), copy=False)
        rank: NDArray[Any] = sums[size : 2 * size].astype(times.type_of(self._longest), copy=False)
        if len(self._cut):
            rank[self._cut] += np.add.reduceat(sums[2 * size :], self._further, axis=0, dtype=rank.dtype)
        return self._running(copies, rank)

    def _running(self, copies: NDArray[Any], rank: NDArray[Any]) -> Counts:
        """From those of each row alone [layers * S, R]; it may use them up."""
        hits = self._strips.running(np.add, self._worth(self._strips.layers(copies)))
        return Counts(hits, self._strips.running(np.add, self._strips.layers(rank)))

    def alone(self, lists: ListColumns, start: int, end: int) -> Counts:
        """The counts of each of the images from start to end alone; lists: of one class, to its last true positive."""
        chosen = np.flatnonzero((lists.image >= start) & (lists.image < end))
        row = self._row_of_hit[np.searchsorted(lists.hits, chosen)]
        place, many = row * (end - start) + lists.image[chosen] - start, self._strips.size * (end - start)
        worth = lists.hit[chosen] if lists.gain is None else lists.gain[chosen] * lists.hit[chosen]
        alone = np.bincount(place, worth, many), np.bincount(place, minlength=many)
        layers = (
            self._strips.layers(of.astype(every.dtype).reshape(self._strips.size, -1))
            for of, every in zip(alone, self._every, strict=True)
        )
        return Counts(*(self._strips.running(np.add, of) for of in layers))

    def others(self, counts: Counts) -> Counts:
        """Return those of every image once, less `counts`."""
        return Counts(*(every - part for every, part in zip(self._every, counts, strict=True)))

    @cached_property
    def _every(self) -> Counts:
        once = Times(np.ones((1, 1), dtype=np.int32))
        rank = self._behind.astype(once.type_of(self._longest))
        return self._running(self._of_row.astype(once.type_of(self._most)), rank)

    def _worth(self, copies: NDArray[Any]) -> NDArray[Any]:
        """Return what copies of each true positive are worth."""
        return copies if self._gain is None else copies * self._gain

    def _copies(self, worth: NDArray[Any]) -> NDArray[Any]:
        """Return how many copies of each true positive are worth so much."""
        return worth if self._gain is None else worth // np.maximum(self._gain, 1)

    def rate(self, counts: Counts, positives: Sequence[NDArray[Any]], aps: Sequence[Floats]) -> None:
        """Set the AP of `classes` in each of `aps` [C, R], for as much ground truth as `positives` [C, R] each have.
        It uses the counts up: `others` comes before."""
        annotated = [np.maximum(of[self.classes], 1) for of in positives]
        for ap, ap_found in zip(aps, self._ap(counts, annotated), strict=True):
            ap[self.classes] = ap_found

    def _ap(self, counts: Counts, annotated: Sequence[Ints]) -> Iterator[Floats]:
        """[O, R] the AP of each of `classes` for each of `annotated` [O, R], how much ground truth there is."""
        hits, rank = counts
        # of a true positive's copies, those up to the cap count
        if self._cap is not None and rank.max(initial=0) > self._cap:
            copies = self._copies(self._strips.steps(hits))
            copies = np.clip(self._cap - (rank - copies), 0, copies)
            hits, rank = self._strips.running(np.add, self._worth(copies)), np.minimum(rank, self._cap)
        # as long as nothing is counted, nothing is found either: 0 of at least 1
        precision = np.divide(hits, np.maximum(rank, 1, out=rank), dtype=np.float64)
        if self._area == "trapezoid":  # the mean of the precisions before and after
            worth = self._strips.steps(hits)
            earlier = rank - self._copies(worth)
            before = np.divide(hits - worth, np.maximum(earlier, 1), dtype=np.float64)
            precision += np.where(earlier > 0, before, self._unit)
            precision /= 2
        else:
            self._strips.running(np.maximum, precision, backwards=True)
        if not self._grid:  # the area: every copy is a step of recall
            total = self._strips.totals(precision, self._strips.steps(hits))
            return (total / (of * float(self._unit**2)) for of in annotated)
        # the mean over the grid: a point reads the precision of the first to reach it
        points = len(self._grid) * self._unit
        steps = (self._strips.steps(self._count_reached(hits, of)) for of in annotated)
        return (self._strips.totals(precision, of) / points for of in steps)

    def _count_reached(self, hits: NDArray[Any], annotated: Ints) -> NDArray[Any]:
        """Return how many points of the grid the recall hits / annotated has reached."""
        if hits.max(initial=0) < np.iinfo(np.int8).max:  # compared in half the time
            hits = hits.astype(np.int8)
        end = 1 << int(annotated.max(initial=1)).bit_length()
        if end <= annotated.size:
            least_hits = np.take(_least_of_all(self._grid, self._unit, end, hits.dtype), annotated, axis=1)
        else:
            least_hits = _least(self._grid, annotated.astype(np.float64) * self._unit, hits.dtype)
        at_once = len(self._grid) - len(least_hits)  # recall is 0 at least
        reached = np.full(hits.shape, at_once, dtype=np.int8 if len(self._grid) < 128 else np.int16)
        reaches = np.empty(hits.shape, dtype=bool)
        for of_point in least_hits:
            np.greater_equal(hits, np.take(of_point, self._strips.owner, axis=0), out=reaches)
            np.add(reached, reaches.view(np.int8), out=reached)
        return reached


def _least(grid: Sequence[float], annotated: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    """[points above 0, ...] the least to be found for a recall at each point of the grid, of `annotated` [...]; the
    largest of its type if that is too small, as `found` is not."""
    points = np.array([point for point in grid if point > 0]).reshape(-1, *[1] * annotated.ndim)
    floors = np.floor(points * annotated)
    floors += floors / annotated < points  # where that, as a recall, falls short
    return np.minimum(floors, np.iinfo(dtype).max).astype(dtype)


@lru_cache(maxsize=8)
def _least_of_all(grid: Sequence[float], unit: int, end: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """`_least` of ground truth 0, 1, ... up to `end`."""
    return _least(grid, np.maximum(np.arange(float(end)), 1) * unit, dtype)


def small(matrix: csr_array) -> csr_array:
    """A matrix of whole numbers as small numbers, if they are."""
    return matrix.astype(np.int16 if matrix.max() <= SMALL else np.int32) if matrix.nnz else matrix


def _present(counts: Ints, images: Ints, width: int) -> csr_array:
    """[M, width] the images of each of M rows, one row's after the other's. An image that a row has twice has two
    entries: to find these takes as long as some hundred products."""
    from scipy.sparse import csr_array

    index = np.int32 if len(images) < 1 << 31 else np.int64
    ones = np.ones(len(images), dtype=np.int16)
    return csr_array((ones, images.astype(index), starts_of(counts).astype(index)), shape=(len(counts), width))
