"""Predictions and ground truth read and matched, with notes about what does not fit together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hoicli.errors import DataError, UsageError, arg
from hoicli.evaluation.coverage import (
    OF_NO_CLASS,
    Coverage,
    allow_hint,
    check_counted,
    choose_computable,
    find_unlabelled_views,
    tell_absent,
    unpredicted_note,
)
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.fit import check_annotated
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch, Outcomes, match_all
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import protocols_for
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import ALONE, Views
from hoicli.io.forks import fork_map
from hoicli.io.memory import no_garbage_collection
from hoicli.io.messages import note
from hoicli.io.streams import Line, Stream
from hoicli.records.boxes import find_repeated
from hoicli.records.columns import BATCH, read_columns
from hoicli.records.group_lines import GroupLines
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.kit import distinct
from hoicli.records.parsing import Record, dump
from hoicli.records.reading import checker, concatenate, read_scenes, scenes_of
from hoicli.vocabulary.datasets import load
from hoicli.vocabulary.labels import Vocabulary

if TYPE_CHECKING:
    from hoicli.evaluation.match_stream import MatchStream

Part = TypeVar("Part")


def read_truth(
    stream: Stream, vocabulary: Vocabulary, policy: ErrorPolicy, *, allow_uncounted: bool = False
) -> GroundTruth:
    """Read, check and return all ground truth of a stream. A note on stderr says how many triplets have no class.
    Raises `DataError` for a bad line, for an empty stream, and, unless `allow_uncounted`, if more than half of the
    triplets have no class in the vocabulary, since metrics would be about the others only."""
    with no_garbage_collection():
        parts = read_scenes(stream, vocabulary, scored=False, policy=policy, processes=stream.processes())
        scenes = concatenate(parts, vocabulary)
    if not len(scenes.image_ids):
        problem = "no ground truth in it; hoicli convert makes it from the dataset's file"
        raise DataError(problem, place=stream.name, code="empty")
    check_annotated(scenes, stream.name, policy)
    truth = GroundTruth(scenes, vocabulary, stream.name)
    truth.is_group = isinstance(stream.lines_held, GroupLines)
    classless = int((scenes.interaction < 0).sum())
    if truth.uncounted and not allow_uncounted:
        counted = f"{classless:,} of {len(scenes.interaction):,} triplets"
        problem = f"{counted} are {OF_NO_CLASS.format(vocabulary.name)}{allow_hint()}"
        raise DataError(problem, place=stream.name, code="another-dataset")
    if classless:
        note(f"{classless} ground-truth triplets are no {vocabulary.name} interaction (verb and object): not counted")
    is_doubled = find_repeated(scenes, scenes.interaction, scenes.labels[scenes.subject]) & (scenes.interaction >= 0)
    if doubled := int(is_doubled.sum()):
        problem = "repeat another on the same boxes: where both count, only one can be found"
        note(f"{doubled:,} ground-truth triplets {problem} (hoicli validate names them)")
    return truth


def match_batches(
    lines: Iterable[Line], truth: GroundTruth, protocols: Sequence[Protocol], filters: Filters, policy: ErrorPolicy
) -> Iterator[tuple[Batch, Mapping[str, Outcomes]]]:
    """Read predictions and match them with the ground truth; yield each batch of images with its outcomes by
    `Protocol.key`. Raises `DataError` for a bad line or an image that the ground truth does not have."""
    with no_garbage_collection():
        for scenes in read_scenes(lines, truth.vocabulary, scored=True, policy=policy, known_ids=truth.position):
            batch = Batch(scenes, truth)
            yield batch, match_all(batch, protocols, filters)


@dataclass(frozen=True)
class MatchedLines:
    """The match records of some images, as JSON lines. coverage: how well the predictions fit the ground truth."""

    image_ids: Sequence[str]
    lines: bytes
    coverage: Coverage

    def state_skipped(self, skipped: int, records: int) -> MatchedLines:
        """Return the same records, with `"skipped":N` added to the last `records` lines if N = `skipped` lines of the
        input were dropped; unchanged if none were."""
        if not skipped:
            return self
        lines = bytes(self.lines).splitlines()
        lines[-records:] = [b'%b,"skipped":%d}' % (line[:-1], skipped) for line in lines[-records:]]
        return replace(self, lines=b"".join(b"%b\n" % line for line in lines))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to pickle this: with the lines as a buffer, which a forked process can send without a copy."""
        return MatchedLines, (self.image_ids, PickleBuffer(self.lines), self.coverage)


