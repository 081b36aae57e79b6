"""What may be meant by an option that a command does not have."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from hoicli.errors import arg, nearest
from hoicli.interface.options import Parameter

_SAME_MEANING = (
    ("k", "top", "topk", "top_k", "limit", "max", "max_dets", "n"),
    ("iou", "thresh", "threshold", "overlap", "iou_thr", "ovr_thresh"),
    ("min_score", "det_threshold", "score", "conf", "confidence", "threshold"),
    ("output", "out", "o", "outfile", "save", "dest", "file", "output_file"),
    ("gt", "truth", "ground_truth", "annotations", "ann", "anno", "labels", "reference"),
    ("jobs", "workers", "num_workers", "threads", "processes", "cores"),
    ("bootstrap", "ci", "interval", "intervals", "confidence_interval", "significance"),
    ("per_class", "classes", "class", "categories", "per_category"),
    ("tag", "name", "model", "label", "run"),
    ("images", "img", "image_dir", "img_dir", "image_folder", "image_root"),
    ("image_list", "ids", "image_ids", "img_ids"),
    ("dataset", "data", "benchmark", "vocab"),
    ("from_", "input_format", "type", "reader"),
    ("with_no_interaction", "no_interaction", "ignore_no_interaction"),
    ("on_error", "skip", "ignore_errors", "strict", "force"),
    ("quiet", "silent"),
)
"""Names of options, and other names that people give them; the first that a command has is suggested."""
_SMALL_WORDS = frozenset(("a", "as", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"))
"""Words which two options may share without being alike."""
_NOTATIONS = {name: name for name in ("table", "jsonl", "csv", "md", "latex", "html")}
_NOTATIONS |= {"json": "jsonl", "tex": "latex", "markdown": "md"}
"""The value of `--format` that a name stands for."""


def suggest_option(
    name: str, parameters: Sequence[Parameter], commands_with: Callable[[str], Sequence[str]]
) -> str | None:
    """Return the end of the message about an option that a command does not have: which one may be meant, else which
    commands have it; None if neither is known. name: as typed, such as "--top"; parameters: the command's;
    commands_with: returns the commands that have an option, by its name in Python."""
    typed = name.lstrip("-").split("=")[0].replace("-", "_").lower()
    text_of = {parameter.name: parameter.text for parameter in parameters}
    if typed in _NOTATIONS and "format" in text_of:
        return f"{arg('format', _NOTATIONS[typed])} may be meant"
    alike = nearest(typed, text_of, lowest_ratio=0.8)
    same_meaning = chain.from_iterable(names for names in _SAME_MEANING if typed in names)
    candidates = (*(option for option in same_meaning if option in text_of), *alike, _same_words(typed, text_of))
    meant = next(filter(None, candidates), None)
    if meant is None and (commands := commands_with(typed)):
        return f"{', '.join(f'hoicli {command}' for command in commands)} {'has' if len(commands) == 1 else 'have'} it"
    meant = meant or next(iter(nearest(typed, text_of)), None)
    if meant is None:
        return None
    first_sentence = re.split(r"(?<=\.) ", text_of[meant])[0].rstrip(".")
    meant_text = next(parameter.option_text() for parameter in parameters if parameter.name == meant)
    return f"{meant_text} may be meant: {first_sentence}"


def _same_words(typed: str, text_of: Mapping[str, str]) -> str | None:
    """Return the option that shares most words with the typed name ("iou" of "iou_threshold"), None if none shares one.
    text_of: the help of each option."""
    words = set(typed.split("_")) - _SMALL_WORDS
    shared = {option: len(words & set(option.strip("_").split("_"))) for option in text_of}
    best = max(shared, key=lambda option: shared[option], default="")
    return best if shared.get(best) else None
