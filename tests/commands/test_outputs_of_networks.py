"""`hoicli.triplets`: what it does with outputs of networks, and what it refuses; triplets by interaction.

Numbers of released code are in tests/drop_in."""

from __future__ import annotations

import math
import tarfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hoicli
from hoicli.errors import HoicliError, HoicliWarning
from hoicli.vocabulary.datasets import load
from tests.support.kernel import arrays
from tests.support.project import FIXTURES, GT, PREDICTIONS, Record, complaint, records

FOUND = records(PREDICTIONS)
HICO, VCOCO = load("hico"), FIXTURES / "vcoco"


def outputs_of(rng: np.random.Generator, images: int, queries: int, *, matching: bool) -> Record:
    shapes = {"pred_obj_logits": 81, "pred_verb_logits": 117, "pred_sub_boxes": 4, "pred_obj_boxes": 4}
    shapes |= {"pred_matching_logits": 2} if matching else {}
    found: Record = {
        name: rng.normal(size=(images, queries, width)).astype(np.float32) for name, width in shapes.items()
    }
    for name in ("pred_sub_boxes", "pred_obj_boxes"):
        found[name] = 1 / (1 + np.exp(-found[name]))
    return found


def slow(outputs: Record, row: int, size: tuple[int, int], top_k: int) -> list[tuple[Any, ...]]:
    """(score, verb, object, the pair's boxes) of the best triplets, in plain Python."""
    classes, found = set(load("hico").interactions), []
    verbs, objects = load("hico").verbs, load("hico").objects
    for query in range(outputs["pred_obj_logits"].shape[1]):
        powers = [math.exp(logit) for logit in outputs["pred_obj_logits"][row, query].tolist()]
        label = max(range(80), key=powers.__getitem__)
        sure = powers[label] / sum(powers)
        if "pred_matching_logits" in outputs:
            no, yes = map(math.exp, outputs["pred_matching_logits"][row, query].tolist())
            sure *= yes / (no + yes)
        edges = []
        for name in ("pred_sub_boxes", "pred_obj_boxes"):
            x, y, width, height = outputs[name][row, query].tolist()
            box = x - width / 2, y - height / 2, x + width / 2, y + height / 2
            edges += [edge * size[1 - at % 2] for at, edge in enumerate(box)]
        for verb, logit in enumerate(outputs["pred_verb_logits"][row, query].tolist()):
            if (verbs[verb], objects[label]) in classes:
                found.append((sure / (1 + math.exp(-logit)), verb, label, edges))
    return sorted(found, key=lambda one: -one[0])[:top_k]


@pytest.mark.parametrize("matching", [False, True])
def test_outputs_of_queries_are_triplets(*, matching: bool) -> None:
    """As QPIC and CDN compute them, written out; and a network of random weights ends no training."""
    rng, sizes = np.random.default_rng(5), [(480, 640), (427, 500), (300, 200)]
    outputs = outputs_of(rng, 3, 7, matching=matching)
    evaluator = hoicli.Evaluator(GT, "hico")
    for row, found in enumerate(hoicli.triplets(outputs, sizes, top_k=20, matching=matching or None)):
        wanted = slow(outputs, row, sizes[row], 20)
        assert found["verb"].tolist() == [verb for _, verb, _, _ in wanted]
        assert found["labels"][found["object"]].tolist() == [label for _, _, label, _ in wanted]
        assert found["score"] == pytest.approx([score for score, *_ in wanted], rel=1e-12)
        assert not found["labels"][found["subject"]].any()  # people
        pairs = np.hstack([found["boxes"][found["subject"]], found["boxes"][found["object"]]])
        assert pairs == pytest.approx(np.array([edges for *_, edges in wanted]), rel=1e-12)
        evaluator.update(FOUND[row]["image_id"], **found)
    assert evaluator.compute().rows


