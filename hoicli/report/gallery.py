"""Pictures of errors: the gallery of a report, and a page that is nothing else.

An error has a card with the ground truth in cyan and the prediction in red. Images are embedded, each once however many
cards show it, so the page can be mailed as it is; no image library is needed for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hoicli.errors import UsageError
from hoicli.io.destinations import check_page_folder
from hoicli.io.outputs import atomic_path
from hoicli.report.document import Block, Document, Gallery, Paragraph, Section
from hoicli.report.html import pieces
from hoicli.version import __version__


def gallery_section(items: Sequence[Mapping[str, Any]], images: str | None, *, filters: bool = False) -> Section:
    """The errors as a section, which is empty in a report without any; the arguments are those of `Gallery`."""
    words = (
        "The highest-scored errors of each type. Ground truth is cyan, the prediction red; the subject's box has a "
        "solid line, the object's a dashed one."
    )
    if images is None:
        words += " No folder of images was given (--images), so the boxes stand on empty sheets."
    blocks: list[Block] = [Paragraph([words]), Gallery(items, images, filters)]
    return Section("gallery", "Gallery", blocks if items or filters else [])


def write_gallery(folder: str, items: Sequence[Mapping[str, Any]], images: str | None) -> None:
    """Write folder/index.html with a card for each of the `items`, as `Gallery` has them.

    `images` is the folder that file names are looked up in. The page appears whole or not at all. Raises `UsageError`
    for folders that cannot be used.
    """
    target = Path(folder)
    if images is not None and not Path(images).is_dir():
        raise UsageError(f"--images {images}: there is no such folder")
    check_page_folder(folder, "--gallery")
    lead = f"{len(items):,} errors. Made by hoicli {__version__}."
    document = Document("hoicli: errors", [lead], [], [gallery_section(items, images, filters=True)])
    made = not target.exists()
    target.mkdir(exist_ok=True)
    try:
        with atomic_path(str(target / "index.html"), "--gallery") as temporary, open(temporary, "wb") as page:
            page.writelines(pieces(document))
    except BaseException:
        if made:
            with suppress(OSError):  # Ctrl-C or SIGTERM when the page is there already
                target.rmdir()
        raise
