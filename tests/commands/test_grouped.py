"""`--by`: the rows of a group are those of a call with its ground truth and its predictions alone, whatever order the
lines are in, whatever joins them, and in Python, too."""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hoicli as api
from hoicli.errors import HoicliError
from hoicli.interface.grouped_calls import collapse_notes
from hoicli.io.streams import Line
from hoicli.records.group_lines import read_fields
from tests.support.kernel import arrays
from tests.support.project import EIGHT, FIXTURES, GT, PREDICTIONS, Hoicli, parsed, records, refusal, saved, written

Record = dict[str, Any]
CELLS = (("clean", 0), ("jpeg", 2), ("jpeg", 10))
"""In the order of the rows: numbers by size."""
BY = ("--by", "corruption,severity")


def cell_records(source: Path, cell: tuple[str, int], first: int = 0) -> list[Record]:
    """The records of a cell, as `hoicli corrupt` and a detector that copies its fields write them."""
    corruption, severity = cell
    fields = {"corruption": corruption, "severity": severity}
    return [
        {**record, **fields, "file_name": f"{corruption}/{severity}/{record['image_id']}.png"}
        for record in records(source)[first:]
    ]


def truth_and_predictions() -> tuple[list[Record], list[Record]]:
    """Three cells with the same images; the detector is another one in the second, and lost an image in the third."""
    sources = (PREDICTIONS, EIGHT / "other.jsonl", PREDICTIONS)
    truth = [record for cell in CELLS for record in cell_records(GT, cell)]
    predictions = []
    for number, (cell, source) in enumerate(zip(CELLS, sources, strict=True)):
        predictions += cell_records(source, cell, first=number // 2)
    return truth, predictions


def without(record: Record, *names: str) -> Record:
    return {key: value for key, value in record.items() if key not in names}


def lines(path: Path, items: Iterable[Record]) -> Path:
    """Records in any order, in a compressed file."""
    shuffled = list(items)
    random.Random(5).shuffle(shuffled)
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps(item) + "\n" for item in shuffled)
    return path


@pytest.mark.parametrize(
    "command",
    [
        "eval --per-class",
        "eval --boxes",
        "eval --protocol qpic --bootstrap 5 --slice people",
        "diagnose --per-class",
        "pairstats",
        "recall",
        "shoe-eval --sim wordnet:wup",
        f"shoe-eval --allow-missing --sim {FIXTURES}/shoe/sim.jsonl",
    ],
)
def test_groups_are_as_single_calls(hoicli: Hoicli, tmp_path: Path, command: str) -> None:
    """Byte for byte, from a shuffled compressed file, too."""
    truth, predictions = truth_and_predictions()
    single = ""
    for corruption, severity in CELLS:
        truth_file, predictions_file = (
            written(
                tmp_path / name,
                [item for item in items if (item["corruption"], item["severity"]) == (corruption, severity)],
            )
            for name, items in (("gt.jsonl", truth), ("preds.jsonl", predictions))
        )
        tags = ("--tag", "model=x", "--tag", f"corruption={corruption}", "--tag", f"severity={severity}")
        result = hoicli(*command.split(), "--gt", truth_file, *tags, predictions_file)
        assert result.code == 0, result.err
        single += result.out
    files = written(tmp_path / "gt.jsonl", truth), written(tmp_path / "preds.jsonl", predictions)
    packed = lines(tmp_path / "gt.jsonl.gz", truth), lines(tmp_path / "preds.jsonl.gz", predictions)
    for truth_file, predictions_file in (files, packed):
        together = hoicli(*command.split(), "--gt", truth_file, *BY, "--tag", "model=x", predictions_file)
        assert (together.code, together.out) == (0, single), together.err


