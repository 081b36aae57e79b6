"""The numbers of the released evaluators on made-up scene graphs.

recall_golden/released.json: by seed and project, what Maelic/SGG-Benchmark a664201 (sgg_eval.py, sgg_metrics.py,
miscellaneous.py, box_ops.py) and Jingkang50/OpenPSG 34b2a89 (evaluation/, detection_method bbox, mmdet 2's
bbox_overlaps) compute, sgdet, for the records of tests/support/graphs.py, each pair's verbs as one row of scores, pairs
sorted by the product of their best verb's score and the two boxes' scores, as both projects' post-processing does.
SGG-Benchmark has no mR@K without graph constraint, OpenPSG's zR@K and F1@K are not run.
R@K-relative and mR@K-relative are of SGG-Benchmark's SGRecallRelative and SGMeanRecallRelative on these matches. At
a664201 these classes stop with a TypeError, since they slice by their key "relative": None stood in its place in their
k_list, which takes all of the predictions, cut before to the number of triplets. The classes of d706211 (May 2025, when
they came) give the same; that version skips images without predictions.
For r1-sgg: what gpt4vision/R1-SGG e4de64d (sgg_gather_preds.py, vg150_eval.py, utils/) prints for the answers of
tests/support/graphs.py, with its lists of names replaced by the worlds' own and the K of its R@K and mR@K by these.
Ground truth of the worlds 1 and 2 has a triplet twice. AP50 is with annotations numbered from 1: R1-SGG begins with 0,
which pycocotools takes for no match, so that the first box of all is never found.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.recall_scenes import rows, values, written
from tests.support.graphs import KS, VERBS, answers, predictions, truth
from tests.support.project import Hoicli

GOLDEN = json.loads((Path(__file__).parent / "recall_golden/released.json").read_text())


@pytest.mark.parametrize("project", ["openpsg", "sgg-benchmark"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_number_of_the_released_code(hoicli: Hoicli, tmp_path: Path, seed: int, project: str) -> None:
    annotated = truth(seed)
    files = written(tmp_path, gt=annotated, preds=predictions(annotated, seed), train=truth(100 + seed))
    options = ["--as-released", project, "--train", str(files["train"]), "--k", ",".join(map(str, KS)), "--per-class"]
    options += ["--relative"] if project == "sgg-benchmark" else []
    found = rows(hoicli, files, *options)
    means = {f"{row['constraint']} {row['metric']}": row["value"] / 100 for row in found if "verb" not in row}
    released: dict[str, Any] = dict(GOLDEN[str(seed)][project])
    verbs = dict(zip(VERBS, released.pop("verbs graph R@100"), strict=True))
    assert len(released) == (20 if project == "sgg-benchmark" else 12)
    assert {name: means[name] for name in released} == pytest.approx(released, rel=0, abs=1e-14)
    of_verbs = {row["verb"]: row for row in found if "verb" in row and row["metric"] == "R@100"}
    for verb, value in verbs.items():
        ours = [row["value"] / 100 for row in found
                if (row.get("verb"), row["metric"], row["constraint"]) == (verb, "R@100", "graph")]  # fmt: skip
        assert ours == ([] if verb not in of_verbs else [pytest.approx(value, abs=1e-14)])
    assert VERBS[-1] not in of_verbs, "never annotated: it counts 0 in the mean alone"


def test_the_projects_differ_from_each_other_and_from_the_published_metric(hoicli: Hoicli, tmp_path: Path) -> None:
    """Otherwise the golden numbers would not show what --as-released changes."""
    annotated = truth(1)
    files = written(tmp_path, gt=annotated, preds=predictions(annotated, 1))
    options: list[tuple[str, ...]] = [(), ("--as-released", "openpsg"), ("--as-released", "sgg-benchmark")]
    values = [[row["value"] for row in rows(hoicli, files, *option)] for option in options]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert all(a != b for a, b in zip(values[one], values[other], strict=True))


def test_relative_recall_reads_as_many_predictions_as_there_are_triplets(hoicli: Hoicli, tmp_path: Path) -> None:
    """Two triplets, the three best predictions right, wrong, right: only the first counts. The image with one triplet,
    found second, counts 0; no mean has the third image, which has no triplets."""
    boxes = [[0, 0, 10, 10], [20, 0, 30, 10], [40, 0, 50, 10]]
    annotated: list[dict[str, Any]] = [
        {"image_id": name, "boxes": boxes, "labels": ["dog", "hat", "cup"], "hois": hois}
        for name, hois in {
            "a": [{"subject": 0, "object": 1, "verb": "on"}, {"subject": 0, "object": 2, "verb": "near"}],
            "b": [{"subject": 0, "object": 1, "verb": "on"}],
            "c": [],
        }.items()
    ]
    ranked = [(0, 1, "on"), (1, 2, "on"), (0, 2, "near"), (0, 2, "on")]
    best_first = [{"subject": s, "object": o, "verb": v, "score": 1 - at / 10} for at, (s, o, v) in enumerate(ranked)]
    orders = {"a": best_first, "b": [{**best_first[1], "score": 1.0}, {**best_first[0], "score": 0.5}], "c": best_first}
    files = written(
        tmp_path, gt=annotated, preds=[{**record, "hois": orders[record["image_id"]]} for record in annotated]
    )
    found = values(rows(hoicli, files, "--k", "3", "--relative", "--per-class"))
    assert found["graph", "R@K-relative"] == found["none", "R@K-relative"] == 25.0
    assert found["graph", "mR@K-relative"] == 25.0, "on: 1 and 0 of its two images; near: 0"
    assert found["graph", "R@3"] == 100.0
    refused = hoicli("recall", "--gt", files["gt"], "--relative", "--as-released", "openpsg", files["preds"])
    assert (refused.code, "--relative: openpsg has no R@K-relative" in refused.err) == (2, True)


def test_nothing_counted_is_0_as_released(hoicli: Hoicli, tmp_path: Path) -> None:
    """OpenPSG leaves silent images out, and its mean over verbs counts each one without ground truth as 0."""
    annotated = truth(1)
    silent = [{**record, "hois": []} for record in annotated]
    files = written(tmp_path, gt=annotated, preds=silent)
    found = {row["metric"]: row["value"] for row in rows(hoicli, files, "--as-released", "openpsg", "--k", "20")}
    assert (found["R@20"], found["mR@20"]) == (None, 0.0)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_answers_of_language_models_as_r1_sgg_evaluates_them(hoicli: Hoicli, tmp_path: Path, seed: int) -> None:
    """Six of sixty are no JSON: they are missed, as images with an empty answer are; those with boxes alone are in no
    mean."""
    released = GOLDEN[str(seed)]["r1-sgg"]
    annotated = [{**record, "width": 256, "height": 256} for record in truth(seed)]
    for record in annotated:
        record["hois"] += record["hois"][:1] if seed < 3 else []
    files = written(tmp_path, gt=annotated, answers=answers(annotated, seed))
    options = ("--dataset", files["dataset"], "--image-list", files["gt"], "--to-vocabulary", "--scores", "ones")
    files["preds"] = tmp_path / "preds.jsonl"
    said = hoicli("convert", "--from", "vlm", *options, files["answers"], "-o", files["preds"]).err
    assert "6 of 60 answers (10.00%) could not be read: they give no record" in said
    found = rows(hoicli, files, "--as-released", "r1-sgg", "--k", "2,5,20,50")
    assert {row["constraint"] for row in found} == {"none"}
    assert all("|scores:1|released:r1-sgg|constraint:none|" in row["signature"] for row in found)
    means = {f"none {row['metric']}": row["value"] / 100 for row in found}
    if seed == 3:  # the published metric, of all that was said
        means["ngR per image"] = values(rows(hoicli, files, "--k", "1000"))["none", "R@1000"] / 100
    boxes = ("--boxes", "--protocol", "coco-boxes", "--dataset", files["dataset"], "--gt", files["gt"])
    of_boxes = map(json.loads, hoicli("eval", *boxes, files["preds"]).out.splitlines())
    means["AP50"] = next(row["value"] / 100 for row in of_boxes if row["metric"] == "AP50")
    assert {name: means[name] for name in released} == pytest.approx(released, rel=0, abs=1e-14)
