"""The benchmark as a makefile: it goes on after a kill, is extended, and signs what made the images."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hoicli.corruption.catalogue import ROHOI
from tests.support.forks import put_hoicli
from tests.support.project import ROBUST, ROOT, Hoicli

Make = Callable[..., "subprocess.CompletedProcess[str]"]

STUB = r"""#!/bin/sh
# hoicli, but it only writes what it was called with where its output should be, and a line into `log`.
command="$*"; echo "$command" | cut -d ' ' -f 1 >> log
while [ $# -gt 0 ]; do [ "$1" = -o ] && output="$2"; shift; done
case "$command" in
    corrupt*) printf '%s\n' '{"image_id":"a","recipe":"hoicli-1+site-weather@0.1","seed":0}' > "$output";;
    eval*) echo "$command" > "$output";;
    robust*) echo "$command";;
esac
"""
WRITER = r"""#!/bin/sh
# A detector that is killed, with make, when half of its predictions are written, if there is a file `deadly`.
echo detect >> log; echo half
if [ -e deadly ]; then kill -9 0; fi
echo whole
"""


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Calls make with benchmark.mk, the stub in place of hoicli, in a process group of its own."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    for name, text in (("hoicli", STUB), ("detector", WRITER)):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        make = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
        environment = {key: value for key, value in os.environ.items() if key not in make}
        (tmp_path / "log").write_text("")
        return subprocess.run(
            ["make", "-f", str(ROBUST / "benchmark.mk"), "OUT=out", "DETECTOR=detector", *arguments],
            cwd=tmp_path, env={**environment, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"},
            text=True, capture_output=True, check=False, start_new_session=True,
        )  # fmt: skip

    return call


def test_the_makefile_goes_on_and_is_extended(make: Make, tmp_path: Path) -> None:
    def calls() -> Counter[str]:
        return Counter((tmp_path / "log").read_text().split())

    (tmp_path / "deadly").touch()
    assert make("CORRUPTIONS=jpeg", "SEVERITIES=5").returncode != 0
    assert (tmp_path / "out/plain/clean.predictions.jsonl.part").read_text() == "half\n"
    (tmp_path / "deadly").unlink()
    left = make("-n", "CORRUPTIONS=jpeg", "SEVERITIES=5").stdout
    assert left.count("hoicli eval") == 2
    assert calls() == {}
    assert make("CORRUPTIONS=jpeg", "SEVERITIES=5").returncode == 0
    assert (tmp_path / "out/plain/clean.predictions.jsonl").read_text() == "half\nwhole\n"
    # a corruption and a severity more: only the new cells are made, and all are averaged
    extended = ("CORRUPTIONS=jpeg weather", "SEVERITIES=4 5")
    done = make(*extended)
    assert calls() == {"corrupt": 9, "detect": 9, "eval": 9, "robust": 1}
    assert "--corruption jpeg,night,rain,fog,snow --severity 4,5" in done.stdout
    assert len((tmp_path / "out/plain/rows.jsonl").read_text().splitlines()) == 11
    make(*extended)
    assert calls() == {"robust": 1}
    # fewer, and another protocol: nothing is detected again
    make("CORRUPTIONS=jpeg", "SEVERITIES=5", "PROTOCOL=hico", "DATASET=labels/site.json")
    assert calls() == {"eval": 2, "robust": 1}
    (row,) = tmp_path.glob("out/plain/jpeg-5.hico-*.rows.jsonl")
    assert "--protocol hico --dataset labels/site.json --tag model=plain" in row.read_text()
    assert "--tag recipe=hoicli-1+site-weather@0.1" in row.read_text()
    refused = make("CORRUPTIONS=jpeg", "RECIPE=imagenet-c")
    assert refused.returncode != 0
    assert "out was made with RECIPE=hoicli-1; give RECIPE=imagenet-c another OUT" in refused.stderr


def test_a_name_with_a_hyphen_is_a_corruption(make: Make, tmp_path: Path) -> None:
    assert make("CORRUPTIONS=site-haze", "SEVERITIES=3").returncode == 0
    assert "corruption=site-haze --tag severity=3" in (tmp_path / "out/plain/rows.jsonl").read_text()


@pytest.mark.long
def test_the_makefile(hoicli: Hoicli, tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    if shutil.which("make") is None:
        pytest.skip("needs make")
    scripts = tmp_path / "bin"
    put_hoicli(scripts)
    (scripts / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (scripts / "python").chmod(0o755)
    arguments = ["OUT=out", "CORRUPTIONS=jpeg occlusion", "SEVERITIES=5"]
    own = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    own |= {"PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    words = ["make", "-f", str(ROBUST / "benchmark.mk"), *arguments]
    process = subprocess.run(words, cwd=tmp_path, env=own, text=True, capture_output=True, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[2].split()[:2] == ["plain", "qpic"]
    folder, chosen = tmp_path / "out" / "plain", ("--corruption", "jpeg,occlusion", "--severity", "5")
    assert hoicli("robust", *chosen, folder / "rows.jsonl").code == 0
    listed = (ROBUST / "benchmark.mk").read_text().split("CORRUPTIONS ?= ")[1].split("SEVERITIES")[0]
    assert tuple(listed.replace("\\", " ").split()) == ROHOI
