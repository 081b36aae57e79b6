"""Pair statistics gathered from batches of images: the results of each setting of a sweep, and their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.evaluation.evaluating import gather_in_parallel
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.protocols import EVERY_RECALL, Protocol
from hoicli.evaluation.ranking import order_by_score, ranked_ap
from hoicli.evaluation.selection import protocol_of
from hoicli.evaluation.tally import Tally, subset_classes, subset_means
from hoicli.io.memory import no_garbage_collection
from hoicli.io.streams import Line, Stream
from hoicli.pairs.matches import InteractingPairs, Localised, PairColumns, TruthPairs
from hoicli.pairs.pair_batches import PairBatch, Sweep, read_pair_batches, surviving_pairs, surviving_triplets
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Ints, Scalar
from hoicli.records.scenes import Scenes, other_subjects

Figure = tuple[float | None, int]
"""(value, n) of a metric: the value in [0, 1], or a number of pairs, None where there is nothing to divide by; and the
number of things it is over."""
STEPS = 101
"""Recall values of the negative AP: 0, 0.01, ..., 1."""
RELEASED_STEPS = 110
"""In the released code they go on to 1.09, where precision is 0, so a perfect ranking scores 101/110 (voc_ap)."""


class PairStatistics:
    """The pair statistics of one model under each setting, from what is `found` in its images; batches come in any
    order and from several processes, and `results` is called after the last.

    protocol: what counts and what is right (default: `protocol_of`). one_to_one: a detected pair finds at most one true
    pair. as_released: the released code's exact numbers, see `results`. triplet_scores: how the batches were read
    (`read_pair_batches`). interactiveness: also measure its AP (`InteractingPairs`)."""

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
        self._truth = TruthPairs(truth, protocol or protocol_of(truth.vocabulary))
        self.protocol, self.vocabulary = self._truth.protocol, truth.vocabulary
        self.truth_settings = truth.settings(self.protocol)
        self.one_to_one, self.as_released, self.triplet_scores = one_to_one, as_released, triplet_scores
        self.interacting = InteractingPairs(self._truth) if interactiveness else None
        self._settings = list(settings)
        self._annotated = self._truth.images("full")
        self.found = self.nothing()
        self.tally = self.found.tally
        self.tally.add_truth(truth)

    def nothing(self) -> PairColumns:
        """Return empty columns for `add` to fill and `merge` to take."""
        settled = [replace(self.protocol, name=str(number)) for number in range(len(self._settings))]
        tally = Tally(settled, len(self.vocabulary.interactions))
        return PairColumns(self._truth, tally, len(self._settings))

    def add(self, batch: PairBatch, columns: PairColumns) -> None:
        """Match a batch and add it to columns that are to be merged with these statistics. Raises `DataError` for an
        image that the ground truth does not have."""
        scenes = batch.scenes
        image = self._truth.truth.rows_of(batch.pairs.image_ids)
        columns.fit.add(scenes, image)
        self._add_pairs(batch, image, columns)
        self._count_verb_scores(batch, image, columns)
        self._add_triplets(batch, columns)
        columns.numbers += Counter(pairs=len(batch.pairs.score), triplets=len(scenes.score), denied=batch.denied)
        columns.numbers["other subjects"] += 0 if self.vocabulary.roles else other_subjects(scenes, self.vocabulary)

    def _add_pairs(self, batch: PairBatch, image: Ints, columns: PairColumns) -> None:
        """Add a batch's detected pairs and their matches. image [N]: the batch's images, as rows of the ground truth's;
        columns: what to add them to, whose number of pairs is still that before the batch."""
        pairs, image_of_pair = batch.pairs, image[batch.pairs.image_of_hoi]
        columns.lines.add(image=image, pairs=np.diff(pairs.hoi_start))
        person, ignored = self._people(pairs)
        row, mate, overlap = self._truth.join(pairs, image_of_pair, pairs.subject, pairs.object, person)
        columns.matches.add(row=row + columns.numbers["pairs"], mate=mate, overlap=overlap)
        no_mates, interacting = np.full(len(pairs.score), -1), self.interacting
        columns.detected.add(
            interacting=batch.interacting,
            stated=batch.stated,
            ignored=ignored,
            score=pairs.score,
            own=no_mates if interacting is None else interacting.mates(pairs, image_of_pair),
            mark=batch.mark,
        )

    def _count_verb_scores(self, batch: PairBatch, image: Ints, columns: PairColumns) -> None:
        """Count the triplets that interaction mAP ranks, by whether they have a verb score. image: as in
        `_add_pairs`."""
        is_ranked = (batch.pair >= 0) & self._annotated[image[batch.scenes.image_of_hoi]]
        unscored = int(np.isnan(batch.verb_score[is_ranked]).sum())
        columns.numbers += Counter(unscored=unscored, scored=int(is_ranked.sum()) - unscored)

    def _add_triplets(self, batch: PairBatch, columns: PairColumns) -> None:
        """Add a batch's triplets, with their outcomes under each setting, and which pairs each setting keeps."""
        scenes = batch.scenes
        matched = Batch(scenes, self._truth.truth)
        localised = None if columns.numbers["unscored"] else Localised(batch, matched, self._truth)
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
        """Return ([P] the annotated person that each pair belongs to, None unless the protocol is person-first; [P]
        whether that person has no annotated actions)."""
        protocol, truth = self.protocol, self._truth.truth
        if not protocol.person_first or not len(pairs.score):
            return None, np.zeros(len(pairs.score), dtype=bool)
        person, _ = Batch(pairs, truth).best_people(protocol)
        ignored = np.zeros(len(person), dtype=bool)
        ignored[person >= 0] = ~truth.scenes.annotated[person[person >= 0]]
        return person, ignored

    def results(self) -> Iterator[tuple[Sweep, dict[str, dict[str, Figure]]]]:
        """Yield each setting with its figures, by subset (full and the vocabulary's groups) and metric.

        What `n` counts: pairs_per_image has images, pair_recall true pairs, the precisions detected pairs
        (pair_precision all those in the images of full, so that groups add up, as those of the paper's Table 4 do;
        pair_precision_own_images those in the group's own images), inter_map verbs. Only full has neg_ap (n: pairs that
        match no true one), neg_share (n: detected pairs), which is the neg_ap of a random ranking, and, if it is asked
        for, interactiveness_ap (n: true pairs of different coordinates). mAP, as in `eval`, is of the remaining
        triplets (n: classes).

        Pair recall and precision are those of pair_localization.py: recall counts the true pairs that some detected
        pair matches; precision counts the detected pairs that are, in the record's order, the first to match some true
        pair. one_to_one (section 4.1, "only one of them is counted towards recall"): by descending triplet score each
        detected pair takes one of the free true pairs that it matches, the one with the largest min(IoU); the others
        stay in the denominator.

        as_released: images without a line are not counted; negative AP is a mean over 110 recall values, of which 101
        can be reached; verbs with localised predictions but no true positive are left out of the interaction mAP, whose
        ground truth includes the triplets of images without predictions. mAP stays as it is: in Diag-HOI's tables it
        comes from standard_eval.py, which is protocol `diag` (only map_improvement_hicodet.py leaves classes out)."""
        of_classes = self.tally.results(self.vocabulary)
        for number, (setting, (protocol, classes)) in enumerate(zip(self._settings, of_classes, strict=True)):
            results = self._results(number)
            members = classes.average_subsets(subset_classes(self.vocabulary, protocol))
            for mean in subset_means(classes.ap, classes.max_recall, members):
                ap = None if "mAP" in self.reasons else mean.ap
                results.setdefault(mean.subset, {})["mAP"] = ap, mean.classes
            yield setting, results

    def _results(self, number: int) -> dict[str, dict[str, Figure]]:
        """Return all figures except mAP under one setting, by subset and metric. number: the setting's, from 0."""
        keep = self.found.kept[str(number)]
        counted = keep & ~self.found.detected["ignored"]
        matches = np.flatnonzero(counted[self.found.matches["row"]])
        results = {subset: self._pair_figures(subset, counted, matches) for subset in self._truth.members}
        verbs: dict[str, Figure] = {}
        if "inter_map" not in self.reasons:
            verbs = self.found.interactions[number].mean_ap(self._truth, as_released=self.as_released)
        for subset, figures in results.items():
            figures["inter_map"] = verbs.get(subset, (None, 0))
        results["full"] |= self._negative_figures(counted, matches)
        if self.interacting is not None:
            ap = None if "interactiveness_ap" in self.reasons else self._interactiveness_ap(self.interacting, keep)
            results["full"]["interactiveness_ap"] = ap, self.interacting.count
        return results

    def _pair_figures(self, subset: str, counted: Bools, matches: Ints) -> dict[str, Figure]:
        """Return the pairs per image, the recall and the precisions of a subset, by metric. counted [P]: which detected
        pairs count; matches: the rows of `PairColumns.matches` that are theirs."""
        images = self._truth.images(subset)
        if self.as_released:
            images &= self._images_seen()
        wanted = self._truth.members[subset] & images[self._truth.image]
        located, finders = self._count_located(matches[wanted[self.found.matches["mate"][matches]]])
        detected = self._count_pairs(counted, images)
        figures = {
            "pairs_per_image": _share(detected, int(images.sum())),
            "pair_recall": _share(located, int(wanted.sum())),
            "pair_precision": _share(finders, self._count_pairs(counted, self._annotated)),
        }
        if subset != "full":
            figures["pair_precision_own_images"] = _share(finders, detected)
        return figures

    def _images_seen(self) -> Bools:
        """Return which images [N] of the ground truth have a line of predictions."""
        seen = np.zeros(len(self._annotated), dtype=bool)
        seen[self.found.lines["image"]] = True
        return seen

    def _negative_figures(self, counted: Bools, matches: Ints) -> dict[str, Figure]:
        """Return the AP of "does not interact" and the share of pairs that do not, by metric. counted, matches: as in
        `_pair_figures`."""
        interacting = self.found.matches["row"][matches]
        neg_ap, negatives = self._negative_ap(counted, interacting, needed="neg_ap" not in self.reasons)
        return {
            "neg_ap": (neg_ap, negatives),
            "neg_share": _share(negatives, self._count_pairs(counted, self._annotated)),
        }

    def _count_pairs(self, counted: Bools, images: Bools) -> int:
        """Return how many detected pairs count [P] and are in some images [N] of the ground truth."""
        return int((counted & self._repeat_by_image(images)).sum())

    def _repeat_by_image(self, values: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return for each detected pair the value of its image. values [N]: one for each image of the ground truth."""
        lines = self.found.lines
        return np.repeat(values[lines["image"]], lines["pairs"])

    @property
    def negative_grid(self) -> tuple[float, ...]:
        """The recall values of the negative AP: those of the released code, for V-COCO, too, whose mAP is the area
        under the curve; only a protocol of triplets whose mAP is the area (diag-paper) takes the area here as well."""
        if not (self.protocol.grid or self.protocol.person_first):
            return EVERY_RECALL
        return tuple((np.arange(RELEASED_STEPS if self.as_released else STEPS) * 0.01).tolist())

    @cached_property
    def ranked(self) -> dict[str, tuple[int, int, int]]:
        """For each metric that ranks pairs: (the number of these pairs, how many of them state their interactiveness,
        how many have nothing that says how surely they interact)."""
        detected = self.found.detected
        stated, unknown = detected["stated"], np.isnan(detected["interacting"])
        ranked = {"neg_ap": self._repeat_by_image(self._annotated) & ~detected["ignored"]}
        if self.interacting is not None:
            ranked["interactiveness_ap"] = np.ones_like(stated)
        return {
            metric: (int(rows.sum()), int((rows & stated).sum()), int((rows & unknown).sum()))
            for metric, rows in ranked.items()
        }

    @cached_property
    def reasons(self) -> dict[str, str]:
        """For each metric without a value, the reason: not all records have the scores that it ranks by."""
        reasons_found, numbers = {}, self.found.numbers
        if numbers["unscored"]:
            reasons_found["inter_map"] = (
                f"{_share_text(numbers['unscored'], numbers['scored'], 'triplets')} no verb_score"
            )
        for metric, (ranked, stated, unknown) in self.ranked.items():
            if unknown:
                lacking = "triplet" if self.triplet_scores else "verb_score on each of their triplets"
                reasons_found[metric] = (
                    f"{_share_text(unknown, ranked - unknown, 'pairs')} neither interactiveness nor a {lacking}"
                )
            elif 0 < stated < ranked:
                reasons_found[metric] = (
                    f"{stated:,} of {ranked:,} pairs state interactiveness, the others have verb scores"
                )
        if numbers["pairs"] and not numbers["triplets"]:
            reasons_found |= dict.fromkeys(("inter_map", "mAP"), "the records list pairs and no triplets")
        return reasons_found

    def _count_located(self, matches: Ints) -> tuple[int, int]:
        """Return (the number of true pairs found, the number of detected pairs that found one) by some rows of
        `matches`."""
        columns = self.found
        row, mate = columns.matches["row"][matches], columns.matches["mate"][matches]
        if not self.one_to_one:
            first = np.full(len(self._truth.image), -1, dtype=np.int64)
            first[mate[::-1]] = row[::-1]  # the last to be written, which is the first of its true pair, stays
            finder = np.zeros(columns.numbers["pairs"], dtype=bool)
            finder[first[first >= 0]] = True
            return int((first >= 0).sum()), int(finder.sum())
        overlap, rank = columns.matches["overlap"][matches], self._repeat_by_image(self._truth.rank)[row]
        mark, score = columns.detected["mark"][row], columns.detected["score"][row]
        order = np.lexsort((mate, -overlap, row, mark, rank, -score))
        finders, pairs_found = set[int](), set[int]()
        for pair, true in zip(row[order].tolist(), mate[order].tolist(), strict=True):
            if pair not in finders and true not in pairs_found:
                finders.add(pair)
                pairs_found.add(true)
        return len(pairs_found), len(finders)

    def _negative_ap(self, keep: Bools, interacting: Ints, *, needed: bool) -> tuple[float | None, int]:
        """Return (the AP of "does not interact", the number of pairs that do not) for the kept pairs; the AP is None
        unless it is needed. interacting: the rows of detected pairs that match a true pair. The pairs that are least
        sure to interact rank first; ties are ordered as in `_ranking`."""
        interacts = np.zeros(len(keep), dtype=bool)
        interacts[interacting] = True
        ranked = keep & self._repeat_by_image(self._annotated)
        negatives = int((ranked & ~interacts).sum())
        if negatives == 0 or not needed:
            return None, negatives
        order = self._ranking(np.flatnonzero(ranked), ascending=True, as_listed=self.as_released)
        by_grid = replace(self.protocol, grid=self.negative_grid, predictions_per_class=None)
        bounds, positives = np.array([0, negatives]), np.array([negatives])
        ap, _ = ranked_ap(np.flatnonzero(~interacts[order]) + 1, bounds, positives, by_grid)
        return float(ap[0]), negatives

    def _interactiveness_ap(self, interacting: InteractingPairs, keep: Bools) -> float | None:
        """Return the AP of "interacts" for the kept pairs of all images; ties are ordered as in `_ranking`."""
        order = self._ranking(np.flatnonzero(keep), ascending=False, as_listed=False)
        return interacting.average_precision(self.found.detected["own"][order])

    def _ranking(self, rows: Ints, *, ascending: bool, as_listed: bool) -> Ints:
        """Return some detected pairs in the order of their confidence that they interact. Ties are ordered by image id,
        then as the record lists them (`as_listed`) or by values that do not depend on it."""
        confidence = self.found.detected["interacting"][rows]
        mark = np.zeros_like(confidence) if as_listed else self.found.detected["mark"][rows]

        def ties(tied: Ints) -> list[NDArray[Any]]:
            return [mark[tied], self._repeat_by_image(self._truth.rank)[rows[tied]]]

        return rows[order_by_score(-confidence if ascending else confidence, ties)]


def pair_statistics(
    predictions: Stream, truth: GroundTruth, settings: Sequence[Sweep], policy: ErrorPolicy, **options: Any
) -> PairStatistics:
    """Return one model's pair statistics from its predictions. options: the keywords of `PairStatistics`. Raises
    `DataError` as `read_pair_batches` does."""
    statistics = PairStatistics(truth, settings, **options)

    def gather(lines: Iterable[Line], shared: ErrorPolicy) -> PairColumns:
        batches = read_pair_batches(
            lines,
            truth.vocabulary,
            protocol=statistics.protocol,
            policy=shared,
            known_ids=truth.position,
            box_scores=any(setting.det_threshold is not None for setting in settings),
            triplet_scores=statistics.triplet_scores,
        )
        columns = statistics.nothing()
        with no_garbage_collection():
            for batch in batches:
                statistics.add(batch, columns)
        return columns

    for part in gather_in_parallel(gather, predictions, policy, lambda part: part.tally.listed.image_ids):
        statistics.found.merge(part)
    statistics.found.fit.check(truth.scenes, predictions.name)
    return statistics


def _share(part: int, whole: int) -> Figure:
    return part / whole if whole else None, whole


def _share_text(some: int, others: int, what: str) -> str:
    return f"{some:,} of {some + others:,} {what} have"
