"""An image of thousands of predictions and annotations is matched in blocks, with the same outcomes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from hoicli.errors import DataError
from hoicli.evaluation import pairing
from hoicli.evaluation.evaluating import matched_batches
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.selection import chosen_protocols
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.labels import Vocabulary
from tests.support import strategies, vcoco
from tests.support.kernel import HICO, ground_truth, lines
from tests.support.project import Record

Data = tuple[list[Record], list[Record]]


def outcomes(data: Data, vocabulary: Vocabulary, *, of_boxes: bool = True) -> list[Any]:
    """All that is said of the predictions under every protocol of the dataset."""
    truth, predictions = data
    annotated = ground_truth(truth, vocabulary)
    chosen = chosen_protocols(["all"], vocabulary.name)
    return [
        (
            {name: [column.tolist() for column in vars(found).values()] for name, found in by_protocol.items()},
            [batch.box_matches(protocol) for protocol in chosen] if of_boxes else [],
        )
        for batch, by_protocol in matched_batches(lines(predictions), annotated, chosen, Filters(), ErrorPolicy())
    ]


def same_in_blocks(data: Data, vocabulary: Vocabulary) -> None:
    whole = outcomes(data, vocabulary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairing, "PAIRS_AT_ONCE", 2)
        assert outcomes(data, vocabulary) == whole


@settings(max_examples=20)
@given(strategies.datasets())
def test_blocks_of_hico(data: Data) -> None:
    same_in_blocks(data, HICO)


@settings(max_examples=20)
@given(vcoco.datasets())
def test_blocks_of_vcoco(data: Data) -> None:
    same_in_blocks(data, vcoco.VCOCO)


def crowded(count: int) -> Data:
    """An image of so many annotations and predictions of one class, each on boxes of its own."""
    boxes = [[at, at, at + 9, at + 9] for at in range(2 * count)]
    labels = ["person", "kite"] * count
    hois = [{"subject": 2 * at, "object": 2 * at + 1, "verb": "fly"} for at in range(count)]

    def record(hois: list[Record]) -> Record:
        return {"image_id": "a", "boxes": boxes, "labels": labels, "hois": hois}

    return [record(hois)], [record([{**hoi, "score": 1.0} for hoi in hois])]


@pytest.mark.parametrize(("most", "what"), [(24, "triplets of one class"), (99, "boxes")])
def test_too_large_a_crowd_is_refused(most: int, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "MOST_PAIRS", most)
    with pytest.raises(DataError, match=f"image 'a': .* pairs of predicted and annotated {what}, at most {most}"):
        outcomes(crowded(5), HICO)
