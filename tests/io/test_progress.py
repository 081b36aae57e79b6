"""A bar for a piece of work, and nothing where no terminal shows it."""

from __future__ import annotations

import pytest

from hoicli.io import messages
from hoicli.io.messages import Progress, kept_notes, set_log_options
from tests.support.project import parsed


def test_lines_of_json_come_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(messages, "PROGRESS_SECONDS", 0.0)
    with set_log_options(["--log", "json"]), Progress("reading\x1b", total=7, unit=" images") as reading:
        reading.advance_to(3)
        reading.advance_to(5)
        reading.advance_to(1)
        reading.advance(2)
    with set_log_options(["--log", "json", "--quiet"]), Progress("reading", total=7) as reading:
        reading.advance_to(3)
    about = {"level": "progress", "label": r"reading\x1b", "total": 7, "unit": "images"}
    assert parsed(capsys.readouterr().err) == [about | {"done": done} for done in (3, 5, 7)]


def test_nothing_shows_where_no_terminal_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tqdm.tqdm", lambda **_: pytest.fail("a bar"))

    def work() -> None:
        with Progress("reading", total=1) as reading:
            reading.advance_to(1)

    work()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with kept_notes():
        work()
    assert capsys.readouterr().err == ""
