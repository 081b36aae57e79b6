"""What stands below a table: notes with their marks, and the settings that made the values, in one line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from types import MappingProxyType

from hoicli.records.caveats import words_of
from hoicli.records.results import Row, joined_settings, parse_signature
from hoicli.tables.values import ABOVE, HEAD, MARK, Otherwise, Place, TextTable, cell_text, spread

_NAMED = 3
"""Lines or columns that a part of the line names before it only counts."""
_Axis = tuple[Sequence[str], int, Mapping[str, int]]
"""The names of groups, columns or lines, which number of a place is theirs, and how many values each has."""


def add_notes(
    table: TextTable,
    rows: Mapping[Place, Sequence[Row]],
    *,
    mark_at: int,
    settings_shown: Collection[str],
    notes: Mapping[Place, Sequence[str]],
    apart: Mapping[Place, Otherwise],
) -> TextTable:
    """The table with what its values' rows say of how they were made: notes with their marks, and the settings.

    rows: those of the value at each place, whose column counts from the first of the values. mark_at: the column of
    names that has the marks which concern a whole line. A note whose marks would fill a group of columns, or a column,
    is marked at its head; one of all values has no mark. settings_shown: the keys of rows and tags that the table
    shows. notes: further notes of values. apart: how a value's settings differ from the others', which a note says, so
    that the line of settings leaves that out, and only that."""
    places: dict[str, dict[Place, None]] = {}
    for place in sorted(rows):
        of_rows = list(chain.from_iterable(words_of(row) for row in rows[place]))
        otherwise = (apart[place].note,) if place in apart else ()
        for note in (*of_rows, *notes.get(place, ()), *otherwise):
            places.setdefault(note, {})[place] = None
    general = dict.fromkeys(n for n, places_with_note in places.items() if len(places_with_note) == len(rows))
    places = {note: places_with_note for note, places_with_note in places.items() if note not in general}
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
    """The table with its notes in at most two paragraphs, as papers have room for: why values are not ranked, and all
    else. In a paragraph each note keeps a mark of its own, since it is true only of what has this mark."""
    if len(table.notes) <= 2:
        return table
    unranked = [(mark, _UNRANKED.sub("", note)) for mark, note in table.notes if mark and _UNRANKED.search(note)]
    others = [(mark, note) for mark, note in table.notes if not (mark and _UNRANKED.search(note))]
    others.sort(key=lambda marked_note: marked_note[0] != "")  # what is true of all values stands before the first mark
    new = {note: f"*{n}" for n, note in enumerate(dict.fromkeys(note for mark, note in unranked + others if mark), 1)}
    of = {mark: new[note] for mark, note in unranked + others if mark}
    marks = {
        place: "".join(sorted({of[mark] for mark in MARK.findall(old)}, key=list(new.values()).index))
        for place, old in table.marks.items()
    }
    both = [
        (begin, list(dict.fromkeys((of.get(mark, ""), note) for mark, note in marked_notes)))
        for begin, marked_notes in (("not ranked with the others: ", unranked), ("", others))
    ]
    notes = list(chain.from_iterable(of_both for _, of_both in both))
    return replace(
        table,
        notes=notes,
        marks=marks,
        paragraphs=[(begin, len(marked_notes)) for begin, marked_notes in both if marked_notes],
    )


def _marking(table: TextTable, rows: Collection[Place], mark_at: int) -> Callable[[set[Place]], Iterator[Place]]:
    """Return what says, of the values that a note concerns, where its mark stands: at the names of lines, then at the
    heads of groups and columns, that it fills."""
    starts = (at if group or at == table.names else 0 for at, group in enumerate(table.above))
    spans = list(accumulate(starts, max))

    def marks_over(place: Place) -> tuple[Place, Place, Place]:
        line, column = place
        return (line, mark_at), (ABOVE, spans[table.names + column]), (HEAD, table.names + column)

    below: dict[Place, set[Place]] = {}
    for place in rows:
        for mark in marks_over(place):
            below.setdefault(mark, set()).add(place)

    def marks_of(places_left: set[Place]) -> Iterator[Place]:
        for axis in range(3):
            # only marks over one of its values are looked at: notes may be as many as lines
            for mark in sorted({marks_over(place)[axis] for place in places_left}):
                if below[mark] <= places_left and (mark[0] != ABOVE or table.above[mark[1]]):
                    places_left -= below[mark]
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
    """`settings: data:hico|version:1.0.0; mAP: boot:1000|seed:0`, "" for rows without a signature.

    rows: those of each value. lines, columns: what they are called, a column by its group and its head. settings_shown:
    the keys of rows and tags that name lines and columns: a setting that stands there, as the protocol does, is not
    told again. apart: of values of which a note says some settings. What a published number comes from is not here: a
    note says it."""
    usual = chain.from_iterable(of for place, of in rows.items() if place not in apart)
    has_own = any("published" not in dict(parse_signature(str(row.get("signature")))) for row in usual)
    stands = _standing(chain.from_iterable(rows.values()), settings_shown)
    has: dict[tuple[str, str], set[Place]] = {}
    for place in sorted(rows, key=lambda place: place[::-1]):  # by columns: their settings are told first
        for row in rows[place]:
            settings = dict(parse_signature(str(row.get("signature") or "")))
            if has_own and "published" in settings and place not in apart:
                settings.pop("gt", None)  # one's own rows say it by digest
            untold = (apart[place].untold(settings) if place in apart else settings).items()
            for key, value in [part for part in untold if part[0] != "published" and not stands(row, *part)]:
                has.setdefault((key, value), set()).add(place)
    parts: dict[frozenset[Place], dict[str, str]] = {}
    for (key, value), places in sorted(has.items(), key=lambda item: item[0][0] == "version"):
        of_places = parts.setdefault(frozenset(places), {})
        of_places[key] = f"{of_places[key]} or {value}" if key in of_places else value  # of a mean over seeds
    everywhere = parts.pop(frozenset(rows), None)
    texts = [joined_settings(everywhere)] if everywhere else []
    by_group, by_column = [group for group, _ in columns], [f"{group} {head}".strip() for group, head in columns]
    axes = [
        (names, at, Counter(names[place[at]] for place in rows))
        for names, at in ((by_group, 1), (by_column, 1), (lines, 0))
    ]
    texts += [f"{_name_places(some, axes)}: {joined_settings(settings)}" for some, settings in parts.items()]
    return f"settings: {'; '.join(texts)}" if texts else ""


def _standing(rows: Iterable[Row], settings_shown: Collection[str]) -> Callable[[Row, str, str], bool]:
    """Return what says whether a setting of a row, by key and value, stands in the names of its line and column, which
    have the keys `settings_shown`. A slice stands there by its name and part, where all slices of that name are one."""
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
    """Some values of a table by the groups, the columns or the lines that they fill; else by the lines they are in."""
    inside: list[str] = []
    for names, at, values in axes:
        inside = list(dict.fromkeys(names[number] for number in sorted({place[at] for place in places})))
        if len(values) > 1 and "" not in inside and sum(values[name] for name in inside) == len(places):
            return _list_names(inside)
    return "some of " + (_list_names(inside) or "the values")


def _list_names(names: Collection[str]) -> str:
    """Some names, the rest counted."""
    first = list(names)[:_NAMED]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")