def test_several_models(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, predictions = truth_and_predictions()
    gt = written(tmp_path / "gt.jsonl", truth)
    a, b = written(tmp_path / "a.jsonl", predictions), written(tmp_path / "b.jsonl", predictions)
    rows = parsed(hoicli("diagnose", "--gt", gt, *BY, a, b).out)
    tags = {tuple(row["tags"].items()) for row in rows}
    assert len(tags) == 6
    assert (("model", "a"), ("corruption", "jpeg"), ("severity", "10")) in tags


def test_compare(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, predictions = truth_and_predictions()
    gt, a, b = written(tmp_path / "gt.jsonl", truth), tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    written(a, predictions)
    worse = [{**record, "hois": record["hois"][:1] if record["severity"] == 2 else record["hois"]} for record in truth]
    for record in worse:
        record["hois"] = [{**hoi, "score": 0.5 + place / 100} for place, hoi in enumerate(record["hois"])]
    written(b, worse)
    call = ("compare", "--gt", gt, *BY, "--protocol", "qpic", "--bootstrap", "20", "--no-errors", b, a)
    result = hoicli(*call, "--fail-if-worse")
    assert result.code == 3
    assert "hoicli: corruption=jpeg severity=10: a is not shown to differ from b: -38.10" in result.err
    assert "corruption=jpeg severity=10: a fails --fail-if-worse against b" in result.err.splitlines()[-1]
    groups = {(row["tags"]["corruption"], row["tags"]["severity"]) for row in parsed(result.out)}
    assert groups == {(corruption, str(severity)) for corruption, severity in CELLS}
    assert "severity" in hoicli(*call, "--format", "table").out


def test_joins(hoicli: Hoicli, tmp_path: Path) -> None:
    """By the fields, by the file name, or by an id that is the path: one result. By the order of lines: never."""
    truth, predictions = truth_and_predictions()
    gt, preds = written(tmp_path / "gt.jsonl", truth), tmp_path / "preds.jsonl"
    call = ("eval", "--gt", gt, *BY, "--protocol", "hico")
    by_fields = hoicli(*call, written(preds, (without(record, "file_name") for record in predictions)))
    by_name = hoicli(*call, written(preds, (without(record, "corruption", "severity") for record in predictions)))
    paths = [{**record, "image_id": record["file_name"].removesuffix(".png")} for record in predictions]
    by_path = hoicli(*call, written(preds, (without(record, "corruption", "file_name") for record in paths)))
    assert by_fields.code == 0
    assert by_fields.out == by_name.out == by_path.out
    nothing = [without(record, "corruption", "severity", "file_name") for record in predictions]
    assert refusal(hoicli(*call, written(preds, nothing))) == (
        f"{preds}:1: image_id: 'HICO_test2015_00000001' is in 3 groups of the ground truth; copy corruption and "
        "severity, or file_name, from its record into the prediction"
    )


def test_absent_classes_and_doubled_images_are_advised(hoicli: Hoicli, tmp_path: Path) -> None:
    """Classes that a group lacks count 0 in some means; images that occur twice in a group differ in another field."""
    truth, predictions = truth_and_predictions()
    gt, preds = written(tmp_path / "gt.jsonl", truth), written(tmp_path / "preds.jsonl", predictions)
    advice = "classes have no ground truth and count 0 in the mean; to compare groups, --protocol qpic leaves them out"
    assert advice in hoicli("eval", "--gt", gt, *BY, "--protocol", "hico", preds).err
    assert refusal(hoicli("eval", "--gt", gt, "--by", "corruption", preds)) == (
        f"{gt}:{len(truth) // 3 * 2 + 1}: image_id: image '{truth[0]['image_id']}' is at {gt}:{len(truth) // 3 + 1} "
        "already, with another severity; group by it, too: --by corruption,severity"
    )


def test_validate(hoicli: Hoicli, tmp_path: Path) -> None:
    """The images of each cell are checked by themselves, with one row for each kind of fault."""
    truth, predictions = truth_and_predictions()
    for record in predictions[:2]:
        record["hois"][0]["score"] = 5
    gt, preds = written(tmp_path / "gt.jsonl", truth), written(tmp_path / "preds.jsonl", predictions)
    alone = hoicli("validate", "--gt", gt, preds)
    assert alone.code == 1
    assert "cells of hoicli corrupt: --by corruption,severity" in parsed(alone.out)[0]["fix"]
    assert hoicli("eval", "--gt", gt, preds).err.endswith("its records as ground truth, --by corruption,severity\n")
    result = hoicli("validate", "--gt", gt, *BY, preds)
    assert result.code == 0, result.out
    counts = {row["check"]: row["count"] for row in parsed(result.out)}
    assert (counts["score-outside-range"], counts["image-without-predictions"]) == (2, 4)
    assert f"checked {len(truth) + len(predictions)} lines" in result.err


def test_lines_dropped_while_grouping_and_later_are_added(hoicli: Hoicli, tmp_path: Path) -> None:
    """A signature has one number of bad lines."""
    truth, predictions = truth_and_predictions()
    predictions[0]["boxes"] = [[1, 2]]
    gt, preds = written(tmp_path / "gt.jsonl", truth), written(tmp_path / "preds.jsonl", predictions)
    preds.write_text(preds.read_text() + "{broken\n")
    rows = parsed(hoicli("eval", "--gt", gt, *BY, "--protocol", "qpic", "--on-error", "skip", preds).out)
    assert [row["signature"].split("skipped:")[1][:2] for row in rows[::3]] == ["2|", "1|", "1|"]


def test_many_files_and_escaped_keys(hoicli: Hoicli, tmp_path: Path) -> None:
    """One file is open at a time; a key may be written with escapes."""
    truth, predictions = truth_and_predictions()
    gt = tmp_path / "gt.jsonl"
    gt.write_text("".join(json.dumps(record).replace('"severity"', '"\\u0073everity"') + "\n" for record in truth))
    files = [written(tmp_path / f"{number}.jsonl", [record]) for number, record in enumerate(predictions)]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 12, hard))
        result = hoicli("eval", "--gt", gt, *BY, "--protocol", "qpic", *files)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert (result.code, len(parsed(result.out))) == (0, 9), result.err


