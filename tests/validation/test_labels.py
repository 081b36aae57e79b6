"""What `validate` says of a dump that was read in the wrong way: the fixtures, mangled as people mangle them."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import orjson
import pytest

from hoicli.validation.stream import Checking, validate_images
from hoicli.vocabulary.datasets import VCOCO_ORDERS, load, verb_and_role
from tests.support.kernel import stream
from tests.support.project import EIGHT, FIXTURES, GT, Data, Hoicli, Record, parsed, written

HICO, SWIG = load("hico"), load("swig")
NEW = {
    "another-dataset", "another-object-order", "another-verb-numbering", "classes-not-annotated",
    "another-image-size", "boxes-off-ground-truth",
}  # fmt: skip

Box = list[float]


TRUTH, PREDICTIONS = parsed((GT).read_text()), parsed((EIGHT / "predictions.jsonl").read_text())
SIZES = {record["image_id"]: (record["width"], record["height"]) for record in TRUTH}


def checked(found: list[Record], truth: list[Record] | None = None, dataset: str = "hico") -> Checking:
    vocabulary = load(dataset)
    images = None if truth is None else validate_images(stream(truth, "gt"), vocabulary, facts=True).facts
    return validate_images(stream(found, "p"), vocabulary, truth=images)


def news(validator: Checking) -> dict[str, str]:
    """The findings of these tests' kind, with their examples."""
    return {finding.check: finding.example for finding in validator.findings if finding.check in NEW}


def renamed(labels: Mapping[str, str], verbs: Mapping[str, str]) -> list[Record]:
    """The predictions with other names; those without one keep theirs."""
    found = copy.deepcopy(PREDICTIONS)
    for record in found:
        record["labels"] = [labels.get(label, label) for label in record["labels"]]
        for hoi in record["hois"]:
            hoi["verb"] = verbs.get(hoi["verb"], hoi["verb"])
    return found


def test_good_streams_give_no_cause() -> None:
    for truth in (None, TRUTH):
        validator = checked(PREDICTIONS, truth)
        assert news(validator) == {}
        assert validator.verdict == "labels of hico, as they are"
    assert checked(TRUTH).verdict == "labels of hico, as they are"


def test_published_dumps_give_no_cause(hoicli: Hoicli, shared: Path, hico_test: Path, tmp_path: Path) -> None:
    for name in ("predictions_cdn", "predictions_inpcc"):
        path = tmp_path / f"{name}.jsonl"
        assert hoicli("convert", shared / f"golden/hico-500/{name}.json.gz", "-o", path).code == 0
        result = hoicli("validate", "--gt", hico_test, path)
        assert not {json.loads(line)["check"] for line in result.out.splitlines()} & NEW
        assert result.err.endswith("labels of hico, as they are\n")


def test_labels_that_no_dataset_has(hoicli: Hoicli, tmp_path: Path) -> None:
    hois = [{"subject": 0, "object": 1, "verb": "ride"}]
    record = {"image_id": "a", "boxes": [[0, 0, 9, 9]] * 2, "labels": ["digger", "dozer"], "hois": hois}
    result = hoicli("validate", written(tmp_path / "gt.jsonl", [record]))
    assert result.err.endswith("; most labels are none of hico\n")


COCO, ALPHABETICAL, VERBS = HICO.objects, HICO.alphabetical_objects, HICO.verbs
BY_ID = {number: name for name, number in HICO.coco_ids.items()}
AS_PLACES = {BY_ID[number]: name for number, name in enumerate(COCO) if number in BY_ID}


@pytest.mark.parametrize(("labels", "verbs", "what"), [
    (dict(zip(ALPHABETICAL, COCO, strict=True)), {}, "objects, in alphabetical order, were read in COCO order"),
    (dict(zip(COCO, ALPHABETICAL, strict=True)), {}, "objects, in COCO order, were read in alphabetical order"),
    (AS_PLACES, {}, "objects, COCO ids 1-90, were read as places 0-79"),
    (dict(pairwise(COCO)), {}, "objects, counted from 1, were read from 0"),
    ({}, dict(pairwise(VERBS)), "verbs, counted from 1, were read from 0"),
    ({}, dict(zip(VERBS[1:], VERBS, strict=False)), "verbs, counted from 0, were read from 1"),
])  # fmt: skip
def test_a_wrong_order_is_named_without_ground_truth(labels: dict[str, str], verbs: dict[str, str], what: str) -> None:
    check = "another-verb-numbering" if verbs else "another-object-order"
    for truth in (None, TRUTH):
        validator = checked(renamed(labels, verbs), truth)
        assert set(news(validator)) == {check}
        assert news(validator)[check].endswith(f"% of the triplets are hico interactions, 100% if {what}")
        assert validator.verdict == f"labels of hico, if {what}"


