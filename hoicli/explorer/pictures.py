"""The images of an explorer: what the ground truth says of them, and where the page finds those at hand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from hoicli.errors import DataError
from hoicli.figures.overlays import image_file
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.parsing import Record, is_number, parse, short

STARTS = {b"\x89PNG\r\n\x1a\n": ("png", "image/png"), b"\xff\xd8\xff": ("jpg", "image/jpeg")}
"""How files begin that browsers draw -> (the ending of their address, their type)."""

TYPES = dict(STARTS.values())


def image_facts(image_ids: Collection[str], gt: Stream) -> dict[str, Record]:
    """file_name, width and height of some images by their ids, None where missing or invalid (no metric uses them).
    Raises `DataError` if the ground truth has changed since it gave these ids."""
    wanted, facts = set(image_ids), dict[str, Record]()
    for line in gt:
        try:
            record = parse(line)
        except DataError:  # already counted and reported in the first pass
            continue
        image_id, name = str(record.get("image_id")), record.get("file_name")
        if image_id in wanted:
            facts[image_id] = {"file_name": name if type(name) is str else None}
            for key in ("width", "height"):
                size: Any = record.get(key)
                facts[image_id][key] = size if is_number(size) and size > 0 else None
    if wanted - facts.keys():
        raise DataError("changed while it was read: images are missing; run again", place=gt.name)
    return facts


def pictures_in(
    folder: str | None, image_ids: Sequence[str], facts: Mapping[str, Record]
) -> tuple[list[str], dict[str, Path]]:
    """([N] the address of each image in the page, "" for one that is not at hand; the file behind each address).

    An address is made of the image's number alone: names out of records are not trusted. A name that leads out of the
    folder, to no file, or to one that is neither PNG nor JPEG by its first bytes is not at hand; the folder is trusted:
    links that its owner put there are followed.
    """
    if folder is None:
        return [""] * len(image_ids), {}
    addresses: list[str] = []
    behind: dict[str, Path] = {}
    missing: list[str] = []
    for number, image_id in enumerate(image_ids):
        name = facts[image_id]["file_name"]
        path, ending = _picture(Path(folder), name)
        address = f"pictures/{number:06d}.{ending}" if path is not None else ""
        addresses.append(address)
        if path is None:
            missing.append(short(name or f"{image_id}, without file_name"))
        else:
            behind[address] = path
    if missing:
        note(
            f"--images {folder}: no picture of {len(missing):,} of {len(image_ids):,} images (the first: "
            f"{missing[0]}); their boxes are drawn on blank sheets"
        )
    return addresses, behind


def _picture(folder: Path, name: object) -> tuple[Path | None, str]:
    """(the file of a record's file_name, the ending of its address); None where it is not at hand."""
    path = image_file(folder, name)
    if path is not None:
        try:
            with path.open("rb") as stream:
                start = stream.read(8)
        except OSError:
            return None, ""
        for begin, (ending, _) in STARTS.items():
            if start.startswith(begin):
                return path, ending
    return None, ""
