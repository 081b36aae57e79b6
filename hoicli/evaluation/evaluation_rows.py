"""An evaluation as result rows: means and classes of each protocol, with intervals if requested."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from hoicli.errors import UsageError, arg
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.slices import Slice
from hoicli.evaluation.tally import ClassResults, Mean, Tally, class_vocabulary, subset_classes, subset_means
from hoicli.records.kit import Ints
from hoicli.records.result_rows import Row, Settings, interval_keys, percent, result_row, row_ends
from hoicli.resampling.draws import Resampling
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from hoicli.resampling.ranked import RankedLists
    from hoicli.resampling.rounds import Rounds


RECALL = "mean_max_recall"
METRICS = ("mAP", RECALL, "mPD")
"""The metrics of means, in the order of rows; mAP is always there."""


@dataclass(frozen=True)
class Wanted:
    """Which rows to write. split: also the subsets of this split, a key of `vocabulary.unseen`; ignore_no_interaction:
    means without that verb's classes; per_class: also a row for each class; slices: also the means on each part of
    these slices of classes; metrics: which of METRICS besides mAP."""

    split: str | None = None
    ignore_no_interaction: bool = False
    per_class: bool = False
    slices: tuple[Slice, ...] = ()
    metrics: Collection[str] = ()

    def settings(self) -> dict[str, str]:
        """Return the settings that these options add to signatures."""
        settings = {"split": self.split} if self.split else {}
        return settings | ({"noint": "ignored"} if self.ignore_no_interaction else {})


@dataclass(frozen=True)
class Intervals:
    """The 95 % intervals of each subset's mAP and each class's AP, in [0, 1], and the settings of the resampling. An
    interval is None or missing if fewer than FEWEST_IMAGES images have ground truth of the subset or class."""

    settings: Settings
    of_means: Mapping[str, tuple[float, float] | None]
    of_classes: Mapping[int, tuple[float, float] | None]


@dataclass(frozen=True)
class Evaluated:
    """One model's results under one protocol, and the rows to write. settings: what goes into the rows' signatures.
    view: the tags of the threshold and the part of the data that this is about. within: the only classes that are
    averaged, None for all."""

    protocol: Protocol
    vocabulary: Vocabulary
    requested: Wanted
    results: ClassResults
    settings: Settings
    tags: Mapping[str, str]
    view: Mapping[str, str]
    within: frozenset[int] | None = None

    @classmethod
    def split_by_slices(
        cls,
        protocol: Protocol,
        vocabulary: Vocabulary,
        requested: Wanted,
        results: ClassResults,
        settings: Settings,
        tags: Mapping[str, str],
    ) -> list[Evaluated]:
        """Return the results as a whole, then once for each part of the slices of classes."""
        view = dict(protocol.view)
        if taken := sorted(view.keys() & tags.keys()):
            raise UsageError(f"{arg('tag', ', '.join(taken))}: rows of views have a {taken[0]} of their own")
        whole = cls(protocol, vocabulary, requested, results, settings, tags, view)
        parts = () if "slice" in view else requested.slices
        return [whole] + [
            replace(whole, within=members, view=view | slice_.tags(part), settings={**settings, **slice_.setting(part)})
            for slice_ in parts
            for part, members in zip(slice_.parts, slice_.classes, strict=True)
        ]

    @cached_property
    def classes(self) -> Vocabulary:
        """The vocabulary of the protocol's classes."""
        return class_vocabulary(self.vocabulary, self.protocol)

    @cached_property
    def members(self) -> dict[str, Ints]:
        """The classes that each subset's mean is over."""
        ignored, split = self.requested.ignore_no_interaction, self.requested.split
        subsets = subset_classes(self.vocabulary, self.protocol, split=split, ignore_no_interaction=ignored)
        members = self.results.average_subsets(subsets)
        if self.within is None:
            return members
        members_kept = {name: classes[np.isin(classes, sorted(self.within))] for name, classes in members.items()}
        return {name: classes for name, classes in members_kept.items() if len(classes)}

    @cached_property
    def means(self) -> list[Mean]:
        """The mean of each subset."""
        return subset_means(self.results.ap, self.results.max_recall, self.members)

    def intervals(self, lists: RankedLists, rounds: Rounds, resampling: Resampling) -> Intervals:
        """Return the intervals of all means, and of the classes if requested, from the model's resamples."""
        from hoicli.resampling.intervals import interval

        limits = {"lowest": 0.0, "highest": 1.0}
        of_means: dict[str, tuple[float, float] | None] = {}
        for mean in self.means:
            if mean.ap is not None:
                members = self.members[mean.subset]
                resampled_means = rounds.means(members, lists.unannotated)
                of_means[mean.subset] = interval(mean.ap, resampled_means, lists.images_of_truth(members), **limits)
        per_class = self.requested.per_class and self.within is None
        images = lists.truth_images.tolist() if per_class else []
        ap, resampled = self.results.ap.tolist(), rounds.classes()
        of_classes = {number: interval(ap[number], resampled[number], n, **limits) for number, n in enumerate(images)}
        return Intervals(resampling.signature(), of_means, of_classes)

    def rows(self, intervals: Intervals | None = None) -> Iterator[Row]:
        """Yield the mAP of each subset in percent, with its interval if given; `n` is the number of classes. If it is
        requested, also yield mPD, and the mean maximal recall, which rows for each class bring as well."""
        with_recall = self.requested.per_class or RECALL in self.requested.metrics
        for metric, last_keys in self._metrics("mAP", *[RECALL] * with_recall, intervals=intervals):  # once, or not
            for mean in self.means:
                value = mean.ap if metric == "mAP" else mean.max_recall
                numbers = {"value": percent(value), "n": mean.classes}
                if metric == "mAP" and intervals is not None:
                    numbers |= interval_keys(intervals.of_means.get(mean.subset))
                yield result_row(metric, subset=mean.subset, **numbers, **last_keys)
        if "mPD" in self.requested.metrics:
            yield self._degradation_row()

    def class_rows(self, intervals: Intervals | None = None) -> Iterator[Row]:
        """Yield the AP (with its interval, if given) and the maximal recall of each class that the protocol averages,
        in percent. `n` is the count of the class's ground truth, and `subset` as in `class_subsets`."""
        vocabulary, results = self.classes, self.results
        group = class_subsets(vocabulary, self.protocol)
        for metric, last_keys in self._metrics("AP", "max_recall", intervals=intervals):
            values = (results.ap if metric == "AP" else results.max_recall).tolist()
            for number in np.flatnonzero(results.in_mean).tolist():
                verb, name = vocabulary.interactions[number]
                class_ = {"subset": group.get(number, "full"), "verb": verb, vocabulary.qualifier: name or None}
                numbers = {"value": percent(values[number]), "n": int(results.positives[number])}
                if metric == "AP" and intervals is not None:
                    numbers |= interval_keys(intervals.of_classes.get(number))
                yield result_row(metric, **class_, **numbers, **last_keys)

    def _degradation_row(self) -> Row:
        """Return the row of mPD, mean performance degradation (Foruck/OC-Immunity HICO_DET_utils.py `get_mpd`), in
        percent: how far the mean AP of a verb's classes stays below the best, (best - mean) / best, on average.

        The average is over the verbs except no_interaction that have several classes in the mean; `n` is their number.
        A verb whose best AP is 0 counts 100. Raises as `check_metrics` does."""
        check_metrics(["mPD"], [self.protocol])
        vocabulary, ap = self.classes, self.results.ap
        left_out = vocabulary.no_interaction_ids
        aps: dict[str, list[float]] = {}
        for number in np.flatnonzero(self.results.in_mean).tolist():
            if number not in left_out and (self.within is None or number in self.within):
                aps.setdefault(vocabulary.interactions[number][0], []).append(float(ap[number]))
        best_and_mean = [
            (max(aps_of_verb), float(np.mean(aps_of_verb))) for aps_of_verb in aps.values() if len(aps_of_verb) > 1
        ]
        degradation = [(best - mean) / best if best else 1.0 for best, mean in best_and_mean]
        value = float(np.mean(degradation)) if degradation else None
        last_keys = row_ends(self.protocol.name, {**self.tags, **self.view}, self.settings)
        return result_row("mPD", subset="full", value=percent(value), n=len(degradation), unit="%", **last_keys)

    def _metrics(self, *metrics: str, intervals: Intervals | None) -> Iterator[tuple[str, Row]]:
        """Yield the name of each metric with the keys that end its rows: unit, protocol, tags and signature. The first
        metric is a mean of AP or an AP, which alone has intervals, so its signature alone states how they were
        resampled."""
        for metric in metrics:
            interval_settings = {} if intervals is None or metric != metrics[0] else intervals.settings
            last_keys = row_ends(self.protocol.name, {**self.tags, **self.view}, {**self.settings, **interval_settings})
            yield metric, {"unit": "%", **last_keys}


