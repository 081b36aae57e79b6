"""An evaluation as result rows: means and classes of each protocol, with intervals if requested."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
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
HARMONIC = "hm"
METRICS = ("mAP", RECALL, "mPD", HARMONIC)
"""The metrics of means, in the order of rows; mAP is always there."""


@dataclass(frozen=True)
class Wanted:
    """Which result rows the user asked for. split: also the subsets seen and unseen of this zero-shot split (a key of
    `vocabulary.unseen`); ignore_no_interaction: means without the classes of that verb; per_class: also a row for each
    class; slices: also the means over each part of these slices of classes; metrics: which of METRICS besides mAP."""

    split: str | None = None
    ignore_no_interaction: bool = False
    per_class: bool = False
    slices: tuple[Slice, ...] = ()
    metrics: Collection[str] = ()

    def settings(self) -> dict[str, str]:
        """Return the settings that these options add to signatures, as text by key; empty if neither is used."""
        settings = {"split": self.split} if self.split else {}
        return settings | ({"noint": "ignored"} if self.ignore_no_interaction else {})


@dataclass(frozen=True)
class Intervals:
    """The 95 % intervals (low, high) in [0, 1] of the mAP of each subset, by its name, and of the AP of each class, by
    its number. An interval is None or missing if fewer than FEWEST_IMAGES images have ground truth of the subset or
    class. settings: how was resampled, for signatures."""

    settings: Settings
    of_means: Mapping[str, tuple[float, float] | None]
    of_classes: Mapping[int, tuple[float, float] | None]


@dataclass(frozen=True)
class Evaluated:
    """One model's results under one protocol, which it turns into result rows. requested: which rows; results: of each
    class; settings: what the rows' signatures state; tags: further fields of all rows, such as the model's name; view:
    the fields that say which IoU threshold and part of the data the rows are about; within: the only classes that are
    averaged (a part of a slice of classes), None for all. note: what a reader of the rows must know, "" for nothing."""

    protocol: Protocol
    vocabulary: Vocabulary
    requested: Wanted
    results: ClassResults
    settings: Settings
    tags: Mapping[str, str]
    view: Mapping[str, str]
    within: frozenset[int] | None = None
    note: str = ""

    @classmethod
    def split_by_slices(
        cls,
        protocol: Protocol,
        vocabulary: Vocabulary,
        requested: Wanted,
        results: ClassResults,
        settings: Settings,
        tags: Mapping[str, str],
        note: str = "",
    ) -> list[Evaluated]:
        """Return the results of all classes, then once more for each part of the requested slices of classes (the parts
        into which `--slice` divides them). The arguments are the fields of the first. Raises `UsageError` if the user's
        tags have a name that views (other IoU thresholds, parts of the data) use."""
        view = dict(protocol.view)
        if taken := sorted(view.keys() & tags.keys()):
            raise UsageError(f"{arg('tag', ', '.join(taken))}: rows of views have a {taken[0]} of their own")
        evaluated = [cls(protocol, vocabulary, requested, results, settings, tags, view, note=note)]
        if "slice" in view:  # a part of the data is not divided further
            return evaluated
        for slice_ in requested.slices:
            for part, classes in zip(slice_.parts, slice_.classes_of_parts(results.positives.tolist()), strict=True):
                part_settings = {**settings, **slice_.setting(part)}
                part_view = view | slice_.tags(part)
                evaluated.append(replace(evaluated[0], within=classes, view=part_view, settings=part_settings))
        return evaluated

    @cached_property
    def classes(self) -> Vocabulary:
        """The vocabulary whose interactions are the protocol's classes (verbs alone, if it ranks verbs)."""
        return class_vocabulary(self.vocabulary, self.protocol)

    @cached_property
    def members(self) -> dict[str, Ints]:
        """The numbers of the classes that each subset's mean is over, by the subset's name. In a part of a slice of
        classes, subsets without classes are left out."""
        ignored, split = self.requested.ignore_no_interaction, self.requested.split
        subsets = subset_classes(self.vocabulary, self.protocol, split=split, ignore_no_interaction=ignored)
        averaged = self.results.average_subsets(subsets)
        if self.within is None:
            return averaged
        in_part = {name: classes[np.isin(classes, sorted(self.within))] for name, classes in averaged.items()}
        return {name: classes for name, classes in in_part.items() if len(classes)}

    @cached_property
    def means(self) -> list[Mean]:
        """The mean of each subset."""
        return subset_means(self.results.ap, self.results.max_recall, self.members)

    def intervals(self, lists: RankedLists, rounds: Rounds, resampling: Resampling) -> Intervals:
        """Return the 95 % intervals of all means, and of the classes if rows for them are requested. lists: the ranked
        predictions that the results come from; rounds: the same on resampled images."""
        from hoicli.resampling.intervals import interval

        value_range = {"lowest": 0.0, "highest": 1.0}
        of_means: dict[str, tuple[float, float] | None] = {}
        for mean in self.means:
            if mean.ap is not None:
                members = self.members[mean.subset]  # the numbers of the subset's classes
                # a class without ground truth (`unannotated`) counts 0 in the mean of each resample, as in the mean
                # itself
                resampled_means = rounds.means(members, lists.unannotated)
                of_means[mean.subset] = interval(
                    mean.ap, resampled_means, lists.images_of_truth(members), **value_range
                )
        of_classes: dict[int, tuple[float, float] | None] = {}
        if self.requested.per_class and self.within is None:  # a part of a slice has no rows of classes
            ap, resampled = self.results.ap.tolist(), rounds.classes()
            for number, image_count in enumerate(lists.truth_images.tolist()):
                of_classes[number] = interval(ap[number], resampled[number], image_count, **value_range)
        return Intervals(settings=resampling.signature(), of_means=of_means, of_classes=of_classes)

    def rows(self, intervals: Intervals | None = None) -> Iterator[Row]:
        """Yield a row for the mAP of each subset, in percent, with its interval if given; `n` is the number of classes.
        Then yield the mean maximal recall of each subset, if it or rows for each class are requested, and mPD and the
        harmonic mean, if these are."""
        has_recall = self.requested.per_class or RECALL in self.requested.metrics
        for metric, last_keys in self._metrics("mAP", *([RECALL] if has_recall else []), intervals=intervals):
            for mean in self.means:
                value = mean.ap if metric == "mAP" else mean.max_recall
                numbers = {"value": percent(value), "n": mean.classes}
                if metric == "mAP" and intervals is not None:
                    numbers |= interval_keys(intervals.of_means.get(mean.subset))
                yield result_row(metric, subset=mean.subset, **numbers, **last_keys)
        if "mPD" in self.requested.metrics:
            yield self._degradation_row()
        if HARMONIC in self.requested.metrics:
            yield self._harmonic_row()

    def all_rows(self, intervals: Intervals | None = None) -> Iterator[Row]:
        """Yield the rows of means, then those of classes if they are requested and this is no part of the classes."""
        yield from self.rows(intervals)
        if self.requested.per_class and self.within is None:
            yield from self.class_rows(intervals)

    def class_rows(self, intervals: Intervals | None = None) -> Iterator[Row]:
        """Yield a row for the AP of each class that the protocol averages, in percent, with its interval if given; then
        one for the maximal recall of each. `n` is the number of the class's ground-truth triplets."""
        results, keys_of_class = self.results, class_keys(self.classes, self.protocol)
        for metric, last_keys in self._metrics("AP", "max_recall", intervals=intervals):
            values = (results.ap if metric == "AP" else results.max_recall).tolist()
            for number in np.flatnonzero(results.in_mean).tolist():
                numbers = {"value": percent(values[number]), "n": int(results.positives[number])}
                if metric == "AP" and intervals is not None:
                    numbers |= interval_keys(intervals.of_classes.get(number))
                yield result_row(metric, **keys_of_class[number], **numbers, **last_keys)

    def _degradation_row(self) -> Row:
        """Return the row of mPD, the mean performance degradation (Foruck/OC-Immunity HICO_DET_utils.py `get_mpd`), in
        percent: by what share the mean AP of a verb's classes is below the best AP of one, averaged over verbs.

        The average is over the verbs except no_interaction that have several classes in the mean; `n` is their number.
        A verb whose best AP is 0 counts 100. Raises `UsageError` if the classes are no pairs of verb and object."""
        check_metrics(["mPD"], [self.protocol])
        vocabulary, ap = self.classes, self.results.ap
        aps_by_verb: dict[str, list[float]] = {}
        for number in np.flatnonzero(self.results.in_mean).tolist():
            if number not in vocabulary.no_interaction_ids and (self.within is None or number in self.within):
                verb, _ = vocabulary.interactions[number]
                aps_by_verb.setdefault(verb, []).append(float(ap[number]))
        degradation = []
        for aps in aps_by_verb.values():
            if len(aps) > 1:
                best = max(aps)
                degradation.append((best - float(np.mean(aps))) / best if best else 1.0)
        value = float(np.mean(degradation)) if degradation else None
        return result_row("mPD", subset="full", value=percent(value), n=len(degradation), **self.last_keys())

    def _harmonic_row(self) -> Row:
        """Return the row of the harmonic mean of the mAP of the unseen and of the seen classes, in percent; `n` is the
        number of these classes. It is 0 if one of the two is 0 (mlvlab/VDRP main_tip_finetune.py `h_mean`), and null
        without classes of one of them."""
        of_subset = {mean.subset: mean for mean in self.means}
        unseen_ap, seen_ap = (of_subset[name].ap if name in of_subset else None for name in ("unseen", "seen"))
        value = None
        if unseen_ap is not None and seen_ap is not None:
            value = 2 * unseen_ap * seen_ap / (unseen_ap + seen_ap) if unseen_ap and seen_ap else 0.0
        count = sum(of_subset[name].classes for name in ("unseen", "seen") if name in of_subset)
        return result_row(HARMONIC, subset="full", value=percent(value), n=count, **self.last_keys())

    def _metrics(self, *metrics: str, intervals: Intervals | None) -> Iterator[tuple[str, Row]]:
        """Yield each metric's name with the keys that its rows end with. Only the first metric (mAP or AP) can have
        intervals, so only its signature states how was resampled."""
        for metric in metrics:
            yield metric, self.last_keys({} if intervals is None or metric != metrics[0] else intervals.settings)

    def last_keys(self, more_settings: Settings | None = None) -> Row:
        """Return the keys that rows of percentages end with: unit, protocol, tags, signature, and the note if any."""
        ends = row_ends(self.protocol.name, {**self.tags, **self.view}, {**self.settings, **(more_settings or {})})
        return {"unit": "%", **ends, **({"note": self.note} if self.note else {})}


