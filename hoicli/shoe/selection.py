"""Which predictions count by their confidence, and which images are of one human-object pair.

**Confidence.** The supplement's Algorithm 2 keeps predictions "with confidence score rank s >= tau", its Table 2 has
tau = 0.5, and neither says of what the rank is. RANKS has the readings that can be told apart, docs/shoe.md what each
of them does to the pattern of Table 2. Section 6.4 filters Algorithm 1's predictions, too: `--filter-map`.

**One pair.** The supplement does not define the "single HOI" subset of its Table 2 and Figure 6. Figure 6 shows images
of it with three interactions of one pair (hold, ride and sit on a motorcycle), so it is not one class per image;
HICO-DET's annotators drew a pair's boxes again for each of its interactions, so it is not one box per person either.
The definition below gives 4,054 images of HICO-DET's test set with exactly the 575 classes of Table 2's caption,
including no_interaction. Other definitions give other numbers: overlaps above 0.75 580 classes, above 0.85 562, boxes
that all overlap each other 571, no boxes taken as one 424. (Boxes that overlap the first one drawn have 575 classes
too, over 3,899 images, but depend on the order of boxes.)
"""

from __future__ import annotations

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.pairing import counterparts
from hoicli.io.messages import note
from hoicli.records.boxes import iou
from hoicli.records.columns import NO_BOX
from hoicli.records.kit import Bools, Floats, Ints, groups, run_starts
from hoicli.records.triplets import Triplets
from hoicli.shoe.labels import normalised
from hoicli.shoe.settings import RANKS, ShoeOptions

ONE_BOX_IOU = 0.8
"""Two boxes of one label and image that overlap by more than this show one object or person."""

READING = f"one-pair,boxes-as-one-above-iou-{ONE_BOX_IOU:g}"
"""How a signature names the subset."""


def check_scores(options: ShoeOptions, predictions: Triplets) -> None:
    """Raises `UsageError` where predictions that are to be filtered have no scores, or have no such rank."""
    unscored = int(np.isnan(predictions.score).sum()) if options.filters else 0
    if unscored:
        problem = f"need scores, and {unscored:,} predictions have none: leave them out"
        raise UsageError(f"{arg('min_score')} and {arg('min_rank')} {problem}")
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
        whose = RANKS[options.rank_of].replace("-", " ")
        told = f"is our reading: the paper does not define its confidence score rank; here {whose}"
        note(f"{arg('min_rank', options.min_rank)} {told}: {int(keep.sum()):,} predictions of {len(keep):,} are left")
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


def single_pair_images(truth: Triplets) -> Bools:
    """[N] the images whose triplets are all of one pair, a person with an object (or without any).

    Boxes of an image that have the same label and an IoU above ONE_BOX_IOU (x2, y2 as far edges, as everywhere in SHOE)
    count as one, and so do two boxes that a chain of such overlaps connects, so the order of boxes does not matter. A
    box that no triplet uses connects nothing."""
    instance = np.append(_instances(truth), -1)  # the last, for no object
    pair = instance[truth.subject] * (len(instance) + 1) + instance[truth.object] + 1
    _, first = np.unique(pair, return_index=True)
    single: Bools = np.bincount(truth.image_of_hoi[first], minlength=len(truth.image_ids)) == 1
    return single


def _instances(truth: Triplets) -> Ints:
    """[B] a number for each box, equal for boxes that count as one."""
    boxes = np.union1d(truth.subject, truth.object[truth.object != NO_BOX])
    image = truth.image_of_box[boxes]
    alike = np.unique(np.array([normalised(label) for label in truth.labels], dtype=object), return_inverse=True)[1]
    group = image * (len(alike) + 1) + alike[truth.box_label[boxes]]
    order = np.argsort(group, kind="stable")
    boxes, group = boxes[order], group[order]
    # Each box beside those of its image and label that come after it.
    place = np.arange(len(boxes))
    count = np.searchsorted(group, group, side="right") - place - 1
    pairs = []
    for run, after in counterparts(place + 1, count):
        one, other = boxes[run], boxes[after]
        close = iou(truth.boxes[one].T, truth.boxes[other].T, inclusive=False) > ONE_BOX_IOU
        pairs.append((one[close], other[close]))
    one, other = map(np.concatenate, zip(*pairs, strict=True))
    return groups(one, other, len(truth.boxes))
