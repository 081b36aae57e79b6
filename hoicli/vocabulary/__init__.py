"""The label sets of the benchmarks: names, numbers and splits, as data files with one loader.

Records carry names, never numbers (formats/README.md); numbers exist only here and inside a metric's arrays.
Names are the dataset's own spelling with underscores for spaces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from hoicli.errors import UsageError

DATASETS = {
    "hico": "HICO-DET: 117 verbs, 80 objects, 600 interactions",
    "vcoco": "V-COCO: 26 actions, 25 of their roles, 80 objects",
    "swig": "SWIG-HOI: 407 verbs, 1,000 objects, 14,130 interactions, of which 5,539 are evaluated",
}
"""The datasets `load` knows, with a line about each."""

SUBJECT = "person"
"""The label of every subject in every benchmark."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """One dataset's closed world. Positions in `verbs`, `objects` and `interactions` are the 0-based ids.

    `interactions` are the classes that are scored: (verb, object), or, in a dataset with `roles` (V-COCO), (verb,
    role), where the role "" is the action itself, whatever it is done to. `objects` is in COCO order (person first),
    but for SWIG-HOI, which has its own and for each object the WordNet 3.0 offset of its noun sense (`noun_ids`);
    `alphabetical_objects` is HICO-DET's own order of the same names. `groups` partitions the interactions by training
    frequency ("rare", "non_rare", in SWIG-HOI also "zero_shot"); `subsets` names other sets of them that a protocol
    averages; `unseen` names, for each zero-shot split, the interactions withheld from training. `test_images` are in
    the order of the files that have only positions.
    """

    name: str
    verbs: tuple[str, ...]
    objects: tuple[str, ...]
    interactions: tuple[tuple[str, str], ...]
    groups: Mapping[str, frozenset[int]] = field(default_factory=dict)
    subsets: Mapping[str, frozenset[int]] = field(default_factory=dict)
    unseen: Mapping[str, frozenset[int]] = field(default_factory=dict)
    split_aliases: Mapping[str, str] = field(default_factory=dict)
    coco_ids: Mapping[str, int] = field(default_factory=dict)
    noun_ids: Mapping[str, str] = field(default_factory=dict)
    no_interaction: str | None = None
    roles: tuple[str, ...] = ()
    test_images: tuple[str, ...] = ()
    verb_ids: Mapping[str, int] = field(init=False)
    object_ids: Mapping[str, int] = field(init=False)
    interaction_ids: Mapping[tuple[str, str], int] = field(init=False)

    def __post_init__(self) -> None:
        for name, entries in (("verb_ids", self.verbs), ("object_ids", self.objects)):
            object.__setattr__(self, name, {entry: index for index, entry in enumerate(entries)})
        pairs = {pair: index for index, pair in enumerate(self.interactions)}
        object.__setattr__(self, "interaction_ids", pairs)

    @property
    def qualifier(self) -> str:
        """What tells the interactions of one verb apart: "object", or "role"."""
        return "role" if self.roles else "object"

    @property
    def roles_of(self) -> dict[str, tuple[str, ...]]:
        """The roles each verb has, in the dataset's order; none for an action without object (walk)."""
        return {
            verb: tuple(role for action, role in self.interactions if action == verb and role) for verb in self.verbs
        }

    @property
    def coco_names(self) -> dict[int, str]:
        """The object of each COCO category id."""
        return {number: name for name, number in self.coco_ids.items()}

    @property
    def alphabetical_objects(self) -> tuple[str, ...]:
        """HICO-DET's own object order, as in `instances_test2015.json` and its relatives."""
        return tuple(sorted(self.objects))

    @property
    def no_interaction_ids(self) -> frozenset[int]:
        """Interactions whose verb says that nothing happens (80 in HICO-DET)."""
        return frozenset(i for i, (verb, _) in enumerate(self.interactions) if verb == self.no_interaction)

    @property
    def group_of(self) -> dict[int, str]:
        """The frequency group of each interaction id."""
        return {member: name for name, members in self.groups.items() for member in members}

    def interactions_of(self, object_name: str) -> list[int]:
        """Ids of the interactions with one object, ascending: the row order of `detections_XX.mat`."""
        return [i for i, (_, name) in enumerate(self.interactions) if name == object_name]

    def split(self, name: str) -> str:
        """The canonical name of a zero-shot split, given it or the papers' name for it (RF-UC or UC-RF, NF-UC, UO, UV).

        Raises `UsageError` for a split this dataset does not have.
        """
        key = name.lower()
        key = self.split_aliases.get(key.replace("_", "-"), key.replace("-", "_"))
        if key not in self.unseen:
            has = ", ".join(self.unseen) or "no zero-shot splits"
            raise UsageError(f"--split {name}: {self.name} has {has}")
        return key


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
    return swig_vocabulary(
        raw["verbs"],
        raw["objects"],
        verb_of=raw["verb_of"],
        object_of=raw["object_of"],
        frequency=list(map(int, raw["frequency"])),
        evaluated=[flag == "1" for flag in raw["evaluated"]],
    )


def swig_vocabulary(
    verbs: Sequence[str],
    nouns: Mapping[str, str],
    *,
    verb_of: Sequence[int],
    object_of: Sequence[int],
    frequency: Sequence[int],
    evaluated: Sequence[bool],
) -> Vocabulary:
    """A vocabulary of SWIG-HOI's kind: `nouns` gives each object its noun sense, the rest is about each interaction."""
    objects = tuple(nouns)
    return Vocabulary(
        name="swig",
        verbs=tuple(verbs),
        objects=objects,
        interactions=tuple((verbs[verb], objects[thing]) for verb, thing in zip(verb_of, object_of, strict=True)),
        groups={
            name: frozenset(number for number, times in enumerate(frequency) if times == wanted)
            for wanted, name in enumerate(("zero_shot", "rare", "non_rare"))
        },
        subsets={"evaluated": frozenset(number for number, flag in enumerate(evaluated) if flag)},
        noun_ids=nouns,
    )


def normalise(name: str) -> str:
    """A label in the records' spelling: stripped, spaces to underscores ("dining table\\n" -> "dining_table")."""
    return name.strip().replace(" ", "_")


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
