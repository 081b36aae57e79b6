"""Answers to multiple-choice questions, read from any file that has them.

| a file of | is |
| --- | --- |
| `{file name: {"QA_0": [options]}}` | what the released scripts save (`merged_hoi_eval.json`) |
| rows `{file_name, question, options, response}`, JSONL or a list | the lines of `hoicli prompts` with a model's text |
| results of a batch (OpenAI) | the answers to requests made of the lines of `hoicli prompts` |
| `{file name: {h_boxes, o_boxes, ho_scores, ao_names}}` | a detector's output, as released |
| image records with scores, or a dump that `hoicli convert` reads | a detector's output |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hoicli.converters.containers.source import Source
from hoicli.converters.opening import Opening
from hoicli.converters.vlm.rows import first_line, is_row, lines_of, listed, parsed_lines
from hoicli.errors import DataError
from hoicli.io.messages import note
from hoicli.io.streams import Line, Stream
from hoicli.records.image import problems
from hoicli.records.intake import ErrorPolicy
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record, parse, short
from hoicli.vlm.bank import FIRST, Bank
from hoicli.vlm.detectors import DUMP_KEYS, Detected, Detector, Selection, of_dump, of_record
from hoicli.vlm.letters import Choice, RefusedError, read_choice, released_choice
from hoicli.vlm.replies import prompted, reply_of
from hoicli.vlm.results import Oddities
from hoicli.vocabulary.datasets import DATASETS

_UNASKED = "answers to questions that nobody asked, left out"
_REFUSED = "answers that are not read, which count as answered with nothing"

Key = tuple[str, str]
"""(image, name of the question)."""


@dataclass
class Answers:
    """The answers to the questions of a bank. given: the options that each answer names, in the order of the answer and
    as often as named; odd: what is wrong with others; refused: how many are not read. images: those of which the files
    say something; detected: whether a detector answers."""

    bank: Bank
    given: dict[Key, list[str]] = field(default_factory=dict)
    odd: Oddities = field(default_factory=Oddities)
    refused: int = 0
    images: set[str] = field(default_factory=set)
    detected: bool = False

    def add(self, key: Key, options: Sequence[str], place: str) -> None:
        """One answer; raises `DataError` for a question that has one."""
        if key in self.given:
            raise DataError(f"{' '.join(key)} is answered already; keep one answer a question", place=place)
        self.given[key] = list(options)
        self.images.add(key[0])

    @property
    def missing(self) -> int:
        """Questions without an answer."""
        return sum(question.key not in self.given for question in self.bank.questions)

    def report(self) -> None:
        """Say what was odd, and how many questions have no answer."""
        self.odd.report()
        if self.missing:
            count = len(self.bank.questions)
            note(f"{self.missing:,} of {count:,} questions have no answer: they count as answered with nothing")


def read_answers(
    sources: Sequence[Source],
    bank: Bank,
    policy: ErrorPolicy,
    opening: Opening,
    selection: Selection,
    *,
    released: bool,
) -> Answers:
    """The answers of all files. selection: which predictions of a detector count. released: answers in text are read as
    the released scripts read them, which refuse nothing. An answer that is refused is counted, and chooses nothing.
    Raises `DataError` for a bad row, unless the policy skips; then the question has no answer."""
    answers = Answers(bank)
    images: dict[str, Detected] = {}
    scores: list[Any] = []
    opening = _opening(opening, bank)
    for source in sources:
        form = _form(source)
        if form == "answers":
            for place, image_id, name, entry in _entries(source, bank, answers, policy):
                _add(answers, (image_id, name), entry, place, policy, released=released)
        else:
            answers.detected = True
            for place, image_id, detected in _detections(source, form, opening, policy):
                scores.append(detected.scores)
                if image_id in images:
                    policy.handle(DataError(f"{image_id!r} is there twice; keep one", place=place))
                elif image_id in bank.by_image:
                    images[image_id] = detected
                else:
                    answers.odd.count("images that no question is about, left out", place)
    if answers.detected:
        every = np.concatenate([*scores, np.zeros(0, dtype=np.float32)])
        for question, chosen in Detector(images, every, bank, selection, released).choices():
            answers.add(question.key, chosen, question.image_id)
    if not answers.given or (answers.refused and not any(answers.given.values())):
        refused = answers.odd.named.get(_REFUSED)
        problem = "no answer to a question of the file" if not answers.given else "no answer names an option"
        problem += f" (the first that is not read: {refused[1]})" if refused else ""
        names = ", ".join(source.path for source in sources)
        raise DataError(f"{problem}; give answers to these questions", place=names)
    return answers


def _opening(opening: Opening, bank: Bank) -> Opening:
    return replace(opening, dataset=bank.dataset) if bank.dataset in DATASETS and not opening.said else opening


def _form(source: Source) -> str:
    """answers, dump (of a detector, as released), records, or foreign: a dump of another format."""
    if source.kind in ("json-list", "json-text"):
        return "answers" if is_row(source.first_item) else "foreign"
    first = first_line(source)
    if isinstance(first, dict) and "hois" in first:
        return "records"
    if is_row(first):
        return "answers"
    if source.kind != "json-object":
        return "records" if source.kind == "json-lines" else "foreign"
    value = next(iter(source.mapping.values()), None)
    if isinstance(value, dict) and len(value.keys() & set(DUMP_KEYS)) > 1:
        return "dump"
    return "answers" if isinstance(value, dict | list | str) and not _is_foreign(source) else "foreign"


def _is_foreign(source: Source) -> bool:
    return bool(source.mapping.keys() & {"annotations", "images", "categories", "preds", "predictions", "outputs"})


# Answers in words


@dataclass(frozen=True)
class _Entry:
    """An answer, and what its letters stand for, None for options as the released scripts save them."""

    answer: Any
    labels: Mapping[str, str] | None


def _entries(
    source: Source, bank: Bank, answers: Answers, policy: ErrorPolicy
) -> Iterator[tuple[str, str, str, _Entry]]:
    """(place, image, question, answer) of every answer to a question of the bank."""
    rows = _rows(source, policy)
    if rows is None:
        for file_name, entry in source.mapping.items():
            place = f"{source.name}: {str(file_name)[:80]}"
            image_id = image_id_of(str(file_name))
            named = entry if isinstance(entry, dict) else {FIRST: entry}
            for name, answer in named.items():
                if name in bank.by_image.get(image_id, {}):
                    yield place, image_id, name, _Entry(answer, None)
                elif not str(name).endswith("_reasoning"):
                    answers.odd.count(_UNASKED, f"{place}: {str(name)[:40]}")
        return
    known = prompted(bank)
    for place, row in rows:
        try:
            reply = reply_of(row, bank, known)
        except DataError as error:
            policy.handle(DataError(error.problem, place=place, field=error.field))
            continue
        if reply.question is None:
            answers.odd.count(_UNASKED, f"{place}: {reply.asked}")
        elif reply.problem:
            answers.odd.count("batch results without an answer", f"{place}: {reply.problem}")
        else:
            yield place, *reply.question.key, _Entry(reply.answer, reply.labels)


def _rows(source: Source, policy: ErrorPolicy) -> Iterable[tuple[str, Any]] | None:
    """(place, row) of a list or of lines; None for an object by file name."""
    if source.is_list:
        return listed(source, policy)
    if source.kind == "json-lines" or is_row(first_line(source)):
        return parsed_lines(source, policy)
    return None


def _add(answers: Answers, key: Key, entry: _Entry, place: str, policy: ErrorPolicy, *, released: bool) -> None:
    question = answers.bank.by_image[key[0]][key[1]]
    try:
        if released:
            answers.add(key, released_choice(entry.answer, entry.labels or {}), place)
            return
        try:
            choice = read_choice(entry.answer, entry.labels or {}, question.options)
        except RefusedError as refusal:
            choice = Choice()
            answers.refused += 1
            answers.odd.count(_REFUSED, f"{place}: {short(entry.answer)}: {refusal}")
        for other in choice.others:
            answers.odd.count("choices of what was not offered, which count for nothing", f"{place}: {short(other)}")
        answers.add(key, (*choice.options, *choice.others), place)
    except DataError as error:
        policy.handle(DataError(error.problem, place=place, field=error.field))


# Detectors


def _detections(
    source: Source, form: str, opening: Opening, policy: ErrorPolicy
) -> Iterator[tuple[str, str, Detected]]:
    """(place, image, predictions) of every image of a detector's output."""
    if form == "dump":
        for file_name, entry in source.mapping.items():
            place = f"{source.name}: {str(file_name)[:80]}"
            yield from _sound(lambda: (image_id_of(str(file_name)), of_dump(entry)), place, policy)  # noqa: B023
        return
    foreign = form == "foreign"
    lines = Stream([source.path], "predictions", opening.predictions) if foreign else lines_of(source)
    for line in lines:
        yield from _sound(lambda: _of_line(line), line.place, policy)  # noqa: B023


def _of_line(line: Line) -> tuple[str, Detected]:
    record: Record = parse(line)
    if isinstance(record.get("hois"), list):  # an action without an object (V-COCO) is none of an interaction
        kept = [hoi for hoi in record["hois"] if not isinstance(hoi, dict) or hoi.get("object", 0) is not None]
        record = {**record, "hois": kept}
    for problem in problems(record, None, scored=True):
        raise problem.error(line.place)
    return str(record["image_id"]), of_record(record)


def _sound(
    read: Callable[[], tuple[str, Detected]], place: str, policy: ErrorPolicy
) -> Iterator[tuple[str, str, Detected]]:
    try:
        yield place, *read()
    except DataError as error:
        policy.handle(DataError(error.problem, place=place, field=error.field, code=error.code))
