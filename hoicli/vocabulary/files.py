"""Datasets that hoicli does not ship, the user's files and what other packages add: read, and checked by field."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from hoicli.errors import DataError, Place, arg, not_json
from hoicli.io.claims import reads
from hoicli.io.inputs import open_input, readable
from hoicli.io.plugins import Plugin
from hoicli.vocabulary.contents import coco_objects, content_digest, listed_pairs, vocabulary_of
from hoicli.vocabulary.labels import BOXES, SUBJECT, Vocabulary, spelled

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


def of_file(dataset: str, taken: Collection[str]) -> Vocabulary:
    """The vocabulary in a file. taken: names it may not have. Raises `DataError` with the file, the field, what is
    wrong and what to do."""
    path = Path(dataset)
    reads(path)  # a file that was read before, too
    data = _of_pipe(dataset, path.stat().st_ino) if path.is_fifo() else _content(dataset)
    return _made(data, dataset, dataset, "", frozenset(taken))


def of_package(name: str, added: Plugin, taken: Collection[str]) -> Vocabulary:
    """The vocabulary that another package adds: a dict with the fields of a dataset's file. Signatures have the package
    with its version. Raises `DataError` as `of_file`."""
    content = {**added.value, "name": name} if isinstance(added.value, Mapping) else None
    data = orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS)
    return _made(data, f"{name} of {added.owner}", name, added.owner, frozenset(taken))


@cache
def _of_pipe(path: str, number: int) -> bytes:  # noqa: ARG001 (a key of the cache)
    """What came through a pipe, which can be read once; `number` is the pipe's own."""
    return _content(path)


def _content(path: str) -> bytes:
    """What is in a file, unpacked. Raises `DataError` that names the file."""
    if path == "-":
        raise DataError("a dataset is read from a file, not from stdin", place=Place(arg("dataset")))
    with open_input(path) as stream, readable(path):
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DataError(f"more than {LARGEST >> 20} MiB: no file of a dataset's classes; {MAKE}", place=path)
    return data


@cache
def _made(data: bytes, place: str, path: str, owner: str, taken: frozenset[str]) -> Vocabulary:
    """The vocabulary in a dataset's JSON, by its content: another file may stand at the path now, whatever its time.
    place: what messages call it; path: what options call it; owner: the package that adds it, in place of a digest."""
    if not data.strip():
        raise DataError(f"is empty; {MAKE}", place=place, code="empty")
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if b"\n{" in data.strip() and b'"boxes"' in data:
            raise DataError(f"these are records, not a dataset; {MAKE}", place=place) from None
        raise not_json(error, place, MAKE) from None
    check(content, place)
    if content["name"] in taken:
        raise DataError(f"{content['name']!r} is a dataset of hoicli's own; choose another", place=place, field="name")
    return replace(vocabulary_of(content), digest=owner or content_digest(content), path=path)


def check(content: Any, place: str) -> None:
    """Raises `DataError` at `place` for the first field of a dataset's content that cannot be used or contradicts
    another."""
    try:
        _check(content)
    except DataError as error:
        raise error.at(place) from None


def _check(content: Any) -> None:
    if type(content) is not dict:
        raise DataError(f"{_shown(content)} is no object with the fields of a dataset; {MAKE}")
    if "boxes" in content and "hois" in content:
        raise DataError(f"a record, not a dataset; {MAKE}")
    for key in content:
        if key not in FIELDS:
            raise DataError("no field of a dataset; drop it", field=key[:_LONGEST])
    for key in ("name", "verbs", "objects", "interactions"):
        if key not in content:
            raise DataError(f"missing; {MAKE}", field=key)
    _check_texts(content)
    named = content["objects"]
    if type(named) is dict and not all(type(noun) is str and _NOUN.fullmatch(noun) for noun in named.values()):
        raise DataError("an object of labels needs the WordNet 3.0 noun of each, as n02084071", field="objects")
    objects = coco_objects() if named == "coco" else named
    lists = {**content, "objects": list(objects) if isinstance(objects, Mapping) else objects}
    for key in ("subjects", "verbs", "objects", "roles"):
        if key in lists:
            _check_labels(key, lists[key], needed=key != "roles")
    labels = _Labels(content)
    _check_pairs(content["interactions"], labels)
    nothing = content.get("no_interaction")
    if nothing is not None and (type(nothing) is not str or nothing not in labels.verbs):
        problem = f"{_shown(nothing)} is no verb of the dataset; name one, or leave it out"
        raise DataError(problem, field="no_interaction")
    _check_aliases(_object(content, "aliases", "give the other spelling and the label of each"), labels)
    for kind, how in _object(content, "numbering", "say how verbs, objects, interactions are numbered").items():
        _check_numbering(kind, how, labels)
    splits = _object(content, "splits", "give lists of classes by name")
    for alias, split in _object(content, "split_aliases", "give the name of a split for each other name").items():
        if type(split) is not str or split not in splits:
            raise DataError(f"{_shown(split)} is none of `splits`; name one", field=f"split_aliases.{alias[:_LONGEST]}")
    images = content.get("test_images", [])
    sound = type(images) is list and all(type(name) is str and name.strip() for name in images)
    if not sound or _first_double(images):
        raise DataError("must be a list of image ids, each once", field="test_images")
    ids = {pair: number for number, pair in enumerate(labels.pairs)}
    for key in ("groups", "subsets", "splits"):
        for name, classes in _object(content, key, "give lists of classes by name").items():
            _check_classes(f"{key}.{name[:_LONGEST]}", name, classes, ids)
    _check_groups(content, ids)
    _check_counts(content, len(ids))


