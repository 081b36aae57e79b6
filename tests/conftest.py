"""What the tests share: the fixtures, the published material when it is there, and a way to run the command."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hoicli.cli import run
from hoicli.converters.named import path_of
from tests.support.project import NAMED, NO_ANNOTATIONS, NO_GOLDEN, SHARED, THERE, Hoicli, Result

STARTED = time.monotonic()
KEPT = path_of("hico:test")
"""HICO-DET's test annotations, if who runs the tests has fetched them: each test has a folder of its own."""

# No test may fail because the machine is busy; CI tries the same examples every time, everyone else new ones. `make
# test-all` asks for the profile `long`.
for name, examples in (("quick", 25), ("long", 100)):
    settings.register_profile(
        name,
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        derandomize="CI" in os.environ,
    )
settings.load_profile("quick")


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


@pytest.fixture(scope="session")
def hico_test(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """HICO-DET's test annotations as records, or the test is skipped."""
    published = SHARED / "data/hico-det/instances_test2015.json"
    if not THERE or not published.is_file():
        if not KEPT.is_file():
            pytest.skip(NO_ANNOTATIONS)
        return KEPT
    path = tmp_path_factory.mktemp("hico") / "gt.jsonl"
    assert run(["convert", str(published), "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def hico_500(hico_test: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first 500 of them, which the released evaluators' numbers are of."""
    path = tmp_path_factory.mktemp("hico") / "first.jsonl"
    path.write_text("".join(hico_test.read_text().splitlines(keepends=True)[:500]))
    return path


@pytest.fixture(scope="session")
def vcoco_600(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(ground truth, predictions) of the 600 images that the released evaluator's numbers are of."""
    folder, source = tmp_path_factory.mktemp("vcoco"), shared / "golden/vcoco-600"
    files = {"gt": ("vcoco.json.gz", "instances_coco.json.gz", "ids.txt"), "preds": ("predictions.json.gz",)}
    for target, names in files.items():
        paths = [str(source / name) for name in names]
        assert run(["convert", "--dataset", "vcoco", *paths, "-o", str(folder / f"{target}.jsonl")]) == 0
    return folder / "gt.jsonl", folder / "preds.jsonl"


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
    "project/test_readme.py", "hostile/test_writers.py", "hostile/test_readers.py", "wordnet/test_lexicon.py",
    "io/test_scale.py", "wordnet/test_lexical.py", "corruption/", "project/test_recipes.py", "commands/test_help.py",
    "io/test_signals.py", "evaluation/", "diagnosis/",
)  # fmt: skip
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
    reasons = [report.longrepr[2] for report in terminalreporter.stats.get("skipped", [])]
    count = sum(NO_GOLDEN in reason or NO_ANNOTATIONS in reason for reason in reasons)
    if count:
        minutes, seconds = divmod(round(time.monotonic() - STARTED), 60)
        terminalreporter.write_line(
            f"{count} parity tests did not run: hoicli data fetch hico:test gets HICO-DET's annotations; the released "
            "evaluators' numbers no command fetches (whoever has them: HOICLI_SHARED=FOLDER make test); the others "
            f"took {minutes} min {seconds} s"
        )
