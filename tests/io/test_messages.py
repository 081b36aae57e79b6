"""What is said on stderr: as text, only errors, or as JSON; errors as data, and one list of their codes; and a bar for
a piece of work, where a terminal shows it."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path

import pytest

import hoicli as package
from hoicli.errors import CODES, DataError, HoicliError, Place, UsageError
from hoicli.io import messages
from hoicli.io.messages import Progress, kept_notes, note, set_log_options
from hoicli.validation.findings import ERRORS
from tests.support.project import GT, PREDICTIONS, ROOT, Hoicli, MonkeyPatch, parsed, saved
from tests.support.readme import DOCS

EVERY_CODE = [code for codes in CODES.values() for code in codes]
EVAL = ("eval", "--gt", GT, "--protocol", "hico")


def test_each_code_is_listed_once_and_has_an_example() -> None:
    """The examples of the page are run by tests/project/test_readme.py."""
    shown = re.findall(r'^{"level":"error","code":"([a-z-]+)"', (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert set(shown) == set(EVERY_CODE)
    assert len(EVERY_CODE) == len(set(EVERY_CODE))
    sources = "".join(path.read_text() for path in (ROOT / "hoicli").rglob("*.py"))
    assert set(re.findall(r'\bcode="([^"]*)"', sources)) <= set(EVERY_CODE)
    assert set(ERRORS) - {"no-scores"} <= set(EVERY_CODE)  # of which eval tells at its first line: malformed


@pytest.mark.parametrize(
    ("error", "data"),
    [
        (
            DataError("is no box; give 4 numbers; or none", place=Place.in_file("a;b.jsonl", 7), field="boxes[0]"),
            ("malformed", "a;b.jsonl", 7, "boxes[0]", "is no box", "give 4 numbers; or none"),
        ),
        (
            DataError("the image's 'a; b\\'; c' is unknown; name another", place="f", code="unknown-image"),
            ("unknown-image", "f", None, None, "the image's 'a; b\\'; c' is unknown", "name another"),
        ),
        (DataError("is bad", place=Place("image 5")), ("malformed", None, None, None, "is bad", None)),
        (UsageError("--top 0: give 1"), ("bad-call", None, None, None, "--top 0: give 1", None)),
    ],
)
def test_an_error_has_its_parts(error: HoicliError, data: tuple[object, ...]) -> None:
    assert tuple(error.data().values()) == data
    assert pickle.loads(pickle.dumps(error)).data() == error.data()
    if isinstance(error, DataError):
        assert error.add_place("elsewhere").data() == error.data()


def test_quiet_says_errors_alone(hoicli: Hoicli, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    loud, quiet = hoicli(*EVAL, PREDICTIONS), hoicli(*EVAL, PREDICTIONS, "--quiet")
    missed, absent = loud.err.splitlines()
    assert missed == "hoicli: 1 of 8 ground-truth images have no predictions: their triplets are missed"
    assert absent.endswith(" of 600 classes have no ground truth and count 0 in the mean")
    assert (quiet.code, quiet.out, quiet.err) == (0, loud.out, "")
    assert hoicli(*EVAL, "gone", "--quiet").err == "gone: no such file; check the path\n"
    assert hoicli(*EVAL, PREDICTIONS).err == loud.err
    with set_log_options(["--quiet"]):
        note("never")
        note("the explorer is at http://localhost", requested=True)
    assert capfdbinary.readouterr().err == b"hoicli: the explorer is at http://localhost\n"


def test_an_option_before_the_command_is_none_of_the_commands(hoicli: Hoicli) -> None:
    said = hoicli("--quiet", "eval").err
    assert said == "hoicli: No such option: --quiet (hoicli --help shows how)\n"


def test_json_has_what_the_text_has(hoicli: Hoicli, tmp_path: Path) -> None:
    text = hoicli(*EVAL, PREDICTIONS)
    logged = hoicli(*EVAL, "--log=json", PREDICTIONS)
    assert (logged.code, logged.out) == (0, text.out)
    said = [line.removeprefix("hoicli: ") for line in text.err.splitlines()]
    assert parsed(logged.err) == [{"level": "note", "message": line} for line in said]
    broken = saved(tmp_path / "broken.jsonl", PREDICTIONS.read_text().replace('"score"', '"skore"'))
    (error,) = parsed(hoicli(*EVAL, "--log", "json", broken).err)
    assert (error["code"], error["file"], error["line"]) == ("malformed", str(broken), 1)
    with pytest.raises(DataError) as raised:
        package.evaluate(GT, broken, protocol="hico")
    assert raised.value.data() == {key: value for key, value in error.items() if key != "level"}


@pytest.mark.parametrize("words", [["evl"], ["eval", "--gtt"], ["eval", "--top-k", "x"], ["eval", "--log", "xml"]])
def test_wrong_calls_are_json_too(hoicli: Hoicli, words: list[str]) -> None:
    result = hoicli(*words, "--log", "json")
    assert (result.code, json.loads(result.err)["code"]) == (2, "bad-call")


def test_lines_of_json_come_without_a_terminal(monkeypatch: MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(messages, "PROGRESS_SECONDS", 0.0)
    with set_log_options(["--log", "json"]), Progress("reading\x1b", total=7, unit=" images") as reading:
        reading.advance_to(3)
        reading.advance_to(5)
        reading.advance_to(1)
        reading.advance(2)
    with set_log_options(["--log", "json", "--quiet"]), Progress("reading", total=7) as reading:
        reading.advance_to(3)
    about = {"level": "progress", "label": r"reading\x1b", "total": 7, "unit": "images"}
    assert parsed(capsys.readouterr().err) == [about | {"done": done} for done in (3, 5, 7)]


def test_nothing_shows_where_no_terminal_does(monkeypatch: MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("tqdm.tqdm", lambda **_: pytest.fail("a bar"))

    def work() -> None:
        with Progress("reading", total=1) as reading:
            reading.advance_to(1)

    work()
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with kept_notes():
        work()
    assert capsys.readouterr().err == ""
