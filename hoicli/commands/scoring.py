"""--sim, which shoe-eval and compare share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from hoicli.commands.checks import Read
from hoicli.commands.options import Given, Option
from hoicli.errors import UsageError, arg

if TYPE_CHECKING:
    from hoicli.io.streams import Stream

Sim = Annotated[
    Given | None,
    Option(
        "FILE|NAME",
        "Similarities of senses: tables that hoicli shoe-sim writes, repeatable; or one of its backends that ask no "
        "model (lexical, wordnet:wup, ...), which rates what these files need.",
        offer="shoe.pairs:OFFLINE",
        repeated=True,
        mark=Read(names="shoe.pairs:OFFLINE"),
    ),
]


def similarities(sim: Given | None, command: str) -> Stream | str:
    """What --sim names: tables, or an offline backend. Raises `UsageError` for neither, for both, and for a backend
    that is none or has to ask."""
    from difflib import get_close_matches

    from hoicli.commands.inputs import lines, paths_of
    from hoicli.shoe.pairs import OFFLINE

    if sim is None:
        problem = f"give similarities with {arg('sim', like='FILE')}; hoicli shoe-sim makes them"
        raise UsageError(f"{command}: {problem}")
    paths = paths_of(sim, "sim") or []
    named = [name for name in paths if name in OFFLINE]
    if named and len(paths) > 1:
        raise UsageError(f"{arg('sim', named[0])}: rates every pair itself; give it alone, or tables")
    for name in paths:
        a_name = name == "llm" or name.startswith("wordnet:") or get_close_matches(name, OFFLINE, 1)
        if name not in OFFLINE and a_name and not os.path.exists(name):
            choice = f"give tables, or one of {', '.join(OFFLINE)}; hoicli shoe-sim asks models"
            raise UsageError(f"{arg('sim', name)}: {choice}")
    return named[0] if named else lines(sim, "sim", "similarities", "tables")
