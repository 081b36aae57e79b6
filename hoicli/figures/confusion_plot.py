"""Which name is predicted in place of which, as a heat map whose neighbours are confused with each other.

Names are ordered by average-linkage clustering of how often two are confused, either way, with the leaves in their best
order (scipy's `optimal_ordering`): what the detector confuses stands together, in blocks along the diagonal, which is
what a reader looks for. An order by meaning (WordNet) would scatter the confusions of a detector that goes by shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hoicli.figures.canvas import LETTER, add_title, draw_cells, save_figure
from hoicli.figures.shown import first_of, label
from hoicli.figures.styles import PAGE_WIDTH, PAPER, Look
from hoicli.records.kit import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 4
"""How many heat maps one figure shows at most."""
MOST_NAMES = 25
"""Names in a heat map at most: those with the most confusions."""
_FEW, _LARGE = 10, 1.5
"""How many names suffice for heat maps side by side in large print (on a slide), and from what enlargement on it is."""
_LINE = 0.15
"""Inches of the height of a name's line; up to twice as many if the width leaves room."""
_SCALE, _TITLE, _AXIS = 0.6, 0.32, 0.32
"""Inches of the scale of colours, of a panel's title, and of an axis without its names."""


@dataclass(frozen=True)
class Panel:
    """The confusions to draw as one heat map. true, predicted [K]: the numbers of two different names, in `names`, for
    each of K confusions; count [K]: how many units annotated as the one were predicted as the other; share [K]: their
    percent of all units that are annotated so."""

    title: str
    names: Sequence[str]
    true: Ints
    predicted: Ints
    count: Ints
    share: Floats

    @property
    def total(self) -> Ints:
        """Return [N] how many confused units each name is part of."""
        numbers = np.concatenate([self.true, self.predicted])
        total: Ints = np.bincount(numbers, np.tile(self.count, 2), minlength=len(self.names)).astype(np.int64)
        return total


@dataclass(frozen=True)
class ConfusionMap:
    """A heat map to draw. names [N]: of the rows (annotated) and the columns (predicted). shares [N, N]: in percent, 0
    on the diagonal."""

    title: str
    names: Sequence[str]
    shares: Floats


def order_names(shares: Floats) -> list[int]:
    """Return the names' numbers so ordered that confused names stand together; equal shares give an equal order."""
    number = len(shares)
    if number < 3:
        return list(range(number))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    alike = shares + shares.T
    apart = alike.max() - alike
    np.fill_diagonal(apart, 0.0)
    tree = linkage(squareform(apart, checks=False), method="average", optimal_ordering=True)
    leaves: list[int] = leaves_list(tree).tolist()
    return leaves if leaves[0] < leaves[-1] else leaves[::-1]  # either direction is as good: fix one


def most_confused(panel: Panel, limit: int) -> ConfusionMap:
    """Return the heat map of the `limit` names with the most confusions, neighbours confused with each other. If two
    names have equally many, the first one is taken. Names without confusions are left out, unless no name has any."""
    total = panel.total
    chosen = np.sort(np.argsort(-total, kind="stable")[:limit])
    chosen = chosen[total[chosen] > 0] if total.any() else chosen
    new_number = np.full(len(total), -1, dtype=np.int64)
    new_number[chosen] = np.arange(len(chosen))
    true, predicted = new_number[panel.true], new_number[panel.predicted]
    inside = (true >= 0) & (predicted >= 0)
    shares = np.zeros((len(chosen), len(chosen)))
    shares[true[inside], predicted[inside]] = panel.share[inside]
    order = order_names(shares)
    names = [panel.names[number] for number in chosen[order].tolist()]
    return ConfusionMap(panel.title, names, shares[np.ix_(order, order)])


def plot_confusion(panels: Sequence[Panel], path: str, look: Look = PAPER, *, caveats: Sequence[str] = ()) -> None:
    """Write a figure of heat maps: annotated names along the left edge, predicted ones along the lower edge, the share
    as colour. Two maps stand side by side if there is room (in large print for fewer names, so that slides have room),
    else one below the other. Names without a confusion, and those beyond MOST_NAMES or the width, are left out.

    If nothing is confused, the map is empty. Raises `UsageError` for a file that cannot be drawn."""
    to_draw = [panel for panel in panels if panel.count.any()] or panels[:1]
    layout = _layout(to_draw, look)
    with save_figure(path, look, _remark(to_draw, layout.maps), caveats) as figure:
        figure.set_layout_engine("none")  # every place is known
        figure.set_size_inches(layout.width, layout.height)
        for number in range(len(layout.maps)):
            _add_map(figure, layout, number)


