"""What pytest does differently for `make mutants` (`-p tests.mutants.plugin`), told by environment variables:

MUTANTS_RECORD=FILE  write which tests take how long and run which lines of hoicli/, as `touched.Touched` reads it
MUTANTS_TESTS=FILE   run only the tests listed there as {name: seconds}, in that order; one that takes very much longer
                     ends the process
MUTANTS_PIPES=R,W    collect the tests once; then, for each [module file, source, changed source, {name: seconds}] that
                     comes through pipe R, run those tests in a fork whose functions are the changed ones, up to the
                     first that fails, and answer through pipe W with [exit code, that test]
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import json
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

import coverage
import pytest
from hypothesis import Phase, settings

# The same examples every time; one that fails is enough, and need not be the smallest.
settings.register_profile("mutants", deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))

PATIENCE = 20
"""A test that takes this many times as long as it does, and so many seconds more, hangs."""


class Recorder:
    """Writes what each test runs."""

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
    """Runs the listed tests only."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = chosen(items, self._seconds)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        with patience(self._seconds[item.nodeid]):
            yield


def chosen(items: list[pytest.Item], names: dict[str, float]) -> list[pytest.Item]:
    """The tests of some names, in their order."""
    by_name = {item.nodeid: item for item in items}
    return [by_name[name] for name in names if name in by_name]


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """Ends the process if a test hangs that takes so many seconds."""
    signal.alarm(int(PATIENCE * (seconds + 1)))
    yield
    signal.alarm(0)


class Server:
    """Tests changed sources, each in a fork of the process that has collected the tests."""

    def __init__(self, requests: int, answers: int) -> None:
        self._requests, self._answers = os.fdopen(requests, "r"), os.fdopen(answers, "w")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        print(file=self._answers, flush=True)
        for request in self._requests:
            file, source, changed, names = json.loads(request)
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                with contextlib.suppress(BaseException):
                    os.setsid()
                    swap(file, source, changed)
                    os.write(writing, self._run(session, names).encode())
                    os._exit(0)
                os._exit(1)
            os.close(writing)
            status = os.waitpid(child, 0)[1]
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # its children, too
            with os.fdopen(reading) as pipe:
                answer = [os.waitstatus_to_exitcode(status), pipe.read()]
            print(json.dumps(answer), file=self._answers, flush=True)
        return True

    def _run(self, session: pytest.Session, names: dict[str, float]) -> str:
        """The first test that fails, or nothing."""
        items = chosen(session.items, names)
        for item, after in zip(items, [*items[1:], None], strict=True):
            with patience(names[item.nodeid]):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.testsfailed:
                return item.nodeid
        return ""


def swap(file: str, source: str, changed: str) -> None:
    """Give the functions of a module the code of a changed source, and forget what they have cached. One that is not
    imported yet will be from its file."""
    if all(getattr(module, "__file__", None) != file for module in list(sys.modules.values())):
        return
    old, new = (functions(compile(text, file, "exec", dont_inherit=True)) for text in (source, changed))
    code = {before: after for before, after in zip(old, new, strict=True) if before != after}
    swapped = 0
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__code__ in code and found.__code__.co_filename == file:
            found.__code__ = code[found.__code__]
            swapped += 1
        elif isinstance(found, functools._lru_cache_wrapper) and inspect.getsourcefile(found.__wrapped__) == file:
            found.cache_clear()
    if not swapped:
        raise LookupError(f"{file}: no function was changed")


def functions(code: CodeType) -> Iterator[CodeType]:
    """The code of a module's functions and methods, without those in functions."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            if part.co_flags & inspect.CO_NEWLOCALS:
                yield part
            else:
                yield from functions(part)


def pytest_configure(config: pytest.Config) -> None:
    """Register what the environment asks for."""
    if "MUTANTS_RECORD" in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ["MUTANTS_RECORD"])))
    if "MUTANTS_TESTS" in os.environ:
        config.pluginmanager.register(Chosen(json.loads(Path(os.environ["MUTANTS_TESTS"]).read_text("utf-8"))))
    if "MUTANTS_PIPES" in os.environ:
        config.pluginmanager.register(Server(*map(int, os.environ["MUTANTS_PIPES"].split(","))))
