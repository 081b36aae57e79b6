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
from hoicli.evaluation.evaluation_rows import Evaluated, Wanted, class_keys
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import diagnosed_protocol
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
    """One model under one protocol: its name, its ranked predictions, and its results. parts: the results of all
    classes, then those of each part of the slices of classes."""

    name: str
    lists: RankedLists
    parts: Sequence[Evaluated]

    @property
    def evaluated(self) -> Evaluated:
        """The results of all classes."""
        return self.parts[0]


@dataclass(frozen=True)
class Comparison:
    """What all rows of a comparison share. image_ids: all images, sorted; resampling: how to compute intervals and p;
    top: how many images to list; tags: further fields of all rows."""

    vocabulary: Vocabulary
    image_ids: Sequence[str]
    resampling: Resampling
    top: int
    tags: Mapping[str, str]

    def last_keys(self, protocol: str, baseline: str, model: str, settings: Settings, view: Mapping[str, str]) -> Row:
        """Return the keys that a row about a difference ends with: protocol, tags and signature. baseline, model: their
        names; view: the fields for IoU threshold, slice and part."""
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
    named: Container[str],
    errors: bool,
    top: int,
    tags: Mapping[str, str],
    views: Views = ALONE,
) -> Iterator[Row]:
    """Yield the rows of a comparison of several models; the first model is the baseline.

    gt: the ground truth. requested: which rows of means and classes to write. errors: whether to compare types of
    errors, too. top: how many images to list. tags: further fields of all rows. views: the IoU thresholds and parts of
    the data for which everything is compared once more; errors not on slices of triplets or classes. named:
    the names of the protocols that the user asked for, which must be computable.

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
    # signed here too: the user had to allow that most predictions of some model have no class
    settings |= dict(chain.from_iterable(side.tally.uncounted_setting.items() for side in sides))
    for number, view in enumerate(diagnosed_views):
        signed = settings | truth.settings(view) | view.settings()
        yield from error_rows(names, [side.diagnoses[number] for side in sides], signed, shared)


def _diagnosed_views(truth: GroundTruth, vocabulary: Vocabulary, views: Views) -> Sequence[Protocol]:
    """Return the protocol that types a dataset's errors, once for each threshold and part of the data in `views`. If
    the ground truth cannot serve it, return none and print a note."""
    protocol = diagnosed_protocol(vocabulary)
    if not truth.serves(protocol):
        note(f"left out: types of errors, which {protocol.name} defines: {truth.name} cannot serve it")
        return []
    return views.diagnosis_views(protocol)


def _rows_of_protocols(
    names: Sequence[str], sides: Sequence[Gathered], requested: Wanted, settings: Settings, shared: Comparison
) -> Iterator[Row]:
    """Yield the rows about means, classes and images under each protocol. names, sides: each model's name and gathered
    outcomes; settings: what all signatures state. This is a function of its own so that the ranked lists, which are
    large, are freed before the rows of errors are made."""
    ranked = [side.tally.ranked_results(shared.vocabulary, shared.image_ids) for side in sides]
    for protocol_results in zip(*ranked, strict=True):
        compared = []
        for name, side, (protocol, results, lists) in zip(names, sides, protocol_results, strict=True):
            signed, tags = {**settings, **side.tally.settings(protocol)}, {"model": name, **shared.tags}
            note = side.tally.gap_note(protocol)
            parts = Evaluated.split_by_slices(protocol, shared.vocabulary, requested, results, signed, tags, note)
            compared.append(Compared(name, lists, parts))
        yield from protocol_rows(compared, shared)


def protocol_rows(models: Sequence[Compared], shared: Comparison) -> Iterator[Row]:
    """Yield each model's means under one protocol; then, for each model but the first, its differences from the first:
    mAP_diff by subset, AP_diff by class, image_diff by image."""
    baseline = models[0]
    protocol = baseline.evaluated.protocol
    rounds = resample([model.lists for model in models], shared.resampling, f"{protocol.key}: resamples")
    for model, model_rounds in zip(models, rounds, strict=True):
        for part in model.parts:
            has_rounds = shared.resampling.rounds > 0
            intervals = part.intervals(model.lists, model_rounds, shared.resampling) if has_rounds else None
            yield from part.rows(intervals)
    for model, model_rounds in zip(models[1:], rounds[1:], strict=True):
        label = f"{protocol.key}: {model.name}, swaps"
        swaps = swap_outputs(baseline.lists, model.lists, shared.resampling, label)
        paired = PairedRounds(resamples=(rounds[0], model_rounds), swaps=(swaps[0], swaps[1]))
        for before, after in zip(baseline.parts, model.parts, strict=True):
            settings = {**before.settings, **after.settings}
            last_keys = shared.last_keys(protocol.name, baseline.name, model.name, settings, after.view)
            yield from _mean_rows(baseline.lists, before, after, paired, last_keys)
            if after is model.evaluated:  # of all classes, not of a part of them: classes and images are shown once
                yield from _class_rows(baseline, model, paired, shared, last_keys)
                yield from _image_rows(baseline, model, shared, last_keys)


def difference_row(
    metric: str, about: Mapping[str, object], change: Difference, n: int, last_keys: Row, *, unit: str = "%"
) -> Row:
    """Return the result row of a difference between two models. about: the fields that say what the row is about
    (subset, class, ...); n: how many things the metric is over; last_keys: protocol, tags and signature. With the unit
    "%", the numbers of `change` are in [0, 1] and become percent."""
    low, high = change.ci or (None, None)
    numbers = {"from": change.before, "to": change.after, "value": change.value, "n": n, "ci_low": low, "ci_high": high}
    if unit == "%":
        numbers = {key: number if key == "n" else percent(number) for key, number in numbers.items()}
    chance = {"p": change.p, "p_bootstrap": change.p_bootstrap}
    return result_row(metric, **about, **numbers, **chance, unit=unit, **last_keys)


def _mean_rows(
    lists: RankedLists, before: Evaluated, after: Evaluated, paired: PairedRounds, last_keys: Row
) -> Iterator[Row]:
    """Yield a row for the difference in mAP of each subset. lists: the baseline's ranked predictions; before, after:
    the results of the baseline and of the model; last_keys: those that end each row."""
    for old, new in zip(before.means, after.means, strict=True):
        members = before.members[old.subset]
        subset_mean = partial(Rounds.means, members=members, unannotated=lists.unannotated)
        resamples, swaps = paired.differences(subset_mean)
        image_count = lists.images_of_truth(members)
        change = difference(old.ap, new.ap, resamples, swaps, image_count, largest=1.0)
        yield difference_row("mAP_diff", {"subset": old.subset}, change, old.classes, last_keys)


def _class_rows(
    baseline: Compared, model: Compared, paired: PairedRounds, shared: Comparison, last_keys: Row
) -> Iterator[Row]:
    """Yield rows that count the better and the worse classes of each subset, then a row for the difference in AP of
    each class, the most certain first. Classes without a difference are left out unless each class is requested."""
    evaluated = baseline.evaluated
    vocabulary, keys_of_class = evaluated.classes, class_keys(evaluated.classes, evaluated.protocol)
    resamples, _ = paired.differences(Rounds.classes)
    changes = _class_changes(baseline, model, resamples)
    testable = {number: change.value or 0.0 for number, change in changes.items() if change.p_bootstrap is not None}
    label = f"{evaluated.protocol.key}: {model.name}, swaps of classes"
    p_values = class_chances(baseline.lists, model.lists, testable, shared.resampling, label)
    q_values = dict(zip(p_values, false_discovery([*p_values.values()]), strict=True))
    if resamples.size:  # without resamples no class is tested
        yield from _class_count_rows(evaluated, changes, q_values, last_keys)

    def order(number: int) -> tuple[float, float, tuple[str, str]]:
        """Return the sorting key of a class: by p (2 if not tested), then by the larger difference, then by name."""
        return p_values.get(number, 2.0), -abs(changes[number].value or 0.0), vocabulary.interactions[number]

    numbers = sorted(changes, key=order)
    if not evaluated.requested.per_class:
        numbers = [number for number in numbers if changes[number].value]
    for number in numbers:
        positives = int(evaluated.results.positives[number])
        row = difference_row("AP_diff", keys_of_class[number], changes[number], positives, last_keys)
        # p from swaps, and its q, go before the unit, which is put at the end
        row |= {"p": p_values.get(number), "q": q_values.get(number), "unit": row.pop("unit")}
        yield row


def _class_changes(baseline: Compared, model: Compared, resamples: Floats) -> dict[int, Difference]:
    """Return the difference in AP of each annotated class that the protocol averages, by the class's number, ascending.
    The differences have intervals but no p from swaps yet. resamples [C, R]: the differences on R resamples."""
    results, after = baseline.evaluated.results, model.evaluated.results.ap
    images = baseline.lists.truth_images
    changes = {}
    no_swaps = np.zeros(0)
    for number in np.flatnonzero(results.in_mean & (results.positives > 0)).tolist():
        aps = float(results.ap[number]), float(after[number])
        changes[number] = difference(*aps, resamples[number], no_swaps, int(images[number]), largest=1.0)
    return changes


def _class_count_rows(
    evaluated: Evaluated, changes: Mapping[int, Difference], q_values: Mapping[int, float], last_keys: Row
) -> Iterator[Row]:
    """Yield a row for each subset with the number of classes that are significantly better (q < SURE), then one with
    the number of those that are significantly worse; `n` is the number of classes that can be tested.

    evaluated: the baseline's results; q_values: p corrected for the number of classes."""
    for metric, sign in ((CLASSES_BETTER, 1), (CLASSES_WORSE, -1)):
        for name, classes in evaluated.members.items():
            testable = [number for number in classes.tolist() if number in q_values]
            significant = [number for number in testable if q_values[number] < SURE]
            differing = [number for number in significant if sign * (changes[number].value or 0.0) > 0]
            yield result_row(metric, subset=name, value=len(differing), n=len(testable), unit="classes", **last_keys)


