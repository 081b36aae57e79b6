"""Annotations that models contradict, and labels that models miss: candidates, none of them an error for sure.

Scores of two models, or of two classes, cannot be compared. So a prediction is placed among the right and the wrong
ones of its own class and model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.pairing import FALSE_POSITIVE, TRUE_POSITIVE, check_pairs, counterparts, first_largest
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import Ranked
from hoicli.evaluation.tally import Tally
from hoicli.records.boxes import iou
from hoicli.records.kit import (
    Bools,
    Floats,
    Growing,
    Ints,
    expand_runs,
    find,
    rank_by_id,
    run_starts,
    sorted_by,
    starts_of,
)
from hoicli.records.scenes import Scenes

BACKGROUND = 0.1
"""TIDE's: up to this IoU with all annotations of its class, a prediction is of something that is not annotated."""


@dataclass(frozen=True)
class Rules:
    """What is a candidate. same: the IoU from which on two boxes of a label are one. votes: how many models must say
    so, None for at least half of them. sure: how sure each of these must be, from 0 to 1."""

    same: float = 0.7
    votes: int | None = None
    sure: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.same <= 1:
            raise UsageError(f"{arg('same', self.same)}: give a number above 0, up to 1")
        if not 0 <= self.sure <= 1:
            raise UsageError(f"{arg('sure', self.sure)}: give a number from 0 to 1")

    def set_votes(self, models: int) -> Rules:
        """The rules with the votes in force. Raises `UsageError` for more votes than models."""
        votes = (models + 1) // 2 if self.votes is None else self.votes
        if not models and self != Rules(self.same):
            raise UsageError(f"{arg('votes')} and {arg('sure')} are about models: give predictions, too")
        if models and not 1 <= votes <= models:
            raise UsageError(f"{arg('votes', votes)}: give a whole number from 1 to {models}, the number of models")
        return replace(self, votes=votes)


