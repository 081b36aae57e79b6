"""The faults in image records that a metric would silently use, with the images of a batch that have each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from hoicli.records.boxes import find_inverted, find_repeated
from hoicli.records.image import UNKNOWN_LABEL, problems
from hoicli.records.kit import Bools, Floats, Ints
from hoicli.records.parsing import Record
from hoicli.validation.batches import Checked, Size, pixels
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

MARGIN = 0.1
"""Ours: detectors overshoot the image a little; a box over a tenth of its side outside is in another frame."""

Cases = tuple[str, Ints, Callable[[str], str]]
"""The cases of a check in a batch: the check's code; [M] the image of each case, ascending; and a function that takes
the file and line of the first case's record, and returns a text that describes the case."""


def faults(
    batch: Checked, vocabulary: Vocabulary | None, truth_sizes: Sequence[Size | None], *, scored: bool
) -> Iterator[Cases]:
    """Yield the cases of each check in a batch. truth_sizes [N]: the sizes of the images in the ground truth, None for
    unknown ones; scored: whether the records are predictions."""
    sizes = [record_size or truth_size for record_size, truth_size in zip(batch.sizes, truth_sizes, strict=True)]
    yield from _label_faults(batch, vocabulary, scored=scored)
    yield from _size_faults(batch, truth_sizes)
    yield from _box_faults(batch, sizes)
    yield from _triplet_faults(batch, vocabulary, scored=scored)


def _label_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Yield the check for labels that the vocabulary does not have, with its cases in the batch."""
    image = np.repeat(np.arange(len(batch.unknown)), batch.unknown)  # of each label or verb that is not known

    def describe_first(place: str) -> str:
        """Return the message of the first unknown label. place: the file and line of its record."""
        record_problems = problems(batch.record(int(image[0])), vocabulary, scored=scored)
        return str(next(problem for problem in record_problems if problem.code == UNKNOWN_LABEL).error(place))

    yield UNKNOWN_LABEL, image, describe_first


def _size_faults(batch: Checked, truth_sizes: Sequence[Size | None]) -> Iterator[Cases]:
    """Yield the check for images that have another size in the ground truth, with its cases in the batch."""
    both_sizes = zip(batch.sizes, truth_sizes, strict=True)
    images = [
        image
        for image, (record_size, truth_size) in enumerate(both_sizes)
        if record_size is not None and truth_size is not None and record_size != truth_size
    ]

    def describe_first(place: str) -> str:
        """Return the two sizes of the first such image. place: the file and line of its record."""
        record_size, truth_size = (" x ".join(map(str, sizes[images[0]] or ())) for sizes in (batch.sizes, truth_sizes))
        return f"{place}: {batch.image_ids[images[0]]!r} has {record_size}, in the ground truth {truth_size}"

    yield "another-image-size", np.array(images, dtype=np.int64), describe_first


def _box_faults(batch: Checked, sizes: Sequence[Size | None]) -> Iterator[Cases]:
    """Yield each check for boxes that are no [x1, y1, x2, y2] in pixels of the image, with its cases in the batch."""
    boxes = batch.boxes
    size = pixels(sizes)[batch.image_of_box]
    is_checked = ~batch.whole[batch.image_of_box]  # not those that stand for the whole image
    is_inverted = find_inverted(boxes) & is_checked
    is_upright = is_checked & ~is_inverted
    inverted = np.flatnonzero(is_inverted)
    is_flat = (boxes[:, :2] == boxes[:, 2:]).any(axis=1)
    rows_by_check = {
        "relative-box": _relative_boxes(batch, is_checked),
        "inverted-box": inverted,
        "looks-like-xywh": inverted[_fits_as_xywh(boxes[inverted], size[inverted])],
        "box-without-area": np.flatnonzero(is_flat & is_upright),
        "box-outside-image": np.flatnonzero(_leaves_image(boxes, size) & is_upright),
    }

    def box_text(record: Record, _: int, index: int) -> str:
        """Return the corners of a box of a record."""
        return f": {record['boxes'][index]}"

    def box_and_size_text(record: Record, image: int, index: int) -> str:
        """Return the corners of a box, and the size of its image."""
        width, height = sizes[image] or (0, 0)  # a box is only outside an image of a known size
        return f"{box_text(record, image, index)}, the image is {width} x {height}"

    for check, rows in rows_by_check.items():
        yield _cases(check, batch, "boxes", rows, box_and_size_text if check == "box-outside-image" else box_text)


def _relative_boxes(batch: Checked, is_checked: Bools) -> Ints:
    """Return the boxes of images all of whose boxes have corners within 0 and 1, which must be shares of the image's
    sides instead of pixels."""
    image = batch.image_of_box
    is_small = ((batch.boxes >= 0) & (batch.boxes <= 1)).all(axis=1) & is_checked
    if not is_small.any():
        return np.zeros(0, dtype=np.int64)
    counts = np.diff(batch.box_start)
    is_relative_image = np.bincount(image[is_small], minlength=len(counts)) == counts
    return np.flatnonzero(is_relative_image[image])


def _fits_as_xywh(boxes: Floats, size: Floats) -> Bools:
    """Return [K] whether each box, if its numbers are x, y, width and height, lies within its image, or in one of
    unknown size. size [K, 2]: the width and height of each box's image, NaN where they are not known."""
    with np.errstate(over="ignore"):
        leaves_image = (boxes[:, :2] + boxes[:, 2:] > size + 1).any(axis=1)  # False where the size is NaN
    return np.logical_and((boxes >= 0).all(axis=1), ~leaves_image)


