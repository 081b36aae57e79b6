"""What pair statistics keep of images, in any order: it merges with what another process kept of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from hoicli.arrays.kit import Growing
from hoicli.evaluation.tally import Tally
from hoicli.pairs.classification import Interactions
from hoicli.pairs.truth import TruthPairs


class PairColumns:
    """M images with P detected pairs and their triplets, under some settings.

    lines: image [M], rows of the ground truth, and pairs [M], how many each has. detected [P], an image's together and
    in their order: interacting and stated as in `PairBatch`, and ignored, whether the person that a pair belongs to has
    no annotated actions; score if `ranked`, and with `mates` the true pair by boxes alone (`InteractingPairs`). kept
    [P], by the setting's number: whether it keeps the pair. matches: of a detected pair (row, ascending) and a true one
    (mate); their overlap if `ranked`. interactions: of each setting, while all triplets have verb scores. tally: the
    triplets once, with their outcomes under each setting as if it were a protocol. unscored, scored: triplets that
    interaction mAP ranks, without and with a verb score. pairs, triplets: how many there are.
    """

    def __init__(self, truth: TruthPairs, tally: Tally, settings: int, *, ranked: bool, mates: bool) -> None:
        self.lines = Growing(image=np.int32, pairs=np.int32)
        score: dict[str, Any] = {"score": np.float64} if ranked else {}
        overlap: dict[str, Any] = {"overlap": np.float64} if ranked else {}
        mate: dict[str, Any] = {"mate": np.int32} if mates else {}
        self.detected = Growing(interacting=np.float64, stated=np.bool_, ignored=np.bool_, **score, **mate)
        self.kept = Growing(**{str(number): np.bool_ for number in range(settings)})
        self.matches = Growing(row=np.int64, mate=np.int32, **overlap)
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
