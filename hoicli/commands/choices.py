"""The values that options can take, read from the tables that the commands themselves use.

    offer="tables.notations:FORMATS"           the names of a table of the package, imported when they are needed
    offer=("stop", "skip")                     these names
    offer=protocols                            what a function gives

An option that must be one of them is checked before the work (`checks.OneOf`); any option offers them when somebody
presses Tab. So nothing is imported here that computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any

Offer = str | Iterable[Any] | Callable[[], Iterable[Any]]
"""`module:NAME` below hoicli, the values themselves, or what gives them; values are names or (name, meaning)."""


def table(address: str) -> Any:
    """What stands at `module:NAME` below hoicli."""
    module, _, name = address.partition(":")
    return getattr(import_module(f"hoicli.{module}"), name)


def entries(offer: Offer) -> list[tuple[str, str]]:
    """The names on offer, each with what it means, "" where nothing says so."""
    values = table(offer) if isinstance(offer, str) else offer() if callable(offer) else offer
    pairs = values.items() if isinstance(values, Mapping) else (
        value if isinstance(value, tuple) else (value, "") for value in values
    )  # fmt: skip
    return [(str(name), str(meaning) if isinstance(meaning, str | float) else "") for name, meaning in pairs]


def completer(offer: Offer, *, several: bool = False) -> Callable[[str], list[tuple[str, str]]]:
    """What typer asks for the names on offer. several: names with commas between; those that are typed already stay,
    and are not offered again."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        before, comma, _ = incomplete.rpartition(",") if several else ("", "", "")
        used = before.split(",")
        return [(before + comma + name, meaning) for name, meaning in entries(offer) if name not in used]

    return complete


def protocols() -> list[tuple[str, str]]:
    """The protocols, and `all`."""
    return [("all", "all of the dataset"), *single_protocols()]


def single_protocols() -> list[tuple[str, str]]:
    """The protocols, where only one can be named."""
    return [(row.name, row.title) for row in table("evaluation.protocols:PROTOCOLS").values()]


def oracles() -> list[Any]:
    """The oracles of one type of error each."""
    from hoicli.figures.styles import GROUPED, ORACLES

    return [("all", "every one, in the paper's order"), *(name for name in ORACLES if name not in GROUPED)]


def splits() -> list[tuple[str, str]]:
    """The zero-shot splits, and the papers' names for them."""
    from hoicli.vocabulary.datasets import load

    found: dict[str, str] = {}
    for name in ("hico", "vcoco"):  # swig has none, and takes a while to load
        vocabulary = load(name)
        found |= {split: f"{len(unseen)} unseen" for split, unseen in vocabulary.unseen.items()}
        found |= vocabulary.split_aliases
    return list(found.items())


def vocabularies() -> list[Any]:
    """The datasets, or `open`."""
    return [("open", "any words"), *entries("vocabulary.datasets:DATASETS")]


def readable_formats() -> list[tuple[str, str]]:
    """What `convert --from` takes."""
    return [(row.name, row.description) for row in table("converters.formats:FORMATS").values() if row.reads]


def writable_formats() -> list[tuple[str, str]]:
    """What `convert --to` takes."""
    return [(row.name, row.description) for row in table("converters.formats:FORMATS").values() if row.writes]


def coords() -> list[str]:
    """What `prompts --coords` takes; resized: wants a size after it."""
    return [*table("converters.vlm.frames:PLAIN"), "resized:"]


def answer_coords() -> list[str]:
    """What `convert --coords` takes: also qwen2.5, whose resized image follows from the sizes."""
    return [*coords(), "qwen2.5"]


def corruptions() -> list[tuple[str, str]]:
    """RoHOI's corruptions with their families, and `all`."""
    return [("all", "all twenty"), *_corruptions()]


def grid_corruptions() -> list[tuple[str, str]]:
    """What `robust --corruption` takes."""
    special = [("auto", "rohoi where more than half occur"), ("rohoi", "all twenty"), ("seen", "those that occur")]
    return [*special, *_corruptions()]


def _corruptions() -> list[tuple[str, str]]:
    return list(table("records.corruptions:FAMILY_OF").items())


def severities() -> list[Any]:
    """The severities of a corruption, and `all`."""
    return ["all", *table("records.corruptions:SEVERITIES")]


def grid_severities() -> list[Any]:
    """What `robust --severity` takes."""
    return ["auto", "seen", *table("records.corruptions:SEVERITIES")]


def backends() -> list[str]:
    """Where similarities come from; table: wants a file after it."""
    return [name.replace("FILE", "") for name in table("similarity.rules:BACKENDS")]
