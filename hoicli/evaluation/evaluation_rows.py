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
        """Return the settings that `split` and `ignore_no_interaction` add to signatures, as text by key."""
        settings = {}
        if self.split:
            settings["split"] = self.split
        if self.ignore_no_interaction:
            settings["noint"] = "ignored"
        return settings


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
        """Return the results of all classes, followed by the same results limited to each part of the requested slices
        of classes. Arguments: as the fields of `Evaluated`. Raises `UsageError` if the user's tags have a name that
        views (other IoU thresholds, parts of the data) use."""
        view = dict(protocol.view)
        if taken := sorted(view.keys() & tags.keys()):
            raise UsageError(f"{arg('tag', ', '.join(taken))}: rows of views have a {taken[0]} of their own")
        on_all = cls(protocol, vocabulary, requested, results, settings, tags, view, note=note)
        if "slice" in view:  # a part of the data is not divided further
            return [on_all]
        on_parts = []
        for slice_ in requested.slices:
            for part, classes in zip(slice_.parts, slice_.classes_of_parts(results.positives.tolist()), strict=True):
                part_settings = {**settings, **slice_.setting(part)}
                part_view = view | slice_.tags(part)
                on_parts.append(replace(on_all, within=classes, view=part_view, settings=part_settings))
        return [on_all, *on_parts]

    @cached_property
    def classes(self) -> Vocabulary:
        """The vocabulary whose interactions are the protocol's classes (verbs alone, if it ranks verbs)."""
        return class_vocabulary(self.vocabulary, self.protocol)

    @cached_property
    def members(self) -> dict[str, Ints]:
        """The numbers of the classes that each subset's mean is over, by the subset's name. In a part of a slice of
        classes, subsets without classes are left out."""
        requested = self.requested
        subsets = subset_classes(
            self.vocabulary,
            self.protocol,
            split=requested.split,
            ignore_no_interaction=requested.ignore_no_interaction,
        )
        averaged = self.results.keep_averaged(subsets)
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
                classes = self.members[mean.subset]
                # a class without ground truth (`unannotated`) counts 0 in each resampled mean, as in the mean itself
                resampled_means = rounds.means(classes, lists.unannotated)
                image_count = lists.images_of_truth(classes)
                of_means[mean.subset] = interval(mean.ap, resampled_means, image_count, **value_range)
        of_classes: dict[int, tuple[float, float] | None] = {}
        if self.requested.per_class and self.within is None:  # a part of a slice has no rows of classes
            ap = self.results.ap.tolist()
            resampled = rounds.classes()
            for number, image_count in enumerate(lists.truth_images.tolist()):
                of_classes[number] = interval(ap[number], resampled[number], image_count, **value_range)
        return Intervals(settings=resampling.signature(), of_means=of_means, of_classes=of_classes)

    def rows(self, intervals: Intervals | None = None) -> Iterator[Row]:
        """Yield a row for the mAP of each subset, in percent, with its interval if given; `n` is the number of classes.
        Then yield the mean maximal recall of each subset, if it or rows for each class are requested, and mPD and the
        harmonic mean, if these are."""
        metrics = ["mAP"]
        if self.requested.per_class or RECALL in self.requested.metrics:
            metrics.append(RECALL)
        for metric, last_keys in self._metric_keys(*metrics, intervals=intervals):
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
        results = self.results
        keys_of_class = class_keys(self.classes, self.protocol)
        for metric, last_keys in self._metric_keys("AP", "max_recall", intervals=intervals):
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
        vocabulary = self.classes
        aps_by_verb: dict[str, list[float]] = {}
        for number in np.flatnonzero(self.results.in_mean).tolist():
            if number not in vocabulary.no_interaction_ids and (self.within is None or number in self.within):
                verb, _ = vocabulary.interactions[number]
                aps_by_verb.setdefault(verb, []).append(float(self.results.ap[number]))
        degradations = []  # of each verb
        for aps in aps_by_verb.values():
            if len(aps) > 1:
                best = max(aps)
                degradations.append((best - float(np.mean(aps))) / best if best else 1.0)
        value = float(np.mean(degradations)) if degradations else None
        return result_row("mPD", subset="full", value=percent(value), n=len(degradations), **self.last_keys())

    def _harmonic_row(self) -> Row:
        """Return the row of the harmonic mean of the mAP of the unseen and of the seen classes, in percent; `n` is the
        number of these classes. It is 0 if one of the two is 0 (mlvlab/VDRP main_tip_finetune.py `h_mean`), and null
        without classes of one of them."""
        mean_of_subset = {mean.subset: mean for mean in self.means}
        no_classes = Mean("", ap=None, max_recall=None, classes=0)
        unseen = mean_of_subset.get("unseen", no_classes)
        seen = mean_of_subset.get("seen", no_classes)
        value = None
        if unseen.ap is not None and seen.ap is not None:
            value = 2 * unseen.ap * seen.ap / (unseen.ap + seen.ap) if unseen.ap and seen.ap else 0.0
        count = unseen.classes + seen.classes
        return result_row(HARMONIC, subset="full", value=percent(value), n=count, **self.last_keys())

    def _metric_keys(self, *metrics: str, intervals: Intervals | None) -> Iterator[tuple[str, Row]]:
        """Yield each metric's name with the keys that its rows end with. Only the first metric (mAP or AP) can have
        intervals, so only its signature states how was resampled."""
        for metric in metrics:
            if intervals is not None and metric == metrics[0]:
                yield metric, self.last_keys(intervals.settings)
            else:
                yield metric, self.last_keys()

    def last_keys(self, more_settings: Settings | None = None) -> Row:
        """Return the keys that rows of percentages end with: unit, protocol, tags, signature, and the note if any.
        more_settings: what the signature states besides `settings`."""
        settings = {**self.settings, **(more_settings or {})}
        ends = row_ends(self.protocol.name, {**self.tags, **self.view}, settings)
        note = {"note": self.note} if self.note else {}
        return {"unit": "%", **ends, **note}


