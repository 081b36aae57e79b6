"""The table of oracles: what its rows declare is complete, and signs the rows of an oracle."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hoicli.errors import DeclarationError
from hoicli.records import oracles
from hoicli.records.oracles import ORACLES
from hoicli.records.result_rows import SIGNATURE_KEYS, result_row
from tests.support.project import ROOT

ROW = {"subset": "full", "value": 31.2, "n": 600, "unit": "%", "protocol": "hico", "tags": {}}
SIGNED = {**ROW, "signature": "protocol:hico|data:hico|gt:0000abcd|version:1.0.0"}


def test_the_settings_of_an_oracle_sign_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = replace(ORACLES["missed_gt"], settings={"minscore": 0.05})
    monkeypatch.setitem(ORACLES, "missed_gt", changed)
    signature = "protocol:hico|data:hico|gt:0000abcd|minscore:0.05|version:1.0.0"
    for already in (SIGNED["signature"], signature):  # as progressive rows have those of all oracles
        row = result_row("mAP", oracle="missed_gt", **{**SIGNED, "signature": already})
        assert row["signature"] == signature
    assert result_row("mAP", oracle="duplicate", **SIGNED)["signature"] == SIGNED["signature"]


def test_every_setting_of_an_oracle_is_one_of_signatures() -> None:
    unknown = {name: [key for key in row.settings if key not in SIGNATURE_KEYS] for name, row in ORACLES.items()}
    unknown = {name: keys for name, keys in unknown.items() if keys}
    assert not unknown, f"{unknown}: add the settings to SIGNATURE_KEYS of hoicli/records/result_rows.py"


@pytest.mark.parametrize(
    ("old", "new"),
    [("turn=5", "turn=None"), ("turn=5", "turn=4"), ("turn=5", "turn=9"), ('"All FN")', '"All FN", turn=8)')],
)
def test_a_wrong_turn_stops_the_import(tmp_path: Path, old: str, new: str) -> None:
    source = Path(oracles.__file__).read_text()
    assert old in source
    (tmp_path / "changed.py").write_text(source.replace(old, new))
    done = subprocess.run(
        [sys.executable, "changed.py"], cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert DeclarationError.__name__ in done.stderr
    assert "give a `turn` only to an oracle that repairs one error type" in done.stderr
