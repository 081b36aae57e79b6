"""SIGTERM and SIGHUP, at any moment: nothing half-written stays, no worker lives on, and the process dies of it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO, Any

import pytest

from hoicli.io import process
from hoicli.io.outputs import atomic_path
from tests.hostile.dying import forked
from tests.support.project import FIXTURES, GT, PATIENCE, PREDICTIONS, ROOT, Hoicli, saved

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

PYTHON = [sys.executable, "-m", "hoicli"]
ENDINGS = [signal.SIGTERM, signal.SIGHUP]


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)


def descendants(process: int) -> Iterator[int]:
    """The processes that a process has started, and those that they have."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process:
            yield int(stat.parent.name)
            yield from descendants(int(stat.parent.name))


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(autouse=True)
def _nothing_ignored() -> Iterator[None]:
    """A shell's background job ignores Ctrl-C, one of nohup SIGHUP, and so would what the tests start."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ENDINGS}
    before[signal.SIGINT] = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def taken(pipe: IO[bytes] | None) -> bool:
    """Whether the process has read all that was written to its stdin: it is at work."""
    assert pipe is not None
    return fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)) == bytes(4)


def parts(folder: Path) -> list[Path]:
    return list(folder.rglob(".*.part"))


def started(*words: object, **more: Any) -> subprocess.Popen[bytes]:
    command = [*PYTHON, *map(str, words)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, cwd=ROOT, start_new_session=True, **more)


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    assert process.stderr is not None
    code = process.wait(timeout=PATIENCE)
    said = process.stderr.read().decode()
    for stream in (process.stdin, process.stderr):
        if stream is not None:
            stream.close()
    return code, said


@pytest.mark.parametrize(("words", "number"), [
    (("match", "--gt", GT), signal.SIGTERM), (("mask",), signal.SIGHUP), (("eval", "--gt", GT), signal.SIGTERM),
    *(pytest.param((name,), signal.SIGKILL, marks=pytest.mark.long) for name in ("mask", "prompts", "convert")),
], ids=str)  # fmt: skip
def test_in_the_middle_of_the_input(tmp_path: Path, words: tuple[Any, ...], number: signal.Signals) -> None:
    """Held by a pipe that goes on giving nothing. A kill leaves what is written so far, under another name."""
    target = saved(tmp_path / "out.jsonl", "old\n")
    process = started(*words, "-", "-o", target, stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write(b"".join(PREDICTIONS.read_bytes().splitlines(keepends=True)[:4]))
    process.stdin.flush()
    if words[0] == "eval":  # opens its output at the end
        until(lambda: taken(process.stdin))
    else:
        until(lambda: list(tmp_path.glob(".out.jsonl.*.part")))
    process.send_signal(number)
    killed = number == signal.SIGKILL
    assert ended(process) == (-number, "" if killed else f"hoicli: ended by {number.name}\n")
    assert target.read_text() == "old\n"
    assert len(list(tmp_path.iterdir())) == 1 + killed


def test_a_signal_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """nohup hoicli ... &, and the terminal is closed."""
    target = tmp_path / "out.jsonl"
    command = ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", *PYTHON, "mask", "-", "-o", str(target)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdin is not None
        process.stdin.write(PREDICTIONS.read_bytes())
        process.stdin.flush()
        until(lambda: parts(tmp_path))
        process.send_signal(signal.SIGHUP)
        process.stdin.close()
        assert process.wait(timeout=PATIENCE) == 0
    assert target.read_bytes().count(b"\n") == 7


@pytest.mark.parametrize("moment", [0.0, 0.3, 0.9])
def test_as_timeout_does_it(tmp_path: Path, moment: float) -> None:
    """The process gets the signal, and then its whole group, it once more: whatever it does, importing included."""
    target = tmp_path / "out.jsonl"
    process = started("mask", "-", "-o", target, stdin=subprocess.PIPE)
    time.sleep(moment)
    process.send_signal(signal.SIGTERM)
    os.killpg(process.pid, signal.SIGTERM)
    code, said = ended(process)
    assert code == -signal.SIGTERM
    assert said in ("", "hoicli: ended by SIGTERM\n")  # before hoicli is there, Python dies without a word
    assert list(tmp_path.iterdir()) == []


def test_the_echo_of_a_signal_does_not_interrupt_the_cleanup(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that comes at once is no second signal; a later one is."""
    now = 1000.0
    monkeypatch.setattr(process._State, "last_signal", float("-inf"))
    monkeypatch.setattr("hoicli.io.process.time.monotonic", lambda: now)
    process.catch_signals()
    with pytest.raises(process.EndedError, match="SIGTERM"):
        signal.raise_signal(signal.SIGTERM)
    now += 0.9 * process.ECHO
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGHUP)
    now += 0.2 * process.ECHO
    with pytest.raises(process.EndedError, match="SIGHUP"):
        signal.raise_signal(signal.SIGHUP)


