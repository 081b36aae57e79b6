"""The line of settings below a table: what all values share once, the rest by what it fills."""

from __future__ import annotations

import re
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from hoicli.records.result_rows import Row, parse_signature, signature
from hoicli.tables.cells import Place
from hoicli.tables.notes import settings_line
from hoicli.version import __version__

LINES = ["a", "b", "c"]
COLUMNS = [("one", "x"), ("one", "y"), ("two", "x")]
PLACES = list(product(range(3), range(3)))


def row(**settings: str) -> Row:
    return {"signature": signature(settings)}


def line(rows: dict[Place, Row], *shown: str) -> str:
    return settings_line({place: [row] for place, row in rows.items()}, LINES, COLUMNS, shown)


def test_what_all_share_stands_once() -> None:
    rows = {place: row(data="hico", nms="0.5") for place in PLACES}
    assert line(rows) == f"settings: data:hico|nms:0.5|version:{__version__}"
    named = {place: {**of, "nms": "0.5", "tags": {"data": "hico"}} for place, of in rows.items()}
    assert line(named, "nms", "data") == f"settings: version:{__version__}"
    other = {place: {**of, "nms": None, "tags": {"data": "theirs"}} for place, of in rows.items()}
    assert line(other, "nms", "data") == line(rows)  # a name that only sounds like a setting says nothing of it
    assert line({place: {} for place in PLACES}) == ""


def test_what_some_have_is_told_by_what_it_fills() -> None:
    def some(*filled: Place) -> str:
        return line({place: row(data="hico", **({"nms": "0.5"} if place in filled else {})) for place in PLACES})

    assert some(*((at, column) for at in range(3) for column in (0, 1))).endswith("; one: nms:0.5")
    assert some(*((at, 1) for at in range(3))).endswith("; one y: nms:0.5")
    assert some(*((1, column) for column in range(3))).endswith("; b: nms:0.5")
    assert some((0, 0), (2, 2)).endswith("; some of a, c: nms:0.5")


def test_values_of_one_mean() -> None:
    rows = {(0, 0): [row(nms="0.5"), row(nms="0.7")]}
    assert settings_line(rows, ["a"], [("", "x")], ()) == f"settings: nms:0.5 or 0.7|version:{__version__}"


@given(st.dictionaries(st.sampled_from(PLACES), st.sampled_from(["", "0.5", "0.7"]), min_size=1))
def test_no_setting_is_lost(chosen: dict[Place, str]) -> None:
    """Whatever has which value: every setting of every row is told once, under names that are there."""
    rows = {place: row(data="hico", **({"nms": value} if value else {})) for place, value in chosen.items()}
    told = line(rows).removeprefix("settings: ")
    settings = {setting for each in rows.values() for setting in parse_signature(each["signature"])}
    assert sorted(re.findall(r"\w+:[\w.]+", told)) == sorted(f"{key}:{value}" for key, value in settings)
    for part in told.split("; ")[1:]:
        names = part.rpartition(": ")[0].removeprefix("some of ").split(", ")
        assert set(names) <= {*LINES, "one", "two", "one x", "one y", "two x"}
