"""Official V-COCO detections: the list that s-gupta/v-coco's evaluator reads, pickled or JSON; and back to a pickle.

    {"image_id": 328, "person_box": [x1, y1, x2, y2], "hold_agent": score, "hold_obj": [x1, y1, x2, y2, score], ...}

One dictionary a person, query or pair; `<action>_agent` says that the person does the action, `<action>_<role>` what
fills the role. Each dictionary stays a separate person box, since the evaluator takes it as a separate detection; equal
role boxes of an image are merged. Boxes are read unchanged. The three notations for a role without object stay
different, because scenario 1 treats them differently: NaN (QPIC, iCAN) becomes `object: null`, zeros stay a box of
zeros (empty, too), and the tiny box [0, 0, 0.1, 0.1] (UPT) stays a box, which is not empty.

Keys that a dictionary does not have count as UPT's cache (fredzzhang/upt utils.py, CacheTemplate) fills them: score 0
and the tiny box. The record then says `"unstated": {"score": 0.0, "object": [0.0, 0.0, 0.1, 0.1]}`. A score of NaN is
no statement, as in the evaluator: it is left out and counted. If a reader would otherwise fill in or derive the
statement, the record lists it: `"left_out": [{"subject": 0, "verb": "hold", "role": "obj"}]` (no role: the action
itself).

Writing (`--to vcoco-pkl`) gives one dictionary for each subject box; if a subject has several
objects for one role, more dictionaries follow. Roles without object are written as NaN."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, require_scores
from hoicli.errors import DataError
from hoicli.io.outputs import open_output
from hoicli.records.names import number_or_name
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

UNSTATED = {"score": 0.0, "object": [0.0, 0.0, 0.1, 0.1]}
OF_A_PERSON = ("image_id", "person_box")
"""The keys of a dictionary that are not statements."""
NO_SCORE = "statements with a score of NaN"


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image, in the order of first appearance."""
    images: dict[Any, list[tuple[str, dict[str, Any]]]] = {}
    for where, item in _people(source, context):
        images.setdefault(item["image_id"], []).append((where, item))
    items = (("", image) for image in images.items())  # the builder's errors name the dictionary
    keys, counts = _keys(context.vocabulary), Counter[str]()

    def build(image: tuple[int | str, list[tuple[str, dict[str, Any]]]]) -> Record:
        image_id, people = image
        boxes = [_numbers(person.get("person_box"), 4, f"{where}.person_box") for where, person in people]
        objects = BoxTable()
        hois: list[dict[str, Any]] = []
        left_out: list[dict[str, Any]] = []
        for subject, (where, person) in enumerate(people):
            stated = keys.keys() & person.keys()
            for key in (key for key in person if key not in OF_A_PERSON):
                field = f"{where}.{str(key)[:40]}"
                if key not in stated:
                    context.drop("keys that are no V-COCO action", f"{source.name}: {field}")
                    continue
                verb, role = keys[key]
                *box, score = _numbers(person[key] if role else [person[key]], 5 if role else 1, field)
                named = {"verb": verb, "role": role} if role else {"verb": verb}
                if math.isnan(score):
                    context.drop(NO_SCORE, f"{source.name}: {field}")
                    left_out.append({"subject": subject, **named})
                    continue
                filled = role and not all(map(math.isnan, box))
                object_ = len(people) + objects.add(box, "") if filled else None  # role boxes come after the people
                hois.append({"subject": subject, "object": object_, "verb": verb, "score": score, **named})
            counts.update(people=1, incomplete=len(stated) != len(keys))
        complete = all(keys.keys() <= person.keys() for _, person in people)
        if complete:  # nothing is filled in: only an action can be derived, from a role of it
            roles = {(hoi["subject"], hoi["verb"]) for hoi in hois if "role" in hoi}
            left_out = [item for item in left_out if "role" not in item and (item["subject"], item["verb"]) in roles]
        labels = [SUBJECT] * len(people) + [None] * len(objects.boxes)
        record: Record = {"image_id": image_id, "boxes": boxes + objects.boxes, "labels": labels, "hois": hois}
        return {
            **record,
            **({} if complete else {"unstated": UNSTATED}),
            **({"left_out": left_out} if left_out else {}),
        }

    yield from context.each(items, build, source)
    if counts["incomplete"]:
        context.announce(
            f"{counts['incomplete']:,} of {counts['people']:,} dictionaries lack keys: what they do not state counts "
            "as UPT's cache fills it, score 0 and the box [0, 0, 0.1, 0.1]"
        )


