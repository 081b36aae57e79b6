"""The bench says what it measured, and the documents' tables of times are its own."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.bench import corrupt, loops, measuring, released
from tests.bench.__main__ import PAGE, SECTIONS, TABLE, changes, ratios, with_tables
from tests.bench.measuring import HEADER, Cost, Process, Table, measure, measured_table, shown
from tests.bench.options import Options
from tests.support.project import FIXTURES, ROOT, Hoicli
from tests.support.readme import DOCUMENTS

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


def test_what_the_documents_say_of_times_is_what_the_tables_say() -> None:
    """In ratios, which a busy machine changes less than seconds; those are of two quiet cores, and say so."""
    header, _, *rows = tables_of(SECTIONS["hico"].title)[0]
    seconds, over = ({row[0]: row[header.index(name)] for row in rows} for name in ("seconds", "times its floor"))
    text = " ".join(" ".join(path.read_text().split()) for path in DOCUMENTS.values())
    ours = float(seconds["eval --protocol hico"])
    assert "three times as long as reading the dump's lines does." in text
    assert round(float(over["eval --protocol all"])) == 3
    more = float(seconds["eval --protocol hico --bootstrap 1000"]) - ours
    assert f"take two thirds as long again as one ({more:.1f} s on two quiet cores)" in text
    assert round(more / ours, 1) in (0.6, 0.7)
    short, long = (float(seconds[f"compare --name a,b{option}"]) for option in (" --no-errors", ""))
    assert (
        "take four times as long as `eval` does for one (three seconds on two quiet cores), and sixteen times" in text
    )
    assert "with the types of errors (eleven)" in text
    assert (round(short / ours), round(short), round(long / ours), round(long)) == (4, 3, 16, 11)
    assert "nine times as long as `diagnose` does for all (9.6 to 10 s)" in text
    assert round(9.8 / float(seconds["diagnose"])) == 9
    assert "seconds are of two quiet cores" in text
    for claim in ("under a second", "less than a second"):
        assert claim not in text


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
    processes = [
        Process("floor", ("floor",)),
        Process("ours", ("ours",), floor="floor"),
        Process("theirs", ("theirs",), floor="floor", ours="ours", once=True),
    ]
    assert measured_table(processes, 3).rows == [
        ("floor", "", "", "0.50", "8"),
        ("ours", "2.5", "", "1.25", "100"),
        ("theirs", "20.0", "8.0", "10.00", "701"),
    ]
    assert repeats == [3, 3, 1]
    assert capsys.readouterr().err.count("\n") == 3


def test_tables_go_into_the_page() -> None:
    text = "# x\n\n## A\n\n| a |\n| 1 |\n\ntext\n\n| b |\n\n## B\n\n| c |\n\n## End\n\n| d |\n"
    put = with_tables(text, {"A": ["| a |\n| 2 |\n| 3 |\n", "| B |\n"]})
    assert put == text.replace("| 1 |", "| 2 |\n| 3 |").replace("| b |", "| B |")
    assert with_tables(put, {"B": ["| C |\n"]}) == put.replace("| c |", "| C |")


def test_ratios_against_an_earlier_page() -> None:
    head = Table(HEADER, []).markdown()
    before = f"# x\n\n## A\n\n{head}| f |  |  | 1 | 9 |\n| e | 4.0 |  | 4 | 9 |\n| old | 9.9 |  | 4 | 9 |\n\n## B\n\n"
    now = f"## B\n\n{head}| e | 3.0 |  | 3 | 9 |\n\n## A\n\n{head}| e | 3.0 |  | 3 | 9 |\n| new | 1.0 |  | 1 | 9 |\n"
    assert changes(before, now).rows == [("A", "e", "4.0", "3.0", "0.75")]
    found = ratios(BENCHMARKS)
    assert len(found) > 20
    assert {title for title, _ in found} <= {section.title for section in SECTIONS.values()}
    assert all(row[-1] == "1.00" for row in changes(BENCHMARKS, BENCHMARKS).rows)


def test_markdown() -> None:
    table = Table(("what", "n", "note"), [("a", "1", ""), ("b", "2", "x")], frozenset({0, 2}))
    assert table.markdown() == "| what | n | note |\n| --- | ---: | --- |\n| a | 1 |  |\n| b | 2 | x |\n"
    assert shown((sys.executable, "-m", "hoicli", "eval", "a b.jsonl")) == "python -m hoicli eval 'a b.jsonl'"


HOLD = "x = bytearray(60 << 20); x[::4096] = bytes(len(x[::4096])); import os, time; "


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory_is_that_of_all_processes_and_what_they_share_counts_once() -> None:
    """Looked at as often as on a quiet machine once one of the longer waits is long enough."""
    for seconds in (1, 10, 100):
        wait = f"time.sleep({seconds}); "
        alone = measure((sys.executable, "-c", HOLD + wait))
        shared = measure((sys.executable, "-c", HOLD + f"p = os.fork(); {wait}p and os.wait()"))
        doubled = HOLD + f"p = os.fork(); y = p or bytearray(b'1') * (60 << 20); {wait}p and os.wait()"
        twice = measure((sys.executable, "-c", doubled))
        if shared.peak < 1.4 * alone.peak and twice.peak > 1.6 * alone.peak:
            return
    raise AssertionError((alone, shared, twice))


def test_a_command_that_fails_stops_the_bench() -> None:
    with pytest.raises(SystemExit, match=r"absent\.jsonl: no such file"):
        measure((sys.executable, "-m", "hoicli", "validate", "absent.jsonl"))


def test_the_loops_run(hoicli: Hoicli, tmp_path: Path) -> None:
    """Their numbers are held to ours elsewhere; here, that they take these files."""
    truth, found, table = str(FIXTURES / "gt.jsonl"), str(FIXTURES / "predictions.jsonl"), str(tmp_path / "sim.jsonl")
    assert hoicli("shoe-sim", "--backend", "wordnet:wup", "--gt", truth, found, "-o", table).code == 0
    loops.hico(truth, found)
    loops.types(truth, found)
    loops.shoe(truth, found, table)
    loops.vcoco(str(FIXTURES / "vcoco/ground_truth.jsonl"), str(FIXTURES / "vcoco/predictions.jsonl"))
