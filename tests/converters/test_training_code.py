"""Files that training code leaves: lists without names of images, MATLAB files in rows, HOIDet's JSON; and the ground
truth of a command in place of --image-list."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import loadmat

from hoicli.converters.containers.source import Source
from hoicli.converters.formats import detect
from hoicli.vocabulary.datasets import load
from tests.foreign.arrays import matlab_file
from tests.foreign.lists import items
from tests.support.project import EIGHT, FIXTURES, GT, SWIG, Hoicli, dumped, parsed, records_of, saved, triplets_of

TRUTH, PREDICTIONS = GT, EIGHT / "predictions.jsonl"
IMAGES = [record["image_id"] for record in parsed(TRUTH.read_text())]
FIX = "give --image-list: ground truth in the order of the items, or a list of names"

Records = list[dict[str, Any]]


def predictions() -> Records:
    return parsed(PREDICTIONS.read_text())


def in_order_of_the_truth() -> Records:
    """The predictions with an empty record for each image without any."""
    by_id = {record["image_id"]: record for record in predictions()}
    empty: dict[str, Any] = {"boxes": [], "labels": [], "hois": []}
    return [by_id.get(name, {"image_id": name, "file_name": f"{name}.jpg", **empty}) for name in IMAGES]


def triplets(records: Records) -> dict[Any, list[tuple[Any, ...]]]:
    return {record["image_id"]: sorted(triplets_of(record)) for record in records}


def values(hoicli: Hoicli, *arguments: object) -> list[float]:
    return [row["value"] for row in records_of(hoicli("eval", "--format", "jsonl", *arguments))]


@pytest.fixture
def nameless(tmp_path: Path) -> Path:
    """The list that QPIC's evaluator holds (`self.preds`), pickled."""
    path = tmp_path / "preds.pkl"
    content = items(in_order_of_the_truth(), np.float32)
    for item in content:
        del item["filename"]
    path.write_bytes(pickle.dumps(content))
    return path


def test_a_list_without_names_is_joined_by_position(hoicli: Hoicli, nameless: Path) -> None:
    result = hoicli("convert", nameless, "--image-list", TRUTH)
    assert result.err.startswith(f"hoicli: {nameless}: items joined with the 8 images of --image-list by position\n")
    found = parsed(result.out)
    assert [record["image_id"] for record in found] == IMAGES
    assert all("file_name" not in record for record in found)
    assert [record["labels"] for record in found] == [record["labels"] for record in in_order_of_the_truth()]
    options = ("--gt", TRUTH, "--protocol", "qpic")
    assert values(hoicli, *options, nameless) == values(hoicli, *options, PREDICTIONS)


def test_a_list_without_names_needs_its_order(hoicli: Hoicli, nameless: Path, tmp_path: Path) -> None:
    """Its order is that of the project's own file, which need not be by name."""
    assert hoicli("convert", nameless).err == f"{nameless}: names no images; {FIX}\n"
    shorter = saved(tmp_path / "shorter.txt", "\n".join(IMAGES[1:]))
    problem = f"{nameless}: 8 items, but --image-list has 7; {FIX}\n"
    assert hoicli("convert", nameless, "--image-list", shorter).err == problem
    subset = saved(tmp_path / "subset.jsonl", "".join(TRUTH.read_text().splitlines(keepends=True)[:5]))
    assert hoicli("eval", "--gt", subset, nameless).err == problem.replace("--image-list has 7", "--gt has 5")


def test_a_v_coco_list_without_names(hoicli: Hoicli, tmp_path: Path) -> None:
    """Of QPIC's evaluator for V-COCO; unlike the list of people without image_id, its items are images."""
    item = {
        "predictions": [{"bbox": [0, 0, 9, 9], "category_id": 0}, {"bbox": [5, 5, 9, 9], "category_id": 80}],
        "hoi_prediction": [{"subject_id": 0, "object_id": 1, "category_id": 0, "score": 0.5}],
    }
    path, ids = tmp_path / "list.json", tmp_path / "ids.txt"
    path.write_text(json.dumps([item, item]))
    ids.write_text("COCO_val2014_000000000328.jpg\nCOCO_val2014_000000000042.jpg\n")
    result = hoicli("convert", "--from", "qpic-vcoco-list", path, "--image-list", ids)
    assert [(record["image_id"], record["hois"][0]["role"]) for record in parsed(result.out)] == [
        (328, "obj"), (42, "obj"),
    ]  # fmt: skip
    people = dumped(tmp_path / "people.json", [{"person_box": [0, 0, 9, 9], "hold_agent": 0.5}])
    problem = "is V-COCO's list of people without image_id; add to each the number of its COCO image"
    assert hoicli("convert", people).err == f"{people}: {problem}\n"


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """A copy of the fixture, to be changed."""
    shutil.copytree(FIXTURES / "foreign" / "rows_mat", tmp_path / "rows")
    return tmp_path / "rows"


def test_rows_have_the_same_triplets(hoicli: Hoicli, rows: Path) -> None:
    result = hoicli("convert", rows)
    assert f"{rows}: scores are divided by 1000, by which PPDM's and GEN-VLKT's scripts multiply them" in result.err
    assert "taking HICO-DET test numbers" in result.err
    found = triplets(parsed(result.out))
    expected = {key: value for key, value in triplets(predictions()).items() if value}
    assert list(found) == sorted(expected)
    for image, theirs in expected.items():
        for one, other in zip(found[image], theirs, strict=True):
            assert one[:-1] == other[:-1]
            assert one[-1] == pytest.approx(other[-1], abs=1e-12)
    options = ("--gt", TRUTH, "--protocol", "hico")
    assert values(hoicli, *options, rows) == values(hoicli, *options, PREDICTIONS)


