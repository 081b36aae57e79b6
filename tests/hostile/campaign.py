"""Many cases in child processes, which a crash, a hang or a greedy allocation takes with it: the parent notes it, and
goes on with the next case in a new child."""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.project import ROOT

ADDRESS_SPACE = 2 << 30
"""Bytes of address space a child may have: NumPy, OpenCV and WordNet take some 600 MB of it before any case."""
PATIENCE = 60.0
"""Seconds without a finished case before a child counts as hanging."""


@dataclass
class Tally:
    """What became of a reader's cases."""

    cases: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0


def serve(names: Sequence[str], first: int, count: int) -> None:
    """The child: a line before and after each case of each reader, on the stdout it was born with."""
    from tests.hostile.judge import judge
    from tests.hostile.readers import BY_NAME

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parent = os.fdopen(os.dup(1), "w", buffering=1)
    with tempfile.TemporaryDirectory() as place:
        for name in names:
            for number in range(first, first + count):
                print(json.dumps({"case": f"{name}:{number}"}), file=parent)
                verdict = judge(BY_NAME[name], number, Path(place, "case"))
                result = {"done": name, "code": verdict.code, "seconds": verdict.seconds, "faults": verdict.faults,
                          "way": verdict.way, "call": verdict.call}  # fmt: skip
                print(json.dumps(result), file=parent)


def _conversation(child: subprocess.Popen[str]) -> Iterator[dict[str, object] | None]:
    """What the child says, line by line; None when it says nothing for too long."""
    assert child.stdout is not None
    while True:
        ready, _, _ = select.select([child.stdout], [], [], PATIENCE)
        if not ready:
            yield None
            return
        line = child.stdout.readline()
        if not line:
            return
        yield json.loads(line)


def attack(names: Sequence[str], first: int, count: int, tallies: dict[str, Tally]) -> None:
    """`count` cases of each reader from number `first` on."""
    todo = [(name, first, count) for name in names]
    while todo:
        # as many readers at a time as begin alike; the first may have to go on where a child died
        batch = [row for row in todo if row[1:] == todo[0][1:]]
        todo = todo[len(batch) :] if todo[: len(batch)] == batch else todo[1:]
        batch = batch if len(batch) + len(todo) <= len(names) else batch[:1]
        current = _one_child([row[0] for row in batch], batch[0][1], batch[0][2], tallies)
        if current is None:
            continue
        name, number = current
        rest = [row[0] for row in batch][[row[0] for row in batch].index(name) + 1 :]
        left = batch[0][1] + batch[0][2] - number - 1
        todo = [(name, number + 1, left)] * (left > 0) + [(other, first, count) for other in rest] + todo


def _one_child(names: Sequence[str], first: int, count: int, tallies: dict[str, Tally]) -> tuple[str, int] | None:
    """Run one child to its end: None, or (reader, number) of the case that it died of, which is noted as a fault."""
    words = [sys.executable, "-m", "tests.hostile", "--serve", str(first), str(count), *names]
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1", "OPENBLAS_NUM_THREADS": "1", "MPLCONFIGDIR": "/tmp"}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=environment) as child,
    ):
        case, hung = "", False
        for said in _conversation(child):
            if said is None:
                hung = True
                child.kill()
            elif "case" in said:
                case = str(said["case"])
            else:
                tally = tallies.setdefault(str(said["done"]), Tally())
                tally.cases += 1
                tally.refused += said["code"] != 0
                tally.slowest = max(tally.slowest, float(str(said["seconds"])))
                faults = said["faults"]
                assert isinstance(faults, list)
                tally.faults += [f"{case} ({said['way']}; {said['call']}): {fault}" for fault in faults]
                case = ""
        code = child.wait()
        if not hung and code == 0:
            return None
        errors.seek(0)
        told = errors.read().decode("utf-8", "replace")[-1500:]
    if not case:
        raise RuntimeError(f"a child of the campaign died between cases: {told}")
    name, _, number = case.rpartition(":")
    tally = tallies.setdefault(name, Tally())
    tally.cases += 1
    tally.faults.append(f"{case}: {'hung' if hung else f'died with {code}'}: {told}")
    return name, int(number)


def campaign(names: Sequence[str], *, first: int, count: int, jobs: int = 2) -> dict[str, Tally]:
    """A tally a reader, of `count` cases each, in `jobs` children at a time."""
    tallies: dict[str, Tally] = {name: Tally() for name in names}
    with ThreadPoolExecutor(jobs) as pool:
        parts = [names[part::jobs] for part in range(jobs)]
        for done in [pool.submit(attack, part, first, count, tallies) for part in parts if part]:
            done.result()
    return tallies


def long_campaign(names: Sequence[str], minutes: float, *, first: int, jobs: int) -> dict[str, Tally]:
    """Rounds of cases, each with new numbers, until the time is over."""
    end = time.monotonic() + 60 * minutes
    total: dict[str, Tally] = {name: Tally() for name in names}
    count = 50
    while time.monotonic() < end:
        for name, tally in campaign(names, first=first, count=count, jobs=jobs).items():
            total[name].cases += tally.cases
            total[name].refused += tally.refused
            total[name].faults += tally.faults
            total[name].slowest = max(total[name].slowest, tally.slowest)
        first += count
    return total
