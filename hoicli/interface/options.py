"""The parameters of commands, each declared once for the shell and for Python, and those that several commands share.

    def evaluate(gt: Truth = None, *, seed: Seed = 0, grid: Annotated[str | None, Option("NAME", one_of=...)] = None,
                 **shared: Unpack[Viewed])

The type says what Python takes, the `Option` what the shell shows and what is checked before the command starts. A
parameter is called as its option is (`top_k`: `--top-k`; `from_`: `--from`). An option's text stands here, or in the
docstring of its command, under "Arguments:".
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias, TypedDict

if sys.version_info >= (3, 11):
    from typing import Unpack as Unpack
else:
    from typing_extensions import Unpack as Unpack

from hoicli.errors import IN_PYTHON, arg
from hoicli.interface import choices
from hoicli.interface.checks import OUTPUT, READ, READ_DATASET, Check, Count, OneOf, Read


@dataclass(frozen=True)
class Option:
    """How the shell declares a parameter.

    metavar: what help shows in place of a value; "" lists the possible ones. text: its help. one_of: the possible
    values; any other is refused. offer: values that the Tab key completes; the command may take others. several: the
    value may be several names with commas between, and the option may be repeated; repeated: it may be repeated, but
    commas do not separate. check: what is checked before the command starts. short: another name (-o). panel: the title
    under which help lists it.
    """

    metavar: str = ""
    text: str = ""
    one_of: choices.Offer = ()
    offer: choices.Offer = ()
    several: bool = False
    repeated: bool = False
    check: Check | None = None
    short: str = ""
    panel: str = ""

    @property
    def effective_check(self) -> Check | None:
        """Return the check to make before the command starts: that the value is in `one_of`, or else `check`."""
        return OneOf(self.one_of) if self.one_of else self.check


@dataclass(frozen=True)
class Argument(Option):
    """A positional argument of the shell. If its metavar ends in ..., it takes any number of values."""


@dataclass(frozen=True)
class Piped(Argument):
    """A positional argument that names files to read. If it is left out, the command reads stdin."""

    check: Check | None = READ


@dataclass(frozen=True)
class Parameter:
    """A parameter of a command. kind: the type that Python takes; option: how the shell declares it; text: its help."""

    name: str
    kind: Any
    default: Any
    option: Option
    text: str

    def option_text(self, value: object = None) -> str:
        """Return what messages call the parameter, with its value if one is given: --top 3 and PREDS in the shell,
        top=3 in Python."""
        if isinstance(self.option, Argument) and not IN_PYTHON.get():
            metavar = self.option.metavar.rstrip(".")
            return metavar if value is None else f"{metavar} {value}"
        return arg(self.name, value)


Path: TypeAlias = str | os.PathLike[str]
Given: TypeAlias = Path | Sequence[Path] | Iterable[Mapping[str, Any]] | Mapping[str, Any]
"""A path, or several that are read as one stream, or the name of ground truth (hico:test); records, as in a line of
JSONL; or the arrays of each image by its id, named as the arguments of `Evaluator.update`, or its rows of numbers
(`records.interaction_arrays`)."""
Streams: TypeAlias = Given | Sequence[Given]
"""The streams of several models, each as `Given`; each path is a model's."""
Names: TypeAlias = str | Sequence[str] | None
"""A name, or several, in a list or with commas between."""
Numbers: TypeAlias = float | str | Sequence[float | str] | None
"""A number or several, in a list or with commas between, or a range as in "0.5:0.95:0.05"."""
Tags: TypeAlias = Mapping[str, str] | Names
"""Tags by name; in the shell KEY=VALUE."""

ROUNDS = Count(2, 100_000)
"""Rounds of resampling. A round stores two numbers for each class and model: the most take 1 GB for each HICO-DET
model, and put an interval's ends within a hundredth of the standard error of their limits."""
ROUNDS_OR_NONE = Count(2, ROUNDS.maximum, or_zero=True)
JOBS = Count(1, 1024)
"""Processes, or requests in flight: few machines have more processors, and systems open no more files by default."""
DATASETS = "vocabulary.datasets:DATASETS"
DATASET = "NAME|FILE.json"
A_DATASET = "hico (default), vcoco, swig, hoia, another one (see hoicli vocab --help), or FILE.json"
"""How the texts of options say which datasets there are."""


