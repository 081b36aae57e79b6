"""Scene graphs as COCO with relations (SGG-Benchmark's _annotations.coco.json of PSG, VG150, IndoorVG; SGG-Annotate).

    {"images": [{"id", "file_name", "width", "height"}], "categories": [{"id", "name"}],
     "annotations": [{"id", "image_id", "category_id", "bbox"}], "rel_categories": [{"id", "name"}],
     "rel_annotations": [{"image_id", "subject_id", "object_id", "predicate_id"}]}

bbox is [x, y, width, height] between edges, 0-based, and becomes [x, y, x + width, y + height]. subject_id and
object_id are ids of annotations of the same image. The file states the names of its labels, so records of any dataset
come out of it; with --dataset they must be that dataset's. The image id is the file name without its extension, and the
id of the image is kept as `img_id`; further fields of an image that are a text or a number (a camera) are kept, too.
Predictions have `score` in their relations, which becomes the triplet's score, and
may have it in all annotations of an image (`scores`). Relations that point at no box of their image are dropped and
counted, as Maelic/SGG-Benchmark (data/datasets/data.py) leaves them out; a crowd's box stays one (`iscrowd`), and
relations of it are counted, as no metric of triplets or graphs knows crowds.

Writing (`--to coco-rel`) gives the same, with categories numbered from 1 in the dataset's order, without --dataset in
alphabetical order (SGG-Benchmark's loader takes a category 0 for the background), and images by `img_id` or from 1."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, file_name_of, further_fields, image_record, pick_keys, run_step
from hoicli.converters.numbers import corners, whole_number
from hoicli.errors import DataError, Place
from hoicli.io.outputs import open_output
from hoicli.records.image import unknown_label
from hoicli.records.parsing import Record, dump
from hoicli.vocabulary.labels import normalise

_Rows = list[tuple[str, dict[str, Any]]]
"""(field, row) of an image's boxes or relations: the field is the row's place in the file, for messages."""


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of a file in COCO's form with relations, also for images without relations."""
    graphs = run_step(lambda: _Graphs(source, context), source, "")

    if on_crowds := graphs.count_crowd_relations():
        problem = f"{on_crowds:,} relations are of a crowd's box (iscrowd): their triplets count like any other"
        context.announce(problem)
    if ignored := graphs.count_ignored():
        problem = f"{ignored:,} annotations say ignore, which pycocotools does not read either: their boxes count"
        context.announce(f"{problem}; iscrowd: 1 is what its rules ignore")

    def build(item: tuple[Any, dict[str, Any]]) -> Record:
        """Return the record of an image. item: its id, and its row in the file's list of images."""
        image_id, image = item
        rows = graphs.boxes_of.get(image_id, [])
        index_of = _index_by_id((f": {field}.id", row) for field, row in rows)
        boxes = [corners(row["bbox"], f": {field}.bbox", form="xywh") for field, row in rows]
        labels = [_find_name(graphs.objects, row["category_id"], f": {field}.category_id") for field, row in rows]
        hois = list(graphs.triplets(image_id, index_of, context))
        head = {**({"img_id": image_id} if type(image_id) is int else {}), **pick_keys(image, "width", "height")}
        head |= context.keep_fields(image, "id", "file_name", "width", "height")
        boxes_scored = rows and all("score" in row for _, row in rows)
        further_keys = {"scores": [row["score"] for _, row in rows]} if boxes_scored else {}
        crowds = [bool(row.get("iscrowd")) for _, row in rows]
        further_keys |= {"iscrowd": crowds} if any(crowds) else {}
        return image_record(image.get("file_name", str(image_id)), boxes, labels, hois, head, **further_keys)

    items = ((f"images[{index}]", item) for index, item in enumerate(graphs.images.items()))
    yield from context.each(items, build, source)