def _image_rows(baseline: Compared, model: Compared, shared: Comparison, last_keys: Row) -> Iterator[Row]:
    """Yield rows for the `shared.top` images that contribute most to the difference in mAP, and in any case for the one
    that contributes most in either direction; equal ones in the order of their ids."""
    members = baseline.evaluated.members
    subset = max(members, key=lambda name: len(members[name]))  # the one with the most classes
    shares = image_differences(baseline.lists, model.lists, members[subset])
    if shares is None:
        name = baseline.evaluated.protocol.name
        note(f"left out: image_diff of {name}; a class is in more than {MOST_LEFT_OUT:,} images")
        return
    annotated = np.bincount(baseline.lists.truth_image, minlength=len(shares))
    # Rounded, so that shares which are equal but for errors of floating point stay in the order of the ids.
    order = np.argsort(-np.abs(np.round(shares, 15)), kind="stable")
    foremost = [order[sign * shares[order] > 0][:1] for sign in (1, -1)]
    for number in dict.fromkeys(np.concatenate([order[: shared.top], *foremost]).tolist()):
        if shares[number]:
            numbers = {"value": percent(shares[number]), "n": int(annotated[number]), "unit": "%"}
            yield result_row("image_diff", subset=subset, image_id=shared.image_ids[number], **numbers, **last_keys)


