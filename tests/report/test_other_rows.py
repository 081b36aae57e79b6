"""Rows of other commands in a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.project import FIXTURES, Hoicli
from tests.support.reports import DASH, GT, PREDICTIONS, page_of, shown


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
    assert page.titles[6:11] == ["Robustness", "Open vocabulary (SHOE)", "Comparison", "Agreement", "Other results"]
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
    assert len(page.all("figure")) == 8


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
