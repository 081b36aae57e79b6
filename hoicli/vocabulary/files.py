"""Datasets that hoicli does not ship, read and checked: the user's files, and what other packages add."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import orjson

from hoicli.errors import DataError, arg
from hoicli.io.claims import reads
from hoicli.io.inputs import open_input, readable
from hoicli.io.plugins import Plugin
from hoicli.vocabulary.contents import content_digest, vocabulary_of
from hoicli.vocabulary.faults import MAKE, check
from hoicli.vocabulary.labels import Vocabulary

LARGEST = 1 << 26
"""Bytes of a file: SWIG-HOI's 14,130 interactions take a quarter of a megabyte."""


def of_file(dataset: str, taken: Collection[str]) -> Vocabulary:
    """The vocabulary in a file. taken: names it may not have. Raises `DataError` with the file, the field, what is
    wrong and what to do."""
    path = Path(dataset)
    reads(path)  # a file that was read before, too
    data = _of_pipe(dataset, path.stat().st_ino) if path.is_fifo() else _content(dataset)
    return _made(data, dataset, dataset, "", frozenset(taken))


def of_package(name: str, added: Plugin, taken: Collection[str]) -> Vocabulary:
    """The vocabulary that another package adds: a dict with the fields of a dataset's file. Signatures have the package
    with its version. Raises `DataError` as `of_file`."""
    content = {**added.value, "name": name} if isinstance(added.value, Mapping) else None
    data = orjson.dumps(content, default=str, option=orjson.OPT_NON_STR_KEYS)
    return _made(data, f"{name} of {added.owner}", name, added.owner, frozenset(taken))


@cache
def _of_pipe(path: str, number: int) -> bytes:  # noqa: ARG001 (a key of the cache)
    """What came through a pipe, which can be read once; `number` is the pipe's own."""
    return _content(path)


def _content(path: str) -> bytes:
    """What is in a file, unpacked. Raises `DataError` that names the file."""
    if path == "-":
        raise DataError("a dataset is read from a file, not from stdin", place=arg("dataset"))
    with open_input(path) as stream, readable(path):
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DataError(f"more than {LARGEST >> 20} MiB: no file of a dataset's classes; {MAKE}", place=path)
    return data


@cache
def _made(data: bytes, place: str, path: str, owner: str, taken: frozenset[str]) -> Vocabulary:
    """The vocabulary in a dataset's JSON, by its content: another file may stand at the path now, whatever its time.
    place: what messages call it; path: what options call it; owner: the package that adds it, in place of a digest."""
    if not data.strip():
        raise DataError(f"is empty; {MAKE}", place=place)
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        records = b"\n{" in data.strip() and b'"boxes"' in data
        what = "these are records, not a dataset" if records else f"not JSON ({error})"
        raise DataError(f"{what}; {MAKE}", place=place) from None
    check(content, place)
    if content["name"] in taken:
        raise DataError(f"{content['name']!r} is a dataset of hoicli's own; choose another", place=place, field="name")
    return replace(vocabulary_of(content), digest=owner or content_digest(content), path=path)
