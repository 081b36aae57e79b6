"""Several models' predictions compared on one ground truth, as result rows: each model's mAP, then the differences from
the first model, the baseline; classes are ordered by p, images by size. A row's `value` is `to` less `from`; `p` is
from swaps, `p_bootstrap` from resamples."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from typing import NamedTuple

import numpy as np

from hoicli.comparison.oracle_rounds import OracleRounds
from hoicli.comparison.sentences import CLASSES_BETTER, CLASSES_WORSE, SURE
from hoicli.diagnosis.diagnosed_models import Gathered, match_and_diagnose
from hoicli.diagnosis.error_types import ERRORS, MISSED
from hoicli.diagnosis.repairs import Diagnosis
from hoicli.evaluation.coverage import choose_computable, tell_absent
from hoicli.evaluation.evaluating import read_truth
from hoicli.evaluation.evaluation_rows import Evaluated, Wanted, class_subsets
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import protocol_of
from hoicli.evaluation.tally import subset_classes
from hoicli.evaluation.views import ALONE, Views
from hoicli.io.messages import note
from hoicli.io.streams import Stream
from hoicli.records.intake import ErrorPolicy
from hoicli.records.kit import Floats, Ints
from hoicli.records.result_rows import Row, Settings, percent, result_row, row_ends
from hoicli.resampling.comparison import (
    Difference,
    PairedRounds,
    class_chances,
    count_differences,
    difference,
    image_differences,
)
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import false_discovery
from hoicli.resampling.ranked import MOST_LEFT_OUT, RankedLists
from hoicli.resampling.rounds import Rounds, resample, swap_outputs
from hoicli.vocabulary.labels import Vocabulary


class Compared(NamedTuple):
    """One model under one protocol: its name, its ranked lists, and its results: `parts` has those of all classes, then
    those of each part of a slice of classes."""

    name: str
    lists: RankedLists
    parts: Sequence[Evaluated]

    @property
    def evaluated(self) -> Evaluated:
        """Return the results of all classes."""
        return self.parts[0]


@dataclass(frozen=True)
class Comparison:
    """What all rows of a comparison share. top: how many images are listed."""

    vocabulary: Vocabulary
    image_ids: Sequence[str]
    resampling: Resampling
    top: int
    tags: Mapping[str, str]

    @property
    def tested(self) -> bool:
        """Return whether there are rounds to test differences with."""
        return self.resampling.rounds > 0

    def ends(self, protocol: str, baseline: str, model: str, settings: Settings, view: Mapping[str, str]) -> Row:
        """Return the last entries of a difference's row. settings: of both models; view: the tags of its view."""
        tags = {"model": model, "baseline": baseline, **self.tags, **view}
        return row_ends(protocol, tags, {**settings, **self.resampling.signature()})


def compare(
    models: Sequence[Predictions],
    gt: Stream,
    vocabulary: Vocabulary,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    requested: Wanted,
    resampling: Resampling,
    *,
    named: Container[str] | None = None,
    errors: bool,
    top: int,
    tags: Mapping[str, str],
    views: Views = ALONE,
) -> Iterator[Row]:
    """Yield the rows of a comparison; the first model is the baseline. errors: whether types of errors are compared,
    too. views: thresholds and parts of the data for further protocols; types of errors are compared on them, too, but
    not on parts of triplets or classes. named: as for `choose_computable`.

    Raises `DataError` for what is wrong with a stream, `UsageError` for match records."""
    truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    protocols = views.views_of(choose_computable(truth, protocols, named), named)
    diagnosed_views = _diagnosed_views(truth, vocabulary, views) if errors else []
    sides: list[Gathered] = []
    for model in models:
        predictions = model.refuse_match_records(f"{model.name}: compare")
        sides.append(match_and_diagnose(predictions, truth, protocols, diagnosed_views, filters, policy))
    for model, side in zip(models, sides, strict=True):
        side.coverage.report(truth, protocols, model.name, model=model.model)
    tell_absent(truth, protocols)

    shared = Comparison(vocabulary, sorted(truth.scenes.image_ids), resampling, top, tags)
    names = [model.model for model in models]
    settings = {**filters.signature(), "data": vocabulary.signed}
    yield from _rows_of_protocols(names, sides, requested, {**settings, **requested.settings()}, shared)
    settings |= dict(chain.from_iterable(side.tally.leave.items() for side in sides))
    for number, view in enumerate(diagnosed_views):
        signed = settings | truth.settings(view) | view.settings()
        yield from error_rows(names, [side.diagnoses[number] for side in sides], signed, shared)


