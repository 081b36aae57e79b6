"""Predictions as CDN's dictionaries: results.json of CDN and MUREN, and the same list as .json or .pkl (Diag-HOI).

    {"filename", "predictions": [{"bbox", "category_id"}], "hoi_prediction": [{"subject_id", "object_id",
     "category_id", "score"}]}

results.json is a JSON string that holds the repr of a Python dictionary {preds, gts}; `gts` is not read (convert the
annotation file itself: results.json has it resized and without image-level labels). Boxes are float edges in pixels
of the original image, taken as they are: the protocols compare them unshifted. category_id is 0-79 in COCO order for
a box and 0-116 for an interaction (a verb); GEN-VLKT's variant, whose boxes have no category, is `gen_vlkt`.
Diag-HOI's `action_score` becomes `verb_score`. Exact duplicates are kept: they are part of a dump.
Writing (`--to cdn-json`) gives the plain list back; keys hoicli does not know are dropped, numbers lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from hoicli.converters import Context, entry, image_id_of
from hoicli.converters.source import Source
from hoicli.records import Record
from hoicli.streams import open_output

CHECK_FIRST = 50
"""Images looked at to tell CDN's boxes (with a category) from GEN-VLKT's (without)."""


def is_prediction_list(source: Source) -> bool:
    """A list of dictionaries with hoi_prediction and filename, as text in text, JSON or a pickle."""
    if source.kind not in ("json-text", "json-list", "pickle"):
        return False
    item = source.first_item
    return isinstance(item, dict) and {"hoi_prediction", "filename"} <= item.keys()


def boxes_have_categories(source: Source) -> bool:
    """Whether the first box found carries a category_id (true where there is no box at all)."""
    for (_, item), _ in zip(source.items(), range(CHECK_FIRST), strict=False):
        for box in item.get("predictions", ()):
            return "category_id" in box
    return True


def sniff(source: Source) -> bool:
    """A prediction list whose boxes have categories."""
    return is_prediction_list(source) and boxes_have_categories(source)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    objects, verbs = context.vocabulary.objects, context.vocabulary.verbs

    def build(item: dict[str, Any]) -> Record:
        boxes = item["predictions"]
        hois = []
        for index, hoi in enumerate(item["hoi_prediction"]):
            built = {
                "subject": int(hoi["subject_id"]),
                "object": int(hoi["object_id"]),
                "verb": entry(verbs, hoi["category_id"], f".hoi_prediction[{index}].category_id"),
                "score": float(hoi["score"]),
            }
            if "action_score" in hoi:
                built["verb_score"] = float(hoi["action_score"])
            hois.append(built)
        return {
            "image_id": image_id_of(item["filename"]),
            "file_name": item["filename"],
            "boxes": [[float(x) for x in box["bbox"]] for box in boxes],
            "labels": [
                entry(objects, box["category_id"], f".predictions[{index}].category_id")
                for index, box in enumerate(boxes)
            ],
            "hois": hois,
        }

    yield from context.each(source.items(), build, source)


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """The list as plain JSON, one image at a time."""
    object_ids, verb_ids = context.vocabulary.object_ids, context.vocabulary.verb_ids
    with open_output(path) as output:
        separator = b"["
        for record in records:
            item = {
                "filename": record.get("file_name", f"{record['image_id']}.jpg"),
                "predictions": [
                    {"bbox": box, "category_id": object_ids[label]}
                    for box, label in zip(record["boxes"], record["labels"], strict=True)
                ],
                "hoi_prediction": [_written(hoi, verb_ids) for hoi in record["hois"]],
            }
            output(separator + orjson.dumps(item))
            separator = b",\n"
        output(b"]\n" if separator == b",\n" else b"[]\n")


def _written(hoi: dict[str, Any], verb_ids: Any) -> dict[str, Any]:
    item = {
        "subject_id": hoi["subject"],
        "object_id": hoi["object"],
        "category_id": verb_ids[hoi["verb"]],
        "score": hoi["score"],
    }
    if "verb_score" in hoi:
        item["action_score"] = hoi["verb_score"]
    return item
