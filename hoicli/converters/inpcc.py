"""Predictions of the INP-CC family (INP-CC, THID, CMD-SE; ltttpku/INP-CC, datasets/hico_evaluator.py, models/model.py):
dumps, and raw outputs before their post-processing. Interactions are numbered as in HICO-DET (0-599), in SWIG-HOI
(0-14,129; --dataset swig), or as the dataset's `numbering` says, and give verb and object label. An image is a number
or a file name; text digits count as a number. The number is that at the end of the file name or, if `--image-list` has
them (SWIG-HOI), the `img_id`, which the record keeps. Equal boxes of one label in an image become one.

inpcc: preds.pkl, dets.pkl, and one dictionary with rows for each image.

    {"scores": {hoi: [score]}, "boxes": {hoi: [[8 numbers]]}, "keys": {hoi: [image]}}    (dets.pkl: and "gts", not read)
    {image: [[hoi, score, 8 numbers]]}                                                   (JSON or a pickle)

The 8 numbers are the person's and the object's box, float edges in pixels of the original image, taken as they are: the
protocols compare them unshifted. NumPy arrays may stand for lists. Triplets stay in the file's order, by ascending
`hoi` in preds.pkl, whose images come sorted; an image without predictions is in neither. `read` raises `DataError` with
the place in the file: `.boxes[17][3]` is box 3 of interaction 17, `[42][3]` is row 3 of image 42.

logits: raw outputs of one image, or of B images, saved as .npz.

    pred_logits [Q, C], pred_boxes [Q, 8], box_scores [Q, 1], sizes [2]                    one image per file
    pred_logits [B, Q, C], pred_boxes [B, Q, 8], box_scores [B, Q, 1], sizes [B, 2], image_ids [B]

Boxes are relative [cx, cy, w, h], the person's and then the object's, as the released code reads them (text that
describes it scales the four numbers as corners: --box-form xyxy); they come out as float edges in pixels of the
original image. box_scores are probabilities: the sigmoid of what the network gives. `sizes` are original height and
width; without them the sizes of --image-list are taken. A column is an interaction: every one of the dataset's in the
order of their numbers, or the 5,539 of SWIG-HOI's that are evaluated, in ascending order (INP-CC's test texts). Without
`image_ids` a file's name is its image.

Scores and boxes are those of INP-CC's PostProcess, in float64:

    score = sigmoid or softmax of a query's logits  x  (its box score) ** lambda;  kept above the threshold
    boxes = [cx, cy, w, h] to [x1, y1, x2, y2], clamped to the image, times its width and height

Its defaults are lambda 1 and sigmoid; its command line sets lambda 2, softmax, threshold 0.0001. The released class
then suppresses pairs, which is left to it: the preds.pkl that it writes holds what remains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.containers.npz import arrays
from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.image_ids import NumberedImages, known_size
from hoicli.converters.numbers import Numbers, finite_list, plain, read_list, shorten_value, table
from hoicli.errors import DataError, UsageError, arg
from hoicli.records.arrays import box_corners
from hoicli.records.kit import Floats
from hoicli.records.names import number_or_name
from hoicli.records.parsing import Record

COLUMNS = ("scores", "boxes", "keys")


def sniff(source: Source) -> bool:
    """Return whether a file holds predictions of the INP-CC family: columns by interaction, or rows by image."""
    if source.kind not in ("json-object", "pickle") or not source.mapping:
        return False
    if _has_columns(source):
        return True
    row_lists = [plain(value) for value in source.mapping.values()]
    if not all(isinstance(rows, list | tuple) for rows in row_lists):
        return False
    first_row = next((plain(rows[0]) for rows in row_lists if rows), None)
    if first_row is None:  # no predictions: only the keys are evidence
        return all(type(number_or_name(image)) is int for image in source.mapping)
    return isinstance(first_row, list | tuple) and len(first_row) > 1 and {*map(type, first_row)} <= {int, float}


def _has_columns(source: Source) -> bool:
    """Return whether a file has the three dictionaries of preds.pkl: scores, boxes and keys, each by interaction."""
    return all(isinstance(source.mapping.get(name), dict) for name in COLUMNS)


def read(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image that a file of the INP-CC family names."""
    if context.vocabulary.roles:
        problem = f"numbers interactions of HICO-DET or SWIG-HOI; say {arg('dataset', 'hico')} or swig"
        raise DataError(problem, place=source.name)
    dataset_hint = "" if context.vocabulary.name == "swig" else f"; for SWIG-HOI's 14,130 say {arg('dataset', 'swig')}"
    interactions = context.interactions(dataset_hint)
    if _has_columns(source):
        images = _gather_rows(source, interactions, context)
    else:
        images = [(f"[{shorten_value(key)}]", key, rows) for key, rows in source.entries().items()]
    images_by_number = NumberedImages(source, context, (image for _, image, _ in images))

    def build(item: tuple[Any, Any]) -> Record:
        """Return the record of an image. item: its number or file name, and its rows of [HOI id, score, 8 numbers]."""
        image, rows = item
        record = images_by_number.record(image)
        boxes = BoxTable(context.subject)
        for index, (hoi, score, *two_boxes) in enumerate(table(rows, ("HOI id", "score"))):
            verb, label = interactions.names.get(hoi) or interactions.name(hoi, f"[{index}]")  # finds 17.0 as 17
            boxes.pair(two_boxes[:4], two_boxes[4:], label, verb=verb, score=score)
        return {**record, **boxes.columns}

    yield from context.each(((where, (image, rows)) for where, image, rows in images), build, source)


