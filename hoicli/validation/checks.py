"""What makes numbers quietly wrong: every check `hoicli validate` knows, over one stream or a pair of them.

Most evaluation accidents are files that were read "successfully": another box convention, another label order, another
set of images. Each check counts its cases and keeps the first as an example. An error is something no metric can use;
a warning is something a metric would use without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hoicli.errors import MALFORMED, DataError
from hoicli.evaluation.box_conventions import BoxEvidence
from hoicli.evaluation.match_stream import UNKNOWN_PROTOCOL, match_problems
from hoicli.io.streams import Line
from hoicli.records.image import UNKNOWN_LABEL, problems, result_problems
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE, ImageRegister
from hoicli.records.parsing import Problem, Record, parse
from hoicli.validation.labels import Class, LabelEvidence, best_of, classes_of, comparable
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

SHARE_OF_XYWH = 0.01
"""Ours: a detector's jitter inverts no box, so one in a hundred that only makes sense as x, y, w, h is a convention."""
MARGIN = 0.1
"""Ours: detectors overshoot the image a little; a box over a tenth of its side outside is in another frame."""


@dataclass(frozen=True)
class Check:
    """A row of the table: what is counted, how bad it is, and what to do about it."""

    severity: str
    mend: str


CHECKS = {  # by code: a record's problems have theirs from where they are found
    MALFORMED: Check("error", "mend the field named, or drop such lines with --on-error skip"),
    UNKNOWN_LABEL: Check(
        "error", "use the vocabulary's spelling (hoicli vocab); a wrong object order looks like this too"
    ),
    UNKNOWN_PROTOCOL: Check("error", "match the predictions again, with this version"),
    DUPLICATE_IMAGE: Check("error", "keep one line an image"),
    "another-dataset": Check("error", "name the benchmark they belong to"),
    UNKNOWN_IMAGE: Check("error", "give the ground truth of the same set and split"),
    "image-without-predictions": Check(
        "warning", "its triplets count as missed; normal for images without annotations"
    ),
    "inverted-box": Check("warning", "x2 < x1 or y2 < y1: it overlaps nothing"),
    "looks-like-xywh": Check("warning", "convert to [x1, y1, x2, y2]: x2 = x + w"),
    "box-outside-image": Check("warning", "another scale or convention? records hold pixels of the original image"),
    "relative-box": Check("warning", "all numbers are at most 1: multiply by the image's width and height"),
    "score-outside-range": Check("warning", "fine for ranking; a sum or a scaled score?"),
    "all-scores-equal": Check("warning", "nothing ranks the predictions: mAP then depends on tie-breaking"),
    "duplicate-triplet": Check("warning", "the second of two equal predictions is a false positive; --nms removes it"),
    "no-such-interaction": Check("warning", "the vocabulary has no class of this verb and object: never counted"),
    "subject-no-person": Check("warning", "qpic and diag ignore it, the other protocols do not look"),
    "another-object-order": Check("warning", "convert again with the order meant: evaluated so, they score near zero"),
    "another-verb-numbering": Check(
        "warning", "convert again with the numbers meant: evaluated so, they score near zero"
    ),
    "classes-not-annotated": Check("warning", "mAP will be near zero: other labels, or another set of images?"),
    "another-image-size": Check("warning", "boxes must be in pixels of the ground truth's images: scale them"),
    "boxes-off-ground-truth": Check("warning", "mAP will be near zero: convert the boxes to what they should be"),
}


@dataclass
class Finding:
    """How often a check failed, the first place where it did, and what to do, where that is not what the check says."""

    check: str
    count: int
    example: str
    mend: str = ""

    def row(self) -> Record:
        """The finding as an output row."""
        check = CHECKS[self.check]
        return {
            "check": self.check,
            "severity": check.severity,
            "count": self.count,
            "example": self.example,
            "mend": self.mend or check.mend,
        }


class Findings:
    """Findings so far, in the order of CHECKS."""

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}

    def add(self, check: str, example: str, count: int = 1, mend: str = "") -> None:
        """Count `count` cases, the first described by `example`."""
        finding = self._found.setdefault(check, Finding(check, 0, example, mend))
        finding.count += count

    def remove(self, check: str) -> None:
        """Forget a check that turned out to mean nothing."""
        self._found.pop(check, None)

    def __iter__(self) -> Iterator[Finding]:
        return (self._found[check] for check in CHECKS if check in self._found)

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(CHECKS[check].severity == "error" for check in self._found)


