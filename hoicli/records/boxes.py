"""Boxes: the intersection over union under each published convention, and pair NMS.

Boxes are [x1, y1, x2, y2] rows in pixels. What a protocol adds to the coordinates before comparing is in its row of
`hoicli.evaluation.protocols`, not here."""

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


def hash_corners(images: Images) -> Floats:
    """Return [T] a hash (a float) of the corners of each triplet's boxes; different corners rarely share one."""
    with np.errstate(over="ignore", invalid="ignore"):
        # Irrational weights: sums of different corners almost never agree. The last row is read where there is no
        # object, since the index is -1 there.
        box_hash = np.append(images.boxes @ np.sqrt([2.0, 3.0, 5.0, 7.0]), 0.0)
        return box_hash[images.subject] + np.pi * box_hash[images.object]


def find_repeated(images: Images, *columns: Ints | Bools) -> Bools:
    """Return [T] a mask of the triplets that repeat an earlier triplet of their image.

    columns: [T] each; what else must agree, such as the verb. Two triplets are the same if their subject boxes have
    equal coordinates, their object boxes too (whether or not the record lists a box twice), and all columns agree.
    Triplets are first compared by a hash, which is fast; only those that share one are compared exactly."""
    is_repeated = np.zeros(len(images.subject), dtype=bool)
    # without an object, the box is read as zeros below; the second column tells it from a real box of zeros
    every_column: tuple[Ints | Bools, ...] = (images.image_of_hoi, images.object < 0, *columns)
    with np.errstate(over="ignore", invalid="ignore"):
        triplet_hash = hash_corners(images)
        for number, column in enumerate(every_column):
            # irrational weights, as `hash_corners` has for corners: different triplets almost never add up to one sum
            triplet_hash = triplet_hash + np.cbrt(11.0 + number) * column
    order = np.argsort(triplet_hash, kind="stable")
    may_repeat = ~np.isfinite(triplet_hash[order])  # a hash that overflowed says nothing
    same_hash = triplet_hash[order[1:]] == triplet_hash[order[:-1]]
    may_repeat[1:] |= same_hash
    may_repeat[:-1] |= same_hash
    rows = np.sort(order[may_repeat])
    if len(rows):
        boxes = np.append(images.boxes, np.zeros((1, 4)), axis=0) + 0.0  # + 0.0 makes -0.0 equal to 0.0
        corners_of_both = (boxes[images.subject[rows]], boxes[images.object[rows]])
        exact_rows = np.column_stack([*corners_of_both, *(column[rows] for column in every_column)])
        order = np.lexsort(exact_rows.T)  # equal triplets become neighbours, the earlier one first
        repeats_neighbour = (exact_rows[order[1:]] == exact_rows[order[:-1]]).all(axis=1)
        is_repeated[rows[order[1:][repeats_neighbour]]] = True
    return is_repeated


def iou(
    first: Floats,
    second: Floats,
    *,
    inclusive: bool,
    touching_overlap: bool = True,
    inclusive_overlap: bool = False,
    union_margin: float = 0.0,
) -> Floats:
    """Return [M] the intersection over union of box m of `first` and box m of `second`, in [0, 1] unless
    `inclusive_overlap`.

    first, second: [4, M] boxes, whose rows are x1, y1, x2, y2; this way all passes are over contiguous memory
    (`take_columns`). A box with no area overlaps nothing.

    inclusive: whether x2 is the last pixel, so that a box is x2 - x1 + 1 wide (PASCAL VOC; ho-rcnn
    VOCevaldet_bboxpair.m, QPIC hico_eval.py); otherwise x2 is the far edge (torchvision box_iou; INP-CC
    hico_evaluator.py). touching_overlap: if False, boxes whose edges merely meet have no overlap even where the shared
    pixel column would count (QPIC returns 0 when left >= right, before its + 1). inclusive_overlap: whether the
    intersection counts the last pixel although the areas do not; then a value may exceed 1, and be negative for boxes
    of a few pixels (Maelic/SGG-Benchmark box_ops.py). union_margin: added to the union (SherlockHolmes221/GGNet
    utils/bbox.py adds 1e-6)."""
    overlap_pixel = 1.0 if inclusive or inclusive_overlap else 0.0
    area_pixel = 1.0 if inclusive else 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.minimum(first[2], second[2]) - np.maximum(first[0], second[0])
        height = np.minimum(first[3], second[3]) - np.maximum(first[1], second[1])
        smallest = -overlap_pixel if touching_overlap else 0.0
        overlaps = (width > smallest) & (height > smallest)
        intersection = (width + overlap_pixel) * (height + overlap_pixel)
        union = _area(first, area_pixel) + _area(second, area_pixel) - intersection
        # a box without area, or whose area is too large for a double, overlaps nothing
        overlaps &= np.isfinite(union) if inclusive_overlap else (union > 0) & (union < np.inf)
    if union_margin:
        union += union_margin
    with np.errstate(divide="ignore"):  # only inclusive_overlap lets a union of 0 pass
        overlap: Floats = np.divide(intersection, union, out=np.zeros(len(width)), where=overlaps)
    return overlap


