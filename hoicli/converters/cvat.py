"""CVAT's "CVAT for images 1.1" (annotations.xml): boxes, whose groups and attributes say who does what.

    <image name="site_0001.jpg" width="640" height="480">
      <box label="worker" xtl="10.0" ytl="20.0" xbr="110.0" ybr="220.0" group_id="1">
        <attribute name="action">wear</attribute></box>
      <box label="helmet" xtl="40.0" ytl="20.0" xbr="70.0" ybr="45.0" group_id="1"/>
    </image>

CVAT has no relations: its makers advise an attribute with the action and a group (cvat-ai/cvat#7121). A box with a
value in an attribute called action, interaction, verb, relation or predicate (or a plural of these; several verbs with
commas between them) acts on the other boxes of its group; where all boxes act, on the other one. Where several verbs
or several boxes act on several objects the file does not say which on which, and is refused. Coordinates are edges in
pixels from 0 and stay as they are. The file states its labels, so any are taken without --dataset. Its COCO export has
no groups; one to which somebody added rel_annotations is `coco-rel`.

`read` raises `DataError` naming the element, from image[0] and box[0].
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree.ElementTree import Element

from hoicli.converters.containers.source import Source
from hoicli.converters.context import UNTURNED, Context, image_record
from hoicli.converters.numbers import shown, whole_number
from hoicli.errors import DataError
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import normalise

ALONE = "actions of a box that is alone in its group, or in none"
IDLE = "groups without an action"
NOTHING = ("", "none", "__undefined__")
"""Values of an attribute that say that nobody acts."""
SIDES = ("xtl", "ytl", "xbr", "ybr")

_ACTION = re.compile(r"(action|interaction|verb|relation|predicate)s?", re.IGNORECASE)


def sniff(source: Source) -> bool:
    """XML of annotations."""
    return source.kind == "xml" and source.xml.tag == "annotations"


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image, also those without boxes."""
    if source.xml.find("track") is not None:
        raise DataError('is "CVAT for video"; export it as "CVAT for images 1.1"', place=source.name)

    def build(image: Element) -> Record:
        for shape in image:
            if shape.tag != "box":
                context.drop(f"shapes that are no box ({shape.tag[:40]})", context.place)
        rows = image.findall("box")
        boxes = [_corners(row, f".box[{index}]") for index, row in enumerate(rows)]
        labels = [normalise(row.attrib["label"]) for row in rows]
        size = {key: whole_number(image.attrib[key], f".{key}") for key in ("width", "height")}
        return image_record(image.attrib["name"], boxes, labels, _triplets(rows, context), size)

    items = ((f"image[{index}]", image) for index, image in enumerate(source.xml.findall("image")))
    yield from context.each(items, build, source)


def _corners(row: Element, field: str) -> list[float]:
    """The box. Raises `DataError` for one that is turned."""
    sides = {key: _number(row.attrib[key], f"{field}.{key}") for key in (*SIDES, *({"rotation"} & {*row.attrib}))}
    if sides.pop("rotation", 0):
        raise DataError(f"{row.get('rotation')} degrees: {UNTURNED}", field=f"{field}.rotation")
    return [*sides.values()]


def _number(text: str, field: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{shown(text)} is no number; export it again", field=field) from None


def _triplets(rows: list[Element], context: Context) -> list[dict[str, Any]]:
    """What the boxes of an image do, by group. Raises `DataError` where it is not said on which object."""
    groups: dict[str, dict[int, list[str]]] = {}
    hois: list[dict[str, Any]] = []
    for at, row in enumerate(rows):
        group = row.get("group_id", "0")
        groups.setdefault(f"alone {at}" if group == "0" else group, {})[at] = _verbs(row)
    for members in groups.values():
        acting = [at for at, verbs in members.items() if verbs]
        if not acting and len(members) > 1:
            context.drop(IDLE, f"{context.place}.box[{min(members)}]")
        for at in acting:
            verbs, field = members[at], f".box[{at}]"
            others = [other for other in members if other not in acting] or [each for each in acting if each != at]
            if not others:
                context.drop(ALONE, f"{context.place}{field}")
            if len(others) > 1 and len(verbs) * len(acting) > 1:
                problem = f"{', '.join(verbs)[:60]}: {len(others)} objects in the group, and not said on which of them"
                raise DataError(f"{problem}; make a group of each (draw the box again)", field=field)
            hois += [{"subject": at, "object": other, "verb": verb} for verb in verbs for other in others]
    return hois


def _verbs(row: Element) -> list[str]:
    """The verbs in a box's attributes."""
    values = [each.text or "" for each in row.findall("attribute") if _ACTION.fullmatch(each.get("name", "").strip())]
    said = [normalise(verb) for value in values for verb in value.split(",")]
    return [verb for verb in said if verb.lower() not in NOTHING]
