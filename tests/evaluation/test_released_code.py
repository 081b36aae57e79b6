"""Random worlds under the released evaluators' own code.

    HOICLI_PEERS=FOLDER pytest tests/evaluation/test_released_code.py

FOLDER holds clones that are no part of this repository (tests/bench/released.py says which). Boxes are on a coarse
grid, so that many IoUs are exactly 0.5; scores differ, since how each sorts equal ones is no rule of it.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hoicli
from hoicli.vocabulary.datasets import load
from tests.bench import released
from tests.bench import vcoco as official

PEERS = os.environ.get("HOICLI_PEERS", "")
WORLDS = 448
PAIRS = (
    "hold bicycle", "ride bicycle", "no_interaction bicycle", "fly kite", "hold kite", "wash airplane", "hug person",
)  # fmt: skip

Records = list[dict[str, Any]]
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # theirs, of means of nothing
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # and files left open
    pytest.mark.skipif(not PEERS, reason="needs clones of released evaluators: HOICLI_PEERS=FOLDER"),
]


def world(seed: int) -> tuple[Records, Records]:
    """Ground truth and predictions of up to six images; some have none of the one or the other."""
    rng = np.random.default_rng(seed)
    truth: Records = []
    found: Records = []
    for number in range(rng.integers(2, 7)):
        pairs = [pair.split() for pair in rng.choice(PAIRS, rng.integers(0, 5))]
        boxes, labels, hois = [], [], []
        for place, (verb, label) in enumerate(pairs):
            for one in ("person", label):
                x, y = rng.integers(0, 20, 2).tolist()
                boxes.append([x, y, *(np.array([x, y]) + rng.integers(4, 14, 2)).tolist()])
                labels.append(one)
            hois.append({"subject": 2 * place, "object": 2 * place + 1, "verb": verb})
        image = {"image_id": f"image_{number}", "width": 40, "height": 40}
        truth.append({**image, "boxes": boxes, "labels": labels, "hois": hois, "image_hois": pairs})
        if not pairs or rng.random() < 0.1:
            continue
        guesses = []
        for hoi in hois * 3:
            other = int(2 * rng.integers(0, len(pairs)) + 1)
            chosen = hoi["object"] if rng.random() < 0.8 else other
            guesses.append({**hoi, "object": chosen, "score": float(rng.random())})
        moved = np.array(boxes) + rng.integers(-2, 3, (len(boxes), 4))
        found.append({"image_id": image["image_id"], "boxes": moved.tolist(), "labels": labels, "hois": guesses})
    return truth, found


def known(found: Records) -> Records:
    """Without what is no class of HICO-DET's, which a wrong object can make."""
    names = {tuple(pair.split()) for pair in PAIRS}
    for image in found:
        image["hois"] = [hoi for hoi in image["hois"] if (hoi["verb"], image["labels"][hoi["object"]]) in names]
    return found


