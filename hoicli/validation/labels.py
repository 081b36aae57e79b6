"""Whose labels a dump has, and in which order they were numbered before somebody made names of them.

Two kinds of evidence. Without ground truth: how many of its triplets are interactions of the dataset at all; a misread
order leaves few (one in sixteen of HICO-DET's 117 x 80 pairs is an interaction). With ground truth: how often the best
prediction of an image names a class that is annotated there. Another reading is reported when it explains at least half
of the triplets, or a fifth of the images, and at least twice as many as the labels do as they are (or nine tenths of
the triplets, and they at most three quarters).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from typing import Any

from hoicli.vocabulary.datasets import DATASETS, load
from hoicli.vocabulary.labels import Vocabulary
from hoicli.vocabulary.numberings import VCOCO_ORDERS, verb_and_role

ENOUGH_TRIPLETS = 20
ENOUGH_IMAGES = 5
"""Ours: below these nothing is concluded."""
DISTINCT = 1 << 17
"""Different classes that are counted; free text could have any number."""

Class = tuple[str, str, str | None]
"""(verb, role, label of the object); "" for no role, None for no object or no label."""


@dataclass(frozen=True)
class Reading:
    """Another way to number the labels: `check` is the finding it explains, `apply` gives None where it has no name,
    `option` is what makes `convert` read the file so ("" for none)."""

    check: str
    what: str
    apply: Callable[[Class], Class | None]
    option: str = ""


@dataclass(frozen=True)
class Doubt:
    """What a stream's labels make one doubt: the check, an example, how many cases, and what to do ("": as the check
    has it)."""

    check: str
    example: str
    count: int
    mend: str = ""


@dataclass(frozen=True)
class Best:
    """The best prediction of an image: its class and its row."""

    row: int
    name: Class


def classes_of(record: Mapping[str, Any]) -> list[tuple[int, Class, float]]:
    """(row, class, score) of every triplet that can be named, whatever else is wrong with the record."""
    labels, hois = record.get("labels"), record.get("hois")
    if type(labels) is not list or type(hois) is not list:
        return []
    found = []
    count = len(labels)
    for row, hoi in enumerate(hois):
        if type(hoi) is not dict or type(verb := hoi.get("verb")) is not str:
            continue
        label = labels[index] if type(index := hoi.get("object")) is int and 0 <= index < count else None
        role, score = hoi.get("role", ""), hoi.get("score", 0.0)
        name = (verb, role if type(role) is str else "", label if type(label) is str else None)
        found.append((row, name, score if type(score) in (float, int) else 0.0))
    return found


def best_of(classes: list[tuple[int, Class, float]]) -> Best | None:
    """The class with the highest score, the first of equals."""
    if not classes:
        return None
    row, name, _ = max(classes, key=lambda item: (item[2], -item[0]))
    return Best(row, name)


@dataclass
class LabelEvidence:
    """Gathers the classes of a stream; `findings` concludes. Counts are integers, so order is no matter."""

    vocabulary: Vocabulary
    weights: Counter[Class] = field(default_factory=Counter)
    triplets: int = 0
    images: int = 0
    matched: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._readings = list(readings(self.vocabulary))

    def add(self, classes: list[tuple[int, Class, float]]) -> None:
        """The triplets of a record, weighted by score: what a detector is sure of tells more."""
        self.triplets += len(classes)
        for _, name, score in classes:
            if name in self.weights or len(self.weights) < DISTINCT:
                self.weights[name] += 1 + int(1000 * min(max(score, 0.0), 1.0))

    def compare(self, best: Class, annotated: frozenset[Class]) -> None:
        """The best prediction of an image against the classes annotated there."""
        self.images += 1
        for number, apply in enumerate([_same, *(reading.apply for reading in self._readings)]):
            name = apply(best)
            self.matched[number] += name is not None and self._key(name) in annotated

    def _key(self, name: Class) -> Class:
        return comparable(name, self.vocabulary)

    def findings(self, name: str) -> Iterator[Doubt]:
        """What is doubtful about the stream called `name`."""
        total = sum(self.weights.values())
        if not total:
            return
        other = self._other_dataset(total)
        if other is not None:
            dataset, share = other
            own = self._known(self.vocabulary, total)
            yield Doubt(
                "another-dataset",
                f"{name}: {dataset} knows {share:.0%} of the triplets' names, {self.vocabulary.name} {own:.0%}: "
                f"--dataset {dataset}",
                self.triplets,
            )
            return
        found = self._by_interactions(total) or self._by_ground_truth()
        if found is not None:
            reading, text, count = found
            mend = reading.option and f"convert the file again with {reading.option}: as it is, mAP will be near zero"
            yield Doubt(reading.check, f"{name}: {text}", count, mend)
        elif self.images >= ENOUGH_IMAGES and self.matched[0] < self.images / 20:
            text = f"in {self.matched[0]:,} of {self.images:,} images the best prediction is of an annotated class"
            yield Doubt("classes-not-annotated", f"{name}: {text}", self.images - self.matched[0])

    def verdict(self) -> str:
        """Which dataset and which order the labels most likely are, in a few words; "" where there are none."""
        total = sum(self.weights.values())
        if not total:
            return ""
        other = self._other_dataset(total)
        if other is not None:
            return f"labels of {other[0]}"
        found = self._by_interactions(total) or self._by_ground_truth()
        own = "as they are" if found is None else f"if {found[0].what}"
        return f"labels of {self.vocabulary.name}, {own}"

    def _known(self, vocabulary: Vocabulary, total: int) -> float:
        """The share of the triplets whose verb and object the vocabulary has."""
        known = (
            weight
            for (verb, _, label), weight in self.weights.items()
            if verb in vocabulary.verb_ids and (label is None or label in vocabulary.object_ids)
        )
        return sum(known) / total

    def _other_dataset(self, total: int) -> tuple[str, float] | None:
        """The dataset that knows the names, where this one does not."""
        own = self._known(self.vocabulary, total)
        if own >= 0.9:
            return None
        shares = {name: self._known(load(name), total) for name in DATASETS if name != self.vocabulary.name}
        best = max(shares, key=lambda name: shares[name])
        return (best, shares[best]) if shares[best] >= 0.95 else None

    def _by_interactions(self, total: int) -> tuple[Reading, str, int] | None:
        """The reading under which the triplets are interactions; a dataset with roles has no such list of objects."""
        if self.vocabulary.roles or self.triplets < ENOUGH_TRIPLETS:
            return None
        own = self._interactions(_same) / total
        shares = [self._interactions(reading.apply) / total for reading in self._readings]
        best = max(range(len(shares)), key=lambda number: shares[number])
        neighbours = (
            shares[best] >= 0.9 and own <= 0.75
        )  # off by one, an object is of the same kind, and much still fits
        if shares[best] < max(0.5, 2 * own) and not neighbours:
            return None
        reading = self._readings[best]
        text = (
            f"{own:.0%} of the triplets are {self.vocabulary.name} interactions, {shares[best]:.0%} if {reading.what}"
        )
        return reading, text, self.triplets

    def _interactions(self, apply: Callable[[Class], Class | None]) -> int:
        ids, weight = self.vocabulary.interaction_ids, 0
        for name, count in self.weights.items():
            read = apply(name)
            weight += count if read is not None and (read[0], read[2]) in ids else 0
        return weight

    def _by_ground_truth(self) -> tuple[Reading, str, int] | None:
        """The reading under which the best predictions are of annotated classes."""
        if self.images < ENOUGH_IMAGES:
            return None
        best = max(range(len(self._readings)), key=lambda number: self.matched[number + 1])
        found = self.matched[best + 1]
        if found < max(self.images / 5, 2 * self.matched[0]):
            return None
        reading = self._readings[best]
        text = (
            f"the best prediction is of an annotated class in {self.matched[0]:,} of {self.images:,} images, "
            f"in {found:,} if {reading.what}"
        )
        return reading, text, self.images


def comparable(name: Class, vocabulary: Vocabulary) -> Class:
    """The class as evaluation compares it: where roles make the classes, the object's label is no part of it."""
    verb, role, label = name
    return (verb, role, None) if vocabulary.roles else (verb, "", label)


