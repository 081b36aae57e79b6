"""A report from its options to its file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hoicli.errors import UsageError
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import explicit, protocols
from hoicli.io.outputs import open_output
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import parse_tags
from hoicli.report import html, markdown
from hoicli.report.content import build
from hoicli.report.document import Document
from hoicli.report.measured import Request, measure
from hoicli.report.method import Source
from hoicli.report.rows import read_rows
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.datasets import load

FORMATS = {"html": html.render, "md": markdown.render}
ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}


@dataclass(frozen=True)
class Options:
    """The options of the command, as they were given."""

    gt: str
    predictions: Sequence[str]
    dataset: str = "hico"
    protocols: Sequence[str] = ()
    split: str | None = None
    top: int = 10
    rows: Sequence[str] = ()
    images: str | None = None
    title: str | None = None
    tags: Sequence[str] = ()
    top_k: int | None = None
    nms: float | None = None
    nms_alpha: float = 1.0
    nms_beta: float = 0.5
    allow_uncounted: bool = False
    bootstrap: int | None = None
    seed: int = 0
    skip: bool = False

    def request(self) -> Request:
        """What is to be measured. Raises `UsageError` for what cannot be."""
        if self.top < 0:
            raise UsageError(f"--top {self.top}: give a whole number of at least 0")
        if self.images is not None and not Path(self.images).is_dir():
            raise UsageError(f"--images {self.images}: there is no such folder")
        vocabulary = load(self.dataset)
        return Request(
            vocabulary=vocabulary,
            protocols=protocols(list(self.protocols) or ["all"], self.dataset),
            filters=Filters(
                top_k=self.top_k,
                nms=self.nms,
                nms_alpha=self.nms_alpha,
                nms_beta=self.nms_beta,
                allow_uncounted=self.allow_uncounted,
            ),
            split=vocabulary.split(self.split) if self.split else None,
            tags=parse_tags(list(self.tags)),
            top=self.top,
            resampling=None if self.bootstrap is None else Resampling.checked(self.bootstrap, self.seed),
            named=explicit(self.protocols),
        )

    def source(self) -> Source:
        """The options as words of a command line, for whoever wants to compute a number again."""
        common = [] if self.dataset == "hico" else ["--dataset", self.dataset]
        common += [word for tag in self.tags for word in ("--tag", tag)]
        common += ["--on-error", "skip"] if self.skip else []
        common += ["--allow-uncounted"] if self.allow_uncounted else []
        filters = [] if self.top_k is None else ["--top-k", str(self.top_k)]
        if self.nms is not None:
            filters += ["--nms", f"{self.nms:g}", "--nms-alpha", f"{self.nms_alpha:g}"]
            filters += ["--nms-beta", f"{self.nms_beta:g}"]
        return Source(
            gt=self.gt,
            predictions=self.predictions,
            options=common,
            protocol=["--protocol", ",".join(self.protocols)] if self.protocols else [],
            filters=filters,
            split=["--split", self.split] if self.split else [],
            bootstrap=[] if self.bootstrap is None else ["--bootstrap", str(self.bootstrap), "--seed", str(self.seed)],
            rows=self.rows,
            title=self.title,
        )


def chosen_format(name: str, output: str) -> str:
    """A key of FORMATS; raises `UsageError` for an unknown one, or where `auto` cannot tell by the output's name."""
    if name not in ("auto", *FORMATS):
        raise UsageError(f"--format {name}: choose from auto, {', '.join(FORMATS)}")
    if name != "auto":
        return name
    ending = Path(output.removesuffix(".gz").removesuffix(".zst")).suffix.lower()
    if output == "-":
        return "html"
    if ending not in ENDINGS:
        raise UsageError(f"-o {output}: end the name in .html, .htm or .md, or say --format html or md")
    return ENDINGS[ending]


def write_report(options: Options, output: str, format_: str) -> None:
    """Measure and write. Nothing is written where the data is wrong (`DataError`) or the call is (`UsageError`)."""
    render = FORMATS[chosen_format(format_, output)]
    with open_output(output) as write:  # first, so that a folder that is not there is said before the work
        write(render(make_document(options)))


def make_document(options: Options) -> Document:
    """The report's document; streams are read as often as need be."""
    request = options.request()
    gt, predictions = Stream([options.gt], "ground truth"), Predictions(options.predictions)
    policy, pair_policy, row_policy = (ErrorPolicy(skip=options.skip) for _ in range(3))
    with gt.rereadable(), predictions.rereadable():
        given = read_rows(options.rows, row_policy)
        measured = measure(predictions, gt, request, policy, pair_policy)
    policy.report()
    row_policy.report()
    if pair_policy.skipped > policy.skipped:  # lines whose pairs alone are wrong
        pair_policy.report()
    return build(measured, options.source(), given, options.images)
