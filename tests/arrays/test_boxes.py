"""The IoU of two boxes is that of many, whatever the boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.arrays import boxes
from hoicli.arrays.boxes import iou, pair_nms, shared_area
from hoicli.arrays.scenes import Scenes

BOXES = st.tuples(*[st.integers(-3, 9).map(float)] * 4)


@given(BOXES, BOXES)
def test_boxes_overlap_by_the_area_they_share(first: tuple[float, ...], second: tuple[float, ...]) -> None:
    both = shared_area(first, second)
    one, other = ((x2 - x1) * (y2 - y1) for x1, y1, x2, y2 in (first, second))
    overlap = iou(np.array([first]).T, np.array([second]).T, inclusive=False)
    assert float(overlap[0]) == pytest.approx(both / (one + other - both) if both > 0 else 0.0)


def test_boxes_that_only_touch_share_nothing() -> None:
    assert shared_area((0, 0, 2, 2), (1, 1, 3, 4)) == 1
    assert shared_area((0, 0, 2, 2), (2, 0, 4, 2)) == 0


@st.composite
def groups(draw: st.DrawFn) -> Scenes:
    """Pairs of few boxes, many of them alike, in one image and of one or two classes."""
    count, found = draw(st.integers(1, 30)), np.array(draw(st.lists(BOXES, min_size=2, max_size=9)))
    indices = st.lists(st.integers(0, len(found) - 1), min_size=count, max_size=count)
    nothing, zeros = draw(st.booleans()), np.zeros(count, dtype=np.int64)
    return Scenes(
        image_ids=["a"], boxes=found, box_start=np.array([0, len(found)]), hoi_start=np.array([0, count]),
        subject=np.array(draw(indices)), object=zeros - 1 if nothing else np.array(draw(indices)),
        score=(np.array(draw(indices)) / 9).astype(np.float64), labels=np.zeros(len(found), dtype=np.int64),
        annotated=np.ones(len(found), dtype=bool), verb=zeros, interaction=np.array(draw(indices)) % 2,
        known_count=np.zeros(1, dtype=np.int64), known=np.zeros(0, dtype=np.int64), caveats=np.zeros(1, dtype=np.int64),
        label_count=np.zeros(1, dtype=np.int64), label=np.zeros(0, dtype=np.int64),
    )  # fmt: skip


EXPONENTS = st.sampled_from([0.0, 1e-12, 0.01, 0.5, 1.0, 3.0])


@given(groups(), st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), EXPONENTS, EXPONENTS, st.data())
def test_a_large_group_is_suppressed_as_small_ones_are(
    scenes: Scenes, threshold: float, alpha: float, beta: float, data: st.DataObject
) -> None:
    keep = np.array(data.draw(st.lists(st.booleans(), min_size=len(scenes.score), max_size=len(scenes.score))))
    kept = []
    for limit in (boxes.SMALL_GROUP, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(boxes, "SMALL_GROUP", limit)
            kept.append(pair_nms(scenes, keep, threshold=threshold, alpha=alpha, beta=beta).tolist())
    assert kept[0] == kept[1]


def test_nms_of_an_image_with_many_predictions() -> None:
    """30,000 pairs of one class that do not overlap took minutes."""
    count = 30_000
    corners = np.arange(count) * 20.0
    place, zeros = np.arange(count), np.zeros(count, dtype=np.int64)
    scenes = Scenes(
        image_ids=["a"], boxes=np.stack([corners, corners, corners + 10, corners + 10], axis=1),
        box_start=np.array([0, count]), hoi_start=np.array([0, count]), subject=place, object=place[::-1],
        score=zeros.astype(np.float64), labels=zeros, annotated=zeros > 0, verb=zeros, interaction=zeros,
        known_count=zeros[:1], known=zeros[:0], caveats=zeros[:1], label_count=zeros[:1], label=zeros[:0],
    )  # fmt: skip
    assert pair_nms(scenes, zeros == 0, threshold=0.7, alpha=1.0, beta=0.5).all()
