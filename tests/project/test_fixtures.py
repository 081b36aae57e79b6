"""The commands give what tests/eight/expected/ says, and the numbers in it are those of the slow evaluator;
fixtures/sample is what its scripts make; and the script of the GitHub action .github/actions/gate."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hoicli
from hoicli import __version__
from hoicli.vocabulary.datasets import load
from tests.support import reference
from tests.support.forks import put_hoicli
from tests.support.project import EIGHT, GT, PAIR, PATIENCE, PREDICTIONS, ROOT, SAMPLE, Hoicli, parsed
from tests.support.shell import sh

EXPECTED = EIGHT / "expected"


@pytest.mark.parametrize(("arguments", "file_name"), [
    (("eval", "--split", "rare_first"), "eval.jsonl"),
    (("eval", "--format", "table"), "eval.txt"),
    (("match", "--protocol", "hico"), "matches.jsonl"),
])  # fmt: skip
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
    truth, predictions = (parsed(path.read_text()) for path in (GT, PREDICTIONS))
    hico = load("hico")
    rows = [json.loads(line) for line in (EXPECTED / "eval.jsonl").read_text().splitlines()]
    full = {row["protocol"]: row["value"] for row in rows if (row["metric"], row["subset"]) == ("mAP", "full")}
    for protocol, value in full.items():
        results = reference.evaluate(protocol, truth, predictions, list(hico.interactions))
        if protocol in ("qpic", "diag"):
            results = {pair: result for pair, result in results.items() if result[2]}
        assert value == pytest.approx(100 * sum(ap for ap, _, _ in results.values()) / len(results))


STREAMS = ("gt.jsonl.gz", "baseline.jsonl.gz", "ours.jsonl.gz")


def text(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode()


@pytest.mark.long
def test_the_scripts_make_it(tmp_path: Path) -> None:
    """To the record and the pixel; how both are compressed may differ between versions of the libraries."""
    subprocess.run([sys.executable, SAMPLE / "make.py", tmp_path], check=True)
    for name in (*STREAMS, "results.json.gz"):
        assert text(tmp_path / name) == text(SAMPLE / name)
    pictures = sorted((SAMPLE / "pictures").iterdir())
    assert [path.name for path in pictures] == [f"sample_{number:04d}.png" for number in range(1, 13)]
    for path in pictures:
        kept, made = (
            np.asarray(Image.open(file).convert("RGB"), int) for file in (path, tmp_path / "pictures" / path.name)
        )
        assert np.abs(kept - made).mean() < 2


def test_it_is_small_and_varied() -> None:
    files = [*SAMPLE.glob("*.gz"), *(SAMPLE / "pictures").iterdir()]
    assert sum(path.stat().st_size for path in files) < 1_500_000
    truth, *models = (parsed(text(SAMPLE / name)) for name in STREAMS)
    classes = Counter((hoi["verb"], image["labels"][hoi["object"]]) for image in truth for hoi in image["hois"])
    hico = load("hico")
    assert (len(truth), {verb for verb, _ in classes}) == (400, set(hico.verbs))
    assert len(classes) == 536
    assert sum(hico.interaction_ids[pair] in hico.groups["rare"] for pair in classes) > 100
    assert max(classes.values()) > 40
    assert all(len(image["hois"]) <= 30 for model in models for image in model)


def test_the_dump_is_ours() -> None:
    """CDN's layout has no place for verb_score and the boxes' scores."""
    ours = parsed(text(SAMPLE / "ours.jsonl.gz"))
    for image in ours:
        image["file_name"] = f"{image['image_id']}.png"
        image.pop("scores")
        for hoi in image["hois"]:
            hoi.pop("verb_score")
    assert list(hoicli.convert(SAMPLE / "results.json.gz")) == ours


@pytest.mark.parametrize(("name", "full"), [("baseline", 30), ("ours", 32)])
def test_what_its_detectors_reach(name: str, full: int) -> None:
    rows = hoicli.evaluate(SAMPLE / "gt.jsonl.gz", SAMPLE / f"{name}.jsonl.gz", protocol="hico").to_dict()
    overall, rare, other = (rows[f"hico/mAP/{subset}"] or 0 for subset in ("full", "rare", "non_rare"))
    assert round(overall) == full
    assert rare < other


ACTION = ROOT / ".github/actions/gate"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("baseline", "predictions", "margin", "code", "verdict"), [
    ("baseline", "ours", "0", 0, "better-or-equal"),
    ("ours", "empty", "0.5", 3, "worse"),
    ("ours", "missing", "0", 1, "broken"),
])  # fmt: skip
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
