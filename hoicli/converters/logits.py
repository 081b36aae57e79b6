"""Raw outputs of detectors like INP-CC (THID, CMD-SE), saved as .npz; hoicli does the post-processing.

    pred_logits [Q, C], pred_boxes [Q, 8], box_scores [Q, 1], sizes [2]                    one image per file
    pred_logits [B, Q, C], pred_boxes [B, Q, 8], box_scores [B, Q, 1], sizes [B, 2], image_ids [B]

Boxes are relative [cx, cy, w, h], the person's and then the object's, as the released code reads them (text that
describes it scales the four numbers as corners); they come out as float edges in pixels of the original image. `sizes`
are original height and width (also `size`, `orig_size`, `orig_sizes`); without them the sizes of --image-list are
taken. A column is an interaction: 600 in HICO-DET's order, SWIG-HOI's 14,130, or the 5,539 of them that are evaluated,
in ascending order (INP-CC's test texts). `image_ids` (also `image_id`) are names or numbers, joined as in `inpcc`;
without them a file's name is its image. A folder means its .npz files, sorted by name.

box_scores are logits in the network and probabilities after its sigmoid. --box-scores says which; otherwise they are
logits if any value in any file lies outside [0, 1], and a note says so. Only one image is in memory at a time. The
computation is in `postprocessing`. `read` raises `DataError` naming file, array and place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np

from hoicli.converters.containers.npz import Archive
from hoicli.converters.containers.source import Source
from hoicli.converters.context import BoxTable, Context
from hoicli.converters.imagelist import ImageNumbers, named_image, numbered_images
from hoicli.converters.postprocessing import PostProcessing, corners, sigmoid, triplets
from hoicli.errors import DataError, arg
from hoicli.records.kit import Floats
from hoicli.records.names import image_id_of
from hoicli.records.parsing import Record

SIZES = ("sizes", "size", "orig_size", "orig_sizes")
IDS = ("image_ids", "image_id")
COORDINATES = 8
_EXPECTED = {600: ("HICO-DET's 600", "hico"), 14_130: ("SWIG-HOI's", "swig"), 5_539: ("SWIG-HOI's", "swig")}
"""Number of columns -> a hint at the dataset it belongs to."""
LARGEST_IMAGE = 1 << 26
"""Logits of one image: all of SWIG-HOI's columns for four thousand queries. More is damage; also a bound for sides."""
MOST_QUERIES = 2_000
"""Of one image. Detectors have up to 900; --box-nms compares each with all others."""


def sniff(source: Source) -> bool:
    """An .npz file, or a folder of them."""
    if source.kind == "folder":
        return any(Path(source.path).glob("*.npz"))
    return source.kind == "npz"


def read(source: Source, context: Context) -> Iterator[Record]:
    """One record for each image, of the source and its `companions`."""
    files = [file for each in (source, *source.companions) for file in _files(each)]
    settings = context.logits or PostProcessing()
    if settings.box_scores is None:
        settings = replace(settings, box_scores=_kind_of_box_scores(files, context))
    context.announce(
        "pred_boxes are read as [cx, cy, w, h] in parts of the image, as the released code does; "
        "text that describes it scales the four numbers as corners"
    )
    if settings.box_nms is None:
        context.announce(f"no suppression among the pairs; INP-CC's PostProcess does it: {arg('box_nms', '0.5')}")
    numbers = cache(lambda: numbered_images(context, source))  # computed, and announced, once and only if needed
    for file in files:
        with Archive(file) as archive:
            outputs = _Outputs(archive, file, context, settings, numbers)
            yield from context.each(outputs.images(), outputs.record, file)


def _files(source: Source) -> list[Source]:
    if source.kind != "folder":
        return [source]
    paths = sorted(Path(source.path).glob("*.npz"))
    if not paths:
        raise DataError("no .npz files in it; give the folder they were saved to", place=source.name)
    return [Source(str(path)) for path in paths]


