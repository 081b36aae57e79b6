"""V-COCO's files: what each says, what it cannot, and what is wrong with a damaged one."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoicli.vocabulary.dataset_content import coco_objects
from hoicli.vocabulary.datasets import VCOCO_ORDERS, load, verb_and_role
from tests.support.project import EIGHT, FIXTURES, GT, Hoicli, Record, changed, dumped, refusal, saved
from tests.support.project import records_of as records

VCOCO = load("vcoco")
FOLDER = FIXTURES / "vcoco"
VSRL, INSTANCES, IDS = (FOLDER / name for name in ("vcoco_test.json", "instances.json", "test.ids"))
DUMP, CACHE = FOLDER / "predictions.json", FOLDER / "foreign" / "vcoco_results.pkl"
TRUTH, PREDICTIONS = FOLDER / "ground_truth.jsonl", FOLDER / "predictions.jsonl"
TINY = [0.0, 0.0, 0.1, 0.1]

Change = Callable[[Any], None]


@pytest.mark.parametrize(
    "paths", [(VSRL, INSTANCES, IDS), (INSTANCES, IDS, VSRL), (IDS, VSRL, INSTANCES), (VSRL, INSTANCES)]
)
def test_the_three_files_in_any_order(hoicli: Hoicli, paths: tuple[Path, ...]) -> None:
    result = hoicli("convert", "--dataset", "vcoco", *paths)
    assert result.out == TRUTH.read_text()
    assert result.err == (f"hoicli: converted {paths[0]} as vsrl (ground truth): 8 images, 30 boxes, 38 triplets\n")


def test_boxes_end_inside_and_are_clipped(hoicli: Hoicli, tmp_path: Path) -> None:
    """x2 = x + w - 1 within the image; without area, a pixel wide or `ignore` a box is none (vsrl_eval.py)."""
    truth = {record["image_id"]: record for record in records(hoicli("convert", VSRL, INSTANCES, IDS))}
    raw = json.loads(INSTANCES.read_text())
    of_last = [row for row in raw["annotations"] if row["image_id"] == 18]
    assert len(of_last) == len(truth[18]["boxes"]) + 3
    assert of_last[5]["bbox"] == [150.0, 20.0, 53.0, 143.0]
    assert truth[18]["boxes"][5] == [150.0, 20.0, 199.0, 159.0]
    assert truth[11]["annotated"] == [True, True, True, False]

    def outside(content: Any) -> None:
        content["annotations"][1]["bbox"] = [-10.0, 40.0, 120.5, 500.0]

    first = records(hoicli("convert", VSRL, changed(INSTANCES, tmp_path / "i.json", outside), IDS))[0]
    assert first["boxes"][1] == [0.0, 40.0, 109.5, 159.0]


def test_an_object_or_a_person_without_a_valid_box(hoicli: Hoicli, tmp_path: Path) -> None:
    def no_area(content: Any) -> None:
        content["annotations"][1]["area"] = 0  # the racket
        content["annotations"][4]["area"] = 0  # the person with the knife

    result = hoicli("convert", VSRL, changed(INSTANCES, tmp_path / "i.json", no_area), IDS)
    first, second = records(result)[:2]
    assert [hoi for hoi in first["hois"] if hoi["object"] is None] == [
        {"subject": 0, "object": None, "verb": "hold", "role": "obj"},
        {"subject": 0, "object": None, "verb": "stand"},
        {"subject": 0, "object": None, "verb": "hit", "role": "instr"},
    ]
    assert {hoi["subject"] for hoi in second["hois"]} == {2}
    assert result.err.splitlines()[1:] == [
        "hoicli: left out: roles whose object has no valid box (the role is taken as empty): 2 (the first: "
        f"{VSRL}: annotation 1101, hold obj)",
        f"hoicli: left out: actions of people without a valid box: 3 (the first: {VSRL}: annotation 1201)",
    ]


def test_the_ids_choose_and_order_the_images(hoicli: Hoicli, tmp_path: Path) -> None:
    split = saved(tmp_path / "two.ids", "1.700000000000000000e+01\n\n11\n99\n")
    result = hoicli("convert", VSRL, INSTANCES, split)
    assert [record["image_id"] for record in records(result)] == [17, 11]
    assert f"hoicli: left out: images that {INSTANCES} does not have: 1 (the first: image 99)" in result.err
    split.write_text("11\nCOCO_val2014_000000000012\n")
    assert refusal(hoicli("convert", VSRL, INSTANCES, split)) == (
        f"{split}:2: 'COCO_val2014_000000000012' is no image id; give one COCO image id a line"
    )


NOT_HICO = "not hico; leave --dataset out, or choose with --from"
TOGETHER = "give VSRL.json,INSTANCES.json,IDS.txt together (vcoco_test.json, instances_vcoco_all_2014.json, ids)"


@pytest.mark.parametrize(("paths", "message"), [
    ((VSRL,), f"{VSRL}: {TOGETHER}"),
    ((VSRL, INSTANCES, IDS, DUMP), f"{VSRL}: {TOGETHER}"),
    ((DUMP, "--dataset", "hico"), f"{DUMP}: is of vcoco (vcoco), {NOT_HICO}"),
    ((VSRL, "--dataset", "hico"), f"{VSRL}: is of vcoco (vsrl), {NOT_HICO}"),
])  # fmt: skip
def test_files_that_do_not_belong_together(hoicli: Hoicli, paths: tuple[Any, ...], message: str) -> None:
    assert refusal(hoicli("convert", *paths)) == message


def replace_key(row: int, key: str, value: Any) -> Change:
    def change(content: Any) -> None:
        content[row][key] = value

    return change


@pytest.mark.parametrize(("change", "message"), [
    (replace_key(3, "action_name", "fly"), "[3].action_name: 'fly' is no V-COCO action"),
    (replace_key(0, "label", [1]),
     "[0]: image_id, ann_id, label and role_object_id / 2 differ in length; fetch the file again"),
    (lambda content: content[6]["role_object_id"].pop(),
     "[6]: image_id, ann_id, label and role_object_id / 3 differ in length; fetch the file again"),
    (replace_key(6, "role_name", ["agent", "obj", "instr"]),
     "[6].role_name: ['agent', 'obj', 'instr'] are not the roles of hit: agent, instr, obj"),
])  # fmt: skip
def test_damaged_actions(hoicli: Hoicli, tmp_path: Path, change: Change, message: str) -> None:
    path = changed(VSRL, tmp_path / "v.json", change)
    assert refusal(hoicli("convert", path, INSTANCES, IDS)) == f"{path}: {message}"


def test_a_damaged_box(hoicli: Hoicli, tmp_path: Path) -> None:
    path = changed(INSTANCES, tmp_path / "i.json", lambda content: content["annotations"][0].update(category_id=12))
    message = f"{path}: image 11, annotation 1101: no category 12"
    assert refusal(hoicli("convert", VSRL, path, IDS)).startswith(message)
    skipped = hoicli("convert", "--on-error", "skip", VSRL, path, IDS)
    assert [record["image_id"] for record in records(skipped)] == [12, 13, 14, 15, 16, 17, 18]
    assert f"hoicli: skipped 1 item; the first: {message}" in skipped.err


@pytest.mark.parametrize("path", [DUMP, CACHE])
def test_official_detections(hoicli: Hoicli, path: Path) -> None:
    """The cache is a pickle of UPT's own class, with NumPy's numbers in it."""
    result = hoicli("convert", "--dataset", "vcoco", path)
    assert result.out == PREDICTIONS.read_text()
    assert result.err.splitlines() == [
        "hoicli: 14 of 17 dictionaries lack keys: what they do not state counts as UPT's cache fills it, score 0 and "
        "the box [0, 0, 0.1, 0.1]",
        f"hoicli: converted {path} as vcoco (predictions): 7 images, 35 boxes, 220 triplets",
        f"hoicli: left out: statements with a score of NaN: 1 (the first: {path}: [7].point_instr)",
    ]


def person(**more: Any) -> Record:
    return {"image_id": 7, "person_box": [1.0, 2.0, 3.0, 4.0], **more}


def test_three_ways_to_say_that_there_is_no_object(hoicli: Hoicli, tmp_path: Path) -> None:
    nothing: list[Any] = [math.nan] * 4
    ways = {"hold_obj": nothing, "look_obj": [None] * 4, "eat_obj": [0, 0, 0, 0], "ski_instr": TINY}
    path = dumped(tmp_path / "p.json", [person(**{key: [*box, 0.5] for key, box in ways.items()})])
    (record,) = records(hoicli("convert", path))
    assert record["boxes"] == [[1.0, 2.0, 3.0, 4.0], [0.0] * 4, TINY]
    assert record["labels"] == ["person", None, None]
    assert [(hoi["verb"], hoi["object"]) for hoi in record["hois"]] == [
        ("hold", None), ("look", None), ("eat", 1), ("ski", 2),
    ]  # fmt: skip
    assert record["unstated"] == {"score": 0.0, "object": TINY}


def test_half_a_box_is_refused_by_its_key(hoicli: Hoicli, tmp_path: Path) -> None:
    path = dumped(tmp_path / "p.json", [person(hold_obj=[1, 2, None, 4, 0.5])])
    said = refusal(hoicli("convert", path))
    problem = "has only some of a box's corners; give all four, or NaN for each if there is no object"
    assert said == f"{path}: [0].hold_obj: {problem}"


def test_unstated_is_looked_at_where_nothing_is_stated(hoicli: Hoicli, tmp_path: Path) -> None:
    record = {"image_id": 1, "boxes": [[1, 2, 3, 4]], "labels": ["person"], "hois": [], "unstated": {"score": 0.0}}
    path = dumped(tmp_path / "records.jsonl", record)
    said = refusal(hoicli("convert", path, "--to", "vcoco-pkl", "-o", tmp_path / "back.pkl"))
    assert said == f"{path}:1: unstated: must be an object with a score and an object box, as convert writes it"


def silence(*without: str) -> Record:
    """A dictionary that states nothing: every key but some, with scores of NaN."""
    told: Record = {"image_id": 1, "person_box": [10.0, 10.0, 60.0, 60.0]}
    for verb, roles in VCOCO.roles_of.items():
        told |= {f"{verb}_agent": math.nan, **{f"{verb}_{role}": [math.nan] * 5 for role in roles}}
    return {key: value for key, value in told.items() if key not in without}


def evaluated(hoicli: Hoicli, tmp_path: Path, detection: Record, held: int | None) -> dict[str, float]:
    """Protocol -> mAP of one dictionary of the official list, where somebody holds a cup, or nothing that is annotated.

    Written back to the list, the dictionary has the scores that it had.
    """
    boxes, labels = [[10, 10, 60, 60], [100, 100, 150, 150]], ["person", "cup"]
    hold = {"subject": 0, "object": held, "verb": "hold", "role": "obj"}
    gt = dumped(tmp_path / "gt.jsonl", {"image_id": 1, "boxes": boxes, "labels": labels, "hois": [hold]})
    official, converted, back = (tmp_path / name for name in ("list.json", "converted.jsonl", "back.pkl"))
    assert hoicli("convert", dumped(official, [detection]), "-o", converted).code == 0
    assert hoicli("convert", converted, "--to", "vcoco-pkl", "-o", back).code == 0
    (written,) = pickle.loads(back.read_bytes())
    for key in silence().keys() & {key for key in detection if key.endswith(("_agent", "_obj", "_instr"))}:
        assert repr(np.ravel(written[key])[-1]) == repr(np.ravel(detection[key])[-1]), key
    rows = map(json.loads, hoicli("eval", "--gt", gt, "--dataset", "vcoco", converted).out.splitlines())
    return {row["protocol"]: row["value"] for row in rows if row["metric"] == "mAP" and row["subset"] in ("24", "full")}


def test_an_action_with_a_score_of_nan_is_not_derived_from_its_role(hoicli: Hoicli, tmp_path: Path) -> None:
    """s-gupta/v-coco vsrl_eval.py drops a NaN score: there is no such agent, whatever fills a role of the action."""
    found = evaluated(hoicli, tmp_path, silence() | {"hold_obj": [100.0, 100.0, 150.0, 150.0, 0.9]}, held=1)
    assert (found["vcoco-agent"], found["vcoco-s1"], found["vcoco-s2"]) == (0, 100, 100)


def test_a_role_with_a_score_of_nan_is_not_filled_in(hoicli: Hoicli, tmp_path: Path) -> None:
    """Where another key is missing, which alone is what UPT's cache would fill in."""
    detection = silence("walk_agent") | {"hold_obj": [100.0, 100.0, 150.0, 150.0, math.nan]}
    found = evaluated(hoicli, tmp_path, detection, held=None)
    assert (found["vcoco-agent"], found["vcoco-s1"], found["vcoco-s2"]) == (0, 0, 0)
    del detection["hold_obj"]  # and now it is
    assert evaluated(hoicli, tmp_path, detection, held=None)["vcoco-s2"] == 100


