"""Whose labels a dump has, and in which order they were numbered before somebody made names of them.

Two kinds of evidence. Without ground truth: how many of its triplets are interactions of the dataset at all; a misread
order leaves few (one in sixteen of HICO-DET's 117 x 80 pairs is an interaction). With ground truth: how often the best
prediction of an image names a class that is annotated there. Another reading is reported when it explains at least half
of the triplets, or a fifth of the images, and at least twice as many as the labels do as they are (or nine tenths of
the triplets, and they at most three quarters).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise, permutations

import numpy as np

from hoicli.errors import arg
from hoicli.evaluation.pairing import first_largest
from hoicli.records.kit import Floats, Ints
from hoicli.validation.batches import Checked, Facts, TripletClass
from hoicli.vocabulary.datasets import DATASETS, VCOCO_ORDERS, load, verb_and_role
from hoicli.vocabulary.labels import Vocabulary

ENOUGH_TRIPLETS = 20
ENOUGH_IMAGES = 5
"""Our choice: with fewer triplets or images nothing is concluded."""
DISTINCT = 1 << 17
"""The most classes that are counted; free text could have any number of them."""


@dataclass(frozen=True)
class Reading:
    """A way to number the labels other than the usual one. check: the finding that it explains; what: what happened to
    the numbers, in words; option: the option that makes `convert` read the file so ("" for none). objects, verbs,
    actions (verb, role): each name as read -> the name that is meant."""

    check: str
    what: str
    option: str = ""
    objects: Mapping[str, str] | None = None
    verbs: Mapping[str, str] | None = None
    actions: Mapping[tuple[str, str], tuple[str, str]] | None = None

    def apply(self, name: TripletClass) -> TripletClass | None:
        """Return the class that a class means under this reading, None if the reading has no name for it."""
        verb, role, label = name
        if self.objects is not None and label is not None:
            return TripletClass(verb, role, self.objects[label]) if label in self.objects else None
        if self.verbs is not None:
            return TripletClass(self.verbs[verb], role, label) if verb in self.verbs else None
        if self.actions is not None:
            return TripletClass(*self.actions[verb, role], label) if (verb, role) in self.actions else None
        return name


Explanation = tuple[Reading, str, int]
"""(A reading that fits better than the labels as they are, the reason, the number of cases that it is about)."""


@dataclass
class ClassCounts:
    """The counts of the classes of a stream, integers, so that they do not depend on the order. weights: for the first
    classes that occur, DISTINCT of them at most, the sum of the scores of their triplets, since the classes that a
    detector is sure of tell more; matched: for each reading (0: the labels as they are), the number of images whose
    best prediction is of an annotated class."""

    weights: Counter[TripletClass] = field(default_factory=Counter)
    triplets: int = 0
    images: int = 0
    matched: Counter[int] = field(default_factory=Counter)

    def weigh(self, weights: Iterable[tuple[TripletClass, int]]) -> None:
        """Add to the weights of classes, which come in the order of their first occurrence."""
        for name, weight in weights:
            if name in self.weights or len(self.weights) < DISTINCT:
                self.weights[name] += weight

    def merge(self, other: ClassCounts) -> None:
        """Add the counts of the part that follows, which has fewer than DISTINCT classes."""
        self.weigh(other.weights.items())
        self.triplets += other.triplets
        self.images += other.images
        self.matched.update(other.matched)


class LabelEvidence:
    """Gathers the classes of a stream in `counts`; `doubt` and `verdict` draw the conclusion."""

    def __init__(self, vocabulary: Vocabulary, counts: ClassCounts, truth: Facts | None = None) -> None:
        """truth: the ground truth that the best predictions are compared with."""
        self.vocabulary, self.counts, self._truth = vocabulary, counts, truth
        self._readings = [Reading("", "as they are"), *readings(vocabulary)]
        self._read: dict[TripletClass, dict[TripletClass, list[int]]] = {}

    def add(self, batch: Checked) -> None:
        """Add the triplets of good records."""
        names, place = batch.classes
        self.counts.triplets += len(place)
        total = np.bincount(place, weights=1 + np.floor(1000 * np.clip(_scores(batch), 0, 1)), minlength=len(names))
        self.counts.weigh(zip(names, map(int, total), strict=True))

    def compare(self, batch: Checked, rows: Sequence[int | None]) -> Ints:
        """Count the images whose best prediction is of an annotated class under each reading, and return the
        predictions that were compared: the best one of each image, if its ground truth has any annotation. rows [N]:
        the images' rows in the ground truth."""
        best = first_largest(batch.image_of_hoi, _scores(batch))
        names, place = batch.classes
        compared, matched = [], self.counts.matched
        columns = (best, batch.image_of_hoi[best], place[best])
        for hoi, image, name_place in zip(*(column.tolist() for column in columns), strict=True):
            if annotated := self._annotated_classes(rows[image]):
                compared.append(hoi)
                meant = self._meant(names[name_place])
                for number in chain.from_iterable(meant[each] for each in annotated if each in meant):
                    matched[number] += 1
        self.counts.images += len(compared)
        return np.array(compared, dtype=np.int64)

    def _annotated_classes(self, row: int | None) -> set[TripletClass]:
        """Return the classes that are annotated in an image, given its row in the ground truth."""
        if row is None or self._truth is None:
            return set()
        start, numbers = self._truth.classes
        return set(chain.from_iterable(self._counted[number] for number in numbers[start[row] : start[row + 1]]))

    @cached_property
    def _counted(self) -> list[tuple[TripletClass, ...]]:
        """For each class of the ground truth, the classes that count as annotated where it is."""
        classes = [comparable(name, self.vocabulary) for name in (self._truth.names if self._truth else ())]
        if not self.vocabulary.roles:
            return [(name,) for name in classes]
        return [(name, TripletClass(name.verb)) for name in classes]  # who fills a role of an action does the action

    def _meant(self, name: TripletClass) -> dict[TripletClass, list[int]]:
        """Return the classes that a class may stand for, each with the numbers of the readings that say so."""
        if name not in self._read:
            if len(self._read) >= DISTINCT:
                self._read.clear()
            meanings = self._read[name] = {}
            for number, reading in enumerate(self._readings):
                if (meant := reading.apply(name)) is not None:
                    meanings.setdefault(comparable(meant, self.vocabulary), []).append(number)
        return self._read[name]

    def doubt(self, name: str) -> tuple[str, str, int, str] | None:
        """Return what is doubtful about the labels of the stream called `name`, None if nothing is: (the check, an
        example, the number of cases, what to do if not what the check says)."""
        if not self._total:
            return None
        if self._other_dataset is not None:
            dataset, share = self._other_dataset
            own_share = self._share_in_vocabulary(self.vocabulary)
            knows = f"{dataset} knows {share:.0%} of the triplets' names, {self.vocabulary.name} {own_share:.0%}"
            return "another-dataset", f"{name}: {knows}: {arg('dataset', dataset)}", self.counts.triplets, ""
        explanation = self._explanation
        if explanation is not None:
            reading, why, count = explanation
            fix = reading.option and f"convert the file again with {reading.option}: as it is, mAP will be near zero"
            return reading.check, f"{name}: {why}", count, fix
        if self.counts.images >= ENOUGH_IMAGES and self.counts.matched[0] < self.counts.images / 20:
            matched = f"in {self.counts.matched[0]:,} of {self.counts.images:,} images"
            text = f"{name}: {matched} the best prediction is of an annotated class"
            return "classes-not-annotated", text, self.counts.images - self.counts.matched[0], ""
        return None

    def verdict(self) -> str:
        """Return in a few words which dataset and which order the labels most likely are of; "" if there are no
        labels."""
        if not self._total:
            return ""
        if self._other_dataset is not None:
            return f"labels of {self._other_dataset[0]}"
        explanation = self._explanation
        return (
            f"labels of {self.vocabulary.name}, {'as they are' if explanation is None else f'if {explanation[0].what}'}"
        )

    @cached_property
    def _total(self) -> int:
        """The weight of all triplets; asked for once all are counted."""
        return sum(self.counts.weights.values())

    @cached_property
    def _explanation(self) -> Explanation | None:
        """The reading that explains the labels better than they do as they are, None if there is none."""
        return self._explain_by_interactions() or self._by_ground_truth()

    def _share_in_vocabulary(self, vocabulary: Vocabulary) -> float:
        """Return the share of the triplets whose verb and object the vocabulary has."""
        in_vocabulary = (
            weight
            for name, weight in self.counts.weights.items()
            if name.verb in vocabulary.verb_ids and (name.label is None or name.label in vocabulary.object_ids)
        )
        return sum(in_vocabulary) / self._total

    @cached_property
    def _other_dataset(self) -> tuple[str, float] | None:
        """The dataset that knows the labels' names, if the vocabulary does not, and the share of triplets that it
        knows."""
        own_share = self._share_in_vocabulary(self.vocabulary)
        if own_share >= 0.9:
            return None
        shares = {name: self._share_in_vocabulary(load(name)) for name in DATASETS if name != self.vocabulary.name}
        best = max(shares, key=lambda name: shares[name])
        return (best, shares[best]) if shares[best] >= 0.95 else None

    def _explain_by_interactions(self) -> Explanation | None:
        """Return the reading under which the triplets are interactions of the dataset. A dataset with roles does not
        say which objects an action may have, so it has no such reading."""
        if self.vocabulary.roles or self.counts.triplets < ENOUGH_TRIPLETS:
            return None
        shares = [self._interactions(reading) / self._total for reading in self._readings]
        own_share, best = shares[0], max(range(1, len(shares)), key=lambda number: shares[number])
        # Numbers that are off by one name an object of the same kind, so many triplets still fit as they are.
        neighbours = shares[best] >= 0.9 and own_share <= 0.75
        if shares[best] < max(0.5, 2 * own_share) and not neighbours:
            return None
        reading = self._readings[best]
        dataset = self.vocabulary.name
        why = f"{own_share:.0%} of the triplets are {dataset} interactions, {shares[best]:.0%} if {reading.what}"
        return reading, why, self.counts.triplets

    def _interactions(self, reading: Reading) -> int:
        """Return the weight of the triplets that a reading makes interactions of the dataset."""
        classes, weight = frozenset(self.vocabulary.interactions), 0
        for name, count in self.counts.weights.items():
            read = reading.apply(name)
            weight += count if read is not None and (read.verb, read.label) in classes else 0
        return weight

    def _by_ground_truth(self) -> Explanation | None:
        """Return the reading under which the best predictions are of annotated classes, None if none explains
        enough."""
        if self.counts.images < ENOUGH_IMAGES:
            return None
        best = max(range(1, len(self._readings)), key=lambda number: self.counts.matched[number])
        matched = self.counts.matched[best]
        if matched < max(self.counts.images / 5, 2 * self.counts.matched[0]):
            return None
        reading = self._readings[best]
        counts_text = (
            f"in {self.counts.matched[0]:,} of {self.counts.images:,} images, in {matched:,} if {reading.what}"
        )
        return reading, f"the best prediction is of an annotated class {counts_text}", self.counts.images


