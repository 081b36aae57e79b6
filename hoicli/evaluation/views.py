"""Views of protocols: a protocol at other IoU thresholds, the mean over several, or on parts of the data (`--iou`,
`--slice`).

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
    """The IoU thresholds that `--iou` asks for. values: all of them, each once, in the order given; ranges: for each
    range such as 0.5:0.95:0.05, over whose values a mean is wanted too, its text and its values."""

    values: tuple[float, ...] = ()
    ranges: tuple[tuple[str, tuple[float, ...]], ...] = ()


def parse_thresholds(
    texts: Iterable[str], *, option: str = "iou", what: str = "IoU", minimum: float | None = None
) -> Thresholds:
    """Return the thresholds in the texts of an option, like `0.5,0.75` or `0.5:0.95:0.05` (first, last and step).

    Values must be above 0 (or at least `minimum`, if given) and at most 1; others raise `UsageError`. option, what: how
    messages name the option and one value. Ranges are computed in decimals, not in floats, so that each value equals
    the number a user would type for it (0.7, not 0.7000000000000001)."""
    values: dict[float, None] = {}  # a dict as an ordered set
    ranges: dict[str, tuple[float, ...]] = {}
    parser = _ThresholdParser(option, what, minimum)
    parts = chain.from_iterable(several.split(",") for several in texts)
    for part in parts:
        text = part.strip()
        if not text:
            raise UsageError(f"{arg(option)}: a threshold is empty; give numbers with commas between them: 0.5,0.75")
        if ":" not in text:
            values[float(parser.read_number(text, part=text, minimum=minimum))] = None
            continue
        range_name, range_values = parser.read_range(text)
        values |= dict.fromkeys(range_values)
        ranges[range_name] = range_values
    if len(values) > MOST_THRESHOLDS:
        raise UsageError(f"{arg(option)}: {len(values)} thresholds; give at most {MOST_THRESHOLDS}")
    return Thresholds(tuple(values), tuple(ranges.items()))


class _ThresholdParser(NamedTuple):
    """Reads one threshold or range of an option. option, what: how error messages name the option and one value;
    minimum: the smallest value allowed, or None if values must be above 0."""

    option: str
    what: str
    minimum: float | None

    def read_number(self, text: str, part: str, minimum: float | None = None) -> Decimal:
        """Return the number written in `part`, which must be above 0 (or at least `minimum`, if given) and at most 1.
        Raises `UsageError` for anything else. text: what the user gave, of which `part` is a part, for the message."""
        try:
            number = Decimal(part) if len(part) <= 12 and part.isascii() else Decimal("nan")
        except InvalidOperation:
            number = Decimal("nan")
        is_high_enough = number.is_finite() and (number > 0 if minimum is None else number >= minimum)
        if not is_high_enough or number > 1:
            limits = "above 0, at most 1" if minimum is None else f"from {minimum:g} to 1"
            raise UsageError(f"{arg(self.option, text)}: {part!r} is no {self.what}; give a number {limits}")
        return number

    def read_range(self, text: str) -> tuple[str, tuple[float, ...]]:
        """Return (the text of a range first:last:step with numbers as short as possible; the values in the range). For
        example `0.50:0.60:0.05` gives ("0.5:0.6:0.05", (0.5, 0.55, 0.6)). Raises `UsageError` for a bad range."""
        parts = text.split(":")
        if len(parts) != 3:
            raise UsageError(f"{arg(self.option, text)}: write a number, or first:last:step, for example 0.5:0.95:0.05")
        first = self.read_number(text, parts[0], self.minimum)
        last = self.read_number(text, parts[1], self.minimum)
        step = self.read_number(text, parts[2])
        count = (last - first) / step
        if count != int(count) or not 1 <= count < MOST_THRESHOLDS:
            problem = f"steps of {step} do not lead from {first} to {last} (1 to {MOST_THRESHOLDS - 1} steps)"
            raise UsageError(f"{arg(self.option, text)}: {problem}")
        name = ":".join(f"{number.normalize():f}" for number in (first, last, step))
        return name, tuple(float(first + number * step) for number in range(int(count) + 1))


@dataclass(frozen=True)
class Views:
    """The IoU thresholds and the slices (partitions of the data) that `--iou` and `--slice` ask for."""

    thresholds: Thresholds = Thresholds()
    slices: tuple[Slice, ...] = ()

    @classmethod
    def parse(cls, ious: Iterable[str], slices: Iterable[str], vocabulary: Vocabulary) -> Views:
        """Return the views that the texts of `--iou` and `--slice` name. Raises `UsageError` or `DataError` for bad
        texts."""
        return cls(parse_thresholds(ious), tuple(parse_slices(slices, vocabulary)))

    @property
    def of_classes(self) -> tuple[Slice, ...]:
        """The slices that partition the classes. They only change which classes are averaged, not the matching."""
        return tuple(slice_ for slice_ in self.slices if slice_.of == CLASSES)

    @property
    def of_data(self) -> tuple[Slice, ...]:
        """The slices that partition the images or the triplets, so that each part has results of its own."""
        return tuple(slice_ for slice_ in self.slices if slice_.of != CLASSES)

    def diagnosis_views(self, protocol: Protocol) -> list[Protocol]:
        """Return the views of a protocol whose errors can be diagnosed: at each threshold, on all images and on each
        part of the slices of images. Slices of triplets have none: a corrected box may move to another part."""
        slices = tuple(slice_ for slice_ in self.of_data if slice_.of != TRIPLETS)
        thresholds_without_means = Thresholds(self.thresholds.values)
        return Views(thresholds_without_means, slices).views_of([protocol])

    def views_of(self, protocols: Iterable[Protocol], named: Container[str] | None = None) -> list[Protocol]:
        """Return the views of each protocol: at each threshold, then the mean over each range; first on all data, then
        on each part of the slices of images and triplets. Without thresholds and slices, these are the protocols
        themselves. If a slice does not apply to a protocol that is `named` (None: all are), `UsageError` is raised;
        other protocols go without that slice, and a note says so."""
        protocols = list(protocols)
        whole_image = [protocol.name for protocol in protocols if protocol.whole_image]
        if whole_image and self.thresholds.values:
            problem = "classifies whole images, without boxes, at no threshold; leave one of the two out"
            raise UsageError(f"{arg('iou')}: {whole_image[0]} {problem}")
        for slice_ in self.of_data:
            if without := [protocol.name for protocol in protocols if not slice_applies(slice_, protocol)]:
                if whole_image:
                    reason = "go by whole images, without boxes"
                    instead = "people, pairs, verb, object or a file"
                else:
                    reason = "go by the person first, and may need no object"
                    instead = "people, pairs, verb, a file, or protocol vcoco-qpic"
                problem = f"{arg('slice', slice_.name)}: {', '.join(without)} {reason}"
                if named is None or any(name in named for name in without):
                    raise UsageError(f"{problem}; use {instead}")
                note(f"left out: {problem}")
        counting_absent = [protocol.name for protocol in protocols if not protocol.only_annotated_classes]
        if self.of_data and counting_absent:
            named_slices = ",".join(slice_.name for slice_ in self.of_data)
            note(
                f"{arg('slice', named_slices)}: the mean on a part is over the classes with ground truth there; on all "
                f"data the others count 0 ({', '.join(counting_absent)}): compare parts with parts"
            )
        return list(chain.from_iterable(self._protocol_views(protocol) for protocol in protocols))

    def _protocol_views(self, protocol: Protocol) -> Iterator[Protocol]:
        """Yield all views of a protocol at every threshold: first on all data, then on each part of the slices that
        apply."""
        yield from _threshold_views(protocol, protocol.threshold, self.thresholds)
        for slice_ in self.of_data:
            if slice_applies(slice_, protocol):
                for number in range(len(slice_.parts)):
                    on_part = view_on_part(protocol, Part(slice_, number))
                    yield from _threshold_views(on_part, protocol.threshold, self.thresholds)


def slice_applies(slice_: Slice, protocol: Protocol) -> bool:
    """Return whether a slice applies to a protocol. A slice of triplets sorts predictions by both of their boxes, but
    person-first protocols (V-COCO's official ones) match people, who may act without any object box, and some classify
    whole images."""
    return slice_.of != TRIPLETS or not (protocol.person_first or protocol.whole_image)


ALONE = Views()
"""No other thresholds and no slices: the protocols themselves."""


def _threshold_views(protocol: Protocol, published: float, thresholds: Thresholds) -> Iterator[Protocol]:
    """Yield the protocol at each threshold, then its mean over each range; without thresholds, the protocol itself.
    published: the IoU threshold of the published protocol; a signature states only a threshold that differs from it."""
    if not thresholds.values:
        yield protocol
    for value in thresholds.values:  # also those of the ranges
        yield _set_threshold(protocol, repr(value), is_signed=value != published, threshold=value)
    for range_text, range_values in thresholds.ranges:
        # a mean names the views that it is over by their keys, which are the same whether thresholds are signed or not
        keys = tuple(_set_threshold(protocol, repr(value), is_signed=False).key for value in range_values)
        yield _set_threshold(protocol, range_text, is_signed=True, mean_of=keys)


def _set_threshold(protocol: Protocol, label: str, *, is_signed: bool, **fields: Any) -> Protocol:
    """Return the view of a protocol at an IoU threshold. label: the threshold or range, as rows and signatures write
    it; is_signed: whether signatures state it; fields: other fields of `Protocol` that differ in this view."""
    setting = (("iou", label),) if is_signed else ()
    return replace(protocol, view=(("iou", label), *protocol.view), changed=(*protocol.changed, *setting), **fields)


def view_on_part(protocol: Protocol, part: Part) -> Protocol:
    """Return the view of a protocol on a part of the data, whose means leave out classes without ground truth there."""
    view = (*protocol.view, *part.slice.tags(part.name).items())
    changed = (*protocol.changed, *part.slice.setting(part.name).items())
    return replace(protocol, part=part, view=view, changed=changed, only_annotated_classes=True)


def read_view(protocol: Protocol, view: Mapping[str, str]) -> Protocol:
    """Return the view of a protocol that match records belong to; the protocol itself if they are of none. view: the
    field `view` of the records, such as {"iou": "0.75", "slice": "people", "part": "2"}. The records were matched on
    that part of the data already, so `Protocol.part` stays None."""
    if not view:
        return protocol
    only_annotated = protocol.only_annotated_classes or "slice" in view
    return replace(protocol, view=tuple(view.items()), only_annotated_classes=only_annotated)


def check_part(view: Protocol) -> None:
    """Raise `UsageError` if a view of a protocol comes from match records on a slice: they name the part, but not which
    images or triplets are in it, so ground truth cannot be restricted to it."""
    slice_ = dict(view.view).get("slice")
    if view.part is None and slice_ is not None:
        raise UsageError(
            f"{arg('gt')}: the matches are of the slice {slice_}; leave {arg('gt')} out, or evaluate with the same "
            f"{arg('slice')}"
        )


def check_diagnosed(view: Protocol) -> None:
    """Raise `UsageError` if the errors of a view cannot be typed: on a part of a slice of triplets, where correcting a
    box may move the prediction to another part."""
    slice_ = dict(view.view).get("slice", "")
    measure = MEASURES.get(slice_.partition(":")[0])
    if measure is not None and measure.of == TRIPLETS:
        raise UsageError(
            f"{arg('slice', slice_)}: cannot type errors, since fixing a box would put the prediction into another "
            "part; use people, pairs, verb, object, frequency or a file"
        )


def view_order(view: Mapping[str, str]) -> tuple[Any, ...]:
    """Return a sorting key that puts views read from match records into the order in which `Views.views_of` makes them.

    view: the `view` field of a match record, with the keys iou, slice and part. All data comes first, then the slices
    as in MEASURES and others by name; the parts of a slice in their order; then the thresholds."""
    slice_ = view.get("slice", "")
    part = view.get("part", "")
    measure = slice_.partition(":")[0]
    names = MEASURES[measure].names if measure in MEASURES else ()
    # A named part (small) sorts by its place in the measure, a part between two cuts (3-5) by its first number.
    first_number = re.match(r"\d+(\.\d+)?", part)
    if part in names:
        rank_of_part: float = names.index(part)
    elif first_number:
        rank_of_part = float(first_number[0])
    else:
        rank_of_part = len(names)
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
    """Return the number that a text spells, 0 if it spells none (as a range of thresholds does)."""
    try:
        return float(text)
    except ValueError:
        return 0.0
