"""Annotated triplets that models contradict, and triplets that models predict and nobody annotated: candidates for
errors of the ground truth, none of them an error for sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import check_pairs, first_largest, iterate_pairs
from hoicli.evaluation.protocols import Protocol
from hoicli.records.boxes import iou
from hoicli.records.kit import Bools, Floats, Growing, Ints, expand_runs, find, rank_by_id
from hoicli.validation.opinions import Opinion


@dataclass(frozen=True)
class Rules:
    """What makes a candidate. same: the IoU from which on two boxes of a label are taken for one; votes: how many
    models must agree, None for at least half of them; sure: how sure each must be (`Opinion.sure`), from 0 to 1."""

    same: float = 0.7
    votes: int | None = None
    sure: float = 0.2

    def __post_init__(self) -> None:
        """Raise `UsageError` for an IoU or a share that is out of range."""
        if not 0 < self.same <= 1:
            raise UsageError(f"{arg('same', self.same)}: give a number above 0, up to 1")
        if not 0 <= self.sure <= 1:
            raise UsageError(f"{arg('sure', self.sure)}: give a number from 0 to 1")

    def set_votes(self, models: int) -> Rules:
        """Return the rules with a number of votes in place of None. Raises `UsageError` for more votes than models, and
        for rules about models if there is none."""
        votes = (models + 1) // 2 if self.votes is None else self.votes
        if not models and self != Rules(self.same):  # any other rule than `same` was given
            raise UsageError(f"{arg('votes')} and {arg('sure')} are about models: give predictions, too")
        if models and not 1 <= votes <= models:
            raise UsageError(f"{arg('votes', votes)}: give a whole number from 1 to {models}, the number of models")
        return replace(self, votes=votes)


class Evidence(NamedTuple):
    """What each model predicts on the pair of boxes of each annotated triplet that counts.

    truth [N]: the triplets, as rows of the ground truth. The others are [models, N]. other_class: of the classes that
    are not annotated there, the one that the model is surest of, -1 for none; sure: how sure it is of that class rather
    than of the annotated one; score: its score; own_score: that of the annotated class, NaN if it is not predicted."""

    truth: Ints
    other_class: Ints
    sure: Floats
    score: Floats
    own_score: Floats


@dataclass(frozen=True)
class Contradicted:
    """N annotated triplets that models contradict, those that most models contradict first. evidence: what the models
    predict there; contradicts [models, N]: whether each model contradicts each triplet; models [N]: how many do; sure
    [N]: the mean of how sure these models are."""

    evidence: Evidence
    contradicts: Bools
    models: Ints
    sure: Floats


class _AnnotatedPairs(NamedTuple):
    """The pairs of boxes of N annotated triplets. subject, object [pairs]: the boxes of each pair, object -1 for none;
    pair_of, interaction [N]: the pair and the class of each triplet; classes: how many classes there are."""

    subject: Ints
    object: Ints
    pair_of: Ints
    interaction: Ints
    classes: int


def gather_evidence(truth: GroundTruth, opinions: Sequence[Opinion]) -> Evidence:
    """Return how sure each model is of another class on the pair of boxes of each annotated triplet. That is
    `Opinion.sure` of the other class, times how doubtful the model's prediction of the annotated class is there
    (`Opinion.doubtful`; 1 where it does not predict that class)."""
    scenes = truth.scenes
    rows = np.flatnonzero(truth.counted_triplets(opinions[0].protocol))
    # each pair of boxes as one number; both are raised by one, since -1 is no object
    pair_keys = (scenes.subject[rows] + 1) * (len(scenes.boxes) + 1) + scenes.object[rows] + 1
    pairs, pair_of = np.unique(pair_keys, return_inverse=True)
    subject, object_ = (box - 1 for box in np.divmod(pairs, len(scenes.boxes) + 1))
    classes = len(truth.vocabulary.interactions)
    interaction = scenes.interaction[rows]
    annotated = _AnnotatedPairs(subject, object_, pair_of=pair_of, interaction=interaction, classes=classes)
    columns = zip(*(_evidence_of_model(opinion, annotated) for opinion in opinions), strict=True)
    other_class, sure, score, own_score = map(np.stack, columns)
    return Evidence(rows, other_class, sure, score, own_score)


def _evidence_of_model(opinion: Opinion, annotated: _AnnotatedPairs) -> tuple[Ints, Floats, Floats, Floats]:
    """Return four columns [N] about one model, for the N annotated triplets: of the classes that are not annotated on
    the triplet's pair, the one that it is surest of (-1 for none); how sure it is of that rather than of the annotated
    one; the score of that class; and that of the annotated class (NaN if it is not predicted)."""
    count, classes = len(annotated.pair_of), annotated.classes
    # each class predicted on an annotated pair (pair * classes + class, ascending), and its best prediction there
    class_keys, best = _best_predictions(opinion, annotated)
    prediction_score = opinion.scenes.score
    # the prediction of the annotated class
    place, is_predicted = find(class_keys, annotated.pair_of * classes + annotated.interaction)
    own_prediction = best[place[is_predicted]]
    own_score, doubt = np.full(count, np.nan), np.ones(count)
    own_score[is_predicted] = prediction_score[own_prediction]
    doubt[is_predicted] = opinion.doubtful[own_prediction]
    triplet, place = _surest_strays(opinion, annotated, class_keys, best)
    other_class, sure, score = np.full(count, -1, dtype=np.int64), np.zeros(count), np.full(count, np.nan)
    other_class[triplet] = class_keys[place] % classes
    sure[triplet] = opinion.sure[best[place]] * doubt[triplet]
    score[triplet] = prediction_score[best[place]]
    return other_class, sure, score, own_score


def _best_predictions(opinion: Opinion, annotated: _AnnotatedPairs) -> tuple[Ints, Ints]:
    """Return the best-scored prediction of each class on each annotated pair, as two columns [K]: the number pair *
    classes + class, ascending, and the row of the prediction."""
    pair, row = opinion.overlapping_predictions(annotated.subject, annotated.object)
    row_limit = max(len(opinion.scenes.score), 1)
    class_key = pair * annotated.classes + opinion.scenes.interaction[row]
    # sorted by class key, then by row: both in one number, which NumPy sorts faster than two columns
    class_key, row = np.divmod(np.sort(class_key * row_limit + row), row_limit)
    first = first_largest(class_key, opinion.scenes.score[row])
    return class_key[first], row[first]


def _surest_strays(opinion: Opinion, annotated: _AnnotatedPairs, class_keys: Ints, best: Ints) -> tuple[Ints, Ints]:
    """Return two columns: each annotated triplet on whose pair the model predicts a class of which nothing is annotated
    near, and the position of the surest such prediction in `class_keys` and `best` [K]: the classes that are predicted
    on each pair, as pair * classes + class, ascending, and the row of the best-scored prediction of each."""
    start = np.searchsorted(class_keys, annotated.pair_of * annotated.classes)
    end = np.searchsorted(class_keys, (annotated.pair_of + 1) * annotated.classes)
    triplet, place = expand_runs(start, end - start)
    is_stray = opinion.stray[best[place]]
    triplet, place = triplet[is_stray], place[is_stray]
    surest = first_largest(triplet, opinion.sure[best[place]])
    return triplet[surest], place[surest]


def find_contradicted(truth: GroundTruth, evidence: Evidence, rules: Rules) -> Contradicted:
    """Return the annotated triplets on whose pair of boxes at least `rules.votes` models predict another class, each at
    least as sure as `rules.sure`."""
    scenes, rows = truth.scenes, evidence.truth
    contradicts = (evidence.other_class >= 0) & (evidence.sure >= rules.sure)
    models = contradicts.sum(axis=0)
    mean = np.where(contradicts, evidence.sure, 0.0).sum(axis=0) / np.maximum(models, 1)
    chosen = np.flatnonzero(models >= (rules.votes or 1))
    # By descending votes, then how sure; equal ones by values that do not depend on the order of lines.
    by_id = rank_by_id(scenes.image_ids)[scenes.image_of_hoi[rows[chosen]]]
    values = (*scenes.ends(rows[chosen]), scenes.interaction[rows[chosen]])
    chosen = chosen[np.lexsort((rows[chosen], *values, by_id, -mean[chosen], -models[chosen]))]
    chosen_columns: Any = (column[..., chosen] for column in evidence)  # [N] or [models, N]: triplets come last
    return Contradicted(Evidence(*chosen_columns), contradicts[:, chosen], models[chosen], sure=mean[chosen])


class Strays(NamedTuple):
    """M predictions of all models near which nothing of their class is annotated (`Opinion.stray`), as columns.

    model: the number of the model; row: the place of the prediction in its image; image: the image, as a row of the
    ground truth; class_, sure, score [M]. For the subject and the object: boxes [2, 4, M], the corners, NaN for no
    object; labels [2, M]; near [2, M]: the ground-truth box that each box belongs to, -1 for none."""

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
        """Return the predictions `rows`, in this order."""
        columns: Any = (column[..., rows] for column in self)
        return Strays(*columns)

    def overlapping(self, truth: GroundTruth, protocol: Protocol, threshold: float) -> tuple[Ints, Ints, Floats]:
        """Return every two predictions of one image and class that overlap by `threshold`, and each with itself, as
        three columns: one, the other, and their overlap. It is the smaller one of the IoU of subjects and that of
        objects, which is 1 if neither has an object. The predictions must be sorted by image and class."""
        starts_group = np.zeros(len(self.row), dtype=bool)
        starts_group[1:] = (self.image[1:] != self.image[:-1]) | (self.class_[1:] != self.class_[:-1])
        group = np.cumsum(starts_group)
        # the first prediction of the same image and class as each, and how many there are
        start = np.searchsorted(group, group)
        size = np.searchsorted(group, group, side="right") - start
        check_pairs(size, self.image, truth.scenes.image_ids, "predictions of one class")
        no_object, pairs = np.isnan(self.boxes[1, 0]), Growing(first=np.int64, other=np.int64, overlap=np.float64)
        for first, other in iterate_pairs(start, size):
            subject_iou, object_iou = (
                iou(boxes[:, first], boxes[:, other], inclusive=protocol.inclusive) for boxes in self.boxes
            )
            overlap = np.minimum(subject_iou, np.where(no_object[first] & no_object[other], 1.0, object_iou))
            enough = (overlap >= threshold) | (first == other)
            pairs.add(first=first[enough], other=other[enough], overlap=overlap[enough])
        return pairs["first"], pairs["other"], pairs["overlap"]


@dataclass(frozen=True)
class Missing:
    """N triplets that models predict and nobody annotated, those that most models predict first. predictions: the
    prediction of each by the surest model; models [N]: how many models predict it; sure [N]: the mean of how sure these
    models are; score [models, N]: its score by each model, NaN for a model that does not predict it."""

    predictions: Strays
    models: Ints
    sure: Floats
    score: Floats


def find_missing(truth: GroundTruth, opinions: Sequence[Opinion], rules: Rules) -> Missing:
    """Return the triplets that at least `rules.votes` models predict, each at least as sure as `rules.sure`, and near
    which nothing of their class is annotated.

    Models predict the same triplet if their subjects and their objects overlap by at least `rules.same`. Of triplets
    that overlap by the protocol's threshold, only the surest is returned."""
    strays, protocol, votes = _strays(opinions, rules), opinions[0].protocol, rules.votes or 1
    # By image, class and how sure; equal ones by values that do not depend on the order of lines.
    by_id = rank_by_id(truth.scenes.image_ids)[strays.image]
    values = (*strays.boxes.reshape(8, -1), -strays.score)
    strays = strays.reorder(np.lexsort((strays.row, *values, strays.model, -strays.sure, strays.class_, by_id)))
    first, other, overlap = strays.overlapping(truth, protocol, min(rules.same, protocol.threshold))

    # Which models predict the same triplet as each of these predictions, and how sure they are.
    shape = len(opinions), len(strays.row)  # what each model predicts of the triplet that a stray prediction stands for
    score, sure = np.full(shape, np.nan), np.zeros(shape)
    # The surest prediction of a model comes first; in reverse order it is written last, and stays.
    agree = np.flatnonzero((overlap >= rules.same) | (first == other))[::-1]
    model = strays.model[other[agree]]
    score[model, first[agree]] = strays.score[other[agree]]
    sure[model, first[agree]] = strays.sure[other[agree]]
    models = (~np.isnan(score)).sum(axis=0)
    mean = sure.sum(axis=0) / np.maximum(models, 1)

    # Of those with enough votes that overlap each other, only the best one is kept.
    order = np.lexsort((np.arange(len(models)), -mean, -models))
    order = order[models[order] >= votes]
    rank = np.full(len(models), len(models))
    rank[order] = np.arange(len(order))
    # pairs of which the first is ranked below the other
    overlaps_better = (overlap >= protocol.threshold) & (rank[other] < rank[first]) & (models[first] >= votes)
    chosen = order[_keep_best(len(order), rank[first[overlaps_better]], rank[other[overlaps_better]])]
    return Missing(strays.reorder(chosen), models[chosen], sure=mean[chosen], score=score[:, chosen])


