"""The curves of one model's stream, under each view of the protocols that are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from hoicli.diagnosis.curve_rows import Asked, Curves
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.rows import Evaluated, Wanted
from hoicli.evaluation.run import tallies
from hoicli.evaluation.views import ALONE, Thresholds, Views
from hoicli.records.intake import ErrorPolicy
from hoicli.records.results import Row
from hoicli.vocabulary.labels import Vocabulary


def curve_rows(
    predictions: Predictions,
    truth: GroundTruth | None,
    protocols: Sequence[Protocol],
    vocabulary: Vocabulary,
    filters: Filters,
    policy: ErrorPolicy,
    asked: Asked,
    *,
    named: Collection[str] = (),
    views: Views = ALONE,
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """The rows of `Curves` of predictions with ground truth, or of match records; parameters as of `tallies`, which
    says what it raises. A mean over thresholds has no curve: its thresholds have one each."""
    views = replace(views, thresholds=Thresholds(views.thresholds.values))
    wanted = Wanted(slices=views.of_classes)
    for tally, own, settings in tallies(
        predictions, truth, protocols, filters, policy, named=named, views=views, vocabulary=vocabulary
    ):
        for protocol, results, lists in tally.scored(own):
            signed = {**settings, "data": own.signed, **tally.settings(protocol)}
            for evaluated in Evaluated.of(protocol, own, wanted, results, signed, tags):
                yield from Curves.of(evaluated, lists, asked).rows()
