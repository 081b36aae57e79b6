"""From outcomes to numbers: the results of each class, and their means over the published subsets.

A `Tally` gathers the outcomes of `hoicli.evaluation.matching` in any order and always gives the same numbers, because
predictions are ranked by (score, image id, position in the image) alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.named import truth_settings
from hoicli.errors import UsageError, arg
from hoicli.evaluation.filters import UNCOUNTED
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch, Outcomes
from hoicli.evaluation.pairing import TRUE_POSITIVE
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import Listed, Ranked, per_class
from hoicli.records import caveats
from hoicli.records.kit import Bools, Floats, Growing, Ints, among, join_parts, starts_of
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from hoicli.resampling.ranked import RankedLists


@dataclass(frozen=True)
class ClassResults:
    """One protocol's results for each of its C classes (`class_vocabulary`).

    ap, max_recall [C] in [0, 1]; positives [C] ground truth; in_mean [C] whether the protocol averages the class.
    """

    ap: Floats
    max_recall: Floats
    positives: Ints
    in_mean: Bools

    @classmethod
    def mean(cls, several: Sequence[ClassResults]) -> ClassResults:
        """Return the mean, class by class, of the results of one protocol at several thresholds."""
        ap, recall = (np.mean([getattr(results, name) for results in several], axis=0) for name in ("ap", "max_recall"))
        return replace(several[0], ap=ap, max_recall=recall)

    def average_subsets(self, subsets: Mapping[str, Ints]) -> dict[str, Ints]:
        """Return, for each subset, those of its classes that the protocol averages."""
        return {name: classes[self.in_mean[classes]] for name, classes in subsets.items()}


class Mean(NamedTuple):
    """The mean over one subset of classes. ap and max_recall in [0, 1], None when the subset is empty."""

    subset: str
    ap: float | None
    max_recall: float | None
    classes: int


class ScoredLists(NamedTuple):
    """The predictions that count under one protocol, class by class in ranking order. hit, score [T]: whether each is a
    true positive, and its score; class c has the rows bounds[c] to bounds[c + 1]."""

    hit: Bools
    score: Floats
    bounds: Ints


@dataclass
class Annotated:
    """The ground truth that one protocol counts, in parts (image ids, image and class of each triplet), not copied."""

    parts: list[tuple[Sequence[str], Ints, Ints]] = field(default_factory=list)

    def add(self, image_ids: Sequence[str], image: Ints, interaction: Ints) -> None:
        """Add images and their triplets. image [P]: the image of each triplet, an index into image_ids."""
        self.parts.append((image_ids, image, interaction))

    def images(self) -> Iterator[str]:
        """Return the ids of the images that were added, in their order."""
        return chain.from_iterable(image_ids for image_ids, _, _ in self.parts)

    @property
    def image(self) -> Ints:
        """[P] the image of each triplet, an index into `images`."""
        starts = starts_of([len(image_ids) for image_ids, _, _ in self.parts]).tolist()
        return join_parts([image + start for (_, image, _), start in zip(self.parts, starts, strict=False)], np.int64)

    @property
    def classes(self) -> Ints:
        """[P] the class of each triplet."""
        return join_parts([interaction for _, _, interaction in self.parts], np.int64)


class Tally:
    """Gathers the outcomes of batches of images for some protocols, then ranks all predictions once. Call `add` for
    the batches in any order, and `results` after the last one."""

    def __init__(self, protocols: Sequence[Protocol], classes: int) -> None:
        self._protocols = list(protocols)
        matched = [protocol for protocol in protocols if not protocol.mean_of]
        self._classes = classes
        self.listed = Listed()
        self._codes = Growing(**{protocol.key: np.uint8 for protocol in matched})
        self._truth: dict[str, Annotated] = {protocol.key: Annotated() for protocol in matched}
        self.caveats = 0
        """The mask of the caveats of these images' records or match records."""
        self.truth_total: int | None = None
        """The sum of the hashes of the ground truth (`GroundTruth.total`), None as long as it is not known."""
        self.orders: dict[str, int] = {}
        """`GroundTruth.order` of each protocol, by its key, once the ground truth is known."""
        self.objects = self.unlabelled = 0
        """How many predictions have an object, and how many of these objects have no label."""
        self.uncounted = False
        """Whether most of the ground truth, or of the predictions (`coverage.check_counted`), is left uncounted."""

    def leave_out(self, rows: Sequence[Protocol]) -> list[Protocol]:
        """Drop the protocols `rows`, for which there are to be no results, and return the others."""
        self._protocols = [row for row in self._protocols if row not in rows]
        return self._protocols

    def add(
        self,
        image_ids: Sequence[str],
        image: Ints,
        interaction: Ints,
        score: Floats,
        codes: Mapping[str, NDArray[np.uint8]],
    ) -> None:
        """Add the predictions of a batch. image [T]: the image of each, an index into image_ids, ascending; interaction
        [T]: its class, -1 for none; codes: by protocol key, [T] its outcome, an index of OUTCOMES."""
        self.listed.add(image_ids, image, interaction, score)
        self._codes.add(**codes)

    def add_batch(self, batch: Batch, outcomes: Mapping[str, Outcomes]) -> None:
        """Add a batch with its outcomes by protocol key."""
        scenes = batch.predictions
        codes = {name: outcome.code for name, outcome in outcomes.items()}
        self.caveats |= scenes.every_caveat & caveats.PREDICTIONS
        self.objects += int((scenes.object >= 0).sum())
        self.unlabelled += scenes.unlabelled_objects
        self.add(scenes.image_ids, scenes.image_of_hoi, scenes.interaction, scenes.score, codes)

    def add_truth(self, truth: GroundTruth) -> None:
        """Add the ground truth of all images, with or without predictions."""
        self.caveats |= truth.caveats
        self.truth_total = truth.total
        self.orders = {protocol.key: truth.order(protocol) for protocol in self._protocols}
        self.uncounted |= truth.uncounted
        for protocol in self._protocols:
            if not protocol.mean_of:
                self.add_annotated(protocol.key, truth.scenes.image_ids, *truth.annotated_classes(protocol))

    def add_annotated(self, protocol: str, image_ids: Sequence[str], image: Ints, interaction: Ints) -> None:
        """Add ground truth that a protocol (its key) counts. image [P] indexes image_ids; interaction [P]: classes."""
        self._truth[protocol].add(image_ids, image, interaction)

    def against(self, truth: GroundTruth, outcomes: Mapping[str, Outcomes]) -> Tally:
        """Return a tally of the same predictions, whose ranking is shared, with their outcomes against other truth."""
        other = copy(self)
        other._codes = Growing(**dict.fromkeys(outcomes, np.uint8))
        other._codes.add(**{name: outcome.code for name, outcome in outcomes.items()})
        other._truth = {name: Annotated() for name in outcomes}
        other.add_truth(truth)
        return other

    def merge(self, other: Tally) -> None:
        """Add another tally of the same protocols, gathered from other images."""
        self.listed.merge(other.listed)
        self.caveats |= other.caveats
        self.objects += other.objects
        self.unlabelled += other.unlabelled
        self._codes.merge(other._codes)
        for name, annotated in other._truth.items():
            self._truth[name].parts += annotated.parts

    def settings(self, protocol: Protocol) -> dict[str, str]:
        """Return a protocol's settings for signatures: its name, what differs from the published protocol, which ground
        truth the numbers are of, and the caveats."""
        return {
            "protocol": protocol.name,
            **protocol.settings(),
            **truth_settings(self.truth_total, self.orders.get(protocol.key, 0)),
            **self.leave,
            **caveats.settings(self.caveats & protocol.depends_on),
        }

    @property
    def leave(self) -> dict[str, str]:
        """The setting UNCOUNTED, which signatures have where most triplets have no class; empty elsewhere."""
        return dict(UNCOUNTED) if self.uncounted else {}

    def results(self, vocabulary: Vocabulary) -> Iterator[tuple[Protocol, ClassResults]]:
        """Yield each protocol with its per-class results, means over thresholds included."""
        rankings = self._rankings(vocabulary)
        matched = [row for row in self._protocols if not row.mean_of]
        results_of = {row.key: self._result(row, rankings[row.by_verb], vocabulary) for row in matched}
        for row in self._protocols:
            means = [results_of[key] for key in row.mean_of]
            yield row, ClassResults.mean(means) if means else results_of[row.key]

    def ranked_results(
        self, vocabulary: Vocabulary, image_ids: Sequence[str]
    ) -> Iterator[tuple[Protocol, ClassResults, RankedLists]]:
        """Yield the `results` with the ranked lists they come from, for resampling. The lists name images by their
        index in `image_ids`, which must hold all of them."""
        from hoicli.resampling.ranked import AveragedLists, RankedLists  # without intervals nobody needs it

        index_of = {image_id: index for index, image_id in enumerate(image_ids)}
        images = places(self.listed.image_ids, index_of)[self.listed.image]
        rankings = self._rankings(vocabulary)
        ranked_of: dict[str, tuple[ClassResults, RankedLists]] = {}
        averages = any(protocol.mean_of for protocol in self._protocols)
        for protocol in self._protocols:
            if protocol.mean_of:
                results, lists_of_views = zip(*(ranked_of[key] for key in protocol.mean_of), strict=True)
                yield protocol, ClassResults.mean(results), AveragedLists.average(lists_of_views)
                continue
            rows, listed = self._counted_predictions(protocol, rankings[protocol.by_verb])
            annotated = self._truth[protocol.key]
            lists = RankedLists(
                hit=listed.hit,
                image=images[rows],
                bounds=listed.bounds,
                truth_image=places(annotated.images(), index_of)[annotated.image],
                truth_class=classes_of(annotated.classes, vocabulary, protocol),
                images=len(image_ids),
                grid=protocol.grid,
                cap=protocol.predictions_per_class,
                score=listed.score,
            )
            result = self._result(protocol, rankings[protocol.by_verb], vocabulary)
            if averages:
                ranked_of[protocol.key] = result, lists
            yield protocol, result, lists

    def scored_results(self, vocabulary: Vocabulary) -> Iterator[tuple[Protocol, ClassResults, ScoredLists]]:
        """Yield the `results` with the scores they come from, without means over thresholds, which have no ranking."""
        rankings = self._rankings(vocabulary)
        for protocol in self._protocols:
            if not protocol.mean_of:
                ranking = rankings[protocol.by_verb]
                yield (
                    protocol,
                    self._result(protocol, ranking, vocabulary),
                    self._counted_predictions(protocol, ranking)[1],
                )

    def _counted_predictions(self, protocol: Protocol, ranking: Ranked) -> tuple[Ints, ScoredLists]:
        """Return the rows of the predictions that count under a protocol, in ranking order, and their lists."""
        code = self._codes[protocol.key][ranking.order]
        counted = code <= TRUE_POSITIVE  # false and true positives have the two smallest codes
        rows, bounds = ranking.order[counted], starts_of(counted)[ranking.bounds]
        return rows, ScoredLists(code[counted] == TRUE_POSITIVE, self.listed.score[rows], bounds)

    @property
    def image_ids(self) -> list[str]:
        """The ids of all images that have predictions or ground truth here, sorted."""
        return sorted(set(self.listed.image_ids).union(*(annotated.images() for annotated in self._truth.values())))

    def _result(self, protocol: Protocol, ranking: Ranked, vocabulary: Vocabulary) -> ClassResults:
        """Return a protocol's per-class results, given the ranking of the predictions by the protocol's classes."""
        annotated = classes_of(self._truth[protocol.key].classes, vocabulary, protocol)
        positives = np.bincount(annotated, minlength=len(ranking.bounds) - 1)
        code = self._codes[protocol.key][ranking.order]
        class_results = per_class(code, ranking.bounds, positives, protocol)
        return ClassResults(*class_results, positives, classes_in_mean(positives, vocabulary, protocol))

    def _rankings(self, vocabulary: Vocabulary) -> dict[bool, Ranked]:
        """Return the rankings of all predictions that the protocols need: under True the one whose classes are verbs
        (`Protocol.by_verb`), under False the one whose classes are interactions."""
        rankings = {}
        for row in {protocol.by_verb: protocol for protocol in self._protocols}.values():  # one protocol of each kind
            classes = classes_of(self.listed.interaction, vocabulary, row)
            class_count = len(vocabulary.verbs) if row.by_verb else self._classes
            rankings[row.by_verb] = self.listed.rank_by_class(classes, class_count)
        return rankings


