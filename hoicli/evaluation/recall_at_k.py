"""Recall at K of a stream of predictions: which ground-truth triplets are found and at which rank first, the metrics of
that under each constraint, and their rows.

R@K is the mean over images of how much of their ground truth is found; mR@K the mean over verbs of that of the ground
truth with the verb; zR@K that of triplets that a detector did not see in training. An image's ground truth is found by
the predictions of its own line alone, so batches may come in any order and from several processes; sums are exact
(math.fsum), so no order of images changes a value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from itertools import pairwise, product

import numpy as np

from hoicli.errors import DataError
from hoicli.evaluation.coverage import Coverage
from hoicli.evaluation.evaluating import gather_in_parallel, matched_batches
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


def ranks(scenes: Scenes, *, as_listed: bool = False) -> dict[str, Ints]:
    """Return, by constraint, [T] the rank of each prediction in its image, from 0 by descending score; NEVER for a
    prediction that the constraint leaves out. Equal scores are ranked by verb, labels and corners of the boxes, or by
    input order if `as_listed`. A pair is two boxes of a record, told apart by their indices."""
    every, pair = np.arange(len(scenes.score)), scenes.subject * len(scenes.boxes) + scenes.object
    if not as_listed:
        labels = scenes.object_label, scenes.labels[scenes.subject]
        every = order_by_score(
            scenes.score, lambda rows: [*scenes.ends(rows), *(label[rows] for label in labels), scenes.verb[rows]]
        )
    best_of_pairs = every[ranks_in_groups(pair[every], scenes.score[every]) == 0]
    ranks_of = {name: np.full(len(every), NEVER) for name in CONSTRAINTS}
    for name, ranked in zip(CONSTRAINTS, (best_of_pairs, every), strict=True):
        ranks_of[name][ranked] = ranks_in_groups(scenes.image_of_hoi[ranked], scenes.score[ranked])
    return ranks_of


class Found:
    """Gathers, batch by batch, which ground-truth triplets are found and at which rank first; `rank` gives the result.
    as_listed: as in `ranks`. caveats: the mask of the predictions' caveats."""

    def __init__(self, *, as_listed: bool = False) -> None:
        self._as_listed, self.caveats = as_listed, 0
        self._found = Growing(triplet=np.int64, **dict.fromkeys(CONSTRAINTS, np.int64))
        self._images = Growing(image=np.int64, content=np.int64)

    def add(self, batch: Batch, protocol: Protocol) -> None:
        """Add the predictions of some images, whose boxes are compared as the protocol does."""
        row, triplet = batch.overlapping_pairs(protocol)
        triplets_found, index = np.unique(triplet, return_inverse=True)
        columns = {}
        for name, rank in ranks(batch.predictions, as_listed=self._as_listed).items():
            columns[name] = np.full(len(triplets_found), NEVER)
            np.minimum.at(columns[name], index, rank[row])
        self._found.add(triplet=triplets_found, **columns)
        self.caveats |= batch.predictions.every_caveat
        boxes, hois = (np.diff(start) > 0 for start in (batch.predictions.box_start, batch.predictions.hoi_start))
        content = np.where(hois, PREDICTIONS, np.where(boxes, BOXES, NOTHING))
        self._images.add(image=batch.image, content=content)

    def merge(self, other: Found) -> None:
        """Add what was gathered from other images."""
        self._found.merge(other._found)
        self._images.merge(other._images)
        self.caveats |= other.caveats

    @property
    def images(self) -> list[int]:
        """The images that were added, as indices into those of the ground truth."""
        images: list[int] = self._images["image"].tolist()
        return images

    def rank(self, constraint: str, triplets: int) -> Ints:
        """Return [triplets] the rank of the best prediction that finds each ground-truth triplet, NEVER without one."""
        rank = np.full(triplets, NEVER)
        rank[self._found["triplet"]] = self._found[constraint]
        return rank

    def content(self, images: int) -> Ints:
        """Return [images] what is predicted in each image of the ground truth: NOTHING, BOXES or PREDICTIONS."""
        content = np.full(images, NOTHING)
        content[self._images["image"]] = self._images["content"]
        return content


@dataclass(frozen=True)
class Unseen:
    """What a detector did not see in training. triplets [T]: whether each triplet of the ground truth is unseen. name:
    the name of the training set in signatures."""

    triplets: Bools
    name: str


