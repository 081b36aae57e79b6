"""One line of JSON as a record, or the reason why it is not one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson

from hoicli.errors import MALFORMED, DataError, Place, UsageError, arg, not_json
from hoicli.io.messages import display_name
from hoicli.io.opened_files import open_input, refuse_repeated_key
from hoicli.io.streams import Line

Record = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """Something wrong with one field of one record, as `DataError` has it; `text` ends in what to do about it.

    told: the text, or what makes it, where that takes long and only the first of many problems is shown.
    """

    field: str
    told: str | Callable[[], str]
    code: str = MALFORMED

    @property
    def text(self) -> str:
        """Return what is wrong, and what to do about it."""
        return self.told if isinstance(self.told, str) else self.told()

    def error(self, place: str) -> DataError:
        """Return the problem as the error of the line or file at `place`."""
        return DataError(self.text, place=place, field=self.field, code=self.code)


def parse(line: Line) -> Record:
    """Return the JSON object that a line holds.

    Raises `DataError` with the place, and with the field if a NaN or an infinity makes it invalid JSON; for a key that
    occurs twice; and with the code not-whole for the last line of a stream whose command failed."""
    try:
        record = orjson.loads(line.data)
    except orjson.JSONDecodeError as error:
        problem, field = _why_not_json(line.data, error)
        raise DataError(problem, place=line.place, field=field) from None
    if type(record) is not dict:
        problem = _LIST if type(record) is list else f"{json_type(record)}, not an object; {_FOREIGN}"
        raise DataError(problem, place=line.place)
    if record.keys() == {STOPPED}:
        problem = f"{record[STOPPED]}; mend that, and make the whole stream again"
        raise DataError(problem, place=line.place, code="not-whole")
    refuse_repeated_key(line.data, record, line.place)
    return record


STOPPED = "error"
"""The only key of a line that ends a stream whose command failed: no reader may take what came before for the whole."""


@contextmanager
def ending(write: Callable[[bytes], object], command: str) -> Iterator[None]:
    """If the block fails, write a last line that says so, so that no reader takes the stream for whole. write: what
    writes to the stream; command: its name in that line."""
    try:
        yield
    except (BrokenPipeError, UsageError):
        raise
    except BaseException as error:
        write(dump({STOPPED: f"{command} stopped: {error or type(error).__name__}"}))
        raise


_FOREIGN = "a foreign dump goes through `hoicli convert` first"
_LIST = f"an array, not an object; a list of records becomes lines (jq -c '.[]' FILE), {_FOREIGN}"


_CONSTANT = re.compile(rb"\bNaN\b|\bInfinity\b")
_EXTRA_COMMA = re.compile(rb",\s*([\]}])")


def _is_json(data: bytes) -> bool:
    """Return whether bytes are valid JSON."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _why_not_json(data: bytes, error: Exception) -> tuple[str, str]:
    """Return (problem, field) of a line that orjson refuses; the likeliest mistakes are tried one after another."""
    if _CONSTANT.search(data):
        try:
            number = next(non_finite(json.loads(data)), None)
        except (ValueError, RecursionError):
            number = None
        if number is not None:
            field, value = number
            return f"{value}: numbers must be finite; correct what wrote it, or drop the item", field
    stripped = data.strip()
    if stripped[:1] == b"[":  # a list over many lines, most likely: a record never begins so
        return _LIST, ""
    if stripped == b"{":
        return f"a JSON object over several lines; a record is one line (jq -c .), {_FOREIGN}", ""
    if stripped[-1:] == b"," and _is_json(stripped[:-1]):
        return "a comma after the closing bracket; leave it out: a line is one object", ""
    if _EXTRA_COMMA.search(stripped) and _is_json(_EXTRA_COMMA.sub(rb"\1", stripped)):
        return "a comma before a closing bracket, which JSON does not have; leave it out", ""
    if stripped[:1] == b"{" and (stripped[-1:] not in b"}]" or "unexpected end" in str(error)):
        return f"the line is cut off (no closing bracket); write the file again, or pass {arg('on_error', 'skip')}", ""
    reason = re.sub(r": line \d+ column (\d+) \(char \d+\)", r" at character \1", str(error))
    if "UTF-8" in reason:
        reason = "no UTF-8 text"
    return f"not JSON ({reason}); {_FOREIGN}", ""


def non_finite(value: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of every NaN or infinity inside a decoded JSON value; a path is like `hois[3].score`. field:
    of `value`."""
    if isinstance(value, float) and not math.isfinite(value):
        yield field, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from non_finite(item, f"{field}.{key}" if field else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from non_finite(item, f"{field}[{index}]")


def json_type(value: object) -> str:
    """Return what JSON calls a decoded value."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
    return names.get(type(value), "a number" if type(value) in (int, float) else "null")


def is_number(value: object) -> bool:
    """Return whether a decoded value is a finite JSON number (true and false are not)."""
    try:
        return (type(value) is float or type(value) is int) and math.isfinite(value)
    except OverflowError:  # pickles and Python's literals may hold integers of hundreds of digits
        return False


def short(value: Any) -> str:
    """Return a value as messages show it: JSON, cut to 60 characters."""
    try:
        text = json.dumps(value, default=str)
    except (ValueError, RecursionError):  # it contains itself, or an integer of thousands of digits
        text = type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def read_object(path: str, kind: str, of: str, *, limit: int) -> Record:
    """Return the JSON object in a file, such as a protocol or a recipe. kind: what it is, a name of `hoicli doctor
    --schema`; of: what the object is made of, for messages; limit: the most bytes it may have. Raises `DataError` that
    names the file."""
    place = display_name(path)
    with open_input(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DataError(f"too large for a {kind}; one is a JSON object of {of}", place=place)
    schema_hint = f"hoicli doctor --schema {kind} says what it holds"
    try:
        record = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise not_json(error, place, schema_hint) from None
    if type(record) is not dict:
        raise DataError(f"{json_type(record)}, not a JSON object; {schema_hint}", place=place)
    refuse_repeated_key(data, record, place)
    return record


def dump(record: Mapping[str, Any]) -> bytes:
    """Return a record as one line of JSON. The caller has checked that its numbers are finite.

    Raises `DataError` for what such JSON cannot hold: integers beyond 64 bits, text that is not Unicode."""
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        place = Place(f"image {record['image_id']}" if "image_id" in record else "")
        raise DataError(f"cannot be written as JSON ({error}); correct what wrote it", place=place) from None
