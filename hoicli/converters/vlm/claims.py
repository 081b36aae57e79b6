"""From the values in a model's answer to its claims: who does what to which object, and where. Read are the shapes of
`forms`, whose keys have a few spellings (`keys`). A key that none of them has refuses the answer: it could deny what
stands beside it ("present": false). A claim with a missing part is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from hoicli.converters.vlm import keys
from hoicli.converters.vlm.keys import Place, Report, by_plain_key, name_of, numbers_of, place_of, text_of, value_of
from hoicli.converters.vlm.names import PERSONS, is_name, label_of, split_phrase, verbs_of
from hoicli.converters.vlm.text import Span, span_of

NO_PERSON = "a triplet whose subject is no person"
NO_BOX = "a box without a name, or that is not four numbers"

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
    that the answer gives them."""

    triplets: list[Claim] = field(default_factory=list)
    located: list[tuple[list[float], str]] = field(default_factory=list)
    ids: dict[str, list[int]] = field(default_factory=dict)


def claims_of(
    values: Sequence[Any], report: Report, persons: Persons, *, verbs: Sequence[str] = (), label: str | None = None
) -> Claims:
    """The claims in the values of one answer. `verbs`, `label`: those of the question, for answers with boxes only
    (grounding). Raises `NotReadError` for a value of another shape."""
    reader = _ClaimReader(report, persons, list(verbs), label)
    for value in values:
        reader.read(value)
    if reader.claims.located:
        resolved = map(reader.with_boxes, reader.claims.triplets)
        reader.claims.triplets = [claim for claim in resolved if claim is not None]
    return reader.claims


