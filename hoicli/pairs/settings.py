"""The settings of a sweep: which detected pairs and triplets each keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.filters import PairNms
from hoicli.pairs.reading import PairBatch
from hoicli.records.boxes import pair_nms
from hoicli.records.kit import Bools


@dataclass(frozen=True)
class Sweep:
    """One setting of a sweep: which detected pairs are kept.

    nms: pair NMS, as `PairNms`, drops a pair that overlaps a better one of its object label by more than this.
    det_threshold: a pair needs both boxes' scores at least this high. None: off.
    """

    nms: float | None = None
    det_threshold: float | None = None

    def signature(self) -> dict[str, str]:
        """The settings in force, for signatures."""
        settings = {}
        if self.det_threshold is not None:
            settings["det"] = f"{self.det_threshold:g}"
        if self.nms is not None:
            settings["pairnms"] = str(PairNms(self.nms))
        return settings


def sweeps(nms: Sequence[float], det_thresholds: Sequence[float]) -> list[Sweep]:
    """All pairs first, then each NMS threshold, then each detection threshold: one setting changes at a time (Table 3).

    Raises `UsageError` for values out of range.
    """
    for value in nms:
        if not 0 <= value <= 1:
            raise UsageError(f"{arg('nms_sweep', value)}: the threshold is an overlap, between 0 and 1")
    rows = [Sweep(), *(Sweep(nms=value) for value in nms), *(Sweep(det_threshold=value) for value in det_thresholds)]
    return list(dict.fromkeys(rows))


def surviving_pairs(batch: PairBatch, setting: Sweep) -> Bools:
    """[P] the pairs of a batch that a setting keeps."""
    pairs = batch.pairs
    keep = np.ones(len(pairs.score), dtype=bool)
    if setting.det_threshold is not None:
        high = batch.box_scores >= setting.det_threshold
        keep &= high[pairs.subject] & high[pairs.object]
    if setting.nms is not None:
        keep = pair_nms(pairs, keep, **PairNms(setting.nms)._asdict())
    return keep


def surviving_triplets(batch: PairBatch, keep: Bools, setting: Sweep) -> Bools:
    """[T] the triplets that are kept with the pairs of `keep`, independent of their verbs. Pair NMS keeps a triplet
    that belongs to no pair; a detection threshold checks only the person of a statement without object (V-COCO).
    """
    scenes = batch.scenes
    triplets = np.ones(len(scenes.score), dtype=bool)
    has_object = scenes.object >= 0
    if setting.det_threshold is not None:
        high = batch.box_scores >= setting.det_threshold
        triplets = high[scenes.subject]
        triplets[has_object] &= high[scenes.object[has_object]]
    if setting.nms is not None:
        triplet, pair = batch.listed
        kept, gone = np.zeros((2, len(pair) + 1), dtype=bool)
        kept[pair[keep]] = True
        gone[pair[~keep]] = True
        triplets &= kept[triplet] | ~gone[triplet]
    return triplets
