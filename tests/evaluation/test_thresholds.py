"""`--iou` and `--slice` read: every number of a range to the last bit, both ends of what is allowed, each refusal in
full; and what views of a protocol are called, in which order."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from hoicli.errors import UsageError
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.slices import parse_slices
from hoicli.evaluation.views import Thresholds, Views, parse_thresholds, view_order
from hoicli.vocabulary.datasets import load
from tests.support.project import complaint

HICO, V_COCO = PROTOCOLS["hico"], PROTOCOLS["vcoco-s1"]
refused = partial(complaint, UsageError, parse_thresholds)


@pytest.mark.parametrize(
    ("texts", "values", "ranges"),
    [
        (["0.5,0.75"], (0.5, 0.75), ()),
        ([" 0.75 , 0.5", "0.75"], (0.75, 0.5), ()),
        (["1"], (1.0,), ()),
        (["1e-9"], (1e-9,), ()),
        (["0.1:0.3:0.1"], (0.1, 0.2, 0.3), (("0.1:0.3:0.1", (0.1, 0.2, 0.3)),)),
        (["0.50:0.70:.20", "0.6"], (0.5, 0.7, 0.6), (("0.5:0.7:0.2", (0.5, 0.7)),)),
        ([], (), ()),
    ],
)
def test_thresholds(texts: list[str], values: tuple[float, ...], ranges: tuple[Any, ...]) -> None:
    assert parse_thresholds(texts) == Thresholds(values, ranges)


def test_a_range_has_at_most_99_steps_and_all_together_100_values() -> None:
    hundred = parse_thresholds(["0.01:1:0.01"])
    assert hundred.values == tuple(number / 100 for number in range(1, 101))
    assert parse_thresholds(["0.01:1:0.01", "0.5"]).values == hundred.values
    assert refused(["0.01:1:0.01", "0.505"]) == "--iou: 101 thresholds; give at most 100"
    said = "steps of 0.005 do not lead from 0.005 to 0.505 (1 to 99 steps)"
    assert refused(["0.005:0.505:0.005"]) == f"--iou 0.005:0.505:0.005: {said}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0", "--iou 0: '0' is no IoU; give a number above 0, at most 1"),
        ("1.0000001", "--iou 1.0000001: '1.0000001' is no IoU; give a number above 0, at most 1"),
        ("nan", "--iou nan: 'nan' is no IoU; give a number above 0, at most 1"),
        ("0.50000000000", "--iou 0.50000000000: '0.50000000000' is no IoU; give a number above 0, at most 1"),
        ("\u0661", "--iou \u0661: '\u0661' is no IoU; give a number above 0, at most 1"),
        ("0.5,,0.7", "--iou: a threshold is empty; give numbers with commas between them: 0.5,0.75"),
        ("0.5:0.9", "--iou 0.5:0.9: write a number, or first:last:step, for example 0.5:0.95:0.05"),
        ("0.5:0.9:0", "--iou 0.5:0.9:0: '0' is no IoU; give a number above 0, at most 1"),
        ("0.5:1.1:0.1", "--iou 0.5:1.1:0.1: '1.1' is no IoU; give a number above 0, at most 1"),
        ("0.5:0.5:0.1", "--iou 0.5:0.5:0.1: steps of 0.1 do not lead from 0.5 to 0.5 (1 to 99 steps)"),
        ("0.5:0.95:0.1", "--iou 0.5:0.95:0.1: steps of 0.1 do not lead from 0.5 to 0.95 (1 to 99 steps)"),
    ],
)
def test_what_is_no_threshold(text: str, message: str) -> None:
    assert refused([text]) == message


def test_other_options_read_thresholds_under_their_own_name_and_from_a_least_value_on() -> None:
    asked: dict[str, Any] = {"option": "score", "what": "score", "minimum": 0.0}
    assert parse_thresholds(["0", "0:1:0.5"], **asked).values == (0.0, 0.5, 1.0)
    for text, part in (("-0.1", "-0.1"), ("0:1.5:0.5", "1.5")):
        assert refused([text], **asked) == f"--score {text}: '{part}' is no score; give a number from 0 to 1"
    assert refused(["0:1:0"], **asked) == "--score 0:1:0: '0' is no score; give a number above 0, at most 1"


# Views


def test_a_slice_of_triplets_does_not_suit_a_protocol_that_may_need_no_object(
    capsys: pytest.CaptureFixture[str],
) -> None:
    views = Views(slices=tuple(parse_slices(["objects"], load("vcoco"))))
    for named in (None, ["vcoco-s1"]):
        assert complaint(UsageError, views.views_of, [V_COCO, PROTOCOLS["vcoco-qpic"]], named) == (
            "--slice objects: vcoco-s1 go by the person first, and may need no object; use people, pairs, verb, a "
            "file, or protocol vcoco-qpic"
        )
    rows = views.views_of([V_COCO], ["vcoco-s2"])
    assert rows == [V_COCO]
    assert "left out: --slice objects: vcoco-s1 go by the person first" in capsys.readouterr().err


@pytest.mark.parametrize(
    "views",
    [
        [{}, {"iou": "0.5"}, {"iou": "0.75"}, {"slice": "people", "part": "1"}, {"slice": "my", "part": "a"}],
        [{"iou": text} for text in ("0.5:0.95:0.05", "0.05", "0.5", "1.0")],
        [{"slice": "people", "part": part} for part in ("1", "2", "3-5", "6+")],
        [{"slice": "people", "part": part} for part in ("many", "2-3", "10-11", "10.5")],
        [{"slice": "objects", "part": part} for part in ("small", "medium", "large", "x")],
        [{"slice": name} for name in ("objects:4", "distance", "people", "a", "b")],
    ],
)
def test_views_of_match_records_stand_as_they_were_asked_for(views: list[dict[str, str]]) -> None:
    backwards = views[::-1]
    assert sorted(backwards, key=view_order) == views
