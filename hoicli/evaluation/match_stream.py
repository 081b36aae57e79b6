"""Match records read, checked and gathered for evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from hoicli.converters.named import digest_of, truth_settings
from hoicli.errors import DataError, arg
from hoicli.evaluation.coverage import check_counted
from hoicli.evaluation.filters import UNCOUNTED
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.pairing import OUTCOME_CODES
from hoicli.evaluation.protocols import PROTOCOLS, Protocol, view_key
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import check_part, read_view, view_order
from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.columns import BATCH
from hoicli.records.fingerprint import total_of
from hoicli.records.image import image_id_problems, unknown_label
from hoicli.records.intake import DUPLICATE_IMAGE, UNKNOWN_IMAGE, ErrorPolicy, ImageRegister
from hoicli.records.kit import Ints
from hoicli.records.parsing import Problem, Record, is_number, parse, short
from hoicli.records.result_rows import BAR, SIGNATURE_KEYS
from hoicli.vocabulary.datasets import DATASETS
from hoicli.vocabulary.labels import Vocabulary

UNKNOWN_PROTOCOL = "unknown-protocol"
COUNTED = ("true_positive", "false_positive")
"""The outcomes of predictions that count; such a prediction has a class."""
AGAIN = "missing, or not as hoicli match writes it; match again"


class Origin(NamedTuple):
    """The ground truth that match records were made with: its digest, how many images it has, and whether images
    without predictions were left out."""

    digest: str
    images: int
    partial: bool


@dataclass
class MatchedView:
    """The match records of one view of a protocol, gathered. row: the view. settings: the settings of its lines. tally:
    their outcomes. register: the images seen. caveats: the mask of their caveats. classless: how many more triplets of
    the ground truth have no class than have one. order: the sum of its images' `gt_order` (0 in a stream of hoicli
    1.0). skipped: the lines that `match` dropped. origins: for each origin, the number of its images and the sum of
    their hashes."""

    row: Protocol
    settings: dict[str, str]
    tally: Tally
    register: ImageRegister
    caveats: int = 0
    classless: int = 0
    order: int = 0
    skipped: int = 0
    origins: dict[Origin, tuple[int, int]] = field(default_factory=dict)

    def add_heads(self, records: Iterable[Record]) -> None:
        """Add what checked records tell about their ground truth: everything but the predictions and triplets."""
        for record in records:
            self.caveats |= caveats.read_caveats(record.get("caveats"))
            self.skipped += record.get("skipped", 0)
            without_class, triplets = record.get("gt_classless", (0, 0))
            self.classless += 2 * without_class - triplets
            self.order += int(record.get("gt_order", "0"), 16)
            origin = Origin(record["gt_digest"], record["gt_images"], record.get("partial", False))
            count, total = self.origins.get(origin, (0, 0))
            self.origins[origin] = count + 1, total + int(record["gt_hash"], 16)

    @property
    def truth_total(self) -> int:
        """The sum of the hashes of the images' annotations, as `GroundTruth.total`."""
        return sum(total for _, total in self.origins.values())

    def truth_settings(self) -> dict[str, str]:
        """Return the settings that the ground truth adds to signatures, as `GroundTruth.settings` does."""
        uncounted = UNCOUNTED if self.classless > 0 else {}
        return {
            **truth_settings(self.truth_total, self.order),
            **uncounted,
            **caveats.settings(self.caveats & self.row.depends_on),
        }

    def signed_settings(self) -> dict[str, str]:
        """Return the settings of the lines for signatures. The leave to count a smaller part alone (UNCOUNTED), which
        lines pass on, is among them only if the predictions needed it."""
        own_settings = {key: value for key, value in self.settings.items() if key not in UNCOUNTED}
        return own_settings | self.tally.leave

    def check_counted(self, vocabulary: Vocabulary, place: str, *, allowed: bool) -> None:
        """Check the tally as `coverage.check_counted` does; leave that was given to `match` need not be given again."""
        allowed = allowed or UNCOUNTED.keys() <= self.settings.keys()
        check_counted(self.tally, vocabulary, place, allowed=allowed)

    def check_whole(self, truth: GroundTruth | None, unread: int, place: str) -> None:
        """Check that no image of the ground truth is missing. Raises `DataError` at `place` otherwise. The lines must
        have all images of the ground truth they were matched with. If they are partial (matched without the images that
        have no predictions), `truth` must be given. If they are not, and `truth` is given, they must have all of its
        images. unread: as many images may be missing as lines were skipped."""
        name = self.row.key
        images_seen = sum(count for count, _ in self.origins.values())
        partial = any(origin.partial for origin in self.origins)
        lacking = sum(origin.images - count for origin, (count, _) in self.origins.items() if not origin.partial)
        allowed_missing = unread if lacking <= unread else 0
        for origin, (count, total) in self.origins.items():
            if not origin.partial:
                _check_count(f"{name}: of ground truth {origin.digest}", count, origin.images, allowed_missing, place)
                if count == origin.images and digest_of(total) != origin.digest:
                    problem = f"{name}: the annotations of its images are not ground truth {origin.digest}"
                    problem = f"{problem}, with which it says it was matched; match again"
                    raise DataError(problem, place=place, code="not-whole")
        if truth is None and partial:
            problem = f"{name}: was matched with {arg('only_predicted')}, so ground truth is missing"
            raise DataError(f"{problem}; give the ground truth with {arg('gt')}", place=place, code="not-whole")
        if truth is not None and not partial:
            _check_count(f"{name}: of {truth.name}", images_seen, len(truth.position), unread, place)

    def add_missed(self, truth: GroundTruth, row: Protocol) -> None:
        """Count as missed the ground truth of images that the lines lack, as those of a shard do. row: the view, with
        its part of the data. Raises `UsageError` if only the name of that part is known."""
        tally = self.tally
        image_ids, image, missed = truth.unseen(check_part(row), tally.listed.image_ids)
        tally.caveats |= truth.caveats
        # The order is that of the whole ground truth only if the lines read their images in its order.
        known_orders = truth.orders(row)[truth.rows_of(tally.listed.image_ids)]
        tally.orders[row.key] = truth.order(row) if total_of(known_orders) == self.order % (1 << 64) else self.order
        tally.truth_total = truth.total
        tally.uncounted = truth.uncounted
        tally.add_annotated(row.key, image_ids, image, truth.scenes.interaction[missed])


