"""Lists of images with numbered boxes and interactions: ground truth and predictions of the HOI-A layout and of those
that came after it. Each format is a row of LAYOUTS.

    {"file_name", "annotations" or "predictions": [{"bbox", "category_id"}],
     "hoi_annotation" or "hoi_prediction": [{"subject_id", "object_id", "category_id", "score"}]}

subject_id and object_id are 0-based indices of the item's boxes, so equal boxes are not merged and exact duplicates of
a prediction stay. Numbers may be text that ends in a line break. Predicted boxes are float edges in pixels of the
original image and stay as they are. Keys that a row does not name are not read: a file's `gts` (1-based, resized,
without image-level labels), hoi_category_id, aux_category_id. Diag-HOI's `action_score` becomes `verb_score`. In the
V-COCO formats an interaction is an action with its role, and an object_id of -1 a role without object; neither order
of the roles can be told from a file. They have no scores of actions alone.

In GEN-VLKT's and HOICLIP's variant of CDN's list (datasets/hico_eval_triplet.py of both) boxes have no class, and
category_id of an interaction is one of HICO-DET's 600, from 0: its verb and its object's label come from it. A box that
is the object of two classes becomes two boxes of the record, equal boxes of one label become one, and a box that no
interaction uses is left out and counted. Scores may exceed 1; exact duplicates are kept (the project's top-k looks
scores up by equality).

`write` gives the list of `cdn` as plain JSON (`--to cdn-json`), and ground truth in the HOI-A layout (`--to hoia`),
whose objects count from 1 in a dataset without COCO's ids or a numbering of its own, and whose triplets also have
their interaction from 1 (`hoi_category_id`, for GEN-VLKT and HOICLIP); beside it `--to corre` writes
corre_hico.npy and its kind (QPIC, CDN, PPDM): [verbs, objects] in the order of their numbers, as in the loaders' lists
of valid ids, 1 where the two are an interaction of the dataset. `read` raises `DataError` naming the item, from [0].
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import orjson

from hoicli.converters.containers.source import Source
from hoicli.converters.containers.text import write_items
from hoicli.converters.context import (
    DERIVED,
    BoxTable,
    Context,
    action_role,
    coco_number,
    entry,
    file_name_of,
    image_record,
    pick_keys,
    require_scores,
)
from hoicli.converters.numbers import FAR_EDGES, ONE_BASED, Numbers, corners, score_of, whole_number
from hoicli.errors import DataError, Place, arg
from hoicli.io.outputs import open_output
from hoicli.records.caveats import UNMARKED_PEOPLE
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record
from hoicli.vocabulary.datasets import VCOCO_ORDERS

CHECK_FIRST = 50
"""Images checked to distinguish formats that differ only in their rows."""
NO_OBJECT = 80
"""The number after COCO's 80 objects: it marks a query without an object, in QPIC's family."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One format of this module as data: a row of LAYOUTS. Where a field names several keys for one thing, an item may
    use any of them; if it uses none, the message about the missing key names the first.

    image, boxes, hois: the keys of an item's file name, boxes and interactions. verb: the key of an interaction's verb.
    kept_keys: the keys of an item that the record keeps. objects: the numbering of the boxes' classes (a name in
    OBJECT_ORDERS), "own" for the dataset's order from 0, "first" for the numbering that the subjects of the first
    images show, "none" where boxes have no class and the interactions' numbers tell it. verbs: the number of the first
    verb, or the name of an order of V-COCO's action-roles (in VCOCO_ORDERS). shift: the four numbers that are
    subtracted from a box of ground truth. scored: whether the format holds predictions. strays: whether interactions
    that point at no box are known to occur; they are then left out and counted, and are an error in other formats.
    """

    image: tuple[str, ...] = ("file_name",)
    boxes: tuple[str, ...] = ("annotations",)
    hois: tuple[str, ...] = ("hoi_annotation",)
    verb: str = "category_id"
    kept_keys: tuple[str, ...] = ("width", "height")
    objects: str = "coco-id"
    verbs: int | str
    shift: Sequence[int] | None = None
    scored: bool = False
    strays: bool = True

    @property
    def roles(self) -> bool:
        """Whether the file's verbs are V-COCO's actions, each with its role."""
        return isinstance(self.verbs, str)


BOX_KEYS = ("predictions", "prediction", "annotations", "annotation")
HOI_KEYS = ("hoi_prediction", "hoi_predictions", "hoi_annotation")
"""The spellings that readers of predictions know (PPDM's src/lib/eval/vcoco_eval.py)."""
IMAGE_KEYS = ("file_name", "filename", "image_id")


def _predictions(verbs: int | str, **more: Any) -> Layout:
    """Return the layout of a list of predictions, under any of the known keys; more: further fields of Layout."""
    return Layout(boxes=BOX_KEYS, hois=HOI_KEYS, kept_keys=(), verbs=verbs, scored=True, **more)


LAYOUTS = {
    # HICO-DET's trainval_hico.json, test_hico.json (YueLiao/PPDM src/lib/eval/hico_eval.py, YueLiao/CDN and
    # hitachi-rd-cv/qpic datasets/hico.py), test_hico_ann.json (ltttpku/INP-CC datasets/hico.py): 1-based inclusive
    # boxes, verbs from 1. A dataset's own numbering and `box` replace this: HOI-A's boxes, for one, are edges.
    "hoia": Layout(verbs=1, shift=ONE_BASED),
    # test_vcoco.json of QPIC, CDN, GEN-VLKT (hitachi-rd-cv/qpic convert_vcoco_annotations.py), and PPDM's: COCO's boxes
    # with x2 = x + w, 0-based far edges (protocol vcoco-qpic adds the 1 again). People without annotations are not
    # marked, so that all count as annotated.
    "qpic-vcoco": Layout(verbs="qpic", shift=FAR_EDGES),
    "ppdm-vcoco-gt": Layout(verbs="ppdm", shift=FAR_EDGES),
    # SWIG-HOI (ltttpku/INP-CC datasets/swig.py, datasets/swig_evaluator.py): boxes in pixels of its images resized to a
    # short side of 512, read as they are; everything counts from 0. Dumps of the INP-CC family name images by img_id.
    "swig": Layout(
        boxes=("box_annotations",), hois=("hoi_annotations",), verb="action_id",
        kept_keys=("img_id", "width", "height"), objects="own", verbs=0, strays=False,
    ),
    # results.json of CDN and MUREN (YueLiao/CDN datasets/hico_eval.py, OreoChocolate/MUREN datasets/hico_eval_ko.py), a
    # JSON string that holds the repr of a dictionary; the same list of Diag-HOI (neu-vi/Diag-HOI standard_eval.py).
    "cdn": Layout(
        image=("filename",), boxes=("predictions",), hois=("hoi_prediction",), kept_keys=(), objects="coco", verbs=0,
        scored=True, strays=False,
    ),
    # predictions_model_N.json, best_predictions.json (YueLiao/PPDM src/test_hoi.py, src/lib/detectors/hoidet.py;
    # SherlockHolmes221/GGNet): 0-based boxes, unless they were saved after PPDM's evaluator ran, which adds 1 to them.
    "ppdm": _predictions(1),
    # what QPIC, CDN and PPDM evaluate while training on V-COCO
    "qpic-vcoco-list": _predictions("qpic", image=IMAGE_KEYS, objects="first"),
    "ppdm-vcoco-list": _predictions("ppdm", image=IMAGE_KEYS, objects="first"),
}  # fmt: skip
LAYOUTS["cdn-json"] = LAYOUTS["cdn"]
LAYOUTS["gen-vlkt"] = replace(LAYOUTS["cdn"], objects="none")


# Telling the formats apart


def rows_under(source: Source, key: str, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows that each item has under a key, such as its interactions; limit: the number of items that are
    looked at. It ends without an error at a broken item, which reading the file will report."""
    try:
        for _, item in islice(source.items(), limit):
            rows = item.get(key) if isinstance(item, dict) else None
            yield from (row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict))
    except DataError:
        return


def is_truth(source: Source) -> bool:
    """Whether the interactions have no scores, so that the file is ground truth and not PPDM's predictions."""
    return "score" not in next(rows_under(source, "hoi_annotation", CHECK_FIRST), {})


def is_vcoco(source: Source) -> bool:
    """Whether the images are V-COCO's: their names contain COCO_, and some interaction has category 0, while HICO-DET
    counts from 1. If the first name fits, all interactions of the file are searched."""
    if "COCO_" not in str((source.first_item or {}).get("file_name")):
        return False
    return any(str(hoi.get("category_id")).strip() == "0" for hoi in rows_under(source, "hoi_annotation"))


def has_classes(source: Source) -> bool:
    """Whether these are predictions whose boxes have categories, or predictions without any box."""
    return not is_classless(source)


def is_classless(source: Source) -> bool:
    """Whether these are predictions whose boxes have no category."""
    without_boxes = {"category_id": None}  # so that a file without any box counts as one with classes
    return "category_id" not in next(rows_under(source, "predictions", CHECK_FIRST), without_boxes)


def is_scored(source: Source) -> bool:
    """Whether the first item has boxes and interactions of predictions, under any of their keys. The key hoi_annotation
    is also that of ground truth, so its interactions must have scores."""
    item = source.first_item
    if not isinstance(item, dict) or item.keys().isdisjoint(BOX_KEYS) or item.keys().isdisjoint(HOI_KEYS):
        return False
    return not item.keys().isdisjoint(HOI_KEYS[:2]) or not is_truth(source)


def is_scored_vcoco(source: Source) -> bool:
    """Whether these are predictions, as `is_scored` says, on images whose names contain COCO_."""
    return is_scored(source) and any("COCO_" in str(source.first_item.get(key)) for key in IMAGE_KEYS)


# Reading


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of a file in the context's format, also for images without interactions."""
    layout = LAYOUTS[context.format]
    _announce(source, layout, context)
    objects = _objects(source, layout, context)
    order = VCOCO_ORDERS[str(layout.verbs)] if layout.roles else ()
    roles = {name: action_role(name, context) for name in order}  # the triplet's keys for each action-role
    classless = layout.objects == "none"
    verbs: Numbers[Any]
    if roles:
        verbs = Numbers.from_items([*roles], context.base(0))
    else:
        verbs = context.interactions() if classless else context.verbs(base=int(layout.verbs))
    verb_of: Mapping[int, Any] = verbs.names
    verb_key, scored, verbs_seen = layout.verb, layout.scored, set[Any]()
    shift = context.truth_shift(layout.shift) if layout.shift else None
    box_form = context.options.get("box_form")

    def build(item: dict[str, Any]) -> Record:
        name = item[key_of(item, layout.image)]
        box_key, hoi_key = key_of(item, layout.boxes), key_of(item, layout.hois)
        if context.format == "ppdm" and image_id_of(name).startswith("COCO_"):
            problem = f"{name!r} is a V-COCO image, whose verbs are numbered differently"
            raise DataError(f"{problem}: use {arg('from_', 'qpic-vcoco-list')} or ppdm-vcoco-list", field=".file_name")
        rows = item[box_key]
        boxes = [corners(row["bbox"], f".{box_key}[{index}].bbox", shift, box_form) for index, row in enumerate(rows)]
        if scored:
            boxes = [[*map(float, box)] for box in boxes]
        labels = [
            objects.name(row["category_id"], f".{box_key}[{index}].category_id") or None
            for index, row in enumerate(() if classless else rows)
        ]
        hois, count = [], len(boxes)
        for index, hoi in enumerate(item[hoi_key]):  # hundreds of thousands: most need no call
            subject, object_ = hoi.get("subject_id"), hoi.get("object_id")
            if not type(subject) is type(object_) is int:
                subject = whole_number(subject, f".{hoi_key}[{index}].subject_id")
                object_ = whole_number(object_, f".{hoi_key}[{index}].object_id")
            if not (0 <= subject < count > object_ >= 0):  # one of the two indices is not a box's
                if roles and 0 <= subject < count and object_ < 0:
                    object_ = None
                elif layout.strays:
                    what = "that point beyond the boxes of their image"
                    if subject < 0 or (object_ < 0 and not roles):
                        what = "without a subject or an object (index -1)"
                    context.drop(f"interactions {what}", f"{context.place}.{hoi_key}[{index}]")
                    continue
                else:
                    entry(boxes, subject, f".{hoi_key}[{index}].subject_id", of=f" in {name}")
                    entry(boxes, object_, f".{hoi_key}[{index}].object_id", of=f" in {name}")
            number = hoi.get(verb_key)
            verb: Any = verb_of.get(number) if type(number) is int else None
            if verb is None:
                verb = verbs.name(number, f".{hoi_key}[{index}].{verb_key}")
            triplet = {"subject": subject, "object": object_, "verb": verb}
            if roles:
                triplet["object"] = None if object_ is None or labels[object_] is None else object_
                triplet |= roles[verb]
            if scored:
                score = hoi.get("score")
                triplet["score"] = (
                    score if type(score) is float else score_of(score, f".{hoi_key}[{index}].score", name)
                )
                if "action_score" in hoi:
                    score = hoi["action_score"]
                    if type(score) is not float:
                        score = score_of(score, f".{hoi_key}[{index}].action_score", name)
                    triplet["verb_score"] = score
            hois.append(triplet)
        if classless:
            verbs_seen.update(hoi["verb"] for hoi in hois)
            return _classify_boxes(name, boxes, hois, context)
        if not roles:
            return image_record(name, boxes, labels, hois, pick_keys(item, *layout.kept_keys))
        name_keys = {"file_name": name} if not scored or "COCO_" in str(name) else {}
        record = {
            "image_id": coco_number(name),
            **name_keys,
            **pick_keys(item, *layout.kept_keys),
            "boxes": boxes,
            "labels": labels,
        }
        return {**record, "hois": hois, **({} if scored else {"caveats": [UNMARKED_PEOPLE]})}

    yield from context.each(source.items(), build, source)
    # GEN-VLKT's interactions are numbered to 599: if no number exceeds those of verbs, they may be verbs.
    highest = max(
        (number for number, verb_name in verb_of.items() if verb_name in verbs_seen),
        default=len(context.vocabulary.verbs),
    )
    if highest < len(context.vocabulary.verbs):
        context.announce(
            f"{source.name}: category_id read as interactions, but none exceeds {highest}: if these are verbs, the "
            "boxes have lost their category_id"
        )


def _announce(source: Source, layout: Layout, context: Context) -> None:
    """Announce the assumptions that reading a file of this layout makes. Raises `DataError` for V-COCO that would be
    read as HICO-DET's ground truth, and for CDN's boxes with classes that would be read as GEN-VLKT's."""
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


def _objects(source: Source, layout: Layout, context: Context) -> Numbers[str]:
    """Return the class of each category of a box by its number; "" is the class of a query without an object."""
    if layout.objects in ("own", "none"):
        return Numbers.from_items(context.vocabulary.objects)
    if layout.objects != "first":
        return context.objects(layout.objects, "; is this file HICO-DET's?" if context.format == "hoia" else "")
    numbered = context.objects("coco-id" if _has_coco_ids(source) else "coco")
    return Numbers({**numbered.names, NO_OBJECT: ""}, numbered.refusal) if 0 in numbered.names else numbered


def _has_coco_ids(source: Source) -> bool:
    """Whether boxes are numbered by COCO's ids, where a person is 1, and not from 0: no subject of the first image with
    interactions has category 0."""
    for _, item in islice(source.items(), CHECK_FIRST):
        try:
            boxes = item[key_of(item, BOX_KEYS)]
            people = {int(boxes[int(hoi["subject_id"])]["category_id"]) for hoi in item[key_of(item, HOI_KEYS)]}
        except (KeyError, TypeError, ValueError, IndexError):
            continue  # `build` reports the problem
        if people:
            return 0 not in people
    return False


def key_of(item: dict[str, Any], keys: tuple[str, ...]) -> str:
    """Return the first of some keys that an item has; if it has none, the first key, which the message then names."""
    return next((key for key in keys if key in item), keys[0])


def _classify_boxes(name: str, boxes: list[list[Any]], hois: list[dict[str, Any]], context: Context) -> Record:
    """Return the record of an image whose boxes get their classes from its interactions; under "verb", each of `hois`
    has both the verb and the object's label. Boxes that no interaction uses have no class, and are counted as left out.
    """
    used, table = set[int](), BoxTable(context.subject)
    for hoi in hois:
        (verb, label), box_indices = hoi.pop("verb"), (hoi.pop("subject"), hoi.pop("object"))
        table.pair(boxes[box_indices[0]], boxes[box_indices[1]], label, verb=verb, **hoi)
        used.update(box_indices)
    unused = [index for index in range(len(boxes)) if index not in used]
    if unused:
        place = f"{context.place}.predictions[{unused[0]}]"
        context.drop("boxes without a class (no interaction uses them)", place, len(unused))
    return image_record(name, **table.columns)


# Writing


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """Write records as a list in the target's layout, in plain JSON, one image at a time; numbers stay exact. Keys of a
    record that the layout lacks are dropped, and counted if the records are ground truth. Raises `DataError` for an
    interaction without a score in predictions, or with one in ground truth."""
    if context.target == "corre":
        _write_correspondence(records, path, context)
        return
    layout, vocabulary = LAYOUTS[context.target], context.vocabulary
    object_ids = context.choose_numbers("objects", vocabulary.object_ids, _usual_objects(layout, context))
    verb_ids = context.choose_numbers(
        "verbs", vocabulary.verb_ids, {verb_id + int(layout.verbs): verb_id for verb_id in range(len(vocabulary.verbs))}
    )
    shift = context.written_shift(layout.shift) if layout.shift else None

    def interaction(hoi: dict[str, Any], labels: Sequence[str]) -> dict[str, Any]:
        written = {"subject_id": hoi["subject"], "object_id": hoi["object"], layout.verb: verb_ids[hoi["verb"]]}
        if layout.scored:
            written["score"] = hoi["score"]
        elif (number := vocabulary.interaction_id(hoi["verb"], labels[hoi["object"]])) is not None:
            written["hoi_category_id"] = number + 1
        return {**written, "action_score": hoi["verb_score"]} if "verb_score" in hoi else written

    def image(record: Record) -> bytes:
        require_scores(record, context.target, scored=layout.scored)
        if not layout.scored:
            context.tell_lost(record, *layout.kept_keys)
        boxes = zip(record["boxes"], record["labels"], strict=True)
        head = {layout.image[0]: file_name_of(record), **pick_keys(record, *layout.kept_keys)}
        rows = [{"bbox": corners(box, "", shift), "category_id": object_ids[label]} for box, label in boxes]
        hois = [interaction(hoi, record["labels"]) for hoi in record["hois"]]
        return orjson.dumps({**head, layout.boxes[0]: rows, layout.hois[0]: hois})

    write_items(path, map(image, records))


def _usual_objects(layout: Layout, context: Context) -> dict[int, int]:
    """Return the object id of each number that a layout writes if the dataset has no numbering of its own: COCO's ids
    or, for objects that are not COCO's, the dataset's order from 1. It is empty for a layout that writes the ids."""
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


def _write_correspondence(records: Iterable[Record], path: str, context: Context) -> None:
    """Write the 0-1 matrix [verbs, objects] of the dataset's interactions. The records are read only to count their
    triplets that are no interaction of the dataset."""
    vocabulary = context.vocabulary
    for record in records:
        for hoi in record["hois"]:
            if (hoi["verb"], record["labels"][hoi["object"]]) not in vocabulary.interaction_ids:
                context.drop(f"triplets of no {vocabulary.name} interaction", Place(f"image {record['image_id']}"))
    verbs = sorted(vocabulary.verbs, key=context.choose_numbers("verbs", vocabulary.verb_ids).__getitem__)
    objects = sorted(vocabulary.objects, key=context.choose_numbers("objects", vocabulary.object_ids).__getitem__)
    content = io.BytesIO()
    matrix = [[(verb, name) in vocabulary.interaction_ids for name in objects] for verb in verbs]
    np.save(content, np.array(matrix, dtype=np.uint8))
    with open_output(path) as output:
        output(content.getvalue())
