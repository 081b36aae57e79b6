"""Answers to multiple-choice questions, read from any file that has them.

| a file of | is |
| --- | --- |
| `{file name: {"QA_0": [options]}}` | what the released scripts save (`merged_hoi_eval.json`) |
| rows `{file_name, question, options, response}`, JSONL or a list | the lines of `hoicli prompts` with a model's text |
| results of a batch (OpenAI) | the answers to requests made of the lines of `hoicli prompts` |
| `{file name: {h_boxes, o_boxes, ho_scores, ao_names}}` | a detector's output, as released |
| image records with scores | a detector's output |

A detector chooses by the rule of CrossHOI-Bench's script for HOI models. A prediction is a candidate of a question if
its boxes are those that the question shows: each shown box overlaps the prediction's by more than 0.5 (between edges,
in single precision), and in the setting `pair` the predicted object is the question's. A candidate counts if its score
is among the BEST highest of the image, or equal to the last of them; it then chooses the option that names its
interaction, if one does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.containers.source import Source
from hoicli.converters.vlm.answer_rows import answer_in, failure_in, image_named_in, rows_in
from hoicli.errors import DataError, Place
from hoicli.io.messages import note
from hoicli.records.boxes import iou
from hoicli.records.image import problems
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Bools
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record, is_number, json_type, parse, short
from hoicli.vlm.bank import BETWEEN, FIRST, PADDING, Bank, Class, Question, box_of, class_of
from hoicli.vlm.letters import Choice, Reader, RefusedError, released_choice
from hoicli.vlm.result_files import Oddities

_REFUSED = "answers that are not understood, which count as empty"

_LEAST_IOU = 0.5
"""A box matches a shown one if it overlaps it by more than this IoU."""
_DUMP_KEYS = ("h_boxes", "o_boxes", "ho_scores", "ao_names")
"""The keys of an image in the released dumps, each a list with a row for each predicted interaction."""
BEST = 5
"""How many predictions of an image count, the best-scored ones."""
_ROLES = {
    ("sit", "instr"): "sit_on",
    ("look", "obj"): "look_at",
    ("hit", "instr"): "hit_with",
    ("eat", "instr"): "eat_with",
    ("jump", "instr"): "jump_on",
    ("lay", "instr"): "lie_on",
    ("talk_on_phone", "instr"): "talk_on",
    ("cut", "instr"): "cut_with",
    ("work_on_computer", "instr"): "work_on",
    ("ski", "instr"): "ski_on",
    ("drink", "instr"): "drink_with",
}
"""The benchmark's name for V-COCO's action and role, where that is not the action's own name."""

Key = tuple[str, str]
"""(image, name of the question)."""
Singles = NDArray[np.float32]


@dataclass
class Answers:
    """The answers to the questions of a file (its bank). choices: {question: the options that its answer names, in its
    order and as often as named}; odd: what is wrong with answers, for notes; refused: how many answers could not be
    read; detected: whether a detector answers."""

    bank: Bank
    choices: dict[Key, list[str]] = field(default_factory=dict)
    odd: Oddities = field(default_factory=Oddities)
    refused: int = 0
    detected: bool = False

    def add(self, key: Key, options: Sequence[str], place: str) -> None:
        """Add the answer to a question: the options that it names. Raises `DataError` for a question that has one
        already. place: where the answer is, for that error."""
        if key in self.choices:
            raise DataError(f"{' '.join(key)} is answered already; keep one answer a question", place=place)
        self.choices[key] = list(options)

    @property
    def missing(self) -> int:
        """Return the number of questions without an answer."""
        return sum(question.key not in self.choices for question in self.bank.questions)


def read_answers(sources: Sequence[Source], bank: Bank, policy: ErrorPolicy, *, released: bool) -> Answers:
    """Return the answers of all files to the questions of `bank`, and tell the user what is odd about them. An answer
    in text that cannot be read is counted as refused, and chooses nothing. Raises `DataError` for a bad row, unless the
    policy skips it. released: read and choose as the released scripts do, which refuse nothing."""
    answers = Answers(bank)
    questions_by_id = {bank.request_id(question): question for question in bank.questions}
    detections: dict[str, Detected] = {}
    for source in sources:
        form = _form(source)
        if form == "text":
            _add_rows(source, answers, questions_by_id, policy, released=released)
        else:
            answers.detected = True
            _add_detections(_detections(source, form, policy), detections, answers, policy)
    for question, chosen in _choose_options(detections, bank, released=released):
        answers.add(question.key, chosen, question.image_id)
    _check_usable(answers, ", ".join(source.path for source in sources))
    answers.odd.report()
    if answers.missing:
        count = len(bank.questions)
        note(f"{answers.missing:,} of {count:,} questions have no answer: they count as empty answers")
    return answers


