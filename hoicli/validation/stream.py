"""What makes numbers quietly wrong: one stream of records checked, or two of them side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hoicli.errors import DataError
from hoicli.evaluation.box_conventions import BoxEvidence
from hoicli.evaluation.match_stream import match_problems
from hoicli.io.streams import Line
from hoicli.records.caveats import WHOLE_IMAGE
from hoicli.records.image import UNKNOWN_LABEL, problems, result_problems
from hoicli.records.intake import ImageRegister
from hoicli.records.parsing import Problem, Record, parse
from hoicli.validation.checks import Findings
from hoicli.validation.labels import LabelEvidence, ScoredClass, TripletClass, best_of, classes_of, comparable
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

SHARE_OF_XYWH = 0.01
"""Ours: a detector's jitter inverts no box, so one in a hundred that only makes sense as x, y, w, h is a convention."""
MARGIN = 0.1
"""Ours: detectors overshoot the image a little; a box over a tenth of its side outside is in another frame."""

Size = tuple[float, float]
"""(width, height)."""


@dataclass
class Facts:
    """What a stream says of an image: its size in pixels, where known, and what is annotated where."""

    size: Size | None
    classes: frozenset[TripletClass] = frozenset()
    boxes: Sequence[Sequence[float]] = ()


class StreamValidator:
    """Checks one stream of records line by line; `finish` adds what only the whole can tell."""

    def __init__(self, vocabulary: Vocabulary | None, *, truth: Mapping[str, Facts] | None = None) -> None:
        """`vocabulary` None: open vocabulary, any label will do. `truth`: the images there are, for predictions."""
        self.findings = Findings()
        self.images: dict[str, Facts] = {}
        self.lines = 0
        self._vocabulary = vocabulary
        self._subjects = (SUBJECT,) if vocabulary is None else vocabulary.subjects
        self._truth = truth
        self._register = ImageRegister(truth)
        self._scored: bool | None = None
        self._scores: set[float] = set()
        self._triplets = 0
        self._boxes = 0
        self._xywh = 0
        self._relative = 0
        self._labels = None if vocabulary is None else LabelEvidence(vocabulary)
        self._frames = BoxEvidence()

    def add(self, line: Line) -> None:
        """One line of the stream."""
        self.lines += 1
        try:
            record = parse(line)
        except DataError as error:
            self.findings.add(error.code, str(error))
            return
        if "metric" in record:
            self._add_problems(result_problems(record), line)
        elif "predictions" in record and "gt" in record:
            if self._vocabulary is not None:
                self._add_problems(match_problems(record, self._vocabulary), line)
        else:
            self._add_image(record, line)

    def _add_problems(self, found: Iterable[Problem], line: Line) -> bool:
        """Count the problems of a line; true if there was none but unknown labels."""
        sound = True
        for problem in found:
            shown = "" if problem.code in self.findings else str(problem.error(line.place))
            self.findings.add(problem.code, shown)
            sound = sound and problem.code == UNKNOWN_LABEL
        return sound

    def _add_image(self, record: Record, line: Line) -> None:
        """The record of an image: its labels in any case, the rest if it is sound."""
        if self._scored is None and isinstance(record.get("hois"), list) and record["hois"]:
            self._scored = any(isinstance(hoi, dict) and "score" in hoi for hoi in record["hois"])
        classes = [] if self._labels is None else classes_of(record)
        if self._labels is not None:
            self._labels.add(classes)
        if self._add_problems(problems(record, self._vocabulary, scored=bool(self._scored)), line):
            facts = self._note_image(record, line, classes)
            if WHOLE_IMAGE not in (record.get("caveats") or ()):
                self._check_boxes(record["boxes"], facts.size, line)
            self._check_triplets(record, line)
            self._compare(record, classes)

    def _note_image(self, record: Record, line: Line, classes: list[ScoredClass]) -> Facts:
        """Register the image. What is known of it; its size is the ground truth's where it says none."""
        image_id = str(record["image_id"])
        try:
            self._register.add(image_id, line)
        except DataError as error:
            self.findings.add(error.code, str(error))
        sized = all(isinstance(record.get(key), int | float) for key in ("width", "height"))
        facts = self.images[image_id] = Facts((record["width"], record["height"]) if sized else None)
        if self._truth is None:
            facts.classes, facts.boxes = self._annotated(classes), record["boxes"]
            return facts
        annotated = self._truth[image_id].size if image_id in self._truth else None
        if facts.size is not None and annotated is not None and facts.size != annotated:
            own, theirs = (" x ".join(map(str, size)) for size in (facts.size, annotated))
            example = f"{line.place}: {image_id!r} has {own}, in the ground truth {theirs}"
            self.findings.add("another-image-size", example)
        return facts if facts.size is not None else Facts(annotated)

    def _annotated(self, classes: list[ScoredClass]) -> frozenset[TripletClass]:
        """The classes of an image's triplets; who fills a role of an action does the action."""
        if self._vocabulary is None:
            return frozenset()
        names = {comparable(name, self._vocabulary) for _, name, _ in classes}
        if self._vocabulary.roles:
            names |= {TripletClass(name.verb) for name in names}
        return frozenset(names)

    def _check_boxes(self, boxes: list[list[float]], size: Size | None, line: Line) -> None:
        self._boxes += len(boxes)
        if boxes and all(0 <= value <= 1 for box in boxes for value in box):
            self._relative += len(boxes)
            self.findings.add("relative-box", f"{line.place}: boxes[0]: {boxes[0]}", len(boxes))
        for index, box in enumerate(boxes):
            x1, y1, x2, y2 = box
            place = f"{line.place}: boxes[{index}]: {box}"
            if x2 < x1 or y2 < y1:
                self.findings.add("inverted-box", place)
                if _fits_as_xywh(box, size):
                    self._xywh += 1
                    self.findings.add("looks-like-xywh", place)
            elif size is not None and _leaves_image(box, size):
                self.findings.add("box-outside-image", f"{place}, the image is {size[0]} x {size[1]}")

    def _check_triplets(self, record: Record, line: Line) -> None:
        labels, boxes = record["labels"], record["boxes"]
        seen: set[tuple[object, ...]] = set()
        self._triplets += len(record["hois"])
        for index, hoi in enumerate(record["hois"]):
            subject, object_, verb = hoi["subject"], hoi["object"], hoi["verb"]
            box, label = (None, None) if object_ is None else (tuple(boxes[object_]), labels[object_])
            place = f"{line.place}: hois[{index}]"
            if self._scored:
                score = hoi["score"]
                if len(self._scores) < 2:
                    self._scores.add(score)
                if not 0 <= score <= 1:
                    self.findings.add("score-outside-range", f"{place}.score: {score}")
                key = (tuple(boxes[subject]), box, label, verb, hoi.get("role"))
                if key in seen:
                    self.findings.add("duplicate-triplet", f"{place}: {verb} {label} on the same two boxes")
                seen.add(key)
            if labels[subject] not in self._subjects:
                self.findings.add("subject-no-person", f"{place}.subject: a {labels[subject]}")
            if self._is_no_interaction(verb, label):
                self.findings.add("no-such-interaction", f"{place}: {verb} {label}")

    def _is_no_interaction(self, verb: str, label: str | None) -> bool:
        """Whether both names are known and the dataset, whose classes they make, has none of the two."""
        known = self._vocabulary
        if known is None or known.roles or label is None or verb not in known.verb_ids or label not in known.object_ids:
            return False
        return (verb, label) not in known.interaction_ids

    def _compare(self, record: Record, classes: list[ScoredClass]) -> None:
        """The best prediction of the image beside what is annotated there."""
        facts = None if self._truth is None else self._truth.get(str(record["image_id"]))
        if facts is None or not facts.classes or not classes or self._labels is None:
            return
        row, best, _ = best_of(classes)
        self._labels.compare(best, facts.classes)
        hoi = record["hois"][row]
        boxes = [record["boxes"][index] for index in (hoi["subject"], hoi["object"]) if index is not None]
        self._frames.compare(boxes, facts.boxes, facts.size)

    def finish(self, name: str) -> Findings:
        """The findings of the whole stream called `name`."""
        if self._xywh < SHARE_OF_XYWH * self._boxes:
            self.findings.remove("looks-like-xywh")
        if self._relative < self._boxes:
            self.findings.remove("relative-box")
        if self._triplets > 1 and len(self._scores) == 1:
            self.findings.add("all-scores-equal", f"{name}: every score is {next(iter(self._scores))}", self._triplets)
        missing = [image_id for image_id in self._truth or () if image_id not in self.images]
        if missing:
            self.findings.add("image-without-predictions", f"{name}: no line for {missing[0]!r}", len(missing))
        doubt = None if self._labels is None else self._labels.finding(name)
        if doubt is not None:
            self.findings.add(doubt.check, doubt.example, doubt.count, doubt.fix)
        off = self._frames.finding()
        if off is not None:
            self.findings.add("boxes-off-ground-truth", f"{name}: {off[0]}", off[1])
        return self.findings

    @property
    def verdict(self) -> str:
        """Whose labels the stream most likely has, and in which order; "" where it has none, or any will do."""
        return "" if self._labels is None else self._labels.verdict()


def _fits_as_xywh(box: list[float], size: Size | None) -> bool:
    """Whether [x, y, w, h] would be a box of the image (of any image, where the size is not known)."""
    x, y, width, height = box
    if min(box) < 0:
        return False
    return size is None or (x + width <= size[0] + 1 and y + height <= size[1] + 1)


def _leaves_image(box: list[float], size: Size) -> bool:
    x1, y1, x2, y2 = box
    spare_x, spare_y = MARGIN * size[0], MARGIN * size[1]
    return x1 < -spare_x or y1 < -spare_y or x2 > size[0] + spare_x or y2 > size[1] + spare_y


def validate_images(
    lines: Iterable[Line], vocabulary: Vocabulary | None, name: str, *, truth: Mapping[str, Facts] | None = None
) -> StreamValidator:
    """A stream of image records checked to its end."""
    validator = StreamValidator(vocabulary, truth=truth)
    for line in lines:
        validator.add(line)
    validator.finish(name)
    return validator
