"""SHOE's matching: every line of both algorithms by hand; which prediction each ground truth takes, greedily, or so
that an image has the greatest similarity."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.errors import DataError
from hoicli.records.kit import Ints
from hoicli.shoe.explanation import explain
from hoicli.shoe.scores import scores_of
from hoicli.shoe.triplet_matching import UNIT, greedy, optimal
from tests.support.project import Record
from tests.support.shoe import AWAY, image, pairs, scored, shoe_of


def test_the_most_similar_wins_then_the_score_then_the_order() -> None:
    truth = [image(("pet", "giraffe"))]
    found = image(("touch", "giraffe", 0.9), ("pet", "giraffe", 0.1), ("pet", "giraffe", 0.3), ("pet", "giraffe", 0.3))
    shoe = shoe_of(truth, [found])
    assert pairs(shoe) == [(2, 1.0)]
    for hoi in found["hois"]:
        del hoi["score"]
    assert pairs(shoe_of(truth, [found])) == [(1, 1.0)]  # without scores the order alone


def test_equal_similarities_tie_whatever_floats_say() -> None:
    similar = {("wash.v.01", "one.v.01"): 0.1, ("wash.v.01", "two.v.01"): 0.3}
    similar |= {("train.n.01", "three.n.01"): 0.7, ("train.n.01", "four.n.01"): 0.5}
    assert 0.1 + 0.7 < 0.3 + 0.5
    found = image(("two", "four", 0.1), ("one", "three", 0.9))
    assert pairs(shoe_of([image(("wash", "train"))], [found], similar)) == [(1, 0.4)]
    # and a delta of 0.4 is reached
    away = image(("one", "three", 0.9, [50, 0, 60, 10]))
    assert shoe_of([image(("wash", "train"))], [away], similar, delta="0.4").counts_against.tolist() == [True]


def test_both_boxes_need_an_iou_of_half_at_least() -> None:
    truth = [image(("pet", "giraffe"))]
    half = [20, 0, 30, 5]  # exactly 0.5 between edges; in inclusive pixels more
    assert pairs(shoe_of(truth, [image(("pet", "giraffe", 0.9, half))])) == [(0, 1.0)]
    less = [20, 0, 30, 4.999]
    assert pairs(shoe_of(truth, [image(("pet", "giraffe", 0.9, less))])) == [None]
    far = image(("pet", "giraffe", 0.9))
    far["boxes"][0] = [0, 0, 10, 4]
    assert pairs(shoe_of(truth, [far])) == [None]
    far["boxes"][0] = [0, 0, 10, 5]
    (row,) = explain(shoe := shoe_of(truth, [far]), shoe.match())
    assert (row["iou_subject"], row["iou_object"]) == (0.5, 1.0)


def test_actions_without_an_object() -> None:
    shoe = shoe_of([image(("wash", None))], [image(("clean", None, 0.9))])
    assert pairs(shoe) == [(0, 0.7)]  # the verbs alone
    assert pairs(shoe_of([image(("wash", None))], [image(("wash", "train", 0.9))])) == [None]
    assert pairs(shoe_of([image(("wash", "train"))], [image(("wash", None, 0.9))])) == [None]
    shoe = shoe_of([image(("wash", "train"))], [image(("wash", None, 0.9))])
    assert shoe.nearest_similarity.tolist() == [UNIT // 2]  # right verb, no object


def test_an_unmatched_prediction_counts_from_delta_on() -> None:
    truth = [image(("pet", "giraffe"))]
    found = [image(("pet", "giraffe", 0.9), ("touch", "giraffe", 0.95, AWAY))]
    shoe = shoe_of(truth, found, delta="0.775")
    assert shoe.counts_against.tolist() == [True, True]
    assert scored(truth, found, delta="0.775").soft_map == 0.5
    assert scored(truth, found, delta="0.776").soft_map == 1.0
    assert scored(truth, found, delta="0.776").prediction_miss_rate == 0.5  # unmatched all the same


def test_the_most_similar_class_is_the_first_of_equals() -> None:
    truth = [image(("fly", "kite"), ("pet", "giraffe"), ("wash", "giraffe"))]
    shoe = shoe_of(truth, [image(("eat", "giraffe", 0.9, AWAY))], delta="0.5")
    assert shoe.nearest.tolist() == [1]
    assert shoe.nearest_similarity.tolist() == [UNIT // 2]
    rows = scores_of(shoe, shoe.match()).classes
    found = [(row.verb, row.object, row.positives) for row in rows]
    assert found == [("fly", "kite", 1), ("pet", "giraffe", 1), ("wash", "giraffe", 1)]


@pytest.mark.parametrize(("options", "expected"), [
    ({}, 0.5 * 0.4 + 0.5 * 0.9), ({"verb_weight": 0.8}, 0.8 * 0.4 + 0.2 * 0.9), ({"verb_weight": 1.0}, 0.4),
    ({"combine": "geometric"}, (0.4 * 0.9) ** 0.5),
    ({"combine": "geometric", "verb_weight": 0.25}, 0.4**0.25 * 0.9**0.75),
    ({"combine": "geometric", "verb_weight": 0.0}, 0.9), ({"combine": "min"}, 0.4),
])  # fmt: skip
def test_how_verb_and_object_combine(options: dict[str, Any], expected: float) -> None:
    similar = {("pet.v.01", "stroke.v.01"): 0.4, ("giraffe.n.01", "calf.n.01"): 0.9}
    shoe = shoe_of([image(("pet", "giraffe"))], [image(("stroke", "calf", 0.9))], similar, **options)
    (pair,) = pairs(shoe)
    assert pair is not None
    assert pair[1] == pytest.approx(expected, abs=1e-9)


def crowd(verbs: list[str], count: int, *, scored: bool) -> Record:
    """An image of many triplets, each pair of boxes beside the next."""
    hois = []
    for number in range(count):
        score = (number % 7 / 7,) if scored else (None,)
        hois.append((verbs[number % len(verbs)], "giraffe", *score, [20 + number // 9, 0, 30 + number // 9, 10]))
    return image(*hois)


def test_an_image_compared_in_parts_is_the_image_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = crowd(["pet", "ride"], 40, scored=False), crowd(["touch", "feed", "ride"], 60, scored=True)
    whole = shoe_of([truth], [found])
    for module in ("evaluation.pairing", "shoe.triplet_matching"):
        monkeypatch.setattr(f"hoicli.{module}.PAIRS_AT_ONCE", 100)
    parts = shoe_of([truth], [found])
    assert pairs(parts) == pairs(whole)
    each = [column.tolist() for column in whole.overlapping_pairs]
    assert [column.tolist() for column in parts.overlapping_pairs] == each
    assert parts.nearest.tolist() == whole.nearest.tolist()


def test_an_image_of_too_many_pairs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, found = crowd(["pet"], 40, scored=False), crowd(["touch"], 60, scored=True)
    monkeypatch.setattr("hoicli.shoe.triplet_matching.MOST_PAIRS", 100)
    with pytest.raises(
        DataError, match=r"^image 'a': more than 100 pairs of predicted and annotated triplets overlap;"
    ):
        shoe_of([truth], [found])
    monkeypatch.setattr("hoicli.evaluation.pairing.MOST_PAIRS", 2399)
    with pytest.raises(DataError, match=r"^image 'a': 2,400 pairs of predicted and annotated triplets, at most 2,399"):
        shoe_of([truth], [found])


TRUTH = [image(("sit_on", "bike"), ("ride", "bike"))]


def test_the_order_of_annotation_and_what_it_costs() -> None:
    """`sit_on` comes first and takes `ride` (0.7); `ride` is left with `hold` (0.55). Or `hold` and `ride`."""
    found = [image(("ride", "bike", 0.9), ("hold", "bike", 0.5))]
    shoe = shoe_of(TRUTH, found)
    assert pairs(shoe) == [(0, 0.7), (1, 0.55)]
    rows = list(explain(shoe, shoe.match()))
    assert "better_prediction" not in rows[0]
    better = {key: rows[1][key] for key in rows[1] if key.startswith("better")}
    assert better == {"better_prediction": 0, "better_similarity": 1.0, "better_taken_by": 0}
    best = shoe_of(TRUTH, found, assignment="optimal")
    assert pairs(best) == [(1, 0.55), (0, 1.0)]
    rows = list(explain(best, best.match()))
    assert (rows[0]["better_prediction"], rows[0]["better_taken_by"]) == (0, 1)
    assert "better_prediction" not in rows[1]


def test_missed_since_the_only_prediction_was_taken() -> None:
    shoe = shoe_of(TRUTH, [image(("ride", "bike", 0.9))])
    missed = list(explain(shoe, shoe.match()))[1]
    assert (missed["outcome"], missed["prediction"], missed["better_prediction"]) == ("missed", None, 0)
    assert missed["better_taken_by"] == 0


def test_of_equals_the_higher_score_and_then_the_order() -> None:
    found = [image(("ride", "bike", 0.2), ("ride", "bike", 0.9), ("ride", "bike", 0.9))]
    assert pairs(shoe_of([image(("ride", "bike"))], found, assignment="optimal")) == [(1, 1.0)]
    rides = [image(("ride", "bike"), ("ride", "bike"))]
    assert pairs(shoe_of(rides, found, assignment="optimal")) == [(1, 1.0), (2, 1.0)]


def test_a_floor_leaves_ground_truth_missed_and_its_prediction_loose() -> None:
    found = [image(("ride", "bike", 0.9), ("hold", "bike", 0.5))]
    for how, expected in (("greedy", [(0, 0.7), None]), ("optimal", [None, (0, 1.0)])):
        shoe = shoe_of(TRUTH, found, assignment=how, min_similarity=0.6)
        assert pairs(shoe) == expected
        scores = scored(TRUTH, found, assignment=how, min_similarity=0.6)
        assert (scores.gt_miss_rate, scores.prediction_miss_rate) == (0.5, 0.5)
    assert pairs(shoe_of(TRUTH, found, min_similarity=0.7)) == [(0, 0.7), None]  # a floor is reached


@st.composite
def overlaps(draw: st.DrawFn) -> tuple[list[dict[tuple[int, int], int]], list[float]]:
    """Images of up to 4 ground truths (rows) and 4 predictions with the similarity of those that meet; scores."""
    images, count = [], 0
    for _ in range(draw(st.integers(0, 3))):
        wide = draw(st.integers(1, 4))
        cells = st.tuples(st.integers(0, 3), st.integers(count, count + wide - 1))
        images.append(draw(st.dictionaries(cells, st.integers(0, 4).map(lambda n: n * 250_000_000), max_size=10)))
        count += wide
    return images, draw(st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=count, max_size=count))


def one_by_one(image_: dict[tuple[int, int], int], rank: Ints) -> dict[int, int]:
    """Lines 9 to 22 of the supplement's algorithms, for one image."""
    taken: dict[int, int] = {}
    for row in range(4):
        free = [column for at, column in image_ if at == row and column not in taken.values()]
        if free:
            taken[row] = max(free, key=lambda column: (image_[row, column], -rank[column]))
    return taken


