"""Which dataset the labels of a file of predictions are from, and whether their numbers were read in the wrong order
when somebody turned them into names.

Two kinds of evidence. Without ground truth: how many of its triplets are interactions of the dataset at all; a misread
order leaves few (one in sixteen of HICO-DET's 117 x 80 pairs is an interaction). With ground truth: how often the best
prediction of an image names a class that is annotated there. Another reading is reported when it explains at least half
of the triplets, or a fifth of the images, and at least twice as many as the labels do as they are (or nine tenths of
the triplets, and they at most three quarters)."""

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
    """A mistake by which numbers of labels may have been turned into wrong names.

    check: the check of `validate` that reports it; what: what happened to the numbers, in words; option: the option
    with which `convert` reads the file rightly ("" for none). objects, verbs, actions (verb, role): the name that is
    meant by each name as it was read; None for what the mistake does not concern."""

    check: str
    what: str
    option: str = ""
    objects: Mapping[str, str] | None = None
    verbs: Mapping[str, str] | None = None
    actions: Mapping[tuple[str, str], tuple[str, str]] | None = None

    def apply(self, name: TripletClass) -> TripletClass | None:
        """Return the class that is meant by a class, if names were misread in this way; None if it means none."""
        verb, role, label = name
        if self.objects is not None and label is not None:
            return TripletClass(verb, role, self.objects[label]) if label in self.objects else None
        if self.verbs is not None:
            return TripletClass(self.verbs[verb], role, label) if verb in self.verbs else None
        if self.actions is not None:
            return TripletClass(*self.actions[verb, role], label) if (verb, role) in self.actions else None
        return name


Explanation = tuple[Reading, str, int]
"""A reading that fits better than the labels as they are, why it does in words, and the number of triplets or images
that this is about."""


@dataclass
class ClassCounts:
    """How often the classes of a stream occur, in whole numbers, whose sums do not depend on the order.

    weights: for each class (of the first DISTINCT that occur) the sum over its triplets of 1 + 1000 * score, since the
    classes that a detector is sure of tell more. triplets: how many there are. images: how many were compared with the
    ground truth; matched: for each reading (0: the labels as they are), how often the best prediction is of an
    annotated class."""

    weights: Counter[TripletClass] = field(default_factory=Counter)
    triplets: int = 0
    images: int = 0
    matched: Counter[int] = field(default_factory=Counter)

    def weigh(self, weights: Iterable[tuple[TripletClass, int]]) -> None:
        """Add to the weights of classes. weights: (class, weight), in the order in which the classes first occur."""
        for name, weight in weights:
            if name in self.weights or len(self.weights) < DISTINCT:
                self.weights[name] += weight

    def merge(self, other: ClassCounts) -> None:
        """Add the counts of the next part of the stream, which has fewer than DISTINCT classes."""
        self.weigh(other.weights.items())
        self.triplets += other.triplets
        self.images += other.images
        self.matched.update(other.matched)


