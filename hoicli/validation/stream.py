"""What makes numbers quietly wrong: one stream of records checked, or two of them side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import combinations, islice

import numpy as np

from hoicli.evaluation.box_conventions import BoxEvidence
from hoicli.evaluation.run import gathered
from hoicli.io.streams import Line, Stream
from hoicli.io.workers import no_garbage_collection
from hoicli.records.boxes import MOST_INVERTED
from hoicli.records.columns import BATCH
from hoicli.records.intake import ErrorPolicy
from hoicli.validation.batches import pixels
from hoicli.validation.checking import Checker, Checking
from hoicli.validation.checks import Findings
from hoicli.validation.facts import Facts
from hoicli.validation.labels import DISTINCT, LabelEvidence
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Validation:
    """What is wrong with a stream of so many lines. verdict: whose labels it most likely has, and in which order; ""
    where it has none, or any will do. facts: what it says of its images, None unless asked for."""

    findings: Findings
    lines: int
    verdict: str
    facts: Facts | None


def validate_images(
    lines: Iterable[Line],
    vocabulary: Vocabulary | None,
    name: str,
    *,
    truth: Facts | None = None,
    facts: bool = False,
) -> Validation:
    """A stream of records called `name`, checked to its end; a large plain file in several processes.

    vocabulary: None for an open one, any label will do. truth: the images there are, for predictions. facts: keep what
    the stream says of its images, as ground truth for another.
    """

    def check(part: Iterable[Line]) -> Checking:
        before = cache(part.lines_before) if isinstance(part, Stream) else lambda: 0
        checker, following = Checker(vocabulary, truth, annotations=facts, before=before), iter(part)
        with no_garbage_collection():
            while batch := list(islice(following, BATCH)):
                checker.add(batch)
        return checker.found

    if isinstance(lines, Stream):
        found, *others = gathered(lambda part, _: check(part), lines, ErrorPolicy(), _independent)
    else:
        found, others = check(lines), []
    for other in others:
        found.merge(other)
    return _concluded(found, vocabulary, name, truth, facts=facts)


def _independent(parts: list[Checking]) -> bool:
    """Whether what is found in the parts of a stream is what is found in the whole: no image is in two of them, all are
    predictions or none is, and none has more classes than are counted."""
    if len({part.scored for part in parts} - {None}) > 1 or any(part.unsure for part in parts[1:]):
        return False
    if any(len(part.classes.weights) >= DISTINCT for part in parts):
        return False
    return all(
        one.images.keys().isdisjoint(other.images)
        and (bool(one.images or other.images) or not ((one.seen >= 0) & (other.seen >= 0)).any())
        for one, other in combinations(parts, 2)
    )


def _concluded(
    found: Checking, vocabulary: Vocabulary | None, name: str, truth: Facts | None, *, facts: bool
) -> Validation:
    """What only the whole stream can tell, added to its findings."""
    findings = found.findings
    if findings.count("inverted-box") > MOST_INVERTED * found.boxes:
        findings.refuse("inverted-box")
    if findings.count("looks-like-xywh") < MOST_INVERTED * found.boxes:
        findings.remove("looks-like-xywh")
    if findings.count("relative-box") < found.boxes:
        findings.remove("relative-box")
    if found.triplets > 1 and found.score is not None and not found.varied:
        findings.add("all-scores-equal", f"{name}: every score is {found.score}", found.triplets)
    if truth is not None:
        missing = np.flatnonzero(found.seen < 0)
        if len(missing):
            first = next(islice(truth.ids, int(missing[0]), None))
            findings.add("image-without-predictions", f"{name}: no line for {first!r}", len(missing))
    labels = None if vocabulary is None else LabelEvidence(vocabulary, found.classes)
    doubt = None if labels is None else labels.finding(name)
    if doubt is not None:
        findings.add(doubt.check, doubt.example, doubt.count, doubt.fix)
    off = None if truth is None else _boxes_beside(truth, found).finding()
    if off is not None:
        findings.add("boxes-off-ground-truth", f"{name}: {off[0]}", off[1])
    return Validation(
        findings=findings,
        lines=found.lines,
        verdict="" if labels is None else labels.verdict(),
        facts=found.annotations.facts(found.images) if facts else None,
    )


def _boxes_beside(truth: Facts, found: Checking) -> BoxEvidence:
    """The boxes of the best predictions with those that are annotated."""
    image = found.best["image"]
    return BoxEvidence(
        subject=found.best["subject"].reshape(-1, 4),
        object=found.best["object"].reshape(-1, 4),
        annotated=truth.boxes,
        start=truth.box_start[image],
        count=truth.box_count[image],
        size=pixels([*truth.sizes, None])[truth.size[image]],
    )
