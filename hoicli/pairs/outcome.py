"""What pair statistics find in one subset, under one setting of a sweep."""

from __future__ import annotations

from dataclasses import dataclass


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
