"""SHOE's numbers by hand, and a slow evaluator on random data."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.shoe.explanation import explain
from hoicli.shoe.likenesses import normalise
from hoicli.shoe.scores import average_precision, scores_of
from hoicli.shoe.settings import AREAS, COMBINE, ShoeOptions
from hoicli.shoe.shoe_evaluation import filter_predictions
from hoicli.shoe.triplet_matching import UNIT
from tests.support import shoe_reference
from tests.support.shoe import AWAY, RANDOM_SIMILAR, Record, candidates, curated, datasets, image, scored, shoe_of


def test_one_soft_match() -> None:
    scores = scored([image(("pet", "giraffe"))], [image(("touch", "giraffe", 0.9))])
    assert scores.soft_map == pytest.approx(0.775 * 0.775)  # recall 0.775 at precision 0.775
    assert scores.mf1 == pytest.approx(2 * 0.775 * 1 / 1.775)  # precision 0.775, recall TP / (TP + FN) = 1
    assert (scores.gt_miss_rate, scores.prediction_miss_rate, scores.map) == (0.0, 0.0, 0.0)
    assert (scores.truths, scores.predictions) == (1, 1)


def test_a_perfect_set_is_1() -> None:
    truth = [image(("pet", "giraffe"), ("wash", "train", None, AWAY)), image(("pet", "giraffe"), image_id="b")]
    found = [image(("wash", "train", 0.2, AWAY), ("pet", "giraffe", 0.7)), image(("pet", "giraffe", 0.1), image_id="b")]
    for area in AREAS:
        scores = scored(truth, found, ap=area)
        assert (scores.soft_map, scores.mf1, scores.map) == (1.0, 1.0, 1.0)


def test_nothing_at_all() -> None:
    truth = [image(("pet", "giraffe"))]
    for found in ([], [image()], [{"image_id": "a", "boxes": [], "labels": [], "hois": []}]):
        scores = scored(truth, found)
        assert (scores.soft_map, scores.mf1, scores.map) == (0.0, 0.0, 0.0)
        assert (scores.gt_miss_rate, scores.prediction_miss_rate) == (1.0, None)
    scores = scored([image()], [image(("pet", "giraffe", 0.9))])
    assert (scores.soft_map, scores.mf1, scores.map, scores.gt_miss_rate) == (None, None, None, None)
    assert (scores.prediction_miss_rate, scores.classes) == (1.0, [])
    assert scored([image()], []).soft_map is None


def test_without_scores() -> None:
    truth = [image(("pet", "giraffe"))]
    scores = scored(truth, [image(("touch", "giraffe"))])
    assert (scores.soft_map, scores.map, scores.classes[0].soft_ap, scores.classes[0].ap) == (None,) * 4
    assert scores.mf1 == pytest.approx(2 * 0.775 / 1.775)
    mixed = scored(truth, [image(("touch", "giraffe", 0.9), ("feed", "giraffe"))])
    assert (mixed.soft_map, mixed.prediction_miss_rate) == (None, 0.5)


def test_scores_below_0_rank_before_missed_ground_truth() -> None:
    truth = [image(("pet", "giraffe")), image(("pet", "giraffe"), image_id="b")]
    found = [image(("pet", "giraffe", 0.9), ("pet", "giraffe", 0.8, AWAY))]
    logarithms = [image(("pet", "giraffe", -0.1), ("pet", "giraffe", -0.2, AWAY))]
    for area in AREAS:
        assert scored(truth, found, ap=area) == scored(truth, logarithms, ap=area)


def test_areas_by_hand() -> None:
    gain = np.array([0, UNIT, 0, UNIT // 2, UNIT], dtype=np.int64)  # precision 0, 1/2, 1/3, 3/8, 1/2
    assert average_precision(gain, 4, "envelope") == pytest.approx((1 * 1 / 2 + 0.5 * 1 / 2 + 1 * 1 / 2) / 4)
    # from (0, 1): each gain's step at the mean of the precisions before and after it
    steps = 1 * (0 + 1 / 2) / 2 + 0.5 * (1 / 3 + 3 / 8) / 2 + 1 * (3 / 8 + 1 / 2) / 2
    assert average_precision(gain, 4, "trapezoid") == pytest.approx(steps / 4)
    assert average_precision(gain[1:2], 4, "trapezoid") == pytest.approx(1 / 4)
    assert average_precision(gain, 4, "11-point") == pytest.approx(7 * 0.5 / 11)  # recall ends at 0.625
    for reached in range(1, 11):  # a recall of exactly 0.3 reaches the point 0.3
        assert average_precision(np.array([UNIT] * reached), 10, "11-point") == pytest.approx((reached + 1) / 11)
    for area in AREAS:
        assert average_precision(np.array([UNIT] * 3), 3, area) == 1.0
        assert average_precision(np.zeros(3, dtype=np.int64), 3, area) == 0.0
        assert average_precision(np.zeros(0, dtype=np.int64), 3, area) == 0.0


# --- a slow evaluator on random data --------------------------------------------------------------------------------


def slow_sigma(similar: dict[tuple[str, str], float], how: str, weight: float) -> Callable[..., float]:
    table = {frozenset(pair): value for pair, value in similar.items()}

    def sigma(truth: Record, item: Record, record: Record, hoi: Record) -> float:
        name, other = shoe_reference.label_of(truth, item), shoe_reference.label_of(record, hoi)
        verb_sense, object_sense = curated(normalise(item["verb"]), normalise(name or ""))
        verb = shoe_reference.similarity_of(
            item["verb"],
            verb_sense,
            hoi["verb"],
            hoi.get("verb_synset"),
            lambda label: candidates(normalise(label), "v"),
            table,
        )
        thing = shoe_reference.similarity_of(
            name, object_sense, other, None, lambda label: candidates(normalise(label), "n"), table
        )
        return shoe_reference.combined(verb, thing, name is None and other is None, how, weight)

    return sigma


def spelled_alike(data: list[Record]) -> list[Record]:
    """The reference goes by labels as they are."""
    return [
        {
            **record,
            "labels": [normalise(label) for label in record["labels"]],
            "hois": [{**hoi, "verb": normalise(hoi["verb"])} for hoi in record["hois"]],
        }
        for record in data
    ]


def in_tie_order(data: list[Record]) -> list[Record]:
    """The reference takes the first of equal scores, hoicli the first by object, verb and corners."""

    def names_and_corners(record: Record, hoi: Record) -> tuple[Any, ...]:
        ends = [record["boxes"][end] if end is not None else [math.inf] for end in (hoi["subject"], hoi["object"])]
        verb = hoi["verb"], hoi.get("verb_synset")
        return repr((shoe_reference.label_of(record, hoi), None)), repr(verb), *ends

    return [{**each, "hois": sorted(each["hois"], key=partial(names_and_corners, each))} for each in data]


@given(
    datasets(),
    RANDOM_SIMILAR,
    st.sampled_from([0.0, 0.3, 0.5, 0.85]),
    st.sampled_from(COMBINE[:2]),
    st.sampled_from(sorted(AREAS)),
    st.sampled_from([None, 0.3]),
    st.booleans(),
    st.sampled_from([0.0, 0.0, 0.35, 0.75]),
)
def test_the_slow_evaluator_agrees(
    data: tuple[list[Record], list[Record]],
    similar: dict[tuple[str, str], float],
    delta: float,
    combine: str,
    area: str,
    least: float | None,
    everywhere: bool,
    floor: float,
) -> None:
    truth, found = data
    shoe = shoe_of(truth, found, similar, delta=str(delta), combine=combine, ap=area, min_similarity=floor)
    strict = shoe.match(filter_predictions(ShoeOptions(min_score=least), shoe.predictions))
    ours = scores_of(shoe, strict, strict if everywhere else shoe.match())
    truth, found = spelled_alike(truth), spelled_alike(in_tie_order(found))
    theirs = shoe_reference.evaluate(
        truth,
        found,
        slow_sigma(similar, combine, 0.5),
        delta=delta,
        area=area,
        keep=lambda hoi: least is None or hoi["score"] >= least,
        everywhere=everywhere,
        floor=floor,
    )
    if everywhere and least is not None:
        found = [{**record, "hois": [hoi for hoi in record["hois"] if hoi["score"] >= least]} for record in found]
    theirs["map"] = shoe_reference.plain_map(truth, found, area)
    for metric, value in theirs.items():
        assert getattr(ours, metric) == (None if value is None else pytest.approx(value, abs=2e-7)), metric


@given(datasets(), st.randoms(use_true_random=False))
def test_order_changes_nothing(data: tuple[list[Record], list[Record]], rng: random.Random) -> None:
    truth, found = data
    first = shoe_of(truth, found)
    expected = scores_of(first, first.match()), list(explain(first, first.match()))
    one, other = [*truth], [*found]
    rng.shuffle(one)
    rng.shuffle(other)
    again = shoe_of(one, other)
    assert (scores_of(again, again.match()), list(explain(again, again.match()))) == expected