class _Labels:
    """The labels of a dataset whose lists of labels are sound, and its `interactions` as pairs, once they are, too."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        named = content["objects"]
        self.verbs: list[str] = content["verbs"]
        self.subjects: list[str] = content.get("subjects", [SUBJECT])
        self.objects = list(coco_objects() if named == "coco" else named)
        known = set(self.objects)
        self.objects += [label for label in self.subjects if label not in known]
        self.roles: list[str] = content.get("roles", [])
        self.pairs: list[tuple[str, str]] = []


def _check_texts(content: Mapping[str, Any]) -> None:
    """The name, the texts and the convention of boxes."""
    if type(content["name"]) is not str or not _NAME.fullmatch(content["name"]):
        shown = _shown(content["name"])
        problem = f"{shown} is no name; give letters, digits, _ . and - (at most 64), as it stands in signatures"
        raise DataError(problem, field="name")
    for key in ("title", "about", "source"):
        if type(content.get(key, "")) is not str:
            raise DataError(f"{_shown(content[key])} is no text; give a string, or leave it out", field=key)
    if not content.get("title", "").isprintable():
        raise DataError("has control characters; give one line of text", field="title")
    if content.get("box", BOXES[0]) not in BOXES:
        problem = f"{_shown(content['box'])} is no convention of boxes; choose {', '.join(BOXES)}"
        raise DataError(problem, field="box")


def _object(content: Mapping[str, Any], key: str, mend: str) -> dict[str, Any]:
    """A field that is an object, empty if it is missing."""
    value = content.get(key, {})
    if type(value) is not dict:
        raise DataError(f"{_shown(value)} is no object; {mend}", field=key)
    return value


def _check_labels(key: str, labels: Any, *, needed: bool) -> None:
    if type(labels) is not list or (needed and not labels):
        raise DataError(f"{_shown(labels)} is no list of labels; give at least one", field=key)
    if len(labels) > MOST_LABELS:
        raise DataError(f"{len(labels):,} labels; hoicli takes {MOST_LABELS:,}", field=key)
    seen: dict[str, int] = {}
    for at, label in enumerate(labels):
        if fault := label_fault(label):
            raise DataError(fault, field=f"{key}[{at}]")
        first = seen.setdefault(spelled(label), at)
        if first != at:
            raise DataError(f"{label!r} is there already, at {key}[{first}]; each label once", field=f"{key}[{at}]")


def label_fault(label: Any, *, signed: bool = True) -> str:
    """What is wrong with a label, "" for nothing. signed: a signature may have it."""
    if type(label) is not str:
        return f"{_shown(label)} is no label; labels are strings"
    if not label.strip() or label != label.strip():
        return f"{_shown(label)} is empty or has spaces around it; strip it, here and in the records"
    if len(label) > _LONGEST or not label.isprintable():
        return f"{_shown(label)} is too long or has control characters; give a name of at most {_LONGEST}"
    if signed and "|" in label:
        return f"{_shown(label)} has a |, which parts the settings of signatures; write it without"
    return ""


def _check_pairs(listed: Any, labels: _Labels) -> None:
    """The interactions; sets the labels' `pairs`."""
    second = "role" if labels.roles else "object"
    verbs, seconds = set(labels.verbs), {"", *labels.roles} if labels.roles else set(labels.objects)
    if len(verbs) * len(seconds) > MOST_PAIRS:
        problem = f"{len(labels.verbs):,} x {len(labels.objects):,} objects; hoicli takes {MOST_PAIRS:,} pairs"
        raise DataError(problem, field="verbs")
    if type(listed) is dict:
        for name, of_object in listed.items():
            if type(of_object) is not list:
                problem = f"{_shown(of_object)} is no list; give the object's verbs"
                raise DataError(problem, field=f"interactions.{name[:_LONGEST]}")
        listed = [[verb, name] for name, of_object in listed.items() for verb in of_object]
    if type(listed) is not list or not listed or len(listed) > MOST_CLASSES:
        count = f"{len(listed):,} of them" if type(listed) is list else _shown(listed)
        raise DataError(f"{count}; give 1 to {MOST_CLASSES:,} pairs of verb and {second}", field="interactions")
    by_number = not labels.roles and type(listed[0]) is list and bool(listed[0]) and type(listed[0][0]) is int
    kind = int if by_number else str
    for at, pair in enumerate(listed):
        field = f"interactions[{at}]"
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not kind or type(pair[1]) is not kind:
            problem = f"{_shown(pair)} is no pair; give [verb, {second}], all by name or all by number"
            raise DataError(problem, field=field)
        if by_number:
            for number, entries, what in ((pair[0], labels.verbs, "verb"), (pair[1], labels.objects, "object")):
                if not 0 <= int(number) < len(entries):
                    raise DataError(f"{what} {number}, but there are {len(entries)}, counted from 0", field=field)
            continue
        for name, known, what in ((pair[0], verbs, "verb"), (pair[1], seconds, second)):
            if name not in known:
                raise DataError(f"unknown {what} {_shown(name)}; list it in {what}s", field=field)
    labels.pairs = list(listed_pairs(listed, labels.verbs, labels.objects))
    if double := _first_double(labels.pairs):
        first, at = double
        problem = f"{' '.join(labels.pairs[at])} is interaction {first} already; drop it"
        raise DataError(problem, field=f"interactions[{at}]")


