"""Streams that a report reads twice."""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from tests.support.page import Page
from tests.support.project import Hoicli
from tests.support.reports import GT, PREDICTIONS


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))


def test_stdin_is_kept_and_removed(spool: Path, hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = hoicli("report", "--gt", GT, PREDICTIONS).out
    feed(monkeypatch, PREDICTIONS.read_bytes())
    piped = hoicli("report", "--gt", GT, "-")
    assert piped.code == 0
    named = piped.out.replace("stdin on HICO", "predictions on HICO").replace(
        "<code>stdin<", "<code>predictions.jsonl<"
    )
    assert named.replace(" -</code>", " predictions.jsonl</code>") == plain
    assert not list(spool.iterdir())
    feed(monkeypatch, GT.read_bytes())
    assert hoicli("report", "--gt", "-", PREDICTIONS).code == 0
    assert not list(spool.iterdir())


@pytest.mark.parametrize("skip", [False, True])
def test_a_bad_stdin_is_named_and_removed(
    skip: bool, spool: Path, tmp_path: Path, hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = PREDICTIONS.read_bytes().splitlines(keepends=True)
    feed(monkeypatch, b"".join([*lines, lines[0]]))
    options = ["--on-error", "skip"] if skip else []
    target = tmp_path / "r.html"
    result = hoicli("report", "--gt", GT, "-o", target, *options, "-")
    assert result.code == (0 if skip else 1)
    place = f"<stdin>:{len(lines) + 1}: image_id: image 'HICO_test2015_00000001' is at <stdin>:1 already"
    assert place in result.err
    assert str(spool) not in result.err
    assert target.exists() == skip
    if skip:
        assert ["bad lines dropped", "1"] in [line for table in Page(target.read_text()).tables for line in table]
    assert not list(spool.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_kept(spool: Path, tmp_path: Path, hoicli: Hoicli) -> None:
    pipe = tmp_path / "predictions.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(PREDICTIONS.read_bytes()))
    writer.start()
    result = hoicli("report", "--gt", GT, pipe)
    writer.join()
    assert result.code == 0
    assert result.out == hoicli("report", "--gt", GT, PREDICTIONS).out
    assert not list(spool.iterdir())


def test_pairs_that_are_wrong_are_told(tmp_path: Path, hoicli: Hoicli) -> None:
    """A line may be sound for eval and not for pairstats: dropped from the pairs alone, and said."""
    records = [json.loads(line) for line in PREDICTIONS.read_text().splitlines()]
    records[0]["pairs"] = [{"subject": 0, "object": 99}]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    result = hoicli("report", "--gt", GT, path)
    assert result.code == 1
    assert f"{path}:1: pairs[0].object: index 99" in result.err
    result = hoicli("report", "--gt", GT, "--on-error", "skip", path)
    assert result.code == 0
    assert f"skipped 1 line; the first: {path}:1: pairs[0].object" in result.err
