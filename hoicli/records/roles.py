"""Reading of V-COCO's own fields: roles, missing objects, people without annotations, and unstated statements.

A V-COCO detector makes two kinds of statements about a person: that they do an action (a hoi without `role` and
object), and which object fills a role of it (a hoi with `role`; its object is null if none does).
`hoicli.records.reading` gets from here one triplet for each statement that the protocols rank:

- Ground truth: a person does every action with an annotated role.
- Predictions with `unstated` (official dumps with missing keys): every box labelled person states every class, those
  left out with the score and the object box that `unstated` gives, as UPT's cache does for the released evaluator.
- Other predictions: a person does an action with the largest score of its roles, unless the record has the action, as
  QPIC's generate_vcoco_official.py computes agent scores.

What a record lists in `left_out` (statements of an official dump whose score is NaN, which the released evaluator
skips) is neither filled in nor derived.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import chain

import numpy as np

from hoicli.records.columns import require
from hoicli.records.images import RawImages
from hoicli.records.kit import Bools, Floats, Ints, starts_of
from hoicli.records.scenes import Scenes, are_subjects
from hoicli.vocabulary.labels import Vocabulary

FIELDS = ("annotated", "unstated", "left_out")
"""The fields of images that only these records have; of ground truth the first alone is read."""


class Roles:
    """What the records of some images say of roles. Raises an exception that `columns.attempt` expects for a role that
    a verb does not have, and for an object without a role; the other fields are checked (`image.seldom_problems`)."""

    def __init__(self, raw: RawImages, verbs: Ints, vocabulary: Vocabulary, *, scored: bool) -> None:
        """verbs [T] as numbers of the vocabulary."""
        self._vocabulary, self._scored = vocabulary, scored
        self._role_ids: dict[str | None, int] = {None: 0}
        self._role_ids |= {role: number for number, role in enumerate(vocabulary.roles, start=1)}
        given = raw.of_hoi["role"] or [None] * len(verbs)
        roles = np.fromiter(map(self._role_ids.__getitem__, given), dtype=np.int64, count=len(given))
        self.interaction = class_table(vocabulary)[verbs, roles]
        """[T] the class of each (verb, role)."""
        require(not ((self.interaction < 0) | ((roles == 0) & (raw.object >= 0))).any())
        counts = np.diff(raw.box_start)
        flags = zip(raw.each("annotated"), counts.tolist(), strict=True)
        every = [[True] * count if said is None else said for said, count in flags]
        self.annotated = np.array(list(chain.from_iterable(every)), dtype=bool)
        """[B] the flag of each box; true if the record has none."""
        self._unstated = raw.each("unstated")
        table, ids = class_table(vocabulary), vocabulary.verb_ids
        left_out = [
            (image, item["subject"], table[ids[item["verb"]], self._role_ids[item.get("role")]])
            for image, items in enumerate(raw.each("left_out"))
            for item in items or ()
        ]
        self._left_out = np.array(left_out, dtype=np.int64).reshape(-1, 3)
        """[L, 3] image, subject, class."""

    def completed(self, scenes: Scenes) -> Scenes:
        """`scenes` with the unstated and derived statements, after those in the records."""
        if any(unstated is not None for unstated in self._unstated):
            scenes = self._with_unstated(scenes)
        stated = np.array([unstated is None for unstated in self._unstated], dtype=bool)
        left_out = self._left_out_keys(scenes)
        return _with_agents(scenes, self._vocabulary, stated, left_out, scored=self._scored)

    def _left_out_keys(self, scenes: Scenes) -> Ints:
        """subject * classes + class of each `left_out` statement; subjects are boxes of `scenes`."""
        image, subject, class_ = self._left_out.T
        keys: Ints = (scenes.box_start[image] + subject) * len(self._vocabulary.interactions) + class_
        return keys

    def _with_unstated(self, scenes: Scenes) -> Scenes:
        flagged = np.array([unstated is not None for unstated in self._unstated], dtype=bool)
        scores = np.array([0.0 if unstated is None else unstated["score"] for unstated in self._unstated])
        boxes = np.array([unstated["object"] for unstated in self._unstated if unstated is not None], dtype=np.float64)
        scenes, added, _ = with_boxes(scenes, np.flatnonzero(flagged), boxes, np.full(len(boxes), -1))
        classes = len(self._vocabulary.interactions)
        image_of_box = scenes.image_of_box
        people = np.flatnonzero(are_subjects(scenes.labels, self._vocabulary) & flagged[image_of_box])
        every = (people[:, np.newaxis] * classes + np.arange(classes)).ravel()
        said = [scenes.subject * classes + scenes.interaction, self._left_out_keys(scenes)]
        key = every[~np.isin(every, np.concatenate(said))]
        subject, interaction = np.divmod(key, classes)
        image = image_of_box[subject]
        box_of_image = np.full(len(flagged), -1, dtype=np.int64)
        box_of_image[flagged] = added
        verbs, is_agent = class_columns(self._vocabulary)
        return with_triplets(
            scenes,
            image,
            subject=subject,
            object_=np.where(is_agent[interaction], -1, box_of_image[image]),
            verb=verbs[interaction],
            interaction=interaction,
            score=scores[image],
        )


@cache
def class_table(vocabulary: Vocabulary) -> Ints:
    """[verbs, objects] the class of each (verb, object), -1 for none; in a dataset with roles [verbs, 1 + roles] of
    each (verb, role), where column 0 is the action itself."""
    names = ("", *vocabulary.roles) if vocabulary.roles else vocabulary.objects
    columns = {name: at for at, name in enumerate(names)}
    table = np.full((len(vocabulary.verbs), len(columns)), -1, dtype=np.int64)
    for number, (verb, name) in enumerate(vocabulary.interactions):
        table[vocabulary.verb_ids[verb], columns[name]] = number
    return table


@cache
def class_columns(vocabulary: Vocabulary) -> tuple[Ints, Bools]:
    """([C] the verb of each class, [C] whether it is the action itself rather than a role of it)."""
    verbs = np.array([vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions], dtype=np.int64)
    return verbs, np.array([not role for _, role in vocabulary.interactions], dtype=bool)


def _with_agents(scenes: Scenes, vocabulary: Vocabulary, images: Bools, left_out: Ints, *, scored: bool) -> Scenes:
    """`scenes` with an action for every (subject, verb) that has only roles, in the images of the mask `images`; except
    the `left_out` keys of (subject, class)."""
    verb_of, is_agent = class_columns(vocabulary)
    verbs = len(vocabulary.verbs)
    key = scenes.subject * verbs + scenes.verb
    agent = is_agent[scenes.interaction]
    subject, class_ = np.divmod(left_out[is_agent[left_out % len(is_agent)]], len(is_agent))
    taken = np.concatenate([key[agent], subject * verbs + verb_of[class_]])
    candidates = np.flatnonzero(~agent & images[scenes.image_of_hoi] & ~np.isin(key, taken))
    candidates = candidates[np.argsort(key[candidates], kind="stable")]
    said, first = np.unique(key[candidates], return_index=True)
    if not len(said):
        return scenes
    score = np.maximum.reduceat(scenes.score[candidates], first) if scored else np.full(len(said), np.nan)
    subject, verb = np.divmod(said, verbs)
    return with_triplets(
        scenes,
        scenes.image_of_hoi[candidates[first]],
        subject=subject,
        object_=np.full(len(said), -1, dtype=np.int64),
        verb=verb,
        interaction=class_table(vocabulary)[verb, 0],
        score=score,
    )


def with_triplets(
    scenes: Scenes, image: Ints, *, subject: Ints, object_: Ints, verb: Ints, interaction: Ints, score: Floats
) -> Scenes:
    """`scenes` with more triplets, each after the others of its image."""
    images = np.concatenate([scenes.image_of_hoi, image])
    order = np.argsort(images, kind="stable")
    return replace(
        scenes,
        subject=np.concatenate([scenes.subject, subject])[order],
        object=np.concatenate([scenes.object, object_])[order],
        verb=np.concatenate([scenes.verb, verb])[order],
        interaction=np.concatenate([scenes.interaction, interaction])[order],
        score=np.concatenate([scenes.score, score])[order],
        hoi_start=starts_of(np.bincount(images, minlength=len(scenes.image_ids))),
    )


def with_boxes(scenes: Scenes, image: Ints, boxes: Floats, labels: Ints) -> tuple[Scenes, Ints, Ints]:
    """(`scenes` with more boxes, each after the others of its image; their rows; the rows of those that were there).
    image [M]: of each new box, ascending."""
    more = starts_of(np.bincount(image, minlength=len(scenes.image_ids)))
    places = scenes.box_start[1:][image]
    moved = np.append(np.arange(len(scenes.boxes)) + more[scenes.image_of_box], -1)  # no object stays no object
    grown = replace(
        scenes,
        boxes=np.insert(scenes.boxes, places, boxes, axis=0),
        labels=np.insert(scenes.labels, places, labels),
        annotated=np.insert(scenes.annotated, places, True),
        box_start=scenes.box_start + more,
        subject=moved[scenes.subject],
        object=moved[scenes.object],
    )
    return grown, places + np.arange(len(places)), moved
