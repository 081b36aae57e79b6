"""All predictions of a model in few bytes, and their ranking, class by class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.records.compact import Column
from hoicli.records.ids import Texts
from hoicli.records.kit import Floats, Ints, Scalar, rank_by_id, starts_of

AT_ONCE = 1 << 20
"""Predictions that are sorted, or selected, at a time: all 64-bit numbers that this takes are of so many only."""


class Listed:
    """The predictions of images, added in any order: image, class and score of each; about 11 bytes a prediction."""

    def __init__(self) -> None:
        self.image_ids = Texts()
        self._count = Column(np.int8)
        self._interaction = Column(np.int16)
        self._score = Column(np.float64)

    def __len__(self) -> int:
        return len(self._score)

    def add(self, image_ids: Sequence[str], image: Ints, interaction: Ints, score: Floats) -> None:
        """Add a batch: image [T], ascending, indexes image_ids; interaction [T] the classes, -1 for none."""
        self.image_ids.extend(image_ids)
        self._count.add(np.bincount(image, minlength=len(image_ids)))
        self._interaction.add(interaction)
        self._score.add(score)

    def merge(self, other: Listed) -> None:
        """Add the predictions of other images."""
        self.image_ids.extend(other.image_ids)
        for column, more in ((self._count, other._count), (self._interaction, other._interaction)):
            column.add(more.rows())
        self._score.add(other._score.rows())

    @staticmethod
    def disjoint(parts: Sequence[Listed]) -> bool:
        """Whether no image is in two of the parts. By hashes: one collision in 10^7 of a million images says no."""
        hashes = np.fromiter(map(hash, chain.from_iterable(part.image_ids for part in parts)), dtype=np.int64)
        hashes.sort()
        return not bool((hashes[1:] == hashes[:-1]).any())

    @property
    def interaction(self) -> NDArray[np.signedinteger[Any]]:
        """[T] the class of each prediction, in as few bytes as hold them."""
        return np.asarray(self._interaction.rows())

    @property
    def score(self) -> Floats:
        """[T] the score of each."""
        return self._score.rows()

    @property
    def start(self) -> Ints:
        """[N + 1] where the predictions of each image begin."""
        return starts_of(np.asarray(self._count.rows()))

    @property
    def image(self) -> NDArray[np.int32]:
        """[T] the image of each prediction."""
        counts = np.asarray(self._count.rows())
        return np.repeat(np.arange(len(counts), dtype=np.int32), counts)

    def classless(self) -> int:
        """How many predictions have no class."""
        return int(np.count_nonzero(self.interaction < 0))

    def classless_best(self) -> tuple[int, int]:
        """(images whose best prediction, the first of equals, has no class; images with predictions)."""
        image = self.image
        order = np.lexsort((-self.score, image))
        best = order[np.flatnonzero(np.diff(image[order], prepend=-1))]
        return int((self.interaction[best] < 0).sum()), len(best)

    def ranked(
        self, classes: NDArray[np.signedinteger[Any]], many: int, by_score: NDArray[np.signedinteger[Any]] | None = None
    ) -> Ranked:
        """The predictions with a class, by class, then descending score, then image id, then place in the image.
        classes [T]: of each prediction, below `many`; -1 for none. by_score [T]: the order of all but for the classes,
        if it is known.

        Some classes are sorted at a time: a sort of all would hold several 64-bit numbers for every prediction."""
        bounds = starts_of(_counts(classes, many))
        order: Any = np.empty(bounds[-1], dtype=np.int32 if len(classes) < 1 << 31 else np.int64)
        ranked, score, ties = Ranked(order, bounds), self.score, Ties(self)
        listed = classes if by_score is None else taken(classes, by_score)
        for first, last in ranked.blocks():
            rows: Any = np.flatnonzero((listed >= first) & (listed < last))
            rows = ties.broken(rows[np.argsort(-score[rows])]) if by_score is None else by_score[rows]
            order[bounds[first] : bounds[last]] = rows[np.argsort(classes[rows], kind="stable")]
        return ranked


class Ties:
    """Ranks equal scores by image id, then by place in the image."""

    def __init__(self, listed: Listed) -> None:
        self._listed = listed
        self._rank: Ints | None = None
        self._start: Ints | None = None

    def broken(self, rows: Ints) -> Ints:
        """Predictions by descending score, with those of one score in their order."""
        score = self._listed.score[rows]
        same = score[1:] == score[:-1]
        if not same.any():
            return rows
        tied = np.flatnonzero(np.r_[False, same] | np.r_[same, False])
        run = np.cumsum(~np.r_[False, same])[tied]
        among = rows[tied]
        rows = rows.copy()
        rows[tied] = among[np.lexsort((among, self._rank_of(among), run))]
        return rows

    def _rank_of(self, rows: Ints) -> Ints:
        """[M] the place of each prediction's image among all images sorted by id."""
        if self._rank is None or self._start is None:
            self._rank, self._start = rank_by_id(self._listed.image_ids), self._listed.start
        return self._rank[np.searchsorted(self._start, rows, side="right") - 1]


@dataclass(frozen=True)
class Ranked:
    """Predictions in the order of a ranking: order [R] their rows; class c has order[bounds[c]:bounds[c + 1]]."""

    order: Ints
    bounds: Ints

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Runs of classes, (first, last + 1), with about AT_ONCE predictions each."""
        first, classes = 0, len(self.bounds) - 1
        while first < classes:
            last = int(np.searchsorted(self.bounds, self.bounds[first] + AT_ONCE, side="right")) - 1
            last = min(max(last, first + 1), classes)
            yield first, last
            first = last

    def each(self, column: NDArray[Scalar]) -> NDArray[Scalar]:
        """[R] a column of all predictions in this order."""
        return taken(column, self.order)


def taken(column: NDArray[Scalar], rows: NDArray[np.signedinteger[Any]]) -> NDArray[Scalar]:
    """column[rows], without a 64-bit copy of all the rows."""
    found = np.empty(len(rows), dtype=column.dtype)
    for start, end in pairwise([*range(0, len(rows), AT_ONCE), len(rows)]):
        found[start:end] = column[rows[start:end]]
    return found


def _counts(classes: NDArray[np.signedinteger[Any]], many: int) -> Ints:
    """[many] how many predictions each class has."""
    counts = np.zeros(many, dtype=np.int64)
    for start in range(0, len(classes), AT_ONCE):
        part = classes[start : start + AT_ONCE]
        counts += np.bincount(part[part >= 0], minlength=many)
    return counts
