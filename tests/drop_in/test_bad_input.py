"""Bad input to the drop-in evaluators is one line that names the place; odd valid input works as the released code."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hoicli
from hoicli.compat import cdn, gen_vlkt, inpcc, qahoi, qpic, vcoco
from hoicli.errors import DataError, HoicliError, UsageError
from tests.drop_in import worlds
from tests.drop_in.worlds import NON_RARE, RARE, Images

SEED = 1
OPTIONS = {"use_nms_filter": True, "thres_nms": 0.7, "nms_alpha": 1.0, "nms_beta": 0.5, "zero_shot_type": "default"}
VCOCO = Path(__file__).parents[2] / "fixtures/vcoco"


def evaluate(kind: str, preds: Any, gts: Any, **given: Any) -> dict[str, float]:
    """Call one of the five classes for queries. given: arguments and options in place of the right ones."""
    rare = given.pop("rare", RARE)
    subject = given.pop("subject", 0)
    matrix = given.pop("correct_mat", np.ones((29, 80)) if "vcoco" in kind else worlds.correct_mat())
    args = SimpleNamespace(**{name: value for name, value in (OPTIONS | given).items() if value is not ...})
    classes: dict[str, Callable[[], Any]] = {
        "qpic": lambda: qpic.HICOEvaluator(preds, gts, subject, rare, NON_RARE, matrix),
        "cdn": lambda: cdn.HICOEvaluator(preds, gts, rare, NON_RARE, matrix, args),
        "gen_vlkt": lambda: gen_vlkt.HICOEvaluator(preds, gts, rare, NON_RARE, matrix, args),
        "qpic_vcoco": lambda: qpic.VCOCOEvaluator(preds, gts, subject, matrix),
        "gen_vlkt_vcoco": lambda: gen_vlkt.VCOCOEvaluator(preds, gts, matrix),
    }
    values: dict[str, float] = classes[kind]().evaluate()
    return values


def world(kind: str) -> tuple[Images, Images]:
    make: dict[str, Callable[[int], Any]] = {
        "gen_vlkt": worlds.triplet_world, "qpic_vcoco": worlds.vcoco_world, "gen_vlkt_vcoco": worlds.vcoco_triplet_world
    }  # fmt: skip
    preds, gts = make.get(kind, worlds.hico_world)(SEED)[:2]
    return preds, gts


KINDS = ("qpic", "cdn", "gen_vlkt", "qpic_vcoco", "gen_vlkt_vcoco")
ARRAYS = ("labels", "boxes", "verb_scores", "hoi_scores", "obj_scores", "sub_ids", "obj_ids", "hois")
CHANGES: dict[str, Callable[[Any], Any]] = {
    "short": lambda array: array[:-1], "none": lambda _: None, "deep": lambda array: array[np.newaxis],
    "scalar": lambda _: 3, "text": lambda array: array.astype(str), "ragged": lambda _: [[1], [1, 2]],
    "nan": lambda array: np.full(array.shape, math.nan), "inf": lambda array: np.full(array.shape, math.inf),
    "narrow": lambda array: array[..., :-1], "object": lambda _: object(), "below": lambda array: array * 0 - 1,
    "above": lambda array: array * 0 + 10**6,
}  # fmt: skip
VALID = {"below", "above"}  # of scores and boxes: any finite numbers


def is_one_line(error: HoicliError, place: str = "") -> None:
    assert isinstance(error, DataError | UsageError)
    assert "\n" not in str(error)
    assert place in str(error)


def is_bad(name: str, change: str) -> bool:
    """Scores and boxes are any finite numbers, and an image may have fewer triplets."""
    is_number = name == "boxes" or name.endswith("scores")
    return not (is_number and change in VALID) and (name, change) != ("hois", "short")


CASES = [
    (kind, name, change)
    for kind in KINDS
    for name in ARRAYS
    if name == "hois" or name in world(kind)[0][0]
    for change in CHANGES
    if is_bad(name, change)
]


@pytest.mark.parametrize(("kind", "name", "change"), CASES)
def test_an_array_that_is_none_of_the_released_code_s(kind: str, name: str, change: str) -> None:
    preds, gts = world(kind)
    images, at = (gts, next(place for place, gt in enumerate(gts) if len(gt["hois"]))) if name == "hois" else (preds, 1)
    images[at][name] = CHANGES[change](images[at][name])
    with pytest.raises(HoicliError) as raised:
        evaluate(kind, preds, gts)
    is_one_line(raised.value, "" if name == "boxes" else name)  # fewer boxes: other arrays name none of them
    images[at].pop(name)
    with pytest.raises(DataError, match=rf"{'gts' if name == 'hois' else 'preds'}\[{at}\]: no '{name}' in it"):
        evaluate(kind, preds, gts)


@pytest.mark.parametrize("column", range(3))
@pytest.mark.parametrize("number", [-1, 999, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_a_triplet_of_what_is_not_there(kind: str, number: float, column: int) -> None:
    preds, gts = world(kind)
    at = next(place for place, gt in enumerate(gts) if len(gt["hois"]))
    hois = gts[at]["hois"].astype(type(number))
    hois[0, column] = number
    gts[at]["hois"] = hois
    if "vcoco" in kind and (number, column) == (-1, 1):
        assert evaluate(kind, preds, gts)  # an action without an object
        return
    with pytest.raises(DataError, match=rf"^gts\[{at}\]\['hois'\](\[0\])?: "):
        evaluate(kind, preds, gts)


@pytest.mark.parametrize(("kind", "given", "text"), [
    ("qpic", {"subject": 1}, "subject_category_id=1"),
    ("qpic", {"subject": np.array([0, 1])}, "subject_category_id="),
    ("qpic", {"correct_mat": np.ones((80, 117))}, "correct_mat: has shape (80, 117)"),
    ("qpic", {"correct_mat": None}, "correct_mat: "),
    ("qpic", {"correct_mat": np.full((117, 80), math.nan)}, "correct_mat: "),
    ("qpic_vcoco", {"correct_mat": np.ones(5)}, "correct_mat: has shape (5,)"),
    ("qpic", {"rare": None}, "rare_triplets: "),
    ("qpic", {"rare": [1, 2]}, "rare_triplets: "),
    ("qpic", {"rare": [[[0], 1, 2]]}, "rare_triplets: "),
    ("cdn", {"thres_nms": None}, "args: thres_nms"),
    ("cdn", {"thres_nms": -1}, "args: thres_nms"),
    ("cdn", {"nms_alpha": ...}, "args: no nms_alpha in it"),
    ("gen_vlkt", {"zero_shot_type": ...}, "args: no zero_shot_type in it"),
    ("cdn", {"json_file": "no/such/folder.json"}, "json_file no/such/folder.json: there is no folder no/such"),
    ("cdn", {"json_file": "."}, "json_file .: is a directory"),
    ("gen_vlkt", {"json_file": 3}, "json_file=3"),
])  # fmt: skip
def test_a_bad_argument(kind: str, given: dict[str, Any], text: str) -> None:
    with pytest.raises(HoicliError) as raised:
        evaluate(kind, *world(kind), **given)
    is_one_line(raised.value, text)


@pytest.mark.parametrize("kind", KINDS)
def test_lists_that_are_none(kind: str) -> None:
    preds, gts = world(kind)
    for bad in ((None, gts), (preds, None), (dict(enumerate(preds)), gts), (preds[1:], gts), ([], []),
                ([None, *preds[1:]], gts), (preds, [[], *gts[1:]])):  # fmt: skip
        with pytest.raises(HoicliError) as raised:
            evaluate(kind, *bad)
        is_one_line(raised.value)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_an_image_or_in_all(kind: str) -> None:
    for is_list in (False, True):
        preds, gts = world(kind)
        for image in (preds[1], *gts[:2]):
            for name in set(ARRAYS) & image.keys():
                image[name] = [] if is_list else image[name][:0]
        assert evaluate(kind, preds, gts)
    for images in (0, 1):
        both = world(kind)
        for image in both[images]:
            image |= {name: image[name][:0] for name in set(ARRAYS) & image.keys()}
        assert evaluate(kind, *both)


def inpcc_flow(dataset: str, folder: Path, annotations: Any, predictions: Any, **given: Any) -> Any:
    path = folder / "annotations.json"
    path.write_bytes(annotations if isinstance(annotations, bytes) else json.dumps(annotations).encode())
    output = str(given.get("output_dir", folder))
    evaluator = (
        inpcc.HICOEvaluator(str(path), output, given.get("zero_shot_type", "default"), False)
        if dataset == "hico"
        else inpcc.SWiGEvaluator(str(path), output)
    )
    evaluator.update(predictions)
    evaluator.save_preds()
    evaluator.accumulate()
    evaluator.summarize()
    return evaluator


@pytest.mark.parametrize("dataset", ["hico", "swig"])
@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"\xff", b"null", b"[]", b"{}", b"[1]", b"[null]", b"[{}]", b"[[]]", b"\x1f\x8b"]
)
def test_annotations_that_are_none(dataset: str, data: bytes, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"annotations\.json: ?"):
        inpcc_flow(dataset, tmp_path, data, {})


@pytest.mark.parametrize("dataset", ["hico", "swig"])
def test_bad_annotations_and_predictions(dataset: str, tmp_path: Path) -> None:
    other = "swig" if dataset == "hico" else "hico"
    with pytest.raises(DataError, match="no image has"):
        inpcc_flow(dataset, tmp_path, worlds.annotated_world(SEED, other)[0], {})
    boxes, hois, number = {
        "hico": ("annotations", "hoi_annotation", "category_id"),
        "swig": ("box_annotations", "hoi_annotations", "action_id"),
    }[dataset]
    for part, key in ((hois, "subject_id"), (hois, "object_id"), (hois, number), (boxes, "bbox")):
        wrong: Any
        for wrong in (None, -1, 9999, 1.5, "x", []):
            annotations, predictions = worlds.annotated_world(SEED, dataset)
            next(image for image in annotations if image[hois])[part][0][key] = wrong
            with pytest.raises(DataError, match=r"annotations\.json: \["):
                inpcc_flow(dataset, tmp_path, annotations, predictions)
    bad_values: dict[int, tuple[Any, ...]] = {
        0: (-1, 20_000, 1.5, math.nan, None, "x", []), 5: (None, "x", math.nan)
    }  # fmt: skip
    for column, values in bad_values.items():
        for value in values:
            annotations, predictions = worlds.annotated_world(SEED, dataset)
            next(filter(None, predictions.values()))[0][column] = value
            with pytest.raises(DataError, match="update"):
                inpcc_flow(dataset, tmp_path, annotations, predictions)
    annotations, predictions = worlds.annotated_world(SEED, dataset)
    bad: Any
    for bad in (None, [[1]], {0: 3}, {0: [3]}, {0: [[1, 2]]}, {"unknown": []}):
        with pytest.raises(HoicliError, match=r"^update"):
            inpcc_flow(dataset, tmp_path, annotations, bad)
    with pytest.raises(UsageError, match=r"output_dir .*there is no folder"):
        inpcc_flow(dataset, tmp_path, annotations, predictions, output_dir=tmp_path / "no" / "such")
    with pytest.raises(DataError, match="img_id"):
        inpcc_flow(dataset, tmp_path, [annotations[0], annotations[0]], predictions)
    assert inpcc_flow(dataset, tmp_path, annotations, {image["img_id"]: [] for image in annotations}).rows
    if dataset == "hico":
        with pytest.raises(UsageError, match="zero_shot_type='nothing'"):
            inpcc_flow(dataset, tmp_path, annotations, predictions, zero_shot_type="nothing")


def test_an_annotated_pair_of_what_is_not_there_is_named(tmp_path: Path) -> None:
    annotations, predictions = worlds.annotated_world(SEED, "hico")
    place = next(place for place, image in enumerate(annotations) if image["hoi_annotation"])
    annotations[place]["hoi_annotation"][0]["object_id"] = 999
    with pytest.raises(DataError) as raised:
        inpcc_flow("hico", tmp_path, annotations, predictions)
    message = "its numbers are not of a verb, two boxes and an interaction of hico; correct them"
    assert str(raised.value) == f"{tmp_path / 'annotations.json'}: [{place}]: hoi_annotation[0]: {message}"


def test_rlip_has_options_and_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    preds, gts = world("qpic")
    args = SimpleNamespace(**OPTIONS | {"use_nms_filter": False})
    for options, text in ((None, "mAP rare: "), (args, "mAP rare (unseen): ")):
        qpic.HICOEvaluator(preds, gts, 0, RARE, NON_RARE, worlds.correct_mat(), options).evaluate()
        assert text in capsys.readouterr().out


def test_files_of_vcoco(tmp_path: Path) -> None:
    files = [str(VCOCO / name) for name in ("vcoco_test.json", "instances.json", "test.ids")]
    swapped = [files[1], files[0], files[2]], [files[2], files[1], files[0]], [files[0]] * 3, [files[1]] * 3
    missing = [[*files[:place], str(tmp_path / "none"), *files[place + 1 :]] for place in range(3)]
    for bad in (*swapped, *missing):
        with pytest.raises(HoicliError) as raised:
            vcoco.VCOCOeval(*bad)
        is_one_line(raised.value)
    evaluator = vcoco.VCOCOeval(*files)
    detections = tmp_path / "detections.pkl"
    content: Any
    for content in (None, 3, {}, [], [1], [{}], [{"image_id": 999, "person_box": [0, 0, 9, 9], "hold_agent": 0.5}]):
        detections.write_bytes(pickle.dumps(content))
        with pytest.raises(HoicliError) as raised:
            evaluator._do_eval(str(detections))
        is_one_line(raised.value)
    with pytest.raises(DataError, match="none"):
        evaluator._do_eval(str(tmp_path / "none"))
    detections.write_bytes(pickle.dumps([{"image_id": 11, "person_box": [20, 20, 79, 139], "hold_agent": 0.5}]))
    with pytest.raises(UsageError, match="ovr_thresh=-1: give an overlap above 0"):
        evaluator._do_eval(str(detections), -1)
    evaluator._do_eval(str(detections))  # some actions have no ground truth in the sample
    assert evaluator.rows


def test_networks_without_images_or_with_scores_that_are_none() -> None:
    assert hoicli.triplets([], []) == []
    image = {"boxes": [[0, 0, 9, 9]] * 2, "pairing": [[0], [1]], "scores": [math.nan], "labels": [4], "objects": [4]}
    with pytest.raises(DataError, match=r"outputs\[0\]\.scores\[0\]"):
        hoicli.triplets([image | {"size": [9, 9]}], [[9, 9]])


def test_what_qahoi_s_class_wants_of_its_images_and_folder(tmp_path: Path) -> None:
    preds, gts = worlds.hico_world(SEED, queries=40)
    worlds.write_ggnet_folder(gts, tmp_path)
    files = [{"file_name": f"HICO_test2015_{gt['id']:08}.jpg"} for gt in gts]

    def message(gts: Any = files) -> str:
        with pytest.raises(HoicliError) as caught:
            qahoi.HICOEvaluator(preds, gts, tmp_path, tmp_path, 0)
        return str(caught.value)

    assert "give the same images in one order" in message(files[1:])
    assert "gts[0]: has no file_name" in message([{}, *files[1:]])
    matrix = tmp_path / "annotations/corre_hico.npy"
    np.save(matrix, np.ones((117, 81)))
    assert "has shape (117, 81)" in message()
    matrix.write_bytes(b"no array")
    assert "give the released annotations" in message()
    matrix.unlink()
    assert "No such file" in message()
