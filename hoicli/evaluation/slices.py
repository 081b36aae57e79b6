"""Slices: the parts of the data for which `--slice` prints all rows once more, with what each is cut by.

A slice of images keeps some images whole. A slice of triplets ignores the others rather than count them false: ground
truth outside a part is not looked for there, and a prediction stands in the part of the ground truth it belongs to, or,
if it belongs to none, in the part that its own boxes have (`hoicli.evaluation.matching`). A slice of classes averages
some of them. Every image, triplet and class is in one part, but for those that a FILE leaves out or names twice."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain, pairwise
from pathlib import Path

from hoicli.errors import DataError, UsageError, arg, did_you_mean, write_number
from hoicli.io.streams import Stream
from hoicli.io.text_tables import announced_delimiter, cells_of, usual_delimiter
from hoicli.records.result_rows import BAR
from hoicli.vocabulary.labels import Vocabulary

IMAGES, TRIPLETS, CLASSES = "images", "triplets", "classes"
FILE = "file"
MOST_PARTS = 50
"""Parts of a FILE, or of cuts given: each costs a ranking of all predictions."""

_COUNTS = (1.0, 2.0, 3.0, 6.0)


@dataclass(frozen=True)
class Measure:
    """A way to divide the data into parts, such as the size of the object. of: what is divided: IMAGES, TRIPLETS or
    CLASSES. description: what lists of slices say about it. cuts: the values at which one part ends and the next
    begins, unless the user gives others (`objects:400:2500`). names: the names of the parts between these cuts; () if
    parts are named by numbers."""

    of: str
    description: str
    cuts: tuple[float, ...] = ()
    names: tuple[str, ...] = ()


MEASURES: Mapping[str, Measure] = {
    "objects": Measure(
        TRIPLETS,
        "small, medium, large by the object box: COCO's 32^2 and 96^2 pixels",
        (32.0**2, 96.0**2),
        ("small", "medium", "large"),
    ),
    "distance": Measure(TRIPLETS, "of the two boxes' centres, in their mean diagonal", (0.25, 0.5, 1.0)),
    "subject": Measure(TRIPLETS, "a part for each label that a subject may have, where there are several"),
    "people": Measure(IMAGES, "how many people are annotated in the image", _COUNTS),
    "pairs": Measure(IMAGES, "how many pairs are annotated in the image", _COUNTS),
    "verb": Measure(CLASSES, "a part for each verb"),
    "object": Measure(CLASSES, "a part for each object"),
    "frequency": Measure(CLASSES, "the dataset's groups by training triplets, or other cuts where it has the counts"),
    "test_frequency": Measure(CLASSES, "how many triplets of the class this ground truth has", (10.0,)),
}
"""The slices by name."""


@dataclass(frozen=True)
class Slice:
    """A division of the images, triplets or classes into named parts, as `--slice` asks for it.

    name: as rows and signatures write it. measure: a key of MEASURES, or FILE. parts: the names of the parts. cuts: the
    values between the parts, if they are ranges of a number. classes: if classes are divided, the class numbers of each
    part; () if that depends on the ground truth (`classes_of_parts`). digest, images: if a FILE defines the parts, a
    digest of it, and for each image id the numbers of the parts that the image is in (most often one)."""

    name: str
    measure: str
    parts: tuple[str, ...]
    cuts: tuple[float, ...] = ()
    classes: tuple[frozenset[int], ...] = ()
    digest: str = ""
    images: Mapping[str, frozenset[int]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def of(self) -> str:
        """The kind of thing that is divided into parts: IMAGES, TRIPLETS or CLASSES."""
        return IMAGES if self.measure == FILE else MEASURES[self.measure].of

    def classes_of_parts(self, positives: Sequence[int]) -> Sequence[frozenset[int]]:
        """Return the class numbers of each part of a slice of classes. positives: how many triplets each class has."""
        if self.classes:
            return self.classes
        part_of_class = [bisect_right(self.cuts, count) for count in positives]
        classes_of_parts: list[set[int]] = [set() for _ in self.parts]
        for class_number, part in enumerate(part_of_class):
            classes_of_parts[part].add(class_number)
        return [frozenset(classes) for classes in classes_of_parts]

    def tags(self, part: str) -> dict[str, str]:
        """Return the fields that tell result rows about a part from others: {"slice": "people", "part": "2"}."""
        return {"slice": self.name, "part": part}

    def setting(self, part: str) -> dict[str, str]:
        """Return what the signature of a row about a part states: {"slice": "people/2"}, with the file's digest if one
        defines the slice."""
        digest = f"@{self.digest}" if self.digest else ""
        return {"slice": f"{self.name}{digest}/{part}"}


@dataclass(frozen=True)
class Part:
    """One part of a slice of images or triplets. number: its index in `slice.parts`."""

    slice: Slice
    number: int

    @property
    def name(self) -> str:
        """The name of the part, as rows and signatures write it."""
        return self.slice.parts[self.number]


def parse_slices(texts: Iterable[str], vocabulary: Vocabulary) -> list[Slice]:
    """Return the slices that `--slice` names: NAME, NAME with cuts (`distance:0.5:1`) or FILE, each once, in order.

    Raises `UsageError` for an unknown name, cuts that do not ascend and slices that the dataset does not have;
    `DataError` for a bad line of a FILE."""
    slices: dict[str, Slice] = {}
    parts = chain.from_iterable(several.split(",") for several in texts)
    for part in parts:
        text = part.strip()
        slice_ = _make_measured_slice(text, vocabulary) if text.split(":")[0] in MEASURES else _read_slice(text)
        if slices.setdefault(slice_.name, slice_) != slice_:
            raise UsageError(f"{arg('slice', text)}: another slice is called {slice_.name}; rename one of the files")
    return list(slices.values())


def _make_measured_slice(text: str, vocabulary: Vocabulary) -> Slice:
    """Return the slice that a text like `people` or `distance:0.5:1` names: a key of MEASURES, perhaps followed by cuts
    that replace the measure's own. Raises `UsageError` for bad cuts, and for slices that the dataset does not have."""
    name, *cut_texts = text.split(":")
    measure = MEASURES[name]
    if cut_texts and name in ("subject", "verb", "object"):
        problem = f"{name} has a part for each {name}, without cuts; leave {text.removeprefix(name)!r} out"
        raise UsageError(f"{arg('slice', text)}: {problem}")
    cuts = _parse_cuts(text, cut_texts) or measure.cuts
    if measure.of == CLASSES and not measure.cuts:  # a measure of classes with cuts of its own goes by the ground truth
        classes_of_parts = _classes_of_parts(text, cuts, vocabulary)
        return Slice(
            name=_slice_text(name, cuts),
            measure=name,
            parts=tuple(classes_of_parts),
            cuts=cuts,
            classes=tuple(classes_of_parts.values()),
        )
    if name == "subject":
        if len(vocabulary.subjects) == 1:
            problem = f"all subjects of {vocabulary.name} are {vocabulary.subjects[0]}; leave it out"
            raise UsageError(f"{arg('slice', text)}: {problem}")
        return Slice(name, measure=name, parts=tuple(sorted(vocabulary.subjects)))
    usual_names = measure.names if cuts == measure.cuts else ()
    names = usual_names or tuple(_range_names(cuts, whole=measure.of != TRIPLETS))
    if vocabulary.roles and measure.of == TRIPLETS:
        names += ("no_object",)
    return Slice(_slice_text(name, cuts), measure=name, parts=names, cuts=cuts)


