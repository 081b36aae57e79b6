"""A stream of predictions or of match records; the first line decides which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from hoicli.errors import DataError, UsageError
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.io.progress import READING
from hoicli.io.streams import Line, Opener, Stream, files
from hoicli.records.parsing import Record, parse
from hoicli.vocabulary.datasets import DATASETS


class Predictions(Stream):
    """Prediction records or match records. Reading it raises `DataError` if it is empty."""

    weight = READING

    def __init__(self, paths: Sequence[str], opener: Opener = files) -> None:
        super().__init__(paths, "predictions", opener)

    def __iter__(self) -> Iterator[Line]:
        self.first  # noqa: B018 (raises if the stream is empty)
        return super().__iter__()

    @cached_property
    def _match_record(self) -> Record | None:
        """The first line if it is a match record, else None."""
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

    def unmatched(self, command: str) -> Predictions:
        """The stream itself. Raises `UsageError` for match records, which the command cannot use."""
        if self.matched:
            raise UsageError(f"{command} needs the predictions themselves, not match records")
        return self
