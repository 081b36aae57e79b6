"""Interactiveness AP: the released code's number on the small golden world, and its rules one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hoicli.evaluation.protocols import ALL_BY_ONE, FAR_EDGES, NO_SHIFT
from hoicli.pairs.matches import box_protocol
from hoicli.vocabulary.datasets import load
from tests.evaluation.test_parity import GOLDEN, PAIRS, TOLERANCE, TRUTH, rows_of
from tests.support.project import FIXTURES, Hoicli, Record, records_of, written

EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected_sets.json").read_text())["interactiveness"]
PERSON, KITE, FAR = [0, 0, 9, 9], [20, 20, 39, 39], [200, 200, 219, 219]


def found(hoicli: Hoicli, *arguments: object) -> list[Record]:
    rows = records_of(hoicli("pairstats", "--interactiveness", "--format", "jsonl", *arguments))
    return [row for row in rows if row["metric"] == "interactiveness_ap"]


@pytest.mark.parametrize("options", [[], ["--one-to-one"], ["--as-released"]])
def test_the_released_number(options: list[str], hoicli: Hoicli) -> None:
    """No option of the other metrics changes it."""
    (row,) = found(hoicli, *options, "--gt", TRUTH, PAIRS)
    assert row["value"] / 100 == pytest.approx(EXPECTED["ap"], abs=TOLERANCE)
    assert (row["n"], row["subset"], row["unit"]) == (EXPECTED["pairs"], "full", "%")
    assert "|pairscore:interactiveness|" in row["signature"]
    assert not {"released:yes", "pairs:one-to-one"} & set(row["signature"].split("|"))


def test_it_is_added_to_the_other_rows(tmp_path: Path) -> None:
    plain = rows_of(tmp_path, "pairstats", "--gt", TRUTH, PAIRS)
    more = rows_of(tmp_path, "pairstats", "--interactiveness", "--gt", TRUTH, PAIRS)
    assert [row for row in more if row["metric"] != "interactiveness_ap"] == plain


def world(
    folder: Path, *pairs: tuple[list[int], list[int], float], label: str = "kite", image: str = "a"
) -> list[Path]:
    """Somebody flies a kite, annotated twice with boxes of their own, and does nothing with another far away."""
    hois = [{"subject": 0, "object": 1, "verb": "fly"}, {"subject": 2, "object": 3, "verb": "carry"}]
    hois.append({"subject": 0, "object": 4, "verb": "no_interaction"})
    truth = {"image_id": "a", "boxes": [PERSON, KITE, PERSON, KITE, FAR], "hois": hois}
    truth["labels"] = ["person", "kite", "person", "kite", "kite"]
    empty = {"image_id": "b", "boxes": [], "labels": [], "hois": []}
    record: Record = {"image_id": image, "boxes": [], "labels": [], "hois": [], "pairs": []}
    for number, (person, thing, score) in enumerate(pairs):
        # the released code compares 1-based ground truth with predictions as they are
        record["boxes"] += [[x + 1 for x in person], [x + 1 for x in thing]]
        record["labels"] += ["person", label]
        record["pairs"].append({"subject": 2 * number, "object": 2 * number + 1, "interactiveness": score})
    return [written(folder / "gt.jsonl", [truth, empty]), written(folder / "preds.jsonl", [record])]


def ap(hoicli: Hoicli, files: list[Path]) -> float:
    (row,) = found(hoicli, "--gt", *files)
    assert row["n"] == 1  # the pair of equal coordinates is one, and no_interaction none
    return float(row["value"])


def test_what_is_right(hoicli: Hoicli, tmp_path: Path) -> None:
    right, wrong = (PERSON, KITE, 0.5), (PERSON, FAR, 0.9)
    assert ap(hoicli, world(tmp_path, right)) == pytest.approx(100)
    assert ap(hoicli, world(tmp_path, right, label="dog")) == pytest.approx(100)  # labels are not looked at
    assert ap(hoicli, world(tmp_path, right, wrong)) == pytest.approx(50)
    assert ap(hoicli, world(tmp_path, wrong)) == 0
    assert ap(hoicli, world(tmp_path, right, image="b")) == 0  # and counts as false


def test_a_second_find_of_a_pair_is_false_and_the_better_one_takes_it(hoicli: Hoicli, tmp_path: Path) -> None:
    shifted = [x + 1 for x in KITE]
    files = world(tmp_path, (PERSON, KITE, 0.5), (PERSON, shifted, 0.9), (PERSON, FAR, 0.7))
    assert ap(hoicli, files) == pytest.approx(100)
    files = world(tmp_path, (PERSON, KITE, 0.5), (PERSON, shifted, 0.7), (PERSON, FAR, 0.9))
    assert ap(hoicli, files) == pytest.approx(50)


def test_boxes_are_measured_by_their_edges(hoicli: Hoicli, tmp_path: Path) -> None:
    """A box of half the height: 9 x 4.5 of 9 x 9 by edges, 10 x 5.5 of 10 x 10 by inclusive pixels."""
    assert ap(hoicli, world(tmp_path, ([0, 0, 9, 4.5], KITE, 0.5))) == pytest.approx(100)  # type: ignore[list-item]
    assert ap(hoicli, world(tmp_path, ([0, 0, 9, 4.4], KITE, 0.5))) == 0  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("dataset", "shift"),
    [("hico", ALL_BY_ONE), ("hico-det-sg", ALL_BY_ONE), ("vcoco", FAR_EDGES), ("hoia", FAR_EDGES), ("swig", NO_SHIFT),
     ("hoi-coco", NO_SHIFT)],
)  # fmt: skip
def test_how_boxes_of_each_dataset_are_compared(dataset: str, shift: object) -> None:
    row = box_protocol(load(dataset))
    assert (row.truth_shift, row.prediction_shift, row.inclusive, row.threshold) == (shift, NO_SHIFT, False, 0.5)


def test_it_needs_one_score_of_every_pair(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, predictions = world(tmp_path, (PERSON, KITE, 0.5), (PERSON, FAR, 0.9))
    record = json.loads(predictions.read_text())
    del record["pairs"][1]["interactiveness"]
    (row,) = found(hoicli, "--gt", truth, written(predictions, [record]))
    reason = "1 of 2 pairs have neither interactiveness nor a verb_score on each of their triplets"
    assert (row["value"], row["reason"]) == (None, reason)
    record["pairs"] = []
    (row,) = found(hoicli, "--gt", truth, written(predictions, [record]))
    assert (row["value"], row["n"]) == (0.0, 1)
    nobody = written(truth, [{"image_id": "a", "boxes": [], "labels": [], "hois": []}])
    (row,) = found(hoicli, "--gt", nobody, predictions)
    assert (row["value"], row["n"]) == (None, 0)


def test_each_setting_of_a_sweep_has_its_own(hoicli: Hoicli, tmp_path: Path) -> None:
    """Pair NMS takes the better pair of two, which is the wrong one."""
    near = [x + 12 for x in KITE]
    files = world(tmp_path, (PERSON, KITE, 0.5), (PERSON, near, 0.9))
    rows = found(hoicli, "--nms-sweep", "0.1", "--gt", *files)
    assert [row["value"] for row in rows] == [pytest.approx(50), 0]


def test_v_coco(hoicli: Hoicli) -> None:
    files = ("--gt", FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl")
    (row,) = found(hoicli, "--dataset", "vcoco", "--verb-score", "triplet", *files)
    assert 0 < row["value"] < 100
    assert "|verbscore:triplet|" in row["signature"]
