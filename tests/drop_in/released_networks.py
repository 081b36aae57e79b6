"""What released code makes of networks' outputs, and what `hoicli.triplets` does, on the same outputs.

    python -m tests.drop_in.released_networks PEERS      writes released_networks.json

PEERS holds qpic, CDN, gen-vlkt (as for `released`), upt and pvic (github.com/fredzzhang). The released post-processing,
evaluators and caches run as they are, with NumPy for PyTorch.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import hoicli
from hoicli.compat import gen_vlkt, qpic
from tests.bench.released import module_of
from tests.drop_in import released, torch_stand_in, worlds
from tests.drop_in.torch_stand_in import released_part, tensor
from tests.support.project import saved

NUMBERS = Path(__file__).with_name("released_networks.json")
SIDE = 64
"""Sides of the images: a power of two, so that shares of them are exact and IoUs of exactly 0.5 stay."""
OFFICIAL = ["vcoco-agent", "vcoco-s1", "vcoco-s2"]

Numbers = dict[str, Any]


def logit(score: Any) -> Any:
    score = np.clip(score, 1e-6, 1 - 1e-6)
    return np.log(score / (1 - score))


def shares(boxes: Any) -> Any:
    x1, y1, x2, y2 = np.asarray(boxes, dtype=np.float64).reshape(-1, 4).T / SIDE
    return np.stack([(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1], axis=1)


def heads(preds: worlds.Images, objects: int, seed: int) -> Numbers:
    """The outputs of queries whose post-processing gives about these boxes, labels and scores, and more to doubt."""
    rng, count = np.random.default_rng(seed + 1000), worlds.QUERIES
    outputs: dict[str, list[Any]] = defaultdict(list)
    for image in preds:
        labels = image["labels"][count:] if "labels" in image else image["obj_scores"].argmax(axis=1)
        objects_logits = rng.normal(size=(count, objects + 1))
        objects_logits[np.arange(count), labels] += 4
        outputs["pred_obj_logits"].append(objects_logits)
        outputs["pred_sub_boxes"].append(shares(image["boxes"][:count]))
        outputs["pred_obj_boxes"].append(shares(image["boxes"][count:]))
        outputs["pred_matching_logits"].append(rng.normal(size=(count, 2)) * 2)
        for given, name in (("verb_scores", "pred_verb_logits"), ("hoi_scores", "pred_hoi_logits")):
            if given in image:
                scores = image[given].astype(np.float64) / 2
                outputs[name].append(logit(scores) + rng.normal(size=scores.shape) * 1e-3)
    return {name: np.array(images) for name, images in outputs.items()}


SIZES = np.full((worlds.IMAGES, 2), SIDE)


def interaction_heads(seed: int) -> tuple[Numbers, worlds.Images, Any]:
    """V-COCO's outputs of GEN-VLKT: the scores of 263 interactions in place of those of 29 verbs."""
    preds, gts, matrix = worlds.vcoco_world(seed)
    outputs = heads(preds, 81, seed)
    del outputs["pred_verb_logits"]
    rng = np.random.default_rng(seed)
    outputs["pred_hoi_logits"] = rng.normal(size=(worlds.IMAGES, worlds.QUERIES, 263))
    return outputs, gts, matrix


def as_tensors(outputs: Numbers) -> Numbers:
    return {name: tensor(array.copy()) for name, array in outputs.items()}


def returned(evaluator: Any) -> Numbers:
    numbers: Numbers = released.run(evaluator.evaluate)[0]
    return numbers


def of_triplets(evaluator: Any, outputs: Numbers, **options: Any) -> Numbers:
    """What one of hoicli's drop-in evaluators returns with the predictions that `hoicli.triplets` makes."""
    found = hoicli.triplets(outputs, SIZES, **options)
    evaluator.predictions = dict(zip(evaluator.predictions, found, strict=True))
    return returned(evaluator)


