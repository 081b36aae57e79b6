"""What a pickle may cost: time and size that its bytes can justify, whatever its instructions say.

Three ways lead from a few bytes to hours of work, and each has its limit here.

A tuple that holds another one twice, that one a third twice and so on is hashed in time 2 ** depth when it becomes a
key, in C, where no signal is heard. Integers of 64 bits may have the same hash, by the thousand. `needs_care` finds
such instructions before anything is built, and `require_plain_keys` looks at the keys of such a file.

One huge key that is set over and over costs the square of the file. `Watched` hands the bytes out in pieces and stops
when the processor has worked SECONDS and SECONDS_PER_MB for them.

A list that stands in many places is written as often as it stands. `require_tree` counts it as often.
"""

from __future__ import annotations

import gc
import io
import re
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from hoicli.errors import DataError

SECONDS, SECONDS_PER_MB = 2.0, 2.0
"""Of the processor. Dumps take 0.02 to 0.2 seconds a megabyte."""

PIECE, LONGEST_FRAME = 1 << 14, 1 << 20
"""Bytes handed out at once, and in a frame, which is read whole: pickle writes frames of 64 KiB."""

MOST_KEYS = 10_000
"""Keys set by one instruction; pickle writes a thousand."""

LARGEST_KEY = 100
"""Parts of a tuple or frozenset that is a key, those within its parts included."""

PARTS, PARTS_PER_BYTE = 1 << 20, 4
"""Values in the tree that a pickle stands for, what stands in several places counted in each. Dumps have 0.2 to 0.5 a
byte; a shared box of four numbers is two bytes."""

DEEPEST = 100
"""Containers within containers; a dump has six."""


def _up_to(longest: int, zeros: bytes = b"") -> bytes:
    """A pattern: a size of one byte and the zeros that follow it, and so many bytes."""
    return b"(?:%s)" % b"|".join(b"%b.{%d}" % (re.escape(bytes([size]) + zeros), size) for size in range(longest + 1))


_HARMLESS = re.compile(
    rb"(?:h.G........|h.K.(?![KM\x85])|h.h.C(?:\x04....|\x08........)\x94\x86\x94R\x94|G........"
    rb"|[]})(ueasN\x88\x89\x94012lRb\x81\x8f\x92\x93]+"
    rb"|[t\x85-\x87](?:\x94|q.|r....|p[^\n]*\n)?[Rb]|(?:K.|M..)(?:\x85|(?:K.|M..)(?:\x86|(?:K.|M..)\x87))"
    rb"|[hKqQ].|[jJr]....|M..|[\x8cUC]%b|[XT]%b|\x8a%b|\x80.|[IL]-?\d{1,17}L?\n|[FSVgpP][^\n]*\n"
    rb"|c[^\n]*\n[^\n]*\n){1,2000}" % (_up_to(63), _up_to(63, b"\0\0\0"), _up_to(7)),
    re.DOTALL,
)
_COUNTED = {**dict.fromkeys(b"\x8cUC", 1), **dict.fromkeys(b"XBT", 4), **dict.fromkeys(b"\x8d\x8e\x96", 8)}
"""Instructions that are followed by a size and so many bytes -> how many bytes the size has."""
_FRAME = 0x95
_CARE = b"t\x85\x86\x87io\x91\x90d\x8a\x8bIL"
"""Other tuples and the two calls whose arguments are no tuple; frozensets, items of a set, a dictionary with all its
items; integers of 64 bits and more, of which many have the same hash."""


def needs_care(data: bytes) -> bool:
    """Whether a pickle has instructions of _CARE, or a frame beyond measure, before it ends or breaks off."""
    position = 0
    while position < len(data):
        if run := _HARMLESS.match(data, position):
            position = run.end()
            continue
        code = data[position]
        if code == _FRAME:
            size = int.from_bytes(data[position + 1 : position + 9], "little")
            if LONGEST_FRAME < size <= len(data):  # one beyond the file's end is refused by the machine itself
                return True
            position += 9
        elif code in _COUNTED:
            begin = position + 1 + _COUNTED[code]
            position = begin + int.from_bytes(data[position + 1 : begin], "little")
        else:
            return code in _CARE
    return False


class Watch:
    """Stops what takes more of the processor than `size` bytes can justify."""

    def __init__(self, size: int) -> None:
        self._end = time.thread_time() + SECONDS + SECONDS_PER_MB * size / 1e6

    def look(self) -> None:
        """Raises `DataError` when the time is over."""
        if time.thread_time() > self._end:
            raise DataError("takes longer to build than its size can justify; save it again as plain lists")


class Watched(io.BytesIO):
    """The bytes of a pickle, in pieces, between which the time is looked at and Ctrl-C is heard."""

    def __init__(self, data: bytes, watch: Watch) -> None:
        super().__init__(data)
        self._data = data
        self._watch = watch

    def peek(self, _: int = 0, /) -> bytes:
        """The bytes that come next. Having it, the machine does not ask for every instruction by a call of its own."""
        self._watch.look()
        position = self.tell()
        return self._data[position : position + PIECE]


def require_plain_keys(keys: Sequence[Any]) -> None:
    """The keys of a dictionary or items of a set, as many as one instruction brings.

    Raises `DataError` for a tuple or frozenset that would take long to hash, and for more than MOST_KEYS.
    """
    if len(keys) > MOST_KEYS:
        raise DataError(f"brings {len(keys):,} keys at once, pickle no more than 1,000; write it with pickle.dump")
    for key in keys:
        parts, count = [key], 0
        while parts:
            part = parts.pop()
            if type(part) is tuple or type(part) is frozenset:
                count += len(part) or 1
                if count > LARGEST_KEY:
                    raise DataError(
                        f"uses a tuple of more than {LARGEST_KEY} parts as a key; save it with text as keys"
                    )
                parts.extend(part)


def require_tree(value: Any, size: int, array: type[np.ndarray[Any, Any]]) -> None:
    """Raises `DataError` for what is nested beyond DEEPEST, or stands for far more than `size` bytes can hold.

    `array` is the class of the arrays in it, each of which counts as its numbers.
    """
    containers = {list, dict, tuple, set, frozenset, array}
    level, left = [value], PARTS + PARTS_PER_BYTE * size
    for _ in range(DEEPEST):
        below: list[Any] = []
        for start in range(0, len(level), PIECE):
            inside = gc.get_referents(*level[start : start + PIECE])
            found = [part for part in inside if type(part) in containers]
            left -= sum([part.size if type(part) is array else len(part) for part in found])
            if left < 0:
                raise DataError("repeats its parts so often that no dump would; save it again without shared lists")
            below += filter(gc.is_tracked, found)  # not dictionaries of numbers and text alone
        if not below:
            return
        level = below
    raise DataError(f"is nested more than {DEEPEST} deep, or holds itself; save it again as plain lists")
