"""From the values in a model's answer to its claims: who does what to which object, and where. Read are the shapes of
`forms`, whose keys have a few spellings: a key's words give its meaning (`human_bbox`, `person box`, `sub_bbox` are one
key), the type of its value gives the content. Other keys are passed over and counted ("color": "red"), but one that
could deny what stands beside it ("present": false), or has boxes or verbs, refuses the answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from math import isfinite
from typing import Any

from hoicli.converters.vlm.spoken_names import is_name, label_of, names_verb, split_phrase, split_statement, verbs_of
from hoicli.converters.vlm.spoken_text import Span, span_of, takes_back
from hoicli.wordnet.word_uses import denies

NO_PERSON = "a triplet whose subject is no person"
NO_BOX, NO_NAME = "a box that is not four numbers", "a box without a name that can be read"
NO_VERB = "a pair without a verb that can be read"
KEY = "a key that is not read (what stands beside it is)"
PHRASE = "a box whose label is a phrase, not an object's name"

Place = list[float] | int | str | None
"""How an answer says where something is: a box's numbers, the index or id of a box, its name alone, or nothing."""
Persons = Callable[[str], bool]
"""A function that says whether a name is that of a subject: a person, or one of the dataset's own subjects."""

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
_STATING = re.compile(r"(?:^|_)(?:verb|(?:inter)?action|predicate|relation|hoi|triplet|pair|b?box|coord)")
"""What a key begins with, or a word of it, whose value may be a claim."""
_SIDES = (("x1", "xmin", "x_min", "left"), ("y1", "ymin", "y_min", "top"), ("x2", "xmax", "x_max", "right"),
          ("y2", "ymax", "y_max", "bottom"))  # fmt: skip
"""The keys of the four numbers of a box, if each has one."""
_OF_ID = re.compile(r"([^\W\d][^\d.]{0,60}?)(?:[._ #-]?\d{1,4})?")
"""An id that contains a name, such as R1-SGG's `person.1`."""


class NamedSides(list[float]):
    """The numbers of a box each of which the answer names: x1, y1, x2, y2, also where others have y first."""


