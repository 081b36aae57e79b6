"""`hoicli vlm-eval`: what vision-language models answer to multiple choice, grounding and referring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from hoicli.errors import DataError, UsageError, arg
from hoicli.interface import options
from hoicli.interface.checks import READ, Read
from hoicli.interface.command import command
from hoicli.interface.option_values import tags_of, text_of
from hoicli.interface.options import Given, Option, Piped
from hoicli.interface.results import Records, Result, instead

TASKS = {
    "choice": "multiple-choice questions (CrossHOI-Bench)",
    "ground": "all pairs of an interaction (hoi-benchmarks)",
    "refer": "a phrase for what a pair does (hoi-benchmarks)",
}
OFFLINE = "shoe.settings:OFFLINE"
CHOICE, REFER = (f"Options of --task {task}: {TASKS[task]}" for task in ("choice", "refer"))


@command(
    reads="answers: choice: text or a detector's predictions; ground, refer: files of hoi-benchmarks' scripts",
    writes="result rows: F1 and exact match (choice), average recall (ground), exact match and similarity of the verbs "
    "(refer); with --needed, pairs of senses",
    examples="""
        hoicli vlm-eval --questions scene.json answers.jsonl
            # a model's answers to the prompts of hoicli prompts --task choice
        hoicli vlm-eval --questions pair.json --bootstrap 1000 preds.jsonl
            # a detector's five best predictions of each image as its choice
        hoicli vlm-eval --bootstrap 1000 grounded.json  # grounding
        hoicli vlm-eval --dataset hico referred.json  # exact match, and similarity by hoicli's own measure
        hoicli vlm-eval --dataset hico --needed referred.json > pairs.jsonl  # what a language model would have to rate
        hoicli shoe-sim --backend lexical --pairs pairs.jsonl > sim.jsonl
            # rate them (language models: --backend llm)
        hoicli vlm-eval --dataset hico --sim sim.jsonl referred.json  # the similarity by that table
    """,
    see=["prompts", "convert", "shoe-eval", "shoe-sim", "recall"],
    listed=lambda values: not values["needed"],
)
def vlm_eval(
    answers: Annotated[options.Path | Sequence[options.Path] | None, Piped("ANSWERS...")] = None,
    *,
    task: Annotated[str | None, Option(one_of=lambda: TASKS)] = None,
    as_released: Annotated[str | None, Option("NAME", one_of="vlm.task_scores:RELEASED")] = None,
    bootstrap: Annotated[int | None, options.bootstrap("every value")] = None,
    seed: options.Seed = 0,
    questions: Annotated[options.Path | None, Option("FILE", check=READ, panel=CHOICE)] = None,
    dataset: Annotated[options.Path | None, options.dataset(panel=REFER)] = None,
    sim: Annotated[
        Given | None,
        Option("FILE|NAME", offer=OFFLINE, repeated=True, check=Read(names=OFFLINE), panel=REFER),
    ] = None,
    needed: Annotated[bool, Option(panel=REFER)] = False,
    on_error: options.OnError = "stop",
    tag: options.Tag = None,
) -> Result:
    """How well questions about interactions are answered: multiple choice, grounding or referring.

    choice (CrossHOI-Bench): which options were chosen, as macro, instance and micro F1, and exact match. Answers are
    lines of `hoicli prompts --task choice` with the model's text as `response`, the JSON that the released scripts
    save, or a detector's predictions. An answer that is anything but letters, options or a marked conclusion is
    refused, and counts as an empty answer.

    ground (hoi-benchmarks): which pairs of an interaction are found, as average recall over IoU thresholds from 0.5 to
    0.95. A row has the true pairs and those found.

    refer (hoi-benchmarks): whether the phrase for a pair equals the true one, ignoring case, and how similar the verbs
    are.

    The task is recognised from the files, or from an option that only one task has. Values are in percent.

    Arguments:
        answers: Files of answers, read as one; - or nothing is stdin.
        task: What was asked, if neither the files nor another option show it.
        as_released: The released scripts' numbers, to the digit: crosshoi-bench (choice) or hoi-benchmarks (ground,
            refer).
        questions: The questions: an annotation file of CrossHOI-Bench, or one like it.
        dataset: The dataset of the true phrases' verbs (hico, swig), for their senses; without it, WordNet's first.
        sim: How the similarity of two senses is measured: lexical (default), wordnet:wup and the like, or tables that
            shoe-sim writes (SHOE has language models rate them), repeatable.
        needed: Write the pairs of senses that the similarity needs, for shoe-sim --pairs.
    """
    from hoicli.converters.containers.source import Source
    from hoicli.interface.inputs import piped_paths, similarities
    from hoicli.records.intake import policy_of
    from hoicli.resampling.draws import Resampling
    from hoicli.vlm.answers import read_answers
    from hoicli.vlm.bank import read_bank
    from hoicli.vlm.choice import tally_answers
    from hoicli.vlm.referring import measure_referring, read_senses
    from hoicli.vlm.referring import needed_pairs as pairs_needed
    from hoicli.vlm.result_files import grounding, measure_grounding, read_results, referring, task_in
    from hoicli.vlm.task_scores import Measured
    from hoicli.wordnet.lexicon import use_wordnet

    task_options: dict[str, dict[str, object]] = {
        "choice": {"questions": questions},
        "refer": {"dataset": dataset, "sim": sim, "needed": needed or None},
    }
    task_of_option: dict[str, str] = {}  # of the options that were given
    for name, values in task_options.items():
        task_of_option |= dict.fromkeys((option for option, value in values.items() if value is not None), name)
    resampling = Resampling.from_rounds(bootstrap, seed)
    measure = similarities(sim or "lexical", "vlm-eval")
    paths = piped_paths(answers, "ANSWERS", "answers")
    if paths is None:
        raise UsageError("answers: give files")
    tags, policy = tags_of(tag), policy_of(on_error)
    sources = [Source(path) for path in paths]

    # the task, from --task, an option that only one task has, or the first file
    task = task or next(iter(task_of_option.values()), None) or task_in(sources[0])
    if task is None:
        how = f"give {arg('task')} {', '.join(TASKS)} (with {arg('questions', like='FILE')} for choice)"
        detected = "detected interactions: hoicli convert --from vlm, then shoe-eval"
        raise DataError(f"does not say what was asked; {how}; {detected}", place=sources[0].name)
    wrong_options = [arg(option) for option, option_task in task_of_option.items() if option_task != task]
    if as_released is not None and (as_released == "crosshoi-bench") != (task == "choice"):
        wrong_options.append(arg("as_released", as_released))
    if wrong_options:
        raise UsageError(f"{', '.join(wrong_options)}: not for {arg('task', task)}; leave it out")

    released = as_released is not None
    if task == "choice":
        if questions is None:
            raise UsageError(f"{arg('task', task)}: give the questions with {arg('questions', like='FILE')}")
        bank = read_bank(text_of(questions) or "", policy)
        measured: Measured = tally_answers(read_answers(sources, bank, policy, released=released), released=released)
    elif task == "ground":
        measured = measure_grounding(read_results(sources, policy, grounding), released=released)
    else:
        use_wordnet(None)  # the embedded WordNet, whatever another call in this process chose
        phrases = read_results(sources, policy, referring)
        if needed:
            pairs = pairs_needed(read_senses(phrases, text_of(dataset)))
            rows = [dict(zip(("pos", "a", "b"), pair, strict=True)) for pair in pairs]
            return instead(Records(policy.report_at_end(rows, some_left=True)))
        measured = measure_referring(phrases, measure, text_of(dataset), policy, released=released)
    return Result(list(measured.rows(tags, as_released, resampling)))
