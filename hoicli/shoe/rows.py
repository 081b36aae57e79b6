"""SHOE's result rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hoicli.records.results import Row, percent, row_ends
from hoicli.shoe.scores import Scores


def shoe_rows(
    scores: Scores, *, subset: str, settings: Mapping[str, str], tags: Mapping[str, str], per_class: bool = False
) -> Iterator[Row]:
    """The five numbers in percent, then for each class soft_ap, f1 and ap if wanted.

    `n` is what a value is over: classes for a mean, ground truth or predictions for a rate, ground truth for a class.
    A value is null where there is nothing to average, or no scores to rank by.
    """
    common = {"unit": "%", **row_ends("shoe", tags, settings)}
    classes = len(scores.classes)
    for metric, value, count in (
        ("soft_map", scores.soft_map, classes),
        ("mf1", scores.mf1, classes),
        ("gt_miss_rate", scores.gt_miss_rate, scores.truths),
        ("prediction_miss_rate", scores.prediction_miss_rate, scores.predictions),
        ("map", scores.map, classes),
    ):
        yield {"metric": metric, "subset": subset, "value": percent(value), "n": count, **common}
    for row in scores.classes if per_class else ():
        for metric, value in (("soft_ap", row.soft_ap), ("f1", row.f1), ("ap", row.ap)):
            place = {"metric": metric, "subset": subset, "verb": row.verb, "object": row.object}
            yield {**place, "value": percent(value), "n": row.positives, **common}