def worlds(block: int) -> Iterator[tuple[int, Records, Records]]:
    """(seed, ground truth, predictions) of those of a quarter of WORLDS that have predictions."""
    for seed in range(block * WORLDS // 4, (block + 1) * WORLDS // 4):
        truth, found = world(seed)
        if known(found):
            yield seed, truth, found


@pytest.mark.parametrize("block", range(4))
def test_cdn_s_hico_eval(block: int) -> None:
    for seed, truth, found in worlds(block):
        rows = hoicli.evaluate(truth, found, protocol="qpic", metric="mean_max_recall").to_dict()
        theirs = released.cdn(PEERS, truth, found)
        for name, key in {"mAP": "mAP/full", "mAP rare": "mAP/rare", "mAP non-rare": "mAP/non_rare",
                          "mean max recall": "mean_max_recall/full"}.items():  # fmt: skip
            ours = rows.get(f"qpic/{key}")
            assert np.isnan(theirs[name]) if ours is None else ours == pytest.approx(100 * theirs[name], abs=1e-9), seed


@pytest.mark.parametrize("block", range(4))
def test_inp_cc_s_calc_ap(block: int) -> None:
    for seed, truth, found in worlds(block):
        rows = hoicli.evaluate(truth, found, protocol="inp-cc", per_class=True).rows
        ours = {(row["verb"], row["object"]): row["value"] for row in rows if row["metric"] == "AP"}
        theirs = released.inp_cc(PEERS, truth, found)
        assert {name for name, value in ours.items() if value is not None} <= theirs.keys()
        for name, (ap, _) in theirs.items():
            assert (ours[name] or 0) == pytest.approx(100 * ap, abs=1e-9), (seed, name)


def with_other_objects(truth: Records, found: Records, seed: int) -> Records:
    """Predictions with more of classes whose object the image may not have, which Known Object leaves out."""
    rng = np.random.default_rng(seed)
    annotated = {image["image_id"]: image for image in truth}
    for image in found:
        boxes = annotated[image["image_id"]]["boxes"]
        for verb, label in (pair.split() for pair in rng.choice(PAIRS, 3)):
            subject = len(image["boxes"])
            image["boxes"] = [*image["boxes"], boxes[0], boxes[-1]]
            image["labels"] = [*image["labels"], "person", label]
            scored = {"subject": subject, "object": subject + 1, "verb": verb, "score": float(rng.random())}
            image["hois"].append(scored)
    return found


@pytest.mark.parametrize("block", range(4))
def test_ggnet_s_and_qahoi_s_eval_hoi(block: int) -> None:
    for seed, truth, predictions in worlds(block):
        found = with_other_objects(truth, predictions, seed)
        theirs = released.ggnet(PEERS, truth, found)
        assert theirs["ggnet default"] == pytest.approx(theirs["qahoi default"], abs=1e-12, nan_ok=True)
        rows = hoicli.evaluate(truth, found, protocol="ggnet,ggnet-ko", per_class=True).rows
        for protocol, mode in (("ggnet", "default"), ("ggnet-ko", "ko")):
            ours = {(row["verb"], row["object"]): row["value"] for row in rows
                    if row["metric"] == "AP" and row["protocol"] == protocol}  # fmt: skip
            # without ground truth theirs is NaN, or 0 if nothing was predicted either
            assert {pair for pair, ap in theirs[f"qahoi {mode}"].items() if ap > 0} <= ours.keys()
            for pair, value in ours.items():
                assert value == pytest.approx(100 * theirs[f"qahoi {mode}"][pair], abs=1e-9), (seed, mode, pair)


@pytest.mark.parametrize("seed", range(WORLDS // 4))
def test_v_coco_s_vsrl_eval(seed: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Agents are computed in single precision there."""
    official.make_dump(tmp_path, 80, seed)  # as many as give every action some truth
    vsrl, instances, ids, cache = (str(tmp_path / name) for name in official.FILES)
    people, rng = pickle.loads(Path(cache).read_bytes()), np.random.default_rng(seed)
    for person in people:  # what it does not say would have a score of 0, like others
        for verb, roles in load("vcoco").roles_of.items():
            person.setdefault(f"{verb}_agent", rng.random() / 100)
            for role in roles:
                person.setdefault(f"{verb}_{role}", [*person["person_box"], rng.random() / 100])
    Path(cache).write_bytes(pickle.dumps(people))
    truth, found = list(hoicli.convert([vsrl, instances, ids])), list(hoicli.convert(cache, dataset="vcoco"))
    capfd.readouterr()
    released.vcoco(PEERS, vsrl, instances, ids, cache)
    sections = capfd.readouterr().out.split("---------Reporting ")[1:]
    rows = hoicli.evaluate(truth, found, dataset="vcoco", per_class=True).rows
    for section, protocol in zip(sections, ("vcoco-agent", "vcoco-s1", "vcoco-s2"), strict=True):
        theirs = {name: float(value) for name, value in re.findall(r"(\S+): AP = (\S+)", section)}
        ours = {
            "-".join(part for part in (row["verb"], row.get("role")) if part): row["value"] or 0
            for row in rows
            if (row["metric"], row["protocol"]) == ("AP", protocol)
        }
        assert ours.keys() <= theirs.keys()
        for name, value in ours.items():
            assert value == pytest.approx(np.nan_to_num(theirs[name]), abs=1e-4), (protocol, name)
