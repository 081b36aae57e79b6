"""The files of the further datasets: what their numbers and boxes mean, in every container, and what is refused; and
SWIG-HOI: the vocabulary, its files, and the protocol, by hand and against the slow evaluator."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.io import savemat

from hoicli.evaluation.evaluating import match_batches
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.tally import Tally
from hoicli.records.intake import ErrorPolicy
from hoicli.records.reading import concatenate, read_scenes
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import normalise
from tests.support import reference, strategies
from tests.support.kernel import lines
from tests.support.project import (
    FIXTURES,
    GT,
    Data,
    Hoicli,
    Record,
    changed,
    dumped,
    parsed,
    refusal,
    saved,
    triplets_of,
    without_gt,
)

HICO = load("hico")
SCORES = np.random.default_rng(15).integers(0, 200, (8, 600)).astype(np.uint8)
SCORES[-1, -1] = ord(".")  # a pickle ends so, too
IMAGES = str(GT)  # eight


def test_hoi_a_counts_from_one_and_its_boxes_are_edges(hoicli: Hoicli, tmp_path: Path) -> None:
    item = {
        "file_name": "test_000000.png",
        "annotations": [
            {"bbox": [0, 5, 640, 480], "category_id": "1\n"},
            {"bbox": [9, 9, 20, 30], "category_id": "11"},
        ],
        "hoi_annotation": [{"subject_id": 0, "object_id": 1, "category_id": 10}],
    }
    path = dumped(tmp_path / "test_hoia.json", [item])
    (record,) = parsed(hoicli("convert", "--dataset", "hoia", path).out)
    assert record["boxes"] == [[0, 5, 639, 479], [9, 9, 19, 29]]
    assert record["labels"] == ["person", "document"]
    assert record["hois"] == [{"subject": 0, "object": 1, "verb": "play_computer"}]
    item["hoi_annotation"] = [{"subject_id": 0, "object_id": 1, "category_id": 11}]
    path.write_text(json.dumps([item]))
    said = refusal(hoicli("convert", "--dataset", "hoia", path))
    assert "[0].hoi_annotation[0].category_id: id 11 is none of hoia's verbs" in said


def test_hico_det_sg_is_read_as_hico_det(hoicli: Hoicli) -> None:
    path = FIXTURES / "foreign/test_hico.json"
    assert hoicli("convert", "--dataset", "hico-det-sg", path).out == hoicli("convert", path).out


def written(folder: Path, kind: str) -> Path:
    path = folder / f"scores.{kind}"
    if kind == "npy":
        np.save(path, SCORES)
    else:
        savemat(path, {"scores": SCORES.T.astype(float)})  # classes by images, as anno_test
    return path


@pytest.mark.parametrize("kind", ["npy", "mat"])
def test_image_level_scores_in_every_container(kind: str, hoicli: Hoicli, tmp_path: Path) -> None:
    result = hoicli("convert", written(tmp_path, kind), "--image-list", IMAGES)
    found = parsed(result.out)
    listed = parsed(GT.read_text())
    assert [record["image_id"] for record in found] == [record["image_id"] for record in listed]
    for record, row in zip(found, SCORES.tolist(), strict=True):
        named = [(hoi["verb"], record["labels"][hoi["object"]]) for hoi in record["hois"]]
        assert tuple(named) == HICO.interactions
        assert [hoi["score"] for hoi in record["hois"]] == row
        assert record["caveats"] == ["whole_image"]


@pytest.mark.parametrize(("array", "problem"), [
    (np.zeros((3, 600)),
     "3 rows, but --image-list has 8; give --image-list: ground truth in the order of the rows, or a list of "
     "names"),
    (np.zeros((8, 117)), "a float64 array of shape [8, 117]; save a matrix of images by 600 classes"),
    (np.full((8, 600), np.inf), "[0][0]: is no finite number; every class of every image needs a score"),
    (np.full((8, 600), "a"), "a <U1 array of shape [8, 600]; save a matrix of images by 600 classes"),
])  # fmt: skip
def test_wrong_matrices(array: Any, problem: str, hoicli: Hoicli, tmp_path: Path) -> None:
    path = tmp_path / "scores.npy"
    np.save(path, array)
    assert refusal(hoicli("convert", path, "--image-list", IMAGES)) == f"{path}: {problem}"


def test_scores_of_whole_images_have_no_boxes_to_validate(hoicli: Hoicli, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text(hoicli("convert", written(tmp_path, "npy"), "--image-list", IMAGES).out)
    assert "relative-box" not in hoicli("validate", tmp_path / "p.jsonl").out


def test_anno_mat_alone_labels_whole_images(hoicli: Hoicli) -> None:
    result = hoicli("convert", FIXTURES / "foreign/anno.mat")
    found, truth = parsed(result.out), parsed(Path(IMAGES).read_text())
    assert [record["image_hois"] for record in found] == [record["image_hois"] for record in truth]
    assert all(record["boxes"] == record["hois"] == [] for record in found)
    assert all(record["caveats"] == ["whole_image"] for record in found)
    assert "labels of whole images, without boxes" in result.err
    assert "missing elsewhere" not in result.err


def test_the_ican_family(hoicli: Hoicli, tmp_path: Path) -> None:
    """The score is the class's times both boxes', of the interactions of the object's class alone."""
    scores = np.arange(600) / 1000
    rows = [
        [np.array([1.0, 2, 30, 40]), [5, 6, 70, 80], 2, scores, 0.5, 0.5, "more"],
        [[0, 0, 1, 1], [0, 0, 1, 1], 1, scores, 0.0, 0.9],
    ]
    path = saved(tmp_path / "dump.pkl", pickle.dumps({1: rows, "HICO_test2015_00000002.jpg": []}))
    result = hoicli("convert", path)
    first, second = parsed(result.out)
    assert (first["image_id"], second["image_id"]) == ("HICO_test2015_00000001", "HICO_test2015_00000002")
    assert (first["boxes"], first["labels"]) == ([[1, 2, 30, 40], [5, 6, 70, 80]], ["person", "bicycle"])
    assert [(hoi["verb"], hoi["score"]) for hoi in first["hois"]] == [
        (HICO.interactions[number][0], pytest.approx(number / 4000)) for number in HICO.interactions_of("bicycle")
    ]
    assert "pairs with a box score of 0 or less: 1" in result.err


