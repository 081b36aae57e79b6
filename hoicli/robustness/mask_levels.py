"""The severity levels of SAMPL's masking and their cover ratios (Table 3 of the paper, the best of its rows)."""

from __future__ import annotations

from collections.abc import Mapping

LEVELS = ("clean", "low", "middle", "high")
"""Rising; clean is the original image."""
RATIOS: Mapping[str, float] = {"clean": 0.0, "low": 0.4, "middle": 0.5, "high": 0.6}
"""Level -> the side of a black rectangle as a share of its instance's."""
