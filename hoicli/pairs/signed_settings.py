"""The settings that the signature of a pair statistic's row states."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoicli.pairs.pair_batches import Sweep
from hoicli.records.result_rows import Setting

if TYPE_CHECKING:
    from hoicli.pairs.statistics import PairStatistics

_AMONG = {"pair_precision": "all-pairs", "pair_precision_own_images": "own-images"}
"""Which detected pairs a precision is over, for signatures: all, or those of images with a true pair of the group. The
paper does not say, and its code has no groups; its Table 4 has the former (SCG 0.16 rare, 3.60 non-rare, 3.7 all)."""


def row_settings(metric: str, setting: Sweep, statistics: PairStatistics) -> dict[str, Setting]:
    """Return the settings of the signature of a metric's row. mAP is eval's, of the remaining triplets, so options
    about pairs do not change it."""
    settings: dict[str, Setting] = {
        "protocol": statistics.protocol.name,
        "data": statistics.vocabulary.signed,
        **setting.signature(),
    }
    settings |= statistics.protocol.settings() | statistics.truth_settings
    if metric == "mAP":
        return settings
    if statistics.found.numbers["denied"] and metric != "inter_map":
        settings["noint"] = "pairs"
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
    """Return at which recall values a metric reads precision, for signatures; "" if it is no AP."""
    if metric not in ("neg_ap", "inter_map"):
        return "11-points" if metric == "interactiveness_ap" else ""
    grid = statistics.negative_grid if metric == "neg_ap" else statistics.protocol.grid
    return f"{len(grid)}-points" if grid else "every"
