"""`--images`: the image ids, in order, for a source that has only positions or numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hoicli.converters import Context, converter, detect, image_id_of
from hoicli.converters.source import Source
from hoicli.errors import DataError


def read_image_list(path: str, context: Context) -> Sequence[str]:
    """Image ids from ground truth in any format hoicli reads, or from a text file with a name a line.

    What the reader of that ground truth would announce is no matter here. Raises `DataError` for an empty list and for
    an image that is in it twice.
    """
    source = Source(path)
    if source.kind == "unknown" and path != "-":
        names = [
            image_id_of(line.strip()) for line in source.data.decode("utf-8", "replace").splitlines() if line.strip()
        ]
    else:
        records = converter(detect(source)).read(source, replace(context, announce=lambda _: None, dropped={}))
        names = [str(record["image_id"]) for record in records]
    if not names:
        raise DataError("no images in it; give ground truth, or a list with a file name a line", place=source.name)
    if len(set(names)) != len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise DataError(f"{twice!r} is in it twice; a place is one image", place=source.name)
    return names


def number_of(image_id: str) -> int | None:
    """The number at the end of an image id (HICO_test2015_00000042 -> 42), None without one."""
    digits = image_id.rsplit("_", 1)[-1]
    return int(digits) if digits.isdecimal() else None


def numbered_images(context: Context, source: Source) -> dict[int, str]:
    """Image number -> image id, for sources that name images by number: from `--images`, else the HICO-DET test set.

    Raises `DataError` when two images of `--images` end in one number.
    """
    given = context.images
    if given is None:
        context.announce(
            f"{source.name} names images by number only: taking HICO-DET test numbers "
            f"(1 is {context.vocabulary.test_images[0]}); --images GT for another set"
        )
        given = context.vocabulary.test_images
    numbers: dict[int, str] = {}
    for image_id in given:
        number = number_of(image_id)
        if number is None:
            continue
        if numbers.setdefault(number, image_id) != image_id:
            raise DataError(
                f"{numbers[number]} and {image_id} end in one number; give the images of one set", place="--images"
            )
    return numbers