def test_few_triplets_are_told_by_the_ground_truth() -> None:
    """Too few to say what share of them are interactions; but hardly one is annotated where it is predicted."""
    found = renamed(AS_PLACES, {})
    for record in found:
        record["hois"] = sorted(record["hois"], key=lambda hoi: -hoi["score"])[:1]
    assert news(checked(found)) == {}
    (example,) = news(checked(found, TRUTH)).values()
    best = "the best prediction is of an annotated class in 0 of 6 images"
    assert example == f"p: {best}, in 5 if objects, COCO ids 1-90, were read as places 0-79"


def test_classes_that_are_nowhere_annotated() -> None:
    """Good interactions, of other images."""
    found = copy.deepcopy(PREDICTIONS)
    for record in found:
        record["labels"] = ["person" if label == "person" else "elephant" for label in record["labels"]]
        record["hois"] = [{**hoi, "verb": "hose"} for hoi in record["hois"]]
    text = "p: in 0 of 6 images the best prediction is of an annotated class"
    assert news(checked(found, TRUTH)) == {"classes-not-annotated": text}
    assert news(checked(found)) == {}


@pytest.mark.parametrize(("path", "dataset", "other"), [
    (FIXTURES / "swig" / "predictions.jsonl", "hico", "swig"),
    (FIXTURES / "swig" / "gt.jsonl", "vcoco", "swig"),
    (EIGHT / "predictions.jsonl", "swig", "hico"),
    (EIGHT / "predictions.jsonl", "vcoco", "hico"),
])  # fmt: skip
def test_labels_of_another_dataset(hoicli: Hoicli, path: Path, dataset: str, other: str) -> None:
    validator = checked(parsed(path.read_text()), dataset=dataset)
    example = news(validator)["another-dataset"]
    assert example.startswith(f"p: {other} knows 100% of the triplets' names, {dataset} ")
    assert example.endswith(f"%: --dataset {other}")
    assert validator.verdict == f"labels of {other}"
    result = hoicli("validate", "--dataset", dataset, path)
    assert result.code == 1
    assert result.err.endswith(f"; labels of {other}\n")
    assert hoicli("validate", "--dataset", other, path).code == 0


# V-COCO: no list says which objects go with an action, so the ground truth has to
POCKET = tuple(entry for entry in VCOCO_ORDERS["qpic"] if verb_and_role(entry)[1] and entry != "point_instr")


def vcoco(swap: Mapping[str, str]) -> Data:
    """(truth, predictions) of ten images; each action meant -> as it is read."""
    entries = [entry for entry in VCOCO_ORDERS["qpic"] if verb_and_role(entry)[1]]
    truth, predictions = [], []
    for number, entry in enumerate(entries[:10]):
        (verb, role), (said, said_role) = verb_and_role(entry), verb_and_role(swap.get(entry, entry))
        scene = {"image_id": number, "boxes": [[10, 10, 90, 190], [100, 20, 180, 80]], "labels": ["person", "cup"]}
        truth.append({**scene, "hois": [{"subject": 0, "object": 1, "verb": verb, "role": role}]})
        hoi = {"subject": 0, "object": 1 if said_role else None, "verb": said, "score": 0.5 + number / 100}
        predictions.append({**scene, "hois": [{**hoi, "role": said_role} if said_role else hoi]})
    return truth, predictions


@pytest.mark.parametrize(
    ("order", "read"), [("qpic", "ppdm"), ("ppdm", "qpic"), ("fredzzhang/vcoco", "qpic"), ("fredzzhang/vcoco", "ppdm")]
)
def test_the_orders_of_vcoco(order: str, read: str) -> None:
    truth, predictions = vcoco(dict(zip(VCOCO_ORDERS.get(order, POCKET), VCOCO_ORDERS[read], strict=False)))
    what = f"verbs, in the order of {order}, were read in that of {read}"
    validator = checked(predictions, truth, "vcoco")
    assert set(news(validator)) == {"another-verb-numbering"}
    assert news(validator)["another-verb-numbering"].endswith(f"in 10 if {what}")
    assert validator.verdict == f"labels of vcoco, if {what}"


def with_boxes(change: Callable[[Box, float, float], Box]) -> list[Record]:
    found = copy.deepcopy(PREDICTIONS)
    for record in found:
        record["boxes"] = [change(box, *SIZES[record["image_id"]]) for box in record["boxes"]]
    return found


def scaled(x: float, y: float, box: Box) -> Box:
    return [box[0] * x, box[1] * y, box[2] * x, box[3] * y]


