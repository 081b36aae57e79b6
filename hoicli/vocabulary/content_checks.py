"""Checks of what a dataset's file says, field by field (formats/dataset.schema.json)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import orjson

from hoicli.errors import DataError, did_you_mean
from hoicli.vocabulary.dataset_content import Pair, listed_pairs, objects_of
from hoicli.vocabulary.labels import BOXES, normalise_spelling

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


def check(content: Any, place: str) -> None:
    """Raise `DataError` at `place` for the first field of a dataset's content that cannot be used."""
    try:
        _check_content(content)
    except DataError as error:
        raise error.add_place(place) from None


def _error(field: str, problem: str) -> DataError:
    """Return the error about a field of a dataset's content, to which `check` adds the file."""
    return DataError(problem, field=field)


def _check_content(content: Any) -> None:
    """Check all fields of a dataset's content. The order matters: each check relies on those before it."""
    _check_fields(content)
    name, box_convention = content["name"], content.get("box", BOXES[0])
    if type(name) is not str or not _NAME.fullmatch(name):
        fix = "give letters, digits, _ . and - (at most 64), as it stands in signatures"
        raise _error("name", f"{_value_text(name)} is no name; {fix}")
    if box_convention not in BOXES:
        raise _error("box", f"{_value_text(box_convention)} is no convention of boxes; choose {', '.join(BOXES)}")
    for keys, required_type, problem in _KINDS:  # the fields that must be texts, lists and the like
        for key in keys:
            if key in content and type(content[key]) is not required_type:
                raise _error(key, f"{_value_text(content[key])} {problem}")
    if not content.get("title", "").isprintable():
        raise _error("title", "has control characters; give one line of text")
    _check_label_lists(content)
    verbs, objects = content["verbs"], objects_of(content)
    pairs = _check_pairs(content["interactions"], verbs, objects, content.get("roles", []))
    idle_verb = content.get("no_interaction")
    if idle_verb is not None and (type(idle_verb) is not str or idle_verb not in verbs):
        raise _error("no_interaction", f"{_value_text(idle_verb)} is no verb of the dataset; name one, or leave it out")
    _check_aliases(content.get("aliases", {}), verbs, objects)
    for kind, rule in content.get("numbering", {}).items():
        _check_numbering(kind, rule, {"verbs": verbs, "objects": objects, "interactions": pairs})
    for alias, split in content.get("split_aliases", {}).items():
        if type(split) is not str or split not in content.get("splits", {}):
            raise _error(f"split_aliases.{alias[:_LONGEST]}", f"{_value_text(split)} is none of `splits`; name one")
    images = content.get("test_images", [])
    are_names = type(images) is list and all(type(name) is str and name.strip() for name in images)
    if not are_names or _first_double(images):
        raise _error("test_images", "must be a list of image ids, each once")
    _check_class_sets(content, {pair: number for number, pair in enumerate(pairs)})
    _check_counts(content, len(pairs))


def _check_fields(content: Any) -> None:
    """Raise the error about a dataset's content that is no object, has an unknown field, or lacks a needed one."""
    if type(content) is not dict:
        raise _error("", f"{_value_text(content)} is no object with the fields of a dataset; {MAKE}")
    if "boxes" in content and "hois" in content:
        raise _error("", f"a record, not a dataset; {MAKE}")
    for key in content:
        if key not in FIELDS:
            raise _error(key[:_LONGEST], f"no field of a dataset; {did_you_mean(key, FIELDS, 'drop it')}")
    for key in ("name", "verbs", "objects", "interactions"):
        if key not in content:
            raise _error(key, f"missing; {MAKE}")


def _check_label_lists(content: Mapping[str, Any]) -> None:
    """Check the lists of labels in a dataset's content: subjects, verbs, objects and roles."""
    listed = content["objects"]
    if type(listed) is dict and not all(type(noun) is str and _NOUN.fullmatch(noun) for noun in listed.values()):
        raise _error("objects", "an object of labels needs the WordNet 3.0 noun of each, as n02084071")
    lists = {**content, "objects": list(listed) if type(listed) is dict else listed}
    for key in ("subjects", "verbs", "objects", "roles"):
        if key in lists and (key, lists[key]) != ("objects", "coco"):  # "coco" stands for COCO's 80 objects
            _check_labels(key, lists[key], needed=key != "roles")


