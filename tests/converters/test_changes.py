"""What `convert` changes in ground truth: the unseen classes of a split left out, boxes at another size."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hoicli.vocabulary.datasets import load
from tests.support.project import FIXTURES, Hoicli, Record, parsed, saved

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
RECORD: Record = {
    "image_id": "a",
    "width": 640,
    "height": 427,
    "boxes": BOXES,
    "labels": ["person", "kite"],
    "hois": [HOI],
}
UNSIZED = {key: value for key, value in RECORD.items() if key != "width"}
SCORED = {**RECORD, "hois": [HOI | {"score": 1}]}


def converted(hoicli: Hoicli, folder: Path, record: Record, *options: object) -> Any:
    path = saved(folder / "records.jsonl", json.dumps(record) + "\n")
    return hoicli("convert", path, *options)


@pytest.mark.parametrize(("size", "width", "height"), [("512", 512, 512), ("768x512", 768, 512)])
def test_boxes_are_scaled_as_interactdiffusion_scales_them(
    hoicli: Hoicli, tmp_path: Path, size: str, width: int, height: int
) -> None:
    (record,) = parsed(converted(hoicli, tmp_path, RECORD, "--resize", size).out)
    assert (record["width"], record["height"]) == (width, height)
    assert record["boxes"] == [
        [int(width * box[0] / 640), int(height * box[1] / 427), int(width * box[2] / 640), int(height * box[3] / 427)]
        for box in BOXES
    ]


@pytest.mark.parametrize(
    ("record", "options", "code", "problem"),
    [
        (UNSIZED, ("--resize", 512), 1, "width, height: missing; --resize scales boxes from the"),
        (SCORED, ("--resize", 512), 1, "--resize changes ground truth"),
        (SCORED, ("--split", "uo"), 1, "--split changes ground truth"),
        (RECORD, ("--resize", "512x"), 2, "--resize 512x: give a side of the pictures in pixels"),
        (RECORD, ("--whole-pairs",), 2, "--whole-pairs: goes with --split"),
        (RECORD, ("--split", "rare"), 2, "--split rare: hico has uc0"),
    ],
)
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
