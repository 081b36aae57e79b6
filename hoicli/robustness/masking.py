"""What training does to image files (masks, pixelation): one file in, one of the same name and format out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, ClassVar, Protocol

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.claims import reads
from hoicli.io.outputs import lies_in, write_whole
from hoicli.io.streams import Line
from hoicli.records.intake import ImageRegister
from hoicli.records.names import file_name_of
from hoicli.records.parsing import Record
from hoicli.robustness.masks import read_record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hoicli.corruption.images import Picture


class Perturbation(Protocol):
    """What is done to an image: `Masking`, `Pixelation`. A record's `key` says what; nothing if empty or 0."""

    key: ClassVar[str]

    def record(self, record: Record) -> Record: ...

    def painted(self, pixels: NDArray[np.uint8], record: Record) -> NDArray[np.uint8]: ...


def check_folders(images: str, out: str) -> None:
    """Raises `UsageError` where there is nothing to read, nowhere to write, both are one place, or no OpenCV."""
    try:
        import hoicli.corruption.images  # noqa: F401
    except ImportError:
        problem = f"{arg('images')} needs OpenCV and Pillow: pip install 'hoicli[images]'"
        raise UsageError(problem, code="missing-package") from None
    if not Path(images).is_dir():
        raise UsageError(f"{arg('images', images)}: there is no such folder", code="no-such-folder")
    if Path(images).resolve() == Path(out).resolve():
        raise UsageError(
            f"{arg('save_images', out)}: is the folder of the images; give another, or they would be overwritten"
        )


@dataclass(frozen=True)
class SourceImage:
    """An image as it was found: its path inside the folder, its bytes, and what they show."""

    name: PurePosixPath
    data: bytes
    picture: Picture


def image_path(record: Record, place: str) -> PurePosixPath:
    """Where in the folders the image of a record is; raises `DataError` for a missing name, and one that leads out."""
    return PurePosixPath(file_name_of(record, place).replace("\\", "/"))


def painted_files() -> ImageRegister:
    """Which files have been painted: a second record of a file would be painted over the first."""
    return ImageRegister(unit="a file", field="file_name")


def check_names(lines: Iterable[Line]) -> None:
    """Raises `DataError` where two records have one file. What else is wrong with a line is told when it is masked."""
    painted = painted_files()
    for line in lines:
        try:
            path = image_path(read_record(line), line.place)
        except DataError:
            continue
        painted.add(str(path), line)


def read_image(record: Record, images: str, place: str) -> SourceImage:
    """The image of a record.

    Raises `DataError`, in the name of `place`, for a name as `image_path` does, a file that is no image, and one of
    another size than the record says.
    """
    from hoicli.corruption.images import decode, file_bytes

    path = image_path(record, place)
    name = record["file_name"]
    reads(Path(images, path), kept=False)
    try:
        picture = decode(data := file_bytes(Path(images, path)))
    except OSError as error:
        problem = f"{name}: {error.strerror}; is {arg('images')} its folder?"
        raise DataError(problem, place=place, field="file_name", code="missing-picture") from None
    except DataError as error:
        raise DataError(f"{name} {error.problem}", place=place, field="file_name", code=error.code) from None
    high, wide = picture.pixels.shape[:2]
    for key, real in (("width", wide), ("height", high)):
        if record.get(key, real) != real:
            problem = f"{record[key]}, but {name} is {wide} x {high}; the boxes are of another image"
            raise DataError(problem, place=place, field=key)
    return SourceImage(path, data, picture)


def write_changed(image: SourceImage, record: Record, change: Perturbation, images: str, out: str, place: str) -> None:
    """The image under its name in `out`, changed as its record says; a copy byte for byte where that is not at all.

    Raises `DataError`, in the name of `place`, where an image of --images would or could be overwritten.
    """
    source, target = Path(images, image.name), Path(out, image.name)
    if lies_in(target, Path(images)) if lies_in(Path(images), Path(out)) else lies_in(source, Path(out)):
        problem = (
            f"{image.name}: {arg('images')} and {arg('save_images')} are nested, and an image could be overwritten"
        )
        raise DataError(f"{problem}; give a folder outside", place=place, field="file_name")
    from hoicli.corruption.images import encode, finished

    data = image.data
    if record[change.key]:
        encoded = encode(image.picture, change.painted(image.picture.pixels, record), image.picture.alpha)
        data = finished(image.picture, encoded, {change.key: record[change.key]})
    write_whole(target, data, root=Path(out))
