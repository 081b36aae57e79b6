"""Files that the released evaluators read and write."""

from __future__ import annotations

import json
import os
from typing import Any

from hoicli.errors import DataError, UsageError, not_json
from hoicli.io.opened_files import open_input, refuse_repeated_key
from hoicli.io.outputs import atomic_path


def read_json(path: Any, argument: str, kind: type) -> Any:
    """Return the list or dict (`kind`) in a JSON file of released annotations. Raises `DataError`, `UsageError`."""
    if not isinstance(path, str | os.PathLike):
        raise UsageError(f"{argument}={path!r}: is no path; give the released annotations")
    with open_input(os.fspath(path)) as file:
        data = file.read()
    place = os.fspath(path)
    try:
        content = json.loads(data)
    except json.JSONDecodeError as error:
        raise not_json(error, place, "give the released annotations") from None
    except UnicodeDecodeError:
        raise DataError("not JSON; give the released annotations", place=place, code="damaged") from None
    if not isinstance(content, kind):
        problem = f"{type(content).__name__}, not a {kind.__name__}"
        raise DataError(f"{problem}; give the released annotations", place=place)
    refuse_repeated_key(data, content, place)
    return content


def write_file(path: Any, argument: str, data: bytes) -> None:
    """Write a file whole or not at all. Raises `UsageError` if it cannot be created, `DataError` if writing fails."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise UsageError(f"{argument}={path!r}: is no path; give the file to write", code="bad-output")
    with atomic_path(os.fspath(path), argument) as temporary, open(temporary, "wb") as file:
        file.write(data)
