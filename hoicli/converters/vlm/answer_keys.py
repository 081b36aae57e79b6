"""The keys of a model's JSON in one spelling, and the values under them: a key's words give its meaning (`human_bbox`,
`person box`, `sub_bbox` are one key), the type of its value gives the content."""

from __future__ import annotations

import re
from itertools import chain
from math import isfinite
from typing import Any

from hoicli.converters.vlm.spoken_names import label_of, names_verb
from hoicli.converters.vlm.spoken_text import takes_back
from hoicli.wordnet.word_uses import denies

Place = list[float] | int | str | None
"""How an answer says where something is: a box's numbers, the index or id of a box, its name alone, or nothing."""

# Keys, after `plain_key`.
_HUMAN, _OTHER = "(?:human|person|subject|sub|agent|h)", "(?:object|obj|target|o)"
_BBOX = r"b?(?:ounding_)?box(?:_2d)?"
SUBJECT = re.compile(rf"{_HUMAN}_(?:{_BBOX}|id|idx|index)|{_BBOX}_{_HUMAN}|human|person|subject")
OBJECT = re.compile(rf"{_OTHER}_(?:{_BBOX}|id|idx|index)|{_BBOX}_{_OTHER}|object|target")
BOX = re.compile(rf"{_BBOX}|coordinates|coords")
NAME = re.compile(r"label|name|class|category|object|object_(?:class|label|category|name)")
VERBS = re.compile(
    r"verbs?(?:_(?:class|classes|label|name))?|actions?(?:_(?:label|name|class))?|interactions?(?:_(?:label|type))?|"
    r"predicate|relation(?:ship)?|activity|hoi|phrase"
)
_STATING = re.compile(r"(?:^|_)(?:verb|(?:inter)?action|predicate|relation|hoi|triplet|pair|b?box|coord)")
"""What a key begins with, or a word of it, whose value may be a claim."""
_SIDES = (("x1", "xmin", "x_min", "left"), ("y1", "ymin", "y_min", "top"), ("x2", "xmax", "x_max", "right"),
          ("y2", "ymax", "y_max", "bottom"))  # fmt: skip
"""The keys of the four numbers of a box, if each has one."""


class NamedSides(list[float]):
    """The numbers of a box each of which the answer names: x1, y1, x2, y2, also where others have y first."""


class NotReadError(Exception):
    """An answer cannot be read; the message says why."""


def plain_key(key: str) -> str:
    """Return a key in one spelling: "Object Class", "objectClass" and "object-class (COCO)" are all object_class."""
    key = re.sub(r"[(\[][^)\]]*[)\]]?", " ", key[:200])
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.strip())
    return re.sub(r"[\s\-_]+", "_", key).lower()


def by_plain_key(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON object by its keys in one spelling (`plain_key`). Raises `NotReadError` if two become equal."""
    with_plain_keys = {plain_key(key): value for key, value in entry.items()}
    if len(with_plain_keys) < len(entry):
        raise NotReadError("an answer with a key twice in one object")
    return with_plain_keys


def value_of(entry: dict[str, Any], pattern: re.Pattern[str]) -> Any:
    """Return the value of a JSON object under the first key that fits the pattern, None if there is none. A null is
    passed over, and a key with "box" in it goes before others (human_bbox before human)."""
    fitting_keys = [key for key, value in entry.items() if value is not None and pattern.fullmatch(key)]
    return entry[max(fitting_keys, key=lambda key: "box" in key)] if fitting_keys else None


def has_box(entry: dict[str, Any]) -> bool:
    """Return whether a JSON object is about one box: it has a box, and no subject, nor the object's box beside it."""
    has_other = any("box" in key for key in entry if OBJECT.fullmatch(key))
    return value_of(entry, BOX) is not None and value_of(entry, SUBJECT) is None and not has_other


def says_more(key: str, value: Any) -> bool:
    """Return whether a key that is not read may take back what stands beside it, or state more: it denies or doubts, is
    false or 0, or has a box, a part of one, or verbs."""
    if takes_back(key.split("_")) or any(key in names for names in _SIDES):
        return True
    if isinstance(value, dict):
        inner = by_plain_key(value)
        return any(BOX.fullmatch(name) or VERBS.fullmatch(name) or says_more(name, inner[name]) for name in inner)
    if isinstance(value, list):
        has_verb = any(isinstance(item, str) and names_verb(item) for item in value)
        return has_verb or numbers_of(value) is not None or any(says_more(key, item) for item in value)
    if isinstance(value, str):
        return bool(_STATING.search(key)) or denies(re.findall(r"[^\W_]+(?:'[^\W_]+)*", value.lower()))
    return value is not None and value is not True and not value


def name_of(entry: dict[str, Any]) -> str | None:
    """Return the name that a JSON object gives to its box, as records spell it; None if it gives none."""
    name = text_of(value_of(entry, NAME))
    return None if name is None else re.sub(r"_being_[^_]+\Z", "", label_of(name))  # "horse being ridden"


def text_of(value: Any) -> str | None:
    """Return a JSON value if it is text with more than spaces in it, else None."""
    return value if isinstance(value, str) and value.strip() else None


def place_of(value: Any) -> Place:
    """Return where a JSON value says that something is: a box's four numbers, the index or id of a box, or a name; None
    if it says nothing of these. The value may be an object with one of them, or text of an index."""
    if isinstance(value, dict):
        entry = by_plain_key(value)
        box = value_of(entry, BOX)
        if box is not None or numbers_of(entry):
            return numbers_of(box or entry)
        index = next((entry[key] for key in ("id", "idx", "index") if key in entry), None)
        return place_of(index) if index is not None else text_of(value_of(entry, NAME))
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
    numbers = [number for number in map(number_of, value[:5]) if number is not None]
    return numbers if len(numbers) == len(value) == 4 else None


def number_of(value: Any) -> float | None:
    """Return a JSON value that is a finite number, or text of one, as a float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
