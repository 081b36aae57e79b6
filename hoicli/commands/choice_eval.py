"""`hoicli choice-eval`: answers to multiple-choice questions about interactions."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.checks import READ
from hoicli.commands.manual import command
from hoicli.commands.options import argument, option
from hoicli.errors import UsageError


@command(
    reads="a file of questions with --questions; answers in text, or a detector's predictions",
    writes="result rows: macro, instance and micro F1, exact match",
    examples=[
        (
            "hoicli choice-eval --questions scene.json answers.jsonl",
            "a model's answers to the prompts of hoicli prompts --task choice",
        ),
        (
            "hoicli choice-eval --questions pair.json --as-released crosshoi-bench saved.json",
            "what the released script saved, with its own figures",
        ),
        (
            "hoicli choice-eval --questions pair.json --choose top:5 --bootstrap 1000 preds.jsonl",
            "what a detector's five best predictions of each image choose",
        ),
    ],
    see=["prompts", "shoe-eval", "recall"],
)
def choice_eval(
    answers: list[str] | None = argument(
        None, "ANSWERS...", "Answers, read as one: of a model, or of a detector; - or nothing is stdin.", mark=READ
    ),
    questions: str | None = option(
        None, "--questions FILE", "The questions: an annotation file of CrossHOI-Bench, or one like it.", mark=READ
    ),
    setting: str | None = option(
        None,
        "--setting",
        "What the questions show, where the file does not say it: the image, the person's box, or both boxes.",
        one_of="questions.bank:SETTINGS",
    ),
    choose: str = option(
        "top:5",
        "--choose WHICH",
        "Which predictions of a detector choose: top:K, the best of an image; total:N, the best of the dump; score:T, "
        "those of at least T. Equal scores stay together.",
        offer=("top:5", "total:", "score:"),
    ),
    as_released: str | None = option(
        None,
        "--as-released NAME",
        "The released script's figures to the digit: answers read as it reads them, wrong options counted as often as "
        "named, exact match by image, and images that a detector's dump leaves out passed over.",
        one_of="questions.rows:RELEASED",
    ),
    bootstrap: int | None = options.bootstrap("every value"),
    seed: int = options.SEED,
    *,
    dumps: options.Dumps,
    out: options.ResultRows,
) -> None:
    """Which options were chosen: macro, instance and micro F1, and exact match, as CrossHOI-Bench has them.

    Answers are lines of `hoicli prompts --task choice` with the model's text as `response`, or the JSON that the
    released scripts save. An answer that is anything but letters, options or a marked conclusion is refused, and counts
    as answered with nothing. What was not offered counts for nothing. A detector chooses what its best predictions name
    on the boxes that the question shows. Values are in percent.
    """
    from hoicli.questions.answers import read_answers
    from hoicli.questions.bank import read_bank
    from hoicli.questions.detectors import Selection
    from hoicli.questions.rows import choice_rows
    from hoicli.resampling.draws import Resampling

    if questions is None:
        raise UsageError("choice-eval: give the questions with --questions FILE")
    selection = Selection.parse(choose)
    resampling = Resampling.asked(bootstrap, seed)
    paths, tags, policy = options.inputs(answers, "ANSWERS"), out.tags(), out.policy()
    bank = read_bank(questions, policy, setting=setting)
    given = read_answers(paths, bank, policy, dumps.opening(None, policy), selection, released=as_released is not None)
    given.report()
    rows = list(choice_rows(given, tags=tags, selection=selection, released=as_released, resampling=resampling))
    policy.report()
    out.write(rows)