def _check_aliases(aliases: Mapping[str, Any], labels: _Labels) -> None:
    verbs, objects = set(labels.verbs), set(labels.objects)
    for alias, label in aliases.items():
        if fault := label_fault(alias, signed=False):
            raise DataError(fault, field="aliases")
        field = f"aliases.{alias}"
        kinds = [known for known in (verbs, objects) if type(label) is str and label in known]
        if not kinds:
            raise DataError(f"{_shown(label)} is no verb and no object; name one", field=field)
        if any(alias in known for known in kinds):
            raise DataError(f"is a label itself; drop the alias, or the label {alias!r}", field=field)


def _check_numbering(kind: str, how: Any, labels: _Labels) -> None:
    field = f"numbering.{kind[:_LONGEST]}"
    pairs = [list(pair) for pair in labels.pairs]
    known: dict[str, Sequence[Any]] = {"verbs": labels.verbs, "objects": labels.objects, "interactions": pairs}
    if kind not in known:
        raise DataError(f"nothing that is numbered; give {', '.join(known)}", field=field)
    entries = known[kind]
    if type(how) is not dict or not how or not (set(how) <= {"order", "base"} or set(how) == {"ids"}):
        problem = f'{_shown(how)}; give {{"order": ..., "base": ...}} or {{"ids": {{label: number}}}}'
        raise DataError(problem, field=field)
    if "ids" in how and kind == "interactions":
        _check_mapper(how["ids"], labels.pairs, f"{field}.ids")
        return
    if "ids" in how:
        given = how["ids"]
        if type(given) is not dict or sorted(given) != sorted(entries):
            raise DataError(f"must have each of the {kind} once, with its number", field=f"{field}.ids")
        if not all(map(_is_count, given.values())) or _first_double(list(given.values())):
            raise DataError("numbers are whole, 0 or more, each once; correct the others", field=f"{field}.ids")
        return
    order, base = how.get("order", "listed"), how.get("base", 0)
    if not _is_count(base):
        raise DataError(f"{_shown(base)} is no number to count from; give 0 or 1", field=f"{field}.base")
    if order in ("listed", "alphabetical"):
        return
    if type(order) is not list:
        problem = f"{_shown(order)}; give listed, alphabetical, or a list of all {kind}"
        raise DataError(problem, field=f"{field}.order")
    if sorted(map(str, order)) != sorted(map(str, entries)):
        raise DataError(f"is no permutation of the {len(entries)} {kind}; list each once", field=f"{field}.order")


