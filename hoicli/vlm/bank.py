"""Multiple-choice questions as CrossHOI-Bench's annotation files have them (arXiv 2508.18753): read and checked.

A file is `{file name: question}` or `{file name: {"QA_0": question, "QA_1": ...}}`. A question has `gt_choices`, which
are right, `wrong_choices`, and in two of the three settings `boxes`: the person's (`human`), and the other one's
(`object`)."""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import orjson

from hoicli.converters.containers.source import Source
from hoicli.errors import DataError, Place
from hoicli.records.intake import ErrorPolicy
from hoicli.records.names import image_id_of
from hoicli.records.parsing import is_number, short
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import SUBJECT

SETTINGS = ("scene", "person", "pair")
"""The settings, by what a question shows: the image alone, the person's box, or the boxes of person and object."""
BETWEEN = " a/an "
"""What stands between verb and object in an option; SWIG-HOI's options are verbs alone, done to another person."""
NOTHING = "no_interaction"
FIRST = "QA_0"
"""The name of an image's only question."""
PADDING = "None"
"""The option that fills a list up to FEWEST."""
FEWEST, MOST = 4, 26
MISSPELT = frozenset({("work_on", "laptotp"), ("ride_on", "skateboard"), ("lift", "spoon")})
"""Options of the V-COCO part that are no class: the released tables of HICO-DET's and V-COCO's have every other."""