def test_equal_people_stay_two_and_equal_objects_become_one(hoicli: Hoicli, tmp_path: Path) -> None:
    said = [person(hold_obj=[5, 5, 9, 9, 0.5]), person(hold_obj=[5, 5, 9, 9, 0.4], hold_agent=0.3)]
    (record,) = records(hoicli("convert", dumped(tmp_path / "p.json", said)))
    assert len(record["boxes"]) == 3
    assert [(hoi["subject"], hoi["object"], hoi.get("role")) for hoi in record["hois"]] == [
        (0, 2, "obj"), (1, 2, "obj"), (1, None, None),
    ]  # fmt: skip


@pytest.mark.parametrize(("item", "message"), [
    (person(hold_obj=[1, 2, 3, 4]), "[1].hold_obj: is not a box and a score: five numbers"),
    (person(hold_agent="high"), "[1].hold_agent: is not a score"),
    (person(person_box=[1, 2, 3]), "[1].person_box: is not a box of four numbers"),
    (person(image_id=True), "[1]: has no image_id, the number of its COCO image; add it"),
])  # fmt: skip
def test_damaged_detections(hoicli: Hoicli, tmp_path: Path, item: Any, message: str) -> None:
    path = dumped(tmp_path / "p.json", [person(image_id=6, hold_agent=0.5), item, person(image_id=8)])
    stopped = hoicli("convert", path)
    assert (stopped.code, stopped.err.count("\n"), stopped.err.startswith(f"{path}: {message}")) == (1, 1, True)
    skipped = hoicli("convert", "--on-error", "skip", path)
    assert [record["image_id"] for record in records(skipped)] == [6, 8]
    assert f"skipped 1 item; the first: {path}: {message}" in skipped.err


