"""`hoicli convert`: foreign files to records, and records back to foreign files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hoicli.commands import choices, options
from hoicli.commands.checks import READ, Count, Given, Written
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import UsageError
from hoicli.io.destinations import check_new_folder, check_output
from hoicli.io.outputs import open_output
from hoicli.io.progress import Progress
from hoicli.io.spool import Spool
from hoicli.io.workers import no_garbage_collection
from hoicli.vocabulary.datasets import load

ANSWERS = "Options of --from vlm (answers of models)"
LOGITS = "Options of --from logits (raw outputs)"


class _Converted(Written):
    """The output of convert: a file, or a new folder for a --to format that writes one."""

    def refuse(self, path: str, option: str, values: Given) -> None:
        """Raises `UsageError` if `path` cannot be written."""
        from hoicli.converters.formats import FORMATS

        target = FORMATS.get(values["target_format"])
        (check_new_folder if target and target.folder else self.check)(path, option)


@command(
    reads="any format of --list: MATLAB, JSON, pickles, NumPy files, text",
    writes="ground truth or prediction records; with --to a foreign format",
    examples=[
        ("hoicli convert instances_test2015.json -o gt.jsonl", "ground truth, its format detected"),
        ("hoicli convert results.json | hoicli eval --gt gt.jsonl", "a dump straight into its numbers"),
        (
            "hoicli convert detections_mat --image-list gt.jsonl -o preds.jsonl",
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
        ("hoicli convert --list-forms", "which answers of models are read"),
    ],
    see=["validate", "match", "eval", "prompts"],
)
def convert(
    paths: list[str] | None = argument(None, "PATH...", "Files or folders to convert; - is stdin.", mark=READ),
    source_format: str | None = option(
        None,
        "--from NAME",
        "The format of the input; it is detected where this is not given (--list names them).",
        one_of=choices.readable_formats,
    ),
    target_format: str | None = option(
        None,
        "--to NAME",
        "Write a foreign format instead of JSONL (--list names them).",
        one_of=choices.writable_formats,
    ),
    image_list: str | None = option(
        None,
        "--image-list FILE",
        "Ground truth, or a list of names: the order of the images for a file that has only positions or numbers, and "
        "their sizes.",
        mark=READ,
    ),
    part: str = option("test", "--part", "Which part to take of a file that holds both.", one_of=("test", "train")),
    dataset: str | None = options.dataset(
        f"{options.A_DATASET}; a format that belongs to one dataset needs no --dataset.", None
    ),
    verb_base: int | None = option(
        None,
        "--verb-base 0|1",
        "The number that the file gives its first verb, where it differs from its format.",
        offer=(0, 1),
        mark=Count(0, 1),
    ),
    object_order: str | None = option(
        None,
        "--object-order NAME",
        "How the file numbers its objects, where it differs from its format: coco (0-79), coco-1 (1-80), coco-id "
        "(1-90 with gaps) or alphabetical.",
        one_of="converters.numbers:OBJECT_ORDERS",
    ),
    coords: str | None = option(
        None,
        "--coords NAME",
        "What a box's numbers mean: 1000 (Qwen2-VL, Qwen3-VL, InternVL), 1000-yx (Gemini), qwen2.5[:MIN-MAX], "
        "resized:WxH, relative or pixels.",
        offer=choices.answer_coords,
        panel=ANSWERS,
    ),
    boxes: str | None = option(
        None,
        "--boxes FILE",
        "Records with the boxes that the answers name by index or label.",
        mark=READ,
        panel=ANSWERS,
    ),
    to_vocabulary: bool = flag(
        "--to-vocabulary",
        "Map names to the dataset's spelling (riding to ride), and leave out those it does not have.",
        panel=ANSWERS,
    ),
    scores: str | None = option(
        None,
        "--scores NAME",
        "said: the scores that the model states (default). tokens: the probability of the tokens of the verb and the "
        "object's name, where the answer has its log-probabilities.",
        one_of="converters.vlm.rows:SCORES",
        panel=ANSWERS,
    ),
    activation: str | None = option(
        None,
        "--activation NAME",
        "The function that makes scores of logits: sigmoid (default) or softmax.",
        offer="converters.numbers:ACTIVATIONS",
        panel=LOGITS,
    ),
    power: float | None = option(
        None, "--lambda L", "The exponent of the box score in the product (default 1).", panel=LOGITS
    ),
    threshold: float | None = option(None, "--threshold T", "Keep scores above this (default 0.1).", panel=LOGITS),
    box_scores: str | None = option(
        None,
        "--box-scores NAME",
        "What box_scores are: logits or probabilities (default: their range tells).",
        offer="converters.numbers:BOX_SCORES",
        panel=LOGITS,
    ),
    box_nms: float | None = option(
        None,
        "--box-nms T",
        "Drop a pair both of whose boxes overlap those of better pairs of its class by more than T (INP-CC: 0.5).",
        panel=LOGITS,
    ),
    on_error: str = options.ON_ERROR,
    output: str = options.output(_Converted(check_output)),
    list_formats: bool = flag("--list", "List the formats and stop."),
    list_forms: bool = flag("--list-forms", "List the answers that are read, and stop.", panel=ANSWERS),
) -> None:
    """Convert ground truth or prediction dumps to hoicli's JSONL, or JSONL to a foreign format (--to).

    The format is detected. Boxes come out 0-based [x1, y1, x2, y2] in pixels, labels and verbs as names; stderr says
    what was shifted, assumed or left out. Like their released code, it reads the bbox of INP-CC's and SWIG-HOI's
    annotations, described as [x, y, w, h], as corners, and the boxes of --from logits as [cx, cy, w, h], relative.
    """
    from hoicli.converters.context import Context, check_format_options
    from hoicli.converters.conversion import Conversion
    from hoicli.converters.formats import converter
    from hoicli.converters.imagelist import read_image_list
    from hoicli.converters.postprocessing import PostProcessing

    if list_formats or list_forms:
        (_print_forms if list_forms else _print_formats)()
        return
    if not paths:
        raise UsageError("convert: give a PATH to convert, or - for stdin (hoicli convert --list shows the formats)")
    check_format_options(
        source_format,
        of_answers=(coords, boxes, to_vocabulary or None, scores),
        of_logits=(activation, power, threshold, box_scores, box_nms),
    )
    policy = options.policy(on_error, unit="item")
    notes: list[str] = []  # printed only after success: a failure is one line
    context = Context(
        load(dataset or "hico"),
        policy,
        announce=notes.append,
        split=part,
        verb_base=verb_base,
        object_order=object_order,
        coords=coords,
        boxes=boxes,
        to_vocabulary=to_vocabulary,
        scores=scores or "said",
        target=target_format or "",
        logits=PostProcessing.checked(
            activation=activation, power=power, threshold=threshold, box_scores=box_scores, box_nms=box_nms
        ),
    )
    if image_list is not None:
        context.images, context.image_numbers, context.image_sizes = read_image_list(image_list, context)
    conversion = Conversion(context, source_format, dataset)
    with no_garbage_collection(), Progress("convert", unit=" images") as progress:
        records = conversion.records(paths, progress)
        if target_format is not None:
            converter(target_format).write(records, output, context)
        else:
            lines = conversion.lines(records)
            with open_output(output) as write:
                for piece in _whole(lines) if output == "-" and len(paths) > 1 else lines:
                    write(piece)
    conversion.report(notes)


def _whole(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes once all lines are there: of several paths, none is written to stdout if another is refused."""
    spool = Spool("records", numbered=False)
    with spool.filling() as file:
        file.writelines(lines)
    with spool.open() as file:
        yield from iter(partial(file.read, 1 << 20), b"")


def _print_formats() -> None:
    from hoicli.converters.formats import FORMATS

    width = max(map(len, FORMATS))
    for row in FORMATS.values():
        ways = "/".join(way for way, has in (("from", row.reads), ("to", row.writes)) if has)
        print(f"{row.name:<{width}}  {ways:<7}  {row.holds:<12}  {row.description}")


def _print_forms() -> None:
    from hoicli.converters.vlm.forms import FORMS

    for form in FORMS:
        print(f"{form.name}: {form.families}")
        for line in form.example.splitlines():
            print(f"    {line}")