def qpic_hico(code: Any, seed: int) -> Numbers:
    preds, gts = worlds.hico_world(seed)
    outputs, rest = heads(preds, 80, seed), (0, worlds.RARE, worlds.NON_RARE, worlds.correct_mat())
    if code is None:
        return of_triplets(qpic.HICOEvaluator(preds, gts, *rest), outputs, matching=False)
    found = code.qpic_post(0)(as_tensors(outputs), tensor(SIZES))
    return returned(code.classes.qpic.HICOEvaluator(found, code.classes.tensors(gts), *rest))


def cdn_hico(code: Any, seed: int) -> Numbers:
    """With --use_matching."""
    preds, gts = worlds.hico_world(seed)
    outputs, rest = heads(preds, 80, seed), (0, worlds.RARE, worlds.NON_RARE, worlds.correct_mat())
    if code is None:
        return of_triplets(qpic.HICOEvaluator(preds, gts, *rest), outputs, matching=True)
    found = code.cdn_post(SimpleNamespace(subject_category_id=0, use_matching=True))(as_tensors(outputs), tensor(SIZES))
    return returned(code.classes.qpic.HICOEvaluator(found, code.classes.tensors(gts), *rest))


def cdn_vcoco(code: Any, seed: int) -> Numbers:
    """With --use_matching on odd seeds, as QPIC on even ones."""
    preds, gts, matrix = worlds.vcoco_world(seed)
    outputs, matching = heads(preds, 81, seed), bool(seed % 2)
    if code is None:
        evaluator = qpic.VCOCOEvaluator(preds, gts, 0, matrix)
        return of_triplets(evaluator, outputs, dataset="vcoco", matching=matching, correct_mat=matrix)
    post = code.cdn_post(SimpleNamespace(subject_category_id=0, use_matching=matching))
    found = post(as_tensors(outputs), tensor(SIZES))
    return returned(code.classes.qpic_vcoco.VCOCOEvaluator(found, code.classes.tensors(gts), 0, matrix))


def gen_vlkt_hico(code: Any, seed: int) -> Numbers:
    preds, gts = worlds.triplet_world(seed)
    outputs, rest = heads(preds, 80, seed), (worlds.RARE, worlds.NON_RARE, worlds.correct_mat())
    gts = released.named(gts)
    with tempfile.TemporaryDirectory() as folder:
        args = released.arguments(seed, folder)
        if code is None:
            evaluator = released.run(lambda: gen_vlkt.HICOEvaluator(preds, gts, *rest, args))[0]
            return of_triplets(evaluator, outputs)
        found = code.gen_vlkt_post(SimpleNamespace(subject_category_id=0))(as_tensors(outputs), tensor(SIZES))
        tensors = code.classes.tensors(gts)
        return returned(released.run(lambda: code.classes.gen_vlkt.HICOEvaluator(found, tensors, *rest, args))[0])


def gen_vlkt_vcoco(code: Any, seed: int) -> Numbers:
    outputs, gts, matrix = interaction_heads(seed)
    if code is None:
        evaluator = qpic.VCOCOEvaluator(worlds.vcoco_world(seed)[0], gts, 0, matrix)
        return of_triplets(evaluator, outputs, dataset="vcoco", correct_mat=matrix)
    found = code.gen_vlkt_post(SimpleNamespace(subject_category_id=0))(as_tensors(outputs), tensor(SIZES))
    return returned(code.gen_vlkt_vcoco(found, code.classes.tensors(gts), matrix))


class Network:
    """A network that returns these outputs, batch by batch."""

    def __init__(self, *batches: Any) -> None:
        self.batches = list(batches)

    def eval(self) -> None:
        pass

    def __call__(self, _: Any) -> Any:
        return self.batches.pop(0)


class Batches(list[Any]):
    """A data loader, or a list of images, of a dataset."""

    dataset: Any


def official_numbers(truth: Any, predictions: Any) -> Numbers:
    rows = hoicli.evaluate(truth, predictions, dataset="vcoco", protocol=OFFICIAL, per_class=True).per_class
    return {f"{row['protocol']} {row['verb']} {row['role']}": row["value"] for row in rows if row["value"] is not None}


