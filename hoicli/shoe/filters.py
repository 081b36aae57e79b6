"""Which predictions count by their confidence, where a model says it.

The supplement's Algorithm 2 keeps predictions "with confidence score rank s >= tau", its Table 2 has tau = 0.5, and
neither says of what the rank is. RANKS has the readings that can be told apart, and docs/shoe.md what each of them does
to the pattern of Table 2: detectors miss 19 to 21 % of the ground truth there, and 36 to 39 % of their predictions. So
of the subset's 6,616 triplets some 5,300 are matched, by some 8,400 predictions: two an image.

Algorithm 1 has no filter; section 6.4 says that its predictions are filtered, too: `--filter-map`.
"""

from __future__ import annotations

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.io.messages import note
from hoicli.records.kit import Bools, Floats, Ints, run_starts
from hoicli.records.triplets import Triplets
from hoicli.shoe.settings import RANKS, ShoeOptions


def check_scores(options: ShoeOptions, predictions: Triplets) -> None:
    """Raises `UsageError` where predictions that are to be filtered have no scores, or have no such rank."""
    unscored = int(np.isnan(predictions.score).sum()) if options.filters else 0
    if unscored:
        raise UsageError(
            f"{arg('min_score')} and {arg('min_rank')} need scores, and {unscored:,} predictions have none: leave "
            "them out"
        )
    if options.rank_of == "best" and predictions.score.min(initial=0) < 0:
        raise UsageError(f"{arg('rank_of', 'best')}: needs scores of at least 0, and some are below; choose another")


def kept_by(options: ShoeOptions, predictions: Triplets) -> Bools:
    """[P] the predictions of at least that score and rank; a note says that a rank is a reading."""
    score = predictions.score
    keep = np.ones(len(score), dtype=bool)
    if options.min_score is not None:
        keep &= score >= options.min_score
    if options.min_rank is not None:
        keep &= _ranks_at_least(options.min_rank, options.rank_of, predictions)
        whom = "every metric" if options.filter_map else "mf1 and the miss rates"
        note(
            f"{arg('min_rank', options.min_rank)} is a reading: the paper does not say of what its confidence score "
            f"rank is; here {RANKS[options.rank_of].replace('-', ' ')}, which leaves {whom} "
            f"{int(keep.sum()):,} of {len(keep):,}"
        )
    return keep


def _ranks_at_least(least: float, rank_of: str, predictions: Triplets) -> Bools:
    """[P] whether each prediction has that rank, by one of RANKS."""
    score, image = predictions.score, predictions.image_of_hoi
    if rank_of == "best":
        best = np.zeros(len(predictions.image_ids))
        np.maximum.at(best, image, score)
        near: Bools = score >= least * best[image]
        return near
    of_class = predictions.verb * max(len(predictions.objects), 1) + predictions.label
    group = {"all": np.zeros(len(score), dtype=np.int64), "image": image, "class": of_class}[rank_of]
    within: Bools = share_not_above(group, score) >= least
    return within


def share_not_above(group: Ints, score: Floats) -> Floats:
    """[P] the share of each one's group that does not score higher than it, itself among them: 1 for the best."""
    order = np.lexsort((score, group))
    group, score = group[order], score[order]
    starts = run_starts(group)
    size = np.diff(starts, append=len(group))
    changes = np.flatnonzero(np.r_[True, (group[1:] != group[:-1]) | (score[1:] != score[:-1])])
    upto = np.repeat(np.append(changes[1:], len(group)), np.diff(changes, append=len(group)))  # past its equals
    share = np.empty(len(group))
    share[order] = (upto - np.repeat(starts, size)) / np.repeat(size, size)
    return share
