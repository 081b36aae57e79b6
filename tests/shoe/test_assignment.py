"""Which prediction each ground truth takes: greedily, or so that an image has the greatest similarity."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hoicli.records.kit import Ints
from hoicli.shoe.explanation import explain
from hoicli.shoe.triplet_matching import greedy, optimal
from tests.support.shoe import image, pairs, scored, shoe_of

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
    assert pairs(shoe_of([image(("ride", "bike"), ("ride", "bike"))], found, assignment="optimal")) == [
        (1, 1.0),
        (2, 1.0),
    ]


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
    cells = [
        (4 * at + row, column, value) for at, image_ in enumerate(images) for (row, column), value in image_.items()
    ]
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
