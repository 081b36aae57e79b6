"""What an image is called: as its format names it, by the path of its file where base names collide, or as `--id` asks;
and by `--image-list` for a source that numbers its images."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import Any

from hoicli.converters import own
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, run_step
from hoicli.converters.formats import FORMATS, detect
from hoicli.converters.numbers import shorten_value
from hoicli.errors import DataError, Place, arg
from hoicli.io.streams import Spool
from hoicli.records.names import ID_RULES, image_id_of, image_number, number_or_name, path_of
from hoicli.records.parsing import Record, is_number
from hoicli.vocabulary.datasets import load

Records = Iterator[tuple[str, Record]]
"""(file, record) of each image."""


def identify_images(records: Records, context: Context, taken: Set[str] = frozenset()) -> Records:
    """Yield the records with the image ids that --id asks for (`context.id_rule`). Without --id, an image's id becomes
    the path of its file if images in different folders have the same base name. taken: the ids of the records that were
    yielded and found valid, which the caller fills. An image without the number that --id asks for goes to the policy.
    """
    if not context.id_rule:
        yield from _told_apart(records, context, taken)
    for file, record in records:
        with context.policy.item(Place.in_file(file, f"image {record['image_id']}")):
            yield file, {**record, "image_id": _image_id_by_rule(record, context.id_rule)}


def known_size(record: Record, context: Context) -> tuple[float, float] | None:
    """Return (width, height) that --image-list gives for a record's image, None if it does not know it. Its images have
    the ids that `identify_images` gives."""
    listed_id = _image_id_by_rule(record, context.id_rule) if context.id_rule else _own_path(record, context)
    return context.image_sizes.get(str(listed_id)) or context.image_sizes.get(str(record["image_id"]))


def _image_id_by_rule(record: Record, rule: str) -> str | int:
    """Return the id of an image by a rule of ID_RULES, which is applied to the file name, or to the id if there is
    none. Raises `DataError` for an image without a number."""
    if rule == "number" and type(record.get("img_id")) is int:
        return int(record["img_id"])
    name = record.get("file_name") or str(record["image_id"])
    image_id = ID_RULES[rule](name)
    if image_id is None:
        raise DataError(f"no number at the end of {name!r}, as in img_12; {arg('id_', 'name')} or path")
    return image_id


def _told_apart(records: Records, context: Context, taken: Set[str]) -> Records:
    """Yield records as `identify_images` does without --id. From the first file name with a folder on, records wait on
    disk until all are read, since only then it is known whether two base names are the same."""
    for file, record in records:
        if _own_path(record, context):
            break
        yield file, record
    else:
        return
    paths, clash, spool = dict[str, str](), "", Spool("records", numbered=False)
    with spool.filling() as spool_file:
        for source_name, waiting in chain([(file, record)], records):
            image_id, path = str(waiting["image_id"]), _own_path(waiting, context)
            full_name = path or image_id
            # An image that was yielded before waits nowhere: it had no folder, so its id is its full name.
            name_before = paths.setdefault(image_id, image_id if image_id in taken else full_name)
            if name_before != full_name:
                clash = clash or f"{name_before} and {full_name}"
            pickle.dump((source_name, path, waiting), spool_file)
    if clash:
        context.announce(f"images in different folders have one name ({clash}): their paths are their ids")
    with spool.open() as spool_file:
        while spool_file.peek(1):  # type: ignore[attr-defined]
            source_name, path, waiting = pickle.load(spool_file)  # noqa: S301 (written above)
            yield source_name, ({**waiting, "image_id": path} if clash and path else waiting)


def _own_path(record: Record, context: Context) -> str:
    """Return the path of a record's file without its extension, if it has a folder and its base name is the image's id;
    else "". It is also "" for hoicli's own records, whose writers chose their ids."""
    name, image_id = record.get("file_name"), record["image_id"]
    if context.format == "records" or type(name) is not str or not {"/", "\\"} & set(name):
        return ""
    return path_of(name) if image_id and image_id_of(name) == image_id else ""


# Images by position or number


