"""Every check of `hoicli validate` for what makes numbers quietly wrong, and the findings of a stream.

Most evaluation accidents are files that were read "successfully": another box convention, another label order, another
set of images. Each check counts its cases and keeps the first as an example. An error is something no metric can use;
a warning is something a metric would use without a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hoicli.errors import MALFORMED, arg
from hoicli.evaluation.match_checks import UNKNOWN_PROTOCOL
from hoicli.records.image import UNKNOWN_LABEL
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE
from hoicli.records.parsing import Record

ERRORS = {  # the codes in capitals are those of problems that reading a record finds
    MALFORMED: f"mend what is named; other commands leave such lines out with {arg('on_error', 'skip')}",
    UNKNOWN_LABEL: "use the vocabulary's spelling (hoicli vocab); a wrong object order looks like this too",
    UNKNOWN_PROTOCOL: "match the predictions again, with this version",
    "not-whole": "the command that wrote the stream failed: mend that, and make it again",
    DUPLICATE_IMAGE: "keep one line an image; check two models' dumps one by one; cells of hoicli corrupt: "
    f"{arg('by', 'corruption,severity')}",
    "another-dataset": "name the benchmark they belong to",
    UNKNOWN_IMAGE: "give the ground truth of the same set and split",
    "swapped-files": "give the ground truth with --gt, and the predictions without",
    "no-scores": "ground truth? give it with --gt; answers of a model: hoicli convert --scores",
}
UNREAD = "bad-optional-field"
"""The check of fields that only some commands read."""
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
    "scores-worse-than-chance": "the wrong way round: a distance, 1 - score, or a rank? higher must be better",
    "more-than-counted": f"protocols with a limit (qpic) count the best of an image; {arg('top_k')} cuts for all",
    "duplicate-triplet": f"the second of two equal predictions is a false positive; {arg('nms')} removes it",
    "doubled-annotation": "list each once: both count, and most protocols find only one",
    "no-such-interaction": "the vocabulary has no class of this verb and object: never counted",
    "subject-no-person": "qpic and diag ignore it; of most: subject and object swapped, or labels numbered otherwise?",
    "subject-is-object": "a box with itself is no pair of two; where no object fills a role, object is null",
    "another-object-order": "convert again with the right order: as they are, they score near zero",
    "another-verb-numbering": "convert again with the right numbers, or write names: as they are, they score near zero",
    "classes-not-annotated": "mAP will be near zero: other labels, or another set of images?",
    "another-image-size": "boxes must be in pixels of the ground truth's images: scale them",
    "boxes-of-ground-truth": "a leak, unless the task gives the boxes (PredCls, SGCls): no score of a detector",
    "classes-without-ground-truth": "means leave these out or count them 0: compare only numbers on these same images",
    "boxes-off-ground-truth": "they count as false: convert the boxes to what they should be",
}
CHECKS = ERRORS | WARNINGS
"""What to do about each fault, by the code of its check."""


@dataclass
class Finding:
    """A check that failed. check: its code, a key of CHECKS; count: how many cases there are; example: a text about the
    first case; fix: what to do about it, "" for what CHECKS says. refused: whether there are so many cases that what is
    a warning otherwise is an error."""

    check: str
    count: int
    example: str
    fix: str = ""
    refused: bool = False

    @property
    def severity(self) -> str:
        """Whether the finding is an "error" or a "warning"."""
        return "error" if self.refused or self.check in ERRORS else "warning"

    def row(self) -> Record:
        """Return the finding as a row of the output of `validate`."""
        row = {"check": self.check, "severity": self.severity, "count": self.count, "example": self.example}
        return {**row, "fix": self.fix or CHECKS[self.check]}


class Findings:
    """The checks that failed so far; iterating over them gives each `Finding`, in the order of CHECKS."""

    def __init__(self) -> None:
        """Start with no finding."""
        self._finding_by_check: dict[str, Finding] = {}

    def add(self, check: str, example: str | Callable[[], str], count: int = 1, fix: str = "") -> None:
        """Add `count` cases of a check. example: a text about the first of them, or a function that makes it, which is
        only called if the check had no case yet; fix: what to do, "" for what CHECKS says."""
        if check not in self._finding_by_check:
            first_example = example if isinstance(example, str) else example()
            self._finding_by_check[check] = Finding(check, 0, first_example, fix)
        self._finding_by_check[check].count += count

    def merge(self, other: Findings) -> None:
        """Add the findings of the part of the stream that follows."""
        for finding in other:
            self.add(finding.check, finding.example, finding.count, finding.fix)
            self._finding_by_check[finding.check].refused |= finding.refused

    def count(self, check: str) -> int:
        """Return how many cases of a check there are so far."""
        return self._finding_by_check[check].count if check in self._finding_by_check else 0

    def refuse(self, check: str) -> None:
        """Make the finding of a check that failed an error instead of a warning."""
        self._finding_by_check[check].refused = True

    def remove(self, check: str) -> None:
        """Forget the cases of a check, if it has any."""
        self._finding_by_check.pop(check, None)

    def __iter__(self) -> Iterator[Finding]:
        """Return the findings in the order of CHECKS."""
        return (self._finding_by_check[check] for check in CHECKS if check in self._finding_by_check)
