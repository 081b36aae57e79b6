"""What a model says about the ground truth: how sure it is of each prediction, by its own right and wrong ones.

Scores of two models, or of two classes, cannot be compared. So a prediction is placed among the right ones and among
the wrong ones of its own class and model; and a model is only asked about classes that it finds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.listed import ranking
from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.pairing import blocks_of, first_largest
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.tally import Tally
from hoicli.records.kit import Bools, Floats, Ints, expanded, find, joined
from hoicli.records.outcomes import FALSE_POSITIVE, TRUE_POSITIVE
from hoicli.records.scenes import Scenes


@dataclass(frozen=True)
class Rules:
    """What is a candidate. same: the IoU from which on two boxes of a label are one. votes: how many models must say
    so, None for all of them. confident: the least share of a class's true positives that score no higher than a
    confident prediction. dismissed: the largest share of its false positives that score lower than one that is not
    confident and says no. known: the AP of a class, in [0, 1], from which on the model is asked about it."""

    same: float = 0.7
    votes: int | None = None
    confident: float = 0.5
    dismissed: float = 0.9
    known: float = 0.2

    def __post_init__(self) -> None:
        for name in ("same", "confident", "dismissed", "known"):
            value = getattr(self, name)
            if not (0 < value <= 1 if name == "same" else 0 <= value <= 1):
                scale = "in percent, from 0 to 100" if name == "known" else "from 0 to 1"
                raise UsageError(f"{arg(name, 100 * value if name == 'known' else value)}: give a number {scale}")

    def of(self, models: int) -> Rules:
        """The rules with the votes in force. Raises `UsageError` for more votes than models."""
        votes = models if self.votes is None else self.votes
        if models and not 1 <= votes <= models:
            raise UsageError(f"{arg('votes', votes)}: give a whole number from 1 to {models}, the number of models")
        return replace(self, votes=votes)


@dataclass(frozen=True)
class Opinion:
    """A model's predictions matched under a protocol, all in one batch, and counted in a tally; ap [interactions] of
    each class, in [0, 1]."""

    name: str
    batch: Batch
    found: Outcomes
    tally: Tally
    protocol: Protocol
    ap: Floats

    @property
    def scenes(self) -> Scenes:
        """The predictions."""
        return self.batch.predictions

    @cached_property
    def _ranking(self) -> tuple[Ints, Ints, Ints]:
        """(the predictions by class, then rising score; where each run of equal scores ends; of each place its run)."""
        class_, score = self.scenes.interaction, self.scenes.score
        order = ranking(class_, -score)
        ordered = class_[order], score[order]
        last = np.ones(len(order), dtype=bool)
        last[:-1] = (ordered[0][1:] != ordered[0][:-1]) | (ordered[1][1:] != ordered[1][:-1])
        return order, np.flatnonzero(last), np.cumsum(last) - last

    @cached_property
    def sure(self) -> Floats:
        """[T] the share of the class's true positives with at most this score, 0 where it has none."""
        return self._share(self.found.code == TRUE_POSITIVE)

    @cached_property
    def doubtful(self) -> Floats:
        """[T] the share of the class's false positives with a lower score, 1 where it has none."""
        return self._share(self.found.code == FALSE_POSITIVE, below=True, without=1.0)

    def _share(self, among: Bools, *, below: bool = False, without: float = 0.0) -> Floats:
        """[T] the share of the class's predictions `among` these with at most this score, or `below` it; `without` for
        none."""
        class_ = self.scenes.interaction
        order, last, run = self._ranking
        upto = np.r_[0, np.cumsum(among[order])[last]][:-1] if below else np.cumsum(among[order])[last]
        total = np.bincount(class_[among], minlength=len(self.ap)) if len(order) else np.zeros(len(self.ap))
        before = np.cumsum(total) - total
        of_class = class_[order]
        share = np.full(len(order), without)
        some = (of_class >= 0) & (total[of_class] > 0)
        share[order[some]] = (upto[run[some]] - before[of_class[some]]) / total[of_class[some]]
        return share

    @cached_property
    def _matched(self) -> tuple[Ints, Ints]:
        """Every (predicted box, ground-truth box) that overlap enough."""
        return self.batch.matched_boxes(self.protocol)

    @cached_property
    def counted(self) -> Bools:
        """[T] the predictions that count."""
        return self.found.code <= TRUE_POSITIVE

    @cached_property
    def belongs(self) -> Bools:
        """[T] the predictions that overlap an annotated triplet of their class enough."""
        belongs = np.zeros(len(self.found.code), dtype=bool)
        belongs[self.found.row[self.found.enough]] = True
        return belongs

    def on_pairs(self, subject: Ints, object_: Ints) -> tuple[Ints, Ints]:
        """Every (pair, counted prediction) whose boxes overlap enough; the pairs are of ground-truth boxes, object -1
        for none, and a prediction without an object is on such pairs alone."""
        scenes = self.scenes
        box, truth_box = self._matched
        order = np.lexsort((box, truth_box))
        by_truth = truth_box[order]
        start = np.searchsorted(by_truth, subject)
        count = np.searchsorted(by_truth, subject, side="right") - start
        rows = np.flatnonzero(self.counted)
        every = max(len(scenes.score), 1)
        subjects, rows = np.divmod(np.sort(scenes.subject[rows] * every + rows), every)
        key = np.sort(box * (len(self.batch.truth.scenes.boxes) + 1) + truth_box)
        found = []
        for block in blocks_of(count):
            pair, entry = expanded(start[block], count[block])
            person = box[order[entry]]
            first = np.searchsorted(subjects, person)
            run, place = expanded(first, np.searchsorted(subjects, person, side="right") - first)
            pair, row = pair[run] + block.start, rows[place]
            wanted = scenes.object[row] * (len(self.batch.truth.scenes.boxes) + 1) + object_[pair]
            neither = (scenes.object[row] < 0) & (object_[pair] < 0)
            both = (scenes.object[row] >= 0) & (object_[pair] >= 0)
            keep = neither | (both & find(key, wanted)[1])
            found.append((pair[keep], row[keep]))
        return joined([part[0] for part in found], np.int64), joined([part[1] for part in found], np.int64)

    def strays(self, rules: Rules, background: float) -> Ints:
        """The confident false positives of classes the model is asked about that overlap no annotated triplet of
        their class by more than `background`, ascending."""
        stray = self.found.code == FALSE_POSITIVE
        near = np.minimum(self.found.iou_subject, self.found.iou_object) > background
        stray[self.found.row[near]] = False
        stray &= ~self.belongs
        stray &= (self.sure >= rules.confident) & self.knows(rules)[self.scenes.interaction]
        return np.flatnonzero(stray)

    def knows(self, rules: Rules) -> Bools:
        """[interactions] the classes that the model is asked about."""
        knows: Bools = self.ap >= rules.known
        return knows

    def annotated_box(self, boxes: Ints) -> Ints:
        """[M] the ground-truth box of the same label that each predicted box (or -1) overlaps most, and enough; -1 for
        none."""
        box, truth_box = self._matched
        kinds, theirs = self.scenes.labels, self.batch.truth.scenes.labels
        same = (kinds[box] == theirs[truth_box]) | (kinds[box] < 0)
        box, truth_box = box[same], truth_box[same]
        best = first_largest(box, self.batch.iou_of(self.protocol, box, truth_box))
        of_box = np.full(len(kinds) + 1, -1, dtype=np.int64)
        of_box[box[best]] = truth_box[best]
        return of_box[boxes]
