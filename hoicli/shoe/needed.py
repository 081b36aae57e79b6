"""The pairs of senses that an evaluation looks up, recorded by `Likeness` itself, so that none is missing.

`shoe-eval` compares, image by image, the sense of every ground-truth label with the senses that every predicted label
may have. The pairs are collected with the same code, so spelling decides the same cases: if a label has the ground
truth's spelling, or can have its sense, nothing is looked up.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from hoicli.io.streams import Line, Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Ints, distinct, expanded
from hoicli.records.triplets import Name, Triplets, read_triplets
from hoicli.shoe.labels import Candidates, GroundTruthSense, Likeness, TruthClasses, classes_of
from hoicli.shoe.pairs import Pair
from hoicli.shoe.reading import read_predictions
from hoicli.shoe.table import SimilarityTable


class Needed:
    """Collects pairs of senses. `pairs` are (pos, a, b), a < b, each once; `senseless` the labels that have no sense at
    all."""

    def __init__(self, candidates: Candidates) -> None:
        self.pairs: dict[Pair, None] = {}
        self.senseless: set[str] = set()
        self._candidates = candidates

    def add_streams(
        self,
        truth_lines: Iterable[Line],
        predictions: Stream,
        senses: GroundTruthSense,
        policy: ErrorPolicy,
        *,
        all_pairs: bool = False,
        unlabelled: bool = False,
    ) -> None:
        """Add the pairs that evaluating the predictions needs: within each image, or with `all_pairs` across all
        images. unlabelled: predicted labels may be null.

        Raises `DataError` for a bad line, or a prediction whose image the ground truth does not have.
        """
        truth = read_triplets(truth_lines, policy=policy, truth=True)
        found, _ = read_predictions(predictions, policy, frozenset(truth.image_ids), unlabelled=unlabelled)
        self.add_triplets(truth, found, classes_of(truth, senses, self._candidates), all_pairs=all_pairs)

    def add_triplets(
        self, truth: Triplets, predictions: Triplets, classes: TruthClasses, *, all_pairs: bool = False
    ) -> None:
        """The same of triplets that have been read, and the classes of the ground truth."""
        meet = partial(_everything if all_pairs else _same_image, truth, predictions)
        self._add("v", classes.verbs, predictions.verbs, *meet(classes.verb_row, predictions.verb))
        self._add("n", classes.objects, predictions.objects, *meet(classes.object_row, predictions.label))

    def add_classes(
        self, interactions: Iterable[tuple[str, str]], senses: GroundTruthSense, *, all_pairs: bool = False
    ) -> None:
        """Add the pairs among the senses of a dataset's (verb, object); with `all_pairs` also those with every sense
        that its labels may have, which is all that predictions in these labels can need."""
        listed = list(interactions)
        numbers = np.arange(len(listed))
        once = Triplets(  # a ground truth with each interaction once
            image_ids=[], boxes=np.zeros((0, 4)), box_label=numbers[:0], box_start=numbers, subject=numbers,
            object=numbers, verb=numbers, label=numbers, role=numbers < 0, score=np.zeros(0), hoi_start=numbers,
            labels=[], verbs=[(verb, None) for verb, _ in listed], objects=[(name, None) for _, name in listed],
            caveats=numbers[:0],
        )  # fmt: skip
        classes = classes_of(once, senses, self._candidates)
        for pos, names in (("v", classes.verbs), ("n", classes.objects)):
            own = sorted({sense for _, sense in names if sense is not None})
            self.pairs |= dict.fromkeys((pos, a, b) for place, a in enumerate(own) for b in own[place + 1 :])
            self.senseless.update(label for label, sense in names if sense is None and label)
            if all_pairs:
                labels: list[Name] = list(dict.fromkeys((label, None) for label, _ in names))
                rows, columns = (axis.ravel() for axis in np.indices((len(names), len(labels))))
                self._add(pos, names, labels, rows, columns)

    def _add(self, pos: str, truth: list[Name], predicted: list[Name], rows: Ints, columns: Ints) -> None:
        nothing = np.zeros(0, dtype=np.int64)
        likeness = Likeness(pos, truth, predicted, SimilarityTable([], nothing, nothing, np.zeros(0)), self._candidates)
        likeness.of(rows, columns)
        self.pairs |= dict.fromkeys((pos, a, b) for a, b in likeness.asked)
        self.senseless |= likeness.senseless


def _everything(_: Triplets, __: Triplets, row: Ints, column: Ints) -> tuple[Ints, Ints]:
    """Every combination of a row and a column."""
    rows, columns = distinct(row), distinct(column)
    return np.repeat(rows, len(columns)), np.tile(columns, len(rows))


def _same_image(truth: Triplets, predictions: Triplets, row: Ints, column: Ints) -> tuple[Ints, Ints]:
    """Each (row, column) that occurs together in some image, once. row [G] of the ground truth's triplets, column
    [P]."""
    place = {image_id: number for number, image_id in enumerate(truth.image_ids)}
    image = np.array([place[image_id] for image_id in predictions.image_ids], dtype=np.int64)
    width, height = int(row.max(initial=0)) + 1, int(column.max(initial=0)) + 1
    left = distinct(truth.image_of_hoi * width + row)
    right = distinct(image[predictions.image_of_hoi] * height + column)
    starts = np.searchsorted(right, left // width * height)
    ends = np.searchsorted(right, (left // width + 1) * height)
    which, at = expanded(starts, ends - starts)
    met = np.zeros((width, height), dtype=bool)
    met[left[which] % width, right[at] % height] = True
    rows, columns = np.nonzero(met)
    return rows, columns
