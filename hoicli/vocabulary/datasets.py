"""The label sets of the benchmarks: names, numbers and splits, as data files with one loader.

Records carry names, never numbers (formats/README.md); numbers exist only here and inside a metric's arrays.
Names are the dataset's own spelling with underscores for spaces.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from hoicli.errors import UsageError, arg
from hoicli.io.claims import reads
from hoicli.vocabulary.labels import BOXES, SUBJECT, Vocabulary, nearest, normalise

DATASETS = {
    "hico": "HICO-DET: 117 verbs, 80 objects, 600 interactions",
    "vcoco": "V-COCO: 26 actions, 25 of their roles, 80 objects",
    "swig": "SWIG-HOI: 407 verbs, 1,000 objects, 14,130 interactions, of which 5,539 are evaluated",
    "hoia": "HOI-A: 10 verbs, 11 objects, any pair of them",
    "hoiw": "HOI-W: HOI-A's verbs and objects",
    "ambiguous-hoi": "Ambiguous-HOI: HICO's 600 interactions, of which 87 are evaluated",
    "hico-det-sg": "HICO-DET-SG: HICO-DET's 600 interactions, three splits (sg1, sg2, sg3) of 60 test classes",
    "pastanet-hoi": "PaStaNet-HOI: 116 verbs, 80 objects, 520 interactions",
    "hoi-coco": "HOI-COCO: 21 verbs, 80 objects, 222 interactions",
}
"""The datasets that `load` knows, with a description of each."""


def _read(file_name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(files(__package__).joinpath(file_name).read_text(encoding="utf-8"))
    return data


@cache
def coco_objects() -> Mapping[str, int]:
    """COCO's 80 object names in COCO order, each with its category id (1-90 with gaps)."""
    ids: dict[str, int] = _read("coco.json")["ids"]
    return ids


def load(dataset: str) -> Vocabulary:
    """The vocabulary of a dataset: a key of DATASETS, or the path of a file (formats/dataset.schema.json), which may be
    compressed. Raises `UsageError` for a name that is neither, `DataError` for a bad file."""
    if dataset in DATASETS:
        return _shipped(dataset)
    if not _is_path(dataset):
        raise UsageError(f"unknown dataset {dataset!r}: choose from {', '.join(DATASETS)}, or give a FILE.json")
    from hoicli.vocabulary.files import dataset_bytes

    path = Path(dataset)
    reads(path)  # a file that was read before, too
    return _of_file(dataset, _of_pipe(dataset, path.stat().st_ino) if path.is_fifo() else dataset_bytes(dataset))


@cache
def _shipped(dataset: str) -> Vocabulary:
    return vocabulary_of(shipped_content(dataset))


def shipped_content(dataset: str) -> dict[str, Any]:
    """The content of a shipped dataset's file; with a field `like`, it changes the fields of that dataset's file."""
    content = _read(f"{dataset}.json")
    return {**shipped_content(content.pop("like")), **content} if "like" in content else content


@cache
def _of_pipe(path: str, number: int) -> bytes:  # noqa: ARG001 (a key of the cache)
    """What came through a pipe, which can be read once; `number` is the pipe's own."""
    from hoicli.vocabulary.files import dataset_bytes

    return dataset_bytes(path)


@cache
def _of_file(path: str, data: bytes) -> Vocabulary:
    """The vocabulary in a file of this content: another file may stand at the path now, whatever its time."""
    from hoicli.vocabulary.files import dataset_content

    content = dataset_content(data, path, taken=DATASETS)
    return replace(vocabulary_of(content), digest=content_digest(content), path=path)


def _is_path(dataset: str) -> bool:
    """Whether the text can only be meant as a path: it has a folder or an ending, or such a file exists."""
    return "/" in dataset or os.sep in dataset or "." in dataset or Path(dataset).exists()


NO_MEANING = ("about", "source", "title")
"""Fields of a dataset's file that change no number."""


def content_digest(content: Mapping[str, Any]) -> str:
    """Eight digits of the SHA-256 of a dataset's content; the order of its fields, the layout of the file and the
    fields of NO_MEANING do not matter."""
    from hashlib import sha256

    meaning = {key: content[key] for key in sorted(content) if key not in NO_MEANING}
    return sha256(json.dumps(meaning, separators=(",", ":")).encode()).hexdigest()[:8]


