"""Small random worlds as released evaluators get them: a network's outputs for a few images, and ground truth.

Boxes are on a coarse grid, so that many IoUs are exactly 0.5; scores differ, since how each code sorts equal ones is no
rule of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from hoicli.vocabulary.datasets import VCOCO_ORDERS, load

IMAGES, QUERIES = 6, 10
SEEDS = range(12)
HICO = load("hico")
TRIPLETS = [(0, HICO.object_ids[name], HICO.verb_ids[verb]) for verb, name in HICO.interactions]
RARE, NON_RARE = ([TRIPLETS[number] for number in sorted(HICO.groups[group])] for group in ("rare", "non_rare"))
VCOCO_VERBS = VCOCO_ORDERS["qpic"]

Images = list[dict[str, Any]]


def correct_mat() -> Any:
    matrix = np.zeros((117, 80))
    for _, label, verb in TRIPLETS:
        matrix[verb, label] = 1
    return matrix


def random_box(rng: np.random.Generator) -> list[int]:
    x, y = rng.integers(0, 20, 2).tolist()
    width, height = rng.integers(4, 14, 2).tolist()
    return [x, y, x + width, y + height]


def near(rng: np.random.Generator, box: list[int]) -> list[int]:
    moved: list[int] = (np.array(box) + rng.integers(-2, 3, 4)).tolist()
    return moved


def image_of(boxes: list[list[int]], labels: list[int], hois: list[list[int]], number: int) -> dict[str, Any]:
    return {
        "id": number,
        "boxes": np.array(boxes, dtype=np.float32).reshape(-1, 4),
        "labels": np.array(labels, dtype=np.int64),
        "hois": np.array(hois, dtype=np.int64).reshape(-1, 3),
    }


def queries_of(subjects: Any, objects: Any, labels: list[int], scores: Any) -> dict[str, Any]:
    count = len(labels)
    return {
        "labels": np.array([0] * count + labels, dtype=np.int64),
        "boxes": np.array([*subjects, *objects], dtype=np.float32),
        "verb_scores": np.array(scores, dtype=np.float32),
        "sub_ids": np.arange(count),
        "obj_ids": np.arange(count, 2 * count),
    }


def hico_world(seed: int, queries: int = QUERIES) -> tuple[Images, Images]:
    """(preds, gts) of QPIC's and CDN's HICOEvaluator. One image in five or so has no ground truth."""
    rng = np.random.default_rng(seed)
    classes = [TRIPLETS[number] for number in rng.choice(600, 5, replace=False)]
    preds, gts = [], []
    for number in range(IMAGES):
        boxes: list[list[int]] = []
        labels: list[int] = []
        hois = []
        for _ in range(rng.integers(0, 5)):
            _, label, verb = classes[rng.integers(5)]
            hois.append([len(boxes), len(boxes) + 1, verb])
            boxes += [random_box(rng), random_box(rng)]
            labels += [0, label]
        gts.append(image_of(boxes, labels, hois, number))
        subjects, objects, found, scores = [], [], [], []
        for _ in range(queries):
            score = rng.random(117) * 0.3
            if hois and rng.random() < 0.8:
                subject, object_, verb = hois[rng.integers(len(hois))]
                subjects.append(near(rng, boxes[subject]))
                objects.append(near(rng, boxes[object_]))
                found.append(labels[object_])
                score[verb] += rng.random()
            else:
                subjects.append(random_box(rng))
                objects.append(random_box(rng))
                found.append(classes[rng.integers(5)][1])
            scores.append(score)
        preds.append(queries_of(subjects, objects, found, scores))
    return preds, gts


def write_ggnet_folder(gts: Images, folder: Path) -> None:
    """The files of GGNet's annotations that QAHOI's class reads, for the images of `hico_world`: anno_list.json of
    No-Frills, and an object in each image that no box shows."""
    ids = {(label, verb): f"{number:03}" for number, (_, label, verb) in enumerate(TRIPLETS, start=1)}
    cats = [HICO.coco_ids[name] for name in HICO.objects]
    listed, known = [], {}
    for gt in gts:
        name, boxes, labels = f"HICO_test2015_{gt['id']:08}", gt["boxes"].astype(int).tolist(), gt["labels"].tolist()
        entries: dict[str, dict[str, Any]] = {}
        for subject, object_, verb in gt["hois"].tolist():
            hoi_id = ids[labels[object_], verb]
            entry = entries.setdefault(hoi_id, {"id": hoi_id, "human_bboxes": [], "object_bboxes": [],
                                                "connections": [], "invis": 0})  # fmt: skip
            entry["connections"].append([len(entry["human_bboxes"]), len(entry["object_bboxes"])])
            entry["human_bboxes"].append(boxes[subject])
            entry["object_bboxes"].append(boxes[object_])
        listed.append({"global_id": name, "image_path_postfix": f"test2015/{name}.jpg", "image_size": [40, 40, 3],
                       "hois": list(entries.values()), "pos_hoi_ids": list(entries), "neg_hoi_ids": []})  # fmt: skip
        objects = {cats[labels[object_]] for _, object_, _ in gt["hois"].tolist()} | {cats[gt["id"]]}
        known[f"{name}.jpg"] = sorted(objects)
    annotations = folder / "annotations"
    annotations.mkdir(exist_ok=True)
    hois = [{"id": ids[label, verb], "object_cat": cats[label], "verb_id": verb + 1} for _, label, verb in TRIPLETS]
    rare = {hoi["id"]: {"rare": number in HICO.groups["rare"]} for number, hoi in enumerate(hois)}
    for file, content in (("anno_list", listed), ("hoi_list_new", hois), ("hoi_id_to_num", rare),
                          ("file_name_to_obj_cat", known)):  # fmt: skip
        (annotations / f"{file}.json").write_text(json.dumps(content))
    np.save(annotations / "corre_hico.npy", correct_mat())


def triplet_world(seed: int) -> tuple[Images, Images]:
    """(preds, gts) of GEN-VLKT's HICOEvaluator, with a score for each of the 600 interactions and of the 80 objects."""
    preds, gts = hico_world(seed)
    rng = np.random.default_rng(seed)
    for outputs in preds:
        labels = outputs.pop("labels")[QUERIES:]
        verb_scores = outputs.pop("verb_scores")
        scores = rng.random((QUERIES, 600)) * 0.2
        for number, (_, label, verb) in enumerate(TRIPLETS):
            scores[labels == label, number] += verb_scores[labels == label, verb]
        object_scores = rng.random((QUERIES, 80)) * 0.1
        object_scores[np.arange(QUERIES), labels] += 0.5
        outputs |= {"hoi_scores": scores.astype(np.float32), "obj_scores": object_scores.astype(np.float32)}
    return preds, gts


