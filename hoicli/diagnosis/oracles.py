"""What fixing each type of error would give: mAP with an oracle less mAP without.

`hoicli.diagnosis.applied` has the oracles. Errors overlap, so the deltas do not add up to what is missing to 100
(Diag-HOI section 3.4, TIDE); applied one after another (Eq. 4 and 5) they end there.

With the repairs of the released code (`repairs.Reading`) the means are its own as well (neu-vi/Diag-HOI
map_improvement_hicodet.py): a class whose predictions are all wrong is left out (here it counts 0), from the rare and
non-rare means also a class without predictions; and ground truth of images without predictions is never missed. One
thing is not as released: that code looks entries up by equality and finds the first, so of a true positive listed twice
the second copy makes a duplicate of the first (and nan of a mean without another); here the first stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.arrays.kit import Bools, Floats, Ints, joined, rank_by_id
from hoicli.diagnosis.applied import ORACLES, Applied, Corrections
from hoicli.diagnosis.errors import ERRORS, MISSED, NOT_COUNTED, Located
from hoicli.diagnosis.repairs import ErrorTypes, Reading
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.tally import per_class, places
from hoicli.records.outcomes import FALSE_POSITIVE, TRUE_POSITIVE
from hoicli.resampling.ranked import RankedLists
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class OracleResult:
    """Under one oracle ("none" for without): ap, max_recall [C] in [0, 1]; which classes the mean over all classes
    takes, and which a mean over another subset takes."""

    oracle: str
    ap: Floats
    max_recall: Floats
    in_full: Bools
    in_groups: Bools

    def means(self, subsets: Mapping[str, Ints]) -> Iterator[tuple[str, float | None, float | None, int]]:
        """(subset, mAP, mean max recall, classes) for each of `Diagnosis.subsets`; None for an empty subset."""
        for subset, members in subsets.items():
            rows = members[(self.in_full if subset == "full" else self.in_groups)[members]]
            if len(rows):
                yield subset, float(self.ap[rows].mean()), float(self.max_recall[rows].mean()), len(rows)
            else:
                yield subset, None, None, 0


_OF_PREDICTIONS = ("interaction", "score", "image", "error", "repair", "repaired_class", "replaced")
_OF_TRUTH = ("truth_image", "truth_class", "missed", "unseen")


class Diagnosis:
    """Gathers the error types of one model, batch by batch in any order. `reading` is that of the types it is given."""

    def __init__(self, protocol: Protocol, classes: int, reading: Reading = "shared") -> None:
        self.reading = reading
        self._protocol = protocol
        self._classes = classes
        self._image_ids: list[str] = []
        self._predictions = 0
        self._columns: dict[str, list[NDArray[Any]]] = {name: [] for name in (*_OF_PREDICTIONS, *_OF_TRUTH)}
        self._unfound: list[Ints] = []
        self._repairable: list[Ints] = []
        self._absent_ids: list[str] = []
        self._absent_unfound: Ints = np.zeros(0, dtype=np.int64)

    def add(self, found: Located, types: ErrorTypes) -> None:
        """A batch of images."""
        silent = np.bincount(found.image[found.counted], minlength=len(found.image_ids)) == 0
        repairing = np.flatnonzero(types.repairs >= 0)
        repaired = types.repairs[repairing]
        replaced = types.found[repaired]
        columns: dict[str, NDArray[Any]] = {
            "interaction": found.interaction.astype(np.int16),
            "score": found.score,
            "image": (found.image + len(self._image_ids)).astype(np.int32),
            "error": types.error,
            "repair": repairing + self._predictions,
            "repaired_class": found.truth_interaction[repaired].astype(np.int16),
            "replaced": np.where(replaced >= 0, replaced + self._predictions, -1),
            "truth_image": found.truth_image + len(self._image_ids),
            "truth_class": found.truth_interaction,
            "missed": types.missed,
            "unseen": types.missed & silent[found.truth_image],
        }
        for name, column in columns.items():
            self._columns[name].append(column)
        images = len(found.image_ids)
        unfound = found.truth_image[types.found < 0]
        repairable = found.truth_image[(types.found < 0) & (types.repair >= 0)]
        self._unfound.append(np.bincount(unfound, minlength=images))
        self._repairable.append(np.bincount(repairable, minlength=images))
        self._image_ids += found.image_ids
        self._predictions += len(found.score)

    def add_unseen(self, truth: GroundTruth) -> None:
        """The ground truth of the images that no batch had; after all batches."""
        scenes = truth.scenes
        seen = self.images
        absent = np.array([image_id not in seen for image_id in scenes.image_ids], dtype=bool)
        rows = truth.counted(self._protocol) & absent[scenes.image_of_hoi]
        image = (np.cumsum(absent) - 1)[scenes.image_of_hoi[rows]]
        self._absent_ids = [scenes.image_ids[row] for row in np.flatnonzero(absent)]
        self._absent_unfound = np.bincount(image, minlength=len(self._absent_ids))
        missed = np.ones(len(image), dtype=bool)
        columns = (image + len(self._image_ids), scenes.interaction[rows], missed, missed)
        for name, column in zip(_OF_TRUTH, columns, strict=True):
            self._columns[name].append(column)

    @property
    def positives(self) -> Ints:
        """[C] ground truth of each class."""
        return np.bincount(self._column("truth_class", np.int64), minlength=self._classes)

    def subsets(self, vocabulary: Vocabulary) -> dict[str, Ints]:
        """The classes of each subset that is averaged: the protocol's own, or full and the frequency groups."""
        everything = range(len(vocabulary.interactions))
        members: Mapping[str, Iterable[int]] = {"full": everything, **vocabulary.groups}
        if self._protocol.subsets:
            members = {name: vocabulary.subsets[name] for name in self._protocol.subsets}
        return {name: np.array(sorted(chosen), dtype=np.int64) for name, chosen in members.items()}

    @property
    def protocol(self) -> Protocol:
        """The protocol of its idea of a correct box."""
        return self._protocol

    @property
    def images(self) -> set[str]:
        """The images there were predictions (or match records) of."""
        return set(self._image_ids)

    def merge(self, other: Diagnosis) -> None:
        """Take over what another diagnosis of the same model gathered from other images."""
        for name, parts in other._columns.items():
            if name in ("image", "truth_image"):
                parts = [part + part.dtype.type(len(self._image_ids)) for part in parts]
            elif name in ("repair", "replaced"):
                parts = [np.where(part >= 0, part + self._predictions, -1) for part in parts]
            self._columns[name] += parts
        self._unfound += other._unfound
        self._repairable += other._repairable
        self._image_ids += other._image_ids
        self._predictions += other._predictions

    @staticmethod
    def disjoint(parts: Sequence[Diagnosis]) -> bool:
        """Whether no image is in two of the parts."""
        ids = [image_id for part in parts for image_id in part._image_ids]
        return len(set(ids)) == len(ids)

    def counts(self) -> dict[str, Ints]:
        """Error type -> [C] predictions of each class; `missed_gt` counts ground truth."""
        error, interaction = self._column("error", np.uint8), self._column("interaction", np.int16)
        counted = {
            name: np.bincount(interaction[error == code], minlength=self._classes) for code, name in enumerate(ERRORS)
        }
        missed = self._column("truth_class", np.int64)[self._missed_rows()]
        return {**counted, MISSED: np.bincount(missed, minlength=self._classes)}

    def worst_images(self, top: int) -> list[tuple[str, int, int]]:
        """(image id, ground truth nothing found, of it what a repair could find), the images with most of it first."""
        unfound, repairable = (joined(parts, np.int64).tolist() for parts in (self._unfound, self._repairable))
        images = [*zip(self._image_ids, unfound, repairable, strict=True)]
        images += [
            (image_id, count, 0)
            for image_id, count in zip(self._absent_ids, self._absent_unfound.tolist(), strict=True)
        ]
        return sorted((row for row in images if row[1]), key=lambda row: (-row[1], -row[2], row[0]))[:top]

    def _missed_rows(self) -> Bools:
        """[P] the ground truth that is missed; the released code never looks at images without predictions."""
        missed: Bools = self._column("missed", np.bool_)
        return missed & ~self._column("unseen", np.bool_) if self.reading == "released" else missed

    def _column(self, name: str, dtype: type[np.generic]) -> NDArray[Any]:
        return joined(self._columns[name], dtype)

    def composition(self, bins: int = 20) -> tuple[list[int], dict[str, list[int]]]:
        """(boundaries in the list ranked by score over all classes, error type -> predictions in each bin)."""
        error, score = self._column("error", np.uint8), self._column("score", np.float64)
        counted = np.flatnonzero(error != NOT_COUNTED)
        ranked = error[counted[np.lexsort((error[counted], -score[counted]))]]
        edges = np.linspace(0, len(ranked), min(bins, max(len(ranked), 1)) + 1).astype(int).tolist()
        cuts = [ranked[start:end] for start, end in pairwise(edges)]
        return edges, {name: [int((cut == code).sum()) for cut in cuts] for code, name in enumerate(ERRORS)}

    def results(self, vocabulary: Vocabulary) -> Iterator[OracleResult]:
        """Without an oracle first ("none"), then under each of ORACLES."""
        corrections = self._corrections()
        for oracle in ("none", *ORACLES):
            yield self._result(oracle, corrections.after([oracle]), vocabulary)

    def progressive(self, vocabulary: Vocabulary, order: Sequence[str]) -> Iterator[OracleResult]:
        """Under the first of `order` (of IN_TURN), the first two, and so on, each named by the last."""
        corrections = self._corrections()
        for step, oracle in enumerate(order, start=1):
            yield self._result(oracle, corrections.after(order[:step]), vocabulary)

    def ranked(self, image_ids: Sequence[str]) -> Iterator[tuple[str, RankedLists]]:
        """(oracle, the ranked lists it leaves) as `results` has them, with images as places in `image_ids`, which has
        all images of predictions and of ground truth."""
        image = self._places_in(image_ids)
        corrections = self._corrections()
        for oracle in ("none", *ORACLES):
            left = corrections.after([oracle])
            yield (
                oracle,
                RankedLists(
                    hit=left.hit,
                    image=image[left.image],
                    bounds=np.searchsorted(left.interaction, np.arange(self._classes + 1)),
                    truth_image=image[left.truth_image],
                    truth_class=left.truth_class,
                    images=len(image_ids),
                    grid=self._protocol.grid,
                    cap=self._protocol.predictions_per_class,
                ),
            )

    def _places_in(self, image_ids: Sequence[str]) -> Ints:
        """Where each image, of predictions or only of ground truth, is in `image_ids`."""
        return places([*self._image_ids, *self._absent_ids], {name: row for row, name in enumerate(image_ids)})

    def by_image(self, image_ids: Sequence[str]) -> dict[str, tuple[Ints, Ints]]:
        """Error type -> (image, class) of each prediction of the type, of `missed_gt` of each ground truth; images as
        places in `image_ids`."""
        image = self._places_in(image_ids)
        error, of_prediction = self._column("error", np.uint8), image[self._column("image", np.int32)]
        interaction = self._column("interaction", np.int16).astype(np.int64)
        rows = {name: np.flatnonzero(error == code) for code, name in enumerate(ERRORS)}
        missed = self._missed_rows()
        truth = image[self._column("truth_image", np.int64)], self._column("truth_class", np.int64)
        return {
            **{name: (of_prediction[chosen], interaction[chosen]) for name, chosen in rows.items()},
            MISSED: (truth[0][missed], truth[1][missed]),
        }

    def _corrections(self) -> Corrections:
        """What the oracles take from; equal scores in the order of the images' ids."""
        order = np.argsort(rank_by_id(self._image_ids)[self._column("image", np.int32)], kind="stable")
        place = np.empty(len(order) + 1, dtype=np.int64)
        place[order], place[-1] = np.arange(len(order)), -1
        return Corrections(
            interaction=self._column("interaction", np.int16)[order],
            score=self._column("score", np.float64)[order],
            image=self._column("image", np.int32)[order],
            error=self._column("error", np.uint8)[order],
            repair=place[self._column("repair", np.int64)],
            repaired_class=self._column("repaired_class", np.int16),
            replaced=place[self._column("replaced", np.int64)],
            truth_class=self._column("truth_class", np.int64),
            truth_image=self._column("truth_image", np.int64),
            missed=self._missed_rows(),
        )

    def _result(self, oracle: str, left: Applied, vocabulary: Vocabulary) -> OracleResult:
        code = np.where(left.hit, TRUE_POSITIVE, FALSE_POSITIVE).astype(np.uint8)
        bounds = np.searchsorted(left.interaction, np.arange(self._classes + 1))
        positives = np.bincount(left.truth_class, minlength=self._classes)
        ap, recall = per_class(code, bounds, positives, self._protocol)
        in_mean = positives > 0
        in_mean[sorted(vocabulary.no_interaction_ids)] = False
        if self.reading != "released":
            return OracleResult(oracle, ap, recall, in_mean, in_mean)
        found, silent = ap > 0, np.diff(bounds) == 0
        return OracleResult(oracle, ap, recall, in_mean & (found | silent), in_mean & found)
