"""`hoicli.corrupt`: one of the corruptions of `hoicli corrupt` on an image in memory."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoicli import corruption
from hoicli.commands.command import typed
from hoicli.commands.corrupt import require_libraries
from hoicli.corruption.catalogue import CORRUPTIONS, SEVERITIES
from hoicli.corruption.recipes import chosen_recipe
from hoicli.errors import DataError, UsageError, arg
from hoicli.records.foreign import as_array


@typed
def corrupt(
    image: Any, name: str, severity: int, *, image_id: str | int = "", seed: int = 0, recipe: str = "hoicli-1"
) -> NDArray[np.uint8]:
    """An image under one of the corruptions of `hoicli corrupt`, by a recipe: hoicli-1, imagenet-c or a file.

    image: uint8 [height, width, 3] RGB (not OpenCV's BGR), [height, width, 4] RGBA, or [height, width, 1] or [height,
    width] grey, which `rainbow` makes RGB; it stays as it is. name: of `hoicli corrupt --list`; severity: 1 to 5. The
    pixels are the command's, before it writes them as a file, where `image_id` is the id of the image's record: they
    depend on the image, its id, name, severity and seed alone, so without an id every image gets the same random part.
    Boxes stay where they were; the command moves them along.

    Raises `DataError` for another kind of array, `UsageError` for an unknown name or severity, or without OpenCV.
    """
    require_libraries()
    chosen = chosen_recipe(recipe, [name])
    if name not in CORRUPTIONS and name not in chosen.owners:
        near = get_close_matches(str(name), CORRUPTIONS, n=1)
        fix = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(CORRUPTIONS)}"
        raise UsageError(f"{arg('name', name)}: no corruption; {fix}")
    if name not in chosen.levels:
        having = ", ".join(chosen.levels)
        raise UsageError(f"{arg('name', name)}: the recipe {recipe} has no constants for it, but for {having}")
    if severity not in SEVERITIES:
        raise UsageError(f"{arg('severity', severity)}: give a whole number from 1 to 5")
    pixels = as_array(image, "image")
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or pixels.shape[2:] not in ((), (1,), (3,), (4,)):
        found = f"{pixels.dtype} {pixels.shape}"
        raise DataError(f"is {found}, wants uint8 (height, width, 3) in RGB, with alpha or grey", place="image")
    if not pixels.size:
        raise DataError(f"has no pixels: {pixels.shape}", place="image")
    return corruption.corrupt(pixels, name, severity, seed, image_id=image_id, recipe=recipe)
