"""Which options a detector chooses, by the rule of CrossHOI-Bench's script for HOI models.

A prediction is a candidate of a question if its boxes are those that the question shows: each shown box overlaps the
prediction's by more than 0.5 (between edges, in single precision), and in the setting `pair` the predicted object is
the question's. Of the candidates those count whose score is among the BEST of the image, or equal to the last of
these, and each chooses the option that names its interaction, if one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.errors import DataError
from hoicli.records.boxes import iou
from hoicli.records.kit import Bools
from hoicli.records.parsing import Record, is_number, json_type, short
from hoicli.vlm.bank import BETWEEN, FIRST, Bank, Class, Question, box_of, class_of

LEAST_IOU = 0.5
"""A box has to overlap by more."""
DUMP_KEYS = ("h_boxes", "o_boxes", "ho_scores", "ao_names")
"""What the released dumps have of an image, a row for each predicted interaction."""
BEST = 5
"""Predictions of an image that count."""
_ROLES = {
    ("sit", "instr"): "sit_on",
    ("look", "obj"): "look_at",
    ("hit", "instr"): "hit_with",
    ("eat", "instr"): "eat_with",
    ("jump", "instr"): "jump_on",
    ("lay", "instr"): "lie_on",
    ("talk_on_phone", "instr"): "talk_on",
    ("cut", "instr"): "cut_with",
    ("work_on_computer", "instr"): "work_on",
    ("ski", "instr"): "ski_on",
    ("drink", "instr"): "drink_with",
}
"""What the benchmark calls V-COCO's action and role, where that is not the action's own name."""

Singles = NDArray[np.float32]


@dataclass(frozen=True)
class Detected:
    """The N predictions of an image. people, others [N, 4]; scores [N]; named: the interaction of each; words: as a
    dump names it, () for hoicli's records."""

    people: Singles
    others: Singles
    scores: Singles
    named: Sequence[Class]
    words: Sequence[str] = ()


def of_dump(entry: Any) -> Detected:
    """The predictions of an image of a released dump; raises `DataError` that names the field."""
    if not isinstance(entry, dict):
        raise DataError(f"{json_type(entry)}; an image has {', '.join(DUMP_KEYS)}")
    for key in DUMP_KEYS:
        if not isinstance(entry.get(key), list) or len(entry[key]) != len(entry["h_boxes"]):
            raise DataError("missing, or no list of as many as h_boxes; a row is a prediction", field=key)
    people, others, scores, names = (entry[key] for key in DUMP_KEYS)
    for key in DUMP_KEYS[:2]:
        for at, box in enumerate(entry[key]):
            box_of(box, f"{key}[{at}]")
    for at, (score, name) in enumerate(zip(scores, names, strict=True)):
        if not is_number(score):
            raise DataError(f"{short(score)} is no finite number", field=f"ho_scores[{at}]")
        if not isinstance(name, str) or name.count(BETWEEN) != 1:
            raise DataError(f"{short(name)} is no 'verb{BETWEEN}object'", field=f"ao_names[{at}]")
    return Detected(*_arrays(people, others, scores), [class_of(name) for name in names], names)


def of_record(record: Record) -> Detected:
    """The predictions of a sound image record, each with an object; an object that is not named is none of an
    interaction."""
    boxes, labels = record["boxes"], record["labels"]
    hois = [hoi for hoi in record["hois"] if labels[hoi["object"]] is not None]
    people, others = ([boxes[hoi[side]] for hoi in hois] for side in ("subject", "object"))
    named = []
    for hoi in hois:
        verb = str(hoi["verb"])
        name = labels[hoi["object"]].replace(" ", "_")
        named.append((_ROLES.get((verb, hoi.get("role", "")), verb).replace(" ", "_"), name))
    return Detected(*_arrays(people, others, [hoi["score"] for hoi in hois]), named)


def _arrays(people: Any, others: Any, scores: Any) -> tuple[Singles, Singles, Singles]:
    with np.errstate(over="ignore"):
        first, second = (np.array(boxes, dtype=np.float32).reshape(-1, 4) for boxes in (people, others))
        return first, second, np.array(scores, dtype=np.float32)


def choices(
    images: Mapping[str, Detected], bank: Bank, *, released: bool = False
) -> Iterator[tuple[Question, list[str]]]:
    """Each question about an image of a detector's output, and the options chosen, the same one as often as predicted.
    released: as the released script chooses."""
    for image_id, detected in images.items():
        questions = bank.by_image.get(image_id, {})
        best = detected.scores >= np.sort(detected.scores)[-BEST:].min(initial=np.inf)
        for question in questions.values():
            shown = _shown(question, bank.setting, detected, released=released)
            kept = np.flatnonzero(shown & best).tolist()
            if not released or not detected.words:
                chosen = [question.by_class.get(detected.named[at], "") for at in kept]
            else:
                chosen = [detected.words[at] for at in kept]
                chosen = [name.split(" ")[0] for name in chosen] if bank.dataset == "swig" else chosen
            offered = questions.get(FIRST, question).listed if released else question.listed
            yield question, [option for option in chosen if option in offered]


def _shown(question: Question, setting: str, detected: Detected, *, released: bool) -> Bools:
    """[N] whether a prediction's boxes are those that the question shows."""
    alike = np.ones(len(detected.scores), dtype=bool)
    if setting != "scene":
        alike &= _overlap(question.human, detected.people)
    if setting == "pair":
        label = _label(question, released=released)
        alike &= _overlap(question.other, detected.others)
        if label is None:
            return alike & (not released)
        alike &= np.array([name == label for _, name in detected.named], dtype=bool)
    return alike


def _label(question: Question, *, released: bool) -> str | None:
    """What the other box shows, None where nothing says it: as the file has it, else as the first right option has it.
    The released script goes by that option alone."""
    if question.label and not released:
        return question.label.replace(" ", "_")
    return class_of(question.right[0])[1] if question.right else None


def _overlap(box: Sequence[float] | None, boxes: Singles) -> Bools:
    shown: Any = np.repeat(np.array(box, dtype=np.float32)[:, None], len(boxes), axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        overlaps: Bools = iou(shown, boxes.T, inclusive=False) > LEAST_IOU  # type: ignore[arg-type]
    return overlaps
