"""The label sets of the benchmarks: names, numbers and splits, as data files with one loader.

Records carry names, never numbers (formats/README.md); numbers exist only here and inside a metric's arrays.
Names are the dataset's own spelling with underscores for spaces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from hoicli.errors import UsageError

DATASETS = {"hico": "HICO-DET: 117 verbs, 80 objects, 600 interactions"}
"""The datasets `load` knows, with a line about each."""

SUBJECT = "person"
"""The label of every subject in every benchmark."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """One dataset's closed world. Positions in `verbs`, `objects` and `interactions` are the 0-based ids.

    `objects` is in COCO order (person first); `alphabetical_objects` is HICO-DET's own order of the same names.
    `groups` partitions the interactions by training frequency ("rare", "non_rare"); `unseen` names, for each
    zero-shot split, the interactions withheld from training.
    """

    name: str
    verbs: tuple[str, ...]
    objects: tuple[str, ...]
    interactions: tuple[tuple[str, str], ...]
    groups: Mapping[str, frozenset[int]]
    unseen: Mapping[str, frozenset[int]]
    split_aliases: Mapping[str, str]
    coco_ids: Mapping[str, int]
    no_interaction: str | None
    test_images: tuple[str, ...]
    verb_ids: Mapping[str, int] = field(init=False)
    object_ids: Mapping[str, int] = field(init=False)
    interaction_ids: Mapping[tuple[str, str], int] = field(init=False)

    def __post_init__(self) -> None:
        for name, entries in (("verb_ids", self.verbs), ("object_ids", self.objects)):
            object.__setattr__(self, name, {entry: index for index, entry in enumerate(entries)})
        pairs = {pair: index for index, pair in enumerate(self.interactions)}
        object.__setattr__(self, "interaction_ids", pairs)

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
        """The canonical name of a zero-shot split, given it or the papers' name for it (RF-UC, NF-UC, UO, UV).

        Raises `UsageError` for a split this dataset does not have.
        """
        key = name.lower()
        key = self.split_aliases.get(key, key.replace("-", "_"))
        if key not in self.unseen:
            raise UsageError(f"--split {name}: {self.name} has {', '.join(self.unseen)}")
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
    """The vocabulary of `dataset` (a key of `DATASETS`); raises `UsageError` for another name.

    Facts of HICO-DET: anno.mat's list_action, the rare list of fredzzhang/hicodet, and the zero-shot splits of
    VCL, FCL, ConsNet and GEN-VLKT as their code lists them.
    """
    if dataset not in DATASETS:
        raise UsageError(f"unknown dataset {dataset!r}: choose from {', '.join(DATASETS)}")
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


def normalise(name: str) -> str:
    """A label in the records' spelling: stripped, spaces to underscores ("dining table\\n" -> "dining_table")."""
    return name.strip().replace(" ", "_")


def suggestion(name: str, known: Mapping[str, int]) -> str:
    """A mend for an unknown label: the nearest known one, or the command that lists them all."""
    from difflib import get_close_matches

    near = get_close_matches(normalise(str(name)).lower(), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else "`hoicli vocab` lists the known ones"
