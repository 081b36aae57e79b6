"""The images of one human-object pair: the "single HOI" subset of the SHOE supplement's Table 2 and Figure 6.

The supplement does not define it. Figure 6 shows images of it with three interactions of one pair (hold, ride and sit
on a motorcycle), so it is not one class per image; HICO-DET's annotators drew a pair's boxes again for each of its
interactions, so it is not one box per person either. The definition below gives 4,054 images of HICO-DET's test set
with exactly the 575 classes of Table 2's caption, including no_interaction. Other definitions give other numbers:
overlaps above 0.75 580 classes, above 0.85 562, boxes that all overlap each other 571, no boxes taken as one 424.
(Boxes that overlap the first one drawn have 575 classes too, over 3,899 images, but depend on the order of boxes.)"""

from __future__ import annotations

import numpy as np

from hoicli.evaluation.pairing import blocks_of
from hoicli.records.boxes import iou
from hoicli.records.images import NO_BOX
from hoicli.records.kit import Bools, Ints, expanded
from hoicli.records.triplets import Triplets
from hoicli.shoe.labels import normalised

ONE_BOX_IOU = 0.8
"""Two boxes of one label and image that overlap by more than this show one object or person."""

READING = f"one-pair,boxes-as-one-above-iou-{ONE_BOX_IOU:g}"
"""How a signature names the subset."""


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
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

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
    for part in blocks_of(count):
        run, after = expanded(place[part] + 1, count[part])
        one, other = boxes[run + part.start], boxes[after]
        close = iou(truth.boxes[one].T, truth.boxes[other].T, inclusive=False) > ONE_BOX_IOU
        pairs.append((one[close], other[close]))
    one, other = map(np.concatenate, zip(*pairs, strict=True))
    joins = coo_array((np.ones(len(one), dtype=bool), (one, other)), shape=(len(truth.boxes),) * 2)
    numbers: Ints = connected_components(joins, directed=False)[1]
    return numbers
