"""Protocols seen another way: at other thresholds, their mean, and on parts of the data (`--iou`, `--slice`).

A view is a `Protocol` whose `view` says what it is of. All views of a protocol share its candidates and IoU."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Any, NamedTuple

from hoicli.errors import UsageError, arg
from hoicli.evaluation.protocols import Protocol
from hoicli.evaluation.slices import CLASSES, MEASURES, TRIPLETS, Part, Slice, parse_slices
from hoicli.io.messages import note
from hoicli.vocabulary.labels import Vocabulary

MOST_THRESHOLDS = 100


@dataclass(frozen=True)
class Thresholds:
    """The thresholds that `--iou` asks for. values: all of them, each once, in their order; ranges: those whose mean is
    wanted, as (the range's text, its values)."""

    values: tuple[float, ...] = ()
    ranges: tuple[tuple[str, tuple[float, ...]], ...] = ()


def parse_thresholds(
    texts: Iterable[str], *, option: str = "iou", what: str = "IoU", minimum: float | None = None
) -> Thresholds:
    """Return the thresholds in texts like `0.5,0.75` or `0.5:0.95:0.05` (first, last and step). Steps are decimal, so
    that each value of a range is the very number that its decimals are read as. Values lie above 0, or from `minimum`
    on, and are at most 1; others raise `UsageError`. option, what: names of the option and of a value in messages."""
    values: dict[float, None] = {}
    ranges: dict[str, tuple[float, ...]] = {}
    parse = _ThresholdParser(option, what, minimum)
    for text in (part.strip() for part in chain.from_iterable(several.split(",") for several in texts)):
        if not text:
            raise UsageError(f"{arg(option)}: a threshold is empty; give numbers with commas between them: 0.5,0.75")
        if ":" not in text:
            values[float(parse.decimal(text, text, minimum))] = None
            continue
        name, members = parse.value_range(text)
        values |= dict.fromkeys(members)
        ranges[name] = members
    if len(values) > MOST_THRESHOLDS:
        raise UsageError(f"{arg(option)}: {len(values)} thresholds; give at most {MOST_THRESHOLDS}")
    return Thresholds(tuple(values), tuple(ranges.items()))


class _ThresholdParser(NamedTuple):
    """Reads one threshold or range of an option; its fields are parameters of `parse_thresholds`."""

    option: str
    what: str
    minimum: float | None

    def decimal(self, text: str, part: str, minimum: float | None = None) -> Decimal:
        """Return a part of a text as a number above 0, or from `minimum` on, and at most 1. Raises `UsageError` for
        anything else."""
        try:
            number = Decimal(part) if len(part) <= 12 and part.isascii() else Decimal("nan")
        except InvalidOperation:
            number = Decimal("nan")
        if not (number.is_finite() and (number > 0 if minimum is None else minimum <= number) and number <= 1):
            from_ = "above 0, at most 1" if minimum is None else f"from {minimum:g} to 1"
            raise UsageError(f"{arg(self.option, text)}: {part!r} is no {self.what}; give a number {from_}")
        return number

    def value_range(self, text: str) -> tuple[str, tuple[float, ...]]:
        """Return (the name of a range first:last:step, its decimals as short as possible; the values in it). Raises
        `UsageError` for a text that is no range."""
        parts = text.split(":")
        if len(parts) != 3:
            raise UsageError(f"{arg(self.option, text)}: write a number, or first:last:step, for example 0.5:0.95:0.05")
        first, last = (self.decimal(text, part, self.minimum) for part in parts[:2])
        step = self.decimal(text, parts[2])
        steps = (last - first) / step
        if steps != int(steps) or not 1 <= steps < MOST_THRESHOLDS:
            largest_step = MOST_THRESHOLDS - 1
            raise UsageError(
                f"{arg(self.option, text)}: steps of {step} do not lead from {first} to {last} (1 to {largest_step} "
                "steps)"
            )
        name = ":".join(f"{number.normalize():f}" for number in (first, last, step))
        return name, tuple(float(first + number * step) for number in range(int(steps) + 1))


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
        """Return the views of a protocol whose errors can be diagnosed: at each threshold, on all images and on each
        part of the slices of images. Slices of triplets have none: a corrected box may move to another part."""
        slices = tuple(slice_ for slice_ in self.of_data if slice_.of != TRIPLETS)
        thresholds = Thresholds(self.thresholds.values)
        return Views(thresholds, slices).views_of([row])

    def views_of(self, rows: Iterable[Protocol], named: Container[str] | None = None) -> list[Protocol]:
        """Return the views of each protocol: at each threshold, then the mean over each range; first on all data, then
        on each part of the slices of images and triplets. Without thresholds and slices, these are the rows themselves.
        Raises `UsageError` for a protocol in `named` (None: any) to which a slice does not apply; others go without
        that slice, and a note says so."""
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
        """Yield the views of one protocol in the order of `views_of`."""
        yield from _threshold_views(row, row.threshold, self.thresholds)
        for slice_ in self.of_data:
            for number in range(len(slice_.parts)) if has(row, slice_) else ():
                yield from _threshold_views(within(row, Part(slice_, number)), row.threshold, self.thresholds)


def has(row: Protocol, slice_: Slice) -> bool:
    """Return whether a slice applies to a protocol: all of its predictions must have what the slice measures."""
    return slice_.of != TRIPLETS or not row.person_first


ALONE = Views()
"""The protocols alone."""


def _threshold_views(row: Protocol, published: float, thresholds: Thresholds) -> Iterator[Protocol]:
    """Yield the protocol at each threshold, then its means over the ranges; without thresholds, the protocol itself.
    published: the threshold of the published protocol, which is no change in signatures."""
    if not thresholds.values:
        yield row
    for value in thresholds.values:
        yield _relabel(row, repr(value), changed=value != published, threshold=value)
    for label, members in thresholds.ranges:
        keys = tuple(_relabel(row, repr(value), changed=False).key for value in members)
        yield _relabel(row, label, changed=True, mean_of=keys)


def _relabel(row: Protocol, label: str, *, changed: bool, **columns: Any) -> Protocol:
    """Return the row as a view at the threshold or range `label`. changed: whether signatures say so; columns: what
    else differs."""
    setting = (("iou", label),) if changed else ()
    return replace(row, view=(("iou", label), *row.view), changed=(*row.changed, *setting), **columns)


def within(row: Protocol, part: Part) -> Protocol:
    """Return the view of a protocol on a part of the data, whose means leave out classes without ground truth there."""
    view = tuple(part.slice.tags(part.name).items())
    setting = tuple(part.slice.setting(part.name).items())
    return replace(
        row, part=part, view=(*row.view, *view), changed=(*row.changed, *setting), only_annotated_classes=True
    )


def read_view(row: Protocol, view: Mapping[str, str]) -> Protocol:
    """Return the view of a protocol that match records belong to, given their `view`; the row itself if that is empty.
    The records are already matched on the part of the data, so the view has its name but no `part`."""
    if not view:
        return row
    only_annotated = row.only_annotated_classes or "slice" in view
    return replace(row, view=tuple(view.items()), only_annotated_classes=only_annotated)


def check_part(row: Protocol) -> Protocol:
    """Return the view itself. Raises `UsageError` if only the name of its part of the data is known (`read_view`)."""
    slice_ = dict(row.view).get("slice")
    if row.part is None and slice_ is not None:
        raise UsageError(
            f"{arg('gt')}: the matches are of the slice {slice_}; leave {arg('gt')} out, or evaluate with the same "
            f"{arg('slice')}"
        )
    return row


def check_diagnosed(row: Protocol) -> None:
    """Raise `UsageError` for a view whose errors cannot be diagnosed (`Views.diagnosis_views`)."""
    slice_ = dict(row.view).get("slice", "")
    measure = MEASURES.get(slice_.partition(":")[0])
    if measure is not None and measure.of == TRIPLETS:
        raise UsageError(
            f"{arg('slice', slice_)}: cannot type errors, since fixing a box would put the prediction into another "
            "part; use people, pairs, verb, object, frequency or a file"
        )


def view_order(view: Mapping[str, str]) -> tuple[Any, ...]:
    """Return a key that sorts the views of match records as `Views.views_of` does, whatever the order of the lines:
    slices as in MEASURES, and others by name; parts by name or number; then thresholds."""
    slice_, part = view.get("slice", ""), view.get("part", "")
    measure = slice_.partition(":")[0]
    names = MEASURES[measure].names if measure in MEASURES else ()
    number = re.match(r"\d+(\.\d+)?", part)
    # A named part sorts by its place in the measure, and one between cuts (3-5) by its first number.
    rank_of_part = names.index(part) if part in names else float(number[0]) if number else len(names)
    rank_of_measure = list(MEASURES).index(measure) if measure in MEASURES else len(MEASURES)
    return (
        slice_ != "",
        rank_of_measure,
        slice_,
        rank_of_part,
        part,
        _number_or_zero(view.get("iou", "")),
        view.get("iou", ""),
    )


def _number_or_zero(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
