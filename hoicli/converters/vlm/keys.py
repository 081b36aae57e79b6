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


class Named(list[float]):
    """The numbers of a box whose keys name its corners: x first, whatever `--coords` says about lists."""


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
PERSON_LIST = re.compile(r"persons?|people|humans?|subjects?")
"""The key of a list of persons."""
LISTS = re.compile(
    r"(?:inter)?actions?|relation(?:ship)?s?|hois?|(?:predicted_|pred_)?pairs|triplets|objects|detections|boxes|labels"
)
"""The keys of an object that has lists."""
BESIDE = re.compile(
    r"reason(?:ing|s)?|explanations?|rationale|thoughts?|analysis|evidence|comments?|notes?|description|caption|summary|"
    r"(?:image_|img_|pair_|hoi_|triplet_|interaction_|relation_)?(?:id|idx|index)|image|file_name|image_path|width|height"
)
"""The keys of what may stand beside a claim, and is not read."""
CORNER = re.compile(r"[xy](?:_?min|_?max|[12])?|w|h|width|height")


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
        index = next((entry[key] for key in ("id", "idx", "index", "box_index") if key in entry), None)
        return place_of(index) if index is not None else numbers_of(value) or text_of(value_of(entry, NAME))
    if isinstance(value, str):
        return int(value) if value.strip().isdecimal() and len(value.strip()) < 9 else numbers_of(value) or value
    return value if type(value) is int else numbers_of(value)


def numbers_of(value: Any) -> list[float] | None:
    """The four numbers of a box, in any convention; None if there are not four finite ones.

    Numbers may be text, the list nested ([[x1, y1, x2, y2]] or two points), text itself, or keyed (x1.., xmin..;
    x, y, width, height).
    """
    if isinstance(value, dict):
        return _of_keys({key.replace("_", ""): number for key, number in by_plain_key(value).items()})
    if isinstance(value, str):
        text = value.strip().strip("[]()").strip()
        value = re.split(r"\s*,\s*|\s+", text) if text else []
    if not isinstance(value, list):
        return None
    if len(value) == 1 and isinstance(value[0], list | dict):
        return numbers_of(value[0])
    if len(value) == 2 and all(isinstance(point, list) and len(point) == 2 for point in value):
        value = [*value[0], *value[1]]
    numbers = [number for number in map(number_of, value[:5]) if number is not None]
    return numbers if len(numbers) == len(value) == 4 else None


def _of_keys(entry: dict[str, Any]) -> list[float] | None:
    for corners in (("x1", "y1", "x2", "y2"), ("xmin", "ymin", "xmax", "ymax")):
        if all(key in entry for key in corners):
            numbers = numbers_of([entry[key] for key in corners])
            return None if numbers is None else Named(numbers)
    width, height = entry.get("width", entry.get("w")), entry.get("height", entry.get("h"))
    numbers = numbers_of([entry.get("x"), entry.get("y"), width, height])
    return None if numbers is None else Named((*numbers[:2], numbers[0] + numbers[2], numbers[1] + numbers[3]))


def number_of(value: Any) -> float | None:
    """A finite number, which may be a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None
