"""RoHOI's 20 corruptions, five severities each, and those that other packages add: the recipe `hoicli-1`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def corrupt(
    image: NDArray[np.uint8],
    name: str,
    severity: int,
    seed: int = 0,
    *,
    image_id: str | int = "",
    recipe: str = "hoicli-1",
) -> NDArray[np.uint8]:
    """An image in memory under one of the corruptions: the pixels of `hoicli corrupt`, for a data loader.

    image: uint8 [height, width] or [height, width, 1] grey, [height, width, 3] RGB (not OpenCV's BGR), or [height,
    width, 4] RGBA; it stays as it is. The result is a new array of that shape, except that `rainbow` makes grey RGB.
    What moves pixels moves alpha along, nothing else touches it. name, severity: of `hoicli corrupt --list`, 1 to 5;
    recipe: "hoicli-1", "imagenet-c" or a file's path.

    Pixels depend on the arguments alone, as the command's do on a record's `image_id`: with the same seed and no id
    every image gets the same random part. Needs `hoicli[images]`; raises `ValueError` for another kind of array, a name
    that the recipe lacks or another severity, `UsageError` or `DataError` for a bad recipe, `ImportError` without
    OpenCV.
    """
    import numpy as np  # neither NumPy nor OpenCV is loaded with the package

    from hoicli.corruption.effects import corrupt as corrupted
    from hoicli.corruption.effects import effect_of
    from hoicli.corruption.recipes import chosen_recipe

    if image.ndim not in (2, 3) or image.shape[2:] not in ((), (1,), (3,), (4,)) or not image.size:
        raise ValueError(f"an image is uint8 [height, width] or [height, width, 1, 3 or 4], not {list(image.shape)}")
    channels = image.reshape(*image.shape[:2], -1)
    colours = channels[:, :, :3] if channels.shape[2] == 4 else channels
    chosen = chosen_recipe(recipe, [name])
    result = corrupted(colours.copy(), name, severity, image_id=image_id, seed=seed, recipe=chosen)
    if channels.shape[2] == 4:
        alpha = channels[:, :, 3:].copy()
        if effect_of(name).motion is not None:
            alpha = corrupted(alpha, name, severity, image_id=image_id, seed=seed, recipe=chosen)
        return np.concatenate([result, alpha], axis=2)
    return result[:, :, 0] if image.ndim == 2 and result.shape[2] == 1 else result
