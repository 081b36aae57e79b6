"""instances_test2015.json as fredzzhang/hicodet has it: 1-based boxes, alphabetical objects, `empty` images listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load

FILE = "instances_test2015.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """Pairs as parallel lists; the image-level labels of `truth` have no place in this format."""
    vocabulary = load("hico")
    objects = list(vocabulary.alphabetical_objects)
    annotations: list[dict[str, Any]] = []
    for record in truth:
        annotation: dict[str, Any] = {"boxes_h": [], "boxes_o": [], "hoi": [], "object": [], "verb": []}
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
