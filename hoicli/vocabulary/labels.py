"""A vocabulary: the verbs, objects and interactions of a dataset, with their numbers and splits, and how the content of
a dataset's file (formats/dataset.schema.json) makes it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any, TypeVar, cast
from unicodedata import normalize

from hoicli.errors import UsageError, arg

SUBJECT = "person"
"""The label of every subject in every benchmark."""

BOXES = ("inclusive", "inclusive-1", "edges")
"""How a dataset's own files write the boxes of its ground truth: x2, y2 the last pixel, counted from 0 (as records have
it) or from 1 (HICO-DET's anno_bbox.mat); or x2 = x1 + width."""


_SIGNS: Mapping[int, str | None] = {
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-"),
    **dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f"), '"'),
    **dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"), None),
}
"""Typographic dashes, quotes and signs without width, as language models and word processors write them."""


def replace_typography(text: str) -> str:
    """Return a text with the signs of a keyboard: plain hyphens, quotes and spaces, and no full-width letters."""
    return text if text.isascii() else normalize("NFKC", normalize("NFKC", text).translate(_SIGNS))


def strip_accents(text: str) -> str:
    """Return a text without accents ("café" -> "cafe")."""
    if text.isascii():
        return text
    return normalize("NFC", "".join(sign for sign in normalize("NFD", text) if not "\u0300" <= sign <= "\u036f"))


def normalise_spelling(label: str) -> str:
    """Return the one spelling that stands for all spellings of a label: with the signs of a keyboard
    (`replace_typography`), no quotes around it, and an underscore between words."""
    if not label.isascii():
        label = replace_typography(label).strip()
        if len(label) > 2 and label[0] == label[-1] and label[0] in "'\"":
            label = label[1:-1]
    return "_".join(label.replace("_", " ").split())


Label = TypeVar("Label", bound="str | tuple[str, str] | None")


class Spelled(dict[Label, int]):
    """Numbers of labels, or of pairs of labels, each found in any of its spellings (`normalise_spelling`): `sit on` is
    `sit_on`, and `Sit On` where no second label differs by case alone. In a loop there are only the given ones."""

    def __init__(self, numbers: Mapping[Label, int]) -> None:
        super().__init__(numbers)
        self._others: dict[object, int] = {}
        folded: dict[object, int | None] = {}
        for label, number in numbers.items():
            self._others.setdefault(_each(normalise_spelling, label), number)
            folded_label = _each(_fold_case, label)
            # None for a form that labels of different numbers share: it would be ambiguous
            folded[folded_label] = number if folded.get(folded_label, number) == number else None
        for folded_label, single_number in folded.items():
            if single_number is not None:
                self._others.setdefault(folded_label, single_number)

    def __missing__(self, label: object) -> int:
        number = self._others.get(_each(normalise_spelling, label))
        return self._others[_each(_fold_case, label)] if number is None else number

    def __contains__(self, label: object) -> bool:
        return self.get(label) is not None

    def get(self, label: object, default: Any = None) -> Any:
        """Return the number of a label in any spelling, `default` without one."""
        try:
            return self[cast("Label", label)]
        except KeyError:
            return default


def _fold_case(label: str) -> str:
    """Return a form of the label in which neither spelling nor case makes a difference."""
    return normalise_spelling(normalise_spelling(label).casefold())


def _each(spelling: Callable[[str], str], label: object) -> object:
    """Return a label in that spelling, or a pair with each of its labels; anything else unchanged."""
    if type(label) is tuple:
        return tuple(_each(spelling, part) for part in label)
    return spelling(label) if type(label) is str else label


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The verbs, objects and interactions of a dataset. Positions in these three are the 0-based ids.

    `interactions` are the classes that are scored: (verb, object), or, in a dataset with `roles` (V-COCO), (verb,
    role), where the role "" is the action itself, with any object. `objects` is in COCO order (person first); SWIG-HOI
    has its own order, and `noun_ids` has the WordNet 3.0 offset of the sense of each of its objects;
    `alphabetical_objects` is HICO-DET's own order of the same names. `groups` partitions the interactions by training
    frequency ("rare", "non_rare", in SWIG-HOI also "zero_shot"); `subsets` names other sets of them that a protocol
    averages; `unseen` names, for each zero-shot split, the interactions withheld from training. `test_images` are in
    the order of the files that have only positions.

    `subjects` are the labels that a subject may have; each is one of `objects`, and none is part of a class. `aliases`
    are other spellings of verbs and objects; `verb_ids` and `object_ids` know them. `numbering` says, for "verbs",
    "objects" and "interactions", which id a number in a dump means; where it says nothing, the format decides. `box`:
    see BOXES. `training_counts` has the training triplets of each interaction, or is empty. `digest` and `path` are of
    the file of a dataset of one's own, and empty for the shipped ones.
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
    subjects: tuple[str, ...] = (SUBJECT,)
    aliases: Mapping[str, str] = field(default_factory=dict)
    numbering: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    box: str = "inclusive"
    training_counts: tuple[int, ...] = ()
    title: str = ""
    digest: str = ""
    path: str = ""
    verb_ids: Mapping[str, int] = field(init=False)
    object_ids: Mapping[str, int] = field(init=False)
    interaction_ids: Mapping[tuple[str, str], int] = field(init=False)

    def __post_init__(self) -> None:
        for name, entries in (("verb_ids", self.verbs), ("object_ids", self.objects)):
            ids = {entry: index for index, entry in enumerate(entries)}
            ids |= {alias: ids[label] for alias, label in self.aliases.items() if label in ids}
            object.__setattr__(self, name, Spelled(ids))
        pairs = Spelled({pair: index for index, pair in enumerate(self.interactions)})
        object.__setattr__(self, "interaction_ids", pairs)

    @property
    def own(self) -> bool:
        """Return whether the dataset comes from the user's file or another package, not from hoicli."""
        return bool(self.digest)

    @property
    def signed(self) -> str:
        """Return what signatures call the dataset: hico; of a file, its name and digest (site-3f2a91c4)."""
        return f"{self.name}-{self.digest}" if self.digest else self.name

    @property
    def option(self) -> str:
        """Return the option that names the dataset, after a space, for messages; "" for hico, the default."""
        return "" if self.name == "hico" else f" {arg('dataset', self.path or self.name)}"

    @property
    def subject_ids(self) -> frozenset[int]:
        """Return the object ids of the labels that a subject may have."""
        return frozenset(self.object_ids[label] for label in self.subjects)

    @property
    def qualifier(self) -> str:
        """Return what distinguishes the interactions of one verb: "object", or "role"."""
        return "role" if self.roles else "object"

    @property
    def by_verb(self) -> Vocabulary:
        """Return the same dataset with one class for each verb, (verb, ""), whatever the object, and no subsets or
        splits."""
        verb_classes = tuple((verb, "") for verb in self.verbs)
        return replace(self, interactions=verb_classes, groups={}, subsets={}, unseen={}, split_aliases={})

    @property
    def roles_of(self) -> dict[str, tuple[str, ...]]:
        """Return the roles of each verb, in the dataset's order; an action without an object (walk) has none."""
        return {
            verb: tuple(role for action, role in self.interactions if action == verb and role) for verb in self.verbs
        }

    @property
    def coco_names(self) -> dict[int, str]:
        """Return the object of each COCO category id."""
        return {number: name for name, number in self.coco_ids.items()}

    @property
    def alphabetical_objects(self) -> tuple[str, ...]:
        """Return the objects in HICO-DET's own order, as in `instances_test2015.json` and its relatives."""
        return tuple(sorted(self.objects))

    @property
    def no_interaction_ids(self) -> frozenset[int]:
        """Return the interactions whose verb says that nothing happens (80 in HICO-DET)."""
        return frozenset(i for i, (verb, _) in enumerate(self.interactions) if verb == self.no_interaction)

    def interaction_id(self, verb: str, label: str) -> int | None:
        """Return the id of a verb with an object, both in any spelling or by an alias; None if they are no
        interaction."""
        return self.interaction_ids.get((self.verbs[self.verb_ids[verb]], self.objects[self.object_ids[label]]))

    @property
    def group_of(self) -> dict[int, str]:
        """Return the frequency group of each interaction id."""
        return {member: name for name, members in self.groups.items() for member in members}

    def members(self, subset: str) -> frozenset[int]:
        """Return the interactions of a subset: `full`, a frequency group, or another subset; KeyError for any other
        name.

        A dataset with roles also has the sets that V-COCO's protocols need: `agent`, the actions by themselves;
        `roles`, the action-roles; `every_action`, these and the actions that have no role."""
        everything = frozenset(range(len(self.interactions)))
        sets = {"full": everything}
        if self.roles:
            agent = frozenset(number for number in everything if not self.interactions[number][1])
            with_roles = {self.interactions[number][0] for number in everything - agent}
            without_roles = frozenset(number for number in agent if self.interactions[number][0] not in with_roles)
            sets |= {"agent": agent, "roles": everything - agent, "every_action": everything - agent | without_roles}
        return {**sets, **self.groups, **self.subsets}[subset]

    def interactions_of(self, object_name: str) -> list[int]:
        """Return the ids of the interactions with one object, ascending: the row order of `detections_XX.mat`."""
        return [i for i, (_, name) in enumerate(self.interactions) if name == object_name]

    def split(self, name: str) -> str:
        """Return the canonical name of a zero-shot split. name: that name or the papers' (RF-UC or UC-RF, NF-UC, UO,
        UV).

        Raises `UsageError` for a split that this dataset does not have."""
        key = name.lower()
        key = self.split_aliases.get(key.replace("_", "-"), key.replace("-", "_"))
        if key not in self.unseen:
            known_splits = ", ".join(self.unseen) or "no zero-shot splits"
            subset_hint = f"; {name} is no split but a subset, and has rows anyway" if name in self.groups else ""
            raise UsageError(f"{arg('split', name)}: {self.name} has {known_splits}{subset_hint}")
        return key


def normalise(name: str) -> str:
    """Return a label in the records' spelling: stripped, with underscores for spaces ("dining table\\n" ->
    "dining_table")."""
    return name.strip().replace(" ", "_") if name.isascii() else normalise_spelling(name)


# What a dataset's file holds


def _read(file_name: str) -> dict[str, Any]:
    """Return the content of a JSON file beside this one."""
    data: dict[str, Any] = json.loads(Path(__file__).with_name(file_name).read_bytes())
    return data


@cache
def coco_objects() -> Mapping[str, int]:
    """Return COCO's 80 object names in COCO order, each with its category id (1-90 with gaps)."""
    ids: dict[str, int] = _read("coco.json")["ids"]
    return ids


def shipped_content(dataset: str) -> dict[str, Any]:
    """Return the content of a shipped dataset's file. With a field `like`, it has what differs from that dataset's
    file. `test_images` may be a template, with the first and the last number, and those missing in between."""
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
    """Return eight digits of the SHA-256 of a dataset's content. The order of its fields, the layout of the file and
    the fields of NO_MEANING make no difference."""
    from hashlib import sha256

    meaning = {key: content[key] for key in sorted(content) if key not in NO_MEANING}
    return sha256(json.dumps(meaning, separators=(",", ":")).encode()).hexdigest()[:8]


def vocabulary_of(content: Mapping[str, Any]) -> Vocabulary:
    """Return the vocabulary that the content of a dataset's file makes. The content must be sound (`files.check`
    tells); missing fields are empty."""
    verbs, object_field = content["verbs"], content["objects"]
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


def objects_of(content: Mapping[str, Any]) -> list[str]:
    """Return the labels of objects; subjects that are not among them come last."""
    object_field = content["objects"]
    objects = list(coco_objects() if object_field == "coco" else object_field)
    known_objects = set(objects)
    return objects + [label for label in content.get("subjects", (SUBJECT,)) if label not in known_objects]


Pair = tuple[str, str]
"""A verb and an object, or a role."""


def listed_pairs(listed: Any, verbs: Sequence[str], objects: Sequence[str]) -> tuple[Pair, ...]:
    """Return the interactions as pairs of verb and object (or role). listed: pairs by name or number, or verbs by
    object."""
    if isinstance(listed, dict):
        return tuple((verb, name) for name, object_verbs in listed.items() for verb in object_verbs)
    if isinstance(listed[0][0], int):
        return tuple((verbs[verb], objects[object_]) for verb, object_ in listed)
    return tuple((verb, name) for verb, name in listed)


CUTS: Mapping[str, int | None] = {"rare": 10, "non_rare": None}
"""The frequency groups of training counts, as HICO-DET has them: rare has fewer than 10 training triplets."""


def frequency_groups(counts: Sequence[int], cuts: Mapping[str, int | None]) -> dict[str, frozenset[int]]:
    """Return the groups of classes by their training counts. cuts: for each group the count that its classes stay
    below, ascending; None is no limit."""
    bounds = pairwise([0, *(inf if below is None else below for below in cuts.values())])
    return {
        name: frozenset(number for number, count in enumerate(counts) if low <= count < high)
        for name, (low, high) in zip(cuts, bounds, strict=True)
    }


def numbers(how: Mapping[str, Any], entries: Sequence[Any]) -> dict[int, int]:
    """Return the 0-based id of each number by a field of `numbering`. how: that field: {"ids": {label: number}}, for
    interactions {"ids": {number: pair}}, or {"order": "listed" (default), "alphabetical" or a permutation of the
    entries, "base": the first number (default 0)}."""
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
