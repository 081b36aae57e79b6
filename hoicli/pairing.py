"""Predictions beside their ground truth: both streams read and matched, and what does not meet said aloud."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

import numpy as np

from hoicli import caveats
from hoicli.errors import DataError, UsageError
from hoicli.evaluation import Tally
from hoicli.matches import dataset_of, is_match_record, read_matches
from hoicli.matching import Batch, Filters, GroundTruth, Outcomes, match_all
from hoicli.outputs import descriptor
from hoicli.protocols import PROTOCOLS, Protocol
from hoicli.readings.boxes import ENOUGH_IMAGES, BoxSample
from hoicli.scenes import ErrorPolicy, concatenate, read_scenes
from hoicli.streams import Line, display_name, note, read_lines
from hoicli.vocabulary import Vocabulary, load
from hoicli.workers import byte_ranges, fork_map, no_garbage_collection

Part = TypeVar("Part")


def read_truth(path: str, vocabulary: Vocabulary, policy: ErrorPolicy, *, allow_uncounted: bool = False) -> GroundTruth:
    """All ground truth of a stream.

    Raises `DataError` for a bad line, when there is none, and, unless that is allowed, when more than half of the
    triplets are of no class of the vocabulary: a number would be about the rest of them.
    """
    with no_garbage_collection():
        lines = read_lines([path], label="ground truth")
        scenes = concatenate(read_scenes(lines, vocabulary, scored=False, policy=policy), vocabulary)
    if not scenes.image_ids:
        raise DataError(
            "no ground truth in it; hoicli convert makes it from the dataset's file", place=display_name(path)
        )
    strange = int((scenes.interaction < 0).sum())
    total = len(scenes.interaction)
    if 2 * strange > total and not allow_uncounted:
        problem = f"{strange:,} of {total:,} triplets are {_OF_NO_CLASS.format(vocabulary.name)}"
        raise DataError(problem, place=display_name(path))
    if strange:
        note(f"{strange} ground-truth triplets are no {vocabulary.name} interaction (verb and object): not counted")
    return GroundTruth(scenes, vocabulary)


_OF_NO_CLASS = (
    "no {0} interaction (verb and object) and count for nothing: labels of another dataset, or another numbering? "
    "hoicli validate tells; --allow-uncounted computes with the others alone"
)


def check_counted(tally: Tally, vocabulary: Vocabulary, paths: Sequence[str], *, allowed: bool) -> None:
    """Raises `DataError` where most predictions are of no class of the vocabulary, unless that is `allowed`.

    Most is more than half of all, and more than half of those that are the best of an image: a dump that scores every
    verb for every pair has many of no class, but not at the top. Of a few images nothing is concluded.
    """
    if allowed:
        return
    strange, total = tally.classless()
    if 2 * strange <= total:
        return
    best, images = tally.classless_best()
    if 2 * best > images >= ENOUGH_IMAGES:
        top = f"the best of {best:,} of {images:,} images among them"
        problem = f"{strange:,} of {total:,} predictions, {top}, are {_OF_NO_CLASS.format(vocabulary.name)}"
        raise DataError(problem, place=", ".join(map(display_name, paths)))


def served(
    truth: GroundTruth, protocols: Sequence[Protocol], path: str, named: Container[str] | None = None
) -> list[Protocol]:
    """The protocols that the ground truth of `path` has numbers for; the others are told of in one line.

    Raises `DataError` where one of them was `named` itself (None: they all were), or nothing is left.
    """
    refused = [row for row in protocols if row.refuses & truth.caveats]
    if not refused:
        return list(protocols)
    names = ", ".join(row.name for row in refused)
    lacks = caveats.CAVEATS[caveats.names(refused[0].refuses & truth.caveats)[0]].lacks
    left = [row for row in protocols if row not in refused]
    if not left or named is None or any(row.name in named for row in refused):
        raise DataError(f"cannot serve {names}: {lacks}", place=display_name(path))
    note(f"left out: {names}: {lacks}")
    return left


@dataclass
class Coverage:
    """How well two streams met, gathered while matching; `report` says what a user should know."""

    images: int = 0
    triplets: int = 0
    not_interactions: int = 0
    unlabelled: int = 0
    boxes: BoxSample = field(default_factory=BoxSample)

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        self.images += len(batch.predictions.image_ids)
        self.triplets += len(batch.predictions.score)
        self.not_interactions += int((batch.predictions.interaction < 0).sum())
        self.unlabelled += int(((batch.predictions.object >= 0) & (batch.predictions.object_label < 0)).sum())
        self._sample_boxes(batch)

    def _sample_boxes(self, batch: Batch) -> None:
        """Of some images the best prediction, the first of equals, beside the annotated boxes."""
        found, truth = batch.predictions, batch.truth.scenes
        sample = {}
        for row in self.boxes.wanted(found.image_ids):
            start, end = found.hoi_start[row], found.hoi_start[row + 1]
            image = batch.image[row]
            annotated = truth.boxes[truth.box_start[image] : truth.box_start[image + 1]]
            if start < end and len(annotated):
                best = start + int(found.score[start:end].argmax())
                ends = [end for end in (found.subject[best], found.object[best]) if end >= 0]
                sample[found.image_ids[row]] = found.boxes[ends].tolist(), annotated.tolist()
        if sample:
            self.boxes.add(sample)

    def merge(self, other: Coverage) -> None:
        """Add another part's counts."""
        self.images += other.images
        self.triplets += other.triplets
        self.not_interactions += other.not_interactions
        self.unlabelled += other.unlabelled
        self.boxes.add(other.boxes.images)

    def report(
        self, truth: GroundTruth, protocols: Sequence[Protocol], *, shard: bool = False, model: str | None = None
    ) -> None:
        """On stderr: images without predictions (not of a `shard`, as others have them), triplets of no class, objects
        without a label, boxes that lie elsewhere, classes that nothing can be said about, derived image-level labels.

        `model`: whose predictions, where there are several.
        """

        def tell(message: str) -> None:
            note(message if model is None else f"{model}: {message}")

        total = len(truth.scenes.image_ids)
        if self.images < total and not shard:
            tell(
                f"{total - self.images:,} of {total:,} ground-truth images have no predictions: "
                "their triplets are missed"
            )
        if self.not_interactions:
            tell(
                f"{self.not_interactions:,} of {self.triplets:,} predictions are no {truth.vocabulary.name} "
                "interaction (verb and object): ignored"
            )
        by_label = [row.name for row in protocols if not row.person_first]
        if self.unlabelled and by_label:
            tell(
                f"{', '.join(by_label)}: {self.unlabelled:,} of {self.triplets:,} predictions have an object box "
                "without a label, as official V-COCO lists do, and match no object there; it needs a dump with labels"
            )
        if (off := self.boxes.finding()) is not None:
            dataset = truth.vocabulary.name
            option = "" if dataset == "hico" else f" --dataset {dataset}"
            tell(f"do the boxes fit? {off[0]}; hoicli validate{option} --gt GT PREDS tells more")
        if absent := _classes_without_truth(truth, protocols):
            shown = ", ".join(absent[:6]) + (f" and {len(absent) - 6} more" if len(absent) > 6 else "")
            tell(f"no ground truth of {shown}: left out of the means")
        if truth.scenes.derived and any(protocol.known_object for protocol in protocols):
            tell(
                f"Known Object: no image-level labels for {truth.scenes.derived:,} images, derived from their triplets "
                "(invisible instances are missing; convert anno_bbox.mat with anno.mat for the official labels)"
            )
        people = [row.name for row in protocols if row.person_subject]
        if people and (others := truth.other_subjects):
            tell(
                f"{', '.join(people)}: {others:,} ground-truth triplets have a subject that is no person, and are "
                "never found there (the released code finds them)"
            )