def _check_count(what: str, count: int, images: int, allowed_missing: int, place: str) -> None:
    """Raise `DataError` unless all `images` are there, or all but `allowed_missing`. what: how the message begins."""
    if not images - allowed_missing <= count <= images:
        problem = f"{what}: {count:,} of {images:,} images are there, {images - count:,} missing"
        raise DataError(f"{problem}; the stream is not whole, match again", place=place, code="not-whole")


@dataclass
class MatchStream:
    """A whole match stream, gathered view by view. views: by `Protocol.key`. protocols: the rows that lines may name,
    besides the published ones. truth: the ground truth that the user gives with the stream, with which all lines must
    have been matched. unread: how many skipped lines may have held an image that is now missing."""

    vocabulary: Vocabulary
    protocols: Mapping[str, Protocol]
    truth: GroundTruth | None = None
    views: dict[str, MatchedView] = field(default_factory=dict)
    unread: int = 0

    def batches(
        self, lines: Iterable[Line], policy: ErrorPolicy, check: Callable[[Record, Line], None] | None = None
    ) -> Iterator[tuple[MatchedView, list[Record]]]:
        """Yield the checked records of the lines, some records of one view at a time with that view, to which what they
        tell about their ground truth is added. check: a further check of a record, which raises `DataError`.

        Raises `DataError` (or counts it in `policy`) for a bad line, an image that occurs twice for one view, lines
        matched with different settings, and an image that `truth` does not have, or with other annotations.
        """
        lines = iter(lines)
        while chunk := list(islice(lines, BATCH)):
            grouped: dict[str, list[Record]] = {}
            for line in chunk:
                try:
                    record = parse(line)
                    view = self._view(record, line)
                    if check is not None:
                        check(record, line)
                except DataError as error:
                    policy.handle(error)  # a line of an image that is there already, or of none, loses nothing
                    self.unread += error.code not in (DUPLICATE_IMAGE, UNKNOWN_IMAGE)
                    continue
                grouped.setdefault(view.row.key, []).append(record)
            for key, records in grouped.items():
                self.views[key].add_heads(records)
                yield self.views[key], records
        policy.earlier += max((view.skipped for view in self.views.values()), default=0)

    def _view(self, record: Record, line: Line) -> MatchedView:
        """Return the view that a record belongs to, and register the record's image there. Raises `DataError` that
        names the field if the record is bad, or does not go together with the lines before it or with `truth`."""
        problem = next(match_problems(record, self.vocabulary, self.protocols), None)
        if problem is not None:
            raise problem.error(line.place)
        name, tags, settings = record["protocol"], record.get("view", {}), record.get("settings", {})
        view = self.views.get(view_key(name, tags))
        if view is None:
            row = read_view(self.protocols.get(name) or PROTOCOLS[name], tags)
            positions = None if self.truth is None else self.truth.position
            register = ImageRegister(positions, unit="an image and protocol")
            view = MatchedView(row, settings, Tally([row], len(self.vocabulary.interactions)), register)
        if settings != view.settings:
            text = f"{settings} here and {view.settings} before; match the whole stream with one setting"
            raise DataError(text, place=line.place, field="settings", code="mixed")
        image_id, truth = str(record["image_id"]), self.truth
        image = None if truth is None else truth.position.get(image_id)
        if truth is not None and image is not None and int(truth.scenes.hashes[image]) != int(record["gt_hash"], 16):
            text = f"was matched with other annotations of {image_id!r} than those in {truth.name}; match again"
            raise DataError(text, place=line.place, field="gt_hash", code="mixed")
        if (
            truth is not None
            and image is not None
            and "gt_order" in record
            and int(truth.orders(view.row)[image]) != int(record["gt_order"], 16)
        ):
            text = f"was matched with annotations of {image_id!r} in another order than those in {truth.name}"
            raise DataError(f"{text}; match again", place=line.place, field="gt_order", code="mixed")
        view.register.add(image_id, line)
        self.views[view.row.key] = view
        return view

    def view_keys(self, names: Container[str]) -> list[str]:
        """Return the keys of the views of some protocols, in an order that the order of the lines does not change."""
        rows = [view.row for view in self.views.values() if view.row.name in names]
        rank = {name: number for number, name in enumerate(self.protocols)}
        return [row.key for row in sorted(rows, key=lambda row: (rank[row.name], view_order(dict(row.view))))]


