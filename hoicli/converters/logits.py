"""Raw outputs of detectors like INP-CC (THID, CMD-SE), saved as .npz, and their post-processing.

    pred_logits [Q, C], pred_boxes [Q, 8], box_scores [Q, 1], sizes [2]                    one image per file
    pred_logits [B, Q, C], pred_boxes [B, Q, 8], box_scores [B, Q, 1], sizes [B, 2], image_ids [B]

Boxes are relative [cx, cy, w, h], the person's and then the object's, as the released code reads them (text that
describes it scales the four numbers as corners: --box-form xyxy); they come out as float edges in pixels of the
original image. `sizes` are original height and width; without them the sizes of --image-list are taken. A column is an
interaction: 600 in HICO-DET's order, SWIG-HOI's 14,130, or the 5,539 of them that are evaluated, in ascending order
(INP-CC's test texts); or the classes that the dataset's `numbering` numbers, in the order of their numbers.
`image_ids` are names or numbers, joined as in `inpcc`; without them a file's name is its image. A folder means its .npz
files, sorted by name. `read` raises `DataError` naming file, array and place.

The post-processing is that of INP-CC's PostProcess (ltttpku/INP-CC models/model.py), in float64:

    score = sigmoid or softmax of a query's logits  x  (its box score) ** lambda;  kept above the threshold
    boxes = [cx, cy, w, h] to [x1, y1, x2, y2], clamped to the image, times its width and height

The released class then removes pairs: within a class of the image, the persons' boxes are suppressed at IoU 0.5 by
score, the objects' boxes likewise, and a pair goes if it lost on both sides (`box_nms`). Its defaults are lambda 1,
sigmoid and that suppression; its command line sets lambda 2, softmax, threshold 0.0001. box_scores are logits in the
network and probabilities after its sigmoid: without --box-scores they are logits if any value in any file lies outside
[0, 1], and a note says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.converters.containers.npz import arrays
from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.images import NumberedImages, known_size
from hoicli.errors import DataError, UsageError, arg
from hoicli.records.boxes import iou
from hoicli.records.detections import as_corners
from hoicli.records.kit import Bools, Floats, Ints, run_starts
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record

NAMES = ("pred_logits", "pred_boxes", "box_scores", "sizes", "image_ids")
LARGEST_IMAGE = 1 << 26
"""Logits of one image: all of SWIG-HOI's columns for four thousand queries. More is damage; also a bound for sides."""
MOST_QUERIES = 2_000
"""Of one image. Detectors have up to 900; --box-nms compares each with all others."""
MOST_TRIPLETS = 100_000
"""Of one image, before suppression. Benchmarks count up to 100, and a record of so many has 9 MB."""


