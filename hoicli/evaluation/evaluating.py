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
    allow,
    check_counted,
    choose_computable,
    find_unlabelled_views,
    tell_absent,
)
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.fit import check_annotated
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.matching import Batch, Outcomes, match_all
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.selection import rows_of
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import ALONE, Views
from hoicli.io.forks import fork_map
from hoicli.io.memory import no_garbage_collection
from hoicli.io.messages import note
from hoicli.io.streams import Line, Stream
from hoicli.records.columns import BATCH, read_columns
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
    """Return all ground truth of a stream, checked.

    Raises `DataError` for a bad line, for an empty stream, and, unless `allow_uncounted`, if more than half of the
    triplets have no class in the vocabulary, since numbers would be about the others only.
    """
    with no_garbage_collection():
        parts = read_scenes(stream, vocabulary, scored=False, policy=policy, processes=stream.processes())
        scenes = concatenate(parts, vocabulary)
    if not len(scenes.image_ids):
        problem = "no ground truth in it; hoicli convert makes it from the dataset's file"
        raise DataError(problem, place=stream.name, code="empty")
    check_annotated(scenes, stream.name)
    truth, classless = GroundTruth(scenes, vocabulary, stream.name), int((scenes.interaction < 0).sum())
    if truth.uncounted and not allow_uncounted:
        counted = f"{classless:,} of {len(scenes.interaction):,} triplets"
        problem = f"{counted} are {OF_NO_CLASS.format(vocabulary.name)}{allow()}"
        raise DataError(problem, place=stream.name, code="another-dataset")
    if classless:
        note(f"{classless} ground-truth triplets are no {vocabulary.name} interaction (verb and object): not counted")
    return truth


def matched_batches(
    lines: Iterable[Line],
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
) -> Iterator[tuple[Batch, Mapping[str, Outcomes]]]:
    """Yield each batch of predictions with its outcomes under every protocol.

    Raises `DataError` for a bad line or an image that the ground truth does not have.
    """
    with no_garbage_collection():
        for scenes in read_scenes(lines, truth.vocabulary, scored=True, policy=policy, known_ids=truth.position):
            batch = Batch(scenes, truth)
            yield batch, match_all(batch, protocols, filters)


