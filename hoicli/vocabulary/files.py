"""Datasets that hoicli does not ship: the user's files, and what other packages add."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import orjson

from hoicli.errors import DataError, Place, arg, not_json
from hoicli.io.file_claims import register_input
from hoicli.io.opened_files import open_input, readable, refuse_repeated_key
from hoicli.io.plugins import Plugin
from hoicli.vocabulary.content_checks import MAKE, check
from hoicli.vocabulary.dataset_content import content_digest, vocabulary_of
from hoicli.vocabulary.labels import Vocabulary

LARGEST = 1 << 26
"""Bytes of a file: SWIG-HOI's 14,130 interactions take a quarter of a megabyte."""


def read_dataset(dataset: str, taken: Collection[str]) -> Vocabulary:
    """Return the vocabulary in the file of a dataset. taken: names that it may not have. Raises `DataError`."""
    path = Path(dataset)
    register_input(path)  # tells that this file is an input, also if its content is in the cache
    data = _read_pipe(dataset, path.stat().st_ino) if path.is_fifo() else _read_bytes(dataset)
    return _build_vocabulary(data, dataset, dataset, "", frozenset(taken))


def build_added_dataset(name: str, added: Plugin, taken: Collection[str]) -> Vocabulary:
    """Return the vocabulary of a dataset that another package adds. added: its entry point, a dict as in a dataset's
    file. The package and its version stand for the content in signatures."""
    content = {**added.value, "name": name} if isinstance(added.value, Mapping) else None
    data = orjson.dumps(content)
    return _build_vocabulary(data, f"{name} of {added.owner}", name, added.owner, frozenset(taken))


@cache
def _read_pipe(path: str, number: int) -> bytes:  # noqa: ARG001 (a key of the cache)
    """Return what came through a pipe, once and for all. number: its inode, as another pipe may come to the path."""
    return _read_bytes(path)


def _read_bytes(path: str) -> bytes:
    """Return the bytes of a dataset's file, unpacked. Raises `DataError` for stdin and for what cannot be read."""
    if path == "-":
        raise DataError("a dataset is read from a file, not from stdin", place=Place(arg("dataset")))
    with open_input(path) as stream, readable(path):
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DataError(f"more than {LARGEST >> 20} MiB: no file of a dataset's classes; {MAKE}", place=path)
    return data


@cache
def _build_vocabulary(data: bytes, place: str, path: str, owner: str, taken: frozenset[str]) -> Vocabulary:
    """Return the vocabulary that a dataset's JSON (`data`) describes, after a check of all fields. It is cached by the
    content and not by the path, where another file may stand by now.

    place: how messages name the dataset. owner: the package that adds it, "" for a file. taken: names that are not
    allowed. The vocabulary's `digest` is the owner, or a hash of a file's content."""
    if not data.strip():
        raise DataError(f"is empty; {MAKE}", place=place, code="empty")
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if b"\n{" in data.strip() and b'"boxes"' in data:
            raise DataError(f"these are records, not a dataset; {MAKE}", place=place) from None
        raise not_json(error, place, MAKE) from None
    refuse_repeated_key(data, content, place)
    check(content, place)
    if content["name"] in taken:
        raise DataError(f"{content['name']!r} is a dataset of hoicli's own; choose another", place=place, field="name")
    return replace(vocabulary_of(content), digest=owner or content_digest(content), path=path)
