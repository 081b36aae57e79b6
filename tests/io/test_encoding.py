"""Text that is not plain UTF-8, as Windows leaves it: read where it says what it is, else named for what it is."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from hoicli.errors import DataError
from hoicli.io.encoding import MARK, as_utf8
from tests.hostile.readers import FOREIGN
from tests.support.project import FIXTURES, ROOT, Hoicli

GT, PREDICTIONS = FIXTURES / "gt.jsonl", FIXTURES / "predictions.jsonl"

ENCODINGS = {
    "utf-8": MARK,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
"""Each with its byte order mark."""


def written(path: Path, text: str, encoding: str, *, packed: bool = False) -> Path:
    data = ENCODINGS[encoding] + text.encode(encoding)
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.fixture(params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_with_a_mark_is_what_it_is_without(
    hoicli: Hoicli, tmp_path: Path, encoding: str, packed: bool
) -> None:
    """Ground truth, predictions, matches and what convert reads, with Windows' line ends."""
    expected = hoicli("eval", "--per-class", "--gt", GT, PREDICTIONS)
    gt, predictions = (
        written(tmp_path / path.name, path.read_text().replace("\n", "\r\n"), encoding, packed=packed)
        for path in (GT, PREDICTIONS)
    )
    assert hoicli("eval", "--per-class", "--gt", gt, predictions) == expected
    matches = written(tmp_path / "m", hoicli("match", "--gt", GT, PREDICTIONS).out, encoding, packed=packed)
    assert hoicli("eval", "--per-class", matches).out == expected.out
    assert hoicli("convert", predictions).out == hoicli("convert", PREDICTIONS).out
    for name in ("cdn.json", "test_hico.json", "inpcc.json", "results.json", "predictions_ppdm.json"):
        dump = written(tmp_path / name, (FOREIGN / name).read_text(), encoding, packed=packed)
        assert hoicli("convert", dump).out == hoicli("convert", FOREIGN / name).out != ""


def test_on_stdin(tmp_path: Path, encoding: str) -> None:
    data = written(tmp_path / "p", PREDICTIONS.read_text(), encoding).read_bytes()
    words = [sys.executable, "-m", "hoicli", "eval", "--gt", str(GT)]
    plain, marked = (
        subprocess.run(words, input=each, capture_output=True, check=True, cwd=ROOT)
        for each in (PREDICTIONS.read_bytes(), data)
    )
    assert (marked.stdout, marked.stderr) == (plain.stdout, plain.stderr)


def test_letters_beyond_ascii(hoicli: Hoicli, tmp_path: Path, encoding: str) -> None:
    """Of one, two, three and four bytes; and a place in a message counts lines."""
    name = "\u00e9\u2192\U0001f6b2"
    record = {"image_id": name, "boxes": [], "labels": [], "hois": [], "file_name": name * 50_000}
    text = json.dumps(record, ensure_ascii=False)
    path = written(tmp_path / "p", f"{text}\n{text}\n", encoding)
    result = hoicli("validate", "--open-vocabulary", path)
    assert f"image '{name}' is at {path}:1 already" in json.loads(result.out.splitlines()[0])["example"]


def test_cat_and_shuf_take_a_mark_along(hoicli: Hoicli, tmp_path: Path) -> None:
    """The mark of UTF-8 may begin any line: two files with one are one stream, in any order of lines."""
    expected = hoicli("eval", "--gt", GT, PREDICTIONS).out
    lines = [MARK + line for line in PREDICTIONS.read_bytes().splitlines(keepends=True)]
    random.Random(1).shuffle(lines)
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"".join(lines) + MARK)
    assert hoicli("eval", "--gt", GT, path).out == expected
    assert hoicli("convert", path).out == "".join(
        json.dumps(json.loads(line.removeprefix(MARK)), separators=(",", ":")) + "\n" for line in lines
    )
    answers = [b'{"image_id": %d, "text": "[]"}\n' % number for number in range(3)]
    for name, mark in (("plain", b""), ("marked", MARK)):
        (tmp_path / name).write_bytes(b"".join(mark + line for line in answers))
    converted = ("convert", "--from", "vlm", "--coords", "1000")
    assert hoicli(*converted, tmp_path / "marked").out == hoicli(*converted, tmp_path / "plain").out != ""


