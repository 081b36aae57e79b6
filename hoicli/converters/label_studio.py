"""Label Studio's JSON export: rectangles and relations (labelstud.io, guide/task_format and tags/relations).

    [{"data": {"image": "/data/upload/1/5f2c1a3b-site_0001.jpg"}, "annotations": [{"result": [
       {"type": "rectanglelabels", "id": "a", "original_width", "original_height",
        "value": {"x", "y", "width", "height", "rotation", "rectanglelabels": ["worker"]}},
       {"type": "relation", "from_id": "a", "to_id": "b", "direction": "right", "labels": ["wear"]}]}]}]

x, y, width and height are per cent of the image, between edges, and become [x, y, x + width, y + height] in pixels,
rounded to a ten-thousandth. A relation goes from from_id to to_id (right), back (left) or both ways (bi), and is a
triplet for each of its labels. The file states its labels, so any are taken without --dataset.

Of several annotations of a task that is taken which is marked `ground_truth`, else the latest. Tasks that nobody
annotated are no images, and predictions of models are not read: both are counted. The image's name is that of
`data.image` without its server, and without the eight digits that an upload puts before it. JSON-MIN has no relations.
`read` raises `DataError` naming the item, from [0].
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from hoicli.converters.containers.source import Source
from hoicli.converters.context import UNTURNED, Context, image_record
from hoicli.converters.numbers import finite
from hoicli.errors import DataError
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import normalise

UNLABELLED = "tasks that nobody annotated"
FURTHER = "further annotations of a task (taken is the one marked ground_truth, else the latest)"
PREDICTED = "predictions of models (annotations are read)"
UNNAMED, MORE_NAMES = "rectangles without a label", "further labels of a rectangle"
POINTLESS, WORDLESS = "relations of what is no labelled rectangle", "relations without a label"

RECTANGLES = ("rectangle", "rectanglelabels", "labels")
"""The types of results with a rectangle: the second has its labels; of the other two, which have one id, the third."""


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each task that somebody annotated."""

    def build(task: dict[str, Any]) -> Record | None:
        if task.get("predictions"):
            context.drop(PREDICTED, context.place, len(task["predictions"]))
        made = [at for at, one in enumerate(task["annotations"]) if not one.get("was_cancelled")]
        if not made:
            context.drop(UNLABELLED, context.place)
            return None
        if more := len(task["annotations"]) - 1:
            context.drop(FURTHER, context.place, more)
        taken = max(made, key=lambda at: _standing(task["annotations"][at]))
        found = _Result(task["annotations"][taken]["result"], f".annotations[{taken}].result", context)
        return image_record(_file_name(task["data"]), found.boxes, found.labels, found.hois(), found.size)

    yield from context.each(source.items(), build, source)


def _standing(annotation: Mapping[str, Any]) -> tuple[bool, str]:
    """What orders the annotations of a task; the times are ISO's, in UTC."""
    return bool(annotation.get("ground_truth")), str(annotation.get("updated_at") or "")


class _Result:
    """The labelled rectangles of an annotation, and the image's size, which only they state."""

    def __init__(self, items: list[dict[str, Any]], where: str, context: Context) -> None:
        self._context, self._where = context, where
        self._relations: list[tuple[str, dict[str, Any]]] = []
        self.size: dict[str, int | float] = {}
        self.boxes: list[list[float]] = []
        self.labels: list[str] = []
        self._place: dict[str, int] = {}
        unnamed: dict[str, str] = {}
        images = {(item.get("to_name"), item.get("item_index")) for item in items if item["type"] in RECTANGLES}
        if len(images) > 1:
            raise DataError("has rectangles of several images; make a task of each", field=where)
        for index, item in enumerate(items):
            field, kind = f"{where}[{index}]", item["type"]
            if kind == "relation":
                self._relations.append((field, item))
            elif kind not in RECTANGLES or "x" not in item["value"]:
                self._drop(f"results that are no rectangle and no relation ({str(kind)[:40]})", field)
            elif names := item["value"].get(kind):
                self._place[item["id"]] = len(self.boxes)
                self.boxes.append(self._box(item, field))
                self.labels.append(normalise(names[0]))
                if names[1:]:
                    self._drop(MORE_NAMES, field, len(names) - 1)
            else:
                unnamed[item["id"]] = field
        for one in unnamed.keys() - self._place.keys():
            self._drop(UNNAMED, unnamed[one])

    def _drop(self, reason: str, field: str, count: int = 1) -> None:
        self._context.drop(reason, f"{self._context.place}{field}", count)

    def _box(self, item: Mapping[str, Any], field: str) -> list[float]:
        """The rectangle in pixels. Raises `DataError` for one that is turned, or in an image that was."""
        value = item["value"]
        for key, turned in (("value.rotation", value.get("rotation")), ("image_rotation", item.get("image_rotation"))):
            if turned:
                raise DataError(f"{turned} degrees: {UNTURNED}", field=f"{field}.{key}")
        wide, high = (finite(item[key], f"{field}.{key}") for key in ("original_width", "original_height"))
        x, y, width, height = (finite(value[key], f"{field}.value.{key}") for key in ("x", "y", "width", "height"))
        self.size = {"width": wide, "height": high}
        sides = x * wide, y * high, (x + width) * wide, (y + height) * high
        return [round(side / 100, 4) for side in sides]

    def hois(self) -> list[dict[str, Any]]:
        """The triplets that the relations say."""
        found: list[dict[str, Any]] = []
        for field, item in self._relations:
            start, end = (self._place.get(item[key]) for key in ("from_id", "to_id"))
            if start is None or end is None:
                self._drop(POINTLESS, field)
                continue
            if not item.get("labels"):
                self._drop(WORDLESS, field)
            way = item.get("direction", "right")
            if way not in ("right", "left", "bi"):
                raise DataError(f"{str(way)[:40]} is none of right, left, bi", field=f"{field}.direction")
            pairs = [(start, end)] * (way != "left") + [(end, start)] * (way != "right")
            verbs = map(normalise, item.get("labels") or ())
            found += [{"subject": one, "object": other, "verb": verb} for verb in verbs for one, other in pairs]
        return found


_UPLOADED = re.compile(r"/data/upload/(\d+/)?[0-9a-f]{8}-")


def _file_name(data: Mapping[str, Any]) -> str:
    """The name of a task's image, with its folders; of a task without `image`, its only text is taken for it. Raises
    `DataError` if there is none, or if the image itself is there in the place of its address."""
    texts = [value for value in data.values() if type(value) is str]
    address = data.get("image", texts[0] if len(texts) == 1 else None)
    if type(address) is not str or not address or address.startswith("data:"):
        raise DataError("is no address of a file, which gives the image its name; name it there", field=".data.image")
    parts = urlsplit(address)
    path = parse_qs(parts.query).get("d", [unquote(parts.path)])[0]  # ?d=: a file of the server's own folder
    return _UPLOADED.sub("", path).lstrip("/")