def check_metrics(metrics: Collection[str], protocols: Iterable[Protocol], split: str | None = None) -> None:
    """Raise `UsageError` if mPD is among the metrics and the classes of a protocol are not pairs (verb, object), or the
    harmonic mean is and there is no zero-shot split."""
    if HARMONIC in metrics and not split:
        raise UsageError(f"{arg('metric', HARMONIC)}: of unseen and seen classes; name the split with {arg('split')}")
    if "mPD" not in metrics:
        return
    for protocol in protocols:
        if protocol.roles or protocol.by_verb:
            problem = f"the classes of {protocol.name} are no verbs with objects; leave it out"
            raise UsageError(f"{arg('metric', 'mPD')}: {problem}")


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

    def split(protocol: Protocol, results: ClassResults) -> list[Evaluated]:
        """Return the results of all classes, then those of each part of the slices of classes."""
        protocol_settings = {**settings, **tally.settings(protocol)}
        note = tally.gap_note(protocol)
        return Evaluated.split_by_slices(protocol, vocabulary, requested, results, protocol_settings, tags, note)

    if resampling is None:
        for protocol, results in tally.results(vocabulary):
            for evaluated in split(protocol, results):
                yield from evaluated.all_rows()
        return
    from hoicli.resampling.rounds import resample

    for protocol, results, lists in tally.ranked_results(vocabulary, tally.image_ids):
        (rounds,) = resample([lists], resampling, f"{protocol.key}: resamples")
        for evaluated in split(protocol, results):
            yield from evaluated.all_rows(evaluated.intervals(lists, rounds, resampling))


def class_keys(vocabulary: Vocabulary, protocol: Protocol) -> list[Row]:
    """Return the keys that name each class in rows: its subset, its verb, and its object or role. The subset is its
    frequency group (rare, non_rare), or if the protocol has subsets of its own, the smallest of these that the class is
    in; "full" for a class in none. vocabulary: the one whose interactions are the protocol's classes."""
    subset_of_class = vocabulary.group_of
    largest_first = sorted(protocol.subsets, key=lambda name: -len(vocabulary.members(name)))
    for subset in largest_first:  # the smallest comes last, and stays
        subset_of_class |= dict.fromkeys(vocabulary.members(subset), subset)
    return [
        {"subset": subset_of_class.get(number, "full"), "verb": verb, vocabulary.qualifier: name or None}
        for number, (verb, name) in enumerate(vocabulary.interactions)
    ]
