"""One bad line among thousands, wherever it stands: the message names it, nothing is written, and under `--on-error
skip` it is the only one lost.

1,000 images by default; HOICLI_HOSTILE=full takes 10,000 for every place and command.
"""

from __future__ import annotations

import gzip
import json
import os
from functools import cache
from pathlib import Path

import pytest

from hoicli.io.streams import Stream
from tests.hostile import longstreams
from tests.hostile.longstreams import Bad, cut_last, cuts_of, doubled, positions, with_bad_line
from tests.support.project import FIXTURES, Hoicli

FULL = os.environ.get("HOICLI_HOSTILE") == "full"
COUNT = 10_000 if FULL else 1000
SHARE = 1 << (19 if FULL else 16)
SIM = FIXTURES / "shoe/sim.jsonl"
COMMANDS = {
    "eval": ("eval", "--protocol", "hico"),
    "match": ("match", "--protocol", "hico"),
    "diagnose": ("diagnose",),
    "pairstats": ("pairstats",),
    "curves": ("curves",),
    "confusion": ("confusion",),
    "recall": ("recall",),
    "shoe-eval": ("shoe-eval", "--sim", str(SIM)),
}


@cache
def good(count: int) -> tuple[list[bytes], list[bytes]]:
    return longstreams.lines(count)


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    path = tmp_path / "gt.jsonl"
    path.write_bytes(b"".join(good(COUNT)[0]))
    return path


