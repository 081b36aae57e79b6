"""Every number of a report is a row's of the command that the report names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.support.page import Page
from tests.support.project import FIXTURES, Hoicli
from tests.support.reports import GT, PREDICTIONS, VCOCO, page_of, rows_of, shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gt", GT, PREDICTIONS),
        ("--gt", GT, "--split", "rf-uc", "--protocol", "hico,upt", "--top-k", "3", PREDICTIONS),
        (*VCOCO, FIXTURES / "vcoco/predictions.jsonl"),
        ("--dataset", "swig", "--gt", FIXTURES / "swig/gt.jsonl", FIXTURES / "swig/predictions.jsonl"),
    ],
    ids=["hico", "options", "vcoco", "swig"],
)
def test_protocols_are_evals(arguments: tuple[object, ...], hoicli: Hoicli) -> None:
    rows = rows_of(hoicli("eval", *arguments, "--format", "jsonl"))
    by_metric = sorted(rows, key=lambda row: row["metric"] != "mAP")
    columns = list(dict.fromkeys((row["metric"], row["subset"]) for row in by_metric))
    values = {(row["protocol"], row["metric"], row["subset"]): row["value"] for row in rows}
    names = list(dict.fromkeys(row["protocol"] for row in rows))
    page = page_of(hoicli, *arguments)
    lines = page.table("protocol", "evaluator")
    assert [line[0] for line in lines] == names
    for line in lines:
        wanted = [shown(values.get((line[0], *column))) for column in columns]
        assert line[2:] == wanted
    signatures = {row["signature"] for row in rows}
    assert signatures <= {line[1] for line in page.table("rows of", "signature")}


@pytest.mark.parametrize(
    "arguments",
    [
        ("--gt", GT, PREDICTIONS),
        (*VCOCO, FIXTURES / "vcoco/predictions.jsonl"),
        ("--gt", GT, "--nms", "0.5", PREDICTIONS),
    ],
    ids=["hico", "vcoco", "nms"],
)
def test_errors_are_diagnoses(arguments: tuple[object, ...], hoicli: Hoicli) -> None:
    rows = rows_of(hoicli("diagnose", *arguments, "--top", "4", "--format", "jsonl"))
    page = page_of(hoicli, "--top", "4", *arguments)
    subsets = list(dict.fromkeys(row["subset"] for row in rows if row["metric"] == "count"))
    counts = {(row["error"], row["subset"]): row["value"] for row in rows if row["metric"] == "count"}
    deltas = {(row["oracle"], row["subset"]): row["value"] for row in rows if row["metric"] == "delta_mAP"}
    types = list(dict.fromkeys([*(error for error, _ in counts), *(oracle for oracle, _ in deltas)]))
    for name, line in zip(types, page.table("type"), strict=True):
        assert line[0].lower().replace(" ", "_") == name
        wanted = [shown(counts.get((name, subset))) for subset in subsets]
        wanted += [shown(deltas.get((name, subset)), signed=True) for subset in subsets]
        assert line[1:] == wanted
    top = [row for row in rows if row["metric"] == "top_delta_AP"]
    qualifier = "role" if "--dataset" in arguments else "object"
    lines = page.table("verb", qualifier, "subset", "what to fix")
    assert [(line[0], line[5]) for line in lines] == [(row["verb"], shown(row["value"], signed=True)) for row in top]
    images = [row for row in rows if row["metric"] == "unfound_gt"]
    assert [line[:2] for line in page.table("image")] == [[row["image_id"], str(row["value"])] for row in images]


@pytest.mark.parametrize("arguments", [("--gt", GT, PREDICTIONS), (*VCOCO, FIXTURES / "vcoco/predictions.jsonl")])
def test_pairs_are_pairstats(arguments: tuple[object, ...], hoicli: Hoicli) -> None:
    rows = rows_of(hoicli("pairstats", *arguments, "--nms-sweep", "0.3,0.5,0.7", "--format", "jsonl"))
    lines = page_of(hoicli, *arguments).table("measure", "subset", "all pairs", "0.3", "0.5", "0.7")
    places = list(dict.fromkeys((row["metric"], row["subset"]) for row in rows))
    assert len(lines) == len(places)
    for line, (metric, subset) in zip(lines, places, strict=True):
        assert line[1] == subset
        assert line[2:] == [shown(row["value"]) for row in rows if (row["metric"], row["subset"]) == (metric, subset)]


def test_what_a_dump_does_not_say_is_told(hoicli: Hoicli) -> None:
    text = "".join(page_of(hoicli, "--gt", GT, PREDICTIONS).text)
    assert "No interaction mAP: 35 of 35 triplets have no verb_score." in text
    assert "No negative AP: 23 of 23 pairs have neither interactiveness nor a verb_score" in text


def test_classes_are_evals(hoicli: Hoicli) -> None:
    arguments = ("--gt", GT, PREDICTIONS)
    rows = rows_of(hoicli("eval", "--protocol", "hico", "--per-class", *arguments, "--format", "jsonl"))
    ap = {(row["verb"], row["object"]): row for row in rows if row["metric"] == "AP"}
    recall = {(row["verb"], row["object"]): row["value"] for row in rows if row["metric"] == "max_recall"}
    page = page_of(hoicli, *arguments, "--top", "3")
    heads = ("verb", "object", "subset", "GT", "AP", "max recall")
    weakest, every = (lines[1:] for lines in page.tables if tuple(lines[0]) == heads)
    assert len(every) == len(ap) == 600
    for verb, thing, subset, count, value, found in every:
        row = ap[verb, thing]
        assert (subset, count) == (row["subset"], str(row["n"]))
        assert (value, found) == (shown(row["value"]), shown(recall[verb, thing]))
    known = [row for row in ap.values() if row["n"]]
    assert [line[4] for line in weakest] == [shown(value) for value in sorted(row["value"] for row in known)[:3]]
    text = "".join(page.text)
    assert f"600 classes, {len(known)} with ground truth; {sum(row['value'] == 0 for row in known)} of these" in text
    assert page.all("details")


@pytest.mark.parametrize("count", [1, 2])
def test_commands_give_the_same_numbers(
    count: int, tmp_path: Path, hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command lines at the end of a report run, on files of these names, and make the rows it signs."""
    lines = PREDICTIONS.read_bytes().splitlines(keepends=True)
    (tmp_path / GT.name).write_bytes(GT.read_bytes())
    (tmp_path / "one part.jsonl").write_bytes(b"".join(lines[:3]))
    (tmp_path / "two.jsonl").write_bytes(b"".join(lines[3:]))
    streams = [tmp_path / name for name in ("one part.jsonl", "two.jsonl")][:count]
    options = ("--split", "uv", "--top-k", "5", "--tag", "run=it's", "--protocol", "hico-ko", "--gt", GT)
    page = page_of(hoicli, *options, *streams)
    commands = [text for text in page.text if text.startswith("hoicli ") and " --gt " in text]
    names = [command.split()[1] for command in commands]
    once = ["eval", "eval", "curves", "diagnose", "confusion", "pairstats"]
    assert names == [name for name in once for _ in streams] + ["compare"] * (count - 1)
    monkeypatch.chdir(tmp_path)
    signed = {line[1] for line in page.table("rows of", "signature")}
    made = set()
    for command in commands:
        made |= {row["signature"] for row in rows_of(hoicli(*shlex.split(command)[1:], "--format", "jsonl"))}
    assert made == signed


