"""Lists of images with numbered boxes and interactions: ground truth and predictions of the HOI-A layout and of those
that came after it. Each format is a row of `hoi_layouts.LAYOUTS`.

    {"file_name", "annotations" or "predictions": [{"bbox", "category_id"}],
     "hoi_annotation" or "hoi_prediction": [{"subject_id", "object_id", "category_id", "score"}]}

subject_id and object_id are 0-based indices of the item's boxes, so equal boxes are not merged and exact duplicates of
a prediction stay. Numbers may be text that ends in a line break. Predicted boxes are float edges in pixels of the
original image and stay as they are. Keys that a row does not name are not read: a file's `gts` (1-based, resized,
without image-level labels), hoi_category_id, aux_category_id. Diag-HOI's `action_score` becomes `verb_score`. In the
V-COCO formats an interaction is an action with its role, and an object_id of -1 a role without object; neither order of
the roles can be told from a file. They have no scores of actions alone.

The list that QPIC's evaluator holds (`self.preds`, saved by many forks) is CDN's without file names: its items are then
in the order of the ground truth, which `--image-list` gives.

In GEN-VLKT's and HOICLIP's variant of CDN's list (datasets/hico_eval_triplet.py of both) boxes have no class, and
category_id of an interaction is one of HICO-DET's 600, from 0: its verb and its object's label come from it. A box that
is the object of two classes becomes two boxes of the record, equal boxes of one label become one, and a box that no
interaction uses is left out and counted. Scores may exceed 1; exact duplicates are kept (the project's top-k looks
scores up by equality).

`write` gives the list of `cdn` as plain JSON (`--to cdn-json`), and ground truth in the HOI-A layout (`--to hoia`),
whose objects count from 1 in a dataset without COCO's ids or a numbering of its own, and whose triplets also have their
interaction from 1 (`hoi_category_id`, for GEN-VLKT and HOICLIP); `--to corre` writes what loaders need beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson

from hoicli.converters.containers.source import Source
from hoicli.converters.containers.text import write_items
from hoicli.converters.context import (
    DERIVED,
    BoxTable,
    Context,
    action_role,
    coco_number,
    file_name_of,
    image_record,
    pick_keys,
    require_scores,
)
from hoicli.converters.hoi_layouts import (
    BOX_KEYS,
    CHECK_FIRST,
    HOI_KEYS,
    IMAGE_KEYS,
    LAYOUTS,
    Layout,
    key_of,
    object_numbers,
)
from hoicli.converters.image_ids import images_by_position
from hoicli.converters.numbers import Numbers, corners, score_of, whole_number
from hoicli.errors import DataError, arg
from hoicli.records.caveats import UNMARKED_PEOPLE
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record
from hoicli.vocabulary.datasets import VCOCO_ORDERS


def rows_under(source: Source, key: str, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the dictionaries in the list that each item of a file has under a key, such as an image's interactions. End
    without an error at a broken item, which reading the file will report."""
    try:
        for _, item in islice(source.items(), limit):
            rows = item.get(key) if isinstance(item, dict) else None
            yield from (row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict))
    except DataError:
        return


def is_truth(source: Source) -> bool:
    """Return whether a file's first interaction has no score, so that it is ground truth and not PPDM's predictions."""
    return "score" not in next(rows_under(source, "hoi_annotation", CHECK_FIRST), {})


def is_vcoco(source: Source) -> bool:
    """Return whether a file of ground truth is V-COCO's and not HICO-DET's: its first image's name contains COCO_, and
    some interaction of the file has category 0, while HICO-DET's count from 1."""
    if "COCO_" not in str((source.first_item or {}).get("file_name")):
        return False
    return any(str(hoi.get("category_id")).strip() == "0" for hoi in rows_under(source, "hoi_annotation"))


def is_query_list(source: Source) -> bool:
    """Return whether a file is CDN's list of predictions, or the same without names of images, as QPIC has it."""
    return source.first_has("hoi_prediction", "filename") or (
        source.first_has("hoi_prediction", "predictions") and _is_nameless(source)
    )


def _is_nameless(source: Source) -> bool:
    """Return whether the items of a list name no image: the first has none of the keys in use."""
    return isinstance(source.first_item, dict) and source.first_item.keys().isdisjoint(IMAGE_KEYS)


def has_classes(source: Source) -> bool:
    """Return whether the boxes in a file of predictions have object classes; also True without any box."""
    return not is_classless(source)


def is_classless(source: Source) -> bool:
    """Return whether the boxes in a file of predictions have no object classes, as GEN-VLKT writes them."""
    box_with_class = {"category_id": None}  # so that a file without any box counts as one with classes
    return "category_id" not in next(rows_under(source, "predictions", CHECK_FIRST), box_with_class)


