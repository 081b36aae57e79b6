"""Pairs of an image of thousands are compared in blocks, with the same result, and refused where it takes minutes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from hoicli.errors import DataError
from hoicli.evaluation import pairing
from hoicli.pairs.pair_batches import Sweep
from hoicli.pairs.statistics import Figure, pair_statistics
from hoicli.records.intake import ErrorPolicy
from tests.evaluation.test_pairing import crowded
from tests.support import strategies
from tests.support.kernel import Given, ground_truth, lines
from tests.support.project import Data


def results(data: Data) -> list[dict[str, dict[str, Figure]]]:
    truth, predictions = data
    settings = [Sweep(), Sweep(nms=0.5)]
    given, annotated = Given(lines(predictions)), ground_truth(truth)
    found = pair_statistics(given, annotated, settings, ErrorPolicy(), triplet_scores=True)
    return [rows for _, rows in found.results()]


@given(strategies.datasets(least=0))
def test_blocks(data: Data) -> None:
    whole = results(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairing, "PAIRS_AT_ONCE", 2)
        assert results(data) == whole


@pytest.mark.parametrize("at_once", [1, 2, 7, 1000])
def test_every_pair_of_an_image_in_blocks_is_found(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Also the one whose object is the very first box."""
    monkeypatch.setattr(pairing, "PAIRS_AT_ONCE", at_once)
    boxes = 50 * np.arange(10)[:, None] + np.array([0, 0, 9, 9])
    hois = [{"subject": 2 * at + 1, "object": 2 * at, "verb": "fly", "score": 1 - at / 10} for at in range(5)]
    record = {"image_id": "a", "boxes": boxes.tolist(), "labels": ["kite", "person"] * 5}
    annotated = [{key: value for key, value in hoi.items() if key != "score"} for hoi in hois]
    whole = results(([{**record, "hois": annotated}], [{**record, "hois": hois}]))[0]["full"]
    assert (whole["pair_recall"], whole["pair_precision"][0], whole["inter_map"][0]) == ((1.0, 5), 1.0, 1.0)


def test_too_large_a_crowd_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "MOST_PAIRS", 24)
    with pytest.raises(DataError, match="image 'a': 25 pairs of predicted and annotated pairs, at most 24"):
        results(crowded(5))