_SETTING_IN_NAME = re.compile(r"_(person|ho)\.json(?:\.(?:gz|zst))?$")
_QUESTION = re.compile(r"QA_\d{1,6}")
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The ids of requests that every provider accepts."""

Class = tuple[str, str]
"""(verb, object), spaces as underscores."""


def class_of(option: str) -> Class:
    """Return the interaction (verb, object) that an option names; all spellings of `no_interaction` are one, and the
    object of an option without one (SWIG-HOI's) is a person."""
    verb, separator, name = option.strip().partition(BETWEEN)
    verb = verb.replace(" ", "_")
    return (NOTHING if NOTHING in verb else verb), (name.replace(" ", "_") if separator else SUBJECT)


@dataclass(frozen=True)
class Question:
    """A multiple-choice question about an image. right, wrong: the options as the file lists them (an option may be in
    a list twice, or in both); human, other: the boxes [x1, y1, x2, y2] of person and object in pixels, None if the file
    has none; label: what the file says the object is, "" for nothing."""

    image_id: str
    file_name: str
    name: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    human: tuple[float, ...] | None = None
    other: tuple[float, ...] | None = None
    label: str = ""

    @property
    def listed(self) -> tuple[str, ...]:
        """Return every option as the file lists it, the right ones first."""
        return self.right + self.wrong

    @cached_property
    def options(self) -> tuple[str, ...]:
        """Return every option once, in an order that looks random: sorted by a digest of question and option."""
        texts = dict.fromkeys(self.listed)
        return tuple(sorted(texts, key=lambda text: hashlib.sha256(f"{self.key}\n{text}".encode()).digest()))

    @cached_property
    def lettered(self) -> dict[str, str]:
        """Return {letter: option} in the order of the prompt; PADDING follows if there are fewer than FEWEST."""
        padded = len(self.listed) < FEWEST and PADDING not in self.options
        return dict(zip(string.ascii_uppercase, (*self.options, *([PADDING] if padded else [])), strict=False))

    @cached_property
    def by_class(self) -> Mapping[Class, str]:
        """Return {interaction: the option that names it}; if two do, the right one, or the first."""
        # Right options are listed first, and reversed they are written last, which is what a dict keeps.
        return {class_of(text): text for text in reversed(self.listed)}

    @property
    def key(self) -> tuple[str, str]:
        """Return (image id, name of the question), which identifies a question of a file."""
        return self.image_id, self.name


@dataclass(frozen=True)
class Bank:
    """The questions of one file, all of one setting. name: the file's; dataset: whose classes the options are ("hico",
    "vcoco", "swig", or "own"); setting: one of SETTINGS."""

    name: str
    questions: tuple[Question, ...]
    dataset: str
    setting: str

    @cached_property
    def by_image(self) -> Mapping[str, Mapping[str, Question]]:
        """Return {image id: {question's name: question}}."""
        questions_by_image: dict[str, dict[str, Question]] = {}
        for question in self.questions:
            questions_by_image.setdefault(question.image_id, {})[question.name] = question
        return questions_by_image

    @cached_property
    def digest(self) -> str:
        """Return eight hexadecimal digits that two files share when they hold the same questions, in any order."""
        content = hashlib.sha256(self.setting.encode())
        for question in sorted(self.questions, key=lambda question: question.key):
            content.update(orjson.dumps([*question.key, question.listed, len(question.right), question.human]))
            content.update(orjson.dumps([question.other, question.label]))
        return content.hexdigest()[:8]

    def request_id(self, question: Question) -> str:
        """Return the id of a question's prompt: the image, the question's name, and eight digits that depend on the
        setting and on which option has which letter, so that no other prompt has this id. Where providers would not
        accept that as an id, it is only a digest."""
        content = orjson.dumps([self.setting, *question.key, list(question.lettered.values())])
        digest = hashlib.sha256(content).hexdigest()
        readable_id = "-".join((*question.key, digest[:8]))
        return readable_id if _PLAIN.fullmatch(readable_id) else f"choice-{digest[:40]}"

    def has_class(self, interaction: Class) -> bool:
        """Return whether an interaction is a class of macro F1: one of the dataset's, or any of one's own questions."""
        verb, object_ = interaction
        if self.dataset == "hico":
            return interaction in load("hico").interaction_ids
        if self.dataset == "swig":  # whose options are verbs alone, done to another person
            return object_ == SUBJECT and verb in load("swig").verb_ids
        return self.dataset != "vcoco" or interaction not in MISSPELT  # three misspelt ones


def read_bank(path: str, policy: ErrorPolicy) -> Bank:
    """Read and check the questions of a file. Raises `DataError` for a file without questions, for one whose setting
    cannot be told, and for a bad question unless the policy skips it."""
    source = Source(path)
    first = next(iter(source.mapping.values()), None)
    if not isinstance(first, dict) or not (
        {"gt_choices", "wrong_choices"} & first.keys() or _has_question_numbers(first)
    ):
        problem = f"holds no questions ({source.describe()}); give an annotation file of CrossHOI-Bench, or one like it"
        raise DataError(problem, place=source.name)
    questions: dict[tuple[str, str], Question] = {}
    for file_name, entry in source.mapping.items():
        with policy.item(Place.in_file(source.name, str(file_name)[:80])):
            for question in _image_questions(str(file_name), entry):
                _add_question(question, questions)
    if not questions:
        raise DataError("no question in it is sound", place=source.name)
    bank_questions = tuple(questions.values())
    return Bank(source.name, bank_questions, _dataset(bank_questions), _setting(bank_questions, source.name))


def _add_question(question: Question, questions: dict[tuple[str, str], Question]) -> None:
    """Add a question to those of a file, by their keys; raises `DataError` if it is there already."""
    if question.key in questions:
        raise DataError(f"image {question.image_id!r} is in it twice; keep one")
    questions[question.key] = question


def _has_question_numbers(entry: Mapping[str, Any]) -> bool:
    """Return whether an image's entry has keys like "QA_0", so that it holds questions rather than being one."""
    return any(isinstance(key, str) and _QUESTION.fullmatch(key) for key in entry)


def _image_questions(file_name: str, entry: Any) -> Iterator[Question]:
    """Yield the questions in an image's entry: one, or {"QA_0": question, ...}. Others raise `DataError`."""
    if not image_id_of(file_name):
        raise DataError("names no image; the key is its file name")
    if not isinstance(entry, dict):
        raise DataError("is no object; give gt_choices and wrong_choices, or QA_0 with them")
    questions_by_name = entry if _has_question_numbers(entry) else {FIRST: entry}
    for name, body in questions_by_name.items():
        if not isinstance(body, dict):
            raise DataError("is no object; a question has gt_choices and wrong_choices", field=str(name))
        right, wrong = (_texts(body, key, str(name)) for key in ("gt_choices", "wrong_choices"))
        if not 0 < len(right + wrong) <= MOST:
            raise DataError(f"has {len(right + wrong)} options; give 1 to {MOST}", field=str(name))
        boxes = body.get("boxes", {})
        if not isinstance(boxes, dict) or (boxes.get("object") is not None and boxes.get("human") is None):
            raise DataError("is no object with the box `human`, and perhaps `object`", field=f"{name}.boxes")
        human, other = (_box(boxes, key, f"{name}.boxes.{key}") for key in ("human", "object"))
        label = boxes.get("object_class", "")
        if not isinstance(label, str):
            raise DataError(f"{short(label)} is no name", field=f"{name}.boxes.object_class")
        yield Question(image_id_of(file_name), file_name, str(name), right, wrong, human, other, label)


def _texts(body: Mapping[str, Any], key: str, name: str) -> tuple[str, ...]:
    """Return the options under a key of a question (`name`). Raises `DataError` for anything but a list of texts."""
    value = body.get(key)
    if not isinstance(value, list) or not all(isinstance(text, str) and text.strip() for text in value):
        raise DataError("missing, or no list of texts", field=f"{name}.{key}")
    return tuple(value)


def box_of(value: Any, field: str) -> tuple[float, ...]:
    """Return the four numbers of a box; raises `DataError`, which names the field, for anything else."""
    if not isinstance(value, list) or len(value) != 4 or not all(map(is_number, value)):
        raise DataError(f"{short(value)} is no box; a box is [x1, y1, x2, y2] in pixels", field=field)
    return tuple(map(float, value))


def _box(boxes: Mapping[str, Any], key: str, field: str) -> tuple[float, ...] | None:
    """Return the box under a key of a question's `boxes`, None without one; raises `DataError` for a bad box."""
    if boxes.get(key) is None:
        return None
    box = box_of(boxes[key], field)
    if box[2] < box[0] or box[3] < box[1]:
        problem = f"{short(boxes[key])}: x2 or y2 is before x1 or y1"
        raise DataError(f"{problem}; a box is [x1, y1, x2, y2]", field=field)
    return box


def _setting(questions: Sequence[Question], name: str) -> str:
    """Return the setting of a file's questions, by the boxes that they have. If they have both boxes and the object's
    label, as CrossHOI-Bench's of two settings, the file's name decides, or `DataError` is raised."""
    box_counts = {(question.human is not None) + (question.other is not None) for question in questions}
    if len(box_counts) > 1:
        raise DataError("some of its questions have boxes and some do not; one file is of one setting", place=name)
    setting_by_boxes = SETTINGS[box_counts.pop()]
    setting_in_name = _SETTING_IN_NAME.search(name)
    if setting_by_boxes != "pair" or (not setting_in_name and not any(question.label for question in questions)):
        return setting_by_boxes
    if setting_in_name is None:
        both = "gives both boxes and the object's class, as CrossHOI-Bench's files of two settings do"
        how = "end its name in _person.json or _ho.json, as theirs do"
        raise DataError(f"{both}; {how}", place=name)
    return "person" if setting_in_name[1] == "person" else "pair"


def _dataset(questions: Sequence[Question]) -> str:
    """Return whose classes the options are: "swig" for verbs alone, else by how image names begin; "own" for others."""
    if not any(BETWEEN in text for text in chain.from_iterable(question.listed for question in questions)):
        return "swig"
    for dataset, begin in (("hico", "HICO_"), ("vcoco", "COCO_")):
        if all(question.image_id.startswith(begin) for question in questions):
            return dataset
    return "own"