SWIG = load("swig")
FOLDER = FIXTURES / "swig"
TRUTH, PREDICTIONS = FOLDER / "gt.jsonl", FOLDER / "predictions.jsonl"
ANNOTATIONS, DUMP = FOLDER / "foreign" / "swig_dev_1000.json", FOLDER / "foreign" / "preds.pkl"
EVALUATED = {"full": 5539, "zero_shot": 1391, "rare": 2841, "non_rare": 1307}


def records(path: Path) -> list[Record]:
    return parsed(path.read_text())


def test_the_numbers_everyone_quotes() -> None:
    assert (len(SWIG.verbs), len(SWIG.objects), len(SWIG.interactions)) == (407, 1000, 14130)
    evaluated = SWIG.subsets["evaluated"]
    assert {"full": len(evaluated)} | {name: len(group & evaluated) for name, group in SWIG.groups.items()} == EVALUATED
    assert len(SWIG.verb_ids) == 407
    assert len(SWIG.object_ids) == 1000
    assert len(SWIG.interaction_ids) == 14130
    assert SWIG.objects[0] == "person"


def test_a_name_of_several_senses_says_which() -> None:
    senses = [name for name in SWIG.objects if ".n." in name]
    names = {name.split(".")[0] for name in senses}
    assert (len(senses), len(names)) == (73, 36)
    assert names.isdisjoint(SWIG.objects)
    assert SWIG.noun_ids["ball.n.01"] == "n02778669"  # to throw
    assert SWIG.noun_ids["ball.n.03"] == "n13899404"  # of wool
    assert SWIG.noun_ids["mouse.n.01"] == "n02330245"  # the animal
    assert SWIG.noun_ids["mouse.n.04"] == "n03793489"  # the device


