"""A prediction and its ground truth drawn on their image, for pages: boxes in the image's own pixels, as SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hoicli.figures.markup import escaped
from hoicli.figures.pictures import Size

CARD = 340.0
"""CSS pixels an image may be wide and high on the page."""

TEXT = 13.0
"""CSS pixels of the labels in an image."""

NOT_AT_HAND = "image not at hand"

Pair = Sequence[Sequence[float]]
"""A subject's box and, where there is an object, its box."""


def drawing(item: Mapping[str, Any], name: str, picture: tuple[str, Size] | None) -> str:
    """The image, or a grey sheet of its size, under the boxes.

    Classes, which the page's style sheet draws: `gt` for the truth and `pr` for the prediction, within them `s` for the
    subject's box and `o` for the object's. item: `predicted` and `truth`, each None or a pair, `truth_name`, and
    `width` and `height` (or None); name: what was predicted; picture: the id of the image's symbol in the page, and its
    size.
    """
    pairs: list[tuple[str, Pair, str]] = [
        (kind, item[key], words)
        for kind, key, words in (("gt", "truth", item.get("truth_name") or name), ("pr", "predicted", name))
        if item.get(key) is not None
    ]
    width, height = _canvas(item, picture, [pair for _, pair, _ in pairs])
    unit = max(width, height) / CARD  # one CSS pixel in the image's pixels
    size = f'width="{width:g}" height="{height:g}"'
    if picture is None:
        sheet = (
            f'<rect {size} class="sheet"/><text x="{width - 6 * unit:g}" y="{height - 6 * unit:g}" '
            f'font-size="{TEXT * unit:.4g}" class="note">{NOT_AT_HAND}</text>'
        )
    else:
        sheet = f'<use href="#{picture[0]}" transform="scale({width:g} {height:g})"/>'
    shapes = []
    for kind, pair, words in pairs:
        (x1, y1), (x2, y2) = _centre(pair[0]), _centre(pair[-1])
        words = words if len(words) <= 40 else words[:39] + "\N{HORIZONTAL ELLIPSIS}"
        # The prediction's label over its boxes, the truth's under them: apart, off the scene, and inside the image.
        line = TEXT * unit
        x = max(min(*(box[0] for box in pair), width - 0.58 * line * len(words)), 0.3 * line)
        if kind == "pr":
            y = min(max(min(box[1] for box in pair) - 0.4 * line, line), height - 1.6 * line)
        else:
            y = max(min(max(box[3] for box in pair) + 1.1 * line, height - 0.4 * line), 2.2 * line)
        rectangles = "".join(_rectangle(box, name) for box, name in zip(pair, "so", strict=False))
        shapes.append(
            f'<g class="{kind}">{rectangles}'
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>'
            f'<circle cx="{x1:g}" cy="{y1:g}" r="{3 * unit:.4g}"/><circle cx="{x2:g}" cy="{y2:g}" r="{3 * unit:.4g}"/>'
            f'<text x="{x:.5g}" y="{y:.5g}" font-size="{TEXT * unit:.4g}">{escaped(words)}</text></g>'
        )
    return f'<svg class="scene" viewBox="0 0 {width:g} {height:g}">{sheet}{"".join(shapes)}</svg>'


def _canvas(item: Mapping[str, Any], picture: tuple[str, Size] | None, pairs: Sequence[Pair]) -> Size:
    """The record's size, in whose pixels the boxes are; else the image's own; else what holds all boxes."""
    if item.get("width") and item.get("height"):
        return float(item["width"]), float(item["height"])
    if picture is not None:
        return picture[1]
    boxes = [box for pair in pairs for box in pair]
    return max([1.0, *(1.05 * box[2] for box in boxes)]), max([1.0, *(1.05 * box[3] for box in boxes)])


def _centre(box: Sequence[float]) -> tuple[float, float]:
    return (box[0] + box[2]) / 2, (box[1] + box[3]) / 2


def _rectangle(box: Sequence[float], kind: str) -> str:
    x1, y1, x2, y2 = box
    width, height = max(x2 - x1, 0), max(y2 - y1, 0)
    return f'<rect class="{kind}" x="{x1:g}" y="{y1:g}" width="{width:g}" height="{height:g}"/>'
