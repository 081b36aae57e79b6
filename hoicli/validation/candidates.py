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
"""As in TIDE: a prediction that overlaps no annotation of its class by more is of something that is not annotated."""


@dataclass(frozen=True)
class Rules:
    """What makes a candidate. same: the IoU from which on two boxes of a label are one; votes: how many models must
    agree, None for at least half of them; sure: how sure each of these models must be, from 0 to 1."""

    same: float = 0.7
    votes: int | None = None
    sure: float = 0.2

    def __post_init__(self) -> None:
        if not 0 < self.same <= 1:
            raise UsageError(f"{arg('same', self.same)}: give a number above 0, up to 1")
        if not 0 <= self.sure <= 1:
            raise UsageError(f"{arg('sure', self.sure)}: give a number from 0 to 1")

    def set_votes(self, models: int) -> Rules:
        """Return the rules with the number of votes settled for so many models. Raises `UsageError` for more votes than
        models."""
        votes = (models + 1) // 2 if self.votes is None else self.votes
        if not models and self != Rules(self.same):
            raise UsageError(f"{arg('votes')} and {arg('sure')} are about models: give predictions, too")
        if models and not 1 <= votes <= models:
            raise UsageError(f"{arg('votes', votes)}: give a whole number from 1 to {models}, the number of models")
        return replace(self, votes=votes)


