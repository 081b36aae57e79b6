"""Many images as columns, whose labels and verbs are numbers of a dataset's vocabulary; and the dataset's classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from hoicli.records import caveats
from hoicli.records.columns import Images
from hoicli.records.kit import Bools, Floats, Ints, among, starts_of
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Scenes(Images):
    """Images whose labels, verbs and interactions are numbers of a vocabulary; score [T] is NaN for ground truth.

    Of boxes: labels [B] object ids, -1 for a box without a label; crowd [B] whether a box of ground truth is around a
    crowd (COCO's `iscrowd`); annotated [B] whether the actions of the person in the box were annotated.
    Of triplets: verb [T] verb ids; interaction [T] interaction ids, -1 where the vocabulary has no such (verb, object).
    Of images, lists one after another: known [K] the objects in the image-level labels of an image, each once,
    ascending (ground truth only), with known_count [N] how many each image has; image_label [L] the interactions that
    are image-level labels, ~interaction (a negative number) for an ambiguous one, with image_label_count [N] how many
    each image has. caveats [N] sets of caveats as bit masks (`hoicli.records.caveats`): those of the record, and, for
    ground truth without image-level labels, that these are derived from triplets."""

    labels: Ints
    crowd: Bools
    annotated: Bools
    verb: Ints
    interaction: Ints
    known_count: Ints
    known: Ints
    image_label_count: Ints
    image_label: Ints
    caveats: Ints

    @property
    def derived(self) -> int:
        """How many images lack image-level labels of their own and use those of their triplets."""
        return int(np.count_nonzero(self.caveats & caveats.mask([caveats.DERIVED_LABELS])))

    @cached_property
    def every_caveat(self) -> int:
        """The caveats that any of the images has, as a bit mask."""
        return int(np.bitwise_or.reduce(self.caveats, initial=0))

    @cached_property
    def object_label(self) -> Ints:
        """[T] the label (object id) of each triplet's object; -1 without an object or a label."""
        if not len(self.labels):  # nothing could be looked up below, not even for an object of -1
            return np.full(len(self.object), -1, dtype=np.int64)
        return np.where(self.object < 0, -1, self.labels[self.object])

    @property
    def unlabelled_objects(self) -> int:
        """How many triplets have an object box without a label."""
        return int(((self.object >= 0) & (self.object_label < 0)).sum())

    def select_triplets(self, rows: Ints) -> Scenes:
        """Return the same images and boxes with only the triplets at `rows`, ascending and each once."""
        if len(rows) == len(self.score):
            return self
        columns = {name: getattr(self, name)[rows] for name in _OF_TRIPLETS}  # the columns [T]
        new_start = np.searchsorted(rows, self.hoi_start)  # how many rows are kept before each old start
        return replace(self, hoi_start=new_start, **columns)


def are_subjects(labels: Ints, vocabulary: Vocabulary) -> Bools:
    """Return [M] a mask of the labels (object ids, -1 for none) that a subject may have: the dataset's `subjects`."""
    return among(labels, vocabulary.subject_ids)


def count_other_subjects(scenes: Scenes, vocabulary: Vocabulary) -> int:
    """Return how many triplets have a subject with a label that no subject may have."""
    if not len(scenes.labels):
        return 0
    is_other = (scenes.labels >= 0) & ~are_subjects(scenes.labels, vocabulary)
    return int(np.count_nonzero(is_other[scenes.subject]))


def box_kinds(labels: Ints, vocabulary: Vocabulary) -> Ints:
    """Return [M] the labels by which boxes are matched: all labels that a subject may have become the same one."""
    if len(vocabulary.subjects) == 1:
        return labels
    return np.where(are_subjects(labels, vocabulary), min(vocabulary.subject_ids), labels)


@cache
def class_table(vocabulary: Vocabulary) -> Ints:
    """Return [verbs, objects] the class (interaction id) of each (verb, object), -1 where the dataset has no such
    class. In a dataset with roles, return [verbs, 1 + roles] the class of each (verb, role), with the class of the verb
    alone, without a role, in column 0."""
    names = ("", *vocabulary.roles) if vocabulary.roles else vocabulary.objects
    columns = {name: column for column, name in enumerate(names)}
    table = np.full((len(vocabulary.verbs), len(columns)), -1, dtype=np.int64)
    for number, (verb, name) in enumerate(vocabulary.interactions):
        table[vocabulary.verb_ids[verb], columns[name]] = number
    return table


@cache
def class_columns(vocabulary: Vocabulary) -> tuple[Ints, Bools]:
    """Return ([C] the verb id of each class; [C] whether the class is a verb alone, without a role or an object)."""
    verbs = np.array([vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions], dtype=np.int64)
    is_verb_alone = np.array([not role for _, role in vocabulary.interactions], dtype=bool)
    return verbs, is_verb_alone


@cache
def class_actions(vocabulary: Vocabulary) -> Ints:
    """Return the action [C] of each class: its verb, or in a dataset with roles the class (a verb in one role)."""
    if vocabulary.roles:
        return np.arange(len(vocabulary.interactions))
    verbs, _ = class_columns(vocabulary)
    return verbs


def add_triplets(
    scenes: Scenes, image: Ints, *, subject: Ints, object_: Ints, verb: Ints, interaction: Ints, score: Floats
) -> Scenes:
    """Return `scenes` with M more triplets, each after the others of its image (`image` [M])."""
    images = np.concatenate([scenes.image_of_hoi, image])
    order = np.argsort(images, kind="stable")  # stable: the triplets of an image keep their order, new ones last
    return replace(
        scenes,
        subject=np.concatenate([scenes.subject, subject])[order],
        object=np.concatenate([scenes.object, object_])[order],
        verb=np.concatenate([scenes.verb, verb])[order],
        interaction=np.concatenate([scenes.interaction, interaction])[order],
        score=np.concatenate([scenes.score, score])[order],
        hoi_start=starts_of(np.bincount(images, minlength=len(scenes.image_ids))),
    )


def add_boxes(scenes: Scenes, image: Ints, boxes: Floats, labels: Ints) -> tuple[Scenes, Ints, Ints]:
    """Return (`scenes` with M more boxes, each after the others of its image; [M] the rows of the new boxes; [B + 1]
    the new rows of the boxes that were there, with -1 as the last entry, which NO_BOX (-1) looks up). image [M]: the
    image of each new box, ascending."""
    added_before = starts_of(np.bincount(image, minlength=len(scenes.image_ids)))  # [N + 1] in earlier images
    insert_at = scenes.box_start[1:][image]
    new_rows = np.append(np.arange(len(scenes.boxes)) + added_before[scenes.image_of_box], -1)
    grown = replace(
        scenes,
        boxes=np.insert(scenes.boxes, insert_at, boxes, axis=0),
        labels=np.insert(scenes.labels, insert_at, labels),
        crowd=np.insert(scenes.crowd, insert_at, False),
        annotated=np.insert(scenes.annotated, insert_at, True),
        box_start=scenes.box_start + added_before,
        subject=new_rows[scenes.subject],
        object=new_rows[scenes.object],
    )
    return grown, insert_at + np.arange(len(insert_at)), new_rows


_OF_TRIPLETS = ("subject", "object", "verb", "interaction", "score")
