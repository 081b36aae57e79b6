"""Records of free-text labels as columns: what each column holds, parts of them, and what is no such record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hoicli.errors import DataError
from hoicli.records import caveats
from hoicli.records.intake import ErrorPolicy
from hoicli.records.triplets import NOTHING, Triplets, merge, read_triplets
from tests.support.kernel import lines
from tests.support.project import Record, complaint

FIRST: Record = {
    "image_id": "a",
    "boxes": [[0, 0, 1, 1], [2, 2, 3, 3]],
    "labels": ["person", "cup"],
    "synsets": [None, "cup.n.01"],
    "hois": [
        {"subject": 0, "object": 1, "verb": "hold", "score": 0.5},
        {"subject": 0, "object": None, "verb": "run", "verb_synset": "run.v.01"},
    ],
}
SECOND: Record = {"image_id": 7, "boxes": [], "labels": [], "hois": [], "caveats": ["last_pixels"]}
THIRD: Record = {
    "image_id": "c",
    "boxes": [[4, 4, 5, 5], [6, 6, 7, 7], [8, 8, 9, 9]],
    "labels": ["cup", "cup", "person"],
    "hois": [
        {"subject": 2, "object": 0, "verb": "hold", "score": 1},
        {"subject": 2, "object": 1, "verb": "run", "score": None},
    ],
}
RECORDS = [FIRST, SECOND, THIRD]


def read(records: Sequence[Record], **options: Any) -> Triplets:
    return merge(read_triplets(lines(records), **{"policy": ErrorPolicy(), **options}))


def names(found: Triplets) -> list[tuple[Any, ...]]:
    """Each triplet in words: image, subject's and object's corners, names, score."""
    boxes = [found.boxes[row, 0] if row >= 0 else None for row in [*found.object.tolist(), -1]][:-1]
    return [
        (
            found.image_ids[found.image_of_hoi[row]], found.boxes[found.subject[row], 0], boxes[row],
            found.verbs[found.verb[row]], found.objects[found.label[row]],
            None if np.isnan(found.score[row]) else found.score[row],
        )
        for row in range(len(found.verb))
    ]  # fmt: skip


ALL = [
    ("a", 0.0, 2.0, ("hold", None), ("cup", "cup.n.01"), 0.5),
    ("a", 0.0, None, ("run", "run.v.01"), NOTHING, None),
    ("c", 8.0, 4.0, ("hold", None), ("cup", None), 1.0),
    ("c", 8.0, 6.0, ("run", None), ("cup", None), None),
]


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_every_column(monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    monkeypatch.setattr("hoicli.records.columns.BATCH", batch)
    found = read(RECORDS)
    assert names(found) == ALL
    assert found.image_ids == ["a", "7", "c"]
    assert (found.box_start.tolist(), found.hoi_start.tolist()) == ([0, 2, 2, 5], [0, 2, 2, 4])
    assert [found.labels[row] for row in found.box_label] == ["person", "cup", "cup", "cup", "person"]
    assert found.labels == ["person", "cup"]
    assert found.verbs == [("hold", None), ("run", "run.v.01"), ("run", None)]
    assert found.objects == [("cup", "cup.n.01"), NOTHING, ("cup", None)]
    assert found.caveats.tolist() == [0, caveats.mask(["last_pixels"]), 0]
    columns = (found.box_label, found.verb, found.label, found.caveats)
    assert {column.dtype for column in columns} == {np.dtype(np.int64)}


def test_no_records() -> None:
    found = read([])
    assert (found.image_ids, names(found), found.labels, found.verbs) == ([], [], [], [])
    assert (found.boxes.shape, found.hoi_start.tolist()) == ((0, 4), [0])
    assert found.caveats.dtype == np.int64


def test_some_of_the_images() -> None:
    found = read(RECORDS)
    last = found.select_images(np.array([False, True, True]))
    assert names(last) == ALL[2:]
    assert (last.image_ids, last.caveats.tolist()) == (["7", "c"], [caveats.mask(["last_pixels"]), 0])
    assert (last.box_start.tolist(), last.hoi_start.tolist()) == ([0, 0, 3], [0, 0, 2])
    assert [last.labels[row] for row in last.box_label] == ["cup", "cup", "person"]
    assert last.verbs == found.verbs
    first = found.select_images(np.array([True, False, False]))
    assert names(first) == ALL[:2]
    assert names(found.select_images(np.zeros(3, dtype=bool))) == []


def test_some_of_the_triplets() -> None:
    found = read(RECORDS)
    some = found.select_triplets(np.array([False, True, False, True]))
    assert names(some) == [ALL[1], ALL[3]]
    assert (some.image_ids, some.hoi_start.tolist()) == (found.image_ids, [0, 1, 1, 2])
    assert some.boxes is found.boxes
    assert found.select_triplets(np.zeros(4, dtype=bool)).hoi_start.tolist() == [0, 0, 0, 0]


def test_the_size_of_an_image_is_a_number_above_0_or_not_known() -> None:
    sizes: list[dict[str, Any]] = [{"width": 4, "height": 3}, {"width": 0, "height": "3"}, {}]
    found = read([{**record, **size} for record, size in zip(RECORDS, sizes, strict=True)])
    np.testing.assert_array_equal(found.size, [[4, 3], [np.nan, np.nan], [np.nan, np.nan]])


def test_ground_truth_has_no_scores() -> None:
    bare = {**THIRD, "hois": [{"subject": 2, "object": 0, "verb": "hold"}]}
    assert len(read([bare], truth=True).verb) == 1
    assert complaint(DataError, read, [bare, FIRST], truth=True).startswith("test:2: hois[0].score: ")


def changed(**fields: Any) -> Record:
    return {**FIRST, **fields}


def of_hoi(**fields: Any) -> Record:
    return changed(hois=[FIRST["hois"][0], {**FIRST["hois"][1], **fields}])


SENSES = "must be an array of senses (or null), one a box, for example train.n.01"


@pytest.mark.parametrize(("record", "message"), [
    (of_hoi(score="1"), "hois[1].score: no finite number; give one, or leave the score out"),
    (of_hoi(score=True), "hois[1].score: no finite number; give one, or leave the score out"),
    (of_hoi(verb_synset=3), "hois[1].verb_synset: no sense; name one, for example ride.v.10, or leave it out"),
    (changed(synsets="cup.n.01"), f"synsets: {SENSES}"),
    (changed(synsets=[None, 3]), f"synsets: {SENSES}"),
    (changed(synsets=[None]), "synsets: 1 senses for 2 boxes; give one a box, null where unknown"),
    (changed(synsets=[None] * 3), "synsets: 3 senses for 2 boxes; give one a box, null where unknown"),
    (changed(hois=[{"subject": 0, "verb": "run"}]), "hois[0].object: missing; it is the index of a box"),
    (of_hoi(verb=3), None),
    (of_hoi(object=2), None),
    (of_hoi(subject=None), None),
    (changed(labels=["person", None]), None),
    (changed(labels=["person"]), None),
    (changed(boxes=[[0, 0, 1, 1], [2, 2, 3]]), None),
])  # fmt: skip
def test_what_is_no_such_record(record: Record, message: str | None) -> None:
    said = complaint(DataError, read, [record])
    assert said.startswith("test:1: ")
    assert message is None or said == f"test:1: {message}"
    policy = ErrorPolicy(skip=True)
    assert names(read([record, THIRD], policy=policy)) == ALL[2:]


@pytest.mark.parametrize("fields", [{"synsets": None}, {"image_hois": "of another vocabulary"}, {"ambiguous_hois": 3}])
def test_what_is_left_alone(fields: Record) -> None:
    assert read([changed(**fields)]).verbs[1] == ("run", "run.v.01")
    # the careful check agrees: a bad record beside it does not take it along
    policy = ErrorPolicy(skip=True)
    assert read([changed(**fields), {"image_id": "bad"}], policy=policy).image_ids == ["a"]


def test_an_image_occurs_once_and_is_one_of_the_known() -> None:
    with pytest.raises(DataError, match="test:2"):
        read([FIRST, FIRST])
    with pytest.raises(DataError, match="test:3"):
        read(RECORDS, known_ids={"a", "7"})
