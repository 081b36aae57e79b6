"""Command lines as people type them: a folder with fixtures under everyday names, and `hoicli` on its PATH; and the
commands as typer has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from hoicli.cli import app
from tests.support.forks import put_hoicli
from tests.support.project import EIGHT, FIXTURES, PATIENCE, ROOT, Result

EVERYDAY = {
    "gt.jsonl": "gt.jsonl", "preds.jsonl": "predictions.jsonl", "other.jsonl": "other.jsonl", "images": "images",
    "photo.jpg": "images/HICO_test2015_00000002.jpg", "ratings.jsonl": "agree/ratings.jsonl",
    "ratings.csv": "agree/ratings.csv", "instances_test2015.json": "foreign/instances_test2015.json",
    "results.json": "foreign/results.json", "label_studio.json": "own/label_studio.json",
    "detections_mat": "foreign/detections_mat", "pairs.pkl": "foreign/pairs.pkl",
    "answers.jsonl": "vlm/answers.jsonl", "epochs.jsonl": "robust/epochs.jsonl", "all.jsonl": "robust/rows.jsonl",
}  # fmt: skip
"""Name in the folder -> file of tests/eight or fixtures/."""


def command_of(name: str) -> Any:
    group: Any = typer.main.get_command(app)
    return group.get_command(None, name)


def furnish(folder: Path, files: Mapping[str, str] = EVERYDAY) -> None:
    """Copies of the fixtures, and a `hoicli` in .bin that is this one."""
    for name, source in files.items():
        origin = next(path for path in (EIGHT / source, FIXTURES / source) if path.exists())
        if origin.is_dir():
            shutil.copytree(origin, folder / name)
        else:
            shutil.copy(origin, folder / name)
    put_hoicli(folder / ".bin")


def sh(command: str, folder: Path, shell: str = "sh") -> Result:
    """Run a command line in a furnished folder; a failure anywhere in a pipe is a failure where the shell can tell."""
    path = f"{folder / '.bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    process = subprocess.run(
        [shell, "-c", command], cwd=folder, env=environment, text=True, check=False,
        capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE,
    )  # fmt: skip
    return Result(process.returncode, process.stdout, process.stderr)
