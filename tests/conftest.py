"""What the tests share: the fixtures, the published material when it is there, and a way to run the command."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hoicli.cli import run
from tests.support.project import NAMED, NO_GOLDEN, SHARED, THERE, Hoicli, Result

STARTED = time.monotonic()

# No test may fail because the machine is busy; CI tries the same examples every time, everyone else new ones.
settings.register_profile(
    "hoicli",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize="CI" in os.environ,
)
settings.load_profile("hoicli")


@pytest.fixture
def hoicli(capfdbinary: pytest.CaptureFixture[bytes]) -> Hoicli:
    """Run a command line in this process: hoicli("eval", "--gt", path, ...) -> Result."""

    def call(*arguments: object) -> Result:
        capfdbinary.readouterr()
        code = run([str(argument) for argument in arguments])
        captured = capfdbinary.readouterr()
        return Result(code, captured.out.decode(), captured.err.decode())

    return call


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of published material; skips the test where there is none, which the summary counts."""
    if not THERE:
        pytest.skip(NO_GOLDEN)
    return SHARED


@pytest.fixture(autouse=True)
def _own_annotations(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named ground truth (`hoicli data`) is a test's own, never that of who runs the tests."""
    own = f"{abs(hash(request.node.nodeid)):x}"
    monkeypatch.setenv("HOICLI_DATA", str(tmp_path_factory.getbasetemp() / "annotations" / own))


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_disk() -> Iterator[None]:
    """What runs in this process does not sync, which takes some 10 ms an output. Subprocesses do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


LONGEST = (
    "project/test_readme.py",
    "hostile/test_writers.py",
    "hostile/test_readers.py",
    "wordnet/test_lexicon.py",
    "io/test_scale.py",
    "wordnet/test_lexical.py",
    "corruption/",
    "project/test_recipes.py",
    "commands/test_help.py",
    "io/test_signals.py",
    "evaluation/",
    "diagnosis/",
)
"""What takes longest. Processes that share the suite out by files (make test) begin with it, and end together."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In a process of pytest-xdist, the longest files first."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: next((n for n, name in enumerate(LONGEST) if f"tests/{name}" in item.nodeid), 99))


def pytest_configure() -> None:
    """Who names the folder means it to be used: a wrong name is an error, and no reason to skip."""
    if NAMED and not THERE:
        raise pytest.UsageError(f"HOICLI_SHARED={SHARED}: there is no folder golden in it; mend the path, or unset it")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A line before the closing one: how many parity tests did not run, and what they need."""
    count = sum(NO_GOLDEN in report.longrepr[2] for report in terminalreporter.stats.get("skipped", []))
    if count:
        minutes, seconds = divmod(round(time.monotonic() - STARTED), 60)
        terminalreporter.write_line(
            f"{count} parity tests did not run: they need the released evaluators' numbers, which no command fetches "
            f"(whoever has them: HOICLI_SHARED=FOLDER make test); the others took {minutes} min {seconds} s"
        )
