"""What pair statistics keep of images, in any order: it merges with what another process kept of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np

from hoicli.evaluation.coverage import Inverted
from hoicli.evaluation.tally import Tally
from hoicli.pairs.classification import Interactions
from hoicli.pairs.truth import TruthPairs
from hoicli.records.kit import Bools, Floats, Growing


class PairColumns:
    """M images with P detected pairs and their triplets, under some settings.

    lines: image [M], rows of the ground truth, and pairs [M], how many each has; an image's pairs are together and in
    their order. interacting [P] as in `PairBatch`, as long as negative AP can rank by it. detected [P], what is
    `wanted`: ignored, whether the person that a pair belongs to has no annotated actions; score; own, the true pair
    that it belongs to (`InteractingPairs`). matches: of a detected pair (row, ascending) and a true one (mate), with
    their overlap if `wanted`. kept [P], by the setting's number: whether it keeps the pair. interactions: of each
    setting, while all triplets have verb scores. tally: the triplets once, with their outcomes under each setting as if
    it were a protocol. inverted: of the images' boxes.
    numbers: of all pairs and triplets; of the triplets that interaction mAP ranks, scored and unscored, those with and
    without a verb score; of the pairs that `metric` ranks, `metric ranked`, how many there are, `metric stated`, those
    that state their interactiveness, and `metric unknown`, those of which it is unknown how surely they interact.
    """

    def __init__(self, truth: TruthPairs, tally: Tally, settings: int, wanted: Collection[str]) -> None:
        def columns(**types: type[np.generic]) -> Growing:
            always = ("row", "mate")
            return Growing(**{name: type_ for name, type_ in types.items() if name in always or name in wanted})

        self.lines = Growing(image=np.int32, pairs=np.int32)
        self.interacting = Growing(interacting=np.float64)
        self.detected = columns(ignored=np.bool_, score=np.float64, own=np.int32)
        self.matches = columns(row=np.int64, mate=np.int32, overlap=np.float64)
        self.kept = Growing(**{str(number): np.bool_ for number in range(settings)})
        self.interactions = [Interactions(truth) for _ in range(settings)]
        self.tally = tally
        self.inverted = Inverted()
        self.numbers: Counter[str] = Counter()

    def rank(self, metric: str, interacting: Floats, stated: Bools) -> None:
        """Count pairs that a metric ranks: both as in `PairBatch`."""
        self.numbers[f"{metric} ranked"] += len(stated)
        self.numbers[f"{metric} stated"] += int(stated.sum())
        self.numbers[f"{metric} unknown"] += int(np.isnan(interacting).sum())

    def merge(self, other: PairColumns) -> None:
        """Add what was kept of other images under the same settings."""
        matches = {name: other.matches[name] for name in other.matches.names}
        self.matches.add(**{**matches, "row": matches["row"] + self.numbers["pairs"]})
        for name in ("lines", "interacting", "detected", "kept", "tally", "inverted"):
            getattr(self, name).merge(getattr(other, name))
        for mine, theirs in zip(self.interactions, other.interactions, strict=True):
            mine.merge(theirs)
        self.numbers += other.numbers