def _check_usable(answers: Answers, names: str) -> None:
    """Raise `DataError` if no question is answered, or no answer chooses and some are not read. names: of the files."""
    if answers.choices and (any(answers.choices.values()) or not answers.refused):
        return
    problem = "no answer names an option" if answers.choices else "no answer to a question of the file"
    if _REFUSED in answers.odd.counts:
        _, first_place = answers.odd.counts[_REFUSED]
        problem += f" (the first that is not read: {first_place})"
    raise DataError(f"{problem}; give answers to these questions", place=names)


def _form(source: Source) -> str:
    """Return the form of a file: "text" (answers in words), "dump" (a detector's output, as released) or "records" (a
    detector's output in hoicli's records)."""
    first = None if source.is_list else source.first_line()
    if isinstance(first, dict) and "hois" in first:
        return "records"
    value = next(iter(source.mapping.values()), None) if source.kind == "json-object" else None
    return "dump" if isinstance(value, dict) and len(value.keys() & set(_DUMP_KEYS)) > 1 else "text"


def _add_rows(
    source: Source, answers: Answers, questions_by_id: Mapping[str, Question], policy: ErrorPolicy, *, released: bool
) -> None:
    """Add the answers in the rows of a file; bad rows go to the policy. questions_by_id: {id of a prompt: question};
    released: read answers as the released scripts do."""
    for place, row in rows_in(source, policy) or _rows_by_file_name(source):
        with policy.item(place):
            _add_row(row, place, answers, questions_by_id, released=released)


def _rows_by_file_name(source: Source) -> Iterator[tuple[str, Any]]:
    """Yield (place, row) for each answer in a file {file name: {question's name: answer}}. An answer can also stand
    there without the name of its question; a model's reasoning ("..._reasoning") is left out."""
    for file_name, entry in source.mapping.items():
        place = Place.in_file(source.name, str(file_name)[:80])
        for name, answer in (entry if isinstance(entry, dict) else {FIRST: entry}).items():
            if not str(name).endswith("_reasoning"):
                yield place, {"file_name": str(file_name), "question": name, "response": answer}


def _add_row(
    row: Any, place: str, answers: Answers, questions_by_id: Mapping[str, Question], *, released: bool
) -> None:
    """Add the answer of a row: a line of `hoicli prompts` with the model's text, or a batch's result with its
    `custom_id`. A row without an answer, or about a question that is not in the bank, is only counted. Raises
    `DataError` for a row that does not say which question it answers. questions_by_id: {id of a prompt: question}."""
    bank = answers.bank
    if not isinstance(row, dict):
        raise DataError(f"{short(row)} is no row of an answer; a row is an object")
    setting = row.get("setting", bank.setting)
    if setting != bank.setting:
        raise DataError(f"{short(setting)}, but the questions are of the setting {bank.setting}", field="setting")
    custom_id = row.get("custom_id")
    question = questions_by_id.get(custom_id) if isinstance(custom_id, str) else None
    # Letters stand for the row's `options`, or for those of the prompt with its id. The question's name alone does not
    # say what they are, since every script orders options in its own way.
    labels = {} if question is None else question.lettered
    if question is None:
        question = _find_question(row, place, answers)
    if question is None:
        return
    if why := failure_in(row):
        answers.odd.count("batch results without an answer", f"{place}: {why}")
        return
    _, answer = answer_in(row)  # its key is of no interest here
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


def _find_question(row: Record, place: str, answers: Answers) -> Question | None:
    """Return the question with the image and the name that a row gives (an image's only question needs no name). Count
    an oddity and return None if the bank has no such question."""
    image_name, _ = image_named_in(row)
    image_id = str(image_name)
    questions_of_image = answers.bank.by_image.get(image_id, {})
    name = row.get("question", FIRST if len(questions_of_image) < 2 else None)
    if name is None:
        raise DataError(f"missing; {image_id} has {len(questions_of_image)} questions", field="question")
    if not isinstance(name, str) or name not in questions_of_image:
        what = "answers to questions that nobody asked, left out"
        answers.odd.count(what, f"{place}: {image_id[:80]} {short(name)}")
        return None
    return questions_of_image[name]


