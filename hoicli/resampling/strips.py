"""Rows of many lists, laid out so that running totals down every list are a few operations on large arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hoicli.records.kit import Ints, expanded, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Numbers = TypeVar("Numbers", bound="NDArray[Any]")

MOST_LAYERS = 8
"""Rows of a strip at most. A running total takes a step for each layer, and one for each strip of the longest list; on
average half of a list's last strip is filled up."""


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
