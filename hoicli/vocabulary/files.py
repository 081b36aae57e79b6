"""Datasets that hoicli does not ship, the user's files and what other packages add: read, and checked by field."""

from __future__ import annotations

import re
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from hoicli.errors import DataError, Place, arg, did_you_mean, not_json
from hoicli.io.file_claims import register_input
from hoicli.io.opened_files import open_input, readable, refuse_repeated_key
from hoicli.io.plugins import Plugin
from hoicli.vocabulary.labels import (
    BOXES,
    Pair,
    Vocabulary,
    content_digest,
    listed_pairs,
    normalise_spelling,
    objects_of,
    vocabulary_of,
)

LARGEST = 1 << 26
"""Bytes of a file: SWIG-HOI's 14,130 interactions take a quarter of a megabyte."""

MOST_LABELS, MOST_CLASSES, MOST_PAIRS = 20_000, 100_000, 1 << 25
"""Labels of a kind, interactions, and verbs times objects: a table of the last is made (256 MB)."""

FIELDS = (
    *("name", "title", "about", "source", "subjects", "verbs", "objects", "roles", "interactions", "no_interaction"),
    *("groups", "training_counts", "cuts", "subsets", "splits", "split_aliases", "aliases", "numbering", "box"),
    "test_images",
)
"""The fields of a dataset's file (formats/dataset.schema.json says what each means)."""

