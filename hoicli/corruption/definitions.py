"""How strong each corruption is: five levels each, with where their numbers come from.

Lengths in pixels hold for pictures whose longer side is at most REFERENCE_SIDE (all of HICO-DET and V-COCO), and grow
with larger ones (`scale_of`), so that a photograph of 4,000 pixels looks as blurred as its copy of 640. Noise is of the
sensor's pixel and does not grow. "ours" means that no benchmark has published values: ours are chosen so that each
level is clearly worse than the one before, up to a picture in which people still recognise the scene. The whole is
the recipe `hoicli-1` (`records.corruptions.RECIPE`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

REFERENCE_SIDE = 640
"""Pixels; the longer side of the images of COCO and HICO-DET, on which the published constants are used as they are."""

JPEG_QUALITY = 95
"""Of the files written for JPEG sources (4:4:4): high, so that what is measured is the corruption and not the file."""

DRAWING = 2
"""Raised whenever the same constants give other pixels: files of an older drawing are not taken as finished."""

IMAGENET_C = "hendrycks/robustness, ImageNet-C; the same in bethgelab/imagecorruptions 1.1.2"
IMAGECORRUPTIONS = "bethgelab/imagecorruptions 1.1.2 (ImageNet-C's own are for 244 pixels)"


class Definition(NamedTuple):
    """`levels[severity - 1]` are the values of `constants`; `source` is where they come from, or why they are these."""

    name: str
    description: str
    constants: tuple[str, ...]
    levels: tuple[tuple[Any, ...], ...]
    source: str


_ROWS = (
    Definition("motion_blur", "the camera moved: a fading trail in one direction",
               ("radius_px", "sigma_px"), ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
               f"{IMAGENET_C}; the angle is random"),
    Definition("defocus_blur", "out of focus: every point a disk",
               ("radius_px", "alias_sigma_px"), ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)), IMAGENET_C),
    Definition("gaussian_blur", "scattered light: Gaussian blur",
               ("sigma_px",), ((1,), (2,), (3,), (4,), (6,)), IMAGENET_C),
    Definition("glass_blur", "through rough glass: pixels change places with near ones",
               ("sigma_px", "distance_px", "rounds"), ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
               f"{IMAGENET_C}; there with a drift, see optical.glass_blur"),
    Definition("gaussian_noise", "thermal noise, the same everywhere",
               ("deviation",), ((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)), IMAGENET_C),
    Definition("shot_noise", "few photons: Poisson noise",
               ("photons",), ((60,), (25,), (12,), (5,), (3,)), IMAGENET_C),
    Definition("salt_pepper_noise", "pixels that are black or white",
               ("share",), ((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
               f"{IMAGENET_C}, as impulse_noise; there of each channel, "
               "here of whole pixels, which are black or white"),
    Definition("jpeg", "JPEG compression",
               ("quality",), ((25,), (18,), (15,), (10,), (7,)), f"{IMAGENET_C}, as jpeg_compression"),
    Definition("speckle_noise", "noise in proportion to brightness",
               ("deviation",), ((0.15,), (0.2,), (0.35,), (0.45,), (0.6,)), IMAGENET_C),
    Definition("packet_loss", "slices of the picture lost: black, or filled from elsewhere",
               ("slices_per_block_row", "slice_width", "block_px"),
               ((0.4, 0.10, 16), (0.5, 0.18, 16), (0.6, 0.28, 16), (0.75, 0.38, 16), (0.9, 0.50, 16)),
               "ours: slices of 16-pixel macroblocks, as H.264 loses them; at most 4, 9, 17, 28, 45 % of the area"),
    Definition("exposure", "over- or underexposed (by chance)",
               ("stops",), ((1.0,), (1.5,), (2.0,), (2.5,), (3.0,)),
               "ours: a stop is a factor of two of light, up or down"),
    Definition("rainbow", "a projector's colour bands, red and blue shifted apart",
               ("strength", "bands", "shift"),
               ((0.1, 5.0, 0.002), (0.2, 4.2, 0.004), (0.3, 3.5, 0.007), (0.4, 3.0, 0.010), (0.52, 2.5, 0.014)),
               "ours: fewer bands are broader ones; the shift of red and blue is a share of the longer side"),
    Definition("occlusion", "black rectangles before the scene",
               ("rectangles", "side"), ((2, 0.15), (3, 0.19), (4, 0.23), (6, 0.26), (8, 0.30)),
               "ours: about 4, 9, 16, 28, 42 % of the area, where the rectangles miss each other"),
    Definition("vignette", "darker towards the corners",
               ("start", "strength"), ((0.60, 0.5), (0.50, 0.65), (0.40, 0.8), (0.30, 0.9), (0.20, 1.0)),
               "ours: full light up to `start` of the half diagonal, then falling by `strength` towards the corner"),
    Definition("moire", "a screen's lines against the camera's: lines and broad fringes",
               ("contrast", "lines"), ((0.18, 70), (0.26, 80), (0.35, 90), (0.45, 105), (0.6, 120)),
               "ours: lines of each grid along the longer side, at least three pixels apart"),
    Definition("screen_crack", "a broken screen: cracks and white reflections",
               ("impacts", "reach", "width_px", "glare"),
               ((1, 0.3, 1.0, 0.2), (1, 0.45, 1.5, 0.3), (2, 0.5, 2.0, 0.4), (2, 0.65, 2.5, 0.5), (3, 0.8, 3.0, 0.6)),
               "ours: `reach` is a share of the diagonal; cracks are anti-aliased"),
    Definition("elastic", "warped at random over short distances",
               ("amplitude", "sigma"), tuple((250 * share, 0.01) for share in (0.05, 0.065, 0.085, 0.1, 0.12)),
               f"{IMAGECORRUPTIONS}, as elastic_transform; sigma is a share of the sides, at least two pixels"),
    Definition("perspective", "a lens with barrel or pincushion distortion (by chance)",
               ("barrel", "pincushion"), ((0.04, -0.02), (0.09, -0.045), (0.16, -0.08), (0.26, -0.125), (0.4, -0.18)),
               "ours: a point at r half diagonals from the centre shows what was at r (1 + k r^2); "
               "either sign by chance"),
    Definition("pixelate", "coarse blocks",
               ("resolution",), ((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)), IMAGENET_C),
    Definition("zoom_blur", "the lens zoomed in during the exposure",
               ("largest", "layers"), ((1.11, 12), (1.15, 16), (1.20, 21), (1.24, 25), (1.30, 31)),
               f"{IMAGENET_C}: magnifications up to `largest` in equal steps, the original blended in once more; there "
               "the layers are 12, 16, 11, 13, 11, so that SSIM rises from 2 to 3 (RoHOI's grow in number), "
               "and cut off at whole pixels, so that the centre wanders"),
)  # fmt: skip

DEFINITIONS: Mapping[str, Definition] = {row.name: row for row in _ROWS}


def level_of(name: str, severity: int) -> tuple[Any, ...]:
    """The constants of a corruption at a severity from 1 to 5."""
    return DEFINITIONS[name].levels[severity - 1]


def scale_of(height: int, width: int) -> float:
    """What lengths in pixels are multiplied by: 1 up to REFERENCE_SIDE, then in proportion to the longer side."""
    return max(1.0, max(height, width) / REFERENCE_SIDE)