def dataset(text: str = "", *, offer: choices.Offer = DATASETS, panel: str = "") -> Option:
    """Return the option --dataset. text: its help; offer: the names that the Tab key completes; panel: the title under
    which help lists it."""
    return Option(DATASET, text, offer=offer, check=READ_DATASET, panel=panel)


def bootstrap(what: str, items: str = "the images") -> Option:
    """Return the option --bootstrap, for its help: what gets confidence intervals (in words), and which items are
    resampled for them."""
    return Option("N", f"A 95 % interval for {what}, from N resamples of {items} (1000 is usual).", check=ROUNDS)


def output(mark: Check = OUTPUT) -> Option:
    """Return the option -o, --output, with the check of what is written (a file, unless another one is given)."""
    text = "Write to this file (compressed if it ends in .gz); - is stdout."
    return Option("FILE", text, check=mark, short="-o")


_TRUTH = (
    "The ground truth, in any format that hoicli convert reads (a.mat,b.mat if it is two files), or its name "
    "(hico:test; see hoicli data)."
)
Truth = Annotated[Given | None, Option("FILE", _TRUTH, offer=choices.NAMED_TRUTH, check=READ)]
_PREDICTIONS = (
    "Predictions of one model; several files are one stream (for two models: compare). - or nothing is stdin."
)
Predictions = Annotated[Given | None, Piped("PREDS...", _PREDICTIONS)]
Models = Annotated[Streams | None, Piped("PREDS...", "Predictions, one file for each model; - or nothing is stdin.")]
_NAMES = "The models' names, in the order of PREDS; repeatable, or several with commas."
ModelNames = Annotated[Names, Option("NAME", _NAMES, several=True)]
_PROTOCOLS = (
    "hico, hico-ko, qpic, upt, diag, inp-cc, gen-vlkt, ggnet, ggnet-ko, diag-paper, hico-image, hico-image-ko; "
    "vcoco-agent, vcoco-s1, vcoco-s2, vcoco-qpic, vcoco-pvic; swig; hoia; ambiguous-hoi; or a file of your own "
    "(.json); several with commas. all (default) is every one of the dataset but gen-vlkt, ggnet, ggnet-ko, "
    "diag-paper, vcoco-pvic, hico-image and hico-image-ko."
)
Protocols = Annotated[Names, Option("NAME", _PROTOCOLS, offer=choices.PROTOCOLS, several=True)]
_DIAGNOSED = (
    "The protocol that decides what is correct: diag (default), diag-paper (the paper's text); for V-COCO vcoco-s1 "
    "(default) or vcoco-s2; or a file of your own that is like one of these."
)
DiagnosedProtocol = Annotated[str | None, Option("NAME", _DIAGNOSED, offer="evaluation.protocols:PROTOCOLS")]
Dataset = Annotated[Path | None, dataset(f"{A_DATASET}.")]
DatasetOfProtocols = Annotated[
    Path | None, dataset(f"{A_DATASET}. Without --protocol: all of its protocols, or FILE.json's main one.")
]
DatasetOfMatches = Annotated[Path | None, dataset(f"{A_DATASET}; a match stream names its own.")]
_SPLIT = (
    "Add rows for the unseen and the seen classes of a zero-shot split: rare_first (rf-uc), non_rare_first (nf-uc), "
    "unseen_object (uo), unseen_verb (uv), unseen_action (ua), uc0 to uc4, or one that FILE.json has."
)
Split = Annotated[str | None, Option("NAME", _SPLIT, offer=choices.splits)]
IgnoreNoInteraction = Annotated[
    bool, Option("", "Leave the no_interaction classes out of every mean (HICO-DET: 520 of 600 are left).")
]
_IOU = "Use these IoU thresholds in place of the protocol's: 0.5,0.75; or 0.5:0.95:0.05, which adds their mean."
Iou = Annotated[Numbers, Option("T", _IOU, several=True)]
_SLICE = (
    "Add rows for parts of the data: objects, distance, subject, people, pairs, verb, object, frequency or "
    "test_frequency (distance:0.5:1 sets other limits), or a file of image_id<TAB>slice lines; several with commas."
)
Slice = Annotated[Names, Option("NAME", _SLICE, offer=choices.SLICES, several=True)]
_BY = (
    "Evaluate the images of each value of these fields of the ground truth's records (camera; or corruption,severity, "
    "as hoicli corrupt writes them) by themselves; rows have the values as tags."
)
By = Annotated[Names, Option("FIELD", _BY, several=True)]
Seed = Annotated[int, Option("S", "The seed of the resamples: the same seed gives the same intervals.")]
TopK = Annotated[int | None, Option("K", "Keep only the K best triplets of each image.")]
_NMS = (
    "Pair NMS: drop a triplet if IoU_subject^a * IoU_object^b with a better one of its class exceeds T (CDN: 0.7). a "
    "is 1 and b is 0.5, unless given as T/a/b."
)
Nms = Annotated[float | str | None, Option("T", _NMS)]
_UNCOUNTED = "Print numbers even if most of the ground truth or predictions belong to no class of the dataset."
AllowUncounted = Annotated[bool, Option("", _UNCOUNTED)]
_FROM = (
    "The format of a file that is not JSONL, if it is detected wrongly (hoicli convert --list has the names). A format "
    "of ground truth is for the ground truth, any other for the other files."
)
From = Annotated[str | None, Option("NAME", _FROM, one_of=choices.readable_formats)]
_IMAGE_LIST = "Ground truth or a list of names: the images, in order, of a file that only numbers them."
ImageList = Annotated[Path | None, Option("FILE", _IMAGE_LIST, check=READ)]
_WORDNET = (
    "Use another WordNet than the embedded 3.0: one that nltk reads, from its data folders (wordnet31) or DIR; with "
    ":LANG, words of another language for the senses of 3.0 (omw-1.4:fra)."
)
WordNet = Annotated[Path | None, Option("NAME|DIR", _WORDNET, check=READ)]
_SIM = (
    "Similarities of senses: tables that hoicli shoe-sim writes, repeatable; or one of its backends that ask no model "
    "(lexical, wordnet:wup, ...), which rates what these files need."
)
OFFLINE = "shoe.settings:OFFLINE"
Sim = Annotated[Given | None, Option("FILE|NAME", _SIM, offer=OFFLINE, repeated=True, check=Read(names=OFFLINE))]
_ON_ERROR = "What to do about a bad line: stop, or skip it and count it."
OnError = Annotated[str, Option("", _ON_ERROR, one_of=("stop", "skip"))]
Tag = Annotated[Tags, Option("KEY=VALUE", "Add a tag to every row; repeatable.", repeated=True)]


