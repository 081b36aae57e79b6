"""A stream of predictions or of match records; the first line decides which."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import PurePath

from hoicli.errors import DataError, UsageError, arg
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.io.streams import Line, Opener, Stream, files
from hoicli.records.parsing import Record, parse
from hoicli.vocabulary.datasets import DATASETS


class Predictions(Stream):
    """The prediction records or match records of one model. Reading an empty stream raises `DataError`."""

    model = ""
    """The model's name, where several may be told apart."""
    tagged = False
    """Whether rows must name the model."""

    def __init__(self, paths: Sequence[str], opener: Opener = files, lines_held: Sequence[Line] | None = None) -> None:
        super().__init__(paths, "predictions", opener, lines_held)

    def with_name(self, name: str, *, tagged: bool) -> Predictions:
        """Set the model's name, and whether rows must have it; return the stream itself."""
        self.model, self.tagged = name, tagged
        return self

    @classmethod
    def name_models(cls, paths: Sequence[str], names: Sequence[str], opener: Opener = files) -> list[Predictions]:
        """Return one stream for each path, whose model is named by `names` in order, or after the file
        (`names_of_files`). Raises `UsageError` if counts differ, or a name is empty or repeats."""
        if names and len(names) != len(paths):
            problem = f"{len(names)} names for {len(paths)} streams; give one a stream, in their order"
            raise UsageError(f"{arg('name')}: {problem}")
        chosen = list(names) or names_of_files(paths)
        chosen = [
            name.encode(errors="backslashreplace").decode() for name in chosen
        ]  # rows are UTF-8, names may not be
        if len(set(chosen)) != len(chosen) or "" in chosen:
            raise UsageError(f"{arg('name')}: {', '.join(chosen)}: names must differ; give each stream its own")
        tagged = bool(names) or len(paths) > 1
        return [cls([path], opener).with_name(name, tagged=tagged) for path, name in zip(paths, chosen, strict=True)]

    def __iter__(self) -> Iterator[Line]:
        self.refuse_empty()
        return super().__iter__()

    @cached_property
    def _match_record(self) -> Record | None:
        """The record in the first line if it is a match record, else None."""
        first = self.first
        try:
            record = parse(first)
        except DataError:
            return None
        return record if {"protocol", "predictions", "gt"} <= record.keys() else None

    @property
    def matched(self) -> bool:
        """Whether these are match records."""
        return self._match_record is not None

    @property
    def dataset(self) -> str | None:
        """The dataset of match records, None for predictions."""
        record = self._match_record
        if record is None or record.get("dataset") in DATASETS:
            return None if record is None else str(record["dataset"])
        protocol = PROTOCOLS.get(str(record["protocol"]))
        return None if protocol is None else protocol.dataset

    def refuse_match_records(self, command: str) -> Predictions:
        """Return the stream itself. Raises `UsageError` for match records, which the command cannot use."""
        if self.matched:
            raise UsageError(f"{command} needs the predictions themselves, not match records")
        return self


def names_of_files(paths: Sequence[str]) -> list[str]:
    """Return a different name for each path: the file's name up to its first dot; "stdin" for `-`.

    Where two would have the same name, all get as many of the folders above as tell them apart (`cdn/preds` and
    `upt/preds`), or else the endings, too (`preds.json` and `preds.jsonl`). Raises `UsageError` for a path given twice.
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
    candidates = (
        ["/".join(folder_names[-folders:]).replace("//", "/") for folder_names in named]
        for named in (bare, parts)
        for folders in range(1, max(map(len, named)) + 1)
    )
    return next(names for names in candidates if len(set(names)) == len(names))
