"""SHOE's metrics of two models: each as shoe-eval has it, and differences that are real or are not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import orjson
import pytest

from tests.support.project import SHOE, Hoicli
from tests.support.shoe import AWAY, image

ASKED = ("--sim", "wordnet:wup", "--format", "jsonl", "--bootstrap", "200")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Thirty images: `good` finds most of them, `poor` half, with words that are near, and more besides."""
    folder = tmp_path_factory.mktemp("shoe")
    records: dict[str, list[dict[str, object]]] = {"gt": [], "good": [], "poor": []}
    for number in range(30):
        name, score = f"{number:02}", 0.3 + number / 50
        verb, thing = ("pet", "giraffe") if number % 3 else ("wash", "train")
        records["gt"].append(image((verb, thing), image_id=name))
        records["good"].append(image((verb, thing, score), image_id=name) if number % 10 else image(image_id=name))
        loose = (verb, thing, 1 - score, AWAY)
        near = [("touch", thing, score)] if number % 2 else []
        records["poor"].append(image(*near, loose, image_id=name))
    paths = {}
    for key, of in records.items():
        paths[key] = folder / f"{key}.jsonl"
        paths[key].write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in of))
    return paths


def test_every_model_is_as_shoe_eval_has_it(hoicli: Hoicli, files: dict[str, Path]) -> None:
    metrics = ["prediction_miss_rate", "soft_map", "mf1"]
    given = ("--gt", files["gt"], *ASKED)
    result = hoicli("compare", "--metric", ",".join(metrics), *given, files["good"], files["poor"])
    assert result.code == 0
    rows = [json.loads(line) for line in result.out.splitlines()]
    alone = {
        (model, row["metric"]): row
        for model in ("good", "poor")
        for row in map(json.loads, hoicli("shoe-eval", *given, files[model]).out.splitlines())
    }
    assert [row["metric"] for row in rows if "from" not in row] == [metric for metric in metrics for _ in range(2)]
    for row in rows:
        model = row["tags"]["model"]
        same = alone[model, row["metric"].removesuffix("_diff")]
        if "from" not in row:
            assert {**row, "tags": same["tags"]} == same
            continue
        before = alone["good", row["metric"].removesuffix("_diff")]
        assert (row["from"], row["to"]) == (before["value"], same["value"])
        assert row["value"] == pytest.approx(row["to"] - row["from"])
        assert row["ci_low"] < row["value"] < row["ci_high"]
        assert row["p"] < 0.02
        assert row["tags"]["baseline"] == "good"
        # whatever pairs each model needs
        assert re.search(r"\|sim:wordnet:wup@wordnet3\.0\.[0-9a-f]{8}\|raters:wordnet:wup\|", row["signature"])


def test_a_model_and_itself_and_no_rounds(hoicli: Hoicli, files: dict[str, Path]) -> None:
    given = ("compare", "--metric", "soft_map,gt_miss_rate", "--name", "a,b", "--gt", files["gt"], *ASKED)
    same = [json.loads(line) for line in hoicli(*given, files["poor"], files["poor"]).out.splitlines()]
    found = [(row["value"], row["ci_low"], row["ci_high"], row["p"]) for row in same if "from" in row]
    assert found == [(0.0, 0.0, 0.0, 1.0)] * 2
    none = hoicli(*given[:-1], "0", files["good"], files["poor"])
    rows = [json.loads(line) for line in none.out.splitlines()]
    assert {(row.get("p"), row["ci_low"]) for row in rows} == {(None, None)}
    assert "boot:" not in none.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["--metric", "soft_map"],
            "compare --metric: give similarities with --sim FILE (hoicli shoe-sim), or --sim wordnet:wup",
        ),
        (["--metric", "mAP", "--sim", "lexical"], "--metric mAP: choose from soft_map, mf1, gt_miss_rate,"),
        (["--metric", "mf1", "--sim", "lexical", "--top-k", "5"], "--metric: SHOE has no protocols, splits, --iou,"),
        (["--sim", "lexical"], "--sim: goes with --metric, for example"),
    ],
)
def test_calls_that_cannot_be(hoicli: Hoicli, files: dict[str, Path], given: list[str], message: str) -> None:
    result = hoicli("compare", "--gt", SHOE / "gt.jsonl", *given, files["good"], files["poor"])
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith(f"hoicli: {message}")
