"""Any file as an input of a stream: JSONL is read as it is, and what else `convert` reads is converted first.

    Stream(["instances_test2015.json"], "ground truth", Opening().of(truth=True))

Detection, assumptions and messages are those of `convert`. The records are kept in an unnamed temporary file, so that
they can be read twice and shared among processors; their errors name the dump and the image.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from typing import Literal

import orjson

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.inputs import FIRST, MARK, file_kind, open_input, parts_of
from hoicli.io.messages import Progress
from hoicli.io.streams import LONGEST_LINE, File, Input, Spool
from hoicli.io.workers import no_garbage_collection
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load

Content = Literal["lines", "dump", "unknown"]

_RECORD = re.compile(rb'\{\s*("image_id"\s*:|[^"\s])')
"""How a line of records or matches begins, where hoicli wrote it, and a line that is no JSON; others are parsed to see
what they are."""
_MORE_OPTIONS = "id|part|verb-base|object-order|coords|boxes|to-vocabulary|activation|lambda|threshold"
"""The options of `convert` that other commands do not have."""


@dataclass(frozen=True)
class Opening:
    """What the paths of a command's streams are read as.

    dataset: the command's; said: whether the user named it with --dataset; fixed: whether a format of another dataset
    is refused, since the command works in this one. source_format: a name in FORMATS, None to detect it. image_list:
    the value of --image-list. policy: the command's, about bad items, too.
    """

    dataset: str = "hico"
    said: bool = False
    fixed: bool = True
    source_format: str | None = None
    image_list: str | None = None
    policy: ErrorPolicy = field(default_factory=ErrorPolicy)

    def specialise(self, *, truth: bool) -> Opening:
        """For ground truth, or for predictions: a format of the other is not that of these files."""
        if self.source_format is None:
            return self
        from hoicli.converters.formats import FORMATS

        fits = (FORMATS[self.source_format].holds == "ground truth") == truth
        return self if fits else replace(self, source_format=None)

    def __call__(self, paths: Sequence[str]) -> list[Input]:
        """The paths with their dumps converted; `a.mat,b.mat` names two files. Raises `DataError` as `convert` does,
        and `UsageError` for a format given for what is no file, and for a path given twice: its images would count
        twice."""
        files = list(chain.from_iterable(parts_of(path) for path in paths))
        twice = next((path for path in files if files.count(path) > 1), None)
        if twice is not None:
            raise UsageError(f"{twice} is given twice; keep one")
        named = [path != "-" and (os.path.isfile(path) or os.path.isdir(path)) for path in files]
        if self.source_format is not None:
            if not any(named) and all(path == "-" or os.path.exists(path) for path in files):
                way = f"hoicli convert --from {self.source_format} - |"
                raise UsageError(
                    f"{arg('from_', self.source_format)}: stdin and pipes are JSONL; name the file, or: {way}"
                )
            contents: list[Content] = ["dump" if is_dump else "lines" for is_dump in named]
        else:
            contents = [content(path) if is_dump else "lines" for path, is_dump in zip(files, named, strict=True)]
        if "dump" in contents:  # a list of image ids, the companion of a dump
            contents = ["dump" if content_kind == "unknown" else content_kind for content_kind in contents]
        inputs: list[Input] = []
        for converted, run in groupby(zip(files, contents, strict=True), key=lambda pair: pair[1] == "dump"):
            together = [path for path, _ in run]
            inputs += _spool_dumps(together, self) if converted else map(File, together)
        return inputs


def content(path: str) -> Content:
    """Return what a file holds: lines of JSON (any objects, one a line), what `convert` reads, or neither. Raises
    `DataError` if it cannot be read."""
    if file_kind(path, b"") != "unknown":  # by its name alone
        return "dump"
    with open_input(path) as stream:
        head: bytes = stream.peek(1)[:FIRST]  # type: ignore[attr-defined]
        kind = file_kind(path, head)
        if kind == "unknown":  # image ids, a pickle without a mark at its beginning, or a text in a format's own form
            numbers = head.translate(None, b" \t\r\n").isdigit()
            return "unknown" if numbers or not (_ends_as_pickle(path) or _is_known(path)) else "dump"
        if kind != "json-object":
            return "dump"
        if _RECORD.match(head.lstrip(MARK + b" \t\r\n")):
            return "lines"
        line = next((line for line in iter(partial(stream.readline, LONGEST_LINE + 1), b"") if line.strip()), b"")
        line = line.removeprefix(MARK)
        try:
            first = orjson.loads(line)
        except orjson.JSONDecodeError:
            cut = len(line) <= LONGEST_LINE and line.strip() != b"{"  # a bad line, or the first of a document
            return "lines" if cut and b'"image_id"' in line else "dump"
        alone = not any(line.strip() for line in iter(partial(stream.readline, LONGEST_LINE + 1), b""))
    return "dump" if alone and "image_id" not in first and _is_known(path) else "lines"


def _ends_as_pickle(path: str) -> bool:
    """Whether the last byte of a file ends a pickle: the first protocols have no mark at the beginning."""
    with open(path, "rb") as stream:
        stream.seek(max(0, os.path.getsize(path) - 1))
        return stream.read() == b"."


def _is_known(path: str) -> bool:
    """Whether a file is in a format that `convert` reads."""
    from hoicli.converters.containers.source import Source
    from hoicli.converters.context import run_step
    from hoicli.converters.formats import detect

    source = Source(path)
    try:
        run_step(partial(detect, source), source)
    except DataError:
        return False
    return True


# Conversion


def _spool_dumps(paths: list[str], opening: Opening) -> list[Spool]:
    """The records of dumps, those of each in a file of their own. Raises `DataError` and `UsageError` as `convert`
    does."""
    # Most runs read JSONL, and need none of this.
    from hoicli.converters.context import DERIVED, Context
    from hoicli.converters.conversion import Conversion
    from hoicli.converters.images import read_image_list

    policy, spools = ErrorPolicy(skip=opening.policy.skip, unit="item"), list[Spool]()
    context = Context(load(opening.dataset), policy)
    dataset_said = opening.dataset if opening.said else None
    conversion = Conversion(context, opening.source_format, dataset_said, fixed=opening.fixed)
    try:
        if opening.image_list is not None:
            read_image_list(opening.image_list, context)
        with no_garbage_collection(), Progress("convert", unit=" images") as progress:
            for name, records in groupby(conversion.convert_files(paths, progress), key=lambda row: row[0]):
                spools.append(_spool(name, (line for _, _, line in records)))
    except DataError as error:
        problem = _advise_convert(error.problem, opening)
        raise DataError(problem, place=error.place, field=error.field, code=error.code) from None
    except UsageError as error:
        raise UsageError(_advise_convert(str(error), opening)) from None
    # Whether labels are derived is said where Known Object is evaluated.
    context.notes = [_advise_convert(text, opening) for text in context.notes if text != DERIVED]
    conversion.report()
    opening.policy.earlier += policy.skipped
    return spools


def _spool(name: str, lines: Iterable[bytes]) -> Spool:
    """Return the lines of a file, kept."""
    spool = Spool(name, numbered=False)
    with spool.filling() as file:
        file.writelines(lines)
    return spool


def _advise_convert(text: str, opening: Opening) -> str:
    """A message that names `convert` with an option that the command lacks."""
    lacking = _MORE_OPTIONS if opening.fixed else f"{_MORE_OPTIONS}|dataset"
    return re.sub(rf"--(?:{lacking})\b", r"hoicli convert \g<0>", text, count=1)
