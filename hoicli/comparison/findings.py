"""Where a difference of mAP comes from, in a sentence, and the rows without what says nothing; from the rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hoicli.diagnosis.errors import MISSED

SURE = 0.05
"""The p below which a difference counts as shown, if its interval leaves 0 out as well."""
CLASSES_BETTER, CLASSES_WORSE = "classes_better", "classes_worse"
_SUMS = frozenset({"false_positive", "false_negative"})
"""Oracles that repair several types of error."""
_OF_NOTHING = frozenset({"count_diff", "delta_mAP_diff", "image_diff", CLASSES_BETTER, CLASSES_WORSE})
"""Metrics whose rows say nothing where they are 0."""

AnyRow = Mapping[str, Any]
Finding = tuple[float, str]
"""How many points of mAP it explains, and in words."""


def readable(rows: Sequence[AnyRow]) -> list[dict[str, Any]]:
    """The rows for a table: without counts and gains that differ in nothing, and without the models and protocol that
    all rows of a metric share."""
    kept = [row for row in rows if row["metric"] not in _OF_NOTHING or _moved(row)]
    said: dict[tuple[str, str], set[str]] = {}
    for row in kept:
        for key, value in {"protocol": row["protocol"], **row["tags"]}.items():
            said.setdefault((row["metric"], key), set()).add(value)
    short = []
    for row in kept:
        shared = [key for key in ("protocol", "model", "baseline") if len(said.get((row["metric"], key), ())) == 1]
        tags = {key: value for key, value in row["tags"].items() if key not in shared}
        short.append({key: value for key, value in row.items() if key not in shared} | {"tags": tags})
    return short


def origin(mean: AnyRow, rows: Sequence[AnyRow]) -> str:
    """The three findings that explain most of a `mAP_diff` in a sentence, "" where rows have none: what is found and
    the order of its scores; the error type that costs more, where that is shown; the listed classes and image.
    """
    same = [row for row in rows if (row.get("tags"), row.get("subset")) == (mean["tags"], mean["subset"])]
    found = sorted((*_order(mean, rows, same), *_errors(mean, same), *_places(mean, rows, same)), reverse=True)
    texts = "; ".join(text for _, text in found[:3])
    return f"{mean['tags']['model']}: of {mean['value']:+.2f} mAP, {texts}" if texts else ""


def _order(mean: AnyRow, rows: Sequence[AnyRow], same: Sequence[AnyRow]) -> Iterator[Finding]:
    """mAP is what is found whatever the scores (mean max recall) less what their order costs."""
    tags, models = dict(mean["tags"]), (mean["tags"]["baseline"], mean["tags"]["model"])
    del tags["baseline"]
    of = [
        row["value"]
        for model in models
        for row in rows
        if row.get("metric") == "mean_max_recall"
        and (row["protocol"], row["subset"], row["tags"]) == (mean["protocol"], mean["subset"], tags | {"model": model})
    ]
    if len(of) != len(models):
        return
    found, counts = of[1] - of[0], [row for row in same if row["metric"] == "count_diff" and row["error"] != MISSED]
    if abs(found) > 1e-9:
        order, recall = mean["value"] - found, f"mean max recall {of[0]:.2f} to {of[1]:.2f}"
        yield max(abs(found), abs(order)), f"{found:+.2f} is what is found ({recall}), {order:+.2f} the order of scores"
        return
    as_many = "same predictions, other scores: as many of each type of error"
    why = as_many if counts and not any(map(_moved, counts)) else f"as much is found, mean max recall {of[0]:.2f}"
    yield abs(mean["value"]), f"all is the order of scores ({why})"


def _errors(mean: AnyRow, same: Sequence[AnyRow]) -> Iterator[Finding]:
    costs = [row for row in same if row["metric"] == "delta_mAP_diff" and row["oracle"] not in _SUMS]
    costs = [row for row in costs if row["value"] is not None]
    shown = [row for row in costs if row["ci_low"] is None or (row["ci_low"] * row["ci_high"] > 0 and row["p"] < SURE)]
    for row in sorted(shown, key=lambda row: row["value"] * (1 if mean["value"] > 0 else -1))[:1]:
        if row["value"] * mean["value"] < 0:
            more, size = "more" if row["value"] > 0 else "less", abs(row["value"])
            gains = f"repaired they give {row['to']:+.2f}, before {row['from']:+.2f}"
            yield size, f"{row['oracle']} errors cost {size:.2f} {more} ({gains}, by {row['protocol']})"


def _places(mean: AnyRow, rows: Sequence[AnyRow], same: Sequence[AnyRow]) -> Iterator[Finding]:
    """A class's share of the mean is its difference over the number of classes."""
    of_classes = [row for row in rows if row["metric"] == "AP_diff" and row["tags"] == mean["tags"]]
    of_classes = [row for row in of_classes if row["protocol"] == mean["protocol"] and row["value"] * mean["value"] > 0]
    if most := sorted(of_classes, key=lambda row: -abs(row["value"]))[:10]:
        share, first = sum(row["value"] for row in most) / mean["n"], most[0]
        name = " ".join(first[key] for key in ("verb", "object", "role") if first.get(key))
        what = "of a class" if len(most) == 1 else f"of {len(most)} classes, first"
        yield abs(share), f"{share:+.2f} is {what} {name} ({first['value']:+.2f} AP)"
    for row in [row for row in same if row["metric"] == "image_diff" and row["value"] * mean["value"] > 0][:1]:
        yield abs(row["value"]), f"{row['value']:+.2f} goes with image {row['image_id']}"


def _moved(row: AnyRow) -> bool:
    """Whether a difference, or one end of its interval, is printed as more than 0."""
    return any(abs(row.get(key) or 0.0) >= 0.005 for key in ("value", "ci_low", "ci_high"))
