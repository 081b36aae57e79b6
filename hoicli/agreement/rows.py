"""The agreement of raters as result rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hoicli.agreement.measures import (
    MEASURES,
    agreement,
    between_levels,
    distribution,
    krippendorff_alpha,
    mean_of,
    mean_rating,
    merged_rating,
    pairwise_kappa,
    spearman,
    subset_agreement,
    variability,
)
from hoicli.agreement.ratings import Ratings
from hoicli.io.messages import note
from hoicli.records.results import Row, percent, row_ends


def agreement_rows(
    ratings: Ratings,
    *,
    levels: int,
    permutations: int,
    seed: int,
    merge: str | None = None,
    subsets: bool = False,
    counts: bool = False,
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Among people (or all raters, where there are only people or only models): qwk, alpha, within_sd and se. Of models
    with people, where there are both: agreement and spearman, for each model and for `models`, all as one by `merge`
    (a rule of RULES; None: the mean, as SHOE's similarity is one, but a vote in the table of subsets, as the
    supplement's Table 1 is one). Ties of a vote go to the first of `ratings.models`.

    Rows of pairs and subsets name their `raters`, rows of alpha their `level`, and the row of rho carries the interval
    and p that the rows after it give as values of their own. `subsets`, `counts`: also agreement by subset of models
    (`agreement_mean`, `agreement_sd` by size), and rated_0, rated_1, ... by rater.
    """
    sampled = {"permutations": str(permutations), "seed": str(seed)}

    def row(metric: str, subset: str, value: float | None, n: int, unit: str, rule: str = "", **more: Any) -> Row:
        settings = {"levels": str(levels)} | (sampled if metric in ("spearman", "p") else {})
        settings |= {"merge": _signed(rule, models)} if rule else {}
        common = {"metric": metric, "subset": subset, "value": value, "n": n, "unit": unit, "protocol": "agree"}
        return common | more | row_ends("agree", tags, settings)

    models = list(ratings.models)
    people = [rater for rater in ratings.raters if rater not in ratings.models]
    among = people or ratings.raters
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
        of_all, of_subsets = merge or "mean", merge or "majority"
        columns = [("models", merged_rating(ratings.of(models), of_all), of_all)]
        columns += [(name, ratings.of([name])[:, 0], "") for name in models]
        for name, column, rule in columns:
            share, items = agreement(column, human, levels)
            members = models if name == "models" else [name]
            yield row("agreement", name, percent(share), items, "%", rule, raters=members)
        for name, column, rule in columns:
            found = spearman(column, human, permutations=permutations, seed=seed)
            interval = {"ci_low": found.low, "ci_high": found.high}
            yield row("spearman", name, found.rho, found.items, "rho", rule, **interval, p=found.p)
            for metric, value in interval.items():
                yield row(metric, name, value, found.items, "rho", rule)
            yield row("p", name, found.p, found.items, "probability", rule)
        if subsets:
            for table in subset_agreement(ratings.of(models), human, levels, of_subsets):
                # Single models have their rows already.
                each = zip(table.members, table.agreement, table.items, strict=True)
                for chosen, share, items in each if table.size > 1 else ():
                    members = [models[at] for at in chosen]
                    yield row("agreement", "+".join(members), percent(share), items, "%", of_subsets, raters=members)
                size = f"{table.size} of {len(models)}"
                for metric, value in (("agreement_mean", table.mean), ("agreement_sd", table.deviation)):
                    yield row(metric, size, percent(value), len(table.members), "%", of_subsets)
        _say_how(models, of_all, of_subsets if subsets else "", int(between_levels(ratings.of(models)).sum()))
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


def _signed(rule: str, models: Sequence[str]) -> str:
    """How a signature names the rule, and where it matters who is listed first."""
    if rule != "majority":
        return rule
    if list(models) == sorted(models):
        return "majority,ties-to-first-by-name"
    return "majority,ties-to-first-of-" + "+".join(re.sub(r"[|:\s]", "_", name) for name in models)


def _say_how(models: Sequence[str], of_all: str, of_subsets: str, between: int) -> None:
    """On stderr: how models were made one, which no table shows."""
    voted = "majority" in (of_all, of_subsets)
    if of_subsets:
        ties = f" (ties to the first of {', '.join(models)})" if voted else ""
        note(f"several models are one by {of_subsets} in each subset{ties}, and by {of_all} in `models`")
    if voted and between:
        lie = "rating of the models lies" if between == 1 else "ratings of the models lie"
        note(f"{between:,} {lie} between levels, where a vote has few to count: --merge mean takes the average")


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
