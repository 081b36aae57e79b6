"""How alike two labels are: the one sense of a ground-truth label against the senses a predicted label may have.

SHOE supplement, section 4: a predicted label has a pool of candidate senses, and the one most similar to the ground
truth's sense stands for it. Where a label has no sense at all, or both are spelled alike, spelling decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hoicli.arrays.kit import starts_of
from hoicli.arrays.triplets import NOTHING, Name, Numbered, Triplets
from hoicli.similarity.table import SimilarityTable

if TYPE_CHECKING:
    from hoicli.arrays.kit import Floats, Ints

Candidates = Callable[[str, str], Sequence[str]]
"""(label, "v" or "n") -> the senses the label may have, commonest first; a sense's name gives that sense under the name
it usually has (`synsets.candidates`)."""

GroundTruthSense = Callable[[str, str | None], tuple[str | None, str | None]]
"""(verb, object or None) -> the senses of both in a dataset's curated table (`synsets.ground_truth_sense`)."""


def normalised(label: str) -> str:
    """The spelling in which labels are compared: lower case, one underscore between words."""
    return "_".join(label.replace("_", " ").lower().split())


@dataclass(frozen=True)
class TruthClasses:
    """What the G triplets of the ground truth are called.

    classes [C] (verb, object), sorted, the object "" of an action without one; class_of [G] their numbers. verb_row,
    object_row [G] number `verbs` and `objects`: labels with the sense they have here (None: they have none). guessed:
    the labels that neither the record nor the dataset's table gave a sense, so that WordNet's first stands for it.
    """

    classes: list[tuple[str, str]]
    class_of: Ints
    verb_row: Ints
    object_row: Ints
    verbs: list[Name]
    objects: list[Name]
    guessed: frozenset[str]


def classes_of(truth: Triplets, table: GroundTruthSense, candidates: Candidates) -> TruthClasses:
    """The classes of the ground truth, and the sense of each label: the record's own, else the dataset's `table`'s
    (it may depend on the other label: one flies a kite otherwise than an airplane), else the first of `candidates`."""
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
    # By name, so that rows are numbered alike whatever order the lines came in.
    for at in sorted(range(len(called)), key=lambda at: [text or "" for name in called[at] for text in name]):
        verb, name = called[at]
        # As spelled, since SWIG-HOI's names have capitals; otherwise as everything else is compared.
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
    """[P] the class whose verb and object are spelled as the prediction's, -1 for none: what plain mAP goes by."""
    number = {pair: index for index, pair in enumerate(classes)}
    width = max(len(predictions.objects), 1)
    combinations, which = np.unique(predictions.verb * width + predictions.label, return_inverse=True)
    found = [
        number.get((normalised(predictions.verbs[code // width][0] or ""),
                    normalised(predictions.objects[code % width][0] or "")), -1)
        for code in combinations.tolist()
    ]  # fmt: skip
    return np.array(found, dtype=np.int64)[which]


class Likeness:
    """Similarities of ground-truth names (rows) and predicted names (columns), computed when first asked for.

    asked, missing: the pairs of senses that were looked up, and those the table does not have (they count 0).
    senseless: the labels without a sense that spelling had to stand in for.
    """

    def __init__(
        self, pos: str, truth: Sequence[Name], predicted: Sequence[Name], table: SimilarityTable, candidates: Candidates
    ) -> None:
        """`pos`: "v" for verbs, "n" for objects. Names of the truth are normalised (`classes_of` makes them so)."""
        self._pos, self._truth, self._table, self._candidates = pos, truth, table, candidates
        self._predicted = [(None if label is None else normalised(label), sense) for label, sense in predicted]
        self._pool: dict[Name, tuple[str, ...]] = {}
        self._value = np.full((len(truth), len(predicted)), np.nan)
        self.asked: set[tuple[str, str]] = set()
        self.missing: set[tuple[str, str]] = set()
        self.senseless: set[str] = set()

    def of(self, row: Ints, column: Ints) -> Floats:
        """[M] the similarity of each pair of names, in [0, 1]."""
        value = self._value[row, column]
        unknown = np.isnan(value)
        if unknown.any():
            width = self._value.shape[1]
            self._fill(np.unique(row[unknown] * width + column[unknown]).tolist())
            value = self._value[row, column]
        return value

    def sense(self, row: int, column: int) -> str | None:
        """The predicted name's sense that is most similar to the truth's, the first of equals; None where spelling
        decides."""
        (label, sense), pool = self._truth[row], self._senses(column)
        if sense is None or not pool:
            return None
        if sense in pool or self._predicted[column] == (label, None):
            return sense
        return pool[int(np.argmax(np.nan_to_num(self._table.values([sense] * len(pool), pool))))]

    def _senses(self, column: int) -> tuple[str, ...]:
        """The senses a predicted name may have."""
        name = self._predicted[column]
        if name not in self._pool:
            label, sense = name
            if sense is not None:
                self._pool[name] = tuple(self._candidates(sense, self._pos)) or (sense,)
            else:
                self._pool[name] = () if label is None else tuple(self._candidates(label, self._pos))
        return self._pool[name]

    def _fill(self, cells: list[int]) -> None:
        width = self._value.shape[1]
        undecided: list[tuple[int, int, tuple[str, ...]]] = []
        for row, column in (divmod(cell, width) for cell in cells):
            decided = self._by_spelling(row, column)
            if decided is None:
                undecided.append((row, column, self._senses(column)))
            else:
                self._value[row, column] = decided
        if not undecided:
            return
        first = [str(self._truth[row][1]) for row, _, pool in undecided for _ in pool]
        second = [sense for _, _, pool in undecided for sense in pool]
        found = self._table.values(first, second)
        absent = np.isnan(found)
        pairs = [(min(pair), max(pair)) for pair in zip(first, second, strict=True)]
        self.asked.update(pairs)
        self.missing.update(pairs[at] for at in np.flatnonzero(absent).tolist())
        starts = starts_of([len(pool) for _, _, pool in undecided])[:-1]
        rows, columns = np.array([cell[:2] for cell in undecided]).T
        self._value[rows, columns] = np.maximum.reduceat(np.where(absent, 0.0, found), starts)

    def _by_spelling(self, row: int, column: int) -> float | None:
        """1 or 0 where no table is needed: no label, equal spelling, no sense, the very sense; None where it is."""
        label, sense = self._truth[row]
        other, named = self._predicted[column]
        if label is None or other is None:
            return float(label is other)
        pool = self._senses(column)
        if sense is None or not pool:
            self.senseless.update(text for text, has in ((label, sense), (other, pool)) if not has)
            return float(label == other)
        # The curated sense of a label may be none of its own candidates; the label is still the same.
        return 1.0 if sense in pool or (named is None and label == other) else None