def _slice_text(name: str, cuts: Sequence[float]) -> str:
    """Return the name of a slice in rows and signatures: that of its measure, followed by the cuts if they are not the
    measure's own (`people`, `people:2:4`)."""
    if cuts == MEASURES[name].cuts:
        return name
    return ":".join([name, *map(write_number, cuts)])


def _parse_cuts(text: str, cut_texts: Sequence[str]) -> tuple[float, ...]:
    """Return the cuts that the user gives as numbers; () if there are none. Raises `UsageError` unless they are
    ascending numbers above 0."""
    name = text.split(":")[0]
    example = ":".join([name, *map(write_number, MEASURES[name].cuts or (10, 100))])
    wrong = UsageError(f"{arg('slice', text)}: give ascending numbers above 0 as cuts, for example {example}")
    if len(cut_texts) >= MOST_PARTS or not all(re.fullmatch(r"\d{1,12}(\.\d{1,12})?", part) for part in cut_texts):
        raise wrong
    cuts = tuple(map(float, cut_texts))
    if not all(before < after for before, after in pairwise([0.0, *cuts])):
        raise wrong
    return cuts


def _range_names(cuts: Sequence[float], *, whole: bool) -> Iterator[str]:
    """Yield the names of the ranges into which ascending cuts divide the numbers from 0 on: for the cuts 3 and 6 `0-3`,
    `3-6`, `6+`. whole: whether the numbers are whole; the names are then `0-2`, `3-5`, `6+`."""
    for low, high in pairwise([0.0, *cuts]):
        last = high - 1 if whole and high == int(high) else high
        yield write_number(low) if low == last else f"{write_number(low)}-{write_number(last)}"
    yield f"{write_number(cuts[-1])}+"


