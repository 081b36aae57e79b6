"""A matplotlib figure that is written whole and depends on nothing but what is drawn, and the small parts of charts."""

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
"""Inches that a letter of small print takes, with some room to spare: 0.65 of its height."""
_HANDLE, _LEGEND_LINE, _WRAPPED = 0.55, 0.19, 0.14
"""Inches: the width of a legend's entry besides its words, the height of a line, and of each wrapped line."""
_HATCH = 0.45
"""How far a hatch stands out from its shape: 1 would be its full ink."""
MISSING = "\N{EN DASH}"
"""The text for a missing value."""


def format_value(value: float | None, digits: int = 1) -> str:
    """Return a value as figures show it, a dash for None and NaN."""
    missing = value is None or math.isnan(value)
    return MISSING if missing else f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def fill(style: Style) -> dict[str, Any]:
    """Return matplotlib's keywords for a shape with the style's colour and hatch. The hatch's ink is mixed with the
    colour below to a lighter, opaque colour, which all three formats draw alike."""
    ground, ink = ([int(colour[start : start + 2], 16) for start in (1, 3, 5)] for colour in (style.colour, style.ink))
    mixed = "#" + "".join(
        f"{round(below + _HATCH * (above - below)):02X}" for below, above in zip(ground, ink, strict=True)
    )
    return {"facecolor": style.colour, "hatch": style.hatch, "edgecolor": mixed, "linewidth": 0.0}


@dataclass(frozen=True)
class Bar:
    """A line of a bar chart; without a style it is a heading or, if it has no label either, a gap."""

    label: str = ""
    value: float | None = None
    style: Style | None = None


def draw_bars(ax: Axes, bars: Sequence[Bar]) -> None:
    """Draw horizontal bars from the top down, with names along the left edge and values at their ends."""
    for y, bar in enumerate(bars):
        if bar.style is None:
            continue
        if bar.value is not None:
            ax.barh([y], [bar.value], height=0.78, **fill(bar.style))
            ax.barh([y], [bar.value], height=0.78, facecolor="none", edgecolor="#000000", linewidth=0.5)
        end = (max(bar.value or 0.0, 0.0), y)
        ax.annotate(format_value(bar.value), end, (3, 0), textcoords="offset points", va="center")
    hide_frame(ax)
    ax.spines["left"].set_visible(False)
    ax.axvline(0, color="#000000", lw=0.8)
    named = {y: bar for y, bar in enumerate(bars) if bar.label}
    ax.set_ylim(len(bars) - 0.4, -0.6)
    ax.set_yticks(list(named), [bar.label for bar in named.values()])
    ax.tick_params(axis="y", length=0)
    for tick, bar in zip(ax.get_yticklabels(), named.values(), strict=True):
        tick.set_fontweight("normal" if bar.style else "bold")
    values = [0.0, *(bar.value for bar in bars if bar.value is not None)]
    low, high = min(values), max(values)
    room = (high - low) or 1.0
    ax.set_xlim(low - 0.03 * room if low < 0 else 0.0, high + 0.16 * room)  # the longest bar's number needs the rest


def draw_cells(
    ax: Axes, rows: Any, names: Sequence[str], columns: Sequence[str], low: float, high: float, *, digits: int | None,
    colours: str = "cividis",
) -> Any:  # fmt: skip
    """Draw a heat map from the top down, NaN in grey, and return what a colour bar is made of. rows: the values; low,
    high: the ends of the colour scale; digits: behind the point of the number in each cell, None for no number."""
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
    """Hide the frame above and to the right of a panel."""
    ax.spines[["top", "right"]].set_visible(False)


def add_title(ax: Axes, text: str, width: float) -> None:
    """Put a title over a panel that is `width` inches wide, in as many lines as it needs."""
    lines = textwrap.wrap(text, max(int(width / (LETTER * NORMAL / SMALL)), 8))
    ax.set_title("\n".join(lines), fontsize=NORMAL, loc="left")


