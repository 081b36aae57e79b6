"""A foreign file, opened once: its kind of container, and its items one at a time. Converters read JSON, JSON with a
Python repr as text, and pickles in the same way: by `items()` of a list, or `mapping`. Large files are split into items
first and parsed one item at a time, so memory stays near the size of the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import orjson

from hoicli.converters.containers.text import items_of, json_item, literal
from hoicli.errors import DataError, Place, arg, not_json
from hoicli.io.messages import display_name
from hoicli.io.opened_files import FIRST, MARK, file_kind, open_input, packed_size
from hoicli.io.streams import Line


class Source:
    """One input of `convert`: a path, `-`, or a folder; `companions` are the other paths of a joint format."""

    def __init__(self, path: str, companions: list[Source] | None = None) -> None:
        self.path = path
        self.name = display_name(path)
        self.companions = companions or []
        self._packed: int | None = None

    @cached_property
    def data(self) -> bytes:
        """The whole file, decompressed. Raises `DataError` for an empty one."""
        with open_input(self.path) as stream:
            data = stream.read()
            self._packed = packed_size(stream)
        if not data:
            raise DataError("is empty (0 bytes); write it again", place=self.name, code="empty")
        return data

    @cached_property
    def stored(self) -> int:
        """The bytes of the file on the disk, before .gz is unpacked: the measure of what a file may cost."""
        if self.path != "-" and os.path.isfile(self.path):
            return os.path.getsize(self.path)
        content = len(self.data)
        return content if self._packed is None else self._packed

    @cached_property
    def kind(self) -> str:
        """The file's kind of container, as `file_kind` names it; but "json-lines" if a second object follows the first,
        and "pickle" for a pickle of the first protocols, which have no mark at the beginning."""
        kind = file_kind(self.path, b"" if self.path != "-" and os.path.isdir(self.path) else self.data[:FIRST])
        if kind == "json-object" and self._has_lines():
            return "json-lines"
        return "pickle" if kind == "unknown" and self.data.endswith(b".") else kind

    def _has_lines(self) -> bool:
        """Whether the first line is a whole JSON object, and has an image_id or another object after it."""
        first, _, rest = self.data.lstrip().partition(b"\n")
        if first.rstrip()[-1:] != b"}":
            return False
        try:
            return "image_id" in orjson.loads(first) or rest[:FIRST].lstrip()[:1] == b"{"
        except orjson.JSONDecodeError:
            return False

    def describe(self) -> str:
        """Return a description of the file for the message that its format is unknown."""
        content = self.first_item if self.is_list else self.mapping
        if isinstance(content, dict) and content:
            keys = (key[:40] if isinstance(key, str) else type(key).__name__ for key in islice(content, 6))
            return f"a {'list' if self.is_list else 'dictionary'} of {', '.join(keys)}"
        if self.kind == "unknown":
            return "neither JSON, nor a pickle, nor a MATLAB file"
        return f"nothing in this {self.kind.replace('-', ' ')} tells its format"

    # Lines

    def lines(self) -> Iterator[Line]:
        """Yield the lines that are not empty."""
        for number, data in enumerate(self.data.split(b"\n"), start=1):
            line = data.removeprefix(MARK)
            if line.strip():
                yield Line(self.name, number, line)

    def first_line(self) -> Any:
        """Return the first line as parsed JSON, or None if it is not JSON."""
        try:
            return orjson.loads(self.data.lstrip(MARK + b" \t\r\n").partition(b"\n")[0])
        except orjson.JSONDecodeError:
            return None

    # Lists

    @cached_property
    def is_list(self) -> bool:
        """Whether the file holds a list; `items` of anything else is an error."""
        if self.kind == "pickle":
            return isinstance(self.unpickled, list | tuple)
        return self.kind in ("json-list", "json-text")

    @cached_property
    def first_item(self) -> Any:
        """The first item of a list; None if the list is empty or the file holds no list."""
        return next((item for _, item in self.items()), None) if self.is_list else None

    def first_has(self, *keys: str) -> bool:
        """Whether the first item of a list is a dictionary with all of these keys."""
        return isinstance(self.first_item, dict) and self.first_item.keys() >= {*keys}

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield (position as `[3]`, item) of a list: of JSON, of a pickle, or under `preds` of a dictionary written as
        text. Raises `DataError` if the list is cut off, an item is not readable, or there is no list."""
        if not self.is_list:
            problem = f"holds no list ({self.kind}); {arg('from_', like='NAME')} chooses another format"
            raise DataError(problem, place=self.name)
        if self.kind == "pickle":
            for index, item in enumerate(self.unpickled):
                yield f"[{index}]", item
        elif self.kind == "json-list":
            yield from self._number_items(items_of(self.data, self.data.index(b"[") + 1, json_item, to_end=True))
        else:
            opening = b"'preds': ["
            start = self.text.find(opening)
            if start < 0:
                problem = f"is a JSON string without {opening.decode()}...]; the file may be cut off: write it again"
                raise DataError(problem, place=self.name)
            yield from self._number_items(items_of(self.text, start + len(opening), literal))

    @cached_property
    def text(self) -> bytes:
        """The content of a JSON document that is one string. It keeps its quotes if it has no escapes."""
        if b"\\" not in self.data:
            return self.data
        try:
            return str(orjson.loads(self.data)).encode()
        except ValueError as error:
            raise DataError(f"not JSON ({error}); the file may be cut off", place=self.name, code="damaged") from None

    def _number_items(self, items: Iterator[Any]) -> Iterator[tuple[str, Any]]:
        """Yield (position as `[3]`, item) of some items. Raises `DataError` with the position of an unreadable one."""
        position = 0
        try:
            for item in items:
                yield f"[{position}]", item
                position += 1
        except (ValueError, RecursionError) as error:
            problem = f"not readable ({error}), and nothing after it was read; write the file again"
            raise DataError(problem, place=self.name, field=f"[{position}]") from None

    # Dictionaries

    @cached_property
    def mapping(self) -> dict[Any, Any]:
        """The dictionary that a JSON object or a pickle holds; empty for anything else."""
        if self.kind == "pickle":
            return self.unpickled if isinstance(self.unpickled, dict) else {}
        if self.kind != "json-object":
            return {}
        try:
            mapping = json_item(self.data)
        except orjson.JSONDecodeError as error:
            several_objects = error.msg.startswith("unexpected content") and error.doc[error.pos :][:1] == "{"
            advice = (
                "several objects over several lines become one each by jq -c . FILE"
                if several_objects
                else "the file may be cut off"
            )
            raise not_json(error, self.name, advice) from None
        return mapping if isinstance(mapping, dict) else {}

    def entries(self) -> dict[Any, Any]:
        """Return the dictionary. Raises `DataError` if there is none, or if it is empty."""
        if not self.mapping:
            problem = f"holds no dictionary ({self.kind}); {arg('from_', like='NAME')} chooses another format"
            raise DataError(problem, place=self.name)
        return self.mapping

    def mapping_has(self, *keys: str) -> bool:
        """Whether the dictionary has all of these keys."""
        return self.mapping.keys() >= {*keys}

    @cached_property
    def xml(self) -> Element:
        """The root of an XML document. A document type is refused where it begins, since only it can declare entities
        and files outside: so nothing is expanded, and nothing else is opened. Raises `DataError` with the line of a
        document type, or of a place that is no XML."""
        builder, parser = TreeBuilder(), expat.ParserCreate()
        parser.buffer_text = True

        def refuse(*_: object) -> None:
            problem = "has a document type (DOCTYPE), which could declare entities; take it out"
            raise DataError(problem, place=Place.in_file(self.name, parser.CurrentLineNumber), code="damaged")

        parser.StartDoctypeDeclHandler = refuse
        parser.StartElementHandler, parser.EndElementHandler = builder.start, builder.end
        parser.CharacterDataHandler = builder.data
        try:
            parser.Parse(self.data, True)
        except (expat.ExpatError, LookupError, ValueError) as error:
            place = Place.in_file(self.name, parser.ErrorLineNumber)
            raise DataError(f"not XML ({error}); export it again", place=place, code="damaged") from None
        return builder.close()

    @cached_property
    def unpickled(self) -> Any:
        """The content of a pickle, which the restricted unpickler loads."""
        from hoicli.converters.containers.unpickle import load_pickle

        return load_pickle(self.data, self.name)
