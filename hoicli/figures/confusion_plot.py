"""Heat maps of confusions: which verb, object or class is predicted in place of which.

Names that a detector confuses with each other are neighbours, so that confusions form blocks along the diagonal, which
is what a reader looks for. Their order comes from average-linkage clustering of how often two are confused, either way,
with scipy's `optimal_ordering`. An order by meaning (WordNet) would scatter the confusions of a detector that goes by
shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hoicli.figures.canvas import LETTER, add_title, draw_cells, save_figure, title_lines
from hoicli.figures.shown import left_out_remark, short_label
from hoicli.figures.styles import PAGE_WIDTH, PAPER, Look
from hoicli.records.kit import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 4
"""How many heat maps one figure shows at most."""
MOST_NAMES = 25
"""How many names a heat map has at most: those with the most confusions."""
_FEW, _LARGE = 10, 1.5
"""If a figure is enlarged by _LARGE or more (for a slide), two heat maps with at least _FEW names stand side by side;
otherwise only if there is room for MOST_NAMES each."""
_LINE, _SMALLEST = 0.15, 0.9
"""Inches: the height of a row of cells, up to twice as much if the width leaves room; the side of the smallest map,
whose rows are as high as that takes."""
_SCALE, _TITLE, _TITLE_LINE, _AXIS, _LABEL = 0.6, 0.32, 0.15, 0.32, 1.9
"""Inches: the width of the colour scale, the height of a panel's title and of each further line of it, the width of an
axis without its names, and that of the lower axis' label in one line."""


@dataclass(frozen=True)
class Panel:
    """The K confusions to draw as one heat map, each of a pair of different names. names [N]: of the verbs, objects or
    classes; true, predicted [K]: the places in `names` of the annotated and of the predicted one; count [K]: how many
    units (such as pairs) were confused so; share [K]: their percent of all units that are annotated so."""

    title: str
    names: Sequence[str]
    true: Ints
    predicted: Ints
    count: Ints
    share: Floats

    @property
    def total(self) -> Ints:
        """Return [N] how many confused units each name is part of, as the annotated or the predicted one."""
        numbers = np.concatenate([self.true, self.predicted])
        total: Ints = np.bincount(numbers, np.tile(self.count, 2), minlength=len(self.names)).astype(np.int64)
        return total


@dataclass(frozen=True)
class ConfusionMap:
    """A heat map to draw. names [N]: of the rows and the columns. shares [N, N]: what percent of the units annotated as
    the row's name were predicted as the column's; 0 on the diagonal."""

    title: str
    names: Sequence[str]
    shares: Floats


def order_names(shares: Floats) -> list[int]:
    """Return an order of N names in which confused names are neighbours, as a list of the numbers 0 to N - 1. The
    same shares always give the same order. shares [N, N]: what percent of the units annotated as each name were
    predicted as each other one."""
    if len(shares) < 3:
        return list(range(len(shares)))
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    similarity = shares + shares.T  # confused either way
    distance = similarity.max() - similarity
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), method="average", optimal_ordering=True)
    leaves: list[int] = leaves_list(tree).tolist()
    return leaves if leaves[0] < leaves[-1] else leaves[::-1]  # either direction is as good: fix one


def most_confused(panel: Panel, limit: int) -> ConfusionMap:
    """Return the heat map of the `limit` names with the most confusions, confused names side by side. Of names with
    equally many confusions, the first ones are taken. Names without any are left out, unless no name has any."""
    total = panel.total
    chosen = np.sort(np.argsort(-total, kind="stable")[:limit])
    chosen = chosen[total[chosen] > 0] if total.any() else chosen
    place_in_map = np.full(len(total), -1, dtype=np.int64)  # of each name of the panel, -1 for one that is left out
    place_in_map[chosen] = np.arange(len(chosen))
    row, column = place_in_map[panel.true], place_in_map[panel.predicted]
    in_map = (row >= 0) & (column >= 0)
    shares = np.zeros((len(chosen), len(chosen)))
    shares[row[in_map], column[in_map]] = panel.share[in_map]
    order = order_names(shares)
    names = [panel.names[number] for number in chosen[order].tolist()]
    return ConfusionMap(panel.title, names, shares[np.ix_(order, order)])


def plot_confusion(panels: Sequence[Panel], path: str, look: Look = PAPER, *, caveats: Sequence[str] = ()) -> None:
    """Write a figure of heat maps, one for each panel with confusions: annotated names along the left edge, predicted
    ones along the lower edge, the share as colour. If there are no confusions at all, the first panel's empty map.

    Two maps stand side by side if there is room, else one below the other. Names without a confusion are left out, and
    those beyond MOST_NAMES or the figure's width. Raises `UsageError` for a file that cannot be written."""
    to_draw = [panel for panel in panels if panel.count.any()] or panels[:1]
    layout = _layout(to_draw, look)
    with save_figure(path, look, _remark(to_draw, layout.maps), caveats) as figure:
        figure.set_layout_engine("none")  # all places are computed here
        figure.set_size_inches(layout.width, layout.height)
        for number in range(len(layout.maps)):
            _add_map(figure, layout, number)


