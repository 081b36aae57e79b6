"""The faults in the image records of a batch that a metric would silently use, each check with its cases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from hoicli.records.boxes import find_inverted, find_repeated
from hoicli.records.image import UNKNOWN_LABEL, problems
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.records.parsing import Record
from hoicli.validation.batches import Checked, Size, TripletClass, pixels
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

MARGIN = 0.1
"""Ours: detectors overshoot the image a little; a box over a tenth of its side outside is in another frame."""

Cases = tuple[str, Ints, Callable[[str], str]]
"""The cases of a check in a batch: (the check's code, [M] the image of each case, ascending, a function that describes
the first case, given the place of its line)."""


def faults(
    batch: Checked, vocabulary: Vocabulary | None, theirs: Sequence[Size | None], *, scored: bool
) -> Iterator[Cases]:
    """Yield the faults of a batch that a metric would silently use. theirs [N]: the sizes of the images in the ground
    truth, None where they are not known; scored: whether the records are predictions."""
    sizes = [own_size or other for own_size, other in zip(batch.sizes, theirs, strict=True)]
    yield from _label_faults(batch, vocabulary, scored=scored)
    yield from _size_faults(batch, theirs)
    yield from _box_faults(batch, sizes)
    yield from _triplet_faults(batch, vocabulary, scored=scored)


def _label_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Yield the labels that the vocabulary does not have."""
    image = np.repeat(np.arange(len(batch.unknown)), batch.unknown)

    def first(place: str) -> str:
        problems_found = problems(batch.record(int(image[0])), vocabulary, scored=scored)
        return str(next(problem for problem in problems_found if problem.code == UNKNOWN_LABEL).error(place))

    yield UNKNOWN_LABEL, image, first


def _size_faults(batch: Checked, theirs: Sequence[Size | None]) -> Iterator[Cases]:
    """Yield the images that have another size in the ground truth."""
    both = zip(batch.sizes, theirs, strict=True)
    rows = [
        row
        for row, (own_size, other) in enumerate(both)
        if own_size is not None and other is not None and own_size != other
    ]

    def first(place: str) -> str:
        own_text, other = (" x ".join(map(str, sizes[rows[0]] or ())) for sizes in (batch.sizes, theirs))
        return f"{place}: {batch.image_ids[rows[0]]!r} has {own_text}, in the ground truth {other}"

    yield "another-image-size", np.array(rows, dtype=np.int64), first


def _box_faults(batch: Checked, sizes: Sequence[Size | None]) -> Iterator[Cases]:
    """Yield the boxes that are not in pixels of the image, corner by corner. sizes [N]: the images' sizes, None where
    not known."""
    boxes = batch.boxes
    size = pixels(sizes)[batch.image_of_box]
    looked_at = ~batch.whole[batch.image_of_box]
    is_inverted = find_inverted(boxes) & looked_at
    has_order = looked_at & ~is_inverted
    inverted = np.flatnonzero(is_inverted)
    is_flat = (boxes[:, :2] == boxes[:, 2:]).any(axis=1)
    rows_by_check = {
        "relative-box": _relative_boxes(batch, looked_at),
        "inverted-box": inverted,
        "looks-like-xywh": inverted[_fits_as_xywh(boxes[inverted], size[inverted])],
        "box-without-area": np.flatnonzero(is_flat & has_order),
        "box-outside-image": np.flatnonzero(_leaves_image(boxes, size) & has_order),
    }

    def text(record: Record, _: int, index: int) -> str:
        return f": {record['boxes'][index]}"

    def text_with_size(record: Record, image_number: int, index: int) -> str:
        width, height = sizes[image_number] or (0, 0)  # a box is only outside an image of a known size
        return f"{text(record, image_number, index)}, the image is {width} x {height}"

    for check, rows in rows_by_check.items():
        yield _cases(check, batch, "boxes", rows, text_with_size if check == "box-outside-image" else text)


def _relative_boxes(batch: Checked, looked_at: Bools) -> Ints:
    """Return the rows of the boxes of all images whose every box is within 0 and 1: no pixels, but shares of the
    image's sides. looked_at [B]: which boxes are checked."""
    image = batch.image_of_box
    is_small = ((batch.boxes >= 0) & (batch.boxes <= 1)).all(axis=1) & looked_at
    if not is_small.any():
        return np.zeros(0, dtype=np.int64)
    counts = np.diff(batch.box_start)
    is_relative_image = np.bincount(image[is_small], minlength=len(counts)) == counts
    return np.flatnonzero(is_relative_image[image])