def _classes_without_truth(truth: GroundTruth, protocols: Sequence[Protocol]) -> list[str]:
    """The V-COCO classes that a protocol scores and the ground truth does not have: walk, hold_obj."""
    missing = np.zeros(len(truth.vocabulary.interactions), dtype=bool)
    for protocol in protocols:
        if protocol.dataset == "vcoco":
            missing |= truth.scored(protocol) & (truth.class_counts(protocol) == 0)
    classes = [truth.vocabulary.interactions[number] for number in np.flatnonzero(missing)]
    return ["_".join(filter(None, pair)) for pair in classes]


def matched_batches(
    lines: Iterable[Line],
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    *,
    all_boxes: bool = False,
) -> Iterator[tuple[Batch, Mapping[str, Outcomes]]]:
    """Each batch of predictions with its outcomes under every protocol (`all_boxes`: as `Batch` has it).

    Raises `DataError` for a bad line or an image that the ground truth does not have.
    """
    with no_garbage_collection():
        for scenes in read_scenes(lines, truth.vocabulary, scored=True, policy=policy, known=truth.position):
            batch = Batch(scenes, truth, all_boxes=all_boxes)
            yield batch, match_all(batch, protocols, filters)


def prediction_lines(paths: Sequence[str]) -> tuple[Line, Iterator[Line]]:
    """(the first line, all lines) of prediction streams, with progress on a terminal.

    Raises `DataError` if there is none.
    """
    lines = read_lines(paths, label="predictions")
    first = next(lines, None)
    if first is None:
        raise DataError("no predictions in it", place=", ".join(map(display_name, paths)))
    return first, chain([first], lines)


def unmatched_lines(paths: Sequence[str], who: str) -> Iterator[Line]:
    """All lines of prediction streams, for a command (`who`) that match records cannot serve.

    Raises `DataError` if there are none, `UsageError` for match records.
    """
    first, lines = prediction_lines(paths)
    if is_match_record(first):
        raise UsageError(f"{who} needs the predictions themselves, not match records")
    return lines


