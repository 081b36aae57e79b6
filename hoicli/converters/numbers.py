"""Strict readers of the numbers, indices and boxes in foreign files, and the numberings of objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Generic, TypeVar

from hoicli.errors import DataError, arg
from hoicli.vocabulary.labels import Vocabulary

T = TypeVar("T")

_DIGITS = re.compile(r"\s*[+-]?[0-9]{1,18}\s*")


def whole_number(value: Any, field: str) -> int:
    """Return a value from a file as an integer; it may be an int, a NumPy integer, a float without a fraction, or text
    of digits. Raises `DataError` for others: int() would read 0.9 as 0, "1_0" as 10 and true as 1."""
    if type(value) is int:
        return value
    try:
        plain = value.item() if hasattr(value, "item") else value  # a NumPy number; an array raises ValueError
    except ValueError:
        plain = value
    if type(plain) is int or (type(plain) is float and plain.is_integer()):
        return int(plain)
    if type(plain) is str and _DIGITS.fullmatch(plain):
        return int(plain)
    raise DataError(
        f"{NOTHING if plain is None else shorten_value(plain)} is no whole number; ids and indices are", field=field
    )


NOTHING = "nothing (null, or missing)"


def score_of(value: Any, field: str, image: str) -> float:
    """Return a score, a number or text of one, as a float. Raises `DataError` that names the image and the field."""
    try:
        return float(value)
    except (TypeError, ValueError):
        value_text = NOTHING if value is None else shorten_value(value)
        raise DataError(f"{value_text} is no score; every interaction of {image} needs one", field=field) from None


LARGEST = 1 << 63
"""Larger integers are damage; JSON writers refuse them."""


def shorten_value(value: Any) -> str:
    """Return a value from a file as it appears in a message: a number, True, False, None or text in at most 60
    characters; for anything else, and for text that cannot be printed, the name of its type ("a list")."""
    if type(value) is int and abs(value) >= LARGEST:
        return "an integer of more than 63 bits"
    if type(value) in (int, float, bool, type(None)):
        return repr(value)
    if type(value) is str and value.isprintable() and value:
        return value[:60]
    name = type(value).__name__
    return "an array" if name == "ndarray" else f"a {name}"


def finite(value: Any, field: str) -> int | float:
    """Return `value` if it is a finite int or float of usual size. Raises `DataError` for anything else."""
    if type(value) not in (int, float) or not -LARGEST < value < LARGEST:
        fix = f"fix what wrote it, or pass {arg('on_error', 'skip')}"
        raise DataError(f"{shorten_value(value)} is no finite number; {fix}", field=field)
    number: int | float = value
    return number


def plain(value: Any) -> Any:
    """Return a NumPy array as nested lists, a NumPy scalar as a number, and anything else unchanged."""
    return value.tolist() if hasattr(value, "tolist") else value


def read_list(value: Any, field: str) -> list[Any]:
    """Return a list, tuple or array as a list. Raises `DataError` that names the field for anything else."""
    value = plain(value)
    if not isinstance(value, list | tuple):
        raise DataError(
            f"{shorten_value(value)} is no list; {arg('from_', like='NAME')} chooses another format", field=field
        )
    return list(value) if isinstance(value, tuple) else value


def finite_list(value: Any, field: str) -> list[Any]:
    """Return a list, tuple or array of finite numbers as a list. Raises `DataError` with the place of another."""
    numbers = read_list(value, field)
    # A sum within the bounds shows that no number is too large, NaN or infinite; it is faster than a look at each.
    if {*map(type, numbers)} <= {float} and sum(map(abs, numbers)) < LARGEST:
        return numbers
    return [finite(plain(number), f"{field}[{index}]") for index, number in enumerate(numbers)]


PAIR = "person x1 y1 x2 y2, object x1 y1 x2 y2"
"""The eight numbers of a pair of boxes."""


def table(value: Any, columns: tuple[str, ...], field: str = "") -> list[list[Any]]:
    """Return a file's list of rows as lists of finite numbers. Each row must have the numbers named by `columns` (such
    as a score), and then the eight of a pair of boxes (PAIR). Raises `DataError` with the place of any other value."""
    rows, width = read_list(value, field), len(columns) + 8
    if (  # usually all rows are good; to see this for all at once is ten times as fast as to check each
        {*map(type, rows)} <= {list}
        and {*map(len, rows)} <= {width}
        and {*map(type, chain.from_iterable(rows))} <= {int, float}
        and sum(map(abs, chain.from_iterable(rows))) < LARGEST
    ):
        return rows
    checked_rows = []
    for index, row in enumerate(rows):
        numbers = finite_list(row, f"{field}[{index}]")
        if len(numbers) != width:
            problem = f"{len(numbers)} numbers; a row has {width}: {', '.join((*columns, PAIR))}"
            raise DataError(problem, field=f"{field}[{index}]")
        checked_rows.append(numbers)
    return checked_rows


ONE_BASED, FAR_EDGES = (1, 1, 1, 1), (0, 0, 1, 1)
"""Shifts to subtract from a file's boxes: 1 from all numbers that count from 1; 1 from x2 = x + w and y2 = y + h."""
BOX_SHIFTS: Mapping[str, Sequence[int] | None] = {"inclusive": None, "inclusive-1": ONE_BASED, "edges": FAR_EDGES}
"""The shift of each convention of `vocabulary.labels.BOXES`."""