@dataclass(frozen=True)
class Opinion:
    """A model's predictions matched under a protocol, all in one batch, and counted in a tally."""

    name: str
    batch: Batch
    outcomes: Outcomes
    tally: Tally
    protocol: Protocol

    @property
    def scenes(self) -> Scenes:
        """The predictions."""
        return self.batch.predictions

    @cached_property
    def sure(self) -> Floats:
        """[T] how sure the model is of each prediction, from 0 to 1: the share of its class's true positives that score
        no higher, times the share of true positives among the predictions of its class that score higher or the same.
        Both are as with one more of each kind, so that few examples make nobody sure."""
        higher, right = self._better(self.outcomes.code == TRUE_POSITIVE, equal=False)
        worse = self._better_wrong[0] - (self.outcomes.code == FALSE_POSITIVE)
        sure: Floats = (right - higher) / (right + 1) * (higher + 1) / (higher + 2 + worse)
        return sure

    @cached_property
    def doubtful(self) -> Floats:
        """[T] the share of the class's false positives that score higher or the same, with one more that scores lower
        than all."""
        better, wrong = self._better_wrong
        return better / (wrong + 1)

    @cached_property
    def _better_wrong(self) -> tuple[Ints, Ints]:
        """`_better` false positives, equal ones too."""
        return self._better(self.outcomes.code == FALSE_POSITIVE, equal=True)

    def _better(self, among: Bools, *, equal: bool) -> tuple[Ints, Ints]:
        """[T] how many of the class's predictions `among` these score higher than each (or the same, if `equal`); [T]
        how many there are."""
        ranked, run = self._ranking
        class_ = self.scenes.interaction
        before = starts_of(among[ranked.order])[ranked.bounds]
        ends = starts_of(np.bincount(run[among[ranked.order]], minlength=len(run)))
        better = np.zeros(len(class_), dtype=np.int64)
        better[ranked.order] = (ends[1:] if equal else ends)[run] - before[class_[ranked.order]]
        return better, np.append(np.diff(before), 0)[class_]  # of no class there are none

    @cached_property
    def _ranking(self) -> tuple[Ranked, Ints]:
        """The predictions by class, then falling score; the number of the run of equal scores that each is in."""
        ranked = self.tally.listed.rank_by_class(self.scenes.interaction, len(self.batch.truth.vocabulary.interactions))
        class_, score = self.scenes.interaction[ranked.order], self.scenes.score[ranked.order]
        fresh = (class_[1:] != class_[:-1]) | (score[1:] != score[:-1])
        return ranked, starts_of(fresh)[: len(score)]

    @cached_property
    def _matched(self) -> tuple[Ints, Ints]:
        """Every (predicted box, ground-truth box) that overlap enough, whatever their labels."""
        return self.batch.matched_boxes(self.protocol, any_label=True)

    def overlapping_predictions(self, subject: Ints, object_: Ints) -> tuple[Ints, Ints]:
        """Every (pair, counted prediction) whose boxes overlap enough; the pairs are of ground-truth boxes, object -1
        for none, and a prediction without an object is on such pairs alone."""
        scenes = self.scenes
        box, truth_box = self._matched
        order = np.lexsort((box, truth_box))
        by_truth = truth_box[order]
        start = np.searchsorted(by_truth, subject)
        count = np.searchsorted(by_truth, subject, side="right") - start
        rows = np.flatnonzero(self.outcomes.code <= TRUE_POSITIVE)
        rows = rows[sorted_by(scenes.subject[rows], len(scenes.boxes))]
        subjects = scenes.subject[rows]
        key = np.sort(box * (len(self.batch.truth.scenes.boxes) + 1) + truth_box)
        pairs_found = Growing(pair=np.int64, row=np.int64)
        for pair, entry in counterparts(start, count):
            person = box[order[entry]]
            first = np.searchsorted(subjects, person)
            run, place = expand_runs(first, np.searchsorted(subjects, person, side="right") - first)
            pair, row = pair[run], rows[place]
            object_keys = scenes.object[row] * (len(self.batch.truth.scenes.boxes) + 1) + object_[pair]
            neither = (scenes.object[row] < 0) & (object_[pair] < 0)
            both = (scenes.object[row] >= 0) & (object_[pair] >= 0)
            keep = neither | (both & find(key, object_keys)[1])
            pairs_found.add(pair=pair[keep], row=row[keep])
        return pairs_found["pair"], pairs_found["row"]

    @cached_property
    def stray(self) -> Bools:
        """[T] the false positives that overlap no annotated triplet of their class enough, or by more than
        `BACKGROUND`."""
        stray: Bools = self.outcomes.code == FALSE_POSITIVE
        near = np.minimum(self.outcomes.iou_subject, self.outcomes.iou_object) > BACKGROUND
        stray[self.outcomes.row[near | self.outcomes.enough]] = False
        return stray

    def annotated_box(self, boxes: Ints) -> Ints:
        """The ground-truth box of the same label that each predicted box (or -1) overlaps most, and enough, of equals
        the first by corners; -1 for none."""
        box, truth_box = self._matched
        kinds, theirs = self.scenes.labels, self.batch.truth.scenes.labels
        same = (kinds[box] == theirs[truth_box]) | (kinds[box] < 0)
        box, truth_box = box[same], truth_box[same]
        overlap = self.batch.iou_of(self.protocol, box, truth_box)
        best = np.lexsort((*self.batch.truth.scenes.corners(truth_box), -overlap, box))
        best = best[run_starts(box[best])]
        of_box = np.full(len(kinds) + 1, -1, dtype=np.int64)
        of_box[box[best]] = truth_box[best]
        return of_box[boxes]


class Evidence(NamedTuple):
    """What each model sees on the pair of each counted triplet. truth [N] their rows in the ground truth; instead,
    sure, score, own_score [models, N]: the class (-1: none) that is not annotated there and of which the model is
    surest, rather than of the annotated one; how sure; its score; and the score of the annotated class, NaN for
    none."""

    truth: Ints
    instead: Ints
    sure: Floats
    score: Floats
    own_score: Floats


@dataclass(frozen=True)
class Contradicted:
    """N annotated triplets, surest first. seen_by_models: the evidence on them; says [models, N]: which models
    contradict each; models [N] how many do; sure [N] the mean of how sure these are."""

    seen_by_models: Evidence
    says: Bools
    models: Ints
    sure: Floats


