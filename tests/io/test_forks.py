"""Forks are made where they may be made; elsewhere the work is done in one process. What macOS and Windows lack or
forbid is taken away from Python here: every kind of command gives the same bytes."""

from __future__ import annotations

import errno
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from hoicli.io.forks import fork_map, shared_out, work_in_turns
from tests.support.project import FIXTURES, PATIENCE, ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")

IN_TURNS = """
from hoicli.io.forks import in_turns
for _ in in_turns(lambda _: bytes(1_000_000), range(9), lambda: range(9), 3):
    print(flush=True)
    input()
"""
SHARED_OUT = """
import os, time
from hoicli.io.forks import shared_out
os.sched_getaffinity = lambda _: range(3)
def work(item):
    os.write(1, b"\\n")
    time.sleep(0.1)
shared_out(work, range(10_000))
"""


def inside() -> tuple[list[int] | None, list[tuple[int, int]]]:
    """What a worker of somebody's pool gets."""
    items = [1, 2, 3]
    return fork_map(abs, items), list(work_in_turns(abs, items, lambda: items, 2))


def test_a_worker_of_a_pool_has_no_children() -> None:
    """multiprocessing refuses them, as in a DataLoader's worker."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(inside) == (None, [(1, 1), (2, 2), (3, 3)])
    assert inside() == ([1, 2, 3], [(1, 1), (2, 2), (3, 3)])


@pytest.mark.parametrize("code", [IN_TURNS, SHARED_OUT], ids=["in turns", "shared out"])
def test_a_killed_process_leaves_no_forks(code: str) -> None:
    """They hold its stdout, which ends only with the last of them."""
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=60)


def test_an_item_goes_to_whoever_is_free(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(3))
    here, seen, told, forks = os.getpid(), tmp_path / "seen", list[int](), Mock(wraps=os.fork)
    monkeypatch.setattr(os, "fork", forks)
    end = time.monotonic() + PATIENCE

    def process_of(item: int) -> int:
        """The first item takes until a fork has done another."""
        if os.getpid() != here:
            seen.touch()
        while item == 0 and not seen.exists() and time.monotonic() < end:
            time.sleep(0.01)
        return os.getpid()

    found = shared_out(process_of, range(40), tell=told.append)
    assert found[0] == here
    assert len(set(found)) > 1
    assert forks.call_count == 2
    assert told == [item for item, process in enumerate(found) if process == here]


def test_turns_go_round() -> None:
    items = range(6)
    processes = [process for _, process in work_in_turns(lambda _: os.getpid(), items, lambda: items, 3)]
    assert processes[0] == os.getpid()
    assert len(set(processes)) == 3
    assert processes[3:] == processes[:3]


def test_what_forks_do_not_do_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(3))
    here, items = os.getpid(), [1, 2, 3]

    def double(item: int) -> int:
        if os.getpid() != here:
            os._exit(1)
        return 2 * item

    def refused() -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    assert shared_out(double, items) == [2, 4, 6]
    assert shared_out(double, items[:1]) == [2]
    monkeypatch.setattr(os, "fork", refused)  # no more processes are allowed
    assert shared_out(double, items) == [2, 4, 6]
    assert list(work_in_turns(double, items, lambda: items, 2)) == [(1, 2), (2, 4), (3, 6)]
    monkeypatch.setattr(os, "fork", None)
    assert shared_out(double, items, worth=False) == [2, 4, 6]


WITHOUT = """
import multiprocessing, os, signal, sys, sysconfig
sysconfig.get_config_vars()  # of this system
# before the package is imported: no forks, no locks or limits, no reading at a place, no groups, no SIGHUP
for owner, names in {os: ("preadv", "sched_getaffinity", "chown", "fork"), signal: ("SIGHUP",)}.items():
    for name in names:
        delattr(owner, name)
sys.modules["fcntl"] = sys.modules["resource"] = None
multiprocessing.set_start_method("spawn", force=True)  # workers run this file, too
sys.platform = "another"
"""
RUN = "from hoicli.__main__ import main\nif __name__ == '__main__': main()\n"

GT, BASELINE, OURS = (str(FIXTURES / f"sample/{name}.jsonl.gz") for name in ("gt", "baseline", "ours"))
COMMANDS: dict[str, tuple[str, ...]] = {
    "eval": ("eval", "--gt", GT, "--bootstrap", "20", "-"),
    "match": ("match", "--gt", GT, "-"),
    "diagnose": ("diagnose", "--gt", GT, "-"),
    "compare": ("compare", "--gt", GT, "--bootstrap", "20", BASELINE, "-"),
    "validate": ("validate", "--gt", GT, "-"),
    "convert": ("convert", str(FIXTURES / "sample/results.json.gz"), "-o", "OUT"),
    "shoe-sim": (
        "shoe-sim", "--backend", "wordnet:wup", "--gt", str(FIXTURES / "shoe/gt.jsonl"),
        str(FIXTURES / "shoe/predictions.jsonl"), "-o", "OUT",
    ),
    "corrupt": (
        "corrupt", "--images", str(FIXTURES / "sample/pictures"), "--save-images", "PICTURES", "--corruption",
        "jpeg,elastic", "--severity", "3", "--jobs", "2", str(FIXTURES / "sample/pictures/sample_0001.png"),
        str(FIXTURES / "sample/pictures/sample_0002.png"), "-o", "OUT",
    ),
}  # fmt: skip


def run(script: Path, arguments: tuple[str, ...], folder: Path) -> tuple[bytes, bytes, dict[str, bytes]]:
    """(stdout, stderr, the files that it wrote)."""
    folder.mkdir()
    with open(OURS, "rb") as stdin:
        words = [sys.executable, str(script), *arguments]
        done = subprocess.run(words, cwd=folder, stdin=stdin, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    written = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return done.stdout, done.stderr, written


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_bytes_without_what_linux_has(name: str, tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here.py", tmp_path / "elsewhere.py"
    here.write_text(RUN)
    elsewhere.write_text(WITHOUT + RUN)
    assert run(elsewhere, COMMANDS[name], tmp_path / "a") == run(here, COMMANDS[name], tmp_path / "b")
