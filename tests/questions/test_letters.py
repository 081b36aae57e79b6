"""What an answer to a multiple-choice question chooses, as models write it; and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from hoicli.errors import DataError
from hoicli.questions.letters import Choice, read_choice, released_choice

LABELS = {
    "A": "ride a/an elephant",
    "B": "watch a/an elephant",
    "C": "no_interaction with a/an elephant",
    "D": "feed a/an elephant",
}
OPTIONS = list(LABELS.values())


def chosen(choice: Choice) -> str:
    """The letters of the chosen options, and behind a + what was not offered; ? for no answer."""
    letters = "".join(letter for letter, option in LABELS.items() if option in choice.options)
    return "?" if choice.silent else letters + "".join(f"+{other}" for other in choice.others)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # letters alone
        ("A, C", "AC"), ("A,C.", "AC"), ("a, c", "AC"), ("(A) and (C)", "AC"), ("A", "A"), ("A.", "A"), ("BD", "BD"),
        ("A B", "AB"), ("A/B", "AB"), ("[A, B]", "AB"), ("**A**, **D**", "AD"), ("Both A and B", "AB"),
        ("A\nC\n", "AC"),
        ("- A\n- C", "AC"), ("A,A,B", "AB"), ("C, A", "AC"),
        # none of them, and all
        ("none", ""), ("None of the above.", ""), ("None of the options apply", ""), ("[]", ""), ("N/A", ""),
        ("All of the above", "ABCD"), ("all", "ABCD"),
        # JSON
        ('["A","C"]', "AC"), ('{"answer": ["A", "D"]}', "AD"), ('{"answer": "A, D"}', "AD"), ('{"answer": []}', ""),
        ('```json\n["B"]\n```', "B"), ('```\nA, B\n```', "AB"),
        (["A", "D"], "AD"), (["ride a/an elephant"], "A"), ([], ""),
        ({"choices": ["B"]}, "B"), ({"answer": "None"}, ""),
        # the words of options
        ("ride an elephant, watch a/an elephant", "AB"), ("Feed the elephant", "D"), ("feed elephant", "D"),
        ("no interaction with the elephant", "C"), ("A) ride an elephant and C) no_interaction with elephant", "AC"),
        ("A: ride an elephant\nD: feed an elephant", "AD"), ("A. ride elephant", "A"),
        # prose
        ("The person is riding, so A and B are right.", "AB"), ("Options A and B apply", "AB"),
        ("B, and A are correct", "AB"),
        ("I would choose (B).", "B"), ("The person is not feeding the elephant. A) ride an elephant", "A"),
        ("The correct answers are: **A** and **B**.", "AB"),
        # a conclusion
        ("The answer is A and C.", "AC"), ("**Answer:** A, C\nExplanation: B is not shown.", "AC"),
        ("Answer:\n- A\n- C", "AC"),
        ("First, B looks wrong. Final answer: A", "A"), ("\\boxed{A,B}", "AB"), ("Answer: none", ""),
        ("<answer>A,B</answer> Reasoning: C is wrong", "AB"), ("Reasoning: D?\n<answer>B</answer>", "B"),
        ("<think>Perhaps B or C.</think>\nA", "A"), ("<think>no end, B", "?"),
        # not offered
        ("E", "+E"), ("A, E", "A+E"), ("A) ride an elephant, F) swim", "A+F"), (["A", "swim"], "A+swim"),
        # no answer
        ("", "?"), ("I cannot help with that.", "?"), ("A man on an elephant.", "?"), ("I think he rides.", "?"),
        (None, "?"),
        (True, "?"), ({"a": 1}, "?"), ([["A"]], "?"), ("1, 2", "?"), ("riding", "?"),
    ],
)  # fmt: skip
def test_what_is_chosen(answer: Any, expected: str) -> None:
    assert chosen(read_choice(answer, LABELS, OPTIONS)) == expected


@pytest.mark.parametrize(
    ("answer", "first", "second"),
    [
        ("A or B", "ride a/an elephant", "watch a/an elephant"),
        ("It is either A or B", "ride a/an elephant, watch a/an elephant", "none"),
        ("A and D; B is not shown.", ", ".join(OPTIONS[:2] + OPTIONS[3:]), "ride a/an elephant, feed a/an elephant"),
        ("A) watch an elephant", "ride a/an elephant", "watch a/an elephant"),
        ("<answer>A</answer>\n<answer>B</answer>", "ride a/an elephant", "watch a/an elephant"),
        ("Answer: A. On reflection, the answer is B.", "ride a/an elephant", "watch a/an elephant"),
        ("Option A. They feed an elephant.", "ride a/an elephant", "feed a/an elephant"),
        ("No interaction", "none", "no_interaction with elephant"),
        ("maybe D", "feed a/an elephant", "none"),
    ],
)  # fmt: skip
def test_what_can_be_read_in_two_ways(answer: str, first: str, second: str) -> None:
    with pytest.raises(DataError) as raised:
        read_choice(answer, LABELS, OPTIONS)
    assert f"two ways, {first!r} and {second!r};" in str(raised.value)


def test_numbers_in_place_of_letters() -> None:
    labels = {"1": "ride", "2": "feed", "10": "hug"}
    for answer, options in (
        ("1, 2", ("ride", "feed")),
        ("(10)", ("hug",)),
        (2, ("feed",)),
        ("2 people feed", ("feed",)),
    ):
        assert read_choice(answer, labels, list(labels.values())).options == options


@pytest.mark.parametrize(
    "key",
    ["answer", "answers", "choice", "choices", "letters", "letter", "options", "option", "selected", "final_answer"],
)
def test_the_keys_of_an_answer(key: str) -> None:
    assert read_choice({"why": "B", key: ["A"]}, LABELS, OPTIONS).options == (OPTIONS[0],)
    assert read_choice({key.upper(): "A"}, LABELS, OPTIONS).options == (OPTIONS[0],)


def test_items_are_options_in_any_spelling() -> None:
    assert read_choice([OPTIONS[1], OPTIONS[0].upper()], LABELS, OPTIONS).options == tuple(OPTIONS[:2])
    assert read_choice([OPTIONS[0].replace("_", " "), "B"], LABELS, OPTIONS).options == tuple(OPTIONS[:2])


def test_letters_that_nobody_explained() -> None:
    assert read_choice("ride an elephant", {}, OPTIONS).options == (OPTIONS[0],)
    with pytest.raises(DataError, match="nothing says what they stand for"):
        read_choice("A, B", {}, OPTIONS)


def test_none_as_an_option() -> None:
    """Where it only fills the list it says that none is right; three published questions have it as their own."""
    assert read_choice("D", {"A": "x", "D": "None"}, ["x"]) == Choice()
    assert read_choice("none", {"A": "x", "D": "None"}, ["x", "None"]).options == ("None",)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A, c.", "AC"),
        ("A and C", ""),
        ("(A)", ""),
        ("A, A, E", "AA"),
        ("<answer>A, b</answer>", "AB"),
        ("<think>C</think> B", "B"),
    ],
)
def test_as_the_released_scripts_read(answer: str, expected: str) -> None:
    assert released_choice(answer, LABELS) == [LABELS[letter] for letter in expected]


def test_the_released_scripts_take_all_spaces_out_of_a_tagged_answer() -> None:
    assert released_choice("<answer> A B, C </answer>", {**LABELS, "AB": "hug"}) == ["hug", LABELS["C"]]
