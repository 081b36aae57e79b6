"""annotations.xml of "CVAT for images 1.1", of images of fixtures/own in which no box is of two pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER, PLACE, FILE = "own", "", "annotations.xml"
DONE = ("site_0003", "site_0004", "site_0011", "site_0016")


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """A group a pair."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<annotations>", " <version>1.1</version>"]
    for number, record in enumerate(record for record in truth if record["image_id"] in DONE):
        size = f'width="{record["width"]}" height="{record["height"]}"'
        lines.append(f' <image id="{number}" name="{record["file_name"]}" {size}>')
        for at, ((x1, y1, x2, y2), label) in enumerate(zip(record["boxes"], record["labels"], strict=True)):
            group = next((n for n, hoi in enumerate(record["hois"], 1) if at in (hoi["subject"], hoi["object"])), 0)
            sides = f'xtl="{x1:.2f}" ytl="{y1:.2f}" xbr="{x2:.2f}" ybr="{y2:.2f}"'
            lines.append(f'  <box label="{label}" source="manual" {sides} z_order="0" group_id="{group}">')
            verbs = [hoi["verb"] for hoi in record["hois"] if hoi["subject"] == at]
            lines.append(f'   <attribute name="action">{",".join(verbs)}</attribute>')
            lines.append("  </box>")
        lines.append(" </image>")
    path.write_text("\n".join([*lines, "</annotations>", ""]))
