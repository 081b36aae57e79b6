"""How similar two labels are: the sense of a ground-truth label against the candidate senses of a predicted label.

SHOE supplement, section 4: a predicted label has a pool of candidate senses, and the one most similar to the ground
truth's sense is used. If a label has no sense, or both have the same spelling, spelling decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from hoicli.evaluation.pairing import iterate_pairs
from hoicli.records.kit import Bools, Floats, Ints, distinct, run_starts, starts_of
from hoicli.records.triplets import NOTHING, UNLABELLED, Name, Numbered, Triplets
from hoicli.shoe.similarity_table import Pair, SensePairs, SimilarityTable
from hoicli.vocabulary.labels import normalise_spelling

Candidates = Callable[[str, str], Sequence[str]]
"""A function (label, "v" or "n") -> the senses that the label may have, most common first; for the name of a sense, its
canonical name alone (`wordnet.senses.candidates`)."""

GroundTruthSense = Callable[[str, str | None], tuple[str | None, str | None]]
"""A function (verb, object or None) -> the senses of both in a dataset's curated table
(`wordnet.senses.ground_truth_sense`)."""

NONE = -1
"""The number that stands for "no label" and for "no sense"."""


def normalise(label: str) -> str:
    """Return a label in the form in which labels are compared: lower case, plain characters, single underscores."""
    return normalise_spelling(label).lower()


@dataclass(frozen=True)
class ComparedClasses:
    """The N classes with which unmatched predictions are compared under `--against dataset`: those of the dataset, in
    its order, then those that only the ground truth has. verb_row, object_row [N]: the places of their names in the
    lists of `TruthClasses`; class_of [N]: their numbers among its classes, -1 for a class without ground truth."""

    verb_row: Ints
    object_row: Ints
    class_of: Ints


@dataclass(frozen=True)
class TruthClasses:
    """The classes of the G ground-truth triplets, and the senses of their labels.

    classes [C]: (verb, object), sorted, with the object "" for an action without one; class_of [G]: the number of each
    triplet's class. verbs, objects: the different (label, sense or None) that occur; verb_row, object_row [G]: the
    place of each triplet's verb and object in these lists. compared: the dataset's classes, None if they are not asked
    for; their names are among verbs and objects, too."""

    classes: list[tuple[str, str]]
    class_of: Ints
    verb_row: Ints
    object_row: Ints
    verbs: list[Name]
    objects: list[Name]
    compared: ComparedClasses | None = None


def classes_of(
    truth: Triplets,
    table: GroundTruthSense,
    candidates: Candidates,
    dataset_classes: Sequence[tuple[str, str]] | None = None,
) -> TruthClasses:
    """Return the classes of the ground truth, with the sense of each label: the one that the record states, else the
    one in the dataset's `table` (it may depend on the other label, as in fly a kite and fly an airplane), else the
    first of `candidates`. dataset_classes: the (verb, object) of each class of the dataset, if unmatched predictions
    are to be compared with all of them."""
    width = max(len(truth.objects), 1)
    # Each different (verb, object) is resolved once; one number for both makes np.unique fast.
    codes, pair_of_hoi = np.unique(truth.verb * width + truth.label, return_inverse=True)
    pair_names = [(truth.verbs[code // width], truth.objects[code % width]) for code in codes.tolist()]
    truth_pair_count = len(pair_names)
    pair_names += [((verb, None), (name, None)) for verb, name in dataset_classes or ()]
    named = named_pairs(pair_names, table, candidates)
    verbs, objects = Numbered[Name](), Numbered[Name]()  # looking up a new name gives it the next number
    row = np.zeros((len(pair_names), 2), dtype=np.int64)  # the numbers of each pair's verb and object

    def spelling(pair_number: int) -> list[str]:
        """Return the texts of a pair in a form that can be sorted: both labels and senses, "" for None."""
        return [text or "" for text in chain.from_iterable(pair_names[pair_number])]

    # Numbered by name, so that the numbers do not depend on the order of the file's lines.
    for pair_number in sorted(range(len(pair_names)), key=spelling):
        row[pair_number] = verbs[named[pair_number][0]], objects[named[pair_number][1]]
    pairs = [(verb or "", name or "") for (verb, _), (name, _) in named]
    classes = sorted(set(pairs[:truth_pair_count]))
    number = {pair: index for index, pair in enumerate(classes)}
    class_of_pair = np.array([number.get(pair, NONE) for pair in pairs], dtype=np.int64)
    compared = None
    if dataset_classes is not None:
        names = np.roll(np.column_stack([row, class_of_pair]), -truth_pair_count, axis=0)  # the dataset's come first
        _, first = np.unique(names, axis=0, return_index=True)
        compared = ComparedClasses(*names[np.sort(first)].T)
    return TruthClasses(
        classes=classes,
        class_of=class_of_pair[pair_of_hoi],
        verb_row=row[pair_of_hoi, 0],
        object_row=row[pair_of_hoi, 1],
        verbs=list(verbs),
        objects=list(objects),
        compared=compared,
    )


def named_pairs(
    pair_names: Iterable[tuple[Name, Name]], table: GroundTruthSense, candidates: Candidates
) -> list[tuple[Name, Name]]:
    """Return each pair (verb, object) with normalised labels and the sense of each: the one that its name states, else
    the one that the dataset's `table` has for the pair, else the first of `candidates`. Verb and object are names:
    (label or None, sense or None)."""

    def complete_name(name: Name, table_sense: str | None, pos: str) -> Name:
        """Return (normalised label, sense) of a name, NOTHING for one without a label."""
        label, sense = name
        if label is None:
            return NOTHING
        label = normalise(label)
        if sense is None and table_sense is not None:
            return label, table_sense
        # the candidate of a stated sense is this sense under its usual name; one that WordNet lacks stays as it is
        return label, next(iter(candidates(sense or label, pos)), sense)

    pairs = []
    for verb, object_ in pair_names:
        verb_label, object_label = verb[0] or "", object_[0]
        # First as spelled, since SWIG-HOI's names have capitals; then normalised.
        spelled = table(verb_label.strip(), object_label and object_label.strip())
        normalised = table(normalise(verb_label), object_label and normalise(object_label))
        verb_sense, object_sense = spelled[0] or normalised[0], spelled[1] or normalised[1]
        pairs.append((complete_name(verb, verb_sense, "v"), complete_name(object_, object_sense, "n")))
    return pairs


def predicted_classes(predictions: Triplets, classes: Sequence[tuple[str, str]]) -> Ints:
    """Return [P]: the number of the class (verb, object) whose spelling each predicted triplet has, for plain mAP; -1
    for a spelling that no class has, and for an object without a label."""
    verbs, objects = Numbered[str](), Numbered[str]()  # these give each new name the next number
    class_verb = verbs.numbers_of([verb for verb, _ in classes])
    class_object = objects.numbers_of([name for _, name in classes])
    other_verb, other_object = len(verbs), len(objects)  # one more number each, for all names that no class has
    verb = np.array([verbs.get(normalise(label or ""), other_verb) for label, _ in predictions.verbs], dtype=np.int64)
    object_ = np.array([
        other_object if name == UNLABELLED else objects.get(normalise(name[0] or ""), other_object)
        for name in predictions.objects
    ], dtype=np.int64)  # fmt: skip
    class_of = np.full((other_verb + 1, other_object + 1), -1)  # by the numbers of verb and object
    class_of[class_verb, class_object] = np.arange(len(classes))
    return class_of[verb[predictions.verb], object_[predictions.label]]


class Likeness:
    """Similarities between ground-truth names (rows) and predicted names (columns), for those that share an image. A
    name is (label or None, sense or None).

    Call `rate` with the table of similarities first; then `look_up` and `sense` answer. asked: the pairs of senses that
    are needed; missing: those of them that the table lacks, which count 0; senseless: the labels without a
    sense, which are compared by spelling."""

    def __init__(
        self,
        pos: str,
        truth: Sequence[Name],
        predicted: Sequence[Name],
        candidates: Candidates,
        name_pairs: tuple[Ints, Ints],
    ) -> None:
        """Find the pairs of senses to look up, and the similarities that spelling decides. pos: "v" for verbs, "n" for
        objects. truth: names that are normalised (`classes_of` makes them so). name_pairs: the row and the column of
        each two names that share an image, each two once."""
        self._pos, self._truth = pos, truth
        self._predicted = [(label and normalise(label), sense) for label, sense in predicted]
        # the pool of a predicted name: the senses that it may have
        pools = {name: pool_of(name, pos, candidates) for name in dict.fromkeys(self._predicted)}
        # all senses, numbered in alphabetical order
        self._names = sorted({sense for _, sense in truth if sense is not None}.union(*pools.values()))
        number: dict[str | None, int] = {None: NONE, **{sense: place for place, sense in enumerate(self._names)}}
        self._pools = [pools[name] for name in self._predicted]
        self._pool_sizes = np.array([len(pool) for pool in self._pools], dtype=np.int64)
        # the senses of all pools, one pool after the other
        self._pool_senses = np.array([number[sense] for sense in chain.from_iterable(self._pools)], dtype=np.int64)
        self._sense = np.array([number[sense] for _, sense in truth], dtype=np.int64)
        self._value = np.full((len(truth), len(predicted)), np.nan)
        row, column = name_pairs
        by_sense = self._compare_spellings(row, column)
        # the names that are compared by their senses
        self._row, self._column = row[by_sense], column[by_sense]
        self.asked = self._settle_shared_senses()
        self.missing: list[Pair] = []

    def _compare_spellings(self, row: Ints, column: Ints) -> Bools:
        """Set the similarity of each two names [M] to 1 for equal spellings, else to 0; return whether their senses
        decide instead [M]. Set `senseless`."""
        label_number: dict[str | None, int] = Numbered({None: NONE})
        label, predicted_label = (
            np.array([label_number[text] for text, _ in names], dtype=np.int64)
            for names in (self._truth, self._predicted)
        )
        states_sense = np.array([sense is not None for _, sense in self._predicted], dtype=bool)
        alike = label[row] == predicted_label[column]
        no_sense, no_candidates = self._sense[row] == NONE, self._pool_sizes[column] == 0
        labelled = (label[row] != NONE) & (predicted_label[column] != NONE)
        self.senseless = {str(self._truth[name][0]) for name in distinct(row[labelled & no_sense]).tolist()}
        self.senseless |= {
            str(self._predicted[name][0]) for name in distinct(column[labelled & no_candidates]).tolist()
        }
        self._value[row, column] = alike
        # Senses decide where both have some. Equal labels have similarity 1 even if the truth's sense, from the curated
        # table, is not among the predicted label's candidates, unless the prediction states another sense.
        by_sense: Bools = labelled & ~(no_sense | no_candidates) & (~alike | states_sense[column])
        return by_sense

    def _settle_shared_senses(self) -> SensePairs:
        """Set the similarity to 1 for names that share a sense, which need no more comparison. Return the pairs of
        senses whose similarity the other names need."""
        share = np.zeros(len(self._row), dtype=bool)
        codes = [np.zeros(0, dtype=np.int64)]
        for names, truth_sense, pool_sense in self._compare_pools():
            share[names[truth_sense == pool_sense]] = True  # the predicted label may have the truth's sense
            differ = ~share[names]
            codes.append(distinct(self._pair_codes(truth_sense[differ], pool_sense[differ])))
        self._value[self._row[share], self._column[share]] = 1.0
        self._row, self._column = self._row[~share], self._column[~share]
        return self._pairs(codes)

    def rate(self, table: SimilarityTable) -> None:
        """Look up all similarities in a table: two names are as similar as the truth's sense and the most similar sense
        that the predicted name may have. Set `missing`."""
        self._table, numbers = table, table.numbers(self._names)
        codes = [np.zeros(0, dtype=np.int64)]
        for names, truth_sense, pool_sense in self._compare_pools():
            similarity = table.look_up(numbers[truth_sense], numbers[pool_sense])
            absent = np.isnan(similarity)
            codes.append(distinct(self._pair_codes(truth_sense[absent], pool_sense[absent])))
            # The comparisons of two names stand together; `reduceat` takes the maximum of each such run.
            begin = run_starts(names)
            highest = np.maximum.reduceat(np.where(absent, 0.0, similarity), begin)
            self._value[self._row[names[begin]], self._column[names[begin]]] = highest
        self.missing = self._pairs(codes).by_name()

    def _compare_pools(self) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield every comparison of a ground truth's sense with a sense that a predicted name may have (its pool), as
        many at a time as memory allows: (the place of the two names in `_row` and `_column`, the number of the truth's
        sense, the number of the pool's sense)."""
        start, count = starts_of(self._pool_sizes)[self._column], self._pool_sizes[self._column]
        for names, place in iterate_pairs(start, count):
            if len(names):
                yield names, self._sense[self._row[names]], self._pool_senses[place]

    def _pair_codes(self, first: Ints, second: Ints) -> Ints:
        """Return one number for each pair of senses' numbers, the same for both orders."""
        return np.minimum(first, second) * len(self._names) + np.maximum(first, second)

    def _pairs(self, codes: Sequence[Ints]) -> SensePairs:
        """Return the different pairs of senses that arrays of `_pair_codes` stand for, sorted."""
        sides = np.divmod(distinct(np.concatenate(codes)), max(len(self._names), 1))
        return SensePairs(self._pos, self._names, *sides)

    def look_up(self, row: Ints, column: Ints) -> Floats:
        """Return [M]: the similarity in [0, 1] of each ground-truth name (row) to a predicted name (column)."""
        return self._value.take(row * self._value.shape[1] + column)

    def sense(self, row: int, column: int) -> str | None:
        """Return the sense of a predicted name (column) that is most similar to that of a ground-truth name (row), the
        first of equally similar ones; None if spelling decides."""
        (label, sense), pool = self._truth[row], self._pools[column]
        if sense is None or not pool:
            return None
        if sense in pool or self._predicted[column] == (label, None):  # an equal label that states no other sense
            return sense
        return pool[int(np.argmax(np.nan_to_num(self._table.values([sense] * len(pool), pool))))]


