"""The detections that V-COCO's evaluator reads (s-gupta/v-coco, vsrl_eval.py): the official list, pickled or JSON
(`--from vcoco`), and back to a pickle (`--to vcoco-pkl`).

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

Writing (`--to vcoco-pkl`) gives one dictionary for each subject box; if a subject has several objects for one role,
more dictionaries follow. Roles without object are written as NaN."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context, require_scores
from hoicli.errors import DataError
from hoicli.io.outputs import open_output
from hoicli.records.names import number_or_name
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

UNSTATED = {"score": 0.0, "object": [0.0, 0.0, 0.1, 0.1]}


_Person = tuple[str, dict[str, Any]]
"""(place in the file, dictionary) of a detected person in the official list."""


def read_detections(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image of V-COCO's official list of detections, in the order of first appearance."""
    images: dict[Any, list[_Person]] = {}
    for where, item in _people(source, context):
        images.setdefault(item["image_id"], []).append((where, item))
    # without a place of their own: the errors of `reader.record` name the dictionary
    items = (("", id_and_people) for id_and_people in images.items())
    reader = _DetectionReader(source, context)
    yield from context.each(items, reader.record, source)
    if reader.incomplete_people:
        context.announce(
            f"{reader.incomplete_people:,} of {reader.people:,} dictionaries lack keys: what they do not state counts "
            "as UPT's cache fills it, score 0 and the box [0, 0, 0.1, 0.1]"
        )


class _Statements(NamedTuple):
    """What the dictionaries of one image state. objects: the boxes that fill roles. hois: the triplets. left_out: for
    each statement with a score of NaN {"subject": its person's index, "verb", and "role" if it is about a role}."""

    objects: BoxTable
    hois: list[dict[str, Any]]
    left_out: list[dict[str, Any]]


class _DetectionReader:
    """Makes the record of each image in the official list of detections. people: how many dictionaries it has read.
    incomplete_people: how many of these lack the key of an action or of a role."""

    def __init__(self, source: Source, context: Context) -> None:
        """Begin with both counts 0. source: the list's file, for messages."""
        self._file, self._context = source.name, context
        self._known_keys = _keys(context.vocabulary)
        self.people = self.incomplete_people = 0

    def record(self, image: tuple[int | str, list[_Person]]) -> Record:
        """Return the record of an image: first the boxes of its people, one for each dictionary, then those of objects.
        `unstated` says what missing keys count as; `left_out` lists statements with a score of NaN."""
        image_id, people = image
        boxes = [_numbers(person.get("person_box"), 4, f"{where}.person_box") for where, person in people]
        statements = _Statements(objects=BoxTable(), hois=[], left_out=[])
        for subject in range(len(people)):
            self._add_person(statements, people, subject)
        objects, hois, left_out = statements
        complete = all(self._known_keys.keys() <= person.keys() for _, person in people)
        if complete:
            # a key of NaN is then simply not stated, and needs no mention unless readers would derive it: an action
            # without a score whose person has a role of it with one
            with_role = {(hoi["subject"], hoi["verb"]) for hoi in hois if "role" in hoi}
            actions = (item for item in left_out if "role" not in item)
            left_out = [action for action in actions if (action["subject"], action["verb"]) in with_role]
        labels = [SUBJECT] * len(people) + [None] * len(objects.boxes)
        record: Record = {"image_id": image_id, "boxes": boxes + objects.boxes, "labels": labels, "hois": hois}
        record |= {} if complete else {"unstated": UNSTATED}
        return record | ({"left_out": left_out} if left_out else {})

    def _add_person(self, statements: _Statements, people: Sequence[_Person], subject: int) -> None:
        """Add what the dictionary of one person states to the image's statements. The rest is counted."""
        where, person = people[subject]
        # _known_keys: (verb, role) of each key that a dictionary can have, hold_agent (no role) or hold_obj
        stated_keys = self._known_keys.keys() & person.keys()
        for key in (key for key in person if key not in ("image_id", "person_box")):
            field = f"{where}.{str(key)[:40]}"
            if key not in stated_keys:
                self._context.drop("keys that are no V-COCO action", f"{self._file}: {field}")
                continue
            verb, role = self._known_keys[key]
            # A role's value is a box and a score, an action's the score alone.
            *box, score = _numbers(person[key] if role else [person[key]], 5 if role else 1, field)
            verb_and_role = {"verb": verb, "role": role} if role else {"verb": verb}
            if math.isnan(score):
                self._context.drop("statements with a score of NaN", f"{self._file}: {field}")
                statements.left_out.append({"subject": subject, **verb_and_role})
                continue
            is_lacking = [*map(math.isnan, box)]
            if any(is_lacking) and not all(is_lacking):
                problem = "has only some of a box's corners; give all four, or NaN for each if there is no object"
                raise DataError(problem, field=field)
            has_object = role and not all(is_lacking)
            # In the record, the boxes of objects come after the people's.
            object_ = len(people) + statements.objects.add(box, "") if has_object else None
            # the order of the keys is that of the record
            triplet = {"subject": subject, "object": object_, "verb": verb, "score": score, **verb_and_role}
            statements.hois.append(triplet)
        self.people += 1
        self.incomplete_people += len(stated_keys) != len(self._known_keys)


