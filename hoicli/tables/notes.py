"""What stands below a table: notes with their marks, and the settings that made the values, in one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from types import MappingProxyType

from hoicli.records.caveats import words_of
from hoicli.records.result_rows import Row, joined_settings, parse_signature
from hoicli.tables.cells import ABOVE, HEAD, MARK, Otherwise, Place, TextTable, cell_text, spread

_NAMED = 3
"""Lines or columns that the settings line names; it only counts the others."""
_Axis = tuple[Sequence[str], int, Mapping[str, int]]
"""The names of all groups, columns or lines; the index of a place that selects one; how many values each name has."""


def add_notes(
    table: TextTable,
    rows: Mapping[Place, Sequence[Row]],
    *,
    mark_at: int,
    settings_shown: Collection[str],
    notes: Mapping[Place, Sequence[str]],
    apart: Mapping[Place, Otherwise],
) -> TextTable:
    """Return the table with what the rows of its values say about how they were made: notes with their marks, and the
    settings.

    rows: the rows of the value at each place (line and column of values, both from 0). mark_at: the column that takes a
    mark which concerns a whole line. A mark that a whole column or group of columns would carry stands at its head; a
    note that concerns all values has no mark. settings_shown: the keys of rows and tags that the table shows. notes:
    further notes of the values. apart: how a value's settings differ from the others'; its note says that, so the line
    of settings does not."""
    places: dict[str, dict[Place, None]] = {}
    for place in sorted(rows):
        caveats = list(chain.from_iterable(words_of(row) for row in rows[place]))
        difference = (apart[place].note,) if place in apart else ()
        for note in (*caveats, *notes.get(place, ()), *difference):
            places.setdefault(note, {})[place] = None
    general = dict.fromkeys(note for note, concerned in places.items() if len(concerned) == len(rows))
    places = {note: concerned for note, concerned in places.items() if note not in general}
    marks: dict[Place, str] = {}
    below = [("*" + (str(number) if len(places) > 1 else ""), note) for number, note in enumerate(places, start=1)]
    marks_of = _marking(table, rows, mark_at)
    for mark, note in below:
        for place in marks_of(set(places[note])):
            marks[place] = marks.get(place, "") + mark
    columns = list(zip(spread(table.above), table.heads, strict=True))[table.names :]
    lines = [" ".join(name for name in line[: table.names] if name != "-") for line in table.lines]
    below += [("", note) for note in general]
    return replace(table, notes=below, marks=marks, settings=settings_line(rows, lines, columns, settings_shown, apart))


_UNRANKED = re.compile(r"(, unlike the others.*)?: not (ranked with them|comparable)$")


def join_notes(table: TextTable) -> TextTable:
    """Return the table with its notes in at most two paragraphs, which papers have room for: why values are not ranked,
    and all else. Within a paragraph each note keeps its own mark, since it holds only for values with that mark."""
    if len(table.notes) <= 2:
        return table
    unranked = [(mark, _UNRANKED.sub("", note)) for mark, note in table.notes if mark and _UNRANKED.search(note)]
    others = [(mark, note) for mark, note in table.notes if not (mark and _UNRANKED.search(note))]
    others.sort(key=lambda marked_note: marked_note[0] != "")  # what is true of all values stands before the first mark
    marked = dict.fromkeys(note for mark, note in unranked + others if mark)
    mark_of = {note: f"*{number}" for number, note in enumerate(marked, start=1)}
    joined = {mark: mark_of[note] for mark, note in unranked + others if mark}
    marks = {
        place: "".join(sorted({joined[mark] for mark in MARK.findall(old_marks)}, key=list(mark_of.values()).index))
        for place, old_marks in table.marks.items()
    }
    paragraphs = [
        (begin, list(dict.fromkeys((joined.get(mark, ""), note) for mark, note in marked_notes)))
        for begin, marked_notes in (("not ranked with the others: ", unranked), ("", others))
    ]
    notes = list(chain.from_iterable(marked_notes for _, marked_notes in paragraphs))
    return replace(
        table,
        notes=notes,
        marks=marks,
        paragraphs=[(begin, len(marked_notes)) for begin, marked_notes in paragraphs if marked_notes],
    )


def _marking(table: TextTable, rows: Collection[Place], mark_at: int) -> Callable[[set[Place]], Iterator[Place]]:
    """Return a function that yields, for the values that a note concerns, the places of its marks: at the names of
    lines and the heads of groups and columns of which it concerns every value, then at the other values. rows: the
    places of all values. mark_at: the column that takes the mark of a line."""
    # of each column the first of its group: the running maximum of where groups begin
    starts = (number if group or number == table.names else 0 for number, group in enumerate(table.above))
    group_starts = list(accumulate(starts, max))

    def marks_over(place: Place) -> tuple[Place, Place, Place]:
        line, column = place
        return (line, mark_at), (ABOVE, group_starts[table.names + column]), (HEAD, table.names + column)

    places_below: dict[Place, set[Place]] = {}
    for place in rows:
        for mark in marks_over(place):
            places_below.setdefault(mark, set()).add(place)

    def marks_of(places_left: set[Place]) -> Iterator[Place]:
        for axis in range(3):
            # only marks over one of its values are looked at: notes may be as many as lines
            for mark in sorted({marks_over(place)[axis] for place in places_left}):
                if places_below[mark] <= places_left and (mark[0] != ABOVE or table.above[mark[1]]):
                    places_left -= places_below[mark]
                    yield mark
        yield from sorted((line, column + table.names) for line, column in places_left)

    return marks_of


def settings_line(
    rows: Mapping[Place, Sequence[Row]],
    lines: Sequence[str],
    columns: Sequence[tuple[str, str]],
    settings_shown: Collection[str],
    apart: Mapping[Place, Otherwise] = MappingProxyType({}),
) -> str:
    """Return the line `settings: data:hico|version:1.0.0; mAP: boot:1000|seed:0`, "" if no row has a signature.

    rows: the rows of each value. lines: the name of each line; columns: the group and the head of each column.
    settings_shown: the keys of rows and tags that name lines and columns; a setting that such a name states, such as
    the protocol, is not repeated. apart: the values whose notes state some of their settings. Where a published number
    comes from is left to its note."""
    usual_rows = chain.from_iterable(value_rows for place, value_rows in rows.items() if place not in apart)
    has_own_rows = any("published" not in dict(parse_signature(str(row.get("signature")))) for row in usual_rows)
    is_shown = _standing(chain.from_iterable(rows.values()), settings_shown)
    places_with: dict[tuple[str, str], set[Place]] = {}
    for place in sorted(rows, key=lambda place: place[::-1]):  # by columns: their settings are told first
        for row in rows[place]:
            settings = dict(parse_signature(str(row.get("signature") or "")))
            if has_own_rows and "published" in settings and place not in apart:
                settings.pop("gt", None)  # one's own rows say it by digest
            untold = (apart[place].untold(settings) if place in apart else settings).items()
            for key, value in [part for part in untold if part[0] != "published" and not is_shown(row, *part)]:
                places_with.setdefault((key, value), set()).add(place)
    by_places: dict[frozenset[Place], dict[str, str]] = {}
    for (key, value), places in sorted(places_with.items(), key=lambda item: item[0][0] == "version"):
        told = by_places.setdefault(frozenset(places), {})
        told[key] = f"{told[key]} or {value}" if key in told else value  # a mean over seeds has several
    everywhere = by_places.pop(frozenset(rows), None)
    texts = [joined_settings(everywhere)] if everywhere else []
    by_group, by_column = [group for group, _ in columns], [f"{group} {head}".strip() for group, head in columns]
    axes = [
        (names, axis, Counter(names[place[axis]] for place in rows))
        for names, axis in ((by_group, 1), (by_column, 1), (lines, 0))  # a place is (line, column)
    ]
    texts += [f"{_name_places(places, axes)}: {joined_settings(settings)}" for places, settings in by_places.items()]
    return f"settings: {'; '.join(texts)}" if texts else ""


def _standing(rows: Iterable[Row], settings_shown: Collection[str]) -> Callable[[Row, str, str], bool]:
    """Return the test whether the names of a row's line and column, which have the keys `settings_shown`, state a
    setting (key and value) of the row. They state a slice by name and part, if all slices of that name are the same."""
    slices: dict[str, set[str]] = {}
    for row in rows:
        for key, value in parse_signature(str(row.get("signature") or "")) if "slice" in settings_shown else ():
            if key == "slice":
                slices.setdefault(row.get("tags", {}).get("slice", ""), set()).add(value.rpartition("/")[0])

    def stands(row: Row, key: str, value: str) -> bool:
        tags = row.get("tags", {})
        if key == "slice" and "part" in settings_shown and value.endswith(f"/{tags.get('part')}"):
            return len(slices[tags.get("slice", "")]) == 1
        return key in settings_shown and value in (cell_text(row.get(key)), tags.get(key))

    return stands


def _name_places(places: Collection[Place], axes: Sequence[_Axis]) -> str:
    """Return a text for some values of a table: the groups, the columns or the lines that they fill; if they fill none,
    the lines that some of their values are in. axes: the names by group, column and line."""
    inside: list[str] = []
    for names, axis, totals in axes:
        inside = list(dict.fromkeys(names[number] for number in sorted({place[axis] for place in places})))
        if len(totals) > 1 and "" not in inside and sum(totals[name] for name in inside) == len(places):
            return _list_names(inside)
    return "some of " + (_list_names(inside) or "the values")


def _list_names(names: Collection[str]) -> str:
    """Return the first few names, and how many more there are."""
    first = list(names)[:_NAMED]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")
