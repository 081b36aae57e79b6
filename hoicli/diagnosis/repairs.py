"""What fixing each type of error would give: mAP with an oracle, or several in order, minus mAP without.

An oracle for interaction, association, object box or human box errors turns each repair of its type
(`hoicli.diagnosis.error_types`) into a true positive of the ground truth's class with its own score, drops the true
positive it replaces (a lower score), and drops all other predictions of the type. The oracles for duplicates and both
boxes drop them; missed ground truth leaves the count; false_positive drops everything but true positives;
false_negative counts only the ground truth that is found. (Diag-HOI sections 3.2 and 3.3.) Errors overlap, so the
deltas do not add up to 100 - mAP (section 3.4, TIDE); applied one after another (Eq. 4 and 5) they do.

With the repairs of the released code (`errors.Reading`) its means are used, too (neu-vi/Diag-HOI
map_improvement_hicodet.py): a class whose predictions are all wrong is left out (here it counts 0), and from the rare
and non-rare means also a class without predictions; ground truth of images without predictions is never missed. One
difference remains: that code looks up entries by equality, so if a true positive is listed twice, the second copy turns
the first into a duplicate (and a mean without other classes into nan); here the first stays a true positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.error_types import (
    BOTH_BOXES,
    DUPLICATE,
    ERRORS,
    HIT,
    MISSED,
    NOT_COUNTED,
    REPAIRED,
    ErrorTypes,
    Reading,
)
from hoicli.diagnosis.located import Located
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import FALSE_POSITIVE, TRUE_POSITIVE
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import Listed, order_by_score, per_class
from hoicli.evaluation.tally import Mean, places, subset_means
from hoicli.records.fingerprint import hash_ids, hash_order, row_hashes, total_of
from hoicli.records.kit import Bools, Floats, Growing, Ints, starts_of
from hoicli.records.metrics import explain_metrics
from hoicli.records.oracles import IN_TURN, ORACLES
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from hoicli.resampling.ranked import RankedLists

DROPPED = {"duplicate": DUPLICATE, "both_boxes": BOTH_BOXES}
ASKING = ("none", MISSED, "false_negative")
"""The oracles that change the ground truth alone, not the ranked lists; and "none", no oracle at all."""
EXPLANATION = f"""
What a prediction is corrected to. A fix changes what its type names: an interaction error becomes a ground truth of its
own pair, both of whose boxes it has; an object box error one with its human box; a human box error one with its object
box; an association error one with one of its boxes. Each ground truth of an image, class by class, takes the
best-scored prediction above its own true positive that can be corrected to it and is not taken yet. But an association
error waits while it could still become a later ground truth with its own verb; errors that waited without success go,
at the end, to ground truth that has taken nothing. Ground truth with neither a true positive nor a correction is
missed. A duplicate is dropped, never corrected. The paper fixes each ground-truth pair once; here each triplet of a
pair is.
--independent: each oracle on its own, so each may correct another prediction to the same ground truth.
--progressive ORDER: each oracle after the ones before it (Diag-HOI Eq. 4 and 5); all together give mAP 100. ORDER
is a comma-separated list of names, or all: {",".join(IN_TURN)}.
--as-released: what the released code does. Any false positive, duplicates included, is corrected to ground truth with
its human box or, if that box is wrong, with its object box, even to a pair that was never predicted. Classes whose
predictions are all wrong leave the mean. Its oracles together need not give 100. It has no false_positive and
false_negative for HICO-DET.
In V-COCO a statement has the human box of the person it belongs to, and its verb is its action in its role.
What is right, and mAP, are as the protocol has them: diag is the released code, which made the paper's tables;
diag-paper is the paper's text (section 2.3). They differ twice:
- IoU: an overlap of exactly 0.5 is right by diag, wrong by diag-paper, which wants more than 0.5.
- AP: diag reads the precision-recall curve at 11 recalls, diag-paper takes the area under it.
For example, a class has two ground truths, and its one prediction overlaps one of them: with IoU 0.6, AP is 6/11 =
54.55 by diag (6 of the recalls are reached) and 50.00 by diag-paper; with IoU 0.5, 54.55 and 0.00.
For V-COCO, vcoco-s1 takes the area, and 0.5 is right.
--with-no-interaction: the no_interaction classes count, too, on both sides; otherwise they are dropped first.
A class without ground truth left by missed_gt or false_negative leaves the mean: n is how many classes a mean is over.
So these deltas are between means over different classes.
Errors overlap: the deltas do not add up to what is missing to 100."""


def explanation() -> str:
    """Return what each oracle fixes, one line for each, how it does so and how to read the deltas, and what the metrics
    of the rows are."""
    width = max(map(len, ORACLES))
    lines = [f"{oracle.name:<{width}}  {oracle.repairs}" for oracle in ORACLES.values()]
    return "\n".join([*lines, EXPLANATION, "", "The metrics of the rows:", explain_metrics("diagnose").rstrip()])


COLUMNS: Mapping[str, type[np.generic]] = {
    "error": np.uint8,
    **dict.fromkeys(("repair", "repaired_class", "replaced", "truth_image", "truth_class"), np.int64),
    **dict.fromkeys(("unlisted", "missed"), np.bool_),
}
"""The columns that hold the errors of a model, and their types. error [T]: the type of each prediction; unlisted [T]:
whether mAP leaves it out. repair [R]: the predictions that are corrected, repaired_class [R]: their new class, replaced
[R]: the true positive that is dropped for it, else -1. truth_image, truth_class [P]: of the ground truth; missed [P]:
whether no prediction finds it, or could find it after a fix."""


@dataclass(frozen=True)
class Applied:
    """What is left after some oracles. code [M]: the outcome of each prediction that `Corrections` ranks, NOT_COUNTED
    if it is dropped; truth_class, truth_image [P]: the ground truth that still counts. Oracles of `ASKING` share one
    code array."""

    code: NDArray[np.uint8]
    truth_class: Ints
    truth_image: Ints


_CORRECTED = len(ERRORS)
"""Added to the error of a prediction, it is the state of the same prediction in its corrected class."""


class Corrections:
    """All predictions that mAP counts and, besides them, each corrected one once more, in its new class with its own
    score. They are ranked once; each oracle chooses among them. row [M]: the ranked predictions as rows of `listed`;
    class c has row[bounds[c]:bounds[c + 1]]. Equal scores rank by the images' ids, then by the classes that were
    predicted unless `as_listed`, so only the order within a class matters. image [M]: the image of each. columns: the
    errors of the predictions, as COLUMNS has them."""

    def __init__(self, listed: Listed, columns: Growing, classes: int, *, as_listed: bool) -> None:
        self._listed, self._columns = listed, columns
        error, repair = columns["error"], columns["repair"]
        row = np.concatenate([np.arange(len(listed)), repair])
        counted = np.where(columns["unlisted"], -1, listed.interaction)
        place = None if as_listed else listed.interaction
        ranked = listed.rank_by_class(np.concatenate([counted, columns["repaired_class"]]), classes, row, place)
        self.row, self.bounds = row[ranked.order], ranked.bounds
        self.image: Ints = listed.image[self.row]
        self._state = np.concatenate([error, error[repair] + _CORRECTED])[ranked.order]
        hits = np.flatnonzero(self._state == HIT)
        ranked_place = np.empty(len(listed), dtype=np.int64)
        ranked_place[self.row[hits]] = hits
        replacing = columns["replaced"] >= 0
        self._replaced: Ints = ranked_place[columns["replaced"][replacing]]
        self._replacing = error[repair[replacing]] + _CORRECTED

    @cached_property
    def place(self) -> Ints:
        """The place [M] of each prediction among those of all classes, by descending score."""
        place = np.empty_like(self.row)
        place[np.argsort(-self._listed.score[self.row], kind="stable")] = np.arange(len(place))
        return place

    def after(self, oracles: Sequence[str]) -> Applied:
        """Return what is left after the oracles together; false_positive and false_negative are applied alone."""
        columns, outcome = self._columns, _OUTCOMES.copy()
        counted_truth = np.ones(len(columns["missed"]), dtype=bool)
        for oracle in oracles:
            if oracle in DROPPED:
                outcome[DROPPED[oracle]] = NOT_COUNTED
            elif oracle in REPAIRED:
                outcome[REPAIRED[oracle]] = NOT_COUNTED
                outcome[REPAIRED[oracle] + _CORRECTED] = TRUE_POSITIVE
            elif oracle == "false_positive":
                outcome[HIT + 1 :] = NOT_COUNTED
            elif oracle == MISSED:
                counted_truth = ~columns["missed"]
            elif oracle not in ASKING:
                raise ValueError(f"no code applies the oracle {oracle}")
        code = self._plain if set(oracles) <= set(ASKING) else self._code(outcome)
        if "false_negative" in oracles:  # the true positives give the found ground truth
            hits = columns["error"] == HIT
            return Applied(code, self._listed.interaction[hits], self._listed.image[hits])
        return Applied(code, columns["truth_class"][counted_truth], columns["truth_image"][counted_truth])

    @cached_property
    def _plain(self) -> NDArray[np.uint8]:
        return self._code(_OUTCOMES)

    def _code(self, outcome: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the outcomes [M], given the outcome of each state. What a correction replaces is dropped with it."""
        code: NDArray[np.uint8] = outcome[self._state]
        code[self._replaced[outcome[self._replacing] == TRUE_POSITIVE]] = NOT_COUNTED
        return code


