"""Recipes: `hoicli-1`, `imagenet-c`, or a file, which `--recipe FILE.json` reads.

    {"name": "mild", "corruptions": {"jpeg": [{"quality": 60}, {"quality": 50}, {"quality": 40}, {"quality": 30},
                                              {"quality": 20}]}}

A file has five levels of each corruption that it wants, with all constants that `hoicli corrupt --list` names
(formats/recipe.schema.json). Records call it `NAME@DIGEST`, so that two files of one name do not pass for each other.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any

from hoicli.corruption.catalogue import (
    CORRUPTIONS,
    IMAGENET_C,
    LIMITS,
    RECIPES,
    SEVERITIES,
    Corruption,
    Level,
    Levels,
    Recipe,
    added_corruption,
    corruption,
)
from hoicli.errors import DataError, UsageError, arg, did_you_mean
from hoicli.io.messages import display_name
from hoicli.records.parsing import Record, is_number, json_type, read_object, short

ENDING = ".json"
"""The ending of a `--recipe` that is a file."""
LARGEST = 1 << 20
"""The most bytes of a recipe's file."""


def choose_recipe(text: str, names: Iterable[str] = (), *, argument: str = "corruption") -> Recipe:
    """Return the recipe that `--recipe` names, extended by the wanted corruptions of other packages.

    text: the name of a built-in recipe, or the path of a file. names: the wanted corruptions. A built-in recipe takes
    the constants of one from another package from there (for imagenet-c, those published in ImageNet-C); a file must
    have them itself. argument: the option that gave the names, for messages. Raises `UsageError` for an unknown recipe,
    and for a name that is no corruption or that the recipe has no constants for; and what `read_recipe` and
    `added_corruption` raise."""
    if text.endswith(ENDING):
        recipe = read_recipe(text)
    elif text in RECIPES:
        recipe = RECIPES[text]
    else:
        choice = f"choose {' or '.join(RECIPES)}, or FILE{ENDING}"
        raise UsageError(f"{arg('recipe', text)}: there is no such recipe; {choice}")
    levels, owners = {**recipe.levels}, {**recipe.owners}
    for name in names:
        if name not in CORRUPTIONS and name not in owners:
            added = added_corruption(name)
            if added is None:
                raise UsageError(f"{arg(argument, name)}: no corruption; {_suggest_corruption(name)}")
            owners[name] = added.owner
            added_levels = added.corruption.published if text == IMAGENET_C else added.corruption.levels
            if text in RECIPES and added_levels:
                levels[name] = added_levels
        if name not in levels:
            names_text = ", ".join(levels)
            problem = f"recipe {recipe.name} has no constants for it, only for {names_text}"
            raise UsageError(f"{arg(argument, name)}: {problem}")
    return recipe._replace(levels=levels, owners=owners)


def _suggest_corruption(name: str) -> str:
    """Return the end of a message about an unknown corruption."""
    with_word = [corruption for corruption in CORRUPTIONS if name.lower() in corruption.split("_")]  # blur, for one
    if len(with_word) > 1:
        return f"choose one of {', '.join(with_word)}"
    return did_you_mean(name, CORRUPTIONS, "hoicli corrupt --list shows them")


def read_recipe(path: str) -> Recipe:
    """Return the recipe in a JSON file, called NAME@DIGEST, with a digest of its constants. Raises `DataError` that
    names file and field for anything that is no recipe."""
    record = read_object(path, "recipe", "a few hundred numbers", limit=LARGEST)
    try:
        return _parse_recipe(record)
    except DataError as error:
        raise error.add_place(display_name(path)) from None


def _parse_recipe(record: Record) -> Recipe:
    """Return the recipe that a file's JSON object describes. Raises `DataError`, with the field, for a problem."""
    for field in record:
        if field not in ("name", "corruptions"):
            raise DataError("there is no such field; a recipe has name and corruptions", field=_strip_quotes(field))
    name = record.get("name")
    if type(name) is not str or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", name):
        problem = "must be a word of at most 40 letters, digits, _ . -; records name the recipe by it"
        raise DataError(problem, field="name")
    if name in RECIPES:
        raise DataError(f"{name} is hoicli's own recipe; a file needs a name of its own", field="name")
    levels_by_name = record.get("corruptions")
    if type(levels_by_name) is not dict or not levels_by_name:
        raise DataError("must be an object with the levels of at least one corruption", field="corruptions")
    rows: dict[str, Corruption] = {}
    owners: dict[str, str] = {}
    for corruption_name in levels_by_name:
        row = corruption(corruption_name)
        if row is None:
            problem = "there is no such corruption; hoicli corrupt --list shows them"
            raise DataError(problem, field=f"corruptions.{_strip_quotes(corruption_name)}")
        rows[corruption_name] = row
        if corruption_name not in CORRUPTIONS and (added := added_corruption(corruption_name)):
            owners[corruption_name] = added.owner
    levels = {
        corruption_name: _parse_levels(rows[corruption_name], levels_by_name[corruption_name])
        for corruption_name in (*CORRUPTIONS, *owners)
        if corruption_name in rows
    }
    digest = hashlib.sha256(json.dumps(levels, sort_keys=True).encode()).hexdigest()[:8]
    return Recipe(name=f"{name}@{digest}", words="a file's", levels=levels, usual=tuple(levels), owners=owners)


def _parse_levels(row: Corruption, levels: Any) -> Levels:
    """Return the constants of a corruption at each severity. levels: what a file has for it, which must be a list of
    five objects. Raises `DataError`, with the field, for anything else."""
    field = f"corruptions.{row.name}"
    count = len(SEVERITIES)
    if type(levels) is not list or len(levels) != count:
        what = f"{len(levels)} level{'s' * (len(levels) != 1)}" if type(levels) is list else json_type(levels)
        raise DataError(f"{what}; give an array of {count}, the mildest first", field=field)
    return tuple(_parse_level(row, level, f"{field}[{number}]") for number, level in enumerate(levels))


def _parse_level(row: Corruption, level: Any, field: str) -> Level:
    """Return the constants of a corruption at one severity, in the order of `row.constants`. level: what a file has
    for it, which must be an object with a number within LIMITS for each; field: its path in the file. Raises
    `DataError` for anything else."""
    if type(level) is not dict or set(level) != set(row.constants):
        raise DataError(f"give an object with {', '.join(row.constants)}, and nothing else", field=field)
    values = []
    for name in row.constants:
        value, (minimum, largest, whole) = level[name], LIMITS.get(name, (-1e9, 1e9, False))
        if not is_number(value) or not minimum <= value <= largest or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise DataError(f"{short(value)}; give {kind} from {minimum:g} to {largest:g}", field=f"{field}.{name}")
        values.append(int(value) if whole else float(value))
    return tuple(values)


def _strip_quotes(text: str) -> str:
    """Return a key as the path of a field has it in messages: shortened, without quotation marks."""
    return short(text).strip('"')
