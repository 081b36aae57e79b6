"""Recall at K of a stream of predictions: which ground-truth triplets are found and at which rank first, the metrics of
that under each constraint, and their rows.

R@K is the mean over images of how much of their ground truth is found; mR@K the mean over verbs of that of the ground
truth with the verb; zR@K that of triplets that a detector did not see in training. R@K-relative and mR@K-relative take
for K the number of the image's own triplets. An image's ground truth is found by the predictions of its own line alone,
so batches may come in any order and from several processes; sums are exact (math.fsum), so no order of images changes a
value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.evaluation.coverage import Coverage
from hoicli.evaluation.evaluating import gather_in_parallel, match_batches
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import order_by_score
from hoicli.evaluation.recall_conventions import BOXES, CONSTRAINTS, NOTHING, PREDICTIONS, PROTOCOL, Convention
from hoicli.io.memory import no_garbage_collection
from hoicli.io.messages import note
from hoicli.io.streams import Line, Stream
from hoicli.records import caveats
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Growing, Ints, join_parts, ranks_in_groups, run_starts
from hoicli.records.reading import read_scenes
from hoicli.records.result_rows import Row, Settings, percent, result_row, row_ends
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Vocabulary

NEVER = np.iinfo(np.int64).max
"""The rank of what is not found, or not ranked."""


def rank_predictions(scenes: Scenes, *, as_listed: bool = False) -> dict[str, Ints]:
    """Return the rank of each prediction in its image, from 0 by descending score, as an array [T] for each constraint:
    with graph constraint only the best prediction of each pair of boxes is ranked, and the others have the rank NEVER;
    without, all are ranked.

    as_listed: whether equal scores keep their order in the input; otherwise they are ranked by verb, labels and corners
    of the boxes, so that the order of the input is no matter. Two pairs of boxes are different if their indices are."""
    every = np.arange(len(scenes.score))
    if not as_listed:
        subject_label = scenes.labels[scenes.subject]

        def sorting_columns(rows: Ints) -> list[NDArray[Any]]:
            """Return the columns that decide between predictions (rows) of equal score, the last one first."""
            labels = (scenes.object_label[rows], subject_label[rows])
            return [*scenes.ends(rows), *labels, scenes.verb[rows]]

        every = order_by_score(scenes.score, sorting_columns)
    pair = scenes.subject * len(scenes.boxes) + scenes.object  # one number for each pair of boxes
    best_of_pairs = every[ranks_in_groups(pair[every], scenes.score[every]) == 0]
    ranks_by_constraint = {name: np.full(len(every), NEVER) for name in CONSTRAINTS}
    for name, ranked in zip(CONSTRAINTS, (best_of_pairs, every), strict=True):
        ranks_by_constraint[name][ranked] = ranks_in_groups(scenes.image_of_hoi[ranked], scenes.score[ranked])
    return ranks_by_constraint


class FirstRanks:
    """Gathers, batch by batch, which ground-truth triplets are found, and at which rank first (`first_ranks`).
    caveats: the mask of the predictions' caveats."""

    def __init__(self, *, as_listed: bool = False) -> None:
        """Begin with nothing found. as_listed: whether predictions of equal score are ranked in the input's order."""
        self._as_listed = as_listed
        self.caveats = 0
        self._found = Growing(triplet=np.int64, **dict.fromkeys(CONSTRAINTS, np.int64))
        self._images = Growing(image=np.int64, content=np.int64)

    def add(self, batch: Batch, protocol: Protocol) -> None:
        """Add the predictions of some images. protocol: how boxes are compared (IoU convention and threshold)."""
        row, triplet = batch.overlapping_pairs(protocol)
        triplets_found, index = np.unique(triplet, return_inverse=True)
        best_ranks = {}
        for constraint, rank in rank_predictions(batch.predictions, as_listed=self._as_listed).items():
            best_ranks[constraint] = np.full(len(triplets_found), NEVER)
            np.minimum.at(best_ranks[constraint], index, rank[row])
        self._found.add(triplet=triplets_found, **best_ranks)
        self.caveats |= batch.predictions.every_caveat
        # What is predicted of each image, as released evaluators leave out images without boxes or triplets.
        content = np.full(len(batch.image), NOTHING)
        content[np.diff(batch.predictions.box_start) > 0] = BOXES
        content[np.diff(batch.predictions.hoi_start) > 0] = PREDICTIONS
        self._images.add(image=batch.image, content=content)

    def merge(self, other: FirstRanks) -> None:
        """Add what was gathered from other images."""
        self._found.merge(other._found)
        self._images.merge(other._images)
        self.caveats |= other.caveats

    @property
    def images(self) -> list[int]:
        """The images that were added, as indices into those of the ground truth."""
        images: list[int] = self._images["image"].tolist()
        return images

    def first_ranks(self, constraint: str, triplets: int) -> Ints:
        """Return [triplets] for each ground-truth triplet the rank of the best prediction that finds it, or NEVER."""
        rank = np.full(triplets, NEVER)
        rank[self._found["triplet"]] = self._found[constraint]
        return rank

    def content(self, images: int) -> Ints:
        """Return [images] what is predicted in each image: NOTHING, BOXES without a triplet, or PREDICTIONS."""
        content = np.full(images, NOTHING)
        content[self._images["image"]] = self._images["content"]
        return content


