"""The documentation is true: its outputs are real, and every command and option is in it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hoicli.cli import COMMANDS
from hoicli.converters.formats import FORMATS
from hoicli.evaluation.protocols import PROTOCOLS
from tests.support.project import FIXTURES, ROOT, Hoicli
from tests.support.readme import README, commands, rewritten

TEXT = README.read_text()


def test_every_output_is_real() -> None:
    assert rewritten(TEXT) == TEXT, "run `python -m tests.support.readme` and look at the difference"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_section_and_is_run(name: str) -> None:
    assert f"\n### {name}\n" in TEXT
    assert any(f"hoicli {name}" in command for command in commands(TEXT))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_documented(hoicli: Hoicli, name: str) -> None:
    section = TEXT.split(f"\n### {name}\n")[1].split("\n### ")[0].split("\n## ")[0]
    options = set(re.findall(r"(?<=\s)--[a-z-]+", hoicli(name, "--help").out.split("\nExamples:\n")[0]))
    shared = {"--help", "--output", "--on-error", "--format", "--dataset", "--gt", "--allow-uncounted"}
    missing = {option for option in options - shared if f"`{option}" not in section}
    assert not missing
    assert all(f"`{option}" in TEXT for option in shared - {"--help", "--output"})


def test_the_python_example_runs(tmp_path: Path) -> None:
    code = TEXT.split("```python\n")[1].split("```")[0]
    for name, fixture in (("gt.jsonl", "gt.jsonl"), ("preds.jsonl", "predictions.jsonl")):
        (tmp_path / name).write_bytes((FIXTURES / fixture).read_bytes())
    process = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True, check=True)
    assert [line.split()[:2] for line in process.stdout.splitlines()] == [
        ["hico-ko", "full"],
        ["hico-ko", "rare"],
        ["hico-ko", "non_rare"],
    ]


def test_every_protocol_and_format_is_in_it() -> None:
    for name in (*PROTOCOLS, *FORMATS):
        assert re.search(rf"(^|`){name}(`| )", TEXT, re.MULTILINE)


def test_the_changelog_knows_the_version() -> None:
    from hoicli import __version__

    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


PAGES = [["--help"], ["eval", "--help"], ["corrupt", "--help"], ["robust", "--help"]]


def test_nothing_passes_for_rohoi(hoicli: Hoicli) -> None:
    """The paper has no weather and publishes no constants: what is made here is a recipe of ours."""
    pages = {" ".join(page): " ".join(hoicli(*page).out.split()) for page in PAGES}
    makefile = (ROOT / "fixtures/robust/benchmark.mk").read_text()
    everything = {"README": " ".join(TEXT.split()), "benchmark.mk": makefile, **pages}
    for name, text in everything.items():
        for claim in ("The RoHOI benchmark", "RoHOI robustness benchmark", "it is RoHOI", "eather", "published number"):
            assert claim not in text, name
    for name in ("README", "benchmark.mk", "--help", "corrupt --help"):
        assert "RoHOI-style" in everything[name], name
    for name in ("README", "benchmark.mk", "corrupt --help", "robust --help"):
        assert "hoicli-1" in everything[name], name
