"""What a call may be given as a stream: a path or several, records, or arrays by image."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

from hoicli.arrays.detections import detections
from hoicli.arrays.foreign import plain
from hoicli.errors import DataError, UsageError
from hoicli.evaluation.predictions import Predictions
from hoicli.io.streams import Item, Line, Stream
from hoicli.records.parsing import non_finite
from hoicli.vocabulary.labels import Vocabulary

Path: TypeAlias = "str | os.PathLike[str]"
Records: TypeAlias = "Iterable[Mapping[str, Any]]"
Arrays: TypeAlias = "Mapping[str | int, Mapping[str, Any]]"
Given: TypeAlias = "Path | Sequence[Path] | Records | Arrays"
"""A path, or several that are read as one stream; records, as in a line of JSONL; or the arrays of each image by its
id, named as the arguments of `Evaluator.update`."""


class _Held(Stream):
    """Records in memory as a stream of lines; errors name the argument and the index, or the image of arrays."""

    def __init__(self, lines: list[Line], name: str, label: str) -> None:
        Stream.__init__(self, [], label)
        self._names = [name]
        self._lines = lines

    def _read(self) -> Iterator[Line]:
        return iter(self._lines)

    def shares(self) -> list[Stream]:
        """None: what is in memory is not split."""
        return []


class _HeldPredictions(_Held, Predictions):
    """Predictions or match records in memory."""

    def __init__(self, lines: list[Line], name: str) -> None:
        _Held.__init__(self, lines, name, "predictions")


def stream(given: Given, name: str, label: str, vocabulary: Vocabulary | None = None) -> Stream:
    """A stream of records that are no predictions. name: the argument; label: what they are; vocabulary: of arrays'
    labels and verbs. Raises `UsageError` for what is none of `Given`, `DataError` for bad arrays."""
    paths = _paths(given, name)
    if paths is not None:
        return Stream(paths, label)
    return _Held(list(_lines(given, name, vocabulary, scored=False)), name, label)


def predictions(given: Given, name: str, vocabulary: Vocabulary | None = None) -> Predictions:
    """As `stream`, of predictions or match records."""
    paths = _paths(given, name)
    if paths is not None:
        return Predictions(paths)
    return _HeldPredictions(list(_lines(given, name, vocabulary, scored=True)), name)


def _paths(given: Given, name: str) -> list[str] | None:
    """The paths, if these are paths. Raises `UsageError` for what is none of `Given`."""
    if isinstance(given, str | os.PathLike):
        return [_path(given)]
    if not isinstance(given, Iterable):
        kind = type(given).__name__
        raise UsageError(f"{name}: is {kind}; give a path, records (dicts), or arrays by image id")
    if isinstance(given, Sequence) and given and all(isinstance(path, str | os.PathLike) for path in given):
        return [_path(path) for path in given]
    return None


def _path(path: Path) -> str:
    text = os.fspath(path)
    return os.path.join(".", text) if text == "-" else text


def _lines(given: Any, name: str, vocabulary: Vocabulary | None, *, scored: bool) -> Iterator[Line]:
    if isinstance(given, Mapping):
        for image_id, arrays in given.items():
            yield _Image(name, image_id, _data(_record(image_id, arrays, name, vocabulary, scored=scored), ""))
        return
    for index, record in enumerate(given):
        place = f"{name}[{index}]"
        if not isinstance(record, Mapping):
            raise DataError(f"{type(record).__name__}, not a dict; give a record for each image", place=place)
        yield Item(name, index, _data(record, place))


class _Image(Line):
    """The arrays of an image as a line: `number` is the image's id."""

    def __init__(self, file: str, image_id: Any, data: bytes) -> None:
        super().__init__(file, image_id, data)

    @property
    def place(self) -> str:
        """`argument['image']`."""
        return f"{self.file}[{self.number!r}]"


def _record(image_id: Any, arrays: Any, name: str, vocabulary: Vocabulary | None, *, scored: bool) -> Mapping[str, Any]:
    """The record of an image that is given by arrays."""
    place = f"{name}[{image_id!r}]"
    if not isinstance(arrays, Mapping):
        problem = f"{type(arrays).__name__}, not a dict of arrays (boxes, labels, ...); give records as a list"
        raise DataError(problem, place=place)
    if vocabulary is None:
        raise UsageError(f"{name}: this takes records (dicts) or paths, not arrays")
    return detections(str(image_id), arrays, vocabulary, place, scored=scored).record(vocabulary, scored=scored)


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
