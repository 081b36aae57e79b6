"""Random pixelation (RPP), the baseline that SAMPL's masks are compared with (RoHOI, section 5.3 and Table 2).

The paper's words: it "pixelates input images with the same probability as data augmentation", that is "with a 50%
probability", and "indiscriminately distorts both essential and redundant information". Read as: the whole image, or
nothing of it. They give no size of a block; 8 pixels are ours, meant for pictures of 640.

A block is the mean of its pixels, rounded, and those at the right and lower edge are what is left over. Whether an
image is pixelated depends on (seed, image_id) alone, through BLAKE2, whatever else is.

    >>> pixelate(np.array([[[0], [2], [9]], [[0], [4], [7]]], dtype=np.uint8), 2)[..., 0].tolist()
    [[2, 2, 8], [2, 2, 8]]
"""

from __future__ import annotations

import hashlib
from functools import partial

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.records.parsing import Record
from hoicli.robustness.masks import Change, Pixels

BLOCK = 8
"""The side of a block in pixels; ours."""


def pixelation(probability: float, seed: int) -> Change:
    """Return the change that pixelates each image with this probability; raise `UsageError` for a number that is no
    probability. seed: of the random choice."""
    if not 0 <= probability <= 1:
        problem = "give a probability from 0 to 1; SAMPL's baseline has 0.5"
        raise UsageError(f"{arg('pixelate', probability)}: {problem}")
    return Change("pixelated", partial(block_of, probability=probability, seed=seed), pixelate)


def block_of(record: Record, *, probability: float, seed: int) -> int:
    """Return BLOCK, the side of the blocks in pixels, with this probability, else 0: the image stays as it is. The
    choice depends on the seed and the image's id alone."""
    digest = hashlib.blake2b(f"{seed}\0{record['image_id']}\0pixelate".encode(), digest_size=4).digest()
    return BLOCK if int.from_bytes(digest, "big") / 2**32 < probability else 0


def pixelate(pixels: Pixels, block: int) -> Pixels:
    """Return a copy of an image [height, width, channels] in blocks of `block` by `block` pixels, each of their mean,
    with halves rounded up."""
    height, width = pixels.shape[:2]
    tops, lefts = np.arange(0, height, block), np.arange(0, width, block)
    block_heights, block_widths = np.diff(tops, append=height), np.diff(lefts, append=width)
    # reduceat adds up the rows, then the columns, from each block's first one to the next block's
    row_sums = np.add.reduceat(pixels, tops, axis=0, dtype=np.int64)
    sums = np.add.reduceat(row_sums, lefts, axis=1)
    count = (block_heights[:, np.newaxis] * block_widths)[..., np.newaxis]
    means = ((2 * sums + count) // (2 * count)).astype(np.uint8)  # sums / count, rounded in whole numbers
    blocks: Pixels = means.repeat(block_heights, axis=0).repeat(block_widths, axis=1)
    return blocks
