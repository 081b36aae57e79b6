"""Exports of annotation tools: Label Studio's JSON, CVAT's XML, scene graphs as COCO with rel_annotations."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import EIGHT, GRAPHS, OWN, Hoicli, changed, dumped, parsed, refusal, saved
from tests.support.project import parsed as records

STUDIO, CVAT = OWN / "label_studio.json", OWN / "annotations.xml"
TRUTH = {record["image_id"]: record for record in map(json.loads, (OWN / "gt.jsonl").read_text().splitlines())}

Json = dict[str, Any]


@pytest.mark.parametrize("path", [STUDIO, CVAT], ids=["Label Studio", "CVAT"])
def test_from_an_export_to_a_table_in_two_commands(path: Path, hoicli: Hoicli, tmp_path: Path) -> None:
    own, predictions = tmp_path / "own.json", tmp_path / "p.jsonl"
    converted = hoicli("convert", path).out
    found = records(converted)
    assert found == [TRUTH[record["image_id"]] for record in found]
    predictions.write_text(converted.replace('"verb"', '"score":1,"verb"'))
    assert hoicli("vocab", "--from", path, "-o", own).code == 0
    assert records(hoicli("eval", "--dataset", own, "--gt", path, predictions).out)[0]["value"] == 100
    for options in (("--dataset", "hico"), ("--to", "cdn-json")):
        assert ": labels[0]: unknown object " in refusal(hoicli("convert", *options, path))


def rectangle(name: str, *sides: object, **more: Any) -> Json:
    value = dict(zip(("x", "y", "width", "height"), sides, strict=True)) | {"rotation": 0}
    size = {"original_width": 200, "original_height": 1000}
    return {"type": "rectanglelabels", "id": name, **size, "value": {**value, "rectanglelabels": [name]}, **more}


def relation(start: str, end: str, *labels: str, **more: Any) -> Json:
    return {"type": "relation", "from_id": start, "to_id": end, "labels": list(labels), **more}


def task(*result: Json, **more: Any) -> Json:
    return {"id": 1, "data": {"image": "a.jpg"}, "annotations": [{"result": list(result), **more}]}


BOXES = rectangle("worker", 10, 20, 30, 40), rectangle("hard hat", 0, 0, 33.3333333333, 100)


def convert(hoicli: Hoicli, tmp_path: Path, tasks: object, *options: str) -> Any:
    return hoicli("convert", dumped(tmp_path / "export.json", tasks), *options)


def test_a_rectangle_is_per_cent_of_its_image_and_a_relation_has_a_direction(hoicli: Hoicli, tmp_path: Path) -> None:
    ways = [relation("worker", "hard hat", "wear", "hold up", direction=way) for way in ("right", "left", "bi")]
    [record] = records(convert(hoicli, tmp_path, [task(*BOXES, *ways)]).out)
    assert (record["width"], record["height"], record["image_id"]) == (200, 1000, "a")
    assert record["boxes"] == [[20, 200, 80, 600], [0, 0, 66.6667, 1000]]
    assert record["labels"] == ["worker", "hard_hat"]
    found = [(hoi["subject"], hoi["verb"], hoi["object"]) for hoi in record["hois"]]
    assert found[:4] == [(0, "wear", 1), (0, "hold_up", 1), (1, "wear", 0), (1, "hold_up", 0)]
    assert sorted(found[4:]) == sorted(found[:4])


@pytest.mark.parametrize(("address", "image_id"), [
    ("/data/upload/7/0a1b2c3d-site_0001.jpg", "site_0001"),
    ("/data/local-files/?d=day%201/site_0001.jpg", "site_0001"),
    ("https://host/day/site%201.jpg?token=x", "site 1"),
    ("s3://bucket/site_0001.jpg", "site_0001"),
])  # fmt: skip
def test_the_image_is_called_as_its_file(address: str, image_id: str, hoicli: Hoicli, tmp_path: Path) -> None:
    one = {**task(*BOXES), "data": {"img": address}}
    [record] = records(convert(hoicli, tmp_path, [one]).out)
    assert record["image_id"] == image_id


def test_uploads_of_one_name_keep_the_digits_before_it(hoicli: Hoicli, tmp_path: Path) -> None:
    def ids(*addresses: str, options: tuple[str, ...] = ()) -> tuple[list[str], bool]:
        result = convert(hoicli, tmp_path, [{**task(*BOXES), "data": {"image": one}} for one in addresses], *options)
        return [record["image_id"] for record in records(result.out)], "uploads have one name" in result.err

    one, two, three = (f"/data/upload/3/9879e7f{end}" for end in ("a-f_1.jpg", "b-f_1.jpg", "c-f_2.jpg"))
    assert ids(one, three) == (["f_1", "f_2"], False)
    assert ids(one, three, options=("--id", "path")) == (["9879e7fa-f_1", "9879e7fc-f_2"], False)
    assert ids(one, two, three) == (["9879e7fa-f_1", "9879e7fb-f_1", "9879e7fc-f_2"], True)
    assert ids(one, "s3://bucket/f_1.jpg") == (["9879e7fa-f_1", "f_1"], True)
    assert ids(one, one) == (["f_1"], False), "one image twice is an error, as ever"


def test_one_annotation_of_a_task_is_taken_and_the_rest_is_counted(hoicli: Hoicli, tmp_path: Path) -> None:
    def by(verb: str, *more: Json, **rest: Any) -> Json:
        return {"result": [*BOXES, relation("worker", "hard hat", verb), *more], **rest}

    plain = {**rectangle("z", 1, 1, 1, 1), "type": "rectangle"}
    named = {**plain, "type": "labels", "value": {**plain["value"], "labels": ["z", "a"]}}
    choice = {"type": "choices", "id": "worker", "value": {"choices": ["x"]}}
    of = [
        [by("b", updated_at="2025-02-01"), by("a", updated_at="2025-01-01")],
        [by("c", ground_truth=True), by("d", updated_at="2025-01-01")],
        [by("f", plain, choice, relation("worker", "z", "x"), relation("worker", "hard hat")), by("e")],
        [by("e", plain, named), by("f", was_cancelled=True)],
        [by("g", was_cancelled=True)],
        [],
    ]
    of[2].reverse()
    tasks = [{"data": {"image": f"{at}.jpg"}, "annotations": made} for at, made in enumerate(of)]
    result = convert(hoicli, tmp_path, [*tasks[:-1], {**tasks[-1], "predictions": [{}, {}]}])
    assert [[hoi["verb"] for hoi in record["hois"]] for record in records(result.out)] == [["b"], ["c"], ["f"], ["e"]]
    assert records(result.out)[3]["labels"] == ["worker", "hard_hat", "z"]
    others = "results that are neither a labelled rectangle nor a relation"
    assert [line.split(" (the first")[0] for line in result.err.splitlines() if "left out" in line] == [
        f"hoicli: left out: {what}"
        for what in (
            "further annotations of a task (taken is the one marked ground_truth, else the latest): 4",
            f"{others} (rectangle): 1", f"{others} (choices): 1", "relations of what is no labelled rectangle: 1",
            "relations without a label: 1", "further labels of a rectangle: 1", "tasks that nobody annotated: 2",
            "predictions of models (annotations are read): 2",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(("broken", "message"), [
    (task(rectangle("a", 1, 1, 1, 1, image_rotation=90)), ".annotations[0].result[0].image_rotation: 90 degrees: "),
    (task(rectangle("a", 1, 1, 1, "b")), ".annotations[0].result[0].value.height: b is no finite number"),
    (task(*BOXES, relation("worker", "hard hat", "x", direction="up")), "[0].result[2].direction: up is none of"),
    (task(rectangle("a", 1, 1, 1, 1), rectangle("b", 1, 1, 1, 1, to_name="other")), "rectangles of several images"),
    (task(rectangle("a", 1, 1, 1, 1), rectangle("b", 1, 1, 1, 1, original_width=9)), "several sizes of one"),
    (task(rectangle("a", 1, 1, 1, 1), rectangle("a", 2, 1, 1, 1)), ".result[1].id: another rectangle has this id"),
    (task(rectangle("", 1, 1, 1, 1)), ".result[0].value.rectanglelabels: a label is empty, or no text"),
    (task(*BOXES, {**relation("worker", "hard hat"), "labels": "hold"}), "[0].result[2].labels: hold is no list"),
    ({**task(), "data": {"image": "data:image/png;base64,AAAA"}}, ".data.image: is no address of a file"),
    ({**task(), "data": {"photo": "1", "camera": "2"}}, ".data: has no image, but photo, camera; call the image's"),
    ({"image": "a.jpg", "rectangles": []}, "has no 'annotations'"),
    ({"data": {"image": "a.jpg"}, "annotations": [{"result": 3}]}, "is not shaped as expected"),
])  # fmt: skip
def test_broken_exports_of_label_studio(broken: Json, message: str, hoicli: Hoicli, tmp_path: Path) -> None:
    result = convert(hoicli, tmp_path, [task(*BOXES), broken])
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert message in result.err
    assert "export.json: [1]" in result.err
    skipped = convert(hoicli, tmp_path, [task(*BOXES), broken], "--on-error", "skip")
    assert len(records(skipped.out)) == 1


def xml(*boxes: tuple[str, int, str], rest: str = "") -> str:
    rows = [
        f'<box label="{label}" xtl="{at}" ytl="0" xbr="9.5" ybr="9" group_id="{group}">'
        f'<attribute name="Action">{action}</attribute></box>'
        for at, (label, group, action) in enumerate(boxes)
    ]
    image = f'<image id="0" name="day/a.jpg" width="20" height="10">{"".join(rows)}{rest}</image>'
    return f"<annotations><version>1.1</version>{image}</annotations>"


@pytest.mark.parametrize(("boxes", "triplets", "told"), [
    ([("man", 1, "hold, lift"), ("cup", 1, "")], [(0, "hold", 1), (0, "lift", 1)], ""),
    ([("man", 1, "carry"), ("bag", 1, ""), ("box", 1, "none")], [(0, "carry", 1), (0, "carry", 2)], ""),
    ([("man", 1, "carry"), ("man", 1, "carry"), ("box", 1, "")], [(0, "carry", 2), (1, "carry", 2)], ""),
    ([("man", 1, "shake hands"), ("man", 1, "shake hands")], [(0, "shake_hands", 1), (1, "shake_hands", 0)], ""),
    ([("man", 0, "hold"), ("cup", 0, "")], [], "left out: actions of a box that is alone in its group, or in none"),
    ([("man", 2, ""), ("cup", 2, "")], [], "left out: groups without an action: 1 (the first: "),
])  # fmt: skip
def test_who_acts_on_what_in_cvat(
    boxes: list[tuple[str, int, str]], triplets: list[tuple[int, str, int]], told: str, hoicli: Hoicli, tmp_path: Path
) -> None:
    path = saved(tmp_path / "annotations.xml", xml(*boxes, rest='<polygon label="x" points="0,0;1,1"/>'))
    result = hoicli("convert", path)
    [record] = records(result.out)
    assert record["boxes"][1] == [1, 0, 9.5, 9]
    assert [(hoi["subject"], hoi["verb"], hoi["object"]) for hoi in record["hois"]] == triplets
    assert told in result.err
    assert "left out: shapes that are no box (polygon): 1 " in result.err


BOMB = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c SYSTEM "file:///etc/passwd">]>\n<annotations>&b;&c;</annotations>'


@pytest.mark.parametrize(("content", "message"), [
    ("<annotations>\n<image></annotations>", ":2: not XML (mismatched tag"),
    (f'<?xml version="1.0"?>\n{BOMB}', ":2: has a document type (DOCTYPE)"),
    ('<?xml version="1.0" encoding="none"?><annotations/>', ":1: not XML (unknown encoding"),
    ("<annotations><track/></annotations>", 'is "CVAT for video"'),
    ("<svg/>", "not a format hoicli knows"),
    (xml(("man", 1, "hold,wear"), ("hat", 1, ""), ("cup", 1, "")), "image[0].box[0]: hold, wear: 2 objects in the"),
    (xml(("man", 1, "")).replace("box label", 'box rotation="7.5" label'), "box[0].rotation: 7.5 degrees"),
    (xml(("man", 1, "")).replace('ybr="9"', 'ybr="x"'), "image[0].box[0].ybr: x is no number; export it again"),
    (xml(("man", 1, "")).replace('width="20"', ""), "image[0] has no 'width'"),
    (xml(("man", 1, "")).replace('ybr="9"', 'ybr="inf"'), "image a: boxes[0]: [0.0, 0.0, 9.5, Infinity] is no box"),
])  # fmt: skip
def test_broken_and_hostile_exports_of_cvat(content: str, message: str, hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "annotations.xml", content)
    for command in (("convert", path), ("vocab", "--from", path), ("eval", "--gt", path, OWN / "predictions.jsonl")):
        assert message in refusal(hoicli(*command)).replace("image[0]: has", "image[0] has")


def test_an_archive_is_to_be_unpacked(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "task.zip", b"PK\x03\x04")
    assert "is an archive; unpack it, and give the file that is in it" in hoicli("convert", path).err


FILE = GRAPHS / "foreign/_annotations.coco.json"
GT, PREDICTIONS, DATASET = GRAPHS / "gt.jsonl", GRAPHS / "predictions.jsonl", GRAPHS / "dataset.json"
HICO = EIGHT / "gt.jsonl"

Change = Callable[[Any], object]


def test_the_fixture_converts_to_the_records(hoicli: Hoicli) -> None:
    for options in ((), ("--dataset", DATASET), ("--from", "coco-rel")):
        result = hoicli("convert", *options, FILE)
        assert (result.code, result.out) == (0, GT.read_text())


def test_further_fields_of_images_are_kept(hoicli: Hoicli, tmp_path: Path) -> None:
    content = json.loads(FILE.read_text())
    content["images"][0] |= {"camera": "north", "night": True, "tags": ["a"], "image_id": "x", "caveats": "y"}
    converted = hoicli("convert", saved(tmp_path / "coco.json", json.dumps(content)))
    first = json.loads(converted.out.splitlines()[0])
    for reason in ("tags of images (no text or number)", "caveats of images (records have a field of this name)"):
        assert reason in converted.err
    back = hoicli("convert", "--to", "coco-rel", saved(tmp_path / "gt.jsonl", json.dumps(first)))
    assert json.loads(back.out)["images"][0]["camera"] == "north"
    assert (first["camera"], first["night"], "tags" in first, "file_name" in first) == ("north", True, False, True)
    assert (first["image_id"], "caveats" in first) == (json.loads(GT.read_text().splitlines()[0])["image_id"], False)


@pytest.mark.parametrize("path", [GT, PREDICTIONS], ids=["ground truth", "predictions"])
@pytest.mark.parametrize("options", [(), ("--dataset", DATASET)], ids=["any names", "of a dataset"])
def test_there_and_back(hoicli: Hoicli, tmp_path: Path, path: Path, options: tuple[object, ...]) -> None:
    there = tmp_path / "graphs.json"
    assert hoicli("convert", *options, "--to", "coco-rel", path, "-o", there).code == 0
    back = [json.loads(line) for line in hoicli("convert", there).out.splitlines()]
    assert back == [json.loads(line) for line in path.read_text().splitlines()]


def test_categories_are_numbered_from_1_in_the_datasets_order(hoicli: Hoicli) -> None:
    """SGG-Benchmark's loader makes category 0 the background."""
    dataset = json.loads(DATASET.read_text())
    content = json.loads(hoicli("convert", "--dataset", DATASET, "--to", "coco-rel", PREDICTIONS).out)
    assert content["rel_categories"] == [{"id": at, "name": name} for at, name in enumerate(dataset["verbs"], 1)]
    assert [row["id"] for row in content["categories"]] == list(range(1, 7))
    alone = json.loads(hoicli("convert", "--to", "coco-rel", PREDICTIONS).out)
    assert [row["name"] for row in alone["rel_categories"]] == sorted(
        {hoi["verb"] for line in PREDICTIONS.read_text().splitlines() for hoi in json.loads(line)["hois"]}
    )


