"""The further datasets against their own evaluators, on made-up worlds that every clone has (golden/), and the rules in
which these differ from the others."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hoicli.cli import run
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.selection import choose_protocols
from hoicli.vocabulary.datasets import load
from tests.evaluation.test_parity import GOLDEN, TOLERANCE, Rows, by_class, rows_of
from tests.hostile.readers import CORPUS
from tests.support.project import FIXTURES, GT, Hoicli, parsed, refusal, saved

EXPECTED: dict[str, Any] = json.loads((GOLDEN / "expected_sets.json").read_text())


def converted(folder: Path, name: str, *arguments: str) -> str:
    path = folder / name
    assert run(["convert", *arguments, "-o", str(path)]) == 0
    return str(path)


def golden(name: str) -> str:
    return str(GOLDEN / name)


def value(rows: Rows, metric: str = "mAP", subset: str = "full") -> float:
    (found,) = (row["value"] / 100 for row in rows if row["metric"] == metric and row["subset"] == subset)
    return float(found)


@pytest.fixture(scope="module")
def hoia(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("hoia")
    truth = converted(folder, "gt.jsonl", "--dataset", "hoia", golden("hoia_gt.json.gz"))
    return truth, converted(folder, "preds.jsonl", "--dataset", "hoia", golden("hoia_preds.json.gz"))


@pytest.mark.parametrize("dataset", ["hoia", "hoiw"])
def test_every_verb_of_hoi_a(dataset: str, hoia: tuple[str, str], tmp_path: Path) -> None:
    rows = rows_of(tmp_path, "eval", "--dataset", dataset, "--gt", hoia[0], "--per-class", hoia[1])
    for metric, key in (("AP", "ap"), ("max_recall", "recall")):
        ours = {row["verb"]: row["value"] / 100 for row in rows if row["metric"] == metric and row["value"]}
        assert ours == pytest.approx(EXPECTED["hoia"][key], abs=TOLERANCE)
    assert value(rows) == pytest.approx(EXPECTED["hoia"]["mAP"], abs=TOLERANCE)
    assert {row["protocol"] for row in rows} == {"hoia"}
    assert all(row["object"] is None for row in rows if "verb" in row)


def test_matches_of_hoi_a_give_the_same_numbers(hoia: tuple[str, str], tmp_path: Path) -> None:
    matches = str(tmp_path / "matches.jsonl")
    assert run(["match", "--protocol", "hoia", "--gt", hoia[0], hoia[1], "-o", matches]) == 0
    direct = rows_of(tmp_path, "eval", "--protocol", "hoia", "--per-class", "--gt", hoia[0], hoia[1])
    assert rows_of(tmp_path, "eval", "--protocol", "hoia", "--per-class", matches) == direct
    lines = [json.loads(line) for line in Path(matches).read_text().splitlines()]
    for line in lines:  # each true positive is the one prediction of a triplet that it takes
        takers = [truth["prediction"] for truth in line["gt"] if truth["prediction"] is not None]
        right = [place for place, item in enumerate(line["predictions"]) if item["outcome"] == "true_positive"]
        assert sorted(takers) == right


@pytest.fixture(scope="module")
def ambiguous(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("ambiguous")
    parts = golden("ambiguous_gt.pkl.gz"), golden("ambiguous_names.pkl.gz")
    dump = golden("ambiguous_preds.pkl.gz")
    return converted(folder, "gt.jsonl", *parts), converted(folder, "p.jsonl", "--dataset", "ambiguous-hoi", dump)


def test_every_class_of_ambiguous_hoi(ambiguous: tuple[str, str], tmp_path: Path) -> None:
    """The released mean leaves out the classes of objects that nothing was predicted for; ours counts them 0."""
    rows = rows_of(tmp_path, "eval", "--protocol", "ambiguous-hoi", "--per-class", "--gt", *ambiguous)
    expected = EXPECTED["ambiguous-hoi"]
    for metric, key in (("AP", "ap"), ("max_recall", "recall")):
        assert by_class(rows, metric) == pytest.approx(
            {name: 100 * number for name, number in expected[key].items() if number}, abs=TOLERANCE
        )
    counted = sum(number is not None for number in expected["ap"].values())
    assert 0 < counted < 87
    assert value(rows, subset="ambiguous") * 87 / counted == pytest.approx(expected["mAP"], abs=TOLERANCE)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    truth = golden("hico_image_gt.jsonl.gz")
    scores = golden("hico_image_scores.npy.gz")
    return truth, converted(tmp_path_factory.mktemp("images"), "p.jsonl", "--image-list", truth, scores)


@pytest.mark.parametrize("protocol", ["hico-image", "hico-image-ko"])
def test_every_class_of_whole_images(protocol: str, images: tuple[str, str], tmp_path: Path) -> None:
    """Of the classes with positive and negative images, which the released code asks for; all others count 0."""
    rows = rows_of(tmp_path, "eval", "--protocol", protocol, "--per-class", "--gt", *images)
    ours = {f"{row['verb']} {row['object']}": row["value"] / 100 for row in rows if row["metric"] == "AP"}
    expected = EXPECTED[protocol]["ap"]
    assert {name: ours[name] for name in expected} == pytest.approx(expected, abs=TOLERANCE)
    assert not any(found for name, found in ours.items() if name not in expected)
    assert value(rows) == pytest.approx(sum(expected.values()) / 600, abs=TOLERANCE)
    assert {row["subset"] for row in rows} == {"full"}


def test_boxes_are_not_asked_of_whole_images(hoicli: Hoicli, images: tuple[str, str], tmp_path: Path) -> None:
    message = refusal(hoicli("eval", "--gt", *images))
    assert "cannot serve hico, hico-ko, qpic, upt, diag, inp-cc: it has labels or scores of whole images" in message
    boxes = golden("hico_gt.jsonl.gz")
    scores = json.loads(Path(images[1]).read_text().splitlines()[0])
    scores["image_id"] = rows_of_file(boxes)[0]["image_id"]
    path = saved(tmp_path / "scores.jsonl", json.dumps(scores) + "\n")
    for command in ("eval", "match", "diagnose", "compare"):
        more = [golden("hico_preds.jsonl.gz")] if command == "compare" else []
        refused = hoicli(command, "--gt", boxes, path, *more)
        assert (refused.code, "labels or scores of whole images, without boxes" in refused.err) == (1, True), command
    said = refusal(hoicli("eval", "--iou", "0.5", "--protocol", "hico-image", "--gt", *images), 2)
    assert "hico-image classifies whole images" in said
    sliced = refusal(hoicli("eval", "--slice", "objects", "--protocol", "hico-image", "--gt", *images), 2)
    assert "hico-image go by whole images, without boxes; use people" in sliced
    refused = hoicli("match", "--protocol", "hico-image", "--gt", *images)
    assert (refused.code, "whole images, without boxes to match" in refused.err) == (2, True)


def rows_of_file(path: str) -> Rows:
    import gzip

    return [json.loads(line) for line in gzip.decompress(Path(path).read_bytes()).splitlines()]


def test_a_detector_is_judged_by_its_best_triplet(hoicli: Hoicli, tmp_path: Path) -> None:
    """Ground truth with boxes but without image-level labels: they are derived, and ambiguous ones are not known."""
    truth = {"boxes": [[0, 0, 9, 9], [5, 5, 20, 20]], "labels": ["person", "bicycle"]}
    gt = [
        {**truth, "image_id": "a", "hois": [{"subject": 0, "object": 1, "verb": "ride"}]},
        {**truth, "image_id": "b", "hois": [{"subject": 0, "object": 1, "verb": "hold"}]},
        {
            **truth,
            "image_id": "c",
            "hois": [],
            "image_hois": [["hold", "bicycle"]],
            "ambiguous_hois": [["ride", "bicycle"]],
        },
    ]
    scores = {"a": (0.2, 0.6), "b": (0.5,), "c": (0.9,)}
    preds = [
        {
            **truth,
            "image_id": name,
            "boxes": [[50, 50, 60, 60], [70, 70, 80, 80]],  # nowhere near
            "hois": [{"subject": 0, "object": 1, "verb": "ride", "score": score} for score in found],
        }
        for name, found in scores.items()
    ]
    for name, records in (("gt", gt), ("preds", preds)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    options = ("--protocol", "hico-image", "--per-class", "--format", "jsonl")
    files = ("--gt", tmp_path / "gt.jsonl", *options, tmp_path / "preds.jsonl")
    rows = parsed(hoicli("eval", *files).out)
    (ride,) = (row for row in rows if row["metric"] == "AP" and row["verb"] == "ride" and row["object"] == "bicycle")
    assert (ride["value"], ride["n"]) == (pytest.approx(100.0), 1)  # c is ambiguous, b is behind a's best
    assert "labels:derived|ambiguous:unmarked" in ride["signature"]


def test_boxes_that_are_not_looked_at_need_not_fit(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, scores = str(GT), str(CORPUS / "image_scores.npy")
    path = converted(tmp_path, "scores.jsonl", scores, "--image-list", truth)
    said = hoicli("eval", "--protocol", "hico-image", "--gt", truth, path).err
    assert said == "hoicli: hico-image: 584 of 600 classes have no ground truth and count 0 in the mean\n"


def test_hico_det_sg_has_the_rows_and_shifts_of_hico_det() -> None:
    for name in ("hico", "qpic", "upt"):
        (row,) = choose_protocols([name], "hico-det-sg")
        assert row == replace(PROTOCOLS[name], dataset="hico-det-sg")
    sizes = {name: len(members) for name, members in load("hico-det-sg").unseen.items()}
    assert sizes == {"sg1": 60, "sg2": 60, "sg3": 60}


@pytest.mark.parametrize(
    ("dataset", "verbs", "objects", "interactions"),
    [("hoia", 10, 11, 110), ("hoiw", 10, 11, 110), ("ambiguous-hoi", 117, 80, 600), ("hico-det-sg", 117, 80, 600),
     ("pastanet-hoi", 116, 80, 520), ("hoi-coco", 21, 80, 222)],
)  # fmt: skip
def test_the_sizes_that_papers_give(dataset: str, verbs: int, objects: int, interactions: int) -> None:
    known = load(dataset)
    assert (len(known.verbs), len(known.objects), len(known.interactions)) == (verbs, objects, interactions)
    assert len(set(known.interactions)) == interactions


def test_mpd_is_that_of_the_released_code(tmp_path: Path) -> None:
    files = ("--gt", golden("hico_gt.jsonl.gz"), golden("hico_preds.jsonl.gz"))
    rows = rows_of(tmp_path, "eval", "--protocol", "inp-cc", "--metric", "mPD", *files)
    assert value(rows, "mPD") == pytest.approx(EXPECTED["mPD"]["inp-cc"], abs=TOLERANCE)
    assert [row["n"] for row in rows if row["metric"] == "mPD"] == [77]  # without no_interaction
    assert [row for row in rows if row["metric"] != "mPD"] == rows_of(tmp_path, "eval", "--protocol", "inp-cc", *files)


def test_mpd_is_of_the_classes_that_a_protocol_averages(tmp_path: Path) -> None:
    """Under qpic only annotated classes have an AP; the slice `verb` has one verb a part."""
    files = ("--gt", golden("hico_gt.jsonl.gz"), golden("hico_preds.jsonl.gz"))
    rows = rows_of(tmp_path, "eval", "--protocol", "qpic", "--metric", "mPD", "--per-class", "--slice", "verb", *files)
    aps: dict[str, list[float]] = {}
    for row in rows:
        if row["metric"] == "AP":
            aps.setdefault(row["verb"], []).append(row["value"])
    several = {verb: found for verb, found in aps.items() if len(found) > 1 and verb != "no_interaction"}
    mean = {verb: sum(found) / len(found) for verb, found in several.items()}
    degradation = {verb: 1 - mean[verb] / max(found) if any(found) else 1 for verb, found in several.items()}
    whole, *parts = (row for row in rows if row["metric"] == "mPD")
    assert whole["n"] == len(several) > 1
    assert whole["value"] / 100 == pytest.approx(sum(degradation.values()) / len(several), abs=1e-12)
    by_verb = {row["tags"]["part"]: (row["value"], row["n"]) for row in parts}
    for verb, (part, n) in by_verb.items():
        assert n == (verb in several)
        assert part == (pytest.approx(100 * degradation[verb]) if verb in several else None)
    assert len(by_verb) > len(several)


def test_mpd_needs_classes_of_verbs_with_objects(hoicli: Hoicli, hoia: tuple[str, str]) -> None:
    said = refusal(hoicli("eval", "--protocol", "hoia", "--metric", "mPD", "--gt", *hoia), 2)
    assert "--metric mPD: the classes of hoia are no verbs with objects; leave it out" in said
    truth, predictions = FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl"
    assert (
        "--metric mPD: the classes of vcoco-agent"
        in hoicli("eval", "--dataset", "vcoco", "--metric", "mPD", "--gt", truth, predictions).err
    )
