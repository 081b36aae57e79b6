"""The page written or served, from what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hoicli.explorer.content import page_file, page_files
from hoicli.explorer.folder import is_file
from hoicli.explorer.measured import Measured
from hoicli.explorer.pictures import image_facts, images_of
from hoicli.io.outputs import atomic_folder, open_output
from hoicli.io.streams import Stream
from hoicli.records.parsing import Record

if TYPE_CHECKING:
    from hoicli.explorer.server import Explorer


def _images(measured: Measured, gt: Stream, folder: str | None) -> tuple[Record, dict[str, Path], str]:
    """(`pictures.images_of`, the note where a picture is not at hand); the ground truth is read once more for them."""
    image_ids = measured.truth.image_ids
    images, behind = images_of(folder, image_ids, image_facts(image_ids, gt))
    return images, behind, "no picture: --images was not given" if folder is None else "image not at hand"


def write_page(measured: Measured, gt: Stream, path: str, folder: str | None) -> None:
    """Write the page, whole or not at all: as one file if `path` ends in .html, else as a folder with links to the
    images in `folder`. Raises as `check_page`, and `DataError` if writing fails."""
    images, behind, missing = _images(measured, gt, folder)
    if is_file(path):
        with open_output(path) as write:
            for piece in page_file(measured, images, "no picture: this page is one file"):
                write(piece)
        return
    with atomic_folder(path) as target:
        for name in ("data", *(["pictures"] if behind else [])):
            (target / name).mkdir()
        for name, content in page_files(measured, images, missing):
            (target / name).write_bytes(content)
        for name, source in behind.items():
            (target / name).symlink_to(source.resolve())


def page_server(measured: Measured, gt: Stream, folder: str | None) -> Explorer:
    """Return what serves the page on this machine."""
    from hoicli.explorer.server import Explorer  # half of what a page takes to import

    images, behind, missing = _images(measured, gt, folder)
    return Explorer(dict(page_files(measured, images, missing)), behind)
