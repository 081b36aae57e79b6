"""Streams: their first line, reading them again, and what is said of them."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from hoicli.errors import DataError
from hoicli.io.streams import Stream
from tests.support.project import saved


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files are made."""
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))


def places(stream: Stream) -> list[str]:
    return [f"{line.place} {line.data.decode().strip()}" for line in stream]


def test_the_first_line_is_looked_at_and_not_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    feed(monkeypatch, b"\n a \nb")
    path = saved(tmp_path / "more", b"c\n")
    stream = Stream(["-", str(path)], "lines")
    assert (stream.first.place, stream.name) == ("<stdin>:2", f"<stdin>, {path}")
    assert stream.first is stream.first
    assert places(stream) == ["<stdin>:2 a", "<stdin>:3 b", f"{path}:1 c"]


def test_a_file_is_read_anew_each_time(tmp_path: Path) -> None:
    path = saved(tmp_path / "p", b"a\nb\n")
    stream = Stream([str(path)], "lines")
    assert places(stream) == places(stream) == [f"{path}:1 a", f"{path}:2 b"]
    assert stream.first.data == b"a\n"
    assert len(list(stream)) == len(list(stream)) == 2


def test_stdin_and_pipes_can_be_reread_for_a_while(
    spool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed(monkeypatch, b"a\n")
    pipe, path = tmp_path / "pipe", tmp_path / "p"
    os.mkfifo(pipe)
    path.write_bytes(b"c\n")
    writer = threading.Thread(target=lambda: pipe.write_bytes(b"b\n"))
    writer.start()
    stream = Stream(["-", str(pipe), str(path)], "lines")
    with stream.rereadable():
        assert not list(spool.iterdir())  # the copies have no names
        assert places(stream) == places(stream) == ["<stdin>:1 a", f"{pipe}:1 b", f"{path}:1 c"]
    writer.join()
    assert not list(spool.iterdir())


def test_copies_are_removed_whatever_happens(spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    feed(monkeypatch, b"a\n")
    stream = Stream(["-", "no/such"], "lines")
    with pytest.raises(DataError, match=r"^no/such: no such file; check the path$"), stream.rereadable():
        list(stream)
    assert not list(spool.iterdir())
