"""The label sets of the benchmarks: names, numbers and splits, as data files with one loader.

Records carry names, never numbers (formats/README.md); numbers exist only here and inside a metric's arrays.
Names are the dataset's own spelling with underscores for spaces."""

from __future__ import annotations

import os
from functools import cache
from operator import attrgetter
from pathlib import Path

from hoicli.errors import UsageError, arg, nearest
from hoicli.io import plugins
from hoicli.vocabulary.dataset_content import shipped_content, vocabulary_of
from hoicli.vocabulary.labels import SUBJECT, Vocabulary, normalise

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
"""The shipped datasets with a description of each: a new one is a row here and a file beside this one."""


def load(dataset: str) -> Vocabulary:
    """Return the vocabulary of a dataset: its verbs, objects and interactions. dataset: a key of DATASETS, a name that
    another package adds (entry point in `hoicli.datasets`), or the path of a file (formats/dataset.schema.json), which
    may be compressed. Raises `UsageError` for a name that is none of these, `DataError` for a bad file."""
    if dataset in DATASETS:
        return _load_shipped(dataset)
    from hoicli.vocabulary.files import build_added_dataset, read_dataset

    names_folder = "/" in dataset or os.sep in dataset
    has_dot = "." in dataset
    exists = Path(dataset).exists()
    is_file = names_folder or (has_dot and exists)  # a package may add "site.v2", and a file may be called "site"
    added = None if is_file else plugins.plugin("datasets", dataset)
    if added is not None:
        return build_added_dataset(dataset, added, DATASETS)
    if not (names_folder or has_dot or exists):
        dataset_names = ", ".join([*DATASETS, *plugins.names("datasets")])
        raise UsageError(f"unknown dataset {dataset!r}: choose from {dataset_names}, or give a FILE.json")
    return read_dataset(dataset, DATASETS)


@cache
def _load_shipped(dataset: str) -> Vocabulary:
    """Return the vocabulary of a dataset that comes with hoicli, a key of DATASETS."""
    return vocabulary_of(shipped_content(dataset))


def suggestion(name: str, vocabulary: Vocabulary, what: str) -> str:
    """Return advice about a label that a dataset does not have. what: "verb" or "object"."""
    ids_in = attrgetter("verb_ids" if what == "verb" else "object_ids")  # of a vocabulary
    # own: a dataset of the user's, which may call its subjects otherwise than `person`
    if vocabulary.own and what == "object" and name == SUBJECT:
        subject_names = ", ".join(vocabulary.subjects)
        return f'own subjects are {subject_names}: `aliases` maps names ({{"{name}": "{vocabulary.subjects[0]}"}})'
    normalised = normalise(name).lower()
    if normalised == "human" and SUBJECT in ids_in(vocabulary):
        return f"did you mean {SUBJECT!r}?"
    near = nearest(normalised, ids_in(vocabulary))
    hint = f"did you mean {near[0]!r}?" if near else ""
    others = (other for other in DATASETS if other != vocabulary.name and name not in ids_in(vocabulary))
    other_dataset = next((other for other in others if name in ids_in(load(other))), None)
    own_classes = f"own classes? {OWN_CLASSES}"
    if vocabulary.own:
        own_classes = f'other words? `aliases` of {vocabulary.path} has {{"{name}": "{near[0] if near else "LABEL"}"}}'
        hint = hint or f"`hoicli vocab {vocabulary.path}` lists the known ones;"
    if other_dataset is not None:
        return f"{records_of(other_dataset)}{f' (or {hint})' if near else ''}; {own_classes}"
    if vocabulary.own:
        return f"{hint} {own_classes}"
    if near == [normalised]:  # the label is right but for its spelling
        return hint
    return f"{hint or '`hoicli vocab` lists the known ones;'} {own_classes}"


OWN_CLASSES = "hoicli vocab --from GT.jsonl -o FILE.json"
"""The command that makes a dataset of one's own, for messages."""


def records_of(dataset: str) -> str:
    """Return a question for messages about wrong labels: "V-COCO records? --dataset vcoco", for dataset vcoco."""
    return f"{DATASETS[dataset].partition(':')[0]} records? {arg('dataset', dataset)}"


VCOCO_ORDERS: dict[str, tuple[str, ...]] = {
    # hitachi-rd-cv/qpic convert_vcoco_annotations.py, datasets/vcoco_eval.py; CDN and GEN-VLKT copied it
    "qpic": (
        *("hold_obj", "stand", "sit_instr", "ride_instr", "walk", "look_obj", "hit_instr", "hit_obj", "eat_obj"),
        *("eat_instr", "jump_instr", "lay_instr", "talk_on_phone_instr", "carry_obj", "throw_obj", "catch_obj"),
        *("cut_instr", "cut_obj", "run", "work_on_computer_instr", "ski_instr", "surf_instr", "skateboard_instr"),
        *("smile", "drink_instr", "kick_obj", "point_instr", "read_obj", "snowboard_instr"),
    ),
    # YueLiao/PPDM src/lib/eval/vcoco_eval.py
    "ppdm": (
        *("surf_instr", "ski_instr", "cut_instr", "walk", "cut_obj", "ride_instr", "talk_on_phone_instr", "kick_obj"),
        *("work_on_computer_instr", "eat_obj", "sit_instr", "jump_instr", "lay_instr", "drink_instr", "carry_obj"),
        *("throw_obj", "eat_instr", "smile", "look_obj", "hit_instr", "hit_obj", "snowboard_instr", "run"),
        *("point_instr", "read_obj", "hold_obj", "skateboard_instr", "stand", "catch_obj"),
    ),
}
"""How V-COCO's 29 verbs of the HOI-A layout are numbered, from 0: two orders are in use under one file name. Each entry
is `action_role`, or the action alone where it has no role."""


def verb_and_role(entry: str) -> tuple[str, str]:
    """Return (verb, role) of an entry in VCOCO_ORDERS: ("hit", "instr") of hit_instr, ("walk", "") of walk."""
    for role in ("obj", "instr"):
        if entry.endswith(f"_{role}"):
            return entry[: -len(role) - 1], role
    return entry, ""
