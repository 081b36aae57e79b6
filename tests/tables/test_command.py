"""`hoicli table` as it is called: from eval to a file, and what it refuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.support.project import EIGHT, GT, PREDICTIONS, Hoicli, refusal


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    found = [json.loads(line) for line in (EIGHT / "expected/eval.jsonl").read_text().splitlines()]
    lines = [json.dumps({**row, "tags": {"model": model}}) for model in ("one", "two") for row in found]
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_ending_chooses_the_notation(hoicli: Hoicli, rows: Path, tmp_path: Path) -> None:
    begins = {
        ".tex": r"\begin{tabular}",
        ".md": "| Method |",
        ".html": "<!doctype html>",
        ".csv": "Method,",
        ".txt": "      ",
    }
    for ending, text in begins.items():
        out = tmp_path / f"table{ending}"
        assert hoicli("table", "--layout", "hico", "-o", out, rows).code == 0
        assert out.read_text().startswith(text)
    assert hoicli("table", "--layout", "hico", "-o", tmp_path / "t.tex.gz", rows).code == 0
    packed = gzip.decompress((tmp_path / "t.tex.gz").read_bytes())
    assert packed == (tmp_path / "table.tex").read_bytes()
    assert hoicli("table", "--layout", "hico", "--format", "latex", rows).out.encode() == packed


def test_rows_choose_their_layout_and_the_rest_is_counted(hoicli: Hoicli, rows: Path, tmp_path: Path) -> None:
    result = hoicli("table", rows)
    assert result.out.splitlines()[0].split() == ["RF-UC"]
    assert "rows do not fit the layout zero-shot: mAP of" in result.err
    means = tmp_path / "full.jsonl"
    found = map(json.loads, rows.read_text().splitlines())
    chosen = (row for row in found if row["protocol"] in ("hico", "upt") and row["subset"] == "full")
    means.write_text("".join(json.dumps(row) + "\n" for row in chosen))
    plain = hoicli("table", "--metric", "mAP", means)
    assert plain.out.splitlines()[0].split() == ["Default"]
    assert plain.err.startswith("hoicli: 2 rows do not fit the layout hico: mAP of upt")


@pytest.mark.parametrize(("words", "code", "message"), [
    (("--layout", "imagenet"), 2, "hoicli: --layout imagenet: choose from robust, shoe, pairs"),
    (("--layout", "hico", "--lines", "tag.model"), 2, "hoicli: --layout, --lines, --columns: a layout has its own"),
    (("--lines", "value"), 2, "hoicli: value: no row has it; choose from tag.model, metric, subset"),
    (("--metric", "AR"), 1, "rows.jsonl: no rows of --metric in it\n"),
    (("--over", "seed"), 2, "hoicli: --over seed: no row has this tag"),
    (("--layout", "swig"), 1, "hoicli: no row fits the layout swig"),
    (("--format", "yaml"), 2, "hoicli: --format yaml: choose from auto, table, jsonl, csv"),
    (("--lines", "tag.model", "--columns", "subset"), 1, "they differ in"),
])  # fmt: skip
def test_what_it_refuses(hoicli: Hoicli, rows: Path, words: tuple[str, ...], code: int, message: str) -> None:
    result = hoicli("table", *words, rows)
    assert (result.code, result.out) == (code, "")
    assert result.err.count("\n") == 1
    assert message in result.err


def test_two_units_of_a_metric_are_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    common = {"n": 1, "protocol": "p"}
    values = ((0.019, "ratio", "a"), (1.94, "%", "b"))
    for metric, other in (("mAP", "full"), ("own_metric", "full"), ("mAP", "rare")):  # in one column, or in two
        path = tmp_path / "units.jsonl"
        lines = [{"metric": metric, "subset": subset, "value": v, "unit": unit, "tags": {"model": m}, **common}
                 for (v, unit, m), subset in zip(values, ("full", other), strict=True)]  # fmt: skip
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        said = refusal(hoicli("table", path))
        assert said.startswith(f"{path}:2: unit: {metric} {other} is in %, but in ratio at {path}:1; ")


def test_latex_of_eval_is_the_same_table(hoicli: Hoicli, tmp_path: Path) -> None:
    asked = ("--protocol", "hico,hico-ko", "--metric", "mean_max_recall")
    pair = ("--gt", GT, PREDICTIONS, *asked)
    text = hoicli("eval", *pair, "--tag", "model=m", "--format", "latex").out
    (tmp_path / "rows.jsonl").write_text(hoicli("eval", *pair, "--tag", "model=m").out)
    made = hoicli("table", "--format", "latex", tmp_path / "rows.jsonl")
    assert (made.out, made.err) == (text, "")  # nothing of mean_max_recall, which the layout never shows
