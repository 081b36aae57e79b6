"""What a protocol does, in words made from its row: `eval --explain`."""

from __future__ import annotations

from collections.abc import Sequence

from hoicli.evaluation.protocols import (
    ALL_BY_ONE,
    EVERY_RECALL,
    FAR_EDGES,
    GRID_ARANGE,
    GRID_LINSPACE,
    GRID_TENTHS,
    NO_SHIFT,
    Protocol,
    Shift,
)
from hoicli.vocabulary.labels import SUBJECT


def explained(protocol: Protocol, subjects: Sequence[str] = (SUBJECT,)) -> str:
    """What the protocol does, in five lines made from its row, and its remark as a sixth. subjects: the dataset's."""
    width = "x2 - x1 + 1 (inclusive pixels)" if protocol.inclusive else "x2 - x1 (edges)"
    touch = "" if protocol.touching_overlap else ", 0 where boxes only touch"
    pixels = f", {_shift(protocol.last_pixel_shift)} where the record says they are last pixels (.mat)"
    predictions = _shift(protocol.prediction_shift) + (pixels if protocol.last_pixel_shift != NO_SHIFT else "")
    shifts = f"predictions {predictions}, ground truth {_shift(protocol.truth_shift)}"
    labels = f"; the subject must be labelled {' or '.join(subjects)}" if protocol.person_subject else ""
    labels = "; subjects of different labels do not overlap" if protocol.same_subject else labels
    if protocol.roles and not protocol.person_first:
        labels = "; boxes of different labels do not overlap"
    sign = ">" if protocol.strict else ">="
    caps = [
        f"the interactions called {protocol.classes!r}" if protocol.classes else "",
        f"the best {protocol.triplets_per_image} triplets an image" if protocol.triplets_per_image else "",
        f"the best {protocol.predictions_per_class:,} predictions a class" if protocol.predictions_per_class else "",
        "only images with an image-level label for the object (Known Object)" if protocol.known_object else "",
        "no_interaction dropped from both sides" if protocol.drop_no_interaction else "",
        f"only images that annotate {protocol.images}" if protocol.images != "all" else "",
    ]
    counted = "; ".join(cap for cap in caps if cap) or "every prediction of one of the interactions"
    mean = (
        "the classes with ground truth"
        if protocol.only_annotated_classes
        else "all of them (0 for one without ground truth or predictions)"
    )
    classes = "; the classes are the verbs, with any object" if protocol.by_verb else ""
    boxes = "not looked at: image-level labels" if protocol.whole_image else f"width {width}{touch}; {shifts}{labels}"
    lines = [
        f"{protocol.name}: {protocol.title} ({protocol.source})",
        f"boxes    {boxes}",
        f"match    {_match_rule(protocol, f'{sign} {protocol.threshold}')}",
        f"counted  {counted}",
        f"mean     {_grid_name(protocol.grid)}, over {mean}{classes}",
        *([f"note     {protocol.remark}"] if protocol.remark else []),
    ]
    return "\n  ".join(lines)


def _match_rule(protocol: Protocol, enough: str) -> str:
    if protocol.whole_image:
        return (
            "the best triplet of a class in an image is the image's score of the class; true if the image has the "
            "label, not counted if the label is ambiguous, else false"
        )
    if protocol.every_overlap:
        return (
            f"all ground truth of the class with min(IoU_subject, IoU_object) {enough}; true if a higher score has "
            "not taken all of it; takes all that is left of it"
        )
    if not protocol.person_first:
        return (
            "the ground truth of the class with the largest min(IoU_subject, IoU_object), first of equals; "
            f"true if {enough} and not taken by a higher score"
        )
    absent = "any" if protocol.any_object_when_none else "an empty one"
    return (
        "the person with the largest IoU, first of equals, doing anything; ignored if nobody annotated them; "
        f"true if both IoU {enough}, they do it and no higher score took them; without an object, {absent} will do"
    )


def _shift(shift: Shift) -> str:
    known = {NO_SHIFT: "as recorded (0-based)", ALL_BY_ONE: "+1 on all four", FAR_EDGES: "+1 on x2 and y2"}
    return known.get(shift, "plus " + " ".join(f"{number:g}" for number in shift))


def _grid_name(grid: tuple[float, ...]) -> str:
    names: dict[tuple[float, ...], str] = {
        GRID_ARANGE: "11-point AP at recall arange(0, 1.1, 0.1)",
        GRID_LINSPACE: "11-point AP at recall linspace(0, 1, 11)",
        GRID_TENTHS: "11-point AP at recall i/10",
        EVERY_RECALL: "area under the precision envelope at every recall",
    }
    return names[grid] if grid in names else f"{len(grid)}-point AP at recall {grid[0]:g} to {grid[-1]:g}"
