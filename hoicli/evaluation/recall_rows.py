"""Recall as result rows, each with its signature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hoicli.evaluation.recall_conventions import PROTOCOL
from hoicli.evaluation.recall_measured import Measured
from hoicli.records.results import Row, interval_keys, percent, row_ends
from hoicli.resampling.draws import Resampling


def recall_rows(
    measured: Measured,
    ks: Sequence[int],
    constraints: Sequence[str],
    *,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
    per_class: bool = False,
    resampling: Resampling | None = None,
) -> Iterator[Row]:
    """R@K, mR@K, zR@K and F1@K of every K under each constraint, in percent; zR@K if some ground truth is known to be
    unseen. `n`: the images of R@K and zR@K, the verbs of mR@K and F1@K. per_class: then the recall R@K of each verb,
    with the count of its ground truth; resampling: intervals for the means. `settings` go into every signature.
    """
    every = [(constraint, k, measured.recalls(constraint, k)) for constraint in constraints for k in ks]
    ends = {} if resampling is None else measured.intervals(constraints, ks, resampling)
    drawn = {} if resampling is None else resampling.signature()
    names = list(every[0][2]) if every else []

    split = {} if measured.unseen is None else measured.unseen.settings()

    def last(constraint: str, more: Mapping[str, str]) -> Row:
        signed = {**settings, **measured.convention.settings(), "constraint": constraint, **more}
        unit: Row = {"unit": "%", "constraint": constraint}
        return unit | row_ends(PROTOCOL, tags, signed)

    for name in names:
        for constraint, k, recalls in every:
            recall = recalls[name]
            row: Row = {"metric": f"{name}@{k}", "subset": "unseen" if name == "zR" else "full"}
            row |= {"value": percent(recall.value), "n": recall.n}
            if resampling is not None:
                row |= interval_keys(ends[constraint, k, name])
            yield row | last(constraint, {**drawn, **(split if name == "zR" else {})})
    verbs, counts = measured.truth.vocabulary.verbs, measured.verb_counts.tolist()
    for constraint, k, recalls in every if per_class else ():
        for verb, value in recalls["mR"].groups.items():
            row = {"metric": f"R@{k}", "subset": "full", "verb": verbs[verb], "value": percent(value)}
            yield row | {"n": counts[verb]} | last(constraint, {})
