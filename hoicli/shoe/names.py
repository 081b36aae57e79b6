"""Names of the settings of `shoe-eval` and `shoe-sim`, and of labels in messages. They are apart from the code that
computes, so that help and shell completion do not load it."""

from __future__ import annotations

from collections.abc import Set

from hoicli.io.messages import note

METRICS = {
    "soft_map": "mean of soft average precisions; ranks by score",
    "mf1": "mean of soft F1; needs no scores",
    "gt_miss_rate": "ground truth that no prediction is matched with",
    "prediction_miss_rate": "predictions that are matched with no ground truth",
    "map": "plain mAP by equal spelling",
}
"""SHOE's metrics, in the order of rows."""

COMBINE = ("mean", "geometric", "min")
"""How the similarities of verb and object are combined; the paper uses the (weighted) mean."""

AGAINST = ("image", "dataset")
"""Where the class that an unmatched prediction counts against is searched: in its image, or in the dataset."""

AREAS = {
    "envelope": "area under the precision envelope: each recall step times the best precision at that recall or beyond",
    "11-point": "mean over recall 0, 0.1, ..., 1 of the best precision at that recall or beyond",
    "step": "each recall step times the precision there, no envelope (average precision of information retrieval)",
    "trapezoid": "straight lines between the curve's points, from recall 0 with precision 1 on",
}
"""What "area under the curve" (Algorithm 1, line 39) can mean."""


ASSIGNMENTS = {
    "greedy": "ground truth chooses in the order of its record (the paper's algorithms)",
    "optimal": "the greatest total similarity of each image",
}
"""How predictions are given to ground truth."""

RANKS = {
    "all": "of-all-predictions",
    "image": "of-its-image's-predictions",
    "class": "of-its-class's-predictions",
    "best": "of-its-image's-best-score",
}
"""Of what `--min-rank` is: the share of these that do not score higher, or (best) the score as a share of that."""


def listed(labels: Set[str]) -> str:
    """`3 labels (a, b, c)`, the first five by name."""
    shown = ", ".join(sorted(labels)[:5]) + (", ..." if len(labels) > 5 else "")
    return f"{len(labels):,} label{'s' if len(labels) != 1 else ''} ({shown})"


def note_senseless(labels: Set[str]) -> None:
    """Say which labels have no sense, if any."""
    if labels:
        note(f"no WordNet sense for {listed(labels)}: similarity 1 to the same spelling, else 0")
