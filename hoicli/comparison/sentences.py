"""A comparison in words, from its result rows alone: for each model, whether it is better than the baseline, and where
the difference of mAP comes from; and the rows as people read them, without those that say nothing.

A result row is a dict of a metric's name, what it is about (subset, class, protocol, tags), its value and interval
(formats/result.schema.json). The tags of a row about a difference hold the names of the model and the baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hoicli.diagnosis.error_types import MISSED
from hoicli.errors import DataError, HoicliError, arg
from hoicli.records.kinds import DIFFERENCE
from hoicli.records.metrics import LOWER, better_direction, metrics_of
from hoicli.records.oracles import OF_A_SIDE
from hoicli.records.result_rows import settings_of
from hoicli.tables.cells import number_text

SURE = 0.05
"""The p below which a difference counts as shown, if its interval leaves 0 out as well."""
NO_WIDTH = 1e-9
"""An interval narrower than this, in points, has no width but for rounding."""
CLASSES_BETTER, CLASSES_WORSE = "classes_better", "classes_worse"
_OF_NOTHING = frozenset({"count_diff", "delta_mAP_diff", "image_diff", CLASSES_BETTER, CLASSES_WORSE})
"""Metrics whose rows say nothing if their value is 0."""

AnyRow = Mapping[str, Any]
Finding = tuple[float, str]
"""How many points of a mAP difference a finding explains, and the finding in words."""
NAMES = {
    metric.name: metric.words for metric in metrics_of("compare") if metric.kinds == (DIFFERENCE,) and metric.words
}
"""The words for each metric that a sentence may be about."""


def answers(rows: Sequence[AnyRow]) -> list[str]:
    """Return sentences that answer whether each model is better than the baseline, one for each metric of NAMES in the
    rows of a comparison, in their order. A difference of mAP is followed by a sentence about where it comes from.

    Each is about the first protocol, threshold and part of the data in the rows, and the subset with the most classes
    there. "Better" and "worse" are said only if p is below SURE and the 95 % interval excludes 0."""
    sentences = []
    for model, baseline, row in _headlines(rows):
        related = [
            other
            for other in rows
            if _protocol_and_tags(other) == _protocol_and_tags(row) and other.get("subset") == row["subset"]
        ]
        count_rows = {
            str(other["metric"]): other for other in related if other["metric"] in (CLASSES_BETTER, CLASSES_WORSE)
        }
        details = _class_details(count_rows, int(row["n"])) if row["metric"] == "mAP_diff" else ()
        sentences.append("; ".join([_verdict(model, baseline, row), *details]))
        if row["metric"] == "mAP_diff" and row["value"]:
            sentences += filter(None, [origin(row, rows)])
    return sentences


def _headlines(rows: Sequence[AnyRow]) -> Iterator[tuple[str, str, AnyRow]]:
    """Yield (model, baseline, row) for each pair of models and metric of NAMES that the rows compare. The row is one of
    the protocol, threshold and part of the data that come first, and of these that of the subset with the most classes
    (`n`)."""
    rows_by_pair: dict[tuple[str, str, str], list[AnyRow]] = {}
    for row in rows:
        tags, metric = row.get("tags", {}), str(row.get("metric"))
        if metric in NAMES and "baseline" in tags:
            rows_by_pair.setdefault((str(tags.get("model")), str(tags["baseline"]), metric), []).append(row)
    for (model, baseline, _), pair_rows in rows_by_pair.items():
        first = _protocol_and_tags(pair_rows[0])
        like_first = [row for row in pair_rows if _protocol_and_tags(row) == first]
        yield model, baseline, max(like_first, key=lambda row: int(row["n"]))


def failure(rows: Sequence[AnyRow], margin: float) -> HoicliError | None:
    """Return the error of `--fail-if-worse MARGIN`, None if no model is worse than the baseline. A model is worse if
    the whole 95 % interval of the difference that its sentence is about is below -margin points (for a metric whose
    lower values are better, such as a miss rate: above margin).

    If a difference has no interval, nothing can be decided, and that is an error, too."""
    worse: list[str] = []
    untested = ""
    for model, baseline, row in _headlines(rows):
        low, high, less_is_better = row["ci_low"], row["ci_high"], _less_is_better(row)
        if low is None:
            untested = _verdict(model, baseline, row)
            continue
        smallest_loss = low if less_is_better else -high  # the end of the interval nearest to no loss
        if smallest_loss > margin:
            limit = f"above {margin:g}" if less_is_better else f"below {-margin or 0.0:g}"
            failed = f"{model} fails {arg('fail_if_worse')} against {baseline}"
            # As many digits as are needed to see that the interval is beyond the margin
            digits = next((n for n in range(2, 9) if round(smallest_loss, n) > margin), 9)
            interval = f"[{low:.{digits}f}, {high:.{digits}f}]"
            finding = f"the whole interval {interval} of the difference in {NAMES[row['metric']]} ({_subset_text(row)})"
            doubt = f" (p = {row['p']:.2g} does not confirm it)" if (row["p"] or 0.0) >= SURE else ""
            worse.append(f"{failed}: {finding} is {limit}{doubt}")
    if worse:
        return HoicliError(", and ".join(worse), code="worse")
    return DataError(untested, code="untested") if untested else None


def _less_is_better(row: AnyRow) -> bool:
    """Return whether lower values are better for the metric whose difference a row has."""
    return better_direction(row["metric"].removesuffix("_diff")) == LOWER


def _protocol_and_tags(row: AnyRow) -> tuple[Any, Any]:
    """Return a row's protocol and tags: equal for rows about the same models, threshold and part of the data."""
    return row.get("protocol"), row.get("tags")


