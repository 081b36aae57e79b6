"""The golden sheet: every corruption of a small picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hoicli.corruption.catalogue import ROHOI, SEVERITIES
from hoicli.corruption.effects import corrupt
from tests.support.pictures import textured

Image = NDArray[np.uint8]
GOLDEN = Path(__file__).with_name("golden_sheet.png")


def golden_sheet() -> Image:
    """All 100 results of a small picture, a row for each corruption: tests/support/golden_sheet.png."""
    image = textured(24, 32)
    rows = [np.concatenate([corrupt(image, name, level, image_id=name) for level in SEVERITIES], axis=1)
            for name in ROHOI]  # fmt: skip
    return np.concatenate(rows)
