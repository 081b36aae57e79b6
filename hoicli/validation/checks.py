"""Every check `hoicli validate` knows, and its findings.

Most evaluation accidents are files that were read "successfully": another box convention, another label order, another
set of images. Each check counts its cases and keeps the first as an example. An error is something no metric can use;
a warning is something a metric would use without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hoicli.errors import MALFORMED, arg
from hoicli.evaluation.match_stream import UNKNOWN_PROTOCOL
from hoicli.records.image import UNKNOWN_LABEL
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE
from hoicli.records.parsing import Record

ERRORS = {  # a record's problems have their codes from where they are found
    MALFORMED: f"mend what is named; other commands leave such lines out with {arg('on_error', 'skip')}",
    UNKNOWN_LABEL: "use the vocabulary's spelling (hoicli vocab); a wrong object order looks like this too",
    UNKNOWN_PROTOCOL: "match the predictions again, with this version",
    DUPLICATE_IMAGE: "keep one line an image; check two models' dumps one by one",
    "another-dataset": "name the benchmark they belong to",
    UNKNOWN_IMAGE: "give the ground truth of the same set and split",
    "swapped-files": "give the ground truth with --gt, and the predictions without",
}
WARNINGS = {
    "image-without-predictions": "its triplets count as missed; normal for images without annotations",
    "inverted-box": "x2 < x1 or y2 < y1: it overlaps nothing; no metric takes more than one in a hundred",
    "looks-like-xywh": "convert to [x1, y1, x2, y2]: x2 = x + w",
    "box-outside-image": "another scale or convention? records hold pixels of the original image",
    "relative-box": "all numbers are at most 1: multiply by the image's width and height",
    "score-outside-range": "fine for ranking; a sum or a scaled score?",
    "all-scores-equal": "nothing ranks the predictions: mAP then depends on tie-breaking",
    "duplicate-triplet": f"the second of two equal predictions is a false positive; {arg('nms')} removes it",
    "doubled-annotation": "list each once: both count, and most protocols find only one",
    "no-such-interaction": "the vocabulary has no class of this verb and object: never counted",
    "subject-no-person": "qpic and diag ignore it, the other protocols do not look",
    "another-object-order": "convert again with the order meant: evaluated so, they score near zero",
    "another-verb-numbering": "convert again with the numbers meant: evaluated so, they score near zero",
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
