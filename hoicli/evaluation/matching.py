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
from hoicli.evaluation.ground_truth import GroundTruth, triplet_parts
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
from hoicli.evaluation.slices import IMAGES, Part, Slice
from hoicli.records import caveats
from hoicli.records.boxes import best_per_image, pair_nms
from hoicli.records.kit import Bools, Floats, Ints, find, run_starts, sorted_by
from hoicli.records.scenes import Scenes, are_subjects


@dataclass(frozen=True)
class Outcomes:
    """The outcomes of the T predictions of a batch under one protocol. code [T] indexes OUTCOMES. The rest is about the
    K predictions with ground truth of their class in the image: row [K] their rows, ascending; truth [K] the
    ground-truth triplet (a row of the ground truth's Scenes) with the largest overlap; iou_subject, iou_object [K] the
    IoU with it; enough [K] whether the overlap reaches the threshold, so that the prediction belongs to this triplet,
    even if a better one takes it.
    """

    code: NDArray[np.uint8]
    row: Ints
    truth: Ints
    iou_subject: Floats
    iou_object: Floats
    enough: Bools

    def some(self, code: NDArray[np.uint8], rows: Bools) -> Outcomes:
        """Other outcomes of the same predictions; of those with ground truth only some, rows [K]."""
        truth, subject, object_ = self.truth[rows], self.iou_subject[rows], self.iou_object[rows]
        return Outcomes(code, self.row[rows], truth, subject, object_, self.enough[rows])


