"""Dumps converted for a command that reads records: into unnamed files, with what `convert` says about it."""

from __future__ import annotations

import os
import re
import shlex
from functools import partial
from itertools import groupby
from pathlib import PurePath

from hoicli.converters.containers.source import Source
from hoicli.converters.context import DERIVED, Context, guarded
from hoicli.converters.conversion import Conversion
from hoicli.converters.formats import FORMATS, detect
from hoicli.converters.imagelist import read_image_list
from hoicli.converters.opening import Opening
from hoicli.errors import DataError, UsageError, arg
from hoicli.io.progress import Progress
from hoicli.io.spool import Spool
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import dump
from hoicli.vocabulary.datasets import load

_MORE_OPTIONS = re.compile(
    r"--(?:part|verb-base|object-order|coords|boxes|to-vocabulary|activation|lambda|threshold|box-scores|box-nms)\b"
)
"""The options of `convert` that other commands do not have."""


def spooled(paths: list[str], opening: Opening) -> list[Spool]:
    """The records of dumps, those of each in a file of their own. Raises `DataError` and `UsageError` as `convert`
    does."""
    policy, assumed, spools = ErrorPolicy(skip=opening.skip, unit="item"), list[str](), list[Spool]()
    context = Context(load(opening.dataset), policy, assumed.append)
    said = opening.dataset if opening.said else None
    conversion = Conversion(context, opening.source_format, said, fixed=opening.fixed)
    try:
        if opening.image_list is not None:
            context.images, context.image_numbers, context.image_sizes = read_image_list(opening.image_list, context)
        with no_garbage_collection(), Progress("convert", unit=" images") as progress:
            for name, records in groupby(conversion.by_file(paths, progress), key=lambda one: one[0]):
                spools.append(Spool(name, numbered=False))
                with spools[-1].filling() as file:
                    for _, record in records:
                        file.write(dump(record))
        if policy.skipped and not spools:
            raise DataError(f"nothing is left of it: {policy.summary}", place=", ".join(paths))
    except DataError as error:
        problem = _advised(error.problem, paths, opening, context)
        raise DataError(problem, place=error.place, field=error.field, code=error.code) from None
    except UsageError as error:
        raise UsageError(_advised(str(error), paths, opening, context)) from None
    # Whether labels are derived is said where Known Object is evaluated.
    assumed = [_MORE_OPTIONS.sub(r"hoicli convert \g<0>", text, count=1) for text in assumed if text != DERIVED]
    conversion.report(assumed, f"; to do this only once: {_command_line(paths, opening, context)}")
    return spools


def _advised(text: str, paths: list[str], opening: Opening, context: Context) -> str:
    """A message; if it is about an option that the command lacks, with the command line of `convert` to add it to."""
    lacking = _MORE_OPTIONS.search(text) or (arg("dataset") in text and not opening.fixed)
    return f"{text}: {_command_line(paths, opening, context)}" if lacking else text


def _command_line(paths: list[str], opening: Opening, context: Context) -> str:
    """The command line that converts these paths as it was done here."""
    words = ["hoicli", "convert"]
    if opening.source_format is not None:
        words += ["--from", opening.source_format]
    of_format = FORMATS[context.format].dataset if context.format else ""
    if opening.said or (opening.fixed and opening.dataset not in ("hico", of_format)):
        words += ["--dataset", opening.dataset]
    if opening.image_list is not None:
        words += ["--image-list", opening.image_list]
    stem = PurePath(paths[0]).name.split(".")[0]
    target = f"{stem}.jsonl" if not os.path.exists(f"{stem}.jsonl") else f"{stem}-converted.jsonl"
    return shlex.join([*words, *paths, "-o", target])


def is_known(path: str) -> bool:
    """Whether a file is in a format that `convert` reads."""
    source = Source(path)
    try:
        guarded(partial(detect, source), source)
    except DataError:
        return False
    return True
