"""Every check `hoicli validate` knows, and its findings.

Most evaluation accidents are files that were read "successfully": another box convention, another label order, another
set of images. Each check counts its cases and keeps the first as an example. An error is something no metric can use;
a warning is something a metric would use without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hoicli.errors import MALFORMED, arg
from hoicli.evaluation.match_stream import UNKNOWN_PROTOCOL
from hoicli.records.boxes import inverted, repeated
from hoicli.records.image import UNKNOWN_LABEL, problems
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE
from hoicli.records.kit import Bools, Ints
from hoicli.records.parsing import Record
from hoicli.validation.batches import Checked, Size, TripletClass, pixels
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

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
    "box-outside-image": "another scale or convention? records hold pixels of the original image",
    "relative-box": "all numbers are at most 1: multiply by the image's width and height",
    "score-outside-range": "fine for ranking; a sum or a scaled score?",
    "all-scores-equal": "nothing ranks the predictions: mAP then depends on tie-breaking",
    "duplicate-triplet": f"the second of two equal predictions is a false positive; {arg('nms')} removes it",
    "doubled-annotation": "list each once: both count, and most protocols find only one",
    "no-such-interaction": "the vocabulary has no class of this verb and object: never counted",
    "subject-no-person": "qpic and diag ignore it; of most: subject and object swapped, or labels numbered otherwise?",
    "another-object-order": "convert again with the right order: as they are, they score near zero",
    "another-verb-numbering": "convert again with the right numbers: as they are, they score near zero",
    "classes-not-annotated": "mAP will be near zero: other labels, or another set of images?",
    "another-image-size": "boxes must be in pixels of the ground truth's images: scale them",
    "boxes-off-ground-truth": "mAP will be near zero: convert the boxes to what they should be",
}
CHECKS = ERRORS | WARNINGS
"""What to do about each fault, by the code of its check."""


@dataclass
class Finding:
    """How often a check failed, the first place where it did, and what to do, where that is not what CHECKS says."""

    check: str
    count: int
    example: str
    fix: str = ""
    refused: bool = False
    """Whether there are so many that what is a warning otherwise is an error."""

    @property
    def severity(self) -> str:
        """What the row says."""
        return "error" if self.refused or self.check in ERRORS else "warning"

    def row(self) -> Record:
        """The finding as an output row."""
        return {
            "check": self.check,
            "severity": self.severity,
            "count": self.count,
            "example": self.example,
            "fix": self.fix or CHECKS[self.check],
        }


class Findings:
    """Findings so far, in the order of CHECKS."""

    def __init__(self) -> None:
        self._found: dict[str, Finding] = {}

    def add(self, check: str, example: str | Callable[[], str], count: int = 1, fix: str = "") -> None:
        """Count `count` cases; `example` describes the first of them, and is asked for no other."""
        if check not in self._found:
            self._found[check] = Finding(check, 0, example if isinstance(example, str) else example(), fix)
        self._found[check].count += count

    def merge(self, other: Findings) -> None:
        """Add the findings of the part that follows."""
        for finding in other:
            self.add(finding.check, finding.example, finding.count, finding.fix)

    def count(self, check: str) -> int:
        """How often a check failed so far."""
        return self._found[check].count if check in self._found else 0

    def refuse(self, check: str) -> None:
        """Make a check that failed an error."""
        self._found[check].refused = True

    def remove(self, check: str) -> None:
        """Forget a check that turned out to mean nothing."""
        self._found.pop(check, None)

    def __iter__(self) -> Iterator[Finding]:
        return (self._found[check] for check in CHECKS if check in self._found)

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(finding.severity == "error" for finding in self)


# What a metric would use without a word in one record, a batch of records at a time

MARGIN = 0.1
"""Ours: detectors overshoot the image a little; a box over a tenth of its side outside is in another frame."""


@dataclass(frozen=True)
class Cases:
    """The cases of a check in a batch: the image [M] of each, ascending; `first` says what the first is, given the
    place of its line."""

    check: str
    image: Ints
    first: Callable[[str], str]


def label_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Labels that the vocabulary does not have."""
    image = np.repeat(np.arange(len(batch.unknown)), batch.unknown)

    def first(place: str) -> str:
        found = problems(batch.record(int(image[0])), vocabulary, scored=scored)
        return str(next(problem for problem in found if problem.code == UNKNOWN_LABEL).error(place))

    yield Cases(UNKNOWN_LABEL, image, first)


def size_faults(batch: Checked, theirs: Sequence[Size | None]) -> Iterator[Cases]:
    """Images of another size than the ground truth's: theirs [N], None where not known."""
    both = zip(batch.sizes, theirs, strict=True)
    rows = [row for row, (own, other) in enumerate(both) if own is not None and other is not None and own != other]

    def first(place: str) -> str:
        own, other = (" x ".join(map(str, of[rows[0]] or ())) for of in (batch.sizes, theirs))
        return f"{place}: {batch.image_ids[rows[0]]!r} has {own}, in the ground truth {other}"

    yield Cases("another-image-size", np.array(rows, dtype=np.int64), first)


