"""Streams: their first line, reading them again, what is said of them; and text that is not plain UTF-8, as Windows
leaves it."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from hoicli.errors import DataError
from hoicli.io.opened_files import MARK
from hoicli.io.streams import BYTES_FOR_TWO, Stream
from tests.hostile.readers import FOREIGN
from tests.support.project import GT, PREDICTIONS, ROOT, Hoicli, MonkeyPatch, refusal, saved


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    """Where temporary files are made."""
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def feed(monkeypatch: MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))


def places(stream: Stream) -> list[str]:
    return [f"{line.place} {line.data.decode().strip()}" for line in stream]


def test_the_first_line_is_looked_at_and_not_lost(monkeypatch: MonkeyPatch, tmp_path: Path) -> None:
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


def test_stdin_and_pipes_can_be_reread_for_a_while(spool: Path, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
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


def test_copies_are_removed_whatever_happens(spool: Path, monkeypatch: MonkeyPatch) -> None:
    feed(monkeypatch, b"a\n")
    stream = Stream(["-", "no/such"], "lines")
    with pytest.raises(DataError, match=r"^no/such: no such file; check the path$"), stream.rereadable():
        list(stream)
    assert not list(spool.iterdir())


def written(path: Path, text: str, *, packed: bool = False) -> Path:
    data = MARK + text.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_with_a_mark_is_what_it_is_without(hoicli: Hoicli, tmp_path: Path, packed: bool) -> None:
    """Ground truth, predictions, matches and what convert reads, with Windows' line ends; on stdin, too."""
    expected = hoicli("eval", "--per-class", "--gt", GT, PREDICTIONS)
    gt, predictions = (
        written(tmp_path / path.name, path.read_text().replace("\n", "\r\n"), packed=packed)
        for path in (GT, PREDICTIONS)
    )
    assert hoicli("eval", "--per-class", "--gt", gt, predictions) == expected
    words = [sys.executable, "-m", "hoicli", "eval", "--per-class", "--gt", str(GT)]
    piped = subprocess.run(words, input=predictions.read_bytes(), capture_output=True, check=True, cwd=ROOT)
    assert piped.stdout.decode() == expected.out
    matches = written(tmp_path / "m", hoicli("match", "--gt", GT, PREDICTIONS).out, packed=packed)
    assert hoicli("eval", "--per-class", matches).out == expected.out
    for name in ("cdn.json", "test_hico.json", "inpcc.json", "results.json", "predictions_ppdm.json"):
        dump = written(tmp_path / name, (FOREIGN / name).read_text(), packed=packed)
        assert hoicli("convert", dump).out == hoicli("convert", FOREIGN / name).out != ""


def test_cat_and_shuf_take_a_mark_along(hoicli: Hoicli, tmp_path: Path) -> None:
    """The mark of UTF-8 may begin any line: two files with one are one stream, in any order of lines."""
    expected = hoicli("eval", "--gt", GT, PREDICTIONS).out
    lines = [MARK + line for line in PREDICTIONS.read_bytes().splitlines(keepends=True)]
    random.Random(1).shuffle(lines)
    path = saved(tmp_path / "p.jsonl", b"".join(lines) + MARK)
    assert hoicli("eval", "--gt", GT, path).out == expected
    assert hoicli("convert", path).out == "".join(
        json.dumps(json.loads(line.removeprefix(MARK)), separators=(",", ":")) + "\n" for line in lines
    )
    answers = [b'{"image_id": %d, "text": "[]"}\n' % number for number in range(3)]
    for name, mark in (("plain", b""), ("marked", MARK)):
        (tmp_path / name).write_bytes(b"".join(mark + line for line in answers))
    converted = ("convert", "--from", "vlm", "--coords", "1000")
    assert hoicli(*converted, tmp_path / "marked").out == hoicli(*converted, tmp_path / "plain").out != ""


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        *((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")),
        *((b"", "utf-16-le"), (b"", "utf-16-be")),  # iconv -t utf-16le writes no mark; its first line was "cut off"
    ],
)
def test_utf_16_is_what_utf_8_is(hoicli: Hoicli, tmp_path: Path, mark: bytes, encoding: str, packed: bool) -> None:
    """As Windows PowerShell's `>` and Excel write it: records, foreign files, and on stdin."""
    expected = hoicli("eval", "--per-class", "--gt", GT, PREDICTIONS)

    def recoded(path: Path) -> Path:
        data = mark + path.read_text().replace("\n", "\r\n").encode(encoding)
        (tmp_path / path.name).write_bytes(gzip.compress(data) if packed else data)
        return tmp_path / path.name

    gt, predictions = map(recoded, (GT, PREDICTIONS))
    assert hoicli("eval", "--per-class", "--gt", gt, predictions) == expected
    words = [sys.executable, "-m", "hoicli", "eval", "--per-class", "--gt", str(GT)]
    piped = subprocess.run(words, input=predictions.read_bytes(), capture_output=True, check=True, cwd=ROOT)
    assert piped.stdout.decode() == expected.out
    dump = FOREIGN / "cdn.json"
    assert hoicli("convert", recoded(dump)).out == hoicli("convert", dump).out != ""


