"""Every published number: the released evaluators' own results on one prediction dump, per class to 1e-9.

The golden files hold what ho-rcnn's MATLAB code (run in Octave), QPIC, UPT, INP-CC and Diag-HOI gave for the same
predictions; each was fed the ground truth as its own project feeds it. Two small worlds with such numbers are in
golden/, for every clone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoicli.cli import run
from hoicli.vocabulary.datasets import load
from tests.support.project import records

Rows = list[dict[str, Any]]
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


def rows_of(folder: Path, *arguments: str) -> Rows:
    output = folder / "rows.jsonl"
    assert run([*arguments, "--format", "jsonl", "-o", str(output)]) == 0
    return records(output)


def evaluate(hico_500: Path, predictions: Path, folder: Path, *options: str) -> Rows:
    return rows_of(folder, "eval", "--gt", str(hico_500), *options, str(predictions))


def subsets(rows: list[dict[str, Any]], metric: str = "mAP") -> dict[str, float]:
    return {row["subset"]: row["value"] for row in rows if row["metric"] == metric}


@pytest.mark.parametrize(("protocol", "golden"), [
    ("hico", "hico-official/default"),
    ("hico-ko", "hico-official/known-object"),
    ("upt", "upt"),
    ("inp-cc", "inp-cc"),
])  # fmt: skip
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


GOLDEN = Path(__file__).parent / "golden"
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text())
TRUTH, PREDICTIONS, PAIRS = (str(GOLDEN / f"hico_{name}.jsonl.gz") for name in ("gt", "preds", "pairs"))


def by_class(rows: Rows, metric: str, qualifier: str = "object") -> dict[str, float]:
    """Class, as the golden file names it -> percent, without the zeros that it leaves out."""
    chosen = (row for row in rows if row["metric"] == metric and row["value"])
    return {f"{row['verb']} {row[qualifier]}": row["value"] for row in chosen}


@pytest.mark.parametrize("protocol", ["hico", "hico-ko", "ggnet", "ggnet-ko", "upt", "inp-cc"])
def test_every_class_of_hico_det(protocol: str, tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "eval", "--gt", TRUTH, "--protocol", protocol, "--per-class", PREDICTIONS)
    for metric, key in (("AP", "ap"), ("max_recall", "recall")):
        if key in EXPECTED[protocol]:
            expected = {name: 100 * value for name, value in EXPECTED[protocol][key].items()}
            assert by_class(rows, metric) == pytest.approx(expected, abs=TOLERANCE)


def test_the_figures_that_qpic_prints(tmp_path: Path) -> None:
    asked = ("--protocol", "qpic", "--metric", "mean_max_recall")
    rows = rows_of(tmp_path, "eval", "--gt", TRUTH, *asked, PREDICTIONS)
    of_recall = {row["subset"]: row["value"] / 100 for row in rows if row["metric"] == "mean_max_recall"}
    ours = {row["subset"]: row["value"] / 100 for row in rows if row["metric"] == "mAP"}
    ours["mean_max_recall"] = of_recall["full"]
    assert ours == pytest.approx(EXPECTED["qpic"], abs=TOLERANCE)


def test_diag_hoi_as_released(tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "diagnose", "--gt", TRUTH, "--as-released", PREDICTIONS)
    counts = {row["error"]: row["value"] for row in rows if row["metric"] == "count" and row["subset"] == "full"}
    assert counts == EXPECTED["diag"]["counts"]
    means: dict[str, dict[str, float]] = {}
    for row in rows:
        if row["metric"] == "mAP" and row["oracle"] in EXPECTED["diag"]["map"]:
            means.setdefault(row["oracle"], {})[row["subset"]] = row["value"] / 100
    for oracle, expected in EXPECTED["diag"]["map"].items():
        assert means[oracle] == pytest.approx(expected, abs=TOLERANCE)


def test_the_pair_statistics_of_diag_hoi_as_released(tmp_path: Path) -> None:
    """Its pairs come from the file of pairs, its verbs' own scores from the predictions."""
    of_pairs = rows_of(tmp_path, "pairstats", "--gt", TRUTH, "--as-released", PAIRS)
    of_verbs = rows_of(tmp_path, "pairstats", "--gt", TRUTH, "--as-released", PREDICTIONS)
    full = [row for row in of_pairs if row["subset"] == "full" and row["metric"] != "inter_map"]
    full += [row for row in of_verbs if row["subset"] == "full" and row["metric"] == "inter_map"]
    unit = {"%": 100}
    ours = {row["metric"]: row["value"] / unit.get(row["unit"], 1) for row in full if row["value"] is not None}
    assert {name: ours[name] for name in EXPECTED["pairs"]} == pytest.approx(EXPECTED["pairs"], abs=TOLERANCE)


@pytest.fixture(scope="module")
def vcoco(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """V-COCO's world, converted from the official formats: (ground truth, predictions)."""
    folder = tmp_path_factory.mktemp("vcoco")
    truth, predictions = str(folder / "gt.jsonl"), str(folder / "preds.jsonl")
    parts = [str(GOLDEN / name) for name in ("vcoco_vsrl.json.gz", "vcoco_instances.json.gz", "vcoco.ids")]
    assert run(["convert", *parts, "-o", truth]) == 0
    assert run(["convert", str(GOLDEN / "vcoco_preds.json.gz"), "-o", predictions]) == 0
    return truth, predictions


@pytest.mark.parametrize("protocol", ["vcoco-agent", "vcoco-s1", "vcoco-s2"])
def test_every_class_of_v_coco(protocol: str, vcoco: tuple[str, str], tmp_path: Path) -> None:
    """The released code keeps boxes and agents' precision in single precision: equal to six digits."""
    truth, predictions = vcoco
    rows = rows_of(tmp_path, "eval", "--gt", truth, "--protocol", protocol, "--per-class", predictions)
    aps = (row for row in rows if row["metric"] == "AP")
    ours = {"-".join(filter(None, (row["verb"], row["role"]))): row["value"] for row in aps}
    assert ours == pytest.approx(EXPECTED[protocol]["ap"], abs=1e-5)
    means = [row["value"] for row in rows if row["metric"] == "mAP" and row["subset"] in ("full", "25")]
    assert means == [pytest.approx(EXPECTED[protocol]["mean"], abs=0.005)]