def _leaves_image(boxes: Floats, size: Floats) -> Bools:
    """Return [B] whether each box goes beyond its image by more than MARGIN of its side. size: see `_fits_as_xywh`."""
    with np.errstate(over="ignore"):  # a size may be any number: huge ones become infinite
        overshoot = MARGIN * size
        lower_bound, upper_bound = -overshoot, size + overshoot
    return np.logical_or((boxes[:, :2] < lower_bound).any(axis=1), (boxes[:, 2:] > upper_bound).any(axis=1))


def _triplet_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Yield each check for triplets that count for nothing, or against the detector, with its cases in the batch."""

    def cases(check: str, is_faulty: Bools, describe: Callable[[Record, list[str | None]], str]) -> Cases:
        """Return the cases of a check. is_faulty [T]: which triplets fail it; describe: takes the first such triplet
        and the labels of its record's boxes, and returns a text."""
        rows = np.flatnonzero(is_faulty)
        return _cases(
            check, batch, "hois", rows, lambda record, _, row: describe(record["hois"][row], record["labels"])
        )

    if scored:
        outside = (batch.score < 0) | (batch.score > 1)
        yield cases("score-outside-range", outside, lambda hoi, _: f".score: {hoi['score']}")
    # two annotations on boxes with the same corners differ if the boxes have different labels
    subject_label = () if scored else (batch.label[batch.subject],)
    is_repeated = find_repeated(batch, *subject_label, batch.object_label, batch.verb, batch.role)
    check = "duplicate-triplet" if scored else "doubled-annotation"
    yield cases(check, is_repeated, lambda hoi, labels: f": {_triplet_text(hoi, labels)} on the same two boxes")
    subjects = (SUBJECT,) if vocabulary is None else vocabulary.subjects
    can_act = np.zeros(len(batch.labels.spelled), dtype=bool)
    can_act[[batch.labels[label] for label in subjects if label in batch.labels]] = True
    is_other_subject = ~can_act[batch.label[batch.subject]]
    yield cases("subject-no-person", is_other_subject, lambda hoi, labels: f".subject: a {labels[hoi['subject']]}")
    yield cases("subject-is-object", batch.subject == batch.object, lambda hoi, _: f": boxes[{hoi['subject']}] is both")
    if vocabulary is not None and not vocabulary.roles:  # with roles, a verb may have any object
        names, place = batch.classes
        in_vocabulary = [
            name for name in names if name.verb in vocabulary.verb_ids and name.label in vocabulary.object_ids
        ]
        no_classes = {name for name in in_vocabulary if (name.verb, name.label) not in vocabulary.interaction_ids}
        is_no_class = np.array([name in no_classes for name in names], dtype=bool)[place]
        yield cases("no-such-interaction", is_no_class, lambda hoi, labels: f": {_triplet_text(hoi, labels)}")


def _cases(check: str, batch: Checked, kind: str, rows: Ints, describe: Callable[[Record, int, int], str]) -> Cases:
    """Return the cases of a check about boxes or triplets. kind: "boxes" or "hois"; rows: the boxes or triplets that
    fail the check; describe: makes the text from a record, its number, and the index of the first such box or triplet.
    """
    is_boxes = kind == "boxes"
    image, start = (batch.image_of_box, batch.box_start) if is_boxes else (batch.image_of_hoi, batch.hoi_start)

    def describe_first(place: str) -> str:
        """Return the text about the first case. place: the file and line of its record."""
        image_number = int(image[rows[0]])
        index = int(rows[0] - start[image_number])
        return f"{place}: {kind}[{index}]{describe(batch.record(image_number), image_number, index)}"

    return check, image[rows], describe_first


def _triplet_text(hoi: Record, labels: list[str | None]) -> str:
    """Return the verb and the object of a triplet, "ride horse". labels: those of its record's boxes."""
    return hoi["verb"] if hoi["object"] is None else f"{hoi['verb']} {labels[hoi['object']]}"