@dataclass(frozen=True)
class MatchedLines:
    """The match records of some images as lines, and how their predictions fit the ground truth."""

    image_ids: Sequence[str]
    lines: bytes
    coverage: Coverage

    def saying(self, skipped: int, records: int) -> MatchedLines:
        """Return the same records, whose last `records` lines say that `skipped` lines were dropped, if any were."""
        if not skipped:
            return self
        lines = bytes(self.lines).splitlines()
        lines[-records:] = [b'%b,"skipped":%d}' % (line[:-1], skipped) for line in lines[-records:]]
        return replace(self, lines=b"".join(b"%b\n" % line for line in lines))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the lines as a buffer: they are megabytes, which a forked process sends without copying."""
        return MatchedLines, (self.image_ids, PickleBuffer(self.lines), self.coverage)


def matched_lines(
    predictions: Stream,
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    *,
    partial: bool = False,
) -> Iterator[MatchedLines]:
    """Yield the match records of the predictions, batch by batch, made by as many processes as their size is worth; and
    unless they are `partial`, those of the images without predictions, so that their triplets count as missed.

    The last record of each protocol says how many lines were dropped: of the predictions, and unless `partial` of the
    ground truth, too, which is otherwise read again later. Raises `DataError` as `matched_batches` does."""
    # One batch is held back, so that the last one can be told how many lines were dropped.
    before, last = policy.skipped if partial else 0, None
    try:
        for matched in _matched_lines(predictions, truth, protocols, filters, policy, partial):
            if last is not None:
                yield last
            last = matched
    except DataError:
        if last is not None:
            yield last
        raise
    if last is not None:
        yield last.saying(policy.skipped - before, len(protocols))


def _matched_lines(
    predictions: Stream,
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    partial: bool,
) -> Iterator[MatchedLines]:
    """Yield what `matched_lines` does, but without the number of dropped lines."""
    from hoicli.evaluation.match_records import MatchWriter

    writer = MatchWriter(truth, protocols, filters, partial=partial)
    image_ids_seen = set[str]()

    def make(chunk: list[Line]) -> MatchedLines | None:
        scenes = scenes_of(chunk, truth.vocabulary, scored=True)
        if not all(image_id in truth.position for image_id in scenes.image_ids):
            return None
        batch, coverage = Batch(scenes, truth), Coverage()
        coverage.add(batch)
        return MatchedLines(scenes.image_ids, writer.lines(batch, match_all(batch, protocols, filters)), coverage)

    with no_garbage_collection():
        check, register = checker(truth.vocabulary, scored=True), ImageRegister(truth.position)
        processes = predictions.processes()
        for batch_made in read_columns(predictions, make, check, policy, register=register, processes=processes):
            image_ids_seen.update(batch_made.image_ids)
            yield batch_made
        missed = (image_id for image_id in truth.position if image_id not in image_ids_seen and not partial)
        while empty := [Line("", 1, dump({"image_id": missed_id, **_NOTHING})) for missed_id in islice(missed, BATCH)]:
            matched = make(empty)
            assert matched is not None
            yield replace(matched, coverage=Coverage())


_NOTHING: Record = {"boxes": [], "labels": [], "hois": []}


def gather_in_parallel(
    gather: Callable[[Stream, ErrorPolicy], Part],
    predictions: Stream,
    policy: ErrorPolicy,
    images: Callable[[Part], Iterable[Hashable]],
    *,
    independent: Callable[[Sequence[Part]], bool] = lambda _: True,
) -> list[Part]:
    """Return the results of `gather` on the predictions, to be merged: one, or one for each share of a large file that
    is split among the processors.

    If a share fails, an image occurs in two parts, or the parts are not `independent`, the whole file is gathered again
    in one process, under `policy`, so that an error names the right place. images: returns the images of a part."""
    shares = predictions.shares()
    parts = fork_map(lambda share: gather(share, ErrorPolicy()), shares) if shares else None
    if parts is not None and _no_image_twice(map(images, parts)) and independent(parts):
        return parts
    return [gather(predictions, policy)]


def _no_image_twice(parts: Iterable[Iterable[Hashable]]) -> bool:
    """Return whether no image is in two parts. By hashes: one in 10^7 streams of a million images gives a false no."""
    hashes = np.fromiter(map(hash, chain.from_iterable(parts)), dtype=np.int64)
    return len(distinct(hashes)) == len(hashes)


def tally_matches(
    matched: Iterable[tuple[Batch, Mapping[str, Outcomes]]], protocols: Sequence[Protocol], vocabulary: Vocabulary
) -> tuple[Tally, Coverage]:
    """Return the tally and the coverage of batches that are given with their outcomes."""
    coverage, tally = Coverage(), Tally(protocols, len(vocabulary.interactions))
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
    well the two fit together.

    `gather_in_parallel` splits the work; the order of gathering does not change a tally. Raises `DataError` if the
    predictions cannot serve a protocol in `named`, or the only one; a note names others, which are left out."""

    def gather(lines: Iterable[Line], shared_policy: ErrorPolicy) -> tuple[Tally, Coverage]:
        return tally_matches(
            matched_batches(lines, truth, protocols, filters, shared_policy), protocols, truth.vocabulary
        )

    parts = gather_in_parallel(gather, predictions, policy, lambda part: part[0].listed.image_ids)
    tally, coverage = parts[0]
    for other, covered in parts[1:]:
        tally.merge(other)
        coverage.merge(covered)
    check_counted(tally, truth.vocabulary, predictions.name, allowed=filters.allow_uncounted)
    tally.add_truth(truth)
    remaining = tally.leave_out(find_unlabelled_views(dict.fromkeys(protocols, tally), named, predictions.name))
    coverage.report(truth, remaining, predictions.name)
    tell_absent(truth, remaining)
    return tally


