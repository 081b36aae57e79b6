"""`test_vcoco` of PViC's engine with pocket's association and meter, from clones that are no part of the
repository, under a stand-in for PyTorch made of NumPy.

    python -m tests.drop_in.pocket PEERS        writes pocket.json: the AP of each of the 24 classes, for each world

PEERS holds pvic, pocket and vcoco (github.com/fredzzhang).
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.bench.released import module_of
from tests.drop_in import torch_stand_in
from tests.drop_in.released import run
from tests.drop_in.torch_stand_in import Tensor, released_part, tensor
from tests.drop_in.worlds import near, random_box

NUMBERS = Path(__file__).with_name("pocket.json")
SEEDS = range(12)
ACTIONS, IMAGES = 24, 12


def linspace(first: float, last: float, count: int, **_: Any) -> Any:
    """As torch computes it, from both ends: NumPy's differs in the last digit of 0.6 and 0.7."""
    step = (last - first) / (count - 1)
    halves = range(count // 2), range(count // 2, count)
    return tensor([first + step * place for place in halves[0]] + [last - step * (count - 1 - n) for n in halves[1]])


def stand_in() -> types.ModuleType:
    torch = types.ModuleType("torch")
    vars(torch).update(
        vars(torch_stand_in.torch), Tensor=Tensor, FloatTensor=Tensor, LongTensor=Tensor, float64=np.float64,
        tensor=lambda values, dtype=None, **_: tensor(values, dtype), linspace=linspace,
        as_tensor=lambda values, dtype=None, **_: tensor(values, dtype),
        zeros=lambda *shape, dtype=None: tensor(np.zeros(shape, dtype)),
        zeros_like=lambda array: tensor(np.zeros_like(array, dtype=np.float64)),
    )  # fmt: skip
    return torch


def box_iou(first: Any, second: Any, encoding: str) -> Any:
    assert encoding == "coord"
    one, other = np.asarray(first)[:, None], np.asarray(second)[None]
    sides = np.clip(np.minimum(one[..., 2:], other[..., 2:]) - np.maximum(one[..., :2], other[..., :2]), 0, None)
    shared = sides.prod(-1)
    areas = [(box[..., 2:] - box[..., :2]).prod(-1) for box in (one, other)]
    return tensor(shared / (areas[0] + areas[1] - shared))


def released_ap(peers: str, annotations: dict[str, Any], outputs: list[dict[str, Any]]) -> list[float]:
    """AP of each class. annotations: the content of pocket's instances_vcoco_*.json; outputs: of the network, one for
    each image, also for those that the released loader skips."""
    torch, folder = stand_in(), Path(peers)
    no_ops = ("from ..ops import", "# from ..ops import")
    sys.modules["torch"] = torch
    try:
        association = module_of(folder / "pocket/pocket/utils/association.py", no_ops, box_iou=box_iou)
        meters = module_of(folder / "pocket/pocket/utils/meters.py", no_ops)
    finally:
        del sys.modules["torch"]
    dataset = object.__new__(
        module_of(folder / "vcoco/vcoco.py", ("from pocket.data", "# from pocket.data"), ImageDataset=object).VCOCO
    )
    dataset._compute_metatdata(annotations)
    batches = []
    for index in dataset._keep:
        target = {key: tensor(value) for key, value in annotations["annotations"][index].items() if key != "file_name"}
        batches.append((outputs[index], target | {"size": None}))
    identity: Any = lambda value, **_: value  # noqa: E731
    known = {
        "torch": torch, "tqdm": identity, "recover_boxes": lambda boxes, _: boxes,
        "BoxPairAssociation": association.BoxPairAssociation, "DetectionAPMeter": meters.DetectionAPMeter,
        "pocket": SimpleNamespace(
            ops=SimpleNamespace(relocate_to_cuda=identity, relocate_to_cpu=identity),
            utils=SimpleNamespace(all_gather=lambda value: [value]),
        ),
    }  # fmt: skip
    test_vcoco = released_part(folder / "pvic/utils.py", "test_vcoco", known)

    class Network:
        def eval(self) -> None:
            pass

        def __call__(self, output: Any) -> Any:
            return [output]

    loader = Loader((output, [target]) for output, target in batches)
    loader.dataset = SimpleNamespace(dataset=dataset)
    state = SimpleNamespace(_state=SimpleNamespace(net=Network()), _rank=0, _world_size=1, test_dataloader=loader)
    return [float(value) for value in run(lambda: test_vcoco(state))[0]]


class Loader(list[Any]):
    """The batches, with the dataset that they are of."""

    dataset: Any


def world(seed: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(the content of instances_vcoco_test.json, the outputs of a network). Some images have no pair, and some classes
    no ground truth or no prediction."""
    rng = np.random.default_rng(seed)
    actions = rng.choice(ACTIONS, 8, replace=False)
    annotations = []
    for number in range(IMAGES):
        pairs = [
            (random_box(rng), random_box(rng), int(rng.choice(actions[:6])), int(rng.integers(1, 81)))
            for _ in range(rng.integers(0, 5))
        ]
        columns = [list(column) for column in zip(*pairs, strict=True)] or [[], [], [], []]
        keys = ("boxes_h", "boxes_o", "actions", "objects")
        name = f"COCO_val2014_{number + 1:012d}.jpg"
        annotations.append(dict(zip(keys, columns, strict=True)) | {"file_name": name})
    return {"annotations": annotations, "images": list(range(IMAGES))}, network(annotations, rng, actions[2:])


def network(annotations: list[dict[str, Any]], rng: np.random.Generator, guesses: Any) -> list[dict[str, Any]]:
    """Ten pairs of boxes near the annotated ones for each image, each with one or two actions, the second a guess."""
    outputs = []
    for image in annotations:
        boxes: list[list[int]] = []
        rows = []
        for pair in range(10):
            person, thing, action = [0, 0, 9, 9], [0, 0, 5, 5], 0
            if image["actions"]:
                chosen = rng.integers(len(image["actions"]))
                person, thing, action = (image[key][chosen] for key in ("boxes_h", "boxes_o", "actions"))
            boxes += [near(rng, person), near(rng, thing)]
            rows += [(2 * pair, guess, rng.random(), rng.integers(80)) for guess in {action, int(rng.choice(guesses))}]
        subjects, *columns = map(np.array, zip(*rows, strict=True))
        found = {name: tensor(column) for name, column in zip(("labels", "scores", "objects"), columns, strict=True)}
        pairing = tensor(np.stack([subjects, subjects + 1], 1))
        outputs.append({"boxes": tensor(boxes, np.float64), "pairing": pairing, **found})
    return outputs


def names_of(peers: str) -> dict[str, Any]:
    """The names of classes and objects in pocket's file."""
    content = json.loads(Path(peers, "vcoco/instances_vcoco_test.json").read_text())
    return {key: content[key] for key in ("classes", "objects", "action_to_object")}


def main(peers: str) -> None:
    names = names_of(peers)
    values = []
    for seed in SEEDS:
        annotations, outputs = world(seed)
        values.append(released_ap(peers, names | annotations, outputs))
    text = json.dumps(names | {"ap": values}, separators=(",", ":"))
    NUMBERS.write_text(text.replace("],[", "],\n["))


if __name__ == "__main__":
    main(sys.argv[1])