def match_lines(
    predictions: Stream,
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    *,
    partial: bool = False,
) -> Iterator[MatchedLines]:
    """Match the predictions and yield their match records, batch by batch; several processes share a large input.

    Images without predictions have records, too, so that their triplets count as missed, unless the records are
    `partial`. The last record of each protocol states how many lines were dropped because they were bad: of the
    predictions and of the ground truth (if `partial` of the predictions alone, since the ground truth is read again
    later). Raises `DataError` for a bad line or an image that the ground truth does not have."""
    skipped_before = policy.skipped if partial else 0
    # Each batch is held back until the next one is there: the last one must state how many lines were dropped.
    held_back: MatchedLines | None = None
    try:
        for matched in _match_lines(predictions, truth, protocols, filters, policy, partial):
            if held_back is not None:
                yield held_back
            held_back = matched
    except DataError:
        if held_back is not None:
            yield held_back
        raise
    if held_back is not None:
        yield held_back.state_skipped(policy.skipped - skipped_before, len(protocols))


def _match_lines(
    predictions: Stream,
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    partial: bool,
) -> Iterator[MatchedLines]:
    """Match the predictions and yield their match records, batch by batch; then, unless `partial`, those of images
    without predictions. The arguments are those of `match_lines`, which adds the number of dropped lines."""
    from hoicli.evaluation.match_records import MatchWriter

    writer = MatchWriter(truth, protocols, filters, partial=partial)
    image_ids_seen = set[str]()

    def match_chunk(chunk: list[Line]) -> MatchedLines | None:
        """Return the match records of some lines, None if the ground truth lacks one of their images."""
        scenes = scenes_of(chunk, truth.vocabulary, scored=True)
        if not all(image_id in truth.position for image_id in scenes.image_ids):
            return None
        batch = Batch(scenes, truth)
        coverage = Coverage()
        coverage.add(batch)
        records = writer.make_lines(batch, match_all(batch, protocols, filters))
        return MatchedLines(scenes.image_ids, records, coverage)

    with no_garbage_collection():
        check = checker(truth.vocabulary, scored=True)
        register = ImageRegister(truth.position)
        processes = predictions.processes()
        for matched in read_columns(predictions, match_chunk, check, policy, register=register, processes=processes):
            image_ids_seen.update(matched.image_ids)
            yield matched
        if partial:
            return
        unseen = (image_id for image_id in truth.position if image_id not in image_ids_seen)
        while unseen_ids := list(islice(unseen, BATCH)):
            empty_records = ({"image_id": image_id, **_NOTHING} for image_id in unseen_ids)
            matched_empty = match_chunk([Line(file="", number=1, data=dump(record)) for record in empty_records])
            assert matched_empty is not None  # all of these images are in the ground truth
            yield replace(matched_empty, coverage=Coverage())


_NOTHING: Record = {"boxes": [], "labels": [], "hois": []}
"""The fields of a prediction record without predictions."""


def gather_in_parallel(
    gather: Callable[[Stream, ErrorPolicy], Part],
    predictions: Stream,
    policy: ErrorPolicy,
    images: Callable[[Part], Iterable[Hashable]],
    *,
    independent: Callable[[Sequence[Part]], bool] = lambda _: True,
) -> list[Part]:
    """Return the results of `gather` on the predictions, which the caller merges: a single result, or for a large file
    one for each share of its lines, computed by several processes.

    gather: reads a stream under an error policy. images: returns the images of a result. independent: returns whether
    results may be merged at all (by default always). If a process fails, an image is in two shares, or results are not
    independent, the whole file is gathered again in this process under `policy`, so that an error names the right
    line."""
    shares = predictions.shares()
    # the policy of a share stops at the first bad line: then all is gathered again under `policy`
    results = fork_map(lambda share: gather(share, ErrorPolicy()), shares) if shares else None
    if results is not None and independent(results):
        # Hashes take less memory than the ids. Two images have the same one in about one of 10^7 streams of a million
        # images: then the file is gathered again, which costs only time.
        all_images = chain.from_iterable(images(result) for result in results)
        hashes = np.fromiter(map(hash, all_images), dtype=np.int64)
        if len(distinct(hashes)) == len(hashes):
            return results
    return [gather(predictions, policy)]


