"""What results must not depend on, and what they do depend on: ids, keys and numbers at the edge of what JSON can say.

docs/tried.md says the same in words.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.project import GT, ROOT, Hoicli, Result, parsed, saved

TRUTH = '{"image_id": %s, "boxes": [[0, 0, 9, 9], [5, 5, 20, 20]], "labels": ["person", "bench"], "hois": ['
TRUTH += '{"subject": 0, "object": 1, "verb": "sit_on"}]}'
SCORED = TRUTH.replace('"sit_on"', '"sit_on", "score": 0.5')


def evaluated(hoicli: Hoicli, folder: Path, truth: list[str], predictions: list[str], *options: str) -> Result:
    gt, preds = folder / "gt.jsonl", folder / "p.jsonl"
    gt.write_text("\n".join(truth))
    preds.write_text("\n".join(predictions))
    return hoicli("eval", "--protocol", "hico", "--format", "jsonl", "--gt", gt, *options, preds)


def full(result: Result) -> float:
    assert result.code == 0, result.err
    value: float = next(row["value"] for row in parsed(result.out) if row["subset"] == "full")
    return round(value * 600)  # one class of 600 has ground truth


@pytest.mark.parametrize("image_id", ["7", '"7"', "-1", "0", "18446744073709551615", "-9223372036854775808",
                                      '"\\u0000"', '"a\\nb"', '"\\ud83d\\ude00"'])  # fmt: skip
def test_ids_that_are_taken(hoicli: Hoicli, tmp_path: Path, image_id: str) -> None:
    """Any string with a character to see, and any integer of 64 bits."""
    assert full(evaluated(hoicli, tmp_path, [TRUTH % image_id], [SCORED % image_id])) == 100


@pytest.mark.parametrize(
    "image_id", ["1.0", "1e3", "true", "null", "[1]", "{}", "18446744073709551616", "1" * 40, "-0.0", '""', '" "']
)
def test_ids_that_are_refused(hoicli: Hoicli, tmp_path: Path, image_id: str) -> None:
    """A float is no id: 1.0 is 1 to some writers and not to others, and an integer beyond 64 bits becomes one."""
    result = evaluated(hoicli, tmp_path, [TRUTH % image_id], [SCORED % "1"])
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "gt.jsonl:1: image_id: " in result.err


def test_a_number_and_its_text_are_one_image(hoicli: Hoicli, tmp_path: Path) -> None:
    assert full(evaluated(hoicli, tmp_path, [TRUTH % "7"], [SCORED % '"7"'])) == 100
    twice = evaluated(hoicli, tmp_path, [TRUTH % "7"], [SCORED % '"7"', SCORED % "7"])
    assert "p.jsonl:2: image_id: image '7' is at " in twice.err
    # but "07" is another, and so is " 7"
    assert "is not in the ground truth" in evaluated(hoicli, tmp_path, [TRUTH % "7"], [SCORED % '"07"']).err


def test_normal_forms_are_different_images(hoicli: Hoicli, tmp_path: Path) -> None:
    """Ids are compared as they are, character by character: an accent of its own makes another id, and is not passed
    over in silence."""
    composed, decomposed = '"caf\u00e9"', '"cafe\u0301"'
    result = evaluated(hoicli, tmp_path, [TRUTH % composed], [SCORED % decomposed])
    assert result.code == 1
    assert "'caf\u00e9' is in the ground truth in Unicode's form NFC" in result.err.replace("e\u0301", "\u00e9")
    assert "cafe\\u0301 and caf\\xe9" in result.err
    both = evaluated(hoicli, tmp_path, [TRUTH % composed, TRUTH % decomposed], [SCORED % composed, SCORED % decomposed])
    assert full(both) == 100


@pytest.mark.parametrize("command", ["eval", "match", "pairstats", "diagnose", "convert", "mask"])
def test_a_key_that_is_there_twice_is_refused(hoicli: Hoicli, tmp_path: Path, command: str) -> None:
    """Of two values the last won. One record is looked at by every command; `validate` looks at all."""
    gt, doubled = tmp_path / "gt.jsonl", tmp_path / "doubled.jsonl"
    gt.write_text(TRUTH % 1)
    doubled.write_text((SCORED % 1).replace('"score": 0.5', '"score": 0.5, "score": 0.25'))
    words = [command] if command in ("convert", "mask") else [command, "--gt", gt]
    result = hoicli(*words, doubled)
    assert (result.code, "doubled.jsonl:1: the key 'score' occurs twice" in result.err) == (1, True)


def test_minus_zero_is_zero(hoicli: Hoicli, tmp_path: Path) -> None:
    """Of scores, which tie with those of 0.0, and of coordinates."""
    truth = [TRUTH % number for number in range(6)]
    values = []
    for zeros in (["0.0"] * 6, ["-0.0"] * 6, ["0.0", "-0.0"] * 3, ["-0.0", "0.0", "0"] * 2):
        verbs = ["lie_on", "sit_on"] * 3
        predictions = [(SCORED % at).replace("0.5", zero).replace("sit_on", verbs[at]) for at, zero in enumerate(zeros)]
        values.append(evaluated(hoicli, tmp_path, truth, predictions).out)
        random.Random(1).shuffle(predictions)
        values.append(evaluated(hoicli, tmp_path, truth, predictions).out)
        negative = [line.replace("[[0, 0,", "[[-0.0, -0,") for line in predictions]
        values.append(evaluated(hoicli, tmp_path, truth, negative).out)
    assert len(set(values)) == 1


@pytest.mark.parametrize("number", ["1e308", "-1e308", "5e-324", "9007199254740993", "18446744073709551615", "1e-400"])
def test_numbers_at_the_edge(hoicli: Hoicli, tmp_path: Path, number: str) -> None:
    """What a double can hold is a score and a coordinate, without a warning."""
    end = 0 if float(number) <= 0 else 2  # x1 or x2, so that the box is not inverted
    box = ["0", "0", "9", "9"]
    box[end] = number
    moved = (SCORED % 1).replace("[[0, 0, 9, 9]", f"[[{', '.join(box)}]")
    for line in ((SCORED % 1).replace("0.5", number), moved):
        result = evaluated(hoicli, tmp_path, [TRUTH % 1], [line])
        assert result.code == 0
        assert all(line.startswith("hoicli: ") for line in result.err.splitlines())


@pytest.mark.parametrize(
    "number", ["1e309", "-1e999", "1" * 400, "NaN", "Infinity", "-Infinity", "1_0", "0x1", "+1", "01"]
)
def test_numbers_beyond_it(hoicli: Hoicli, tmp_path: Path, number: str) -> None:
    for line in ((SCORED % 1).replace("0.5", number), (SCORED % 1).replace("[[0,", f"[[{number},")):
        result = evaluated(hoicli, tmp_path, [TRUTH % 1], [line])
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        assert result.err.startswith(f"{tmp_path / 'p.jsonl'}:1: ")


def test_blank_lines_other_line_ends_and_a_byte_order_mark(hoicli: Hoicli, tmp_path: Path) -> None:
    """Blank lines count as lines and hold nothing; a carriage return is a blank of JSON; a BOM is not there."""
    expected = evaluated(hoicli, tmp_path, [TRUTH % 1, TRUTH % 2], [SCORED % 1, SCORED % 2]).out
    blank = ["", TRUTH % 1, " \t\r", TRUTH % 2 + "\r"], [SCORED % 1 + "\r", "\r", SCORED % 2]
    assert evaluated(hoicli, tmp_path, *blank).out == expected
    odd = evaluated(hoicli, tmp_path, [TRUTH % 1], ["", SCORED % 1, "\r", "{}"])
    assert "p.jsonl:4: image_id: missing" in odd.err
    inside = (SCORED % 1).replace(", ", ",\r ")
    paths = saved(tmp_path / "r.jsonl", inside), saved(tmp_path / "s.jsonl", SCORED % 1)
    assert len({hoicli("convert", path).out for path in paths}) == 1
    truth = ["\ufeff" + TRUTH % 1, "\ufeff", TRUTH % 2]
    marked = evaluated(hoicli, tmp_path, truth, [SCORED % 1, "\ufeff" + SCORED % 2])
    assert marked.out == expected


def test_what_a_file_puts_into_a_message_is_shown_and_not_obeyed(hoicli: Hoicli, tmp_path: Path) -> None:
    """No escape sequence reaches the terminal, a message stays one line, and a megabyte is cut to a readable length."""
    for name in ("\x1b]0;title\x07\x1b[2J", "a\nb\r\nc", "\u202e\u2066", "x" * 1_000_000, "\x9b31m"):
        record: dict[str, Any] = json.loads(SCORED % 1)
        record["labels"][1] = record["image_id"] = record["hois"][0]["verb"] = record[name] = name
        path = saved(tmp_path / "p.jsonl", json.dumps(record) + "\n")
        for words in (["eval", "--gt", GT, path], ["convert", path], ["agree", path], ["robust", path]):
            err = hoicli(*words).err
            assert err.endswith("\n")
            assert err[:-1].isprintable()
            assert len(err) < 2000


@pytest.mark.long
def test_options_in_pairs() -> None:
    """A share of the pairs of all commands' options; `python -m tests.hostile.combinations` tries all."""
    call = [sys.executable, "-m", "tests.hostile.combinations", "--share", "10"]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
