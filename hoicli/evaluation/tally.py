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
from hoicli.records.kit import Bools, Floats, Growing, Ints, among, distinct, join_parts, starts_of
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from hoicli.resampling.ranked import RankedLists


@dataclass(frozen=True)
class ClassResults:
    """One protocol's results for each of its C classes (`class_vocabulary`).

    ap [C]: the average precision, in [0, 1]; max_recall [C]: the recall of all predictions, in [0, 1]; positives [C]:
    how much ground truth the class has; in_mean [C]: whether the protocol's mean includes the class."""

    ap: Floats
    max_recall: Floats
    positives: Ints
    in_mean: Bools

    @classmethod
    def mean(cls, several: Sequence[ClassResults]) -> ClassResults:
        """Return the mean for each class of the results of one protocol at several thresholds."""
        ap = np.mean([results.ap for results in several], axis=0)
        max_recall = np.mean([results.max_recall for results in several], axis=0)
        return replace(several[0], ap=ap, max_recall=max_recall)

    def keep_averaged(self, subsets: Mapping[str, Ints]) -> dict[str, Ints]:
        """Return `subsets` with only the classes that the protocol averages. subsets: class numbers by subset."""
        return {name: classes[self.in_mean[classes]] for name, classes in subsets.items()}


class Mean(NamedTuple):
    """The mean over one subset of classes. ap, max_recall: in [0, 1], None if it is empty; classes: how many it has."""

    subset: str
    ap: float | None
    max_recall: float | None
    classes: int


class ScoredLists(NamedTuple):
    """The T predictions that count under one protocol, class after class, by descending score in each. hit, score [T]:
    whether each is a true positive, and its score; bounds: those of class c are at bounds[c] to bounds[c + 1] - 1."""

    hit: Bools
    score: Floats
    bounds: Ints


@dataclass
class Annotated:
    """The ground truth that one protocol counts, collected part by part. parts: for each part the image ids, and two
    columns about its triplets: the image of each, as an index into these ids, and its class."""

    parts: list[tuple[Sequence[str], Ints, Ints]] = field(default_factory=list)

    def images(self) -> Iterator[str]:
        """Return the ids of all images that were added, in the order of adding."""
        return chain.from_iterable(image_ids for image_ids, _, _ in self.parts)

    @property
    def image(self) -> Ints:
        """[P] the image of each triplet of all parts, as an index into `images`."""
        *starts, _ = starts_of([len(image_ids) for image_ids, _, _ in self.parts]).tolist()  # of each part in `images`
        return join_parts([image + start for (_, image, _), start in zip(self.parts, starts, strict=True)], np.int64)

    @property
    def classes(self) -> Ints:
        """[P] the class of each triplet of all parts."""
        return join_parts([interaction for _, _, interaction in self.parts], np.int64)


