"""What `convert` changes in ground truth: the unseen classes of a split left out, boxes at another size; `--box-form`,
what the four numbers of a box are; and classes in a numbering of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoicli.vocabulary.datasets import load
from tests.support.project import FIXTURES, Hoicli, Record, dumped, parsed, records_of, refusal, saved

HICO = load("hico")
SAMPLE = FIXTURES / "sample" / "gt.jsonl.gz"
UNSEEN = {HICO.interactions[number] for number in HICO.unseen["rare_first"]}


def classes(record: Record) -> list[tuple[str, str]]:
    return [(hoi["verb"], record["labels"][hoi["object"]]) for hoi in record["hois"]]


def train_by_gen_vlkt(records: list[Record]) -> dict[str, list[Record]]:
    """The triplets of each image that YueLiao/gen-vlkt datasets/hico.py trains on: those of pairs without an unseen
    class, in images that have such pairs."""
    trained = {}
    for record in records:
        named = list(zip(record["hois"], classes(record), strict=True))
        skipped = [(hoi["subject"], hoi["object"]) for hoi, name in named if name in UNSEEN]
        hois = [hoi for hoi in record["hois"] if (hoi["subject"], hoi["object"]) not in skipped]
        if hois:
            trained[record["image_id"]] = hois
    return trained


def train_by_ada_cm(records: list[Record]) -> dict[str, list[Record]]:
    """The same in ltttpku/ADA-CM utils_tip_cache_and_union_finetune.py: triplets of seen classes."""
    seen = {
        record["image_id"]: [
            hoi for hoi, name in zip(record["hois"], classes(record), strict=True) if name not in UNSEEN
        ]
        for record in records
    }
    return {image: hois for image, hois in seen.items() if hois}


def test_the_unseen_classes_are_left_out_as_training_code_does(hoicli: Hoicli) -> None:
    every = parsed(hoicli("convert", SAMPLE).out)
    for options, train in (((), train_by_ada_cm), (("--whole-pairs",), train_by_gen_vlkt)):
        done = hoicli("convert", SAMPLE, "--split", "RF-UC", *options)
        kept = parsed(done.out)
        assert {record["image_id"]: record["hois"] for record in kept} == train(every)
        assert not any(tuple(pair) in UNSEEN for record in kept for pair in record["image_hois"])
        boxes = {record["image_id"]: record["boxes"] for record in every}
        assert all(record["boxes"] == boxes[record["image_id"]] for record in kept)
        counts = [sum(len(record["hois"]) for record in records) for records in (every, kept)]
        said = [line for line in done.err.splitlines() if "left out: " in line and "triplets of " in line]
        assert sum(int(line.rsplit(": ", 3)[1].split(" (")[0]) for line in said) == counts[0] - counts[1], done.err


def test_training_files_without_the_unseen_classes(hoicli: Hoicli, tmp_path: Path) -> None:
    output = tmp_path / "trainval.json"
    assert hoicli("convert", SAMPLE, "--split", "rf-uc", "--to", "hoia", "-o", output).code == 0
    written = {
        hoi["hoi_category_id"] - 1 for image in json.loads(output.read_text()) for hoi in image["hoi_annotation"]
    }
    assert written
    assert not written & HICO.unseen["rare_first"]


HOI = {"subject": 0, "object": 1, "verb": "fly"}
BOXES: list[list[float]] = [[1, 2, 638.5, 426], [-3, 0, 10, 11]]
SIZE = {"width": 640, "height": 427}
RECORD: Record = {"image_id": "a", **SIZE, "boxes": BOXES, "labels": ["person", "kite"], "hois": [HOI]}
UNSIZED = {key: value for key, value in RECORD.items() if key != "width"}
SCORED = {**RECORD, "hois": [HOI | {"score": 1}]}


def converted(hoicli: Hoicli, folder: Path, record: Record, *options: object) -> Any:
    path = saved(folder / "records.jsonl", json.dumps(record) + "\n")
    return hoicli("convert", path, *options)


@pytest.mark.parametrize(("size", "width", "height"), [("512", 512, 512), ("768x512", 768, 512)])
def test_scales_of_interactdiffusion(hoicli: Hoicli, tmp_path: Path, size: str, width: int, height: int) -> None:
    (record,) = parsed(converted(hoicli, tmp_path, RECORD, "--resize", size).out)
    assert (record["width"], record["height"]) == (width, height)
    assert record["boxes"] == [
        [int(width * box[0] / 640), int(height * box[1] / 427), int(width * box[2] / 640), int(height * box[3] / 427)]
        for box in BOXES
    ]


@pytest.mark.parametrize(("record", "options", "code", "problem"), [
    (UNSIZED, ("--resize", 512), 1, "width, height: missing; --resize scales boxes from the"),
    (SCORED, ("--resize", 512), 1, "--resize changes ground truth"),
    (SCORED, ("--split", "uo"), 1, "--split changes ground truth"),
    (RECORD, ("--resize", "512x"), 2, "--resize 512x: give a side of the pictures in pixels"),
    (RECORD, ("--whole-pairs",), 2, "--whole-pairs: goes with --split"),
    (RECORD, ("--split", "rare"), 2, "--split rare: hico has uc0"),
])  # fmt: skip
def test_what_is_refused(
    hoicli: Hoicli, tmp_path: Path, record: Record, options: tuple[object, ...], code: int, problem: str
) -> None:
    done = converted(hoicli, tmp_path, record, *options)
    assert done.code == code
    assert problem in done.err


def test_fields_in_pixels_of_the_original_image_are_left_out_and_counted(hoicli: Hoicli, tmp_path: Path) -> None:
    record = parsed(hoicli("convert", SAMPLE).out)[0]
    masks = {"segmentations": [None] * len(record["boxes"]), "masks": [[1, 2, 30, 40]], "pixelated": 8}
    path = tmp_path / "masked.jsonl"
    path.write_text(json.dumps(record | masks | {"camera": "a"}) + "\n", encoding="utf-8")
    done = hoicli("convert", "--resize", "512", path)
    (resized,) = parsed(done.out)
    assert not masks.keys() & resized.keys()
    assert resized["camera"] == "a"
    assert all(f"left out: {name} (in pixels of the original image): 1" in done.err for name in masks)


FORMS = {"xyxy": [10, 20, 40, 80], "xywh": [10, 20, 30, 60], "cxcywh": [25, 50, 30, 60]}
SITE = FIXTURES / "own/site.json"


def record(hoicli: Hoicli, *arguments: object) -> dict[str, Any]:
    (found,) = records_of(hoicli("convert", *arguments))
    return dict(found)


@pytest.mark.parametrize("form", FORMS)
def test_one_box_in_three_forms(hoicli: Hoicli, tmp_path: Path, form: str) -> None:
    """Ground truth of HICO-DET counts from 1 in every form; predictions and SWIG-HOI stay as they are."""
    box, path = FORMS[form], tmp_path / "file.json"
    person, bicycle = {"bbox": box, "category_id": 1}, {"bbox": box, "category_id": 2}
    hoi = {"subject_id": 0, "object_id": 1, "category_id": 77}
    for item, expected in (
        ({"file_name": "a.jpg", "annotations": [person, bicycle], "hoi_annotation": [hoi]}, [9, 19, 39, 79]),
        (
            {"file_name": "a.jpg", "predictions": [person, bicycle], "hoi_prediction": [{**hoi, "score": 0.5}]},
            [10, 20, 40, 80],
        ),
    ):
        path.write_text(json.dumps([item]))
        found = record(hoicli, "--dataset", "hico", "--box-form", form, path)
        assert found["boxes"] == [expected] * 2
    path.write_text(json.dumps([{**item, "predictions": [{**person, "bbox": box[:3]}]}]))
    numbers = {
        "xyxy": "[x1, y1, x2, y2]",
        "xywh": "[x, y, width, height]",
        "cxcywh": "[cx, cy, width, height]",
    }
    assert f"is no box; give {numbers[form]}" in hoicli("convert", "--dataset", "hico", "--box-form", form, path).err
    item = {"file_name": "a.jpg", "box_annotations": [{"bbox": box, "category_id": 0}], "hoi_annotations": []}
    path.write_text(json.dumps([item]))
    assert record(hoicli, "--box-form", form, path)["boxes"] == [[10, 20, 40, 80]]
    assert "is read as [x1, y1, x2, y2]" not in hoicli("convert", "--box-form", form, path).err
    assert "as the released code does (--box-form xywh: as described)" in hoicli("convert", path).err


@pytest.mark.parametrize("form", FORMS)
def test_records(hoicli: Hoicli, tmp_path: Path, form: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"image_id": "a", "boxes": [FORMS[form]], "labels": ["person"], "hois": []}) + "\n")
    assert record(hoicli, "--box-form", form, path)["boxes"] == [FORMS["xyxy"]]


def logits(path: Path, numbers: list[float], columns: list[float]) -> Path:
    boxes, sizes = np.array([numbers * 2]), np.array([100, 200])
    np.savez(path, pred_logits=np.array([columns]), pred_boxes=boxes, box_scores=np.array([[1.0]]), sizes=sizes)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_raw_outputs(hoicli: Hoicli, tmp_path: Path, form: str) -> None:
    """Relative numbers of an image of 200 x 100; without the option they are a centre with width and height."""
    path = logits(tmp_path / "a.npz", [side / 100 for side in FORMS[form]], [5.0] + [-9.0] * 599)
    found = record(hoicli, "--from", "logits", "--box-form", form, path)
    assert found["boxes"] == [pytest.approx([20, 20, 80, 80])] * 2
    assert (found == record(hoicli, "--from", "logits", path)) == (form == "cxcywh")


def test_a_format_of_one_form_refuses_the_option(hoicli: Hoicli) -> None:
    said = refusal(hoicli("convert", "--box-form", "xywh", FIXTURES / "foreign/preds.pkl"), 2)
    assert "--box-form xywh is not for inpcc, but for records, qpic-vcoco, " in said


def numbered(path: Path, mapper: Any) -> Path:
    content = json.loads(SITE.read_text())
    content["numbering"] = {"interactions": {"ids": mapper}}
    path.write_text(json.dumps(content))
    return path


def test_a_mapper_from_the_numbers_of_a_dump(hoicli: Hoicli, tmp_path: Path) -> None:
    """Some classes, in any order, with gaps: as json.dump writes a dict of numbers and pairs."""
    pairs = json.loads(SITE.read_text())["interactions"]
    site = numbered(tmp_path / "site.json", {"7": pairs[0], "2": pairs[3], "30": pairs[1]})
    rows = [[number, 0.5, 0, 0, 9, 9, 3, 3, 6, 6] for number in (30, 2)]
    dump = dumped(tmp_path / "dump.json", {"site_1.jpg": rows})
    found = record(hoicli, "--dataset", site, "--from", "inpcc", dump)
    assert [[hoi["verb"], found["labels"][hoi["object"]]] for hoi in found["hois"]] == [pairs[1], pairs[3]]
    raw = logits(tmp_path / "a.npz", [0.5, 0.5, 0.2, 0.2], [-9.0, 5.0, -9.0])  # by number: 2, 7, 30
    found = record(hoicli, "--dataset", site, "--from", "logits", raw)
    assert [[hoi["verb"], found["labels"][hoi["object"]]] for hoi in found["hois"]] == [pairs[0]]
    dump.write_text(json.dumps({"site_1.jpg": [[8, *rows[0][1:]]]}))
    said = refusal(hoicli("convert", "--dataset", site, "--from", "inpcc", dump))
    assert "[0]: id 8 is none of site's interactions (its numbering.interactions)" in said
    six = logits(tmp_path / "b.npz", [0.5, 0.5, 0.2, 0.2], [-9.0] * len(pairs))
    assert f"{len(pairs)} classes, but site has 3" in hoicli("convert", "--dataset", site, "--from", "logits", six).err


@pytest.mark.parametrize(("mapper", "said"), [
    ([], '.ids: []; give {"0": [verb, object], ...}'),
    ({"01": ["wear", "helmet"]}, ".ids.01: no number; the keys are the dump's numbers, whole, 0 or more"),
    ({"1": ["wear", "hat"]}, '.ids.1: ["wear","hat"] is none of `interactions`; give [verb, object] of one'),
    ({"1": ["wear", "helmet"], "2": ["wear", "helmet"]}, '.ids.2: ["wear","helmet"] has the number 1 already'),
])  # fmt: skip
def test_a_mapper_that_contradicts_itself(hoicli: Hoicli, tmp_path: Path, mapper: Any, said: str) -> None:
    site = numbered(tmp_path / "site.json", mapper)
    assert f"numbering.interactions{said}" in refusal(hoicli("vocab", site))
