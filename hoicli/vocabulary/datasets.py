"""The label sets of the benchmarks: names, numbers and splits, as data files with one loader.

Records carry names, never numbers (formats/README.md); numbers exist only here and inside a metric's arrays.
Names are the dataset's own spelling with underscores for spaces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from hoicli.errors import UsageError
from hoicli.vocabulary.labels import Vocabulary, normalise

DATASETS = {
    "hico": "HICO-DET: 117 verbs, 80 objects, 600 interactions",
    "vcoco": "V-COCO: 26 actions, 25 of their roles, 80 objects",
    "swig": "SWIG-HOI: 407 verbs, 1,000 objects, 14,130 interactions, of which 5,539 are evaluated",
    "hoia": "HOI-A, HOI-W: 10 verbs, 11 objects, any pair of them",
    "ambiguous-hoi": "Ambiguous-HOI: HICO's 600 interactions, of which 87 are evaluated",
    "hico-det-sg": "HICO-DET-SG: HICO-DET's 600 interactions, three splits (sg1, sg2, sg3) of 60 test classes",
    "pastanet-hoi": "PaStaNet-HOI: 116 verbs, 80 objects, 520 interactions",
    "hoi-coco": "HOI-COCO: 21 verbs, 80 objects, 222 interactions",
}
"""The datasets that `load` knows, with a description of each."""


def _read(file_name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(files(__package__).joinpath(file_name).read_text(encoding="utf-8"))
    return {**_read(f"{data.pop('like')}.json"), **data} if "like" in data else data


@cache
def coco_objects() -> Mapping[str, int]:
    """COCO's 80 object names in COCO order, each with its category id (1-90 with gaps)."""
    ids: dict[str, int] = _read("coco.json")["ids"]
    return ids


@cache
def load(dataset: str) -> Vocabulary:
    """The vocabulary of `dataset` (a key of `DATASETS`); raises `UsageError` for another name."""
    if dataset not in DATASETS:
        raise UsageError(f"unknown dataset {dataset!r}: choose from {', '.join(DATASETS)}")
    return vocabulary_of(_read(f"{dataset}.json"))


def vocabulary_of(content: Mapping[str, Any]) -> Vocabulary:
    """A vocabulary from the content of its file. Missing fields are empty.

    objects: names, names with their noun senses, or "coco" for COCO's 80. interactions: the verbs of each object, or
    pairs of verb and object (or role), by name or by number. groups, subsets, unseen: interaction ids by name.
    test_images: a template with its first and last number, and the numbers that are missing.
    """
    verbs, named = content["verbs"], content["objects"]
    objects = list(coco_objects() if named == "coco" else named)
    pairs = content["interactions"]
    if isinstance(pairs, dict):
        pairs = [(verb, name) for name, of_object in pairs.items() for verb in of_object]
    elif isinstance(pairs[0][0], int):
        pairs = [(verbs[verb], objects[object_]) for verb, object_ in pairs]
    sets = {
        key: {name: frozenset(ids) for name, ids in content.get(key, {}).items()}
        for key in ("groups", "subsets", "unseen")
    }
    if "splits" in content: sets["unseen"] = {name: frozenset(ids) for name, ids in content["splits"].items()}
    images = content.get("test_images") or {"first": 0, "last": -1}
    numbers = [number for number in range(images["first"], images["last"] + 1) if number not in images["missing"]]
    return Vocabulary(
        name=content["name"],
        verbs=tuple(verbs),
        objects=tuple(objects),
        interactions=tuple(map(tuple, pairs)),
        split_aliases=content.get("split_aliases", {}),
        coco_ids=coco_objects() if named == "coco" else {},
        noun_ids=named if isinstance(named, dict) else {},
        no_interaction=content.get("no_interaction"),
        roles=tuple(content.get("roles", ())),
        test_images=tuple(images["template"].format(number) for number in numbers),
        **sets,
    )


def suggestion(name: str, vocabulary: Vocabulary, what: str) -> str:
    """What to do about an unknown label (`what`: "verb" or "object"): the dataset that has it, the nearest known one,
    or the command that lists them all."""
    from difflib import get_close_matches

    def known(of: Vocabulary) -> Mapping[str, int]:
        return of.verb_ids if what == "verb" else of.object_ids

    near = get_close_matches(normalise(name).lower(), known(vocabulary), n=1, cutoff=0.6)
    meant = f"did you mean {near[0]!r}?" if near else ""
    theirs = next((other for other in DATASETS if other != vocabulary.name and name in known(load(other))), None)
    if theirs is not None:
        return records_of(theirs) + (f" (or {meant})" if meant else "")
    return meant or "`hoicli vocab` lists the known ones"


def records_of(dataset: str) -> str:
    """A question for messages: are the records of this dataset? With the option to give."""
    return f"{DATASETS[dataset].partition(':')[0]} records? --dataset {dataset}"
