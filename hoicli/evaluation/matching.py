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
from hoicli.evaluation.slices import IMAGES, Part, Slice, triplet_parts
from hoicli.records import caveats
from hoicli.records.boxes import best_per_image, pair_nms
from hoicli.records.kit import Bools, Floats, Ints, find, run_starts, sorted_by
from hoicli.records.scenes import Scenes, are_subjects


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of the T predictions of a batch under one protocol. code [T]: the outcome, an index of OUTCOMES.

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

    def some(self, code: NDArray[np.uint8], rows: Bools) -> Outcomes:
        """Return outcomes of the same predictions with other codes. rows [K]: what to keep of the other columns."""
        truth, subject, object_ = self.truth[rows], self.iou_subject[rows], self.iou_object[rows]
        return Outcomes(code, self.row[rows], truth, subject, object_, self.enough[rows])


class Batch(Pairing):
    """A batch of images, which can be matched under any protocol and filters; each result is computed only once."""

    def __init__(self, predictions: Scenes, truth: GroundTruth) -> None:
        super().__init__(predictions, truth)
        self._every: dict[Hashable, Outcomes] = {}
        self._bests: dict[tuple[Protocol, Filters], Outcomes] = {}
        self._outcomes: dict[tuple[Protocol, float, Filters], Outcomes] = {}
        self._kept: dict[int | PairNms, Bools] = {}
        self._slices: dict[Slice, Bools] = {}
        self._left: Bools | None = None

    def keep_only(self, keep: Bools) -> Batch:
        """Return the same batch where only the predictions `keep` [T] are left and the others count as suppressed. It
        shares with this batch what was computed from boxes alone."""
        reduced = copy(self)
        reduced._bests, reduced._outcomes, reduced._kept, reduced._left = {}, {}, {}, keep
        return reduced

    def match(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """Return the outcome of every prediction under a protocol.

        A prediction belongs to the ground-truth triplet of its class (under a person-first protocol: of its person's
        actions) with the largest min(IoU_subject, IoU_object), and to the first of several equal ones. Of the
        predictions that belong to one triplet and reach the threshold, the best-scored one is its true positive, the
        first in the input of equal scores, and the others are false: no released evaluator tries the second best."""
        self.check_serves(protocol)
        filters = protocol.filters or filters
        key = protocol.matching, protocol.threshold, filters
        if key not in self._outcomes:
            self._outcomes[key] = self._match_all(protocol, filters)
        outcomes = self._outcomes[key]
        return outcomes if protocol.part is None else self._within(protocol.part, outcomes)

    def drop_reasons(self, protocol: Protocol, filters: Filters) -> NDArray[np.uint8]:
        """Return [T] 0 for each prediction that counts, else the code of the first reason why it does not."""
        scenes, vocabulary = self.predictions, self.truth.vocabulary
        code = np.zeros(len(scenes.score), dtype=np.uint8)

        def drop(rows: Bools, reason: str) -> None:
            code[rows & (code == 0)] = OUTCOME_CODES[reason]

        if self._left is not None:
            drop(~self._left, "suppressed")
        # Predictions that a protocol's dumps never have are dropped before the cap on an image's predictions: those of
        # other classes (V-COCO's about people alone), which take no place under the cap, and no_interaction.
        if protocol.classes:
            drop(~self.truth.scored_classes(protocol)[scenes.interaction] & (scenes.interaction >= 0), "other_class")
        if protocol.drop_no_interaction:
            drop(scenes.verb == vocabulary.verb_ids[vocabulary.no_interaction or ""], "no_interaction")
        caps = [cap for cap in (filters.top_k, protocol.triplets_per_image) if cap is not None]
        if caps:
            among = code == 0 if protocol.classes or self._left is not None else None
            drop(~self._best_of_images(min(caps), among), "over_the_cap")
        if filters.nms is not None:
            drop(~self._survivors(code == 0, filters.nms, few=bool(caps)), "suppressed")
        drop(scenes.interaction < 0, "not_an_interaction")
        if protocol.images != "all":
            drop(~self.truth.annotated_images(protocol)[self.image_of_hoi], "unannotated_image")
        if protocol.known_object:
            label_known = self.truth.knows(self.image, scenes.image_of_hoi, scenes.labels[scenes.object])
            drop(~label_known, "object_not_known")
        if protocol.person_subject:  # the last, as the diagnosis has a type for what counts but for its subject
            drop(~are_subjects(scenes.labels[scenes.subject], vocabulary), "subject_not_person")
        return code

    def _best_of_images(self, count: int, among: Bools | None) -> Bools:
        """Return [T] the `count` best-scored predictions of each image, of all of them or of those in `among` [T]."""
        if among is not None:
            return best_per_image(self.predictions, count, among)
        if count not in self._kept:
            self._kept[count] = best_per_image(self.predictions, count)
        return self._kept[count]

    def _survivors(self, among: Bools, nms: PairNms, *, few: bool) -> Bools:
        """Return [T] whether pair NMS leaves each prediction of those in `among` [T]. A triplet is suppressed only by a
        better-scored one of the same labels and verb. So dropping whole verbs, or the worst of an image, changes
        nothing for the rest, and one result on all predictions serves every protocol. few: a cap left few predictions,
        so that without that result NMS of these alone costs less."""
        if few and nms not in self._kept:
            return pair_nms(self.predictions, among, **nms._asdict())
        if nms not in self._kept:
            every = np.ones(len(among), dtype=bool) if self._left is None else self._left
            self._kept[nms] = pair_nms(self.predictions, every, **nms._asdict())
        return self._kept[nms]

    def _match_all(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """Return the outcomes under a protocol on all of the data, whatever part of it the protocol's view is of."""
        if protocol.whole_image:
            return self._match_labels(self.drop_reasons(protocol, filters))
        if protocol.every_overlap:
            return self._by_every_overlap(protocol, self.drop_reasons(protocol, filters))
        best = self._best(protocol.matching, filters)
        code, enough = best.code.copy(), reaches(protocol, np.minimum(best.iou_subject, best.iou_object))
        code[best.row[self._best_claims(best.row, best.truth, enough)]] = TRUE_POSITIVE
        return replace(best, code=code, enough=enough)

    def _best(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """Return the part of the outcomes that does not depend on the threshold: why predictions do not count, and the
        triplet that each other one overlaps most. `enough` is false everywhere, and no code is a true positive."""
        if (protocol, filters) not in self._bests:
            code, every = self.drop_reasons(protocol, filters), self._best_of_every(protocol)
            remaining = code == 0
            code[remaining] = every.code[remaining]
            self._bests[protocol, filters] = every.some(code, remaining[every.row])
        return self._bests[protocol, filters]

    def _best_of_every(self, protocol: Protocol) -> Outcomes:
        """Return, as outcomes, the triplet that each prediction overlaps most, whether or not the prediction counts. It
        does not depend on what counts, so all protocols that compare boxes alike share this result."""
        key = protocol.iou_key, protocol.same_subject, protocol.person_first, protocol.any_object_when_none
        if key not in self._every:
            code = np.zeros(len(self.predictions.score), dtype=np.uint8)
            candidates = _join_candidates([_best(*block) for block in self._blocks(protocol, code)])
            self._every[key] = Outcomes(code, *candidates, enough=np.zeros(len(candidates[0]), dtype=bool))
        return self._every[key]

    def _by_every_overlap(self, protocol: Protocol, code: NDArray[np.uint8]) -> Outcomes:
        """Return the outcomes under a protocol where a prediction takes all triplets that it overlaps enough
        (`Protocol.every_overlap`). The best-scored prediction that overlaps a triplet enough takes it, whether it is
        already a true positive or not. So a prediction is a true positive exactly if it is the best-scored one for some
        triplet, and it belongs to that triplet."""
        candidate, truth, subject, object_ = _join_candidates(list(self._blocks(protocol, code)))
        overlap = np.minimum(subject, object_)
        enough = reaches(protocol, overlap)
        taken = self._best_claims(candidate, truth, enough)
        code[candidate[taken]] = TRUE_POSITIVE
        overlap[taken] += 1.0  # an IoU is at most 1: a triplet that the prediction takes comes before all others
        best = first_largest(candidate, overlap)
        return Outcomes(code, candidate[best], truth[best], subject[best], object_[best], enough[best])

    def _best_claims(self, row: Ints, truth: Ints, enough: Bools) -> Ints:
        """Return the best-scored claim on each ground-truth triplet, the first in the input of equal scores, as indices
        into the arguments. A claim is a prediction (row, ascending) that overlaps a triplet (truth) `enough`."""
        claims = np.flatnonzero(enough)
        claims = claims[sorted_by(truth[claims], len(self.truth.scenes.interaction))]
        return claims[first_largest(truth[claims], self.predictions.score[row[claims]])]

    def _match_labels(self, code: NDArray[np.uint8]) -> Outcomes:
        """Return the outcomes by image-level labels, boxes aside. The best-scored prediction of a class in an image,
        the first of equal scores, stands for the class; the others do not count, nor does a class whose label in the
        image is ambiguous. code [T]: from `drop_reasons`."""
        live = np.flatnonzero(code == 0)
        key = self.image_of_hoi[live] * len(self.truth.vocabulary.interactions) + self.predictions.interaction[live]
        order = np.lexsort((live, -self.predictions.score[live], key))
        first = order[run_starts(key[order])]
        code[live] = OUTCOME_CODES["over_the_cap"]
        code[live[first]] = FALSE_POSITIVE
        positive, ambiguous = self.truth.image_labels
        code[live[first[find(ambiguous, key[first])[1]]]] = OUTCOME_CODES["unannotated_image"]
        code[live[first[find(positive, key[first])[1]]]] = TRUE_POSITIVE
        empty = np.zeros(0)
        return Outcomes(code, empty.astype(np.int64), empty.astype(np.int64), empty, empty, empty.astype(bool))

    def check_serves(self, protocol: Protocol) -> None:
        """Raise `DataError` if the caveats of the predictions rule the protocol out."""
        if not protocol.refuses & self.predictions.every_caveat:
            return
        refused = self.predictions.caveats & protocol.refuses
        image_id = self.predictions.image_ids[int(np.flatnonzero(refused)[0])]
        lacks = caveats.CAVEATS[caveats.names(int(refused.max()))[0]].lacks
        raise DataError(f"cannot serve {protocol.name}: {lacks}", place=Place(f"image {image_id}"), code="cannot-serve")

    def _within(self, part: Part, outcomes: Outcomes) -> Outcomes:
        """Return the outcomes on a part of the data, given those on all of it. A prediction that belongs to a
        ground-truth triplet is in the part of that triplet, and any other in the part that its own boxes or image have;
        one that does not count anyway keeps its reason."""
        inside = self.members(part)
        inside[outcomes.row[outcomes.enough]] = self.truth.members(part)[outcomes.truth[outcomes.enough]]
        code = np.where(inside | (outcomes.code > TRUE_POSITIVE), outcomes.code, OUTCOME_CODES["outside_slice"])
        return outcomes.some(code.astype(np.uint8), inside[outcomes.row])

    def members(self, part: Part) -> Bools:
        """Return [T] whether each prediction is in a part of the data, by its image or by its own boxes."""
        if part.slice.of == IMAGES:
            images: Bools = self.truth.slice_members(part.slice)[part.number]
            return images[self.image_of_hoi]
        members: Bools = self.parts(part.slice)[part.number].copy()
        return members

    def parts(self, slice_: Slice) -> Bools:
        """Return [parts, T] whether each prediction is in each part of a slice of triplets, by its own boxes."""
        if slice_ not in self._slices:
            self._slices[slice_] = triplet_parts(slice_, self.predictions, self.truth.vocabulary)
        return self._slices[slice_]


def match_all(batch: Batch, protocols: Sequence[Protocol], filters: Filters) -> Mapping[str, Outcomes]:
    """Return the outcomes of a batch under each protocol, by the protocol's key; a mean of views has none."""
    return {protocol.key: batch.match(protocol, filters) for protocol in protocols if not protocol.mean_of}


def _join_candidates(blocks: Sequence[Candidates]) -> Candidates:
    """Return the candidates of all blocks (at least one) in one."""
    row, truth, subject, object_ = blocks[0] if len(blocks) == 1 else map(np.concatenate, zip(*blocks, strict=True))
    return row, truth, subject, object_


def _best(candidate: Ints, truth: Ints, subject: Floats, object_: Floats) -> Candidates:
    """Return each prediction's candidate with the largest overlap, the first of equal ones, from grouped candidates."""
    best = first_largest(candidate, np.minimum(subject, object_))
    return candidate[best], truth[best], subject[best], object_[best]
