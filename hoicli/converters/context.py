"""The settings and findings of a conversion, and helpers that the formats share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hoicli.converters.numbers import BOX_SHIFTS, OBJECT_ORDERS, Numbers, whole_number
from hoicli.errors import DataError, Place, arg
from hoicli.records.names import image_id_of, path_of
from hoicli.records.parsing import Record
from hoicli.vocabulary.datasets import verb_and_role
from hoicli.vocabulary.labels import SUBJECT, Label, Spelled, Vocabulary

if TYPE_CHECKING:
    from hoicli.converters.containers.source import Source
    from hoicli.records.intake import ErrorPolicy


T = TypeVar("T")

DERIVED = "no image-level labels in this file: Known Object will derive them from the pairs (use anno_bbox.mat)"
"""The note about ground truth that has pairs, but no image-level labels."""


@dataclass
class Context:
    """The settings of a conversion, and what it found.

    format, target: the names (in FORMATS) of the formats that are read and written. target_order: the order of objects
    in the written file, "" for the format's usual one. options: those options of `convert` that only some formats have
    (`Format.options`) and that the user gave. images, image_numbers, image_sizes: what `--image-list` says, None or
    empty without it: image ids in order, the image id of each `img_id`, (width, height) of each image. split: "test" or
    "train", for files that hold both. prefix: the PREFIX in `data add PREFIX:PART`. open_names: whether any label is
    accepted, because the files state their labels and no dataset was named. id_rule: a name in `names.ID_RULES`, or "".
    dropped: for each reason, how many items were left out and the place of the first. notes: the assumptions made.
    place: the item that `each` is building.
    """

    vocabulary: Vocabulary
    policy: ErrorPolicy
    format: str = ""
    target: str = ""
    target_order: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    images: Sequence[str] | None = None
    image_numbers: Mapping[int, str] = field(default_factory=dict)
    image_sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    split: str = "test"
    prefix: str = ""
    open_names: bool = False
    id_rule: str = ""
    dropped: dict[str, tuple[int, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    place: str = ""

    def announce(self, assumption: str) -> None:
        """Add a note about an assumption, once. Notes are printed only after success, since a failure is one line."""
        if assumption not in self.notes:
            self.notes.append(assumption)

    def taking(self, part: str) -> str:
        """Return the option that takes another part of the file: `--part`, or another name for `hoicli data add`."""
        return f"hoicli data add {self.prefix}:{part}" if self.prefix else arg("part", part)

    def verbs(self, *, base: int) -> Numbers[str]:
        """Return the verb that each number in this file means: as the dataset's `numbering` says, else in the dataset's
        order, counted from --verb-base or from the format's `base`."""
        numbering = None if "verb_base" in self.options else self._numbering("verbs", self.vocabulary.verbs)
        return numbering or Numbers.from_items(self.vocabulary.verbs, self.base(base))

    def base(self, base: int) -> int:
        """Return the number of the first verb in this file: --verb-base, else `base`, which is the format's."""
        return int(self.options.get("verb_base", base))

    def objects(self, order: str, hint: str = "") -> Numbers[str]:
        """Return the object that each number in this file means: as the dataset's `numbering` says, else in an order of
        OBJECT_ORDERS, from --object-order or else from the format (`order`). hint: the end of the message about an
        unknown number. Raises `DataError` if the order is COCO's ids and the dataset's objects are not COCO's."""
        vocabulary = self.vocabulary
        if "object_order" in self.options:
            order = self.options["object_order"]
        elif (numbering := self._numbering("objects", vocabulary.objects)) is not None:
            return numbering
        if order == "coco-id" and not vocabulary.coco_ids:
            problem = f"{self.format} numbers objects by COCO's ids, which {vocabulary.name} does not have"
            raise DataError(
                f"{problem}: say what a number means in its numbering.objects, or {arg('object_order', 'coco-1')} "
                "(its own order, from 1) or coco (from 0)"
            )
        refusal, names = OBJECT_ORDERS[order]
        return Numbers(names(vocabulary), refusal + hint)

    def interactions(self, hint: str = "") -> Numbers[tuple[str, str]]:
        """Return the interaction (verb, object) that each number in this file means: as the dataset's `numbering` says,
        else in the dataset's order from 0. hint: the end of the message about an unknown number."""
        pairs = self.vocabulary.interactions
        return self._numbering("interactions", pairs) or Numbers.from_items(pairs, hint=hint)

    def _numbering(self, kind: str, items: Sequence[T]) -> Numbers[T] | None:
        """Return the dataset's own numbering of "verbs", "objects" or "interactions", or None if it has none."""
        numbering = self.vocabulary.numbering.get(kind)
        if numbering is None:
            return None
        refusal = f" is none of {self.vocabulary.name}'s {kind} (its numbering.{kind})"
        return Numbers({number: items[item_id] for number, item_id in numbering.items()}, refusal)

    def choose_numbers(
        self, kind: str, ids: Mapping[Label, int], usual: Mapping[int, int] | None = None
    ) -> Mapping[Label, int]:
        """Return the number to write for each label of a kind: "verbs", "objects" or "interactions". It comes from the
        dataset's `numbering`, else from the format's usual numbers, else it is the id. ids: the id of each label.
        usual: the id that each of the format's usual numbers means, None if it writes ids."""
        number_of = {label_id: number for number, label_id in self.vocabulary.numbering.get(kind, usual or {}).items()}
        number_of_label = {name: number_of[label_id] for name, label_id in ids.items() if label_id in number_of}
        return Spelled(number_of_label) if number_of else ids

    def truth_shift(self, shift: Sequence[int]) -> Sequence[int] | None:
        """Return the four numbers that are subtracted from a box of ground truth, or None for nothing. `shift` is the
        format's, as published. It does not hold for the user's own dataset, nor for a shipped one with numbers of its
        own (HOI-A): such a dataset says itself how its boxes are written (`box`)."""
        return BOX_SHIFTS[self.vocabulary.box] if self.vocabulary.own or self.vocabulary.numbering else shift

    def written_shift(self, shift: Sequence[int]) -> list[int] | None:
        """Return the four numbers that are subtracted from a record's box when ground truth is written, or None: the
        opposite of `truth_shift`."""
        read_shift = self.truth_shift(shift)
        return None if read_shift is None else [-side for side in read_shift]

    @property
    def subject(self) -> str:
        """The label of subjects in formats that do not label them: person, or the first of the dataset's subjects."""
        return self.vocabulary.subjects[0]

    def drop(self, reason: str, place: str, count: int = 1) -> None:
        """Count something that is left out. The summary shows for each reason the count and the first place."""
        total, first = self.dropped.get(reason, (0, place))
        self.dropped[reason] = (total + count, first)

    def tell_lost(self, record: Record, *more: str) -> None:
        """Count what the written format has no place for: every key of a record but the usual ones (its name, boxes,
        labels, triplets) and those in `more`; also an image id that a reader could not find again from the file name.
        """
        place = Place(f"image {record['image_id']}")
        kept_keys = {"image_id", "file_name", "boxes", "labels", "hois", *more}
        for key in sorted(key for key in record.keys() - kept_keys if record[key]):
            self.drop(f"{key} (the format has no place for it)", place)
        name = file_name_of(record)
        if str(record["image_id"]) not in (image_id_of(name), path_of(name)):
            self.drop("image ids that are not the names of their files", place)

    def each(
        self, items: Iterable[tuple[str, Any]], build: Callable[[Any], Record | None], source: Source
    ) -> Iterator[Record]:
        """Yield the record that `build` makes of each item; it returns None for an item that is no image. items:
        (field, item), where the field says where in the file the item stands, for errors in the form `file: field:
        problem`. While an item is built, `place` is its `file: field`. Under `--on-error skip` a bad item is dropped
        and counted; if the list itself is cut off, the items before are kept."""
        with self.policy.item():  # for a list that is cut off
            for where, item in items:
                self.place = f"{source.name}: {where}"
                with self.policy.item():
                    record = run_step(partial(build, item), source, where)
                    if record is not None:
                        yield record


