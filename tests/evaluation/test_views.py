"""`--iou` and `--slice`: rows, tags, signatures, match streams, refusals; every number of a range to the last bit,
both ends of what is allowed; and what views of a protocol are called, in which order."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hoicli.errors import UsageError
from hoicli.evaluation.protocols import PROTOCOLS
from hoicli.evaluation.slices import parse_slices
from hoicli.evaluation.views import Thresholds, Views, parse_thresholds, view_order
from hoicli.vocabulary.datasets import load
from tests.support.project import FIXTURES, GT, PREDICTIONS, Hoicli, complaint, parsed, refusal
from tests.support.vcoco import with_labels

V_GT, V_PREDICTIONS = FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl"
VIEW = ("iou", "slice", "part")


def settings_of(row: dict[str, Any]) -> dict[str, str]:
    return dict(part.split(":", 1) for part in row["signature"].split("|"))


def test_the_rows_themselves_stay(hoicli: Hoicli) -> None:
    """A slice adds rows and changes none; a threshold that is the protocol's own changes no number and no signature."""
    plain = parsed(hoicli("eval", "--gt", GT, PREDICTIONS).out)
    sliced = parsed(hoicli("eval", "--gt", GT, PREDICTIONS, "--slice", "objects,people,verb").out)
    assert [row for row in sliced if not row["tags"]] == plain
    same = parsed(hoicli("eval", "--gt", GT, PREDICTIONS, "--iou", "0.5").out)
    assert [row | {"tags": {}} for row in same] == plain
    assert {row["tags"]["iou"] for row in same} == {"0.5"}


def test_signatures_mark_what_is_no_published_number(hoicli: Hoicli) -> None:
    found = parsed(hoicli("eval", "--gt", GT, PREDICTIONS, "--iou", "0.5:0.7:0.1", "--slice", "objects,verb").out)
    for row in found:
        signed, tags = settings_of(row), row["tags"]
        assert signed.get("iou") == (None if tags["iou"] == "0.5" else tags["iou"])
        assert signed.get("slice") == (f"{tags['slice']}/{tags['part']}" if "slice" in tags else None)
    keys = [(row["protocol"], row["metric"], row["subset"], *row["tags"].items()) for row in found]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    "options", [("--iou", "0.5,0.8"), ("--slice", "objects,people:2"), ("--iou", ".7", "--slice", "pairs")]
)
def test_a_match_stream_gives_the_same_rows(hoicli: Hoicli, tmp_path: Path, options: tuple[str, ...]) -> None:
    given = ("--gt", GT, PREDICTIONS, "--protocol", "hico,diag", *options)
    path = tmp_path / "matches.jsonl"
    path.write_text(hoicli("match", *given).out)
    direct = hoicli("eval", *given).out
    assert hoicli("eval", path).out == direct
    assert hoicli("eval", path, "--protocol", "hico,diag", *options).out == direct
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(reversed(lines)))
    assert hoicli("eval", path).out == direct


def test_shards_of_matches_and_the_ground_truth_give_the_same_rows(hoicli: Hoicli, tmp_path: Path) -> None:
    options = ("--protocol", "hico,qpic", "--iou", "0.5,0.8", "--slice", "objects,people")
    lines = PREDICTIONS.read_text().splitlines(keepends=True)
    paths = []
    for number, part in enumerate((lines[:3], lines[3:])):
        shard, matches = tmp_path / f"p{number}.jsonl", tmp_path / f"m{number}.jsonl"
        shard.write_text("".join(part))
        matches.write_text(hoicli("match", "--gt", GT, shard, "--only-predicted", *options).out)
        paths.append(matches)
    direct = hoicli("eval", "--gt", GT, PREDICTIONS, *options).out
    assert hoicli("eval", "--gt", GT, *paths, *options).out == direct
    assert "--gt: the matches are of the slice objects" in refusal(hoicli("eval", "--gt", GT, *paths), 2)


