"""The table of similarities: symmetric, checked line by line, known by its content; how alike two labels are, and
where ground truth has its senses from."""

from __future__ import annotations

import numpy as np
import pytest

from hoicli.errors import DataError
from hoicli.io.streams import Line
from hoicli.records.intake import ErrorPolicy
from hoicli.shoe.likenesses import classes_of, normalise
from hoicli.shoe.settings import RULES
from hoicli.shoe.similarity_table import SimilarityTable, merged_rows
from tests.support.kernel import lines as as_lines
from tests.support.project import Record, complaint
from tests.support.shoe import candidates, image, read, table_of


def test_the_table_is_symmetric_and_knows_itself() -> None:
    table = table_of({("pet.v.01", "touch.v.01"): 0.55, ("pet.n.01", "dog.n.01"): 1})
    found = table.values(
        ["pet.v.01", "touch.v.01", "pet.n.01", "new.v.01"], ["touch.v.01", "pet.v.01", "x.n.01", "new.v.01"]
    )
    np.testing.assert_array_equal(found, [0.55, 0.55, np.nan, 1.0])
    assert len(table) == 2
    assert len(SimilarityTable.read([], ErrorPolicy())) == 0
    empty = SimilarityTable.read([], ErrorPolicy()).values(["a.v.01"], ["b.v.01"])
    np.testing.assert_array_equal(empty, [np.nan])


def test_the_digest_names_the_content() -> None:
    rows = [{"pos": "v", "a": f"a{n}.v.01", "b": f"b{n % 3}.v.01", "similarity": n / 10} for n in range(9)]
    turned = [{**row, "a": row["b"], "b": row["a"]} for row in reversed(rows)]
    one, other = (SimilarityTable.read(as_lines(side), ErrorPolicy()).digest() for side in (rows, [*turned, rows[3]]))
    assert one == other
    rows[0]["similarity"] = -0.0
    assert SimilarityTable.read(as_lines(rows), ErrorPolicy()).digest() == one
    rows[0]["similarity"] = 0.05
    assert SimilarityTable.read(as_lines(rows), ErrorPolicy()).digest() != one


GOOD = {"pos": "v", "a": "pet.v.01", "b": "touch.v.01", "similarity": 0.5}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pos": "x"}, 'pos: "x" is neither v (verbs) nor n (objects)'),
        ({"a": 3}, "a: 3 is no sense of pos v; name one as WordNet does, for example pet.v.01"),
        ({"b": "dog.n.01"}, 'b: "dog.n.01" is no sense of pos v; name one as WordNet does, for example pet.v.01'),
        ({"similarity": 1.5}, "similarity: 1.5 is no similarity; give a number from 0 to 1"),
        ({"similarity": True}, "similarity: true is no similarity; give a number from 0 to 1"),
        ({"b": "pet.v.01"}, "similarity: 0.5 of a sense with itself is 1; leave the line out"),
        ({"scores": {"m": 0}}, "similarity: 0.5 is not what its scores give, 0; correct one of the two"),
        (
            {"scores": {"m": 4, "n": 0}, "merge": "majority"},
            "similarity: 0.5 is not what its scores give, 1 or 0; correct one of the two",
        ),
        ({"scores": [3]}, "scores: [3] is no object of ratings 0 to 4 by model"),
        ({"measure": 7}, "measure: 7 is no name"),
        ({"date": "2026-01-31/"}, 'date: "2026-01-31/" is no date; write 2026-01-31, or 2026-01-31/2026-02-02'),
        ({"merge": ["x"]}, 'merge: ["x"] is none of mean, median, majority'),
        (
            {"a": "touch.v.01", "b": "pet.v.01", "similarity": 0.25},
            "similarity: touch.v.01 and pet.v.01 are 0.25 here and 0.5 on another line; "
            "keep one line a pair (hoicli shoe-sim --merge joins tables)",
        ),
    ],
)
def test_a_bad_line_of_the_table(change: Record, message: str) -> None:
    lines = as_lines([GOOD, {**GOOD, **change}], "sim.jsonl")
    assert complaint(DataError, SimilarityTable.read, lines, ErrorPolicy()) == f"sim.jsonl:2: {message}"
    policy = ErrorPolicy(skip=True)
    kept = SimilarityTable.read(lines, policy)
    assert policy.skipped == 1
    # a pair that lines disagree about is not in the table at all: which line came first must not decide
    assert len(kept) == (0 if "shoe-sim --merge" in message else 1)