def _verdict(model: str, baseline: str, row: AnyRow) -> str:
    """Return the sentence that says whether a model is better than the baseline. row: their difference in a metric."""
    value, low = row["value"], row["ci_low"]
    subset_text = _subset_text(row)
    metric, less_is_better = NAMES[row["metric"]], _less_is_better(row)
    if value is None:
        why = f"{subset_text} has no class to average" if metric == "mAP" else f"one of them has no {metric}"
        return f"{model} cannot be compared with {baseline}: {why}"
    numbers = f"{number_text(value, 2, signed=True)} {metric} ({subset_text}: {row['from']:.2f} to {row['to']:.2f})"
    chance_name = "p" if row["p"] is not None else "p_bootstrap"
    if low is None or row[chance_name] is None:
        tested = "boot" in settings_of(row)
        why = "ground truth in fewer than two images" if tested else "no resamples were asked for"
        ahead, behind = ("ahead of", "behind") if less_is_better else ("above", "below")
        relation = ahead if (value < 0) == less_is_better else behind
        if value == 0:
            relation = "as good as"
        return f"{model} is {relation} {baseline} here, but no test was run ({why}): {numbers}"
    return f"{model} {_tested_relation(row, chance_name)} {baseline}: {numbers}, {_test_text(row, chance_name)}"


def _tested_relation(row: AnyRow, chance_name: str) -> str:
    """Return "is better than", "is worse than" or "is not shown to differ from". The first two need an interval without
    0 and a small p. chance_name: the key of the p to use, p or p_bootstrap."""
    excludes_zero = row["ci_low"] > 0 or row["ci_high"] < 0
    if not (excludes_zero and row[chance_name] < SURE):
        return "is not shown to differ from"
    return "is better than" if (row["value"] < 0) == _less_is_better(row) else "is worse than"


def _test_text(row: AnyRow, chance_name: str) -> str:
    """Return the interval and the p of a difference in words, with a remark if only one of the two shows a difference.
    chance_name: the key of the p to use, p or p_bootstrap."""
    low, high, chance = row["ci_low"], row["ci_high"], row[chance_name]
    excludes_zero, unlikely = low > 0 or high < 0, chance < SURE
    doubt = ""
    if excludes_zero and not unlikely:
        doubt = f" (its interval excludes 0, but {chance_name} does not confirm it)"
    elif unlikely and not excludes_zero:
        doubt = f" ({chance_name} is small, but its interval includes 0)"
    span = f"[{number_text(low, 2)}, {number_text(high, 2)}]"
    if row["value"] != 0 and high - low < NO_WIDTH:
        span += " (without width, as all resamples agree: it does not show how images differ)"
    return f"95 % interval {span}, {chance_name} = {chance:.2g}{doubt}"


def _subset_text(row: AnyRow) -> str:
    """Return in words what a row is about: its protocol, subset and threshold or part (`hico, rare, IoU 0.75`)."""
    subset = [] if row["subset"] == "full" else [str(row["subset"])]
    return ", ".join([str(row["protocol"]), *subset, *_limit_texts(row)])


