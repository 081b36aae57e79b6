"""From outcomes to numbers: per-class average precision and its means over the published subsets.

Work per image (`hoicli.matching`) is over by now; a `Tally` gathers its outcomes in any order and always gives the
same numbers, because predictions are ranked by (score, image id, position in the image) and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hoicli.average_precision import interpolated_ap
from hoicli.matching import TRUE_POSITIVE, Batch, GroundTruth, Outcomes
from hoicli.protocols import Protocol
from hoicli.scenes import Bools, Floats, Ints
from hoicli.vocabulary import Vocabulary


@dataclass(frozen=True)
class ClassResults:
    """One protocol's results for each of the C interactions.

    ap, max_recall [C] in [0, 1]; positives [C] ground truth; in_mean [C] whether the protocol averages the class.
    """

    ap: Floats
    max_recall: Floats
    positives: Ints
    in_mean: Bools


@dataclass(frozen=True)
class Mean:
    """The mean over one subset of classes. ap and max_recall in [0, 1], None when the subset is empty."""

    subset: str
    ap: float | None
    max_recall: float | None
    classes: int


class Tally:
    """Gathers the outcomes of batches of images for some protocols, then ranks them once for all.

    add() in any order; results() when all is in.
    """

    def __init__(self, protocols: Sequence[Protocol], classes: int) -> None:
        self._protocols = list(protocols)
        self._classes = classes
        self._interaction: list[NDArray[np.int16]] = []
        self._score: list[Floats] = []
        self._image: list[NDArray[np.int32]] = []
        self._codes: dict[str, list[NDArray[np.uint8]]] = {protocol.name: [] for protocol in protocols}
        self._image_ids: list[str] = []
        self.positives = {protocol.name: np.zeros(classes, dtype=np.int64) for protocol in protocols}

    def add(
        self, image_ids: Sequence[str], image: Ints, interaction: Ints, score: Floats, codes: Mapping[str, NDArray[np.uint8]]
    ) -> None:
        """A batch: image [T] indexes image_ids, interaction [T] the classes (-1 for none), codes [T] OUTCOMES."""
        self._image.append((image + len(self._image_ids)).astype(np.int32))
        self._image_ids.extend(image_ids)
        self._interaction.append(interaction.astype(np.int16))
        self._score.append(score)
        for name, code in codes.items():
            self._codes[name].append(code)

    def add_batch(self, batch: Batch, outcomes: Mapping[str, Outcomes]) -> None:
        """A matched batch as it comes from `matching`."""
        scenes = batch.predictions
        codes = {name: outcome.code for name, outcome in outcomes.items()}
        self.add(scenes.image_ids, scenes.image_of_hoi, scenes.interaction, scenes.score, codes)

    def add_truth(self, truth: GroundTruth) -> None:
        """The ground truth of all images, with or without predictions."""
        for protocol in self._protocols:
            self.positives[protocol.name] += truth.class_counts(protocol)

    @property
    def predictions(self) -> int:
        """Predictions gathered, dropped ones included."""
        return sum(map(len, self._score))

    def outcome_counts(self, name: str, outcomes: int) -> Ints:
        """[outcomes] predictions by outcome code under one protocol."""
        return np.bincount(_joined(self._codes[name], np.uint8), minlength=outcomes)

    def results(self, vocabulary: Vocabulary) -> Iterator[tuple[Protocol, ClassResults]]:
        """Each protocol's per-class results."""
        interaction = _joined(self._interaction, np.int16)
        order = self._ranking(interaction)
        interaction = interaction[order]
        dropped_classes = sorted(vocabulary.no_interaction_ids)
        for protocol in self._protocols:
            code = _joined(self._codes[protocol.name], np.uint8)[order]
            counted = code <= TRUE_POSITIVE
            positives = self.positives[protocol.name]
            ap, max_recall = _per_class(interaction[counted], code[counted] == TRUE_POSITIVE, positives, protocol)
            in_mean = positives > 0 if protocol.only_annotated_classes else np.ones(self._classes, dtype=bool)
            if protocol.drop_no_interaction:
                in_mean = in_mean.copy()
                in_mean[dropped_classes] = False
            yield protocol, ClassResults(ap, max_recall, positives, in_mean)

    def _ranking(self, interaction: NDArray[np.int16]) -> Ints:
        """All predictions by class, then descending score, then image id, then position in the image.

        Three stable sorts, the least important key first: cheaper than one lexsort, as the images usually come in
        order already and the classes are small integers (radix sort).
        """
        rank = np.empty(len(self._image_ids), dtype=np.int32)
        rank[np.argsort(np.array(self._image_ids, dtype=object), kind="stable")] = np.arange(len(rank), dtype=np.int32)
        image = rank[_joined(self._image, np.int32)]
        order = np.argsort(image, kind="stable")
        order = order[np.argsort(-_joined(self._score, np.float64)[order], kind="stable")]
        return order[np.argsort(interaction[order], kind="stable")]


def _joined(parts: list[NDArray[np.generic]], dtype: type[np.generic]) -> NDArray[np.generic]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=dtype)


def _per_class(
    interaction: NDArray[np.int16], hit: Bools, positives: Ints, protocol: Protocol
) -> tuple[Floats, Floats]:
    """(ap, max recall), each [C], of predictions in ranking order."""
    classes = len(positives)
    start = np.searchsorted(interaction, np.arange(classes + 1))
    rank = np.arange(len(interaction)) - start[interaction] + 1
    if protocol.predictions_per_class is not None:
        hit = hit & (rank <= protocol.predictions_per_class)
    ranks = rank[hit]
    bounds = np.searchsorted(interaction[hit], np.arange(classes + 1))
    ap, max_recall = np.zeros(classes), np.zeros(classes)
    for number in np.flatnonzero(np.diff(bounds)):
        found = ranks[bounds[number] : bounds[number + 1]]
        ap[number] = interpolated_ap(found, int(positives[number]), protocol.grid)
        max_recall[number] = len(found) / positives[number]
    return ap, max_recall


def means(
    results: ClassResults, vocabulary: Vocabulary, *, split: str | None = None, ignore_no_interaction: bool = False
) -> Iterator[Mean]:
    """The means a paper prints: full, the frequency groups (rare, non_rare), and unseen and seen for a split.

    `split` is a key of `vocabulary.unseen`. `ignore_no_interaction` leaves the classes of that verb out (INP-CC's
    --ignore_non_interaction: 520 of HICO-DET's 600).
    """
    everything = frozenset(range(len(results.ap)))
    subsets = {"full": everything, **vocabulary.groups}
    if split is not None:
        subsets |= {"unseen": vocabulary.unseen[split], "seen": everything - vocabulary.unseen[split]}
    left_out = vocabulary.no_interaction_ids if ignore_no_interaction else frozenset[int]()
    for subset, members in subsets.items():
        chosen = np.array(sorted(members - left_out), dtype=np.int64)
        chosen = chosen[results.in_mean[chosen]]
        if len(chosen):
            yield Mean(subset, float(results.ap[chosen].mean()), float(results.max_recall[chosen].mean()), len(chosen))
        else:
            yield Mean(subset, None, None, 0)