Numbers = TypeVar("Numbers", bound="NDArray[np.signedinteger[Any]]")


def classes_of(interaction: Numbers, vocabulary: Vocabulary, protocol: Protocol) -> Numbers:
    """Return the class of each interaction under a protocol: the interaction itself, or its verb; -1 for none."""
    if not protocol.by_verb:
        return interaction
    verbs = [vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions]
    verb_classes: Numbers = np.array([*verbs, -1], dtype=interaction.dtype)[interaction]  # -1 finds the last, -1
    return verb_classes


def class_vocabulary(vocabulary: Vocabulary, protocol: Protocol) -> Vocabulary:
    """Return the vocabulary whose interactions are a protocol's classes; classes by verb are (verb, "")."""
    return vocabulary.by_verb if protocol.by_verb else vocabulary


def classes_in_mean(positives: Ints, vocabulary: Vocabulary, protocol: Protocol) -> Bools:
    """Return [C] whether a protocol averages each class. positives [C]: how much ground truth each class has."""
    vocabulary = class_vocabulary(vocabulary, protocol)
    in_mean = positives > 0 if protocol.only_annotated_classes else np.ones(len(positives), dtype=bool)
    if protocol.drop_no_interaction:
        in_mean[sorted(vocabulary.no_interaction_ids)] = False
    if protocol.classes:
        in_mean &= among(np.arange(len(positives)), vocabulary.members(protocol.classes))
    return in_mean


