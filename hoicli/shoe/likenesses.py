"""How similar two labels are: the sense of a ground-truth label against the candidate senses of a predicted label.

SHOE supplement, section 4: a predicted label has a pool of candidate senses, and the one most similar to the ground
truth's sense is used. If a label has no sense, or both have the same spelling, spelling decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from hoicli.evaluation.pairing import counterparts
from hoicli.records.kit import Floats, Ints, distinct, run_starts, starts_of
from hoicli.records.triplets import NOTHING, UNLABELLED, Name, Numbered, Triplets
from hoicli.shoe.similarity_table import Pair, SimilarityTable
from hoicli.vocabulary.labels import normalise_spelling as in_one_spelling

Candidates = Callable[[str, str], Sequence[str]]
"""(label, "v" or "n") -> the senses the label may have, most common first; for the name of a sense, its canonical name
(`wordnet.senses.candidates`)."""

GroundTruthSense = Callable[[str, str | None], tuple[str | None, str | None]]
"""(verb, object or None) -> the senses of both in a dataset's curated table (`wordnet.senses.ground_truth_sense`)."""


NONE = -1
"""The number that stands for "no label" and for "no sense"."""


def normalise(label: str) -> str:
    """Return a label as labels are compared: lower case, one underscore between words, a keyboard's characters."""
    return in_one_spelling(label).lower()


@dataclass(frozen=True)
class TruthClasses:
    """The classes of the G ground-truth triplets, and the senses of their labels.

    classes [C]: (verb, object), sorted, with the object "" for an action without one; class_of [G]: each triplet's
    class number. verb_row, object_row [G] index `verbs` and `objects`: labels with their sense here (None: without
    one).
    """

    classes: list[tuple[str, str]]
    class_of: Ints
    verb_row: Ints
    object_row: Ints
    verbs: list[Name]
    objects: list[Name]


