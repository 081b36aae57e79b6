"""Shortcuts of the ranked lists against the plain way; lists cut into strips against the lists themselves."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.records.kit import Floats
from hoicli.resampling.draws import Weights
from hoicli.resampling.pieces import MOST_LAYERS, Strips
from hoicli.resampling.ranked import AveragedLists, RankedLists
from tests.support.project import MonkeyPatch

IMAGES, CLASSES = 40, 9
ELEVEN = PROTOCOLS["hico"].grid
LIKE = [(ELEVEN, None), ((), None), (ELEVEN, 5), ((), 5)]
"""(grid, cap)."""


def lists(seed: int, grid: tuple[float, ...], cap: int | None, *, right: float = 0.3) -> RankedLists:
    """Classes of 0 to 60 predictions; class 4 has none, class 5 no true positive, class 6 nothing else."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 60, CLASSES)
    counts[4] = 0
    owner = np.repeat(np.arange(CLASSES), counts)
    hit = rng.random(len(owner)) < right
    hit[owner == 5], hit[owner == 6] = False, True
    truth_class = np.concatenate([owner[hit], rng.integers(0, CLASSES, 30)])
    return RankedLists(
        hit=hit, image=rng.integers(0, IMAGES, len(owner)), bounds=np.concatenate([[0], np.cumsum(counts)]),
        truth_image=rng.integers(0, IMAGES, len(truth_class)), truth_class=truth_class, images=IMAGES, grid=grid,
        cap=cap,
    )  # fmt: skip


@pytest.mark.parametrize(("grid", "cap"), LIKE)
def test_the_other_side_is_what_its_own_weights_give(grid: tuple[float, ...], cap: int | None) -> None:
    one, two = lists(1, grid, cap), lists(2, grid, cap, right=1.0)
    coins = np.random.default_rng(3).integers(0, 2, (IMAGES, 16)).astype(np.int32)
    weights = np.concatenate([1 - coins, coins])
    for mixed in (
        one.join_outputs(two),
        AveragedLists.average([one, two]).join_outputs(AveragedLists.average([two, one])),
    ):
        sides = mixed.ap_of_sides(weights)
        for (ap, positives), side in zip(sides, (weights, 1 - weights), strict=True):
            expected = mixed.ap(side)
            assert ap.tobytes() == expected[0].tobytes()
            assert positives.tolist() == expected[1].tolist()


@pytest.mark.parametrize(("grid", "cap"), LIKE)
@pytest.mark.parametrize("at_once", [1, 7, 30])
def test_a_few_classes_at_a_time_are_all_of_them(
    monkeypatch: MonkeyPatch, grid: tuple[float, ...], cap: int | None, at_once: int
) -> None:
    weights = np.random.default_rng(4).integers(0, 4, (IMAGES, 16)).astype(np.int32)
    whole, again = lists(5, grid, cap), lists(5, grid, cap)
    expected = whole.ap(weights)
    assert len(whole._prepared.pieces) == 1
    monkeypatch.setattr("hoicli.resampling.ranked.ROWS_AT_ONCE", at_once)
    assert len(again._prepared.pieces) > 1
    found = again.ap(weights)
    assert found[0].tobytes() == expected[0].tobytes()
    assert found[1].tolist() == expected[1].tolist()
    assert found[0].any()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scored", [True, False])
def test_two_lists_become_one_by_place_then_image_then_model(seed: int, scored: bool) -> None:
    """The place is that among the predictions of all classes; without scores, among those of the class."""
    one, two = lists(seed, ELEVEN, None), lists(seed + 100, ELEVEN, None)
    entries, parts = [], []
    for model, part in enumerate((one, two)):
        owner = np.repeat(np.arange(CLASSES), np.diff(part.bounds))
        place = np.arange(len(part.hit)) - part.bounds[owner]
        score = None
        if scored:
            score = np.random.default_rng(seed + model).random(len(owner))
            score = score[np.lexsort((-score, owner))]
            place = np.argsort(np.argsort(-score))
        parts.append(replace(part, score=score))
        columns = (owner, place, part.image, np.full(len(owner), model), part.hit)
        entries += list(zip(*(column.tolist() for column in columns), strict=True))
    mixed = parts[0].join_outputs(parts[1])
    ordered = sorted(entries)
    assert mixed.hit.tolist() == [hit for *_, hit in ordered]
    assert mixed.image.tolist() == [image + model * IMAGES for _, _, image, model, _ in ordered]
    assert mixed.bounds.tolist() == (one.bounds + two.bounds).tolist()


