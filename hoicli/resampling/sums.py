"""Metrics that are computed from sums over images (F1 of counts, a rate), for resampled images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints
from hoicli.resampling.draws import Weights
from hoicli.resampling.lists import Observed

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class ImageSums:
    """A metric of each of C classes that is computed from sums over N images, such as counts of true positives.

    parts: [C, N] each; what is summed over the images. of: a function that takes the sums of each part, [C, R] for R
    rounds, and returns the metric [C, R]. counted: [C, N] how many items the metric is over, such as ground truth; a
    class without any in a round has no value there."""

    parts: Sequence[csr_array]
    counted: csr_array
    of: Callable[..., Floats]

    @property
    def images(self) -> int:
        """Return N, the number of images."""
        return int(self.counted.shape[1])

    @property
    def true_positives(self) -> int:
        """Return how much work a round takes: the entries of all parts (in `RankedLists` it is the true positives)."""
        return sum(int(part.nnz) for part in self.parts)

    def ap(self, weights: Weights) -> tuple[Floats, Ints]:
        """Return ([C, R] the metric; [C, R] how many items it is over) when image i counts weights[i, r] times in round
        r. The name is that of `RankedLists.ap`, which it stands in for."""
        sums = [np.asarray(part @ weights, dtype=np.float64) for part in self.parts]
        return self.of(*sums), np.asarray(self.counted @ weights, dtype=np.int64)

    @property
    def unannotated(self) -> Bools:
        """Return [C] a mask of the classes without any item that the metric is over."""
        without: Bools = np.asarray(self.counted.sum(axis=1)) == 0
        return without

    @property
    def observed(self) -> Observed:
        """Return the metric on the test set itself, without resampling."""
        values, _ = self.ap(np.ones((self.images, 1), dtype=np.int32))
        return Observed(values[:, 0], np.asarray((self.counted > 0).sum(axis=1)))

    def ap_of_sides(self, coins: Weights) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
        """Return the results of `ap` for two mixed systems: with the weights `coins` [N, R] (0 or 1) and 1 - coins."""
        return self.ap(coins), self.ap(1 - coins)

    def join_outputs(self, other: ImageSums) -> ImageSums:
        """Return the sums of two models side by side: a column for each of this model's N images, then one for each of
        the other's, which are numbered N + i. The weights of a round then choose whose output on each image counts."""
        from scipy.sparse import hstack

        pairs = [*zip(self.parts, other.parts, strict=True), (self.counted, other.counted)]
        joined: list[Any] = [hstack(pair, format="csr") for pair in pairs]
        return ImageSums(joined[:-1], joined[-1], self.of)


def sum_by_image(class_: Ints, image: Ints, values: Ints, shape: tuple[int, int]) -> csr_array:
    """Return a sparse matrix [C, N] of the sums of values [M] by class and image. class_, image: [M] the class and the
    image of each value; values of class -1 are left out. shape: (C, N)."""
    from scipy.sparse import coo_array

    used = class_ >= 0
    matrix: Any = coo_array((values[used].astype(np.int64), (class_[used], image[used])), shape=shape)
    return matrix.tocsr()


def rate(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, value by value; 0 where the whole is 0."""
    share: Floats = np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)
    return share
