"""What an answer to a multiple-choice question chooses, and that everything else is refused; and which task `vlm-eval`
is asked for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hoicli.errors import DataError
from hoicli.vlm.letters import LONGEST, Choice, Reader, RefusedError, released_choice
from tests.support.project import CHOICE, FIXTURES, Hoicli, dumped, refusal, saved

LABELS = {
    "A": "ride a/an elephant",
    "B": "watch a/an elephant",
    "C": "no_interaction with a/an elephant",
    "D": "feed a/an elephant",
}
OPTIONS = list(LABELS.values())
RESTATED = "".join(f"({letter}) {option}\n" for letter, option in LABELS.items())


def chosen(choice: Choice) -> str:
    """The letters of the chosen options, and behind a + what was not offered."""
    letters = "".join(letter for letter, option in LABELS.items() if option in choice.options)
    return letters + "".join(f"+{other}" for other in choice.others)


@pytest.mark.parametrize(("answer", "expected"), [
    # letters alone
    ("A, C", "AC"), ("A,C.", "AC"), ("a, c", "AC"), ("(A) and (C)", "AC"), ("A", "A"), ("A.", "A"), ("BD", "BD"),
    ("[A, B]", "AB"), ("**A**, **D**", "AD"), ("A, B and C", "ABC"), ("A\nC\n", "AC"), ("(A, B)", "AB"),
    ("- A\n- C", "AC"), ("A,A,B", "AB"), ("C, A", "AC"), ("A, B, C, D", "ABCD"),
    # none of them
    ("none", ""), ("None of the above.", ""), ("none of the options", ""), ("[]", ""), ("N/A", ""),
    # JSON
    ('["A","C"]', "AC"), ('{"answer": ["A", "D"]}', "AD"), ('{"answer": "A, D"}', "AD"), ('{"answer": []}', ""),
    ('{"reasoning": "B is not shown.", "answer": "A"}', "A"),
    ('```json\n["B"]\n```', "B"), ('```\nA, B\n```', "AB"), ('<think>C</think>```json\n{"answer": "B"}\n```', "B"),
    (["A", "D"], "AD"), ([OPTIONS[1], OPTIONS[0].upper(), OPTIONS[2].replace("_", " ")], "ABC"), ([], ""),
    ({"choices": ["B"]}, "B"), ({"answer": "None"}, ""), (["None", "B"], "B"),
    # the words of options
    ("ride an elephant, watch a/an elephant", "AB"), ("Feed the elephant", "D"), ("feed elephant", "D"),
    ("no interaction with the elephant", "C"), ("A) ride an elephant and C) no_interaction with elephant", "AC"),
    ("A: ride an elephant\nD: feed an elephant", "AD"), ("A. ride elephant", "A"),
    # a marked conclusion
    ("The man rides; B looks wrong.\nAnswer: A, C", "AC"), ("Final answer: (A)", "A"), ("**Answer:** A", "A"),
    (f"{RESTATED}Answer: A", "A"), ("Not B. \\boxed{A,B}", "AB"), ("so $\\boxed{A}$.", "A"), ("Answer: none", ""),
    ("Reasoning: D?\n<answer>B</answer>", "B"), ("<answer>A</answer>\n<answer>A</answer>", "A"),
    ("<think>Perhaps B or C.</think>\nA", "A"),
    # typographic signs
    ("\u201cA\u201d", "A"), ("A)\u00a0ride an elephant", "A"), ("\u2018Feed the\u00a0elephant\u2019", "D"),
    ("\uff21, \uff22", "AB"),
    # not offered
    ("E", "+E"), ("A, E", "A+E"), (["A", "swim"], "A+swim"),
])  # fmt: skip
def test_what_is_chosen(answer: Any, expected: str) -> None:
    assert chosen(Reader(LABELS, OPTIONS).read(answer)) == expected


@pytest.mark.parametrize("answer", [
    # what a reader of prose once read, some of it as its opposite
    "A (80%), B (20%)", "A=1, B=0, C=0, D=0", "A ✓, B ✗", "✅ A\n❌ B", "A: Y, B: N", "A: 1, B: 0", "A to C", "A-C",
    "I choose none, although A is close", f"{RESTATED}I choose A.", RESTATED,
    "Options B, C, D can be excluded, leaving A", "Present: A. Absent: B, C, D.", "none of A, B, C, D", "A, none",
    "Answer: B. Actually, wait, A.", "Answer: A\nAnswer: B", "**Answer:** A, C\nExplanation: B is not shown.",
    "Hold a horse? No. Ride a horse? Yes.", "Ride an elephant? No.", "not A", "A or B", "A/B", "maybe D",
    "The person is riding, so A and B are right.", "The answer is A.", "A and D; B is not shown.",
    "A) watch an elephant", "Option A. They feed an elephant.", "No interaction", "All of the above",
    "<answer>A</answer>\n<answer>B</answer>", "<answer>A</answer> Or rather B.", "<answer>not A</answer>",
    "| option | present |\n|---|---|\n| A | no |", "A" * 9, "A, " * LONGEST,
    # JSON of another shape
    {"A": "yes", "B": "no"}, {"answer": "A", "present": False}, {"answer": {"A": True}}, [["A"]], {"a": 1},
    {"answer": "A", "choice": "B"}, {"rejected": ["A"]}, {"answer": "A", "rejected": ["B"]}, '{"answer": NaN}',
    '{"answer": "A", "answer": "B"}', '{"A": 1, "B": 0}', [{"A": 1}], [True], True, None,
    # no answer
    "", "I cannot help with that.", "A man on an elephant.", "1, 2", "riding", "<think>no end, B",
])  # fmt: skip
def test_what_is_refused(answer: Any) -> None:
    with pytest.raises(RefusedError):
        Reader(LABELS, OPTIONS).read(answer)


@pytest.mark.parametrize("key", ["answer", "answers", "choice", "choices", "letters", "letter", "selected"])
def test_the_keys_of_an_answer(key: str) -> None:
    assert Reader(LABELS, OPTIONS).read({"reason": "B", key: ["A"]}).options == (OPTIONS[0],)
    assert Reader(LABELS, OPTIONS).read({key.upper(): "A"}).options == (OPTIONS[0],)


def test_letters_that_nobody_explained() -> None:
    assert Reader({}, OPTIONS).read("ride an elephant").options == (OPTIONS[0],)
    with pytest.raises(DataError, match="nothing says what they stand for"):
        Reader({}, OPTIONS).read("A, B")


def test_none_as_an_option() -> None:
    """Where it only fills the list it says that none is right; three published questions have it as their own."""
    assert Reader({"A": "x", "D": "None"}, ["x"]).read("D") == Choice()
    assert Reader({"A": "x", "D": "None"}, ["x", "None"]).read("none").options == ("None",)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("A, c.", "AC"), ("A and C", ""), ("(A)", ""), ("A, A, E", "AA"), ("<answer>A, b</answer>", "AB"),
     ("<think>C</think> B", "B"), ("<answer> A B, C </answer>", "C")],
)  # fmt: skip
def test_as_the_released_scripts_read(answer: str, expected: str) -> None:
    assert released_choice(answer, LABELS) == [LABELS[letter] for letter in expected]


@pytest.mark.parametrize("kind", ["lines", "one line", "under a key"])
def test_every_container_tells(hoicli: Hoicli, tmp_path: Path, kind: str) -> None:
    rows = json.loads((CHOICE / "referred.json").read_text())[: 1 if kind == "one line" else None]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"results": rows}) if kind == "under a key" else "\n".join(map(json.dumps, rows)))
    assert hoicli("vlm-eval", path).out == hoicli("vlm-eval", "--task", "refer", path).out != ""


@pytest.mark.parametrize(("call", "words"), [
    (["--sim", "lexical", CHOICE / "grounded.json", "--task", "ground"], "--sim: not for --task ground"),
    (["--questions", CHOICE / "scene.json", "--sim", "lexical", "--needed", "-"],
     "--sim, --needed: not for --task choice"),
    (["--as-released", "crosshoi-bench", CHOICE / "grounded.json"], "--as-released crosshoi-bench: not for --task"),
    (["--as-released", "hoi-benchmarks", "--questions", CHOICE / "scene.json", CHOICE / "answers.jsonl"],
     "--as-released hoi-benchmarks: not for --task choice"),
    (["--task", "choice", CHOICE / "answers.jsonl"], "--task choice: give the questions with --questions FILE"),
])  # fmt: skip
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