def _diagnosed_views(truth: GroundTruth, vocabulary: Vocabulary, views: Views) -> Sequence[Protocol]:
    """Return the views of the dataset's protocol that defines types of errors; none, with a note, if the ground truth
    cannot serve it."""
    protocol = protocol_of(vocabulary)
    if not truth.serves(protocol):
        note(f"left out: types of errors, which {protocol.name} defines: {truth.name} cannot serve it")
        return []
    return views.diagnosis_views(protocol)


def _rows_of_protocols(
    names: Sequence[str], sides: Sequence[Gathered], requested: Wanted, settings: Settings, shared: Comparison
) -> Iterator[Row]:
    """Yield `protocol_rows` under each protocol, in a function of its own, so that ranked lists are freed before the
    rows of errors are made. names, sides: of each model; settings: of all models and protocols."""
    ranked = [side.tally.ranked_results(shared.vocabulary, shared.image_ids) for side in sides]
    for protocol_results in zip(*ranked, strict=True):
        compared = []
        for name, side, (protocol, results, lists) in zip(names, sides, protocol_results, strict=True):
            signed, tagged = {**settings, **side.tally.settings(protocol)}, {"model": name, **shared.tags}
            parts = Evaluated.split_by_slices(protocol, shared.vocabulary, requested, results, signed, tagged)
            compared.append(Compared(name, lists, parts))
        yield from protocol_rows(compared, shared)


def protocol_rows(models: Sequence[Compared], shared: Comparison) -> Iterator[Row]:
    """Yield each model's means under one protocol; then, for each model but the first, its differences from the first:
    mAP_diff by subset, AP_diff by class, image_diff by image."""
    baseline = models[0]
    protocol = baseline.evaluated.protocol
    rounds = resample([model.lists for model in models], shared.resampling, f"{protocol.key}: resamples")
    for model, own_rounds in zip(models, rounds, strict=True):
        for part in model.parts:
            yield from part.rows(part.intervals(model.lists, own_rounds, shared.resampling) if shared.tested else None)
    for model, own_rounds in zip(models[1:], rounds[1:], strict=True):
        label = f"{protocol.key}: {model.name}, swaps"
        first, second = swap_outputs(baseline.lists, model.lists, shared.resampling, label)
        paired = PairedRounds((rounds[0], own_rounds), (first, second))
        for before, after in zip(baseline.parts, model.parts, strict=True):
            settings = {**before.settings, **after.settings}
            ends = shared.ends(protocol.name, baseline.name, model.name, settings, after.view)
            yield from _means(baseline.lists, before, after, paired, ends)
            if after is model.evaluated:
                yield from _classes(baseline, model, paired, shared, ends)
                yield from _images(baseline, model, shared, ends)


def difference_row(
    metric: str, named: Mapping[str, object], change: Difference, n: int, ends: Row, *, unit: str = "%"
) -> Row:
    """Return the row of a difference. named: what it is of; ends: its last entries. If in percent, it was in [0, 1]."""
    low, high = change.ci or (None, None)
    numbers = {"from": change.before, "to": change.after, "value": change.value, "n": n, "ci_low": low, "ci_high": high}
    if unit == "%":
        numbers = {key: number if key == "n" else percent(number) for key, number in numbers.items()}
    chance = {"p": change.p, "p_bootstrap": change.p_bootstrap}
    return result_row(metric, **named, **numbers, **chance, unit=unit, **ends)


