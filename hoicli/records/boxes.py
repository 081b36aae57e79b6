"""Boxes: the intersection over union under each published convention, and pair NMS.

Boxes are [x1, y1, x2, y2] rows in pixels. What a protocol adds to the coordinates before comparing is in its row of
`hoicli.evaluation.protocols`, not here.
"""

from __future__ import annotations

import numpy as np

from hoicli.records.columns import Images
from hoicli.records.kit import Bools, Floats, Ints, ranks_in_groups, run_starts
from hoicli.records.scenes import Scenes

SMALL_GROUP = 512
"""Triplets of one image and class up to which a group is suppressed together with others."""


MOST_INVERTED = 0.01
"""Ours: no detector we know of gives a box a negative side (their sizes are sigmoids, exponentials or clipped corners;
sides of 0 do occur, and are not meant), so more such boxes are another convention, of ground truth or predictions."""


def find_inverted(boxes: Floats) -> Bools:
    """Return [B] a mask of the boxes whose right or lower edge comes before the left or upper one."""
    x1, y1, x2, y2 = boxes.T
    ends_first: Bools = (x2 < x1) | (y2 < y1)
    return ends_first


def marks(images: Images) -> Floats:
    """Return [T] a number that stands for the corners of each triplet's boxes: the same for the same corners, seldom
    for others."""
    with np.errstate(over="ignore", invalid="ignore"):
        # irrational weights, so that different corners seldom have one sum; the last is that of no object
        box_number = np.append(images.boxes @ np.sqrt([2.0, 3.0, 5.0, 7.0]), 0.0)
        return box_number[images.subject] + np.pi * box_number[images.object]


def find_repeated(images: Images, *columns: Ints | Bools) -> Bools:
    """Return [T] a mask of the triplets that repeat an earlier one of their image. Two triplets are the same if their
    boxes have the same edges, in one box of the record or in two, and all `columns` [T] have the same values."""
    is_repeated = np.zeros(len(images.subject), dtype=bool)
    every_column: tuple[Ints | Bools, ...] = (images.image_of_hoi, images.object < 0, *columns)
    with np.errstate(over="ignore", invalid="ignore"):
        mark = marks(images)
        for number, column in enumerate(every_column):
            mark = mark + np.sqrt(11.0 + number) * column
    order = np.argsort(mark, kind="stable")
    may_repeat = ~np.isfinite(mark[order])
    same_mark = mark[order[1:]] == mark[order[:-1]]  # equal triplets have equal marks, others seldom
    may_repeat[1:] |= same_mark
    may_repeat[:-1] |= same_mark
    rows = np.sort(order[may_repeat])
    if len(rows):
        boxes = np.append(images.boxes, np.zeros((1, 4)), axis=0) + 0.0  # -0.0 is 0.0
        corners_of_both = (boxes[images.subject[rows]], boxes[images.object[rows]])
        exact_rows = np.column_stack([*corners_of_both, *(column[rows] for column in every_column)])
        order = np.lexsort(exact_rows.T)
        is_repeated[rows[order[1:][(exact_rows[order[1:]] == exact_rows[order[:-1]]).all(axis=1)]]] = True
    return is_repeated


