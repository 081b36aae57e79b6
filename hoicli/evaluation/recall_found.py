"""Which ground-truth triplets are found, and at which rank first, gathered from batches of predictions; and which of
them a detector did not see in training.

This is all that recall at any K needs. An image's ground truth is found by the predictions of its own line alone, so
the batches may come in any order and from several processes.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from hoicli.errors import DataError
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.recall_conventions import BOXES, CONSTRAINTS, NOTHING, PREDICTIONS
from hoicli.io.streams import Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Growing, Ints, ranks_in_groups
from hoicli.records.reading import read_scenes
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Vocabulary

NEVER = np.iinfo(np.int64).max
"""The rank of what is not found, or not ranked."""


def ranks(scenes: Scenes) -> dict[str, Ints]:
    """[T] by constraint, the place of each prediction in its image, from 0 by descending score, ties by input order;
    NEVER for a prediction that the constraint leaves out. A pair is two boxes of the record, told apart by their
    places."""
    every, pair = np.arange(len(scenes.score)), scenes.subject * len(scenes.boxes) + scenes.object
    best = np.flatnonzero(ranks_in_groups(pair, scenes.score) == 0)
    places = {name: np.full(len(every), NEVER) for name in CONSTRAINTS}
    for name, ranked in zip(CONSTRAINTS, (best, every), strict=True):
        places[name][ranked] = ranks_in_groups(scenes.image_of_hoi[ranked], scenes.score[ranked])
    return places


class Found:
    """Gathers batches; `rank` gives the result. caveats: the mask of those of the predictions."""

    def __init__(self) -> None:
        self.caveats = 0
        self._found = Growing(triplet=np.int64, **dict.fromkeys(CONSTRAINTS, np.int64))
        self._images = Growing(image=np.int64, content=np.int64)

    def add(self, batch: Batch, protocol: Protocol) -> None:
        """The predictions of some images, matched by `protocol`'s rule for boxes."""
        row, triplet = batch.covered(protocol)
        found, place = np.unique(triplet, return_inverse=True)
        columns = {}
        for name, rank in ranks(batch.predictions).items():
            columns[name] = np.full(len(found), NEVER)
            np.minimum.at(columns[name], place, rank[row])
        self._found.add(triplet=found, **columns)
        self.caveats |= batch.predictions.every_caveat
        boxes, hois = (np.diff(start) > 0 for start in (batch.predictions.box_start, batch.predictions.hoi_start))
        content = np.where(hois, PREDICTIONS, np.where(boxes, BOXES, NOTHING))
        self._images.add(image=batch.image, content=content)

    def merge(self, other: Found) -> None:
        """Add what was gathered from other images."""
        self._found.merge(other._found)
        self._images.merge(other._images)
        self.caveats |= other.caveats

    @property
    def images(self) -> list[int]:
        """The places of the images in the ground truth."""
        places: list[int] = self._images["image"].tolist()
        return places

    def rank(self, constraint: str, triplets: int) -> Ints:
        """[triplets] the place of the best prediction that finds each ground-truth triplet, NEVER if none does."""
        rank = np.full(triplets, NEVER)
        rank[self._found["triplet"]] = self._found[constraint]
        return rank

    def content(self, images: int) -> Ints:
        """[images] what is predicted of each: NOTHING, BOXES or PREDICTIONS."""
        content = np.full(images, NOTHING)
        content[self._images["image"]] = self._images["content"]
        return content


@dataclass(frozen=True)
class Unseen:
    """triplets [T]: whether each of the ground truth is unseen. name: of the training set, for signatures."""

    triplets: Bools
    name: str


def not_in_training(truth: GroundTruth, training: Stream, policy: ErrorPolicy) -> Unseen:
    """The triplets (subject, verb, object) that the ground truth of the training set never has; its name is a digest of
    those it has. Raises `DataError` for a bad line, and for a training set without triplets."""
    vocabulary = truth.vocabulary
    with no_garbage_collection():
        batches = read_scenes(training, vocabulary, scored=False, policy=policy)
        seen = np.unique(np.concatenate([_keys(scenes, vocabulary) for scenes in batches] or [_NO_KEYS]))
    if not len(seen):
        problem = "no triplets in it; give the ground truth of the training set"
        raise DataError(problem, place=training.name, code="empty")
    text = "\n".join("\t".join(names) for names in sorted(_names(seen, vocabulary)))
    unseen = ~np.isin(_keys(truth.scenes, vocabulary), seen)
    return Unseen(unseen, f"train-{sha256(text.encode()).hexdigest()[:8]}")


_NO_KEYS: Ints = np.zeros(0, dtype=np.int64)


def _keys(scenes: Scenes, vocabulary: Vocabulary) -> Ints:
    """[T] a number for each (subject, verb, object) by their labels."""
    if not len(scenes.verb):
        return _NO_KEYS
    keys: Ints = scenes.labels[scenes.subject] * len(vocabulary.verbs) + scenes.verb
    return keys * len(vocabulary.objects) + scenes.labels[scenes.object]


def _names(keys: Ints, vocabulary: Vocabulary) -> list[tuple[str, str, str]]:
    """The labels of each key."""
    rest, object_ = np.divmod(keys, len(vocabulary.objects))
    subject, verb = np.divmod(rest, len(vocabulary.verbs))
    return [
        (vocabulary.objects[s], vocabulary.verbs[v], vocabulary.objects[o])
        for s, v, o in zip(subject.tolist(), verb.tolist(), object_.tolist(), strict=True)
    ]
