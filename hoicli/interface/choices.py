"""The values that options can take. They come from the tables that the commands use.

    offer="tables.notations:FORMATS"           the names of a table of the package, imported when needed
    offer=("stop", "skip")                     these names; an address of a table among them stands for its names
    offer=splits                               the names that a function returns

An option that must have one of them is checked before the work (`checks.OneOf`); every option offers them at the Tab
key. So this module imports nothing slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

Offer = str | Iterable[Any] | Callable[[], Iterable[Any]]
"""`module:NAME` inside hoicli, the values, or a function that returns them; a value is a name, (name, meaning), or such
an address."""

_ADDRESS = re.compile(r"[a-z_.]+:[A-Z_]+")

PROTOCOLS = (("all", "all of the dataset"), "evaluation.protocols:PROTOCOLS")
SLICES = "evaluation.slices:MEASURES"
"""What `--slice` takes besides files."""
NAMED_TRUTH = "converters.named:NAMED"
VOCABULARIES = (("open", "any words"), "vocabulary.datasets:DATASETS")
COORDS = ("converters.vlm.frames:PLAIN", "resized:", "qwen2.5")
"""What `--coords` takes; a size follows `resized:`, and the bounds of an area may follow `qwen2.5`."""
RECIPES = "corruption.catalogue:RECIPES"
SEVERITIES = ("all", "corruption.catalogue:SEVERITIES")


def load_object(address: str) -> Any:
    """Import and return the object at `address`, which is "module:NAME" inside hoicli ("io.outputs:check_output")."""
    module, _, name = address.partition(":")
    return getattr(import_module(f"hoicli.{module}"), name)


def entries(offer: Offer) -> list[tuple[str, str]]:
    """Return (name, meaning) of every value on offer. The meaning is the description in the value's row of its table;
    "" if there is none."""
    return [(str(name), _meaning(row)) for name, row in _rows(offer)]


def _rows(offer: Offer) -> Iterator[tuple[Any, Any]]:
    """Yield (name, row) of every value on offer. The row is the value's object in a table such as PROTOCOLS. For a
    value of no table it is the meaning as a text, "" if none is given."""
    values: Any = offer() if callable(offer) else offer
    if isinstance(offer, str):
        values = load_object(offer)
    if isinstance(values, Mapping):  # a table is a dict of rows by name
        yield from values.items()
        return
    for value in values:
        if isinstance(value, str) and _ADDRESS.fullmatch(value):  # it stands for all names of that table
            yield from _rows(value)
        elif isinstance(value, tuple):  # (name, meaning)
            yield value
        else:
            yield value, ""


def _meaning(row: Any) -> str:
    """Return the description in a row of a table; "" if it has none. A row that is a text is the description."""
    texts = (getattr(row, name) for name in ("title", "description", "words") if hasattr(row, name))
    return row if isinstance(row, str) else next(texts, "")


def completer(offer: Offer, *, several: bool = False) -> Callable[[str], list[tuple[str, str]]]:
    """Return the function that typer calls when the user presses the Tab key. offer: the values to complete to;
    several: whether the option takes names with commas between, so that names already typed are kept and not offered
    again."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        """Return (completed text, meaning) of each value on offer; typer drops those that do not begin so."""
        typed_names, comma, _ = incomplete.rpartition(",") if several else ("", "", "")
        used = typed_names.split(",")
        return [(typed_names + comma + name, meaning) for name, meaning in entries(offer) if name not in used]

    return complete


def oracles() -> list[Any]:
    """Return the names of the oracles (what-if corrections of a detector's errors) that repair one type of error each,
    and ("all", its meaning)."""
    from hoicli.records.oracles import IN_TURN, ORACLES

    return [("all", "every one, in the paper's order"), *(name for name in ORACLES if name in IN_TURN)]


def splits() -> list[tuple[str, str]]:
    """Return (name, meaning) of each zero-shot split: hoicli's names with how many classes are unseen, and the papers'
    short names (rf-uc) with hoicli's (rare_first)."""
    from hoicli.vocabulary.datasets import load

    splits_by_name: dict[str, str] = {}
    for name in ("hico", "vcoco"):  # swig has none, and takes a while to load
        vocabulary = load(name)
        splits_by_name |= {split: f"{len(unseen)} unseen" for split, unseen in vocabulary.unseen.items()}
        splits_by_name |= vocabulary.split_aliases
    return list(splits_by_name.items())


def _formats(*, written: bool) -> list[tuple[str, str]]:
    """Return (name, meaning) of the formats that `convert` reads, or if `written` of those that it writes."""
    from hoicli.converters.formats import offer_names

    return offer_names(written=written)


readable_formats, writable_formats = partial(_formats, written=False), partial(_formats, written=True)
"""What `convert` takes as --from and as --to."""


def _corruptions(every: str) -> list[Any]:
    """Return an `Offer` of hoicli's corruptions and of those that other installed packages add. every: the name that
    stands for RoHOI's twenty."""
    from hoicli.io.plugins import names

    plugin_corruptions = ((name, "another package's") for name in names("corruptions"))
    groups = ((every, "RoHOI's twenty"), ("weather", "night, rain, fog and snow"))
    return [*groups, "corruption.catalogue:CORRUPTIONS", *plugin_corruptions]


corruptions, grid_corruptions = partial(_corruptions, "all"), partial(_corruptions, "rohoi")
"""What `corrupt` and `robust` take as --corruption."""
