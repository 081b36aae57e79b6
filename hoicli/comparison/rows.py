"""A comparison as result rows: each model's mAP, then what changed from the baseline to it, largest first where a list
is cut. A row's `value` is `to` less `from`; `p` is from swaps, `p_bootstrap` from resamples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hoicli.arrays.kit import Floats
from hoicli.diagnosis.errors import ERRORS, MISSED
from hoicli.diagnosis.oracles import Diagnosis
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.rows import Wanted, class_subsets, estimated_intervals, evaluation_rows
from hoicli.evaluation.tally import ClassResults
from hoicli.records.results import Row, interval_keys, percent, signature
from hoicli.resampling.bootstrap import FEWEST_IMAGES
from hoicli.resampling.comparison import Difference, PairedRounds, count_differences, difference, image_differences
from hoicli.resampling.draws import Resampling
from hoicli.resampling.intervals import false_discovery
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import resampled, swapped
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Compared:
    """One model under one protocol: its name, its numbers and its ranked lists; settings, what its signatures say."""

    name: str
    settings: Mapping[str, str]
    results: ClassResults
    lists: RankedLists


@dataclass(frozen=True)
class Setting:
    """What all rows of a comparison share. `top` cuts the lists of images, and of classes unless all are wanted."""

    vocabulary: Vocabulary
    image_ids: Sequence[str]
    wanted: Wanted
    resampling: Resampling
    top: int
    settings: Mapping[str, str]
    tags: Mapping[str, str]

    def common(self, protocol: Protocol, baseline: str, name: str, settings: Mapping[str, str] | None = None) -> Row:
        """protocol, tags and signature of a row; `settings` are those of the two models."""
        signed = {**self.settings, **self.resampling.signature(), "protocol": protocol.name, **(settings or {})}
        return {
            "protocol": protocol.name,
            "tags": {"model": name, "baseline": baseline, **self.tags},
            "signature": signature(signed),
        }


def protocol_rows(protocol: Protocol, models: Sequence[Compared], setting: Setting) -> Iterator[Row]:
    """Every model's means; then, of each but the first, the differences from the first: mAP_diff by subset, AP_diff by
    class, image_diff by image."""
    rounds = resampled([model.lists for model in models], setting.resampling, f"{protocol.name}: resamples")
    for model, alone in zip(models, rounds, strict=True):
        wanted, vocabulary = setting.wanted, setting.vocabulary
        chosen = wanted.means(model.results, vocabulary, protocol)
        intervals = estimated_intervals(
            model.lists, alone, protocol, model.results, vocabulary, wanted, setting.resampling
        )
        yield from evaluation_rows(
            protocol, chosen, settings={**setting.settings, **model.settings},
            tags={"model": model.name, **setting.tags}, intervals=intervals,
        )  # fmt: skip
    baseline = models[0]
    for model, alone in zip(models[1:], rounds[1:], strict=True):
        label = f"{protocol.name}: {model.name}, swaps"
        first, second = swapped(baseline.lists, model.lists, setting.resampling, label)
        paired = PairedRounds((rounds[0], alone), (first, second))
        common = setting.common(protocol, baseline.name, model.name, {**baseline.settings, **model.settings})
        yield from _means(protocol, baseline, model, paired, setting, common)
        yield from _classes(protocol, baseline, model, paired, setting, common)
        yield from _images(protocol, baseline, model, setting, common)


def _row(metric: str, named: Mapping[str, object], found: Difference, n: int, unit: str, common: Row) -> Row:
    numbers: Row = {"from": found.before, "to": found.after, "value": found.value}
    if unit == "%":
        numbers = {key: percent(value) for key, value in numbers.items()}
        ends = interval_keys(found.ci)
    else:  # counted: whole numbers, all but the interval
        numbers = {key: None if value is None else int(value) for key, value in numbers.items()}
        ends = dict(zip(("ci_low", "ci_high"), found.ci or (None, None), strict=True))
    return {
        "metric": metric, **named, **numbers, "n": n, **ends, "p": found.p, "p_bootstrap": found.p_bootstrap,
        "unit": unit, **common,
    }  # fmt: skip


def _means(
    protocol: Protocol, baseline: Compared, model: Compared, paired: PairedRounds, setting: Setting, common: Row
) -> Iterator[Row]:
    vocabulary, wanted = setting.vocabulary, setting.wanted
    members = wanted.members(baseline.results, vocabulary, protocol)
    before, after = (wanted.means(side.results, vocabulary, protocol) for side in (baseline, model))
    for first, second in zip(before, after, strict=True):
        rounds = paired.means(members[first.subset], baseline.lists.unannotated)
        found = difference(first.ap, second.ap, *rounds, most=1.0)
        if baseline.lists.images_of_truth(members[first.subset]) < FEWEST_IMAGES:
            found = Difference(first.ap, second.ap)
        yield _row("mAP_diff", {"subset": first.subset}, found, first.classes, "%", common)


def _classes(
    protocol: Protocol, baseline: Compared, model: Compared, paired: PairedRounds, setting: Setting, common: Row
) -> Iterator[Row]:
    vocabulary, positives = setting.vocabulary, baseline.results.positives
    subset = class_subsets(vocabulary, protocol)
    numbers = np.flatnonzero(baseline.results.in_mean & (positives > 0)).tolist()
    resamples, swaps = paired.classes()
    images = baseline.lists.truth_images
    found = {}
    for number in numbers:
        sides = float(baseline.results.ap[number]), float(model.results.ap[number])
        enough = images[number] >= FEWEST_IMAGES
        rounds = resamples[number], swaps[number]
        found[number] = difference(*sides, *rounds, most=1.0) if enough else Difference(*sides)
    judged = [number for number in numbers if found[number].p is not None]
    q = dict(zip(judged, false_discovery([found[number].p or 0.0 for number in judged]), strict=True))
    if not setting.wanted.per_class:
        numbers = sorted(numbers, key=lambda number: (-abs(found[number].value or 0.0), number))[: setting.top]
        numbers = [number for number in numbers if found[number].value]
    for number in numbers:
        verb, name = vocabulary.interactions[number]
        named = {"subset": subset.get(number, "full"), "verb": verb, vocabulary.qualifier: name or None}
        row = _row("AP_diff", named, found[number], int(positives[number]), "%", common)
        yield {key: value for key, value in row.items() if key != "unit"} | {"q": q.get(number), "unit": "%"}


def _images(protocol: Protocol, baseline: Compared, model: Compared, setting: Setting, common: Row) -> Iterator[Row]:
    """The images that most of the difference goes with; ties in the order of their ids."""
    if not setting.top:
        return
    members = setting.wanted.members(baseline.results, setting.vocabulary, protocol)
    subset = max(members, key=lambda name: len(members[name]))
    moved = image_differences(baseline.lists, model.lists, members[subset])
    annotated = np.bincount(baseline.lists.truth_image, minlength=len(moved))
    for row in np.argsort(-np.abs(np.round(moved, 15)), kind="stable")[: setting.top].tolist():
        if moved[row]:
            yield {
                "metric": "image_diff", "subset": subset, "image_id": setting.image_ids[row],
                "value": percent(moved[row]), "n": int(annotated[row]), "unit": "%", **common,
            }  # fmt: skip


def error_rows(baseline: tuple[str, Diagnosis], model: tuple[str, Diagnosis], setting: Setting) -> Iterator[Row]:
    """count_diff: more or fewer errors of each type, of missed_gt ground truth; delta_mAP_diff: more or less to be had
    from each oracle."""
    protocol = baseline[1].protocol
    common = setting.common(protocol, baseline[0], model[0])
    diagnoses = [baseline[1], model[1]]
    subsets = diagnoses[0].subsets(setting.vocabulary)
    sides = [diagnosis.by_image(setting.image_ids) for diagnosis in diagnoses]
    counted = [(error, subset) for error in (*ERRORS, MISSED) for subset in subsets]
    before, after = (
        np.stack(
            [
                np.bincount(image[np.isin(class_, subsets[subset])], minlength=len(setting.image_ids))
                for (image, class_), subset in ((side[error], subset) for error, subset in counted)
            ]
        )
        for side in sides
    )
    differences = count_differences(before, after, setting.resampling)
    totals = (before + after).sum(axis=1).tolist()
    for (error, subset), found, n in zip(counted, differences, totals, strict=True):
        unit = "triplets" if error == MISSED else "predictions"
        yield _row("count_diff", {"subset": subset, "error": error}, found, n, unit, common)
    yield from _oracle_rows(diagnoses, model[0], setting, common)


def _oracle_rows(diagnoses: Sequence[Diagnosis], name: str, setting: Setting, common: Row) -> Iterator[Row]:
    vocabulary = setting.vocabulary
    subsets = diagnoses[0].subsets(vocabulary)
    annotated = np.ones(len(vocabulary.interactions), dtype=bool)
    annotated[sorted(vocabulary.no_interaction_ids)] = False
    never = np.zeros(len(annotated), dtype=bool)  # a class without ground truth is left out of these means
    results = [{one.oracle: one for one in side.results(vocabulary)} for side in diagnoses]
    plain: dict[str, tuple[list[float | None], list[Floats]]] = {}
    for (oracle, first), (_, second) in zip(*(side.ranked(setting.image_ids) for side in diagnoses), strict=True):
        label = f"{name}, {oracle}"
        resamples = resampled([first, second], setting.resampling, f"{label}: resamples")
        swaps = swapped(first, second, setting.resampling, f"{label}: swaps")
        means = [{subset: (ap, classes) for subset, ap, _, classes in side[oracle].means(subsets)} for side in results]
        for subset, members in subsets.items():
            chosen = members[annotated[members]]
            sides = [side.means(chosen, never) for side in (*resamples, *swaps)]
            estimates = [side[subset][0] for side in means]
            if oracle == "none":
                plain[subset] = estimates, sides
                continue
            gains = [_less(with_it, without) for with_it, without in zip(estimates, plain[subset][0], strict=True)]
            changes = [with_it - without for with_it, without in zip(sides, plain[subset][1], strict=True)]
            # a gain lies between -1 and 1, and so two of them are 2 apart at most
            found = difference(gains[0], gains[1], changes[1] - changes[0], changes[3] - changes[2], most=2.0)
            yield _row("delta_mAP_diff", {"subset": subset, "oracle": oracle}, found, means[0][subset][1], "%", common)


def _less(value: float | None, base: float | None) -> float | None:
    return None if value is None or base is None else value - base