def not_in_training(truth: GroundTruth, training: Stream, policy: ErrorPolicy) -> Unseen:
    """Return which triplets of the ground truth are unseen: those whose labels (subject, verb, object) no triplet of
    the training set has. The training set is named by a digest of the triplets it has. Raises `DataError` for a bad
    line, and for a training set without triplets."""
    vocabulary = truth.vocabulary
    with no_garbage_collection():
        batches = read_scenes(training, vocabulary, scored=False, policy=policy)
        triplets_seen = np.unique(join_parts([_keys(scenes, vocabulary) for scenes in batches], np.int64))
    if not len(triplets_seen):
        problem = "no triplets in it; give the ground truth of the training set"
        raise DataError(problem, place=training.name, code="empty")
    text = "\n".join("\t".join(names) for names in sorted(_names(triplets_seen, vocabulary)))
    unseen = ~np.isin(_keys(truth.scenes, vocabulary), triplets_seen)
    return Unseen(unseen, f"train-{sha256(text.encode()).hexdigest()[:8]}")


def _keys(scenes: Scenes, vocabulary: Vocabulary) -> Ints:
    """Return [T] a number for each triplet's (subject, verb, object), equal where all three labels are equal."""
    keys: Ints = scenes.labels[scenes.subject] * len(vocabulary.verbs) + scenes.verb
    return keys * len(vocabulary.objects) + scenes.labels[scenes.object]