def test_match_records_say_what_they_are_of(hoicli: Hoicli) -> None:
    given = ("--gt", GT, PREDICTIONS, "--protocol", "hico", "--iou", "0.8", "--slice", "objects")
    records = parsed(hoicli("match", *given).out)
    views = [tuple(record["view"].items()) for record in records]
    assert len(set(zip((record["image_id"] for record in records), views, strict=True))) == len(records)
    small = [record for record in records if record["view"].get("part") == "small"]
    assert {record["settings"]["slice"] for record in small} == {"objects/small"}
    sizes = [(record["view"].get("part"), len(record["gt"])) for record in records]
    parts = {part: sum(size for of, size in sizes if of == part) for part in ("small", "medium", "large", None)}
    assert parts.pop(None) == sum(parts.values())
    assert any(item["outcome"] == "outside_slice" for record in records for item in record["predictions"])


def saved(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_diagnosis(hoicli: Hoicli, tmp_path: Path) -> None:
    """Parts of images and classes add up in counts; a match stream says the same."""
    given = ("--gt", GT, PREDICTIONS, "--slice", "people,verb", "--iou", "0.8")
    found = parsed(hoicli("diagnose", *given).out)
    counts: dict[Any, dict[Any, int]] = {}
    for row in found:
        if row["metric"] == "count" and row["subset"] == "full":
            of = counts.setdefault(row["tags"].get("slice"), {})
            of[row["error"]] = of.get(row["error"], 0) + row["value"]
    assert counts["people"] == counts["verb"] == counts[None]
    matches = hoicli("match", "--protocol", "diag", "--iou", "0.8", "--slice", "people", "--gt", GT, PREDICTIONS).out
    images = hoicli("diagnose", "--gt", GT, PREDICTIONS, "--slice", "people", "--iou", "0.8").out
    assert hoicli("diagnose", saved(tmp_path / "m.jsonl", matches)).out == images


@pytest.mark.long
def test_comparison(hoicli: Hoicli) -> None:
    """A model with itself differs in nothing; its means are those of eval, with the same intervals."""
    options = ("--gt", GT, "--slice", "objects,verb", "--iou", "0.5:0.7:0.1", "--protocol", "hico")
    found = parsed(hoicli("compare", *options, "--bootstrap", "50", "--name", "a,b", PREDICTIONS, PREDICTIONS).out)
    differences = [row for row in found if row["metric"] in ("mAP_diff", "delta_mAP_diff", "count_diff")]
    assert {row["value"] for row in differences} <= {0, None}
    assert {row["tags"].get("iou") for row in differences} == {"0.5", "0.6", "0.7", "0.5:0.7:0.1"}
    theirs = parsed(hoicli("eval", *options, "--bootstrap", "50", PREDICTIONS).out)
    wanted = {(row["metric"], row["subset"], *row["tags"].items()): row for row in theirs}
    ours = [row for row in found if row["metric"] == "mAP" and row["tags"]["model"] == "b"]
    for row in ours:
        tags = {key: value for key, value in row["tags"].items() if key in VIEW}
        same = wanted[("mAP", row["subset"], *tags.items())]
        assert (row["value"], row["n"], row["ci_low"]) == (same["value"], same["n"], same["ci_low"])
    assert ours


def test_vcoco(hoicli: Hoicli, tmp_path: Path) -> None:
    given = ("--dataset", "vcoco", "--gt", V_GT, with_labels(tmp_path / "p.jsonl", V_PREDICTIONS))
    found = parsed(hoicli("eval", *given, "--slice", "people,verb,objects", "--iou", "0.6").out)
    assert {row["protocol"] for row in found if row["tags"].get("slice") == "objects"} == {"vcoco-qpic"}
    assert {row["tags"]["part"] for row in found if row["tags"].get("slice") == "objects"} >= {"no_object"}
    assert len({row["protocol"] for row in found if row["tags"].get("slice") == "people"}) == 4


@pytest.mark.parametrize(("call", "message"), [
    (("eval", "--slice", "objects", "--tag", "part=1"), "--tag part: rows have a part of their own"),
    (("eval", "--slice", "object"), None),
    (("match", "--slice", "verb"), "--slice verb: selects the classes to average; give it to hoicli eval"),
    (("diagnose", "--slice", "objects"), "--slice objects: cannot type errors"),
    (("diagnose", "--iou", "0.6", "--as-released"), "--as-released: the released code has neither"),
    (("diagnose", "--iou", "0.6,0.7", "--emit", "predictions"), "--emit predictions: of one threshold"),
    (("eval", "--iou", "0.5:0.95"), "write a number, or first:last:step"),
    (("eval", "--iou", "0.5,"), "a threshold is empty"),
])  # fmt: skip
def test_what_is_refused(hoicli: Hoicli, call: tuple[str, ...], message: str | None) -> None:
    result = hoicli(*call, "--gt", GT, PREDICTIONS)
    assert result.code == (0 if message is None else 2)
    assert message is None or message in result.err
    assert message is None or not result.out


def test_emit_at_another_threshold(hoicli: Hoicli) -> None:
    records = parsed(hoicli("diagnose", "--gt", GT, PREDICTIONS, "--emit", "predictions", "--iou", "0.9").out)
    assert {record["settings"]["iou"] for record in records} == {"0.9"}
    errors = [item["error"] for record in records for item in record["predictions"]]
    found = parsed(hoicli("diagnose", "--gt", GT, PREDICTIONS, "--iou", "0.9").out)
    counts = {row["error"]: row["value"] for row in found if row["metric"] == "count" and row["subset"] == "full"}
    typed = {error: n for error, n in counts.items() if n and error != "missed_gt"}
    assert {error: errors.count(error) for error in set(errors)} == typed


def test_a_file_of_other_images(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "night.tsv", "HICO_test2015_00000001\tdark\nelsewhere\tdark\n")
    given = ("eval", "--gt", GT, PREDICTIONS, "--protocol", "hico", "--slice", path)
    result = hoicli(*given)
    assert result.code == 0
    assert "7 of 8 ground-truth images are in no slice of night\n" in result.err
    saved(path, "elsewhere\tdark\n")
    result = hoicli(*given)
    assert (result.code, result.out) == (1, "")
    assert "night: names 'elsewhere' and others, but no image of the ground truth" in result.err


def test_a_dataset_of_ones_own(hoicli: Hoicli, tmp_path: Path) -> None:
    """Training counts are cut anywhere; a protocol file is resolved for the dataset."""
    own = FIXTURES / "own"
    given = ("--dataset", own / "site.json", "--gt", own / "gt.jsonl", own / "predictions.jsonl")
    found = parsed(hoicli("eval", *given, "--slice", "frequency:2:10,people,objects").out)
    parts = {(row["tags"]["slice"], row["tags"]["part"]) for row in found if row["tags"]}
    assert {part for slice_, part in parts if slice_ == "frequency:2:10"} == {"2-9", "10+"}
    path = saved(tmp_path / "mine.json", json.dumps({"name": "mine", "like": "hico", "threshold": 0.75}))
    ours = parsed(hoicli("eval", *given, "--protocol", path).out)
    theirs = parsed(hoicli("eval", *given, "--protocol", "hico", "--iou", "0.75").out)
    assert [row["value"] for row in ours] == [row["value"] for row in theirs]
    matches = saved(tmp_path / "m.jsonl", hoicli("match", *given, "--protocol", path, "--slice", "people").out)
    again = parsed(hoicli("eval", "--dataset", own / "site.json", "--protocol", path, matches).out)
    assert [row for row in again if not row["tags"]] == ours


@pytest.mark.parametrize(("protocol", "said"), [("hico", True), ("qpic", False)])
def test_a_mean_over_other_classes_than_those_of_the_whole_is_said(hoicli: Hoicli, protocol: str, said: bool) -> None:
    """hico counts classes without ground truth 0 on all data, and leaves them out on a part."""
    on_parts = hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", protocol, "--slice", "people")
    assert ("compare parts with parts" in on_parts.err) == said
    of_classes = hoicli("eval", "--gt", GT, PREDICTIONS, "--protocol", protocol, "--slice", "verb")
    assert "compare parts with parts" not in of_classes.err


HICO, V_COCO = PROTOCOLS["hico"], PROTOCOLS["vcoco-s1"]
refused = partial(complaint, UsageError, parse_thresholds)


@pytest.mark.parametrize(("texts", "values", "ranges"), [
    (["0.5,0.75"], (0.5, 0.75), ()), ([" 0.75 , 0.5", "0.75"], (0.75, 0.5), ()), (["1"], (1.0,), ()),
    (["1e-9"], (1e-9,), ()), (["0.1:0.3:0.1"], (0.1, 0.2, 0.3), (("0.1:0.3:0.1", (0.1, 0.2, 0.3)),)),
    (["0.50:0.70:.20", "0.6"], (0.5, 0.7, 0.6), (("0.5:0.7:0.2", (0.5, 0.7)),)), ([], (), ()),
])  # fmt: skip
def test_thresholds(texts: list[str], values: tuple[float, ...], ranges: tuple[Any, ...]) -> None:
    assert parse_thresholds(texts) == Thresholds(values, ranges)


def test_a_range_has_at_most_99_steps_and_all_together_100_values() -> None:
    hundred = parse_thresholds(["0.01:1:0.01"])
    assert hundred.values == tuple(number / 100 for number in range(1, 101))
    assert parse_thresholds(["0.01:1:0.01", "0.5"]).values == hundred.values
    assert refused(["0.01:1:0.01", "0.505"]) == "--iou: 101 thresholds; give at most 100"
    said = "steps of 0.005 do not lead from 0.005 to 0.505 (1 to 99 steps)"
    assert refused(["0.005:0.505:0.005"]) == f"--iou 0.005:0.505:0.005: {said}"


@pytest.mark.parametrize(("text", "message"), [
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
])  # fmt: skip
def test_what_is_no_threshold(text: str, message: str) -> None:
    assert refused([text]) == message


def test_other_options_read_thresholds_under_their_own_name_and_from_a_least_value_on() -> None:
    asked: dict[str, Any] = {"option": "score", "what": "score", "minimum": 0.0}
    assert parse_thresholds(["0", "0:1:0.5"], **asked).values == (0.0, 0.5, 1.0)
    for text, part in (("-0.1", "-0.1"), ("0:1.5:0.5", "1.5")):
        assert refused([text], **asked) == f"--score {text}: '{part}' is no score; give a number from 0 to 1"
    assert refused(["0:1:0"], **asked) == "--score 0:1:0: '0' is no score; give a number above 0, at most 1"


def test_a_slice_of_triplets_does_not_suit_a_protocol_that_needs_no_object(
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


@pytest.mark.parametrize("views", [
    [{}, {"iou": "0.5"}, {"iou": "0.75"}, {"slice": "people", "part": "1"}, {"slice": "my", "part": "a"}],
    [{"iou": text} for text in ("0.5:0.95:0.05", "0.05", "0.5", "1.0")],
    [{"slice": "people", "part": part} for part in ("1", "2", "3-5", "6+")],
    [{"slice": "people", "part": part} for part in ("many", "2-3", "10-11", "10.5")],
    [{"slice": "objects", "part": part} for part in ("small", "medium", "large", "x")],
    [{"slice": name} for name in ("objects:4", "distance", "people", "a", "b")],
])  # fmt: skip
def test_views_of_match_records_stand_as_they_were_asked_for(views: list[dict[str, str]]) -> None:
    backwards = views[::-1]
    assert sorted(backwards, key=view_order) == views
