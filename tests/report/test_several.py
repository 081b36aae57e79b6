"""A report of several models: each number is a row's of that model, and the differences are compare's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hoicli.cli import run
from tests.support.page import Page
from tests.support.project import FIXTURES, Hoicli
from tests.support.reports import GT, MINUS, PREDICTIONS, page_of, rows_of, shown

NAMES = ("one", "two")
MODELS = ("--name", ",".join(NAMES), "--gt", GT, PREDICTIONS, FIXTURES / "other.jsonl")
DRAWN = ("--bootstrap", "20", "--seed", "3")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    path = tmp_path_factory.mktemp("several") / "report.html"
    words = ["report", "--top", "4", *DRAWN, *map(str, MODELS), "-o", str(path)]
    assert run(words) == 0
    return Page(path.read_text())


def of_each(hoicli: Hoicli, *words: object) -> list[dict[str, Any]]:
    """The rows of both models, with the model's name."""
    found = []
    for name, path in zip(NAMES, MODELS[-2:], strict=True):
        rows = rows_of(hoicli(*words, "--gt", GT, path, "--format", "jsonl"))
        found += [{**row, "model": name} for row in rows]
    return found


def test_protocols_stand_model_below_model(hoicli: Hoicli, page: Page) -> None:
    rows = [row for row in of_each(hoicli, "eval", *DRAWN) if row["metric"] == "mAP"]
    cells: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        ends = "" if row["ci_low"] is None else f" [{shown(row['ci_low'])}, {shown(row['ci_high'])}]"
        cells.setdefault((row["protocol"], row["model"]), []).append(shown(row["value"]) + ends)
    lines = page.table("protocol", "evaluator", "model", "full")
    assert [(line[0], line[2]) for line in lines] == [(line[0], name) for line in lines[::2] for name in NAMES]
    assert {(line[0], line[2]): line[3:] for line in lines} == cells


def test_errors_pairs_and_confusions_stand_side_by_side(hoicli: Hoicli, page: Page) -> None:
    rows = {
        (row["metric"], row.get("error") or row.get("oracle"), row["model"]): row["value"]
        for row in of_each(hoicli, "diagnose")
        if row["subset"] == "full"
    }
    lines = page.table("type", *NAMES, *NAMES)
    assert len(lines) == 10
    for line in lines:
        kind = line[0].lower().replace(" ", "_")
        counts = [shown(rows.get(("count", kind, name))) for name in NAMES]
        assert line[1:] == counts + [shown(rows.get(("delta_mAP", kind, name)), signed=True) for name in NAMES]
    recall = {row["model"]: row["value"] for row in of_each(hoicli, "pairstats") if row["metric"] == "pair_recall"}
    lines = [line for line in page.table("measure", "subset", *NAMES) if line[:2] == ["pair recall", "full"]]
    assert lines == [["pair recall", "full", *(shown(recall[name]) for name in NAMES)]]
    cells = {
        (row["truth"], row["predicted"], row["model"]): f"{row['value']:,} of {row['n']:,}"
        for row in of_each(hoicli, "confusion", "--top", "4")
        if (row["metric"], row["kind"]) == ("confusion", "verb") and row["truth"] and row["predicted"]
    }
    lines = page.table("annotated", "said", "number", "share", "delta mAP", "number")
    written = {(*line[:2], name): line[2 + 3 * at] for line in lines for at, name in enumerate(NAMES)}
    assert {place: text for place, text in written.items() if text != "\N{EN DASH}"} == cells


def test_curves_are_those_of_curves(hoicli: Hoicli, page: Page) -> None:
    rows = of_each(hoicli, "curves", "--protocol", "hico")
    lines = page.table("model", "classes", "threshold", "precision", "recall", "F1", "ECE")
    assert [tuple(line[:2]) for line in lines] == [(n, s) for n in NAMES for s in ("full", "rare", "non_rare")]
    for line in lines:
        own = [row for row in rows if (row["model"], row["subset"]) == tuple(line[:2])]
        (best,) = (row for row in own if row["metric"] == "best_f1")
        (ece,) = (row for row in own if row["metric"] == "ece")
        there = {row["metric"]: row["value"] for row in own if row.get("rank") == best["rank"] and row is not best}
        assert line[2] == ("\N{EN DASH}" if best["threshold"] is None else f"{best['threshold']:.4g}")
        values = (there.get("precision"), there.get("recall"), best["value"], ece["value"])
        assert line[3:] == [shown(value) for value in values]


def test_differences_are_compares(hoicli: Hoicli, page: Page) -> None:
    result = hoicli("compare", "--no-errors", *DRAWN, *MODELS, "--format", "jsonl")
    rows = [row for row in rows_of(result) if row["metric"] == "mAP_diff"]
    lines = page.table("model", "baseline", "protocol", "measure", "subset", "from", "to", "difference", "p")
    for line, row in zip(lines, rows, strict=True):
        ends = "" if row["ci_low"] is None else f" [{shown(row['ci_low'])}, {shown(row['ci_high'])}]"
        assert line[:8] == [
            *("two", "one", "hico", "mAP diff", row["subset"], shown(row["from"]), shown(row["to"])),
            shown(row["value"]) + ends,
        ]
    (answer,) = (
        line.removeprefix("hoicli: ") for line in result.err.splitlines() if line.startswith("hoicli: two is ")
    )
    assert answer in "".join(page.text)


