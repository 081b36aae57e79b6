"""What a dataset's file holds (formats/dataset.schema.json), and the vocabulary that it makes."""

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
    data: dict[str, Any] = json.loads(Path(__file__).with_name(file_name).read_bytes())
    return data


@cache
def coco_objects() -> Mapping[str, int]:
    """COCO's 80 object names in COCO order, each with its category id (1-90 with gaps)."""
    ids: dict[str, int] = _read("coco.json")["ids"]
    return ids


def shipped_content(dataset: str) -> dict[str, Any]:
    """The content of a shipped dataset's file; with a field `like`, it changes the fields of that dataset's file. Its
    `test_images` may be a template, the first and the last number, and those between them that are missing."""
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
    """Eight digits of the SHA-256 of a dataset's content; the order of its fields, the layout of the file and the
    fields of NO_MEANING do not matter."""
    from hashlib import sha256

    meaning = {key: content[key] for key in sorted(content) if key not in NO_MEANING}
    return sha256(json.dumps(meaning, separators=(",", ":")).encode()).hexdigest()[:8]


def vocabulary_of(content: Mapping[str, Any]) -> Vocabulary:
    """A vocabulary from the sound content of its file (`files.check` tells). Missing fields are empty."""
    verbs, named = content["verbs"], content["objects"]
    objects = objects_of(content)
    pairs = listed_pairs(content["interactions"], verbs, objects)
    ids = {pair: number for number, pair in enumerate(pairs)}
    groups, subsets, unseen = (
        {
            name: frozenset(each if isinstance(each, int) else ids[each[0], each[1]] for each in classes)
            for name, classes in content.get(key, {}).items()
        }
        for key in ("groups", "subsets", "splits")
    )
    counts = tuple(content.get("training_counts", ()))
    if counts and not groups:
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
        coco_ids=coco_objects() if named == "coco" else {},
        noun_ids=named if isinstance(named, dict) else {},
        no_interaction=content.get("no_interaction"),
        roles=roles,
        test_images=tuple(content.get("test_images", ())),
        subjects=tuple(content.get("subjects", (SUBJECT,))),
        aliases=content.get("aliases", {}),
        numbering={
            kind: numbers(how, {"verbs": verbs, "objects": objects, "interactions": pairs}[kind])
            for kind, how in content.get("numbering", {}).items()
        },
        box=content.get("box", BOXES[0]),
        training_counts=counts,
        title=content.get("title") or content["name"],
    )


def objects_of(content: Mapping[str, Any]) -> list[str]:
    """The labels of objects; subjects that are not among them come last."""
    named = content["objects"]
    objects = list(coco_objects() if named == "coco" else named)
    known = set(objects)
    return objects + [label for label in content.get("subjects", (SUBJECT,)) if label not in known]


Pair = tuple[str, str]
"""A verb and an object, or a role."""


def listed_pairs(listed: Any, verbs: Sequence[str], objects: Sequence[str]) -> tuple[Pair, ...]:
    """The interactions as pairs of verb and object (or role), from such pairs, from pairs of numbers, or from the verbs
    of each object."""
    if isinstance(listed, dict):
        return tuple((verb, name) for name, of_object in listed.items() for verb in of_object)
    if isinstance(listed[0][0], int):
        return tuple((verbs[verb], objects[object_]) for verb, object_ in listed)
    return tuple((verb, name) for verb, name in listed)


CUTS: Mapping[str, int | None] = {"rare": 10, "non_rare": None}
"""The frequency groups of training counts, as HICO-DET has them: rare has fewer than 10 training triplets."""


def frequency_groups(counts: Sequence[int], cuts: Mapping[str, int | None]) -> dict[str, frozenset[int]]:
    """The groups of `cuts` (each with the count that it stays below, None for no limit, ascending) of classes with
    these training counts."""
    ends = pairwise([0, *(inf if below is None else below for below in cuts.values())])
    return {
        name: frozenset(number for number, count in enumerate(counts) if low <= count < high)
        for name, (low, high) in zip(cuts, ends, strict=True)
    }


def numbers(how: Mapping[str, Any], entries: Sequence[Any]) -> dict[int, int]:
    """Number -> 0-based id of the entries, by a field of `numbering`: {"ids": {label: number}}, of interactions {"ids":
    {number: pair}}, or {"order": "listed" (default), "alphabetical" or a permutation of the entries, "base": the first
    number (default 0)}."""
    ids = {tuple(entry) if isinstance(entry, list) else entry: number for number, entry in enumerate(entries)}
    if "ids" in how and isinstance(entries[0], str):
        return {number: ids[label] for label, number in how["ids"].items()}
    if "ids" in how:
        return {int(number): ids[tuple(pair)] for number, pair in how["ids"].items()}
    order = how.get("order", "listed")
    if isinstance(order, str):
        order = entries if order == "listed" else sorted(entries)
    labels = (tuple(entry) if isinstance(entry, list) else entry for entry in order)
    return {number: ids[label] for number, label in enumerate(labels, start=how.get("base", 0))}
