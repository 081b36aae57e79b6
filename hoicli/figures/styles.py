"""How figures look: their size and print, the colour, hatch and words of every error type, and the lines of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hoicli.records.oracles import ORACLES

PAGE_WIDTH, COLUMN_WIDTH = 7.0, 3.4
"""Inches of the text and of a column in the usual two-column style."""
BESIDE = 5.0
"""Inches of the narrowest figure whose panels stand beside each other."""
NARROWEST = 3.0
"""Inches of the narrowest figure, in print of SMALL points."""
SMALL, NORMAL, TINY = 8.0, 9.0, 6.0
"""Points that figures are designed in (`canvas.save_figure` enlarges the whole): of print, of titles, of numbers in
cells."""


@dataclass(frozen=True)
class Look:
    """How large a figure is. width: in inches, None for the usual one; font: points of its print; dpi: of a PNG."""

    width: float | None = None
    font: float = SMALL
    dpi: int = 300

    @property
    def scale(self) -> float:
        """Return by what factor the figure is enlarged from its design."""
        return self.font / SMALL

    def room(self, natural: float) -> float:
        """Return how many inches wide the figure is to be designed; `natural` if no width is asked for."""
        return natural if self.width is None else self.width / self.scale


PAPER = Look()
SHEETS = {"paper": PAPER, "slide": Look(font=14.0, dpi=150)}
"""`--style`: print of 8 pt on a page, or of 14 pt on a slide (12.25 inches wide, of 13.33)."""


@dataclass(frozen=True)
class Style:
    """How an error type, an oracle or a series is shown: its name in words, colour, hatch, and the hatch's colour."""

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
"""The look of an oracle that _INKS does not name."""

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
"""Colour, marker and stroke of each model's line, in turn."""

SERIES = tuple(
    Style("", colour, hatch, "#FFFFFF")
    for (colour, _, _), hatch in zip(LINES, ("", "////", "....", "xxxx", "\\\\\\\\", "----", "||||"), strict=True)
)
"""How the bars of each model look, in the colours of LINES."""
