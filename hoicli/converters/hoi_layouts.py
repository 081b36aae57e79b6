"""The layouts of `hoi_lists`: the keys and the numbering of each format that is a list of images with numbered boxes
and interactions. Each format is a row of LAYOUTS, with the projects whose code writes or reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.numbers import FAR_EDGES, ONE_BASED, Numbers


@dataclass(frozen=True, kw_only=True)
class Layout:
    """One format of `hoi_lists` as data: a row of LAYOUTS. Where a field names several keys for one thing, an item may
    use any of them; if it uses none, the message about the missing key names the first.

    image, boxes, hois: the keys of an item's file name, boxes and interactions. verb: the key of an interaction's verb.
    kept_keys: the keys of an item that the record keeps. objects: the numbering of the boxes' classes (a name in
    OBJECT_ORDERS), "own" for the dataset's order from 0, "first" for the numbering that the subjects of the first
    images show, "none" where boxes have no class and the interactions' numbers tell it. verbs: the number of the first
    verb, or the name of an order of V-COCO's action-roles (in VCOCO_ORDERS). shift: the four numbers that are
    subtracted from a box of ground truth. scored: whether the format holds predictions. strays: whether interactions
    that point at no box are known to occur; they are then left out and counted, and are an error in other formats."""

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
        """Return whether the file's verbs are V-COCO's actions, each with its role."""
        return isinstance(self.verbs, str)


BOX_KEYS = ("predictions", "prediction", "annotations", "annotation")
HOI_KEYS = ("hoi_prediction", "hoi_predictions", "hoi_annotation")
"""The spellings that readers of predictions know (PPDM's src/lib/eval/vcoco_eval.py)."""
CHECK_FIRST = 50
"""Images checked to distinguish formats that differ only in their rows."""
NO_OBJECT = 80
"""The number after COCO's 80 objects: it marks a query without an object, in QPIC's family."""
IMAGE_KEYS = ("file_name", "filename", "image_id")


def _predictions(verbs: int | str, **further_fields: Any) -> Layout:
    """Return the layout of a list of predictions that may use any of the known keys."""
    return Layout(boxes=BOX_KEYS, hois=HOI_KEYS, kept_keys=(), verbs=verbs, scored=True, **further_fields)


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


def key_of(item: dict[str, Any], keys: tuple[str, ...]) -> str:
    """Return the first of `keys` that an item has; without any the first key, whose look-up then fails."""
    return next((key for key in keys if key in item), keys[0])


def object_numbers(source: Source, layout: Layout, context: Context) -> Numbers[str]:
    """Return the object label that each category number of a box means, "" for a query without an object."""
    if layout.objects in ("own", "none"):
        return Numbers.count_from(context.vocabulary.objects)
    if layout.objects != "first":
        return context.objects(layout.objects, "; is this file HICO-DET's?" if context.format == "hoia" else "")
    numbering = context.objects("coco-id" if _has_coco_ids(source) else "coco")
    counts_from_zero = 0 in numbering.names
    return Numbers({**numbering.names, NO_OBJECT: ""}, numbering.refusal) if counts_from_zero else numbering


def _has_coco_ids(source: Source) -> bool:
    """Return whether a file numbers the classes of its boxes by COCO's ids, where a person is 1, and not in COCO's
    order from 0. It does if no subject of the first image with interactions has category 0."""
    for _, item in islice(source.items(), CHECK_FIRST):
        try:
            boxes = item[key_of(item, BOX_KEYS)]
            people = {int(boxes[int(hoi["subject_id"])]["category_id"]) for hoi in item[key_of(item, HOI_KEYS)]}
        except (KeyError, TypeError, ValueError, IndexError):
            continue  # the reader reports the problem
        if people:
            return 0 not in people
    return False
