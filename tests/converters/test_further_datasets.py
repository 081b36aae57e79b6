"""The files of the further datasets: what their numbers and boxes mean, in every container, and what is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from hoicli.vocabulary.datasets import load
from tests.support.project import FIXTURES, GT, Hoicli, dumped, parsed, refusal, saved

HICO = load("hico")
SCORES = np.random.default_rng(15).integers(0, 200, (8, 600)).astype(np.uint8)
SCORES[-1, -1] = ord(".")  # a pickle ends so, too
IMAGES = str(GT)  # eight


def test_hoi_a_counts_from_one_and_its_boxes_are_edges(hoicli: Hoicli, tmp_path: Path) -> None:
    item = {
        "file_name": "test_000000.png",
        "annotations": [
            {"bbox": [0, 5, 640, 480], "category_id": "1\n"},
            {"bbox": [9, 9, 20, 30], "category_id": "11"},
        ],
        "hoi_annotation": [{"subject_id": 0, "object_id": 1, "category_id": 10}],
    }
    path = dumped(tmp_path / "test_hoia.json", [item])
    (record,) = parsed(hoicli("convert", "--dataset", "hoia", path).out)
    assert record["boxes"] == [[0, 5, 639, 479], [9, 9, 19, 29]]
    assert record["labels"] == ["person", "document"]
    assert record["hois"] == [{"subject": 0, "object": 1, "verb": "play_computer"}]
    item["hoi_annotation"] = [{"subject_id": 0, "object_id": 1, "category_id": 11}]
    path.write_text(json.dumps([item]))
    assert "[0].hoi_annotation[0].category_id: id 11 is none of hoia's verbs" in refusal(
        hoicli("convert", "--dataset", "hoia", path)
    )


def test_hico_det_sg_is_read_as_hico_det(hoicli: Hoicli) -> None:
    path = FIXTURES / "foreign/test_hico.json"
    assert hoicli("convert", "--dataset", "hico-det-sg", path).out == hoicli("convert", path).out


def written(folder: Path, kind: str) -> Path:
    path = folder / f"scores.{kind}"
    if kind == "npy":
        np.save(path, SCORES)
    else:
        savemat(path, {"scores": SCORES.T.astype(float)})  # classes by images, as anno_test
    return path


@pytest.mark.parametrize("kind", ["npy", "mat"])
def test_image_level_scores_in_every_container(kind: str, hoicli: Hoicli, tmp_path: Path) -> None:
    result = hoicli("convert", written(tmp_path, kind), "--image-list", IMAGES)
    found = parsed(result.out)
    assert [record["image_id"] for record in found] == [
        record["image_id"] for record in parsed(Path(IMAGES).read_text())
    ]
    for record, row in zip(found, SCORES.tolist(), strict=True):
        named = [(hoi["verb"], record["labels"][hoi["object"]]) for hoi in record["hois"]]
        assert tuple(named) == HICO.interactions
        assert [hoi["score"] for hoi in record["hois"]] == row
        assert record["caveats"] == ["whole_image"]


@pytest.mark.parametrize(
    ("array", "problem"),
    [
        (
            np.zeros((3, 600)),
            "3 rows, but --image-list has 8; give --image-list: ground truth in the order of the rows, or a list of "
            "names",
        ),
        (np.zeros((8, 117)), "a float64 array of shape [8, 117]; save a matrix of images by 600 classes"),
        (np.full((8, 600), np.inf), "[0][0]: is no finite number; every class of every image needs a score"),
        (np.full((8, 600), "a"), "a <U1 array of shape [8, 600]; save a matrix of images by 600 classes"),
    ],
)
def test_wrong_matrices(array: Any, problem: str, hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "scores.npy"
    np.save(path, array)
    assert refusal(hoicli("convert", path, "--image-list", IMAGES)) == f"{path}: {problem}"


def test_scores_of_whole_images_have_no_boxes_to_validate(hoicli: Hoicli, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(hoicli("convert", written(tmp_path, "npy"), "--image-list", IMAGES).out)
    assert "relative-box" not in hoicli("validate", tmp_path / "p.jsonl").out


def test_anno_mat_alone_labels_whole_images(hoicli: Hoicli) -> None:
    result = hoicli("convert", FIXTURES / "foreign/anno.mat")
    found, truth = parsed(result.out), parsed(Path(IMAGES).read_text())
    assert [record["image_hois"] for record in found] == [record["image_hois"] for record in truth]
    assert all(record["boxes"] == record["hois"] == [] for record in found)
    assert all(record["caveats"] == ["whole_image"] for record in found)
    assert "labels of whole images, without boxes" in result.err
    assert "missing elsewhere" not in result.err


def test_the_ican_family(hoicli: Hoicli, tmp_path: Path) -> None:
    """The score is the class's times both boxes', of the interactions of the object's class alone."""
    scores = np.arange(600) / 1000
    rows = [
        [np.array([1.0, 2, 30, 40]), [5, 6, 70, 80], 2, scores, 0.5, 0.5, "more"],
        [[0, 0, 1, 1], [0, 0, 1, 1], 1, scores, 0.0, 0.9],
    ]
    path = saved(tmp_path / "dump.pkl", pickle.dumps({1: rows, "HICO_test2015_00000002.jpg": []}))
    result = hoicli("convert", path)
    first, second = parsed(result.out)
    assert (first["image_id"], second["image_id"]) == ("HICO_test2015_00000001", "HICO_test2015_00000002")
    assert (first["boxes"], first["labels"]) == ([[1, 2, 30, 40], [5, 6, 70, 80]], ["person", "bicycle"])
    assert [(hoi["verb"], hoi["score"]) for hoi in first["hois"]] == [
        (HICO.interactions[number][0], pytest.approx(number / 4000)) for number in HICO.interactions_of("bicycle")
    ]
    assert "pairs with a box score of 0 or less: 1" in result.err
