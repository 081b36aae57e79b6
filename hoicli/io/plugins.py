"""What other packages add to hoicli's tables (formats, protocols, corruptions, datasets), by entry points.

A table looks here only for a name that it does not hold itself, so a package is imported only when it is named."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from hoicli.errors import UsageError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Plugin:
    """What another package adds to a table of hoicli. value: the object of its entry point; owner: the package and its
    version, `package@1.2`, as signatures of results name it."""

    value: Any
    owner: str


def names(group: str) -> list[str]:
    """Return the sorted names that installed packages add to a table (formats, protocols, ...). Nothing is imported."""
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=f"hoicli.{group}")})


def plugin(group: str, name: str) -> Plugin | None:
    """Import and return what an installed package adds under a name to a table; None if no package does.

    Raises `UsageError` if two packages have the name, if the import fails, or for a dict that JSON cannot hold."""
    from importlib.metadata import entry_points

    entries = [entry for entry in entry_points(group=f"hoicli.{group}", name=name) if entry.dist is not None]
    if not entries:
        return None
    packages = sorted({f"{entry.dist.name} {entry.dist.version}" for entry in entries if entry.dist})
    if len(packages) > 1:
        raise UsageError(f"{name} is added by {' and by '.join(packages)}; uninstall one of them")
    try:
        with redirect_stdout(sys.stderr):  # stdout has hoicli's data
            value = entries[0].load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  (it may raise anything)
        problem = f"{type(error).__name__}: {error}"
        raise UsageError(f"{name} of {packages[0]} cannot be imported: {problem}") from None
    try:
        if isinstance(value, Mapping):  # as it would be read from a JSON file; an error for what none can hold
            options = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
            value = orjson.loads(orjson.dumps(dict(value), default=str, option=options))
    except TypeError as error:
        raise UsageError(f"{name} of {packages[0]} is no dict that JSON can hold ({error}); mend the package") from None
    return Plugin(value, packages[0].replace(" ", "@"))


def iterate_plugin(items: Iterable[T], message: str) -> Iterator[T]:
    """Yield the items of another package's iterator; SystemExit becomes a `UsageError` after `message`."""
    iterator = iter(items)
    while True:
        try:
            with redirect_stdout(sys.stderr):
                item = next(iterator)
        except StopIteration:
            return
        except SystemExit as error:
            raise UsageError(f"{message}: SystemExit: {error}") from None
        yield item
