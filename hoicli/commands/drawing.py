"""The options of --plot's figure, which all commands that draw share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING

from hoicli.commands.options import option
from hoicli.errors import UsageError

if TYPE_CHECKING:
    from hoicli.figures.styles import Look


@dataclass(frozen=True)
class Drawing:
    """How the figure of --plot looks."""

    width: float | None = option(
        None, "--width W", "The width of --plot in inches; its panels stand below each other where it is narrow."
    )
    font_size: float | None = option(None, "--font-size S", "The print of --plot in points (8; with --style slide 14).")
    style: str = option(
        "paper", "--style", "For whom --plot is: readers of a page, or of a slide.", one_of="figures.styles:SHEETS"
    )

    def look(self, plot: str | None) -> Look:
        """The look of a figure; raises `UsageError` for an impossible one, and for options without a figure."""
        from hoicli.figures.styles import NARROWEST, SHEETS

        given = {
            "--width": self.width is not None,
            "--font-size": self.font_size is not None,
            "--style": self.style != "paper",
        }
        if plot is None and any(given.values()):
            named = ", ".join(name for name, there in given.items() if there)
            raise UsageError(f"{named}: name the figure with --plot FILE")
        for name, value, least, most in (("--width", self.width, 1, 50), ("--font-size", self.font_size, 3, 72)):
            if value is not None and not least <= value <= most:
                raise UsageError(f"{name} {value:g}: give a number from {least} to {most}")
        look = SHEETS[self.style]
        look = replace(look, width=self.width, font=self.font_size or look.font)
        if look.width is not None and look.room(0.0) < NARROWEST:
            needed = ceil(10 * NARROWEST * look.scale) / 10
            raise UsageError(f"--width {look.width:g}: print of {look.font:g} points needs at least {needed:g} inches")
        return look
