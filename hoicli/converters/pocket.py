"""instances_{train,test}2015.json of fredzzhang/hicodet (UPT, PViC, SCG): one dictionary for the whole dataset.

Boxes are 1-based inclusive: 1 is subtracted from all four numbers. Indices are 0-based. The object order is
alphabetical in branch `main` and COCO's in branch `class`; it is read from the file's own `objects`. Image ids are
file names without their extension. There are no image-level labels and no invisible instances, so Known Object labels
are derived from the pairs, and the conversion says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, entry, image_record
from hoicli.converters.hoia import DERIVED
from hoicli.converters.numbers import ONE_BASED, corners
from hoicli.errors import DataError
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import normalise


def sniff(source: Source) -> bool:
    """A dictionary with annotation, filenames and correspondence."""
    return source.mapping_has("annotation", "filenames", "correspondence")


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record an image, those without pairs included."""
    content = source.mapping
    objects = known_names(content["objects"], context.vocabulary.object_ids, source, "objects")
    verbs = known_names(content["verbs"], context.vocabulary.verb_ids, source, "verbs")
    columns = [content["filenames"], content["size"], content["annotation"]]
    if len({len(column) for column in columns}) != 1:
        lengths = ", ".join(str(len(column)) for column in columns)
        raise DataError(f"filenames, size and annotation have {lengths} entries; they must agree", place=source.name)
    context.announce(DERIVED)

    def build(item: tuple[str, list[int], dict[str, Any]]) -> Record:
        file_name, (width, height), annotation = item
        table = BoxTable()
        hois = []
        rows = zip(*(annotation.get(key, ()) for key in ("boxes_h", "boxes_o", "object", "verb")), strict=True)
        for person, other, object_index, verb_index in rows:
            boxes = corners(person, ".boxes_h", ONE_BASED), corners(other, ".boxes_o", ONE_BASED)
            pair = table.pair(*boxes, entry(objects, object_index, ".object"))
            hois.append({**pair, "verb": entry(verbs, verb_index, ".verb")})
        return image_record(file_name, table.boxes, table.labels, hois, {"width": width, "height": height})

    items = ((f"annotation[{index}]", item) for index, item in enumerate(zip(*columns, strict=True)))
    yield from context.each(items, build, source)


def known_names(names: list[Any], known: Collection[str], source: Source, field: str) -> list[str]:
    """A file's own list of names, in the records' spelling. Raises `DataError` for a name that is not `known`."""
    spelled = [normalise(name) for name in names]
    unknown = [name for name in spelled if name not in known]
    if unknown:
        raise DataError(f"{unknown[0]!r} is no name of the dataset", place=source.name, field=field)
    return spelled
