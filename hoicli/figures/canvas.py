"""Saving a matplotlib figure so that its bytes depend on nothing but what is drawn, and the small parts of charts."""

from __future__ import annotations

import math
import os
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from hoicli.errors import UsageError
from hoicli.figures.styles import NORMAL, PAPER, SMALL, TINY, Look, Style
from hoicli.io.messages import display_name, note
from hoicli.io.outputs import atomic_path, check_figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTER = 0.072
"""The width in inches of a letter in SMALL print, with some room to spare: 0.65 of its height."""
_HANDLE, _LEGEND_LINE, _WRAPPED = 0.55, 0.19, 0.14
"""Inches: the width of a legend's entry without its text, the height of an entry, and of each further line of it."""
_HATCH = 0.45
"""How strong a hatch's colour is against the colour below it, from 0 (invisible) to 1 (full)."""
MISSING = "\N{EN DASH}"
"""The text for a missing value."""


def format_value(value: float | None, digits: int = 1) -> str:
    """Return a value as figures show it, with so many digits after the point; a dash for None and NaN."""
    missing = value is None or math.isnan(value)
    return MISSING if missing else f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def fill_keywords(style: Style) -> dict[str, Any]:
    """Return matplotlib's keywords that fill a shape with the style's colour and hatch. The hatch's colour is a
    mixture: a half-transparent one would look different in PNG, SVG and PDF."""
    hatch_colour = "#"
    for start in (1, 3, 5):  # red, green and blue in #RRGGBB
        below, ink = int(style.colour[start : start + 2], 16), int(style.ink[start : start + 2], 16)
        hatch_colour += f"{round(below + _HATCH * (ink - below)):02X}"
    return {"facecolor": style.colour, "hatch": style.hatch, "edgecolor": hatch_colour, "linewidth": 0.0}


@dataclass(frozen=True)
class Bar:
    """A line of a bar chart: a bar, a heading (without a style), or a gap (without a label, too). value: the bar's
    length, None for a missing value."""

    label: str = ""
    value: float | None = None
    style: Style | None = None


def draw_bars(ax: Axes, bars: Sequence[Bar]) -> None:
    """Draw horizontal bars from the top down into a panel, with labels along the left edge and values at their ends."""
    for y, bar in enumerate(bars):
        if bar.style is None:  # a heading or a gap: its place stays empty
            continue
        if bar.value is not None:
            ax.barh([y], [bar.value], height=0.78, **fill_keywords(bar.style))
            ax.barh([y], [bar.value], height=0.78, facecolor="none", edgecolor="#000000", linewidth=0.5)
        end = (max(bar.value or 0.0, 0.0), y)  # of a negative bar: the axis
        ax.annotate(format_value(bar.value), end, (3, 0), textcoords="offset points", va="center")
    hide_frame(ax)
    ax.spines["left"].set_visible(False)
    ax.axvline(0, color="#000000", lw=0.8)
    labelled_bars = {y: bar for y, bar in enumerate(bars) if bar.label}
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.set_yticks(list(labelled_bars), [bar.label for bar in labelled_bars.values()])
    ax.tick_params(axis="y", length=0)
    for tick, bar in zip(ax.get_yticklabels(), labelled_bars.values(), strict=True):
        tick.set_fontweight("normal" if bar.style else "bold")
    values = [0.0, *(bar.value for bar in bars if bar.value is not None)]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    ax.set_xlim(low - 0.03 * span if low < 0 else 0.0, high + 0.16 * span)  # room for the number at the longest bar


def draw_cells(
    ax: Axes, rows: Any, names: Sequence[str], columns: Sequence[str], low: float, high: float, *, digits: int | None,
    colours: str = "viridis",
) -> Any:  # fmt: skip
    """Draw a heat map into a panel and return its mesh, which a colour bar needs.

    rows: the values [len(names)][len(columns)], the top row first; NaN becomes grey. names, columns: the labels of the
    rows and the columns. low, high: the values at the ends of the colour scale. digits: how many are after the point of
    the number in each cell, None for no numbers. colours: a colour map of matplotlib."""
    ax.set_facecolor("#DDDDDD")
    mesh = ax.pcolormesh(rows, cmap=colours, vmin=low, vmax=high, edgecolors="#FFFFFF", linewidth=0.3)
    ax.invert_yaxis()
    for y, values in enumerate(rows if digits is not None else ()):
        for x, value in enumerate(values):
            ink = "#FFFFFF" if value < (low + high) / 2 else "#000000"
            text = format_value(value, digits or 0)
            ax.text(x + 0.5, y + 0.5, text, ha="center", va="center", fontsize=TINY, color=ink)
    ax.set_xticks([x + 0.5 for x in range(len(columns))], columns)
    ax.set_yticks([y + 0.5 for y in range(len(names))], names)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return mesh


def hide_frame(ax: Axes) -> None:
    """Hide the upper and the right line of a panel's frame."""
    ax.spines[["top", "right"]].set_visible(False)


def title_lines(text: str, width: float) -> list[str]:
    """Return the lines of a title that is at most `width` inches wide."""
    return textwrap.wrap(text, max(int(width / (LETTER * NORMAL / SMALL)), 8))


def add_title(ax: Axes, text: str, width: float) -> None:
    """Put a title over a panel, in as many lines as it needs to be at most `width` inches wide."""
    ax.set_title("\n".join(title_lines(text, width)), fontsize=NORMAL, loc="left")