def test_a_large_file_with_a_mark_is_shared_out(
    hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """A mark of UTF-8 stays in the first share; UTF-16 is read by one process."""
    expected = hoicli("eval", "--per-class", "--gt", GT, PREDICTIONS)
    path = written(tmp_path / "p", PREDICTIONS.read_text(), encoding)
    monkeypatch.setattr("hoicli.io.streams.SHARE", 256)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2})
    shared: list[int] = []
    fork = os.fork

    def counted() -> int:
        shared.append(1)
        return fork()

    monkeypatch.setattr("os.fork", counted)
    assert hoicli("eval", "--per-class", "--gt", GT, path) == expected
    assert len(shared) == (4 if encoding == "utf-8" else 2)  # the ground truth has two


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ('{"image_id": 1}\n'.encode("utf-16-le"), "is UTF-16LE; make it UTF-8 first: iconv -f UTF-16LE -t UTF-8 FILE"),
        ('[{"a": 1}]'.encode("utf-16-be"), "is UTF-16BE; make it UTF-8 first: iconv -f UTF-16BE -t UTF-8 FILE > NEW"),
        (codecs.BOM_UTF32_LE + "{}".encode("utf-32-le"), "is UTF-32; make it UTF-8 first: iconv -f UTF-32"),
        (codecs.BOM_UTF32_BE + "{}".encode("utf-32-be"), "is UTF-32; make it UTF-8 first: iconv -f UTF-32"),
        (
            codecs.BOM_UTF16_LE + "{}".encode("utf-16-le") + b"{",
            "begins as UTF-16 and does not go on so (truncated data)",
        ),
        (codecs.BOM_UTF16_LE + b"\x00\xd8a\x00", "begins as UTF-16 and does not go on so (illegal UTF-16 surrogate)"),
    ],
)
def test_what_cannot_be_read_is_named(hoicli: Hoicli, tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(data)
    for words in (["eval", "--gt", GT, path], ["convert", path], ["convert", "--image-list", path, PREDICTIONS]):
        result = hoicli(*words)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        assert result.err.startswith(f"{path}: {message}")


def test_utf16_behind_utf8(hoicli: Hoicli, tmp_path: Path) -> None:
    """What PowerShell's >> makes of a file that is there."""
    path = tmp_path / "p.jsonl"
    path.write_bytes(PREDICTIONS.read_bytes() + PREDICTIONS.read_text().encode("utf-16-le"))
    result = hoicli("eval", "--gt", GT, path)
    assert result.err.startswith(f"{path}:8: UTF-16 in a stream that began as UTF-8 (by PowerShell's >>?);")


def test_a_stream_of_utf16_is_never_held_whole() -> None:
    """A piece of it at a time is in memory, and as much is taken of the file."""
    raw = io.BytesIO(codecs.BOM_UTF16_LE + ("x" * 99 + "\n").encode("utf-16-le") * 100_000)
    stream = as_utf8(io.BufferedReader(raw), "x")
    assert stream.readline() == b"x" * 99 + b"\n"
    assert raw.tell() < 4 << 20
    assert sum(1 for _ in stream) == 99_999


def test_binary_files_are_let_through() -> None:
    for data in (b"\x80\x04]q\x00.", b"MATLAB 5.0", b"PK\x03\x04", b"\x89HDF", b"", b"\x00\x00\x00\x00", b"{\x00"):
        assert as_utf8(io.BufferedReader(io.BytesIO(data)), "x").read() == data
    with pytest.raises(DataError):
        as_utf8(io.BufferedReader(io.BytesIO(b"{\x00}\x00")), "x")