def classes_of(truth: Triplets, table: GroundTruthSense, candidates: Candidates) -> TruthClasses:
    """Return the classes of the ground truth, with the sense of each label: the record's own, else the one in the
    dataset's `table` (it may depend on the other label, as in fly a kite and fly an airplane), else the first of
    `candidates`."""
    width = max(len(truth.objects), 1)
    # a number for each (verb, label) that occurs; `which` has the place of each triplet's own among them
    codes, pair_of_hoi = np.unique(truth.verb * width + truth.label, return_inverse=True)
    pair_names = [(truth.verbs[code // width], truth.objects[code % width]) for code in codes.tolist()]
    named = named_pairs(pair_names, table, candidates)
    verbs, objects = Numbered[Name](), Numbered[Name]()
    row = np.zeros((len(pair_names), 2), dtype=np.int64)
    # By name, so that the numbers of rows do not depend on the order of lines.
    for pair_number in sorted(
        range(len(pair_names)), key=lambda number: [text or "" for text in chain.from_iterable(pair_names[number])]
    ):
        row[pair_number] = verbs[named[pair_number][0]], objects[named[pair_number][1]]
    pairs = [(verb or "", name or "") for (verb, _), (name, _) in named]
    classes = sorted(set(pairs))
    number = {pair: index for index, pair in enumerate(classes)}
    return TruthClasses(
        classes=classes,
        class_of=np.array([number[pair] for pair in pairs], dtype=np.int64)[pair_of_hoi],
        verb_row=row[pair_of_hoi, 0],
        object_row=row[pair_of_hoi, 1],
        verbs=list(verbs),
        objects=list(objects),
    )


def named_pairs(
    pair_names: Iterable[tuple[Name, Name]], table: GroundTruthSense, candidates: Candidates
) -> list[tuple[Name, Name]]:
    """Return (verb, object) of each pair, each under its normalised label and with its sense, as `classes_of` says."""

    def with_sense(name: Name, listed: str | None, pos: str) -> Name:
        label, sense = name
        if label is None:
            return NOTHING
        label = normalise(label)
        if sense is None and listed is not None:
            return label, listed
        return label, next(iter(candidates(sense or label, pos)), sense)

    pairs = []
    for verb, name in pair_names:
        # First as spelled, since SWIG-HOI's names have capitals; then normalised.
        spelled = table((verb[0] or "").strip(), name[0] and name[0].strip())
        normalised = table(normalise(verb[0] or ""), name[0] and normalise(name[0]))
        verb_sense, object_sense = spelled[0] or normalised[0], spelled[1] or normalised[1]
        pairs.append((with_sense(verb, verb_sense, "v"), with_sense(name, object_sense, "n")))
    return pairs


def predicted_classes(predictions: Triplets, classes: Sequence[tuple[str, str]]) -> Ints:
    """Return [P]: the class with the same spelling of verb and object as each prediction, -1 for none or without a
    label; for plain mAP."""
    verbs, objects = Numbered[str](), Numbered[str]()
    class_numbers = verbs.numbers_of([verb for verb, _ in classes]), objects.numbers_of([name for _, name in classes])
    others, width = len(verbs), len(objects) + 1  # the last number stands for all names that no class has
    verb = np.array([verbs.get(normalise(label or ""), others) for label, _ in predictions.verbs], dtype=np.int64)
    object_ = np.array([
        width - 1 if name == UNLABELLED else objects.get(normalise(name[0] or ""), width - 1)
        for name in predictions.objects
    ], dtype=np.int64)  # fmt: skip
    class_of = np.full((others + 1, width), -1)
    class_of[class_numbers] = np.arange(len(classes))
    return class_of[verb[:, np.newaxis], object_][predictions.verb, predictions.label]


class Likeness:
    """Similarities between ground-truth names (rows) and predicted names (columns), for those that share an image.
    asked: the pairs of senses that are needed, sorted; missing: those of them that the table lacks, which count 0;
    senseless: the labels without a sense, which are compared by spelling. Call `rate` with the table first; then
    `look_up` and `sense` answer."""

    def __init__(
        self, pos: str, truth: Sequence[Name], predicted: Sequence[Name], candidates: Candidates, met: tuple[Ints, Ints]
    ) -> None:
        """Find the pairs of senses to look up, and the similarities that spelling decides. pos: "v" for verbs, "n" for
        objects. truth: names that are normalised (`classes_of` makes them so). met: the rows and columns of the names
        that share an image, each two once."""
        self._pos, self._truth = pos, truth
        self._predicted = [(label and normalise(label), sense) for label, sense in predicted]
        pools = {name: pool_of(name, pos, candidates) for name in dict.fromkeys(self._predicted)}
        self._names = sorted({sense for _, sense in truth if sense is not None}.union(*pools.values()))
        """All senses; their numbers are in alphabetical order."""
        number: dict[str | None, int] = {None: NONE, **{sense: place for place, sense in enumerate(self._names)}}
        self._pools = [pools[name] for name in self._predicted]
        self._sizes = np.array([len(pool) for pool in self._pools], dtype=np.int64)
        self._members = np.array([number[sense] for sense in chain.from_iterable(self._pools)], dtype=np.int64)
        self._sense = np.array([number[sense] for _, sense in truth], dtype=np.int64)
        spelled: dict[str | None, int] = Numbered({None: NONE})
        label, predicted_label = (
            np.array([spelled[text] for text, _ in names], dtype=np.int64) for names in (truth, self._predicted)
        )
        states_sense = np.array([sense is not None for _, sense in self._predicted], dtype=bool)

        row, column = met
        alike = label[row] == predicted_label[column]
        no_sense, no_candidates = self._sense[row] == NONE, self._sizes[column] == 0
        labelled = (label[row] != NONE) & (predicted_label[column] != NONE)
        self.senseless = {str(truth[name][0]) for name in distinct(row[labelled & no_sense]).tolist()}
        self.senseless |= {
            str(self._predicted[name][0]) for name in distinct(column[labelled & no_candidates]).tolist()
        }
        self._value = np.full((len(truth), len(predicted)), np.nan)
        self._value[row, column] = alike
        # A label's curated sense may not be among its candidates; equal labels still have similarity 1.
        by_sense = labelled & ~(no_sense | no_candidates) & (~alike | states_sense[column])
        self._row, self._column = row[by_sense], column[by_sense]
        shared = np.zeros(len(self._row), dtype=bool)
        codes = [np.zeros(0, dtype=np.int64)]
        for which, first, second in self._compare_pools():
            shared[which[first == second]] = True  # the truth's sense is one that the predicted label may have
            apart = ~shared[which]
            codes.append(distinct(self._codes(first[apart], second[apart])))
        self._value[self._row[shared], self._column[shared]] = 1.0
        self._row, self._column = self._row[~shared], self._column[~shared]
        self.asked = self._pairs(codes)
        self.missing: list[Pair] = []

    def rate(self, table: SimilarityTable) -> None:
        """Take the similarities of the pairs that were asked for; names are as similar as their most similar senses."""
        self._table, numbers = table, table.numbers(self._names)
        codes = [np.zeros(0, dtype=np.int64)]
        for which, first, second in self._compare_pools():
            similarity = table.look_up(numbers[first], numbers[second])
            absent = np.isnan(similarity)
            codes.append(distinct(self._codes(first[absent], second[absent])))
            begin = run_starts(which)
            names = which[begin]
            self._value[self._row[names], self._column[names]] = np.maximum.reduceat(
                np.where(absent, 0.0, similarity), begin
            )
        self.missing = self._pairs(codes)

    def _compare_pools(self) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield every comparison of a ground truth's sense with a sense of a predicted name's pool, as many as memory
        allows at a time: (place among the names compared by senses, the truth's sense, the predicted name's sense)."""
        start, count = starts_of(self._sizes)[self._column], self._sizes[self._column]
        for which, member in counterparts(start, count):
            if len(which):
                yield which, self._sense[self._row[which]], self._members[member]

    def _codes(self, first: Ints, second: Ints) -> Ints:
        """Return a number for each pair of senses, the same for both orders."""
        return np.minimum(first, second) * len(self._names) + np.maximum(first, second)

    def _pairs(self, codes: Sequence[Ints]) -> list[Pair]:
        sides = np.divmod(distinct(np.concatenate(codes)), max(len(self._names), 1))
        names = (map(self._names.__getitem__, side.tolist()) for side in sides)
        return [(self._pos, a, b) for a, b in zip(*names, strict=True)]

    def look_up(self, row: Ints, column: Ints) -> Floats:
        """Return [M]: the similarity of each pair of names, in [0, 1]."""
        return self._value.take(row * self._value.shape[1] + column)

    def sense(self, row: int, column: int) -> str | None:
        """Return the predicted name's sense that is most similar to the truth's, the first of equally similar ones;
        None if spelling decides."""
        (label, sense), pool = self._truth[row], self._pools[column]
        if sense is None or not pool:
            return None
        if sense in pool or self._predicted[column] == (label, None):
            return sense
        return pool[int(np.argmax(np.nan_to_num(self._table.values([sense] * len(pool), pool))))]


def likenesses(
    truth: Triplets, predictions: Triplets, classes: TruthClasses, candidates: Candidates
) -> tuple[Likeness, Likeness]:
    """Return the likenesses of the verbs and of the objects that share an image, still without similarities."""
    sides = (
        ("v", classes.verbs, classes.verb_row, predictions.verbs, predictions.verb),
        ("n", classes.objects, classes.object_row, predictions.objects, predictions.label),
    )
    verbs, objects = (
        Likeness(pos, names, predicted_names, candidates, _distinct_pairs(truth, predictions, row, column))
        for pos, names, row, predicted_names, column in sides
    )
    return verbs, objects


def _distinct_pairs(truth: Triplets, predictions: Triplets, row: Ints, column: Ints) -> tuple[Ints, Ints]:
    """Return each (row, column) that occurs together in some image, once. row: [G] the row of each ground-truth
    triplet; column: [P] the column of each predicted triplet."""
    image_number = {image_id: number for number, image_id in enumerate(truth.image_ids)}
    image = np.array([image_number[image_id] for image_id in predictions.image_ids], dtype=np.int64)
    width, height = int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1
    # (image, row) and (image, column) as numbers that sort by image
    truth_codes = distinct(truth.image_of_hoi * width + row)
    codes = distinct(image[predictions.image_of_hoi] * height + column, below=len(truth.image_ids) * height)
    starts = np.searchsorted(codes, truth_codes // width * height)
    counts = np.searchsorted(codes, (truth_codes // width + 1) * height) - starts
    met = np.zeros((width, height), dtype=bool)
    for pair, partner in counterparts(starts, counts):
        met[truth_codes[pair] % width, codes[partner] % height] = True
    rows, columns = np.nonzero(met)
    return rows, columns


def pool_of(name: Name, pos: str, candidates: Candidates) -> tuple[str, ...]:
    """Return the senses that a predicted name may have."""
    label, sense = name
    if sense:
        return tuple(candidates(sense, pos)) or (sense,)
    return () if label is None else tuple(candidates(normalise(label), pos))