RESERVED = ("full", "seen", "unseen")
"""Names of subsets that rows have for every dataset."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_NOUN = re.compile(r"n\d{8}")
_LONGEST = 200

MAKE = "hoicli vocab --from GT.jsonl -o FILE.json makes one"
"""What to do where a file is no dataset, for messages."""


def read_dataset(dataset: str, taken: Collection[str]) -> Vocabulary:
    """Return the vocabulary in a dataset's file. taken: names that the dataset may not have. Raises `DataError` with
    the file, the field, what is wrong and what to do."""
    path = Path(dataset)
    register_input(path)  # a file that was read before, too
    data = _read_pipe(dataset, path.stat().st_ino) if path.is_fifo() else _content(dataset)
    return _build_vocabulary(data, dataset, dataset, "", frozenset(taken))


def build_added_dataset(name: str, added: Plugin, taken: Collection[str]) -> Vocabulary:
    """Return the vocabulary that another package adds as a dict with the fields of a dataset's file. Signatures name
    the package with its version. Raises `DataError` as `read_dataset` does."""
    content = {**added.value, "name": name} if isinstance(added.value, Mapping) else None
    data = orjson.dumps(content)
    return _build_vocabulary(data, f"{name} of {added.owner}", name, added.owner, frozenset(taken))


@cache
def _read_pipe(path: str, number: int) -> bytes:  # noqa: ARG001 (a key of the cache)
    """Return what came through a pipe, which can be read only once, so it is cached. number: the pipe's inode, which
    tells one pipe at this path from the next."""
    return _content(path)


def _content(path: str) -> bytes:
    """Return the bytes in a file, unpacked. Raises `DataError` that names the file."""
    if path == "-":
        raise DataError("a dataset is read from a file, not from stdin", place=Place(arg("dataset")))
    with open_input(path) as stream, readable(path):
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DataError(f"more than {LARGEST >> 20} MiB: no file of a dataset's classes; {MAKE}", place=path)
    return data


@cache
def _build_vocabulary(data: bytes, place: str, path: str, owner: str, taken: frozenset[str]) -> Vocabulary:
    """Return the vocabulary in a dataset's JSON. It is cached by its content, as another file may stand at the path by
    now. place: what messages call it; path: what options call it; owner: the package that adds it, "" for a file, whose
    digest then stands in signatures; taken: names that it may not have."""
    if not data.strip():
        raise DataError(f"is empty; {MAKE}", place=place, code="empty")
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if b"\n{" in data.strip() and b'"boxes"' in data:
            raise DataError(f"these are records, not a dataset; {MAKE}", place=place) from None
        raise not_json(error, place, MAKE) from None
    refuse_repeated_key(data, content, place)
    check(content, place)
    if content["name"] in taken:
        raise DataError(f"{content['name']!r} is a dataset of hoicli's own; choose another", place=place, field="name")
    return replace(vocabulary_of(content), digest=owner or content_digest(content), path=path)


def check(content: Any, place: str) -> None:
    """Raise `DataError` at `place` for the first field of a dataset's content that cannot be used or contradicts
    another."""
    for field, problem in _problems(content):
        raise DataError(problem, place=place, field=field)


Problem = tuple[str, str]
"""A field and what is wrong with it. `check` stops at the first, so each check may rely on those before it."""


def _problems(content: Any) -> Iterator[Problem]:
    """Yield the problems of a dataset's content, field by field."""
    yield from _field_problems(content)
    name, box_convention = content["name"], content.get("box", BOXES[0])
    if type(name) is not str or not _NAME.fullmatch(name):
        how = "give letters, digits, _ . and - (at most 64), as it stands in signatures"
        yield "name", f"{_value_text(name)} is no name; {how}"
    if box_convention not in BOXES:
        yield "box", f"{_value_text(box_convention)} is no convention of boxes; choose {', '.join(BOXES)}"
    for keys, required_type, problem in _KINDS:
        for key in keys:
            if key in content and type(content[key]) is not required_type:
                yield key, f"{_value_text(content[key])} {problem}"
    if not content.get("title", "").isprintable():
        yield "title", "has control characters; give one line of text"
    yield from _label_list_problems(content)
    verbs, objects = content["verbs"], objects_of(content)
    pairs = yield from _pair_problems(content["interactions"], verbs, objects, content.get("roles", []))
    idle_verb = content.get("no_interaction")
    if idle_verb is not None and (type(idle_verb) is not str or idle_verb not in verbs):
        yield "no_interaction", f"{_value_text(idle_verb)} is no verb of the dataset; name one, or leave it out"
    yield from _alias_problems(content.get("aliases", {}), verbs, objects)
    for kind, how in content.get("numbering", {}).items():
        yield from _numbering_problems(kind, how, {"verbs": verbs, "objects": objects, "interactions": pairs})
    for alias, split in content.get("split_aliases", {}).items():
        if type(split) is not str or split not in content.get("splits", {}):
            yield f"split_aliases.{alias[:_LONGEST]}", f"{_value_text(split)} is none of `splits`; name one"
    images = content.get("test_images", [])
    are_names = type(images) is list and all(type(name) is str and name.strip() for name in images)
    if not are_names or _first_double(images):
        yield "test_images", "must be a list of image ids, each once"
    yield from _set_problems(content, {pair: number for number, pair in enumerate(pairs)})
    yield from _count_problems(content, len(pairs))


def _field_problems(content: Any) -> Iterator[Problem]:
    """Yield the problems of the fields that a dataset's content has: unknown ones, and those that are missing."""
    if type(content) is not dict:
        yield "", f"{_value_text(content)} is no object with the fields of a dataset; {MAKE}"
    if "boxes" in content and "hois" in content:
        yield "", f"a record, not a dataset; {MAKE}"
    for key in content:
        if key not in FIELDS:
            yield key[:_LONGEST], f"no field of a dataset; {did_you_mean(key, FIELDS, 'drop it')}"
    for key in ("name", "verbs", "objects", "interactions"):
        if key not in content:
            yield key, f"missing; {MAKE}"


