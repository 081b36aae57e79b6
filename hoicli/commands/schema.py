"""`hoicli schema`: print the JSON Schema of a record kind."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.manual import command
from hoicli.commands.options import argument
from hoicli.io.outputs import open_output
from hoicli.records.schemas import kinds, schema_text


def _kinds() -> list[str]:
    return list(kinds())


@command(
    reads="nothing",
    writes="a JSON Schema, or the names of the kinds",
    examples=[
        ("hoicli schema", "the kinds"),
        ("hoicli schema prediction", "what a prediction record holds"),
        ("hoicli schema match | jq -r '.properties | keys[]'", "the fields of a match record"),
    ],
    see=["validate", "vocab"],
)
def schema(
    kind: str | None = argument(
        None,
        "KIND",
        "dataset, protocol, recipe, ground_truth, prediction, match, similarity or result; none lists them.",
        one_of=_kinds,
    ),
    output: str = options.OUT,
) -> None:
    """Print the JSON Schema (draft 2020-12) of a record kind, or of the file of a dataset or a protocol."""
    text = "".join(f"{name}\n" for name in kinds()) if kind is None else schema_text(kind)
    with open_output(output) as write:
        write(text.encode())
