"""`hoicli convert`: foreign files to records, and records back to foreign files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

from hoicli.errors import IN_PYTHON, UsageError, arg
from hoicli.interface import choices, options
from hoicli.interface.checks import OUTPUT, READ, Count
from hoicli.interface.command import command
from hoicli.interface.option_values import text_of
from hoicli.interface.options import Given, Option
from hoicli.interface.results import Notes, Records, instead
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.records.parsing import Record

ANSWERS = "Options of --from vlm (answers of models)"
LOGITS = "Options of --from logits (raw outputs)"


@command(
    reads="any format of --list: MATLAB, JSON, pickles, NumPy files, text",
    writes="ground truth or prediction records; with --to a foreign format",
    examples="""
        hoicli convert instances_test2015.json -o gt.jsonl  # ground truth; the format is detected
        hoicli convert results.json | hoicli eval --gt gt.jsonl  # the numbers of a dump, directly
        hoicli convert detections_mat --image-list gt.jsonl -o preds.jsonl  # a file in which images have only positions
        hoicli convert --verb-base 1 --object-order alphabetical results.json -o preds.jsonl
            # a dump with other numbers, as validate says
        hoicli convert preds.jsonl --to cdn-json -o preds_cdn.json  # hoicli's records for another evaluator
        hoicli convert gt.jsonl --to hoia -o trainval.json  # ground truth, for training code (QPIC, CDN)
        hoicli convert gt.jsonl --split rf-uc --to hoia -o trainval.json  # without the unseen classes
        hoicli convert gt.jsonl --resize 512 -o gt_512.jsonl  # ground truth of generated pictures of 512 x 512
        hoicli convert --from vlm --coords 1000 answers.jsonl -o answered.jsonl  # what a vision-language model answered
        hoicli convert --list  # the formats
    """,
    see=["validate", "match", "eval", "prompts"],
)
def convert(
    source: Annotated[Given | None, options.Argument("PATH...", check=READ)] = None,
    *,
    from_: Annotated[str | None, Option("NAME", one_of=choices.readable_formats)] = None,
    to: Annotated[str | None, Option("NAME", one_of=choices.writable_formats)] = None,
    image_list: Annotated[options.Path | None, Option("FILE", check=READ)] = None,
    id_: Annotated[str | None, Option("NAME", one_of="records.names:ID_RULES")] = None,
    part: Annotated[str | None, Option(one_of=("test", "train"))] = None,
    dataset: Annotated[
        options.Path | None,
        options.dataset(f"{options.A_DATASET}; a format that belongs to one dataset needs no --dataset."),
    ] = None,
    verb_base: Annotated[int | None, Option("0|1", offer=(0, 1), check=Count(0, 1))] = None,
    object_order: Annotated[str | None, Option("NAME", one_of="converters.numbers:OBJECT_ORDERS")] = None,
    to_object_order: Annotated[str | None, Option("NAME", one_of=("alphabetical", "coco"))] = None,
    split: Annotated[str | None, Option("NAME", offer=choices.splits)] = None,
    whole_pairs: bool = False,
    resize: Annotated[int | str | None, Option("W[xH]")] = None,
    box_form: Annotated[str | None, Option("NAME", one_of="converters.numbers:BOX_FORMS")] = None,
    coords: Annotated[str | None, Option("NAME", offer=choices.COORDS, panel=ANSWERS)] = None,
    boxes: Annotated[options.Path | None, Option("FILE", check=READ, panel=ANSWERS)] = None,
    to_vocabulary: Annotated[bool, Option(panel=ANSWERS)] = False,
    synonyms: Annotated[options.Path | None, Option("FILE", check=READ, panel=ANSWERS)] = None,
    explain_words: Annotated[options.Path | None, Option("FILE", check=OUTPUT, panel=ANSWERS)] = None,
    scores: Annotated[str | None, Option("NAME", one_of=("said", "tokens", "ones"), panel=ANSWERS)] = None,
    activation: Annotated[str | None, Option("NAME", one_of=("sigmoid", "softmax"), panel=LOGITS)] = None,
    lambda_: Annotated[float | None, Option("L", panel=LOGITS)] = None,
    threshold: Annotated[float | None, Option("T", panel=LOGITS)] = None,
    left_out: Annotated[options.Path | None, Option("FILE", check=OUTPUT)] = None,
    list_: bool = False,
    on_error: options.OnError = "stop",
    output: Annotated[options.Path, options.output()] = "-",
) -> Records:
    """Convert ground truth or prediction dumps to hoicli's JSONL, or JSONL to a foreign format (--to).

    The format is detected. Boxes come out 0-based [x1, y1, x2, y2] in pixels, labels and verbs as names; stderr says
    what was shifted, assumed or left out. Two formats may surprise you, and --box-form changes them: the bbox of
    INP-CC's and SWIG-HOI's annotations, documented as [x, y, w, h], is read as corners, as in their released code;
    boxes of --from logits are relative [cx, cy, w, h].

    Arguments:
        source: Files or folders to convert; - is stdin.
        from_: The input's format; detected by default (--list shows all).
        to: Write a foreign format instead of JSONL (--list shows all).
        image_list: Ground truth, or a list of names, with the images in order (and their sizes), for a file that has
            only positions or numbers.
        id_: What an image's id is: name (of its file, without folder and extension), path (with its folders) or number
            (at the name's end). Default: name, or path if two images have the same name. For shards, use path for each.
        part: Which split to take from a file that holds both (default: test).
        verb_base: The number of the file's first verb, if it is not the format's usual one.
        object_order: How the file numbers its objects, if not as usual in its format: coco (0-79), coco-1 (1-80),
            coco-id (1-90 with gaps) or alphabetical.
        to_object_order: How --to pocket numbers objects: alphabetical (default; SCG) or coco (UPT, PViC, ADA-CM).
        split: Leave out of ground truth the unseen classes of a zero-shot split (rare_first, rf-uc, ...), as for
            training, and images without a triplet of a seen class.
        whole_pairs: With --split, also leave out the other triplets of a pair of boxes that has an unseen class, as
            GEN-VLKT's and HOICLIP's training do.
        resize: Scale the boxes of ground truth to pictures W pixels wide and H high (W if H is not given), each side by
            its own factor and cut off to whole pixels, as InteractDiffusion does for generated pictures.
        box_form: What the four numbers of a box are, if not as usual in the format: xyxy (two corners), xywh (a corner,
            width and height) or cxcywh (the centre, width and height); in pixels, or in logits fractions of the image.
        coords: What a box's numbers mean: 1000 (Qwen2-VL, Qwen3-VL, InternVL), 1000-yx (Gemini), qwen2.5[:MIN-MAX],
            resized:WxH, relative or pixels.
        boxes: Records with the boxes that the answers name by index.
        to_vocabulary: Map words to the dataset's verbs and objects by WordNet (is riding to ride, sofa to couch, woman
            to person), and leave out and quote those that it does not have. Without it, only other forms of the
            dataset's own words are mapped, and others stay.
        synonyms: Two columns, a word and the verb or object that it means, for words that WordNet does not decide so.
        explain_words: Write a row for each word: its class, why, and how often it occurs.
        scores: said: the scores in the model's answer (default). tokens: computed from its log-probabilities, as the
            probability of the tokens of the verb and the object's name. ones: 1 for each, so that triplets rank in the
            order of the answer.
        activation: The function that turns logits into scores: sigmoid (default) or softmax.
        lambda_: The exponent of the box score in the product (default 1).
        threshold: Keep scores above this (default 0.1).
        left_out: Write a row for each thing that is left out or skipped: where, why, and a model's answer in full.
        list_: List the formats and stop.
    """
    from hoicli.converters.changes import Changes
    from hoicli.converters.context import Context
    from hoicli.converters.conversion import Conversion
    from hoicli.converters.formats import FORMATS
    from hoicli.converters.image_ids import read_image_list
    from hoicli.interface.inputs import written_to_files
    from hoicli.io.memory import no_garbage_collection
    from hoicli.io.messages import Progress
    from hoicli.records.intake import policy_of
    from hoicli.wordnet.lexicon import use_wordnet

    if list_:
        return instead(_list_formats())
    use_wordnet(None)  # words are looked up in the embedded WordNet, whichever an earlier call from Python used
    if source is None:
        listed = "(hoicli convert --list shows the formats)"
        raise UsageError(f"convert: give a PATH to convert, or - for stdin {listed}")
    if to_object_order is not None and to != "pocket":
        problem = f"is for {arg('to', 'pocket')}, which two projects read in two orders"
        raise UsageError(f"{arg('to_object_order', to_object_order)} {problem}")
    format_options: dict[str, object] = {
        "part": part, "verb_base": verb_base, "object_order": object_order, "box_form": box_form,
        "coords": coords, "boxes": text_of(boxes), "to_vocabulary": to_vocabulary or None,
        "synonyms": text_of(synonyms), "explain_words": text_of(explain_words), "scores": scores,
        "activation": activation, "lambda_": lambda_, "threshold": threshold,
    }  # fmt: skip
    policy = policy_of(on_error, unit="item")
    context = Context(
        load(text_of(dataset) or "hico"),
        policy,
        split=part or "test",
        id_rule=id_ or "",
        target=to or "",
        target_order=to_object_order or "",
        left_out_file=text_of(left_out) or "",
        options={name: value for name, value in format_options.items() if value is not None},
    )
    policy.on_skip = context.list_error if context.left_out_file else None
    changes = Changes.from_options(split, whole_pairs, resize)
    context.vocabulary.check_split(split)  # before the work
    if image_list is not None:
        read_image_list(text_of(image_list) or "", context)
    conversion = Conversion(context, from_, text_of(dataset), changes=changes)
    target = text_of(output) or "-"
    if to is not None and target == "-" and IN_PYTHON.get():
        raise UsageError(f"{arg('to', to)}: name the file with {arg('output')}")

    @contextmanager
    def converting() -> Iterator[Iterator[tuple[str, Record, bytes]]]:
        """Give an iterator of (image id, record, its line of JSON), which converts while the block iterates over it."""
        pause = nullcontext() if IN_PYTHON.get() else no_garbage_collection()
        files = written_to_files(source, "source", context.vocabulary)
        with files as paths, pause, Progress("convert", unit=" images") as progress:
            yield conversion.convert_files(paths, progress)

    if to is not None:
        with converting() as converted:
            FORMATS[to].converter.write((record for _, record, _ in converted), target, context)
        conversion.report()
        return instead(Notes())

    def converted_lines() -> Iterator[bytes]:
        """Yield the lines of JSON; then report what was shifted, assumed or left out."""
        with converting() as converted:
            yield from (line for _, _, line in converted)
        conversion.report()

    return Records(converted_lines())


def _list_formats() -> str:
    """Return the text of --list: each format's name, whether it is read and written, what it holds, a description."""
    from hoicli.converters.formats import FORMATS

    width = max(map(len, FORMATS))
    rows = []
    for row in FORMATS.values():
        directions = "/".join(option for option, exists in (("from", row.reads), ("to", row.writes)) if exists)
        rows.append(f"{row.name:<{width}}  {directions:<7}  {row.holds:<12}  {row.description}\n")
    return "".join(rows)
