"""Rows for figures."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from hoicli.records.oracles import ORACLES

Rows = list[dict[str, Any]]


def deltas(model: str = "", value: float | None = 2.0, **values: float | None) -> Rows:
    common = {"metric": "delta_mAP", "subset": "full", "model": model}
    rows: Rows = [{**common, "oracle": oracle, "value": values.get(oracle, value)} for oracle in ORACLES]
    return [*rows, {**rows[0], "subset": "rare", "value": 77.7}, {"metric": "mAP", "subset": "full", "value": 66.6}]


def sweep(model: str, key: str = "nms") -> Rows:
    common = {"subset": "full", "nms": None, "det_threshold": None, "tags": {"model": model} if model else {}}
    return [
        {**common, "metric": metric, "value": value + len(model), key: threshold}
        for threshold, recall, precision in ((None, 80.0, 10.0), (0.5, 70.0, 20.0), (0.25, 60.0, 25.0))
        for metric, value in (("pair_recall", recall), ("pair_precision", precision))
    ]


def words(path: Path) -> list[str]:
    """Every text of an SVG, in the order it is drawn in."""
    root = ElementTree.parse(path).getroot()
    return ["".join(text.itertext()).strip() for text in root.iter("{http://www.w3.org/2000/svg}text")]