@dataclass(frozen=True)
class Opinion:
    """A model's predictions in one batch, matched under a protocol and counted in a tally."""

    name: str
    batch: Batch
    outcomes: Outcomes
    tally: Tally
    protocol: Protocol

    @property
    def scenes(self) -> Scenes:
        """The model's predictions."""
        return self.batch.predictions

    @cached_property
    def sure(self) -> Floats:
        """How sure the model is of each prediction [T], from 0 to 1: the share of true positives of the class that
        score no higher, times the share of true positives among the predictions of the class that score higher or the
        same. Both shares are taken with one more of each kind, so that few examples make no model sure."""
        higher, right = self._better(self.outcomes.code == TRUE_POSITIVE, equal=False)
        worse = self._better_wrong[0] - (self.outcomes.code == FALSE_POSITIVE)
        sure: Floats = (right - higher) / (right + 1) * (higher + 1) / (higher + 2 + worse)
        return sure

    @cached_property
    def doubtful(self) -> Floats:
        """How doubtful each prediction is [T]: the share of false positives of its class that score higher or the same,
        with one more false positive that scores lower than all."""
        better, wrong = self._better_wrong
        return better / (wrong + 1)

    @cached_property
    def _better_wrong(self) -> tuple[Ints, Ints]:
        """For each prediction, `_better` false positives, those of equal score included."""
        return self._better(self.outcomes.code == FALSE_POSITIVE, equal=True)

    def _better(self, among: Bools, *, equal: bool) -> tuple[Ints, Ints]:
        """Return, for each prediction, how many [T] of the predictions `among` those of its class score higher (or the
        same, if `equal`), and how many [T] there are in its class."""
        ranked, run = self._ranking
        class_ = self.scenes.interaction
        before_class = starts_of(among[ranked.order])[ranked.bounds]
        before_run = starts_of(np.bincount(run[among[ranked.order]], minlength=len(run)))
        better = np.zeros(len(class_), dtype=np.int64)
        better[ranked.order] = (before_run[1:] if equal else before_run)[run] - before_class[class_[ranked.order]]
        return better, np.append(np.diff(before_class), 0)[class_]  # class -1, none: the last entry

    @cached_property
    def _ranking(self) -> tuple[Ranked, Ints]:
        """The predictions ranked by class and falling score, and for each the number of its run of equal scores."""
        ranked = self.tally.listed.rank_by_class(self.scenes.interaction, len(self.batch.truth.vocabulary.interactions))
        class_, score = self.scenes.interaction[ranked.order], self.scenes.score[ranked.order]
        starts_run = (class_[1:] != class_[:-1]) | (score[1:] != score[:-1])
        return ranked, starts_of(starts_run)[: len(score)]

    @cached_property
    def _matched(self) -> tuple[Ints, Ints]:
        """Every (predicted box, ground-truth box) that overlap enough, whatever their labels."""
        return self.batch.matched_boxes(self.protocol, any_label=True)

    def overlapping_predictions(self, subject: Ints, object_: Ints) -> tuple[Ints, Ints]:
        """Return every (pair, counted prediction) whose boxes overlap enough. subject, object_: the ground-truth boxes
        of the pairs, object -1 for none; a prediction without an object is only on pairs without one."""
        scenes = self.scenes
        box, truth_box = self._matched
        order = np.lexsort((box, truth_box))
        by_truth = truth_box[order]
        start = np.searchsorted(by_truth, subject)
        count = np.searchsorted(by_truth, subject, side="right") - start
        rows = np.flatnonzero(self.outcomes.code <= TRUE_POSITIVE)
        rows = rows[sorted_by(scenes.subject[rows], len(scenes.boxes))]
        subjects = scenes.subject[rows]
        match_keys = np.sort(box * (len(self.batch.truth.scenes.boxes) + 1) + truth_box)
        pairs_found = Growing(pair=np.int64, row=np.int64)
        for pair, match in counterparts(start, count):
            person = box[order[match]]
            first = np.searchsorted(subjects, person)
            entry_of_row, place = expand_runs(first, np.searchsorted(subjects, person, side="right") - first)
            pair, row = pair[entry_of_row], rows[place]
            object_keys = scenes.object[row] * (len(self.batch.truth.scenes.boxes) + 1) + object_[pair]
            neither_has_object = (scenes.object[row] < 0) & (object_[pair] < 0)
            both_have_object = (scenes.object[row] >= 0) & (object_[pair] >= 0)
            keep = neither_has_object | (both_have_object & find(match_keys, object_keys)[1])
            pairs_found.add(pair=pair[keep], row=row[keep])
        return pairs_found["pair"], pairs_found["row"]

    @cached_property
    def stray(self) -> Bools:
        """The false positives [T] that overlap no annotated triplet of their class enough, nor by more than
        `BACKGROUND`."""
        stray: Bools = self.outcomes.code == FALSE_POSITIVE
        near = np.minimum(self.outcomes.iou_subject, self.outcomes.iou_object) > BACKGROUND
        stray[self.outcomes.row[near | self.outcomes.enough]] = False
        return stray

    def annotated_box(self, boxes: Ints) -> Ints:
        """Return for each predicted box (or -1) the ground-truth box of its label that it overlaps most, if it does so
        enough, else -1; among equal overlaps the first by corners."""
        box, truth_box = self._matched
        kinds, truth_kinds = self.scenes.labels, self.batch.truth.scenes.labels
        same_label = (kinds[box] == truth_kinds[truth_box]) | (kinds[box] < 0)
        box, truth_box = box[same_label], truth_box[same_label]
        overlap = self.batch.iou_of(self.protocol, box, truth_box)
        best = np.lexsort((*self.batch.truth.scenes.corners(truth_box), -overlap, box))
        best = best[run_starts(box[best])]
        nearest = np.full(len(kinds) + 1, -1, dtype=np.int64)
        nearest[box[best]] = truth_box[best]
        return nearest[boxes]


class Evidence(NamedTuple):
    """What each model sees on the pair of each counted triplet. truth [N]: the triplets, as rows of the ground truth.
    For each model and triplet [models, N], instead: the class that is not annotated there and of which the model is
    surest, rather than of the annotated one (-1: none); sure: how sure the model is of it; score: its score; own_score:
    the score of the annotated class, NaN for none."""

    truth: Ints
    instead: Ints
    sure: Floats
    score: Floats
    own_score: Floats


@dataclass(frozen=True)
class Contradicted:
    """N annotated triplets that models contradict, surest first. seen_by_models: the evidence on them; says [models,
    N]: which models contradict each; models [N]: how many do; sure [N]: the mean of how sure these models are."""

    seen_by_models: Evidence
    says: Bools
    models: Ints
    sure: Floats


