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
"""The position after COCO's 80: a query without object, in QPIC's family."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A format as data. Of several keys for one thing, an item has any; the first is in the message if it has none.

    objects: the numbering of the boxes' classes (of OBJECT_ORDERS), "own" for the dataset's order from 0, "first" for
    what the first subjects tell, "none" where interactions are numbered, which tell the classes. verbs: the number of
    the first verb, or the order of V-COCO's action-roles (of VCOCO_ORDERS). shift: what is subtracted from the boxes of
    ground truth. strays: interactions that point at no box are known; they are left out and counted. Elsewhere the
    check of the record refuses them.
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
        """Whether interactions are V-COCO's."""
        return isinstance(self.verbs, str)


BOX_KEYS = ("predictions", "prediction", "annotations", "annotation")
HOI_KEYS = ("hoi_prediction", "hoi_predictions", "hoi_annotation")
"""The spellings that readers of predictions know (PPDM's src/lib/eval/vcoco_eval.py)."""
IMAGE_KEYS = ("file_name", "filename", "image_id")


def _predictions(verbs: int | str, **more: Any) -> Layout:
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
    """The rows under a key of each item (of the first `limit`), up to a broken item, which reading reports."""
    try:
        for _, item in islice(source.items(), limit):
            rows = item.get(key) if isinstance(item, dict) else None
            yield from (row for row in (rows if isinstance(rows, list) else ()) if isinstance(row, dict))
    except DataError:
        return


def is_truth(source: Source) -> bool:
    """Interactions without scores (with them it is PPDM's)."""
    return "score" not in next(rows_under(source, "hoi_annotation", CHECK_FIRST), {})


def is_vcoco(source: Source) -> bool:
    """Images called COCO_, and some interaction 0 (HICO-DET counts from 1). All of a file with such names is
    searched."""
    if "COCO_" not in str((source.first_item or {}).get("file_name")):
        return False
    return any(str(hoi.get("category_id")).strip() == "0" for hoi in rows_under(source, "hoi_annotation"))


def has_classes(source: Source) -> bool:
    """Predictions whose boxes have categories, or without any box."""
    return not is_classless(source)


def is_classless(source: Source) -> bool:
    """Predictions whose boxes have no category."""
    return "category_id" not in next(rows_under(source, "predictions", CHECK_FIRST), {"category_id": None})


def is_scored(source: Source) -> bool:
    """Boxes and interactions of images, under any of their keys; hoi_annotation needs scores."""
    item = source.first_item
    if not isinstance(item, dict) or item.keys().isdisjoint(BOX_KEYS) or item.keys().isdisjoint(HOI_KEYS):
        return False
    return not item.keys().isdisjoint(HOI_KEYS[:2]) or not is_truth(source)


def is_scored_vcoco(source: Source) -> bool:
    """The same, of images called COCO_."""
    return is_scored(source) and any("COCO_" in str(source.first_item.get(key)) for key in IMAGE_KEYS)


# Reading


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image, also those without interactions."""
    layout = LAYOUTS[context.format]
    _announce(source, layout, context)
    objects, order = _objects(source, layout, context), VCOCO_ORDERS[str(layout.verbs)] if layout.roles else ()
    roles = {name: action_role(name, context) for name in order}  # what each of V-COCO's makes of a triplet
    classless = layout.objects == "none"
    verbs: Numbers[Any]
    if roles:
        verbs = Numbers.from_items([*roles], context.base(0))
    else:
        verbs = context.interactions() if classless else context.verbs(base=int(layout.verbs))
    verb_of: Mapping[int, Any] = verbs.names
    verb_key, scored, verbs_seen = layout.verb, layout.scored, set[Any]()
    shift, form = context.truth_shift(layout.shift) if layout.shift else None, context.options.get("box_form")

    def build(item: dict[str, Any]) -> Record:
        name = item[key_of(item, layout.image)]
        box_key, hoi_key = key_of(item, layout.boxes), key_of(item, layout.hois)
        if context.format == "ppdm" and image_id_of(name).startswith("COCO_"):
            problem = f"{name!r} is a V-COCO image, whose verbs are numbered differently"
            raise DataError(f"{problem}: use {arg('from_', 'qpic-vcoco-list')} or ppdm-vcoco-list", field=".file_name")
        rows = item[box_key]
        boxes = [corners(row["bbox"], f".{box_key}[{index}].bbox", shift, form) for index, row in enumerate(rows)]
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
            if not (0 <= subject < count > object_ >= 0):
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
        named = {"file_name": name} if not scored or "COCO_" in str(name) else {}
        record = {
            "image_id": coco_number(name),
            **named,
            **pick_keys(item, *layout.kept_keys),
            "boxes": boxes,
            "labels": labels,
        }
        return {**record, "hois": hois, **({} if scored else {"caveats": [UNMARKED_PEOPLE]})}

    yield from context.each(source.items(), build, source)
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
    """Say what the file does not say. Raises `DataError` for V-COCO as HICO-DET's ground truth."""
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
        inp_cc = context.format == "swig" or source.first_has("img_id")  # as test_hico_ann.json
        if inp_cc and "box_form" not in context.options:
            read = "bbox, described as [x, y, w, h], is read as [x1, y1, x2, y2], as the released code does"
            context.announce(f"{read} ({arg('box_form', 'xywh')}: as described)")