def iou(
    first: Floats, second: Floats, *, inclusive: bool, touching_overlap: bool = True, inclusive_overlap: bool = False
) -> Floats:
    """Return [M] the intersection over union of box m of `first` and box m of `second`, in [0, 1].

    first, second: [4, M] boxes, whose rows are x1, y1, x2, y2; this way all passes are over contiguous memory
    (`take_columns`). inclusive: whether x2 is the last pixel, so that a box is x2 - x1 + 1 wide (PASCAL VOC; ho-rcnn
    VOCevaldet_bboxpair.m, QPIC hico_eval.py); otherwise x2 is the far edge (torchvision box_iou; INP-CC
    hico_evaluator.py). touching_overlap: if False, boxes whose edges merely meet have no overlap even where the shared
    pixel column would count (QPIC returns 0 when left >= right, before its + 1). inclusive_overlap: whether the
    intersection counts the last pixel although the areas do not, so that a value may exceed 1, and be negative for
    boxes of some pixels (Maelic/SGG-Benchmark box_ops.py).

    A box with no area overlaps nothing."""
    edge = 1.0 if inclusive or inclusive_overlap else 0.0
    own_edge = 1.0 if inclusive else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.minimum(first[2], second[2]) - np.maximum(first[0], second[0])
        height = np.minimum(first[3], second[3]) - np.maximum(first[1], second[1])
        overlaps = (width > 0) & (height > 0) if not touching_overlap else (width + edge > 0) & (height + edge > 0)
        intersection = (width + edge) * (height + edge)
        union = _area(first, own_edge) + _area(second, own_edge) - intersection
        is_valid = np.isfinite(union) if inclusive_overlap else (union > 0) & (union < np.inf)
        overlaps &= is_valid  # a box without area, or with one that no double holds, overlaps nothing
    with np.errstate(divide="ignore"):  # a union of 0 is only met by inclusive_overlap
        overlap: Floats = np.divide(intersection, union, out=np.zeros(len(width)), where=overlaps)
    return overlap


def take_columns(boxes: Floats, rows: Ints) -> Floats:
    """Return [4, M] these rows of boxes [B, 4] as `iou` is fastest with: each coordinate is contiguous in memory."""
    return np.ascontiguousarray(boxes.take(rows, axis=0).T)


def _area(boxes: Floats, edge: float) -> Floats:
    """Return [M] the areas of boxes [4, M]. edge: what is added to each side's length."""
    area: Floats = (boxes[2] - boxes[0] + edge) * (boxes[3] - boxes[1] + edge)
    return area


def pair_nms(
    scenes: Scenes, keep: Bools, *, threshold: float, alpha: float, beta: float, ties: Ints | None = None
) -> Bools:
    """Return [T] the mask `keep` without the triplets that a higher-scored one of the same image, labels and verb
    suppresses.

    A triplet is dropped if iou_subject ** alpha * iou_object ** beta with a better one exceeds `threshold` (inclusive
    pixels), greedily by descending score. ties: [T] what orders equal scores, ascending; then input order decides,
    which is all that CDN datasets/hico_eval.py `pairwise_nms` has. A box without area overlaps nothing here, so its
    pairs are kept; CDN divides 0 by 0 for two such boxes and drops the pair.

    Small groups go through rounds together: each round keeps the best remaining triplet of every group and suppresses
    against it. A group beyond SMALL_GROUP goes by itself."""
    survivors = np.zeros_like(keep)
    rows = np.flatnonzero(keep)
    group = _nms_groups(scenes, rows)
    tie_order = rows if ties is None else ties[rows]
    order = np.lexsort((rows, tie_order, -scenes.score[rows], group))
    rows, group = rows[order], group[order]
    subjects, objects = scenes.boxes.T[:, scenes.subject], scenes.boxes.T[:, scenes.object]
    size = np.diff(np.r_[run_starts(group), len(group)])
    in_large_group = np.repeat(size > SMALL_GROUP, size)
    large_ends = np.cumsum(size[size > SMALL_GROUP])
    for group_rows in np.split(rows[in_large_group], large_ends[:-1]) if len(large_ends) else ():
        own_subjects, own_objects, object_power = subjects[:, group_rows], objects[:, group_rows], beta
        if scenes.object[group_rows[0]] < 0:  # nor has any other of the group an object
            own_objects, object_power = own_subjects, 0.0  # x ** 0 is 1: objects count nothing
        surviving = _greedy(own_subjects, own_objects, threshold, alpha, object_power)
        survivors[group_rows[surviving]] = True
    rows, group = rows[~in_large_group], group[~in_large_group]
    while len(rows):
        first = run_starts(group)
        best_of_group = np.repeat(rows[first], np.diff(np.r_[first, len(rows)]))
        survivors[rows[first]] = True
        of_objects = iou(objects[:, best_of_group], objects[:, rows], inclusive=True)
        of_objects[scenes.object[rows] < 0] = 1.0  # both have none
        overlap = iou(subjects[:, best_of_group], subjects[:, rows], inclusive=True) ** alpha * of_objects**beta
        remaining = overlap <= threshold
        remaining[first] = False
        rows, group = rows[remaining], group[remaining]
    return survivors