def read_matches(lines: Iterable[Line], stream: MatchStream, policy: ErrorPolicy) -> None:
    """Gather the lines of a match stream into the tallies of its views. Raises as `MatchStream.batches` does."""
    for view, records in stream.batches(lines, policy):
        _gather(view, records, stream.vocabulary)
    for view in stream.views.values():
        view.tally.caveats |= view.caveats
        view.tally.truth_total = view.truth_total
        view.tally.orders = {view.row.key: view.order}
        view.tally.uncounted = view.classless > 0


def _gather(view: MatchedView, records: Sequence[Record], vocabulary: Vocabulary) -> None:
    """Add the predictions and the ground truth of checked match records to the tally of their view, which counts what
    one protocol and one part of the data need."""
    image_ids = [str(record["image_id"]) for record in records]
    predictions, truth = (
        list(chain.from_iterable(record[side] for record in records)) for side in ("predictions", "gt")
    )
    image, truth_image = (
        np.repeat(np.arange(len(records)), [len(record[side]) for record in records]) for side in ("predictions", "gt")
    )
    # files of V-COCO detections may not label their objects; elsewhere every object has a label
    with_object = [item for item in predictions if vocabulary.roles and item.get("object") is not None]
    view.tally.objects += len(with_object)
    view.tally.unlabelled += sum(item.get("label") is None for item in with_object)
    codes = np.array([OUTCOME_CODES[item["outcome"]] for item in predictions], dtype=np.uint8)
    score = np.array([item["score"] for item in predictions], dtype=np.float64)
    key = view.row.key
    view.tally.add(image_ids, image, interactions(predictions, vocabulary), score, {key: codes})
    annotated = interactions(truth, vocabulary)  # -1 for what is no interaction of the vocabulary
    view.tally.add_annotated(key, image_ids, truth_image[annotated >= 0], annotated[annotated >= 0])


