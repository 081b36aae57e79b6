"""`hoicli recall`: recall at K of triplets, as scene graphs are evaluated."""

from __future__ import annotations

from typing import Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.checks import READ
from hoicli.interface.command import command
from hoicli.interface.option_values import counts_of, tags_of, text_of
from hoicli.interface.options import Given, GroupedCounted, Numbers, Option, Unpack
from hoicli.interface.results import Result
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions, and ground truth with --gt",
    writes="result rows: R@K, mR@K, F1@K, zR@K of unseen triplets, and R@K-relative",
    examples="""
        hoicli recall --gt gt.jsonl preds.jsonl  # with and without graph constraint
        hoicli recall --gt gt.jsonl --k 20 --per-class preds.jsonl  # the recall of each verb
        hoicli recall --gt gt.jsonl --train train.jsonl preds.jsonl  # zR@K of what training never had
        hoicli recall --gt gt.jsonl --as-released sgg-benchmark preds.jsonl  # the numbers of one project's code
    """,
    see=["eval", "convert", "vocab"],
)
def recall(
    gt: options.Truth = None,
    predictions: options.Predictions = None,
    *,
    dataset: Annotated[options.Path | None, options.dataset(offer=("hico", "swig"))] = None,
    k: Annotated[Numbers, Option("K,K,...")] = "20,50,100",
    relative: bool = False,
    train: Annotated[Given | None, Option("FILE", check=READ)] = None,
    per_class: bool = False,
    as_released: Annotated[str | None, Option("NAME", one_of="evaluation.recall_conventions:RELEASED")] = None,
    tag: options.Tag = None,
    **shared: Unpack[GroupedCounted],
) -> Result:
    """The share of ground-truth triplets that are among the K best predictions of their image.

    A prediction finds the triplets with its subject, verb and object whose two boxes it overlaps by at least 0.5. R@K
    is the mean share found over images, mR@K the mean over verbs of such means, F1@K the harmonic mean of the two. With
    graph constraint only the best prediction of each pair of boxes counts. Values are in percent.

    Arguments:
        dataset: hico (default), swig, another one without roles (see hoicli vocab --help), or FILE.json.
        k: How many of the best predictions of an image count.
        relative: Add R@K-relative and mR@K-relative, whose K is the number of triplets of each image.
        train: Add zR@K: the recall of triplets (subject, verb, object) that are not in this ground truth of the
            training set.
        per_class: Add R@K of every verb.
        as_released: The numbers of a project's code, to the digit: openpsg, sgg-benchmark or r1-sgg
            (docs/commands/recall.md has the differences).
    """
    from hoicli.evaluation.recall_at_k import find_unseen, measure_recalls, recall_rows
    from hoicli.evaluation.recall_conventions import PUBLISHED, RELEASED
    from hoicli.interface.inputs import Inputs, require_truth

    gt, ks, dataset_name = require_truth(gt, "recall"), counts_of("k", k), text_of(dataset)
    vocabulary = load(dataset_name or "hico")
    if vocabulary.roles:
        problem = "its actions have roles, and may have no object; recall is of triplets of subject, verb and object"
        raise UsageError(f"{arg('dataset', vocabulary.name)}: {problem}")
    convention = RELEASED[as_released] if as_released else PUBLISHED
    if convention.limit is not None and max(ks) > convention.limit:
        problem = f"{as_released} ranks {convention.limit} predictions without graph constraint"
        raise UsageError(f"{arg('k', max(ks))}: {problem}; give {arg('k')} up to {convention.limit}")
    if relative and not convention.relative:
        raise UsageError(f"{arg('relative')}: {as_released} has no R@K-relative; leave out one of the two options")
    tags, inputs = tags_of(tag), Inputs(dataset_name, shared, within="hico", gt=gt)
    stream, truth = inputs.predictions(predictions), inputs.read_truth(gt, vocabulary)
    unseen = None
    if train is not None:
        unseen = find_unseen(truth, inputs.truth(train, "training set", name="train"), inputs.policy)
    measured = measure_recalls(stream.refuse_match_records("recall"), truth, convention, inputs.policy, unseen=unseen)
    settings = {"data": vocabulary.signed, **truth.signed}
    if not vocabulary.own:  # no paper evaluates HICO-DET and the like by recall at K: the signature says so
        settings["extension"] = "recall"
    all_ks = [*ks, *([None] if relative else [])]
    return Result(list(recall_rows(measured, all_ks, settings=settings, tags=tags, per_class=per_class)))