def evidence(truth: GroundTruth, opinions: Sequence[Opinion]) -> Evidence:
    """Return how sure each model is of another class on the pair of each annotated triplet: `Opinion.sure` of that
    class, times the share of false positives that score higher than the annotated class does there (`Opinion.doubtful`;
    1 where the model does not see it)."""
    scenes, classes = truth.scenes, len(truth.vocabulary.interactions)
    protocol = opinions[0].protocol
    rows = np.flatnonzero(truth.counted_triplets(protocol))
    pair_keys = (scenes.subject[rows] + 1) * (len(scenes.boxes) + 1) + scenes.object[rows] + 1
    pairs, pair_of = np.unique(pair_keys, return_inverse=True)
    subject, object_ = (box - 1 for box in np.divmod(pairs, len(scenes.boxes) + 1))
    shape = len(opinions), len(rows)
    instead = np.full(shape, -1, dtype=np.int64)
    sure, score, own_score = np.zeros(shape), np.full(shape, np.nan), np.full(shape, np.nan)
    for model, opinion in enumerate(opinions):
        pair, row = opinion.overlapping_predictions(subject, object_)
        row_limit = max(len(opinion.scenes.score), 1)
        class_key, row = np.divmod(
            np.sort((pair * classes + opinion.scenes.interaction[row]) * row_limit + row), row_limit
        )
        first = first_largest(class_key, opinion.scenes.score[row])  # the best-scored of each class on each pair
        class_keys, best = class_key[first], row[first]
        wanted_keys = pair_of * classes + scenes.interaction[rows]
        seen_of_triplet, is_predicted = find(class_keys, wanted_keys)
        own_score[model, is_predicted] = opinion.scenes.score[best[seen_of_triplet[is_predicted]]]
        doubt = np.ones(len(rows))
        doubt[is_predicted] = opinion.doubtful[best[seen_of_triplet[is_predicted]]]
        start = np.searchsorted(class_keys, pair_of * classes)
        triplet, seen = expand_runs(start, np.searchsorted(class_keys, (pair_of + 1) * classes) - start)
        stray = opinion.stray[best[seen]]  # of another class, and nothing of it is annotated there
        triplet, seen = triplet[stray], seen[stray]
        surest = first_largest(triplet, opinion.sure[best[seen]])
        triplet, seen = triplet[surest], seen[surest]
        instead[model, triplet] = class_keys[seen] % classes
        sure[model, triplet] = opinion.sure[best[seen]] * doubt[triplet]
        score[model, triplet] = opinion.scenes.score[best[seen]]
    return Evidence(rows, instead, sure, score, own_score)


def find_contradicted(truth: GroundTruth, evidence_seen: Evidence, rules: Rules) -> Contradicted:
    """Return the annotated triplets on whose pair at least `rules.votes` models see another class, each as sure as
    `rules.sure`."""
    scenes, rows = truth.scenes, evidence_seen.truth
    says = (evidence_seen.instead >= 0) & (evidence_seen.sure >= rules.sure)
    models = says.sum(axis=0)
    mean = np.where(says, evidence_seen.sure, 0.0).sum(axis=0) / np.maximum(models, 1)
    chosen = np.flatnonzero(models >= (rules.votes or 1))
    by_id = rank_by_id(scenes.image_ids)[scenes.image_of_hoi[rows[chosen]]]
    values = (*scenes.ends(rows[chosen]), scenes.interaction[rows[chosen]])
    chosen = chosen[np.lexsort((rows[chosen], *values, by_id, -mean[chosen], -models[chosen]))]
    chosen_columns: Any = (column[..., chosen] for column in evidence_seen)
    return Contradicted(Evidence(*chosen_columns), says[:, chosen], models[chosen], mean[chosen])


