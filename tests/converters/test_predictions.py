"""Prediction dumps of CDN, GEN-VLKT, PPDM, Diag-HOI and UPT: what they say, what they cannot, and what is wrong."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import loadmat

from hoicli.converters import hoi_lists
from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.formats import FORMATS, detect
from hoicli.converters.numbers import NOTHING, whole_number
from hoicli.errors import DataError
from hoicli.records.intake import ErrorPolicy
from hoicli.records.names import path_of
from hoicli.vocabulary.datasets import load
from tests.foreign.arrays import last_pixels, matlab_file
from tests.support.project import EIGHT, FOREIGN, GT, Hoicli, complaint, dumped, records, refusal, saved, triplets_of

VOCABULARY = load("hico")
Records = list[dict[str, Any]]


PREDICTIONS = records(EIGHT / "predictions.jsonl")
OF_LAST_PIXELS = [
    {**one, "boxes": list(map(last_pixels, one["boxes"])), "caveats": ["last_pixels"]} for one in PREDICTIONS
]
"""The same as UPT would write them to its .mat files."""
IMAGES = [record["image_id"] for record in records(GT)]


def context_of(images: list[str] | None = None, *, skip: bool = False) -> tuple[Context, list[str]]:
    """A context and the list its announcements go to."""
    context = Context(VOCABULARY, ErrorPolicy(skip=skip), images=images)
    return context, context.notes


def convert(path: Path, name: str, context: Context | None = None) -> Records:
    context = context or context_of()[0]
    context.format = name
    return list(FORMATS[name].read(Source(str(path)), context))


def by_image(records: Records, images: list[str] | None = None) -> dict[str, list[tuple[Any, ...]]]:
    found = {record["image_id"]: sorted(triplets_of(record)) for record in records}
    return found if images is None else {image_id: found.get(image_id, []) for image_id in images}


@pytest.mark.parametrize(("file", "name"), [
    ("results.json", "cdn"),
    ("cdn.json", "cdn"),
    ("results_gen_vlkt.json", "gen-vlkt"),
    ("predictions_ppdm.json", "ppdm"),
])  # fmt: skip
def test_fixture_has_the_same_records(file: str, name: str) -> None:
    """Boxes, their order, and file names too; GEN-VLKT's own order of boxes is by use, as the fixture's is."""
    assert detect(Source(str(FOREIGN / file))) == name
    assert convert(FOREIGN / file, name) == PREDICTIONS


def test_fixtures_that_hold_less_have_the_same_triplets() -> None:
    """Diag-HOI leaves no_interaction out; .mat files know images without predictions too."""
    found = by_image(convert(FOREIGN / "preds_wo_nointer.pkl", detect(Source(str(FOREIGN / "preds_wo_nointer.pkl")))))
    every = by_image(PREDICTIONS)
    assert found == {key: [row for row in rows if row[1] != "no_interaction"] for key, rows in every.items()}
    assert detect(Source(str(FOREIGN / "detections_mat"))) == "mat"
    found = by_image(convert(FOREIGN / "detections_mat", "mat", context_of(IMAGES)[0]))
    assert (found, list(found)) == (by_image(OF_LAST_PIXELS, IMAGES), IMAGES)


NOT_WHOLE = "is no whole number; ids and indices are"
BOX = [1.0, 2.0, 30.5, 40.25]
OTHER = [5.0, 6.0, 70.0, 80.0]


def cdn_item(**changes: Any) -> dict[str, Any]:
    item = {
        "filename": "test2015/HICO_test2015_00000009.jpg",
        "predictions": [{"bbox": BOX, "category_id": 0}, {"bbox": OTHER, "category_id": 1}],
        "hoi_prediction": [{"subject_id": 0, "object_id": 1, "category_id": 76, "score": 0.5}],
    }
    return {**item, **changes}


def hoi_of(**changes: Any) -> list[dict[str, Any]]:
    return [{"subject_id": 0, "object_id": 1, "category_id": 76, "score": 0.5, **changes}]


def test_cdn_example(tmp_path: Path) -> None:
    hois = [*hoi_of(action_score=0.75), *hoi_of(), *hoi_of()]
    path = dumped(tmp_path / "cdn.json", [cdn_item(hoi_prediction=hois)])
    [record] = convert(path, "cdn")
    ride = {"subject": 0, "object": 1, "verb": VOCABULARY.verbs[76], "score": 0.5}
    assert record == {
        "image_id": "HICO_test2015_00000009",
        "file_name": "test2015/HICO_test2015_00000009.jpg",
        "boxes": [BOX, OTHER],
        "labels": ["person", "bicycle"],
        "hois": [{**ride, "verb_score": 0.75}, ride, ride],  # exact duplicates are part of a dump
    }


@pytest.mark.parametrize(("item", "message"), [
    (cdn_item(hoi_prediction=hoi_of(category_id=117)),
     ".hoi_prediction[0].category_id: id 117, but there are 117, counted from 0"),
    (cdn_item(hoi_prediction=[{"subject_id": 0}]), f".hoi_prediction[0].object_id: {NOTHING} {NOT_WHOLE}"),
    (cdn_item(hoi_prediction=hoi_of(object_id=99)),
     f".hoi_prediction[0].object_id: id 99, but there are 2 in {cdn_item()['filename']}, counted from 0"),
    (cdn_item(hoi_prediction=hoi_of(score=None)),
     f".hoi_prediction[0].score: {NOTHING} is no score; every interaction of {cdn_item()['filename']} needs one"),
    (cdn_item(hoi_prediction=hoi_of(subject_id=0.9)), f".hoi_prediction[0].subject_id: 0.9 {NOT_WHOLE}"),
    (cdn_item(predictions=[{"bbox": BOX[:3], "category_id": 0}]),
     f".predictions[0].bbox: {BOX[:3]} is no box; give [x1, y1, x2, y2]"),
])  # fmt: skip
def test_cdn_errors(item: Any, message: str, tmp_path: Path) -> None:
    path = dumped(tmp_path / "cdn.json", [cdn_item(), item, cdn_item()])
    assert complaint(DataError, convert, path, "cdn") == f"{path}: [1]{message}"
    context, _ = context_of(skip=True)
    assert len(convert(path, "cdn", context)) == 2
    assert context.policy.skipped == 1


@pytest.mark.parametrize(
    "number", [0.9, "1_0", "0.9", "", "1e2", "①", True, np.True_, None, math.nan, math.inf, [1], np.array([1, 2]), {}]
)
def test_what_is_no_whole_number(number: Any) -> None:
    with pytest.raises(DataError, match="is no whole number") as error:
        whole_number(number, ".id")
    assert error.value.field == ".id"


@pytest.mark.parametrize("name", ["", "   "])
def test_an_image_without_a_name(name: str, tmp_path: Path, hoicli: Hoicli) -> None:
    path = dumped(tmp_path / "dump.json", [cdn_item(filename=name)])
    assert ": image_id: empty; give the image's file name" in refusal(hoicli("convert", path))


def test_a_name_loses_picture_endings_only(tmp_path: Path, hoicli: Hoicli) -> None:
    names = ["clip_1.5s", "clip_1.6s", "v2.0", "v2.1", "2024.01.05", "a.b.c", "noext"]
    endings = ["", ".jpg", ".JPEG", ".png", ".webp", ".tif", ".gif"]
    for folder in ("", "test/"):
        files = [folder + name + ending for name, ending in zip(names, endings, strict=True)]
        result = hoicli("convert", dumped(tmp_path / "dump.json", [cdn_item(filename=file) for file in files]))
        assert [orjson.loads(line)["image_id"] for line in result.out.splitlines()] == names
    assert path_of("b.0/v2.0") == "b.0/v2.0"
    assert path_of("b/v2.0.JPG") == "b/v2.0"


NUMBERS = st.floats(-1e6, 1e6) | st.integers(-10, 10**6)


@st.composite
def predictions(draw: st.DrawFn) -> Records:
    """Records as any detector might give them."""
    records = []
    for image_id in draw(st.lists(st.sampled_from(IMAGES), unique=True)):
        count = draw(st.integers(0, 4))
        boxes = draw(st.lists(st.lists(NUMBERS, min_size=4, max_size=4), min_size=count, max_size=count))
        labels = draw(st.lists(st.sampled_from(VOCABULARY.objects[:5]), min_size=count, max_size=count))
        of_hoi: dict[str, st.SearchStrategy[Any]] = {name: st.integers(0, count - 1) for name in ("subject", "object")}
        of_hoi |= {"verb": st.sampled_from(VOCABULARY.verbs), "score": st.floats(allow_nan=False, allow_infinity=False)}
        hoi = st.fixed_dictionaries(of_hoi, optional={"verb_score": st.floats(0, 1)})
        hois = draw(st.lists(hoi, max_size=4)) if count else []
        records.append({"image_id": image_id, "boxes": boxes, "labels": labels, "hois": hois})
    return records


@settings(max_examples=20)
@given(predictions())
def test_cdn_json_survives_a_round_trip(tmp_path_factory: pytest.TempPathFactory, records: Records) -> None:
    path = tmp_path_factory.mktemp("round") / "cdn.json"
    context = context_of()[0]
    context.target = "cdn-json"
    hoi_lists.write(records, str(path), context)
    assert convert(path, "cdn") == [{**record, "file_name": f"{record['image_id']}.jpg"} for record in records]


def test_cdn_json_of_ground_truth_is_refused(tmp_path: Path) -> None:
    context = context_of()[0]
    context.target = "cdn-json"
    with pytest.raises(DataError) as error:
        hoi_lists.write(records(GT), str(tmp_path / "cdn.json"), context)
    problem = "hois[0].score: missing; --to cdn-json writes predictions (is this the ground truth?)"
    assert str(error.value) == f"image HICO_test2015_00000001: {problem}"
    assert list(tmp_path.iterdir()) == []


def vlkt_item(hois: list[dict[str, Any]], boxes: int = 2) -> dict[str, Any]:
    return {
        "filename": "HICO_test2015_00000009.jpg",
        "predictions": [{"bbox": [*box]} for box in [BOX, OTHER, [0.0, 0.0, 1.0, 1.0]][:boxes]],
        "hoi_prediction": hois,
    }


def test_gen_vlkt_takes_labels_from_interactions(tmp_path: Path) -> None:
    """A box that is a bicycle for one interaction and an airplane for another becomes two boxes; unused ones go."""
    ride_bicycle = VOCABULARY.interaction_ids["ride", "bicycle"]
    ride_airplane = VOCABULARY.interaction_ids["ride", "airplane"]
    hug_person = VOCABULARY.interaction_ids["hug", "person"]
    ids = [ride_bicycle, ride_airplane, hug_person, ride_bicycle]
    path = dumped(tmp_path / "results.json", [vlkt_item([*(hoi_of(category_id=i)[0] for i in ids)], boxes=3)])
    context, said = context_of()
    [record] = convert(path, "gen-vlkt", context)
    assert record["boxes"] == [BOX, OTHER, OTHER, OTHER]
    assert record["labels"] == ["person", "bicycle", "airplane", "person"]
    assert [(hoi["verb"], hoi["subject"], hoi["object"]) for hoi in record["hois"]] == [
        ("ride", 0, 1),
        ("ride", 0, 2),
        ("hug", 0, 3),
        ("ride", 0, 1),
    ]
    assert context.dropped == {"boxes without a class (no interaction uses them)": (1, f"{path}: [0].predictions[2]")}
    assert said == []


def test_gen_vlkt_doubts_small_ids(tmp_path: Path) -> None:
    path = dumped(tmp_path / "results.json", [vlkt_item(hoi_of(category_id=116))])
    context, said = context_of()
    convert(path, "gen-vlkt", context)
    read = "category_id read as interactions, but none exceeds 116"
    assert said == [f"{path}: {read}: if these are verbs, the boxes have lost their category_id"]


def test_categories_tell_cdn_from_gen_vlkt(tmp_path: Path) -> None:
    for item, name in ((cdn_item(), "cdn"), (vlkt_item([]), "gen-vlkt"), (vlkt_item([], boxes=0), "cdn")):
        text = dumped(tmp_path / "results.json", str({"preds": [item], "gts": []}))
        assert detect(Source(str(text))) == name


def ppdm_item(boxes: str = "predictions", hois: str = "hoi_prediction", **changes: Any) -> dict[str, Any]:
    return {
        boxes: [{"bbox": BOX, "category_id": 1}, {"bbox": OTHER, "category_id": "90\n"}],
        hois: [{"subject_id": 0, "object_id": 1, "category_id": "117\n", "score": 0.5, **changes}],
        "file_name": "HICO_test2015_00000009.jpg",
    }


@pytest.mark.parametrize("boxes", ["predictions", "prediction", "annotations", "annotation"])
@pytest.mark.parametrize("hois", ["hoi_prediction", "hoi_predictions", "hoi_annotation"])
def test_ppdm_reads_every_spelling(boxes: str, hois: str, tmp_path: Path) -> None:
    path = dumped(tmp_path / "predictions.json", [ppdm_item(boxes, hois)])
    assert detect(Source(str(path))) == "ppdm"
    [record] = convert(path, "ppdm")
    assert record == {
        "image_id": "HICO_test2015_00000009",
        "file_name": "HICO_test2015_00000009.jpg",
        "boxes": [BOX, OTHER],
        "labels": ["person", "toothbrush"],
        "hois": [{"subject": 0, "object": 1, "verb": VOCABULARY.verbs[116], "score": 0.5}],
    }


def test_ppdm_leaves_ground_truth_alone(tmp_path: Path) -> None:
    """The same layout without scores is an annotation file."""
    item = ppdm_item("annotations", "hoi_annotation")
    del item["hoi_annotation"][0]["score"]
    assert detect(Source(str(dumped(tmp_path / "test_hico.json", [item])))) == "hoia"


def test_ppdm_counts_interactions_without_boxes(tmp_path: Path) -> None:
    items = [ppdm_item(object_id=-1), ppdm_item(subject_id=2), ppdm_item()]
    path = dumped(tmp_path / "predictions.json", items)
    context, _ = context_of()
    assert [len(record["hois"]) for record in convert(path, "ppdm", context)] == [0, 0, 1]
    assert context.dropped == {
        "interactions without a subject or an object (index -1)": (1, f"{path}: [0].hoi_prediction[0]"),
        "interactions that point beyond the boxes of their image": (1, f"{path}: [1].hoi_prediction[0]"),
    }


@pytest.mark.parametrize(("item", "message"), [
    (ppdm_item(category_id=0), "[0].hoi_prediction[0].category_id: id 0, but there are 117, counted from 1"),
    ({**ppdm_item(), "file_name": "COCO_val2014_000000000042.jpg"},
     "[0].file_name: 'COCO_val2014_000000000042.jpg' is a V-COCO image, whose verbs are numbered differently: "
     "use --from qpic-vcoco-list or ppdm-vcoco-list"),
])  # fmt: skip
def test_ppdm_errors(item: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = dumped(tmp_path / "predictions.json", [item])
    assert complaint(DataError, convert, path, "ppdm") == f"{path}: {message}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return shutil.copytree(FOREIGN / "detections_mat", tmp_path / "mat")


def cells_of(path: Path) -> Any:
    return loadmat(path)["all_boxes"]


def write_cells(path: Path, cells: Any) -> None:
    path.write_bytes(matlab_file(cells))


def error_of(folder: Path, images: list[str] | None = IMAGES) -> str:
    with pytest.raises(DataError) as error:
        convert(folder, "mat", context_of(images)[0])
    return str(error.value)


def test_mat_order_and_merged_boxes(folder: Path) -> None:
    """Triplets in HOI order, then in the order of their cell; equal boxes of one label once."""
    cells = cells_of(folder / "detections_02.mat")
    ride = VOCABULARY.interactions_of("bicycle").index(VOCABULARY.interaction_ids["ride", "bicycle"])
    hold = VOCABULARY.interactions_of("bicycle").index(VOCABULARY.interaction_ids["hold", "bicycle"])
    cells[ride, 3] = np.array([[*BOX, *OTHER, 0.25], [*BOX, *OTHER, 0.5], [*BOX, *OTHER, 0.5]], dtype=np.float32)
    cells[hold, 3] = np.array([[*OTHER, *OTHER, 0.125]])
    write_cells(folder / "detections_02.mat", cells)
    record = convert(folder, "mat", context_of(IMAGES)[0])[3]
    theirs = [last_pixels(box) for box in ([20.5, 30.2, 120.9, 300.4], [300.1, 40.0, 380.7, 99.5])]
    assert record["boxes"] == [OTHER, OTHER, BOX, *theirs]
    assert record["labels"] == ["person", "bicycle", "person", "person", "kite"]
    assert [(hoi["verb"], hoi["subject"], hoi["object"], hoi["score"]) for hoi in record["hois"]] == [
        ("hold", 0, 1, 0.125),
        ("ride", 2, 1, 0.25),
        ("ride", 2, 1, 0.5),
        ("ride", 2, 1, 0.5),
        ("fly", 3, 4, 0.361),
        ("hold", 3, 4, 0.277),
    ]


def test_mat_announces_the_join(folder: Path) -> None:
    context, said = context_of(IMAGES)
    convert(folder, "mat", context)
    assert said == [
        f"{folder}: columns joined with the 8 images of --image-list by position",
        f"{folder}: x2, y2 are taken for last pixels, as UPT writes them (caveat last_pixels)",
    ]


def test_mat_without_images_takes_the_test_list(folder: Path) -> None:
    """As for the 9,658 columns of a full set; here the test list is that of the fixture."""
    context, said = context_of()
    context.vocabulary = replace(VOCABULARY, test_images=tuple(IMAGES))
    assert by_image(convert(folder, "mat", context)) == by_image(OF_LAST_PIXELS, IMAGES)
    joined = "columns joined with the 8 images of the HICO-DET test list by position"
    assert said[0] == f"{folder}: {joined} (--image-list for others)"


def test_mat_counts_must_agree(folder: Path) -> None:
    fix = "give --image-list: ground truth in the order of the columns, or a list of names"
    assert error_of(folder, None) == f"{folder}: 8 columns, but the HICO-DET test list has 9,658; {fix}"
    assert error_of(folder, IMAGES[:7]) == f"{folder}: 8 columns, but --image-list has 7; {fix}"


def test_mat_missing_files(folder: Path) -> None:
    (folder / "detections_14.mat").unlink()
    problem = "of the 80 files; without all of them classes would silently score 0"
    assert error_of(folder) == f"{folder}/detections_14.mat: is missing {problem}"
    (folder / "detections_80.mat").unlink()
    assert error_of(folder) == f"{folder}/detections_14.mat: is missing with 1 others {problem}"


def test_mat_wrong_rows(folder: Path) -> None:
    path = folder / "detections_02.mat"
    write_cells(path, cells_of(path)[:13])
    assert error_of(folder) == (
        f"{path}: all_boxes: has 13 rows, but bicycle (object 2) has 14 interactions; "
        "files are numbered in COCO order (01 is person), and rows are its interactions"
    )


def test_mat_flat_rows(folder: Path) -> None:
    """In a folder of cells by image."""
    path = folder / "detections_01.mat"
    write_cells(path, np.zeros((0, 0)))
    assert error_of(folder).startswith(f"{path}: all_boxes: is no matrix of cells by image; rows of five cells")


BAD_CELLS = [
    (np.zeros((2, 8)), "2 x 8; a cell is K x 9 numbers (human box, object box, score)"),
    (np.array(["text"]), "no numbers; a cell is K x 9 numbers (human box, object box, score)"),
    (np.array([[1.0] * 8 + [np.nan]]), "nan in a row; numbers must be finite: fix what wrote it"),
    (np.array([[-np.inf] + [1.0] * 8]), "-inf in a row; numbers must be finite: fix what wrote it"),
]


@pytest.mark.parametrize(("cell", "problem"), BAD_CELLS)
def test_mat_bad_cells(cell: Any, problem: str, folder: Path) -> None:
    path = folder / "detections_02.mat"
    cells = cells_of(path)
    cells[2, 5] = cell
    write_cells(path, cells)
    place = f"{path}: all_boxes{{3,6}} (HICO_test2015_00000006)"
    assert error_of(folder) == f"{place}: {problem}"
    context, _ = context_of(IMAGES, skip=True)
    assert by_image(convert(folder, "mat", context)) == by_image(OF_LAST_PIXELS, IMAGES)
    assert context.policy.skipped == 1


def test_mat_without_detections_is_announced(folder: Path) -> None:
    for path in folder.iterdir():
        cells = cells_of(path)
        cells.fill(np.zeros((0, 0)))
        write_cells(path, cells)
    context, said = context_of(IMAGES)
    assert [record["hois"] for record in convert(folder, "mat", context)] == [[]] * 8
    assert said[-1] == f"{folder}: every cell is empty, there is no detection at all; did what wrote it fail?"


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """results.json with its fifth image cut off."""
    data = (FOREIGN / "results.json").read_bytes()
    return saved(tmp_path / "cut.json", data[: data.index(b"_00000005") + 40])


def test_command_keeps_what_came_before_a_cut(hoicli: Hoicli, cut: Path) -> None:
    result = hoicli("convert", "--from", "cdn", cut, "--on-error", "skip")
    assert result.code == 0
    ids = [record["image_id"] for record in PREDICTIONS[:4]]
    assert [orjson.loads(line)["image_id"] for line in result.out.splitlines()] == ids
    assert "4 images, 17 boxes, 22 triplets" in result.err
    error = f"{cut}: [4]: not readable (the list breaks off), and nothing after it was read; write the file again"
    assert f"hoicli: skipped 1 item; the first: {error}\n" in result.err
