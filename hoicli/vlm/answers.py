"""Answers to multiple-choice questions, read from any file that has them.

| a file of | is |
| --- | --- |
| `{file name: {"QA_0": [options]}}` | what the released scripts save (`merged_hoi_eval.json`) |
| rows `{file_name, question, options, response}`, JSONL or a list | the lines of `hoicli prompts` with a model's text |
| results of a batch (OpenAI) | the answers to requests made of the lines of `hoicli prompts` |
| `{file name: {h_boxes, o_boxes, ho_scores, ao_names}}` | a detector's output, as released |
| image records with scores | a detector's output |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.vlm.rows import answer_in, failure_in, image_named_in, rows_in
from hoicli.errors import DataError, Place
from hoicli.io.messages import note
from hoicli.records.image import problems
from hoicli.records.intake import ErrorPolicy
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record, parse, short
from hoicli.vlm.bank import FIRST, PADDING, Bank, Question
from hoicli.vlm.detectors import DUMP_KEYS, Detected, choices, of_dump, of_record
from hoicli.vlm.letters import Choice, Reader, RefusedError, released_choice
from hoicli.vlm.prompts import lettered, request_id
from hoicli.vlm.results import Oddities

_REFUSED = "answers that are not understood, which count as empty"

Key = tuple[str, str]
"""(image, name of the question)."""


@dataclass
class Answers:
    """The answers to the questions of a bank. given: the options that each answer names, in the order of the answer and
    as often as named; odd: what is wrong with others; refused: how many are not read; detected: whether a detector
    answers."""

    bank: Bank
    given: dict[Key, list[str]] = field(default_factory=dict)
    odd: Oddities = field(default_factory=Oddities)
    refused: int = 0
    detected: bool = False

    def add(self, key: Key, options: Sequence[str], place: str) -> None:
        """One answer; raises `DataError` for a question that has one."""
        if key in self.given:
            raise DataError(f"{' '.join(key)} is answered already; keep one answer a question", place=place)
        self.given[key] = list(options)

    @property
    def missing(self) -> int:
        """Questions without an answer."""
        return sum(question.key not in self.given for question in self.bank.questions)


def read_answers(sources: Sequence[Source], bank: Bank, policy: ErrorPolicy, *, released: bool) -> Answers:
    """The answers of all files; what is odd is said. released: answers in text are read as the released scripts read
    them, which refuse nothing. An answer that is refused is counted, and chooses nothing. Raises `DataError` for a bad
    row, unless the policy skips; then the question has no answer."""
    answers = Answers(bank)
    known = {request_id(bank.setting, question): question for question in bank.questions}
    found: dict[str, Detected] = {}
    for source in sources:
        if (form := _form(source)) == "text":
            for place, row in rows_in(source, policy) or _by_file_name(source):
                with policy.item(place):
                    _add_row(row, place, answers, known, released=released)
            continue
        answers.detected = True
        for place, image_id, detected in _detections(source, form, policy):
            if image_id in found:
                policy.handle(DataError(f"{image_id!r} is there twice; keep one", place=place))
            else:
                found[image_id] = detected
            if image_id not in bank.by_image:
                answers.odd.count("images that no question is about, left out", place)
    for question, chosen in choices(found, bank, released=released):
        answers.add(question.key, chosen, question.image_id)
    if not answers.given or (answers.refused and not any(answers.given.values())):
        refused = answers.odd.named.get(_REFUSED)
        problem = "no answer to a question of the file" if not answers.given else "no answer names an option"
        problem += f" (the first that is not read: {refused[1]})" if refused else ""
        names = ", ".join(source.path for source in sources)
        raise DataError(f"{problem}; give answers to these questions", place=names)
    answers.odd.report()
    if answers.missing:
        count = len(bank.questions)
        note(f"{answers.missing:,} of {count:,} questions have no answer: they count as empty answers")
    return answers


def _form(source: Source) -> str:
    """text, dump (of a detector, as released), or records."""
    first = None if source.is_list else source.first_line()
    if isinstance(first, dict) and "hois" in first:
        return "records"
    value = next(iter(source.mapping.values()), None) if source.kind == "json-object" else None
    return "dump" if isinstance(value, dict) and len(value.keys() & set(DUMP_KEYS)) > 1 else "text"


# Answers in words


def _by_file_name(source: Source) -> Iterator[tuple[str, Any]]:
    """(place, row) of each answer in an object by file name."""
    for file_name, entry in source.mapping.items():
        for name, answer in (entry if isinstance(entry, dict) else {FIRST: entry}).items():
            if not str(name).endswith("_reasoning"):
                row = {"file_name": str(file_name), "question": name, "response": answer}
                yield Place.of(source.name, str(file_name)[:80]), row


def _add_row(row: Any, place: str, answers: Answers, known: Mapping[str, Question], *, released: bool) -> None:
    """Add the answer of a line of `hoicli prompts` with the model's text, or of a batch's result with its `custom_id`.
    Raises `DataError` for a row that does not say what it answers, or has no answer.

    Letters are those of the row's `options`, or of the prompt whose id it has. With the question's name alone they
    could be those of anybody's prompt, since every script has an order of its own."""
    bank = answers.bank
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
            what = "answers to questions that nobody asked, left out"
            answers.odd.count(what, f"{place}: {image_id[:80]} {short(name)}")
            return
        question = asked[name]
    if why := failure_in(row):
        answers.odd.count("batch results without an answer", f"{place}: {why}")
        return
    answer = answer_in(row)[1]
    if "options" in row:
        labels = _labels(row["options"], question)
    if released:
        answers.add(question.key, released_choice(answer, labels), place)
        return
    try:
        choice = Reader(labels, question.options).read(answer)
    except RefusedError as refusal:
        choice = Choice()
        answers.refused += 1
        answers.odd.count(_REFUSED, f"{place}: {short(answer)}: {refusal}")
    for other in choice.others:
        answers.odd.count("choices that were not offered, which count for nothing", f"{place}: {short(other)}")
    answers.add(question.key, (*choice.options, *choice.others), place)


