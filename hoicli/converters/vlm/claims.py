"""From the values in a model's answer to its claims: who does what to which object, and where. Read are the shapes of
`forms`, whose keys have a few spellings: a key's words give its meaning (`human_bbox`, `person box`, `sub_bbox` are one
key), the type of its value gives the content. A key that none of them has refuses the answer: it could deny what stands
beside it ("present": false). A claim with a missing part is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import isfinite
from typing import Any

from hoicli.converters.vlm.names import is_name, label_of, split_phrase, verbs_of
from hoicli.converters.vlm.text import Span, span_of

NO_PERSON = "a triplet whose subject is no person"
NO_BOX = "a box without a name, or that is not four numbers"

Place = list[float] | int | str | None
"""Where something is: a box's numbers, the index or id of a box, its name alone, or nothing."""
Persons = Callable[[str], bool]
"""Whether a name is one of who acts: a person, or the dataset's own subjects."""

# Keys, after `_plain_key`.
_HUMAN, _OTHER = "(?:human|person|subject|sub|agent|h)", "(?:object|obj|target|o)"
_BBOX = r"b?(?:ounding_)?box(?:_2d)?"
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
_LISTS = re.compile(
    r"(?:inter)?actions?|relation(?:ship)?s?|hois?|(?:predicted_|pred_)?pairs|triplets|objects|detections"
)
"""The keys of an object that has lists."""
_BESIDE = re.compile(
    r"reason(?:ing|s)?|explanations?|rationale|thoughts?|analysis|evidence|comments?|notes?|description|caption|summary|"
    r"(?:image_|img_|pair_|hoi_|triplet_|interaction_|relation_)?(?:id|idx|index)|image|file_name|image_path|width|height"
)
"""The keys of what may stand beside a claim, and is not read."""
_OF_ID = re.compile(r"([^\W\d][^\d.]{0,60}?)(?:[._ #-]?\d{1,4})?")
"""An id with a name in it, as R1-SGG's `person.1`."""


class NotReadError(Exception):
    """An answer that is not read, and why."""


@dataclass(frozen=True)
class Claim:
    """One triplet of an answer: the subject's and the object's place, the object's name, verbs, and a score. `acts`:
    the subject's name, if it has one. `of_box`: the object's name is that of a box of the answer. `spans`: where the
    answer says each verb; `label_span`: where it says the object's name; None where that is not known."""

    subject: Place
    object: Place
    label: str | None
    verbs: tuple[str, ...]
    score: float | None = None
    spans: tuple[Span | None, ...] = ()
    label_span: Span | None = None
    acts: str | None = None
    of_box: bool = False


