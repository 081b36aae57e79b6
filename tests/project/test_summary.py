"""A run of the tests says at its end, before pytest's closing line, how many parity tests it left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.project import ROOT

TESTS = ("tests/evaluation/test_parity.py", "tests/vocabulary/test_datasets.py")


def run(*options: str, shared: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, *TESTS],
        cwd=ROOT, env={**os.environ, "HOICLI_SHARED": shared, "COLUMNS": "80"}, text=True, capture_output=True,
        check=False,
    )  # fmt: skip


@pytest.mark.long
def test_a_run_without_the_golden_numbers_says_so() -> None:
    """As in a clean clone; as `make test` runs it."""
    done = run("-n", "2", "--dist", "loadfile", shared="")
    assert done.returncode == 0, done.stdout
    *_, line, closing = done.stdout.splitlines()
    found = re.match(r"(\d+) parity tests did not run: .*HOICLI_SHARED=FOLDER make test.* took \d+ min \d+ s$", line)
    assert found, line
    assert re.fullmatch(rf"\d+ passed, {found[1]} skipped in .*s", closing)
    assert done.stdout.count("parity") == done.stdout.count("HOICLI_SHARED") == 1


def test_a_folder_that_is_named_and_wrong_is_an_error(tmp_path: Path) -> None:
    done = run(shared=str(tmp_path))
    assert done.returncode == 4
    assert f"HOICLI_SHARED={tmp_path}: there is no folder golden in it" in done.stderr
