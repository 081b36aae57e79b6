"""Scene graphs as COCO with rel_annotations: in, out, and what is told about broken files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import EIGHT, GRAPHS, Hoicli, changed, dumped, parsed, refusal, saved

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
    content["images"][0] |= {"camera": "north", "night": True, "tags": ["a"]}
    first = json.loads(hoicli("convert", saved(tmp_path / "coco.json", json.dumps(content))).out.splitlines()[0])
    assert (first["camera"], first["night"], "tags" in first, "file_name" in first) == ("north", True, False, True)


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
        result = hoicli("convert", *options, FILE)
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith(f"{FILE}: categories[2].name: unknown object 'hat'; ")
    assert hoicli("convert", GT).err.startswith(f"{GT}:1: labels[2]: unknown object 'street'; ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda content: content["images"][1].update(id=1),
            ": images[1].id: 1 is the id of another one, too; give each its own",
        ),
        (
            lambda content: content["annotations"][1].update(bbox=[1, 2, 3, float("nan")]),
            ": image street_1: boxes[1]: [1, 2, 4, NaN] is no box; give four finite numbers [x1, y1, x2, y2]",
        ),
        (
            lambda content: content["annotations"][1].update(category_id=99),
            ": images[0]: annotations[1].category_id: 99 is the id of no category; correct what wrote it",
        ),
        (
            lambda content: content["rel_annotations"][1].update(score=0.5),
            ": images[0]: rel_annotations[0].score: missing, though other relations have one; give all or none",
        ),
    ],
)
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
