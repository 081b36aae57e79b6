"""The IoU of two boxes is that of many, whatever the boxes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoicli.arrays.boxes import iou, iou_of_two, shared_area

BOXES = st.tuples(*[st.integers(-3, 9).map(float)] * 4)


@given(BOXES, BOXES)
def test_two_boxes_overlap_as_two_of_many_do(first: tuple[float, ...], second: tuple[float, ...]) -> None:
    many = iou(np.array([first]).T, np.array([second]).T, inclusive=False)
    assert iou_of_two(first, second) == pytest.approx(float(many[0]))


def test_boxes_that_only_touch_share_nothing() -> None:
    assert shared_area((0, 0, 2, 2), (1, 1, 3, 4)) == 1
    assert shared_area((0, 0, 2, 2), (2, 0, 4, 2)) == 0
    assert iou_of_two((0, 0, 2, 2), (0, 0, 2, 2)) == 1