class _Graphs:
    """The file's lists by image. images: the row of each image by id. objects, verbs: the name of each category by id.
    boxes_of, relations_of: the rows of each image, in the file's order. scored: whether some relation has a score."""

    def __init__(self, source: Source, context: Context) -> None:
        """Read the file and sort its rows by image; raise `DataError` for ids that occur twice and unknown names."""
        content = source.mapping
        self.objects = _categories(content["categories"], "categories", "object", context)
        self.verbs = _categories(content["rel_categories"], "rel_categories", "verb", context)
        rows = content["images"]
        index_of = _index_by_id((f"images[{index}].id", row) for index, row in enumerate(rows))
        self.images: dict[int | str, dict[str, Any]] = {image_id: rows[index] for image_id, index in index_of.items()}
        self.boxes_of = self._group_by_image(source, "annotations", context)
        self.relations_of = self._group_by_image(source, "rel_annotations", context)
        self._file = source.name
        self.scored = any("score" in row for row in content["rel_annotations"])

    def triplets(self, image_id: Any, index_of: Mapping[int | str, int], context: Context) -> Iterator[dict[str, Any]]:
        """Yield the triplets of an image. Raises `DataError` if some relations have a score, but this one has not."""
        for field, row in self.relations_of.get(image_id, []):
            subject, object_ = (index_of.get(_id(row[key], f": {field}.{key}")) for key in ("subject_id", "object_id"))
            if subject is None or object_ is None:
                context.drop("relations that point at no box of their image", f"{self._file}: {field}")
                continue
            if self.scored and "score" not in row:
                raise DataError("missing, though other relations have one; give all or none", field=f": {field}.score")
            verb = _find_name(self.verbs, row["predicate_id"], f": {field}.predicate_id")
            yield {"subject": subject, "object": object_, "verb": verb, **pick_keys(row, "score")}

    def count_crowd_relations(self) -> int:
        """Return how many relations have the box of a crowd (COCO's `iscrowd`) as their subject or object."""
        crowds = {row["id"] for _, row in chain.from_iterable(self.boxes_of.values()) if row.get("iscrowd")}
        relations = (row for _, row in chain.from_iterable(self.relations_of.values())) if crowds else ()
        return sum(not crowds.isdisjoint((row["subject_id"], row["object_id"])) for row in relations)

    def count_ignored(self) -> int:
        """Return how many boxes say `ignore` without being a crowd's: pycocotools sets that key from `iscrowd`."""
        rows = (row for _, row in chain.from_iterable(self.boxes_of.values()))
        return sum(bool(row.get("ignore")) and not row.get("iscrowd") for row in rows)

    def _group_by_image(self, source: Source, key: str, context: Context) -> dict[int | str, _Rows]:
        """Return (field, row) of the file's rows under a key, by the id of their image. key: "annotations" (boxes) or
        "rel_annotations" (relations). Rows of images that the file does not list are dropped and counted."""
        rows_by_image: dict[int | str, _Rows] = {}
        for index, row in enumerate(source.mapping[key]):
            field = f"{key}[{index}]"
            image = _id(row["image_id"], f"{field}.image_id")
            if image in self.images:
                rows_by_image.setdefault(image, []).append((field, row))
            else:
                reason = "annotations and relations of images that the file does not list"
                context.drop(reason, f"{source.name}: {field}")
        return rows_by_image


def _id(value: Any, field: str) -> int | str:
    """Return an id from a file: an integer or text. Raises `DataError` for anything else."""
    return value if type(value) is int or type(value) is str else whole_number(value, field)


def _index_by_id(rows: Iterable[tuple[str, dict[str, Any]]]) -> dict[int | str, int]:
    """Return the position of each row by its "id". rows: (field, row). Raises `DataError` for a repeated id."""
    index_of: dict[int | str, int] = {}
    for index, (field, row) in enumerate(rows):
        row_id = _id(row["id"], field)
        if index_of.setdefault(row_id, index) != index:
            raise DataError(f"{str(row_id)[:40]} is the id of another one, too; give each its own", field=field)
    return index_of


def _categories(rows: list[Any], field: str, what: str, context: Context) -> dict[int | str, str]:
    """Return the name of each category by id, in the records' spelling. what: "object" or "verb". Raises `DataError`
    for a name that the dataset lacks, unless any name is accepted, and for an id that two categories have."""
    names = [normalise(row["name"]) for row in rows]
    ids = context.vocabulary.object_ids if what == "object" else context.vocabulary.verb_ids
    for index, name in enumerate(names):
        if name not in ids and not context.open_names:
            raise unknown_label(f"{field}[{index}].name", what, name, context.vocabulary).error("")
    index_of = _index_by_id((f"{field}[{index}].id", row) for index, row in enumerate(rows))
    return {category_id: names[index] for category_id, index in index_of.items()}


