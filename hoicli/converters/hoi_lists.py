"""What the lists of boxes and interactions share, the layout that HOI-A began: ground truth and predictions.

    {"file_name", "annotations" or "predictions": [{"bbox", "category_id"}],
     "hoi_annotation" or "hoi_prediction": [{"subject_id", "object_id", "category_id", "score"}]}

subject_id and object_id are 0-based indices of the item's boxes. What the formats number otherwise, and what they take
off their boxes, is said in their own modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.numbers import ObjectNumbers, box_indices, corners
from hoicli.errors import DataError

BOX_KEYS = ("predictions", "prediction", "annotations", "annotation")
HOI_KEYS = ("hoi_prediction", "hoi_predictions", "hoi_annotation")
"""The spellings that readers of these files know (PPDM's src/lib/eval/vcoco_eval.py)."""

CHECK_FIRST = 50
"""Images looked at to tell formats apart that differ in the rows only."""

BEYOND = "interactions that point beyond the boxes of their image"
WITHOUT = "interactions without a subject or an object (index -1)"


def key_of(item: dict[str, Any], keys: tuple[str, ...]) -> str:
    """Which spelling the item uses; the first where it has none, for the message that it is missing."""
    return next((key for key in keys if key in item), keys[0])


def rows_under(source: Source, key: str, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The rows under a key of each item (of the first `most`), as far as the file is sound: reading tells the rest."""
    try:
        for _, item in islice(source.items(), most):
            rows = item.get(key) if isinstance(item, dict) else None
            yield from (row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict))
    except DataError:
        return


def first_row_has(source: Source, key: str, wanted: str) -> bool | None:
    """Whether the first row under a key has another key; None where there is no row to tell by."""
    return next((wanted in row for row in rows_under(source, key, CHECK_FIRST)), None)


def is_vcoco(source: Source) -> bool:
    """Images called COCO_, and an interaction 0. Only such names cost a look at all of them: HICO-DET's are its own."""
    if "COCO_" not in str((source.first_item or {}).get("file_name")):
        return False
    return any(str(hoi.get("category_id")).strip() == "0" for hoi in rows_under(source, "hoi_annotation"))


def boxes_of(item: dict[str, Any], key: str, off: Sequence[int] | None = None) -> list[list[Any]]:
    """The boxes of an item as [x1, y1, x2, y2], without what is taken `off`."""
    return [corners(row["bbox"], f".{key}[{index}].bbox", off) for index, row in enumerate(item[key])]


def float_boxes(item: dict[str, Any], key: str) -> list[list[float]]:
    """The boxes of an item as they are, as floats."""
    return [[float(side) for side in box] for box in boxes_of(item, key)]


def labels_of(item: dict[str, Any], key: str, objects: ObjectNumbers) -> list[str]:
    """The labels of an item's boxes."""
    rows = enumerate(item[key])
    return [objects.name(row["category_id"], f".{key}[{index}].category_id") for index, row in rows]


def interactions_of(
    item: dict[str, Any], key: str, boxes: int, context: Context, *, objectless: bool = False
) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """(field, subject, object, interaction) where both are among the item's `boxes`; others are dropped and counted.

    objectless: an object below 0 is none, and the interaction is kept.
    """
    for index, hoi in enumerate(item[key]):
        field = f".{key}[{index}]"
        subject, object_ = box_indices(hoi, field)
        if subject < 0 or (object_ < 0 and not objectless):
            context.drop(WITHOUT, context.place + field)
        elif max(subject, object_) >= boxes:
            context.drop(BEYOND, context.place + field)
        else:
            yield field, subject, object_, hoi


def scores(hoi: dict[str, Any]) -> dict[str, float]:
    """The scores of a predicted interaction: its own, and Diag-HOI's `action_score` as `verb_score`."""
    own = {"score": float(hoi["score"])}
    return {**own, "verb_score": float(hoi["action_score"])} if "action_score" in hoi else own
