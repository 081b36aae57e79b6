"""Boxes whose numbers contradict the convention they are read by. They are not read: which of the two is right cannot
be seen from them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from hoicli.converters.vlm.frames import Frame
from hoicli.converters.vlm.keys import Named

_ORDERS = (
    ("y first", re.compile(r"\by_?(?:1|min)\s{0,3},\s{0,3}x_?(?:1|min)\b", re.IGNORECASE)),
    ("x first", re.compile(r"\bx_?(?:1|min)\s{0,3},\s{0,3}y_?(?:1|min)\b", re.IGNORECASE)),
    ("x, y, width, height", re.compile(r"\bx\s{0,3},\s{0,3}y\s{0,3},\s{0,3}w(?:idth)?\s{0,3},\s{0,3}h", re.IGNORECASE)),
)
_OF_Y = "1000-yx"
MOST_OF_RELATIVE = 2.0
"""A box of fractions beyond this reaches over more than the picture's size out of it."""


def order_doubt(text: str, frame: Frame | None) -> tuple[str, ...]:
    """Both readings where the answer says in words that its boxes have another order than the convention; else none."""
    if frame is None:
        return ()
    said = [name for name, pattern in _ORDERS if pattern.search(text)]
    expected = "y first" if frame.kind == _OF_Y else "x first"
    other = next((name for name in said if name != expected), None)
    return () if other is None else (f"{other}, as the answer says", f"{expected}, as {frame} has it")


def scale_doubt(boxes: Iterable[Sequence[float]], frame: Frame | None) -> tuple[str, ...]:
    """Both readings where all boxes of an answer are fractions below 1 and the convention has none, or some of them
    are no fractions and the convention has these; else none."""
    if frame is None:
        return ()
    whole = [box for box in boxes if len(box) == 4 and not isinstance(box, Named)]
    if frame.kind == "relative":
        found = next((box for box in whole if max(box) > MOST_OF_RELATIVE), None)
        other = "thousandths or pixels"
    else:
        small = bool(whole) and all(0 <= number <= 1 for box in whole for number in box)
        found = next((box for box in whole if any(number % 1 for number in box)), None) if small else None
        other = "fractions (relative)"
    return () if found is None else (f"{list(found)} as {other}", f"{list(found)} as {frame}")
