"""The matching kernel: which predictions of a batch of images are true positives, under several protocols. No Python
loop runs per triplet or image."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError, Place
from hoicli.evaluation.filters import Filters, PairNms
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import (
    FALSE_POSITIVE,
    OUTCOME_CODES,
    TRUE_POSITIVE,
    Candidates,
    Pairing,
    first_largest,
    reaches,
)
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.slice_parts import triplet_parts
from hoicli.evaluation.slices import IMAGES, Part, Slice
from hoicli.records import caveats
from hoicli.records.boxes import best_per_image, pair_nms
from hoicli.records.kit import Bools, Floats, Ints, distinct, find, ranks_in_groups, run_starts
from hoicli.records.scenes import Scenes, are_subjects


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of the T predictions of a batch under one protocol. code [T]: what each prediction is, an index of
    OUTCOMES: a true positive, a false positive, or why it does not count.

    The other columns are about the K predictions whose image has ground truth of their class. row [K]: the prediction,
    ascending; truth [K]: the ground-truth triplet (a row of the ground truth's Scenes) that it overlaps most;
    iou_subject, iou_object [K]: the IoU with that triplet's boxes; enough [K]: whether the overlap reaches the
    threshold, so that the prediction belongs to the triplet, even if a better prediction takes it."""

    code: NDArray[np.uint8]
    row: Ints
    truth: Ints
    iou_subject: Floats
    iou_object: Floats
    enough: Bools

    def replace_codes(self, code: NDArray[np.uint8], keep: Bools) -> Outcomes:
        """Return a copy with other outcome codes [T]. keep [K]: a mask of the entries of the other columns to keep."""
        return Outcomes(
            code,
            self.row[keep],
            self.truth[keep],
            self.iou_subject[keep],
            self.iou_object[keep],
            self.enough[keep],
        )


