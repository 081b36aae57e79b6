"""Zero-shot recall: which ground-truth triplets a detector did not see in training."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from hoicli.errors import DataError
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.io.streams import Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools, Ints
from hoicli.records.reading import read_scenes
from hoicli.records.scenes import Scenes
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Unseen:
    """triplets [T]: whether each of the ground truth is unseen. name: of the split, for signatures."""

    triplets: Bools
    name: str

    def settings(self) -> dict[str, str]:
        """What it adds to a signature."""
        return {"split": self.name}


def of_split(truth: GroundTruth, split: str) -> Unseen:
    """The unseen interactions of a zero-shot split (a key of the vocabulary's `unseen`)."""
    return Unseen(np.isin(truth.scenes.interaction, sorted(truth.vocabulary.unseen[split])), split)


def not_in_training(truth: GroundTruth, training: Stream, policy: ErrorPolicy) -> Unseen:
    """The triplets (subject, verb, object) that the ground truth of the training set never has; its name is a digest of
    those it has. Raises `DataError` for a bad line, and for a training set without triplets."""
    vocabulary = truth.vocabulary
    with no_garbage_collection():
        batches = read_scenes(training, vocabulary, scored=False, policy=policy)
        seen = np.unique(np.concatenate([_keys(scenes, vocabulary) for scenes in batches] or [_NO_KEYS]))
    if not len(seen):
        raise DataError("no triplets in it; give the ground truth of the training set", place=training.name)
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
