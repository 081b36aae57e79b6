"""Many cases, some at a time in a fork, which a crash, a hang or a greedy allocation takes with it: that is noted, and
the others of the fork go on in a new one."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from tests.hostile.judge import judge
from tests.hostile.readers import BY_NAME
from tests.support.forks import import_everything

ADDRESS_SPACE = 2 << 30
"""Bytes of address space a case may have: NumPy, OpenCV and WordNet take some 600 MB of it before."""
PATIENCE = 600
"""Seconds after which a case hangs, on a busy machine, too."""
TOGETHER = 30
"""Cases of a fork: what they read of hoicli's own files is read once for all."""

Case = tuple[int, str]
"""(number, reader)."""


@dataclass
class Tally:
    """What became of a reader's cases."""

    cases: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0


def campaign(names: Sequence[str], *, first: int, count: int, jobs: int, minutes: float = math.inf) -> dict[str, Tally]:
    """A tally a reader, of its cases from number `first` on: `count`, or as many as begin within some minutes; a case
    of every reader comes before the second of any. Faults are told on stderr as they are found."""
    import_everything()
    end = time.monotonic() + 60 * minutes
    cases: Iterator[Case] = ((number, name) for number in range(first, first + count) for name in names)
    tallies = {name: Tally() for name in names}
    running: dict[int, list[Case]] = {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        while True:
            while len(running) < jobs and time.monotonic() < end and (some := list(islice(cases, TOGETHER))):
                running[_started(some, place, timed=minutes < math.inf)] = some
            if not running:
                return tallies
            process, status = os.wait()
            some = running.pop(process)
            verdicts = list(map(json.loads, (place / f"{process}.jsonl").read_text().splitlines()))
            if status:
                fault = f"died or hung ({os.waitstatus_to_exitcode(status)})"
                verdicts.append({"way": "", "call": "", "code": 1, "faults": [fault], "seconds": 0.0})
            for case, verdict in zip(some, verdicts, strict=False):
                _count(tallies[case[1]], case, verdict)
            cases = chain(some[len(verdicts) :], cases)


def _started(cases: Sequence[Case], place: Path, *, timed: bool) -> int:
    """The number of the process that judges some cases; a line for each verdict goes to a file of that name. After a
    greedy case it ends early, since a process keeps the mark of its most memory."""
    if process := os.fork():
        (place / f"{process}.jsonl").touch()
        return process
    code = 1
    try:
        own = os.getpid()
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ["XDG_CACHE_HOME"] = str(place / f"{own}-cache")  # of every broken WordNet that is taken
        with (place / f"{own}.jsonl").open("a", buffering=1) as verdicts:
            for number, name in cases:
                signal.alarm(PATIENCE)
                verdict = judge(BY_NAME[name], number, place / str(own), timed=timed)
                verdicts.write(json.dumps(asdict(verdict)) + "\n")
                if any("of memory" in fault for fault in verdict.faults):
                    break
        code = 0
    finally:
        os._exit(code)


def _count(tally: Tally, case: Case, verdict: dict[str, Any]) -> None:
    number, name = case
    faults = [f"{name}:{number} ({verdict['way']}; {verdict['call']}): {fault}" for fault in verdict["faults"]]
    tally.cases += 1
    tally.refused += verdict["code"] != 0
    tally.slowest = max(tally.slowest, verdict["seconds"])
    tally.faults += faults
    for fault in faults:
        print(fault, file=sys.stderr, flush=True)
