"""Average precision of a few ranked lists (classes) at once, in many rounds of weighted images.

In every round, it counts the true positives and the predictions up to each row (a run of true positives, `lists.Rows`),
and computes the AP from these counts. Rows are laid out as `Strips`, so that running totals down all lists are a few
operations on large arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from hoicli.records.kit import Floats, Ints, expand_runs, starts_of
from hoicli.resampling.sparse import Sparse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hoicli.resampling.draws import Weights
    from hoicli.resampling.lists import ListColumns

Numbers = TypeVar("Numbers", bound="NDArray[Any]")

MOST_LAYERS = 8
"""The most rows of a strip. A running total takes a step for each row of a strip, and one for each strip of the longest
list; on average half of a list's last strip is padding."""
SMALL = np.iinfo(np.int16).max
"""Whole numbers up to here are stored in 16 bits, which takes half the space and half the time of 32."""
WIDEST = SMALL // 16
"""The most predictions that are added up at once: if no image is drawn more than 16 times, the sum is at most SMALL."""


class Strips:
    """A layout of the rows of O lists for fast running totals: every list is cut into strips of equal length, the last
    of which is padded, and all S strips stand side by side.

    An array of values for R rounds has the shape [layers, S, R]; layer i holds the i-th row of every strip. The strips
    are ordered by their place in their list: the first strips of all lists, then the second strips, and so on.

    place [K]: where each of the K rows stands if the layers are joined into one axis of length `size`; owner [S]: the
    list of each strip."""

    def __init__(self, counts: Ints) -> None:
        """Lay out the lists. counts: [O] the number of rows of each list, descending, none 0."""
        self._layers = min(int(counts.max(initial=1)), MOST_LAYERS)
        strips = -(-counts // self._layers)  # of each list, rounded up
        # how many lists have a first strip, a second strip, ...: `strips` descends, so its negative is searched
        lists_with = np.searchsorted(-strips, -np.arange(1, int(strips.max(initial=0)) + 1), side="right")
        starts = starts_of(lists_with)  # where the first strips begin, the second strips, ...
        _, self.owner = expand_runs(np.zeros_like(lists_with), lists_with)
        self.size, self._lists = self._layers * len(self.owner), len(counts)
        list_number, row_in_list = expand_runs(np.zeros_like(counts), counts)
        strip_in_list, layer = np.divmod(row_in_list, self._layers)
        self.place: Ints = layer * len(self.owner) + starts[strip_in_list] + list_number
        # from strips to those that continue them: first to second strips, second to third strips, ...
        self._next_strips: list[tuple[slice, slice]] = []
        # strict=False: the last strips have none that continue them
        for (begin, next_begin), count in zip(pairwise(starts.tolist()), lists_with[1:].tolist(), strict=False):
            self._next_strips.append((slice(begin, begin + count), slice(next_begin, next_begin + count)))
        self._continued: Ints = np.concatenate(  # the strips that another one continues
            [np.arange(0), *(np.arange(strips.start, strips.stop) for strips, _ in self._next_strips)]
        )

    def layers(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return an array of rows [layers * S, R] in the shape [layers, S, R]."""
        return rows.reshape(self._layers, len(self.owner), -1)

    def running(self, operation: np.ufunc, values: Numbers, *, backwards: bool = False) -> Numbers:
        """Replace values [layers, S, R], 0 or more, by their running totals down each list, and return them. operation:
        np.add, or np.maximum for running maxima; backwards: from the end of each list up."""
        for before, layer in pairwise(values[::-1] if backwards else values):
            operation(before, layer, out=layer)
        if self._next_strips:
            strip_totals = values[0] if backwards else values[-1]
            carried = np.zeros_like(strip_totals)  # for each strip, the total of its list's strips before it
            for strips, next_strips in self._next_strips[::-1] if backwards else self._next_strips:
                source, target = (next_strips, strips) if backwards else (strips, next_strips)
                operation(carried[source], strip_totals[source], out=carried[target])
            operation(values, carried, out=values)
        return values

    def steps(self, values: Numbers) -> Numbers:
        """Return [layers, S, R] the value of each row minus that of the row before it in its list (0 before the first):
        the inverse of running totals."""
        increase: Numbers = values.copy()
        increase[1:] -= values[:-1]
        # the row before the first row of a strip is the last row of the strip that it continues
        increase[0, len(self.owner) - len(self._continued) :] -= values[-1, self._continued]
        return increase

    def totals(self, values: Floats, factors: NDArray[Any]) -> Floats:
        """Return [O, R] the sum of values * factors over the rows of each list. values, factors: [layers, S, R]; the
        factors of padding must be 0."""
        strip_totals = np.einsum("lsr,lsr->sr", values, factors)
        totals: Floats = strip_totals[: self._lists]  # the first strips, one of each list; lists of most strips first
        for _, strips in self._next_strips:
            totals[: strips.stop - strips.start] += strip_totals[strips]
        return totals


@dataclass(frozen=True)
class Times:
    """How often each of N images counts in each of R rounds: weights [N, R]."""

    weights: Weights

    @cached_property
    def _largest_weight(self) -> int:
        """Return how often an image counts at most."""
        return int(self.weights.max(initial=0))

    @cached_property
    def _small_weights(self) -> NDArray[np.int16]:
        """Return the weights as 16-bit integers."""
        return self.weights.astype(np.int16)

    def type_of(self, addends: int) -> type[np.int16 | np.int32]:
        """Return an integer type that holds every sum of up to `addends` weights."""
        return np.int16 if addends * self._largest_weight <= SMALL else np.int32

    def sum_products(self, matrix: Sparse, addends: int) -> NDArray[Any]:
        """Return [M, R] the product of a matrix [M, N] and the weights. addends: the largest sum of a row of the
        matrix, which decides whether 16 bits hold the result."""
        return matrix.times(self._small_weights if self.type_of(addends) is np.int16 else self.weights)


class Counts(NamedTuple):
    """Running counts at each row, [layers, S, R] for R rounds. hits: what the true positives of its class up to the end
    of the row are worth together (each 1, without gains); rank: how many predictions there are up to there."""

    hits: NDArray[Any]
    rank: NDArray[Any]


class RowSums(NamedTuple):
    """A matrix whose product with the weights of images counts the true positives and the predictions of rows. To keep
    the sums small, a row of more than WIDEST predictions is cut into parts.

    matrix: its rows give the true positives of each row of the lists, then the predictions of the first part of each
    row, then the predictions of all further parts. largest: the most weights in one sum; rows_cut: the rows that have
    further parts; further_parts: where those of each such row begin, among all further parts."""

    matrix: Sparse
    largest: int
    rows_cut: Ints
    further_parts: Ints


def _row_sums(lists: ListColumns, first: Ints, begin: Ints, row_hits: Ints, row_width: Ints) -> RowSums:
    """Return the matrix that counts the rows of a piece.

    A row is a run of true positives and the predictions before it. first, begin: its first true positive, an index into
    all true positives, and its first prediction; row_hits, row_width: how many it has of each."""
    _, hit_number = expand_runs(first, row_hits)
    part_counts = -(-row_width // WIDEST)  # rounded up
    rows_cut: Ints = np.flatnonzero(part_counts > 1)
    further_counts = part_counts[rows_cut] - 1
    row_of_part = np.repeat(rows_cut, further_counts)
    _, part_in_row = expand_runs(np.ones_like(further_counts), further_counts)
    offset = WIDEST * part_in_row
    widths = np.minimum(np.append(row_width, row_width[row_of_part] - offset), WIDEST)
    _, prediction = expand_runs(np.append(begin, begin[row_of_part] + offset), widths)
    # the rows of the matrix: true positives of each row, predictions of each row's first part, then of further parts
    sizes = np.append(row_hits, widths)
    images = lists.image[np.append(lists.hits[hit_number], prediction)]
    matrix = Sparse.make_ones(sizes, images, lists.images)
    further_parts = starts_of(further_counts)[:-1]
    return RowSums(matrix, largest=int(sizes.max(initial=0)), rows_cut=rows_cut, further_parts=further_parts)


class Piece:
    """A few classes of ranked lists, prepared for computing their AP in rounds. classes [O]: the numbers of those that
    have true positives, and so rows (`ListColumns.rows`)."""

    def __init__(self, lists: ListColumns, numbers: Ints, *, weighted: bool = True) -> None:
        """Prepare some classes. numbers: of those with more rows first; weighted: whether `count` will be called."""
        all_rows = lists.rows
        counts = np.diff(all_rows.bounds)[numbers]
        self.classes: Ints = numbers[counts > 0]
        counts = counts[counts > 0]
        # the rows of these classes, list by list
        _, rows = expand_runs(all_rows.bounds[self.classes], counts)
        self._grid, self._cap, self._unit, self._area = lists.grid, lists.cap, lists.unit, lists.area
        self._strips = Strips(counts)

        # first, end: of each row's true positives; begin: its first prediction
        first, end = all_rows.first[rows], all_rows.first[rows + 1]
        self._row_of_hit: Ints = np.repeat(self._strips.place, end - first)
        self._gain: NDArray[Any] | None = None
        if lists.gain is not None:
            (gain,) = self._place_columns(lists.gain[lists.hits[first]])
            self._gain = self._strips.layers(gain)
        begin = all_rows.begin[rows]
        row_hits, row_width = end - first, lists.hits[end - 1] + 1 - begin  # true positives, predictions of each row
        # reduceat adds up the rows of each list
        list_starts = starts_of(counts)[:-1]
        self._most_hits = int(np.add.reduceat(row_hits, list_starts).max(initial=0))
        self._longest_list = int(np.add.reduceat(row_width, list_starts).max(initial=0))
        # from the order of rows in their lists to that of the strips
        first, begin, self._row_hits, self._row_width = self._place_columns(first, begin, row_hits, row_width)
        if weighted:
            self._sums = _row_sums(lists, first, begin, self._row_hits, self._row_width)

    def _place_columns(self, *columns: Ints) -> Ints:
        """Return [columns, strips.size] columns of rows in the layout of the strips, 0 for padding."""
        placed = np.zeros((len(columns), self._strips.size), dtype=np.int64)
        placed[:, self._strips.place] = columns
        return placed

    def count(self, times: Times) -> Counts:
        """Return the counts at each row in each round. times: how often each image counts."""
        size, rows_cut = self._strips.size, self._sums.rows_cut
        sums = times.sum_products(self._sums.matrix, self._sums.largest)
        # the sums: true positives of each row, predictions of its first part, predictions of all further parts
        copies = sums[:size].astype(times.type_of(self._most_hits), copy=False)
        width: NDArray[Any] = sums[size : 2 * size].astype(times.type_of(self._longest_list), copy=False)
        if len(rows_cut):  # reduceat adds up the further parts of each row
            width[rows_cut] += np.add.reduceat(sums[2 * size :], self._sums.further_parts, axis=0, dtype=width.dtype)
        return self._running_counts(copies, width)

    def _running_counts(self, copies: NDArray[Any], width: NDArray[Any]) -> Counts:
        """Return the running counts at each row, from how many true positives (`copies`) and how many predictions
        (`width`) it has itself, [layers * S, R] each; these may be overwritten."""
        hits = self._strips.running(np.add, self._worth(self._strips.layers(copies)))
        return Counts(hits, self._strips.running(np.add, self._strips.layers(width)))

    def alone(self, lists: ListColumns, start: int, end: int) -> Counts:
        """Return the counts at each row of a piece of one class, if one image alone counts: the round r has only the
        image start + r, and the last one end - 1. lists: those that the piece was made of."""
        images, rows = end - start, self._strips.size
        prediction = np.flatnonzero((lists.image >= start) & (lists.image < end))
        hit, image = lists.hit[prediction], lists.image[prediction] - start
        row = self._row_of_hit[np.searchsorted(lists.hits, prediction)]  # the row of the next true positive
        worth = hit if lists.gain is None else lists.gain[prediction] * hit
        # sums by (row, image), as one number
        cell, cells = row * images + image, rows * images
        worth_by_cell, predictions_by_cell = np.bincount(cell, worth, cells), np.bincount(cell, minlength=cells)
        # in the types of the counts of all images, from which `others` takes these away
        hits = worth_by_cell.astype(self._all_images.hits.dtype).reshape(rows, -1)
        rank = predictions_by_cell.astype(self._all_images.rank.dtype).reshape(rows, -1)
        hits, rank = (self._strips.running(np.add, self._strips.layers(values)) for values in (hits, rank))
        return Counts(hits, rank)

    def others(self, counts: Counts) -> Counts:
        """Return the counts of all images that `counts` is not about: of every image once, minus `counts`."""
        return Counts(self._all_images.hits - counts.hits, self._all_images.rank - counts.rank)

    @cached_property
    def _all_images(self) -> Counts:
        """Return the counts in one round in which every image counts once."""
        once = Times(np.ones((1, 1), dtype=np.int32))
        width = self._row_width.astype(once.type_of(self._longest_list))
        return self._running_counts(self._row_hits.astype(once.type_of(self._most_hits)), width)

    def _worth(self, copies: NDArray[Any]) -> NDArray[Any]:
        """Return [layers, S, R] what so many copies of each row's true positives are worth."""
        return copies if self._gain is None else copies * self._gain

    def _copies(self, worth: NDArray[Any]) -> NDArray[Any]:
        """Return [layers, S, R] how many copies of each row's true positives are worth that (inverse of `_worth`)."""
        return worth if self._gain is None else worth // np.maximum(self._gain, 1)

    def rate(self, counts: Counts, positives: Sequence[NDArray[Any]], aps: Sequence[Floats]) -> None:
        """Compute the AP of the piece's classes and write it into `aps`, once for each of several ground truths.

        counts: from `count` or `others`; they are overwritten, so call `others` before. positives: for each ground
        truth, [C, R] how much of it each class has; aps: for each ground truth, [C, R] the AP of each class."""
        annotated = [np.maximum(positive_counts[self.classes], 1) for positive_counts in positives]
        for ap, ap_of_piece in zip(aps, self._average_precisions(counts, annotated), strict=True):
            ap[self.classes] = ap_of_piece

    def _average_precisions(self, counts: Counts, annotated: Sequence[Ints]) -> Iterator[Floats]:
        """Return an iterator of [O, R] the AP of each class, one for each of `annotated`: [O, R] how much ground truth
        each class has, at least 1. An image that counts twice has two copies of each of its true positives."""
        hits, rank = counts
        if self._cap is not None and rank.max(initial=0) > self._cap:
            # of the copies of a true positive, only those up to the cap count
            copies = self._copies(self._strips.steps(hits))
            copies = np.clip(self._cap - (rank - copies), 0, copies)
            hits, rank = self._strips.running(np.add, self._worth(copies)), np.minimum(rank, self._cap)
        precision = np.divide(hits, np.maximum(rank, 1, out=rank), dtype=np.float64)  # 0 / 1 before any prediction
        if self._area == "trapezoid":  # the mean of the precisions before and after each step of recall
            worth = self._strips.steps(hits)
            earlier_rank = rank - self._copies(worth)
            before = np.divide(hits - worth, np.maximum(earlier_rank, 1), dtype=np.float64)
            precision += np.where(earlier_rank > 0, before, self._unit)
            precision /= 2
        else:  # the envelope: the largest precision from here on
            self._strips.running(np.maximum, precision, backwards=True)  # in place
        if not self._grid:  # the area under the curve: every copy is a step of recall
            total = self._strips.totals(precision, self._strips.steps(hits))
            return (total / (ground_truth * float(self._unit**2)) for ground_truth in annotated)
        # the mean over the levels of recall: a level takes the precision of the first row that reaches it
        points = len(self._grid) * self._unit
        steps = (self._strips.steps(self._count_reached(hits, ground_truth)) for ground_truth in annotated)
        return (self._strips.totals(precision, newly_reached) / points for newly_reached in steps)

    def _count_reached(self, hits: NDArray[Any], annotated: Ints) -> NDArray[Any]:
        """Return [layers, S, R] how many of the grid's levels of recall each row has reached. hits: [layers, S, R] as
        in `Counts`; annotated: [O, R] how much ground truth each class has; recall is one divided by the other."""
        if hits.max(initial=0) < np.iinfo(np.int8).max:  # 8 bits are compared in half the time
            hits = hits.astype(np.int8)
        minimum_hits = self._minimum_hits(annotated, hits.dtype)
        points_at_zero = len(self._grid) - len(minimum_hits)  # a level of 0 is always reached
        reached = np.full(hits.shape, points_at_zero, dtype=np.int8 if len(self._grid) < 128 else np.int16)
        reaches_level = np.empty(hits.shape, dtype=bool)
        for minimum_of_class in minimum_hits:
            np.greater_equal(hits, np.take(minimum_of_class, self._strips.owner, axis=0), out=reaches_level)
            np.add(reached, reaches_level.view(np.int8), out=reached)
        return reached

    def _minimum_hits(self, annotated: Ints, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return [levels above 0, O, R] how many hits it takes to reach each level of recall. annotated: [O, R] how
        much ground truth each class has; dtype: of the result. If there are fewer different amounts than values in
        `annotated`, the result is looked up in a table."""
        end = 1 << int(annotated.max(initial=1)).bit_length()  # a power of two, so that few tables are cached
        if end > annotated.size:
            return _hits_for_recall(self._grid, annotated.astype(np.float64) * self._unit, dtype)
        return np.take(_table_of_hits(self._grid, self._unit, end, dtype), annotated, axis=1)


def _hits_for_recall(grid: Sequence[float], annotated: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return [levels above 0,...] the smallest number of hits whose recall reaches each level of the grid. annotated:
    [...] how much ground truth there is, above 0. A number too large for `dtype` becomes its largest value."""
    points = np.array([point for point in grid if point > 0]).reshape(-1, *[1] * annotated.ndim)
    hits = np.floor(points * annotated)
    hits += hits / annotated < points  # one more where the recall falls short
    return np.minimum(hits, np.iinfo(dtype).max).astype(dtype)


@lru_cache(maxsize=8)
def _table_of_hits(grid: Sequence[float], unit: int, end: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return [levels above 0, end] the result of `_hits_for_recall` for each amount below `end` (for 0 as for 1)."""
    return _hits_for_recall(grid, np.maximum(np.arange(float(end)), 1) * unit, dtype)
