"""All that a report says of one prediction dump or several, measured: the rows of eval, curves, diagnose, confusion and
pairstats of each, and of several what compare says. Predictions are matched once for all but pairstats, which reads
them a second time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hoicli.comparison.rows import Compared, Comparison, protocol_rows
from hoicli.curves.rows import Asked, Curves
from hoicli.diagnosis.confusion_run import Confusing
from hoicli.diagnosis.gather import Gathered, match_and_diagnose
from hoicli.diagnosis.rows import diagnosis_rows
from hoicli.diagnosis.run import Model, with_images
from hoicli.evaluation.coverage import Coverage, served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.rows import Evaluated, Wanted, tally_rows
from hoicli.evaluation.run import read_truth
from hoicli.evaluation.selection import main_protocol, protocol_of
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import ALONE, Views
from hoicli.figures.shown import label
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
    vocabulary's name of it, `top` counts classes, confusions and images; `resampling` gives every mAP its interval;
    `named` are the protocols that were asked for by their names."""

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
        """The protocol of the headline, the curves, the classes and the differences."""
        wanted = main_protocol(self.vocabulary).name
        return next((row for row in self.protocols if row.name == wanted), self.protocols[0])

    @property
    def settings(self) -> dict[str, str]:
        """What all signatures of matched predictions hold."""
        return {**self.filters.signature(), "data": self.vocabulary.signed}


@dataclass(frozen=True)
class Dump:
    """One model's rows as the commands give them, and what they do not say.

    evaluation: of eval; views: its rows at other thresholds and on parts of the data; classes: its rows per class under
    `Request.primary`; curves: of curves under it; diagnosis, with `top` (and composition: edges and counts along the
    ranking), confusions and pairs: of diagnose, confusion and pairstats, empty for a dataset without them. coverage
    counts the predictions.
    """

    name: str
    evaluation: list[Row]
    views: list[Row]
    classes: list[Row]
    curves: list[Row]
    diagnosis: list[Row]
    composition: tuple[list[int], dict[str, list[int]]]
    confusions: list[Row]
    pairs: list[Row]
    examples: list[Record]
    coverage: Coverage


@dataclass(frozen=True)
class Measured:
    """The dumps, and of several the rows of compare under `Request.primary` (differences from the first). images,
    triplets and derived (images without image-level labels) count the ground truth; skipped the bad lines that were
    dropped."""

    request: Request
    dumps: Sequence[Dump]
    differences: list[Row]
    images: int
    triplets: int
    derived: int
    skipped: int

    @property
    def several(self) -> bool:
        """Whether there is more than one dump, so that tables say whose a number is."""
        return len(self.dumps) > 1

    @property
    def diagnosed(self) -> bool:
        """Whether the dataset has types of errors, confusions and pairs."""
        return bool(self.dumps[0].diagnosis)

    @property
    def labels(self) -> dict[str, str]:
        """What a figure calls each dump, by its name: short, and all different."""
        found: dict[str, str] = {}
        for dump in self.dumps:
            short = label(dump.name)
            while short in found.values():  # two long names that are one when cut
                short += "'"
            found[dump.name] = short
        return found

    def rows(self, kind: str) -> list[Row]:
        """The rows of all dumps of one kind, which is a field of `Dump`."""
        return [row for dump in self.dumps for row in getattr(dump, kind)]


def measure(
    models: Sequence[Model], gt: Stream, request: Request, policy: ErrorPolicy, pair_policy: ErrorPolicy
) -> Measured:
    """Read and measure. Raises `DataError` for what is wrong with a stream, `UsageError` for match records.

    The predictions are read twice: `pair_policy` judges the lines of the second time.
    """
    truth = read_truth(gt, request.vocabulary, policy, allow_uncounted=request.filters.allow_uncounted)
    request = replace(request, protocols=served(truth, request.protocols, request.named))
    dumps, compared = [], []
    for model in models:
        found = _matched(model, truth, request, policy, whose=model.name if len(models) > 1 else None)
        if len(models) > 1:
            compared.append(_compared(model.name, found.tally, truth, request))
        dumps.append(_dump(model, found, gt, truth, request, pair_policy))
    return Measured(
        request,
        dumps,
        list(_differences(compared, truth, request)),
        images=len(truth.scenes.image_ids),
        triplets=len(truth.scenes.interaction),
        derived=truth.scenes.derived,
        skipped=policy.skipped,
    )


def _diagnosed(truth: GroundTruth) -> Protocol | None:
    """The protocol of error types, where the dataset has one and the ground truth serves it."""
    protocol = protocol_of(truth.vocabulary)
    return protocol if truth.serves(protocol) else None


def _matched(model: Model, truth: GroundTruth, request: Request, policy: ErrorPolicy, whose: str | None) -> Gathered:
    diagnosed = _diagnosed(truth)
    extra = [row for row in request.views.of(request.protocols, request.named) if row.view]
    found = match_and_diagnose(
        model.stream.unmatched("report"),
        truth,
        [*request.protocols, *extra],
        [] if diagnosed is None else [diagnosed],
        request.filters,
        policy,
        examples=EXAMPLES,
        collector=None if diagnosed is None else lambda: Confusing(truth, diagnosed),
    )
    found.coverage.report(truth, [*request.protocols, *extra], model=whose)
    return found


