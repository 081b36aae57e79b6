"""Any file as an input of a stream: JSONL is read as it is, and what else `convert` reads is converted first.

    Stream(["instances_test2015.json"], "ground truth", Opening().specialise(truth=True))

Detection, assumptions and messages are those of `convert`. The records are kept in an unnamed temporary file, so that
they can be read twice and shared among processors; their errors name the dump and the image."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, groupby
from typing import Literal

import orjson

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.memory import no_garbage_collection
from hoicli.io.messages import Progress
from hoicli.io.opened_files import FIRST, MARK, NO_SUCH_FILE, file_kind, is_early_pickle, open_input, parts_of
from hoicli.io.streams import LONGEST_LINE, File, Input, Spool
from hoicli.records.intake import ErrorPolicy
from hoicli.vocabulary.datasets import load

Content = Literal["lines", "dump", "unknown"]

_RECORD = re.compile(rb'\{\s*("image_id"\s*:|[^"\s])')
"""How a line begins that hoicli wrote (a record or a match), or that is no JSON; others are parsed to find out."""
_MORE_OPTIONS = "id|part|verb-base|object-order|coords|boxes|to-vocabulary|activation|lambda|threshold"
"""The options of `convert` that other commands do not have."""


@dataclass(frozen=True)
class Opening:
    """The settings with which the files of a command are read; called with paths, it gives the streams' inputs.

    dataset: the command's dataset. is_named: whether the user named it with --dataset. fixed: whether the command works
    in this dataset only, so that a format of another one is refused. source_format: a name in FORMATS, None to detect
    it. image_list: the value of --image-list. truth: the path of the command's ground truth, which says what numbers
    and positions of images mean without --image-list; "" if it is no file. policy: what to do about bad items."""

    dataset: str = "hico"
    is_named: bool = False
    fixed: bool = True
    source_format: str | None = None
    image_list: str | None = None
    truth: str = ""
    policy: ErrorPolicy = field(default_factory=ErrorPolicy)

    def specialise(self, *, truth: bool) -> Opening:
        """Return the settings for only ground truth (`truth`) or predictions: without a format of the other kind."""
        if self.source_format is None:
            return self
        from hoicli.converters.formats import FORMATS

        format_fits = (FORMATS[self.source_format].holds == "ground truth") == truth
        return self if format_fits else replace(self, source_format=None)

    def __call__(self, paths: Sequence[str]) -> list[Input]:
        """Return one input of records for each file, in the files' order; files that are not JSONL are converted first.

        paths: files, folders, pipes, or "-" for stdin; `a.mat,b.mat` is two files. Neighbours that need a conversion
        are converted together, since some formats consist of several files. Raises `DataError` as `convert` does, and
        `UsageError` if a format was named but no path is a file, or if a path is given twice."""
        files = list(chain.from_iterable(parts_of(path) for path in paths))
        if self.image_list not in (None, "-") and not os.path.exists(self.image_list):
            raise DataError(NO_SUCH_FILE, place=self.image_list, code="no-such-file")
        repeated = next((path for path in files if files.count(path) > 1), None)
        if repeated is not None:
            raise UsageError(f"{repeated} is given twice; keep one")

        # how each file is read: as "lines", as a "dump" to convert, or "unknown"
        is_on_disk = [path != "-" and (os.path.isfile(path) or os.path.isdir(path)) for path in files]
        if self.source_format is not None:
            if not any(is_on_disk) and all(path == "-" or os.path.exists(path) for path in files):
                command = f"hoicli convert --from {self.source_format} - |"
                raise UsageError(
                    f"{arg('from_', self.source_format)}: stdin and pipes are JSONL; name the file, or: {command}"
                )
            contents: list[Content] = ["dump" if on_disk else "lines" for on_disk in is_on_disk]
        else:
            contents = [content(path) if on_disk else "lines" for path, on_disk in zip(files, is_on_disk, strict=True)]
        if "dump" in contents:  # an unknown file beside a dump belongs to it: a list of image ids
            contents = ["dump" if content_kind == "unknown" else content_kind for content_kind in contents]

        inputs: list[Input] = []
        for is_dump, neighbours in groupby(zip(files, contents, strict=True), key=lambda pair: pair[1] == "dump"):
            neighbour_paths = [path for path, _ in neighbours]
            inputs += _spool_dumps(neighbour_paths, self) if is_dump else map(File, neighbour_paths)
        return inputs


def content(path: str) -> Content:
    """Return what a file holds: "lines" of JSON, a "dump" (another format, which `convert` reads), or "unknown". It is
    read whole only if nothing else tells. Raises `DataError` if the file cannot be read."""
    if file_kind(path, b"") != "unknown":  # by its name alone
        return "dump"
    with open_input(path) as stream:
        head: bytes = stream.peek(1)[:FIRST]  # type: ignore[attr-defined]  # the first bytes, without reading them away
        kind = file_kind(path, head)
        if kind == "unknown":  # image ids, a pickle without a mark at its beginning, or a text in a format's own form
            is_id_list = head.translate(None, b" \t\r\n").isdigit()  # nothing but digits and white space
            is_dump = not is_id_list and (is_early_pickle(head[:1], _last_byte(path)) or _is_known(path))
            return "dump" if is_dump else "unknown"
        if kind != "json-object":
            return "dump"
        if _RECORD.match(head.lstrip(MARK + b" \t\r\n")):
            return "lines"
        lines = iter(partial(stream.readline, LONGEST_LINE + 1), b"")
        line = next((line for line in lines if line.strip()), b"").removeprefix(MARK)  # the first that is not blank
        try:
            first = orjson.loads(line)
        except orjson.JSONDecodeError:
            begins_document = len(line) > LONGEST_LINE or line.strip() == b"{"
            is_bad_record = not begins_document and b'"image_id"' in line
            return "lines" if is_bad_record else "dump"
        has_one_line = not any(line.strip() for line in lines)
    is_document = has_one_line and "image_id" not in first and _is_known(path)
    return "dump" if is_document else "lines"


def _last_byte(path: str) -> bytes:
    """Return the last byte of a file, none of an empty one."""
    with open(path, "rb") as stream:
        stream.seek(max(0, os.path.getsize(path) - 1))
        return stream.read()


def _is_known(path: str) -> bool:
    """Return whether a file is in a format that `convert` recognises."""
    from hoicli.converters.containers.source import Source
    from hoicli.converters.context import run_step
    from hoicli.converters.formats import detect

    source = Source(path)
    try:
        return bool(run_step(partial(detect, source), source))  # the format's name; an unknown format is an error
    except DataError:
        return False


def _spool_dumps(paths: list[str], opening: Opening) -> list[Spool]:
    """Convert files of foreign formats; return a temporary file of records for each. Raises the errors of `convert`."""
    # Most runs read JSONL, and need none of this.
    from hoicli.converters.context import DERIVED, Context
    from hoicli.converters.conversion import Conversion
    from hoicli.converters.image_ids import read_image_list

    policy, spools = ErrorPolicy(skip=opening.policy.skip, unit="item"), list[Spool]()
    context = Context(load(opening.dataset), policy, truth="" if opening.truth in paths else opening.truth)
    named_dataset = opening.dataset if opening.is_named else None
    conversion = Conversion(context, opening.source_format, named_dataset, fixed=opening.fixed)
    try:
        if opening.image_list is not None:
            read_image_list(opening.image_list, context)
        with no_garbage_collection(), Progress("convert", unit=" images") as progress:
            for name, records in groupby(conversion.convert_files(paths, progress), key=lambda row: row[0]):
                spools.append(Spool(name, numbered=False))
                with spools[-1].filling() as file:
                    file.writelines(line for _, _, line in records)
    except DataError as error:
        problem = _advise_convert(error.problem, opening)
        raise DataError(problem, place=error.place, field=error.field, code=error.code) from None
    except UsageError as error:
        raise UsageError(_advise_convert(str(error), opening)) from None
    # DERIVED says that image-level labels are derived, which the evaluation of Known Object says where it needs them.
    context.notes = [_advise_convert(text, opening) for text in context.notes if text != DERIVED]
    conversion.report()
    opening.policy.earlier += policy.skipped  # bad items count in the command's report, too
    return spools


def _advise_convert(text: str, opening: Opening) -> str:
    """Return a message of `convert` as another command prints it: with the command before its own options."""
    lacking = _MORE_OPTIONS if opening.fixed else f"{_MORE_OPTIONS}|dataset"
    return re.sub(rf"--(?:{lacking})\b", r"hoicli convert \g<0>", text, count=1)
