"""Calls of a command that ought to be told apart: each of its options, found from the command itself, with several
values; and the check that rows of one identity and signature have one value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, get_args

from hoicli.interface import choices
from hoicli.interface.checks import Read, Written
from hoicli.interface.command import DECLARED, Command
from hoicli.interface.options import Argument, Parameter
from tests.support.project import Result, parsed

Words = tuple[str, ...]
"""A part of a command line."""
Row = dict[str, Any]

MEASURED = ("value", "n", "ci_low", "ci_high", "p", "p_bootstrap", "q", "from", "to", "pairs", "fits")
"""What a row says has been measured."""
SAID = ("note", "reason", "comparable", "claimed", "digits_off")
"""What it says besides, which tells no values apart."""

NEAR = ("0.5", "0.5000001", "0.1", "0.7", "0.2")
"""Numbers of which the first two differ by less than six digits show."""
COUNTS = ("2", "3", "5", "1000000")
LISTS = ("0.5,0.7", "0.5:0.7:0.1", "1,2", "3")


def command_of(name: str) -> Command:
    return DECLARED[import_module(f"hoicli.commands.{name.split()[0].replace('-', '_')}").__name__]


def values_of(one: Parameter, known: dict[str, Words]) -> list[Words]:
    """The words that give an option each value that is tried: what is `known` for it, else every name that it offers
    and two of them together, or near numbers, counts and lists; a flag is given. Empty for a text or file that nothing
    is known of."""
    option, name = one.option, f"--{one.name.rstrip('_').replace('_', '-')}"
    if one.kind is bool:
        return [(f"--no-{name[2:]}" if one.default else name,)]
    if isinstance(option.check, Written) or isinstance(option, Argument):
        return []
    kinds = set(get_args(one.kind)) or {one.kind}
    numbers = (*(NEAR if float in kinds else ()), *(COUNTS if int in kinds else ()))
    if any("Sequence" in str(kind) and "float" in str(kind) for kind in kinds):
        numbers += (*NEAR, *COUNTS, *LISTS)
    if one.name in known:
        values = known[one.name]
    else:
        offered = [name for name, _ in choices.entries(option.one_of or option.offer)]
        together = [",".join(offered[:2])] if option.several and len(offered) > 1 else []
        values = (*offered, *together, *dict.fromkeys(numbers))
    given = () if one.default is None else (str(one.default),)
    return [(name, value) for value in values if value not in given]


def unknown_options(name: str, known: dict[str, Words], left: Iterable[str]) -> set[str]:
    """The options of a command of which no value is tried, but for those that are left out on purpose, and what it
    reads or writes."""
    own = command_of(name).parameters
    return {
        one.name
        for one in own
        if one.name not in left
        and not isinstance(one.option, Argument)
        and not (isinstance(one.option.check, Read | Written) and one.name not in known)
        and not values_of(one, known)
    }


@dataclass
class Told:
    """Rows by what they say of themselves, and the first call that had each.

    `rows`: how many have been added. `met`: how many of these had been there before, so that a difference would show.
    `faults`: pairs of one identity and signature whose values differ.
    """

    rows: int = 0
    met: int = 0
    faults: list[str] = field(default_factory=list)
    _first: dict[str, tuple[Row, str]] = field(default_factory=dict)

    def add(self, rows: Iterable[Row], call: str) -> None:
        for row in rows:
            measured = {key: row[key] for key in MEASURED if key in row}
            told = {key: value for key, value in row.items() if key not in (*MEASURED, *SAID)}
            identity = json.dumps(told, sort_keys=True)
            known, before = self._first.setdefault(identity, (measured, call))
            self.rows += 1
            self.met += before != call
            both = known.keys() & measured.keys()
            if any(known[key] != measured[key] for key in both):
                self.faults.append(f"{before}: {known}\n{call}: {measured}\n    {identity}")


def rows_of(result: Result) -> list[Row] | None:
    assert "internal error" not in result.err, result.err
    assert "Traceback" not in result.err, result.err
    return parsed(result.out) if result.code == 0 else None


def settings_tried(name: str, known: dict[str, Words], left: Iterable[str]) -> Iterator[tuple[str, Words]]:
    """(option, words) of every value of every option."""
    for one in command_of(name).parameters:
        if one.name not in left:
            yield from ((one.name, words) for words in values_of(one, known))