def interactions(items: list[Record], vocabulary: Vocabulary) -> Ints:
    """Return [M] the class of each prediction or ground-truth triplet of checked match records, -1 for none."""
    ids = vocabulary.interaction_ids
    if vocabulary.roles:
        return np.array([ids[item["verb"], item.get("role") or ""] for item in items], dtype=np.int64)
    return np.array([ids.get((item["verb"], item["label"]), -1) for item in items], dtype=np.int64)


def _strings(value: Any) -> bool:
    return type(value) is dict and all(type(item) is str for item in value.values())


_HEAD: Mapping[str, tuple[Any, Callable[[Any], bool]]] = {
    "gt_hash": (None, lambda text: type(text) is str and re.fullmatch("[0-9a-f]{1,16}", text) is not None),
    "gt_order": ("0", lambda text: type(text) is str and re.fullmatch("[0-9a-f]{1,16}", text) is not None),
    "gt_digest": (None, lambda text: type(text) is str and re.fullmatch("[0-9a-f]{8}", text) is not None),
    "gt_images": (None, lambda number: type(number) is int and number >= 1),
    "skipped": (0, lambda number: type(number) is int and 0 <= number < 1 << 40),
    "partial": (False, lambda value: type(value) is bool),
    "gt_classless": (
        [0, 0],
        lambda two: type(two) is list and len(two) == 2 and all(type(n) is int and 0 <= n < 1 << 40 for n in two),
    ),
    "settings": (
        {},
        lambda settings_value: (
            _strings(settings_value)
            and settings_value.keys() <= set(SIGNATURE_KEYS)
            and not any(BAR in value for value in settings_value.values())
        ),
    ),
    "view": ({}, lambda view: _strings(view) and view.keys() <= {"iou", "slice", "part"}),
}
"""The first keys of a match record: the value of each where a record does not have it (None is refused), and the check
that tells whether a value is allowed."""


def match_problems(
    record: Record, vocabulary: Vocabulary, protocols: Mapping[str, Protocol] | None = None
) -> Iterator[Problem]:
    """Yield every problem of a match record that keeps it from being evaluated; what `match` writes has none."""
    if not {"protocol", "predictions", "gt"} <= record.keys():
        hint = f"give the ground truth with {arg('gt')}" if "hois" in record else "hoicli match writes them"
        yield Problem("", f"not a match record; {hint}")
        return
    name = record["protocol"] if type(record["protocol"]) is str else ""
    protocol = (protocols or {}).get(name) or PROTOCOLS.get(name)
    published = PROTOCOLS.get(name, protocol)  # a record without a dataset is of the one its protocol was published for
    dataset = record.get("dataset", vocabulary.name if published is None else published.dataset)
    if dataset != (vocabulary.signed if "dataset" in record else vocabulary.name):
        yield _other_dataset(record, str(dataset), vocabulary)
        return
    if protocol is None:
        text = f"unknown protocol {record['protocol']!r}; choose from {', '.join(PROTOCOLS)}, or give its file"
        yield Problem("protocol", text, UNKNOWN_PROTOCOL)
    yield from image_id_problems(record)
    yield from _caveat_problems(record.get("caveats"), protocol)
    for key, (absent, sound) in _HEAD.items():
        if not sound(record.get(key, absent)):
            yield Problem(key, AGAIN)
    for key in ("predictions", "gt"):
        if type(record[key]) is not list:
            yield Problem(key, AGAIN)
            continue
        for index, item in enumerate(record[key]):
            yield from _item_problems(f"{key}[{index}]", item, vocabulary, predicted=key == "predictions")
    yield from _balance_problems(record, "role" if vocabulary.roles else "label")


