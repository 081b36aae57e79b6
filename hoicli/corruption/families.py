"""RoHOI's twenty corruptions in their four families (section 3.1 of the paper), in its order."""

from __future__ import annotations

from collections.abc import Mapping

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "optical": ("motion_blur", "defocus_blur", "gaussian_blur", "glass_blur"),
    "sensor": ("gaussian_noise", "shot_noise", "salt_pepper_noise", "jpeg", "speckle_noise", "packet_loss"),
    "environment": ("exposure", "rainbow", "occlusion", "vignette"),
    "geometry": ("moire", "screen_crack", "elastic", "perspective", "pixelate", "zoom_blur"),
}
OTHER = "other"
"""The family of a corruption that is none of these."""
CORRUPTIONS = tuple(name for names in FAMILIES.values() for name in names)
SEVERITIES = (1, 2, 3, 4, 5)
RECIPE = "hoicli-1"
"""What hoicli corrupt makes of them (corruption.constants). RoHOI describes its corruptions in words and publishes no
constants, so that no number from images of this recipe can stand beside the paper's."""


def family_of(corruption: str) -> str:
    """The family a corruption belongs to, OTHER for one of another benchmark."""
    return next((family for family, names in FAMILIES.items() if corruption in names), OTHER)
