"""A stream of predictions, or of the match records made of them: its first line tells which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from hoicli.errors import DataError, UsageError
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.io.streams import Line, Stream
from hoicli.records.parsing import Record, parse


class Predictions(Stream):
    """Prediction records or match records. Raises `DataError`, as soon as it is read, where there are none."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(paths, "predictions")

    def __iter__(self) -> Iterator[Line]:
        self.first  # noqa: B018 (raises where there is none)
        return super().__iter__()

    @cached_property
    def _match_record(self) -> Record | None:
        """The first line, if it is a match record rather than an image record (or anything else)."""
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
        """The dataset of match records, None of predictions."""
        protocol = PROTOCOLS.get(str(self._match_record["protocol"])) if self._match_record else None
        return None if protocol is None else protocol.dataset

    def unmatched(self, command: str) -> Predictions:
        """The stream itself. Raises `UsageError` for match records, which cannot serve the command."""
        if self.matched:
            raise UsageError(f"{command} needs the predictions themselves, not match records")
        return self
