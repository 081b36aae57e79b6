"""A stream of predictions, or of match records (predictions that `hoicli match` matched with ground truth already). The
first line decides which it is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
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
    """Whether result rows must name the model (in their tags)."""

    def __init__(self, paths: Sequence[str], opener: Opener = files, lines_held: Iterable[Line] | None = None) -> None:
        """Name the files to read, `-` for stdin. opener: opens a path; lines_held: to read in place of the files."""
        super().__init__(paths, "predictions", opener, lines_held)

    def with_name(self, name: str, *, tagged: bool) -> Predictions:
        """Set the model's name; return the stream itself. tagged: whether result rows must name the model."""
        self.model = name
        self.tagged = tagged
        return self

    @classmethod
    def name_models(cls, paths: Sequence[str], names: Sequence[str], opener: Opener = files) -> list[Predictions]:
        """Return one stream for each path. Its model has the name at the same place in `names`, or without any names
        that of its file (`names_of_files`). Raises `UsageError` if the counts differ, or a name is empty or repeats."""
        if names and len(names) != len(paths):
            problem = f"{len(names)} names for {len(paths)} streams; give one a stream, in their order"
            raise UsageError(f"{arg('name')}: {problem}")
        # names of files need not be UTF-8, as result rows are
        chosen = [name.encode(errors="backslashreplace").decode() for name in names or names_of_files(paths)]
        if len(set(chosen)) != len(chosen) or "" in chosen:
            raise UsageError(f"{arg('name')}: {', '.join(chosen)}: names must differ; give each stream its own")
        tagged = bool(names) or len(paths) > 1
        return [cls([path], opener).with_name(name, tagged=tagged) for path, name in zip(paths, chosen, strict=True)]

    def __iter__(self) -> Iterator[Line]:
        """Return an iterator over the lines of all files. Raises `DataError` if there is none."""
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
        """The name of the dataset that match records are of: the one the first record states, else the one its protocol
        was published for. None for predictions, and if neither is a shipped dataset."""
        record = self._match_record
        if record is None:
            return None
        if record.get("dataset") in DATASETS:
            return str(record["dataset"])
        protocol = PROTOCOLS.get(str(record["protocol"]))
        return None if protocol is None else protocol.dataset

    def refuse_another_dataset(self, dataset: str | None) -> Predictions:
        """Return this stream. Raises `UsageError` for match records of another dataset than the one named. dataset:
        None if none is named; one from a file is not compared."""
        if dataset in DATASETS and self.dataset not in (None, dataset):
            raise UsageError(f"{arg('dataset', dataset)}: the matches are of {self.dataset}; leave it out")
        return self

    def refuse_match_records(self, command: str) -> Predictions:
        """Return this stream. Raises `UsageError` if it has match records: the command needs the predictions
        themselves. command: its name, for the message."""
        if self.matched:
            raise UsageError(f"{command} needs the predictions themselves, not match records")
        return self


def names_of_files(paths: Sequence[str]) -> list[str]:
    """Return a different name for each path: the file's name up to its first dot; "stdin" for `-`.

    If two names would be equal, all names get as many folders in front as are needed to tell them apart (`cdn/preds`
    and `upt/preds`), or else their endings, too (`preds.json` and `preds.jsonl`). Raises `UsageError` for equal paths.
    """
    full_parts = [("<stdin>",) if path == "-" else PurePath(os.path.normpath(path)).parts or (path,) for path in paths]
    for parts, count in Counter(full_parts).items():
        if count > 1:
            problem = f"{os.path.join(*parts)} is given twice: names must differ"
            raise UsageError(f"{problem}; leave one out, or give each a name with {arg('name')}")
    parts_without_ending = []
    for path, (*folders, file) in zip(paths, full_parts, strict=True):
        parts_without_ending.append(("stdin",) if path == "-" else (*folders, file.split(".")[0] or file))
    for parts_of_paths in (parts_without_ending, full_parts):
        for length in range(1, max(map(len, parts_of_paths)) + 1):  # how many parts from the end make a name
            names = ["/".join(parts[-length:]).replace("//", "/") for parts in parts_of_paths]
            if len(set(names)) == len(names):
                return names
    raise AssertionError("different paths have different names")
