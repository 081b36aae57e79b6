"""SWIG-HOI annotations: swig_{train,val,trainval,test,dev}_1000.json.

    {"file_name", "img_id", "height", "width", "box_annotations": [{"bbox", "category_id", "aux_category_id"}],
     "hoi_annotations": [{"subject_id", "object_id", "action_id"}]}

Boxes are [x1, y1, x2, y2] in pixels of the dataset's images, resized to a short side of 512 (images_512); they are read
unchanged, as its loader and its evaluator do. Everything counts from 0: the 1,000 categories (a person is 0), the 407
actions, and subject_id and object_id, which index box_annotations. category_id alone decides the class of an
interaction; aux_category_id, another name from annotators, is for training only and left out.

The image id is the file name without its extension (wrapping_196). Dumps of the INP-CC family name images only by
`img_id`, so it is kept, and `--image-list` finds it there.

Read by ltttpku/INP-CC (datasets/swig.py, datasets/swig_evaluator.py). `read` raises `DataError` naming the item, from
[0], and for CHOIR's HICO-DET, which has `target_id` for object_id and other numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, Noticed, entry, image_record, kept
from hoicli.converters.hoi_lists import boxes_of
from hoicli.converters.hoia import AS_CORNERS, announce_inverted, note_inverted
from hoicli.records.parsing import Record


def sniff(source: Source) -> bool:
    """A list whose first item has box_annotations and hoi_annotations."""
    return source.first_has("box_annotations", "hoi_annotations")


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image, also those without interactions."""
    vocabulary = context.vocabulary
    context.announce(AS_CORNERS)
    inverted = Noticed()

    def build(item: dict[str, Any]) -> Record:
        boxes = boxes_of(item, "box_annotations")
        note_inverted(boxes, f"{context.place}.box_annotations", inverted)
        labels = [
            entry(vocabulary.objects, row["category_id"], f".box_annotations[{index}].category_id")
            for index, row in enumerate(item["box_annotations"])
        ]
        ends, hois = range(len(boxes)), []
        for index, hoi in enumerate(item["hoi_annotations"]):
            field = f".hoi_annotations[{index}]"
            hois.append(
                {
                    "subject": entry(ends, hoi["subject_id"], f"{field}.subject_id"),
                    "object": entry(ends, hoi["object_id"], f"{field}.object_id"),
                    "verb": entry(vocabulary.verbs, hoi["action_id"], f"{field}.action_id"),
                }
            )
        return image_record(item["file_name"], boxes, labels, hois, kept(item, "img_id", "width", "height"))

    yield from context.each(source.items(), build, source)
    announce_inverted(inverted, context)
