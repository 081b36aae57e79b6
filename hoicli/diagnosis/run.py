"""Diagnoses of one or several models from their streams, for rows, plots and pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from hoicli.diagnosis.gather import diagnose_matches, diagnosis_records, match_and_diagnose, typed_batches
from hoicli.diagnosis.oracles import Diagnosis
from hoicli.diagnosis.repairs import SIGNATURES, Reading
from hoicli.diagnosis.rows import diagnosis_rows
from hoicli.errors import DataError, UsageError
from hoicli.evaluation.coverage import Coverage, check_counted, served
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import protocol_of
from hoicli.evaluation.run import read_truth
from hoicli.evaluation.tally import Tally
from hoicli.io.streams import Stream
from hoicli.records import caveats
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import Record, dump, is_number, parse
from hoicli.records.results import Row
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Model:
    """A stream of predictions or matches with its name; `tagged` if rows must name it."""

    stream: Predictions
    name: str
    tagged: bool

    @classmethod
    def named(cls, paths: Sequence[str], names: Sequence[str]) -> list[Model]:
        """One model for each path, named by `names` in order or after its file; raises `UsageError` if counts differ or
        names repeat."""
        if names and len(names) != len(paths):
            raise UsageError(f"--name: {len(names)} names for {len(paths)} streams; give one a stream, in their order")
        chosen = list(names) or ["stdin" if path == "-" else PurePath(path).name.split(".")[0] for path in paths]
        if len(set(chosen)) != len(chosen):
            raise UsageError(f"--name: {', '.join(chosen)}: names must differ; give each stream its own")
        tagged = bool(names) or len(paths) > 1
        return [cls(Predictions([path]), name, tagged) for path, name in zip(paths, chosen, strict=True)]


@dataclass
class DiagnosedModel:
    """A model's diagnosis, the settings of its signature, and example errors for a gallery."""

    name: str
    tagged: bool
    vocabulary: Vocabulary
    diagnosis: Diagnosis
    settings: Mapping[str, str]
    examples: list[Record] = field(default_factory=list)
    plotted: list[Row] = field(default_factory=list)

    def rows(self, *, per_class: bool, top: int, order: Sequence[str], tags: Mapping[str, str]) -> list[Row]:
        """The model's result rows, also kept in `plotted` for a plot."""
        self.plotted = list(
            diagnosis_rows(
                self.diagnosis,
                self.vocabulary,
                per_class=per_class,
                top=top,
                order=order,
                settings=self.settings,
                tags={"model": self.name, **tags} if self.tagged else tags,
            )
        )
        return self.plotted

    def composition(self) -> dict[str, Any]:
        """The error composition along the ranked list, as `plot_diagnosis` takes it."""
        edges, counts = self.diagnosis.composition()
        return {"edges": edges, "counts": counts}


def check_reading(vocabulary: Vocabulary, reading: Reading) -> None:
    """Raises `UsageError` if the released code's numbers cannot be reproduced.

    map_improvement_vcoco.py of neu-vi/Diag-HOI ranks by numpy.argsort without `kind`, so equal scores (in a V-COCO
    dump, all statements that no one made) are ordered by NumPy's build, and repairs depend on that order."""
    if reading == "released" and vocabulary.roles:
        name = vocabulary.name
        raise UsageError(
            f"--as-released: for HICO-DET only; the released code for {name} ranks equal scores in no certain order"
        )


def diagnose_models(
    models: Sequence[Model],
    gt: Stream | None,
    dataset: str | None,
    filters: Filters,
    policy: ErrorPolicy,
    *,
    examples: int = 0,
    reading: Reading = "shared",
) -> list[DiagnosedModel]:
    """Each model's diagnosis: predictions with `gt`, match records with or without.

    Without a `dataset` it is that of the first stream if it holds match records, else HICO-DET. Raises `UsageError` for
    options that need predictions and for the released reading on other datasets than HICO-DET, `DataError` for a bad
    stream.
    """
    vocabulary = load(dataset or models[0].stream.dataset or "hico")
    protocol = protocol_of(vocabulary)
    check_reading(vocabulary, reading)
    uncounted = filters.allow_uncounted
    truth = None if gt is None else read_truth(gt, vocabulary, policy, allow_uncounted=uncounted)
    if truth is not None:
        served(truth, [protocol])
    diagnosed = []
    for model in models:
        settings = {"data": vocabulary.signed}
        if gt is not None and truth is not None and not model.stream.matched:
            whole = match_and_diagnose(
                model.stream, truth, [], protocol, filters, policy, examples=examples, reading=reading
            )
            whole.coverage.report(truth, [protocol], model=model.name if len(models) > 1 else None)
            assert whole.diagnosis is not None
            settings |= filters.signature() | truth.settings(protocol)
            items = with_images(list(whole.examples.items()), gt) if examples else []
            diagnosed.append(DiagnosedModel(model.name, model.tagged, vocabulary, whole.diagnosis, settings, items))
            continue
        if filters.removes or examples:
            raise UsageError("--top-k, --nms and --gallery need predictions with --gt, not match records")
        diagnosis, stream = diagnose_matches(model.stream, vocabulary, policy, reading, allow_uncounted=uncounted)
        if truth is not None:
            diagnosis.add_unseen(truth)
            settings |= truth.settings(protocol)
        settings |= stream.settings.get(protocol.name, {}) | filters.allowance()
        settings |= caveats.settings(stream.caveats.get(protocol.name, 0) & protocol.depends_on)
        diagnosed.append(DiagnosedModel(model.name, model.tagged, vocabulary, diagnosis, settings))
    return diagnosed


def with_images(items: list[Record], gt: Stream) -> list[Record]:
    """The items with file_name, width and height of their images, None if the ground truth does not have them."""
    missing = {item["image_id"] for item in items}
    facts: dict[str, Record] = {}
    for line in gt:
        try:
            record = parse(line)
        except DataError:  # already counted and reported in the first pass
            continue
        if str(record.get("image_id")) in missing:
            facts[str(record["image_id"])] = _facts(record)
    if missing - facts.keys():
        raise DataError("changed while it was read: images are missing; run again", place=gt.name)
    return [item | facts[item["image_id"]] for item in items]


def _facts(record: Record) -> Record:
    """file_name, width and height of a record, None if missing or invalid; no metric uses them."""
    name = record.get("file_name")
    sizes: dict[str, Any] = {key: record.get(key) for key in ("width", "height")}
    return {
        "file_name": name if type(name) is str else None,
        **{key: size if is_number(size) and size > 0 else None for key, size in sizes.items()},
    }


def emit_predictions(
    write: Callable[[bytes], object],
    gt: Stream,
    predictions: Predictions,
    vocabulary: Vocabulary,
    filters: Filters,
    policy: ErrorPolicy,
    reading: Reading = "shared",
) -> None:
    """Write one line for each image: every prediction with its type and repair (`gather.diagnosis_records`)."""
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    protocol = protocol_of(vocabulary)
    served(truth, [protocol])
    coverage, tally = Coverage(), Tally([], len(vocabulary.interactions))
    settings = {**filters.signature(), **SIGNATURES[reading], **truth.settings(protocol)}
    for batch, found, types in typed_batches(predictions, truth, filters, policy, reading):
        coverage.add(batch)
        tally.add_batch(batch, {})
        for record in diagnosis_records(batch, found, types, settings):
            write(dump(record))
    check_counted(tally, vocabulary, predictions.name, allowed=filters.allow_uncounted)
    coverage.report(truth, [protocol])
