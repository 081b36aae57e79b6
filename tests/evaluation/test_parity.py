"""Every published number: the released evaluators' own results on one prediction dump, per class to 1e-9.

The golden files hold what ho-rcnn's MATLAB code (run in Octave), QPIC, UPT, INP-CC and Diag-HOI gave for the same
predictions; each was fed the ground truth as its own project feeds it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoicli.cli import run
from hoicli.vocabulary.datasets import load

TOLERANCE = 1e-9
SPLITS = sorted(load("hico").unseen.keys() - {"unseen_action"})  # INP-CC's code does not know that one


@pytest.fixture(scope="session")
def expected(shared: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((shared / "golden/hico-500/expected.json").read_text())
    return content


@pytest.fixture(scope="session", params=["predictions_cdn", "predictions_inpcc"])
def predictions(request: pytest.FixtureRequest, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same predictions in two formats, converted."""
    path = tmp_path_factory.mktemp("predictions") / f"{request.param}.jsonl"
    source = shared / f"golden/hico-500/{request.param}.json.gz"
    assert run(["convert", str(source), "-o", str(path)]) == 0
    return path


def evaluate(hico_500: Path, predictions: Path, folder: Path, *options: str) -> list[dict[str, Any]]:
    output = folder / "rows.jsonl"
    assert run(["eval", "--gt", str(hico_500), "--format", "jsonl", "-o", str(output), *options, str(predictions)]) == 0
    return [json.loads(line) for line in output.read_bytes().splitlines()]


def subsets(rows: list[dict[str, Any]], metric: str = "mAP") -> dict[str, float]:
    return {row["subset"]: row["value"] for row in rows if row["metric"] == metric}


@pytest.mark.parametrize(
    ("protocol", "golden"),
    [
        ("hico", "hico-official/default"),
        ("hico-ko", "hico-official/known-object"),
        ("upt", "upt"),
        ("inp-cc", "inp-cc"),
    ],
)
def test_every_class(
    protocol: str, golden: str, hico_500: Path, predictions: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    rows = evaluate(hico_500, predictions, tmp_path, "--protocol", protocol, "--per-class")
    ap = {(row["verb"], row["object"]): row["value"] for row in rows if row["metric"] == "AP"}
    ours = [ap[pair] / 100 for pair in load("hico").interactions]
    np.testing.assert_allclose(ours, expected[golden]["ap"], rtol=0, atol=TOLERANCE)


def test_every_recall_of_inp_cc(hico_500: Path, predictions: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    rows = evaluate(hico_500, predictions, tmp_path, "--protocol", "inp-cc", "--per-class")
    recall = {(row["verb"], row["object"]): row["value"] for row in rows if row["metric"] == "max_recall"}
    ours = [recall[pair] / 100 for pair in load("hico").interactions]
    np.testing.assert_allclose(ours, expected["inp-cc"]["rec"], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("protocol", ["hico", "hico-ko"])
def test_the_means_of_the_official_code(
    protocol: str, hico_500: Path, predictions: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    golden = expected[{"hico": "hico-official/default", "hico-ko": "hico-official/known-object"}[protocol]]
    ours = subsets(evaluate(hico_500, predictions, tmp_path, "--protocol", protocol))
    assert ours.keys() == {"full", "rare", "non_rare"}
    for subset, value in ours.items():
        assert value == pytest.approx(golden[subset], abs=TOLERANCE)


def test_the_four_figures_of_qpic(hico_500: Path, predictions: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    rows = evaluate(hico_500, predictions, tmp_path, "--protocol", "qpic", "--metric", "mean_max_recall")
    ours = subsets(rows)
    golden = expected["qpic"]
    assert ours["full"] == pytest.approx(golden["mAP"], abs=TOLERANCE)
    assert ours["rare"] == pytest.approx(golden["mAP rare"], abs=TOLERANCE)
    assert ours["non_rare"] == pytest.approx(golden["mAP non-rare"], abs=TOLERANCE)
    assert subsets(rows, "mean_max_recall")["full"] == pytest.approx(golden["mean max recall"], abs=TOLERANCE)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("ignored", [True, False])
def test_every_zero_shot_split(
    split: str, ignored: bool, hico_500: Path, predictions: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    options = ["--ignore-no-interaction"] if ignored else []
    ours = subsets(evaluate(hico_500, predictions, tmp_path, "--protocol", "inp-cc", "--split", split, *options))
    golden = expected["inp-cc"][f"{split}|ignore_ni={ignored}"]
    assert [ours["unseen"], ours["seen"], ours["full"]] == pytest.approx(golden, abs=TOLERANCE)


def test_diag_finds_the_true_positives_of_the_released_code(
    hico_500: Path, predictions: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    """The released mean leaves classes without a true positive out; taken over the same classes, ours is its mAP."""
    golden = expected["diag-hoi"]["map_none"]
    rows = evaluate(hico_500, predictions, tmp_path, "--protocol", "diag", "--per-class")
    recall = {(row["verb"], row["object"]): row["value"] for row in rows if row["metric"] == "max_recall"}
    positives = {(row["verb"], row["object"]): row["n"] for row in rows if row["metric"] == "AP"}
    found = sum(recall[pair] / 100 * positives[pair] for pair in recall)
    assert found == pytest.approx(expected["diag-hoi"]["counts"]["tp"])
    ap = [row["value"] / 100 for row in rows if row["metric"] == "AP"]
    assert sum(ap) / sum(value > 0 for value in ap) == pytest.approx(golden["mAP"], abs=TOLERANCE)