def is_scored(source: Source) -> bool:
    """Return whether the first item of a file has boxes and interactions of predictions, under any of the keys that
    projects use. The key hoi_annotation is also that of ground truth, so its interactions must have scores."""
    item = source.first_item
    if not isinstance(item, dict) or item.keys().isdisjoint(BOX_KEYS) or item.keys().isdisjoint(HOI_KEYS):
        return False
    return not item.keys().isdisjoint(HOI_KEYS[:2]) or not is_truth(source)


def is_scored_vcoco(source: Source) -> bool:
    """Return whether a file is a list of predictions (`is_scored`) on V-COCO, whose image names contain COCO_."""
    return is_scored(source) and any("COCO_" in str(source.first_item.get(key)) for key in IMAGE_KEYS)


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of a file in the context's format, also for images without interactions."""
    layout = LAYOUTS[context.format]
    _announce(source, layout, context)
    reader = _ItemReader(source, layout, context)
    if layout.scored and _is_nameless(source):
        images = images_by_position(sum(1 for _ in source.items()), "items", source, context)
        named_items = ((where, (image, item)) for image, (where, item) in zip(images, source.items(), strict=True))
        yield from context.each(named_items, lambda pair: reader.record_of(*pair), source)
    else:
        yield from context.each(source.items(), reader.record, source)
    reader.announce_low_numbers(source.name)