@pytest.mark.parametrize(("changed", "message"), [
    ({"pred_verb_logits": None}, "pred_verb_logits: missing; a model's outputs have pred_obj_logits, pred_verb_lo"),
    ({"pred_obj_logits": np.zeros((2, 3, 80))}, "pred_obj_logits: has shape (2, 3, 80), wants (images, quer"),
    ({"pred_sub_boxes": np.zeros((2, 4, 4))}, "pred_sub_boxes: has shape (2, 4, 4), wants (2, 3, 4)"),
    ({"pred_verb_logits": np.full((2, 3, 117), np.nan)}, "pred_verb_logits[0, 0, 0]: nan: numbers must be finite"),
    ({"sizes": [(1, 2)]}, "sizes: has shape (1, 2), wants (2, 2): height and width of each image in pixels"),
    ({"sizes": [(0, 2), (1, 2)]}, "sizes: has shape (2, 2), wants (2, 2): height and width of"),
    ({"dataset": "vcoco"}, "pred_obj_logits: has shape (2, 3, 81), wants (images, queries, 82)"),
    ({"matching": True}, "pred_matching_logits: missing; a model's outputs have pred_obj_logits, pred_verb_logits"),
    ({"correct_mat": np.ones((29, 80))}, "correct_mat: not with hico, whose classes say the same; leave it out"),
    ({"last_pixels": True}, "last_pixels: not with outputs of queries; leave it out"),
    ({"pred_hoi_logits": np.zeros((2, 3, 600))}, "pred_hoi_logits: beside pred_verb_logits; leave out the one"),
    ({"top_k": "many"}, "top_k='many': give a number from 1, or \"all\""),
    ({"pairing": "rows"}, 'pairing=\'rows\': give "2xP" (UPT) or "Px2" (PViC)'),
    ({"top_k": 0}, "top_k=0: give a number from 1"),
])  # fmt: skip
def test_outputs_that_are_none(changed: Record, message: str) -> None:
    outputs = outputs_of(np.random.default_rng(0), 2, 3, matching=False)
    options = {"sizes": [(4, 4), (4, 4)]} | {name: value for name, value in changed.items() if "pred" not in name}
    outputs |= {name: value for name, value in changed.items() if "pred" in name}
    with pytest.raises(HoicliError) as caught:
        hoicli.triplets({name: value for name, value in outputs.items() if value is not None}, **options)
    assert str(caught.value).startswith(message)


