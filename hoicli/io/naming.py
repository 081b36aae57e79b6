"""What the streams of a command are called, where the user gives them no names: after their files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from hoicli.errors import UsageError, arg


def names_of_files(paths: Sequence[str]) -> list[str]:
    """A name for each path, all different: the file's up to its first dot; where two would be called the same, with as
    many of the folders above as tell them apart (`cdn/preds` and `upt/preds`), or else with the endings, too
    (`preds.json` and `preds.jsonl`); `-` is "stdin".

    Raises `UsageError` for a path given twice.
    """
    parts = [("<stdin>",) if path == "-" else PurePath(os.path.normpath(path)).parts or (path,) for path in paths]
    twice = next((path for path, count in Counter(parts).items() if count > 1), None)
    if twice is not None:
        problem = f"{os.path.join(*twice)} is given twice: names must differ"
        raise UsageError(f"{problem}; leave one out, or give each a name with {arg('name')}")
    bare = [
        ("stdin",) if path == "-" else (*above, name.split(".")[0] or name)
        for path, (*above, name) in zip(paths, parts, strict=True)
    ]
    return [_shortest(place, bare) or _shortest(place, parts) or "/".join(parts[place]) for place in range(len(parts))]


def _shortest(place: int, parts: Sequence[tuple[str, ...]]) -> str:
    """The name at this place with the fewest folders that tell it, and those that end in the same, apart; "" if none
    do."""
    own = parts[place]
    alike = [other for other in parts if other[-1] == own[-1]]
    for count in range(1, max(map(len, alike)) + 1):
        ends = [other[-count:] for other in alike]
        if len(set(ends)) == len(ends):
            return "/".join(own[-count:]).replace("//", "/")
    return ""
