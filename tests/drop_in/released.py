"""The released classes themselves, from clones that are no part of the repository, on the worlds of this folder.

    python -m tests.drop_in.released PEERS      writes released.json: what each returns and prints

PEERS holds qpic (github.com/hitachi-rd-cv/qpic), CDN and gen-vlkt (github.com/YueLiao), INP-CC (github.com/ltttpku),
QAHOI and SOV-STG (github.com/cjw2021).
Each runs as it is but for PyTorch and OpenCV, which are not needed for numbers.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest

from tests.bench.released import module_of
from tests.drop_in import worlds
from tests.support.project import dumped

NUMBERS = Path(__file__).with_name("released.json")
PEERS = os.environ.get("HOICLI_PEERS", "")
Test = TypeVar("Test", bound=Callable[..., None])
NO_OPENCV = ("import os, cv2, json", "import os, json")


def runs_released_code(test: Test) -> Test:
    """Mark a test that runs code of the folder HOICLI_PEERS: it takes long, and what that code warns of is not ours."""
    for mark in (
        pytest.mark.long,
        pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # of means of nothing
        pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # of files left open
        pytest.mark.filterwarnings("ignore::hoicli.errors.HoicliWarning"),  # in a few worlds most boxes fit nothing
        pytest.mark.skipif(not PEERS, reason="needs clones of released code: HOICLI_PEERS=FOLDER"),
    ):
        test = mark(test)
    return test


class Tensor(np.ndarray[Any, Any]):
    """An array with what the released code asks of a tensor."""

    def to(self, _: str) -> Tensor:
        return self

    def numpy(self) -> Any:
        return np.array(self)


def as_tensors(images: worlds.Images) -> worlds.Images:
    return [
        {key: value.view(Tensor) if isinstance(value, np.ndarray) else value for key, value in image.items()}
        for image in images
    ]


def run(call: Callable[[], Any]) -> tuple[Any, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), np.errstate(all="ignore"):
        returned = call()
    return returned, printed.getvalue()


def arguments(seed: int, folder: str, name: str = "dump.json") -> SimpleNamespace:
    """The options of CDN's and GEN-VLKT's main.py that their evaluators read."""
    return SimpleNamespace(
        use_nms_filter=bool(seed % 2), thres_nms=0.7, nms_alpha=1.0, nms_beta=0.5, json_file=str(Path(folder, name)),
        zero_shot_type=("default", "rare_first", "unseen_object")[seed % 3],
    )  # fmt: skip


def qpic_hico(classes: Any, seed: int, folder: str) -> Any:
    preds, gts = worlds.hico_world(seed)
    parts = (classes.tensors(preds), classes.tensors(gts), 0, worlds.RARE, worlds.NON_RARE, worlds.correct_mat())
    return run(lambda: classes.qpic.HICOEvaluator(*parts).evaluate())


def qpic_vcoco(classes: Any, seed: int, folder: str) -> Any:
    preds, gts, matrix = worlds.vcoco_world(seed)
    parts = (classes.tensors(preds), classes.tensors(gts), 0, matrix)
    return run(lambda: classes.qpic_vcoco.VCOCOEvaluator(*parts).evaluate())


def named(gts: worlds.Images) -> worlds.Images:
    return [gt | {"filename": f"image_{gt['id']}.jpg"} for gt in gts]


def cdn_hico(classes: Any, seed: int, folder: str) -> Any:
    preds, gts = worlds.hico_world(seed)
    parts = (classes.tensors(preds), classes.tensors(named(gts)), worlds.RARE, worlds.NON_RARE, worlds.correct_mat())
    return run(lambda: classes.cdn.HICOEvaluator(*parts, arguments(seed, folder)).evaluate())


def gen_vlkt(classes: Any, seed: int, folder: str) -> Any:
    preds, gts = worlds.triplet_world(seed)
    parts = (classes.tensors(preds), classes.tensors(named(gts)), worlds.RARE, worlds.NON_RARE, worlds.correct_mat())
    return run(lambda: classes.gen_vlkt.HICOEvaluator(*parts, arguments(seed, folder)).evaluate())


def gen_vlkt_vcoco(classes: Any, seed: int, folder: str) -> Any:
    preds, gts, matrix = worlds.vcoco_triplet_world(seed)
    parts = (classes.tensors(preds), classes.tensors(named(gts)), matrix)
    return run(lambda: classes.gen_vlkt_vcoco.VCOCOEvaluator(*parts).evaluate())


def qahoi_hico(classes: Any, seed: int, folder: str, module: str = "qahoi") -> Any:
    """Both settings, with the APs that are written. With fewer queries the best 100 triplets of an image would have
    some of no class, which stop the released code."""
    preds, gts = worlds.hico_world(seed, queries=40)
    worlds.write_ggnet_folder(gts, Path(folder))
    files = [{"file_name": f"HICO_test2015_{gt['id']:08}.jpg"} for gt in gts]

    def evaluate() -> dict[str, float]:
        evaluator_class = getattr(classes, module).HICOEvaluator
        evaluator = evaluator_class(classes.tensors(preds), files, folder, folder, seed, use_nms=bool(seed % 2))
        means: dict[str, float] = evaluator.evaluation_default() | evaluator.evaluation_ko()
        for setting in ("default", "ko"):
            written = json.loads(Path(folder, f"epo_{seed}_mAP_{setting}.json").read_text())
            means |= {f"{setting} {hoi_id}": ap for hoi_id, ap in written.pop("AP").items() if ap}
            means |= {f"{setting} {key}": value for key, value in written.items()}
        return means

    returned, printed = run(evaluate)
    return returned, printed.replace(folder, "FOLDER")


def sov_stg_hico(classes: Any, seed: int, folder: str) -> Any:
    return qahoi_hico(classes, seed, folder, "sov_stg")


def inpcc(classes: Any, seed: int, folder: str, dataset: str) -> Any:
    annotations, predictions = worlds.annotated_world(seed, dataset)
    path = dumped(Path(folder, "annotations.json"), annotations)

    def evaluate() -> dict[str, Any]:
        if dataset == "hico":
            split = ("rare_first", "non_rare_first", "uc0", "unseen_verb")[seed % 4]
            evaluator = classes.inpcc.HICOEvaluator(str(path), folder, split, bool(seed % 2))
        else:
            evaluator = classes.inpcc_swig.SWiGEvaluator(str(path), folder)
        for image, rows in predictions.items():
            evaluator.update({image: rows})
        evaluator.save_preds()
        evaluator.accumulate()
        evaluator.summarize()
        ap, recall = (np.nan_to_num(getattr(evaluator, f"{dataset}_{key}")) for key in ("ap", "rec"))
        saved = pickle.loads(Path(folder, "preds.pkl").read_bytes())
        if dataset == "hico":
            evaluator.save()
            boxes = pickle.loads(Path(folder, "dets.pkl").read_bytes())["gts"]
            saved["keys"]["gts"] = [box for images in boxes.values() for found in images.values() for box in found]
        numbers = {
            f"{key} {number}": float(values[number])
            for key, values in (("AP", ap), ("recall", recall))
            for number in np.flatnonzero(values).tolist()
        }
        return numbers | {"saved": sum(map(len, saved["keys"].values()))}

    return run(evaluate)


def inpcc_hico(classes: Any, seed: int, folder: str) -> Any:
    return inpcc(classes, seed, folder, "hico")


def inpcc_swig(classes: Any, seed: int, folder: str) -> Any:
    return inpcc(classes, seed, folder, "swig")


CASES = {
    case.__name__: case
    for case in (qpic_hico, qpic_vcoco, cdn_hico, gen_vlkt, gen_vlkt_vcoco, inpcc_hico, inpcc_swig, qahoi_hico,
                 sov_stg_hico)
}  # fmt: skip
"""What each class returns and prints for a seed, by name; `classes` are the released ones or ours."""


def released_classes(folder: str) -> SimpleNamespace:
    """The released modules, and how they take arrays."""
    peers = Path(folder)
    texts = module_of(peers / "gen-vlkt/datasets/hico_text_label.py")
    vcoco_texts = module_of(peers / "gen-vlkt/datasets/vcoco_text_label.py")
    best = module_of(peers / "gen-vlkt/util/topk.py")
    names = module_of(peers / "INP-CC/datasets/hico_categories.py")
    swig = module_of(peers / "INP-CC/datasets/swig_v1_categories.py")
    no_imports = (("from .hico_categories", "#"), ("from .swig_v1_categories", "#"))
    return SimpleNamespace(
        tensors=lambda images: as_tensors(copy.deepcopy(images)),
        qpic=module_of(peers / "qpic/datasets/hico_eval.py"),
        qpic_vcoco=module_of(peers / "qpic/datasets/vcoco_eval.py"),
        cdn=module_of(peers / "CDN/datasets/hico_eval.py", NO_OPENCV),
        gen_vlkt=module_of(
            peers / "gen-vlkt/datasets/hico_eval_triplet.py", NO_OPENCV, ("from .hico_text_label", "#"),
            ("from util.topk", "#"), hico_text_label=texts.hico_text_label, top_k=best.top_k,
        ),
        gen_vlkt_vcoco=module_of(
            peers / "gen-vlkt/datasets/vcoco_eval.py", NO_OPENCV, ("from .vcoco_text_label", "#"),
            ("from util.topk", "#"), vcoco_hoi_text_label=vcoco_texts.vcoco_hoi_text_label, top_k=best.top_k,
        ),
        qahoi=module_of(peers / "QAHOI/datasets/hico_eval.py"),
        sov_stg=module_of(
            peers / "SOV-STG/datasets/hico_eval.py", ("from tqdm import tqdm", ""), ("import util.misc as utils", ""),
            tqdm=lambda items, **_: items, utils=SimpleNamespace(is_main_process=lambda: False),
        ),
        inpcc=module_of(peers / "INP-CC/datasets/hico_evaluator.py", *no_imports, **vars(names)),
        inpcc_swig=module_of(peers / "INP-CC/datasets/swig_evaluator.py", *no_imports, **vars(swig)),
    )  # fmt: skip


def main(folder: str) -> None:
    classes = released_classes(folder)
    with tempfile.TemporaryDirectory() as output:
        numbers = {name: [run_case(classes, seed, output) for seed in worlds.SEEDS] for name, run_case in CASES.items()}
    text = json.dumps(numbers, indent=None, separators=(",", ":"))
    NUMBERS.write_text(text.replace("],[", "],\n["))


if __name__ == "__main__":
    main(sys.argv[1])