def evidence(truth: GroundTruth, opinions: Sequence[Opinion]) -> Evidence:
    """How sure a model is of another class (`Opinion.sure`), times the share of false positives that score higher than
    the annotated class does there (`Opinion.doubtful`; 1 where the model does not see it)."""
    scenes, classes = truth.scenes, len(truth.vocabulary.interactions)
    protocol = opinions[0].protocol
    rows = np.flatnonzero(truth.counted_triplets(protocol))
    ends = (scenes.subject[rows] + 1) * (len(scenes.boxes) + 1) + scenes.object[rows] + 1
    pairs, pair_of = np.unique(ends, return_inverse=True)
    subject, object_ = (end - 1 for end in np.divmod(pairs, len(scenes.boxes) + 1))
    shape = len(opinions), len(rows)
    instead = np.full(shape, -1, dtype=np.int64)
    sure, score, own_score = np.zeros(shape), np.full(shape, np.nan), np.full(shape, np.nan)
    for at, opinion in enumerate(opinions):
        pair, row = opinion.overlapping_predictions(subject, object_)
        every = max(len(opinion.scenes.score), 1)
        key, row = np.divmod(np.sort((pair * classes + opinion.scenes.interaction[row]) * every + row), every)
        first = first_largest(key, opinion.scenes.score[row])  # the best-scored of each class on each pair
        keys, best = key[first], row[first]
        wanted_keys = pair_of * classes + scenes.interaction[rows]
        place, met = find(keys, wanted_keys)
        own_score[at, met] = opinion.scenes.score[best[place[met]]]
        rejected = np.ones(len(rows))
        rejected[met] = opinion.doubtful[best[place[met]]]
        start = np.searchsorted(keys, pair_of * classes)
        triplet, entry = expand_runs(start, np.searchsorted(keys, (pair_of + 1) * classes) - start)
        stray = opinion.stray[best[entry]]  # of another class, and nothing of it is annotated there
        triplet, entry = triplet[stray], entry[stray]
        top = first_largest(triplet, opinion.sure[best[entry]])
        triplet, entry = triplet[top], entry[top]
        instead[at, triplet] = keys[entry] % classes
        sure[at, triplet] = opinion.sure[best[entry]] * rejected[triplet]
        score[at, triplet] = opinion.scenes.score[best[entry]]
    return Evidence(rows, instead, sure, score, own_score)


def find_contradicted(truth: GroundTruth, evidence_seen: Evidence, rules: Rules) -> Contradicted:
    """Annotated triplets on whose pair at least `rules.votes` models see another class, as sure as `rules.sure`."""
    scenes, rows = truth.scenes, evidence_seen.truth
    says = (evidence_seen.instead >= 0) & (evidence_seen.sure >= rules.sure)
    models = says.sum(axis=0)
    mean = np.where(says, evidence_seen.sure, 0.0).sum(axis=0) / np.maximum(models, 1)
    enough_votes = np.flatnonzero(models >= (rules.votes or 1))
    by_id = rank_by_id(scenes.image_ids)[scenes.image_of_hoi[rows[enough_votes]]]
    values = (*scenes.ends(rows[enough_votes]), scenes.interaction[rows[enough_votes]])
    enough_votes = enough_votes[
        np.lexsort((rows[enough_votes], *values, by_id, -mean[enough_votes], -models[enough_votes]))
    ]
    those: Any = (column[..., enough_votes] for column in evidence_seen)
    return Contradicted(Evidence(*those), says[:, enough_votes], models[enough_votes], mean[enough_votes])


class Strays(NamedTuple):
    """Predictions of all models as columns [M]. row: the place in its image; image: of the ground truth. Of the subject
    and of the object: boxes [2, 4, M], NaN for no object; labels [2, M]; near [2, M] the box of the ground truth that
    it belongs to, -1 for none."""

    model: Ints
    row: Ints
    image: Ints
    class_: Ints
    sure: Floats
    score: Floats
    boxes: Floats
    labels: Ints
    near: Ints

    def reorder(self, rows: Ints) -> Strays:
        """Some of the rows, in this order."""
        columns: Any = (column[..., rows] for column in self)
        return Strays(*columns)

    def overlapping(self, truth: GroundTruth, protocol: Protocol, threshold: float) -> tuple[Ints, Ints, Floats]:
        """(one, other, their overlap) of every two rows, or one twice, of an image and class that overlap by
        `threshold`; the rows are by image and class. The overlap is the smaller IoU of subjects and of objects; two
        without objects agree in them."""
        fresh = np.zeros(len(self.row), dtype=bool)
        fresh[1:] = (self.image[1:] != self.image[:-1]) | (self.class_[1:] != self.class_[:-1])
        group = np.cumsum(fresh)
        start = np.searchsorted(group, group)
        size = np.searchsorted(group, group, side="right") - start
        check_pairs(size, self.image, truth.scenes.image_ids, "predictions of one class")
        none, overlaps = np.isnan(self.boxes[1, 0]), Growing(one=np.int64, other=np.int64, overlap=np.float64)
        for first, other in counterparts(start, size):
            of_subject, of_object = (
                iou(boxes[:, first], boxes[:, other], inclusive=protocol.inclusive) for boxes in self.boxes
            )
            overlap = np.minimum(of_subject, np.where(none[first] & none[other], 1.0, of_object))
            enough = (overlap >= threshold) | (first == other)
            overlaps.add(one=first[enough], other=other[enough], overlap=overlap[enough])
        return overlaps["one"], overlaps["other"], overlaps["overlap"]