class Tally:
    """Gathers the outcomes of all predictions under some protocols, then ranks the predictions once for all. Call
    `add_batch` (or `add`) for the batches in any order and `add_truth` once, then `results`."""

    def __init__(self, protocols: Sequence[Protocol], classes: int) -> None:
        """Begin with no predictions. classes: how many interaction classes the dataset has."""
        self._protocols = list(protocols)
        matched = [protocol for protocol in protocols if not protocol.mean_of]
        self._classes = classes
        self.listed = Listed()
        self._codes = Growing(**{protocol.key: np.uint8 for protocol in matched})
        self._truth: dict[str, Annotated] = {protocol.key: Annotated() for protocol in matched}
        self.caveats = 0
        """The mask of the caveats of these images' records or match records."""
        self.truth_total: int | None = None
        """The sum of the hashes of the ground truth (`GroundTruth.hash_sum`), None as long as it is not known."""
        self.orders: dict[str, int] = {}
        """`GroundTruth.order_hash` for each protocol, by its key, once the ground truth is known."""
        self.objects = self.unlabelled = 0
        """How many predictions have an object, and how many of these objects have no label."""
        self.uncounted = False
        """Whether most of the ground truth, or of the predictions (`coverage.check_counted`), is left uncounted."""

    def leave_out(self, protocols: Sequence[Protocol]) -> list[Protocol]:
        """Remove some protocols, so that there are no results for them; return the protocols that are left."""
        self._protocols = [protocol for protocol in self._protocols if protocol not in protocols]
        return self._protocols

    def add(
        self,
        image_ids: Sequence[str],
        image: Ints,
        interaction: Ints,
        score: Floats,
        codes: Mapping[str, NDArray[np.uint8]],
    ) -> None:
        """Add the T predictions of some images. image [T]: the image of each, an index into image_ids, ascending;
        interaction [T]: its class, -1 for none; codes: for each `Protocol.key` the outcomes [T], indices of OUTCOMES.
        """
        self.listed.add(image_ids, image, interaction, score)
        self._codes.add(**codes)

    def add_batch(self, batch: Batch, outcomes: Mapping[str, Outcomes]) -> None:
        """Add the predictions of a batch. outcomes: those of the batch by `Protocol.key`."""
        scenes = batch.predictions
        codes = {name: outcome.code for name, outcome in outcomes.items()}
        self.caveats |= scenes.every_caveat & caveats.PREDICTIONS
        self.objects += int((scenes.object >= 0).sum())
        self.unlabelled += scenes.unlabelled_objects
        self.add(scenes.image_ids, scenes.image_of_hoi, scenes.interaction, scenes.score, codes)

    def add_truth(self, truth: GroundTruth) -> None:
        """Add the whole ground truth, also of images without predictions, which is then missed."""
        self.caveats |= truth.caveats
        self.truth_total = truth.hash_sum
        self.orders = {protocol.key: truth.order_hash(protocol) for protocol in self._protocols}
        self.uncounted |= truth.uncounted
        for protocol in self._protocols:
            if not protocol.mean_of:
                self.add_annotated(protocol.key, truth.scenes.image_ids, *truth.annotated_classes(protocol))

    def add_annotated(self, protocol: str, image_ids: Sequence[str], image: Ints, interaction: Ints) -> None:
        """Add P ground-truth triplets that count under a protocol. protocol: its `key`; image [P]: the image of each
        triplet, an index into image_ids; interaction [P]: its class."""
        self._truth[protocol].parts.append((image_ids, image, interaction))

    def replace_truth(self, truth: GroundTruth, codes: Mapping[str, NDArray[np.uint8]]) -> Tally:
        """Return a tally of the same predictions matched with another ground truth. codes: for each `Protocol.key` the
        outcomes of all predictions, as in `add`. Both tallies share the ranking of the predictions."""
        other = copy(self)
        other._codes = Growing(**dict.fromkeys(codes, np.uint8))
        other._codes.add(**codes)
        other._truth = {name: Annotated() for name in codes}
        other.add_truth(truth)
        return other

    def merge(self, other: Tally) -> None:
        """Add what another tally of the same protocols gathered from the predictions of other images."""
        self.listed.merge(other.listed)
        self.caveats |= other.caveats
        self.objects += other.objects
        self.unlabelled += other.unlabelled
        self._codes.merge(other._codes)
        for name, annotated in other._truth.items():
            self._truth[name].parts += annotated.parts

    def settings(self, protocol: Protocol) -> dict[str, str]:
        """Return the settings that the signatures of a protocol's rows state, as text by key: its name, what differs
        from the published protocol, a digest of the ground truth, and the caveats of the records."""
        return {
            "protocol": protocol.name,
            **protocol.settings(),
            **truth_settings(self.truth_total, self.orders.get(protocol.key, 0)),
            **self.uncounted_setting,
            **caveats.settings(self.caveats & protocol.depends_on),
        }

    def gap_note(self, protocol: Protocol) -> str:
        """Return what rows say if more than a fifth of the images with ground truth have no predictions: then only a
        part of them was predicted, while in fewer a detector may have found nothing (ours). "" if not."""
        key = protocol.mean_of[0] if protocol.mean_of else protocol.key  # at each threshold, the same counts
        annotated = self._truth[key]
        image_ids = list(annotated.images())
        with_truth = {image_ids[image] for image in distinct(annotated.image).tolist()}
        unpredicted = with_truth.difference(self.listed.predicted_images())
        if 5 * len(unpredicted) <= len(with_truth):
            return ""
        counted = f"{len(unpredicted):,} of {len(with_truth):,} images with ground truth"
        return f"{counted} have no predictions: their triplets are missed"

    @property
    def uncounted_setting(self) -> dict[str, str]:
        """The setting UNCOUNTED if most triplets have no class, so that the user had to allow results; else none."""
        return dict(UNCOUNTED) if self.uncounted else {}

    def results(self, vocabulary: Vocabulary) -> Iterator[tuple[Protocol, ClassResults]]:
        """Yield each protocol with its results for each class. A protocol that is the mean over several IoU thresholds
        (`mean_of` has the keys of those) has the mean of their results."""
        matched = [protocol for protocol in self._protocols if not protocol.mean_of]
        results_by_key = {protocol.key: self._result(protocol, vocabulary) for protocol in matched}
        for protocol in self._protocols:
            if protocol.mean_of:
                yield protocol, ClassResults.mean([results_by_key[key] for key in protocol.mean_of])
            else:
                yield protocol, results_by_key[protocol.key]

    def ranked_results(
        self, vocabulary: Vocabulary, image_ids: Sequence[str]
    ) -> Iterator[tuple[Protocol, ClassResults, RankedLists]]:
        """Yield each protocol with its results for each class, and the ranked lists that they come from, to be
        resampled. The lists name images by their index in `image_ids`, which must hold all images."""
        from hoicli.resampling.ranked import AveragedLists, RankedLists  # only intervals need it

        index_of = {image_id: index for index, image_id in enumerate(image_ids)}
        images = look_up_images(self.listed.image_ids, index_of)[self.listed.image]  # of each prediction
        results_by_key: dict[str, ClassResults] = {}  # these two are for the means over thresholds
        lists_by_key: dict[str, RankedLists] = {}
        has_means = any(protocol.mean_of for protocol in self._protocols)
        for protocol in self._protocols:
            if protocol.mean_of:
                mean_results = ClassResults.mean([results_by_key[key] for key in protocol.mean_of])
                yield protocol, mean_results, AveragedLists.average([lists_by_key[key] for key in protocol.mean_of])
                continue
            rows, listed = self._counted_predictions(protocol, vocabulary)
            annotated = self._truth[protocol.key]
            lists = RankedLists(
                hit=listed.hit,
                image=images[rows],
                bounds=listed.bounds,
                truth_image=look_up_images(annotated.images(), index_of)[annotated.image],
                truth_class=classes_of(annotated.classes, vocabulary, by_verb=protocol.by_verb),
                images=len(image_ids),
                grid=protocol.grid,
                cap=protocol.predictions_per_class,
                score=listed.score,
            )
            result = self._result(protocol, vocabulary)
            if has_means:
                results_by_key[protocol.key] = result
                lists_by_key[protocol.key] = lists
            yield protocol, result, lists

    def scored_results(self, vocabulary: Vocabulary) -> Iterator[tuple[Protocol, ClassResults, ScoredLists]]:
        """Yield each protocol with its results for each class, and the scored predictions that they come from. Means
        over several thresholds are left out, as they have no ranking of their own."""
        for protocol in self._protocols:
            if not protocol.mean_of:
                _, lists = self._counted_predictions(protocol, vocabulary)
                yield protocol, self._result(protocol, vocabulary), lists

    def _counted_predictions(self, protocol: Protocol, vocabulary: Vocabulary) -> tuple[Ints, ScoredLists]:
        """Return the predictions that count under a protocol, class after class by descending score: their rows among
        all predictions, and their scores and hits."""
        ranking = self.rank(vocabulary, by_verb=protocol.by_verb)
        code = self._codes[protocol.key][ranking.order]
        counted = code <= TRUE_POSITIVE  # false and true positives have the two smallest codes
        rows = ranking.order[counted]
        bounds = starts_of(counted)[ranking.bounds]  # how many counted ones come before each class
        return rows, ScoredLists(code[counted] == TRUE_POSITIVE, self.listed.score[rows], bounds)

    @property
    def image_ids(self) -> list[str]:
        """The ids of all images that have predictions or ground truth here, sorted."""
        with_truth = chain.from_iterable(annotated.images() for annotated in self._truth.values())
        return sorted({*self.listed.image_ids, *with_truth})

    def _result(self, protocol: Protocol, vocabulary: Vocabulary) -> ClassResults:
        """Return a protocol's results for each class."""
        ranking = self.rank(vocabulary, by_verb=protocol.by_verb)
        annotated = classes_of(self._truth[protocol.key].classes, vocabulary, by_verb=protocol.by_verb)
        positives = np.bincount(annotated, minlength=len(ranking.bounds) - 1)
        code = self._codes[protocol.key][ranking.order]
        class_results = per_class(code, ranking.bounds, positives, protocol)
        return ClassResults(*class_results, positives, classes_in_mean(positives, vocabulary, protocol))

    def rank(self, vocabulary: Vocabulary, *, by_verb: bool = False) -> Ranked:
        """Return the ranking of all predictions by interaction, or by verb (`Protocol.by_verb`). It is kept, also for
        other tallies of the same predictions (`replace_truth`)."""
        rankings = self.listed.rankings
        if by_verb not in rankings:
            classes = classes_of(self.listed.interaction, vocabulary, by_verb=by_verb)
            class_count = len(vocabulary.verbs) if by_verb else self._classes
            rankings[by_verb] = self.listed.rank_by_class(classes, class_count)
        return rankings[by_verb]


