"""Ground truth of fredzzhang/hicodet and fredzzhang/vcoco (UPT, PViC, SCG): one dictionary for a part of the dataset.

instances_{train,test}2015.json   boxes 1-based inclusive: 1 is subtracted from all four numbers. There are no
                                  image-level labels and no invisible instances, so Known Object labels are derived
                                  from the pairs, and the conversion says so.
instances_vcoco_*.json            COCO's boxes with x2 = x + w, y2 = y + h (0-based far edges): 1 is subtracted from x2
                                  and y2. The file has only pairs with an object box: no action or role without object,
                                  no `point`, no person without annotations. So it works for vcoco-qpic with these 24
                                  roles, but not for the official protocols, which count everybody who does an action:
                                  the conversion and the records say so (caveat `pairs_only`).

Numbers count from 0 in the file's own tables: HICO-DET's objects are in alphabetical order in branch `main` and in
COCO's in branch `class`. Equal boxes of one label are merged.

`write` gives instances_*.json (`--to pocket`) with alphabetical objects, as branch `main` and SCG have them, or with
`--to-object-order coco` in COCO's order, as the commits of hicodet that UPT, PViC and ADA-CM load; each project takes
the other's numbers for its own, so a note names the order. In a dataset of the user's boxes are as its `box` says. What
it has no place for is counted: boxes without a pair, labels of subjects, pairs that are no class."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import (
    DERIVED,
    BoxTable,
    Context,
    action_role,
    coco_number,
    entry,
    file_name_of,
    image_record,
    require_scores,
    run_step,
)
from hoicli.converters.numbers import FAR_EDGES, ONE_BASED, corners
from hoicli.errors import DataError, Place, arg
from hoicli.io.outputs import open_output
from hoicli.records.caveats import PAIRS_ONLY
from hoicli.records.parsing import Record, dump
from hoicli.vocabulary.labels import SUBJECT, normalise


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of hicodet's instances_*.json (UPT, PViC), also for images without pairs."""
    content = source.mapping
    objects = _known_names(content["objects"], context.vocabulary.object_ids, source, "objects")
    verbs = [{"verb": name} for name in _known_names(content["verbs"], context.vocabulary.verb_ids, source, "verbs")]
    columns = [content["filenames"], content["size"], content["annotation"]]
    if len({len(column) for column in columns}) != 1:
        lengths = ", ".join(str(len(column)) for column in columns)
        raise DataError(f"filenames, size and annotation have {lengths} entries; they must agree", place=source.name)
    context.announce(DERIVED)
    shift = context.truth_shift(ONE_BASED)  # the file counts pixels from 1, unless the dataset says otherwise

    def build(item: tuple[str, list[int], dict[str, Any]]) -> Record:
        """Return the record of an image. item: its file name, its [width, height], and the columns of its pairs."""
        file_name, (width, height), annotation = item
        columns = (annotation.get(key, ()) for key in ("boxes_h", "boxes_o", "object", "verb"))
        fields = (".object", ".verb")  # of the last two columns
        pairs = _record_columns(columns, objects, verbs, fields, shift=shift, subject=context.subject)
        return image_record(file_name, head={"width": width, "height": height}, **pairs)

    items = ((f"annotation[{index}]", item) for index, item in enumerate(zip(*columns, strict=True)))
    yield from context.each(items, build, source)


