"""Pair statistics as result rows, each with its signature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from hoicli.pairs.settings import Sweep
from hoicli.pairs.statistics import PairStatistics
from hoicli.records.results import Row, percent, signature

METRICS = {
    "pairs_per_image": "pairs an image",
    "pair_recall": "pair recall",
    "pair_precision": "pair precision",
    "pair_precision_own_images": "pair precision in a group's own images",
    "neg_ap": "negative AP",
    "neg_share": "share of negatives",
    "interactiveness_ap": "interactiveness AP",
    "inter_map": "interaction mAP",
    "mAP": "mAP",
}
"""Each metric in words, in the order of the rows."""

_AMONG = {"pair_precision": "all-pairs", "pair_precision_own_images": "own-images"}
"""Of which detected pairs a precision is, for signatures: all, or those of images with a true pair of the group. The
paper does not say, its code has no groups; its Table 4 has the former (SCG 0.16 rare, 3.60 non-rare, 3.7 all)."""


def pair_rows(
    statistics: PairStatistics, *, tags: Mapping[str, str], settings: Mapping[str, str] | None = None
) -> Iterator[Row]:
    """Rows of each setting, metric by metric; in percent, except pairs_per_image. A value may be null, with a `reason`
    if the records lack what it needs. `settings` go into every signature.

    `n`: as `PairStatistics.results` says.
    """
    reasons = statistics.reasons
    for setting, results in statistics.results():
        for metric, (subset, figures) in product(METRICS, results.items()):
            if metric not in figures:
                continue
            value, n = figures[metric]
            yield {
                "metric": metric,
                "subset": subset,
                "value": value if metric == "pairs_per_image" else percent(value),
                **({"reason": reasons[metric]} if metric in reasons else {}),
                "n": n,
                "unit": "pairs" if metric == "pairs_per_image" else "%",
                "nms": setting.nms,
                "det_threshold": setting.det_threshold,
                "protocol": statistics.protocol.name,
                "tags": dict(tags),
                "signature": signature({**_settings(metric, setting, statistics), **(settings or {})}),
            }


def _settings(metric: str, setting: Sweep, statistics: PairStatistics) -> dict[str, str]:
    """The settings of a signature. mAP is eval's, of the remaining triplets: options about pairs do not change it."""
    settings = {"protocol": statistics.protocol.name, "data": statistics.vocabulary.signed, **setting.signature()}
    settings |= statistics.protocol.settings() | statistics.truth_settings
    if metric == "mAP":
        return settings
    if statistics.one_to_one and metric != "interactiveness_ap":
        settings["pairs"] = "one-to-one"
    if statistics.as_released and metric != "interactiveness_ap":
        settings["released"] = "yes"
    if metric in _AMONG:
        settings["among"] = _AMONG[metric]
    if points := _recall_values(metric, statistics):
        settings["recall"] = points
    if metric in statistics.ranked and statistics.ranked[metric][1]:
        settings["pairscore"] = "interactiveness"
    elif metric in ("neg_ap", "interactiveness_ap", "inter_map") and statistics.triplet_scores:
        settings["verbscore"] = "triplet"
    return settings


def _recall_values(metric: str, statistics: PairStatistics) -> str:
    """At which recall values an AP reads precision, for signatures; "" for what is no AP."""
    if metric not in ("neg_ap", "inter_map"):
        return "11-points" if metric == "interactiveness_ap" else ""
    grid = statistics.negative_grid if metric == "neg_ap" else statistics.protocol.grid
    return f"{len(grid)}-points" if grid else "every"