def _names(keys: Ints, vocabulary: Vocabulary) -> list[tuple[str, str, str]]:
    """Return the three labels of each number that `_keys` makes."""
    rest, object_ = np.divmod(keys, len(vocabulary.objects))
    subject, verb = np.divmod(rest, len(vocabulary.verbs))
    return [
        (vocabulary.objects[s], vocabulary.verbs[v], vocabulary.objects[o])
        for s, v, o in zip(subject.tolist(), verb.tolist(), object_.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class Recall:
    """A mean recall. value: in [0, 1], None without ground truth. n: over how many images, or verbs, the mean is.
    verbs: each verb's own recall, by the verb's number; for R and zR only one entry, 0."""

    value: float | None
    n: int
    verbs: Mapping[int, float]


def counted_triplets(truth: GroundTruth, *, repeats: bool = False) -> Bools:
    """Return [T] whether each ground-truth triplet counts: it must have a class, and of triplets with the same two
    boxes and verb only the first counts, unless `repeats` count, too."""
    if repeats:
        return truth.scenes.interaction >= 0
    scenes, verbs = truth.scenes, len(truth.vocabulary.verbs)
    first = np.zeros(len(scenes.verb), dtype=bool)
    pair = scenes.subject * len(scenes.boxes) + scenes.object
    first[np.unique(pair * verbs + scenes.verb, return_index=True)[1]] = True
    return first & (scenes.interaction >= 0)


@dataclass(frozen=True)
class Measured:
    """What a stream of predictions found, to compute recalls of. unseen: the ground truth of zR@K, None without."""

    truth: GroundTruth
    ranks_found: Found
    convention: Convention
    unseen: Unseen | None = None

    @cached_property
    def _counted(self) -> Bools:
        """[T] whether each ground-truth triplet counts under the convention."""
        content = self.ranks_found.content(len(self.truth.scenes.image_ids))
        left_out = np.isin(content, self.convention.left_out)[self.truth.scenes.image_of_hoi]
        return counted_triplets(self.truth, repeats=self.convention.repeats) & ~left_out

    @cached_property
    def verb_counts(self) -> Ints:
        """[verbs] how many ground-truth triplets of each verb count."""
        return np.bincount(self.truth.scenes.verb[self._counted], minlength=len(self.truth.vocabulary.verbs))

    def recalls(self, constraint: str, k: int) -> dict[str, Recall]:
        """Return the metrics of the `k` best-ranked predictions of each image, in the order of their rows: R, mR, zR
        if unseen ground truth is known, and F1, the harmonic mean of R and mR."""
        hits = self.ranks_found.rank(constraint, len(self.truth.scenes.verb)) < k
        rows = np.flatnonzero(self._counted)
        recalls_of = {"R": self._recall(rows, hits), "mR": self._recall(rows, hits, by_verb=True)}
        if self.unseen is not None:
            recalls_of["zR"] = self._recall(rows[self.unseen.triplets[rows]], hits)
        r, mr = recalls_of["R"].value, recalls_of["mR"].value
        f1 = None if r is None or mr is None else 2 * r * mr / (r + mr) if r + mr > 0 else 0.0
        return recalls_of | {"F1": Recall(f1, recalls_of["mR"].n, {})}

    def _recall(self, rows: Ints, hits: Bools, *, by_verb: bool = False) -> Recall:
        """Return the mean over images of the share of their ground truth that is found. by_verb: this mean for the
        ground truth of each verb, and the mean of these over verbs. rows: the triplets that count; hits [T]: whether
        each triplet of the ground truth is found."""
        scenes = self.truth.scenes
        group = scenes.verb[rows] if by_verb else np.zeros_like(rows)
        images = len(scenes.image_ids)
        # A key is a group (a verb, or 0) and an image; `key_of_row` is the index of each triplet's key.
        keys = group * images + scenes.image_of_hoi[rows]
        key, key_of_row, size = np.unique(keys, return_inverse=True, return_counts=True)
        shares = (np.bincount(key_of_row, weights=hits[rows], minlength=len(key)) / size).tolist()
        group_of_key = key // max(images, 1)
        bounds = pairwise([*run_starts(group_of_key).tolist(), len(group_of_key)])
        groups = {int(group_of_key[begin]): math.fsum(shares[begin:end]) / (end - begin) for begin, end in bounds}
        absent = by_verb and self.convention.every_verb  # verbs without ground truth count 0
        count = len(self.verb_counts) if absent else len(groups)
        return Recall(math.fsum(groups.values()) / count if count else None, count if by_verb else len(shares), groups)


def measure_recalls(
    predictions: Stream,
    truth: GroundTruth,
    convention: Convention,
    policy: ErrorPolicy,
    *,
    unseen: Unseen | None = None,
) -> Measured:
    """Return what the predictions found; notes on stderr tell what does not fit the ground truth. Raises `DataError`
    for a bad line, or an image that the ground truth does not have."""

    def gather(lines: Iterable[Line], shared_policy: ErrorPolicy) -> tuple[Found, Coverage]:
        ranks_found, coverage = Found(as_listed=bool(convention.name)), Coverage()
        for batch, _ in matched_batches(lines, truth, [], Filters(), shared_policy):
            ranks_found.add(batch, convention.matching)
            coverage.add(batch)
        return ranks_found, coverage

    parts = gather_in_parallel(gather, predictions, policy, lambda part: part[0].images)
    ranks_found, coverage = parts[0]
    for other, covered in parts[1:]:
        ranks_found.merge(other)
        coverage.merge(covered)
    coverage.report(truth, [convention.matching], predictions.name)
    result = Measured(truth, ranks_found, convention, unseen)
    if convention.every_verb and (absent := int(np.count_nonzero(result.verb_counts == 0))):
        note(f"no ground truth of {absent:,} of {len(result.verb_counts):,} verbs: they count 0 in mR@K, as released")
    return result


def recall_rows(
    measured: Measured,
    ks: Sequence[int],
    *,
    settings: Settings,
    tags: Mapping[str, str],
    per_class: bool = False,
) -> Iterator[Row]:
    """Yield a row for every metric at every K under each constraint, in percent; its `n` counts images for R@K and
    zR@K, and verbs for mR@K and F1@K. per_class: also yield the recall R@K of each verb, whose `n` counts its ground
    truth. settings: what goes into every signature."""
    convention, unseen = measured.convention, measured.unseen
    recalls = {pair: measured.recalls(*pair) for pair in product(convention.constraints, ks)}
    settings = {**settings, **({"released": convention.name} if convention.name else {})}
    settings |= caveats.settings(measured.ranks_found.caveats & convention.matching.depends_on)

    def last_keys(constraint: str, more: Mapping[str, str]) -> Row:
        unit: Row = {"unit": "%", "constraint": constraint}
        return unit | row_ends(PROTOCOL, tags, {**settings, "constraint": constraint, **more})

    for name, (constraint, k) in product(("R", "mR", *(() if unseen is None else ("zR",)), "F1"), recalls):
        recall, split = recalls[constraint, k][name], {} if name != "zR" or unseen is None else {"split": unseen.name}
        subset, value = "unseen" if split else "full", percent(recall.value)
        yield result_row(f"{name}@{k}", subset=subset, value=value, n=recall.n, **last_keys(constraint, split))
    verbs, counts = measured.truth.vocabulary.verbs, measured.verb_counts.tolist()
    for (constraint, k), recalls_here in recalls.items() if per_class else ():
        for verb, value in recalls_here["mR"].verbs.items():
            numbers = {"value": percent(value), "n": counts[verb]}
            yield result_row(f"R@{k}", subset="full", verb=verbs[verb], **numbers, **last_keys(constraint, {}))
