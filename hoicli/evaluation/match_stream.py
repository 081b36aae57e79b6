"""Match records read, checked and gathered for evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from hoicli.converters.named import digest_of, signed
from hoicli.errors import DataError, arg
from hoicli.evaluation.coverage import check_counted
from hoicli.evaluation.filters import UNCOUNTED
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import PROTOCOLS, Protocol, view_key
from hoicli.evaluation.selection import rows_of
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import read_view, view_order, with_part
from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.columns import BATCH
from hoicli.records.image import image_id_problems, unknown_label
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE, ErrorPolicy, ImageRegister
from hoicli.records.kit import Ints
from hoicli.records.outcomes import OUTCOME_CODES, OUTCOMES
from hoicli.records.parsing import Problem, Record, is_number, parse, short
from hoicli.records.results import BAR, SIGNATURE_KEYS
from hoicli.vocabulary.datasets import DATASETS
from hoicli.vocabulary.labels import Vocabulary

GT_HASH, GT_DIGEST = re.compile("[0-9a-f]{1,16}"), re.compile("[0-9a-f]{8}")
UNKNOWN_PROTOCOL = "unknown-protocol"
VIEW_KEYS = ("iou", "slice", "part")
"""The keys of a record's `view`: of one threshold, of one part of the data."""
COUNTED = ("true_positive", "false_positive")
"""The outcomes of predictions that count; such a prediction has a class."""


class Origin(NamedTuple):
    """The ground truth that match records were made with: its digest, how many images it has, and whether images
    without predictions were left out."""

    digest: str
    images: int
    partial: bool


@dataclass
class MatchStream:
    """A whole match stream: by `Protocol.key` of each view a tally, its images, the settings of its lines, the mask of
    their caveats, and of each origin the number of its images and the sum of their hashes. protocols: the rows that
    lines may name. truth: the ground truth that is given besides, with which all lines must have been made."""

    protocols: Mapping[str, Protocol]
    truth: GroundTruth | None = None
    views: dict[str, Protocol] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    images: dict[str, set[str]] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    caveats: dict[str, int] = field(default_factory=dict)
    classless: dict[str, int] = field(default_factory=dict)
    """By how many the triplets of the ground truth without a class are more than those with one."""
    origins: dict[str, dict[Origin, tuple[int, int]]] = field(default_factory=dict)
    unread: int = 0
    """Lines that were skipped and may have been of an image that is not there."""
    _registers: dict[str, ImageRegister] = field(default_factory=dict)

    def add_heads(self, name: str, records: Iterable[Record]) -> None:
        """Add the caveats of a view's checked records, and the hashes of their ground truth."""
        origins = self.origins.setdefault(name, {})
        for record in records:
            self.caveats[name] = self.caveats.get(name, 0) | caveats.of_record(record.get("caveats"))
            without, every = record.get("gt_classless", (0, 0))
            self.classless[name] = self.classless.get(name, 0) + 2 * without - every
            origin = Origin(record["gt_digest"], record["gt_images"], record.get("partial", False))
            count, total = origins.get(origin, (0, 0))
            origins[origin] = count + 1, total + int(record["gt_hash"], 16)

    def truth_total(self, name: str) -> int:
        """The sum of the hashes of a view's images."""
        return sum(total for _, total in self.origins[name].values())

    def truth_settings(self, name: str) -> dict[str, str]:
        """What the ground truth adds to the signatures of a view's rows, as `GroundTruth.settings`."""
        concerned = self.caveats[name] & self.views[name].depends_on
        uncounted = UNCOUNTED if self.classless.get(name, 0) > 0 else {}
        return {**signed(self.truth_total(name)), **uncounted, **caveats.settings(concerned)}

    def check_counted(self, name: str, vocabulary: Vocabulary, place: str, *, allowed: bool) -> None:
        """`coverage.check_counted` of a view; whoever matched with leave need not ask again."""
        check_counted(
            self.tallies[name], vocabulary, place, allowed=allowed or UNCOUNTED.keys() <= self.settings[name].keys()
        )

    def signed(self, name: str) -> dict[str, str]:
        """The settings of a view's lines as signatures have them: the leave that they pass on only where the
        predictions needed it."""
        own = {key: value for key, value in self.settings[name].items() if key not in UNCOUNTED}
        return own | self.tallies[name].leave

    def register(self, name: str, image_id: str, line: Line) -> None:
        """Note a view's image. Raises `DataError` if it was there before, or `truth` does not have it."""
        known = None if self.truth is None else self.truth.position
        register = self._registers.setdefault(name, ImageRegister(known, unit="an image and protocol"))
        register.add(image_id, line)

    def skip(self, error: DataError, policy: ErrorPolicy) -> None:
        """Hand over what is wrong with a line. A line of an image that is there already, or of none, loses nothing."""
        policy.handle(error)
        self.unread += error.code not in (DUPLICATE_IMAGE, UNKNOWN_IMAGE)

    def check_whole(self, names: Iterable[str], place: str) -> None:
        """Raises `DataError` at `place` for a view that lacks images of the ground truth it was matched with, but for
        as many as lines could not be read, or of `truth` if no line is `partial`; without `truth` for a partial one.
        """
        for name in names:
            origins = self.origins[name]
            whole = sum(count for count, _ in origins.values())
            partial = any(origin.partial for origin in origins)
            lacking = sum(origin.images - count for origin, (count, _) in origins.items() if not origin.partial)
            spare = self.unread if lacking <= self.unread else 0
            for origin, (count, total) in origins.items():
                if not origin.partial:
                    _check_count(f"{name}: of ground truth {origin.digest}", count, origin.images, spare, place)
                    if count == origin.images and digest_of(total) != origin.digest:
                        problem = f"{name}: the annotations of its images are not ground truth {origin.digest}"
                        raise DataError(f"{problem}, with which it says it was matched; match again", place=place)
            if self.truth is None and partial:
                problem = f"{name}: was matched with {arg('only_predicted')}, so ground truth is missing"
                raise DataError(f"{problem}; give the ground truth with {arg('gt')}", place=place)
            if self.truth is not None and not partial:
                images = len(self.truth.position)
                _check_count(f"{name}: of {self.truth.name}", whole, images, self.unread, place)

    def key(self, record: Record) -> str:
        """The key of a checked record's view, which is noted."""
        key = view_key(record["protocol"], record.get("view", {}))
        if key not in self.views:
            row = self.protocols.get(record["protocol"]) or PROTOCOLS[record["protocol"]]
            self.views[key] = read_view(row, record.get("view", {}))
        return key

    def of(self, names: Container[str]) -> list[str]:
        """The keys of the views of these protocols, in an order that the order of the lines does not change."""
        rows = [row for row in self.views.values() if row.name in names]
        place = {name: number for number, name in enumerate(self.protocols)}
        return [row.key for row in sorted(rows, key=lambda row: (place[row.name], view_order(dict(row.view))))]

    def add_missed(self, truth: GroundTruth, chosen: Mapping[str, Protocol]) -> None:
        """Count the ground truth of images that the stream lacks, as a shard does. `chosen`: views by key, which know
        their parts. Raises `UsageError` for a part that is not among them."""
        scenes = truth.scenes
        for name, tally in self.tallies.items():
            absent = truth.absent(self.images[name])
            row = with_part(chosen.get(name, self.views[name]))
            missed = truth.counted(row) & absent[scenes.image_of_hoi]
            tally.caveats |= truth.caveats
            tally.truth_total = truth.total
            tally.uncounted = truth.uncounted
            tally.add_annotated(name, scenes.image_ids, scenes.image_of_hoi[missed], scenes.interaction[missed])


