"""`hoicli audit`: what to look at in the ground truth, and what mAP would be without it."""

from __future__ import annotations

from typing import Annotated

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.checks import READ, Count
from hoicli.interface.command import command
from hoicli.interface.option_values import count_of, tags_of, text_of
from hoicli.interface.options import Argument, Filtered, Option, Streams, Unpack
from hoicli.interface.results import Result
from hoicli.io.messages import note
from hoicli.vocabulary.datasets import load


@command(
    reads="ground truth, and predictions of any number of models",
    writes="result rows: candidates of each kind, and the mAP of each model without them",
    examples="""
        hoicli audit --gt gt.jsonl  # boxes of one person or object that were drawn twice
        hoicli audit --gt gt.jsonl preds.jsonl other.jsonl
            # also what the models contradict, and labels that seem to be missing
        hoicli audit --gt gt.jsonl --top 20 preds.jsonl other.jsonl > rows.jsonl  # the top twenty of each kind
        hoicli audit --gt gt.jsonl --top all | jq -c 'select(.value >= 0.9)'  # all boxes that are nearly the same
    """,
    see=["validate", "confusion", "show"],
)
def audit(
    gt: options.Truth = None,
    predictions: Annotated[Streams | None, Argument("PREDS...", check=READ)] = None,
    *,
    dataset: options.Dataset = None,
    protocol: Annotated[str | None, Option("NAME", offer="evaluation.protocols:PROTOCOLS")] = None,
    name: options.ModelNames = None,
    same: Annotated[float, Option("T")] = 0.7,
    votes: Annotated[int | None, Option("N", check=Count(1, 1000))] = None,
    sure: Annotated[float, Option("T")] = 0.2,
    top: Annotated[int | str, Option("N")] = 100,
    tag: options.Tag = None,
    **shared: Unpack[Filtered],
) -> Result:
    """Suspicious ground truth: boxes drawn twice, triplets that models contradict, labels that seem to be missing.

    near_duplicate: two boxes of one label overlap by --same. contradicted: on an annotated pair, models see another
    class, which is not annotated there, rather than the annotated one. missing_label: models see a class on a pair, and
    it is not annotated there. Each row is a candidate, not an error: look at the image. With predictions there are also
    rows with the mAP as it is, and with duplicates merged, contradicted triplets removed, missing ones added.

    Arguments:
        predictions: Predictions, one file for each model. Without any, only duplicates are found.
        protocol: The protocol that decides what is correct and gives mAP: the dataset's main one (default), or another.
        same: Boxes of one label with at least this IoU count as one, annotated or of two models.
        votes: How many models must say so (default: at least half of them).
        sure: How sure each of these models must be, from 0 to 1 (docs/commands/audit.md).
        top: Write the N surest candidates of each kind, or all; mAP always uses all of them.
    """
    from hoicli.evaluation.selection import main_protocol, one_protocol
    from hoicli.interface.inputs import Inputs, require_truth
    from hoicli.validation.candidates import Rules
    from hoicli.validation.ground_truth_audit import Audit

    gt, dataset_name, limit = require_truth(gt, "audit"), text_of(dataset), count_of("top", top)
    chosen_protocol = one_protocol([protocol] if protocol else [], dataset_name)
    vocabulary = load(dataset_name or (chosen_protocol.dataset if chosen_protocol else "hico"))
    chosen_protocol = chosen_protocol or main_protocol(vocabulary)
    if predictions and chosen_protocol.whole_image:
        raise UsageError(
            f"{arg('protocol', chosen_protocol.name)}: has no boxes; name another, or give the ground truth alone"
        )
    tags = tags_of(tag, "model", "annotations")
    inputs = Inputs(dataset_name, shared, within=vocabulary.path or vocabulary.name, gt=gt)
    models = inputs.models(predictions, name) if predictions else []
    # too many votes, or rules about models without any, are errors before predictions are read (`Audit` sets them)
    rules = Rules(same=same, votes=votes, sure=sure)
    rules.set_votes(len(models))
    streams = [(model.model, model.refuse_match_records("audit")) for model in models]
    audited = Audit(
        inputs.read_truth(gt, vocabulary), chosen_protocol, rules, streams, inputs.filters, inputs.policy, tags
    )
    rows = list(audited.candidates(limit))
    if audited.more:
        note(audited.more)
    return Result([*rows, *audited.means()])
