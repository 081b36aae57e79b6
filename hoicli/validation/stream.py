"""The checking of a stream of records by `hoicli validate`, alone or against ground truth.

A batch of lines is checked as columns; where one of its lines is bad, they are checked one by one. A large file is
checked in parts, by several processes, and what they find is merged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import orjson

from hoicli.errors import DataError
from hoicli.evaluation.box_evidence import NEXT_TO_NOTHING, BoxEvidence
from hoicli.evaluation.evaluating import gather_in_parallel
from hoicli.evaluation.match_checks import match_problems
from hoicli.evaluation.selection import main_protocol, protocols_for
from hoicli.evaluation.tally import class_vocabulary
from hoicli.io.memory import no_garbage_collection
from hoicli.io.streams import Line, Stream
from hoicli.records.boxes import MOST_INVERTED
from hoicli.records.columns import BATCH, attempt
from hoicli.records.image import UNKNOWN_LABEL, optional_field_problems, problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import Growing, starts_of
from hoicli.records.parsing import Problem, Record, is_number, parse
from hoicli.tables.row_files import result_problems
from hoicli.validation.batch_faults import faults
from hoicli.validation.batches import Checked, Facts, checked_images, pixels
from hoicli.validation.findings import UNREAD, Findings
from hoicli.validation.label_evidence import DISTINCT, ClassCounts, LabelEvidence
from hoicli.validation.truth_evidence import TruthCounts, TruthEvidence
from hoicli.vocabulary.labels import Vocabulary

MANY_IMAGES = 20
"""Ours: of fewer images nobody expects ground truth of most classes."""


def validate_images(
    stream: Stream, vocabulary: Vocabulary | None, *, truth: Facts | None = None, facts: bool = False
) -> Checking:
    """Check a stream of records to its end, a large plain file in several processes, and return what is found.

    vocabulary: the known labels and verbs, None to allow any. truth: for predictions, what the ground truth says about
    its images. facts: keep what the stream says about its images, to use it as `truth` for another stream."""

    def check(part: Stream, _: ErrorPolicy) -> Checking:
        """Return what is found in a part of the stream, read in batches of lines."""
        checker, before = Checker(vocabulary, truth, facts=facts), part.lines_before()
        # lines have their number in the whole file
        following = (replace(line, number=line.number + before) for line in part) if before else iter(part)
        with no_garbage_collection():
            while batch := list(islice(following, BATCH)):
                checker.add(batch)
        return checker.found

    parts = gather_in_parallel(check, stream, ErrorPolicy(), lambda part: part.images, independent=_are_independent)
    checking, *others = parts
    for other in others:
        checking.merge(other)
    return _conclude(checking, vocabulary, stream.name, truth, facts=facts)


@dataclass
class Checking:
    """What is found in a stream, or in a part of it, besides the `findings`.

    lines, triplets, boxes: how many there are. scored: whether the stream is of predictions, None before its first
    triplet; score: the first score; varied: whether another score differs from it. classes: how often each class
    occurs. images: the ids of the image records (that are in the ground truth, if there is one); named: the ids of
    match records and of bad records; results: whether there are result rows. facts: what the stream says about its
    images, empty unless asked for. crowded, uncounted: how many images have more triplets than protocols with a limit
    count, and how many triplets these protocols leave out; agreement: what was counted beside the ground truth.

    compared: for the best prediction of each image with annotated classes, the image's `row` in the ground truth and
    the corners of the two boxes. unsure: whether a bad record came before the first triplet, so that this part cannot
    be checked without the part before it. verdict: in words, which dataset's labels the stream most likely has, and in
    which order; "" if it has none, if any are allowed, and for a part."""

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
    crowded: int = 0
    uncounted: int = 0
    agreement: TruthCounts = field(default_factory=TruthCounts)
    compared: Growing = field(default_factory=lambda: Growing(row=np.int64, subject=np.float64, object=np.float64))
    unsure: bool = False
    verdict: str = ""

    def merge(self, other: Checking) -> None:
        """Add what is found in the part of the stream that follows this one."""
        self.scored = other.scored if self.scored is None else self.scored
        self.varied |= other.varied or (None not in (self.score, other.score) and self.score != other.score)
        self.score = other.score if self.score is None else self.score
        for name in ("lines", "triplets", "boxes", "crowded", "uncounted", "images"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.named |= other.named
        self.results |= other.results
        for name in ("findings", "classes", "facts", "agreement", "compared"):
            getattr(self, name).merge(getattr(other, name))


def _are_independent(parts: Sequence[Checking]) -> bool:
    """Return whether the parts of a stream, each checked by itself, give what checking the whole would give: all are
    predictions or none is, and none has more classes than are counted."""
    return (
        len({part.scored for part in parts} - {None}) <= 1
        and not any(part.unsure for part in parts[1:])
        and all(len(part.classes.weights) < DISTINCT for part in parts)
    )


class Checker:
    """Checks the lines of a stream, batch by batch, and gathers what is found in `found`."""

    def __init__(self, vocabulary: Vocabulary | None, truth: Facts | None, *, facts: bool) -> None:
        """Start before the first line. truth: what the ground truth says, if the stream is to be compared with one;
        facts: gather what the stream says about its images."""
        self._vocabulary, self._truth, self._facts = vocabulary, truth, facts
        self.found = Checking()
        self._labels = None if vocabulary is None else LabelEvidence(vocabulary, self.found.classes, truth)
        self._evidence = None if truth is None else TruthEvidence(truth, vocabulary, self.found.agreement)
        self._limit = triplet_limit(vocabulary)
        # refuses images that occur twice, or that the ground truth does not have
        self._register = ImageRegister(None if truth is None else truth.rows)

    def add(self, lines: list[Line]) -> None:
        """Check the next lines: all at once as columns, or one by one if that finds a bad one among them."""
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
        """Check lines one by one, since at least one of them is bad, or is no record of an image. Bad ones become
        findings; the good image records between them are checked together, as columns."""
        good: list[Line] = []
        for line in lines:
            try:
                record = parse(line)
            except DataError as error:
                self.found.findings.add(error.code, str(error))
                continue
            find_problems, is_image_record = self._check_of(record)
            if is_image_record:
                for problem in optional_field_problems(record):
                    self.found.findings.add(UNREAD, str(problem.error(line.place)))
                if all(problem.code == UNKNOWN_LABEL for problem in find_problems()):
                    good.append(line if self.found.scored else _without_other_scores(line, record))
                    continue
            self._add_good_lines(good)  # before this line, so that examples are those of the first lines
            good = []
            if "image_id" in record:
                self.found.named.add(str(record["image_id"]))
            for problem in find_problems():
                self.found.findings.add(problem.code, str(problem.error(line.place)))
        self._add_good_lines(good)

    def _check_of(self, record: Record) -> tuple[Callable[[], Iterable[Problem]], bool]:
        """Return a function that finds the problems of a record by its kind (a result row, a match record or an image
        record), and whether it is an image record."""
        if "metric" in record:
            self.found.results = True
            return partial(result_problems, record), False
        if "predictions" in record and "gt" in record:  # `tuple` finds none: without a vocabulary, any name is right
            return tuple if self._vocabulary is None else partial(match_problems, record, self._vocabulary), False
        if self.found.scored is None:
            self.found.scored = _says_scores(record)
            self.found.unsure |= self.found.scored is None
        return partial(problems, record, self._vocabulary, scored=bool(self.found.scored), optional_fields=()), True

    def _add_good_lines(self, lines: list[Line]) -> None:
        """Check lines that are known to be good image records, apart from unknown labels."""
        if lines:
            self._add_good(checked_images(lines, self._vocabulary, scored=bool(self.found.scored), sound=True))

    def _add_good(self, batch: Checked) -> None:
        """Check a batch of image records, in which nothing is wrong but unknown labels, and gather what they say."""
        checking, scored = self.found, bool(self.found.scored)
        self._add_images(batch)
        # the row of each image in the ground truth, and the size of the image there
        rows = [None if self._truth is None else self._truth.rows.get(image_id) for image_id in batch.image_ids]
        truth_sizes = [None if self._truth is None or row is None else self._truth.sizes[row] for row in rows]
        for check, image, describe_first in faults(batch, self._vocabulary, truth_sizes, scored=scored):
            if len(image):
                place = batch.lines[int(image[0])].place
                checking.findings.add(check, partial(describe_first, place), len(image))

        # What is judged once the whole stream is known (`_conclude`). Boxes of the whole image were not checked.
        checking.boxes += int(np.count_nonzero(~batch.whole[batch.image_of_box]))
        checking.triplets += len(batch.score)
        if scored and len(batch.score):
            if checking.score is None:  # as the record spells it, for a message
                checking.score = batch.record(int(batch.image_of_hoi[0]))["hois"][0]["score"]
            checking.varied = checking.varied or bool((batch.score != checking.score).any())
        if scored and self._limit is not None:
            beyond = np.diff(batch.hoi_start) - self._limit
            checking.crowded += int(np.count_nonzero(beyond > 0))
            checking.uncounted += int(beyond.clip(0).sum())
        if scored and self._evidence is not None:
            self._evidence.add(batch, rows)
        if self._labels is not None:
            self._labels.add(batch)
            if self._truth is not None and self._truth.rows:
                self._compare(self._labels, batch, rows)
        if self._facts:
            checking.facts.add(batch)

    def _add_images(self, batch: Checked) -> None:
        """Add the ids of a batch's images; for one that occurs twice, or that the ground truth lacks, add a finding."""
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
        """Compare the class of the best prediction of each image with those annotated there, and keep its boxes, for
        comparing them at the end."""
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
    """Add the findings that only the whole stream can give, and return all that is found. facts: whether the stream is
    to be ground truth for another one."""
    findings = checking.findings
    _weigh_box_findings(findings, checking.boxes)
    if checking.triplets > 1 and checking.score is not None and not checking.varied:
        findings.add("all-scores-equal", f"{name}: every score is {checking.score}", checking.triplets)
    if facts and checking.score is not None:
        findings.add("swapped-files", f"{name}: has scores, so these are predictions", checking.triplets)
    if checking.crowded:
        images = f"{checking.crowded:,} of {len(checking.images):,} images"
        share = f"{checking.uncounted / checking.triplets:.1%} of all triplets"
        text = f"{name}: {images} have more than {triplet_limit(vocabulary)} triplets; {share} are beyond"
        findings.add("more-than-counted", text, checking.uncounted)
    for check, text, count in checking.agreement.findings():
        findings.add(check, f"{name}: {text}", count)
    if vocabulary is not None and checking.scored is False and len(checking.images) >= MANY_IMAGES:
        _check_classes(findings, checking.classes, vocabulary, name)
    labels = None if vocabulary is None else LabelEvidence(vocabulary, checking.classes)
    if labels is not None and (doubt := labels.doubt(name)) is not None:
        findings.add(*doubt)
    if truth is not None:
        if checking.triplets and not checking.scored:
            findings.add("no-scores", f"{name}: no triplet has a score, as predictions must", checking.triplets)
        names_seen = {*checking.images, *checking.named}
        missing = [image_id for image_id in truth.rows if image_id not in names_seen]
        only_results = bool(checking.results) and not names_seen  # a file of result rows is about no images
        if missing and not only_results:
            findings.add("image-without-predictions", f"{name}: no line for {missing[0]!r}", len(missing))
        mismatch = _box_evidence(truth, checking.compared).find_misfit()
        if mismatch is not None:
            findings.add("boxes-off-ground-truth", f"{name}: {mismatch.text}", mismatch.boxes)
    checking.verdict = "" if labels is None else labels.verdict()
    return checking


