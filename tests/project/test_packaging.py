"""What is installed is what is here: the wheel carries the schemas, the data and the type marker, and no tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hoicli.commands.doctor import kinds, schema_text
from hoicli.explorer.content import SCRIPTS
from hoicli.version import __version__
from hoicli.vocabulary.datasets import DATASETS
from tests.support.project import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_release_is_named_once() -> None:
    """The citation and the changelog's topmost release name the version that is here."""
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    topmost = re.search(r"^## (?!Unreleased\n)(\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert topmost is not None
    assert topmost[1] == __version__


@pytest.mark.long
def test_a_second_build_has_the_same_bytes(tmp_path: Path) -> None:
    """Of a copy whose files are younger and that other people may write."""
    built = []
    for number, name in enumerate(("one", "two")):
        folder = tmp_path / name
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "dist", "*-output")
        shutil.copytree(ROOT, folder, ignore=ignored)
        for path in folder.rglob("*.py"):
            path.chmod(0o644 | number * 0o020)
            os.utime(path, (10**9 * (number + 1),) * 2)
        subprocess.run([sys.executable, "-m", "hatchling", "build"], cwd=folder, check=True, capture_output=True)
        built.append({path.name: path.read_bytes() for path in (folder / "dist").iterdir()})
    assert len(built[0]) == 2
    assert built[0] == built[1]


def test_the_wheel_is_complete(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for kind in kinds():
            assert archive.read(f"hoicli/formats/{kind}.schema.json").decode() == schema_text(kind)
    vocabularies = {f"hoicli/vocabulary/{name}.json" for name in ("coco", *DATASETS)}
    wordnet = {
        f"hoicli/wordnet/data/{name}"
        for name in ("princeton/data.noun", "princeton/lexnames", "graph.npz", "senses.json")
    }
    assert {
        "hoicli/py.typed",
        "hoicli/data.sha256",
        "hoicli/wordnet/data/WORDNET-LICENSE",
        *(f"hoicli/explorer/page/{name}" for name in ("index.html", "page.css", *(f"{name}.js" for name in SCRIPTS))),
        *vocabularies,
        *wordnet,
    } <= names
    assert not any(name.startswith(("tests", "fixtures")) for name in names)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["doctor", "--schema", "match"], "match record"),
        (["vocab", "--list", "splits"], "rare_first"),
        (["vocab", "--senses", "ride horse"], "horse.n.01"),
    ],
)
def test_the_wheel_runs_by_itself(wheel: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    """Unpacked away from the checkout, the package finds its schemas and vocabularies."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from hoicli.cli import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, check=True, text=True
    )
    assert words in process.stdout
