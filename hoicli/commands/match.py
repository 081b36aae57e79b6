"""`hoicli match`: predictions against ground truth, one line for each image and protocol."""

from __future__ import annotations

from collections.abc import Iterator

from hoicli.errors import UsageError, arg
from hoicli.interface import options
from hoicli.interface.command import command
from hoicli.interface.option_values import names_of, text_of
from hoicli.interface.options import GroupedViewed, Unpack
from hoicli.interface.results import Records
from hoicli.io.streams import Stream
from hoicli.vocabulary.datasets import load


@command(
    reads="predictions, and ground truth with --gt",
    writes="match records: one line for each image and protocol",
    examples="""
        hoicli match --gt gt.jsonl --protocol hico preds.jsonl -o matches.jsonl  # match once ...
        hoicli eval --per-class matches.jsonl  # ... and evaluate as often as you like
        hoicli match --gt gt.jsonl --protocol hico preds.jsonl | jq -c '.predictions[] | select(.outcome ==
            "true_positive")'  # every true positive
        hoicli match --gt gt.jsonl --nms 0.7 --top-k 100 preds.jsonl | hoicli eval  # with CDN's pair NMS
    """,
    see=["eval", "diagnose"],
)
def match(
    gt: options.Truth = None,
    predictions: options.Predictions = None,
    *,
    protocol: options.Protocols = None,
    dataset: options.DatasetOfProtocols = None,
    only_predicted: bool = False,
    **shared: Unpack[GroupedViewed],
) -> Records:
    """Match predictions with ground truth: the outcome of each prediction, and the prediction that found each
    ground-truth triplet.

    Writes one JSON line for each image and protocol, with all that eval and diagnose need. Name a --protocol to keep
    the stream small. With --iou and --slice there is a line for each threshold and part.

    Arguments:
        only_predicted: Leave out ground-truth images without predictions (otherwise they have a line, too, and their
            triplets count as missed): for shards of a dump.
    """
    from hoicli.evaluation.coverage import Coverage, choose_computable
    from hoicli.evaluation.evaluating import match_lines
    from hoicli.evaluation.selection import choose_protocols, names_asked_for
    from hoicli.interface.inputs import Inputs, require_truth

    gt, names, dataset_name = require_truth(gt, "match"), names_of(protocol), text_of(dataset)
    chosen = choose_protocols(names, dataset_name)
    named = names_asked_for(names)  # the protocols that the user asked for one by one
    if without_boxes := [row.name for row in chosen if row.whole_image]:
        problem = "rates whole images, without boxes to match; use hoicli eval"
        raise UsageError(f"{arg('protocol', ', '.join(without_boxes))}: {problem}")
    vocabulary = load(dataset_name or chosen[0].dataset)
    inputs = Inputs(dataset_name, shared, within=vocabulary.path or vocabulary.name, gt=gt)
    views = inputs.views(vocabulary)
    if views.of_classes:
        raise UsageError(
            f"{arg('slice', views.of_classes[0].name)}: selects the classes to average; give it to hoicli eval"
        )
    lines: Stream = inputs.predictions(predictions)
    if only_predicted:  # a shard may be empty: a job array can have more tasks than images
        lines = inputs.records(predictions, "predictions", "PREDS", name="predictions", scored=True)

    def iterate_records() -> Iterator[bytes]:
        """Yield match records, several lines of JSON at a time. Raises `DataError` at the end if most of the data
        belongs to no class of the dataset."""
        truth = inputs.read_truth(gt, vocabulary)
        # views: each protocol at each --iou threshold and on each part of --slice; a mean over several thresholds
        # (`mean_of`) is matched by each of these
        matched = [row for row in views.views_of(choose_computable(truth, chosen, named), named) if not row.mean_of]
        coverage = Coverage()
        for batch in match_lines(lines, truth, matched, inputs.filters, inputs.policy, partial=only_predicted):
            coverage.merge(batch.coverage)
            yield batch.lines
        inputs.policy.report()
        coverage.report(truth, matched, lines.name, shard=only_predicted)

    return Records(iterate_records(), piped="match")
