"""Every reader on broken files: one line, no crash, no hang, nothing lost in silence.

The cases are those of `python -m tests.hostile`, a few of each reader and always the same; the seconds and
memory of each are judged there, on a quiet machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from hoicli.converters.formats import FORMATS
from tests.hostile import judge as judging
from tests.hostile.readers import BY_NAME, READERS, READS_NOTHING
from tests.support.project import ROOT, MonkeyPatch


def test_a_command_is_under_attack_or_reads_nothing() -> None:
    assert not {reader.command for reader in READERS} & READS_NOTHING.keys()
    assert len(BY_NAME) == len(READERS)


def test_every_format_is_under_attack() -> None:
    twice = [name for name, count in Counter(reader.name for reader in READERS).items() if count > 1]
    assert not twice, f"tests/hostile/readers.py or tests/foreign have {', '.join(twice)} twice; give one another name"
    names = {reader.name.removeprefix("convert:").split("/")[0] for reader in READERS if reader.command == "convert"}
    lacking = {row.name for row in FORMATS.values() if row.reads} - names
    how = "@writes(FILE, format=NAME, kind=KIND) in tests/foreign; python -m tests.foreign then makes FILE"
    assert not lacking, f"no file in the format {', '.join(lacking)} is under attack; write a maker: {how}"
    written = {call.split("--to ")[1].split()[0] for reader in READERS for call in reader.calls if "--to " in call}
    unwritten = {row.name for row in FORMATS.values() if row.writes} ^ written
    assert not unwritten, f"{', '.join(unwritten)}: tests/hostile/readers.py has a line `convert --to NAME IN` for each"


@pytest.mark.long
@pytest.mark.parametrize("name", BY_NAME)
def test_a_sound_file_is_taken(name: str, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """Otherwise the attack would stop at the door."""
    monkeypatch.setattr(judging, "broken", lambda _, data, __: (data, "whole"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reader = BY_NAME[name]
    for number, call in enumerate(call for call in reader.calls if "skip" not in call):
        verdict = judging.judge(replace(reader, calls=[call]), number, tmp_path / "case")
        assert not verdict.faults
        assert verdict.code == 0, verdict.said


@pytest.mark.parametrize("name", [name for name, reader in BY_NAME.items() if reader.seed.suffix == ".jsonl"])
def test_the_end_of_a_stream_that_stopped_is_refused(name: str, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """Under --on-error skip, too: what is lost is not one line."""
    stopped = b'{"error":"match stopped: preds.jsonl:2: bad"}\n'
    monkeypatch.setattr(judging, "broken", lambda _, data, __: (data.rstrip(b"\n") + b"\n" + stopped, "stopped"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    reader = BY_NAME[name]
    matches = name.endswith(":matches") and reader.command != "validate"
    for call in reader.calls if matches else reader.calls[:2]:
        verdict = judging.judge(replace(reader, calls=[call]), 0, tmp_path / "case")
        assert (verdict.code, verdict.faults) == (1, ()), verdict
        assert not matches or "stopped: preds.jsonl:2: bad; mend that" in verdict.said


@pytest.mark.long
def test_broken_files() -> None:
    """The first cases of each reader; what is wrong with any is told under the table."""
    words = [sys.executable, "-m", "tests.hostile", "--first", "0", "--count", "4"]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(READERS)} readers, {4 * len(READERS)} cases, 0 faults" in done.stdout
