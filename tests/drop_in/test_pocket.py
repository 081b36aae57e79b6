"""Protocol vcoco-pvic gives what PViC prints while training on V-COCO: its own code on the same worlds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hoicli
from tests.drop_in import pocket
from tests.drop_in.released import PEERS, runs_released_code
from tests.support.project import dumped

STORED = json.loads(pocket.NUMBERS.read_text())
NAMES = {key: value for key, value in STORED.items() if key != "ap"}

Records = list[dict[str, Any]]


def records_of(annotations: Records, outputs: Records, *, labelled: bool = True) -> Records:
    """The outputs of the network as records. labelled: whether the objects have labels, which are not compared."""
    records = []
    for image, output in zip(annotations, outputs, strict=True):
        labels: list[str | None] = ["person"] * len(output["boxes"])
        hois = []
        for pair, action, score, thing in zip(
            *(output[key].tolist() for key in ("pairing", "labels", "scores", "objects")), strict=True
        ):
            labels[pair[1]] = NAMES["objects"][thing + 1].replace(" ", "_") if labelled else None
            verb, role = NAMES["classes"][action].split()
            hois.append({"subject": pair[0], "object": pair[1], "verb": verb, "role": role, "score": score})
        record = {"image_id": int(image["file_name"][-16:-4]), "boxes": output["boxes"].tolist(), "labels": labels}
        records.append(record | {"hois": hois})
    return records


def our_ap(content: dict[str, Any], predictions: Records, folder: Path) -> list[float]:
    """AP of each class, in the order of pocket's file; their mean is the protocol's only row."""
    path = dumped(folder / "instances_vcoco_test.json", content)
    result = hoicli.evaluate(str(path), predictions, protocol="vcoco-pvic", dataset="vcoco", per_class=True)
    by_class = {f"{row['verb']} {row['role']}": row for row in result.rows if row["metric"] == "AP"}
    values = [(by_class[name]["value"] or 0.0) / 100 for name in content["classes"]]
    [mean] = [row["value"] for row in result.rows if row["metric"] == "mAP"]
    assert mean == pytest.approx(100 * np.mean(values), abs=1e-9)
    assert "truth:pairs" not in result.rows[0]["signature"]
    return values


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("seed", pocket.SEEDS)
def test_what_the_released_code_gave(seed: int, labelled: bool, tmp_path: Path) -> None:
    content, outputs = pocket.world(seed)
    predictions = records_of(content["annotations"], outputs, labelled=labelled)
    assert our_ap(NAMES | content, predictions, tmp_path) == pytest.approx(STORED["ap"][seed], abs=1e-9)


def test_only_pairs_count(tmp_path: Path) -> None:
    """A role without an object box is no ground truth and no prediction."""
    content, outputs = pocket.world(0)
    predictions = records_of(content["annotations"], outputs)
    for record in predictions:
        record["hois"] += [hoi | {"object": None, "score": 2.0} for hoi in record["hois"]]
    assert our_ap(NAMES | content, predictions, tmp_path) == pytest.approx(STORED["ap"][0], abs=1e-9)
    truth = [json.loads(json.dumps(record)) for record in hoicli.convert(str(tmp_path / "instances_vcoco_test.json"))]
    for record in truth:
        record["hois"] += [hoi | {"object": None} for hoi in record["hois"]]
    rows = hoicli.evaluate(truth, predictions, protocol="vcoco-pvic").rows
    assert rows[0]["value"] == pytest.approx(100 * np.mean(STORED["ap"][0]), abs=1e-9)


@runs_released_code
def test_the_released_code_on_fifty_worlds(tmp_path: Path) -> None:
    for seed in range(100, 150):
        content, outputs = pocket.world(seed)
        theirs = pocket.released_ap(PEERS, NAMES | content, outputs)
        predictions = records_of(content["annotations"], outputs)
        assert our_ap(NAMES | content, predictions, tmp_path) == pytest.approx(theirs, abs=1e-9), seed


@runs_released_code
def test_the_released_code_on_v_coco_s_test_set(tmp_path: Path) -> None:
    content = json.loads(Path(PEERS, "vcoco/instances_vcoco_test.json").read_text())
    outputs = pocket.network(content["annotations"], np.random.default_rng(0), range(pocket.ACTIONS))
    theirs = pocket.released_ap(PEERS, content, outputs)
    assert 0.01 < np.mean(theirs) < 0.99
    ours = our_ap(content, records_of(content["annotations"], outputs), tmp_path)
    assert ours == pytest.approx(theirs, abs=1e-9)
