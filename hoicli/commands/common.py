"""Options that several commands share, each declared once so that it reads the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

Output = Annotated[
    str,
    typer.Option("-o", "--output", metavar="FILE", help="Write here, whole or not at all (.gz compresses); - is stdout."),
]
OnError = Annotated[
    str,
    typer.Option("--on-error", metavar="stop|skip", help="A bad line stops the run, or is dropped, counted and reported."),
]
Dataset = Annotated[str, typer.Option("--dataset", help="The benchmark whose labels are meant.")]


def skips(on_error: str) -> bool:
    """Whether bad lines are to be skipped; refuses anything but stop and skip."""
    from hoicli.errors import UsageError

    if on_error not in ("stop", "skip"):
        raise UsageError(f"--on-error {on_error}: choose stop or skip")
    return on_error == "skip"
