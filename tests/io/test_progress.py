"""A bar for a piece of work, and nothing where no terminal shows it."""

from __future__ import annotations

from typing import Any

import pytest

from hoicli.io import progress
from hoicli.io.messages import kept_notes
from hoicli.io.progress import Progress


class Bar:
    """What tqdm is asked to do."""

    def __init__(self, **options: Any) -> None:
        self.total, self.at, self.desc, self.closed = options["total"], 0, options["desc"], False

    def update(self, step: int) -> None:
        self.at += step

    def close(self) -> None:
        self.closed = True


def test_a_bar_moves_on_through_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[Bar] = []

    def bar(**options: Any) -> Bar:
        bars.append(Bar(**options))
        return bars[-1]

    monkeypatch.setattr(progress, "_shown", lambda: True)
    monkeypatch.setattr(progress, "_bar", bar)
    with Progress("reading\x1b", total=200, unit="B") as reading:
        reading.to(50)
        reading.file_done()
        reading.to(50)
        reading.to(20)
        reading.advance(7)
        assert not bars[0].closed
    assert [(bar.desc, bar.total, bar.at, bar.closed) for bar in bars] == [(r"reading\x1b", 200, 107, True)]


def test_nothing_shows_where_no_terminal_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_bar", lambda **_: pytest.fail("a bar"))

    def work() -> None:
        with Progress("reading", total=1) as reading:
            reading.to(1)

    work()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with kept_notes():
        work()
    assert capsys.readouterr().err == ""
