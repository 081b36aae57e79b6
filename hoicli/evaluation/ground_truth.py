"""The ground truth of a dataset, indexed for matching."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hoicli.arrays.kit import Bools, Ints, expanded
from hoicli.arrays.scenes import Scenes
from hoicli.evaluation.protocols import Protocol
from hoicli.records import caveats
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GroundTruth:
    """All annotated images of a dataset, indexed for joining.

    What is asked of the whole for every batch is computed once (and is read-only): the time of a batch must not depend
    on how large the ground truth is.
    """

    def __init__(self, scenes: Scenes, vocabulary: Vocabulary, name: str = "ground truth") -> None:
        """name: what messages call it."""
        self.scenes = scenes
        self.vocabulary = vocabulary
        self.name = name
        self.position = {image_id: row for row, image_id in enumerate(scenes.image_ids)}
        key = self._key(scenes.image_of_hoi, scenes.interaction)
        order = np.argsort(key, kind="stable")  # stable: annotation order within a class
        self._order = order[key[order] >= 0]
        self._keys, self._first, self._count = np.unique(key[self._order], return_index=True, return_counts=True)
        self._under: dict[tuple[str, Protocol], NDArray[Any]] = {}
        self.caveats = scenes.every_caveat & caveats.TRUTH

    def serves(self, protocol: Protocol) -> bool:
        """Whether none of its caveats leaves the protocol without a number."""
        return not protocol.refuses & self.caveats

    def settings(self, protocol: Protocol) -> dict[str, str]:
        """What its caveats add to the signatures of a protocol's rows."""
        return caveats.settings(self.caveats & protocol.heeds)

    def _once(self, what: str, protocol: Protocol, work: Callable[[Protocol], NDArray[Any]]) -> NDArray[Any]:
        """The work's result under a protocol, kept."""
        found = self._under.get((what, protocol))
        if found is None:
            found = self._under[what, protocol] = work(protocol)
            found.setflags(write=False)
        return found

    def _key(self, image: Ints, interaction: Ints) -> Ints:
        key: Ints = image * len(self.vocabulary.interactions) + interaction
        return np.where(interaction < 0, -1, key)

    @cached_property
    def no_interaction(self) -> Bools:
        """[T] ground-truth triplets of the verb no_interaction."""
        ids = sorted(self.vocabulary.no_interaction_ids)
        return np.isin(self.scenes.interaction, ids)

    @cached_property
    def other_subjects(self) -> int:
        """How many triplets have a subject that is not labelled person."""
        subjects = self.scenes.labels[self.scenes.subject] if len(self.scenes.labels) else self.scenes.subject
        return int(np.count_nonzero(subjects != self.vocabulary.object_ids[SUBJECT]))

    def join(self, image: Ints, interaction: Ints) -> tuple[Ints, Ints]:
        """Every (prediction, ground truth) of one image and class: rows of the arguments, ascending, and of `scenes`.

        Ground truth comes in annotation order for each prediction.
        """
        if len(self._keys) == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        key = self._key(image, interaction)
        place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        met = np.flatnonzero(self._keys[place] == key)
        place = place[met]
        run, entry = expanded(self._first[place], self._count[place])
        return met[run], self._order[entry]

    @cached_property
    def people(self) -> tuple[Ints, Ints]:
        """([P] the boxes labelled person, [N + 1] where each image's begin)."""
        rows = np.flatnonzero(self.scenes.labels == self.vocabulary.object_ids[SUBJECT])
        return rows, np.searchsorted(rows, self.scenes.box_start)

    @cached_property
    def _deeds(self) -> tuple[Ints, Ints]:
        """(key of (subject, interaction), triplet), by key, then annotation order: what each person does."""
        key = self.scenes.subject * len(self.vocabulary.interactions) + self.scenes.interaction
        order = np.argsort(key, kind="stable")
        return key[order], order

    def join_person(self, person: Ints, interaction: Ints) -> tuple[Ints, Ints]:
        """Every (row of the arguments, triplet): what the person, a box or -1, is annotated to do of that class."""
        keys, order = self._deeds
        wanted = np.where(person < 0, -1, person * len(self.vocabulary.interactions) + interaction)
        first = np.searchsorted(keys, wanted)
        row, entry = expanded(first, np.searchsorted(keys, wanted, side="right") - first)
        return row, order[entry]

    def scored(self, protocol: Protocol) -> Bools:
        """[interactions] the classes a protocol scores."""
        numbers = np.arange(len(self.vocabulary.interactions))
        if not protocol.classes:
            return numbers >= 0
        return np.isin(numbers, sorted(self.vocabulary.subsets[protocol.classes]))

    def counted(self, protocol: Protocol) -> Bools:
        """[T] the ground truth a protocol counts."""
        return self._once("counted", protocol, self._counted)

    def _counted(self, protocol: Protocol) -> Bools:
        counts = self.scenes.interaction >= 0
        if protocol.classes:
            counts &= self.scored(protocol)[self.scenes.interaction]
        return counts & ~self.no_interaction if protocol.drop_no_interaction else counts

    def counted_before(self, protocol: Protocol) -> Ints:
        """[T + 1] how much of the ground truth before each triplet a protocol counts."""
        return self._once(
            "counted_before", protocol, lambda _: np.concatenate([[0], np.cumsum(self.counted(protocol))])
        )

    def present_boxes(self, protocol: Protocol) -> Bools:
        """[B] the ground-truth boxes there are under a protocol: those of dropped triplets alone go with them."""
        return self._once("present_boxes", protocol, self._present_boxes)

    def _present_boxes(self, protocol: Protocol) -> Bools:
        dropped, kept = (np.zeros(len(self.scenes.boxes), dtype=bool) for _ in range(2))
        counted = self.counted(protocol)
        for rows, boxes in ((~counted, dropped), (counted, kept)):
            boxes[self.scenes.subject[rows]] = True
            boxes[self.scenes.object[rows]] = True
        return kept | ~dropped

    def annotated_images(self, protocol: Protocol) -> Bools:
        """[N] the images in which a protocol counts predictions."""
        return self._once("annotated_images", protocol, self._annotated_images)

    def _annotated_images(self, protocol: Protocol) -> Bools:
        if protocol.images == "all":
            return np.ones(len(self.scenes.image_ids), dtype=bool)
        if protocol.images == "boxes":
            return np.diff(self.scenes.box_start) > 0
        counts = np.bincount(
            self.scenes.image_of_hoi, weights=self.counted(protocol), minlength=len(self.scenes.image_ids)
        )
        return counts > 0

    def class_counts(self, protocol: Protocol) -> Ints:
        """[interactions] ground-truth triplets of each class."""
        rows = self.scenes.interaction[self.counted(protocol)]
        return np.bincount(rows, minlength=len(self.vocabulary.interactions))
