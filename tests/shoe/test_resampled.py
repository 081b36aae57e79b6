"""SHOE's numbers of weighted images: held to the numbers of the images written down several times."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoicli.resampling.comparison import PairedRounds
from hoicli.resampling.draws import Resampling
from hoicli.resampling.rounds import Rounds, resample, swap_outputs
from hoicli.shoe.scores import Run, intervals_of, means, scores_of, soft_entries, weighted_metrics
from hoicli.shoe.settings import AREAS
from hoicli.shoe.triplet_matching import UNIT
from tests.support.project import Record
from tests.support.shoe import AWAY, datasets, image, shoe_of

RATES = ("mf1", "gt_miss_rate", "prediction_miss_rate")


def run_of(truth: list[Record], found: list[Record], **options: Any) -> Run:
    shoe = shoe_of(truth, found, **options)
    matching = shoe.match()
    return Run(shoe, matching, matching, "full", {})


@settings(max_examples=20)
@given(datasets(), st.sampled_from(sorted(AREAS)))
def test_each_image_once_is_the_number_itself(data: tuple[list[Record], list[Record]], area: str) -> None:
    run = run_of(*data, ap=area)
    ones = np.ones((len(data[0]), 1), dtype=np.int32)
    for name, metric in weighted_metrics(run).items():
        (value,) = means(name, Rounds(*metric.ap(ones)))
        assert value == pytest.approx(getattr(run.scores, name), abs=1e-12), name


@settings(max_examples=20)
@given(datasets(), st.lists(st.integers(0, 3), min_size=4, max_size=4), st.sampled_from(sorted(AREAS)))
def test_weights_are_copies(data: tuple[list[Record], list[Record]], weights: list[int], area: str) -> None:
    """F1 and rates: of a test set with each image so often. Soft AP: by a loop that takes an image's copies at once."""
    truth, found = data
    run = run_of(truth, found, ap=area)
    order = sorted(record["image_id"] for record in truth)
    weight = dict(zip(order, weights, strict=False))
    column = np.array([[weight[image_id]] for image_id in order], dtype=np.int32)
    copies = [
        [
            {**record, "image_id": f"{record['image_id']}.{n}"}
            for record in side
            for n in range(weight[record["image_id"]])
        ]
        for side in data
    ]
    metrics = weighted_metrics(run)
    shoe = shoe_of(copies[0], copies[1])
    expected = scores_of(shoe, shoe.match())
    for name in RATES:
        if name in metrics:
            (value,) = means(name, Rounds(*metrics[name].ap(column)))
            wanted = getattr(expected, name)
            assert (None if np.isnan(value) else value) == (None if wanted is None else pytest.approx(wanted)), name
    if "soft_map" in metrics:
        ap, positives = metrics["soft_map"].ap(column)
        assert ap[:, 0].tolist() == pytest.approx(slow_areas(run, weight, area), abs=1e-9)
        assert positives[:, 0].sum() == sum(len(record["hois"]) for record in copies[0])


def slow_areas(run: Run, weight: dict[str, int], area: str) -> list[float]:
    """The soft AP of each class, entry by entry, each as often as its image."""
    entries, shoe = soft_entries(run.shoe, run.loose), run.shoe
    found = []
    for number in range(len(shoe.classes.classes)):
        asked = sum(
            weight[shoe.truth.image_ids[image]]
            for image, class_ in zip(shoe.truth.image_of_hoi, shoe.classes.class_of, strict=True)
            if class_ == number
        )
        total, gained, points = 0, 0.0, [(0.0, 1.0)]
        for at in range(entries.bounds[number], entries.bounds[number + 1]):
            image = shoe.predictions.image_of_hoi[entries.prediction[at]]
            times = weight[shoe.predictions.image_ids[image]]
            total, gained = total + times, gained + times * entries.gain[at] / UNIT
            if total and asked:
                points.append((gained / asked, gained / total))
        envelope = [max((p for _, p in points[at:]), default=0.0) for at in range(len(points))]
        if area == "11-point":
            steps = [max((p for r, p in points[1:] if r + 1e-9 >= n / 10), default=0.0) for n in range(11)]
            found.append(sum(steps) / 11)
            continue
        value = 0.0
        for at in range(1, len(points)):
            height = envelope[at] if area == "envelope" else (points[at][1] + points[at - 1][1]) / 2
            value += (points[at][0] - points[at - 1][0]) * height
        found.append(value)
    return found


def many(shift: float) -> tuple[list[Record], list[Record]]:
    """Forty images, a triplet each, found in most of them, and what is there besides."""
    truth, found = [], []
    for number in range(40):
        truth.append(image(("pet", "giraffe") if number % 2 else ("wash", "train"), image_id=f"{number:02}"))
        said = ("touch", "giraffe") if number % 4 == 1 else ("pet", "giraffe") if number % 2 else ("clean", "train")
        hois: list[tuple[Any, ...]] = [(*said, (number * 7 % 40) / 40)] if number % 5 else []
        hois += [("pet", "giraffe", number / 40 - shift, AWAY)] if number % 3 == 0 else []
        found.append(image(*hois, image_id=f"{number:02}"))
    return truth, found


def test_intervals_hold_the_number_and_narrow_with_the_set() -> None:
    run = run_of(*many(0.0))
    intervals = intervals_of(run, Resampling(400, 0))
    widths = {}
    for name, found in intervals.items():
        assert found is not None
        assert found[0] < getattr(run.scores, name) < found[1], name
        widths[name] = found[1] - found[0]
    # a rate's interval is that of a proportion: 2 * 1.96 * sqrt(p (1 - p) / n)
    missed = run.scores.gt_miss_rate or 0.0
    assert widths["gt_miss_rate"] == pytest.approx(3.92 * (missed * (1 - missed) / 40) ** 0.5, rel=0.15)
    one = intervals_of(run_of(*(side[:1] for side in many(0.0))), Resampling(20, 0))
    assert set(one.values()) <= {None}
    assert intervals_of(run_of([image()], [image()]), Resampling(20, 0)) == {}


def test_swapping_two_models_is_symmetric() -> None:
    models = [weighted_metrics(run_of(*many(shift))) for shift in (0.0, 0.3)]
    for name in models[0]:
        first, second = (model[name] for model in models)
        asked = Resampling(64, 3)
        alone = resample([first, second], asked, "")
        forth = swap_outputs(first, second, asked, "")
        back = swap_outputs(second, first, asked, "")
        pair = PairedRounds((alone[0], alone[1]), (forth[0], forth[1]))
        swaps = pair.differences(partial(means, name))[1]
        assert swaps.tolist() == pytest.approx((means(name, back[0]) - means(name, back[1])).tolist(), abs=1e-12)
        same = swap_outputs(first, first, asked, "")
        assert means(name, same[0]).tolist() == pytest.approx(means(name, same[1]).tolist(), abs=1e-12)


def test_order_of_lines_changes_no_interval() -> None:
    truth, found = many(0.1)
    one = intervals_of(run_of(truth, found), Resampling(40, 1))
    assert intervals_of(run_of(truth[::-1], found[::-1]), Resampling(40, 1)) == one