def test_a_round_trip_changes_no_number(hoicli: Hoicli, tmp_path: Path) -> None:
    written = tmp_path / "written"
    assert hoicli("convert", PREDICTIONS, "--to", "vcoco-pkl", "-o", written).code == 0
    people = pickle.loads(written.read_bytes())
    keys = {"image_id", "person_box"} | {f"{verb}_{role or 'agent'}" for verb, role in VCOCO.interactions}
    assert len(keys) == 2 + 51
    assert all(type(one) is dict and one.keys() == keys for one in people)
    assert [one["image_id"] for one in people][:3] == [11, 11, 11]
    assert people[0]["hold_obj"] == [72.0, 41.0, 110.0, 70.0, 0.9]
    assert people[0]["ski_instr"] == [*TINY, 0.0]
    again = tmp_path / "again.jsonl"
    assert hoicli("convert", written, "-o", again).code == 0
    options = ("eval", "--dataset", "vcoco", "--per-class", "--gt", TRUTH)
    assert hoicli(*options, again).out == hoicli(*options, PREDICTIONS).out


def test_what_one_dictionary_cannot_hold_becomes_two(hoicli: Hoicli, tmp_path: Path) -> None:
    """Two objects of one role; the action itself is the best of them, said once."""
    record: Record = {"image_id": "7", "boxes": [[1, 2, 3, 4], [5, 6, 7, 8], [6, 6, 9, 9]]}
    record["labels"] = ["person", "cup", "cup"]
    hold = {"subject": 0, "verb": "hold", "role": "obj"}
    record["hois"] = [{**hold, "object": 1, "score": 0.25}, {**hold, "object": 2, "score": 0.5}]
    record["hois"].append({"subject": 0, "object": None, "verb": "walk", "score": 0.75})
    path = dumped(tmp_path / "r.jsonl", record)
    written = tmp_path / "written.pkl"
    assert hoicli("convert", path, "--to", "vcoco-pkl", "-o", written).code == 0
    first, second = pickle.loads(written.read_bytes())
    assert first["image_id"] == 7
    assert (first["hold_obj"], second["hold_obj"]) == ([5, 6, 7, 8, 0.25], [6, 6, 9, 9, 0.5])
    assert (first["hold_agent"], first["walk_agent"]) == (0.5, 0.75)
    assert math.isnan(second["hold_agent"])
    assert math.isnan(second["walk_agent"])
    assert all(map(math.isnan, first["ski_instr"]))


