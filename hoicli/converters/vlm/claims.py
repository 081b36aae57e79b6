"""From the values in a model's answer to its claims: who does what to which object, and where. Read are the shapes of
`forms`, whose keys have a few spellings (`answer_keys`). Other keys are passed over and counted ("color": "red"), but
one that could deny what stands beside it ("present": false), or has boxes or verbs, refuses the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hoicli.converters.vlm.answer_keys import (
    BOX,
    NAME,
    OBJECT,
    SUBJECT,
    VERBS,
    NotReadError,
    Place,
    by_plain_key,
    has_box,
    name_of,
    number_of,
    numbers_of,
    place_of,
    says_more,
    text_of,
    value_of,
)
from hoicli.converters.vlm.spoken_names import is_name, label_of, split_phrase, split_statement, verbs_of
from hoicli.converters.vlm.spoken_text import Span, span_of

NO_PERSON = "a triplet whose subject is no person"
NO_BOX, NO_NAME = "a box that is not four numbers", "a box without a name that can be read"
NO_VERB = "a pair without a verb that can be read"
KEY = "a key that is not read (what stands beside it is)"
PHRASE = "a box whose label is a phrase, not an object's name"

Persons = Callable[[str], bool]
"""A function that says whether a name is that of a subject: a person, or one of the dataset's own subjects."""

# Patterns of keys in one spelling (`plain_key`).
_LABEL = re.compile(r"(?:object|obj|target)_(?:class|label|category|name|type)|noun")
_SCORE = re.compile(r"score|confidence|conf|probability|prob")
_LISTS = re.compile(
    r"(?:inter)?actions?|relation(?:ship)?s?|hois?|(?:predicted_|pred_)?pairs|triplets|objects|detections|"
    r"results?|response|output|answers?|data"
)
"""The keys of an object that has lists."""
_BESIDE = re.compile(
    r"reason(?:ing|s)?|explanations?|rationale|thoughts?|analysis|evidence|comments?|notes?|description|caption|summary|"
    r"(?:image_|img_|pair_|hoi_|triplet_|interaction_|relation_)?(?:id|idx|index)|image|file_name|image_path|width|height|"
    r"colou?rs?|clothing|clothes|gender|age|pose|posture|material|attributes?|occluded|truncated|(?:is_?)?crowd|rank"
)
"""The keys that may stand beside a claim; their values are not read."""
_OF_ID = re.compile(r"([^\W\d][^\d.]{0,60}?)(?:[._ #-]?\d{1,4})?")
"""An id that contains a name, such as R1-SGG's `person.1`."""


