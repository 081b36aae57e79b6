"""What the settings of `shoe-eval` and `shoe-sim` are called, and how labels are named in messages, apart from the code
that computes with them: help and shell completion read these names without loading it."""

from __future__ import annotations

from collections.abc import Set

from hoicli.errors import UsageError
from hoicli.io.messages import note

DATASETS = ("hico", "vcoco", "swig")
"""The datasets whose classes have curated senses."""

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


def check_dataset(dataset: str) -> None:
    """Raises `UsageError` for anything but one of DATASETS."""
    if dataset not in DATASETS:
        raise UsageError(f"--dataset {dataset}: choose from {', '.join(DATASETS)}")


def listed(labels: Set[str]) -> str:
    """`3 labels (a, b, c)`, the first five by name."""
    shown = ", ".join(sorted(labels)[:5]) + (", ..." if len(labels) > 5 else "")
    return f"{len(labels):,} label{'s' if len(labels) != 1 else ''} ({shown})"


def note_senseless(labels: Set[str]) -> None:
    """Say which labels have no sense, if any."""
    if labels:
        note(f"no WordNet sense for {listed(labels)}: similarity 1 to the same spelling, else 0")