def official_list(code: Any, name: str, matrix: Any, outputs: Numbers) -> Any:
    """The list of people that a released generate_vcoco_official.py makes."""
    args = SimpleNamespace(use_nms_filter=False, thres_nms=0.7, nms_alpha=1, nms_beta=0.5, use_matching=True)
    make, generate = code.generators[name]
    post = released.run(lambda: make(worlds.QUERIES, 0, matrix, *([] if name == "qpic" else [args])))[0]
    samples = SimpleNamespace(to=lambda _: None)
    targets = [{"orig_size": tensor(size), "img_id": image} for image, size in enumerate(SIZES)]
    return generate(Network(as_tensors(outputs)), post, [(samples, targets)], None, worlds.VCOCO_VERBS, 80)


def official(code: Any, seed: int) -> Numbers:
    """Agents and roles by V-COCO's evaluator: QPIC's, CDN's and GEN-VLKT's generate_vcoco_official.py in turn."""
    name = ("qpic", "cdn", "gen_vlkt")[seed % 3]
    preds, gts, matrix = worlds.vcoco_world(seed)
    outputs = interaction_heads(seed)[0] if name == "gen_vlkt" else heads(preds, 81, seed)
    truth = qpic.VCOCOEvaluator(preds, gts, 0, matrix).truth
    if code is None:
        options = {} if name == "gen_vlkt" else {"matching": name == "cdn", "correct_mat": matrix}
        found = hoicli.triplets(outputs, SIZES, dataset="vcoco", top_k="all", **options)
        return official_numbers(truth, dict(zip(truth, found, strict=True)))
    with tempfile.TemporaryDirectory() as folder:
        path = saved(Path(folder, "people.pickle"), pickle.dumps(official_list(code, name, matrix, outputs)))
        return official_numbers(truth, str(path))


def pairs_world(seed: int, verbs: int) -> tuple[list[Numbers], list[tuple[int, int]]]:
    """(what UPT's `postprocessing` is given for each image, the images' original heights and widths)."""
    rng = np.random.default_rng(seed)
    images, sizes = [], []
    for _ in range(2):
        boxes = rng.random((5, 4)) * 200
        boxes[:, 2:] += boxes[:, :2] + 1
        labels = np.array([0, 0, *rng.integers(0, 80, 3)])
        subject, object_ = (axis.ravel() for axis in np.meshgrid(range(2), range(5), indexing="ij"))
        subject, object_ = subject[subject != object_], object_[subject != object_]
        allowed = np.zeros((len(subject), verbs))
        if verbs == 117:
            matrix = worlds.correct_mat()
            allowed = matrix[:, labels[object_]].T * (rng.random((len(subject), 117)) < 0.15)
        else:
            allowed[rng.random(allowed.shape) < 0.05] = 1
        prior = rng.random((2, *allowed.shape)) * allowed
        images.append({
            "boxes": boxes.astype(np.float32), "subject": subject, "object": object_, "objects": labels[object_],
            "logits": rng.normal(size=allowed.shape).astype(np.float32), "prior": prior.astype(np.float32),
            "size": rng.integers(300, 900, 2),
        })  # fmt: skip
        height, width = rng.integers(200, 640, 2).tolist()
        sizes.append((height, width))
    return images, sizes


def upt_output(image: Numbers) -> Numbers:
    """What `postprocessing` makes of it: UPT's, with pairs in two rows."""
    prior = image["prior"].prod(0)
    pair, verb = np.nonzero(prior)
    scores = (1 / (1 + np.exp(-image["logits"][pair, verb]))) * prior[pair, verb]
    return {"boxes": image["boxes"], "pairing": np.stack([image["subject"][pair], image["object"][pair]]),
            "scores": scores, "labels": verb, "objects": image["objects"][pair], "size": image["size"]}  # fmt: skip


