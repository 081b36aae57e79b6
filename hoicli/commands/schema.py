"""`hoicli schema`: the interchange contract, printed."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.common import Output
from hoicli.commands.manual import page

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="nothing",
        writes="a JSON Schema, or the names of the kinds",
        examples=[
            ("hoicli schema", "the kinds"),
            ("hoicli schema prediction", "what a prediction record holds"),
            ("hoicli schema match | jq -r '.properties | keys[]'", "the fields of a match record"),
        ],
        see=["validate", "vocab"],
    )
)
def schema(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="ground_truth, prediction, match or result; none lists them.",
            autocompletion=choices.schema_kinds,
        ),
    ] = None,
    output: Output = "-",
) -> None:
    """Print the JSON Schema (draft 2020-12) of a record kind."""
    from hoicli.errors import UsageError
    from hoicli.io.outputs import open_output
    from hoicli.records.schemas import kinds, schema_text

    if kind is None:
        text = "".join(f"{name}\n" for name in kinds())
    elif kind in kinds():
        text = schema_text(kind)
    else:
        raise UsageError(f"schema {kind}: choose from {', '.join(kinds())}")
    with open_output(output) as write:
        write(text.encode())
