"""The page written or served, from what was measured."""

from __future__ import annotations

from pathlib import Path

from hoicli.explorer.content import page_file, page_files
from hoicli.explorer.folder import is_file, write_file, write_folder
from hoicli.explorer.measured import Measured
from hoicli.explorer.pictures import image_facts, images_of
from hoicli.explorer.server import Explorer
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.parsing import Record


def _images(measured: Measured, gt: Stream, folder: str | None) -> tuple[Record, dict[str, Path], str]:
    """(`pictures.images_of`, the note where a picture is not at hand); the ground truth is read once more for them."""
    image_ids = measured.truth.image_ids
    images, behind = images_of(folder, image_ids, image_facts(image_ids, gt))
    return images, behind, "no picture: --images was not given" if folder is None else "image not at hand"


def write_page(measured: Measured, gt: Stream, path: str, folder: str | None, how: str) -> None:
    """Write the page: as one file if `path` ends in .html, else as a folder. folder: of the images; how: as in HOW."""
    images, behind, missing = _images(measured, gt, folder)
    if is_file(path):
        write_file(path, page_file(measured, images, "no picture: this page is one file"))
    else:
        write_folder(path, page_files(measured, images, missing), behind, how)


def page_server(measured: Measured, gt: Stream, port: int, folder: str | None) -> Explorer:
    """What serves the page on this machine."""
    images, behind, missing = _images(measured, gt, folder)
    return Explorer(port, dict(page_files(measured, images, missing)), behind)


def serve(server: Explorer) -> None:
    """Serve until Ctrl-C."""
    with server:
        note(f"the explorer is at {server.url} (Ctrl-C ends it)", asked=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt as stop:
            if type(stop) is not KeyboardInterrupt:  # a signal that asks the process to end
                raise
