"""From the values in a model's answer to its claims: who does what to which object, and where. Models choose their own
keys; a key's words give its meaning (`human_bbox`, `person box`, `sub_bbox` are one key), and the type of its value
gives the content: a list is a box, a whole number the index of a box, text a name. Nothing is invented: a claim with a
missing part is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any

from hoicli.converters.vlm.names import label_of, split_phrase, verbs_of

Place = list[float] | int | str | None
"""Where something is: a box's numbers, the index of a box, its name alone, or nothing."""
Report = Callable[[str], None]
"""A function that takes the reason why a part of an answer is left out."""


@dataclass(frozen=True)
class Claim:
    """One triplet of an answer: the subject's and the object's place, the object's name, verbs, and a score."""

    subject: Place
    object: Place
    label: str | None
    verbs: tuple[str, ...]
    score: float | None = None


@dataclass
class Claims:
    """The content of an answer: triplets; `located`, (box, name) without a triplet; `listed`: triplets index `located`;
    `understood`: some value could be read."""

    triplets: list[Claim] = field(default_factory=list)
    located: list[tuple[list[float], str]] = field(default_factory=list)
    listed: bool = False
    understood: bool = False

    @cached_property
    def located_by_name(self) -> dict[str, list[tuple[list[float], str]]]:
        """`located` by the name as records spell it, once all of it is there."""
        found: dict[str, list[tuple[list[float], str]]] = {}
        for box, name in self.located:
            found.setdefault(label_of(name), []).append((box, name))
        return found


def claims_of(values: Sequence[Any], report: Report, *, verbs: Sequence[str] = (), label: str | None = None) -> Claims:
    """The claims in the values of one answer; not `understood` if none is a claim, a box with a name or `[]`. `verbs`,
    `label`: those of the question, for answers with boxes only (grounding).
    """
    reader = _ClaimReader(report, tuple(verbs), label)
    for value in values:
        reader.read(value)
    return reader.claims


class _ClaimReader:
    """Collects the claims in the values of one answer."""

    def __init__(self, report: Report, verbs: tuple[str, ...], label: str | None) -> None:
        self.claims = Claims()
        self._report = report
        self._verbs = verbs
        self._label = label

    def read(self, value: Any) -> None:
        """Add the claims in a value."""
        if isinstance(value, list):
            self._read_list(value)
        elif isinstance(value, dict):
            self._read_object(_by_plain_key(value))

    def _read_list(self, items: list[Any]) -> None:
        if not items:
            self.claims.understood = True
            return
        if len(items) == 2 and all(isinstance(item, dict) and _is_located(_by_plain_key(item)) for item in items):
            self._read_pair(*map(_by_plain_key, items))
            return
        for item in items:
            self.read(item)

    def _read_pair(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        """A list of two boxes with names: the person and the object, in this order unless only the second is named as a
        person."""
        if _name_of(first) not in PERSONS and _name_of(second) in PERSONS:
            first, second = second, first
        self.claims.understood = True
        verbs = verbs_of(_value(second, _VERBS) or _value(first, _VERBS)) or list(self._verbs)
        score = _score(_value(second, _SCORE), self._report)
        places = [numbers_of(_value(entry, _BOX)) for entry in (first, second)]
        self._add(places[0], places[1], _name_of(second) or self._label, verbs, score)

    def _read_object(self, entry: dict[str, Any]) -> None:
        subject, object_ = _value(entry, _SUBJECT), _value(entry, _OBJECT)
        if subject is not None or (object_ is not None and _value(entry, _VERBS) is not None):
            self._read_triplet(entry, subject, object_)
        elif _is_located(entry) and not isinstance(entry.get("labels"), list):
            self._read_located(entry)
        else:
            self._read_wrapper(entry)

    def _read_triplet(self, entry: dict[str, Any], subject: Any, object_: Any) -> None:
        self.claims.understood = True
        person, other = _place(subject), _place(object_)
        label = _text(_value(entry, _LABEL))
        for key in ("object", "target", "label", "category", "class", "name"):
            label = label or (_text(entry.get(key)) if not isinstance(_place(entry.get(key)), int | list) else None)
        if label is None and isinstance(object_, dict):
            label = _name_of(_by_plain_key(object_))
        said = _value(entry, _VERBS)
        verbs = verbs_of(said, label or self._label) if said is not None else list(self._verbs)
        if label is None and self._label is None and isinstance(said, str):
            verbs, label = split_phrase(said)
        self._add(person, other, label or self._label, verbs, _score(_value(entry, _SCORE), self._report))

    def _add(self, subject: Place, object_: Place, label: str | None, verbs: list[str], score: float | None) -> None:
        if not verbs:
            self._report("a pair without a verb that can be read")
            return
        self.claims.triplets.append(Claim(subject, object_, label, tuple(verbs), score))

    def _read_located(self, entry: dict[str, Any]) -> None:
        self.claims.understood = True
        box, name = numbers_of(_value(entry, _BOX)), _name_of(entry)
        if box is None or name is None:
            self._report("a box without a name, or that is not four numbers")
        else:
            self.claims.located.append((box, name))

    def _read_wrapper(self, entry: dict[str, Any]) -> None:
        """`{"boxes": [...], "labels": [...], "interactions": [...]}`, or any object with lists of claims."""
        boxes, labels = entry.get("boxes", entry.get("bboxes")), entry.get("labels")
        if isinstance(boxes, list) and isinstance(labels, list) and len(boxes) == len(labels):
            numbers = [numbers_of(box) for box in boxes]
            if all(box is not None for box in numbers) and all(isinstance(label, str) for label in labels):
                self.claims.understood = True
                self.claims.listed = True
                self.claims.located += [(box, label) for box, label in zip(numbers, labels, strict=True) if box]
            else:
                self._report("a list of boxes of which one is not four numbers, or has no name")
                return
        for key, value in entry.items():
            if isinstance(value, list) and key not in ("boxes", "bboxes", "labels", "scores"):
                if not _BOX.fullmatch(key) and (not value or isinstance(value[0], dict | list)):
                    self._read_list(value)
            elif isinstance(value, dict):
                self._read_object(_by_plain_key(value))


# Keys, after `_plain`.
_HUMAN, _OTHER = "(?:human|person|subject|sub|agent|h)", "(?:object|obj|target|o)"
_BBOX = r"b?(?:ounding_)?box(?:es)?(?:_2d)?"
_SUBJECT = re.compile(rf"{_HUMAN}_(?:{_BBOX}|id|idx|index)|{_BBOX}_{_HUMAN}|human|person|subject")
_OBJECT = re.compile(rf"{_OTHER}_(?:{_BBOX}|id|idx|index)|{_BBOX}_{_OTHER}|object|target")
_BOX = re.compile(rf"{_BBOX}|coordinates|coords")
_LABEL = re.compile(r"(?:object|obj|target)_(?:class|label|category|name|type)|noun")
_NAME = re.compile(r"label|name|class|category|object|object_(?:class|label|category|name)")
_VERBS = re.compile(
    r"verbs?(?:_(?:class|classes|label|name))?|actions?(?:_(?:label|name|class))?|interactions?(?:_(?:label|type))?|"
    r"predicate|relation(?:ship)?|activity|hoi|phrase"
)
_SCORE = re.compile(r"score|confidence|conf|probability|prob")

PERSONS = frozenset(
    ("person", "human", "people", "man", "woman", "boy", "girl", "child", "kid", "baby", "adult", "player", "rider")
)
"""Names of a box that mean a person."""


def _plain(key: str) -> str:
    """ "Object Class", "object-class" and "objectClass" as object_class."""
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.strip())
    return re.sub(r"[\s\-_]+", "_", key).lower()


