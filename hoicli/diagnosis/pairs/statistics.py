"""Pair statistics gathered from batches of images: localisation of pairs, and classification of their interactions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hoicli.average_precision import enveloped_ap, interpolated_ap, max_recall
from hoicli.diagnosis.pairs.reading import PairBatch, with_triplets
from hoicli.diagnosis.pairs.settings import Sweep, surviving_pairs, surviving_triplets
from hoicli.diagnosis.pairs.truth import TruthPairs
from hoicli.errors import DataError, UsageError
from hoicli.matching import TRUE_POSITIVE, Batch, Filters, GroundTruth
from hoicli.scenes import Bools, Floats, Ints, Scenes

STEPS = 101
"""Recall values of the negative AP: 0, 0.01, ..., 1."""
NOT_RELEASED = "--as-released: for HICO-DET only; the released pair statistics of vcoco fail at their first pair"
"""neu-vi/Diag-HOI pair_localization.py hands `get_overlap` single boxes as if they were lists of boxes."""
RELEASED_STEPS = 110
"""The released code's go on to 1.09, where no precision is, so that a perfect ranking scores 101/110 (voc_ap)."""


@dataclass(frozen=True)
class PairResults:
    """One subset under one setting. Fractions in [0, 1]; None where there is nothing to divide by.

    images it has, pairs detected in them, truth_pairs annotated; recall, precision; neg_ap over `negatives` pairs that
    match no true one; inter_map, inter_recall (mean maximal recall) over `verbs`.
    """

    subset: str
    images: int
    pairs: int
    truth_pairs: int
    recall: float | None
    precision: float | None
    neg_ap: float | None
    negatives: int
    inter_map: float | None
    inter_recall: float | None
    verbs: int

    @property
    def pairs_per_image(self) -> float | None:
        """Mean detected pairs an image."""
        return self.pairs / self.images if self.images else None


class _Localised:
    """Under one setting: the triplets on correctly localised pairs, and the true pairs that some triplet localises."""

    def __init__(self, images: int, truth_pairs: int) -> None:
        self.interaction: list[Ints] = []
        self.score: list[Floats] = []
        self.hit: list[Bools] = []
        self.image: list[Ints] = []
        self.position: list[Ints] = []
        self.found = np.zeros(truth_pairs, dtype=bool)
        self.answered = np.zeros(images, dtype=bool)