@pytest.mark.parametrize(("arguments", "message"), [
    ((VSRL, INSTANCES, "--to", "vcoco-pkl"), "image 11: hois[0].score: missing; --to vcoco-pkl"),
    ((DUMP, "--to", "cdn-json"), f"{DUMP}: is of vcoco, which --to cdn-json cannot hold; choose vcoco-pkl"),
    ((EIGHT / "predictions.jsonl", "--to", "vcoco-pkl"), f"{EIGHT / 'predictions.jsonl'}:1: hois["),
])  # fmt: skip
def test_what_cannot_be_written(hoicli: Hoicli, arguments: tuple[Any, ...], message: str) -> None:
    assert refusal(hoicli("convert", *arguments)).startswith(message)


QPIC, PPDM = VCOCO_ORDERS["qpic"], VCOCO_ORDERS["ppdm"]


def listed(order: tuple[str, ...], ids: tuple[int, int, int]) -> list[Record]:
    """A person who holds a cup, sits on nothing and walks; the three ids are of person, cup and no object."""
    boxes = [[1, 2, 3, 4], [5, 6, 7, 8], [0, 0, 0, 0]]
    says = [(1, "hold_obj", 0.5), (2, "sit_instr", 0.25), (1, "walk", 0.75), (-1, "ride_instr", 0.125), (7, "walk", 1)]
    found = [{"bbox": box, "category_id": number} for box, number in zip(boxes, ids, strict=True)]
    hois = [
        {"subject_id": 0, "object_id": thing, "category_id": order.index(name), "score": score}
        for thing, name, score in says
    ]
    return [{"file_name": "COCO_val2014_000000000042.jpg", "predictions": found, "hoi_prediction": hois}]


