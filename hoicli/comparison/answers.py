"""A comparison in words: for each model, whether it is better than the baseline, from the rows alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hoicli.comparison.findings import CLASSES_BETTER, CLASSES_WORSE, SURE, AnyRow, origin
from hoicli.errors import DataError, HoicliError, arg
from hoicli.records.results import settings_of

NAMES = {
    "mAP_diff": "mAP",
    "soft_map_diff": "soft mAP",
    "mf1_diff": "mF1",
    "gt_miss_rate_diff": "GT miss rate",
    "prediction_miss_rate_diff": "prediction miss rate",
    "map_diff": "plain mAP",
}
"""What a sentence calls each metric that it may be about."""
LOWER = frozenset({"gt_miss_rate_diff", "prediction_miss_rate_diff"})
"""Those of which less is better."""


def answers(rows: Sequence[AnyRow]) -> list[str]:
    """A sentence for each model and metric (NAMES) that `rows` compare with a baseline, in their order: about the first
    protocol and view, and the subset with the most classes there; after that of a mAP, where its difference comes from.

    Better and worse are said only where p is below SURE and the 95 % interval leaves 0 out.
    """
    found = []
    for model, baseline, row in _headlines(rows):
        same = [other for other in rows if _view(other) == _view(row) and other.get("subset") == row["subset"]]
        counts = {str(other["metric"]): other for other in same if other["metric"] in (CLASSES_BETTER, CLASSES_WORSE)}
        told = _classes(counts, int(row["n"])) if row["metric"] == "mAP_diff" else ()
        found.append("; ".join([_verdict(model, baseline, row), *told]))
        if row["metric"] == "mAP_diff" and row["value"]:
            found += filter(None, [origin(row, rows)])
    return found


def _headlines(rows: Sequence[AnyRow]) -> Iterator[tuple[str, str, AnyRow]]:
    """(model, baseline, row) of the difference that each sentence is about."""
    of_model: dict[tuple[str, str, str], list[AnyRow]] = {}
    for row in rows:
        tags, metric = row.get("tags", {}), str(row.get("metric"))
        if metric in NAMES and "baseline" in tags:
            of_model.setdefault((str(tags.get("model")), str(tags["baseline"]), metric), []).append(row)
    for (model, baseline, _), means in of_model.items():
        first = means[0]
        yield model, baseline, max((row for row in means if _view(row) == _view(first)), key=lambda row: int(row["n"]))


def failure(rows: Sequence[AnyRow], margin: float) -> HoicliError | None:
    """The error of `--fail-if-worse`: a model is worse by more than `margin` points if the whole interval of the
    difference that its sentence is about is below -margin (of a miss rate above margin). None if none is.

    Without such an interval nothing is decided, which is an error, too.
    """
    worse, untested = [], ""
    for model, baseline, row in _headlines(rows):
        low, high, less = row["ci_low"], row["ci_high"], row["metric"] in LOWER
        if low is None:
            untested = _verdict(model, baseline, row)
        elif (low if less else -high) > margin:
            limit = f"above {margin:g}" if less else f"below {-margin or 0.0:g}"
            failed = f"{model} fails {arg('fail_if_worse')} against {baseline}"
            what = (
                f"the whole interval [{low:.4g}, {high:.4g}] of the difference in {NAMES[row['metric']]} ({_of(row)})"
            )
            doubt = f" (p = {row['p']:.2g} does not confirm it)" if (row["p"] or 0.0) >= SURE else ""
            worse.append(f"{failed}: {what} is {limit}{doubt}")
    if worse:
        return HoicliError(", and ".join(worse), code="worse")
    return DataError(untested, code="untested") if untested else None


def _view(row: AnyRow) -> tuple[Any, Any]:
    return row.get("protocol"), row.get("tags")


def _verdict(model: str, baseline: str, row: AnyRow) -> str:
    value, low, high = row["value"], row["ci_low"], row["ci_high"]
    of = _of(row)
    metric, least = NAMES[row["metric"]], row["metric"] in LOWER
    if value is None:
        why = f"{of} has no class to average" if metric == "mAP" else f"one of them has no {metric}"
        return f"{model} cannot be compared with {baseline}: {why}"
    numbers = f"{_signed(value)} {metric} ({of}: {row['from']:.2f} to {row['to']:.2f})"
    name = "p" if row["p"] is not None else "p_bootstrap"
    chance = row[name]
    if low is None or chance is None:
        tested = "boot" in settings_of(row)
        why = "ground truth in fewer than two images" if tested else "no resamples were asked for"
        ahead, behind = ("ahead of", "behind") if least else ("above", "below")
        than = "as good as" if value == 0 else ahead if (value < 0) == least else behind
        return f"{model} is {than} {baseline} here, but no test was run ({why}): {numbers}"
    leaves_out, unlikely = low > 0 or high < 0, chance < SURE
    shown = leaves_out and unlikely
    verdict = (
        "is not shown to differ from" if not shown else "is better than" if (value < 0) == least else "is worse than"
    )
    doubt = ""
    if leaves_out and not unlikely:
        doubt = f" (its interval excludes 0, but {name} does not confirm it)"
    elif unlikely and not leaves_out:
        doubt = f" ({name} is small, but its interval includes 0)"
    span = f"[{_plain(low)}, {_plain(high)}]"
    return f"{model} {verdict} {baseline}: {numbers}, 95 % interval {span}, {name} = {chance:.2g}{doubt}"


def _of(row: AnyRow) -> str:
    """The protocol of a row, its subset, and what it is a view of."""
    return ", ".join([str(row["protocol"]), *([] if row["subset"] == "full" else [str(row["subset"])]), *_seen(row)])


def _seen(row: AnyRow) -> Iterator[str]:
    """What the row is a view of."""
    tags = row.get("tags", {})
    if "iou" in tags:
        yield f"IoU {tags['iou']}"
    if "delta" in tags:
        yield f"delta {tags['delta']}"
    if "part" in tags:
        yield f"{tags['slice']} {tags['part']}"


def _classes(counts: Mapping[str, AnyRow], compared: int) -> Iterator[str]:
    """How many of the classes differ; nothing where the rows do not say."""
    if counts.keys() != {CLASSES_BETTER, CLASSES_WORSE}:
        return
    better, worse = (int(counts[name]["value"]) for name in (CLASSES_BETTER, CLASSES_WORSE))
    tested = int(counts[CLASSES_BETTER]["n"])
    if not tested:
        yield "no class can be tested (each has ground truth in fewer than two images)"
        return
    of = f"{tested:,} classes" if tested == compared else f"the {tested:,} classes that can be tested"
    sides = f": {better:,} better, {worse:,} worse" if better + worse else ""
    yield f"{better + worse:,} of {of} {'differs' if better + worse == 1 else 'differ'} at q < {SURE}{sides}"


def _plain(value: float) -> str:
    """With two digits, and no minus before 0.00."""
    return f"{round(value, 2) + 0.0:.2f}"


def _signed(value: float) -> str:
    text = _plain(value)
    return f"+{text}" if value > 0 and text != "0.00" else text