def take_columns(boxes: Floats, rows: Ints) -> Floats:
    """Return [4, M] the boxes at `rows` [M] of `boxes` [B, 4], as `iou` takes them: fastest in memory."""
    return np.ascontiguousarray(boxes.take(rows, axis=0).T)


def _area(boxes: Floats, last_pixel: float) -> Floats:
    """Return [M] the areas of boxes [4, M]. last_pixel: 1.0 if x2 and y2 are the last pixels inside, else 0.0."""
    area: Floats = (boxes[2] - boxes[0] + last_pixel) * (boxes[3] - boxes[1] + last_pixel)
    return area


def pair_nms(
    scenes: Scenes, keep: Bools, *, threshold: float, alpha: float, beta: float, ties: Ints | None = None
) -> Bools:
    """Return [T] a mask of the triplets that survive non-maximum suppression of pairs of boxes.

    keep: [T] a mask of the triplets that take part; the others are dropped. Within a group (same image, labels and
    verb), greedily by descending score, a triplet is dropped if iou_subject ** alpha * iou_object ** beta with a
    surviving better one exceeds `threshold` (x2 and y2 are the last pixels of a box). ties: [T] ranks that order equal
    scores, ascending; without them, and among equal ranks, input order decides, as in CDN datasets/hico_eval.py
    `pairwise_nms`. A box without area overlaps nothing here, so its pairs are kept; CDN divides 0 by 0 for two such
    boxes and drops the pair.

    All small groups go through the same rounds: each round keeps the best remaining triplet of every group and drops
    what it suppresses. A group of more than SMALL_GROUP triplets is suppressed by itself."""
    # the triplets group by group, the best-scored first
    survivors = np.zeros_like(keep)
    rows = np.flatnonzero(keep)
    group = _nms_groups(scenes, rows)
    tie_order = rows if ties is None else ties[rows]
    order = np.lexsort((rows, tie_order, -scenes.score[rows], group))
    rows, group = rows[order], group[order]
    subjects, objects = scenes.boxes.T[:, scenes.subject], scenes.boxes.T[:, scenes.object]

    # each large group by itself
    group_size = np.diff(np.r_[run_starts(group), len(group)])
    in_large_group = np.repeat(group_size > SMALL_GROUP, group_size)
    large_ends = np.cumsum(group_size[group_size > SMALL_GROUP])
    for group_rows in np.split(rows[in_large_group], large_ends[:-1]) if len(large_ends) else ():
        has_objects = scenes.object[group_rows[0]] >= 0  # all triplets of a group have one, or none has
        group_subjects = subjects[:, group_rows]
        group_objects = objects[:, group_rows] if has_objects else group_subjects
        object_power = beta if has_objects else 0.0  # x ** 0 is 1: objects count nothing
        surviving = _suppress_group(group_subjects, group_objects, threshold, alpha, object_power)
        survivors[group_rows[surviving]] = True

    # all small groups, round by round; rows, group: of the triplets that are undecided
    rows, group = rows[~in_large_group], group[~in_large_group]
    while len(rows):
        first = run_starts(group)
        best_of_group = np.repeat(rows[first], np.diff(np.r_[first, len(rows)]))
        survivors[rows[first]] = True
        object_iou = iou(objects[:, best_of_group], objects[:, rows], inclusive=True)
        object_iou[scenes.object[rows] < 0] = 1.0  # neither of the two has an object: objects count nothing
        subject_iou = iou(subjects[:, best_of_group], subjects[:, rows], inclusive=True)
        overlap = subject_iou**alpha * object_iou**beta
        remaining = overlap <= threshold
        remaining[first] = False
        rows, group = rows[remaining], group[remaining]
    return survivors


