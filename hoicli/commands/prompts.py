"""`hoicli prompts`: what to ask a vision-language model about each image."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.checks import READ
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import DataError, UsageError
from hoicli.io.messages import note
from hoicli.io.outputs import open_output
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="image records, with boxes or without; for --task choice, a file of questions",
    writes="one line for each image or question: image_id, file_name, coords, system and prompt",
    examples=[
        ("hoicli prompts gt.jsonl > prompts.jsonl", "ask for every interaction with its boxes"),
        (
            "hoicli prompts --task pairs --vocabulary hico --response-format gt.jsonl > pairs.jsonl",
            "ask what given pairs do, in HICO-DET's verbs",
        ),
        (
            "hoicli prompts --task choice scene.json > choice.jsonl",
            "ask the questions of a file of CrossHOI-Bench, for vlm-eval",
        ),
        (
            "hoicli convert --from vlm --coords 1000 answers.jsonl > answered.jsonl",
            "read the answers, when a model has given them",
        ),
    ],
    see=["convert", "vlm-eval", "shoe-eval"],
)
def prompts(
    images: list[str] | None = argument(
        None, "IMAGES...", "Image records, with boxes or without, or questions; - is stdin.", mark=READ
    ),
    task: str = option(
        "detect",
        "--task NAME",
        "detect: every interaction with its boxes. pairs: what each pair of the record's boxes does. choice: the "
        "multiple-choice questions of CrossHOI-Bench's files.",
        one_of="converters.vlm.prompts:TASKS",
    ),
    coords: str = option(
        "1000",
        "--coords NAME",
        "How boxes are written: 1000 (Qwen2-VL, Qwen3-VL, InternVL), 1000-yx (Gemini), resized:WxH, relative or "
        "pixels.",
        offer=choices.coords,
    ),
    vocabulary: str = option(
        "open",
        "--vocabulary NAME",
        "open: any words; or a dataset, whose names the prompt lists.",
        offer=choices.vocabularies,
    ),
    response_format: bool = flag("--response-format", "Add a JSON schema of the reply, as OpenAI's protocol takes it."),
    setting: str | None = option(
        None,
        "--setting",
        "choice: what the questions show, where the file does not say it: the image, the person's box, or both boxes.",
        one_of="vlm.bank:SETTINGS",
    ),
    on_error: str = options.ON_ERROR,
    output: str = options.OUT,
    *,
    dumps: options.Dumps,
) -> None:
    """Write a prompt for each image: a line with image_id, file_name, coords, system and prompt.

    No pixels are read and nothing is sent: a script of yours asks the model and writes its text into the line, under
    `response`. `hoicli convert --from vlm` reads such lines. For --task pairs the records are the boxes to show
    (`pairs`, else those of the triplets, else every person with every box), and convert needs them as --boxes. For
    --task choice they are files of questions, whose answers go to `hoicli vlm-eval`; boxes in other units than
    pixels need the images' sizes, from ground truth given as --image-list.
    """
    from hoicli.converters.vlm.frames import parse_frame
    from hoicli.converters.vlm.prompts import prompts as prompts_of
    from hoicli.records.image import problems
    from hoicli.records.intake import ImageRegister
    from hoicli.records.parsing import dump, parse

    frame = parse_frame(coords)
    if frame.kind == "qwen2.5":
        raise UsageError(
            "--coords qwen2.5: resize the images yourself and use resized:WxH, so that the prompt can say it"
        )
    known = None if vocabulary == "open" else load(vocabulary)
    policy = options.policy(on_error)
    if task == "choice":
        if vocabulary != "open":
            raise UsageError("--vocabulary: questions have options of their own; leave it out")
        from hoicli.vlm.prompts import write_prompts

        paths = options.inputs(images, "questions")
        write_prompts(
            paths,
            frame,
            dumps.image_list,
            policy,
            output,
            setting=setting,
            response_format=response_format,
        )
        return
    if setting is not None:
        raise UsageError("--setting goes with --task choice")
    written = without = 0
    register = ImageRegister()
    with open_output(output) as write:
        for line in Stream(options.inputs(images, "IMAGES"), "prompts", dumps.opening(None, policy)):
            try:
                record = {"boxes": [], "labels": [], "hois": [], **parse(line)}
                for problem in problems(record, None, scored=False):
                    raise problem.error(line.place)
                register.add(str(record["image_id"]), line)
                try:
                    made = list(prompts_of(record, task, frame, known, response_format=response_format))
                except DataError as error:
                    raise DataError(error.problem, place=line.place, field=error.field or "width") from None
            except DataError as error:
                policy.handle(error)
                continue
            written += len(made)
            without += not made
            for prompt in made:
                write(dump(prompt))
    policy.report()
    note(f"{written:,} prompts" + (f"; {without:,} images without a pair have none" if without else ""))