@pytest.mark.parametrize(
    "change",
    [
        {"scores": {"m": 2}},
        {"scores": {"m": 1, "n": 2, "o": 2}, "similarity": 0.42},  # written with two digits
        {"scores": {"m": 4, "n": 0}, "similarity": 0.0, "merge": "majority"},  # who was listed first is not known
        {"scores": {"m": 0}, "measure": "lexical"},  # another rater stands beside it
        {"scores": {"m": 3}, "a": "touch.v.01", "b": "touch.v.01", "similarity": 1},
        {"scores": {}},
    ],
)
def test_a_similarity_that_follows_from_its_scores(change: Record) -> None:
    assert len(SimilarityTable.read(as_lines([{**GOOD, **change}]), ErrorPolicy())) == 1


RECORD = b'{"pos": "v", "a": "pet.v.01", "b": "hug.v.01", "similarity": 0.5, "measure": "wordnet:wup"}'


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([RECORD, RECORD + b"," + RECORD], "sim.jsonl:2"),
        ([RECORD + b"," + RECORD[:9], RECORD[9:]], "sim.jsonl:1"),
        ([RECORD[:-1], RECORD[1:]], "sim.jsonl:1"),
        ([RECORD, RECORD[:-1] + b',"pos": "v"}'], "sim.jsonl:2: the key 'pos' occurs twice"),
        ([RECORD, RECORD[:-1] + b',"measure": "wordnet\\u003awup"}'], "sim.jsonl:2: the key 'measure' occurs twice"),
    ],
)
def test_each_line_is_a_record(lines: list[bytes], place: str) -> None:
    table = [Line("sim.jsonl", number, data) for number, data in enumerate(lines, start=1)]
    assert complaint(DataError, SimilarityTable.read, table, ErrorPolicy()).startswith(place)


@pytest.mark.parametrize("rule", RULES)
def test_a_joined_zero_has_no_sign(rule: str) -> None:
    row = {"pos": "v", "a": "pet.v.01", "b": "touch.v.01", "similarity": -0.0}
    (joined,) = merged_rows(as_lines([row]), rule, ErrorPolicy())
    assert str(joined["similarity"]) == "0.0"


def test_where_ground_truth_has_its_senses_from() -> None:
    truth = image(("ride", "set"), ("ride", "train", None, None, "ride.v.10"), ("odd", "train"))
    truth["synsets"] = [None, "kit.n.02", None, None]

    def some(verb: str, name: str | None) -> tuple[str | None, str | None]:
        return (None if verb == "odd" else f"{verb}.v.07", f"{name}.n.07")

    classes = classes_of(read([truth]), some, candidates)
    assert classes.classes == [("odd", "train"), ("ride", "set"), ("ride", "train")]
    named = [classes.verbs[row] for row in classes.verb_row]
    assert named == [("ride", "ride.v.07"), ("ride", "ride.v.10"), ("odd", "odd.v.01")]
    assert [classes.objects[row][1] for row in classes.object_row] == ["kit.n.02", "train.n.07", "train.n.07"]


def test_labels_are_compared_by_the_signs_of_a_keyboard() -> None:
    labels = ("Tennis\u2011Racket", "\u201ctennis-racket\u201d", "\uff54ennis\u2013racket", "tennis-\u200bracket")
    assert {normalise(label) for label in labels} == {"tennis-racket"}
    assert normalise("tennis\u00a0racket") == normalise("Tennis  racket") == "tennis_racket"
