"""What a tally says: lists, counts of predictions without a class, ties, the classes and subsets that means are over;
and its average precision: closed forms, and the three 11-point grids to the last bit."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from hoicli.errors import UsageError
from hoicli.evaluation.evaluating import match_batches
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.pairing import OUTCOME_CODES, TRUE_POSITIVE
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.ranking import enveloped_ap, interpolated_ap, per_class, ranked_ap, ranking
from hoicli.evaluation.recall_grids import GRID_ARANGE, GRID_LINSPACE, GRID_TENTHS
from hoicli.evaluation.selection import choose_protocols
from hoicli.evaluation.tally import Tally, subset_classes
from hoicli.evaluation.views import Views
from hoicli.records.intake import ErrorPolicy
from hoicli.resampling.ranked import RankedLists
from tests.support.kernel import HICO, ground_truth, lines, tally
from tests.support.project import GT, PREDICTIONS, records

TRUTH, PREDICTED = records(GT), records(PREDICTIONS)
IDS = sorted(record["image_id"] for record in TRUTH)
ROWS = choose_protocols(["all"], "hico")
DROPPED = OUTCOME_CODES["over_the_cap"]


@cache
def of_fixtures() -> Tally:
    views = Views.parse(["0.5", "0.3:0.7:0.2"], [], HICO)
    return tally(TRUTH, PREDICTED, [*ROWS, *views.views_of([PROTOCOLS["hico"]])])


def given(*batches: tuple[str, list[tuple[int, float, int]]], classes: int = 600) -> Tally:
    """A tally of `hico` by hand: (image, [(class, score, code)])."""
    found = Tally([PROTOCOLS["hico"]], classes)
    for name, rows in batches:
        number, score, code = (np.array([row[side] for row in rows]) for side in range(3))
        found.add(
            [name], np.zeros(len(rows), dtype=np.int64), number.astype(np.int64), score.astype(np.float64),
            {"hico": code.astype(np.uint8)},
        )  # fmt: skip
        right = number[code == TRUE_POSITIVE]
        found.add_annotated("hico", [name], np.zeros(len(right), dtype=np.int64), right)
    return found


@pytest.mark.parametrize("ids", [IDS, ["another", *reversed(IDS)]])
def test_ranked_lists_give_the_results_and_know_their_images(ids: list[str]) -> None:
    found = of_fixtures()
    ranked = list(found.ranked_results(HICO, ids))
    hits: Counter[str] = Counter()
    for batch, outcomes in match_batches(lines(PREDICTED), ground_truth(TRUTH), ROWS, Filters(), ErrorPolicy()):
        for row in np.flatnonzero(outcomes["diag"].code == TRUE_POSITIVE):
            hits[batch.predictions.image_ids[batch.predictions.image_of_hoi[row]]] += 1
    for (protocol, results, lists), (same, plain) in zip(ranked, found.results(HICO), strict=True):
        assert protocol == same
        for name in ("ap", "max_recall", "positives", "in_mean"):
            assert getattr(results, name).tolist() == getattr(plain, name).tolist()
        ap = lists.ap(np.ones((len(ids), 1), dtype=np.int32))[0][:, 0]
        assert ap == pytest.approx(plain.ap, abs=1e-12)
        assert lists.images == len(ids)
        if protocol == PROTOCOLS["diag"]:
            assert isinstance(lists, RankedLists)
            assert Counter(ids[row] for row in lists.image[lists.hit]) == hits
    assert len(ranked) == len(ROWS) + 4
    assert sum(protocol.mean_of != () for protocol, _, _ in ranked) == 1


def test_scores_stand_by_class_and_fall() -> None:
    found = of_fixtures()
    plain = {row.key: results for row, results in found.results(HICO)}
    scored = list(found.scored_results(HICO))
    assert [row.key for row, _, _ in scored] == [*(row.key for row in ROWS), "hico|0.5", "hico|0.3", "hico|0.7"]
    for row, results, lists in scored:
        assert results.ap.tolist() == plain[row.key].ap.tolist()
        assert len(lists.hit) == len(lists.score) == lists.bounds[-1]
        for start, end in zip(lists.bounds[:-1], lists.bounds[1:], strict=True):
            assert (np.diff(lists.score[start:end]) <= 0).all()
        of_class = np.add.reduceat(np.r_[lists.hit, False].astype(np.int64), lists.bounds[:-1])
        of_class[np.diff(lists.bounds) == 0] = 0
        recall = np.divide(of_class, results.positives, out=np.zeros(len(of_class)), where=results.positives > 0)
        if row.predictions_per_class is None:
            assert recall.tolist() == results.max_recall.tolist()


def test_ranking_is_by_class_then_score_then_arrangement() -> None:
    classes, score = np.array([1, 0, 1, 0, 1]), np.array([0.5, 0.1, 0.5, 0.2, 0.9])
    assert ranking(classes, score).tolist() == [3, 1, 4, 0, 2]
    assert ranking(classes, score, lambda rows: [4 - rows]).tolist() == [3, 1, 4, 2, 0]
    apart = np.array([0.5, 0.1, 0.4, 0.2, 0.9])
    assert ranking(classes, apart, lambda _: pytest.fail("no two are equal")).tolist() == [3, 1, 4, 0, 2]
    # so many that a sort which is not stable would show
    scores = [0.1 * (number * 7 % 5) for number in range(3000)]
    numbers = [number * 11 % 3 for number in range(3000)]
    expected = sorted(range(3000), key=lambda row: (numbers[row], -scores[row], row))
    assert ranking(np.array(numbers), np.array(scores)).tolist() == expected


def test_a_tally_of_nothing_has_results_of_nothing() -> None:
    for row in (PROTOCOLS["hico"], replace(PROTOCOLS["hico"], by_verb=True)):
        found = Tally([row], 600)
        ((_, results),) = found.results(HICO)
        assert results.ap.tolist() == [0.0] * (len(HICO.verbs) if row.by_verb else 600)
        assert (found.image_ids, found.listed.classless(), found.listed.classless_best()) == ([], 0, (0, 0))
        ((_, _, lists),) = found.scored_results(HICO)
        assert (lists.score.dtype, len(lists.hit)) == (np.dtype(np.float64), 0)


@pytest.mark.parametrize(("rows", "expected"), [
    ([(0, 0.5, 0), (-1, 0.4, 0)], (0, 1)),
    ([(0, 0.4, 0), (-1, 0.5, 0)], (1, 1)),
    ([(0, 0.5, 0), (-1, 0.5, 0)], (0, 1)),  # of equals the first
    ([(-1, 0.5, 0), (0, 0.5, 0)], (1, 1)),
])  # fmt: skip
def test_the_best_of_an_image_may_have_no_class(rows: list[tuple[int, float, int]], expected: tuple[int, int]) -> None:
    assert given(("a", rows)).listed.classless_best() == expected
    assert given(("a", [(0, 0.01, 0)]), ("b", rows)).listed.classless_best() == (expected[0], 2)


def test_ranks_count_what_counts_up_to_a_true_positive() -> None:
    """Class 0: false, dropped, true; class 1: nothing; class 2: true, true, and one true after a cap."""
    code = np.array([0, DROPPED, TRUE_POSITIVE, TRUE_POSITIVE, TRUE_POSITIVE, 0, TRUE_POSITIVE], dtype=np.uint8)
    bounds, positives = np.array([0, 3, 3, 7]), np.array([1, 2, 4])
    area = replace(PROTOCOLS["hico"], grid=())
    ap, recall = per_class(code, bounds, positives, area)
    assert ap == pytest.approx([1 / 2, 0, (1 + 1 + 3 / 4) / 4])
    assert recall.tolist() == [1.0, 0.0, 0.75]
    for cap, hits in ((1, 1), (2, 2), (3, 2), (4, 3)):
        ap, recall = per_class(code, bounds, positives, replace(area, predictions_per_class=cap))
        assert recall.tolist() == [float(cap > 1), 0.0, hits / 4]
    assert ranked_ap(np.array([1]), np.array([0, 1]), np.array([1]), PROTOCOLS["hico"])[0] == pytest.approx([1.0])


def test_a_mean_of_verbs_has_no_zero_shot_split() -> None:
    by_verb = replace(PROTOCOLS["hico"], by_verb=True)
    with pytest.raises(UsageError) as error:
        subset_classes(HICO, by_verb, split="rare_first")
    assert str(error.value) == "--split rare_first: hico averages verbs, and splits are of interactions"


def one(ranks: list[int], positives: int, grid: tuple[float, ...] = GRID_TENTHS) -> float:
    """The AP of a single class."""
    return float(interpolated_ap(np.array(ranks), np.array([0, len(ranks)]), np.array([positives]), grid)[0])


def test_the_grids_are_those_of_their_libraries() -> None:
    assert np.arange(0, 1.1, 0.1).tolist() == list(GRID_ARANGE)
    # torch.linspace in float64 counts up from the start to the middle and down from the end after it
    step = (1.0 - 0.0) / 10
    assert [step * i if i < 5 else 1.0 - step * (10 - i) for i in range(11)] == list(GRID_LINSPACE)
    assert [i / 10 for i in range(11)] == list(GRID_TENTHS)


@pytest.mark.parametrize(("found", "arange", "linspace", "tenths"), [
    (1, 2, 2, 2), (2, 3, 3, 3), (3, 3, 3, 4), (5, 6, 6, 6), (6, 6, 7, 7), (7, 7, 8, 8), (8, 9, 9, 9),
    (10, 11, 11, 11),
])  # fmt: skip
def test_a_recall_of_exactly_so_many_tenths(found: int, arange: int, linspace: int, tenths: int) -> None:
    """With perfect precision the AP counts the grid points reached: 3/10, 6/10 and 7/10 are where grids differ."""
    ranks = list(range(1, found + 1))
    for grid, points in ((GRID_ARANGE, arange), (GRID_LINSPACE, linspace), (GRID_TENTHS, tenths)):
        assert one(ranks, 10, grid) == pytest.approx(points / 11)


@pytest.mark.parametrize(("ranks", "positives", "ap"), [
    ([1], 1, 1.0),
    ([2], 1, 0.5),
    ([1, 2], 2, 1.0),
    ([2, 3], 2, 2 / 3),  # the envelope: precision 1/2 at recall 1/2 is lifted to 2/3
    ([1, 4], 2, (6 * 1 + 5 * 0.5) / 11),
    ([], 5, 0.0),
    ([], 0, 0.0),
])  # fmt: skip
def test_closed_forms(ranks: list[int], positives: int, ap: float) -> None:
    assert one(ranks, positives) == pytest.approx(ap)


@pytest.mark.parametrize(("ranks", "positives", "ap"), [
    ([1], 1, 1.0),
    ([2], 1, 0.5),
    ([2, 3], 2, 2 / 3),  # the envelope: precision 1/2 at recall 1/2 is lifted to 2/3
    ([1, 4], 2, (1 + 0.5) / 2),
    ([1, 4], 4, (1 + 0.5) / 4),  # what is never found adds nothing
    ([3, 4, 5], 3, 3 / 5),
    ([], 5, 0.0),
    ([], 0, 0.0),
])  # fmt: skip
def test_closed_forms_of_the_envelope(ranks: list[int], positives: int, ap: float) -> None:
    first, second = np.array([*ranks, 1], dtype=np.int64), np.array([0, len(ranks), len(ranks) + 1])
    assert enveloped_ap(first, second, np.array([positives, 1])).tolist() == pytest.approx([ap, 1.0])
