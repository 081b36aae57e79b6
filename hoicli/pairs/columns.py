"""What pair statistics keep of images, in any order: it merges with what another process kept of others."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from hoicli.arrays.kit import Growing
from hoicli.evaluation.tally import Tally
from hoicli.pairs.classification import Interactions
from hoicli.pairs.truth import TruthPairs


class PairColumns:
    """M images with P detected pairs and their triplets, under some settings.

    lines: image [M], rows of the ground truth, and pairs [M], how many each has. detected [P], an image's together and
    in their order: interacting and stated as in `PairBatch`, and what is `wanted`: ignored, whether the person that a
    pair belongs to has no annotated actions; score; own, the true pair it belongs to (`InteractingPairs`). matches: of
    a detected pair (row, ascending) and a true one (mate), with their overlap if `wanted`. kept [P], by the setting's
    number: whether it keeps the pair. interactions: of each setting, while all triplets have verb scores. tally: the
    triplets once, with their outcomes under each setting as if it were a protocol. unscored, scored: the triplets that
    interaction mAP ranks, without and with a verb score. pairs, triplets: how many there are.
    """

    def __init__(self, truth: TruthPairs, tally: Tally, settings: int, wanted: Collection[str]) -> None:
        def columns(**types: type[np.generic]) -> Growing:
            always = ("interacting", "stated", "row", "mate")
            return Growing(**{name: type_ for name, type_ in types.items() if name in always or name in wanted})

        self.lines = Growing(image=np.int32, pairs=np.int32)
        self.detected = columns(
            interacting=np.float64, stated=np.bool_, ignored=np.bool_, score=np.float64, own=np.int32
        )
        self.matches = columns(row=np.int64, mate=np.int32, overlap=np.float64)
        self.kept = Growing(**{str(number): np.bool_ for number in range(settings)})
        self.interactions = [Interactions(truth) for _ in range(settings)]
        self.tally = tally
        self.unscored = self.scored = 0
        self.pairs = self.triplets = 0

    def merge(self, other: PairColumns) -> None:
        """Add what was kept of other images under the same settings."""
        matches = {name: other.matches[name] for name in other.matches.names}
        self.matches.add(**{**matches, "row": matches["row"] + self.pairs})
        self.lines.merge(other.lines)
        self.detected.merge(other.detected)
        self.kept.merge(other.kept)
        for mine, theirs in zip(self.interactions, other.interactions, strict=True):
            mine.merge(theirs)
        self.tally.merge(other.tally)
        self.unscored += other.unscored
        self.scored += other.scored
        self.pairs += other.pairs
        self.triplets += other.triplets
