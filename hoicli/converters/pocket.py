"""instances_{train,test}2015.json of fredzzhang/hicodet (UPT, PViC, SCG): one dictionary for the whole dataset.

Boxes are 1-based inclusive: 1 is subtracted from all four numbers. Indices are 0-based. The object order is
alphabetical in branch `main` and COCO's in branch `class`; it is read from the file's own `objects`. Image ids are
file names without their extension. There are no image-level labels and no invisible instances, so Known Object labels
are derived from the pairs, and the conversion says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, entry
from hoicli.converters.formats import image_id_of
from hoicli.errors import DataError
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, normalise


def sniff(source: Source) -> bool:
    """A dictionary with annotation, filenames and correspondence."""
    return source.kind == "json-object" and {"annotation", "filenames", "correspondence"} <= source.mapping.keys()


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image, those without pairs included."""
    content = source.mapping
    objects = [normalise(name) for name in content["objects"]]
    verbs = [normalise(name) for name in content["verbs"]]
    strangers = [name for name in objects if name not in context.vocabulary.object_ids]
    strangers += [name for name in verbs if name not in context.vocabulary.verb_ids]
    if strangers:
        raise DataError(
            f"{strangers[0]!r} is no {context.vocabulary.name} name", place=source.name, field="objects, verbs"
        )
    columns = [content["filenames"], content["size"], content["annotation"]]
    if len({len(column) for column in columns}) != 1:
        lengths = ", ".join(str(len(column)) for column in columns)
        raise DataError(f"filenames, size and annotation have {lengths} entries; they must agree", place=source.name)
    context.announce(
        "no image-level labels in this file: Known Object will derive them from the pairs (use anno_bbox.mat)"
    )

    def build(item: tuple[str, list[int], dict[str, Any]]) -> Record:
        file_name, (width, height), annotation = item
        table = BoxTable()
        hois = []
        rows = zip(*(annotation.get(key, ()) for key in ("boxes_h", "boxes_o", "object", "verb")), strict=True)
        for human, thing, object_index, verb_index in rows:
            hois.append(
                {
                    "subject": table.add(_zero_based(human), SUBJECT),
                    "object": table.add(_zero_based(thing), entry(objects, object_index, ".object")),
                    "verb": entry(verbs, verb_index, ".verb"),
                }
            )
        return {
            "image_id": image_id_of(file_name),
            "file_name": file_name,
            "width": width,
            "height": height,
            "boxes": table.boxes,
            "labels": table.labels,
            "hois": hois,
        }

    items = ((f"annotation[{index}]", item) for index, item in enumerate(zip(*columns, strict=True)))
    yield from context.each(items, build, source)


def _zero_based(box: list[float]) -> list[float]:
    x1, y1, x2, y2 = box
    return [x1 - 1, y1 - 1, x2 - 1, y2 - 1]
