"""How strong each corruption is: five levels each, with where their numbers come from.

Two recipes stand in one table: `hoicli-1` (`levels`) and `imagenet-c` (`published`, for the corruptions that ImageNet-C
has too); a file makes a third (`corruption.recipes`). Lengths in pixels hold for pictures whose longer side is at most
REFERENCE_SIDE (all of HICO-DET and V-COCO), and grow with larger ones (`scale_of`), so that a photograph of 4,000
pixels looks as blurred as its copy of 640. Noise is of the sensor's pixel and does not grow.

The constants of `hoicli-1` are ours. They keep to the paper's words, and what costs its five models more (Table 4) is
made stronger, as far as the words allow: blur, pixelation and zoom are stronger than ImageNet-C's, noise is weaker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hoicli.corruption.catalogue import IMAGENET_C as IMAGENET_C_NAME
from hoicli.corruption.catalogue import RECIPE

REFERENCE_SIDE = 640
"""Pixels; the longer side of the images of COCO and HICO-DET, on which the constants are used as they are."""

JPEG_QUALITY = 95
"""Of the files written for JPEG sources (4:4:4): high, so that what is measured is the corruption and not the file."""

DRAWING = 4
"""Raised whenever the same constants give other pixels: files of an older drawing are not taken as finished."""

IMAGENET_C = "hendrycks/robustness, ImageNet-C; the same in bethgelab/imagecorruptions 1.1.2"
IMAGECORRUPTIONS = "bethgelab/imagecorruptions 1.1.2 (ImageNet-C's own are for 244 pixels)"

Level = tuple[Any, ...]
Levels = tuple[Level, ...]


class Definition(NamedTuple):
    """`levels[severity - 1]` are the values of `constants` in hoicli-1; `source` says why they are these. `published`
    are those of ImageNet-C, where it has the corruption; `published_in` says where, and what is different here."""

    name: str
    description: str
    constants: tuple[str, ...]
    levels: Levels
    source: str
    published: Levels = ()
    published_in: str = ""


_ROWS = (
    Definition("motion_blur", "the camera moved: a fading trail in one direction",
               ("radius_px", "sigma_px"), ((12, 4), (16, 7), (20, 11), (25, 16), (30, 22)),
               "ours: longer trails than ImageNet-C's; the angle is random",
               ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)), f"{IMAGENET_C}; the angle is random"),
    Definition("defocus_blur", "out of focus: every point a disk",
               ("radius_px", "alias_sigma_px"), ((4, 0.5), (6, 0.5), (8, 0.5), (11, 0.5), (15, 0.5)),
               "ours: larger disks than ImageNet-C's",
               ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)), IMAGENET_C),
    Definition("gaussian_blur", "scattered light: Gaussian blur",
               ("sigma_px",), ((0.7,), (1.0,), (1.4,), (1.9,), (2.6,)),
               "ours: narrower than ImageNet-C's",
               ((1,), (2,), (3,), (4,), (6,)), IMAGENET_C),
    Definition("glass_blur", "through rough glass: pixels change places with near ones",
               ("sigma_px", "distance_px", "rounds"),
               ((1.0, 3, 2), (1.2, 5, 2), (1.4, 8, 2), (1.6, 12, 2), (1.8, 17, 2)),
               "ours: over longer distances than ImageNet-C's",
               ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
               f"{IMAGENET_C}; there with a drift, see optical.glass_blur"),
    Definition("gaussian_noise", "thermal noise, the same everywhere",
               ("deviation",), ((0.05,), (0.08,), (0.11,), (0.15,), (0.20,)),
               "ours: weaker than ImageNet-C's",
               ((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)), IMAGENET_C),
    Definition("shot_noise", "few photons: Poisson noise",
               ("photons",), ((500,), (250,), (120,), (60,), (30,)),
               "ours: weaker than ImageNet-C's",
               ((60,), (25,), (12,), (5,), (3,)), IMAGENET_C),
    Definition("salt_pepper_noise", "pixels that are black or white",
               ("share",), ((0.01,), (0.02,), (0.04,), (0.07,), (0.11,)),
               "ours: weaker than ImageNet-C's",
               ((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
               f"{IMAGENET_C}, as impulse_noise; there of each channel, "
               "here of whole pixels, which are black or white"),
    Definition("jpeg", "JPEG compression",
               ("quality",), ((30,), (20,), (13,), (8,), (5,)),
               "ours: further apart than ImageNet-C's, of which the first three look alike",
               ((25,), (18,), (15,), (10,), (7,)), f"{IMAGENET_C}, as jpeg_compression"),
    Definition("speckle_noise", "noise in proportion to brightness",
               ("deviation",), ((0.15,), (0.2,), (0.35,), (0.45,), (0.6,)), IMAGENET_C,
               ((0.15,), (0.2,), (0.35,), (0.45,), (0.6,)), IMAGENET_C),
    Definition("packet_loss", "slices of the picture lost: black, or filled from elsewhere",
               ("slices_per_block_row", "slice_width", "block_px"),
               ((0.4, 0.10, 16), (0.5, 0.18, 16), (0.6, 0.28, 16), (0.75, 0.38, 16), (0.9, 0.50, 16)),
               "ours: slices of 16-pixel macroblocks, as H.264 loses them; at most 4, 9, 17, 28, 45 % of the area"),
    Definition("exposure", "over- or underexposed (by chance)",
               ("over_stops", "under_stops"), ((0.3, 0.32), (0.5, 0.55), (0.75, 0.87), (1.0, 1.2), (1.3, 1.62)),
               "ours: a stop is a factor of two of light; both ways cost the same PSNR"),
    Definition("rainbow", "a projector's colour bands, red and blue shifted apart",
               ("strength", "bands", "shift"),
               ((0.08, 5.0, 0.002), (0.14, 4.2, 0.0035), (0.20, 3.5, 0.005), (0.27, 3.0, 0.007), (0.36, 2.5, 0.009)),
               "ours: fewer bands are broader ones; the shift of red and blue is a share of the longer side"),
    Definition("occlusion", "black rectangles of varying sizes before the scene",
               ("rectangles", "side"), ((2, 0.09), (3, 0.11), (4, 0.13), (5, 0.15), (6, 0.18)),
               "ours: about 2, 4, 7, 12, 20 % of the area, where the rectangles miss each other"),
    Definition("vignette", "darker towards the corners",
               ("start", "strength"), ((0.75, 0.3), (0.65, 0.42), (0.55, 0.52), (0.45, 0.62), (0.35, 0.72)),
               "ours: full light up to `start` of the half diagonal, then falling by `strength` towards the corner"),
    Definition("moire", "a screen's lines against the camera's: lines and broad fringes",
               ("contrast", "lines"), ((0.25, 70), (0.35, 80), (0.45, 90), (0.55, 105), (0.68, 120)),
               "ours: lines of each grid along the longer side, at least three pixels apart"),
    Definition("screen_crack", "a broken screen: bright cracks, shifted splinters and white reflections",
               ("impacts", "reach", "width_px", "shift_px", "glare"),
               ((1, 0.25, 1.0, 1, 0.10), (1, 0.4, 1.2, 1.5, 0.14), (2, 0.4, 1.5, 2, 0.17),
                (2, 0.55, 2.0, 2.5, 0.20), (3, 0.65, 2.5, 3, 0.24)),
               "ours: `reach` is a share of the diagonal; each splinter shows what lies up to `shift_px` beside it"),
    Definition("elastic", "warped at random over short distances",
               ("amplitude", "sigma"), ((30, 0.02), (42, 0.02), (58, 0.02), (78, 0.02), (105, 0.02)),
               "ours: broader waves and longer ways than imagecorruptions'; sigma is a share of the sides",
               tuple((250 * share, 0.01) for share in (0.05, 0.065, 0.085, 0.1, 0.12)),
               f"{IMAGECORRUPTIONS}, as elastic_transform; sigma is a share of the sides, at least two pixels"),
    Definition("perspective", "lens distortion, not a new point of view: barrel or pincushion (by chance)",
               ("barrel", "pincushion"), ((0.042, -0.04), (0.08, -0.075), (0.13, -0.12), (0.2, -0.175), (0.3, -0.235)),
               "ours: a point at r half diagonals from the centre shows what was at r (1 + k r^2), enlarged or reduced "
               "so that the nearest side stays; both signs cost the same PSNR"),
    Definition("pixelate", "coarse blocks",
               ("resolution",), ((0.2,), (0.14,), (0.1,), (0.07,), (0.05,)),
               "ours: blocks of 5, 7, 10, 14 and 20 pixels; ImageNet-C's cannot be seen at 640 pixels up to severity 3",
               ((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)), IMAGENET_C),
    Definition("zoom_blur", "the lens zoomed in during the exposure",
               ("largest", "layers"), ((1.08, 10), (1.14, 15), (1.21, 21), (1.30, 28), (1.40, 36)),
               "ours: magnifications up to `largest` in equal steps, the original blended in once more; more layers "
               "with each severity, as the paper says",
               ((1.11, 12), (1.15, 16), (1.20, 11), (1.24, 13), (1.30, 11)),
               f"{IMAGENET_C}; magnified about the exact centre, there cut off at whole pixels, so that it wanders"),
)  # fmt: skip

DEFINITIONS: Mapping[str, Definition] = {row.name: row for row in _ROWS}


class Recipe(NamedTuple):
    """The five levels of each corruption that it has. `name` is what records and rows call it."""

    name: str
    levels: Mapping[str, Levels]

    def level(self, name: str, severity: int) -> Level:
        """The constants of a corruption at a severity from 1 to 5."""
        return self.levels[name][severity - 1]


HOICLI_1 = Recipe(RECIPE, {row.name: row.levels for row in _ROWS})
RECIPES: Mapping[str, Recipe] = {
    HOICLI_1.name: HOICLI_1,
    IMAGENET_C_NAME: Recipe(IMAGENET_C_NAME, {row.name: row.published for row in _ROWS if row.published}),
}


def scale_of(height: int, width: int) -> float:
    """What lengths in pixels are multiplied by: 1 up to REFERENCE_SIDE, then in proportion to the longer side."""
    return max(1.0, max(height, width) / REFERENCE_SIDE)
