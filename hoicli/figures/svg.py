"""Small charts as SVG text for a page: bars, stacked shares, a histogram, lines.

Drawn 360 units wide, a phone's width, so that their print is as large as the page's. Colours are the page's affair: a
shape has a class (a key of LOOKS) whose `--ink` the style sheet sets. Text is escaped here; coordinates are rounded, so
that equal values give equal bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from hoicli.figures.markup import escaped
from hoicli.figures.shown import Bar, Composition

WIDTH = 360.0
LINE = 20.0
"""The height of a bar with its label, in the chart's units (CSS pixels at a phone's width)."""
LETTER = 7.0
"""The width that a letter takes on average, of 12 units (style.py) in a wide font (DejaVu Sans, Verdana)."""
LONGEST = 24
"""Letters of a label; longer ones are cut."""
SERIES = 7
"""How many series have a colour of their own; further ones take turns."""

Point = tuple[float, float]


def bars(items: Sequence[Bar], name: str, words: Callable[[float | None], str]) -> str:
    """Horizontal bars from one zero line, negative values to its left, each with its value in words; headings stand
    over their bars; no gaps."""
    items = [item for item in items if item.label or item.look]
    room = _label_room(item.label for item in items if item.look)
    ends = LETTER * max((len(words(item.value)) for item in items if item.look), default=0) + 8
    values = [item.value for item in items if item.value is not None]
    low, high = min([0.0, *values]), max([0.0, *values])
    left = room + (ends if low < 0 else 0)
    scale = (WIDTH - left - ends) / ((high - low) or 1.0)
    zero = left - low * scale
    shapes = []
    for at, item in enumerate(items):
        middle = (at + 0.5) * LINE
        if not item.look:
            shapes.append(_words(0, middle + 4, _cut(item.label), look="head"))
            continue
        shapes.append(_words(room - 8, middle + 4, _cut(item.label), "end"))
        value = item.value or 0.0
        start, end = sorted((zero, zero + value * scale))
        if item.value:
            shapes.append(f'<rect class="{item.look}" {_box(start, middle - 6.5, max(end - start, 0.6), 13)}/>')
        edge, anchor = (start - 4, "end") if value < 0 else (end + 4, "start")
        shapes.append(_words(edge, middle + 4, words(item.value), anchor, "value"))
    height = LINE * max(len(items), 1)
    shapes.append(_rule(zero, 0, zero, height, "axis"))
    return _svg(shapes, height, name)


def shares(composition: Composition, name: str) -> str:
    """What each bin is made of, stacked to 100 %; one without anything stays empty."""
    left, top, width, height = 44.0, 8.0, WIDTH - 62, 150.0
    bins = composition.bins
    shapes = []
    for error, floor, roof in composition.bands:
        for at, (low, high) in enumerate(zip(floor, roof, strict=True)):
            if high > low:
                x, y = left + width * at / bins, top + height * (1 - high / 100)
                # A hair wider than its bin, so that no gap shows between neighbours.
                box = _box(x, y, width / bins + (0.3 if at < bins - 1 else 0), height * (high - low) / 100)
                shapes.append(f'<rect class="e-{error}" {box}/>')
    for tick in (0, 50, 100):
        y = top + height * (1 - tick / 100)
        shapes += [_rule(left - 4, y, left, y, "axis"), _words(left - 7, y + 4, f"{tick}%", "end")]
    for at, rank in composition.ticks:
        shapes += _tick(left + width * at / (bins or 1), top + height, rank)
    shapes.append(_words(left + width / 2, top + height + 33, "rank in descending score", "middle", "note"))
    return _svg(shapes, top + height + 38, name)


def histogram(counts: Mapping[str, Sequence[int]], labels: Sequence[str], name: str, axis: str) -> str:
    """Columns of counts, the series stacked; `labels` bound the bins (one more than there are bins)."""
    legend, shapes = _legend(counts)
    left, width, height = 46.0, WIDTH - 58, 140.0
    top, bins = legend + 6, max(len(labels) - 1, 0)
    ticks = _ticks(max([sum(values[at] for values in counts.values()) for at in range(bins)], default=1))
    shapes += _grid(ticks, left, width, top, height)
    floor = [0.0] * bins
    for at, values in enumerate(counts.values()):
        for place, count in enumerate(values):
            high = height * count / ticks[-1]
            if count:
                box = _box(left + width * place / bins + 1, top + height - floor[place] - high, width / bins - 2, high)
                shapes.append(f'<rect class="s{at % SERIES}" {box}/>')
            floor[place] += high
    for place, label in enumerate(labels):
        shapes.append(_words(left + width * place / (bins or 1), top + height + 15, label, "middle"))
    shapes.append(_rule(left, top + height, left + width, top + height, "axis"))
    shapes.append(_words(left + width / 2, top + height + 31, axis, "middle", "note"))
    return _svg(shapes, top + height + 36, name)


def lines(
    series: Mapping[str, Sequence[tuple[float, float, str]]],
    name: str,
    *,
    across: str,
    up: str,
    ticks: Mapping[float, str] | None = None,
    every: int = 1,
) -> str:
    """Lines through (x, y, label) points with a mark at the first and every so many after it; y from zero. `ticks` are
    the places along x with their words, otherwise round numbers around the points."""
    legend, shapes = _legend(series if len(series) > 1 else ())
    left, top, width, height = 46.0, legend + 20, WIDTH - 66, 150.0
    points = [point for row in series.values() for point in row]
    ups = _ticks(max([y for _, y, _ in points], default=1.0))
    if ticks is None:
        ticks = {tick: f"{tick:g}" for tick in _ticks(max(x for x, _, _ in points), min(x for x, _, _ in points))}
    low, high = min(ticks), max(ticks)

    def place(x: float, y: float) -> Point:
        return left + width * (x - low) / ((high - low) or 1.0), top + height * (1 - y / ups[-1])

    shapes += _grid(ups, left, width, top, height)
    for tick, label in ticks.items():
        shapes += _tick(*place(tick, 0), label)
    for at, row in enumerate(series.values()):
        path = " ".join(f"{_n(x)},{_n(y)}" for x, y in (place(x, y) for x, y, _ in row))
        shapes.append(f'<polyline class="s{at % SERIES} line" points="{path}"/>')
        for x_value, y_value, label in row[::every]:
            x, y = place(x_value, y_value)
            shapes.append(_mark(x, y, at))
            if label:
                shapes.append(_words(x + 6, y - 6, label, "end" if x > left + 0.8 * width else "start", "value"))
    shapes.append(_words(left + width / 2, top + height + 33, across, "middle", "note"))
    shapes.append(_words(0, legend + 10, up, "start", "note"))
    return _svg(shapes, top + height + 38, name)


def _svg(shapes: Iterable[str], height: float, name: str) -> str:
    box = f"0 0 {_n(WIDTH)} {_n(height)}"
    return f'<svg class="chart" viewBox="{box}" role="img" aria-label="{escaped(name)}">{"".join(shapes)}</svg>'


def _legend(names: Iterable[str]) -> tuple[float, list[str]]:
    """(the height it takes, its shapes), in as many lines as it needs."""
    shapes: list[str] = []
    x, y = 0.0, 14.0
    for at, name in enumerate(names):
        label = _cut(name)
        wide = 16 + LETTER * len(label) + 14
        if x and x + wide > WIDTH:
            x, y = 0.0, y + 18
        shapes += [_mark(x + 6, y - 4, at), _words(x + 16, y, label)]
        x += wide
    return (y + 10 if shapes else 0.0), shapes


def _grid(ticks: Sequence[float], left: float, width: float, top: float, height: float) -> list[str]:
    """Lines across the chart at the ticks of an axis that goes up from 0 to the last of them."""
    shapes = []
    for tick in ticks:
        y = top + height * (1 - tick / ticks[-1])
        shapes += [_rule(left, y, left + width, y, "grid"), _words(left - 6, y + 4, f"{tick:,g}", "end")]
    return shapes


def _tick(x: float, y: float, words: str) -> list[str]:
    """A place on an axis along the bottom."""
    return [_rule(x, y, x, y + 4, "axis"), _words(x, y + 17, words, "middle")]


def _mark(x: float, y: float, at: int) -> str:
    """A series' mark: its shape tells series apart as well as its colour does."""
    look = f"s{at % SERIES}"
    r = 4.0
    if at % 4 == 0:
        return f'<circle class="{look}" cx="{_n(x)}" cy="{_n(y)}" r="4"/>'
    corners = {
        1: [(-r, -r), (r, -r), (r, r), (-r, r)],
        2: [(0, -1.3 * r), (1.3 * r, r), (-1.3 * r, r)],
        3: [(0, -1.4 * r), (1.4 * r, 0), (0, 1.4 * r), (-1.4 * r, 0)],
    }[at % 4]
    return f'<polygon class="{look}" points="{" ".join(f"{_n(x + dx)},{_n(y + dy)}" for dx, dy in corners)}"/>'


def _words(x: float, y: float, words: str, anchor: str = "start", look: str = "") -> str:
    kind = f' class="{look}"' if look else ""
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text{kind} x="{_n(x)}" y="{_n(y)}"{side}>{escaped(words)}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float, look: str) -> str:
    return f'<line class="{look}" x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"/>'


def _box(x: float, y: float, width: float, height: float) -> str:
    return f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'


def _n(value: float) -> str:
    rounded = f"{value:.1f}".removesuffix(".0")
    return "0" if rounded == "-0" else rounded


def _cut(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _label_room(labels: Iterable[str]) -> float:
    return LETTER * max((len(_cut(label)) for label in labels), default=0) + 14


def _ticks(high: float, low: float = 0.0) -> list[float]:
    """About five round numbers from at most `low` to at least `high`."""
    span = (high - low) or abs(high) or 1.0
    rough = span / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(at * step, 10) for at in range(first, max(last, first + 1) + 1)]