def _strays(opinions: Sequence[Opinion], rules: Rules) -> Strays:
    """Return the predictions that a model is sure of (`rules.sure`) with nothing of their class annotated near."""
    parts = []
    for model, opinion in enumerate(opinions):
        scenes, row = opinion.scenes, np.flatnonzero(opinion.stray & (opinion.sure >= rules.sure))
        # Only by a person-first protocol (V-COCO) a box of zeros means that there is no object.
        without_object = opinion.batch.empty_object[row] & opinion.protocol.person_first
        boxes_of_pair = np.stack([scenes.subject[row], np.where(without_object, -1, scenes.object[row])])
        boxes = np.vstack([scenes.boxes, np.full((1, 4), np.nan)])  # the last one, box -1, is no object
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


def _keep_best(count: int, worse: Ints, better: Ints) -> Ints:
    """Return the ranks below `count` that are kept if, from rank 0 on, each kept rank removes the ranks below it that
    overlap it. worse, better: the pairs of ranks that overlap.

    This goes in rounds: a rank is kept as soon as all better ranks that overlap it are removed."""
    decided, is_kept = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
    while not decided.all():
        has_no_rival = ~decided
        has_no_rival[worse] = False
        is_kept |= has_no_rival
        decided |= has_no_rival
        decided[worse[is_kept[better]]] = True
        is_open = ~decided[worse] & ~decided[better]
        worse, better = worse[is_open], better[is_open]
    return np.flatnonzero(is_kept)