def test_hico_goes_out_and_what_is_left_out_is_counted(hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "hico.json"
    result = hoicli("convert", "--to", "coco-rel", "--dataset", "hico", HICO, "-o", path)
    assert "left out: image-level labels: 8 (the first: image HICO_test2015_00000001)" in result.err
    back = [json.loads(line) for line in hoicli("convert", "--dataset", "hico", path).out.splitlines()]
    truth = [json.loads(line) for line in HICO.read_text().splitlines()]
    keys = ("image_id", "boxes", "labels", "hois")
    assert [[record[key] for key in keys] for record in back] == [[record[key] for key in keys] for record in truth]
    assert [record["img_id"] for record in back] == list(range(1, 9))


def test_names_of_another_dataset(hoicli: Hoicli) -> None:
    for options in (("--dataset", "hico"), ("--to", "cdn-json")):
        said = refusal(hoicli("convert", *options, FILE))
        assert said.startswith(f"{FILE}: categories[2].name: unknown object 'hat'; ")
    assert hoicli("convert", GT).err.startswith(f"{GT}:1: labels[2]: unknown object 'street'; ")


@pytest.mark.parametrize(("change", "message"), [
    (lambda content: content["images"][1].update(id=1),
     ": images[1].id: 1 is the id of another one, too; give each its own"),
    (lambda content: content["annotations"][1].update(bbox=[1, 2, 3, float("nan")]),
     ": image street_1: boxes[1]: [1, 2, 4, NaN] is no box; give four finite numbers [x1, y1, x2, y2]"),
    (lambda content: content["annotations"][1].update(category_id=99),
     ": images[0]: annotations[1].category_id: 99 is the id of no category; correct what wrote it"),
    (lambda content: content["rel_annotations"][1].update(score=0.5),
     ": images[0]: rel_annotations[0].score: missing, though other relations have one; give all or none"),
])  # fmt: skip
def test_a_broken_file_is_one_line(hoicli: Hoicli, tmp_path: Path, change: Change, message: str) -> None:
    path = changed(FILE, tmp_path / "graphs.json", change)
    assert refusal(hoicli("convert", path)) == f"{path}{message}"


def test_relations_and_boxes_of_nothing_are_counted(hoicli: Hoicli, tmp_path: Path) -> None:
    """SGG-Benchmark's loader leaves them out without a word."""

    def point_nowhere(content: Any) -> None:
        content["rel_annotations"][1]["subject_id"] = 999
        content["rel_annotations"][2]["object_id"] = 7  # of another image
        content["rel_annotations"][4]["image_id"] = 77

    path = changed(FILE, tmp_path / "graphs.json", point_nowhere)
    result = hoicli("convert", path)
    hois = [len(json.loads(line)["hois"]) for line in result.out.splitlines()]
    assert (result.code, hois) == (0, [2, 2, 0, 1, 3])
    nowhere = f"relations that point at no box of their image: 2 (the first: {path}: rel_annotations[1])"
    other = (
        f"annotations and relations of images that the file does not list: 1 (the first: {path}: rel_annotations[4])"
    )
    assert f"hoicli: left out: {other}\nhoicli: left out: {nowhere}\n" in result.err


def test_two_images_of_one_number(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "gt.jsonl", GT.read_text().replace('"img_id":2', '"img_id":1'))
    out = tmp_path / "out.json"
    result = hoicli("convert", "--to", "coco-rel", path, "-o", out)
    assert (result.code, out.exists()) == (1, False)
    assert result.err == "image street_2: img_id: 1 is another image's number, too; leave img_id out\n"


def test_a_crowd_stays_a_crowd(hoicli: Hoicli, tmp_path: Path) -> None:
    names = [{"id": 1, "name": "person"}, {"id": 2, "name": "kite"}]
    box: dict[str, Any] = {"image_id": 1, "bbox": [1, 0, 9, 9]}
    boxes = [{"id": at, "category_id": 1 + at % 2, "iscrowd": at // 2, **box} for at in (1, 2)]
    relation = {"id": 1, "image_id": 1, "subject_id": 2, "object_id": 1, "predicate_id": 1}
    content = {"images": [{"id": 1, "file_name": "a.jpg"}], "categories": names, "annotations": boxes}
    content |= {"rel_categories": [{"id": 1, "name": "fly"}], "rel_annotations": [relation]}
    result = hoicli("convert", dumped(tmp_path / "gt.json", content))
    assert parsed(result.out)[0]["iscrowd"] == [False, True]
    assert "1 relations are of a crowd's box (iscrowd)" in result.err
    (tmp_path / "gt.jsonl").write_text(result.out)
    back = hoicli("convert", tmp_path / "gt.jsonl", "--to", "coco-rel", "-o", tmp_path / "back.json")
    assert back.code == 0
    assert [row["iscrowd"] for row in json.loads((tmp_path / "back.json").read_text())["annotations"]] == [0, 1]
    lost = hoicli("convert", tmp_path / "gt.jsonl", "--to", "hoia", "-o", tmp_path / "lost.json")
    assert "left out: iscrowd (the format has no place for it): 1" in lost.err