def _other_dataset(record: Record, dataset: str, vocabulary: Vocabulary) -> Problem:
    """Return the problem of a match record that is of another dataset, or of a dataset whose file has changed since."""
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
    """Yield the problems of a record's caveats: names that do not exist, and caveats that rule the protocol out."""
    try:
        refused = caveats.names(caveats.read_caveats(value) & (0 if protocol is None else protocol.refuses))
    except (KeyError, TypeError):
        yield Problem("caveats", f"must be an array of {', '.join(caveats.CAVEATS)}; hoicli match writes one")
        return
    for name in refused:
        yield Problem("protocol", caveats.CAVEATS[name].lacks)


def _balance_problems(record: Record, qualifier: str) -> Iterator[Problem]:
    """Yield a problem if a record has more true positives of a class than ground truth, so that recall would exceed 1:
    some of its ground truth was lost. qualifier: the key that makes a class together with the verb."""
    if type(record["predictions"]) is not list or type(record["gt"]) is not list:
        return
    try:
        unmatched = Counter((item["verb"], item.get(qualifier) or "") for item in record["gt"])
        for index, item in enumerate(record["predictions"]):
            name = item["verb"], item.get(qualifier) or ""
            unmatched[name] -= item["outcome"] == "true_positive"  # True is 1
            if unmatched[name] < 0:
                text = "a true positive, but the line has no ground truth left for it; match the predictions again"
                yield Problem(f"predictions[{index}].outcome", text)
                return
    except (KeyError, TypeError, AttributeError):  # `_item_problems` reports a bad item
        return


def _item_problems(field_name: str, item: Any, vocabulary: Vocabulary, *, predicted: bool) -> Iterator[Problem]:
    """Yield the problems of one prediction, or of one ground-truth triplet. field_name: where it is, for messages."""
    if type(item) is not dict:
        yield Problem(field_name, AGAIN)
        return
    verb, label, role = item.get("verb"), item.get("label"), item.get("role") or ""
    known_verb = type(verb) is str and verb in vocabulary.verb_ids
    if not known_verb:
        of_verb = f"{field_name}.verb"
        yield unknown_label(of_verb, "verb", verb, vocabulary) if type(verb) is str else Problem(of_verb, AGAIN)
    if vocabulary.roles:
        if known_verb and (type(role) is not str or (verb, role) not in vocabulary.interaction_ids):
            yield Problem(f"{field_name}.role", f"{role!r} is no role of {verb}; match the predictions again")
    elif type(label) is not str:
        yield Problem(f"{field_name}.label", AGAIN)
    elif label not in vocabulary.object_ids:
        yield unknown_label(f"{field_name}.label", "object", label, vocabulary)
    elif known_verb and (verb, label) not in vocabulary.interaction_ids and item.get("outcome", COUNTED[0]) in COUNTED:
        text = f"{verb} {label} is no {vocabulary.name} interaction, and cannot count; match the predictions again"
        yield Problem(f"{field_name}.label", text)
    if predicted and not is_number(item.get("score")):
        yield Problem(f"{field_name}.score", AGAIN)
    if predicted and (type(item.get("outcome")) is not str or item["outcome"] not in OUTCOME_CODES):
        yield Problem(f"{field_name}.outcome", AGAIN)
