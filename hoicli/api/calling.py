"""A call from Python: its notes are kept for the caller, and messages name its arguments instead of options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from hoicli.errors import DataError, UsageError
from hoicli.io.messages import kept_notes
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import parse_tags

Names: TypeAlias = "str | Sequence[str] | None"
"""A name, several with commas between or as a list, or none."""

_OPTION = re.compile(r"hoicli [a-z][^;`]*|--(?P<name>[a-z][a-z-]*)(?: (?P<value>[a-z0-9][\w.-]*)(?=[:;,)?`]| \(|$))?")
"""A command line that a message recommends, or an option with or without a value before the end of a clause."""


@contextmanager
def called() -> Iterator[list[str]]:
    """In the block notes go to the list, and an error's message names arguments."""
    with kept_notes() as notes:
        try:
            yield notes
        except UsageError as error:
            raise UsageError(in_python(str(error))) from None
        except DataError as error:
            raise placed(error) from None
        notes[:] = map(in_python, notes)


def placed(error: DataError, place: str = "") -> DataError:
    """The error of a call, at `place` if it has none of its own."""
    problem = in_python(error.problem)
    return DataError(problem, place=error.place or place, field=error.field, code=error.code)


def in_python(message: str) -> str:
    """A message with `--top-k 3` as `top_k=3`, and `--split rf` as `split='rf'`; command lines stay."""

    def argument(found: re.Match[str]) -> str:
        if found["name"] is None:
            return found[0]
        name, value = found["name"].replace("-", "_"), found["value"]
        if value is None:
            return name
        return f"{name}={value if re.fullmatch('[0-9.]+', value) else repr(value)}"

    return _OPTION.sub(argument, message)


def policy_of(on_error: str, unit: str = "line") -> ErrorPolicy:
    """What `on_error` asks for. Raises `UsageError` for another value than stop and skip."""
    if on_error not in ("stop", "skip"):
        raise UsageError(f"--on-error {on_error}: choose stop or skip")
    return ErrorPolicy(skip=on_error == "skip", unit=unit)


def checked_tags(tags: Mapping[str, str] | None, *taken: str) -> dict[str, str]:
    """The tags of rows. Raises `UsageError` for a name that is empty or has a =, and for one that rows have already."""
    for key in tags or {}:
        if not key or "=" in key:
            raise UsageError(f"tags: {key!r} is no name of a tag")
    try:
        return parse_tags([f"{key}={value}" for key, value in (tags or {}).items()], taken=taken)
    except UsageError as error:
        raise UsageError(str(error).replace("--tag ", "tags: ")) from None


def names_of(given: Names) -> list[str]:
    """Names given as one (commas between several), as a list, or not at all."""
    listed = [given] if isinstance(given, str) else list(given or ())
    return [name.strip() for text in listed for name in text.split(",")]
