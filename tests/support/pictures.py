"""Drawn pictures: those of tests/eight/images (`python -m tests.support.pictures`), and small ones for tests; and
photographs that other packages carry.

A scene is a smooth background with texture, and in each box a shape of its own colour and shading.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import PIL.Image
import pytest
from numpy.typing import NDArray

from hoicli.corruption.catalogue import CORRUPTIONS, SEVERITIES
from hoicli.corruption.effects import corrupt
from hoicli.corruption.pixels import resize_image
from tests.support.project import EIGHT, GT

Image = NDArray[np.uint8]
GOLDEN = Path(__file__).with_name("golden_sheet.png")


def drawn_scene(record: dict[str, Any]) -> Image:
    """uint8 [height, width, 3], RGB: a person is a head and a body, anything else an ellipse."""
    height, width = record["height"], record["width"]
    digest = hashlib.sha256(str(record["image_id"]).encode()).digest()
    y, x = np.mgrid[0:height, 0:width]
    sky, ground = (np.array([150 + value % 80 for value in digest[at : at + 3]]) for at in (0, 3))
    share = (y / height)[:, :, None]
    scene = sky * (1 - share) + ground * share * 0.7
    scene += (6 * np.sin(x / 7 + digest[6]) * np.sin(y / 5))[:, :, None]
    canvas: Image = np.clip(scene, 0, 255).astype(np.uint8)
    for number, (box, label) in enumerate(zip(record["boxes"], record["labels"], strict=True)):
        x1, y1, x2, y2 = (round(value) for value in box)
        colour = tuple(int(40 + 1.6 * (digest[(7 + 3 * number + at) % 32] % 110)) for at in range(3))
        middle, half = ((x1 + x2) // 2, (y1 + y2) // 2), ((x2 - x1) // 2, (y2 - y1) // 2)
        if label == "person":
            head = max(2, min(half[0], (y2 - y1) // 7))
            top = y1 + 2 * head
            body = ((middle[0], (top + y2) // 2), (half[0], (y2 - top) // 2))
            cv2.ellipse(canvas, body[0], body[1], 0, 0, 360, colour, -1, cv2.LINE_AA)
            cv2.circle(canvas, (middle[0], y1 + head), head, (225, 190, 160), -1, cv2.LINE_AA)
        else:
            cv2.ellipse(canvas, middle, half, 0, 0, 360, colour, -1, cv2.LINE_AA)
            shade = tuple(value * 2 // 3 for value in colour)
            cv2.ellipse(canvas, middle, (half[0] * 2 // 3, half[1] * 2 // 3), 0, 0, 360, shade, 3, cv2.LINE_AA)
    return canvas


def textured(height: int, width: int, channels: int = 3) -> Image:
    """uint8 [height, width, channels]: light from one side, fine texture, and edges; the same on every machine."""
    y, x = np.mgrid[0:height, 0:width]
    values = []
    for channel in range(channels):
        light = 60 + (120 * x) // max(width, 1) + 10 * channel
        waves = (x * (3 + channel) + y * 5) % 17 + (x * 7 - y * (2 + channel)) % 11
        disk = (x - width * 2 // 3) ** 2 + (y - height // 2) ** 2 < (min(height, width) // 4) ** 2
        bar = (abs(x - width // 4) < max(1, width // 16)) & (y > height // 5)
        values.append(np.where(disk, 225 - 30 * channel, np.where(bar, 20 + 25 * channel, light + waves)))
    return np.stack(values, axis=2).clip(0, 255).astype(np.uint8)


def golden_sheet() -> Image:
    image = textured(24, 32)
    rows = [np.concatenate([corrupt(image, name, level, image_id=name) for level in SEVERITIES], axis=1)
            for name in CORRUPTIONS]  # fmt: skip
    return np.concatenate(rows)


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


def main() -> None:
    cv2.imwrite(str(GOLDEN), cv2.cvtColor(golden_sheet(), cv2.COLOR_RGB2BGR))
    folder = Path(EIGHT, "images")
    folder.mkdir(exist_ok=True)
    for line in (GT).read_text().splitlines():
        record = json.loads(line)
        scene = cv2.cvtColor(drawn_scene(record), cv2.COLOR_RGB2BGR)
        cv2.imwrite(str(folder / record["file_name"]), scene, [cv2.IMWRITE_JPEG_QUALITY, 80])


if __name__ == "__main__":
    main()
