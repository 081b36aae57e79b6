"""Predictions of GEN-VLKT and HOICLIP: results.json as CDN's (`hoi_lists`), but with boxes that have no class.

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

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, entry, image_record
from hoicli.converters.hoi_lists import float_boxes, has_classes
from hoicli.converters.numbers import whole_number
from hoicli.records.parsing import Record

CLASSLESS = "boxes without a class (no interaction uses them)"


def is_classless(source: Source) -> bool:
    """Boxes without categories."""
    return not has_classes(source)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image."""
    interactions, highest = context.interactions(), -1

    def build(item: dict[str, Any]) -> Record:
        nonlocal highest
        boxes = list(enumerate(float_boxes(item, "predictions")))
        used, table, hois = set(), BoxTable(context.subject), []
        for index, hoi in enumerate(item["hoi_prediction"]):
            field = f".hoi_prediction[{index}]"
            number = whole_number(hoi["category_id"], f"{field}.category_id")
            verb, label = interactions.name(number, f"{field}.category_id")
            subject, person = entry(boxes, hoi["subject_id"], f"{field}.subject_id")
            object_, other = entry(boxes, hoi["object_id"], f"{field}.object_id")
            hois.append({**table.pair(person, other, label), "verb": verb, "score": float(hoi["score"])})
            if "action_score" in hoi:
                hois[-1]["verb_score"] = float(hoi["action_score"])
            used |= {subject, object_}
            highest = max(highest, number)
        unused = [index for index, _ in boxes if index not in used]
        if unused:
            context.drop(CLASSLESS, f"{context.place}.predictions[{unused[0]}]", len(unused))
        return image_record(item["filename"], table.boxes, table.labels, hois)

    yield from context.each(source.items(), build, source)
    if 0 <= highest < len(context.vocabulary.verbs):
        classes = len(context.vocabulary.interactions)
        context.announce(
            f"{source.name}: category_id read as interactions (0-{classes - 1}), but none exceeds {highest}: if "
            "these are verbs, the boxes have lost their category_id"
        )
