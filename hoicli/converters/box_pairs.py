"""Files of pairs of boxes, an image each: predictions of the iCAN family and of HOIDet, pairs of Diag-HOI, and the
ground truth of Ambiguous-HOI. Equal boxes of one label in an image become one, and nothing is shifted. The readers
raise `DataError` with the place in the file: `[3].box_pairs[5].h_box` is in image 3 of the list.

ican (iCAN, TIN, VCL, HOI-CL, DJ-RN): a pickle of pairs with the scores of 600 classes.

    {image: [[human box, object box, object class, 600 scores, human score, object score, ...]]}

The image is HICO's number or a file name; the object class counts from 1 in COCO order (1-80). The score of a triplet
is its class score times both boxes' scores, as the family's own evaluation has it, which reads only the interactions of
the object's class and only pairs with two positive scores; others are left out and counted. Further elements of a row
(scores of streams) are not read. Read by vt-vl-lab/iCAN (Generate_detection.py).

hoidet (HOIDet): pairs, each with one of the 600 interactions; float edges in pixels of the original image.

    [{"image_id", "boxes": [[4 numbers]], "h_idx": [index], "o_idx": [index], "hoi_score": [score], "hoi_class": [id]}]

image_id is HICO's number, hoi_class counts from 0, and the indices are of `boxes`, from 0. A box that no pair uses has
no label and is left out and counted. Read by jiayuancs/HOIDet (hoidet/metrics/hicodet.py).

diag-pairs (Diag-HOI): pairs without verbs, .pkl or .json (hicodet_pair_preds.pkl, pair_pred_wscore.pkl).

    [{"filename", "box_pairs": [{"h_box", "o_box", "o_label", "hoi_score_inter"}]}]

Boxes are float edges in pixels of the original image (also as 1 x 4), o_label is 0-79 in COCO order; a person may be
the object. A record has no hois, but `pairs`: {"subject", "object", "interactiveness"} in the file's order, repeated
ones too. NumPy arrays may stand for lists and numbers. Read by neu-vi/Diag-HOI, pair_localization.py.

ambiguous (Ambiguous-HOI): gt_ambiguous_hoi.pkl, with ambi_names.pkl for the images without any of the 87 classes.

    {class: {"hico_id", "obj", "verb", "data": {file name: [n, 8]}}}     the 8 numbers: human box, object box
    [file name]                                                          all 8,996 images

hico_id is an interaction of HICO, counted from 0; obj and verb, which have numberings of their own, are not read.
Predictions on images that neither file names are refused later, so give both files: the released evaluator counts them
as false. Read by DirtyHarryLYL/DJ-RN (-Results/Evaluate_ambiguous.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, entry, image_record
from hoicli.converters.image_ids import NumberedImages
from hoicli.converters.numbers import corners, finite, plain, read_list, shorten_value, table
from hoicli.errors import DataError
from hoicli.records.parsing import Record


def is_ican(source: Source) -> bool:
    """Return whether a file is iCAN's: a pickled dictionary of lists of rows with boxes and 600 scores."""
    rows = next((rows for rows in source.mapping.values() if isinstance(rows, list) and rows), [()])
    first_row = rows[0] if source.kind == "pickle" else ()
    if not isinstance(first_row, list | tuple) or len(first_row) < 6:
        return False
    human, scores = _inner(first_row[0]), _inner(first_row[3])
    return isinstance(human, list) and isinstance(scores, list) and len(human) == 4 and len(scores) == 600


def is_ambiguous(source: Source) -> bool:
    """Return whether a file is Ambiguous-HOI's: a pickled dictionary whose first value has hico_id and data."""
    first = next(iter(source.mapping.values()), None) if source.kind == "pickle" else None
    return isinstance(first, dict) and {"hico_id", "data"} <= first.keys()