def _fits_as_xywh(boxes: Floats, size: Floats) -> Bools:
    """Return which boxes [K] are within the image, or in one of unknown size, if they are [x, y, width, height]. size
    [K, 2]: the size of each box's image, NaN where it is not known."""
    with np.errstate(over="ignore"):
        leaves_image = (boxes[:, :2] + boxes[:, 2:] > size + 1).any(axis=1)  # False where the size is NaN
    return np.logical_and((boxes >= 0).all(axis=1), ~leaves_image)


def _leaves_image(boxes: Floats, size: Floats) -> Bools:
    """Return which boxes [B] are outside the image by more than MARGIN. size [B, 2]: the size of each box's image, NaN
    where it is not known."""
    with np.errstate(over="ignore"):
        overshoot = MARGIN * size
        lower_bound, upper_bound = -overshoot, size + overshoot
    return np.logical_or((boxes[:, :2] < lower_bound).any(axis=1), (boxes[:, 2:] > upper_bound).any(axis=1))


def _triplet_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Yield the triplets that count for nothing, or against the detector."""

    def cases(check: str, is_faulty: Bools, describe: Callable[[Record, list[str | None]], str]) -> Cases:
        rows = np.flatnonzero(is_faulty)
        return _cases(
            check, batch, "hois", rows, lambda record, _, row: describe(record["hois"][row], record["labels"])
        )

    if scored:
        outside = (batch.score < 0) | (batch.score > 1)
        yield cases("score-outside-range", outside, lambda hoi, _: f".score: {hoi['score']}")
    own_label = () if scored else (batch.label[batch.subject],)
    is_repeated = find_repeated(batch, *own_label, batch.object_label, batch.verb, batch.role)
    check = "duplicate-triplet" if scored else "doubled-annotation"
    yield cases(check, is_repeated, lambda hoi, labels: f": {_triplet_text(hoi, labels)} on the same two boxes")
    subjects = (SUBJECT,) if vocabulary is None else vocabulary.subjects
    can_act = np.zeros(len(batch.labels.spelled), dtype=bool)
    can_act[[batch.labels[label] for label in subjects if label in batch.labels]] = True
    is_other_subject = ~can_act[batch.label[batch.subject]]
    yield cases("subject-no-person", is_other_subject, lambda hoi, labels: f".subject: a {labels[hoi['subject']]}")
    if vocabulary is not None and not vocabulary.roles:
        is_no_class = _no_interactions(batch, vocabulary)
        yield cases("no-such-interaction", is_no_class, lambda hoi, labels: f": {_triplet_text(hoi, labels)}")


def _cases(check: str, batch: Checked, kind: str, rows: Ints, describe: Callable[[Record, int, int], str]) -> Cases:
    """Return the cases of a check that are some rows of boxes or triplets. kind: "boxes" or "hois"; describe(record,
    image, place in the image): says what the first case is."""
    is_boxes = kind == "boxes"
    image, start = (batch.image_of_box, batch.box_start) if is_boxes else (batch.image_of_hoi, batch.hoi_start)

    def first(place: str) -> str:
        image_number = int(image[rows[0]])
        index = int(rows[0] - start[image_number])
        return f"{place}: {kind}[{index}]{describe(batch.record(image_number), image_number, index)}"

    return check, image[rows], first


def _triplet_text(hoi: Record, labels: list[str | None]) -> str:
    """Return the verb and the object of a triplet as a text."""
    return hoi["verb"] if hoi["object"] is None else f"{hoi['verb']} {labels[hoi['object']]}"


def _no_interactions(batch: Checked, vocabulary: Vocabulary) -> Bools:
    """Return which triplets [T] have a verb and an object that the vocabulary knows, but not together as a class."""
    names, place = batch.classes
    return np.fromiter((_is_no_interaction(name, vocabulary) for name in names), dtype=bool)[place]


@lru_cache(maxsize=1 << 14)
def _is_no_interaction(name: TripletClass, vocabulary: Vocabulary) -> bool:
    pair = name.verb, name.label
    is_known = name.verb in vocabulary.verb_ids and name.label in vocabulary.object_ids
    return is_known and pair not in vocabulary.interaction_ids
