"""Values as a command's function gets them from either door: names, numbers and tags in one form."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from itertools import chain
from math import isfinite

from hoicli.errors import UsageError, arg
from hoicli.interface.options import Names, Numbers, Path, Tags


def names_of(names: Names) -> list[str]:
    """Return the names in a text with commas between, or in a list of such texts."""
    return [
        name.strip()
        for name in chain.from_iterable(
            text.split(",") for text in ([names] if isinstance(names, str) else names or ())
        )
    ]


def chosen_of(name: str, names: Names, choices: Collection[str]) -> list[str]:
    """Return the names that the parameter `name` was given, each once. Raises `UsageError` for one not in `choices`."""
    chosen = list(dict.fromkeys(names_of(names)))
    if unknown := [other for other in chosen if other not in choices]:
        raise UsageError(f"{arg(name, unknown[0])}: choose from {', '.join(choices)}")
    return chosen


def texts_of(values: Numbers) -> list[str]:
    """Return a value, or a list of values, as a list of texts."""
    if values is None:
        return []
    return [str(each) for each in values] if isinstance(values, list | tuple) else [str(values)]


def text_of(path: Path | None) -> str | None:
    """Return a path as text."""
    return None if path is None else os.fspath(path)


def numbers_of(name: str, values: Numbers) -> list[float]:
    """Return the finite numbers that the parameter `name` was given. Raises `UsageError` that quotes a bad one."""
    text = ",".join(texts_of(values))
    numbers = []
    for part in text.split(",") if text or values is not None else []:
        try:
            number = float(part)
        except ValueError:
            number = float("nan")
        if not isfinite(number):
            raise UsageError(f"{arg(name, text)}: {part.strip()!r} is no number; give numbers with commas between")
        numbers.append(number)
    return numbers


def count_of(name: str, value: int | str) -> int | None:
    """Return a whole number of at least 0, None for "all". Raises `UsageError` for anything else."""
    text = str(value).strip()
    if text == "all":
        return None
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{arg(name, value)}: give a whole number of at least 0, or all")
    return int(text[:9])  # more than any count needs; Python refuses to read thousands


def counts_of(name: str, values: Numbers) -> list[int]:
    """Return the whole numbers of at least 1 that the parameter `name` was given, each once. Raises `UsageError` for
    others."""
    text = ",".join(texts_of(values))
    parts = [part.strip() for part in text.split(",")]
    bad = [part for part in parts if not (part.isascii() and part.isdecimal() and len(part) < 10 and int(part))]
    if bad:
        problem = f"{bad[0]!r} is no whole number of at least 1; for example {arg(name, '20,50,100')}"
        raise UsageError(f"{arg(name, text)}: {problem}")
    return list(dict.fromkeys(map(int, parts)))


def tags_of(tags_given: Tags, *taken: str) -> dict[str, str]:
    """Return the tags of rows. taken: tags that the command sets itself. Raises `UsageError` for a bad or taken tag."""
    from hoicli.records.result_rows import parse_tags

    if isinstance(tags_given, Mapping):
        for key in tags_given:
            if not isinstance(key, str) or not key or "=" in key:
                raise UsageError(f"{arg('tag')}: {key!r} is no name of a tag")
        tags_given = [f"{key}={value}" for key, value in tags_given.items()]
    tags = [tags_given] if isinstance(tags_given, str) else tags_given or ()
    if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
        raise UsageError(
            f"{arg('tag')}: {tags_given!r} is no tag; give key=value, or several in a list or a dictionary"
        )
    return parse_tags(list(tags), taken=taken)
