"""The content of a dataset's file (formats/dataset.schema.json), and the vocabulary that it describes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

from hoicli.vocabulary.labels import BOXES, SUBJECT, Vocabulary


def _read(file_name: str) -> dict[str, Any]:
    """Return the parsed content of a JSON file that lies in this package, such as hico.json."""
    data: dict[str, Any] = json.loads(Path(__file__).with_name(file_name).read_bytes())
    return data


@cache
def coco_objects() -> Mapping[str, int]:
    """Return COCO's 80 object names in COCO order, each with its category id (1-90 with gaps)."""
    ids: dict[str, int] = _read("coco.json")["ids"]
    return ids


def shipped_content(dataset: str) -> dict[str, Any]:
    """Return the content of a shipped dataset's file. A field `like` names the dataset that has the missing fields, and
    `test_images` may be a template with numbers of images."""
    content = _read(f"{dataset}.json")
    if "like" in content:
        return {**shipped_content(content.pop("like")), **content}
    images = content.get("test_images", [])
    if isinstance(images, dict):
        numbered = set(range(images["first"], images["last"] + 1)).difference(images["missing"])
        content["test_images"] = [images["template"].format(number) for number in sorted(numbered)]
    return content


NO_MEANING = ("about", "source", "title")
"""Fields of a dataset's file that change no number."""


def content_digest(content: Mapping[str, Any]) -> str:
    """Return eight hexadecimal digits of the SHA-256 of a dataset's content, without the fields of NO_MEANING."""
    from hashlib import sha256

    meaning = {key: content[key] for key in sorted(content) if key not in NO_MEANING}
    return sha256(json.dumps(meaning, separators=(",", ":")).encode()).hexdigest()[:8]


def vocabulary_of(content: Mapping[str, Any]) -> Vocabulary:
    """Return the vocabulary that a dataset's content, which `content_checks.check` accepts, describes."""
    verbs = content["verbs"]
    object_field = content["objects"]  # "coco", a list of names, or a mapping of names to noun ids
    objects = objects_of(content)
    pairs = listed_pairs(content["interactions"], verbs, objects)
    ids = {pair: number for number, pair in enumerate(pairs)}
    groups, subsets, unseen = (_class_sets(content.get(key, {}), ids) for key in ("groups", "subsets", "splits"))
    counts = tuple(content.get("training_counts", ()))
    if counts and not groups:  # the groups are then those of rare and frequent classes
        groups = frequency_groups(counts, content.get("cuts", CUTS))
    roles = tuple(content.get("roles", ()))
    return Vocabulary(
        name=content["name"],
        verbs=tuple(verbs),
        objects=tuple(objects),
        interactions=pairs,
        groups=groups,
        subsets=subsets,
        unseen=unseen,
        split_aliases=content.get("split_aliases", {}),
        coco_ids=coco_objects() if object_field == "coco" else {},
        noun_ids=object_field if isinstance(object_field, dict) else {},
        no_interaction=content.get("no_interaction"),
        roles=roles,
        test_images=tuple(content.get("test_images", ())),
        subjects=tuple(content.get("subjects", (SUBJECT,))),
        aliases=content.get("aliases", {}),
        numbering={
            kind: numbers(rule, {"verbs": verbs, "objects": objects, "interactions": pairs}[kind])
            for kind, rule in content.get("numbering", {}).items()
        },
        box=content.get("box", BOXES[0]),
        training_counts=counts,
        title=content.get("title") or content["name"],
    )


def _class_sets(listed: Mapping[str, Sequence[Any]], ids: Mapping[Pair, int]) -> dict[str, frozenset[int]]:
    """Return the ids of the interactions in each named set. listed: members, as ids or as pairs of labels."""
    sets: dict[str, frozenset[int]] = {}
    for name, classes in listed.items():
        sets[name] = frozenset(member if isinstance(member, int) else ids[member[0], member[1]] for member in classes)
    return sets


def objects_of(content: Mapping[str, Any]) -> list[str]:
    """Return all object labels of a dataset: those in the field `objects` ("coco": COCO's), and other subjects."""
    object_field = content["objects"]
    objects = list(coco_objects() if object_field == "coco" else object_field)
    known_objects = set(objects)
    return objects + [label for label in content.get("subjects", (SUBJECT,)) if label not in known_objects]


Pair = tuple[str, str]
"""A verb and an object, or a role."""


def listed_pairs(listed: Any, verbs: Sequence[str], objects: Sequence[str]) -> tuple[Pair, ...]:
    """Return the interactions of a dataset as (verb, object), or (verb, role). listed: the field `interactions` of its
    file: pairs by name, pairs of positions in `verbs` and `objects`, or a dict of the verbs of each object."""
    if isinstance(listed, dict):
        pairs: list[Pair] = []
        for name, object_verbs in listed.items():
            pairs += [(verb, name) for verb in object_verbs]
        return tuple(pairs)
    if isinstance(listed[0][0], int):
        return tuple((verbs[verb], objects[object_]) for verb, object_ in listed)
    return tuple((verb, name) for verb, name in listed)


CUTS: Mapping[str, int | None] = {"rare": 10, "non_rare": None}
"""The frequency groups of training counts, as HICO-DET has them: rare has fewer than 10 training triplets."""


def frequency_groups(counts: Sequence[int], cuts: Mapping[str, int | None]) -> dict[str, frozenset[int]]:
    """Return the groups into which training counts divide the interactions: the ids in each, by the group's name.
    counts: the training triplets of each interaction. cuts: for each group the number that the counts of its
    interactions are below, ascending; None in the last is no limit."""
    bounds = pairwise([0, *(inf if below is None else below for below in cuts.values())])
    return {
        name: frozenset(number for number, count in enumerate(counts) if low <= count < high)
        for name, (low, high) in zip(cuts, bounds, strict=True)
    }


def numbers(rule: Mapping[str, Any], entries: Sequence[Any]) -> dict[int, int]:
    """Return the 0-based id that each number in other projects' files means. entries: all verbs, objects or
    interactions of the dataset.

    rule: an entry of the field `numbering`: {"ids": {label: number}}, for interactions {"ids": {number: pair}}; or
    {"order": "listed" (the default), "alphabetical", or a list of the entries, "base": the first number, else 0}."""
    # verbs and objects are texts; an interaction is a pair, a list in JSON and here a tuple
    ids = {tuple(entry) if isinstance(entry, list) else entry: number for number, entry in enumerate(entries)}
    if "ids" in rule and isinstance(entries[0], str):
        return {number: ids[label] for label, number in rule["ids"].items()}
    if "ids" in rule:
        return {int(number): ids[tuple(pair)] for number, pair in rule["ids"].items()}
    order = rule.get("order", "listed")
    if isinstance(order, str):
        order = entries if order == "listed" else sorted(entries)
    labels = (tuple(entry) if isinstance(entry, list) else entry for entry in order)
    return {number: ids[label] for number, label in enumerate(labels, start=rule.get("base", 0))}
