"""Many evaluations in place of one, against each by itself: counts over images, whose sums can be taken by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from hoicli.records.kit import Floats, Ints
from hoicli.resampling.comparison import Difference, count_differences, difference
from hoicli.resampling.draws import Resampling, blocks
from hoicli.resampling.intervals import interval, p_resampled, p_swapped
from hoicli.resampling.ranked import AveragedLists
from hoicli.resampling.rounds import Rounds, resampled, swapped
from hoicli.resampling.sums import ImageSums, rate
from tests.resampling.test_ranked import IMAGES, LIKE, lists


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
    (alone,) = resampled(models[:1], Resampling(40, 3), "")
    assert alone.ap.tolist() == resampled(models, Resampling(40, 3), "")[0].ap.tolist()
    for model, (above, below) in zip(resampled(models, Resampling(40, 3), ""), [(some, of), (of, some)], strict=True):
        sums = below @ weights
        assert model.positives.tolist() == sums.tolist()
        assert model.ap.tolist() == np.where(sums > 0, (above @ weights) / np.maximum(sums, 1), 0).tolist()


def test_swaps_give_each_images_output_to_one_side_or_the_other() -> None:
    models = [(counts(1), counts(2)), (counts(3), counts(4))]
    coins = np.concatenate([block.swaps(70) for block in blocks(Resampling(40, 3))], axis=1)
    found = swapped(rates(*models[0]), rates(*models[1]), Resampling(40, 3), "")
    for side, taken in zip(found, (1 - coins, coins), strict=True):
        some, of = (models[0][at] @ taken + models[1][at] @ (1 - taken) for at in (0, 1))
        assert side.positives.tolist() == of.tolist()
        assert side.ap.tolist() == np.where(of > 0, some / np.maximum(of, 1), 0).tolist()


def test_a_difference_is_the_second_less_the_first_and_no_larger_than_it_can_be() -> None:
    rounds, swaps = np.linspace(-1, 2, 50), np.linspace(-1, 1, 50)
    found = difference(0.25, 0.75, rounds, swaps)
    assert (found.before, found.after, found.value) == (0.25, 0.75, 0.5)
    assert found.ci == interval(0.5, rounds, lowest=-math.inf, highest=math.inf)
    assert (found.p, found.p_bootstrap) == (p_swapped(0.5, swaps), p_resampled(0.5, rounds))
    assert found.p != found.p_bootstrap
    assert difference(0.25, 0.75, rounds, swaps, most=0.75).ci == (-0.75, 0.75)
    assert difference(None, 0.75, rounds, swaps) == Difference(None, 0.75)
    assert difference(0.25, None, rounds, swaps) == Difference(0.25, None)
    assert (Difference(None, 1.0).value, Difference(1.0, None).value, Difference(0.0, 0.0).value) == (None, None, 0.0)


def test_differences_in_counts_are_those_of_each_round() -> None:
    resampling, before, after = Resampling(40, 3), counts(1), counts(2)
    weights = np.concatenate([block.resamples(70) for block in blocks(resampling)], axis=1)
    coins = 1 - 2 * np.concatenate([block.swaps(70) for block in blocks(resampling)], axis=1)
    for found, first, second in zip(count_differences(before, after, resampling), before, after, strict=True):
        rounds = ((second - first) @ weights).astype(np.float64), ((second - first) @ coins).astype(np.float64)
        assert found == difference(int(first.sum()), int(second.sum()), *rounds)


@pytest.mark.parametrize(("grid", "cap"), LIKE)
def test_lists_at_several_thresholds_are_their_mean(grid: tuple[float, ...], cap: int | None) -> None:
    parts = [lists(1, grid, cap), lists(1, grid, cap, right=0.1)]
    both = AveragedLists.of(parts)
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
    most = max(len(part._one_class(number)[1]) for part in (one, other) for number in range(4))
    members = np.arange(4)
    monkeypatch.setattr("hoicli.resampling.ranked.MOST_LEFT_OUT", most)
    assert AveragedLists.of([one, other]).without_each_image(members) is not None
    monkeypatch.setattr("hoicli.resampling.ranked.MOST_LEFT_OUT", most - 1)
    assert AveragedLists.of([one, other]).without_each_image(members) is None