def test_intervals_are_evals(hoicli: Hoicli) -> None:
    arguments = ("--bootstrap", "50", "--seed", "3", "--gt", GT, PREDICTIONS)
    rows = rows_of(hoicli("eval", "--per-class", *arguments, "--format", "jsonl"))
    page = page_of(hoicli, *arguments)
    wanted: dict[str, list[str]] = {}
    for row in rows:
        if row["metric"] == "mAP":
            low, high = row["ci_low"], row["ci_high"]
            interval = "" if low is None else f" [{shown(low)}, {shown(high)}]"
            wanted.setdefault(row["protocol"], []).append(shown(row["value"]) + interval)
    assert any("[" in cell for cells in wanted.values() for cell in cells)
    assert {line[0]: line[2:] for line in page.table("protocol", "evaluator")} == wanted
    assert any("boot:50|seed:3" in line[1] for line in page.table("rows of", "signature"))


def test_headlines(hoicli: Hoicli) -> None:
    page = hoicli("report", "--gt", GT, PREDICTIONS).out
    tiles = re.findall(r'<dt>([^<]*)</dt><dd class="big">([^<]*)</dd>', page)
    assert tiles == [
        ("mAP full", "1.94"),
        ("mAP rare", "0.72"),
        ("mAP non_rare", "2.31"),
        ("largest single gain", "+13.52"),
        ("pair recall", "81.82"),
    ]
    assert "8 images, 16 annotated and 41 predicted triplets" in page
    assert ("of them without predictions; their triplets count as missed", "1") in [
        tuple(line) for lines in Page(page).tables for line in lines
    ]


def test_sections_in_order(hoicli: Hoicli) -> None:
    before = ["Protocols", "Curves and thresholds", "Errors"]
    after = ["Pairs", "Classes", "Images", "Gallery", "How these numbers were made"]
    ours = ["predictions on HICO-DET", *before, "Confusions", *after]
    assert page_of(hoicli, "--gt", GT, PREDICTIONS).titles == ours
    swig = page_of(hoicli, "--dataset", "swig", "--gt", FIXTURES / "swig/gt.jsonl", FIXTURES / "swig/predictions.jsonl")
    assert swig.titles == ["predictions on SWIG-HOI", *before, *after]  # where nothing is taken for anything


def test_markdown_has_the_same_tables(tmp_path: Path, hoicli: Hoicli) -> None:
    arguments = ("--gt", GT, "--title", "A | B", PREDICTIONS)
    page = page_of(hoicli, *arguments)
    assert hoicli("report", *arguments, "-o", tmp_path / "r.md").code == 0
    text = (tmp_path / "r.md").read_text()
    assert text == hoicli("report", *arguments, "--format", "md").out
    assert text.startswith("# A \\| B\n")
    tables: list[list[list[str]]] = []
    last = ""
    for line in text.splitlines():
        if line.startswith("| "):
            if not last.startswith("| "):
                tables.append([])
            tables[-1].append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
        last = line
    assert len(tables) == len(page.tables)
    for table, drawn in zip(tables, page.tables, strict=True):
        head, rule, *body = table
        assert {len(line) for line in table} == {len(head)}
        assert set(rule) <= {"---", "---:"}
        ours = [[re.sub(r"[`\\]", "", cell) for cell in line if cell] for line in body]
        theirs = drawn[-len(body) :]
        assert ours == [[cell for cell in line if cell] for line in theirs]
    assert "<svg" not in text
