"""What can be resampled: numbers of classes that follow from how often each image is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from hoicli.records.kit import Bools, Floats, Ints

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Weights: TypeAlias = "NDArray[np.int32]"
"""[N, R] how often each of N images is there in each of R rounds."""


class Weighted(Protocol):
    """Numbers of C classes that follow from weights of images: average precisions (`ranked.RankedLists`), or what
    sums over images make (`sums.ImageSums`). true_positives: how much work a round is."""

    @property
    def images(self) -> int: ...

    @property
    def true_positives(self) -> int: ...

    @property
    def unannotated(self) -> Bools: ...

    def ap(self, weights: Weights) -> tuple[Floats, Ints]: ...

    def ap_of_sides(self, coins: Weights) -> tuple[tuple[Floats, Ints], tuple[Floats, Ints]]: ...

    def interleaved(self, other: Any) -> Weighted: ...
