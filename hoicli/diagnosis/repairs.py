"""What fixing each type of error would give: mAP with an oracle, or several in order, minus mAP without.

An oracle for interaction, association, object box or human box errors turns each repair of its type
(`hoicli.diagnosis.repair_assignment`) into a true positive of the ground truth's class with its own score, drops the
true positive it replaces (a lower score), and drops all other predictions of the type. The oracles for duplicates and
both boxes drop them; missed ground truth leaves the count; false_positive drops everything but true positives;
false_negative counts only the ground truth that is found. (Diag-HOI sections 3.2 and 3.3.) Errors overlap, so the
deltas do not add up to 100 - mAP (section 3.4, TIDE); applied one after another (Eq. 4 and 5) they do.

With the repairs of the released code (`repair_assignment.Reading`) its means are used, too (neu-vi/Diag-HOI
map_improvement_hicodet.py): a class whose predictions are all wrong is left out (here it counts 0), and from the rare
and non-rare means also a class without predictions; ground truth of images without predictions is never missed. One
difference remains: that code looks up entries by equality, so if a true positive is listed twice, the second copy turns
the first into a duplicate (and a mean without other classes into nan); here the first stays a true positive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.error_types import BOTH_BOXES, DUPLICATE, ERRORS, HIT, MISSED, NOT_COUNTED, REPAIRED
from hoicli.diagnosis.located import Located
from hoicli.diagnosis.repair_assignment import ErrorTypes, Reading
from hoicli.errors import DeclarationError
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import FALSE_POSITIVE, TRUE_POSITIVE
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.ranking import Listed, order_by_score, per_class
from hoicli.evaluation.tally import Mean, look_up_images, subset_means
from hoicli.records.fingerprint import hash_ids, hash_order, row_hashes, total_of
from hoicli.records.kit import Bools, Floats, Growing, Ints, starts_of
from hoicli.records.oracles import IN_TURN, ORACLES
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from hoicli.resampling.ranked import RankedLists

DROPPED = {"duplicate": DUPLICATE, "both_boxes": BOTH_BOXES}
"""The oracles that only drop predictions, with the error type that each drops."""
TRUTH_ORACLES = ("none", MISSED, "false_negative")
"""The oracles that change the ground truth alone, not the ranked lists; and "none", no oracle at all."""
COLUMNS: Mapping[str, type[np.generic]] = {
    "error": np.uint8,
    **dict.fromkeys(("repair", "repaired_class", "replaced", "truth_image", "truth_class"), np.int64),
    **dict.fromkeys(("unlisted", "missed"), np.bool_),
}
"""The columns that hold the errors of a model, and their types. error [T]: the type of each prediction; unlisted [T]:
whether mAP leaves it out. repair [R]: the predictions that are corrected; repaired_class [R]: their new class; replaced
[R]: the true positive that is dropped for it, else -1. truth_image, truth_class [P]: of each ground truth; missed [P]:
whether no prediction finds it, or could find it after a fix."""


@dataclass(frozen=True)
class Applied:
    """What is left after some oracles. code [M]: the outcome of each prediction that `Corrections` ranks (true positive
    or false positive), NOT_COUNTED if it is dropped; truth_class, truth_image [P]: the class and the image of each
    ground truth that still counts. All oracles of TRUTH_ORACLES share one code array."""

    code: NDArray[np.uint8]
    truth_class: Ints
    truth_image: Ints


_CORRECTED = len(ERRORS)
"""A ranked prediction has a state: its error type, plus this number if it stands in the class it is corrected to."""


class Corrections:
    """A ranking of all predictions that mAP counts, in which each prediction with a repair stands twice: in its own
    class and in the class that it is corrected to. It is ranked once; each oracle chooses which of both to count.

    row [M]: the ranked predictions as rows of `listed`; class c has row[bounds[c]:bounds[c + 1]]. image [M]: their
    images."""

    def __init__(self, listed: Listed, columns: Growing, classes: int, *, as_listed: bool) -> None:
        """Rank the predictions. columns: their errors, the COLUMNS. Equal scores rank by image id and then by predicted
        class; with `as_listed`, within an image as they stand in the record."""
        self._listed, self._columns = listed, columns
        error, repair = columns["error"], columns["repair"]
        # all predictions, then the corrected ones once more; the other columns of what is ranked are in the same order
        row = np.concatenate([np.arange(len(listed)), repair])
        counted = np.where(columns["unlisted"], -1, listed.interaction)  # class -1 is not ranked
        place = None if as_listed else listed.interaction
        ranked = listed.rank_by_class(np.concatenate([counted, columns["repaired_class"]]), classes, row, place)
        self.row, self.bounds = row[ranked.order], ranked.bounds
        self.image: Ints = listed.image[self.row]
        # A state is a prediction's error type, plus _CORRECTED where it stands in the class it is corrected to.
        self._state = np.concatenate([error, error[repair] + _CORRECTED])[ranked.order]
        # For the true positives that corrections replace: where they are ranked, and the state of what replaces them.
        hits = np.flatnonzero(self._state == HIT)
        ranked_place = np.empty(len(listed), dtype=np.int64)
        ranked_place[self.row[hits]] = hits
        replacing = columns["replaced"] >= 0
        self._replaced: Ints = ranked_place[columns["replaced"][replacing]]
        self._replacing = error[repair[replacing]] + _CORRECTED

    @cached_property
    def place(self) -> Ints:
        """The place [M] of each prediction, from 0, in one ranking of all classes by descending score."""
        place = np.empty_like(self.row)
        place[np.argsort(-self._listed.score[self.row], kind="stable")] = np.arange(len(place))
        return place

    def after(self, oracles: Sequence[str]) -> Applied:
        """Return what is left if these oracles are applied together: the outcome of each ranked prediction, and the
        ground truth that still counts. false_positive and false_negative are only ever applied alone."""
        columns = self._columns
        counted_truth = np.ones(len(columns["missed"]), dtype=bool)
        outcome = _OUTCOMES.copy()  # of each state; DROPPED, REPAIRED: the error type that an oracle drops or corrects
        for oracle in oracles:
            if oracle in DROPPED:
                outcome[DROPPED[oracle]] = NOT_COUNTED
            elif oracle in REPAIRED:
                outcome[REPAIRED[oracle]] = NOT_COUNTED
                outcome[REPAIRED[oracle] + _CORRECTED] = TRUE_POSITIVE
            elif oracle == "false_positive":
                outcome[:] = NOT_COUNTED
                outcome[HIT] = TRUE_POSITIVE
            elif oracle == MISSED:
                counted_truth = ~columns["missed"]
            elif oracle not in TRUTH_ORACLES:
                where = "Corrections.after of hoicli/diagnosis/repairs.py"
                raise DeclarationError(f"nothing applies the oracle {oracle}; write what it does in {where}")
        # the oracles of TRUTH_ORACLES change no prediction, so they share one array
        code = self._code_without_oracle if set(oracles) <= set(TRUTH_ORACLES) else self._code(outcome)
        if "false_negative" in oracles:  # only ground truth with a true positive counts: one for each of these
            hits = columns["error"] == HIT
            return Applied(code, self._listed.interaction[hits], self._listed.image[hits])
        return Applied(code, columns["truth_class"][counted_truth], columns["truth_image"][counted_truth])

    @cached_property
    def _code_without_oracle(self) -> NDArray[np.uint8]:
        """The outcome [M] of each ranked prediction if no prediction is corrected or dropped."""
        return self._code(_OUTCOMES)

    def _code(self, outcome: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return [M] the outcome of each ranked prediction. outcome [S]: the outcome of each state; where a corrected
        prediction counts, the true positive that it replaces is dropped."""
        code: NDArray[np.uint8] = outcome[self._state]
        code[self._replaced[outcome[self._replacing] == TRUE_POSITIVE]] = NOT_COUNTED
        return code