def _people(source: Source, context: Context) -> Iterator[tuple[str, dict[str, Any]]]:
    """The dictionaries that name an image."""
    for where, item in source.items():
        image_id = item.get("image_id") if isinstance(item, dict) else None
        number = int(image_id) if isinstance(image_id, float) and image_id.is_integer() else image_id
        if isinstance(number, bool) or not isinstance(number, int | str):
            problem = "names no image (image_id); is this really an official V-COCO list?"
            context.policy.handle(DataError(problem, place=source.name, field=where))
            continue
        yield where, {**item, "image_id": number}


def _keys(vocabulary: Vocabulary) -> dict[str, tuple[str, str]]:
    """`hold_agent`, `hold_obj`, ... with (verb, role), the role "" for the agent, verb by verb."""
    return {_key(verb, role): (verb, role) for verb, roles in vocabulary.roles_of.items() for role in ("", *roles)}


def _numbers(values: Any, count: int, field: str) -> list[float]:
    """`count` numbers, as floats. Raises `DataError` for anything else."""
    try:
        numbers = [math.nan if value is None else float(value) for value in values]  # JSON has null for NaN
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != count or any(map(math.isinf, numbers)):
        expected = {1: "a score", 4: "a box of four numbers", 5: "a box and a score: five numbers"}[count]
        raise DataError(f"is not {expected}", field=field)
    return numbers


# Writing


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """The official list of all records, pickled. Raises `DataError` for a statement without a score."""
    people: list[dict[str, Any]] = []
    for record in records:
        require_scores(record, context.target)
        people += _dictionaries(record, context.vocabulary)
    with open_output(path) as put:
        put(pickle.dumps(people, protocol=2))


def _dictionaries(record: Record, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """The people of a record. Each has every key, as the evaluator requires: missing statements get a score of NaN,
    which it skips, or the values of the record's `unstated`. Further values of a key are in further dictionaries.
    """
    image_id = number_or_name(record["image_id"])
    hois: dict[int, list[dict[str, Any]]] = {}
    for hoi in record["hois"]:
        hois.setdefault(int(hoi["subject"]), []).append(hoi)
    unstated = record.get("unstated")
    left_out: dict[int, set[str]] = {}
    for item in record.get("left_out") or ():
        left_out.setdefault(item["subject"], set()).add(_key(item["verb"], item.get("role")))
    silent: dict[str, Any] = {"score": math.nan, "object": [math.nan] * 4}
    everybody = [index for index, label in enumerate(record["labels"]) if unstated and label == SUBJECT]
    for subject in sorted({*hois, *everybody}):
        silenced = left_out.get(subject, set())
        stated = _stated(record, hois.get(subject, []), silenced)
        for turn in range(max(map(len, stated.values()), default=1)):
            default = unstated if unstated and turn == 0 else silent
            person: dict[str, Any] = {"image_id": image_id, "person_box": record["boxes"][subject]}
            for key, (_, role) in _keys(vocabulary).items():
                given, values = silent if key in silenced else default, stated.get(key, ())
                filler = [*given["object"], given["score"]] if role else given["score"]
                person[key] = values[turn] if turn < len(values) else filler
            yield person


def _key(verb: str, role: str | None) -> str:
    """The key of a statement in the official list."""
    return f"{verb}_{role or 'agent'}"


def _stated(record: Record, hois: list[dict[str, Any]], left_out: set[str]) -> dict[str, list[Any]]:
    """The values of each key that is stated about one subject. An action with roles only gets their best score, unless
    it is `left_out`."""
    stated: dict[str, list[Any]] = {}
    best: dict[str, float] = {}
    for hoi in hois:
        value, role = hoi["score"], hoi.get("role")
        if role is not None:
            action = _key(hoi["verb"], None)
            best[action] = max(value, best.get(action, -math.inf))
            box = [math.nan] * 4 if hoi["object"] is None else record["boxes"][hoi["object"]]
            value = [*box, value]
        stated.setdefault(_key(hoi["verb"], role), []).append(value)
    if not record.get("unstated"):
        for action, score in best.items():
            if action not in left_out:
                stated.setdefault(action, [score])
    return stated
