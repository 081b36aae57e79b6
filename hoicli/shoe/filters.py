"""Which predictions count by their confidence, where a model says it.

The supplement's Algorithm 2 keeps predictions "with confidence score rank s >= tau", its Table 2 has tau = 0.5, and
neither says of what the rank is. RANKS has the readings that can be told apart, and docs/shoe.md what each of them does
to the pattern of Table 2: detectors miss 19 to 21 % of the ground truth there, and 36 to 39 % of their predictions. So
of the subset's 6,616 triplets some 5,300 are matched, by some 8,400 predictions: two an image.

Algorithm 1 has no filter; section 6.4 says that its predictions are filtered, too: `everywhere`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.io.messages import note
from hoicli.records.kit import Bools, Floats, Ints, run_starts
from hoicli.records.triplets import Triplets
from hoicli.shoe.names import RANKS


@dataclass(frozen=True)
class ConfidenceFilter:
    """min_score: the lowest score. min_rank: the lowest rank, a share from 0 to 1, of what `rank_of` (a key of RANKS)
    says. everywhere: soft mAP and mAP are over the kept predictions, too, not mF1 and the miss rates alone. Raises
    `UsageError` that names the option of an impossible value."""

    min_score: float | None = None
    min_rank: float | None = None
    rank_of: str = "all"
    everywhere: bool = False

    def __post_init__(self) -> None:
        if self.min_rank is not None and not 0 <= self.min_rank <= 1:
            raise UsageError(f"{arg('min_rank', self.min_rank)}: give a share from 0 to 1")
        if self.rank_of not in RANKS:
            raise UsageError(f"{arg('rank_of', self.rank_of)}: choose from {', '.join(RANKS)}")
        if self.rank_of != "all" and self.min_rank is None:
            raise UsageError(f"{arg('rank_of', self.rank_of)}: says what {arg('min_rank')} is of; give that, too")
        if self.everywhere and not self.filters:
            raise UsageError(
                f"{arg('filter_map')}: filters by {arg('min_score')} or {arg('min_rank')}; give one of them"
            )

    @property
    def filters(self) -> bool:
        """Whether any prediction may be left out."""
        return self.min_score is not None or self.min_rank is not None

    @property
    def rank(self) -> str:
        """The rank as signatures have it: its number, of what, and that it is a reading."""
        return f"{self.min_rank:g}-{RANKS[self.rank_of]}(a-reading)"

    def signature(self) -> dict[str, str]:
        """What it adds to signatures."""
        signed = {} if self.min_score is None else {"minscore": f"{self.min_score:g}"}
        signed |= {} if self.min_rank is None else {"minrank": self.rank}
        return signed | ({"filtered": "soft_map+map+mf1"} if self.everywhere else {})

    def check(self, predictions: Triplets) -> None:
        """Raises `UsageError` where predictions that are to be filtered have no scores, or have no such rank."""
        unscored = int(np.isnan(predictions.score).sum()) if self.filters else 0
        if unscored:
            raise UsageError(
                f"{arg('min_score')} and {arg('min_rank')} need scores, and {unscored:,} predictions have none: leave "
                "them out"
            )
        if self.rank_of == "best" and predictions.score.min(initial=0) < 0:
            raise UsageError(
                f"{arg('rank_of', 'best')}: needs scores of at least 0, and some are below; choose another"
            )

    def kept(self, predictions: Triplets) -> Bools:
        """[P] the predictions of at least that score and rank; a note says that a rank is a reading."""
        score = predictions.score
        keep = np.ones(len(score), dtype=bool)
        if self.min_score is not None:
            keep &= score >= self.min_score
        if self.min_rank is not None:
            keep &= self._ranked(predictions, self.min_rank)
            whom = "every metric" if self.everywhere else "mf1 and the miss rates"
            note(
                f"{arg('min_rank', self.min_rank)} is a reading: the paper does not say of what its confidence score "
                "rank "
                f"is; here {RANKS[self.rank_of].replace('-', ' ')}, which leaves "
                f"{whom} {int(keep.sum()):,} of {len(keep):,}"
            )
        return keep

    def _ranked(self, predictions: Triplets, least: float) -> Bools:
        score = predictions.score
        if self.rank_of == "best":
            best = np.zeros(len(predictions.image_ids))
            np.maximum.at(best, predictions.image_of_hoi, score)
            near: Bools = score >= least * best[predictions.image_of_hoi]
            return near
        group = np.zeros(len(score), dtype=np.int64)
        if self.rank_of == "image":
            group = predictions.image_of_hoi
        elif self.rank_of == "class":
            group = predictions.verb * max(len(predictions.objects), 1) + predictions.label
        within: Bools = share_not_above(group, score) >= least
        return within


def share_not_above(group: Ints, score: Floats) -> Floats:
    """[P] the share of each one's group that does not score higher than it, itself among them: 1 for the best."""
    order = np.lexsort((score, group))
    group, score = group[order], score[order]
    starts = run_starts(group)
    size = np.diff(np.append(starts, len(group)))
    changes = np.flatnonzero(np.r_[True, (group[1:] != group[:-1]) | (score[1:] != score[:-1])])
    upto = np.repeat(np.append(changes[1:], len(group)), np.diff(np.append(changes, len(group))))  # past its equals
    share = np.empty(len(group))
    share[order] = (upto - np.repeat(starts, size)) / np.repeat(size, size)
    return share
