"""What a record cannot serve, or how its boxes are meant, goes with it: through eval, match, compare, diagnose and
report, by any shards, into signatures and below tables."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from hoicli import __version__
from hoicli.commands.doctor import schema_text
from hoicli.records.caveats import CAVEATS, names, read_caveats
from tests.support.project import (
    FIXTURES,
    GT,
    OTHER,
    PREDICTIONS,
    Hoicli,
    Record,
    parsed,
    refusal,
    saved,
    without_gt,
    written,
)
from tests.support.vcoco import with_labels

VCOCO_TRUTH, VCOCO_PREDICTIONS = FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl"
POCKET = FIXTURES / "foreign/instances_test2015.json"
DERIVED = CAVEATS["derived_labels"].words


def marked(path: Path, source: Path, *caveats: str) -> Path:
    """The records of `source` with caveats."""
    return written(path, [{**record, "caveats": [*caveats]} for record in parsed(source.read_text())])


def signatures(text: str) -> dict[str, str]:
    return {row["protocol"]: without_gt(row["signature"]) for row in parsed(text)}


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    whole = parsed(GT.read_text())
    content = [{key: value for key, value in record.items() if key != "image_hois"} for record in whole]
    return written(tmp_path / "bare.jsonl", content)


def test_formats_name_every_caveat() -> None:
    for kind, sides in (("ground_truth", "truth"), ("prediction", "predictions"), ("match", None)):
        listed = json.loads(schema_text(kind))["properties"]["caveats"]["items"]["enum"]
        assert listed == [row.name for row in CAVEATS.values() if sides is None or row.of in (sides, "both")]
    assert names(read_caveats([*CAVEATS])) == [*CAVEATS]


def test_known_object_of_derived_labels_is_signed(hoicli: Hoicli, bare: Path) -> None:
    official, derived = (signatures(hoicli("eval", "--gt", gt, PREDICTIONS).out) for gt in (GT, bare))
    assert derived.pop("hico-ko") == f"protocol:hico-ko|data:hico|labels:derived|version:{__version__}"
    assert official.pop("hico-ko") == f"protocol:hico-ko|data:hico|version:{__version__}"
    assert derived == official


@pytest.mark.parametrize("gt", [POCKET, FIXTURES / "foreign/anno_bbox.mat", FIXTURES / "foreign/test_hico.json"])
def test_what_convert_derives_labels_from_is_signed(hoicli: Hoicli, gt: Path, tmp_path: Path) -> None:
    truth = tmp_path / "gt.jsonl"
    assert hoicli("convert", gt, "-o", truth).code == 0
    assert "|labels:derived|" in signatures(hoicli("eval", "--gt", truth, PREDICTIONS).out)["hico-ko"]


@pytest.mark.parametrize(
    ("notation", "cell", "below"),
    [
        ("table", "hico-ko*  2.00", f"\n* {DERIVED}\nsettings: "),
        ("md", r"| hico-ko\* |", f"\n\n\\* {DERIVED}\n\nsettings: "),
        ("latex", "{Known Object$^{*}$}", f"\\par{{\\footnotesize $^{{*}}$ {DERIVED}}}\n% settings: "),
    ],
)
def test_tables_say_it(hoicli: Hoicli, bare: Path, notation: str, cell: str, below: str) -> None:
    text = hoicli("eval", "--protocol", "hico,hico-ko", "--format", notation, "--gt", bare, PREDICTIONS).out
    assert cell in text
    assert below in text
    assert "*" not in hoicli("eval", "--protocol", "hico", "--format", "table", "--gt", bare, PREDICTIONS).out
    classes = hoicli("eval", "--protocol", "hico-ko", "--per-class", "--format", notation, "--gt", bare, PREDICTIONS)
    assert classes.out.count(DERIVED) == 2  # below the means, and below the classes


def test_csv_says_it(hoicli: Hoicli, bare: Path) -> None:
    text = hoicli("eval", "--protocol", "hico,hico-ko", "--format", "csv", "--gt", bare, PREDICTIONS).out
    notes = {row["protocol"]: row["note"] for row in csv.DictReader(io.StringIO(text))}
    assert notes == {"hico": "", "hico-ko": DERIVED}
    assert "note" not in hoicli("eval", "--format", "csv", "--gt", GT, PREDICTIONS).out.splitlines()[0]


def test_rows_of_others_say_it_after_robust(hoicli: Hoicli, bare: Path, tmp_path: Path) -> None:
    cells = []
    for tags in (["corruption=clean"], ["corruption=jpeg", "severity=1"]):
        options = [word for tag in tags for word in ("--tag", tag)]
        cells.append(hoicli("eval", "--protocol", "hico-ko", *options, "--gt", bare, PREDICTIONS).out)
    path = saved(tmp_path / "rows.jsonl", "".join(cells))
    table = hoicli("robust", "--unit", "percent", "--format", "table", path).out
    assert f"\n{DERIVED}\n" in table  # of all values: without a mark
    assert "|labels:derived|" in hoicli("robust", "--unit", "percent", path).out


def test_a_comparison_is_signed(hoicli: Hoicli, bare: Path) -> None:
    for gt, derived in ((bare, True), (GT, False)):
        options = ("--protocol", "hico-ko", "--bootstrap", "20")
        found = signatures(hoicli("compare", *options, "--gt", gt, PREDICTIONS, OTHER).out)
        assert ("labels:derived" in found["hico-ko"]) == derived
        assert "labels" not in found["diag"]


def test_matches_carry_it_and_shards_combine(hoicli: Hoicli, bare: Path, tmp_path: Path) -> None:
    """One image without labels in the whole is enough; a shard without predictions of it knows no less of itself."""
    content = parsed(bare.read_text())
    some = written(tmp_path / "some.jsonl", [*parsed(GT.read_text())[:3], content[3], *parsed(GT.read_text())[4:]])
    whole = hoicli("eval", "--gt", some, PREDICTIONS).out
    matches = saved(tmp_path / "matches.jsonl", hoicli("match", "--gt", some, PREDICTIONS).out)
    assert hoicli("eval", matches).out == whole
    carrying = [record for record in parsed(matches.read_text()) if "caveats" in record]
    assert [(record["image_id"], record["protocol"], record["caveats"]) for record in carrying] == [
        (content[3]["image_id"], "hico-ko", ["derived_labels"])
    ]
    shards = []
    for part in range(3):
        shard = written(tmp_path / f"shard{part}.jsonl", parsed(PREDICTIONS.read_text())[part::3])
        shards.append(hoicli("match", "--only-predicted", "--gt", some, shard).out)
    for order in (shards, shards[::-1]):
        matches.write_text("".join(order))
        assert hoicli("eval", "--gt", some, matches).out == whole


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return marked(tmp_path / "pairs.jsonl", VCOCO_TRUTH, "pairs_only")


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    return with_labels(tmp_path / "labelled.jsonl", VCOCO_PREDICTIONS)


def test_pairs_alone_serve_no_official_protocol(hoicli: Hoicli, pairs: Path, labelled: Path) -> None:
    result = hoicli("eval", "--dataset", "vcoco", "--gt", pairs, labelled)
    assert signatures(result.out) == {"vcoco-qpic": f"protocol:vcoco-qpic|data:vcoco|truth:pairs|version:{__version__}"}
    left_out = [line for line in result.err.splitlines() if "vcoco-s1" in line]
    assert left_out == [
        "hoicli: left out: vcoco-agent, vcoco-s1, vcoco-s2: the ground truth has only pairs with an object; convert "
        "the official files (vcoco_test.json with COCO's instances), or name --protocol vcoco-pvic, which is of such "
        "pairs (mAP only: no error types, no pair statistics)"
    ]
    table = hoicli("eval", "--dataset", "vcoco", "--format", "table", "--gt", pairs, labelled).out
    assert f"\n{CAVEATS['pairs_only'].words}\n" in table


@pytest.mark.parametrize(
    "command",
    [
        *(("eval", "--protocol", name) for name in ("vcoco-agent", "vcoco-s1", "vcoco-s2", "vcoco-qpic,vcoco-s1")),
        ("match", "--protocol", "vcoco-s2"),
        ("compare", "--dataset", "vcoco", "--name", "a,b", VCOCO_PREDICTIONS),
        ("diagnose", "--dataset", "vcoco"),
        ("diagnose", "--dataset", "vcoco", "--emit", "predictions"),
        ("pairstats", "--dataset", "vcoco"),
    ],
    ids=lambda command: " ".join(str(word) for word in command if isinstance(word, str)),
)
def test_what_they_cannot_serve_is_named(hoicli: Hoicli, pairs: Path, tmp_path: Path, command: tuple[Any, ...]) -> None:
    output = tmp_path / ("out.jsonl" if command[0] == "match" else "out.html")
    result = hoicli(*command, "--gt", pairs, "-o", output, VCOCO_PREDICTIONS)
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith(f"{pairs}: cannot serve vcoco-")
    assert result.err.endswith("which is of such pairs (mAP only: no error types, no pair statistics)\n")
    assert not output.exists()


def test_pairs_serve_what_is_left(hoicli: Hoicli, pairs: Path, labelled: Path, tmp_path: Path) -> None:
    """match writes what eval reads; compare does without types of errors."""
    whole = hoicli("eval", "--dataset", "vcoco", "--gt", pairs, labelled).out
    matches = saved(tmp_path / "matches.jsonl", hoicli("match", "--dataset", "vcoco", "--gt", pairs, labelled).out)
    assert {record["protocol"] for record in parsed(matches.read_text())} == {"vcoco-qpic"}
    assert hoicli("eval", matches).out == whole
    options = ("--dataset", "vcoco", "--gt", pairs, labelled)
    other = written(tmp_path / "other.jsonl", parsed(labelled.read_text())[:-1])
    compared = hoicli("compare", "--protocol", "vcoco-qpic", "--bootstrap", "20", *options, other)
    assert set(signatures(compared.out)) == {"vcoco-qpic"}
    assert f"hoicli: left out: types of errors, which vcoco-s1 defines: {pairs} cannot serve it" in compared.err


def test_a_match_record_of_what_cannot_be_served_is_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    matches = hoicli("match", "--protocol", "vcoco-s1", "--gt", VCOCO_TRUTH, VCOCO_PREDICTIONS).out
    content = [{**record, "caveats": ["pairs_only"]} for record in parsed(matches)]
    path = written(tmp_path / "matches.jsonl", content)
    said = refusal(hoicli("eval", path))
    assert said.startswith(f"{path}:1: protocol: the ground truth has only pairs with an object; ")
    path = written(tmp_path / "matches.jsonl", [{**content[0], "caveats": ["more"]}])
    assert hoicli("eval", path).err.startswith(f"{path}:1: caveats: must be an array of derived_labels, pairs_only, ")


def test_people_that_nobody_marked_are_signed(hoicli: Hoicli, tmp_path: Path) -> None:
    """The official protocols ignore predictions on people nobody annotated, which QPIC's file does not tell."""
    truth = marked(tmp_path / "gt.jsonl", VCOCO_TRUTH, "unmarked_people")
    options = ("--dataset", "vcoco", "--gt", truth)
    found = signatures(hoicli("eval", *options, VCOCO_PREDICTIONS).out)
    named = [name for name, text in found.items() if "people:unmarked" in text]
    assert named == ["vcoco-agent", "vcoco-s1", "vcoco-s2"]
    diagnosed = hoicli("diagnose", *options, VCOCO_PREDICTIONS).out
    assert "|people:unmarked|" in signatures(diagnosed)["vcoco-s1"]
    matches = tmp_path / "matches.jsonl"
    matches.write_text(hoicli("match", "--protocol", "vcoco-s1", "--gt", truth, VCOCO_PREDICTIONS).out)
    assert hoicli("diagnose", matches).out == diagnosed
    assert "|people:unmarked|" in signatures(hoicli("pairstats", *options, VCOCO_PREDICTIONS).out)["vcoco-s1"]


