"""Signatures."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from hoicli.errors import DataError, write_number
from hoicli.records.result_rows import settings_of, signature
from tests.support.project import Hoicli


def test_no_value_of_a_signature_is_two() -> None:
    assert settings_of({"signature": signature({"data": "hico", "slice": "own@1/a:b"})})["slice"] == "own@1/a:b"
    with pytest.raises(DataError, match=r"^slice: 'x\|gt:0' would read as two settings in a signature"):
        signature({"data": "hico", "slice": "x|gt:0"})


def test_numbers_of_settings_keep_every_digit() -> None:
    texts = ("0", "1", "0.5", "0.7", "0.05", "1e-05", "0.5000001", "-3.25", "100000", "1234567", "123456.123456789012")
    assert [write_number(float(text)) for text in texts[:-1]] == [*texts[:-1]]
    assert write_number(-0.0) == "0"
    bits = random.Random(0)
    for number in (struct.unpack("d", bits.randbytes(8))[0] for _ in range(1000)):
        assert number != number or float(write_number(number)) == number


@pytest.mark.parametrize(
    ("command", "option", "key", "one", "other"),
    [
        ("eval", "--nms", "nms", "0.7", "0.7000004"),
        ("eval", "--nms", "nms", "0.7/1/0.5", "0.7/1.0000001/0.5"),
        ("eval", "--slice", "slice", "distance:0.5:1", "distance:0.5:1.000000000001"),
        ("audit", "--sure", "audit", "0.2", "0.2000004"),
        ("audit", "--same", "audit", "0.7", "0.7000004"),
        ("pairstats", "--nms-sweep", "pairnms", "0.7", "0.7000004"),
        ("pairstats", "--det-threshold", "det", "0.2", "0.2000004"),
        ("shoe-eval", "--delta", "delta", "0.5", "0.5000001"),
        ("shoe-eval", "--verb-weight", "verb", "0.5", "0.5000001"),
        ("shoe-eval", "--min-similarity", "minsim", "0.5", "0.5000001"),
        ("shoe-eval", "--min-score", "minscore", "0.5", "0.5000001"),
        ("shoe-eval", "--min-rank", "minrank", "0.5", "0.5000001"),
    ],
)
def test_two_settings_are_never_signed_alike(
    command: str, option: str, key: str, one: str, other: str, hoicli: Hoicli, tmp_path: Path
) -> None:
    person, thing = [10, 10, 60, 60], [50, 20, 90, 80]
    truth: dict[str, Any] = {"image_id": "a", "width": 100, "height": 100, "boxes": [person, thing, [51, 20, 90, 80]]}
    truth |= {"labels": ["person", "bicycle", "bicycle"]}
    truth["hois"] = [{"subject": 0, "object": at, "verb": "ride"} for at in (1, 2)]
    found = {**truth, "scores": [0.9, 0.8, 0.7], "hois": [{**hoi, "score": 0.9} for hoi in truth["hois"]]}
    files = {"gt": tmp_path / "gt.jsonl", "found": tmp_path / "found.jsonl"}
    for name, record in (("gt", truth), ("found", found)):
        files[name].write_text(json.dumps(record) + "\n")
    sim = ("--sim", "lexical") if command == "shoe-eval" else ()
    signed = []
    for value in (one, other):
        result = hoicli(command, "--format", "jsonl", *sim, option, value, "--gt", files["gt"], files["found"])
        assert result.code == 0, result.err
        settings = [settings_of(json.loads(line)) for line in result.out.splitlines()]
        signed.append({each[key] for each in settings if key in each})
        assert any(value in text for text in signed[-1])
    assert signed[0] != signed[1]
