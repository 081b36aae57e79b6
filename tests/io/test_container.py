"""In the world of a strict container: every command works there, or one line names the variable that helps."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hoicli.cli import COMMANDS
from tests.hostile.dying import WRITERS, Writer
from tests.support.project import EIGHT, GT, ROOT

WORLD = """
set -e
new=$1 user=$2 python=$3; shift 3
mount -t tmpfs -o mode=755 none "$new"
for path in /usr /bin /lib /lib64 /etc /dev/null /dev/urandom "$@"; do
  if [ -L "$path" ]; then ln -s "$(readlink "$path")" "$new$path"
  elif [ -d "$path" ]; then mkdir -p "$new$path"; mount --bind "$path" "$new$path"; mount -o remount,bind,ro "$new$path"
  elif [ -e "$path" ]; then mkdir -p "$new/dev"; touch "$new$path"; mount --bind "$path" "$new$path"
  fi
done
mkdir "$new/proc" "$new/out"
mount --rbind /proc "$new/proc"
mount -t tmpfs -o mode=777 none "$new/out"
mount -o remount,bind,ro "$new"
exec env -i "$(command -v chroot)" --userspec="$user:$user" --groups= "$new" "$python" -
"""
"""A new root of what Python needs, read-only, with /out alone to write to, and no other user, home or variable: the
program on stdin runs there."""

DRIVER = """
import json, os, subprocess, sys
for name, words in {calls}:
    os.makedirs("/out/" + name)
    done = subprocess.run([sys.executable, "-B", "-m", "hoicli", *words], capture_output=True, cwd={root!r}, stdin=-3)
    print(json.dumps([name, done.returncode, done.stderr.decode()]))
"""

HELPS = re.compile(r"(^TMPDIR: no folder takes |\(HOICLI_DATA names )")
"""The lines that a command may end with."""


def calls_of(writer: Writer, number: int) -> tuple[str, list[str]]:
    folder = f"/out/{number}"
    return str(number), writer.words.replace("OUT", f"{folder}/out").replace("DIR", folder).split()


@pytest.mark.long
@pytest.mark.parametrize("user", [65534, 54321], ids=["nobody", "a user without a name"])
def test_every_command_in_a_container(tmp_path: Path, user: int) -> None:
    """Without /tmp, /dev/shm, HOME and variables, and without a place to write but for what is asked for."""
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        pytest.skip("needs the right to unshare mounts (root, on Linux)")
    named = {str(number): writer for number, writer in enumerate(WRITERS)}
    calls = [calls_of(writer, number) for number, writer in enumerate(WRITERS)]
    calls += [("add", ["data", "add", "x:val", str(GT)]), ("fetch", ["data", "fetch", "hico:test"])]
    assert {words[0] for _, words in calls} == set(COMMANDS)
    folders = sorted({str(ROOT), sys.base_prefix, sys.prefix, *(path for path in sys.path if os.path.isdir(path))})
    outer = [path for path in folders if not any(path.startswith(f"{other}/") for other in ("/usr", *folders))]
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", WORLD, "world", tmp_path, str(user), sys.executable, *outer],
        input=DRIVER.format(calls=calls, root=str(ROOT)), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = list(map(json.loads, done.stdout.splitlines()))
    assert len(results) == len(calls)
    helped = set()
    for name, code, said in results:
        if code:
            assert code == 1
            assert HELPS.search(said.splitlines()[-1]), (named.get(name, name), said)
            helped.add(name if name not in named else "--plot" if "--plot" in named[name].words else named[name].name)
    assert helped == {"--plot", "add", "fetch"}


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [("eval", "--gt", "gt.jsonl", "predictions.jsonl"), ("vocab", "--senses", "ride"), ("data", "list"), ("doctor",)],
    ids=lambda words: words[0],
)
def test_an_empty_environment(words: tuple[str, ...]) -> None:
    """TMPDIR alone is set, and leads nowhere."""
    command = [sys.executable, "-c", "from hoicli.cli import main; main()", *words]
    setting = {"TMPDIR": "/nowhere", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=EIGHT, env=setting, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "Traceback" not in done.stderr
