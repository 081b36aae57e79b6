"""Tables of similarities joined: all ratings of a pair of senses, from one or several files, made into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from statistics import fmean, median, mode

from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record, parse
from hoicli.shoe.similarity_table import SCALE, Pair, Rated, check_line, days_of, pair_of, split_names

UNNAMED = "unnamed"
"""The measure of lines that say neither scores nor measure, where they are joined with others that have scores."""


@dataclass
class _Entry:
    """All lines about a pair. scores: {model: (its rating, the place of the line)}; others: the similarities of lines
    without scores; measures, prompts, dates: what lines say of where they are from."""

    scores: dict[str, tuple[int, str]] = field(default_factory=dict)
    others: list[float] = field(default_factory=list)
    measures: set[str] = field(default_factory=set)
    prompts: set[str] = field(default_factory=set)
    dates: set[str] = field(default_factory=set)

    def add(self, record: Record, place: str) -> None:
        """Add a line. Raises `DataError` for two different ratings by one model. place: the line's."""
        scores = record.get("scores") or {}
        for model, rating in scores.items():
            first_rating, first_place = self.scores.get(model, (rating, place))
            if first_rating != rating:
                pair = " and ".join(sorted((record["a"], record["b"])))
                problem = f"{model} rates {pair} {rating} here and {first_rating} at {first_place}; keep one"
                raise DataError(problem, field="scores")
        # After all checks: of a line that is skipped, no rating may count. The place of a model's first line stays.
        self.scores = {model: (rating, place) for model, rating in scores.items()} | self.scores
        if not scores:
            self.others.append(float(record["similarity"]))
        self.measures |= split_names([record.get("measure")])
        self.prompts |= split_names([record.get("prompt")])
        self.dates |= {record["date"]} if record.get("date") is not None else set()

    def combine_ratings(self, rule: str) -> Rated:
        """Return one rating made of all ratings of the pair, by a rule of RULES."""
        scores = {model: rating for model, (rating, _) in sorted(self.scores.items())}
        # Whole ratings are averaged before the division, so that the digits equal those of a table of one run.
        if not self.others:
            similarity = combine(list(scores.values()), rule) / SCALE
        else:
            similarity = combine([rating / SCALE for rating in scores.values()] + sorted(self.others), rule)
        measures = self.measures or ({UNNAMED} if scores and self.others else set())
        return Rated(
            similarity,
            scores or None,
            merge=None if rule == "mean" else rule,
            measure="+".join(sorted(measures)) or None,
            prompt="+".join(sorted(self.prompts)) or None,
            date=days_of(self.dates),
        )


def merged_rows(lines: Iterable[Line], rule: str, policy: ErrorPolicy) -> Iterator[Record]:
    """Return a line for each pair of senses in one or several tables, with one similarity that a rule of RULES makes of
    all its ratings. Lines are sorted by pair.

    A line with `scores` gives one rating per model; the same rating of a model on several lines counts once. A line
    without scores counts as one more rater. Raters are ordered by model name, as in the supplement's Table 1, then
    those without a name by value; a vote breaks ties in this order. Senses stay under the names they have. A bad line,
    or a second, different rating of a pair by one model, goes to the policy."""
    entries: dict[Pair, _Entry] = {}
    for line in lines:
        with policy.item(line.place):
            record = parse(line)
            check_line(record, joined=True)
            if record["a"] != record["b"]:  # a sense with itself is always 1
                pair = pair_of(record["pos"], record["a"], record["b"])
                entries.setdefault(pair, _Entry()).add(record, line.place)
    return (entry.combine_ratings(rule).line(pair) for pair, entry in sorted(entries.items(), key=itemgetter(0)))


def combine(values: Sequence[float], rule: str) -> float:
    """Return the mean, median or most frequent of several values, as a rule of RULES says; of equally frequent ones the
    first. Zero has no sign."""
    rules: dict[str, Callable[[Sequence[float]], float]] = {"mean": fmean, "median": median, "majority": mode}
    return rules[rule](values) + 0.0
