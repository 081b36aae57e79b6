"""One bad line among thousands, wherever it stands: the message names it, nothing is written, and under `--on-error
skip` it is the only one lost."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import pytest

from hoicli.io.streams import Stream
from hoicli.records.columns import BATCH
from tests.support.kernel import share_out
from tests.support.project import FIXTURES, Hoicli, refusal, saved

COUNT = 1000
CLASSES = [("sit_on", "bench"), ("ride", "bicycle"), ("hold", "cup"), ("walk", "dog")]
COMMANDS = {
    "eval": ("eval", "--protocol", "hico"), "match": ("match", "--protocol", "hico"), "diagnose": ("diagnose",),
    "pairstats": ("pairstats",), "curves": ("curves",), "confusion": ("confusion",), "recall": ("recall",),
    "shoe-eval": ("shoe-eval", "--allow-missing", "--sim", str(FIXTURES / "shoe/sim.jsonl")),
}  # fmt: skip


@cache
def good(count: int) -> tuple[list[bytes], list[bytes]]:
    """(ground truth, predictions) of `count` images with a triplet each; the lines have their ends."""
    rng = Random(7)
    truth, predictions = [], []
    for number in range(count):
        verb, label = CLASSES[number % len(CLASSES)]
        hoi: dict[str, object] = {"subject": 0, "object": 1, "verb": verb}
        record: dict[str, object] = {"image_id": f"image {number}", "boxes": [[0, 0, 90, 90], [50, 50, 200, 200]],
                  "labels": ["person", label], "hois": [hoi]}  # fmt: skip
        truth.append(json.dumps(record).encode() + b"\n")
        verb, label = CLASSES[(number + (rng.random() < 0.3)) % len(CLASSES)]
        moved = {**record, "boxes": [[rng.randrange(30), 0, 90, 90], [50, 50, 200, 200]], "labels": ["person", label],
                 "hois": [{**hoi, "verb": verb, "score": round(rng.random(), 4)}]}  # fmt: skip
        predictions.append(json.dumps(moved).encode() + b"\n")
    return truth, predictions


def positions(count: int, cuts: list[int]) -> dict[str, int]:
    """Class of position -> number of a line (from 0). `cuts`: lines that begin a share of their own."""
    named = {
        "first": 0, "second": 1, "last of a batch": BATCH - 1, "first of a batch": BATCH,
        "second of a batch": BATCH + 1, "last of the second batch": 2 * BATCH - 1, "middle": count // 2,
        "last but one": count - 2, "last": count - 1,
    }  # fmt: skip
    for number, cut in enumerate(cuts, start=1):
        named |= {f"before cut {number}": cut - 1, f"at cut {number}": cut, f"after cut {number}": cut + 1}
    return named


@dataclass(frozen=True)
class Bad:
    """A stream with one bad line: where it is (from 0), its bytes, the same without it, and how the message begins."""

    at: int
    data: bytes
    without: bytes
    message: str


def with_line(lines: list[bytes], at: int, line: bytes, message: str) -> Bad:
    """The stream with another line in the place of one."""
    data, without = (b"".join([*lines[:at], one, *lines[at + 1 :]]) for one in (line, b""))
    return Bad(at, data, without, message)


def without_verb(lines: list[bytes], at: int) -> Bad:
    """Still JSON, and no record."""
    return with_line(lines, at, lines[at].replace(b'"verb"', b'"werb"'), "hois[0].verb: missing; ")


def cuts_of(lines: list[bytes], path: Path) -> list[int]:
    """The numbers of the lines that begin a share of the file, but for the first."""
    offsets = {part._start for part in Stream([str(path)], "x").shares()[1:]}
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    return [number for number, start in enumerate(starts) if start in offsets]


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    return saved(tmp_path / "gt.jsonl", b"".join(good(COUNT)[0]))


@pytest.fixture
def shared_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Files are read by three processes; the numbers of the lines with which the second and the third begin."""
    share_out(monkeypatch, 1 << 15)
    whole = saved(tmp_path / "whole.jsonl", b"".join(good(COUNT)[1]))
    cuts = cuts_of(good(COUNT)[1], whole)
    assert len(cuts) == 2
    return cuts


