"""Pairs without verbs: the box_pairs lists of Diag-HOI, .pkl or .json (hicodet_pair_preds.pkl, pair_pred_wscore.pkl).

    [{"filename", "box_pairs": [{"h_box", "o_box", "o_label", "hoi_score_inter"}]}]

Boxes are [x1, y1, x2, y2] (also as 1 x 4), float edges in pixels of the original image, taken as they are. o_label is
0-79 in COCO order; a person may be the object. A record has no hois, but `pairs`: {"subject", "object",
"interactiveness"} with indices of its boxes and the score as it is. Equal boxes of one label in an image become one,
pairs keep their order, repeated ones too. NumPy arrays will do wherever a list or a number will; torch tensors (the
V-COCO files) are refused with what to do. Read by neu-vi/Diag-HOI, pair_localization.py.

`read` raises `DataError` with the place in the file: `[3].box_pairs[5].h_box` is in image 3 of the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.formats import image_id_of
from hoicli.errors import DataError
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT

LARGEST = 1 << 63
"""Integers from here on are damage; JSON writers refuse them."""


def sniff(source: Source) -> bool:
    """A list of dictionaries with box_pairs."""
    if source.kind not in ("json-list", "pickle"):
        return False
    item = source.first_item
    return isinstance(item, dict) and "box_pairs" in item


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    objects = context.objects("coco")

    def build(item: dict[str, Any]) -> Record:
        table = BoxTable()
        pairs = []
        for index, pair in enumerate(item["box_pairs"]):
            where = f".box_pairs[{index}]"
            pairs.append(
                {
                    "subject": table.add(_box(_value(pair, "h_box", where), f"{where}.h_box"), SUBJECT),
                    "object": table.add(
                        _box(_value(pair, "o_box", where), f"{where}.o_box"),
                        objects.name(_inner(_value(pair, "o_label", where)), f"{where}.o_label"),
                    ),
                    "interactiveness": _number(_value(pair, "hoi_score_inter", where), f"{where}.hoi_score_inter"),
                }
            )
        return {
            "image_id": image_id_of(item["filename"]),
            "file_name": item["filename"],
            "boxes": table.boxes,
            "labels": table.labels,
            "hois": [],
            "pairs": pairs,
        }

    yield from context.each(source.items(), build, source)


def _value(pair: Any, key: str, where: str) -> Any:
    if not isinstance(pair, dict) or key not in pair:
        raise DataError(f"has no {key!r}; a pair has h_box, o_box, o_label and hoi_score_inter", field=where)
    return pair[key]


def _inner(value: Any) -> Any:
    """Arrays as lists, and what is inside of lists of one item, to a depth (a pickled list can hold itself)."""
    for _ in range(4):
        if isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
        else:
            break
    return value


def _number(value: Any, field: str) -> int | float:
    """A finite number. Raises `DataError` for anything else."""
    number = value if type(value) is float else _inner(value)
    if type(number) not in (int, float) or not -LARGEST < number < LARGEST:
        shown = number if type(number) is float else f"a {type(number).__name__}"
        raise DataError(f"{shown} is no finite number; mend what wrote it, or pass --on-error skip", field=field)
    return number


def _box(value: Any, field: str) -> list[int | float]:
    """Four finite numbers."""
    box = _inner(value)
    if not isinstance(box, list | tuple) or len(box) != 4:
        shown = f"{len(box)} items" if isinstance(box, list | tuple) else f"a {type(box).__name__}"
        raise DataError(f"{shown} where a box has four numbers: [x1, y1, x2, y2]", field=field)
    return [_number(x, f"{field}[{index}]") for index, x in enumerate(box)]