class LabelEvidence:
    """Gathers the classes of a stream in `counts`; `doubt` and `verdict` say which dataset and order they fit."""

    def __init__(self, vocabulary: Vocabulary, counts: ClassCounts, truth: Facts | None = None) -> None:
        """vocabulary: that the labels should be of; counts: what to add to; truth: what the best predictions meet."""
        self.vocabulary, self.counts, self._truth = vocabulary, counts, truth
        self._readings = [Reading("", "as they are"), *readings(vocabulary)]
        # what `_meanings` returned for each class, so that it is computed once
        self._meanings_by_class: dict[TripletClass, dict[TripletClass, list[int]]] = {}

    def add(self, batch: Checked) -> None:
        """Add the classes of a batch of good records to the counts."""
        names, place = batch.classes
        self.counts.triplets += len(place)
        # sure predictions count more; whole numbers, so that sums do not depend on their order
        weights = 1 + np.floor(1000 * np.clip(_scores(batch), 0, 1))
        total = np.bincount(place, weights=weights, minlength=len(names))
        self.counts.weigh(zip(names, map(int, total), strict=True))

    def compare(self, batch: Checked, rows: Sequence[int | None]) -> Ints:
        """Count in how many images the best prediction is of an annotated class, under each reading (a way in
        which its label may have been misread; the first is that it was not). Return the predictions that were compared:
        the best one of each image whose ground truth has any annotation. rows [N]: the images' rows in the ground
        truth, None for an image it lacks."""
        best = first_largest(batch.image_of_hoi, _scores(batch))
        names, place = batch.classes
        compared = []
        for hoi in best.tolist():
            annotated = self._annotated_classes(rows[int(batch.image_of_hoi[hoi])])
            if not annotated:
                continue
            compared.append(hoi)
            # {class that it may mean: indices of the readings by which it means that}
            readings_by_class = self._meanings(names[int(place[hoi])])
            for class_ in annotated & readings_by_class.keys():
                self.counts.matched.update(readings_by_class[class_])
        self.counts.images += len(compared)
        return np.array(compared, dtype=np.int64)

    def _annotated_classes(self, row: int | None) -> set[TripletClass]:
        """Return the classes that are annotated in an image. row: its row in the ground truth, None for none."""
        if row is None or self._truth is None:
            return set()
        start, numbers = self._truth.classes
        class_numbers = numbers[start[row] : start[row + 1]]
        return set(chain.from_iterable(self._implied_classes[number] for number in class_numbers))

    @cached_property
    def _implied_classes(self) -> list[tuple[TripletClass, ...]]:
        """For each class of the ground truth, by its number, the classes that are right where it is annotated."""
        classes = [comparable(name, self.vocabulary) for name in (self._truth.names if self._truth else ())]
        if not self.vocabulary.roles:
            return [(name,) for name in classes]
        return [(name, TripletClass(name.verb)) for name in classes]  # who fills a role of an action does the action

    def _meanings(self, name: TripletClass) -> dict[TripletClass, list[int]]:
        """Return the classes that a predicted class may mean, each with the numbers of the readings by which it does
        so."""
        if name not in self._meanings_by_class:
            if len(self._meanings_by_class) >= DISTINCT:
                self._meanings_by_class.clear()  # bounds the memory
            meanings = self._meanings_by_class[name] = {}
            for number, reading in enumerate(self._readings):
                meant = reading.apply(name)
                if meant is not None:
                    meanings.setdefault(comparable(meant, self.vocabulary), []).append(number)
        return self._meanings_by_class[name]

    def doubt(self, name: str) -> tuple[str, str, int, str] | None:
        """Return what is doubtful about the labels of a stream, as the parameters of `Findings.add`: the code of a
        check, a text, the number of cases, and what to do ("" for what CHECKS says). None if nothing is."""
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
        # matched[0]: by the first reading, the labels as they are
        if self.counts.images >= ENOUGH_IMAGES and self.counts.matched[0] < self.counts.images / 20:
            matched = f"in {self.counts.matched[0]:,} of {self.counts.images:,} images"
            text = f"{name}: {matched} the best prediction is of an annotated class"
            return "classes-not-annotated", text, self.counts.images - self.counts.matched[0], ""
        return None

    def verdict(self) -> str:
        """Return in a few words which dataset the labels most likely are of, and in which order they were read."""
        if not self._total:
            return ""
        if self._other_dataset is not None:
            dataset, _ = self._other_dataset
            return f"labels of {dataset}"
        if self._explanation is None:
            if self._share_in_vocabulary(self.vocabulary) < 0.5:
                return f"most labels are none of {self.vocabulary.name}"
            return f"labels of {self.vocabulary.name}, as they are"
        reading, _, _ = self._explanation
        return f"labels of {self.vocabulary.name}, if {reading.what}"

    @cached_property
    def _total(self) -> int:
        """The weight of all triplets. Only to be read when all are added."""
        return sum(self.counts.weights.values())

    @cached_property
    def _explanation(self) -> Explanation | None:
        """A reading that fits the labels better than they do as they are, None if there is none."""
        return self._explain_by_interactions() or self._explain_by_ground_truth()

    def _share_in_vocabulary(self, vocabulary: Vocabulary) -> float:
        """Return the share of the triplets, by weight, whose verb and object a vocabulary has."""
        in_vocabulary = (
            weight
            for name, weight in self.counts.weights.items()
            if name.verb in vocabulary.verb_ids and (name.label is None or name.label in vocabulary.object_ids)
        )
        return sum(in_vocabulary) / self._total

    @cached_property
    def _other_dataset(self) -> tuple[str, float] | None:
        """Another dataset that knows nearly all labels, if the vocabulary does not, and the share of triplets, by
        weight, whose names it knows; None if there is none."""
        own_share = self._share_in_vocabulary(self.vocabulary)
        if own_share >= 0.9:
            return None
        shares = {name: self._share_in_vocabulary(load(name)) for name in DATASETS if name != self.vocabulary.name}
        best = max(shares, key=lambda name: shares[name])
        return (best, shares[best]) if shares[best] >= 0.95 else None

    def _explain_by_interactions(self) -> Explanation | None:
        """Return the reading by which most triplets are interactions of the dataset, None if none fits much better than
        the labels as they are. A dataset with roles does not say which objects an action may have, so it has none."""
        if self.vocabulary.roles or self.counts.triplets < ENOUGH_TRIPLETS:
            return None
        shares = [self._interaction_weight(reading) / self._total for reading in self._readings]
        # the first reading is that of the labels as they are
        own_share, best = shares[0], max(range(1, len(shares)), key=lambda number: shares[number])
        # Numbers that are off by one name an object of the same kind, so many triplets still fit as they are.
        neighbours = shares[best] >= 0.9 and own_share <= 0.75
        if shares[best] < max(0.5, 2 * own_share) and not neighbours:
            return None
        reading = self._readings[best]
        dataset = self.vocabulary.name
        why = f"{own_share:.0%} of the triplets are {dataset} interactions, {shares[best]:.0%} if {reading.what}"
        return reading, why, self.counts.triplets

    def _interaction_weight(self, reading: Reading) -> int:
        """Return the weight of the triplets that are interactions of the dataset by a reading."""
        interactions, total = frozenset(self.vocabulary.interactions), 0
        for name, weight in self.counts.weights.items():
            meant = reading.apply(name)
            if meant is not None and (meant.verb, meant.label) in interactions:
                total += weight
        return total

    def _explain_by_ground_truth(self) -> Explanation | None:
        """Return the reading by which most best predictions are of annotated classes, None if none fits much better
        than the labels as they are."""
        if self.counts.images < ENOUGH_IMAGES:
            return None
        best = max(range(1, len(self._readings)), key=lambda number: self.counts.matched[number])
        matched = self.counts.matched[best]  # matched[0]: by the first reading, the labels as they are
        if matched < max(self.counts.images / 5, 2 * self.counts.matched[0]):
            return None
        reading = self._readings[best]
        counts_text = (
            f"in {self.counts.matched[0]:,} of {self.counts.images:,} images, in {matched:,} if {reading.what}"
        )
        return reading, f"the best prediction is of an annotated class {counts_text}", self.counts.images


