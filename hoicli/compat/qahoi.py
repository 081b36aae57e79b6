"""The HICO-DET evaluator of QAHOI and FGAHOI (cjw2021/QAHOI datasets/hico_eval.py)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import hoicli
from hoicli.api.network_outputs.ranking_rules import read_correct_mat
from hoicli.compat.files import read_json, write_file
from hoicli.compat.query_evaluators import Outputs, best_verbs, check_images, mean_of, remove_suppressed
from hoicli.errors import DataError, UsageError
from hoicli.evaluation.filters import PairNms
from hoicli.vocabulary.datasets import load


def _image_id(gt: Any, place: str) -> str:
    """Return the file name of an image without its ending. Raises `DataError` if it has none."""
    if not isinstance(gt, Mapping) or "file_name" not in gt:
        raise DataError("has no file_name, by which the annotations know it", place=place)
    return str(gt["file_name"]).split(".")[0]


class HICOEvaluator:
    """Takes the place of QAHOI's class of this name, by protocols `ggnet` (`evaluation_default`) and `ggnet-ko`
    (`evaluation_ko`).

    preds, gts: as the released code has them; of `gts`, only `file_name` is read. dataset_path: its folder
    `annotations` has anno_list.json, file_name_to_obj_cat.json, hoi_id_to_num.json and corre_hico.npy. out_dir, epoch:
    where the APs are written. nms_alpha, nms_beta: SOV-STG's. truth, predictions: records and arrays, as
    `hoicli.evaluate` takes them. rows: hoicli's rows, after an evaluation. `evaluation_extra` is refused."""

    def __init__(
        self, preds: Sequence[Outputs], gts: Sequence[Outputs], dataset_path: Any, out_dir: Any, epoch: Any,
        bins_num: int = 10, use_nms: bool = True, nms_thresh: float = 0.5, nms_alpha: float = 1.0,
        nms_beta: float = 1.0,
    ) -> None:  # fmt: skip
        self._folder, self._out_dir, self._epoch = Path(dataset_path, "annotations"), out_dir, epoch
        self.nms = PairNms(nms_thresh, nms_alpha, nms_beta) if use_nms else None
        self._vocabulary = load("hico")
        print("Loading anno_list.json ...")
        self.truth = list(self._truth_records())
        print("convert preds...")
        check_images(preds, gts)
        allowed = self._read_allowed()
        self.predictions = {
            _image_id(gt, f"gts[{place}]"): best_verbs(outputs, allowed, f"preds[{place}]", len(allowed[0]))
            for place, (outputs, gt) in enumerate(zip(preds, gts, strict=True))
        }
        self.rows: list[dict[str, Any]] = []

    def _read_allowed(self) -> NDArray[Any]:
        """Return the factors [117, 80] of verbs' scores that corre_hico.npy has. Raises `DataError`."""
        path = self._folder / "corre_hico.npy"
        try:
            allowed = np.load(path, allow_pickle=False)
        except (OSError, ValueError) as error:
            raise DataError(f"{error}; give the released annotations", place=str(path)) from None
        verbs, objects = len(self._vocabulary.verbs), len(self._vocabulary.objects)
        return read_correct_mat(allowed, verbs, objects, more_objects=False, place=str(path))

    def _truth_records(self) -> Iterator[dict[str, Any]]:
        """Yield the test images of anno_list.json with the objects of file_name_to_obj_cat.json as image-level labels,
        which decide about Known Object. Raises `DataError` for a category that is none of COCO's."""
        path = self._folder / "file_name_to_obj_cat.json"
        names = {number: name for name, number in self._vocabulary.coco_ids.items()}
        numbers_by_file: Mapping[str, Sequence[int]] = read_json(path, "dataset_path", dict)
        for record in hoicli.convert(str(self._folder / "anno_list.json"), from_="no-frills"):
            numbers = numbers_by_file.get(f"{record['image_id']}.jpg", ())
            if unknown := [number for number in numbers if number not in names]:
                raise DataError(f"{record['image_id']}: {unknown[0]!r} is no category of COCO", place=str(path))
            yield record | {"image_hois": [["no_interaction", names[number]] for number in numbers]}

    @cached_property
    def _aps(self) -> dict[str, dict[tuple[str, str], float]]:
        """The AP of each class with ground truth in [0, 1], by protocol."""
        protocols = ("ggnet", "ggnet-ko")
        nms = None if self.nms is None else str(self.nms)
        evaluator = hoicli.Evaluator(self.truth, ",".join(protocols), nms=nms)
        for name, arrays in self.predictions.items():
            evaluator.update(name, **arrays)
        result_rows = evaluator.compute(per_class=True).rows
        self.rows = [row for row in result_rows if "verb" not in row]
        aps: dict[str, dict[tuple[str, str], float]] = {protocol: {} for protocol in protocols}
        for row in result_rows:
            if row["metric"] == "AP":
                aps[row["protocol"]][row["verb"], row["object"]] = row["value"] / 100
        return aps

    def _predicted_classes(self, *, known_object: bool) -> set[tuple[str, str]]:
        """Return the classes with predictions after pair NMS, or only those in images of the object."""
        objects = {record["image_id"]: {name for _, name in record["image_hois"]} for record in self.truth}
        classes = set()
        for name, arrays in remove_suppressed(self.predictions, self.nms, self._vocabulary).items():
            labels = arrays["labels"][arrays["object"]].tolist()
            for label, verb in zip(labels, arrays["verb"].tolist(), strict=True):
                object_name = self._vocabulary.objects[label]
                if not known_object or object_name in objects.get(name, ()):
                    classes.add((self._vocabulary.verbs[verb], object_name))
        return classes

    def _evaluate(self, protocol: str, key: str) -> dict[str, float]:
        """Return the means of a setting as the released code names them, and write the APs. Of the classes without
        ground truth, those without predictions have an AP of 0 there, the others NaN. key: the setting's name there."""
        aps, predicted = self._aps[protocol], self._predicted_classes(known_object=protocol == "ggnet-ko")
        ap_by_id = {}
        for number, pair in enumerate(self._vocabulary.interactions, start=1):
            ap_by_id[f"{number:03}"] = aps.get(pair, float("nan") if pair in predicted else 0.0)
        counts = read_json(self._folder / "hoi_id_to_num.json", "dataset_path", dict)
        is_rare = {hoi_id: bool(counts.get(hoi_id, {}).get("rare")) for hoi_id in ap_by_id}
        valid = {hoi_id: ap for hoi_id, ap in ap_by_id.items() if not np.isnan(ap)}
        means = {
            "mAP": mean_of(valid.values()),
            "mAP_rare": mean_of(ap for hoi_id, ap in valid.items() if is_rare[hoi_id]),
            "mAP_non_rare": mean_of(ap for hoi_id, ap in valid.items() if not is_rare[hoi_id]),
        }
        content = {"AP": ap_by_id, "invalid": len(ap_by_id) - len(valid), **means}
        suffix = "default" if key == "def" else key
        file = os.path.join(self._out_dir, f"epo_{self._epoch}_mAP_{suffix}.json")
        write_file(file, "out_dir", json.dumps(content, sort_keys=True, indent=4).encode())
        print(f"APs have been saved to {self._out_dir}")
        return {name.replace("mAP", f"mAP_{key}"): value for name, value in means.items()}

    def evaluation_default(self) -> dict[str, float]:
        """Compute the means of the Default setting, write the APs of all classes, and return the means, in [0, 1]."""
        return self._evaluate("ggnet", "def")

    def evaluation_ko(self) -> dict[str, float]:
        """Do the same for the Known Object setting."""
        return self._evaluate("ggnet-ko", "ko")

    def evaluation_extra(self) -> dict[str, Any]:
        """Raise `UsageError`: the AP by bins of distance and area is not served."""
        raise UsageError("evaluation_extra: AP by bins of distance and area is not served; see hoicli eval --slice")
