"""`hoicli doctor`: true about what is there, named when something is broken, silent about secrets."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hoicli import __version__
from hoicli.commands import doctor
from hoicli.commands.doctor import CHECKSUMS, DATA, DEPENDENCIES, EXTRAS, MISSING, OK
from tests.support.project import ROOT

MODULES = {"opencv-python-headless": "cv2", "pillow": "PIL.Image"}


QUICK = "import sys; sys.modules['matplotlib'] = sys.modules['cv2'] = None"
"""Without the extras that take long to load."""


def run(
    folder: Path, *options: str, code: str = QUICK, **environment: str
) -> tuple[int, dict[str, dict[str, Any]], str, str]:
    """(exit code, rows by check, stdout, stderr) of the command in a process of its own; `code` runs before it."""
    program = f"{code}\nimport sys; from hoicli.cli import run; sys.exit(run(['doctor', *sys.argv[1:]]))"
    process = subprocess.run(
        [sys.executable, "-c", program, *options], cwd=folder, text=True, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip
    rows = [json.loads(line) for line in process.stdout.splitlines() if line.startswith("{")]
    return process.returncode, {row["check"]: row for row in rows}, process.stdout, process.stderr


def test_a_sound_installation_without_network_or_secrets(tmp_path: Path) -> None:
    offline = "import socket\ndef no(*a, **k): raise AssertionError('network')\nsocket.socket.connect = no"
    code, rows, out, err = run(tmp_path, code=offline, OPENAI_API_KEY="sk-secret", HOME="/home/somebody")
    assert (code, err) == (0, "")
    assert {row["status"] for row in rows.values()} <= {OK, MISSING}
    assert all(rows[name]["status"] == OK for name in (*DEPENDENCIES, "data files"))
    assert rows["hoicli"]["value"] == __version__
    assert rows["numpy"]["value"] == __import__("numpy").__version__
    for private in ("sk-secret", "somebody", str(tmp_path)):
        assert private not in out


def test_the_tables_are_those_of_the_package() -> None:
    """What is looked for is what pyproject.toml asks for, extra by extra."""
    tomllib = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    def modules(requirements: list[str]) -> set[str]:
        names = [re.split(r"[^\w.-]", requirement)[0] for requirement in requirements if ";" not in requirement]
        return {MODULES.get(name, name) for name in names}

    assert modules(project["dependencies"]) == set(DEPENDENCIES)
    offered = project["optional-dependencies"].items()
    extras = {name: modules(wanted) for name, wanted in offered if not name.startswith("dev")}
    assert extras == {name: set(of) for name, (of, _) in EXTRAS.items()}


def test_the_checksums_are_those_of_the_data() -> None:
    listed = dict(line.split()[::-1] for line in (DATA / CHECKSUMS).read_text().splitlines())
    there = [path for path in (DATA / "wordnet" / "data").rglob("*") if path.is_file()]
    there += (DATA / "vocabulary").glob("*.json")
    found = {path.relative_to(DATA).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in there}
    assert listed == found, (
        f"cd hoicli && sha256sum $(find wordnet/data -type f | sort) vocabulary/*.json > {CHECKSUMS}"
    )


def test_damaged_data_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in (DATA / CHECKSUMS).read_text().splitlines():
        name = line.split()[1]
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DATA / name, tmp_path / name)
    shutil.copy(DATA / CHECKSUMS, tmp_path)
    monkeypatch.setattr(doctor, "DATA", tmp_path)
    assert doctor.checksums()[1]
    graph = tmp_path / "wordnet" / "data" / "graph.npz"
    data = bytearray(graph.read_bytes())
    data[1000] ^= 1
    graph.write_bytes(data)
    (tmp_path / "vocabulary" / "coco.json").unlink()
    wrong = "wordnet/data/graph.npz", "vocabulary/coco.json"
    problem = "; ".join(f"{name} is missing, or not what was published" for name in wrong)
    assert doctor.checksums() == (problem, False)


@pytest.mark.long
def test_a_missing_dependency_is_named_in_one_line(tmp_path: Path) -> None:
    """Also the one that writes the rows, without which no command runs."""
    code, _, out, err = run(tmp_path, code=f"{QUICK}; sys.modules['scipy'] = None")
    assert code == 1
    assert err.startswith("hoicli doctor: broken: scipy (does not load: ")
    assert err.count("\n") == 1
    assert '"check":"scipy","status":"problem"' in out
    code, _, out, err = run(tmp_path, code=f"{QUICK}; sys.modules['orjson'] = None")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "orjson" in err
