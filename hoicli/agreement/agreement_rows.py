"""The agreement of raters as result rows and as figures (the SHOE supplement's Figures 2 to 4)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any
from urllib.parse import quote

import numpy as np

from hoicli.agreement import coefficients
from hoicli.agreement.rank_correlation import PERMUTATIONS, spearman
from hoicli.agreement.ratings import Ratings
from hoicli.errors import DataError, UsageError, arg
from hoicli.figures.rating_plots import MOST_LEVELS, Counts, plot_counts, plot_kappa
from hoicli.figures.styles import PAPER, Look
from hoicli.io.messages import note
from hoicli.records.kit import Floats
from hoicli.records.result_rows import Row, Setting, percent, result_row, row_ends
from hoicli.resampling.draws import Resampling


@dataclass(frozen=True)
class AgreementSettings:
    """The settings of `hoicli agree`. levels: ratings go from 0 to levels - 1. seed: of the permutations for Spearman's
    p. merge: the rule of RULES that makes one rating of all models'; None takes the mean, as SHOE's similarity does,
    but a vote in the rows of subsets, as the supplement's Table 1 does. resampling: what intervals are computed from,
    None for no intervals. subsets, distribution, votes: whether these extra rows are wanted. group: the key of a line
    that names the group of its item, "" for no groups."""

    levels: int = 5
    seed: int = 0
    merge: str | None = None
    resampling: Resampling | None = None
    subsets: bool = False
    distribution: bool = False
    votes: bool = False
    group: str = ""


def agreement_rows(
    ratings: Ratings, settings: AgreementSettings, *, again: Ratings | None = None, tags: Mapping[str, str]
) -> Iterator[Row]:
    """Yield the result rows of how well raters agree.

    - Among people (among all raters if these are only people or only models): qwk (for all and each pair), alpha, ac1,
      ac2, within_sd and se.
    - Between models and people, if there are both: agreement and spearman, for each model and for "models", all of them
      merged into one rating. Ties of a vote go to the first of `ratings.models`. The row of spearman has an interval
      and p, which the rows after it give as values of their own.
    - As the settings ask: agreement of each subset of models, with agreement_mean and agreement_sd by size of the
      subset; the first two again for each group of items, without pairs; votes_0, votes_1, ... (how often each rating
      was given) by majority rating and rater; rated_0, rated_1, ... by rater.
    - With `again`, the ratings of a second study: updated and update_size.

    Rows of qwk, alpha, ac1, ac2 and agreement have an interval if there is a resampling."""
    all_items = _Rows(ratings, settings, tags)
    yield from all_items.rows_among_raters(pairs=True)
    yield from all_items.model_rows()
    if settings.subsets:
        yield from all_items.subset_rows()
    if settings.group:
        yield from _group_rows(ratings, settings, tags)
    if settings.votes:
        yield from all_items.vote_rows()
    if again is not None:
        yield from all_items.update_rows(again)
    if settings.distribution:
        yield from all_items.distribution_rows()


def _group_rows(ratings: Ratings, settings: AgreementSettings, tags: Mapping[str, str]) -> Iterator[Row]:
    """Yield the rows of each group of items; a note says how many have none. Raises `UsageError` if none has one."""
    groups = sorted({name for name in ratings.groups if name})
    if not groups:
        how = f'give each item its group, as "{settings.group}": "verb"'
        raise UsageError(f"{arg('group', settings.group)}: no line has it; {how}")
    for group in groups:
        group_items = _Rows(ratings.within(group), settings, tags, group)
        yield from group_items.rows_among_raters(pairs=False)
        yield from group_items.model_rows()
    without = ratings.groups.count("")
    if without:
        note(f"{without:,} of {len(ratings.items):,} items have no {settings.group!r}: in no group")


class _Rows:
    """Makes the result rows of the ratings of all items, or of those of one group."""

    def __init__(self, ratings: Ratings, settings: AgreementSettings, tags: Mapping[str, str], group: str = "") -> None:
        """Set what the rows are of, and separate models from people. group: whose ratings these are, "" for all."""
        self.ratings, self.settings, self.tags, self.group = ratings, settings, tags, group
        self.models = list(ratings.models)
        self.people = [rater for rater in ratings.raters if rater not in ratings.models]
        self.raters = self.people or ratings.raters  # those whose agreement among each other is measured
        self.values = ratings.columns(self.raters)

    def row(self, metric: str, subset: str, value: float | None, n: int, unit: str, rule: str = "", **more: Any) -> Row:
        """Return a result row with its signature. subset: what the value is of, such as a rater or a level; n: how many
        items (or what else) it is over; rule: how the models' ratings were merged, if they were; more: keys of the row.
        """
        settings: dict[str, Setting] = {"levels": self.settings.levels}
        if metric in ("spearman", "p"):
            settings |= {"permutations": PERMUTATIONS, "seed": self.settings.seed}
        elif "ci_low" in more and self.settings.resampling is not None:
            settings |= self.settings.resampling.signature()
        settings |= {"merge": _rule_setting(rule, self.models)} if rule else {}
        settings |= {"models": "+".join(sorted(map(_encode_name, self.models)))} if self.ratings.named else {}
        settings |= {"group": _encode_name(self.settings.group)} if self.ratings.group_changes_raters else {}
        if self.group:
            settings["group"] = "=".join(map(_encode_name, (self.settings.group, self.group)))
            subset, more = f"{self.group}:{subset}", {"item_group": self.group} | more
        ends = row_ends("agree", self.tags, settings)
        # The protocol stands before the keys of `more`, the other last keys of a row after them.
        first = {"subset": subset, "value": value, "n": n, "unit": unit, "protocol": ends.pop("protocol")}
        return result_row(metric, **first, **more, **ends)

    def measure_row(
        self, metric: str, subset: str, n: int, unit: str, measure: coefficients.Measure, ratings: Floats, *,
        rule: str = "", fewest: int = 2, lowest: float = -1.0, highest: float = 1.0, **more: Any,
    ) -> Row:  # fmt: skip
        """Return the row of a measure of ratings [items, raters], with its interval if there is a resampling. fewest:
        only items with so many ratings are resampled; lowest, highest: the range of the measure. The other arguments
        are keys of the row: subset, what it is of; n, over how many items; rule, how models' ratings were merged."""
        resampling = self.settings.resampling
        limits = {"lowest": lowest, "highest": highest}
        value, ends = coefficients.estimate_of(measure, ratings, resampling, fewest=fewest, **limits)
        low, high = ends or (None, None)
        if unit == "%":
            value, low, high = map(percent, (value, low, high))
        interval = {} if resampling is None else {"ci_low": low, "ci_high": high}
        return self.row(metric, subset, value, n, unit, rule, **more, **interval)

    def rows_among_raters(self, *, pairs: bool) -> Iterator[Row]:
        """Yield how well people agree with each other, or models if no people rated. pairs: also each pair's kappa."""
        values = self.values
        rater_pairs = list(combinations(range(len(self.raters)), 2))
        # The `n` of rows: pairs of raters that have a kappa, items that both rated, or items rated twice or more.
        kappa = coefficients.kappa
        pairs_with_kappa = sum(coefficients.value_of(kappa, values[:, pair]) is not None for pair in rater_pairs)
        yield self.measure_row("qwk", "mean", pairs_with_kappa, "kappa", coefficients.mean_kappa, values)
        for pair in rater_pairs if pairs else ():
            raters = [self.raters[number] for number in pair]
            pair_values = values[:, pair]
            shared_items = int((~np.isnan(pair_values).any(axis=1)).sum())
            yield self.measure_row("qwk", ",".join(raters), shared_items, "kappa", kappa, pair_values, raters=raters)
        items_rated_twice = int(((~np.isnan(values)).sum(axis=1) >= 2).sum())
        for level in coefficients.LEVELS:
            alpha = partial(coefficients.alpha, level=level)
            yield self.measure_row("alpha", level, items_rated_twice, "alpha", alpha, values, level=level)
        # AC1 and AC2 are of levels: they are not defined if any rating is a fraction.
        whole_levels = np.full_like(values, np.nan) if (values % 1 > 0).any() else values
        for metric, weights in coefficients.WEIGHTS.items():  # ac1 and ac2: without weights, and with quadratic ones
            measure = partial(coefficients.gwet, levels=self.settings.levels, quadratic=metric == "ac2")
            yield self.measure_row(metric, weights, items_rated_twice, "ac", measure, whole_levels, fewest=1)
        deviation, standard_error, items = coefficients.variability(values)
        for metric, value in (("within_sd", deviation), ("se", standard_error)):
            yield self.row(metric, "humans" if self.people else "models", value, items, "levels")

    def model_rows(self) -> Iterator[Row]:
        """Yield how well models agree with the mean of people: all models merged, and each; nothing without both."""
        ratings, models, row, settings = self.ratings, self.models, self.row, self.settings
        if not self.people or not models:
            return
        human = coefficients.mean_rating(self.values)
        merge = settings.merge or "mean"
        # (name, [items] its ratings, rule by which they were merged)
        columns = [("models", coefficients.merged_rating(ratings.columns(models), merge), merge)]
        columns += [(name, ratings.columns([name])[:, 0], "") for name in models]
        for name, column, rule in columns:
            both, measure = np.stack([column, human], axis=1), partial(coefficients.agreement, levels=settings.levels)
            items, raters = int((~np.isnan(both).any(axis=1)).sum()), models if name == "models" else [name]
            yield self.measure_row("agreement", name, items, "%", measure, both, rule=rule, lowest=0.0, raters=raters)
        for name, column, rule in columns:
            correlation = spearman(column, human, seed=settings.seed)
            interval = {"ci_low": correlation.low, "ci_high": correlation.high}
            yield row("spearman", name, correlation.rho, correlation.items, "rho", rule, **interval, p=correlation.p)
            for metric, value in interval.items():
                yield row(metric, name, value, correlation.items, "rho", rule)
            yield row("p", name, correlation.p, correlation.items, "probability", rule)

    def subset_rows(self) -> Iterator[Row]:
        """Yield how well every subset of models, merged into one rating, agrees with the mean of people; and the mean
        and deviation of that over the subsets of each size."""
        if not self.people or not self.models:
            raise UsageError(f"{arg('subsets')} needs people and models: {arg('models')} says who is a model")
        models, rule = self.models, self.settings.merge or "majority"
        human, levels = coefficients.mean_rating(self.values), self.settings.levels
        subsets_by_size = coefficients.subset_agreement(self.ratings.columns(models), human, levels, rule)
        for size, subsets in enumerate(subsets_by_size, start=1):
            for numbers, (value, items) in subsets.items() if size > 1 else ():  # `model_rows` has single models
                subset = [models[number] for number in numbers]
                yield self.row("agreement", "+".join(subset), percent(value), items, "%", rule, raters=subset)
            mean, deviation = coefficients.mean_and_deviation(subsets)
            for metric, value in (("agreement_mean", mean), ("agreement_sd", deviation)):
                yield self.row(metric, f"{size} of {len(models)}", percent(value), len(subsets), "%", rule)

    def vote_rows(self) -> Iterator[Row]:
        """Yield how often all raters and each rater gave each rating, for the items of each majority rating."""
        for level, items, counts in coefficients.votes_by_majority(self.values, self.settings.levels):
            name = "no majority" if level is None else f"majority {level}"
            all_raters = (name, self.raters, counts.sum(axis=1))
            each_rater = ((f"{name}: {rater}", [rater], counts[:, column]) for column, rater in enumerate(self.raters))
            for subset, raters, rating_counts in (all_raters, *each_rater):
                for rating, count in enumerate(rating_counts):
                    more: Row = {"raters": raters, "rating": rating, "majority": level}
                    yield self.row(f"votes_{rating}", subset, int(count), items, "ratings", **more)

    def update_rows(self, again: Ratings) -> Iterator[Row]:
        """Yield how many ratings a second study changed, and by how much, for all raters together and for each."""
        raters, change = self._find_changes(again)
        each_rater = [([rater], change[:, [column]]) for column, rater in enumerate(raters)]
        for names, rater_change in ((raters, change), *each_rater):
            subset = names[0] if len(names) == 1 else "all"
            updated, size = coefficients.updates_of(rater_change)  # [items, 2]: numerator and denominator of a share
            row_of = partial(self.measure_row, measure=coefficients.share, lowest=0.0, raters=names)
            updated_count, size_count = int(updated[:, 1].sum()), int(size[:, 1].sum())
            yield row_of("updated", subset, updated_count, "%", ratings=updated)
            highest = self.settings.levels - 1.0
            yield row_of("update_size", subset, size_count, "levels", ratings=size, highest=highest)

    def distribution_rows(self) -> Iterator[Row]:
        """Yield how often each rater gave each rating."""
        counts = coefficients.distribution(self.ratings.values, self.settings.levels)
        for rater, rating_counts in zip(self.ratings.raters, counts.T, strict=True):
            for level, count in enumerate(rating_counts):
                yield self.row(f"rated_{level}", rater, int(count), int(rating_counts.sum()), "ratings", rating=level)

    def _find_changes(self, again: Ratings) -> tuple[list[str], Floats]:
        """Return the raters with ratings in both studies, and [items, raters]: the second rating minus the first, NaN
        where a rater did not rate an item in both. Raises `DataError` if no rating is in both."""
        items = sorted(set(self.ratings.items) & set(again.items))
        raters = [rater for rater in self.raters if rater in again.raters]
        before, after = (
            table.columns(raters)[[table.items.index(item) for item in items]] if items else np.empty((0, len(raters)))
            for table in (self.ratings, again)
        )
        change: Floats = after - before
        rated = np.flatnonzero(~np.isnan(change).all(axis=0)).tolist()
        if not rated:
            problem = "none of its ratings is of an item and a person of the first ratings; use their names"
            raise DataError(f"{arg('again')}: {problem}")
        return [raters[number] for number in rated], change[:, rated]