def _greedy(subjects: Floats, objects: Floats, threshold: float, alpha: float, beta: float) -> Ints:
    """Return the positions of the pairs that survive. subjects, objects: [4, N] the boxes of the pairs of one group,
    best first. threshold, alpha, beta: as in `pair_nms`.

    An IoU is at most 1, so a pair is only suppressed if either IoU alone is large enough: few need a power."""
    position = np.arange(subjects.shape[1])
    least_overlaps = [_least(threshold, exponent) for exponent in (alpha, beta)]
    survivors = []
    while len(position):
        survivors.append(position[0])
        near = _find_overlapping_widths(subjects, least_overlaps[0])
        near = near[iou(subjects[:, :1], subjects[:, near], inclusive=True) > least_overlaps[0]]
        near = near[iou(objects[:, :1], objects[:, near], inclusive=True) > least_overlaps[1]]
        remaining = np.ones(len(position), dtype=bool)
        remaining[0] = False
        if len(near):
            overlap = iou(subjects[:, :1], subjects[:, near], inclusive=True) ** alpha
            overlap *= iou(objects[:, :1], objects[:, near], inclusive=True) ** beta
            remaining[near] = overlap <= threshold
        kept = slice(1, None) if remaining[1:].all() else remaining  # a slice copies nothing
        position, subjects, objects = position[kept], subjects[:, kept], objects[:, kept]
    return np.array(survivors, dtype=np.int64)


def _find_overlapping_widths(boxes: Floats, least_overlap: float) -> Ints:
    """Return the positions of the boxes [4, N] whose IoU with the first may be above `least_overlap`, by the width they
    share."""
    if least_overlap < 0:
        return np.arange(1, boxes.shape[1])
    left, right = boxes[0], boxes[2]
    with np.errstate(over="ignore", invalid="ignore"):
        shared_width = np.minimum(right[1:], right[0]) - np.maximum(left[1:], left[0]) + 1
        return np.flatnonzero(shared_width > least_overlap * (right[0] - left[0] + 1)) + 1


def _least(threshold: float, exponent: float) -> float:
    """Return an IoU up to which its power with this exponent surely stays within the threshold; -1 if none does."""
    return threshold ** (1 / exponent) * (1 - 1e-9) if exponent > 0.01 else -1.0


def _nms_groups(scenes: Scenes, rows: Ints) -> Ints:
    """Return [rows] a number for each (image, subject label, object label, verb): only equal ones suppress each
    other."""
    columns = (
        scenes.image_of_hoi,
        scenes.labels[scenes.subject],
        scenes.object_label,
        scenes.verb,
        scenes.interaction,  # includes the role, if there are roles
        scenes.object < 0,
    )
    group = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        lowest = int(column.min(initial=0))
        group = group * (int(column.max(initial=0)) - lowest + 1) + column[rows] - lowest
    return group


def best_per_image(scenes: Scenes, count: int, among: Bools | None = None) -> Bools:
    """Return [T] a mask of the `count` triplets of each image with the highest scores; equal scores rank by input
    order. among: a mask of the triplets to choose from, None for all."""
    if among is None and np.diff(scenes.hoi_start).max(initial=0) <= count:
        return np.ones(len(scenes.score), dtype=bool)
    rows = np.arange(len(scenes.score)) if among is None else np.flatnonzero(among)
    keep = np.zeros(len(scenes.score), dtype=bool)
    keep[rows[ranks_in_groups(scenes.image_of_hoi[rows], scenes.score[rows]) < count]] = True
    return keep