CUP = VCOCO.object_ids["cup"]


@pytest.mark.parametrize("ids", [(0, CUP, 80), (1, coco_objects()["cup"], 1)])
@pytest.mark.parametrize(("order", "name"), [(QPIC, None), (QPIC, "qpic-vcoco-list"), (PPDM, "ppdm-vcoco-list")])
def test_lists_of_predictions(
    hoicli: Hoicli, tmp_path: Path, ids: tuple[int, int, int], order: tuple[str, ...], name: str | None
) -> None:
    path = dumped(tmp_path / "p.json", listed(order, ids))
    result = hoicli("convert", *(("--from", name) if name else ()), path)
    (record,) = records(result)
    assert (record["image_id"], record["file_name"]) == (42, "COCO_val2014_000000000042.jpg")
    assert record["labels"] == ["person", "cup", None if ids[2] == 80 else "person"]
    assert record["hois"] == [
        {"subject": 0, "object": 1, "verb": "hold", "role": "obj", "score": 0.5},
        {"subject": 0, "object": None if ids[2] == 80 else 2, "verb": "sit", "role": "instr", "score": 0.25},
        {"subject": 0, "object": None, "verb": "walk", "score": 0.75},
        {"subject": 0, "object": None, "verb": "ride", "role": "instr", "score": 0.125},
    ]
    assert f"that point beyond the boxes of their image: 1 (the first: {path}: [0].hoi_prediction[4])" in result.err