def _objects(source: Source, layout: Layout, context: Context) -> Numbers[str]:
    """The classes of boxes; "" says that there is no object."""
    if layout.objects in ("own", "none"):
        return Numbers.from_items(context.vocabulary.objects)
    if layout.objects != "first":
        return context.objects(layout.objects, "; is this file HICO-DET's?" if context.format == "hoia" else "")
    numbered = context.objects("coco-id" if _has_coco_ids(source) else "coco")
    return Numbers({**numbered.names, NO_OBJECT: ""}, numbered.refusal) if 0 in numbered.names else numbered


def _has_coco_ids(source: Source) -> bool:
    """Whether boxes are numbered by COCO id: no subject of the first images has category 0."""
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
    """The spelling that the item uses; the first one if it has none, for the message about a missing key."""
    return next((key for key in keys if key in item), keys[0])


def _classify_boxes(name: str, boxes: list[list[Any]], hois: list[dict[str, Any]], context: Context) -> Record:
    """The record of an image whose interactions, (verb, label) each, tell the classes of its boxes."""
    used, table = set[int](), BoxTable(context.subject)
    for hoi in hois:
        (verb, label), ends = hoi.pop("verb"), (hoi.pop("subject"), hoi.pop("object"))
        table.pair(boxes[ends[0]], boxes[ends[1]], label, verb=verb, **hoi)
        used.update(ends)
    unused = [index for index in range(len(boxes)) if index not in used]
    if unused:
        place = f"{context.place}.predictions[{unused[0]}]"
        context.drop("boxes without a class (no interaction uses them)", place, len(unused))
    return image_record(name, **table.columns)


# Writing


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """The list of a layout as plain JSON, one image at a time: keys that hoicli does not know are dropped (of ground
    truth, and counted), numbers lose nothing. Raises `DataError` for an interaction without a score, or for one with a
    score in ground truth."""
    if context.target == "corre":
        _write_correspondence(records, path, context)
        return
    layout, vocabulary = LAYOUTS[context.target], context.vocabulary
    object_ids = context.choose_numbers("objects", vocabulary.object_ids, _usual_objects(layout, context))
    verb_ids = context.choose_numbers(
        "verbs", vocabulary.verb_ids, {at + int(layout.verbs): at for at in range(len(vocabulary.verbs))}
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
    """The id of each number of an object, where the dataset has no numbering: COCO's ids, or its own order from 1."""
    vocabulary = context.vocabulary
    if layout.objects != "coco-id":
        return {}
    if vocabulary.coco_ids:
        return {number: vocabulary.object_ids[name] for name, number in vocabulary.coco_ids.items()}
    if "objects" not in vocabulary.numbering:
        back = arg("object_order", "coco-1")
        context.announce(
            f"objects are numbered from 1 in the order of {vocabulary.path or vocabulary.name} ({back} reads them)"
        )
    return {at + 1: at for at in range(len(vocabulary.objects))}


def _write_correspondence(records: Iterable[Record], path: str, context: Context) -> None:
    """The matrix of the dataset's interactions; triplets of the records that it has a 0 for are counted."""
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
