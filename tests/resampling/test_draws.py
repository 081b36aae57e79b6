"""The draws, from the bits of the stream one at a time."""

from __future__ import annotations

import numpy as np
import pytest

from hoicli.errors import UsageError
from hoicli.resampling.draws import MOST_ROUNDS, Block, Resampling, blocks


def bits(*key: int) -> np.random.PCG64:
    return np.random.PCG64(np.random.SeedSequence(list(key)))


def upper(stream: np.random.PCG64, below: int) -> int:
    """The upper 32 of the next 64 bits, as a number below another."""
    return ((int(stream.random_raw()) >> 32) * below) >> 32


def test_a_resample_takes_its_images_one_after_another() -> None:
    block, images = Block(seed=5, number=3, rounds=4), 70
    stream = bits(5, 0, 3)
    drawn = [[upper(stream, images) for _ in range(images)] for _ in range(4)]
    weights = block.resamples(images)
    assert weights.dtype == np.int32
    assert weights.flags.c_contiguous
    assert weights.T.tolist() == [[row.count(image) for image in range(images)] for row in drawn]


@pytest.mark.parametrize("images", [1, 63, 64, 65, 130])
def test_a_swap_takes_a_bit_of_an_image_and_each_round_begins_a_word(images: int) -> None:
    stream = bits(5, 1, 3)
    words = [[int(stream.random_raw()) for _ in range(-(-images // 64))] for _ in range(4)]
    coins = Block(seed=5, number=3, rounds=4).swaps(images)
    assert coins.dtype == np.int32
    assert coins.flags.c_contiguous
    assert coins.T.tolist() == [[row[image // 64] >> image % 64 & 1 for image in range(images)] for row in words]


@pytest.mark.parametrize(
    ("rounds", "sizes"), [(0, []), (1, [1]), (31, [31]), (32, [32]), (33, [32, 1]), (96, [32, 32, 32])]
)
def test_rounds_come_in_blocks_of_32(rounds: int, sizes: list[int]) -> None:
    assert blocks(Resampling(rounds, 9)) == [Block(9, number, size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize("rounds", [-1, 0, 1, MOST_ROUNDS + 1])
def test_rounds_that_may_not(rounds: int) -> None:
    for or_none in {False, rounds != 0}:
        with pytest.raises(UsageError, match=f"^--bootstrap {rounds}: give a number of rounds from 2 to 100,000"):
            Resampling.from_options(rounds, 0, or_none=or_none)


def test_no_rounds_where_they_may_be_left_out() -> None:
    assert Resampling.from_options(0, 4, or_none=True) == Resampling(0, 4)
    assert Resampling.from_rounds(None, -1) is None
    assert Resampling(0, 4).signature() == {}
    assert Resampling(20, 4).signature() == {"boot": "20", "ci": "student", "seed": "4"}


def test_a_seed_is_not_below_0() -> None:
    with pytest.raises(UsageError, match=r"^--seed -1: give a whole number of at least 0"):
        Resampling.from_options(2, -1)
