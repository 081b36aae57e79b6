"""One run of lines checked, batch by batch: a fast pass over columns, and a careful one where that finds a bad line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np
import orjson

from hoicli.errors import DataError
from hoicli.evaluation.match_stream import match_problems
from hoicli.io.streams import Line
from hoicli.records.columns import attempt
from hoicli.records.image import UNKNOWN_LABEL, problems, result_problems
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE, ImageRegister
from hoicli.records.kit import Growing, Ints
from hoicli.records.parsing import Problem, Record, is_number, parse
from hoicli.records.triplets import Numbered
from hoicli.validation.batches import Checked, Size, checked_images
from hoicli.validation.checks import Findings
from hoicli.validation.facts import Annotations, Facts
from hoicli.validation.faults import Cases, box_faults, label_faults, triplet_faults
from hoicli.validation.labels import ClassCounts, LabelEvidence, classes_of, counted_as
from hoicli.vocabulary.labels import Vocabulary

NUMBERS = 1 << 40
"""More than the lines of a file."""


@dataclass
class Checking:
    """What is found in a stream, or in a part of it.

    scored: whether it is of predictions, None before its first triplet; score: the first of the scores; varied: whether
    there are others. images: their numbers, unless the ground truth gives them; seen: by number, the place of the first
    record, -1 without one. best: the boxes of best predictions, and the images whose annotations they are compared
    with. unsure: a record before the first triplet was checked by itself, so that what comes before this part matters.
    """

    seen: Ints
    images: Numbered[str] = field(default_factory=Numbered)
    findings: Findings = field(default_factory=Findings)
    lines: int = 0
    scored: bool | None = None
    score: float | None = None
    varied: bool = False
    triplets: int = 0
    boxes: int = 0
    classes: ClassCounts = field(default_factory=ClassCounts)
    annotations: Annotations = field(default_factory=Annotations)
    best: Growing = field(default_factory=lambda: Growing(image=np.int64, subject=np.float64, object=np.float64))
    unsure: bool = False

    def merge(self, other: Checking) -> None:
        """Add what is found in the part that follows."""
        self.annotations.merge(other.annotations, len(self.images))
        if self.images or other.images:
            self.images.of(list(other.images))
        else:
            self.seen = np.maximum(self.seen, other.seen)
        self.findings.merge(other.findings)
        self.lines += other.lines
        self.scored = other.scored if self.scored is None else self.scored
        self.varied |= other.varied or (None not in (self.score, other.score) and self.score != other.score)
        self.score = other.score if self.score is None else self.score
        self.triplets += other.triplets
        self.boxes += other.boxes
        self.classes.merge(other.classes)
        self.best.add(**{name: other.best[name] for name in other.best.names})


class Checker:
    """Checks lines; `found` is what is found."""

    def __init__(
        self,
        vocabulary: Vocabulary | None,
        truth: Facts | None,
        *,
        annotations: bool,
        before: Callable[[], int] = lambda: 0,
    ) -> None:
        """annotations: gather them. before: how many lines of its file come before this part."""
        self._vocabulary, self._truth, self._annotations, self._before = vocabulary, truth, annotations, before
        self.found = Checking(np.full(0 if truth is None else len(truth.ids), -1, dtype=np.int64))
        self._labels = None if vocabulary is None else LabelEvidence(vocabulary, self.found.classes)
        self._files: Numbered[str] = Numbered()

    def add(self, lines: list[Line]) -> None:
        """The lines that follow."""
        self.found.lines += len(lines)
        scored = _scored(lines) if self.found.scored is None else self.found.scored
        build = partial(checked_images, vocabulary=self._vocabulary, scored=bool(scored), sound=False)
        batch = attempt(build, lines)
        if batch is None:
            self._add_carefully(lines)
        else:
            self.found.scored = scored
            self._add_good(batch)

    def _add_carefully(self, lines: list[Line]) -> None:
        """Lines of which one at least is bad, or no record of an image."""
        good: list[Line] = []
        for line in lines:
            try:
                record = parse(self._placed(line))
            except DataError as error:
                self.found.findings.add(error.code, str(error))
                continue
            found = self._problems(record)
            if found is None:
                good.append(line if self.found.scored else _without_other_scores(line, record))
                continue
            self._add_good_lines(good)
            good = []
            self._add_problems(found, line)
            if self._labels is not None and not _is_other(record):
                self._labels.add(classes_of(record))
        self._add_good_lines(good)

    def _problems(self, record: Record) -> Iterable[Problem] | None:
        """What is wrong with a record; None for that of an image with nothing but unknown labels."""
        if "metric" in record:
            return result_problems(record)
        if _is_other(record):
            return () if self._vocabulary is None else match_problems(record, self._vocabulary)
        if self.found.scored is None:
            self.found.scored = _says_scores(record)
            self.found.unsure |= self.found.scored is None
        found = problems(record, self._vocabulary, scored=bool(self.found.scored))
        unknown, count = None, 0  # the first of them stands for all: there may be millions
        for problem in found:
            if problem.code != UNKNOWN_LABEL:
                return chain(repeat(unknown or problem, count), [problem], found)
            unknown, count = unknown or problem, count + 1
        return None

    def _add_problems(self, found: Iterable[Problem], line: Line) -> None:
        findings = self.found.findings
        for problem in found:
            findings.add(problem.code, "" if problem.code in findings else str(problem.error(self._placed(line).place)))

    def _add_good_lines(self, lines: list[Line]) -> None:
        if lines:
            self._add_good(checked_images(lines, self._vocabulary, scored=bool(self.found.scored), sound=True))

    def _add_good(self, batch: Checked) -> None:
        """Records in which nothing is wrong but unknown labels."""
        found, truth, scored = self.found, self._truth, bool(self.found.scored)
        image = self._register(batch)
        theirs = [None if truth is None else truth.size_of(each) for each in image.tolist()]
        self._add_cases(batch, label_faults(batch, self._vocabulary, scored=scored))
        self._add_cases(batch, size_faults(batch, theirs))
        sizes = [own or other for own, other in zip(batch.sizes, theirs, strict=True)]
        self._add_cases(batch, box_faults(batch, sizes))
        self._add_cases(batch, triplet_faults(batch, self._vocabulary, scored=scored))
        found.boxes += int(np.count_nonzero(~batch.whole[batch.image_of_box]))
        found.triplets += len(batch.score)
        if scored and len(batch.score):
            if found.score is None:
                found.score = batch.record(int(batch.image_of_hoi[0]))["hois"][0]["score"]
            found.varied = found.varied or bool((batch.score != found.score).any())
        if self._labels is not None:
            self._labels.add_all(batch)
            if truth is not None:
                self._compare(batch, image, truth)
        if self._annotations:
            classes = [] if self._vocabulary is None else counted_as(batch.classes[0], self._vocabulary)
            found.annotations.add(batch, image, classes)

    def _compare(self, batch: Checked, image: Ints, truth: Facts) -> None:
        """The best prediction of each image beside what is annotated there."""
        assert self._labels is not None
        best = self._labels.compare(batch, image, truth)
        boxes = np.append(batch.boxes, np.full((1, 4), np.nan), axis=0)  # the last is that of no object
        self.found.best.add(
            image=image[batch.image_of_hoi[best]],
            subject=boxes[batch.subject[best]].ravel(),
            object=boxes[batch.object[best]].ravel(),
        )

    def _register(self, batch: Checked) -> Ints:
        """The number of each image, -1 for one that the ground truth does not have; images that occur twice, and
        unknown ones, are findings."""
        found, truth = self.found, self._truth
        if truth is None:
            image = found.images.of(batch.image_ids)
            missing = len(found.images) - len(found.seen)
            if missing > 0:
                found.seen = np.append(found.seen, np.full(max(missing, len(found.seen)), -1))
        else:
            image = np.array([truth.ids.get(image_id, -1) for image_id in batch.image_ids], dtype=np.int64)
        file = self._files.of([line.file for line in batch.lines])
        place = file * NUMBERS + np.array([line.number for line in batch.lines], dtype=np.int64)
        known = image >= 0
        fresh = np.flatnonzero(known)[found.seen[image[known]] < 0]
        found.seen[image[fresh[::-1]]] = place[fresh[::-1]]  # where an image is here twice, the first is written last
        again = known.copy()
        again[known] = found.seen[image[known]] != place[known]
        for check, cases in ((UNKNOWN_IMAGE, ~known), (DUPLICATE_IMAGE, again)):
            rows = np.flatnonzero(cases)
            self._add_cases(batch, [Cases(check, rows, partial(self._said_of_image, batch, rows, image))])
        return image

    def _said_of_image(self, batch: Checked, rows: Ints, image: Ints, _: str) -> str:
        """The message for the first image that is unknown or occurs again."""
        row = int(rows[0])
        register = ImageRegister(None if self._truth is None else self._truth.ids, dumps=bool(self.found.scored))
        if image[row] >= 0:
            file, number = divmod(int(self.found.seen[image[row]]), NUMBERS)
            register.add(batch.image_ids[row], self._placed(Line(list(self._files)[file], number, b"")))
        try:
            register.add(batch.image_ids[row], self._placed(batch.lines[row]))
        except DataError as error:
            return str(error)
        raise AssertionError("an image was refused, and then it was not")

    def _add_cases(self, batch: Checked, found: Iterable[Cases]) -> None:
        findings = self.found.findings
        for cases in found:
            if len(cases.image):
                line = batch.lines[int(cases.image[0])]
                example = "" if cases.check in findings else cases.first(self._placed(line).place)
                findings.add(cases.check, example, len(cases.image))

    def _placed(self, line: Line) -> Line:
        """The line with its number in the file."""
        before = self._before()
        return replace(line, number=line.number + before) if before and line.number else line


def size_faults(batch: Checked, theirs: list[Size | None]) -> Iterator[Cases]:
    """Images of another size than the ground truth's: theirs [N], None where not known."""
    both = zip(batch.sizes, theirs, strict=True)
    rows = [row for row, (own, other) in enumerate(both) if own is not None and other is not None and own != other]

    def first(place: str) -> str:
        own, other = (" x ".join(map(str, of[rows[0]] or ())) for of in (batch.sizes, theirs))
        return f"{place}: {batch.image_ids[rows[0]]!r} has {own}, in the ground truth {other}"

    yield Cases("another-image-size", np.array(rows, dtype=np.int64), first)


def _scored(lines: list[Line]) -> bool | None:
    """Whether lines that are all records of images are predictions, None without any triplet."""
    for line in lines:
        record = attempt(lambda lines: orjson.loads(lines[0].data), [line])
        said = _says_scores(record) if type(record) is dict else None
        if said is not None:
            return said
    return None


def _says_scores(record: Record) -> bool | None:
    """Whether a record is of predictions; None if it has no triplets."""
    hois = record.get("hois")
    return any(isinstance(hoi, dict) and "score" in hoi for hoi in hois) if isinstance(hois, list) and hois else None


def _is_other(record: Record) -> bool:
    """Whether a record is a result row or a match record."""
    return "metric" in record or ("predictions" in record and "gt" in record)


def _without_other_scores(line: Line, record: Record) -> Line:
    """The line of a record of a stream without scores, where a score may be anything: without those that are none."""
    hois: list[dict[str, Any]] = record["hois"]
    if all(hoi.get("score") is None or is_number(hoi["score"]) for hoi in hois):
        return line
    hois = [hoi if is_number(hoi.get("score")) else {**hoi, "score": None} for hoi in hois]
    return replace(line, data=orjson.dumps({**record, "hois": hois}))
