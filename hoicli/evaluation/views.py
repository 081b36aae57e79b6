"""Protocols seen another way: at other thresholds, their mean, and on parts of the data (`--iou`, `--slice`).

A view is a `Protocol` whose `view` says what it is of. All views of a protocol share its candidates and IoU."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Any

from hoicli.errors import UsageError, arg
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.slices import CLASSES, MEASURES, TRIPLETS, Part, Slice, parse_slices
from hoicli.io.messages import note
from hoicli.vocabulary.labels import Vocabulary

MOST_THRESHOLDS = 100


@dataclass(frozen=True)
class Thresholds:
    """What `--iou` asks for: values, each once, in their order; ranges, (label, its values), whose mean is wanted."""

    values: tuple[float, ...] = ()
    ranges: tuple[tuple[str, tuple[float, ...]], ...] = ()


def parse_thresholds(
    texts: Iterable[str], *, option: str = "iou", what: str = "IoU", minimum: float | None = None
) -> Thresholds:
    """`0.5,0.75` or `0.5:0.95:0.05` (first, last and step). Steps are decimal: the values of a range are the very
    numbers that its decimals are read as. They lie above 0, or from `minimum` on, and are at most 1. option and what:
    of messages. Raises `UsageError` for anything else."""
    values: dict[float, None] = {}
    ranges: dict[str, tuple[float, ...]] = {}

    def decimal(text: str, part: str, minimum: float | None = None) -> Decimal:
        try:
            number = Decimal(part) if len(part) <= 12 and part.isascii() else Decimal("nan")
        except InvalidOperation:
            number = Decimal("nan")
        if not (number.is_finite() and (number > 0 if minimum is None else minimum <= number) and number <= 1):
            from_ = "above 0, at most 1" if minimum is None else f"from {minimum:g} to 1"
            raise UsageError(f"{arg(option, text)}: {part!r} is no {what}; give a number {from_}")
        return number

    for text in (part.strip() for part in chain.from_iterable(several.split(",") for several in texts)):
        if not text:
            raise UsageError(f"{arg(option)}: a threshold is empty; give numbers with commas between them: 0.5,0.75")
        parts = text.split(":")
        if len(parts) == 1:
            values[float(decimal(text, text, minimum))] = None
            continue
        if len(parts) != 3:
            raise UsageError(f"{arg(option, text)}: write a number, or first:last:step, for example 0.5:0.95:0.05")
        first, last, step = (
            decimal(text, parts[0], minimum),
            decimal(text, parts[1], minimum),
            decimal(text, parts[2]),
        )
        steps = (last - first) / step
        if steps != int(steps) or not 1 <= steps < MOST_THRESHOLDS:
            largest_step = MOST_THRESHOLDS - 1
            raise UsageError(
                f"{arg(option, text)}: steps of {step} do not lead from {first} to {last} (1 to {largest_step} steps)"
            )
        members = tuple(float(first + number * step) for number in range(int(steps) + 1))
        values |= dict.fromkeys(members)
        ranges[":".join(f"{number.normalize():f}" for number in (first, last, step))] = members
    if len(values) > MOST_THRESHOLDS:
        raise UsageError(f"{arg(option)}: {len(values)} thresholds; give at most {MOST_THRESHOLDS}")
    return Thresholds(tuple(values), tuple(ranges.items()))


@dataclass(frozen=True)
class Views:
    """What `--iou` and `--slice` ask for besides the protocols themselves."""

    thresholds: Thresholds = Thresholds()
    slices: tuple[Slice, ...] = ()

    @classmethod
    def parse(cls, ious: Iterable[str], slices: Iterable[str], vocabulary: Vocabulary) -> Views:
        """Parse as `parse_thresholds` and `parse_slices` do, which say what they raise."""
        return cls(parse_thresholds(ious), tuple(parse_slices(slices, vocabulary)))

    @property
    def of_classes(self) -> tuple[Slice, ...]:
        """The slices of classes, which need no matching of their own."""
        return tuple(slice_ for slice_ in self.slices if slice_.of == CLASSES)

    @property
    def of_data(self) -> tuple[Slice, ...]:
        """The slices of images and triplets."""
        return tuple(slice_ for slice_ in self.slices if slice_.of != CLASSES)

    def diagnosis_views(self, row: Protocol) -> list[Protocol]:
        """The views of a protocol that errors have: at each threshold, on all images and on each part of the slices of
        images. Not on parts of slices of triplets: a repair gives a prediction other boxes, and so another part."""
        slices = tuple(slice_ for slice_ in self.of_data if slice_.of != TRIPLETS)
        thresholds = Thresholds(self.thresholds.values)
        return Views(thresholds, slices).views_of([row])

    def views_of(self, rows: Iterable[Protocol], named: Container[str] | None = None) -> list[Protocol]:
        """Each protocol's views: at each threshold, then the mean over each range, first of all data, then of each part
        of the slices of images and triplets. Without thresholds and slices, the rows themselves.

        A protocol in `named` (None: any) that has no such slice raises `UsageError`; without being named it does
        without, and a note says so.
        """
        rows = list(rows)
        for slice_ in self.of_data:
            if without := [row.name for row in rows if not has(row, slice_)]:
                problem = (
                    f"{arg('slice', slice_.name)}: {', '.join(without)} go by the person first, and may need no object"
                )
                if named is None or any(name in named for name in without):
                    raise UsageError(f"{problem}; use people, pairs, verb, a file, or protocol vcoco-qpic")
                note(f"left out: {problem}")
        if self.of_data and (counted := [row.name for row in rows if not row.only_annotated_classes]):
            named_slices = ",".join(slice_.name for slice_ in self.of_data)
            note(
                f"{arg('slice', named_slices)}: the mean on a part is over the classes with ground truth there; on all "
                f"data the others count 0 ({', '.join(counted)}): compare parts with parts"
            )
        return list(chain.from_iterable(self._protocol_views(row) for row in rows))

    def _protocol_views(self, row: Protocol) -> Iterator[Protocol]:
        yield from _threshold_views(row, row.threshold, self.thresholds)
        for slice_ in self.of_data:
            for number in range(len(slice_.parts)) if has(row, slice_) else ():
                yield from _threshold_views(within(row, Part(slice_, number)), row.threshold, self.thresholds)


def has(row: Protocol, slice_: Slice) -> bool:
    """Whether a protocol's predictions all have what the slice goes by."""
    return slice_.of != TRIPLETS or not row.person_first


