"""HICO-DET's ground truth as one JSON document, in two layouts."""

from __future__ import annotations

import json
from pathlib import Path

from hoicli.vocabulary.datasets import load
from tests.foreign import Records, writes
from tests.support.project import Record


@writes("instances_test2015.json")
def pocket(truth: Records, predictions: Records, path: Path) -> None:
    """instances_test2015.json as fredzzhang/hicodet has it: 1-based boxes, alphabetical objects, `empty` images listed.
    Pairs as parallel lists; the image-level labels of `truth` have no place in this format."""
    vocabulary = load("hico")
    objects = list(vocabulary.alphabetical_objects)
    annotations: Records = []
    for record in truth:
        annotation: Record = {"boxes_h": [], "boxes_o": [], "hoi": [], "object": [], "verb": []}
        for hoi in record["hois"]:
            label = record["labels"][hoi["object"]]
            annotation["boxes_h"].append([x + 1.0 for x in record["boxes"][hoi["subject"]]])
            annotation["boxes_o"].append([x + 1.0 for x in record["boxes"][hoi["object"]]])
            annotation["hoi"].append(vocabulary.interaction_ids[hoi["verb"], label])
            annotation["object"].append(objects.index(label))
            annotation["verb"].append(vocabulary.verb_ids[hoi["verb"]])
        annotations.append(annotation)
    content = {
        "annotation": annotations,
        "filenames": [record["file_name"] for record in truth],
        "empty": [row for row, record in enumerate(truth) if not record["hois"]],
        "objects": objects,
        "verbs": list(vocabulary.verbs),
        "correspondence": [
            [number, objects.index(name), vocabulary.verb_ids[verb]]
            for number, (verb, name) in enumerate(vocabulary.interactions)
        ],
        "size": [[record["width"], record["height"]] for record in truth],
    }
    path.write_text(json.dumps(content))


@writes("anno_list.json")
def no_frills(truth: Records, predictions: Records, path: Path) -> None:
    """anno_list.json as no_frills_hoi_det writes it: 0-based boxes, ids as text, the train split first. A train image
    (the first of `truth` under another name), then all of `truth`."""
    train = {**truth[0], "image_id": "HICO_train2015_00000001", "file_name": "HICO_train2015_00000001.jpg"}
    content = [_item(train, "train")] + [_item(record, "test") for record in truth]
    path.write_text(json.dumps(content))


def _item(record: Record, split: str) -> Record:
    ids = load("hico").interaction_ids
    hois: dict[str, Record] = {}
    for hoi in record["hois"]:
        number = f"{ids[hoi['verb'], record['labels'][hoi['object']]] + 1:03}"
        entry = hois.setdefault(number, _entry(number, invis=0))
        humans, things = entry["human_bboxes"], entry["object_bboxes"]
        for index, boxes in ((hoi["subject"], humans), (hoi["object"], things)):
            if record["boxes"][index] not in boxes:
                boxes.append(record["boxes"][index])
        ends = (humans, hoi["subject"]), (things, hoi["object"])
        entry["connections"].append([boxes.index(record["boxes"][index]) for boxes, index in ends])
    positive = [f"{ids[verb, name] + 1:03}" for verb, name in record["image_hois"]]
    for number in positive:
        hois.setdefault(number, _entry(number, invis=1))
    return {
        "global_id": record["image_id"],
        "image_path_postfix": f"{split}2015/{record['file_name']}",
        "image_size": [record["height"], record["width"], 3],
        "hois": list(hois.values()),
        "pos_hoi_ids": positive,
        "neg_hoi_ids": ["600"],
    }


def _entry(number: str, *, invis: int) -> Record:
    return {"id": number, "human_bboxes": [], "object_bboxes": [], "connections": [], "invis": invis}