def triplet_limit(vocabulary: Vocabulary | None) -> int | None:
    """Return the lowest number of triplets an image that a protocol of the dataset counts, None if all count all."""
    rows = () if vocabulary is None else protocols_for(vocabulary).values()
    return min((row.triplets_per_image for row in rows if row.triplets_per_image is not None), default=None)


def _check_classes(findings: Findings, counts: ClassCounts, vocabulary: Vocabulary, name: str) -> None:
    """Add a finding if most classes of the dataset's main protocol have no ground truth. name: the ground truth's."""
    protocol = main_protocol(vocabulary)
    classes = class_vocabulary(vocabulary, protocol)
    annotated = {(name.verb, "" if protocol.by_verb else name.role or name.label) for name in counts.weights}
    members = [classes.interactions[number] for number in sorted(classes.members(protocol.classes or "full"))]
    absent = [pair for pair in members if pair not in annotated]
    if counts.weights and 2 * len(absent) > len(members):
        text = f"{name}: {len(absent):,} of {len(members):,} classes of {vocabulary.name} (the first: "
        findings.add("classes-without-ground-truth", f"{text}{' '.join(absent[0]).strip()})", len(absent))


def _weigh_box_findings(findings: Findings, boxes: int) -> None:
    """Drop findings about boxes that a few boxes have by chance, and make those an error that no metric could use."""
    if findings.count("inverted-box") > MOST_INVERTED * boxes:
        findings.refuse("inverted-box")
    for check in ("looks-like-xywh", "box-without-area"):
        if findings.count(check) < MOST_INVERTED * boxes:
            findings.remove(check)
    if findings.count("relative-box") < NEXT_TO_NOTHING * boxes:  # some objects lie in a corner
        findings.remove("relative-box")
    elif findings.count("relative-box") == boxes > 0:
        findings.refuse("relative-box")