def one_pair(object_box: list[float], **more: Any) -> Record:
    """A person with a kite. Ground truth is 0-based inclusive, [11, 11, 60, 60] and [101, 101, 150, 150] in HICO."""
    return {"image_id": "a", "boxes": [[10, 10, 59, 59], object_box], "labels": ["person", "kite"], **more}


def found(hoicli: Hoicli, tmp_path: Path, predictions: list[Record]) -> dict[str, float]:
    """Protocol -> AP of `fly kite`."""
    truth = [
        {**one_pair([100, 100, 149, 149]), "image_id": record["image_id"], "image_hois": [["fly", "kite"]],
         "hois": [{"subject": 0, "object": 1, "verb": "fly"}]}
        for record in predictions
    ]  # fmt: skip
    gt, path = written(tmp_path / "gt.jsonl", truth), written(tmp_path / "preds.jsonl", predictions)
    result = hoicli("eval", "--per-class", "--gt", gt, path)
    matches = saved(tmp_path / "matches.jsonl", hoicli("match", "--gt", gt, path).out)
    assert hoicli("eval", "--per-class", matches).out == result.out
    rows = [row for row in parsed(result.out) if row["metric"] == "AP" and row["object"] == "kite"]
    return {row["protocol"]: row["value"] for row in rows if row["verb"] == "fly"}