def _gather_rows(
    source: Source, interactions: Numbers[Any], context: Context
) -> list[tuple[str, Any, list[list[Any]]]]:
    """Turn preds.pkl, which is sorted by interaction, round: return (place of its first row, image, its rows) for each
    image. A row is [interaction id, score, 8 numbers]. interactions: the (verb, object) of each id. An interaction with
    an error goes to the context's policy. Raises `DataError` for ids that the dataset does not have."""
    columns = [
        {_hoi_id(key, f".{name}", source): values for key, values in source.mapping[name].items()} for name in COLUMNS
    ]
    ids_in_file = sorted(set(chain.from_iterable(columns)))
    for hoi in (*ids_in_file[:1], *ids_in_file[-1:]):  # the lowest and the highest id
        if hoi not in interactions.names:
            problem = f"holds {len(ids_in_file):,} interactions: id {shorten_value(hoi)}{interactions.refusal}"
            raise DataError(problem, place=source.name)
    images: dict[Any, tuple[str, Any, list[list[Any]]]] = {}
    for item in context.each((("", hoi) for hoi in ids_in_file), partial(_interaction_rows, columns), source):
        for index, (image, row) in enumerate(zip(item["images"], item["rows"], strict=True)):
            if image not in images:
                images[image] = (f".keys[{item['hoi']}][{index}]", image, [])
            images[image][2].append(row)
    # Numbers come before names, since the two cannot be compared.
    return [images[image] for image in sorted(images, key=lambda image: (type(image) is str, image))]


def _interaction_rows(columns: list[dict[int, Any]], hoi: int) -> Record:
    """Return the rows of one interaction in preds.pkl, and the image of each: {"hoi", "images", "rows"}; a row is
    [interaction id, score, 8 numbers]. Raises `DataError` with the place of a value that is wrong."""
    scores, boxes, keys = (
        read_list(column.get(hoi, []), f".{name}[{hoi}]") for name, column in zip(COLUMNS, columns, strict=True)
    )
    if not len(scores) == len(boxes) == len(keys):
        counts = f"{len(boxes):,} boxes, {len(scores):,} scores and {len(keys):,} keys"
        raise DataError(f"{counts}; they must agree: write the file again", field=f".boxes[{hoi}]")
    images = [number_or_name(plain(key)) for key in keys]
    for index, image in enumerate(images):
        if type(image) not in (int, str):
            problem = f"{shorten_value(image)} is no image; give a number or a file name"
            raise DataError(problem, field=f".keys[{hoi}][{index}]")
    scored_boxes = zip(finite_list(scores, f".scores[{hoi}]"), table(boxes, (), f".boxes[{hoi}]"), strict=True)
    return {"hoi": hoi, "images": images, "rows": [[hoi, score, *box] for score, box in scored_boxes]}


def _hoi_id(key: Any, field: str, source: Source) -> int:
    """Return a key of preds.pkl, an interaction's id, as an integer. Raises `DataError` for any other key."""
    number = number_or_name(key)
    if type(number) is not int:
        raise DataError(f"key {shorten_value(key)} is no HOI id; they are integers", place=source.name, field=field)
    return number


NAMES = ("pred_logits", "pred_boxes", "box_scores", "sizes", "image_ids")
LARGEST_IMAGE = 1 << 25
"""The most logits of one image: SWIG-HOI's columns for two thousand queries. More is damage; it bounds sides, too."""
MOST_TRIPLETS = 100_000
"""The most triplets of one image. Benchmarks count up to 100, and a record of this many has 9 MB."""

