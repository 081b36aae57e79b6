"""V-COCO's official evaluation on random dumps, by its own code.

    HOICLI_PEERS=FOLDER pytest tests/evaluation/test_released_code.py

FOLDER holds a clone that is no part of this repository (tests/bench/released.py says which). The released classes for
HICO-DET run on random worlds in tests/drop_in.
"""

from __future__ import annotations

import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import hoicli
from hoicli.vocabulary.datasets import load
from tests.bench import released
from tests.bench import vcoco as official

PEERS = os.environ.get("HOICLI_PEERS", "")
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # theirs, of means of nothing
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # and files left open
    pytest.mark.skipif(not PEERS, reason="needs clones of released evaluators: HOICLI_PEERS=FOLDER"),
]


@pytest.mark.parametrize("seed", range(112))
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
