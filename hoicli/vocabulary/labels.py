"""A vocabulary: the verbs, objects and interactions of a dataset, with their numbers and splits; and the spellings of
their labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
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
    **dict.fromkeys(map(ord, "\u2018\u2019\u201b\u02bc\u2039\u203a"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u00ab\u00bb"), '"'),
    **dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"), None),
}
"""Typographic dashes, quotes and signs without width, as language models and word processors write them."""


def replace_typography(text: str) -> str:
    """Return a text with plain hyphens, quotes, spaces and letters in place of typographic ones."""
    return text if text.isascii() else normalize("NFKC", normalize("NFKC", text).translate(_SIGNS))


def strip_accents(text: str) -> str:
    """Return a text without accents ("café" -> "cafe")."""
    if text.isascii():
        return text
    # NFD writes each accent as a character of its own, in the range of combining marks; NFC joins what remains.
    return normalize("NFC", "".join(sign for sign in normalize("NFD", text) if not "\u0300" <= sign <= "\u036f"))


def normalise_spelling(label: str) -> str:
    """Return the spelling in which labels are compared: with the characters of a keyboard (`replace_typography`), no
    typographic quotes or dots around it, and single underscores between words, so that “sit  on” is sit_on."""
    if not label.isascii():  # digests have the plain signs of the others
        label = replace_typography(label).strip().removeprefix("...").removesuffix("...")
        if len(label) > 2 and label[0] == label[-1] and label[0] in "'\"":
            label = label[1:-1]
    return "_".join(label.replace("_", " ").split())


Label = TypeVar("Label", bound="str | tuple[str, str] | None")


class Spelled(dict[Label, int]):
    """A dict from labels, or pairs of labels, to numbers, whose look-up finds a label in any spelling: "sit on" finds
    sit_on, and so does "Sit On" unless two labels differ by case alone. Loops, len() and the like see only the labels
    that it was made of.

    _others: the number of each other spelling, from `normalise_spelling` or in lower case."""

    def __init__(self, numbers: Mapping[Label, int]) -> None:
        """Take the labels and their numbers, and index their other spellings."""
        super().__init__(numbers)
        self._others: dict[object, int] = {}
        number_of_folded: dict[object, int | None] = {}
        for label, number in numbers.items():
            self._others.setdefault(_respell(label, normalise_spelling), number)
            folded_label = _respell(label, _fold_case)
            # None for a lower-case form that labels of different numbers share: it would be ambiguous.
            is_unique = number_of_folded.get(folded_label, number) == number
            number_of_folded[folded_label] = number if is_unique else None
        for folded_label, unique_number in number_of_folded.items():
            if unique_number is not None:
                self._others.setdefault(folded_label, unique_number)

    def __missing__(self, label: object) -> int:
        """Return the number of a label in another spelling. Raises KeyError if no spelling fits."""
        number = self._others.get(_respell(label, normalise_spelling))
        return self._others[_respell(label, _fold_case)] if number is None else number

    def __contains__(self, label: object) -> bool:
        """Return whether a label is known in any spelling."""
        return self.get(label) is not None

    def get(self, label: object, default: Any = None) -> Any:
        """Return the number of a label in any spelling, `default` if it has none."""
        try:
            return self[cast("Label", label)]
        except KeyError:
            return default


def _fold_case(label: str) -> str:
    """Return the form of a label that is the same for all its spellings, in upper and in lower case."""
    return normalise_spelling(normalise_spelling(label).casefold())  # a folded character may need another spelling


def _respell(label: object, spelling: Callable[[str], str]) -> object:
    """Return a label after the function `spelling`, or a pair of labels with each after it; anything else unchanged."""
    if type(label) is tuple:
        return tuple(_respell(part, spelling) for part in label)
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
    "objects" and "interactions", which id a number in a foreign file means; where it says nothing, the format decides.
    `box`: see BOXES. `training_counts` has the training triplets of each interaction, or is empty. `digest` and `path`
    are of the file of a dataset of one's own, and empty for the shipped ones."""

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
        """Set `verb_ids`, `object_ids` and `interaction_ids`: the id of each label, found in any spelling."""
        for name, labels in (("verb_ids", self.verbs), ("object_ids", self.objects)):
            ids = {label: index for index, label in enumerate(labels)}
            ids |= {alias: ids[label] for alias, label in self.aliases.items() if label in ids}
            object.__setattr__(self, name, Spelled(ids))  # since the dataclass is frozen
        pairs = Spelled({pair: index for index, pair in enumerate(self.interactions)})
        object.__setattr__(self, "interaction_ids", pairs)

    @property
    def own(self) -> bool:
        """Return whether the dataset is the user's own or another package's, and does not come with hoicli."""
        return bool(self.digest)

    @property
    def signed(self) -> str:
        """Return the dataset's name in signatures: hico, or one's own with a digest (site-3f2a91c4)."""
        return f"{self.name}-{self.digest}" if self.digest else self.name

    @property
    def option(self) -> str:
        """Return a space and the option that names the dataset (" --dataset vcoco"); "" for hico."""
        return "" if self.name == "hico" else f" {arg('dataset', self.path or self.name)}"

    @property
    def subject_ids(self) -> frozenset[int]:
        """Return the object ids of the labels that a subject may have."""
        return frozenset(self.object_ids[label] for label in self.subjects)

    @property
    def qualifier(self) -> str:
        """Return what an interaction has beside its verb: "object", or "role" in a dataset with roles (V-COCO)."""
        return "role" if self.roles else "object"

    @property
    def by_verb(self) -> Vocabulary:
        """Return this dataset with verbs as its classes, (verb, ""), without subsets and splits."""
        verb_classes = tuple((verb, "") for verb in self.verbs)
        return replace(self, interactions=verb_classes, groups={}, subsets={}, unseen={}, split_aliases={})

    @cached_property
    def roles_of(self) -> dict[str, tuple[str, ...]]:
        """Return the roles of each verb, in the dataset's order; an action without an object (walk) has none."""
        roles: dict[str, tuple[str, ...]] = dict.fromkeys(self.verbs, ())
        for verb, role in self.interactions:
            if role:
                roles[verb] += (role,)
        return roles

    def find_roles(self, verb: object) -> tuple[str, ...] | None:
        """Return the roles of a verb in any spelling, as `verb_ids` finds it; None if it is none of the dataset's."""
        number = self.verb_ids.get(verb)  # type: ignore[call-overload]
        return None if number is None else self.roles_of[self.verbs[number]]

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
        """Return the ids of the interactions whose verb says that nothing happens (no_interaction, 80 in HICO-DET)."""
        return frozenset(index for index, (verb, _) in enumerate(self.interactions) if verb == self.no_interaction)

    def interaction_id(self, verb: str, label: str) -> int | None:
        """Return the id of the interaction of two labels, None for none. Raises KeyError for other labels."""
        return self.interaction_ids.get((self.verbs[self.verb_ids[verb]], self.objects[self.object_ids[label]]))

    @property
    def group_of(self) -> dict[int, str]:
        """Return the frequency group ("rare", "non_rare") of each interaction, by the interaction's id."""
        group_by_id: dict[int, str] = {}
        for name, interactions in self.groups.items():
            group_by_id |= dict.fromkeys(interactions, name)
        return group_by_id

    def members(self, subset: str) -> frozenset[int]:
        """Return the ids of the interactions in a subset of the dataset: "full" (all), a frequency group such as
        "rare", or one of `subsets`. Raises KeyError for any other name.

        A dataset with roles also has the sets that V-COCO's protocols average: "agent", the actions by themselves;
        "roles", the actions with a role; "every_action", the latter and those actions that have no role at all."""
        everything = frozenset(range(len(self.interactions)))
        sets = {"full": everything}
        if self.roles:
            # a class of V-COCO is (verb, role), with the role "" for the action by itself
            agent = frozenset(number for number in everything if not self.interactions[number][1])
            verbs_with_roles = {self.interactions[number][0] for number in everything - agent}
            no_roles = frozenset(number for number in agent if self.interactions[number][0] not in verbs_with_roles)
            sets |= {"agent": agent, "roles": everything - agent, "every_action": everything - agent | no_roles}
        return {**sets, **self.groups, **self.subsets}[subset]

    def interactions_of(self, object_name: str) -> list[int]:
        """Return the ids of the interactions with one object, ascending: the order of rows in `detections_XX.mat`."""
        return [index for index, (_, name) in enumerate(self.interactions) if name == object_name]

    def split(self, name: str, argument: str = "split") -> str:
        """Return the name that this dataset has for a zero-shot split. name: in any case, or the papers' (RF-UC or
        UC-RF, NF-UC, UO, UV). Raises `UsageError` for another."""
        lower_name = name.lower()
        # the papers' names have hyphens, as rf-uc, and the dataset's own have underscores
        split_name = self.split_aliases.get(lower_name.replace("_", "-"), lower_name.replace("-", "_"))
        if split_name not in self.unseen:
            known_splits = ", ".join(self.unseen) or "no zero-shot splits"
            letters = lower_name.replace("_", "").replace("-", "")  # INP-CC prints nonrare
            alias = next((alias for alias in self.split_aliases if alias.replace("-", "") == letters), "")
            known_splits += f"; did you mean {alias}?" if alias else ""
            subset = next((group for group in self.groups if group.replace("_", "") == letters), "")
            subset_hint = f"; {name} is no split but a subset, and has rows anyway" if subset else ""
            if f"{subset}_first" in self.unseen:
                subset_hint += f" (the split is {subset}_first)"
            raise UsageError(f"{arg(argument, name)}: {self.name} has {known_splits}{subset_hint}")
        return split_name

    def check_split(self, name: str | None) -> None:
        """Raise `UsageError` if a zero-shot split is named (not None) that this dataset does not have."""
        if name:
            self.split(name)  # raises the error; the name that it returns is not needed here


def normalise(name: str) -> str:
    """Return a label from a foreign file in the records' spelling: stripped, with underscores for spaces, so that
    "dining table\\n" is dining_table."""
    return name.strip().replace(" ", "_") if name.isascii() else normalise_spelling(name)
