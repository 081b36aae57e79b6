"""`vlm-eval`: which task it is, and options of another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.project import CHOICE, FIXTURES, Hoicli, dumped, refusal, saved


@pytest.mark.parametrize("kind", ["lines", "one line", "under a key"])
def test_every_container_tells(hoicli: Hoicli, tmp_path: Path, kind: str) -> None:
    rows = json.loads((CHOICE / "referred.json").read_text())[: 1 if kind == "one line" else None]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"results": rows}) if kind == "under a key" else "\n".join(map(json.dumps, rows)))
    assert hoicli("vlm-eval", path).out == hoicli("vlm-eval", "--task", "refer", path).out != ""


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (["--sim", "lexical", CHOICE / "grounded.json", "--task", "ground"], "--sim: not for --task ground"),
        (
            ["--questions", CHOICE / "scene.json", "--sim", "lexical", "--needed", "-"],
            "--sim, --needed: not for --task choice",
        ),
        (["--as-released", "crosshoi-bench", CHOICE / "grounded.json"], "--as-released crosshoi-bench: not for --task"),
        (
            ["--as-released", "hoi-benchmarks", "--questions", CHOICE / "scene.json", CHOICE / "answers.jsonl"],
            "--as-released hoi-benchmarks: not for --task choice",
        ),
        (["--task", "choice", CHOICE / "answers.jsonl"], "--task choice: give the questions with --questions FILE"),
    ],
)
def test_options_of_another_task_are_refused(hoicli: Hoicli, call: list[object], words: str) -> None:
    assert words in refusal(hoicli("vlm-eval", *call), 2)


def test_files_that_tell_no_task_are_refused(hoicli: Hoicli, tmp_path: Path) -> None:
    path = saved(tmp_path / "rows.json", '[{"file_name": "a.jpg"}]')
    for given in (path, FIXTURES / "vlm/answers.jsonl"):
        said = refusal(hoicli("vlm-eval", given))
        assert f"{given}: does not say what was asked; give --task" in said
        assert "detected interactions: hoicli convert --from vlm, then shoe-eval" in said


@pytest.mark.parametrize("name", ["grounded", "referred"])
def test_what_may_be_denied_is_refused(hoicli: Hoicli, tmp_path: Path, name: str) -> None:
    rows = json.loads((FIXTURES / f"choice/{name}.json").read_text())
    path = dumped(tmp_path / "answers.json", [{**rows[0], "present": False}, *rows[1:]])
    assert "present: is not read; leave out what is not there" in refusal(hoicli("vlm-eval", path))