def _limit_texts(row: AnyRow) -> Iterator[str]:
    """Yield in words what limits a row, if something does: an IoU threshold, a delta (SHOE), a part of a slice."""
    tags = row.get("tags", {})
    if "iou" in tags:
        yield f"IoU {tags['iou']}"
    if "delta" in tags:
        yield f"delta {tags['delta']}"
    if "part" in tags:
        yield f"{tags['slice']} {tags['part']}"


def _class_details(count_rows: Mapping[str, AnyRow], compared: int) -> Iterator[str]:
    """Yield in words how many classes are better and worse, if there are rows that count them. compared: how many
    classes the mean is over."""
    if count_rows.keys() != {CLASSES_BETTER, CLASSES_WORSE}:
        return
    better, worse = (int(count_rows[name]["value"]) for name in (CLASSES_BETTER, CLASSES_WORSE))
    tested = int(count_rows[CLASSES_BETTER]["n"])
    if not tested:
        yield "no class can be tested (each has ground truth in fewer than two images)"
        return
    total = f"{tested:,} classes" if tested == compared else f"the {tested:,} classes that can be tested"
    directions = f": {better:,} better, {worse:,} worse" if better + worse else ""
    yield f"{better + worse:,} of {total} {'differs' if better + worse == 1 else 'differ'} at q < {SURE}{directions}"


def readable(rows: Sequence[AnyRow]) -> list[dict[str, Any]]:
    """Return the rows of a comparison as a table for people shows them: without rows about differences that would be
    printed as 0, and without the names of protocol, model and baseline if they are the same in all rows of a metric."""
    # _OF_NOTHING: the metrics whose rows say nothing if their value is 0
    readable_rows = [row for row in rows if row["metric"] not in _OF_NOTHING or _is_visible(row)]
    values_by_key: dict[tuple[str, str], set[str]] = {}  # by (metric, key)
    for row in readable_rows:
        for key, value in {"protocol": row["protocol"], **row["tags"]}.items():
            values_by_key.setdefault((row["metric"], key), set()).add(value)
    short_rows = []
    for row in readable_rows:
        shared = [
            key for key in ("protocol", "model", "baseline") if len(values_by_key.get((row["metric"], key), ())) == 1
        ]
        tags = {key: value for key, value in row["tags"].items() if key not in shared}
        short_rows.append({key: value for key, value in row.items() if key not in shared} | {"tags": tags})
    return short_rows


# Where a difference of mAP comes from


def origin(mean: AnyRow, rows: Sequence[AnyRow]) -> str:
    """Return a sentence on where a difference of mAP comes from: the three findings that explain most of it, among
    recall and order of the scores, types of errors, classes, and images. "" if the rows tell nothing of these.

    mean: the row of the difference; rows: all rows of the comparison."""
    related = [row for row in rows if (row.get("tags"), row.get("subset")) == (mean["tags"], mean["subset"])]
    findings = [
        *_recall_and_order(mean, rows, related),
        *_costliest_error(mean, related),
        *_foremost_classes(mean, rows),
        *_foremost_image(mean, related),
    ]
    texts = "; ".join(text for _, text in sorted(findings, reverse=True)[:3])
    gains = "gains its" if mean["value"] > 0 else "loses its"
    return f"{mean['tags']['model']} {gains} {abs(mean['value']):.2f} mAP as follows: {texts}" if texts else ""


