"""The id that an image gets: as its format names it, by the path of its file where base names collide, or as `--id`
asks; and from `--image-list`, or the ground truth, for a source without names of images."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
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
from hoicli.io.streams import Line, Spool
from hoicli.records.names import ID_RULES, image_id_of, image_number, number_or_name, path_of
from hoicli.records.parsing import Record, is_number
from hoicli.vocabulary.datasets import load

Records = Iterator[tuple[str, Record]]
"""(file, record) of each image."""


def identify_images(records: Records, context: Context, taken: Set[str] = frozenset()) -> Records:
    """Yield (file, record) with the image ids that --id asks for (`context.id_rule`). Without --id, an image keeps its
    id, unless images in different folders have the same base name: then its id is the path of its file. taken: ids
    yielded before, to which the caller adds meanwhile. An error goes to the context's policy."""
    if not context.id_rule:
        yield from _resolve_same_names(records, context, taken)
    for file, record in records:
        with context.policy.item(Place.in_file(file, f"image {record['image_id']}")):
            yield file, {**record, "image_id": _image_id_by_rule(record, context.id_rule)}


def known_size(record: Record, context: Context) -> tuple[float, float] | None:
    """Return (width, height) that --image-list gives for a record's image, by its later or its present id."""
    if context.truth and not context.image_sizes:
        listed = replace(context)
        take_truth_as_list(listed)
        context.image_sizes, context.truth = listed.image_sizes, ""  # numbers keep the meaning that they had so far
    listed_id = _image_id_by_rule(record, context.id_rule) if context.id_rule else _path_in_folder(record, context)
    return context.image_sizes.get(str(listed_id)) or context.image_sizes.get(str(record["image_id"]))


def _image_id_by_rule(record: Record, rule: str) -> str | int:
    """Return the id of an image by a rule of --id, a name in ID_RULES. It is applied to the file name, else to the
    present id; "number" takes an integer `img_id` first. Raises `DataError` if that rule finds no number."""
    if rule == "number" and type(record.get("img_id")) is int:
        return int(record["img_id"])
    name = record.get("file_name") or str(record["image_id"])
    image_id = ID_RULES[rule](name)
    if image_id is None:
        raise DataError(f"no number at the end of {name!r}, as in img_12; {arg('id_', 'name')} or path")
    return image_id


def _resolve_same_names(records: Records, context: Context, taken: Set[str]) -> Records:
    """Yield (file, record) as `identify_images` does without --id. From the first image in a folder on, records wait in
    a temporary file until all are read, since only then it is known whether two names are the same."""
    for file, record in records:
        if _path_in_folder(record, context):
            break
        yield file, record
    else:  # no image is in a folder
        return

    # all others wait in `spool`, the temporary file; clash: the first two files of one name, for the note
    full_name_of, clash, spool = dict[str, str](), "", Spool("records", numbered=False)
    with spool.filling() as spool_file:
        for source_name, waiting in chain([(file, record)], records):
            image_id, path = str(waiting["image_id"]), _path_in_folder(waiting, context)
            full_name = path or image_id
            # A record that was yielded above had no folder, so that its id is its full name.
            name_before = full_name_of.setdefault(image_id, image_id if image_id in taken else full_name)
            if name_before != full_name:
                clash = clash or f"{name_before} and {full_name}"
            pickle.dump((source_name, path, waiting), spool_file)

    if clash:
        context.announce(f"images in different folders have one name ({clash}): their paths are their ids")
    with spool.open() as spool_file:
        while spool_file.peek(1):  # type: ignore[attr-defined]  # until the file ends
            source_name, path, waiting = pickle.load(spool_file)  # noqa: S301 (written above)
            yield source_name, ({**waiting, "image_id": path} if clash and path else waiting)


def _path_in_folder(record: Record, context: Context) -> str:
    """Return the path of an image's file without its extension, as an id that tells folders apart. Return "" if the
    file name has no folder or the image's id is not its base name, and for hoicli's own records."""
    name, image_id = record.get("file_name"), record["image_id"]
    if context.format == "records" or type(name) is not str or not {"/", "\\"} & set(name):
        return ""
    return path_of(name) if image_id and image_id_of(name) == image_id else ""


def read_image_list(path: str, context: Context) -> None:
    """Read the value of --image-list, and set the context's `images`, `image_numbers` and `image_sizes` from it. path:
    ground truth in any format, or a text file with one file name a line. Only ground truth has numbers (`img_id`) and
    sizes; its notes are not printed. Raises `DataError` for an empty list, and for a repeated image or `img_id`."""
    source = Source(path)
    names: list[str] = []
    numbers: dict[int, str] = {}
    sizes: dict[str, tuple[float, float]] = {}
    images = _listed_images(source, context)
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