def _label_list_problems(content: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of the lists of labels: subjects, verbs, objects and roles."""
    listed = content["objects"]
    if type(listed) is dict and not all(type(noun) is str and _NOUN.fullmatch(noun) for noun in listed.values()):
        yield "objects", "an object of labels needs the WordNet 3.0 noun of each, as n02084071"
    lists = {**content, "objects": list(listed) if type(listed) is dict else listed}
    for key in ("subjects", "verbs", "objects", "roles"):
        if key in lists and (key, lists[key]) != ("objects", "coco"):
            yield from _label_problems(key, lists[key], needed=key != "roles")


_KINDS: tuple[tuple[tuple[str, ...], type, str], ...] = (
    (("title", "about", "source"), str, "is no text; give a string, or leave it out"),
    (("aliases",), dict, "is no object; give the other spelling and the label of each"),
    (("numbering",), dict, "is no object; say how verbs, objects, interactions are numbered"),
    (("groups", "subsets", "splits"), dict, "is no object; give lists of classes by name"),
    (("split_aliases",), dict, "is no object; give the name of a split for each other name"),
)
"""Fields whose values must be of a kind, and what is said of any other value."""


def _label_problems(key: str, labels: Any, *, needed: bool) -> Iterator[Problem]:
    """Yield the problems of a list of labels. key: its field; needed: whether it may not be empty."""
    if type(labels) is not list or (needed and not labels):
        yield key, f"{_value_text(labels)} is no list of labels; give at least one"
    if len(labels) > MOST_LABELS:
        yield key, f"{len(labels):,} labels; hoicli takes {MOST_LABELS:,}"
    first_places: dict[str, int] = {}
    for index, label in enumerate(labels):
        if fault := label_fault(label):
            yield f"{key}[{index}]", fault
        first = first_places.setdefault(normalise_spelling(label), index)
        if first != index:
            yield f"{key}[{index}]", f"{label!r} is there already, at {key}[{first}]; each label once"


def label_fault(label: Any, *, signed: bool = True) -> str:
    """Return what is wrong with a label, "" if nothing is. signed: whether it may appear in a signature."""
    if type(label) is not str:
        return f"{_value_text(label)} is no label; labels are strings"
    if not label.strip() or label != label.strip():
        return f"{_value_text(label)} is empty or has spaces around it; strip it, here and in the records"
    if len(label) > _LONGEST or not label.isprintable():
        return f"{_value_text(label)} is too long or has control characters; give a name of at most {_LONGEST}"
    if signed and "|" in label:
        return f"{_value_text(label)} has a |, which parts the settings of signatures; write it without"
    return ""


def _pair_problems(
    listed: Any, verbs: list[str], objects: list[str], roles: list[str]
) -> Generator[Problem, None, tuple[Pair, ...]]:
    """Yield the problems of the interactions, and return these as `listed_pairs` does. listed: the field's value."""
    second_name, second_labels = ("role", ["", *roles]) if roles else ("object", objects)
    if len(verbs) * len(second_labels) > MOST_PAIRS:
        yield "verbs", f"{len(verbs):,} x {len(objects):,} objects; hoicli takes {MOST_PAIRS:,} pairs"
    if type(listed) is dict:
        for name, of_object in listed.items():
            if type(of_object) is not list:
                yield f"interactions.{name[:_LONGEST]}", f"{_value_text(of_object)} is no list; give the object's verbs"
        listed = [[verb, name] for name, of_object in listed.items() for verb in of_object]
    if type(listed) is not list or not listed or len(listed) > MOST_CLASSES:
        count = f"{len(listed):,} of them" if type(listed) is list else _value_text(listed)
        yield "interactions", f"{count}; give 1 to {MOST_CLASSES:,} pairs of verb and {second_name}"
    by_number = not roles and type(listed[0]) is list and bool(listed[0]) and type(listed[0][0]) is int
    entry_type = int if by_number else str
    sides = [
        (what, len(names), range(len(names)) if by_number else set(names))
        for what, names in (("verb", verbs), (second_name, second_labels))
    ]
    for index, pair in enumerate(listed):
        field = f"interactions[{index}]"
        if type(pair) is not list or [type(entry) for entry in pair] != [entry_type, entry_type]:
            yield field, f"{_value_text(pair)} is no pair; give [verb, {second_name}], all by name or all by number"
        for entry, (what, label_count, known_names) in zip(pair, sides, strict=True):
            if entry not in known_names:
                counted = f"{what} {entry}, but there are {label_count}, counted from 0"
                unknown = f"unknown {what} {_value_text(entry)}; list it in {what}s"
                yield field, counted if by_number else unknown
    pairs = listed_pairs(listed, verbs, objects)
    if double := _first_double(pairs):
        first, index = double
        yield f"interactions[{index}]", f"{' '.join(pairs[index])} is interaction {first} already; drop it"
    return pairs


def _alias_problems(aliases: Mapping[str, Any], *labels: list[str]) -> Iterator[Problem]:
    """Yield the problems of `aliases`. labels: the verbs and the objects."""
    label_sets = list(map(set, labels))
    for alias, label in aliases.items():
        if fault := label_fault(alias, signed=False):
            yield "aliases", fault
        matching_sets = [label_set for label_set in label_sets if type(label) is str and label in label_set]
        if not matching_sets:
            yield f"aliases.{alias}", f"{_value_text(label)} is no verb and no object; name one"
        if any(alias in label_set for label_set in matching_sets):
            yield f"aliases.{alias}", f"is a label itself; drop the alias, or the label {alias!r}"


def _numbering_problems(kind: str, how: Any, names_by_kind: Mapping[str, Sequence[Any]]) -> Iterator[Problem]:
    """Yield the problems of one entry of `numbering`. kind: what it numbers; how: the entry; names_by_kind: the verbs,
    the objects and the interactions."""
    field = f"numbering.{kind[:_LONGEST]}"
    if kind not in names_by_kind:
        yield field, f"nothing that is numbered; give {', '.join(names_by_kind)}"
    entries = names_by_kind[kind]
    if type(how) is not dict or not how or not (set(how) <= {"order", "base"} or set(how) == {"ids"}):
        yield field, f'{_value_text(how)}; give {{"order": ..., "base": ...}} or {{"ids": {{label: number}}}}'
    if "ids" in how and kind == "interactions":
        yield from _mapper_problems(how["ids"], entries, f"{field}.ids")
        return
    if "ids" in how:
        ids = how["ids"]
        if type(ids) is not dict or sorted(ids) != sorted(entries):
            yield f"{field}.ids", f"must have each of the {kind} once, with its number"
        if not all(map(_is_count, ids.values())) or _first_double(list(ids.values())):
            yield f"{field}.ids", "numbers are whole, 0 or more, each once; correct the others"
        return
    order, base = how.get("order", "listed"), how.get("base", 0)
    if not _is_count(base):
        yield f"{field}.base", f"{_value_text(base)} is no number to count from; give 0 or 1"
    if order in ("listed", "alphabetical"):
        return
    if type(order) is not list:
        yield f"{field}.order", f"{_value_text(order)}; give listed, alphabetical, or a list of all {kind}"
    if sorted(map(str, order)) != sorted(str(list(each) if type(each) is tuple else each) for each in entries):
        yield f"{field}.order", f"is no permutation of the {len(entries)} {kind}; list each once"


def _mapper_problems(content: Any, pairs: Sequence[Pair], field: str) -> Iterator[Problem]:
    """Yield the problems of a mapping from numbers to interactions, of all `pairs` or of some."""
    if type(content) is not dict or not content:
        yield field, f'{_value_text(content)}; give {{"0": [verb, object], ...}}'
    known_pairs, first_numbers = set(pairs), dict[tuple[str, ...], str]()
    for number, pair in content.items():
        number_field = f"{field}.{number[:_LONGEST]}"
        if not re.fullmatch("0|[1-9][0-9]{0,8}", number):
            yield number_field, "no number; the keys are the dump's numbers, whole, 0 or more"
        if type(pair) is not list or not all(type(name) is str for name in pair) or tuple(pair) not in known_pairs:
            yield number_field, f"{_value_text(pair)} is none of `interactions`; give [verb, object] of one"
        if (first := first_numbers.setdefault(tuple(pair), number)) != number:
            yield number_field, f"{_value_text(pair)} has the number {first} already; each interaction once"


def _set_problems(content: Mapping[str, Any], ids: Mapping[Pair, int]) -> Iterator[Problem]:
    """Yield the problems of groups, subsets and splits, which are named sets of classes. Groups divide the classes:
    each class is in one."""
    group_of: dict[int, str] = {}
    groups = content.get("groups", {})
    for key in ("groups", "subsets", "splits"):
        for name, classes in content.get(key, {}).items():
            field = f"{key}.{name[:_LONGEST]}"
            numbers = yield from _class_set_problems(field, name, classes, ids)
            for number, member in zip(numbers, classes, strict=True) if key == "groups" else ():
                first_group = group_of.setdefault(number, name)
                yield from _overlap_problems(field, name, first_group, member)
    if groups and len(group_of) < len(ids):
        ungrouped = next(pair for pair, number in ids.items() if number not in group_of)
        yield "groups", f"{' '.join(ungrouped)} is in none; groups divide the classes (else: subsets)"
    for name in content.get("subsets", {}):
        if name in groups:
            yield f"subsets.{name}", "is a group, too; give it another name"


def _overlap_problems(field: str, name: str, other: str, member: Any) -> Iterator[Problem]:
    """Yield the problem of a member of the group `name`, if the group `other` has it, too."""
    if other != name:
        yield field, f"{_value_text(member)} is in {other!r}, too; groups divide the classes (else: subsets)"


def _class_set_problems(
    field: str, name: str, classes: Any, ids: Mapping[Pair, int]
) -> Generator[Problem, None, list[int]]:
    """Yield the problems of a named set of classes, and return the numbers of its members, given as numbers or
    pairs."""
    if label_fault(name) or name in RESERVED:
        yield field, f"no name for classes; choose another than {', '.join(RESERVED)}"
    if type(classes) is not list:
        yield field, f"{_value_text(classes)} is no list of classes; give ids, or pairs of verb and object"
    numbers: dict[Any, None] = {}
    for index, member in enumerate(classes):
        is_pair = type(member) is list and len(member) == 2 and all(type(part) is str for part in member)
        number = ids.get((member[0], member[1])) if is_pair else member
        if type(number) is not int or not 0 <= number < len(ids):
            interactions_text = f"`interactions`, of which there are {len(ids)}, counted from 0"
            yield f"{field}[{index}]", f"{_value_text(member)} is none of {interactions_text}"
        if number in numbers:
            yield f"{field}[{index}]", f"{_value_text(member)} is there twice; name each class once"
        numbers[number] = None
    return list(numbers)


def _count_problems(content: Mapping[str, Any], classes: int) -> Iterator[Problem]:
    """Yield the problems of the training counts, and of the cuts that divide classes into groups by them."""
    counts, cuts = content.get("training_counts", []), content.get("cuts", {})
    if type(counts) is not list or (counts and len(counts) != classes) or not all(map(_is_count, counts)):
        yield "training_counts", f"must have a count for each of the {classes} interactions, in their order"
    if "cuts" not in content:
        return
    if not counts or content.get("groups"):
        yield "cuts", "cut training_counts into groups: needs those, and no groups; drop it"
    limits = list(cuts.values()) if type(cuts) is dict else [0]
    names_fit = type(cuts) is dict and cuts and not any(label_fault(name) or name in RESERVED for name in cuts)
    limits_fit = bool(limits) and limits[-1] is None and all(map(_is_count, limits[:-1]))
    if not names_fit or not limits_fit or any(low >= high for low, high in pairwise(limits[:-1])):
        yield (
            "cuts",
            f'{_value_text(cuts)}; give ascending limits and null for the last: {{"rare": 10, "non_rare": null}}',
        )


def _is_count(value: Any) -> bool:
    """Return whether a value is a whole number from 0 that 63 bits hold."""
    return type(value) is int and 0 <= value < 1 << 62


def _first_double(values: Sequence[Any]) -> tuple[int, int] | None:
    """Return the positions of the first two equal values, None if all differ."""
    first_position: dict[Any, int] = {}
    for position, value in enumerate(values):
        if value in first_position:
            return first_position[value], position
        first_position[value] = position
    return None


def _value_text(value: Any) -> str:
    """Return a decoded value as messages show it: JSON, at most 60 characters."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