def test_a_factor_of_scores_that_was_not_chosen_is_a_warning() -> None:
    outputs = outputs_of(np.random.default_rng(1), 1, 3, matching=True)
    with pytest.warns(HoicliWarning, match="^pred_matching_logits are not a factor of the scores .QPIC; CDN without"):
        found = hoicli.triplets(outputs, [(4, 4)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        without, multiplied = (hoicli.triplets(outputs, [(4, 4)], matching=choice) for choice in (False, True))
    assert found[0]["score"].tolist() == without[0]["score"].tolist() != multiplied[0]["score"].tolist()


def pairs(pairing: Any, /, **changes: Any) -> Record:
    """UPT's dictionary for an image of four boxes, with a pair for each triplet."""
    count = max(np.shape(pairing)) if np.size(pairing) else 0
    return {
        "boxes": np.arange(16, dtype=np.float32).reshape(4, 4), "pairing": np.array(pairing, dtype=np.int64),
        "scores": np.linspace(0.9, 0.1, count), "labels": np.full(count, HICO.verb_ids["ride"]),
        "objects": np.full(count, HICO.object_ids["horse"]), "size": np.array([800, 1200]), **changes,
    }  # fmt: skip


def boxes_of_pairs(found: Record) -> list[tuple[list[float], list[float]]]:
    boxes = found["boxes"].tolist()
    return [(boxes[a], boxes[b]) for a, b in zip(found["subject"], found["object"], strict=True)]


@pytest.mark.parametrize(("pairing", "others", "options", "expected"), [
    ([[0, 1, 1], [2, 2, 3]], [], {}, [(0, 2), (1, 2), (1, 3)]),
    ([[0, 2], [1, 2], [1, 3]], [], {}, [(0, 2), (1, 2), (1, 3)]),
    ([[0, 1], [2, 3]], [], {"pairing": "2xP"}, [(0, 2), (1, 3)]),
    ([[0, 1], [2, 3]], [], {"pairing": "Px2"}, [(0, 1), (2, 3)]),
    ([[0, 1], [2, 3]], [[[0, 1, 1], [2, 2, 3]]], {}, [(0, 2), (1, 3)]),  # as the other images say
    ([[0, 1], [2, 3]], [[[0, 2], [1, 2], [1, 3]]], {}, [(0, 1), (2, 3)]),
    ([[0, 0], [2, 3]], [], {}, [(0, 2), (0, 3)]),  # no box is paired with itself
    ([[0, 2], [0, 3]], [], {}, [(0, 2), (0, 3)]),
    ([[0, 2], [2, 0]], [], {}, [(0, 2), (2, 0)]),  # the same in both forms
    (np.zeros((0, 2)), [], {}, []),
    (np.zeros((2, 0)), [], {}, []),
])  # fmt: skip
def test_pairs_in_rows_or_columns(pairing: Any, others: list[Any], options: Record, expected: Any) -> None:
    outputs = [pairs(pairing), *map(pairs, others)]
    found = hoicli.triplets(outputs, [(400, 600)] * len(outputs), **options)[0]
    boxes = (pairs(pairing)["boxes"] / 2).tolist()
    assert boxes_of_pairs(found) == [(boxes[a], boxes[b]) for a, b in expected]
    assert {*found["labels"][found["object"]].tolist()} <= {HICO.object_ids["horse"]}


def test_the_best_of_pairs() -> None:
    output = pairs([[0, 1, 1], [2, 2, 3]], scores=np.array([0.2, 0.5, 0.2]))
    found = hoicli.triplets([output], [(400, 600)], top_k=2)[0]
    assert found["score"].tolist() == [0.2, 0.5]
    assert len(boxes_of_pairs(found)) == 2


@pytest.mark.parametrize(("changed", "message"), [
    ({"boxes": None}, "outputs[0].boxes: missing; an image has boxes, pairing, scores, labels, objects, size"),
    ({"pairing": np.zeros((3, 3), dtype=int)}, "outputs[0].pairing: has shape (3, 3) and dtype int64, wants integ"),
    ({"pairing": np.array([[0, 1, 1], [2, 2, 4]])}, "outputs[0].pairing: has a row outside 0 to 3, the image's"),
    ({"labels": np.array([0, 117, 0])}, "outputs[0].labels[1]: number 117, but there are 117 verbs"),
    ({"objects": np.array([0, 0, -1])}, "outputs[0].objects[2]: number -1, but there are 80 objects in COCO's"),
    ({"objects": np.array([0, 0])}, "outputs[0].objects: 2 values for 3 scores"),
    ({"labels": np.zeros(3)}, "outputs[0].labels: has dtype float64, wants integers: numbers of verbs"),
    ({"size": np.zeros(2)}, "outputs[0].size: has shape (1, 2), wants (1, 2): height and width of each image"),
])  # fmt: skip
def test_pairs_that_are_none(changed: Record, message: str) -> None:
    output = {key: value for key, value in pairs([[0, 1, 1], [2, 2, 3]], **changed).items() if value is not None}
    assert complaint(HoicliError, hoicli.triplets, [output], [(400, 600)]).startswith(message)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: hoicli.triplets([pairs([[0, 1], [2, 3]])], [(4, 6)]),
     "outputs[0].pairing: shape (2, 2) may be two pairs in either form; say pairing='2xP' (UPT) or 'Px2' (PViC)"),
    (lambda: hoicli.triplets([pairs([[0, 1, 1], [2, 2, 3]])], [(4, 6)], pairing="Px2"),
     "outputs[0].pairing: has shape (2, 3), but pairing='Px2'"),
    (lambda: hoicli.triplets([pairs([[0], [2]])], [(4, 6)], matching=True),
     "matching: not with UPT's lists of dictionaries; leave it out"),
    (lambda: hoicli.triplets([pairs([[0], [2]])], [(4, 6)], dataset="vcoco", last_pixels=True),
     "last_pixels: not with V-COCO, whose boxes"),
    (lambda: hoicli.triplets([None], [(4, 6)]), "outputs[0].boxes: missing; an image has boxes, pairing, scores"),
    (lambda: hoicli.triplets(3, [(4, 6)]), "outputs: is int; give a model's outputs by name, or a list of UPT's"),
    (lambda: hoicli.triplets([], [(4, 6)]), "sizes: has shape (1, 2), wants (0, 2): height and width of each"),
])  # fmt: skip
def test_calls_that_cannot_be(call: Any, message: str) -> None:
    assert complaint(HoicliError, call).startswith(message)