@dataclass
class _ClaimReader:
    """Collects the claims in the values of one answer."""

    report: Report
    persons: Persons
    verbs: list[str]
    label: str | None
    claims: Claims = field(default_factory=Claims)

    def read(self, value: Any) -> None:
        """Add the claims in a value."""
        if isinstance(value, list):
            items = [by_plain_key(item) if isinstance(item, dict) else item for item in value]
            boxes = len(items) == 2 and all(isinstance(item, dict) and keys.is_located(item) for item in items)
            if boxes and (self.verbs or any(value_of(item, keys.VERBS) is not None for item in items)):
                self._read_pair(*items)
                return
            for item in value:
                self.read(item)
        elif isinstance(value, dict):
            self._read_object(by_plain_key(value))
        else:
            raise NotReadError("an answer with a list of other things than objects")

    def _read_object(self, entry: dict[str, Any]) -> None:
        if keys.is_located(entry) and "boxes" not in entry:
            self._read_located(entry)
        elif any(map(keys.SUBJECT.fullmatch, entry)) or (
            any(map(keys.OBJECT.fullmatch, entry)) and value_of(entry, keys.VERBS) is not None
        ):
            self._read_triplet(entry)
        else:
            self._read_wrapper(entry)

    def _read_pair(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        """A list of two boxes with names: the person and the object, in this order unless only the second is named as a
        person."""
        for entry in (first, second):
            _check(entry, keys.BOX, keys.NAME, keys.VERBS, keys.SCORE)
        names = [name_of(entry) for entry in (first, second)]
        people = [name is not None and self.persons(name) for name in names]
        if people == [False, True]:
            first, second = second, first
        elif None not in names and not any(people):
            self.report(NO_PERSON)
            return
        label, beside = name_of(second), value_of(first, keys.VERBS)
        said = value_of(second, keys.VERBS) or beside
        verbs = verbs_of(said, label) or self.verbs
        if said is beside and isinstance(said, str) and (parts := split_phrase(said))[1] == label:
            verbs = parts[0]
        places = [numbers_of(value_of(entry, keys.BOX)) for entry in (first, second)]
        claim = Claim(places[0], places[1], label or self.label, tuple(verbs), self._score(second), acts=name_of(first))
        self._add(claim, said, value_of(second, keys.NAME))

    def _read_triplet(self, entry: dict[str, Any]) -> None:
        _check(entry, keys.SUBJECT, keys.OBJECT, keys.LABEL, keys.NAME, keys.VERBS, keys.SCORE)
        subject, object_ = (value_of(entry, kind) for kind in (keys.SUBJECT, keys.OBJECT))
        ends = [by_plain_key(end) if isinstance(end, dict) else {} for end in (subject, object_)]
        for end in ends:
            _check(end, keys.BOX, keys.NAME, keys.SCORE)
        acts = name_of(ends[0])
        if acts is not None and not self.persons(acts):
            self.report(NO_PERSON)
            return
        named = [entry.get(key) for key in ("object", "target", "label", "category", "class", "name")]
        labels = [value_of(entry, keys.LABEL), *named, value_of(ends[1], keys.NAME)]
        label = next((text for text in map(text_of, labels) if text and not text.strip().isdecimal()), None)
        other = place_of(object_)
        said, source = value_of(entry, keys.VERBS), label
        verbs = self.verbs if said is None else verbs_of(said, label or self.label)
        if label is None and self.label is None and isinstance(said, str) and not isinstance(other, int):
            verbs, label = split_phrase(said)
            source = said
        label = self.label if label is None else label_of(label)
        claim = Claim(place_of(subject), other, label, tuple(verbs), self._score(entry), acts=acts)
        self._add(claim, said, source)

    def _add(self, claim: Claim, said: Any, named: Any) -> None:
        """Add a claim whose verbs are in the value `said`, and its object's name in `named`."""
        label = claim.label
        if not claim.verbs:
            self.report("a pair without a verb that can be read")
        elif label is None or type(claim.object) is int or label in self.claims.ids or is_name(label):
            spans = tuple(span_of(said, verb) for verb in claim.verbs)
            self.claims.triplets.append(replace(claim, spans=spans, label_span=span_of(named, label or "")))
        else:
            self.report("an object whose name cannot be read")

    def _score(self, entry: dict[str, Any]) -> float | None:
        value = value_of(entry, keys.SCORE)
        score = keys.number_of(value)
        if value is not None and score is None:
            self.report("a score that is no number (its triplet is kept)")
        return score

    def _read_located(self, entry: dict[str, Any]) -> None:
        if value_of(entry, keys.VERBS) is not None:
            raise NotReadError("an answer with a verb beside one box, and nothing that says whose")
        _check(entry, keys.BOX, keys.NAME, keys.SCORE)
        own = next((entry[key] for key in ("id", "idx", "index") if key in entry), None)
        of_id = _OF_ID.fullmatch(own) if isinstance(own, str) else None
        box, name = numbers_of(value_of(entry, keys.BOX)), name_of(entry) or (of_id[1] if of_id else None)
        if box is None or name is None or not is_name(label_of(name)):
            self.report(NO_BOX)
            return
        if isinstance(own, int | str):
            self.claims.ids.setdefault(str(own).strip(), []).append(len(self.claims.located))
        self.claims.located.append((box, name))

    def _read_wrapper(self, entry: dict[str, Any]) -> None:
        """An object with lists: of triplets, of boxes, or `boxes` and their `labels`."""
        _check(entry, keys.LISTS)
        lists = {key: value for key, value in entry.items() if not keys.BESIDE.fullmatch(key)}
        if not lists or not all(isinstance(value, list) for value in lists.values()):
            raise NotReadError("an answer without a list of triplets or boxes")
        if (labels := lists.pop("labels", None)) is not None:
            boxes = [numbers_of(box) for box in lists.pop("boxes", ())]
            if not boxes or None in boxes or len(boxes) != len(labels) or not all(map(text_of, labels)):
                raise NotReadError("an answer with a list of boxes of which one is not four numbers, or has no name")
            self.claims.ids |= {str(at): [at] for at in range(len(boxes))}
            self.claims.located += [(box, name) for box, name in zip(boxes, labels, strict=True) if box]
        for item in chain.from_iterable(lists.values()):
            self.read(item)

    def with_boxes(self, claim: Claim) -> Claim | None:
        """A claim with boxes of the answer for ids; None, and reported, where there is none or which one is not
        said."""
        found: dict[str, Any] = {}
        for end in ("subject", "object"):
            place = getattr(claim, end)
            rows = self.claims.ids.get(str(place)) if isinstance(place, int | str) else None
            if rows is None and type(place) is not int:
                continue
            if rows is None or len(rows) > 1:
                self.report("a triplet with the index of a box that is not there")
                return None
            box, name = self.claims.located[rows[0]]
            name = label_of(name)
            if end == "object":
                found |= {"object": box, "label": "person" if name in PERSONS else name}
            elif self.persons(name):
                found |= {"subject": box, "acts": name}
            else:
                self.report(NO_PERSON)
                return None
        return replace(claim, **found)


_OF_ID = re.compile(r"([^\W\d][^\d.]{0,60}?)[._ #-]?\d{1,4}")
"""An id with a name in it, as R1-SGG's `person.1`."""


def _check(entry: dict[str, Any], *patterns: re.Pattern[str]) -> None:
    """Raise `NotReadError` for a key that is of none of the patterns, and none that may stand beside."""
    for key in entry:
        if not any(pattern.fullmatch(key) for pattern in (keys.BESIDE, *patterns)):
            raise NotReadError(f"an answer with a key that is not read ({key[:40]})")