def error_rows(
    names: Sequence[str], models: Sequence[Diagnosis], settings: Settings, shared: Comparison
) -> Iterator[Row]:
    """Yield the rows about types of errors for each model but the first, the baseline. count_diff: how many more errors
    of each type the model makes (for missed_gt: how many more triplets it misses); delta_mAP_diff: how much more its
    mAP gains than the baseline's when an oracle repairs the errors of a type."""
    protocol = models[0].protocol
    last_keys = [shared.last_keys(protocol.name, names[0], name, settings, dict(protocol.view)) for name in names[1:]]
    for model, rows, keys in zip(models[1:], _gain_rows(models, shared, last_keys), last_keys, strict=True):
        yield from _error_count_rows(models[0], model, shared, keys)
        yield from rows


def _error_count_rows(baseline: Diagnosis, model: Diagnosis, shared: Comparison, last_keys: Row) -> Iterator[Row]:
    """Yield a row count_diff for each type of error and subset: how many more the model makes. `n` counts both's."""
    subsets = subset_classes(shared.vocabulary, baseline.protocol)
    errors_and_subsets = list(product((*ERRORS, MISSED), subsets))

    def count_errors(diagnosis: Diagnosis) -> Ints:
        """Return how many errors each image has, [pairs, images] with a row for each pair of error and subset."""
        errors = diagnosis.group_errors(shared.image_ids)
        counts = []
        for error, subset in errors_and_subsets:
            image, class_ = errors[error]
            counts.append(np.bincount(image[np.isin(class_, subsets[subset])], minlength=len(shared.image_ids)))
        return np.stack(counts)

    before, after = count_errors(baseline), count_errors(model)
    totals = (before + after).sum(axis=1).tolist()
    differences = count_differences(before, after, shared.resampling)
    for (error, subset), change, n in zip(errors_and_subsets, differences, totals, strict=True):
        unit = "triplets" if error == MISSED else "predictions"
        yield difference_row("count_diff", {"subset": subset, "error": error}, change, n, last_keys, unit=unit)