def _dump(
    model: Model, found: Gathered, gt: Stream, truth: GroundTruth, request: Request, pair_policy: ErrorPolicy
) -> Dump:
    tags = {"model": model.name, **request.tags} if model.tagged else request.tags
    evaluation, views, classes = _evaluated(found.tally, request, tags)
    rows: list[Row] = []
    confusions: list[Row] = []
    pairs: list[Row] = []
    composition: tuple[list[int], dict[str, list[int]]] = ([], {})
    for diagnosis in found.diagnoses[:1]:
        settings = request.settings | truth.settings(diagnosis.protocol)
        rows = list(
            diagnosis_rows(
                diagnosis, request.vocabulary, per_class=False, top=request.top, settings=settings, tags=tags
            )
        )
        composition = diagnosis.composition()
        confused = found.kept.confused(model.name, request.filters.signature(), tagged=model.tagged)
        confusions = list(confused.rows(confused.cells(), top=request.top, tags=request.tags))
        statistics = pair_statistics(model.stream, truth, sweeps(PAIR_NMS, ()), pair_policy)
        pairs = list(pair_rows(statistics, tags=tags, settings=request.filters.allowance()))
    return Dump(
        model.name,
        evaluation,
        views,
        classes,
        list(_curves(found.tally, request, tags)),
        rows,
        composition,
        confusions,
        pairs,
        with_images(list(found.examples.items()), gt),
        found.coverage,
    )


def _evaluated(tally: Tally, request: Request, tags: Mapping[str, str]) -> tuple[list[Row], list[Row], list[Row]]:
    """(eval's rows, those of views, those of the classes under the primary protocol)."""
    wanted = Wanted(request.split, per_class=True, slices=request.views.of_classes)
    settings = request.settings
    rows = list(tally_rows(tally, request.vocabulary, wanted, request.resampling, settings=settings, tags=tags))
    alone = [row for row in rows if row["tags"] == tags]
    return (
        [row for row in alone if "verb" not in row],
        [row for row in rows if "verb" not in row and row["tags"] != tags],
        [row for row in alone if "verb" in row and row["protocol"] == request.primary.name],
    )


def _curves(tally: Tally, request: Request, tags: Mapping[str, str]) -> Iterator[Row]:
    """curves' rows of all classes and of each group, under the primary protocol."""
    for protocol, results, lists in tally.scored(request.vocabulary):
        if protocol.key == request.primary.key:
            signed = {**request.settings, **tally.settings(protocol)}
            evaluated = Evaluated.of(protocol, request.vocabulary, Wanted(), results, signed, tags)[0]
            yield from Curves.of(evaluated, lists, Asked()).rows()
            return


def _compared(name: str, tally: Tally, truth: GroundTruth, request: Request) -> Compared:
    """A model under the primary protocol, as compare takes it."""
    ranked = tally.ranked(request.vocabulary, sorted(truth.scenes.image_ids))
    protocol, results, lists = next(one for one in ranked if one[0].key == request.primary.key)
    signed = {**request.settings, **tally.settings(protocol)}
    tags = {"model": name, **request.tags}
    return Compared(name, [lists], Evaluated.of(protocol, request.vocabulary, Wanted(), results, signed, tags))


def _differences(models: Sequence[Compared], truth: GroundTruth, request: Request) -> Iterator[Row]:
    """compare's rows of differences from the first model; none of a single one."""
    resampling = request.resampling or Resampling.checked(0, 0, or_none=True)
    shared = Comparison(request.vocabulary, sorted(truth.scenes.image_ids), resampling, request.top, request.tags)
    if len(models) > 1:
        yield from (row for row in protocol_rows(models, shared) if "baseline" in row["tags"])


def facts(measured: Measured) -> Iterator[tuple[str, list[int]]]:
    """How the streams met: (what was counted, how many), a number for each dump, or one for all."""
    covered, dataset = [dump.coverage for dump in measured.dumps], measured.request.vocabulary.name
    absent = "of them without predictions; their triplets count as missed"
    yield "ground-truth images", [measured.images]
    yield absent, [measured.images - coverage.images for coverage in covered]
    yield "ground-truth triplets", [measured.triplets]
    yield "predicted triplets", [coverage.triplets for coverage in covered]
    ignored = f"of them no {dataset} interaction (verb and object), and ignored"
    yield ignored, [coverage.not_interactions for coverage in covered]
    yield "of them with an object box that has no label", [coverage.unlabelled for coverage in covered]
    if any(protocol.known_object for protocol in measured.request.protocols):
        yield "images whose image-level labels (Known Object) were derived from their triplets", [measured.derived]
    yield "bad lines dropped", [measured.skipped]