def _labels(options: Any, question: Question) -> dict[str, str]:
    """Return {letter: the option that it stands for}, given a row's `options`: such an object, or a list of options in
    the order of letters. Raises `DataError` if they are not the options of the question."""
    if isinstance(options, list) and len(options) <= 26:
        options = {chr(ord("A") + number): option for number, option in enumerate(options)}
    if not isinstance(options, dict) or not all(isinstance(text, str) for text in options.values()):
        raise DataError("is no object of letters and options", field="options")
    shown_options = [text for text in options.values() if text != PADDING]
    problem = ""
    if strange := [text for text in shown_options if text not in question.listed]:
        problem = f"{short(strange[0])} is no option of the question; are the files of one setting?"
    elif len(set(shown_options)) < len(shown_options):
        problem = "several letters stand for one option"
    elif shown_options and (missing := set(question.listed) - {PADDING, *shown_options}):
        problem = f"without {short(min(missing))}, an option of the question; give all that were shown"
    if problem:
        raise DataError(problem, field="options")
    return {str(label).upper(): text for label, text in options.items()}


@dataclass(frozen=True)
class Detected:
    """The N predictions of an image. people, others [N, 4]: the boxes of the subjects and of the objects; scores [N];
    interactions: the (verb, object) of each; words: as a dump spells it, () for records."""

    people: Singles
    others: Singles
    scores: Singles
    interactions: Sequence[Class]
    words: Sequence[str] = ()


def _detections(source: Source, form: str, policy: ErrorPolicy) -> Iterator[tuple[str, str, Detected]]:
    """Yield (place, image id, predictions) for every image of a detector's output. form: "dump" or "records"."""
    for name, entry in source.mapping.items() if form == "dump" else ():
        place = Place.in_file(source.name, name[:80])
        with policy.item(place):
            yield place, image_id_of(name), _read_dump_entry(entry)
    for line in source.lines() if form == "records" else ():
        with policy.item():
            record: Record = parse(line)
            if isinstance(record.get("hois"), list):  # V-COCO's actions without an object answer no question
                hois = [hoi for hoi in record["hois"] if not isinstance(hoi, dict) or hoi.get("object", 0) is not None]
                record = {**record, "hois": hois}
            for problem in problems(record, None, scored=True):  # the first one is raised
                raise problem.error(line.place)
            yield line.place, str(record["image_id"]), _read_record(record)


def _add_detections(
    images: Iterable[tuple[str, str, Detected]], detections: dict[str, Detected], answers: Answers, policy: ErrorPolicy
) -> None:
    """Add images (place, image id, predictions) to the detections by image id. An image that is there already goes to
    the policy, an image without a question is counted as an oddity."""
    for place, image_id, detected in images:
        if image_id in detections:
            policy.handle(DataError(f"{image_id!r} is there twice; keep one", place=place))
        else:
            detections[image_id] = detected
        if image_id not in answers.bank.by_image:
            answers.odd.count("images that no question is about, left out", place)


def _read_dump_entry(entry: Any) -> Detected:
    """Return the predictions of an image in a released dump, {one of _DUMP_KEYS: list with a row for each prediction}.
    Raises `DataError` that names the field for anything else."""
    if not isinstance(entry, dict):
        raise DataError(f"{json_type(entry)}; an image has {', '.join(_DUMP_KEYS)}")
    for key in _DUMP_KEYS:
        if not isinstance(entry.get(key), list) or len(entry[key]) != len(entry["h_boxes"]):
            raise DataError("missing, or no list of as many as h_boxes; a row is a prediction", field=key)
    people, others, scores, names = (entry[key] for key in _DUMP_KEYS)
    for key in _DUMP_KEYS[:2]:  # the two of boxes
        for number, box in enumerate(entry[key]):
            box_of(box, f"{key}[{number}]")
    for number, (score, name) in enumerate(zip(scores, names, strict=True)):
        if not is_number(score):
            raise DataError(f"{short(score)} is no finite number", field=f"ho_scores[{number}]")
        if not isinstance(name, str) or name.count(BETWEEN) != 1:
            raise DataError(f"{short(name)} is no 'verb{BETWEEN}object'", field=f"ao_names[{number}]")
    return Detected(*_arrays(people, others, scores), [class_of(name) for name in names], names)