SLACK = 1e-4
"""How far a box may reach beyond the image, in shares of its sides, and count as inside: this is rounding."""
ENOUGH_BOXES, NEARLY_ALL = 20, 0.95
"""Boxes look like corners if there are so many, and if this share would be valid corners. Both values are ours."""


class Item(NamedTuple):
    """A network's output for one image: Q queries, each a pair of boxes that is scored for C interactions. image: its
    name or number. size: (height, width) in pixels, None if the file has no sizes. logits: [Q, C]. boxes: [Q, 8], the
    person's and the object's box as the file has them. box_scores: [Q], probabilities."""

    image: Any
    size: Any
    logits: Floats
    boxes: Floats
    box_scores: Floats


def read_outputs(source: Source, context: Context) -> Iterator[Record]:
    """Yield one record for each image in the source and its `companions`, as INP-CC's PostProcess makes them."""
    process = _PostProcess(context)
    images = NumberedImages(source, context)
    for path in (source.path, *(companion.path for companion in source.companions)):
        file = Source(path) if path != "-" else source  # opened anew, so that only one is in memory
        outputs = _Outputs(file, context)

        def build(item: Item, interactions: list[tuple[str, str]] = outputs.interactions) -> Record:
            """Return the record of an image. interactions: (verb, object) of each column of this file's logits, a
            default so that it is bound now and not when the loop has gone on."""
            record = images.record(item.image)
            height, width = _checked_size(item.size, record, context)
            return {**record, "width": width, "height": height, **process.columns(item, (height, width), interactions)}

        yield from context.each(outputs.images(), build, file)
    _tell_form(process.box_counts, context)


class _PostProcess:
    """INP-CC's PostProcess with the user's options: what makes triplets of a network's outputs. box_counts: how many
    "boxes" of queries with a triplet were read, how many of these reach beyond their image ("clipped"), and how many
    would be valid boxes if their four numbers were corners ("corners"). _power: the exponent of the box score."""

    def __init__(self, context: Context) -> None:
        """Take --lambda, --threshold, --activation and --box-form. Raises `UsageError` for one out of its range."""
        self._power, self._threshold = context.options.get("lambda_", 1.0), context.options.get("threshold", 0.1)
        if not 0 <= self._power < np.inf:
            raise UsageError(f"{arg('lambda_', self._power)}: an exponent, at least 0")
        if not 0 <= self._threshold < 1:
            raise UsageError(f"{arg('threshold', self._threshold)}: scores lie between 0 and 1")
        self._activation = softmax if context.options.get("activation") == "softmax" else sigmoid
        self._box_form = context.options.get("box_form", "cxcywh")
        self._subject = context.subject
        self.box_counts = Counter[str]()

    def columns(self, item: Item, size: tuple[float, float], interactions: list[tuple[str, str]]) -> dict[str, Any]:
        """Return the boxes, labels and triplets of an image, as a record has them. size: (height, width) in pixels.
        Raises `DataError` for numbers that no network gives, and for too many triplets."""
        _check_numbers(item)
        as_written = item.boxes  # [queries, 8]: the person's box, then the object's
        # corners in shares of the image's sides
        as_read = box_corners(as_written.reshape(-1, 4), self._box_form, None).reshape(-1, 8)
        height, width = size
        boxes = (as_read.clip(0.0, 1.0) * np.array([width, height] * 4)).tolist()  # clamped first, as released
        scores = self._triplet_scores(item.logits, item.box_scores)
        queries, columns = np.nonzero(scores > self._threshold)
        if len(queries) > MOST_TRIPLETS:
            problem = f"{len(queries):,} triplets, at most {MOST_TRIPLETS:,} an image"
            raise DataError(f"{problem}; raise {arg('threshold')} ({self._threshold:g})", field=".pred_logits")
        queries_used = np.unique(queries)
        self._count_boxes(as_read[queries_used].reshape(-1, 4), as_written[queries_used].reshape(-1, 4))
        pairs = BoxTable(self._subject)  # one triplet for each (query, interaction) with a score above the threshold
        scores_used = scores[queries, columns].tolist()
        for query, column, score in zip(queries.tolist(), columns.tolist(), scores_used, strict=True):
            verb, label = interactions[column]
            pairs.pair(boxes[query][:4], boxes[query][4:], label, verb=verb, score=score)
        return pairs.columns

    def _triplet_scores(self, logits: Floats, box_scores: Floats) -> Floats:
        """Return [Q, C] the scores of each query: the sigmoid or softmax times a power of the box score."""
        with np.errstate(invalid="ignore"):  # softmax of a row of -inf is NaN, which is above no threshold
            scores: Floats = self._activation(logits) * (box_scores**self._power)[:, np.newaxis]
        return scores

    def _count_boxes(self, as_read: NDArray[Any], as_written: Floats) -> None:
        """Add an image's boxes to `box_counts`. as_read [N, 4]: the boxes as they were understood, corners in shares of
        the image's sides. as_written [N, 4]: the same boxes as the file has them."""
        beyond = (as_read < -SLACK) | (as_read > 1 + SLACK)
        inside = (as_written > -SLACK) & (as_written < 1 + SLACK)
        ascending = as_written[:, :2] < as_written[:, 2:]  # x1 < x2 and y1 < y2, if these are corners
        self.box_counts["boxes"] += len(as_read)
        self.box_counts["clipped"] += int(beyond.any(axis=1).sum())
        self.box_counts["corners"] += int((inside.all(axis=1) & ascending.all(axis=1)).sum())


