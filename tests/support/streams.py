"""Streams of lines that stand in no file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hoicli.evaluation.predictions import Predictions
from hoicli.io.streams import Line


class Given(Predictions):
    """Predictions of these lines, which may be none."""

    def __init__(self, lines: Iterable[Line]) -> None:
        super().__init__([])
        self._lines = list(lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self._lines)