def check_metrics(metrics: Collection[str], protocols: Iterable[Protocol]) -> None:
    """Raise `UsageError` if mPD is requested under a protocol whose classes are not (verb, object)."""
    for row in protocols if "mPD" in metrics else ():
        if row.roles or row.by_verb:
            raise UsageError(
                f"{arg('metric', 'mPD')}: the classes of {row.name} are no verbs with objects; leave it out"
            )


def tally_rows(
    tally: Tally,
    vocabulary: Vocabulary,
    requested: Wanted,
    resampling: Resampling | None,
    *,
    settings: Settings,
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Yield all result rows of a tally: the means of each protocol, and the classes if requested. resampling: how to
    compute their intervals, None for rows without."""
    settings = {**settings, "data": vocabulary.signed, **requested.settings()}

    def protocol_rows(
        protocol: Protocol, results: ClassResults, intervals: Callable[[Evaluated], Intervals | None] = lambda _: None
    ) -> Iterator[Row]:
        """Yield the rows of one protocol: of the results as a whole, then of each part of the slices."""
        protocol_settings = {**settings, **tally.settings(protocol)}
        for evaluated in Evaluated.split_by_slices(protocol, vocabulary, requested, results, protocol_settings, tags):
            intervals_of = intervals(evaluated)
            yield from evaluated.rows(intervals_of)
            if requested.per_class and evaluated.within is None:
                yield from evaluated.class_rows(intervals_of)

    if resampling is None:
        for protocol, results in tally.results(vocabulary):
            yield from protocol_rows(protocol, results)
        return
    from hoicli.resampling.rounds import resample

    for protocol, results, lists in tally.ranked_results(vocabulary, tally.image_ids):
        (rounds,) = resample([lists], resampling, f"{protocol.key}: resamples")
        intervals_maker = partial(Evaluated.intervals, lists=lists, rounds=rounds, resampling=resampling)
        yield from protocol_rows(protocol, results, intervals_maker)


def class_subsets(vocabulary: Vocabulary, protocol: Protocol) -> dict[int, str]:
    """Return each class's subset: its frequency group, or the smallest of the protocol's own subsets that has it."""
    group = vocabulary.group_of
    for subset in sorted(protocol.subsets, key=lambda name: -len(vocabulary.members(name))):
        group |= dict.fromkeys(vocabulary.members(subset), subset)
    return group
