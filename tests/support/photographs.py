"""Photographs that other packages carry."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest
from numpy.typing import NDArray

from hoicli.corruption.pixels import resize_image

Image = NDArray[np.uint8]

PHOTOS = ("astronaut.png", "camera.png", "chelsea.png", "coffee.png", "coins.png", "rocket.jpg", "motorcycle_left.png",
          "grass.png", "gravel.png", "china.jpg", "flower.jpg")  # fmt: skip
"""Photographs that scikit-image and scikit-learn carry: people, animals, things, a street, a night scene, texture."""


def photograph(name: str, side: int) -> Image:
    """The photograph, its longer side reduced to `side`; the test is skipped where the package lacks the file."""
    data = pytest.importorskip("sklearn" if name in ("china.jpg", "flower.jpg") else "skimage")
    inside = "datasets/images" if data.__name__ == "sklearn" else "data"
    path = Path(data.__file__ or "").parent / inside / name
    if not path.is_file():
        pytest.skip(f"this {data.__name__} has no {name}")
    pixels = np.asarray(PIL.Image.open(path))
    pixels = pixels[:, :, None] if pixels.ndim == 2 else pixels[:, :, :3]
    share = min(1.0, side / max(pixels.shape[:2]))
    height, width = (round(length * share) for length in pixels.shape[:2])
    return resize_image(pixels, height, width, cv2.INTER_AREA)
