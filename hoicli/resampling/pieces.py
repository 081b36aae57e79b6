"""The true positives of a few ranked lists, worked on together: in every round, the counts up to each true positive and
the AP. Rows are laid out so that running totals down every list are a few operations on large arrays."""

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
"""Predictions that are added up at once: where no image is drawn more than 16 times, their sum is at most SMALL."""


class Strips:
    """A layout of O lists (`counts` [O]: their rows; the longest first, none empty), cut into strips of equal length.

    The last strip of each list is filled up. Layer i holds the i-th row of all S strips: first of the first strips of
    all lists, then of the second strips of those lists that have two, and so on; so values of R rounds are [layers, S,
    R]. place [K]: where each row stands, counted through all layers; size: layers * S; owner [S]: the list of each
    strip.
    """

    def __init__(self, counts: Ints) -> None:
        self._layers = min(int(counts.max(initial=1)), MOST_LAYERS)
        strips = -(-counts // self._layers)
        # how many lists have a first strip, a second strip, ...: `strips` falls, so its negative is searched
        having = np.searchsorted(-strips, -np.arange(1, int(strips.max(initial=0)) + 1), side="right")
        first = starts_of(having)  # where the first strips begin, the second strips, ...
        self.owner: Ints = expand_runs(np.zeros_like(having), having)[1]
        self.size, self._lists = self._layers * len(self.owner), len(counts)
        list_number, within = expand_runs(np.zeros_like(counts), counts)
        strip, layer = np.divmod(within, self._layers)
        self.place: Ints = layer * len(self.owner) + first[strip] + list_number
        steps = zip(pairwise(first.tolist()), having[1:].tolist(), strict=False)
        # from the strips of one rank to those that continue them
        self._steps = [
            (slice(begin, begin + count), slice(next_begin, next_begin + count)) for (begin, next_begin), count in steps
        ]
        self._before: Ints = np.concatenate(
            [np.arange(0), *(np.arange(span.start, span.stop) for span, _ in self._steps)]
        )

    def layers(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return rows [layers * S, R] as [layers, S, R]."""
        return rows.reshape(self._layers, len(self.owner), -1)

    def running(self, operation: np.ufunc, values: Numbers, *, backwards: bool = False) -> Numbers:
        """Replace values >= 0 by running totals (or maxima) down each list (`backwards`: up it); return them."""
        for before, layer in pairwise(values[::-1] if backwards else values):
            operation(before, layer, out=layer)
        if self._steps:
            strip_totals = values[0] if backwards else values[-1]
            carried = np.zeros_like(strip_totals)  # the total of a list's strips before each strip
            for span, next_span in self._steps[::-1] if backwards else self._steps:
                before, strip = (next_span, span) if backwards else (span, next_span)
                operation(carried[before], strip_totals[before], out=carried[strip])
            operation(values, carried, out=values)
        return values

    def steps(self, values: Numbers) -> Numbers:
        """Return by how much each row exceeds the one before it in its list; for a list's first row, all it has."""
        increase: Numbers = values.copy()
        increase[1:] -= values[:-1]
        increase[0, len(self.owner) - len(self._before) :] -= values[-1, self._before]  # the strip before ends there
        return increase

    def totals(self, values: Floats, times: NDArray[Any]) -> Floats:
        """Return [O, R]: the sum of values * times over each list, where `times` is 0 wherever strips are filled up."""
        strip_totals = np.einsum("lsr,lsr->sr", values, times)
        total: Floats = strip_totals[: self._lists]
        for _, strips in self._steps:
            total[: strips.stop - strips.start] += strip_totals[strips]
        return total


@dataclass(frozen=True)
class Times:
    """How often each of N images is there in each of R rounds: weights [N, R]."""

    weights: Weights

    @cached_property
    def _most(self) -> int:
        """Return how often an image is there at most."""
        return int(self.weights.max(initial=0))

    @cached_property
    def _small(self) -> NDArray[np.int16]:
        return self.weights.astype(np.int16)

    def type_of(self, largest: int) -> type[np.int16 | np.int32]:
        """Return an integer type that holds sums of up to `largest` weights."""
        return np.int16 if largest * self._most <= SMALL else np.int32

    def sum_products(self, matrix: csr_array, largest: int) -> NDArray[Any]:
        """Return matrix [M, N], from `small`, @ weights; no sum is of more than `largest` weights."""
        sums: NDArray[Any] = matrix @ (self._small if self.type_of(largest) is np.int16 else self.weights)
        return sums


class Counts(NamedTuple):
    """Running counts at each true positive, [layers, S, R] for R rounds. hits: what the true positives of its class are
    worth together, up to and including it; rank: how many predictions of its class stand up to and including it."""

    hits: NDArray[Any]
    rank: NDArray[Any]


class RowSums(NamedTuple):
    """What `Piece.count` adds up. matrix: its product with the weights has the true positives of each row, below them
    the predictions of each row, and below them those of the further parts of rows that are cut. largest: the most
    weights in one sum; rows_cut: the rows that are cut; further_parts: where the further parts of each of these begin.
    """

    matrix: csr_array
    largest: int
    rows_cut: Ints
    further_parts: Ints


def _row_sums(lists: ListColumns, first: Ints, begin: Ints, row_hits: Ints, row_width: Ints) -> RowSums:
    """Return the sums over the rows of a piece. Wide rows are cut, so that the sums of each part are small.

    first, begin: of each row, as in `Rows`; row_hits, row_width: its true positives, and its predictions."""
    hits = lists.hits[expand_runs(first, row_hits)[1]]
    parts = -(-row_width // WIDEST)
    rows_cut: Ints = np.flatnonzero(parts > 1)
    further = parts[rows_cut] - 1
    row_of_part = np.repeat(rows_cut, further)
    offset = WIDEST * expand_runs(np.ones_like(further), further)[1]
    widths = np.minimum(np.append(row_width, row_width[row_of_part] - offset), WIDEST)
    _, prediction = expand_runs(np.append(begin, begin[row_of_part] + offset), widths)
    sizes = np.append(row_hits, widths)
    matrix = _present(sizes, lists.image[np.append(hits, prediction)], lists.images)
    return RowSums(matrix, int(sizes.max(initial=0)), rows_cut, starts_of(further)[:-1])


class Piece:
    """The true positives of some classes (`numbers`) of ranked lists, those with more rows (`ListColumns.rows`) first.
    classes [O]: those of the classes that have rows. weighted: whether `count` is needed, and not only `alone`."""

    def __init__(self, lists: ListColumns, numbers: Ints, *, weighted: bool = True) -> None:
        all_rows = lists.rows
        counts = np.diff(all_rows.bounds)[numbers]
        self.classes: Ints = numbers[counts > 0]
        counts = counts[counts > 0]
        rows = expand_runs(all_rows.bounds[self.classes], counts)[1]
        self._grid, self._cap, self._unit, self._area = lists.grid, lists.cap, lists.unit, lists.area
        self._strips = Strips(counts)
        first, end = all_rows.first[rows], all_rows.first[rows + 1]
        self._row_of_hit: Ints = np.repeat(self._strips.place, end - first)
        self._gain: NDArray[Any] | None = None
        if lists.gain is not None:
            (gain,) = self._place_columns(lists.gain[lists.hits[first]])
            self._gain = self._strips.layers(gain)
        begin = all_rows.begin[rows]
        row_hits, row_width = end - first, lists.hits[end - 1] + 1 - begin  # true positives, predictions of each row
        # most true positives of a list, and most predictions up to a list's last true positive
        self._most, self._longest = (
            int(np.add.reduceat(column, starts_of(counts)[:-1]).max(initial=0)) for column in (row_hits, row_width)
        )
        first, begin, self._row_hits, self._row_width = self._place_columns(first, begin, row_hits, row_width)
        if weighted:
            self._sums = _row_sums(lists, first, begin, self._row_hits, self._row_width)

    def _place_columns(self, *columns: Ints) -> Ints:
        """Return columns of the rows, each value where its row stands in the strips; 0 where strips are filled up."""
        placed = np.zeros((len(columns), self._strips.size), dtype=np.int64)
        placed[:, self._strips.place] = columns
        return placed

    def count(self, times: Times) -> Counts:
        """Return the counts in each round, when the images are there so many `times`."""
        size, rows_cut = self._strips.size, self._sums.rows_cut
        sums = times.sum_products(self._sums.matrix, self._sums.largest)
        copies = sums[:size].astype(times.type_of(self._most), copy=False)
        rank: NDArray[Any] = sums[size : 2 * size].astype(times.type_of(self._longest), copy=False)
        if len(rows_cut):
            rank[rows_cut] += np.add.reduceat(sums[2 * size :], self._sums.further_parts, axis=0, dtype=rank.dtype)
        return self._running(copies, rank)

    def _running(self, copies: NDArray[Any], rank: NDArray[Any]) -> Counts:
        """Return the counts from the copies and predictions of each row alone [layers * S, R]; may overwrite these."""
        hits = self._strips.running(np.add, self._worth(self._strips.layers(copies)))
        return Counts(hits, self._strips.running(np.add, self._strips.layers(rank)))

    def alone(self, lists: ListColumns, start: int, end: int) -> Counts:
        """Return the counts when one image alone is there, for each from `start` to `end`; lists: of one class."""
        images, rows = end - start, self._strips.size
        prediction = np.flatnonzero((lists.image >= start) & (lists.image < end))
        hit, image = lists.hit[prediction], lists.image[prediction] - start
        row = self._row_of_hit[np.searchsorted(lists.hits, prediction)]  # that of the true positive at or behind it
        worth = hit if lists.gain is None else lists.gain[prediction] * hit
        # a cell for each row and image
        cell, cells = row * images + image, rows * images
        worth_by_cell, predictions_by_cell = np.bincount(cell, worth, cells), np.bincount(cell, minlength=cells)
        layers = (
            self._strips.layers(values.astype(whole.dtype).reshape(rows, -1))
            for values, whole in zip((worth_by_cell, predictions_by_cell), self._every, strict=True)
        )
        return Counts(*(self._strips.running(np.add, layer) for layer in layers))

    def others(self, counts: Counts) -> Counts:
        """Return the counts when every image is there once, minus `counts`: those of all other images."""
        return Counts(*(whole - part for whole, part in zip(self._every, counts, strict=True)))

    @cached_property
    def _every(self) -> Counts:
        once = Times(np.ones((1, 1), dtype=np.int32))
        rank = self._row_width.astype(once.type_of(self._longest))
        return self._running(self._row_hits.astype(once.type_of(self._most)), rank)

    def _worth(self, copies: NDArray[Any]) -> NDArray[Any]:
        """Return what so many copies of each true positive are worth."""
        return copies if self._gain is None else copies * self._gain

    def _copies(self, worth: NDArray[Any]) -> NDArray[Any]:
        """Return how many copies of each true positive are worth so much: the inverse of `_worth`."""
        return worth if self._gain is None else worth // np.maximum(self._gain, 1)

    def rate(self, counts: Counts, positives: Sequence[NDArray[Any]], aps: Sequence[Floats]) -> None:
        """Write the AP of this piece's classes into each of `aps` [C, R]. positives: [C, R] the ground truth of each
        class, an array for each of `aps`. The counts are overwritten, so call `others` before."""
        annotated = [np.maximum(positive_counts[self.classes], 1) for positive_counts in positives]
        for ap, ap_found in zip(aps, self._ap(counts, annotated), strict=True):
            ap[self.classes] = ap_found

    def _ap(self, counts: Counts, annotated: Sequence[Ints]) -> Iterator[Floats]:
        """Yield [O, R], the AP of each of `classes`, for each of `annotated` [O, R]: how much ground truth there is."""
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
            return (total / (ground_truth * float(self._unit**2)) for ground_truth in annotated)
        # the mean over the grid: a point takes the precision of the first true positive to reach it
        points = len(self._grid) * self._unit
        steps = (self._strips.steps(self._count_reached(hits, ground_truth)) for ground_truth in annotated)
        return (self._strips.totals(precision, newly_reached) / points for newly_reached in steps)

    def _count_reached(self, hits: NDArray[Any], annotated: Ints) -> NDArray[Any]:
        """Return [layers, S, R] how many points of the grid the recall hits / annotated has reached. annotated [O, R]:
        how much ground truth there is of each class."""
        if hits.max(initial=0) < np.iinfo(np.int8).max:  # compared in half the time
            hits = hits.astype(np.int8)
        least_hits = self._least_hits(annotated, hits.dtype)
        points_at_zero = len(self._grid) - len(least_hits)  # recall is 0 at least
        reached = np.full(hits.shape, points_at_zero, dtype=np.int8 if len(self._grid) < 128 else np.int16)
        reaches = np.empty(hits.shape, dtype=bool)  # whether the recall reaches a point
        for least_of_class in least_hits:
            np.greater_equal(hits, np.take(least_of_class, self._strips.owner, axis=0), out=reaches)
            np.add(reached, reaches.view(np.int8), out=reached)
        return reached

    def _least_hits(self, annotated: Ints, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return [points above 0, O, R] the least number of hits whose recall reaches each point of the grid: taken
        from a table where that is shorter than `annotated` [O, R], the ground truth of each class. dtype: that of the
        result."""
        end = 1 << int(annotated.max(initial=1)).bit_length()  # a power of two, so that few tables are cached
        if end > annotated.size:
            return _least(self._grid, annotated.astype(np.float64) * self._unit, dtype)
        return np.take(_least_of_all(self._grid, self._unit, end, dtype), annotated, axis=1)


def _least(grid: Sequence[float], annotated: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return [points above 0, ...]: the least number of hits whose recall reaches each grid point, for `annotated`
    [...] ground truth; a number that is too large for `dtype` becomes its largest value, which hits never reach."""
    points = np.array([point for point in grid if point > 0]).reshape(-1, *[1] * annotated.ndim)
    floors = np.floor(points * annotated)
    floors += floors / annotated < points  # where that, as a recall, falls short
    return np.minimum(floors, np.iinfo(dtype).max).astype(dtype)


@lru_cache(maxsize=8)
def _least_of_all(grid: Sequence[float], unit: int, end: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return `_least` for each amount of ground truth 0, 1, ... below `end`."""
    return _least(grid, np.maximum(np.arange(float(end)), 1) * unit, dtype)


def small(matrix: csr_array) -> csr_array:
    """Return a matrix of whole numbers as 16-bit integers if they fit, else as 32-bit ones."""
    return matrix.astype(np.int16 if matrix.max() <= SMALL else np.int32) if matrix.nnz else matrix


def _present(counts: Ints, images: Ints, width: int) -> csr_array:
    """Return a sparse [M, width] with a 1 for each image of each row; counts: [M] images of a row; images: row by row.
    An image that a row has twice has two entries: to find these takes as long as some hundred products."""
    from scipy.sparse import csr_array

    index = np.int32 if len(images) < 1 << 31 else np.int64
    ones = np.ones(len(images), dtype=np.int16)
    return csr_array((ones, images.astype(index), starts_of(counts).astype(index)), shape=(len(counts), width))
