"""Pair statistics as result rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hoicli.diagnosis.pairs.settings import Sweep
from hoicli.diagnosis.pairs.statistics import PairResults
from hoicli.protocols import Protocol


def pair_rows(
    setting: Sweep,
    results: Sequence[PairResults],
    *,
    protocol: Protocol,
    signature: str,
    tags: Mapping[str, str],
) -> Iterator[dict[str, Any]]:
    """Result rows of one setting, metric by metric; percent but for pairs_per_image. A value may be null.

    `n`: the images of pairs_per_image, the true pairs of pair_recall, the detected pairs of pair_precision, the pairs
    without interaction of neg_ap, the verbs (V-COCO: action-roles) of inter_map.
    """
    for metric in ("pairs_per_image", "pair_recall", "pair_precision", "neg_ap", "inter_map"):
        for result in results:
            if metric == "neg_ap" and result.subset != "full":
                continue
            value, n, unit = {
                "pairs_per_image": (result.pairs_per_image, result.images, "pairs"),
                "pair_recall": (result.recall, result.truth_pairs, "%"),
                "pair_precision": (result.precision, result.pairs, "%"),
                "neg_ap": (result.neg_ap, result.negatives, "%"),
                "inter_map": (result.inter_map, result.verbs, "%"),
            }[metric]
            yield {
                "metric": metric,
                "subset": result.subset,
                "value": 100.0 * value if value is not None and unit == "%" else value,
                "n": n,
                "unit": unit,
                "nms": setting.nms,
                "det_threshold": setting.det_threshold,
                "protocol": protocol.name,
                "tags": dict(tags),
                "signature": signature,
            }