PLACES = list(positions(COUNT, [COUNT // 3, COUNT // 2]))
SOME = [pytest.param(name, marks=() if name in ("eval", "curves") else pytest.mark.long) for name in COMMANDS]
"""Every command; `make test` tries two."""
TURNS = [
    pytest.param(place, name, marks=() if number % len(COMMANDS) == turn else pytest.mark.long)
    for number, place in enumerate(PLACES)
    for turn, name in enumerate(COMMANDS)
]
"""Each place with each command, one of which is quick."""


def check(hoicli: Hoicli, words: tuple[str, ...], truth: Path, bad: Bad) -> None:
    """Stopped at the line, with nothing written; and under skip everything but the line, of which the output tells."""
    path, out = truth.with_name("p.jsonl"), truth.with_name("out.jsonl")
    path.write_bytes(bad.data)
    assert refusal(hoicli(*words, "--gt", truth, "-o", out, path)).startswith(f"{path}:{bad.at + 1}: {bad.message}")
    assert not out.exists()
    skipping = hoicli(*words, "--gt", truth, "--on-error", "skip", path)
    path.write_bytes(bad.without)
    without = hoicli(*words, "--gt", truth, path)
    assert (skipping.code, without.code) == (0, 0)
    assert skipping.out != without.out
    assert re.sub(r'\|skipped:1(?=\|version:)|,"skipped":1(?=})', "", skipping.out) == without.out
    report = [line for line in skipping.err.splitlines() if "skipped" in line]
    assert len(report) == 1
    assert report[0].startswith(f"hoicli: skipped 1 line; the first: {path}:{bad.at + 1}: {bad.message}")


@pytest.mark.parametrize(("place", "name"), TURNS)
def test_a_bad_line(hoicli: Hoicli, truth: Path, shared_out: list[int], place: str, name: str) -> None:
    check(hoicli, COMMANDS[name], truth, without_verb(good(COUNT)[1], positions(COUNT, shared_out)[place]))


@pytest.mark.parametrize("name", SOME)
def test_an_image_that_is_in_two_shares(hoicli: Hoicli, truth: Path, shared_out: list[int], name: str) -> None:
    lines = good(COUNT)[1]
    doubled = with_line(lines, shared_out[0] + 5, lines[3], "image_id: image 'image 3' is at ")
    check(hoicli, COMMANDS[name], truth, doubled)


@pytest.mark.parametrize("name", SOME)
def test_a_last_line_that_breaks_off(hoicli: Hoicli, truth: Path, shared_out: list[int], name: str) -> None:
    lines = good(COUNT)[1]
    check(hoicli, COMMANDS[name], truth, with_line(lines, COUNT - 1, lines[-1][:60], "the line is cut off "))


@pytest.mark.parametrize("name", SOME)
def test_a_last_line_without_an_end_counts(hoicli: Hoicli, truth: Path, shared_out: list[int], name: str) -> None:
    path = saved(truth.with_name("p.jsonl"), b"".join(good(COUNT)[1]))
    whole = hoicli(*COMMANDS[name], "--gt", truth, path)
    path.write_bytes(b"".join(good(COUNT)[1]).rstrip(b"\n"))
    assert hoicli(*COMMANDS[name], "--gt", truth, path) == whole


@pytest.mark.parametrize("name", SOME)
def test_a_gzip_that_breaks_off(hoicli: Hoicli, truth: Path, name: str) -> None:
    """Neither what came before the break nor `--on-error skip` makes a result of it."""
    packed = gzip.compress(b"".join(good(COUNT)[1]), mtime=0)
    path, out = truth.with_name("p.jsonl.gz"), truth.with_name("out.jsonl")
    for end, policy in ((len(packed) // 2, "skip"), (len(packed) - 4, "stop"), (12, "skip")):
        path.write_bytes(packed[:end])
        said = refusal(hoicli(*COMMANDS[name], "--gt", truth, "--on-error", policy, "-o", out, path))
        assert said.startswith(f"{path}: damaged gzip data (")
        assert not out.exists()


@pytest.mark.parametrize("place", ["first", "last of a batch", "first of a batch", "middle", "last"])
@pytest.mark.parametrize("name", ["eval", "match"])
def test_a_bad_line_of_the_ground_truth(hoicli: Hoicli, tmp_path: Path, place: str, name: str) -> None:
    truth, predictions = good(COUNT)
    bad = without_verb(truth, positions(COUNT, [])[place])
    path, found = tmp_path / "gt.jsonl", tmp_path / "p.jsonl"
    path.write_bytes(bad.data)
    found.write_bytes(b"".join(predictions))
    result = hoicli(*COMMANDS[name], "--gt", path, found)
    out = [line for line in result.out.splitlines() if not line.startswith('{"error":')]  # how match ends a stream
    assert (result.code, out) == (1, [])
    assert result.err.startswith(f"{path}:{bad.at + 1}: {bad.message}")


@pytest.mark.parametrize("place", PLACES)
def test_validate_names_the_line(hoicli: Hoicli, tmp_path: Path, place: str) -> None:
    bad = without_verb(good(600)[1], positions(600, [200, 300])[place])
    path = saved(tmp_path / "p.jsonl", bad.data)
    result = hoicli("validate", path)
    errors = [row for row in map(json.loads, result.out.splitlines()) if row["severity"] == "error"]
    assert result.code == 1
    assert [row["count"] for row in errors] == [1]
    assert f"{path}:{bad.at + 1}" in json.dumps(errors[0])


def test_a_file_that_shrinks_while_it_is_read(hoicli: Hoicli, truth: Path, shared_out: list[int]) -> None:
    """A share that is not there any more is not passed over."""
    path = truth.with_name("whole.jsonl")
    share = Stream([str(path)], "x").shares()[-1]
    path.write_bytes(b"".join(good(COUNT)[1][: shared_out[0] + 3]))
    with pytest.raises(Exception, match="changed while it was read"):
        list(share)
