"""The bench says what it measured, and the documents' tables of times are its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.bench import corrupt, loops, measuring, released
from tests.bench.__main__ import PAGE, SECTIONS, TABLE
from tests.bench.measuring import HEADER, Cost, Options, Process, measure, measured_table
from tests.support.project import FIXTURES, GT, PREDICTIONS, ROOT, Hoicli

PLAIN, WITH_PEERS = Options(), Options(peers=Path("peers"))
BENCHMARKS = (ROOT / PAGE).read_text()


def tables_of(heading: str) -> list[list[list[str]]]:
    """The cells of the tables under a heading of docs/benchmarks.md."""
    sections = re.split(r"^## ", BENCHMARKS, flags=re.MULTILINE)
    (text,) = [part for part in sections if part.startswith(f"{heading}\n")]
    return [
        [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]
        for block in TABLE.findall(text)
    ]


@pytest.mark.parametrize("name", SECTIONS)
def test_the_pages_table_is_the_benchs(name: str) -> None:
    """Row for row; the released evaluators' rows are there only where the bench was given them."""
    section = SECTIONS[name]
    header, _, *rows = tables_of(section.title)[0]
    assert header == list(HEADER)
    possible = [process.name for process in section.processes(WITH_PEERS)]
    shown_rows = [row[0] for row in rows]
    assert shown_rows == [row for row in possible if row in shown_rows]
    assert {process.name for process in section.processes(PLAIN)} <= set(shown_rows)


def test_the_pages_corruptions_are_the_benchs() -> None:
    header, _, *rows = tables_of(SECTIONS["corrupt"].title)[1]
    assert header == list(corrupt.HEADER)
    assert [row[0] for row in rows] == list(corrupt.THEIR_NAMES)
    assert [row[-1] for row in rows] == [corrupt.OTHERWISE.get(row[0], "") for row in rows]


@pytest.mark.parametrize("name", SECTIONS)
def test_a_row_is_compared_with_rows_above_it(name: str) -> None:
    above: set[str] = set()
    for process in SECTIONS[name].processes(WITH_PEERS):
        assert {process.floor, process.ours} - {None} <= above
        assert process.name not in above
        above.add(process.name)
    peers = {process.name for process in SECTIONS[name].processes(WITH_PEERS)}
    assert (peers - {process.name for process in SECTIONS[name].processes(PLAIN)}) <= {released.CDN, released.VCOCO}


def test_ratios(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    costs = {"floor": Cost(0.5, 8.4), "ours": Cost(1.25, 100.0), "theirs": Cost(10.0, 700.6)}
    repeats = []

    def pretended(command: tuple[str, ...], repeat: int) -> Cost:
        repeats.append(repeat)
        return costs[command[0]]

    monkeypatch.setattr(measuring, "measure", pretended)
    first, second = Process("floor", ("floor",)), Process("ours", ("ours",), floor="floor")
    processes = [first, second, Process("theirs", ("theirs",), floor="floor", ours="ours", once=True)]
    assert measured_table(processes, 3).rows == [
        ("floor", "", "", "0.50", "8"),
        ("ours", "2.5", "", "1.25", "100"),
        ("theirs", "20.0", "8.0", "10.00", "701"),
    ]
    assert repeats == [3, 3, 1]
    assert capsys.readouterr().err.count("\n") == 3


def test_a_command_that_fails_stops_the_bench() -> None:
    with pytest.raises(SystemExit, match=r"absent\.jsonl: no such file"):
        measure((sys.executable, "-m", "hoicli", "validate", "absent.jsonl"))


def test_the_loops_run(hoicli: Hoicli, tmp_path: Path) -> None:
    """Their numbers are held to ours elsewhere; here, that they take these files."""
    truth, found, table = str(GT), str(PREDICTIONS), str(tmp_path / "sim.jsonl")
    assert hoicli("shoe-sim", "--backend", "wordnet:wup", "--gt", truth, found, "-o", table).code == 0
    loops.hico(truth, found)
    loops.types(truth, found)
    loops.shoe(truth, found, table)
    loops.vcoco(str(FIXTURES / "vcoco/ground_truth.jsonl"), str(FIXTURES / "vcoco/predictions.jsonl"))
