"""The lines of one group of a stream's records (`--by`), and the fields by which a line belongs to a group."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import orjson

from hoicli.io.stored_lines import StoredLines
from hoicli.io.streams import Item, Line
from hoicli.records.parsing import Record, dump, parse

_TEXT = rb'"(?:[^"\\]|\\.)*"'
_MEMBER = rb"\s*%b\s*:\s*(?:%b|[-+.\w]+)\s*" % (_TEXT, _TEXT)  # a key with a text, a number, true, false or null
_HEAD = re.compile(rb"\s*\{(?:%b,)*" % _MEMBER)
"""The beginning of a record up to its first list or object."""
_TAIL = re.compile(rb"\]((?:,%b)+)\}\s*" % _MEMBER)
"""The end of a record after its last list."""
_ID = re.compile(rb'("image_id"\s*:\s*)(?:%b|[-+.\w]+)' % _TEXT)


def read_fields(line: Line, names: Sequence[str]) -> Record:
    """Return the fields of a record that hold no list or object, at least those of `names`.

    Nearly all of a line is boxes and triplets. These are parsed only if a field in `names` may stand between them:
    fields before the first list and after the last one are found without parsing the line. Raises `DataError` for a
    line that is no record."""
    head = _HEAD.match(line.data)
    last_bracket = line.data.rfind(b"]")
    tail = _TAIL.fullmatch(line.data, last_bracket) if last_bracket >= 0 else None
    try:
        fields: Record = orjson.loads(head[0].rstrip(b", \t") + b"}") if head else {}
        fields |= orjson.loads(b"{" + tail[1][1:] + b"}") if tail else {}
    except orjson.JSONDecodeError:
        fields = {}
    lacking = [b'"%b"' % name.encode() for name in names if name not in fields]
    may_be_inside = any(key in line.data for key in lacking) or (lacking and b"\\" in line.data)  # an escaped key
    if "image_id" in fields and not may_be_inside:
        return fields
    return {key: value for key, value in parse(line).items() if type(value) not in (list, dict) or key in names}


def _rename_image(line: Line, image_id: str) -> Line:
    """Return the line with another image id in its record."""
    head = _HEAD.match(line.data)
    begin = head[0] if head else b""
    renamed, count = _ID.subn(lambda match: match[1] + orjson.dumps(image_id), begin, count=1)
    data = renamed + line.data[len(begin) :]
    if not count:  # the id stands after the first list, so the whole record must be parsed
        data = dump(parse(line) | {"image_id": image_id}).rstrip()
    if isinstance(line, Item):
        return Item(line.file, line.number, data, line.index)
    return replace(line, data=data)


@dataclass
class GroupLines:
    """The lines of one group of a stream, which can be iterated over again and again.

    name: what messages call them. stored: all lines of the stream. numbers: those of the group among them. image_ids:
    the id that the ground truth has for the image of a line, by the line's number, where the line has another one."""

    name: str
    stored: StoredLines
    numbers: array[int] = field(default_factory=lambda: array("q"))
    image_ids: dict[int, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Line]:
        """Yield the lines, with the ids of the ground truth. Raises `DataError` for a file that has changed."""
        for number, line in zip(self.numbers, self.stored.read(self.numbers), strict=True):
            image_id = self.image_ids.get(number)
            yield line if image_id is None else _rename_image(line, image_id)
