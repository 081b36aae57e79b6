"""Predictions as CDN's dictionaries: results.json of CDN and MUREN, and the same list as .json or .pkl (Diag-HOI).

    {"filename", "predictions": [{"bbox", "category_id"}], "hoi_prediction": [{"subject_id", "object_id",
     "category_id", "score"}]}

results.json is a JSON string that holds the repr of a Python dictionary {preds, gts}; `gts` is not read (convert the
annotation file itself: results.json has it resized and without image-level labels). Boxes are float edges in pixels
of the original image, taken as they are: the protocols compare them unshifted. category_id is 0-79 in COCO order for
a box and 0-116 for an interaction (a verb); GEN-VLKT's variant, whose boxes have no category, is `gen_vlkt`.
Diag-HOI's `action_score` becomes `verb_score`. Exact duplicates are kept: they are part of a dump.
Writing (`--to cdn-json`) gives the plain list back; keys hoicli does not know are dropped, numbers lose nothing.

results.json is written by the evaluators of YueLiao/CDN (datasets/hico_eval.py) and OreoChocolate/MUREN
(datasets/hico_eval_ko.py), the pickled list is read by neu-vi/Diag-HOI (standard_eval.py, utils.py). `read` raises
`DataError` naming the item, from [0].
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.formats import image_id_of
from hoicli.converters.numbers import box_indices
from hoicli.errors import DataError
from hoicli.io.outputs import open_output
from hoicli.records.parsing import Record

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
        boxes = item.get("predictions") if isinstance(item, dict) else None
        for box in boxes if isinstance(boxes, list) else ():
            return isinstance(box, dict) and "category_id" in box
    return True


def sniff(source: Source) -> bool:
    """A prediction list whose boxes have categories."""
    return is_prediction_list(source) and boxes_have_categories(source)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image."""
    objects = context.objects("coco")

    def build(item: dict[str, Any]) -> Record:
        boxes = item["predictions"]
        hois = []
        for index, hoi in enumerate(item["hoi_prediction"]):
            field = f".hoi_prediction[{index}]"
            ends = box_indices(hoi, field)
            hois.append(triplet(*ends, context.verb(hoi["category_id"], f"{field}.category_id", base=0), hoi))
        return {
            "image_id": image_id_of(item["filename"]),
            "file_name": item["filename"],
            "boxes": [corners(box) for box in boxes],
            "labels": [
                objects.name(box["category_id"], f".predictions[{index}].category_id")
                for index, box in enumerate(boxes)
            ],
            "hois": hois,
        }

    yield from context.each(source.items(), build, source)


def corners(box: dict[str, Any]) -> list[float]:
    """The four numbers of a box, as they are."""
    x1, y1, x2, y2 = box["bbox"]
    return [float(x1), float(y1), float(x2), float(y2)]


def triplet(subject: int, thing: int, verb: str, hoi: dict[str, Any]) -> dict[str, Any]:
    """An interaction of a record, with the scores of the file's `hoi`."""
    built = {"subject": subject, "object": thing, "verb": verb, "score": float(hoi["score"])}
    if "action_score" in hoi:
        built["verb_score"] = float(hoi["action_score"])
    return built


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """The list as plain JSON, one image at a time. Raises `DataError` for an interaction without a score."""
    object_ids, verb_ids = context.vocabulary.object_ids, context.vocabulary.verb_ids
    with open_output(path) as output:
        separator = b"["
        for record in records:
            require_scores(record, "cdn-json")
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


def require_scores(record: Record, target: str) -> None:
    """Raises `DataError` when an interaction has no score: `target` holds predictions, and this is no prediction."""
    for index, hoi in enumerate(record["hois"]):
        if "score" not in hoi:
            problem = f"missing; --to {target} writes predictions (is this the ground truth?)"
            raise DataError(problem, place=f"image {record['image_id']}", field=f"hois[{index}].score")


def _written(hoi: dict[str, Any], verb_ids: Mapping[str, int]) -> dict[str, Any]:
    item = {
        "subject_id": hoi["subject"],
        "object_id": hoi["object"],
        "category_id": verb_ids[hoi["verb"]],
        "score": hoi["score"],
    }
    if "verb_score" in hoi:
        item["action_score"] = hoi["verb_score"]
    return item