class PairStatistics:
    """Gathers batches of images in any order; results() when all is in.

    one_to_one: a detected pair finds one true pair at most. as_released: the released code's numbers to the digit, see
    `results`. images, pairs: how many were added; scored: pairs among them whose interactiveness is known. Raises
    `UsageError` for a dataset without a protocol for it, and for `as_released` beyond HICO-DET.
    """

    def __init__(
        self, truth: GroundTruth, settings: Sequence[Sweep], *, one_to_one: bool = False, as_released: bool = False
    ) -> None:
        self._truth = TruthPairs(truth)
        if as_released and self._truth.protocol.person_first:
            raise UsageError(NOT_RELEASED)
        self._settings = list(settings)
        self._one_to_one, self._as_released = one_to_one, as_released
        self._image: list[Ints] = []
        self._position: list[Ints] = []
        self._score: list[Floats] = []
        self._kept: list[list[Bools]] = [[] for _ in settings]
        self._row: list[Ints] = []
        self._mate: list[Ints] = []
        self._overlap: list[Floats] = []
        self._localised = [_Localised(len(truth.scenes.image_ids), len(self._truth.image)) for _ in settings]
        self._seen = np.zeros(len(truth.scenes.image_ids), dtype=bool)
        self.pairs = 0
        self.scored = 0
        self.images = 0

    def add(self, batch: PairBatch) -> None:
        """Match a batch. Raises `DataError` for an image that the ground truth does not have."""
        pairs, position = batch.pairs, self._truth.truth.position
        missing = [image_id for image_id in pairs.image_ids if image_id not in position]
        if missing:
            raise DataError(f"image {missing[0]!r} is not in the ground truth", field="image_id")
        image = np.array([position[image_id] for image_id in pairs.image_ids], dtype=np.int64)
        self._seen[image] = True
        image_of_pair = image[pairs.image_of_hoi]
        person, ignored = self._people(pairs)
        row, mate, overlap = self._truth.join(pairs, image_of_pair, pairs.subject, pairs.object, person)
        self._row.append(row + self.pairs)
        self._mate.append(mate)
        self._overlap.append(overlap)
        self._image.append(image_of_pair)
        self._position.append(np.arange(len(pairs.score)) - pairs.hoi_start[pairs.image_of_hoi])
        self._score.append(pairs.score)
        everything: _Classified | None = None
        for setting, kept, localised in zip(self._settings, self._kept, self._localised, strict=True):
            keep = surviving_pairs(batch, setting)
            kept.append(keep & ~ignored)
            triplets = surviving_triplets(batch, keep, setting)
            if triplets.all():
                everything = everything or self._classify(batch, triplets)
                self._gather(everything, localised)
            else:
                self._gather(self._classify(batch, triplets), localised)
        self.pairs += len(pairs.score)
        self.scored += batch.scored
        self.images += len(image)

    def _people(self, pairs: Scenes) -> tuple[Ints | None, Bools]:
        """([P] the annotated person each pair belongs to, None for a protocol that does not look at the person first;
        [P] whether nobody looked at what that person does)."""
        protocol, truth = self._truth.protocol, self._truth.truth
        if not protocol.person_first or not len(pairs.score):
            return None, np.zeros(len(pairs.score), dtype=bool)
        person, _ = Batch(pairs, truth).best_people(protocol)
        ignored = np.zeros(len(person), dtype=bool)
        ignored[person >= 0] = ~truth.scenes.annotated[person[person >= 0]]
        return person, ignored

    def _classify(self, batch: PairBatch, triplets: Bools) -> _Classified:
        """The triplets on pairs that match a true pair, and the rest that interaction mAP needs of a batch."""
        chosen = np.flatnonzero(triplets)
        scenes = with_triplets(batch.scenes, chosen)
        matched = Batch(scenes, self._truth.truth)
        protocol = self._truth.protocol
        code = matched.match(protocol, Filters()).code
        counted = np.flatnonzero(code <= TRUE_POSITIVE)
        keys, first, inverse = np.unique(
            scenes.subject[counted] * len(scenes.boxes) + scenes.object[counted],
            return_index=True,
            return_inverse=True,
        )
        subject, object_ = keys // max(len(scenes.boxes), 1), keys % max(len(scenes.boxes), 1)
        image = matched.image[scenes.image_of_box[subject]]
        person = matched.best_people(protocol)[0][counted[first]] if protocol.person_first else None
        row, mate, _ = self._truth.join(scenes, image, subject, object_, person)
        correct = np.zeros(len(keys), dtype=bool)
        correct[row] = True
        # All others on a correct pair are duplicates or have the wrong verb.
        rows = counted[correct[inverse]]
        return _Classified(
            interaction=scenes.interaction[rows],
            score=batch.verb_score[chosen[rows]],
            hit=code[rows] == TRUE_POSITIVE,
            image=matched.image_of_hoi[rows],
            position=chosen[rows] - batch.scenes.hoi_start[scenes.image_of_hoi[rows]],
            found=mate,
            answered=image,
        )

    @staticmethod
    def _gather(part: _Classified, into: _Localised) -> None:
        into.interaction.append(part.interaction)
        into.score.append(part.score)
        into.hit.append(part.hit)
        into.image.append(part.image)
        into.position.append(part.position)
        into.found[part.found] = True
        into.answered[part.answered] = True

    def results(self) -> Iterator[tuple[Sweep, list[PairResults]]]:
        """Each setting's results for full and for the vocabulary's groups.

        Pair recall and precision as pair_localization.py has them: a detected pair finds every true pair it matches; a
        true pair is found by the first detected pair, in the record's order, that matches it; the pairs that found
        some make the precision. one_to_one (section 4.1, "only one of them is counted towards recall"): by descending
        interactiveness each detected pair takes, of the true pairs it matches and nobody has, the one with the largest
        smaller IoU; what it would also match stays in the denominator.

        as_released: images without a line count nowhere; negative AP is a sum over 110 recall values, of which 101
        can be reached; verbs with localised predictions but no true positive leave the interaction mAP, and the
        triplets of images without predictions stay in its ground truth.
        """
        image, position, score = (_joined(parts) for parts in (self._image, self._position, self._score))
        row, mate, overlap = (_joined(parts) for parts in (self._row, self._mate, self._overlap))
        for setting, kept, localised in zip(self._settings, self._kept, self._localised, strict=True):
            keep = _joined(kept).astype(bool)
            of_kept = keep[row]
            rows, mates, overlaps = row[of_kept], mate[of_kept], overlap[of_kept]
            neg_ap, negatives = self._negative_ap(keep, rows, image, position, score)
            results = []
            for subset, members in self._truth.members.items():
                images = self._truth.images(subset)
                if self._as_released:
                    images &= self._seen
                counted = members & images[self._truth.image]
                detected = int((keep & images[image]).sum())
                matches = counted[mates]
                found, finders = self._located(rows[matches], mates[matches], overlaps[matches], image, position, score)
                inter_map, inter_recall, verbs = self._interaction_map(localised, subset)
                wanted = int(counted.sum())
                results.append(
                    PairResults(
                        subset=subset,
                        images=int(images.sum()),
                        pairs=detected,
                        truth_pairs=wanted,
                        recall=found / wanted if wanted else None,
                        precision=finders / detected if detected else None,
                        neg_ap=neg_ap if subset == "full" else None,
                        negatives=negatives if subset == "full" else 0,
                        inter_map=inter_map,
                        inter_recall=inter_recall,
                        verbs=verbs,
                    )
                )
            yield setting, results

    def _located(
        self, row: Ints, mate: Ints, overlap: Floats, image: Ints, position: Ints, score: Floats
    ) -> tuple[int, int]:
        """(true pairs found, detected pairs that found one) of matches: detected row, true mate, smaller IoU."""
        if not self._one_to_one:
            order = np.lexsort((row, mate))
            first = np.r_[True, np.diff(mate[order]) != 0] if len(order) else np.zeros(0, dtype=bool)
            return int(first.sum()), len(np.unique(row[order][first]))
        order = np.lexsort((mate, -overlap, position[row], self._truth.rank[image[row]], -score[row]))
        busy, taken = set[int](), set[int]()
        for detected, true in zip(row[order].tolist(), mate[order].tolist(), strict=True):
            if detected not in busy and true not in taken:
                busy.add(detected)
                taken.add(true)
        return len(taken), len(busy)

    def _negative_ap(
        self, keep: Bools, row: Ints, image: Ints, position: Ints, score: Floats
    ) -> tuple[float | None, int]:
        """(AP of "does not interact", pairs that do not); least interactive first, ties by image id and position."""
        interacts = np.zeros(len(keep), dtype=bool)
        interacts[row] = True
        rows = np.flatnonzero(keep & self._truth.images("full")[image])
        negatives = len(rows) - int(interacts[rows].sum())
        if negatives == 0 or self.scored == 0:
            return None, negatives
        order = rows[np.lexsort((position[rows], self._truth.rank[image[rows]], score[rows]))]
        rank = np.flatnonzero(~interacts[order]) + 1
        grid = tuple((np.arange(RELEASED_STEPS if self._as_released else STEPS) * 0.01).tolist())
        bounds, positives = np.array([0, negatives]), np.array([negatives])
        return float(interpolated_ap(rank, bounds, positives, grid)[0]), negatives

    def _interaction_map(self, localised: _Localised, subset: str) -> tuple[float | None, float | None, int]:
        """(mAP over verbs by verb score, mean maximal recall, verbs) on correctly localised pairs."""
        vocabulary, truth = self._truth.truth.vocabulary, self._truth
        # What is told apart on a pair: its verb, or, where an action has roles, the action-role.
        verb_of = np.array([vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions], dtype=np.int64)
        if vocabulary.roles:
            verb_of = np.arange(len(verb_of))
        wanted = localised.found[truth.pair]
        if self._as_released:
            wanted = wanted | ~localised.answered[truth.image[truth.pair]]
        annotated = truth.truth.scenes.interaction[truth.triplet]
        verbs = verb_of[annotated[wanted & truth.classes[subset][annotated]]]
        positives = np.bincount(verbs, minlength=int(verb_of.max()) + 1)

        interaction = _joined(localised.interaction)
        chosen = np.flatnonzero(truth.classes[subset][interaction])
        verb, score = verb_of[interaction[chosen]], _joined(localised.score)[chosen]
        position, image = _joined(localised.position)[chosen], _joined(localised.image)[chosen]
        order = np.lexsort((position, truth.rank[image], -score, verb))
        hit = _joined(localised.hit).astype(bool)[chosen][order]
        bounds = np.searchsorted(verb[order], np.arange(len(positives) + 1))
        hits = np.flatnonzero(hit)
        hit_bounds = np.searchsorted(hits, bounds)
        rank = hits + 1 - np.repeat(bounds[:-1], np.diff(hit_bounds))
        # A true positive's triplet is on a localised pair, so a verb without ground truth has none.
        grid = truth.protocol.grid
        ap = interpolated_ap(rank, hit_bounds, positives, grid) if grid else enveloped_ap(rank, hit_bounds, positives)
        in_mean = positives > 0
        if self._as_released:
            in_mean &= (np.diff(hit_bounds) > 0) | (np.diff(bounds) == 0)
        if not (in_mean.any() and localised.answered.any()):
            return None, None, 0
        recall = max_recall(hit_bounds, positives)
        return float(ap[in_mean].mean()), float(recall[in_mean].mean()), int(in_mean.sum())


@dataclass(frozen=True)
class _Classified:
    """R triplets on localised pairs (hit: true positives), the true pairs found, and the images with predictions."""

    interaction: Ints
    score: Floats
    hit: Bools
    image: Ints
    position: Ints
    found: Ints
    answered: Ints


def _joined(parts: Sequence[Any]) -> Any:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
