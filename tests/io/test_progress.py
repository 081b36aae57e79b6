"""A bar for a piece of work, and nothing where no terminal shows it."""

from __future__ import annotations

from typing import Any

import pytest

from hoicli.io import progress
from hoicli.io.messages import kept_notes, logged
from hoicli.io.progress import Progress
from tests.support.project import parsed


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

    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setattr("tqdm.tqdm", bar)
    with Progress("reading\x1b", total=200, unit="B") as reading:
        reading.to(50)
        reading.file_done()
        reading.to(50)
        reading.to(20)
        reading.advance(7)
        assert not bars[0].closed
    assert [(bar.desc, bar.total, bar.at, bar.closed) for bar in bars] == [(r"reading\x1b", 200, 107, True)]


def test_lines_of_json_come_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with logged(["--log", "json"]), Progress("reading\x1b", total=7, unit=" images") as reading:
        reading.to(3)
        reading.advance(4)
    with logged(["--log", "json", "--quiet"]), Progress("reading", total=7) as reading:
        reading.to(3)
    about = {"level": "progress", "label": r"reading\x1b", "total": 7, "unit": "images"}
    assert parsed(capsys.readouterr().err) == [about | {"done": 3}, about | {"done": 7}]


def test_nothing_shows_where_no_terminal_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tqdm.tqdm", lambda **_: pytest.fail("a bar"))

    def work() -> None:
        with Progress("reading", total=1) as reading:
            reading.to(1)

    work()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with kept_notes():
        work()
    assert capsys.readouterr().err == ""
