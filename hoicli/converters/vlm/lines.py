"""Answers in lines: tables, comma-separated values, lists of keys and values, and lists of words in brackets. Each
gives values like those of JSON, whose strings know their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from hoicli.converters.vlm import keys
from hoicli.converters.vlm.keys import by_plain_key, numbers_of, plain_key, value_of
from hoicli.converters.vlm.text import Spoken

LONGEST_LINE = 4000
"""Characters of a line that may be a row; a longer one is prose, or an answer without end."""

_N = r"-?\d{1,9}(?:\.\d{1,18})?"
_ROLES = (keys.SUBJECT, keys.OBJECT, keys.BOX, keys.LABEL, keys.NAME, keys.VERBS, keys.SCORE)


def table_rows(text: Spoken) -> list[Any]:
    """The rows of Markdown tables, as objects under the names in their headers."""
    rows: list[Any] = []
    header: list[str] | None = None
    for line in _lines(text, "|"):
        if line.count("|") < 2:
            header = None
            continue
        inner = _cut(line, line.index("|") + 1, line.rindex("|")) if line.lstrip()[:1] == "|" else line
        cells = _split(inner, "|")
        if all(re.fullmatch(r":?-{1,}:?|", cell) for cell in cells):
            continue
        if header is None:
            header = [_key(cell) for cell in cells]
        elif len(cells) == len(header):
            rows.append({name: cell for name, cell in zip(header, cells, strict=True) if cell and name})
    return rows


def separated_rows(text: Spoken) -> list[Any]:
    """The lines of comma- or tab-separated values: objects under the names of a header, or lists of words and boxes
    where there is none."""
    rows: list[Any] = []
    header: list[str] | None = None
    for line in _lines(text, ",;\t"):
        mark = next((mark for mark in "\t;," if line.count(mark) >= 2), ",")
        fields = _split(line, mark)
        if len(fields) < 3:
            header = header if line.strip().startswith("```") else None
            continue
        named = [_key(field) for field in fields]
        if sum(any(role.fullmatch(name) for role in _ROLES) or bool(_CORNER.search(name)) for name in named) >= 3:
            header = named
        elif header is not None and len(fields) == len(header):
            rows.append(dict(zip(header, fields, strict=True)))
        elif header is None and (row := _fields(fields)):
            rows.append(row)
    return rows


_CORNER = re.compile(r"(?:^|_)(?:[xy][12]|[xy]_?(?:min|max))$")


def bracketed_rows(text: Spoken) -> list[Any]:
    """Lines such as (person, ride, bicycle, [1, 2, 3, 4], [5, 6, 7, 8]) or <person, ride, bicycle>, as lists."""
    rows: list[Any] = []
    for line in _lines(text, ">)⟩"):
        found = _BRACKETED.fullmatch(line)
        if found is not None:
            fields = _split(_cut(line, found.start(1), found.end(1)), ",")
            row = _fields([part for field in fields for part in _parts_of(field)])
            if row or [type(field) for field in fields] == [Spoken] * 3:
                rows.append(row or fields)
    return rows


_BRACKETED = re.compile(r"\s{0,20}(?:(?:[-*+•]|\d{1,3}[.):])\s{1,4})?[*`]{0,3}[(<⟨]\s{0,4}(.*)[)>⟩][*`]{0,3}[.,;]?\s*")


def _parts_of(field: Spoken) -> list[Any]:
    """A field as it is, or the name and the box in it."""
    cell = keys.cell_of(field)
    return [cell["label"], Spoken.at(field[len(cell["label"]) :], field.start)] if isinstance(cell, dict) else [field]


def _fields(fields: list[Spoken]) -> list[Any]:
    """Words and boxes, of which four numbers in a row are one; empty without two boxes."""
    row: list[Any] = []
    numbers: list[float] = []
    for field in fields:
        if re.fullmatch(_N, field):
            numbers.append(float(field))
            if len(numbers) == 4:
                row.append(numbers)
                numbers = []
            continue
        if numbers:
            return []
        row.append(numbers_of(field) or _unquoted(field))
    boxes = sum(isinstance(item, list) for item in row)
    return row if boxes == 2 and not numbers and len(row) <= 5 else []


_PAIR = re.compile(r"(?:^|[,;|])\s{0,4}([A-Za-z][A-Za-z0-9 _/-]{0,40}?(?:\s?[(\[][^)\]]{0,40}[)\]])?)\s{0,3}:(?!//)")
_BULLET = re.compile(r"(\s{0,40})((?:[-*+•]|\d{1,3}[.)])\s{1,4})?")


def keyed_rows(text: Spoken) -> list[Any]:
    """Lists of `key: value` lines, as YAML and Markdown have them: one object for each item. An item begins where a key
    comes again, at a blank line after a whole one, or at a heading."""
    reader = _KeyedReader()
    for line in _lines(text, ":"):
        reader.read(line)
    reader.end()
    return reader.rows


class _KeyedReader:
    """Collects the items of `key: value` lines. `item`: the one under way; `inner`: the object under a key without a
    value, whose lines are indented further than `inner_at`; `listed`: where the lines of a list go."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._begin()

    def _begin(self) -> None:
        self.item: dict[str, Any] = {}
        self.inner: dict[str, Any] | None = None
        self.inner_at = 0
        self.listed: tuple[dict[str, Any], str] | None = None

    def end(self) -> None:
        """End the item."""
        if self.item:
            self.rows.append(self.item)
        self._begin()

    def read(self, line: Spoken) -> None:
        """Read a line."""
        bullet = _BULLET.match(line)
        indent = bullet.end() if bullet else 0
        body = _bare(_cut(line, indent, len(line)))
        pairs = list(_pairs(body))
        if not pairs and bullet and bullet[2] and body and self.listed is not None:
            target, name = self.listed
            target.setdefault(name, []).append(_unquoted(body))
        elif not pairs and (body.startswith("#") or (not body and value_of(by_plain_key(self.item), keys.VERBS))):
            self.end()
        for key, value in pairs:
            if self.inner is not None and indent <= self.inner_at:
                self.inner = None
            self._take(plain_key(key), value, indent)

    def _take(self, name: str, value: Any, indent: int) -> None:
        target = self.item if self.inner is None else self.inner
        if name == "id" and self.inner is None:
            self.end()
            self.item["id"] = value
        elif not any(role.fullmatch(name) for role in _ROLES):
            if not value:
                self.end()
        elif not value and "box" not in name and (keys.SUBJECT.fullmatch(name) or keys.OBJECT.fullmatch(name)):
            if name in self.item:
                self.end()
            self.inner, self.inner_at = {}, indent
            self.item[name] = self.inner
        elif not value:
            self.listed = target, name
        else:
            if name in target:
                self.end()
                target = self.item
            target[name], self.listed = value, None


