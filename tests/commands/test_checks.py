"""What is checked before the work, in every command: outputs, inputs, counts, and options given twice; no file that a
run reads is written over, however it learned of the file (`hoicli.io.file_claims`)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hoicli as api
from hoicli.cli import COMMANDS
from hoicli.errors import HoicliError
from hoicli.interface.checks import FOLDER, PAGE, Check, Count, Read, Written
from hoicli.interface.command import check_arguments
from hoicli.interface.options import Option, Parameter
from hoicli.interface.shell import ManualCommand, parameters_in_shell
from hoicli.io.outputs import LIST_OF_FILES
from tests.support.project import EIGHT, FIXTURES, GT, PREDICTIONS, ROOT, Hoicli, MonkeyPatch, Result, refusal
from tests.support.shell import command_of

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

AS_MANY_AS_THERE_ARE = {"--top", "--top-k", "--seed", "--first", "--severity", "--resize"}
"""Numbers that nothing grows with: of a list that is shorter all are taken, a seed is only mixed in, and boxes are
multiplied by a size."""


def commands() -> Iterator[tuple[str, Any, dict[str, Check]]]:
    """(name, command, the marks of its parameters) of all."""
    for name in COMMANDS:
        command = command_of(name)
        found = {one.name: one.option.effective_check for one in parameters_in_shell(command.page)}
        yield name, command, {name: mark for name, mark in found.items() if mark is not None}


MARKED = [(name, param, found[param.name]) for name, command, found in commands() for param in command.params
          if param.name in found]  # fmt: skip
OUTPUTS = [(name, param, mark) for name, param, mark in MARKED if isinstance(mark, Written)]


def refused(result: Result) -> str:
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
    return result.err.removeprefix("hoicli: ").strip()


def test_every_parameter_is_declared_for_what_it_is() -> None:
    """What names a file says whether it is read or written; what counts, how far; and whatever is new has to say so."""
    for name, command, found in commands():
        assert isinstance(command, ManualCommand)
        kinds_of = {one.name: str(one.kind) for one in parameters_in_shell(command.page)}
        for param in command.params:
            if getattr(param, "is_flag", False):
                continue
            place = f"{name} {param.opts[0]} {param.metavar}"
            mark = found.get(param.name)
            if re.search(r"FILE|DIR|\bGT\b|IMAGE|[A-Z]\.\.\.$", str(param.metavar)):
                assert isinstance(mark, Read | Written), place
            if "int" in kinds_of[param.name] and param.opts[0] not in AS_MANY_AS_THERE_ARE:
                assert isinstance(mark, Count), place


def ending(param: Any) -> str:
    return ".png" if param.opts[0] == "--plot" or param.metavar == "FILE|DIR" else ""


def given_name(param: Any, folder: str) -> str:
    return f"{folder}index{ending(param) or ('.jsonl' if param.opts[0] == '--reasons' else '.html')}"


@pytest.mark.parametrize(("name", "param", "mark"), OUTPUTS, ids=[f"{name} {one.opts[0]}" for name, one, _ in OUTPUTS])
def test_wrong_outputs_are_told_first(hoicli: Hoicli, tmp_path: Path, name: str, param: Any, mark: Written) -> None:
    """Before anything is read: the input is not there, and that is not what is complained of."""
    (tmp_path / "file").write_text("")
    (tmp_path / "dir").mkdir()
    option, words = (param.opts[0], [str(tmp_path / "nothing")] * (name not in ("vocab", "doctor")))
    wrong = [f"file/x{ending(param)}", f"none/further/x{ending(param)}", *(["dir"] if not ending(param) else [])]
    if mark in (PAGE, FOLDER):
        wrong = ["file/x", "file", *(["none/further/x"] if mark is not FOLDER else [])]
    for path in wrong:
        said = refused(hoicli(name, option, tmp_path / path, *words))
        assert said.startswith(f"{option} {tmp_path / path}: ")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["dir", "file"]


def test_the_ending_and_what_it_needs_come_first(hoicli: Hoicli, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    said = refused(hoicli("diagnose", "--plot", tmp_path / "x.bmp", "nothing"))
    assert said == f"--plot {tmp_path / 'x.bmp'}: end the name in .png, .svg or .pdf"
    said = refused(hoicli("eval", "-o", tmp_path / "x.XLSX", "nothing"))
    endings = ".tex, .md, .html, .htm, .csv or .jsonl"
    assert said == f"-o {tmp_path / 'x.XLSX'}: rows are not written in this format; end the name in {endings}"
    assert refused(hoicli("eval", "-o", tmp_path / "x.tsv", "nothing")).startswith(f"-o {tmp_path / 'x.tsv'}: rows are")
    lines = "records are written as JSONL, one a line; end the name in .jsonl"
    for words in (
        *(("match", "--gt", GT, PREDICTIONS, "-o"), ("convert", GT, "-o"), ("mask", GT, "-o"), ("prompts", GT, "-o")),
        ("shoe-eval", "--reasons"),
    ):
        for name in ("x.csv", "x.CSV.gz", "x.md", "x.npy", "x.parquet"):
            assert refused(hoicli(*words, tmp_path / name)) == f"{words[-1]} {tmp_path / name}: {lines}"
    said = refused(hoicli("vocab", "--from", GT, "-o", tmp_path / "x.csv"))
    assert said == f"-o {tmp_path / 'x.csv'}: the file of a dataset is JSON; end the name in .json"
    with pytest.raises(HoicliError, match=r"x\.csv: records are"):
        api.match(GT, PREDICTIONS, protocol="hico").write(str(tmp_path / "x.csv"))
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("hoicli.io.outputs.find_spec", lambda _: None)
    assert refused(hoicli("robust", "--plot", tmp_path / "x.png", "nothing")).startswith("--plot needs matplotlib")


@pytest.mark.parametrize(("name", "notes"), [("x.json", 1), ("x.jsonl", 0), ("x.rows", 0), ("x.JSON.gz", 1)])
@pytest.mark.parametrize("command", ["match", "eval"])
def test_lines_in_a_file_of_json_are_told(hoicli: Hoicli, tmp_path: Path, command: str, name: str, notes: int) -> None:
    result = hoicli(command, "--protocol", "hico", "--gt", GT, PREDICTIONS, "-o", tmp_path / name)
    assert (result.code, result.err.count(f"{name}: has JSON Lines")) == (0, notes)


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder that takes no files, not even from root")
def test_folders_that_take_no_files(hoicli: Hoicli) -> None:
    for words in (["eval", "-o", "/sys/x"], ["diagnose", "--plot", "/sys/x.png"], ["explore", "-o", "/sys/new"],
                  ["corrupt", "--save-images", "/sys/a/b"],
                  ["mask", "--save-images", "/sys"], ["shoe-sim", "--cache", "/sys/x"]):  # fmt: skip
        said = refused(hoicli(*words, "nothing"))
        assert said.startswith(f"{words[-2]} {words[-1]}")
        assert "the folder /sys is not writable" in said or "cannot be created" in said


def read_and_written() -> Iterator[Any]:
    for name, command, found in commands():
        for source in command.params:
            for target in command.params:
                mark = found.get(target.name)
                both = isinstance(found.get(source.name), Read) and isinstance(mark, Written)
                of_json = source.opts[0] == "--recipe"  # a file's name ends in .json, any other is a recipe's
                if both and not of_json and mark is not FOLDER:
                    yield pytest.param(name, source, target, mark, id=f"{name} {source.opts[0]} {target.opts[0]}")


@pytest.mark.parametrize(("name", "source", "target", "mark"), list(read_and_written()))
def test_no_output_is_an_input(
    hoicli: Hoicli, tmp_path: Path, monkeypatch: MonkeyPatch, name: str, source: Any, target: Any, mark: Written
) -> None:
    """Under the same name, another one for it, a symbolic and a hard link; on stdin."""
    monkeypatch.chdir(tmp_path)
    Path("page").mkdir()
    folder = "page/" if mark is PAGE else ""
    given, precious = given_name(target, folder), "mine"
    Path(given).write_text(precious)
    if folder:
        Path(folder, LIST_OF_FILES).write_text(f"{Path(given).name}\n")
    others = [folder or given, folder or f"./{given}"]
    if not folder:
        Path(f"soft{ending(target)}").symlink_to(given)
        os.link(given, f"hard{ending(target)}")
        others += [f"soft{ending(target)}", f"hard{ending(target)}", str(tmp_path / given)]
    for path in others:
        before = ["add", "mine:val"] if name == "data" else []
        words = [*before, given] if source.param_type_name == "argument" else [source.opts[0], given]
        after = ["3"] if name == "claim" else []
        said = refused(hoicli(name, *words, *after, target.opts[0], path))
        assert said.startswith(f"{target.opts[0]} {path}: is an input, too (")
        assert given in said
    assert Path(given).read_text() == precious
    assert not list(tmp_path.rglob("*.part"))


def test_no_output_is_what_stands_on_stdin_or_stdout(tmp_path: Path) -> None:
    for name in ("p", "out"):
        (tmp_path / name).write_bytes(PREDICTIONS.read_bytes())
    python = [sys.executable, "-m", "hoicli"]
    for script, said in (
        ('"$@" mask -o p < p', "hoicli: -o p: is an input, too (stdin); give another name\n"),
        ('"$@" mask - -o p < p', "hoicli: -o p: is an input, too (stdin); give another name\n"),
        ('"$@" mask p >> p', "hoicli: stdout: is an input, too (p); give another name\n"),
        (f'"$@" eval --gt {GT} p -o p < out', "hoicli: -o p: is an input, too (p); give another name\n"),
    ):
        done = subprocess.run(["sh", "-c", script, "sh", *python], cwd=tmp_path, capture_output=True, text=True,
                              check=False, env=ENVIRONMENT)  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
        assert (tmp_path / "p").read_bytes() == PREDICTIONS.read_bytes()


def test_two_outputs_are_two_files(hoicli: Hoicli, tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (
        ["diagnose", "--plot", "x.png", "-o", "x.png"],
        ["diagnose", "--plot", "./x.png", "-o", "x.png"],
        ["robust", "--plot", "x.svg", "-o", "page/../x.svg"],
        ["shoe-eval", "--reasons", "x", "-o", "x"],
        ["shoe-eval", "--reasons", "-"],
        ["shoe-sim", "--cache", "x", "-o", "x"],
    ):
        assert "is the output of -o already; give another file" in refused(hoicli(*words, "nothing"))


def test_devices_may_be_shared(hoicli: Hoicli, tmp_path: Path) -> None:
    """/dev/null is no file that anything is lost in, as input or output, once or twice."""
    result = hoicli("shoe-eval", "--gt", "/dev/null", "--sim", "/dev/null", "--reasons", "/dev/null", "-o", "/dev/null",
                    "/dev/null")  # fmt: skip
    assert (result.code, result.err) == (1, "/dev/null: no ground truth in it; hoicli convert makes it\n")
    assert hoicli("vocab", "-o", "/dev/null").code == 0
    words = ["sh", sys.executable, "-m", "hoicli", "doctor", "--schema", "result"]
    for script in ('"$@" -o /dev/stdout | cat', '"$@" -o /dev/stdout > f; cat f', '"$@" -o - > f; cat f', '"$@"'):
        shell = ["sh", "-c", script, *words]
        done = subprocess.run(shell, cwd=tmp_path, capture_output=True, check=True, env=ENVIRONMENT)
        assert done.stdout.startswith(b"{")


def test_counts_have_a_range(hoicli: Hoicli) -> None:
    counts = [(name, param, mark) for name, param, mark in MARKED if isinstance(mark, Count)]
    assert {param.opts[0] for _, param, _ in counts} >= {"--bootstrap", "--levels", "--jobs"}
    for name, param, mark in counts:
        option = param.opts[0]
        for number in (99999999999, 10**30, mark.maximum + 1, mark.minimum - 1):
            said = refused(hoicli(name, option, number, "nothing"))
            none = ", or 0 for none" if mark.or_zero else ""
            assert said == f"{option} {number}: give a whole number from {mark.minimum:,} to {mark.maximum:,}{none}"
        for number in (mark.minimum, mark.maximum, *([0] if mark.or_zero else [])):
            check_arguments([Parameter("it", int, 0, Option("N", check=mark), "")], {"it": number})


@pytest.mark.long
def test_an_option_with_one_value_is_given_once(hoicli: Hoicli) -> None:
    """The last would be taken, and nobody would know."""
    seen = set()
    for name, command, _ in commands():
        for param in command.params:
            if param.param_type_name == "argument" or getattr(param, "multiple", False):
                continue
            flag = getattr(param, "is_flag", False)
            option, other = param.opts[0], (*param.opts, *param.secondary_opts)[-1]
            words = [option, other] if flag else [option, "1", f"{other}=2"]
            result = hoicli(name, *words)
            if flag and not param.secondary_opts:
                assert "given twice" not in result.err
                continue
            assert (
                refused(result) == f"{name}: {'/'.join((*param.opts, *param.secondary_opts))} is given twice; keep one"
            )
            seen.add(option)
    assert seen >= {"-o", "--plot", "--gt", "--cache", "--errors"}


@pytest.mark.parametrize(("arguments", "name"), [
    (("eval", "--gt", GT, "--split", "", PREDICTIONS), "--split"),
    (("eval", "--gt", GT, "--image-list", "", PREDICTIONS), "--image-list"),
    (("eval", "--gt", "", PREDICTIONS), "--gt"),
    (("eval", "--gt", GT, PREDICTIONS, ""), "PREDS"),
    (("eval", "--gt", GT, "--tag", "seed=1", "--tag", "", PREDICTIONS), "--tag"),
    (("convert", "--split", "", GT), "--split"),
    (("table", "--sort", "", GT), "--sort"),
])  # fmt: skip
def test_an_empty_text_is_refused_with_its_option(hoicli: Hoicli, arguments: tuple[Any, ...], name: str) -> None:
    done = hoicli(*arguments)
    assert done.code == 2
    assert done.err == f"hoicli: {name}: is empty; give a value, or leave it out (an unset variable?)\n"


def test_tags_that_rows_have_by_another_option_are_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    figure = ("--plot-kind", "no-interaction", "--plot", tmp_path / "figure.svg")
    said = refusal(hoicli("diagnose", "--gt", GT, *figure, "--tag", "noint=1", PREDICTIONS), 2)
    assert "--tag noint: rows have a noint of their own" in said
    said = refusal(hoicli("eval", "--gt", GT, "--by", "camera", "--tag", "camera=1", PREDICTIONS), 2)
    assert "--tag camera: --by camera gives rows this tag" in said


DATA = ("--gt", "gt.jsonl", "preds.jsonl")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: MonkeyPatch) -> Path:
    """The fixtures, and a file of each other kind, in the working folder."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(GT, "gt.jsonl")
    shutil.copy(PREDICTIONS, "preds.jsonl")
    shutil.copy(PREDICTIONS, "other.jsonl")
    shutil.copytree(EIGHT / "images", "images")
    ids = [json.loads(line)["image_id"] for line in GT.read_text().splitlines()]
    Path("parts.txt").write_text("".join(f"{image_id}\tday\n" for image_id in ids))
    Path("own.json").write_text(json.dumps({"name": "own", "like": "diag"}))
    os.link("other.jsonl", "cell.png")
    os.link(IMAGE, "image.png")
    os.link(IMAGE, "image.html")
    return tmp_path


