"""Functions that declare options, and the options that several commands share.

    jobs: int = option(8, "--jobs N", "Questions under way at a time.", mark=JOBS)

A command takes a group of options (`Filtering`, `Listing`, `ResultRows`) as one parameter: `manual.command` declares
its options, and the group builds what the library takes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import TYPE_CHECKING, Any

import typer

from hoicli.commands import choices
from hoicli.commands.checks import FIGURE, OUTPUT, READ, READ_DATASET, READ_TRUTH, Count, Mark, OneOf
from hoicli.errors import UsageError

if TYPE_CHECKING:
    from hoicli.converters.opening import Opening
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.views import Views
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.results import Row
    from hoicli.vocabulary.labels import Vocabulary


ROUNDS = Count(2, 100_000)
"""Rounds of resampling. A round stores two numbers for each class and model: the most take 1 GB for each HICO-DET
model, and put an interval's ends within a hundredth of the standard error of their limits."""
ROUNDS_OR_NONE = Count(2, ROUNDS.most, or_zero=True)
JOBS = Count(1, 1024)
"""Processes, or requests in flight: few machines have more processors, and systems open no more files by default."""
DATASETS = "vocabulary.datasets:DATASETS"


def option(
    default: Any,
    declared: str,
    text: str,
    *,
    one_of: choices.Offer = (),
    offer: choices.Offer = (),
    several: bool = False,
    mark: Mark | None = None,
    panel: str | None = None,
) -> Any:
    """An option that takes a value. declared: its names and its metavar, separated by spaces; without a metavar the
    help lists the possible values.

    one_of: the possible values; any other is refused. offer: values for the Tab key; the library may accept others.
    several: the value may be several names separated by commas. mark: what is checked before the work. panel: the title
    in the help under which it is listed.
    """
    values = offer or one_of
    *names, last = declared.split()
    called = last if names else "|".join(name for name, _ in choices.entries(values))
    info: Any = typer.Option(
        default,
        *(names or [last]),
        metavar=called,
        help=text,
        autocompletion=choices.completer(values, several=several) if values else None,
        rich_help_panel=panel,
    )
    info.mark = OneOf(one_of) if one_of else mark
    return info


def flag(name: str, text: str, *, default: bool | None = False, panel: str | None = None) -> Any:
    """An option without a value; name: --this, or --this/--no-this, where None is neither."""
    return typer.Option(default, name, help=text, rich_help_panel=panel)


def argument(
    default: Any,
    metavar: str,
    text: str,
    *,
    one_of: choices.Offer = (),
    offer: choices.Offer = (),
    mark: Mark | None = None,
) -> Any:
    """An argument, declared as `option` declares an option."""
    values = offer or one_of
    info: Any = typer.Argument(
        default, metavar=metavar, help=text, autocompletion=choices.completer(values) if values else None
    )
    info.mark = OneOf(one_of) if one_of else mark
    return info


def output(mark: Mark = OUTPUT) -> Any:
    """-o, --output."""
    text = "Write to this file, whole or not at all (.gz compresses); it may not be an input; - is stdout."
    return option("-", "-o --output FILE", text, mark=mark)


A_DATASET = "hico (default), vcoco, swig, hoia, another that hoicli vocab --help names, or FILE.json"
"""How the texts of options say which datasets there are."""


def dataset(
    text: str, default: str | None = "hico", *, offer: choices.Offer = DATASETS, panel: str | None = None
) -> Any:
    """--dataset."""
    return option(default, "--dataset NAME|FILE.json", text, offer=offer, mark=READ_DATASET, panel=panel)


def figure(text: str) -> Any:
    """--plot."""
    return option(None, "--plot FILE", text, mark=FIGURE)


def bootstrap(what: str, items: str = "the images") -> Any:
    """`--bootstrap` that gives `what` intervals, from resampled `items`."""
    text = f"A 95 % interval for {what}, from N resamples of {items} (1000 is usual)."
    return option(None, "--bootstrap N", text, mark=ROUNDS)