def take_truth_as_list(context: Context) -> str:
    """Read the command's ground truth as `--image-list`, if the user gave no list and the command has ground truth in a
    file. Return the option that named the list in use: "--gt", or "--image-list" if there is one or none is."""
    if context.images is not None or not context.truth:
        return arg("image_list")
    read_image_list(context.truth, context)
    return arg("gt")


def images_by_position(count: int, what: str, source: Source, context: Context) -> Sequence[str]:
    """Return the ids of the images that the rows or columns of a matrix, or the items of a list, stand for, in order:
    those of `--image-list`, else HICO-DET's test images if a matrix has as many, else those of the command's ground
    truth; a note says which. what: "rows", "columns" or "items". Raises `DataError` unless there are as many images."""
    images, name = context.images, arg("image_list")
    if images is None and what != "items":  # no released code lists the items by the names of their images
        images, name = context.vocabulary.test_images, "the HICO-DET test list"
    if (images is None or count != len(images)) and context.images is None and context.truth:
        name = take_truth_as_list(context)
        images = context.images
    fix = f"give {arg('image_list')}: ground truth in the order of the {what}, or a list of names"
    if images is None:
        raise DataError(f"names no images; {fix}", place=source.name)
    if count != len(images):
        raise DataError(f"{count:,} {what}, but {name} has {len(images):,}; {fix}", place=source.name)
    advice = "" if name == arg("image_list") else f" ({arg('image_list')} for others)"
    context.announce(f"{source.name}: {what} joined with the {count:,} images of {name} by position{advice}")
    return images


def _listed_images(source: Source, context: Context) -> Records:
    """Return (file, record) of each image in the file of --image-list, which is read with settings of its own."""
    if source.kind == "unknown" and source.path != "-":
        names = [_listed_name(line) for line in source.lines()]
        records: Iterator[Record] = iter([{"image_id": image_id_of(name), "file_name": name} for name in names])
        settings = replace(context, notes=[])
    else:
        list_format = run_step(partial(detect, source), source)
        dataset = FORMATS[list_format].dataset  # may differ from the converted file's
        vocabulary = load(dataset) if dataset else context.vocabulary
        settings = replace(
            context, vocabulary=vocabulary, format=list_format, notes=[], dropped={}, options={}, left_out_file=""
        )
        is_own = list_format == "records"
        records = own.images(source, settings) if is_own else FORMATS[list_format].read(source, settings)
    return identify_images(((source.name, record) for record in records), settings)


def _listed_name(line: Line) -> str:
    """Return the name on a line of a list of images. Raises `DataError` for a line that is not in UTF-8."""
    try:
        return line.data.decode().strip()
    except UnicodeDecodeError:
        raise DataError("not in UTF-8; save the list again as UTF-8", place=line.place) from None


class NumberedImages:
    """The images of a file that names them by number, by file name, or by both."""

    def __init__(self, source: Source, context: Context, names: Iterable[Any] = ()) -> None:
        """Find out at once what numbers mean if one of `names`, the file's images, is a number; else this waits until
        `record` meets the first number. Raises `DataError` if numbers have no known meaning."""
        self._source, self._context = source, context
        if context.id_rule != "number" and any(type(number_or_name(name)) is int for name in names):
            _ = self._image_id_of  # computed here for the error that it may raise

    def record(self, image: Any) -> Record:
        """Return the keys of a record that say which image it is about: its id, and its file name or its number as
        `img_id`. Raises `DataError` for an unknown number, and for what is neither."""
        image = number_or_name(image)
        if type(image) is str and image:
            image_id = image_id_of(image)
            return {"image_id": image_id} if image == image_id else {"image_id": image_id, "file_name": image}
        if type(image) is not int:
            raise DataError(f"{shorten_value(image)} is no image; give a number or a file name")
        if self._context.id_rule == "number" and self._context.images is None:
            return {"image_id": image}  # the id that --id asks for, whatever the image's name
        if image not in self._image_id_of:
            problem = f"image number {shorten_value(image)} is not among the {len(self._image_id_of):,} known ones"
            raise DataError(f"{problem}; give its own set with {arg('image_list')}")
        return {"image_id": self._image_id_of[image], **({"img_id": image} if self._context.image_numbers else {})}

    @cached_property
    def _image_id_of(self) -> Mapping[int, str]:
        """Return the image id of each image number. Numbers are the `img_id`s in --image-list; without these, those at
        the end of its names (12 of img_12); without a list, those of HICO-DET's test images, or in another dataset
        those of the command's ground truth, and a note says so. Raises `DataError` without them."""
        context = self._context
        if not context.vocabulary.test_images and take_truth_as_list(context) == arg("gt"):
            context.announce(
                f"{self._source.name} names images by number only: taking the numbers of {arg('gt')}; "
                f"{arg('image_list')} for another set"
            )
        if context.image_numbers:
            return context.image_numbers
        names = context.images
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
