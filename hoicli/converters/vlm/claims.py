"""From the values in a model's answer to its claims: who does what to which object, and where. Read are the shapes of
`forms`, whose keys have a few spellings (`keys`). A key that none of them has refuses the answer: it could deny what
stands beside it ("present": false). A claim with a missing part is reported, and one that can be read in two ways is
reported with both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hoicli.converters.vlm import keys
from hoicli.converters.vlm.keys import Place, Report, by_plain_key, name_of, numbers_of, place_of, shown, value_of
from hoicli.converters.vlm.names import is_name, label_of, split_phrase, verbs_of
from hoicli.converters.vlm.persons import PERSONS
from hoicli.converters.vlm.text import Span, span_of

NO_PERSON = "a triplet whose subject is no person"
EITHER = "a subject that is no person, and an object that is one: either may act"

Persons = Callable[[str], bool]
"""Whether a name is one of who acts: a person, or the dataset's own subjects."""


class NotReadError(Exception):
    """An answer that is not read, and why."""


@dataclass(frozen=True)
class Claim:
    """One triplet of an answer: the subject's and the object's place, the object's name, verbs, and a score. `acts`:
    the subject's name, if it has one. `spans`: where the answer says each verb; `label_span`: where it says the
    object's name; None where that is not known."""

    subject: Place
    object: Place
    label: str | None
    verbs: tuple[str, ...]
    score: float | None = None
    spans: tuple[Span | None, ...] = ()
    label_span: Span | None = None
    acts: str | None = None


@dataclass
class Claims:
    """The content of an answer: triplets; `located`, (box, name) of its own; `ids`, the rows of `located` by the id
    that the answer gives them; `understood`: some value could be read."""

    triplets: list[Claim] = field(default_factory=list)
    located: list[tuple[list[float], str]] = field(default_factory=list)
    ids: dict[str, list[int]] = field(default_factory=dict)
    understood: bool = False

    @cached_property
    def located_by_name(self) -> dict[str, list[tuple[list[float], str]]]:
        """`located` by the name as records spell it, once all of it is there."""
        found: dict[str, list[tuple[list[float], str]]] = {}
        for box, name in self.located:
            found.setdefault(label_of(name), []).append((box, name))
        return found


def claims_of(
    values: Sequence[Any], report: Report, persons: Persons, *, verbs: Sequence[str] = (), label: str | None = None
) -> Claims:
    """The claims in the values of one answer. `verbs`, `label`: those of the question, for answers with boxes only
    (grounding). Raises `NotReadError` for a value of another shape."""
    reader = _ClaimReader(report, persons, tuple(verbs), label)
    for value in values:
        reader.read(value)
    reader.finish()
    return reader.claims


