"""Arguments, as they come from the shell or from Python, in one form: lists of names, numbers, a dict of tags."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from itertools import chain
from math import isfinite

from hoicli.errors import UsageError, arg
from hoicli.interface.options import Names, Numbers, Path, Tags


def names_of(names: Names) -> list[str]:
    """Return a list of the names in a text with commas between, or in a list of such texts; [] for None."""
    texts = [names] if isinstance(names, str) else names or ()
    parts = chain.from_iterable(text.split(",") for text in texts)
    return [part.strip() for part in parts]


def chosen_of(name: str, names: Names, choices: Collection[str]) -> list[str]:
    """Return a list of the names that the option `name` was given, each once. Raises `UsageError` for a name that is
    not in `choices`."""
    chosen = list(dict.fromkeys(names_of(names)))
    if unknown := [other for other in chosen if other not in choices]:
        raise UsageError(f"{arg(name, unknown[0])}: choose from {', '.join(choices)}")
    return chosen


def texts_of(values: Numbers) -> list[str]:
    """Return a list of the texts of one value or several; [] for None. Commas in a text do not separate."""
    if values is None:
        return []
    return [str(each) for each in values] if isinstance(values, list | tuple) else [str(values)]


def text_of(path: Path | None) -> str | None:
    """Return a path as text; None for None."""
    return None if path is None else os.fspath(path)


def numbers_of(name: str, values: Numbers) -> list[float]:
    """Return a list of the numbers that the option `name` was given, in a list or a text with commas between; [] for
    None. Raises `UsageError` for what is no finite number."""
    text = ",".join(texts_of(values))
    numbers = []
    for part in text.split(",") if text or values is not None else []:
        try:
            number = float(part)
        except ValueError:
            number = float("nan")  # refused below, as what is written "nan"
        if not isfinite(number):
            raise UsageError(f"{arg(name, text)}: {part.strip()!r} is no number; give numbers with commas between")
        numbers.append(number)
    return numbers


def count_of(name: str, value: int | str) -> int | None:
    """Return the whole number of at least 0 that the option `name` was given; None for "all". Raises `UsageError` for
    anything else."""
    text = str(value).strip()
    if text == "all":
        return None
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{arg(name, value)}: give a whole number of at least 0, or all")
    return int(text[:9])  # more than any count needs; Python refuses to read thousands


def counts_of(name: str, values: Numbers) -> list[int]:
    """Return a list of the whole numbers of at least 1 that the option `name` was given, in a list or a text with
    commas between, each once. Raises `UsageError` for anything else."""
    text = ",".join(texts_of(values))
    parts = [part.strip() for part in text.split(",")]
    bad = [part for part in parts if not (part.isascii() and part.isdecimal() and len(part) < 10 and int(part))]
    if bad:
        problem = f"{bad[0]!r} is no whole number of at least 1; for example {arg(name, '20,50,100')}"
        raise UsageError(f"{arg(name, text)}: {problem}")
    return list(dict.fromkeys(map(int, parts)))


def tags_of(tags_given: Tags, *taken: str) -> dict[str, str]:
    """Return the tags that --tag adds to every row, by name. tags_given: a dict in Python, or texts KEY=VALUE; taken:
    the names of tags that the command sets itself. Raises `UsageError` for a malformed or taken tag."""
    from hoicli.records.result_rows import parse_tags

    if isinstance(tags_given, Mapping):
        for key in tags_given:
            if not isinstance(key, str) or not key or "=" in key:  # with "=" it would be split at the wrong place
                raise UsageError(f"{arg('tag')}: {key!r} is no name of a tag")
        tags_given = [f"{key}={value}" for key, value in tags_given.items()]
    tags = [tags_given] if isinstance(tags_given, str) else tags_given or ()
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise UsageError(
            f"{arg('tag')}: {tags_given!r} is no tag; give key=value, or several in a list or a dictionary"
        )
    return parse_tags(list(tags), taken=taken)
