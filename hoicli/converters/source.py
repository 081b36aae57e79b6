"""A foreign file, opened once: what kind of container it is, and its items one at a time.

JSON, JSON that holds a Python repr as text, pickles, MATLAB files and folders all look the same to a converter: a
list's `items()`, or a `mapping()`. Files of hundreds of megabytes are cut into items first and parsed one item at a
time, so memory stays at the size of the bytes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson

from hoicli.errors import DataError
from hoicli.streams import display_name, open_input, readable

HEAD = 1 << 16
"""Bytes looked at to tell the containers apart."""


class Source:
    """One input of `convert`: a path, `-`, or a folder; `companions` are the other paths of a joint format."""

    def __init__(self, path: str, companions: list[Source] | None = None) -> None:
        self.path = path
        self.name = display_name(path)
        self.companions = companions or []

    @cached_property
    def data(self) -> bytes:
        """The whole decompressed file. Raises `DataError` for an empty one."""
        with open_input(self.path) as stream, readable(self.path):
            data = stream.read()
        if not data:
            raise DataError("is empty (0 bytes); write it again", place=self.name)
        return data

    @cached_property
    def kind(self) -> str:
        """folder, pickle, mat, json-list, json-object, json-text (a JSON string), json-lines, or unknown."""
        if self.path != "-" and Path(self.path).is_dir():
            return "folder"
        if self.path.endswith((".mat", ".mat.gz")) or self.data.startswith(b"MATLAB "):
            return "mat"
        head = self.data[:HEAD].lstrip()
        if head[:1] == b"[":
            return "json-list"
        if head[:1] == b'"':
            return "json-text"
        if head[:1] == b"{":
            first_line = head.split(b"\n", 1)[0].rstrip()
            return "json-lines" if first_line[-1:] == b"}" and self._is_object(first_line) else "json-object"
        if self.data[:1] == b"\x80" or self.data.endswith(b"."):
            return "pickle"
        return "unknown"

    @staticmethod
    def _is_object(line: bytes) -> bool:
        """A whole JSON object with an image_id on one line: a record, whatever comes after it."""
        try:
            return "image_id" in orjson.loads(line)
        except orjson.JSONDecodeError:
            return False

    def describe(self) -> str:
        """What the file looks like, for the message that it is unknown."""
        if self.kind in ("json-list", "json-text"):
            item = self.first_item
            return f"{self.kind} of {sorted(item)[:6] if isinstance(item, dict) else type(item).__name__}"
        if self.kind in ("json-object", "pickle"):
            mapping = self.mapping
            return f"{self.kind} with {[*map(str, mapping)][:6]}" if mapping else f"{self.kind} of no known shape"
        return self.kind

    # Lists

    @cached_property
    def first_item(self) -> Any:
        """The first item of a list, None where there is none."""
        return next((item for _, item in self.items()), None)

    def items(self, key: str = "preds") -> Iterator[tuple[str, Any]]:
        """(position as `[3]`, item) of a list: JSON, pickled, or under `key` of a dictionary written as text.

        Raises `DataError` where the list breaks off or an item is not readable.
        """
        if self.kind == "pickle":
            content = self.unpickled
            for index, item in enumerate(content if isinstance(content, list | tuple) else ()):
                yield f"[{index}]", item
        elif self.kind == "json-list":
            start = self.data.index(b"[") + 1
            yield from self._parsed(split_items(self.data, start), _json_item)
        elif self.kind == "json-text":
            start = self.text.find(f"'{key}': [".encode())
            if start >= 0:
                yield from self._parsed(split_items(self.text, start + len(key) + 5), literal)

    @cached_property
    def text(self) -> bytes:
        """The content of a JSON document that is one string."""
        if b"\\" not in self.data:
            return self.data.strip()[1:-1]
        try:
            return str(orjson.loads(self.data)).encode()
        except orjson.JSONDecodeError as error:
            raise DataError(f"not JSON ({error}); the file may be cut off", place=self.name) from None

    def _parsed(self, spans: Iterator[bytes], parse: Any) -> Iterator[tuple[str, Any]]:
        for index, span in enumerate(spans):
            try:
                yield f"[{index}]", parse(span)
            except ValueError as error:
                problem = f"not readable ({error}); the file may be cut off: write it again"
                raise DataError(problem, place=self.name, field=f"[{index}]") from None

    # Dictionaries

    @cached_property
    def mapping(self) -> dict[Any, Any]:
        """The dictionary of a JSON object or a pickle; empty for anything else."""
        if self.kind == "pickle":
            return self.unpickled if isinstance(self.unpickled, dict) else {}
        if self.kind != "json-object":
            return {}
        try:
            mapping = orjson.loads(self.data)
        except orjson.JSONDecodeError as error:
            try:
                mapping = json.loads(self.data)  # knows NaN, which the records then refuse by its place
            except (ValueError, RecursionError):
                raise DataError(f"not JSON ({error}); the file may be cut off", place=self.name) from None
        return mapping if isinstance(mapping, dict) else {}

    @cached_property
    def unpickled(self) -> Any:
        """The content of a pickle, through the restricted unpickler."""
        from hoicli.converters.unpickle import load_pickle

        return load_pickle(self.data, self.name)


def split_items(data: bytes, start: int) -> Iterator[bytes]:
    """The items of the list whose content starts at `start`, as slices, without a tree of the whole.

    Items that are dictionaries nearly always begin with the same key, so the text is cut wherever that beginning
    recurs; a cut inside an item (a nested dictionary that begins alike) is seen by its unbalanced brackets and joined
    with the next. The list ends at its own closing bracket.
    """
    begin = _skip_space(data, start)
    if data[begin : begin + 1] == b"]":
        return
    marker = _item_marker(data, begin)
    while True:
        cut = data.find(marker, begin + 1) if marker else -1
        piece = data[begin:cut] if cut >= 0 else data[begin:]
        end = _balanced_end(piece)
        while end < 0 and cut >= 0:
            cut = data.find(marker, cut + 1)
            piece = data[begin:cut] if cut >= 0 else data[begin:]
            end = _balanced_end(piece)
        if end < 0:  # the list breaks off here; the parser says so with the item's number
            yield piece
            return
        yield piece[:end]
        after = _skip_space(data, begin + end)
        if data[after : after + 1] != b",":
            if data[after : after + 1] != b"]":
                yield b""  # neither another item nor the end: unreadable, with the next item's number
            return
        begin = _skip_space(data, after + 1)


def _skip_space(data: bytes, position: int) -> int:
    match = _SPACE.match(data, position)
    return match.end() if match else position


_SPACE = re.compile(rb"\s*")
_MARKER = re.compile(rb"""\{\s*(?:"[^"\\]*"|'[^'\\]*')\s*:""")
_TOKEN = re.compile(rb"""[\[{(]|[\])}]|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)


def _item_marker(data: bytes, begin: int) -> bytes:
    """The first key of the first item, with its brace; empty if the items are no dictionaries."""
    match = _MARKER.match(data, begin)
    return match.group() if match else b""


def _balanced_end(piece: bytes) -> int:
    """Where the value at the start of `piece` ends, or -1 when its brackets never close.

    The common case is decided by counting; strings that hold brackets are told apart only when the counts disagree.
    """
    body = piece.rstrip(b" \t\r\n,")
    if body[-1:] in (b"}", b"]") and all(
        body.count(opening) == body.count(closing) for opening, closing in ((b"{", b"}"), (b"[", b"]"))
    ):
        return len(body)
    depth = 0
    for token in _TOKEN.finditer(piece):
        first = token.group()[:1]
        if first in b"[{(":
            depth += 1
        elif first in b"])}":
            depth -= 1
            if depth == 0:
                return token.end()
    return -1


def _json_item(span: bytes) -> Any:
    """One item of a JSON list; NaN is read, as json.dump writes it, for the records' check to name its place."""
    try:
        return orjson.loads(span)
    except orjson.JSONDecodeError:
        return json.loads(span)


# What NumPy 2 writes around each number of a repr.
_SCALARS = tuple(f"np.{kind}{bits}(" for kind in ("float", "int", "uint") for bits in (16, 32, 64))


def literal(span: bytes) -> Any:
    """A Python literal without evaluating anything: containers, strings, numbers, NumPy scalars, nan and inf.

    Most reprs become JSON by exchanging quotes and are then parsed at C speed; the rest goes through `ast`.
    Raises ValueError for whatever is more than a literal.
    """
    text = span.decode()
    if '"' not in text and "\\" not in text:
        plain, removed = text, 0
        if "(" in text:
            for scalar in _SCALARS:
                removed += plain.count(scalar)
                plain = plain.replace(scalar, "")
            if text.count("(") == removed == text.count(")"):
                plain = plain.replace(")", "")
        try:
            return orjson.loads(plain.replace("'", '"'))
        except orjson.JSONDecodeError:
            pass
    try:
        return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"not a Python literal: {error}") from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() | bytes() | None as value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Name(id="nan" | "inf" as name):
            return float(name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=kind), args=[argument], keywords=[]):
            if re.fullmatch(r"(float|u?int)(16|32|64|8)|bool_?|str_", kind):
                return _value(argument)
    raise ValueError(f"{ast.unparse(node)[:60]} is no literal")