def _classes_of_parts(text: str, cuts: Sequence[float], vocabulary: Vocabulary) -> dict[str, frozenset[int]]:
    """Return the class numbers in each part, by the part's name, for a slice that divides the classes.

    text: `verb` or `object` for a part for each of these, `frequency` for the dataset's groups (rare, non_rare). cuts:
    numbers of training triplets; with any, the parts are the ranges between them. Raises `UsageError` if there is no
    part, or nothing to cut."""
    counts = vocabulary.training_counts
    pairs = list(enumerate(vocabulary.interactions))  # (class number, (verb, object))
    if cuts and not counts:
        problem = f"{vocabulary.name} has no training counts, only groups"
        fix = "leave out the cuts, or make a dataset with hoicli vocab --train"
        raise UsageError(f"{arg('slice', text)}: {problem}; {fix}")
    if cuts:
        ranges = zip(_range_names(cuts, whole=True), pairwise([0.0, *cuts, math.inf]), strict=True)
        parts = {
            part: frozenset(number for number, count in enumerate(counts) if low <= count < high)
            for part, (low, high) in ranges
        }
    elif text == "frequency":
        parts = {group: classes for group, classes in vocabulary.groups.items() if classes}
    elif text == "verb":
        parts = {verb: frozenset(number for number, pair in pairs if pair[0] == verb) for verb in vocabulary.verbs}
    else:
        objects = () if vocabulary.roles else vocabulary.objects  # classes with roles are of any object
        parts = {thing: frozenset(number for number, pair in pairs if pair[1] == thing) for thing in objects}
    if not parts:
        has_none = "classes by training frequency" if text == "frequency" else "classes by object"
        raise UsageError(f"{arg('slice', text)}: {vocabulary.name} has no {has_none}")
    return parts


def _read_slice(path: str) -> Slice:
    """Return the slice of images that a file of `image_id<TAB>part` lines defines; its parts are in alphabetical order.
    Raises `UsageError` if there is no such file, `DataError` for a bad line or too many parts."""
    if not path or not Path(path).exists():
        meant = did_you_mean(path.split(":")[0], MEASURES)
        suggestion = f" ({meant})" if meant else ""
        fix = f"choose from {', '.join(MEASURES)}, or name a file of `image_id<TAB>slice` lines"
        if path.replace(".", "", 1).isdigit():  # objects:32,96
            fix = "commas are between slices, colons between cuts: objects:32:96"
        raise UsageError(f"{arg('slice', path)}: there is no such slice or file; {fix}{suggestion}")
    image_part_pairs = _read_image_parts(path)
    parts = tuple(sorted({part for _, part in image_part_pairs}))
    if not parts:
        raise DataError("no slices in it; write image_id<TAB>slice, one a line", place=path)
    if len(parts) > MOST_PARTS:
        raise DataError(f"{len(parts):,} slices; at most {MOST_PARTS} in a file", place=path)
    numbers_by_image: dict[str, set[int]] = {}
    for image_id, part in image_part_pairs:
        numbers_by_image.setdefault(image_id, set()).add(parts.index(part))
    sorted_lines = "".join(f"{image_id}\t{part}\n" for image_id, part in sorted(image_part_pairs))
    digest = sha256(sorted_lines.encode()).hexdigest()[:8]
    # without the characters that stand between names in options and signatures
    name = re.sub(r"[|,\s/@:]", "_", Path(path).name.split(".")[0]) or FILE
    if name in MEASURES:
        name = f"{name}_file"
    images = {image_id: frozenset(numbers) for image_id, numbers in numbers_by_image.items()}
    return Slice(name, measure=FILE, parts=parts, digest=digest, images=images)


def _read_image_parts(path: str) -> set[tuple[str, str]]:
    """Return every (image id, part) in a file of `image_id<TAB>part` lines, or a CSV. Raises `DataError` for others."""
    image_part_pairs = set()
    delimiter = None
    for number, line in enumerate(Stream([path], "slices")):
        if number == 0 and (delimiter := announced_delimiter(line)):
            continue
        delimiter = delimiter or usual_delimiter(line)
        fields = cells_of(line, delimiter)
        if len(fields) != 2 or not all(fields):
            raise DataError("write one image and its slice a line: image_id<TAB>slice", place=line.place)
        image_id, part = fields
        if not part.isprintable() or len(part) > 100 or BAR in part:
            raise DataError("a slice's name is at most 100 printable characters without |", place=line.place)
        image_part_pairs.add((image_id, part))
    return image_part_pairs
