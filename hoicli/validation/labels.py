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
from functools import lru_cache
from itertools import pairwise, permutations
from typing import Any, NamedTuple

from hoicli.validation.checks import Finding
from hoicli.vocabulary.datasets import DATASETS, load
from hoicli.vocabulary.labels import Vocabulary
from hoicli.vocabulary.numberings import VCOCO_ORDERS, verb_and_role

ENOUGH_TRIPLETS = 20
ENOUGH_IMAGES = 5
"""Ours: below these nothing is concluded."""
DISTINCT = 1 << 17
"""Different classes that are counted; free text could have any number."""


class TripletClass(NamedTuple):
    """The class of a triplet; no role is "", no object or no label None."""

    verb: str
    role: str = ""
    label: str | None = None


ScoredClass = tuple[int, TripletClass, float]
"""A triplet of a record: its row among the hois, its class and its score."""

# Millions of triplets are of some hundred classes: each is made once.
_class = lru_cache(maxsize=1 << 14)(TripletClass)


@dataclass(frozen=True)
class Reading:
    """Another way to number the labels: `check` is the finding it explains, `apply` gives None where it has no name,
    `option` is what makes `convert` read the file so ("" for none)."""

    check: str
    what: str
    apply: Callable[[TripletClass], TripletClass | None]
    option: str = ""


@dataclass(frozen=True)
class Explanation:
    """A reading that fits better than the labels as they are: why, and how many cases it is about."""

    reading: Reading
    why: str
    count: int


def classes_of(record: Mapping[str, Any]) -> list[ScoredClass]:
    """Every triplet that can be named, whatever else is wrong with the record."""
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
        name = _class(verb, role if type(role) is str else "", label if type(label) is str else None)
        found.append((row, name, score if type(score) is float or type(score) is int else 0.0))
    return found


def best_of(classes: list[ScoredClass]) -> ScoredClass:
    """The triplet with the highest score, the first of equals; there is one at least."""
    return max(classes, key=lambda each: (each[2], -each[0]))