def sniff(source: Source) -> bool:
    """An .npz file, or a folder of them."""
    if source.kind == "folder":
        return any(Path(source.path).glob("*.npz"))
    return source.kind == "npz"


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image, of the source and its `companions`."""
    given = (source, *source.companions)
    settings = PostProcessing(**context.options)
    if settings.box_scores is None:
        settings = replace(settings, box_scores=_kind_of_box_scores(given, context))
    if settings.box_nms is None:
        context.announce(f"no suppression among the pairs; INP-CC's PostProcess does it: {arg('box_nms', '0.5')}")
    for folder in (one for one in given if one.kind == "folder"):
        context.drop_besides(folder, [path.name for path in Path(folder.path).glob("*.npz")])
    known = NumberedImages(source, context)
    for file in _files(given):
        outputs = _Outputs(file, context, settings, known)
        yield from context.each(outputs.images(), outputs.record, outputs.source)


def _files(given: Iterable[Source]) -> Iterator[Source]:
    """The .npz files, each opened anew, so that only one is in memory."""
    for source in given:
        paths = [source.path] if source.kind != "folder" else sorted(map(str, Path(source.path).glob("*.npz")))
        if not paths:
            raise DataError("no .npz files in it; give the folder they were saved to", place=source.name)
        yield from (Source(path) if path != "-" else source for path in paths)


def _kind_of_box_scores(given: Iterable[Source], context: Context) -> str:
    """ "logits" if any value of any file lies outside [0, 1], else "probabilities"; a note says which."""
    lowest, highest = np.inf, -np.inf
    for file in _files(given):
        scores = arrays(file, ("box_scores",)).get("box_scores")
        if scores is not None and scores.dtype.kind not in "US" and scores.size:
            lowest, highest = min(lowest, float(scores.min())), max(highest, float(scores.max()))
    if lowest < 0 or highest > 1:
        context.announce(f"box_scores go from {lowest:.3g} to {highest:.3g}: logits, whose sigmoid is taken")
        return "logits"
    context.announce(
        f"box_scores lie in [0, 1]: taken as probabilities ({arg('box_scores', 'logits')}: take their sigmoid)"
    )
    return "probabilities"


class _Outputs:
    """The arrays of one file, of a common shape, and a record for each of its images."""

    def __init__(self, source: Source, context: Context, settings: PostProcessing, known: NumberedImages) -> None:
        self.source, self._context, self._settings, self._known = source, context, settings, known
        self._arrays = arrays(source, NAMES)
        shape = self._array("pred_logits").shape
        if len(shape) not in (2, 3):
            raise self._error("pred_logits", f"shape {list(shape)}, not [Q, C] or [B, Q, C]")
        *self._batch, self._queries, columns = shape
        if self._queries > MOST_QUERIES:
            raise self._error("pred_logits", f"{self._queries:,} queries; detectors have up to 900: keep the best ones")
        if not 0 < self._queries * columns <= LARGEST_IMAGE:
            raise self._error("pred_logits", f"{self._queries} queries x {columns} classes is no image's output")
        self._interactions = self._columns(columns)

    def _array(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            raise DataError(f"has no array {name}; it needs {', '.join(NAMES[:3])}", place=self.source.name)
        return self._arrays[name]

    def _error(self, field: str, problem: str) -> DataError:
        return DataError(problem, place=self.source.name, field=field)

    def _columns(self, count: int) -> list[tuple[str, str]]:
        """The interaction of each column."""
        vocabulary = self._context.vocabulary
        if vocabulary.roles:
            raise self._error("pred_logits", f"columns are interactions of HICO-DET or SWIG-HOI, not {vocabulary.name}")
        interactions, own = vocabulary.interactions, vocabulary.numbering.get("interactions", {})
        numbered = [interactions[own[number]] for number in sorted(own)] or list(interactions)
        if count == len(numbered):
            return numbered
        evaluated = sorted(vocabulary.subsets.get("evaluated", ()))
        if count == len(evaluated):
            return [interactions[number] for number in evaluated]
        problem = f"{count:,} classes, but {vocabulary.name} has {len(numbered):,}; {arg('dataset')} names another"
        raise self._error("pred_logits", f"{problem} (a column is a verb and an object)")

    def images(self) -> Iterator[tuple[str, tuple[Any, Any, Floats, Floats, Floats]]]:
        """(place, (image, size or None, logits [Q, C], boxes [Q, 8], box scores [Q])), one at a time."""
        widths = {"pred_logits": (len(self._interactions),), "pred_boxes": (8,), "box_scores": ()}
        of_queries = [self._each(name, self._queries, *width) for name, width in widths.items()]
        ids = [image_id_of(self.source.path)] * (1 if not self._batch else self._batch[0])
        if "image_ids" in self._arrays:
            ids = self._each("image_ids", kinds="iuU").tolist()
        elif len(ids) > 1:
            raise self._error("image_ids", f"missing; a file of {len(ids):,} images names each of them")
        sizes = self._each("sizes", 2).astype(np.float64).tolist() if "sizes" in self._arrays else repeat(None)
        for index, (image, size, *rows) in enumerate(zip(ids, sizes, *of_queries, strict=False)):
            with np.errstate(invalid="ignore"):  # a NaN that signals: it is refused later
                logits, boxes, scores = (row.astype(np.float64) for row in rows)
            yield (f"[{index}]" if self._batch else ""), (image, size, logits, boxes, scores)

    def _each(self, name: str, *sides: int, kinds: str = "fiu") -> NDArray[Any]:
        """[B, *sides] an array, which may have more or fewer sides of 1."""
        array, expected = self._array(name), (*self._batch, *sides)
        if [side for side in array.shape if side != 1] != [side for side in expected if side != 1]:
            raise self._error(name, f"shape {list(array.shape)}, but pred_logits makes it {list(expected)}")
        if array.dtype.kind not in kinds:
            wanted = "names or numbers" if "U" in kinds else "numbers, as float32"
            raise self._error(name, f"of type {array.dtype}; save {wanted}")
        return array.reshape(-1 if 0 not in array.shape else self._batch[0], *sides)

    def record(self, item: tuple[Any, Any, Floats, Floats, Floats]) -> Record:
        """The image's triplets."""
        image, size, logits, relative, box_scores = item
        record = self._known.record(image)
        height, width = self._checked_size(size, record)
        if self._settings.box_scores == "logits":
            box_scores = sigmoid(box_scores)
        elif not ((box_scores >= 0) & (box_scores <= 1)).all():
            outside = int(np.flatnonzero(~((box_scores >= 0) & (box_scores <= 1)))[0])
            problem = f"{box_scores[outside]:g} is no probability; {arg('box_scores', 'logits')} takes the sigmoid"
            raise DataError(problem, field=f".box_scores[{outside}]")
        for name, array in (("pred_boxes", relative), ("box_scores", box_scores[:, np.newaxis])):
            _require(np.isfinite(array), array, name)
        _require(logits < np.inf, logits, "pred_logits")  # -inf hides a class
        shares = as_corners(relative.reshape(-1, 4), self._settings.box_form, None).reshape(-1, 8)
        boxes = shares.clip(0.0, 1.0) * np.array([width, height] * 4)  # clamped first, as in the released code
        with np.errstate(invalid="ignore"):
            query, column, score = triplets(logits, boxes, box_scores, self._settings)
        table = BoxTable(self._context.subject)
        pixels = boxes.tolist()
        for number, which, value in zip(query.tolist(), column.tolist(), score.tolist(), strict=True):
            verb, label = self._interactions[which]
            table.pair(pixels[number][:4], pixels[number][4:], label, verb=verb, score=value)
        return {**record, "width": width, "height": height, **table.columns}

    def _checked_size(self, size: Any, record: Record) -> list[float]:
        """Height and width in pixels; whole ones are integers, as in records."""
        if size is None:
            known = known_size(record, self._context)
            if known is None:
                problem = f"the image's size is not known; save sizes (height, width), or give {arg('image_list')}"
                raise DataError(f"{problem} with them", field=".sizes")
            size = known[::-1]
        height, width = size
        if not (0 < height < LARGEST_IMAGE and 0 < width < LARGEST_IMAGE):
            raise DataError(f"{height:g} x {width:g} is no height and width of an image", field=".sizes")
        return [int(side) if side == int(side) else side for side in size]