def test_the_published_lists(shared: Path) -> None:
    published = json.loads((shared / "data/swig-hoi/swig_vocabulary.json").read_text())
    for entries, ours in (("categories", SWIG.objects), ("actions", SWIG.verbs)):
        assert [normalise(entry["name"]) for entry in published[entries]] == [name.split(".n.")[0] for name in ours]
    assert [entry["noun_id"] for entry in published["categories"]] == list(SWIG.noun_ids.values())
    group, names = SWIG.group_of, ["zero_shot", "rare", "non_rare"]
    for number, verb, thing, frequency, evaluation in published["interactions"]:
        assert SWIG.interactions[number] == (SWIG.verbs[verb], SWIG.objects[thing])
        assert group[number] == names[frequency]
        assert (number in SWIG.subsets["evaluated"]) == bool(evaluation)


def test_the_annotations_convert_back(hoicli: Hoicli) -> None:
    result = hoicli("convert", "--dataset", "swig", ANNOTATIONS)
    assert parsed(result.out) == records(TRUTH)
    assert "[x, y, w, h], is read as [x1, y1, x2, y2]" in result.err
    assert result.err.endswith("as swig (ground truth): 5 images, 13 boxes, 10 triplets\n")


@pytest.mark.parametrize(("change", "message"), [
    (lambda c: c[1]["box_annotations"][0].update(category_id=1000),
     "[1].box_annotations[0].category_id: id 1000, but"),
    (lambda c: c[0]["hoi_annotations"][0].update(object_id=3),
     "[0].hoi_annotations[0].object_id: id 3, but there are 3 in juggling_12.jpg"),
])  # fmt: skip
def test_a_wrong_annotation_is_named(hoicli: Hoicli, tmp_path: Path, change: Any, message: str) -> None:
    path = changed(ANNOTATIONS, tmp_path / "swig.json", change)
    result = hoicli("convert", "--dataset", "swig", path)
    assert (result.code, result.err.startswith(f"{path}: {message}")) == (1, True)


def triplets(found: list[Record]) -> dict[str, list[tuple[Any, ...]]]:
    return {record["image_id"]: sorted(triplets_of(record)) for record in found}


@pytest.mark.parametrize("images", [TRUTH, ANNOTATIONS])
def test_dumps_are_joined_by_img_id(hoicli: Hoicli, images: Path) -> None:
    """Two file names of the fixtures end in 12: the number in a name is no image."""
    result = hoicli("convert", "--dataset", "swig", "--image-list", images, DUMP)
    assert result.code == 0, result.err
    assert triplets(parsed(result.out)) == triplets(records(PREDICTIONS))
    assert [record["img_id"] for record in parsed(result.out)] == [0, 1, 2, 3]


def test_dumps_need_the_images(hoicli: Hoicli) -> None:
    assert (
        refusal(hoicli("convert", "--dataset", "swig", DUMP))
        == f"{DUMP}: names images by number only; give the annotation file, which has them as img_id, with --image-list"
    )


def test_two_images_with_one_img_id_are_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    images = changed(ANNOTATIONS, tmp_path / "swig.json", lambda content: content[1].update(img_id=0))
    result = hoicli("convert", "--dataset", "swig", "--image-list", images, DUMP)
    assert (result.code, result.err) == (1, f"{images}: juggling_12 and flicking_5 have one img_id, 0\n")


def test_the_figures_by_hand(hoicli: Hoicli) -> None:
    """juggling ball.n.01: both found first, AP 1. flicking ball.n.03 (zero-shot): a better false positive, 1/2.
    catching ball.n.01 (rare): one of two found, precision 1 at recalls 0 to 0.5, 6/11. riding horse, hugging person: 1.
    leading horse, kicking ball.n.01: 0. hugging ball.n.01 and twirling ball.n.03 are not evaluated."""
    result = hoicli("eval", "--protocol", "swig", "--metric", "mean_max_recall", "--gt", TRUTH, PREDICTIONS)
    found = {row["subset"]: (row["value"], row["n"]) for row in parsed(result.out) if row["metric"] == "mAP"}
    ap = {"full": 1 + 1 / 2 + 6 / 11 + 1 + 1, "zero_shot": 1 / 2, "rare": 6 / 11, "non_rare": 3}
    assert list(found) == list(EVALUATED)
    for subset, (value, count) in found.items():
        assert count == EVALUATED[subset]
        assert value == pytest.approx(100 * ap[subset] / count, rel=1e-12)
    recall = {row["subset"]: row["value"] for row in parsed(result.out) if row["metric"] == "mean_max_recall"}
    assert recall["rare"] == pytest.approx(100 * 0.5 / 2841)
    assert {without_gt(row["signature"]).rsplit("|", 1)[0] for row in parsed(result.out)} == {"protocol:swig|data:swig"}