def vcoco_world(seed: int) -> tuple[Images, Images, Any]:
    """(preds, gts, correct_mat) of QPIC's and CDN's VCOCOEvaluator; label 80 is no object."""
    rng = np.random.default_rng(seed)
    classes = [(int(rng.integers(29)), int(rng.integers(1, 80))) for _ in range(6)]
    preds, gts = [], []
    for number in range(IMAGES):
        boxes: list[list[int]] = []
        labels: list[int] = []
        hois = []
        for _ in range(rng.integers(0, 5)):
            verb, label = classes[rng.integers(6)]
            has_object = VCOCO_VERBS[verb].endswith(("_obj", "_instr")) and rng.random() < 0.8
            hois.append([len(boxes), len(boxes) + 1 if has_object else -1, verb])
            boxes += [random_box(rng), random_box(rng)] if has_object else [random_box(rng)]
            labels += [0, label] if has_object else [0]
        gts.append(image_of(boxes, labels, hois, number))
        subjects, objects, found, scores = [], [], [], []
        for _ in range(QUERIES):
            score = rng.random(29) * 0.3
            subjects.append(random_box(rng))
            objects.append(random_box(rng))
            found.append(int(rng.choice([80, 1, 5])))
            if hois and rng.random() < 0.8:
                subject, object_, verb = hois[rng.integers(len(hois))]
                subjects[-1] = near(rng, boxes[subject])
                if object_ >= 0:
                    objects[-1] = near(rng, boxes[object_])
                    found[-1] = labels[object_] if rng.random() < 0.9 else 80
                score[verb] += rng.random()
            scores.append(score)
        preds.append(queries_of(subjects, objects, found, scores))
    return preds, gts, (rng.random((29, 80)) < 0.9).astype(float)


def vcoco_triplet_world(seed: int) -> tuple[Images, Images, Any]:
    """(preds, gts, correct_mat) of GEN-VLKT's VCOCOEvaluator, with a score for each of its 263 interactions."""
    preds, gts, matrix = vcoco_world(seed)
    rng = np.random.default_rng(seed)
    for outputs in preds:
        del outputs["verb_scores"]
        object_scores = rng.random((QUERIES, 81)) * 0.1
        object_scores[np.arange(QUERIES), outputs["labels"][QUERIES:]] += 0.5
        outputs["hoi_scores"] = rng.random((QUERIES, 263)).astype(np.float32)
        outputs["obj_scores"] = object_scores.astype(np.float32)
    return preds, gts, matrix


def annotated_world(seed: int, dataset: str) -> tuple[Images, dict[int, list[list[Any]]]]:
    """(annotations, predictions by image) of INP-CC's evaluators, for hico or swig."""
    rng, vocabulary = np.random.default_rng(seed), load(dataset)
    evaluated = sorted(vocabulary.subsets["evaluated"]) if dataset == "swig" else range(600)
    classes = rng.choice(list(evaluated), 6, replace=False).tolist()
    person = vocabulary.object_ids[vocabulary.subjects[0]]
    numbers = vocabulary.coco_ids if dataset == "hico" else vocabulary.object_ids
    annotations: Images = []
    predictions: dict[int, list[list[Any]]] = {}
    for number in range(IMAGES):
        boxes, hois, rows = [], [], []
        for pair in range(rng.integers(0, 5)):
            interaction = classes[rng.integers(6)]
            verb, name = vocabulary.interactions[interaction]
            subject, object_ = random_box(rng), random_box(rng)
            subjects = 1 if dataset == "hico" else person
            boxes += [{"bbox": subject, "category_id": subjects}, {"bbox": object_, "category_id": numbers[name]}]
            verb_number = vocabulary.verb_ids[verb]
            kind = {"category_id": verb_number + 1} if dataset == "hico" else {"action_id": verb_number}
            hois.append({"subject_id": 2 * pair, "object_id": 2 * pair + 1, **kind})
            for _ in range(3):
                predicted = interaction if rng.random() < 0.7 else classes[rng.integers(6)]
                corners = [float(corner) for corner in (*near(rng, subject), *near(rng, object_))]
                rows.append([predicted, float(rng.random()), *corners])
        keys = ("annotations", "hoi_annotation") if dataset == "hico" else ("box_annotations", "hoi_annotations")
        annotations.append({"img_id": number, "file_name": f"x_{number}.jpg", keys[0]: boxes, keys[1]: hois})
        predictions[number] = rows
    return annotations, predictions
