"""`hoicli convert`: foreign files to records, and records back to foreign files."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands import choices
from hoicli.commands.checks import READ, Count, Values, Written
from hoicli.commands.common import OnError, Output, skips
from hoicli.commands.manual import page
from hoicli.io.destinations import check_new_folder, check_output

app = typer.Typer(add_completion=False, rich_markup_mode=None)

SPLITS = ("test", "train")


class _Converted(Written):
    """A file, or what --to makes of it: a folder that is new."""

    def refuse(self, path: str, option: str, values: Values) -> None:
        """Raises `UsageError` for what cannot be written."""
        from hoicli.converters.formats import FORMATS

        target = FORMATS.get(values["target_format"])
        (check_new_folder if target and target.folder else self.check)(path, option)


@app.command(
    cls=page(
        reads="any format of --list: MATLAB, JSON, pickles, NumPy files, text",
        writes="ground truth or prediction records; with --to a foreign format",
        examples=[
            ("hoicli convert instances_test2015.json -o gt.jsonl", "ground truth, its format detected"),
            ("hoicli convert results.json | hoicli eval --gt gt.jsonl", "a dump straight into its numbers"),
            (
                "hoicli convert detections_mat --images gt.jsonl -o preds.jsonl",
                "a file whose images have only positions",
            ),
            (
                "hoicli convert --verb-base 1 --object-order alphabetical results.json -o preds.jsonl",
                "a dump that is numbered otherwise, as validate found",
            ),
            ("hoicli convert preds.jsonl --to inpcc-json -o preds_inpcc.json", "back, for somebody else's evaluator"),
            (
                "hoicli convert --from vlm --coords 1000 answers.jsonl -o answered.jsonl",
                "what a vision-language model answered",
            ),
            ("hoicli convert --list", "the formats"),
        ],
        see=["validate", "match", "eval", "prompts"],
    )
)
def convert(
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="PATH...", help="Files or folders to convert; - is stdin."), READ
    ] = None,
    source_format: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="NAME",
            help="The format, where it is not to be detected (--list names them).",
            autocompletion=choices.readable_formats,
        ),
    ] = None,
    target_format: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="NAME",
            help="Write a foreign format instead of JSONL (--list names them).",
            autocompletion=choices.writable_formats,
        ),
    ] = None,
    images: Annotated[
        str | None,
        typer.Option(
            "--images",
            metavar="GT",
            help="Ground truth, or a list of names: the image order of a file that has only positions or numbers, and "
            "the sizes of images.",
        ),
        READ,
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            "--split",
            metavar="|".join(SPLITS),
            help="Of a file that holds both.",
            autocompletion=choices.one_of(*SPLITS),
        ),
    ] = "test",
    dataset: Annotated[
        str | None,
        typer.Option(
            "--dataset",
            metavar="NAME",
            help="hico (default), vcoco or swig; V-COCO's own formats need no saying.",
            autocompletion=choices.datasets,
        ),
    ] = None,
    verb_base: Annotated[
        int | None,
        typer.Option(
            "--verb-base",
            metavar="0|1",
            help="From which number the file counts its verbs, where its format counts otherwise.",
            autocompletion=choices.one_of("0", "1"),
        ),
        Count(0, 1),
    ] = None,
    object_order: Annotated[
        str | None,
        typer.Option(
            "--object-order",
            metavar="NAME",
            help="How the file numbers its objects, where its format does otherwise: coco (0-79), coco-1 (1-80), "
            "coco-id (1-90 with gaps) or alphabetical.",
            autocompletion=choices.object_orders,
        ),
    ] = None,
    coords: Annotated[
        str | None,
        typer.Option(
            "--coords",
            metavar="NAME",
            help="What a box's numbers mean: 1000 (Qwen2-VL, Qwen3-VL, InternVL), 1000-yx (Gemini), "
            "qwen2.5[:MIN-MAX], resized:WxH, relative or pixels.",
            autocompletion=choices.coords,
            rich_help_panel="Options of --from vlm (answers of models)",
        ),
    ] = None,
    boxes: Annotated[
        str | None,
        typer.Option(
            "--boxes",
            metavar="FILE",
            help="Records with the boxes that the answers name by index or label.",
            rich_help_panel="Options of --from vlm (answers of models)",
        ),
        READ,
    ] = None,
    to_vocabulary: Annotated[
        bool,
        typer.Option(
            "--to-vocabulary",
            help="Map names to the dataset's spelling (riding to ride), leave out what it has not.",
            rich_help_panel="Options of --from vlm (answers of models)",
        ),
    ] = False,
    activation: Annotated[
        str | None,
        typer.Option(
            "--activation",
            metavar="NAME",
            help="What makes scores of them: sigmoid (default) or softmax.",
            autocompletion=choices.activations,
            rich_help_panel="Options of --from logits (raw outputs)",
        ),
    ] = None,
    power: Annotated[
        float | None,
        typer.Option(
            "--lambda",
            metavar="L",
            help="The exponent of the box score in the product (default 1).",
            rich_help_panel="Options of --from logits (raw outputs)",
        ),
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            metavar="T",
            help="Keep scores above this (default 0.1).",
            rich_help_panel="Options of --from logits (raw outputs)",
        ),
    ] = None,
    box_scores: Annotated[
        str | None,
        typer.Option(
            "--box-scores",
            metavar="NAME",
            help="What box_scores are: logits or probabilities (default: their range tells).",
            autocompletion=choices.box_scores,
            rich_help_panel="Options of --from logits (raw outputs)",
        ),
    ] = None,
    box_nms: Annotated[
        float | None,
        typer.Option(
            "--box-nms",
            metavar="T",
            help="Drop a pair both of whose boxes overlap those of better pairs of its class by more than T "
            "(INP-CC: 0.5).",
            rich_help_panel="Options of --from logits (raw outputs)",
        ),
    ] = None,
    on_error: OnError = "stop",
    output: Annotated[Output, _Converted(check_output)] = "-",
    list_formats: Annotated[bool, typer.Option("--list", help="List the formats and stop.")] = False,
) -> None:
    """Convert ground truth or prediction dumps to hoicli's JSONL, or JSONL to a foreign format (--to).

    The format is detected. Boxes come out 0-based [x1, y1, x2, y2] in pixels, labels and verbs as names; what was
    shifted, assumed or left out is said on stderr.
    """
    from hoicli.converters.context import Context
    from hoicli.converters.conversion import Conversion
    from hoicli.converters.formats import FORMATS, converter
    from hoicli.converters.imagelist import read_image_list
    from hoicli.converters.numbers import OBJECT_ORDERS
    from hoicli.converters.postprocessing import PostProcessing
    from hoicli.errors import UsageError
    from hoicli.io.messages import note
    from hoicli.io.outputs import open_output
    from hoicli.io.progress import Progress
    from hoicli.io.workers import no_garbage_collection
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.parsing import dump
    from hoicli.vocabulary.datasets import load

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
    if (coords or boxes or to_vocabulary) and source_format not in (None, "vlm"):
        raise UsageError("--coords, --boxes and --to-vocabulary are for --from vlm, the answers of models")
    settings = (activation, power, threshold, box_scores, box_nms)
    if source_format != "logits" and settings != (None,) * len(settings):
        raise UsageError("--activation, --lambda, --threshold, --box-scores and --box-nms go with --from logits")
    if object_order is not None and object_order not in OBJECT_ORDERS:
        raise UsageError(f"--object-order {object_order}: choose from {', '.join(OBJECT_ORDERS)}")
    if split not in SPLITS:
        raise UsageError(f"--split {split}: choose {' or '.join(SPLITS)}")
    policy = ErrorPolicy(skip=skips(on_error), unit="item")
    notes: list[str] = []  # said when all went well: a failure is one line
    context = Context(
        load(dataset or "hico"),
        policy,
        announce=notes.append,
        split=split,
        verb_base=verb_base,
        object_order=object_order,
        coords=coords,
        boxes=boxes,
        to_vocabulary=to_vocabulary,
        target=target_format or "",
        logits=PostProcessing.checked(
            activation=activation, power=power, threshold=threshold, box_scores=box_scores, box_nms=box_nms
        ),
    )
    if images is not None:
        context.images, context.image_numbers, context.image_sizes = read_image_list(images, context)
    conversion = Conversion(context, source_format, dataset)
    with no_garbage_collection(), Progress("convert", unit=" images") as progress:
        records = conversion.records(paths, progress)
        if target_format is not None:
            converter(target_format).write(records, output, context)
        else:
            with open_output(output) as write:
                for record in records:
                    write(dump(record))
    for text in (*notes, conversion.summary()):
        note(text)
    policy.report()
    for reason, (count, place) in context.dropped.items():
        note(f"left out: {reason}: {count:,} (the first: {place})")


def _print_formats() -> None:
    from hoicli.converters.formats import FORMATS

    width = max(map(len, FORMATS))
    for row in FORMATS.values():
        ways = "/".join(way for way, has in (("from", row.reads), ("to", row.writes)) if has)
        print(f"{row.name:<{width}}  {ways:<7}  {row.holds:<12}  {row.description}")
