"""What is printed below a table: notes with their marks, and one line with the settings that made the values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from types import MappingProxyType

from hoicli.records.caveats import words_of
from hoicli.records.result_rows import Row, joined_settings, parse_signature
from hoicli.tables.cells import ABOVE, HEAD, MARK, Place, TextTable, cell_text, spread
from hoicli.tables.differing_settings import Otherwise

_NAMED = 3
"""How many lines or columns the settings line names; it only counts the others."""
_Axis = tuple[Sequence[str], int, Mapping[str, int]]
"""The names of all groups, columns or lines; which item of a place indexes them; how many values each name has."""


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
    line of settings. A mark that every value of a line, column or group would have is put at its name or head instead;
    a note that concerns all values has no mark.

    rows: by place (line and column of values, both from 0). mark_at: the column of names that takes the mark of a whole
    line. settings_shown: the keys of rows and tags that name lines and columns. notes: further notes of the values.
    apart: how a value's settings differ from the others', which a note says and the line of settings does not."""
    places: dict[str, set[Place]] = {}  # the values that each note concerns
    for place in sorted(rows):
        caveats = list(chain.from_iterable(words_of(row) for row in rows[place]))
        difference = (apart[place].note,) if place in apart else ()
        for note in (*caveats, *notes.get(place, ()), *difference):
            places.setdefault(note, set()).add(place)
    general = [note for note, concerned in places.items() if len(concerned) == len(rows)]
    marked = [note for note in places if note not in general]
    marked_notes = [("*" + (str(number) if len(marked) > 1 else ""), note) for number, note in enumerate(marked, 1)]
    marks: dict[Place, str] = {}
    places_of_marks = _mark_placer(table, rows, mark_at)
    for mark, note in marked_notes:
        for place in places_of_marks(places[note]):
            marks[place] = marks.get(place, "") + mark
    # the group and head of each column of values, and the name of each line
    columns = list(zip(spread(table.above), table.heads, strict=True))[table.name_columns :]
    lines = [" ".join(name for name in line[: table.name_columns] if name != "-") for line in table.lines]
    return replace(
        table,
        notes=[*marked_notes, *(("", note) for note in general)],
        marks=marks,
        settings=settings_line(rows, lines, columns, settings_shown, apart),
    )


_UNRANKED = re.compile(r"(, unlike the others.*)?: not (ranked with them|comparable)$")
"""The end of a note about values that do not compete for the best of their column."""


def join_notes(table: TextTable) -> TextTable:
    """Return the table with its notes in at most two paragraphs, as papers have little room: the reasons why values are
    not ranked, and all other notes. Equal notes then share a mark, and marks are numbered anew."""
    if len(table.notes) <= 2:
        return table
    unranked = [(mark, _UNRANKED.sub("", note)) for mark, note in table.notes if mark and _UNRANKED.search(note)]
    others = [(mark, note) for mark, note in table.notes if not (mark and _UNRANKED.search(note))]
    others.sort(key=lambda marked_note: marked_note[0] != "")  # notes without a mark, about all values, come first
    distinct_notes = dict.fromkeys(note for mark, note in unranked + others if mark)
    new_mark_of_note = {note: f"*{number}" for number, note in enumerate(distinct_notes, start=1)}
    new_marks = {mark: new_mark_of_note[note] for mark, note in unranked + others if mark}
    order = list(new_mark_of_note.values())
    marks = {
        place: "".join(sorted({new_marks[mark] for mark in MARK.findall(old_marks)}, key=order.index))
        for place, old_marks in table.marks.items()
    }
    notes: list[tuple[str, str]] = []
    paragraphs: list[tuple[str, int]] = []
    for begin, marked_notes in (("not ranked with the others, however high: ", unranked), ("", others)):
        joined = dict.fromkeys((new_marks.get(mark, ""), note) for mark, note in marked_notes)
        if joined:
            notes += joined
            paragraphs.append((begin, len(joined)))
    return replace(table, notes=notes, marks=marks, paragraphs=paragraphs)


def _mark_placer(table: TextTable, rows: Collection[Place], mark_at: int) -> Callable[[Collection[Place]], list[Place]]:
    """Return a function that takes the places of the values that a note concerns, and returns the places in the table
    at which its mark is printed. Where the note concerns every value of a line, group or column, that is the name or
    head of it; else it is the values themselves.

    rows: the places of all values (line and column of values, from 0). mark_at: the column of names that takes the mark
    of a line."""
    # For each column, the first column of its group: the last one up to it at which a group begins.
    starts = (number if group or number == table.name_columns else 0 for number, group in enumerate(table.above))
    group_starts = list(accumulate(starts, max))

    def marks_over(place: Place) -> tuple[Place, Place, Place]:
        """Return where the marks of a value's whole line, group and column are printed."""
        line, column = place
        return (line, mark_at), (ABOVE, group_starts[table.name_columns + column]), (HEAD, table.name_columns + column)

    places_below: dict[Place, set[Place]] = {}  # the values of each line, group and column, by where its mark is
    for place in rows:
        for mark in marks_over(place):
            places_below.setdefault(mark, set()).add(place)

    def places_of_marks(concerned: Collection[Place]) -> list[Place]:
        """Return where the mark of a note is printed. concerned: the values that the note concerns."""
        places_left, marks = set(concerned), []
        for axis in range(3):  # lines first, then groups, then columns
            # only marks over these values are looked at: there may be as many notes as lines
            for mark in sorted({marks_over(place)[axis] for place in places_left}):
                if places_below[mark] <= places_left and (mark[0] != ABOVE or table.above[mark[1]]):
                    places_left -= places_below[mark]
                    marks.append(mark)
        return marks + sorted((line, column + table.name_columns) for line, column in places_left)

    return places_of_marks