def places(image_ids: Iterable[str], index_of: Mapping[str, int]) -> Ints:
    """Return [N] the index of each image, looked up by its id."""
    return np.array([index_of[image_id] for image_id in image_ids], dtype=np.int64)


def subset_means(ap: Floats, max_recall: Floats, members: Mapping[str, Ints]) -> list[Mean]:
    """Return the mean of each subset over its classes. ap, max_recall [C]: in [0, 1]; members: subset -> classes."""
    return [
        Mean(subset, float(ap[rows].mean()), float(max_recall[rows].mean()), len(rows))
        if len(rows)
        else Mean(subset, None, None, 0)
        for subset, rows in members.items()
    ]


def subset_classes(
    vocabulary: Vocabulary, protocol: Protocol, *, split: str | None = None, ignore_no_interaction: bool = False
) -> dict[str, Ints]:
    """Return the classes of each subset, ascending, including those that a protocol does not average.

    split: also the subsets of this split, a key of `vocabulary.unseen`. ignore_no_interaction: leave out the classes of
    that verb (INP-CC's --ignore_non_interaction: 520 of HICO-DET's 600)."""
    vocabulary = class_vocabulary(vocabulary, protocol)
    if split is not None and split not in vocabulary.unseen:
        raise UsageError(f"{arg('split', split)}: {protocol.name} averages verbs, and splits are of interactions")
    all_classes = frozenset(range(len(vocabulary.interactions)))
    subsets: dict[str, frozenset[int]] = {"full": all_classes, **vocabulary.groups}
    if protocol.subsets:
        subsets = {name: vocabulary.members(name) for name in protocol.subsets}
    if split is not None:
        subsets |= {"unseen": vocabulary.unseen[split], "seen": all_classes - vocabulary.unseen[split]}
    left_out = vocabulary.no_interaction_ids if ignore_no_interaction else frozenset[int]()
    return {name: np.array(sorted(members - left_out), dtype=np.int64) for name, members in subsets.items()}
