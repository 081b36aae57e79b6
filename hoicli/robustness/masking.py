"""What training does to image files (masks, pixelation): one file in, one of the same name and format out."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from hoicli.errors import DataError, arg
from hoicli.io.claims import reads
from hoicli.io.outputs import lies_in, write_whole
from hoicli.records.names import file_name_of
from hoicli.records.parsing import Record
from hoicli.robustness.masks import Masking
from hoicli.robustness.pixelation import Pixelation


def image_path(record: Record, place: str) -> PurePosixPath:
    """Where in the folders the image of a record is; raises `DataError` for a missing name, and one that leads out."""
    return PurePosixPath(file_name_of(record, place).replace("\\", "/"))


def write_changed(record: Record, change: Masking | Pixelation, images: str, out: str, place: str) -> Record:
    """Write the image of a record under its name in `out`, changed; a copy byte for byte where nothing is changed.
    Returns the record with what was done under the change's `key`: nothing if empty or 0.

    Raises `DataError`, in the name of `place`, for an image that cannot be read or is of another size than the record
    says, and where an image of --images would or could be overwritten.
    """
    from hoicli.corruption.images import encode, finished, read_picture

    path = image_path(record, place)
    source, target = Path(images, path), Path(out, path)
    reads(source, kept=False)
    data, picture = read_picture(record, source, place)
    high, wide = picture.pixels.shape[:2]
    record = change.record({**record, "width": wide, "height": high})
    if lies_in(target, Path(images)) if lies_in(Path(images), Path(out)) else lies_in(source, Path(out)):
        problem = f"{path}: {arg('images')} and {arg('save_images')} are nested, and an image could be overwritten"
        raise DataError(f"{problem}; give a folder outside", place=place, field="file_name")
    if record[change.key]:
        encoded = encode(picture, change.painted(picture.pixels, record), picture.alpha)
        data = finished(picture, encoded, {change.key: record[change.key]})
    write_whole(target, data, root=Path(out))
    return record
