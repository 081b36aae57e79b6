"""Every writer stopped half way, every stream closed, odd files given and odd files written; many writers at once."""

from __future__ import annotations

import gzip
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hoicli.errors import UsageError
from hoicli.shoe.interview import AnswerCache
from tests.hostile.dying import WRITERS
from tests.hostile.readers import CORPUS
from tests.support.project import GT, PATIENCE, PREDICTIONS, ROOT, Hoicli, refusal, saved

PYTHON = [sys.executable, "-m", "hoicli"]


@pytest.mark.long
def test_killed_at_its_steps_and_out_of_room(tmp_path: Path) -> None:
    """kill -9 and SIGTERM in the middle and before the rename, a file that may not grow, /dev/full, a pipe without a
    reader."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.dying", str(tmp_path / "w"), "--quick"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    *faults, count = map(json.loads, done.stdout.splitlines())
    assert faults == []
    writers = sum(not writer.slow for writer in WRITERS)
    assert count == {"writers": writers, "kills": writers, "terms": writers, "disks": writers}


def shell(script: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["sh", "-c", script, "sh", *PYTHON], capture_output=True, cwd=ROOT, timeout=PATIENCE, **more)


@pytest.mark.parametrize(("script", "code", "out", "err"), [
    ('"$@" vocab nothing 2>&-', 2, b"", b""),
    ('"$@" validate - <&-', 1, b"", b"<stdin>: is closed; pipe something in, or name a file\n"),
    ('"$@" vocab >&-', 1, b"", b"<stdout>: cannot be written (Bad file descriptor); make room, or write"),
    ('"$@" vocab vcoco --list verbs 2>/dev/full | head -c 9', 0, b'{"id":0,"', b""),
    ('"$@" eval - <&- >&- 2>&-', 1, b"", b""),
    ('"$@" vocab swig | head -n 2 | wc -l', 0, b"2\n", b""),
])  # fmt: skip
def test_closed_and_full_standard_streams(script: str, code: int, out: bytes, err: bytes) -> None:
    done = shell(script)
    assert (done.returncode, done.stdout.strip(), done.stderr[: len(err)]) == (code, out.strip(), err)
    assert done.stderr.count(b"\n") == bool(err)


def test_what_is_said_never_gets_into_the_data(tmp_path: Path) -> None:
    """Without stderr, print() writes to stdout; and the next file that is opened gets stderr's number."""
    done = shell(f'"$@" match --gt {GT} {PREDICTIONS} 2>&-')
    assert done.returncode == 0
    assert all(json.loads(line)["image_id"] for line in done.stdout.splitlines())
    some = saved(tmp_path / "some.jsonl", PREDICTIONS.read_bytes().splitlines(keepends=True)[0])
    done = shell(f'"$@" eval --gt {GT} {some} 2>&- -o {tmp_path / "out"}')
    assert (done.returncode, done.stdout) == (0, b"")
    assert all(json.loads(line)["metric"] for line in (tmp_path / "out").read_bytes().splitlines())


READING: list[Callable[[Path], list[object]]] = [
    lambda path: ["eval", "--gt", GT, path],
    lambda path: ["eval", "--gt", path, PREDICTIONS],
    lambda path: ["convert", path],
    lambda path: ["convert", "--from", "logits", path],
    lambda path: ["agree", path],
    lambda path: ["curriculum", path],
    lambda path: ["shoe-eval", "--gt", GT, "--sim", path, PREDICTIONS],
    lambda path: ["corrupt", "--save-images", path.parent / "made", path],
]


@pytest.mark.parametrize("words", READING)
def test_files_that_are_none(hoicli: Hoicli, tmp_path: Path, words: Callable[[Path], list[object]]) -> None:
    """A folder, a link to nothing, a link to itself, a name of a thousand letters, one with line breaks in it."""
    (tmp_path / "dir").mkdir()
    (tmp_path / "nothing").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("dir", "nothing", "loop", "x" * 1000, "no\nsuch\x1b[31m\nfile"):
        said = refusal(hoicli(*words(tmp_path / name)))
        assert said.startswith(str(tmp_path)), said
        assert said.isprintable()


