"""anno_bbox.mat, and anno.mat beside it, as MATLAB has them: struct arrays, 1-based boxes in the order x1 x2 y1 y2.

An image-level label without a triplet is an invisible interaction in anno_bbox.mat, except that of image 4, which only
anno.mat knows. anno.mat also holds -1 and NaN.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import savemat

from hoicli.vocabulary.datasets import load
from tests.foreign import Records, writes
from tests.support.project import Record


@writes("anno_bbox.mat")
def hico_mat(truth: Records, predictions: Records, path: Path) -> None:
    """Both files, compressed as -v7 does it; the train split is one image."""
    train = {**truth[0], "image_id": "HICO_train2015_00000001", "file_name": "HICO_train2015_00000001.jpg"}
    save(path, {"bbox_test": images(truth), "bbox_train": images([train])})
    save(path.with_name("anno.mat"), {**labels(truth, "test"), **labels([train], "train"), "list_action": actions()})


def save(path: Path, variables: dict[str, Any]) -> None:
    """A .mat file with the same bytes every time (the header of SciPy's has the date)."""
    savemat(path, variables, do_compression=True)
    data = path.read_bytes()
    path.write_bytes(b"MATLAB 5.0 MAT-file, made by tests/foreign/hico_mat.py".ljust(116) + data[116:])


def structs(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Any:
    """A 1 x n struct array."""
    array = np.empty((1, len(rows)), dtype=[(name, object) for name in names])
    for column, row in enumerate(rows):
        array[0, column] = row
    return array


def images(records: Records) -> Any:
    """bbox_test of these records."""
    rows = []
    for record in records:
        size = structs(("width", "height", "depth"), [(float(record["width"]), float(record["height"]), 3.0)])
        rows.append((record["file_name"], size, _hois(record)))
    return structs(("filename", "size", "hoi"), rows)


def _hois(record: Record) -> Any:
    """One entry an interaction, in the order of the triplets; then the invisible ones."""
    ids = load("hico").interaction_ids
    rows: dict[int, tuple[list[Any], list[Any], list[Any]]] = {}
    for hoi in record["hois"]:
        number = ids[hoi["verb"], record["labels"][hoi["object"]]] + 1
        humans, things, connection = rows.setdefault(number, ([], [], []))
        for index, boxes in ((hoi["subject"], humans), (hoi["object"], things)):
            if record["boxes"][index] not in boxes:
                boxes.append(record["boxes"][index])
        ends = (humans, hoi["subject"]), (things, hoi["object"])
        connection.append([boxes.index(record["boxes"][index]) + 1.0 for boxes, index in ends])
    visible = [
        (float(number), _boxes(humans), _boxes(things), np.array(connection), 0.0)
        for number, (humans, things, connection) in rows.items()
    ]
    unseen = [ids[verb, name] + 1 for verb, name in record["image_hois"] if record["boxes"]]
    invisible = [(float(n), _boxes([]), _boxes([]), np.zeros((0, 0)), 1.0) for n in unseen if n not in rows]
    return structs(("id", "bboxhuman", "bboxobject", "connection", "invis"), visible + invisible)


def _boxes(boxes: list[list[float]]) -> Any:
    return structs(("x1", "x2", "y1", "y2"), [(x1 + 1.0, x2 + 1.0, y1 + 1.0, y2 + 1.0) for x1, y1, x2, y2 in boxes])


def labels(records: Records, split: str) -> dict[str, Any]:
    """anno_test and list_test of these records; one interaction that does not happen, one that nobody judged, as its
    object is not there."""
    ids = load("hico").interaction_ids
    matrix = np.zeros((600, len(records)))
    names = np.empty((len(records), 1), dtype=object)
    for column, record in enumerate(records):
        names[column, 0] = record["file_name"]
        matrix[[ids[verb, name] for verb, name in record["image_hois"]], column] = 1
    of_object = load("hico").interactions_of(records[0]["image_hois"][0][1])
    matrix[next(number for number in of_object if not matrix[number, 0]), 0], matrix[598, 0] = -1, np.nan
    return {f"anno_{split}": matrix, f"list_{split}": names}


def actions() -> Any:
    """list_action: 600 x 1 structs, here without the dictionary's definitions."""
    pairs = load("hico").interactions
    rows = [(name, verb, f"{verb}ing", "", "", "") for verb, name in pairs]
    return structs(("nname", "vname", "vname_ing", "syn", "def", "synset"), rows).T
