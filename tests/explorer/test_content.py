"""The data of the page: against the rows and records of the other commands, and against code of its own."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.explorers import columns_of, facts_of, predictions_of, write_scenes
from tests.support.project import FIXTURES, Hoicli

VCOCO = (FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl")
Box = list[float]


def records_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_numbers_are_those_of_diagnose_and_eval(hoicli: Hoicli, tmp_path: Path) -> None:
    gt, one, two, _ = write_scenes(tmp_path)
    assert hoicli("explore", "--gt", gt, one, two, "-o", tmp_path / "page").code == 0
    facts = facts_of(tmp_path / "page")
    numbers = {(facts["verbs"][verb], name): at for at, (verb, name) in enumerate(facts["classes"])}
    for path, model in zip((one, two), facts["models"], strict=True):
        rows = records_of(hoicli("diagnose", "--per-class", "--gt", gt, path).out)
        assert {row["signature"] for row in rows} == {model["signature"]}
        seen = 0
        for row in rows:
            kind = row.get("error") or row["oracle"]
            if "verb" not in row:
                means = {"delta_mAP": model["gains"], "count": model["counts"]}.get(row["metric"], {})
                of = {"mAP": model["mAP"], "mean_max_recall": model["recall"]}.get(row["metric"], means.get(kind))
                if row["metric"] != "mAP" or kind == "none":
                    assert of is not None
                    assert of[row["subset"]] == row["value"]
            elif row["metric"] != "AP" or kind == "none":
                of_class = {"AP": {"none": model["ap"]}, "delta_AP": model["class_gains"],
                            "count": model["class_counts"]}[row["metric"]][kind]  # fmt: skip
                assert of_class[numbers[row["verb"], row["object"]]] == row["value"]
                seen += 1
        assert seen == sum(value is not None for value in model["ap"]) * (8 + 1 + 9)
        evaluated = records_of(hoicli("eval", "--protocol", "diag", "--per-class", "--gt", gt, path).out)
        ap = {(row["verb"], row["object"]): row["value"] for row in evaluated if row["metric"] == "AP"}
        assert {pair: model["ap"][at] for pair, at in numbers.items() if model["ap"][at] is not None} == ap


def overlap(one: Box, other: Box) -> float:
    """Of a predicted and an annotated box by protocol diag, written apart from hoicli's own: the truth is fed one pixel
    off, the far edge is the last pixel, and boxes that merely touch share nothing."""
    other = [value + 1 for value in other]
    width, height = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    width, height = width + 1, height + 1
    area = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (one, other)]
    return width * height / (sum(area) - width * height)


def expected(hoicli: Hoicli, gt: Path, predictions: Path) -> list[tuple[Any, ...]]:
    """Every prediction by `diagnose --emit predictions`, with the truth beside it found one by one."""
    truth = {record["image_id"]: record for record in records_of(gt.read_text())}
    said = {record["image_id"]: record for record in records_of(predictions.read_text())}
    rows = []
    for record in records_of(hoicli("diagnose", "--emit", "predictions", "--gt", gt, predictions).out):
        image = record["image_id"]
        annotated, found = truth[image], said[image]
        for item in record["predictions"]:
            hoi = found["hois"][item["index"]]

            def iou(place: int, hoi: Any = hoi, found: Any = found, annotated: Any = annotated) -> tuple[float, float]:
                pair = annotated["hois"][place]
                return tuple(  # type: ignore[return-value]
                    overlap(found["boxes"][hoi[end]], annotated["boxes"][pair[end]]) for end in ("subject", "object")
                )

            beside, relation = item["gt"], "own"
            if beside is None:
                beside, relation = item["repairs"], "repair"
            if beside is None:
                near = [place for place in range(len(annotated["hois"])) if max(iou(place)) > 0]

                def order(place: int, item: Any = item, iou: Any = iou, annotated: Any = annotated) -> Any:
                    pair = annotated["hois"][place]
                    named = pair["verb"], annotated["labels"][pair["object"]]
                    return (min(iou(place)) < 0.5, named != (item["verb"], item["label"]), -min(iou(place)),
                            -sum(iou(place)), place)  # fmt: skip

                beside = min(near, key=order) if near else None
                relation = "none" if beside is None else "nearest"
            steps = (-1, -1) if beside is None else tuple(int(value * 10_000 + 1e-9) for value in iou(beside))
            boxes = [np.float32(found["boxes"][hoi[end]]).tolist() for end in ("subject", "object")]
            rows.append((-item["score"], image, item["index"], item["verb"], item["label"], item["error"], relation,
                         beside, steps, boxes))  # fmt: skip
    return sorted(rows, key=lambda row: row[:3])


@pytest.mark.parametrize("seed", [0, 1])
def test_every_prediction_with_the_truth_beside_it(hoicli: Hoicli, tmp_path: Path, seed: int) -> None:
    gt, one, _, _ = write_scenes(tmp_path, seed=seed)
    assert hoicli("explore", "--gt", gt, one, "-o", tmp_path / "page").code == 0
    wanted = expected(hoicli, gt, one)
    strange = {name for row in wanted if not (name := row[1]).isprintable()}
    assert len(strange) == 1
    made = predictions_of(tmp_path / "page")
    assert len(made) == len(wanted)
    for own, theirs in zip(made, wanted, strict=True):
        image = theirs[1].replace("\u202e", "\\u202e")
        assert own == (theirs[0], image, *theirs[3:])
    assert {row[5] for row in made} == {"own", "repair", "nearest", "none"}
    assert {row[4] for row in made} == {"true_positive", "duplicate", "interaction", "association", "object_box",
                                        "human_box", "both_boxes"}  # fmt: skip


@pytest.mark.parametrize("dataset", ["hico", "vcoco"])
def test_what_became_of_each_ground_truth(hoicli: Hoicli, tmp_path: Path, dataset: str) -> None:
    if dataset == "hico":
        gt, predictions, _, _ = write_scenes(tmp_path)
    else:
        gt, predictions = VCOCO
    words = ("--dataset", dataset, "--gt", gt, predictions)
    assert hoicli("explore", *words, "-o", tmp_path / "page").code == 0
    facts, model, truth = (facts_of(tmp_path / "page"), *(columns_of(tmp_path / "page", name)
                                                          for name in ("model0", "truth")))  # fmt: skip
    images = facts_of(tmp_path / "page", "images")["id"]
    made: dict[str, list[tuple[str, str]]] = {}
    for row, state in enumerate(model["state"].tolist()):
        verb, name = facts["classes"][truth["interaction"][row]]
        by = int(model["by"][row])
        if by >= 0:
            assert model["truth"][by] == row
            assert model["error"][by] == state
        made.setdefault(images[truth["image"][row]], []).append(
            (f"{facts['verbs'][verb]} {name}", facts["types"][state][0])
        )
    seen = 0
    for record in records_of(hoicli("diagnose", *words, "--emit", "predictions").out):
        errors = {item["index"]: item["error"] for item in record["predictions"]}
        errors[None] = "missed_gt"
        states = [
            (f"{item['verb']} {item.get('label', item.get('role'))}",
             errors[item["repair"] if item["prediction"] is None else item["prediction"]])
            for item in record["gt"]
        ]  # fmt: skip
        assert made.get(record["image_id"].replace("\u202e", "\\u202e"), []) == states
        seen += len(states)
    assert seen <= len(truth["image"])
    counted = Counter(facts["types"][state][0] for state in model["state"].tolist())
    assert counted["missed_gt"] == facts["models"][0]["counts"]["missed_gt"][facts["every"]]


def test_slices_are_those_of_eval(hoicli: Hoicli, tmp_path: Path) -> None:
    """The counted predictions and ground truth in each part, by match records of the same slices."""
    gt, one, _, _ = write_scenes(tmp_path)
    scenes = tmp_path / "scenes.tsv"
    scenes.write_text("image_000\tday\nimage_001\tnight\nimage_001\tday\n")
    slices = f"people,objects,distance:0.5:1,{scenes}"
    assert hoicli("explore", "--gt", gt, one, "--slice", slices, "-o", tmp_path / "page").code == 0
    facts, truth, model = (facts_of(tmp_path / "page"), *(columns_of(tmp_path / "page", name)
                                                          for name in ("truth", "model0")))  # fmt: skip
    matched = records_of(hoicli("match", "--protocol", "diag", "--slice", slices, "--gt", gt, one).out)
    for number, slice_ in enumerate(facts["image_slices"]):
        for part, members in zip(slice_["parts"], slice_["members"], strict=True):
            records = [each for each in matched if each.get("view") == {"slice": slice_["name"], "part": part}]
            counted = sum(
                item["outcome"] in ("true_positive", "false_positive")
                for each in records
                for item in each["predictions"]
            )
            assert counted == int(np.isin(model["image"], members).sum()), (number, part)
    for number, slice_ in enumerate(facts["triplet_slices"]):
        for at, part in enumerate(slice_["parts"]):
            records = [each for each in matched if each.get("view") == {"slice": slice_["name"], "part": part}]
            outcomes = Counter(item["outcome"] for each in records for item in each["predictions"])
            inside = model[f"part{number}"] == at
            assert outcomes["true_positive"] == int((inside & (model["error"] == 0)).sum())
            assert outcomes["false_positive"] == int((inside & (model["error"] != 0)).sum())
            assert sum(len(each["gt"]) for each in records) == int((truth[f"part{number}"] == at).sum())
