"""What the settings of `shoe-eval` and `shoe-sim` are called, apart from the code that computes with them: help and
shell completion read these names without loading it."""

from __future__ import annotations

COMBINE = ("mean", "geometric", "min")
"""How the similarities of verb and object make one; the paper's is the (weighted) mean."""

AGAINST = ("image", "dataset")
"""Among whose classes the one is sought that an unmatched prediction counts against."""

AREAS = {
    "envelope": "area under the precision envelope: each recall step times the best precision at that recall or beyond",
    "11-point": "mean over recall 0, 0.1, ..., 1 of the best precision at that recall or beyond",
    "step": "each recall step times the precision there, no envelope (average precision of information retrieval)",
}
"""What "area under the curve" (Algorithm 1, line 39) can mean."""
