"""Prompts that ask a vision-language model for interactions, so that `convert --from vlm` can read the answers.

Two tasks. `detect`: find every interaction, with both boxes. `pairs`: the boxes are given, numbered as in the record,
and the model names what each pair does; the same records go to `convert --boxes`. A prompt says which convention its
boxes follow, and its line carries it as `coords`, so that an answer written into the line needs no `--coords`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hoicli.converters.vlm.frames import Frame, size_of
from hoicli.errors import DataError, arg
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

TASKS = ("detect", "pairs", "choice")
"""What `prompts --task` takes; the prompts of the last are in `hoicli.vlm.prompts`."""

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


def coords_of(frame: Frame, size: tuple[float, float] | None) -> str:
    """What a prompt says of its boxes' numbers, and in pixels of the image's size, if that is known."""
    copy = frame.numbers if frame.kind == "resized" else size
    extent = f", which is {copy[0]:g} wide and {copy[1]:g} high" if copy else ""
    return _COORDS["pixels" if frame.kind == "resized" else frame.kind].format(extent=extent)


def reply_format(name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The strict JSON schema of an object with these fields, as a `response_format`."""
    schema = {"name": name, "strict": True, "schema": _closed_object(fields)}
    return {"type": "json_schema", "json_schema": schema}


def prompt_of(record: Record, task: str, frame: Frame, vocabulary: Vocabulary | None) -> Record | None:
    """The prompt for one image record: a line with image_id, file_name, coords, task, system, prompt and
    response_format; None for an image without a pair to ask about.

    `vocabulary`: the names to use, None for any. Raises `DataError` when the image's size is needed and missing.
    """
    size = size_of(record)
    if task == "detect" and frame.kind == "pixels" and size is None:
        raise DataError(
            f"missing; a prompt in pixels says how large the image is (or use {arg('coords')} 1000)", field="width"
        )
    pairs = _pairs_of(record) if task == "pairs" else []
    if task == "pairs" and not pairs:
        return None
    coords = coords_of(frame, size)
    objects = {record["labels"][object_] for _, object_ in pairs} if task == "pairs" else None
    names = _OPEN if vocabulary is None else _closed(vocabulary, objects)
    if task == "detect":
        corners = "[y1, x1, y2, x2]" if frame.kind == "1000-yx" else "[x1, y1, x2, y2]"
        text = _DETECT.format(coords=coords, box=corners, vocabulary=names)
    else:
        shown = [
            f"{index}: {record['labels'][index].replace('_', ' ')} {frame.from_pixels(record['boxes'][index], size)}"
            for index in sorted({index for pair in pairs for index in pair})
        ]
        listed = ", ".join(f"({subject}, {object_})" for subject, object_ in pairs)
        text = _PAIRS.format(coords=coords, boxes="\n".join(shown), pairs=listed, vocabulary=names)
    line: Record = {key: record[key] for key in ("image_id", "file_name", "width", "height") if key in record}
    line |= {"task": task, "coords": str(frame), "system": SYSTEM, "prompt": text}
    return line | {"response_format": _schema(task, vocabulary)}


def _pairs_of(record: Record) -> list[tuple[int, int]]:
    """The pairs to ask about: the record's `pairs`, else those of its triplets, else every person with every box."""
    listed = record.get("pairs") or record.get("hois") or ()
    pairs = [(pair["subject"], pair["object"]) for pair in listed if pair["object"] is not None]
    if not listed:
        labels = record["labels"]
        people = [index for index, label in enumerate(labels) if label == SUBJECT]
        pairs = [(person, other) for person in people for other in range(len(labels)) if other != person]
    return list(dict.fromkeys(pairs))


def _closed(vocabulary: Vocabulary, objects: set[str] | None) -> str:
    """The vocabulary's names for a prompt: the verbs of each of `objects`, None for all objects."""
    if vocabulary.roles:
        words = [", ".join(names).replace("_", " ") for names in (vocabulary.verbs, vocabulary.objects)]
        return f"Use these names only.\nVerbs: {words[0]}\nObjects: {words[1]}"
    lines = []
    for name in vocabulary.objects:
        verbs = [
            verb.replace("_", " ")
            for verb, object_ in vocabulary.interactions
            if object_ == name and verb != vocabulary.no_interaction
        ]
        if verbs and (objects is None or name in objects):
            lines.append(f"- {name.replace('_', ' ')}: {', '.join(verbs)}")
    if not lines:
        return _OPEN
    return "\n".join(("Use these names only; each object is followed by the verbs it may have:", *lines))


def _schema(task: str, vocabulary: Vocabulary | None) -> Mapping[str, Any]:
    """The reply's JSON schema, strict, as a `response_format`."""
    verb: dict[str, Any] = {"type": "string"}
    if vocabulary is not None:
        verb["enum"] = [name.replace("_", " ") for name in vocabulary.verbs if name != vocabulary.no_interaction]
    box = {"type": "array", "items": {"type": "number"}, "minItems": 4, "maxItems": 4}
    number = {"type": "integer", "minimum": 0}
    fields: dict[str, Any] = (
        {"person_box": box, "object_box": box, "object": {"type": "string"}}
        if task == "detect"
        else {"subject": number, "object": number}
    )
    fields["verbs"] = {"type": "array", "items": verb}
    return reply_format("interactions", {"interactions": {"type": "array", "items": _closed_object(fields)}})


def _closed_object(fields: Mapping[str, Any]) -> dict[str, Any]:
    names: Sequence[str] = list(fields)
    return {"type": "object", "properties": fields, "required": names, "additionalProperties": False}