def test_names_that_are_no_text(hoicli: Hoicli, tmp_path: Path) -> None:
    """A name that is not UTF-8 is read, and named in messages as Python escapes it."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/p\xff\xfe.jsonl")
    Path(path).write_bytes(PREDICTIONS.read_bytes())
    assert hoicli("eval", "--gt", GT, path) == hoicli("eval", "--gt", GT, PREDICTIONS)
    Path(path).write_bytes(b"{}\n")
    done = subprocess.run([*PYTHON, "eval", "--gt", str(GT), path], capture_output=True, cwd=ROOT, check=False)
    assert done.stderr.startswith(os.fsencode(tmp_path) + rb"/p\udcff\udcfe.jsonl:1: image_id: missing;")
    assert done.stderr.count(b"\n") == 1


def test_bombs(hoicli: Hoicli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few kilobytes that unpack to gigabytes: of one line without an end, of small records, of nothing."""
    monkeypatch.setattr("hoicli.io.opened_files.DENSE", 1 << 22)
    for name, filling in (("line", b"[" * (1 << 20)), ("lines", b"{}\n" * (1 << 18)), ("blank", b"\n" * (1 << 20))):
        bomb = tmp_path / f"{name}.json.gz"
        with gzip.open(bomb, "wb", compresslevel=6) as stream:
            for _ in range(6):
                stream.write(filling)
        for words in (["eval", "--gt", bomb, PREDICTIONS], ["convert", bomb]):
            said = refusal(hoicli(*words))
            if name == "lines" and words[0] == "eval":
                assert said.startswith(f"{bomb}:1: image_id: missing")
            else:
                assert said.startswith(f"{bomb}: unpacks to more than 200 times its size, ")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("before", [0o600, 0o640, 0o664, 0o444, 0o750])
def test_a_file_that_is_replaced_hands_on_its_mode(hoicli: Hoicli, tmp_path: Path, before: int) -> None:
    """Whatever writes it: one that is for its owner's eyes alone stays so. A new one has the mode of any new file."""
    pytest.importorskip("cv2")
    (tmp_path / "images").mkdir()
    (tmp_path / "images/b.jpg").write_bytes((CORPUS / "b.jpg").read_bytes())
    records = tmp_path / "r.jsonl"
    records.write_text('{"image_id": "b", "file_name": "b.jpg", "boxes": [], "labels": [], "hois": []}\n')
    calls: list[tuple[list[object], str]] = [
        (["convert", CORPUS / "pictures.jsonl", "-o", tmp_path / "out.jsonl"], "out.jsonl"),
        (["doctor", "--schema", "result", "-o", tmp_path / "link"], "meant"),
        (["mask", "--images", CORPUS, "--save-images", tmp_path / "images", records], "images/b.jpg"),
        (["corrupt", "--corruption", "jpeg", "--severity", "1", "--images", CORPUS, "--save-images", tmp_path, records],
         "jpeg/1/b.jpg"),
    ]  # fmt: skip
    (tmp_path / "link").symlink_to("meant")
    old = os.umask(0o027)
    try:
        for words, name in calls:
            path = tmp_path / name
            path.unlink(missing_ok=True)
            assert hoicli(*words).code == 0
            assert mode(path) == 0o640
            new = path.read_bytes()
            path.write_bytes(b"old")
            path.chmod(before)
            assert hoicli(*words).code == 0
            assert (mode(path), path.read_bytes()) == (before, new)
    finally:
        os.umask(old)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may give files away")
def test_a_file_that_root_replaces_stays_its_owners(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "out", "old")
    os.chown(path, 1234, 2345)
    path.chmod(0o4640)
    assert hoicli("doctor", "--schema", "result", "-o", path).code == 0
    assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (1234, 2345, 0o4640)


