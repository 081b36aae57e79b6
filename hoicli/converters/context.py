"""What a conversion knows besides the file, and what the formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from hoicli.converters.numbers import ObjectNumbers, whole_number
from hoicli.errors import DataError
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record
from hoicli.vocabulary.labels import SUBJECT, Vocabulary

if TYPE_CHECKING:
    from hoicli.converters.containers.source import Source
    from hoicli.converters.postprocessing import PostProcessing
    from hoicli.records.intake import ErrorPolicy


T = TypeVar("T")


@dataclass
class Context:
    """What a conversion knows besides the file, and what it found out.

    images: image ids in the order of a source that has only positions or numbers, from `--image-list`; None if not
    given. image_numbers, image_sizes: from the same file, where it has them: the image id of each `img_id`, and each
    image's width and height.
    logits: how raw outputs become triplets (`--activation` and its like).
    format, target: the names of FORMATS that are read and written.
    split: "test" or "train", for sources that hold both.
    verb_base, object_order: how a file's verbs and objects are numbered, where that is not as its format has them.
    coords, boxes, to_vocabulary: what `--coords`, `--boxes` and `--to-vocabulary` say, for answers of models.
    announce: says an assumption once (joins by position, derived labels).
    dropped: what was left out, by reason: [count, first place].
    place: the item that `each` is at.
    """

    vocabulary: Vocabulary
    policy: ErrorPolicy
    announce: Callable[[str], None]
    format: str = ""
    target: str = ""
    images: Sequence[str] | None = None
    image_numbers: Mapping[int, str] = field(default_factory=dict)
    image_sizes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    logits: PostProcessing | None = None
    split: str = "test"
    verb_base: int | None = None
    object_order: str | None = None
    coords: str | None = None
    boxes: str | None = None
    to_vocabulary: bool = False
    dropped: dict[str, tuple[int, str]] = field(default_factory=dict)
    place: str = ""

    def verb(self, number: Any, field_name: str, *, base: int) -> str:
        """The verb of a number that the format counts from `base`. Raises `DataError` naming the field."""
        return entry(self.vocabulary.verbs, number, field_name, base=self.base(base))

    def base(self, base: int) -> int:
        """From which number verbs are counted in this file, `base` being the format's."""
        return base if self.verb_base is None else self.verb_base

    def objects(self, order: str, hint: str = "") -> ObjectNumbers:
        """The objects by their numbers in this file, `order` (of OBJECT_ORDERS) being the format's."""
        return ObjectNumbers.of(self.vocabulary, self.object_order or order, hint)

    def drop(self, reason: str, place: str, count: int = 1) -> None:
        """Count something that is left out; the summary says how many, why, and where the first was."""
        total, first = self.dropped.get(reason, (0, place))
        self.dropped[reason] = (total + count, first)

    def each(
        self, items: Iterable[tuple[str, Any]], build: Callable[[Any], Record], source: Source
    ) -> Iterator[Record]:
        """`build` on every (field, item), with whatever is wrong about an item told as `file: field: what`.

        While an item is built, `place` is its `file: field`. Under `--on-error skip` a bad item is dropped and
        counted; where the list itself breaks off, what came before is kept.
        """
        for where, item in self._until_broken(items):
            self.place = f"{source.name}: {where}"
            try:
                record = guarded(partial(build, item), source, where)
            except DataError as error:
                self.policy.handle(error)
            else:
                yield record

    def _until_broken(self, items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        try:
            yield from items
        except DataError as error:
            self.policy.handle(error)


def guarded(step: Callable[[], T], source: Source, where: str | None = None) -> T:
    """A step of a format's module, with what it stumbles over told as the file's fault: a `DataError` of one line.

    `where`: the field the step is about, to which a `DataError` that it raises adds the field within; without it such
    an error names its place already. A format is read by what its project writes; of anything else it is enough to say
    that it is something else.
    """
    try:
        return step()
    except DataError as error:
        if where is None:
            raise
        raise DataError(error.problem, place=source.name, field=where + error.field, code=error.code) from None
    except KeyError as error:
        problem = f"has no {error.args[0]!r}; is this really the format? (--from NAME chooses another)"
    except (TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        problem = f"is not shaped as expected ({error}); --from NAME chooses another format"
    raise DataError(problem, place=source.name, field=where or "")


def entry(items: Sequence[T], index: Any, field_name: str, *, base: int = 0) -> T:
    """`items[index - base]`, strictly: raises `DataError` naming the field for anything but the number of an item."""
    number = (index if type(index) is int else whole_number(index, field_name)) - base
    if not 0 <= number < len(items):
        shown = str(index).strip()
        raise DataError(f"id {shown}, but there are {len(items)}, counted from {base}", field=field_name)
    return items[number]


class BoxTable:
    """Collects an image's boxes, the same box of the same label once, in the order of first appearance."""

    def __init__(self) -> None:
        self.boxes: list[list[float]] = []
        self.labels: list[str] = []
        self._index: dict[tuple[str, tuple[float, ...]], int] = {}

    def add(self, box: Sequence[float], label: str) -> int:
        """The index of the box, new or not."""
        key = (label, tuple(box))
        if key not in self._index:
            self._index[key] = len(self.boxes)
            self.boxes.append(list(box))
            self.labels.append(label)
        return self._index[key]

    def pair(self, person: Sequence[float], other: Sequence[float], label: str) -> dict[str, Any]:
        """A triplet without its verb: the indices of a person's box and of another box with its label."""
        return {"subject": self.add(person, SUBJECT), "object": self.add(other, label)}


@dataclass
class Noticed:
    """Something that is read but should be known of: how often, and where first."""

    count: int = 0
    first: str = ""

    def add(self, place: str) -> None:
        """Count another one."""
        self.count += 1
        self.first = self.first or place

    def __str__(self) -> str:
        return f"{self.count:,} (the first: {self.first})"


def image_record(
    file_name: str,
    boxes: Sequence[Sequence[float]],
    labels: Sequence[str | None],
    hois: Sequence[Mapping[str, Any]],
    head: Mapping[str, Any] | None = None,
    **rest: Any,
) -> Record:
    """The record of the image in a file; `head` is what follows its name (another image_id may be part of it)."""
    record: Record = {"image_id": image_id_of(file_name), "file_name": file_name, **(head or {})}
    return {**record, "boxes": boxes, "labels": labels, "hois": hois, **rest}


def kept(item: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """What an item has under the keys, as it is."""
    return {key: item[key] for key in keys if key in item}
