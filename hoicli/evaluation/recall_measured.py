"""Recall at K of a stream of predictions: reading, gathering, and the metrics of each constraint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.coverage import Coverage
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.recall_conventions import Convention
from hoicli.evaluation.recall_found import Found
from hoicli.evaluation.recall_means import Parts, Recall, harmonic
from hoicli.evaluation.recall_unseen import Unseen
from hoicli.evaluation.run import gathered
from hoicli.io.messages import note
from hoicli.io.progress import Progress
from hoicli.io.streams import Line, Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Floats, Ints, rank_by_id
from hoicli.records.reading import read_scenes
from hoicli.resampling.draws import Resampling, blocks
from hoicli.resampling.intervals import FEWEST_IMAGES, interval
from hoicli.vocabulary.labels import Vocabulary

METRICS = ("R", "mR", "zR", "F1")
"""In the order of the rows. F1 is the harmonic mean of R and mR."""

Ends = tuple[float, float]


def evaluable(vocabulary: Vocabulary) -> Vocabulary:
    """The vocabulary itself; raises `UsageError` for one with roles, whose actions may have no object."""
    if vocabulary.roles:
        problem = "its actions have roles, and may have no object; recall is of triplets of subject, verb and object"
        raise UsageError(f"{arg('dataset', vocabulary.name)}: {problem}")
    return vocabulary


def counted(truth: GroundTruth) -> Bools:
    """[T] the ground-truth triplets that count: those with a class, of equal ones (the same two boxes and verb) the
    first."""
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
        counts = counted(self.truth)
        if not self.convention.silent_images:
            counts &= self.found.predicted(len(self.truth.scenes.image_ids))[self.truth.scenes.image_of_hoi]
        return counts

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
        """The parts of R, mR and, with `unseen`, zR."""
        image, _ = self._image
        rows = np.flatnonzero(self._counted)
        absent = np.count_nonzero(self.verb_counts == 0) if self.convention.every_verb else 0
        verb = self.truth.scenes.verb[rows]
        parts = {
            "R": Parts(rows, image[rows], np.zeros_like(rows)),
            "mR": Parts(rows, image[rows], verb, several=True, absent=int(absent)),
        }
        if self.unseen is not None:
            rows = rows[self.unseen.triplets[rows]]
            parts["zR"] = Parts(rows, image[rows], np.zeros_like(rows))
        return parts

    @cached_property
    def verb_counts(self) -> Ints:
        """[verbs] how many ground-truth triplets count of each."""
        return np.bincount(self.truth.scenes.verb[self._counted], minlength=len(self.truth.vocabulary.verbs))

    def _hits(self, constraint: str, k: int) -> Bools:
        """[T] whether each ground-truth triplet is found by the best `k`."""
        hits: Bools = self.found.rank(constraint, len(self.truth.scenes.verb)) < k
        return hits

    def recalls(self, constraint: str, k: int) -> dict[str, Recall]:
        """Each metric of METRICS at `k`; zR with `unseen` alone."""
        hits = self._hits(constraint, k)
        recalls = {name: parts.recall(hits) for name, parts in self.parts.items()}
        balanced = harmonic(recalls["R"].value, recalls["mR"].value)
        recalls["F1"] = Recall(balanced, recalls["mR"].n, {})
        return {name: recalls[name] for name in METRICS if name in recalls}

    def intervals(
        self, constraints: Sequence[str], ks: Sequence[int], resampling: Resampling
    ) -> dict[tuple[str, int, str], Ends | None]:
        """By (constraint, k, metric), the 95 % interval in [0, 1]; None with fewer than FEWEST_IMAGES images."""
        wanted = [(constraint, k, self._hits(constraint, k)) for constraint in constraints for k in ks]
        rounds: dict[tuple[str, int, str], list[Floats]] = {}
        _, images = self._image
        with Progress("resamples", total=resampling.rounds, unit="round") as bar:
            for block in blocks(resampling) if images >= FEWEST_IMAGES else ():
                weights = block.resamples(images)
                for constraint, k, hits in wanted:
                    drawn = {name: parts.rounds(hits, weights) for name, parts in self.parts.items()}
                    drawn["F1"] = _harmonic(drawn["R"], drawn["mR"])
                    for name, values in drawn.items():
                        rounds.setdefault((constraint, k, name), []).append(values)
                bar.advance(block.rounds)
        ends: dict[tuple[str, int, str], Ends | None] = {}
        for constraint, k, _ in wanted:
            for name, recall in self.recalls(constraint, k).items():
                place = (constraint, k, name)
                few = name != "mR" and name != "F1" and recall.n < FEWEST_IMAGES
                ends[place] = None
                if recall.value is not None and place in rounds and not few:
                    ends[place] = interval(recall.value, np.concatenate(rounds[place]), lowest=0.0, highest=1.0)
        return ends


def _harmonic(first: Floats, second: Floats) -> Floats:
    """[R] the harmonic mean of two recalls, 0 where one is; NaN where one is."""
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
        for batch in _batches(lines, truth, shared_policy):
            found.add(batch, convention.matching)
            coverage.add(batch)
        return found, coverage

    parts = gathered(gather, predictions, policy, lambda parts: Found.disjoint([part for part, _ in parts]))
    found, coverage = parts[0]
    for other, covered in parts[1:]:
        found.merge(other)
        coverage.merge(covered)
    coverage.report(truth, [convention.matching], predictions.name)
    result = Measured(truth, found, convention, unseen)
    if convention.every_verb and (absent := int(np.count_nonzero(result.verb_counts == 0))):
        note(f"no ground truth of {absent:,} of {len(result.verb_counts):,} verbs: they count 0 in mR@K, as released")
    return result


def _batches(lines: Iterable[Line], truth: GroundTruth, policy: ErrorPolicy) -> Iterator[Batch]:
    with no_garbage_collection():
        for scenes in read_scenes(lines, truth.vocabulary, scored=True, policy=policy, known=truth.position):
            yield Batch(scenes, truth)
