"""Match records read, checked and gathered for evaluation."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from hoicli.converters.named import digest_of, truth_settings
from hoicli.errors import DataError, arg
from hoicli.evaluation.coverage import check_counted
from hoicli.evaluation.filters import UNCOUNTED
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.match_checks import match_problems
from hoicli.evaluation.pairing import OUTCOME_CODES
from hoicli.evaluation.protocols import PROTOCOLS, Protocol, view_key
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import check_part, read_view, view_order
from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.columns import BATCH
from hoicli.records.fingerprint import total_of
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE, ErrorPolicy, ImageRegister
from hoicli.records.kit import Ints
from hoicli.records.parsing import Record, parse
from hoicli.vocabulary.labels import Vocabulary


class Origin(NamedTuple):
    """The ground truth that match records were made with. partial: images without predictions have no records."""

    digest: str
    images: int
    partial: bool


@dataclass
class MatchedView:
    """The gathered match records of one view: of a protocol, perhaps at another threshold or on a part of the data.

    protocol: the view, as a protocol. settings: the field `settings`, which all of the records have in common. tally:
    their outcomes. register: the images seen. classless: how many more triplets of the ground truth have no class than
    have one. skipped: how many lines `match` dropped. origins: for each ground truth that records were made with, the
    number of images seen and the sum of the hashes of their annotations."""

    protocol: Protocol
    settings: dict[str, str]
    tally: Tally
    register: ImageRegister
    classless: int = 0
    skipped: int = 0
    origins: dict[Origin, tuple[int, int]] = field(default_factory=dict)

    def add_heads(self, records: Iterable[Record]) -> None:
        """Add what the first keys of checked records say about their ground truth: caveats (facts about where it came
        from that affect numbers), hashes and counts, but not the predictions and triplets."""
        tally, key = self.tally, self.protocol.key
        for record in records:
            tally.caveats |= caveats.read_caveats(record.get("caveats"))
            self.skipped += record.get("skipped", 0)
            without_class, triplets = record.get("gt_classless", (0, 0))
            self.classless += 2 * without_class - triplets
            tally.orders[key] += int(record.get("gt_order", "0"), 16)  # hoicli 1.0 writes none
            origin = Origin(record["gt_digest"], record["gt_images"], record.get("partial", False))
            count, total = self.origins.get(origin, (0, 0))
            self.origins[origin] = count + 1, total + int(record["gt_hash"], 16)
        tally.truth_total = sum(total for _, total in self.origins.values())

    def truth_settings(self) -> dict[str, str]:
        """Return the settings that the ground truth adds to signatures: digests of its annotations and their order,
        whether most of it has no class, and caveats; the same as `GroundTruth.settings` gives for the ground truth."""
        digests = truth_settings(self.tally.truth_total, self.tally.orders[self.protocol.key])
        uncounted = UNCOUNTED if self.classless > 0 else {}
        return {**digests, **uncounted, **caveats.settings(self.tally.caveats & self.protocol.depends_on)}

    def signed_settings(self) -> dict[str, str]:
        """Return the settings of the records for signatures. Records made with `--allow-uncounted` all have the setting
        UNCOUNTED; signatures have it only if most triplets or predictions indeed have no class."""
        other_settings = {key: value for key, value in self.settings.items() if key not in UNCOUNTED}
        return other_settings | self.tally.uncounted_setting

    def check_counted(self, vocabulary: Vocabulary, place: str, *, allowed: bool) -> None:
        """Raise `DataError` if most predictions have no class, so that they do not count, unless that is `allowed` here
        or was allowed when the records were made. place: what the message calls the stream."""
        allowed = allowed or UNCOUNTED.keys() <= self.settings.keys()
        check_counted(self.tally, vocabulary, place, allowed=allowed)

    def check_whole(self, truth: GroundTruth | None, unread: int, place: str) -> None:
        """Raise `DataError` if records of some images are missing. place: what the message calls the stream.

        Records must be there for all images of the ground truth that they were made with, and of `truth`, if it is
        given. If they are partial (made without the images that have no predictions), `truth` must be given instead,
        and supplies the missing images. unread: how many lines were skipped as bad; as many images may be missing."""
        name = self.protocol.key
        is_partial = any(origin.partial for origin in self.origins)
        missing = sum(origin.images - count for origin, (count, _) in self.origins.items() if not origin.partial)
        # Skipped lines may have held what is missing, but only if they are enough for all ground truths together.
        allowed_missing = unread if missing <= unread else 0
        for origin, (count, total) in self.origins.items():
            if not origin.partial:
                _check_count(f"{name}: of ground truth {origin.digest}", count, origin.images, allowed_missing, place)
                if count == origin.images and digest_of(total) != origin.digest:
                    problem = f"{name}: the annotations of its images are not ground truth {origin.digest}, with which"
                    raise DataError(f"{problem} it says it was matched; match again", place=place, code="not-whole")
        if truth is None and is_partial:
            problem = f"{name}: was matched with {arg('only_predicted')}, so ground truth is missing"
            raise DataError(f"{problem}; give the ground truth with {arg('gt')}", place=place, code="not-whole")
        # `truth` supplies what partial records lack; records that are whole by themselves must be of all its images
        if truth is not None and not is_partial:
            images_seen = sum(count for count, _ in self.origins.values())
            _check_count(f"{name}: of {truth.name}", images_seen, len(truth.position), unread, place)

    def add_missed(self, truth: GroundTruth, protocol: Protocol) -> None:
        """Add the ground truth of images without records to the tally, as missed. protocol: the view as requested,
        which knows the images or triplets of its part of the data. Raises `UsageError` if it knows only the part's
        name."""
        tally = self.tally
        check_part(protocol)
        image_ids, image, missed = truth.find_unseen(protocol, tally.listed.image_ids)
        tally.caveats |= truth.caveats
        # An order is a hash of the order of annotations, summed over images in 64 bits. Only if the records state the
        # sum that `truth` gives for their images, the sum over all images of `truth` takes its place.
        hashes_of_images = truth.order_hashes(protocol)[truth.find_images(tally.listed.image_ids)]
        if total_of(hashes_of_images) == tally.orders[protocol.key] % (1 << 64):
            tally.orders[protocol.key] = truth.order_hash(protocol)
        tally.truth_total = truth.hash_sum
        tally.uncounted = truth.uncounted
        tally.add_annotated(protocol.key, image_ids, image, truth.scenes.interaction[missed])


def _check_count(what: str, count: int, images: int, allowed_missing: int, place: str) -> None:
    """Raise `DataError` if the `count` of images that are there is above `images`, or more than `allowed_missing`
    below."""
    if not images - allowed_missing <= count <= images:
        problem = f"{what}: {count:,} of {images:,} images are there, {images - count:,} missing"
        raise DataError(f"{problem}; the stream is not whole, match again", place=place, code="not-whole")


@dataclass
class MatchStream:
    """All match records of a stream, by view: a protocol, perhaps at another threshold or on a part of the data.

    protocols: those that records may name besides the published ones, by name. truth: the ground truth that the user
    gives with the stream; all records must have been made with the same annotations. views: by `Protocol.key`. unread:
    how many skipped lines may have held an image that is now missing."""

    vocabulary: Vocabulary
    protocols: Mapping[str, Protocol]
    truth: GroundTruth | None = None
    views: dict[str, MatchedView] = field(default_factory=dict)
    unread: int = 0

    def batches(
        self, lines: Iterable[Line], policy: ErrorPolicy, check: Callable[[Record, Line], None] | None = None
    ) -> Iterator[tuple[MatchedView, list[Record]]]:
        """Read and check match records; yield them in batches, each of records of one view, with that view. What the
        records say about their ground truth is added to the view; the caller gathers the predictions.

        check: a further check of a record and its line, which raises `DataError`. Bad are also an image that occurs
        twice for one view, records made with different settings, and an image that `truth` does not have, or has with
        other annotations."""
        lines = iter(lines)
        while chunk := list(islice(lines, BATCH)):
            records_by_view: dict[str, list[Record]] = {}
            for line in chunk:
                try:
                    record = parse(line)
                    view = self._register_record(record, line)
                    if check is not None:
                        check(record, line)
                except DataError as error:
                    policy.handle(error)
                    # The image of a skipped line is missing now, unless it is there already, or no image of `truth`.
                    self.unread += error.code not in (DUPLICATE_IMAGE, UNKNOWN_IMAGE)
                    continue
                records_by_view.setdefault(view.protocol.key, []).append(record)
            for key, records in records_by_view.items():
                self.views[key].add_heads(records)
                yield self.views[key], records
        # each view has the number of bad lines that `match` dropped: of the same lines, so they are not added up
        policy.earlier += max((view.skipped for view in self.views.values()), default=0)

    def _register_record(self, record: Record, line: Line) -> MatchedView:
        """Check a match record and register its image with the view that it belongs to: its protocol, threshold and
        part of the data. Return that view, which is made if it is new. Raises `DataError` that names the field if the
        record is bad, or does not go together with the lines before it or with `truth`."""
        problem = next(match_problems(record, self.vocabulary, self.protocols), None)
        if problem is not None:
            raise problem.error(line.place)
        name = record["protocol"]
        tags = record.get("view", {})  # the IoU threshold and the part of the data, of such a view of the protocol
        settings = record.get("settings", {})
        view = self.views.get(view_key(name, tags))
        if view is None:
            protocol = read_view(self.protocols.get(name) or PROTOCOLS[name], tags)
            positions = None if self.truth is None else self.truth.position
            register = ImageRegister(positions, unit="an image and protocol")
            tally = Tally([protocol], len(self.vocabulary.interactions))
            tally.truth_total = 0  # `add_heads` adds to both
            tally.orders = {protocol.key: 0}
            view = MatchedView(protocol, settings, tally, register)
        if settings != view.settings:
            text = f"{settings} here and {view.settings} before; match the whole stream with one setting"
            raise DataError(text, place=line.place, field="settings", code="mixed")
        if self.truth is not None:
            _check_annotations(record, self.truth, view.protocol, line)
        view.register.add(str(record["image_id"]), line)
        self.views[view.protocol.key] = view
        return view

    def view_keys(self, names: Container[str]) -> list[str]:
        """Return the keys of the views of some protocols, which are given by name. They are sorted by protocol, then by
        part of the data and threshold, so that the order of the lines is no matter."""
        protocols = [view.protocol for view in self.views.values() if view.protocol.name in names]
        rank = {name: number for number, name in enumerate(self.protocols)}
        protocols.sort(key=lambda protocol: (rank[protocol.name], view_order(dict(protocol.view))))
        return [protocol.key for protocol in protocols]


def _check_annotations(record: Record, truth: GroundTruth, protocol: Protocol, line: Line) -> None:
    """Raise `DataError` if a match record was made with other annotations of its image than `truth` has, or in another
    order, where that may change a result under the protocol. An image that `truth` lacks is not looked at."""
    image_id = str(record["image_id"])
    image = truth.position.get(image_id)
    if image is None:
        return
    if int(truth.scenes.hashes[image]) != int(record["gt_hash"], 16):
        text = f"was matched with other annotations of {image_id!r} than those in {truth.name}; match again"
        raise DataError(text, place=line.place, field="gt_hash", code="mixed")
    if "gt_order" in record and int(truth.order_hashes(protocol)[image]) != int(record["gt_order"], 16):
        text = f"was matched with annotations of {image_id!r} in another order than those in {truth.name}"
        raise DataError(f"{text}; match again", place=line.place, field="gt_order", code="mixed")


def read_matches(lines: Iterable[Line], stream: MatchStream, policy: ErrorPolicy) -> None:
    """Read match records and add their outcomes and ground truth to the tallies of the stream's views."""
    for view, records in stream.batches(lines, policy):
        _add_to_tally(view, records, stream.vocabulary)
    for view in stream.views.values():
        view.tally.uncounted = view.classless > 0