def run_step(step: Callable[[], T], source: Source, where: str | None = None) -> T:
    """Run a step of a format's module and return its result; turn its exceptions into a `DataError` about the file.
    where: the field that the step reads, which is put before the field of a `DataError` that it raises; without it,
    such an error already has its place. A format's module only handles files as its project writes them, so the error
    about any other file just says that its shape is unexpected."""
    try:
        return step()
    except DataError as error:
        if where is None:
            raise
        raise DataError(error.problem, place=source.name, field=where + error.field, code=error.code) from None
    except KeyError as error:
        problem = f"has no {error.args[0]!r}; is this really the format? ({arg('from_', like='NAME')} chooses another)"
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        problem = f"is not shaped as expected ({error}); {arg('from_', like='NAME')} chooses another format"
    raise DataError(problem, place=source.name, field=where or "")


def entry(items: Sequence[T], index: Any, field_name: str, *, base: int = 0, of: str = "") -> T:
    """Return the item with a number, where the first item has the number `base`. Raises `DataError` that names the
    field for anything but the number of an item. of: words for the message that say what holds the items."""
    number = (index if type(index) is int else whole_number(index, field_name)) - base
    if not 0 <= number < len(items):
        raise DataError(f"id {number + base}, but there are {len(items)}{of}, counted from {base}", field=field_name)
    return items[number]