_KINDS: tuple[tuple[tuple[str, ...], type, str], ...] = (
    (("title", "about", "source"), str, "is no text; give a string, or leave it out"),
    (("aliases",), dict, "is no object; give the other spelling and the label of each"),
    (("numbering",), dict, "is no object; say how verbs, objects, interactions are numbered"),
    (("groups", "subsets", "splits"), dict, "is no object; give lists of classes by name"),
    (("split_aliases",), dict, "is no object; give the name of a split for each other name"),
)
"""Fields whose values must be of a kind, and what is said of any other value."""


def _check_labels(key: str, labels: Any, *, needed: bool) -> None:
    """Check the list of labels in a field (`key`): each is usable, and no two are spellings of the same."""
    if type(labels) is not list or (needed and not labels):
        raise _error(key, f"{_value_text(labels)} is no list of labels; give at least one")
    if len(labels) > MOST_LABELS:
        raise _error(key, f"{len(labels):,} labels; hoicli takes {MOST_LABELS:,}")
    first_places: dict[str, int] = {}
    for index, label in enumerate(labels):
        if fault := label_fault(label):
            raise _error(f"{key}[{index}]", fault)
        first = first_places.setdefault(normalise_spelling(label), index)
        if first != index:
            raise _error(f"{key}[{index}]", f"{label!r} is there already, at {key}[{first}]; each label once")


def label_fault(label: Any, *, signed: bool = True) -> str:
    """Return what is wrong with a label, "" if nothing is. signed: whether signatures have it, so that | is wrong."""
    if type(label) is not str:
        return f"{_value_text(label)} is no label; labels are strings"
    if not label.strip() or label != label.strip():
        return f"{_value_text(label)} is empty or has spaces around it; strip it, here and in the records"
    if len(label) > _LONGEST or not label.isprintable():
        return f"{_value_text(label)} is too long or has control characters; give a name of at most {_LONGEST}"
    if signed and "|" in label:
        return f"{_value_text(label)} has a |, which parts the settings of signatures; write it without"
    return ""


def _check_pairs(listed: Any, verbs: list[str], objects: list[str], roles: list[str]) -> tuple[Pair, ...]:
    """Check the field `interactions`, and return it as a tuple of (verb, object), or with roles of (verb, role)."""
    # with roles (V-COCO), "" is the action itself, without a role
    second_name, second_labels = ("role", ["", *roles]) if roles else ("object", objects)
    if len(verbs) * len(second_labels) > MOST_PAIRS:
        raise _error("verbs", f"{len(verbs):,} x {len(objects):,} objects; hoicli takes {MOST_PAIRS:,} pairs")
    if type(listed) is dict:
        pairs_by_name: list[list[Any]] = []
        for name, object_verbs in listed.items():
            if type(object_verbs) is not list:
                problem = f"{_value_text(object_verbs)} is no list; give the object's verbs"
                raise _error(f"interactions.{name[:_LONGEST]}", problem)
            pairs_by_name += [[verb, name] for verb in object_verbs]
        listed = pairs_by_name
    if type(listed) is not list or not listed or len(listed) > MOST_CLASSES:
        count = f"{len(listed):,} of them" if type(listed) is list else _value_text(listed)
        raise _error("interactions", f"{count}; give 1 to {MOST_CLASSES:,} pairs of verb and {second_name}")
    by_number = not roles and type(listed[0]) is list and bool(listed[0]) and type(listed[0][0]) is int
    entry_type = int if by_number else str
    # What the two entries of a pair may be: (kind, how many there are, the names or numbers of all).
    allowed_entries: list[tuple[str, int, Collection[Any]]] = [
        (kind, len(names), range(len(names)) if by_number else set(names))
        for kind, names in (("verb", verbs), (second_name, second_labels))
    ]
    for index, pair in enumerate(listed):
        field = f"interactions[{index}]"
        if type(pair) is not list or [type(entry) for entry in pair] != [entry_type, entry_type]:
            fix = f"give [verb, {second_name}], all by name or all by number"
            raise _error(field, f"{_value_text(pair)} is no pair; {fix}")
        for entry, (kind, label_count, allowed) in zip(pair, allowed_entries, strict=True):
            if entry not in allowed:
                unknown_number = f"{kind} {entry}, but there are {label_count}, counted from 0"
                unknown_name = f"unknown {kind} {_value_text(entry)}; list it in {kind}s"
                raise _error(field, unknown_number if by_number else unknown_name)
    pairs = listed_pairs(listed, verbs, objects)
    if double := _first_double(pairs):
        first, index = double
        raise _error(f"interactions[{index}]", f"{' '.join(pairs[index])} is interaction {first} already; drop it")
    return pairs