def _box_evidence(truth: Facts, compared: Growing) -> BoxEvidence:
    """Return the boxes of the best predictions (`Checking.compared`) with those annotated in the same images."""
    rows, (subject, object_) = compared["row"], (compared[side].reshape(-1, 4) for side in ("subject", "object"))
    size = pixels(truth.sizes[row] for row in rows.tolist())
    count = truth.columns["box_count"]
    boxes = truth.columns["boxes"].reshape(-1, 4)
    return BoxEvidence(subject, object_, boxes, truth.columns["roles"], starts_of(count)[rows], count[rows], size)


def _are_predictions(lines: list[Line]) -> bool | None:
    """Return whether lines of image records are predictions, which the first with triplets shows; None without any."""
    for line in lines:
        record = attempt(lambda lines: orjson.loads(lines[0].data), [line])  # None for a line that is no JSON
        says_scores = _says_scores(record) if type(record) is dict else None
        if says_scores is not None:
            return says_scores
    return None


def _says_scores(record: Record) -> bool | None:
    """Return whether a record is of predictions, that is whether a triplet has a score; None if it has no triplets."""
    hois = record.get("hois")
    if not isinstance(hois, list) or not hois:
        return None
    return any(isinstance(hoi, dict) and "score" in hoi for hoi in hois)


def _without_other_scores(line: Line, record: Record) -> Line:
    """Return the line of a record with null in place of scores that are no numbers: ground truth needs none."""
    hois: list[dict[str, Any]] = record["hois"]
    if all(hoi.get("score") is None or is_number(hoi["score"]) for hoi in hois):
        return line
    hois = [hoi if is_number(hoi.get("score")) else {**hoi, "score": None} for hoi in hois]
    return replace(line, data=orjson.dumps({**record, "hois": hois}))
