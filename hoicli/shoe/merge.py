"""Joined tables of similarities: the ratings of all models for each pair, and one similarity.

Lines with `scores` are joined by model; a line without counts as one more rater with its similarity. Equal lines are
counted once (overlapping shards); two different ratings of a pair by one model are an error that names both places.
Raters are ordered by model name, then those without a name by value; a vote breaks ties in this order. (The
supplement's Table 1 lists models by name, too.) A line joined by another rule than the mean has it in `merge`. What
lines say of where they are from is joined, too: every measure and prompt, the first and the last day.

Senses stay under the names they have: which names are of one sense is for the WordNet that the tables were made with,
and shoe-eval finds them under any."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, median, mode

from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record, parse
from hoicli.shoe.pairs import SCALE, Pair, Rated, all_of, days_of, pair_of
from hoicli.shoe.table import problems

UNNAMED = "unnamed"
"""The measure of lines that say neither scores nor measure, where they are joined with others that have scores."""


@dataclass
class _Entry:
    """The lines about a pair: ratings by model with their places, similarities of lines without ratings, and what lines
    say of where they are from."""

    scores: dict[str, tuple[int, str]] = field(default_factory=dict)
    others: list[float] = field(default_factory=list)
    measure: str | None = None
    prompt: str | None = None
    date: str | None = None


class Tables:
    """Lines of one or several tables, by pair. `add` takes a line, `merged` gives the table.

    canonical: maps any name of a sense to one name.
    """

    def __init__(self, canonical: Callable[[str], str] = str) -> None:
        self._canonical = canonical
        self._entries: dict[Pair, _Entry] = {}
        self._said: dict[str, str] = {}

    def add(self, record: Record, place: str) -> None:
        """Add a line. Raises `DataError` for a bad line, or one that contradicts another."""
        for wrong in problems(record, joined=True):
            raise wrong.error(place)
        a, b = self._canonical(record["a"]), self._canonical(record["b"])
        if a == b:  # always 1
            return
        pair = pair_of(record["pos"], a, b)
        entry = self._entries.setdefault(pair, _Entry())
        scores = record.get("scores") or {}
        for model, rating in scores.items():
            first, where = entry.scores.get(model, (rating, place))
            if first != rating:
                problem = f"{model} rates {pair[1]} and {pair[2]} {rating} here and {first} at {where}; keep one"
                raise DataError(problem, place=place, field="scores")
        entry.scores = {model: (rating, place) for model, rating in scores.items()} | entry.scores
        if not scores:
            entry.others.append(float(record["similarity"]))
        entry.measure = all_of((entry.measure, record.get("measure")))
        entry.prompt = all_of((entry.prompt, record.get("prompt")))
        entry.date = days_of((entry.date, record.get("date")))
        self._said.setdefault(record.get("merge", "mean"), place)

    @property
    def rule(self) -> str:
        """The rule by which the lines were joined. Raises `DataError` where they name several."""
        if len(self._said) > 1:
            places = " and ".join(f"by {rule} at {place}" for rule, place in sorted(self._said.items()))
            raise DataError(f"the tables were joined {places}; join them anew with hoicli shoe-sim --merge RULE")
        return next(iter(self._said), "mean")

    def merged(self, rule: str) -> dict[Pair, Rated]:
        """The table, sorted by pair, with one similarity by the rule of RULES."""
        return {pair: _rated(self._entries[pair], rule) for pair in sorted(self._entries)}


def read_tables(lines: Iterable[Line], policy: ErrorPolicy, canonical: Callable[[str], str] = str) -> Tables:
    """The tables in a stream, as `Tables`. Errors of a line go to the policy."""
    tables = Tables(canonical)
    for line in lines:
        try:
            tables.add(parse(line), line.place)
        except DataError as error:
            policy.handle(error)
    return tables


def combined(values: Sequence[float], rule: str) -> float:
    """Several values as one, by the rule of RULES; of equally frequent ones the majority is the first listed."""
    if rule == "median":
        return float(median(values))
    if rule == "majority":
        return float(mode(values))  # the first of equally frequent values
    return fmean(values)


def _rated(entry: _Entry, rule: str) -> Rated:
    """All ratings of a pair as one similarity."""
    scores = {model: rating for model, (rating, _) in sorted(entry.scores.items())}
    merge = None if rule == "mean" else rule
    measure = entry.measure or (UNNAMED if scores and entry.others else None)
    rated = partial(Rated, merge=merge, measure=measure, prompt=entry.prompt, date=entry.date)
    # Whole ratings are averaged before the division, so that the digits equal those of a table of one run.
    if scores and not entry.others:
        return rated(combined(list(scores.values()), rule) / SCALE, scores)
    values = [rating / SCALE for rating in scores.values()] + sorted(entry.others)
    return rated(combined(values, rule), scores or None)
