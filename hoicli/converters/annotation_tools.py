"""Ground truth as annotation tools export it. The files state their labels, so any are taken without --dataset; boxes
that are turned are refused.

label-studio: Label Studio's JSON export (labelstud.io, guide/task_format and tags/relations).

    [{"data": {"image": "/data/upload/1/5f2c1a3b-site_0001.jpg"}, "annotations": [{"result": [
       {"type": "rectanglelabels", "id": "a", "original_width", "original_height",
        "value": {"x", "y", "width", "height", "rotation", "rectanglelabels": ["worker"]}},
       {"type": "relation", "from_id": "a", "to_id": "b", "direction": "right", "labels": ["wear"]}]}]}]

x, y, width and height are per cent of the image, between edges, and become [x, y, x + width, y + height] in pixels,
rounded to a ten-thousandth. A relation goes from from_id to to_id (right), back (left) or both ways (bi), and is a
triplet for each of its labels. Of several annotations of a task that is taken which is marked `ground_truth`, else the
latest. Tasks that nobody annotated are no images, and predictions of models are not read: both are counted. The image's
name is that of `data.image` without its server, and without the eight digits that an upload puts before it, unless two
uploads have one name without them, or with `--id path`. JSON-MIN has no relations.

cvat: CVAT's "CVAT for images 1.1" (annotations.xml).

    <image name="site_0001.jpg" width="640" height="480">
      <box label="worker" xtl="10.0" ytl="20.0" xbr="110.0" ybr="220.0" group_id="1">
        <attribute name="action">wear</attribute></box>
      <box label="helmet" xtl="40.0" ytl="20.0" xbr="70.0" ybr="45.0" group_id="1"/>
    </image>

CVAT has no relations: its makers advise an attribute with the action and a group (cvat-ai/cvat#7121). A box with a
value in an attribute called action, interaction, verb, relation or predicate (or a plural of these; several verbs with
commas between them) acts on the other boxes of its group; where all boxes act, on the other one. Where several verbs or
several boxes act on several objects the file does not say which on which, and is refused. Coordinates are edges in
pixels from 0 and stay as they are. Its COCO export has no groups; with rel_annotations added it is `coco-rel`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain, product
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree.ElementTree import Element

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, image_record, run_step
from hoicli.converters.numbers import finite, read_list, shorten_value, whole_number
from hoicli.errors import DataError
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import normalise


def _rotation_error(degrees: Any, field: str) -> DataError:
    """Return the error about a box that was turned by some degrees, which records cannot hold. field: its place."""
    return DataError(f"{degrees} degrees: boxes of records are upright; draw it so", field=field)


WAYS = {"right": ((0, 1),), "left": ((1, 0),), "bi": ((0, 1), (1, 0))}
"""For each direction (subject, object) of its triplets, where 0 is the relation's from_id and 1 its to_id."""

_UPLOADED = re.compile(r"/data/upload/(?:\d+/)?([0-9a-f]{8}-)")
"""The beginning of an upload's address, with the digits that Label Studio puts before the file's name."""
_SIDES = ("width", "height")


_Result = tuple[str, dict[str, Any]]
"""(field, result) of one result of a Label Studio annotation (a rectangle or a relation); field: its place."""