@dataclass
class LabelEvidence:
    """Gathers the classes of a stream; `finding` concludes. Counts are integers, so order is no matter."""

    vocabulary: Vocabulary
    weights: Counter[TripletClass] = field(default_factory=Counter)
    triplets: int = 0
    images: int = 0
    matched: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._readings = list(readings(self.vocabulary))

    def add(self, classes: list[ScoredClass]) -> None:
        """The triplets of a record, weighted by score: what a detector is sure of tells more."""
        self.triplets += len(classes)
        for _, name, score in classes:
            if name in self.weights or len(self.weights) < DISTINCT:
                self.weights[name] += 1 + int(1000 * min(max(score, 0.0), 1.0))

    def compare(self, best: TripletClass, annotated: frozenset[TripletClass]) -> None:
        """The best prediction of an image against the classes annotated there."""
        self.images += 1
        for number, apply in enumerate([_same, *(reading.apply for reading in self._readings)]):
            name = apply(best)
            self.matched[number] += name is not None and comparable(name, self.vocabulary) in annotated

    def finding(self, name: str) -> Finding | None:
        """What is doubtful about the labels of the stream called `name`."""
        total = sum(self.weights.values())
        if not total:
            return None
        other = self._other_dataset(total)
        if other is not None:
            dataset, share = other
            own = self._known(self.vocabulary, total)
            knows = f"{dataset} knows {share:.0%} of the triplets' names, {self.vocabulary.name} {own:.0%}"
            return Finding("another-dataset", self.triplets, f"{name}: {knows}: --dataset {dataset}")
        found = self._explanation(total)
        if found is not None:
            option = found.reading.option
            fix = option and f"convert the file again with {option}: as it is, mAP will be near zero"
            return Finding(found.reading.check, found.count, f"{name}: {found.why}", fix)
        if self.images >= ENOUGH_IMAGES and self.matched[0] < self.images / 20:
            text = f"in {self.matched[0]:,} of {self.images:,} images the best prediction is of an annotated class"
            return Finding("classes-not-annotated", self.images - self.matched[0], f"{name}: {text}")
        return None

    def verdict(self) -> str:
        """Which dataset and which order the labels most likely are, in a few words; "" where there are none."""
        total = sum(self.weights.values())
        if not total:
            return ""
        other = self._other_dataset(total)
        if other is not None:
            return f"labels of {other[0]}"
        found = self._explanation(total)
        return f"labels of {self.vocabulary.name}, {'as they are' if found is None else f'if {found.reading.what}'}"

    def _explanation(self, total: int) -> Explanation | None:
        """The reading that explains the labels better than they explain themselves."""
        return self._by_interactions(total) or self._by_ground_truth()

    def _known(self, vocabulary: Vocabulary, total: int) -> float:
        """The share of the triplets whose verb and object the vocabulary has."""
        known = (
            weight
            for name, weight in self.weights.items()
            if name.verb in vocabulary.verb_ids and (name.label is None or name.label in vocabulary.object_ids)
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

    def _by_interactions(self, total: int) -> Explanation | None:
        """The reading under which the triplets are interactions; a dataset with roles has no such list of objects."""
        if self.vocabulary.roles or self.triplets < ENOUGH_TRIPLETS:
            return None
        own = self._interactions(_same) / total
        shares = [self._interactions(reading.apply) / total for reading in self._readings]
        best = max(range(len(shares)), key=lambda number: shares[number])
        neighbours = shares[best] >= 0.9 and own <= 0.75  # off by one, an object is of the same kind: much still fits
        if shares[best] < max(0.5, 2 * own) and not neighbours:
            return None
        reading = self._readings[best]
        dataset = self.vocabulary.name
        why = f"{own:.0%} of the triplets are {dataset} interactions, {shares[best]:.0%} if {reading.what}"
        return Explanation(reading, why, self.triplets)

    def _interactions(self, apply: Callable[[TripletClass], TripletClass | None]) -> int:
        ids, weight = self.vocabulary.interaction_ids, 0
        for name, count in self.weights.items():
            read = apply(name)
            weight += count if read is not None and (read.verb, read.label) in ids else 0
        return weight

    def _by_ground_truth(self) -> Explanation | None:
        """The reading under which the best predictions are of annotated classes."""
        if self.images < ENOUGH_IMAGES:
            return None
        best = max(range(len(self._readings)), key=lambda number: self.matched[number + 1])
        found = self.matched[best + 1]
        if found < max(self.images / 5, 2 * self.matched[0]):
            return None
        reading = self._readings[best]
        own = f"in {self.matched[0]:,} of {self.images:,} images, in {found:,} if {reading.what}"
        return Explanation(reading, f"the best prediction is of an annotated class {own}", self.images)


def comparable(name: TripletClass, vocabulary: Vocabulary) -> TripletClass:
    """The class as evaluation compares it: where roles make the classes, the object's label is no part of it."""
    return name._replace(label=None) if vocabulary.roles else name._replace(role="")


def _same(name: TripletClass) -> TripletClass:
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
    if vocabulary.name == "vcoco":
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


def _objects(names: Mapping[str, str]) -> Callable[[TripletClass], TripletClass | None]:
    def apply(name: TripletClass) -> TripletClass | None:
        if name.label is None:
            return name
        return name._replace(label=names[name.label]) if name.label in names else None

    return apply


def _verbs(names: Mapping[str, str]) -> Callable[[TripletClass], TripletClass | None]:
    return lambda name: name._replace(verb=names[name.verb]) if name.verb in names else None


def _roles(names: Mapping[tuple[str, str], tuple[str, str]]) -> Callable[[TripletClass], TripletClass | None]:
    return lambda name: TripletClass(*names[name[:2]], name.label) if name[:2] in names else None
