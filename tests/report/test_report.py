"""The report: its numbers against the rows of the commands, its HTML by a strict parser, and everything hostile."""

from __future__ import annotations

import base64
import builtins
import html as entities
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from hoicli.figures import svg
from hoicli.report.document import Cell, Document, Paragraph, Section, Table, number, pivoted, value_cell
from hoicli.report.html import POLICY
from hoicli.report.html import render as to_html
from hoicli.report.markdown import render as to_markdown
from tests.support.page import Page
from tests.support.project import FIXTURES, Hoicli, Result

GT, PREDICTIONS = FIXTURES / "gt.jsonl", FIXTURES / "predictions.jsonl"
VCOCO = ("--dataset", "vcoco", "--gt", FIXTURES / "vcoco/ground_truth.jsonl")
DASH, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"
HOSTILE = "<script>alert(1)</script>\"'&|`*_[x](y)\x00"


def rows_of(result: Result) -> list[dict[str, Any]]:
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


def page_of(hoicli: Hoicli, *arguments: object) -> Page:
    result = hoicli("report", *arguments)
    assert result.code == 0, result.err
    return Page(result.out)


def shown(value: float | None, *, signed: bool = False) -> str:
    """A value as every table prints it: written apart from the report's own `number`."""
    if value is None:
        return DASH
    text = f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
    if float(text.replace(",", "")) == 0:
        return text.lstrip("-")
    return ("+" if signed and value > 0 else "") + text.replace("-", MINUS)


# --- every number is a row's -------------------------------------------------------------------------------------


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