_OUTCOMES = np.full(2 * _CORRECTED, NOT_COUNTED, dtype=np.uint8)
_OUTCOMES[HIT], _OUTCOMES[HIT + 1 : _CORRECTED] = TRUE_POSITIVE, FALSE_POSITIVE
"""The outcome of each state without an oracle: true positives are right, other predictions in their own class are
wrong, and predictions in their corrected class are not counted."""


@dataclass(frozen=True)
class OracleResult:
    """The average precision of each class under one oracle ("none": without one). ap, max_recall [C]: in [0, 1];
    in_full, in_groups [C]: which classes are in the mean over all classes, and which in the means over other subsets.
    """

    oracle: str
    ap: Floats
    max_recall: Floats
    in_full: Bools
    in_groups: Bools

    def means(self, subsets: Mapping[str, Ints]) -> list[Mean]:
        """Return the mean AP and maximal recall of each subset. subsets: the classes of each, by its name."""
        averaged = {
            subset: members[(self.in_full if subset == "full" else self.in_groups)[members]]
            for subset, members in subsets.items()
        }
        return subset_means(self.ap, self.max_recall, averaged)


class Diagnosis:
    """The error types of one model, gathered batch by batch in any order, and mAP with each oracle."""

    def __init__(self, protocol: Protocol, classes: int, listed: Listed, reading: Reading = "shared") -> None:
        """Start with no image. listed: the predictions of a tally, to which each batch is added first."""
        self.reading, self.protocol = reading, protocol
        self._classes, self._listed = classes, listed
        self._unseen: list[str] = []  # the ids of images without predictions
        self._columns = Growing(**COLUMNS)
        # computed when first asked for
        self._made: Corrections | None = None
        self._results: list[OracleResult] = []

    def add(self, located: Located, types: ErrorTypes) -> None:
        """Add a batch of matched images and the error types of its predictions, as the columns COLUMNS."""
        missed = types.missed
        if self.reading == "released":  # the released code ignores images without predictions
            counted = np.bincount(located.image[located.counted], minlength=len(located.image_ids))
            missed &= counted[located.truth_image] > 0
        repairing = np.flatnonzero(types.repairs >= 0)
        repaired = types.repairs[repairing]
        columns = {
            "error": types.error,
            "unlisted": ~located.counted,
            "repair": repairing,
            "repaired_class": located.truth_interaction[repaired],
            "replaced": types.true_positive[repaired],
            "truth_image": located.truth_image,
            "truth_class": located.truth_interaction,
            "missed": missed,
        }
        self._add(columns, len(located.image_ids), len(located.score))

    def _add(self, columns: Mapping[str, NDArray[Any]], images: int, predictions: int) -> None:
        """Add columns (COLUMNS) about the `images` and `predictions` that `listed` got last. The columns number them
        from 0, and here they are renumbered as in `listed`."""
        first_image, first_prediction = len(self._listed.image_ids) - images, len(self._listed) - predictions
        starts = {"truth_image": first_image, "repair": first_prediction, "replaced": first_prediction}
        renumbered = {name: columns[name] + start * (columns[name] >= 0) for name, start in starts.items()}
        self._columns.add(**{**columns, **renumbered})
        self._made, self._results = None, []  # what was computed lacks the new images

    def add_unseen(self, truth: GroundTruth) -> None:
        """Add the ground truth of images that were in no batch; call it after all batches."""
        image_ids, image, rows = truth.find_unseen(self.protocol, self._listed.image_ids)
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
        """Return a number that two files of ground truth share if all their images list classes in the same order."""
        image, image_hashes = self._columns["truth_image"], hash_ids([*self._listed.image_ids, *self._unseen])
        return total_of(hash_order(image, np.zeros_like(image), row_hashes(self._columns["truth_class"]), image_hashes))

    def images_of_truth(self, classes: Ints) -> int:
        """Return how many images have ground truth of at least one of these classes."""
        return len(np.unique(self._columns["truth_image"][np.isin(self._columns["truth_class"], classes)]))

    def counts(self) -> dict[str, Ints]:
        """Return, by error type, [C] how many predictions (for "missed_gt", ground truths) of each class have it."""
        columns, cells = self._columns, len(ERRORS) * self._classes
        cell = columns["error"].astype(np.int64) * self._classes + self._listed.interaction
        # NOT_COUNTED is above all error types, so the cells of predictions that do not count are cut off.
        error_counts = np.bincount(cell, minlength=cells)[:cells].reshape(len(ERRORS), -1)
        missed = np.bincount(columns["truth_class"][columns["missed"]], minlength=self._classes)
        return {**dict(zip(ERRORS, error_counts, strict=True)), MISSED: missed}

    def composition(self) -> dict[str, Any]:
        """Return which errors stand where in the ranking of all predictions by score: `edges`, the ranks at which bins
        begin and end, and `counts`, for each error type the number of its predictions in each bin.

        There are at most 25 bins of one round length; the last may end behind the ranking. Ranks beyond three times the
        number of ground truths are left out: hardly any true positive is there, so errors there change no AP."""
        error, score = self._columns["error"], self._listed.score
        counted = np.flatnonzero(error != NOT_COUNTED)
        error, score = error[counted], score[counted]
        ranked = error[order_by_score(score, lambda rows: [error[rows]])]
        last_rank = 3 * len(self._columns["truth_class"]) or len(ranked)
        followed = min(len(ranked), last_rank)
        round_lengths = (digit * 10**power for power, digit in product(range(19), (1, 2, 5)))
        length = next(length for length in round_lengths if length * 25 >= followed)
        # Rounded up if the whole ranking is shown, so that it fits; else down, so that every bin is full.
        bins = -(-followed // length) if len(ranked) <= last_rank else followed // length
        edges = [place * length for place in range(max(bins, 1) + 1)]
        errors_by_bin = [ranked[start:end] for start, end in pairwise(edges)]
        counts = {name: [int((errors == code).sum()) for errors in errors_by_bin] for code, name in enumerate(ERRORS)}
        return {"edges": edges, "counts": counts}

    def results(self, vocabulary: Vocabulary) -> Iterator[OracleResult]:
        """Return the results without an oracle ("none"), then under each of ORACLES. They are kept, since every part of
        a slice of classes asks for them again; so `vocabulary`, that of the classes, must be the same in every call."""
        if not self._results:  # the released code has only the oracles of one error type, IN_TURN
            oracles = ["none", *(name for name in ORACLES if self.reading != "released" or name in IN_TURN)]
            self._results = [self._result(oracle, self._corrections.after([oracle]), vocabulary) for oracle in oracles]
        return iter(self._results)

    def progressive(self, vocabulary: Vocabulary, order: Sequence[str]) -> Iterator[OracleResult]:
        """Yield the results under the first oracle of `order`, its first two, and so on, named after the last."""
        for step, oracle in enumerate(order, start=1):
            yield self._result(oracle, self._corrections.after(order[:step]), vocabulary)

    @property
    def _corrections(self) -> Corrections:
        """All predictions that were added, ranked for the oracles when first asked for."""
        if self._made is None:
            self._made = Corrections(self._listed, self._columns, self._classes, as_listed=self.reading == "released")
        return self._made

    def make_list_ranker(self, image_ids: Sequence[str]) -> Callable[[Sequence[str]], Iterator[RankedLists]]:
        """Return a function that takes names of oracles and yields the ranked lists under each one alone.

        image_ids: all images of predictions and of ground truth; the lists number images by their places in it.
        Neighbouring oracles that leave the same predictions (TRUTH_ORACLES) share arrays."""
        from hoicli.resampling.ranked import RankedLists  # slow to import; only intervals need it

        corrections, image_number = self._corrections, self._places_in(image_ids)
        image, place = image_number[corrections.image], corrections.place

        def lists_after(oracles: Sequence[str]) -> Iterator[RankedLists]:
            """Yield the ranked lists that each oracle, applied alone, leaves."""
            code = lists = None
            for oracle in oracles:
                remaining = corrections.after([oracle])
                truth_image = image_number[remaining.truth_image]
                # the same array, not an equal one: oracles that change the ground truth alone share it, and so the
                # lists
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
                        # places among the counted predictions alone: without the gaps that the others leave
                        place=starts_of(np.bincount(place[counted], minlength=len(place)))[place[counted]],
                    )
                yield replace(lists, truth_image=truth_image, truth_class=remaining.truth_class)

        return lists_after

    def group_errors(self, image_ids: Sequence[str]) -> dict[str, tuple[Ints, Ints]]:
        """Return, by error type, the image and the class of each of its predictions, as two columns; for "missed_gt",
        those of each missed ground truth. Images are numbered by their places in `image_ids`."""
        columns, image_number = self._columns, self._places_in(image_ids)
        image, interaction = self._listed.image, self._listed.interaction
        errors_by_type = {}
        for code, name in enumerate(ERRORS):
            rows = np.flatnonzero(columns["error"] == code)
            errors_by_type[name] = image_number[image[rows]], interaction[rows].astype(np.int64)
        missed = columns["missed"]
        missed_truth = image_number[columns["truth_image"][missed]], columns["truth_class"][missed]
        return {**errors_by_type, MISSED: missed_truth}

    def _places_in(self, image_ids: Sequence[str]) -> Ints:
        """Return [N] the place in `image_ids` of each image that was added."""
        place_of_image = {image_id: place for place, image_id in enumerate(image_ids)}
        return look_up_images([*self._listed.image_ids, *self._unseen], place_of_image)

    def _result(self, oracle: str, remaining: Applied, vocabulary: Vocabulary) -> OracleResult:
        """Return the AP of each class, and which classes are averaged, from what is left after an oracle."""
        bounds = self._corrections.bounds
        positives = np.bincount(remaining.truth_class, minlength=self._classes)
        ap, recall = per_class(remaining.code, bounds, positives, self.protocol)
        in_mean = positives > 0
        if self.protocol.drop_no_interaction:
            in_mean[sorted(vocabulary.no_interaction_ids)] = False
        if self.reading != "released":
            return OracleResult(oracle, ap, recall, in_full=in_mean, in_groups=in_mean)
        # The released code also leaves out classes without a true positive, as the module's docstring says.
        has_hits = ap > 0
        has_no_predictions = np.diff(starts_of(remaining.code <= TRUE_POSITIVE)[bounds]) == 0
        in_full = in_mean & (has_hits | has_no_predictions)
        return OracleResult(oracle, ap, recall, in_full=in_full, in_groups=in_mean & has_hits)
