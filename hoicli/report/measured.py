"""All that a report says of one prediction dump or several, measured: the rows of eval, curves, diagnose, confusion and
pairstats of each, and of several what compare says. Predictions are read once for all of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from hoicli.arrays.scenes import Scenes
from hoicli.comparison.rows import Compared, Comparison, protocol_rows
from hoicli.curves.rows import Asked, Curves
from hoicli.diagnosis.confusion_run import Confusing
from hoicli.diagnosis.errors import Located
from hoicli.diagnosis.gather import Gathered, match_and_diagnose
from hoicli.diagnosis.repairs import ErrorTypes
from hoicli.diagnosis.rows import diagnosis_rows
from hoicli.diagnosis.run import Model, with_images
from hoicli.evaluation.coverage import Coverage, served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.rows import Evaluated, Wanted, tally_rows
from hoicli.evaluation.run import read_truth
from hoicli.evaluation.selection import main_protocol, protocol_of
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import ALONE, Views
from hoicli.figures.shown import label
from hoicli.io.streams import Line, Stream
from hoicli.io.workers import shared_out
from hoicli.pairs.reading import PairBatch, read_scenes_with_pairs
from hoicli.pairs.rows import pair_rows
from hoicli.pairs.settings import sweeps
from hoicli.pairs.statistics import PairStatistics
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record
from hoicli.records.results import Row
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.labels import Vocabulary

PAIR_NMS = (0.3, 0.5, 0.7)
"""The thresholds of the sweep; Diag-HOI's Table 3 has one a model, and does not name it."""

EXAMPLES = 3
"""Errors of each type in the gallery."""

MANY = 100_000
"""Triplets whose rows are made by several processes: it takes one of them a quarter of a second."""


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
    examples: list[Record]
    coverage: Coverage
    diagnosis: list[Row] = field(default_factory=list)
    composition: tuple[list[int], dict[str, list[int]]] = ([], {})
    confusions: list[Row] = field(default_factory=list)
    pairs: list[Row] = field(default_factory=list)


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

    `pair_policy` judges lines whose pairs alone are wrong.
    """
    truth = read_truth(gt, request.vocabulary, policy, allow_uncounted=request.filters.allow_uncounted)
    request = replace(request, protocols=served(truth, request.protocols, request.named))
    dumps, compared = [], []
    for model in models:
        whose = model.name if len(models) > 1 else None
        found = _matched(model, truth, request, policy, pair_policy, whose=whose)
        if len(models) > 1:
            compared.append(_compared(model.name, found.tally, truth, request))
        dumps.append(_dump(model, found, gt, truth, request))
    return Measured(
        request,
        dumps,
        list(_differences(compared, truth, request)),
        images=len(truth.scenes.image_ids),
        triplets=len(truth.scenes.interaction),
        derived=truth.scenes.derived,
        skipped=policy.skipped,
    )


class Kept:
    """What is kept of the batches besides tallies and error types (`gather.Collector`): confusions, and what goes into
    `statistics`."""

    def __init__(self, truth: GroundTruth, protocol: Protocol, statistics: PairStatistics) -> None:
        self.confusing = Confusing(truth, protocol)
        self.pairs = statistics.nothing()
        self._truth, self._statistics = truth, statistics
        self._last: PairBatch | None = None

    def read(self, lines: Iterable[Line], policy: ErrorPolicy, pair_policy: ErrorPolicy) -> Iterator[Scenes]:
        """The batches of some lines; `add` has to be called for each before the next."""
        truth = self._truth
        for scenes, self._last in read_scenes_with_pairs(
            lines, truth.vocabulary, policy=policy, pair_policy=pair_policy, known=truth.position
        ):
            yield scenes

    def add(self, batch: Batch, found: Located, types: ErrorTypes) -> None:
        """Add the batch that was read last."""
        self.confusing.add(batch, found, types)
        if self._last is not None:
            whole = self._last.scenes is batch.predictions
            self._statistics.add(self._last, self.pairs, batch if whole else None)

    def merge(self, other: Kept) -> None:
        """Add what was kept of other images."""
        self.confusing.merge(other.confusing)
        self.pairs.merge(other.pairs)

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to the process that merges it."""
        return {"confusing": self.confusing, "pairs": self.pairs}