class NotReadError(Exception):
    """An answer cannot be read; the message says why."""


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
            items = [_by_plain_key(item) if isinstance(item, dict) else item for item in value]
            are_two_boxes = len(items) == 2 and all(isinstance(item, dict) and _has_box(item) for item in items)
            if are_two_boxes and (self.verbs or any(_value_of(item, _VERBS) is not None for item in items)):
                self._read_pair(*items)
                return
            for item in value:
                self.read(item)
        elif isinstance(value, dict):
            self._read_object(_by_plain_key(value))
        else:
            raise NotReadError("an answer with a list of other things than objects")

    def _read_object(self, entry: dict[str, Any]) -> None:
        """Add the triplets and boxes in a JSON object: it is a box with its name, a triplet, or holds lists of these.
        Which one is told by its keys, which are plain (`_plain_key`)."""
        if _has_box(entry):
            self._read_listed_box(entry)
            return
        entry = self._complete_pair(entry)
        has_subject, has_object = (any(map(pattern.fullmatch, entry)) for pattern in (_SUBJECT, _OBJECT))
        if has_subject or (has_object and _value_of(entry, _VERBS) is not None):
            self._read_triplet(entry)
        else:
            self._read_wrapper(entry)

    def _read_pair(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        """Add the triplet that two named boxes with a verb state: the person and the object, or reversed if only the
        second is a person. A pair without a person is reported. Both have plain keys."""
        for entry in (first, second):  # _BOX, _NAME, ...: patterns of the keys that have such a value
            self._pass_over(entry, _BOX, _NAME, _VERBS, _SCORE)
        names = [_name_of(entry) for entry in (first, second)]
        people = [name is not None and self.persons(name) for name in names]
        if people == [False, True]:
            first, second = second, first
        elif None not in names and not any(people):
            self.report(NO_PERSON)
            return
        label, verb_of_person = _name_of(second), _value_of(first, _VERBS)
        verb_value = _value_of(second, _VERBS) or verb_of_person  # it stands beside either of the two boxes
        verbs = verbs_of(verb_value, label) or self.verbs
        if verb_value is verb_of_person and isinstance(verb_value, str):
            phrase_verbs, phrase_object = split_phrase(verb_value)
            if phrase_object == label:  # the phrase names the object, too: "riding a bicycle"
                verbs = phrase_verbs
        claim = Claim(
            subject=numbers_of(_value_of(first, _BOX)),
            object=numbers_of(_value_of(second, _BOX)),
            label=label or self.label,
            verbs=tuple(verbs),
            score=self._score(second),
            acts=_name_of(first),
        )
        self._add(claim, verb_value, label_value=_value_of(second, _NAME))

    def _read_triplet(self, entry: dict[str, Any]) -> None:
        """Add the triplet of a JSON object that has keys of a subject, or of an object and its verb. A triplet whose
        subject is no person is reported. Raises `NotReadError` for keys that are not read."""
        # _SUBJECT, _OBJECT, ...: patterns of the keys that have such a value
        self._pass_over(entry, _SUBJECT, _OBJECT, _LABEL, _NAME, _VERBS, _SCORE)
        subject, object_ = (_value_of(entry, kind) for kind in (_SUBJECT, _OBJECT))
        parts = [_by_plain_key(part) if isinstance(part, dict) else {} for part in (subject, object_)]
        parts = [{} if numbers_of(part) else part for part in parts]
        for part in parts:
            self._pass_over(part, _BOX, _NAME, _SCORE)
        # who acts: named by another key than the one that says where, or by an id such as `person.1`
        subject_values = (entry.get(key) for key in ("subject", "human", "person"))
        subject_texts = [text for text in map(_text_of, subject_values) if text and text is not subject]
        subject_name = _OF_ID.sub(r"\1", subject_texts[0]) if subject_texts else ""
        acts = _name_of(parts[0]) or label_of(subject_name) or None
        if acts is not None and not self.persons(acts):
            self.report(NO_PERSON)
            return
        # what is acted on: the first name among these that is no index
        further_labels = [entry.get(key) for key in ("object", "target", "label", "category", "class", "name")]
        labels = [_value_of(entry, _LABEL), *further_labels, _value_of(parts[1], _NAME)]
        label = next((text for text in map(_text_of, labels) if text and not text.strip().isdecimal()), None)
        object_place = _place_of(object_)
        verb_value, label_value = _value_of(entry, _VERBS), label
        verbs = self.verbs if verb_value is None else verbs_of(verb_value, label or self.label)
        # Without a name of its own, the object may be named in the verb's phrase ("riding a bicycle").
        if label is None and self.label is None and isinstance(verb_value, str) and not isinstance(object_place, int):
            verbs, label = split_phrase(verb_value)
            label_value = verb_value
        label = self.label if label is None else label_of(label)
        place, score = _place_of(subject), self._score(entry)
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
        value = _value_of(entry, _SCORE)
        score = _number_of(value)
        if value is not None and score is None:
            self.report("a score that is no number (its triplet is kept)")
        return score

    def _read_listed_box(self, entry: dict[str, Any]) -> None:
        """Add a box that the answer lists, with its name and its id. A box without a name is reported. Raises
        `NotReadError` if a verb stands beside it, since nothing says whose verb it is."""
        if _value_of(entry, _VERBS) is not None:
            raise NotReadError("an answer with a verb beside one box, and nothing that says whose")
        self._pass_over(entry, _BOX, _NAME, _SCORE)
        box_id = next((entry[key] for key in ("id", "idx", "index") if key in entry), None)
        id_match = _OF_ID.fullmatch(box_id) if isinstance(box_id, str) else None
        box, name = numbers_of(_value_of(entry, _BOX)), _name_of(entry) or label_of(id_match[1] if id_match else "")
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
        lists = [value for key, value in entry.items() if _LISTS.fullmatch(key) and not _has_names_alone(key, value)]
        if not lists or not all(isinstance(value, list | dict) for value in lists):
            raise NotReadError("an answer without a list of triplets or boxes")
        for value in lists:
            self.read(value)

    def _complete_pair(self, entry: dict[str, Any]) -> dict[str, Any]:
        """Return a JSON object in which the box without an owner is the person's if the other is the object's, and the
        reverse: `bbox_2d` beside `object_bbox_2d`. The label of the person's box names the person, or is a phrase."""
        if _value_of(entry, _BOX) is None:
            return entry
        is_persons = any("box" in key for key in entry if _OBJECT.fullmatch(key))
        owner = "person_box" if is_persons else "object_box"
        entry = {owner if _BOX.fullmatch(key) else key: value for key, value in entry.items()}
        label = _text_of(entry.get("label")) if is_persons else None
        phrase = split_statement(label_of(label)) if label else None
        if phrase is not None and _value_of(entry, _VERBS) is None:
            return {**entry, "label": phrase[2] or None, "person": phrase[0] or None, "verb": phrase[1]}
        if label and self.persons(label_of(label)):
            return {**entry, "label": None, "person": label}
        return entry

    def _pass_over(self, entry: dict[str, Any], *patterns: re.Pattern[str]) -> None:
        """Count the keys of a JSON object that fit none of the patterns, nor _BESIDE, whose keys may always be there.
        Raises `NotReadError` for one that may take back what is read, or state more (`_says_more`)."""
        keys = [key for key in entry if not any(pattern.fullmatch(key) for pattern in (_BESIDE, *patterns))]
        for key in keys:
            if _says_more(key, entry[key]):
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


# Keys and values


def _plain_key(key: str) -> str:
    """Return a key in one spelling: "Object Class", "objectClass" and "object-class (COCO)" are all object_class."""
    key = re.sub(r"[(\[][^)\]]*[)\]]?", " ", key[:200])
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.strip())
    return re.sub(r"[\s\-_]+", "_", key).lower()