def _means(lists: RankedLists, before: Evaluated, after: Evaluated, paired: PairedRounds, ends: Row) -> Iterator[Row]:
    """Yield the differences of means of one part. lists: the baseline's; before, after: the baseline and the model."""
    for first, second in zip(before.means, after.means, strict=True):
        members = before.members[first.subset]
        rounds = paired.differences(partial(Rounds.means, members=members, unannotated=lists.unannotated))
        change = difference(first.ap, second.ap, *rounds, lists.images_of_truth(members), largest=1.0)
        yield difference_row("mAP_diff", {"subset": first.subset}, change, first.classes, ends)


def _classes(baseline: Compared, model: Compared, paired: PairedRounds, shared: Comparison, ends: Row) -> Iterator[Row]:
    """Yield how many classes of each subset are better and worse, then each class's difference, the surest first."""
    evaluated = baseline.evaluated
    vocabulary, results = evaluated.classes, evaluated.results
    subset = class_subsets(vocabulary, evaluated.protocol)
    resamples, _ = paired.differences(Rounds.classes)
    changes = _class_changes(baseline, model, resamples)
    tested = {number: change.value or 0.0 for number, change in changes.items() if change.p_bootstrap is not None}
    label = f"{evaluated.protocol.key}: {model.name}, swaps of classes"
    p_values = class_chances(baseline.lists, model.lists, tested, shared.resampling, label)
    q_values = dict(zip(p_values, false_discovery([*p_values.values()]), strict=True))
    if resamples.size:
        yield from _class_counts(evaluated, changes, q_values, ends)

    def order(number: int) -> tuple[float, float, tuple[str, str]]:
        """Return the sorting key of a class: by p (2 if not tested), then by the larger difference, then by name."""
        return p_values.get(number, 2.0), -abs(changes[number].value or 0.0), vocabulary.interactions[number]

    numbers = sorted(changes, key=order)
    if not evaluated.requested.per_class:
        numbers = [number for number in numbers if changes[number].value]
    for number in numbers:
        verb, name = vocabulary.interactions[number]
        named = {"subset": subset.get(number, "full"), "verb": verb, vocabulary.qualifier: name or None}
        row = difference_row("AP_diff", named, changes[number], int(results.positives[number]), ends)
        row |= {"p": p_values.get(number), "q": q_values.get(number), "unit": row.pop("unit")}
        yield row


def _class_changes(baseline: Compared, model: Compared, resamples: Floats) -> dict[int, Difference]:
    """Return the difference in AP of each annotated class that the protocol averages, by its number, ascending; its
    chance by swaps is not yet known. resamples: the differences of each class on resamples."""
    results, after = baseline.evaluated.results, model.evaluated.results.ap
    images = baseline.lists.truth_images
    changes = {}
    for number in np.flatnonzero(results.in_mean & (results.positives > 0)).tolist():
        sides = float(results.ap[number]), float(after[number])
        changes[number] = difference(*sides, resamples[number], np.zeros(0), int(images[number]), largest=1.0)
    return changes


def _class_counts(
    evaluated: Evaluated, changes: Mapping[int, Difference], q_values: Mapping[int, float], ends: Row
) -> Iterator[Row]:
    """Yield how many classes of each subset are surely better, then how many are surely worse. evaluated: the
    baseline's results; q_values: of the classes that can be tested."""
    for metric, sign in ((CLASSES_BETTER, 1), (CLASSES_WORSE, -1)):
        for name, members in evaluated.members.items():
            testable = [number for number in members.tolist() if number in q_values]
            sure = [number for number in testable if q_values[number] < SURE]
            differing = [number for number in sure if sign * (changes[number].value or 0.0) > 0]
            yield result_row(metric, subset=name, value=len(differing), n=len(testable), unit="classes", **ends)


def _images(baseline: Compared, model: Compared, shared: Comparison, ends: Row) -> Iterator[Row]:
    """Yield the images that contribute most to the difference, and always the first one in either direction; equal ones
    in the order of their ids."""
    members = baseline.evaluated.members
    subset = max(members, key=lambda name: len(members[name]))
    shares = image_differences(baseline.lists, model.lists, members[subset])
    if shares is None:
        name = baseline.evaluated.protocol.name
        note(f"left out: image_diff of {name}; a class is in more than {MOST_LEFT_OUT:,} images")
        return
    annotated = np.bincount(baseline.lists.truth_image, minlength=len(shares))
    order = np.argsort(-np.abs(np.round(shares, 15)), kind="stable")
    foremost = [order[sign * shares[order] > 0][:1] for sign in (1, -1)]
    for number in dict.fromkeys(np.concatenate([order[: shared.top], *foremost]).tolist()):
        if shares[number]:
            numbers = {"value": percent(shares[number]), "n": int(annotated[number]), "unit": "%"}
            yield result_row("image_diff", subset=subset, image_id=shared.image_ids[number], **numbers, **ends)