def _find_name(names: Mapping[int | str, str], number: Any, field: str) -> str:
    """Return the name of the category with an id. Raises `DataError` that names the field if no category has it."""
    name = names.get(_id(number, field))
    if name is None:
        raise DataError(f"{str(number)[:40]} is the id of no category; correct what wrote it", field=field)
    return name


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """Write records as one JSON file in COCO's form with relations. Verb scores and image-level labels, which it cannot
    hold, are counted as left out. Raises `DataError` if two images have one `img_id`."""
    images: dict[Any, dict[str, Any]] = {}
    annotations: list[dict[str, Any]] = []
    relations: list[dict[str, Any]] = []
    for record in records:
        place = Place(f"image {record['image_id']}")
        number = record["img_id"] if type(record.get("img_id")) is int else len(images) + 1
        if number in images:
            raise DataError(f"{number} is another image's number, too; leave img_id out", place=place, field="img_id")
        further = further_fields(record)
        size = pick_keys(record, "width", "height")
        images[number] = {**further, "id": number, "file_name": file_name_of(record), **size}
        context.tell_lost(record, kept_keys=("img_id", *size, "scores", "iscrowd", "image_hois", *further))
        first_box_id = len(annotations) + 1
        annotations += _annotation_rows(record, number, first_id=first_box_id)
        relations += _relation_rows(record, number, first_box_id, first_id=len(relations) + 1)
        for hoi in record["hois"]:
            if "verb_score" in hoi:
                context.drop("verb scores (the format has one score a triplet)", place)
        if record.get("image_hois"):
            context.drop("image-level labels", place)
    vocabulary = context.vocabulary
    # the rows still have names: they become numbers here, the dataset's or, if any name is accepted, the file's own
    objects = _number_categories(annotations, "category_id", None if context.open_names else vocabulary.object_ids)
    verbs = _number_categories(relations, "predicate_id", None if context.open_names else vocabulary.verb_ids)
    content = {"images": list(images.values()), "categories": objects, "annotations": annotations}
    with open_output(path) as output:
        output(dump({**content, "rel_categories": verbs, "rel_annotations": relations}))


def _annotation_rows(record: Record, image: int, first_id: int) -> Iterator[dict[str, Any]]:
    """Yield the row of "annotations" for each box; `category_id` is still a name, until `_number_categories`."""
    scores = record.get("scores") or [None] * len(record["boxes"])
    crowds = record.get("iscrowd") or [False] * len(record["boxes"])
    columns = zip(record["boxes"], record["labels"], scores, crowds, strict=True)
    for box_id, (box, label, score, crowd) in enumerate(columns, start=first_id):
        x1, y1, x2, y2 = box
        width, height = x2 - x1, y2 - y1
        row = {"id": box_id, "image_id": image, "bbox": [x1, y1, width, height], "area": width * height}
        box_score = {} if score is None else {"score": score}
        yield {**row, "iscrowd": int(crowd), **box_score, "category_id": label}


def _relation_rows(record: Record, image: int, first_box_id: int, first_id: int) -> Iterator[dict[str, Any]]:
    """Yield the row of "rel_annotations" for each triplet, whose `predicate_id` is still a name, too."""
    for relation_id, hoi in enumerate(record["hois"], start=first_id):
        box_ids = {"subject_id": first_box_id + hoi["subject"], "object_id": first_box_id + hoi["object"]}
        row = {"id": relation_id, "image_id": image, **box_ids, **pick_keys(hoi, "score")}
        yield {**row, "predicate_id": hoi["verb"]}


def _number_categories(rows: list[dict[str, Any]], key: str, ids: Mapping[str, int] | None) -> list[dict[str, Any]]:
    """Replace the names in the rows by category numbers from 1, in place, and return the file's list of categories.
    ids: the dataset's 0-based id of each name; None to number them alphabetically."""
    if ids is None:
        ids = {name: index for index, name in enumerate(sorted({row[key] for row in rows}))}
    for row in rows:
        row[key] = ids[row[key]] + 1
    first_names: dict[int, str] = {}  # `ids` has other spellings, too; they come after a label's own name
    for name, number in ids.items():
        first_names.setdefault(number, name)
    return [{"id": number + 1, "name": name} for number, name in first_names.items()]
