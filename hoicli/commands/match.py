"""`hoicli match`: predictions against ground truth, one line for each image and protocol."""

from __future__ import annotations

from hoicli.commands import options
from hoicli.commands.manual import command
from hoicli.commands.options import flag
from hoicli.errors import UsageError
from hoicli.io.outputs import open_output
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions, and ground truth with --gt",
    writes="match records: one line for each image and protocol",
    examples=[
        ("hoicli match --gt gt.jsonl --protocol hico preds.jsonl -o matches.jsonl", "match once"),
        ("hoicli eval --per-class matches.jsonl", "and evaluate as often as you like"),
        (
            "hoicli match --gt gt.jsonl --protocol hico preds.jsonl "
            """| jq -c '.predictions[] | select(.outcome == "true_positive")'""",
            "every true positive",
        ),
        ("hoicli match --gt gt.jsonl --nms 0.7 --top-k 100 preds.jsonl | hoicli eval", "after CDN's pair NMS"),
    ],
    see=["eval", "diagnose"],
)
def match(
    predictions: list[str] | None = options.PREDICTIONS,
    gt: str | None = options.GROUND_TRUTH,
    protocol: list[str] | None = options.PROTOCOLS,
    dataset: str | None = options.DATASET_OF_PROTOCOLS,
    count_images: str | None = options.COUNT_IMAGES,
    only_predicted: bool = flag(
        "--only-predicted", "Leave out ground-truth images without predictions: for the shards of one dump."
    ),
    on_error: str = options.ON_ERROR,
    output: str = options.OUT,
    *,
    viewing: options.Viewing,
    filtering: options.Filtering,
    dumps: options.Dumps,
) -> None:
    """Match predictions with ground truth: the outcome of each prediction, and the prediction that found each
    ground-truth triplet.

    One JSON line for each image and protocol, with everything that eval and diagnose need; name a --protocol to keep
    the stream small. With --iou and --slice there is one for each threshold and part. Ground-truth images without
    predictions have a line too, since their triplets are missed.
    """
    from hoicli.evaluation.coverage import Coverage, served
    from hoicli.evaluation.match_records import missed_records
    from hoicli.evaluation.predictions import Predictions
    from hoicli.evaluation.protocol_files import chosen_protocols, explicit
    from hoicli.evaluation.run import matched_lines, read_truth
    from hoicli.evaluation.selection import adjusted
    from hoicli.records.parsing import dump, ending

    gt = options.required(gt, "match")
    paths = options.inputs(predictions, "PREDS")
    chosen = adjusted(chosen_protocols(protocol or [], dataset), images=count_images)
    named = explicit(protocol or [])
    if whole := [row.name for row in chosen if row.whole_image]:
        raise UsageError(f"--protocol {', '.join(whole)}: of whole images, which have no boxes to match; hoicli eval")
    filters, policy = filtering.filters(), options.policy(on_error)
    vocabulary = load(dataset or chosen[0].dataset)
    views = viewing.views(vocabulary)
    if views.of_classes:
        raise UsageError(f"--slice {views.of_classes[0].name}: cuts what is averaged; give it to hoicli eval")
    opening = dumps.opening(dataset, policy, within=chosen[0].dataset)
    truth_lines = Stream([gt], "ground truth", opening.truth)
    # a shard may be empty: a job array can have more tasks than images
    lines = (
        Stream(paths, "predictions", opening.predictions) if only_predicted else Predictions(paths, opening.predictions)
    )
    with open_output(output) as write, ending(write, "match"):
        truth = read_truth(truth_lines, vocabulary, policy, allow_uncounted=filtering.allow_uncounted)
        matched = [row for row in views.of(served(truth, chosen, named), named) if not row.mean_of]
        coverage, missed = Coverage(), truth.absent(())
        for batch in matched_lines(lines, truth, matched, filters, policy, partial=only_predicted):
            coverage.merge(batch.coverage)
            missed[truth.rows_of(batch.image_ids)] = False
            write(batch.lines)
        if not only_predicted:
            for record in missed_records(truth, missed, matched, filters):
                write(dump(record))
        policy.report()
        coverage.report(truth, matched, lines.name, shard=only_predicted)  # may refuse the whole