@dataclass
class Claims:
    """Collects the claims of one answer.

    persons: who may act. verbs, label: those of the question, for answers with boxes only (grounding). triplets;
    `located`, (box, name as records spell it) of its own; `ids`, the rows of `located` by the id that the answer gives
    them; `acting`, the rows of `located` that are a triplet's subject. `reports`: why parts are left out. `tokens`: the
    kind of its box tokens, "" for none or several; `form`: json or tokens, "" for an answer that is refused.
    """

    persons: Persons
    verbs: Sequence[str] = ()
    label: str | None = None
    triplets: list[Claim] = field(default_factory=list)
    located: list[tuple[list[float], str]] = field(default_factory=list)
    ids: dict[str, list[int]] = field(default_factory=dict)
    acting: set[int] = field(default_factory=set)
    reports: list[str] = field(default_factory=list)
    tokens: str = ""
    form: str = ""

    def read_all(self, values: Sequence[Any]) -> None:
        """Add the claims in the values of the answer. Raises `NotReadError` for a value of another shape."""
        for value in values:
            self.read(value)
        if self.located:
            self.triplets = [claim for claim in map(self._look_up_boxes, self.triplets) if claim is not None]

    def read(self, value: Any) -> None:
        """Add the claims in a value."""
        if isinstance(value, list):
            items = [_by_plain_key(item) if isinstance(item, dict) else item for item in value]
            boxes = len(items) == 2 and all(isinstance(item, dict) and _is_located(item) for item in items)
            if boxes and (self.verbs or any(_value_of(item, _VERBS) is not None for item in items)):
                self._read_pair(*items)
                return
            for item in value:
                self.read(item)
        elif isinstance(value, dict):
            self._read_object(_by_plain_key(value))
        else:
            raise NotReadError("an answer with a list of other things than objects")

    def _read_object(self, entry: dict[str, Any]) -> None:
        if _is_located(entry):
            self._read_located(entry)
        elif any(map(_SUBJECT.fullmatch, entry)) or (
            any(map(_OBJECT.fullmatch, entry)) and _value_of(entry, _VERBS) is not None
        ):
            self._read_triplet(entry)
        else:
            self._read_wrapper(entry)

    def _read_pair(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        """A list of two boxes with names: the person and the object, in this order unless only the second is named as a
        person."""
        for entry in (first, second):
            _check(entry, _BOX, _NAME, _VERBS, _SCORE)
        names = [_name_of(entry) for entry in (first, second)]
        people = [name is not None and self.persons(name) for name in names]
        if people == [False, True]:
            first, second = second, first
        elif None not in names and not any(people):
            self.reports.append(NO_PERSON)
            return
        label, verb_beside = _name_of(second), _value_of(first, _VERBS)
        verb_value = _value_of(second, _VERBS) or verb_beside
        verbs = verbs_of(verb_value, label) or self.verbs
        if (
            verb_value is verb_beside
            and isinstance(verb_value, str)
            and (parts := split_phrase(verb_value))[1] == label
        ):
            verbs = parts[0]
        places = [numbers_of(_value_of(entry, _BOX)) for entry in (first, second)]
        claim = Claim(
            places[0], places[1], label or self.label, tuple(verbs), self._score(second), acts=_name_of(first)
        )
        self._add(claim, verb_value, _value_of(second, _NAME))

    def _read_triplet(self, entry: dict[str, Any]) -> None:
        _check(entry, _SUBJECT, _OBJECT, _LABEL, _NAME, _VERBS, _SCORE)
        subject, object_ = (_value_of(entry, kind) for kind in (_SUBJECT, _OBJECT))
        ends = [_by_plain_key(end) if isinstance(end, dict) else {} for end in (subject, object_)]
        for end in ends:
            _check(end, _BOX, _NAME, _SCORE)
        entries = (entry.get(key) for key in ("subject", "human", "person"))
        named = next((_OF_ID.sub(r"\1", text) for text in map(_text_of, entries) if text and text is not subject), "")
        acts = _name_of(ends[0]) or label_of(named) or None
        if acts is not None and not self.persons(acts):
            self.reports.append(NO_PERSON)
            return
        others = [entry.get(key) for key in ("object", "target", "label", "category", "class", "name")]
        labels = [_value_of(entry, _LABEL), *others, _value_of(ends[1], _NAME)]
        label = next((text for text in map(_text_of, labels) if text and not text.strip().isdecimal()), None)
        other = _place_of(object_)
        verb_value, source = _value_of(entry, _VERBS), label
        verbs = self.verbs if verb_value is None else verbs_of(verb_value, label or self.label)
        if label is None and self.label is None and isinstance(verb_value, str) and not isinstance(other, int):
            verbs, label = split_phrase(verb_value)
            source = verb_value
        label = self.label if label is None else label_of(label)
        claim = Claim(_place_of(subject), other, label, tuple(verbs), self._score(entry), acts=acts)
        self._add(claim, verb_value, source)

    def _add(self, claim: Claim, verb_value: Any, named: Any) -> None:
        """Add a claim whose verbs are in the value `verb_value`, and its object's name in `named`."""
        label = claim.label
        if not claim.verbs:
            self.reports.append("a pair without a verb that can be read")
        elif label is None or type(claim.object) is int or label in self.ids or is_name(label):
            spans = tuple(span_of(verb_value, verb) for verb in claim.verbs)
            self.triplets.append(replace(claim, spans=spans, label_span=span_of(named, label or "")))
        else:
            self.reports.append("an object whose name cannot be read")

    def _score(self, entry: dict[str, Any]) -> float | None:
        value = _value_of(entry, _SCORE)
        score = _number_of(value)
        if value is not None and score is None:
            self.reports.append("a score that is no number (its triplet is kept)")
        return score

    def _read_located(self, entry: dict[str, Any]) -> None:
        if _value_of(entry, _VERBS) is not None:
            raise NotReadError("an answer with a verb beside one box, and nothing that says whose")
        _check(entry, _BOX, _NAME, _SCORE)
        own_id = next((entry[key] for key in ("id", "idx", "index") if key in entry), None)
        of_id = _OF_ID.fullmatch(own_id) if isinstance(own_id, str) else None
        box, name = numbers_of(_value_of(entry, _BOX)), _name_of(entry) or label_of(of_id[1] if of_id else "")
        if box is None or not is_name(name):
            self.reports.append(NO_BOX)
            return
        if isinstance(own_id, int | str):
            self.ids.setdefault(str(own_id).strip(), []).append(len(self.located))
        self.located.append((box, name))

    def _read_wrapper(self, entry: dict[str, Any]) -> None:
        """An object with lists of triplets or of boxes."""
        _check(entry, _LISTS)
        lists = [value for key, value in entry.items() if not _BESIDE.fullmatch(key)]
        if not lists or not all(isinstance(value, list) for value in lists):
            raise NotReadError("an answer without a list of triplets or boxes")
        for item in chain.from_iterable(lists):
            self.read(item)

    def _look_up_boxes(self, claim: Claim) -> Claim | None:
        """A claim with boxes of the answer for ids; None, and reported, where there is none or which one is not
        said."""
        boxes_of_ends: dict[str, Any] = {}
        for end in ("subject", "object"):
            place = getattr(claim, end)
            rows = self.ids.get(str(place)) if isinstance(place, int | str) else None
            if rows is None and type(place) is not int:
                continue
            if rows is None or len(rows) > 1:
                self.reports.append("a triplet with the index of a box that is not there")
                return None
            box, name = self.located[rows[0]]
            if end == "object":
                boxes_of_ends |= {"object": box, "label": name, "of_box": True}
            elif self.persons(name):
                boxes_of_ends |= {"subject": box, "acts": name}
                self.acting.add(rows[0])
            else:
                self.reports.append(NO_PERSON)
                return None
        return replace(claim, **boxes_of_ends)


def _check(entry: dict[str, Any], *patterns: re.Pattern[str]) -> None:
    """Raise `NotReadError` for a key that is of none of the patterns, and none that may stand beside."""
    for key in entry:
        if not any(pattern.fullmatch(key) for pattern in (_BESIDE, *patterns)):
            raise NotReadError(f"an answer with a key that is not read ({key[:40]})")


# Keys and values


def _plain_key(key: str) -> str:
    """ "Object Class", "object-class" and "objectClass" as object_class; what stands in brackets is left off."""
    key = re.sub(r"[(\[][^)\]]*[)\]]?", " ", key[:200])
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.strip())
    return re.sub(r"[\s\-_]+", "_", key).lower()