Numbers = TypeVar("Numbers", bound="NDArray[np.signedinteger[Any]]")


def classes_of(interaction: Numbers, vocabulary: Vocabulary, *, by_verb: bool) -> Numbers:
    """Return the class of each interaction in an array: the interaction itself, or its verb if a protocol ranks verbs
    (`Protocol.by_verb`); -1 stays -1 (no class)."""
    if not by_verb:
        return interaction
    verbs = [vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions]
    verb_classes: Numbers = np.array([*verbs, -1], dtype=interaction.dtype)[interaction]  # -1 finds the last, -1
    return verb_classes


def class_vocabulary(vocabulary: Vocabulary, protocol: Protocol) -> Vocabulary:
    """Return the vocabulary whose `interactions` are the protocol's classes: the dataset's own or, for a protocol that
    ranks verbs, one with an entry (verb, "") for each verb."""
    return vocabulary.by_verb if protocol.by_verb else vocabulary


def classes_in_mean(positives: Ints, vocabulary: Vocabulary, protocol: Protocol) -> Bools:
    """Return a mask [C] of the classes that a protocol's mean includes. positives [C]: their ground truth."""
    vocabulary = class_vocabulary(vocabulary, protocol)
    in_mean = positives > 0 if protocol.only_annotated_classes else np.ones(len(positives), dtype=bool)
    if protocol.drop_no_interaction:
        in_mean[sorted(vocabulary.no_interaction_ids)] = False
    if protocol.classes:
        in_mean &= among(np.arange(len(positives)), vocabulary.members(protocol.classes))
    return in_mean


