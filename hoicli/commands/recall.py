"""`hoicli recall`: recall at K of triplets, as scene graphs are evaluated."""

from __future__ import annotations

from typing import Annotated

from hoicli.commands import choices, options
from hoicli.commands.checks import READ
from hoicli.commands.command import command
from hoicli.commands.options import Counted, Given, Numbers, Option, Unpack
from hoicli.commands.results import Result
from hoicli.commands.values import counts_of, tags_of, text_of
from hoicli.errors import UsageError, arg
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions, and ground truth with --gt",
    writes="result rows: R@K, mR@K, F1@K, and zR@K of unseen triplets",
    examples="""
        hoicli recall --gt gt.jsonl preds.jsonl  # with and without graph constraint
        hoicli recall --gt gt.jsonl --k 20 --per-class preds.jsonl  # the recall of each verb
        hoicli recall --gt gt.jsonl --split rf-uc preds.jsonl  # zR@K of a zero-shot split
        hoicli recall --gt gt.jsonl --as-released sgg-benchmark --bootstrap 1000 preds.jsonl
            # the numbers of one project's code, with intervals
    """,
    see=["eval", "convert", "vocab"],
)
def recall(
    gt: options.Truth = None,
    predictions: options.Predictions = None,
    *,
    dataset: Annotated[options.Path | None, options.dataset(offer=("hico", "swig"))] = None,
    k: Annotated[Numbers, Option("K,K,...")] = "20,50,100",
    split: Annotated[str | None, Option("NAME", offer=choices.splits)] = None,
    train: Annotated[Given | None, Option("FILE", mark=READ)] = None,
    per_class: bool = False,
    as_released: Annotated[str | None, Option("NAME", one_of="evaluation.recall_conventions:RELEASED")] = None,
    bootstrap: Annotated[int | None, options.bootstrap("every mean")] = None,
    seed: options.Seed = 0,
    tag: options.Tag = None,
    **shared: Unpack[Counted],
) -> Result:
    """How many ground-truth triplets are among the K best predictions of their image.

    A prediction finds the triplets with its subject, verb and object whose two boxes it overlaps by at least 0.5. R@K
    is the mean share found over images, mR@K the mean over verbs of such means, F1@K the harmonic mean of the two. With
    graph constraint only the best prediction of each pair of boxes counts. Values are in percent.

    Arguments:
        dataset: hico (default), swig or FILE.json.
        k: How many of the best predictions of an image count.
        split: Add zR@K: the recall of triplets whose interaction is unseen in a zero-shot split.
        train: Add zR@K: the recall of triplets (subject, verb, object) that are not in this ground truth of the
            training set.
        per_class: Add R@K of every verb.
        as_released: The numbers of a project's code, to the digit: mR@K counts 0 for verbs without ground truth;
            openpsg leaves out images without predictions; sgg-benchmark counts the last pixel of the intersection, not
            of the boxes; r1-sgg counts it in both, and leaves out images with boxes alone.
    """
    from hoicli.commands.inputs import Inputs, required
    from hoicli.evaluation.recall_conventions import PUBLISHED, RELEASED
    from hoicli.evaluation.recall_found import not_in_training, of_split
    from hoicli.evaluation.recall_measured import evaluable, measured, recall_rows
    from hoicli.resampling.draws import Resampling

    gt, ks, own = required(gt, "recall"), counts_of("k", k), text_of(dataset)
    if split and train:
        raise UsageError(f"{arg('split')}, {arg('train')}: both say which triplets are unseen; keep one")
    vocabulary = evaluable(load(own or "hico"))
    unseen_classes = vocabulary.split(split) if split else None
    convention = RELEASED[as_released] if as_released else PUBLISHED
    if convention.most is not None and max(ks) > convention.most:
        problem = f"{as_released} ranks {convention.most} predictions without graph constraint"
        raise UsageError(f"{arg('k', max(ks))}: {problem}; give {arg('k')} up to {convention.most}")
    tags, resampling = tags_of(tag), Resampling.asked(bootstrap, seed)
    inputs = Inputs(own, shared, within="hico")
    stream, truth = inputs.predictions(predictions), inputs.annotated(gt, vocabulary)
    unseen = None
    if unseen_classes:
        unseen = of_split(truth, unseen_classes)
    elif train is not None:
        unseen = not_in_training(truth, inputs.truth(train, "training set", name="train"), inputs.policy)
    found = measured(stream.unmatched("recall"), truth, convention, inputs.policy, unseen=unseen)
    settings = {"data": vocabulary.signed, **truth.signed}
    if not vocabulary.own:  # no paper evaluates the shipped datasets so
        settings["extension"] = "recall"
    rows = list(recall_rows(found, ks, settings=settings, tags=tags, per_class=per_class, resampling=resampling))
    return Result(inputs.policy.signed(rows))
