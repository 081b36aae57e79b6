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
}
"""The datasets `load` knows, with a line about each."""


def _read(file_name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(files(__package__).joinpath(file_name).read_text(encoding="utf-8"))
    return data


@cache
def coco_objects() -> Mapping[str, int]:
    """COCO's 80 object names in COCO order, each with its category id (1-90 with gaps)."""
    ids: dict[str, int] = _read("coco.json")["ids"]
    return ids


@cache
def load(dataset: str) -> Vocabulary:
    """The vocabulary of `dataset` (a key of `DATASETS`); raises `UsageError` for another name."""
    loaders = {"hico": _hico, "vcoco": _vcoco, "swig": _swig}
    if dataset not in loaders:
        raise UsageError(f"unknown dataset {dataset!r}: choose from {', '.join(DATASETS)}")
    return loaders[dataset]()


def _hico() -> Vocabulary:
    """Facts: anno.mat's list_action, the rare list of fredzzhang/hicodet, and the zero-shot splits of VCL, FCL,
    ConsNet and GEN-VLKT as their code lists them.
    """
    raw = _read("hico.json")
    coco = coco_objects()
    interactions = tuple((verb, name) for name, verbs in raw["verbs_of_object"].items() for verb in verbs)
    rare = frozenset(raw["rare"])
    images = raw["test_images"]
    missing = set(images["missing"])
    return Vocabulary(
        name="hico",
        verbs=tuple(raw["verbs"]),
        objects=tuple(coco),
        interactions=interactions,
        groups={"rare": rare, "non_rare": frozenset(range(len(interactions))) - rare},
        unseen={split: frozenset(ids) for split, ids in raw["unseen"].items()},
        split_aliases=raw["split_aliases"],
        coco_ids=coco,
        no_interaction="no_interaction",
        test_images=tuple(
            images["template"].format(number)
            for number in range(images["first"], images["last"] + 1)
            if number not in missing
        ),
    )


def _vcoco() -> Vocabulary:
    """Facts: s-gupta/v-coco data/vcoco/*.json (the actions, their roles and the order of both).

    The classes are the 25 action-roles, then the 26 actions by themselves. Subsets: the `25` action-roles and the
    `24` without point_instr that papers average; `agent`, the 26 actions; `29`, what QPIC's evaluator averages (the
    25 and the four actions that have no role).
    """
    raw = _read("vcoco.json")
    roles: dict[str, list[str]] = raw["roles_of_action"]
    coco = coco_objects()
    with_role = [(verb, role) for verb, names in roles.items() for role in names]
    interactions = (*with_role, *((verb, "") for verb in roles))
    all_roles = frozenset(range(len(with_role)))
    return Vocabulary(
        name="vcoco",
        verbs=tuple(roles),
        objects=tuple(coco),
        interactions=interactions,
        subsets={
            "24": all_roles - {interactions.index(("point", "instr"))},
            "25": all_roles,
            "29": all_roles | {interactions.index((verb, "")) for verb, names in roles.items() if not names},
            "agent": frozenset(range(len(with_role), len(interactions))),
        },
        coco_ids=coco,
        roles=("obj", "instr"),
    )


def _swig() -> Vocabulary:
    """Facts: swig_v1_categories.py of scwangdyd/large_vocabulary_hoi_detection and ltttpku/INP-CC.

    36 names belong to two or three objects each (a ball to throw, a ball of wool). A record names the object, not the
    number, so these are written as WordNet's senses of the name, in nltk's spelling: ball.n.01, ball.n.03. The subset
    `evaluated` is what the evaluator averages; its groups are the frequencies 0, 1 and 2.
    """
    raw = _read("swig.json")
    verbs, objects = tuple(raw["verbs"]), tuple(raw["objects"])
    pairs = zip(raw["verb_of"], raw["object_of"], strict=True)
    return Vocabulary(
        name="swig",
        verbs=verbs,
        objects=objects,
        interactions=tuple((verbs[verb], objects[object_]) for verb, object_ in pairs),
        groups={
            name: frozenset(number for number, group in enumerate(raw["frequency"]) if group == wanted)
            for wanted, name in (("0", "zero_shot"), ("1", "rare"), ("2", "non_rare"))
        },
        subsets={"evaluated": frozenset(number for number, flag in enumerate(raw["evaluated"]) if flag == "1")},
        noun_ids=raw["objects"],
    )


def suggestion(name: str, vocabulary: Vocabulary, what: str) -> str:
    """A mend for an unknown label (`what`: "verb" or "object"): the dataset whose it is, the nearest known one, or the
    command that lists them all."""
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
    """The question whether records are of another dataset, with the option that says so."""
    return f"{DATASETS[dataset].partition(':')[0]} records? --dataset {dataset}"