class _Layout(NamedTuple):
    """Where the heat maps stand in a figure, in inches. across: how many stand side by side; margin: the room for the
    names along an axis; sides: the side of each map, which is square; heights: of each row of maps."""

    maps: Sequence[ConfusionMap]
    across: int
    margin: float
    sides: Sequence[float]
    width: float
    heights: Sequence[float]

    @property
    def height(self) -> float:
        """Return the height of the figure."""
        return sum(self.heights)

    def corner(self, number: int) -> tuple[float, float]:
        """Return how far the lower left corner of a map is from the left and from the lower edge of the figure."""
        left = number % self.across * self.width / self.across + self.margin
        return left, self.height - sum(self.heights[: number // self.across]) - _TITLE - self.sides[number]

    def shares(self, inches: Sequence[float]) -> tuple[float, float, float, float]:
        """Return a rectangle (left, low, width, height) as matplotlib wants it, in shares of the figure's sides."""
        left, low, width, height = np.array(inches) / np.array([self.width, self.height, self.width, self.height])
        return left, low, width, height


def _layout(panels: Sequence[Panel], look: Look) -> _Layout:
    """Return where the heat maps of the first MOST_PANELS panels stand, with the most names that there is room for."""
    room = look.room(PAGE_WIDTH)
    names_beside = _FEW if look.scale >= _LARGE else MOST_NAMES
    width_of_two = 2 * (_margin(panels) + _SCALE + _LINE * names_beside)
    across = 2 if len(panels) > 1 and room >= width_of_two else 1
    maps = _fitting_maps(panels[:MOST_PANELS], room / across)
    margin, longest = _margin(maps), max(len(heat_map.names) for heat_map in maps)
    room_for_line = (room / across - margin - _SCALE) / longest if look.width is not None else _LINE
    line = min(max(room_for_line, _LINE), 2 * _LINE)
    sides = [line * len(heat_map.names) for heat_map in maps]
    width = across * (margin + max(max(sides), 1.0) + _SCALE) if look.width is None else room
    heights = [max(sides[first : first + across]) + margin + _TITLE for first in range(0, len(sides), across)]
    return _Layout(maps, across, margin, sides, width, heights)


def _fitting_maps(panels: Sequence[Panel], width: float) -> list[ConfusionMap]:
    """Return the heat map of each panel with the most names that fit into a width in inches, but 2 of them at least."""
    for limit in range(MOST_NAMES, 1, -1):
        maps = [most_confused(panel, limit) for panel in panels]
        longest = max(len(heat_map.names) for heat_map in maps)
        if _margin(maps) + _SCALE + _LINE * longest <= width:
            break
    return maps


def _remark(panels: Sequence[Panel], maps: Sequence[ConfusionMap]) -> str:
    """Return what the figure says of the names and panels that its maps leave out."""
    remarks = []
    for panel, heat_map in zip(panels, maps, strict=False):
        confused, names = int((panel.total > 0).sum()), len(heat_map.names)
        if confused > names:
            remarks.append(f"{panel.title}: the {names} names with the most confusions of {confused}.")
    if not panels[0].count.any():
        remarks.append("No name is taken for another.")
    remarks.append(first_of(len(maps), len(panels), "heat maps"))
    return " ".join(filter(None, remarks))


def _add_map(figure: Figure, layout: _Layout, number: int) -> None:
    """Draw a heat map at its place in the figure, with its title and its scale of colours."""
    from matplotlib.ticker import MaxNLocator

    heat_map, side = layout.maps[number], layout.sides[number]
    left, low = layout.corner(number)
    ax = figure.add_axes(layout.shares([left, low, side, side]))
    names = [_label(name) for name in heat_map.names]
    shares = heat_map.shares.copy()
    np.fill_diagonal(shares, np.nan)
    highest = float(heat_map.shares.max()) or 1.0
    mesh = draw_cells(ax, shares, names, names, 0, highest, digits=None, colours="Blues")
    ax.spines[:].set_visible(True)
    ax.tick_params(axis="x", rotation=90)
    ax.set_ylabel("annotated")
    ax.set_xlabel("predicted (% of annotated)")
    add_title(ax, heat_map.title, layout.width / layout.across - layout.margin)
    scale = figure.colorbar(mesh, cax=figure.add_axes(layout.shares([left + side + 0.12, low, 0.1, side])))
    scale.ax.yaxis.set_major_locator(MaxNLocator(nbins=max(int(side / 0.35), 1), steps=[1, 2, 5, 10]))
    scale.outline.set_visible(False)


def _margin(panels: Sequence[Panel | ConfusionMap]) -> float:
    """Return how many inches an axis with its names takes."""
    return LETTER * max(len(_label(name)) for name in chain.from_iterable(panel.names for panel in panels)) + _AXIS


def _label(name: str) -> str:
    return label(name.replace("_", " "))
