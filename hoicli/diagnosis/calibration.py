"""How far scores are probabilities: of the predictions that score 0.7, are 70 % right?

A prediction is right if it is a true positive of the protocol. So a duplicate is wrong, and the second prediction of
one pair lowers the calibration as it lowers precision. The bins are of equal width and closed on the right, the first
on the left as well; ECE is the mean over predictions of the distance between the share of right ones in a bin and its
mean score (Naeini et al. 2015; Guo et al. 2017, with 15 bins).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hoicli.records.kit import Bools, Floats, Ints

BINS = 15
"""Guo et al. 2017, On Calibration of Modern Neural Networks, section 2 and Table 1."""
NO_PROBABILITIES = "there are scores below 0 or above 1, which are no probabilities"


@dataclass(frozen=True)
class Calibration:
    """count, right, confidence [B]: predictions of each bin, the share of right ones and their mean score, NaN for an
    empty bin."""

    count: Ints
    right: Floats
    confidence: Floats

    @property
    def edges(self) -> list[float]:
        """[B + 1] where the bins begin and end."""
        return [place / len(self.count) for place in range(len(self.count) + 1)]

    @property
    def error(self) -> float | None:
        """The expected calibration error, in [0, 1]; None without predictions."""
        total = int(self.count.sum())
        some = self.count > 0
        gaps = np.abs(self.right[some] - self.confidence[some])
        return float((self.count[some] * gaps).sum() / total) if total else None

    def mean(self, values: Floats) -> float | None:
        """The mean over predictions of `right` or `confidence`; None without predictions."""
        some = self.count > 0
        total = int(self.count.sum())
        return float((self.count[some] * values[some]).sum() / total) if total else None


def calibration(score: Floats, hit: Bools, bins: int = BINS) -> Calibration | None:
    """The calibration of scores [T]; None if one is below 0 or above 1. The sums follow the order of the arrays."""
    if len(score) and (score.min() < 0 or score.max() > 1):
        return None
    edges = np.arange(bins + 1) / bins
    bin_ = np.maximum(np.searchsorted(edges, score, side="left") - 1, 0)
    count = np.bincount(bin_, minlength=bins)
    sums = (np.bincount(bin_, weights=values, minlength=bins) for values in (hit, score))
    right, confidence = (np.divide(part, count, out=np.full(bins, np.nan), where=count > 0) for part in sums)
    return Calibration(count, right, confidence)
