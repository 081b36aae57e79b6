"""`read` and `convert`: records from any file, and files of other projects from records."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hoicli.api.calling import called, policy_of, typed_call
from hoicli.api.inputs import Given, Path, check_format, held, paths_of
from hoicli.converters.context import Context, check_format_options
from hoicli.converters.conversion import Conversion
from hoicli.converters.formats import FORMATS, converter
from hoicli.converters.imagelist import read_image_list
from hoicli.converters.numbers import OBJECT_ORDERS
from hoicli.converters.postprocessing import PostProcessing
from hoicli.converters.vlm.rows import SCORES
from hoicli.errors import DataError, UsageError
from hoicli.io.claims import watched, writes
from hoicli.io.destinations import check_new_folder, check_output
from hoicli.io.outputs import open_output
from hoicli.io.progress import Progress
from hoicli.io.spool import temporary_folder
from hoicli.io.workers import no_garbage_collection
from hoicli.records.parsing import Record, dump
from hoicli.vocabulary.datasets import load


class Records(list[dict[str, Any]]):
    """A list of records; `notes` has what the command would say on stderr, one line each."""

    def __init__(self, records: Iterable[Record] = (), notes: Sequence[str] = ()) -> None:
        super().__init__(records)
        self.notes = list(notes)


@typed_call
def read(
    source: Given,
    *,
    source_format: str | None = None,
    dataset: str | None = None,
    image_list: Path | None = None,
    part: str = "test",
    verb_base: int | None = None,
    object_order: str | None = None,
    coords: str | None = None,
    boxes: Path | None = None,
    to_vocabulary: bool = False,
    scores: str | None = None,
    activation: str | None = None,
    power: float | None = None,
    threshold: float | None = None,
    box_scores: str | None = None,
    box_nms: float | None = None,
    on_error: str = "stop",
) -> Records:
    """The records of any file that `hoicli convert` reads: ground truth or predictions, JSONL too.

    source: a path, or several that belong together (anno_bbox.mat with anno.mat); or records, which are checked and
    come back with lists and numbers in place of arrays. source_format: a name of `hoicli convert --list`; it is
    detected without one. power is the command's `--lambda`, part `--part`; the others are its options of the same
    names: `hoicli help convert`. `notes` of the result says what was assumed, shifted or left out.

    Raises `DataError` for what is wrong with the data, `UsageError` for what is wrong with the call.
    """
    settings = dict(locals())
    with called() as notes, _conversion(**settings, target="") as (conversion, paths, _):
        found = list(conversion.records(paths, Progress("read", unit=" images")))
    return Records(found, notes)


@typed_call
def convert(
    source: Given,
    output: Path,
    *,
    to: str | None = None,
    source_format: str | None = None,
    dataset: str | None = None,
    image_list: Path | None = None,
    part: str = "test",
    verb_base: int | None = None,
    object_order: str | None = None,
    coords: str | None = None,
    boxes: Path | None = None,
    to_vocabulary: bool = False,
    scores: str | None = None,
    activation: str | None = None,
    power: float | None = None,
    threshold: float | None = None,
    box_scores: str | None = None,
    box_nms: float | None = None,
    on_error: str = "stop",
) -> list[str]:
    """Write the records of a source to a file, whole or not at all, and return what the command would say on stderr.

    source and the options: as in `read`. output: the file, or the folder of a format that writes one; a name in .gz
    compresses. to: a format of `hoicli convert --list`; without one, JSONL.

    Raises `DataError` for what is wrong with the data, `UsageError` for what is wrong with the call.
    """
    settings = {name: value for name, value in locals().items() if name not in ("output", "to")}
    target = os.fspath(output)
    with called() as notes, watched():
        if to is not None and (to not in FORMATS or not FORMATS[to].writes):
            raise UsageError(f"to {to!r}: choose from {', '.join(row.name for row in FORMATS.values() if row.writes)}")
        if target == "-":
            raise UsageError("output: give a file; `hoicli.read` returns the records")
        (check_new_folder if to and FORMATS[to].folder else check_output)(target, "output")
        writes(target, "output")
        with _conversion(**settings, target=to or "") as (conversion, paths, context):
            records = conversion.records(paths, Progress("convert", unit=" images"))
            if to is not None:
                converter(to).write(records, target, context)
            else:
                with open_output(target) as write:
                    for record in records:
                        write(dump(record))
    return notes


@contextmanager
def _conversion(
    source: Given, *, target: str, source_format: str | None, dataset: str | None, image_list: Path | None, part: str,
    verb_base: int | None, object_order: str | None, coords: str | None, boxes: Path | None, to_vocabulary: bool,
    scores: str | None, activation: str | None, power: float | None, threshold: float | None, box_scores: str | None,
    box_nms: float | None, on_error: str,
) -> Iterator[tuple[Conversion, list[str], Context]]:  # fmt: skip
    """(conversion, paths to read, its context), from the arguments of `read` and the format to write; the block reads,
    and then notes are made. Records in memory are in a temporary file in the block."""
    check_format(source_format)
    check_format_options(
        source_format,
        of_answers=(coords, boxes, to_vocabulary or None, scores),
        of_logits=(activation, power, threshold, box_scores, box_nms),
    )
    if part not in ("test", "train"):
        raise UsageError(f"--part {part}: choose test or train")
    if verb_base not in (None, 0, 1):
        raise UsageError(f"--verb-base {verb_base}: give 0 or 1")
    if object_order not in (None, *OBJECT_ORDERS):
        raise UsageError(f"--object-order {object_order}: choose from {', '.join(OBJECT_ORDERS)}")
    if scores not in (None, *SCORES):
        raise UsageError(f"--scores {scores}: choose from {', '.join(SCORES)}")
    assumed: list[str] = []
    context = Context(
        load(dataset or "hico"),
        policy_of(on_error, unit="item"),
        announce=assumed.append,
        split=part,
        verb_base=verb_base,
        object_order=object_order,
        coords=coords,
        boxes=None if boxes is None else os.fspath(boxes),
        to_vocabulary=to_vocabulary,
        scores=scores or "said",
        target=target,
        logits=PostProcessing.checked(
            activation=activation, power=power, threshold=threshold, box_scores=box_scores, box_nms=box_nms
        ),
    )
    if image_list is not None:
        context.images, context.image_numbers, context.image_sizes = read_image_list(os.fspath(image_list), context)
    conversion = Conversion(context, source_format, dataset)
    paths = paths_of(source, "source")
    with tempfile.TemporaryDirectory(prefix="hoicli-", dir=temporary_folder()) as folder:
        inside = os.path.join(folder, "")
        if paths is None:
            paths = [f"{inside}source"]
            with open(paths[0], "wb") as file:
                file.writelines(item.data + b"\n" for item in held(source, "source", context.vocabulary))
        try:
            with no_garbage_collection():
                yield conversion, paths, context
        except DataError as error:
            place = error.place.replace(inside, "")
            raise DataError(error.problem, place=place, field=error.field, code=error.code) from None
    conversion.report([text.replace(inside, "") for text in assumed])
