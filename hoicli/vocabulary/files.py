"""Files of datasets, read and checked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson

from hoicli.errors import DataError, arg
from hoicli.io.inputs import open_input, readable
from hoicli.vocabulary.faults import MAKE, check

LARGEST = 1 << 26
"""Bytes of a file: SWIG-HOI's 14,130 interactions take a quarter of a megabyte."""


def dataset_bytes(path: str) -> bytes:
    """What is in a dataset's file, unpacked. Raises `DataError` that names the file."""
    if path == "-":
        raise DataError("a dataset is read from a file, not from stdin", place=arg("dataset"))
    with open_input(path) as stream, readable(path):
        data = stream.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise DataError(f"more than {LARGEST >> 20} MiB: no file of a dataset's classes; {MAKE}", place=path)
    return data


def dataset_content(data: bytes, path: str, *, taken: Collection[str] = ()) -> dict[str, Any]:
    """The checked content of a dataset's file. `taken`: names it may not have.

    Raises `DataError` with the file, the field, what is wrong and what to do.
    """
    if not data.strip():
        raise DataError(f"is empty; {MAKE}", place=path)
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        records = b"\n{" in data.strip() and b'"boxes"' in data
        what = "these are records, not a dataset" if records else f"not JSON ({error})"
        raise DataError(f"{what}; {MAKE}", place=path) from None
    check(content, path)
    if content["name"] in taken:
        raise DataError(f"{content['name']!r} is a dataset of hoicli's own; choose another", place=path, field="name")
    return dict(content)
