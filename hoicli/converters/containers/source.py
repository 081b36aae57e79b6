"""A foreign file, opened once: its kind of container, and its items one at a time. Converters read JSON, JSON with a
Python repr as text, and pickles in the same way: by `items()` of a list, or `mapping`. Large files are split into items
first and parsed one item at a time, so memory stays near the size of the file."""

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
from hoicli.io.opened_files import (
    FIRST,
    MARK,
    file_kind,
    is_early_pickle,
    open_input,
    packed_size,
    refuse_repeated_key,
)
from hoicli.io.streams import Line


class Source:
    """One input of `convert`: a file, stdin or a folder. Each of its properties is computed once, when first needed.
    name: the path as messages show it. companions: the other files of a format that consists of several."""

    def __init__(self, path: str, companions: list[Source] | None = None) -> None:
        """Remember the path, without opening it; "-" is stdin."""
        self.path = path
        self.name = display_name(path)
        self.companions = companions or []
        self._packed: int | None = None

    @cached_property
    def data(self) -> bytes:
        """Return the bytes of the whole file, decompressed if it is a .gz. Raises `DataError` for an empty file."""
        with open_input(self.path) as stream:
            data = stream.read()
            self._packed = packed_size(stream)
        if not data:
            raise DataError("is empty (0 bytes); write it again", place=self.name, code="empty")
        return data

    @cached_property
    def stored(self) -> int:
        """Return the size of the file before a .gz is unpacked, which limits the memory that readers take."""
        if self.path != "-" and os.path.isfile(self.path):
            return os.path.getsize(self.path)
        content = len(self.data)
        return content if self._packed is None else self._packed

    @cached_property
    def kind(self) -> str:
        """Return the kind of container that the file is, such as "json-list", "json-object", "json-lines" (an object on
        each line), "json-text" (one string), "pickle", "mat", "npz", "xml", "folder", or "unknown"."""
        kind = file_kind(self.path, b"" if self.path != "-" and os.path.isdir(self.path) else self.data[:FIRST])
        if kind == "json-object" and self._has_lines():
            return "json-lines"
        return "pickle" if kind == "unknown" and is_early_pickle(self.data[:1], self.data[-1:]) else kind

    def _has_lines(self) -> bool:
        """Return whether a file that begins with an object is JSON lines: with an image_id, or another object below."""
        first, _, rest = self.data.lstrip().partition(b"\n")
        if first.rstrip()[-1:] != b"}":
            return False
        try:
            return "image_id" in orjson.loads(first) or rest[:FIRST].lstrip()[:1] == b"{"
        except orjson.JSONDecodeError:
            return False

    def describe(self) -> str:
        """Return what the file looks like, for the message that its format is unknown: "a list of image, boxes"."""
        content = self.first_item if self.is_list else self.mapping
        if isinstance(content, dict) and content:
            keys = (key[:40] if isinstance(key, str) else type(key).__name__ for key in islice(content, 6))
            return f"a {'list' if self.is_list else 'dictionary'} of {', '.join(keys)}"
        if self.kind == "unknown":
            return "neither JSON, nor a pickle, nor a MATLAB file"
        return f"nothing in this {self.kind.replace('-', ' ')} tells its format"

    def lines(self) -> Iterator[Line]:
        """Yield the lines of the file that are not empty, each with its number."""
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

    @cached_property
    def is_list(self) -> bool:
        """Return whether the file holds a list, whose items `items` yields."""
        if self.kind == "pickle":
            return isinstance(self.unpickled, list | tuple)
        return self.kind in ("json-list", "json-text")

    @cached_property
    def first_item(self) -> Any:
        """Return the first item of a list; None if the list is empty or the file holds no list."""
        return next((item for _, item in self.items()), None) if self.is_list else None

    def first_has(self, *keys: str) -> bool:
        """Return whether the file is a list whose first item is a dictionary with all of these keys."""
        return isinstance(self.first_item, dict) and self.first_item.keys() >= {*keys}

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield (position as "[3]", item) for each item of the file's list, parsed one at a time. The list is JSON or a
        pickle, or as CDN writes it: a JSON string that holds a Python dictionary's repr, with the list as `preds`."""
        if not self.is_list:
            problem = f"holds no list ({self.kind}); {arg('from_', like='NAME')} chooses another format"
            raise DataError(problem, place=self.name)
        if self.kind == "pickle":
            for index, item in enumerate(self.unpickled):
                yield f"[{index}]", item
        elif self.kind == "json-list":
            yield from self._number_items(items_of(self.data, self.data.index(b"[") + 1, _parse_item, to_end=True))
        else:
            opening = b"'preds': ["
            start = self.text.find(opening)
            if start < 0:
                problem = f"is a JSON string without {opening.decode()}...]; the file may be cut off: write it again"
                raise DataError(problem, place=self.name)
            yield from self._number_items(items_of(self.text, start + len(opening), literal))

    @cached_property
    def text(self) -> bytes:
        """Return the content of a JSON document that is one string. The quotes around it are kept if it has no escapes,
        which saves a copy of a large file; `items` looks for the list inside. Raises `DataError` for damaged JSON."""
        if b"\\" not in self.data:
            return self.data
        try:
            return str(orjson.loads(self.data)).encode()
        except ValueError as error:
            raise DataError(f"not JSON ({error}); the file may be cut off", place=self.name, code="damaged") from None

    def _number_items(self, items: Iterator[Any]) -> Iterator[tuple[str, Any]]:
        """Yield (position as "[3]", item) for each of `items`; errors get the position of the item."""
        position = 0
        try:
            for item in items:
                yield f"[{position}]", item
                position += 1
        except DataError as error:
            raise DataError(error.problem, place=self.name, field=f"[{position}]") from None
        except (ValueError, RecursionError) as error:
            problem = f"not readable ({error}), and nothing after it was read; write the file again"
            raise DataError(problem, place=self.name, field=f"[{position}]") from None

    @cached_property
    def mapping(self) -> dict[Any, Any]:
        """Return the dictionary of a JSON object or a pickle; an empty one for any other file. Raises `DataError`."""
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
        refuse_repeated_key(self.data, mapping, self.name)
        return mapping if isinstance(mapping, dict) else {}

    def entries(self) -> dict[Any, Any]:
        """Return `mapping`, the file's dictionary. Raises `DataError` if the file holds none, or an empty one."""
        if not self.mapping:
            problem = f"holds no dictionary ({self.kind}); {arg('from_', like='NAME')} chooses another format"
            raise DataError(problem, place=self.name)
        return self.mapping

    def mapping_has(self, *keys: str) -> bool:
        """Return whether the file is a dictionary with all of these keys."""
        return self.mapping.keys() >= {*keys}

    @cached_property
    def xml(self) -> Element:
        """Return the root of an XML document. Raises `DataError`, with the line, for what is no XML, and for a document
        type (DOCTYPE): only there can a file declare entities that expand without end, or that open other files."""
        builder, parser = TreeBuilder(), expat.ParserCreate()
        parser.buffer_text = True

        def refuse_document_type(*_: object) -> None:
            """Raise the error about a document type, when the parser meets its beginning."""
            problem = "has a document type (DOCTYPE), which could declare entities; take it out"
            raise DataError(problem, place=Place.in_file(self.name, parser.CurrentLineNumber), code="damaged")

        parser.StartDoctypeDeclHandler = refuse_document_type
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
        """Return the content of a pickle as plain data; nothing of it is run. Raises `DataError` for anything else."""
        from hoicli.converters.containers.unpickle import load_pickle

        return load_pickle(self.data, self.name)


def _parse_item(json_text: bytes) -> Any:
    """Return the value of one item of a list. Raises an error for a repeated key, and for what is no JSON."""
    item = json_item(json_text)
    refuse_repeated_key(json_text, item, "")
    return item