def add_legend(figure: Figure, entries: Sequence[Artist], columns: int = 4) -> None:
    """Add a legend along the lower edge of a figure, and make the figure higher by the legend's height. entries: what
    is explained, each with its label; columns: the legend has at most so many, and fewer if the figure is narrow."""
    if not entries:
        return
    width, height = figure.get_size_inches()
    labels = [str(entry.get_label()) for entry in entries]
    columns_with_room = int(width / (_HANDLE + LETTER * max(map(len, labels))))
    columns = max(1, min(columns, len(labels), columns_with_room))
    wrapped = [textwrap.wrap(label, int((width - _HANDLE) / LETTER)) for label in labels]
    for entry, lines in zip(entries, wrapped, strict=True):
        entry.set_label("\n".join(lines))
    height += _LEGEND_LINE * math.ceil(len(labels) / columns) + _WRAPPED * sum(len(lines) - 1 for lines in wrapped)
    figure.set_size_inches(width, height)
    figure.legend(
        handles=entries, loc="outside lower center", ncols=columns, frameon=False, borderpad=0.2, labelspacing=0.4
    )


@contextmanager
def save_figure(path: str, look: Look = PAPER, remark: str = "", caveats: Iterable[str] = ()) -> Iterator[Figure]:
    """Give an empty figure to draw into, and write it to `path` if the block ends without an error. look: the figure's
    size; remark, caveats: what a reader must know, which goes to stderr and into the file's description.

    Draw for text of SMALL points and a width of `look.room` inches: the figure is enlarged as a whole to the look's
    text size, so that lines, marks and gaps keep their proportions. The bytes depend on nothing but what is drawn:
    matplotlib's own defaults hold instead of a user's matplotlibrc, ids in SVG are fixed, and there are no dates.
    Raises `UsageError` for a file that cannot be written, and without matplotlib."""
    check_figure(path)
    # a backend is not needed, and the name of one that does not exist would stop the import
    backend = os.environ.pop("MPLBACKEND", None)
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        problem = f"--plot needs matplotlib, which does not work here ({error}): pip install 'hoicli[plot]'"
        raise UsageError(problem, code="missing-package") from None
    finally:
        if backend is not None:
            os.environ["MPLBACKEND"] = backend
    settings: Any = {
        **{key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")},
        "font.size": SMALL,
        "hatch.linewidth": 0.3,
        "svg.hashsalt": "hoicli",
        "svg.fonttype": "none",  # text stays text, not curves: searchable, and editable by whoever sets the paper
        "pdf.fonttype": 42,  # TrueType; publishers refuse matplotlib's default, Type 3
        "text.parse_math": False,  # a `$` in a model's name starts no formula
    }
    description = " ".join(filter(None, [remark, *(f"Caveat: {caveat}." for caveat in caveats)]))
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a model named in a script the font lacks
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        with atomic_path(path, "--plot") as temporary, open(temporary, "wb") as stream:
            _WRITERS[Path(path).suffix.lower()](figure, stream, look, description)
    if description:
        note(f"{display_name(path)}: {description}")


def _write_png(figure: Figure, stream: BinaryIO, look: Look, description: str) -> None:
    """Write a PNG file. It is enlarged by more pixels per inch of the figure."""
    metadata = {"Software": "hoicli", **({"Description": description} if description else {})}
    figure.savefig(stream, format="png", dpi=look.dpi * look.scale, metadata=metadata)


def _write_svg(figure: Figure, stream: BinaryIO, look: Look, description: str) -> None:
    """Write an SVG file. It is enlarged by its width and height; its coordinates (the view box) stay as drawn."""
    buffer = BytesIO()
    figure.savefig(
        buffer, format="svg", metadata={"Creator": "hoicli", "Date": None, "Description": description or None}
    )
    size = re.compile(r'\b(width|height)="([0-9.]+)pt"')
    text = buffer.getvalue().decode()
    stream.write(size.sub(lambda match: f'{match[1]}="{float(match[2]) * look.scale:g}pt"', text, count=2).encode())


def _write_pdf(figure: Figure, stream: BinaryIO, look: Look, description: str) -> None:
    """Write a PDF file. Its page has the enlarged size, and a transformation at its beginning enlarges all drawing.
    Matplotlib cannot do this, so the method of its PDF file that begins a page is replaced."""
    pdf: Any = import_module("matplotlib.backends.backend_pdf")
    metadata = {"Creator": "hoicli", "Producer": "hoicli", "CreationDate": None, "Subject": description or None}
    file = pdf.PdfFile(stream, metadata=metadata)
    new_page = file.newPage

    def begin_enlarged_page(width: float, height: float) -> None:
        """Begin a page of the enlarged size, with the transformation."""
        new_page(width * look.scale, height * look.scale)
        if look.scale != 1.0:
            file.output(look.scale, 0, 0, look.scale, 0, 0, pdf.Op.concat_matrix)  # scales x and y

    file.newPage = begin_enlarged_page
    # `savefig` draws into an open PDF file only through a PdfPages object: make one around this file
    pages = pdf.PdfPages.__new__(pdf.PdfPages)
    pages._file, pages._ensure_file = file, lambda: file
    figure.savefig(pages, format="pdf", dpi=look.dpi)
    file.finalize()
    file.close()


_WRITERS = {".png": _write_png, ".svg": _write_svg, ".pdf": _write_pdf}
