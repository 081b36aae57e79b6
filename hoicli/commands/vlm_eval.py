"""`hoicli vlm-eval`: what vision-language models answer to multiple choice, grounding and referring."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hoicli.commands import options
from hoicli.commands.checks import READ, READ_TRUTH, Read
from hoicli.commands.choices import named_truth, offline_backends
from hoicli.commands.manual import command
from hoicli.commands.options import argument, flag, option
from hoicli.errors import DataError, UsageError

if TYPE_CHECKING:
    from hoicli.converters.containers.source import Source

TASKS = {
    "choice": "multiple-choice questions (CrossHOI-Bench)",
    "ground": "all pairs of an interaction (hoi-benchmarks)",
    "refer": "a phrase for what a pair does (hoi-benchmarks)",
}
CHOICE, GROUND, REFER = (f"Options of --task {task}: {what}" for task, what in TASKS.items())


@command(
    reads="answers: of choice, text or a detector's predictions; of ground and refer, files of hoi-benchmarks' "
    "scripts; of ground with --gt, image records",
    writes="result rows: F1 and exact match (choice), average recall (ground), exact match and similarity of the verbs "
    "(refer); with --needed, pairs of senses",
    examples=[
        (
            "hoicli vlm-eval --questions scene.json answers.jsonl",
            "a model's answers to the prompts of hoicli prompts --task choice",
        ),
        (
            "hoicli vlm-eval --questions pair.json --choose top:5 --bootstrap 1000 preds.jsonl",
            "what a detector's five best predictions of each image choose",
        ),
        ("hoicli vlm-eval --match both --bootstrap 1000 grounded.json", "grounding: both boxes have to fit"),
        ("hoicli vlm-eval --gt gt.jsonl --top-k 5 preds.jsonl", "image records: the five best pairs of a question"),
        ("hoicli vlm-eval --dataset hico referred.json", "exact match, and similarity by hoicli's own measure"),
        (
            "hoicli vlm-eval --dataset hico --needed referred.json > pairs.jsonl",
            "what a language model would have to rate",
        ),
        (
            "hoicli shoe-sim --backend lexical --pairs pairs.jsonl > sim.jsonl",
            "rate it (with --backend llm: by language models)",
        ),
        ("hoicli vlm-eval --dataset hico --sim table:sim.jsonl referred.json", "the similarity by that table"),
    ],
    see=["prompts", "convert", "shoe-eval", "shoe-sim", "recall"],
)
def vlm_eval(
    answers: list[str] | None = argument(
        None, "ANSWERS...", "Files of answers, read as one; - or nothing is stdin.", mark=READ
    ),
    task: str | None = option(
        None, "--task", "What was asked, where neither the files nor another option says it.", one_of=lambda: TASKS
    ),
    as_released: str | None = option(
        None,
        "--as-released NAME",
        "The released scripts' figures to the digit: crosshoi-bench (choice) or hoi-benchmarks (ground, refer).",
        one_of="vlm.rows:RELEASED",
    ),
    bootstrap: int | None = options.bootstrap("every value"),
    seed: int = options.SEED,
    questions: str | None = option(
        None,
        "--questions FILE",
        "The questions: an annotation file of CrossHOI-Bench, or one like it.",
        mark=READ,
        panel=CHOICE,
    ),
    setting: str | None = option(
        None,
        "--setting",
        "What the questions show, where the file does not say it: the image, the person's box, or both boxes.",
        one_of="vlm.bank:SETTINGS",
        panel=CHOICE,
    ),
    choose: str | None = option(
        None,
        "--choose WHICH",
        "Which predictions of a detector choose: top:K, the best of an image (default top:5); total:N, the best of the "
        "dump; score:T, those of at least T. Equal scores stay together.",
        offer=("top:5", "total:", "score:"),
        panel=CHOICE,
    ),
    gt: str | None = option(
        None,
        "--gt FILE",
        "Image records answer: the ground truth of their images, as hoicli convert reads it, or its name (hico:test).",
        offer=named_truth,
        mark=READ_TRUTH,
        panel=GROUND,
    ),
    match: str | None = option(
        None,
        "--match NAME",
        "mean (default): a pair is found if the mean of its boxes' IoUs reaches the threshold (the script's rule). "
        "both: if both IoUs do.",
        one_of="vlm.grounding:MATCHES",
        panel=GROUND,
    ),
    top_k: int | None = option(
        None, "--top-k K", "Only the K first (best) predicted pairs of each question count.", panel=GROUND
    ),
    dataset: str | None = options.dataset(
        "The dataset whose verbs the true phrases have (hico, swig): they have its senses; without, WordNet's first.",
        None,
        panel=REFER,
    ),
    sim: str | None = option(
        None,
        "--sim NAME",
        "What says how alike two senses are: lexical (default), wordnet:wup and the like, or table:FILE from shoe-sim "
        "(SHOE has language models rate them).",
        offer=offline_backends,
        mark=Read(prefix="table:"),
        panel=REFER,
    ),
    needed: bool = flag(
        "--needed", "Write the pairs of senses that the similarity needs, for shoe-sim --pairs.", panel=REFER
    ),
    *,
    dumps: options.Dumps,
    out: options.ResultRows,
) -> None:
    """How well questions about interactions are answered: multiple choice, grounding or referring.

    choice (CrossHOI-Bench): which options were chosen, as macro, instance and micro F1, and exact match. Answers are
    lines of `hoicli prompts --task choice` with the model's text as `response`, the JSON that the released scripts
    save, or a detector's predictions. An answer that is anything but letters, options or a marked conclusion is
    refused, and counts as answered with nothing.

    ground (hoi-benchmarks): which pairs of an interaction are found, as average recall over IoU thresholds from 0.5 to
    0.95. A row has the true pairs and those found; with --gt the questions are the interactions of each image of the
    ground truth, and the pairs found are predictions of these, the best first.

    refer (hoi-benchmarks): whether the phrase for a pair is the true one, but for case, and how similar the verbs are.

    The task is seen in the files, or from an option that one task alone has. Values are in percent.
    """
    from hoicli.converters.containers.source import Source
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.records.parsing import dump
    from hoicli.resampling.draws import Resampling
    from hoicli.vlm.answers import read_answers
    from hoicli.vlm.bank import read_bank
    from hoicli.vlm.detectors import Selection
    from hoicli.vlm.records import grounding_of
    from hoicli.vlm.referring import Phrases
    from hoicli.vlm.results import read_grounding, read_referring
    from hoicli.vlm.rows import RowMaker
    from hoicli.wordnet.selection import choose as choose_wordnet

    whose = "choice" if as_released == "crosshoi-bench" else "ground refer"
    own = {
        "--questions": (questions, "choice"),
        "--setting": (setting, "choice"),
        "--choose": (choose, "choice"),
        "--gt": (gt, "ground"),
        "--match": (match, "ground"),
        "--top-k": (top_k, "ground"),
        "--dataset": (dataset, "refer"),
        "--sim": (sim, "refer"),
        "--needed": (needed or None, "refer"),
        "--from": (dumps.source_format, "choice ground"),
        "--image-list": (dumps.image_list, "choice ground"),
        f"--as-released {as_released}": (as_released, whose),
    }
    given = {name: tasks.split() for name, (value, tasks) in own.items() if value is not None}
    selection, resampling = Selection.parse(choose or "top:5"), Resampling.asked(bootstrap, seed)
    if top_k is not None and top_k < 1:
        raise UsageError(f"--top-k {top_k}: give a whole number of at least 1")
    measure = _checked(sim or "lexical")
    paths, tags, policy = options.inputs(answers, "ANSWERS"), out.tags(), out.policy()
    sources = [] if gt is not None else [Source(path) for path in paths]
    task = task or next((tasks[0] for tasks in given.values() if len(tasks) == 1), None) or _seen(sources)
    if others := [name for name, tasks in given.items() if task not in tasks]:
        raise UsageError(f"{', '.join(others)}: not for --task {task}; leave it out")
    maker = RowMaker(tags, as_released, resampling)
    if task == "choice":
        if questions is None:
            raise UsageError("--task choice: give the questions with --questions FILE")
        bank, opening = read_bank(questions, policy, setting=setting), dumps.opening(None, policy)
        chosen = read_answers(sources, bank, policy, opening, selection, released=as_released is not None)
        chosen.report()
        made = maker.choice(chosen, selection)
    elif task == "ground":
        signed: dict[str, str] = {}
        if gt is None:
            asked = read_grounding(sources, policy)
        else:
            opening = dumps.opening(None, policy)
            truth = Stream([gt], "ground truth", opening.truth)
            asked, signed = grounding_of(truth, Stream(paths, "predictions", opening.predictions), policy)
        made = maker.grounding(asked, match or "mean", most=top_k, signed=signed)
    else:
        choose_wordnet(None)
        phrases = read_referring(sources, policy)
        if needed:
            with open_output(out.output) as write:
                for line in Phrases.of(phrases, dataset).lines():
                    write(dump(line))
            policy.report()
            return
        made = maker.referring(phrases, measure, dataset, policy)
    found = list(made)
    policy.report()
    out.write(found)


def _checked(sim: str) -> str:
    """The value of --sim. Raises `UsageError` for none that rates senses offline."""
    if sim == "llm":
        raise UsageError(
            "--sim llm: have shoe-sim ask (--needed, then shoe-sim --backend llm --pairs), and give its table"
        )
    if not sim.removeprefix("table:") or (not sim.startswith("table:") and sim not in offline_backends()):
        raise UsageError(f"--sim {sim}: choose from {', '.join(offline_backends())}FILE")
    return sim


def _seen(sources: Sequence[Source]) -> str:
    """The task that the files are answers to. Raises `DataError` where they do not say it."""
    from hoicli.converters.vlm.rows import task_in

    task = next(filter(None, map(task_in, sources)), None)
    if task is None:
        problem = f"does not say what was asked; give --task {', '.join(TASKS)} (with --questions FILE for choice)"
        raise DataError(problem, place=", ".join(source.name for source in sources))
    return task
