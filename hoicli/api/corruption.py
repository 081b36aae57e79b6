"""`hoicli.corrupt`: one of the corruptions of `hoicli corrupt` on an image in memory."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hoicli.commands.corrupt import require_libraries
from hoicli.corruption.catalogue import SEVERITIES
from hoicli.corruption.recipes import chosen_recipe
from hoicli.errors import DataError, UsageError, arg
from hoicli.interface.command import wrap_for_python
from hoicli.records.arrays import box_array, read_array

Pixels = NDArray[np.uint8]


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

    Raises `DataError` for another kind of array, `UsageError` for an unknown name or severity, or without OpenCV.
    """
    require_libraries()
    chosen = chosen_recipe(recipe, [name], argument="name")
    if severity not in SEVERITIES:
        raise UsageError(f"{arg('severity', severity)}: give a whole number from 1 to 5")
    pixels = read_array(image, "image")
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (1,), (3,), (4,)):
        actual = f"{pixels.dtype} {pixels.shape}"
        raise DataError(f"is {actual}, wants uint8 (height, width, 3) in RGB, with alpha or grey", place="image")
    if not pixels.size:
        raise DataError(f"has no pixels: {pixels.shape}", place="image")
    box_values = None if boxes is None else box_array(boxes)
    if box_values is not None and not np.isfinite(box_values).all():
        raise DataError("numbers must be finite", place="boxes")
    from hoicli.corruption import effects, engine  # imported here because they need OpenCV

    if image_id is None:
        image_id = sha256(repr(pixels.shape).encode() + pixels.tobytes()).hexdigest()
    channels, constants = pixels.reshape(*pixels.shape[:2], -1), chosen.level(name, severity)
    shape = channels[:, :, :3].shape  # without the alpha channel
    parameters = effects.draw(name, shape, image_id=image_id, seed=seed, recipe=chosen)
    result = effects.apply_effect(channels, name, parameters, constants)
    result = result[:, :, 0] if pixels.ndim == 2 and result.shape[2] == 1 else result
    if box_values is None:
        return result
    moved, _ = engine.boxes_after(name, shape, parameters, constants, box_values.tolist())
    return result, np.array(moved, dtype=np.float64).reshape(-1, 4)
