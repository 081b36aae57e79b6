"""What is locked and what the image of fixtures/scale/Dockerfile installs: all that pyproject.toml asks for."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from tests.support.project import ROOT

SCALE = ROOT / "fixtures/scale"
DOCKERFILE = (SCALE / "Dockerfile").read_text()


def test_the_lock_for_development_has_what_is_asked_for() -> None:
    """One or more versions of a package, by the Python that takes it."""
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11 or later")
    requirements = pytest.importorskip("packaging.requirements")
    pins = re.findall(r"(?m)^([a-z0-9-]+)==(\S+)", (ROOT / "tests/requirements.lock").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for wanted in map(requirements.Requirement, [*project["dependencies"], *project["optional-dependencies"]["dev"]]):
        locked = [version for name, version in pins if name == wanted.name]
        assert locked, f"{wanted} is not in tests/requirements.lock: make lock"
        assert all(map(wanted.specifier.contains, locked)), f"{wanted}: make lock"


def test_the_lock_file_has_what_is_asked_for() -> None:
    tomllib = pytest.importorskip("tomllib", reason="needs Python 3.11 or later")
    requirements = pytest.importorskip("packaging.requirements")
    blocks = re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n", "", (SCALE / "requirements.lock").read_text()))
    assert all(re.search(r"(?m)^    --hash=sha256:[0-9a-f]{64}", block) for block in blocks)
    pins = [re.match(r"([a-z0-9-]+)==(\S+) ", block) for block in blocks]
    locked = {pin[1]: pin[2] for pin in pins if pin is not None}
    assert len(locked) == len(blocks)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = declared["project"]
    wanted = [*project["dependencies"], *declared["build-system"]["requires"]]
    for extra, names in project["optional-dependencies"].items():
        wanted += [] if extra.startswith("dev") else names
    for requirement in map(requirements.Requirement, wanted):
        assert locked.get(requirement.name), f"{requirement} is not in requirements.lock: make lock"
        assert requirement.specifier.contains(locked[requirement.name]), f"{requirement}: make lock"
    (version,) = re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert f"--python-version {version} " in (ROOT / "Makefile").read_text()


def test_the_dockerfile_copies_what_it_may_and_is_not_root() -> None:
    """.dockerignore lets through what is copied, and it is there."""
    copied = [
        word for line in re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE) for word in line.split()
    ]
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert sorted(copied) == sorted(allowed)
    assert all((ROOT / name).exists() for name in copied)
    assert DOCKERFILE.rindex("\nFROM ") < DOCKERFILE.index("\nUSER 65534:65534\n")
    assert "--require-hashes" in DOCKERFILE


@pytest.mark.long
def test_the_image_runs_where_docker_is() -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode
    ):
        pytest.skip("needs Docker and its daemon")
    subprocess.run(["make", "image"], cwd=ROOT, check=True)
