"""Lists of JSON or Python literals, read item by item without evaluation; and JSON lists written item by item."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import orjson

from hoicli.io.outputs import open_output


def items_of(data: bytes, start: int, parse: Callable[[bytes], Any], *, to_end: bool = False) -> Iterator[Any]:
    """Yield the items of a list in JSON or Python's notation, parsed one by one, so that the whole is never in memory.

    start: the position behind the list's opening bracket. parse: the function that makes a value of an item's text.
    to_end: whether nothing may follow the list's closing bracket. Raises ValueError where the list breaks off.

    Where an item ends is found in two ways. Dictionaries of a list nearly always begin with the same key, so the text
    is cut where that beginning recurs. If what lies before the cut is no whole item, the item's brackets are followed
    one by one, which is slower. Each cut is tried once, so that the work is that of reading the file a few times."""
    # begin: where the item begins; after: where what follows the item begins; cut: where the next item may begin.
    begin = after = cut = _skip_space(data, start)
    first_key = _FIRST_KEY.match(data, begin)
    while data[after : after + 1] != b"]":
        item, end = None, -1  # -1: the item was not read yet
        if first_key and 0 <= cut <= begin:
            cut = data.find(first_key.group(), begin + 1)
            body = data[begin:cut].rstrip(b" \t\r\n,") if cut >= 0 else b""
            with suppress(ValueError, RecursionError):
                item, end = parse(body), begin + len(body)
        if end < 0:
            end = _find_end(data, begin)
            item = parse(data[begin:end])
        yield item
        after = _skip_space(data, end)
        separator = data[after : after + 1]
        if separator not in (b",", b"]"):
            raise ValueError("neither a comma nor a closing bracket follows" if separator else BROKEN_OFF)
        begin = _skip_space(data, after + 1)
    if to_end and _skip_space(data, after + 1) != len(data):
        raise ValueError("something follows the list's closing bracket")


BROKEN_OFF = "the list breaks off"
_SPACE = re.compile(rb"\s*")
_STRING = r"""(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')"""
_FIRST_KEY = re.compile(rb"""\{\s*(?:"[^"\\]*"|'[^'\\]*')\s*:""")
_TO_BRACKET = re.compile(rb"""[^][{}()"']*(?:%b[^][{}()"']*){0,500}([][{}()]?)""" % _STRING.encode(), re.DOTALL)
"""The text up to the next bracket, or over 500 strings: each string takes 400 bytes while it is matched."""
_SCALAR = re.compile(rb"""%b|[^][{}()"',\s]+""" % _STRING.encode(), re.DOTALL)


def _skip_space(data: bytes, position: int) -> int:
    """Return the position of the next byte that is no white space."""
    match = _SPACE.match(data, position)
    return match.end() if match else position


def _find_end(data: bytes, begin: int) -> int:
    """Return the position behind the value at `begin`, by counting its brackets. Raises ValueError without an end."""
    if data[begin : begin + 1] not in (b"{", b"[", b"("):
        scalar = _SCALAR.match(data, begin)
        if scalar is None:
            raise ValueError(BROKEN_OFF)
        return scalar.end()
    depth, position = 0, begin
    # a match goes on to the next bracket outside of strings; over many strings it ends without one, b""
    while (bracket := _TO_BRACKET.match(data, position)) and bracket.end() > position:
        position = bracket.end()
        depth += (bracket[1] in b"[{(") - (bracket[1] in b"]})")  # opens +1, closes -1; b"" is in both: 0
        if depth == 0:
            return position
    raise ValueError(BROKEN_OFF)


def write_items(path: str, items: Iterable[bytes]) -> None:
    """Write a JSON list to a file, one line for each item, as the items come. items: JSON texts."""
    with open_output(path) as output:
        before = b"["
        for item in items:
            output(before + item)
            before = b",\n"
        output(b"[]\n" if before == b"[" else b"]\n")


def json_item(json_text: bytes) -> Any:
    """Return the value of a JSON text, such as one item of a list. NaN and Infinity, which Python's json.dump writes,
    are accepted, so that the check of records can name their place."""
    try:
        return orjson.loads(json_text)  # strict, and faster
    except orjson.JSONDecodeError as error:
        try:
            return _require_writable(json.loads(json_text))
        except UnicodeDecodeError as unicode_error:
            raise orjson.JSONDecodeError("not UTF-8", json_text.decode("latin-1"), unicode_error.start) from None
        except (ValueError, RecursionError):
            raise error from None


def _require_writable(value: Any) -> Any:
    """Return a value unchanged; raise ValueError if its texts cannot be written as UTF-8 (half a surrogate pair)."""
    json.dumps(value, ensure_ascii=False).encode()
    return value


# The text that NumPy 2 writes before each number of a repr.
_SCALARS = tuple(f"np.{kind}{bits}(" for kind, bits in product(("float", "int", "uint"), (16, 32, 64)))
_TOKEN = re.compile(
    rf"""(?P<string>{_STRING})
    |(?:np|numpy)\.(?:(?:float|u?int)(?:8|16|32|64)|bool_?|str_)\((?P<scalar>{_STRING}|[^()'"]*)\)
    |(?P<open>\()|(?P<close>,?\s*\))
    |(?P<word>(?<![\w.])[^\W\d]\w*)""",
    re.DOTALL | re.VERBOSE,
)
"""The parts of a Python literal that JSON writes differently: strings, NumPy's scalars, tuples, and words."""
_WORDS = {"None": "null", "True": "true", "False": "false", "nan": "NaN", "inf": "Infinity"}


def literal(literal_text: bytes) -> Any:
    """Return the value of a Python literal, as repr() writes it: containers, strings, numbers, NumPy scalars, nan and
    inf. It is rewritten as JSON; tuples become lists. Raises ValueError for anything more."""
    text = literal_text.decode()
    if '"' not in text and "\\" not in text:  # usually, an exchange of the quotes gives JSON; this is fast
        try:
            return orjson.loads(_unwrap_scalars(text).replace("'", '"'))
        except orjson.JSONDecodeError:
            pass
    return _require_writable(json.loads(_TOKEN.sub(_token_to_json, text)))  # each string and word one by one


def _token_to_json(token: re.Match[str]) -> str:
    """Return a match of _TOKEN as JSON writes it. Raises ValueError for a word that is none of _WORDS."""
    if token["string"] is not None:
        content = token["string"][1:-1]
        if "\\" in content:
            content = content.encode("latin-1", "backslashreplace").decode("unicode_escape")
        return json.dumps(content)
    if token["scalar"] is not None:
        return _TOKEN.sub(_token_to_json, token["scalar"])
    if token["word"] is not None:
        if token["word"] not in _WORDS:
            raise ValueError(f"{token['word'][:60]} is no Python literal")
        return _WORDS[token["word"]]
    return "[" if token["open"] else "]"


def _unwrap_scalars(text: str) -> str:
    """Return the text of a Python literal with `np.float32(0.5)` as 0.5. If anything but such scalars has parentheses
    (tuples, file names), return it unchanged: the scalars are then no JSON, and `literal` reads it in its other way."""
    if "np." not in text:
        return text
    strings = "".join(text.split("'")[1::2])  # every second part between quotes is inside of them
    if "(" in strings or ")" in strings:
        return text
    unwrapped, other_brackets = text, text.count("(")
    for scalar in _SCALARS:
        other_brackets -= unwrapped.count(scalar)
        unwrapped = unwrapped.replace(scalar, "")
    return text if other_brackets else unwrapped.replace(")", "")