class Strays(NamedTuple):
    """Stray predictions of all models as columns [M]. row: the place in the image; image: a row of the ground truth.
    For the subject and the object, boxes [2, 4, M]: NaN for no object; labels [2, M]; near [2, M]: the box of the
    ground truth that it belongs to, -1 for none."""

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
        """Return some of the rows, in the given order."""
        columns: Any = (column[..., rows] for column in self)
        return Strays(*columns)

    def overlapping(self, truth: GroundTruth, protocol: Protocol, threshold: float) -> tuple[Ints, Ints, Floats]:
        """Return (one, other, their overlap) for every two rows of an image and class that overlap by `threshold`, and
        for every row with itself. The rows are sorted by image and class. The overlap is the smaller one of the IoUs of
        subjects and of objects; two missing objects agree."""
        starts_group = np.zeros(len(self.row), dtype=bool)
        starts_group[1:] = (self.image[1:] != self.image[:-1]) | (self.class_[1:] != self.class_[:-1])
        group = np.cumsum(starts_group)
        start = np.searchsorted(group, group)
        size = np.searchsorted(group, group, side="right") - start
        check_pairs(size, self.image, truth.scenes.image_ids, "predictions of one class")
        no_object, found = np.isnan(self.boxes[1, 0]), Growing(one=np.int64, other=np.int64, overlap=np.float64)
        for first, other in counterparts(start, size):
            of_subject, of_object = (
                iou(boxes[:, first], boxes[:, other], inclusive=protocol.inclusive) for boxes in self.boxes
            )
            overlap = np.minimum(of_subject, np.where(no_object[first] & no_object[other], 1.0, of_object))
            enough = (overlap >= threshold) | (first == other)
            found.add(one=first[enough], other=other[enough], overlap=overlap[enough])
        return found["one"], found["other"], found["overlap"]


@dataclass(frozen=True)
class Missing:
    """N triplets that models predict and nobody annotated, surest first. of: the prediction of the surest model; models
    [N]: how many models predict it; sure [N]: the mean of how sure these models are; score [models, N]: NaN for a model
    that does not predict it."""

    of: Strays
    models: Ints
    sure: Floats
    score: Floats


def missing(truth: GroundTruth, opinions: Sequence[Opinion], rules: Rules) -> Missing:
    """Return the triplets that at least `rules.votes` models predict, each at least as sure as `rules.sure`, where
    nothing of their class is annotated near. Predictions are of the same pair if their subjects and their objects
    overlap by at least `rules.same`. Among pairs that overlap as the protocol asks, the surest stands for all."""
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
    """Return the predictions that each model is sure of and near which nothing of their class is annotated."""
    parts = []
    for model, opinion in enumerate(opinions):
        scenes, row = opinion.scenes, np.flatnonzero(opinion.stray & (opinion.sure >= rules.sure))
        # elsewhere a box of zeros is a box like any other, and every class has an object
        without_object = opinion.batch.empty_object[row] & opinion.protocol.person_first
        boxes_of_pair = np.stack([scenes.subject[row], np.where(without_object, -1, scenes.object[row])])
        boxes = np.vstack([scenes.boxes, np.full((1, 4), np.nan)])
        parts.append(
            Strays(
                model=np.full(len(row), model),
                row=row - scenes.hoi_start[scenes.image_of_hoi[row]],
                image=opinion.batch.image_of_hoi[row],
                class_=scenes.interaction[row],
                sure=opinion.sure[row],
                score=scenes.score[row],
                boxes=boxes[boxes_of_pair].swapaxes(1, 2),
                labels=np.append(scenes.labels, -1)[boxes_of_pair],
                near=opinion.annotated_box(boxes_of_pair),
            )
        )
    return Strays(*(np.concatenate(columns, axis=-1) for columns in zip(*parts, strict=True)))


def _standing(count: int, worse: Ints, better: Ints) -> Ints:
    """Return the numbers below `count` that remain when each number, from 0 on, removes the later ones that it touches.
    worse, better: the pairs of numbers that touch. It goes in rounds: what no undecided better number touches remains.
    """
    decided, stands = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    while not decided.all():
        unchallenged = ~decided
        unchallenged[worse] = False
        stands |= unchallenged
        decided |= unchallenged
        decided[worse[stands[better]]] = True
        is_open = ~decided[worse] & ~decided[better]
        worse, better = worse[is_open], better[is_open]
    return np.flatnonzero(stands)
