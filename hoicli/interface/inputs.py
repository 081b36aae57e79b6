"""What a call is given as a stream: paths, from both doors; records, or arrays by image, from Python."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from hoicli.converters.opening import Opening
from hoicli.errors import IN_PYTHON, DataError, UsageError, arg, nearest
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.views import ALONE, Views
from hoicli.interface.option_values import names_of, tags_of, text_of, texts_of
from hoicli.interface.options import Given, Names, Path, Streams, Tags
from hoicli.io.opened_files import NO_SUCH_FILE, parts_of
from hoicli.io.outputs import temporary_folder
from hoicli.io.streams import Item, Stream
from hoicli.records.arrays import plain
from hoicli.records.intake import ErrorPolicy
from hoicli.records.parsing import non_finite
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.evaluation.ground_truth import GroundTruth
    from hoicli.records.detections import Detections
    from hoicli.vocabulary.labels import Vocabulary


class Inputs:
    """The shared options of a call (`options.Viewed`), and how its parameters become streams. Raises `UsageError` for
    filters that cannot be."""

    def __init__(
        self,
        dataset: str | None = None,
        shared: Mapping[str, object] = MappingProxyType({}),
        *,
        within: str | None = None,
        unit: str = "line",
    ) -> None:
        """Take over the options of a call. dataset: the value of --dataset. shared: the values of the shared options.
        within: the dataset that the command works in if none is given; None for a command that takes the records of any
        dataset. unit: what messages call one bad item that is skipped."""
        options_given: Mapping[str, Any] = shared
        self.policy = policy_of(options_given.get("on_error", "stop"), unit)
        self.filters = Filters.from_options(
            options_given.get("top_k"), options_given.get("nms"), options_given.get("allow_uncounted", False)
        )
        self._iou, self._slices = options_given.get("iou"), options_given.get("slice")
        self.opening = Opening(
            dataset=dataset or within or "hico",
            is_named=dataset is not None,
            fixed=within is not None,
            source_format=options_given.get("from_"),
            image_list=text_of(options_given.get("image_list")),
            policy=self.policy,
        )

    def views(self, vocabulary: Vocabulary) -> Views:
        """Return what --iou and --slice ask for. Raises `UsageError` for a threshold or a slice that does not exist."""
        requested = texts_of(self._iou), names_of(self._slices)
        return Views.parse(*requested, vocabulary) if any(requested) else ALONE

    def tags(self, tags_given: Tags, *taken: str) -> dict[str, str]:
        """Return the tags of rows (`tags_of`). taken: tags that may not be given, besides those of --iou and
        --slice."""
        views = (VIEW_TAGS[:1] if texts_of(self._iou) else ()) + (VIEW_TAGS[1:] if self._slices else ())
        return tags_of(tags_given, *taken, *views)

    def read_truth(self, source: Given, vocabulary: Vocabulary) -> GroundTruth:
        """Return the ground truth, read. Raises as `truth` does, and `DataError` for what is wrong with it."""
        from hoicli.evaluation.evaluating import read_truth

        allowed = self.filters.allow_uncounted
        return read_truth(self.truth(source), vocabulary, self.policy, allow_uncounted=allowed)

    def truth(self, source: Given, label: str = "ground truth", *, name: str = "gt") -> Stream:
        """Return a stream of ground truth, or of other records that are no predictions. label: what the records are;
        name: of the parameter. Raises `UsageError` for a source that is none of `Given`, `DataError` for bad arrays."""
        paths = paths_of(source, name)
        if paths is None:
            return Stream([name], label, lines_held=self._items_in_memory(source, name, scored=False))
        from hoicli.converters.named import locate_truth

        return Stream([locate_truth(path) for path in paths], label, self.opening.specialise(truth=True))

    def records(self, source: Given | None, label: str, what: str, *, name: str, scored: bool | None = None) -> Stream:
        """Return a stream of records of any kind, which may be empty; stdin without a source. label: what the records
        are; what: what the user calls them; name: of the parameter; scored: whether they have scores."""
        if (paths := piped_paths(source, what, name)) is not None:
            return Stream(paths, label, self.opening.specialise(truth=False) if scored else self.opening)
        return Stream([name], label, lines_held=self._items_in_memory(source, name, scored=scored))

    def predictions(self, source: Given | None, *, name: str = "predictions") -> Predictions:
        """Return a stream, as `records` does, of predictions or match records of one model."""
        if (paths := piped_paths(source, "PREDS", name)) is not None:
            return Predictions(paths, self.opening.specialise(truth=False))
        return Predictions([name], lines_held=self._items_in_memory(source, name, scored=True))

    def models(
        self, sources: Streams | None, names: Names, *, what: str = "PREDS", name: str = "predictions"
    ) -> list[Predictions]:
        """Return the streams of several models, one for each path. names: what the models are called; without names
        they are called after their files. Raises `UsageError` if names and streams do not fit, `DataError` for a
        missing file."""
        streams: list[Any] = streams_of(sources, what, name)
        paths = [text_of(stream) if isinstance(stream, str | os.PathLike) else None for stream in streams]
        for path_given in filter(None, paths):  # the last is not read before the others are matched
            if path_given != "-" and not any(map(os.path.exists, parts_of(path_given))):
                raise DataError(NO_SUCH_FILE, place=path_given, code="no-such-file")
        model_names = names_of(names)
        default_names = [path or chr(ord("a") + index) for index, path in enumerate(paths)]
        streams_by_model = Predictions.name_models(default_names, model_names, self.opening.specialise(truth=False))
        for index, (model, path) in enumerate(zip(streams_by_model, paths, strict=True)):
            if path is None:
                place = name if len(streams_by_model) == 1 else f"{name}[{index}]"
                items = self._items_in_memory(streams[index], place, scored=True)
                streams_by_model[index] = Predictions([place], lines_held=items).with_name(
                    model.model, tagged=model.tagged
                )
        return streams_by_model

    def _items_in_memory(self, source: Any, name: str, *, scored: bool | None) -> list[Item]:
        """Return records, or arrays by image, as lines (`iterate_items`)."""
        return list(iterate_items(source, name, load(self.opening.dataset), scored=scored))


def policy_of(on_error: str, unit: str = "line") -> ErrorPolicy:
    """Return the policy for bad lines that --on-error asks for."""
    return ErrorPolicy(skip=on_error == "skip", unit=unit)


def require_truth(gt: Given | None, command: str) -> Given:
    """Return the ground truth of a command that needs it. Raises `UsageError` if none is given."""
    if gt is None:
        raise UsageError(f"{command}: give the ground truth with {arg('gt', like='FILE')}")
    return gt


VIEW_TAGS = ("iou", "slice", "part")
"""The tags of rows at other thresholds and of parts of the data."""


def lines(source: Given | None, name: str, label: str, what: str) -> Stream:
    """Return the lines of files, or of records in memory, that are about no image; stdin without a source. name: of the
    parameter; label: what the lines are; what: what the user calls them."""
    if (paths := piped_paths(source, what, name)) is not None:
        return Stream(paths, label)
    return Stream([name], label, lines_held=list(iterate_items(source, name, None)))


def similarities(sim: Given | None, command: str) -> Stream | str:
    """Return what --sim names: a stream of tables, or the name of an offline backend. Raises `UsageError` for neither,
    for both, and for a backend that does not exist or has to ask a model."""
    from hoicli.shoe.settings import OFFLINE

    if sim is None:
        problem = f"give similarities with {arg('sim', like='FILE')} (hoicli shoe-sim), or {arg('sim', 'wordnet:wup')}"
        raise UsageError(f"{command}: {problem}")
    paths = paths_of(sim, "sim") or []
    backends = [name for name in paths if name in OFFLINE]
    if backends and len(paths) > 1:
        raise UsageError(f"{arg('sim', backends[0])}: rates every pair itself; give it alone, or tables")
    for name in paths:
        looks_like_backend = name == "llm" or name.startswith("wordnet:") or nearest(name, OFFLINE)
        if name not in OFFLINE and looks_like_backend and not os.path.exists(name):
            choice = f"give tables, or one of {', '.join(OFFLINE)}; hoicli shoe-sim asks models"
            raise UsageError(f"{arg('sim', name)}: {choice}")
    return backends[0] if backends else lines(sim, "sim", "similarities", "tables")


def streams_of(sources: Streams | None, what: str, name: str) -> list[Any]:
    """Return the streams of several models: the items of a list of paths, of lists of records or of arrays by image.
    Anything else is one."""
    if isinstance(sources, list | tuple) and sources and all(map(_is_stream, sources)):
        return [_paths(source)[0] if isinstance(source, str | os.PathLike) else source for source in sources]
    paths = piped_paths(sources, what, name)  # type: ignore[arg-type]
    return [sources] if paths is None else paths


def _is_stream(item: Any) -> bool:
    """Return whether an item of a list is a stream by itself, and not a record."""
    item = _rows_of(item)
    if isinstance(item, Mapping):
        return all(isinstance(value, Mapping) for value in item.values())
    return isinstance(item, str | os.PathLike | list | tuple)


def _rows_of(table: Any) -> Any:
    """Return the rows, as dicts, of a table of pandas, polars or pyarrow; anything else unchanged."""
    library = type(table).__module__.partition(".")[0]
    if library == "pandas" and hasattr(table, "columns"):
        return table.to_dict("records")
    method = {"polars": "to_dicts", "pyarrow": "to_pylist"}.get(library, "")
    return getattr(table, method)() if hasattr(table, method) else table


def piped_paths(source: Given | None, what: str, name: str) -> list[str] | None:
    """Return the paths in a source, stdin without a source, None for records in memory. what: what the shell's user
    calls them. Raises `UsageError` if stdin is a terminal, where waiting for it would look like a hang, and from Python
    if there is no source."""
    if source is not None:
        return paths_of(source, name)
    if IN_PYTHON.get():
        raise UsageError(f"{name}: give a path, records (dicts), or arrays by image id")
    if sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(f"give {what}, or pipe them in (- reads the terminal)")
    return ["-"]


def paths_of(source: Any, name: str) -> list[str] | None:
    """Return the paths, if the source is a path or a list of paths; None for records. Raises `UsageError` for anything
    else."""
    if isinstance(source, str | os.PathLike):
        return _paths(source)
    source = _rows_of(source)
    if not isinstance(source, Iterable):
        kind = type(source).__name__
        raise UsageError(f"{name}: is {kind}; give a path, records (dicts), or arrays by image id")
    if isinstance(source, Sequence) and source and all(isinstance(path, str | os.PathLike) for path in source):
        return list(chain.from_iterable(_paths(item) for item in source))
    return None


def _paths(path: Path) -> list[str]:
    """Return the path as a list of one text. From Python, - is a file of that name, not stdin."""
    text = os.fspath(path)
    return [os.path.join(".", text) if text == "-" and IN_PYTHON.get() else text]


@contextmanager
def written_to_files(source: Given, name: str, vocabulary: Vocabulary) -> Iterator[list[str]]:
    """Give the paths of the source; for records in memory that of a temporary file, which messages call as the
    parameter."""
    if (paths := paths_of(source, name)) is not None:
        yield paths
        return
    with tempfile.TemporaryDirectory(prefix="hoicli-", dir=temporary_folder()) as folder:
        folder_prefix = os.path.join(folder, "")
        with open(f"{folder_prefix}{name}", "wb") as file:
            file.writelines(item.data + b"\n" for item in iterate_items(source, name, vocabulary))
        try:
            yield [f"{folder_prefix}{name}"]
        except DataError as error:
            place = error.place.replace(folder_prefix, "")
            raise DataError(error.problem, place=place, field=error.field, code=error.code) from None


def iterate_items(
    source: Any, name: str, vocabulary: Vocabulary | None, *, scored: bool | None = None
) -> Iterator[Item]:
    """Yield records, or the arrays of images, as lines. vocabulary: of the arrays, None where arrays are refused;
    scored: whether arrays are of predictions, None to tell by whether they have scores. Raises `DataError` for what is
    neither, and for bad arrays."""
    source = _rows_of(source)
    if isinstance(source, Mapping):
        from hoicli.records.detections import ArrayLine, detections

        for image_id, arrays in source.items():
            place = f"{name}[{image_id!r}]"
            if vocabulary is None:
                raise UsageError(f"{place}: give records (dicts) in a list, or a path; this takes no arrays")
            if not isinstance(arrays, Mapping):
                problem = f"{type(arrays).__name__}, not a dict of arrays (boxes, labels, ...); give records as a list"
                raise DataError(problem, place=place)
            is_prediction = "score" in arrays if scored is None else scored
            try:
                image_record = detections(str(image_id), arrays, vocabulary, scored=is_prediction)
            except DataError as error:
                raise error.add_place(place) from None
            made = partial(_line_of, image_record, vocabulary, place, scored=is_prediction)
            yield ArrayLine(name, repr(image_id), image_record, made)
        return
    for index, record in enumerate(source):
        place = f"{name}[{index}]"
        if not isinstance(record, Mapping):
            problem = f"{type(record).__name__}, not a dict; give a list of dicts, each as a line of JSONL has it"
            raise DataError(problem, place=place)
        yield Item(name, 1, _data(record, place), str(index))


def _line_of(image: Detections, vocabulary: Vocabulary, place: str, *, scored: bool) -> bytes:
    """Return an image as the line of its record."""
    return _data(image.record(vocabulary, scored=scored), place)


def _data(record: Mapping[str, Any], place: str) -> bytes:
    """Return a record as JSON. Raises `DataError` at `place` for what JSON does not have."""
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
    """Return a record with lists and numbers in place of arrays."""
    if isinstance(value, Mapping):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lists(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else plain(value)
