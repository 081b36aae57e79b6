"""Annotations with triplets that were missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hoicli.evaluation.protocols import Protocol
from hoicli.records.kit import starts_of
from hoicli.records.roles import with_triplets
from hoicli.records.scenes import Scenes
from hoicli.validation.candidates import Missing
from hoicli.validation.duplicates import merged, near_duplicates
from hoicli.vocabulary.labels import Vocabulary


def with_missing(scenes: Scenes, found: Missing, vocabulary: Vocabulary, protocol: Protocol, same: float) -> Scenes:
    """The images with the missing triplets: on the annotated boxes that they belong to, else on new ones, which are
    those of the surest model; new boxes that are near duplicates of each other (`same`) are one."""
    sides = (
        (found.near_subject, found.subject, found.label_of_subject),
        (found.near_object, found.object, found.label_of_object),
    )
    fresh = [(near < 0) & ~np.isnan(boxes[:, 0]) for near, boxes, _ in sides]
    new = np.concatenate([boxes[rows] for (_, boxes, _), rows in zip(sides, fresh, strict=True)])
    label = np.concatenate([labels[rows] for (_, _, labels), rows in zip(sides, fresh, strict=True)])
    image = np.concatenate([found.image[rows] for rows in fresh])
    order = np.argsort(image, kind="stable")
    more = starts_of(np.bincount(image, minlength=len(scenes.image_ids)))
    places = scenes.box_start[1:][image[order]]
    moved = np.append(np.arange(len(scenes.boxes)) + more[scenes.image_of_box], -1)
    where = np.empty(len(order), dtype=np.int64)
    where[order] = places + np.arange(len(order))
    grown = replace(
        scenes,
        boxes=np.insert(scenes.boxes, places, new[order], axis=0),
        labels=np.insert(scenes.labels, places, label[order]),
        annotated=np.insert(scenes.annotated, places, True),
        box_start=scenes.box_start + more,
        subject=moved[scenes.subject],
        object=moved[scenes.object],
    )
    ends = []
    for (near, _, _), rows in zip(sides, fresh, strict=True):
        end = moved[near]
        end[rows], where = where[: rows.sum()], where[rows.sum() :]
        ends.append(end)
    verbs = np.array([vocabulary.verb_ids[verb] for verb, _ in vocabulary.interactions], dtype=np.int64)
    grown = with_triplets(
        grown,
        found.image,
        subject=ends[0],
        object_=ends[1],
        verb=verbs[found.interaction],
        interaction=found.interaction,
        score=np.full(len(found.image), np.nan),
    )
    own = np.ones(len(grown.boxes), dtype=bool)
    own[moved[:-1]] = False
    alike = near_duplicates(grown, vocabulary, protocol, same)
    return merged(grown, alike.only(own[alike.first] & own[alike.second]))
