"""Annotations that models contradict, and labels that models miss: candidates, none of them an error for sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import check_pairs, counterparts, first_largest
from hoicli.evaluation.protocols import Protocol
from hoicli.records.boxes import iou
from hoicli.records.kit import Bools, Floats, Growing, Ints, expand_runs, find, rank_by_id
from hoicli.validation.opinions import Opinion


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


class _AnnotatedPairs(NamedTuple):
    """The pairs of boxes of N annotated triplets. subject, object [pairs]: the boxes of each, object -1 for none;
    pair_of, interaction [N]: the pair and the class of each triplet; classes: how many classes there are."""

    subject: Ints
    object: Ints
    pair_of: Ints
    interaction: Ints
    classes: int


def evidence(truth: GroundTruth, opinions: Sequence[Opinion]) -> Evidence:
    """Return how sure each model is of another class on the pair of each annotated triplet: `Opinion.sure` of that
    class, times the share of false positives that score higher than the annotated class does there (`Opinion.doubtful`;
    1 where the model does not see it)."""
    scenes = truth.scenes
    rows = np.flatnonzero(truth.counted_triplets(opinions[0].protocol))
    pair_keys = (scenes.subject[rows] + 1) * (len(scenes.boxes) + 1) + scenes.object[rows] + 1
    pairs, pair_of = np.unique(pair_keys, return_inverse=True)
    subject, object_ = (box - 1 for box in np.divmod(pairs, len(scenes.boxes) + 1))
    classes = len(truth.vocabulary.interactions)
    annotated = _AnnotatedPairs(subject, object_, pair_of, scenes.interaction[rows], classes)
    columns = zip(*(_evidence_of_model(opinion, annotated) for opinion in opinions), strict=True)
    instead, sure, score, own_score = map(np.stack, columns)
    return Evidence(rows, instead, sure, score, own_score)


def _evidence_of_model(opinion: Opinion, annotated: _AnnotatedPairs) -> tuple[Ints, Floats, Floats, Floats]:
    """Return what one model sees: `instead`, `sure`, `score` and `own_score` [N] of `Evidence`."""
    count, classes = len(annotated.pair_of), annotated.classes
    class_keys, best = _best_predictions(opinion, annotated)
    prediction_score = opinion.scenes.score
    place, is_predicted = find(class_keys, annotated.pair_of * classes + annotated.interaction)
    own_prediction = best[place[is_predicted]]
    own_score, doubt = np.full(count, np.nan), np.ones(count)
    own_score[is_predicted] = prediction_score[own_prediction]
    doubt[is_predicted] = opinion.doubtful[own_prediction]
    triplet, place = _surest_strays(opinion, annotated, class_keys, best)
    instead, sure, score = np.full(count, -1, dtype=np.int64), np.zeros(count), np.full(count, np.nan)
    instead[triplet] = class_keys[place] % classes
    sure[triplet] = opinion.sure[best[place]] * doubt[triplet]
    score[triplet] = prediction_score[best[place]]
    return instead, sure, score, own_score


def _best_predictions(opinion: Opinion, annotated: _AnnotatedPairs) -> tuple[Ints, Ints]:
    """Return the best-scored prediction of each class on each pair: [K] pair * classes + class, ascending, and [K] the
    prediction's row."""
    pair, row = opinion.overlapping_predictions(annotated.subject, annotated.object)
    row_limit = max(len(opinion.scenes.score), 1)
    class_key = pair * annotated.classes + opinion.scenes.interaction[row]
    class_key, row = np.divmod(np.sort(class_key * row_limit + row), row_limit)
    first = first_largest(class_key, opinion.scenes.score[row])
    return class_key[first], row[first]


def _surest_strays(opinion: Opinion, annotated: _AnnotatedPairs, class_keys: Ints, best: Ints) -> tuple[Ints, Ints]:
    """Return each triplet on whose pair the model sees a class of which nothing is annotated there, and the place of
    the surest such prediction among `class_keys` and `best`, which are as `_best_predictions` returns them."""
    start = np.searchsorted(class_keys, annotated.pair_of * annotated.classes)
    end = np.searchsorted(class_keys, (annotated.pair_of + 1) * annotated.classes)
    triplet, place = expand_runs(start, end - start)
    is_stray = opinion.stray[best[place]]
    triplet, place = triplet[is_stray], place[is_stray]
    surest = first_largest(triplet, opinion.sure[best[place]])
    return triplet[surest], place[surest]


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