def _same(name: Class) -> Class:
    return name


def readings(vocabulary: Vocabulary) -> Iterator[Reading]:
    """The ways in which a vocabulary's numbers are mistaken for one another."""
    for what, names, meant in _object_orders(vocabulary):
        option = f"--object-order {meant}" if vocabulary.coco_ids else ""
        yield Reading("another-object-order", what, _objects(names), option)
    verbs = vocabulary.verbs
    for base, other, names in (
        (1, 0, {wrong: right for right, wrong in pairwise(verbs)}),
        (0, 1, dict(pairwise(verbs))),
    ):
        what, option = f"verbs, counted from {base}, were read from {other}", f"--verb-base {base}"
        yield Reading("another-verb-numbering", what, _verbs(names), option if vocabulary.coco_ids else "")
    if vocabulary.roles:
        for wrong, right in permutations(VCOCO_ORDERS, 2):
            order = {
                verb_and_role(read): verb_and_role(meant)
                for read, meant in zip(VCOCO_ORDERS[wrong], VCOCO_ORDERS[right], strict=True)
            }
            what = f"verbs, in the order of {right}, were read in that of {wrong}"
            yield Reading("another-verb-numbering", what, _roles(order), f"--from {right}-vcoco-list")


def _object_orders(vocabulary: Vocabulary) -> Iterator[tuple[str, dict[str, str], str]]:
    """(what happened, name as read -> name as meant, the order meant as `convert --object-order` has it)."""
    objects = vocabulary.objects
    if vocabulary.coco_ids:
        alphabetical = vocabulary.alphabetical_objects
        by_id = vocabulary.coco_names
        in_coco = dict(enumerate(objects))
        what = "objects, in alphabetical order, were read in COCO order"
        yield what, dict(zip(objects, alphabetical, strict=True)), "alphabetical"
        what = "objects, in COCO order, were read in alphabetical order"
        yield what, dict(zip(alphabetical, objects, strict=True)), "coco"
        what = "objects, COCO ids 1-90, were read as places 0-79"
        yield what, {in_coco[number]: name for number, name in by_id.items() if number in in_coco}, "coco-id"
    yield "objects, counted from 1, were read from 0", {wrong: right for right, wrong in pairwise(objects)}, "coco-1"
    yield "objects, counted from 0, were read from 1", dict(pairwise(objects)), "coco"


def _objects(names: Mapping[str, str]) -> Callable[[Class], Class | None]:
    def apply(name: Class) -> Class | None:
        verb, role, label = name
        if label is None:
            return name
        return (verb, role, names[label]) if label in names else None

    return apply


def _verbs(names: Mapping[str, str]) -> Callable[[Class], Class | None]:
    return lambda name: (names[name[0]], *name[1:]) if name[0] in names else None


def _roles(names: Mapping[tuple[str, str], tuple[str, str]]) -> Callable[[Class], Class | None]:
    return lambda name: (*names[name[:2]], name[2]) if name[:2] in names else None
