"""The agreement of raters as result rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from hoicli.agreement import (
    MEASURES,
    agreement,
    between_levels,
    distribution,
    krippendorff_alpha,
    mean_of,
    mean_rating,
    pairwise_kappa,
    spearman,
    subset_agreement,
    variability,
)
from hoicli.ratings import Ratings
from hoicli.results import Row, percent, signature
from hoicli.streams import note


def agreement_rows(
    ratings: Ratings,
    *,
    levels: int,
    permutations: int,
    seed: int,
    subsets: bool = False,
    counts: bool = False,
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Among people (or all raters, where there are only people or only models): qwk, alpha, within_sd and se. Of models
    with people, where there are both: agreement and spearman, for each model and for `models`, the mean of all.

    Rows of pairs and subsets name their `raters`, rows of alpha their `level`, and the row of rho carries the interval
    and p that the rows after it give as values of their own. `subsets`, `counts`: also agreement by subset of models
    (`agreement_mean`, `agreement_sd` by size), and rated_0, rated_1, ... by rater.
    """
    settings = {"protocol": "agree", "levels": str(levels)}
    sampled = {**settings, "permutations": str(permutations), "seed": str(seed)}

    def row(metric: str, subset: str, value: float | None, n: int, unit: str, **more: Any) -> Row:
        common = {"metric": metric, "subset": subset, "value": value, "n": n, "unit": unit}
        drawn = sampled if metric in ("spearman", "p") else settings
        return {**common, "protocol": "agree", **more, "tags": dict(tags), "signature": signature(drawn)}

    models = [rater for rater in ratings.raters if rater in ratings.models]
    people = [rater for rater in ratings.raters if rater not in ratings.models]
    among = people or models
    values = ratings.of(among)
    kappas = list(pairwise_kappa(values))
    defined = [kappa for _, _, kappa, _ in kappas if kappa is not None]
    yield row("qwk", "mean", mean_of(defined), len(defined), "kappa")
    for a, b, kappa, shared in kappas:
        yield row("qwk", f"{among[a]},{among[b]}", kappa, shared, "kappa", raters=[among[a], among[b]])
    paired = int(((~np.isnan(values)).sum(axis=1) >= 2).sum())
    for level in MEASURES:
        yield row("alpha", level, krippendorff_alpha(values, level), paired, "alpha", level=level)
    spread = variability(values)
    group = "humans" if people else "models"
    yield row("within_sd", group, spread.deviation, spread.items, "levels")
    yield row("se", group, spread.error, spread.items, "levels")
    if people and models:
        human = mean_rating(values)
        columns = {"models": mean_rating(ratings.of(models)), **{name: ratings.of([name])[:, 0] for name in models}}
        for name, column in columns.items():
            share, items = agreement(column, human, levels)
            members = models if name == "models" else [name]
            yield row("agreement", name, percent(share), items, "%", raters=members)
        for name, column in columns.items():
            found = spearman(column, human, permutations=permutations, seed=seed)
            interval = {"ci_low": found.low, "ci_high": found.high}
            yield row("spearman", name, found.rho, found.items, "rho", **interval, p=found.p)
            for metric, value in interval.items():
                yield row(metric, name, value, found.items, "rho")
            yield row("p", name, found.p, found.items, "probability")
        if subsets:
            for table in subset_agreement(ratings.of(models), human, levels):
                # Single models have their rows already.
                for chosen, share in zip(table.members, table.agreement, strict=True) if table.size > 1 else ():
                    members = [models[at] for at in chosen]
                    yield row("agreement", "+".join(members), percent(share), len(human), "%", raters=members)
                size = f"{table.size} of {len(models)}"
                yield row("agreement_mean", size, percent(table.mean), len(table.members), "%")
                yield row("agreement_sd", size, percent(table.deviation), len(table.members), "%")
    elif subsets:
        note("--subsets needs people and models: --models or --humans says who is who, or `kind` in the lines")
    if counts:
        yield from (
            row(f"rated_{level}", rater, int(number), int(numbers.sum()), "ratings", rating=level)
            for rater, numbers in zip(ratings.raters, distribution(ratings.values, levels).T, strict=True)
            for level, number in enumerate(numbers)
        )
        between = int(between_levels(ratings.values).sum())
        if between:
            lie = "rating lies" if between == 1 else "ratings lie"
            note(f"{between:,} {lie} between levels: in no count")


def blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows as small tables to look at, each a line for a subset (of raters, a level, a size) and a column for a
    metric; what belongs together stands together. Numbers are rounded for reading."""
    tables: dict[str, dict[str, Row]] = {}
    for row in rows:
        metric = str(row["metric"])
        head = "rated" if metric.startswith("rated_") else _BLOCK_OF.get(metric, metric)
        line = tables.setdefault(head, {}).setdefault(str(row["subset"]), {**row["tags"], "of": row["subset"]})
        line[metric] = _shown(row["value"], row["unit"])
    yield from (list(lines.values()) for lines in tables.values())


_BLOCK_OF = {
    "se": "within_sd",
    **dict.fromkeys(("spearman", "ci_low", "ci_high", "p"), "agreement"),
    "agreement_sd": "agreement_mean",
}
"""The metrics that share a table, by the first of them."""


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    decimals = {"%": 2, "ratings": 0, "probability": 4}.get(unit, 3)
    return f"{value:.{decimals}f}"