def _check_count(of: str, found: int, images: int, spare: int, place: str) -> None:
    """Raises `DataError` for a number of images that is not that of the ground truth, but for a few to `spare`."""
    if not images - spare <= found <= images:
        problem = f"{of}: {found:,} of {images:,} images are there, {images - found:,} missing"
        raise DataError(f"{problem}; the stream is not whole, match again", place=place)


def read_matches(
    lines: Iterable[Line],
    vocabulary: Vocabulary,
    policy: ErrorPolicy,
    protocols: Mapping[str, Protocol] | None = None,
    truth: GroundTruth | None = None,
) -> MatchStream:
    """Gather a match stream for evaluation by `protocols` (rows by name; None: those of the dataset). truth: the ground
    truth that is given besides.

    Raises `DataError` (or counts it in `policy`) for a bad line, an image that occurs twice for one protocol, lines
    matched with different settings, and an image that `truth` does not have, or with other annotations.
    """
    stream = MatchStream(rows_of(vocabulary) if protocols is None else protocols, truth)
    lines = iter(lines)
    while chunk := list(islice(lines, BATCH)):
        grouped: dict[str, list[tuple[str, Record]]] = {}
        for line in chunk:
            try:
                record = parse(line)
                name, image_id = checked_match(record, line, vocabulary, stream)
                stream.register(name, image_id, line)
            except DataError as error:
                stream.skip(error, policy)
                continue
            grouped.setdefault(name, []).append((image_id, record))
        for name, images in grouped.items():
            _gather(stream, name, images, vocabulary)
    return stream


