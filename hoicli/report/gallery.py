"""The gallery of a report: errors drawn on their images, with the truth beside each.

An error has a card with the ground truth in cyan and the prediction in red. Images are embedded, each once however many
cards show it, so the page can be mailed as it is; no image library is needed for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hoicli.report.document import Block, Gallery, Paragraph, Section


def gallery_section(
    items: Sequence[Mapping[str, Any]], images: str | None, gains: Mapping[str, float | None] | None = None
) -> Section:
    """The errors as a section, which is empty without any; the arguments are those of `Gallery`. gains: what fixing
    each type gives, by which the types are ordered."""
    words = (
        "The highest-scored errors of each type, the types that cost most first. Ground truth is cyan, the prediction "
        "red; the subject's box has a solid line, the object's a dashed one. The IoU is that with the truth it names."
    )
    if images is None:
        words += " No folder of images was given (--images), so the boxes stand on empty sheets."
    order = sorted(items, key=lambda item: -((gains or {}).get(item["error"]) or 0.0))
    blocks: list[Block] = [Paragraph([words]), Gallery(order, images)]
    return Section("gallery", "Gallery", blocks if items else [])
