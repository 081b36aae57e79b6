"""python -m tests.hostile: a campaign against every reader, or one case of it again."""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
from pathlib import Path

from tests.hostile.campaign import Tally, campaign
from tests.hostile.judge import judge
from tests.hostile.readers import BY_NAME


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="how long (5)")
    parser.add_argument("--count", type=int, help="cases of each reader, instead of minutes; their time is not judged")
    parser.add_argument("--only", metavar="NAME", default="", help="the readers whose names contain this")
    parser.add_argument("--first", type=int, default=1000, help="number of the first case (1000; CI has those below)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--case", metavar="NAME:NUMBER", help="one case, in this process; its files are kept")
    options = parser.parse_args()
    if options.case:
        return _again(options.case)
    names = [name for name in BY_NAME if options.only in name]
    count, minutes = (options.count, math.inf) if options.count else (sys.maxsize, options.minutes)
    tallies = campaign(names, first=options.first, count=count, jobs=options.jobs, minutes=minutes)
    print(table(tallies))
    print(f"the first case that was not used: {options.first + max(tally.cases for tally in tallies.values()):,}")
    return int(any(tally.faults for tally in tallies.values()))


def table(tallies: dict[str, Tally]) -> str:
    """Reader, cases, refused, slowest, faults; under it each fault."""
    width = max(map(len, tallies))
    rows = [f"{'reader':<{width}}  {'cases':>8}  {'refused':>8}  {'slowest':>8}  {'faults':>6}"]
    for name, tally in tallies.items():
        rows.append(
            f"{name:<{width}}  {tally.cases:>8,}  {tally.refused:>8,}  {tally.slowest:>6.2f} s  {len(tally.faults):>6,}"
        )
    count = sum(len(tally.faults) for tally in tallies.values())
    rows.append(f"{len(tallies)} readers, {sum(tally.cases for tally in tallies.values()):,} cases, {count:,} faults")
    rows += [fault for tally in tallies.values() for fault in tally.faults[:10]]
    return "\n".join(rows)


def _again(case: str) -> int:
    name, _, number = case.rpartition(":")
    folder = Path(tempfile.mkdtemp(prefix="hostile-"), "case")
    os.environ["XDG_CACHE_HOME"] = str(folder.parent)
    verdict = judge(BY_NAME[name], int(number), folder, timed=True)
    print(f"{folder}\n{verdict.way}: hoicli {verdict.call}\nexit code {verdict.code}, {verdict.seconds:.2f} s")
    print(verdict.said)
    print("\n".join(verdict.faults) or "no fault")
    return int(bool(verdict.faults))


if __name__ == "__main__":
    sys.exit(main())
