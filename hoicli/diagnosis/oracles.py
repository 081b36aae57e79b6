"""What fixing each type of error would give: mAP with an oracle less mAP without.

An oracle for interaction, association, object box or human box errors turns each repair of its type into a true
positive of the ground truth's class with its own score, drops the true positive it replaces (a lower score), and drops
all other predictions of the type. The oracles for duplicates and both boxes drop them; missed ground truth leaves the
count; false_positive drops everything but true positives; false_negative counts only the ground truth that was found.
Errors overlap, so the deltas do not add up to what is missing to 100. (Diag-HOI section 3.3, TIDE.)

`as_released` takes the mean of neu-vi/Diag-HOI's map_improvement_hicodet.py: a class whose predictions are all wrong is
left out (here it counts 0), from the rare and non-rare means also a class without predictions; and ground truth of
images without predictions is never missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.diagnosis.errors import (
    ASSOCIATION,
    BOTH_BOXES,
    DUPLICATE,
    ERRORS,
    HIT,
    HUMAN_BOX,
    INTERACTION,
    MISSED,
    NOT_COUNTED,
    OBJECT_BOX,
    ErrorTypes,
    Located,
)
from hoicli.evaluation import joined, per_class, ranking
from hoicli.matching import FALSE_POSITIVE, TRUE_POSITIVE, GroundTruth
from hoicli.protocols import Protocol
from hoicli.scenes import Bools, Floats, Ints, rank_by_id
from hoicli.vocabulary import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

REPAIRED = {
    "interaction": INTERACTION,
    "association": ASSOCIATION,
    "object_box": OBJECT_BOX,
    "human_box": HUMAN_BOX,
}
DROPPED = {"duplicate": DUPLICATE, "both_boxes": BOTH_BOXES}
ORACLES: Mapping[str, str] = {
    "duplicate": "further predictions of a ground truth that is found already are dropped",
    "interaction": "predictions with the right pair of boxes and a wrong verb get the right verb, or are dropped",
    "association": "predictions whose two boxes are right but do not interact get the right pair, or are dropped",
    "object_box": "predictions with the right human box only get the right object box, or are dropped",
    "human_box": "predictions with the right object box only get the right human box, or are dropped",
    "both_boxes": "predictions with neither box right are dropped",
    MISSED: "ground truth that nothing found or could be made to find is not asked for",
    "false_positive": "everything that is no true positive is dropped",
    "false_negative": "only the ground truth that was found is asked for",
}
"""Each oracle and what it fixes."""


def explanation() -> str:
    """What each oracle fixes, a line each, and how (not) to read their deltas."""
    width = max(map(len, ORACLES))
    lines = [f"{name:<{width}}  {text}" for name, text in ORACLES.items()]
    return "\n".join([*lines, "Errors overlap: the deltas do not add up to what is missing to 100."])


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


class Diagnosis:
    """Gathers the error types of one model, batch by batch in any order."""

    def __init__(self, protocol: Protocol, classes: int) -> None:
        self._protocol = protocol
        self._classes = classes
        self._image_ids: list[str] = []
        self._predictions = 0
        self._columns: dict[str, list[NDArray[Any]]] = {
            name: [] for name in ("interaction", "score", "image", "error", "repair", "repaired_class", "replaced")
        }
        self._unfound: list[Ints] = []
        self._repairable: list[Ints] = []
        self._silent_images: list[tuple[str, int, int]] = []
        self.positives = np.zeros(classes, dtype=np.int64)
        self.missed = np.zeros(classes, dtype=np.int64)
        self.unseen = np.zeros(classes, dtype=np.int64)
        """Missed ground truth in images without predictions; the released code does not count it."""

    def add(self, found: Located, types: ErrorTypes) -> None:
        """A batch of images."""
        repaired = np.flatnonzero(types.repair >= 0)
        replaced = types.found[repaired]
        columns: dict[str, NDArray[Any]] = {
            "interaction": found.interaction.astype(np.int16),
            "score": found.score,
            "image": (found.image + len(self._image_ids)).astype(np.int32),
            "error": types.error,
            "repair": types.repair[repaired] + self._predictions,
            "repaired_class": found.truth_interaction[repaired].astype(np.int16),
            "replaced": np.where(replaced >= 0, replaced + self._predictions, -1),
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
        self.positives += np.bincount(found.truth_interaction, minlength=self._classes)
        silent = np.bincount(found.image[found.counted], minlength=len(found.image_ids)) == 0
        self._add_missed(found.truth_interaction[types.missed], silent[found.truth_image[types.missed]])

    def _add_missed(self, interaction: Ints, unseen: Bools) -> None:
        self.missed += np.bincount(interaction, minlength=self._classes)
        self.unseen += np.bincount(interaction[unseen], minlength=self._classes)

    def add_unseen(self, truth: GroundTruth) -> None:
        """The ground truth of the images that no batch had."""
        scenes = truth.scenes
        seen = self.images
        absent = np.array([image_id not in seen for image_id in scenes.image_ids], dtype=bool)
        rows = truth.counted(self._protocol) & absent[scenes.image_of_hoi]
        interaction = scenes.interaction[rows]
        unfound = np.bincount(scenes.image_of_hoi[rows], minlength=len(scenes.image_ids))
        self._silent_images = [(scenes.image_ids[row], int(unfound[row]), 0) for row in np.flatnonzero(unfound)]
        self.positives += np.bincount(interaction, minlength=self._classes)
        self._add_missed(interaction, np.ones(len(interaction), dtype=bool))

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
            if name == "image":
                parts = [part + np.int32(len(self._image_ids)) for part in parts]
            elif name in ("repair", "replaced"):
                parts = [np.where(part >= 0, part + self._predictions, -1) for part in parts]
            self._columns[name] += parts
        self._unfound += other._unfound
        self._repairable += other._repairable
        self._image_ids += other._image_ids
        self._predictions += other._predictions
        self.positives += other.positives
        self.missed += other.missed
        self.unseen += other.unseen

    @staticmethod
    def disjoint(parts: Sequence[Diagnosis]) -> bool:
        """Whether no image is in two of the parts."""
        ids = [image_id for part in parts for image_id in part._image_ids]
        return len(set(ids)) == len(ids)

    def counts(self, *, as_released: bool) -> dict[str, Ints]:
        """Error type -> [C] predictions of each class; `missed_gt` counts ground truth."""
        error, interaction = self._column("error", np.uint8), self._column("interaction", np.int16)
        counted = {
            name: np.bincount(interaction[error == code], minlength=self._classes) for code, name in enumerate(ERRORS)
        }
        return {**counted, MISSED: self._missed(as_released=as_released)}

    def worst_images(self, top: int) -> list[tuple[str, int, int]]:
        """(image id, ground truth nothing found, of it what a repair could find), the images with most of it first."""
        unfound, repairable = (joined(parts, np.int64).tolist() for parts in (self._unfound, self._repairable))
        images = [row for row in zip(self._image_ids, unfound, repairable, strict=True) if row[1]] + self._silent_images
        return sorted(images, key=lambda row: (-row[1], -row[2], row[0]))[:top]

    def _missed(self, *, as_released: bool) -> Ints:
        return self.missed - self.unseen if as_released else self.missed

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

    def results(self, vocabulary: Vocabulary, *, as_released: bool) -> Iterator[OracleResult]:
        """Without an oracle first ("none"), then under each of ORACLES."""
        order = np.argsort(rank_by_id(self._image_ids)[self._column("image", np.int32)], kind="stable")
        place = np.empty(len(order) + 1, dtype=np.int64)
        place[order], place[-1] = np.arange(len(order)), -1
        error = self._column("error", np.uint8)[order]
        interaction = self._column("interaction", np.int16)[order]
        score = self._column("score", np.float64)[order]
        repair = place[self._column("repair", np.int64)]
        repaired_class = self._column("repaired_class", np.int16)
        replaced = place[self._column("replaced", np.int64)]
        # The place of every prediction in the list of all, and with the class in front, as one number: kept predictions
        # stay in order, and the few repairs are put where their number belongs.
        by_score = ranking(np.zeros(len(score), dtype=np.int16), score)
        key = np.empty(len(score), dtype=np.int64)
        key[by_score] = np.arange(len(score))
        repaired_key = repaired_class.astype(np.int64) * len(score) + key[repair]
        key += interaction.astype(np.int64) * len(score)
        ranked = by_score[np.argsort(interaction[by_score], kind="stable")]
        positives = self.positives

        def result(oracle: str, keep: Bools, counts: Ints, fixed: Ints | None = None) -> OracleResult:
            rows = ranked[keep[ranked]]
            classes, hit = interaction[rows], error[rows] == HIT
            if fixed is not None:
                order = fixed[np.argsort(repaired_key[fixed])]
                at = np.searchsorted(key[rows], repaired_key[order])
                classes, hit = np.insert(classes, at, repaired_class[order]), np.insert(hit, at, True)
            return self._result(oracle, classes, hit, counts, vocabulary, as_released=as_released)

        counted = error != NOT_COUNTED
        yield result("none", counted, positives)
        for oracle in ORACLES:
            if oracle in DROPPED:
                yield result(oracle, counted & (error != DROPPED[oracle]), positives)
            elif oracle in REPAIRED:
                fixed = np.flatnonzero(error[repair] == REPAIRED[oracle])
                keep = counted & (error != REPAIRED[oracle])
                former = replaced[fixed]
                keep[former[former >= 0]] = False
                yield result(oracle, keep, positives, fixed)
            elif oracle == MISSED:
                yield result(oracle, counted, positives - self._missed(as_released=as_released))
            elif oracle == "false_positive":
                yield result(oracle, error == HIT, positives)
            else:
                yield result(oracle, counted, np.bincount(interaction[error == HIT], minlength=self._classes))

    def _result(
        self,
        oracle: str,
        interaction: NDArray[Any],
        hit: Bools,
        positives: Ints,
        vocabulary: Vocabulary,
        *,
        as_released: bool,
    ) -> OracleResult:
        code = np.where(hit, TRUE_POSITIVE, FALSE_POSITIVE).astype(np.uint8)
        bounds = np.searchsorted(interaction, np.arange(self._classes + 1))
        ap, recall = per_class(code, bounds, positives, self._protocol)
        in_mean = positives > 0
        in_mean[sorted(vocabulary.no_interaction_ids)] = False
        found = ap > 0
        silent = np.diff(bounds) == 0
        full = in_mean & (found | silent) if as_released else in_mean
        return OracleResult(oracle, ap, recall, full, in_mean & found if as_released else in_mean)