def _gain_rows(models: Sequence[Diagnosis], shared: Comparison, last_keys: Sequence[Row]) -> list[list[Row]]:
    """Return, for each model but the first, rows delta_mAP_diff: how much more the model's mAP gains from each oracle
    than the first model's.

    All models are computed together, so that the first one's errors are repaired only once."""
    vocabulary = shared.vocabulary
    subsets = subset_classes(vocabulary, models[0].protocol)
    is_interaction = np.ones(len(vocabulary.interactions), dtype=bool)
    is_interaction[sorted(vocabulary.no_interaction_ids)] = False
    averaged = [classes[is_interaction[classes]] for classes in subsets.values()]
    images = [models[0].images_of_truth(classes) for classes in averaged]
    oracles = OracleRounds(models, subsets, averaged, vocabulary, shared.image_ids).means(shared.resampling)
    plain = oracles.pop("none")
    rows: list[list[Row]] = [[] for _ in last_keys]
    for number, oracle in product(range(1, len(models)), oracles):
        repaired = oracles[oracle]
        # resamples [models, subsets, R]; swaps [models but the first, 2 systems, subsets, R], so `number - 1`
        first_gains, gains = (repaired.resamples[model] - plain.resamples[model] for model in (0, number))
        swapped_gains = repaired.swaps[number - 1] - plain.swaps[number - 1]
        for index, subset in enumerate(subsets):
            before, after = (
                Difference(plain.estimates[model][index].ap, repaired.estimates[model][index].ap).value
                for model in (0, number)
            )
            rounds = gains[index] - first_gains[index], swapped_gains[1, index] - swapped_gains[0, index]
            # a gain lies between -1 and 1, and so two of them are 2 apart at most
            change = difference(before, after, *rounds, images[index], largest=2.0)
            about, classes = {"subset": subset, "oracle": oracle}, repaired.estimates[0][index].classes
            rows[number - 1].append(difference_row("delta_mAP_diff", about, change, classes, last_keys[number - 1]))
    return rows
