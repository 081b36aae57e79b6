"""What `validate_images` finds, found the plain way: line by line, box by box and triplet by triplet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from hoicli.errors import DataError
from hoicli.evaluation.box_conventions import READINGS
from hoicli.evaluation.match_stream import match_problems
from hoicli.io.streams import Line
from hoicli.records.image import UNKNOWN_LABEL, problems, problems_besides, result_problems
from hoicli.records.intake import ImageRegister
from hoicli.records.parsing import Problem, Record, is_number, parse
from hoicli.validation.batches import Size, TripletClass
from hoicli.validation.checks import UNREAD, Findings
from hoicli.validation.labels import ClassCounts, LabelEvidence, comparable, readings
from hoicli.vocabulary.labels import Vocabulary

Box = Sequence[float]


@dataclass(frozen=True)
class About:
    """What a stream says of an image."""

    size: Size | None
    classes: frozenset[TripletClass]
    boxes: Sequence[Box]


class Twin:
    """Checks one stream; `images` is what it says of each."""

    def __init__(
        self,
        lines: Iterable[Line],
        vocabulary: Vocabulary | None,
        name: str,
        truth: Mapping[str, About] | None = None,
        *,
        facts: bool = False,
    ) -> None:
        self.findings, self.images = Findings(), dict[str, About]()
        self._vocabulary, self._truth = vocabulary, truth
        self._register = ImageRegister(truth)
        self._scored: bool | None = None
        self._scores: set[float] = set()
        self._named, self._results = set[str](), False
        self._counts = ClassCounts()
        self._triplets = self._boxes = self._xywh = self._relative = 0
        self._compared: list[tuple[list[Box], About]] = []
        for line in lines:
            self._add(line)
        self._finish(name, facts)

    def _add(self, line: Line) -> None:
        try:
            record = parse(line)
        except DataError as error:
            self.findings.add(error.code, str(error))
            return
        if "metric" in record:
            self._results = True
            self._problems(result_problems(record), line)
        elif "predictions" in record and "gt" in record:
            if self._vocabulary is not None:
                self._problems(match_problems(record, self._vocabulary), line)
        else:
            self._image(record, line)
            return
        self._named |= {str(record["image_id"])} if "image_id" in record else set()

    def _problems(self, found: Iterable[Problem], line: Line) -> bool:
        codes = set()
        for problem in found:
            self.findings.add(problem.code, str(problem.error(line.place)))
            codes.add(problem.code)
        return codes <= {UNKNOWN_LABEL}

    def _image(self, record: Record, line: Line) -> None:
        hois = record.get("hois")
        if self._scored is None and isinstance(hois, list) and hois:
            self._scored = any(isinstance(hoi, dict) and "score" in hoi for hoi in hois)
        for problem in problems_besides(record):
            self.findings.add(UNREAD, str(problem.error(line.place)))
        if not self._problems(problems(record, self._vocabulary, scored=bool(self._scored), besides=()), line):
            self._named |= {str(record["image_id"])} if "image_id" in record else set()
            return
        classes = list(_classes(record))
        for _, name, score in classes if self._vocabulary is not None else ():
            self._counts.triplets += 1
            self._counts.weights[name] += 1 + int(1000 * min(max(score, 0.0), 1.0))
        image_id = str(record["image_id"])
        try:
            self._register.add(image_id, line)
        except DataError as error:
            self.findings.add(error.code, str(error))
        given = [record.get(side, 0) for side in ("width", "height")]
        sides = [side for side in given if is_number(side) and side > 0]
        own = (sides[0], sides[1]) if len(sides) == 2 else None
        annotated = (self._truth or {}).get(image_id)
        theirs = None if annotated is None else annotated.size
        if own is not None and theirs is not None and own != theirs:
            text = f"{own[0]} x {own[1]}, in the ground truth {theirs[0]} x {theirs[1]}"
            self.findings.add("another-image-size", f"{line.place}: {image_id!r} has {text}")
        names: set[TripletClass] = set()
        if self._vocabulary is not None:
            names |= {comparable(name, self._vocabulary) for _, name, _ in classes}
            names |= {TripletClass(name.verb) for _, name, _ in classes if self._vocabulary.roles}
        self.images[image_id] = About(own, frozenset(names), record["boxes"])
        if "whole_image" not in (record.get("caveats") or ()):
            self._check_boxes(record["boxes"], own or theirs, line)
        self._check_triplets(record, line)
        if annotated is not None and annotated.classes and classes:
            self._compare(record, classes, annotated)

    def _check_boxes(self, boxes: list[Box], size: Size | None, line: Line) -> None:
        self._boxes += len(boxes)
        if boxes and all(0 <= value <= 1 for box in boxes for value in box):
            self._relative += len(boxes)
            self.findings.add("relative-box", f"{line.place}: boxes[0]: {boxes[0]}", len(boxes))
        for index, (x, y, z, w) in enumerate(boxes):
            place = f"{line.place}: boxes[{index}]: {boxes[index]}"
            if z < x or w < y:
                self.findings.add("inverted-box", place)
                inside = size is None or (x + z <= size[0] + 1 and y + w <= size[1] + 1)
                if min(boxes[index]) >= 0 and inside:
                    self._xywh += 1
                    self.findings.add("looks-like-xywh", place)
            elif size is not None:
                wide, high = 0.1 * size[0], 0.1 * size[1]
                if x < -wide or y < -high or z > size[0] + wide or w > size[1] + high:
                    self.findings.add("box-outside-image", f"{place}, the image is {size[0]} x {size[1]}")

    def _check_triplets(self, record: Record, line: Line) -> None:
        known, labels, boxes = self._vocabulary, record["labels"], record["boxes"]
        self._triplets += len(record["hois"])
        seen = set()
        for index, hoi in enumerate(record["hois"]):
            thing, verb, place = hoi["object"], hoi["verb"], f"{line.place}: hois[{index}]"
            role = hoi.get("role") if type(hoi.get("role")) is str else None
            box, label = (None, None) if thing is None else (tuple(boxes[thing]), labels[thing])
            if self._scored:
                self._scores.add(hoi["score"])
                if not 0 <= hoi["score"] <= 1:
                    self.findings.add("score-outside-range", f"{place}.score: {hoi['score']}")
                key = (tuple(boxes[hoi["subject"]]), box, label, verb, role)
                if key in seen:
                    self.findings.add("duplicate-triplet", f"{place}: {verb} {label} on the same two boxes")
            else:
                subject = (*boxes[hoi["subject"]], labels[hoi["subject"]])
                key = (subject, box, label, verb, role)
                if key in seen:
                    self.findings.add("doubled-annotation", f"{place}: {verb} {label} on the same two boxes")
            seen.add(key)
            if labels[hoi["subject"]] not in (("person",) if known is None else known.subjects):
                self.findings.add("subject-no-person", f"{place}.subject: a {labels[hoi['subject']]}")
            if known is None or known.roles or (verb, label) in known.interaction_ids:
                continue
            if verb in known.verb_ids and label in known.object_ids:
                self.findings.add("no-such-interaction", f"{place}: {verb} {label}")

    def _compare(self, record: Record, classes: list[tuple[int, TripletClass, float]], annotated: About) -> None:
        assert self._vocabulary is not None
        row, best, _ = max(classes, key=lambda each: (each[2], -each[0]))
        self._counts.images += 1
        for number, meant in enumerate([best, *(reading.apply(best) for reading in readings(self._vocabulary))]):
            there = meant is not None and comparable(meant, self._vocabulary) in annotated.classes
            self._counts.matched[number] += there
        hoi = record["hois"][row]
        ends = [record["boxes"][end] for end in (hoi["subject"], hoi["object"]) if end is not None]
        self._compared.append((ends, annotated))

    def _finish(self, name: str, facts: bool) -> None:
        if facts and self._scores:
            self.findings.add("swapped-files", f"{name}: has scores, so these are predictions", self._triplets)
        if self._truth is not None and self._triplets and not self._scored:
            self.findings.add("swapped-files", f"{name}: has no scores, so this is ground truth", self._triplets)
        if self.findings.count("inverted-box") > 0.01 * self._boxes:
            self.findings.refuse("inverted-box")
        if self._xywh < 0.01 * self._boxes:
            self.findings.remove("looks-like-xywh")
        if self._relative < self._boxes:
            self.findings.remove("relative-box")
        if self._triplets > 1 and len(self._scores) == 1:
            self.findings.add("all-scores-equal", f"{name}: every score is {next(iter(self._scores))}", self._triplets)
        seen = {*self.images, *self._named}
        missing = [image_id for image_id in self._truth or () if image_id not in seen and (seen or not self._results)]
        if missing:
            self.findings.add("image-without-predictions", f"{name}: no line for {missing[0]!r}", len(missing))
        if self._vocabulary is not None:
            doubt = LabelEvidence(self._vocabulary, self._counts).finding(name)
            if doubt is not None:
                self.findings.add(doubt.check, doubt.example, doubt.count, doubt.fix)
        off = self._boxes_off()
        if off is not None:
            self.findings.add("boxes-off-ground-truth", f"{name}: {off[0]}", off[1])

    def _boxes_off(self) -> tuple[str, int] | None:
        if len(self._compared) < 5:
            return None
        boxes = [box for ends, _ in self._compared for box in ends]
        own = self._meeting(lambda box, _: box)
        if own * 1.5 >= len(boxes):
            return None
        text = f"{own:,} of the {len(boxes):,} boxes of best predictions meet an annotated box"
        if all(abs(side) <= 2 for box in boxes for side in box) and all(of.size is None for _, of in self._compared):
            return f"{text}, and none of their numbers is above 2: parts of the image's sides (0-1)?", len(boxes) - own
        meeting = {what: self._meeting(read) for what, read in READINGS.items()}
        meeting["pixels of a copy of another size"] = sum(_scaled(ends, of.boxes) for ends, of in self._compared)
        best = max(meeting, key=lambda what: meeting[what])
        if meeting[best] >= max(0.5 * len(boxes), 1.5 * own):
            return f"{text}, {meeting[best]:,} if they are {best}", len(boxes) - own
        return (text, len(boxes) - own) if own < 0.1 * len(boxes) else None

    def _meeting(self, read: Callable[[Any, Any], Any]) -> int:
        count = 0
        with np.errstate(all="ignore"):
            for ends, of in self._compared:
                size = np.array(of.size or (np.nan, np.nan), dtype=float)
                for box in ends:
                    count += _meets([float(side) for side in read(np.array(box, dtype=float), size)], of.boxes)
        return count


def _classes(record: Record) -> Iterable[tuple[int, TripletClass, float]]:
    labels, hois = record.get("labels"), record.get("hois")
    if type(labels) is not list or type(hois) is not list:
        return
    for row, hoi in enumerate(hois):
        if type(hoi) is dict and type(hoi.get("verb")) is str:
            index, role, score = hoi.get("object"), hoi.get("role"), hoi.get("score")
            label = labels[index] if type(index) is int and 0 <= index < len(labels) else None
            name = TripletClass(hoi["verb"], role if type(role) is str else "", label if type(label) is str else None)
            yield row, name, score if type(score) is int or type(score) is float else 0.0


def _meets(box: Box, annotated: Sequence[Box]) -> bool:
    for other in annotated:
        width, height = (min(box[at + 2], other[at + 2]) - max(box[at], other[at]) for at in (0, 1))
        both = width * height if width > 0 and height > 0 else 0.0
        one, two = ((each[2] - each[0]) * (each[3] - each[1]) for each in (box, other))
        if both > 0 and both / (one + two - both) >= 0.5:
            return True
    return False


def _scaled(ends: list[Box], annotated: Sequence[Box]) -> int:
    own, *areas = (max(b[2] - b[0], 0.0) * max(b[3] - b[1], 0.0) for b in (ends[0], *annotated))
    for area in areas if own > 0 else ():
        scale = sqrt(area / own)
        if all(_meets([side * scale for side in box], annotated) for box in ends):
            return len(ends)
    return 0
