"""What the tests share: the fixtures, the published material when it is there, and a way to run the command."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from hoicli.cli import run

# No test may fail because the machine is busy; CI tries the same examples every time, everyone else new ones.
settings.register_profile(
    "hoicli",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize="CI" in os.environ,
)
settings.load_profile("hoicli")

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "fixtures"
SHARED = Path(os.environ.get("HOICLI_SHARED", ROOT.parent / "shared"))
"""Published annotations and golden numbers, which are not part of the repository; tests that need them skip without."""


@dataclass(frozen=True)
class Result:
    """What a command line did."""

    code: int
    out: str
    err: str


Hoicli = Callable[..., Result]


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
    """The folder of published material; skips the test where there is none."""
    if not (SHARED / "golden").is_dir():
        pytest.skip("needs the published evaluators' golden numbers (HOICLI_SHARED)")
    return SHARED