@given(overlaps())
def test_optimal_is_the_best_of_all_assignments(data: tuple[list[dict[tuple[int, int], int]], list[float]]) -> None:
    images, scores = data
    cells = [(4 * at + row, column, one) for at, cell in enumerate(images) for (row, column), one in cell.items()]
    truth, prediction, similarity = np.array(sorted(cells), dtype=np.int64).reshape(-1, 3).T
    image_of_truth = np.repeat(np.arange(len(images)), 4)
    rank = np.argsort(np.argsort(-np.array(scores), kind="stable"))
    taken = optimal(truth, prediction, similarity, rank, image_of_truth)
    in_turn = greedy(truth, prediction, similarity, rank, np.arange(len(image_of_truth)) % 4)
    for at, image_ in enumerate(images):
        columns = sorted({column for _, column in image_})
        choices: list[dict[int, int]] = [{}] + [
            {row: column for row, column in enumerate(chosen) if (row, column) in image_}
            for chosen in permutations([*columns, *[-1] * 4], 4)
        ]
        worth = {(sum(image_[pair] for pair in chosen.items()), len(chosen)) for chosen in choices}
        ours = {row: int(taken[4 * at + row]) for row in range(4) if taken[4 * at + row] >= 0}
        assert len(set(ours.values())) == len(ours)
        assert (sum(image_[pair] for pair in ours.items()), len(ours)) == max(worth)
        greedily = {row: int(in_turn[4 * at + row]) for row in range(4) if in_turn[4 * at + row] >= 0}
        assert greedily == one_by_one(image_, rank)
        assert sum(image_[pair] for pair in greedily.items()) <= max(worth)[0]
