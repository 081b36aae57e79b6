"""SWIG-HOI's metadata as its projects publish it: swig_v1_categories.py, or the same three lists as JSON.

    SWIG_CATEGORIES = [{"id", "name", "noun_id", ...}]      SWIG_ACTIONS = [{"id", "name", ...}]
    SWIG_INTERACTIONS = [{"id", "action_id", "object_id", "frequency", "evaluation", ...}]

The Python file is parsed, never run: the assignments must be literals, and whatever else it holds is passed over. The
JSON has the lists as `categories`, `actions` and `interactions` (rows may be lists, `interaction_columns` naming their
fields). An object is named by the vocabulary's name of its noun sense, since the file gives some names to several.
Released with scwangdyd/large_vocabulary_hoi_detection and ltttpku/INP-CC (datasets/swig_v1_categories.py).
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any
from warnings import catch_warnings, simplefilter

from hoicli.errors import DataError
from hoicli.io.inputs import open_input
from hoicli.io.messages import display_name
from hoicli.vocabulary.datasets import load, swig_vocabulary
from hoicli.vocabulary.labels import Vocabulary, normalise

LISTS = ("categories", "actions", "interactions")
_STRINGS = re.compile(r'''"""(?:[^\\]|\\.)*?"""|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|\#[^\n]*''', re.DOTALL)
"""Python's strings, and its comments."""
_WORDS = re.compile(r"SWIG_[A-Z]+|__all__|None|True|False")
_MEND = "give swig_v1_categories.py as released"
LARGEST = 1 << 24
"""Bytes; the released file has 2.7 million, and a syntax tree is a hundred times its text."""


def read_categories(path: str) -> Vocabulary:
    """The vocabulary a metadata file describes.

    Raises `DataError` naming the file, and the list and entry where it is one of them.
    """
    name = display_name(path)
    with open_input(path) as stream:
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DataError(f"is larger than {LARGEST >> 20} MiB; give swig_v1_categories.py", place=name)
    lists = _json_lists(data, name) if data.lstrip()[:1] == b"{" else _python_lists(data, name)
    return _vocabulary(lists, name)


def differences(vocabulary: Vocabulary) -> list[str]:
    """What a vocabulary read from a file has otherwise than the one that hoicli evaluates with, a line a kind."""
    known = load("swig")
    found = []
    for what, ours, theirs in (
        ("verbs", known.verbs, vocabulary.verbs),
        ("objects", tuple(known.noun_ids.items()), tuple(vocabulary.noun_ids.items())),
        ("interactions", _classes(known), _classes(vocabulary)),
    ):
        unequal = [number for number, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]]
        count = len(unequal) + abs(len(ours) - len(theirs))
        if count:
            first = unequal[0] if unequal else min(len(ours), len(theirs))
            shown = [_shown(entries[first]) if first < len(entries) else "nothing" for entries in (theirs, ours)]
            found.append(f"{what}: {count:,} different, the first is id {first}: {shown[0]} here, {shown[1]} in hoicli")
    return found


def _shown(entry: str | tuple[str, ...]) -> str:
    return entry if isinstance(entry, str) else " ".join(entry)


def _classes(vocabulary: Vocabulary) -> tuple[tuple[str, ...], ...]:
    """Each interaction with its group and whether it is evaluated."""
    group, evaluated = vocabulary.group_of, vocabulary.subsets["evaluated"]
    return tuple(
        (*pair, group[number], "evaluated" if number in evaluated else "not evaluated")
        for number, pair in enumerate(vocabulary.interactions)
    )


def _python_lists(data: bytes, name: str) -> dict[str, Any]:
    """The three lists of a Python file; their assignments alone are looked at."""
    wanted = {f"SWIG_{key.upper()}": key for key in LISTS}
    lists: dict[str, Any] = {}
    if not _only_literals(data.decode("utf-8", "replace")):
        raise DataError(f"holds more than literals, and nothing of it is run; {_MEND}", place=name)
    try:
        with catch_warnings():
            simplefilter("ignore")  # what the compiler thinks of a stranger's escapes is no matter here
            statements = ast.parse(data).body
        for statement in statements:
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target in wanted:
                    lists[wanted[target]] = ast.literal_eval(value)
    except SyntaxError as error:
        raise DataError(f"no Python ({error.msg}); {_MEND}", place=name) from None
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise DataError(f"no list of literals ({error}); {_MEND}", place=name) from None
    return lists


