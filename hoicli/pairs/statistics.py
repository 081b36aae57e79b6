"""Pair statistics gathered from batches of images, and their results under each setting of a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.evaluation.evaluating import gather_in_parallel
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import order_by_score, ranked_ap
from hoicli.evaluation.recall_grids import EVERY_RECALL
from hoicli.evaluation.selection import diagnosed_protocol
from hoicli.evaluation.tally import Tally, subset_classes, subset_means
from hoicli.io.memory import no_garbage_collection
from hoicli.io.streams import Line, Stream
from hoicli.pairs.matches import AnnotatedPairs, InteractingPairs, LocalisedPairs, PairColumns
from hoicli.pairs.pair_batches import PairBatch, Sweep, read_pair_batches, surviving_pairs, surviving_triplets
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Ints, Scalar
from hoicli.records.scenes import Scenes, count_other_subjects

Figure = tuple[float | None, int]
"""(value, n) of a metric: the value in [0, 1] or, for pairs per image, a number, None where there is nothing to divide
by; and the number of things that the value is over."""
STEPS = 101
"""Recall values of the negative AP: 0, 0.01, ..., 1."""
RELEASED_STEPS = 110
"""In the released code they go on to 1.09, where precision is 0, so a perfect ranking scores 101/110 (voc_ap)."""


class RankedCount(NamedTuple):
    """How many pairs a metric ranks, how many of these state their interactiveness, and how many have no confidence to
    interact."""

    ranked: int
    stated: int
    unscored: int


class PairStatistics:
    """The pair statistics of one model under each setting of a sweep. Batches of its predictions are added in any order
    and from several processes to columns (`add`), which are merged into `gathered`; then `results` is called."""

    def __init__(
        self,
        truth: GroundTruth,
        settings: Sequence[Sweep],
        *,
        protocol: Protocol | None = None,
        one_to_one: bool = False,
        as_released: bool = False,
        triplet_scores: bool = False,
        interactiveness: bool = False,
    ) -> None:
        """Start with no predictions.

        protocol: what counts and what is right (None: the dataset's usual protocol). one_to_one: match a detected pair
        with at most one annotated pair. as_released: compute the released code's exact numbers, see `results`.
        triplet_scores: how the batches were read (`read_pair_batches`). interactiveness: also compute that AP
        (`InteractingPairs`)."""
        self._annotated_pairs = AnnotatedPairs(truth, protocol or diagnosed_protocol(truth.vocabulary))
        self.protocol, self.vocabulary = self._annotated_pairs.protocol, truth.vocabulary
        self.truth_settings = truth.settings(self.protocol)
        self.one_to_one, self.as_released, self.triplet_scores = one_to_one, as_released, triplet_scores
        self.interacting = InteractingPairs(self._annotated_pairs) if interactiveness else None
        self._settings = list(settings)
        self._is_annotated = self._annotated_pairs.images("full")
        self.gathered = self.empty_columns()
        self.tally = self.gathered.tally
        self.tally.add_truth(truth)

    def empty_columns(self) -> PairColumns:
        """Return empty columns for `add` to fill."""
        # the tally takes each setting for a protocol, whose name is the setting's number
        protocol_by_setting = [replace(self.protocol, name=str(number)) for number in range(len(self._settings))]
        tally = Tally(protocol_by_setting, len(self.vocabulary.interactions))
        return PairColumns(self._annotated_pairs, tally, len(self._settings))

    def add(self, batch: PairBatch, columns: PairColumns) -> None:
        """Match a batch of predictions and add the matches to `columns`, which are later merged into `gathered`. Raises
        `DataError` for an image that the ground truth does not have."""
        scenes = batch.scenes
        image = self._annotated_pairs.ground_truth.find_images(batch.pairs.image_ids)
        columns.fit.add(scenes, image)
        self._add_pairs(batch, image, columns)
        # the triplets that interaction mAP ranks, with a verb score and without
        is_ranked = (batch.pair >= 0) & self._is_annotated[image[scenes.image_of_hoi]]
        unscored = int(np.isnan(batch.verb_score[is_ranked]).sum())
        columns.numbers += Counter(unscored=unscored, scored=int(is_ranked.sum()) - unscored)
        self._add_triplets(batch, columns)
        columns.numbers += Counter(pairs=len(batch.pairs.score), triplets=len(scenes.score), denied=batch.denied)
        if not self.vocabulary.roles:
            columns.numbers["other subjects"] += count_other_subjects(scenes, self.vocabulary)

    def _add_pairs(self, batch: PairBatch, image: Ints, columns: PairColumns) -> None:
        """Add the detected pairs of a batch, and their matches, to `columns`, whose number of pairs is still that
        before the batch. image [N]: the images of the batch, as rows of the ground truth."""
        pairs, image_of_pair = batch.pairs, image[batch.pairs.image_of_hoi]
        columns.lines.add(image=image, pairs=np.diff(pairs.hoi_start))
        person, ignored = self._people(pairs)
        row, true_pair, overlap = self._annotated_pairs.match_detections(
            pairs, image_of_pair, pairs.subject, pairs.object, person
        )
        columns.matches.add(row=row + columns.numbers["pairs"], true_pair=true_pair, overlap=overlap)
        no_true_pair, interacting = np.full(len(pairs.score), -1), self.interacting
        columns.detected.add(
            interacting=batch.interacting,
            stated=batch.stated,
            ignored=ignored,
            score=pairs.score,
            interacting_pair=no_true_pair if interacting is None else interacting.match_pairs(pairs, image_of_pair),
            mark=batch.mark,
        )

    def _add_triplets(self, batch: PairBatch, columns: PairColumns) -> None:
        """Add the triplets of a batch with their outcomes under each setting, and which pairs each setting keeps."""
        scenes = batch.scenes
        matched = Batch(scenes, self._annotated_pairs.ground_truth)
        # interaction mAP needs a verb score on every triplet
        localised = None if columns.numbers["unscored"] else LocalisedPairs(batch, matched, self._annotated_pairs)
        pairs_left, codes = {}, {}
        for number, setting in enumerate(self._settings):
            keep = surviving_pairs(batch, setting)
            triplets_left = surviving_triplets(batch, keep, setting)
            remaining = matched if triplets_left.all() else matched.keep_only(triplets_left)
            code = remaining.match(self.protocol, Filters()).code
            if localised is not None:
                columns.interactions[number].add(localised, code)
            pairs_left[str(number)], codes[str(number)] = keep, code
        columns.kept.add(**pairs_left)
        columns.tally.add(scenes.image_ids, scenes.image_of_hoi, scenes.interaction, scenes.score, codes)

    def _people(self, pairs: Scenes) -> tuple[Ints | None, Bools]:
        """Return two columns [P] about detected pairs: the annotated person that each belongs to (None unless the
        protocol is person-first), and whether that person has no annotated actions, so that the pair is ignored."""
        protocol, truth = self.protocol, self._annotated_pairs.ground_truth
        if not protocol.person_first or not len(pairs.score):
            return None, np.zeros(len(pairs.score), dtype=bool)
        person, _ = Batch(pairs, truth).best_people(protocol)
        ignored = np.zeros(len(person), dtype=bool)
        ignored[person >= 0] = ~truth.scenes.annotated[person[person >= 0]]
        return person, ignored

    def results(self) -> Iterator[tuple[Sweep, dict[str, dict[str, Figure]]]]:
        """Yield each setting with its figures (value, n), by subset (full and the vocabulary's groups) and metric.

        What n counts: images for pairs_per_image, annotated pairs for pair_recall, verbs for inter_map, and detected
        pairs for the precisions. For pair_precision these are all in the images of full, so that groups add up, as
        those of the paper's Table 4 do; for pair_precision_own_images those in the group's own images. Only full has
        neg_ap (n: pairs that match no annotated one), neg_share (n: detected pairs), which is the neg_ap of a random
        ranking, and, if it is asked for, interactiveness_ap (n: annotated pairs of different coordinates). mAP, as in
        `eval`, is of the remaining triplets (n: classes).

        Pair recall and precision are those of pair_localization.py: recall counts the annotated pairs that some
        detected pair matches; precision counts the detected pairs that are, in the record's order, the first to match
        some annotated pair. one_to_one (section 4.1, "only one of them is counted towards recall"): by descending
        triplet score each detected pair takes one of the free annotated pairs that it matches, the one with the largest
        min(IoU); the others stay in the denominator.

        as_released: images without a line are not counted; negative AP is a mean over 110 recall values, of which 101
        can be reached; verbs with localised predictions but no true positive are left out of the interaction mAP, whose
        ground truth includes the triplets of images without predictions. mAP stays as it is: in Diag-HOI's tables it
        comes from standard_eval.py, which is protocol `diag` (only map_improvement_hicodet.py leaves classes out)."""
        class_results = self.tally.results(self.vocabulary)
        for number, (setting, (protocol, classes)) in enumerate(zip(self._settings, class_results, strict=True)):
            results = self._results(number)
            averaged = classes.keep_averaged(subset_classes(self.vocabulary, protocol))
            for mean in subset_means(classes.ap, classes.max_recall, averaged):
                ap = None if "mAP" in self.reasons else mean.ap
                results.setdefault(mean.subset, {})["mAP"] = ap, mean.classes
            yield setting, results

    def _results(self, number: int) -> dict[str, dict[str, Figure]]:
        """Return all figures except mAP under a setting, given by its number, by subset and metric."""
        keep = self.gathered.kept[str(number)]
        counted = keep & ~self.gathered.detected["ignored"]
        matches = np.flatnonzero(counted[self.gathered.matches["row"]])
        results = {subset: self._pair_figures(subset, counted, matches) for subset in self._annotated_pairs.in_subset}
        map_of_subsets: dict[str, Figure] = {}
        if "inter_map" not in self.reasons:  # all triplets have the score of their verb
            interactions = self.gathered.interactions[number]
            map_of_subsets = interactions.mean_ap(self._annotated_pairs, as_released=self.as_released)
        for subset, figures in results.items():
            figures["inter_map"] = map_of_subsets.get(subset, (None, 0))
        interacting = self.gathered.matches["row"][matches]
        neg_ap, negatives = self._negative_ap(counted, interacting, needed="neg_ap" not in self.reasons)
        neg_share = _share(negatives, self._count_pairs(counted, self._is_annotated))
        results["full"] |= {"neg_ap": (neg_ap, negatives), "neg_share": neg_share}
        if self.interacting is not None:
            ap = None
            if "interactiveness_ap" not in self.reasons:  # of "interacts", for the kept pairs of all images
                order = self._ranking(np.flatnonzero(keep), ascending=False, as_listed=False)
                ap = self.interacting.average_precision(self.gathered.detected["interacting_pair"][order])
            results["full"]["interactiveness_ap"] = ap, self.interacting.count
        return results

    def _pair_figures(self, subset: str, counted: Bools, matches: Ints) -> dict[str, Figure]:
        """Return the pairs per image, the recall and the precisions of a subset, by metric. counted [P]: whether each
        detected pair counts; matches: their rows in `PairColumns.matches`."""
        images = self._annotated_pairs.images(subset)
        if self.as_released:  # only those with a line of predictions
            images &= np.isin(np.arange(len(images)), self.gathered.lines["image"])
        is_annotated = self._annotated_pairs.in_subset[subset] & images[self._annotated_pairs.image]
        recalled, correct = self._count_matched(matches[is_annotated[self.gathered.matches["true_pair"][matches]]])
        detected = self._count_pairs(counted, images)
        figures = {
            "pairs_per_image": _share(detected, int(images.sum())),
            "pair_recall": _share(recalled, int(is_annotated.sum())),
            "pair_precision": _share(correct, self._count_pairs(counted, self._is_annotated)),
        }
        if subset != "full":
            figures["pair_precision_own_images"] = _share(correct, detected)
        return figures

    def _count_pairs(self, counted: Bools, images: Bools) -> int:
        """Return how many detected pairs count (`counted` [P]) and are in certain `images` [N] of the ground truth."""
        return int((counted & self._repeat_by_image(images)).sum())

    def _repeat_by_image(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return [P] the value of each detected pair's image. values [N]: one for each image of the ground truth."""
        lines = self.gathered.lines
        return np.repeat(values[lines["image"]], lines["pairs"])

    @property
    def negative_grid(self) -> tuple[float, ...]:
        """The recalls at which the AP of "does not interact" reads precision. They are those of the released code, also
        for V-COCO, although its mAP is the area under the curve. Only a protocol of triplets whose mAP is the area
        (diag-paper) takes the area here as well."""
        if not (self.protocol.grid or self.protocol.person_first):
            return EVERY_RECALL
        return tuple((np.arange(RELEASED_STEPS if self.as_released else STEPS) * 0.01).tolist())

    @cached_property
    def ranked_counts(self) -> dict[str, RankedCount]:
        """The counts of the pairs that each metric ranks by their confidence to interact, by the metric's name."""
        detected = self.gathered.detected
        stated, unscored = detected["stated"], np.isnan(detected["interacting"])
        ranked = {"neg_ap": self._repeat_by_image(self._is_annotated) & ~detected["ignored"]}
        if self.interacting is not None:
            ranked["interactiveness_ap"] = np.ones_like(stated)
        return {
            metric: RankedCount(int(rows.sum()), int((rows & stated).sum()), int((rows & unscored).sum()))
            for metric, rows in ranked.items()
        }

    @cached_property
    def reasons(self) -> dict[str, str]:
        """For each metric without a value, the reason in words: not all records have the scores that it ranks by."""
        reasons, numbers = {}, self.gathered.numbers
        if numbers["unscored"]:
            triplets = numbers["unscored"] + numbers["scored"]
            reasons["inter_map"] = f"{numbers['unscored']:,} of {triplets:,} triplets have no verb_score"
        for metric, (ranked, stated, unscored) in self.ranked_counts.items():
            if unscored:
                lacking = "triplet" if self.triplet_scores else "verb_score on each of their triplets"
                reasons[metric] = f"{unscored:,} of {ranked:,} pairs have neither interactiveness nor a {lacking}"
            elif 0 < stated < ranked:
                reasons[metric] = f"{stated:,} of {ranked:,} pairs state interactiveness, the others have verb scores"
        if numbers["pairs"] and not numbers["triplets"]:
            reasons |= dict.fromkeys(("inter_map", "mAP"), "the records list pairs and no triplets")
        return reasons

    def _count_matched(self, matches: Ints) -> tuple[int, int]:
        """Return how many annotated pairs are recalled, and how many detected pairs are correct (each the first that
        matches some annotated pair), by some matches. matches: rows of `PairColumns.matches`."""
        columns = self.gathered
        row, true_pair = columns.matches["row"][matches], columns.matches["true_pair"][matches]
        if not self.one_to_one:
            # Written from the last match to the first, so that the first match of each annotated pair stays.
            first = np.full(len(self._annotated_pairs.image), -1, dtype=np.int64)
            first[true_pair[::-1]] = row[::-1]
            is_correct = np.zeros(columns.numbers["pairs"], dtype=bool)
            is_correct[first[first >= 0]] = True
            return int((first >= 0).sum()), int(is_correct.sum())
        overlap, image_rank = columns.matches["overlap"][matches], self._repeat_by_image(self._annotated_pairs.rank)
        mark, score, rank = columns.detected["mark"][row], columns.detected["score"][row], image_rank[row]
        # lexsort sorts by its last key first: by descending score; equal ones by image id, then by corners and label
        # (`mark`), so that the order of lines does not matter; then by overlap
        order = np.lexsort((true_pair, -overlap, row, mark, rank, -score))
        matched_detected, matched_true = set[int](), set[int]()
        for detected, true in zip(row[order].tolist(), true_pair[order].tolist(), strict=True):
            if detected not in matched_detected and true not in matched_true:
                matched_detected.add(detected)
                matched_true.add(true)
        return len(matched_true), len(matched_detected)

    def _negative_ap(self, keep: Bools, interacting: Ints, *, needed: bool) -> tuple[float | None, int]:
        """Return the AP of "does not interact" in [0, 1], for which the pairs with the lowest confidence to interact
        rank first, and the number of pairs that do not interact. The AP is None unless it is `needed`.

        keep [P]: whether each detected pair is ranked; interacting: the detected pairs that match an annotated pair.
        Equal confidences are ordered by image id, then by corners and label or, as released, as the record has them."""
        interacts = np.zeros(len(keep), dtype=bool)
        interacts[interacting] = True
        ranked = keep & self._repeat_by_image(self._is_annotated)
        negatives = int((ranked & ~interacts).sum())
        if negatives == 0 or not needed:
            return None, negatives
        order = self._ranking(np.flatnonzero(ranked), ascending=True, as_listed=self.as_released)
        by_grid = replace(self.protocol, grid=self.negative_grid, predictions_per_class=None)
        bounds, positives = np.array([0, negatives]), np.array([negatives])  # one ranked list, as of a single class
        ap, _ = ranked_ap(np.flatnonzero(~interacts[order]) + 1, bounds, positives, by_grid)
        return float(ap[0]), negatives

    def _ranking(self, rows: Ints, *, ascending: bool, as_listed: bool) -> Ints:
        """Return the detected pairs `rows` ordered by their confidence to interact. Equal confidences are ordered by
        image id, then by corners and label or, with `as_listed`, as the record lists them."""
        confidence = self.gathered.detected["interacting"][rows]
        mark = np.zeros_like(confidence) if as_listed else self.gathered.detected["mark"][rows]

        def ties(tied: Ints) -> list[NDArray[Any]]:
            """Return what orders pairs of equal confidence, the most decisive column last. tied: places in `rows`."""
            return [mark[tied], self._repeat_by_image(self._annotated_pairs.rank)[rows[tied]]]

        return rows[order_by_score(-confidence if ascending else confidence, ties)]


def pair_statistics(
    predictions: Stream, truth: GroundTruth, settings: Sequence[Sweep], policy: ErrorPolicy, **options: Any
) -> PairStatistics:
    """Return the pair statistics of one model from its predictions, read by several processes if the file is large.
    options: the keywords of `PairStatistics`. Raises `DataError` for a bad record."""
    statistics = PairStatistics(truth, settings, **options)

    def gather(lines: Iterable[Line], shared: ErrorPolicy) -> PairColumns:
        """Return what is gathered from a part of the lines."""
        batches = read_pair_batches(
            lines,
            truth.vocabulary,
            protocol=statistics.protocol,
            policy=shared,
            known_ids=truth.position,
            box_scores=any(setting.det_threshold is not None for setting in settings),
            triplet_scores=statistics.triplet_scores,
        )
        columns = statistics.empty_columns()
        with no_garbage_collection():
            for batch in batches:
                statistics.add(batch, columns)
        return columns

    for part in gather_in_parallel(gather, predictions, policy, lambda part: part.tally.listed.image_ids):
        statistics.gathered.merge(part)
    statistics.gathered.fit.check(truth.scenes, predictions.name)
    return statistics


def _share(part: int, whole: int) -> Figure:
    """Return the figure of a share: part / whole, None if there is nothing to divide by, and whole."""
    return part / whole if whole else None, whole