@pytest.mark.long
@pytest.mark.parametrize("group", [False, True], ids=["the process", "its group"])
@pytest.mark.parametrize("files", [0, 7])
@pytest.mark.parametrize("jobs", [1, 2])
def test_in_the_middle_of_images(tmp_path: Path, jobs: int, files: int, group: bool) -> None:
    """With workers and without: after so many files no part of one is left, and no worker."""
    pytest.importorskip("cv2")
    records = tmp_path / "r.jsonl"
    lines = [{"image_id": str(number), "file_name": f"{number}.png"} for number in range(4)]
    records.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for line in lines:
        (tmp_path / line["file_name"]).write_bytes((FIXTURES / "robust/images/scene_01.png").read_bytes())
    out = tmp_path / "made"
    process = started("corrupt", "--images", tmp_path, "--save-images", out, "--jobs", jobs, records,
                      "-o", tmp_path / "rows", stdout=subprocess.DEVNULL)  # fmt: skip
    until(lambda: len(list(out.rglob("*.png"))) >= files and (not files or out.exists()))
    workers = set(descendants(process.pid))
    os.killpg(process.pid, signal.SIGTERM) if group else process.send_signal(signal.SIGTERM)
    code, said = ended(process)
    assert code == -signal.SIGTERM
    assert said in ("", "hoicli: ended by SIGTERM\n")
    until(lambda: not any(map(alive, workers)))
    assert parts(tmp_path) == []
    assert not (tmp_path / "rows").exists()


FORKS = """
import os, sys, time
from hoicli.io import process
from hoicli.io.forks import {way}
process.catch_signals()
os.sched_getaffinity = lambda _: range(3)
def work(share):
    os.write(1, b"%d\\n" % os.getpid())
    if share == {quick}:
        return share
    time.sleep(100)
try:
    {way}(work, [0, 1, 2])
except process.EndedError as ended:
    print("ended by", ended, flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("quick", [0, 5])
@pytest.mark.parametrize("way", ["fork_map", "shared_out"])
def test_forks_end_with_their_parent(number: signal.Signals, quick: int, way: str) -> None:
    """While this process has work of its own, and while it waits for that of the others."""
    process = subprocess.Popen([sys.executable, "-c", FORKS.format(quick=quick, way=way)], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, cwd=ROOT)  # fmt: skip
    assert process.stdout is not None
    forks = [int(process.stdout.readline()) for _ in range(3)]
    process.send_signal(number)
    rest = process.stdout.read().decode()
    process.stdout.close()
    process.wait(timeout=PATIENCE)
    assert rest == ("" if number == signal.SIGINT else f"ended by {number.name}\n")
    assert not any(map(alive, forks))


def _signal_at_line(step: int) -> None:
    """From now on, at the nth line of hoicli/io/outputs.py that is run, the signal comes."""
    process.catch_signals()
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if not frame.f_code.co_filename.endswith("hoicli/io/outputs.py"):
            return None
        if event == "line":
            seen += 1
            if seen == step:
                os.kill(os.getpid(), signal.SIGTERM)
        return trace

    sys.settrace(trace)


@pytest.mark.long
@pytest.mark.parametrize("well", [True, False])
def test_at_every_line_of_writing(tmp_path: Path, well: bool) -> None:
    """Wherever it comes between the first and the last line, the old file is there or the new one, and nothing else."""
    path = tmp_path / "out"

    def work() -> int:
        try:
            with atomic_path(str(path)) as temporary:
                Path(temporary).write_text("new")
                if not well:
                    raise ValueError
        except process.EndedError:
            return 7
        except ValueError:
            return 3
        return 0

    codes: list[int] = []
    while codes[-1:] not in ([0], [3]):
        path.write_text("old")
        step = len(codes) + 1
        codes.append(forked(work, lambda step=step: _signal_at_line(step))[0])  # type: ignore[misc]
        assert path.read_text() in (("old", "new") if well else ("old",))
        assert list(tmp_path.iterdir()) == [path], f"at line {step}"
    assert len(codes) > 25
    assert codes[:-1] == [7] * (len(codes) - 1)


def test_what_was_made_before_is_there(hoicli: Hoicli) -> None:
    """Lines that were printed to stdout are, as after Ctrl-C: as many as it has come to, each whole."""
    process = started("mask", "-", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(PREDICTIONS.read_bytes())
    process.stdin.flush()
    until(lambda: taken(process.stdin))
    process.send_signal(signal.SIGTERM)
    out = process.stdout.read()
    process.stdout.close()
    assert ended(process) == (-signal.SIGTERM, "hoicli: ended by SIGTERM\n")
    lines = hoicli("mask", PREDICTIONS).out.encode().splitlines(keepends=True)
    assert out in [b"".join(lines[:count]) for count in range(8)]


LOADING = """import os, signal, sys
class Now:
    def find_spec(self, name, *_):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Now())
from hoicli.__main__ import main; main()"""
"""The command, with Ctrl-C while its modules load."""


def test_an_interrupt_while_modules_load_ends_it_without_a_word() -> None:
    ended = subprocess.run([sys.executable, "-c", LOADING, "--version"], capture_output=True, check=False, cwd=ROOT)
    assert (ended.returncode, ended.stdout, ended.stderr) == (-signal.SIGINT, b"", b"")
