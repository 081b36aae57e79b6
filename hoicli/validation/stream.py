"""Every check of `hoicli validate` for what makes numbers quietly wrong, and the checking of one stream of records, or
of two side by side.

Most evaluation accidents are files that were read "successfully": another box convention, another label order, another
set of images. Each check counts its cases and keeps the first as an example. An error is something no metric can use;
a warning is something a metric would use without a word. A batch of lines is checked as columns; where one of its lines
is bad, they are checked one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import orjson

from hoicli.errors import MALFORMED, DataError, arg
from hoicli.evaluation.evaluating import gather_in_parallel
from hoicli.evaluation.fit import NEXT_TO_NOTHING, BoxEvidence
from hoicli.evaluation.match_stream import UNKNOWN_PROTOCOL, match_problems
from hoicli.io.memory import no_garbage_collection
from hoicli.io.streams import Line, Stream
from hoicli.records.boxes import MOST_INVERTED
from hoicli.records.columns import BATCH, attempt
from hoicli.records.image import UNKNOWN_LABEL, problems, problems_besides
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE, ErrorPolicy, ImageRegister
from hoicli.records.kit import Growing, starts_of
from hoicli.records.parsing import Problem, Record, is_number, parse
from hoicli.records.result_rows import result_problems
from hoicli.validation.batch_faults import faults
from hoicli.validation.batches import Checked, Facts, checked_images, pixels
from hoicli.validation.label_evidence import DISTINCT, ClassCounts, LabelEvidence
from hoicli.vocabulary.labels import Vocabulary

ERRORS = {  # a record's problems have their codes from where they are found
    MALFORMED: f"mend what is named; other commands leave such lines out with {arg('on_error', 'skip')}",
    UNKNOWN_LABEL: "use the vocabulary's spelling (hoicli vocab); a wrong object order looks like this too",
    UNKNOWN_PROTOCOL: "match the predictions again, with this version",
    "not-whole": "the command that wrote the stream failed: mend that, and make it again",
    DUPLICATE_IMAGE: "keep one line an image; check two models' dumps one by one",
    "another-dataset": "name the benchmark they belong to",
    UNKNOWN_IMAGE: "give the ground truth of the same set and split",
    "swapped-files": "give the ground truth with --gt, and the predictions without",
    "no-scores": "ground truth? give it with --gt; answers of a model: hoicli convert --scores",
}
UNREAD = "bad-optional-field"
WARNINGS = {
    UNREAD: "eval and match do not read it; convert, pairstats and others that do refuse the line",
    "image-without-predictions": "its triplets count as missed; normal for images without annotations",
    "inverted-box": "x2 < x1 or y2 < y1: it overlaps nothing; no metric takes more than one in a hundred",
    "looks-like-xywh": "convert to [x1, y1, x2, y2]: hoicli convert --box-form xywh",
    "box-without-area": "it overlaps nothing: write the real box; where no object fills a role, object is null",
    "box-outside-image": "another scale or convention? records hold pixels of the original image",
    "relative-box": "all numbers are at most 1: multiply by the image's width and height",
    "score-outside-range": "fine for ranking; a sum or a scaled score?",
    "all-scores-equal": "nothing ranks the predictions: mAP then depends on tie-breaking",
    "duplicate-triplet": f"the second of two equal predictions is a false positive; {arg('nms')} removes it",
    "doubled-annotation": "list each once: both count, and most protocols find only one",
    "no-such-interaction": "the vocabulary has no class of this verb and object: never counted",
    "subject-no-person": "qpic and diag ignore it; of most: subject and object swapped, or labels numbered otherwise?",
    "another-object-order": "convert again with the right order: as they are, they score near zero",
    "another-verb-numbering": "convert again with the right numbers, or write names: as they are, they score near zero",
    "classes-not-annotated": "mAP will be near zero: other labels, or another set of images?",
    "another-image-size": "boxes must be in pixels of the ground truth's images: scale them",
    "boxes-off-ground-truth": "they count as false: convert the boxes to what they should be",
}
CHECKS = ERRORS | WARNINGS
"""What to do about each fault, by the code of its check."""


@dataclass
class Finding:
    """A check that failed: how often, an example (the first place), and what to do, if not what CHECKS says."""

    check: str
    count: int
    example: str
    fix: str = ""
    refused: bool = False
    """Whether there are so many that what is a warning otherwise is an error."""

    @property
    def severity(self) -> str:
        """The severity that the row gives."""
        return "error" if self.refused or self.check in ERRORS else "warning"

    def row(self) -> Record:
        """Return the finding as an output row."""
        return {
            "check": self.check,
            "severity": self.severity,
            "count": self.count,
            "example": self.example,
            "fix": self.fix or CHECKS[self.check],
        }


class Findings:
    """The findings so far, in the order of CHECKS."""

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}

    def add(self, check: str, example: str | Callable[[], str], count: int = 1, fix: str = "") -> None:
        """Add `count` cases of a check. example: a text about the first case, or a function that makes one, which is
        not called for later cases."""
        if check not in self._found:
            self._found[check] = Finding(check, 0, example if isinstance(example, str) else example(), fix)
        self._found[check].count += count

    def merge(self, other: Findings) -> None:
        """Add the findings of the part of the stream that follows."""
        for finding in other:
            self.add(finding.check, finding.example, finding.count, finding.fix)

    def count(self, check: str) -> int:
        """Return how often a check failed so far."""
        return self._found[check].count if check in self._found else 0

    def refuse(self, check: str) -> None:
        """Make a check that failed an error instead of a warning."""
        self._found[check].refused = True

    def remove(self, check: str) -> None:
        """Forget a check that turned out to mean nothing."""
        self._found.pop(check, None)

    def __iter__(self) -> Iterator[Finding]:
        return (self._found[check] for check in CHECKS if check in self._found)


def validate_images(
    stream: Stream,
    vocabulary: Vocabulary | None,
    *,
    truth: Facts | None = None,
    facts: bool = False,
) -> Checking:
    """Check a stream of records to its end, a large plain file in several processes, and return what is found.
    vocabulary: the known labels, None to allow any. truth: for predictions, the images of the ground truth. facts: keep
    what the stream says of its images, as ground truth for another stream."""

    def check(part: Stream, _: ErrorPolicy) -> Checking:
        checker, following = Checker(vocabulary, truth, facts=facts), iter(_number_lines(part))
        with no_garbage_collection():
            while batch := list(islice(following, BATCH)):
                checker.add(batch)
        return checker.found

    parts = gather_in_parallel(check, stream, ErrorPolicy(), lambda part: part.images, independent=_independent)
    checking, *others = parts
    for other in others:
        checking.merge(other)
    return _conclude(checking, vocabulary, stream.name, truth, facts=facts)


def _number_lines(part: Stream) -> Iterable[Line]:
    """Return the lines of a share of a file with their line numbers in the whole file."""
    before = part.lines_before()
    return (replace(line, number=line.number + before) for line in part) if before else part


@dataclass
class Checking:
    """What is found in a stream, or in a part of it.

    verdict: whose labels the stream most likely has, and in which order; "" if it has none, if any will do, and for a
    part. facts: what it says of its images, empty unless asked for. scored: whether it is of predictions, None before
    its first triplet; score: the first score; varied: whether another score differs from it. images: the ids that came
    (and are in the ground truth, if there is one); named: the ids of match records and of bad records; results: whether
    there are result rows. compared: the best prediction of each image with annotated classes, as the image's row in the
    ground truth and the two boxes. unsure: a bad record came before the first triplet, so that this part cannot be
    checked without the part before it."""

    findings: Findings = field(default_factory=Findings)
    lines: int = 0
    scored: bool | None = None
    score: float | None = None
    varied: bool = False
    triplets: int = 0
    boxes: int = 0
    classes: ClassCounts = field(default_factory=ClassCounts)
    images: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    results: bool = False
    facts: Facts = field(default_factory=Facts)
    compared: Growing = field(default_factory=lambda: Growing(row=np.int64, subject=np.float64, object=np.float64))
    unsure: bool = False
    verdict: str = ""

    def merge(self, other: Checking) -> None:
        """Add what is found in the part that follows."""
        self.scored = other.scored if self.scored is None else self.scored
        self.varied |= other.varied or (None not in (self.score, other.score) and self.score != other.score)
        self.score = other.score if self.score is None else self.score
        self.lines += other.lines
        self.triplets += other.triplets
        self.boxes += other.boxes
        self.images += other.images
        self.named |= other.named
        self.results |= other.results
        for name in ("findings", "classes", "facts", "compared"):
            getattr(self, name).merge(getattr(other, name))


def _independent(parts: Sequence[Checking]) -> bool:
    """Return whether the parts of a stream, checked apart, give what the whole would give: all are predictions or none
    is, and none has more classes than are counted."""
    return (
        len({part.scored for part in parts} - {None}) <= 1
        and not any(part.unsure for part in parts[1:])
        and all(len(part.classes.weights) < DISTINCT for part in parts)
    )


class Checker:
    """Checks the lines of a stream, batch by batch, and keeps what it finds in `found`."""

    def __init__(self, vocabulary: Vocabulary | None, truth: Facts | None, *, facts: bool) -> None:
        """facts: gather what the stream says of its images."""
        self._vocabulary, self._truth, self._facts = vocabulary, truth, facts
        self.found = Checking()
        self._labels = None if vocabulary is None else LabelEvidence(vocabulary, self.found.classes, truth)
        self._register = ImageRegister(None if truth is None else truth.rows)

    def add(self, lines: list[Line]) -> None:
        """Check the lines that follow."""
        self.found.lines += len(lines)
        scored = _are_predictions(lines) if self.found.scored is None else self.found.scored
        build = partial(checked_images, vocabulary=self._vocabulary, scored=bool(scored), sound=False)
        batch = attempt(build, lines)
        if batch is None:
            self._add_carefully(lines)
        else:
            self.found.scored = scored
            self._add_good(batch)

    def _add_carefully(self, lines: list[Line]) -> None:
        """Check lines one by one, since at least one of them is bad, or is no record of an image."""
        good: list[Line] = []
        for line in lines:
            try:
                record = parse(line)
            except DataError as error:
                self.found.findings.add(error.code, str(error))
                continue
            check, of_image = self._check_of(record)
            for problem in problems_besides(record) if of_image else ():
                self.found.findings.add(UNREAD, str(problem.error(line.place)))
            if of_image and all(problem.code == UNKNOWN_LABEL for problem in check()):
                good.append(line if self.found.scored else _without_other_scores(line, record))
                continue
            self._add_good_lines(good)
            good = []
            self.found.named |= {str(record["image_id"])} if "image_id" in record else set()
            for problem in check():
                self.found.findings.add(problem.code, str(problem.error(line.place)))
        self._add_good_lines(good)

    def _check_of(self, record: Record) -> tuple[Callable[[], Iterable[Problem]], bool]:
        """Return (a function that finds the problems of a record, whether it is the record of an image)."""
        if "metric" in record:
            self.found.results = True
            return partial(result_problems, record), False
        if "predictions" in record and "gt" in record:
            return tuple if self._vocabulary is None else partial(match_problems, record, self._vocabulary), False
        if self.found.scored is None:
            self.found.scored = _says_scores(record)
            self.found.unsure |= self.found.scored is None
        return partial(problems, record, self._vocabulary, scored=bool(self.found.scored), besides=()), True

    def _add_good_lines(self, lines: list[Line]) -> None:
        if lines:
            self._add_good(checked_images(lines, self._vocabulary, scored=bool(self.found.scored), sound=True))

    def _add_good(self, batch: Checked) -> None:
        """Check records in which nothing is wrong but unknown labels."""
        checking, scored = self.found, bool(self.found.scored)
        self._add_images(batch)
        rows = [None if self._truth is None else self._truth.rows.get(image_id) for image_id in batch.image_ids]
        theirs = [None if self._truth is None or row is None else self._truth.sizes[row] for row in rows]
        for check, image, first in faults(batch, self._vocabulary, theirs, scored=scored):
            if len(image):
                checking.findings.add(check, partial(first, batch.lines[int(image[0])].place), len(image))
        checking.boxes += int(np.count_nonzero(~batch.whole[batch.image_of_box]))
        checking.triplets += len(batch.score)
        if scored and len(batch.score):
            if checking.score is None:
                checking.score = batch.record(int(batch.image_of_hoi[0]))["hois"][0]["score"]
            checking.varied = checking.varied or bool((batch.score != checking.score).any())
        if self._labels is not None:
            self._labels.add(batch)
            if self._truth is not None and self._truth.rows:
                self._compare(self._labels, batch, rows)
        if self._facts:
            checking.facts.add(batch)

    def _add_images(self, batch: Checked) -> None:
        """Add the images, and a finding for each one that occurs twice or that the ground truth does not have."""
        if self._register.add_all(batch.image_ids, list(batch.lines)):
            self.found.images += batch.image_ids
            return
        for image_id, line in zip(batch.image_ids, batch.lines, strict=True):
            try:
                self._register.add(image_id, line)
                self.found.images.append(image_id)
            except DataError as error:
                self.found.findings.add(error.code, str(error))

    def _compare(self, labels: LabelEvidence, batch: Checked, rows: list[int | None]) -> None:
        """Compare the best prediction of each image with what is annotated there."""
        best = labels.compare(batch, rows)
        boxes = np.append(batch.boxes, np.full((1, 4), np.nan), axis=0)  # the last is that of no object
        self.found.compared.add(
            row=np.array([rows[image] for image in batch.image_of_hoi[best].tolist()], dtype=np.int64),
            subject=boxes[batch.subject[best]].ravel(),
            object=boxes[batch.object[best]].ravel(),
        )


def _conclude(
    checking: Checking, vocabulary: Vocabulary | None, name: str, truth: Facts | None, *, facts: bool
) -> Checking:
    """Add the findings that only the whole stream can give, and return all that is found."""
    findings = checking.findings
    if findings.count("inverted-box") > MOST_INVERTED * checking.boxes:
        findings.refuse("inverted-box")
    for check in ("looks-like-xywh", "box-without-area"):
        if findings.count(check) < MOST_INVERTED * checking.boxes:
            findings.remove(check)
    if findings.count("relative-box") < NEXT_TO_NOTHING * checking.boxes:  # some objects lie in a corner
        findings.remove("relative-box")
    elif findings.count("relative-box") == checking.boxes > 0:
        findings.refuse("relative-box")
    if checking.triplets > 1 and checking.score is not None and not checking.varied:
        findings.add("all-scores-equal", f"{name}: every score is {checking.score}", checking.triplets)
    if facts and checking.score is not None:
        findings.add("swapped-files", f"{name}: has scores, so these are predictions", checking.triplets)
    labels = None if vocabulary is None else LabelEvidence(vocabulary, checking.classes)
    if labels is not None and (doubt := labels.doubt(name)) is not None:
        findings.add(*doubt)
    if truth is not None:
        if checking.triplets and not checking.scored:
            findings.add("no-scores", f"{name}: no triplet has a score, as predictions must", checking.triplets)
        names_seen = {*checking.images, *checking.named}
        missing = [image_id for image_id in truth.rows if image_id not in names_seen]
        if missing and (names_seen or not checking.results):
            findings.add("image-without-predictions", f"{name}: no line for {missing[0]!r}", len(missing))
        if (mismatch := _boxes_beside(truth, checking.compared).finding()) is not None:
            findings.add("boxes-off-ground-truth", f"{name}: {mismatch[0]}", mismatch[1])
    checking.verdict = "" if labels is None else labels.verdict()
    return checking


def _boxes_beside(truth: Facts, compared: Growing) -> BoxEvidence:
    """Return the boxes of the best predictions beside the annotated ones."""
    rows, (subject, object_) = compared["row"], (compared[side].reshape(-1, 4) for side in ("subject", "object"))
    size = pixels(truth.sizes[row] for row in rows.tolist())
    count = truth.columns["box_count"]
    boxes = truth.columns["boxes"].reshape(-1, 4)
    return BoxEvidence(subject, object_, boxes, starts_of(count)[rows], count[rows], size)


def _are_predictions(lines: list[Line]) -> bool | None:
    """Return whether lines that are all records of images are predictions, None if they have no triplet."""
    for line in lines:
        record = attempt(lambda lines: orjson.loads(lines[0].data), [line])
        says_scores = _says_scores(record) if type(record) is dict else None
        if says_scores is not None:
            return says_scores
    return None


def _says_scores(record: Record) -> bool | None:
    """Return whether a record is of predictions, None if it has no triplets."""
    hois = record.get("hois")
    return any(isinstance(hoi, dict) and "score" in hoi for hoi in hois) if isinstance(hois, list) and hois else None


def _without_other_scores(line: Line, record: Record) -> Line:
    """Return the line of a record with null in place of scores that are no numbers: in a stream without scores, a score
    may be anything."""
    hois: list[dict[str, Any]] = record["hois"]
    if all(hoi.get("score") is None or is_number(hoi["score"]) for hoi in hois):
        return line
    hois = [hoi if is_number(hoi.get("score")) else {**hoi, "score": None} for hoi in hois]
    return replace(line, data=orjson.dumps({**record, "hois": hois}))
