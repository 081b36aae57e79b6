"""From the values in a model's answer to its claims: who does what to which object, and where. Models choose their own
keys (`keys`). Nothing is invented: a claim with a missing part is reported, and one that can be read in two ways is
reported with both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hoicli.converters.vlm import keys
from hoicli.converters.vlm.keys import Place, Report, by_plain_key, name_of, numbers_of, place_of, shown, value_of
from hoicli.converters.vlm.names import label_of, split_phrase, verbs_of
from hoicli.converters.vlm.persons import PERSONS, names_person
from hoicli.converters.vlm.text import Span, span_of

NO_PERSON = "a triplet whose subject is no person"
EITHER = "a subject that is no person, and an object that is one: either may act"


@dataclass(frozen=True)
class Claim:
    """One triplet of an answer: the subject's and the object's place, the object's name, verbs, and a score. `spans`:
    where the answer says each verb; `label_span`: where it says the object's name; None where that is not known."""

    subject: Place
    object: Place
    label: str | None
    verbs: tuple[str, ...]
    score: float | None = None
    spans: tuple[Span | None, ...] = ()
    label_span: Span | None = None


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


def claims_of(values: Sequence[Any], report: Report, *, verbs: Sequence[str] = (), label: str | None = None) -> Claims:
    """The claims in the values of one answer; not `understood` if none is a claim, a box with a name or `[]`. `verbs`,
    `label`: those of the question, for answers with boxes only (grounding).
    """
    reader = _ClaimReader(report, tuple(verbs), label)
    for value in values:
        reader.read(value)
    reader.finish()
    return reader.claims


@dataclass(frozen=True)
class _Act:
    """An action beside the box of its person or of its object."""

    box: list[float]
    name: str
    said: Any
    score: float | None


