"""INP-CC's and Diag-HOI's files, pickled or JSON: the same triplets back, and one clear line for what is wrong."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from hoicli.converters.containers.source import Source
from hoicli.converters.context import Context
from hoicli.converters.formats import FORMATS, detect
from hoicli.errors import DataError
from hoicli.records.image import problems
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record
from hoicli.vocabulary.datasets import load
from tests.support.project import EIGHT, FOREIGN, Hoicli, dumped, saved, triplets_of

PREDICTIONS: list[Record] = [orjson.loads(line) for line in (EIGHT / "predictions.jsonl").read_bytes().splitlines()]
ROW = [245, 0.5, 1, 2, 30, 40, 5.5, 6.5, 70.25, 80]
PAIR = {"h_box": [1, 2, 30, 40], "o_box": [5.5, 6.5, 70.25, 80], "o_label": 13, "hoi_score_inter": 0.5}


def read(path: Path, name: str, *, images: list[str] | None = None, skip: bool = False) -> list[Record]:
    context = Context(load("hico"), ErrorPolicy(skip=skip), format=name, images=images)
    source = Source(str(path))
    assert name == detect(source)
    records = list(FORMATS[name].read(source, context))
    for record in records:
        assert list(problems(record, context.vocabulary, scored=True)) == []
    return records


def refusal(path: Path, name: str, *, images: list[str] | None = None) -> str:
    """The message of the `DataError`, without the file in front of it."""
    context = Context(load("hico"), ErrorPolicy(), format=name, images=images)
    with pytest.raises(DataError) as caught:
        list(FORMATS[name].read(Source(str(path)), context))
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert message.isprintable()
    return message.removeprefix(f"{path}: ")


def pickled(folder: Path, content: Any) -> Path:
    return saved(folder / "dump.pkl", pickle.dumps(content))


def as_json(folder: Path, content: Any) -> Path:
    return dumped(folder / "dump.json", content)


Save = Callable[[Path, Any], Path]
both = pytest.mark.parametrize("save", [pickled, as_json])


def triplets(records: list[Record]) -> dict[str, list[tuple[Any, ...]]]:
    return {record["image_id"]: triplets_of(record) for record in records}


def preds() -> dict[str, dict[int, list[Any]]]:
    """A small preds.pkl: two rows of one interaction, one of another."""
    boxes = [float(x) for x in ROW[2:]]
    return {
        "scores": {17: [0.5, 0.25], 3: [0.125]},
        "boxes": {17: [list(boxes), list(boxes)], 3: [list(boxes)]},
        "keys": {17: [2, 1], 3: [1]},
    }


def test_fixture_gives_the_same_triplets() -> None:
    found = triplets(read(FOREIGN / "preds.pkl", "inpcc"))
    expected = triplets(PREDICTIONS)
    assert list(found) == list(expected)
    for image_id, rows in expected.items():
        assert sorted(found[image_id]) == sorted(rows)


def test_rows_keep_their_order_and_boxes_are_merged() -> None:
    records = read(FOREIGN / "inpcc.json", "inpcc")
    assert triplets(records) == triplets(PREDICTIONS)
    for record, original in zip(records, PREDICTIONS, strict=True):
        assert len(record["boxes"]) <= len(original["boxes"])


def test_interactions_ascend_within_an_image(tmp_path: Path) -> None:
    first, second = read(pickled(tmp_path, preds()), "inpcc")
    interactions = load("hico").interactions
    assert [hoi["verb"] for hoi in first["hois"]] == [interactions[3][0], interactions[17][0]]
    assert [hoi["score"] for hoi in second["hois"]] == [0.5]
    assert second["boxes"] == [[1, 2, 30, 40], [5.5, 6.5, 70.25, 80]]


def test_equal_boxes_of_a_person_are_one_whatever_their_role(tmp_path: Path) -> None:
    person = load("hico").interaction_ids["hug", "person"]
    one, two = [1, 2, 30, 40], [5, 6, 70, 80]
    (record,) = read(as_json(tmp_path, {1: [[person, 0.5, *one, *two], [person, 0.25, *two, *one]]}), "inpcc")
    assert (record["boxes"], record["labels"]) == ([one, two], ["person", "person"])
    assert [(hoi["subject"], hoi["object"]) for hoi in record["hois"]] == [(0, 1), (1, 0)]


def test_ground_truth_beside_the_predictions_is_not_read(tmp_path: Path) -> None:
    path = pickled(tmp_path, {**preds(), "gts": {17: {1: [[1, 2]]}}})
    assert len(read(path, "inpcc")) == 2


@pytest.mark.parametrize("content", [
    {1: np.array([ROW, ROW])},
    {1: [np.array(ROW), tuple(ROW)]},
    {np.int64(1): [[np.int64(245), np.float64(0.5), *ROW[2:]], [np.array(x) for x in ROW]]},
    {
        "scores": {245: np.array([0.5, 0.5])},
        "boxes": {245: np.array([ROW[2:], ROW[2:]])},
        "keys": {245: np.array([1, 1])},
    },
    {
        "scores": {245: [np.array(0.5), np.float64(0.5)]},
        "boxes": {245: [np.array(ROW[2:]), tuple(ROW[2:])]},
        "keys": {245: [np.array(1), "1"]},
    },
])  # fmt: skip
def test_arrays_wherever_a_list_will_do(content: Any, tmp_path: Path) -> None:
    (record,) = read(pickled(tmp_path, content), "inpcc")
    assert record["image_id"] == "HICO_test2015_00000001"
    assert record["boxes"] == [ROW[2:6], ROW[6:]]
    assert [hoi["score"] for hoi in record["hois"]] == [0.5, 0.5]


@both
def test_images_of_another_set(save: Save, tmp_path: Path) -> None:
    path = save(tmp_path, {"17": [ROW], "4": []})
    records = read(path, "inpcc", images=["mine_0004", "mine_0017", "without"])
    assert [(record["image_id"], len(record["hois"])) for record in records] == [("mine_0017", 1), ("mine_0004", 0)]
    assert "[17]: image number 17 is not among the 1 known ones; give" in refusal(path, "inpcc", images=["mine_0004"])
    assert "[4]: image number 4 is not among" in refusal(path, "inpcc", images=["mine_0017"])


@both
def test_images_by_name(save: Save, tmp_path: Path) -> None:
    (record,) = read(save(tmp_path, {"test2015/HICO_test2015_00000001.jpg": [ROW]}), "inpcc")
    assert record["image_id"] == "HICO_test2015_00000001"
    assert record["file_name"] == "test2015/HICO_test2015_00000001.jpg"
    (record,) = read(save(tmp_path, {"swimming_12": [ROW]}), "inpcc")
    assert "file_name" not in record


def test_an_unknown_number_has_its_first_place(tmp_path: Path) -> None:
    content = preds()
    content["keys"][17][1] = 10**6
    assert refusal(pickled(tmp_path, content), "inpcc").startswith(".keys[17][1]: image number 1000000 is not among")


NAN = float("nan")

ROW_PROBLEMS = {
    "an id too high": ([600, *ROW[1:]], "[42][1]: id 600, but there are 600, counted from 0"),
    "a score of NaN": ([245, NAN, *ROW[2:]], "[42][1][1]: nan is no finite number"),
    "a huge integer": ([245, 1 << 70, *ROW[2:]], "[42][1][1]: "),
    "a number less": (ROW[:9], "[42][1]: 9 numbers; a row has 10: HOI id, score, person x1 y1 x2 y2, object x1"),
    "no row": (7, "[42][1]: 7 is no list"),
}


@both
@pytest.mark.parametrize(("row", "message"), ROW_PROBLEMS.values(), ids=ROW_PROBLEMS)
def test_a_wrong_row_is_named(row: Any, message: str, save: Save, tmp_path: Path) -> None:
    path = save(tmp_path, {"41": [ROW], "42": [ROW, row]})
    assert refusal(path, "inpcc").startswith(message)
    assert [record["image_id"] for record in read(path, "inpcc", skip=True)] == ["HICO_test2015_00000041"]


def change(column: str, hoi: Any, value: Any) -> Any:
    content = preds()
    content[column][hoi] = value
    return content


COLUMN_PROBLEMS = {
    "a box less": (change("boxes", 17, [ROW[2:]]), ".boxes[17]: 1 boxes, 2 scores and 2 keys; they must agree"),
    "half a box": (change("boxes", 17, [ROW[2:], ROW[2:6]]), ".boxes[17][1]: 4 numbers; a row has 8: person x1"),
    "a score of NaN": (change("scores", 17, [0.5, NAN]), ".scores[17][1]: nan is no finite number"),
    "an image of nothing": (change("keys", 17, [None, 1]), ".keys[17][0]: None is no image"),
    "no list": (change("scores", 17, 0.5), ".scores[17]: 0.5 is no list"),
    "a name for an id": (change("keys", "ride", []), ".keys: key ride is no HOI id"),
    "an id too high": (change("keys", 600, []), "holds 3 interactions: id 600, but there are 600, counted from 0"),
    "SWIG-HOI": (
        {name: {hoi: [] for hoi in range(14130)} for name in preds()},
        "holds 14,130 interactions: id 14129, but there are 600, counted from 0; for SWIG-HOI's 14,130 say --dataset ",
    ),
}


@pytest.mark.parametrize(("content", "message"), COLUMN_PROBLEMS.values(), ids=COLUMN_PROBLEMS)
def test_a_wrong_column_is_named(content: Any, message: str, tmp_path: Path) -> None:
    assert refusal(pickled(tmp_path, content), "inpcc").startswith(message)


def test_a_wrong_interaction_is_left_out_under_skip(tmp_path: Path) -> None:
    (record,) = read(pickled(tmp_path, change("scores", 17, [0.5, NAN])), "inpcc", skip=True)
    assert [hoi["score"] for hoi in record["hois"]] == [0.125]


def test_pairs_of_the_fixture() -> None:
    records = read(FOREIGN / "pairs.pkl", "diag-pairs")
    assert [record["image_id"] for record in records] == [record["image_id"] for record in PREDICTIONS]
    for record, original in zip(records, triplets(PREDICTIONS).values(), strict=True):
        boxes, labels = record["boxes"], record["labels"]
        assert record["hois"] == []
        found = {}
        for pair in record["pairs"]:
            human, thing = (tuple(boxes[pair[role]]) for role in ("subject", "object"))
            found[human, thing, labels[pair["object"]]] = pair["interactiveness"]
        best: dict[tuple[Any, ...], float] = {}
        for human, _, label, thing, score in original:
            key = tuple(human), tuple(thing), label
            best[key] = max(score, best.get(key, 0.0))
        assert list(found.items()) == list(best.items())


@both
def test_pairs_with_boxes_of_one_row(save: Save, tmp_path: Path) -> None:
    pair = {**PAIR, "h_box": [PAIR["h_box"]], "o_label": [13], "hoi_score_inter": [[0.5]]}
    (record,) = read(save(tmp_path, [{"filename": "a_1.jpg", "box_pairs": [PAIR, pair]}]), "diag-pairs")
    assert record["boxes"] == [PAIR["h_box"], PAIR["o_box"]]
    assert record["labels"] == ["person", load("hico").objects[13]]
    assert record["pairs"] == [{"subject": 0, "object": 1, "interactiveness": 0.5}] * 2


PAIR_PROBLEMS = {
    "a score of NaN": ({"hoi_score_inter": NAN}, ".hoi_score_inter: nan is no finite number"),
    "three numbers": ({"o_box": [1, 2, 3]}, ".o_box: [1, 2, 3] is no box; give [x1, y1, x2, y2]"),
    "text in a box": ({"o_box": [1, 2, 3, "4"]}, ".o_box[3]: 4 is no finite number"),
    "a label too high": ({"o_label": 80}, ".o_label: id 80 is none of the 80 in COCO's order (0-79)"),
    "a label between": ({"o_label": 1.5}, ".o_label: 1.5 is no whole number"),
}


@both
@pytest.mark.parametrize(("changes", "message"), PAIR_PROBLEMS.values(), ids=PAIR_PROBLEMS)
def test_a_wrong_pair_is_named(changes: Any, message: str, save: Save, tmp_path: Path) -> None:
    good = {"filename": "a_0.jpg", "box_pairs": [PAIR]}
    path = save(tmp_path, [good, {"filename": "a_1.jpg", "box_pairs": [PAIR, {**PAIR, **changes}]}])
    assert refusal(path, "diag-pairs").startswith(f"[1].box_pairs[1]{message}")
    assert [record["image_id"] for record in read(path, "diag-pairs", skip=True)] == ["a_0"]


def test_the_command_says_what_it_assumes(hoicli: Hoicli) -> None:
    path = FOREIGN / "preds.pkl"
    result = hoicli("convert", path)
    assert result.err.splitlines()[:1] == [
        f"hoicli: {path} names images by number only: taking HICO-DET test numbers "
        "(1 is HICO_test2015_00000001); --image-list for another set"
    ]