def test_own_field(hoicli: Hoicli, tmp_path: Path) -> None:
    """Where each image is in one group, its id is enough; a table shows the field."""
    truth = [{**record, "camera": f"c{index % 2}"} for index, record in enumerate(records(GT))]
    gt = written(tmp_path / "gt.jsonl", truth)
    result = hoicli("eval", "--gt", gt, "--by", "camera", "--protocol", "hico", PREDICTIONS)
    assert {row["tags"]["camera"] for row in parsed(result.out)} == {"c0", "c1"}
    rows = saved(tmp_path / "rows.jsonl", result.out)
    table = hoicli("table", "--columns", "tag.camera,subset", rows, "--format", "csv").out
    assert table.startswith("metric,c0 full,")


def test_match_stream(hoicli: Hoicli, tmp_path: Path) -> None:
    """Match records have the fields, so that they can be grouped again, with the ground truth and without."""
    truth, predictions = truth_and_predictions()
    gt, preds = written(tmp_path / "gt.jsonl", truth), written(tmp_path / "preds.jsonl", predictions)
    matches = saved(tmp_path / "matches.jsonl", hoicli("match", "--gt", gt, *BY, "--protocol", "diag", preds).out)
    directly = hoicli("diagnose", "--gt", gt, *BY, preds)
    assert directly.code == 0
    assert hoicli("diagnose", *BY, matches).out == directly.out
    assert hoicli("diagnose", "--gt", gt, *BY, matches).out == directly.out
    emitted = parsed(hoicli("diagnose", "--gt", gt, *BY, "--emit", "predictions", preds).out)
    assert {(record["corruption"], record["severity"]) for record in emitted} == set(CELLS)


def test_errors(hoicli: Hoicli, tmp_path: Path) -> None:
    truth, predictions = truth_and_predictions()
    gt, preds = tmp_path / "gt.jsonl", tmp_path / "preds.jsonl"

    def message(*changed: str, by: str = "corruption,severity") -> str:
        result = hoicli("eval", "--gt", gt, "--by", by, *changed, preds)
        assert (result.out, result.err.count("\n")) == ("", 1), result
        return result.err.strip().replace(f"{tmp_path}/", "")

    written(gt, truth)
    written(preds, predictions)
    assert message(by="camera") == "gt.jsonl:1: camera: missing; --by groups the records by it, so each needs it"
    assert message(by="Corruption") == "gt.jsonl:1: Corruption: missing; did you mean 'corruption'?"
    assert (
        message(by="boxes") == "gt.jsonl:1: boxes: an array; --by takes fields that are a text, a number, true or false"
    )
    assert message(by="corruption,image_id").startswith("hoicli: --by image_id: rows have a image_id of their own")
    assert message("--tag", "severity=1").startswith("hoicli: --tag severity: --by severity gives rows this tag")
    assert message("--explain").startswith("hoicli: --explain")
    written(preds, [*predictions, {**predictions[0], "severity": 3}])
    assert message() == (
        f"preds.jsonl:{len(predictions) + 1}: corruption: no group of the ground truth has corruption=clean "
        "severity=3; it has corruption=clean severity=0, corruption=jpeg severity=2, corruption=jpeg severity=10"
    )
    written(preds, [without(predictions[0], "corruption") | {"severity": 2}, *predictions[1:]])
    assert message() == "preds.jsonl:1: severity: severity=2, but its image is in corruption=clean severity=0"
    written(preds, [predictions[0] | {"corruption": "jpeg", "severity": 2}, *predictions[1:]])
    other_truth = [record for record in truth if record["image_id"] != predictions[0]["image_id"] or record is truth[0]]
    written(gt, other_truth)
    assert "corruption=jpeg severity=2, but its image is in corruption=clean severity=0" in message()
    written(gt, truth)
    written(preds, [*predictions, predictions[3]])
    assert f"preds.jsonl:{len(predictions) + 1}: image_id: image" in message()
    assert "preds.jsonl:4 already" in message()
    written(preds, [{**predictions[0], "boxes": [[1, 2, 3]]}, *predictions[1:]])
    assert message().startswith("preds.jsonl:1: boxes")
    written(gt, [without(truth[0], "severity"), *truth[1:]])
    assert message() == "gt.jsonl:1: severity: missing; --by groups the records by it, so each needs it"


