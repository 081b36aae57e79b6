"""Predictions of the iCAN family (iCAN, TIN, VCL, HOI-CL, DJ-RN): one pickle of pairs with the scores of 600 classes.

    {image: [[human box, object box, object class, 600 scores, human score, object score, ...]]}

The image is HICO's number or a file name. Boxes are [x1, y1, x2, y2], read unchanged. The object class counts from 1
in COCO order (1-80). The score of a triplet is its class score times both boxes' scores, as the family's own
evaluation has it, which reads only the interactions of the object's class and only pairs with two positive scores;
others are left out and counted. Further elements of a row (scores of streams) are not read.

Read by vt-vl-lab/iCAN and DirtyHarryLYL/DJ-RN (Generate_detection.py, -Results/Evaluate_ambiguous.py). `read` raises
`DataError` naming the image and the row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, entry
from hoicli.converters.imagelist import named_image, number_or_name, numbered_images
from hoicli.converters.numbers import corners, finite, finite_list, shown
from hoicli.errors import DataError, arg
from hoicli.records.parsing import Record

ELEMENTS = 6
"""Of a row, at least."""
UNDETECTED = "pairs with a box score of 0 or less"


def sniff(source: Source) -> bool:
    """A pickled dictionary of lists of rows whose fourth element has a number for each of 600 interactions."""
    if source.kind != "pickle":
        return False
    row = next((rows[0] for rows in source.mapping.values() if isinstance(rows, list) and rows), None)
    return isinstance(row, list | tuple) and len(row) >= ELEMENTS and _length(row[3]) == 600 and _length(row[0]) == 4


def _length(value: Any) -> int:
    flat = _flat(value)
    return len(flat) if isinstance(flat, list) else 0


def _flat(value: Any) -> Any:
    """A NumPy array as a flat list, anything else as it is."""
    return value.ravel().tolist() if hasattr(value, "ravel") else value


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image."""
    vocabulary = context.vocabulary
    if not source.mapping:
        raise DataError(
            f"holds no dictionary of images; {arg('from_', like='NAME')} chooses another format", place=source.name
        )
    numbers = cache(lambda: numbered_images(context, source))
    rows_of = {label: vocabulary.interactions_of(label) for label in vocabulary.objects}
    if any(type(number_or_name(image)) is int for image in source.mapping):
        numbers()  # without the numbers of the images there is nothing to read

    def build(item: tuple[Any, Any]) -> Record:
        head = named_image(item[0], numbers, context)
        table, hois = BoxTable(context.subject), []
        for index, row in enumerate(item[1]):
            field = f"[{index}]"
            row = [_flat(part) for part in row]
            _, _, number, scores, *strengths = row
            label = entry(vocabulary.objects, number, f"{field}[2]", base=1)
            if not isinstance(scores, list) or len(scores) != len(vocabulary.interactions):
                problem = f"{_length(scores)} scores, but {vocabulary.name} has {len(vocabulary.interactions)} classes"
                raise DataError(problem, field=f"{field}[3]")
            both = [finite(strengths[place], f"{field}[{4 + place}]") for place in (0, 1)]
            if min(both) <= 0:
                context.drop(UNDETECTED, context.place + field)
                continue
            human, other = (corners(finite_list(row[at], f"{field}[{at}]"), f"{field}[{at}]") for at in (0, 1))
            pair = table.pair(human, other, label)
            for interaction in rows_of[label]:
                score = finite(scores[interaction], f"{field}[3][{interaction}]") * both[0] * both[1]
                hois.append({**pair, "verb": vocabulary.interactions[interaction][0], "score": score})
        return {**head, "boxes": table.boxes, "labels": table.labels, "hois": hois}

    images = ((f"[{shown(image)}]", (number_or_name(image), rows)) for image, rows in source.mapping.items())
    yield from context.each(images, build, source)
