"""Ambiguous-HOI's ground truth: gt_ambiguous_hoi.pkl, with ambi_names.pkl for the images without any of the 87 classes.

    {class: {"hico_id", "obj", "verb", "data": {file name: [n, 8]}}}     the 8 numbers: human box, object box
    [file name]                                                          all 8,996 images

hico_id is an interaction of HICO, counted from 0; obj and verb, which have numberings of their own, are not read. Boxes
are [x1, y1, x2, y2], read unchanged, as the evaluator compares them. Equal boxes of one label in an image become one.
Predictions on images that neither file names are refused later, so give both files: the released evaluator counts them
as false.

Read by DirtyHarryLYL/DJ-RN (-Results/Evaluate_ambiguous.py). `read` raises `DataError` naming the class and the image.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, entry, image_record
from hoicli.converters.numbers import shown, table
from hoicli.errors import DataError
from hoicli.records.parsing import Record


def sniff(source: Source) -> bool:
    """A dictionary whose first value has hico_id and data."""
    first = next(iter(source.mapping.values()), None) if source.kind == "pickle" else None
    return isinstance(first, dict) and {"hico_id", "data"} <= first.keys()


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image, in the order in which the files name them."""
    tables: dict[str, tuple[BoxTable, list[dict[str, Any]]]] = {}
    for key, item in source.mapping.items():
        where = f"[{shown(key)}]"
        try:
            _gather(item, where, context, tables)
        except DataError as error:
            context.policy.handle(DataError(error.problem, place=source.name, field=error.field))
    for companion in source.companions:
        for where, name in companion.items():
            if type(name) is not str:
                raise DataError(f"{shown(name)} is no file name", place=companion.name, field=where)
            tables.setdefault(name, (BoxTable(context.subject), []))
    if not source.companions:
        context.announce(
            f"{source.name}: images without ground truth are not known; give ambi_names.pkl as a second path"
        )

    def build(name: str) -> Record:
        boxes, hois = tables[name]
        return image_record(name, boxes.boxes, boxes.labels, hois)

    yield from context.each(((f": {name}", name) for name in tables), build, source)


def _gather(item: Any, where: str, context: Context, tables: dict[str, tuple[BoxTable, list[dict[str, Any]]]]) -> None:
    """Add the pairs of one class."""
    if not isinstance(item, dict) or not isinstance(item.get("data"), dict):
        raise DataError("has no data of images; is this gt_ambiguous_hoi.pkl?", field=where)
    verb, label = entry(context.vocabulary.interactions, item.get("hico_id"), f"{where}.hico_id")
    for name, rows in item["data"].items():
        field = f"{where}.data[{shown(name)}]"
        if type(name) is not str:
            raise DataError("is no file name", field=field)
        boxes, hois = tables.setdefault(name, (BoxTable(context.subject), []))
        hois += [{**boxes.pair(row[:4], row[4:], label), "verb": verb} for row in table(rows, (), field)]