def tally_matches(
    matched: Iterable[tuple[Batch, Mapping[str, Outcomes]]], protocols: Sequence[Protocol], vocabulary: Vocabulary
) -> tuple[Tally, Coverage]:
    """Return the tally of matched batches, to be ranked, and their coverage, which tells how well predictions and
    ground truth fit together."""
    tally = Tally(protocols, len(vocabulary.interactions))
    coverage = Coverage()
    for batch, outcomes in matched:
        coverage.add(batch)
        tally.add_batch(batch, outcomes)
    return tally, coverage


def tally_predictions(
    predictions: Stream,
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    named: Collection[str] = (),
) -> Tally:
    """Match all predictions, and return the tally of their outcomes and of the ground truth. Notes on stderr tell how
    well the two fit together. Several processes share a large file; the result does not depend on how.

    Raises `DataError` if the predictions cannot serve a `named` protocol, or any at all; others are left out with a
    note."""

    def gather(lines: Iterable[Line], shared_policy: ErrorPolicy) -> tuple[Tally, Coverage]:
        """Match some lines, and return their tally and coverage."""
        matched = match_batches(lines, truth, protocols, filters, shared_policy)
        return tally_matches(matched, protocols, truth.vocabulary)

    parts = gather_in_parallel(gather, predictions, policy, lambda part: part[0].listed.image_ids)
    tally, coverage = parts[0]
    for other_tally, other_coverage in parts[1:]:
        tally.merge(other_tally)
        coverage.merge(other_coverage)
    check_counted(tally, truth.vocabulary, predictions.name, allowed=filters.allow_uncounted)
    tally.add_truth(truth)
    remaining = tally.leave_out(find_unlabelled_views(dict.fromkeys(protocols, tally), named, predictions.name))
    coverage.report(truth, remaining, predictions.name)
    tell_absent(truth, remaining)
    return tally


def gather_tallies(
    predictions: Predictions,
    gt: Stream | GroundTruth | None,
    chosen: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    *,
    named: Collection[str],
    views: Views = ALONE,
    vocabulary: Vocabulary | None = None,
) -> Iterator[tuple[Tally, Vocabulary, dict[str, str]]]:
    """Yield (a tally of outcomes, its vocabulary, settings for its signatures): one tally of all protocols for
    predictions with ground truth; for match records, one for each view of a protocol that they hold.

    gt: the ground truth, or its stream; needed for predictions. With match records it adds the images that they lack.
    chosen: the protocols to evaluate; named: the names of those that the user asked for, which must be computable;
    without any, all protocols of the match records are evaluated. views: the thresholds and slices that the user asked
    for; without any, all views in the match records. vocabulary: that of the protocols' dataset, if it comes from a
    file. Raises `UsageError` for options that need predictions."""
    vocabulary = vocabulary or load(chosen[0].dataset)
    matched = predictions.matched or gt is None
    if matched and not named and not vocabulary.own:  # the user chose no dataset: it is that of the match records
        vocabulary = load(predictions.dataset or vocabulary.name)
    truth = gt if isinstance(gt, GroundTruth) else None
    if isinstance(gt, Stream):
        truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    if truth is not None and not matched:
        chosen = views.views_of(choose_computable(truth, chosen, named), named)
        tally = tally_predictions(predictions, truth, chosen, filters, policy, named)
        yield tally, vocabulary, filters.signature()
        return
    yield from _match_stream_tallies(predictions, truth, vocabulary, chosen, filters, policy, named=named, views=views)


