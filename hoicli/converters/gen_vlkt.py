"""Predictions of GEN-VLKT and HOICLIP: results.json as CDN's (`cdn`), but with boxes that have no class.

    {"filename", "predictions": [{"bbox"}], "hoi_prediction": [{"subject_id", "object_id", "category_id", "score"}]}

category_id of an interaction is one of the 600 of HICO-DET, from 0, in HICO order; its verb and its object's label
come from it, subjects are persons. A box that is the object of two classes becomes two boxes of the record, equal
boxes of one label become one, and a box that no interaction uses has no class: it is left out and counted. Boxes are
float edges in pixels of the original image, taken as they are. Scores may exceed 1; exact duplicates are kept (the
project's top-k looks scores up by equality and gives equal ones the same triplet). Nothing is shifted.

Written by YueLiao/gen-vlkt (datasets/hico_eval_triplet.py) and Artanic30/HOICLIP
(datasets/datasets_gen/hico_eval_triplet.py). `read` raises `DataError` naming the item, from [0].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.cdn import boxes_have_categories, corners, is_prediction_list, triplet
from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, entry
from hoicli.converters.formats import image_id_of
from hoicli.converters.numbers import whole_number
from hoicli.errors import DataError
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT

CLASSLESS = "boxes without a class (no interaction uses them)"


def sniff(source: Source) -> bool:
    """A prediction list whose boxes have no categories."""
    return is_prediction_list(source) and not boxes_have_categories(source)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    verbs, labels = zip(*context.vocabulary.interactions, strict=True)
    highest = -1

    def build(placed: tuple[str, dict[str, Any]]) -> Record:
        nonlocal highest
        where, item = placed
        boxes = [corners(box) for box in item["predictions"]]
        unused = dict.fromkeys(range(len(boxes)))
        table = BoxTable()
        hois = []
        for index, hoi in enumerate(item["hoi_prediction"]):
            field = f".hoi_prediction[{index}]"
            verb = entry(verbs, hoi["category_id"], f"{field}.category_id")
            number = whole_number(hoi["category_id"], f"{field}.category_id")
            subject = _box_index(hoi["subject_id"], len(boxes), f"{field}.subject_id")
            thing = _box_index(hoi["object_id"], len(boxes), f"{field}.object_id")
            rows = table.add(boxes[subject], SUBJECT), table.add(boxes[thing], labels[number])
            hois.append(triplet(*rows, verb, hoi))
            unused.pop(subject, None)
            unused.pop(thing, None)
            highest = max(highest, number)
        if unused:
            context.drop(CLASSLESS, f"{source.name}: {where}.predictions[{next(iter(unused))}]", len(unused))
        return {
            "image_id": image_id_of(item["filename"]),
            "file_name": item["filename"],
            "boxes": table.boxes,
            "labels": table.labels,
            "hois": hois,
        }

    items = ((where, (where, item)) for where, item in source.items())
    yield from context.each(items, build, source)
    if 0 <= highest < len(context.vocabulary.verbs):
        context.announce(
            f"{source.name}: category_id read as interactions (0-{len(verbs) - 1}), but none exceeds {highest}: if "
            "these are verbs, the boxes have lost their category_id"
        )


def _box_index(value: Any, count: int, field: str) -> int:
    """An index of the item's boxes; -1 is none (Python would take the last box)."""
    index = whole_number(value, field)
    if not 0 <= index < count:
        raise DataError(f"index {index}, but the image has {count} boxes; indices are 0-based", field=field)
    return index
