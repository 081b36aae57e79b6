"""Ground truth in other people's formats: each fixture converts back to tests/eight/gt.jsonl, and faults are told."""

from __future__ import annotations

import gzip
import json
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.io import savemat

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.hico_mat import read
from hoicli.errors import DataError
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load as load_vocabulary
from tests.foreign import hico_mat as maker
from tests.support.project import FOREIGN, GT, Hoicli, Record, Result, changed, dumped
from tests.support.project import records_of as records

BOXES, LABELS = FOREIGN / "anno_bbox.mat", FOREIGN / "anno.mat"
TRUTH = [json.loads(line) for line in (GT).read_bytes().splitlines()]
NO_LABELS = (
    "hoicli: no image-level labels in this file: Known Object will derive them from the pairs (use anno_bbox.mat)"
)


def refusal(result: Result) -> str:
    assert result.code == 1, result
    return result.err.splitlines()[-1]


def without(keys: tuple[str, ...]) -> list[Record]:
    """The truth of the fixtures as a format has it that lacks some keys."""
    return [{key: value for key, value in record.items() if key not in keys} for record in TRUTH]


@pytest.mark.parametrize(("paths", "lacks"), [
    ((BOXES, LABELS), ()),
    ((LABELS, BOXES), ()),
    ((FOREIGN / "anno_list.json",), ()),
    ((FOREIGN / "instances_test2015.json",), ("image_hois",)),
    ((FOREIGN / "test_hico.json",), ("image_hois", "width", "height")),
], ids=["hico-mat", "hico-mat, anno.mat first", "no-frills", "pocket", "hoia"])  # fmt: skip
def test_fixture_converts_back(hoicli: Hoicli, paths: tuple[Path, ...], lacks: tuple[str, ...]) -> None:
    assert records(hoicli("convert", *paths)) == without(lacks)


def test_pocket_takes_the_object_order_of_the_file(hoicli: Hoicli, tmp_path: Path) -> None:
    """Branch `class` of hicodet has COCO's order, and COCO's spelling."""
    content = json.loads((FOREIGN / "instances_test2015.json").read_text())
    alphabetical, coco = content["objects"], list(load_vocabulary("hico").objects)
    for annotation in content["annotation"]:
        annotation["object"] = [coco.index(alphabetical[index]) for index in annotation["object"]]
    content["objects"] = [name.replace("_", " ") for name in coco]
    path = dumped(tmp_path / "instances_test2015.json", content)
    result = hoicli("convert", path)
    assert records(result) == without(("image_hois",))
    assert NO_LABELS in result.err


Change = Callable[[list[Record]], object]


def hoia_file(tmp_path: Path, change: Change) -> Path:
    return changed(FOREIGN / "test_hico.json", tmp_path / "hoia.json", change)


def test_hoia_keeps_sizes_where_the_file_has_them(hoicli: Hoicli, tmp_path: Path) -> None:
    """test_hico_ann.json of INP-CC."""

    def add(content: list[Record]) -> None:
        for number, (item, record) in enumerate(zip(content, TRUTH, strict=True)):
            item.update(img_id=number, height=record["height"], width=record["width"])

    result = hoicli("convert", hoia_file(tmp_path, add))
    assert records(result) == without(("image_hois",))
    assert "[x, y, w, h], is read as [x1, y1, x2, y2]" in result.err
    assert "[x, y, w, h]" not in hoicli("convert", FOREIGN / "test_hico.json").err, "INP-CC's is the one described so"


def test_hoia_drops_interactions_without_boxes(hoicli: Hoicli, tmp_path: Path) -> None:
    def point_nowhere(content: list[Record]) -> None:
        content[1]["hoi_annotation"][0]["object_id"] = 3
        content[1]["hoi_annotation"][2]["subject_id"] = 99
        content[7]["hoi_annotation"][1]["object_id"] = -1

    path = hoia_file(tmp_path, point_nowhere)
    result = hoicli("convert", path)
    assert [len(record["hois"]) for record in records(result)] == [2, 1, 2, 0, 3, 1, 3, 1]
    assert result.err.splitlines() == [
        NO_LABELS,
        f"hoicli: converted {path} as hoia (ground truth): 8 images, 19 boxes, 13 triplets",
        "hoicli: left out: interactions that point beyond the boxes of their image: 2 "
        f"(the first: {path}: [1].hoi_annotation[0])",
        "hoicli: left out: interactions without a subject or an object (index -1): 1 "
        f"(the first: {path}: [7].hoi_annotation[1])",
    ]


