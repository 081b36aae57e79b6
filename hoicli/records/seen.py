"""The dataset that a ground truth shows: its labels and classes, as a file of a dataset holds them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from unicodedata import name as unicode_name

from hoicli.errors import DataError, UsageError, arg
from hoicli.io.messages import note
from hoicli.io.streams import Line
from hoicli.records.image import truth_problems
from hoicli.records.intake import ErrorPolicy, ImageRegister
from hoicli.records.parsing import Record, parse
from hoicli.vocabulary.content_checks import check, label_fault
from hoicli.vocabulary.dataset_content import CUTS
from hoicli.vocabulary.datasets import DATASETS
from hoicli.vocabulary.labels import normalise_spelling

NO_INTERACTION = "no_interaction"
"""The verb that means that nothing happens, in HICO-DET and in what follows it."""

Pair = tuple[str, str]


class Seen:
    """The labels and classes of a ground truth, counted. Counts do not depend on the order of records."""

    def __init__(self) -> None:
        self.images = 0
        self.subjects: Counter[str] = Counter()
        self.verbs: Counter[str] = Counter()
        self.objects: Counter[str] = Counter()
        self.boxes: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()

    def add_stream(self, lines: Iterable[Line], policy: ErrorPolicy) -> None:
        """Count every record of a stream. Raises `DataError`, unless the policy skips, for a bad record, for an image
        that occurs twice, and for a label that no dataset can have."""
        register = ImageRegister()
        for line in lines:
            with policy.item():
                record = parse(line)
                for problem in truth_problems(record, None):
                    raise problem.error(line.place)
                register.add(str(record["image_id"]), line)
                self._add(record, line.place)
        policy.report(some_left=bool(self.images))

    def _add(self, record: Record, place: str) -> None:
        """Count one record. Raises `DataError` at `place` for a label that no dataset can have."""
        labels = record["labels"]
        new_labels = [(f"labels[{index}]", label) for index, label in enumerate(labels) if label not in self.boxes]
        new_labels += [
            (f"hois[{index}].verb", hoi["verb"])
            for index, hoi in enumerate(record["hois"])
            if hoi["verb"] not in self.verbs
        ]
        for field, label in new_labels:
            if fault := label_fault(label):
                raise DataError(fault, place=place, field=field)
        self.images += 1
        self.boxes.update(labels)
        self.boxes.update(name for _, name in record.get("image_hois") or ())
        for hoi in record["hois"]:
            object_label = labels[hoi["object"]]
            self.subjects[labels[hoi["subject"]]] += 1
            self.objects[object_label] += 1
            self.verbs[hoi["verb"]] += 1
            self.pairs[hoi["verb"], object_label] += 1

    def respell(self, verbs: Mapping[str, str], names: Mapping[str, str]) -> Seen:
        """Return the same counts with other spellings of some labels. verbs, names: the new spelling of each verb and
        each other label to change."""
        respelled = Seen()
        respelled.images = self.images
        for key, spelling in (("subjects", names), ("verbs", verbs), ("objects", names), ("boxes", names)):
            for label, count in getattr(self, key).items():
                getattr(respelled, key)[spelling.get(label, label)] += count
        for (verb, name), count in self.pairs.items():
            respelled.pairs[verbs.get(verb, verb), names.get(name, name)] += count
        return respelled


def in_one_spelling(parts: Sequence[Seen]) -> list[Seen]:
    """Return the parts with each label in one spelling, the most frequent one; if several are equally frequent, the one
    with underscores. A note tells of each label that had several."""
    chosen: list[dict[str, str]] = []
    for what, counts in _labels_of(parts):
        new_spellings: dict[str, str] = {}
        for spellings in _groups(counts, normalise_spelling):
            best = max(spellings, key=lambda label: (counts[label], label == normalise_spelling(label)))
            new_spellings |= dict.fromkeys(spellings, best)
            spellings_text = " and ".join(f"{label!r} ({counts[label]:,})" for label in spellings)
            note(f"{what} {spellings_text} are one label in several spellings: {best!r} stands for all")
        chosen.append(new_spellings)
    return [part.respell(*chosen) for part in parts]


def _labels_of(parts: Sequence[Seen]) -> Iterator[tuple[str, Counter[str]]]:
    """Yield ("verbs", their counts in all parts), then ("labels", the counts of the others)."""
    yield "verbs", sum((part.verbs for part in parts), Counter[str]())
    yield "labels", sum((part.boxes for part in parts), Counter[str]())


def dataset_of(parts: Sequence[Seen], name: str) -> dict[str, Any]:
    """Return the content of a dataset's file with the classes of the first part, which has a triplet. A second part,
    the training set, may add labels, and its triplets become the training counts. Everything is sorted by name. Raises
    `UsageError` for the name of a dataset of hoicli's own, `DataError` for a name that no dataset can have."""
    truth, training = parts[0], parts[-1]
    subjects = set().union(*(part.subjects for part in parts))
    acted_on = set().union(*(part.objects for part in parts))
    objects = set().union(*(part.boxes for part in parts)) - (subjects - acted_on)
    verbs = set().union(*(part.verbs for part in parts))
    pairs = sorted(truth.pairs, key=lambda pair: (pair[1], pair[0]))
    content: dict[str, Any] = {
        "name": name,
        "subjects": sorted(subjects),
        "verbs": sorted(verbs),
        "objects": sorted(objects),
        "interactions": [list(pair) for pair in pairs],
    }
    if NO_INTERACTION in verbs:
        content["no_interaction"] = NO_INTERACTION
    if training is not truth:
        content |= {"training_counts": [training.pairs[pair] for pair in pairs], "cuts": dict(CUTS)}
    if name in DATASETS:
        choose = f"choose another name with {arg('output', like='NAME.json')}"
        raise UsageError(f"{arg('from_')}: {name} is a dataset of hoicli's own; {choose}")
    check(content, arg("from_"))
    return content


