"""What macOS and Windows lack or forbid is taken away from Python here: every kind of command gives the same bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import FIXTURES, PATIENCE

WITHOUT = """
import multiprocessing, os, signal, sys, sysconfig
sysconfig.get_config_vars()  # of this system
# before the package is imported: no forks, no locks or limits, no reading at a place, no groups, no SIGHUP
for owner, names in {os: ("preadv", "sched_getaffinity", "chown", "fork"), signal: ("SIGHUP",)}.items():
    for name in names:
        delattr(owner, name)
sys.modules["fcntl"] = sys.modules["resource"] = None
multiprocessing.set_start_method("spawn", force=True)  # workers run this file, too
sys.platform = "another"
"""
RUN = "from hoicli.__main__ import main\nif __name__ == '__main__': main()\n"

GT, BASELINE, OURS = (str(FIXTURES / f"sample/{name}.jsonl.gz") for name in ("gt", "baseline", "ours"))
COMMANDS: dict[str, tuple[str, ...]] = {
    "eval": ("eval", "--gt", GT, "--bootstrap", "20", "-"),
    "match": ("match", "--gt", GT, "-"),
    "diagnose": ("diagnose", "--gt", GT, "-"),
    "compare": ("compare", "--gt", GT, "--bootstrap", "20", BASELINE, "-"),
    "validate": ("validate", "--gt", GT, "-"),
    "convert": ("convert", str(FIXTURES / "sample/results.json.gz"), "-o", "OUT"),
    "shoe-sim": (
        "shoe-sim", "--backend", "wordnet:wup", "--gt", str(FIXTURES / "shoe/gt.jsonl"),
        str(FIXTURES / "shoe/predictions.jsonl"), "-o", "OUT",
    ),
    "corrupt": (
        "corrupt", "--images", str(FIXTURES / "sample/pictures"), "--save-images", "PICTURES", "--corruption",
        "jpeg,elastic", "--severity", "3", "--jobs", "2", str(FIXTURES / "sample/pictures/sample_0001.png"),
        str(FIXTURES / "sample/pictures/sample_0002.png"), "-o", "OUT",
    ),
}  # fmt: skip


def run(script: Path, arguments: tuple[str, ...], folder: Path) -> tuple[bytes, bytes, dict[str, bytes]]:
    """(stdout, stderr, the files that it wrote)."""
    folder.mkdir()
    with open(OURS, "rb") as stdin:
        words = [sys.executable, str(script), *arguments]
        done = subprocess.run(words, cwd=folder, stdin=stdin, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    written = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return done.stdout, done.stderr, written


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_the_same_bytes_without_what_linux_has(name: str, tmp_path: Path) -> None:
    here, elsewhere = tmp_path / "here.py", tmp_path / "elsewhere.py"
    here.write_text(RUN)
    elsewhere.write_text(WITHOUT + RUN)
    assert run(elsewhere, COMMANDS[name], tmp_path / "a") == run(here, COMMANDS[name], tmp_path / "b")