def settings_line(
    rows: Mapping[Place, Sequence[Row]],
    lines: Sequence[str],
    columns: Sequence[tuple[str, str]],
    settings_shown: Collection[str],
    apart: Mapping[Place, Otherwise] = MappingProxyType({}),
) -> str:
    """Return the line `settings: data:hico|version:1.0.0; mAP: boot:1000|seed:0`, "" if no row has a signature. First
    come the settings of all values, then those of the values of some columns or lines.

    rows: the rows of each value. lines: the name of each line; columns: the group and the head of each column.
    settings_shown: the keys of rows and tags that name lines and columns; a setting that such a name states, such as
    the protocol, is not repeated. apart: the values whose notes state some of their settings. Where a published number
    comes from is left to its note."""
    places_with = _places_by_setting(rows, settings_shown, apart)
    by_places: dict[frozenset[Place], dict[str, str]] = {}
    # sorted, so that the version of hoicli comes last
    for (key, value), places in sorted(places_with.items(), key=lambda item: item[0][0] == "version"):
        settings = by_places.setdefault(frozenset(places), {})
        settings[key] = f"{settings[key]} or {value}" if key in settings else value  # a mean over seeds has several
    everywhere = by_places.pop(frozenset(rows), None)
    texts = [joined_settings(everywhere)] if everywhere else []
    by_group, by_column = [group for group, _ in columns], [f"{group} {head}".strip() for group, head in columns]
    axes = [
        (names, axis, Counter(names[place[axis]] for place in rows))
        for names, axis in ((by_group, 1), (by_column, 1), (lines, 0))  # a place is (line, column)
    ]
    texts += [f"{_name_places(places, axes)}: {joined_settings(settings)}" for places, settings in by_places.items()]
    return f"settings: {'; '.join(texts)}" if texts else ""


def _places_by_setting(
    rows: Mapping[Place, Sequence[Row]], settings_shown: Collection[str], apart: Mapping[Place, Otherwise]
) -> dict[tuple[str, str], set[Place]]:
    """Return, for each setting (key, value) that the line of settings states, the values that were made with it.

    rows: the rows of each value. settings_shown: the keys that name lines and columns; what such a name states is left
    out. apart: the values whose notes state some of their settings, which are left out, too."""
    usual_rows = chain.from_iterable(value_rows for place, value_rows in rows.items() if place not in apart)
    has_own_rows = any("published" not in dict(parse_signature(str(row.get("signature")))) for row in usual_rows)
    names_state = _name_test(chain.from_iterable(rows.values()), settings_shown)
    places_with: dict[tuple[str, str], set[Place]] = {}
    for place in sorted(rows, key=lambda place: place[::-1]):  # by columns: their settings are stated first
        for row in rows[place]:
            settings = dict(parse_signature(str(row.get("signature") or "")))
            if place in apart:
                settings = apart[place].settings_besides_note(settings)
            elif has_own_rows and "published" in settings:
                settings.pop("gt", None)  # one's own rows state the ground truth in full, with its digest
            stated = [item for item in settings.items() if item[0] != "published" and not names_state(row, *item)]
            for setting in stated:
                places_with.setdefault(setting, set()).add(place)
    return places_with


def _name_test(rows: Iterable[Row], settings_shown: Collection[str]) -> Callable[[Row, str, str], bool]:
    """Return a function that takes a row and one of its settings (key, value), and returns whether the names of the
    row's line and column state the setting. settings_shown: the keys of rows and tags that these names consist of. They
    state a slice by its name and part, provided that all slices of that name in `rows` are the same."""
    slices: dict[str, set[str]] = {}  # the slices, as signatures state them, by name
    for row in rows:
        for key, value in parse_signature(str(row.get("signature") or "")) if "slice" in settings_shown else ():
            if key == "slice":  # its value is `name/part`, with a digest of the file after the name if there is one
                slices.setdefault(row.get("tags", {}).get("slice", ""), set()).add(value.rpartition("/")[0])

    def names_state(row: Row, key: str, value: str) -> bool:
        """Return whether the names of the row's line and column state the setting."""
        tags = row.get("tags", {})
        if key == "slice" and "part" in settings_shown and value.endswith(f"/{tags.get('part')}"):
            return len(slices[tags.get("slice", "")]) == 1
        return key in settings_shown and value in (cell_text(row.get(key)), tags.get(key))

    return names_state


def _name_places(places: Collection[Place], axes: Sequence[_Axis]) -> str:
    """Return words for some values of a table: the names of the groups, or columns, or lines that consist of them; if
    there are none such, "some of" the lines they are in. axes: of groups, of columns and of lines their names, which
    item of a place (line, column) is an index of these, and how many values each name has."""
    inside: list[str] = []
    for names, axis, totals in axes:
        inside = list(dict.fromkeys(names[number] for number in sorted({place[axis] for place in places})))
        fills_them = sum(totals[name] for name in inside) == len(places)
        if len(totals) > 1 and "" not in inside and fills_them:
            return _list_names(inside)
    return "some of " + (_list_names(inside) or "the values")


def _list_names(names: Collection[str]) -> str:
    """Return the first _NAMED names with commas, and how many more there are: "a, b, c and 2 more"."""
    first = list(names)[:_NAMED]
    more = len(names) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")
