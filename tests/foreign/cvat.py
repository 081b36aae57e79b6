"""annotations.xml of "CVAT for images 1.1", of images of fixtures/own in which no box is of two pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

FOLDER, PLACE, FILE = "own", "", "annotations.xml"
DONE = ("site_0003", "site_0004", "site_0011", "site_0016")


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """A group a pair."""
    root = Element("annotations")
    SubElement(root, "version").text = "1.1"
    for number, record in enumerate(filter(lambda record: record["image_id"] in DONE, truth)):
        size = {key: str(record[key]) for key in ("width", "height")}
        image = SubElement(root, "image", {"id": str(number), "name": record["file_name"], **size})
        groups = _groups(record)
        for at, (box, label) in enumerate(zip(record["boxes"], record["labels"], strict=True)):
            sides = {key: f"{side:.2f}" for key, side in zip(("xtl", "ytl", "xbr", "ybr"), box, strict=True)}
            group, verbs = groups.get(at, (0, []))
            row = SubElement(image, "box", {"label": label, **sides, **({"group_id": str(group)} if group else {})})
            if verbs:
                SubElement(row, "attribute", {"name": "action"}).text = ",".join(verbs)
    indent(root, " ")
    ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _groups(record: dict[str, Any]) -> dict[int, tuple[int, list[str]]]:
    """The group of each box in one, with the verbs of what acts."""
    groups: dict[int, tuple[int, list[str]]] = {}
    for hoi in record["hois"]:
        verbs = groups.setdefault(hoi["subject"], (len(groups) // 2 + 1, []))[1]
        verbs.append(hoi["verb"])
        groups[hoi["object"]] = groups[hoi["subject"]][0], []
    return groups
