"""`hoicli convert`: foreign files to records, and records back to foreign files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hoicli.commands.common import Dataset, OnError, Output, skips

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hoicli.converters import Context
    from hoicli.records import Record

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    epilog="Example: hoicli convert instances_test2015.json > gt.jsonl; "
    "hoicli convert results.json | hoicli eval --gt gt.jsonl"
)
def convert(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="Files or folders to convert; - is stdin.")
    ] = None,
    source_format: Annotated[
        str | None, typer.Option("--from", metavar="NAME", help="The format, where it is not to be detected.")
    ] = None,
    target_format: Annotated[
        str | None, typer.Option("--to", metavar="NAME", help="Write a foreign format instead of JSONL.")
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(
            "--images",
            metavar="GT",
            help="Ground truth, or a list of names: the image order of a file that has only positions or numbers.",
        ),
    ] = None,
    split: Annotated[str, typer.Option("--split", metavar="test|train", help="Of a file that holds both.")] = "test",
    dataset: Dataset = "hico",
    on_error: OnError = "stop",
    output: Output = "-",
    list_formats: Annotated[bool, typer.Option("--list", help="List the formats and stop.")] = False,
) -> None:
    """Convert ground truth or prediction dumps to hoicli's JSONL, or JSONL to a foreign format (--to).

    The format is detected. Boxes come out 0-based [x1, y1, x2, y2] in pixels, labels and verbs as names; what was
    shifted, assumed or left out is said on stderr.
    """
    from hoicli.converters import FORMATS, Context, converter
    from hoicli.converters.imagelist import read_image_list
    from hoicli.errors import UsageError
    from hoicli.records import dump
    from hoicli.scenes import ErrorPolicy
    from hoicli.streams import note, open_output
    from hoicli.vocabulary import load
    from hoicli.workers import no_garbage_collection

    if list_formats:
        _print_formats()
        return
    if not paths:
        raise UsageError("convert: give a PATH to convert, or - for stdin (hoicli convert --list shows the formats)")
    for option, name, usable in (
        ("--from", source_format, [row.name for row in FORMATS.values() if row.reads]),
        ("--to", target_format, [row.name for row in FORMATS.values() if row.writes]),
    ):
        if name is not None and name not in usable:
            raise UsageError(f"{option} {name}: choose from {', '.join(usable)}")
    if split not in ("test", "train"):
        raise UsageError(f"--split {split}: choose test or train")
    policy = ErrorPolicy(skip=skips(on_error), unit="item")
    context = Context(load(dataset), policy, announce=note, split=split)
    if images is not None:
        context.images = read_image_list(images, context)
    read: list[str] = []
    counts = {"images": 0, "boxes": 0, "triplets": 0, "pairs": 0}
    with no_garbage_collection():
        records = _checked(_records(paths, source_format, context, read), context, counts)
        if target_format is not None:
            converter(target_format).write(records, output, context)
        else:
            with open_output(output) as write:
                for record in records:
                    write(dump(record))
    totals = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count or what != "pairs")
    note(f"converted {', '.join(read)}: {totals}")
    policy.report()
    for reason, (count, place) in context.dropped.items():
        note(f"left out: {reason}: {count:,} (the first: {place})")


def _print_formats() -> None:
    from hoicli.converters import FORMATS

    width = max(map(len, FORMATS))
    for row in FORMATS.values():
        ways = "/".join(way for way, has in (("from", row.reads), ("to", row.writes)) if has)
        print(f"{row.name:<{width}}  {ways:<7}  {row.holds:<12}  {row.description}")


def _records(paths: list[str], name: str | None, context: Context, read: list[str]) -> Iterator[tuple[str, Record]]:
    """(file, record) of all paths; what each was read as is added to `read`."""
    from hoicli.converters import FORMATS, converter, detect
    from hoicli.converters.source import Source

    sources = [Source(path) for path in paths]
    while sources:
        source = sources.pop(0)
        chosen = name or detect(source)
        if FORMATS[chosen].joint:
            source.companions, sources = sources, []
        read.append(f"{source.name} as {chosen} ({FORMATS[chosen].holds})")
        yield from ((source.name, record) for record in converter(chosen).read(source, context))


def _checked(records: Iterable[tuple[str, Record]], context: Context, counts: dict[str, int]) -> Iterator[Record]:
    """The records that can be written: numbers finite, indices in range, no image twice. Adds to `counts`."""
    from hoicli.errors import DataError
    from hoicli.records import problems

    seen: set[str] = set()
    for file, record in records:
        image_id = str(record["image_id"])
        place = f"{file}: image {image_id}"
        try:
            if not _plainly_sound(record):
                scored = any("score" in hoi for hoi in record["hois"])
                for found in problems(record, context.vocabulary, scored=scored):
                    raise DataError(found.text, place=place, field=found.field)
            if image_id in seen:
                raise DataError("occurs twice in the source; keep one of the two", place=place)
        except DataError as error:
            context.policy.handle(error)
            continue
        seen.add(image_id)
        for what, key in (("boxes", "boxes"), ("triplets", "hois"), ("pairs", "pairs")):
            counts[what] += len(record.get(key, ()))
        counts["images"] += 1
        yield record


def _plainly_sound(record: Record) -> bool:
    """Whether a quick look is enough: a number that is not finite poisons a sum, and an index has two bounds."""
    from math import isfinite

    hois, boxes = record["hois"], record["boxes"]
    try:
        numbers = sum(map(sum, boxes)) + sum([hoi.get("score", 0.0) for hoi in hois])
        numbers += sum([hoi.get("verb_score", 0.0) for hoi in hois]) + record.get("width", 1) + record.get("height", 1)
        indices = [hoi["subject"] for hoi in hois] + [hoi["object"] for hoi in hois]
        in_range = not indices or (min(indices) >= 0 and max(indices) < len(boxes))
        return isfinite(numbers) and in_range and {4}.issuperset(map(len, boxes))
    except TypeError:
        return False
