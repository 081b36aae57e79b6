"""Image records as answers to grounding: each interaction of an image is a question for all its pairs."""

from __future__ import annotations

from hoicli.errors import DataError
from hoicli.io.messages import note
from hoicli.io.streams import Line, Stream
from hoicli.questions.results import Grounding, Oddities, Pair
from hoicli.records.image import problems, truth_problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.parsing import Record, parse

Key = tuple[str, str, str]
"""(image, verb, object)."""


def grounding_of(truth: Stream, predictions: Stream, policy: ErrorPolicy) -> list[Grounding]:
    """A question for every (image, verb, object) of the ground truth, sorted; the pairs found are the predictions with
    this verb and object, by descending score, equal ones and those without a score in their order. Equal pairs are one.
    Raises `DataError` for a bad record, and for a prediction about an image that the ground truth does not have."""
    odd = Oddities()
    asked: dict[Key, dict[Pair, None]] = {}
    sizes: dict[str, Record] = {}
    register = ImageRegister()
    for line in truth:
        try:
            record = _sound(line, scored=False)
            register.add(record["image_id"], line)
        except DataError as error:
            policy.handle(error)
            continue
        sizes[record["image_id"]] = record
        for key, pair, _ in _pairs(record):
            asked.setdefault(key, {})[pair] = None
    if not asked:
        raise DataError("no interaction in it; give the ground truth of images that have some", place=truth.name)
    found: dict[Key, list[tuple[float, Pair]]] = {key: [] for key in asked}
    answered: set[str] = set()
    register = ImageRegister(sizes)
    for line in predictions:
        try:
            record = _sound(line, scored=True)
            register.add(record["image_id"], line)
        except DataError as error:
            policy.handle(error)
            continue
        answered.add(record["image_id"])
        for key, pair, score in _pairs(record):
            if key not in found:
                odd.count(
                    "predictions of interactions that the image does not have, for which nobody asked", line.place
                )
                continue
            found[key].append((-score, pair))
            if _outside(pair, sizes[key[0]]):
                odd.count("predicted pairs with a box outside the picture", line.place)
    odd.report()
    missing = len({image for image, _, _ in asked} - answered)
    if missing:
        note(f"images with questions and without predictions, where nothing is found: {missing:,}")
    rows = []
    for key, pairs in asked.items():
        best = dict.fromkeys(pair for _, pair in sorted(found[key], key=lambda each: each[0]))
        rows.append(Grounding(key[0], tuple(sorted(pairs)), tuple(best)))
    return sorted(rows, key=lambda row: (row.image, row.truth, row.found))


def _sound(line: Line, *, scored: bool) -> Record:
    record = parse(line)
    hois = record.get("hois")
    unscored = scored and not any(
        isinstance(hoi, dict) and "score" in hoi for hoi in (hois if isinstance(hois, list) else ())
    )
    for problem in problems(record, None, scored=not unscored) if scored else truth_problems(record, None):
        raise problem.error(line.place)
    return record


def _pairs(record: Record) -> list[tuple[Key, Pair, float]]:
    """(question, boxes, score) of every triplet with an object; the score is 0 where there is none."""
    boxes, labels = [tuple(map(float, box)) for box in record["boxes"]], record["labels"]
    return [
        (
            (record["image_id"], _name(hoi["verb"]), _name(str(labels[hoi["object"]]))),
            (boxes[hoi["subject"]], boxes[hoi["object"]]),
            float(hoi.get("score") or 0.0),
        )
        for hoi in record["hois"]
        if hoi["object"] is not None
    ]


def _name(text: str) -> str:
    return "_".join(text.replace("_", " ").lower().split())


def _outside(boxes: Pair, record: Record) -> bool:
    width, height = (record.get(key) or float("inf") for key in ("width", "height"))
    return any(min(box) < 0 or box[2] > width or box[3] > height for box in boxes)
