"""Ratings of items by raters, human or model: JSONL or CSV read into one table, an item a row and a rater a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from hoicli.agreement.scales import Scale, other_scales, scale_by_rater
from hoicli.agreement.sheets import COLUMNS, as_json
from hoicli.errors import DataError, UsageError, arg
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats
from hoicli.records.parsing import is_number, parse

KINDS = ("human", "model")
KEYS = (*COLUMNS, "ratings", "kind")
"""Keys of a line with a meaning of their own, which can name no groups."""
OTHER_LINES = {
    "image_id": "records of images",
    "metric": "result rows",
    "similarity": "similarities",
    "epoch": "epochs",
}
"""By a key of theirs: lines of other commands, which are given by mistake."""

_Given = tuple[float, str, str]
"""A rating, the place of its line, and its field there."""


@dataclass(frozen=True)
class Ratings:
    """values [items, raters], NaN where a rater did not rate an item; items and raters are sorted by name. `models` are
    the raters that are models, in the order in which `--models` lists them, those it does not name by name. groups: of
    each item, "" for one without; empty where none were asked for. scales: whose ratings were brought to the levels
    from a scale of their own, as the signature says it."""

    items: list[str]
    raters: list[str]
    values: Floats
    models: tuple[str, ...]
    groups: tuple[str, ...] = ()
    scaled: tuple[tuple[str, Scale], ...] = ()
    scales: str = ""

    def of(self, raters: Sequence[str]) -> Floats:
        """[items, len(raters)] the columns of some raters."""
        return self.values[:, [self.raters.index(rater) for rater in raters]]

    def within(self, group: str) -> Ratings:
        """The items of one group."""
        chosen = [at for at, name in enumerate(self.groups) if name == group]
        items = [self.items[at] for at in chosen]
        return replace(self, items=items, values=self.values[chosen], groups=(group,) * len(chosen))


def read_ratings(
    lines: Iterable[Line],
    *,
    levels: int,
    policy: ErrorPolicy,
    models: Sequence[str] = (),
    humans: Sequence[str] = (),
    scales: Sequence[Scale] = (),
    group: str = "",
    first: Ratings | None = None,
) -> Ratings:
    """The ratings of all lines, each `{"item", "rater", "rating"}` (and perhaps `kind`: human or model) or
    `{"item", "ratings": {rater: rating}}`, from 0 to levels - 1; a file may be a CSV of either instead (`sheets`).

    `models` and `humans` are names or patterns (`gpt*`): those of one make the rest the other kind. With both or none
    of them `kind` decides about the rest, and a rater of whom nothing is known is human. `scales`: who rates on another
    scale than the levels. `group`: the key whose value is the group of a line's item. `first`: earlier ratings, whose
    raters keep the scales they have there, and whose groups stand.

    Raises `DataError` with file and line for a bad line, a rating given twice, a rater of two kinds, an item of two
    groups, a rater whose ratings look like another scale, and when there is no rating at all; `UsageError` for a
    pattern that names nobody, a rater that both options claim, and a group that no line names.
    """
    if group in KEYS:
        raise UsageError(
            f"{arg('group', group)}: that key has a meaning of its own; name one that says what an item is of"
        )
    given: dict[tuple[str, str], _Given] = {}  # by item and rater
    kinds: dict[str, tuple[str, str]] = {}
    groups: dict[str, tuple[str, str]] = {}
    for line in as_json(lines, policy, group):
        try:
            if not line.data.lstrip().startswith(b"{"):
                text = f"neither a JSON object nor, as a file's first line, names of columns ({', '.join(COLUMNS)}"
                text += "; or item and the raters)"
                raise DataError(f"{text}; write JSONL, or a CSV with those columns", place=line.place)
            record = parse(line)
            for key, text in _problems(record, group):
                raise DataError(text, place=line.place, field=key)
            rows = list(_rows(record))
            for item, rater, *_ in rows:
                if (item, rater) in given:
                    text = f"{rater!r} has rated {item!r} at {given[item, rater][1]} already; keep one rating"
                    raise DataError(text, place=line.place, field="rater")
                kind = record.get("kind", kinds.get(rater, ("",))[0])
                known, place = kinds.setdefault(rater, (kind, line.place)) if kind else ("", "")
                if known != kind:
                    text = f"{rater!r} is a {kind} here and a {known} at {place}; a rater is one of them"
                    raise DataError(text, place=line.place, field="kind")
            if group and record.get(group):
                item = str(record["item"])
                known, place = groups.setdefault(item, (record[group], line.place))
                if known != record[group]:
                    text = f"{item!r} is of {record[group]!r} here and of {known!r} at {place}; an item is of one group"
                    raise DataError(text, place=line.place, field=group)
        except DataError as error:
            policy.handle(error)
        else:
            given |= {(item, rater): (rating, line.place, key) for item, rater, rating, key in rows}
    raters = sorted({rater for _, rater in given})
    chosen = _models(raters, {rater: kind for rater, (kind, _) in kinds.items()}, models, humans) if given else ()
    scaled = dict(first.scaled) if first is not None else {}
    scaled |= scale_by_rater(scales, raters, chosen) if given else {}
    given = _on_their_scales(given, scaled, levels, policy)
    if not given:
        raise DataError("no ratings in it; give lines of item, rater and rating")
    items, raters = (sorted({key[side] for key in given}) for side in (0, 1))
    values = np.full((len(items), len(raters)), np.nan)
    row, column = ({name: at for at, name in enumerate(names)} for names in (items, raters))
    for (item, rater), (rating, *_) in given.items():
        values[row[item], column[rater]] = rating
    for rater, why in other_scales(values, raters, chosen, list(scaled), levels):
        place = next(place for (_, who), (_, place, _) in given.items() if who == rater)
        text = f"all ratings of {rater!r} are from 0 to 1, {why}, while levels go to {levels - 1}: is that its scale? "
        text += f"{arg('model_scale')} '{rater}=0,1' says so, and '{rater}=0,{levels - 1}' that they are levels"
        raise DataError(text, place=place)
    for rater, scale in scaled.items():
        if rater in column:
            values[:, column[rater]] = scale.levels(values[:, column[rater]], levels)
    if group and not groups and first is None:
        raise UsageError(f'{arg("group", group)}: no line has it; give each item its group, as "{group}": "verb"')
    return Ratings(
        items,
        raters,
        values,
        tuple(name for name in chosen if name in column),
        tuple(groups.get(item, ("",))[0] for item in items) if group else (),
        tuple(scaled.items()),
        "+".join(sorted(map(str, scales))),
    )


def _on_their_scales(
    given: dict[tuple[str, str], _Given], scaled: dict[str, Scale], levels: int, policy: ErrorPolicy
) -> dict[tuple[str, str], _Given]:
    """Without the lines that have a rating beyond its scale. Only now it is known who is a model."""
    bad: set[str] = set()
    for (_, rater), (rating, place, field) in given.items():
        scale = scaled.get(rater)
        low, high = (scale.low, scale.high) if scale is not None else (0, levels - 1)
        if place not in bad and not low <= rating <= high:
            says = f"{arg('model_scale')} is its scale"
            if scale is None:
                says = f"{arg('levels')} says how many there are, and {arg('model_scale')} what a metric's scale is"
            bad.add(place)
            policy.handle(DataError(f"{rating:g} is not from {low:g} to {high:g}; {says}", place=place, field=field))
    return {key: rating for key, rating in given.items() if rating[1] not in bad} if bad else given


def _problems(record: dict[str, Any], group: str) -> Iterator[tuple[str, str]]:
    """(field, what is wrong with it and what to do)."""
    other = next((what for key, what in OTHER_LINES.items() if key in record and "item" not in record), None)
    if other is not None:
        yield "item", f"missing: these are {other}, not ratings; a line of ratings has item, rater and rating"
    elif type(record.get("item")) not in (str, int):
        yield "item", "missing or no name; every line says which item is rated, by a string or an integer"
    if record.get("kind", "human") not in KINDS:
        yield "kind", "is neither human nor model; write one of them, or leave it out"
    if "ratings" in record:
        if type(record["ratings"]) is not dict:
            yield "ratings", "is no object; write the raters' names with their ratings"
            return
        ratings = {f"ratings.{rater}": rating for rater, rating in record["ratings"].items() if rating is not None}
    else:
        if type(record.get("rater")) is not str:
            yield "rater", "missing or no string; name the rater, or give all of an item in `ratings`"
        ratings = {"rating": record.get("rating")}
    for field, rating in ratings.items():
        if not is_number(rating):
            text = "missing or no finite number; leave out what was not rated"
            if type(rating) is str and "ratings" in record:
                text += (
                    " (in a CSV with an item a row, each column is a rater's but the item's and that of "
                    f"{arg('group')}: is"
                )
                text += f" it {arg('group')} {field.removeprefix('ratings.')}?)"
            yield field, text
    if group and type(record.get(group) or "") is not str:
        yield group, "is no text; write the name of the item's group, or leave it out"


def _rows(record: dict[str, Any]) -> Iterator[tuple[str, str, float, str]]:
    """(item, rater, rating, field) of a good record; a null rating of several is one that was not given."""
    several = "ratings" in record
    for rater, rating in record["ratings"].items() if several else [(record["rater"], record["rating"])]:
        if rating is not None:
            yield str(record["item"]), rater, float(rating), f"ratings.{rater}" if several else "rating"


def _models(
    raters: Sequence[str], kinds: dict[str, str], models: Sequence[str], humans: Sequence[str]
) -> tuple[str, ...]:
    """Which of the raters are models: as the patterns of `models` list them (those of one pattern by name), then by
    name."""
    claimed: list[list[str]] = []
    for option, patterns in (("models", models), ("humans", humans)):
        for pattern in patterns:
            if not any(fnmatchcase(rater, pattern) for rater in raters):
                raise UsageError(f"{arg(option, pattern)}: no such rater; there are {', '.join(raters)}")
        matched = (rater for pattern in patterns for rater in raters if fnmatchcase(rater, pattern))
        claimed.append(list(dict.fromkeys(matched)))
    listed, people = claimed
    both = sorted(set(listed) & set(people))
    if both:
        raise UsageError(f"{arg('models')} and {arg('humans')} both claim {', '.join(both)}; a rater is one of them")
    others: list[str] = []
    if humans and not models:
        others = [rater for rater in raters if rater not in people]
    elif humans or not models:
        others = [rater for rater in raters if rater not in people and kinds.get(rater) == "model"]
    return tuple(dict.fromkeys([*listed, *others]))