class _ClaimReader:
    """Collects the claims in the values of one answer."""

    def __init__(self, report: Report, persons: Persons, verbs: tuple[str, ...], label: str | None) -> None:
        self.claims = Claims()
        self._report = report
        self._persons = persons
        self._verbs = verbs
        self._label = label

    def read(self, value: Any, name: str | None = None) -> None:
        """Add the claims in a value. `name`: what the key above calls a box without a name."""
        self.claims.understood = True
        if isinstance(value, list):
            items = [by_plain_key(item) if isinstance(item, dict) else item for item in value]
            boxes = len(items) == 2 and all(isinstance(item, dict) and keys.is_located(item) for item in items)
            if boxes and (self._verbs or any(value_of(item, keys.VERBS) is not None for item in items)):
                self._read_pair(*items)
                return
            for item in value:
                self.read(item, name)
        elif isinstance(value, dict):
            self._read_object(by_plain_key(value), name)
        else:
            raise NotReadError("an answer with a list of other things than objects")

    def _read_object(self, entry: dict[str, Any], name: str | None) -> None:
        ends = [value_of(entry, kind) for kind in (keys.SUBJECT, keys.OBJECT)]
        if keys.is_located(entry) and "boxes" not in entry:
            self._read_located(entry, name)
        elif any(key for key in entry if keys.SUBJECT.fullmatch(key)) or (
            any(key for key in entry if keys.OBJECT.fullmatch(key)) and value_of(entry, keys.VERBS) is not None
        ):
            self._read_triplet(entry, *ends)
        else:
            self._read_wrapper(entry)

    def _read_pair(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        """A list of two boxes with names: the person and the object, in this order unless only the second is named as a
        person."""
        for entry in (first, second):
            _check(entry, keys.BOX, keys.NAME, keys.VERBS, keys.SCORE)
        names = [name_of(entry) for entry in (first, second)]
        people = [name is not None and self._persons(name) for name in names]
        if people == [False, True]:
            first, second = second, first
        said = value_of(second, keys.VERBS) or value_of(first, keys.VERBS)
        places = [numbers_of(value_of(entry, keys.BOX)) for entry in (first, second)]
        if None not in names and not any(people):
            self._either(names[0], places[0], said or self._verbs[0], names[1], places[1])
            return
        label = name_of(second)
        verbs = verbs_of(said, label) or list(self._verbs)
        if said is value_of(first, keys.VERBS) and isinstance(said, str) and (parts := split_phrase(said))[1] == label:
            verbs = parts[0]
        score = keys.score_of(value_of(second, keys.SCORE), self._report)
        acts = name_of(first)
        self._add(places[0], places[1], label or self._label, verbs, score, said, value_of(second, keys.NAME), acts)

    def _either(self, name: str | None, box: Place, said: Any, other: str | None, other_box: Place) -> None:
        """Report a pair whose first is no person, of which either may act."""
        one, two = shown(name or "", box), shown(other or "", other_box)
        verb = ", ".join(verbs_of(said)) or "acts on"
        readings = f"{one} {verb} {two}", f"{two} {verb} {one}"
        self._report(EITHER if other is not None and self._persons(other) else NO_PERSON, *readings)

    def _read_triplet(self, entry: dict[str, Any], subject: Any, object_: Any) -> None:
        _check(entry, keys.SUBJECT, keys.OBJECT, keys.LABEL, keys.NAME, keys.VERBS, keys.SCORE)
        person, other = place_of(subject), place_of(object_)
        label = keys.text_of(value_of(entry, keys.LABEL))
        for key in ("object", "target", "label", "category", "class", "name"):
            named = entry.get(key)
            label = label or (keys.text_of(named) if not isinstance(place_of(named), int | list) else None)
        for end in (subject, object_):
            if isinstance(end, dict):
                _check(by_plain_key(end), keys.BOX, keys.NAME, keys.SCORE, keys.CORNER)
        if label is None and isinstance(object_, dict):
            label = keys.text_of(value_of(by_plain_key(object_), keys.NAME))
        acts = name_of(by_plain_key(subject)) if isinstance(subject, dict) else None
        if acts is not None and not self._persons(acts):
            if label is not None and self._persons(label_of(label)):
                self._either(acts, person, value_of(entry, keys.VERBS), label_of(label), other)
            else:
                self._report(NO_PERSON)
            return
        said = value_of(entry, keys.VERBS)
        verbs = verbs_of(said, label or self._label) if said is not None else list(self._verbs)
        shown_label: Any = label
        if label is None and self._label is None and isinstance(said, str) and not isinstance(other, int):
            verbs, label = split_phrase(said)
            shown_label = said
        label = label_of(label) if label is not None else self._label
        score = keys.score_of(value_of(entry, keys.SCORE), self._report)
        self._add(person, other, label, verbs, score, said, shown_label, acts)

    def _add(
        self, subject: Place, object_: Place, label: str | None, verbs: list[str], score: float | None, said: Any,
        named: Any, acts: str | None,
    ) -> None:  # fmt: skip
        if not verbs:
            self._report("a pair without a verb that can be read")
            return
        if label is not None and type(object_) is not int and label not in self.claims.ids and not is_name(label):
            self._report("an object whose name cannot be read")
            return
        spans = tuple(span_of(said, verb) for verb in verbs)
        of_label = span_of(named, label) if label is not None else None
        self.claims.triplets.append(Claim(subject, object_, label, tuple(verbs), score, spans, of_label, acts))

    def _read_located(self, entry: dict[str, Any], called: str | None) -> None:
        if value_of(entry, keys.VERBS) is not None:
            raise NotReadError("an answer with a verb beside one box, and nothing that says whose")
        _check(entry, keys.BOX, keys.NAME, keys.SCORE)
        own = next((entry[key] for key in ("id", "idx", "index") if key in entry), None)
        of_id = _OF_ID.fullmatch(own) if isinstance(own, str) else None
        box, name = numbers_of(value_of(entry, keys.BOX)), name_of(entry) or (of_id[1] if of_id else called)
        if box is None or name is None or not is_name(label_of(name)):
            self._report("a box without a name, or that is not four numbers")
            return
        if isinstance(own, int | str):
            self.claims.ids.setdefault(str(own).strip(), []).append(len(self.claims.located))
        self.claims.located.append((box, name))

    def _read_wrapper(self, entry: dict[str, Any]) -> None:
        """An object with lists: of triplets, of boxes, or hoicli's own `boxes`, `labels` and `hois`."""
        _check(entry, keys.LISTS, keys.PERSON_LIST)
        boxes, labels = entry.pop("boxes", None), entry.pop("labels", None)
        if labels is not None:
            numbers = [numbers_of(box) for box in boxes] if isinstance(boxes, list) and isinstance(labels, list) else []
            if not numbers or None in numbers or len(numbers) != len(labels) or not all(map(keys.text_of, labels)):
                raise NotReadError("an answer with a list of boxes of which one is not four numbers, or has no name")
            self.claims.ids |= {str(at): [at] for at in range(len(numbers))}
            self.claims.located += [(box, name) for box, name in zip(numbers, labels, strict=True) if box]
        elif boxes is not None:
            self.read(boxes)
        lists = {key: value for key, value in entry.items() if not keys.BESIDE.fullmatch(key)}
        if not lists and labels is None and boxes is None:
            raise NotReadError("an answer without a list of triplets or boxes")
        for key, value in lists.items():
            if not isinstance(value, list):
                raise NotReadError(f"an answer whose {key} are no list")
            for item in value:
                self.read(item, "person" if keys.PERSON_LIST.fullmatch(key) else None)

    def finish(self) -> None:
        """Find the boxes that triplets name by id, and leave out triplets whose boxes are not there."""
        if self.claims.located:
            resolved = map(self._resolved, self.claims.triplets)
            self.claims.triplets = [claim for claim in resolved if claim is not None]

    def _resolved(self, claim: Claim) -> Claim | None:
        """A claim with boxes for ids; None, and reported, where there is none or which one is not said."""
        found: dict[str, Any] = {}
        for end in ("subject", "object"):
            place = getattr(claim, end)
            rows = self.claims.ids.get(str(place)) if isinstance(place, int | str) else None
            if rows is not None and len(rows) > 1:  # persons and objects may be numbered apart
                acts = end == "subject"
                rows = [row for row in rows if self._persons(label_of(self.claims.located[row][1])) == acts]
            if rows is None and type(place) is not int:
                continue
            if rows is None or len(rows) != 1:
                self._report("a triplet with the index of a box that is not there")
                return None
            box, name = self.claims.located[rows[0]]
            if end == "subject":
                if not self._persons(label_of(name)):
                    self._report(NO_PERSON)
                    return None
                found["acts"] = label_of(name)
            found[end] = box
            if end == "object":
                found["label"] = "person" if label_of(name) in PERSONS else label_of(name)
        return replace(claim, **found)


_OF_ID = re.compile(r"([^\W\d][^\d.]{0,60}?)[._ #-]?\d{1,4}")
"""An id with a name in it, as R1-SGG's `person.1`."""


def _check(entry: dict[str, Any], *patterns: re.Pattern[str]) -> None:
    """Raise `NotReadError` for a key that is of none of the patterns, and none that may stand beside."""
    for key in entry:
        if not keys.BESIDE.fullmatch(key) and not any(pattern.fullmatch(key) for pattern in patterns):
            raise NotReadError(f"an answer with a key that is not read ({key[:40]})")