def _read_record(record: Record) -> Detected:
    """Return the predictions of a checked image record whose triplets all have an object. Triplets whose object has no
    label are left out, as they name no interaction."""
    boxes, labels = record["boxes"], record["labels"]
    hois = [hoi for hoi in record["hois"] if labels[hoi["object"]] is not None]
    people, others = ([boxes[hoi[side]] for hoi in hois] for side in ("subject", "object"))
    interactions = []
    for hoi in hois:
        # some of V-COCO's verbs with a role have a name of their own in the options: ("sit", "instr") is sit_on
        verb = _ROLES.get((str(hoi["verb"]), hoi.get("role", "")), str(hoi["verb"]))
        interactions.append((verb.replace(" ", "_"), labels[hoi["object"]].replace(" ", "_")))
    return Detected(*_arrays(people, others, [hoi["score"] for hoi in hois]), interactions)


def _arrays(people: Any, others: Any, scores: Any) -> tuple[Singles, Singles, Singles]:
    """Return two lists of N boxes and one of N scores as arrays [N, 4], [N, 4], [N], in single precision, as the
    released script computes; a number that is too large becomes infinite."""
    with np.errstate(over="ignore"):
        first, second = (np.array(boxes, dtype=np.float32).reshape(-1, 4) for boxes in (people, others))
        return first, second, np.array(scores, dtype=np.float32)


def _choose_options(
    images: Mapping[str, Detected], bank: Bank, *, released: bool
) -> Iterator[tuple[Question, list[str]]]:
    """Yield each question about an image of a detector's output with the options that its predictions choose, an option
    as often as it is predicted. Each of the BEST best-scored predictions whose boxes are those of the question chooses
    the option that names its interaction.

    images: {image id: its predictions}; released: choose as the released script does, which compares the spelling of
    options, offers the options of an image's first question for all of its questions, and in the setting `pair` takes
    the object's label from the first right option."""
    for image_id, detected in images.items():
        questions = bank.by_image.get(image_id, {})
        # the lowest score that still counts; an image without predictions has none (inf)
        is_among_best = detected.scores >= np.sort(detected.scores)[-BEST:].min(initial=np.inf)
        for question in questions.values():
            matches_boxes = _matches_boxes(question, bank.setting, detected, released=released)
            rows = np.flatnonzero(matches_boxes & is_among_best).tolist()
            if not released or not detected.words:  # words: the interactions as a released dump spells them
                chosen = [question.by_class.get(detected.interactions[row], "") for row in rows]
            else:
                chosen = [detected.words[row] for row in rows]
                if bank.dataset == "swig":  # its options are verbs alone
                    chosen = [name.split(" ")[0] for name in chosen]
            offered = questions.get(FIRST, question).listed if released else question.listed
            yield question, [option for option in chosen if option in offered]


def _matches_boxes(question: Question, setting: str, detected: Detected, *, released: bool) -> Bools:
    """Return [N]: whether each prediction has the boxes, and in the setting `pair` the object, of the question."""
    matches = np.ones(len(detected.scores), dtype=bool)
    if setting != "scene":
        matches &= _overlap(question.human, detected.people)
    if setting == "pair":
        label = _label(question, released=released)
        matches &= _overlap(question.other, detected.others)
        if label is None:  # the released script then finds no match, whatever the boxes
            return matches & (not released)
        matches &= np.array([name == label for _, name in detected.interactions], dtype=bool)
    return matches


def _label(question: Question, *, released: bool) -> str | None:
    """Return the label of the object that a question shows: the one that the file gives, else the one in the first
    right option; None without either. released: take the option's alone, as the released script does."""
    if question.label and not released:
        return question.label.replace(" ", "_")
    return class_of(question.right[0])[1] if question.right else None


def _overlap(box: Sequence[float] | None, boxes: Singles) -> Bools:
    """Return [N]: whether each of the boxes [N, 4] overlaps one box by more than _LEAST_IOU."""
    with np.errstate(over="ignore", invalid="ignore"):
        box_columns: Any = np.repeat(np.array(box, dtype=np.float32)[:, None], len(boxes), axis=1)
        overlaps: Bools = iou(box_columns, boxes.T, inclusive=False) > _LEAST_IOU  # type: ignore[arg-type]
    return overlaps