def _check_numbers(item: Item) -> None:
    """Raise `DataError` with the place of the first number of an image that no network gives."""
    is_probability = (item.box_scores >= 0) & (item.box_scores <= 1)
    _require(is_probability, item.box_scores, "box_scores", "no probability; save its sigmoid")
    _require(np.isfinite(item.boxes), item.boxes, "pred_boxes")
    _require(item.logits < np.inf, item.logits, "pred_logits")  # -inf is allowed: it hides a class


def _tell_form(counts: Counter[str], context: Context) -> None:
    """Add notes on how pred_boxes was read, how many were clipped, and whether they look like corners. Nearly all would
    then, as centre and size, be wider than their centre's distance from the left."""
    boxes, clipped, corners = (f"{counts[kind]:,}" for kind in ("boxes", "clipped", "corners"))
    form_given = "box_form" in context.options
    if not form_given:
        read = "pred_boxes is read as shares [cx, cy, w, h], as INP-CC's code does"
        context.announce(f"{read} ({arg('box_form', 'xyxy')}: as corners)")
    if counts["clipped"]:
        context.announce(f"{clipped} of {boxes} boxes of kept queries reach beyond the image: clipped to it")
    if not form_given and counts["boxes"] >= ENOUGH_BOXES and counts["corners"] >= NEARLY_ALL * counts["boxes"]:
        share = f"{corners} of {boxes} boxes have x1 < x2 and y1 < y2 inside the image if they are"
        context.announce(f"are these corners? {share}: {arg('box_form', 'xyxy')}")