class _ClaimReader:
    """Collects the claims in the values of one answer."""

    def __init__(self, report: Report, verbs: tuple[str, ...], label: str | None) -> None:
        self.claims = Claims()
        self._report = report
        self._verbs = verbs
        self._label = label
        self._acts: list[_Act] = []

    def read(self, value: Any, name: str | None = None) -> None:
        """Add the claims in a value. `name`: what the key above calls a box without a name."""
        if isinstance(value, list):
            self._read_list(value, name)
        elif isinstance(value, dict):
            self._read_object(by_plain_key(value), name)

    def _read_list(self, items: list[Any], name: str | None = None) -> None:
        if not items:
            self.claims.understood = True
        elif (
            len(items) == 2
            and all(isinstance(item, dict) and _is_bare(by_plain_key(item)) for item in items)
            and (self._verbs or any(value_of(by_plain_key(item), keys.VERBS) is not None for item in items))
        ):
            self._read_pair(*map(by_plain_key, items))
        elif not any(isinstance(item, dict) for item in items) and any(isinstance(item, str) for item in items):
            self._read_fields(items)
        else:
            for item in items:
                self.read(item, name)

    def _read_pair(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        """A list of two boxes with names: the person and the object, in this order unless only the second is named as a
        person."""
        names = [name_of(entry) for entry in (first, second)]
        people = [name is not None and names_person(name) for name in names]
        if people == [False, True]:
            first, second = second, first
        said = value_of(second, keys.VERBS) or value_of(first, keys.VERBS)
        places = [numbers_of(value_of(entry, keys.BOX)) for entry in (first, second)]
        self.claims.understood = True
        if None not in names and not any(people):
            self._either(names[0], places[0], said or self._verbs[0], names[1], places[1])
            return
        verbs = verbs_of(said, name_of(second)) or list(self._verbs)
        score = keys.score_of(value_of(second, keys.SCORE), self._report)
        self._add(places[0], places[1], name_of(second) or self._label, verbs, score, said, value_of(second, keys.NAME))

    def _either(self, name: str | None, box: Place, said: Any, other: str | None, other_box: Place) -> None:
        """Report a pair whose first is no person, of which either may act."""
        one, two = shown(name or "", box), shown(other or "", other_box)
        verb = ", ".join(verbs_of(said)) or "acts on"
        readings = f"{one} {verb} {two}", f"{two} {verb} {one}"
        self._report(EITHER if other is not None and names_person(other) else NO_PERSON, *readings)

    def _read_object(self, entry: dict[str, Any], name: str | None = None) -> None:
        subject, object_ = (keys.cell_of(value_of(entry, kind)) for kind in (keys.SUBJECT, keys.OBJECT))
        nested = next((value for key, value in entry.items() if _is_nested(key, value)), None)
        if nested is not None and (subject is not None or numbers_of(value_of(entry, keys.BOX)) is not None):
            self._read_nested(entry, subject, nested, name)
        elif isinstance(subject, dict) and _nested_in(subject) and object_ is None:
            self._read_object(by_plain_key(subject), "person")
        elif (subject is not None and not _is_list_of_objects(subject)) or (
            object_ is not None and value_of(entry, keys.VERBS) is not None and value_of(entry, keys.BOX) is None
        ):
            self._read_triplet(entry, subject, object_)
        elif keys.is_located(entry) and not isinstance(entry.get("labels"), list):
            self._read_located(entry, name)
        else:
            self._read_wrapper(entry)

    def _read_nested(self, entry: dict[str, Any], subject: Any, nested: Any, name: str | None) -> None:
        """A person's box with a list of what the person does."""
        self.claims.understood = True
        called = name_of(entry) or name
        place = place_of(subject) if subject is not None else numbers_of(value_of(entry, keys.BOX))
        if subject is None and called is not None and not names_person(called):
            self._report(NO_PERSON)
            return
        for item in nested if isinstance(nested, list) else [nested]:
            child = by_plain_key(item)
            object_ = keys.cell_of(value_of(child, keys.OBJECT))
            other = child if object_ is None or value_of(child, keys.BOX) is not None else object_
            self._read_triplet(child, place, other)

    def _read_triplet(self, entry: dict[str, Any], subject: Any, object_: Any) -> None:
        self.claims.understood = True
        person, other = place_of(subject), place_of(object_)
        label = keys.text_of(value_of(entry, keys.LABEL))
        for key in ("object", "target", "label", "category", "class", "name"):
            named = keys.cell_of(entry.get(key))
            label = label or (keys.text_of(named) if not isinstance(place_of(named), int | list) else None)
        if label is None and isinstance(object_, dict):
            label = keys.text_of(value_of(by_plain_key(object_), keys.NAME))
        if isinstance(subject, dict) and self._is_other(name_of(by_plain_key(subject)), label, entry, person, other):
            return
        said = value_of(entry, keys.VERBS)
        verbs = verbs_of(said, label or self._label) if said is not None else list(self._verbs)
        shown_label: Any = label
        if label is None and self._label is None and isinstance(said, str) and not isinstance(other, int):
            verbs, label = split_phrase(said)
            shown_label = said
        label = label_of(label) if label is not None else self._label
        score = keys.score_of(value_of(entry, keys.SCORE), self._report)
        self._add(person, other, label, verbs, score, said, shown_label)

    def _is_other(self, name: str | None, label: str | None, entry: dict[str, Any], box: Place, other: Place) -> bool:
        """Whether a named subject is no person; then it is reported."""
        if name is None or names_person(name):
            return False
        if label is not None and names_person(label_of(label)):
            self._either(name, box, value_of(entry, keys.VERBS), label_of(label), other)
        else:
            self._report(NO_PERSON)
        return True

    def _add(
        self, subject: Place, object_: Place, label: str | None, verbs: list[str], score: float | None, said: Any,
        named: Any,
    ) -> None:  # fmt: skip
        if not verbs:
            self._report("a pair without a verb that can be read")
            return
        spans = tuple(span_of(said, verb) for verb in verbs)
        of_label = span_of(named, label) if label is not None else None
        self.claims.triplets.append(Claim(subject, object_, label, tuple(verbs), score, spans, of_label))

    def _read_located(self, entry: dict[str, Any], called: str | None) -> None:
        self.claims.understood = True
        box, name = numbers_of(value_of(entry, keys.BOX)), name_of(entry) or called
        if box is None or name is None:
            self._report("a box without a name, or that is not four numbers")
            return
        own = next((entry[key] for key in ("id", "idx", "index") if _is_id(entry.get(key))), None)
        if own is not None:
            self.claims.ids.setdefault(str(own).strip(), []).append(len(self.claims.located))
        self.claims.located.append((box, name))
        said = value_of(entry, keys.VERBS)
        if isinstance(said, str | list) and verbs_of(said):
            self._acts.append(_Act(box, name, said, keys.score_of(value_of(entry, keys.SCORE), self._report)))

    def _read_wrapper(self, entry: dict[str, Any]) -> None:
        """`{"boxes": [...], "labels": [...], "interactions": [...]}`, or any object with lists of claims."""
        boxes, labels = entry.get("boxes", entry.get("bboxes")), entry.get("labels")
        if isinstance(boxes, list) and isinstance(labels, list) and len(boxes) == len(labels):
            numbers = [numbers_of(box) for box in boxes]
            if all(box is not None for box in numbers) and all(isinstance(label, str) for label in labels):
                self.claims.understood = True
                self.claims.located += [(box, label) for box, label in zip(numbers, labels, strict=True) if box]
            else:
                self._report("a list of boxes of which one is not four numbers, or has no name")
                return
        for key, value in entry.items():
            name = "person" if keys.PERSON_LIST.fullmatch(key) else None
            if isinstance(value, list) and key not in ("boxes", "bboxes", "labels", "scores"):
                if not keys.BOX.fullmatch(key) and (not value or isinstance(value[0], dict | list)):
                    self._read_list(value, name)
            elif isinstance(value, dict):
                self._read_object(by_plain_key(value), name)

    def _read_fields(self, items: list[Any]) -> None:
        """A triplet as a list of words and boxes. The order of the words tells who acts; two boxes that both stand
        before or after the words need a person's name among these."""
        boxes = [numbers_of(item) for item in items if not isinstance(item, str)]
        words = [item for item in items if isinstance(item, str)]
        order = "".join("w" if isinstance(item, str) else "b" for item in items)
        verb, other = ("", "") if not words else (words[-1], "")
        if order == "www" and names_person(label_of(words[0])):
            places: list[Place] = [label_of(words[0]), label_of(words[2])]
            verb, other = words[1], words[2]
        elif len(boxes) != 2 or None in boxes or len(words) not in (1, 2, 3):
            return
        else:
            self.claims.understood = True
            places = list(boxes)
            if len(words) == 3:
                _, verb, other = words if order != "wbwbw" else (words[0], words[2], words[1])
                if not self._starts_with_person(words[0], verb, other, order, boxes):
                    return
            elif order in ("bwwb", "bwbw"):
                verb, other = words
            elif order != "bwb":
                who = [f"{shown('person', box)}, {' '.join(words)}" for box in boxes]
                self._report("two boxes of which none is said to be the person's", *who)
                return
        self.claims.understood = True
        verbs, label = verbs_of(verb, other or None), label_of(other) if other else self._label
        if not other:
            verbs, label = split_phrase(verb)
        self._add(places[0], places[1], label, verbs, None, verb, other or verb)

    def _starts_with_person(self, first: str, verb: str, other: str, order: str, boxes: Sequence[Place]) -> bool:
        """Whether three words can only be person, verb and object in this order; else they are reported."""
        if not names_person(label_of(first)):
            if names_person(label_of(other)):
                self._either(label_of(first), boxes[0], verb, label_of(other), boxes[1])
            else:
                self._report(NO_PERSON)
        elif order != "wbwbw" and order != "wbwwb" and other.endswith("ing") and not verb.endswith("ing"):
            readings = f"{first}, {verb}, {other}", f"{first}, {other}, {verb}"
            self._report("a list of three words of which either the second or the third is the verb", *readings)
        else:
            return True
        return False

    def finish(self) -> None:
        """Add what needs the whole answer: actions beside boxes, and triplets that name boxes by number or id."""
        for act in self._acts:
            self._read_act(act)
        claims = self.claims
        if claims.located:
            base = self._first_number()
            kept = []
            for claim in claims.triplets:
                resolved = self._resolved(claim, base)
                kept += [resolved] if resolved is not None else []
            claims.triplets = kept

    def _read_act(self, act: _Act) -> None:
        """Find the other one of an action beside a box: the only person, or the object it names, or the only one."""
        located, acts = self.claims.located, names_person(act.name)
        others = [(box, name) for box, name in located if names_person(name) != acts and box is not act.box]
        verbs, label = (verbs_of(act.said, act.name), act.name) if not acts else _phrase(act.said)
        if acts and label is not None:
            others = [(box, name) for box, name in located if label_of(name) == label_of(label) and box is not act.box]
        if len(others) != 1:
            readings = [shown(name, box) for box, name in others[:2]]
            what = "an object" if acts else "a person"
            number = "several" if others else "no"
            self._report(f"an action beside one box, and {number} boxes that may be {what}'s", *readings)
            return
        (box, name), said = others[0], act.said
        if acts:
            self._add(act.box, box, label_of(name), verbs, act.score, said, said)
        else:
            self._add(box, act.box, act.name, verbs, act.score, said, None)

    def _first_number(self) -> int | None:
        """The number of an answer's first box in its triplets, 0 or 1; None if both are possible. Only one is if a
        number is not there by the other, or a subject would be no person."""
        if self.claims.ids:
            return 0
        ends = [(claim.subject, claim.object) for claim in self.claims.triplets]
        subjects = [subject for subject, _ in ends if type(subject) is int]
        numbers = {place for pair in ends for place in pair if type(place) is int}
        located = self.claims.located
        possible = [
            base
            for base in (0, 1)
            if all(base <= number < len(located) + base for number in numbers)
            and all(names_person(located[number - base][1]) for number in subjects)
        ]
        return (possible[0] if len(possible) == 1 else None) if possible and numbers else 0

    def _resolved(self, claim: Claim, base: int | None) -> Claim | None:
        """A claim with boxes for numbers and ids; None, and reported, where there is none or which one is not said."""
        found: dict[str, Any] = {}
        for end in ("subject", "object"):
            place = getattr(claim, end)
            rows = self.claims.ids.get(str(place)) if isinstance(place, int | str) else None
            if rows is not None and len(rows) > 1:  # persons and objects may be numbered apart
                acts = end == "subject"
                rows = [row for row in rows if names_person(self.claims.located[row][1]) == acts]
            if rows is None and type(place) is int:
                if base is None:
                    one, two = (self.claims.located[place - first] for first in (0, 1))
                    self._report(
                        "boxes named by numbers that may begin with 0 or 1", *(shown(*it[::-1]) for it in (one, two))
                    )
                    return None
                at = place - base
                rows = [at] if 0 <= at < len(self.claims.located) and not self.claims.ids else []
            if rows is None:
                continue
            if len(rows) != 1:
                self._report("a triplet with the index of a box that is not there")
                return None
            box, name = self.claims.located[rows[0]]
            if end == "subject" and not names_person(label_of(name)):
                self._report(NO_PERSON)
                return None
            found[end] = box
            if end == "object":
                found["label"] = "person" if label_of(name) in PERSONS else label_of(name)
        return replace(claim, **found)


def _is_id(value: Any) -> bool:
    return type(value) is int or isinstance(value, str)


def _phrase(said: Any) -> tuple[list[str], str | None]:
    """The verbs of an action, and the object it names."""
    return split_phrase(said) if isinstance(said, str) else (verbs_of(said), None)


def _is_bare(entry: dict[str, Any]) -> bool:
    """Whether an entry is a box without a list of what its person does."""
    return keys.is_located(entry) and not _nested_in(entry)


def _nested_in(entry: dict[str, Any]) -> bool:
    return any(_is_nested(key, value) for key, value in by_plain_key(entry).items())


def _is_nested(key: str, value: Any) -> bool:
    return bool(keys.BESIDE.fullmatch(key)) and (
        _is_list_of_objects(value) or (key == "target" and isinstance(value, dict))
    )


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