def match_problems(
    record: Record, vocabulary: Vocabulary, protocols: Mapping[str, Protocol] | None = None
) -> Iterator[Problem]:
    """Everything in a match record that evaluation cannot use; nothing for what `match` writes."""
    if not {"protocol", "predictions", "gt"} <= record.keys():
        hint = f"give the ground truth with {arg('gt')}" if "hois" in record else "hoicli match writes them"
        yield Problem("", f"not a match record; {hint}")
        return
    name = record["protocol"] if type(record["protocol"]) is str else ""
    known = (protocols or {}).get(name) or PROTOCOLS.get(name)
    published = PROTOCOLS.get(name, known)  # a record without a dataset is of the one its protocol was published for
    dataset = record.get("dataset", vocabulary.name if published is None else published.dataset)
    if dataset != (vocabulary.signed if "dataset" in record else vocabulary.name):
        yield _other_dataset(record, str(dataset), vocabulary)
        return
    if known is None:
        text = f"unknown protocol {record['protocol']!r}; choose from {', '.join(PROTOCOLS)}, or give its file"
        yield Problem("protocol", text, UNKNOWN_PROTOCOL)
    yield from image_id_problems(record)
    yield from _caveat_problems(record.get("caveats"), known)
    for key, form in (("gt_hash", GT_HASH), ("gt_digest", GT_DIGEST)):
        if type(record.get(key)) is not str or form.fullmatch(record[key]) is None:
            yield Problem(key, "missing, or not as hoicli match writes it; match again")
    if type(record.get("gt_images")) is not int or record["gt_images"] < 1:
        yield Problem("gt_images", "missing, or no number of images; match again")
    if type(record.get("partial", False)) is not bool:
        yield Problem("partial", "must be true or false; match again")
    counts = record.get("gt_classless", [0, 0])
    if type(counts) is not list or len(counts) != 2 or not all(type(n) is int and 0 <= n < 1 << 40 for n in counts):
        yield Problem("gt_classless", "must be two counts; hoicli match writes them")
    settings = record.get("settings", {})
    if type(settings) is not dict or not all(type(value) is str for value in settings.values()):
        yield Problem("settings", "must be an object of strings; hoicli match writes one")
    elif not settings.keys() <= set(SIGNATURE_KEYS) or any(BAR in value for value in settings.values()):
        yield Problem("settings", f"{short(settings)} is none of a signature's; hoicli match writes one")
    view = record.get("view", {})
    if type(view) is not dict or not all(key in VIEW_KEYS and type(value) is str for key, value in view.items()):
        yield Problem("view", f"must be an object of strings {', '.join(VIEW_KEYS)}; hoicli match writes one")
    for key in ("predictions", "gt"):
        if type(record[key]) is not list:
            yield Problem(key, "must be an array; hoicli match writes one")
            continue
        for index, item in enumerate(record[key]):
            yield from _item_problems(f"{key}[{index}]", item, vocabulary, predicted=key == "predictions")
    yield from _balance_problems(record, "role" if vocabulary.roles else "label")


def _other_dataset(record: Record, dataset: str, vocabulary: Vocabulary) -> Problem:
    """The problem of a match record of another dataset, or of the same with another content of its file."""
    if "dataset" not in record:
        text = f"{record['protocol']} is of {dataset}, not {vocabulary.name}; match one dataset a stream"
        return Problem("protocol", text)
    if vocabulary.own and dataset.startswith(f"{vocabulary.name}-"):
        fix = f"{vocabulary.path} has changed since; match the predictions again"
    else:
        fix = (
            arg("dataset", dataset) if dataset in DATASETS else f"give its file with {arg('dataset', like='FILE.json')}"
        )
    return Problem("dataset", f"matches of {short(dataset)}, not of {vocabulary.signed}; {fix}")


def _caveat_problems(value: Any, protocol: Protocol | None) -> Iterator[Problem]:
    """Problems of unknown caveats, and of those that rule the protocol out."""
    try:
        refused = caveats.names(caveats.of_record(value) & (0 if protocol is None else protocol.refuses))
    except (KeyError, TypeError):
        yield Problem("caveats", f"must be an array of {', '.join(caveats.CAVEATS)}; hoicli match writes one")
        return
    for name in refused:
        yield Problem("protocol", caveats.CAVEATS[name].lacks)


def _balance_problems(record: Record, qualifier: str) -> Iterator[Problem]:
    """More true positives of a class than ground truth in the line (some of it was lost): recall would exceed 1."""
    if type(record["predictions"]) is not list or type(record["gt"]) is not list:
        return
    try:
        left = Counter((item["verb"], item.get(qualifier) or "") for item in record["gt"])
        for index, item in enumerate(record["predictions"]):
            if item["outcome"] == "true_positive":
                name = item["verb"], item.get(qualifier) or ""
                left[name] -= 1
                if left[name] < 0:
                    text = "a true positive, but the line has no ground truth left for it; match the predictions again"
                    yield Problem(f"predictions[{index}].outcome", text)
                    return
    except (KeyError, TypeError, AttributeError):  # `_item_problems` reports a bad item
        return


