"""Faults that people reported of other evaluators, rebuilt as small inputs: docs/tried.md has their table."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import FIXTURES, Hoicli, Record, dumped, records, records_of, saved, written

PAIR: Record = {"boxes": [[0, 0, 20, 40], [20, 10, 60, 40]], "labels": ["person", "bicycle"]}
RIDE: Record = {"subject": 0, "object": 1, "verb": "ride"}


def record(image_id: str, *scores: float, **changes: Any) -> Record:
    """A record of a person who rides a bicycle: ground truth, or with scores predictions."""
    hois = [{**RIDE, "score": score} for score in scores] if scores else [RIDE]
    return {"image_id": image_id, **PAIR, "hois": hois, **changes}


@pytest.fixture
def evaluate(hoicli: Hoicli, tmp_path: Path) -> Any:
    def call(truth: list[Record], predictions: list[Record], *options: str) -> dict[tuple[str, str], Any]:
        gt, preds = written(tmp_path / "gt.jsonl", truth), written(tmp_path / "preds.jsonl", predictions)
        result = hoicli("eval", "--gt", gt, *options, preds)
        if result.code:
            raise ValueError(result.err)
        rows = map(json.loads, result.out.splitlines())
        return {(row["metric"], row["subset"]): row["value"] for row in rows}

    return call


def test_images_that_a_sampler_repeats_are_not_counted_twice(evaluate: Any) -> None:
    """roboflow/rf-detr#1507: three images on two processes: the first is padded in, and evaluated by both."""
    truth = [record(name) for name in "abc"]
    with pytest.raises(ValueError, match=r"preds.jsonl:4: image_id: image 'a' is at .*preds.jsonl:1 already"):
        evaluate(truth, [record("a", 0.9), record("c", 0.9), record("b", 0.8), record("a", 0.9)], "--protocol", "qpic")


def test_predictions_on_images_without_ground_truth_count_wherever_these_stand(evaluate: Any) -> None:
    """Lightning-AI/torchmetrics#794: false positives on images at the end that have no boxes were left out."""
    empty = {"image_id": "empty", "boxes": [], "labels": [], "hois": []}
    found = [
        evaluate(truth, predictions, "--protocol", "hico")["mAP", "full"] * 600
        for truth in ([empty, record("a")], [record("a"), empty])
        for predictions in ([record("empty", 0.9), record("a", 0.5)], [record("a", 0.5), record("empty", 0.9)])
    ]
    assert found == pytest.approx([50.0 / 1] * 4)


def test_boxes_of_equal_score_rank_in_order_as_in_pycocotools(evaluate: Any, hoicli: Hoicli, tmp_path: Path) -> None:
    """Lightning-AI/torchmetrics#1966 (as designed there): of two boxes of score 1 one is right: AP 1 or 0.5. `validate`
    says that nothing ranks them where that is so of triplets."""
    options = ("--boxes", "--protocol", "coco-boxes")
    truth = [{"image_id": "a", "boxes": [[214, 41, 562, 285]], "labels": ["person"], "hois": []}]
    boxes = [[214, 41, 562, 285], [600, 300, 900, 600]]
    alike: Record = {"image_id": "a", "labels": ["person"] * 2, "scores": [1, 1], "hois": []}
    values = [evaluate(truth, [{**alike, "boxes": order}], *options) for order in (boxes, boxes[::-1])]
    assert [found["AP50", "full"] for found in values] == [100, pytest.approx(50, abs=0.5)]
    checked = hoicli("validate", written(tmp_path / "equal.jsonl", [record("a", 1.0), record("b", 1.0)]))
    assert "all-scores-equal" in checked.out


def coco(first_id: int, **more: Any) -> Record:
    """COCO's form with relations; annotations are numbered from `first_id`. more: keys of the second annotation."""
    box = {"image_id": 1, "category_id": 1, "iscrowd": 0}
    other = {"id": first_id + 1, "category_id": 2, "bbox": [20, 10, 40, 30], **more}
    boxes = [{**box, "id": first_id, "bbox": [0, 0, 20, 40]}, {**box, **other}]
    relation = {"id": first_id, "image_id": 1, "subject_id": first_id, "object_id": first_id + 1, "predicate_id": 1}
    return {
        "images": [{"id": number, "file_name": f"{number}.jpg", "width": 100, "height": 80} for number in (1, 2)],
        "categories": [{"id": 1, "name": "person"}, {"id": 2, "name": "bicycle"}],
        "annotations": boxes,
        "rel_categories": [{"id": 1, "name": "ride"}],
        "rel_annotations": [relation],
    }