@dataclass(frozen=True)
class Unseen:
    """Which ground-truth triplets have labels (subject, verb, object) that a detector did not see in training. triplets
    [T]: whether each triplet is such; name: the name of the training set in signatures."""

    triplets: Bools
    name: str


def find_unseen(truth: GroundTruth, training: Stream, policy: ErrorPolicy) -> Unseen:
    """Return which triplets of the ground truth are unseen: those whose labels (subject, verb, object) no triplet of
    the training set has. The set's name in the result is a digest of its different triplets. Raises `DataError` for a
    bad line, and for a training set without triplets."""
    vocabulary = truth.vocabulary
    with no_garbage_collection():
        batches = read_scenes(training, vocabulary, scored=False, policy=policy)
        # `_label_keys` makes one number of the three labels of each triplet, which `_labels_of_keys` takes apart
        triplets_seen = np.unique(join_parts([_label_keys(scenes, vocabulary) for scenes in batches], np.int64))
    if not len(triplets_seen):
        problem = "no triplets in it; give the ground truth of the training set"
        raise DataError(problem, place=training.name, code="empty")
    text = "\n".join("\t".join(labels) for labels in sorted(_labels_of_keys(triplets_seen, vocabulary)))
    unseen = ~np.isin(_label_keys(truth.scenes, vocabulary), triplets_seen)
    return Unseen(unseen, f"train-{sha256(text.encode()).hexdigest()[:8]}")


def _label_keys(scenes: Scenes, vocabulary: Vocabulary) -> Ints:
    """Return [T] one number for the three labels (subject, verb, object) of each triplet."""
    keys: Ints = scenes.labels[scenes.subject] * len(vocabulary.verbs) + scenes.verb
    return keys * len(vocabulary.objects) + scenes.labels[scenes.object]


