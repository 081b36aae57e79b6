"""The figures of resampled images: a round is the questions as often as their images are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hoicli.converters.containers.source import Source
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats, Ints
from hoicli.resampling.draws import Resampling, blocks
from hoicli.resampling.intervals import interval
from hoicli.vlm.answers import Answers, read_answers
from hoicli.vlm.bank import read_bank
from hoicli.vlm.choice import tally_answers
from hoicli.vlm.result_files import Grounding, grounding, measure_grounding, read_results
from hoicli.vlm.task_scores import Measured, Shares
from tests.support import questions as made
from tests.support.project import dumped

IMAGES = 6
RESAMPLING = Resampling(40, 2)
WEIGHTS = np.concatenate([block.resamples(IMAGES) for block in blocks(RESAMPLING)], axis=1)


def copies(images: list[str], times: Ints) -> list[tuple[str, str]]:
    """(image, its name) of each image as often as `times` says."""
    return [(name, f"{name} {copy}") for name, count in zip(images, times, strict=True) for copy in range(count)]


def hold(measured: Callable[[Ints], Measured]) -> None:
    """The rounds of the images are what is measured of them as often as the rounds say."""
    found = measured(np.ones(IMAGES, np.int64)).rounds(WEIGHTS)
    for at, times in enumerate(WEIGHTS.T):
        for key, score in measured(times).scores().items():
            assert found[key][at] == pytest.approx(math.nan if score.value is None else score.value, nan_ok=True), key


@pytest.mark.parametrize("released", [False, True])
def test_choices(tmp_path: Path, released: bool) -> None:
    content = made.questions("vcoco", "scene")
    bank = read_bank(str(dumped(tmp_path / "q.json", content)), ErrorPolicy())
    source = Source(str(dumped(tmp_path / "a.json", made.answers(content, "good"))))
    given = read_answers([source], bank, ErrorPolicy(), released=released).choices
    images = sorted(bank.by_image)[:IMAGES]

    def measured(times: Ints) -> Measured:
        asked = [
            (name, question) for image, name in copies(images, times) for question in bank.by_image[image].values()
        ]
        again = [(question, replace(question, image_id=name)) for name, question in asked]
        answers = {new.key: given[old.key] for old, new in again if old.key in given}
        drawn = replace(bank, questions=tuple(new for _, new in again))
        return tally_answers(Answers(drawn, answers), released=released)

    hold(measured)


def test_pairs(tmp_path: Path) -> None:
    rows = read_results([Source(str(dumped(tmp_path / "r.json", made.grounding(1))))], ErrorPolicy(), grounding)
    images = sorted({row.image for row in rows if row.truth})[:IMAGES]

    def measured(times: Ints) -> Measured:
        return measure_grounding([replace(row, image=name) for image, name in copies(images, times) for row in rows
                         if row.image == image])  # fmt: skip

    hold(measured)


def test_a_size_is_of_the_pairs_between_its_bounds() -> None:
    """32 and 96 pixels a side begin the next; an area below 0, of a box the wrong way round, is small."""
    areas = (-1.0, 0.0, 1023.0, 1024.0, 9215.0, 9216.0, math.inf, 1e9)
    truth = tuple(((0.0, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, area)) for area in areas)
    found = measure_grounding([Grounding("a", truth, ())]).scores()
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
    for measured in (measure_grounding([Grounding("a", (), ())]), means(np.zeros(0), np.zeros(0, np.int64), 0)):
        assert {(score.value, score.n) for score in measured.scores().values()} == {(None, 0)}