def box_faults(batch: Checked, sizes: Sequence[Size | None]) -> Iterator[Cases]:
    """Boxes that are not what they should be. sizes [N]: of the images, where known."""
    image, boxes = batch.image_of_box, batch.boxes
    size = pixels(sizes)
    looked_at = ~batch.whole[image]

    def cases(check: str, rows: Ints, end: Callable[[int], str] = lambda _: "") -> Cases:
        def told(record: Record, at: int, row: int) -> str:
            return f"boxes[{row}]: {record['boxes'][row]}{end(at)}"

        return _cases(check, batch, rows, image, batch.box_start, told)

    small = ((boxes >= 0) & (boxes <= 1)).all(axis=1) & looked_at
    if small.any():
        counts = np.diff(batch.box_start)
        relative = np.bincount(image[small], minlength=len(counts)) == counts
        yield cases("relative-box", np.flatnonzero(relative[image]))
    ends_first = inverted(boxes) & looked_at
    rows = np.flatnonzero(ends_first)
    yield cases("inverted-box", rows)
    with np.errstate(over="ignore"):
        beyond = (boxes[rows, :2] + boxes[rows, 2:] > size[image[rows]] + 1).any(axis=1)  # not where no size is known
        yield cases("looks-like-xywh", rows[(boxes[rows] >= 0).all(axis=1) & ~beyond])
        spare = MARGIN * size
        least, most = -spare[image], (size + spare)[image]
    outside = (boxes[:, :2] < least).any(axis=1) | (boxes[:, 2:] > most).any(axis=1)
    rows = np.flatnonzero(outside & looked_at & ~ends_first)
    yield cases("box-outside-image", rows, lambda at: ", the image is {} x {}".format(*(sizes[at] or ())))


def triplet_faults(batch: Checked, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Cases]:
    """Triplets that count for nothing, or against the detector. scored: predictions."""
    subjects = (SUBJECT,) if vocabulary is None else vocabulary.subjects
    image = batch.image_of_hoi

    def cases(check: str, bad: Bools, words: Callable[[Record, list[str | None]], str]) -> Cases:
        def told(record: Record, _: int, row: int) -> str:
            return f"hois[{row}]{words(record['hois'][row], record['labels'])}"

        return _cases(check, batch, np.flatnonzero(bad), image, batch.hoi_start, told)

    if scored:
        outside = (batch.score < 0) | (batch.score > 1)
        yield cases("score-outside-range", outside, lambda hoi, _: f".score: {hoi['score']}")
    own = () if scored else (batch.label[batch.subject],)
    twice = repeated(batch, *own, batch.object_label, batch.verb, batch.role)
    check = "duplicate-triplet" if scored else "doubled-annotation"
    yield cases(check, twice, lambda hoi, labels: f": {_named(hoi, labels)} on the same two boxes")
    acts = np.zeros(len(batch.labels.spelled), dtype=bool)
    acts[[batch.labels[label] for label in subjects if label in batch.labels]] = True
    others = ~acts[batch.label[batch.subject]]
    yield cases("subject-no-person", others, lambda hoi, labels: f".subject: a {labels[hoi['subject']]}")
    if vocabulary is not None and not vocabulary.roles:
        none = _no_interactions(batch, vocabulary)
        yield cases("no-such-interaction", none, lambda hoi, labels: f": {_named(hoi, labels)}")


def _cases(
    check: str, batch: Checked, rows: Ints, image: Ints, start: Ints, told: Callable[[Record, int, int], str]
) -> Cases:
    """The cases that are some rows of boxes or triplets. image, start: of each row its image, and where that begins;
    told(record, image, place in it): what the first is."""

    def first(place: str) -> str:
        at = int(image[rows[0]])
        return f"{place}: {told(batch.record(at), at, int(rows[0] - start[at]))}"

    return Cases(check, image[rows], first)


def _named(hoi: Record, labels: list[str | None]) -> str:
    """The verb and the object of a triplet."""
    return f"{hoi['verb']} {None if hoi['object'] is None else labels[hoi['object']]}"


def _no_interactions(batch: Checked, vocabulary: Vocabulary) -> Bools:
    """[T] whether both names are known and the dataset, whose classes they make, has none of the two."""
    names, place = batch.classes
    return np.fromiter((_is_no_interaction(name, vocabulary) for name in names), dtype=bool)[place]


@lru_cache(maxsize=1 << 14)
def _is_no_interaction(name: TripletClass, vocabulary: Vocabulary) -> bool:
    pair = name.verb, name.label
    known = name.verb in vocabulary.verb_ids and name.label in vocabulary.object_ids
    return known and pair not in vocabulary.interaction_ids
