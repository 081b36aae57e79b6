"""Predictions of the INP-CC family (INP-CC, THID, CMD-SE): preds.pkl, dets.pkl, and one dictionary with rows for each
image.

    {"scores": {hoi: [score]}, "boxes": {hoi: [[8 numbers]]}, "keys": {hoi: [image]}}    (dets.pkl: and "gts", not read)
    {image: [[hoi, score, 8 numbers]]}                                                   (JSON or a pickle)

The 8 numbers are the person's and the object's box, float edges in pixels of the original image, taken as they are: the
protocols compare them unshifted. `hoi` is 0-599 in HICO-DET's order, 0-14,129 in SWIG-HOI's (--dataset swig), and
gives verb and object label. An image is a number or a file name; text digits count as a number. The number is that at
the end of the file name or, if `--image-list` has them (SWIG-HOI), the `img_id`, which the record keeps. Equal boxes of
one label in an image become one. NumPy arrays may stand for lists. Triplets stay in the file's order, by ascending
`hoi` in preds.pkl, whose images come sorted; an image without predictions is in neither. Read by ltttpku/INP-CC,
datasets/hico_evaluator.py.

`read` raises `DataError` with the place in the file: `.boxes[17][3]` is box 3 of interaction 17, `[42][3]` is row 3 of
image 42.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.images import NumberedImages
from hoicli.converters.numbers import Numbers, finite_list, listed, plain, shown, table
from hoicli.errors import DataError, arg
from hoicli.records.names import number_or_name
from hoicli.records.parsing import Record

COLUMNS = ("scores", "boxes", "keys")
BEFORE = ("HOI id", "score")
"""The numbers of a row before its boxes, where it is by itself."""

_Rows = list[list[Any]]


def sniff(source: Source) -> bool:
    """A dictionary with scores, boxes and keys, or one whose values are lists of rows of numbers."""
    if source.kind not in ("json-object", "pickle") or not source.mapping:
        return False
    if _has_columns(source):
        return True
    tables = [plain(value) for value in source.mapping.values()]
    if not all(isinstance(table, list | tuple) for table in tables):
        return False
    row = next((plain(table[0]) for table in tables if table), None)
    if row is None:  # no predictions: only the keys are evidence
        return all(type(number_or_name(image)) is int for image in source.mapping)
    return isinstance(row, list | tuple) and len(row) > 1 and {*map(type, row)} <= {int, float}


def _has_columns(source: Source) -> bool:
    return all(isinstance(source.mapping.get(name), dict) for name in COLUMNS)


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image that the file names."""
    if context.vocabulary.roles:
        problem = f"numbers interactions of HICO-DET or SWIG-HOI; say {arg('dataset', 'hico')} or swig"
        raise DataError(problem, place=source.name)
    other = "" if context.vocabulary.name == "swig" else f"; for SWIG-HOI's 14,130 say {arg('dataset', 'swig')}"
    interactions = context.interactions(other)
    if _has_columns(source):
        images = _gathered(source, interactions, context)
    else:
        images = [(f"[{shown(key)}]", key, rows) for key, rows in source.entries().items()]
    known = NumberedImages(source, context, (image for _, image, _ in images))

    def build(item: tuple[Any, Any]) -> Record:
        record = known.record(item[0])
        boxes = BoxTable(context.subject)
        for index, row in enumerate(table(item[1], BEFORE)):
            verb, label = interactions.names.get(row[0]) or interactions.name(row[0], f"[{index}]")  # 17.0 equals 17
            boxes.pair(row[2:6], row[6:], label, verb=verb, score=row[1])
        return {**record, **boxes.columns}

    yield from context.each(((where, (image, rows)) for where, image, rows in images), build, source)


def _gathered(source: Source, interactions: Numbers[Any], context: Context) -> list[tuple[str, Any, _Rows]]:
    """(place of the first row, image, rows) of preds.pkl, by image. An interaction with an error goes to the policy."""
    columns = [
        {_hoi_id(key, f".{name}", source): values for key, values in source.mapping[name].items()} for name in COLUMNS
    ]
    found = sorted({hoi for column in columns for hoi in column})
    for hoi in (*found[:1], *found[-1:]):
        if hoi not in interactions.names:
            problem = f"holds {len(found):,} interactions: id {shown(hoi)}{interactions.refusal}"
            raise DataError(problem, place=source.name)

    def build(hoi: int) -> Record:
        scores, boxes, keys = (
            listed(column.get(hoi, []), f".{name}[{hoi}]") for name, column in zip(COLUMNS, columns, strict=True)
        )
        if not len(scores) == len(boxes) == len(keys):
            counts = f"{len(boxes):,} boxes, {len(scores):,} scores and {len(keys):,} keys"
            raise DataError(f"{counts}; they must agree: write the file again", field=f".boxes[{hoi}]")
        images = [number_or_name(plain(key)) for key in keys]
        for index, image in enumerate(images):
            if type(image) not in (int, str):
                problem = f"{shown(image)} is no image; give a number or a file name"
                raise DataError(problem, field=f".keys[{hoi}][{index}]")
        scored = zip(finite_list(scores, f".scores[{hoi}]"), table(boxes, (), f".boxes[{hoi}]"), strict=True)
        return {"hoi": hoi, "images": images, "rows": [[hoi, score, *box] for score, box in scored]}

    images: dict[Any, tuple[str, Any, _Rows]] = {}
    for item in context.each((("", hoi) for hoi in found), build, source):
        for index, (image, row) in enumerate(zip(item["images"], item["rows"], strict=True)):
            if image not in images:
                images[image] = (f".keys[{item['hoi']}][{index}]", image, [])
            images[image][2].append(row)
    return [images[image] for image in sorted(images, key=lambda image: (type(image) is str, image))]


def _hoi_id(key: Any, field: str, source: Source) -> int:
    number = number_or_name(key)
    if type(number) is not int:
        raise DataError(f"key {shown(key)} is no HOI id; they are integers", place=source.name, field=field)
    return number
