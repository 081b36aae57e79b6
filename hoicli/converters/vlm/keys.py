"""The keys of a model's answer by their meaning, and the values below them: boxes, names, scores. A key's words give
its meaning (`human_bbox`, `person box`, `sub_bbox` are one key), the type of its value gives the content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite
from typing import Any, Protocol

from hoicli.converters.vlm.names import label_of

Place = list[float] | int | str | None
"""Where something is: a box's numbers, the index or id of a box, its name alone, or nothing."""


class Report(Protocol):
    """Takes the reason why a part of an answer is left out; of one that can be read in several ways, the readings."""

    def __call__(self, reason: str, *readings: str) -> None: ...


class Named(list[float]):
    """The numbers of a box whose keys name its corners: x first, whatever `--coords` says about lists."""


def shown(label: str, place: Place) -> str:
    """A name with its place, for messages."""
    numbers = f"[{', '.join(f'{number:g}' for number in place)}]" if isinstance(place, list) else str(place)
    return f"{label or 'something'} {numbers}" if numbers != label else numbers


# Keys, after `_plain`.
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
PERSON_LIST = re.compile(r"persons?|people|humans?|subjects?")
"""The key of a list of persons."""
TRIPLETS = re.compile(r"(?:inter)?actions?|relation(?:ship)?s?|hois?|(?:predicted_|pred_)?pairs|triplets")
"""The key of a list of triplets."""
LISTS = re.compile(rf"{TRIPLETS.pattern}|objects|detections|boxes|labels")
"""The keys of an object that has lists."""
BESIDE = re.compile(
    r"reason(?:ing|s)?|explanations?|rationale|thoughts?|analysis|evidence|comments?|notes?|description|caption|summary|"
    r"(?:image_|img_|pair_|hoi_|triplet_|interaction_|relation_)?(?:id|idx|index)|image|file_name|image_path|width|height"
)
"""The keys of what may stand beside a claim, and is not read."""

CORNER = re.compile(r"[xy](?:_?min|_?max|[12])?|w|h|width|height")
_CORNERS = (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax"), ("x_min", "y_min", "x_max", "y_max"))


def plain_key(key: str) -> str:
    """ "Object Class", "object-class" and "objectClass" as object_class; what stands in brackets is left off."""
    key = re.sub(r"[(\[][^)\]]*[)\]]?", " ", key[:200])
    key = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key.strip())
    return re.sub(r"[\s\-_]+", "_", key).lower()


def by_plain_key(entry: dict[str, Any]) -> dict[str, Any]:
    """An object with plain keys."""
    return {plain_key(key): value for key, value in entry.items()}


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
        index = next((entry[key] for key in ("id", "idx", "index", "box_index") if key in entry), None)
        return place_of(index) if index is not None else numbers_of(value) or text_of(value_of(entry, NAME))
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
        entry = by_plain_key(value)
        for keys in _CORNERS:
            if all(key in entry for key in keys):
                return _named(entry[key] for key in keys)
        for keys in (("x", "y", "width", "height"), ("x", "y", "w", "h")):
            if all(key in entry for key in keys) and (found := _named(entry[key] for key in keys)):
                return Named((found[0], found[1], found[0] + found[2], found[1] + found[3]))
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


def _named(values: Iterable[Any]) -> list[float] | None:
    numbers = numbers_of(list(values))
    return None if numbers is None else Named(numbers)


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


def score_of(value: Any, report: Report) -> float | None:
    """The number of a score; None, and reported, for anything else."""
    if value is None:
        return None
    number = _number(value)
    if number is None:
        report("a score that is no number (its triplet is kept)")
    return number
