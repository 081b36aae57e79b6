"""tests/plugin, a package that adds one of each, and hoicli's own wheel, installed where nothing else is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from tests.support.project import ROOT, SAMPLE

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `hoicli` of a new environment. What it depends on is taken from this one: nothing is downloaded."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(ROOT / "tests/plugin", folder / "source")
    for source in (ROOT, folder / "source"):
        build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
        subprocess.run(build, cwd=source, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    python = folder / "venv/bin/python"
    install = [
        str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", *map(str, folder.glob("*.whl")),
    ]  # fmt: skip
    subprocess.run(install, check=True)
    (installed,) = (folder / "venv").glob("lib/python*/site-packages")
    (installed / "depends.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    shown = [str(python), "-c", "import hoicli; print(hoicli.__file__)"]
    where = subprocess.run(shown, cwd=folder, check=True, capture_output=True, text=True)
    assert where.stdout.startswith(str(installed))
    return folder / "venv/bin/hoicli"


def said(*words: object, cwd: Path) -> str:
    run = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout + run.stderr


def test_a_protocol(fresh: Path, tmp_path: Path) -> None:
    line = [fresh, "eval", "--gt", SAMPLE / "gt.jsonl.gz", SAMPLE / "ours.jsonl.gz", "--quiet"]
    added = json.loads(said(*line, "--protocol", "hico-75", cwd=tmp_path).splitlines()[0])
    same = json.loads(said(*line, "--protocol", "hico", "--iou", "0.75", cwd=tmp_path).splitlines()[0])
    assert added["value"] == same["value"] > 0
    assert "row:hoicli-example@1.0" in added["signature"]


def test_a_format(fresh: Path, tmp_path: Path) -> None:
    lines = ("sit_on bench 0.5 0 0 9 19 4 9 29 39", "hold cup 0.4 0 0 9 19 1 1 3 3")
    (tmp_path / "dump.txt").write_text("".join(f"HICO_test2015_00000001 {line}\n" for line in lines))
    text = said(fresh, "convert", "--from", "lines", "dump.txt", cwd=tmp_path)
    assert json.loads(text.splitlines()[0])["boxes"] == [[0, 0, 9, 19], [4, 9, 29, 39], [1, 1, 3, 3]]
    assert "as lines of hoicli-example@1.0 (predictions): 1 images" in text


def test_a_corruption(fresh: Path, tmp_path: Path) -> None:
    pixels = np.arange(0, 250, 10, dtype=np.uint8).reshape(5, 5).repeat(3).reshape(5, 5, 3)
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png")
    (tmp_path / "gt.jsonl").write_text(
        '{"image_id":"a","file_name":"a.png","width":5,"height":5,"boxes":[[0,0,2,2],[1,1,4,4]],'
        '"labels":["person","bench"],"hois":[{"subject":0,"object":1,"verb":"sit_on"}]}\n'
    )
    line = ["corrupt", "--images", ".", "--save-images", "out", "--corruption", "haze", "--severity", "5", "gt.jsonl"]
    record = json.loads(said(fresh, *line, cwd=tmp_path).splitlines()[0])
    (made,) = (tmp_path / "out").rglob("*.png")
    np.testing.assert_array_equal(np.asarray(PIL.Image.open(made)), np.rint(pixels * 0.5 + 127.5).astype(np.uint8))
    assert record["recipe"] == "hoicli-1+hoicli-example@1.0"


def test_a_dataset(fresh: Path, tmp_path: Path) -> None:
    rows = said(fresh, "vocab", "site", "--format", "csv", cwd=tmp_path)
    assert [row.split(",")[1:3] for row in rows.splitlines()[1:3]] == [["hold", "hammer"], ["wear", "helmet"]]
