"""Charts as SVG: lengths and heights that fit their values, and drawings of odd ones."""

from __future__ import annotations

import re

import pytest

from hoicli.figures import svg
from hoicli.figures.shown import Bar, composition_of
from tests.support.page import Page


def shapes_of(drawing: str, tag: str) -> list[dict[str, float]]:
    """The numbers of each shape of one kind."""
    found = re.findall(rf"<{tag} ([^>]*)/>", drawing)
    return [{key: float(value) for key, value in re.findall(r'(\w+)="(-?[\d.]+)"', text)} for text in found]


def test_bars_are_as_long_as_their_values() -> None:
    items = [Bar("a", 10.0, "e-x"), Bar(), Bar("b", -5.0, "e-y"), Bar("c", None, "e-z")]
    drawing = svg.bars(items, "n", str)
    assert re.findall(r">([^<>]+)</text>", drawing) == ["a", "10.0", "b", "-5.0", "c", "None"]
    up, down = shapes_of(drawing, "rect")
    assert up["width"] == pytest.approx(2 * down["width"], abs=0.2)
    assert down["x"] + down["width"] == pytest.approx(up["x"], abs=0.2)
    assert max(shape["x"] + shape["width"] for shape in (up, down)) < svg.WIDTH


def test_shares_fill_their_bins() -> None:
    drawing = svg.shares(composition_of([0, 5, 10, 15], {"duplicate": [3, 0, 1], "human_box": [1, 0, 3]}), "n")
    boxes = shapes_of(drawing, "rect")
    assert len(boxes) == 4  # the middle bin is empty
    heights: dict[float, float] = {}
    for box in boxes:
        heights[box["x"]] = heights.get(box["x"], 0) + box["height"]
    assert list(heights.values()) == [pytest.approx(150, abs=0.2)] * 2
    assert boxes[0]["height"] == pytest.approx(112.5)


def test_histogram_counts_and_lines_rise() -> None:
    boxes = shapes_of(svg.histogram({"a": [2, 0], "b": [2, 1]}, ["0", "1", "2"], "n", "x"), "rect")
    assert [box["height"] for box in boxes] == [pytest.approx(height) for height in (70.0, 70.0, 35.0)]
    drawing = svg.lines({"a": [(0, 1, ""), (1, 2, "high")]}, "n", across="x", up="y")
    low, high = shapes_of(drawing, "circle")
    assert high["cy"] < low["cy"]
    assert high["cx"] > low["cx"]


@pytest.mark.parametrize("values", [[], [0.0], [0.0, 0.0], [1e-9], [99.99, 100.0], [5.0, -5.0], [1e12]])
def test_charts_of_odd_values(values: list[float]) -> None:
    numbers = [float(value) for value in values]
    drawings = [
        svg.bars([Bar("l" * 90, value, "s0") for value in numbers], "n", str),
        svg.dots([("l" * 90, [svg.Dot("s", value) for value in numbers])], "n"),
        svg.histogram({"s": [int(abs(value)) for value in numbers]}, [""] * (len(numbers) + 1), "n", "x"),
        svg.shares(
            composition_of(list(range(len(numbers) + 1)), {"duplicate": [abs(value) for value in numbers]}), "n"
        ),
    ]
    if numbers:
        drawings.append(svg.lines({"s": [(value, value, "") for value in numbers]}, "n", across="x", up="y"))
    for drawing in drawings:
        Page(drawing)
        assert "nan" not in drawing
        assert "inf" not in drawing
