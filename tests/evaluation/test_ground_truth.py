"""The index of the ground truth by hand: what stands where, in which order, and what is not there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hoicli.errors import DataError
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import PROTOCOLS
from tests.support.kernel import HICO, Record, ground_truth

HOLD, WASH, NOTHING = (HICO.interaction_ids[verb, "cup"] for verb in ("hold", "wash", "no_interaction"))
CLASSES = len(HICO.interactions)


def image(name: str, *hois: tuple[int, str, int], **more: Any) -> Record:
    """Two people and a cup; (subject, verb, object)."""
    return {
        "image_id": name,
        "boxes": [[0, 0, 9, 9], [20, 0, 29, 9], [40, 0, 49, 9]],
        "labels": ["person", "person", "cup"],
        "hois": [{"subject": subject, "verb": verb, "object": object_} for subject, verb, object_ in hois],
        **more,
    }


def truth() -> GroundTruth:
    """Image b: rows 0 to 3, image a: row 4, image c: none; the rows 0 and 2 are of one class."""
    first = image("b", (0, "hold", 2), (1, "wash", 2), (1, "hold", 2), (0, "no_interaction", 2))
    return ground_truth([first, image("a", (1, "hold", 2)), image("c")])


def columns(*found: Any) -> list[list[Any]]:
    return [column.tolist() for column in found]


def join(truth: GroundTruth, image: list[int], interaction: list[int]) -> list[list[int]]:
    """The (argument, triplet) that are of one image and class."""
    found = truth.by_class(np.arange(len(truth.position)))
    return columns(*found.joined(*found.find(np.array(image), np.array(interaction))))


def join_people(truth: GroundTruth, person: list[int], interaction: list[int]) -> list[list[int]]:
    """The (argument, triplet) that are of one person and class."""
    found = truth.by_person(np.arange(len(truth.position)))
    return columns(*found.joined(*found.find(np.array(person), np.array(interaction))))


def test_the_counterparts_of_a_prediction_are_in_annotation_order() -> None:
    image_of, interaction = [1, 0, 0, 2, 0, 0], [HOLD, HOLD, WASH, HOLD, -1, HOLD + 1]
    assert join(truth(), image_of, interaction) == [[0, 1, 1, 2], [4, 0, 2, 1]]
    rows, _, count = truth().by_class(np.arange(3)).find(np.array(image_of), np.array(interaction))
    assert columns(rows, count) == [[0, 1, 2], [1, 2, 1]]


def test_the_order_of_annotation_stays_however_many_there_are() -> None:
    pairs = [(number % 2, ("hold", "wash")[number // 2 % 2], 2) for number in range(600)]
    found = ground_truth([image("a", *pairs)])
    rows, triplets = join(found, [0], [HOLD])
    assert triplets == [row for row, (_, verb, _) in enumerate(pairs) if verb == "hold"]
    assert set(rows) == {0}
    _, of_person = join_people(found, [1], [HOLD])
    assert of_person == [row for row, pair in enumerate(pairs) if pair[:2] == (1, "hold")]


def test_what_is_no_interaction_of_the_vocabulary_meets_nothing() -> None:
    """Not even other such triplets, nor the last class of the image before."""
    last = CLASSES - 1
    verb, label = HICO.interactions[last]
    record = {
        "image_id": "a", "boxes": [[0, 0, 9, 9], [20, 0, 29, 9]], "labels": ["person", label],
        "hois": [{"subject": 0, "object": 1, "verb": verb}, {"subject": 0, "object": 0, "verb": "fly"}],
    }  # fmt: skip
    found = ground_truth([record, {**record, "image_id": "b"}])
    assert found.scenes.interaction.tolist() == [last, -1, last, -1]
    assert join(found, [0, 1, 1, 0], [-1, -1, last, last]) == [[2, 3], [2, 0]]
    assert found.class_counts(PROTOCOLS["hico"]).sum() == 2


def test_the_place_of_each_image() -> None:
    assert truth().rows_of(["c", "b", "a"]).tolist() == [2, 0, 1]
    assert truth().rows_of([]).dtype == np.int64
    with pytest.raises(DataError) as error:
        truth().rows_of(["b", "x", "y"])
    assert (str(error.value), error.value.field) == ("image_id: image 'x' is not in the ground truth", "image_id")


def test_what_a_protocol_counts() -> None:
    found, diag = truth(), PROTOCOLS["diag"]
    assert found.counted(PROTOCOLS["hico"]).tolist() == [True] * 5
    assert found.counted(diag).tolist() == [True, True, True, False, True]
    assert found.counted_before(diag).tolist() == [0, 1, 2, 3, 3, 4]
    assert columns(*found.annotated(diag)) == [[0, 0, 0, 1], [HOLD, WASH, HOLD, HOLD]]
    counts = found.class_counts(diag)
    assert (counts[HOLD], counts[WASH], counts[NOTHING], len(counts)) == (3, 1, 0, CLASSES)
    assert found.counted(diag) is found.counted(diag)
    with pytest.raises(ValueError, match="read-only"):
        found.counted(diag)[0] = False


@pytest.mark.parametrize(
    ("images", "counted"),
    [("all", [True] * 4), ("boxes", [True, True, True, False]), ("interactions", [True, True, False, False])],
)
def test_the_images_in_which_predictions_count(images: str, counted: list[bool]) -> None:
    bare = {"image_id": "bare", "boxes": [], "labels": [], "hois": []}
    only = image("c", (0, "no_interaction", 2))
    found = ground_truth([image("b", (0, "hold", 2)), image("a", (1, "hold", 2)), only, bare])
    row = replace(PROTOCOLS["diag"], images=images)
    assert found.annotated_images(row).tolist() == counted


def test_boxes_of_dropped_triplets_alone_are_dropped_with_them() -> None:
    """Person 0 of b holds the cup, person 1 does nothing; the people of c are in no triplet."""
    found = ground_truth([image("b", (0, "hold", 2), (1, "no_interaction", 2)), image("c")])
    assert found.present_boxes(PROTOCOLS["diag"]).tolist() == [True, False, True, True, True, True]
    assert found.present_boxes(PROTOCOLS["hico"]).all()


def test_image_labels_are_those_stated_and_without_them_those_of_the_triplets() -> None:
    """Of image a they are stated, one is ambiguous; of b they follow from the triplets, each once."""
    stated = image(
        "a", (0, "hold", 2), image_hois=[["wash", "cup"], ["no_interaction", "cup"]], ambiguous_hois=[["hold", "cup"]]
    )
    found = ground_truth([stated, image("b", (0, "hold", 2), (1, "hold", 2))])
    positive, ambiguous = found.image_labels
    assert positive.tolist() == sorted([WASH, NOTHING, CLASSES + HOLD])
    assert ambiguous.tolist() == [HOLD]
    whole = PROTOCOLS["hico-image"]
    assert sorted(zip(*columns(*found.annotated(whole)), strict=True)) == sorted([(0, WASH), (0, NOTHING), (1, HOLD)])