FLY = {"hois": [{"subject": 0, "object": 1, "verb": "fly", "score": 0.9}]}
EDGES = {**one_pair([100, 100, 126, 150], **FLY), "boxes": [[10, 10, 60, 60], [100, 100, 126, 150]]}
PIXELS = {**one_pair([100, 100, 125, 149], **FLY), "caveats": ["last_pixels"]}
"""What UPT's network says, and what its cache_hico writes of it: x2 - 1, y2 - 1."""


def test_upt_of_its_own_dump_is_its_own_number(hoicli: Hoicli, tmp_path: Path) -> None:
    """fredzzhang/upt utils.py: test_hico scores the edges, 26 * 50 / 2500 = 0.52 of them; cache_hico takes 1 off."""
    ours = found(hoicli, tmp_path, [PIXELS])
    assert ours["upt"] == found(hoicli, tmp_path, [EDGES])["upt"] == pytest.approx(100)
    without = {key: value for key, value in PIXELS.items() if key != "caveats"}
    as_they_are = found(hoicli, tmp_path, [without])
    assert as_they_are.pop("upt") == 0  # 25 * 49 / (2500 + 25 * 49 - 25 * 49) = 0.49
    del ours["upt"]
    assert ours == as_they_are  # MATLAB's number is of the file as it is, and nobody else released one