@pytest.mark.parametrize(("change", "what"), [
    (lambda b, *_: [b[0], b[1], b[2] - b[0], b[3] - b[1]], "[x, y, w, h] (hoicli convert --box-form xywh)"),
    (lambda b, *_: [(b[0] + b[2]) / 2, (b[1] + b[3]) / 2, b[2] - b[0], b[3] - b[1]],
     "[cx, cy, w, h] (hoicli convert --box-form cxcywh)"),
    (lambda b, *_: [b[0], b[2], b[1], b[3]], "[x1, x2, y1, y2]"),
    (lambda b, *_: [b[1], b[0], b[3], b[2]], "[y1, x1, y2, x2]"),
    (lambda b, *_: [b[2], b[3], b[0], b[1]], "[x2, y2, x1, y1]"),
    (lambda b, w, h: scaled(1 / w, 1 / h, b), "parts of the image's sides (0-1)"),
    (lambda b, w, h: scaled(1000 / w, 1000 / h, b), "thousandths of the image's sides"),
    (lambda b, w, h: scaled(h / w, w / h, b), "scaled with height and width exchanged"),
    (lambda b, w, h: scaled(512 / min(w, h), 512 / min(w, h), b), "pixels of a copy with a short side of 512"),
    (lambda b, w, h: scaled(min(800 / min(w, h), 1333 / max(w, h)), min(800 / min(w, h), 1333 / max(w, h)), b),
     "pixels of a copy with a short side of 800, at most 1333 long"),
    (lambda b, w, h: scaled(224 / w, 224 / h, b), "pixels of a copy of 224 x 224"),
    (lambda b, w, h: scaled(448 / w, 448 / h, b), "pixels of a copy of 448 x 448"),
    (lambda b, *_: scaled(2.1, 2.1, b), "pixels of a copy of another size"),
])  # fmt: skip
def test_another_convention_is_named(change: Callable[[Box, float, float], Box], what: str) -> None:
    example = news(checked(with_boxes(change), TRUTH))["boxes-off-ground-truth"]
    assert example.endswith(f"if they are {what}")


def test_boxes_that_are_nowhere() -> None:
    found = with_boxes(lambda box, *_: [side + 2000 for side in box])
    text = "p: 0 of the 12 boxes of best predictions meet an annotated box"
    assert news(checked(found, TRUTH)) == {"boxes-off-ground-truth": text}


def test_a_copy_of_the_images_says_its_size() -> None:
    """SWIG-HOI: the ground truth is of images with a short side of 512, these predictions of the originals."""
    truth = parsed((FIXTURES / "swig" / "gt.jsonl").read_text())
    predictions = parsed((FIXTURES / "swig" / "predictions.jsonl").read_text())
    assert news(checked(predictions, truth, "swig")) == {}
    factors = {"juggling_12": 2.5, "flicking_5": 3.1, "leading_80": 1.9, "hugging_12": 4.0}
    for record in predictions:
        factor = factors[record["image_id"]]
        record["boxes"] = [scaled(factor, factor, box) for box in record["boxes"]]
    predictions += [{**copy.deepcopy(predictions[0]), "image_id": "kicking_3", "width": 1820, "height": 1024}]
    found = news(checked(predictions, truth, "swig"))
    assert found["another-image-size"] == "p:5: 'kicking_3' has 1820 x 1024, in the ground truth 910 x 512"
    assert found["boxes-off-ground-truth"].endswith("if they are pixels of a copy of another size")


def renumbered(path: Path, objects: Callable[[int], int], verbs: Callable[[int], int]) -> None:
    """A CDN list whose numbers count otherwise."""
    items = orjson.loads(path.read_bytes())
    for item in items:
        for box in item["predictions"]:
            box["category_id"] = objects(box["category_id"])
        for hoi in item["hoi_prediction"]:
            hoi["category_id"] = verbs(hoi["category_id"])
    path.write_bytes(orjson.dumps(items))


def same(number: int) -> int:
    return number


@pytest.mark.parametrize(("objects", "verbs", "option"), [
    (lambda n: ALPHABETICAL.index(COCO[n]), same, ("--object-order", "alphabetical")),
    (lambda n: n + 1, same, ("--object-order", "coco-1")),
    (lambda n: HICO.coco_ids[COCO[n]], same, ("--object-order", "coco-id")),
    (same, lambda n: n + 1, ("--verb-base", "1")),
])  # fmt: skip
def test_what_validate_finds_convert_fixes(
    objects: Callable[[int], int], verbs: Callable[[int], int], option: tuple[str, str], hoicli: Hoicli, tmp_path: Path
) -> None:
    """A dump of the numbers that both numberings have; the option that validate names gives back what it says."""
    numbers = {number for number in range(80) if objects(number) < 80}
    kept, dump, found = tmp_path / "kept.jsonl", tmp_path / "dump.json", tmp_path / "found.jsonl"
    small = [record for record in PREDICTIONS if {COCO.index(label) for label in record["labels"]} <= numbers]
    small = [record for record in small if all(HICO.verb_ids[hoi["verb"]] < 116 for hoi in record["hois"])]
    assert len(small) >= 5
    kept.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in small))
    assert hoicli("convert", kept, "--to", "cdn-json", "-o", dump).code == 0
    good = hoicli("convert", dump).out
    renumbered(dump, objects, verbs)
    assert hoicli("convert", "--dataset", "hico", dump, "-o", found).code == 0
    rows = parsed(hoicli("validate", "--gt", GT, found).out)
    fix = f"convert the file again with {' '.join(option)}: as it is, mAP will be near zero"
    assert fix in {row["fix"] for row in rows}
    assert hoicli("convert", *option, dump).out == good != found.read_text()
