"""One line, one image: however a dump is shared out, the numbers are the same bytes; and how their cost is measured."""

from __future__ import annotations

import io
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.forks import put_hoicli
from tests.support.growth import Size, make_dump
from tests.support.project import EIGHT, FIXTURES, GT, PATIENCE, PREDICTIONS, ROOT, Hoicli, Result, saved

SCALE = FIXTURES / "scale"


@dataclass(frozen=True)
class Shell:
    """Commands run as a person does, `hoicli` being this one."""

    folder: Path
    path: str

    def __call__(self, *command: object, **variables: object) -> Result:
        environment = os.environ | {"PATH": self.path, "PYTHONPATH": str(ROOT), "TMPDIR": str(self.folder)}
        process = subprocess.run(
            [str(part) for part in command], cwd=self.folder, text=True, capture_output=True, check=False,
            env=environment | {name: str(value) for name, value in variables.items()},
        )  # fmt: skip
        return Result(process.returncode, process.stdout, process.stderr)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    folder, tools = tmp_path / "a folder", tmp_path / "tools"
    folder.mkdir()
    put_hoicli(tools)
    return Shell(folder, f"{tools}{os.pathsep}{os.environ['PATH']}")


Way = Callable[..., Result]


def by_xargs(shell: Shell, truth: Path, found: Path, shards: int, *options: str, protocol: str = "all") -> Result:
    return shell("sh", SCALE / "xargs.sh", truth, found, *options, JOBS=2, SHARDS=shards, PROTOCOL=protocol)


