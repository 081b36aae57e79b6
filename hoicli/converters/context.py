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
"""What is said of ground truth with pairs alone."""


@dataclass
class Context:
    """The settings of a conversion, and what it found.

    options: the options of `convert` that only some formats have (`Format.options`), those that were given. images,
    image_numbers, image_sizes: from `--image-list`, else None or empty: image ids in order, the image id of each
    `img_id`, each image's width and height. format, target: the names of FORMATS that are read and written;
    target_order: of the objects of a written file, "" for the format's usual one. split:
    "test" or "train", for sources that hold both. prefix: PREFIX of `data add PREFIX:PART`. open_names: labels may be
    any, because the files state them and no dataset was named. id_rule: of `names.ID_RULES`, or "". dropped: what was
    left out: (count, first place) by reason. notes: what was assumed. place: the current item of `each`.
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
        """Add a note, once; it is printed after success only: a failure is one line."""
        if assumption not in self.notes:
            self.notes.append(assumption)

    def taking(self, part: str) -> str:
        """Return what takes another part of the file: `--part`, or in `hoicli data add` another name."""
        return f"hoicli data add {self.prefix}:{part}" if self.prefix else arg("part", part)

    def verbs(self, *, base: int) -> Numbers[str]:
        """The verbs by number: as the dataset's `numbering` has them, else counted from --verb-base or the format's
        `base`."""
        numbering = None if "verb_base" in self.options else self._numbering("verbs", self.vocabulary.verbs)
        return numbering or Numbers.from_items(self.vocabulary.verbs, self.base(base))

    def base(self, base: int) -> int:
        """The number of the first verb in this file; `base` is the format's."""
        return int(self.options.get("verb_base", base))

    def objects(self, order: str, hint: str = "") -> Numbers[str]:
        """The objects by their numbers in this file: as the dataset's `numbering` has them, else in the order (from
        OBJECT_ORDERS) of --object-order or the format; `hint` is added to the message about another number. Raises
        `DataError` for COCO's ids and a dataset of other objects."""
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
        """The interactions by number: as the dataset's `numbering` has them, else in its order, from 0; `hint` is added
        to the message about another number."""
        pairs = self.vocabulary.interactions
        return self._numbering("interactions", pairs) or Numbers.from_items(pairs, hint=hint)

    def _numbering(self, kind: str, items: Sequence[T]) -> Numbers[T] | None:
        """The dataset's own numbering of "verbs", "objects" or "interactions"; None if it has none."""
        numbering = self.vocabulary.numbering.get(kind)
        if numbering is None:
            return None
        refusal = f" is none of {self.vocabulary.name}'s {kind} (its numbering.{kind})"
        return Numbers({number: items[place] for number, place in numbering.items()}, refusal)

    def choose_numbers(
        self, kind: str, ids: Mapping[Label, int], usual: Mapping[int, int] | None = None
    ) -> Mapping[Label, int]:
        """The numbers to write of "verbs", "objects" or "interactions" with these ids, by the dataset's `numbering`,
        else as is usual in the format: the id of each number, None for the ids themselves."""
        number_of = {place: number for number, place in self.vocabulary.numbering.get(kind, usual or {}).items()}
        named = {name: number_of[place] for name, place in ids.items() if place in number_of}
        return Spelled(named) if number_of else ids

    def truth_shift(self, shift: Sequence[int]) -> Sequence[int] | None:
        """Return what is subtracted from the boxes of ground truth: `shift` is the format's, as published; a file's
        dataset says itself how its boxes are written (`box`), and so does a shipped one with numbers of its own
        (HOI-A)."""
        return BOX_SHIFTS[self.vocabulary.box] if self.vocabulary.own or self.vocabulary.numbering else shift

    def written_shift(self, shift: Sequence[int]) -> list[int] | None:
        """Return what is subtracted from the boxes of records for ground truth that is written: `truth_shift`, back."""
        less = self.truth_shift(shift)
        return None if less is None else [-side for side in less]

    @property
    def subject(self) -> str:
        """The label of subjects in formats that give them none: person, or the dataset's first."""
        return self.vocabulary.subjects[0]

    def drop(self, reason: str, place: str, count: int = 1) -> None:
        """Count a dropped item; the summary shows the count, the reason and the first place."""
        total, first = self.dropped.get(reason, (0, place))
        self.dropped[reason] = (total + count, first)

    def tell_lost(self, record: Record, *more: str) -> None:
        """Count what a written format has no place for: all of a record but its name, boxes, labels, triplets and the
        keys `more`, and an id that its reader would not find."""
        place, kept_keys = (
            Place(f"image {record['image_id']}"),
            {"image_id", "file_name", "boxes", "labels", "hois", *more},
        )
        for key in sorted(key for key in record.keys() - kept_keys if record[key]):
            self.drop(f"{key} (the format has no place for it)", place)
        name = file_name_of(record)
        if str(record["image_id"]) not in (image_id_of(name), path_of(name)):
            self.drop("image ids that are not the names of their files", place)

    def each(
        self, items: Iterable[tuple[str, Any]], build: Callable[[Any], Record | None], source: Source
    ) -> Iterator[Record]:
        """`build` on every (field, item), which gives None for what is no image; errors are reported as `file: field:
        problem`. While an item is built, `place` is its `file: field`. Under `--on-error skip` a bad item is dropped
        and counted; if the list itself is cut off, the items before are kept.
        """
        with self.policy.item():  # a list that is cut off
            for where, item in items:
                self.place = f"{source.name}: {where}"
                with self.policy.item():
                    record = run_step(partial(build, item), source, where)
                    if record is not None:
                        yield record