def _rule_setting(rule: str, models: Sequence[str]) -> str:
    """Return a rule of RULES as signatures name it; for a vote also the order of models, which decides ties."""
    if rule != "majority":
        return rule
    if list(models) == sorted(models):
        return "majority,ties-to-first-by-name"
    return "majority,ties-to-first-of-" + "+".join(map(_encode_name, models))


def _encode_name(name: str) -> str:
    """Return a name as a signature can hold it: the characters that separate settings or names there are
    percent-encoded ("|" as "%7C"), so that different names stay different."""
    return re.sub(r"[|:+=%\s]", lambda match: quote(match[0], safe=""), name)


def blocks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield the result rows as small tables for reading, each a list of lines {column: text or number}. A table has a
    line for each subset (raters, a level, a size) and a column for each of its metrics; some share one."""
    tables: dict[str, dict[str, Row]] = {}
    for row in rows:
        metric = str(row["metric"])
        stem = metric.partition("_")[0]
        # rated_0, rated_1, ... share a table, as do the votes; _BLOCK_OF says which other metrics do
        table = stem if stem in ("rated", "votes") else _BLOCK_OF.get(metric, metric)
        line = tables.setdefault(table, {}).setdefault(str(row["subset"]), {**row["tags"], "of": row["subset"]})
        line[metric] = _value_text(row)
    yield from (list(lines.values()) for lines in tables.values())


_BLOCK_OF = {
    "se": "within_sd",
    **dict.fromkeys(("spearman", "ci_low", "ci_high", "p"), "agreement"),
    "agreement_sd": "agreement_mean",
    "update_size": "updated",
}
"""For a metric in the table of another one, the metric that the table is named after."""


def _value_text(row: Row) -> str:
    """Return a row's value as text, with its interval; Spearman's rho has columns of its own for the interval."""
    value, low, high, unit = row["value"], row.get("ci_low"), row.get("ci_high"), row["unit"]
    if low is None or high is None or row["metric"] == "spearman":
        return _format_value(value, unit)
    return f"{_format_value(value, unit)} [{_format_value(low, unit)}, {_format_value(high, unit)}]"


def _format_value(value: float | None, unit: str) -> str:
    """Return a value with as many decimals as its unit needs, "-" for None."""
    if value is None:
        return "-"
    decimals = {"%": 2, "ratings": 0, "probability": 4}.get(unit, 3)
    return f"{value:.{decimals}f}"


def draw(ratings: Ratings, path: str, *, kind: str, levels: int, look: Look = PAPER) -> None:
    """Draw a plot of people's ratings (of all raters' if there are no people) into a file.

    kind: one of PLOTS, "kappa" (of each pair of raters), "votes" (ratings by majority rating) or another (all ratings).
    Raises `UsageError` for more levels than a figure has room for, and for the kappa of a single rater."""
    raters = [rater for rater in ratings.raters if rater not in ratings.models] or ratings.raters
    values = ratings.columns(raters)
    if kind == "kappa":
        if len(raters) < 2:
            raise UsageError(f"{arg('plot_kind', 'kappa')}: {raters[0]} is the only rater; kappa is of two")
        pairs = combinations(range(len(raters)), 2)
        kappas = {pair: coefficients.value_of(coefficients.kappa, values[:, pair]) for pair in pairs}
        plot_kappa(raters, kappas, path, look)
        return
    if levels > MOST_LEVELS:
        problem = f"has room for {MOST_LEVELS} levels, not {levels}; kappa has for any"
        raise UsageError(f"{arg('plot_kind', kind)}: {problem}")
    if kind == "votes":
        panels = [
            Counts("no majority" if level is None else f"majority rating {level}", items, votes=counts.T.tolist())
            for level, items, counts in coefficients.votes_by_majority(values, levels)
        ]
    else:
        votes = coefficients.distribution(values, levels).T.tolist()
        panels = [Counts(title="", items=len(ratings.items), votes=votes)]
    plot_counts(raters, panels, path, look)
