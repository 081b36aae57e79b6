"""The rows of pair statistics, and the settings that their signatures state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain, product

from hoicli.errors import DeclarationError
from hoicli.pairs.pair_batches import Sweep
from hoicli.pairs.statistics import PairStatistics
from hoicli.records.metrics import metrics_of
from hoicli.records.result_rows import Row, Setting, Settings, percent, result_row, signature

METRICS = {metric.name: metric for metric in metrics_of("pairstats")}
"""The metrics in the order of the rows."""


def pair_rows(
    statistics: PairStatistics, *, tags: Mapping[str, str], settings: Settings | None = None
) -> Iterator[Row]:
    """Yield the result rows of pair statistics, setting by setting and metric by metric, in percent except for
    pairs_per_image. A value may be null, with a `reason` if the records lack the scores that it needs; what n counts
    `PairStatistics.results` says. settings: added to every signature."""
    reasons = statistics.reasons
    for setting, results in statistics.results():
        if undeclared := {*chain.from_iterable(results.values())} - METRICS.keys():
            problem = f"pairstats has no metric {', '.join(undeclared)}; declare it in hoicli/records/metrics.py"
            raise DeclarationError(problem)
        for metric, (subset, figures) in product(METRICS, results.items()):
            if metric not in figures:
                continue
            value, n = figures[metric]
            yield result_row(
                metric,
                subset=subset,
                value=percent(value) if METRICS[metric].units == ("%",) else value,
                **({"reason": reasons[metric]} if metric in reasons else {}),
                n=n,
                unit=METRICS[metric].units[0],
                nms=setting.nms,
                det_threshold=setting.det_threshold,
                protocol=statistics.protocol.name,
                tags=dict(tags),
                signature=signature({**_row_settings(metric, setting, statistics), **(settings or {})}),
            )


def _row_settings(metric: str, setting: Sweep, statistics: PairStatistics) -> dict[str, Setting]:
    """Return the settings that a metric's signature states under a setting of the sweep. mAP is that of `eval` over the
    remaining triplets, so options about pairs do not change it."""
    settings: dict[str, Setting] = {
        "protocol": statistics.protocol.name,
        "data": statistics.vocabulary.signed,
        **setting.signature(),
        **METRICS[metric].constants,
    }
    settings |= statistics.protocol.settings() | statistics.truth_settings
    if metric == "mAP":
        return settings
    # some pairs have a score by their triplets of no_interaction alone; interaction mAP ranks none of these triplets
    if statistics.gathered.numbers["denied"] and metric != "inter_map":
        settings["noint"] = "pairs"
    if statistics.one_to_one and metric != "interactiveness_ap":
        settings["pairs"] = "one-to-one"
    if statistics.as_released and metric != "interactiveness_ap":
        settings["released"] = "yes"
    if points := _recall_values(metric, statistics):
        settings["recall"] = points
    if metric in statistics.ranked_counts and statistics.ranked_counts[metric].stated:
        settings["pairscore"] = "interactiveness"
    elif metric in ("neg_ap", "interactiveness_ap", "inter_map") and statistics.triplet_scores:
        settings["verbscore"] = "triplet"
    return settings


def _recall_values(metric: str, statistics: PairStatistics) -> str:
    """Return at which recalls a metric reads precision, as signatures state it ("11-points"); "" for mAP and no AP."""
    if metric not in ("neg_ap", "inter_map"):
        return "11-points" if metric == "interactiveness_ap" else ""
    grid = statistics.negative_grid if metric == "neg_ap" else statistics.protocol.grid
    return f"{len(grid)}-points" if grid else "every"
