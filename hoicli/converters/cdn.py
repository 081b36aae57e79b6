"""Predictions as CDN's dictionaries: results.json of CDN and MUREN, and the same list as .json or .pkl (Diag-HOI).

    {"filename", "predictions": [{"bbox", "category_id"}], "hoi_prediction": [{"subject_id", "object_id",
     "category_id", "score"}]}

results.json is a JSON string that holds the repr of a Python dictionary {preds, gts}; `gts` is not read (convert the
annotation file itself; here it is resized and has no image-level labels). Boxes are float edges in pixels of the
original image, taken as they are: the protocols compare them unshifted. category_id is 0-79 in COCO order for a box and
0-116 for an interaction (a verb); GEN-VLKT's variant, whose boxes have no category, is `gen_vlkt`. Diag-HOI's
`action_score` becomes `verb_score`. Exact duplicates are kept: they are part of a dump. Writing (`--to cdn-json`) gives
the plain list back; keys hoicli does not know are dropped, numbers lose nothing.

results.json is written by the evaluators of YueLiao/CDN (datasets/hico_eval.py) and OreoChocolate/MUREN
(datasets/hico_eval_ko.py), the pickled list is read by neu-vi/Diag-HOI (standard_eval.py, utils.py). `read` raises
`DataError` naming the item, from [0].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from hoicli.converters.containers.source import Source
from hoicli.converters.containers.text import write_items
from hoicli.converters.context import Context, image_record
from hoicli.converters.hoi_lists import first_row_has, float_boxes, labels_of
from hoicli.converters.numbers import box_indices
from hoicli.errors import DataError, arg
from hoicli.records.parsing import Record


def sniff(source: Source) -> bool:
    """A prediction list whose boxes have categories (or that has no box at all)."""
    return source.first_has("hoi_prediction", "filename") and (
        first_row_has(source, "predictions", "category_id") is not False
    )


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    objects, verbs = context.objects("coco"), context.verbs(base=0)

    def build(item: dict[str, Any]) -> Record:
        hois = []
        for index, hoi in enumerate(item["hoi_prediction"]):  # hundreds of thousands: most need no call
            subject, object_, number = hoi["subject_id"], hoi["object_id"], hoi["category_id"]
            if not type(subject) is type(object_) is int:
                subject, object_ = box_indices(hoi, f".hoi_prediction[{index}]")
            verb = verbs.get(number) if type(number) is int else None
            if verb is None:
                verb = context.verb(number, f".hoi_prediction[{index}].category_id", base=0)
            made = {"subject": subject, "object": object_, "verb": verb, "score": float(hoi["score"])}
            if "action_score" in hoi:
                made["verb_score"] = float(hoi["action_score"])
            hois.append(made)
        boxes = float_boxes(item, "predictions")
        return image_record(item["filename"], boxes, labels_of(item, "predictions", objects), hois)

    yield from context.each(source.items(), build, source)


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """The list as plain JSON, one image at a time. Raises `DataError` for an interaction without a score."""
    object_ids = context.numbered("objects", context.vocabulary.object_ids)
    verb_ids = context.numbered("verbs", context.vocabulary.verb_ids)

    def interaction(hoi: dict[str, Any]) -> dict[str, Any]:
        written = {"subject_id": hoi["subject"], "object_id": hoi["object"], "category_id": verb_ids[hoi["verb"]]}
        written["score"] = hoi["score"]
        return {**written, "action_score": hoi["verb_score"]} if "verb_score" in hoi else written

    def image(record: Record) -> bytes:
        require_scores(record, "cdn-json")
        boxes = zip(record["boxes"], record["labels"], strict=True)
        return orjson.dumps(
            {
                "filename": record.get("file_name", f"{record['image_id']}.jpg"),
                "predictions": [{"bbox": box, "category_id": object_ids[label]} for box, label in boxes],
                "hoi_prediction": [interaction(hoi) for hoi in record["hois"]],
            }
        )

    write_items(path, map(image, records), b"[]")


def require_scores(record: Record, target: str) -> None:
    """Raises `DataError` if an interaction has no score: `target` is a format of predictions."""
    for index, hoi in enumerate(record["hois"]):
        if "score" not in hoi:
            problem = f"missing; {arg('to', target)} writes predictions (is this the ground truth?)"
            raise DataError(problem, place=f"image {record['image_id']}", field=f"hois[{index}].score")