class Batch(Pairing):
    """The T predictions of some images with their ground truth, to be matched under any protocol and filters. Each
    intermediate result is computed once and shared by all protocols that need it."""

    def __init__(self, predictions: Scenes, truth: GroundTruth) -> None:
        """Pair the predictions with the ground truth of their images; nothing is matched yet."""
        super().__init__(predictions, truth)
        # Results that are kept, by what they depend on
        self._best_by_boxes: dict[Hashable, Outcomes] = {}  # of `_best_candidates`
        self._threshold_free: dict[tuple[Protocol, Filters], Outcomes] = {}  # of `_threshold_free_outcomes`
        self._outcomes: dict[tuple[Protocol, float, Filters], Outcomes] = {}  # of `_match_all`
        self._filtered: dict[int | PairNms, Bools] = {}  # of `_best_of_images` and `_survivors`
        self._slices: dict[Slice, Bools] = {}  # of `parts`
        self._kept_only: Bools | None = None  # the predictions that `keep_only` leaves, None for all

    def keep_only(self, keep: Bools) -> Batch:
        """Return a copy of this batch in which only some predictions count: keep [T] is a mask of them, the others have
        the outcome "suppressed". Results that depend on boxes alone are shared with this batch."""
        reduced = copy(self)
        reduced._threshold_free = {}
        reduced._outcomes = {}
        reduced._filtered = {}
        reduced._kept_only = keep
        return reduced

    def match(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """Return the outcome of every prediction under a protocol.

        A prediction belongs to the ground-truth triplet of its class (under a person-first protocol: of its person's
        actions) with the largest min(IoU_subject, IoU_object), and to the first of several equal ones. Of the
        predictions that belong to one triplet and reach the threshold, the best-scored one is its true positive, the
        first in the input of equal scores, and the others are false. Only protocols that say so (`every_overlap`,
        `first_free`) try other triplets than the one with the largest overlap.

        filters: what to remove first (top-k, pair NMS), unless the protocol has filters of its own. Raises `DataError`
        if the predictions lack what the protocol needs."""
        self.check_serves(protocol)
        filters = protocol.filters or filters
        key = protocol.matching, protocol.threshold, filters  # `matching` is the same on every part of the data
        if key not in self._outcomes:
            self._outcomes[key] = self._match_all(protocol, filters)
        outcomes = self._outcomes[key]
        return outcomes if protocol.part is None else self._restrict_to_part(protocol.part, outcomes)

    def drop_reasons(self, protocol: Protocol, filters: Filters) -> NDArray[np.uint8]:
        """Return [T] for each prediction 0 if it counts, else the code of the first reason why it does not."""
        scenes, vocabulary = self.predictions, self.truth.vocabulary
        code = np.zeros(len(scenes.score), dtype=np.uint8)

        def drop(rows: Bools, reason: str) -> None:
            """Set the code of the predictions in a mask [T], unless an earlier reason dropped them already."""
            np.copyto(code, OUTCOME_CODES[reason], where=rows & (code == 0))

        if self._kept_only is not None:  # only these predictions of the batch are left (`keep_only`)
            drop(~self._kept_only, "suppressed")
        # Predictions that a protocol's dumps never have are dropped before the cap on an image's predictions: those of
        # other classes (V-COCO's about people alone), which take no place under the cap, and no_interaction.
        if protocol.pairs_only:
            drop(scenes.object < 0, "other_class")
        if protocol.classes:
            drop(~self.truth.scored_classes(protocol)[scenes.interaction] & (scenes.interaction >= 0), "other_class")
        if protocol.drop_no_interaction:
            drop(scenes.verb == vocabulary.verb_ids[vocabulary.no_interaction or ""], "no_interaction")
        caps = [cap for cap in (filters.top_k, protocol.triplets_per_image) if cap is not None]
        if caps:
            # the predictions that compete for the places under the cap, None for all
            among = code == 0 if protocol.classes or self._kept_only is not None else None
            drop(~self._best_of_images(min(caps), among), "over_the_cap")
        if filters.nms is not None:
            drop(~self._survivors(code == 0, filters.nms, few=bool(caps)), "suppressed")
        drop(scenes.interaction < 0, "not_an_interaction")
        if protocol.images != "all":
            drop(~self.truth.annotated_images(protocol)[self.image_of_hoi], "unannotated_image")
        if protocol.known_object:
            label_known = self.truth.are_known_objects(self.image, scenes.image_of_hoi, scenes.labels[scenes.object])
            drop(~label_known, "object_not_known")
        if protocol.person_subject:  # the last, as the diagnosis types predictions that only their subject rules out
            drop(~are_subjects(scenes.labels[scenes.subject], vocabulary), "subject_not_person")
        return code

    def _best_of_images(self, count: int, among: Bools | None) -> Bools:
        """Return a mask [T] of the `count` best-scored predictions of each image, of those `among` [T] (None: all)."""
        if among is not None:
            return best_per_image(self.predictions, count, among)
        if count not in self._filtered:
            self._filtered[count] = best_per_image(self.predictions, count)
        return self._filtered[count]

    def _survivors(self, among: Bools, nms: PairNms, *, few: bool) -> Bools:
        """Return a mask [T] of the predictions that pair NMS keeps. It says nothing about those outside `among` [T].

        A triplet is removed only because of a better-scored one of the same labels and verb. So it does not matter for
        the others whether whole verbs, or the worst of an image, were dropped before, and one result on all predictions
        serves every protocol. few: whether a cap left few predictions; NMS on these alone is faster, unless the result
        on all predictions is there already."""
        if few and nms not in self._filtered:
            return pair_nms(self.predictions, among, **nms._asdict())
        if nms not in self._filtered:
            every = np.ones(len(among), dtype=bool) if self._kept_only is None else self._kept_only
            self._filtered[nms] = pair_nms(self.predictions, every, **nms._asdict())
        return self._filtered[nms]

    def _match_all(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """Return the outcomes by a protocol's rules and threshold on all images, also if the protocol is a view on a
        part of the data."""
        if protocol.whole_image:
            return self._match_labels(self.drop_reasons(protocol, filters))
        if protocol.every_overlap or protocol.first_free:
            return self._match_all_overlaps(protocol, self.drop_reasons(protocol, filters))
        best = self._threshold_free_outcomes(protocol.matching, filters)
        enough = reaches(protocol, np.minimum(best.iou_subject, best.iou_object))
        claims = self._best_claims(best.row, best.truth, enough)  # the best prediction of each triplet found
        code = best.code.copy()
        code[best.row[claims]] = TRUE_POSITIVE
        return replace(best, code=code, enough=enough)

    def _threshold_free_outcomes(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """Return the part of the outcomes that does not depend on the threshold, so that several thresholds share it:
        why predictions do not count, and the triplet that each other prediction overlaps most. All predictions that
        count are still false positives, and `enough` is false everywhere."""
        if (protocol, filters) not in self._threshold_free:
            code = self.drop_reasons(protocol, filters)
            best = self._best_candidates(protocol)
            remaining = code == FALSE_POSITIVE
            np.copyto(code, best.code, where=remaining)
            self._threshold_free[protocol, filters] = best.replace_codes(code, remaining[best.row])
        return self._threshold_free[protocol, filters]

    def _best_candidates(self, protocol: Protocol) -> Outcomes:
        """Return the triplet that each prediction overlaps most, whether or not the prediction counts. All protocols
        that compare boxes in the same way share this result. It has the columns of outcomes, though nothing is decided
        yet: each code is that of a false positive, or of an ignored person, and `enough` is false everywhere."""
        # all that decides which triplet a prediction overlaps most: what may be compared, and how IoU is measured
        flags = protocol.same_subject, protocol.person_first, protocol.any_object_when_none, protocol.pairs_only
        key = protocol.iou_key, flags
        if key not in self._best_by_boxes:
            code = np.full(len(self.predictions.score), FALSE_POSITIVE, dtype=np.uint8)
            # `_candidate_blocks` writes the codes of ignored people into `code`
            candidates = _join_candidates([_keep_largest(block) for block in self._candidate_blocks(protocol, code)])
            none_enough = np.zeros(len(candidates.row), dtype=bool)
            # candidates: columns row, truth, iou_subject and iou_object, as those of outcomes
            self._best_by_boxes[key] = Outcomes(code, *candidates, enough=none_enough)
        return self._best_by_boxes[key]

    def _match_all_overlaps(self, protocol: Protocol, code: NDArray[np.uint8]) -> Outcomes:
        """Return the outcomes under a protocol where a prediction may take others than the triplet it overlaps most.

        `Protocol.every_overlap`: the best-scored prediction that overlaps a triplet enough takes it, whether it is
        already a true positive or not. So a prediction is a true positive exactly if it is the best-scored one for some
        triplet. `Protocol.first_free`: see `_first_free_claims`. A true positive belongs to the triplet that it takes.
        code [T]: from `drop_reasons`; true positives are marked in it."""
        row, truth, iou_subject, iou_object = _join_candidates(list(self._candidate_blocks(protocol, code)))
        overlap = np.minimum(iou_subject, iou_object)
        enough = reaches(protocol, overlap)
        find_claims = self._first_free_claims if protocol.first_free else self._best_claims
        taken = find_claims(row, truth, enough)  # the pairs in which a prediction takes a triplet
        code[row[taken]] = TRUE_POSITIVE
        overlap[taken] += 1.0  # an IoU is at most 1: a triplet that the prediction takes comes before all others
        best = first_largest(row, overlap)
        return Outcomes(code, row[best], truth[best], iou_subject[best], iou_object[best], enough[best])

    def _best_claims(self, row: Ints, truth: Ints, enough: Bools) -> Ints:
        """Return the pairs in which a prediction takes a triplet, as positions in the arguments: for each ground-truth
        triplet that some prediction overlaps enough, the best-scored of these, the first in the input of equal scores.

        row, truth, enough [K]: K pairs of a prediction and a triplet, by prediction, and whether they overlap enough.
        """
        claims = np.flatnonzero(enough)
        claims = claims[np.argsort(truth[claims], kind="stable")]
        scores = self.predictions.score[row[claims]]
        return claims[first_largest(truth[claims], scores)]

    def _first_free_claims(self, row: Ints, truth: Ints, enough: Bools) -> Ints:
        """Return the pairs in which a prediction takes a triplet, as positions in the arguments: by descending score,
        each prediction of a class in an image takes the first triplet that it overlaps enough and that is free.

        row, truth, enough [K]: as in `_best_claims`; the triplets of a prediction in the annotations' order."""
        claims = np.flatnonzero(enough)
        claimants = distinct(row[claims])
        # one number for each (image, class)
        competition = self.predictions.image_of_hoi[claimants] * len(self.truth.vocabulary.interactions)
        competition += self.predictions.interaction[claimants]
        rank = ranks_in_groups(competition, self.predictions.score[claimants])
        rank_of_claim = rank[np.searchsorted(claimants, row[claims])]
        by_rank = np.argsort(rank_of_claim, kind="stable")
        is_taken = np.zeros(len(self.truth.scenes.interaction), dtype=bool)
        pairs_taken = [np.zeros(0, dtype=np.int64)]
        # predictions of the same rank are of different images or classes: they compete for nothing, so take together
        for claims_of_rank in np.split(claims[by_rank], run_starts(rank_of_claim[by_rank])[1:]):
            free = claims_of_rank[~is_taken[truth[claims_of_rank]]]
            first = free[run_starts(row[free])]  # of each prediction
            is_taken[truth[first]] = True
            pairs_taken.append(first)
        return np.concatenate(pairs_taken)

    def _match_labels(self, code: NDArray[np.uint8]) -> Outcomes:
        """Return the outcomes by image-level labels, without regard to boxes. Of the predictions of a class in an image
        only the best-scored counts, the first of equal scores; it is right if the image has the label, and does not
        count if the label is ambiguous there. code [T]: from `drop_reasons`; the outcomes are written into it."""
        counted = np.flatnonzero(code == 0)
        # One number for each (image, class), as in `GroundTruth.image_labels`.
        key = self.image_of_hoi[counted] * len(self.truth.vocabulary.interactions)
        key += self.predictions.interaction[counted]
        order = np.lexsort((counted, -self.predictions.score[counted], key))  # by key, then score, then input order
        best = order[run_starts(key[order])]
        best_rows = counted[best]
        best_keys = key[best]
        positive_keys, ambiguous_keys = self.truth.image_labels
        _, is_positive = find(positive_keys, best_keys)
        _, is_ambiguous = find(ambiguous_keys, best_keys)
        code[counted] = OUTCOME_CODES["over_the_cap"]
        code[best_rows] = FALSE_POSITIVE
        code[best_rows[is_ambiguous]] = OUTCOME_CODES["unannotated_image"]
        code[best_rows[is_positive]] = TRUE_POSITIVE
        # no prediction belongs to a triplet, as boxes are not looked at
        none = np.zeros(0, dtype=np.int64)
        no_iou = np.zeros(0)
        return Outcomes(code, none, none, iou_subject=no_iou, iou_object=no_iou, enough=np.zeros(0, dtype=bool))

    def check_serves(self, protocol: Protocol) -> None:
        """Raise `DataError` if a caveat of the predictions rules the protocol out (as scores of whole images)."""
        if not protocol.refuses & self.predictions.every_caveat:
            return
        refused = self.predictions.caveats & protocol.refuses
        image_id = self.predictions.image_ids[int(np.flatnonzero(refused)[0])]
        lacks = caveats.CAVEATS[caveats.names(int(refused.max()))[0]].lacks
        raise DataError(f"cannot serve {protocol.name}: {lacks}", place=Place(f"image {image_id}"), code="cannot-serve")

    def _restrict_to_part(self, part: Part, outcomes: Outcomes) -> Outcomes:
        """Return the outcomes on a part of the data, given those on all of it. A prediction that belongs to a
        ground-truth triplet is in the part of that triplet, and any other in the part of its own boxes or image; one
        that did not count before keeps its code."""
        inside = self.members(part)
        inside[outcomes.row[outcomes.enough]] = self.truth.members(part)[outcomes.truth[outcomes.enough]]
        keeps_code = inside | (outcomes.code > TRUE_POSITIVE)  # the codes of what does not count are larger
        code = np.where(keeps_code, outcomes.code, OUTCOME_CODES["outside_slice"])
        return outcomes.replace_codes(code.astype(np.uint8), inside[outcomes.row])

    def members(self, part: Part) -> Bools:
        """Return a mask [T] of the predictions in one part of a slice: by their image, or by their own boxes."""
        if part.slice.of == IMAGES:
            images: Bools = self.truth.slice_members(part.slice)[part.number]
            return images[self.image_of_hoi]
        members: Bools = self.parts(part.slice)[part.number].copy()
        return members

    def parts(self, slice_: Slice) -> Bools:
        """Return a mask [parts, T] of the predictions in each part of a slice of triplets, by their own boxes."""
        if slice_ not in self._slices:
            self._slices[slice_] = triplet_parts(slice_, self.predictions, self.truth.vocabulary)
        return self._slices[slice_]


def match_all(batch: Batch, protocols: Sequence[Protocol], filters: Filters) -> Mapping[str, Outcomes]:
    """Return the outcomes of a batch under each protocol, by `Protocol.key`. A protocol that is the mean over several
    thresholds has no outcomes of its own and is left out."""
    return {protocol.key: batch.match(protocol, filters) for protocol in protocols if not protocol.mean_of}


def _join_candidates(blocks: Sequence[Candidates]) -> Candidates:
    """Return the candidates of all blocks, of which there is at least one, in one."""
    if len(blocks) == 1:
        return blocks[0]
    columns = zip(*blocks, strict=True)
    return Candidates(*map(np.concatenate, columns))


def _keep_largest(candidates: Candidates) -> Candidates:
    """Return the candidate of each prediction with the largest min(IoU_subject, IoU_object), the first of equals."""
    row, truth, iou_subject, iou_object = candidates
    best = first_largest(row, np.minimum(iou_subject, iou_object))
    return Candidates(row[best], truth[best], iou_subject[best], iou_object[best])