def one_by_one(lists: RankedLists, weights: Weights) -> Floats:
    """[C, R] the AP of each class in each round, counted from prediction to prediction."""
    ap = np.zeros((CLASSES, weights.shape[1]))
    for number, times in itertools.product(range(CLASSES), range(weights.shape[1])):
        start, end = lists.bounds[number : number + 2].tolist()
        asked = int(weights[lists.truth_image[lists.truth_class == number], times].sum())
        found = rank = reached = 0
        steps, precisions = [], []
        for hit, image in zip(lists.hit[start:end].tolist(), lists.image[start:end].tolist(), strict=True):
            copies = int(weights[image, times])
            if lists.cap is not None:
                copies = min(copies, max(lists.cap - rank, 0))
            rank += copies
            if hit:
                found += copies
                precisions.append(found / max(rank, 1))
                before, reached = reached, sum(found / max(asked, 1) >= point for point in lists.grid)
                steps.append(reached - before if lists.grid else copies)
        best = itertools.accumulate(reversed(precisions), max)
        total = 0.0
        for precision, step in zip(reversed([*best]), steps, strict=True):
            total += precision * step
        ap[number, times] = total / (len(lists.grid) or max(asked, 1))
    return ap


@pytest.mark.parametrize(("grid", "cap"), LIKE)
@pytest.mark.parametrize(("often", "widest"), [(3, 2047), (3, 2), (9000, 4), (40_000, 2047)])
def test_many_rounds_at_once_are_each_counted_one_by_one(
    monkeypatch: MonkeyPatch, grid: tuple[float, ...], cap: int | None, often: int, widest: int
) -> None:
    """With counts that are small numbers and counts that are not, in rows that are cut."""
    monkeypatch.setattr("hoicli.resampling.pieces.WIDEST", widest)
    drawn = np.random.default_rng(6).integers(0, 4, (IMAGES, 5)).astype(np.int32)
    for right in (0.1, 0.8):
        ranked = lists(7, grid, cap, right=right)
        for weights in (drawn, np.where(drawn == 3, np.int32(often), drawn)):
            assert ranked.ap(weights)[0] == pytest.approx(one_by_one(ranked, weights), abs=1e-14)


@pytest.mark.parametrize(("area", "grid"), [("envelope", ()), ("trapezoid", ()), ("envelope", ELEVEN)])
@pytest.mark.parametrize(("cap", "right"), [(None, 0.4), (5, 0.4), (None, 1.0)])
def test_true_positives_of_different_worth(area: str, grid: tuple[float, ...], cap: int | None, right: float) -> None:
    """Copies of one are one step: precision and recall are taken before the first and after the last of them."""
    unit, ranked = 8, lists(8, grid, cap, right=right)
    rng = np.random.default_rng(9)
    gain = np.where(ranked.hit, rng.integers(1, unit + 1, len(ranked.hit)), 0)
    weights = rng.integers(0, 4, (IMAGES, 4)).astype(np.int32)
    found, positives = replace(ranked, gain=gain, unit=unit, area=area).ap(weights)
    for number, times in itertools.product(range(CLASSES), range(weights.shape[1])):
        rank = worth = 0
        before, after, steps = [], [], []
        for at in range(*ranked.bounds[number : number + 2].tolist()):
            copies = int(weights[ranked.image[at], times])
            copies = copies if cap is None else min(copies, cap - rank)
            if ranked.hit[at] and copies:
                before.append(worth / rank if rank else unit)
            rank, worth = rank + copies, worth + copies * int(gain[at])
            if ranked.hit[at] and copies:
                after.append(worth / rank)
                steps.append(copies * int(gain[at]))
        if area == "envelope":
            after = [*itertools.accumulate(reversed(after), max)][::-1]
        if area == "trapezoid":
            after = [(one + two) / 2 for one, two in zip(before, after, strict=True)]
        asked = int(weights[ranked.truth_image[ranked.truth_class == number], times].sum())
        assert positives[number, times] == asked
        if grid:  # each point is a step of the same width, as high as the first to reach its recall
            worths = [-1, *itertools.accumulate(steps)]
            reached = np.diff([sum(worth >= point * asked * unit for point in grid) for worth in worths])
            steps = [step * asked * unit / len(grid) for step in reached.tolist()]
        under = sum(height * step for height, step in zip(after, steps, strict=True))
        if asked:
            assert found[number, times] == pytest.approx(under / (asked * unit * unit))


def left_out(ranked: RankedLists, members: list[int]) -> Floats:
    """[N] mAP without each image, evaluated again: of the classes that still have ground truth, or never had any."""
    whole = ranked.ap(np.ones((IMAGES, 1), dtype=np.int32))[1][:, 0]
    ap, positives = ranked.ap((1 - np.eye(IMAGES)).astype(np.int32))
    kept = [[number for number in members if positives[number, at] or not whole[number]] for at in range(IMAGES)]
    return np.array([sum(ap[number, at] for number in kept[at]) / max(len(kept[at]), 1) for at in range(IMAGES)])


def few(seed: int, right: float = 0.3) -> RankedLists:
    """Class 1 has one image of ground truth, class 2 two triplets in one image, class 3 none."""
    ranked = lists(seed, ELEVEN, None, right=right)
    kept = ~np.isin(ranked.truth_class, [1, 2, 3])
    return replace(
        ranked,
        hit=ranked.hit & ~np.isin(np.repeat(np.arange(CLASSES), np.diff(ranked.bounds)), [1, 2, 3]),
        truth_image=np.append(ranked.truth_image[kept], [4, 7, 7]),
        truth_class=np.append(ranked.truth_class[kept], [1, 2, 2]),
    )