@dataclass(frozen=True)
class Missing:
    """N unannotated triplets, surest first. of: the prediction of the surest model; models [N] how many predict it;
    sure [N] the mean of how sure these are; score [models, N], NaN of those that do not."""

    of: Strays
    models: Ints
    sure: Floats
    score: Floats


def missing(truth: GroundTruth, opinions: Sequence[Opinion], rules: Rules) -> Missing:
    """Classes that at least `rules.votes` models put on one pair, each at least as sure as `rules.sure`, and nothing of
    which is annotated near: pairs are one where subjects and objects overlap by at least `rules.same`. Of pairs that
    overlap as the protocol asks, the surest stands for all."""
    strays, protocol, votes = _strays(opinions, rules), opinions[0].protocol, rules.votes or 1
    by_id = rank_by_id(truth.scenes.image_ids)[strays.image]
    values = (*strays.boxes.reshape(8, -1), -strays.score)
    strays = strays.reorder(np.lexsort((strays.row, *values, strays.model, -strays.sure, strays.class_, by_id)))
    first, other, overlap = strays.overlapping(truth, protocol, min(rules.same, protocol.threshold))
    shape = len(opinions), len(strays.row)
    score, sure = np.full(shape, np.nan), np.zeros(shape)
    agree = np.flatnonzero((overlap >= rules.same) | (first == other))[::-1]  # a model's surest first, so written last
    model = strays.model[other[agree]]
    score[model, first[agree]] = strays.score[other[agree]]
    sure[model, first[agree]] = strays.sure[other[agree]]
    models = (~np.isnan(score)).sum(axis=0)
    mean = sure.sum(axis=0) / np.maximum(models, 1)
    order = np.lexsort((np.arange(len(models)), -mean, -models))
    order = order[models[order] >= votes]
    rank = np.full(len(models), len(models))
    rank[order] = np.arange(len(order))
    touching = (overlap >= protocol.threshold) & (rank[other] < rank[first]) & (models[first] >= votes)
    chosen = order[_standing(len(order), rank[first[touching]], rank[other[touching]])]
    return Missing(strays.reorder(chosen), models[chosen], mean[chosen], score[:, chosen])


def _strays(opinions: Sequence[Opinion], rules: Rules) -> Strays:
    """Return what each model is sure of and nothing of its class is annotated near."""
    parts = []
    for model, opinion in enumerate(opinions):
        scenes, row = opinion.scenes, np.flatnonzero(opinion.stray & (opinion.sure >= rules.sure))
        # elsewhere a box of zeros is a box like any other, and every class has an object
        without = opinion.batch.empty_object[row] & opinion.protocol.person_first
        ends = np.stack([scenes.subject[row], np.where(without, -1, scenes.object[row])])
        boxes = np.vstack([scenes.boxes, np.full((1, 4), np.nan)])
        parts.append(
            Strays(
                model=np.full(len(row), model),
                row=row - scenes.hoi_start[scenes.image_of_hoi[row]],
                image=opinion.batch.image_of_hoi[row],
                class_=scenes.interaction[row],
                sure=opinion.sure[row],
                score=scenes.score[row],
                boxes=boxes[ends].swapaxes(1, 2),
                labels=np.append(scenes.labels, -1)[ends],
                near=opinion.annotated_box(ends),
            )
        )
    return Strays(*(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)))


def _standing(count: int, worse: Ints, better: Ints) -> Ints:
    """The numbers below `count` that remain when each, from 0 on, removes those it touches: (worse, better) are the
    pairs that touch. In rounds: whatever no undecided better one touches remains."""
    decided, stands = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    while not decided.all():
        free = ~decided
        free[worse] = False
        stands |= free
        decided |= free
        decided[worse[stands[better]]] = True
        open_ = ~decided[worse] & ~decided[better]
        worse, better = worse[open_], better[open_]
    return np.flatnonzero(stands)
