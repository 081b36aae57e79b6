"""`convert --box-form`, what the four numbers of a box are; and classes in a numbering of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.project import FIXTURES, Hoicli, dumped, refusal

BOXES = {"xyxy": [10, 20, 40, 80], "xywh": [10, 20, 30, 60], "cxcywh": [25, 50, 30, 60]}
SITE = FIXTURES / "own/site.json"


def record(hoicli: Hoicli, *arguments: object) -> dict[str, Any]:
    result = hoicli("convert", *arguments)
    assert result.code == 0, result.err
    (found,) = map(json.loads, result.out.splitlines())
    return dict(found)


@pytest.mark.parametrize("form", BOXES)
def test_one_box_in_three_forms(hoicli: Hoicli, tmp_path: Path, form: str) -> None:
    """Ground truth of HICO-DET counts from 1 in every form; predictions and SWIG-HOI stay as they are."""
    box, path = BOXES[form], tmp_path / "file.json"
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
    item = {"file_name": "a.jpg", "box_annotations": [{"bbox": box, "category_id": 0}], "hoi_annotations": []}
    path.write_text(json.dumps([item]))
    assert record(hoicli, "--box-form", form, path)["boxes"] == [[10, 20, 40, 80]]
    assert "is read as [x1, y1, x2, y2]" not in hoicli("convert", "--box-form", form, path).err
    assert "as the released code does (--box-form xywh: as described)" in hoicli("convert", path).err


@pytest.mark.parametrize("form", BOXES)
def test_records(hoicli: Hoicli, tmp_path: Path, form: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps({"image_id": "a", "boxes": [BOXES[form]], "labels": ["person"], "hois": []}) + "\n")
    assert record(hoicli, "--box-form", form, path)["boxes"] == [BOXES["xyxy"]]


def logits(path: Path, numbers: list[float], columns: list[float]) -> Path:
    boxes, sizes = np.array([numbers * 2]), np.array([100, 200])
    np.savez(path, pred_logits=np.array([columns]), pred_boxes=boxes, box_scores=np.array([[1.0]]), sizes=sizes)
    return path


@pytest.mark.parametrize("form", BOXES)
def test_raw_outputs(hoicli: Hoicli, tmp_path: Path, form: str) -> None:
    """Relative numbers of an image of 200 x 100; without the option they are a centre with width and height."""
    path = logits(tmp_path / "a.npz", [side / 100 for side in BOXES[form]], [5.0] + [-9.0] * 599)
    found = record(hoicli, "--from", "logits", "--box-form", form, path)
    assert found["boxes"] == [pytest.approx([20, 20, 80, 80])] * 2
    assert (found == record(hoicli, "--from", "logits", path)) == (form == "cxcywh")


def test_a_format_of_one_form_refuses_the_option(hoicli: Hoicli) -> None:
    result = hoicli("convert", "--box-form", "xywh", FIXTURES / "foreign/preds.pkl")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "--box-form xywh is not for inpcc, but for records, qpic-vcoco, " in result.err


# Numbers of classes


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
    wrong = hoicli("convert", "--dataset", site, "--from", "inpcc", dump)
    assert (wrong.code, wrong.out) == (1, "")
    assert "[0]: id 8 is none of site's interactions (its numbering.interactions)" in wrong.err
    six = logits(tmp_path / "b.npz", [0.5, 0.5, 0.2, 0.2], [-9.0] * len(pairs))
    assert f"{len(pairs)} classes, but site has 3" in hoicli("convert", "--dataset", site, "--from", "logits", six).err


@pytest.mark.parametrize(
    ("mapper", "said"),
    [
        ([], '.ids: []; give {"0": [verb, object], ...}'),
        ({"01": ["wear", "helmet"]}, ".ids.01: no number; the keys are the dump's numbers, whole, 0 or more"),
        ({"1": ["wear", "hat"]}, '.ids.1: ["wear","hat"] is none of `interactions`; give [verb, object] of one'),
        ({"1": ["wear", "helmet"], "2": ["wear", "helmet"]}, '.ids.2: ["wear","helmet"] has the number 1 already'),
    ],
)
def test_a_mapper_that_contradicts_itself(hoicli: Hoicli, tmp_path: Path, mapper: Any, said: str) -> None:
    site = numbered(tmp_path / "site.json", mapper)
    assert f"numbering.interactions{said}" in refusal(hoicli("vocab", site))