def test_hoia_keeps_equal_boxes_apart(hoicli: Hoicli, tmp_path: Path) -> None:
    """The indices of the file are its own; merging would shift them."""

    def repeat(content: list[Record]) -> None:
        content[0]["annotations"].insert(0, content[0]["annotations"][0])
        for hoi in content[0]["hoi_annotation"]:
            hoi.update(subject_id=hoi["subject_id"] + 1, object_id=hoi["object_id"] + 1)

    record = records(hoicli("convert", hoia_file(tmp_path, repeat)))[0]
    assert record["boxes"] == [TRUTH[0]["boxes"][0], *TRUTH[0]["boxes"]]
    assert [hoi["subject"] for hoi in record["hois"]] == [1, 3]


def _set(item: int, key: str, row: int, field: str, value: Any) -> Change:
    """A change of one field of a HOI-A file."""

    def change(content: list[Record]) -> None:
        content[item][key][row][field] = value

    return change


@pytest.mark.parametrize(("change", "problem"), [
    (_set(1, "annotations", 1, "category_id", "12\n"),
     "[1].annotations[1].category_id: id 12 is none of COCO's 80 (1-90 with gaps); is this file HICO-DET's?"),
    (_set(4, "annotations", 2, "bbox", [1, 2, 3]),
     "[4].annotations[2].bbox: [1, 2, 3] is no box; give [x1, y1, x2, y2]"),
    (
        lambda content: content.append(content[0]),
        None,  # told by the conversion, not the converter: the image has a name, the item has none
    ),
])  # fmt: skip
def test_hoia_refusals(hoicli: Hoicli, tmp_path: Path, change: Change, problem: str | None) -> None:
    path = hoia_file(tmp_path, change)
    expected = f"{path}: {problem}"
    if problem is None:
        expected = f"{path}: image HICO_test2015_00000001: occurs twice in the source; keep one of the two"
    assert refusal(hoicli("convert", path)) == expected
    skipped = hoicli("convert", path, "--on-error", "skip")
    assert len(records(skipped)) == (8 if problem is None else 7)
    assert f"hoicli: skipped 1 item; the first: {expected}" in skipped.err.splitlines()


def test_ground_truth_and_predictions_are_converted_apart(hoicli: Hoicli) -> None:
    refused = hoicli("convert", FOREIGN / "results.json", BOXES)
    assert refused.code == 1
    assert refused.err.splitlines()[-1] == (
        f"{BOXES}: holds ground truth (hico-mat), and the path before it predictions; convert them one at a time"
    )


def test_hoia_refuses_vcoco(hoicli: Hoicli, tmp_path: Path) -> None:
    """The layout is the same, the verbs count from 0."""

    def rename(content: list[Record]) -> None:
        for item in content:
            item["file_name"] = item["file_name"].replace("HICO_test2015_", "COCO_val2014_")
        content[6]["hoi_annotation"][2]["category_id"] = 0

    path = hoia_file(tmp_path, rename)
    assert refusal(hoicli("convert", "--from", "hoia", path)) == (
        f"{path}: is V-COCO in the HOI-A layout (COCO_ file names, verbs from 0): "
        "use --from qpic-vcoco or ppdm-vcoco-gt"
    )

    def keep_verbs(content: list[Record]) -> None:
        content[0]["file_name"] = "COCO_val2014_000000000001.jpg"

    assert records(hoicli("convert", hoia_file(tmp_path, keep_verbs)))[0]["image_id"] == "COCO_val2014_000000000001"


