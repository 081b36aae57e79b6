"""What pair statistics keep of images, in any order, and merge with what another process kept of others: the pairs, and
the triplets on the pairs of each setting, with the classification of their verbs."""

from __future__ import annotations

from collections import Counter

import numpy as np
from numpy.typing import NDArray

from hoicli.evaluation.fit import Fit
from hoicli.evaluation.listed import ranking
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import FALSE_POSITIVE, TRUE_POSITIVE
from hoicli.evaluation.tally import Tally, per_class
from hoicli.pairs.reading import PairBatch
from hoicli.pairs.truth import TruthPairs
from hoicli.records.kit import Growing


class Localised:
    """The distinct pairs of a batch's triplets, and the true pairs that they match, for all settings.

    image [U] of the ground truth and correct [U], of each pair whether it matches a true one; row, mate: which.
    """

    def __init__(self, batch: PairBatch, matched: Batch, truth: TruthPairs) -> None:
        scenes, first = batch.scenes, batch.pair_first
        self.batch, self.image_of_hoi = batch, matched.image_of_hoi
        self.image = matched.image_of_hoi[first]
        person = matched.best_people(truth.protocol)[0][first] if truth.protocol.person_first else None
        self.row, self.mate, _ = truth.join(scenes, self.image, scenes.subject[first], scenes.object[first], person)
        self.correct = np.zeros(len(first), dtype=bool)
        self.correct[self.row] = True


class Interactions:
    """The triplets on correctly localised pairs under one setting, gathered batch by batch in any order; the true pairs
    that some triplet localises, and the images with triplets that count."""

    def __init__(self, truth: TruthPairs) -> None:
        self._rows = Growing(
            **dict.fromkeys(("interaction", "image"), np.int32),
            **dict.fromkeys(("verb_score", "score"), np.float64),
            hit=np.bool_,
        )
        self._found = np.zeros(len(truth.image), dtype=bool)
        self._answered = np.zeros(len(truth.truth.scenes.image_ids), dtype=bool)

    def add(self, localised: Localised, code: NDArray[np.uint8]) -> None:
        """Add a batch of images; code [T]: the outcomes of its triplets."""
        scenes, pair = localised.batch.scenes, localised.batch.pair
        counted = np.flatnonzero((code <= TRUE_POSITIVE) & (pair >= 0))
        there = np.zeros(len(localised.image), dtype=bool)
        there[pair[counted]] = True
        # All others on a correct pair are duplicates or have the wrong verb.
        rows = counted[localised.correct[pair[counted]]]
        self._rows.add(
            interaction=scenes.interaction[rows],
            image=localised.image_of_hoi[rows],
            verb_score=localised.batch.verb_score[rows],
            score=scenes.score[rows],
            hit=code[rows] == TRUE_POSITIVE,
        )
        self._found[localised.mate[there[localised.row]]] = True
        self._answered[localised.image[there]] = True

    def merge(self, other: Interactions) -> None:
        """Add what was gathered of other images."""
        self._rows.merge(other._rows)
        self._found |= other._found
        self._answered |= other._answered

    def mean_ap(self, truth: TruthPairs, *, as_released: bool) -> dict[str, tuple[float | None, int]]:
        """By subset (mAP over verbs by verb score, verbs) of its interactions.

        Equal verb scores within an image are ordered by triplet score, then by place in the record, as in
        action_map_hicodet.py, which sorts an image's predictions by triplet score first; between images by id, where
        the released code takes the order of the file.
        """
        vocabulary = truth.truth.vocabulary
        # The labels to classify: verbs or, if actions have roles, action-roles.
        verb_of = np.array([vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions], dtype=np.int32)
        if vocabulary.roles:
            verb_of = np.arange(len(verb_of), dtype=np.int32)
        counted = self._found[truth.pair]
        if as_released:
            counted = counted | ~self._answered[truth.image[truth.pair]]
        annotated = truth.truth.scenes.interaction[truth.triplet]

        rows = self._rows
        every = ranking(
            verb_of[rows["interaction"]],
            rows["verb_score"],
            lambda tied: [-rows["score"][tied], truth.rank[rows["image"][tied]]],
        )
        interaction = rows["interaction"][every]
        code = np.where(rows["hit"][every], TRUE_POSITIVE, FALSE_POSITIVE).astype(np.uint8)
        found: dict[str, tuple[float | None, int]] = {}
        for subset, classes in truth.classes.items():
            positives = np.bincount(verb_of[annotated[counted & classes[annotated]]], minlength=int(verb_of.max()) + 1)
            inside = classes[interaction]
            bounds = np.searchsorted(verb_of[interaction[inside]], np.arange(len(positives) + 1))
            # A true positive's triplet is on a localised pair, so a verb without ground truth has none.
            ap, recall = per_class(code[inside], bounds, positives, truth.protocol)
            in_mean = positives > 0
            if as_released:
                in_mean &= (recall > 0) | (np.diff(bounds) == 0)
            found[subset] = None, 0
            if in_mean.any() and (as_released or self._answered.any()):  # compute_map prints 0 without predictions
                found[subset] = float(ap[in_mean].mean()), int(in_mean.sum())
        return found


class PairColumns:
    """M images with P detected pairs and their triplets, under some settings.

    lines: image [M], rows of the ground truth, and pairs [M], how many each has; an image's pairs are together and in
    their order. detected [P]: score, interacting and stated as in `PairBatch`; ignored, whether the person that a pair
    belongs to has no annotated actions; own, the true pair that it belongs to (`InteractingPairs`), -1 where nobody
    asks. matches: of a detected pair (row, ascending) and a true one (mate), with their overlap. kept [P], by the
    setting's number: whether it keeps the pair. interactions: of each setting, while all triplets have verb scores.
    tally: the triplets once, with their outcomes under each setting as if it were a protocol. fit: of the images'
    boxes. numbers: of all pairs and triplets; of the triplets that interaction mAP ranks, scored and unscored, those
    with and without a verb score.
    """

    def __init__(self, truth: TruthPairs, tally: Tally, settings: int) -> None:
        self.lines = Growing(image=np.int32, pairs=np.int32)
        self.detected = Growing(
            **dict.fromkeys(("interacting", "score"), np.float64),
            **dict.fromkeys(("stated", "ignored"), np.bool_),
            own=np.int32,
        )
        self.matches = Growing(row=np.int64, mate=np.int32, overlap=np.float64)
        self.kept = Growing(**{str(number): np.bool_ for number in range(settings)})
        self.interactions = [Interactions(truth) for _ in range(settings)]
        self.tally = tally
        self.fit = Fit()
        self.numbers: Counter[str] = Counter()

    def merge(self, other: PairColumns) -> None:
        """Add what was kept of other images under the same settings."""
        matches = {name: other.matches[name] for name in other.matches.names}
        self.matches.add(**{**matches, "row": matches["row"] + self.numbers["pairs"]})
        for name in ("lines", "detected", "kept", "tally", "fit"):
            getattr(self, name).merge(getattr(other, name))
        for mine, theirs in zip(self.interactions, other.interactions, strict=True):
            mine.merge(theirs)
        self.numbers += other.numbers
