"""The rows of lists of images with numbered boxes and interactions, which many projects write in much the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Number = Callable[[Any], Any]


def boxes(record: dict[str, Any], ids: Mapping[str, int], number: Number = lambda value: value) -> list[dict[str, Any]]:
    """The boxes with the number of each label; `number` makes the numbers of the file."""
    return [
        {"bbox": [number(side) for side in box], "category_id": number(ids[label])}
        for box, label in zip(record["boxes"], record["labels"], strict=True)
    ]


def hois(
    record: dict[str, Any],
    id_of: Callable[[str, str], int],
    number: Number = lambda value: value,
    key: str = "category_id",
) -> list[dict[str, Any]]:
    """The interactions, with the number of each verb and label of its object, and with the scores they have."""
    found = []
    for hoi in record["hois"]:
        row = {"subject_id": number(hoi["subject"]), "object_id": number(hoi["object"])}
        row[key] = number(id_of(hoi["verb"], record["labels"][hoi["object"]]))
        found.append({**row, "score": number(hoi["score"])} if "score" in hoi else row)
    return found
