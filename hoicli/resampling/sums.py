"""Numbers that are made of sums over images (F1 of counts, a rate), for images that have weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints
from hoicli.resampling.draws import Weights
from hoicli.resampling.rounds import Observed

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class ImageSums:
    """A number of each of C classes: `of` takes the sums over images of each of `parts` [C, N], [C, R] each, and
    returns [C, R]. counted [C, N]: the items that the number is over; a class without any in a round has no number
    there."""

    parts: Sequence[csr_array]
    counted: csr_array
    of: Callable[..., Floats]

    @property
    def images(self) -> int:
        """Return N, the number of images."""
        return int(self.counted.shape[1])

    @property
    def true_positives(self) -> int:
        """Return how much work a round takes: the entries of all parts."""
        return sum(int(part.nnz) for part in self.parts)

    def ap(self, weights: Weights) -> tuple[Floats, Ints]:
        """Return (the number [C, R], what it is over [C, R]) when image i counts weights[i, r] times in round r."""
        sums = [np.asarray(part @ weights, dtype=np.float64) for part in self.parts]
        return self.of(*sums), np.asarray(self.counted @ weights, dtype=np.int64)

    @property
    def unannotated(self) -> Bools:
        """Return [C]: whether a class has no items at all that its number is over."""
        without: Bools = np.asarray(self.counted.sum(axis=1)) == 0
        return without

    @property
    def observed(self) -> Observed:
        """Return the numbers of the test set itself."""
        values, _ = self.ap(np.ones((self.images, 1), dtype=np.int32))
        return Observed(values[:, 0], np.asarray((self.counted > 0).sum(axis=1)))

    def ap_of_sides(self, coins: Weights) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]:
        """Return `ap` with the weights `coins` [N, R], which are 0 or 1, and `ap` with the weights 1 - coins."""
        return self.ap(coins), self.ap(1 - coins)

    def interleave(self, other: ImageSums) -> ImageSums:
        """Return this model's images and then the other's, N + i for i, as `RankedLists.interleave` has them."""
        from scipy.sparse import hstack

        def beside(own: csr_array, others: csr_array) -> Any:
            return hstack([own, others], format="csr")

        parts = [beside(own_sums, others) for own_sums, others in zip(self.parts, other.parts, strict=True)]
        return ImageSums(parts, beside(self.counted, other.counted), self.of)


def sum_by_image(class_: Ints, image: Ints, values: Ints, shape: tuple[int, int]) -> csr_array:
    """Return a sparse [C, N]: the sums of values [M], each of a class and an image. Values of class -1 are left out."""
    from scipy.sparse import coo_array

    used = class_ >= 0
    matrix: Any = coo_array((values[used].astype(np.int64), (class_[used], image[used])), shape=shape)
    return matrix.tocsr()


def rate(part: Floats, whole: Floats) -> Floats:
    """Return part / whole, 0 where the whole is 0."""
    share: Floats = np.divide(part, whole, out=np.zeros(whole.shape), where=whole > 0)
    return share