def _labels(options: Any, question: Question) -> dict[str, str]:
    """What letters stand for; raises `DataError` where that is no option of the question."""
    if isinstance(options, list) and len(options) <= 26:
        options = {chr(ord("A") + at): option for at, option in enumerate(options)}
    if not isinstance(options, dict) or not all(isinstance(text, str) for text in options.values()):
        raise DataError("is no object of letters and options", field="options")
    shown = [text for text in options.values() if text != PADDING]
    problem = ""
    if strange := [text for text in shown if text not in question.listed]:
        problem = f"{short(strange[0])} is no option of the question; are the files of one setting?"
    elif len(set(shown)) < len(shown):
        problem = "several letters stand for one option"
    elif shown and (missing := set(question.listed) - {PADDING, *shown}):
        problem = f"without {short(min(missing))}, an option of the question; give all that were shown"
    if problem:
        raise DataError(problem, field="options")
    return {str(label).upper(): text for label, text in options.items()}


# Detectors


def _detections(source: Source, form: str, policy: ErrorPolicy) -> Iterator[tuple[str, str, Detected]]:
    """(place, image, predictions) of every image of a detector's output."""
    for name, entry in source.mapping.items() if form == "dump" else ():
        place = Place.of(source.name, name[:80])
        with policy.item(place):
            yield place, image_id_of(name), of_dump(entry)
    for line in source.lines() if form == "records" else ():
        with policy.item():
            record: Record = parse(line)
            if isinstance(record.get("hois"), list):  # an action without an object (V-COCO) is none of an interaction
                kept = [hoi for hoi in record["hois"] if not isinstance(hoi, dict) or hoi.get("object", 0) is not None]
                record = {**record, "hois": kept}
            for problem in problems(record, None, scored=True):
                raise problem.error(line.place)
            yield line.place, str(record["image_id"]), of_record(record)
