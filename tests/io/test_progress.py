"""One bar for a job: its parts by weight, never beyond its end, and nothing where no terminal shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hoicli.io import progress
from hoicli.io.messages import kept_notes, note
from hoicli.io.progress import Job, Progress, expect


class Bar:
    """What tqdm is asked to do."""

    def __init__(self, **options: Any) -> None:
        self.total, self.at, self.desc, self.stage = options["total"], 0.0, options["desc"], ""
        self.closed, self.cleared = False, 0

    def update(self, step: float) -> None:
        self.at += step

    def set_postfix_str(self, text: str, *, refresh: bool) -> None:
        assert not refresh
        self.stage = text

    def clear(self) -> None:
        self.cleared += 1

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Bar]:
    made: list[Bar] = []

    def bar(**options: Any) -> Bar:
        made.append(Bar(**options))
        return made[-1]

    monkeypatch.setattr(progress, "_shown", lambda: True)
    monkeypatch.setattr(progress, "_bar", bar)
    return made


def test_parts_of_a_job_share_its_bar_by_weight(bars: list[Bar]) -> None:
    with Job("compare", 1.0):
        expect(3.0)
        (bar,) = bars
        assert (bar.desc, bar.total) == ("compare", 4.0)
        with Progress("reading", total=200, unit="B", weight=1.0) as reading:
            reading.to(50)
            assert (bar.at, bar.stage) == (0.25, "reading")
            reading.file_done()
            reading.to(50)
            reading.to(20)
            assert bar.at == 0.5
        assert bar.at == 1.0
        with Progress("no total", weight=1.0) as unknown:
            unknown.advance(7)
            assert bar.at == 1.0
        assert bar.at == 2.0
        with Progress("not weighed", total=3) as light:
            light.advance()
        assert bar.at == 2.0
        with Progress("more than expected", total=2, weight=9.0) as much:
            much.advance()
            assert bar.at == 4.0
        assert bar.at == 4.0
        assert not bar.closed
    assert bar.closed
    assert len(bars) == 1


def test_a_part_that_is_left_is_not_done(bars: list[Bar]) -> None:
    """A stream whose first line alone was read is read again elsewhere."""

    def stream() -> Iterator[int]:
        with Progress("reading", total=10, weight=1.0) as reading:
            for number in range(10):
                yield number
                reading.advance()

    with Job("eval", 2.0):
        lines = stream()
        assert next(lines) == 0
        assert next(lines) == 1
        lines.close()  # type: ignore[attr-defined]
        assert bars[0].at == pytest.approx(0.1)
        assert list(stream()) == list(range(10))
        assert bars[0].at == pytest.approx(1.1)


def test_a_job_within_a_job_and_work_after_one(bars: list[Bar]) -> None:
    with Job("report", 1.0), Job("eval", 1.0), Progress("reading", total=2, weight=1.0) as reading:
        reading.advance()
        assert [bar.desc for bar in bars] == ["report"]
        assert bars[0].at == 0.5
        note("a line of its own")
        assert bars[0].cleared == 1
    note("nothing to clear")
    assert bars[0].cleared == 1
    expect(5.0)  # nobody is told
    with Progress("alone", total=2) as alone:
        alone.advance()
    assert [(bar.desc, bar.at) for bar in bars] == [("report", 1.0), ("alone", 1)]


def test_nothing_shows_where_no_terminal_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_bar", lambda **_: pytest.fail("a bar"))

    def work() -> None:
        with Job("compare", 1.0) as job, Progress("reading", total=1, weight=1.0) as reading:
            job.expect(2.0)
            reading.to(1)

    work()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with kept_notes():
        work()
    assert capsys.readouterr().err == ""