def test_the_orders_are_of_the_same_29() -> None:
    assert len(QPIC) == 29
    assert set(QPIC) == set(PPDM)
    assert {VCOCO.interaction_ids[verb_and_role(name)] for name in QPIC} == VCOCO.subsets["29"]


def hoia(order: tuple[str, ...], *, first: str = "hold_obj") -> list[Record]:
    """The image of `listed`, as QPIC's script writes annotations: far edges, COCO ids, -1 for no object."""
    boxes = [{"bbox": [1.0, 2.0, 4.0, 5.0], "category_id": 1}]
    boxes.append({"bbox": [5.0, 6.0, 8.0, 9.0], "category_id": coco_objects()["cup"]})
    hois = [
        {"subject_id": 0, "object_id": thing, "category_id": order.index(name)}
        for thing, name in ((1, first), (-1, "sit_instr"), (-1, "walk"), (9, "walk"))
    ]
    return [{"file_name": "COCO_val2014_000000000042.jpg", "annotations": boxes, "hoi_annotation": hois}]


@pytest.mark.parametrize(("order", "first", "name"), [(QPIC, "hold_obj", None), (PPDM, "surf_instr", "ppdm-vcoco-gt")])
def test_the_hoi_a_layout(hoicli: Hoicli, tmp_path: Path, order: tuple[str, ...], first: str, name: str | None) -> None:
    path = dumped(tmp_path / "test_vcoco.json", hoia(order, first=first))
    result = hoicli("convert", *(("--from", name) if name else ()), path)
    (record,) = records(result)
    assert record["image_id"] == 42
    assert record["boxes"] == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert record["labels"] == ["person", "cup"]
    verb, role = verb_and_role(first)
    assert record["hois"] == [
        {"subject": 0, "object": 1, "verb": verb, "role": role},
        {"subject": 0, "object": None, "verb": "sit", "role": "instr"},
        {"subject": 0, "object": None, "verb": "walk"},
    ]
    assert "this file does not say which people nobody annotated: predictions on them will count as false" in result.err
    assert record["caveats"] == ["unmarked_people"]
    assert f"that point beyond the boxes of their image: 1 (the first: {path}: [0].hoi_annotation[3])" in result.err


def pocket() -> Record:
    two = {"boxes_h": [[1.5, 2.0, 4.0, 5.0]] * 2, "boxes_o": [[5.0, 6.0, 8.0, 9.0]] * 2, "actions": [0, 1]}
    none: Record = {"boxes_h": [], "boxes_o": [], "actions": [], "objects": []}
    images = [{**two, "objects": [1, 1], "file_name": "COCO_val2014_000000000042.jpg"}]
    images.append({**none, "file_name": "COCO_val2014_000000000043.jpg"})
    names = {"classes": ["hold obj", "talk_on_phone instr"], "objects": ["background", "cell phone"]}
    return {"annotations": images, **names, "images": [42, 43], "action_to_object": [[1], [1]]}


