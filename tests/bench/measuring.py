"""What a whole process costs, and what the bench's page is made of. Imports nothing heavy: see `measure`."""

from __future__ import annotations

import multiprocessing
import os
import platform
import re
import resource
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

PYTHON = (sys.executable,)
HOICLI = (sys.executable, "-m", "hoicli")


@dataclass(frozen=True)
class Options:
    """Where files are made, how often processes run, and what is measured instead of, or beside, made dumps."""

    folder: Path = Path("bench-output")
    repeat: int = 3
    truth: Path | None = None
    predictions: Path | None = None
    peers: Path | None = None
    """A folder of released evaluators: see released.py."""


@dataclass(frozen=True)
class Cost:
    """Wall-clock seconds of a process, start-up included, the MiB it and its children held at the peak, and the
    processor's seconds (user and system) of all of them."""

    seconds: float
    peak: float
    processor: float = 0.0


def measure(command: Sequence[str], repeat: int = 1) -> Cost:
    """The best time of `repeat` runs, and the peak memory of the first, which alone is watched.

    Memory is proportional set size, so that what forks share counts once, summed over the process and its children
    every few milliseconds. Raises `SystemExit` when the command fails.
    """
    runs = [_run(command, watched=turn == 0) for turn in range(repeat)]
    return Cost(min(run.seconds for run in runs), runs[0].peak, min(run.processor for run in runs))


def _run(command: Sequence[str], *, watched: bool) -> Cost:
    # installed modules are compiled; where nothing may be written, each process would compile a hundred of them anew
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    with open(os.devnull, "w") as nowhere:
        start = time.perf_counter()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=nowhere, stderr=subprocess.PIPE, env=environment
        )
    watch = _Watch(process.pid)
    if watched:
        watch.start()
    assert process.stderr is not None
    with process.stderr as pipe:
        complaint = pipe.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = status
    watch.over.set()
    if watched:
        watch.join()
    if status:
        raise SystemExit(f"{shown(command)} failed:\n{complaint.decode(errors='replace')}")
    own = usage.ru_maxrss / 1024
    # a child starts with its parent's ru_maxrss: only beyond that is it the child's
    if usage.ru_maxrss <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
        own = 0.0
    return Cost(seconds, max(watch.peak, own), usage.ru_utime + usage.ru_stime)


class _Watch(threading.Thread):
    """Samples the memory of a process and its descendants. A look costs milliseconds where the process is large, so
    the pauses grow with it: the watcher takes a twentieth of a processor at most."""

    def __init__(self, process: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0.0
        self.over = threading.Event()
        self._process = process

    def run(self) -> None:
        while True:
            start = time.perf_counter()
            self.peak = max(self.peak, sum(map(_megabytes, _family(self._process))))
            if self.over.wait(max(0.005, 20 * (time.perf_counter() - start))):
                return


def _family(process: int) -> Iterator[int]:
    """A process and its descendants, as long as they live (Linux)."""
    yield process
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from _family(int(child))


def _megabytes(process: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def apart(work: Callable[..., T], *arguments: object) -> T:
    """The result of `work` done in a process of its own: a large parent would show in the memory of what it starts."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, arguments)


def shown(command: Sequence[str]) -> str:
    return shlex.join("python" if part == sys.executable else part for part in command)


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Process:
    """A row of the page before it is measured: what is run, the row that is its floor, the row whose peer it is."""

    name: str
    command: tuple[str, ...]
    floor: str | None = None
    ours: str | None = None
    once: bool = False
    """Too slow to be run several times."""


@dataclass(frozen=True)
class Table:
    """Rows of text under a header; the columns `words` are set left, the others, numbers, right."""

    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    words: frozenset[int] = frozenset({0})

    def markdown(self) -> str:
        rule = ["---" if column in self.words else "---:" for column in range(len(self.header))]
        return "".join(f"| {' | '.join(row)} |\n" for row in (self.header, tuple(rule), *self.rows))


HEADER = ("whole process", "times its floor", "times ours", "seconds", "peak MiB")


def measured_table(processes: Sequence[Process], repeat: int) -> Table:
    """Every process run, with a line of progress each."""
    costs: dict[str, Cost] = {}
    rows = []
    for process in processes:
        cost = costs[process.name] = measure(process.command, 1 if process.once else repeat)
        bases = (process.floor, process.ours)
        over = [f"{cost.seconds / costs[other].seconds:.1f}" if other is not None else "" for other in bases]
        rows.append((process.name, *over, f"{cost.seconds:.2f}", f"{cost.peak:.0f}"))
        say(f"  {cost.seconds:8.2f} s  {cost.peak:6.0f} MiB  {process.name}")
    return Table(HEADER, rows)


def machine() -> str:
    """Two lines of Markdown: the machine, and the versions of what was run on it."""
    where = platform.platform()
    with suppress(OSError):
        (model, *_) = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()) or [platform.machine()]
        cores = len(os.sched_getaffinity(0))
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        where = f"{model}, {cores} processors, {memory:.0f} GiB, {platform.system()} {platform.release()}"
    return f"- machine: {where}\n- versions: {versions()}\n"


def versions() -> str:
    found = [f"{platform.python_implementation()} {platform.python_version()}"]
    for name in (
        "NumPy",
        "orjson",
        "SciPy",
        "nltk",
        "opencv-python-headless",
        "imagecorruptions",
        "pycocotools",
        "faster-coco-eval",
        "hotcoco",
    ):
        with suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return ", ".join(found)
