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
    """How many rounds, and of which seed; 0 rounds: neither intervals nor p. before: rounds that were drawn earlier."""

    rounds: int
    seed: int
    before: int = 0

    @classmethod
    def from_options(cls, rounds: int, seed: int, *, or_none: bool = False) -> Resampling:
        """From a command's options; raises `UsageError` for values that mean nothing. or_none: 0 rounds may be."""
        if not (or_none and rounds == 0) and not 2 <= rounds <= MOST_ROUNDS:
            raise UsageError(
                f"{arg('bootstrap', rounds)}: give a number of rounds from 2 to {MOST_ROUNDS:,}; 1000 is usual"
            )
        if seed < 0:
            raise UsageError(f"{arg('seed', seed)}: give a whole number of at least 0")
        return cls(rounds, seed)

    @classmethod
    def from_rounds(cls, rounds: int | None, seed: int) -> Resampling | None:
        """`from_options`, or None where no resamples are asked for."""
        return None if rounds is None else cls.from_options(rounds, seed)

    def signature(self) -> dict[str, str]:
        """For the signatures of rows that have an interval."""
        return {"boot": str(self.rounds), "ci": "student", "seed": str(self.seed)} if self.rounds else {}


@dataclass(frozen=True)
class Block:
    """Some rounds of a seed: the block's number and how many there are."""

    seed: int
    number: int
    rounds: int

    def resamples(self, images: int) -> Weights:
        """[images, rounds] how often each image is drawn when `images` are drawn with replacement.

        An index is the upper half of 64 random bits, scaled: no image is favoured by more than images / 2^32.
        """
        bits = self._bits(RESAMPLING, self.rounds * images) >> np.uint64(32)
        indices = ((bits * np.uint64(images)) >> np.uint64(32)).astype(np.int64).reshape(self.rounds, images)
        indices += np.arange(self.rounds)[:, np.newaxis] * images
        counts = np.bincount(indices.ravel(), minlength=self.rounds * images).astype(np.int32)
        return np.ascontiguousarray(counts.reshape(self.rounds, images).T)

    def swaps(self, images: int) -> Weights:
        """[images, rounds] of 0 and 1: in which rounds an image's two outputs change places."""
        words = -(-images // 64)
        octets = self._bits(SWAPPING, self.rounds * words).astype("<u8").view(np.uint8).reshape(self.rounds, words * 8)
        coins = np.unpackbits(octets, axis=1, bitorder="little")[:, :images]
        return np.ascontiguousarray(coins.T.astype(np.int32))

    def coins(self, images: int) -> Weights:
        """[2 * images, rounds]: what one of two systems has after `swaps`, of both models' outputs."""
        swaps = self.swaps(images)
        return np.concatenate((1 - swaps, swaps))

    def _bits(self, purpose: int, count: int) -> NDArray[np.uint64]:
        generator = np.random.PCG64(np.random.SeedSequence([self.seed, purpose, self.number]))
        return np.asarray(generator.random_raw(count), dtype=np.uint64)


@dataclass(frozen=True)
class Blocks:
    """Some blocks worked on at once, the rounds of one after the other's."""

    blocks: Sequence[Block]

    @property
    def rounds(self) -> int:
        """Return the number of rounds of all of them."""
        return sum(block.rounds for block in self.blocks)

    def resamples(self, images: int) -> Weights:
        """[images, rounds], as `Block.resamples`."""
        return np.concatenate([block.resamples(images) for block in self.blocks], axis=1)

    def coins(self, images: int) -> Weights:
        """[2 * images, rounds], as `Block.coins`."""
        return np.concatenate([block.coins(images) for block in self.blocks], axis=1)


def blocks(resampling: Resampling) -> list[Block]:
    """All rounds, in blocks."""
    starts = range(0, resampling.rounds, ROUNDS_IN_BLOCK)
    return [
        Block(resampling.seed, number, min(ROUNDS_IN_BLOCK, resampling.rounds - start))
        for number, start in enumerate(starts, start=resampling.before)
    ]
