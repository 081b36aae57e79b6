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
"""The most bytes of a file."""


def chosen_recipe(text: str, names: Iterable[str] = (), *, argument: str = "corruption") -> Recipe:
    """Return the recipe that `--recipe` names, with the constants of the corruptions `names` from other packages: their
    own, or those they give for ImageNet-C; a file has the constants of those that it names.

    argument: the option that gave the names. Raises `UsageError` for an unknown recipe, and for a name that is no
    corruption or that the recipe has no constants for; and what `read_recipe` and `added_corruption` raise."""
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
                suggestion = did_you_mean(name, CORRUPTIONS, "hoicli corrupt --list shows them")
                raise UsageError(f"{arg(argument, name)}: no corruption; {suggestion}")
            owners[name] = added.owner
            of_recipe = added.corruption.published if text == IMAGENET_C else added.corruption.levels
            if text in RECIPES and of_recipe:
                levels[name] = of_recipe
        if name not in levels:
            known = ", ".join(levels)
            raise UsageError(f"{arg(argument, name)}: recipe {recipe.name} has no constants for it, only for {known}")
    return recipe._replace(levels=levels, owners=owners)


def read_recipe(path: str) -> Recipe:
    """Return the recipe of a file, with a digest of its constants in its name. Raises `DataError` that names file and
    field."""
    record = read_object(path, "recipe", "a few hundred numbers", limit=LARGEST)
    try:
        return _recipe(record)
    except DataError as error:
        raise error.add_place(display_name(path)) from None


def _recipe(record: Record) -> Recipe:
    for field in record:
        if field not in ("name", "corruptions"):
            raise DataError("there is no such field; a recipe has name and corruptions", field=_bare(field))
    name = record.get("name")
    if type(name) is not str or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", name):
        problem = "must be a word of at most 40 letters, digits, _ . -; records name the recipe by it"
        raise DataError(problem, field="name")
    if name in RECIPES:
        raise DataError(f"{name} is hoicli's own recipe; a file needs a name of its own", field="name")
    levels_by_name = record.get("corruptions")
    if type(levels_by_name) is not dict or not levels_by_name:
        raise DataError("must be an object with the levels of at least one corruption", field="corruptions")
    rows = {
        corruption_name: row for corruption_name in levels_by_name if (row := corruption(corruption_name)) is not None
    }
    if unknown := [corruption_name for corruption_name in levels_by_name if corruption_name not in rows]:
        problem = "there is no such corruption; hoicli corrupt --list shows them"
        raise DataError(problem, field=f"corruptions.{_bare(unknown[0])}")
    others = {
        corruption_name: added.owner
        for corruption_name in rows
        if corruption_name not in CORRUPTIONS and (added := added_corruption(corruption_name))
    }
    levels = {
        corruption_name: _levels(rows[corruption_name], levels_by_name[corruption_name])
        for corruption_name in (*CORRUPTIONS, *others)
        if corruption_name in rows
    }
    digest = hashlib.sha256(json.dumps(levels, sort_keys=True).encode()).hexdigest()[:8]
    return Recipe(f"{name}@{digest}", "a file's", levels, tuple(levels), others)


def _levels(row: Corruption, levels: Any) -> Levels:
    """Return the five levels of a corruption, checked."""
    field = f"corruptions.{row.name}"
    count = len(SEVERITIES)
    if type(levels) is not list or len(levels) != count:
        found_text = f"{len(levels)} level{'s' * (len(levels) != 1)}" if type(levels) is list else json_type(levels)
        raise DataError(f"{found_text}; give an array of {count}, the mildest first", field=field)
    return tuple(_level(row, level, f"{field}[{number}]") for number, level in enumerate(levels))


def _level(row: Corruption, level: Any, field: str) -> Level:
    """Return the constants of a level, in the order of the table, checked."""
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


def _bare(text: str) -> str:
    return short(text).strip('"')