def released_output(code: Any, name: str, image: Numbers) -> Numbers:
    """What the released `postprocessing` makes of it."""
    boxes, subject, object_, prior, objects, size = (
        [tensor(image[key])] for key in ("boxes", "subject", "object", "prior", "objects", "size")
    )
    logits = tensor(image["logits"])
    if name == "upt":
        return code.post[name](None, boxes, subject, object_, logits, prior, objects, [None], size)[0]  # type: ignore[no-any-return]
    pairs, priors = [tensor(np.stack([subject[0], object_[0]], 1))], [tensor(np.moveaxis(prior[0], 0, 1))]
    return code.post[name](SimpleNamespace(raw_lambda=1), boxes, pairs, objects, logits, priors, size)[0]  # type: ignore[no-any-return]


def cached(code: Any, name: str, dataset: str, outputs: list[Numbers], sizes: list[tuple[int, int]]) -> Any:
    """What the released cache_hico or cache_vcoco writes."""
    numbers = np.full((80, 117), np.nan)
    for number, (_, label, verb) in enumerate(worlds.TRIPLETS):
        numbers[label, verb] = number
    actions = [entry.replace("_obj", " obj").replace("_instr", " instr") for entry in worlds.VCOCO_VERBS]
    items = [(None, [place]) for place in range(len(outputs))]
    data = Batches(items)
    data.dataset = SimpleNamespace(
        object_n_verb_to_interaction=numbers, object_to_interaction=[list(range(600))] * 80,
        annotations=outputs, _idx=list(range(len(outputs))), image_id=lambda place: place,
        image_size=lambda place: sizes[place][::-1],
        actions=[entry for entry in actions if " " in entry and "point" not in entry],
    )  # fmt: skip
    net = Network(*([output] for output in outputs))
    loader = Batches(items)
    loader.dataset = SimpleNamespace(dataset=data.dataset) if name == "upt" else data
    with tempfile.TemporaryDirectory() as folder:
        code.caches[name, dataset](SimpleNamespace(_state=SimpleNamespace(net=net)), loader, folder)
    return code.written[-1]


def upt_hico(code: Any, seed: int, name: str = "upt") -> Numbers:
    """The rows of detections_XX.mat: both boxes in last pixels, and the score, by interaction and image."""
    images, sizes = pairs_world(seed, 117)
    rows: Numbers = {}
    if code is None:
        outputs = [upt_output(image) for image in images]
        if name == "pvic":
            outputs = [output | {"pairing": output["pairing"].T} for output in outputs]
        for place, found in enumerate(hoicli.triplets(outputs, sizes, last_pixels=True)):
            boxes, label = found["boxes"], found["labels"][found["object"]]
            for triplet in range(len(found["verb"])):
                number = worlds.TRIPLETS.index((0, label[triplet], found["verb"][triplet]))
                corners = [boxes[found[side][triplet]].tolist() for side in ("subject", "object")]
                score = found["score"][triplet].item()
                rows.setdefault(f"{number} {place}", []).append([*corners[0], *corners[1], score])
        return rows
    all_boxes = cached(code, name, "hico", [released_output(code, name, image) for image in images], sizes)
    for number, place in np.argwhere([[cell.size > 0 for cell in line] for line in all_boxes]).tolist():
        rows[f"{number} {place}"] = all_boxes[number, place].tolist()
    return rows


def pvic_hico(code: Any, seed: int) -> Numbers:
    return upt_hico(code, seed, "pvic")


def upt_vcoco(code: Any, seed: int, name: str = "upt") -> Numbers:
    """What cache.pkl states, by image: action and role, both boxes, the score. (Unstated keys are in no dictionary.)"""
    images, sizes = pairs_world(seed, 24)
    rows: Numbers = {}
    if code is None:
        outputs = [upt_output(image) for image in images]
        vocabulary = hoicli.vocab("vcoco")
        for place, found in enumerate(hoicli.triplets(outputs, sizes, dataset="vcoco")):
            for triplet in range(len(found["verb"])):
                key = f"{vocabulary.verbs[found['verb'][triplet]]}_{('obj', 'instr')[found['role'][triplet]]}"
                corners = [found["boxes"][found[side][triplet]].tolist() for side in ("subject", "object")]
                rows.setdefault(str(place), []).append([key, *corners[0], *corners[1], found["score"][triplet].item()])
        return rows
    for person in cached(code, name, "vcoco", [released_output(code, name, image) for image in images], sizes):
        key = next(key for key in person if key.endswith(("_obj", "_instr")))
        rows.setdefault(str(person["image_id"]), []).append([key, *person["person_box"], *person[key]])
    return rows


