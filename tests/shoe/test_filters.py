"""The readings of the confidence score rank, and what they filter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.errors import UsageError
from hoicli.shoe.scores import scores_of
from hoicli.shoe.settings import RANKS, ShoeOptions
from hoicli.shoe.shoe_evaluation import check_scores, filter_predictions, share_not_above
from tests.support.shoe import image, read, shoe_of

FOUND = [
    image(("pet", "dog", 0.1), ("pet", "dog", 0.2), ("ride", "dog", 0.8)),
    image(("pet", "dog", 0.4), ("ride", "dog", 0.1), ("ride", "dog", 0.1), image_id="b"),
]


@pytest.mark.parametrize(
    ("rank_of", "kept"),
    [
        # shares of all that are not above: 3/6, 4/6, 1; 5/6, 3/6, 3/6
        ("all", [False, True, True, True, False, False]),
        # of the image: 1/3, 2/3, 1; 1, 2/3, 2/3
        ("image", [False, True, True, True, True, True]),
        # of the best: 0.48 and 0.24 are needed
        ("best", [False, False, True, True, False, False]),
    ],
)
def test_what_each_reading_keeps(rank_of: str, kept: list[bool], capsys: pytest.CaptureFixture[str]) -> None:
    asked = ShoeOptions(min_rank=0.6, rank_of=rank_of)
    assert filter_predictions(asked, read(FOUND)).tolist() == kept
    assert asked.filter_signature() == {"minrank": f"0.6-{RANKS[rank_of]}(a-reading)"}
    assert f"here {RANKS[rank_of].replace('-', ' ')}: {sum(kept)} predictions of 6" in capsys.readouterr().err


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0.1, 0.5, 0.7])), max_size=12))
def test_shares_by_counting(rows: list[tuple[int, float]]) -> None:
    found = share_not_above(np.array([g for g, _ in rows], dtype=np.int64), np.array([s for _, s in rows]))
    for (group, score), share in zip(rows, found, strict=True):
        own = [other for of, other in rows if of == group]
        assert share == sum(other <= score for other in own) / len(own)


def test_soft_map_can_be_filtered_too() -> None:
    truth = [image(("pet", "giraffe"))]
    found = [image(("pet", "giraffe", 0.9, [50, 0, 60, 10]), ("pet", "giraffe", 0.4))]
    shoe = shoe_of(truth, found)
    strict = shoe.match(filter_predictions(ShoeOptions(min_score=0.5), shoe.predictions))
    loose = scores_of(shoe, strict, shoe.match())
    assert (loose.soft_map, loose.map) == (0.5, 0.5)
    both = scores_of(shoe, strict)
    assert (both.soft_map, both.map, both.mf1) == (0.0, 0.0, 0.0)
    assert ShoeOptions(min_score=0.5, filter_map=True).filter_signature() == {
        "minscore": "0.5",
        "filtered": "soft_map+map+mf1",
    }


def test_a_share_of_the_best_score_needs_scores_above_0() -> None:
    found = read([image(("pet", "dog", -1.5), ("pet", "dog", -0.5))])
    with pytest.raises(UsageError, match="--rank-of best: needs scores of at least 0"):
        check_scores(ShoeOptions(min_rank=0.5, rank_of="best"), found)