def _pairs(body: Spoken) -> Iterator[tuple[str, Any]]:
    """The keys of a line with their values."""
    found = list(_PAIR.finditer(body))
    if not found or found[0].start() > 0 or body[: found[0].start(1)].strip():
        return
    for number, match in enumerate(found):
        stop = found[number + 1].start() if number + 1 < len(found) else len(body)
        yield match[1], _value(_cut(body, match.end(), stop))


def _value(text: Spoken) -> Any:
    """A value: a list of words in brackets, or the text without quotes."""
    plain = _bare(text)
    if plain[:1] == "[" and plain[-1:] == "]" and numbers_of(plain) is None:
        return [_unquoted(part) for part in _split(_cut(plain, 1, len(plain) - 1), ",") if part]
    return _unquoted(plain)


def _lines(text: Spoken, marks: str) -> Iterator[Spoken]:
    """The lines of a text that has one of the marks, without those that are too long; a run of blank lines is one."""
    at = 0
    blank = False
    for line in text.split("\n") if any(mark in text for mark in marks) else ():
        again, blank = blank, not line or line.isspace()
        if len(line) <= LONGEST_LINE and not (blank and again):
            yield Spoken.at(line.replace("**", "  ").replace("__", "  "), text.start + at)
        at += len(line) + 1


def _cut(text: Spoken, start: int, end: int) -> Spoken:
    return Spoken.at(text[start:end], text.start + start)


def _bare(text: Spoken) -> Spoken:
    """A text without the blanks around it."""
    return Spoken.at(text.strip(), text.start + len(text) - len(text.lstrip()))


def _unquoted(text: Spoken) -> Spoken:
    return _cut(text, 1, len(text) - 1) if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'`" else text


def _key(cell: Spoken) -> str:
    return plain_key(_unquoted(cell))


def _split(text: Spoken, mark: str) -> list[Spoken]:
    """The parts between marks outside brackets and double quotes, without blanks around them."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "[(":
            depth += 1
        elif letter in "])":
            depth = max(0, depth - 1)
        elif letter == mark and not depth:
            parts.append(_unquoted(_bare(_cut(text, start, at))))
            start = at + 1
    return [*parts, _unquoted(_bare(_cut(text, start, len(text))))]
