"""The GitHub action .github/actions/gate: its script, as a workflow runs it, and its inputs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.forks import put_hoicli
from tests.support.project import PATIENCE, ROOT, SAMPLE

ACTION = ROOT / ".github/actions/gate"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("baseline", "predictions", "margin", "code", "verdict"),
    [
        ("baseline", "ours", "0", 0, "better-or-equal"),
        ("ours", "empty", "0.5", 3, "worse"),
        ("ours", "missing", "0", 1, "broken"),
    ],
)
def test_the_gate(tmp_path: Path, baseline: str, predictions: str, margin: str, code: int, verdict: str) -> None:
    put_hoicli(tmp_path / ".bin")
    (tmp_path / "empty.jsonl").write_text('{"image_id": "sample_0001", "boxes": [], "labels": [], "hois": []}\n')
    paths = {"empty": tmp_path / "empty.jsonl", "missing": tmp_path / "missing.jsonl"}
    named = [str(paths.get(name, SAMPLE / f"{name}.jsonl.gz")) for name in (baseline, predictions)]
    environment = {
        **os.environ,
        "PATH": f"{tmp_path / '.bin'}{os.pathsep}{os.environ['PATH']}",
        **dict(zip(("BASELINE", "PREDICTIONS"), named, strict=True)),
        "GT": str(SAMPLE / "gt.jsonl.gz"),
        "MARGIN": margin,
        "OPTIONS": "--bootstrap 100 --seed 1",
        **{name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")},
    }
    command = ["bash", str(ACTION / "gate.sh")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, timeout=PATIENCE)
    assert done.returncode == code, done.stderr
    assert (tmp_path / "GITHUB_OUTPUT").read_text() == f"verdict={verdict}\n"
    assert (tmp_path / "GITHUB_STEP_SUMMARY").exists() == (verdict != "broken")
    if verdict != "broken":
        summary = (tmp_path / "GITHUB_STEP_SUMMARY").read_text()
        assert summary.startswith(f"### hoicli: {verdict}\n\n|")
        assert '"metric":"mAP_diff"' in (tmp_path / "differences.jsonl").read_text()


def test_the_action_gives_the_script_what_it_reads() -> None:
    action, script = ((ACTION / name).read_text() for name in ("action.yml", "gate.sh"))
    given = set(re.findall(r"^        ([A-Z]+): \$\{\{ inputs\.[a-z]+ \}\}$", action, re.MULTILINE))
    assert given == set(re.findall(r"\$\{?([A-Z]+)\b(?!_)", script)) - {"GITHUB"}
    inputs = set(re.findall(r"^  ([a-z]+): \{ description", action, re.MULTILINE))
    assert {name.lower() for name in given} | {"install", "verdict"} == inputs
    assert 'bash "$GITHUB_ACTION_PATH/gate.sh"' in action