def test_what_upt_s_test_hico_printed(shared: Path, tmp_path: Path) -> None:
    """Its --eval, from boxes of the detector; the .mat files of the same run hold last pixels."""
    folder = shared / "golden/released-dumps"
    with tarfile.open(folder / "upt_matlab.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    truth = folder / "hico_gt.jsonl"
    evaluator = hoicli.Evaluator(truth, "upt")
    for record in hoicli.convert(tmp_path / "upt_matlab", image_list=truth):
        boxes, hois = np.array(record["boxes"]).reshape(-1, 4) + np.array([0, 0, 1, 1]), record["hois"]
        output = {
            "boxes": boxes * 2, "size": [2 * record.get("height", 400), 2 * record.get("width", 600)],
            "pairing": np.array([[hoi[side] for hoi in hois] for side in ("subject", "object")]).reshape(2, -1),
            "scores": [hoi["score"] for hoi in hois], "labels": [HICO.verb_ids[hoi["verb"]] for hoi in hois],
            "objects": [HICO.object_ids[record["labels"][hoi["object"]]] for hoi in hois],
        }  # fmt: skip
        (found,) = hoicli.triplets([output], np.array(output["size"])[np.newaxis] / 2, pairing="2xP")
        evaluator.update(record["image_id"], **found)
    printed = evaluator.compute().to_dict()
    assert [round((printed[f"upt/mAP/{subset}"] or 0.0) / 100, 4) for subset in ("full", "rare", "non_rare")] == [
        0.0127, 0.0, 0.0165,
    ]  # fmt: skip


def interaction_rows(record: Record) -> list[list[float]]:
    """The triplets of a record as INP-CC has them."""
    boxes, labels = record["boxes"], record["labels"]
    return [
        [HICO.interaction_ids[hoi["verb"], labels[hoi["object"]]], hoi["score"], *boxes[hoi["subject"]],
         *boxes[hoi["object"]]]
        for hoi in record["hois"]
    ]  # fmt: skip


def test_rows_of_interactions_are_predictions() -> None:
    by_image: Record = {record["image_id"]: interaction_rows(record) for record in FOUND}
    as_arrays: Record = {name: np.array(rows, dtype=np.float64).reshape(-1, 10) for name, rows in by_image.items()}
    expected = hoicli.evaluate(GT, FOUND, protocol="hico").rows
    for given in (by_image, as_arrays):
        assert hoicli.evaluate(GT, given, protocol="hico").rows == expected
    compared = hoicli.compare(GT, [by_image, as_arrays], errors=False).rows
    assert {row["value"] for row in compared if row["metric"] == "mAP_diff"} == {0.0}


def test_interactions_with_labels_and_without() -> None:
    evaluators = [hoicli.Evaluator(GT, "hico") for _ in range(3)]
    for record in FOUND:
        given = arrays(record)
        label = [record["labels"][hoi["object"]] for hoi in record["hois"]]
        verbs = [hoi["verb"] for hoi in record["hois"]]
        number = np.array([HICO.interaction_ids[pair] for pair in zip(verbs, label, strict=True)], dtype=np.int64)
        for evaluator, left_out in zip(evaluators, ((), ("verb",), ("verb", "labels")), strict=True):
            kept = {name: value for name, value in given.items() if name not in left_out}
            evaluator.update(record["image_id"], **kept | ({"interaction": number} if left_out else {}))
    rows = [evaluator.compute().rows for evaluator in evaluators]
    assert rows[0] == rows[1] == rows[2]


def test_a_box_of_two_objects_is_there_twice() -> None:
    ride = [HICO.interaction_ids["ride", name] for name in ("bicycle", "horse")]
    image: Record = {"boxes": [[0, 0, 9, 9], [5, 5, 20, 20], [1, 1, 2, 2]], "subject": [0, 0], "object": [1, 1]}
    evaluator = hoicli.Evaluator(GT)
    evaluator.update(FOUND[0]["image_id"], **image, interaction=ride, score=[0.5, 0.4])
    state = evaluator.state()
    assert state["labels"].tolist() == [0, HICO.object_ids["bicycle"], HICO.object_ids["horse"]]
    assert state["boxes"].tolist() == [[0, 0, 9, 9], [5, 5, 20, 20], [5, 5, 20, 20]]
    assert (state["subject"].tolist(), state["object"].tolist()) == ([0, 0], [1, 2])


@pytest.mark.parametrize(("changed", "message"), [
    ({"interaction": [600, 0]}, "interaction[0]: number 600, but there are 600 interactions in hico (see"),
    ({"interaction": [0.5, 1]}, "interaction: has dtype float64, wants integers: numbers of interactions"),
    ({"interaction": [1]}, "interaction: 1 values for 2 triplets (`subject` has 2)"),
    ({"verb": [1, 2]}, "interaction: give interaction or verb, not both"),
    ({"labels": ["person", "bicycle"]}, "interaction[0]: 1 is direct airplane, but the box's label is bicycle"),
    ({"subject": [0, 5]}, "subject[1]: index 5, but the image has 2 boxes; indices are 0-based"),
    ({"boxes": [[0, 0, 1]]}, "boxes: has shape (1, 3), wants (n, 4)"),
    ({"score": [1.0]}, "score: 1 values for 2 triplets"),
])  # fmt: skip
def test_interactions_that_are_none(changed: Record, message: str) -> None:
    given = {"boxes": [[0, 0, 9, 9], [5, 5, 20, 20]], "subject": [0, 0], "object": [1, 1], "score": [0.5, 0.4]}
    given |= {"interaction": [1, 2]} | changed
    with pytest.raises(HoicliError) as caught:
        hoicli.Evaluator(GT).update(FOUND[0]["image_id"], **given)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f'update("{FOUND[0]["image_id"]}"): {message}')