def frills_file(tmp_path: Path, change: Change) -> Path:
    """anno_list.json with a change; item 0 is the train image, item n is line n of the truth."""
    return changed(FOREIGN / "anno_list.json", tmp_path / "anno_list.json", change)


TRAIN = {**TRUTH[0], "image_id": "HICO_train2015_00000001", "file_name": "HICO_train2015_00000001.jpg"}


def test_a_variable_in_two_files(hoicli: Hoicli) -> None:
    twice = hoicli("convert", FOREIGN / "anno_bbox.mat", FOREIGN / "anno_bbox.mat")
    assert (twice.code, twice.out) == (1, "")
    assert "bbox_test is in " in twice.err
    assert "give each file once" in twice.err


def test_no_frills_without_an_image_of_the_part(hoicli: Hoicli, tmp_path: Path) -> None:
    items = [item for item in json.loads((FOREIGN / "anno_list.json").read_bytes())
             if item["image_path_postfix"].startswith("test")]  # fmt: skip
    (tmp_path / "list.json").write_text(json.dumps(items))
    result = hoicli("convert", "--part", "train", tmp_path / "list.json")
    assert (result.code, result.out) == (1, "")
    assert f"none of its {len(items)} images is of the train split (image_path_postfix); see --part test" in result.err


def test_a_part_is_asked_of_formats_that_have_parts(hoicli: Hoicli) -> None:
    refused = hoicli("convert", "--part", "train", GT)
    assert (refused.code, refused.out) == (2, "")
    assert "--part train is not for records, but for hico-mat, no-frills" in refused.err


def test_no_frills_splits(hoicli: Hoicli, tmp_path: Path) -> None:
    path = FOREIGN / "anno_list.json"
    test, train = hoicli("convert", path), hoicli("convert", path, "--part", "train")
    assert "hoicli: taking the test split: 8 images; --part train takes the other 1" in test.err.splitlines()
    assert "hoicli: taking the train split: 1 images; --part test takes the other 8" in train.err.splitlines()
    assert records(train) == [TRAIN]
    path = frills_file(tmp_path, lambda content: content.pop(0))
    assert "taking the" not in hoicli("convert", path).err


def test_no_frills_invisible_interaction_is_an_image_label(hoicli: Hoicli, tmp_path: Path) -> None:
    path = frills_file(tmp_path, lambda content: content[3].update(pos_hoi_ids=[]))
    assert records(hoicli("convert", path))[2]["image_hois"] == [["hold", "apple"]]


@pytest.mark.parametrize(("change", "problem"), [
    (lambda content: content[1]["hois"][0].update(id="601"),
     "[1].hois[0].id: id 601, but there are 600, counted from 1"),
    (lambda content: content[1]["hois"][1].update(connections=[[0, 1]]),
     "[1].hois[1].connections[0]: id 1, but there are 1, counted from 0"),
    (lambda content: content[1]["hois"][1].update(object_bboxes=[[1, 2, 3, "4"]]),
     "[1].hois[1].object_bboxes[0][3]: 4 is no finite number; fix what wrote it, or pass --on-error skip"),
])  # fmt: skip
def test_no_frills_refusals(hoicli: Hoicli, tmp_path: Path, change: Change, problem: str) -> None:
    path = frills_file(tmp_path, change)
    assert refusal(hoicli("convert", path)) == f"{path}: {problem}"
    assert len(records(hoicli("convert", path, "--on-error", "skip"))) == 7


def test_hico_mat_without_anno(hoicli: Hoicli) -> None:
    """What only anno.mat knows is missing (image 4), and the conversion says that this can be."""
    expected = [{**record, "caveats": ["derived_labels"]} for record in TRUTH]
    expected[3]["image_hois"] = []
    result = hoicli("convert", BOXES)
    assert records(result) == expected
    assert result.err.splitlines() == [
        "hoicli: taking bbox_test, the test split; --part train takes the other",
        "hoicli: no anno.mat: image-level labels come from the annotated interactions and may be incomplete; "
        "give both files, as anno_bbox.mat,anno.mat",
        f"hoicli: converted {BOXES} as hico-mat (ground truth): 8 images, 19 boxes, 16 triplets",
    ]