def _require(good: Any, array: Floats, name: str) -> None:
    """Raises `DataError` with the place of the first number that is not `good`."""
    if not good.all():
        place = np.argwhere(~good)[0].tolist()
        raise DataError(f"{array[tuple(place)]}: numbers must be finite", field=f".{name}{place}")


# The post-processing


@dataclass(frozen=True)
class PostProcessing:
    """The options, by their names. box_scores None: logits if one of them lies outside [0, 1], else probabilities."""

    activation: str = "sigmoid"
    lambda_: float = 1.0
    threshold: float = 0.1
    box_scores: str | None = None
    box_nms: float | None = None
    box_form: str = "cxcywh"

    def __post_init__(self) -> None:
        """Raises `UsageError` for values out of range."""
        if not 0 <= self.lambda_ < np.inf:
            raise UsageError(f"{arg('lambda_', self.lambda_)}: an exponent, at least 0")
        if not 0 <= self.threshold < 1:
            raise UsageError(f"{arg('threshold', self.threshold)}: scores lie between 0 and 1")
        if self.box_nms is not None and not 0 <= self.box_nms <= 1:
            raise UsageError(f"{arg('box_nms', self.box_nms)}: the threshold is an overlap, between 0 and 1")


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)) without overflow."""
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, decay) / (1.0 + decay)


def softmax(x: Floats) -> Floats:
    """[Q, C] exp(x) over its sum along the last axis."""
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    total: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return total


def triplets(
    logits: Floats, boxes: Floats, box_probability: Floats, settings: PostProcessing
) -> tuple[Ints, Ints, Floats]:
    """(query, column, score), each [K], of the kept triplets, by query, then column.

    logits [Q, C]; boxes [Q, 8] the corners of person and object, needed for `box_nms` only;
    box_probability [Q] in [0, 1]. Raises `DataError` for more than MOST_TRIPLETS above the threshold.
    """
    probability = sigmoid(logits) if settings.activation == "sigmoid" else softmax(logits)
    scores = probability * (box_probability**settings.lambda_)[:, np.newaxis]
    query, column = np.nonzero(scores > settings.threshold)
    if len(query) > MOST_TRIPLETS:
        problem = f"{len(query):,} triplets, at most {MOST_TRIPLETS:,} an image"
        raise DataError(f"{problem}; raise {arg('threshold')} ({settings.threshold:g})", field=".pred_logits")
    score = scores[query, column]
    if settings.box_nms is not None:
        kept = np.zeros(len(query), dtype=bool)
        for sides in (boxes[:, :4], boxes[:, 4:]):
            kept |= _survivors(sides, query, column, score, settings.box_nms)
        query, column, score = query[kept], column[kept], score[kept]
    return query, column, score


def _survivors(boxes: Floats, query: Ints, column: Ints, score: Floats, threshold: float) -> Bools:
    """[K] what remains after greedy suppression within each class by descending score, ties by query. All classes share
    the queries' boxes, so overlaps are computed once for Q x Q; each round keeps the best remaining one of every class.
    """
    first, second = np.repeat(boxes, len(boxes), axis=0), np.tile(boxes, (len(boxes), 1))
    overlap = iou(first.T, second.T, inclusive=False).reshape(len(boxes), len(boxes))
    kept = np.zeros(len(query), dtype=bool)
    rows = np.lexsort((query, -score, column))
    while len(rows):
        group = column[rows]
        starts = run_starts(group)
        leader = np.repeat(rows[starts], np.diff(np.r_[starts, len(rows)]))
        kept[rows[starts]] = True
        left = overlap[query[leader], query[rows]] <= threshold
        left[starts] = False
        rows = rows[left]
    return kept
