"""Random weights of images for rounds of resampling: bootstrap resamples, and swaps of two models' output.

The draws are raw bits of PCG64, whose stream NumPy keeps the same on every machine and in every version (NEP 19), made
into weights by whole numbers alone. Images are in the order of their ids, so the order of a stream's lines has no part
in it. Rounds come in blocks, each with a stream of its own, so that it does not matter who works on which."""

from __future__ import annotations

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
"""The purposes of random numbers, each of which has streams of its own."""
MOST_ROUNDS = 100_000
"""The rounds that a call may ask for: they put an interval's ends within a hundredth of the standard error."""


@dataclass(frozen=True)
class Resampling:
    """What to draw: the number of rounds (0: no intervals, no p-values), the seed, and with which number the blocks of
    rounds begin (`before`), so that further rounds differ from earlier ones."""

    rounds: int
    seed: int
    before: int = 0

    @classmethod
    def from_options(cls, rounds: int, seed: int, *, or_none: bool = False) -> Resampling:
        """Return the resampling that a command's options ask for. or_none: whether 0 rounds are allowed, for none.
        Raises `UsageError` for a number of rounds, or a seed, that makes no sense, and for a seed of no rounds."""
        if not (or_none and rounds == 0) and not 2 <= rounds <= MOST_ROUNDS:
            raise UsageError(
                f"{arg('bootstrap', rounds)}: give a number of rounds from 2 to {MOST_ROUNDS:,}; 1000 is usual"
            )
        if seed and not rounds:
            raise UsageError(f"{arg('seed', seed)}: goes with {arg('bootstrap', like='N')}")
        if seed < 0:
            raise UsageError(f"{arg('seed', seed)}: give a whole number of at least 0")
        return cls(rounds, seed)

    @classmethod
    def from_rounds(cls, rounds: int | None, seed: int) -> Resampling | None:
        """Return what `from_options` does; None if `rounds` is None, when there is nothing to seed."""
        resampling = cls.from_options(rounds or 0, seed, or_none=rounds is None)
        return resampling if resampling.rounds else None

    def signature(self) -> dict[str, str]:
        """Return the settings, key to text, for the signatures of rows with an interval; {} without rounds."""
        return {"boot": str(self.rounds), "ci": "student", "seed": str(self.seed)} if self.rounds else {}


@dataclass(frozen=True)
class Block:
    """Consecutive rounds that share one random stream, which the seed and the block's number choose."""

    seed: int
    number: int
    rounds: int

    def resamples(self, images: int) -> Weights:
        """Return [images, rounds] how often each image is drawn in each round: as many as there are, with replacement.

        An image's index is the upper half of 64 random bits, times `images` / 2^32: nearly the same chance for all."""
        bits = self._random_words(RESAMPLING, self.rounds * images) >> np.uint64(32)
        indices = ((bits * np.uint64(images)) >> np.uint64(32)).astype(np.int64).reshape(self.rounds, images)
        indices += np.arange(self.rounds)[:, np.newaxis] * images  # now one number for each (round, image)
        counts = np.bincount(indices.ravel(), minlength=self.rounds * images).astype(np.int32)
        return np.ascontiguousarray(counts.reshape(self.rounds, images).T)

    def swaps(self, images: int) -> Weights:
        """Return [images, rounds] 1 where two models exchange their outputs of an image in a round, else 0."""
        words = -(-images // 64)  # one bit for each image, rounded up to words of 64 bits
        # little-endian, so that every machine takes the bits in the same order
        octets = self._random_words(SWAPPING, self.rounds * words).astype("<u8").view(np.uint8)
        bits = np.unpackbits(octets.reshape(self.rounds, words * 8), axis=1, bitorder="little")[:, :images]
        return np.ascontiguousarray(bits.T.astype(np.int32))

    def coins(self, images: int) -> Weights:
        """Return [2 * images, rounds] 1 for each output that the first of two mixed systems has in a round: of each
        image the first model's output (the upper rows), or, if the models swap, the second model's."""
        swaps = self.swaps(images)
        return np.concatenate((1 - swaps, swaps))

    def _random_words(self, purpose: int, count: int) -> NDArray[np.uint64]:
        """Return the first `count` numbers of 64 random bits of the block's stream for a purpose."""
        generator = np.random.PCG64(np.random.SeedSequence([self.seed, purpose, self.number]))
        return np.asarray(generator.random_raw(count), dtype=np.uint64)


def blocks(resampling: Resampling) -> list[Block]:
    """Return all rounds of a resampling, as blocks of ROUNDS_IN_BLOCK rounds; the last may have fewer."""
    starts = range(0, resampling.rounds, ROUNDS_IN_BLOCK)
    return [
        Block(resampling.seed, number, min(ROUNDS_IN_BLOCK, resampling.rounds - start))
        for number, start in enumerate(starts, start=resampling.before)
    ]
