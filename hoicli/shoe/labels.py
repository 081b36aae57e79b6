"""How similar two labels are: the sense of a ground-truth label against the candidate senses of a predicted label.

SHOE supplement, section 4: a predicted label has a pool of candidate senses, and the one most similar to the ground
truth's sense is used. If a label has no sense, or both have the same spelling, spelling decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hoicli.records.kit import Floats, Growing, Ints, distinct, expanded, run_starts, starts_of
from hoicli.records.triplets import NOTHING, UNLABELLED, Name, Numbered, Triplets
from hoicli.shoe.table import SimilarityTable

Candidates = Callable[[str, str], Sequence[str]]
"""(label, "v" or "n") -> the senses the label may have, most common first; for the name of a sense, its canonical name
(`synsets.candidates`)."""

GroundTruthSense = Callable[[str, str | None], tuple[str | None, str | None]]
"""(verb, object or None) -> the senses of both in a dataset's curated table (`synsets.ground_truth_sense`)."""


NONE = -1
"""The number of no label, and of no sense."""


def normalised(label: str) -> str:
    """The spelling in which labels are compared: lower case, one underscore between words."""
    return "_".join(label.replace("_", " ").lower().split())


@dataclass(frozen=True)
class TruthClasses:
    """The names of the G triplets of the ground truth.

    classes [C] (verb, object), sorted, the object "" of an action without one; class_of [G] their numbers. verb_row,
    object_row [G] index `verbs` and `objects`: labels with their sense here (None: without one). guessed: the labels
    whose sense is WordNet's first, since neither the record nor the dataset's table gives one."""

    classes: list[tuple[str, str]]
    class_of: Ints
    verb_row: Ints
    object_row: Ints
    verbs: list[Name]
    objects: list[Name]
    guessed: frozenset[str]


