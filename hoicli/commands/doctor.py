"""`hoicli doctor`: what is installed, what is missing, and whether it works."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands.checks import READ
from hoicli.commands.common import Format, Output
from hoicli.commands.manual import page

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="nothing but its own files; with --cache that file",
        writes="a row a check: check, status (ok, missing or problem), value, advice",
        examples=[
            ("hoicli doctor", "what to look at first when something is odd"),
            ("hoicli doctor --format md > report.md", "what to put into a bug report"),
            ("hoicli doctor --format jsonl | jq -r 'select(.status != \"ok\") | .advice'", "what to install"),
        ],
        see=["validate", "completion"],
        exits={0: "all that is required is sound; extras may be missing", 1: "something is broken, and named"},
    )
)
def doctor(
    cache: Annotated[
        str | None,
        typer.Option("--cache", metavar="FILE", help="Look into the answers that shoe-sim --cache kept in this file."),
        READ,
    ] = None,
    format_: Format = "auto",
    output: Output = "-",
) -> None:
    """Check the installation: versions, extras, embedded data, folders and terminal, and a small evaluation.

    Nothing is sent anywhere, and no key, user name or folder of yours is printed.
    """
    import sys

    from hoicli.doctor import PROBLEM, examine
    from hoicli.io.messages import say
    from hoicli.io.outputs import open_output

    try:
        from hoicli.tables.notations import chosen_format, render
    except ImportError:  # a dependency does not load: its row has to be seen nevertheless
        checks = list(examine(cache))
        for check in checks:
            print(check.check, check.status, check.value, check.advice, sep="\t")
    else:
        output_format = chosen_format(format_, output)
        checks = list(examine(cache))
        with open_output(output) as write:
            write(render([check.row() for check in checks], output_format))
    broken = [f"{check.check} ({check.value})" for check in checks if check.status == PROBLEM]
    if broken:
        sys.stdout.flush()
        say(f"hoicli doctor: broken: {'; '.join(broken)}")
        raise typer.Exit(1)
