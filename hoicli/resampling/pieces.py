"""The true positives of a few ranked lists, worked on as one: counts up to each for every round, and their AP. Their
rows are laid out so that running totals down every list are a few operations on large arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from hoicli.records.kit import Floats, Ints, expanded, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from hoicli.resampling.draws import Weights
    from hoicli.resampling.ranked import RankedLists

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
        self.owner: Ints = expanded(np.zeros_like(having), having)[1]
        self.size = self._layers * len(self.owner)
        owner, within = expanded(np.zeros_like(counts), counts)
        strip, layer = np.divmod(within, self._layers)
        self.place: Ints = layer * len(self.owner) + first[strip] + owner
        steps = zip(pairwise(first.tolist()), having[1:].tolist(), strict=False)
        self._steps = [(slice(one, one + count), slice(two, two + count)) for (one, two), count in steps]
        self._before: Ints = np.concatenate([np.arange(0), *(np.arange(one.start, one.stop) for one, _ in self._steps)])

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
            for one, two in self._steps[::-1] if backwards else self._steps:
                before, strip = (two, one) if backwards else (one, two)
                operation(carried[before], come_to[before], out=carried[strip])
            operation(values, carried, out=values)
        return values

    def steps(self, values: Numbers) -> Numbers:
        """How much more each row has than the one before it in its list; the first of a list, all it has."""
        more: Numbers = values.copy()
        more[1:] -= values[:-1]
        more[0, len(self.owner) - len(self._before) :] -= values[-1, self._before]
        return more


@dataclass(frozen=True)
class Times:
    """How often each of N images is there in R rounds, as [N + 1, R]: the last, which fills up, never."""

    weights: Weights

    @cached_property
    def most(self) -> int:
        """How often an image is there at most."""
        return int(self.weights.max(initial=0))

    @cached_property
    def small(self) -> NDArray[np.int16]:
        """[N + 1, R], if `most` is SMALL."""
        return self._filled(np.int16)

    @cached_property
    def large(self) -> NDArray[np.int32]:
        """[N + 1, R]."""
        return self._filled(np.int32)

    def _filled(self, dtype: type[np.generic]) -> NDArray[Any]:
        filled = np.zeros((len(self.weights) + 1, self.weights.shape[1]), dtype=dtype)
        filled[:-1] = self.weights
        return filled

    def within(self, most: int) -> NDArray[Any]:
        """[N + 1, R] of a type in which `most` of them can be added up."""
        return self.small if most * self.most <= SMALL else self.large


class Counts(NamedTuple):
    """Whole numbers of each round, of each true positive, [layers, S, R]: what the true positives, and how many
    predictions, of its class come to with it."""

    found: NDArray[Any]
    rank: NDArray[Any]


class Piece:
    """The true positives of the classes `numbers` of ranked lists; classes [O] are those that have some."""

    def __init__(self, lists: RankedLists, numbers: Ints) -> None:
        first = lists.first_hit
        counts = first[numbers + 1] - first[numbers]
        self.classes: Ints = numbers[counts > 0]
        counts = counts[counts > 0]
        rows = expanded(first[self.classes], counts)[1]
        self._grid, self._cap, self._unit, self._area = lists.grid, lists.cap, lists.unit, lists.area
        self._strips = Strips(counts)
        self._longest = int(counts.max(initial=0))
        place, hits = self._strips.place, lists.hits[rows]
        self._image: Ints = np.full(self._strips.size, lists.images)
        self._image[place] = lists.image[hits]
        self._gain: NDArray[Any] | None = None
        if lists.gain is not None:
            self._gain = np.zeros((self._strips.size, 1), dtype=np.int64)
            self._gain[place, 0] = lists.gain[hits]
        # the predictions that are counted at each true positive: those after the last one of its class
        begin = np.append(0, lists.hits[:-1] + 1)[rows]
        begin[starts_of(counts)[:-1]] = lists.bounds[self.classes]
        between = np.zeros((2, self._strips.size), dtype=np.int64)
        between[:, place] = begin, hits + 1 - begin
        self._all_right = bool((between[1] <= 1).all()) and self._gain is None
        # wide rows are cut, so that the sums of each part are small
        parts = -(-between[1] // WIDEST)
        self._cut: Ints = np.flatnonzero(parts > 1)
        further = parts[self._cut] - 1
        self._further: Ints = starts_of(further)[:-1]
        cut, part = np.repeat(self._cut, further), WIDEST * expanded(np.ones_like(further), further)[1]
        begin = np.append(between[0], between[0, cut] + part)
        counts_of = np.minimum(np.append(between[1], between[1, cut] - part), WIDEST)
        self._between = _ones(lists.image[expanded(begin, counts_of)[1]], counts_of, lists.images + 1, np.int16)
        self._widest = int(counts_of.max(initial=0))
        self._sum = _ones(place, counts, self._strips.size, np.float64)
        self._of_totals = self._all_right and self._cap is None and self._area == "envelope"

    def counted(self, times: Times) -> Counts:
        """The counts when the images are there so many times."""
        copies = self._strips.layers(np.take(times.within(self._longest), self._image, axis=0))
        found = self._strips.running(np.add, self._worth(copies))
        if self._all_right:
            return Counts(found, found)
        weights = times.within(self._widest)
        between = self._between if weights.dtype == self._between.dtype else self._wide_between
        sums = between @ weights
        rank = sums[: self._strips.size].astype(np.int32)
        if len(self._cut):
            rank[self._cut] += np.add.reduceat(sums[self._strips.size :], self._further, axis=0, dtype=np.int32)
        return Counts(found, self._strips.running(np.add, self._strips.layers(rank)))

    @cached_property
    def _wide_between(self) -> csr_array:
        return self._between.astype(np.int32)

    def alone(self, lists: RankedLists, start: int, end: int) -> Counts:
        """The counts of each of the images from start to end alone; lists: of one class, to its last true positive."""
        chosen = np.flatnonzero((lists.image >= start) & (lists.image < end))
        row = self._strips.place[np.searchsorted(lists.hits, chosen)]
        place, many = row * (end - start) + lists.image[chosen] - start, self._strips.size * (end - start)
        worth = lists.hit[chosen] if lists.gain is None else lists.gain[chosen] * lists.hit[chosen]
        alone = np.bincount(place, worth, many), np.bincount(place, minlength=many)
        layers = (
            self._strips.layers(of.astype(every.dtype).reshape(self._strips.size, -1))
            for of, every in zip(alone, self._every, strict=True)
        )
        return Counts(*(self._strips.running(np.add, of) for of in layers))

    def others(self, counts: Counts) -> Counts:
        """Those of every image once, less `counts`."""
        return Counts(*(every - part for every, part in zip(self._every, counts, strict=True)))

    @cached_property
    def _every(self) -> Counts:
        images = self._between.shape[1] - 1
        return self.counted(Times(np.ones((images, 1), dtype=np.int32)))

    def _worth(self, copies: NDArray[Any]) -> NDArray[Any]:
        """What copies of each true positive are worth."""
        return copies if self._gain is None else copies * self._strips.layers(self._gain)

    def _copies(self, worth: NDArray[Any]) -> NDArray[Any]:
        """How many copies of each true positive are worth so much."""
        return worth if self._gain is None else worth // np.maximum(self._strips.layers(self._gain), 1)

    def rate(self, counts: Counts, positives: Sequence[NDArray[Any]], aps: Sequence[Floats]) -> None:
        """Set the AP of `classes` in each of `aps` [C, R], for as much ground truth as `positives` [C, R] each have."""
        of_classes = [np.maximum(of[self.classes], 1) * float(self._unit) for of in positives]
        for ap, found in zip(aps, self._ap(counts, of_classes), strict=True):
            ap[self.classes] = found

    def _ap(self, counts: Counts, asked: Sequence[Floats]) -> list[Floats]:
        """[O, R] the AP of each of `classes` for each of `asked` [O, R], what all ground truth is worth."""
        found, rank = counts
        if self._of_totals:
            return self._ap_of_totals(found, asked)
        if self._cap is not None:  # of a true positive's copies, those up to the cap count
            copies = self._copies(self._strips.steps(found))
            copies = np.clip(self._cap - (rank - copies), 0, copies)
            found, rank = self._strips.running(np.add, self._worth(copies)), np.minimum(rank, self._cap)
        # as long as nothing is counted, nothing is found either: 0 of at least 1
        precision = np.maximum(rank, 1.0)
        np.divide(found, precision, out=precision)
        if self._area == "trapezoid":  # the mean of the precisions before and after
            worth = self._strips.steps(found)
            earlier = rank - self._copies(worth)
            precision += np.where(earlier > 0, (found - worth) / np.maximum(earlier, 1), self._unit)
            precision /= 2
        elif self._area == "envelope":
            self._strips.running(np.maximum, precision, backwards=True)
        if not self._grid:  # the area: every copy is a step of recall
            total = self._total(precision * self._strips.steps(found))
            return [total / (of * self._unit) for of in asked]
        # the mean over the grid: a point reads the precision of the first to reach it
        points = len(self._grid) * self._unit
        steps = (self._strips.steps(self._reached(found, of, self._strips.owner)) for of in asked)
        used_up = [*[None] * (len(asked) - 1), precision]  # the last product takes its place
        return [self._total(np.multiply(precision, *of)) / points for of in zip(steps, used_up, strict=True)]

    def _ap_of_totals(self, found: NDArray[Any], asked: Sequence[Floats]) -> list[Floats]:
        """Where all predictions are true positives: precision is 1 as far as recall goes."""
        total = self._total(self._strips.steps(found))
        if not self._grid:
            return [total / of for of in asked]
        every = np.arange(len(self.classes))
        return [np.where(total > 0, self._reached(total, of, every), 0) / float(len(self._grid)) for of in asked]

    def _total(self, values: NDArray[Any]) -> Floats:
        """[O, R] the sum over each class's true positives, one after another."""
        total: Floats = self._sum @ values.reshape(self._strips.size, -1)
        return total

    def _reached(self, found: NDArray[Any], asked: Floats, owner: Ints) -> NDArray[Any]:
        """How many points of the grid the recall found / asked has reached; asked [O, R], found [..., S, R] of `owner`
        [S]."""
        points = np.array([point for point in self._grid if point > 0]).reshape(-1, 1, 1)
        if (asked == asked[:, :1]).all():
            asked = asked[:, :1]
        # the least to be found: the floor of point * asked, or one more where that, as a recall, falls short
        least = np.floor(points * asked)
        least += least / asked < points
        if found.dtype != np.float64:
            least = np.minimum(least, np.iinfo(found.dtype).max).astype(found.dtype)
        least = np.broadcast_to(least, (len(points), len(asked), found.shape[-1]))
        at_once = len(self._grid) - len(points)  # recall is 0 at least
        reached = np.full(found.shape, at_once, dtype=np.int8 if len(self._grid) < 128 else np.int16)
        reaches = np.empty(found.shape, dtype=bool)
        for of_point in least:
            np.greater_equal(found, of_point[owner], out=reaches)
            np.add(reached, reaches.view(np.int8), out=reached)
        return reached


def _ones(column: Ints, counts: Ints, columns: int, dtype: type[np.generic]) -> csr_array:
    """A sparse matrix of ones, `counts` [M] in each row."""
    from scipy.sparse import csr_array

    start = starts_of(counts)
    index = np.int32 if start[-1] < 1 << 31 else np.int64
    rows = np.ones(len(column), dtype=dtype), column.astype(index), start.astype(index)
    return csr_array(rows, shape=(len(counts), columns))
