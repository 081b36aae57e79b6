"""Many cases in child processes, which a crash, a hang or a greedy allocation takes with it: the parent notes it, and
goes on with the next case in a new child."""

from __future__ import annotations

import json
import math
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
PATIENCE = 600.0
"""Seconds without a finished case before a child counts as hanging: on a busy machine it takes a minute to begin."""
ROUND = 10
"""Cases of each reader in a round of a long campaign."""


@dataclass
class Tally:
    """What became of a reader's cases."""

    cases: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0


def serve(names: Sequence[str], first: int, count: int, done: int, end: float) -> None:
    """The child: the cases but for the `done` first ones, until `end`; a line before and after each on the stdout it
    was born with. After a greedy case it ends early, since a process keeps the mark of its most memory."""
    from tests.hostile.judge import judge
    from tests.hostile.readers import BY_NAME

    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    parent = os.fdopen(os.dup(1), "w", buffering=1)
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CACHE_HOME"] = place  # of every broken WordNet that is taken
        for name, number in _cases(names, first, count)[done:]:
            if time.monotonic() >= end:
                return
            print(json.dumps({"case": f"{name}:{number}"}), file=parent)
            verdict = judge(BY_NAME[name], number, Path(place, "case"), timed=end < math.inf)
            result = {"done": name, "code": verdict.code, "seconds": verdict.seconds, "faults": verdict.faults,
                      "way": verdict.way, "call": verdict.call}  # fmt: skip
            print(json.dumps(result), file=parent)
            if any("of memory" in fault for fault in verdict.faults):
                return


def _cases(names: Sequence[str], first: int, count: int) -> list[tuple[str, int]]:
    """(reader, number) of each case: a case of every reader before the second of any, for a clock that may stop it."""
    return [(name, number) for number in range(first, first + count) for name in names]


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


def attack(names: Sequence[str], first: int, count: int, end: float, tallies: dict[str, Tally]) -> None:
    """`count` cases of each reader from number `first` on, or as many as begin before `end` on the monotonic clock."""
    done = 0
    while done < count * len(names) and time.monotonic() < end:
        done += _one_child(names, first, count, done, end, tallies)


def _one_child(names: Sequence[str], first: int, count: int, done: int, end: float, tallies: dict[str, Tally]) -> int:
    """Run one child to its end: how many cases it had, with the one that it died of, which is noted as a fault."""
    words = [sys.executable, "-m", "tests.hostile", "--serve", *map(str, (first, count, done, end)), *names]
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1", "OPENBLAS_NUM_THREADS": "1", "MPLCONFIGDIR": "/tmp"}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(words, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=ROOT, env=environment) as child,
    ):
        case, hung, had = "", False, 0
        for said in _conversation(child):
            if said is None:
                hung = True
                child.kill()
            elif "case" in said:
                case = str(said["case"])
                had += 1
            else:
                tally = tallies[str(said["done"])]
                tally.cases += 1
                tally.refused += said["code"] != 0
                tally.slowest = max(tally.slowest, float(str(said["seconds"])))
                faults = said["faults"]
                assert isinstance(faults, list)
                tally.faults += [f"{case} ({said['way']}; {said['call']}): {fault}" for fault in faults]
                case = ""
        code = child.wait()
        if not hung and code == 0:
            return had
        errors.seek(0)
        told = errors.read().decode("utf-8", "replace")[-1500:]
    if not case:
        raise RuntimeError(f"a child of the campaign died between cases: {told}")
    tally = tallies[case.rpartition(":")[0]]
    tally.cases += 1
    tally.faults.append(f"{case}: {'hung' if hung else f'died with {code}'}: {told}")
    return had


def campaign(names: Sequence[str], *, first: int, count: int, jobs: int = 2, end: float = math.inf) -> dict[str, Tally]:
    """A tally a reader, of `count` cases each (or as many as begin before `end`), in `jobs` children at a time."""
    tallies: dict[str, Tally] = {name: Tally() for name in names}
    with ThreadPoolExecutor(jobs) as pool:
        parts = [names[part::jobs] for part in range(jobs)]
        for done in [pool.submit(attack, part, first, count, end, tallies) for part in parts if part]:
            done.result()
    return tallies


def long_campaign(names: Sequence[str], minutes: float, *, first: int, jobs: int) -> dict[str, Tally]:
    """Rounds of ten cases a reader, each with new numbers and new children, until the time is over: then every reader
    has had as many cases as the others, or one more (of another job: one round more). Faults are told on stderr as
    they are found."""
    end = time.monotonic() + 60 * minutes
    total: dict[str, Tally] = {name: Tally() for name in names}
    while time.monotonic() < end:
        for name, tally in campaign(names, first=first, count=ROUND, jobs=jobs, end=end).items():
            total[name].cases += tally.cases
            total[name].refused += tally.refused
            total[name].faults += tally.faults
            total[name].slowest = max(total[name].slowest, tally.slowest)
            for fault in tally.faults:
                print(fault, file=sys.stderr, flush=True)
        first += ROUND
    return total