OUT = output()
ON_ERROR = option(
    "stop",
    "--on-error",
    "A bad line stops the run, or is skipped; how many were skipped is reported.",
    one_of=("stop", "skip"),
)
PREDICTIONS = argument(
    None,
    "PREDS...",
    "Predictions of one model, several files read as one stream (two models: compare); - or nothing is stdin.",
    mark=READ,
)
MODELS = argument(None, "PREDS...", "Streams of predictions, one for each model; - or nothing is stdin.", mark=READ)
NAMES = option(None, "--name NAME", "The models' names, in the order of PREDS; repeatable, or several with commas.")
GROUND_TRUTH = option(
    None,
    "--gt FILE",
    "The ground truth, in any format that hoicli convert reads (a.mat,b.mat where it is two files), or its name "
    "(hico:test; see hoicli data).",
    offer=choices.named_truth,
    mark=READ_TRUTH,
)
PROTOCOLS = option(
    None,
    "--protocol NAME",
    "hico, hico-ko, qpic, upt, diag, inp-cc; vcoco-agent, vcoco-s1, vcoco-s2, vcoco-qpic; swig; hoia; ambiguous-hoi; "
    "hico-image, hico-image-ko; several with commas, or all (default); or a file of your own (.json).",
    offer=choices.protocols,
    several=True,
)
DATASET_OF_PROTOCOLS = dataset(f"{A_DATASET}; without --protocol: all of its protocols, FILE.json's main one.", None)
DATASET_OF_MATCHES = dataset(f"{A_DATASET}; a match stream says its own.", None)
DIAGNOSED_PROTOCOL = option(
    None,
    "--protocol NAME",
    "Whose rules say what is right: diag (default; of V-COCO vcoco-s1 or vcoco-s2), or a file that is like it.",
    offer=choices.single_protocols,
)
SPLIT = option(
    None,
    "--split NAME",
    "Adds the unseen and the seen classes of a zero-shot split: rare_first (rf-uc), non_rare_first (nf-uc), "
    "unseen_object (uo), unseen_verb (uv), uc0 to uc4, or one of FILE.json.",
    offer=choices.splits,
)
IGNORE_NO_INTERACTION = flag(
    "--ignore-no-interaction", "Leave the no_interaction classes out of every mean (520 of 600)."
)
SEED = option(0, "--seed S", "Which resamples are drawn: the same seed gives the same intervals.")
NMS_ALPHA = option(1.0, "--nms-alpha A", "The exponent of the subjects' IoU.")
NMS_BETA = option(0.5, "--nms-beta B", "The exponent of the objects' IoU.")
ALLOW_UNCOUNTED = flag(
    "--allow-uncounted",
    "Go on where most of the ground truth, or of the predictions, belongs to no class of the dataset.",
)
COUNT_IMAGES = option(
    None,
    "--count-images NAME",
    "The images in which predictions count, where not the protocol's own: all, those annotated with boxes, or those "
    "annotated with interactions (as UPT's loader has it).",
    one_of="evaluation.protocols:COUNTED_IMAGES",
)
WORDNET = option(
    None,
    "--wordnet NAME|DIR",
    "Another WordNet than the embedded 3.0: one that nltk reads, from its data folders (wordnet31) or DIR; with :LANG, "
    "words of another language for the senses of 3.0 (omw-1.4:fra).",
    mark=READ,
)
FORMAT = option(
    "auto",
    "--format NAME",
    "auto, table, jsonl, csv, md, latex or html; auto is a table on a terminal, else jsonl.",
    offer="tables.notations:FORMATS",
)
TAG = option(None, "--tag KEY=VALUE", "Put a tag on every row; repeatable.")

IOU = option(
    None,
    "--iou T",
    "Rows at these thresholds in place of the protocol's own: 0.5,0.75; or 0.5:0.95:0.05, with their mean. An "
    "extension, in the signature.",
)
SLICE = option(
    None,
    "--slice NAME",
    "Rows once more for parts of the data: objects, distance, people, pairs, verb, object, frequency, or a file of "
    "image_id<TAB>slice lines; other cuts as distance:0.5:1; several with commas.",
    offer=choices.slices,
    several=True,
)


@dataclass(frozen=True)
class Filtering:
    """Which predictions count."""

    top_k: int | None = option(None, "--top-k K", "Keep only the K best triplets of each image.")
    nms: float | None = option(
        None,
        "--nms T",
        "Pair NMS: drop a triplet whose IoU_subject^a * IoU_object^b with a better one exceeds T (CDN: 0.7).",
    )
    nms_alpha: float = NMS_ALPHA
    nms_beta: float = NMS_BETA
    allow_uncounted: bool = ALLOW_UNCOUNTED

    def given(self) -> bool:
        """Whether any of them has another value than its default."""
        return any(getattr(self, option.name) != getattr(option.default, "default", None) for option in fields(self))

    def filters(self) -> Filters:
        """These options as the library's `Filters`; raises `UsageError` for an impossible value."""
        from hoicli.evaluation.filters import Filters

        return Filters(**asdict(self))