def test_all_protocols_of_the_dataset_are_this_one(hoicli: Hoicli) -> None:
    named = hoicli("eval", "--protocol", "swig", "--gt", TRUTH, PREDICTIONS)
    assert hoicli("eval", "--dataset", "swig", "--gt", TRUTH, PREDICTIONS).out == named.out


def test_per_class_rows_are_of_the_evaluated(hoicli: Hoicli) -> None:
    rows = parsed(hoicli("eval", "--protocol", "swig", "--per-class", "--gt", TRUTH, PREDICTIONS).out)
    found = [row for row in rows if row["metric"] == "AP"]
    assert len(found) == EVALUATED["full"]
    values = {(row["verb"], row["object"]): (row["subset"], row["n"]) for row in found if row["n"]}
    assert values[("flicking", "ball.n.03")] == ("zero_shot", 1)
    assert values[("catching", "ball.n.01")] == ("rare", 2)
    assert ("hugging", "ball.n.01") not in values


LABELS = ("person", "horse", "ball.n.01", "ball.n.03")
VERBS = ("hugging", "riding", "flicking", "twirling")
NAMES = dict(zip((*strategies.LABELS, *strategies.VERBS), (*LABELS, *VERBS), strict=True))


def renamed(found: list[Record]) -> list[Record]:
    """Random scenes of HICO-DET's terms in SWIG-HOI's."""
    for record in found:
        record["labels"] = [NAMES[label] for label in record["labels"]]
        record.pop("image_hois", None)
        for hoi in record["hois"]:
            hoi["verb"] = NAMES[hoi["verb"]]
    return found


def tally(truth: list[Record], predictions: list[Record]) -> Tally:
    batches = read_scenes(lines(truth), SWIG, scored=False, policy=ErrorPolicy())
    annotated = GroundTruth(concatenate(batches, SWIG), SWIG)
    result = Tally([PROTOCOLS["swig"]], len(SWIG.interactions))
    matched = match_batches(lines(predictions), annotated, [PROTOCOLS["swig"]], Filters(), ErrorPolicy())
    for batch, outcomes in matched:
        result.add_batch(batch, outcomes)
    result.add_truth(annotated)
    return result


@given(strategies.datasets())
def test_it_equals_the_slow_evaluator(data: Data) -> None:
    truth, predictions = map(renamed, data)
    ((_, ours),) = tally(truth, predictions).results(SWIG)
    pairs = [pair for pair in SWIG.interactions if pair[0] in VERBS and pair[1] in LABELS]
    pairs = [pair for pair in pairs if SWIG.interaction_ids[pair] in SWIG.subsets["evaluated"]]
    assert len(pairs) >= 5
    for pair, (ap, recall, positives) in reference.evaluate("swig", truth, predictions, pairs).items():
        number = SWIG.interaction_ids[pair]
        assert ours.in_mean[number]
        assert ours.positives[number] == positives
        assert math.isclose(ours.ap[number], ap, abs_tol=1e-12), pair
        assert math.isclose(ours.max_recall[number], recall, abs_tol=1e-12), pair
    assert int(ours.in_mean.sum()) == EVALUATED["full"]


@given(st.sampled_from([(19_998, 1 / 19_999), (19_999, 0.0)]))
@settings(max_examples=2)
def test_only_so_many_predictions_of_a_class_count(case: tuple[int, float]) -> None:
    """A true positive behind 19,998 better false ones is the last that counts."""
    ahead, ap = case
    hoi = {"subject": 0, "object": 1, "verb": "riding"}
    boxes = {"boxes": [[0, 0, 10, 10], [20, 20, 40, 40]], "labels": ["person", "horse"]}
    truth = {"image_id": "a", **boxes, "hois": [hoi]}
    hois = [{"subject": 1, "object": 1, "verb": "riding", "score": 0.9}] * ahead
    predicted = {**truth, "hois": [*hois, {"subject": 0, "object": 1, "verb": "riding", "score": 0.1}]}
    ((_, results),) = tally([truth], [predicted]).results(SWIG)
    assert results.ap[SWIG.interaction_ids["riding", "horse"]] == pytest.approx(ap)
