"""A matplotlib figure that is written whole and depends on nothing but what is drawn, and the small parts of charts."""

from __future__ import annotations

import math
import os
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hoicli.errors import UsageError
from hoicli.figures.shown import Bar
from hoicli.figures.styles import CAPTION, LEGEND_LINE, LINES, LOOKS, NOTE_LINE, SMALL, Style
from hoicli.io.destinations import NO_MATPLOTLIB, check_figure
from hoicli.io.outputs import atomic_path

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTERS_PER_INCH = 16
"""Of small print in italics, with room to spare."""


def fill(style: Style) -> dict[str, Any]:
    """A shape's colour and hatch, as matplotlib's keywords."""
    return {"facecolor": style.colour, "hatch": style.hatch, "edgecolor": style.ink, "linewidth": 0.4}


def draw_bars(ax: Axes, bars: Sequence[Bar]) -> None:
    """Horizontal bars from the top, their names along the left edge and their values at their ends."""
    for y, bar in enumerate(bars):
        if not bar.look:
            continue
        if bar.value is not None:
            ax.barh([y], [bar.value], height=0.78, **fill(LOOKS[bar.look]))
            ax.barh([y], [bar.value], height=0.78, facecolor="none", edgecolor="#000000", linewidth=0.5)
        text = "\N{EN DASH}" if bar.value is None else f"{bar.value:.1f}".replace("-", "\N{MINUS SIGN}")
        end = (max(bar.value or 0.0, 0.0), y)
        ax.annotate(text, end, (3, 0), textcoords="offset points", va="center", fontsize=SMALL)
    hide_frame(ax)
    ax.set_ylim(len(bars) - 0.4, -0.6)
    named = [(y, bar) for y, bar in enumerate(bars) if bar.label]
    ax.set_yticks([y for y, _ in named], [bar.label for _, bar in named])
    for tick, (_, bar) in zip(ax.get_yticklabels(), named, strict=True):
        tick.set_fontweight("normal" if bar.look else "bold")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.axvline(0, color="#000000", lw=0.8)
    values = [0.0, *(bar.value for bar in bars if bar.value is not None)]
    low, high = min(values), max(values)
    room = (high - low) or 1.0
    ax.set_xlim(low - 0.03 * room if low < 0 else 0.0, high + 0.16 * room)  # the longest bar's number needs the rest


def draw_lines(ax: Axes, lines: Iterable[tuple[str, Sequence[tuple[float, float]]]]) -> None:
    """A line a series through its points, each with a colour, marker and stroke of its own."""
    for at, (name, points) in enumerate(lines):
        colour, marker, stroke = LINES[at % len(LINES)]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        ax.plot(xs, ys, color=colour, marker=marker, linestyle=stroke, ms=4, lw=1.2, label=name or None)
    hide_frame(ax)


def hide_frame(ax: Axes) -> None:
    """No frame above and to the right."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=SMALL)


def add_foot(
    figure: Figure, caption: str, caveats: Sequence[str] = (), *, legend: Sequence[Artist] = (), columns: int = 1
) -> None:
    """Along the lower edge the caption, with a caveat on lines of its own, and the legend above it.

    The figure grows by what the caveats take. Room is kept for all of it, which the layout does not find out by itself.
    """
    width, height = figure.get_size_inches()
    lines = [caption] if caption or not caveats else []
    lines += [line for words in caveats for line in textwrap.wrap(f"Caveat: {words}.", int(LETTERS_PER_INCH * width))]
    further = NOTE_LINE * (len(lines) - 1)
    figure.set_size_inches(width, height + further)
    height = figure.get_figheight()
    print_height = CAPTION + further
    if legend:
        figure.legend(
            handles=legend, loc="lower center", bbox_to_anchor=(0.5, print_height / height), ncols=columns,
            frameon=False, fontsize=SMALL, borderpad=0.2,
        )  # fmt: skip
    room = (print_height + LEGEND_LINE * math.ceil(len(legend) / columns)) / height
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, room, 1, 1 - room))
    text = "\n".join(lines)
    figure.text(0.01, 0.05 / height, text, fontsize=SMALL, style="italic", color="#444444", va="bottom")


@contextmanager
def saved(path: str) -> Iterator[Figure]:
    """An empty figure, written to `path` in one piece when the block ends well.

    No pyplot, so no window, no global figure; and matplotlib's own defaults instead of a user's matplotlibrc, a fixed
    salt for SVG ids and no dates, so that the bytes depend on nothing but what is drawn.
    """
    check_figure(path)
    ending = Path(path).suffix.lower()
    backend = os.environ.pop("MPLBACKEND", None)  # none is used, and one that does not exist would stop the import
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(NO_MATPLOTLIB) from None
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    settings = {
        **{key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")},
        "font.size": SMALL,
        "axes.labelsize": SMALL,
        "hatch.linewidth": 0.5,
        "svg.hashsalt": "hoicli",
        "svg.fonttype": "none",  # words stay words: searchable, and editable by whoever sets the paper
        "pdf.fonttype": 42,  # TrueType; publishers refuse matplotlib's default, Type 3
        "text.parse_math": False,  # a `$` in a model's name starts no formula
    }
    undated: Mapping[str, Mapping[str, str | None]] = {
        ".png": {"Software": "hoicli"},
        ".svg": {"Creator": "hoicli", "Date": None},
        ".pdf": {"Creator": "hoicli", "Producer": "hoicli", "CreationDate": None},
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a model named in a script the font lacks
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        with atomic_path(path, "--plot") as temporary, open(temporary, "wb") as stream:
            figure.savefig(stream, format=ending[1:], dpi=300, metadata=undated[ending])
