"""Prompts for a vision-language model: they ask for what `convert --from vlm` and `vlm-eval` read. Three tasks:

- `detect`: find every interaction, with both boxes.
- `pairs`: the boxes are given, numbered as in the record, and the model names what each pair does; the same records go
  to `convert --boxes`.
- `choice`: multiple-choice questions. The words are ours, the options are the benchmark's. Its own script mixes them at
  random in every run; here their order is one that looks random and depends on the question alone. Where there are
  fewer than four, one `None` follows; its own script adds as many as are missing. So a prompt's id says what the
  letters of an answer stand for, without the prompt.

A prompt says which convention its boxes follow, and its line carries it as `coords`, so that an answer written into the
line needs no `--coords`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

from hoicli.converters.context import Context
from hoicli.converters.image_ids import read_image_list
from hoicli.converters.vlm.frames import Frame, size_of
from hoicli.errors import DataError, Place, arg
from hoicli.io.messages import note
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record
from hoicli.vlm.bank import BETWEEN, NOTHING, Bank, Question, read_bank
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

SYSTEM = "You report what people do with things in photographs. Your whole reply is one JSON object and nothing else."

_DETECT = """\
Find every person in this image who does something with an object, and that object. Another person can be the object.
One entry for each person and object; name all that the person does with it.
{coords}
{vocabulary}
Reply with
{{"interactions": [{{"person_box": {box}, "object_box": {box}, "object": "...", "verbs": ["..."]}}]}}
and with {{"interactions": []}} if nobody does anything with an object."""

_PAIRS = """\
This image has these boxes, each with its number. {coords}
{boxes}
Say what the person does with the object in each of these pairs (person, object): {pairs}
{vocabulary}
Reply with
{{"interactions": [{{"subject": N, "object": N, "verbs": ["..."]}}]}}
where subject is the number of the person's box and object that of the other. Leave out a pair that does nothing."""

_COORDS = {
    "pixels": "Boxes are [x1, y1, x2, y2] in pixels of the image{extent}.",
    "1000": "Boxes are [x1, y1, x2, y2] in thousandths of the image: x from 0 (left) to 1000, y from 0 (top) to 1000.",
    "1000-yx": "Boxes are [y1, x1, y2, x2], y first, in thousandths of the image: y from 0 (top) to 1000, "
    "x from 0 (left) to 1000.",
    "relative": "Boxes are [x1, y1, x2, y2] as fractions of the image: x from 0 (left) to 1, y from 0 (top) to 1.",
}
_OPEN = (
    "Verbs are in base form with their preposition (ride, sit on, talk on); objects are plain nouns (bicycle, "
    "dining table)."
)


def prompt_of(
    record: Record, task: str, frame: Frame, vocabulary: Vocabulary | None, candidates: int | None = None
) -> Record | None:
    """Return the prompt for one image record, a line with image_id, file_name, coords, task, system, prompt and
    response_format; None for an image without a pair or a candidate to ask about. task: "detect" (find all
    interactions) or "pairs" (name those of given boxes); frame: how the prompt writes boxes; vocabulary: the names to
    use, None for any; candidates: how many interactions to list (`_candidates_of`), 0 for only verbs and objects, None
    for all. Raises `DataError` if the image's size is needed and missing, or a score that ranks candidates."""
    listed: Sequence[tuple[str, str]] | None = None  # the interactions that the prompt lists
    if vocabulary is not None and not vocabulary.roles and candidates != 0:
        listed = vocabulary.interactions if candidates is None else _candidates_of(record, vocabulary, candidates)
        if not listed:
            return None
    fields: dict[str, Any]  # what a reply says of a pair, besides the verbs: JSON schemas
    if task == "detect":
        text = _detect_text(record, frame, _names_text(vocabulary, listed, None))
        box = {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4}
        fields = {"person_box": box, "object_box": box, "object": {"type": "string"}}
    else:
        pairs = _pairs_of(record)
        if not pairs:
            return None
        objects = {record["labels"][object_] for _, object_ in pairs}
        text = _pairs_text(record, pairs, frame, _names_text(vocabulary, listed, objects))
        number = {"type": "integer", "minimum": 0}
        fields = {"subject": number, "object": number}
    verb: dict[str, Any] = {"type": "string"}
    if vocabulary is not None:
        verbs = {name for name, _ in listed} if candidates and listed else set(vocabulary.verbs)
        verb["enum"] = [name.replace("_", " ") for name in _verbs_of(vocabulary) if name in verbs]
    items = _closed_object({**fields, "verbs": {"type": "array", "items": verb}})
    reply = _reply_format("interactions", {"interactions": {"type": "array", "items": items}})
    line: Record = {key: record[key] for key in ("image_id", "file_name", "width", "height") if key in record}
    if candidates is not None:
        line["candidates"] = candidates
    return {**line, "task": task, "coords": str(frame), "system": SYSTEM, "prompt": text, "response_format": reply}