def format_content(content: dict[str, Any]) -> str:
    """Return the content as JSON for people to read and edit: one line for each field, and one for each interaction."""
    fields = []
    for key, value in content.items():
        text = json.dumps(value, ensure_ascii=False)
        if key == "interactions":
            text = "[\n  " + ",\n  ".join(json.dumps(pair, ensure_ascii=False) for pair in value) + "\n ]"
        fields.append(f" {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(fields) + "\n}\n"


def dataset_name(path: str) -> str:
    """Return a name for a dataset, from that of its file: own from data/own.json.gz; "" if nothing is left of it."""
    stem = re.split(r"[\\/]", path)[-1].split(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")[:64]


def tell_doubts(parts: Sequence[Seen]) -> None:
    """Say on stderr what looks like one label in two spellings, and which interactions are only in the ground truth or
    only in the training set, if there are two parts."""
    for what, counts in _labels_of(parts):
        for label in sorted(filter(_mixes_scripts, counts)):
            note(f"{what} {label!r} ({counts[label]:,}) mixes letters of several scripts that look alike: a slip?")
        for spellings in _groups(counts, _fold_label):
            spellings_text = " and ".join(f"{label!r} ({counts[label]:,})" for label in spellings)
            note(
                f"{what} {spellings_text} differ in case, spaces or underscores alone: one label twice? Make them one "
                "in the records, or one the alias of the other (`aliases`)"
            )
    truth, training = parts[0].pairs.keys(), parts[-1].pairs.keys()
    for pairs, fate in (
        (training - truth, "in the training set alone: no class of the dataset"),
        (truth - training, "not in the training set: rare"),
    ):
        if pairs:
            first, count = " ".join(min(pairs)), len(pairs)
            pairs_text = f"{count:,} interactions ({first}, ...) are" if count > 1 else f"one interaction ({first}) is"
            note(f"{pairs_text} {fate}")


def _groups(labels: Iterable[str], key: Callable[[str], str]) -> Iterator[list[str]]:
    """Yield the labels, sorted, of each group of at least two that have the same `key`."""
    spellings_by_key: dict[str, list[str]] = {}
    for label in sorted(labels):
        spellings_by_key.setdefault(key(label), []).append(label)
    yield from (group for group in spellings_by_key.values() if len(group) > 1)


def _fold_label(label: str) -> str:
    """Return a form of the label in which case, spaces, underscores and hyphens make no difference."""
    return re.sub(r"[\s_-]+", "_", normalise_spelling(label).casefold())


def _mixes_scripts(label: str) -> bool:
    """Return whether a word of the label mixes scripts whose letters look alike, such as Latin and Cyrillic a."""
    return any(
        len({unicode_name(letter, "").split(" ")[0] for letter in word if letter.isalpha()} & LOOK_ALIKE) > 1
        for word in re.split(r"[\s_-]+", "" if label.isascii() else label)
    )


LOOK_ALIKE = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"}