def test_five_images_are_no_rows() -> None:
    """A column for each of five images looks like five cells of a row, but for the number of rows."""
    assert detect(Source(str(FIXTURES / "foreign" / "detections_mat"))) == "mat"


def test_five_columns_of_images(tmp_path: Path) -> None:
    vocabulary = load("hico")
    for number, name in enumerate(vocabulary.objects, start=1):
        cells = np.empty((len(vocabulary.interactions_of(name)), 5), dtype=object)
        cells.fill(np.zeros((0, 0)))
        (tmp_path / f"detections_{number:02d}.mat").write_bytes(matlab_file(cells))
    assert detect(Source(str(tmp_path))) == "mat"


@pytest.mark.parametrize(("column", "value", "problem"), [
    (0, [1.0, 2.0, 3.0], "holds 1, 2, 3, not four finite numbers (x1, y1, x2, y2)"),
    (1, [1.0, 2.0, 3.0, np.nan], "holds 1, 2, 3, nan, not four finite numbers (x1, y1, x2, y2)"),
    (2, 1.5, "1.5 is no image number"),
    (2, 99_999, "image number 99999 is not among the 9,658 known ones; give its own set with --image-list"),
    (3, 14, "interaction 14, but the object has 14, counted from 0"),
    (4, np.inf, "holds inf, not one finite number"),
])  # fmt: skip
def test_a_wrong_row_is_named(hoicli: Hoicli, rows: Path, column: int, value: Any, problem: str) -> None:
    path = rows / "detections_02.mat"
    cells = loadmat(path)["all_boxes"]
    cells[1, column] = np.array([value] if isinstance(value, list) else [[value]])
    path.write_bytes(matlab_file(cells))
    place = f"{rows}: " if value == 99_999 else f"{path}: all_boxes{{2,{column + 1}}}: "
    assert hoicli("convert", rows).err == f"{place}{problem}\n"
    skipped = hoicli("convert", "--on-error", "skip", rows)
    assert (skipped.code, "skipped 1 item; the first: " in skipped.err) == (0, True)


def test_hoidet(hoicli: Hoicli) -> None:
    """Its images are known by their numbers alone."""
    path = FIXTURES / "foreign" / "hoidet.json"
    result = hoicli("convert", path)
    assert "as hoidet (predictions)" in result.err
    assert triplets(parsed(result.out)) == triplets(predictions())


@pytest.mark.parametrize(("change", "problem"), [
    ({"h_idx": [0, 0]}, ".h_idx: 2 h_idx, 1 o_idx, 1 hoi_class, 1 hoi_score; they must agree: "
                        "write the file again"),
    ({"o_idx": [2]}, ".o_idx[0]: id 2, but there are 2, counted from 0"),
    ({"hoi_class": [600]}, ".hoi_class[0]: id 600, but there are 600, counted from 0"),
    ({"hoi_score": [None]}, ".hoi_score[0]: None is no finite number; fix what wrote it, or pass --on-error skip"),
    ({"image_id": 99_999}, ": image number 99999 is not among the 9,658 known ones; give its own set with "
                           "--image-list"),
])  # fmt: skip
def test_hoidet_errors(hoicli: Hoicli, tmp_path: Path, change: dict[str, Any], problem: str) -> None:
    item = {"image_id": 9, "boxes": [[1, 2, 30, 40], [5, 6, 70, 80]], "h_idx": [0], "o_idx": [1], "hoi_score": [0.5],
            "hoi_class": [0]}  # fmt: skip
    path = dumped(tmp_path / "pred.json", [item | change])
    assert hoicli("convert", path).err == f"{path}: [0]{problem}\n"


def test_ground_truth_says_what_numbers_mean(hoicli: Hoicli) -> None:
    truth, dump = SWIG / "foreign" / "swig_dev_1000.json", SWIG / "foreign" / "preds.pkl"
    result = hoicli("eval", "--dataset", "swig", "--gt", truth, dump)
    assert result.code == 0
    assert (
        f"hoicli: {dump} names images by number only: taking the numbers of --gt; --image-list for another set"
        in result.err.splitlines()
    )
    assert result.out == hoicli("eval", "--dataset", "swig", "--gt", truth, "--image-list", truth, dump).out


def test_ground_truth_has_the_order_of_columns(hoicli: Hoicli) -> None:
    folder = FIXTURES / "foreign" / "detections_mat"
    result = hoicli("eval", "--gt", TRUTH, "--protocol", "upt", folder)
    assert f"{folder}: columns joined with the 8 images of --gt by position (--image-list for others)" in result.err
    listed = hoicli("eval", "--gt", TRUTH, "--protocol", "upt", "--image-list", TRUTH, folder)
    assert (result.code, result.out) == (0, listed.out)


def test_ground_truth_has_the_sizes_of_images(hoicli: Hoicli, tmp_path: Path) -> None:
    arrays = dict(np.load(FIXTURES / "foreign" / "logits.npz"))
    del arrays["sizes"]
    path = tmp_path / "logits.npz"
    np.savez(path, **arrays)
    options = ("--from", "logits", "--gt", TRUTH, "--protocol", "inp-cc")
    assert values(hoicli, *options, path) == values(hoicli, *options, "--image-list", TRUTH, path)


def test_numbers_can_be_the_ids(hoicli: Hoicli) -> None:
    result = hoicli("convert", "--dataset", "swig", "--id", "number", SWIG / "foreign" / "preds.pkl")
    assert [record["image_id"] for record in parsed(result.out)] == [0, 1, 2, 3]