def read_ican(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of iCAN's pickle. A row becomes a triplet for each interaction of its object."""
    vocabulary = context.vocabulary
    interactions_of = {label: vocabulary.interactions_of(label) for label in vocabulary.objects}
    images = NumberedImages(source, context, source.entries())

    def build(item: tuple[Any, Any]) -> Record:
        """Return the record of an image. item: its number or name, and its rows."""
        image, rows = item
        head = images.record(image)
        table = BoxTable(context.subject)
        for index, row in enumerate(rows):
            field = f"[{index}]"
            human, other, number, scores, *box_scores = map(_inner, row)
            label = entry(vocabulary.objects, number, f"{field}[2]", base=1)
            if not isinstance(scores, list) or len(scores) != len(vocabulary.interactions):
                count = len(scores) if isinstance(scores, list) else 0
                problem = f"{count} scores, but {vocabulary.name} has {len(vocabulary.interactions)} classes"
                raise DataError(problem, field=f"{field}[3]")
            two_scores = [finite(box_scores[offset], f"{field}[{4 + offset}]") for offset in (0, 1)]
            if min(two_scores) <= 0:  # the family's own evaluation reads no others
                context.drop("pairs with a box score of 0 or less", context.place + field)
                continue
            box_indices = {
                "subject": table.add(_box(human, f"{field}[0]"), context.subject),
                "object": table.add(_box(other, f"{field}[1]"), label),
            }
            for interaction in interactions_of[label]:
                score = finite(scores[interaction], f"{field}[3][{interaction}]") * two_scores[0] * two_scores[1]
                table.hois.append({**box_indices, "verb": vocabulary.interactions[interaction][0], "score": score})
        return {**head, **table.columns}

    yield from context.each(((f"[{shorten_value(item[0])}]", item) for item in source.entries().items()), build, source)


def read_hoidet(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of HOIDet's list. A pair of boxes is a triplet of one interaction."""
    interactions, images = context.interactions(), NumberedImages(source, context)
    form = context.options.get("box_form")

    def build(item: dict[str, Any]) -> Record:
        """Return the record of an item, which has an image's number, its boxes, and four columns of its pairs."""
        head, boxes, table = images.record(plain(item["image_id"])), item["boxes"], BoxTable(context.subject)
        columns = {key: read_list(item[key], f".{key}") for key in ("h_idx", "o_idx", "hoi_class", "hoi_score")}
        if len({*map(len, columns.values())}) != 1:
            counts = ", ".join(f"{len(column):,} {key}" for key, column in columns.items())
            raise DataError(f"{counts}; they must agree: write the file again", field=".h_idx")
        used = set[int]()
        for index, (human, other, number, score) in enumerate(zip(*columns.values(), strict=True)):
            verb, label = interactions.name(plain(number), f".hoi_class[{index}]")
            human, other = plain(human), plain(other)
            human_box = _box(entry(boxes, human, f".h_idx[{index}]"), f".boxes[{human}]", form)
            other_box = _box(entry(boxes, other, f".o_idx[{index}]"), f".boxes[{other}]", form)
            score = finite(plain(score), f".hoi_score[{index}]")
            table.pair(human_box, other_box, label, verb=verb, score=score)
            used |= {human, other}
        if len(used) < len(boxes):
            context.drop("boxes without a class (no pair uses them)", context.place, len(boxes) - len(used))
        return {**head, **table.columns}

    yield from context.each(source.items(), build, source)


def read_diag(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of Diag-HOI's list, with `pairs` of boxes in place of triplets."""
    objects = context.objects("coco")

    def build(item: dict[str, Any]) -> Record:
        """Return the record of an item, which has an image's file name and its box pairs."""
        table = BoxTable(context.subject)
        for index, pair in enumerate(item["box_pairs"]):
            field = f".box_pairs[{index}]"
            boxes = [_box(pair[key], f"{field}.{key}") for key in ("h_box", "o_box")]
            label = objects.name(_inner(pair["o_label"]), f"{field}.o_label")
            score = finite(_inner(pair["hoi_score_inter"]), f"{field}.hoi_score_inter")
            table.pair(boxes[0], boxes[1], label, interactiveness=score)
        # the table's pairs have no verb: they are the record's `pairs`, and there are no triplets
        return image_record(item["filename"], table.boxes, table.labels, [], pairs=table.hois)

    yield from context.each(source.items(), build, source)


def _inner(value: Any) -> Any:
    """Return a value without lists of length one around it, and with arrays as lists: [[0.5]] becomes 0.5."""
    for _ in range(4):  # at most four levels, since a pickled list can contain itself
        value = plain(value)
        if not isinstance(value, list | tuple) or len(value) != 1:
            break
        value = value[0]
    return value


def _box(value: Any, field: str, form: str | None = None) -> list[int | float]:
    """Return a box of the file as its corners, four finite numbers. form: a name in BOX_FORMS, None for corners."""
    box = _inner(value)
    sides = corners(box if isinstance(box, list | tuple) else [box], field, form=form)
    return [finite(_inner(side), f"{field}[{index}]") for index, side in enumerate(sides)]


def read_ambiguous(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of Ambiguous-HOI, in the order in which the files name them. The main file has
    the boxes by class; its companion, if it is given, lists the images, also those without any."""
    tables: dict[str, BoxTable] = {}
    for key, item in source.entries().items():
        where = f"[{shorten_value(key)}]"
        with context.policy.item(source.name):
            _add_class(item, where, context, tables)
    for companion in source.companions:
        for where, name in companion.items():
            if type(name) is not str:
                raise DataError(f"{shorten_value(name)} is no file name", place=companion.name, field=where)
            tables.setdefault(name, BoxTable(context.subject))  # an image without boxes, if the main file lacks it
    if not source.companions:
        context.announce(
            f"{source.name}: images without ground truth are not known; give ambi_names.pkl as a second path"
        )

    items = ((f": {name}", (name, table)) for name, table in tables.items())
    yield from context.each(items, lambda item: image_record(item[0], **item[1].columns), source)


def _add_class(item: Any, where: str, context: Context, tables: dict[str, BoxTable]) -> None:
    """Add the triplets of one class of Ambiguous-HOI to the tables of their images. where: its place in the file.
    tables: each image's boxes and triplets by file name; new images are added to it."""
    if not isinstance(item, dict) or not isinstance(item.get("data"), dict):
        raise DataError("has no data of images; is this gt_ambiguous_hoi.pkl?", field=where)
    verb, label = entry(context.vocabulary.interactions, item.get("hico_id"), f"{where}.hico_id")
    for name, rows in item["data"].items():
        field = f"{where}.data[{shorten_value(name)}]"
        if type(name) is not str:
            raise DataError("is no file name", field=field)
        boxes = tables.setdefault(name, BoxTable(context.subject))
        for row in table(rows, (), field):
            boxes.pair(row[:4], row[4:], label, verb=verb)