class Batch(Pairing):
    """A batch of images, matched under any protocol and filters, each once."""

    def __init__(self, predictions: Scenes, truth: GroundTruth) -> None:
        super().__init__(predictions, truth)
        self._every: dict[Hashable, Outcomes] = {}
        self._bests: dict[tuple[Protocol, Filters], Outcomes] = {}
        self._outcomes: dict[tuple[Protocol, float, Filters], Outcomes] = {}
        self._kept: dict[int | PairNms, Bools] = {}
        self._slices: dict[Slice, Bools] = {}
        self._left: Bools | None = None

    def keep_only(self, keep: Bools) -> Batch:
        """Return the same batch with only some of its predictions, `keep` [T]; the others are suppressed. What was
        computed of their boxes is shared."""
        some = copy(self)
        some._bests, some._outcomes, some._kept, some._left = {}, {}, {}, keep
        return some

    def match(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """The outcome of every prediction under a protocol. A prediction belongs to the ground truth of its class (for
        a person-first protocol: of its person's actions) with the largest min(IoU_subject, IoU_object), the first of
        equals. Of the predictions that belong to one ground truth and reach the threshold, the best-scored is its true
        positive and the others are false (no released evaluator tries the second best). Equal scores: input order.
        """
        self.check_serves(protocol)
        filters = protocol.filters or filters
        key = protocol.matching, protocol.threshold, filters
        if key not in self._outcomes:
            self._outcomes[key] = self._match_all(protocol, filters)
        outcomes = self._outcomes[key]
        return outcomes if protocol.part is None else self._within(protocol.part, outcomes)

    def drop_reasons(self, protocol: Protocol, filters: Filters) -> NDArray[np.uint8]:
        """[T] 0 for a prediction that counts, else the code of the first reason why it does not."""
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
        """[T] the `count` best of each image, of all or `among` these."""
        if among is not None:
            return best_per_image(self.predictions, count, among)
        if count not in self._kept:
            self._kept[count] = best_per_image(self.predictions, count)
        return self._kept[count]

    def _survivors(self, among: Bools, nms: PairNms, *, few: bool) -> Bools:
        """[T] what pair NMS leaves `among` these. What suppresses a triplet has its labels and verb and a better score,
        so whoever drops whole verbs, or the worst of an image, may ask for all at once: without that, `few` do."""
        if few and nms not in self._kept:
            return pair_nms(self.predictions, among, **nms._asdict())
        if nms not in self._kept:
            every = np.ones(len(among), dtype=bool) if self._left is None else self._left
            self._kept[nms] = pair_nms(self.predictions, every, **nms._asdict())
        return self._kept[nms]

    def _match_all(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """The outcomes on all of the data."""
        if protocol.whole_image:
            return self._match_labels(self.drop_reasons(protocol, filters))
        if protocol.every_overlap:
            return self._by_every_overlap(protocol, self.drop_reasons(protocol, filters))
        best = self._best(protocol.matching, filters)
        code, enough = best.code.copy(), reaches(protocol, np.minimum(best.iou_subject, best.iou_object))
        code[best.row[self._best_claims(best.row, best.truth, enough)]] = TRUE_POSITIVE
        return replace(best, code=code, enough=enough)

    def _best(self, protocol: Protocol, filters: Filters) -> Outcomes:
        """Return what does not depend on the threshold; nothing is `enough`, and no code a true positive."""
        if (protocol, filters) not in self._bests:
            code, every = self.drop_reasons(protocol, filters), self._best_of_every(protocol)
            remaining = code == 0
            code[remaining] = every.code[remaining]
            self._bests[protocol, filters] = every.some(code, remaining[every.row])
        return self._bests[protocol, filters]

    def _best_of_every(self, protocol: Protocol) -> Outcomes:
        """Return the same of all predictions, whether they count or not, which changes nobody's best: protocols that
        compare boxes alike share it."""
        key = protocol.iou_key, protocol.same_subject, protocol.person_first, protocol.any_object_when_none
        if key not in self._every:
            code = np.zeros(len(self.predictions.score), dtype=np.uint8)
            candidates = _join_candidates([_best(*block) for block in self._blocks(protocol, code)])
            self._every[key] = Outcomes(code, *candidates, enough=np.zeros(len(candidates[0]), dtype=bool))
        return self._every[key]

    def _by_every_overlap(self, protocol: Protocol, code: NDArray[np.uint8]) -> Outcomes:
        """Whoever claims a triplet first takes it, true positive or not: so a prediction is right exactly if it has the
        best score of all that overlap some triplet enough. That triplet is then the one it belongs to."""
        candidate, truth, subject, object_ = _join_candidates(list(self._blocks(protocol, code)))
        overlap = np.minimum(subject, object_)
        enough = reaches(protocol, overlap)
        taken = self._best_claims(candidate, truth, enough)
        code[candidate[taken]] = TRUE_POSITIVE
        overlap[taken] += 1.0
        best = first_largest(candidate, overlap)
        return Outcomes(code, candidate[best], truth[best], subject[best], object_[best], enough[best])

    def _best_claims(self, row: Ints, truth: Ints, enough: Bools) -> Ints:
        """The places of the best-scored claim on each ground-truth triplet, of equals the first in the input, among
        (prediction `row`, ascending, triplet `truth`) that overlap `enough`."""
        place = np.flatnonzero(enough)
        place = place[sorted_by(truth[place], len(self.truth.scenes.interaction))]
        return place[first_largest(truth[place], self.predictions.score[row[place]])]

    def _match_labels(self, code: NDArray[np.uint8]) -> Outcomes:
        """The outcomes by image-level labels: the best triplet of a class in an image, the first of equals, stands for
        the class, and the others do not count; nor do classes whose label is ambiguous."""
        live = np.flatnonzero(code == 0)
        key = self.image_of_hoi[live] * len(self.truth.vocabulary.interactions) + self.predictions.interaction[live]
        order = np.lexsort((live, -self.predictions.score[live], key))
        first = order[run_starts(key[order])]
        code[live] = OUTCOME_CODES["over_the_cap"]
        code[live[first]] = FALSE_POSITIVE
        positive, ambiguous = self.truth.image_labels
        code[live[first[find(ambiguous, key[first])[1]]]] = OUTCOME_CODES["unannotated_image"]
        code[live[first[find(positive, key[first])[1]]]] = TRUE_POSITIVE
        none = np.zeros(0)
        return Outcomes(code, none.astype(np.int64), none.astype(np.int64), none, none, none.astype(bool))

    def check_serves(self, protocol: Protocol) -> None:
        """Raises `DataError` for predictions whose caveats rule the protocol out."""
        if not protocol.refuses & self.predictions.every_caveat:
            return
        refused = self.predictions.caveats & protocol.refuses
        image_id = self.predictions.image_ids[int(np.flatnonzero(refused)[0])]
        lacks = caveats.CAVEATS[caveats.names(int(refused.max()))[0]].lacks
        raise DataError(f"cannot serve {protocol.name}: {lacks}", place=Place(f"image {image_id}"), code="cannot-serve")

    def _within(self, part: Part, outcomes: Outcomes) -> Outcomes:
        """The outcomes on a part of the data. A prediction is in the part of the ground truth it belongs to, and if it
        belongs to none, in the part that it has by itself; one that does not count anyway keeps its reason."""
        inside = self.members(part)
        inside[outcomes.row[outcomes.enough]] = self.truth.members(part)[outcomes.truth[outcomes.enough]]
        code = np.where(inside | (outcomes.code > TRUE_POSITIVE), outcomes.code, OUTCOME_CODES["outside_slice"])
        return outcomes.some(code.astype(np.uint8), inside[outcomes.row])

    def members(self, part: Part) -> Bools:
        """[T] the predictions in a part, by their image or by their own boxes."""
        if part.slice.of == IMAGES:
            images: Bools = self.truth.slice_members(part.slice)[part.number]
            return images[self.image_of_hoi]
        members: Bools = self.parts(part.slice)[part.number].copy()
        return members

    def parts(self, slice_: Slice) -> Bools:
        """[parts, T] the predictions in each part of a slice of triplets, by their own boxes."""
        if slice_ not in self._slices:
            self._slices[slice_] = triplet_parts(slice_, self.predictions, self.truth.vocabulary)
        return self._slices[slice_]


def match_all(batch: Batch, protocols: Sequence[Protocol], filters: Filters) -> Mapping[str, Outcomes]:
    """Outcomes by protocol key."""
    return {protocol.key: batch.match(protocol, filters) for protocol in protocols if not protocol.mean_of}


def _join_candidates(blocks: Sequence[Candidates]) -> Candidates:
    """The candidates of at least one block."""
    row, truth, subject, object_ = blocks[0] if len(blocks) == 1 else map(np.concatenate, zip(*blocks, strict=True))
    return row, truth, subject, object_


def _best(candidate: Ints, truth: Ints, subject: Floats, object_: Floats) -> Candidates:
    """Return of each prediction's candidates, grouped by prediction, the one with the largest overlap, the first of
    equals."""
    best = first_largest(candidate, np.minimum(subject, object_))
    return candidate[best], truth[best], subject[best], object_[best]