def test_classes_verbs_and_objects(hoicli: Hoicli, page: Page) -> None:
    rows = of_each(hoicli, "eval", "--protocol", "hico", "--per-class")
    ap = {(row["verb"], row["object"], row["model"]): row for row in rows if row["metric"] == "AP"}
    every = [table for table in page.tables if table[0][:4] == ["verb", "object", "subset", "GT"] and len(table) == 601]
    (table,) = every
    assert table[0][4:] == ["AP, one", "AP, two"]
    for verb, thing, _, count, *values in table[1:]:
        assert count == str(ap[verb, thing, "one"]["n"])
        assert values == [shown(ap[verb, thing, name]["value"]) for name in NAMES]
    for place, key in enumerate(("verb", "object")):
        for name, classes, truths, *means in page.table(key, "classes", "GT", "mean AP, one", "mean AP, two"):
            own = [row for named, row in ap.items() if named[place] == name and row["n"]]
            assert (int(classes), int(truths)) == (len(own) / 2, sum(row["n"] for row in own) / 2)
            for model, mean in zip(NAMES, means, strict=True):
                aps = [float(row["value"]) for row in own if row["model"] == model]
                assert mean == shown(sum(aps) / len(aps))


def test_an_image_is_embedded_once_for_all_models(hoicli: Hoicli) -> None:
    page = page_of(hoicli, "--images", FIXTURES / "images", *MODELS)  # Page refuses an id that is there twice
    data = [attributes["href"] for attributes in page.all("image")]
    assert len(set(data)) == len(data) > 0
    assert [text for text in page.text if re.match(r"Errors of (one|two)", text)] == [
        "Errors of one:",
        "Errors of two:",
    ]


def test_files_of_one_name_and_models_of_one_name(tmp_path: Path, hoicli: Hoicli) -> None:
    for name in NAMES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "preds.jsonl").write_bytes(PREDICTIONS.read_bytes())
    paths = [tmp_path / name / "preds.jsonl" for name in NAMES]
    page = page_of(hoicli, "--gt", GT, *paths)
    assert page.titles[0] == "one/preds, two/preds on HICO-DET"
    text = "".join(page.text)
    assert "one/preds and two/preds have the same mAP (hico, full), 1.94 (protocols)." in text
    assert "two/preds is as good as one/preds here, but nothing was tested (no resamples were asked for)" in text
    for words, said in (
        (("--name", "a,a", *paths), "names must differ"),
        (("--name", "a", *paths), "1 names for 2 streams"),
        ((paths[0], paths[0]), "is given twice"),
        (("--tag", "model=x", *paths), "model"),
        (("-", "-"), "stdin (-) can be read only once"),
    ):
        result = hoicli("report", "--gt", GT, *words)
        assert (result.code, result.out) == (2, ""), words
        assert said in result.err


def test_a_bad_line_is_told_of_its_file(tmp_path: Path, hoicli: Hoicli) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(PREDICTIONS.read_text() + "nothing\n")
    target = tmp_path / "r.html"
    result = hoicli("report", "--gt", GT, PREDICTIONS, bad, "-o", target)
    assert result.code == 1
    assert re.search(r"bad\.jsonl:\d+: not JSON", result.err)
    assert not target.exists()
    skipped = page_of(hoicli, "--gt", GT, "--on-error", "skip", PREDICTIONS, bad)
    assert dict(line[:2] for line in skipped.table("counted"))["bad lines dropped"] == "1"


def test_a_stream_from_a_pipe_stands_beside_a_file(
    tmp_path: Path, hoicli: Hoicli, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(PREDICTIONS.read_bytes()))))
    page = page_of(hoicli, "--gt", GT, "-", FIXTURES / "other.jsonl")
    assert page.titles[0] == "stdin, other on HICO-DET"


def test_the_order_of_lines_changes_nothing(tmp_path: Path, hoicli: Hoicli) -> None:
    lines = PREDICTIONS.read_text().splitlines(keepends=True)
    (tmp_path / "a").mkdir()
    turned = tmp_path / "a" / PREDICTIONS.name
    turned.write_text("".join(reversed(lines)))
    pages = [hoicli("report", "--gt", GT, *DRAWN, path, FIXTURES / "other.jsonl").out for path in (PREDICTIONS, turned)]
    assert pages[0] == pages[1]


def test_runs_of_compare_show_their_spread(tmp_path: Path, hoicli: Hoicli) -> None:
    """The sd of a model of several runs stands beside its mean."""
    rows = hoicli(
        *("compare", "--gt", GT, "--no-errors", "--bootstrap", "20", "--name", "a,a,b", "--format", "jsonl"),
        *(PREDICTIONS, FIXTURES / "other.jsonl", FIXTURES / "predictions.jsonl"),
    ).out
    (tmp_path / "rows.jsonl").write_text(rows)
    of_runs = [row for row in map(json.loads, rows.splitlines()) if "sd" in row]
    page = page_of(hoicli, "--gt", GT, "--rows", tmp_path / "rows.jsonl", PREDICTIONS)
    cells = [cell for table in page.tables for line in table for cell in line]
    assert of_runs
    for row in of_runs:
        text = f"{shown(row['value'])} \N{PLUS-MINUS SIGN} {shown(row['sd'])}".replace("-", MINUS)
        assert any(cell.startswith(text) for cell in cells)
    assert not any("sd" in table[0] for table in page.tables)