def test_records_of_both_kinds_are_taken_each_as_it_is(hoicli: Hoicli, tmp_path: Path) -> None:
    both = [{**PIXELS, "image_id": "a"}, {**EDGES, "image_id": "b"}]
    assert found(hoicli, tmp_path, both)["upt"] == pytest.approx(100)
    wrong = [{**PIXELS, "image_id": "a"}, {**EDGES, "image_id": "b", "boxes": PIXELS["boxes"]}]
    assert found(hoicli, tmp_path, wrong)["upt"] == pytest.approx(600 / 11)  # one of two
    signed = signatures(hoicli("eval", "--gt", tmp_path / "gt.jsonl", tmp_path / "preds.jsonl").out)
    assert signed.pop("upt") == f"protocol:upt|data:hico|boxes:last_pixels|version:{__version__}"
    assert not any("boxes" in text for text in signed.values())


def test_a_folder_of_mat_has_the_number_of_the_edges(hoicli: Hoicli, tmp_path: Path) -> None:
    """The fixture is what UPT would have written of the fixture predictions."""
    converted = tmp_path / "mat.jsonl"
    hoicli("convert", FIXTURES / "foreign/detections_mat", "--image-list", GT, "-o", converted)
    values = []
    for path in (converted, PREDICTIONS):
        of_classes = parsed(hoicli("eval", "--protocol", "upt", "--per-class", "--gt", GT, path).out)
        values.append([row["value"] for row in of_classes])
    assert values[0] == pytest.approx(values[1], abs=1e-9)
    hico = hoicli("eval", "--protocol", "hico", "--gt", GT, converted).out
    plain = written(tmp_path / "plain.jsonl", [{**record, "caveats": []} for record in parsed(converted.read_text())])
    assert hoicli("eval", "--protocol", "hico", "--gt", GT, plain).out == hico


def test_other_formats_cannot_say_it(hoicli: Hoicli, tmp_path: Path) -> None:
    path = marked(tmp_path / "preds.jsonl", PREDICTIONS, "last_pixels")
    result = hoicli("convert", path, "--to", "cdn-json", "-o", tmp_path / "cdn.json")
    assert "left out: the caveat last_pixels: boxes are written as they are: 7 (the first: " in result.err


def test_explain_says_what_is_heeded(hoicli: Hoicli) -> None:
    told = hoicli("eval", "--explain", "--protocol", "upt").out
    assert "+1 on x2 and y2 where the record says they are last pixels (.mat)" in told