def by_array(shell: Shell, truth: Path, found: Path, shards: int, *options: str, protocol: str = "all") -> Result:
    """A job array from 1 on, and the job that depends on it."""
    script = ("sh", SCALE / "slurm.sh", truth, found, "the matches")
    for task in range(1, shards + 1):
        place = {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": shards, "SLURM_ARRAY_TASK_MIN": 1}
        result = shell(*script, PROTOCOL=protocol, **place)
        assert not result.out
        if result.code:
            return result
    return shell(*script, *options)


def engine(shell: Shell, name: str, *words: object) -> Result:
    """By fixtures/scale/engine.py, where the engine is installed; without what it says of itself."""
    for module, needs in NEEDS[name].items():
        pytest.importorskip(module, reason=needs)
    if name == "spark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    command, *rest = words
    short = {"RAY_TMPDIR": tempfile.gettempdir()}  # a socket's path has at most 107 bytes
    result = shell(sys.executable, SCALE / "engine.py", command, *rest, "--engine", name, **short)
    own = [line for line in result.err.splitlines(keepends=True) if ".jsonl" in line or "<stdin>" in line]
    return result if name == "dask" else Result(result.code, result.out, "".join(own))


NEEDS = {
    "dask": {"dask.bag": "Dask is not installed"},
    "ray": {"ray": "Ray is not installed (hoicli[dev-engines])"},
    "spark": {"pyspark": "PySpark is not installed (hoicli[dev-engines])"},
}


def by(name: str) -> Way:
    def way(shell: Shell, truth: Path, found: Path, shards: int, *options: str, protocol: str = "all") -> Result:
        return engine(shell, name, "eval", truth, found, "--blocks", shards, "--protocol", protocol, *options)

    return way


WAYS = {"xargs": by_xargs, "array": by_array, **{name: by(name) for name in NEEDS}}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
quick_ways = pytest.mark.parametrize("way", list(WAYS.values())[:3], ids=list(WAYS)[:3])
"""Without the engines that take half a minute to start."""
shells = pytest.mark.parametrize("way", [by_xargs, by_array], ids=["xargs", "array"])


@quick_ways
def test_more_shards_than_images(shell: Shell, hoicli: Hoicli, way: Way) -> None:
    few = saved(shell.folder / "two images.jsonl", "".join(PREDICTIONS.read_text().splitlines(keepends=True)[:2]))
    result = way(shell, GT, few, 3)
    assert (result.code, result.out) == (0, hoicli("eval", "--gt", GT, few).out)
    assert set(result.err.splitlines()) <= set(hoicli("eval", "--gt", GT, few).err.splitlines())


@pytest.mark.long
@ways
def test_hundreds_of_images_and_options_of_eval(shell: Shell, hoicli: Hoicli, way: Way) -> None:
    truth, found = shell.folder / "the truth.jsonl", shell.folder / "the predictions.jsonl"
    make_dump(truth, [found], Size(300, 9))
    options = ("--per-class", "--split", "RF-UC", "--tag", "model=a b")
    result = way(shell, truth, found, 2, *options, protocol="hico,diag")
    expected = hoicli("eval", "--gt", truth, "--protocol", "hico,diag", *options, found).out
    assert result.code == 0
    assert result.out == expected
    assert expected.count("\n") > 2 * 600


@ways
def test_a_shard_that_fails_fails_the_whole(shell: Shell, way: Way) -> None:
    """Nothing is printed: half the numbers would look like all of them."""
    lines = PREDICTIONS.read_text().splitlines(keepends=True)[:2]
    found = saved(shell.folder / "predictions.jsonl", lines[0] + lines[1].replace('"score":', '"scare":', 1))
    result = way(shell, GT, found, 2, protocol="hico")
    assert result.code != 0
    assert result.out == ""
    assert "hois[0].score: missing" in result.err
    assert "Traceback" not in result.err


@pytest.mark.long
@pytest.mark.parametrize("name", NEEDS)
def test_tar_shards_are_corrupted_through_an_engine(shell: Shell, hoicli: Hoicli, name: str) -> None:
    """WebDataset's: the records and the pictures of one run on the unpacked files."""
    pytest.importorskip("cv2")
    lines = GT.read_bytes().splitlines(keepends=True)
    shards = [shell.folder / f"{number} of two.tar" for number in range(2)]
    for number, shard in enumerate(shards):
        with tarfile.open(shard, "w") as archive:
            for place, line in enumerate(lines[number::4]):
                archive.add(EIGHT / "images" / json.loads(line)["file_name"], f"{number}{place}.jpg")
                record = tarfile.TarInfo(f"{number}{place}.json")
                record.size = len(line)
                archive.addfile(record, io.BytesIO(line))
    options = ("--corruption", "jpeg,elastic", "--severity", 2)
    unpacked, one, several = (shell.folder / name for name in ("unpacked", "one", "several"))
    for shard in shards:
        with tarfile.open(shard) as archive:
            archive.extractall(unpacked, filter="data")
    parts = sorted(unpacked.glob("*.json"))
    records = [{**json.loads(path.read_bytes()), "file_name": f"{path.stem}.jpg"} for path in parts]
    (shell.folder / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    words = ("--jobs", 1, "--images", unpacked, "--save-images", one, *options)
    expected = hoicli("corrupt", *words, shell.folder / "records.jsonl")
    result = engine(shell, name, "corrupt", several, *shards, *options)
    assert expected.code == 0
    assert result == Result(0, expected.out, "")
    assert len({path.relative_to(several) for path in several.rglob("*.tar")}) == 4
    (several / "jpeg/2" / shards[0].name).write_bytes(b"")  # what is done is not done again
    assert engine(shell, name, "corrupt", several, *shards, *options).out == expected.out
    assert not (several / "jpeg/2" / shards[0].name).read_bytes()
    next((several / "records").glob(f"{shards[0].name}.*")).unlink()
    assert engine(shell, name, "corrupt", several, *shards, *options).out == expected.out
    with tarfile.open(several / "jpeg/2" / shards[0].name) as archive:
        for member in archive.getmembers():
            if member.name.endswith(".jpg"):
                assert archive.extractfile(member).read() == (one / "jpeg/2" / member.name).read_bytes()  # type: ignore[union-attr]


@dataclass(frozen=True)
class Many:
    """Eight images in four shards, each with the ground truth of its own, and what they all give."""

    folder: Path
    whole: str

    def __call__(self, shell: Shell, *words: object, name: str = "dask", gt: str = "gt/{name}.jsonl") -> Result:
        return engine(shell, name, "eval", gt, "preds/*.jsonl", "--protocol", "hico", *words)


@pytest.fixture
def many(shell: Shell, hoicli: Hoicli) -> Many:
    truth, found = GT.read_bytes().splitlines(keepends=True), PREDICTIONS.read_bytes().splitlines(keepends=True)
    for folder in ("gt", "preds"):
        (shell.folder / folder).mkdir()
    for number in range(4):
        own = truth[number::4]
        images = {json.loads(line)["image_id"] for line in own}
        (shell.folder / f"gt/{number}.jsonl").write_bytes(b"".join(own))
        shard = [line for line in found if json.loads(line)["image_id"] in images]
        (shell.folder / f"preds/{number}.jsonl").write_bytes(b"".join(shard))
    shutil.copy(GT, shell.folder / "gt.jsonl")
    return Many(shell.folder, hoicli("eval", "--gt", GT, "--protocol", "hico", PREDICTIONS).out)


@pytest.mark.long
@pytest.mark.parametrize("name", NEEDS)
@pytest.mark.parametrize("gt", ["gt.jsonl", "gt/{name}.jsonl"], ids=["whole", "own"])
def test_many_shards_with_the_whole_ground_truth_or_their_own(shell: Shell, many: Many, name: str, gt: str) -> None:
    assert many(shell, name=name, gt=gt).out == many.whole


def test_a_run_that_was_killed_goes_on(shell: Shell, many: Many) -> None:
    """Killed when some shards are matched: these are not matched again."""
    pytest.importorskip("dask.bag")
    tools = Path(shell.path.partition(os.pathsep)[0])
    (tools / "hoicli").rename(tools / "real")
    slow = '#!/bin/sh\necho "$@" >> "$LOG"\ncase "$*" in *$HANG*) sleep 600;; esac\nexec real "$@"\n'
    (tools / "hoicli").write_text(slow)
    (tools / "hoicli").chmod(0o755)
    words = (sys.executable, SCALE / "engine.py", "eval", "gt/{name}.jsonl", "preds/*.jsonl", "--kept", "kept")
    log, kept = shell.folder / "log", shell.folder / "kept"
    variables = {"PATH": shell.path, "LOG": str(log), "HANG": "preds/3", "TMPDIR": str(shell.folder)}
    environment = os.environ | variables
    killed = subprocess.Popen(list(map(str, words)), cwd=shell.folder, env=environment, start_new_session=True)
    ending = time.monotonic() + PATIENCE
    while len(list(kept.glob("[0-9].*"))) < 3 and time.monotonic() < ending:
        time.sleep(0.05)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    log.unlink()
    again = shell(*words, "--protocol", "all", LOG=log, HANG="never")
    assert "engine.py: 3 of 4 are done already\n" in again.err
    assert log.read_text().count("match ") == 1
    assert again.out == shell("real", "eval", "--gt", GT, PREDICTIONS).out
    assert not list(kept.glob("*.part"))


def test_a_shard_that_was_refused_may_be_left_out(shell: Shell, many: Many) -> None:
    """It gave no result, so a run without it lacks nothing; what gave one is still missed."""
    wrong = saved(shell.folder / "preds/4.jsonl", '{"image_id": "a"}\n')
    result = many(shell, "--kept", "kept", gt="gt.jsonl")
    assert (result.code, result.out, f"{wrong}:1: " in result.err) == (1, "", True)
    wrong.unlink()
    again = many(shell, "--kept", "kept", gt="gt.jsonl")
    assert (again.code, again.out) == (0, many.whole)
    (shell.folder / "preds/0.jsonl").unlink()
    assert "is lost" in many(shell, "--kept", "kept", gt="gt.jsonl").err


@pytest.mark.long
def test_what_is_lost_or_changed_is_noticed(shell: Shell, many: Many) -> None:
    def refused(*words: object, gt: str = "gt/{name}.jsonl") -> str:
        result = many(shell, "--kept", "kept", *words, gt=gt)
        assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
        return result.err.removeprefix("engine.py: ")

    assert many(shell, "--kept", "kept").out == many.whole
    kept, shard = shell.folder / "kept", shell.folder / "preds/2.jsonl"
    matches = next(kept.glob("2.jsonl.*"))
    for damaged in (b"", None):  # a result
        matches.write_bytes(damaged) if damaged is not None else matches.unlink()
        again = many(shell, "--kept", "kept")
        assert again.out == many.whole
        assert "engine.py: 3 of 4 are done already\n" in again.err
    shard.write_text(shard.read_text().replace('"score":', '"scare":', 1))  # a shard of other content is read anew
    assert f"{shard}:1: hois[0].score: missing" in many(shell, "--kept", "kept").err
    shard.unlink()
    assert refused() == f"{shell.folder}/gt/2.jsonl: no shard of predictions has this ground truth; is it lost?\n"
    assert refused(gt="gt.jsonl").startswith(f"{shard}: is lost, {kept}/manifest.json lists it; bring it back, or ")
    (shell.folder / "gt/1.jsonl").unlink()
    assert refused() == "gt/1.jsonl: no such file\n"
    (shell.folder / "preds/1.jsonl").rename(shell.folder / "1.jsonl")
    (shell.folder / "preds/1.jsonl").symlink_to("../1.jsonl")
    twice = engine(shell, "dask", "eval", "gt.jsonl", "1.jsonl", "preds/*.jsonl")
    assert twice.err == "engine.py: two shards are called 1.jsonl; rename one, or run each folder by itself\n"


@pytest.mark.long
def test_on_a_file_system_of_fsspec(
    shell: Shell, many: Many, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """In memory, as on s3:// and the like: everything is read and kept there. By one thread: fsspec's files in memory
    are the same object for all who open them, with one position."""
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed (hoicli[cluster])")
    pytest.importorskip("dask.bag")
    monkeypatch.setitem(sys.modules["dask.config"].config, "num_workers", 1)
    monkeypatch.setenv("PATH", shell.path)
    memory = fsspec.filesystem("memory")
    for folder in ("gt", "preds"):
        memory.put(f"{shell.folder}/{folder}/", f"/{folder}/", recursive=True)
    memory.put(str(GT), "/gt.jsonl")
    module = runpy.run_path(str(SCALE / "engine.py"))
    for gt, done in (("gt.jsonl", ""), ("gt/{name}.jsonl", ""), ("gt/{name}.jsonl", "4 of 4")):
        words = ("eval", f"memory://{gt}", "memory://preds/*.jsonl", "--kept", "memory://kept", "--protocol", "hico")
        monkeypatch.setattr(sys, "argv", ["engine.py", *words])
        assert module["main"]() == 0
        said = capfdbinary.readouterr()
        assert said.out.decode() == many.whole
        assert done in said.err.decode()
    assert len(memory.ls("/kept")) == 9
    assert many(shell, "--kept", f"file://{shell.folder}/kept", gt=f"file://{shell.folder}/gt.jsonl").out == many.whole
    memory.rm("/preds/1.jsonl")
    assert module["main"]() == 1
    assert capfdbinary.readouterr().err.startswith(b"engine.py: memory://gt/1.jsonl: no shard of predictions has this ")
    memory.put(str(GT), "/preds/1.jsonl")  # no predictions: the task fails, and stdout stays open
    monkeypatch.setattr(sys, "argv", ["engine.py", "eval", "memory://gt.jsonl", "memory://preds/*.jsonl"])
    assert module["main"]() == 1
    assert not sys.stdout.closed
    print("and goes on")
    assert capfdbinary.readouterr().out == b"and goes on\n"


def test_an_image_in_two_shards_is_refused(shell: Shell) -> None:
    line = PREDICTIONS.read_text().splitlines(keepends=True)[0]
    found = saved(shell.folder / "predictions.jsonl", 2 * line)
    result = by_xargs(shell, GT, found, 2, protocol="hico")
    assert result.code != 0
    assert result.out == ""
    assert "image 'HICO_test2015_00000001' is at <stdin>:1 already" in result.err


@shells
@pytest.mark.parametrize(("name", "words"), [("none.jsonl", "no predictions in it"), ("absent.jsonl", "o such file")])
def test_no_predictions_at_all(shell: Shell, way: Way, name: str, words: str) -> None:
    (shell.folder / "none.jsonl").touch()
    result = way(shell, GT, shell.folder / name, 1)
    assert result.code != 0
    assert result.out == ""
    assert words in result.err
    assert "Traceback" not in result.err


def test_an_array_with_a_hole_is_refused(shell: Shell) -> None:
    script = ("sh", SCALE / "slurm.sh", GT, PREDICTIONS, "matches")
    matches = shell.folder / "matches"
    matches.mkdir()
    assert shell(*script) == Result(1, "", "slurm.sh: matches: no shards in it; run the array first\n")
    (matches / "0-of-3.jsonl").touch()
    (matches / "2-of-3.jsonl").touch()
    assert shell(*script) == Result(1, "", "slurm.sh: matches: shard 1 of 3 is missing; run its task again\n")
    (matches / "1-of-16.jsonl").touch()
    refused = "slurm.sh: matches: shards of several arrays (16 3); empty the folder and run one\n"
    assert shell(*script) == Result(1, "", refused)


def test_a_task_that_fails_leaves_no_shard_of_an_earlier_run(shell: Shell) -> None:
    script = ("sh", SCALE / "slurm.sh", GT, "absent.jsonl", "matches")
    (shell.folder / "matches").mkdir()
    (shell.folder / "matches" / "0-of-1.jsonl").touch()
    result = shell(*script, SLURM_ARRAY_TASK_ID=0, SLURM_ARRAY_TASK_COUNT=1)
    assert result.code != 0
    assert not list((shell.folder / "matches").iterdir())


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """The predictions in three files, in no order."""
    lines = PREDICTIONS.read_text().splitlines(keepends=True)
    paths = [tmp_path / f"shard{number}.jsonl" for number in range(3)]
    for number, path in enumerate(paths):
        path.write_text("".join(lines[number::3]))
    return [paths[2], paths[0], paths[1]]


def test_diagnose_takes_the_matches_of_shards(hoicli: Hoicli, tmp_path: Path, shards: list[Path]) -> None:
    matches = tmp_path / "matches.jsonl"
    streams = [hoicli("match", "--gt", GT, "--protocol", "diag", "--only-predicted", shard).out for shard in shards]
    matches.write_text("".join(streams))
    for options in ((), ("--per-class",), ("--as-released",)):
        whole = hoicli("diagnose", "--gt", GT, *options, PREDICTIONS)
        assert whole.code == 0
        assert hoicli("diagnose", "--gt", GT, *options, matches).out == whole.out


def test_similarities_of_shards_are_a_union(hoicli: Hoicli, tmp_path: Path, shards: list[Path]) -> None:
    command = ("shoe-sim", "--backend", "wordnet:wup", "--gt", GT)
    whole = hoicli(*command, PREDICTIONS).out
    parts = []
    for shard in shards:
        parts.append(tmp_path / f"sim_{shard.name}")
        assert hoicli(*command, shard, "-o", parts[-1]).code == 0
    assert sorted(set("".join(part.read_text() for part in parts).splitlines())) == whole.splitlines()
    assert hoicli("shoe-sim", "--merge", "mean", *parts).out == whole
    together = [argument for part in parts for argument in ("--sim", part)]
    (tmp_path / "sim.jsonl").write_text(whole)
    expected = hoicli("shoe-eval", "--gt", GT, "--sim", tmp_path / "sim.jsonl", PREDICTIONS).out
    assert hoicli("shoe-eval", "--gt", GT, *together, *shards).out == expected


def test_a_shard_may_be_empty(hoicli: Hoicli, tmp_path: Path) -> None:
    """Of several; a dump may not. And a shard says nothing of images that others have."""
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert hoicli("match", "--gt", GT, "--only-predicted", empty) == Result(0, "", "")
    assert hoicli("match", "--gt", GT, empty).code == 1
    assert "have no predictions" not in hoicli("match", "--gt", GT, "--only-predicted", PREDICTIONS).err
    assert "have no predictions" in hoicli("match", "--gt", GT, PREDICTIONS).err