# Groups of options that many commands share. A command's function takes one group, as `**shared: Unpack[Viewed]`; in
# the shell and in Python its members are options like all others.


class Files(TypedDict, total=False):
    """How files are read."""

    from_: From
    image_list: ImageList
    on_error: OnError


class Counted(Files, total=False):
    """The options of `Files`, and one for commands that refuse files whose records mostly belong to no class."""

    allow_uncounted: AllowUncounted


class Filtered(Counted, total=False):
    """The options of `Counted`, and which predictions are used."""

    top_k: TopK
    nms: Nms


class Viewed(Filtered, total=False):
    """The options of `Filtered`, and for which IoU thresholds and which parts of the data there are more rows."""

    iou: Iou
    slice: Slice


class GroupedFiles(Files, total=False):
    """The options of `Files`, and by which fields records are grouped."""

    by: By


class GroupedCounted(Counted, total=False):
    """The options of `Counted`, and by which fields records are grouped."""

    by: By


class GroupedViewed(Viewed, total=False):
    """The options of `Viewed`, and by which fields records are grouped."""

    by: By


DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(("by", "iou", "slice", "top_k", "nms")), "allow_uncounted": False,
    **dict.fromkeys(("from_", "image_list")), "on_error": "stop",
}  # fmt: skip
"""The default of each option of the groups, in the order of help."""


def notation(piped: str) -> Option:
    """Return the option --format of rows. piped: the format that `auto` chooses if stdout is no terminal."""
    otherwise = "table" if piped == "table" else f"table on a terminal and {piped} in a pipe"
    text = f"auto, table, jsonl, csv, md, latex or html. auto: by the ending of -o, else {otherwise}."
    return Option("NAME", text, one_of="tables.notations:FORMATS")