def error_rows(
    names: Sequence[str], models: Sequence[Diagnosis], settings: Settings, shared: Comparison
) -> Iterator[Row]:
    """Yield the rows of each model but the first, the baseline. count_diff: how many more errors of each type it makes
    (for missed_gt: ground truth); delta_mAP_diff: how much more each oracle adds to its mAP."""
    protocol = models[0].protocol
    ends = [shared.ends(protocol.name, names[0], name, settings, dict(protocol.view)) for name in names[1:]]
    for model, rows, ending in zip(models[1:], _gains(models, shared, ends), ends, strict=True):
        yield from _counts(models[0], model, shared, ending)
        yield from rows


def _counts(baseline: Diagnosis, model: Diagnosis, shared: Comparison, ends: Row) -> Iterator[Row]:
    """Yield the rows of count_diff of one model; see `error_rows`."""
    subsets = subset_classes(shared.vocabulary, baseline.protocol)
    counted = [(error, subset) for error, subset in product((*ERRORS, MISSED), subsets)]

    def counts(diagnosis: Diagnosis) -> Ints:
        errors = diagnosis.group_errors(shared.image_ids)
        return np.stack(
            [
                np.bincount(image[np.isin(class_, subsets[subset])], minlength=len(shared.image_ids))
                for (image, class_), subset in ((errors[error], subset) for error, subset in counted)
            ]
        )

    before, after = counts(baseline), counts(model)
    totals = (before + after).sum(axis=1).tolist()
    differences = count_differences(before, after, shared.resampling)
    for (error, subset), change, n in zip(counted, differences, totals, strict=True):
        unit = "triplets" if error == MISSED else "predictions"
        yield difference_row("count_diff", {"subset": subset, "error": error}, change, n, ends, unit=unit)


def _gains(models: Sequence[Diagnosis], shared: Comparison, ends: Sequence[Row]) -> list[list[Row]]:
    """Return for each model but the first the rows of how much more each oracle adds to its mAP than to the first's.

    Every model's errors are repaired once, however many models it is compared with."""
    vocabulary = shared.vocabulary
    subsets = subset_classes(vocabulary, models[0].protocol)
    annotated = np.ones(len(vocabulary.interactions), dtype=bool)
    annotated[sorted(vocabulary.no_interaction_ids)] = False
    averaged = [members[annotated[members]] for members in subsets.values()]
    images = [models[0].images_of_truth(members) for members in averaged]
    oracles = OracleRounds(models, subsets, averaged, vocabulary, shared.image_ids).means(shared.resampling)
    plain = oracles.pop("none")
    rows: list[list[Row]] = [[] for _ in ends]
    for (number, model_rows), (oracle, under) in product(enumerate(rows, start=1), oracles.items()):
        resamples = [under.resamples[model] - plain.resamples[model] for model in (0, number)]
        swaps = under.swaps[number - 1] - plain.swaps[number - 1]
        for index, subset in enumerate(subsets):
            sides = [(under.estimates[model][index].ap, plain.estimates[model][index].ap) for model in (0, number)]
            before, after = (None if ap is None or base is None else ap - base for ap, base in sides)
            rounds = resamples[1][index] - resamples[0][index], swaps[1, index] - swaps[0, index]
            # a gain lies between -1 and 1, and so two of them are 2 apart at most
            gain = difference(before, after, *rounds, images[index], largest=2.0)
            named, classes = {"subset": subset, "oracle": oracle}, under.estimates[0][index].classes
            model_rows.append(difference_row("delta_mAP_diff", named, gain, classes, ends[number - 1]))
    return rows
