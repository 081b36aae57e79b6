"""Whether a file's numbers belong to a dataset, judged from its first records with that dataset's names. Several
datasets share one layout (HOI-A's and HOI-W's ground truth looks like HICO-DET's in the HOI-A layout), and every number
of the smaller one is also one of the larger: with the wrong names, "smoke cigarette" becomes "adjust car". Two signs
show it: few pairs of verb and object are interactions of the dataset (600 of HICO-DET's 117 x 80; 6 of HOI-A's 21,623
triplets), and the images have other names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import Vocabulary

SAMPLE = 200
"""Ours: the number of images checked."""

IMAGE_NAMES = {"hico": re.compile(r"HICO_(test|train)2015_\d{8}")}
"""The pattern of a dataset's image names, if they identify it."""


def doubt(records: Sequence[Record], vocabulary: Vocabulary, *, predicted: bool, by_pair: bool) -> str:
    """The evidence that the numbers of these records are not the vocabulary's; "" if they are. More than half of the
    annotated triplets must be interactions of the dataset. For predictions, more than half of the best of each image,
    or the images' names must fit, since a poor detector predicts any pair. `by_pair`: the file numbers verbs and
    objects separately; if it numbers interactions, only the images' names count.
    """
    names = IMAGE_NAMES.get(vocabulary.name)
    named = sum(names is not None and names.fullmatch(str(record["image_id"])) is not None for record in records)
    found = [(record, hoi) for record in records for hoi in _telling(record["hois"], predicted=predicted)]
    unknown = [place for place in found if _names(*place) not in vocabulary.interaction_ids]
    own_images = 2 * named > len(records)
    own_pairs = by_pair and 2 * len(unknown) < len(found)
    if not found or own_pairs or (own_images and (predicted or not by_pair)):
        return ""
    reasons = []
    if by_pair:
        (record, hoi), which = unknown[0], "best predictions" if predicted else "triplets"
        first = f"{' '.join(_names(record, hoi))} in {record['image_id']}"
        reasons.append(f"{len(unknown):,} of the first {len(found):,} {which} are no interaction ({first})")
    if not own_images and names is not None:
        reasons.append(f"the images have other names ({records[0]['image_id']})")
    return f"read with {vocabulary.title}'s numbers, {' and '.join(reasons)}"


def _telling(hois: list[dict[str, Any]], *, predicted: bool) -> list[dict[str, Any]]:
    """The triplets of an image that are checked: all annotated ones, or the best prediction."""
    return [max(hois, key=lambda hoi: float(hoi["score"]))] if predicted and hois else hois


def _names(record: Record, hoi: dict[str, Any]) -> tuple[str, str]:
    return hoi["verb"], record["labels"][hoi["object"]]
