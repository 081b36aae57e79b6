"""Predictions as pairs of boxes, of the INP-CC family and of Diag-HOI."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from hoicli.vocabulary.datasets import load
from tests.foreign import Records, writes


def _by_class(predictions: Records, path: Path, dataset: str) -> None:
    """All ids, most of them without a prediction; nothing indexes the boxes, so equal ones are repeated. Images are
    named by `img_id`, else by the number at the end of their name."""
    interaction_ids = load(dataset).interaction_ids
    content: dict[str, dict[int, list[Any]]] = {
        name: {hoi: [] for hoi in range(len(interaction_ids))} for name in ("scores", "boxes", "keys")
    }
    for record in predictions:
        for hoi in record["hois"]:
            number = interaction_ids[hoi["verb"], record["labels"][hoi["object"]]]
            content["scores"][number].append(hoi["score"])
            content["boxes"][number].append([*record["boxes"][hoi["subject"]], *record["boxes"][hoi["object"]]])
            content["keys"][number].append(record.get("img_id", int(record["image_id"].rsplit("_", 1)[1])))
    path.write_bytes(pickle.dumps(content, protocol=4))


@writes("preds.pkl")
def inpcc(truth: Records, predictions: Records, path: Path) -> None:
    """preds.pkl as the INP-CC family saves it: scores, boxes and image numbers, each a dictionary by HOI id."""
    _by_class(predictions, path, "hico")


@writes("preds.pkl", folder="swig")
def swig_inpcc(truth: Records, predictions: Records, path: Path) -> None:
    """The same on SWIG-HOI: 14,130 keys, images by img_id."""
    _by_class(predictions, path, "swig")


@writes("inpcc.json")
def inpcc_json(truth: Records, predictions: Records, path: Path) -> None:
    """The INP-CC family's predictions as one JSON dictionary of rows an image, keyed by image number. Rows [hoi, score,
    person, object]; json.dump turns the numbers of the images into text."""
    interaction_ids = load("hico").interaction_ids
    content = {
        int(record["image_id"].rsplit("_", 1)[1]): [
            [
                interaction_ids[hoi["verb"], record["labels"][hoi["object"]]],
                hoi["score"],
                *record["boxes"][hoi["subject"]],
                *record["boxes"][hoi["object"]],
            ]
            for hoi in record["hois"]
        ]
        for record in predictions
    }
    path.write_text(json.dumps(content))


@writes("hoidet.json", format="hoidet", kind="json")
def hoidet(truth: Records, predictions: Records, path: Path) -> None:
    """What hoidet/metrics/hicodet.py of HOIDet reads: images by number, pairs by the indices of their boxes."""
    interaction_ids = load("hico").interaction_ids
    content = [
        {
            "image_id": int(record["image_id"].rsplit("_", 1)[1]),
            "boxes": record["boxes"],
            "h_idx": [hoi["subject"] for hoi in record["hois"]],
            "o_idx": [hoi["object"] for hoi in record["hois"]],
            "hoi_score": [hoi["score"] for hoi in record["hois"]],
            "hoi_class": [interaction_ids[hoi["verb"], record["labels"][hoi["object"]]] for hoi in record["hois"]],
        }
        for record in predictions
    ]
    path.write_text(json.dumps(content))


@writes("pairs.pkl")
def diag_pairs(truth: Records, predictions: Records, path: Path) -> None:
    """pair_pred_wscore.pkl as Diag-HOI has it: the person-object pairs of each image with a score, without verbs. Each
    pair of boxes with a triplet once, its score that of the best triplet; box_pairs may be empty."""
    object_ids = load("hico").object_ids
    content = []
    for record in predictions:
        best: dict[tuple[int, int], float] = {}
        for hoi in record["hois"]:
            pair = hoi["subject"], hoi["object"]
            best[pair] = max(hoi["score"], best.get(pair, 0.0))
        pairs = [
            {
                "h_box": record["boxes"][subject],
                "o_box": record["boxes"][thing],
                "o_label": object_ids[record["labels"][thing]],
                "hoi_score_inter": score,
            }
            for (subject, thing), score in best.items()
        ]
        content.append({"filename": record["file_name"], "box_pairs": pairs})
    path.write_bytes(pickle.dumps(content, protocol=4))
