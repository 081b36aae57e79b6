"""A report from its options to its file."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from hoicli.errors import UsageError
from hoicli.io.outputs import open_output
from hoicli.io.progress import READING, READING_TRUTH, Job
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.report import html, markdown
from hoicli.report.content import build
from hoicli.report.document import Document
from hoicli.report.measured import measure
from hoicli.report.options import Options
from hoicli.report.rows import read_rows
from hoicli.resampling.rounds import RESAMPLING, SWAPPING

FORMATS = {"html": html.render, "md": markdown.render}
ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}


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
    """The report's document; ground truth is read more than once."""
    request = options.request()
    gt = Stream([options.gt], "ground truth", options.opening.truth)
    models = options.models()
    policy, pair_policy, row_policy = (ErrorPolicy(skip=options.skip) for _ in range(3))
    count = len(models)
    work = RESAMPLING * count * len(request.protocols)
    work += RESAMPLING * count + SWAPPING * (count - 1) if count > 1 else 0
    rounds = 0 if request.resampling is None else request.resampling.rounds
    expected = READING_TRUTH * (1 + count) + READING * count + work * rounds
    with ExitStack() as stack:
        for stream in (gt, *(model.stream for model in models)):
            stack.enter_context(stream.rereadable())
        stack.enter_context(Job("report", expected))
        given = read_rows(options.rows, row_policy)
        measured = measure(models, gt, request, policy, pair_policy)
    policy.report()
    row_policy.report()
    pair_policy.report()
    return build(measured, options, given)
