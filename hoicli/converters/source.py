"""A foreign file, opened once: what kind of container it is, and its items one at a time.

JSON, JSON that holds a Python repr as text, pickles, MATLAB files and folders all look the same to a converter: a
list's `items()`, or a `mapping()`. Files of hundreds of megabytes are cut into items first and parsed one item at a
time, so memory stays at the size of the bytes.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import orjson

from hoicli.errors import DataError
from hoicli.streams import display_name, open_input

ZIP_MAGIC = b"PK\x03\x04"
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
        with open_input(self.path) as stream:
            data = stream.read()
        if not data:
            raise DataError("is empty (0 bytes); write it again", place=self.name)
        return data

    @cached_property
    def kind(self) -> str:
        """folder, npz, pickle, mat, json-list, json-object, json-text (a JSON string), json-lines, or unknown."""
        if self.path != "-" and Path(self.path).is_dir():
            return "folder"
        if self.path.endswith(".npz") or self.data.startswith(ZIP_MAGIC):
            return "npz"
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
            if item is None:
                return "an empty list"
            return f"a list of {_some_keys(item) if isinstance(item, dict) else type(item).__name__}"
        if self.kind in ("json-object", "pickle"):
            what = "a dictionary" if self.kind == "json-object" or isinstance(self.unpickled, dict) else "a pickle"
            return f"{what} of {_some_keys(self.mapping)}" if self.mapping else f"{what} with nothing in it to go by"
        names = {
            "folder": "a folder without detections_XX.mat or .npz files",
            "mat": "a MATLAB file",
            "json-lines": "JSON lines",
        }
        return names.get(self.kind, "neither JSON, nor a pickle, nor a MATLAB file")

    # Lists

    @cached_property
    def is_list(self) -> bool:
        """Whether there is a list to take items from; `items` of anything else is an error."""
        if self.kind == "pickle":
            return isinstance(self.unpickled, list | tuple)
        return self.kind in ("json-list", "json-text")

    @cached_property
    def first_item(self) -> Any:
        """The first item of a list, None where there is none."""
        return next((item for _, item in self.items()), None) if self.is_list else None

    def items(self, key: str = "preds") -> Iterator[tuple[str, Any]]:
        """(position as `[3]`, item) of a list: JSON, pickled, or under `key` of a dictionary written as text.

        Raises `DataError` where the list breaks off or an item is not readable, and when there is no list at all.
        """
        if not self.is_list:
            raise DataError(f"holds no list ({self.kind}); --from NAME chooses another format", place=self.name)
        if self.kind == "pickle":
            for index, item in enumerate(self.unpickled):
                yield f"[{index}]", item
        elif self.kind == "json-list":
            yield from self._parsed(split_items(self.data, self.data.index(b"[") + 1, to_end=True), _json_item)
        else:
            opening = f"'{key}': [".encode()
            start = self.text.find(opening)
            if start < 0:
                problem = f"is a JSON string without {opening.decode()}...]; the file may be cut off: write it again"
                raise DataError(problem, place=self.name)
            yield from self._parsed(split_items(self.text, start + len(opening)), literal)

    @cached_property
    def text(self) -> bytes:
        """The content of a JSON document that is one string (with its quotes, where nothing else needs decoding)."""
        if b"\\" not in self.data:
            return self.data
        try:
            return str(orjson.loads(self.data)).encode()
        except ValueError as error:
            raise DataError(f"not JSON ({error}); the file may be cut off", place=self.name) from None

    def _parsed(self, spans: Iterator[bytes], parse: Callable[[bytes], Any]) -> Iterator[tuple[str, Any]]:
        position = 0
        try:
            for span in spans:
                yield f"[{position}]", parse(span)
                position += 1
        except (ValueError, RecursionError) as error:
            problem = f"not readable ({error}), and nothing after it was read; write the file again"
            raise DataError(problem, place=self.name, field=f"[{position}]") from None

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


def _some_keys(mapping: dict[Any, Any]) -> str:
    """The first keys of a dictionary, as far as they are fit to be shown."""
    return ", ".join(key[:40] if isinstance(key, str) else type(key).__name__ for key in islice(mapping, 6))


def split_items(data: bytes, start: int, *, to_end: bool = False) -> Iterator[bytes]:
    """The items of the list whose content starts at `start`, as slices, without a tree of the whole.

    Items that are dictionaries nearly always begin with the same key, so the text is cut where that beginning recurs;
    where the cut is not plainly the end of one item, the brackets are followed one by one. The list ends at its own
    closing bracket (`to_end`: with nothing behind it). Raises ValueError where it breaks off.
    """
    begin = after = _skip_space(data, start)
    first_key = _FIRST_KEY.match(data, begin)
    while data[after : after + 1] != b"]":
        end = _plain_end(data, begin, first_key.group()) if first_key else -1
        if end < 0:
            end = _followed_end(data, begin)
        yield data[begin:end]
        after = _skip_space(data, end)
        separator = data[after : after + 1]
        if separator not in (b",", b"]"):
            raise ValueError("neither a comma nor a closing bracket follows" if separator else BROKEN_OFF)
        begin = _skip_space(data, after + 1)
    if to_end and _skip_space(data, after + 1) != len(data):
        raise ValueError("something follows the list's closing bracket")


BROKEN_OFF = "the list breaks off"
LONGEST = 1 << 20
"""Bytes within which another item is looked for; far more than an image's detections take."""

