"""The figures of resampled images: of counts that are made up, so that each can be written out."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Resampling, blocks
from hoicli.resampling.intervals import interval
from hoicli.vlm.choice import figures
from hoicli.vlm.grounding import recalls
from hoicli.vlm.measured import Measured, Shares

IMAGES, QUESTIONS, CLASSES, PAIRS = 6, 11, 4, 25
RNG = np.random.default_rng(3)
IMAGE = np.append(np.arange(IMAGES), RNG.integers(0, IMAGES, QUESTIONS - IMAGES))
RESAMPLING = Resampling(40, 2)
WEIGHTS = np.concatenate([block.resamples(IMAGES) for block in blocks(RESAMPLING)], axis=1)


def tallied(image: Ints, times: Ints, *, per_image: bool = False) -> Measured:
    """Made-up counts of questions, those of each image as often as `times` [images] says; a fifth do not count."""
    rng = np.random.default_rng(5)
    counts = rng.integers(0, 3, (4, QUESTIONS))
    counts[2] += counts[0]
    f1 = rng.random(QUESTIONS)
    counts[3] = rng.integers(0, 2, QUESTIONS)
    counted = (np.arange(QUESTIONS) % 5 > 0).astype(np.int64)
    cell = rng.integers(0, 2, (3, CLASSES, IMAGES))
    cell[2] += cell[0]
    cell[:, 3] = 0  # a class without anything
    again = np.repeat(np.arange(QUESTIONS), times[image])
    return figures(
        image[again], int(times.sum()), counts[:, again], counted[again], f1[again], (cell * times).astype(np.float64),
        exact_per_image=per_image,
    )  # fmt: skip


def grounded(times: Ints) -> Measured:
    rng = np.random.default_rng(7)
    question = np.sort(np.append(np.arange(QUESTIONS), rng.integers(0, QUESTIONS, PAIRS - QUESTIONS)))
    hits = rng.random((PAIRS, 12)) < 0.5
    area = rng.choice([-1.0, 0.0, 1023.0, 1024.0, 9215.0, 9216.0], PAIRS)
    again = np.repeat(np.arange(QUESTIONS), times[IMAGE])
    rows = [np.flatnonzero(question == each) for each in again]
    of = np.repeat(np.arange(len(again)), [len(each) for each in rows])
    at = np.concatenate(rows)
    return recalls(hits[at], of, area[at], IMAGE[again], int(times.sum()))


MADE: dict[str, Callable[[Ints], Measured]] = {
    "choices": partial(tallied, IMAGE),
    "choices, exact by image": partial(tallied, IMAGE, per_image=True),
    "pairs": grounded,
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_a_round_is_the_questions_as_often_as_their_images(made: Callable[[Ints], Measured]) -> None:
    found = made(np.ones(IMAGES, np.int64)).rounds(WEIGHTS)
    for at, times in enumerate(WEIGHTS.T):
        for key, score in made(times).scores().items():
            assert found[key][at] == pytest.approx(math.nan if score.value is None else score.value, nan_ok=True), key


def test_a_size_is_of_the_pairs_between_its_bounds() -> None:
    """32 and 96 pixels a side begin the next; an area below 0, of a box the wrong way round, is small."""
    area = np.array([-1.0, 0.0, 1023.0, 1024.0, 9215.0, 9216.0, math.inf, 1e9])
    found = recalls(np.eye(8, 12, dtype=bool), np.arange(8), area[:8], np.arange(8), 8).scores()
    assert [found["AR", size].n for size in ("small", "medium", "large")] == [3, 2, 2]


def rounds_of(values: Floats, image: Ints) -> Floats:
    """[R] the mean of the values as often as their images are drawn."""
    drawn = WEIGHTS[image]
    total = drawn.sum(axis=0)
    return np.where(total > 0, (values[:, None] * drawn).sum(axis=0) / np.maximum(total, 1), np.nan)


def means(values: Floats, image: Ints, images: int) -> Measured:
    columns = {("exact_match", "full"): (values, np.ones_like(image))}
    return Measured(images, dict.fromkeys(columns, len(values)), [Shares(image, columns)])


def test_intervals_are_of_the_means_of_what_was_drawn() -> None:
    values, image = np.array([0.0, 1.0, 1.0, 0.25]), np.array([0, 2, 2, 5])  # rounds with one row, and with none
    found = means(values, image, IMAGES).scores(RESAMPLING)
    expected = interval(values.mean(), rounds_of(values, image), IMAGES, lowest=0.0, highest=1.0)
    assert found["exact_match", "full"].ends == pytest.approx(expected)


def test_an_interval_needs_two_images() -> None:
    for number in (1, 2):
        found = means(np.ones(number), np.arange(number), number).scores(RESAMPLING)
        assert (found["exact_match", "full"].ends is None) == (number == 1)


def test_nothing_asked_is_no_value() -> None:
    none = np.zeros(0, np.int64)
    nothing = figures(none, 0, np.zeros((4, 0), np.int64), none, np.zeros(0), np.zeros((3, 2, 0)))
    for measured in (nothing, recalls(np.zeros((0, 12), bool), none, np.zeros(0), none, 0)):
        assert {score.value for score in measured.scores().values()} == {None}
        assert {score.n for score in measured.scores().values()} == {0}
