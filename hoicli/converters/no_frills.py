"""anno_list.json of no_frills_hoi_det: anno_bbox.mat and anno.mat of HICO-DET as one JSON list of both splits.

    {"global_id", "image_path_postfix": "test2015/HICO_test2015_00000001.jpg", "image_size": [H, W, C], "hois": [{"id",
     "human_bboxes", "object_bboxes", "connections", "invis"}], "pos_hoi_ids", "neg_hoi_ids"}

Boxes are 0-based inclusive already (its writer subtracts the 1): nothing is shifted. HOI ids are the texts "001" to
"600"; connections are 0-based (human, object). An interaction with invis = 1 becomes an image-level label and no
triplet; the image-level labels are pos_hoi_ids and those. `--part` keeps the images whose image_path_postfix begins
with it, and the number of the others is announced. Equal boxes of one label are merged.

Written by BigRedT/no_frills_hoi_det (data/hico/mat_to_json.py). `read` raises `DataError` naming the item, from [0].
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, entry
from hoicli.converters.hico_mat import Box, Instances, interaction_id, record_of
from hoicli.errors import DataError, arg
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import Vocabulary


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image of the split; raises `DataError` if there is none."""
    vocabulary = context.vocabulary
    kept, others = 0, 0

    def of_split() -> Iterator[tuple[str, Any]]:
        nonlocal kept, others
        for where, item in source.items():
            folder = item.get("image_path_postfix") if isinstance(item, dict) else None
            if isinstance(folder, str) and not folder.startswith(context.split):
                others += 1
            else:  # `build` reports an item that is not an image
                kept += 1
                yield where, item

    def build(item: dict[str, Any]) -> Record:
        height, width = item["image_size"][:2]
        instances = [_instances(hoi, f".hois[{index}]", vocabulary) for index, hoi in enumerate(item["hois"])]
        positive = [
            interaction_id(number, f".pos_hoi_ids[{index}]", vocabulary)
            for index, number in enumerate(item["pos_hoi_ids"])
        ]
        file_name = PurePosixPath(item["image_path_postfix"]).name
        return record_of(file_name, width, height, instances, positive, vocabulary)

    yield from context.each(of_split(), build, source)
    other = "train" if context.split == "test" else "test"
    if others and not kept:
        problem = f"none of its {others:,} images is of the {context.split} split; {arg('part', other)} takes them"
        raise DataError(problem, place=source.name)
    if others:
        taken = f"taking the {context.split} split: {kept:,} images"
        context.announce(f"{taken}; {arg('part', other)} takes the other {others:,}")


def _instances(hoi: dict[str, Any], field: str, vocabulary: Vocabulary) -> Instances:
    interaction = interaction_id(hoi["id"], f"{field}.id", vocabulary)
    if hoi["invis"]:
        return Instances(interaction, visible=False)
    people, objects = (_boxes(hoi[key], f"{field}.{key}") for key in ("human_bboxes", "object_bboxes"))
    pairs = []
    for index, (person, object_) in enumerate(hoi["connections"]):
        place = f"{field}.connections[{index}]"
        pairs.append((entry(people, person, place), entry(objects, object_, place)))
    return Instances(interaction, people, objects, pairs)


def _boxes(boxes: list[Any], field: str) -> list[Box]:
    for index, box in enumerate(boxes):
        if not (isinstance(box, list) and len(box) == 4 and all(type(side) in (int, float) for side in box)):
            raise DataError(f"{box} is no box; give [x1, y1, x2, y2]", field=f"{field}[{index}]")
    return boxes