def _candidates_of(record: Record, vocabulary: Vocabulary, count: int) -> list[tuple[str, str]]:
    """Return the `count` interactions, of a dataset, that a detector's record scores highest in its image, the best
    first; of equal scores those that come first in the dataset. Raises `DataError` for a triplet without a score, as in
    ground truth: to list its classes would tell the answer."""
    best: dict[tuple[str, str], float] = {}
    for position, hoi in enumerate(record["hois"]):
        if "score" not in hoi:
            problem = "missing; candidates are a detector's best (those of ground truth would tell the answer)"
            raise DataError(problem, field=f"hois[{position}].score")
        label = "" if hoi["object"] is None else record["labels"][hoi["object"]]
        number = vocabulary.interaction_ids.get((hoi["verb"], label))
        if number is not None and vocabulary.interactions[number][0] != vocabulary.no_interaction:
            interaction = vocabulary.interactions[number]
            best[interaction] = max(hoi["score"], best.get(interaction, hoi["score"]))
    return sorted(best, key=lambda interaction: (-best[interaction], vocabulary.interaction_ids[interaction]))[:count]


def _detect_text(record: Record, frame: Frame, names: str) -> str:
    """Return the question for all interactions of an image. names: the part about names. Raises `DataError` if the
    question must say the image's size and the record does not."""
    size = size_of(record)
    if frame.kind == "pixels" and size is None:
        problem = f"missing; a prompt in pixels says how large the image is (or use {arg('coords')} 1000)"
        raise DataError(problem, field="width")
    corners = "[y1, x1, y2, x2]" if frame.kind == "1000-yx" else "[x1, y1, x2, y2]"
    return _DETECT.format(coords=_coords_text(frame, size), box=corners, vocabulary=names)


def _pairs_text(record: Record, pairs: Sequence[tuple[int, int]], frame: Frame, names: str) -> str:
    """Return the question for the interactions of given pairs (positions of their boxes in the record), with the boxes
    that occur in them. names: the part about names."""
    size, labels = size_of(record), record["labels"]
    boxes = [
        f"{index}: {labels[index].replace('_', ' ')} {frame.scale_from_pixels(record['boxes'][index], size)}"
        for index in sorted(set(chain.from_iterable(pairs)))
    ]
    return _PAIRS.format(
        coords=_coords_text(frame, size),
        boxes="\n".join(boxes),
        pairs=", ".join(f"({subject}, {object_})" for subject, object_ in pairs),
        vocabulary=names,
    )


def _pairs_of(record: Record) -> list[tuple[int, int]]:
    """Return the pairs to ask about, as positions (person, object) in the record's boxes: those of its `pairs`, else
    those of its triplets, else every person with every other box."""
    listed = record.get("pairs") or record.get("hois") or ()
    pairs = [(pair["subject"], pair["object"]) for pair in listed if pair["object"] is not None]
    if not listed:
        labels = record["labels"]
        people = [index for index, label in enumerate(labels) if str(label).casefold() == SUBJECT]
        pairs = [(person, other) for person, other in product(people, range(len(labels))) if other != person]
    return list(dict.fromkeys(pairs))


def _names_text(
    vocabulary: Vocabulary | None, listed: Sequence[tuple[str, str]] | None, objects: set[str] | None
) -> str:
    """Return the part of a prompt that says which names of verbs and objects to use. vocabulary: whose names, None for
    any; listed: its interactions to list, by their objects, None to list verbs and objects apart; objects: the only
    ones to list with their verbs, None for all."""
    if vocabulary is None:
        return _OPEN
    if listed is None:
        words = [", ".join(names).replace("_", " ") for names in (_verbs_of(vocabulary), vocabulary.objects)]
        return f"Use these names only.\nVerbs: {words[0]}\nObjects: {words[1]}"
    verbs_by_object: dict[str, list[str]] = {name: [] for name in vocabulary.objects}
    for verb, name in listed:
        if verb != vocabulary.no_interaction and (objects is None or name in objects):
            verbs_by_object[name].append(verb)
    lines = [f"- {name}: {', '.join(verbs)}".replace("_", " ") for name, verbs in verbs_by_object.items() if verbs]
    if not lines:
        return _OPEN
    return "\n".join(("Use these names only; each object is followed by the verbs it may have:", *lines))


