"""Recall at K of a stream of predictions: its metrics under each constraint, and their rows.

A metric is one computation on some part of the ground truth: a part of an image is the ground truth of a group in it,
its share is how much of that is found, a group's recall is the mean share over its images, and the metric is the mean
over groups. R@K has one group, mR@K a group for each verb, zR@K one of the unseen triplets. Sums are exact (math.fsum),
so no order of images changes a value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import Coverage
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.recall_conventions import PROTOCOL, Convention
from hoicli.evaluation.recall_found import Found, Unseen
from hoicli.evaluation.run import gathered, matched_batches
from hoicli.io.messages import note
from hoicli.io.progress import Progress
from hoicli.io.streams import Line, Stream
from hoicli.records import caveats
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Floats, Ints, rank_by_id, run_starts
from hoicli.records.results import Row, interval_keys, percent, row_ends
from hoicli.resampling.draws import Resampling, Weights, blocks
from hoicli.resampling.intervals import FEWEST_IMAGES, interval
from hoicli.resampling.rounds import HIDDEN_OF_MEANS, Observed
from hoicli.vocabulary.labels import Vocabulary

Ends = tuple[float, float]
At = tuple[str, int]
"""A constraint and K."""


@dataclass(frozen=True)
class Recall:
    """A mean recall in [0, 1], None without ground truth. n: how many images it is over, or groups if there may be
    several. groups: each group's own recall, by number."""

    value: float | None
    n: int
    groups: Mapping[int, float]


class Parts:
    """The parts of some ground-truth triplets.

    P parts by group, then by image. absent: groups without ground truth that count 0; several: there may be more than
    one group, so that `Recall.n` counts groups.
    """

    def __init__(self, rows: Ints, image: Ints, group: Ints, *, several: bool = False, absent: int = 0) -> None:
        """rows [M] of the triplets, image [M] each one's image by its place among the images by id, group [M]."""
        images = int(image.max(initial=0)) + 1
        key, self._part, self._size = np.unique(group * images + image, return_inverse=True, return_counts=True)
        self._group, self._image = np.divmod(key, images)
        self._rows, self._start = rows, run_starts(self._group)
        self.several, self._absent = several, absent

    def shares(self, found: Bools) -> Floats:
        """[P] how much of each part is found; found [T] is of all triplets."""
        hits = np.bincount(self._part, weights=found[self._rows], minlength=len(self._size))
        shares: Floats = hits / self._size
        return shares

    def recall(self, found: Bools) -> Recall:
        """The mean over groups of the mean share over images."""
        shares = self.shares(found).tolist()
        groups = {
            int(self._group[begin]): math.fsum(shares[begin:end]) / (end - begin)
            for begin, end in pairwise([*self._start.tolist(), len(shares)])
        }
        count = len(groups) + self._absent
        value = math.fsum(groups.values()) / count if count else None
        return Recall(value, count if self.several else len(shares), groups)

    def rounds(self, found: Bools, weights: Weights) -> Floats:
        """[R] the mean on resampled images: weights [N, R] say how often each image is drawn. NaN where a round draws
        no part. Groups that few images have are as for the mean AP over classes (`Observed.spread`)."""
        if not len(self._size):
            return np.full(weights.shape[1], np.nan)
        drawn = weights[self._image]
        shares = self.shares(found)
        total = np.add.reduceat(drawn * shares[:, np.newaxis], self._start, axis=0)
        images = np.add.reduceat(drawn, self._start, axis=0)
        means = np.divide(total, images, out=np.zeros(total.shape), where=images > 0)
        if self.several:
            size = np.diff([*self._start, len(shares)])
            observed = Observed(np.add.reduceat(shares, self._start) / size, size)
            means = observed.spread(means, images > 0, HIDDEN_OF_MEANS)
        count = np.where(images.any(axis=0), len(means), 0)
        rounds: Floats = np.full(len(count), np.nan)
        np.divide(means.sum(axis=0), count + self._absent, out=rounds, where=count > 0)
        return rounds


