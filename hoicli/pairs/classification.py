"""What becomes of the triplets on the pairs that a setting leaves: outcomes, for mAP, and verbs told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hoicli.arrays.kit import Bools, Floats, Growing, Ints
from hoicli.evaluation.average_precision import enveloped_ap, interpolated_ap, max_recall
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.matching import Batch
from hoicli.pairs.reading import PairBatch, distinct_pairs
from hoicli.pairs.truth import TruthPairs
from hoicli.records.outcomes import OUTCOME_CODES, TRUE_POSITIVE

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Classified:
    """A batch of T triplets under one setting. code [T] OUTCOMES, "suppressed" for what the setting took away.

    Of the R triplets on correctly localised pairs: interaction, verb_score, score, hit (true positives), image (of the
    ground truth), position in the record. found: the true pairs that some triplet localises; answered: the images with
    triplets that count.
    """

    code: NDArray[np.uint8]
    interaction: Ints
    verb_score: Floats
    score: Floats
    hit: Bools
    image: Ints
    position: Ints
    found: Ints
    answered: Ints


def classified(batch: PairBatch, left: Bools, truth: TruthPairs) -> Classified:
    """What becomes of a batch's triplets when only those of `left` [T] go on."""
    chosen = np.flatnonzero(left)
    scenes = batch.scenes.only(chosen)
    matched = Batch(scenes, truth.truth)
    protocol = truth.protocol
    code = matched.match(protocol, Filters()).code
    every = np.full(len(left), OUTCOME_CODES["suppressed"], dtype=np.uint8)
    every[chosen] = code
    counted = np.flatnonzero((code <= TRUE_POSITIVE) & batch.paired[chosen])
    _, first, pair = distinct_pairs(scenes, counted)
    image = matched.image_of_hoi[first]
    person = matched.best_people(protocol)[0][first] if protocol.person_first else None
    row, mate, _ = truth.join(scenes, image, scenes.subject[first], scenes.object[first], person)
    correct = np.zeros(len(first), dtype=bool)
    correct[row] = True
    # All others on a correct pair are duplicates or have the wrong verb.
    rows = counted[correct[pair]]
    return Classified(
        code=every,
        interaction=scenes.interaction[rows],
        verb_score=batch.verb_score[chosen[rows]],
        score=scenes.score[rows],
        hit=code[rows] == TRUE_POSITIVE,
        image=matched.image_of_hoi[rows],
        position=chosen[rows] - batch.scenes.hoi_start[scenes.image_of_hoi[rows]],
        found=mate,
        answered=image,
    )


class Interactions:
    """Under one setting: the triplets on correctly localised pairs, gathered batch by batch in any order."""

    def __init__(self, truth: TruthPairs) -> None:
        self._truth = truth
        self._rows = Growing(
            **dict.fromkeys(("interaction", "image", "position"), np.int64),
            **dict.fromkeys(("verb_score", "score"), np.float64),
            hit=np.bool_,
        )
        self._found = np.zeros(len(truth.image), dtype=bool)
        self._answered = np.zeros(len(truth.truth.scenes.image_ids), dtype=bool)

    def add(self, part: Classified) -> None:
        """A batch of images."""
        self._rows.add(**vars(part))
        self._found[part.found] = True
        self._answered[part.answered] = True

    def mean_ap(self, subset: str, *, as_released: bool) -> tuple[float | None, float | None, int]:
        """(mAP over verbs by verb score, mean maximal recall, verbs) of a subset's interactions.

        Of equal verb scores within an image the higher triplet score goes first, then the record's order, as in
        action_map_hicodet.py, which ranks an image's predictions by triplet score before all by verb score; between
        images the id decides, in place of the released file's order.
        """
        truth = self._truth
        vocabulary = truth.truth.vocabulary
        # What is told apart on a pair: its verb, or, where an action has roles, the action-role.
        verb_of = np.array([vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions], dtype=np.int64)
        if vocabulary.roles:
            verb_of = np.arange(len(verb_of))
        wanted = self._found[truth.pair]
        if as_released:
            wanted = wanted | ~self._answered[truth.image[truth.pair]]
        annotated = truth.truth.scenes.interaction[truth.triplet]
        verbs = verb_of[annotated[wanted & truth.classes[subset][annotated]]]
        positives = np.bincount(verbs, minlength=int(verb_of.max()) + 1)

        rows = self._rows
        interaction = rows["interaction"]
        verb = verb_of[interaction]
        order = np.lexsort((rows["position"], -rows["score"], truth.rank[rows["image"]], -rows["verb_score"], verb))
        order = order[truth.classes[subset][interaction[order]]]
        bounds = np.searchsorted(verb[order], np.arange(len(positives) + 1))
        hits = np.flatnonzero(rows["hit"][order])
        hit_bounds = np.searchsorted(hits, bounds)
        rank = hits + 1 - np.repeat(bounds[:-1], np.diff(hit_bounds))
        # A true positive's triplet is on a localised pair, so a verb without ground truth has none.
        grid = truth.protocol.grid
        ap = interpolated_ap(rank, hit_bounds, positives, grid) if grid else enveloped_ap(rank, hit_bounds, positives)
        in_mean = positives > 0
        if as_released:
            in_mean &= (np.diff(hit_bounds) > 0) | (np.diff(bounds) == 0)
        if not (in_mean.any() and self._answered.any()):
            return None, None, 0
        recall = max_recall(hit_bounds, positives)
        return float(ap[in_mean].mean()), float(recall[in_mean].mean()), int(in_mean.sum())