def _people(source: Source, context: Context) -> Iterator[_Person]:
    """Yield (place in the file, dictionary) for each person. One without image_id goes to the context's policy."""
    for where, item in source.items():
        image_id = item.get("image_id") if isinstance(item, dict) else None
        number = int(image_id) if isinstance(image_id, float) and image_id.is_integer() else image_id
        if isinstance(number, bool) or not isinstance(number, int | str):
            problem = "has no image_id, the number of its COCO image; add it"
            context.policy.handle(DataError(problem, place=source.name, field=where))
            continue
        yield where, {**item, "image_id": number}


def _keys(vocabulary: Vocabulary) -> dict[str, tuple[str, str]]:
    """Return (verb, role) for each key of a person's dictionary, such as ("hold", "") for hold_agent."""
    pairs: list[tuple[str, str]] = []
    for verb, roles in vocabulary.roles_of.items():
        pairs += [(verb, role) for role in ("", *roles)]
    return {_key(verb, role): (verb, role) for verb, role in pairs}


def _numbers(values: Any, count: int, field: str) -> list[float]:
    """Return a score (`count` 1), a box (4) or both (5) as floats, NaN for null. Raises `DataError` otherwise."""
    try:
        numbers = [math.nan if value is None else float(value) for value in values]  # JSON has null for NaN
    except (TypeError, ValueError):
        numbers = []
    if len(numbers) != count or any(map(math.isinf, numbers)):
        expected = {1: "a score", 4: "a box of four numbers", 5: "a box and a score: five numbers"}[count]
        raise DataError(f"is not {expected}", field=field)
    return numbers


def write(records: Iterable[Record], path: str, context: Context) -> None:
    """Write predictions as V-COCO's official list, pickled. Raises `DataError` for a triplet without a score."""
    people: list[dict[str, Any]] = []
    for record in records:
        require_scores(record, context.target)
        people += _dictionaries(record, context.vocabulary)
    with open_output(path) as output:
        output(pickle.dumps(people, protocol=2))


def _dictionaries(record: Record, vocabulary: Vocabulary) -> Iterator[dict[str, Any]]:
    """Yield the dictionaries of a record's people for the official list, in the order of their boxes. A key without a
    statement gets a score of NaN, which the evaluator skips, or what `unstated` says. Further values of a key, such as
    a second object of a role, go into further dictionaries."""

    def spelled(verb: str) -> str:
        """Return a verb of the record as the list spells it."""
        return vocabulary.verbs[vocabulary.verb_ids[verb]]

    image_id = number_or_name(record["image_id"])
    hois: dict[int, list[dict[str, Any]]] = {}
    for hoi in record["hois"]:
        hois.setdefault(int(hoi["subject"]), []).append({**hoi, "verb": spelled(hoi["verb"])})
    unstated = record.get("unstated")  # the score and the object box of keys that are not stated; None to skip them
    left_out: dict[int, set[str]] = {}
    for item in record.get("left_out") or ():
        left_out.setdefault(item["subject"], set()).add(_key(spelled(item["verb"]), item.get("role")))
    skipped: dict[str, Any] = {"score": math.nan, "object": [math.nan] * 4}  # what the evaluator skips
    person_id = vocabulary.object_ids[SUBJECT]
    labels = record["labels"] if unstated else ()
    all_people = [index for index, label in enumerate(labels) if vocabulary.object_ids.get(label) == person_id]
    for subject in sorted({*hois, *all_people}):
        keys_left_out = left_out.get(subject, set())
        # each further value of a key needs a further dictionary
        values_of = _collect_values(record, hois.get(subject, []), keys_left_out)
        for repetition in range(max(map(len, values_of.values()), default=1)):
            default = unstated if unstated and repetition == 0 else skipped  # for a key without a value
            person: dict[str, Any] = {"image_id": image_id, "person_box": record["boxes"][subject]}
            for key, (_, role) in _keys(vocabulary).items():  # a role's value has a box, too
                fallback, values = skipped if key in keys_left_out else default, values_of.get(key, ())
                fallback_value = [*fallback["object"], fallback["score"]] if role else fallback["score"]
                person[key] = values[repetition] if repetition < len(values) else fallback_value
            yield person


def _key(verb: str, role: str | None) -> str:
    """Return the key of the official list for a verb with a role (hold_obj), or for the action itself (hold_agent)."""
    return f"{verb}_{role or 'agent'}"


def _collect_values(record: Record, hois: list[dict[str, Any]], left_out: set[str]) -> dict[str, list[Any]]:
    """Return the values that a record states about one person, by the key of the official list: scores for actions,
    [x1, y1, x2, y2, score] for roles. An action with roles alone gets their best score, unless it is `left_out` or the
    record has `unstated`."""
    values_of: dict[str, list[Any]] = {}
    best_role_score: dict[str, float] = {}
    for hoi in hois:
        value, role = hoi["score"], hoi.get("role")
        if role is not None:
            action = _key(hoi["verb"], None)
            best_role_score[action] = max(value, best_role_score.get(action, -math.inf))
            box = [math.nan] * 4 if hoi["object"] is None else record["boxes"][hoi["object"]]
            value = [*box, value]
        values_of.setdefault(_key(hoi["verb"], role), []).append(value)
    if not record.get("unstated"):
        for action, score in best_role_score.items():
            if action not in left_out:
                values_of.setdefault(action, [score])
    return values_of