def _scores(batch: Checked) -> Floats:
    """Return the scores [T], 0 for a missing one."""
    return np.nan_to_num(batch.score, nan=0.0)


def comparable(name: TripletClass, vocabulary: Vocabulary) -> TripletClass:
    """Return the class as evaluation compares it: in a dataset with roles the object's label is no part of it."""
    return TripletClass(name.verb, name.role) if vocabulary.roles else TripletClass(name.verb, "", name.label)


def readings(vocabulary: Vocabulary) -> Iterator[Reading]:
    """Yield the ways in which a vocabulary's numbers are mistaken for one another."""
    yield from _object_readings(vocabulary)
    yield from _verb_readings(vocabulary)
    if vocabulary.name == "vcoco":
        yield from _action_readings()


def _object_readings(vocabulary: Vocabulary) -> Iterator[Reading]:
    """Yield the ways in which the numbers of objects are mistaken: for those of another order, or off by one."""
    objects = vocabulary.objects
    mistakes: list[tuple[str, dict[str, str], str]] = []  # what happened, name as read -> meant, the order meant
    if vocabulary.coco_ids:
        coco_to_alphabetical = dict(zip(objects, vocabulary.alphabetical_objects, strict=True))
        in_coco = dict(enumerate(objects))
        alphabetical_to_coco = {meant: read for read, meant in coco_to_alphabetical.items()}
        place_to_coco_id = {
            in_coco[number]: name for number, name in vocabulary.coco_names.items() if number in in_coco
        }
        mistakes = [
            ("objects, in alphabetical order, were read in COCO order", coco_to_alphabetical, "alphabetical"),
            ("objects, in COCO order, were read in alphabetical order", alphabetical_to_coco, "coco"),
            ("objects, COCO ids 1-90, were read as places 0-79", place_to_coco_id, "coco-id"),
        ]
    mistakes += [
        ("objects, counted from 1, were read from 0", _before(objects), "coco-1"),
        ("objects, counted from 0, were read from 1", dict(pairwise(objects)), "coco"),
    ]
    for what, names, order in mistakes:
        option = f"--object-order {order}" if vocabulary.coco_ids else ""
        yield Reading("another-object-order", what, option, objects=names)


