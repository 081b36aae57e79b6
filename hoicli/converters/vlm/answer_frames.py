"""The convention of the boxes in an answer, from whatever says it: --coords, box tokens, or the row of the answer."""

from __future__ import annotations

from typing import Any

from hoicli.converters.context import Context
from hoicli.converters.vlm.frames import Frame, parse_frame
from hoicli.errors import UsageError, arg
from hoicli.records.parsing import is_number


def find_frame(
    row: dict[str, Any], key: str, answer: Any, tokens: str, option_frame: Frame | None, context: Context
) -> Frame | None:
    """Return the convention of the numbers in an answer's boxes, None if nothing says it. In this order: tokens that
    always count in one way, --coords, other box tokens, what the row states (`coords`, `box_scale`), what is known of
    rows of its shape.

    key: the row's key of the answer. tokens: the kind of the answer's box tokens (`Claims.tokens`). option_frame: the
    convention that --coords names, None without it. Raises `UsageError` if the row states another one than --coords."""
    if tokens in ("loc", "bins"):
        context.announce(f"boxes in <{tokens}> tokens: taken as their model writes them")
        return Frame("1000" if tokens == "loc" else "relative")
    # a row may state the convention itself; R1-SGG's rows state the size of the copy that the model saw (box_scale)
    name = "coords" if isinstance(row.get("coords"), str) else "box_scale"
    row_coords, copy = (row["coords"], None) if name == "coords" else (None, row.get("box_scale"))
    frame_text = _resized_coords(copy) if copy else row_coords
    row_frame = None if frame_text is None else parse_frame(frame_text, f"{context.place}: {name}")
    if option_frame is not None:
        if row_frame not in (None, option_frame):
            problem = f"{frame_text}, but the option is {arg('coords', context.options['coords'])}"
            raise UsageError(f"{context.place}: {name}: {problem}; leave the option out, or mend the rows")
        return option_frame
    if tokens == "box":
        return _assume_frame("1000", "boxes in <box> or <|box_start|> tokens", context)
    if key == "person_bbox":
        return _assume_frame("pixels", "person_bbox and object_bbox of the rows", context)
    if row_frame is not None:
        if name == "box_scale":
            context.announce("box_scale of R1-SGG's rows: taken as the size of the copy that boxes are pixels of")
        return row_frame
    if key == "predicted_pairs":
        return _assume_frame("pixels", "predicted_pairs of hoi-benchmarks", context)
    first = answer[0] if isinstance(answer, list) and answer else None
    if isinstance(first, dict) and {"sub_bbox", "obj_bbox"} <= first.keys():
        return _assume_frame("pixels", "sub_bbox and obj_bbox of mllms-zs-hoi", context)
    return None


def _assume_frame(kind: str, shape: str, context: Context) -> Frame:
    """Return the convention called `kind`, and add a note that it was assumed for a `shape` of rows."""
    context.announce(f"{shape}: taken as {kind}; {arg('coords')} says otherwise")
    return Frame(kind)


def _resized_coords(copy: Any) -> str:
    """Return the size of a resized image as `--coords` writes it, "resized:1000x750". copy: [width, height], which rows
    of R1-SGG state as the size of the image whose pixels their boxes count."""
    sides = copy if isinstance(copy, list) and all(map(is_number, copy)) else [copy]
    return "resized:" + "x".join(f"{side:.0f}" if is_number(side) else str(side) for side in sides)