@dataclass(frozen=True)
class Dumps:
    """How files are read that are not JSONL: as `hoicli convert` reads them."""

    source_format: str | None = option(
        None,
        "--from NAME",
        "The format of a file that is not JSONL, where detection is wrong (hoicli convert --list): of --gt if it is "
        "one of ground truth, else of the other files.",
        one_of=choices.readable_formats,
    )
    image_list: str | None = option(
        None,
        "--image-list FILE",
        "The order of the images for a file, not JSONL, that has only positions or numbers (hoicli help convert).",
        mark=READ,
    )

    def opening(self, dataset: str | None, policy: ErrorPolicy | None = None, *, within: str | None = None) -> Opening:
        """What the command's paths are read as. dataset: the value of --dataset. within: the dataset that the command
        works in; None for a command that takes the records of any. policy: of a command that has --on-error."""
        from hoicli.converters.opening import Opening

        return Opening(
            dataset=dataset or within or "hico",
            said=dataset is not None,
            fixed=within is not None,
            source_format=self.source_format,
            image_list=self.image_list,
            skip=policy is not None and policy.skip,
        )


@dataclass(frozen=True)
class Viewing:
    """What rows are wanted besides those of the protocols themselves."""

    iou: list[str] | None = IOU
    slice_: list[str] | None = SLICE

    def views(self, vocabulary: Vocabulary) -> Views:
        """What the library takes; raises `UsageError` for a threshold or a slice that there is not."""
        from hoicli.evaluation.views import ALONE, Views

        if not self.iou and not self.slice_:
            return ALONE
        return Views.parse(self.iou or [], self.slice_ or [], vocabulary)

    def tags(self) -> list[str]:
        """The tags that rows get of them."""
        return [*(["iou"] if self.iou else []), *(["slice", "part"] if self.slice_ else [])]


@dataclass(frozen=True)
class Listing:
    """Where rows go, and how they are written."""

    format_: str = FORMAT
    output: str = OUT

    def __post_init__(self) -> None:
        self.notation()  # an unknown format fails before the work

    def notation(self) -> str:
        """The format in force."""
        from hoicli.tables.notations import chosen_format

        return chosen_format(self.format_, self.output)

    def write(self, *blocks: Iterable[Row], above: Sequence[str] = ()) -> None:
        """Write rows; each block is a table of its own. above: sentences that stand above where people read."""
        from hoicli.io.outputs import open_output
        from hoicli.tables.notations import render, sentences

        rendered = [*sentences(above, self.notation()), *(render(block, self.notation()) for block in blocks)]
        with open_output(self.output) as write:
            write(b"\n".join(rendered))

    def line(self, text: str) -> None:
        """Write one line of text, whatever the format."""
        from hoicli.io.outputs import open_output

        with open_output(self.output) as write:
            write(os.fsencode(f"{text}\n"))


@dataclass(frozen=True)
class ResultRows(Listing):
    """How result rows are written: their tags, and what to do about a bad line of the input."""

    tag: list[str] | None = TAG
    on_error: str = ON_ERROR

    def tags(self, *taken: str) -> dict[str, str]:
        """The tags; raises `UsageError` for a bad one, and for one in `taken`, which the command sets itself."""
        from hoicli.records.results import parse_tags

        return parse_tags(self.tag or [], taken=taken)

    def policy(self) -> ErrorPolicy:
        """What to do with a bad line."""
        return policy(self.on_error)


def policy(on_error: str, unit: str = "line") -> ErrorPolicy:
    """What --on-error asks for."""
    from hoicli.records.intake import ErrorPolicy

    return ErrorPolicy(skip=on_error == "skip", unit=unit)


def inputs(paths: list[str] | None, what: str) -> list[str]:
    """The streams to read: stdin when none is named. Raises `UsageError` if stdin is then a terminal: the command would
    seem to hang."""
    if not paths and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(f"give {what}, or pipe them in (- reads the terminal)")
    return paths or ["-"]


def required(gt: str | None, command: str) -> str:
    """The ground truth of a command that needs it; raises `UsageError` if none is given."""
    if gt is None:
        raise UsageError(f"{command}: give the ground truth with --gt FILE")
    return gt


def separated(values: Sequence[str] | None) -> list[str]:
    """The names in an option that may be repeated and may hold several names separated by commas."""
    return [name.strip() for value in values or () for name in value.split(",")]


def numbers(name: str, text: str | None) -> list[float]:
    """The finite numbers of an option that takes several with commas; raises `UsageError` that quotes a bad one."""
    found = []
    for part in [] if text is None else text.split(","):
        try:
            number = float(part)
        except ValueError:
            number = float("nan")
        if not isfinite(number):
            raise UsageError(f"{name} {text}: {part.strip()!r} is no number; give numbers with commas between")
        found.append(number)
    return found


def top_of(text: str, option: str = "--top") -> int | None:
    """The value of --top, None for all; raises `UsageError` for anything but a whole number or all."""
    if text.strip() == "all":
        return None
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"{option} {text}: give a whole number, or all")
    return int(text[:9])


def at_least_zero(name: str, number: int) -> None:
    """Raises `UsageError` for a number below 0."""
    if number < 0:
        raise UsageError(f"{name} {number}: give a whole number of at least 0")
