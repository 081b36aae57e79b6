"""Claimed numbers: what `hoicli eval` prints under a setting leads back to it, and whatever fits prints them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hoicli.comparison.claimed import Claim, rounding
from hoicli.errors import UsageError
from tests.support.project import FIXTURES, GT, PREDICTIONS, SAMPLE, VCOCO, Hoicli, parsed, records_of, refusal

DATASETS = {
    "hico": ("--gt", GT, PREDICTIONS),
    "vcoco": ("--dataset", "vcoco", "--gt", VCOCO / "ground_truth.jsonl", VCOCO / "predictions.jsonl"),
    "swig": ("--dataset", "swig", "--gt", FIXTURES / "swig/gt.jsonl", FIXTURES / "swig/predictions.jsonl"),
}
GRID = ("--nms", "0.1,0.5", "--top-k", "1,2,4")
Row = dict[str, Any]


def crowded(folder: Path) -> tuple[object, ...]:
    """The fixtures' images with each prediction again, a few pixels off and worse: pair NMS and the best triplets of an
    image make a difference."""
    chance = random.Random(7)
    lines = []
    for line in PREDICTIONS.read_text().splitlines():
        record = json.loads(line)
        boxes = len(record["boxes"])
        for shift in (3, 9):
            record["boxes"] += [[side + shift for side in box] for box in record["boxes"][:boxes]]
            record["labels"] += record["labels"][:boxes]
        for hoi in list(record["hois"]):
            for copy in (1, 2):
                again = {key: hoi[key] + copy * boxes for key in ("subject", "object") if hoi[key] is not None}
                record["hois"].append({**hoi, **again, "score": chance.random()})
        lines.append(json.dumps(record) + "\n")
    (folder / "crowded.jsonl").write_text("".join(lines))
    return "--gt", GT, folder / "crowded.jsonl"


@pytest.fixture(
    params=[*(pytest.param(name, marks=() if name == "hico" else pytest.mark.long) for name in DATASETS), "crowded"]
)
def given(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[object, ...]:
    """The words that name a dataset, its ground truth and predictions."""
    return crowded(tmp_path) if request.param == "crowded" else DATASETS[request.param]


def key(row: Row) -> tuple[str, str]:
    return row["signature"], row["subset"]


def values(rows: list[Row]) -> dict[tuple[str, str], float]:
    return {key(row): row["value"] for row in rows if row["metric"] == "mAP" and row["value"] is not None}


def by_setting(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["protocol"], row["tags"]["options"]), []).append(row)
    return found


def test_every_setting_has_the_values_and_signatures_of_eval(hoicli: Hoicli, given: tuple[object, ...]) -> None:
    found = records_of(hoicli("claim", *GRID, "--top", "all", *given, "12.3"))
    protocols = "--protocol", ",".join(dict.fromkeys(row["protocol"] for row in found))
    if given[0] == "--gt":  # HICO-DET
        assert {"hico", "gen-vlkt", "ggnet", "ggnet-ko"} <= set(protocols[1].split(","))
    expected: dict[tuple[str, str], float] = {}
    options = {row["tags"]["options"] for row in found}
    assert len(options) > 6
    for words in options:
        expected |= values(parsed(hoicli("eval", *protocols, *words.split(), *given).out))
    assert values(found).items() <= expected.items()
    for one in ("", "--nms 0.5", "--top-k 2", "--top-k 1 --nms 0.1"):  # and none is missing
        rows = values([row for row in found if row["tags"]["options"] == one])
        assert rows == values(parsed(hoicli("eval", *protocols, *one.split(), *given).out))


def planted(rows: list[Row]) -> Iterator[tuple[tuple[str, str], str]]:
    """Of each setting, (protocol, options) and the line that a paper would print."""
    for setting, of in by_setting(rows).items():
        yield setting, "/".join(f"{row['subset']}={row['value']:.2f}" for row in of)


def test_what_eval_prints_leads_back_to_its_setting(hoicli: Hoicli, given: tuple[object, ...], tmp_path: Path) -> None:
    every = list(planted(parsed(hoicli("claim", *GRID, "--top", "all", *given, "12.3").out)))
    for setting, numbers in random.Random(3).sample(every, 8):
        done = hoicli("claim", *GRID, "--top", 0, *given, numbers)
        found = by_setting(parsed(done.out))
        assert setting in found
        for (protocol, options), rows in found.items():
            assert {row["fits"] for row in rows} <= {"rounded", "cut off"}
            printed = values(parsed(hoicli("eval", "--protocol", protocol, *options.split(), *given).out))
            for row in rows:
                assert abs(printed[key(row)] - row["claimed"]) < (0.00500001 if row["fits"] == "rounded" else 0.01)


@pytest.mark.parametrize(("numbers", "way"), [
    ({76.1904: "76.19", 100.0: "100", 74.35897: "74.36"}, "rounded"),
    ({76.1904: "76.19", 74.35897: "74.35"}, "cut off"), ({76.1904: "76.20"}, ""), ({76.1904: "76"}, "rounded"),
    ({76.125: "76.13"}, "rounded half up"), ({76.125: "76.12", 50.126: "50.13"}, "rounded half to even"),
    ({76.125: "76.12", 50.126: "50.12"}, "cut off"), ({76.135: "76.14"}, "rounded"),
    ({100 * 0.28499999999999998: "28.5"}, "rounded"), ({100 * 0.57 + 1e-13: "57.0"}, "rounded"),
    ({56.99999999999999: "57.00"}, "rounded"),
])  # fmt: skip
def test_how_numbers_are_printed(numbers: dict[float, str], way: str) -> None:
    assert rounding((value, Decimal(text)) for value, text in numbers.items()) == way


def test_what_is_said(hoicli: Hoicli, tmp_path: Path) -> None:
    """One setting that fits, several that do not differ, none; the published line; one number alone."""

    def said(*words: object) -> str:
        done = hoicli("claim", *GRID, *DATASETS["hico"], *words)
        assert done.code == 0, done.err
        return done.err

    assert "qpic gives 76.19/100/74.36; so do 11 more: nothing in this dump tells them apart" in said("76.19/100/74.36")
    assert "diag gives 74.36/100/72.22; so do 17 more" in said("74.36/100/72.22")
    assert "none of the " in said("31.66/25.94/33.36")
    assert "published with these numbers: UPT (R50), upt (fredzzhang/upt README.md" in said("31.66/25.94/33.36")
    assert "(rare) gives 100.0; " in said("100.0")
    assert "a single number often fits by chance" in said("100.0")
    assert "(full) gives full=76.2; " in said("full=76.2")
    crowd = hoicli("claim", *crowded(tmp_path), "2.0").err
    assert " settings tried give 2.0: " in crowd
    assert "digits that are not printed tell them apart" in crowd
    split = hoicli("claim", *DATASETS["hico"], "--split", "rf-uc", "unseen=87.5/full=76.2")
    assert {row["subset"] for row in parsed(split.out)} == {"unseen", "full"}
    assert "split:rare_first" in parsed(split.out)[0]["signature"]


def test_what_qahoi_s_code_prints_leads_to_its_settings(hoicli: Hoicli) -> None:
    """Both settings of cjw2021/QAHOI 7eb19c5 datasets/hico_eval.py with its pair NMS on the sample: the means, over the
    classes with ground truth, of the APs that its `eval_hoi` gives."""
    files = ("--gt", SAMPLE / "gt.jsonl.gz", SAMPLE / "ours.jsonl.gz")
    for numbers, protocol in (("37.004/34.884/37.527", "ggnet"), ("38.411/37.310/38.683", "ggnet-ko")):
        rows = parsed(hoicli("claim", "--nms", "0.5,0.5/1/1", "--top-k", "50", "--top", 1, *files, numbers).out)
        assert {(row["protocol"], row["tags"]["options"]) for row in rows} == {(protocol, "--nms 0.5/1/1")}
        assert all(row["fits"] == "rounded" for row in rows)


def test_a_table_has_a_line_a_setting(hoicli: Hoicli) -> None:
    words = ("--protocol", "all", "--format", "table", "--top", 3, "--nms", 0.7, "76.19/100/74.36")
    done = hoicli("claim", *DATASETS["hico"], *words)
    heads, *lines = done.out.splitlines()[2:]
    assert heads.split("  ")[0] == "fits"
    assert heads.split()[-3:] == ["full", "rare", "non_rare"]
    assert [line.split()[0] for line in lines] == ["rounded", "rounded", "no"]


@pytest.mark.parametrize(("text", "problem"), [
    ("46,06", "is no number as papers print it"), ("preds.jsonl", "is no number"), ("460.6", "is no number"),
    ("-1", "is no number"), ("1e1", "is no number"), ("46.06//43", "is no number"), ("", "is no number"),
    ("=46", "is no number"), ("full=46/43", "name the subset of each number"), ("full=46/full=46", "each once"),
    ("0.4606/0.4372", "these are fractions"),
])  # fmt: skip
def test_numbers_that_are_none(text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        Claim.parse(text)


@pytest.mark.parametrize(("words", "problem"), [
    ((*DATASETS["hico"], "1/2/3/4"), "no protocol has these subsets (hico: full, rare, non_rare; "),
    ((*DATASETS["hico"], "unseen=3"), "no protocol has these subsets"),
    ((*DATASETS["hico"][:2], PREDICTIONS), "claim: give the numbers after the predictions"),
    ((PREDICTIONS, "3"), "claim: give the ground truth with --gt FILE"),
    ((*DATASETS["hico"], "3", "--nms", "2"), "--nms 2: the threshold is an overlap, between 0 and 1"),
    ((*DATASETS["hico"], "3", "--top-k", "x"), "--top-k x: 'x' is no whole number"),
    ((*DATASETS["hico"], "3", "--top-k", "0"), "--top-k 0: '0' is no whole number of at least 1"),
    ((*DATASETS["hico"], "3", "--top-k", "1.5"), "--top-k 1.5: '1.5' is no whole number of at least 1"),
])  # fmt: skip
def test_calls_that_are_wrong(hoicli: Hoicli, words: tuple[object, ...], problem: str) -> None:
    assert problem in refusal(hoicli("claim", *words), 2)


def test_a_subset_of_which_nothing_is_annotated(hoicli: Hoicli, tmp_path: Path) -> None:
    """qpic averages classes with ground truth; and one threshold twice is one."""
    (tmp_path / "gt.jsonl").write_text(GT.read_text().splitlines(keepends=True)[0])
    (tmp_path / "preds.jsonl").write_text(PREDICTIONS.read_text().splitlines(keepends=True)[0])
    files = ("--gt", tmp_path / "gt.jsonl", "--protocol", "qpic", tmp_path / "preds.jsonl")
    assert "no class of these subsets is annotated" in refusal(hoicli("claim", *files, "rare=3"))
    found = parsed(hoicli("claim", *files, "--nms", "0.5,0.50", "--top", "all", "full=3").out)
    assert len({row["tags"]["options"] for row in found}) == len(found) == 4