def _add_to_tally(view: MatchedView, records: Sequence[Record], vocabulary: Vocabulary) -> None:
    """Add the predictions and the ground truth of checked match records to the tally of their view."""
    image_ids = [str(record["image_id"]) for record in records]
    predictions, image = _join_items(records, "predictions")
    truth, truth_image = _join_items(records, "gt")
    # files of V-COCO detections may not label their objects; elsewhere every object has a label
    with_object = [item for item in predictions if vocabulary.roles and item.get("object") is not None]
    view.tally.objects += len(with_object)
    view.tally.unlabelled += sum(item.get("label") is None for item in with_object)
    codes = np.array([OUTCOME_CODES[item["outcome"]] for item in predictions], dtype=np.uint8)
    score = np.array([item["score"] for item in predictions], dtype=np.float64)
    key = view.protocol.key
    view.tally.add(image_ids, image, class_numbers(predictions, vocabulary), score, {key: codes})
    annotated = class_numbers(truth, vocabulary)  # -1 for what is no interaction of the vocabulary
    view.tally.add_annotated(key, image_ids, truth_image[annotated >= 0], annotated[annotated >= 0])


def _join_items(records: Sequence[Record], key: str) -> tuple[list[Record], Ints]:
    """Return (the items of all records in the field `predictions` or `gt`, the index of each item's record)."""
    items = list(chain.from_iterable(record[key] for record in records))
    return items, np.repeat(np.arange(len(records)), [len(record[key]) for record in records])


def class_numbers(items: list[Record], vocabulary: Vocabulary) -> Ints:
    """Return [M] the class number of each of M predictions or ground-truth triplets of match records, -1 for a verb and
    object that are no class. (In a dataset with roles, every action of a checked record is a class.)"""
    ids = vocabulary.interaction_ids
    if vocabulary.roles:
        return np.array([ids[item["verb"], item.get("role") or ""] for item in items], dtype=np.int64)
    return np.array([ids.get((item["verb"], item["label"]), -1) for item in items], dtype=np.int64)
