"""A diagnosis as result rows: counts of each error type, mAP with each oracle and the difference it makes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from hoicli.diagnosis.errors import ERRORS, MISSED
from hoicli.diagnosis.oracles import Diagnosis, OracleResult
from hoicli.diagnosis.repairs import SIGNATURES
from hoicli.evaluation.rows import RECALL, class_subsets
from hoicli.records.kit import Ints
from hoicli.records.results import Row, percent, signature
from hoicli.vocabulary.labels import Vocabulary


def diagnosis_rows(
    diagnosis: Diagnosis,
    vocabulary: Vocabulary,
    *,
    per_class: bool = False,
    order: Sequence[str] = (),
    part: Collection[int] | None = None,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Rows of metric count (of predictions, for missed_gt of ground truth), mAP and delta_mAP by oracle, each for full
    and the frequency groups, or the protocol's own subsets; per class count, AP and delta_AP, with mean_max_recall.
    With an `order` of oracles, progressive_mAP after each step and progressive_delta_mAP, what the step adds to the one
    before. part: the classes that counts and means are over (None: all); a subset without any of them has no rows.

    A count's subset is that of the predicted class, for missed_gt that of the annotated one; its n is how many triplets
    are predicted there, for missed_gt annotated. Values are in percent, except counts."""
    name = diagnosis.protocol.name
    settings = {**settings, **SIGNATURES[diagnosis.reading], "protocol": name}
    common: Row = {"protocol": name, "tags": dict(tags), "signature": signature(settings)}
    counts = diagnosis.counts()
    results = list(diagnosis.results(vocabulary))
    subsets = diagnosis.subsets(vocabulary)
    if part is not None:
        kept = {subset: classes[np.isin(classes, sorted(part))] for subset, classes in subsets.items()}
        subsets = {subset: classes for subset, classes in kept.items() if len(classes)}
    yield from _counts(counts, diagnosis.positives, subsets, common)
    yield from _means(results, subsets, common, recall=per_class)
    if order:
        steps = [results[0], *diagnosis.progressive(vocabulary, order)]
        yield from _steps(steps, subsets, {**common, "signature": signature({**settings, "order": ",".join(order)})})
    if per_class:
        yield from _classes(diagnosis, vocabulary, counts, results, common)


def _row(metric: str, named: Mapping[str, str], value: float | None, n: int, unit: str, common: Row) -> Row:
    return {"metric": metric, **named, "value": value, "n": n, "unit": unit, **common}


def _unit(error: str) -> str:
    return "triplets" if error == MISSED else "predictions"


def _counts(counts: Mapping[str, Ints], positives: Ints, subsets: Mapping[str, Ints], common: Row) -> Iterator[Row]:
    for error in (*ERRORS, MISSED):
        for subset, classes in subsets.items():
            of = [positives] if error == MISSED else [counts[name] for name in ERRORS]
            total = sum(int(number[classes].sum()) for number in of)
            value = int(counts[error][classes].sum())
            yield _row("count", {"subset": subset, "error": error}, value, total, _unit(error), common)


def _means(
    results: list[OracleResult], subsets: Mapping[str, Ints], common: Row, *, recall: bool = False
) -> Iterator[Row]:
    base = {subset: ap for subset, ap, _, _ in results[0].means(subsets)}
    for result in results:
        for subset, ap, max_recall, classes in result.means(subsets):
            before = base[subset]
            delta = None if ap is None or before is None else ap - before
            further = [("delta_mAP", delta)] if result.oracle != "none" else [(RECALL, max_recall)] * recall
            for metric, value in (("mAP", ap), *further):
                named = {"subset": subset, "oracle": result.oracle}
                yield _row(metric, named, percent(value), classes, "%", common)


def _steps(results: list[OracleResult], subsets: Mapping[str, Ints], common: Row) -> Iterator[Row]:
    """mAP after each step, and the gain over the step before (Diag-HOI Eq. 5); `results` begins with "none"."""
    before: dict[str, float | None] = {}
    for step, result in enumerate(results):
        for subset, ap, _, classes in result.means(subsets):
            last = before.get(subset)
            delta = None if ap is None or last is None else ap - last
            before[subset] = ap
            for metric, value in (("progressive_mAP", ap), ("progressive_delta_mAP", delta)) if step else ():
                named = {"subset": subset, "oracle": result.oracle}
                yield _row(metric, named, percent(value), classes, "%", {"step": step, **common})


def _classes(
    diagnosis: Diagnosis,
    vocabulary: Vocabulary,
    counts: Mapping[str, Ints],
    results: list[OracleResult],
    common: Row,
) -> Iterator[Row]:
    subset_of = class_subsets(vocabulary, diagnosis.protocol)
    positives = diagnosis.positives
    for number in np.flatnonzero(positives).tolist():
        verb, name = vocabulary.interactions[number]
        named = {"subset": subset_of.get(number, "full"), "verb": verb, vocabulary.qualifier: name}
        n = int(positives[number])
        for error in (*ERRORS, MISSED):
            yield _row("count", {**named, "error": error}, int(counts[error][number]), n, _unit(error), common)
        for result in results:
            yield _row("AP", {**named, "oracle": result.oracle}, percent(result.ap[number]), n, "%", common)
        for result in results[1:]:
            delta = result.ap[number] - results[0].ap[number]
            yield _row("delta_AP", {**named, "oracle": result.oracle}, percent(delta), n, "%", common)
