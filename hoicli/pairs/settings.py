"""The settings of a sweep: which detected pairs and triplets each keeps, and the results that it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.pairs.reading import PairBatch
from hoicli.records.boxes import pair_nms
from hoicli.records.kit import Bools


@dataclass(frozen=True)
class Sweep:
    """One setting of a sweep: which detected pairs are kept.

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
    """[P] the pairs of a batch that a setting keeps. Raises `UsageError` for a detection threshold if records have no
    box scores.
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
    """[T] the triplets that are kept with the pairs of `keep`, independent of their verbs. Pair NMS keeps a triplet
    that belongs to no pair; a detection threshold checks only the person of a statement without object (V-COCO).
    """
    scenes = batch.scenes
    triplets = np.ones(len(scenes.score), dtype=bool)
    has_object = scenes.object >= 0
    if setting.det_threshold is not None:
        high = _confident(batch, setting.det_threshold)
        triplets = high[scenes.subject]
        triplets[has_object] &= high[scenes.object[has_object]]
    if setting.nms is not None:
        triplet, pair = batch.listed
        kept, gone = np.zeros((2, len(pair) + 1), dtype=bool)
        kept[pair[keep]] = True
        gone[pair[~keep]] = True
        triplets &= kept[triplet] | ~gone[triplet]
    return triplets


def _confident(batch: PairBatch, threshold: float) -> Bools:
    """[B] the boxes with a detection score of at least the threshold."""
    if batch.box_scores is None:
        raise UsageError("a detection threshold needs `scores` in every record")
    return batch.box_scores >= threshold


@dataclass(frozen=True)
class PairResults:
    """One subset under one setting. Fractions in [0, 1]; None if the denominator is 0. images of the subset, pairs
    detected in them, all_pairs in those of full, finders the pairs that find one of the truth_pairs annotated; recall;
    neg_ap over the `negatives` pairs that match no true pair; inter_map, inter_recall (mean maximal recall) over
    `verbs`; interactiveness_ap over the `interacting` true pairs of different coordinates.
    """

    subset: str
    images: int
    pairs: int
    all_pairs: int
    truth_pairs: int
    finders: int
    recall: float | None
    neg_ap: float | None
    negatives: int
    inter_map: float | None
    inter_recall: float | None
    verbs: int
    interactiveness_ap: float | None = None
    interacting: int = 0

    @property
    def precision(self) -> float | None:
        """The share of finders among all detected pairs: the precisions of groups add up, as those of the paper's
        Table 4 do."""
        return self.finders / self.all_pairs if self.all_pairs else None

    @property
    def own_precision(self) -> float | None:
        """The share of finders among the pairs of the subset's own images."""
        return self.finders / self.pairs if self.pairs else None

    @property
    def pairs_per_image(self) -> float | None:
        """Mean detected pairs an image."""
        return self.pairs / self.images if self.images else None

    @property
    def negative_share(self) -> float | None:
        """The share of detected pairs that match no true pair: the negative AP of a random ranking."""
        return self.negatives / self.pairs if self.pairs else None
