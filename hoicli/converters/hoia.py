"""The HOI-A layout: HICO-DET's trainval_hico.json, test_hico.json (PPDM, QPIC, CDN), test_hico_ann.json (INP-CC), and
with --dataset HOI-A's own train_hoia.json, test_hoia.json, HOI-W's files, and those of any dataset with a numbering.

    {"file_name", "annotations": [{"bbox", "category_id"}], "hoi_annotation": [{"subject_id", "object_id",
     "category_id"}]}, and in some files img_id, height, width, hoi_category_id

HICO-DET's boxes are [x1, y1, x2, y2], 1-based inclusive: 1 is subtracted from all four numbers. category_id of a box is
a COCO id (1-90 with gaps), of an interaction a verb counted from 1; either may be text that ends in a line break.
subject_id and object_id are 0-based indices of `annotations`, so equal boxes are not merged. Interactions that point at
no box are dropped and counted, as in QPIC. height and width are kept, other keys are not. There are no image-level
labels and no invisible instances: Known Object labels are derived from the pairs, and the conversion says so. A
dataset's own numbering and `box` replace this: HOI-A counts verbs and objects from 1, its boxes are edges. V-COCO has
the same layout with verbs from 0 (hoia_vcoco.py); `read` refuses it.

Read by YueLiao/CDN and hitachi-rd-cv/qpic (datasets/hico.py), YueLiao/PPDM (src/lib/eval/hico_eval.py) and
ltttpku/INP-CC (datasets/hico.py). `read` raises `DataError` naming the item, from [0].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, Noticed, image_record, kept
from hoicli.converters.hoi_lists import boxes_of, first_row_has, interactions_of, is_vcoco, labels_of
from hoicli.converters.numbers import ONE_BASED
from hoicli.errors import DataError, arg
from hoicli.records.parsing import Record


def sniff(source: Source) -> bool:
    """A list whose first item has hoi_annotation and annotations, without scores (with them it is PPDM's)."""
    return source.first_has("hoi_annotation", "annotations") and not first_row_has(source, "hoi_annotation", "score")


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image, also those without interactions."""
    if is_vcoco(source):
        problem = "is V-COCO in the HOI-A layout (COCO_ file names, verbs from 0)"
        raise DataError(f"{problem}: use {arg('from_', 'qpic-vcoco')} or ppdm-vcoco-gt", place=source.name)
    objects = context.objects("coco-id", "; is this file HICO-DET's?")
    if not context.vocabulary.numbering:
        context.announce(DERIVED)
    if source.first_has("img_id"):  # INP-CC's, as test_hico_ann.json
        context.announce(AS_CORNERS)
    inverted = Noticed()

    def build(item: dict[str, Any]) -> Record:
        boxes = boxes_of(item, "annotations", context.truth_shift(ONE_BASED))
        labels = labels_of(item, "annotations", objects)
        note_inverted(boxes, f"{context.place}.annotations", inverted)
        hois = [
            {
                "subject": subject,
                "object": object_,
                "verb": context.verb(hoi["category_id"], f"{field}.category_id", base=1),
            }
            for field, subject, object_, hoi in interactions_of(item, "hoi_annotation", len(boxes), context)
        ]
        return image_record(item["file_name"], boxes, labels, hois, kept(item, "width", "height"))

    yield from context.each(source.items(), build, source)
    announce_inverted(inverted, context)


DERIVED = "no image-level labels in this file: Known Object will derive them from the pairs (use anno_bbox.mat)"

AS_CORNERS = "bbox, described as [x, y, w, h], is read as [x1, y1, x2, y2], as the released code does"


def note_inverted(boxes: list[list[Any]], place: str, inverted: Noticed) -> None:
    """Count the boxes with x2 < x1 or y2 < y1."""
    for index, (x1, y1, x2, y2) in enumerate(boxes):
        if x2 < x1 or y2 < y1:
            inverted.add(f"{place}[{index}].bbox")


def announce_inverted(inverted: Noticed, context: Context) -> None:
    """Print how many boxes have x2 < x1 or y2 < y1, and how they were read."""
    if inverted.count:
        context.announce(
            f"boxes with x2 < x1 or y2 < y1: {inverted}; they only make sense as [x, y, w, h], but are read as "
            "[x1, y1, x2, y2], as every evaluator reads this layout"
        )
