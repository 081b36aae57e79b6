"""`hoicli prompts`: what to ask a vision-language model about each image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from hoicli.errors import DataError, UsageError, arg
from hoicli.interface import choices
from hoicli.interface.checks import Count
from hoicli.interface.command import command
from hoicli.interface.option_values import text_of
from hoicli.interface.options import Files, Given, Option, Piped, Unpack
from hoicli.interface.results import Records
from hoicli.io.messages import note
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.records.parsing import Record

LONG_PROMPT = 20_000
"""The most characters of a prompt about whose size nothing is said."""


@command(
    reads="image records, with boxes or without; for --task choice, a file of questions",
    writes="one line for each image or question: image_id, file_name, coords, system, prompt and response_format",
    examples="""
        hoicli prompts gt.jsonl > prompts.jsonl  # ask for every interaction with its boxes
        hoicli prompts --task pairs --vocabulary hico gt.jsonl > pairs.jsonl
            # ask what given pairs do, in HICO-DET's verbs
        hoicli prompts --vocabulary hico --candidates 20 preds.jsonl > prompts.jsonl
            # list only the 20 interactions that a detector finds likeliest in each image
        hoicli prompts --task choice scene.json > choice.jsonl
            # ask the questions of a file of CrossHOI-Bench, for vlm-eval
        hoicli convert --from vlm --coords 1000 answers.jsonl > answered.jsonl
            # read the answers, when a model has given them
    """,
    see=["convert", "vlm-eval", "shoe-eval"],
)
def prompts(
    images: Annotated[Given | None, Piped("IMAGES...")] = None,
    *,
    task: Annotated[str, Option("NAME", one_of=("detect", "pairs", "choice"))] = "detect",
    coords: Annotated[str, Option("NAME", offer=choices.COORDS)] = "1000",
    vocabulary: Annotated[str, Option("NAME", offer=choices.VOCABULARIES)] = "open",
    candidates: Annotated[int | None, Option("K", check=Count(0, 100_000))] = None,
    **shared: Unpack[Files],
) -> Records:
    """Write a prompt for each image: a line with image_id, file_name, coords, system, prompt and response_format.

    No pixels are read and nothing is sent: your own script asks the model and adds its text to the line as `response`.
    Then `hoicli convert --from vlm` reads these lines (after --task pairs with the records as --boxes), or `hoicli
    vlm-eval` does (after --task choice). `response_format` is a JSON schema of the reply, as OpenAI's protocol takes
    it. For --task choice, boxes in other units than pixels need the images' sizes, from ground truth given as
    --image-list.

    Arguments:
        images: Image records, with boxes or without, or questions; - is stdin.
        task: detect: every interaction with its boxes. pairs: what each pair of the record's boxes does. choice: the
            multiple-choice questions of CrossHOI-Bench's files.
        coords: How boxes are written: 1000 (Qwen2-VL, Qwen3-VL, InternVL), 1000-yx (Gemini), qwen2.5[:MIN-MAX] (pixels
            of the copy that Qwen2.5-VL's processor makes, whose size the prompt says; MIN and MAX: the limits of its
            area), resized:WxH, relative or pixels.
        vocabulary: open: any words; or a dataset, whose names the prompt lists.
        candidates: Shorten the list of a dataset's names: to the K interactions that a detector scores highest in each
            image, so IMAGES are its predictions (ground truth is refused, since its classes are the answer). 0: to the
            verbs and the objects, without saying which go together.
    """
    from hoicli.converters.vlm.frames import parse_frame
    from hoicli.interface.inputs import Inputs, piped_paths
    from hoicli.records.image import problems
    from hoicli.records.intake import ImageRegister
    from hoicli.records.parsing import parse
    from hoicli.vlm.prompt_texts import prompt_of, question_prompts

    frame = parse_frame(coords)
    names_listed = None if vocabulary == "open" else load(vocabulary)
    if candidates is not None and (names_listed is None or (names_listed.roles and candidates)):
        problem = "lists a dataset's interactions of verb and object; choose one that has them"
        raise UsageError(f"{arg('candidates', candidates)}: {problem} with {arg('vocabulary')}")
    inputs = Inputs(None, shared)
    policy = inputs.policy
    if task == "choice":
        if vocabulary != "open":
            raise UsageError(f"{arg('vocabulary')}: questions have options of their own; leave it out")
        paths = piped_paths(images, "questions", "images")
        if paths is None:
            raise UsageError("images: give the files of the questions")
        return Records(question_prompts(paths, frame, text_of(shared["image_list"]), policy))
    lines = inputs.records(images, "images", "IMAGES", name="images").refuse_empty()

    def make_prompts() -> Iterator[Record]:
        """Yield the prompt of each image; then print a note of how many there were."""
        written = without_pair = longest = 0
        register = ImageRegister()
        for line in lines:
            with policy.item():
                record = {"boxes": [], "labels": [], "hois": [], **parse(line)}
                for problem in problems(record, None, scored=False):
                    raise problem.error(line.place)
                register.add(str(record["image_id"]), line)
                try:
                    prompt = prompt_of(record, task, frame, names_listed, candidates)
                except DataError as error:
                    raise DataError(error.problem, place=line.place, field=error.field or "width") from None
                if prompt is None:
                    without_pair += 1
                else:
                    written += 1
                    longest = max(longest, len(prompt["prompt"]))
                    yield prompt
        policy.report(some_left=written + without_pair > 0)
        what = "pair or a candidate" if candidates else "pair"
        note(f"{written:,} prompts" + (f"; {without_pair:,} images without a {what} have none" if without_pair else ""))
        if longest > LONG_PROMPT:
            tokens = round(longest / 4, -2)  # a token of English text has about four characters
            size = f"the longest prompt has {longest:,} characters (about {tokens:,.0f} tokens)"
            note(f"{size}, without the image; {arg('candidates', like='K')} shortens the list of names")

    return Records(make_prompts())
