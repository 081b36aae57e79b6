"""Replies of a vision-language model to multiple-choice questions: which question a row is about, and what its letters
stand for. A row is a line of `hoicli prompts` with the model's text, or the result of a batch with its `custom_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hoicli.converters.vlm.rows import answer_in, failure_in, image_named_in
from hoicli.errors import DataError
from hoicli.records.parsing import short
from hoicli.vlm.bank import FIRST, PADDING, Bank, Question
from hoicli.vlm.prompts import lettered, request_id

Prompted = Mapping[str, Question]
"""The questions of a bank by the ids of their prompts."""


@dataclass(frozen=True)
class Reply:
    """asked: what the row answers, in words; question: None for one that the bank does not have; answer: the model's
    text, or what stands for it; labels: the option of each letter, empty where it is not known; problem: why a batch
    has no answer."""

    asked: str
    question: Question | None = None
    answer: Any = None
    labels: Mapping[str, str] | None = None
    problem: str = ""


def prompted(bank: Bank) -> Prompted:
    """The questions that `hoicli prompts` can ask, by the ids of their prompts."""
    found = {}
    for question in bank.questions:
        try:
            found[request_id(bank.setting, question)] = question
        except DataError:  # more options than letters: it has no prompt
            continue
    return found


def reply_of(row: Any, bank: Bank, known: Prompted) -> Reply:
    """What a row replies to. Raises `DataError` for one that does not say it, or has no answer.

    Letters are those of the row's `options`, or of the prompt whose id it has. With the question's name alone they
    could be those of anybody's prompt, since every script has an order of its own."""
    if not isinstance(row, dict):
        raise DataError(f"{short(row)} is no row of an answer; a row is an object")
    setting = row.get("setting", bank.setting)
    if setting != bank.setting:
        raise DataError(f"{short(setting)}, but the questions are of the setting {bank.setting}", field="setting")
    custom_id = row.get("custom_id")
    question = known.get(custom_id) if isinstance(custom_id, str) else None
    labels = {} if question is None else lettered(question)
    if question is None:
        image_id = str(image_named_in(row)[0])
        asked = bank.by_image.get(image_id, {})
        name = row.get("question", FIRST if len(asked) < 2 else None)
        if name is None:
            raise DataError(f"missing; {image_id} has {len(asked)} questions", field="question")
        if not isinstance(name, str) or name not in asked:
            return Reply(f"{image_id[:80]} {short(name)}")
        question = asked[name]
    if why := failure_in(row):
        return Reply(question.name, question, problem=why)
    answer = answer_in(row)[1]
    if "options" in row:
        labels = _labels(row["options"], question)
    return Reply(question.name, question, answer, labels)


def _labels(options: Any, question: Question) -> dict[str, str]:
    """What letters stand for; raises `DataError` where that is no option of the question."""
    if isinstance(options, list):
        options = {chr(ord("A") + at): option for at, option in enumerate(options)} if len(options) <= 26 else None
    if not isinstance(options, dict) or not all(isinstance(text, str) for text in options.values()):
        raise DataError("is no object of letters and options", field="options")
    strange = [text for text in options.values() if text not in question.listed and text != PADDING]
    if strange:
        raise DataError(
            f"{short(strange[0])} is no option of the question; are the files of one setting?", field="options"
        )
    shown = [text for text in options.values() if text != PADDING]
    if len(set(shown)) < len(shown):
        raise DataError("several letters stand for one option", field="options")
    if shown and (missing := set(question.listed) - {PADDING, *shown}):
        problem = f"without {short(min(missing))}, an option of the question; give all that were shown"
        raise DataError(problem, field="options")
    return {str(label).upper(): text for label, text in options.items()}