def _by_plain_key(entry: dict[str, Any]) -> dict[str, Any]:
    """An object with plain keys. Raises `NotReadError` for two keys that are one."""
    plain = {_plain_key(key): value for key, value in entry.items()}
    if len(plain) < len(entry):
        raise NotReadError("an answer with a key twice in one object")
    return plain


def _value_of(entry: dict[str, Any], keys: re.Pattern[str]) -> Any:
    """The first value under one of the keys that is not null; boxes before names, which are the shorter keys."""
    matching_keys = [key for key, value in entry.items() if value is not None and keys.fullmatch(key)]
    return entry[max(matching_keys, key=lambda key: "box" in key)] if matching_keys else None


def _is_located(entry: dict[str, Any]) -> bool:
    """Whether an entry has a box of its own, without a subject."""
    return _value_of(entry, _BOX) is not None and _value_of(entry, _SUBJECT) is None


def _name_of(entry: dict[str, Any]) -> str | None:
    """The name of a box, as records spell it."""
    name = _text_of(_value_of(entry, _NAME))
    return None if name is None else label_of(name)


def _text_of(value: Any) -> str | None:
    """A text with something in it, else None."""
    return value if isinstance(value, str) and value.strip() else None


def _place_of(value: Any) -> Place:
    """The place that a value describes."""
    if isinstance(value, dict):
        entry = _by_plain_key(value)
        box = _value_of(entry, _BOX)
        if box is not None:
            return numbers_of(box)
        index = next((entry[key] for key in ("id", "idx", "index") if key in entry), None)
        return _place_of(index) if index is not None else _text_of(_value_of(entry, _NAME))
    if isinstance(value, str):
        return int(value) if value.strip().isdecimal() and len(value.strip()) < 9 else value
    return value if type(value) is int else numbers_of(value)


def numbers_of(value: Any) -> list[float] | None:
    """The four numbers of a box, in any convention; None if there are not four finite ones. Numbers may be text, the
    list nested ([[x1, y1, x2, y2]] or two points)."""
    if not isinstance(value, list):
        return None
    if len(value) == 1:
        return numbers_of(value[0])
    if len(value) == 2 and all(isinstance(point, list) and len(point) == 2 for point in value):
        value = [*value[0], *value[1]]
    numbers = [number for number in map(_number_of, value[:5]) if number is not None]
    return numbers if len(numbers) == len(value) == 4 else None


def _number_of(value: Any) -> float | None:
    """A finite number, which may be a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
