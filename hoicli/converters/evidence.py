"""Whether a file's numbers are a dataset's: what its first records say, once they are named by that dataset.

One layout serves several datasets (HOI-A's and HOI-W's ground truth looks like HICO-DET's in the HOI-A layout), and
every number of the smaller one is a number of the larger. Named by the wrong one, a smoked cigarette is an adjusted
car. Two things give that away: the pairs of verb and object, of which few are interactions of the dataset (600 of
HICO-DET's 117 x 80; of HOI-A's triplets 6 in 21,623), and what the images are called.
"""

import re
from collections.abc import Sequence
from typing import Any

from hoicli.records.parsing import Record
from hoicli.vocabulary.datasets import DATASETS
from hoicli.vocabulary.labels import Vocabulary

SAMPLE = 200
"""Ours: images that are looked at."""

IMAGE_NAMES = {"hico": re.compile(r"HICO_(test|train)2015_\d{8}")}
"""What the images of a dataset are called, where that tells it."""


def doubt(records: Sequence[Record], vocabulary: Vocabulary, *, predicted: bool, by_pair: bool) -> str:
    """What speaks against the numbers of these records being the vocabulary's; "" where they are shown to be.

    More than half of the annotated triplets must be interactions of the dataset. Of predictions it is the best of each
    image, or else the images' names: a detector that has learned little predicts anything. `by_pair`: the file numbers
    verbs and objects apart; where it numbers interactions, the images alone tell.
    """
    names = IMAGE_NAMES.get(vocabulary.name)
    named = sum(names is not None and names.fullmatch(str(record["image_id"])) is not None for record in records)
    found = [(record, hoi) for record in records for hoi in _telling(record["hois"], predicted=predicted)]
    strange = [place for place in found if _names(*place) not in vocabulary.interaction_ids]
    own_images = 2 * named > len(records)
    own_pairs = by_pair and 2 * len(strange) < len(found)
    if not found or own_pairs or (own_images and (predicted or not by_pair)):
        return ""
    title, reasons = DATASETS[vocabulary.name].partition(":")[0], []
    if by_pair:
        (record, hoi), which = strange[0], "best predictions" if predicted else "triplets"
        first = f"{' '.join(_names(record, hoi))} in {record['image_id']}"
        reasons.append(f"{len(strange):,} of the first {len(found):,} {which} are no interaction ({first})")
    if not own_images:
        reasons.append(f"the images have other names ({records[0]['image_id']})")
    return f"read with {title}'s numbers, {' and '.join(reasons)}"


def _telling(hois: list[dict[str, Any]], *, predicted: bool) -> list[dict[str, Any]]:
    """The triplets of an image that are looked at: all that are annotated, or the best that is predicted."""
    return [max(hois, key=lambda hoi: float(hoi["score"]))] if predicted and hois else hois


def _names(record: Record, hoi: dict[str, Any]) -> tuple[str, str]:
    return hoi["verb"], record["labels"][hoi["object"]]
