"""The values that options can take, from the tables that the commands use.

    offer="tables.notations:FORMATS"           the names of a table of the package, imported when needed
    offer=("stop", "skip")                     these names
    offer=protocols                            the names that a function returns

An option that must have one of them is checked before the work (`checks.OneOf`); every option offers them at the Tab
key. So this module imports nothing slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

Offer = str | Iterable[Any] | Callable[[], Iterable[Any]]
"""`module:NAME` inside hoicli, the values, or a function that returns them; a value is a name or (name, meaning)."""


def table(address: str) -> Any:
    """The object at `module:NAME` inside hoicli."""
    module, _, name = address.partition(":")
    return getattr(import_module(f"hoicli.{module}"), name)


def entries(offer: Offer) -> list[tuple[str, str]]:
    """(name, meaning) of every value on offer; the meaning is a row's title, and "" where the table gives none."""
    values = table(offer) if isinstance(offer, str) else offer() if callable(offer) else offer
    pairs = values.items() if isinstance(values, Mapping) else (
        value if isinstance(value, tuple) else (value, "") for value in values
    )  # fmt: skip
    return [(str(name), str(getattr(row, "title", row if isinstance(row, str | float) else ""))) for name, row in pairs]


def completer(offer: Offer, *, several: bool = False) -> Callable[[str], list[tuple[str, str]]]:
    """The function that typer calls for completions. several: the option takes names separated by commas; names already
    typed are kept and not offered again."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        before, comma, _ = incomplete.rpartition(",") if several else ("", "", "")
        used = before.split(",")
        return [(before + comma + name, meaning) for name, meaning in entries(offer) if name not in used]

    return complete


def protocols() -> list[tuple[str, str]]:
    """The protocols, and `all`."""
    return [("all", "all of the dataset"), *entries("evaluation.protocols:PROTOCOLS")]


def slices() -> list[tuple[str, str]]:
    """What `--slice` takes besides files."""
    return [(name, row.description) for name, row in table("evaluation.slices:MEASURES").items()]


def oracles() -> list[Any]:
    """The oracles that fix one type of error each, and `all`."""
    from hoicli.figures.styles import GROUPED, ORACLES

    return [("all", "every one, in the paper's order"), *(name for name in ORACLES if name not in GROUPED)]


def splits() -> list[tuple[str, str]]:
    """The zero-shot splits of all datasets, and the papers' names for them."""
    from hoicli.vocabulary.datasets import load

    found: dict[str, str] = {}
    for name in ("hico", "vcoco"):  # swig has none, and takes a while to load
        vocabulary = load(name)
        found |= {split: f"{len(unseen)} unseen" for split, unseen in vocabulary.unseen.items()}
        found |= vocabulary.split_aliases
    return list(found.items())


def named_truth() -> list[tuple[str, str]]:
    """The ground truth that has a name."""
    return [(row.name, row.title) for row in table("converters.named:NAMED").values()]


def vocabularies() -> list[Any]:
    """The datasets, or `open`."""
    return [("open", "any words"), *entries("vocabulary.datasets:DATASETS")]


def readable_formats() -> list[tuple[str, str]]:
    """What `convert --from` takes."""
    from hoicli.converters.formats import offered

    return offered(written=False)


def writable_formats() -> list[tuple[str, str]]:
    """What `convert --to` takes."""
    from hoicli.converters.formats import offered

    return offered(written=True)


def coords() -> list[str]:
    """What `prompts --coords` takes; a size follows `resized:`."""
    return [*table("converters.vlm.frames:PLAIN"), "resized:"]


def answer_coords() -> list[str]:
    """What `convert --coords` takes: these and qwen2.5, where the size of the resized image is computed."""
    return [*coords(), "qwen2.5"]


def corruptions() -> list[tuple[str, str]]:
    """RoHOI's corruptions with their families, and `all`."""
    return [("all", "all twenty"), *_corruptions()]


def grid_corruptions() -> list[tuple[str, str]]:
    """What `robust --corruption` takes."""
    return [("rohoi", "all twenty"), *_corruptions()]


def _corruptions() -> list[tuple[str, str]]:
    from hoicli.io.plugins import names

    own = [(name, row.family) for name, row in table("corruption.catalogue:CORRUPTIONS").items()]
    return [*own, *((name, "another package's") for name in names("corruptions"))]


def recipes() -> list[tuple[str, str]]:
    """The recipes that have a name, and what they are."""
    return [(name, recipe.words) for name, recipe in table("corruption.catalogue:RECIPES").items()]


def severities() -> list[Any]:
    """The severities of a corruption, and `all`."""
    return ["all", *table("corruption.catalogue:SEVERITIES")]


def offline_backends() -> list[str]:
    """What takes a measure of similarity without asking models; a file follows `table:`."""
    return [*table("shoe.pairs:OFFLINE"), "table:"]
