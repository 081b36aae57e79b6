"""The page of `hoicli show`: drawn pictures with their triplets in words."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hoicli.figures.markup import escaped
from hoicli.figures.overlays import Overlay, encoded
from hoicli.records.parsing import Record
from hoicli.report.document import Document, Gallery, Paragraph, Section
from hoicli.report.html import render

if TYPE_CHECKING:
    from PIL.Image import Image

LEAD = "Solid boxes are subjects, dashed ones objects; the colour says whose they are."


def shown_page(items: Sequence[tuple[Overlay, Image]], title: str) -> bytes:
    """The page as bytes; it holds the pictures."""
    cards = [_item(overlay, picture) for overlay, picture in items]
    return render(Document(title, [LEAD], [], [Section("images", "Images", [Gallery(cards, None), *_none(cards)])]))


def _none(cards: Sequence[Record]) -> list[Paragraph]:
    return [] if cards else [Paragraph(["No image."])]


def _item(overlay: Overlay, picture: Image) -> Record:
    """An image as `Gallery` takes it."""
    said = [
        f"{layer.name}: {', '.join(label for pair in layer.pairs for label in pair.labels) or 'nothing'}"
        for layer in overlay.layers
    ]
    data = base64.b64encode(encoded(picture, "JPEG")).decode()
    alternative = escaped(f"{overlay.image_id}: {'; '.join(said)}")
    scene = (
        f'<img class="drawn" width="{picture.width}" height="{picture.height}" alt="{alternative}" '
        f'src="data:image/jpeg;base64,{data}">'
    )
    count = sum(len(pair.labels) for layer in overlay.layers for pair in layer.pairs)
    facts = "1 triplet" if count == 1 else f"{count} triplets"
    return {"image_id": overlay.image_id, "words": (overlay.image_id, "; ".join(said), facts), "scene": scene}
