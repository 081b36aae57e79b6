"""Boxes as such: closed forms, pycocotools on random worlds, PASCAL VOC's rules in loops, and what a dump may lack."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import hoicli
from hoicli.errors import HoicliError
from hoicli.evaluation.box_rules import BOX_RULES, COCO_IOU, GRID_HUNDREDTHS
from hoicli.evaluation.recall_grids import GRID_ARANGE
from tests.support.project import Data, Record

Box = list[float]
LABELS = ["person", "bench", "bicycle", "horse"]
SUBSETS = {"full": LABELS, "persons": LABELS[:1], "objects": LABELS[1:]}


def image(boxes: list[Box], label: str = "person", name: str = "a", **more: Any) -> Record:
    return {"image_id": name, "boxes": boxes, "labels": [label] * len(boxes), "hois": [], **more}


def measured(gt: list[Record], predictions: list[Record], **options: Any) -> dict[tuple[str, str, str], float | None]:
    rows = hoicli.evaluate(gt, predictions, boxes=True, **options).rows
    return {(row["protocol"], row["metric"], row["subset"]): row["value"] for row in rows}


SQUARE: Box = [0, 0, 100, 100]


def test_the_mean_over_thresholds_counts_those_that_the_overlap_reaches() -> None:
    found = measured([image([SQUARE])], [image([[0, 0, 100, 72]], scores=[0.9])])
    of_coco = {metric: found["coco-boxes", metric, "full"] for metric in ("AP", "AP50", "AP75", "AR@100", "AP_large")}
    assert of_coco == pytest.approx({"AP": 50, "AP50": 100, "AP75": 0, "AR@100": 50, "AP_large": 50})
    assert found["coco-boxes", "AP_small", "full"] is None  # no annotated box is small
    assert found["coco-boxes", "AP", "objects"] is None


def test_the_areas_under_voc_curves() -> None:
    """Right, wrong, right of two: precision 1 up to recall 1/2, then 2/3."""
    other: Box = [200, 0, 300, 100]
    stray: Box = [500, 500, 600, 600]
    found = measured([image([SQUARE, other])], [image([SQUARE, stray, other], scores=[0.9, 0.8, 0.7])], per_class=True)
    assert found["voc-boxes", "AP50", "full"] == pytest.approx(100 * 5 / 6)
    assert found["voc07-boxes", "AP50", "full"] == pytest.approx(100 * (6 + 5 * 2 / 3) / 11)
    assert found["coco-boxes", "AP50", "full"] == pytest.approx(100 * (51 + 50 * 2 / 3) / 101)
    assert found["voc-boxes", "recall50", "full"] == 100


def test_what_a_detection_takes_tells_the_rules_apart() -> None:
    """Two people overlap by 2/3. Both detections overlap the first more; the second one fits both."""
    people: list[Box] = [[0, 0, 100, 100], [0, 20, 100, 120]]
    found = measured([image(people)], [image([SQUARE, [0, 5, 100, 105]], scores=[0.9, 0.8])])
    assert found["coco-boxes", "AP50", "full"] == pytest.approx(100)  # the second takes the one that is free
    assert found["voc-boxes", "recall50", "full"] == 50  # the second is a duplicate
    found = measured([image(people)], [image([[0, 10, 100, 110]], scores=[0.9])])
    assert found["diag-boxes", "recall50", "full"] == 100  # one detection finds both
    assert found["coco-boxes", "AR@100", "full"] == pytest.approx(35)  # one of two at the seven thresholds up to 0.8


def test_the_grids_are_those_of_their_libraries() -> None:
    assert np.linspace(0.5, 0.95, 10).tolist() == list(COCO_IOU)
    assert np.linspace(0, 1, 101).tolist() == list(GRID_HUNDREDTHS)


def test_a_crowd_is_neither_found_nor_missed() -> None:
    """COCO: what lies in it by half is ignored, and two may lie in one; VOC: whose best box it is."""
    boxes: list[Box] = [[10, 10, 60, 110], [200, 50, 380, 250]]
    crowd = image(boxes, iscrowd=[False, True])
    inside: list[Box] = [[10, 10, 60, 110], [210, 60, 250, 160], [260, 60, 300, 160]]
    found = measured([crowd], [image(inside, scores=[0.5, 0.9, 0.8])])
    assert [found["coco-boxes", metric, "persons"] for metric in ("AP", "AP50", "AR@100")] == pytest.approx([100] * 3)
    assert found["diag-boxes", "recall50", "persons"] == 100
    ordinary = measured([image(boxes)], [image(inside, scores=[0.5, 0.9, 0.8])])
    assert ordinary["coco-boxes", "AP50", "persons"] == pytest.approx(100 / 6, abs=0.2)
    over: list[Box] = [[10, 10, 60, 110], [200, 50, 380, 240]]
    found = measured([crowd], [image(over, scores=[0.5, 0.9])])
    assert found["voc-boxes", "AP50", "persons"] == found["voc-boxes", "recall50", "persons"] == 100
    only = measured([image(boxes[1:], iscrowd=[True])], [image(over[1:], scores=[0.9])])
    assert only["coco-boxes", "AP", "persons"] is None  # nobody is annotated
    with pytest.raises(HoicliError, match="iscrowd: 1 flags for 2 boxes"):
        measured([image(boxes, iscrowd=[True])], [image(over, scores=[0.5, 0.9])])


def test_a_crowd_is_in_the_digest() -> None:
    flags: list[dict[str, Any]] = [{}, {"iscrowd": [False]}, {"iscrowd": [True]}]
    found = [image([SQUARE], scores=[0.9])]
    signatures = [hoicli.evaluate([image([SQUARE], **more)], found, boxes=True).rows[0]["signature"] for more in flags]
    assert signatures[0] == signatures[1] != signatures[2]


def world(seed: int) -> Data:
    """Images with ties of scores and of overlaps, doubles, areas on a bound or of 0; in some more detections than COCO
    counts."""
    draw = random.Random(seed)
    size, labels = draw.choice([8, 20, 60, 200]), LABELS[: draw.randint(1, 4)]

    def box() -> Box:
        x, y = draw.randint(0, size), draw.randint(0, size)
        sides = [draw.choice([0, 16, 32, 96]) if draw.random() < 0.2 else draw.randint(1, size) for _ in "wh"]
        return [x, y, x + sides[0], y + sides[1]]

    gt, predictions = [image([SQUARE], name="000")], []
    for number in range(draw.randint(1, 6)):
        true = [(box(), draw.choice(labels)) for _ in range(draw.randint(0, 8))]
        true += true[:1]
        gt.append({**image([at for at, _ in true], name=f"{number + 1:03}"), "labels": [label for _, label in true]})
        if seed % 3 == 0:
            gt[-1]["iscrowd"] = [sum(at) % 4 < 1 for at, _ in true]  # of doubles all or none
        near = [([at[0], at[1], at[2] + draw.choice([0, 0, 1, 4]), at[3]], label) for at, label in true * 2]
        near += [(box(), draw.choice(labels)) for _ in range(150 if seed % 10 == 0 else draw.randint(1, 6))]
        draw.shuffle(near)
        found = image([at for at, _ in near], name=f"{number + 1:03}")
        scores = [draw.choice([0.1, 0.5, 0.9]) if seed % 2 else draw.random() for _ in near]
        predictions.append({**found, "labels": [label for _, label in near], "scores": scores})
    return gt, predictions[::-1]


def distinct(record: Record) -> list[tuple[tuple[float, ...], str]]:
    return list(dict.fromkeys((tuple(at), label) for at, label in zip(record["boxes"], record["labels"], strict=True)))


def by_pycocotools(gt: list[Record], predictions: list[Record]) -> Iterator[tuple[str, list[float | None]]]:
    reason = "pycocotools is not installed: pip install pycocotools"
    coco = pytest.importorskip("pycocotools.coco", reason=reason)
    evaluator = pytest.importorskip("pycocotools.cocoeval", reason=reason)

    def items(records: list[Record], boxes: Any) -> Iterator[Record]:
        for record in records:
            for (x, y, right, bottom), label, *score in boxes(record):
                sides = {"bbox": [x, y, right - x, bottom - y], "area": (right - x) * (bottom - y)}
                sides["iscrowd"] = int("iscrowd" in record and sum((x, y, right, bottom)) % 4 < 1)
                of = {"image_id": int(record["image_id"]), "category_id": LABELS.index(label) + 1}
                yield {**sides, **of, **({"score": score[0]} if score else {})}

    def scored(record: Record) -> Any:
        return zip(record["boxes"], record["labels"], record["scores"], strict=True)

    with contextlib.redirect_stdout(io.StringIO()):
        truth = coco.COCO()
        truth.dataset = {
            "images": [{"id": int(record["image_id"])} for record in gt],
            "annotations": [{"id": at, **item} for at, item in enumerate(items(gt, distinct), start=1)],
            "categories": [{"id": at, "name": name} for at, name in enumerate(LABELS, start=1)],
        }
        truth.createIndex()
        found = truth.loadRes(list(items(predictions, scored)))
        for subset, labels in SUBSETS.items():
            run = evaluator.COCOeval(truth, found, "bbox")
            run.params.catIds = [LABELS.index(label) + 1 for label in labels]
            run.evaluate()
            run.accumulate()
            run.summarize()
            yield subset, [100 * value if value >= 0 else None for value in run.stats.tolist()]


def agrees_with_pycocotools(seeds: range) -> None:
    for seed in seeds:
        gt, predictions = world(seed)
        found = measured(gt, predictions, same=1.0, protocol="coco-boxes")
        for subset, values in by_pycocotools(gt, predictions):
            ours = [found["coco-boxes", metric.name, subset] for metric in BOX_RULES["coco-boxes"].metrics]
            assert ours == pytest.approx(values, abs=1e-9), (seed, subset)


def test_coco_is_pycocotools() -> None:
    agrees_with_pycocotools(range(24))


@pytest.mark.long
def test_coco_is_pycocotools_on_many_worlds() -> None:
    agrees_with_pycocotools(range(24, 400))


def voc_overlap(one: Sequence[float], other: Sequence[float]) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0]) + 1
    height = min(one[3], other[3]) - max(one[1], other[1]) + 1
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (one, other)]
    return width * height / (sum(areas) - width * height) if width > 0 and height > 0 else 0.0


def voc_of_label(gt: list[Record], predictions: list[Record], label: str) -> tuple[float, float, float, float] | None:
    """(AP, AP at 11 points, recall, recall of any) as VOCevaldet.m goes through detections, in loops."""
    pairs = {record["image_id"]: zip(record["boxes"], record["labels"], strict=True) for record in gt}
    drawn = {image_id: [at for at, name in of if name == label] for image_id, of in pairs.items()}
    true = {name: list(dict.fromkeys(map(tuple, boxes))) for name, boxes in drawn.items()}
    total, every = (sum(map(len, boxes.values())) for boxes in (true, drawn))
    ranked = [
        (-score, record["image_id"], place, tuple(at))
        for record in predictions
        for place, (at, name, score) in enumerate(zip(record["boxes"], record["labels"], record["scores"], strict=True))
        if name == label
    ]
    taken, touched, curve = set(), set(), []
    for rank, (_, name, _, at) in enumerate(sorted(ranked), start=1):
        overlaps = [voc_overlap(at, other) for other in true[name]]
        touched |= {(name, number) for number, other in enumerate(drawn[name]) if voc_overlap(at, other) >= 0.5}
        if overlaps and max(overlaps) >= 0.5:
            taken.add((name, overlaps.index(max(overlaps))))
        curve.append((len(taken) / max(total, 1), len(taken) / rank))
    if not total:
        return None
    best = [max((precision for recall, precision in curve if recall >= at), default=0.0) for at in GRID_ARANGE]
    steps = [number / total for number in range(1, len(taken) + 1)]
    area = sum(max(precision for recall, precision in curve if recall >= at) for at in steps) / total
    return area, sum(best) / 11, len(taken) / total, len(touched) / every


def test_voc_is_its_loop_on_random_worlds() -> None:
    for seed in range(40):
        gt, predictions = world(seed)
        for record in gt:
            record.pop("iscrowd", None)
        found = measured(gt, predictions, same=1.0)
        for subset, labels in SUBSETS.items():
            every = [values for label in labels if (values := voc_of_label(gt, predictions, label))]
            names = [
                ("voc-boxes", "AP50"),
                ("voc07-boxes", "AP50"),
                ("voc-boxes", "recall50"),
                ("diag-boxes", "recall50"),
            ]
            for (protocol, metric), *of_labels in zip(names, *every, strict=False):
                mean = 100 * sum(of_labels) / len(of_labels) if of_labels else None
                assert found[protocol, metric, subset] == pytest.approx(mean, abs=1e-9), (seed, protocol, subset)


def test_an_object_that_hico_det_drew_twice_counts_once() -> None:
    drawn = [image([SQUARE, [2, 0, 100, 100]])]
    rows = hoicli.evaluate(drawn, [image([SQUARE], scores=[0.9])], boxes=True, protocol="voc-boxes").rows
    assert [row["value"] for row in rows[:1]] == [100]
    assert "same:0.7" in rows[0]["signature"]
    assert measured(drawn, [image([SQUARE], scores=[0.9])], same=1)["voc-boxes", "AP50", "full"] == 50


def test_boxes_without_scores_have_those_of_their_triplets() -> None:
    hois = [{"subject": 0, "object": 1, "verb": "sit_on", "score": score} for score in (0.2, 0.6)]
    hois.append({"subject": 2, "object": 1, "verb": "sit_on", "score": 0.9})
    boxes: list[Box] = [SQUARE, [0, 50, 90, 200], SQUARE, [5, 5, 9, 9]]
    triplets: Record = {"image_id": "a", "boxes": boxes, "labels": ["person", "bench", "person", "bench"], "hois": hois}
    alone = {**triplets, "boxes": boxes[:2], "labels": ["person", "bench"], "scores": [0.9, 0.9], "hois": []}
    gt = [{**alone, "scores": None}]
    result = hoicli.evaluate(gt, [triplets], boxes=True)
    assert [row["value"] for row in result.rows] == [*measured(gt, [alone]).values()]
    assert all("boxscore:triplet" in row["signature"] for row in result.rows)
    with pytest.raises(HoicliError, match=r"scores: 1 of 2 records with boxes have none"):
        measured([*gt, image([SQUARE], name="b")], [triplets, image([SQUARE], name="b", scores=[0.5])])


def test_precision_says_that_it_is_not_reliable_and_classes_are_labels() -> None:
    rows = hoicli.evaluate([image([SQUARE])], [image([SQUARE], scores=[1])], boxes=True, per_class=True).rows
    assert {row["metric"].startswith("AP") for row in rows if "note" in row} == {True}
    assert [row["n"] for row in rows if row.get("object") == "person" and row["metric"] == "recall50"] == [1, 1, 1]


@pytest.mark.parametrize(("options", "problem"), [
    ({"boxes": True, "iou": 0.7}, "iou: for triplets"),
    ({"boxes": True, "protocol": "hico"}, "choose from all, coco-boxes"),
    ({"protocol": "hico,voc-boxes"}, "voc-boxes.*: is for boxes"),
    ({"boxes": True, "same": 0}, "above 0"),
    ({"same": 0.7}, "is for boxes"),
])  # fmt: skip
def test_options_that_do_not_go_together_are_refused(options: Record, problem: str) -> None:
    with pytest.raises(HoicliError, match=problem):
        hoicli.evaluate([image([SQUARE])], [image([SQUARE])], **options)
