"""Match records read, checked and gathered for evaluation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from hoicli.annotations.named import signed
from hoicli.arrays.columns import BATCH
from hoicli.arrays.kit import Ints
from hoicli.errors import DataError
from hoicli.evaluation.ground_truth import GroundTruth
from hoicli.evaluation.protocols import PROTOCOLS, Protocol, view_key
from hoicli.evaluation.selection import rows_of
from hoicli.evaluation.tally import Tally
from hoicli.evaluation.views import read_view, view_order, with_part
from hoicli.io.streams import Line
from hoicli.records import caveats
from hoicli.records.image import image_id_problems, unknown_label
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.outcomes import OUTCOME_CODES, OUTCOMES
from hoicli.records.parsing import Problem, Record, is_number, parse, short
from hoicli.vocabulary.datasets import DATASETS
from hoicli.vocabulary.labels import Vocabulary

GT_HASH = re.compile("[0-9a-f]{1,16}")
UNKNOWN_PROTOCOL = "unknown-protocol"
VIEW_KEYS = ("iou", "slice", "part")
"""The keys of a record's `view`: of one threshold, of one part of the data."""
COUNTED = ("true_positive", "false_positive")
"""The outcomes of predictions that count; such a prediction has a class."""


@dataclass
class MatchStream:
    """A whole match stream: by `Protocol.key` of each view a tally, its images, the settings of its lines, and the mask
    of their caveats. protocols: the rows that lines may name."""

    protocols: Mapping[str, Protocol]
    views: dict[str, Protocol] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    images: dict[str, set[str]] = field(default_factory=dict)
    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    caveats: dict[str, int] = field(default_factory=dict)
    truth_totals: dict[str, int | None] = field(default_factory=dict)

    def add_heads(self, name: str, records: Iterable[Record]) -> None:
        """Add the caveats of a view's checked records, and the hashes of their ground truth, whose sum is not known if
        one of them is missing."""
        for record in records:
            self.caveats[name] = self.caveats.get(name, 0) | caveats.of_record(record.get("caveats"))
            total, own = self.truth_totals.get(name, 0), record.get("gt_hash")
            self.truth_totals[name] = None if total is None or own is None else total + int(own, 16)

    def truth_settings(self, name: str) -> dict[str, str]:
        """What the ground truth adds to the signatures of a view's rows, as `GroundTruth.settings`."""
        concerned = self.caveats[name] & self.views[name].depends_on if name in self.caveats else 0
        return {**signed(self.truth_totals.get(name)), **caveats.settings(concerned)}

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
            tally.truth_total = self.truth_totals[name] = truth.total
            tally.add_annotated(name, scenes.image_ids, scenes.image_of_hoi[missed], scenes.interaction[missed])


def read_matches(
    lines: Iterable[Line], vocabulary: Vocabulary, policy: ErrorPolicy, protocols: Mapping[str, Protocol] | None = None
) -> MatchStream:
    """Gather a match stream for evaluation by `protocols` (rows by name; None: those of the dataset).

    Raises `DataError` (or counts it in `policy`) for a bad line, an image that occurs twice for one protocol, and lines
    matched with different settings.
    """
    stream = MatchStream(rows_of(vocabulary) if protocols is None else protocols)
    registers: dict[str, ImageRegister] = {}
    lines = iter(lines)
    while chunk := list(islice(lines, BATCH)):
        grouped: dict[str, list[tuple[str, Record]]] = {}
        for line in chunk:
            try:
                record = parse(line)
                name, image_id = checked_match(record, line, vocabulary, stream)
                registers.setdefault(name, ImageRegister(unit="an image and protocol", dumps=True)).add(image_id, line)
            except DataError as error:
                policy.handle(error)
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
        hint = "give the ground truth with --gt" if "hois" in record else "hoicli match writes them"
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
    gt_hash = record.get("gt_hash", "0")
    if type(gt_hash) is not str or GT_HASH.fullmatch(gt_hash) is None:
        yield Problem("gt_hash", "must be up to 16 hexadecimal digits; hoicli match writes them")
    settings = record.get("settings", {})
    if type(settings) is not dict or not all(type(value) is str for value in settings.values()):
        yield Problem("settings", "must be an object of strings; hoicli match writes one")
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
        fix = f"--dataset {dataset}" if dataset in DATASETS else "give its file with --dataset FILE.json"
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
    return key, str(record["image_id"])


def _gather(stream: MatchStream, name: str, images: list[tuple[str, Record]], vocabulary: Vocabulary) -> None:
    tally = stream.tallies.setdefault(name, Tally([stream.views[name]], len(vocabulary.interactions)))
    image_ids = [image_id for image_id, _ in images]
    stream.images.setdefault(name, set()).update(image_ids)
    predictions = [item for _, record in images for item in record["predictions"]]
    image = np.repeat(np.arange(len(images)), [len(record["predictions"]) for _, record in images])
    stream.add_heads(name, (record for _, record in images))
    tally.caveats |= stream.caveats[name]
    tally.truth_total = stream.truth_totals[name]
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
