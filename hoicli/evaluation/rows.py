"""An evaluation as result rows: every mean and every class of each protocol, with intervals if they are wanted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hoicli.arrays.kit import Ints
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.tally import ClassResults, Mean, Tally, means, subset_classes
from hoicli.records.results import Row, interval_keys, percent, signature
from hoicli.resampling.bootstrap import class_intervals, mean_intervals
from hoicli.resampling.draws import Resampling
from hoicli.resampling.ranked import RankedLists
from hoicli.resampling.rounds import Rounds, resampled
from hoicli.vocabulary.labels import Vocabulary


@dataclass(frozen=True)
class Wanted:
    """What to say of each protocol: the subsets of a split (a key of `vocabulary.unseen`) as well, the means without
    no_interaction, a row a class."""

    split: str | None = None
    ignore_no_interaction: bool = False
    per_class: bool = False

    def settings(self) -> dict[str, str]:
        """For the signatures."""
        return {
            **({"split": self.split} if self.split else {}),
            **({"noint": "ignored"} if self.ignore_no_interaction else {}),
        }

    def means(self, results: ClassResults, vocabulary: Vocabulary, protocol: Protocol) -> list[Mean]:
        """The mean of each subset."""
        ignored = self.ignore_no_interaction
        return list(means(results, vocabulary, protocol, split=self.split, ignore_no_interaction=ignored))

    def members(self, results: ClassResults, vocabulary: Vocabulary, protocol: Protocol) -> dict[str, Ints]:
        """Subset -> the classes its mean is over."""
        ignored = self.ignore_no_interaction
        subsets = subset_classes(vocabulary, protocol, split=self.split, ignore_no_interaction=ignored)
        return {name: classes[results.in_mean[classes]] for name, classes in subsets.items()}


def tally_rows(
    tally: Tally,
    vocabulary: Vocabulary,
    wanted: Wanted,
    resampling: Resampling | None,
    *,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
) -> Iterator[Row]:
    """Everything a tally says of its protocols: `evaluation_rows`, and `class_rows` if they are wanted; with intervals
    from `resampling`."""
    settings = {**settings, "data": vocabulary.name, **wanted.settings()}
    lists: Mapping[str, RankedLists] = {}
    if resampling is not None:
        lists = {row.name: ranked for row, ranked in tally.ranked(tally.image_ids)}
    for protocol, results in tally.results(vocabulary):
        signed = {**settings, **tally.settings(protocol)}
        chosen = wanted.means(results, vocabulary, protocol)
        intervals = None
        if resampling is not None:
            label = f"{protocol.name}: resamples"
            (rounds,) = resampled([lists[protocol.name]], resampling, label)
            intervals = estimated_intervals(
                lists[protocol.name], rounds, protocol, results, vocabulary, wanted, resampling
            )
        yield from evaluation_rows(protocol, chosen, settings=signed, tags=tags, intervals=intervals)
        if wanted.per_class:
            yield from class_rows(protocol, results, vocabulary, settings=signed, tags=tags, intervals=intervals)


def estimated_intervals(
    lists: RankedLists,
    rounds: Rounds,
    protocol: Protocol,
    results: ClassResults,
    vocabulary: Vocabulary,
    wanted: Wanted,
    resampling: Resampling,
) -> Intervals:
    """The intervals of all means, and of the classes where they are wanted, from a model's resamples."""
    estimates = {mean.subset: mean.ap for mean in wanted.means(results, vocabulary, protocol)}
    return Intervals(
        resampling.signature(),
        mean_intervals(lists, rounds, estimates, wanted.members(results, vocabulary, protocol)),
        class_intervals(lists, rounds, results.ap) if wanted.per_class else {},
    )


@dataclass(frozen=True)
class Intervals:
    """The 95 % interval of each subset's mAP and of each class's AP, all in [0, 1], and the settings they came from."""

    settings: Mapping[str, str]
    of_means: Mapping[str, tuple[float, float]]
    of_classes: Mapping[int, tuple[float, float]] = field(default_factory=dict)


def evaluation_rows(
    protocol: Protocol,
    means: list[Mean],
    *,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
    intervals: Intervals | None = None,
) -> Iterator[Row]:
    """mAP, with its interval if there are any, and mean maximal recall of each subset, in percent; `n` is how many
    classes the mean is over.

    The value of an empty subset is null.
    """
    common = {"unit": "%", "protocol": protocol.name, "tags": dict(tags)}
    signed = signature(settings)
    for mean in means:
        row = {"metric": "mAP", "subset": mean.subset, "value": percent(mean.ap), "n": mean.classes}
        if intervals is None:
            yield {**row, **common, "signature": signed}
        else:
            ends = interval_keys(intervals.of_means.get(mean.subset))
            yield {**row, **ends, **common, "signature": signature({**settings, **intervals.settings})}
    for mean in means:
        row = {"metric": "mean_max_recall", "subset": mean.subset, "value": percent(mean.max_recall), "n": mean.classes}
        yield {**row, **common, "signature": signed}


def class_rows(
    protocol: Protocol,
    results: ClassResults,
    vocabulary: Vocabulary,
    *,
    settings: Mapping[str, str],
    tags: Mapping[str, str],
    intervals: Intervals | None = None,
) -> Iterator[Row]:
    """AP (with its interval if there are any) and maximal recall of each class that the protocol averages, in percent;
    `n` is its ground-truth count.

    `subset` is the class's frequency group, or the smallest of the protocol's own subsets that has it.
    """
    common = {"unit": "%", "protocol": protocol.name, "tags": dict(tags)}
    signed = signature(settings)
    signed_ap = signed if intervals is None else signature({**settings, **intervals.settings})
    group = class_subsets(vocabulary, protocol)
    for metric, values in (("AP", results.ap.tolist()), ("max_recall", results.max_recall.tolist())):
        for number, (verb, name) in enumerate(vocabulary.interactions):
            if not results.in_mean[number]:
                continue
            row: Row = {"metric": metric, "subset": group.get(number, "full"), "verb": verb}
            row |= {vocabulary.qualifier: name or None, "value": percent(values[number])}
            row |= {"n": int(results.positives[number])}
            if metric == "AP" and intervals is not None:
                row |= interval_keys(intervals.of_classes.get(number))
            yield {**row, **common, "signature": signed_ap if metric == "AP" else signed}


def class_subsets(vocabulary: Vocabulary, protocol: Protocol) -> dict[int, str]:
    """The frequency group of each class, or the smallest of the protocol's own subsets that has it."""
    group = vocabulary.group_of
    for subset in sorted(protocol.subsets, key=lambda name: -len(vocabulary.subsets[name])):
        group |= dict.fromkeys(vocabulary.subsets[subset], subset)
    return group
