"""What a call may be given as a stream: a path or several, records, or arrays by image."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

from hoicli.api.calling import placed
from hoicli.converters.formats import FORMATS
from hoicli.converters.opening import Opening
from hoicli.converters.store import located
from hoicli.errors import DataError, UsageError
from hoicli.evaluation.predictions import Predictions
from hoicli.io.streams import Item, Line, Stream
from hoicli.records.detections import detections
from hoicli.records.foreign import plain
from hoicli.records.parsing import non_finite
from hoicli.vocabulary.labels import Vocabulary

Path: TypeAlias = "str | os.PathLike[str]"
Given: TypeAlias = "Path | Sequence[Path] | Iterable[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]]"
"""A path, or several that are read as one stream, or the name of ground truth (hico:test); records, as in a line of
JSONL; or the arrays of each image by its id, named as the arguments of `Evaluator.update`."""


class HeldStream(Stream):
    """Records in memory as a stream of lines."""

    def __init__(self, items: Iterable[Item], argument: str, label: str) -> None:
        Stream.__init__(self, [argument], label, lambda _: [])
        self._items = list(items)

    def _read(self) -> Iterator[Line]:
        return iter(self._items)


class _HeldPredictions(HeldStream, Predictions):
    """Predictions or match records in memory."""


@dataclass(frozen=True)
class Inputs:
    """How a call's arguments become streams. vocabulary: of the labels and verbs in arrays, None where arrays are no
    input; opening: how files are read that are not JSONL."""

    vocabulary: Vocabulary | None
    opening: Opening

    @classmethod
    def of(
        cls,
        vocabulary: Vocabulary,
        dataset: str | None,
        on_error: str,
        source_format: str | None = None,
        image_list: Path | None = None,
    ) -> Inputs:
        """For a call that works in a vocabulary; the others are its arguments. Raises `UsageError` for an unknown
        format."""
        check_format(source_format)
        opening = Opening(
            dataset=dataset or vocabulary.path or vocabulary.name,
            said=dataset is not None,
            fixed=True,
            source_format=source_format,
            image_list=None if image_list is None else os.fspath(image_list),
            skip=on_error == "skip",
        )
        return cls(vocabulary, opening)

    def stream(self, given: Given, argument: str, label: str) -> Stream:
        """A stream of ground truth or of other records that are no predictions. argument: the name in messages; label:
        what the records are. Raises `UsageError` for what is none of `Given`, `DataError` for bad arrays."""
        paths = paths_of(given, argument)
        if paths is not None:
            return Stream([located(path) for path in paths], label, self.opening.truth)
        return HeldStream(held(given, argument, self.vocabulary, scored=False), argument, label)

    def predictions(self, given: Given, argument: str) -> Predictions:
        """As `stream`, of predictions or match records."""
        paths = paths_of(given, argument)
        if paths is not None:
            return Predictions(paths, self.opening.predictions)
        return _HeldPredictions(held(given, argument, self.vocabulary, scored=True), argument, "predictions")


def check_format(source_format: str | None) -> None:
    """Raises `UsageError` for a format that is not read."""
    if source_format is not None and (source_format not in FORMATS or not FORMATS[source_format].reads):
        readable = [row.name for row in FORMATS.values() if row.reads]
        raise UsageError(f"source_format {source_format!r}: choose from {', '.join(readable)}")


def held(given: Any, argument: str, vocabulary: Vocabulary | None, *, scored: bool | None = None) -> Iterator[Item]:
    """Records, or the arrays of images, as lines. scored: whether arrays are of predictions; None: whether they have
    scores. Raises as `Inputs.stream`."""
    if isinstance(given, Mapping):
        for image_id, arrays in given.items():
            place = f"{argument}[{image_id!r}]"
            if vocabulary is None:
                raise UsageError(f"{place}: give records (dicts) in a list, or a path; this takes no arrays")
            if not isinstance(arrays, Mapping):
                problem = f"{type(arrays).__name__}, not a dict of arrays (boxes, labels, ...); give records as a list"
                raise DataError(problem, place=place)
            predicted = "score" in arrays if scored is None else scored
            try:
                found = detections(str(image_id), arrays, vocabulary, scored=predicted)
            except DataError as error:
                raise placed(error, place) from None
            yield Item(argument, 1, _data(found.record(vocabulary, scored=predicted), place), repr(image_id))
        return
    for index, record in enumerate(given):
        place = f"{argument}[{index}]"
        if not isinstance(record, Mapping):
            problem = f"{type(record).__name__}, not a dict; give a list of dicts, each as a line of JSONL has it"
            raise DataError(problem, place=place)
        yield Item(argument, 1, _data(record, place), str(index))


def paths_of(given: Given, argument: str) -> list[str] | None:
    """The paths, if these are paths. Raises `UsageError` for what is none of `Given`."""
    if isinstance(given, str | os.PathLike):
        return [_path(given)]
    if not isinstance(given, Iterable):
        kind = type(given).__name__
        raise UsageError(f"{argument}: is {kind}; give a path, records (dicts), or arrays by image id")
    if isinstance(given, Sequence) and given and all(isinstance(path, str | os.PathLike) for path in given):
        return [_path(path) for path in given]
    return None


def _path(path: Path) -> str:
    text = os.fspath(path)
    if "\0" in text:
        raise UsageError(f"{text!r}: no path has a NUL character; check it")
    return os.path.join(".", text) if text == "-" else text


def _data(record: Mapping[str, Any], place: str) -> bytes:
    """A record as JSON. Raises `DataError` at `place` for what JSON does not have."""
    try:
        data = orjson.dumps(record if type(record) is dict else dict(record), default=plain)
    except TypeError as error:
        raise DataError(f"cannot be written as JSON ({error}); give lists, numbers and text", place=place) from None
    if b"null" in data:  # orjson's word for a NaN, too
        for field, value in non_finite(_lists(record)):
            raise DataError(
                f"{value}: numbers must be finite; correct what wrote it, or drop the item", place=place, field=field
            )
    return data


def _lists(value: Any) -> Any:
    """A record with lists and numbers in place of arrays."""
    if isinstance(value, Mapping):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else plain(value)