class _Layout(NamedTuple):
    """Where the heat maps stand in a figure; lengths are in inches. across: how many stand side by side; margin: the
    room for the names along an axis; sides: the side of each map, which is square; width: of the figure; heights: of
    each row of maps, from the top; titles: of the titles over each row."""

    maps: Sequence[ConfusionMap]
    across: int
    margin: float
    sides: Sequence[float]
    width: float
    heights: Sequence[float]
    titles: Sequence[float]

    @property
    def height(self) -> float:
        """Return the height of the figure."""
        return sum(self.heights)

    def corner(self, number: int) -> tuple[float, float]:
        """Return how far the lower left corner of a map is from the left and the lower edge of the figure, in inches.
        number: the map's, in `maps`, which fill the figure row by row."""
        row, column = divmod(number, self.across)
        x = column * self.width / self.across + self.margin
        return x, self.height - sum(self.heights[:row]) - self.titles[row] - self.sides[number]

    def shares(self, inches: Sequence[float]) -> tuple[float, float, float, float]:
        """Return a rectangle (left, bottom, width, height) in shares of the figure's width and height, as matplotlib
        wants it. inches: the rectangle in inches."""
        x, y, width, height = np.array(inches) / np.array([self.width, self.height, self.width, self.height])
        return x, y, width, height


def _layout(panels: Sequence[Panel], look: Look) -> _Layout:
    """Return the layout of the heat maps of the first MOST_PANELS panels, with as many names as there is room for.
    look: the figure's size. All lengths are in inches."""
    room = look.room(PAGE_WIDTH)
    names_beside = _FEW if look.scale >= _LARGE else MOST_NAMES  # at least so many in each map, else no two in a row
    width_of_two = 2 * (_margin(panels) + _SCALE + _LINE * names_beside)
    across = 2 if len(panels) > 1 and room >= width_of_two else 1
    maps = _fitting_maps(panels[:MOST_PANELS], room / across)
    margin, longest = _margin(maps), max(len(heat_map.names) for heat_map in maps)
    # a row of cells is as high as it is wide: it grows into a width that the user gave
    room_for_line = (room / across - margin - _SCALE) / longest
    line = min(max(room_for_line, _LINE), 2 * _LINE) if look.width is not None else _LINE
    line = max(line, min(_SMALLEST / longest, room_for_line))
    sides = [line * len(heat_map.names) for heat_map in maps]
    width = across * (margin + max(max(sides) + _SCALE, _LABEL)) if look.width is None else room
    rows = [slice(first, first + across) for first in range(0, len(sides), across)]
    titles = []
    for row in rows:
        line_counts = [len(title_lines(heat_map.title, width / across - margin)) for heat_map in maps[row]]
        titles.append(_TITLE + _TITLE_LINE * (max(line_counts) - 1))
    heights = [max(sides[row]) + _margin(maps[row]) + title for row, title in zip(rows, titles, strict=True)]
    return _Layout(maps, across, margin, sides, width, heights, titles)


def _fitting_maps(panels: Sequence[Panel], width: float) -> list[ConfusionMap]:
    """Return each panel's heat map with as many names, 2 or more, as fit into a width in inches (the same for all)."""
    for limit in range(MOST_NAMES, 1, -1):
        maps = [most_confused(panel, limit) for panel in panels]
        longest = max(len(heat_map.names) for heat_map in maps)
        if _margin(maps) + _SCALE + _LINE * longest <= width:
            break
    return maps


def _remark(panels: Sequence[Panel], maps: Sequence[ConfusionMap]) -> str:
    """Return the figure's remark about names and panels that are left out; "" if it shows all."""
    remarks = []
    for panel, heat_map in zip(panels, maps, strict=False):  # the panels beyond the last map are left out
        confused, names = int((panel.total > 0).sum()), len(heat_map.names)
        if confused > names:
            remarks.append(f"{panel.title}: the {names} names with the most confusions of {confused}.")
    if not panels[0].count.any():
        remarks.append("No name is taken for another.")
    remarks.append(left_out_remark(len(maps), len(panels), "heat maps"))
    return " ".join(filter(None, remarks))


def _add_map(figure: Figure, layout: _Layout, number: int) -> None:
    """Draw a heat map of a layout at its place in the figure, with its title and its colour scale. number: the map's,
    in `layout.maps`."""
    from matplotlib.ticker import MaxNLocator

    heat_map, side = layout.maps[number], layout.sides[number]
    x, y = layout.corner(number)
    ax = figure.add_axes(layout.shares([x, y, side, side]))
    names = [_label(name) for name in heat_map.names]
    shares = heat_map.shares.copy()
    np.fill_diagonal(shares, np.nan)  # grey: no confusions
    highest = float(heat_map.shares.max()) or 1.0
    mesh = draw_cells(ax, shares, names, names, 0, highest, digits=None, colours="Blues")
    ax.spines[:].set_visible(True)
    ax.tick_params(axis="x", rotation=90)
    ax.set_ylabel("annotated")
    gap = " " if layout.width / layout.across - layout.margin > 0.99 * _LABEL else "\n"
    ax.set_xlabel(f"predicted as{gap}(% of annotated)", loc="center" if side > _LABEL else "left")
    add_title(ax, heat_map.title, layout.width / layout.across - layout.margin)
    scale = figure.colorbar(mesh, cax=figure.add_axes(layout.shares([x + side + 0.12, y, 0.1, side])))
    scale.ax.yaxis.set_major_locator(MaxNLocator(nbins=max(int(side / 0.35), 1), steps=[1, 2, 5, 10]))
    scale.outline.set_visible(False)


def _margin(panels: Sequence[Panel | ConfusionMap]) -> float:
    """Return the width in inches of an axis with the longest name of any panel."""
    names = chain.from_iterable(panel.names for panel in panels)
    return LETTER * max(len(_label(name)) for name in names) + _AXIS


def _label(name: str) -> str:
    """Return a name as figures show it: short, with spaces in place of underscores."""
    return short_label(name.replace("_", " "))
