"""The keys of a model's answer by their meaning, and the values below them: boxes, names, scores. A key's words give
its meaning (`human_bbox`, `person box`, `sub_bbox` are one key), the type of its value gives the content.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import isfinite
from typing import Any

from hoicli.converters.vlm.names import label_of

Place = list[float] | int | str | None
"""Where something is: a box's numbers, the index or id of a box, its name alone, or nothing."""
Report = Callable[[str], None]
"""Takes the reason why a part of an answer is left out."""

# Keys, after `_plain_key`.
_HUMAN, _OTHER = "(?:human|person|subject|sub|agent|h)", "(?:object|obj|target|o)"
_BBOX = r"b?(?:ounding_)?box(?:es)?(?:_2d)?"
SUBJECT = re.compile(rf"{_HUMAN}_(?:{_BBOX}|id|idx|index)|{_BBOX}_{_HUMAN}|human|person|subject")
OBJECT = re.compile(rf"{_OTHER}_(?:{_BBOX}|id|idx|index)|{_BBOX}_{_OTHER}|object|target")
BOX = re.compile(rf"{_BBOX}|coordinates|coords")
LABEL = re.compile(r"(?:object|obj|target)_(?:class|label|category|name|type)|noun")
NAME = re.compile(r"label|name|class|category|object|object_(?:class|label|category|name)")
VERBS = re.compile(
    r"verbs?(?:_(?:class|classes|label|name))?|actions?(?:_(?:label|name|class))?|interactions?(?:_(?:label|type))?|"
    r"predicate|relation(?:ship)?|activity|hoi|phrase"
)
SCORE = re.compile(r"score|confidence|conf|probability|prob")
LISTS = re.compile(
    r"(?:inter)?actions?|relation(?:ship)?s?|hois?|(?:predicted_|pred_)?pairs|triplets|objects|detections|boxes|labels"
)
"""The keys of an object that has lists."""
BESIDE = re.compile(
    r"reason(?:ing|s)?|explanations?|rationale|thoughts?|analysis|evidence|comments?|notes?|description|caption|summary|"
    r"(?:image_|img_|pair_|hoi_|triplet_|interaction_|relation_)?(?:id|idx|index)|image|file_name|image_path|width|height"
)
"""The keys of what may stand beside a claim, and is not read."""


def _plain_key(key: str) -> str:
    """ "Object Class", "object-class" and "objectClass" as object_class; what stands in brackets is left off."""
    key = re.sub(r"[(\[][^)\]]*[)\]]?", " ", key[:200])
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.strip())
    return re.sub(r"[\s\-_]+", "_", key).lower()


def by_plain_key(entry: dict[str, Any]) -> dict[str, Any]:
    """An object with plain keys."""
    return {_plain_key(key): value for key, value in entry.items()}


def value_of(entry: dict[str, Any], keys: re.Pattern[str]) -> Any:
    """The first value under one of the keys that is not null; boxes before names, which are the shorter keys."""
    found = [key for key, value in entry.items() if value is not None and keys.fullmatch(key)]
    return entry[max(found, key=lambda key: "box" in key)] if found else None


def is_located(entry: dict[str, Any]) -> bool:
    """Whether an entry has a box of its own, without a subject."""
    return value_of(entry, BOX) is not None and value_of(entry, SUBJECT) is None


def name_of(entry: dict[str, Any]) -> str | None:
    """The name of a box, as records spell it."""
    name = text_of(value_of(entry, NAME))
    return None if name is None else label_of(name)


def text_of(value: Any) -> str | None:
    """A text with something in it, else None."""
    return value if isinstance(value, str) and value.strip() else None


def place_of(value: Any) -> Place:
    """The place that a value describes."""
    if isinstance(value, dict):
        entry = by_plain_key(value)
        box = value_of(entry, BOX)
        if box is not None:
            return numbers_of(box)
        index = next((entry[key] for key in ("id", "idx", "index") if key in entry), None)
        return place_of(index) if index is not None else text_of(value_of(entry, NAME))
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
    numbers = [number for number in map(number_of, value[:5]) if number is not None]
    return numbers if len(numbers) == len(value) == 4 else None


def number_of(value: Any) -> float | None:
    """A finite number, which may be a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
