"""`hoicli.triplets` gives what released post-processing, evaluators and caches give for the same outputs."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.drop_in import released_networks
from tests.drop_in.released_networks import CASES, NUMBERS

STORED = json.loads(NUMBERS.read_text())
PEERS = os.environ.get("HOICLI_PEERS", "")


def same(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Equal numbers, to nine digits; boxes and scores of UPT's caches exactly."""
    assert ours.keys() == theirs.keys()
    if isinstance(next(iter(theirs.values())), list):
        assert {key: sorted(rows) for key, rows in ours.items()} == {key: sorted(rows) for key, rows in theirs.items()}
    else:
        assert ours == pytest.approx(theirs, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_what_released_code_made_of_the_outputs(case: str, seed: int) -> None:
    same(CASES[case](None, seed), STORED[case][seed])


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")  # theirs
@pytest.mark.filterwarnings("ignore::hoicli.errors.HoicliWarning")  # in a few worlds most boxes fit nothing
@pytest.mark.skipif(not PEERS, reason="needs clones of released code: HOICLI_PEERS=FOLDER")
@pytest.mark.parametrize("case", CASES)
def test_released_code_on_thirty_worlds(case: str) -> None:
    code = released_networks.released_code(PEERS)
    for seed in range(100, 130):
        same(CASES[case](None, seed), CASES[case](code, seed))