@pytest.mark.parametrize("members", [[0, 1, 2, 3, 4, 5, 6, 7, 8], [1], [3], [1, 3], [2, 0]])
@pytest.mark.parametrize("at_once", [1, 512])
def test_an_image_left_out_is_a_run_without_it(monkeypatch: MonkeyPatch, members: list[int], at_once: int) -> None:
    monkeypatch.setattr("hoicli.resampling.ranked.IMAGES_AT_ONCE", at_once)
    for right in (0.3, 1.0):
        found = few(10, right).without_each_image(np.array(members))
        assert found is not None
        assert found == pytest.approx(left_out(few(10, right), members), abs=1e-12)


@pytest.mark.parametrize("points", [127, 128, 300])
@pytest.mark.parametrize("right", [0.8, 1.0])
def test_a_grid_of_many_points(points: int, right: float) -> None:
    """More than a small number can count, all of them reached."""
    ranked = lists(7, tuple(at / (points - 1) for at in range(points)), None, right=right)
    owner = np.repeat(np.arange(CLASSES), np.diff(ranked.bounds))
    hit = ranked.hit | (right == 1)
    ranked = replace(ranked, hit=hit, truth_image=ranked.image[hit], truth_class=owner[hit])
    weights = np.random.default_rng(6).integers(0, 4, (IMAGES, 3)).astype(np.int32)
    assert ranked.ap(weights)[0] == pytest.approx(one_by_one(ranked, weights), abs=1e-14)


def test_an_image_may_hold_more_than_sixteen_bits_count() -> None:
    """One class: 40,000 true positives of image 0, of twice as much ground truth, then 20,000 false ones."""
    hit = np.repeat([True, False], [40_000, 20_000])
    one = RankedLists(
        hit=hit, image=np.zeros(len(hit), dtype=np.int64), bounds=np.array([0, len(hit)]),
        truth_image=np.zeros(80_000, dtype=np.int64), truth_class=np.zeros(80_000, dtype=np.int64),
        images=2, grid=(0.0, 0.5, 1.0), cap=None,
    )  # fmt: skip
    ap, positives = one.ap(np.array([[1, 0, 3], [1, 2, 0]], dtype=np.int32))
    assert positives.tolist() == [[80_000, 0, 240_000]]
    assert ap == pytest.approx(np.array([[2 / 3, 0, 2 / 3]]))


COUNTS = [[1], [3, 1], [8, 8, 7], [9, 8, 1], [16, 9, 2], [17, 17, 16, 5, 1], [40, 3]]


def laid_out(
    counts: list[int],
) -> tuple[Strips, list[list[list[int]]], np.ndarray[tuple[int, ...], np.dtype[np.int64]]]:
    """(strips, the rows of each list, the rows in layers), two rounds each."""
    strips = Strips(np.array(counts, dtype=np.int64))
    rows = np.random.default_rng(len(counts)).integers(0, 9, (sum(counts), 2))
    laid = np.zeros((strips.size, 2), dtype=np.int64)
    laid[strips.place] = rows
    ends = itertools.accumulate(counts)
    return strips, [rows[end - count : end].tolist() for count, end in zip(counts, ends, strict=True)], laid


@pytest.mark.parametrize("counts", COUNTS)
def test_each_row_has_a_place_of_its_own_and_little_is_filled_up(counts: list[int]) -> None:
    strips, _, _ = laid_out(counts)
    layers = min(max(counts), MOST_LAYERS)
    assert len(set(strips.place.tolist())) == sum(counts)
    assert strips.size == layers * sum(-(-count // layers) for count in counts)
    owner = np.tile(strips.owner, layers)
    assert owner[strips.place].tolist() == np.repeat(np.arange(len(counts)), counts).tolist()


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("operation", [np.add, np.maximum])
@pytest.mark.parametrize("backwards", [False, True])
def test_running_totals_go_down_each_list(counts: list[int], operation: np.ufunc, *, backwards: bool) -> None:
    strips, rows, laid = laid_out(counts)
    found = strips.running(operation, strips.layers(laid).copy(), backwards=backwards).reshape(-1, 2)[strips.place]
    step = -1 if backwards else 1
    expected = [operation.accumulate(np.array(each)[::step])[::step].tolist() for each in rows]
    assert found.tolist() == list(itertools.chain.from_iterable(expected))


@pytest.mark.parametrize("counts", COUNTS)
def test_a_step_is_what_a_row_has_more_than_the_one_before(counts: list[int]) -> None:
    strips, rows, laid = laid_out(counts)
    found = strips.steps(strips.layers(laid)).reshape(-1, 2)[strips.place]
    expected = [np.diff(np.array(each), axis=0, prepend=[[0, 0]]).tolist() for each in rows]
    assert found.tolist() == list(itertools.chain.from_iterable(expected))