BOX_FORMS: Mapping[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "xyxy": lambda first, second: (first, second),
    "xywh": lambda corner, extent: (corner, corner + extent),
    "cxcywh": lambda centre, extent: (centre - extent / 2, centre + extent / 2),
}
"""`--box-form`: for each form the function that gives (x1, x2) or (y1, y2) from a box's two numbers of that axis."""
_FOUR_NUMBERS = {"xywh": "[x, y, width, height]", "cxcywh": "[cx, cy, width, height]"}


def corners(box: Any, field: str, shift: Sequence[int] | None = None, form: str | None = None) -> list[Any]:
    """Return a box from a file as [x1, y1, x2, y2]. shift: what to subtract from these. form: what the file's numbers
    are, a key of BOX_FORMS; None for corners. Raises `DataError` unless there are four."""
    if len(box) != 4:
        expected = _FOUR_NUMBERS.get(form or "", "[x1, y1, x2, y2]")
        raise DataError(f"{str(box)[:60]} is no box; give {expected}", field=field)
    if form is not None:
        x1, x2 = BOX_FORMS[form](box[0], box[2])
        y1, y2 = BOX_FORMS[form](box[1], box[3])
        box = [x1, y1, x2, y2]
    return list(box) if shift is None else [side - offset for side, offset in zip(box, shift, strict=True)]


OBJECT_ORDERS: dict[str, tuple[str, Callable[[Vocabulary], Mapping[int, str]]]] = {
    "coco": (" is none of the 80 in COCO's order (0-79)", lambda vocabulary: dict(enumerate(vocabulary.objects))),
    "coco-1": (" is none of the 80 in COCO's order (1-80)", lambda vocabulary: dict(enumerate(vocabulary.objects, 1))),
    "coco-id": (" is none of COCO's 80 (1-90 with gaps)", lambda vocabulary: vocabulary.coco_names),
    "alphabetical": (
        " is none of the 80 (0-79, by name)",
        lambda vocabulary: dict(enumerate(vocabulary.alphabetical_objects)),
    ),
}
"""`--object-order`: the numberings of COCO's 80 objects, each with the message about others and the names by number."""


@dataclass(frozen=True)
class Numbers(Generic[T]):
    """What a file's numbers of verbs, objects or interactions mean. names: the label of each number; that of an
    interaction is (verb, object). refusal: the end of the message about a number without a label."""

    names: Mapping[int, T]
    refusal: str

    @classmethod
    def count_from(cls, items: Sequence[T], base: int = 0, hint: str = "") -> Numbers[T]:
        """Return the numbering that counts the items from `base`. hint: the end of messages about other numbers."""
        return cls(dict(enumerate(items, start=base)), f", but there are {len(items)}, counted from {base}{hint}")

    def name(self, number: Any, field: str) -> T:
        """Return the label that a number means. Raises `DataError` for one without a label, and for no whole number."""
        known_name = self.names.get(number if type(number) is int else whole_number(number, field))
        if known_name is None:
            raise DataError(f"id {str(number).strip()}{self.refusal}", field=field, code="unknown-label")
        return known_name
