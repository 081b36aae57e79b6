"""Many evaluations in place of one, against each by itself: counts over images, whose sums can be taken by hand; and
the draws, from the bits of the stream one at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from hoicli.errors import UsageError
from hoicli.records.kit import Floats, Ints
from hoicli.resampling.comparison import Difference, count_differences, difference
from hoicli.resampling.draws import MOST_ROUNDS, Block, Resampling, blocks
from hoicli.resampling.intervals import interval, p_resampled, p_swapped
from hoicli.resampling.lists import Observed
from hoicli.resampling.ranked import AveragedLists
from hoicli.resampling.rounds import HIDDEN, Rounds, resample, swap_outputs
from hoicli.resampling.sums import ImageSums, rate
from tests.resampling.test_ranked import IMAGES, LIKE, lists
from tests.support.project import complaint


def counts(seed: int, images: int = 70, classes: int = 3) -> Ints:
    """[classes, images]; the last class has none."""
    found = np.random.default_rng(seed).integers(0, 3, (classes, images))
    found[-1] = 0
    return found


def rates(some: Ints, of: Ints) -> ImageSums:
    return ImageSums([csr_array(some), csr_array(of)], csr_array(of), rate)


def test_a_class_that_was_not_drawn_is_left_out_and_one_that_never_was_there_counts_0() -> None:
    ap = np.array([[0.5, 0.5, 0.5], [0.25, 0.75, 0.125], [0.9, 0.9, 0.9], [1.0, 1.0, 1.0]])
    positives = np.array([[1, 0, 0], [2, 1, 0], [0, 0, 0], [1, 1, 1]])
    rounds = Rounds(ap, positives)
    assert rounds.means(np.array([0, 1]), np.zeros(4, bool)).tolist()[:2] == [0.375, 0.75]
    assert math.isnan(rounds.means(np.array([0, 1]), np.zeros(4, bool))[2])
    unannotated = np.array([False, False, True, False])
    # AP of a class without ground truth is 0 in every round; what stands there is taken as it is
    ap[2] = 0.0
    assert rounds.means(np.array([0, 1, 2]), unannotated).tolist() == [0.25, 0.375, 0.0]
    assert np.isnan(rounds.classes()).tolist() == (positives == 0).tolist()
    assert rounds.classes()[0, 0] == 0.5


def resampled_rounds(images: list[int]) -> Rounds:
    ap = np.array([[0.5, 0.5, 0.5], [0.25, 0.75, 0.0], [0.0, 0.0, 0.0]])
    positives = np.array([[1, 2, 0], [1, 1, 0], [0, 0, 0]])
    return Rounds(ap, positives, Observed(np.array([0.5, 0.25, 0.0]), np.array(images)))


def test_a_resample_has_the_classes_of_the_test_set() -> None:
    """Classes far from their AP on it (0.5, 0.25) go as much further as their few images hide."""
    members, never = np.arange(3), np.zeros(3, bool)
    assert resampled_rounds([4, 9, 0]).means(members, never).tolist()[:2] == [0.375, 0.625]
    assert resampled_rounds([4, 2, 0]).means(members, never).tolist()[:2] == [0.375, 0.375 + HIDDEN[2] * 0.5 / 2]
    assert math.isnan(resampled_rounds([4, 9, 0]).means(members, never)[2])  # none of them was drawn
    counts_0 = np.array([False, False, True])
    assert resampled_rounds([4, 9, 0]).means(members, counts_0).tolist()[:2] == pytest.approx([0.25, 1.25 / 3])
    # the first class is not drawn: it has the mean of all, 0.375
    one = replace(resampled_rounds([4, 9, 0]), positives=np.array([[0], [1], [0]]).repeat(3, axis=1))
    assert one.means(members, never)[0] == (0.375 + 0.25) / 2


@pytest.mark.parametrize("images", [1, 2, 3])
def test_what_resamples_hide_of_a_class_of_few_images_is_given_back(images: int) -> None:
    """Nearly: AP is here the mean of what a class's images are worth. Drawn with replacement from many images, each
    comes as often as Poisson's law says."""
    rng = np.random.default_rng(images)
    worth, times = rng.normal(size=(4000, 1, images)), rng.poisson(1, (4000, 200, images))
    drawn = times.sum(axis=2)
    ap = np.where(drawn > 0, (worth * times).sum(axis=2) / np.maximum(drawn, 1), 0.0)
    assert float((HIDDEN[images] * ap).var(axis=1).mean()) == pytest.approx(1 / images, rel=0.2)


def test_a_lone_round_is_added_up_as_it_is_among_others() -> None:
    rng = np.random.default_rng(1)
    ap, positives = rng.random((600, 5)), np.ones((600, 5), np.int64)
    members, never = np.arange(600), np.zeros(600, bool)
    together = Rounds(ap, positives).means(members, never)
    alone = [Rounds(ap[:, at : at + 1], positives[:, at : at + 1]).means(members, never) for at in range(5)]
    assert np.concatenate(alone).tobytes() == together.tobytes()