_SPACE = re.compile(rb"\s*")
_STRING = rb"""(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')"""
_FIRST_KEY = re.compile(rb"""\{\s*(?:"[^"\\]*"|'[^'\\]*')\s*:""")
_TO_BRACKET = re.compile(rb"""[^][{}()"']*(?:%b[^][{}()"']*)*([][{}()])""" % _STRING, re.DOTALL)
_SCALAR = re.compile(rb"""%b|[^][{}()"',\s]+""" % _STRING, re.DOTALL)
_BESIDE_STRUCTURE = bytes(set(range(256)) - set(b"[]{}()\"'\\"))


def _skip_space(data: bytes, position: int) -> int:
    match = _SPACE.match(data, position)
    return match.end() if match else position


def _plain_end(data: bytes, begin: int, first_key: bytes) -> int:
    """Where the item ends if it is all there is before `first_key` recurs, or -1 where that is not plain to see.

    What is left of the text without everything but brackets, quotes and backslashes tells: when each quote meets
    its partner, no string holds a bracket, and the brackets must come in pairs inside one outer pair.
    """
    cut = data.find(first_key, begin + 1, begin + LONGEST)
    body = data[begin:cut].rstrip(b" \t\r\n,") if cut >= 0 else b""
    if not (body.startswith(b"{") and body.endswith(b"}")):
        return -1
    inside = body.translate(None, _BESIDE_STRUCTURE).replace(b'""', b"").replace(b"''", b"")[1:-1]
    for _ in range(8):  # levels of nesting; a detection has three
        inside = inside.replace(b"{}", b"").replace(b"[]", b"").replace(b"()", b"")
        if not inside:
            return begin + len(body)
    return -1


def _followed_end(data: bytes, begin: int) -> int:
    """Where the value at `begin` ends, strings told apart from structure. Raises ValueError if it does not end."""
    if data[begin : begin + 1] not in (b"{", b"[", b"("):
        scalar = _SCALAR.match(data, begin)
        if scalar is None:
            raise ValueError(BROKEN_OFF)
        return scalar.end()
    depth, position = 0, begin
    while bracket := _TO_BRACKET.match(data, position):
        position = bracket.end()
        depth += 1 if bracket[1] in b"[{(" else -1
        if depth == 0:
            return position
    raise ValueError(BROKEN_OFF)


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

    Tuples become lists. Most reprs become JSON by exchanging quotes and are then parsed at C speed; the rest goes
    through `ast`. Raises ValueError for whatever is more than a literal.
    """
    text = span.decode()
    if '"' not in text and "\\" not in text:
        try:
            return orjson.loads(_without_scalars(text).replace("'", '"'))
        except orjson.JSONDecodeError:
            pass
    try:
        if not _flat(text):
            raise SyntaxError("more than containers, strings, numbers and NumPy's scalars")
        with catch_warnings():
            simplefilter("ignore")  # what the compiler thinks of "1if" is no matter here
            return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"no Python literal: {str(error) or 'nested too deeply'}") from None


_STRINGS = re.compile(r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*\"""", re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*|(?<=np\.)\w+|(?<=numpy\.)\w+")
_KNOWN_WORD = re.compile(r"np|numpy|nan|inf|None|True|False|(?:float|u?int)(?:16|32|64|8)|bool_?|str_|[bBuUrR]")
# An operator between two values, one minus after another, a call of a call, an index, an attribute of an attribute.
_CHAIN = re.compile(r"[^\w\s.,:()\[\]{}-]|[\w)\]}]\s*-|-\s*-|[)\]}]\s*[(\[{]|\w\s*\[|(?<!\w)[^\W\d]\w*\s*\.\s*\w+\s*\.")


def _flat(text: str) -> bool:
    """Whether only brackets can nest in a text, of which the parser takes 200: Python 3.10 dies of a long 1+1+1+..."""
    rest = re.sub(r"(?<=[\d.])[eE][-+]?(?=\d)", "e", _STRINGS.sub(" ", text))
    return not _CHAIN.search(rest) and all(map(_KNOWN_WORD.fullmatch, _WORD.findall(rest)))


def _without_scalars(text: str) -> str:
    """`np.float32(0.5)` as 0.5, where only such scalars have parentheses (a file name may)."""
    if "np." not in text:
        return text
    strings = "".join(text.split("'")[1::2])
    if "(" in strings or ")" in strings:
        return text
    opened = text.count("(")
    for scalar in _SCALARS:
        opened -= text.count(scalar)
        text = text.replace(scalar, "")
    return text if opened else text.replace(")", "")


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() | bytes() | None as value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item) for item in items]
        case ast.Dict(keys=keys, values=values) if None not in keys:
            return {_value(key): _value(value) for key, value in zip(keys, values, strict=True) if key is not None}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Name(id="nan" | "inf" as name):
            return float(name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=kind), args=[argument], keywords=[]):
            if re.fullmatch(r"(float|u?int)(16|32|64|8)|bool_?|str_", kind):
                return _value(argument)
    raise ValueError(f"{ast.unparse(node)[:60]} is no literal")
