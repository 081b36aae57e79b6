"""What other packages add to hoicli's tables (formats, protocols, corruptions, datasets), by entry points.

A table looks here only for a name that it does not hold itself, so a package is imported only when it is named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hoicli.errors import UsageError


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry of another package: what it gives, and whose it is, as the signature of a row says it
    (`package@1.2`)."""

    value: Any
    owner: str


def names(group: str) -> list[str]:
    """The names that installed packages add under `hoicli.<group>`, sorted; nothing is imported."""
    from importlib.metadata import entry_points

    return sorted({entry.name for entry in entry_points(group=f"hoicli.{group}")})


def plugin(group: str, name: str) -> Plugin | None:
    """The entry of that name under `hoicli.<group>`, imported; None if no installed package has it.

    Raises UsageError if two packages have the name, or if the import fails.
    """
    from importlib.metadata import entry_points

    found = [entry for entry in entry_points(group=f"hoicli.{group}", name=name) if entry.dist is not None]
    if not found:
        return None
    packages = sorted({f"{entry.dist.name} {entry.dist.version}" for entry in found if entry.dist})
    if len(packages) > 1:
        raise UsageError(f"{name} is added by {' and by '.join(packages)}; uninstall one of them")
    try:
        value = found[0].load()
    except Exception as error:  # noqa: BLE001  (another package's code may raise anything)
        raise UsageError(f"{name} of {packages[0]} cannot be imported: {type(error).__name__}: {error}") from None
    return Plugin(value, packages[0].replace(" ", "@"))
