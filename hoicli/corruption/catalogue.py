"""The names of corruptions in records, rows, figures and options: RoHOI's twenty, their families and severities.

In the order of the paper (arXiv 2507.09111, section 3.1). What each does, and how strongly, is in the other files of
this room.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SEVERITIES = (1, 2, 3, 4, 5)
RECIPE = "hoicli-1"
"""The constants that `hoicli corrupt` uses by default (`corruption.definitions`). RoHOI describes its corruptions in
words and publishes no constants, so numbers from these images cannot be compared with the paper's."""
IMAGENET_C = "imagenet-c"
"""The published constants of ImageNet-C, for the corruptions that it has too."""
RECIPES: Mapping[str, str] = {
    RECIPE: "hoicli's own constants",
    IMAGENET_C: "the published constants of the twelve corruptions that ImageNet-C has too",
}
"""The recipes that have a name, and what they are."""
KEPT = "+kept"
"""What the name of a recipe ends in where boxes stay as annotated (`corrupt --boxes kept`)."""
OTHER = "other"
"""The family of a corruption of another benchmark."""


class Family(NamedTuple):
    """A family: its name in a list (`words`) and in a figure (`label`), and its corruptions."""

    words: str
    label: str
    corruptions: tuple[str, ...] = ()


FAMILIES: Mapping[str, Family] = {
    "optical": Family(
        "optical system", "Optical system", ("motion_blur", "defocus_blur", "gaussian_blur", "glass_blur")
    ),
    "sensor": Family(
        "sensor, compression and transmission",
        "Sensor, transmission",
        ("gaussian_noise", "shot_noise", "salt_pepper_noise", "jpeg", "speckle_noise", "packet_loss"),
    ),
    "environment": Family("environment", "Environment", ("exposure", "rainbow", "occlusion", "vignette")),
    "geometry": Family(
        "geometry and scene",
        "Geometry, scene",
        ("moire", "screen_crack", "elastic", "perspective", "pixelate", "zoom_blur"),
    ),
    OTHER: Family("other", "Other"),
}
FAMILY_OF = {name: key for key, family in FAMILIES.items() for name in family.corruptions}
CORRUPTIONS = tuple(FAMILY_OF)
MOVING = frozenset({"motion_blur", "screen_crack", "elastic", "perspective", "zoom_blur"})
"""Those that move content, and boxes with it, further with each severity."""


def family_of(corruption: str) -> str:
    """The family a corruption belongs to, OTHER for one of another benchmark."""
    return FAMILY_OF.get(corruption, OTHER)
