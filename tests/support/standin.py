"""The drawn scenes of fixtures/robust: `python -m tests.support.standin` writes the images and their ground truth anew.

Everything is elementary NumPy on legacy random numbers, whose streams are frozen: the same pixels everywhere.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

FOLDER = Path(__file__).parents[2] / "fixtures" / "robust"
WIDTH, HEIGHT = 320, 240

# A scene: persons (x of the left side, feet's y, scale, what they do, which side the thing is on). Verbs are the
# detector's; None stands about. Then things nobody has to do with: (name, left, top, scale).
SCENES: list[tuple[list[tuple[int, int, float, tuple[str, str] | None, int]], list[tuple[str, int, int, float]]]] = [
    ([(60, 200, 1.0, ("ride", "bicycle"), 1), (230, 210, 1.0, None, 1)], []),
    ([(50, 190, 1.0, ("walk", "bicycle"), 1)], [("sports_ball", 260, 60, 1.0)]),
    ([(120, 215, 1.0, ("kick", "sports_ball"), 1), (220, 200, 0.8, None, 1)], []),
    ([(90, 205, 1.0, ("hold", "sports_ball"), -1)], [("bicycle", 210, 150, 0.8)]),
    ([(140, 220, 1.0, ("hold", "umbrella"), 1), (30, 200, 0.8, ("kick", "sports_ball"), 1)], []),
    ([(200, 190, 0.8, ("ride", "bicycle"), 1), (60, 215, 1.0, ("hold", "umbrella"), -1)], []),
    ([(180, 210, 1.0, ("walk", "bicycle"), -1), (20, 180, 0.8, None, 1)], []),
    ([(40, 220, 1.0, ("kick", "sports_ball"), 1), (200, 215, 1.0, ("hold", "sports_ball"), 1)], []),
    ([(70, 200, 0.8, ("hold", "umbrella"), 1), (200, 205, 0.8, ("walk", "bicycle"), 1)], []),
    ([(140, 200, 1.0, ("ride", "bicycle"), 1)], [("umbrella", 20, 30, 1.0)]),
    ([(30, 210, 0.8, ("hold", "sports_ball"), 1), (150, 215, 1.0, ("ride", "bicycle"), 1)], []),
    ([(60, 190, 0.8, ("kick", "sports_ball"), -1), (220, 220, 1.0, ("hold", "umbrella"), -1)], []),
]


def detector() -> ModuleType:
    if "standin_detector" not in sys.modules:
        spec = importlib.util.spec_from_file_location("standin_detector", FOLDER / "detector.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules["standin_detector"] = module
    return sys.modules["standin_detector"]


def scene(number: int) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """(RGB [240, 320, 3], ground truth record) of one of SCENES."""
    persons, others = SCENES[number]
    random = np.random.RandomState(100 + number)
    picture = background(random)
    boxes: list[list[int]] = []
    labels: list[str] = []
    hois: list[dict[str, Any]] = []

    def place(name: str, left: int, top: int, scale: float) -> int:
        thing = detector().template(name, scale)
        height, width = thing.shape[:2]
        top, left = int(np.clip(top, 0, HEIGHT - height)), int(np.clip(left, 0, WIDTH - width))
        opacity = thing[..., 3:].astype(np.float64) / 255
        window = picture[top : top + height, left : left + width]
        light = 0.85 + 0.25 * random.random_sample()
        window[:] = window * (1 - opacity) + np.clip(light * thing[..., :3], 0, 255) * opacity
        boxes.append([left, top, left + width - 1, top + height - 1])
        labels.append(name)
        return len(boxes) - 1

    for name, left, top, scale in others:
        place(name, left, top, scale)
    for left, feet, scale, does, side in persons:
        tall, wide = (detector().template("person", scale).shape[at] for at in (0, 1))
        top = feet - tall + 1
        thing = None
        if does is not None:  # the thing first: its user stands before it
            height, width = detector().template(does[1], scale).shape[:2]
            right, down, _ = detector().PLACES[does]
            off_x, off_y = 0.05 * tall * (random.random_sample(2) - 0.5)
            x = left + wide / 2 + side * right * tall + off_x - width / 2
            y = top + tall / 2 + down * tall + off_y - height / 2
            thing = place(does[1], round(x), round(y), scale)
        human = place("person", left, top, scale)
        if does is not None:
            hois.append({"subject": human, "object": thing, "verb": does[0]})
    name = f"scene_{number + 1:02d}"
    record = {"image_id": name, "file_name": f"{name}.png", "width": WIDTH, "height": HEIGHT,
              "boxes": boxes, "labels": labels, "hois": hois}  # fmt: skip
    return np.rint(np.clip(picture, 0, 255)).astype(np.uint8), record


def background(random: np.random.RandomState) -> NDArray[np.float64]:
    """Sky over ground, each a gradient of its own, with a few bushes that look like nothing in particular."""
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float64)
    picture = np.empty((HEIGHT, WIDTH, 3))
    horizon = 110 + 40 * random.random_sample()
    sky, ground = 120 + 60 * random.random_sample(3), 80 + 60 * random.random_sample(3)
    for channel in range(3):
        picture[..., channel] = np.where(y < horizon, sky[channel] + 0.12 * (horizon - y), ground[channel] + 0.10 * y)
    for _ in range(5):
        cx, cy, rx, ry = random.random_sample(4) * (WIDTH, 60, 40, 22) + (0, horizon - 20, 12, 8)
        bush = ((x - cx) / rx) ** 2 + ((y - cy) / ry) ** 2 < 1
        picture[bush] = picture[bush] * 0.7 + 0.3 * (60 + 120 * random.random_sample(3))
    return picture


def main() -> None:
    import cv2

    folder = FOLDER / "images"
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(len(SCENES)):
        picture, record = scene(number)
        cv2.imwrite(str(folder / record["file_name"]), picture[..., ::-1], [cv2.IMWRITE_PNG_COMPRESSION, 9])
        lines.append(json.dumps(record, separators=(",", ":")) + "\n")
    (FOLDER / "ground_truth.jsonl").write_text("".join(lines))


if __name__ == "__main__":
    main()