ALONE = Views()
"""The protocols alone."""


def _threshold_views(row: Protocol, published: float, thresholds: Thresholds) -> Iterator[Protocol]:
    """`row` at each threshold, and the means over ranges; `row` itself if there are none. published: its own."""
    if not thresholds.values:
        yield row
    for value in thresholds.values:
        yield _relabel(row, repr(value), changed=value != published, threshold=value)
    for label, members in thresholds.ranges:
        keys = tuple(_relabel(row, repr(value), changed=False).key for value in members)
        yield _relabel(row, label, changed=True, mean_of=keys)


def _relabel(row: Protocol, label: str, *, changed: bool, **columns: Any) -> Protocol:
    """The row with other columns; signatures say so if they are `changed`."""
    setting = (("iou", label),) if changed else ()
    return replace(row, view=(("iou", label), *row.view), changed=(*row.changed, *setting), **columns)


def within(row: Protocol, part: Part) -> Protocol:
    """The protocol on a part of the data: classes without ground truth there are left out of its means."""
    view = tuple(part.slice.tags(part.name).items())
    setting = tuple(part.slice.setting(part.name).items())
    return replace(
        row, part=part, view=(*row.view, *view), changed=(*row.changed, *setting), only_annotated_classes=True
    )


def read_view(row: Protocol, view: Mapping[str, str]) -> Protocol:
    """The view of a protocol that match records are of, by their `view`; the row itself for an empty one. What its
    lines hold was matched already: the view knows its name, not its part."""
    if not view:
        return row
    in_part = "slice" in view
    only = row.only_annotated_classes or in_part
    return replace(row, view=tuple(view.items()), only_annotated_classes=only)


def check_part(row: Protocol) -> Protocol:
    """The view itself. Raises `UsageError` if it is of a part of which it knows only the name (`read_view`)."""
    slice_ = dict(row.view).get("slice")
    if row.part is None and slice_ is not None:
        raise UsageError(
            f"{arg('gt')}: the matches are of the slice {slice_}; leave {arg('gt')} out, or evaluate with the same "
            f"{arg('slice')}"
        )
    return row


def check_diagnosed(row: Protocol) -> None:
    """Raises `UsageError` for a view that errors do not have (`Views.diagnosis_views`)."""
    slice_ = dict(row.view).get("slice", "")
    measure = MEASURES.get(slice_.partition(":")[0])
    if measure is not None and measure.of == TRIPLETS:
        raise UsageError(
            f"{arg('slice', slice_)}: cannot type errors, since fixing a box would put the prediction into another "
            "part; use people, pairs, verb, object, frequency or a file"
        )


def view_order(view: Mapping[str, str]) -> tuple[Any, ...]:
    """Sorts views of match records as `Views.views_of` has them, whatever the order of the lines: slices as in
    MEASURES, then by name."""
    slice_, part = view.get("slice", ""), view.get("part", "")
    measure = slice_.partition(":")[0]
    names = MEASURES[measure].names if measure in MEASURES else ()
    number = re.match(r"\d+(\.\d+)?", part)
    place = names.index(part) if part in names else float(number[0]) if number else len(names)
    rank_of_measure = list(MEASURES).index(measure) if measure in MEASURES else len(MEASURES)
    return (
        slice_ != "",
        rank_of_measure,
        slice_,
        place,
        part,
        _number_or_zero(view.get("iou", "")),
        view.get("iou", ""),
    )


def _number_or_zero(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