CASES: dict[str, Callable[[Any, int], Numbers]] = {
    case.__name__: case
    for case in (
        qpic_hico, cdn_hico, cdn_vcoco, gen_vlkt_hico, gen_vlkt_vcoco, official, upt_hico, pvic_hico, upt_vcoco,
    )
}  # fmt: skip
"""The numbers of each case for a seed, by name. code: the released code, None for hoicli's."""


def released_code(folder: str) -> SimpleNamespace:
    """The released code in clones in this folder."""
    peers, written = Path(folder), list[Any]()
    texts = module_of(peers / "gen-vlkt/datasets/vcoco_text_label.py")
    box = {"box_cxcywh_to_xyxy": torch_stand_in.box_cxcywh_to_xyxy}
    logger = SimpleNamespace(MetricLogger=lambda **_: SimpleNamespace(log_every=lambda loader, *_: loader))
    generators = {}
    for name, clone in (("qpic", "qpic"), ("cdn", "CDN"), ("gen_vlkt", "gen-vlkt")):
        path = peers / clone / "generate_vcoco_official.py"
        known = box | {"utils": logger, "vcoco_hoi_text_label": texts.vcoco_hoi_text_label}
        generators[name] = released_part(path, "PostProcessHOI", known), released_part(path, "generate", known)
    pocket = SimpleNamespace(ops=SimpleNamespace(
        relocate_to_cuda=lambda batch: batch, relocate_to_cpu=lambda output, **_: output
    ))  # fmt: skip
    known = {
        "os": os, "pocket": pocket, "tqdm": iter, "List": list,
        "sio": SimpleNamespace(savemat=lambda _, cells: written.append(cells["all_boxes"])),
        "pickle": SimpleNamespace(dump=lambda people, *_: written.append(people)),
    }  # fmt: skip
    known["CacheTemplate"] = released_part(peers / "upt/utils.py", "CacheTemplate", {})
    best = module_of(peers / "gen-vlkt/util/topk.py")
    vcoco = module_of(
        peers / "gen-vlkt/datasets/vcoco_eval.py", released.NO_OPENCV, ("from .vcoco_text_label import *", "#"),
        ("from util.topk", "#"), vcoco_hoi_text_label=texts.vcoco_hoi_text_label, top_k=best.top_k,
    )  # fmt: skip
    return SimpleNamespace(
        classes=released.released_classes(folder),
        qpic_post=released_part(peers / "qpic/models/hoi.py", "PostProcessHOI", box),
        cdn_post=released_part(peers / "CDN/models/hoi.py", "PostProcessHOI", box),
        gen_vlkt_post=released_part(peers / "gen-vlkt/models/gen_vlkt.py", "PostProcessHOITriplet", box),
        gen_vlkt_vcoco=vcoco.VCOCOEvaluator,
        generators=generators,
        written=written,
        post={name: released_part(peers / name / f"{name}.py", "postprocessing", known) for name in ("upt", "pvic")},
        caches={
            (name, dataset): released_part(peers / name / "utils.py", f"cache_{dataset}", known)
            for name in ("upt", "pvic") for dataset in ("hico", "vcoco")
        },
    )  # fmt: skip


def main(folder: str) -> None:
    code = released_code(folder)
    numbers = {name: [case(code, seed) for seed in range(3)] for name, case in CASES.items()}
    NUMBERS.write_text(json.dumps(numbers, separators=(",", ":")).replace("},{", "},\n{"))


if __name__ == "__main__":
    main(sys.argv[1])
