"""Multiple-choice questions as prompts for a vision-language model, whose answers `vlm-eval` reads.

The words are ours, the options are the benchmark's. Its own script mixes them at random in every run; here their order
is one that looks random and depends on the question alone. Where there are fewer than four, one `None` follows; its own
script adds as many as are missing. So `request_id` says what the letters of an answer stand for, without the prompt.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterator, Sequence

import orjson

from hoicli.converters.context import Context
from hoicli.converters.images import read_image_list
from hoicli.converters.vlm.frames import Frame
from hoicli.converters.vlm.prompts import coords_of, reply_format
from hoicli.errors import DataError, Place, arg
from hoicli.io.messages import note
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record
from hoicli.vlm.bank import FEWEST, PADDING, Bank, Question, read_bank
from hoicli.vlm.letters import shown
from hoicli.vocabulary.datasets import load

SYSTEM = "You answer multiple-choice questions about photographs. Your whole reply is the letters of the right options."

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What every provider takes as the id of a request."""
_ASKED = {
    "scene": "What do people do in this image?",
    "person": "One person is marked: box {person}. What does this person do?",
    "pair": "A person and an object are marked: the person is box {person}, the object is box {other}.\n"
    "What does this person do with this object?",
}
_AMONG_PEOPLE = {
    "scene": "What do people do to one another in this image?",
    "person": "One person is marked: box {person}. What does this person do to others?",
    "pair": "Two people are marked: the first is box {person}, the second is box {other}.\n"
    "What does the first do to the second?",
}
_REPLY = (
    "Several options can be right. Reply with the letters of all that are, with commas between (for example: A,C); "
    "if none is, reply with the word none."
)


def lettered(question: Question) -> dict[str, str]:
    """The options by letter, in the order of the prompt."""
    options = list(question.options)
    if len(question.listed) < FEWEST and PADDING not in options:
        options.append(PADDING)
    return dict(zip(string.ascii_uppercase, options, strict=False))


def request_id(setting: str, question: Question) -> str:
    """The id of a question's prompt: image, name, and eight digits of the setting and of the options by letter, so that
    no prompt with other letters has it; a digest alone where providers take no such id."""
    content = orjson.dumps([setting, *question.key, list(lettered(question).values())])
    digest = hashlib.sha256(content).hexdigest()
    named = "-".join((*question.key, digest[:8]))
    return named if _PLAIN.fullmatch(named) else f"choice-{digest[:40]}"


def prompt_of(bank: Bank, question: Question, frame: Frame, size: tuple[float, float] | None) -> Record:
    """The line of a question: image_id, file_name, question, custom_id (`request_id`), setting, options by letter,
    coords, system, prompt, response_format. Raises `DataError` where boxes need the image's size, which is None."""
    options = lettered(question)
    asked = (_AMONG_PEOPLE if bank.dataset == "swig" else _ASKED)[bank.setting]
    lines = []
    if bank.setting != "scene":
        if size is None and frame.kind != "pixels":
            problem = f"the image's size is not known; give ground truth that has it with {arg('image_list')}"
            raise DataError(f"{problem}, or use {arg('coords', 'pixels')}")
        person, other = (box and frame.from_pixels(box, size) for box in (question.human, question.other))
        asked = asked.format(person=person, other=other)
        lines.append(coords_of(frame, size))
    lines += [asked, *(f"({letter}) {shown(option)}" for letter, option in options.items()), _REPLY]
    letters = {"type": "array", "items": {"type": "string", "enum": list(options)}}
    return {
        "image_id": question.image_id,
        "file_name": question.file_name,
        "question": question.name,
        "custom_id": request_id(bank.setting, question),
        "task": "choice",
        "setting": bank.setting,
        "options": options,
        "coords": str(frame),
        "system": SYSTEM,
        "prompt": "\n".join(lines),
        "response_format": reply_format("answer", {"answer": letters}),
    }


def question_prompts(
    paths: Sequence[str], frame: Frame, image_list: str | None, policy: ErrorPolicy
) -> Iterator[Record]:
    """A line for every question of the files. image_list: ground truth that has the images' sizes."""
    banks = [read_bank(path, policy) for path in paths]
    context = Context(load("hico"), policy)
    if image_list is not None:
        read_image_list(image_list, context)
    written = 0
    for bank in banks:
        for question in bank.questions:
            size, place = context.image_sizes.get(question.image_id), Place.of(bank.name, question.file_name)
            with policy.item(place):
                yield prompt_of(bank, question, frame, size)
                written += 1
    policy.report()
    note(f"{written:,} questions ({', '.join(dict.fromkeys(f'{bank.dataset}, {bank.setting}' for bank in banks))})")
