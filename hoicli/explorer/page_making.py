"""Writes or serves the page that shows what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hoicli.explorer.content import page_file, page_files
from hoicli.explorer.folder import is_file
from hoicli.explorer.measurements import Measured
from hoicli.explorer.pictures import image_facts, images_of
from hoicli.io.outputs import atomic_folder, open_output
from hoicli.io.streams import Stream
from hoicli.records.parsing import Record

if TYPE_CHECKING:
    from hoicli.explorer.server import Explorer


def _images(measured: Measured, gt: Stream, folder: str | None) -> tuple[Record, dict[str, Path], str]:
    """Return (the page's facts about images, {address: the picture's file}, what the page says where a picture is
    missing). This reads the ground truth once more. folder: of the pictures, None for none."""
    image_ids = measured.truth.image_ids
    images, file_of_address = images_of(folder, image_ids, image_facts(image_ids, gt))
    return images, file_of_address, "no picture: --images was not given" if folder is None else "image not at hand"


def write_page(measured: Measured, gt: Stream, path: str, folder: str | None) -> None:
    """Write the page, all or nothing: as one file without pictures if `path` ends in .html, else as a folder with links
    to the pictures in `folder` (None: without pictures). Raises `UsageError` for a path that cannot be
    written, `DataError` if writing fails."""
    images, file_of_address, missing = _images(measured, gt, folder)
    if is_file(path):
        with open_output(path) as write:
            for piece in page_file(measured, images, "no picture: this page is one file"):
                write(piece)
        return
    with atomic_folder(path) as target:
        for name in ("data", *(["pictures"] if file_of_address else [])):
            (target / name).mkdir()
        for name, content in page_files(measured, images, missing):
            (target / name).write_bytes(content)
        for name, source in file_of_address.items():
            (target / name).symlink_to(source.resolve())


def page_server(measured: Measured, gt: Stream, folder: str | None) -> Explorer:
    """Return a server that shows the page on this machine alone. folder: of the pictures, None for none."""
    from hoicli.explorer.server import Explorer  # imported here, as it takes as long to import as all else here

    images, file_of_address, missing = _images(measured, gt, folder)
    return Explorer(dict(page_files(measured, images, missing)), file_of_address)
