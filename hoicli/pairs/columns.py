"""What pair statistics keep of images, in any order: it merges with what another process kept of others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from hoicli.evaluation.coverage import Inverted
from hoicli.evaluation.tally import Tally
from hoicli.pairs.classification import Interactions
from hoicli.pairs.truth import TruthPairs
from hoicli.records.kit import Bools, Floats, Growing


@dataclass
class Sure:
    """How many pairs a metric ranks, how many of them state their interactiveness, and of how many it is unknown how
    surely they interact."""

    pairs: int = 0
    stated: int = 0
    unknown: int = 0

    def add(self, interacting: Floats, stated: Bools) -> None:
        """Add pairs: both as in `PairBatch`."""
        self.merge(Sure(len(stated), int(stated.sum()), int(np.isnan(interacting).sum())))

    def merge(self, other: Sure) -> None:
        """Add those of other images."""
        self.pairs += other.pairs
        self.stated += other.stated
        self.unknown += other.unknown


class PairColumns:
    """M images with P detected pairs and their triplets, under some settings.

    lines: image [M], rows of the ground truth, and pairs [M], how many each has; an image's pairs are together and in
    their order. interacting [P] as in `PairBatch`, as long as negative AP can rank by it. detected [P], what is
    `wanted`: ignored, whether the person that a pair belongs to has no annotated actions; score; own, the true pair
    that it belongs to (`InteractingPairs`). sure: by metric, of the pairs that it ranks. matches: of a detected pair
    (row, ascending) and a true one (mate), with their overlap if `wanted`. kept [P], by the setting's number: whether
    it keeps the pair. interactions: of each setting, while all triplets have verb scores. tally: the triplets once,
    with their outcomes under each setting as if it were a protocol. unscored, scored: the triplets that interaction mAP
    ranks, without and with a verb score. pairs, triplets: how many there are. inverted: of the images' boxes.
    """

    def __init__(self, truth: TruthPairs, tally: Tally, settings: int, wanted: Collection[str]) -> None:
        def columns(**types: type[np.generic]) -> Growing:
            always = ("row", "mate")
            return Growing(**{name: type_ for name, type_ in types.items() if name in always or name in wanted})

        self.lines = Growing(image=np.int32, pairs=np.int32)
        self.interacting = Growing(interacting=np.float64)
        self.detected = columns(ignored=np.bool_, score=np.float64, own=np.int32)
        self.sure = {"neg_ap": Sure(), "interactiveness_ap": Sure()}
        self.matches = columns(row=np.int64, mate=np.int32, overlap=np.float64)
        self.kept = Growing(**{str(number): np.bool_ for number in range(settings)})
        self.interactions = [Interactions(truth) for _ in range(settings)]
        self.tally = tally
        self.inverted = Inverted()
        self.unscored = self.scored = 0
        self.pairs = self.triplets = 0

    def merge(self, other: PairColumns) -> None:
        """Add what was kept of other images under the same settings."""
        matches = {name: other.matches[name] for name in other.matches.names}
        self.matches.add(**{**matches, "row": matches["row"] + self.pairs})
        self.lines.merge(other.lines)
        self.interacting.merge(other.interacting)
        self.detected.merge(other.detected)
        for metric, sure in self.sure.items():
            sure.merge(other.sure[metric])
        self.kept.merge(other.kept)
        for mine, theirs in zip(self.interactions, other.interactions, strict=True):
            mine.merge(theirs)
        self.tally.merge(other.tally)
        self.inverted.merge(other.inverted)
        self.unscored += other.unscored
        self.scored += other.scored
        self.pairs += other.pairs
        self.triplets += other.triplets
