"""A matplotlib figure that is written whole and depends on nothing but what is drawn, and the small parts of charts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hoicli.errors import UsageError
from hoicli.io.destinations import NO_MATPLOTLIB, check_figure
from hoicli.io.outputs import atomic_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from hoicli.figures.styles import CAPTION, SMALL, Style


def name_bars(ax: Axes, places: int, names: Sequence[tuple[int, str, bool]]) -> None:
    """A chart of horizontal bars from the top: (place, name, whether it is a heading) along its left edge."""
    bare_axes(ax)
    ax.set_ylim(places - 0.4, -0.6)
    ax.set_yticks([y for y, _, _ in names], [text for _, text, _ in names])
    for label, (_, _, heading) in zip(ax.get_yticklabels(), names, strict=True):
        label.set_fontweight("bold" if heading else "normal")
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.axvline(0, color="#000000", lw=0.8)


def look_of(style: Style) -> dict[str, Any]:
    return {"facecolor": style.colour, "hatch": style.hatch, "edgecolor": style.ink, "linewidth": 0.4}


def bare_axes(ax: Axes) -> None:
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=SMALL)


def add_caption(figure: Figure, text: str, above: float = 0.0) -> None:
    """Small print along the lower edge; room is kept for it and for `above` inches of legend over it."""
    room = (CAPTION + above) / figure.get_figheight()
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, room, 1, 1 - room))
    figure.text(0.01, 0.05 / figure.get_figheight(), text, fontsize=SMALL, style="italic", color="#444444", va="bottom")


@contextmanager
def saved(path: str) -> Iterator[Figure]:
    """An empty figure, written to `path` in one piece when the block ends well.

    No pyplot, so no window, no global figure; and matplotlib's own defaults instead of a user's matplotlibrc, a fixed
    salt for SVG ids and no dates, so that the bytes depend on nothing but what is drawn.
    """
    check_figure(path)
    ending = Path(path).suffix.lower()
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError(NO_MATPLOTLIB) from None
    settings = {
        **{key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")},
        "font.size": SMALL,
        "axes.labelsize": SMALL,
        "hatch.linewidth": 0.5,
        "svg.hashsalt": "hoicli",
        "svg.fonttype": "none",  # words stay words: searchable, and editable by whoever sets the paper
        "pdf.fonttype": 42,  # TrueType; publishers refuse matplotlib's default, Type 3
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