def test_commands_give_the_same_numbers(tmp_path: Path, hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command lines at the end of a report run, on files of these names, and make the rows it signs."""
    for path in (GT, PREDICTIONS):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    first, second = tmp_path / "one part.jsonl", tmp_path / "two.jsonl"
    lines = PREDICTIONS.read_bytes().splitlines(keepends=True)
    first.write_bytes(b"".join(lines[:3]))
    second.write_bytes(b"".join(lines[3:]))
    options = ("--split", "uv", "--top-k", "5", "--tag", "model=it's", "--protocol", "hico-ko", "--gt", GT)
    together = page_of(hoicli, *options, PREDICTIONS)
    page = page_of(hoicli, *options, first, second)
    assert page.tables[:5] == together.tables[:5]
    commands = [text for text in page.text if text.startswith(("hoicli ", "cat "))]
    commands = [command for command in commands if " --gt " in command]
    assert [re.findall(r"hoicli (\S+)", command)[0] for command in commands] == [
        "eval",
        "eval",
        "diagnose",
        "pairstats",
    ]
    monkeypatch.chdir(tmp_path)
    signed = {line[1] for line in page.table("rows of", "signature")}
    made = set()
    for command in commands:
        *before, words = command.split(" | ")
        if before:  # several streams for a command that takes each for a model of its own
            assert shlex.split(before[0]) == ["cat", first.name, second.name]
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(b"".join(lines)))))
        made |= {row["signature"] for row in rows_of(hoicli(*shlex.split(words)[1:], "--format", "jsonl"))}
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
    assert sum("whisker" in attributes.get("class", "") for attributes in page.all("line")) == sum(
        row["metric"] == "mAP" and row["ci_low"] is not None for row in rows
    )


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
    ours = [
        *("predictions on HICO-DET", "Protocols", "Errors", "Pairs", "Classes", "Images", "Gallery"),
        "How these numbers were made",
    ]
    assert page_of(hoicli, "--gt", GT, PREDICTIONS).titles == ours
    swig = page_of(hoicli, "--dataset", "swig", "--gt", FIXTURES / "swig/gt.jsonl", FIXTURES / "swig/predictions.jsonl")
    assert swig.titles[1:] == ["Protocols", "Errors and pairs", "Classes", "How these numbers were made"]
    assert any("are defined for HICO-DET and V-COCO alone" in text for text in swig.text)


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
        ours = [
            [re.sub(r"[`\\]", "", cell) for cell in line if not re.fullmatch(r"[█▏▎▍▌▋▊▉]*", cell)] for line in body
        ]
        theirs = drawn[-len(body) :]
        assert ours == [[cell for cell in line if cell] for line in theirs]
    assert re.search(r"\| 66\.67 \| ██████▋ \|", text)
    assert "<svg" not in text


# --- the page ----------------------------------------------------------------------------------------------------


def test_loads_and_runs_nothing(hoicli: Hoicli) -> None:
    raw = hoicli("report", "--gt", GT, "--images", FIXTURES / "images", PREDICTIONS).out
    page = Page(raw)
    assert page.all("meta", content=POLICY)
    assert POLICY.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline'")
    assert "http" not in raw.replace('http-equiv="Content-Security-Policy"', "")
    assert "url(" not in raw
    assert "@import" not in raw
    assert not {"script", "link", "iframe", "object", "embed", "form", "img"} & {name for name, _ in page.elements}
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert len(page.all("figure")) == len(page.all("svg", role="img")) == 5
    for attributes in page.all("svg", role="img"):
        assert attributes["aria-label"]


def test_pictures_are_embedded_once_and_scaled(tmp_path: Path, hoicli: Hoicli) -> None:
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "images"
    folder.mkdir()
    for path in (FIXTURES / "images").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    name = "HICO_test2015_00000001.jpg"
    with image.open(folder / name) as picture:
        picture.resize((2400, 1600)).save(folder / name)
    page = page_of(hoicli, "--gt", GT, "--images", folder, PREDICTIONS)
    pictures = page.all("image")
    assert pictures
    assert {attributes["href"].split(",")[0] for attributes in pictures} == {"data:image/jpeg;base64"}
    assert len({attributes["href"] for attributes in pictures}) == len(pictures)
    assert len(page.all("use")) > len(pictures)
    sides = []
    for attributes in pictures:
        with image.open(io.BytesIO(base64.b64decode(attributes["href"].split(",")[1]))) as picture:
            sides.append(max(picture.size))
    assert max(sides) == 480
    (folder / name).write_bytes((folder / name).read_bytes()[:3000])  # cut off: an empty sheet, no traceback
    (folder / "HICO_test2015_00000007.jpg").write_bytes(b"GIF89a")
    less = page_of(hoicli, "--gt", GT, "--images", folder, PREDICTIONS)
    assert len(less.all("image")) == len(pictures) - 2


def test_without_pillow_and_matplotlib(tmp_path: Path, hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] in ("matplotlib", "PIL", "cv2"):
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    for name in [name for name in sys.modules if name.split(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    page = page_of(hoicli, "--gt", GT, "--images", FIXTURES / "images", PREDICTIONS)
    assert page.all("image")
    assert len(page.all("figure")) == 5


def test_same_input_same_bytes(tmp_path: Path, hoicli: Hoicli) -> None:
    first = hoicli("report", "--gt", GT, PREDICTIONS).out
    assert hoicli("report", "--gt", GT, "-o", tmp_path / "r.html", PREDICTIONS).code == 0
    assert (tmp_path / "r.html").read_text() == first
    shuffled = tmp_path / PREDICTIONS.name
    shuffled.write_bytes(b"".join(reversed(PREDICTIONS.read_bytes().splitlines(keepends=True))))
    assert hoicli("report", "--gt", GT, shuffled).out == first
    assert str(tmp_path) not in first
    assert not re.search(r"\b20\d\d-\d\d-\d\d", first)


def test_hostile_text_stays_text(tmp_path: Path, hoicli: Hoicli) -> None:
    gt, predictions = tmp_path / "g<b>&'.jsonl", tmp_path / "p`|<i>.jsonl"
    for source, target in ((GT, gt), (PREDICTIONS, predictions)):
        records = [json.loads(line) for line in source.read_text().splitlines()]
        for record in records:
            record["image_id"] += HOSTILE
            if "file_name" in record:
                record["file_name"] = HOSTILE
        target.write_text("".join(json.dumps(record) + "\n" for record in records))
    rows = tmp_path / "rows.jsonl"
    row = {"metric": HOSTILE, "subset": HOSTILE, "value": 1.5, HOSTILE: HOSTILE, "tags": {HOSTILE: HOSTILE}}
    agree = {"metric": HOSTILE, "subset": HOSTILE, "value": 1.5, "unit": HOSTILE, "protocol": "agree"}
    robust = {"metric": "mri", "subset": HOSTILE, "value": 1.5, "protocol": HOSTILE, "tags": {"model": HOSTILE}}
    part = {**robust, "metric": "mean", "corruption": HOSTILE, "family": HOSTILE, "severity": 3}
    rows.write_text("".join(json.dumps(each) + "\n" for each in (row, agree, robust, part)))
    options = ("--title", HOSTILE[:-1], "--tag", f"model={HOSTILE[:-1]}", "--rows", rows, "--images", tmp_path)
    raw = hoicli("report", *options, "--gt", gt, predictions).out
    page = Page(raw)
    assert page.titles[0] == HOSTILE[:-1]
    assert "<script" not in raw
    assert not page.all("script")
    assert "".join(page.text).count(HOSTILE[:-1]) > 10
    markdown = hoicli("report", *options, "--gt", gt, predictions, "--format", "md").out
    outside = re.sub(r"(`+).*?\1", "", re.sub(r"(?m)^    .*$", "", markdown.replace("\\`", "")))
    assert "<script" not in outside
    assert entities.escape("<script>") in markdown
    for line in markdown.splitlines():
        assert not line.startswith("| ") or line.endswith(" |")


def test_an_interval_is_shown() -> None:
    row = {
        "metric": "mAP",
        "subset": "full",
        "value": 33.1,
        "unit": "%",
        "ci_low": 32.512,
        "ci_high": 33.696,
        "protocol": "p",
    }
    assert value_cell(row) == Cell("33.10", "[32.51, 33.70]")
    table = pivoted([row], "t", index=("protocol",))
    document = Document("t", ["lead"], [], [Section("a", "A", [Paragraph(["words"]), table])])
    page = Page(to_html(document).decode())
    assert page.table("protocol", "full") == [["p", "33.10 [32.51, 33.70]"]]
    assert b"| p | 33.10 \\[32.51, 33.70\\] |" in to_markdown(document)
    drawing = svg.dots([("p", [svg.Dot("full", 33.1, 32.512, 33.696)])], "n")
    assert drawing.count("whisker") == 1


@pytest.mark.parametrize(
    ("value", "unit", "signed", "text"),
    [
        (None, "%", True, DASH),
        (1234567, "triplets", False, "1,234,567"),
        (-1.239, "%", True, f"{MINUS}1.24"),
        (-0.001, "%", True, "0.00"),
        (0.0, "%", True, "0.00"),
        (2.0, "%", True, "+2.00"),
        (0.12345, "kappa", False, "0.123"),
        (0.00123, "probability", False, "0.0012"),
    ],
)
def test_numbers(value: float | None, unit: str, signed: bool, text: str) -> None:
    assert number(value, unit, signed=signed) == text


# --- rows of other commands --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from hoicli.cli import run

    folder = tmp_path_factory.mktemp("rows")
    shoe = [f"--gt={FIXTURES}/shoe/gt.jsonl", f"--sim={FIXTURES}/shoe/sim.jsonl", f"{FIXTURES}/shoe/predictions.jsonl"]
    commands = {
        "robust": ["robust", f"{FIXTURES}/robust/rows.jsonl"],
        "shoe": ["shoe-eval", *shoe, "--per-class"],
        "agree": ["agree", f"{FIXTURES}/ratings.jsonl", "--subsets", "--distribution"],
        "eval": ["eval", "--gt", str(GT), str(PREDICTIONS), "--tag", "model=other"],
        "compare": ["compare", "--gt", str(GT), "--bootstrap", "50", str(PREDICTIONS), str(folder / "b.jsonl")],
    }
    (folder / "b.jsonl").write_bytes(b"".join(PREDICTIONS.read_bytes().splitlines(keepends=True)[1:]))
    files = {name: folder / f"{name}.jsonl" for name in commands}
    for name, words in commands.items():
        assert run([*words, "--format", "jsonl", "-o", str(files[name])]) == 0
    return files


def test_rows_of_other_commands(given: dict[str, Path], hoicli: Hoicli) -> None:
    options = [word for path in given.values() for word in ("--rows", path)]
    page = page_of(hoicli, *options, "--gt", GT, PREDICTIONS)
    assert page.titles[4:9] == ["Robustness", "Open vocabulary (SHOE)", "Comparison", "Agreement", "Other results"]
    rows = {name: [json.loads(line) for line in path.read_text().splitlines()] for name, path in given.items()}
    robust = {
        (row["tags"]["model"], row["metric"]): row["value"]
        for row in rows["robust"]
        if not {"corruption", "family", "severity"} & row.keys()
    }
    summary = page.table("model", "protocol", "subset", "rank", "clean", "MRI", "CRI", "relative drop", "worst")
    for model, _, _, rank, clean, mri, cri, _, _ in summary:
        assert rank == str(robust[model, "rank"])
        assert (clean, mri) == (shown(robust[model, "clean"]), shown(robust[model, "mri"]))
        assert cri == f"{robust[model, 'cri']:.3f}"
    cells = {
        (row["corruption"], row["tags"]["model"]): row["value"]
        for row in rows["robust"]
        if row["metric"] == "mean" and "corruption" in row
    }
    parts = page.table("corruption", "family")
    assert len(parts) == 20
    assert all(line[2:] == [shown(cells[line[0], model]) for model in ("plain", "median")] for line in parts)
    (line,) = page.table("protocol", "soft map", "mf1")
    assert line == ["shoe", *(shown(row["value"]) for row in rows["shoe"] if "verb" not in row)]
    others = {(row["protocol"], row["metric"], row["subset"]): row["value"] for row in rows["eval"]}
    lines = [line for line in page.table("model", "protocol", "full", "rare") if line[0] == "other"]
    assert [line[2] for line in lines] == [shown(others[line[1], "mAP", "full"]) for line in lines]
    assert len(lines) == 6
    differences = [row for row in rows["compare"] if row["metric"] == "mAP_diff"]
    compared = page.table("model", "baseline", "protocol", "measure", "subset", "from", "to", "difference", "p")
    for line, row in zip(compared, differences, strict=True):
        assert line[4:7] == [row["subset"], shown(row["from"]), shown(row["to"])]
        ends = "" if row["ci_low"] is None else f" [{shown(row['ci_low'])}, {shown(row['ci_high'])}]"
        assert line[7] == shown(row["value"]) + ends
        assert line[8] == (DASH if row["p"] is None else f"{row['p']:.4f}")
    agreement = {row["subset"]: row["value"] for row in rows["agree"] if row["metric"] == "agreement"}
    assert [line[1] for line in page.table("of", "agreement", "spearman")] == list(map(shown, agreement.values()))
    assert len(page.all("figure")) == 6


def test_rows_of_one_model(given: dict[str, Path], tmp_path: Path, hoicli: Hoicli) -> None:
    rows = [json.loads(line) for line in given["robust"].read_text().splitlines()]
    one = tmp_path / "one.jsonl"
    chosen = [row for row in rows if row["tags"]["model"] == "plain" and row["metric"] != "rank"]
    one.write_text("".join(json.dumps(row) + "\n" for row in chosen))
    page = page_of(hoicli, "--rows", one, "--gt", GT, PREDICTIONS)
    sigma = {row["corruption"]: row["value"] for row in chosen if row["metric"] == "sigma"}
    lines = page.table("corruption", "family", "mean", "sigma")
    assert [line[3] for line in lines] == [shown(sigma[line[0]]) for line in lines]
    doubled = hoicli("report", "--rows", one, "--rows", one, "--gt", GT, PREDICTIONS)
    assert doubled.code == 0  # the same value twice is no contradiction


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[]", "an array, not an object"),
        ('{"metric": "mAP", "value": 1}', "subset: missing or no string"),
        ('{"metric": "mAP", "subset": "full", "value": "high"}', "value: missing or no finite number"),
        ('{"metric": "mAP", "subset": "full", "value": 1, "ci_low": "x", "ci_high": 2}', "ci_low: no finite number"),
        ('{"metric": "mAP", "subset": "full", "value": 1, "unit": []}', "unit: must be a string"),
        ('{"metric": "mri", "subset": "full", "value": 1, "severity": "x"}', "severity: must be a whole number"),
        ('{"metric": "a", "subset": "b", "value": 2}', "value: another value of what"),
    ],
)
def test_bad_rows(line: str, message: str, tmp_path: Path, hoicli: Hoicli) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"metric": "a", "subset": "b", "value": 1}\n' + line + "\n")
    target = tmp_path / "r.html"
    result = hoicli("report", "--rows", rows, "--gt", GT, "-o", target, PREDICTIONS)
    assert result.code == 1
    assert result.err.startswith(f"{rows}:2: ")
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not target.exists()
    skipped = hoicli("report", "--rows", rows, "--gt", GT, "-o", target, "--on-error", "skip", PREDICTIONS)
    assert skipped.code == 0
    assert "skipped 1 line; the first" in skipped.err


# --- streams -----------------------------------------------------------------------------------------------------


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))


def test_stdin_is_kept_and_removed(spool: Path, hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = hoicli("report", "--gt", GT, PREDICTIONS).out
    feed(monkeypatch, PREDICTIONS.read_bytes())
    piped = hoicli("report", "--gt", GT, "-")
    assert piped.code == 0
    named = piped.out.replace("stdin on HICO", "predictions on HICO").replace(
        "<code>stdin<", "<code>predictions.jsonl<"
    )
    assert named.replace(" -</code>", " predictions.jsonl</code>") == plain
    assert not list(spool.iterdir())
    feed(monkeypatch, GT.read_bytes())
    assert hoicli("report", "--gt", "-", PREDICTIONS).code == 0
    assert not list(spool.iterdir())


@pytest.mark.parametrize("skip", [False, True])
def test_a_bad_stdin_is_named_and_removed(
    skip: bool, spool: Path, tmp_path: Path, hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = PREDICTIONS.read_bytes().splitlines(keepends=True)
    feed(monkeypatch, b"".join([*lines, lines[0]]))
    options = ["--on-error", "skip"] if skip else []
    target = tmp_path / "r.html"
    result = hoicli("report", "--gt", GT, "-o", target, *options, "-")
    assert result.code == (0 if skip else 1)
    place = f"<stdin>:{len(lines) + 1}: image_id: image 'HICO_test2015_00000001' is at <stdin>:1 already"
    assert place in result.err
    assert str(spool) not in result.err
    assert target.exists() == skip
    if skip:
        assert ["bad lines dropped", "1"] in [line for table in Page(target.read_text()).tables for line in table]
    assert not list(spool.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_kept(spool: Path, tmp_path: Path, hoicli: Hoicli) -> None:
    pipe = tmp_path / "predictions.jsonl"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(PREDICTIONS.read_bytes()))
    writer.start()
    result = hoicli("report", "--gt", GT, pipe)
    writer.join()
    assert result.code == 0
    assert result.out == hoicli("report", "--gt", GT, PREDICTIONS).out
    assert not list(spool.iterdir())


def test_pairs_that_are_wrong_are_told(tmp_path: Path, hoicli: Hoicli) -> None:
    """A line may be sound for eval and not for pairstats: dropped from the pairs alone, and said."""
    records = [json.loads(line) for line in PREDICTIONS.read_text().splitlines()]
    records[0]["pairs"] = [{"subject": 0, "object": 99}]
    path = tmp_path / "p.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    result = hoicli("report", "--gt", GT, path)
    assert result.code == 1
    assert f"{path}:1: pairs[0].object: index 99" in result.err
    result = hoicli("report", "--gt", GT, "--on-error", "skip", path)
    assert result.code == 0
    assert f"skipped 1 line; the first: {path}:1: pairs[0].object" in result.err


# --- wrong calls -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((PREDICTIONS,), "report: give the ground truth with --gt FILE"),
        (("--gt", GT, "-o", "r.pdf", PREDICTIONS), "-o r.pdf: end the name in .html, .htm or .md"),
        (("--gt", GT, "--format", "pdf", PREDICTIONS), "--format pdf: choose from auto, html, md"),
        (("--gt", GT, "--top", "-1", PREDICTIONS), "--top -1: give a whole number of at least 0"),
        (("--gt", GT, "--images", "nowhere", PREDICTIONS), "--images nowhere: there is no such folder"),
        (("--gt", GT, "--split", "none", PREDICTIONS), "--split none: hico has"),
        (("--gt", GT, "--protocol", "coco", PREDICTIONS), "--protocol: unknown 'coco'"),
        (("--gt", GT, "--dataset", "coco", PREDICTIONS), "unknown dataset 'coco'"),
        (("--gt", GT, "--dataset", "vcoco", "--protocol", "hico", PREDICTIONS), "--protocol hico: of hico, not vcoco"),
        (("--gt", GT, "--nms", "2", PREDICTIONS), "--nms"),
        (("--gt", GT, "--tag", "x", PREDICTIONS), "--tag x: write key=value"),
        (("--gt", GT, "--on-error", "x", PREDICTIONS), "--on-error x: choose stop or skip"),
        (("--gt", "-", "-"), "stdin (-) can be read only once"),
        (("--gt", GT, "--rows", "-", "-"), "stdin (-) can be read only once"),
        (("--gt", GT, FIXTURES / "expected/matches.jsonl"), "report needs the predictions themselves"),
        (("--gt", GT, "-o", "no/such/r.html", PREDICTIONS), "-o no/such/r.html: there is no folder"),
    ],
)
def test_wrong_calls(arguments: tuple[object, ...], message: str, hoicli: Hoicli, tmp_path: Path) -> None:
    result = hoicli("report", *arguments)
    assert result.code == 2, result.err
    assert message in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        ("", "no predictions in it"),
        ("{", "1: "),
        ('{"image_id": "x", "boxes": [], "labels": [], "hois": []}', "image_id: 'x' is not in the ground truth"),
    ],
)
def test_broken_files(content: str | None, message: str, tmp_path: Path, hoicli: Hoicli) -> None:
    path, target = tmp_path / "p.jsonl", tmp_path / "r.html"
    if content is not None:
        path.write_text(content)
    result = hoicli("report", "--gt", GT, "-o", target, path)
    assert result.code == 1
    assert message in result.err
    assert result.err.count("\n") == 1
    assert not target.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == ([] if content is None else ["p.jsonl"])


def test_no_predictions_at_all_but_lines(tmp_path: Path, hoicli: Hoicli) -> None:
    """A detector that is silent on every image has a report, too."""
    path = tmp_path / "p.jsonl"
    ids = [json.loads(line)["image_id"] for line in GT.read_text().splitlines()]
    path.write_text("".join(json.dumps({"image_id": i, "boxes": [], "labels": [], "hois": []}) + "\n" for i in ids))
    page = page_of(hoicli, "--gt", GT, path)
    assert page.table("protocol", "evaluator")[0][2] == "0.00"
    assert hoicli("report", "--gt", GT, path, "--format", "md").code == 0


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; from hoicli.cli import run; run(['report', '--help']); "
        "print(sorted({'numpy', 'scipy', 'orjson', 'PIL', 'matplotlib'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "hoicli report --gt gt.jsonl -o report.html preds.jsonl" in " ".join(done.stdout.split())
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_table_of_nothing_is_drawn() -> None:
    empty = Table("nothing", ["a"], [], 1)
    document = Document("t", [], [], [Section("s", "S", [empty])])
    assert Page(to_html(document).decode()).tables == [[["a"]]]
    assert b"| a |\n| --- |" in to_markdown(document)