def _suppress_group(subjects: Floats, objects: Floats, threshold: float, alpha: float, beta: float) -> Ints:
    """Return the positions, ascending, of the pairs of one group that survive non-maximum suppression: each best pair
    drops those with iou_subject ** alpha * iou_object ** beta > threshold. subjects, objects: [4, N] the boxes of the
    pairs by descending score.

    An IoU is at most 1, so both IoUs of a suppressed pair are large. Three cheap filters leave few pairs (`near`) for
    which the powers are computed."""
    position = np.arange(subjects.shape[1])
    subject_minimum, object_minimum = (_minimum_iou(threshold, exponent) for exponent in (alpha, beta))
    survivors = []
    while len(position):
        survivors.append(position[0])
        near = _find_overlapping_widths(subjects, subject_minimum)
        near = near[iou(subjects[:, :1], subjects[:, near], inclusive=True) > subject_minimum]
        near = near[iou(objects[:, :1], objects[:, near], inclusive=True) > object_minimum]
        remaining = np.ones(len(position), dtype=bool)
        remaining[0] = False
        if len(near):
            overlap = iou(subjects[:, :1], subjects[:, near], inclusive=True) ** alpha
            overlap *= iou(objects[:, :1], objects[:, near], inclusive=True) ** beta
            remaining[near] = overlap <= threshold
        selection = slice(1, None) if remaining[1:].all() else remaining  # a slice copies nothing
        position, subjects, objects = position[selection], subjects[:, selection], objects[:, selection]
    return np.array(survivors, dtype=np.int64)


def _find_overlapping_widths(boxes: Floats, minimum_iou: float) -> Ints:
    """Return the positions of boxes [4, N] that may have, by their widths, an IoU above a minimum with the first."""
    if minimum_iou < 0:
        return np.arange(1, boxes.shape[1])  # every box has, even one that does not overlap
    # an IoU is at most the shared width divided by the first box's width
    x1, x2 = boxes[0], boxes[2]
    with np.errstate(over="ignore", invalid="ignore"):
        shared_width = np.minimum(x2[1:], x2[0]) - np.maximum(x1[1:], x1[0]) + 1
        return np.flatnonzero(shared_width > minimum_iou * (x2[0] - x1[0] + 1)) + 1


def _minimum_iou(threshold: float, exponent: float) -> float:
    """Return an IoU such that iou ** exponent can exceed the threshold only if the IoU is above it; -1.0 if that rules
    out nothing. It is a little too small (1e-9), so that rounding cannot rule out a pair."""
    return threshold ** (1 / exponent) * (1 - 1e-9) if exponent > 0.01 else -1.0


def _nms_groups(scenes: Scenes, rows: Ints) -> Ints:
    """Return [M] a number for each triplet at `rows`, equal if image, labels, verb, role and lack of object are."""
    columns = (
        scenes.image_of_hoi,
        scenes.labels[scenes.subject],
        scenes.object_label,
        scenes.verb,
        scenes.interaction,  # tells roles apart, in a dataset that has roles
        scenes.object < 0,
    )
    group = np.zeros(len(rows), dtype=np.int64)
    for column in columns:  # each column is one more digit of the number, in a base that its values fit
        lowest = int(column.min(initial=0))
        group = group * (int(column.max(initial=0)) - lowest + 1) + column[rows] - lowest
    return group


def best_per_image(scenes: Scenes, count: int, among: Bools | None = None) -> Bools:
    """Return [T] a mask of the `count` best triplets of each image, of equal scores the first. among [T]: a mask of
    those to choose from, None for all."""
    if among is None and np.diff(scenes.hoi_start).max(initial=0) <= count:
        return np.ones(len(scenes.score), dtype=bool)
    rows = np.arange(len(scenes.score)) if among is None else np.flatnonzero(among)
    keep = np.zeros(len(scenes.score), dtype=bool)
    rank_in_image = ranks_in_groups(scenes.image_of_hoi[rows], scenes.score[rows])
    keep[rows[rank_in_image < count]] = True
    return keep