def check_streams(truth: str, paths: Sequence[str]) -> None:
    """Refuses to read two streams from one stdin."""
    if sum(path == "-" or descriptor(path) == 0 for path in (truth, *paths)) > 1:
        raise UsageError("stdin (-) can be read only once: give the ground truth or the predictions as a file")


def gathered(
    gather: Callable[[Iterable[Line], ErrorPolicy], Part],
    lines: Iterable[Line],
    paths: Sequence[str],
    policy: ErrorPolicy,
    disjoint: Callable[[list[Part]], bool],
) -> list[Part]:
    """What `gather` makes of the predictions, in parts to be merged: a large file is shared out among the processors.

    `lines` are those of `paths`. When a share finds fault, or the parts are not `disjoint` (an image is in two), the
    whole is gathered again in one piece, under `policy`, to say what and where.
    """
    ranges = byte_ranges(paths)
    parts = fork_map(lambda share: gather(share.lines("predictions"), ErrorPolicy()), ranges) if ranges else None
    return parts if parts is not None and disjoint(parts) else [gather(lines, policy)]


def tally_predictions(
    lines: Iterable[Line],
    paths: Sequence[str],
    truth: GroundTruth,
    protocols: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
) -> Tally:
    """All predictions matched and gathered, the ground truth counted; coverage is reported on stderr.

    `lines` are those of `paths`, shared out as `gathered` does; a tally is the same whatever order it was gathered in.
    """

    def gather(lines: Iterable[Line], shared_policy: ErrorPolicy) -> tuple[Tally, Coverage]:
        coverage, tally = Coverage(), Tally(protocols, len(truth.vocabulary.interactions))
        for batch, outcomes in matched_batches(lines, truth, protocols, filters, shared_policy):
            coverage.add(batch)
            tally.add_batch(batch, outcomes)
        return tally, coverage

    parts = gathered(gather, lines, paths, policy, lambda parts: Tally.disjoint([part for part, _ in parts]))
    tally, coverage = parts[0]
    for other, covered in parts[1:]:
        tally.merge(other)
        coverage.merge(covered)
    check_counted(tally, truth.vocabulary, paths, allowed=filters.allow_uncounted)
    tally.add_truth(truth)
    coverage.report(truth, protocols)
    return tally


def tallies(
    paths: Sequence[str],
    gt: str | None,
    chosen: Sequence[Protocol],
    filters: Filters,
    policy: ErrorPolicy,
    *,
    named: Collection[str],
) -> Iterator[tuple[Tally, Vocabulary, dict[str, str]]]:
    """(tally, its vocabulary, settings for its signature) of predictions with ground truth, or of each protocol of a
    match stream.

    `named`: the protocols that were asked for by their names, and must be there; without any, a match stream gives all
    that it has. Ground truth given with a match stream adds the images that the stream does not have, as it does for
    shards. Raises `UsageError` for what a match stream cannot give any more, `DataError` for what the ground truth
    cannot serve.
    """
    vocabulary = load(chosen[0].dataset)
    truth = None
    if gt is not None:
        check_streams(gt, paths)
    first, lines = prediction_lines(paths)
    matched = gt is None or is_match_record(first)
    if matched and not named:
        vocabulary = load(dataset_of(first) or vocabulary.name)
        if vocabulary.name != chosen[0].dataset and any(row.settings() for row in chosen):
            raise UsageError(f"--grid: the matches are of {vocabulary.name}; say so with --dataset")
    if gt is not None:
        truth = read_truth(gt, vocabulary, policy, allow_uncounted=filters.allow_uncounted)
    if truth is not None and not matched:
        chosen = served(truth, chosen, str(gt), named)
        yield tally_predictions(lines, paths, truth, chosen, filters, policy), vocabulary, filters.signature()
        return
    if filters.removes or any("images" in row.settings() for row in chosen):
        problem = "--top-k, --nms and --count-images act before matching"
        raise UsageError(f"{problem}: give them to hoicli match, or predictions with --gt")
    rows = PROTOCOLS | {row.name: row for row in chosen}
    with no_garbage_collection():
        stream = read_matches(lines, vocabulary, policy, rows)
    names = [row.name for row in chosen] if named else [name for name in PROTOCOLS if name in stream.tallies]
    missing = [name for name in names if name not in stream.tallies]
    if missing:
        raise UsageError(f"--protocol {','.join(missing)}: the matches are of {', '.join(stream.tallies) or 'none'}")
    if truth is not None:
        names = [row.name for row in served(truth, [rows[name] for name in names], str(gt), named)]
        stream.add_missed(truth)
    for name in names:
        settings = stream.settings[name] | filters.allowance()
        check_counted(stream.tallies[name], vocabulary, paths, allowed="uncounted" in settings)
        yield stream.tallies[name], vocabulary, settings