def _by_plain_key(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object by its keys in one spelling (`_plain_key`). Raises `NotReadError` if two become equal."""
    with_plain_keys = {_plain_key(key): value for key, value in entry.items()}
    if len(with_plain_keys) < len(entry):
        raise NotReadError("an answer with a key twice in one object")
    return with_plain_keys


def _value_of(entry: dict[str, Any], pattern: re.Pattern[str]) -> Any:
    """Return the value of a JSON object under the first key that fits the pattern, None if there is none. A null is
    passed over, and a key with "box" in it goes before others (human_bbox before human)."""
    fitting_keys = [key for key, value in entry.items() if value is not None and pattern.fullmatch(key)]
    return entry[max(fitting_keys, key=lambda key: "box" in key)] if fitting_keys else None


def _has_box(entry: dict[str, Any]) -> bool:
    """Return whether a JSON object is about one box: it has a box, and no subject, nor the object's box beside it."""
    has_other = any("box" in key for key in entry if _OBJECT.fullmatch(key))
    return _value_of(entry, _BOX) is not None and _value_of(entry, _SUBJECT) is None and not has_other


def _has_names_alone(key: str, value: Any) -> bool:
    """Return whether the value of a key is a list of names, which states nothing: "objects": ["person", "bicycle"]."""
    return key in ("objects", "detections") and bool(value) and all(isinstance(item, str) for item in value)


def _same_thing(name: str, other: str) -> bool:
    """Return whether two names of an answer have the same last word: "red bike" and "bike"."""
    return bool(other) and name.rpartition("_")[2].rstrip("s") == other.rpartition("_")[2].rstrip("s")


def _says_more(key: str, value: Any) -> bool:
    """Return whether a key that is not read may take back what stands beside it, or state more: it denies or doubts, is
    false or 0, or has a box, a part of one, or verbs."""
    if takes_back(key.split("_")) or any(key in names for names in _SIDES):
        return True
    if isinstance(value, dict):
        inner = _by_plain_key(value)
        return any(_BOX.fullmatch(name) or _VERBS.fullmatch(name) or _says_more(name, inner[name]) for name in inner)
    if isinstance(value, list):
        has_verb = any(isinstance(item, str) and names_verb(item) for item in value)
        return has_verb or numbers_of(value) is not None or any(_says_more(key, item) for item in value)
    if isinstance(value, str):
        return bool(_STATING.search(key)) or denies(re.findall(r"[^\W_]+(?:'[^\W_]+)*", value.lower()))
    return value is not None and value is not True and not value


def _name_of(entry: dict[str, Any]) -> str | None:
    """Return the name that a JSON object gives to its box, as records spell it; None if it gives none."""
    name = _text_of(_value_of(entry, _NAME))
    return None if name is None else re.sub(r"_being_[^_]+\Z", "", label_of(name))  # "horse being ridden"


def _text_of(value: Any) -> str | None:
    """Return a JSON value if it is text with more than spaces in it, else None."""
    return value if isinstance(value, str) and value.strip() else None


def _place_of(value: Any) -> Place:
    """Return where a JSON value says that something is: a box's four numbers, the index or id of a box, or a name; None
    if it says nothing of these. The value may be an object with one of them, or text of an index."""
    if isinstance(value, dict):
        entry = _by_plain_key(value)
        box = _value_of(entry, _BOX)
        if box is not None or numbers_of(entry):
            return numbers_of(box or entry)
        index = next((entry[key] for key in ("id", "idx", "index") if key in entry), None)
        return _place_of(index) if index is not None else _text_of(_value_of(entry, _NAME))
    if isinstance(value, str):
        return int(value) if value.strip().isdecimal() and len(value.strip()) < 9 else value
    return value if type(value) is int else numbers_of(value)


def numbers_of(value: Any) -> list[float] | None:
    """Return the four numbers of a box in a JSON value, in any convention; None if they are not four finite ones. The
    numbers may be text, and the list nested: [[x1, y1, x2, y2]], or two points [[x1, y1], [x2, y2]]."""
    if isinstance(value, dict):
        sides = [value[key] for key in chain.from_iterable(_SIDES) if key in value]
        numbers = numbers_of(sides)
        return NamedSides(numbers) if numbers and len(value) == 4 else None
    if not isinstance(value, list):
        return None
    if len(value) == 1:
        return numbers_of(value[0])
    if len(value) == 2 and all(isinstance(point, list) and len(point) == 2 for point in value):
        value = [*value[0], *value[1]]
    numbers = [number for number in map(_number_of, value[:5]) if number is not None]
    return numbers if len(numbers) == len(value) == 4 else None


def _number_of(value: Any) -> float | None:
    """Return a JSON value that is a finite number, or text of one, as a float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
