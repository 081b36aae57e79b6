"""Released evaluators beside ours, from clones that are no part of the repository: `python -m tests.bench --peers DIR`.

DIR holds CDN (github.com/YueLiao/CDN) and v-coco (github.com/s-gupta/v-coco). Each runs as it is but for what would
stop it: no PyTorch and no pycocotools for a few look-ups, no crash at images without predictions or at today's NumPy.
"""

from __future__ import annotations

import json
import sys
import types
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from hoicli.vocabulary.datasets import load

CDN = "released: CDN's hico_eval.py"
VCOCO = "released: vsrl_eval.py"


def module_of(path: Path, *mended: tuple[str, str], **known: Any) -> Any:
    """A released file as a module, with `mended` text and other names already `known` to it."""
    module, text = types.ModuleType(path.stem), path.read_text()
    for old, new in mended:
        text = text.replace(old, new)
    vars(module).update(known)
    exec(compile(text, str(path), "exec"), vars(module))
    return module


Records = Iterable[dict[str, Any]]


def cdn(folder: str, truth: Records, predictions: Records) -> dict[str, float]:
    """Protocol qpic; prints and returns the mAPs, in fractions."""
    hico, evaluator_class = load("hico"), module_of(Path(folder, "CDN/datasets/hico_eval.py")).HICOEvaluator

    def read(records: Records, shift: int) -> dict[str, Any]:
        found = {}
        for record in records:
            boxes = [[value + shift for value in box] for box in record["boxes"]]
            numbers = [hico.object_ids[label] for label in record["labels"]]
            hois = [
                {"subject_id": hoi["subject"], "object_id": hoi["object"], "score": hoi.get("score"),
                 "category_id": hico.verb_ids[hoi["verb"]]} for hoi in record["hois"]
            ]  # fmt: skip
            items = [{"bbox": box, "category_id": number} for box, number in zip(boxes, numbers, strict=True)]
            found[record["image_id"]] = (items, hois)
        return found

    gts, preds = read(truth, 1), read(predictions, 0)
    evaluator, counts = object.__new__(evaluator_class), defaultdict[Any, int](int)
    for items, hois in gts.values():
        for hoi in hois:
            numbers = (items[hoi[side]]["category_id"] for side in ("subject_id", "object_id"))
            counts[(*numbers, hoi["category_id"])] += 1
    groups = [{(0, hico.object_ids[o], hico.verb_ids[v]) for v, o in map(hico.interactions.__getitem__, numbers)}
              for numbers in (hico.groups["rare"], hico.groups["non_rare"])]  # fmt: skip
    vars(evaluator).update(
        overlap_iou=0.5, max_hois=100, rare_triplets=groups[0], non_rare_triplets=groups[1], sum_gts=counts,
        gt_triplets=list(counts), fp=defaultdict(list), tp=defaultdict(list), score=defaultdict(list),
        gts=[{"annotations": items, "hoi_annotation": hois} for items, hois in gts.values()], preds=[],
    )  # fmt: skip
    for image in gts:
        items, hois = preds.get(image, ([], []))
        best = sorted(hois, key=lambda hoi: -hoi["score"])[:100]
        evaluator.preds.append({"predictions": items, "hoi_prediction": best})
    overlaps = evaluator.compute_iou_mat
    evaluator.compute_iou_mat = lambda one, other: overlaps(one, other) or ({}, {})
    found: dict[str, float] = evaluator.evaluate()
    return found


class _Coco:
    """What the evaluator asks of pycocotools."""

    def __init__(self, path: str) -> None:
        data = json.loads(Path(path).read_text())
        self._images = {row["id"]: row for row in data["images"]}
        self._categories, self._rows = data["categories"], {row["id"]: row for row in data["annotations"]}
        self._of_image = defaultdict[int, list[int]](list)
        for row in data["annotations"]:
            self._of_image[row["image_id"]].append(row["id"])
        self.getCatIds = lambda: [row["id"] for row in self._categories]
        self.loadCats = lambda _: self._categories
        self.loadImgs = lambda ids: [self._images[int(image)] for image in ids]
        self.getAnnIds = lambda imgIds, iscrowd: self._of_image[imgIds]  # noqa: N803, ARG005
        self.loadAnns = lambda ids: [self._rows[row] for row in ids]


def vcoco(folder: str, vsrl: str, instances: str, ids: str, cache: str) -> None:
    """Agents and both scenarios; prints every class, to twelve decimals."""
    mended = [("from pycocotools.coco import COCO", ""), ("role_id[i, j - 1] = aid", "role_id[i, j - 1] = aid[0]"),
              ("{:0.2f}", "{:0.12f}")]  # fmt: skip
    module = module_of(Path(folder, "v-coco/vsrl_eval.py"), *mended)
    module.COCO = _Coco
    module.VCOCOeval(vsrl, instances, ids)._do_eval(cache)


if __name__ == "__main__":
    if sys.argv[1] == "cdn":
        cdn(sys.argv[2], *(map(orjson.loads, Path(path).read_bytes().splitlines()) for path in sys.argv[3:]))
    else:
        vcoco(*sys.argv[2:])
