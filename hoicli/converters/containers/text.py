"""Lists of JSON or of Python literals in text, read item by item without evaluation; and JSON lists written item by
item."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from warnings import catch_warnings, simplefilter

import orjson

from hoicli.io.outputs import open_output


def split_items(data: bytes, start: int, *, to_end: bool = False) -> Iterator[bytes]:
    """The items of the list whose content starts at `start`, as slices, without a tree of the whole.

    Items that are dictionaries nearly always begin with the same key, so the text is cut where that beginning recurs;
    where the cut is not plainly the end of one item, the brackets are followed one by one. Each cut is looked for and
    tried once, so that the work is that of reading the file a few times. The list ends at its own closing bracket
    (`to_end`: with nothing behind it). Raises ValueError where it breaks off.
    """
    begin = after = cut = _skip_space(data, start)
    first_key = _FIRST_KEY.match(data, begin)
    while data[after : after + 1] != b"]":
        end = -1
        if first_key and 0 <= cut <= begin:
            cut = data.find(first_key.group(), begin + 1)
            end = _plain_end(data, begin, cut)
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
AS_JSON = "save it with json.dump"
LONGEST = 1 << 20
"""Characters of an item that may be parsed by `ast`, which takes up to 480 bytes and 7 microseconds for each. Images
have 20,000, and the text of most is parsed otherwise."""
MOST_ESCAPED = 10_000
"""Strings of an item with backslashes or double quotes, each of which `ast` reads. An image has one, its file name."""
LARGEST_KEY = 1 << 31
"""Larger numbers as keys may collide, all of them."""

_SPACE = re.compile(rb"\s*")
_STRING = rb"""(?:"[^"\\]*(?:\\.[^"\\]*)*"|'[^'\\]*(?:\\.[^'\\]*)*')"""
_FIRST_KEY = re.compile(rb"""\{\s*(?:"[^"\\]*"|'[^'\\]*')\s*:""")
_TO_BRACKET = re.compile(rb"""[^][{}()"']*(?:%b[^][{}()"']*){0,500}([][{}()]?)""" % _STRING, re.DOTALL)
"""Up to the next bracket, or over so many strings: each takes 400 bytes while it is matched."""
_SCALAR = re.compile(rb"""%b|[^][{}()"',\s]+""" % _STRING, re.DOTALL)
_BESIDE_STRUCTURE = bytes(set(range(256)) - set(b"[]{}()\"'\\"))


def _skip_space(data: bytes, position: int) -> int:
    match = _SPACE.match(data, position)
    return match.end() if match else position


def _plain_end(data: bytes, begin: int, cut: int) -> int:
    """Where the item ends if it is all there is before `cut`, or -1 where that is not plain to see.

    What is left of the text without everything but brackets, quotes and backslashes tells: when each quote meets
    its partner, no string holds a bracket, and the brackets must come in pairs inside one outer pair.
    """
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
    """Where the value at `begin` ends; brackets in strings do not count. Raises ValueError if it does not end."""
    if data[begin : begin + 1] not in (b"{", b"[", b"("):
        scalar = _SCALAR.match(data, begin)
        if scalar is None:
            raise ValueError(BROKEN_OFF)
        return scalar.end()
    depth, position = 0, begin
    while (bracket := _TO_BRACKET.match(data, position)) and bracket.end() > position:
        position = bracket.end()
        depth += (bracket[1] in b"[{(") - (bracket[1] in b"]})")  # nothing is in both
        if depth == 0:
            return position
    raise ValueError(BROKEN_OFF)


def write_items(path: str, items: Iterable[bytes], brackets: bytes) -> None:
    """Write a JSON list or object, one line for each item, as the items come."""
    with open_output(path) as output:
        before = brackets[:1]
        for item in items:
            output(before + item)
            before = b",\n"
        output((brackets if before == brackets[:1] else brackets[1:]) + b"\n")


def json_item(span: bytes) -> Any:
    """One item of a JSON list; NaN (from json.dump) is accepted, so that the check of records can name its place."""
    try:
        return orjson.loads(span)
    except orjson.JSONDecodeError:
        return json.loads(span)


# The text that NumPy 2 writes before each number of a repr.
_SCALARS = tuple(f"np.{kind}{bits}(" for kind in ("float", "int", "uint") for bits in (16, 32, 64))


def literal(span: bytes) -> Any:
    """A Python literal without evaluating anything: containers, strings, numbers, NumPy scalars, nan and inf.

    Tuples become lists. Most reprs become JSON by exchanging quotes and are then parsed at C speed; the rest goes
    through `ast`, up to LONGEST characters. Raises ValueError for whatever is more than a literal.
    """
    text = span.decode()
    try:
        return orjson.loads(_without_scalars(_plain_strings(text)).replace("'", '"'))
    except orjson.JSONDecodeError:
        pass
    if len(text) > LONGEST:
        raise ValueError(f"{len(text):,} characters that differ from JSON by more than quotes; {AS_JSON}")
    try:
        if not _flat(text):
            raise SyntaxError("more than containers, strings, numbers and NumPy's scalars")
        with catch_warnings():
            simplefilter("ignore")  # ignore the compiler's warnings about text like "1if"
            return _value(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError(f"no Python literal: {str(error) or 'nested too deeply'}") from None


_STRINGS = re.compile(r"""'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*\"""", re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*|(?<=np\.)\w+|(?<=numpy\.)\w+")
_KNOWN_WORD = re.compile(r"np|numpy|nan|inf|None|True|False|(?:float|u?int)(?:16|32|64|8)|bool_?|str_|[bBuUrR]")
CHAINS = (
    (r"[^\w\s.,:()\[\]{}-]", "1+1+1"),  # an operator
    (r"[\w)\]}]\s*-", "1 - 1 - 1"),  # a minus after a value
    (r"-\s*-", "- - 1"),  # one minus after another
    (r"[)\]}]\s*[(\[{]", "np.int64()()()"),  # a call of a call, an index of an index
    (r"\w\s*\[", "np [0]"),  # an index
    (r"(?<!\w)[^\W\d]\w*\s*\.\s*\w+\s*\.", "np.nan.nan"),  # an attribute of an attribute
)
"""(pattern, example) of each way to make a syntax tree deep without brackets."""
_CHAIN = re.compile("|".join(pattern for pattern, _ in CHAINS))


def _flat(text: str) -> bool:
    """Whether only brackets nest in a text, which the parser limits to 200 levels: Python 3.10 crashes on a long
    1+1+1+..."""
    rest = re.sub(r"(?<=[\d.])[eE][-+]?(?=\d)", "e", _STRINGS.sub(" ", text))
    return not _CHAIN.search(rest) and all(map(_KNOWN_WORD.fullmatch, _WORD.findall(rest)))


def _plain_strings(text: str) -> str:
    """The text with JSON's escapes for every character of a string that holds a double quote or a backslash."""
    if '"' not in text and "\\" not in text:
        return text

    pieces: list[str] = []
    at = 0
    with catch_warnings():
        simplefilter("ignore")  # as above: of an escape that Python does not know
        for match in _STRINGS.finditer(text):
            string = match[0]
            if '"' not in string and "\\" not in string:
                continue
            try:
                escaped = json.dumps(str(ast.literal_eval(string)))
            except (SyntaxError, ValueError):
                return text
            if len(pieces) > 2 * MOST_ESCAPED:
                raise ValueError(f"more than {MOST_ESCAPED:,} strings with backslashes or double quotes; {AS_JSON}")
            pieces += [text[at : match.start()], "'" + escaped[1:-1].replace("'", "\\u0027") + "'"]
            at = match.end()
    return "".join([*pieces, text[at:]])


def _without_scalars(text: str) -> str:
    """`np.float32(0.5)` as 0.5, if only such scalars have parentheses (file names may have them, too)."""
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
            return {_key(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Name(id="nan" | "inf" as name):
            return float(name)
        case ast.Call(func=ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=kind), args=[argument], keywords=[]):
            if re.fullmatch(r"(float|u?int)(16|32|64|8)|bool_?|str_", kind):
                return _value(argument)
    raise ValueError(f"{ast.unparse(node)[:60]} is no literal")


def _key(node: ast.expr | None) -> str | bytes | int:
    key = _value(node) if node else None
    if isinstance(key, str | bytes) or (isinstance(key, int) and abs(key) < LARGEST_KEY):
        return key
    raise ValueError("no literal for a key: only text, and whole numbers below 2**31")