def contents() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


SLICE, PROTOCOL = ("--slice", "parts.txt"), ("--protocol", "own.json")
IMAGE = "images/" + sorted(path.name for path in (EIGHT / "images").iterdir())[0]
CALLS = [
    *((name, *SLICE, *DATA, "-o", "parts.txt") for name in ("eval", "match", "diagnose")),
    *((name, *PROTOCOL, *DATA, "-o", "own.json") for name in ("eval", "match", "diagnose", "confusion", "curves")),
    *(("compare", *options, *DATA, "other.jsonl", "-o", options[1]) for options in (SLICE, PROTOCOL)),
    ("show", "--images", "images", *DATA, "-o", "image.png"),
    ("corrupt", "--images", "images", "--save-images", "out", "--corruption", "jpeg", "gt.jsonl", "-o", IMAGE),
    ("mask", "--images", "images", "--save-images", "masked", "gt.jsonl", "-o", IMAGE),
]  # fmt: skip


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("words", CALLS, ids=" ".join)
@pytest.mark.parametrize("linked", [False, True], ids=["", "linked"])
def test_every_file_that_is_read_stays(hoicli: Hoicli, words: tuple[str, ...], linked: bool) -> None:
    Path("out").mkdir()
    Path("masked").mkdir()
    *words_, target = words
    if linked:
        name = f"linked{Path(target).suffix}"
        os.link(target, name)
        target = name
    before = contents()
    assert f"hoicli: {words[-2]} {target}: is an input, too (" in refusal(hoicli(*words_, target), 2).splitlines()[-1]
    assert contents() == before


def test_no_folder_for_temporary_files(hoicli: Hoicli, here: Path, monkeypatch: MonkeyPatch) -> None:
    dump = FIXTURES / "foreign/instances_test2015.json"
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", None)
        patch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(here / "nowhere")])
        result = hoicli("eval", "--gt", dump, "preds.jsonl")
    assert (result.code, result.out, result.err.count("\n")) == (1, "", 1)
    assert result.err.startswith("TMPDIR: no folder takes temporary files")