def _matched(
    model: Model, truth: GroundTruth, request: Request, policy: ErrorPolicy, pair_policy: ErrorPolicy, whose: str | None
) -> Gathered:
    """What is gathered of a model's predictions; `kept` are its `PairStatistics` and its `Confusing`, where the dataset
    has error types."""
    extra = [row for row in request.views.of(request.protocols, request.named) if row.view]
    gather = partial(
        match_and_diagnose,
        model.stream.unmatched("report"),
        truth,
        [*request.protocols, *extra],
        filters=request.filters,
        policy=policy,
        examples=EXAMPLES,
    )
    diagnosed = protocol_of(truth.vocabulary)
    if truth.serves(diagnosed):
        statistics = PairStatistics(truth, sweeps(PAIR_NMS, ()))

        def read(kept: Kept, lines: Iterable[Line], shared: ErrorPolicy) -> Iterator[Scenes]:
            return kept.read(lines, shared, pair_policy if shared is policy else shared)

        found = gather([diagnosed], collector=lambda: Kept(truth, diagnosed, statistics), reader=read)
        statistics.merge(found.kept.pairs)
        found.kept = statistics, found.kept.confusing
    else:
        found = gather([])
    found.coverage.report(truth, [*request.protocols, *extra], model.stream.name, model=whose)
    return found


def _dump(model: Model, found: Gathered, gt: Stream, truth: GroundTruth, request: Request) -> Dump:
    """A model's rows; where there are processors for it, several kinds at a time."""
    tags = {"model": model.name, **request.tags} if model.tagged else request.tags

    def evaluated() -> dict[str, Any]:
        return _evaluated(found.tally, request, tags)

    def curved() -> dict[str, Any]:
        return {"curves": list(_curves(found.tally, request, tags))}

    def confused() -> dict[str, Any]:
        confused = found.kept[1].confused(model.name, request.filters.signature(), tagged=model.tagged)
        return {"confusions": list(confused.rows(confused.cells(), top=request.top, tags=request.tags))}

    def diagnosed() -> dict[str, Any]:
        diagnosis = found.diagnoses[0]
        settings = request.settings | truth.settings(diagnosis.protocol)
        rows = diagnosis_rows(
            diagnosis, request.vocabulary, per_class=False, top=request.top, settings=settings, tags=tags
        )
        return {"diagnosis": list(rows), "composition": diagnosis.composition()}

    def paired() -> dict[str, Any]:
        return {"pairs": list(pair_rows(found.kept[0], tags=tags, settings=request.filters.allowance()))}

    def measured(some: Sequence[Callable[[], dict[str, Any]]]) -> dict[str, Any]:
        return {kind: rows for kinds in some for kind, rows in kinds().items()}

    every = [evaluated, confused, curved, diagnosed, paired] if found.diagnoses else [evaluated, curved]
    shares = shared_out(measured, every) if found.coverage.triplets >= MANY else [measured(every)]
    return Dump(
        model.name,
        examples=with_images(list(found.examples.items()), gt),
        coverage=found.coverage,
        **{kind: rows for share in shares for kind, rows in share.items()},
    )


def _evaluated(tally: Tally, request: Request, tags: Mapping[str, str]) -> dict[str, list[Row]]:
    """eval's rows, those of views, and those of the classes under the primary protocol."""
    wanted = Wanted(request.split, per_class=True, slices=request.views.of_classes)
    settings, primary = request.settings, request.primary.name
    rows = list(tally_rows(tally, request.vocabulary, wanted, request.resampling, settings=settings, tags=tags))
    alone = [row for row in rows if row["tags"] == tags]
    return {
        "evaluation": [row for row in alone if "verb" not in row],
        "views": [row for row in rows if "verb" not in row and row["tags"] != tags],
        "classes": [row for row in alone if "verb" in row and row["protocol"] == primary],
    }


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