def add_legend(figure: Figure, entries: Sequence[Artist], columns: int = 4) -> None:
    """Add the legend along the lower edge and enlarge the figure by its height. It has at most `columns` columns, fewer
    if the figure is too narrow."""
    if not entries:
        return
    width, height = figure.get_size_inches()
    words = [str(entry.get_label()) for entry in entries]
    columns = max(1, min(columns, len(words), int(width / (_HANDLE + LETTER * max(map(len, words))))))
    wrapped = [textwrap.wrap(label, int((width - _HANDLE) / LETTER)) for label in words]
    for entry, lines in zip(entries, wrapped, strict=True):
        entry.set_label("\n".join(lines))
    height += _LEGEND_LINE * math.ceil(len(words) / columns) + _WRAPPED * sum(len(lines) - 1 for lines in wrapped)
    figure.set_size_inches(width, height)
    figure.legend(
        handles=entries, loc="outside lower center", ncols=columns, frameon=False, borderpad=0.2, labelspacing=0.4
    )


@contextmanager
def save_figure(path: str, look: Look = PAPER, remark: str = "", caveats: Iterable[str] = ()) -> Iterator[Figure]:
    """Yield an empty figure, and write it to `path` in one piece if the block ends without an error. The remark and the
    caveats go to stderr and into the file's description.

    A figure is designed for print of SMALL points, `look.room` inches wide, and enlarged as a whole to the print that
    the look asks for: lines, marks and gaps keep their proportions. No pyplot, so no window, no global figure; and
    matplotlib's own defaults instead of a user's matplotlibrc, a fixed salt for SVG ids and no dates, so that the bytes
    depend on nothing but what is drawn. Raises `UsageError` for a file that cannot be written, and without
    matplotlib."""
    check_figure(path)
    backend = os.environ.pop("MPLBACKEND", None)  # none is used, and one that does not exist would stop the import
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
        "svg.fonttype": "none",  # words stay words: searchable, and editable by whoever sets the paper
        "pdf.fonttype": 42,  # TrueType; publishers refuse matplotlib's default, Type 3
        "text.parse_math": False,  # a `$` in a model's name starts no formula
    }
    description = " ".join(filter(None, [remark, *(f"Caveat: {words}." for words in caveats)]))
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
    words = {"Software": "hoicli", "Description": description}
    metadata = {key: text for key, text in words.items() if text}
    figure.savefig(stream, format="png", dpi=look.dpi * look.scale, metadata=metadata)


def _write_svg(figure: Figure, stream: BinaryIO, look: Look, description: str) -> None:
    """Write an SVG file. Its view box stays as designed; only the stated width and height are enlarged."""
    buffer = BytesIO()
    figure.savefig(
        buffer, format="svg", metadata={"Creator": "hoicli", "Date": None, "Description": description or None}
    )
    size = re.compile(r'\b(width|height)="([0-9.]+)pt"')
    text = buffer.getvalue().decode()
    stream.write(size.sub(lambda match: f'{match[1]}="{float(match[2]) * look.scale:g}pt"', text, count=2).encode())


def _write_pdf(figure: Figure, stream: BinaryIO, look: Look, description: str) -> None:
    """Write a PDF file. Its page has the enlarged size, and everything on it is drawn through one enlarging matrix."""
    pdf: Any = import_module("matplotlib.backends.backend_pdf")
    words = {"Creator": "hoicli", "Producer": "hoicli", "CreationDate": None, "Subject": description or None}
    file = pdf.PdfFile(stream, metadata=words)
    new_page = file.newPage

    def enlarge(width: float, height: float) -> None:
        new_page(width * look.scale, height * look.scale)
        if look.scale != 1.0:
            file.output(look.scale, 0, 0, look.scale, 0, 0, pdf.Op.concat_matrix)

    file.newPage = enlarge
    pages = pdf.PdfPages.__new__(pdf.PdfPages)  # what `savefig` asks for the file that it draws on
    pages._file, pages._ensure_file = file, lambda: file
    figure.savefig(pages, format="pdf", dpi=look.dpi)
    file.finalize()
    file.close()


_WRITERS = {".png": _write_png, ".svg": _write_svg, ".pdf": _write_pdf}
