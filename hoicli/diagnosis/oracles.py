"""What fixing each type of error would give: mAP with an oracle minus mAP without.

`hoicli.diagnosis.applied` has the oracles. Errors overlap, so the deltas do not add up to 100 - mAP (Diag-HOI section
3.4, TIDE); applied one after another (Eq. 4 and 5) they do.

With the repairs of the released code (`repairs.Reading`) its means are used, too (neu-vi/Diag-HOI
map_improvement_hicodet.py): a class whose predictions are all wrong is left out (here it counts 0), and from the rare
and non-rare means also a class without predictions; ground truth of images without predictions is never missed. One
difference remains: that code looks up entries by equality, so if a true positive is listed twice, the second copy turns
the first into a duplicate (and a mean without other classes into nan); here the first stays a true positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hoicli.diagnosis.applied import COLUMNS, ORACLES, Applied, Corrections
from hoicli.diagnosis.errors import ERRORS, MISSED, NOT_COUNTED, Located
from hoicli.diagnosis.repairs import ErrorTypes, Reading
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.listed import Listed, by_score
from hoicli.evaluation.pairing import TRUE_POSITIVE
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.tally import Mean, per_class, places, subset_classes, subset_means
from hoicli.records.kit import Bools, Floats, Growing, Ints, starts_of
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from hoicli.resampling.ranked import RankedLists


@dataclass(frozen=True)
class OracleResult:
    """Results under one oracle ("none": without): ap, max_recall [C] in [0, 1]; in_full, in_groups [C] the classes in
    the mean over all classes, and in means over other subsets."""

    oracle: str
    ap: Floats
    max_recall: Floats
    in_full: Bools
    in_groups: Bools

    def means(self, subsets: Mapping[str, Ints]) -> list[Mean]:
        """The mean of each of `Diagnosis.subsets`."""
        averaged = {
            subset: members[(self.in_full if subset == "full" else self.in_groups)[members]]
            for subset, members in subsets.items()
        }
        return subset_means(self.ap, self.max_recall, averaged)


PRECISION_DECIDED = 3
"""The ranked list is drawn up to this many times the ground truth."""
_MOST_BINS = 25


def _round_edges(end: int, *, whole: bool) -> list[int]:
    """0, step, 2 * step, ... up to about `end`, with at most _MOST_BINS round steps; `whole`: not short of it."""
    step = next(
        step for power in range(19) for step in (10**power, 2 * 10**power, 5 * 10**power) if step * _MOST_BINS >= end
    )
    bins = -(-end // step) if whole else end // step
    return [place * step for place in range(max(bins, 1) + 1)]


class Diagnosis:
    """Gathers the error types of one model, batch by batch in any order. listed: the predictions of a tally, to which
    each batch is added before it is added here. `reading`: how repairs were assigned."""

    def __init__(self, protocol: Protocol, classes: int, listed: Listed, reading: Reading = "shared") -> None:
        self.reading, self.protocol = reading, protocol
        self._classes, self._listed = classes, listed
        self._unseen: list[str] = []
        self._columns = Growing(**COLUMNS)
        self._made: Corrections | None = None
        self._results: list[OracleResult] = []

    def add(self, found: Located, types: ErrorTypes) -> None:
        """Add a batch of images."""
        missed = types.missed
        if self.reading == "released":  # it ignores images without predictions
            missed &= np.bincount(found.image[found.counted], minlength=len(found.image_ids))[found.truth_image] > 0
        repairing = np.flatnonzero(types.repairs >= 0)
        repaired = types.repairs[repairing]
        columns = {
            "error": types.error,
            "unlisted": ~found.counted,
            "repair": repairing,
            "repaired_class": found.truth_interaction[repaired],
            "replaced": types.found[repaired],
            "truth_image": found.truth_image,
            "truth_class": found.truth_interaction,
            "missed": missed,
        }
        self._add(columns, len(found.image_ids), len(found.score))

    def _add(self, columns: Mapping[str, NDArray[Any]], images: int, predictions: int) -> None:
        """Add columns about the last `images` and `predictions` that are listed."""
        images, predictions = len(self._listed.image_ids) - images, len(self._listed) - predictions
        before = {"truth_image": images, "repair": predictions, "replaced": predictions}
        placed = {
            name: np.where(columns[name] < 0, columns[name], columns[name] + first) for name, first in before.items()
        }
        self._columns.add(**{**columns, **placed})
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
        """Add another diagnosis of the same model, gathered from other images, whose tally was merged before."""
        columns = {name: other._columns[name] for name in COLUMNS}
        self._add(columns, len(other._listed.image_ids), len(other._listed))

    @property
    def positives(self) -> Ints:
        """[C] ground truth of each class."""
        return np.bincount(self._columns["truth_class"], minlength=self._classes)

    def images_of_truth(self, members: Ints) -> int:
        """How many images have ground truth of one of the classes."""
        return len(np.unique(self._columns["truth_image"][np.isin(self._columns["truth_class"], members)]))

    def subsets(self, vocabulary: Vocabulary) -> dict[str, Ints]:
        """The classes of each averaged subset: the protocol's own, or full and the frequency groups."""
        return subset_classes(vocabulary, self.protocol)

    def counts(self) -> dict[str, Ints]:
        """Error type -> [C] predictions of each class; `missed_gt` counts ground truth."""
        columns, cells = self._columns, len(ERRORS) * self._classes
        cell = columns["error"].astype(np.int64) * self._classes + self._listed.interaction
        of_errors = np.bincount(cell, minlength=cells)[:cells].reshape(len(ERRORS), -1)  # NOT_COUNTED is beyond
        missed = np.bincount(columns["truth_class"][columns["missed"]], minlength=self._classes)
        return {**dict(zip(ERRORS, of_errors, strict=True)), MISSED: missed}

    def composition(self) -> dict[str, Any]:
        """edges: boundaries in the list ranked by score over all classes; counts: by error type, predictions between.

        The list is followed to PRECISION_DECIDED times the ground truth: behind that hardly a true positive comes, and
        what the errors are changes no AP. Bins are equally long, round numbers; the last may end behind the list."""
        error, score = self._columns["error"], self._listed.score
        counted = np.flatnonzero(error != NOT_COUNTED)
        error, score = error[counted], score[counted]
        ranked = error[by_score(score, lambda rows: [error[rows]])]
        end = PRECISION_DECIDED * len(self._columns["truth_class"]) or len(ranked)
        edges = _round_edges(min(len(ranked), end), whole=len(ranked) <= end)
        cuts = [ranked[start:end] for start, end in pairwise(edges)]
        counts = {name: [int((cut == code).sum()) for cut in cuts] for code, name in enumerate(ERRORS)}
        return {"edges": edges, "counts": counts}

    def results(self, vocabulary: Vocabulary) -> Iterator[OracleResult]:
        """Without an oracle first ("none"), then under each of ORACLES; kept, since every part of a slice of classes
        asks for them again. vocabulary: that of the classes, the same in every call."""
        if not self._results:
            every = ("none", *ORACLES)
            self._results = [self._result(oracle, self._corrections.after([oracle]), vocabulary) for oracle in every]
        return iter(self._results)

    def progressive(self, vocabulary: Vocabulary, order: Sequence[str]) -> Iterator[OracleResult]:
        """Results under the first oracle of `order` (from IN_TURN), the first two, and so on, each named after the
        last."""
        for step, oracle in enumerate(order, start=1):
            yield self._result(oracle, self._corrections.after(order[:step]), vocabulary)

    @property
    def _corrections(self) -> Corrections:
        """Everything that was added, ready for oracles."""
        if self._made is None:
            self._made = Corrections(self._listed, self._columns, self._classes)
        return self._made

    def ranked(self, image_ids: Sequence[str]) -> Callable[[Sequence[str]], Iterator[RankedLists]]:
        """What gives the ranked lists after each of some oracles, each applied alone. Images are places in `image_ids`,
        which has all images of predictions and of ground truth. Neighbours with the same lists (`applied.ASKING`) share
        their arrays."""
        from hoicli.resampling.ranked import RankedLists  # without intervals nobody needs it

        corrections, of_image = self._corrections, self._places_in(image_ids)
        image, place = of_image[corrections.image], corrections.place

        def after(oracles: Sequence[str]) -> Iterator[RankedLists]:
            code, lists = None, None
            for oracle in oracles:
                left = corrections.after([oracle])
                truth_image = of_image[left.truth_image]
                if lists is None or code is not left.code:
                    code = left.code
                    counted = code <= TRUE_POSITIVE
                    lists = RankedLists(
                        hit=code[counted] == TRUE_POSITIVE,
                        image=image[counted],
                        bounds=starts_of(counted)[corrections.bounds],
                        truth_image=truth_image,
                        truth_class=left.truth_class,
                        images=len(image_ids),
                        grid=self.protocol.grid,
                        cap=self.protocol.predictions_per_class,
                        place=starts_of(np.bincount(place[counted], minlength=len(place)))[place[counted]],
                    )
                yield replace(lists, truth_image=truth_image, truth_class=left.truth_class)

        return after

    def by_image(self, image_ids: Sequence[str]) -> dict[str, tuple[Ints, Ints]]:
        """Error type -> (image, class) of each prediction of that type, for `missed_gt` of each missed ground truth;
        images are places in `image_ids`."""
        columns, of_image = self._columns, self._places_in(image_ids)
        image, interaction = self._listed.image, self._listed.interaction
        found = {}
        for code, name in enumerate(ERRORS):
            rows = np.flatnonzero(columns["error"] == code)
            found[name] = of_image[image[rows]], interaction[rows].astype(np.int64)
        missed = columns["missed"]
        return {**found, MISSED: (of_image[columns["truth_image"][missed]], columns["truth_class"][missed])}

    def _places_in(self, image_ids: Sequence[str]) -> Ints:
        """The place of each image in `image_ids`."""
        place = {name: row for row, name in enumerate(image_ids)}
        return places([*self._listed.image_ids, *self._unseen], place)

    def _result(self, oracle: str, left: Applied, vocabulary: Vocabulary) -> OracleResult:
        bounds = self._corrections.bounds
        positives = np.bincount(left.truth_class, minlength=self._classes)
        ap, recall = per_class(left.code, bounds, positives, self.protocol)
        in_mean = positives > 0
        if self.protocol.drop_no_interaction:
            in_mean[sorted(vocabulary.no_interaction_ids)] = False
        if self.reading != "released":
            return OracleResult(oracle, ap, recall, in_mean, in_mean)
        found, silent = ap > 0, np.diff(starts_of(left.code <= TRUE_POSITIVE)[bounds]) == 0
        return OracleResult(oracle, ap, recall, in_mean & (found | silent), in_mean & found)