def test_resamples_are_of_all_models_the_same_and_in_the_order_of_blocks() -> None:
    some, of = counts(1), counts(2)
    models = [rates(some, of), rates(of, some)]
    weights = np.concatenate([block.resamples(70) for block in blocks(Resampling(40, 3))], axis=1)
    (alone,) = resample(models[:1], Resampling(40, 3), "")
    assert alone.ap.tolist() == resample(models, Resampling(40, 3), "")[0].ap.tolist()
    for model, (above, below) in zip(resample(models, Resampling(40, 3), ""), [(some, of), (of, some)], strict=True):
        sums = below @ weights
        assert model.positives.tolist() == sums.tolist()
        assert model.ap.tolist() == np.where(sums > 0, (above @ weights) / np.maximum(sums, 1), 0).tolist()


def test_swaps_give_each_images_output_to_one_side_or_the_other() -> None:
    models = [(counts(1), counts(2)), (counts(3), counts(4))]
    coins = np.concatenate([block.swaps(70) for block in blocks(Resampling(40, 3))], axis=1)
    found = swap_outputs(rates(*models[0]), rates(*models[1]), Resampling(40, 3), "")
    for side, taken in zip(found, (1 - coins, coins), strict=True):
        some, of = (models[0][at] @ taken + models[1][at] @ (1 - taken) for at in (0, 1))
        assert side.positives.tolist() == of.tolist()
        assert side.ap.tolist() == np.where(of > 0, some / np.maximum(of, 1), 0).tolist()


def test_a_difference_is_the_second_less_the_first_and_no_larger_than_it_can_be() -> None:
    rounds, swaps = np.linspace(-1, 2, 50), np.linspace(-1, 1, 50)
    found = difference(0.25, 0.75, rounds, swaps, 30)
    assert (found.before, found.after, found.value) == (0.25, 0.75, 0.5)
    assert found.ci == interval(0.5, rounds, 30, lowest=-math.inf, highest=math.inf)
    assert (found.p, found.p_bootstrap) == (p_swapped(0.5, swaps), p_resampled(0.5, rounds, 30))
    assert found.p != found.p_bootstrap
    assert difference(0.25, 0.75, rounds, swaps, 30, largest=0.75).ci == (-0.75, 0.75)
    assert difference(None, 0.75, rounds, swaps, 30) == Difference(None, 0.75)
    assert difference(0.25, None, rounds, swaps, 30) == Difference(0.25, None)
    assert difference(0.25, 0.75, rounds, swaps, 1) == Difference(0.25, 0.75)  # one image says nothing of others
    assert (Difference(None, 1.0).value, Difference(1.0, None).value, Difference(0.0, 0.0).value) == (None, None, 0.0)


def test_differences_in_counts_are_those_of_each_round() -> None:
    resampling, before, after = Resampling(40, 3), counts(1), counts(2)
    weights = np.concatenate([block.resamples(70) for block in blocks(resampling)], axis=1)
    coins = 1 - 2 * np.concatenate([block.swaps(70) for block in blocks(resampling)], axis=1)
    for found, first, second in zip(count_differences(before, after, resampling), before, after, strict=True):
        rounds = ((second - first) @ weights).astype(np.float64), ((second - first) @ coins).astype(np.float64)
        assert found == difference(int(first.sum()), int(second.sum()), *rounds, 70)


@pytest.mark.parametrize(("grid", "cap"), LIKE)
def test_lists_at_several_thresholds_are_their_mean(grid: tuple[float, ...], cap: int | None) -> None:
    parts = [lists(1, grid, cap), lists(1, grid, cap, right=0.1)]
    both = AveragedLists.average(parts)
    weights = np.random.default_rng(4).integers(0, 4, (IMAGES, 6)).astype(np.int32)
    members = np.arange(4)
    aps = [part.ap(weights)[0] for part in parts]
    ap, positives = both.ap(weights)
    assert ap.tolist() == ((aps[0] + aps[1]) / 2).tolist()
    assert positives.tolist() == parts[0].ap(weights)[1].tolist()
    without: list[Floats] = [left for part in parts if (left := part.without_each_image(members)) is not None]
    assert np.asarray(both.without_each_image(members)).tolist() == ((without[0] + without[1]) / 2).tolist()
    assert both.true_positives == parts[0].true_positives + parts[1].true_positives
    assert both.images == IMAGES
    assert both.images_of_truth(members) == parts[0].images_of_truth(members)


def test_a_class_of_too_many_images_at_one_threshold_has_no_images_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = lists(1, (), None), lists(2, (), None)
    most = max(len(part._select_class(number)[1]) for part in (one, other) for number in range(4))
    members = np.arange(4)
    monkeypatch.setattr("hoicli.resampling.ranked.MOST_LEFT_OUT", most)
    assert AveragedLists.average([one, other]).without_each_image(members) is not None
    monkeypatch.setattr("hoicli.resampling.ranked.MOST_LEFT_OUT", most - 1)
    assert AveragedLists.average([one, other]).without_each_image(members) is None


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
    assert Resampling.from_options(0, 0, or_none=True) == Resampling(0, 0)
    assert Resampling.from_rounds(None, 0) is None
    assert Resampling(0, 4).signature() == {}
    assert Resampling(20, 4).signature() == {"boot": "20", "ci": "student", "seed": "4"}


def test_a_seed_goes_with_rounds() -> None:
    """And is not below 0."""
    said = "--seed 3: goes with --bootstrap N"
    assert complaint(UsageError, Resampling.from_rounds, None, 3) == said
    assert complaint(UsageError, Resampling.from_options, 0, 3, or_none=True) == said
    assert complaint(UsageError, Resampling.from_options, 2, -1).startswith(
        "--seed -1: give a whole number of at least"
    )
