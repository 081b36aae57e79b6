"""Which of the detected pairs, and of their triplets, there are under each setting of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hoicli.arrays.boxes import pair_nms
from hoicli.arrays.kit import Bools, find
from hoicli.errors import UsageError
from hoicli.evaluation.filters import Filters
from hoicli.pairs.reading import PairBatch, pair_key


@dataclass(frozen=True)
class Sweep:
    """One setting of a sweep: which detected pairs there are.

    nms: pair NMS drops a pair whose IoU_subject ** alpha * IoU_object ** beta with a better one of its object label
    exceeds this. det_threshold: a pair needs both boxes' scores at least this high. None: off.
    """

    nms: float | None = None
    det_threshold: float | None = None
    alpha: float = 1.0
    beta: float = 0.5

    def signature(self) -> dict[str, str]:
        """The settings in force, for signatures."""
        settings = {}
        if self.det_threshold is not None:
            settings["det"] = f"{self.det_threshold:g}"
        if self.nms is not None:
            settings["pairnms"] = f"{self.nms:g}/{self.alpha:g}/{self.beta:g}"
        return settings


def sweeps(
    nms: Sequence[float], det_thresholds: Sequence[float], *, alpha: float = 1.0, beta: float = 0.5
) -> list[Sweep]:
    """All pairs first, then each NMS threshold, then each detection threshold: one setting changes at a time (Table 3).

    Raises `UsageError` for values that mean nothing.
    """
    for value in (*nms, None):  # the exponents are wrong without a threshold too
        Filters(nms=value, nms_alpha=alpha, nms_beta=beta)
    rows = [Sweep(), *(Sweep(nms=value, alpha=alpha, beta=beta) for value in nms)]
    rows += [Sweep(det_threshold=value) for value in det_thresholds]
    return list(dict.fromkeys(rows))


def surviving_pairs(batch: PairBatch, setting: Sweep) -> Bools:
    """[P] the pairs of a batch that a setting leaves.

    Raises `UsageError` where a detection threshold meets records without box scores.
    """
    pairs = batch.pairs
    keep = np.ones(len(pairs.score), dtype=bool)
    if setting.det_threshold is not None:
        high = _confident(batch, setting.det_threshold)
        keep &= high[pairs.subject] & high[pairs.object]
    if setting.nms is not None:
        keep = pair_nms(pairs, keep, threshold=setting.nms, alpha=setting.alpha, beta=setting.beta)
    return keep


def surviving_triplets(batch: PairBatch, keep: Bools, setting: Sweep) -> Bools:
    """[T] the triplets that go on when only the pairs of `keep` do, whatever their verbs.

    Pair NMS leaves a triplet that belongs to no pair alone; so does a detection threshold a statement without object,
    but for its person (V-COCO).
    """
    scenes, pairs = batch.scenes, batch.pairs
    triplets = np.ones(len(scenes.score), dtype=bool)
    has_object = scenes.object >= 0
    if setting.det_threshold is not None:
        high = _confident(batch, setting.det_threshold)
        triplets = high[scenes.subject]
        triplets[has_object] &= high[scenes.object[has_object]]
    if setting.nms is not None:
        keys = pair_key(scenes, pairs.subject, pairs.object)
        wanted = np.where(has_object, pair_key(scenes, scenes.subject, scenes.object), -1)
        kept, gone = (np.unique(keys[rows]) for rows in (keep, ~keep))
        triplets &= find(kept, wanted)[1] | ~find(gone, wanted)[1]
    return triplets


def _confident(batch: PairBatch, threshold: float) -> Bools:
    """[B] the boxes with a detection score of at least the threshold."""
    if batch.box_scores is None:
        raise UsageError("a detection threshold needs `scores` in every record")
    return batch.box_scores >= threshold
