"""How a command's inputs become streams of lines: paths, from the shell and from Python; in Python also records, or
arrays by image, in memory."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from hoicli.converters.named import locate_truth
from hoicli.converters.opening import Opening
from hoicli.errors import IN_PYTHON, DataError, UsageError, arg, nearest
from hoicli.evaluation.filters import Filters
from hoicli.evaluation.predictions import Predictions
from hoicli.evaluation.views import ALONE, Views
from hoicli.interface.option_values import names_of, tags_of, text_of, texts_of
from hoicli.interface.options import Given, Names, Path, Streams, Tags
from hoicli.io.opened_files import NO_SUCH_FILE, parts_of
from hoicli.io.outputs import temporary_folder
from hoicli.io.streams import Item, Line, Stream
from hoicli.records.arrays import to_plain
from hoicli.records.group_lines import GroupLines
from hoicli.records.intake import ErrorPolicy, policy_of
from hoicli.records.parsing import find_non_finite
from hoicli.vocabulary.datasets import load

if TYPE_CHECKING:
    from hoicli.evaluation.ground_truth import GroundTruth
    from hoicli.records.detections import ArrayLine
    from hoicli.shoe.similarity_table import SimilarityTable
    from hoicli.vocabulary.labels import Vocabulary


class Inputs:
    """The inputs of one call of a command: opens ground truth and predictions as the options that commands share
    (`options.Viewed`: --from, --on-error, --top-k, ...) ask for.

    policy: what is done about bad lines. filters: which predictions are used. opening: how files are opened."""

    def __init__(
        self,
        dataset: str | None = None,
        shared: Mapping[str, object] = MappingProxyType({}),
        *,
        within: str | None = None,
        unit: str = "line",
        gt: Given | None = None,
    ) -> None:
        """Read the options of a call. dataset: the value of --dataset. shared: the values of the shared options, by
        name. within: the dataset to use if none is given; None for a command that takes records of any dataset. unit:
        what messages call one bad item that is skipped. gt: the ground truth, whose file says what numbers of images
        mean in predictions without --image-list. Raises `UsageError` for impossible values."""
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
            truth=_one_file(gt),
            policy=self.policy,
        )

    def views(self, vocabulary: Vocabulary) -> Views:
        """Return the IoU thresholds and the parts of the data that --iou and --slice ask for rows of. Raises
        `UsageError` for a threshold or a slice that does not exist."""
        requested = texts_of(self._iou), names_of(self._slices)
        return Views.parse(*requested, vocabulary) if any(requested) else ALONE

    def tags(self, tags_given: Tags, *taken: str) -> dict[str, str]:
        """Return the tags that --tag adds to every row, by name. taken: the names of tags that the command sets itself;
        those that --iou and --slice set need not be among them. Raises `UsageError` for a malformed or taken tag."""
        set_by_iou = (IOU_TAG,) if texts_of(self._iou) else ()
        set_by_slice = SLICE_TAGS if self._slices else ()
        return tags_of(tags_given, *taken, *set_by_iou, *set_by_slice)

    def tags_beside(self, tags_given: Tags, models: Sequence[Predictions], *taken: str) -> dict[str, str]:
        """Return the tags that --tag adds to every row, by name. taken: tags that the command itself gives rows;
        `model` is one if rows name their model so, which they do for several models and for one with a name. Raises
        `UsageError` for a malformed or taken tag."""
        return self.tags(tags_given, *taken, *(["model"] if models[0].tagged else []))

    def read_truth(self, source: Given, vocabulary: Vocabulary) -> GroundTruth:
        """Read the ground truth of a dataset and return it. Raises as `truth` does, and `DataError` for malformed
        records."""
        from hoicli.evaluation.evaluating import read_truth

        allowed = self.filters.allow_uncounted
        return read_truth(self.truth(source), vocabulary, self.policy, allow_uncounted=allowed)

    def truth(self, source: Given, label: str = "ground truth", *, name: str = "gt") -> Stream:
        """Return a stream of ground truth, or of other records that are no predictions. source: paths, records or
        arrays; label: what messages call the records; name: the parameter that the source was given as. Raises
        `UsageError` for a source of another type, `DataError` for bad arrays."""
        paths = paths_of(source, name)
        if paths is None:
            return Stream([_held_name(source, name)], label, lines_held=self._held_lines(source, name, scored=False))
        return Stream([locate_truth(path) for path in paths], label, self.opening.specialise(truth=True))

    def records(self, source: Given | None, label: str, what: str, *, name: str, scored: bool | None = None) -> Stream:
        """Return a stream of records of any kind, which may be empty; without a source, of stdin. label: what messages
        call the records; what: what help calls the argument (PREDS); name: the parameter that the source was given as;
        scored: whether they are predictions, with scores (None: either)."""
        if (paths := piped_paths(source, what, name)) is not None:
            return Stream(paths, label, self.opening.specialise(truth=False) if scored else self.opening)
        return Stream([_held_name(source, name)], label, lines_held=self._held_lines(source, name, scored=scored))

    def predictions(self, source: Given | None, name: str = "predictions") -> Predictions:
        """Return a stream of the predictions, or the match records, of one model; without a source, of stdin. name:
        what messages call a source in memory."""
        if (paths := piped_paths(source, "PREDS", "predictions")) is not None:
            return Predictions(paths, self.opening.specialise(truth=False))
        return Predictions([_held_name(source, name)], lines_held=self._held_lines(source, name, scored=True))

    def models(self, sources: Streams | None, names: Names, *, what: str = "PREDS") -> list[Predictions]:
        """Return a stream of predictions for each of several models: one for each path, or for each item in memory.
        names: the models' names; without names they are called after their files. what: what help calls the argument.
        Raises `UsageError` if names and streams do not fit, `DataError` for a missing file."""
        streams: list[Any] = streams_of(sources, what)
        paths = [text_of(stream) if isinstance(stream, str | os.PathLike) else None for stream in streams]
        for path_given in filter(None, paths):  # now: the last file is only read when the others have been matched
            if path_given != "-" and not any(map(os.path.exists, parts_of(path_given))):
                raise DataError(NO_SUCH_FILE, place=path_given, code="no-such-file")
        model_names = names_of(names)
        # items in memory have no file's name: a, b, ... by their position
        default_names = [path or chr(ord("a") + index) for index, path in enumerate(paths)]
        streams_by_model = Predictions.name_models(default_names, model_names, self.opening.specialise(truth=False))
        for index, (model, path) in enumerate(zip(streams_by_model, paths, strict=True)):
            if path is None:  # records or arrays in memory take the place of the stream of a file
                place = "predictions" if len(streams_by_model) == 1 else f"predictions[{index}]"
                held = self.predictions(streams[index], place)
                streams_by_model[index] = held.with_name(model.model, tagged=model.tagged)
        return streams_by_model

    def _held_lines(self, source: Any, name: str, *, scored: bool | None) -> Iterable[Line]:
        """Return records in memory, or arrays by image, as lines; those of a group (--by) as they are. name: the
        parameter that they were given as, for messages; scored: whether arrays are of predictions, None if "score"
        among them tells."""
        if isinstance(source, GroupLines):
            return source
        return list(iterate_items(source, name, load(self.opening.dataset), scored=scored))


def _held_name(source: Any, name: str) -> str:
    """Return what messages call a source that is not read from paths: its name if it is a group of lines, else `name`,
    the parameter that it was given as."""
    return source.name if isinstance(source, GroupLines) else name


def _one_file(gt: Given | None) -> str:
    """Return the path of ground truth that is one file, "" for anything else (none, records, several files, a pipe)."""
    paths = [] if gt is None else paths_of(gt, "gt") or []
    path = locate_truth(paths[0]) if len(paths) == 1 else ""
    return path if os.path.isfile(path) else ""


def require_truth(gt: Given | None, command: str) -> Given:
    """Return the ground truth of a command that needs it. Raises `UsageError` if none is given."""
    if gt is None:
        raise UsageError(f"{command}: give the ground truth with {arg('gt', like='FILE')}")
    return gt


IOU_TAG = "iou"
"""The tag of rows at another IoU threshold (--iou)."""
SLICE_TAGS = ("slice", "part")
"""The tags of rows of a part of the data (--slice): by what it is cut, and which part it is."""


def lines(source: Given | None, name: str, label: str, what: str) -> Stream:
    """Return a stream of lines that are about no image, such as ratings; without a source, of stdin. source: paths or
    records in memory; name: the parameter that it was given as; label: what messages call the lines; what: what help
    calls the argument (RATINGS)."""
    if (paths := piped_paths(source, what, name)) is not None:
        return Stream(paths, label)
    return Stream([name], label, lines_held=list(iterate_items(source, name, None)))


def similarities(sim: Given | None, command: str) -> Stream | str:
    """Return the similarities of senses that --sim names: a stream of the lines of tables, or the name of a backend
    that computes them without asking a model (wordnet:wup). command: its name, in messages. Raises `UsageError` for
    neither, for both, and for a backend that does not exist or asks a model."""
    from hoicli.shoe.settings import OFFLINE

    if sim is None:
        problem = f"give similarities with {arg('sim', like='FILE')} (hoicli shoe-sim), or {arg('sim', 'wordnet:wup')}"
        raise UsageError(f"{command}: {problem}")
    paths = paths_of(sim, "sim") or []
    backends = [name for name in paths if name in OFFLINE]
    if backends and len(paths) > 1:
        raise UsageError(f"{arg('sim', backends[0])}: rates every pair itself; give it alone, or tables")
    for name in paths:
        looks_like_backend = name == "llm" or name.startswith("wordnet:") or nearest(name, OFFLINE)  # misspelt
        if name not in OFFLINE and looks_like_backend and not os.path.exists(name):
            choice = f"give tables, or one of {', '.join(OFFLINE)}; hoicli shoe-sim asks models"
            raise UsageError(f"{arg('sim', name)}: {choice}")
    return backends[0] if backends else lines(sim, "sim", "similarities", "tables")


def similarities_or_table(sim: Given | SimilarityTable | None, command: str) -> Stream | SimilarityTable | str:
    """Return a table that is read already (`--by`) as it is; for anything else do as `similarities`."""
    from hoicli.shoe.similarity_table import SimilarityTable

    return sim if isinstance(sim, SimilarityTable) else similarities(sim, command)


def read_similarities(sim: Given, wordnet: Path | None, policy: ErrorPolicy) -> SimilarityTable | str:
    """Return the table that --sim names, which all groups of --by share, or the name of a backend. wordnet: the value
    of --wordnet, in use from then on; policy: for bad lines. Raises as `similarities` does, and `DataError` for a bad
    table."""
    from hoicli.shoe.similarity_table import SimilarityTable
    from hoicli.wordnet.lexicon import open_wordnet, use_wordnet

    tables = similarities(sim, "--by")
    if isinstance(tables, str):
        return tables
    use_wordnet(text_of(wordnet))
    return SimilarityTable.read(tables, policy, open_wordnet().canonical)


def streams_of(sources: Streams | None, what: str) -> list[Any]:
    """Return a list with the source of each model: the items of a list of paths, of lists of records, or of dicts of
    arrays by image. Anything else is the source of one model. what: what help calls the argument."""
    if isinstance(sources, list | tuple) and sources and all(map(_is_stream, sources)):
        return [_paths(source)[0] if isinstance(source, str | os.PathLike) else source for source in sources]
    paths = piped_paths(sources, what, "predictions")  # type: ignore[arg-type]
    return [sources] if paths is None else paths


def _is_stream(item: Any) -> bool:
    """Return whether an item of a list is the source of a model (a path, records, arrays by image), and no record."""
    if isinstance(item, GroupLines):
        return True
    item = _rows_of(item)
    if isinstance(item, Mapping):  # arrays by image are a dict of dicts; in a record, some values are no dicts
        return all(isinstance(value, Mapping) or _is_rows(value) for value in item.values())
    return isinstance(item, str | os.PathLike | list | tuple)


def _is_rows(value: Any) -> bool:
    """Return whether the value of an image may be its triplets as rows of numbers: a list, or an array."""
    return isinstance(value, list | tuple) or hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def _rows_of(table: Any) -> Any:
    """Return a data frame of pandas or polars, or a table of pyarrow, as a list of dicts; anything else unchanged."""
    library = type(table).__module__.partition(".")[0]
    if library == "pandas" and hasattr(table, "columns"):
        return table.to_dict("records")
    method = {"polars": "to_dicts", "pyarrow": "to_pylist"}.get(library, "")
    return getattr(table, method)() if hasattr(table, method) else table


def piped_paths(source: Given | None, what: str, name: str) -> list[str] | None:
    """Return the paths in a source; ["-"], stdin, without a source; None for records in memory. what: what help calls
    the argument (PREDS); name: the parameter that the source was given as.

    Without a source, raises `UsageError` in a call from Python, and if stdin is a terminal, where waiting for input
    would look like a hang."""
    if source is not None:
        return paths_of(source, name)
    if IN_PYTHON.get():
        raise UsageError(f"{name}: give a path, records (dicts), or arrays by image id")
    if sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(f"give {what}, or pipe them in (- reads the terminal)")
    return ["-"]


def paths_of(source: Any, name: str) -> list[str] | None:
    """Return the paths, if the source is a path or a list of paths; None for records or arrays in memory. name: the
    parameter that it was given as. Raises `UsageError` for a source that cannot be iterated."""
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
    """Return a list of the path as text. In a call from Python, - is a file of that name, not stdin, so it becomes
    ./-."""
    text = os.fspath(path)
    return [os.path.join(".", text) if text == "-" and IN_PYTHON.get() else text]


@contextmanager
def written_to_files(source: Given, name: str, vocabulary: Vocabulary) -> Iterator[list[str]]:
    """Give the paths in a source to the block. Records in memory are written to a temporary file, which is removed
    after the block; messages call it `name`, the parameter that the source was given as. vocabulary: the one whose
    numbers arrays have."""
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
            place = error.place.replace(folder_prefix, "")  # messages show the name without the folder
            raise DataError(error.problem, place=place, field=error.field, code=error.code) from None


def iterate_items(
    source: Any, name: str, vocabulary: Vocabulary | None, *, scored: bool | None = None
) -> Iterator[Item]:
    """Yield a line for each record of a list, or for each image of a dict of arrays by image. name: the parameter that
    the source was given as, for messages; vocabulary: the dataset of the arrays, None where arrays are refused; scored:
    whether arrays are of predictions, None if "score" among them tells. Raises `DataError` for anything else, and for
    bad arrays."""
    source = _rows_of(source)
    if isinstance(source, Mapping):
        for image_id, arrays in source.items():
            yield _array_line(name, image_id, arrays, vocabulary, scored=scored)
        return
    for index, record in enumerate(source):
        place = f"{name}[{index}]"
        if not isinstance(record, Mapping):
            problem = f"{type(record).__name__}, not a dict; give a list of dicts, each as a line of JSONL has it"
            raise DataError(problem, place=place)
        yield Item(name, number=1, data=_encode_record(record, place), index=str(index))


def _array_line(
    name: str, image_id: object, arrays: Any, vocabulary: Vocabulary | None, *, scored: bool | None
) -> ArrayLine:
    """Return the line of one image that is given as a dict of arrays (boxes, labels, ...), or as INP-CC's rows of
    numbers (`row_arrays`): it holds the checked arrays, and is written as JSON only where that is asked for. name: the
    parameter that it was given in, for messages; vocabulary: the dataset of the arrays, None where arrays are refused;
    scored: whether they are predictions, None if "score" among them tells."""
    from hoicli.records.detections import ArrayLine, check_detections
    from hoicli.records.interaction_arrays import row_arrays

    place = f"{name}[{image_id!r}]"
    if vocabulary is None:
        raise UsageError(f"{place}: give records (dicts) in a list, or a path; this takes no arrays")
    if not isinstance(arrays, Mapping) and (scored is False or not _is_rows(arrays)):
        problem = f"{type(arrays).__name__}, not a dict of arrays (boxes, labels, ...); give records as a list"
        raise DataError(problem, place=place)
    try:
        arrays = arrays if isinstance(arrays, Mapping) else row_arrays(arrays)
        is_prediction = "score" in arrays if scored is None else scored
        image = check_detections(str(image_id), arrays, vocabulary, scored=is_prediction)
    except DataError as error:
        raise error.add_place(place) from None

    def write_json() -> bytes:
        """Return the image as the JSON of its record."""
        return _encode_record(image.to_record(vocabulary, scored=is_prediction), place)

    return ArrayLine(name, repr(image_id), image, write_json)


def _encode_record(record: Mapping[str, Any], place: str) -> bytes:
    """Return a record as JSON, with arrays as lists. Raises `DataError` at `place` for what JSON does not have: other
    objects, NaN and infinity."""
    try:
        data = orjson.dumps(record if type(record) is dict else dict(record), default=to_plain)
    except TypeError as error:
        raise DataError(f"cannot be written as JSON ({error}); give lists, numbers and text", place=place) from None
    if b"null" in data:  # orjson writes NaN and infinity as null: look for the number, to name its field
        for field, value in find_non_finite(_arrays_to_lists(record)):
            raise DataError(
                f"{value}: numbers must be finite; correct what wrote it, or drop the item", place=place, field=field
            )
    return data


def _arrays_to_lists(value: Any) -> Any:
    """Return a record, or a part of one, with lists and numbers in place of arrays."""
    if isinstance(value, Mapping):
        return {key: _arrays_to_lists(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_arrays_to_lists(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else to_plain(value)