class _Outputs:
    """The arrays of one .npz file of raw outputs. interactions: the (verb, object) of each column of the logits.
    _batch: [B], or [] if the file is one image without a batch axis. _queries: Q, the number of queries of an image."""

    def __init__(self, source: Source, context: Context) -> None:
        """Read the arrays; raise `DataError` if pred_logits is missing or of another shape than the dataset needs."""
        self._source, self._arrays = source, arrays(source, NAMES)
        shape = self._array("pred_logits").shape
        if len(shape) not in (2, 3):
            raise self._error("pred_logits", f"shape {list(shape)}, not [Q, C] or [B, Q, C]")
        *self._batch, self._queries, columns = shape
        if not 0 < self._queries * columns <= LARGEST_IMAGE:
            raise self._error("pred_logits", f"{self._queries} queries x {columns} classes is no image's output")
        self.interactions = self._columns(columns, context)

    def _array(self, name: str) -> NDArray[Any]:
        """Return an array by name. Raises `DataError` if the file does not have it."""
        if name not in self._arrays:
            raise DataError(f"has no array {name}; it needs {', '.join(NAMES[:3])}", place=self._source.name)
        return self._arrays[name]

    def _error(self, field: str, problem: str) -> DataError:
        """Return the error about a problem with one of the file's arrays (`field`)."""
        return DataError(problem, place=self._source.name, field=field)

    def _columns(self, count: int, context: Context) -> list[tuple[str, str]]:
        """Return (verb, object) of each of the `count` columns of the logits: all interactions of the dataset, in the
        order of their numbers, or only those that are evaluated. Raises `DataError` if neither are `count`."""
        vocabulary = context.vocabulary
        if vocabulary.roles:
            raise self._error("pred_logits", f"columns are interactions of HICO-DET or SWIG-HOI, not {vocabulary.name}")
        interactions, numbering = vocabulary.interactions, vocabulary.numbering.get("interactions", {})
        in_number_order = [interactions[numbering[number]] for number in sorted(numbering)] or list(interactions)
        if count == len(in_number_order):
            return in_number_order
        evaluated = sorted(vocabulary.subsets.get("evaluated", ()))
        if count == len(evaluated):
            return [interactions[number] for number in evaluated]
        actual = f"{vocabulary.name} has {len(in_number_order):,}"
        problem = f"{count:,} classes, but {actual}; {arg('dataset')} names another (a column is a verb and an object)"
        raise self._error("pred_logits", problem)

    def images(self) -> Iterator[tuple[str, Item]]:
        """Yield (place in the file, output) for each image. Raises `DataError` for a missing array or another shape."""
        shapes = {"pred_logits": (len(self.interactions),), "pred_boxes": (8,), "box_scores": ()}
        query_arrays = [self._image_blocks(name, self._queries, *shape) for name, shape in shapes.items()]
        ids = [Path(self._source.path).stem] * (1 if not self._batch else self._batch[0])
        if "image_ids" in self._arrays:
            ids = self._image_blocks("image_ids", kinds="iuU").tolist()
        elif len(ids) > 1:
            raise self._error("image_ids", f"missing; a file of {len(ids):,} images names each of them")
        sizes = self._image_blocks("sizes", 2).astype(float).tolist() if "sizes" in self._arrays else [None] * len(ids)
        for index, (image, size, *image_arrays) in enumerate(zip(ids, sizes, *query_arrays, strict=True)):
            with np.errstate(invalid="ignore"):  # NumPy warns of a signalling NaN here; it is refused later
                logits, boxes, scores = (array.astype(np.float64) for array in image_arrays)
            yield (f"[{index}]" if self._batch else ""), Item(image, size, logits, boxes, scores)

    def _image_blocks(self, name: str, *image_shape: int, kinds: str = "fiu") -> NDArray[Any]:
        """Return an array with one block for each image, [B, *image_shape]. Sides of length 1 do not count. kinds:
        NumPy's letters of the allowed types. Raises `DataError` for another shape or type."""
        array, expected = self._array(name), (*self._batch, *image_shape)
        if [side for side in array.shape if side != 1] != [side for side in expected if side != 1]:
            raise self._error(name, f"shape {list(array.shape)}, but pred_logits makes it {list(expected)}")
        if array.dtype.kind not in kinds:
            expected_kind = "names or numbers" if "U" in kinds else "numbers, as float32"
            raise self._error(name, f"of type {array.dtype}; save {expected_kind}")
        return array.reshape(-1 if 0 not in array.shape else self._batch[0], *image_shape)


def _checked_size(size: Any, record: Record, context: Context) -> list[float]:
    """Return [height, width] of an image in pixels for its record, whole numbers as integers. size: what the file
    states, None to take that of --image-list. Raises `DataError` if there is none."""
    if size is None:
        listed_size = known_size(record, context)
        if listed_size is None:
            problem = f"the image's size is not known; save sizes (height, width), or give {arg('image_list')}"
            raise DataError(f"{problem} with them", field=".sizes")
        size = listed_size[::-1]  # the list has (width, height)
    height, width = size
    if not (0 < height < LARGEST_IMAGE and 0 < width < LARGEST_IMAGE):
        raise DataError(f"{height:g} x {width:g} is no height and width of an image", field=".sizes")
    return [int(side) if side == int(side) else side for side in size]


def _require(good: Any, array: Floats, name: str, problem: str = "numbers must be finite") -> None:
    """Raise `DataError` with the place of the first number of an array that is not good. name: the array's."""
    if not good.all():
        position = np.argwhere(~good)[0].tolist()
        raise DataError(f"{array[tuple(position)]}: {problem}", field=f".{name}{position}")


def sigmoid(x: Floats) -> Floats:
    """Return the sigmoid of each number, 1 / (1 + exp(-x)), computed without overflow."""
    decay = np.exp(-np.abs(x))  # at most 1, whatever the sign of x
    return np.where(x >= 0, 1.0, decay) / (1.0 + decay)


def softmax(x: Floats) -> Floats:
    """Return the softmax of each row of x [Q, C]: exp(x) divided by its sum over the row."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))  # without the maximum, which cancels out, exp overflows
    probabilities: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return probabilities