def _kind_of_box_scores(files: list[Source], context: Context) -> str:
    """ "logits" if any value of any file lies outside [0, 1], else "probabilities"; a note says which."""
    lowest, highest = np.inf, -np.inf
    for file in files:
        with Archive(file) as archive:
            row = archive.shape("box_scores")[1:] if len(archive.shape("box_scores")) == 3 else ()
            for scores in archive.rows("box_scores", row):
                if scores.dtype.kind not in "US" and scores.size:
                    lowest, highest = min(lowest, float(scores.min())), max(highest, float(scores.max()))
    if lowest < 0 or highest > 1:
        context.announce(f"box_scores go from {lowest:.3g} to {highest:.3g}: logits, whose sigmoid is taken")
        return "logits"
    context.announce(
        f"box_scores lie in [0, 1]: taken as probabilities ({arg('box_scores', 'logits')}: take their sigmoid)"
    )
    return "probabilities"


class _Outputs:
    """One archive: the common shape of its arrays, and a record for each of its images."""

    def __init__(
        self, archive: Archive, source: Source, context: Context, settings: PostProcessing, numbers: ImageNumbers
    ) -> None:
        self._archive, self._source, self._context, self._settings = archive, source, context, settings
        self._numbers = numbers
        shape = archive.shape("pred_logits")
        if len(shape) not in (2, 3):
            raise self._error("pred_logits", f"shape {list(shape)}, not [Q, C] or [B, Q, C]")
        *batch, self._queries, columns = shape
        if self._queries > MOST_QUERIES:
            raise self._error("pred_logits", f"{self._queries:,} queries; detectors have up to 900: keep the best ones")
        if not 0 < self._queries * columns <= LARGEST_IMAGE:
            raise self._error("pred_logits", f"{self._queries} queries x {columns} classes is no image's output")
        self._count = batch[0] if batch else 1
        self._batched = bool(batch)
        self._interactions = self._columns(columns)

    def _error(self, field: str, problem: str) -> DataError:
        return DataError(problem, place=self._source.name, field=field)

    def _columns(self, count: int) -> list[tuple[str, str]]:
        """The interaction of each column."""
        vocabulary = self._context.vocabulary
        if vocabulary.roles:
            raise self._error("pred_logits", f"columns are interactions of HICO-DET or SWIG-HOI, not {vocabulary.name}")
        interactions = vocabulary.interactions
        if count == len(interactions):
            return list(interactions)
        evaluated = sorted(vocabulary.subsets.get("evaluated", ()))
        if count == len(evaluated):
            return [interactions[number] for number in evaluated]
        known = f"{len(interactions):,}" + (f", or the {len(evaluated):,} that are evaluated" if evaluated else "")
        whose, dataset = _EXPECTED.get(count, ("", ""))
        hint = f"; {whose}: say {arg('dataset', dataset)}" if whose else ""
        if count == len(vocabulary.verbs):
            hint = "; these are verbs alone, and a column is a verb with its object"
        raise self._error("pred_logits", f"{count:,} classes, but {vocabulary.name} has {known}{hint}")

    def images(self) -> Iterator[tuple[str, tuple[Any, Any, Floats, Floats, Floats]]]:
        """(place, (image, size or None, logits [Q, C], boxes [Q, 8], box scores [Q])), one at a time."""
        widths = {"pred_logits": len(self._interactions), "pred_boxes": COORDINATES, "box_scores": 1}
        rows = [self._rows(name, width) for name, width in widths.items()]
        for index, (image, size, *arrays) in enumerate(zip(self._ids(), self._sizes(), *rows, strict=True)):
            yield (f"[{index}]" if self._batched else ""), (image, size, arrays[0], arrays[1], arrays[2][:, 0])

    def _rows(self, name: str, width: int) -> Iterator[Floats]:
        shape = self._archive.shape(name)
        if name == "box_scores" and shape in ((self._queries,), (self._count, self._queries)):
            shape = (*shape, 1)
        expected = (*([self._count] if self._batched else []), self._queries, width)
        if shape != expected:
            raise self._error(name, f"shape {list(shape)}, but pred_logits makes it {list(expected)}")
        stored = self._archive.shape(name)[len(expected) - 2 :]
        for row in self._archive.rows(name, stored):
            if row.dtype.kind in "US":
                raise self._error(name, "text, no numbers; save it as float32")
            yield row.astype(np.float64).reshape(self._queries, width)

    def _ids(self) -> Iterator[Any]:
        """The images' names or numbers."""
        name = next((name for name in IDS if name in self._archive.names), None)
        if name is None:
            if self._count > 1:
                raise self._error("image_ids", f"missing; a file of {self._count:,} images names each of them")
            stem = image_id_of(self._source.path)
            return iter([stem] * self._count)
        ids = self._archive.whole(name).reshape(-1)
        if len(ids) != self._count:
            raise self._error(name, f"{len(ids):,} images, but pred_logits has {self._count:,}")
        if ids.dtype.kind == "S":
            ids = np.char.decode(ids, "utf-8", "replace")
        if ids.dtype.kind == "f":
            raise self._error(name, "floats; images are named by text or whole numbers")
        return iter(ids.tolist())

    def _sizes(self) -> Iterator[Any]:
        name = next((name for name in SIZES if name in self._archive.names), None)
        if name is None:
            return repeat(None, self._count)
        sizes = self._archive.whole(name)
        if sizes.size != 2 * self._count or sizes.dtype.kind in "US":
            advice = f"give (height, width) for each of {self._count:,} images"
            raise self._error(name, f"shape {list(sizes.shape)}; {advice}")
        return iter(sizes.astype(np.float64).reshape(-1, 2).tolist())

    def record(self, item: tuple[Any, Any, Floats, Floats, Floats]) -> Record:
        """The image's triplets."""
        image, size, logits, relative, box_scores = item
        record = named_image(image, self._numbers, self._context)
        size = self._checked_size(size, record["image_id"])
        if self._settings.box_scores == "logits":
            box_scores = sigmoid(box_scores)
        elif not ((box_scores >= 0) & (box_scores <= 1)).all():
            outside = int(np.flatnonzero(~((box_scores >= 0) & (box_scores <= 1)))[0])
            problem = f"{box_scores[outside]:g} is no probability; {arg('box_scores', 'logits')} takes the sigmoid"
            raise DataError(problem, field=f".box_scores[{outside}]")
        for name, array in (("pred_boxes", relative), ("box_scores", box_scores[:, np.newaxis])):
            _require(np.isfinite(array), array, name)
        _require(logits < np.inf, logits, "pred_logits")  # -inf hides a class
        boxes = corners(relative, size)
        with np.errstate(invalid="ignore"):
            query, column, score = triplets(logits, boxes, box_scores, self._settings)
        table, hois = BoxTable(self._context.subject), []
        pixels = boxes.tolist()
        for number, which, value in zip(query.tolist(), column.tolist(), score.tolist(), strict=True):
            verb, label = self._interactions[which]
            hois.append({**table.pair(pixels[number][:4], pixels[number][4:], label), "verb": verb, "score": value})
        record |= {"width": size[1], "height": size[0]}
        return {**record, "boxes": table.boxes, "labels": table.labels, "hois": hois}

    def _checked_size(self, size: Any, image_id: str) -> tuple[float, float]:
        """(height, width) in pixels."""
        if size is None:
            known = self._context.image_sizes.get(image_id)
            if known is None:
                problem = (
                    f"the image's size is not known; save sizes (height, width), or give {arg('image_list')} with them"
                )
                raise DataError(problem, field=".sizes")
            size = known[::-1]
        height, width = size
        if not (0 < height < LARGEST_IMAGE and 0 < width < LARGEST_IMAGE):
            raise DataError(f"{height:g} x {width:g} is no height and width of an image", field=".sizes")
        return _whole(height), _whole(width)


def _whole(side: float) -> float:
    """640 for 640.0, as records write sizes."""
    return int(side) if side == int(side) else side


def _require(good: Any, array: Floats, name: str) -> None:
    """Raises `DataError` with the place of the first number that is not `good`."""
    if not good.all():
        place = np.argwhere(~good)[0].tolist()
        raise DataError(f"{array[tuple(place)]}: numbers must be finite", field=f".{name}{place}")