class _ItemReader:
    """Makes the records of a file's items, which are in the layout of the file's format.

    _objects: the label of each category of a box. _roles: the keys of a triplet for each of V-COCO's action-roles, by
    its name; empty if the file's verbs are not V-COCO's. _verbs: what the number of an interaction's verb means: the
    name of an action-role, or a verb, or (verb, object) if boxes have no class. _verbs_seen: if boxes have no class,
    the (verb, object) of all triplets so far. _shift: four numbers to subtract from a box, None for nothing."""

    def __init__(self, source: Source, layout: Layout, context: Context) -> None:
        """Look up what the file's numbers of verbs and objects mean, and how its boxes are shifted."""
        # layout.verbs: with roles the name of an order of V-COCO's action-roles, else the number of the first verb
        self._layout, self._context = layout, context
        self._objects = object_numbers(source, layout, context)
        action_roles = VCOCO_ORDERS[str(layout.verbs)] if layout.roles else ()
        self._roles = {name: action_role(name, context) for name in action_roles}
        self._classless = layout.objects == "none"  # boxes have no class: the interactions' numbers tell it
        self._verbs: Numbers[Any]
        if self._roles:
            self._verbs = Numbers.count_from([*self._roles], context.first_verb_number(0))
        else:
            self._verbs = context.interactions() if self._classless else context.verbs(base=int(layout.verbs))
        self._verbs_seen = set[Any]()
        self._shift = context.truth_shift(layout.shift) if layout.shift else None

    def record(self, item: dict[str, Any]) -> Record:
        """Return the record of an item, an image with its boxes and interactions. Raises `DataError` with the field."""
        layout = self._layout  # the keys that items of the format have, some in several spellings (`key_of`)
        name = item[key_of(item, layout.image)]
        box_key, hoi_key = key_of(item, layout.boxes), key_of(item, layout.hois)
        if self._context.format == "ppdm" and image_id_of(str(name)).startswith("COCO_"):
            problem = f"{name!r} is a V-COCO image, whose verbs are numbered differently"
            raise DataError(f"{problem}: use {arg('from_', 'qpic-vcoco-list')} or ppdm-vcoco-list", field=".file_name")
        boxes = self._boxes(item[box_key], f".{box_key}")
        labels = [] if self._classless else self._labels(item[box_key], f".{box_key}")
        hois = self._triplets(item[hoi_key], boxes, labels, name, f".{hoi_key}")
        if self._classless:  # the label of a box then comes from the interactions that it is in
            self._verbs_seen.update(hoi["verb"] for hoi in hois)
            return _classify_boxes(name, boxes, hois, self._context)
        head = pick_keys(item, *layout.kept_keys)
        if not self._roles:
            return image_record(name, boxes, labels, hois, head)
        # V-COCO: an image is the number in its COCO file name, which some dumps give in place of the name
        name_keys = {"file_name": name} if not layout.scored or "COCO_" in str(name) else {}
        columns = {"boxes": boxes, "labels": labels, "hois": hois}
        # these formats' ground truth does not say whose actions were annotated
        caveats = {} if layout.scored else {"caveats": [UNMARKED_PEOPLE]}
        return {"image_id": coco_number(name), **name_keys, **head, **columns, **caveats}

    def record_of(self, image_id: str, item: dict[str, Any]) -> Record:
        """Return the record of an item that does not name its image. image_id: the image's id."""
        record = self.record({**item, self._layout.image[0]: image_id})
        record.pop("file_name", None)  # the id is no file's name
        return record if self._roles else {**record, "image_id": image_id}

    def _boxes(self, rows: list[dict[str, Any]], field: str) -> list[list[Any]]:
        """Return an item's boxes as [x1, y1, x2, y2], those of predictions as floats."""
        box_form = self._context.options.get("box_form")
        boxes = [
            corners(row["bbox"], f"{field}[{index}].bbox", self._shift, box_form) for index, row in enumerate(rows)
        ]
        return [[*map(float, box)] for box in boxes] if self._layout.scored else boxes

    def _labels(self, rows: list[dict[str, Any]], field: str) -> list[str | None]:
        """Return the label of each of an item's boxes, None for a box that marks a query without an object."""
        return [
            self._objects.name(row["category_id"], f"{field}[{index}].category_id") or None
            for index, row in enumerate(rows)
        ]

    def _triplets(
        self, rows: list[dict[str, Any]], boxes: list[list[Any]], labels: list[str | None], image: Any, field: str
    ) -> list[dict[str, Any]]:
        """Return the triplets of an item's interactions; those that point at no box are left out and counted. boxes,
        labels: of the item. The verb of a triplet is (verb, object) if boxes have no class. A file has hundreds of
        thousands of interactions, so the usual values are handled here, and a function is called only for others."""
        roles, scored, verb_key = self._roles, self._layout.scored, self._layout.verb
        verb_of: Mapping[int, Any] = self._verbs.names
        triplets = []
        count = len(boxes)
        for index, hoi in enumerate(rows):
            subject, object_ = hoi.get("subject_id"), hoi.get("object_id")
            if not type(subject) is type(object_) is int:
                subject = whole_number(subject, f"{field}[{index}].subject_id")
                object_ = whole_number(object_, f"{field}[{index}].object_id")
            if not (0 <= subject < count > object_ >= 0):  # one of the two indices is not a box's
                if not (roles and 0 <= subject < count and object_ < 0):
                    self._leave_out_stray((subject, object_), boxes, f"{field}[{index}]", image)
                    continue
                object_ = None  # a role without object
            number = hoi.get(verb_key)
            verb: Any = verb_of.get(number) if type(number) is int else None
            if verb is None:
                verb = self._verbs.name(number, f"{field}[{index}].{verb_key}")
            triplet = {"subject": subject, "object": object_, "verb": verb}
            if roles:
                triplet["object"] = None if object_ is None or labels[object_] is None else object_
                triplet |= roles[verb]
            if scored:
                score = hoi.get("score")
                is_float = type(score) is float
                triplet["score"] = score if is_float else score_of(score, f"{field}[{index}].score", image)
            if scored and "action_score" in hoi:
                score = hoi["action_score"]
                is_float = type(score) is float
                triplet["verb_score"] = score if is_float else score_of(score, f"{field}[{index}].action_score", image)
            triplets.append(triplet)
        return triplets

    def _leave_out_stray(self, pair: tuple[int, int], boxes: list[list[Any]], field: str, image: Any) -> None:
        """Count an interaction that points at no box; raise `DataError` unless the layout has `strays`."""
        subject, object_ = pair
        if not self._layout.strays:
            key, index = ("object_id", object_) if 0 <= subject < len(boxes) else ("subject_id", subject)
            raise DataError(
                f"id {index}, but there are {len(boxes)} in {image}, counted from 0", field=f"{field}.{key}"
            )
        what = "that point beyond the boxes of their image"
        if subject < 0 or (object_ < 0 and not self._roles):
            what = "without a subject or an object (index -1)"
        self._context.drop(f"interactions {what}", f"{self._context.place}{field}")

    def announce_low_numbers(self, file: str) -> None:
        """Add a note if the interactions of a file whose boxes have no class are numbered as low as verbs."""
        verb_count = len(self._context.vocabulary.verbs)
        numbers_seen = (number for number, pair in self._verbs.names.items() if pair in self._verbs_seen)
        highest = max(numbers_seen, default=verb_count)
        if highest < verb_count:
            self._context.announce(
                f"{file}: category_id read as interactions, but none exceeds {highest}: if these are verbs, the "
                "boxes have lost their category_id"
            )


