"""Ground truth written in the layouts that training code reads: HOI-A's (PPDM, QPIC), pocket's, and corre_*.npy."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import hoicli as library
from hoicli.vocabulary.datasets import load
from tests.support.project import EIGHT, FIXTURES, Hoicli, dumped, parsed, triplets_of
from tests.support.strategies import datasets

GT, PREDICTIONS, FOREIGN, OWN = EIGHT / "gt.jsonl", EIGHT / "predictions.jsonl", FIXTURES / "foreign", FIXTURES / "own"
HOIA = Path(__file__).parents[1] / "hostile/corpus/hoia.json"
LAYOUTS = ("hoia", "pocket")

Json = dict[str, Any]


def without(found: list[Json], *keys: str) -> list[Json]:
    return [{key: value for key, value in record.items() if key not in keys} for record in found]


def test_hico_det_as_its_projects_have_it(hoicli: Hoicli, tmp_path: Path) -> None:
    """The fixtures are written by makers of their own; one has some numbers as text, both lack what others have."""
    content: dict[str, Any] = {}
    for layout in LAYOUTS:
        path = tmp_path / layout
        result = hoicli("convert", GT, "--to", layout, "-o", path)
        assert "left out: image_hois (the format has no place for it): 8 (the first: image HICO_" in result.err
        assert hoicli("convert", path).out == "".join(
            json.dumps(record, separators=(",", ":")) + "\n" for record in without(parsed(GT.read_text()), "image_hois")
        )
        content[layout] = json.loads(path.read_text())
    expected = json.loads((FOREIGN / "test_hico.json").read_text().replace('\\n"', '"'))
    for image in expected:
        for box in image["annotations"]:
            box["category_id"] = int(box["category_id"])
    interactions = load("hico").interaction_ids
    for image, record in zip(content["hoia"], parsed(GT.read_text()), strict=True):
        numbers = [hoi.pop("hoi_category_id") for hoi in image["hoi_annotation"]]
        assert numbers == [interactions[verb, label] + 1 for _, verb, label, _ in triplets_in_order(record)]
    assert without(content["hoia"], "width", "height") == expected
    rare = content["pocket"].pop("rare")
    assert (len(rare), len(content["pocket"].pop("non_rare"))) == (138, 462)
    assert content["pocket"] == json.loads((FOREIGN / "instances_test2015.json").read_text())


def triplets_in_order(record: Json) -> list[tuple[int, str, str, int]]:
    return [(hoi["subject"], hoi["verb"], record["labels"][hoi["object"]], hoi["object"]) for hoi in record["hois"]]


def test_pocket_writes_the_order_of_objects_that_is_asked_for(hoicli: Hoicli, tmp_path: Path) -> None:
    """What is read back is the same; the note names the order and who reads it."""
    known, made = load("hico"), dict[str, Json]()
    for order, says in (
        ("alphabetical", "alphabetically (airplane 0"),
        ("coco", "in COCO's order (person 0), for UPT"),
    ):
        path = tmp_path / order
        result = hoicli("convert", GT, "--to", "pocket", "--to-object-order", order, "-o", path)
        assert (result.code, f"objects are numbered {says}" in result.err) == (0, True), result.err
        made[order] = json.loads(path.read_text())
        assert parsed(hoicli("convert", path).out) == without(parsed(GT.read_text()), "image_hois")
    assert made["coco"]["objects"] == [name.replace("_", " ") for name in known.objects]
    for number, object_, verb in made["coco"]["correspondence"]:
        assert (known.verbs[verb], known.objects[object_]) == known.interactions[number]
    assert made["coco"]["annotation"] != made["alphabetical"]["annotation"]
    usual = hoicli("convert", GT, "--to", "pocket", "-o", tmp_path / "usual")
    assert "alphabetically" in usual.err
    assert json.loads((tmp_path / "usual").read_text()) == made["alphabetical"]
    refused = hoicli("convert", GT, "--to", "hoia", "--to-object-order", "coco", "-o", tmp_path / "no")
    assert (refused.code, "--to-object-order coco is for --to pocket" in refused.err) == (2, True)


@given(datasets())
def test_what_is_written_is_read_again(made: tuple[list[Json], list[Json]]) -> None:
    sized = {"width": 20, "height": 20}
    truth = [{**one, "file_name": f"{one['image_id']}.jpg", **sized} for one in without(made[0], "image_hois")]
    with tempfile.TemporaryDirectory() as folder:
        for layout in LAYOUTS:
            path = f"{folder}/{layout}.json"
            library.convert(truth, to=layout, dataset="hico", output=path)
            back = list(library.convert(path, dataset="hico"))
            if layout == "hoia":
                assert back == truth
            else:
                classes = {(row["verb"], row["object"]) for row in library.vocab().rows}
                kept = [[pair for pair in triplets_of(record) if pair[1:3] in classes] for record in truth]
                assert list(map(triplets_of, back)) == kept


def test_hoi_a_has_edges_and_numbers_of_its_own(hoicli: Hoicli, tmp_path: Path) -> None:
    gt, back = tmp_path / "gt.jsonl", tmp_path / "train_hoia.json"
    assert hoicli("convert", "--dataset", "hoia", HOIA, "-o", gt).code == 0
    assert hoicli("convert", "--dataset", "hoia", gt, "--to", "hoia", "-o", back).code == 0
    assert hoicli("convert", "--dataset", "hoia", back).out == gt.read_text()
    written, original = json.loads(back.read_text()), json.loads(HOIA.read_text())
    assert [[box["bbox"] for box in image["annotations"]] for image in written] == [
        [box["bbox"] for box in image["annotations"]] for image in original
    ]
    refused = hoicli("convert", "--dataset", "hoia", gt, "--to", "pocket")
    assert (refused.code, "is of hoia, which --to pocket cannot hold" in refused.err) == (1, True)
    refused = hoicli("convert", "--dataset", "vcoco", FIXTURES / "vcoco/ground_truth.jsonl", "--to", "pocket")
    assert (refused.code, "is of vcoco, which --to pocket cannot hold" in refused.err) == (1, True)


@pytest.mark.parametrize("box", ["inclusive", "inclusive-1", "edges"])
@pytest.mark.parametrize("numbered", [False, True], ids=["by order", "numbered"])
def test_a_dataset_of_ones_own(box: str, numbered: bool, hoicli: Hoicli, tmp_path: Path) -> None:
    gt, dataset = OWN / "gt.jsonl", tmp_path / "own.json"
    content = json.loads((OWN / "site.json").read_text()) | {"box": box}
    if not numbered:
        content.pop("numbering")
    dataset.write_text(json.dumps(content))
    for layout in LAYOUTS:
        path = tmp_path / layout
        result = hoicli("convert", "--dataset", dataset, gt, "--to", layout, "-o", path)
        assert result.code == 0, result.err
        unsaid = layout == "hoia" and not numbered
        assert (f"numbered from 1 in the order of {dataset} (--object-order coco-1 reads them)" in result.err) == unsaid
        options = ("--object-order", "coco-1") if unsaid else ()
        back = parsed(hoicli("convert", "--dataset", dataset, path, *options).out)
        if layout == "hoia":
            assert back == parsed(gt.read_text())
        else:
            assert list(map(triplets_of, back)) == list(map(triplets_of, parsed(gt.read_text())))
            assert "left out: labels of subjects (they will be read as " in result.err


def test_which_verbs_go_with_which_objects(hoicli: Hoicli, tmp_path: Path) -> None:
    path, dataset = tmp_path / "corre.npy", tmp_path / "own.json"
    assert hoicli("convert", GT, "--to", "corre", "-o", path).code == 0
    assert np.array_equal(np.load(path), library.vocab().valid)
    content: Json = {"name": "own", "verbs": ["wear", "hold"], "objects": ["hat", "cup"], "subjects": ["man"]}
    content |= {"interactions": [["wear", "hat"], ["hold", "cup"], ["hold", "hat"]]}
    content |= {"aliases": {"mug": "cup"}, "numbering": {"objects": {"ids": {"man": 3, "hat": 2, "cup": 1}}}}
    dataset.write_text(json.dumps(content))
    one: Json = {"image_id": "a", "boxes": [[0, 0, 1, 1]] * 2, "labels": ["man", "mug"]}
    (tmp_path / "gt.jsonl").write_text(json.dumps({**one, "hois": [{"subject": 0, "object": 1, "verb": "wear"}]}))
    result = hoicli("convert", "--dataset", dataset, tmp_path / "gt.jsonl", "--to", "corre", "-o", path)
    assert "left out: triplets of no own interaction: 1 (the first: image a)" in result.err
    assert np.load(path).tolist() == [[0, 1, 0], [1, 1, 0]]  # cup, hat, man
    assert library.vocab(str(dataset)).valid.tolist() == [[True, False, False], [True, True, False]]  # no mug


def test_what_has_no_place_is_said(hoicli: Hoicli, tmp_path: Path) -> None:
    hois = [{"subject": 0, "object": 1, "verb": "ride"}, {"subject": 0, "object": 0, "verb": "ride"}]
    one: Json = {"image_id": "b", "file_name": "a.jpg", "boxes": [[0, 0, 9, 9], [1, 1, 5, 5], [2, 2, 3, 3]]}
    one |= {"labels": ["person", "horse", "cup"], "hois": hois, "crowd": True, "note": ""}
    path = dumped(tmp_path / "gt.jsonl", one)
    sizes = hoicli("convert", path, "--to", "pocket", "-o", tmp_path / "none.json")
    assert sizes.err == "image b: width: missing; the format states the size of every image\n"
    assert not (tmp_path / "none.json").exists()
    path.write_text(json.dumps({**one, "width": 10, "height": 10}))
    both = ["crowd (the format has no place for it)", "image ids that are not the names of their files"]
    alone = ["triplets of no hico interaction", "boxes without an interaction"]
    for layout, lost in (("hoia", both), ("pocket", both + alone)):
        told = hoicli("convert", path, "--to", layout, "-o", tmp_path / "made.json").err.splitlines()
        said = [f"hoicli: left out: {what}: 1 (the first: image b)" for what in lost]
        assert [line for line in told if "left out" in line] == said


def test_predictions_are_no_ground_truth(hoicli: Hoicli, tmp_path: Path) -> None:
    for layout in LAYOUTS:
        result = hoicli("convert", PREDICTIONS, "--to", layout, "-o", tmp_path / "none.json")
        assert (result.code, result.err.count("\n"), (tmp_path / "none.json").exists()) == (1, 1, False)
        assert f"hois[0].score: is there; --to {layout} writes ground truth (are these predictions?)" in result.err