def _scores(batch: Checked) -> Floats:
    """Return the scores of a batch's triplets [T], 0 for a missing one."""
    return np.nan_to_num(batch.score, nan=0.0)


def comparable(name: TripletClass, vocabulary: Vocabulary) -> TripletClass:
    """Return a class without what evaluation does not compare: with roles the object's label, else the role."""
    return TripletClass(name.verb, name.role) if vocabulary.roles else TripletClass(name.verb, "", name.label)


def readings(vocabulary: Vocabulary) -> Iterator[Reading]:
    """Yield the ways in which the numbers of a dataset's labels are commonly mistaken for one another."""
    yield from _object_readings(vocabulary)
    verbs = vocabulary.verbs
    for base, names in ((1, _before(verbs)), (0, dict(pairwise(verbs)))):  # off by one
        what, option = f"verbs, counted from {base}, were read from {1 - base}", f"--verb-base {base}"
        yield Reading("another-verb-numbering", what, option if vocabulary.coco_ids else "", verbs=names)
    if vocabulary.name == "vcoco":
        yield from _action_readings()


def _object_readings(vocabulary: Vocabulary) -> Iterator[Reading]:
    """Yield the ways in which the numbers of objects are mistaken: for those of another order, or off by one."""
    objects = vocabulary.objects
    # what happened in words; the meant name by the name that was read; the order for --object-order
    mistakes: list[tuple[str, dict[str, str], str]] = []
    if vocabulary.coco_ids:
        # each maps the name that was read to the name that was meant; the vocabulary's own order is COCO's
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


def _action_readings() -> Iterator[Reading]:
    """Yield the ways in which the numbers of actions in one published order of V-COCO are read in another order."""
    # The files of fredzzhang/vcoco (UPT, PViC) have the actions with an object, except point.
    qpic = VCOCO_ORDERS["qpic"]
    fredzzhang = tuple(entry for entry in qpic if verb_and_role(entry)[1] and entry != "point_instr")
    for wrong, right in (*permutations(VCOCO_ORDERS, 2), *((order, "fredzzhang/vcoco") for order in VCOCO_ORDERS)):
        wrongly, rightly = VCOCO_ORDERS[wrong], VCOCO_ORDERS.get(right, fredzzhang)
        # the orders may differ in length: numbers beyond the shorter one were not read
        meant_of = dict(zip(map(verb_and_role, wrongly), map(verb_and_role, rightly), strict=False))
        what = f"verbs, in the order of {right}, were read in that of {wrong}"
        option = f"--from {right}-vcoco-list" if right in VCOCO_ORDERS else ""
        yield Reading("another-verb-numbering", what, option, actions=meant_of)


def _before(names: Sequence[str]) -> dict[str, str]:
    """Return a dict from each name, except the first, to the one before it."""
    return {after: before for before, after in pairwise(names)}
