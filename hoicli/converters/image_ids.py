"""What an image is called: as its format names it, by the path of its file where base names collide, or as `--id`
asks."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Set
from itertools import chain

from hoicli.converters.context import Context
from hoicli.errors import DataError, Place, arg
from hoicli.io.streams import Spool
from hoicli.records.names import ID_RULES, image_id_of, path_of
from hoicli.records.parsing import Record

Records = Iterator[tuple[str, Record]]
"""(file, record) of each image."""


def identified(records: Records, context: Context, taken: Set[str] = frozenset()) -> Records:
    """The records with the ids that --id asks for (`context.id_rule`); without it, with the path of their file for an
    id where images in different folders have one base name. taken: the ids that were yielded and taken. An image
    without a number goes to the policy."""
    if not context.id_rule:
        yield from _told_apart(records, context, taken)
    for file, record in records:
        try:
            named = {**record, "image_id": _asked(record, context.id_rule)}
        except DataError as error:
            context.policy.handle(error.at(Place.of(file, f"image {record['image_id']}")))
        else:
            yield file, named


def known_size(record: Record, context: Context) -> tuple[float, float] | None:
    """(width, height) of a record's image in --image-list, whose ids are those of `identified`; None if unknown."""
    named = _asked(record, context.id_rule) if context.id_rule else _own_path(record, context)
    return context.image_sizes.get(str(named)) or context.image_sizes.get(str(record["image_id"]))


def _asked(record: Record, rule: str) -> str | int:
    """The id of an image by a rule of ID_RULES; one without a file name keeps its own. Raises `DataError` for an image
    without a number."""
    if rule == "number" and type(record.get("img_id")) is int:
        return int(record["img_id"])
    name = record.get("file_name") or str(record["image_id"])
    made = ID_RULES[rule](name)
    if made is None:
        raise DataError(f"no number at the end of {name!r}, as in img_12; {arg('id_', 'name')} or path")
    return made


def _told_apart(records: Records, context: Context, taken: Set[str]) -> Records:
    """As `identified` without --id. From the first file name with a folder on, records wait on disk."""
    for file, record in records:
        if _own_path(record, context):
            break
        yield file, record
    else:
        return
    paths, clash, spool = dict[str, str](), "", Spool("records", numbered=False)
    with spool.filling() as held:
        for where, one in chain([(file, record)], records):
            image_id, path = str(one["image_id"]), _own_path(one, context)
            first = paths.setdefault(image_id, image_id if image_id in taken else path or image_id)
            if first != (path or image_id):
                clash = clash or f"{first} and {path or image_id}"
            pickle.dump((where, path, one), held)
    if clash:
        context.announce(f"images in different folders have one name ({clash}): their paths are their ids")
    with spool.open() as held:
        while held.peek(1):  # type: ignore[attr-defined]
            where, path, one = pickle.load(held)  # noqa: S301 (written above)
            yield where, ({**one, "image_id": path} if clash and path else one)


def _own_path(record: Record, context: Context) -> str:
    """The path of a record's file without its extension, if it has a folder and its base name is the image's id;
    "" for others, and for records, which have chosen their ids."""
    name, image_id = record.get("file_name"), record["image_id"]
    if context.format == "records" or type(name) is not str or not {"/", "\\"} & set(name):
        return ""
    return path_of(name) if image_id and image_id_of(name) == image_id else ""