@dataclass
class Facts:
    """What a stream says of an image: its pixels, where known, and what is annotated where."""

    width: float | None
    height: float | None
    classes: frozenset[Class] = frozenset()
    boxes: Sequence[Sequence[float]] = ()

    @property
    def size(self) -> tuple[float, float] | None:
        """(width, height)."""
        return None if not self.width or not self.height else (self.width, self.height)


class StreamValidator:
    """Checks one stream of image records line by line; `finish` adds what only the whole can tell."""

    def __init__(self, vocabulary: Vocabulary | None, *, truth: Mapping[str, Facts] | None = None) -> None:
        """`vocabulary` None: open vocabulary, any label will do. `truth`: the images there are, for predictions."""
        self.findings = Findings()
        self.images: dict[str, Facts] = {}
        self.lines = 0
        self._vocabulary = vocabulary
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
            return
        if "predictions" in record and "gt" in record:
            if self._vocabulary is not None:
                self._add_problems(match_problems(record, self._vocabulary), line)
            return
        if self._scored is None and isinstance(record.get("hois"), list) and record["hois"]:
            self._scored = any(isinstance(hoi, dict) and "score" in hoi for hoi in record["hois"])
        classes = [] if self._labels is None else classes_of(record)
        if self._labels is not None:
            self._labels.add(classes)
        if self._is_sound(record, line):
            self._note_image(record, line, classes)
            self._look_at_boxes(record, line)
            self._look_at_triplets(record, line)
            self._compare(record, classes)

    def _is_sound(self, record: Record, line: Line) -> bool:
        """Whether the record can be looked at further; its problems become findings."""
        return self._add_problems(problems(record, self._vocabulary, scored=bool(self._scored)), line)

    def _add_problems(self, found: Iterable[Problem], line: Line) -> bool:
        """Count the problems of a line; true if there was none but unknown labels."""
        sound = True
        for problem in found:
            self.findings.add(problem.code, str(problem.error(line.place)))
            sound = sound and problem.code == UNKNOWN_LABEL
        return sound

    def _annotated(self, classes: list[tuple[int, Class, float]]) -> frozenset[Class]:
        """The classes of an image's triplets; who fills a role of an action does the action."""
        if self._vocabulary is None:
            return frozenset()
        names = {comparable(name, self._vocabulary) for _, name, _ in classes}
        return frozenset(names | ({(verb, "", None) for verb, _, _ in names} if self._vocabulary.roles else set()))

    def _compare(self, record: Record, classes: list[tuple[int, Class, float]]) -> None:
        """The best prediction of the image beside what is annotated there."""
        facts = None if self._truth is None else self._truth.get(str(record["image_id"]))
        best = best_of(classes)
        if facts is None or best is None or not facts.classes or self._labels is None:
            return
        self._labels.compare(best.name, facts.classes)
        hoi = record["hois"][best.row]
        boxes = [record["boxes"][index] for index in (hoi["subject"], hoi["object"]) if index is not None]
        self._frames.compare(boxes, facts.boxes, facts.size)

    def _note_image(self, record: Record, line: Line, classes: list[tuple[int, Class, float]]) -> None:
        image_id = str(record["image_id"])
        try:
            self._register.add(image_id, line)
        except DataError as error:
            self.findings.add(error.code, str(error))
        width, height = (record.get(key) for key in ("width", "height"))
        known = isinstance(width, int | float) and isinstance(height, int | float)
        facts = Facts(width, height) if known else Facts(None, None)
        self.images[image_id] = facts
        if self._truth is None:
            facts.classes = self._annotated(classes)
            facts.boxes = record["boxes"]
        elif image_id in self._truth:
            annotated = self._truth[image_id].size
            if facts.size is not None and annotated is not None and facts.size != annotated:
                sizes = " x ".join(map(str, facts.size)), " x ".join(map(str, annotated))
                example = f"{line.place}: {image_id!r} has {sizes[0]}, in the ground truth {sizes[1]}"
                self.findings.add("another-image-size", example)

    def _size(self, image_id: str) -> Facts:
        own = self.images[image_id]
        if own.width is None and self._truth is not None:
            return self._truth.get(image_id, own)
        return own

    def _look_at_boxes(self, record: Record, line: Line) -> None:
        size = self._size(str(record["image_id"]))
        boxes = record["boxes"]
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
            elif _leaves_image(box, size):
                self.findings.add("box-outside-image", f"{place}, the image is {size.width} x {size.height}")

    def _look_at_triplets(self, record: Record, line: Line) -> None:
        labels, boxes = record["labels"], record["boxes"]
        seen: set[tuple[object, ...]] = set()
        self._triplets += len(record["hois"])
        for index, hoi in enumerate(record["hois"]):
            subject, object_, verb = hoi["subject"], hoi["object"], hoi["verb"]
            thing, label = (None, None) if object_ is None else (tuple(boxes[object_]), labels[object_])
            key = (tuple(boxes[subject]), thing, label, verb, hoi.get("role"))
            place = f"{line.place}: hois[{index}]"
            if self._scored:
                score = hoi["score"]
                if len(self._scores) < 2:
                    self._scores.add(score)
                if not 0 <= score <= 1:
                    self.findings.add("score-outside-range", f"{place}.score: {score}")
                if key in seen:
                    self.findings.add("duplicate-triplet", f"{place}: {verb} {label} on the same two boxes")
                seen.add(key)
            if labels[subject] != SUBJECT:
                self.findings.add("subject-no-person", f"{place}.subject: a {labels[subject]}")
            if self._is_no_interaction(verb, label):
                self.findings.add("no-such-interaction", f"{place}: {verb} {label}")

    def _is_no_interaction(self, verb: str, label: str | None) -> bool:
        """Whether both names are known and the dataset, whose classes they make, has none of the two."""
        known = self._vocabulary
        if known is None or known.roles or label is None or verb not in known.verb_ids or label not in known.object_ids:
            return False
        return (verb, label) not in known.interaction_ids

    def finish(self, name: str) -> Findings:
        """The findings of the whole stream called `name`."""
        if self._xywh < SHARE_OF_XYWH * self._boxes:
            self.findings.remove("looks-like-xywh")
        if self._relative < self._boxes:
            self.findings.remove("relative-box")
        if self._triplets > 1 and len(self._scores) == 1:
            self.findings.add("all-scores-equal", f"{name}: every score is {next(iter(self._scores))}", self._triplets)
        if self._truth is not None:
            missing = [image_id for image_id in self._truth if image_id not in self.images]
            if missing:
                self.findings.add("image-without-predictions", f"{name}: no line for {missing[0]!r}", len(missing))
        if self._labels is not None:
            for doubt in self._labels.findings(name):
                self.findings.add(doubt.check, doubt.example, doubt.count, doubt.mend)
        off = self._frames.finding()
        if off is not None:
            self.findings.add("boxes-off-ground-truth", f"{name}: {off[0]}", off[1])
        return self.findings

    @property
    def verdict(self) -> str:
        """Whose labels the stream most likely has, and in which order; "" where it has none, or any will do."""
        return "" if self._labels is None else self._labels.verdict()


def _fits_as_xywh(box: list[float], size: Facts) -> bool:
    """Whether [x, y, w, h] would be a box of the image (of any image, where the size is not known)."""
    x, y, width, height = box
    if min(x, y, width, height) < 0:
        return False
    return size.width is None or size.height is None or (x + width <= size.width + 1 and y + height <= size.height + 1)


def _leaves_image(box: list[float], size: Facts) -> bool:
    if size.width is None or size.height is None:
        return False
    x1, y1, x2, y2 = box
    spare_x, spare_y = MARGIN * size.width, MARGIN * size.height
    return x1 < -spare_x or y1 < -spare_y or x2 > size.width + spare_x or y2 > size.height + spare_y


def validate_images(
    lines: Iterable[Line], vocabulary: Vocabulary | None, name: str, *, truth: Mapping[str, Facts] | None = None
) -> StreamValidator:
    """A stream of image records checked to its end."""
    validator = StreamValidator(vocabulary, truth=truth)
    for line in lines:
        validator.add(line)
    validator.finish(name)
    return validator