def vocabulary_of(content: Mapping[str, Any]) -> Vocabulary:
    """A vocabulary from the sound content of its file (formats/dataset.schema.json; `faults.check` tells).

    Missing fields are empty. Subjects that are no objects become objects after the others.
    """
    verbs, named = content["verbs"], content["objects"]
    subjects = tuple(content.get("subjects", (SUBJECT,)))
    objects = list(coco_objects() if named == "coco" else named)
    objects += [label for label in subjects if label not in set(objects)]
    pairs = listed_pairs(content["interactions"], verbs, objects)
    ids = {pair: number for number, pair in enumerate(pairs)}
    groups, subsets, unseen = (
        {name: class_ids(classes, ids) for name, classes in content.get(key, {}).items()}
        for key in ("groups", "subsets", "splits")
    )
    counts = tuple(content.get("training_counts", ()))
    if counts and not groups:
        groups = frequency_groups(counts, content.get("cuts", CUTS))
    roles = tuple(content.get("roles", ()))
    title = content.get("title") or DATASETS.get(content["name"], content["name"]).partition(":")[0]
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
        test_images=_image_names(content.get("test_images", ())),
        subjects=subjects,
        aliases=content.get("aliases", {}),
        numbering={
            kind: numbers(how, {"verbs": verbs, "objects": objects, "interactions": pairs}[kind])
            for kind, how in content.get("numbering", {}).items()
        },
        box=content.get("box", BOXES[0]),
        training_counts=counts,
        title=title,
    )


def listed_pairs(listed: Any, verbs: Sequence[str], objects: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The interactions as pairs of verb and object (or role), from such pairs, from pairs of numbers, or from the verbs
    of each object."""
    if isinstance(listed, dict):
        return tuple((verb, name) for name, of_object in listed.items() for verb in of_object)
    if isinstance(listed[0][0], int):
        return tuple((verbs[verb], objects[object_]) for verb, object_ in listed)
    return tuple((verb, name) for verb, name in listed)


def class_ids(classes: Iterable[Any], ids: Mapping[tuple[str, str], int]) -> frozenset[int]:
    """The ids of classes given as ids or as pairs of verb and object; KeyError for an unknown pair."""
    return frozenset(each if isinstance(each, int) else ids[each[0], each[1]] for each in classes)


CUTS: Mapping[str, int | None] = {"rare": 10, "non_rare": None}
"""The frequency groups of training counts, as HICO-DET has them: rare has fewer than 10 training triplets."""


def frequency_groups(counts: Sequence[int], cuts: Mapping[str, int | None]) -> dict[str, frozenset[int]]:
    """The groups of `cuts` (each with the count that it stays below, None for no limit, ascending) of classes with
    these training counts."""
    groups: dict[str, frozenset[int]] = {}
    low = 0
    for name, below in cuts.items():
        high = float("inf") if below is None else below
        groups[name] = frozenset(number for number, count in enumerate(counts) if low <= count < high)
        low = int(high) if below is not None else low
    return groups


def numbers(how: Mapping[str, Any], entries: Sequence[Any]) -> dict[int, int]:
    """Number -> 0-based id of the entries, by a field of `numbering`: {"ids": {label: number}}, or {"order": "listed"
    (default), "alphabetical" or a permutation of the entries, "base": the first number (default 0)}."""
    ids = {tuple(entry) if isinstance(entry, list) else entry: number for number, entry in enumerate(entries)}
    if "ids" in how:
        return {number: ids[label] for label, number in how["ids"].items()}
    order = how.get("order", "listed")
    if isinstance(order, str):
        order = entries if order == "listed" else sorted(entries)
    labels = (tuple(entry) if isinstance(entry, list) else entry for entry in order)
    return {number: ids[label] for number, label in enumerate(labels, start=how.get("base", 0))}


def _image_names(images: Any) -> tuple[str, ...]:
    """The test images: names, or a template with its first and last number and the numbers that are missing."""
    if not isinstance(images, dict):
        return tuple(images)
    missing = set(images.get("missing", ()))
    present = (number for number in range(images["first"], images["last"] + 1) if number not in missing)
    return tuple(images["template"].format(number) for number in present)


def suggestion(name: str, vocabulary: Vocabulary, what: str) -> str:
    """What to do about an unknown label (`what`: "verb" or "object"): the dataset that has it, the nearest known one,
    or the command that lists them all."""
    from difflib import SequenceMatcher

    def known(of: Vocabulary) -> Mapping[str, int]:
        return of.verb_ids if what == "verb" else of.object_ids

    spelt = normalise(name).lower()
    near = nearest(spelt, known(vocabulary))
    meant = f"did you mean {near[0]!r}?" if near else ""
    others = (other for other in DATASETS if other != vocabulary.name and name not in known(vocabulary))
    theirs = next((other for other in others if name in known(load(other))), None)
    if theirs is not None:
        return records_of(theirs) + (f" (or {meant})" if meant else "")
    if vocabulary.own:
        return meant or f"`hoicli vocab {vocabulary.path}` lists the known ones; add it there, or as an alias"
    if near and SequenceMatcher(None, spelt, near[0]).ratio() >= TYPO:
        return meant
    return f"{meant or '`hoicli vocab` lists the known ones;'} own classes? {OWN_CLASSES}"


TYPO = 0.67
"""Ours: labels less alike than this (worker and fork) are hardly one in two spellings."""

OWN_CLASSES = "hoicli vocab --from GT.jsonl -o FILE.json"
"""The command that makes a dataset of one's own, for messages."""


def records_of(dataset: str) -> str:
    """A question for messages: are the records of this dataset? With the option to give."""
    return f"{DATASETS[dataset].partition(':')[0]} records? {arg('dataset', dataset)}"
