"""Files and folders that appear whole or not at all, and names that may be followed; in the world of a strict
container every command works, or one line names the variable that helps."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

import hoicli as api
from hoicli.cli import COMMANDS
from hoicli.errors import DataError, UsageError
from hoicli.io.outputs import atomic_folder, atomic_path, stays_inside, write_whole
from tests.hostile.dying import WRITERS, Writer
from tests.support.project import EIGHT, GT, PREDICTIONS, ROOT, Hoicli, MonkeyPatch, Result, saved


def test_a_file_is_made_with_its_folders_and_has_the_mode_of_the_one_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c.png"
    write_whole(path, b"old")
    path.chmod(0o640)
    write_whole(path, b"new")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"new", 0o640)
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    target = saved(tmp_path / "a.png", b"before")

    def full(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(DataError, match=rf"^{target}: cannot be written \(No space left on device\)"):
        write_whole(target, b"after")
    assert target.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [target]
    with pytest.raises(UsageError, match=rf"^--save-images {target}/b: {target} is no folder"):
        write_whole(target / "b", b"")


def test_a_read_only_file_system_is_named_with_the_option(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    """There the system refuses to remove a file before it looks whether there is one."""

    def refused(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "open", refused)
    monkeypatch.setattr(Path, "unlink", refused)
    said = r"-o .*rows.jsonl: cannot be created \(Read-only file system\)"
    with pytest.raises(UsageError, match=said), atomic_path(str(tmp_path / "rows.jsonl"), "-o"):
        pass


def test_what_stands_under_the_name_is_replaced_and_never_followed(tmp_path: Path) -> None:
    """The name may come from a record, and what is there from an archive that somebody unpacked."""
    folder, secret = tmp_path / "out", tmp_path / "secret"
    folder.mkdir()
    secret.write_bytes(b"mine")
    secret.chmod(0o600)
    (folder / "plain").write_bytes(b"")
    usual = (folder / "plain").stat().st_mode
    (folder / "link").symlink_to(secret)
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    (folder / "device").symlink_to("/dev/null")
    (folder / "loop").symlink_to("loop")
    (folder / "to a folder").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    names = sorted(path.name for path in folder.iterdir())
    for name in names:
        write_whole(folder / name, b"new")
        assert not (folder / name).is_symlink()
        assert (folder / name).read_bytes() == b"new"
        assert (folder / name).stat().st_mode == usual
    assert secret.read_bytes() == b"mine"
    assert sorted(path.name for path in folder.iterdir()) == names
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "secret"]
    (folder / "sub").mkdir()
    with pytest.raises(UsageError, match="/sub: is a directory"):
        write_whole(folder / "sub", b"new")


@pytest.mark.parametrize(("fault", "kept"), [(None, "new"), (errno.EINVAL, "new"), (errno.EIO, "old")])
def test_content_is_on_disk_first(tmp_path: Path, monkeypatch: MonkeyPatch, fault: int | None, kept: str) -> None:
    """A file system that cannot say so loses nothing; a disk that breaks loses the new file and not the old."""
    path, synced = tmp_path / "out", []

    def fsync(number: int) -> None:
        synced.append((os.pread(number, 99, 0), path.read_text()))
        if fault is not None:
            raise OSError(fault, "a fault")

    monkeypatch.setattr(os, "fsync", fsync)
    path.write_text("old")
    refused = pytest.raises(DataError, match=rf"^{path}: cannot be written \(a fault\)")
    with nullcontext() if kept == "new" else refused, atomic_path(str(path)) as temporary:
        Path(temporary).write_text("new")
    assert synced == [(b"new", "old")]
    assert path.read_text() == kept
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path, there: bool) -> None:
    target = tmp_path / "made"
    if there:
        target.mkdir(mode=0o750)

    def write(fault: type[BaseException] | None) -> None:
        with atomic_folder(str(target)) as folder:
            (folder / "a").write_bytes(b"x")
            if fault is not None:
                raise fault

    with pytest.raises(KeyboardInterrupt):
        write(KeyboardInterrupt)
    assert list(tmp_path.rglob("*")) == ([target] if there else [])
    write(None)
    assert {*tmp_path.rglob("*")} == {target, target / "a", target / ".hoicli-files"}
    if there:
        assert os.stat(target).st_mode & 0o777 == 0o750


def test_files_of_others_in_a_replaced_folder_stay(tmp_path: Path) -> None:
    """Also those that come while it is made."""
    target = tmp_path / "made"

    def write(theirs: str) -> None:
        with atomic_folder(str(target)) as folder:
            (folder / "data").mkdir()
            (folder / "data/own").touch()
            if theirs:
                (target / theirs).write_text("mine")

    for _ in range(2):  # its own are replaced
        write("")
    for theirs in ("notes", "data/notes"):
        with pytest.raises(DataError, match="other files were put into it meanwhile"):
            write(theirs)
        assert (target / theirs).read_text() == "mine"
        (target / theirs).unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["made"]
    file = tmp_path / "file"
    with pytest.raises(DataError, match="other files were put into it meanwhile"), atomic_folder(str(file)):
        file.write_text("mine")
    assert file.read_text() == "mine"


def test_names_that_stay_inside_and_that_lead_out() -> None:
    assert all(map(stays_inside, ["a.png", "train/a.png", "a..b/.png", "..."]))
    out = ["/a", "../a", "a/../../b", "..", r"C:\a", "C:a", r"a\..\..\b", r"\\host\share\a", "a\0b"]
    assert [name for name in out if stays_inside(name)] == []


@pytest.mark.parametrize(("ending", "program"), [("zst", "zstd"), ("xz", "xz"), ("bz2", "bzip2")])
def test_a_name_promises_no_other_compression(hoicli: Hoicli, tmp_path: Path, ending: str, program: str) -> None:
    target = tmp_path / f"rows.jsonl.{ending}"
    result = hoicli("eval", "--gt", "absent", "absent", "-o", target)
    said = f"hoicli: -o {target}: only .gz is compressed here; pipe it: hoicli ... | {program} > FILE\n"
    assert result == Result(2, "", said)
    with pytest.raises(UsageError, match=f"is compressed here; pipe it: hoicli ... | {program}"):
        api.match(GT, PREDICTIONS).write(str(target))
    assert not list(tmp_path.iterdir())


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
