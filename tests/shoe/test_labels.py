"""How alike two labels are, and where ground truth has its senses from."""

from __future__ import annotations

import numpy as np

from hoicli.shoe.labels import Likeness, classes_of
from tests.support.shoe import SIMILAR, candidates, image, read, table_of


def likeness(truth: list[tuple[str | None, str | None]], predicted: list[tuple[str | None, str | None]]) -> Likeness:
    met = np.indices((len(truth), len(predicted))).reshape(2, -1)
    found = Likeness("v", truth, predicted, candidates, (met[0], met[1]))
    found.rate(table_of(SIMILAR))
    return found


def test_the_best_of_a_labels_senses() -> None:
    asked = likeness([("wash", "wash.v.01")], [("clean", None), ("clean", "clean.v.01"), ("WASH ", None)])
    assert asked.of(np.array([0, 0, 0]), np.array([0, 1, 2])).tolist() == [0.7, 0.1, 1.0]
    assert [asked.sense(0, column) for column in range(3)] == ["clean.v.02", "clean.v.01", "wash.v.01"]
    assert asked.asked == [("v", "clean.v.01", "wash.v.01"), ("v", "clean.v.02", "wash.v.01")]
    assert (asked.missing, asked.senseless) == ([], set())


def test_labels_without_a_sense_go_by_spelling() -> None:
    asked = likeness([("blob", None), ("wash", "wash.v.01")], [("Blob", None), ("wash", None), ("blob", "pet.v.01")])
    rows, columns = np.array([0, 0, 1, 0]), np.array([0, 1, 0, 2])
    assert asked.of(rows, columns).tolist() == [1.0, 0.0, 0.0, 1.0]
    assert asked.senseless == {"blob"}
    assert asked.sense(0, 0) is None


def test_the_same_label_is_alike_though_its_curated_sense_is_none_of_its_own() -> None:
    asked = likeness([("wash", "rinse.v.01")], [("wash", None), ("wash", "wash.v.01")])
    assert asked.of(np.array([0, 0]), np.array([0, 1])).tolist() == [1.0, 0.0]  # a sense that is named is meant
    assert asked.sense(0, 0) == "rinse.v.01"


def test_where_ground_truth_has_its_senses_from() -> None:
    truth = image(("ride", "set"), ("ride", "train", None, None, "ride.v.10"), ("odd", "train"))
    truth["synsets"] = [None, "kit.n.02", None, None]

    def some(verb: str, name: str | None) -> tuple[str | None, str | None]:
        return (None if verb == "odd" else f"{verb}.v.07", f"{name}.n.07")

    classes = classes_of(read([truth]), some, candidates)
    assert classes.classes == [("odd", "train"), ("ride", "set"), ("ride", "train")]
    assert [classes.verbs[row] for row in classes.verb_row] == [
        ("ride", "ride.v.07"),
        ("ride", "ride.v.10"),
        ("odd", "odd.v.01"),
    ]
    assert [classes.objects[row][1] for row in classes.object_row] == ["kit.n.02", "train.n.07", "train.n.07"]
