"""The settings that made the numbers of a table, in one line: what all have in common, and what only some have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from hoicli.records.results import Row, joined_settings, signed

Place = tuple[int, int]
"""A line and a column of a table, from 0, without the columns of names."""

_NAMED = 3
"""Lines or columns that a part of the line names before it only counts."""


def settings_line(
    rows: Mapping[Place, Sequence[Row]],
    lines: Sequence[str],
    columns: Sequence[tuple[str, str]],
    shown: Collection[str],
) -> str:
    """`settings: data:hico|version:0.1.0; mAP: boot:1000|seed:0`, "" for rows without a signature.

    rows: those of each value. lines, columns: what they are called, a column by its group and its head. shown: the keys
    of signatures that the table shows by itself, as it does the protocol. What a published number comes from is not
    here: a note says it.
    """
    by_signature: dict[str, set[Place]] = {}
    for place in sorted(rows, key=lambda place: place[::-1]):  # by columns: their settings are told first
        for row in rows[place]:
            by_signature.setdefault(str(row.get("signature") or ""), set()).add(place)
    own = any("published:" not in signature for signature in by_signature)
    has: dict[tuple[str, str], set[Place]] = {}
    for signature, places in by_signature.items():
        for setting in signed(signature):
            if setting[0] != "gt" or "published:" not in signature or not own:  # one's own rows say it by digest
                has.setdefault(setting, set()).update(places)
    parts: dict[frozenset[Place], dict[str, str]] = {}
    for (key, value), places in sorted(has.items(), key=lambda item: item[0][0] == "version"):
        if key not in shown and key != "published":
            of_places = parts.setdefault(frozenset(places), {})
            of_places[key] = f"{of_places[key]} or {value}" if key in of_places else value  # of a mean over seeds
    everywhere = frozenset(rows)
    texts = [joined_settings(parts[everywhere])] if everywhere in parts else []
    by_group, by_column = [group for group, _ in columns], [f"{group} {head}".strip() for group, head in columns]
    axes = [_Axis(names, at, rows) for names, at in ((by_group, 1), (by_column, 1), (lines, 0))]
    for some, settings in parts.items():
        if some != everywhere:
            texts.append(f"{_called(some, axes)}: {joined_settings(settings)}")
    return f"settings: {'; '.join(texts)}" if texts else ""


class _Axis:
    """The groups, the columns or the lines of a table, as values are told by them."""

    def __init__(self, names: Sequence[str], at: int, everywhere: Collection[Place]) -> None:
        """names: of each line or column; at: which of the two a place's number is."""
        self.names, self.at = names, at
        self.order = {name: number for number, name in reversed(list(enumerate(names)))}
        self.values = Counter(names[place[at]] for place in everywhere)

    def inside(self, places: Collection[Place]) -> list[str]:
        """The names that values are under, in the table's order."""
        return sorted({self.names[place[self.at]] for place in places}, key=self.order.__getitem__)


def _called(places: Collection[Place], axes: Sequence[_Axis]) -> str:
    """Some values of a table by the groups, the columns or the lines that they fill; else by the lines they are in."""
    for axis in axes:
        inside = axis.inside(places)
        if len(axis.order) > 1 and "" not in inside and sum(axis.values[name] for name in inside) == len(places):
            return _listed(inside)
    return "some of " + (_listed(axes[-1].inside(places)) or "the values")


def _listed(names: Collection[str]) -> str:
    """Some names, the rest counted."""
    first = list(names)[:_NAMED]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")