def evaluable(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary itself; raises `UsageError` for one with roles, whose actions may have no object."""
    if vocabulary.roles:
        problem = "its actions have roles, and may have no object; recall is of triplets of subject, verb and object"
        raise UsageError(f"{arg('dataset', vocabulary.name)}: {problem}")
    return vocabulary


def counted(truth: GroundTruth, *, repeats: bool = False) -> Bools:
    """[T] the ground-truth triplets that count: those with a class, of equal ones (the same two boxes and verb) the
    first unless `repeats` count."""
    if repeats:
        return truth.scenes.interaction >= 0
    scenes, verbs = truth.scenes, len(truth.vocabulary.verbs)
    first = np.zeros(len(scenes.verb), dtype=bool)
    pair = scenes.subject * len(scenes.boxes) + scenes.object
    first[np.unique(pair * verbs + scenes.verb, return_index=True)[1]] = True
    return first & (scenes.interaction >= 0)


@dataclass(frozen=True)
class Measured:
    """What a stream of predictions found. unseen: the ground truth of zR@K, None without it."""

    truth: GroundTruth
    found: Found
    convention: Convention
    unseen: Unseen | None = None

    @cached_property
    def _counted(self) -> Bools:
        """[T] the ground truth that counts."""
        content = self.found.content(len(self.truth.scenes.image_ids))
        left_out = np.isin(content, self.convention.left_out)[self.truth.scenes.image_of_hoi]
        return counted(self.truth, repeats=self.convention.repeats) & ~left_out

    @cached_property
    def _image(self) -> tuple[Ints, int]:
        """([T] each triplet's image, by its place among the ids of those that count, how many these are); meaningless
        for triplets that do not count."""
        scenes = self.truth.scenes
        numbers = np.unique(scenes.image_of_hoi[self._counted])
        place = np.zeros(len(scenes.image_ids), dtype=np.int64)
        place[numbers] = rank_by_id([scenes.image_ids[number] for number in numbers.tolist()])
        return place[scenes.image_of_hoi], len(numbers)

    @cached_property
    def parts(self) -> dict[str, Parts]:
        """The parts of R, of mR, and of zR if some ground truth is known to be unseen."""
        rows = np.flatnonzero(self._counted)
        parts = {"R": self._parts_of(rows), "mR": self._parts_of(rows, by_verb=True)}
        return parts if self.unseen is None else parts | {"zR": self._parts_of(rows[self.unseen.triplets[rows]])}

    def _parts_of(self, rows: Ints, *, by_verb: bool = False) -> Parts:
        """The parts of some ground truth: of one group, or of one for each verb."""
        image, _ = self._image
        if not by_verb:
            return Parts(rows, image[rows], np.zeros_like(rows))
        absent = np.count_nonzero(self.verb_counts == 0) if self.convention.every_verb else 0
        return Parts(rows, image[rows], self.truth.scenes.verb[rows], several=True, absent=int(absent))

    @cached_property
    def verb_counts(self) -> Ints:
        """[verbs] how many ground-truth triplets count of each."""
        return np.bincount(self.truth.scenes.verb[self._counted], minlength=len(self.truth.vocabulary.verbs))

    def hits(self, constraint: str, k: int) -> Bools:
        """[T] whether each ground-truth triplet is found by the best `k`."""
        hits: Bools = self.found.rank(constraint, len(self.truth.scenes.verb)) < k
        return hits

    def recalls(self, hits: Bools) -> dict[str, Recall]:
        """The metrics in the order of their rows: those of `parts`, and F1, the harmonic mean of R and mR."""
        found = {name: parts.recall(hits) for name, parts in self.parts.items()}
        both = [found[name].value for name in ("R", "mR")]
        f1 = None if None in both else float(_harmonic(*np.array(both, dtype=np.float64)))
        return found | {"F1": Recall(f1, found["mR"].n, {})}

    def intervals(self, wanted: Mapping[At, Bools], resampling: Resampling) -> dict[tuple[At, str], Ends | None]:
        """By what is wanted (the hits at each) and metric, the 95 % interval in [0, 1]; None with fewer than
        FEWEST_IMAGES images."""
        rounds: dict[tuple[At, str], list[Floats]] = {}
        _, images = self._image
        with Progress("resamples", total=resampling.rounds, unit="round") as bar:
            for block in blocks(resampling) if images >= FEWEST_IMAGES else ():
                weights = block.resamples(images)
                for at, hits in wanted.items():
                    drawn = {name: parts.rounds(hits, weights) for name, parts in self.parts.items()}
                    drawn["F1"] = _harmonic(drawn["R"], drawn["mR"])
                    for name, values in drawn.items():
                        rounds.setdefault((at, name), []).append(values)
                bar.advance(block.rounds)
        ends: dict[tuple[At, str], Ends | None] = {}
        for at, hits in wanted.items():
            for name, recall in self.recalls(hits).items():
                ends[at, name] = None
                if recall.value is not None and (at, name) in rounds:
                    over = recall.n if name in ("R", "zR") else images
                    values = np.concatenate(rounds[at, name])
                    ends[at, name] = interval(recall.value, values, over, lowest=0.0, highest=1.0)
        return ends


def _harmonic(first: Floats, second: Floats) -> Floats:
    """[R] the harmonic mean of two recalls (F1@K of R@K and mR@K), 0 where one is; NaN where one is."""
    total = first + second
    return np.divide(2 * first * second, total, out=np.where(np.isnan(total), np.nan, 0.0), where=total > 0)


def measured(
    predictions: Stream,
    truth: GroundTruth,
    convention: Convention,
    policy: ErrorPolicy,
    *,
    unseen: Unseen | None = None,
) -> Measured:
    """The predictions' recalls; what does not fit together is said on stderr. Raises `DataError` for a bad line or an
    image that the ground truth does not have."""

    def gather(lines: Iterable[Line], shared_policy: ErrorPolicy) -> tuple[Found, Coverage]:
        found, coverage = Found(), Coverage()
        for batch, _ in matched_batches(lines, truth, [], Filters(), shared_policy):
            found.add(batch, convention.matching)
            coverage.add(batch)
        return found, coverage

    parts = gathered(gather, predictions, policy, lambda part: part[0].images)
    found, coverage = parts[0]
    for other, covered in parts[1:]:
        found.merge(other)
        coverage.merge(covered)
    coverage.report(truth, [convention.matching], predictions.name)
    result = Measured(truth, found, convention, unseen)
    if convention.every_verb and (absent := int(np.count_nonzero(result.verb_counts == 0))):
        note(f"no ground truth of {absent:,} of {len(result.verb_counts):,} verbs: they count 0 in mR@K, as released")
    return result


def recall_rows(
    measured: Measured,
    ks: Sequence[int],
    *,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
    per_class: bool = False,
    resampling: Resampling | None = None,
) -> Iterator[Row]:
    """Every metric at every K under each constraint, in percent. `n`: the images of R@K and zR@K, the verbs of mR@K and
    F1@K. per_class: then the recall R@K of each verb, with the count of its ground truth; resampling: intervals for the
    means. `settings` go into every signature.
    """
    convention, unseen = measured.convention, measured.unseen
    wanted = {at: measured.hits(*at) for at in product(convention.constraints, ks)}
    recalls = {at: measured.recalls(hits) for at, hits in wanted.items()}
    ends = {} if resampling is None else measured.intervals(wanted, resampling)
    drawn = {} if resampling is None else resampling.signature()
    settings = {**settings, **({"released": convention.name} if convention.name else {})}
    settings |= caveats.settings(measured.found.caveats & convention.matching.depends_on)

    def last(constraint: str, more: Mapping[str, str]) -> Row:
        unit: Row = {"unit": "%", "constraint": constraint}
        return unit | row_ends(PROTOCOL, tags, {**settings, "constraint": constraint, **more})

    for name, at in product([*measured.parts, "F1"], wanted):
        recall, split = recalls[at][name], {} if name != "zR" or unseen is None else {"split": unseen.name}
        row: Row = {"metric": f"{name}@{at[1]}", "subset": "unseen" if split else "full"}
        row |= {"value": percent(recall.value), "n": recall.n}
        if resampling is not None:
            row |= interval_keys(ends[at, name])
        yield row | last(at[0], {**drawn, **split})
    verbs, counts = measured.truth.vocabulary.verbs, measured.verb_counts.tolist()
    for constraint, k in wanted if per_class else ():
        for verb, value in recalls[constraint, k]["mR"].groups.items():
            row = {"metric": f"R@{k}", "subset": "full", "verb": verbs[verb], "value": percent(value)}
            yield row | {"n": counts[verb]} | last(constraint, {})
