"""`hoicli.corrupt`: one of the corruptions of `hoicli corrupt` on an image in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli.commands.command import typed
from hoicli.commands.corrupt import require_libraries
from hoicli.corruption.catalogue import SEVERITIES
from hoicli.corruption.recipes import chosen_recipe, require_levels
from hoicli.errors import DataError, UsageError, arg
from hoicli.records.foreign import as_array


@typed
def corrupt(
    image: Any, name: str, severity: int, *, image_id: str | int = "", seed: int = 0, recipe: str = "hoicli-1"
) -> NDArray[np.uint8]:
    """An image under one of the corruptions of `hoicli corrupt`, by a recipe: hoicli-1, imagenet-c or a file.

    image: uint8 [height, width, 3] RGB (not OpenCV's BGR), [height, width, 4] RGBA, or [height, width, 1] or [height,
    width] grey, which `rainbow` makes RGB; it is not changed. name: of `hoicli corrupt --list`; severity: 1 to 5. The
    pixels are the command's, before it writes them as a file, where `image_id` is the id of the image's record: they
    depend only on the image, its id, name, severity and seed: without an id every image gets the same random part.
    Boxes stay where they were; the command moves them along.

    Raises `DataError` for another kind of array, `UsageError` for an unknown name or severity, or without OpenCV.
    """
    require_libraries()
    chosen = chosen_recipe(recipe, [name])
    require_levels([name], chosen, "name")
    if severity not in SEVERITIES:
        raise UsageError(f"{arg('severity', severity)}: give a whole number from 1 to 5")
    pixels = as_array(image, "image")
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (1,), (3,), (4,)):
        found = f"{pixels.dtype} {pixels.shape}"
        raise DataError(f"is {found}, wants uint8 (height, width, 3) in RGB, with alpha or grey", place="image")
    if not pixels.size:
        raise DataError(f"has no pixels: {pixels.shape}", place="image")
    from hoicli.corruption import effects  # which needs OpenCV

    channels = pixels.reshape(*pixels.shape[:2], -1)
    result = effects.corrupt(channels, name, severity, image_id=image_id, seed=seed, recipe=chosen)
    return result[:, :, 0] if pixels.ndim == 2 and result.shape[2] == 1 else result