def _item_problems(field_name: str, item: Any, vocabulary: Vocabulary, *, predicted: bool) -> Iterator[Problem]:
    if type(item) is not dict:
        yield Problem(field_name, "must be an object; hoicli match writes one")
        return
    verb, label = item.get("verb"), item.get("label")
    if type(verb) is not str:
        yield Problem(f"{field_name}.verb", "missing or no string; match the predictions again")
    elif verb not in vocabulary.verb_ids:
        yield unknown_label(f"{field_name}.verb", "verb", verb, vocabulary)
    if vocabulary.roles:
        role = item.get("role") or ""
        if type(verb) is str and (type(role) is not str or (verb, role) not in vocabulary.interaction_ids):
            yield Problem(f"{field_name}.role", f"{role!r} is no role of {verb}; match the predictions again")
    elif type(label) is not str:
        yield Problem(f"{field_name}.label", "missing or no string; match the predictions again")
    elif label not in vocabulary.object_ids:
        yield unknown_label(f"{field_name}.label", "object", label, vocabulary)
    elif (not predicted or item.get("outcome") in COUNTED) and _is_no_class(verb, label, vocabulary):
        text = f"{verb} {label} is no {vocabulary.name} interaction, and cannot count; match the predictions again"
        yield Problem(f"{field_name}.label", text)
    if predicted and not is_number(item.get("score")):
        yield Problem(f"{field_name}.score", "missing or no finite number; match the predictions again")
    if predicted and (type(item.get("outcome")) is not str or item["outcome"] not in OUTCOME_CODES):
        yield Problem(f"{field_name}.outcome", f"is none of {', '.join(OUTCOMES)}; match the predictions again")


def _is_no_class(verb: Any, label: str, vocabulary: Vocabulary) -> bool:
    """Whether a known verb and an object form no interaction of the vocabulary."""
    return type(verb) is str and verb in vocabulary.verb_ids and (verb, label) not in vocabulary.interaction_ids


def checked_match(record: Record, line: Line, vocabulary: Vocabulary, stream: MatchStream) -> tuple[str, str]:
    """(key of its view, image id) of a match record; raises `DataError` that names the field if it is bad."""
    problem = next(match_problems(record, vocabulary, stream.protocols), None)
    if problem is not None:
        raise problem.error(line.place)
    settings, key = record.get("settings", {}), stream.key(record)
    before = stream.settings.setdefault(key, settings)
    if settings != before:
        text = f"{settings} here and {before} before; match the whole stream with one setting"
        raise DataError(text, place=line.place, field="settings")
    image_id, truth = str(record["image_id"]), stream.truth
    at = None if truth is None else truth.position.get(image_id)
    if truth is not None and at is not None and int(truth.hashes[at]) != int(record["gt_hash"], 16):
        text = f"was matched with other annotations of {image_id!r} than those in {truth.name}; match again"
        raise DataError(text, place=line.place, field="gt_hash")
    return key, image_id


def _gather(stream: MatchStream, name: str, images: list[tuple[str, Record]], vocabulary: Vocabulary) -> None:
    tally = stream.tallies.setdefault(name, Tally([stream.views[name]], len(vocabulary.interactions)))
    image_ids = [image_id for image_id, _ in images]
    stream.images.setdefault(name, set()).update(image_ids)
    predictions = [item for _, record in images for item in record["predictions"]]
    image = np.repeat(np.arange(len(images)), [len(record["predictions"]) for _, record in images])
    stream.add_heads(name, (record for _, record in images))
    tally.caveats |= stream.caveats[name]
    tally.truth_total = stream.truth_total(name)
    tally.uncounted = stream.classless[name] > 0
    tally.add(
        image_ids,
        image,
        _interactions(predictions, vocabulary),
        np.array([item["score"] for item in predictions], dtype=np.float64),
        {name: np.array([OUTCOME_CODES[item["outcome"]] for item in predictions], dtype=np.uint8)},
    )
    truth = _interactions([item for _, record in images for item in record["gt"]], vocabulary)
    truth_image = np.repeat(np.arange(len(images)), [len(record["gt"]) for _, record in images])
    tally.add_annotated(name, image_ids, truth_image[truth >= 0], truth[truth >= 0])


def _interactions(items: list[Record], vocabulary: Vocabulary) -> Ints:
    ids = vocabulary.interaction_ids
    if vocabulary.roles:
        return np.array([ids[item["verb"], item.get("role") or ""] for item in items], dtype=np.int64)
    return np.array([ids.get((item["verb"], item["label"]), -1) for item in items], dtype=np.int64)