def classes_of(truth: Triplets, table: GroundTruthSense, candidates: Candidates) -> TruthClasses:
    """The classes of the ground truth, and the sense of each label: the record's own, else the dataset's `table`'s
    (it may depend on the other label, as in fly a kite and fly an airplane), else the first of `candidates`."""
    width = max(len(truth.objects), 1)
    combinations, which = np.unique(truth.verb * width + truth.label, return_inverse=True)
    verbs, objects = Numbered[Name](), Numbered[Name]()
    guessed: set[str] = set()
    row = np.zeros((len(combinations), 2), dtype=np.int64)
    pairs: list[tuple[str, str]] = [("", "")] * len(combinations)

    def named(name: Name, listed: str | None, pos: str) -> Name:
        label, sense = name
        if label is None:
            return NOTHING
        label = normalised(label)
        if sense is None and listed is not None:
            return label, listed
        first = next(iter(candidates(sense or label, pos)), sense)
        if sense is None and first is not None:
            guessed.add(label)
        return label, first

    called = [(truth.verbs[code // width], truth.objects[code % width]) for code in combinations.tolist()]
    # By name, so that the numbers of rows do not depend on the order of lines.
    for at in sorted(range(len(called)), key=lambda at: [text or "" for name in called[at] for text in name]):
        verb, name = called[at]
        # First as spelled, since SWIG-HOI's names have capitals; then normalised.
        spelled = table((verb[0] or "").strip(), name[0] and name[0].strip())
        alike = table(normalised(verb[0] or ""), name[0] and normalised(name[0]))
        verb_sense, object_sense = spelled[0] or alike[0], spelled[1] or alike[1]
        row[at] = verbs[named(verb, verb_sense, "v")], objects[named(name, object_sense, "n")]
        pairs[at] = (normalised(verb[0] or ""), normalised(name[0] or ""))
    classes = sorted(set(pairs))
    number = {pair: index for index, pair in enumerate(classes)}
    return TruthClasses(
        classes=classes,
        class_of=np.array([number[pair] for pair in pairs], dtype=np.int64)[which],
        verb_row=row[which, 0],
        object_row=row[which, 1],
        verbs=list(verbs),
        objects=list(objects),
        guessed=frozenset(guessed),
    )


def predicted_classes(predictions: Triplets, classes: Sequence[tuple[str, str]]) -> Ints:
    """[P] the class with the same spelling of verb and object as the prediction, -1 for none or without a label; for
    plain mAP."""
    number = {pair: index for index, pair in enumerate(classes)}
    width = max(len(predictions.objects), 1)
    combinations, which = np.unique(predictions.verb * width + predictions.label, return_inverse=True)
    found = [
        -1 if predictions.objects[code % width] == UNLABELLED else
        number.get((normalised(predictions.verbs[code // width][0] or ""),
                    normalised(predictions.objects[code % width][0] or "")), -1)
        for code in combinations.tolist()
    ]  # fmt: skip
    return np.array(found, dtype=np.int64)[which]


class Learned(NamedTuple):
    """What a `Likeness` has computed: its values, the pairs of senses, and the labels without one."""

    value: Floats
    asked: Ints
    missing: Ints
    senseless: set[str]


class Likeness:
    """Similarities of ground-truth names (rows) and predicted names (columns), computed on first use. senseless: the
    labels without a sense, compared by spelling.
    """

    def __init__(
        self, pos: str, truth: Sequence[Name], predicted: Sequence[Name], table: SimilarityTable, candidates: Candidates
    ) -> None:
        """`pos`: "v" for verbs, "n" for objects. Names of the truth are normalised (`classes_of` makes them so)."""
        self._truth, self._table = truth, table
        self._predicted = [(label and normalised(label), sense) for label, sense in predicted]
        pools = {name: pool_of(name, pos, candidates) for name in dict.fromkeys(self._predicted)}
        senses = {sense for _, sense in truth if sense is not None}.union(*pools.values())
        self._names = sorted(senses)
        """All senses; their numbers are in alphabetical order."""
        number: dict[str | None, int] = {None: NONE, **{sense: at for at, sense in enumerate(self._names)}}
        self._in_table = table.numbers(self._names)
        self._sense = np.array([number[sense] for _, sense in truth], dtype=np.int64)
        self._pools = [pools[name] for name in self._predicted]
        self._start = starts_of([len(pool) for pool in self._pools])
        self._members = np.array([number[sense] for pool in self._pools for sense in pool], dtype=np.int64)
        spelled: dict[str | None, int] = Numbered({None: NONE})
        self._label, self._other = (
            np.array([spelled[label] for label, _ in names], dtype=np.int64) for names in (truth, self._predicted)
        )
        self._named = np.array([sense is not None for _, sense in self._predicted], dtype=bool)
        self._value = np.full((len(truth), len(predicted)), np.nan)
        self._asked, self._missing = Growing(pair=np.int64), Growing(pair=np.int64)
        self.senseless: set[str] = set()

    @property
    def asked(self) -> list[tuple[str, str]]:
        """The pairs of senses that were looked up, sorted, and both senses of each."""
        return self._pairs(distinct(self._asked["pair"]))

    @property
    def missing(self) -> list[tuple[str, str]]:
        """Those that the table lacks; they count 0."""
        return self._pairs(distinct(self._missing["pair"]))

    @property
    def asked_count(self) -> int:
        """How many pairs of senses were looked up."""
        return len(distinct(self._asked["pair"]))

    @property
    def learned(self) -> Learned:
        """What `learn` of another one of these names takes."""
        return Learned(self._value, self._asked["pair"], self._missing["pair"], self.senseless)

    def learn(self, other: Learned) -> None:
        """Take over what was computed elsewhere, in a fork for example."""
        self._value = np.where(np.isnan(self._value), other.value, self._value)
        self._asked.add(pair=other.asked)
        self._missing.add(pair=other.missing)
        self.senseless |= other.senseless

    def of(self, row: Ints, column: Ints) -> Floats:
        """[M] the similarity of each pair of names, in [0, 1]."""
        cell = row * self._value.shape[1] + column
        value = self._value.take(cell)
        unknown = np.isnan(value)
        if unknown.any():
            self._fill(distinct(cell[unknown]))
            value = self._value.take(cell)
        return value

    def sense(self, row: int, column: int) -> str | None:
        """The predicted name's sense that is most similar to the truth's, the first of equals; None if spelling
        decides."""
        (label, sense), pool = self._truth[row], self._pools[column]
        if sense is None or not pool:
            return None
        if sense in pool or self._predicted[column] == (label, None):
            return sense
        return pool[int(np.argmax(np.nan_to_num(self._table.values([sense] * len(pool), pool))))]

    def _fill(self, cells: Ints) -> None:
        """Compute cells, given by their numbers."""
        row, column = np.divmod(cells, self._value.shape[1])
        alike = self._label[row] == self._other[column]
        value = alike.astype(np.float64)
        lacking, without = self._sense[row] == NONE, np.diff(self._start)[column] == 0
        named = (self._label[row] != NONE) & (self._other[column] != NONE)
        self.senseless.update(str(self._truth[at][0]) for at in distinct(row[named & lacking]).tolist())
        self.senseless.update(str(self._predicted[at][0]) for at in distinct(column[named & without]).tolist())
        # A label's curated sense may not be among its candidates; equal labels still have similarity 1.
        open_ = np.flatnonzero(named & ~(lacking | without) & (~alike | self._named[column]))
        which, at = expanded(self._start[column[open_]], np.diff(self._start)[column[open_]])
        first, second = self._sense[row[open_]][which], self._members[at]
        shared = np.zeros(len(open_), dtype=bool)
        shared[which[first == second]] = True  # the truth's sense is one that the predicted label may have
        apart = ~shared[which]
        which, first, second = which[apart], first[apart], second[apart]
        found = self._table.at(self._in_table[first], self._in_table[second])
        absent = np.isnan(found)
        pair = np.minimum(first, second) * len(self._names) + np.maximum(first, second)
        self._asked.add(pair=pair)
        self._missing.add(pair=pair[absent])
        begin = run_starts(which)
        value[open_[shared]] = 1.0
        if len(begin):
            value[open_[which[begin]]] = np.maximum.reduceat(np.where(absent, 0.0, found), begin)
        self._value[row, column] = value

    def _pairs(self, codes: Ints) -> list[tuple[str, str]]:
        first, second = np.divmod(codes, max(len(self._names), 1))
        return list(zip(*(map(self._names.__getitem__, side.tolist()) for side in (first, second)), strict=True))


def pool_of(name: Name, pos: str, candidates: Candidates) -> tuple[str, ...]:
    """The senses a predicted name may have."""
    label, sense = name
    if sense:
        return tuple(candidates(sense, pos)) or (sense,)
    return () if label is None else tuple(candidates(normalised(label), pos))