def _check_aliases(aliases: Mapping[str, Any], *labels: list[str]) -> None:
    """Check the field `aliases`: each is a spelling of a verb or an object (`labels`), and no label itself."""
    label_sets = list(map(set, labels))
    for alias, label in aliases.items():
        if fault := label_fault(alias, signed=False):
            raise _error("aliases", fault)
        matching_sets = [label_set for label_set in label_sets if type(label) is str and label in label_set]
        if not matching_sets:
            raise _error(f"aliases.{alias}", f"{_value_text(label)} is no verb and no object; name one")
        if any(alias in label_set for label_set in matching_sets):
            raise _error(f"aliases.{alias}", f"is a label itself; drop the alias, or the label {alias!r}")


def _check_numbering(kind: str, rule: Any, names_by_kind: Mapping[str, Sequence[Any]]) -> None:
    """Check an entry of the field `numbering`, as `dataset_content.numbers` reads it. kind: "verbs" or the like."""
    field = f"numbering.{kind[:_LONGEST]}"
    if kind not in names_by_kind:
        raise _error(field, f"nothing that is numbered; give {', '.join(names_by_kind)}")
    entries = names_by_kind[kind]
    if type(rule) is not dict or not rule or not (set(rule) <= {"order", "base"} or set(rule) == {"ids"}):
        raise _error(field, f'{_value_text(rule)}; give {{"order": ..., "base": ...}} or {{"ids": {{label: number}}}}')
    if "ids" in rule and kind == "interactions":
        _check_interaction_numbers(rule["ids"], entries, f"{field}.ids")
        return
    if "ids" in rule:
        ids = rule["ids"]
        if type(ids) is not dict or sorted(ids) != sorted(entries):
            raise _error(f"{field}.ids", f"must have each of the {kind} once, with its number")
        if not all(map(_is_count, ids.values())) or _first_double(list(ids.values())):
            raise _error(f"{field}.ids", "numbers are whole, 0 or more, each once; correct the others")
        return
    order, base = rule.get("order", "listed"), rule.get("base", 0)
    if not _is_count(base):
        raise _error(f"{field}.base", f"{_value_text(base)} is no number to count from; give 0 or 1")
    if order in ("listed", "alphabetical"):
        return
    if type(order) is not list:
        raise _error(f"{field}.order", f"{_value_text(order)}; give listed, alphabetical, or a list of all {kind}")
    # compared as text: the order may hold anything, and a pair is a tuple among the entries, but a list in JSON
    if sorted(map(str, order)) != sorted(str(list(each) if type(each) is tuple else each) for each in entries):
        raise _error(f"{field}.order", f"is no permutation of the {len(entries)} {kind}; list each once")


def _check_interaction_numbers(content: Any, pairs: Sequence[Pair], field: str) -> None:
    """Check the numbers of interactions in `numbering`: {number as text: [verb, object]}, each at most once."""
    if type(content) is not dict or not content:
        raise _error(field, f'{_value_text(content)}; give {{"0": [verb, object], ...}}')
    known_pairs, first_numbers = set(pairs), dict[tuple[str, ...], str]()
    for number, pair in content.items():
        number_field = f"{field}.{number[:_LONGEST]}"
        if not re.fullmatch("0|[1-9][0-9]{0,8}", number):
            raise _error(number_field, "no number; the keys are the dump's numbers, whole, 0 or more")
        if type(pair) is not list or not all(type(name) is str for name in pair) or tuple(pair) not in known_pairs:
            raise _error(number_field, f"{_value_text(pair)} is none of `interactions`; give [verb, object] of one")
        if (first := first_numbers.setdefault(tuple(pair), number)) != number:
            raise _error(number_field, f"{_value_text(pair)} has the number {first} already; each interaction once")