def _only_literals(text: str) -> bool:
    """Whether a file has nothing but strings, numbers, brackets and assignments of them.

    A syntax tree can be deep only by brackets then, of which the parser takes 200: Python 3.10 dies of a long 1+1+1+...
    """
    rest = _STRINGS.sub(" ", text)
    words = {word for word in re.findall(r"\w+", rest) if not word.isdecimal()}
    return set(re.findall(r"[^\w\s]", rest)) <= set("[]{}(),:=") and all(map(_WORDS.fullmatch, words))


def _json_lists(data: bytes, name: str) -> dict[str, Any]:
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not JSON ({error}); give swig_v1_categories.py, or its lists as JSON", place=name) from None
    columns, rows = content.get("interaction_columns"), content.get("interactions")
    if isinstance(columns, list) and isinstance(rows, list):
        names = [str(column) for column in columns]
        content["interactions"] = [dict(zip(names, row, strict=False)) if type(row) is list else row for row in rows]
    return {key: content[key] for key in LISTS if key in content}


def _vocabulary(lists: Mapping[str, Any], name: str) -> Vocabulary:
    for key in LISTS:
        if not isinstance(lists.get(key), list) or not lists[key]:
            raise DataError(
                f"missing; the file needs SWIG_{', SWIG_'.join(map(str.upper, LISTS))}", place=name, field=key
            )
    nouns = {noun: object_ for object_, noun in load("swig").noun_ids.items()}
    categories = [
        _entry(lists, "categories", index, name, name=str, noun_id=str) for index in range(len(lists[LISTS[0]]))
    ]
    times = Counter(entry["name"] for entry in categories)
    objects = {}
    for entry in categories:
        noun, plain = entry["noun_id"], normalise(entry["name"])
        objects[nouns.get(noun, plain if times[entry["name"]] == 1 else f"{plain}.{noun}")] = noun
    verbs = [
        normalise(_entry(lists, "actions", index, name, name=str)["name"]) for index in range(len(lists["actions"]))
    ]
    rows = [
        _entry(lists, "interactions", index, name, action_id=int, object_id=int, frequency=int, evaluation=int)
        for index in range(len(lists["interactions"]))
    ]
    for key, entries, count in (("categories", objects, len(categories)), ("actions", set(verbs), len(verbs))):
        if len(entries) != count:
            raise DataError("two entries with one name; give the file as released", place=name, field=key)
    for index, row in enumerate(rows):
        limits = (("action_id", len(verbs)), ("object_id", len(objects)), ("frequency", 3), ("evaluation", 2))
        for key, limit in limits:
            if not 0 <= row[key] < limit:
                problem = f"{row[key]}, but it runs from 0 to {limit - 1}"
                raise DataError(problem, place=name, field=f"interactions[{index}].{key}")
    return swig_vocabulary(
        verbs,
        objects,
        verb_of=[row["action_id"] for row in rows],
        object_of=[row["object_id"] for row in rows],
        frequency=[row["frequency"] for row in rows],
        evaluated=[row["evaluation"] == 1 for row in rows],
    )


def _entry(lists: Mapping[str, Any], key: str, index: int, place: str, **fields: type) -> dict[str, Any]:
    """Entry `index` of a list, which must be numbered so and have the fields with their types."""
    entry = lists[key][index]
    for name, kind in {"id": int, **fields}.items():
        if type(entry) is not dict or type(entry.get(name)) is not kind:
            what = "a text" if kind is str else "a whole number"
            raise DataError(f"missing, or not {what}", place=place, field=f"{key}[{index}].{name}")
    if entry["id"] != index:
        raise DataError(
            f"{entry['id']}, but entries are numbered in their order", place=place, field=f"{key}[{index}].id"
        )
    return dict(entry)