def _labels_of_keys(keys: Ints, vocabulary: Vocabulary) -> list[tuple[str, str, str]]:
    """Return the labels (subject, verb, object) of each number that `_label_keys` makes."""
    rest, object_ = np.divmod(keys, len(vocabulary.objects))
    subject, verb = np.divmod(rest, len(vocabulary.verbs))
    return [
        (vocabulary.objects[s], vocabulary.verbs[v], vocabulary.objects[o])
        for s, v, o in zip(subject.tolist(), verb.tolist(), object_.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class Recall:
    """A mean recall. value: in [0, 1], None without ground truth. n: how many images, or verbs, the mean is over.
    verbs: for mR@K the recall of each verb by its number; for the others without meaning."""

    value: float | None
    n: int
    verbs: Mapping[int, float]


def counted_triplets(truth: GroundTruth, *, repeats: bool = False) -> Bools:
    """Return a mask [T] of the ground-truth triplets that count: those with a class, but of triplets with the same two
    boxes and verb only the first, unless `repeats` count, too."""
    if repeats:
        return truth.scenes.interaction >= 0
    scenes = truth.scenes
    pair = scenes.subject * len(scenes.boxes) + scenes.object
    _, first_rows = np.unique(pair * len(truth.vocabulary.verbs) + scenes.verb, return_index=True)
    is_first = np.zeros(len(scenes.verb), dtype=bool)
    is_first[first_rows] = True
    return is_first & (scenes.interaction >= 0)


@dataclass(frozen=True)
class Measured:
    """What a model's predictions found of the ground truth, from which recalls are computed. ranks_found: at which rank
    each triplet is found first; convention: how recall is computed; unseen: which triplets zR@K is about, None to leave
    it out."""

    truth: GroundTruth
    ranks_found: FirstRanks
    convention: Convention
    unseen: Unseen | None = None

    @cached_property
    def _counted(self) -> Bools:
        """A mask [T] of the ground-truth triplets that count under the convention."""
        content = self.ranks_found.content(len(self.truth.scenes.image_ids))
        left_out = np.isin(content, self.convention.left_out)[self.truth.scenes.image_of_hoi]
        return counted_triplets(self.truth, repeats=self.convention.repeats) & ~left_out

    @cached_property
    def verb_counts(self) -> Ints:
        """[verbs] how many ground-truth triplets of each verb count."""
        return np.bincount(self.truth.scenes.verb[self._counted], minlength=len(self.truth.vocabulary.verbs))

    def recalls(self, constraint: str, k: int | None) -> dict[str, Recall]:
        """Return the recalls that the `k` best-ranked predictions of each image reach, by name: R, mR, zR (if it is
        known which triplets are unseen) and F1, the harmonic mean of R and mR. constraint: one of CONSTRAINTS; k: None
        for as many predictions of each image as it has triplets that count."""
        image = self.truth.scenes.image_of_hoi  # [T] of each triplet of the ground truth
        rows = np.flatnonzero(self._counted)
        own_counts = np.bincount(image[rows], minlength=len(self.truth.scenes.image_ids))  # of each image
        limit = own_counts[image] if k is None else k
        hits = self.ranks_found.first_ranks(constraint, len(image)) < limit
        recalls_of = {"R": self._recall(rows, hits), "mR": self._recall(rows, hits, by_verb=True)}
        if self.unseen is not None:
            recalls_of["zR"] = self._recall(rows[self.unseen.triplets[rows]], hits)
        recall = recalls_of["R"].value
        mean_recall = recalls_of["mR"].value
        f1 = None
        if recall is not None and mean_recall is not None:
            both = recall + mean_recall
            f1 = 2 * recall * mean_recall / both if both > 0 else 0.0
        return recalls_of | {"F1": Recall(f1, n=recalls_of["mR"].n, verbs={})}

    def _recall(self, rows: Ints, hits: Bools, *, by_verb: bool = False) -> Recall:
        """Return the mean over images of the share of their ground truth that is found. by_verb: compute this mean for
        the ground truth of each verb, and return the mean of these over verbs. rows: the triplets that count; hits [T]:
        whether each triplet of the ground truth is found."""
        scenes = self.truth.scenes
        group = scenes.verb[rows] if by_verb else np.zeros_like(rows)
        images = len(scenes.image_ids)
        # Triplets are counted by key, a number for each group (a verb, or 0 for all) and image.
        key_of_row = group * images + scenes.image_of_hoi[rows]
        keys, index_of_row, size = np.unique(key_of_row, return_inverse=True, return_counts=True)
        hit_counts = np.bincount(index_of_row, weights=hits[rows], minlength=len(keys))
        shares = (hit_counts / size).tolist()
        group_of_key = keys // max(images, 1)
        bounds = pairwise([*run_starts(group_of_key).tolist(), len(group_of_key)])
        recalls = {int(group_of_key[begin]): math.fsum(shares[begin:end]) / (end - begin) for begin, end in bounds}
        absent_count_0 = by_verb and self.convention.every_verb  # then verbs without ground truth are in the mean
        count = len(self.verb_counts) if absent_count_0 else len(recalls)
        value = math.fsum(recalls.values()) / count if count else None
        return Recall(value, count if by_verb else len(shares), recalls)


def measure_recalls(
    predictions: Stream,
    truth: GroundTruth,
    convention: Convention,
    policy: ErrorPolicy,
    *,
    unseen: Unseen | None = None,
) -> Measured:
    """Read predictions and return what they find of the ground truth. Notes on stderr tell what does not fit together.
    unseen: which triplets zR@K is about, None to leave it out. Raises `DataError` for a bad line, or an image that the
    ground truth does not have."""

    def gather(lines: Iterable[Line], shared_policy: ErrorPolicy) -> tuple[FirstRanks, Coverage]:
        """Read some lines, and return what they find and how well they fit the ground truth."""
        ranks_found = FirstRanks(as_listed=bool(convention.name))
        coverage = Coverage()
        for batch, _ in match_batches(lines, truth, [], Filters(), shared_policy):
            ranks_found.add(batch, convention.matching)
            coverage.add(batch)
        return ranks_found, coverage

    parts = gather_in_parallel(gather, predictions, policy, lambda part: part[0].images)
    ranks_found, coverage = parts[0]
    for other_ranks, other_coverage in parts[1:]:
        ranks_found.merge(other_ranks)
        coverage.merge(other_coverage)
    coverage.report(truth, [convention.matching], predictions.name)
    result = Measured(truth, ranks_found, convention, unseen)
    if convention.every_verb and (absent := int(np.count_nonzero(result.verb_counts == 0))):
        note(f"no ground truth of {absent:,} of {len(result.verb_counts):,} verbs: they count 0 in mR@K, as released")
    return result


def recall_rows(
    measured: Measured,
    ks: Sequence[int | None],
    *,
    settings: Settings,
    tags: Mapping[str, str],
    per_class: bool = False,
) -> Iterator[Row]:
    """Yield a row for every metric at every K under each constraint, in percent. `n` is the number of images for R@K
    and zR@K, and of verbs for mR@K and F1@K. per_class: also yield the recall R@K of each verb, where `n` is the number
    of its triplets. ks: the values of K, None for the number of the image's triplets."""
    convention = measured.convention
    unseen = measured.unseen
    pairs = product(convention.constraints, ks)
    recalls = {(constraint, k): measured.recalls(constraint, k) for constraint, k in pairs}
    # caveats: facts about where the predictions came from that affect these numbers
    settings = {**settings, **caveats.settings(measured.ranks_found.caveats & convention.matching.depends_on)}
    if convention.name:
        settings["released"] = convention.name  # the evaluator whose way of computing recall is followed

    def last_keys(constraint: str, more: Mapping[str, str]) -> Row:
        """Return the keys that rows under a constraint end with. more: further settings for the signature."""
        unit: Row = {"unit": "%", "constraint": constraint}
        return unit | row_ends(PROTOCOL, tags, {**settings, "constraint": constraint, **more})

    names = ("R", "mR", "F1") if unseen is None else ("R", "mR", "zR", "F1")
    for name, (constraint, k) in product(names, recalls):
        if k is None and name not in ("R", "mR"):  # nobody has the others relative
            continue
        recall = recalls[constraint, k][name]
        numbers = {"value": percent(recall.value), "n": recall.n}
        if name == "zR" and unseen is not None:
            keys = {"subset": "unseen", **numbers, **last_keys(constraint, {"split": unseen.name})}
        else:
            keys = {"subset": "full", **numbers, **last_keys(constraint, {})}
        yield result_row(_metric_name(name, k), **keys)
    if not per_class:
        return
    verbs = measured.truth.vocabulary.verbs
    counts = measured.verb_counts.tolist()
    for (constraint, k), recalls_by_name in recalls.items():
        for verb, value in recalls_by_name["mR"].verbs.items():
            keys = {"subset": "full", "verb": verbs[verb], "value": percent(value), "n": counts[verb]}
            yield result_row(_metric_name("R", k), **keys, **last_keys(constraint, {}))


def _metric_name(name: str, k: int | None) -> str:
    """Return the name of a metric: R@50, or R@K-relative if K is None."""
    return f"{name}@{'K-relative' if k is None else k}"
