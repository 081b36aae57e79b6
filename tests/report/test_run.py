"""Calls and files that a report refuses, and a dump of nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import FIXTURES, Hoicli
from tests.support.reports import GT, PREDICTIONS, page_of


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
        ("{", "not JSON (unexpected end of data"),
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