@pytest.fixture
def shared_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Files are read by three processes; the numbers of the lines with which the second and the third begin."""
    monkeypatch.setattr("hoicli.io.streams.SHARE", SHARE)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    whole = tmp_path / "whole.jsonl"
    whole.write_bytes(b"".join(good(COUNT)[1]))
    ranges = Stream([str(whole)], "x").shares()
    assert len(ranges) > 1
    return cuts_of(good(COUNT)[1], [part._start for part in ranges[1:]])


PLACES = list(positions(COUNT, [COUNT // 3, COUNT // 2]))


def check(hoicli: Hoicli, words: tuple[str, ...], truth: Path, bad: Bad, *, skip: bool) -> None:
    """Stopped at the line, with nothing written; or everything but the line."""
    path, out = truth.with_name("p.jsonl"), truth.with_name("out.jsonl")
    path.write_bytes(bad.data)
    stopped = hoicli(*words, "--gt", truth, "-o", out, path)
    assert (stopped.code, stopped.out, stopped.err.count("\n")) == (1, "", 1)
    assert stopped.err.startswith(f"{path}:{bad.at + 1}: {bad.message}")
    assert not out.exists()
    if not skip:
        return
    skipping = hoicli(*words, "--gt", truth, "--on-error", "skip", path)
    path.write_bytes(bad.without)
    without = hoicli(*words, "--gt", truth, path)
    assert (skipping.code, without.code) == (0, 0)
    assert skipping.out == without.out
    report = [line for line in skipping.err.splitlines() if "skipped" in line]
    assert len(report) == 1
    assert report[0].startswith(f"hoicli: skipped 1 line; the first: {path}:{bad.at + 1}: {bad.message}")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("place", PLACES)
def test_a_bad_line(hoicli: Hoicli, truth: Path, shared_out: list[int], place: str, name: str) -> None:
    """In full everywhere; otherwise one command a place also skips it."""
    places = positions(COUNT, shared_out)
    turn = FULL or list(COMMANDS)[PLACES.index(place) % len(COMMANDS)] == name
    if place not in places or not (turn or place in ("first", "last", "at cut 1", "first of a batch")):
        pytest.skip("HOICLI_HOSTILE=full tries every place with every command")
    check(hoicli, COMMANDS[name], truth, with_bad_line(good(COUNT)[1], places[place]), skip=turn)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_image_that_is_in_two_shares(hoicli: Hoicli, truth: Path, shared_out: list[int], name: str) -> None:
    check(hoicli, COMMANDS[name], truth, doubled(good(COUNT)[1], shared_out[0] + 5, 3), skip=FULL or name == "eval")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_last_line_that_breaks_off(hoicli: Hoicli, truth: Path, shared_out: list[int], name: str) -> None:
    check(hoicli, COMMANDS[name], truth, cut_last(good(COUNT)[1]), skip=FULL or name == "match")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_last_line_without_an_end_counts(hoicli: Hoicli, truth: Path, shared_out: list[int], name: str) -> None:
    path = truth.with_name("p.jsonl")
    path.write_bytes(b"".join(good(COUNT)[1]))
    whole = hoicli(*COMMANDS[name], "--gt", truth, path)
    path.write_bytes(b"".join(good(COUNT)[1]).rstrip(b"\n"))
    assert hoicli(*COMMANDS[name], "--gt", truth, path) == whole


@pytest.mark.parametrize("name", COMMANDS)
def test_a_gzip_that_breaks_off(hoicli: Hoicli, truth: Path, name: str) -> None:
    """Neither what came before the break nor `--on-error skip` makes a result of it."""
    packed = gzip.compress(b"".join(good(COUNT)[1]), mtime=0)
    path, out = truth.with_name("p.jsonl.gz"), truth.with_name("out.jsonl")
    for end in (len(packed) // 2, len(packed) - 4, 12):
        path.write_bytes(packed[:end])
        for policy in ("stop", "skip"):
            result = hoicli(*COMMANDS[name], "--gt", truth, "--on-error", policy, "-o", out, path)
            assert (result.code, result.out) == (1, "")
            assert result.err.startswith(f"{path}: damaged gzip data (")
            assert not out.exists()


@pytest.mark.parametrize("place", ["first", "last of a batch", "first of a batch", "middle", "last"])
@pytest.mark.parametrize("name", ["eval", "match"])
def test_a_bad_line_of_the_ground_truth(hoicli: Hoicli, tmp_path: Path, place: str, name: str) -> None:
    truth, predictions = good(COUNT)
    at = positions(COUNT, [])[place]
    path, preds = tmp_path / "gt.jsonl", tmp_path / "p.jsonl"
    path.write_bytes(b"".join([*truth[:at], truth[at].replace(b'"verb"', b'"werb"'), *truth[at + 1 :]]))
    preds.write_bytes(b"".join(predictions))
    result = hoicli(*COMMANDS[name], "--gt", path, preds)
    out = [line for line in result.out.splitlines() if not line.startswith('{"error":')]  # how match ends a stream
    assert (result.code, out) == (1, [])
    assert result.err.startswith(f"{path}:{at + 1}: hois[0].verb: missing; ")


@pytest.mark.parametrize("place", PLACES)
def test_validate_names_the_line(hoicli: Hoicli, tmp_path: Path, place: str) -> None:
    count = COUNT if FULL else 600
    at = positions(count, [count // 3, count // 2])[place]
    path = tmp_path / "p.jsonl"
    path.write_bytes(with_bad_line(good(count)[1], at).data)
    result = hoicli("validate", path)
    rows = [json.loads(line) for line in result.out.splitlines()]
    errors = [row for row in rows if row["severity"] == "error"]
    assert result.code == 1
    assert [row["count"] for row in errors] == [1]
    assert f"{path}:{at + 1}" in json.dumps(errors[0])


def test_a_file_large_enough_to_be_shared_out_by_itself(hoicli: Hoicli, tmp_path: Path) -> None:
    """More than 16 MB: unknown keys make the lines long, and cost little to read."""
    truth, predictions = good(1000)
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor")
    padding = b'{"note": "' + b"x" * 17_000 + b'", '
    long = [padding + line[1:] for line in predictions]
    path, gt = tmp_path / "p.jsonl", tmp_path / "gt.jsonl"
    gt.write_bytes(b"".join(truth))
    path.write_bytes(b"".join(long))
    (cut, *_) = cuts_of(long, [part._start for part in Stream([str(path)], "x").shares()[1:]])
    for at in (cut - 1, cut, cut + 1, 999):
        bad = with_bad_line(long, at)
        path.write_bytes(bad.data)
        result = hoicli("eval", "--protocol", "hico", "--gt", gt, path)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(f"{path}:{at + 1}: {bad.message}")


def test_a_file_that_shrinks_while_it_is_read(hoicli: Hoicli, truth: Path, shared_out: list[int]) -> None:
    """A share that is not there any more is not passed over."""
    path = truth.with_name("whole.jsonl")
    share = Stream([str(path)], "x").shares()[-1]
    path.write_bytes(b"".join(good(COUNT)[1][: shared_out[0] + 3]))
    with pytest.raises(Exception, match="changed while it was read"):
        list(share)