def test_hico_mat_joins_by_file_name(hoicli: Hoicli, tmp_path: Path) -> None:
    """The columns of anno.mat in another order, and one more."""
    other = {"file_name": "HICO_test2015_00000099.jpg", "image_hois": [["ride", "horse"]]}
    path = tmp_path / "anno.mat"
    maker.save(path, {**maker.labels([*TRUTH[::-1], other], "test"), "list_action": maker.actions()})
    result = hoicli("convert", BOXES, path)
    assert records(result) == TRUTH
    assert result.code == 0


def test_hico_mat_however_it_is_stored(hoicli: Hoicli, tmp_path: Path) -> None:
    """Not compressed (-v6), in one file, gzipped, and with the small integers that MATLAB makes of whole numbers."""
    everything = {"bbox_test": maker.images(TRUTH), **maker.labels(TRUTH, "test"), "list_action": maker.actions()}
    path = tmp_path / "both.mat"
    savemat(path, everything, do_compression=False)
    assert records(hoicli("convert", path)) == TRUTH
    (tmp_path / "both.mat.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert records(hoicli("convert", tmp_path / "both.mat.gz")) == TRUTH
    image = everything["bbox_test"][0, 0]
    for name in ("bboxhuman", "bboxobject"):
        for box in image["hoi"][0, 0][name][0]:
            for side in box.dtype.names:
                box[side] = np.uint16(box[side])
    image["hoi"][0, 0]["bboxhuman"][0, 0]["x1"] = np.uint8(0)
    savemat(path, everything)
    assert records(hoicli("convert", path))[0]["boxes"] == [[-1, 50, 398, 348], *TRUTH[0]["boxes"][1:]]


def converted(path: Path, *companions: Path) -> list[Record]:
    context = Context(load_vocabulary("hico"), ErrorPolicy())
    return list(read(Source(str(path), [Source(str(other)) for other in companions]), context))


def test_hico_mat_keeps_a_box_without_a_connection(tmp_path: Path) -> None:
    images = maker.images(TRUTH[:1])
    images[0, 0]["hoi"][0, 1]["connection"] = np.zeros((0, 0))
    savemat(tmp_path / "anno_bbox.mat", {"bbox_test": images})
    (record,) = converted(tmp_path / "anno_bbox.mat")
    assert record["boxes"] == TRUTH[0]["boxes"]
    assert [hoi["verb"] for hoi in record["hois"]] == ["sit_on"]


@pytest.mark.parametrize(("variables", "problem"), [
    ({"bbox_train": maker.images(TRUTH)}, "has no bbox_test, only bbox_train; --part train takes it"),
    ({"bbox_test": np.zeros((3, 3))},
     "bbox_test: has no field 'filename' (it is no struct); is this HICO-DET's file?"),
    ({"bbox_test": maker.structs(("filename", "size"), [("a", "b")])},
     "bbox_test: has no field 'hoi' (only 'filename', 'size'); is this HICO-DET's file?"),
])  # fmt: skip
def test_hico_mat_wrong_variables(hoicli: Hoicli, tmp_path: Path, variables: dict[str, Any], problem: str) -> None:
    path = tmp_path / "some.mat"
    savemat(path, variables)
    assert refusal(hoicli("convert", path)) == f"{path}: {problem}"


Images = Callable[[Any], object]


def _first(field: str, value: Any, hoi: int = 0) -> Images:
    """A change of one field of image 1."""

    def change(images: Any) -> None:
        images[0, 0]["hoi"][0, hoi][field] = value

    return change


@pytest.mark.parametrize(("change", "problem"), [
    (_first("connection", np.array([[1.0, 1.0], [1.0, 2.0]])),
     ".hoi(1).connection(2,:): id 2, but there are 1, counted from 1"),
    (_first("connection", np.ones((2, 3))), ".hoi(1).connection: is no n x 2 matrix; fetch the file again"),
    (_first("bboxobject", np.ones((1, 4)), hoi=1),
     ".hoi(2).bboxobject: has no field 'x1' (it is no struct); is this HICO-DET's file?"),
])  # fmt: skip
def test_hico_mat_wrong_images(hoicli: Hoicli, tmp_path: Path, change: Images, problem: str) -> None:
    images = maker.images(TRUTH)
    change(images)
    path = tmp_path / "anno_bbox.mat"
    savemat(path, {"bbox_test": images})
    assert refusal(hoicli("convert", path)) == f"{path}: bbox_test(1){problem}"
    assert len(records(hoicli("convert", path, "--on-error", "skip"))) == 7


def _anno(tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    content = {**maker.labels(TRUTH, "test"), "list_action": maker.actions()}
    change(content)
    path = tmp_path / "anno.mat"
    savemat(path, content)
    return path


def _swap_actions(content: dict[str, Any]) -> None:
    content["list_action"][[0, 1]] = content["list_action"][[1, 0]]


@pytest.mark.parametrize(("change", "problem"), [
    (_swap_actions, "list_action(1): is not interaction 1 of hico; give the anno.mat of HICO-DET"),
    (lambda content: content.update(anno_test=content["anno_test"][:, 1:]),
     "anno_test: is no matrix of 600 interactions by 8 names (list_test); fetch the file again"),
])  # fmt: skip
def test_wrong_labels(hoicli: Hoicli, tmp_path: Path, change: Callable[[dict[str, Any]], object], problem: str) -> None:
    path = _anno(tmp_path, change)
    assert refusal(hoicli("convert", BOXES, path)) == f"{path}: {problem}"


def test_hico_mat_names_both_files_where_names_differ(hoicli: Hoicli, tmp_path: Path) -> None:
    path = _anno(tmp_path, lambda content: content["list_test"].__setitem__((2, 0), "HICO_test2015_00000033.jpg"))
    assert refusal(hoicli("convert", BOXES, path)) == (
        f"{BOXES}: bbox_test(3).filename: 'HICO_test2015_00000003.jpg' is not in list_test of {path}; "
        "give two files of one release"
    )


def test_hico_mat_refuses_triplets_of_an_image_without_labels(hoicli: Hoicli, tmp_path: Path) -> None:
    path = _anno(tmp_path, lambda content: content["anno_test"].__setitem__((slice(None), 0), -1))
    assert refusal(hoicli("convert", BOXES, path)) == (
        f"{BOXES}: bbox_test(1): has triplets, but by its labels nothing happens in it; give files of one release"
    )


def test_matlab_7_3_is_refused_by_name(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "anno_bbox.mat"
    for head in (b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM", b"\x89HDF\r\n\x1a\n".ljust(128)):
        path.write_bytes(head + bytes(1000))
        assert re.match(f"{path}: is .*HDF5.*; save .* -v7", refusal(hoicli("convert", path)))


def plain(tmp_path: Path) -> tuple[Path, bytes]:
    """bbox_test without compression, so that its bytes can be changed."""
    path = tmp_path / "plain.mat"
    savemat(path, {"bbox_test": maker.images(TRUTH)}, do_compression=False)
    return path, path.read_bytes()


def test_a_declared_size_takes_no_room(tmp_path: Path) -> None:
    """2 to the power of 31 images in 17 KB. SciPy's reader would make room for all of them."""
    path, data = plain(tmp_path)
    dimensions = 128 + 8 + 16 + 8 + 4
    assert struct.unpack_from("<I", data, dimensions) == (8,)
    path.write_bytes(data[:dimensions] + struct.pack("<I", (1 << 31) - 1) + data[dimensions + 4 :])
    with pytest.raises(DataError, match="is damaged or cut off"):
        converted(path)
    path.write_bytes(data[:dimensions] + struct.pack("<I", 7) + data[dimensions + 4 :])
    with pytest.raises(DataError, match="only 7 items declared, but there are more at byte "):
        converted(path)