def _check_mapper(given: Any, pairs: Sequence[tuple[str, str]], field: str) -> None:
    """The interactions by number, of all or of some."""
    if type(given) is not dict or not given:
        raise DataError(f'{_shown(given)}; give {{"0": [verb, object], ...}}', field=field)
    known, seen = set(pairs), dict[tuple[str, ...], str]()
    for number, pair in given.items():
        at = f"{field}.{number[:_LONGEST]}"
        if not re.fullmatch("0|[1-9][0-9]{0,8}", number):
            raise DataError("no number; the keys are the dump's numbers, whole, 0 or more", field=at)
        if type(pair) is not list or not all(type(name) is str for name in pair) or tuple(pair) not in known:
            raise DataError(f"{_shown(pair)} is none of `interactions`; give [verb, object] of one", field=at)
        if (first := seen.setdefault(tuple(pair), number)) != number:
            raise DataError(f"{_shown(pair)} has the number {first} already; each interaction once", field=at)


def _check_classes(field: str, name: str, classes: Any, ids: Mapping[tuple[str, str], int]) -> None:
    """A named set of classes."""
    if label_fault(name) or name in RESERVED:
        raise DataError(f"no name for classes; choose another than {', '.join(RESERVED)}", field=field)
    if type(classes) is not list:
        problem = f"{_shown(classes)} is no list of classes; give ids, or pairs of verb and object"
        raise DataError(problem, field=field)
    seen = set()
    for at, each in enumerate(classes):
        number = _number_of(each, ids)
        if number is None:
            problem = f"{_shown(each)} is none of `interactions`, of which there are {len(ids)}, counted from 0"
            raise DataError(problem, field=f"{field}[{at}]")
        if number in seen:
            raise DataError(f"{_shown(each)} is there twice; name each class once", field=f"{field}[{at}]")
        seen.add(number)


def _number_of(each: Any, ids: Mapping[tuple[str, str], int]) -> int | None:
    """The number of a class given by it or as a pair, None for no class."""
    if type(each) is int:
        return each if 0 <= each < len(ids) else None
    is_pair = type(each) is list and len(each) == 2 and all(type(name) is str for name in each)
    return ids.get((each[0], each[1])) if is_pair else None


def _check_groups(content: Mapping[str, Any], ids: Mapping[tuple[str, str], int]) -> None:
    """Groups divide the classes: each is in one."""
    group_of: dict[int | None, str] = {}
    groups: dict[str, list[Any]] = content.get("groups", {})
    for name, classes in groups.items():
        for each in classes:
            number = _number_of(each, ids)
            if group_of.setdefault(number, name) != name:
                problem = f"{_shown(each)} is in {group_of[number]!r}, too; groups divide the classes (else: subsets)"
                raise DataError(problem, field=f"groups.{name}")
    if groups and len(group_of) < len(ids):
        left = next(pair for pair, number in ids.items() if number not in group_of)
        raise DataError(f"{' '.join(left)} is in none; groups divide the classes (else: subsets)", field="groups")
    for name in content.get("subsets", {}):
        if name in groups:
            raise DataError("is a group, too; give it another name", field=f"subsets.{name}")


def _check_counts(content: Mapping[str, Any], classes: int) -> None:
    """Training counts, and the cuts between their groups."""
    counts, cuts = content.get("training_counts", []), content.get("cuts", {})
    if type(counts) is not list or (counts and len(counts) != classes) or not all(map(_is_count, counts)):
        problem = f"must have a count for each of the {classes} interactions, in their order"
        raise DataError(problem, field="training_counts")
    if "cuts" not in content:
        return
    if not counts or content.get("groups"):
        raise DataError("cut training_counts into groups: needs those, and no groups; drop it", field="cuts")
    limits = list(cuts.values()) if type(cuts) is dict else [0]
    named = type(cuts) is dict and cuts and not any(label_fault(name) or name in RESERVED for name in cuts)
    whole = bool(limits) and limits[-1] is None and all(map(_is_count, limits[:-1]))
    if not named or not whole or any(low >= high for low, high in pairwise(limits[:-1])):
        problem = f'{_shown(cuts)}; give ascending limits and null for the last: {{"rare": 10, "non_rare": null}}'
        raise DataError(problem, field="cuts")


def _is_count(value: Any) -> bool:
    """Whether a value is a whole number from 0 that 63 bits hold."""
    return type(value) is int and 0 <= value < 1 << 62


def _first_double(values: Sequence[Any]) -> tuple[int, int] | None:
    """The places of the first two equal values, None if all differ."""
    seen: dict[Any, int] = {}
    for at, value in enumerate(values):
        if value in seen:
            return seen[value], at
        seen[value] = at
    return None


def _shown(value: Any) -> str:
    """A decoded value as messages show it: JSON, at most 60 characters."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
