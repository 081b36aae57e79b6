"""`hoicli match`: predictions against ground truth, one line an image and protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands.common import (
    NMS,
    Alpha,
    Beta,
    DatasetOfProtocols,
    GroundTruthOption,
    OnError,
    Output,
    Predictions,
    Protocols,
    TopK,
    inputs,
    skips,
)

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    epilog="Example: hoicli match --gt gt.jsonl preds.jsonl | "
    """jq -c '.image_id as $i | .predictions[] | select(.outcome == "true_positive") | [$i, .verb, .score]'"""
)
def match(
    predictions: Predictions = None,
    gt: GroundTruthOption = None,
    protocol: Protocols = None,
    dataset: DatasetOfProtocols = None,
    top_k: TopK = None,
    nms: NMS = None,
    nms_alpha: Alpha = 1.0,
    nms_beta: Beta = 0.5,
    only_predicted: Annotated[
        bool,
        typer.Option(
            "--only-predicted",
            help="No line for ground-truth images without predictions: for the shards of one dump.",
        ),
    ] = False,
    on_error: OnError = "stop",
    output: Output = "-",
) -> None:
    """Match predictions with ground truth: what became of each prediction, and who took each ground-truth triplet.

    One JSON line an image and protocol, with everything that eval and diagnose need; name the --protocol you want to
    keep the stream small. Ground-truth images without predictions get a line too, since their triplets are missed.
    """
    from hoicli.errors import UsageError
    from hoicli.matches import match_records, missed_records
    from hoicli.matching import Filters
    from hoicli.pairing import Coverage, check_streams, matched_batches, prediction_lines, read_truth
    from hoicli.protocols import protocols
    from hoicli.records import dump
    from hoicli.scenes import ErrorPolicy
    from hoicli.streams import open_output
    from hoicli.vocabulary import load

    if gt is None:
        raise UsageError("match: give the ground truth with --gt FILE")
    paths = inputs(predictions, "PREDS")
    check_streams(gt, paths)
    chosen = protocols(protocol or ["all"], dataset)
    filters = Filters.checked(top_k=top_k, nms=nms, nms_alpha=nms_alpha, nms_beta=nms_beta)
    policy = ErrorPolicy(skip=skips(on_error))
    truth = read_truth(gt, load(chosen[0].dataset), policy)
    _, lines = prediction_lines(paths)
    coverage, seen = Coverage(), set[str]()
    with open_output(output) as write:
        for batch, outcomes in matched_batches(lines, truth, chosen, filters, policy, all_boxes=True):
            coverage.add(batch)
            seen.update(batch.predictions.image_ids)
            for record in match_records(batch, outcomes, chosen, filters):
                write(dump(record))
        if not only_predicted:
            for record in missed_records(truth, seen, chosen, filters):
                write(dump(record))
    policy.report()
    coverage.report(truth, chosen)