_OUTCOMES = np.full(2 * _CORRECTED, NOT_COUNTED, dtype=np.uint8)
_OUTCOMES[HIT], _OUTCOMES[HIT + 1 : _CORRECTED] = TRUE_POSITIVE, FALSE_POSITIVE
"""The outcome of each state without an oracle: of each error, then of each error where it is corrected."""


@dataclass(frozen=True)
class OracleResult:
    """The results under one oracle ("none": without one). ap, max_recall [C] in [0, 1]; in_full, in_groups [C]: which
    classes are in the mean over all classes, and which in the means over other subsets."""

    oracle: str
    ap: Floats
    max_recall: Floats
    in_full: Bools
    in_groups: Bools

    def means(self, subsets: Mapping[str, Ints]) -> list[Mean]:
        """Return the mean of each subset (see `subset_classes`)."""
        averaged = {
            subset: members[(self.in_full if subset == "full" else self.in_groups)[members]]
            for subset, members in subsets.items()
        }
        return subset_means(self.ap, self.max_recall, averaged)


class Diagnosis:
    """The error types of one model, gathered batch by batch in any order. listed: the predictions of a tally, to which
    each batch is added before it is added here; reading: how repairs were assigned."""

    def __init__(self, protocol: Protocol, classes: int, listed: Listed, reading: Reading = "shared") -> None:
        self.reading, self.protocol = reading, protocol
        self._classes, self._listed = classes, listed
        self._unseen: list[str] = []
        self._columns = Growing(**COLUMNS)
        self._made: Corrections | None = None
        self._results: list[OracleResult] = []

    def add(self, located: Located, types: ErrorTypes) -> None:
        """Add a batch of images."""
        missed = types.missed
        if self.reading == "released":  # it ignores images without predictions
            missed &= (
                np.bincount(located.image[located.counted], minlength=len(located.image_ids))[located.truth_image] > 0
            )
        repairing = np.flatnonzero(types.repairs >= 0)
        repaired = types.repairs[repairing]
        columns = {
            "error": types.error,
            "unlisted": ~located.counted,
            "repair": repairing,
            "repaired_class": located.truth_interaction[repaired],
            "replaced": types.found[repaired],
            "truth_image": located.truth_image,
            "truth_class": located.truth_interaction,
            "missed": missed,
        }
        self._add(columns, len(located.image_ids), len(located.score))

    def _add(self, columns: Mapping[str, NDArray[Any]], images: int, predictions: int) -> None:
        """Add columns about the `images` and `predictions` that were listed last."""
        images, predictions = len(self._listed.image_ids) - images, len(self._listed) - predictions
        base_of = {"truth_image": images, "repair": predictions, "replaced": predictions}
        shifted = {name: columns[name] + base * (columns[name] >= 0) for name, base in base_of.items()}
        self._columns.add(**{**columns, **shifted})
        self._made, self._results = None, []

    def add_unseen(self, truth: GroundTruth) -> None:
        """Add the ground truth of images that were in no batch; call it after all batches."""
        image_ids, image, rows = truth.unseen(self.protocol, self._listed.image_ids)
        none = np.zeros(0, dtype=np.int64)
        columns: dict[str, NDArray[Any]] = {
            **dict.fromkeys(COLUMNS, none),
            "truth_image": image,
            "truth_class": truth.scenes.interaction[rows],
            "missed": np.full(len(rows), self.reading != "released"),
        }
        self._add(columns, 0, 0)
        self._unseen += image_ids

    def merge(self, other: Diagnosis) -> None:
        """Add another diagnosis of the same model, gathered from other images; its tally has been merged already."""
        columns = {name: other._columns[name] for name in COLUMNS}
        self._add(columns, len(other._listed.image_ids), len(other._listed))

    @property
    def positives(self) -> Ints:
        """The number of ground truths [C] of each class."""
        return np.bincount(self._columns["truth_class"], minlength=self._classes)

    def order_of_classes(self) -> int:
        """Return a number that two files share when every image lists the classes of its ground truth in the same
        order: the sum of a hash of each image."""
        image, of_images = self._columns["truth_image"], hash_ids([*self._listed.image_ids, *self._unseen])
        return total_of(hash_order(image, np.zeros_like(image), row_hashes(self._columns["truth_class"]), of_images))

    def images_of_truth(self, members: Ints) -> int:
        """Return how many images have ground truth of one of the classes."""
        return len(np.unique(self._columns["truth_image"][np.isin(self._columns["truth_class"], members)]))

    def counts(self) -> dict[str, Ints]:
        """Return for each error type how many predictions [C] of each class have it, for `missed_gt` how many ground
        truths."""
        columns, cells = self._columns, len(ERRORS) * self._classes
        cell = columns["error"].astype(np.int64) * self._classes + self._listed.interaction
        of_errors = np.bincount(cell, minlength=cells)[:cells].reshape(len(ERRORS), -1)  # cut off: NOT_COUNTED
        missed = np.bincount(columns["truth_class"][columns["missed"]], minlength=self._classes)
        return {**dict(zip(ERRORS, of_errors, strict=True)), MISSED: missed}

    def composition(self) -> dict[str, Any]:
        """Return which errors stand where in the list ranked by score over all classes: `edges`, the boundaries of bins
        in it, and `counts`, for each error type the number of its predictions in each bin. The list is followed to
        three times the ground truth: behind that hardly any true positive comes, and the errors change no AP. The 25
        bins or fewer are equally long, a round number; the last may end behind the list."""
        error, score = self._columns["error"], self._listed.score
        counted = np.flatnonzero(error != NOT_COUNTED)
        error, score = error[counted], score[counted]
        ranked = error[order_by_score(score, lambda rows: [error[rows]])]
        longest = 3 * len(self._columns["truth_class"]) or len(ranked)
        followed = min(len(ranked), longest)
        steps = (step * 10**power for power, step in product(range(19), (1, 2, 5)))
        step = next(step for step in steps if step * 25 >= followed)
        bins = -(-followed // step) if len(ranked) <= longest else followed // step
        edges = [place * step for place in range(max(bins, 1) + 1)]
        cuts = [ranked[start:longest] for start, longest in pairwise(edges)]
        counts = {name: [int((cut == code).sum()) for cut in cuts] for code, name in enumerate(ERRORS)}
        return {"edges": edges, "counts": counts}

    def results(self, vocabulary: Vocabulary) -> Iterator[OracleResult]:
        """Return the results without an oracle ("none"), then under each of ORACLES. They are kept, since every part of
        a slice of classes asks for them again. The released code has only the oracles of one error type. vocabulary:
        the one that the classes are of, the same in every call."""
        if not self._results:
            oracles = ["none", *(name for name in ORACLES if self.reading != "released" or name in IN_TURN)]
            self._results = [self._result(oracle, self._corrections.after([oracle]), vocabulary) for oracle in oracles]
        return iter(self._results)

    def progressive(self, vocabulary: Vocabulary, order: Sequence[str]) -> Iterator[OracleResult]:
        """Yield the results under the first oracle of `order`, under the first two, and so on, each named after its
        last."""
        for step, oracle in enumerate(order, start=1):
            yield self._result(oracle, self._corrections.after(order[:step]), vocabulary)

    @property
    def _corrections(self) -> Corrections:
        """Everything that was added, ranked for the oracles."""
        if self._made is None:
            self._made = Corrections(self._listed, self._columns, self._classes, as_listed=self.reading == "released")
        return self._made

    def make_list_ranker(self, image_ids: Sequence[str]) -> Callable[[Sequence[str]], Iterator[RankedLists]]:
        """Return a function that yields the ranked lists after each of some oracles, each applied alone. Images are
        numbered by their places in `image_ids`, which has all images of predictions and of ground truth. Neighbouring
        oracles that leave the same lists (`ASKING`) share their arrays."""
        from hoicli.resampling.ranked import RankedLists  # without intervals nobody needs it

        corrections, of_image = self._corrections, self._places_in(image_ids)
        image, place = of_image[corrections.image], corrections.place

        def after(oracles: Sequence[str]) -> Iterator[RankedLists]:
            code, lists = None, None
            for oracle in oracles:
                remaining = corrections.after([oracle])
                truth_image = of_image[remaining.truth_image]
                if lists is None or code is not remaining.code:
                    code = remaining.code
                    counted = code <= TRUE_POSITIVE
                    lists = RankedLists(
                        hit=code[counted] == TRUE_POSITIVE,
                        image=image[counted],
                        bounds=starts_of(counted)[corrections.bounds],
                        truth_image=truth_image,
                        truth_class=remaining.truth_class,
                        images=len(image_ids),
                        grid=self.protocol.grid,
                        cap=self.protocol.predictions_per_class,
                        place=starts_of(np.bincount(place[counted], minlength=len(place)))[place[counted]],
                    )
                yield replace(lists, truth_image=truth_image, truth_class=remaining.truth_class)

        return after

    def group_errors(self, image_ids: Sequence[str]) -> dict[str, tuple[Ints, Ints]]:
        """Return for each error type (image, class) of each of its predictions, for `missed_gt` of each missed ground
        truth; images are places in `image_ids`."""
        columns, of_image = self._columns, self._places_in(image_ids)
        image, interaction = self._listed.image, self._listed.interaction
        errors_by_type = {}
        for code, name in enumerate(ERRORS):
            rows = np.flatnonzero(columns["error"] == code)
            errors_by_type[name] = of_image[image[rows]], interaction[rows].astype(np.int64)
        missed = columns["missed"]
        return {**errors_by_type, MISSED: (of_image[columns["truth_image"][missed]], columns["truth_class"][missed])}

    def _places_in(self, image_ids: Sequence[str]) -> Ints:
        """Return the place in `image_ids` of each image that was added."""
        place = {name: row for row, name in enumerate(image_ids)}
        return places([*self._listed.image_ids, *self._unseen], place)

    def _result(self, oracle: str, remaining: Applied, vocabulary: Vocabulary) -> OracleResult:
        bounds = self._corrections.bounds
        positives = np.bincount(remaining.truth_class, minlength=self._classes)
        ap, recall = per_class(remaining.code, bounds, positives, self.protocol)
        in_mean = positives > 0
        if self.protocol.drop_no_interaction:
            in_mean[sorted(vocabulary.no_interaction_ids)] = False
        if self.reading != "released":
            return OracleResult(oracle, ap, recall, in_mean, in_mean)
        has_hits = ap > 0
        has_no_predictions = np.diff(starts_of(remaining.code <= TRUE_POSITIVE)[bounds]) == 0
        return OracleResult(oracle, ap, recall, in_mean & (has_hits | has_no_predictions), in_mean & has_hits)
