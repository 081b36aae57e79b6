"""The images of an explorer's page: what the ground truth says of them, and where the page finds their pictures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from hoicli.errors import DataError
from hoicli.figures.overlays import image_file, tell_missing
from hoicli.io.streams import Stream
from hoicli.records.image import NULLS, problems
from hoicli.records.parsing import Record, is_number, parse, short
from hoicli.records.picture_size import describe_misfit

_PNG = b"\x89PNG\r\n\x1a\n"
STARTS = {_PNG: ("png", "image/png"), b"\xff\xd8\xff": ("jpg", "image/jpeg")}
"""{first bytes of an image file that browsers draw: (ending of its address, media type)}."""

TYPES = dict(STARTS.values())
"""{ending of an address: media type}."""
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
"""The segments of a JPEG that say its size."""
_HEAD = 1 << 16
"""Bytes at the beginning of a file in which a camera's mark is looked for: the longest segment of a JPEG."""


def image_facts(image_ids: Collection[str], gt: Stream) -> dict[str, Record]:
    """Return {image id: {file_name, width, height, boxes}} of images, read from the ground truth. A name or size that
    is missing or invalid is None (no metric uses them); then `boxes` has a box that holds all boxes of the record,
    which says how large the picture is at least. Raises `DataError` if images are missing, as the ground truth has
    changed since it gave these ids."""
    ids_wanted, facts = set(image_ids), dict[str, Record]()
    for line in gt:
        try:
            record = parse(line)
        except DataError:  # already counted and reported in the first pass
            continue
        image_id, name = str(record.get("image_id")), record.get("file_name")
        if image_id in ids_wanted:
            facts[image_id] = {"file_name": name if type(name) is str else None}
            for key in ("width", "height"):
                size: Any = record.get(key)
                facts[image_id][key] = size if is_number(size) and size > 0 else None
            facts[image_id]["boxes"] = _bounding_box(record) if None in facts[image_id].values() else []
    if ids_wanted - facts.keys():
        raise DataError("changed while it was read: images are missing; run again", place=gt.name)
    return facts


def _bounding_box(record: Record) -> list[list[float]]:
    """Return a list with one box, from (0, 0), that holds all boxes of a record; [] if it has none or is invalid."""
    if not record.get("boxes") or any(problems(record, None, scored=False, nulls=NULLS)):
        return []
    x2, y2 = (max(box[edge] for box in record["boxes"]) for edge in (2, 3))
    return [[0, 0, x2, y2]]


def images_of(
    folder: str | None, image_ids: Sequence[str], facts: Mapping[str, Record]
) -> tuple[Record, dict[str, Path]]:
    """Return the page's facts about N images as columns (id, file, width, height, picture: its address or "", turned:
    its Exif orientation), and {address: the picture's file}. folder: of the pictures, None for none; facts: {image id:
    {file_name, width, height, boxes}}, None for what the record does not say.

    An address is made of the image's number alone: names out of records are not trusted. There is no picture if the
    name leads out of the folder, to no file, or to one that is neither PNG nor JPEG by its first bytes. The folder is
    trusted: links that the user put there are followed. Raises `DataError` for a picture that does not fit its record
    (`records.picture_size.misfit`)."""
    addresses, turned = [""] * len(image_ids), [1] * len(image_ids)
    file_of_address: dict[str, Path] = {}
    missing: list[str] = []
    for number, image_id in enumerate(image_ids if folder is not None else ()):
        name = facts[image_id]["file_name"]
        path, ending, turned[number], stored = _picture(Path(folder or ""), name)
        size = facts[image_id]["width"], facts[image_id]["height"]
        if stored and (wrong := describe_misfit(None if None in size else size, facts[image_id]["boxes"], stored)):
            raise DataError(f"{wrong}; give the right image or correct the record", place=str(path), field="width")
        if path is None:
            missing.append(short(name or f"{image_id}, without file_name"))
        else:
            addresses[number] = f"pictures/{number:06d}.{ending}"
            file_of_address[addresses[number]] = path
    tell_missing(folder, missing, len(image_ids))
    key_names = {"file": "file_name", "width": "width", "height": "height"}
    columns = {key: [facts[image_id][fact] for image_id in image_ids] for key, fact in key_names.items()}
    return {"id": list(image_ids), **columns, "picture": addresses, "turned": turned}, file_of_address


def _picture(folder: Path, name: object) -> tuple[Path | None, str, int, tuple[int, int] | None]:
    """Return the file that a record's file_name names, the ending of its address, its `orientation` and its `pixels`.
    If there is no such picture, the file is None."""
    path = image_file(folder, name)
    if path is not None:
        try:
            with path.open("rb") as stream:
                start = stream.read(_HEAD)
        except OSError:
            return None, "", 1, None
        for begin, (ending, _) in STARTS.items():
            if start.startswith(begin):
                return path, ending, orientation(start), pixels(start)
    return None, "", 1, None


def orientation(head: bytes) -> int:
    """Return how a browser turns a JPEG or a PNG, as its Exif data say (Exif 2.3, tag 0x0112): a number from 1, not at
    all, to 8; 1 without readable Exif data. head: the beginning of the file.

    Boxes are in stored pixels, so the page has to turn the picture back."""
    tiff = _exif(head)
    order: Literal["little", "big"] = "little" if tiff[:2] == b"II" else "big"

    def number(at: int, size: int) -> int:
        """Return the whole number of `size` bytes at a place of the Exif data."""
        return int.from_bytes(tiff[at : at + size], order)

    # The directory of entries: their count in 2 bytes, then 12 bytes for each (tag, type, count, value).
    directory = number(4, 4)
    entry_count = min(number(directory, 2), 512)  # a damaged file may say any number
    for entry in range(directory + 2, directory + 2 + 12 * entry_count, 12):
        if number(entry, 2) == 0x0112:
            turned = number(entry + 8, 2)
            return turned if 1 <= turned <= 8 else 1
    return 1


def _exif(head: bytes) -> bytes:
    """Return the Exif data of a JPEG or a PNG (they have TIFF's form), b"" if there are none. head: the beginning of
    the file; a PNG has them in a chunk "eXIf", which is looked for before the pixels."""
    if not head.startswith(_PNG):
        begin = head.find(b"Exif\0\0")
        return head[begin + 6 :] if begin >= 0 else b""
    chunk = len(_PNG)  # where a chunk begins: its size, its kind, its data, a checksum of 4 bytes
    while (kind := head[chunk + 4 : chunk + 8]) not in (b"IDAT", b""):
        size = int.from_bytes(head[chunk : chunk + 4], "big")
        if kind == b"eXIf":
            return head[chunk + 8 : chunk + 8 + size]
        chunk += 12 + size
    return b""


def pixels(head: bytes) -> tuple[int, int] | None:
    """Return the width and height of a PNG or a JPEG as it is stored, None if its beginning does not say them."""
    if head.startswith(_PNG):
        return (int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")) if len(head) >= 24 else None
    segment = 2  # where a JPEG's segment begins: 0xFF, its kind, its length in 2 bytes, its data
    while segment + 9 <= len(head) and head[segment] == 0xFF:
        if head[segment + 1] in _FRAMES:
            height, width = (int.from_bytes(head[segment + at : segment + at + 2], "big") for at in (5, 7))
            return width, height
        segment += 2 + int.from_bytes(head[segment + 2 : segment + 4], "big")
    return None
