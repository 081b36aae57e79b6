"""Random weights of images: bootstrap resamples, and swaps of two models' output.

The draws are raw bits of PCG64, whose stream NumPy keeps the same on every machine and in every version (NEP 19), made
into weights by whole numbers alone. Images are in the order of their ids, so the order of a stream's lines has no part
in it. Rounds come in blocks, each with a stream of its own, so that it does not matter who works on which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import UsageError, arg

Weights: TypeAlias = NDArray[np.int32]
"""[N, R] how often each of N images is there in each of R rounds."""
ROUNDS_IN_BLOCK = 32
"""Rounds of one stream. Changing it changes results."""
BLOCKS_AT_ONCE = 2
"""Blocks worked on at a time: few enough that their arrays stay in a processor's cache."""
RESAMPLING, SWAPPING = 0, 1
MOST_ROUNDS = 100_000
"""The rounds that a call may ask for: they put an interval's ends within a hundredth of the standard error."""


@dataclass(frozen=True)
class Resampling:
    """How many rounds to draw (0: no intervals, no p-values), of which seed; before: how many were drawn earlier."""

    rounds: int
    seed: int
    before: int = 0

    @classmethod
    def from_options(cls, rounds: int, seed: int, *, or_none: bool = False) -> Resampling:
        """Return what a command's options ask for; raise `UsageError` for meaningless ones. or_none: 0 rounds may
        be."""
        if not (or_none and rounds == 0) and not 2 <= rounds <= MOST_ROUNDS:
            raise UsageError(
                f"{arg('bootstrap', rounds)}: give a number of rounds from 2 to {MOST_ROUNDS:,}; 1000 is usual"
            )
        if seed < 0:
            raise UsageError(f"{arg('seed', seed)}: give a whole number of at least 0")
        return cls(rounds, seed)

    @classmethod
    def from_rounds(cls, rounds: int | None, seed: int) -> Resampling | None:
        """Return `from_options`, or None where `rounds` is None: the user asks for no resamples."""
        return None if rounds is None else cls.from_options(rounds, seed)

    def signature(self) -> dict[str, str]:
        """Return the settings that the signatures of rows with an interval name; none without rounds."""
        return {"boot": str(self.rounds), "ci": "student", "seed": str(self.seed)} if self.rounds else {}


@dataclass(frozen=True)
class Block:
    """Consecutive rounds that share one random stream: the seed, the block's number, and how many rounds it has."""

    seed: int
    number: int
    rounds: int

    def resamples(self, images: int) -> Weights:
        """Return [images, rounds]: how often each image is drawn when `images` images are drawn with replacement.

        An image's index is the upper half of 64 random bits, scaled: no image is favoured by more than images / 2^32.
        """
        bits = self._bits(RESAMPLING, self.rounds * images) >> np.uint64(32)
        indices = ((bits * np.uint64(images)) >> np.uint64(32)).astype(np.int64).reshape(self.rounds, images)
        indices += np.arange(self.rounds)[:, np.newaxis] * images  # one number for each (round, image)
        counts = np.bincount(indices.ravel(), minlength=self.rounds * images).astype(np.int32)
        return np.ascontiguousarray(counts.reshape(self.rounds, images).T)

    def swaps(self, images: int) -> Weights:
        """Return [images, rounds]: 1 where an image's two outputs change places in a round, else 0."""
        words = -(-images // 64)  # one bit for each image, rounded up
        octets = self._bits(SWAPPING, self.rounds * words).astype("<u8").view(np.uint8).reshape(self.rounds, words * 8)
        coins = np.unpackbits(octets, axis=1, bitorder="little")[:, :images]
        return np.ascontiguousarray(coins.T.astype(np.int32))

    def coins(self, images: int) -> Weights:
        """Return [2 * images, rounds]: which of both models' outputs one of two systems has after `swaps`."""
        swaps = self.swaps(images)
        return np.concatenate((1 - swaps, swaps))

    def _bits(self, purpose: int, count: int) -> NDArray[np.uint64]:
        generator = np.random.PCG64(np.random.SeedSequence([self.seed, purpose, self.number]))
        return np.asarray(generator.random_raw(count), dtype=np.uint64)


@dataclass(frozen=True)
class Blocks:
    """Several blocks that are worked on at once, their rounds one block after the other."""

    blocks: Sequence[Block]

    @property
    def rounds(self) -> int:
        """Return the number of rounds of all blocks together."""
        return sum(block.rounds for block in self.blocks)

    def resamples(self, images: int) -> Weights:
        """Return `Block.resamples` of all blocks, [images, rounds]."""
        return np.concatenate([block.resamples(images) for block in self.blocks], axis=1)

    def coins(self, images: int) -> Weights:
        """Return `Block.coins` of all blocks, [2 * images, rounds]."""
        return np.concatenate([block.coins(images) for block in self.blocks], axis=1)


def blocks(resampling: Resampling) -> list[Block]:
    """Return all rounds of a resampling, cut into blocks."""
    starts = range(0, resampling.rounds, ROUNDS_IN_BLOCK)
    return [
        Block(resampling.seed, number, min(ROUNDS_IN_BLOCK, resampling.rounds - start))
        for number, start in enumerate(starts, start=resampling.before)
    ]
