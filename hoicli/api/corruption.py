"""`hoicli.corrupt` and `hoicli.corrupt_grid`: the corruptions of `hoicli corrupt` on images in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from hoicli.commands.corrupt import choose_versions, require_libraries
from hoicli.corruption.catalogue import SEVERITIES, Recipe, expand_groups
from hoicli.corruption.recipes import choose_recipe
from hoicli.errors import DataError, UsageError, arg
from hoicli.interface.command import wrap_for_python
from hoicli.interface.option_values import names_of, texts_of
from hoicli.interface.options import Names
from hoicli.records.arrays import box_array, read_array
from hoicli.records.image import image_id_problems
from hoicli.records.parsing import Record

Pixels = NDArray[np.uint8]
Severities: TypeAlias = str | int | Sequence[str | int]
"""A severity from 1 to 5, a range (2-4), several, or all."""


@overload
def corrupt(
    image: Any, name: str, severity: int, *, boxes: None = ..., image_id: str | int | None = ..., seed: int = ...,
    recipe: str = ...,
) -> Pixels:  # fmt: skip
    """Return the corrupted image, if no boxes are given."""


@overload
def corrupt(
    image: Any, name: str, severity: int, *, boxes: Any, image_id: str | int | None = ..., seed: int = ...,
    recipe: str = ...,
) -> tuple[Pixels, NDArray[np.float64]]:  # fmt: skip
    """Return the corrupted image and the moved boxes [B, 4], if boxes are given."""


@wrap_for_python
def corrupt(
    image: Any, name: str, severity: int, *, boxes: Any = None, image_id: str | int | None = None, seed: int = 0,
    recipe: str = "hoicli-1",
) -> Pixels | tuple[Pixels, NDArray[np.float64]]:  # fmt: skip
    """Return a corrupted copy of an image, as `hoicli corrupt` makes it.

    image: uint8 [height, width, 3] RGB (not OpenCV's BGR), [height, width, 4] RGBA, or [height, width, 1] or [height,
    width] grey, which `rainbow` makes RGB; it is not changed. name: one that `hoicli corrupt --list` lists; severity: 1
    to 5. recipe: which constants to use, hoicli-1, imagenet-c or a file. boxes: [B, 4] x1, y1, x2, y2 in pixels; if
    given, (image, boxes) is returned, with the boxes moved as their content was (float64; a box that left the image
    lies flat on its border).

    If `image_id` is the id of the image's record, the pixels are those of the command before it writes them to a file.
    They depend only on the image, its id, name, severity, seed and recipe. Without an id, the image's pixels stand for
    it, so that each image gets random numbers of its own.

    Raises `DataError` for another kind of array, `UsageError` for an unknown name or severity, or without OpenCV."""
    require_libraries()
    chosen = choose_recipe(recipe, [name], argument="name")
    if severity not in SEVERITIES:
        raise UsageError(f"{arg('severity', severity)}: give a whole number from 1 to 5")
    pixels = _read_pixels(image, "image")
    box_values = None if boxes is None else box_array(boxes)
    if box_values is not None and not np.isfinite(box_values).all():
        raise DataError("numbers must be finite", place="boxes")
    from hoicli.corruption import effects, engine  # imported here because they need OpenCV

    if image_id is None:
        image_id = sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest()
    constants, shape = chosen.level(name, severity), _shape_of(pixels)
    parameters = effects.draw(name, shape, image_id=image_id, seed=seed, recipe=chosen)
    result = _apply(pixels, name, parameters, constants)
    if box_values is None:
        return result
    moved, _ = engine.boxes_after(name, shape, parameters, constants, box_values.tolist())
    return result, np.array(moved, dtype=np.float64).reshape(-1, 4)


@wrap_for_python
def corrupt_grid(
    loader: Any, *, corruption: Names = "all", severity: Severities = "all", with_clean: bool = True,
    boxes: str = "moved", seed: int = 0, recipe: str = "hoicli-1",
) -> Iterator[tuple[Pixels, Record]]:  # fmt: skip
    """Yield every corrupted version of every image of a data loader, with its record: a whole benchmark without files.

    loader: yields (image, record): the image as `corrupt` takes it, and a dict with `image_id` and perhaps `boxes`,
    `labels` and `hois`, as in a line of ground truth. The records yielded are those that `hoicli corrupt` writes: with
    `corruption`, `severity`, `recipe`, `seed`, and boxes that moved with their content. They are the ground truth for
    `hoicli.evaluate(..., by=["corruption", "severity"])`; a prediction needs its `image_id`, `corruption` and
    `severity`. corruption, severity, boxes, seed, recipe: as in `corrupt_records`. with_clean: whether each image comes
    first as it is, as corruption clean at severity 0.

    Raises `UsageError` for an unknown name or severity, or without OpenCV; `DataError` for another kind of array, and
    for a record without an id."""
    require_libraries("corrupt_grid")
    names = expand_groups(names_of(corruption))
    chosen = choose_recipe(recipe, [name for name in names if name != "all"])
    cells = choose_versions(names, names_of(texts_of(severity)), chosen)
    if boxes not in ("moved", "kept"):
        raise UsageError(f"{arg('boxes', boxes)}: choose moved or kept")
    return _iterate_cells(loader, cells, with_clean, boxes == "kept", seed, chosen)


def _iterate_cells(
    loader: Any, cells: Sequence[tuple[str, int]], with_clean: bool, boxes_kept: bool, seed: int, recipe: Recipe
) -> Iterator[tuple[Pixels, Record]]:
    """Yield what `corrupt_grid` does; cells: the (corruption, severity) of each version, in order."""
    from hoicli.corruption import effects, engine  # imported here because they need OpenCV

    for number, (image, fields) in enumerate(loader):
        place = f"loader[{number}]"
        for problem in image_id_problems(fields):  # the first of these is raised
            raise problem.error(place)
        pixels, record = _read_pixels(image, place), dict(fields)
        if record.get("boxes") is not None:
            record["boxes"] = box_array(record["boxes"]).tolist()
        shape = _shape_of(pixels)
        make_record = partial(engine.cell_record, record, seed=seed, shape=shape, recipe=recipe, boxes_kept=boxes_kept)
        if with_clean:
            yield pixels, make_record(engine.CLEAN_CELL, scores=None)
        for name, cells_of_name in groupby(cells, key=itemgetter(0)):
            parameters = effects.draw(name, shape, image_id=record["image_id"], seed=seed, recipe=recipe)
            for cell in cells_of_name:
                corrupted = _apply(pixels, name, parameters, recipe.level(*cell))
                yield corrupted, make_record(cell, scores=None, parameters=parameters)


def _read_pixels(image: Any, place: str) -> Pixels:
    """Return an image as an array of uint8. Raises `DataError` for another kind of array."""
    pixels = read_array(image, place)
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (1,), (3,), (4,)):
        actual = f"{pixels.dtype} {pixels.shape}"
        raise DataError(f"is {actual}, wants uint8 (height, width, 3) in RGB, with alpha or grey", place=place)
    if not pixels.size:
        raise DataError(f"has no pixels: {pixels.shape}", place=place)
    return pixels


def _shape_of(pixels: Pixels) -> tuple[int, int, int]:
    """Return the height, the width and the number of channels of an image, without alpha."""
    height, width, *channels = pixels.shape
    return height, width, min(3, *channels) if channels else 1


def _apply(pixels: Pixels, name: str, parameters: Any, constants: Sequence[Any]) -> Pixels:
    """Return an image under a corruption. parameters: its random part; constants: of its severity."""
    from hoicli.corruption.effects import apply_effect

    result = apply_effect(pixels.reshape(*pixels.shape[:2], -1), name, parameters, constants)
    return result[:, :, 0] if pixels.ndim == 2 and result.shape[2] == 1 else result
