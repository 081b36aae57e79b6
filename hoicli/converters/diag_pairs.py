"""Pairs without verbs: the box_pairs lists of Diag-HOI, .pkl or .json (hicodet_pair_preds.pkl, pair_pred_wscore.pkl).

    [{"filename", "box_pairs": [{"h_box", "o_box", "o_label", "hoi_score_inter"}]}]

Boxes are [x1, y1, x2, y2] (also as 1 x 4), float edges in pixels of the original image, taken as they are. o_label is
0-79 in COCO order; a person may be the object. A record has no hois, but `pairs`: {"subject", "object",
"interactiveness"} with indices of its boxes and the score as it is. Equal boxes of one label in an image become one,
pairs keep their order, repeated ones too. NumPy arrays may stand for lists and numbers; torch tensors (the V-COCO
files) are refused with advice. Read by neu-vi/Diag-HOI, pair_localization.py.

`read` raises `DataError` with the place in the file: `[3].box_pairs[5].h_box` is in image 3 of the list.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, image_record
from hoicli.converters.numbers import corners, finite, plain
from hoicli.errors import DataError
from hoicli.records.parsing import Record


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image."""
    objects = context.objects("coco")

    def build(item: dict[str, Any]) -> Record:
        table = BoxTable(context.subject)
        pairs = []
        for index, pair in enumerate(item["box_pairs"]):
            where = f".box_pairs[{index}]"
            missing = [key for key in KEYS if not isinstance(pair, dict) or key not in pair]
            if missing:
                raise DataError(f"has no {missing[0]!r}; a pair has {', '.join(KEYS)}", field=where)
            boxes = [_box(pair[key], f"{where}.{key}") for key in KEYS[:2]]
            label = objects.name(_inner(pair["o_label"]), f"{where}.o_label")
            score = finite(_inner(pair["hoi_score_inter"]), f"{where}.hoi_score_inter")
            pairs.append({**table.pair(boxes[0], boxes[1], label), "interactiveness": score})
        return image_record(item["filename"], table.boxes, table.labels, [], pairs=pairs)

    yield from context.each(source.items(), build, source)


KEYS = ("h_box", "o_box", "o_label", "hoi_score_inter")


def _inner(value: Any) -> Any:
    """Arrays as lists, and the item of a list of one item, up to four levels (a pickled list can contain itself)."""
    for _ in range(4):
        value = plain(value)
        if isinstance(value, list | tuple) and len(value) == 1:
            value = value[0]
    return value


def _box(value: Any, field: str) -> list[int | float]:
    """Four finite numbers."""
    box = _inner(value)
    sides = corners(box if isinstance(box, list | tuple) else [box], field)
    return [finite(_inner(side), f"{field}[{index}]") for index, side in enumerate(sides)]
