"""Where pairs of boxes are cut into blocks, refused, and compared: at the very limit, one below it and one above; an
image of thousands of predictions and annotations has the same outcomes in blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from hoicli.errors import DataError
from hoicli.evaluation import pairing
from hoicli.evaluation.evaluating import match_batches
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.pairing import blocks_of, check_pairs
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.selection import choose_protocols
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary
from tests.support import strategies, vcoco
from tests.support.kernel import HICO, ground_truth, lines
from tests.support.project import Data, Record, complaint

ROW = PROTOCOLS["hico"]


@pytest.mark.parametrize(("count", "blocks"), [
    ([], [(0, 0)]),
    ([0, 0], [(0, 2)]),
    ([4, 6], [(0, 2)]),  # as many as fit
    ([4, 7], [(0, 1), (1, 2)]),
    ([11], [(0, 1)]),  # more than fit stand alone
    ([3, 11, 3, 7, 1], [(0, 1), (1, 2), (2, 4), (4, 5)]),
    ([11, 0, 10, 0, 1], [(0, 1), (1, 4), (4, 5)]),
    ([5, 5, 5, 5], [(0, 2), (2, 4)]),
])  # fmt: skip
def test_blocks(count: list[int], blocks: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairing, "PAIRS_AT_ONCE", 10)
    found = blocks_of(np.array(count, dtype=np.int64))
    assert [(part.start, part.stop) for part in found if part.stop > part.start or not count] == blocks


def test_an_image_may_have_so_many_pairs_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    assert pairing.MOST_PAIRS == 4096**2
    monkeypatch.setattr(pairing, "MOST_PAIRS", 1_000)
    ids = ["few", "many"]
    check_pairs(np.array([999, 1]), np.array([1, 1]), ids, "boxes")
    check_pairs(np.array([1000, 900]), np.array([0, 1]), ids, "boxes")  # an image, not the batch
    assert complaint(DataError, check_pairs, np.array([900, 400, 601]), np.array([0, 1, 1]), ids, "boxes") == (
        "image 'many': 1,001 pairs of predicted and annotated boxes, at most 1,000 are compared; does the record hold "
        "many images?"
    )


def scene(
    *hois: tuple[int, int] | tuple[int, int, float], labels: tuple[str, ...] = ("person", "person", "kite")
) -> Record:
    """Boxes of 100 by 100, the second 50 to the right of the first, the third apart; (subject, object, score)."""
    lefts = [0.0, 50.0, 500.0]
    return {
        "image_id": "a",
        "boxes": [[left, 0.0, left + 99, 99.0] for left in lefts],
        "labels": list(labels),
        "hois": [dict(zip(("subject", "object", "score"), hoi, strict=False), verb="fly") for hoi in hois],
    }


def covered(truth: Record, predicted: Record, threshold: float) -> list[tuple[int, int]]:
    row = replace(ROW, threshold=threshold)
    ((batch, _),) = match_batches(lines([predicted]), ground_truth([truth]), [row], Filters(), ErrorPolicy())
    found, of_truth = batch.overlapping_pairs(row)
    return list(zip(found.tolist(), of_truth.tolist(), strict=True))


def test_a_prediction_covers_every_ground_truth_that_it_overlaps_enough() -> None:
    """The two people overlap by a third: 50 of 150 columns."""
    truth, predicted = scene((0, 2), (1, 2)), scene((1, 2, 0.1), (0, 2, 0.9))
    assert covered(truth, predicted, 1 / 3) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert covered(truth, predicted, 0.34) == [(0, 1), (1, 0)]
    assert covered(truth, scene((2, 2, 0.9)), 0.0) == []  # its subject is labelled kite
    assert covered(truth, scene(), 0.5) == []


def test_what_is_no_interaction_meets_nothing_not_even_the_last_class_of_the_image_before() -> None:
    verb, label = load("hico").interactions[-1]
    hois: list[Record] = [{"subject": 0, "object": 1, "verb": verb}, {"subject": 0, "object": 0, "verb": "fly"}]
    boxes = {"boxes": [[0, 0, 9, 9]] * 2, "labels": ["person", label]}
    truth = [{"image_id": name, **boxes, "hois": hois} for name in "ab"]
    predicted = lines([{**record, "hois": [{**hoi, "score": 0.5} for hoi in hois]} for record in truth])
    ((batch, _),) = match_batches(predicted, ground_truth(truth), [ROW], Filters(), ErrorPolicy())
    assert [column.tolist() for column in batch.overlapping_pairs(ROW)] == [[0, 2], [0, 2]]


def test_boxes_match_those_of_one_label_and_a_dropped_triplet_takes_its_boxes_with_it() -> None:
    truth = scene((0, 2), (1, 2))
    truth["hois"][1]["verb"] = "no_interaction"
    predicted = scene(labels=("person", "kite", "kite"))
    batch = batch_of(truth, predicted)
    assert batch.box_matches(replace(ROW, threshold=1 / 3)) == [[0, 1], [], [2]]
    assert batch.box_matches(ROW) == [[0], [], [2]]
    diag = replace(PROTOCOLS["diag"], threshold=0.3)
    assert batch.box_matches(diag) == [[0], [], [2]]
    assert batch_of(scene((0, 2)), predicted).box_matches(diag) == [[0, 1], [], [2]]  # a box in no triplet stays


def batch_of(truth: Record, predicted: Record) -> Batch:
    every = match_batches(lines([predicted]), ground_truth([truth]), [], Filters(), ErrorPolicy())
    return next(batch for batch, _ in every)


def test_of_two_triplets_that_one_prediction_takes_it_belongs_to_the_one_it_overlaps_more() -> None:
    """Where a protocol tries every overlap (Ambiguous-HOI), both are taken by the best prediction."""
    row = replace(ROW, threshold=1 / 3, every_overlap=True)
    truth, predicted = scene((0, 2), (1, 2)), scene((1, 2, 0.9), (0, 2, 0.8))
    ((_, outcomes),) = match_batches(lines([predicted]), ground_truth([truth]), [row], Filters(), ErrorPolicy())
    found = outcomes[row.key]
    assert found.code.tolist() == [0, 1] or found.code.tolist() == [1, 0]
    assert found.truth[found.row == 0].tolist() == [1]
    assert found.iou_subject.max() <= 1.0


def outcomes(data: Data, vocabulary: Vocabulary, *, of_boxes: bool = True) -> list[Any]:
    """All that is said of the predictions under every protocol of the dataset."""
    truth, predictions = data
    annotated = ground_truth(truth, vocabulary)
    chosen = choose_protocols(["all"], vocabulary.name)
    return [
        (
            {name: [column.tolist() for column in vars(found).values()] for name, found in by_protocol.items()},
            [batch.box_matches(protocol) for protocol in chosen] if of_boxes else [],
        )
        for batch, by_protocol in match_batches(lines(predictions), annotated, chosen, Filters(), ErrorPolicy())
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
