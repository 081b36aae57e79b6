"""`diagnose --protocol`: types of errors by other rules than diag's, with the mAP that eval gives by them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.project import FIXTURES, PAIR, Hoicli, dumped, parsed, saved

OF_VCOCO = ("--gt", FIXTURES / "vcoco/ground_truth.jsonl", FIXTURES / "vcoco/predictions.jsonl")


def means(found: list[dict[str, Any]]) -> dict[str, tuple[float, str]]:
    return {
        row["subset"]: (row["value"], row["signature"])
        for row in found
        if row["metric"] == "mAP" and row.get("oracle", "none") == "none"
    }


@pytest.mark.parametrize(
    "differs",
    [
        {"threshold": 0.75},
        {"triplets_per_image": 2, "grid": "every"},
        {"inclusive": False, "truth_shift": [0, 0, 0, 0], "images": "all", "strict": True},
    ],
    ids=str,
)
def test_a_protocol_of_a_file(hoicli: Hoicli, tmp_path: Path, differs: dict[str, Any]) -> None:
    path = dumped(tmp_path / "mine.json", {"name": "mine", "like": "diag", **differs})
    diagnosed = hoicli("diagnose", "--protocol", path, *PAIR).out
    assert means(parsed(diagnosed)) == means(parsed(hoicli("eval", "--protocol", path, *PAIR).out))
    matches = tmp_path / "matches.jsonl"
    assert hoicli("match", "--protocol", path, *PAIR, "-o", matches).code == 0
    assert hoicli("diagnose", "--protocol", path, matches).out == diagnosed
    emitted = parsed(hoicli("diagnose", "--protocol", path, "--emit", "predictions", *PAIR).out)
    assert {record["protocol"] for record in emitted} == {"mine"}


def test_scenario_2(hoicli: Hoicli) -> None:
    found = parsed(hoicli("diagnose", "--protocol", "vcoco-s2", *OF_VCOCO).out)
    assert means(found) == means(parsed(hoicli("eval", "--protocol", "vcoco-s2", *OF_VCOCO).out))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--protocol", "qpic"),
            'error types and pairs need the classes and the matching of diag; give a file that is "like": "diag"',
        ),
        (("--protocol", "hico"), "error types and pairs need the classes and the matching of diag"),
        (("--protocol", "hico-image"), "error types and pairs need the classes and the matching of diag"),
        (("--protocol", "vcoco-agent"), "error types and pairs need the classes and the matching of vcoco-s1"),
        (("--protocol", "diag,upt"), "one protocol says what is right; name one"),
        (("--protocol", "none.json"), "none.json: no such file"),
    ],
)
def test_protocols_whose_errors_have_no_types(hoicli: Hoicli, options: tuple[str, ...], said: str) -> None:
    result = hoicli("diagnose", *options, *PAIR)
    assert (result.out, result.err.count("\n")) == ("", 1)
    assert said in result.err


def test_the_released_code_has_one_protocol(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "mine.json", '{"name": "mine", "like": "diag", "threshold": 0.75}')
    result = hoicli("diagnose", "--as-released", "--protocol", path, *PAIR)
    assert (result.code, result.out) == (2, "")
    assert result.err == "hoicli: --as-released: the released code has no other protocol than diag\n"