@dataclass(frozen=True)
class Claim:
    """A triplet as an answer states it, with one or more verbs, before its boxes become pixels.

    subject, object: where the two are. label: the object's name. verbs: as records spell them. score: that the answer
    states, None without one. spans: where the answer's text says each verb, and label_span where it says the object's
    name, for the scores of tokens; None for a place that is not known. acts: the subject's name, if it has one. of_box:
    whether the object's name is that of a box which the answer lists."""

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

    persons: the function that tells whether a name can be a subject's. verbs, label: the question's verbs and object,
    for answers that have boxes only (grounding). triplets: the claims. located: the number, and (box, name as
    records spell it), of each box that the answer lists. ids: the numbers of the boxes with each id. acting: those of
    boxes that are a triplet's subject. reports: why parts are left out, each with the words to quote or "". tokens: the
    kind of the answer's box tokens, "" for none or several. form: "json" or "tokens", "" for a refused answer."""

    persons: Persons
    verbs: Sequence[str] = ()
    label: str | None = None
    triplets: list[Claim] = field(default_factory=list)
    located: dict[int, tuple[list[float], str]] = field(default_factory=dict)
    ids: dict[str, list[int]] = field(default_factory=dict)
    acting: set[int] = field(default_factory=set)
    reports: list[tuple[str, str]] = field(default_factory=list)
    tokens: str = ""
    form: str = ""

    def report(self, reason: str, words: str = "") -> None:
        """Add why a part of the answer is left out. words: what the summary quotes."""
        self.reports.append((reason, words))

    def read_all(self, values: Sequence[Any]) -> None:
        """Add the triplets and boxes in all JSON values of the answer, and replace the ids of boxes in its triplets by
        the boxes. Raises `NotReadError` for a value of another shape than those that are read."""
        are_lines = all(isinstance(value, dict) for value in values)  # a box a line: one list
        for value in [values] if are_lines else values:
            self.read(value)
        if self.located:
            self.triplets = [claim for claim in map(self._look_up_boxes, self.triplets) if claim is not None]
            self._read_phrases()

    def read(self, value: Any) -> None:
        """Add the triplets and boxes in one JSON value of the answer: a pair of boxes, a list of values, or an object.
        Raises `NotReadError` for any other value."""
        if isinstance(value, list):
            items = [by_plain_key(item) if isinstance(item, dict) else item for item in value]
            are_two_boxes = len(items) == 2 and all(isinstance(item, dict) and has_box(item) for item in items)
            if are_two_boxes and (self.verbs or any(value_of(item, VERBS) is not None for item in items)):
                self._read_pair(*items)
                return
            for item in value:
                self.read(item)
        elif isinstance(value, dict):
            self._read_object(by_plain_key(value))
        else:
            raise NotReadError("an answer with a list of other things than objects")

    def _read_object(self, entry: dict[str, Any]) -> None:
        """Add the triplets and boxes in a JSON object: it is a box with its name, a triplet, or holds lists of these.
        Which one is told by its keys, which are plain (`plain_key`)."""
        if has_box(entry):
            self._read_listed_box(entry)
            return
        entry = self._complete_pair(entry)
        has_subject, has_object = (any(map(pattern.fullmatch, entry)) for pattern in (SUBJECT, OBJECT))
        if has_subject or (has_object and value_of(entry, VERBS) is not None):
            self._read_triplet(entry)
        else:
            self._read_wrapper(entry)

    def _read_pair(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        """Add the triplet that two named boxes with a verb state: the person and the object, or reversed if only the
        second is a person. A pair without a person is reported. Both have plain keys."""
        for entry in (first, second):  # BOX, NAME, ...: patterns of the keys that have such a value
            self._pass_over(entry, BOX, NAME, VERBS, _SCORE)
        names = [name_of(entry) for entry in (first, second)]
        people = [name is not None and self.persons(name) for name in names]
        if people == [False, True]:
            first, second = second, first
        elif None not in names and not any(people):
            self.report(NO_PERSON)
            return
        label, verb_of_person = name_of(second), value_of(first, VERBS)
        verb_value = value_of(second, VERBS) or verb_of_person  # it stands beside either of the two boxes
        verbs = verbs_of(verb_value, label) or self.verbs
        if verb_value is verb_of_person and isinstance(verb_value, str):
            phrase_verbs, phrase_object = split_phrase(verb_value)
            if phrase_object == label:  # the phrase names the object, too: "riding a bicycle"
                verbs = phrase_verbs
        subject, object_ = (numbers_of(value_of(entry, BOX)) for entry in (first, second))
        score, acts = self._score(second), name_of(first)
        claim = Claim(subject, object_, label or self.label, tuple(verbs), score=score, acts=acts)
        self._add(claim, verb_value, label_value=value_of(second, NAME))

    def _read_triplet(self, entry: dict[str, Any]) -> None:
        """Add the triplet of a JSON object that has keys of a subject, or of an object and its verb. A triplet whose
        subject is no person is reported. Raises `NotReadError` for keys that are not read."""
        # SUBJECT, OBJECT, ...: patterns of the keys that have such a value
        self._pass_over(entry, SUBJECT, OBJECT, _LABEL, NAME, VERBS, _SCORE)
        subject, object_ = (value_of(entry, kind) for kind in (SUBJECT, OBJECT))
        parts = [by_plain_key(part) if isinstance(part, dict) else {} for part in (subject, object_)]
        parts = [{} if numbers_of(part) else part for part in parts]
        for part in parts:
            self._pass_over(part, BOX, NAME, _SCORE)
        # who acts: named by another key than the one that says where, or by an id such as `person.1`
        subject_values = (entry.get(key) for key in ("subject", "human", "person"))
        subject_texts = [text for text in map(text_of, subject_values) if text and text is not subject]
        subject_name = _OF_ID.sub(r"\1", subject_texts[0]) if subject_texts else ""
        acts = name_of(parts[0]) or label_of(subject_name) or None
        if acts is not None and not self.persons(acts):
            self.report(NO_PERSON)
            return
        # what is acted on: the first name among these that is no index
        further_labels = [entry.get(key) for key in ("object", "target", "label", "category", "class", "name")]
        labels = [value_of(entry, _LABEL), *further_labels, value_of(parts[1], NAME)]
        label = next((text for text in map(text_of, labels) if text and not text.strip().isdecimal()), None)
        object_place = place_of(object_)
        verb_value, label_value = value_of(entry, VERBS), label
        verbs = self.verbs if verb_value is None else verbs_of(verb_value, label or self.label)
        # Without a name of its own, the object may be named in the verb's phrase ("riding a bicycle").
        if label is None and self.label is None and isinstance(verb_value, str) and not isinstance(object_place, int):
            verbs, label = split_phrase(verb_value)
            label_value = verb_value
        label = self.label if label is None else label_of(label)
        place, score = place_of(subject), self._score(entry)
        claim = Claim(place, object_place, label, verbs=tuple(verbs), score=score, acts=acts)
        self._add(claim, verb_value, label_value)

    def _add(self, claim: Claim, verb_value: Any, label_value: Any) -> None:
        """Add a triplet with the places where the answer says its words; report one without a verb, or whose object's
        name cannot be read, instead. verb_value, label_value: what the answer has for verbs and object."""
        label = claim.label
        if not claim.verbs:
            self.report(NO_VERB, verb_value if isinstance(verb_value, str) else "")
        # without a readable name, the object can still be a box that is named elsewhere, by its index or its id
        elif label is None or type(claim.object) is int or label in self.ids or is_name(label):
            spans = tuple(span_of(verb_value, verb) for verb in claim.verbs)
            self.triplets.append(replace(claim, spans=spans, label_span=span_of(label_value, label or "")))
        else:
            self.report("an object whose name cannot be read", label)

    def _score(self, entry: dict[str, Any]) -> float | None:
        """Return the score that a JSON object states, None without one; a score that is no number is reported."""
        value = value_of(entry, _SCORE)
        score = number_of(value)
        if value is not None and score is None:
            self.report("a score that is no number (its triplet is kept)")
        return score

    def _read_listed_box(self, entry: dict[str, Any]) -> None:
        """Add a box that the answer lists, with its name and its id. A box without a name is reported. Raises
        `NotReadError` if a verb stands beside it, since nothing says whose verb it is."""
        if value_of(entry, VERBS) is not None:
            raise NotReadError("an answer with a verb beside one box, and nothing that says whose")
        self._pass_over(entry, BOX, NAME, _SCORE)
        box_id = next((entry[key] for key in ("id", "idx", "index") if key in entry), None)
        id_match = _OF_ID.fullmatch(box_id) if isinstance(box_id, str) else None
        box, name = numbers_of(value_of(entry, BOX)), name_of(entry) or label_of(id_match[1] if id_match else "")
        number = len(self.located)
        self.add_box(box, name)
        if isinstance(box_id, int | str) and number in self.located:
            self.ids.setdefault(str(box_id).strip(), []).append(number)

    def add_box(self, box: Place, name: str) -> None:
        """Add a box that the answer lists, with its name; report it if it has no four numbers, or no name."""
        if not isinstance(box, list) or len(box) != 4:
            self.report(NO_BOX)
        elif is_name(name) or split_statement(name):
            self.located[len(self.located)] = box, name
        else:
            self.report(NO_NAME, name)

    def _read_wrapper(self, entry: dict[str, Any]) -> None:
        """Add the triplets and boxes in the lists of a JSON object. Raises `NotReadError` if it has none."""
        self._pass_over(entry, _LISTS)
        lists = [value for key, value in entry.items() if _LISTS.fullmatch(key) and not _lists_names(key, value)]
        if not lists or not all(isinstance(value, list | dict) for value in lists):
            raise NotReadError("an answer without a list of triplets or boxes")
        for value in lists:
            self.read(value)

    def _complete_pair(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return a JSON object in which the box without an owner is the person's if the other is the object's, and the
        reverse: `bbox_2d` beside `object_bbox_2d`. The label of the person's box names the person, or is a phrase."""
        if value_of(entry, BOX) is None:
            return entry
        is_persons = any("box" in key for key in entry if OBJECT.fullmatch(key))
        owner = "person_box" if is_persons else "object_box"
        entry = {owner if BOX.fullmatch(key) else key: value for key, value in entry.items()}
        label = text_of(entry.get("label")) if is_persons else None
        phrase = split_statement(label_of(label)) if label else None
        if phrase is not None and value_of(entry, VERBS) is None:
            return {**entry, "label": phrase[2] or None, "person": phrase[0] or None, "verb": phrase[1]}
        if label and self.persons(label_of(label)):
            return {**entry, "label": None, "person": label}
        return entry

    def _pass_over(self, entry: dict[str, Any], *patterns: re.Pattern[str]) -> None:
        """Count the keys of a JSON object that fit none of the patterns, nor _BESIDE, whose keys may always be there.
        Raises `NotReadError` for one that may take back what is read, or state more (`says_more`)."""
        keys = [key for key in entry if not any(pattern.fullmatch(key) for pattern in (_BESIDE, *patterns))]
        for key in keys:
            if says_more(key, entry[key]):
                raise NotReadError(f"an answer with a key that is not read ({key[:40]})")
            self.report(KEY, key)

    def _read_phrases(self) -> None:
        """Take the listed boxes that no triplet uses and whose label says what somebody does ("man riding bike"): each
        is a triplet if the other box is listed, once; else it is reported."""
        claimed = {*(id(claim.subject) for claim in self.triplets), *(id(claim.object) for claim in self.triplets)}
        names = {number: name for number, (box, name) in self.located.items() if id(box) not in claimed}
        phrases = {number: phrase for number, name in names.items() if (phrase := split_statement(name))}
        for number, (subject, verbs, thing) in phrases.items():
            box, name = self.located.pop(number)
            # with a subject ("man"), the box is that of who acts, else that of the object ("riding the bike")
            is_other = partial(_same_thing, thing) if subject else self.persons
            others = [pair for other, pair in self.located.items() if other not in phrases and is_other(pair[1])]
            if len(others) != 1 or not verbs or (subject and not self.persons(subject)):
                self.report(PHRASE, name)
                continue
            ((other_box, other_name),) = others
            claim = Claim(box, other_box, other_name, tuple(verbs), acts=subject, of_box=True)
            if not subject:
                claim = replace(claim, subject=other_box, object=box, label=thing, acts=other_name)
            self.triplets.append(claim)

    def _look_up_boxes(self, claim: Claim) -> Claim | None:
        """Return a triplet with the boxes that the answer lists in place of their ids. Return None, and report it, if
        an id is that of no box or of several boxes, or if the subject's box is no person's."""
        replacements: dict[str, Any] = {}  # of the triplet's fields
        for which in ("subject", "object"):
            place = getattr(claim, which)
            indices = self.ids.get(str(place)) if isinstance(place, int | str) else None
            if indices is None and type(place) is not int:
                continue  # a box, a name, or nothing
            if indices is None or len(indices) > 1:
                self.report("a triplet with the index of a box that is not there")
                return None
            box, name = self.located[indices[0]]
            if which == "object":
                replacements |= {"object": box, "label": name, "of_box": True}
            elif self.persons(name):
                replacements |= {"subject": box, "acts": name}
                self.acting.add(indices[0])
            else:
                self.report(NO_PERSON)
                return None
        return replace(claim, **replacements)


def _same_thing(name: str, other: str) -> bool:
    """Return whether two names of an answer have the same last word: "red bike" and "bike"."""
    return bool(other) and name.rpartition("_")[2].rstrip("s") == other.rpartition("_")[2].rstrip("s")


def _lists_names(key: str, value: Any) -> bool:
    """Return whether the value of a key is a list of names, which states nothing: "objects": ["person", "bicycle"]."""
    return key in ("objects", "detections") and bool(value) and all(isinstance(item, str) for item in value)