def test_devices_and_pipes_are_written_to_and_not_replaced(hoicli: Hoicli, tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    assert hoicli("doctor", "--schema", "result", "-o", pipe).code == 0
    reader.join()
    assert got == [hoicli("doctor", "--schema", "result").out]
    assert pipe.is_fifo()
    link, meant = tmp_path / "link", tmp_path / "meant"
    meant.write_text("old")
    link.symlink_to(meant)
    assert hoicli("doctor", "--schema", "result", "-o", link).code == 0
    assert link.is_symlink()
    assert meant.read_text() == got[0]
    full = refusal(hoicli("doctor", "--schema", "result", "-o", "/dev/full"))
    assert full == "/dev/full: cannot be written (No space left on device); make room, or write elsewhere"


def at_once(*commands: Sequence[object]) -> list[bytes]:
    """The stderr of processes that run together, all of which succeed."""
    started = [
        subprocess.Popen([*PYTHON, *map(str, words)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=ROOT)
        for words in commands
    ]
    said = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0] * len(started), said
    return said


def test_many_writers_of_one_file(hoicli: Hoicli, tmp_path: Path) -> None:
    """One of them wins, whole."""
    target = tmp_path / "out.jsonl"
    at_once(*[["match", "--protocol", name, "--gt", GT, PREDICTIONS, "-o", target] for name in ("hico", "upt", "diag")])
    whole = [hoicli("match", "--protocol", name, "--gt", GT, PREDICTIONS).out for name in ("hico", "upt", "diag")]
    assert target.read_text() in whole
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.long
def test_many_writers_of_one_folder(tmp_path: Path) -> None:
    """The same images corrupted by three processes at a time: each file whole, each record there, nothing besides."""
    words = ["corrupt", "--images", CORPUS, "--corruption", "jpeg,rainbow,elastic", "--jobs", 1]
    outs = [tmp_path / f"{number}.jsonl" for number in range(3)]
    at_once(*[[*words, "--save-images", tmp_path / "many", CORPUS / "pictures.jsonl", "-o", out] for out in outs])
    at_once([*words, "--save-images", tmp_path / "one", CORPUS / "pictures.jsonl", "-o", tmp_path / "one.jsonl"])
    assert {out.read_bytes() for out in outs} == {(tmp_path / "one.jsonl").read_bytes()}
    many, one = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for folder in (tmp_path / "many", tmp_path / "one")
    )
    assert many == one


ADD = """
import os, sys
from hoicli.shoe.interview import Answer, AnswerCache
cache = AnswerCache(sys.argv[1])
for number in range(int(sys.argv[3])):
    cache.add(Answer("m" * 500, sys.argv[2], "v", f"a.v.{number}", "b.v.01", number % 5, answer="x" * 3000))
    os.write(1, b"%d\\n" % number)
"""


@pytest.mark.long
def test_a_cache_whose_writers_are_killed(tmp_path: Path) -> None:
    """Four processes, one after the other, add to a cache until they are killed: every answer that was acknowledged is
    there, no line is mixed with another, and what is left can be gone on with."""
    path = tmp_path / "cache.jsonl"
    acknowledged = set()
    for name in "abcd":
        command = [sys.executable, "-c", ADD, str(path), name, str(10**6)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(20)]
        with pytest.raises(UsageError, match="another run has it"):
            AnswerCache(str(path))
        process.kill()
        said += process.communicate()[0].splitlines()
        acknowledged |= {(name, int(number)) for number in said}
    AnswerCache(str(path)).close()
    lines = path.read_bytes().splitlines()
    answers = [json.loads(line) for line in lines if line.endswith(b"}")]
    assert len(answers) >= len(lines) - 4
    assert acknowledged <= {(answer["setup"], int(answer["a"].split(".")[-1])) for answer in answers}
    assert len(answers) == len({(answer["setup"], answer["a"]) for answer in answers})
