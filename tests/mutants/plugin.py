"""What pytest does differently for `make mutants` (`-p tests.mutants.plugin`), told by environment variables:

MUTANTS_RECORD=FILE  write which tests take how long and run which lines of hoicli/
MUTANTS_TESTS=FILE   run only the tests listed there as {name: seconds}, in that order; one that takes very much longer
                     ends the process
"""

from __future__ import annotations

import json
import os
import signal
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest
from hypothesis import Phase, settings

# The same examples every time; one that fails is enough, and need not be the smallest.
settings.register_profile("mutants", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))

PATIENCE = 20
"""A test that takes this many times as long as it does, and so many seconds more, hangs."""


class Recorder:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._coverage = coverage.Coverage(data_file=None, source=["hoicli"], config_file=False, messages=False)
        self._seconds: dict[str, float] = {}

    def pytest_sessionstart(self) -> None:
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._coverage.switch_context(item.nodeid)
        yield
        self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.passed:
            self._seconds[report.nodeid] = round(self._seconds.get(report.nodeid, 0) + report.duration, 3)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for file in sorted(data.measured_files()):
            module = Path(file).relative_to(Path.cwd()).as_posix()
            for line, tests in data.contexts_by_lineno(file).items():
                for test in tests:
                    lines[test][module].append(line)
        found = {test: [seconds, lines[test]] for test, seconds in self._seconds.items()}
        self._path.write_text(json.dumps(found), encoding="utf-8")


class Chosen:
    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        by_name = {item.nodeid: item for item in items}
        items[:] = [by_name[name] for name in self._seconds if name in by_name]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        signal.alarm(int(PATIENCE * (self._seconds[item.nodeid] + 1)))
        yield
        signal.alarm(0)


def pytest_configure(config: pytest.Config) -> None:
    if "MUTANTS_RECORD" in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ["MUTANTS_RECORD"])))
    if "MUTANTS_TESTS" in os.environ:
        config.pluginmanager.register(Chosen(json.loads(Path(os.environ["MUTANTS_TESTS"]).read_text("utf-8"))))
