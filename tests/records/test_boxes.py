"""The IoU of two boxes is that of many, whatever the boxes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.records import boxes
from hoicli.records.boxes import best_per_image, iou, pair_nms
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.records.scenes import Scenes

BOXES = st.tuples(*[st.integers(-3, 9).map(float)] * 4)


@given(BOXES, BOXES)
def test_boxes_overlap_by_the_area_they_share(first: tuple[float, ...], second: tuple[float, ...]) -> None:
    width, height = (min(first[at + 2], second[at + 2]) - max(first[at], second[at]) for at in (0, 1))
    both = width * height if width > 0 and height > 0 else 0.0
    one, other = ((x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in (first, second))
    overlap = iou(np.array([first]).T, np.array([second]).T, inclusive=False)
    assert float(overlap[0]) == pytest.approx(both / (one + other - both) if both > 0 else 0.0)


def scenes_of(boxes: Floats, hois: Ints, score: Floats, *starts: int) -> Scenes:
    """Images with triplets of boxes of one label; hois [3, T] subject, object, interaction; starts: where each image's
    triplets begin, but those of the first."""
    images, zeros = len(starts) + 1, np.zeros(len(boxes) + hois.shape[1], dtype=np.int64)
    return Scenes(
        image_ids=[str(number) for number in range(images)], boxes=boxes, box_start=np.r_[0, [len(boxes)] * images],
        hoi_start=np.array([0, *starts, hois.shape[1]]), subject=hois[0], object=hois[1], score=score,
        labels=zeros[: len(boxes)], annotated=np.ones(len(boxes), dtype=bool),
        crowd=np.zeros(len(boxes), dtype=bool), verb=hois[2], interaction=hois[2],
        known_count=zeros[:images], known=zeros[:0], caveats=zeros[:images], image_label_count=zeros[:images],
        image_label=zeros[:0],
    )  # fmt: skip


@st.composite
def groups(draw: st.DrawFn) -> Scenes:
    """Pairs of few boxes, many of them alike, in one image and of one or two classes."""
    count, found = draw(st.integers(1, 30)), np.array(draw(st.lists(BOXES, min_size=2, max_size=9)))
    indices = st.lists(st.integers(0, len(found) - 1), min_size=count, max_size=count)
    subject, object_, score, class_ = (np.array(draw(indices)) for _ in range(4))
    object_ = np.full(count, -1) if draw(st.booleans()) else object_
    return scenes_of(found, np.stack([subject, object_, class_ % 2]), score / 9)


EXPONENTS = st.sampled_from([0.0, 1e-12, 0.01, 0.5, 1.0, 3.0])


@given(groups(), st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), EXPONENTS, EXPONENTS, st.data())
def test_a_large_group_is_suppressed_as_small_ones_are(
    scenes: Scenes, threshold: float, alpha: float, beta: float, data: st.DataObject
) -> None:
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(scenes.score), max_size=len(scenes.score))))
    kept_both_ways(scenes, keep, threshold=threshold, alpha=alpha, beta=beta)


def kept_both_ways(scenes: Scenes, keep: Bools, **settings: Any) -> Bools:
    """What `pair_nms` keeps where groups are small, and where they are large."""
    one = pair_nms(scenes, keep, **settings)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boxes, "SMALL_GROUP", 1)
        assert pair_nms(scenes, keep, **settings).tolist() == one.tolist()
    return one


@pytest.mark.long
def test_nms_of_an_image_with_many_predictions() -> None:
    """30,000 pairs of one class that do not overlap took minutes."""
    count = 30_000
    corners, place = np.arange(count) * 20.0, np.arange(count)
    found = np.stack([corners, corners, corners + 10, corners + 10], axis=1)
    scenes = scenes_of(found, np.stack([place, place[::-1], 0 * place]), np.zeros(count))
    assert pair_nms(scenes, place >= 0, threshold=0.7, alpha=1.0, beta=0.5).all()


TEN = (0.0, 0.0, 10.0, 10.0)


@pytest.mark.parametrize(("other", "plain", "inclusive", "apart", "only_shared"), [
    # IoU with TEN by: edges; last pixels; last pixels, boxes that merely touch apart; last pixels of what is shared
    (TEN, 1.0, 1.0, 1.0, 121 / (200 - 121)),
    ((5, 0, 15, 10), 50 / 150, 66 / (242 - 66), 66 / (242 - 66), 66 / (200 - 66)),
    ((10, 0, 20, 10), 0.0, 11 / (242 - 11), 0.0, 11 / (200 - 11)),  # one column of pixels
    ((0, 10, 10, 20), 0.0, 11 / (242 - 11), 0.0, 11 / (200 - 11)),
    ((10, 10, 20, 20), 0.0, 1 / (242 - 1), 0.0, 1 / (200 - 1)),
    ((11, 0, 21, 10), 0.0, 0.0, 0.0, 0.0),  # side by side
    ((0, 11, 10, 21), 0.0, 0.0, 0.0, 0.0),
    ((12, 12, 22, 22), 0.0, 0.0, 0.0, 0.0),  # twice apart is not together
    ((2, 3, 4, 8), 10 / 100, 18 / 121, 18 / 121, 18 / (110 - 18)),
    ((5, 5, 5, 5), 0.0, 1 / 121, 0.0, 1 / (100 - 1)),  # no area but a pixel's
    ((8, 0, 2, 10), 0.0, 0.0, 0.0, 0.0),  # inside out
])  # fmt: skip
def test_the_conventions(
    other: tuple[float, ...], plain: float, inclusive: float, apart: float, only_shared: float
) -> None:
    first, second = np.array([TEN]).T, np.array([other], dtype=np.float64).T
    ways: list[tuple[dict[str, bool], float]] = [
        ({"inclusive": False}, plain),
        ({"inclusive": True}, inclusive),
        ({"inclusive": True, "touching_overlap": False}, apart),
        ({"inclusive": False, "inclusive_overlap": True}, only_shared),
    ]
    for options, expected in ways:
        assert iou(first, second, **options).tolist() == [pytest.approx(expected, abs=1e-15)]
        assert iou(second, first, **options).tolist() == [pytest.approx(expected, abs=1e-15)]


def test_boxes_whose_area_no_number_holds_overlap_nothing() -> None:
    huge, tiny = (np.array([[0.0, 0.0, side, side]]).T for side in (1e200, 1e-200))
    for options in ({"inclusive": False}, {"inclusive": True}, {"inclusive": False, "inclusive_overlap": True}):
        assert iou(huge, huge, **options).tolist() == iou(huge, tiny, **options).tolist() == [0.0]
    assert iou(tiny, tiny, inclusive=False).tolist() == [0.0]


def test_what_is_shared_may_exceed_the_union_with_the_last_pixel() -> None:
    """Two boxes of a point have no area of their own and share a pixel: 1 / -1."""
    point = np.zeros((4, 1))
    assert iou(point, point, inclusive=False, inclusive_overlap=True).tolist() == [-1.0]
    unit = np.array([[0.0, 0.0, 1.0, 1.0]]).T
    assert iou(unit, unit, inclusive=False, inclusive_overlap=True).tolist() == [-2.0]
    wide = np.array([[0.0, 0.0, 1.0, 2.0]]).T  # 6 shared of 2 + 2 - 6
    assert iou(wide, wide, inclusive=False, inclusive_overlap=True).tolist() == [-3.0]


def pairs(*hois: tuple[int, int, float, int], images: tuple[int, ...] = ()) -> Scenes:
    """Boxes of 10 by 10 pixels, each 1 further right than the last; (subject, object, score, interaction)."""
    subject, object_, score, interaction = (np.array(column) for column in zip(*hois, strict=True))
    lefts, zeros = np.arange(20.0), np.zeros(20)
    found = np.stack([lefts, zeros, lefts + 9, zeros + 9], axis=1)
    return scenes_of(found, np.stack([subject, object_, interaction]), score.astype(np.float64), *images)


def suppressed(
    scenes: Scenes, threshold: float, alpha: float = 1.0, beta: float = 1.0, *, without: Sequence[int] = ()
) -> list[int]:
    keep = np.ones(len(scenes.score), dtype=bool)
    keep[list(without)] = False
    return np.flatnonzero(~kept_both_ways(scenes, keep, threshold=threshold, alpha=alpha, beta=beta)).tolist()


def test_a_pair_goes_when_its_overlap_is_above_the_threshold_and_not_when_it_is_equal() -> None:
    """Boxes 0 and 1 share 9 of 11 columns, 0 and 2 share 8 of 12."""
    scenes = pairs((0, 10, 0.9, 0), (1, 10, 0.8, 0), (2, 10, 0.7, 0))
    assert suppressed(scenes, 0.6) == [1, 2]
    assert suppressed(scenes, 8 / 12) == [1]
    assert suppressed(scenes, 9 / 11 - 1e-12) == [1]
    assert suppressed(scenes, 9 / 11) == []
    assert suppressed(replace(scenes, boxes=scenes.boxes - 1000), 0.6) == [1, 2]  # left of the picture
    assert suppressed(pairs((10, 0, 0.9, 0), (10, 1, 0.8, 0), (10, 2, 0.7, 0)), 8 / 12) == [1]


def test_the_overlaps_of_the_two_boxes_are_multiplied_with_their_powers() -> None:
    scenes = pairs((0, 10, 0.9, 0), (1, 12, 0.8, 0))
    one, other = 9 / 11, 8 / 12
    for alpha, beta in ((1.0, 1.0), (2.0, 0.5), (0.0, 1.0), (1.0, 0.0)):
        together = one**alpha * other**beta
        assert suppressed(scenes, together - 1e-6, alpha, beta) == [1]
        assert suppressed(scenes, together + 1e-6, alpha, beta) == []


def test_what_is_suppressed_suppresses_nothing() -> None:
    """2 overlaps 1, which goes because of 0, and 0 too little."""
    scenes = pairs((0, 10, 0.9, 0), (2, 10, 0.8, 0), (4, 10, 0.7, 0))
    assert suppressed(scenes, 0.6) == [1]
    assert suppressed(scenes, 0.6, without=(0,)) == [0, 2]


def test_the_better_score_stays_and_of_equals_the_first() -> None:
    assert suppressed(pairs((0, 10, 0.1, 0), (0, 10, 0.9, 0), (0, 10, 0.9, 0)), 0.5) == [0, 2]


def test_pairs_of_other_classes_images_and_without_object_stay() -> None:
    assert suppressed(pairs((0, 10, 0.9, 0), (0, 10, 0.8, 1)), 0.5) == []
    assert suppressed(pairs((0, 10, 0.9, 0), (0, 10, 0.8, 0), images=(1,)), 0.5) == []
    assert suppressed(pairs((0, 10, 0.9, 0), (0, -1, 0.8, 0), (0, -1, 0.7, 0), (19, -1, 0.6, 0)), 0.5) == [2]
    assert suppressed(pairs((0, -1, 0.9, 0), (1, -1, 0.8, 0)), 9 / 11) == []


def test_the_best_of_each_image() -> None:
    scenes = pairs((0, 1, 0.1, 0), (0, 1, 0.9, 0), (0, 1, 0.5, 0), (0, 1, 0.5, 0), (0, 1, 0.2, 0), images=(1, 4))
    assert best_per_image(scenes, 3).tolist() == [True] * 5  # nobody has more
    assert best_per_image(scenes, 2).tolist() == [True, True, True, False, True]
    assert best_per_image(scenes, 1).tolist() == [True, True, False, False, True]
    among = np.array([True, False, True, True, False])
    assert best_per_image(scenes, 1, among).tolist() == [True, False, True, False, False]
    assert best_per_image(scenes, 9, among).tolist() == among.tolist()
    assert {best_per_image(scenes, count).dtype for count in (1, 3)} == {np.dtype(bool)}