def check_metrics(metrics: Collection[str], protocols: Iterable[Protocol], split: str | None = None) -> None:
    """Raise `UsageError` if mPD is among the metrics and the classes of a protocol are not pairs (verb, object), or the
    harmonic mean is and there is no zero-shot split."""
    if HARMONIC in metrics and not split:
        raise UsageError(f"{arg('metric', HARMONIC)}: of unseen and seen classes; name the split with {arg('split')}")
    for protocol in protocols if "mPD" in metrics else ():
        if protocol.roles or protocol.by_verb:
            raise UsageError(
                f"{arg('metric', 'mPD')}: the classes of {protocol.name} are no verbs with objects; leave it out"
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
    """Yield all result rows of a tally: the means under each protocol, and the classes if requested. settings: what
    signatures state besides the protocol, the dataset and what is requested."""
    settings = {**settings, "data": vocabulary.signed, **requested.settings()}

    def evaluated_parts(protocol: Protocol, results: ClassResults) -> list[Evaluated]:
        """Return the results of all classes, then those of each part of the slices of classes."""
        protocol_settings = {**settings, **tally.settings(protocol)}
        note = tally.gap_note(protocol)
        return Evaluated.split_by_slices(protocol, vocabulary, requested, results, protocol_settings, tags, note)

    if resampling is None:
        for protocol, results in tally.results(vocabulary):
            for evaluated in evaluated_parts(protocol, results):
                yield from evaluated.all_rows()
        return
    from hoicli.resampling.rounds import resample

    for protocol, results, lists in tally.ranked_results(vocabulary, tally.image_ids):
        (rounds,) = resample([lists], resampling, f"{protocol.key}: resamples")
        for evaluated in evaluated_parts(protocol, results):
            yield from evaluated.all_rows(evaluated.intervals(lists, rounds, resampling))


def class_keys(vocabulary: Vocabulary, protocol: Protocol) -> list[Row]:
    """Return the keys that name each class in rows: its subset, its verb, and its object or role. The subset is its
    frequency group (rare, non_rare), or if the protocol has subsets of its own, the smallest of these that the class is
    in; "full" for a class in none. vocabulary: the one whose interactions are the protocol's classes."""
    subset_of_class = vocabulary.group_of
    for subset in sorted(protocol.subsets, key=lambda name: -len(vocabulary.members(name))):  # the smallest comes last
        subset_of_class |= dict.fromkeys(vocabulary.members(subset), subset)
    return [
        {"subset": subset_of_class.get(number, "full"), "verb": verb, vocabulary.qualifier: name or None}
        for number, (verb, name) in enumerate(vocabulary.interactions)
    ]
