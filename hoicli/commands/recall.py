"""`hoicli recall`: recall at K of triplets, as scene graphs are evaluated."""

from __future__ import annotations

from hoicli.commands import choices, options
from hoicli.commands.checks import READ
from hoicli.commands.manual import command
from hoicli.commands.options import flag, option, separated
from hoicli.errors import UsageError
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions, and ground truth with --gt",
    writes="result rows: R@K, mR@K, F1@K, and zR@K of unseen triplets",
    examples=[
        ("hoicli recall --gt gt.jsonl preds.jsonl", "with and without graph constraint"),
        ("hoicli recall --gt gt.jsonl --k 20 --graph-constraint --per-class preds.jsonl", "the recall of each verb"),
        ("hoicli recall --gt gt.jsonl --split rf-uc preds.jsonl", "zR@K of a zero-shot split"),
        (
            "hoicli recall --gt gt.jsonl --as-released sgg-benchmark --bootstrap 1000 preds.jsonl",
            "one project's code to the digit, with intervals",
        ),
    ],
    see=["eval", "convert", "vocab"],
)
def recall(
    predictions: list[str] | None = options.PREDICTIONS,
    gt: str | None = options.GROUND_TRUTH,
    dataset: str | None = options.dataset("hico (default), swig or FILE.json.", None, offer=("hico", "swig")),
    k: str = option("20,50,100", "--k K,K,...", "How many predictions of an image count, the best first."),
    metric: list[str] | None = option(
        None,
        "--metric NAME",
        "R, mR, zR or F1 alone; several with commas (default: these four).",
        offer="evaluation.recall_measured:METRICS",
        several=True,
    ),
    graph_constraint: bool | None = flag(
        "--graph-constraint/--no-graph-constraint",
        "Only the rows with it (of each pair of boxes the best prediction counts), or only those without.",
        default=None,
    ),
    split: str | None = option(
        None,
        "--split NAME",
        "Adds zR@K: the recall of triplets whose interaction a zero-shot split withholds from training.",
        offer=choices.splits,
    ),
    train: str | None = option(
        None,
        "--train FILE",
        "Adds zR@K: the recall of triplets (subject, verb, object) that this ground truth of the training set lacks.",
        mark=READ,
    ),
    per_class: bool = flag("--per-class", "Add R@K of every verb."),
    as_released: str | None = option(
        None,
        "--as-released NAME",
        "A project's code to the digit: mR@K counts 0 for verbs without ground truth; openpsg leaves out images "
        "without predictions; sgg-benchmark counts the last pixel of what two boxes share, not of the boxes.",
        one_of="evaluation.recall_conventions:RELEASED",
    ),
    allow_uncounted: bool = options.ALLOW_UNCOUNTED,
    bootstrap: int | None = options.bootstrap("every mean"),
    seed: int = options.SEED,
    *,
    dumps: options.Dumps,
    out: options.ResultRows,
) -> None:
    """How many ground-truth triplets are among the K best predictions of their image.

    A prediction finds the triplets with its subject, verb and object whose two boxes it overlaps by at least 0.5. R@K
    is the mean share found over images, mR@K the mean over verbs of such means, F1@K the harmonic mean of the two. With
    graph constraint only the best prediction of each pair of boxes counts. Values are in percent.
    """
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.recall_conventions import PUBLISHED, RELEASED
    from hoicli.evaluation.recall_found import CONSTRAINTS, not_in_training, of_split
    from hoicli.evaluation.recall_measured import evaluable, measured, named_metrics, recall_rows
    from hoicli.evaluation.run import read_truth
    from hoicli.resampling.draws import Resampling

    gt, ks = options.required(gt, "recall"), _cuts(k)
    paths = options.inputs(predictions, "PREDS")
    if split and train:
        raise UsageError("--split, --train: both say which triplets are unseen; keep one")
    metrics = named_metrics(separated(metric), unseen=bool(split or train))
    vocabulary = evaluable(load(dataset or "hico"))
    split = vocabulary.split(split) if split else None
    constraints = CONSTRAINTS if graph_constraint is None else CONSTRAINTS[:1] if graph_constraint else CONSTRAINTS[1:]
    convention = RELEASED[as_released] if as_released else PUBLISHED
    if convention.most is not None and max(ks) > convention.most and CONSTRAINTS[1] in constraints:
        problem = f"{as_released} ranks {convention.most} predictions without graph constraint"
        raise UsageError(f"--k {max(ks)}: {problem}; give --k up to {convention.most}, or --graph-constraint")
    tags, policy = out.tags(), out.policy()
    resampling = Resampling.asked(bootstrap, seed)
    opening = dumps.opening(dataset, policy, within=dataset or "hico")
    truth = read_truth(Stream([gt], "ground truth", opening.truth), vocabulary, policy, allow_uncounted=allow_uncounted)
    unseen = None
    if split:
        unseen = of_split(truth, split)
    elif train:
        unseen = not_in_training(truth, Stream([train], "training set", opening.truth), policy)
    found = measured(
        Predictions(paths, opening.predictions).unmatched("recall"), truth, convention, policy, unseen=unseen
    )
    settings = {"data": vocabulary.signed, **truth.signed}
    if not vocabulary.own:  # no paper evaluates the shipped datasets so
        settings["extension"] = "recall"
    rows = list(
        recall_rows(
            found,
            ks,
            constraints,
            settings=settings,
            tags=tags,
            metrics=metrics,
            per_class=per_class,
            resampling=resampling,
        )
    )
    policy.report()
    out.write(rows)


def _cuts(text: str) -> list[int]:
    """The values of --k; raises `UsageError` for one that is no whole number of at least 1."""
    parts = [part.strip() for part in text.split(",")]
    bad = [part for part in parts if not (part.isascii() and part.isdecimal() and len(part) < 10 and int(part))]
    if bad:
        raise UsageError(f"--k {text}: {bad[0]!r} is no whole number of at least 1; for example --k 20,50,100")
    return list(dict.fromkeys(map(int, parts)))
