"""`hoicli match`: predictions against ground truth, one line an image and protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from hoicli.commands.common import (
    NMS,
    AllowUncounted,
    Alpha,
    Beta,
    CountImages,
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
from hoicli.commands.manual import page

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command(
    cls=page(
        reads="predictions, and ground truth with --gt",
        writes="match records: a line an image and protocol",
        examples=[
            ("hoicli match --gt gt.jsonl --protocol hico preds.jsonl -o matches.jsonl", "match once"),
            ("hoicli eval --per-class matches.jsonl", "and evaluate as often as you like"),
            (
                "hoicli match --gt gt.jsonl --protocol hico preds.jsonl "
                """| jq -c '.predictions[] | select(.outcome == "true_positive")'""",
                "every true positive",
            ),
            (
                "hoicli match --gt gt.jsonl --nms 0.7 --top-k 100 preds.jsonl | hoicli eval",
                "after CDN's pair NMS",
            ),
        ],
        see=["eval", "diagnose", "schema"],
    )
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
    allow_uncounted: AllowUncounted = False,
    count_images: CountImages = None,
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
    from hoicli.evaluation.coverage import Coverage, served
    from hoicli.evaluation.filters import Filters
    from hoicli.evaluation.match_records import match_records, missed_records
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.protocols import adjusted, explicit, protocols
    from hoicli.evaluation.run import matched_batches, read_truth
    from hoicli.io.outputs import open_output
    from hoicli.io.streams import Stream
    from hoicli.records.intake import ErrorPolicy
    from hoicli.records.parsing import dump
    from hoicli.vocabulary.datasets import load

    if gt is None:
        raise UsageError("match: give the ground truth with --gt FILE")
    paths = inputs(predictions, "PREDS")
    chosen = adjusted(protocols(protocol or ["all"], dataset), images=count_images)
    filters = Filters(top_k=top_k, nms=nms, nms_alpha=nms_alpha, nms_beta=nms_beta, allow_uncounted=allow_uncounted)
    policy = ErrorPolicy(skip=skips(on_error))
    truth = read_truth(Stream([gt], "ground truth"), load(chosen[0].dataset), policy, allow_uncounted=allow_uncounted)
    chosen = served(truth, chosen, explicit(protocol or []))
    # a shard may be empty: an engine's partition, an array with more tasks than images
    lines = Stream(paths, "predictions") if only_predicted else Predictions(paths)
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
    coverage.report(truth, chosen, shard=only_predicted)
