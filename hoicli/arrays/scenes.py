"""Many images as columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hoicli.arrays.kit import Bools, Floats, Ints
from hoicli.records import caveats


@dataclass(frozen=True)
class Scenes:
    """N images, B boxes and T triplets as columns.

    image_ids [N] text; boxes [B, 4] float64, pixels, 0-based x1 y1 x2 y2; labels [B] object ids of the vocabulary, -1
    for a box that does not say; annotated [B] whether somebody looked at what the box's person does; subject, object
    [T] rows of `boxes`, -1 for no object; verb [T] verb ids; interaction [T] interaction ids, -1 where the vocabulary
    has no such (verb, object); score [T] (NaN for ground truth). Image n owns boxes box_start[n]:box_start[n + 1]
    and triplets hoi_start[n]:hoi_start[n + 1]. known_object [N, objects] bool: some image-level label of the image
    names the object. caveats [N] masks of `hoicli.records.caveats`: what each record says of itself, and for ground
    truth without image-level labels that its triplets stand in for them.
    """

    image_ids: list[str]
    boxes: Floats
    labels: Ints
    annotated: Bools
    box_start: Ints
    subject: Ints
    object: Ints
    verb: Ints
    interaction: Ints
    score: Floats
    hoi_start: Ints
    known_object: Bools
    caveats: Ints

    @property
    def derived(self) -> int:
        """How many images have no image-level labels but those of their triplets."""
        return int(np.count_nonzero(self.caveats & caveats.mask([caveats.DERIVED_LABELS])))

    @cached_property
    def every_caveat(self) -> int:
        """The mask of the caveats of any image."""
        return int(np.bitwise_or.reduce(self.caveats, initial=0))

    @cached_property
    def image_of_hoi(self) -> Ints:
        """[T] the image each triplet belongs to."""
        return np.repeat(np.arange(len(self.image_ids)), np.diff(self.hoi_start))

    @cached_property
    def object_label(self) -> Ints:
        """[T] the label of each triplet's object, -1 where there is none or it does not say."""
        if not len(self.labels):
            return np.full(len(self.object), -1, dtype=np.int64)
        return np.where(self.object < 0, -1, self.labels[self.object])

    @cached_property
    def image_of_box(self) -> Ints:
        """[B] the image each box belongs to."""
        return np.repeat(np.arange(len(self.image_ids)), np.diff(self.box_start))
