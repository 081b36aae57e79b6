"""From lines to columns: many lines at a time, and one by one if a line is bad. A HICO-DET dump has three quarters of a
million triplets, so each field of some hundred lines becomes one column, checked as a whole. That only shows *that*
some line is bad. Then each line is checked alone to say *what* is wrong and *where*, and the good lines become columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from hoicli.io.streams import Line, Stream
from hoicli.io.workers import in_turns
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Floats, Ints
from hoicli.records.names import is_blank
from hoicli.records.parsing import Problem, Record, parse

BATCH = 256
"""Images in a batch: enough to make NumPy's overhead per call small, few enough to stay in cache."""

NUMBERS = (float, int)
"""The types of JSON's numbers, the more frequent first."""

Part = TypeVar("Part")


def read_columns(
    lines: Iterable[Line],
    build: Callable[[list[Line]], Part | None],
    check: Callable[[Record], Iterable[Problem]],
    policy: ErrorPolicy,
    *,
    register: ImageRegister,
    processes: int = 1,
) -> Iterator[Part]:
    """The result of `build` on each batch of lines, without bad lines. build: the fast pass; for a bad record it raises
    any exception that `attempt` expects, and gives None for an image that the register does not know. check: the
    careful pass, which yields the problems of exactly those records. register: remembers the `image_ids` of the parts.
    Several `processes` share the work: each reads all lines of the stream and takes its turn with a batch.

    Raises `DataError` for the first bad record, or counts it in `policy` and goes on, and at the end if all were bad;
    an image that the register refuses is bad too.
    """
    before, any_left = policy.skipped, False

    def again() -> Iterator[list[Line]]:
        return _batches(lines.again() if isinstance(lines, Stream) else lines)

    for given, result in in_turns(partial(attempt, build), _batches(lines), again, processes):
        made: Any = result
        if made is None or not register.add_all(made.image_ids, given):
            chunk = list(sound(given, check, policy, register))
            made = build(chunk) if chunk else None
        if made is not None:
            any_left = True
            yield made
    if policy.skipped > before and not any_left:
        policy.report(left=False)


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    lines = iter(lines)
    return iter(lambda: list(islice(lines, BATCH)), [])


def attempt(build: Callable[[list[Line]], Part | None], lines: list[Line]) -> Part | None:
    """The result of the fast pass; None if any line is bad."""
    try:
        return build(lines)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def sound(
    lines: list[Line], check: Callable[[Record], Iterable[Problem]], policy: ErrorPolicy, register: ImageRegister
) -> Iterator[Line]:
    """The good lines, registered; the first problem of each bad line goes to the policy."""
    for line in lines:
        with policy.item():
            record = parse(line)
            for problem in check(record):
                raise problem.error(line.place)
            register.add(str(record["image_id"]), line)
            yield line


def require(sound: bool | np.bool_) -> None:
    """Raises `ValueError` if a check of a record fails."""
    if not sound:
        raise ValueError


def typed(values: Iterable[Any], *allowed: type) -> None:
    """Raises `ValueError` for a value of another type: JSON's true is not an index, "1" is not a number. The most
    frequent type should come first."""
    types = list(map(type, values))
    others = len(types)
    for kind in allowed:
        if others:
            others -= types.count(kind)
    require(not others)


def image_ids(values: list[Any]) -> list[str]:
    """Ids as text. Raises `ValueError` for an id that is blank, or neither text nor an integer."""
    typed(values, str, int)
    require(not any(map(is_blank, values)))
    return [str(value) for value in values]


def numbers(values: list[Any], *types: type) -> Floats:
    """Finite numbers of the `types` (default: float and int); NaN for a missing one. Missing is None, if NoneType is
    among the types, or NaN, which only a reader can set, since JSON has none. Raises `ValueError` for anything else.
    """
    types = types or NUMBERS
    typed(values, *types)
    if type(None) in types:
        column = np.array(values, dtype=np.float64)
    else:
        column = np.fromiter(values, dtype=np.float64, count=len(values))
    require(not np.isinf(column).any())
    return column


def indices(values: list[Any], limit: Ints, *, nulls: bool = False) -> Ints:
    """Indices, each from 0 to below its limit; with `nulls`, None becomes -1. Raises `ValueError` for anything else."""
    typed(values, int, *((type(None),) if nulls else ()))
    missing = values.count(None) if nulls else 0
    column = integers([-1 if value is None else value for value in values] if missing else values)
    require(np.count_nonzero((column < 0) | (column >= limit)) == missing)
    return column


def integers(values: list[int]) -> Ints:
    """The integers as a column."""
    return np.fromiter(values, dtype=np.int64, count=len(values))