def run_step(step: Callable[[], T], source: Source, where: str | None = None) -> T:
    """Run a step of a format's module, and turn its exceptions into a `DataError` about the file. `where`: the field of
    the step, put before the field of a `DataError` that it raises; without it such an error already has its place. A
    format's module only handles files as its project writes them; for others the error just says that the shape is
    unexpected.
    """
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
    """`items[index - base]`; raises `DataError` that names the field for anything but the number of an item. of: what
    holds the items, for the message."""
    number = (index if type(index) is int else whole_number(index, field_name)) - base
    if not 0 <= number < len(items):
        raise DataError(f"id {number + base}, but there are {len(items)}{of}, counted from {base}", field=field_name)
    return items[number]


class BoxTable:
    """Collects an image's pairs, and their boxes in order of first appearance; equal boxes of one label become one.
    subject: the label of the first box of a pair."""

    def __init__(self, subject: str = SUBJECT) -> None:
        self._subject = subject
        self.boxes: list[list[float]] = []
        self.labels: list[str] = []
        self.hois: list[dict[str, Any]] = []
        self._index: dict[tuple[str, tuple[float, ...]], int] = {}

    def add(self, box: Sequence[float], label: str) -> int:
        """The index of the box, new or not."""
        key = (label, tuple(box))
        if key not in self._index:
            self._index[key] = len(self.boxes)
            self.boxes.append(list(box))
            self.labels.append(label)
        return self._index[key]

    def pair(self, person: Sequence[float], other: Sequence[float], label: str, **verb_said: Any) -> None:
        """Add a triplet: a person's box, another box with its label, and what is said of the two."""
        self.hois.append({"subject": self.add(person, self._subject), "object": self.add(other, label), **verb_said})

    @property
    def columns(self) -> dict[str, Any]:
        """The boxes, labels and triplets of a record."""
        return {"boxes": self.boxes, "labels": self.labels, "hois": self.hois}


def image_record(
    file_name: str,
    boxes: Sequence[Sequence[float]],
    labels: Sequence[str | None],
    hois: Sequence[Mapping[str, Any]],
    head: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Record:
    """The record of an image; `head`: further first keys, which may include another image_id."""
    record: Record = {"image_id": image_id_of(file_name), "file_name": file_name, **(head or {})}
    return {**record, "boxes": boxes, "labels": labels, "hois": hois, **rest}


def pick_keys(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The values that an item has under the keys, unchanged."""
    return {key: item[key] for key in keys if key in item}


def file_name_of(record: Record) -> str:
    """The file name to write of an image."""
    return str(record.get("file_name") or f"{record['image_id']}.jpg")


def require_scores(record: Record, target: str, *, scored: bool = True) -> None:
    """Raises `DataError` if an interaction has no score, of which the format `target` holds predictions; or, of ground
    truth (not `scored`), if one has."""
    for index, hoi in enumerate(record["hois"]):
        if ("score" in hoi) != scored:
            problem = "missing" if scored else "is there"
            written = "predictions (is this the ground truth?)" if scored else "ground truth (are these predictions?)"
            problem = f"{problem}; {arg('to', target)} writes {written}"
            raise DataError(problem, place=Place(f"image {record['image_id']}"), field=f"hois[{index}].score")


# V-COCO's names, in the files of all projects


def action_role(name: str, context: Context) -> dict[str, str | None]:
    """Return what `hold_obj` or `hold obj` makes of a triplet: its verb and its role, or for `walk` that there is no
    object. Raises `DataError` for what is no action with its role."""
    verb, role = verb_and_role(name.replace(" ", "_"))
    if (verb, role) not in context.vocabulary.interaction_ids:
        raise DataError(f"{name!r} is no V-COCO action with its role, such as hold_obj or walk")
    return {"verb": verb, "role": role} if role else {"object": None, "verb": verb}


_NUMBER = re.compile(r"(?:COCO_\w+_)?0*(\d+)")


def coco_number(name: Any) -> int:
    """COCO's image number of a file name (COCO_val2014_000000000328.jpg) or id, so that files that name images
    differently can be joined. Raises `DataError` for another name."""
    match = _NUMBER.fullmatch(image_id_of(str(name)))
    if match is None:
        raise DataError(f"{name!r} is no COCO image name such as COCO_val2014_000000000328.jpg", field=".file_name")
    return int(match[1])
