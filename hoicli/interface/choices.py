"""The values that options can take, from the tables that the commands use.

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
COORDS = ("converters.vlm.frames:PLAIN", "resized:")
"""What `prompts --coords` takes; a size follows `resized:`."""
ANSWER_COORDS = (*COORDS, "qwen2.5")
"""What `convert --coords` takes: these and qwen2.5, where the size of the resized image is computed."""
RECIPES = "corruption.catalogue:RECIPES"
SEVERITIES = ("all", "corruption.catalogue:SEVERITIES")


def table(address: str) -> Any:
    """Return the object at `module:NAME` inside hoicli."""
    module, _, name = address.partition(":")
    return getattr(import_module(f"hoicli.{module}"), name)


def entries(offer: Offer) -> list[tuple[str, str]]:
    """Return (name, meaning) of every value on offer. The meaning is what its row in the table says, or ""."""
    return [(str(name), _meaning(row)) for name, row in _rows(offer)]


def _rows(offer: Offer) -> Iterator[tuple[Any, Any]]:
    """Yield (name, row of its table) of every value on offer; without a table, the meaning or ""."""
    values = table(offer) if isinstance(offer, str) else offer() if callable(offer) else offer
    if isinstance(values, Mapping):
        yield from values.items()
        return
    for value in values:
        if isinstance(value, str) and _ADDRESS.fullmatch(value):
            yield from _rows(value)
        else:
            yield value if isinstance(value, tuple) else (value, "")


def _meaning(row: Any) -> str:
    """Return the text of a row that says what it is, "" if it has none."""
    texts = (getattr(row, name) for name in ("title", "description", "words") if hasattr(row, name))
    return row if isinstance(row, str) else next(texts, "")


def completer(offer: Offer, *, several: bool = False) -> Callable[[str], list[tuple[str, str]]]:
    """Return the function that typer calls for completions. several: whether the option takes names with commas
    between; names already typed are kept and not offered again."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        before, comma, _ = incomplete.rpartition(",") if several else ("", "", "")
        used = before.split(",")
        return [(before + comma + name, meaning) for name, meaning in entries(offer) if name not in used]

    return complete


def oracles() -> list[Any]:
    """Return the oracles that repair one type of error each, and `all`."""
    from hoicli.records.oracles import IN_TURN, ORACLES

    return [("all", "every one, in the paper's order"), *(name for name in ORACLES if name in IN_TURN)]


def splits() -> list[tuple[str, str]]:
    """Return the zero-shot splits of all datasets, and the papers' names for them."""
    from hoicli.vocabulary.datasets import load

    splits_by_name: dict[str, str] = {}
    for name in ("hico", "vcoco"):  # swig has none, and takes a while to load
        vocabulary = load(name)
        splits_by_name |= {split: f"{len(unseen)} unseen" for split, unseen in vocabulary.unseen.items()}
        splits_by_name |= vocabulary.split_aliases
    return list(splits_by_name.items())


def _formats(*, written: bool) -> list[tuple[str, str]]:
    """Return the formats that `convert` reads, or those that it writes if `written`."""
    from hoicli.converters.formats import offer_names

    return offer_names(written=written)


readable_formats, writable_formats = partial(_formats, written=False), partial(_formats, written=True)
"""What `convert` takes as --from and as --to."""


def _corruptions(every: str) -> list[Any]:
    """Return the corruptions by name, those of other packages included. every: the name that stands for all of them."""
    from hoicli.io.plugins import names

    added = ((name, "another package's") for name in names("corruptions"))
    return [(every, "all twenty"), "corruption.catalogue:CORRUPTIONS", *added]


corruptions, grid_corruptions = partial(_corruptions, "all"), partial(_corruptions, "rohoi")
"""What `corrupt` and `robust` take as --corruption."""
