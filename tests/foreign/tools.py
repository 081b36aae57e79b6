"""What annotation tools export: scene graphs as COCO, CVAT and Label Studio."""

from __future__ import annotations

import json
from pathlib import Path

from tests.foreign import Records, writes
from tests.support.project import Record

OBJECTS = ("bicycle", "dog", "hat", "person", "street", "tree")
PREDICATES = ("behind", "holding", "looking at", "next to", "on", "riding", "wearing")


@writes("_annotations.coco.json", folder="graphs")
def coco_rel(truth: Records, predictions: Records, path: Path) -> None:
    """_annotations.coco.json as SGG-Benchmark's download.py writes it: ids of annotations run through the whole file.
    The ground truth; boxes as x, y, width, height, predicates with their spaces."""
    images: Records = []
    annotations: Records = []
    relations: Records = []
    for record in truth:
        number = record["img_id"]
        images.append({"id": number, "file_name": record["file_name"], "width": 640, "height": 480})
        first = len(annotations)
        for (x1, y1, x2, y2), label in zip(record["boxes"], record["labels"], strict=True):
            width, height = x2 - x1, y2 - y1
            row = {"id": len(annotations), "image_id": number, "category_id": OBJECTS.index(label) + 1}
            box = {"bbox": [x1, y1, width, height], "area": width * height, "iscrowd": 0, "segmentation": []}
            annotations.append({**row, **box})
        for hoi in record["hois"]:
            ends = {"subject_id": first + hoi["subject"], "object_id": first + hoi["object"]}
            predicate = PREDICATES.index(hoi["verb"].replace("_", " ")) + 1
            relations.append({"id": len(relations), "image_id": number, **ends, "predicate_id": predicate})
    content = {
        "images": images,
        "annotations": annotations,
        "rel_annotations": relations,
        "categories": [{"id": at, "name": name} for at, name in enumerate(OBJECTS, start=1)],
        "rel_categories": [{"id": at, "name": name} for at, name in enumerate(PREDICATES, start=1)],
    }
    path.write_text(json.dumps(content))


IN_GROUPS = ("site_0003", "site_0004", "site_0011", "site_0016")


@writes("annotations.xml", folder="own", place="", images=IN_GROUPS)
def cvat(truth: Records, predictions: Records, path: Path) -> None:
    """annotations.xml of "CVAT for images 1.1", of images of fixtures/own in which no box is of two pairs. A group a
    pair."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<annotations>", " <version>1.1</version>"]
    for number, record in enumerate(record for record in truth if record["image_id"] in IN_GROUPS):
        size = f'width="{record["width"]}" height="{record["height"]}"'
        lines.append(f' <image id="{number}" name="{record["file_name"]}" {size}>')
        for at, ((x1, y1, x2, y2), label) in enumerate(zip(record["boxes"], record["labels"], strict=True)):
            group = next((n for n, hoi in enumerate(record["hois"], 1) if at in (hoi["subject"], hoi["object"])), 0)
            sides = f'xtl="{x1:.2f}" ytl="{y1:.2f}" xbr="{x2:.2f}" ybr="{y2:.2f}"'
            lines.append(f'  <box label="{label}" source="manual" {sides} z_order="0" group_id="{group}">')
            verbs = [hoi["verb"] for hoi in record["hois"] if hoi["subject"] == at]
            lines.append(f'   <attribute name="action">{",".join(verbs)}</attribute>')
            lines.append("  </box>")
        lines.append(" </image>")
    path.write_text("\n".join([*lines, "</annotations>", ""]))


DONE, OPEN = ("site_0004", "site_0005", "site_0007", "site_0010"), "site_0012"


@writes("label_studio.json", folder="own", place="", images=DONE)
def label_studio(truth: Records, predictions: Records, path: Path) -> None:
    """Label Studio's JSON export of four images of fixtures/own that have all its verbs, and of one to be done. Boxes
    in per cent; a relation with all verbs of its pair. The last task has no annotation yet."""
    tasks = []
    for number, record in enumerate(filter(lambda record: record["image_id"] in DONE, truth), start=1):
        width, height = record["width"], record["height"]
        result: Records = []
        for at, ((x1, y1, x2, y2), label) in enumerate(zip(record["boxes"], record["labels"], strict=True)):
            place = {"x": 100 * x1 / width, "y": 100 * y1 / height}
            size = {"width": 100 * (x2 - x1) / width, "height": 100 * (y2 - y1) / height}
            value = {**place, **size, "rotation": 0, "rectanglelabels": [label]}
            head = {"type": "rectanglelabels", "id": f"box{at}", "original_width": width, "original_height": height}
            result.append({**head, "value": value})
        pairs: dict[tuple[int, int], list[str]] = {}
        for hoi in record["hois"]:
            pairs.setdefault((hoi["subject"], hoi["object"]), []).append(hoi["verb"])
        for (subject, other), verbs in pairs.items():
            ends = {"from_id": f"box{subject}", "to_id": f"box{other}"}
            result.append({"type": "relation", **ends, "direction": "right", "labels": verbs})
        tasks.append(_task(number, record["file_name"], [{"updated_at": "2025-03-02T10:00:00Z", "result": result}]))
    tasks.append(_task(len(tasks) + 1, f"{OPEN}.jpg", []))
    path.write_text(json.dumps(tasks, separators=(",", ":")))


def _task(number: int, file_name: str, annotations: Records) -> Record:
    upload = f"/data/upload/1/5f2c1a3{number}-{file_name}"
    return {"id": number, "data": {"image": upload}, "annotations": annotations, "predictions": []}