def likenesses(
    truth: Triplets, predictions: Triplets, classes: TruthClasses, candidates: Candidates
) -> tuple[Likeness, Likeness]:
    """Return the likenesses of the verbs and of the objects that share an image, or of all where predictions are
    compared with all classes of the dataset; both still need `Likeness.rate`."""
    # of verbs and of objects: the names of the truth, which one each triplet has, and the same of the predictions
    sides = (
        ("v", classes.verbs, classes.verb_row, predictions.verbs, predictions.verb),
        ("n", classes.objects, classes.object_row, predictions.objects, predictions.label),
    )
    rated: list[Likeness] = []
    for pos, names, row, predicted_names, column in sides:
        if classes.compared is None:
            name_pairs = _distinct_pairs(truth, predictions, row, column)
        else:
            rows, columns = np.indices((len(names), len(predicted_names)))
            name_pairs = rows.ravel(), columns.ravel()
        rated.append(Likeness(pos, names, predicted_names, candidates, name_pairs))
    return rated[0], rated[1]


def _distinct_pairs(truth: Triplets, predictions: Triplets, row: Ints, column: Ints) -> tuple[Ints, Ints]:
    """Return the rows and the columns of all (row, column) that occur together in some image, each once. row [G],
    column [P]: of each triplet's name in a `Likeness`."""
    image_number = {image_id: number for number, image_id in enumerate(truth.image_ids)}
    image = np.array([image_number[image_id] for image_id in predictions.image_ids], dtype=np.int64)
    width, height = int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1
    # (image, row) and (image, column) as one number each, which sort by image; each different one once
    truth_codes = distinct(truth.image_of_hoi * width + row)
    codes = distinct(image[predictions.image_of_hoi] * height + column)
    truth_image = truth_codes // width
    starts = np.searchsorted(codes, truth_image * height)
    counts = np.searchsorted(codes, (truth_image + 1) * height) - starts  # the predicted names of each one's image
    met = np.zeros((width, height), dtype=bool)
    for pair, partner in iterate_pairs(starts, counts):
        met[truth_codes[pair] % width, codes[partner] % height] = True
    rows, columns = np.nonzero(met)
    return rows, columns


def pool_of(name: Name, pos: str, candidates: Candidates) -> tuple[str, ...]:
    """Return the senses that a predicted name (label, sense) may have: the one it states, else all of its label's."""
    label, sense = name
    if sense:
        return tuple(candidates(sense, pos)) or (sense,)
    return () if label is None else tuple(candidates(normalise(label), pos))