def _match_stream_tallies(
    predictions: Predictions,
    truth: GroundTruth | None,
    vocabulary: Vocabulary,
    chosen: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    *,
    named: Collection[str],
    views: Views,
) -> Iterator[tuple[Tally, Vocabulary, dict[str, str]]]:
    """Yield what `gather_tallies` does for match records: for each view of a protocol its tally, the vocabulary, and
    settings for signatures. truth: the ground truth of images that the records lack, None if they must have all."""
    from hoicli.evaluation.match_stream import MatchStream, read_matches

    if filters.removes:
        problem = f"{arg('top_k')} and {arg('nms')} act before matching"
        raise UsageError(f"{problem}: give them to hoicli match, or predictions with {arg('gt')}")
    protocols = {**protocols_for(vocabulary), **{row.name: row for row in chosen if row.dataset == vocabulary.name}}
    stream = MatchStream(vocabulary, protocols, truth)
    with no_garbage_collection():
        read_matches(predictions, stream, policy)

    # First which views to evaluate: those that the user asked for, by key.
    names = _names_in_stream(stream, protocols, chosen if named else None)
    if truth is not None:
        names = [row.name for row in choose_computable(truth, [protocols[name] for name in names], named)]
    requested = {row.key: row for row in views.views_of([protocols[name] for name in names], named)}
    # Without --iou and --slice, all views that the match records have are evaluated.
    keys = list(requested) if views.thresholds.values or views.of_data else stream.view_keys(names)
    for key in keys:
        view = requested[key] if key in requested else protocols[stream.views[key].protocol.name]
        _check_matched(stream, key, view)

    # Then whether the records of each view are whole, and its results; `truth` adds what the records lack.
    matched_views = [stream.views[key] for key in keys]
    for matched in matched_views:
        matched.check_whole(truth, stream.unread, predictions.name)
    tallies = {matched.protocol: matched.tally for matched in matched_views}
    unlabelled = find_unlabelled_views(tallies, named, predictions.name)
    evaluated_views = [matched for matched in matched_views if matched.protocol not in unlabelled]
    if truth is not None:
        for matched in evaluated_views:
            matched.add_missed(truth, requested.get(matched.protocol.key, matched.protocol))
        tell_absent(truth, list(tallies))
        messages = {unpredicted_note(len(tally.listed.image_ids), truth) for tally in tallies.values()}
        for message in messages - {""}:
            note(message)
    for matched in evaluated_views:
        matched.check_counted(vocabulary, predictions.name, allowed=filters.allow_uncounted)
        yield matched.tally, vocabulary, matched.signed_settings()


def _names_in_stream(
    stream: MatchStream, protocols: Mapping[str, Protocol], chosen: Sequence[Protocol] | None
) -> list[str]:
    """Return the names of the protocols to evaluate of a match stream: the chosen ones, or if there are none, those of
    the dataset (`protocols`) that the stream has. Raises `UsageError` if it lacks a chosen one."""
    protocols_seen = {view.protocol.name for view in stream.views.values()}
    if chosen is None:
        return [name for name in protocols if name in protocols_seen]
    names = [row.name for row in chosen]
    missing = [name for name in names if name not in protocols_seen]
    if missing:
        raise UsageError(
            f"{arg('protocol', ','.join(missing))}: the matches are of {', '.join(sorted(protocols_seen)) or 'none'}"
        )
    return names


def _check_matched(stream: MatchStream, key: str, protocol: Protocol) -> None:
    """Raise `UsageError` if a match stream lacks a requested view of a protocol, or its lines were matched with another
    protocol file or slice file of the same name."""
    if protocol.mean_of:
        raise UsageError(
            f"{arg('iou', dict(protocol.view)['iou'])}: a mean over thresholds needs the predictions, with {arg('gt')}"
        )
    if key not in stream.views:
        # a view is (key, value) pairs: iou, slice, and the slice's part, which has no option of its own
        options_text = " ".join(f"--{option} {value}" for option, value in protocol.view if option != "part")
        if options_text:
            raise UsageError(f"{options_text}: the matches of {protocol.name} do not have it; give it to hoicli match")
        views_there = [view.protocol for view in stream.views.values() if view.protocol.name == protocol.name]
        options_there = set(chain.from_iterable(view.view for view in views_there))
        have = " or ".join(sorted(f"--{option} {value}" for option, value in options_there if option != "part"))
        raise UsageError(f"the matches of {protocol.name} have only {have}: ask for one, or match again without")
    settings_there = stream.views[key].settings
    settings_wanted = protocol.settings()
    of_files = [name for name in ("row", "slice") if name in settings_wanted]  # settings with a digest of a file
    if any(settings_wanted[name] != settings_there.get(name) for name in of_files):
        raise UsageError(f"{key}: was matched with another file of that name; match again")