def _recall_and_order(mean: AnyRow, rows: Sequence[AnyRow], related: Sequence[AnyRow]) -> Iterator[Finding]:
    """Yield how much of a difference of mAP is due to what is found, and how much to the order of the scores: mAP is
    the mean maximal recall (what is found, whatever the scores) less what the order of the scores costs.

    mean: the row of the difference; rows: all rows; related: those about the same models, part of the data and
    subset. Nothing is yielded unless the rows have the recall of both models."""
    tags = {key: value for key, value in mean["tags"].items() if key != "baseline"}
    max_recalls = []
    for model in (mean["tags"]["baseline"], mean["tags"]["model"]):
        about = (mean["protocol"], mean["subset"], tags | {"model": model})
        recall_rows = [row for row in rows if row.get("metric") == "mean_max_recall"]
        max_recalls += [row["value"] for row in recall_rows if (row["protocol"], row["subset"], row["tags"]) == about]
    if len(max_recalls) != 2:
        return
    baseline_recall, model_recall = max_recalls
    recall_gain = model_recall - baseline_recall
    if abs(recall_gain) > 1e-9:
        order_gain = mean["value"] - recall_gain
        recall_text = f"mean max recall {baseline_recall:.2f} to {model_recall:.2f}"
        more, better = "more" if recall_gain > 0 else "fewer", "better" if order_gain > 0 else "worse"
        joint = "but" if recall_gain * order_gain < 0 else "and"
        text = f"it finds {more} correct triplets ({recall_gain:+.2f}: {recall_text}), {joint} ranks them {better} "
        yield max(abs(recall_gain), abs(order_gain)), f"{text}({order_gain:+.2f})"
        return
    error_counts = [row for row in related if row["metric"] == "count_diff" and row["error"] != MISSED]
    why = f"as much is found, mean max recall {baseline_recall:.2f}"
    if error_counts and not any(map(_is_visible, error_counts)):
        why = "same predictions, other scores: as many of each type of error"
    better = "better" if mean["value"] > 0 else "worse"
    yield abs(mean["value"]), f"all of it because it ranks its predictions {better} ({why})"


def _costliest_error(mean: AnyRow, related: Sequence[AnyRow]) -> Iterator[Finding]:
    """Yield the type of error that costs the worse model most mAP, compared with the better one. Types whose difference
    was tested and is not significant are left out. mean: the row of the difference; related: the rows about the same
    models, part and subset."""
    # oracles of one type of errors, not those that repair all false positives or all false negatives (OF_A_SIDE)
    costs = [row for row in related if row["metric"] == "delta_mAP_diff" and row["oracle"] not in OF_A_SIDE]
    costs = [row for row in costs if row["value"] is not None]
    significant = [
        row for row in costs if row["ci_low"] is None or (row["ci_low"] * row["ci_high"] > 0 and row["p"] < SURE)
    ]
    if not significant:
        return
    direction = 1 if mean["value"] > 0 else -1
    row = min(significant, key=lambda row: row["value"] * direction)
    if row["value"] * direction < 0:  # the worse model gains more by the repair: these errors cost it more
        more, size = "more" if row["value"] > 0 else "less", abs(row["value"])
        gains = f"repairing them gives {row['to']:+.2f}, in the baseline {row['from']:+.2f}"
        yield size, f"{row['oracle']} errors cost it {size:.2f} mAP {more} ({gains}, by {row['protocol']})"


def _foremost_classes(mean: AnyRow, rows: Sequence[AnyRow]) -> Iterator[Finding]:
    """Yield how much of a difference of mAP the ten classes with the largest difference in the same direction account
    for. A class accounts for its difference divided by the number of classes. mean: the row of the difference."""
    class_rows = [row for row in rows if row["metric"] == "AP_diff" and row["tags"] == mean["tags"]]
    class_rows = [row for row in class_rows if row["protocol"] == mean["protocol"] and row["value"] * mean["value"] > 0]
    if largest := sorted(class_rows, key=lambda row: -abs(row["value"]))[:10]:
        share, first = sum(row["value"] for row in largest) / mean["n"], largest[0]
        name = " ".join(first[key] for key in ("verb", "object", "role") if first.get(key))
        single = len(largest) == 1
        classes_text = f"the class {name} accounts" if single else f"{len(largest)} classes account"
        largest_part = f"{first['value']:+.2f} AP" if single else f"most of all {name}, {first['value']:+.2f} AP"
        yield abs(share), f"{classes_text} for {share:+.2f} ({largest_part})"


def _foremost_image(mean: AnyRow, related: Sequence[AnyRow]) -> Iterator[Finding]:
    """Yield how much of a difference of mAP the first listed image accounts for that differs in the same direction."""
    image_rows = [row for row in related if row["metric"] == "image_diff" and row["value"] * mean["value"] > 0]
    for row in image_rows[:1]:
        yield abs(row["value"]), f"image {row['image_id']} accounts for {row['value']:+.2f}"


def _is_visible(row: AnyRow) -> bool:
    """Return whether the value of a row, or an end of its interval, is printed as something other than 0.00."""
    return any(abs(row.get(key) or 0.0) >= 0.005 for key in ("value", "ci_low", "ci_high"))