def _check_class_sets(content: Mapping[str, Any], ids: Mapping[Pair, int]) -> None:
    """Check the named sets of interactions in `groups` (each in one of them), `subsets` and `splits`."""
    group_of: dict[int, str] = {}  # the first group that each interaction is in
    groups = content.get("groups", {})
    for name, classes in groups.items():
        field = f"groups.{name[:_LONGEST]}"
        _check_class_set(field, name, classes, ids)
        for member in classes:
            first_group = group_of.setdefault(_class_number(member, ids), name)
            if first_group != name:
                problem = f"is in {first_group!r}, too; groups divide the classes (else: subsets)"
                raise _error(field, f"{_value_text(member)} {problem}")
    for key in ("subsets", "splits"):
        for name, classes in content.get(key, {}).items():
            _check_class_set(f"{key}.{name[:_LONGEST]}", name, classes, ids)
    if groups and len(group_of) < len(ids):
        ungrouped = next(pair for pair, number in ids.items() if number not in group_of)
        raise _error("groups", f"{' '.join(ungrouped)} is in none; groups divide the classes (else: subsets)")
    for name in content.get("subsets", {}):
        if name in groups:
            raise _error(f"subsets.{name}", "is a group, too; give it another name")


def _class_number(member: Any, ids: Mapping[Pair, int]) -> int:
    """Return the number of an interaction that a set names as a number or as [verb, object]; -1 if there is none."""
    is_pair = type(member) is list and len(member) == 2 and all(type(part) is str for part in member)
    number = ids.get((member[0], member[1])) if is_pair else member
    return number if type(number) is int and 0 <= number < len(ids) else -1


def _check_class_set(field: str, name: str, classes: Any, ids: Mapping[Pair, int]) -> None:
    """Check a named set of interactions, each as a number or as [verb, object]. field: where the set is."""
    if label_fault(name) or name in RESERVED:
        raise _error(field, f"no name for classes; choose another than {', '.join(RESERVED)}")
    if type(classes) is not list:
        raise _error(field, f"{_value_text(classes)} is no list of classes; give ids, or pairs of verb and object")
    numbers = set[int]()
    for index, member in enumerate(classes):
        number = _class_number(member, ids)
        if number < 0:  # -1: it is no interaction
            interactions_text = f"`interactions`, of which there are {len(ids)}, counted from 0"
            raise _error(f"{field}[{index}]", f"{_value_text(member)} is none of {interactions_text}")
        if number in numbers:
            raise _error(f"{field}[{index}]", f"{_value_text(member)} is there twice; name each class once")
        numbers.add(number)


def _check_counts(content: Mapping[str, Any], classes: int) -> None:
    """Check the fields `training_counts` and `cuts`, the limits that make groups of these counts."""
    counts, cuts = content.get("training_counts", []), content.get("cuts", {})
    if type(counts) is not list or (counts and len(counts) != classes) or not all(map(_is_count, counts)):
        raise _error("training_counts", f"must have a count for each of the {classes} interactions, in their order")
    if "cuts" not in content:
        return
    if not counts or content.get("groups"):
        raise _error("cuts", "cut training_counts into groups: needs those, and no groups; drop it")
    limits = list(cuts.values()) if type(cuts) is dict else [0]  # [0] is refused below, as its last is not null
    names_fit = type(cuts) is dict and cuts and not any(label_fault(name) or name in RESERVED for name in cuts)
    limits_fit = bool(limits) and limits[-1] is None and all(map(_is_count, limits[:-1]))
    if not names_fit or not limits_fit or any(low >= high for low, high in pairwise(limits[:-1])):
        example = '{"rare": 10, "non_rare": null}'
        raise _error("cuts", f"{_value_text(cuts)}; give ascending limits and null for the last: {example}")


def _is_count(value: Any) -> bool:
    """Return whether a JSON value is a whole number that can count something: 0 or more, and below 2 ** 62."""
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
    """Return a JSON value as messages show it: its text in JSON, cut to 60 characters."""
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