def _by_plain_key(entry: dict[str, Any]) -> dict[str, Any]:
    return {_plain(key): value for key, value in entry.items()}


def _value(entry: dict[str, Any], keys: re.Pattern[str]) -> Any:
    """The first value under one of the keys that is not null; boxes before names, which are the shorter keys."""
    found = [key for key, value in entry.items() if value is not None and keys.fullmatch(key)]
    return entry[max(found, key=lambda key: "box" in key)] if found else None


def _is_located(entry: dict[str, Any]) -> bool:
    """Whether an entry has a box of its own, without a subject."""
    return _value(entry, _BOX) is not None and _value(entry, _SUBJECT) is None


def _name_of(entry: dict[str, Any]) -> str | None:
    name = _text(_value(entry, _NAME))
    return None if name is None else label_of(name)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _place(value: Any) -> Place:
    """The place that a value describes."""
    if isinstance(value, dict):
        entry = _by_plain_key(value)
        box = _value(entry, _BOX)
        if box is not None:
            return numbers_of(box)
        index = next((entry[key] for key in ("id", "idx", "index", "box_index") if key in entry), None)
        return _place(index) if index is not None else numbers_of(value) or _text(_value(entry, _NAME))
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        if value.strip().isdecimal() and len(value.strip()) < 9:
            return int(value)
        return numbers_of(value) or value
    return numbers_of(value)


def numbers_of(value: Any) -> list[float] | None:
    """The four numbers of a box, in any convention; None if there are not four finite ones.

    Numbers may be text, the list nested ([[x1, y1, x2, y2]] or two points), text itself, or keyed (x1.., xmin..;
    x, y, width, height).
    """
    if isinstance(value, dict):
        entry = _by_plain_key(value)
        for keys in (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"), ("x_min", "y_min", "x_max", "y_max")):
            if all(key in entry for key in keys):
                return numbers_of([entry[key] for key in keys])
        for keys in (("x", "y", "width", "height"), ("x", "y", "w", "h")):
            if all(key in entry for key in keys) and (found := numbers_of([entry[key] for key in keys])):
                return [found[0], found[1], found[0] + found[2], found[1] + found[3]]
        return None
    if isinstance(value, str):
        text = value.strip().strip("[]()").strip()
        value = re.split(r"\s*,\s*|\s+", text) if text else []
    if not isinstance(value, list):
        return None
    if len(value) == 1 and isinstance(value[0], list | dict):
        return numbers_of(value[0])
    if len(value) == 2 and all(isinstance(point, list) and len(point) == 2 for point in value):
        value = [*value[0], *value[1]]
    if len(value) != 4:
        return None
    numbers = [_number(item) for item in value]
    return [number for number in numbers if number is not None] if None not in numbers else None


def _number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if isfinite(value) else None
    except OverflowError:
        return None


def _score(value: Any, report: Report) -> float | None:
    if value is None:
        return None
    number = _number(value)
    if number is None:
        report("a score that is no number (its triplet is kept)")
    return number
