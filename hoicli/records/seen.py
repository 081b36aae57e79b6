"""Makes the file that describes a dataset (`hoicli vocab --from`): the labels and classes that occur in its ground
truth."""

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


class LabelCounts:
    """Counts of a ground truth: images, triplets by subject label, verb, object label and (verb, object label), and
    boxes or image-level labels by label."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self.images = 0
        self.subjects: Counter[str] = Counter()
        self.verbs: Counter[str] = Counter()
        self.objects: Counter[str] = Counter()
        self.boxes: Counter[str] = Counter()
        self.pairs: Counter[Pair] = Counter()

    def add_stream(self, lines: Iterable[Line], policy: ErrorPolicy) -> None:
        """Count every record of a stream. Raises `DataError` for a bad one, unless the policy skips."""
        register = ImageRegister()
        for line in lines:
            with policy.item():
                record = parse(line)
                for problem in truth_problems(record, None):  # the first of these is raised
                    raise problem.error(line.place)
                register.add(str(record["image_id"]), line)
                self._add(record, line.place)
        policy.report(some_left=bool(self.images))

    def _add(self, record: Record, place: str) -> None:
        """Count one checked record. Raises `DataError` for a label that no dataset can have."""
        labels = record["labels"]
        fields = [(f"labels[{index}]", label) for index, label in enumerate(labels) if label not in self.boxes]
        for index, hoi in enumerate(record["hois"]):
            if hoi["verb"] not in self.verbs:
                fields.append((f"hois[{index}].verb", hoi["verb"]))
        for field, label in fields:  # those that no earlier record had
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

    def respell(self, verbs: Mapping[str, str], labels: Mapping[str, str]) -> LabelCounts:
        """Return the same counts with labels in new spellings; counts of labels that become one are added up. verbs,
        labels: the new spelling of a verb, and of a label of boxes, by the old one."""
        respelled = LabelCounts()
        respelled.images = self.images
        for key, spellings in (("subjects", labels), ("verbs", verbs), ("objects", labels), ("boxes", labels)):
            for label, count in getattr(self, key).items():
                getattr(respelled, key)[spellings.get(label, label)] += count
        for (verb, label), count in self.pairs.items():
            respelled.pairs[verbs.get(verb, verb), labels.get(label, label)] += count
        return respelled


def unify_spellings(parts: Sequence[LabelCounts]) -> list[LabelCounts]:
    """Return the counts with each label in its most frequent spelling; a note says which had several."""
    new_spellings: dict[str, dict[str, str]] = {}
    for kind, counts in _add_up(parts).items():
        new_spellings[kind] = {}
        for spellings in _group_spellings(counts, normalise_spelling):
            best = max(spellings, key=lambda label: (counts[label], label == normalise_spelling(label)))
            new_spellings[kind] |= dict.fromkeys(spellings, best)
            spellings_text = _spellings_text(spellings, counts)
            note(f"{kind} {spellings_text} are one label in several spellings: {best!r} stands for all")
    return [part.respell(new_spellings["verbs"], new_spellings["labels"]) for part in parts]


def _add_up(parts: Sequence[LabelCounts]) -> dict[str, Counter[str]]:
    """Return how often each verb occurs in all parts ("verbs"), and each label of boxes ("labels")."""
    verbs = sum((part.verbs for part in parts), Counter[str]())
    return {"verbs": verbs, "labels": sum((part.boxes for part in parts), Counter[str]())}


def _spellings_text(spellings: Iterable[str], counts: Mapping[str, int]) -> str:
    """Return labels with their counts for a message: "'hot_dog' (12) and 'hot dog' (3)"."""
    return " and ".join(f"{label!r} ({counts[label]:,})" for label in spellings)


def describe_dataset(parts: Sequence[LabelCounts], name: str) -> dict[str, Any]:
    """Return the content of the file that describes a dataset called `name`: labels sorted, classes sorted by object,
    then by verb.

    parts: the counts of the ground truth, whose pairs become the classes; a second part, of the training set, may add
    labels, and gives training counts. Raises `UsageError` or `DataError` for a name that the dataset cannot have."""
    if name in DATASETS:
        choose = f"choose another name with {arg('output', like='NAME.json')}"
        raise UsageError(f"{arg('from_')}: {name} is a dataset of hoicli's own; {choose}")
    truth, training = parts[0], parts[-1]  # the same if there is one part
    subjects = set().union(*(part.subjects for part in parts))
    acted_on = set().union(*(part.objects for part in parts))
    only_subjects = subjects - acted_on
    # an object is any label of a box, but for those that only act
    objects = set().union(*(part.boxes for part in parts)) - only_subjects
    verbs = set().union(*(part.verbs for part in parts))
    pairs = sorted(truth.pairs, key=lambda pair: (pair[1], pair[0]))  # by object, then by verb
    content: dict[str, Any] = {
        "name": name,
        "subjects": sorted(subjects),
        "verbs": sorted(verbs),
        "objects": sorted(objects),
        "interactions": [list(pair) for pair in pairs],
    }
    if NO_INTERACTION in verbs:
        content["no_interaction"] = NO_INTERACTION
    if training is not truth:  # CUTS divide the classes, by how many training triplets they have, into rare and others
        content |= {"training_counts": [training.pairs[pair] for pair in pairs], "cuts": dict(CUTS)}
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
    """Return a name for a dataset, made of the path of its file: `own` for data/own.json.gz; "" without letters."""
    stem = re.split(r"[\\/]", path)[-1].split(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "_", stem).strip("_-")[:64]


def tell_doubts(parts: Sequence[LabelCounts]) -> None:
    """Print notes about what may be a mistake: labels that look like one in several spellings, and pairs that only the
    ground truth, or only the training set, has."""
    for kind, counts in _add_up(parts).items():
        for label in sorted(filter(_mixes_scripts, counts)):
            note(f"{kind} {label!r} ({counts[label]:,}) mixes letters of several scripts that look alike: a slip?")
        for spellings in _group_spellings(counts, _fold_label):
            note(
                f"{kind} {_spellings_text(spellings, counts)} differ in case, spaces or underscores alone: one label "
                "twice? Make them one in the records, or one the alias of the other (`aliases`)"
            )
    truth = parts[0].pairs.keys()
    training = parts[-1].pairs.keys()
    for pairs, where in (
        (training - truth, "in the training set alone: no class of the dataset"),
        (truth - training, "not in the training set: rare"),
    ):
        if pairs:
            example = " ".join(min(pairs))
            one = f"one interaction ({example}) is"
            several = f"{len(pairs):,} interactions ({example}, ...) are"
            note(f"{one if len(pairs) == 1 else several} {where}")


def _group_spellings(labels: Iterable[str], key: Callable[[str], str]) -> Iterator[list[str]]:
    """Yield a sorted list for each group of two or more labels for which the function `key` returns the same text."""
    labels_by_key: dict[str, list[str]] = {}
    for label in sorted(labels):
        labels_by_key.setdefault(key(label), []).append(label)
    for group in labels_by_key.values():
        if len(group) > 1:
            yield group


def _fold_label(label: str) -> str:
    """Return a form of the label in which case, spaces, underscores and hyphens make no difference."""
    return re.sub(r"[\s_-]+", "_", normalise_spelling(label).casefold())


def _mixes_scripts(label: str) -> bool:
    """Return whether a word of the label mixes scripts whose letters look alike, such as Latin and Cyrillic a."""
    if label.isascii():
        return False
    for word in re.split(r"[\s_-]+", label):
        # a letter's Unicode name begins with its script: LATIN SMALL LETTER A
        scripts = {unicode_name(letter, "").split(" ")[0] for letter in word if letter.isalpha()}
        if len(scripts & LOOK_ALIKE) > 1:
            return True
    return False


LOOK_ALIKE = {"LATIN", "CYRILLIC", "GREEK", "ARMENIAN"}
"""Scripts some of whose letters look like letters of another of them."""
