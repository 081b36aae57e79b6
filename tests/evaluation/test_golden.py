"""Every protocol against the numbers of its own released code, on two small worlds that every clone has (golden/)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hoicli.cli import run

GOLDEN = Path(__file__).parent / "golden"
EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected.json").read_text())
TRUTH, PREDICTIONS, PAIRS = (str(GOLDEN / f"hico_{name}.jsonl.gz") for name in ("gt", "preds", "pairs"))
TOLERANCE = 1e-9
Rows = list[dict[str, Any]]


def rows_of(folder: Path, *arguments: str) -> Rows:
    """What a command line writes."""
    output = folder / "rows.jsonl"
    assert run([*arguments, "--format", "jsonl", "-o", str(output)]) == 0
    return [json.loads(line) for line in output.read_bytes().splitlines()]


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
