"""`--image-list`: the image ids, in order, for a source that has only positions or numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from hoicli.converters import own
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context, guarded
from hoicli.converters.formats import FORMATS, detect
from hoicli.converters.image_ids import identified
from hoicli.converters.numbers import shown
from hoicli.errors import DataError, Place, arg
from hoicli.records.names import image_id_of, image_number
from hoicli.records.parsing import Record, is_number
from hoicli.vocabulary.datasets import load

ImageNumbers = Callable[[], Mapping[int, str]]
"""Returns the image ids by number, computed on first use."""


class ImageList(NamedTuple):
    """Image ids in order; the image id of each `img_id`, and (width, height) of each image, as far as known."""

    images: Sequence[str]
    numbers: Mapping[int, str]
    sizes: Mapping[str, tuple[float, float]]


def read_image_list(path: str, context: Context) -> ImageList:
    """The images of ground truth in any format that hoicli reads, or of a text file with one name per line. Notes of
    the ground truth's reader are not printed. Raises `DataError` for an empty list and for an image or an `img_id` that
    occurs twice.
    """
    source = Source(path)
    names: list[str] = []
    numbers: dict[int, str] = {}
    sizes: dict[str, tuple[float, float]] = {}
    if source.kind == "unknown" and path != "-":
        lines = [line.strip() for line in source.data.decode("utf-8", "replace").splitlines() if line.strip()]
        records: Iterator[Record] = iter([{"image_id": image_id_of(line), "file_name": line} for line in lines])
        quiet = replace(context, announce=lambda _: None)
    else:
        form = guarded(partial(detect, source), source)
        dataset = FORMATS[form].dataset  # of the list, which may differ from the converted file's
        vocabulary = load(dataset) if dataset else context.vocabulary
        quiet = replace(context, vocabulary=vocabulary, format=form, announce=lambda _: None, dropped={})
        records = own.images(source, quiet) if form == "records" else FORMATS[form].converter.read(source, quiet)
    images = identified(((source.name, record) for record in records), quiet)
    while (image := guarded(partial(next, images, None), source)) is not None:
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
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(f"{twice!r} is in it twice; a place is one image", place=source.name)
    return ImageList(names, numbers, sizes)


def images_by_position(count: int, what: str, source: Source, context: Context) -> Sequence[str]:
    """The images of so many rows or columns (`what`): those of `--image-list`, else HICO-DET's test images; a note says
    which. Raises `DataError` if the counts disagree."""
    given, known = context.images, context.vocabulary.test_images
    images, whose = (known, "the HICO-DET test list") if given is None else (given, arg("image_list"))
    if count != len(images):
        fix = f"give {arg('image_list')}: ground truth in the order of the {what}, or a list of names"
        raise DataError(f"{count:,} {what}, but {whose} has {len(images):,}; {fix}", place=source.name)
    others = f" ({arg('image_list')} for others)" if given is None else ""
    context.announce(f"{source.name}: {what} joined with the {count:,} images of {whose} by position{others}")
    return images


def numbered_images(context: Context, source: Source) -> dict[int, str]:
    """Image number -> image id, for sources that name images by number: from `--image-list`, else HICO-DET's test set.
    The number is the `img_id`, if images have one, else the number at the end of the name. Raises `DataError` if two
    images have one number, and for a dataset that needs `--image-list`.
    """
    if context.image_numbers:
        return dict(context.image_numbers)
    given = context.images
    if given is None:
        if not context.vocabulary.test_images:
            problem = "names images by number only; give the annotation file, which has them as img_id, with"
            raise DataError(f"{problem} {arg('image_list')}", place=source.name)
        context.announce(
            f"{source.name} names images by number only: taking HICO-DET test numbers "
            f"(1 is {context.vocabulary.test_images[0]}); {arg('image_list')} for another set"
        )
        given = context.vocabulary.test_images
    numbers: dict[int, str] = {}
    for image_id in given:
        number = image_number(image_id)
        if number is None:
            continue
        if numbers.setdefault(number, image_id) != image_id:
            problem = f"{numbers[number]} and {image_id} end in one number; give the images of one set"
            raise DataError(problem, place=Place(arg("image_list")))
    return numbers


def number_or_name(image: Any) -> Any:
    """17 for 17, "17" and 17.0; anything else as it is."""
    if type(image) is str and image.isdecimal() and len(image) < 19:
        return int(image)
    return int(image) if type(image) is float and image.is_integer() else image


def named_image(image: Any, numbers: ImageNumbers, context: Context) -> Record:
    """The first keys of the record of an image that a file names by number or by file name; an `img_id` is kept. Raises
    `DataError` for an unknown number, and for any other value.
    """
    image = number_or_name(image)
    if type(image) is str and image:
        image_id = image_id_of(image)
        return {"image_id": image_id} if image == image_id else {"image_id": image_id, "file_name": image}
    if type(image) is not int:
        raise DataError(f"{shown(image)} is no image; give a number or a file name")
    known = numbers()
    if image not in known:
        problem = f"image number {shown(image)} is not among the {len(known):,} known ones"
        raise DataError(f"{problem}; give its own set with {arg('image_list')}")
    return {"image_id": known[image], **({"img_id": image} if context.image_numbers else {})}
