"""CDN's list of dictionaries as plain JSON, which `convert --to cdn-json` writes as well."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.foreign.cdn import items

FILE = "cdn.json"


def make(truth: list[dict[str, Any]], predictions: list[dict[str, Any]], path: Path) -> None:
    """Numbers as they are."""
    path.write_text(json.dumps(items(predictions, lambda value: value)))
