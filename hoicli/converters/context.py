"""The settings and findings of a conversion, and helpers that the formats share."""

from __future__ import annotations

import csv
import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hoicli.converters.numbers import BOX_SHIFTS, NOTHING, OBJECT_ORDERS, Numbers, shorten_value, whole_number
from hoicli.errors import DataError, Place, arg
from hoicli.records.image import RECORD_FIELDS
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

    vocabulary: the dataset. policy: what happens to an error about one item: it is raised, or (`--on-error skip`)
    counted, and the item left out. format, target: the names (in FORMATS) of the formats that are read and written.
    target_order: the order of objects in the written file, "" for the format's usual one. options: those options of
    `convert` that only some formats have (`Format.options`) and that the user gave. images, image_numbers, image_sizes:
    what `--image-list` says, None or empty without it: image ids in order, the image id of each `img_id`, (width,
    height) of each image. truth: the path of the command's ground truth, which is read in place of `--image-list` where
    that is needed (`image_ids.take_truth_as_list`), "" if there is none. split: "test" or "train", for files that hold
    both. prefix: the PREFIX in `data add PREFIX:PART`. open_names: whether any label is accepted, because the files
    state their labels and no dataset was named. id_rule: a name in `names.ID_RULES`, or "". dropped: for each reason,
    how many items were left out and the place of the first. dropped_words: for each reason, how often each word was
    left out. left_out_file: the file of --left-out, "" without it; left_out: its rows, one for each thing left out.
    notes: the assumptions made. place: the item that `each` is building."""

    vocabulary: Vocabulary
    policy: ErrorPolicy
    format: str = ""
    target: str = ""
    target_order: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    images: Sequence[str] | None = None
    image_numbers: Mapping[int, str] = field(default_factory=dict)
    image_sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    truth: str = ""
    split: str = "test"
    prefix: str = ""
    open_names: bool = False
    id_rule: str = ""
    dropped: dict[str, tuple[int, str]] = field(default_factory=dict)
    left_out_file: str = ""
    left_out: list[dict[str, Any]] = field(default_factory=list)
    dropped_words: dict[str, Counter[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    place: str = ""

    def announce(self, assumption: str) -> None:
        """Add a note about an assumption, once. Notes are printed only after success, since a failure is one line."""
        if assumption not in self.notes:
            self.notes.append(assumption)

    def how_to_take(self, part: str) -> str:
        """Return `--part train`, or under `hoicli data add hico:test` the command `hoicli data add hico:train`."""
        return f"hoicli data add {self.prefix}:{part}" if self.prefix else arg("part", part)

    def verbs(self, *, base: int) -> Numbers[str]:
        """Return the verb of each number in this file: as the dataset's `numbering`, --verb-base or `base` says."""
        numbering = None if "verb_base" in self.options else self._numbering("verbs", self.vocabulary.verbs)
        return numbering or Numbers.count_from(self.vocabulary.verbs, self.first_verb_number(base))

    def first_verb_number(self, usual: int) -> int:
        """Return the number of the first verb in this file: that of --verb-base, else the format's `usual` one."""
        return int(self.options.get("verb_base", usual))

    def objects(self, order: str, hint: str = "") -> Numbers[str]:
        """Return the object that each number in this file means: as --object-order says, else the dataset's
        `numbering`, else the format's usual `order` (both in OBJECT_ORDERS). hint: the end of messages about others.
        Raises `DataError` if numbers are COCO's category ids, but the dataset's objects are not COCO's."""
        vocabulary = self.vocabulary
        if "object_order" in self.options:  # the user says how this file numbers them, whatever the dataset declares
            order = self.options["object_order"]
        elif (numbering := self._numbering("objects", vocabulary.objects)) is not None:
            return numbering
        if order == "coco-id" and not vocabulary.coco_ids:
            problem = f"{self.format} numbers objects by COCO's ids, which {vocabulary.name} does not have"
            raise DataError(
                f"{problem}: say what a number means in its numbering.objects, or {arg('object_order', 'coco-1')} "
                "(its own order, from 1) or coco (from 0)"
            )
        refusal, names = OBJECT_ORDERS[order]  # the message about an unknown number, and a function for the names
        if vocabulary.own:
            count = f"{vocabulary.name}'s {len(vocabulary.objects)} objects"
            refusal = f" is none of {count} ({order}): say what a number means in its numbering.objects"
        return Numbers(names(vocabulary), refusal + hint)

    def interactions(self, hint: str = "") -> Numbers[tuple[str, str]]:
        """Return the (verb, object) that each number in this file means. hint: the end of messages about others."""
        pairs = self.vocabulary.interactions
        return self._numbering("interactions", pairs) or Numbers.count_from(pairs, hint=hint)

    def _numbering(self, kind: str, items: Sequence[T]) -> Numbers[T] | None:
        """Return what the dataset's own `numbering` says of verbs, objects or interactions (`kind`), or None."""
        numbering = self.vocabulary.numbering.get(kind)
        if numbering is None:
            return None
        refusal = f" is none of {self.vocabulary.name}'s {kind} (its numbering.{kind})"
        return Numbers({number: items[item_id] for number, item_id in numbering.items()}, refusal)

    def choose_numbers(
        self, kind: str, ids: Mapping[Label, int], usual: Mapping[int, int] | None = None
    ) -> Mapping[Label, int]:
        """Return the number to write into a file for each label: the one that the dataset's `numbering` gives, else the
        format's usual number, else the label's id.

        kind: what the labels are, "verbs", "objects" or "interactions". ids: the 0-based id of each label. usual: for
        each of the format's usual numbers the id that it means; None for a format that writes the ids themselves."""
        numbering = self.vocabulary.numbering.get(kind, usual or {})
        if not numbering:
            return ids
        number_of_id = {label_id: number for number, label_id in numbering.items()}
        # Spelled: a dict that finds a label in any spelling; labels without a number are left out
        return Spelled({label: number_of_id[label_id] for label, label_id in ids.items() if label_id in number_of_id})

    def truth_shift(self, shift: Sequence[int]) -> Sequence[int] | None:
        """Return what to subtract from [x1, y1, x2, y2] of a ground truth box in the file, so that it counts pixels
        from 0 and x2, y2 are the last pixels inside; None if nothing is to be subtracted.

        shift: what the format, as published, needs. A dataset that declares how its boxes are written (`box`) overrides
        it: the user's own, and a shipped one with numbers of its own (HOI-A)."""
        return BOX_SHIFTS[self.vocabulary.box] if self.vocabulary.own or self.vocabulary.numbering else shift

    def written_shift(self, shift: Sequence[int]) -> list[int] | None:
        """Return what to subtract from a record's box before it is written as ground truth, None for nothing."""
        read_shift = self.truth_shift(shift)
        return None if read_shift is None else [-side for side in read_shift]

    @property
    def subject(self) -> str:
        """Return the label of subjects in formats that do not label them: the first of the dataset's `subjects`."""
        return self.vocabulary.subjects[0]

    def drop(self, reason: str, place: str, count: int = 1, word: str = "", long_text: str = "") -> None:
        """Count what is left out of the result. reason: in the plural; word: one that the summary quotes; long_text:
        what --left-out has in its place."""
        total, first = self.dropped.get(reason, (0, place))
        self.dropped[reason] = (total + count, first)
        if self.left_out_file:
            text = long_text or word.replace("_", " ")
            self.left_out.append({"place": place, "reason": reason, "count": count, "said": text})
        if word:
            self.dropped_words.setdefault(reason, Counter())[quote_word(word)] += count

    def list_error(self, error: DataError) -> None:
        """Add an error that `--on-error skip` skips to the rows of --left-out."""
        place = ": ".join(part for part in (error.place, error.field) if part)
        self.left_out.append({"place": place, "reason": error.problem, "count": 1, "said": ""})

    def tell_lost(self, record: Record, *, kept_keys: Collection[str]) -> None:
        """Count the keys for which the target format has no place: all that are not empty, besides the usual ones and
        `kept_keys`. So is an image id that cannot be derived from the file name, since only that name is written."""
        place = Place(f"image {record['image_id']}")
        usual_keys = ("image_id", "file_name", "boxes", "labels", "hois")
        for key in sorted(key for key in record.keys() - {*usual_keys, *kept_keys} if record[key]):
            self.drop(f"{key} (the format has no place for it)", place)
        name = file_name_of(record)
        if str(record["image_id"]) not in (image_id_of(name), path_of(name)):
            self.drop("image ids that are not the names of their files", place)

    def keep_fields(self, image: Mapping[str, Any], *fields_used: str) -> dict[str, Any]:
        """Return the `further_fields` of a foreign image, which records keep for `--by`, and count its others, but for
        `fields_used` and those that are null."""
        kept_fields = further_fields({key: value for key, value in image.items() if key not in fields_used})
        for key in sorted(image.keys() - {*kept_fields, *fields_used}):
            if image[key] is not None:
                why = "records have a field of this name" if key in RECORD_FIELDS else "no text or number"
                self.drop(f"{key} of images ({why})", self.place)
        return kept_fields

    def each(
        self, items: Iterable[tuple[str, Any]], build: Callable[[Any], Record | None], source: Source
    ) -> Iterator[Record]:
        """Yield the record that `build` makes of each item of a file; it returns None for an item that is no image.

        items: (field, item), where the field says where in the file the item stands, such as "images[3]", for errors in
        the form `file: field: problem`. While an item is built, `self.place` is its `file: field`. Under `--on-error
        skip` a bad item is dropped and counted; if the list itself is cut off, the items before are kept."""
        with self.policy.item():  # an error while `items` is read: the list is cut off
            for where, item in items:
                self.place = f"{source.name}: {where}"
                with self.policy.item():  # an error of this item alone
                    record = run_step(partial(build, item), source, where)
                    if record is not None:
                        yield record


