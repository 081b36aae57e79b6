"""`hoicli doctor`: what is installed, what is missing, and whether it works."""

from __future__ import annotations

import sys

import typer

from hoicli.commands import options
from hoicli.commands.manual import command
from hoicli.commands.options import option
from hoicli.records.schemas import kinds, schema_text


def _kinds() -> list[str]:
    return list(kinds())


@command(
    reads="nothing but its own files",
    writes="one row for each check: check, status (ok, missing or problem), value, advice; or a schema",
    examples=[
        ("hoicli doctor", "what to look at first when something is odd"),
        ("hoicli doctor --format md > report.md", "what to put into a bug report"),
        ("hoicli doctor --schema match | jq -r '.properties | keys[]'", "the fields of a match record"),
        ("hoicli doctor --format jsonl | jq -r 'select(.status != \"ok\") | .advice'", "what to install"),
    ],
    see=["validate", "vocab"],
    exits={0: "all that is required is sound; extras may be missing", 1: "something is broken, and named"},
)
def doctor(
    schema: str | None = option(
        None,
        "--schema KIND",
        "Print the JSON Schema (draft 2020-12) of a kind of record or file instead: dataset, protocol, recipe, "
        "ground_truth, prediction, match, similarity or result.",
        one_of=_kinds,
    ),
    format_: str = options.FORMAT,
    output: str = options.OUT,
) -> None:
    """Check the installation: versions, extras, embedded data, and a small evaluation whose result is known.

    Nothing is sent anywhere, and no key, user name or folder of yours is printed.
    """
    from hoicli.doctor import PROBLEM, examine
    from hoicli.io.messages import say
    from hoicli.io.outputs import open_output

    if schema is not None:
        with open_output(output) as write:
            write(schema_text(schema).encode())
        return
    try:
        out = options.Listing(format_, output)
    except ImportError:  # a dependency does not load: print the rows without it
        checks = list(examine())
        for check in checks:
            print(check.check, check.status, check.value, check.advice, sep="\t")
    else:
        checks = list(examine())
        out.write([check._asdict() for check in checks])
    broken = [f"{check.check} ({check.value})" for check in checks if check.status == PROBLEM]
    if broken:
        sys.stdout.flush()
        say(f"hoicli doctor: broken: {'; '.join(broken)}")
        raise typer.Exit(1)