def test_a_large_file_of_utf_16_is_not_divided(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    for encoding in ("utf-16", "utf-16-le"):
        path.write_text('{"a": "é"}\n' * (BYTES_FOR_TWO // 8), encoding=encoding)
        stream = Stream([str(path)], "lines")
        assert stream.shares() == []
        assert {line.data for line in stream} == {'{"a": "é"}\n'.encode()}


def test_another_encoding_is_named(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    data = "{}".encode("utf-32-be")
    for content in (codecs.BOM_UTF32_BE + data, gzip.compress(codecs.BOM_UTF32_BE + data)):
        path.write_bytes(content)
        for words in (["eval", "--gt", GT, path], ["convert", path], ["convert", "--image-list", path, PREDICTIONS]):
            result = hoicli(*words)
            said = f"{path}: is UTF-32; make it UTF-8 first: iconv -f UTF-32 -t UTF-8 FILE > NEW\n"
            assert (result.code, result.out, result.err) == (1, "", said)


@pytest.mark.parametrize("rest", [b"{", b"\x00\xd8{\x00"])
def test_what_only_begins_as_utf_16(hoicli: Hoicli, tmp_path: Path, rest: bytes) -> None:
    path = saved(tmp_path / "p.jsonl", codecs.BOM_UTF16_LE + rest)
    for words in (["eval", "--gt", GT, path], ["convert", path], ["agree", path]):
        result = hoicli(*words)
        said = f"{path}: begins as UTF-16 does, but some of it is not; save it as UTF-8\n"
        assert (result.code, result.out, result.err) == (1, "", said)


ZIP = b"PK\x03\x04" + bytes(26)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("head", "kind"), [
    (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "Git LFS"),
    (b"\n<!DOCTYPE html><html><head><title>Virus scan warning</title>", "web page"),
    (b"MATLAB 7.3 MAT-file", "MATLAB 7.3"), (b"\x89HDF\r\n\x1a\n", "HDF5"),
    (ZIP + b"[Content_Types].xml", "Excel"), (ZIP + b"eval_results/data.pkl", "torch"),
    (ZIP + b"results.json", "archive"), (b"results.json".ljust(257, b"\0") + b"ustar", "archive"),
    (b"PAR1\x15\x04", "Parquet"), (b"SQLite format 3\0", "SQLite"), (b"RIFF\x10\0\0\0WEBP", "picture"),
    (gzip.compress(b"{}", mtime=0), "twice"), (b"0 0.5 0.25 0.125 1.0\n1 0.5 0.5 0.1 0.1\n", "YOLO"),
])  # fmt: skip
def test_what_nothing_reads_is_named(hoicli: Hoicli, tmp_path: Path, head: bytes, kind: str, packed: bool) -> None:
    path = saved(tmp_path / "file.jsonl", gzip.compress(head) if packed else head)
    if kind == "twice" and not packed:
        path.write_bytes(gzip.compress(gzip.compress(head)))
    calls: list[list[object]] = [["convert", path], ["eval", "--gt", path, PREDICTIONS], ["eval", "--gt", GT, path]]
    calls += [["agree", path], ["table", path], ["robust", path], ["eval", "--dataset", path, "--gt", GT, PREDICTIONS]]
    for words in calls:
        said = refusal(hoicli(*words))
        assert said.startswith(f"{path}: is ")
        assert kind in said
