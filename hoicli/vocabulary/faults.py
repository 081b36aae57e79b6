"""What is wrong in the content of a dataset's file: the field, the fault, and what to do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

import orjson

from hoicli.errors import DataError
from hoicli.vocabulary.contents import coco_objects, listed_pairs
from hoicli.vocabulary.labels import BOXES, SUBJECT, nearest, spelled

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
_TEMPLATE = re.compile(r"[^{}]*\{:0?\d{0,2}d\}[^{}]*")  # all that goes to str.format
_NOUN = re.compile(r"n\d{8}")
_LONGEST = 200
_MOST_IMAGES = 1_000_000
"""Image ids that a template may stand for."""

MAKE = "hoicli vocab --from GT.jsonl -o FILE.json makes one"
"""What to do where a file is no dataset, for messages."""


def check(content: Any, place: str) -> None:
    """Raises `DataError` at `place` for the first field of a dataset's content that cannot be used or contradicts
    another."""
    for field, problem in problems(content):
        raise DataError(problem, place=place, field=field)


def problems(content: Any) -> Iterator[tuple[str, str]]:
    """(field, what is wrong and what to do) of a dataset's content, the first fault of each field; a field is judged
    only if those that it refers to are sound."""
    if type(content) is not dict:
        yield "", f"{_shown(content)} is no object with the fields of a dataset; {MAKE}"
        return
    if "boxes" in content and "hois" in content:
        yield "", f"a record, not a dataset; {MAKE}"
        return
    for key in content:
        if key not in FIELDS:
            near = get_close_matches(key, FIELDS, n=1)
            yield key[:_LONGEST], f"no field of a dataset; {f'did you mean {near[0]!r}?' if near else 'drop it'}"
            return
    basic = list(_basic_problems(content))
    yield from basic
    if not basic:
        labels = _Labels(content)
        yield from _pair_problems(content, labels)
        yield from _later_problems(content, labels)


class _Labels:
    """The labels of a dataset whose lists of labels are sound."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        named = content["objects"]
        self.verbs: list[str] = content["verbs"]
        self.subjects: list[str] = content.get("subjects", [SUBJECT])
        self.objects = list(coco_objects() if named == "coco" else named)
        known = set(self.objects)
        self.objects += [label for label in self.subjects if label not in known]
        self.roles: list[str] = content.get("roles", [])
        self.pairs: list[tuple[str, str]] = []