def read_image_list(path: str, context: Context) -> None:
    """Read --image-list: set the context's `images`, and as far as known their `image_numbers` and `image_sizes`. path:
    ground truth in any format that hoicli reads, or a text file with one name per line. Notes of the ground truth's
    reader are not printed. Raises `DataError` for an empty list, and for an image or an `img_id` that occurs twice."""
    source = Source(path)
    names: list[str] = []
    numbers: dict[int, str] = {}
    sizes: dict[str, tuple[float, float]] = {}
    if source.kind == "unknown" and path != "-":
        lines = [line.strip() for line in source.data.decode("utf-8", "replace").splitlines() if line.strip()]
        records: Iterator[Record] = iter([{"image_id": image_id_of(line), "file_name": line} for line in lines])
        settings = replace(context, notes=[])
    else:
        format_ = run_step(partial(detect, source), source)
        dataset = FORMATS[format_].dataset  # of the list, which may differ from the converted file's
        vocabulary = load(dataset) if dataset else context.vocabulary
        settings = replace(context, vocabulary=vocabulary, format=format_, notes=[], dropped={}, options={})
        records = own.images(source, settings) if format_ == "records" else FORMATS[format_].read(source, settings)
    images = identify_images(((source.name, record) for record in records), settings)
    while (image := run_step(partial(next, images, None), source)) is not None:
        _, record = image
        names.append(str(record["image_id"]))
        number = record.get("img_id")
        if type(number) is int and numbers.setdefault(number, names[-1]) != names[-1]:
            raise DataError(f"{numbers[number]} and {names[-1]} have one img_id, {number}", place=source.name)
        if is_number(record.get("width")) and is_number(record.get("height")):
            sizes[names[-1]] = record["width"], record["height"]
    if not names:
        raise DataError("no images in it; give ground truth, or a list with a file name a line", place=source.name)
    if len(set(names)) != len(names):
        repeated = Counter(names).most_common(1)[0][0]
        raise DataError(f"{repeated!r} is in it twice; a place is one image", place=source.name)
    context.images, context.image_numbers, context.image_sizes = names, numbers, sizes


class NumberedImages:
    """The images of a source that names them by number, by file name, or by both. What numbers mean is found, and
    announced, when the first number is met; if one of `names` is a number, this is at once."""

    def __init__(self, source: Source, context: Context, names: Iterable[Any] = ()) -> None:
        self._source, self._context = source, context
        if any(type(number_or_name(name)) is int for name in names):
            _ = self._known  # raises at once if numbers cannot be understood

    def record(self, image: Any) -> Record:
        """Return the first keys of an image's record: its id with the file name, or with the number as `img_id` if the
        image list has such numbers. Raises `DataError` for an unknown number, and for neither a number nor a name."""
        image = number_or_name(image)
        if type(image) is str and image:
            image_id = image_id_of(image)
            return {"image_id": image_id} if image == image_id else {"image_id": image_id, "file_name": image}
        if type(image) is not int:
            raise DataError(f"{shorten_value(image)} is no image; give a number or a file name")
        if image not in self._known:
            problem = f"image number {shorten_value(image)} is not among the {len(self._known):,} known ones"
            raise DataError(f"{problem}; give its own set with {arg('image_list')}")
        return {"image_id": self._known[image], **({"img_id": image} if self._context.image_numbers else {})}

    @cached_property
    def _known(self) -> Mapping[int, str]:
        """The image id of each image number: the `img_id`s of --image-list, else the numbers that end its names, else
        those of HICO-DET's test set. Raises `DataError` if two images have one number, or if none of the three exists.
        """
        context, names = self._context, self._context.images
        if context.image_numbers:
            return context.image_numbers
        if names is None:
            names = context.vocabulary.test_images
            if not names:
                problem = "names images by number only; give the annotation file, which has them as img_id, with"
                raise DataError(f"{problem} {arg('image_list')}", place=self._source.name)
            context.announce(
                f"{self._source.name} names images by number only: taking HICO-DET test numbers (1 is {names[0]}); "
                f"{arg('image_list')} for another set"
            )
        numbers: dict[int, str] = {}
        for image_id in names:
            number = image_number(image_id)
            if number is not None and numbers.setdefault(number, image_id) != image_id:
                problem = f"{numbers[number]} and {image_id} end in one number; give the images of one set"
                raise DataError(problem, place=Place(arg("image_list")))
        return numbers