def read_vcoco(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of a V-COCO file of fredzzhang/vcoco (instances_vcoco_*.json)."""
    content = source.mapping
    for key in ("classes", "objects", "annotations"):
        if not isinstance(content.get(key), list):
            raise DataError("must be a list", place=source.name, field=key)
    roles = run_step(lambda: [action_role(str(name), context) for name in content["classes"]], source, "classes")
    objects = ["background", *_known_names(content["objects"][1:], context.vocabulary.object_ids, source, "objects")]
    context.announce(
        "this file has only pairs with an object: agents and both scenarios need the official files (vcoco_test.json "
        "with COCO's instances)"
    )

    def build(item: dict[str, Any]) -> Record:
        """Return the record of an image. item: its annotation, with the file name and the columns of its pairs."""
        columns = (item[key] for key in ("boxes_h", "boxes_o", "objects", "actions"))
        fields = (".objects", ".actions")  # of the last two columns
        # FAR_EDGES: x2 and y2 are one beyond the last pixel here, which records have
        pairs = _record_columns(columns, objects, roles, fields, shift=FAR_EDGES)
        head = {"image_id": coco_number(item["file_name"])}
        return image_record(item["file_name"], head=head, **pairs, caveats=[PAIRS_ONLY])

    items = ((f"annotations[{index}]", item) for index, item in enumerate(content["annotations"]))
    yield from context.each(items, build, source)


def _record_columns(
    columns: Iterable[Any],
    objects: Sequence[str],
    verbs: Sequence[Mapping[str, Any]],
    fields: tuple[str, str],
    *,
    shift: Sequence[int] | None,
    subject: str = SUBJECT,
) -> dict[str, Any]:
    """Return the boxes, labels and triplets of an image under the keys that they have in a record. columns: boxes of
    persons and objects, numbers of objects' classes and of verbs. fields: names of the last two."""
    table = BoxTable(subject)
    for person, other, class_number, verb_number in zip(*columns, strict=True):
        boxes = corners(person, ".boxes_h", shift), corners(other, ".boxes_o", shift)
        table.pair(*boxes, entry(objects, class_number, fields[0]), **entry(verbs, verb_number, fields[1]))
    return table.columns


def _known_names(names: list[Any], vocabulary_names: Collection[str], source: Source, field: str) -> list[str]:
    """Return a file's list of names in the records' spelling. Raises `DataError` for one that the dataset lacks."""
    spelled = [normalise(name) for name in names]
    unknown = [name for name in spelled if name not in vocabulary_names]
    if unknown:
        raise DataError(f"{unknown[0]!r} is no name of the dataset", place=source.name, field=field)
    return spelled


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """Write ground truth as one JSON file like hicodet's instances_*.json; a note says how objects are numbered. What
    the format has no place for is counted. Raises `DataError` for an image without its size, and for a score."""
    vocabulary, order = context.vocabulary, context.target_order or "alphabetical"
    objects = vocabulary.alphabetical_objects if order == "alphabetical" else vocabulary.objects
    number_of = {name: number for number, name in enumerate(objects)}
    # numbers of the interaction, its object (None for a role of V-COCO, which is refused at its first record), its verb
    correspondence = [
        [number, number_of.get(name), vocabulary.verb_ids[verb]]
        for number, (verb, name) in enumerate(vocabulary.interactions)
    ]
    spellings = [name.replace("_", " ") for name in objects] if order == "coco" and vocabulary.coco_ids else objects
    content: dict[str, Any] = {key: [] for key in ("annotation", "filenames", "empty")}
    content |= {"objects": spellings, "verbs": vocabulary.verbs, "correspondence": correspondence, "size": []}
    content |= {group: sorted(vocabulary.groups.get(group, ())) for group in ("rare", "non_rare")}
    for record in records:
        require_scores(record, context.target, scored=False)
        context.tell_lost(record, kept_keys=("width", "height"))
        for side in ("width", "height"):
            if side not in record:
                place = Place(f"image {record['image_id']}")
                raise DataError("missing; the format states the size of every image", place=place, field=side)
        pairs = _pair_columns(record, correspondence, context)
        if not pairs["hoi"]:
            content["empty"].append(len(content["filenames"]))
        content["annotation"].append(pairs)
        content["filenames"].append(file_name_of(record))
        content["size"].append([record["width"], record["height"]])
    order_text = _ORDERS[order] if vocabulary.coco_ids else _ORDERS_OF_OTHERS[order]
    context.announce(f"objects are numbered {order_text}; {arg('to_object_order')} chooses")
    with open_output(path) as output:
        output(dump(content))


def _pair_columns(record: Record, correspondence: list[list[int | None]], context: Context) -> dict[str, list[Any]]:
    """Return the file's columns of an image, each with one value for each pair. What has no place there is counted."""
    vocabulary, place = context.vocabulary, Place(f"image {record['image_id']}")
    # written with pixels counted from 1, unless the dataset says otherwise
    boxes = [corners(box, "", context.written_shift(ONE_BASED)) for box in record["boxes"]]
    names = [vocabulary.objects[vocabulary.object_ids[label]] for label in record["labels"]]
    pairs: dict[str, list[Any]] = {key: [] for key in ("boxes_h", "boxes_o", "hoi", "object", "verb")}
    used_boxes = set()
    for hoi in record["hois"]:
        person, other = hoi["subject"], hoi["object"]
        number = vocabulary.interaction_id(hoi["verb"], record["labels"][other])
        if number is None:
            context.drop(f"triplets of no {vocabulary.name} interaction", place)
            continue
        if names[person] != context.subject:
            context.drop(f"labels of subjects (they will be read as {context.subject})", place)
        used_boxes |= {person, other}
        for column, value in zip(pairs.values(), (boxes[person], boxes[other], *correspondence[number]), strict=True):
            column.append(value)
    if len(used_boxes) < len(boxes):
        context.drop("boxes without an interaction", place, len(boxes) - len(used_boxes))
    return pairs


_ORDERS = {
    "alphabetical": "alphabetically (airplane 0, person 49), for SCG and hicodet's branch main; UPT, "
    "PViC and ADA-CM take these numbers for COCO's",
    "coco": "in COCO's order (person 0), for UPT, PViC and ADA-CM; SCG and hicodet's branch main take "
    "these numbers for alphabetical ones",
}
_ORDERS_OF_OTHERS = {"alphabetical": "alphabetically", "coco": "in the dataset's order"}
"""What the note says of each order of objects. A loader that expects the other order does not notice the error."""
