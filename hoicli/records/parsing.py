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
    """Something wrong with one field of one record.

    field: the path of the field in the record, such as "hois[3].score". message: what is wrong and what to do; or a
    function that returns it, as often only the first is shown. code: the error code for scripts."""

    field: str
    message: str | Callable[[], str]
    code: str = MALFORMED

    @property
    def text(self) -> str:
        """Return what is wrong, and what to do about it."""
        return self.message if isinstance(self.message, str) else self.message()

    def error(self, place: str) -> DataError:
        """Return the problem as an error to raise. place: the line or file of the record, for the message."""
        return DataError(self.text, place=place, field=self.field, code=self.code)


def parse(line: Line) -> Record:
    """Return the JSON object that a line holds.

    Raises `DataError`, with the place, for anything else, for a repeated key, and (not-whole) for the line by which a
    command that failed ends its output (see `mark_incomplete`)."""
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
"""The only key of the line by which a command that failed ends its output: readers refuse such an incomplete stream."""


@contextmanager
def mark_incomplete(write: Callable[[bytes], object], command: str) -> Iterator[None]:
    """Mark the output as incomplete if the block, which writes it, raises an exception: write a last line that says so,
    which readers refuse (`parse`)."""
    try:
        yield
    # nobody reads on, or the command was called wrongly: there is no output to mark
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
    """Return (what is wrong with a line that is no valid JSON, the field at fault or ""), the likeliest first."""
    if _CONSTANT.search(data):
        try:
            fault = next(find_non_finite(json.loads(data)), None)
        except (ValueError, RecursionError):
            fault = None
        if fault is not None:
            field, value = fault
            return f"{value}: numbers must be finite; correct what wrote it, or drop the item", field
    stripped = data.strip()
    if stripped[:1] == b"[":  # most likely the first line of a list of records
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


def find_non_finite(value: Any, field: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of every NaN or infinity inside a decoded JSON value. field: the path of the whole."""
    if isinstance(value, float) and not math.isfinite(value):
        yield field, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from find_non_finite(item, f"{field}.{key}" if field else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from find_non_finite(item, f"{field}[{index}]")


def json_type(value: object) -> str:
    """Return the JSON type of a decoded value in words, such as "an array"."""
    names = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
    names |= {int: "a number", float: "a number"}
    return names.get(type(value), "null")


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


def read_object(path: str, kind: str, content: str, *, limit: int) -> Record:
    """Return the JSON object in a file, such as a protocol or a recipe. Raises `DataError` for a file of more than
    `limit` bytes, and for anything else than one JSON object.

    kind: a name that `hoicli doctor --schema` takes; content: what the object is made of, for messages."""
    place = display_name(path)
    with open_input(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DataError(f"too large for a {kind}; one is a JSON object of {content}", place=place)
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
    """Return a record as one line of JSON. Its numbers must be finite: orjson would write NaN as null.

    Raises `DataError` for what orjson cannot write: integers beyond 64 bits, text that is not Unicode."""
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY)
    except TypeError as error:
        place = Place(f"image {record['image_id']}" if "image_id" in record else "")
        raise DataError(f"cannot be written as JSON ({error}); correct what wrote it", place=place) from None
