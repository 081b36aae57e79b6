"""Lists of images with numbered boxes and interactions, which many projects write in much the same way."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hoicli.vocabulary.datasets import load
from tests.foreign import Records, writes
from tests.support.project import Record

Number = Callable[[Any], Any]


def boxes(record: Record, ids: Mapping[str, int], number: Number = lambda value: value) -> list[Record]:
    """The boxes with the number of each label; `number` makes the numbers of the file."""
    named = zip(record["boxes"], record["labels"], strict=True)
    return [{"bbox": [number(side) for side in box], "category_id": number(ids[label])} for box, label in named]


def hois(
    record: Record, id_of: Callable[[str, str], int], number: Number = lambda value: value, key: str = "category_id"
) -> list[Record]:
    """The interactions, with the number of each verb and label of its object, and with the scores they have."""
    found = []
    for hoi in record["hois"]:
        row = {"subject_id": number(hoi["subject"]), "object_id": number(hoi["object"])}
        row[key] = number(id_of(hoi["verb"], record["labels"][hoi["object"]]))
        found.append({**row, "score": number(hoi["score"])} if "score" in hoi else row)
    return found


class Scalar:
    """A number whose repr is that of a NumPy 2 scalar, whichever NumPy writes the fixture."""

    def __init__(self, value: float) -> None:
        kind = "int64" if isinstance(value, int) else "float32" if float(np.float32(value)) == value else "float64"
        self.text = f"np.{kind}({value!r})"

    def __repr__(self) -> str:
        return self.text


@writes("results.json")
def cdn(truth: Records, predictions: Records, path: Path) -> None:
    """results.json as the evaluators of CDN and MUREN leave it: a JSON string that holds the repr of a dictionary. With
    NumPy 2 the repr names its scalars. The scores and boxes of a network are float32; where a number of the
    fixture is not one exactly it is written as np.float64, so that nothing is rounded. `preds`, and `gts` as the
    evaluator keeps them: 1-based boxes, 0-based ids."""
    counted = [{**record, "boxes": [[float(x + 1) for x in box] for box in record["boxes"]]} for record in truth]
    keys = {"filename": "filename", "annotations": "predictions", "hoi_annotation": "hoi_prediction"}
    gts = [{key: item[name] for key, name in keys.items()} for item in items(counted, Scalar)]
    path.write_text(json.dumps(str({"preds": items(predictions, Scalar), "gts": gts})))


def items(records: Records, number: Any) -> Records:
    """The list of CDN's dictionaries; `number` makes the numbers of it."""
    vocabulary = load("hico")
    return [
        {
            "filename": record["file_name"],
            "predictions": boxes(record, vocabulary.object_ids, number),
            "hoi_prediction": hois(record, lambda verb, _: vocabulary.verb_ids[verb], number),
        }
        for record in records
    ]


@writes("cdn.json")
def cdn_list(truth: Records, predictions: Records, path: Path) -> None:
    """CDN's list of dictionaries as plain JSON, which `convert --to cdn-json` writes as well. Numbers as they are."""
    path.write_text(json.dumps(items(predictions, lambda value: value)))


@writes("preds_wo_nointer.pkl")
def diag_list(truth: Records, predictions: Records, path: Path) -> None:
    """preds_wo_nointer.pkl of Diag-HOI: CDN's list as a pickle, no_interaction left out, numbers as NumPy scalars.
    Integers as np.int64, scores and boxes as np.float64 (float32 would round them)."""
    kept = [{**one, "hois": [hoi for hoi in one["hois"] if hoi["verb"] != "no_interaction"]} for one in predictions]
    path.write_bytes(pickle.dumps(items(kept, _scalar), protocol=4))


def _scalar(value: float) -> Any:
    return np.int64(value) if isinstance(value, int) else np.float64(value)


@writes("results_gen_vlkt.json")
def gen_vlkt(truth: Records, predictions: Records, path: Path) -> None:
    """results.json of GEN-VLKT and HOICLIP: as CDN's, but boxes have no class and an interaction is one of the 600. The
    last box of an image is one that no interaction uses: the project writes all its queries' boxes."""
    ids = load("hico").interaction_ids
    preds = [
        {
            "filename": record["file_name"],
            "predictions": [{"bbox": [Scalar(float(x)) for x in box]} for box in [*record["boxes"], [0, 0, 8.5, 8.5]]],
            "hoi_prediction": hois(record, lambda *pair: ids[pair], Scalar),
        }
        for record in predictions
    ]
    path.write_text(json.dumps(str({"preds": preds, "gts": []})))


@writes("predictions_ppdm.json")
def ppdm(truth: Records, predictions: Records, path: Path) -> None:
    """predictions_model_N.json of PPDM and GGNet: COCO ids 1-90, verbs 1-117, 0-based boxes, the key file_name. The
    keys in the order in which the project adds them: file_name comes last."""
    vocabulary = load("hico")
    content = [
        {
            "predictions": boxes(record, vocabulary.coco_ids),
            "hoi_prediction": hois(record, lambda verb, _: vocabulary.verb_ids[verb] + 1),
            "file_name": record["file_name"],
        }
        for record in predictions
    ]
    path.write_text(json.dumps(content))


@writes("test_hico.json")
def hoia(truth: Records, predictions: Records, path: Path) -> None:
    """test_hico.json as PPDM, QPIC and CDN have it: 1-based integer boxes, COCO ids, verbs from 1. No image-level
    labels, no sizes. Every other image has its category ids as text with a line break."""
    vocabulary = load("hico")
    content = []
    for row, record in enumerate(truth):
        counted = {**record, "boxes": [[side + 1 for side in box] for box in record["boxes"]]}
        annotations = boxes(counted, vocabulary.coco_ids)
        if row % 2:
            annotations = [{**box, "category_id": f"{box['category_id']}\n"} for box in annotations]
        hoi_annotation = hois(record, lambda verb, _: vocabulary.verb_ids[verb] + 1)
        item = {"file_name": record["file_name"], "annotations": annotations, "hoi_annotation": hoi_annotation}
        content.append(item)
    path.write_text(json.dumps(content))


@writes("swig_dev_1000.json", folder="swig")
def swig(truth: Records, predictions: Records, path: Path) -> None:
    """swig_dev_1000.json of SWIG-HOI: everything counted from 0, boxes as the records have them. With what else
    annotators called a box, which evaluation does not look at."""
    vocabulary = load("swig")
    content = [
        {
            **{key: record[key] for key in ("file_name", "img_id", "height", "width")},
            "box_annotations": [{**box, "aux_category_id": [1]} for box in boxes(record, vocabulary.object_ids)],
            "hoi_annotations": hois(record, lambda verb, _: vocabulary.verb_ids[verb], key="action_id"),
        }
        for record in truth
    ]
    path.write_text(json.dumps(content))