def _verbs_of(vocabulary: Vocabulary) -> list[str]:
    """Return the verbs that a prompt may list: all but the one that says that nothing happens."""
    return [verb for verb in vocabulary.verbs if verb != vocabulary.no_interaction]


def _coords_text(frame: Frame, size: tuple[float, float] | None) -> str:
    """Return the sentence of a prompt that says what the numbers of its boxes mean; for pixels with the size of the
    image, or of its resized copy, if that is known."""
    copy_size = frame.copy_size(size)
    shown_size = copy_size or size
    extent = f", which is {shown_size[0]:g} wide and {shown_size[1]:g} high" if shown_size else ""
    return _COORDS["pixels" if copy_size else frame.kind].format(extent=extent)


def _reply_format(name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the `response_format` that makes a model reply with exactly these fields {name: JSON schema}."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": _closed_object(fields)}}


def _closed_object(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object that has exactly these fields, {name: JSON schema}."""
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


CHOICE_SYSTEM = (
    "You answer multiple-choice questions about photographs. Your whole reply is the letters of the right options."
)

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


def _question_prompt(bank: Bank, question: Question, frame: Frame, size: tuple[float, float] | None) -> Record:
    """Return the prompt (a line) for a multiple-choice question. size: the image's width and height, None if not known;
    raises `DataError` if the boxes cannot be written without it."""
    # SWIG-HOI's options are verbs alone, done to another person
    wording = (_AMONG_PEOPLE if bank.dataset == "swig" else _ASKED)[bank.setting]
    lines = []
    if bank.setting != "scene":
        if size is None and frame.kind != "pixels":
            problem = f"the image's size is not known; give ground truth that has it with {arg('image_list')}"
            raise DataError(f"{problem}, or use {arg('coords', 'pixels')}")
        person, other = (box and frame.scale_from_pixels(box, size) for box in (question.human, question.other))
        wording = wording.format(person=person, other=other)
        lines.append(_coords_text(frame, size))
    lines += [wording, *(f"({letter}) {_option_text(option)}" for letter, option in question.lettered.items()), _REPLY]
    letters = {"type": "array", "items": {"type": "string", "enum": list(question.lettered)}}
    reply = _reply_format("answer", {"answer": letters})
    line: Record = {"image_id": question.image_id, "file_name": question.file_name, "question": question.name}
    line |= {"custom_id": bank.request_id(question), "task": "choice", "setting": bank.setting}
    line |= {"options": question.lettered, "coords": str(frame), "system": CHOICE_SYSTEM}
    return {**line, "prompt": "\n".join(lines), "response_format": reply}


def _option_text(option: str) -> str:
    """Return an option as the benchmark shows it: as in the file, except for "no_interaction with a dog"."""
    verb, separator, name = option.partition(BETWEEN)
    return f"{NOTHING} with {name}" if separator and NOTHING in verb else option


def question_prompts(
    paths: Sequence[str], frame: Frame, image_list: str | None, policy: ErrorPolicy
) -> Iterator[Record]:
    """Yield a prompt (a line) for every question of files of multiple-choice questions. image_list: the path of ground
    truth that has the images' sizes. A question that cannot be asked goes to the policy."""
    banks = [read_bank(path, policy) for path in paths]
    context = Context(load("hico"), policy)  # of which only the images' sizes are used, not the dataset
    if image_list is not None:
        read_image_list(image_list, context)
    written = 0
    for bank in banks:
        for question in bank.questions:
            with policy.item(Place.in_file(bank.name, question.file_name)):
                yield _question_prompt(bank, question, frame, context.image_sizes.get(question.image_id))
                written += 1
    policy.report()
    kinds = dict.fromkeys(f"{bank.dataset}, {bank.setting}" for bank in banks)
    note(f"{written:,} questions ({', '.join(kinds)})")
