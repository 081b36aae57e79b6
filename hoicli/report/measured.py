"""All that a report says of a prediction dump, measured: the rows of eval, diagnose and pairstats, and what goes with
them. Predictions are matched once for eval and diagnose together; pair statistics read them a second time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from hoicli.diagnosis.gather import match_and_diagnose
from hoicli.diagnosis.rows import diagnosis_rows
from hoicli.diagnosis.run import with_images
from hoicli.evaluation.coverage import Coverage, served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.rows import Wanted, tally_rows
from hoicli.evaluation.run import read_truth
from hoicli.evaluation.selection import main_protocol, protocol_of
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import ALONE, Views
from hoicli.io.streams import Stream
from hoicli.pairs.rows import pair_rows
from hoicli.pairs.settings import sweeps
from hoicli.pairs.statistics import pair_statistics
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record
from hoicli.records.results import Row
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.labels import Vocabulary

PAIR_NMS = (0.3, 0.5, 0.7)
"""The thresholds of the sweep; Diag-HOI's Table 3 has one a model, and does not name it."""

EXAMPLES = 3
"""Errors of each type in the gallery."""


@dataclass(frozen=True)
class Request:
    """What is to be measured, and how; `views` adds rows of eval at other thresholds and on parts; `split` is the
    vocabulary's name of it, `top` counts classes and images; `resampling` gives every mAP its interval; `named` are the
    protocols that were asked for by their names."""

    vocabulary: Vocabulary
    protocols: Sequence[Protocol]
    filters: Filters
    split: str | None
    tags: Mapping[str, str]
    top: int
    resampling: Resampling | None = None
    named: Collection[str] = ()
    views: Views = ALONE

    @property
    def primary(self) -> Protocol:
        """The protocol of the headline and of the classes."""
        wanted = main_protocol(self.vocabulary).name
        return next((row for row in self.protocols if row.name == wanted), self.protocols[0])

    @property
    def settings(self) -> dict[str, str]:
        """What all signatures of matched predictions hold."""
        return {**self.filters.signature(), "data": self.vocabulary.signed}


@dataclass(frozen=True)
class Measured:
    """Rows as the commands give them, and what they do not say.

    evaluation: of eval; views: its rows at other thresholds and on parts of the data; classes: its rows per class under
    `Request.primary`; diagnosis, with `top` (and composition: edges and counts along the ranking), and pairs: of
    diagnose and pairstats, empty for a dataset without them. coverage counts the predictions; images, triplets and
    derived (images without image-level labels) the ground truth; skipped the bad lines that were dropped.
    """

    request: Request
    evaluation: list[Row]
    views: list[Row]
    classes: list[Row]
    diagnosis: list[Row]
    composition: tuple[list[int], dict[str, list[int]]]
    pairs: list[Row]
    examples: list[Record]
    coverage: Coverage
    images: int
    triplets: int
    derived: int
    skipped: int


def measure(
    predictions: Predictions, gt: Stream, request: Request, policy: ErrorPolicy, pair_policy: ErrorPolicy
) -> Measured:
    """Read and measure. Raises `DataError` for what is wrong with a stream, `UsageError` for match records.

    The predictions are read twice: `pair_policy` judges the lines of the second time.
    """
    truth = read_truth(gt, request.vocabulary, policy, allow_uncounted=request.filters.allow_uncounted)
    request = replace(request, protocols=served(truth, request.protocols, request.named))
    protocol = protocol_of(request.vocabulary)
    diagnosed = protocol if truth.serves(protocol) else None
    extra = [row for row in request.views.of(request.protocols, request.named) if row.view]
    found = match_and_diagnose(
        predictions.unmatched("report"),
        truth,
        [*request.protocols, *extra],
        [] if diagnosed is None else [diagnosed],
        request.filters,
        policy,
        examples=EXAMPLES,
    )
    found.coverage.report(truth, [*request.protocols, *extra])
    evaluation, views, classes = _evaluated(found.tally, request)
    rows: list[Row] = []
    composition: tuple[list[int], dict[str, list[int]]] = ([], {})
    diagnosis = next(iter(found.diagnoses), None)
    if diagnosis is not None:
        rows = list(
            diagnosis_rows(
                diagnosis,
                request.vocabulary,
                per_class=False,
                top=request.top,
                settings=request.settings | truth.settings(diagnosis.protocol),
                tags=request.tags,
            )
        )
        composition = diagnosis.composition()
    return Measured(
        request,
        evaluation,
        views,
        classes,
        rows,
        composition,
        [] if diagnosis is None else _paired(predictions, truth, request, pair_policy),
        with_images(list(found.examples.items()), gt),
        found.coverage,
        images=len(truth.scenes.image_ids),
        triplets=len(truth.scenes.interaction),
        derived=truth.scenes.derived,
        skipped=policy.skipped,
    )


def _evaluated(tally: Tally, request: Request) -> tuple[list[Row], list[Row], list[Row]]:
    """(eval's rows, those of views, those of the classes under the primary protocol)."""
    wanted = Wanted(request.split, per_class=True, slices=request.views.of_classes)
    settings, tags = request.settings, request.tags
    rows = list(tally_rows(tally, request.vocabulary, wanted, request.resampling, settings=settings, tags=tags))
    alone = [row for row in rows if row["tags"] == tags]
    return (
        [row for row in alone if "verb" not in row],
        [row for row in rows if "verb" not in row and row["tags"] != tags],
        [row for row in alone if "verb" in row and row["protocol"] == request.primary.name],
    )


def _paired(predictions: Predictions, truth: GroundTruth, request: Request, policy: ErrorPolicy) -> list[Row]:
    """pairstats' rows of all pairs, and after pair NMS at each of PAIR_NMS."""
    statistics = pair_statistics(predictions, truth, sweeps(PAIR_NMS, ()), policy)
    return list(pair_rows(statistics, tags=request.tags, settings=request.filters.allowance()))


def facts(measured: Measured) -> list[tuple[str, int]]:
    """How the two streams met: (what was counted, how many)."""
    coverage, dataset = measured.coverage, measured.request.vocabulary.name

    lines = [
        ("ground-truth images", measured.images),
        ("of them without predictions; their triplets count as missed", measured.images - coverage.images),
        ("ground-truth triplets", measured.triplets),
        ("predicted triplets", coverage.triplets),
        (f"of them no {dataset} interaction (verb and object), and ignored", coverage.not_interactions),
        ("of them with an object box that has no label", coverage.unlabelled),
    ]
    if any(protocol.known_object for protocol in measured.request.protocols):
        lines.append(
            ("images whose image-level labels (Known Object) were derived from their triplets", measured.derived)
        )
    lines.append(("bad lines dropped", measured.skipped))
    return lines