def _basic_problems(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Problems of the name, the texts and the lists of labels."""
    for key in ("name", "verbs", "objects", "interactions"):
        if key not in content:
            yield key, f"missing; {MAKE}"
            return
    if type(content["name"]) is not str or not _NAME.fullmatch(content["name"]):
        shown = _shown(content["name"])
        yield "name", f"{shown} is no name; give letters, digits, _ . and - (at most 64), as it stands in signatures"
    for key in ("title", "about", "source"):
        if key in content and type(content[key]) is not str:
            yield key, f"{_shown(content[key])} is no text; give a string, or leave it out"
    if content.get("title", "") and not str(content["title"]).isprintable():
        yield "title", "has control characters; give one line of text"
    if content.get("box", BOXES[0]) not in BOXES:
        yield "box", f"{_shown(content['box'])} is no convention of boxes; choose {', '.join(BOXES)}"
    for key in ("subjects", "verbs", "objects", "roles"):
        value = content.get(key)
        if key not in content or (key == "objects" and value == "coco"):
            continue
        if key == "objects" and type(value) is dict:
            if not all(type(noun) is str and _NOUN.fullmatch(noun) for noun in value.values()):
                yield key, "an object of labels needs the WordNet 3.0 noun of each, as n02084071"
                return
            value = list(value)
        yield from _label_problems(key, value, needed=key != "roles")


def _label_problems(key: str, labels: Any, *, needed: bool) -> Iterator[tuple[str, str]]:
    """Problems of a list of labels."""
    if type(labels) is not list or (needed and not labels):
        yield key, f"{_shown(labels)} is no list of labels; give at least one"
        return
    if len(labels) > MOST_LABELS:
        yield key, f"{len(labels):,} labels; hoicli takes {MOST_LABELS:,}"
        return
    seen: dict[str, int] = {}
    for at, label in enumerate(labels):
        if fault := label_fault(label):
            yield f"{key}[{at}]", fault
            return
        first = seen.setdefault(spelled(label), at)
        if first != at:
            yield f"{key}[{at}]", f"{label!r} is there already, at {key}[{first}]; each label once"
            return


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


def _pair_problems(content: Mapping[str, Any], labels: _Labels) -> Iterator[tuple[str, str]]:
    """Problems of `interactions`; sets the labels' `pairs` if there are none."""
    listed = content["interactions"]
    second = "role" if labels.roles else "object"
    verbs, seconds = set(labels.verbs), {"", *labels.roles} if labels.roles else set(labels.objects)
    if len(verbs) * len(seconds) > MOST_PAIRS:
        yield "verbs", f"{len(labels.verbs):,} x {len(labels.objects):,} objects; hoicli takes {MOST_PAIRS:,} pairs"
        return
    if type(listed) is dict:
        for name, of_object in listed.items():
            if type(of_object) is not list:
                yield f"interactions.{name[:_LONGEST]}", f"{_shown(of_object)} is no list; give the object's verbs"
                return
        listed = [[verb, name] for name, of_object in listed.items() for verb in of_object]
    if type(listed) is not list or not listed or len(listed) > MOST_CLASSES:
        count = f"{len(listed):,} of them" if type(listed) is list else _shown(listed)
        yield "interactions", f"{count}; give 1 to {MOST_CLASSES:,} pairs of verb and {second}"
        return
    by_number = not labels.roles and type(listed[0]) is list and bool(listed[0]) and type(listed[0][0]) is int
    kind = int if by_number else str
    for at, pair in enumerate(listed):
        field = f"interactions[{at}]"
        if type(pair) is not list or len(pair) != 2 or type(pair[0]) is not kind or type(pair[1]) is not kind:
            yield field, f"{_shown(pair)} is no pair; give [verb, {second}], all by name or all by number"
            return
        if by_number:
            for number, entries, what in ((pair[0], labels.verbs, "verb"), (pair[1], labels.objects, "object")):
                if not 0 <= int(number) < len(entries):
                    yield field, f"{what} {number}, but there are {len(entries)}, counted from 0"
                    return
            continue
        for name, known, what in ((pair[0], verbs, "verb"), (pair[1], seconds, second)):
            if name not in known:
                yield field, f"unknown {what} {_shown(name)}; {_near(name, known, f'list it in {what}s')}"
                return
    pairs = listed_pairs(listed, labels.verbs, labels.objects)
    if double := _first_double(pairs):
        yield f"interactions[{double[1]}]", f"{' '.join(pairs[double[1]])} is interaction {double[0]} already; drop it"
        return
    labels.pairs = list(pairs)


def _later_problems(content: Mapping[str, Any], labels: _Labels) -> Iterator[tuple[str, str]]:
    """Problems of the fields that refer to labels or classes."""
    nothing = content.get("no_interaction")
    if nothing is not None and (type(nothing) is not str or nothing not in labels.verbs):
        yield "no_interaction", f"{_shown(nothing)} is no verb of the dataset; name one, or leave it out"
    yield from _alias_problems(content.get("aliases", {}), labels)
    if type(content.get("numbering", {})) is not dict:
        shown = _shown(content["numbering"])
        yield "numbering", f"{shown} is no object; say how verbs, objects, interactions are numbered"
    for kind, how in _named(content, "numbering"):
        yield from _numbering_problems(kind, how, labels)
    yield from _split_alias_problems(content)
    yield from _image_problems(content.get("test_images", []))
    if not labels.pairs:
        return
    ids = {pair: number for number, pair in enumerate(labels.pairs)}
    for key in ("groups", "subsets", "splits"):
        if type(content.get(key, {})) is not dict:
            yield key, f"{_shown(content[key])} is no object of lists of classes by name"
            continue
        for name, classes in _named(content, key):
            yield from _class_problems(f"{key}.{name[:_LONGEST]}", name, classes, ids)
    yield from _group_problems(content, ids)
    yield from _count_problems(content, len(ids))


def _named(content: Mapping[str, Any], key: str) -> list[tuple[str, Any]]:
    """The items of a field that is an object; nothing if it is missing or none."""
    value = content.get(key)
    return list(value.items()) if type(value) is dict else []


def _alias_problems(aliases: Any, labels: _Labels) -> Iterator[tuple[str, str]]:
    if type(aliases) is not dict:
        yield "aliases", f"{_shown(aliases)} is no object; give the other spelling and the label of each"
        return
    verbs, objects = set(labels.verbs), set(labels.objects)
    for alias, label in aliases.items():
        field = f"aliases.{alias[:_LONGEST]}"
        if fault := label_fault(alias, signed=False):
            yield "aliases", fault
            return
        kinds = [known for known in (verbs, objects) if type(label) is str and label in known]
        if not kinds:
            yield field, f"{_shown(label)} is no verb and no object; {_near(label, verbs | objects, 'name one')}"
            return
        if any(alias in known for known in kinds):
            yield field, f"is a label itself; drop the alias, or the label {alias!r}"
            return


def _numbering_problems(kind: str, how: Any, labels: _Labels) -> Iterator[tuple[str, str]]:
    field = f"numbering.{kind[:_LONGEST]}"
    pairs = [list(pair) for pair in labels.pairs]
    known: dict[str, Sequence[Any]] = {"verbs": labels.verbs, "objects": labels.objects, "interactions": pairs}
    if kind not in known:
        yield field, f"nothing that is numbered; give {', '.join(known)}"
        return
    entries = known[kind]
    if type(how) is not dict or not how or not (set(how) <= {"order", "base"} or set(how) == {"ids"}):
        yield field, f'{_shown(how)}; give {{"order": ..., "base": ...}} or {{"ids": {{label: number}}}}'
    elif "ids" in how:
        given = how["ids"]
        if kind == "interactions" or type(given) is not dict or sorted(given) != sorted(entries):
            missing = sorted(set(entries) - set(given))[:1] if type(given) is dict and kind != "interactions" else []
            what = f" ({missing[0]!r} has none)" if missing else ""
            yield f"{field}.ids", f"must have each of the {kind} once, with its number{what}"
        elif not all(_is_count(number) for number in given.values()):
            yield f"{field}.ids", "numbers are whole, 0 or more; correct the others"
        elif double := _first_double(list(given.values())):
            names = [list(given)[at] for at in double]
            yield f"{field}.ids", f"{names[0]!r} and {names[1]!r} have one number; give each its own"
    else:
        order, base = how.get("order", "listed"), how.get("base", 0)
        if not _is_count(base):
            yield f"{field}.base", f"{_shown(base)} is no number to count from; give 0 or 1"
        if order in ("listed", "alphabetical"):
            return
        if type(order) is not list:
            yield f"{field}.order", f"{_shown(order)}; give listed, alphabetical, or a list of all {kind}"
            return
        keys, known_keys = [str(entry) for entry in order], {str(entry) for entry in entries}
        if double := _first_double(keys):
            yield f"{field}.order", f"{_shown(order[double[1]])} is there twice; a permutation has each once"
        elif set(keys) != known_keys:
            odd = next((entry for key, entry in zip(keys, order, strict=True) if key not in known_keys), None)
            what = f"{len(order)} of {len(entries)}" if odd is None else f"{_shown(odd)} is none of them"
            yield f"{field}.order", f"is no permutation of the {len(entries)} {kind} ({what}); list each once"


def _class_problems(
    field: str, name: str, classes: Any, ids: Mapping[tuple[str, str], int]
) -> Iterator[tuple[str, str]]:
    """Problems of a named set of classes."""
    if label_fault(name) or name in RESERVED:
        yield field, f"no name for classes; choose another than {', '.join(RESERVED)}"
        return
    if type(classes) is not list:
        yield field, f"{_shown(classes)} is no list of classes; give ids, or pairs of verb and object"
        return
    seen = set()
    for at, each in enumerate(classes):
        number = _number_of(each, ids)
        if number is None:
            text = f"there are {len(ids)} interactions, counted from 0" if type(each) is int else "list it there"
            yield f"{field}[{at}]", f"{_shown(each)} is none of `interactions`; {text}"
            return
        if number in seen:
            yield f"{field}[{at}]", f"{_shown(each)} is there twice; name each class once"
            return
        seen.add(number)


def _number_of(each: Any, ids: Mapping[tuple[str, str], int]) -> int | None:
    """The number of a class given by it or as a pair, None for no class."""
    if type(each) is int:
        return each if 0 <= each < len(ids) else None
    is_pair = type(each) is list and len(each) == 2 and all(type(name) is str for name in each)
    return ids.get((each[0], each[1])) if is_pair else None


def _group_problems(content: Mapping[str, Any], ids: Mapping[tuple[str, str], int]) -> Iterator[tuple[str, str]]:
    """Whether groups divide the classes: each in one. (Classes that are wrong are `_class_problems`'.)"""
    group_of: dict[int, str] = {}
    groups = _named(content, "groups")
    for name, classes in groups:
        for each in classes if type(classes) is list else ():
            number = _number_of(each, ids)
            if number is not None and group_of.setdefault(number, name) != name:
                shown = f"{_shown(each)} is in {group_of[number]!r}, too"
                yield f"groups.{name[:_LONGEST]}", f"{shown}; groups divide the classes (else: subsets)"
                return
    if groups and len(group_of) < len(ids):
        left = next(pair for pair, number in ids.items() if number not in group_of)
        yield "groups", f"{' '.join(left)} is in none; groups divide the classes (else: subsets)"
    for name, _ in _named(content, "subsets"):
        if name in dict(groups):
            yield f"subsets.{name[:_LONGEST]}", "is a group, too; give it another name"


def _count_problems(content: Mapping[str, Any], classes: int) -> Iterator[tuple[str, str]]:
    """Problems of training counts and of the cuts between their groups."""
    counts, cuts = content.get("training_counts", []), content.get("cuts", {})
    if type(counts) is not list or (counts and len(counts) != classes) or not all(map(_is_count, counts)):
        yield "training_counts", f"must have a count for each of the {classes} interactions, in their order"
    if "cuts" not in content:
        return
    if not counts or content.get("groups"):
        yield "cuts", "cut training_counts into groups: needs those, and no groups; drop it"
        return
    limits = list(cuts.values()) if type(cuts) is dict else [0]
    named = type(cuts) is dict and cuts and not any(label_fault(name) or name in RESERVED for name in cuts)
    whole = bool(limits) and limits[-1] is None and all(map(_is_count, limits[:-1]))
    if not named or not whole or any(low >= high for low, high in pairwise(limits[:-1])):
        yield "cuts", f'{_shown(cuts)}; give ascending limits and null for the last: {{"rare": 10, "non_rare": null}}'


def _split_alias_problems(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    aliases, splits = content.get("split_aliases", {}), content.get("splits", {})
    if type(aliases) is not dict or not all(type(name) is str for name in aliases.values()):
        yield "split_aliases", "must give the name of a split for each other name"
        return
    for alias, split in aliases.items():
        if type(splits) is dict and split not in splits:
            yield f"split_aliases.{alias[:_LONGEST]}", f"{_shown(split)} is none of `splits`; name one"
            return


def _image_problems(images: Any) -> Iterator[tuple[str, str]]:
    if type(images) is list:
        if not all(type(name) is str and name.strip() for name in images) or _first_double(images):
            yield "test_images", "must be a list of image ids, each once"
        return
    given: dict[str, Any] = images if type(images) is dict else {}
    template, missing = given.get("template", ""), given.get("missing", [])
    first, last = given.get("first", -1), given.get("last", -1)
    sound = (
        set(given) <= {"template", "first", "last", "missing"}
        and _is_count(first)
        and _is_count(last)
        and 0 <= last - first < _MOST_IMAGES
        and not label_fault(template, signed=False)
        and _TEMPLATE.fullmatch(template)
        and type(missing) is list
        and all(map(_is_count, missing))
    )
    if not sound:
        text = 'must be a list of image ids, or {"template": "test_{:06d}", "first": 1, "last": 9, "missing": []}'
        yield "test_images", text


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


def _near(name: Any, known: Collection[str], otherwise: str) -> str:
    near = nearest(name, known) if type(name) is str else []
    return f"did you mean {near[0]!r}?" if near else otherwise


def _shown(value: Any) -> str:
    """A decoded value as messages show it: JSON, at most 60 characters."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