def _verb_readings(vocabulary: Vocabulary) -> Iterator[Reading]:
    """Yield the ways in which the numbers of verbs are off by one."""
    verbs = vocabulary.verbs
    for base, names in ((1, _before(verbs)), (0, dict(pairwise(verbs)))):
        what, option = f"verbs, counted from {base}, were read from {1 - base}", f"--verb-base {base}"
        yield Reading("another-verb-numbering", what, option if vocabulary.coco_ids else "", verbs=names)


def _action_readings() -> Iterator[Reading]:
    """Yield the ways in which one published order of V-COCO's actions is mistaken for another."""
    # the files of fredzzhang/vcoco (UPT, PViC) have the actions with an object, except point
    qpic = VCOCO_ORDERS["qpic"]
    pocket = tuple(entry for entry in qpic if verb_and_role(entry)[1] and entry != "point_instr")
    for wrong, right in (*permutations(VCOCO_ORDERS, 2), *((order, "fredzzhang/vcoco") for order in VCOCO_ORDERS)):
        wrongly, rightly = VCOCO_ORDERS[wrong], VCOCO_ORDERS.get(right, pocket)
        meant_of = dict(zip(map(verb_and_role, wrongly), map(verb_and_role, rightly), strict=False))
        what = f"verbs, in the order of {right}, were read in that of {wrong}"
        option = f"--from {right}-vcoco-list" if right in VCOCO_ORDERS else ""
        yield Reading("another-verb-numbering", what, option, actions=meant_of)


def _before(names: Sequence[str]) -> dict[str, str]:
    """Return for each name the one before it."""
    return {after: before for before, after in pairwise(names)}
