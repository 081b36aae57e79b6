"""Which problems keep a match record from being evaluated, found field by field. What `match` writes has none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hoicli.errors import arg
from hoicli.evaluation.pairing import OUTCOME_CODES
from hoicli.evaluation.protocols import PROTOCOLS, Protocol
from hoicli.records import caveats
from hoicli.records.image import image_id_problems, unknown_label
from hoicli.records.parsing import Problem, Record, is_number, short
from hoicli.records.result_rows import BAR, SIGNATURE_KEYS
from hoicli.vocabulary.datasets import DATASETS
from hoicli.vocabulary.labels import Vocabulary

UNKNOWN_PROTOCOL = "unknown-protocol"
COUNTED = ("true_positive", "false_positive")
"""The outcomes of predictions that count; such a prediction has a class."""
AGAIN = "missing, or not as hoicli match writes it; match again"


def _has_text_values(value: Any) -> bool:
    """Return whether a value is an object whose values are all strings."""
    return type(value) is dict and all(type(item) is str for item in value.values())


_FIRST_KEYS: Mapping[str, tuple[Any, Callable[[Any], bool]]] = {
    "gt_hash": (None, lambda text: type(text) is str and re.fullmatch("[0-9a-f]{1,16}", text) is not None),
    "gt_order": ("0", lambda text: type(text) is str and re.fullmatch("[0-9a-f]{1,16}", text) is not None),
    "gt_digest": (None, lambda text: type(text) is str and re.fullmatch("[0-9a-f]{8}", text) is not None),
    "gt_images": (None, lambda number: type(number) is int and number >= 1),
    "skipped": (0, lambda number: type(number) is int and 0 <= number < 1 << 40),
    "partial": (False, lambda value: type(value) is bool),
    "gt_classless": (
        [0, 0],
        lambda pair: type(pair) is list and len(pair) == 2 and all(type(n) is int and 0 <= n < 1 << 40 for n in pair),
    ),
    "settings": (
        {},
        lambda settings_value: (
            _has_text_values(settings_value)
            and settings_value.keys() <= set(SIGNATURE_KEYS)
            and not any(BAR in value for value in settings_value.values())
        ),
    ),
    "view": ({}, lambda view: _has_text_values(view) and view.keys() <= {"iou", "slice", "part"}),
}
"""Keys of a match record before its predictions, each with (the value that stands for a missing one; a function that
tells whether a value is allowed). None, which no function allows, makes a key required."""


def match_problems(
    record: Record, vocabulary: Vocabulary, protocols: Mapping[str, Protocol] | None = None
) -> Iterator[Problem]:
    """Yield every problem of a match record that keeps it from being evaluated. vocabulary: of the dataset that is
    evaluated. protocols: those that the record may name besides the published ones, by name."""
    if not {"protocol", "predictions", "gt"} <= record.keys():
        hint = f"give the ground truth with {arg('gt')}" if "hois" in record else "hoicli match writes them"
        yield Problem("", f"not a match record; {hint}")
        return
    name = record["protocol"] if type(record["protocol"]) is str else ""
    protocol = (protocols or {}).get(name) or PROTOCOLS.get(name)
    published = PROTOCOLS.get(name, protocol)
    # a record without a dataset is of the one its protocol was published for
    published_for = vocabulary.name if published is None else published.dataset
    dataset = record.get("dataset", published_for)
    expected = vocabulary.signed if "dataset" in record else vocabulary.name
    if dataset != expected:
        yield _other_dataset(record, str(dataset), vocabulary)
        return
    if protocol is None:
        text = f"unknown protocol {record['protocol']!r}; choose from {', '.join(PROTOCOLS)}, or give its file"
        yield Problem("protocol", text, UNKNOWN_PROTOCOL)
    yield from image_id_problems(record)
    yield from _caveat_problems(record.get("caveats"), protocol)
    # AGAIN: the message that the field is not as `match` writes it
    for key, (default, is_allowed) in _FIRST_KEYS.items():
        if not is_allowed(record.get(key, default)):
            yield Problem(key, AGAIN)
    for key in ("predictions", "gt"):
        if type(record[key]) is not list:
            yield Problem(key, AGAIN)
            continue
        for index, item in enumerate(record[key]):
            yield from _item_problems(f"{key}[{index}]", item, vocabulary, predicted=key == "predictions")
    yield from _balance_problems(record, "role" if vocabulary.roles else "label")


def _other_dataset(record: Record, dataset: str, vocabulary: Vocabulary) -> Problem:
    """Return the problem of a match record that was made for another dataset, or for a dataset file that has changed
    since. dataset: what the record is of; vocabulary: of the dataset that is evaluated."""
    if "dataset" not in record:
        text = f"{record['protocol']} is of {dataset}, not {vocabulary.name}; match one dataset a stream"
        return Problem("protocol", text)
    if vocabulary.own and dataset.startswith(f"{vocabulary.name}-"):
        fix = f"{vocabulary.path} has changed since; match the predictions again"
    elif dataset in DATASETS:
        fix = arg("dataset", dataset)
    else:
        fix = f"give its file with {arg('dataset', like='FILE.json')}"
    return Problem("dataset", f"matches of {short(dataset)}, not of {vocabulary.signed}; {fix}")


def _caveat_problems(value: Any, protocol: Protocol | None) -> Iterator[Problem]:
    """Yield the problems of a record's field `caveats` (facts about where its data came from): no array of known names,
    or a caveat that rules the protocol out. protocol: None if the record names none."""
    try:
        mask = caveats.read_caveats(value)
    except (KeyError, TypeError):
        yield Problem("caveats", f"must be an array of {', '.join(caveats.CAVEATS)}; hoicli match writes one")
        return
    if protocol is not None:
        for name in caveats.names(mask & protocol.refuses):
            yield Problem("protocol", caveats.CAVEATS[name].lacks)


def _balance_problems(record: Record, qualifier: str) -> Iterator[Problem]:
    """Yield a problem if a record has more true positives of a class than ground truth: some of its ground truth was
    lost, and recall would exceed 1. qualifier: the key that together with the verb names a class, label or role."""
    if type(record["predictions"]) is not list or type(record["gt"]) is not list:
        return
    try:
        unmatched = Counter((item["verb"], item.get(qualifier) or "") for item in record["gt"])
        for index, item in enumerate(record["predictions"]):
            class_name = item["verb"], item.get(qualifier) or ""
            unmatched[class_name] -= item["outcome"] == "true_positive"  # True is 1
            if unmatched[class_name] < 0:
                text = "a true positive, but the line has no ground truth left for it; match the predictions again"
                yield Problem(f"predictions[{index}].outcome", text)
                return
    except (KeyError, TypeError, AttributeError):  # `_item_problems` reports a bad item
        return


def _item_problems(field_name: str, item: Any, vocabulary: Vocabulary, *, predicted: bool) -> Iterator[Problem]:
    """Yield the problems of one prediction (if `predicted`) or ground-truth triplet of a match record: names that the
    vocabulary does not have, and a bad score or outcome."""
    if type(item) is not dict:
        yield Problem(field_name, AGAIN)
        return
    verb = item.get("verb")
    label = item.get("label")
    role = item.get("role") or ""
    counts = item.get("outcome", COUNTED[0]) in COUNTED  # all ground truth counts; it has no outcome
    is_known_verb = type(verb) is str and verb in vocabulary.verb_ids
    if type(verb) is not str:
        yield Problem(f"{field_name}.verb", AGAIN)
    elif not is_known_verb:
        yield unknown_label(f"{field_name}.verb", "verb", verb, vocabulary)
    if vocabulary.roles:
        if is_known_verb and (type(role) is not str or (verb, role) not in vocabulary.interaction_ids):
            yield Problem(f"{field_name}.role", f"{role!r} is no role of {verb}; match the predictions again")
    elif type(label) is not str:
        yield Problem(f"{field_name}.label", AGAIN)
    elif label not in vocabulary.object_ids:
        yield unknown_label(f"{field_name}.label", "object", label, vocabulary)
    elif is_known_verb and (verb, label) not in vocabulary.interaction_ids and counts:
        text = f"{verb} {label} is no {vocabulary.name} interaction, and cannot count; match the predictions again"
        yield Problem(f"{field_name}.label", text)
    if predicted and not is_number(item.get("score")):
        yield Problem(f"{field_name}.score", AGAIN)
    if predicted and (type(item.get("outcome")) is not str or item["outcome"] not in OUTCOME_CODES):
        yield Problem(f"{field_name}.outcome", AGAIN)