@pytest.mark.parametrize(("first_id", "more"), [(0, {}), (1, {}), (1, {"ignore": 1})])
def test_the_numbers_of_annotations_mean_nothing(hoicli: Hoicli, tmp_path: Path, first_id: int, more: Record) -> None:
    """cocodataset/cocoapi#546 and cvat-ai/cvat#748: an annotation with id 0 is never found, so that ground truth as
    predictions does not score 100. cocodataset/cocoapi#123: pycocotools takes no notice of `ignore`; neither here, but
    it is said."""
    path = dumped(tmp_path / "coco.json", coco(first_id, **more))
    gt = tmp_path / "gt.jsonl"
    converted = hoicli("convert", path, "-o", gt)
    assert converted.code == 0, converted.err
    assert ("1 annotations say ignore" in converted.err) == bool(more)
    scored = [{**entry, "scores": [0.9 - at / 10 for at in range(len(entry["boxes"]))]} for entry in records(gt)]
    assert len(scored) == 2
    for entry in scored:
        entry["hois"] = [{**hoi, "score": 0.9} for hoi in entry["hois"]]
    preds = written(tmp_path / "preds.jsonl", scored)
    rows = records_of(hoicli("eval", "--boxes", "--protocol", "coco-boxes", "--gt", gt, preds))
    assert [row["value"] for row in rows if (row["metric"], row["subset"]) == ("AP50", "full")] == [pytest.approx(100)]


def test_an_image_without_relations_is_an_image(hoicli: Hoicli, tmp_path: Path) -> None:
    """Jingkang50/OpenPSG#73, #83: its empty list of relations has one dimension, and the evaluation stops."""
    path = dumped(tmp_path / "coco.json", coco(1))
    empty = {"image_id": "2", "boxes": [], "labels": [], "hois": []}
    preds = written(tmp_path / "preds.jsonl", [record("1", 0.9), empty])
    rows = records_of(hoicli("recall", "--gt", path, "--k", "20", preds))
    assert {(row["value"], row["n"]) for row in rows if row["metric"] == "R@20"} == {(100.0, 1)}


def test_classes_of_v_coco_without_a_prediction(hoicli: Hoicli, tmp_path: Path) -> None:
    """hitachi-rd-cv/qpic#25, yoyomimi/AS-Net#13: `amax` of an empty array ends the official evaluator."""
    one = json.loads((FIXTURES / "vcoco/predictions.json").read_text())[:1]
    path = saved(tmp_path / "one.pkl", pickle.dumps(one))
    rows = records_of(hoicli("eval", "--dataset", "vcoco", "--gt", FIXTURES / "vcoco/ground_truth.jsonl", path))
    assert all(row["value"] is not None and 0 <= row["value"] <= 100 for row in rows if row["metric"] == "mAP")


def test_boxes_from_the_bottom_up_on_both_sides_are_refused(evaluate: Any) -> None:
    """Cartucho/mAP#70: AP 0 for predictions that equal the ground truth, whose boxes end before they begin."""
    upside_down = {"boxes": [[0, 40, 20, 0], [20, 40, 60, 10]]}
    with pytest.raises(ValueError, match=r"gt.jsonl: image a: boxes\[0\]: .*2 of 2 boxes are inverted"):
        evaluate([record("a", **upside_down)], [record("a", 0.9, **upside_down)])


def test_names_that_do_not_meet_are_refused(evaluate: Any) -> None:
    """rafaelpadilla/Object-Detection-Metrics#52: mAP 0 since the files of both sides have other names."""
    with pytest.raises(ValueError, match="'img_1' is not in the ground truth"):
        evaluate([record("1")], [record("img_1", 0.9)])


def test_the_case_of_a_label_does_not_hide_a_class(evaluate: Any) -> None:
    """NVIDIA/DIGITS#1384: "car" for "Car" made an ignored class of all, and mAP 0."""
    capital = record("a", 0.9, labels=["Person", "Bicycle"], hois=[{**RIDE, "verb": "Ride", "score": 0.9}])
    assert evaluate([record("a")], [capital], "--protocol", "qpic")["mAP", "full"] == 100
    with pytest.raises(ValueError, match="unknown object 'bycicle'; did you mean 'bicycle'"):
        evaluate([record("a")], [record("a", 0.9, labels=["person", "bycicle"])])


def test_the_first_box_of_a_list_can_be_found(evaluate: Any) -> None:
    """matterport/Mask_RCNN#1018: a match with number 0 was taken for none, and recall exceeded 1."""
    twice = [record("a", 0.9, 0.8)]
    found = evaluate([record("a")], twice, "--protocol", "qpic", "--metric", "mAP,mean_max_recall")
    assert (found["mAP", "full"], found["mean_max_recall", "full"]) == (100, 100)
