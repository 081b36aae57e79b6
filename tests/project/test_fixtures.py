"""The commands give what tests/eight/expected/ says, and the numbers in it are those of the slow evaluator."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hoicli import __version__
from hoicli.vocabulary.datasets import load
from tests.support import reference
from tests.support.forks import put_hoicli
from tests.support.project import EIGHT, PAIR, ROOT, Hoicli
from tests.support.shell import sh

EXPECTED = EIGHT / "expected"


@pytest.mark.parametrize(
    ("arguments", "file_name"),
    [
        (("eval", "--split", "rare_first"), "eval.jsonl"),
        (("eval", "--format", "table"), "eval.txt"),
        (("match", "--protocol", "hico"), "matches.jsonl"),
    ],
)
def test_what_the_commands_give(hoicli: Hoicli, arguments: tuple[str, ...], file_name: str) -> None:
    printed = hoicli(*arguments, *PAIR).out
    assert printed.replace(f"|version:{__version__}", "") == (EXPECTED / file_name).read_text()


@pytest.mark.long
def test_the_demo_runs(tmp_path: Path) -> None:
    """With the extras that `make demo` installs, from the repository's folder, as it does."""
    put_hoicli(tmp_path / ".bin")
    done = sh(f"cd {ROOT} && sh fixtures/demo.sh {tmp_path}", tmp_path)
    assert done.code == 0, done.err
    shown = re.findall(r"^\$ (?:.*\| )?hoicli (\w+)", done.out, re.MULTILINE)
    assert shown == ["convert", "validate", "eval", "compare", "match", "diagnose", "explore", "corrupt", "robust"]
    assert {path.name for path in tmp_path.iterdir()} >= {"errors.png", "robust.png", "explorer", "corrupted.jsonl"}
    records = [json.loads(line) for line in (tmp_path / "corrupted.jsonl").read_text().splitlines()]
    assert all((tmp_path / "corrupted" / record["file_name"]).is_file() for record in records)
    assert (len(records), "median" in done.out) == (2 * 12, True)
    assert "$(VENV)/.demo: EXTRA = plot,images\n" in (ROOT / "Makefile").read_text()


def test_the_numbers_are_right() -> None:
    truth, predictions = (
        [json.loads(line) for line in (EIGHT / name).read_text().splitlines()]
        for name in ("gt.jsonl", "predictions.jsonl")
    )
    hico = load("hico")
    rows = [json.loads(line) for line in (EXPECTED / "eval.jsonl").read_text().splitlines()]
    full = {row["protocol"]: row["value"] for row in rows if (row["metric"], row["subset"]) == ("mAP", "full")}
    for protocol, value in full.items():
        results = reference.evaluate(protocol, truth, predictions, list(hico.interactions))
        if protocol in ("qpic", "diag"):
            results = {pair: result for pair, result in results.items() if result[2]}
        assert value == pytest.approx(100 * sum(ap for ap, _, _ in results.values()) / len(results))