def test_missing_group(hoicli: Hoicli, tmp_path: Path) -> None:
    """A cell without any prediction is a run that is missing: an error, or left out if bad lines are skipped."""
    truth, predictions = truth_and_predictions()
    gt = written(tmp_path / "gt.jsonl", truth)
    preds = written(tmp_path / "preds.jsonl", [record for record in predictions if record["severity"] != 2])
    said = refusal(hoicli("eval", "--gt", gt, *BY, preds))
    assert "no predictions for 1 of 3 groups: corruption=jpeg severity=2; run the detector" in said
    skipped = hoicli("eval", "--gt", gt, *BY, "--protocol", "hico", "--on-error", "skip", preds)
    assert skipped.code == 0
    assert {row["tags"]["severity"] for row in parsed(skipped.out)} == {"0", "10"}
    assert "left out" in skipped.err
    other = written(tmp_path / "other.jsonl", [record for record in predictions if record["severity"] == 2])
    apart = hoicli("diagnose", "--gt", gt, *BY, "--on-error", "skip", preds, other)
    assert "no group has predictions of every model; give all models the same groups" in apart.err
    shard = hoicli("match", "--gt", gt, *BY, "--protocol", "hico", "--only-predicted", preds)
    assert shard.code == 0, shard.err


def test_in_python() -> None:
    """A list of fields, records in memory, arrays by path; notes come once."""
    truth, predictions = truth_and_predictions()
    result = api.evaluate(truth, predictions, by=["corruption", "severity"], protocol="hico")
    assert [row["tags"] for row in result.rows[::3]] == [{"corruption": c, "severity": str(s)} for c, s in CELLS]
    by_path = {record["file_name"]: arrays(record) for record in predictions}
    assert api.evaluate(truth, by_path, by="corruption,severity", protocol="hico").rows == result.rows
    assert sum("no predictions" in text for text in result.notes) == 1
    with pytest.raises(HoicliError, match=r"^gt\[0\]: day: missing; by groups"):
        api.evaluate(truth, predictions, by="day")


def test_a_grid_without_files(tmp_path: Path) -> None:
    """`corrupt_grid` yields the command's records, and pixels as `corrupt` makes them, for evaluate and robust."""
    truth = records(FIXTURES / "robust/ground_truth.jsonl")[:2]
    folder = FIXTURES / "robust/images"
    loader = [(np.asarray(PIL.Image.open(folder / record["file_name"]).convert("RGB")), record) for record in truth]
    grid = list(api.corrupt_grid(loader, corruption=["jpeg", "elastic"], severity="2-3"))
    command = api.corrupt_records(
        truth, images=folder, records_only=True, with_clean=True, corruption="jpeg,elastic", severity="2-3", jobs=1
    )
    assert [record for _, record in grid] == list(command)
    image, record = grid[4]
    assert (record["corruption"], record["severity"]) == ("elastic", 3)
    assert (image == api.corrupt(loader[0][0], "elastic", 3, image_id=truth[0]["image_id"])).all()
    assert (grid[0][0] == loader[0][0]).all()
    predictions = []
    for _, record in grid:
        hois = [{**hoi, "score": 0.5} for hoi in record["hois"]]
        fields = {key: record[key] for key in ("image_id", "corruption", "severity", "boxes", "labels")}
        predictions.append({**fields, "hois": hois})
    result = api.evaluate(
        [record for _, record in grid], predictions, by=["corruption", "severity", "recipe"], protocol="qpic"
    )
    assert api.robust(result.rows).to_dict()["qpic/mri/full"] == 100
    with pytest.raises(HoicliError, match=r"^loader\[0\]: image_id: missing"):
        next(api.corrupt_grid([(loader[0][0], {})]))
    with pytest.raises(HoicliError, match=r"^corruption='fog_of_war': no corruption"):
        api.corrupt_grid([], corruption="fog_of_war")


def test_notes_are_collapsed() -> None:
    notes = {"a": ["1 of 8 images", "left out"], "b": ["2,000 of 9 images (b)", "left out"], "c": ["left out"]}
    assert list(collapse_notes(notes)) == ["a: 1 of 8 images (so or alike in 1 more groups)", "left out"]


KEYS = st.sampled_from(["k", "image_id", "hois", 'a"b', "]", "\\"])
VALUES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(max_size=6) | st.sampled_from(['],"k":"x"}', '"k":1,', "\\", "k", '{"k":'])
NESTED = st.recursive(
    VALUES | TEXTS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2), max_leaves=4
)


@given(st.dictionaries(KEYS, NESTED, max_size=5), st.booleans())
def test_fields_are_read_without_parsing_all(record: Record, spaced: bool) -> None:
    """The fields of a line are those of its JSON, wherever they stand and whatever texts look like."""
    record["image_id"] = record.get("image_id", "1")
    data = json.dumps(record, separators=None if spaced else (",", ":")).encode()
    fields = read_fields(Line("f", 1, data), ["k"])
    assert fields.get("k") == record.get("k")
    assert type(record["image_id"]) in (list, dict) or fields["image_id"] == record["image_id"]