def test_pocket(hoicli: Hoicli, tmp_path: Path) -> None:
    result = hoicli("convert", dumped(tmp_path / "instances_vcoco_test.json", pocket()))
    first, second = records(result)
    assert first["boxes"] == [[1.5, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]
    assert first["labels"] == ["person", "cell_phone"]
    hold = {"subject": 0, "object": 1, "verb": "hold", "role": "obj"}
    assert first["hois"] == [hold, {**hold, "verb": "talk_on_phone", "role": "instr"}]
    assert (second["image_id"], second["boxes"], second["hois"]) == (43, [], [])
    assert "agents and both scenarios need the official files" in result.err
    assert first["caveats"] == second["caveats"] == ["pairs_only"]


def qpic_list() -> list[Record]:
    return listed(QPIC, (0, CUP, 80))


@pytest.mark.parametrize(("content", "change", "message"), [
    (qpic_list,
     lambda c: c[0]["hoi_prediction"][0].update(category_id=29),
     "[0].hoi_prediction[0].category_id: id 29, but there are 29, "),
    (qpic_list,
     lambda c: c[0]["hoi_prediction"][0].pop("score"),
     "[0].hoi_prediction[0].score: nothing (null, or missing) is no score; "),
    (qpic_list, lambda c: c[0].update(file_name="COCO_x.jpg"), "[0].file_name: 'COCO_x.jpg' is no COCO image "),
    (pocket, lambda c: c["objects"].append("yeti"), "objects: 'yeti' is no name of the dataset"),
    (pocket, lambda c: c["classes"].append("fly obj"), "classes: 'fly obj' is no V-COCO action with its role, "),
    (pocket, lambda c: c["annotations"][0].update(actions=[0, 2]), "annotations[0].actions: id 2, but there are 2"),
    (pocket, lambda c: c.update(classes=None), "classes: must be a list"),
])  # fmt: skip
def test_damaged_files_of_others(
    hoicli: Hoicli, tmp_path: Path, content: Callable[[], Any], change: Change, message: str
) -> None:
    damaged = content()
    change(damaged)
    path = dumped(tmp_path / "p.json", damaged)
    assert refusal(hoicli("convert", path)).startswith(f"{path}: {message}")


def test_the_released_files_of_pocket(hoicli: Hoicli, shared: Path, tmp_path: Path) -> None:
    """4,946 test images, 414 of them empty, 12,402 pairs."""
    found = records(hoicli("convert", shared / "data/v-coco/instances_vcoco_test.json"))
    assert len(found) == 4946
    assert sum(not record["hois"] for record in found) == 414
    assert sum(len(record["hois"]) for record in found) == 12_402
    assert {tuple(record["caveats"]) for record in found} == {("pairs_only",)}


def test_a_list_of_images_may_be_of_any_dataset(hoicli: Hoicli, tmp_path: Path) -> None:
    """Ground truth given with --image-list names images, and its labels are no matter: the file converted says whose it
    is, and V-COCO's ground truth need not be called so."""
    plain = hoicli("convert", CACHE)
    assert plain.code == 0
    for images in (TRUTH, GT, FIXTURES / "swig" / "gt.jsonl", qpic_truth(tmp_path)):
        assert hoicli("convert", CACHE, "--image-list", images).out == plain.out


def qpic_truth(folder: Path) -> Path:
    """QPIC's ground truth, whose numbers are V-COCO's."""
    return dumped(folder / "test_vcoco.json", hoia(QPIC))


def test_verbs_that_count_from_1(hoicli: Hoicli, tmp_path: Path) -> None:
    content = listed(QPIC, (0, CUP, 80))
    good = hoicli("convert", dumped(tmp_path / "p.json", content)).out
    for hoi in content[0]["hoi_prediction"]:
        hoi["category_id"] += 1
    path = dumped(tmp_path / "p.json", content)
    assert hoicli("convert", "--verb-base", "1", path).out == good != hoicli("convert", path).out