WORDS_SHOWN = 10
"""How many words a note lists."""


def list_words(counts: Mapping[str, int], option: str) -> str:
    """Return the most frequent texts with their counts: '"drives past" 7, "gallops" 2'. option: the one that
    writes all of them to a file."""
    frequent = Counter(counts).most_common(WORDS_SHOWN)
    more = len(counts) - len(frequent)
    rest = f" and {more:,} more ({arg(option, like='FILE')} has all)" if more else ""
    return ", ".join(f"{text} {count:,}" for text, count in frequent) + rest


def write_listing(path: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows to a file, in the format that its ending names."""
    from hoicli.io.outputs import write_output
    from hoicli.tables.notations import chosen_format, render

    write_output(path, render(rows, chosen_format("auto", path)))


def quote_word(word: str) -> str:
    """Return a word as a model said it, in quotes, for a note."""
    return f'"{word[:60].replace("_", " ")}"'


def run_step(step: Callable[[], T], source: Source, where: str | None = None) -> T:
    """Run a function that reads a part of a foreign file and return its result; turn its exceptions into a `DataError`
    that names the file.

    where: the field of the file that is read, put before the field of a `DataError` that the function raises; None if
    such an error already says its place. The readers of formats do not check every value's type: a file of unexpected
    shape makes them raise KeyError, TypeError and the like, which become one message here."""
    try:
        return step()
    except DataError as error:
        if where is None:
            raise
        raise DataError(error.problem, place=source.name, field=where + error.field, code=error.code) from None
    except KeyError as error:
        problem = f"has no {error.args[0]!r}; is this really the format? ({arg('from_', like='NAME')} chooses another)"
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError, csv.Error) as error:
        problem = f"is not shaped as expected ({error}); {arg('from_', like='NAME')} chooses another format"
    raise DataError(problem, place=source.name, field=where or "")


def entry(items: Sequence[T], number: Any, field_name: str, *, base: int = 0) -> T:
    """Return the item that a number from a file means, where the first item has the number `base`. Raises `DataError`
    that names the field if there is no such item."""
    index = (number if type(number) is int else whole_number(number, field_name)) - base
    if not 0 <= index < len(items):
        raise DataError(f"id {index + base}, but there are {len(items)}, counted from {base}", field=field_name)
    return items[index]


class BoxTable:
    """Collects the boxes and triplets of one image for its record. Boxes are in order of first appearance; equal boxes
    of one label become one. boxes: each as [x1, y1, x2, y2]. labels: the label of each box. hois: the triplets."""

    def __init__(self, subject: str = SUBJECT) -> None:
        """Begin without boxes. subject: the label that the first box of each pair will get."""
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

    def pair(self, person: Sequence[float], other: Sequence[float], label: str, **triplet_keys: Any) -> None:
        """Add a triplet with its two boxes. label: of the second box. triplet_keys: such as its verb and score."""
        self.hois.append({"subject": self.add(person, self._subject), "object": self.add(other, label), **triplet_keys})

    @property
    def columns(self) -> dict[str, Any]:
        """Return the boxes, labels and triplets under the keys that they have in a record."""
        return {"boxes": self.boxes, "labels": self.labels, "hois": self.hois}


def image_record(
    file_name: Any,
    boxes: Sequence[Sequence[float]],
    labels: Sequence[str | None],
    hois: Sequence[Mapping[str, Any]],
    head: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Record:
    """Return the record of an image, whose id is its file name without folder and extension unless `head` has another.
    file_name: as the file has it, a text or an integer. head: keys to write before the boxes, such as width and height.
    rest: keys to write after the triplets. Raises `DataError` for a name that is neither."""
    if type(file_name) is not str:
        file_name = _name_of_number(file_name)
    record: Record = {"image_id": image_id_of(file_name), "file_name": file_name, **(head or {})}
    return {**record, "boxes": boxes, "labels": labels, "hois": hois, **rest}


def _name_of_number(number: Any) -> str:
    """Return an integer in the place of an image's file name as a text. Raises `DataError` for another value."""
    if not isinstance(number, bool):
        with suppress(TypeError):
            return str(operator.index(number))
    said = NOTHING if number is None else shorten_value(number)
    raise DataError(f"{said} is no name of an image; give its file name, or its number")


def pick_keys(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return the given keys of an item with their values, without those that it does not have."""
    return {key: item[key] for key in keys if key in item}


def further_fields(image: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an image that are a text, a number, true or false, such as the camera that took it, and have
    no name that means something in a record (RECORD_FIELDS)."""
    others = image.keys() - RECORD_FIELDS
    return {key: value for key, value in image.items() if key in others and isinstance(value, str | int | float)}


def file_name_of(record: Record) -> str:
    """Return the file name to write for an image: the record's, else one made of its id."""
    return str(record.get("file_name") or f"{record['image_id']}.jpg")


def require_scores(record: Record, target: str, *, scored: bool = True) -> None:
    """Raise `DataError` for the first triplet without a score or, if not `scored`, for the first with one."""
    for index, hoi in enumerate(record["hois"]):
        if ("score" in hoi) != scored:
            problem = "missing" if scored else "is there"
            written = "predictions (is this the ground truth?)" if scored else "ground truth (are these predictions?)"
            problem = f"{problem}; {arg('to', target)} writes {written}"
            raise DataError(problem, place=Place(f"image {record['image_id']}"), field=f"hois[{index}].score")


def action_role(name: str, context: Context) -> dict[str, str | None]:
    """Return the keys of a triplet that a V-COCO name stands for: {"verb": "hold", "role": "obj"} for `hold_obj`,
    {"object": None, "verb": "walk"} for `walk`. Raises `DataError` for any other name."""
    verb, role = verb_and_role(name.replace(" ", "_"))
    if (verb, role) not in context.vocabulary.interaction_ids:
        raise DataError(f"{name!r} is no V-COCO action with its role, such as hold_obj or walk")
    return {"verb": verb, "role": role} if role else {"object": None, "verb": verb}


_NUMBER = re.compile(r"(?:COCO_\w+_)?0*(\d+)")


def coco_number(name: Any) -> int:
    """Return COCO's image number from an id or a file name (COCO_val2014_000000000328.jpg). Raises `DataError`."""
    match = _NUMBER.fullmatch(image_id_of(str(name)))
    if match is None:
        raise DataError(f"{name!r} is no COCO image name such as COCO_val2014_000000000328.jpg", field=".file_name")
    return int(match[1])