@pytest.mark.parametrize(("rows", "message"), [
    ([[1, 2]], "has shape (1, 2) and dtype int64, wants rows of 10 numbers: interaction, score, the four numbers"),
    ([[0.5] * 10], "[0]: 0.5 is no interaction; they are whole numbers"),
    ([[3] * 10, [float("nan")] * 10], "[1]: NaN is no interaction; they are whole numbers"),
    ([[900.0] * 10], "interaction[0]: number 900, but there are 600 interactions in hico"),
    ([[3.0, float("nan"), *range(8)]], "score[0]: NaN is no score; give a finite number"),
])  # fmt: skip
def test_rows_that_are_none(rows: Any, message: str) -> None:
    assert complaint(HoicliError, hoicli.evaluate, GT, {"a": rows}).startswith(f"predictions['a']: {message}")


def test_ground_truth_and_vcoco_are_no_rows_of_interactions() -> None:
    rows: Record = {"a": [[0] * 10]}
    with pytest.raises(HoicliError, match=r"^gt\['a'\]: list, not a dict of arrays"):
        hoicli.evaluate(rows, FOUND)
    with pytest.raises(HoicliError, match=r"^predictions\['a'\]: interaction: vcoco has roles; give verb and role"):
        hoicli.evaluate(VCOCO / "ground_truth.jsonl", rows, dataset="vcoco")
