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
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from hoicli.corruption.catalogue import SEVERITIES
from hoicli.corruption.definitions import DEFINITIONS, RECIPES, Definition, Level, Levels, Recipe
from hoicli.errors import DataError, UsageError, arg
from hoicli.io.messages import display_name
from hoicli.records.parsing import is_number, json_type, read_object, short

ENDING = ".json"
"""A `--recipe` that ends so is a file."""
LARGEST = 1 << 20
"""Bytes of a file."""

LIMITS: dict[str, tuple[float, float, bool]] = {
    "radius_px": (1, 300, True), "sigma_px": (0.1, 300, False), "alias_sigma_px": (0.1, 10, False),
    "distance_px": (1, 300, True), "rounds": (1, 10, True), "deviation": (0.001, 10, False),
    "photons": (0.5, 10_000, False), "share": (0.001, 1, False), "quality": (1, 100, True),
    "slices_per_block_row": (0, 1, False), "slice_width": (0, 1, False), "block_px": (2, 512, True),
    "over_stops": (0, 10, False), "under_stops": (0, 10, False), "strength": (0, 1, False), "bands": (0.1, 100, False),
    "shift": (0, 0.2, False), "rectangles": (1, 1000, True), "side": (0, 1, False), "start": (0, 0.99, False),
    "contrast": (0, 2, False), "lines": (1, 1000, False), "impacts": (1, 20, True), "reach": (0.05, 1, False),
    "width_px": (0.5, 50, False), "shift_px": (0, 100, False), "glare": (0, 1, False), "amplitude": (0, 10_000, False),
    "sigma": (0.001, 0.2, False), "barrel": (0, 5, False), "pincushion": (-0.33, 0, False),
    "resolution": (0.002, 1, False), "largest": (1, 4, False), "layers": (2, 200, True),
}  # fmt: skip
"""Of each constant: the least, the largest, and whether it is a whole number."""

Bad = Callable[[str, str], DataError]


def chosen_recipe(text: str) -> Recipe:
    """What `--recipe` names. Raises `UsageError` for no recipe, and what `read_recipe` raises."""
    if text in RECIPES:
        return RECIPES[text]
    if text.endswith(ENDING):
        return read_recipe(text)
    near = get_close_matches(text, RECIPES, n=1)
    meant = f"did you mean {near[0]}?" if near else f"choose {' or '.join(RECIPES)}, or FILE{ENDING}"
    raise UsageError(f"{arg('recipe', text)}: there is no such recipe; {meant}")


def read_recipe(path: str) -> Recipe:
    """The recipe of a file, with a digest of its constants in its name. Raises `DataError` that names the file and the
    field."""

    def bad(field: str, problem: str) -> DataError:
        return DataError(problem, place=display_name(path), field=field)

    record = read_object(path, "recipe", "a few hundred numbers", most=LARGEST)
    for field in record:
        if field not in ("name", "corruptions"):
            raise bad(_bare(field), "there is no such field; a recipe has name and corruptions")
    name = record.get("name")
    if type(name) is not str or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}", name):
        raise bad("name", "must be a word of at most 40 letters, digits, _ . -; records name the recipe by it")
    if name in RECIPES:
        raise bad("name", f"{name} is hoicli's own recipe; a file needs a name of its own")
    given = record.get("corruptions")
    if type(given) is not dict or not given:
        raise bad("corruptions", "must be an object with the levels of at least one corruption")
    for corruption in given:
        if corruption not in DEFINITIONS:
            near = get_close_matches(corruption, DEFINITIONS, n=1)
            meant = f"did you mean {near[0]}?" if near else "hoicli corrupt --list shows them"
            raise bad(f"corruptions.{_bare(corruption)}", f"there is no such corruption; {meant}")
    levels = {row.name: _levels(row, given[row.name], bad) for row in DEFINITIONS.values() if row.name in given}
    digest = hashlib.sha256(json.dumps(levels, sort_keys=True).encode()).hexdigest()[:8]
    return Recipe(f"{name}@{digest}", levels)


def _levels(row: Definition, given: Any, bad: Bad) -> Levels:
    """The five levels of a corruption."""
    field = f"corruptions.{row.name}"
    count = len(SEVERITIES)
    if type(given) is not list or len(given) != count:
        found = f"{len(given)} level{'s' * (len(given) != 1)}" if type(given) is list else json_type(given)
        raise bad(field, f"{found}; give an array of {count}, the mildest first")
    return tuple(_level(row, level, f"{field}[{number}]", bad) for number, level in enumerate(given))


def _level(row: Definition, given: Any, field: str, bad: Bad) -> Level:
    """The constants of a level, in the order of the table."""
    if type(given) is not dict or set(given) != set(row.constants):
        raise bad(field, f"give an object with {', '.join(row.constants)}, and nothing else")
    values = []
    for name in row.constants:
        value, (least, largest, whole) = given[name], LIMITS[name]
        if not is_number(value) or not least <= value <= largest or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise bad(f"{field}.{name}", f"{short(value)}; give {kind} from {least:g} to {largest:g}")
        values.append(int(value) if whole else float(value))
    return tuple(values)


def _bare(text: str) -> str:
    return short(text).strip('"')
