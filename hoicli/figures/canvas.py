"""A matplotlib figure that is written whole and depends on nothing but what is drawn, and the small parts of charts."""

from __future__ import annotations

import math
import os
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hoicli.errors import UsageError
from hoicli.figures.shown import Bar
from hoicli.figures.styles import LEGEND_LINE, LINES, LOOKS, NORMAL, PAPER, SMALL, Look, Style
from hoicli.io.destinations import NO_MATPLOTLIB, check_figure
from hoicli.io.messages import display_name, note
from hoicli.io.outputs import atomic_path

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTER = 0.072
"""Inches that a letter of small print takes, with some room to spare: 0.65 of its height."""
_HANDLE, _WRAPPED = 0.55, 0.14
"""Inches of a legend's entry without its words, and of each further line of them."""
FOOT = 0.05
"""Inches between a legend and the panels above it."""
_HATCH = 0.45
"""How far a hatch stands out from its shape: 1 would be its full ink."""


def fill(style: Style) -> dict[str, Any]:
    """A shape's colour and its hatch, lighter than the style's ink, as matplotlib's keywords."""
    return {"facecolor": style.colour, "hatch": style.hatch, "edgecolor": _mixed(style), "linewidth": 0.0}


def _mixed(style: Style) -> str:
    """The ink of a hatch, mixed with what it lies on: an opaque colour, which all three formats draw alike."""
    ground, ink = ([int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (style.colour, style.ink))
    return "#" + "".join(f"{round(a + _HATCH * (b - a)):02X}" for a, b in zip(ground, ink, strict=True))


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
    figure: Figure, caption: str = "", caveats: Sequence[str] = (), *, legend: Sequence[Artist] = (), columns: int = 4
) -> None:
    """The legend along the lower edge, in as many columns (at most `columns`) as the width has room for; the layout
    does not find out by itself what it takes. The caption and the caveats go beside the picture: `saved` says them."""
    remark(figure, *filter(None, [caption]), *(f"Caveat: {words}." for words in caveats))
    if not legend:
        return
    width, height = figure.get_size_inches()
    columns = min(columns, legend_columns([str(entry.get_label()) for entry in legend], width))
    letters = int((width - _HANDLE) / LETTER)
    labels = [textwrap.wrap(str(entry.get_label()), letters) for entry in legend]
    for entry, words in zip(legend, labels, strict=True):
        entry.set_label("\n".join(words))
    taken = LEGEND_LINE * math.ceil(len(legend) / columns) + _WRAPPED * sum(len(words) - 1 for words in labels)
    figure.set_size_inches(width, height + taken)
    height += taken
    figure.legend(
        handles=legend, loc="lower center", bbox_to_anchor=(0.5, 0.0), ncols=columns, frameon=False, fontsize=SMALL,
        borderpad=0.2, labelspacing=0.4,
    )  # fmt: skip
    room = (taken + FOOT) / height
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, room, 1, 1 - room))


def legend_columns(labels: Sequence[str], width: float) -> int:
    """How many columns of a legend `width` inches have room for; at least 1."""
    longest = max((len(label) for label in labels), default=0)
    return max(1, min(len(labels), int(width / (_HANDLE + LETTER * longest))))


def remark(figure: Figure, *words: str) -> None:
    """Words about a figure that stand beside it: on stderr when it is written, and in the file's description."""
    figure.set_label("\n".join(filter(None, [str(figure.get_label()), *words])))


def titled(ax: Axes, text: str, width: float) -> None:
    """A title over a panel that is `width` inches wide, in as many lines as it needs."""
    lines = textwrap.wrap(text, max(int(width / (LETTER * NORMAL / SMALL)), 8))
    ax.set_title("\n".join(lines), fontsize=NORMAL, loc="left")


@contextmanager
def saved(path: str, look: Look = PAPER) -> Iterator[Figure]:
    """An empty figure, written to `path` in one piece when the block ends well; its remarks go to stderr.

    A figure is designed for print of SMALL points, `look.room` inches wide, and enlarged as a whole to the print that
    the look asks for: lines, marks and gaps keep their proportions. No pyplot, so no window, no global figure; and
    matplotlib's own defaults instead of a user's matplotlibrc, a fixed salt for SVG ids and no dates, so that the bytes
    depend on nothing but what is drawn.
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
        "hatch.linewidth": 0.3,
        "svg.hashsalt": "hoicli",
        "svg.fonttype": "none",  # words stay words: searchable, and editable by whoever sets the paper
        "pdf.fonttype": 42,  # TrueType; publishers refuse matplotlib's default, Type 3
        "text.parse_math": False,  # a `$` in a model's name starts no formula
    }
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a model named in a script the font lacks
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        said = str(figure.get_label()).replace("\n", " ")
        with atomic_path(path, "--plot") as temporary, open(temporary, "wb") as stream:
            _WRITERS[ending](figure, stream, look, {"Description": said} if said else {})
    if said:
        note(f"{display_name(path)}: {said}")


def _write_png(figure: Figure, stream: BinaryIO, look: Look, words: Mapping[str, str]) -> None:
    figure.savefig(stream, format="png", dpi=look.dpi * look.scale, metadata={"Software": "hoicli", **words})


def _write_svg(figure: Figure, stream: BinaryIO, look: Look, words: Mapping[str, str]) -> None:
    """The view box stays as it is drawn; the size around it is the look's."""
    drawn = BytesIO()
    undated: dict[str, str | None] = {"Creator": "hoicli", "Date": None}
    figure.savefig(drawn, format="svg", metadata={**undated, **words})
    text = drawn.getvalue().decode()
    stream.write(_SIZE.sub(lambda found: f'{found[1]}="{float(found[2]) * look.scale:g}pt"', text, count=2).encode())


_SIZE = re.compile(r'\b(width|height)="([0-9.]+)pt"')


def _write_pdf(figure: Figure, stream: BinaryIO, look: Look, words: Mapping[str, str]) -> None:
    """The page is as large as the look has it, and everything on it is drawn through one enlarging matrix."""
    pdf: Any = import_module("matplotlib.backends.backend_pdf")
    undated = {"Creator": "hoicli", "Producer": "hoicli", "CreationDate": None}
    file = pdf.PdfFile(stream, metadata={**undated, **({"Subject": words["Description"]} if words else {})})
    new_page = file.newPage

    def enlarged(width: float, height: float) -> None:
        new_page(width * look.scale, height * look.scale)
        if look.scale != 1.0:
            file.output(look.scale, 0, 0, look.scale, 0, 0, pdf.Op.concat_matrix)

    file.newPage = enlarged
    pages = pdf.PdfPages.__new__(pdf.PdfPages)  # what `savefig` asks for the file that it draws on
    pages._file, pages._ensure_file = file, lambda: file
    figure.savefig(pages, format="pdf", dpi=look.dpi)
    file.finalize()
    file.close()


_WRITERS = {".png": _write_png, ".svg": _write_svg, ".pdf": _write_pdf}
