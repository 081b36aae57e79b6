"""How figures look: their size and text size; the colour, hatch and name of every error type; the lines of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoicli.records.oracles import ORACLES

PAGE_WIDTH, COLUMN_WIDTH = 7.0, 3.4
"""The widths in inches of the text, and of a column, of a paper in two columns."""
BESIDE = 5.0
"""The width in inches of a figure from which on its panels stand side by side."""
NARROWEST = 3.0
"""The width in inches of the narrowest figure with text of SMALL points."""
SMALL, NORMAL, TINY = 8.0, 9.0, 6.0
"""The sizes in points of text, titles and numbers in cells, before `canvas.save_figure` enlarges the whole."""


@dataclass(frozen=True)
class Look:
    """The size of a figure. width: in inches, None for the figure's usual one; font: the text size in points; dpi:
    pixels per inch of a PNG."""

    width: float | None = None
    font: float = SMALL
    dpi: int = 300

    @property
    def scale(self) -> float:
        """Return the factor by which a figure, drawn with text of SMALL points, is enlarged."""
        return self.font / SMALL

    def room(self, natural: float) -> float:
        """Return the width in inches to draw the figure with, before it is enlarged; `natural` by default."""
        return natural if self.width is None else self.width / self.scale


PAPER = Look()
SHEETS = {"paper": PAPER, "slide": Look(font=14.0, dpi=150)}
"""The looks of --style: text of 8 pt on a page, or of 14 pt on a slide (12.25 of its 13.33 inches wide)."""
DIAGNOSIS_PLOTS = ("errors", "frequency", "no-interaction")
"""What `diagnose --plot-kind` takes: here, since `--help` asks for it and shall not load NumPy."""


@dataclass(frozen=True)
class Style:
    """How figures show an error type, an oracle or a model. words: its name, for readers; colour: of its shapes; hatch:
    matplotlib's pattern on them; ink: the pattern's colour."""

    words: str
    colour: str
    hatch: str = ""
    ink: str = "#000000"


_INKS = {
    "duplicate": ("#F0E442", "...."),
    "interaction": ("#0072B2", "////", "#FFFFFF"),
    "association": ("#CC79A7", "xxxx"),
    "object_box": ("#E69F00", "\\\\\\\\"),
    "human_box": ("#56B4E9", "----"),
    "both_boxes": ("#D55E00", "||||", "#FFFFFF"),
    "missed_gt": ("#999999", "++++"),
    "false_positive": ("#FFFFFF",),
    "false_negative": ("#444444",),
}
_OF_NO_NAME = ("#FFFFFF", "oo")
"""The colour and hatch of an oracle that _INKS does not have."""

STYLES: Mapping[str, Style] = {
    "true_positive": Style("True positive", "#009E73"),
    **{name: Style(oracle.words, *_INKS.get(name, _OF_NO_NAME)) for name, oracle in ORACLES.items()},
}
"""Every error type, in its order, then the two oracles that repair no single type. The colours are Okabe and Ito's,
which colour-blind readers can tell apart; the hatches are for grey prints."""

LINES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", "-"),
    ("#56B4E9", "P", "--"),
    ("#000000", "X", "-."),
)
"""(colour, marker, line style) of each model's line, in turn."""

SERIES = tuple(
    Style(words="", colour=colour, hatch=hatch, ink="#FFFFFF")
    for (colour, _, _), hatch in zip(LINES, ("", "////", "....", "xxxx", "\\\\\\\\", "----", "||||"), strict=True)
)
"""How the bars of each model look, in the colours of LINES."""