class BoxTable:
    """Collects the pairs of one image, and their boxes in order of first appearance; equal boxes of one label become
    one. subject: the label that the first box of each pair gets."""

    def __init__(self, subject: str = SUBJECT) -> None:
        self._subject = subject
        self.boxes: list[list[float]] = []
        self.labels: list[str] = []
        self.hois: list[dict[str, Any]] = []
        self._index: dict[tuple[str, tuple[float, ...]], int] = {}

    def add(self, box: Sequence[float], label: str) -> int:
        """Add a box, unless there is an equal one of the same label, and return its index."""
        key = (label, tuple(box))
        if key not in self._index:
            self._index[key] = len(self.boxes)
            self.boxes.append(list(box))
            self.labels.append(label)
        return self._index[key]

    def pair(self, person: Sequence[float], other: Sequence[float], label: str, **verb_said: Any) -> None:
        """Add a triplet. person, other: the two boxes. label: the label of the second. verb_said: the further keys of
        the triplet, such as its verb and score."""
        self.hois.append({"subject": self.add(person, self._subject), "object": self.add(other, label), **verb_said})

    @property
    def columns(self) -> dict[str, Any]:
        """The record's boxes, labels and triplets."""
        return {"boxes": self.boxes, "labels": self.labels, "hois": self.hois}


def image_record(
    file_name: str,
    boxes: Sequence[Sequence[float]],
    labels: Sequence[str | None],
    hois: Sequence[Mapping[str, Any]],
    head: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Record:
    """Return the record of an image. head: further first keys, which may replace image_id. rest: further last keys."""
    record: Record = {"image_id": image_id_of(file_name), "file_name": file_name, **(head or {})}
    return {**record, "boxes": boxes, "labels": labels, "hois": hois, **rest}


def pick_keys(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return the given keys of an item with their values, without those that it does not have."""
    return {key: item[key] for key in keys if key in item}


def file_name_of(record: Record) -> str:
    """Return the file name to write for an image: the record's, else one made of its id."""
    return str(record.get("file_name") or f"{record['image_id']}.jpg")


def require_scores(record: Record, target: str, *, scored: bool = True) -> None:
    """Raise `DataError` if a triplet has no score although the written format holds predictions (`scored`), or if it
    has one although the format holds ground truth. target: the name of the written format, for the message."""
    for index, hoi in enumerate(record["hois"]):
        if ("score" in hoi) != scored:
            problem = "missing" if scored else "is there"
            written = "predictions (is this the ground truth?)" if scored else "ground truth (are these predictions?)"
            problem = f"{problem}; {arg('to', target)} writes {written}"
            raise DataError(problem, place=Place(f"image {record['image_id']}"), field=f"hois[{index}].score")


# V-COCO's names, in the files of all projects


def action_role(name: str, context: Context) -> dict[str, str | None]:
    """Return the keys of a triplet that a V-COCO name gives: the verb and the role of `hold_obj` or `hold obj`, or for
    `walk` the verb and an empty object. Raises `DataError` for what is no action with its role."""
    verb, role = verb_and_role(name.replace(" ", "_"))
    if (verb, role) not in context.vocabulary.interaction_ids:
        raise DataError(f"{name!r} is no V-COCO action with its role, such as hold_obj or walk")
    return {"verb": verb, "role": role} if role else {"object": None, "verb": verb}


_NUMBER = re.compile(r"(?:COCO_\w+_)?0*(\d+)")


def coco_number(name: Any) -> int:
    """Return COCO's image number from a file name (COCO_val2014_000000000328.jpg) or an id, so that files that name
    images differently can be joined. Raises `DataError` for any other name."""
    match = _NUMBER.fullmatch(image_id_of(str(name)))
    if match is None:
        raise DataError(f"{name!r} is no COCO image name such as COCO_val2014_000000000328.jpg", field=".file_name")
    return int(match[1])
