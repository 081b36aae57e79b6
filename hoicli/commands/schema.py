"""`hoicli schema`: the interchange contract, printed."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands.common import Output

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(epilog="Example: hoicli schema prediction")
def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="KIND", help="ground_truth, prediction, match or result; none lists them.")
    ] = None,
    output: Output = "-",
) -> None:
    """Print the JSON Schema (draft 2020-12) of a record kind."""
    from hoicli.errors import UsageError
    from hoicli.schemas import kinds, schema_text
    from hoicli.streams import open_output

    if kind is None:
        text = "".join(f"{name}\n" for name in kinds())
    elif kind in kinds():
        text = schema_text(kind)
    else:
        raise UsageError(f"schema {kind}: choose from {', '.join(kinds())}")
    with open_output(output) as write:
        write(text.encode())