def _announce(source: Source, layout: Layout, context: Context) -> None:
    """Add the notes about what is assumed of a file. Raises `DataError` for a --from that would misread it."""
    if context.format == "hoia" and is_vcoco(source):
        problem = "is V-COCO in the HOI-A layout (COCO_ file names, verbs from 0)"
        raise DataError(f"{problem}: use {arg('from_', 'qpic-vcoco')} or ppdm-vcoco-gt", place=source.name)
    if context.format == "gen-vlkt" and source.first_item and not is_classless(source):
        problem = "boxes have a category_id, as CDN's and MUREN's, where an interaction's is a verb"
        raise DataError(f"{problem}; use {arg('from_', 'cdn')}", place=source.name)
    if layout.roles and not layout.scored:
        context.announce(
            "this file does not say which people nobody annotated: predictions on them will count as false"
        )
    elif not layout.scored:
        if context.format == "hoia" and not context.vocabulary.numbering:
            context.announce(DERIVED)
        from_inp_cc = context.format == "swig" or source.first_has("img_id")  # as test_hico_ann.json
        if from_inp_cc and "box_form" not in context.options:
            read = "bbox, described as [x, y, w, h], is read as [x1, y1, x2, y2], as the released code does"
            context.announce(f"{read} ({arg('box_form', 'xywh')}: as described)")


def _classify_boxes(name: str, boxes: list[list[Any]], hois: list[dict[str, Any]], context: Context) -> Record:
    """Return the record of an image whose boxes get their classes from its interactions. Others are counted."""
    used, table = set[int](), BoxTable(context.subject)
    for hoi in hois:
        verb, label = hoi.pop("verb")
        subject, object_ = hoi.pop("subject"), hoi.pop("object")
        table.pair(boxes[subject], boxes[object_], label, verb=verb, **hoi)
        used |= {subject, object_}
    unused = [index for index in range(len(boxes)) if index not in used]
    if unused:
        place = f"{context.place}.predictions[{unused[0]}]"
        context.drop("boxes without a class (no interaction uses them)", place, len(unused))
    return image_record(name, **table.columns)


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """Write records as a JSON list in the layout of the context's target format, one image at a time. Keys of a record
    that the layout lacks are dropped, and counted if the records are ground truth. Raises `DataError` if triplets of
    predictions have no score, or those of ground truth have one."""
    layout, vocabulary = LAYOUTS[context.target], context.vocabulary
    object_ids = context.choose_numbers("objects", vocabulary.object_ids, _usual_objects(layout, context))
    usual_verbs = {verb_id + int(layout.verbs): verb_id for verb_id in range(len(vocabulary.verbs))}
    verb_ids = context.choose_numbers("verbs", vocabulary.verb_ids, usual_verbs)
    shift = context.written_shift(layout.shift) if layout.shift else None

    def interaction(hoi: dict[str, Any], labels: Sequence[str]) -> dict[str, Any]:
        """Return a triplet as the file writes it. labels: those of the record's boxes."""
        written = {"subject_id": hoi["subject"], "object_id": hoi["object"], layout.verb: verb_ids[hoi["verb"]]}
        if layout.scored:
            written["score"] = hoi["score"]
        elif (number := vocabulary.interaction_id(hoi["verb"], labels[hoi["object"]])) is not None:
            written["hoi_category_id"] = number + 1
        return {**written, "action_score": hoi["verb_score"]} if "verb_score" in hoi else written

    def image(record: Record) -> bytes:
        """Return the item of the file for a record, as JSON."""
        require_scores(record, context.target, scored=layout.scored)
        if not layout.scored:
            context.tell_lost(record, kept_keys=layout.kept_keys)
        boxes = zip(record["boxes"], record["labels"], strict=True)
        head = {layout.image[0]: file_name_of(record), **pick_keys(record, *layout.kept_keys)}
        rows = [{"bbox": corners(box, "", shift), "category_id": object_ids[label]} for box, label in boxes]
        hois = [interaction(hoi, record["labels"]) for hoi in record["hois"]]
        return orjson.dumps({**head, layout.boxes[0]: rows, layout.hois[0]: hois})

    write_items(path, map(image, records))


def _usual_objects(layout: Layout, context: Context) -> dict[int, int]:
    """Return the 0-based id of the object for each number that a layout writes, without a `numbering`. They are COCO's
    ids or, of objects that are not COCO's, count from 1, as a note says."""
    vocabulary = context.vocabulary
    if layout.objects != "coco-id":
        return {}
    if vocabulary.coco_ids:
        return {number: vocabulary.object_ids[name] for name, number in vocabulary.coco_ids.items()}
    if "objects" not in vocabulary.numbering:
        option = arg("object_order", "coco-1")
        context.announce(
            f"objects are numbered from 1 in the order of {vocabulary.path or vocabulary.name} ({option} reads them)"
        )
    return {object_id + 1: object_id for object_id in range(len(vocabulary.objects))}