def look_up_images(image_ids: Iterable[str], index_of: Mapping[str, int]) -> Ints:
    """Return the index of each image as an array. index_of: the index for each image id."""
    return np.array([index_of[image_id] for image_id in image_ids], dtype=np.int64)


def subset_means(ap: Floats, max_recall: Floats, members: Mapping[str, Ints]) -> list[Mean]:
    """Return the mean AP and the mean maximal recall of each subset. members: the classes of each."""
    means = []
    for subset, classes in members.items():
        if len(classes):
            means.append(Mean(subset, float(ap[classes].mean()), float(max_recall[classes].mean()), len(classes)))
        else:
            means.append(Mean(subset, ap=None, max_recall=None, classes=0))
    return means


def subset_classes(
    vocabulary: Vocabulary, protocol: Protocol, *, split: str | None = None, ignore_no_interaction: bool = False
) -> dict[str, Ints]:
    """Return the class numbers of each subset (full, rare,...), ascending, including those that the mean leaves out.

    split: the name of a zero-shot split (a key of `vocabulary.unseen`), which adds the subsets seen and unseen.
    ignore_no_interaction: leave out the classes of that verb (INP-CC's --ignore_non_interaction: 520 of HICO-DET's 600
    remain). Raises `UsageError` for a split if the protocol's classes are verbs."""
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