def read_tasks(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each task in Label Studio's JSON export that somebody annotated; a task is an image."""
    # the digits that Label Studio puts before the names of uploads: kept where names would be equal without them
    keep_digits = context.id_rule == "path"
    if not keep_digits and (names := _colliding_names(source)):
        keep_digits = True
        context.announce(f"uploads have one name ({' and '.join(names)}): their ids keep the digits before it")

    def build(task: dict[str, Any]) -> Record | None:
        """Return the record of a task, or None if nobody annotated it."""
        taken = _choose_annotation(task, context)
        if taken is None:
            return None
        results = [
            (f".annotations[{taken}].result[{index}]", item)
            for index, item in enumerate(task["annotations"][taken]["result"])
        ]
        rectangles = _labelled_rectangles(results, context)
        image_keys = ("to_name", "item_index", "original_width", "original_height")
        if len({tuple(map(item.get, image_keys)) for _, item in rectangles.values()}) > 1:
            problem = "has rectangles of several images, or of several sizes of one; make a task of each image"
            raise DataError(problem, field=f".annotations[{taken}]")
        _count_other_results(results, rectangles, context)
        boxes = [_rectangle(item, field) for field, item in rectangles.values()]
        labels = [_names(item, field)[0] for field, item in rectangles.values()]
        _, rectangle = next(iter(rectangles.values()), ("", {}))  # all rectangles state the same size of the image
        size = {key: rectangle[f"original_{key}"] for key in ("width", "height") if rectangle}
        box_index_of = {rectangle_id: index for index, rectangle_id in enumerate(rectangles)}
        hois = _relation_triplets(results, box_index_of, context)
        head = {**size, **context.keep_fields(task["data"], "image")}
        return image_record(_file_name(task["data"], full=keep_digits), boxes, labels, hois, head)

    yield from context.each(source.items(), build, source)


def _choose_annotation(task: Mapping[str, Any], context: Context) -> int | None:
    """Return which of a task's annotations to read, as an index: the one marked as ground truth, else the latest; None
    for a task that nobody annotated. Count in the context what is not read."""
    annotations = task["annotations"]
    if task.get("predictions"):
        context.drop("predictions of models (annotations are read)", context.place, len(task["predictions"]))
    finished = [index for index, annotation in enumerate(annotations) if not annotation.get("was_cancelled")]
    if not finished:
        context.drop("tasks that nobody annotated", context.place)
        return None
    if annotations[1:]:
        further = "further annotations of a task (taken is the one marked ground_truth, else the latest)"
        context.drop(further, context.place, len(annotations) - 1)
    dates = [str(annotation.get("updated_at") or "") for annotation in annotations]  # ISO's notation, in UTC
    # one that is marked as ground truth goes before all others; of equal dates, the last in the file counts
    return max(finished, key=lambda index: (bool(annotations[index].get("ground_truth")), dates[index], index))


def _labelled_rectangles(results: list[_Result], context: Context) -> dict[Any, _Result]:
    """Return (field, result) of each labelled rectangle of an annotation, by its id. results: all of the annotation. A
    rectangle with several labels is one result with several names, or several results with one id: the first label is
    taken, and the further ones are counted. Raises `DataError` if different rectangles have one id."""
    rectangles: dict[Any, _Result] = {}
    for field, item in results:
        names = _names(item, field)
        if not names:
            continue
        _, first = rectangles.setdefault(item["id"], (field, item))
        if first is not item and _rectangle(first, field) != _rectangle(item, field):
            raise DataError("another rectangle has this id; export it again", field=f"{field}.id")
        if first is not item or names[1:]:
            context.drop("further labels of a rectangle", context.place + field)
    return rectangles


def _count_other_results(results: list[_Result], rectangles: Mapping[Any, _Result], context: Context) -> None:
    """Count the results of an annotation that are neither a labelled rectangle (`rectangles`) nor a relation."""
    for field, item in results:
        # Label Studio may write a rectangle twice: without labels, and with them as a result of type "labels".
        is_repeated = item["type"] == "rectangle" and item["id"] in rectangles
        if not _names(item, field) and not is_repeated and item["type"] != "relation":
            what = f"results that are neither a labelled rectangle nor a relation ({str(item['type'])[:40]})"
            context.drop(what, context.place + field)


def _names(result: Mapping[str, Any], field: str) -> list[str]:
    """Return the labels of a result that is a labelled rectangle, an empty list for any other result."""
    kind, value = result["type"], result.get("value", {})
    if kind not in ("rectanglelabels", "labels") or "x" not in value:
        return []
    return _texts(value.get(kind), f"{field}.value.{kind}")


def _texts(labels: Any, field: str) -> list[str]:
    """Return labels in the records' spelling, each once. Raises `DataError` for what is no list of names."""
    names = [normalise(label) if type(label) is str else "" for label in read_list(labels or [], field)]
    if "" in names:
        raise DataError("a label is empty, or no text; name it in the annotation tool", field=field)
    return list(dict.fromkeys(names))


def _rectangle(result: Mapping[str, Any], field: str) -> list[float]:
    """Return a rectangle as [x1, y1, x2, y2] in pixels. Raises `DataError` if it, or its image, was turned."""
    value = result["value"]
    for key, degrees in (("value.rotation", value.get("rotation")), ("image_rotation", result.get("image_rotation"))):
        if degrees:
            raise _rotation_error(degrees, f"{field}.{key}")
    image_width, image_height = (finite(result[f"original_{key}"], f"{field}.original_{key}") for key in _SIDES)
    x, y, width, height = (finite(value[key], f"{field}.value.{key}") for key in ("x", "y", *_SIDES))
    sides = (x * image_width, y * image_height, (x + width) * image_width, (y + height) * image_height)
    return [round(side / 100, 4) for side in sides]


def _relation_triplets(
    results: list[_Result], box_index_of: Mapping[str, int], context: Context
) -> list[dict[str, Any]]:
    """Return the triplets of an annotation's relations: for each label of a relation one, or two if it goes both ways.
    A relation without a label, or of something that is no labelled rectangle, is left out and counted."""
    hois: list[dict[str, Any]] = []
    for field, item in results:
        if item["type"] != "relation":
            continue
        boxes = [box_index_of.get(item[key]) for key in ("from_id", "to_id")]
        direction = item.get("direction", "right")
        verbs = _texts(item.get("labels"), f"{field}.labels")
        if None in boxes or not verbs:
            what = "of what is no labelled rectangle" if None in boxes else "without a label"
            context.drop(f"relations {what}", context.place + field)
            continue
        if direction not in WAYS:
            raise DataError(f"{str(direction)[:40]} is none of {', '.join(WAYS)}", field=f"{field}.direction")
        # WAYS: for each direction of an arrow, which of the two boxes acts on which
        hois += [
            {"subject": boxes[start], "object": boxes[end], "verb": verb}
            for verb, (start, end) in product(verbs, WAYS[direction])
        ]
    return hois


def _colliding_names(source: Source) -> tuple[str, str] | None:
    """Return the first two image ids that would be the same without the digits that Label Studio puts before the names
    of uploads; None if there are none. Bad tasks are skipped here, since reading them reports the problem."""
    full_ids: dict[str, str] = {}
    with suppress(DataError):  # the list of tasks is cut off
        for where, task in source.items():
            with suppress(DataError):  # this task is bad
                short, full = run_step(partial(_short_and_full_id, task), source, where)
                if full_ids.setdefault(short, full) != full:
                    return full_ids[short], full
    return None


def _short_and_full_id(task: Mapping[str, Any]) -> list[str]:
    """Return the id of a task's image without the digits that an upload puts before its name, and the id with them."""
    return [image_id_of(_file_name(task["data"], full=full)) for full in (False, True)]


def _file_name(data: Mapping[str, Any], *, full: bool) -> str:
    """Return the name of a task's image with its folders, from its address. full: whether to keep the digits of an
    upload. Raises `DataError` if there is no address, or if it holds the image itself ("data:image/png;base64,...")."""
    texts = [value for value in data.values() if type(value) is str]
    if "image" not in data and len(texts) != 1:
        raise DataError(f"has no image, but {', '.join(data)[:80]}; call the image's address image", field=".data")
    address = data.get("image", texts[0] if texts else None)
    if type(address) is not str or not address or address.startswith("data:"):
        raise DataError("is no address of a file, which gives the image its name; name it there", field=".data.image")
    parts = urlsplit(address)
    path = parse_qs(parts.query).get("d", [unquote(parts.path)])[0]  # ?d=: a file of the server's own folder
    return _UPLOADED.sub(r"\1" if full else "", path).lstrip("/")


NOTHING = ("", "none", "__undefined__")
"""Values of an attribute that say that nobody acts."""
_ACTION = re.compile(r"(action|interaction|verb|relation|predicate)s?", re.IGNORECASE)


def is_cvat(source: Source) -> bool:
    """Return whether a file is CVAT's XML of annotations."""
    return source.kind == "xml" and source.xml.tag == "annotations"


def read_cvat(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of CVAT's XML export, also for images without boxes."""
    if source.xml.find("track") is not None:
        raise DataError('is "CVAT for video"; export it as "CVAT for images 1.1"', place=source.name)

    def build(image: Element) -> Record:
        """Return the record of an <image> element. Its shapes that are no boxes are counted as left out."""
        for shape in image:
            if shape.tag != "box":
                context.drop(f"shapes that are no box ({shape.tag[:40]})", context.place)
        rows = image.findall("box")
        boxes = [_corners(row, f".box[{index}]") for index, row in enumerate(rows)]
        labels = [normalise(row.attrib["label"]) for row in rows]
        size = {key: whole_number(image.attrib[key], f".{key}") for key in _SIDES}
        return image_record(image.attrib["name"], boxes, labels, _group_triplets(rows, context), size)

    items = ((f"image[{index}]", image) for index, image in enumerate(source.xml.findall("image")))
    yield from context.each(items, build, source)


def _corners(row: Element, field: str) -> list[float]:
    """Return the corners of a CVAT <box> element in pixels. Raises `DataError` for a box that was turned."""
    sides = [_number(row.attrib[key], f"{field}.{key}") for key in ("xtl", "ytl", "xbr", "ybr")]
    if _number(row.get("rotation", "0"), f"{field}.rotation"):
        raise _rotation_error(row.get("rotation"), f"{field}.rotation")
    return sides


def _number(text: str, field: str) -> float:
    """Return the number that the text of an XML attribute states. Raises `DataError` for any other text."""
    try:
        return float(text)
    except ValueError:
        raise DataError(f"{shorten_value(text)} is no number; export it again", field=field) from None


def _group_triplets(rows: list[Element], context: Context) -> list[dict[str, Any]]:
    """Return the triplets of a CVAT image: a box whose attributes state verbs acts on the other boxes of its group.
    rows: the <box> elements. Actions of a box without others in its group, and groups without an action, are counted
    as left out. Raises `DataError` if the file does not say which box acts on which."""
    verbs_by_group: dict[str, dict[int, list[str]]] = {}  # the verbs of each box, by the box's index
    hois: list[dict[str, Any]] = []
    for index, row in enumerate(rows):
        group = row.get("group_id", "0")  # 0: in no group, so that the box becomes a group by itself
        verbs_by_group.setdefault(f"alone {index}" if group == "0" else group, {})[index] = _verbs(row)
    for verbs_of in verbs_by_group.values():
        acting = [index for index, verbs in verbs_of.items() if verbs]
        if not acting and len(verbs_of) > 1:
            context.drop("groups without an action", f"{context.place}.box[{min(verbs_of)}]")
        for subject in acting:
            verbs, field = verbs_of[subject], f".box[{subject}]"
            others = [other for other in verbs_of if other not in acting]
            others = others or [other for other in acting if other != subject]  # all act, on one another
            if not others:
                context.drop("actions of a box that is alone in its group, or in none", f"{context.place}{field}")
            if len(others) > 1 and len(verbs) * len(acting) > 1:
                problem = f"{', '.join(verbs)[:60]}: {len(others)} objects in the group, and not said on which of them"
                raise DataError(f"{problem}; make a group of each (draw the box again)", field=field)
            hois += [{"subject": subject, "object": other, "verb": verb} for verb, other in product(verbs, others)]
    return hois


def _verbs(row: Element) -> list[str]:
    """Return the verbs in the attributes of a <box> element that name actions (_ACTION); none if it does not act."""
    values = [item.text or "" for item in row.findall("attribute") if _ACTION.fullmatch(item.get("name", "").strip())]
    verbs = [normalise(verb) for verb in chain.from_iterable(value.split(",") for value in values)]
    return [verb for verb in verbs if verb.lower() not in NOTHING]
