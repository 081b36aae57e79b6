"""How alike two labels are, and where ground truth has its senses from."""

from __future__ import annotations

from hoicli.shoe.likenesses import classes_of, normalise
from tests.support.shoe import candidates, image, read


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


def test_labels_are_compared_by_the_signs_of_a_keyboard() -> None:
    labels = ("Tennis\u2011Racket", "\u201ctennis-racket\u201d", "\uff54ennis\u2013racket", "tennis-\u200bracket")
    assert {normalise(label) for label in labels} == {"tennis-racket"}
    assert normalise("tennis\u00a0racket") == normalise("Tennis  racket") == "tennis_racket"