def tallies(
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
    """Yield (tally, its vocabulary, settings for its signatures): one tally for predictions with ground truth, or one
    for each view of a protocol in a match stream.

    gt: the ground truth, or its stream; with a match stream it adds the images that shards of the stream lack.
    named: the protocols that the user named, which must be there; without any, all of a match stream. views: the
    thresholds and slices asked for; without any, all views of a match stream. vocabulary: that of the protocols'
    dataset, if it comes from a file. Raises `UsageError` for options that need predictions, `DataError` for protocols
    that the ground truth cannot serve."""
    vocabulary = vocabulary or load(chosen[0].dataset)
    matched = predictions.matched or gt is None
    if matched and not named and not vocabulary.own:
        vocabulary = load(predictions.dataset or vocabulary.name)
    truth = gt if isinstance(gt, GroundTruth) else None
    if isinstance(gt, Stream):
        truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    if truth is not None and not matched:
        chosen = views.views_of(choose_computable(truth, chosen, named), named)
        yield tally_predictions(predictions, truth, chosen, filters, policy, named), vocabulary, filters.signature()
        return
    from hoicli.evaluation.match_stream import MatchStream, read_matches

    if filters.removes:
        problem = f"{arg('top_k')} and {arg('nms')} act before matching"
        raise UsageError(f"{problem}: give them to hoicli match, or predictions with {arg('gt')}")
    rows = {**rows_of(vocabulary), **{row.name: row for row in chosen if row.dataset == vocabulary.name}}
    stream = MatchStream(vocabulary, rows, truth)
    with no_garbage_collection():
        read_matches(predictions, stream, policy)
    names = _names_in_stream(stream, rows, chosen if named else None)
    if truth is not None:
        names = [row.name for row in choose_computable(truth, [rows[name] for name in names], named)]
    requested = {row.key: row for row in views.views_of([rows[name] for name in names], named)}
    keys = list(requested) if views.thresholds.values or views.of_data else stream.view_keys(names)
    for key in keys:
        _check_matched(stream, key, requested[key] if key in requested else rows[stream.views[key].row.name])
    for key in keys:
        stream.views[key].check_whole(truth, stream.unread, predictions.name)
    lacking = find_unlabelled_views(
        {stream.views[key].row: stream.views[key].tally for key in keys}, named, predictions.name
    )
    if truth is not None:
        tell_absent(truth, [stream.views[key].row for key in keys])
    for view in (stream.views[key] for key in keys if stream.views[key].row not in lacking):
        if truth is not None:
            view.add_missed(truth, requested.get(view.row.key, view.row))
        view.check_counted(vocabulary, predictions.name, allowed=filters.allow_uncounted)
        yield view.tally, vocabulary, view.signed_settings()


def _names_in_stream(stream: MatchStream, rows: Mapping[str, Protocol], chosen: Sequence[Protocol] | None) -> list[str]:
    """Return the names of the chosen protocols, or of those of `rows` that a match stream has. rows: the protocols of
    the dataset by name; chosen: None for all of the stream. Raises `UsageError` if the stream lacks a chosen one."""
    protocols_seen = {view.row.name for view in stream.views.values()}
    if chosen is None:
        return [name for name in rows if name in protocols_seen]
    names = [row.name for row in chosen]
    missing = [name for name in names if name not in protocols_seen]
    if missing:
        raise UsageError(
            f"{arg('protocol', ','.join(missing))}: the matches are of {', '.join(sorted(protocols_seen)) or 'none'}"
        )
    return names


def _check_matched(stream: MatchStream, key: str, row: Protocol) -> None:
    """Raise `UsageError` if a match stream does not have the view `row`, or its lines were matched with another
    protocol file or slice file of that name. key: the view's key."""
    if row.mean_of:
        raise UsageError(
            f"{arg('iou', dict(row.view)['iou'])}: a mean over thresholds needs the predictions, with {arg('gt')}"
        )
    if key not in stream.views:
        options_text = " ".join(f"--{option} {value}" for option, value in row.view if option != "part")
        if not options_text:
            views = set(
                chain.from_iterable(view.row.view for view in stream.views.values() if view.row.name == row.name)
            )
            have = " or ".join(sorted(f"--{option} {value}" for option, value in views if option != "part"))
            raise UsageError(f"the matches of {row.name} have only {have}: ask for one, or match again without")
        raise UsageError(f"{options_text}: the matches of {row.name} do not have it; give it to hoicli match")
    theirs, ours = stream.views[key].settings, row.settings()
    if any(ours[name] != theirs.get(name) for name in ("row", "slice") if name in ours):
        raise UsageError(f"{key}: was matched with another file of that name; match again")
