"""The drop-in classes return and print what the released ones do, on the same worlds."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hoicli.compat import cdn, gen_vlkt, inpcc, qpic
from tests.drop_in import released, worlds

OURS = SimpleNamespace(
    tensors=lambda images: images, qpic=qpic, qpic_vcoco=qpic, cdn=cdn, gen_vlkt=gen_vlkt, gen_vlkt_vcoco=gen_vlkt,
    inpcc=inpcc, inpcc_swig=inpcc,
)  # fmt: skip
NUMBERS = json.loads(released.NUMBERS.read_text())
PEERS = os.environ.get("HOICLI_PEERS", "")


NUMBER = re.compile(r"\d+\.\d+|nan")


def same(ours: Any, theirs: Any) -> None:
    """What is returned and printed is the same, numbers to nine digits: theirs are sums in another order."""
    (our_values, our_text), (their_values, their_text) = ours, theirs
    assert our_values == pytest.approx(their_values, abs=1e-9, nan_ok=True)
    assert NUMBER.sub("", our_text) == NUMBER.sub("", their_text)
    our_numbers, their_numbers = (list(map(float, NUMBER.findall(text))) for text in (our_text, their_text))
    assert our_numbers == pytest.approx(their_numbers, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("seed", worlds.SEEDS)
@pytest.mark.parametrize("case", released.CASES)
def test_what_the_released_class_returned_and_printed(case: str, seed: int, tmp_path: Path) -> None:
    same(released.CASES[case](OURS, seed, str(tmp_path)), NUMBERS[case][seed])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")  # theirs
@pytest.mark.filterwarnings("ignore::hoicli.errors.HoicliWarning")  # in a few worlds most boxes fit nothing
@pytest.mark.skipif(not PEERS, reason="needs clones of released evaluators: HOICLI_PEERS=FOLDER")
@pytest.mark.parametrize("case", released.CASES)
def test_the_released_class_on_fifty_worlds(case: str, tmp_path: Path) -> None:
    theirs = released.released_classes(PEERS)
    for seed in range(100, 150):
        run_case = released.CASES[case]
        same(run_case(OURS, seed, str(tmp_path)), run_case(theirs, seed, str(tmp_path)))
