"""Rows for figures."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from hoicli.figures.styles import ORACLES

Rows = list[dict[str, Any]]


def deltas(model: str = "", value: float | None = 2.0, **values: float | None) -> Rows:
    rows: Rows = [
        {"metric": "delta_mAP", "subset": "full", "oracle": oracle, "value": values.get(oracle, value), "model": model}
        for oracle in ORACLES
    ]
    return [*rows, {**rows[0], "subset": "rare", "value": 77.7}, {"metric": "mAP", "subset": "full", "value": 66.6}]


def words(path: Path) -> list[str]:
    """Every text of an SVG, in the order it is drawn in."""
    root = ElementTree.parse(path).getroot()
    return ["".join(text.itertext()).strip() for text in root.iter("{http://www.w3.org/2000/svg}text")]
