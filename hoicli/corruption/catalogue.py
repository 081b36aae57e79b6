"""The corruptions that there are, how strong each is, and which of them RoHOI's benchmark contains.

Two recipes stand in one table: `hoicli-1` (`levels`) and `imagenet-c` (`published`, for the corruptions that ImageNet-C
has too); a file makes a third (`corruption.recipes`). Lengths in pixels hold for pictures whose longer side is at most
REFERENCE_SIDE (all of HICO-DET and V-COCO), and grow with larger ones (`scale_of`), so that a photograph of 4,000
pixels looks as blurred as its copy of 640. Noise is of the sensor's pixel and does not grow.

The constants of `hoicli-1` are ours. They keep to the paper's words, and what costs its five models more (Table 4) is
made stronger, as far as the words allow: blur, pixelation and zoom are stronger than ImageNet-C's, noise is weaker.

A new corruption is a row of _ROWS here, the LIMITS of its new constants, and its functions in the module of its family,
whose EFFECTS name them; one of another package is an entry point (`added_corruption`). ROHOI stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from hoicli.errors import UsageError
from hoicli.io.plugins import plugin
from hoicli.io.row_tables import check_row, rows_by_name

if TYPE_CHECKING:  # robust and the shell need the names, and no NumPy
    import numpy as np
    from numpy.typing import NDArray

    from hoicli.corruption.pixels import Image, Shape
    from hoicli.corruption.warps import Warp

SEVERITIES = (1, 2, 3, 4, 5)

ROHOI = (
    "motion_blur", "defocus_blur", "gaussian_blur", "glass_blur",
    "gaussian_noise", "shot_noise", "salt_pepper_noise", "jpeg", "speckle_noise", "packet_loss",
    "exposure", "rainbow", "occlusion", "vignette",
    "moire", "screen_crack", "elastic", "perspective", "pixelate", "zoom_blur",
)  # fmt: skip
"""What the benchmark contains, in the order of its paper (arXiv 2507.09111, section 3.1): what `corrupt` makes and
`robust` averages unless told otherwise, whatever else there is."""

WEATHER = ("night", "rain", "fog", "snow")
"""What RoHOI does not have and users of a camera ask for: made only where it is named, as `weather` or one by one."""

GROUPS: Mapping[str, tuple[str, ...]] = {"rohoi": ROHOI, "weather": WEATHER}
"""What stands for several corruptions where they are named."""

OTHER = "other"
"""The family of a corruption that is not hoicli's."""


FAMILIES: Mapping[str, str] = {
    "optical": "Optical system",
    "sensor": "Sensor, transmission",
    "environment": "Environment",
    "geometry": "Geometry, scene",
    "weather": "Weather, night",
    OTHER: "Other",
}
"""The families, and how a figure calls each."""

REFERENCE_SIDE = 640
"""Pixels; the longer side of the images of COCO and HICO-DET, on which the constants are used as they are."""

JPEG_QUALITY = 95
"""The quality of files written for JPEG sources (4:4:4): high, so that the corruption is measured and not the file."""

DRAWING = 5
"""The version of the drawing code, raised whenever the same constants give other pixels: files of an older version are
not taken as finished."""

HENDRYCKS = "hendrycks/robustness, ImageNet-C; the same in bethgelab/imagecorruptions 1.1.2"
IMAGECORRUPTIONS = "bethgelab/imagecorruptions 1.1.2 (ImageNet-C's own are for 244 pixels)"

Level = tuple[Any, ...]
Levels = tuple[Level, ...]


@dataclass(frozen=True)
class Effect:
    """What a corruption does, as four functions. `drawn` is what `draw` returned for the image, `shape` is (height,
    width, channels), and `constants` are those of one severity, in the order of `Corruption.constants`.

    draw(rng, shape, levels): returns the random part, which all severities of an image share, None if nothing is
    random; levels: the constants of all severities.
    apply(image, drawn, *constants): returns the corrupted image.
    hidden(shape, drawn, *constants): returns a mask [height, width] of the pixels whose content cannot be seen any
    more; None instead of a function if the corruption hides nothing.
    motion(shape, drawn, *constants): returns where content moves; None if the corruption moves nothing.
    """

    apply: Callable[..., Image]
    draw: Callable[[np.random.Generator, Shape, Levels], Any] = lambda *_: None
    hidden: Callable[..., NDArray[np.bool_]] | None = None
    motion: Callable[..., Warp] | None = None


@dataclass(frozen=True)
class Corruption:
    """A corruption, its constants, and why they have these values.

    family: a key of FAMILIES. constants: the names of the constants. levels: the values of the constants at each
    severity (levels[0] is severity 1) in the recipe hoicli-1; source: the reason for these values. published: the same
    in ImageNet-C, if it has the corruption; published_in: where they were published, and what is different here.
    moves: whether content moves, and boxes with it, further with each severity."""

    name: str
    family: str
    description: str
    constants: tuple[str, ...]
    levels: Levels
    source: str
    published: Levels = ()
    published_in: str = ""
    moves: bool = False

    def __post_init__(self) -> None:
        """Check the fields. Raises `DeclarationError` that names the corruption and the field."""
        levels_text = f"give {len(SEVERITIES)} levels with a value of each constant"
        check_row(
            f"corruption {self.name}",
            ("family", self.family in FAMILIES, f"{self.family!r}; choose {', '.join(FAMILIES)}"),
            ("levels", not self.levels or self._is_complete(self.levels), levels_text),
            ("published", not self.published or self._is_complete(self.published), levels_text),
            ("source", self.source, "say why the levels are so"),
        )

    def _is_complete(self, levels: Levels) -> bool:
        """Return whether there is a value of each constant for each severity."""
        return len(levels) == len(SEVERITIES) and all(len(level) == len(self.constants) for level in levels)


_ROWS = (
    Corruption("motion_blur", "optical", "the camera moved: a fading trail in one direction",
               ("radius_px", "sigma_px"), ((12, 4), (16, 7), (20, 11), (25, 16), (30, 22)),
               "ours: longer trails than ImageNet-C's; the angle is random",
               ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)), f"{HENDRYCKS}; the angle is random", moves=True),
    Corruption("defocus_blur", "optical", "out of focus: every point a disk",
               ("radius_px", "alias_sigma_px"), ((4, 0.5), (6, 0.5), (8, 0.5), (11, 0.5), (15, 0.5)),
               "ours: larger disks than ImageNet-C's",
               ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)), HENDRYCKS),
    Corruption("gaussian_blur", "optical", "scattered light: Gaussian blur",
               ("sigma_px",), ((0.7,), (1.0,), (1.4,), (1.9,), (2.6,)),
               "ours: narrower than ImageNet-C's",
               ((1,), (2,), (3,), (4,), (6,)), HENDRYCKS),
    Corruption("glass_blur", "optical", "through rough glass: pixels change places with near ones",
               ("sigma_px", "distance_px", "rounds"),
               ((1.0, 3, 2), (1.2, 5, 2), (1.4, 8, 2), (1.6, 12, 2), (1.8, 17, 2)),
               "ours: over longer distances than ImageNet-C's",
               ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
               f"{HENDRYCKS}; there with a drift, see optical.glass_blur"),
    Corruption("gaussian_noise", "sensor", "thermal noise, the same everywhere",
               ("deviation",), ((0.05,), (0.08,), (0.11,), (0.15,), (0.20,)),
               "ours: weaker than ImageNet-C's",
               ((0.08,), (0.12,), (0.18,), (0.26,), (0.38,)), HENDRYCKS),
    Corruption("shot_noise", "sensor", "few photons: Poisson noise",
               ("photons",), ((500,), (250,), (120,), (60,), (30,)),
               "ours: weaker than ImageNet-C's",
               ((60,), (25,), (12,), (5,), (3,)), HENDRYCKS),
    Corruption("salt_pepper_noise", "sensor", "pixels that are black or white",
               ("share",), ((0.01,), (0.02,), (0.04,), (0.07,), (0.11,)),
               "ours: weaker than ImageNet-C's",
               ((0.03,), (0.06,), (0.09,), (0.17,), (0.27,)),
               f"{HENDRYCKS}, as impulse_noise; there of each channel, "
               "here of whole pixels, which are black or white"),
    Corruption("jpeg", "sensor", "JPEG compression",
               ("quality",), ((30,), (20,), (13,), (8,), (5,)),
               "ours: further apart than ImageNet-C's, of which the first three look alike",
               ((25,), (18,), (15,), (10,), (7,)), f"{HENDRYCKS}, as jpeg_compression"),
    Corruption("speckle_noise", "sensor", "noise in proportion to brightness",
               ("deviation",), ((0.15,), (0.2,), (0.35,), (0.45,), (0.6,)), HENDRYCKS,
               ((0.15,), (0.2,), (0.35,), (0.45,), (0.6,)), HENDRYCKS),
    Corruption("packet_loss", "sensor", "slices of the picture lost: black, or filled from elsewhere",
               ("slices_per_block_row", "slice_width", "block_px"),
               ((0.4, 0.10, 16), (0.5, 0.18, 16), (0.6, 0.28, 16), (0.75, 0.38, 16), (0.9, 0.50, 16)),
               "ours: slices of 16-pixel macroblocks, as H.264 loses them; at most 4, 9, 17, 28, 45 % of the area"),
    Corruption("exposure", "environment", "over- or underexposed (by chance)",
               ("over_stops", "under_stops"), ((0.3, 0.32), (0.5, 0.55), (0.75, 0.87), (1.0, 1.2), (1.3, 1.62)),
               "ours: a stop is a factor of two of light; both ways cost the same PSNR"),
    Corruption("rainbow", "environment", "a projector's colour bands, red and blue shifted apart",
               ("strength", "bands", "shift"),
               ((0.08, 5.0, 0.002), (0.14, 4.2, 0.0035), (0.20, 3.5, 0.005), (0.27, 3.0, 0.007), (0.36, 2.5, 0.009)),
               "ours: fewer bands are broader ones; the shift of red and blue is a share of the longer side"),
    Corruption("occlusion", "environment", "black rectangles of varying sizes before the scene",
               ("rectangles", "side"), ((2, 0.09), (3, 0.11), (4, 0.13), (5, 0.15), (6, 0.18)),
               "ours: about 2, 4, 7, 12, 20 % of the area, where the rectangles miss each other"),
    Corruption("vignette", "environment", "darker towards the corners",
               ("start", "strength"), ((0.75, 0.3), (0.65, 0.42), (0.55, 0.52), (0.45, 0.62), (0.35, 0.72)),
               "ours: full light up to `start` of the half diagonal, then falling by `strength` towards the corner"),
    Corruption("moire", "geometry", "a screen's lines against the camera's: lines and broad fringes",
               ("contrast", "lines"), ((0.25, 70), (0.35, 80), (0.45, 90), (0.55, 105), (0.68, 120)),
               "ours: lines of each grid along the longer side, at least three pixels apart"),
    Corruption("screen_crack", "geometry", "a broken screen: bright cracks, shifted splinters and white reflections",
               ("impacts", "reach", "width_px", "shift_px", "glare"),
               ((1, 0.25, 1.0, 1, 0.10), (1, 0.4, 1.2, 1.5, 0.14), (2, 0.4, 1.5, 2, 0.17),
                (2, 0.55, 2.0, 2.5, 0.20), (3, 0.65, 2.5, 3, 0.24)),
               "ours: `reach` is a share of the diagonal; each splinter shows what lies up to `shift_px` beside it",
               moves=True),
    Corruption("elastic", "geometry", "warped at random over short distances",
               ("amplitude", "sigma"), ((30, 0.02), (42, 0.02), (58, 0.02), (78, 0.02), (105, 0.02)),
               "ours: broader waves and longer ways than imagecorruptions'; sigma is a share of the sides",
               tuple((250 * share, 0.01) for share in (0.05, 0.065, 0.085, 0.1, 0.12)),
               f"{IMAGECORRUPTIONS}, as elastic_transform; sigma is a share of the sides, at least two pixels",
               moves=True),
    Corruption("perspective", "geometry", "lens distortion, not a new point of view: barrel or pincushion (by chance)",
               ("barrel", "pincushion"), ((0.042, -0.04), (0.08, -0.075), (0.13, -0.12), (0.2, -0.175), (0.3, -0.235)),
               "ours: a point at r half diagonals from the centre shows what was at r (1 + k r^2), enlarged or reduced "
               "so that the nearest side stays; both signs cost the same PSNR", moves=True),
    Corruption("pixelate", "geometry", "coarse blocks",
               ("resolution",), ((0.2,), (0.14,), (0.1,), (0.07,), (0.05,)),
               "ours: blocks of 5, 7, 10, 14 and 20 pixels; ImageNet-C's cannot be seen at 640 pixels up to severity 3",
               ((0.6,), (0.5,), (0.4,), (0.3,), (0.25,)), HENDRYCKS),
    Corruption("zoom_blur", "geometry", "the lens zoomed in during the exposure",
               ("largest", "layers"), ((1.08, 10), (1.14, 15), (1.21, 21), (1.30, 28), (1.40, 36)),
               "ours: magnifications up to `largest` in equal steps, the original blended in once more; more layers "
               "with each severity, as the paper says",
               ((1.11, 12), (1.15, 16), (1.20, 11), (1.24, 13), (1.30, 11)),
               f"{HENDRYCKS}; magnified about the exact centre, there cut off at whole pixels, so that it wanders",
               moves=True),
    Corruption("night", "weather", "little light, from lamps and a dark sky, and the noise of a camera in it",
               ("under_stops", "lamps", "photons", "deviation"),
               ((0.1, 0.4, 2000, 0.002), (0.5, 0.6, 1000, 0.003), (1.0, 0.75, 500, 0.005), (1.6, 0.88, 250, 0.008),
                (2.3, 1.0, 120, 0.012)),
               "ours; noise as Foi et al. (2008) model it, of signal and of reading, in linear light"),
    Corruption("rain", "weather", "streaks of rain, and a grey veil of the drops behind them",
               ("share", "length_px", "opacity", "veil"),
               ((0.0015, 12, 0.35, 0.10), (0.003, 15, 0.45, 0.16), (0.005, 18, 0.55, 0.23), (0.008, 22, 0.65, 0.31),
                (0.012, 26, 0.75, 0.40)),
               "ours, in the model of Li et al. (CVPR 2019) for heavy rain: streaks in layers before a veil"),
    Corruption("fog", "weather", "fog in clouds",
               ("density", "patchiness"), ((0.25, 1.0), (0.5, 1.0), (0.85, 1.0), (1.3, 1.0), (1.9, 1.0)),
               "ours, by Koschmieder's law as in Foggy Cityscapes (Sakaridis et al. 2018), with clouds in place of "
               "depth; ImageNet-C's fog lets 0.40 to 0.25 of the light pass, ours on average 0.78 to 0.15"),
    Corruption("snow", "weather", "falling flakes, and a grey veil of those behind them",
               ("share", "size_px", "opacity", "veil"),
               ((0.0025, 2, 0.6, 0.08), (0.005, 2, 0.7, 0.14), (0.009, 2, 0.8, 0.21), (0.015, 2, 0.9, 0.29),
                (0.024, 2, 1.0, 0.38)),
               "ours, flakes in layers before a veil; ImageNet-C's snow is one layer of long flakes"),
)  # fmt: skip

CORRUPTIONS = rows_by_name("_ROWS (hoicli/corruption/catalogue.py)", ((row.name, row) for row in _ROWS))
"""What exists, by name; what installed packages add is found by `corruption`."""

LIMITS: Mapping[str, tuple[float, float, bool]] = {
    "radius_px": (1, 300, True), "sigma_px": (0.1, 300, False), "alias_sigma_px": (0.1, 10, False),
    "distance_px": (1, 300, True), "rounds": (1, 10, True), "deviation": (0.001, 10, False),
    "photons": (0.5, 10_000, False), "share": (0.001, 1, False), "quality": (1, 100, True),
    "slices_per_block_row": (0, 1, False), "slice_width": (0, 1, False), "block_px": (2, 512, True),
    "over_stops": (0, 10, False), "under_stops": (0, 10, False), "strength": (0, 1, False), "bands": (0.1, 100, False),
    "shift": (0, 0.2, False), "rectangles": (1, 1000, True), "side": (0, 1, False), "start": (0, 0.99, False),
    "contrast": (0, 2, False), "lines": (1, 1000, False), "impacts": (1, 20, True), "reach": (0.05, 1, False),
    "width_px": (0.5, 50, False), "shift_px": (0, 100, False), "glare": (0, 1, False), "amplitude": (0, 10_000, False),
    "sigma": (0.001, 0.2, False), "barrel": (0, 5, False), "pincushion": (-0.33, 0, False),
    "lamps": (0, 1, False), "length_px": (1, 300, True), "opacity": (0, 1, False), "veil": (0, 1, False),
    "density": (0, 20, False), "patchiness": (0, 2, False), "size_px": (1, 100, True),
    "resolution": (0.002, 1, False), "largest": (1, 4, False), "layers": (2, 200, True),
}  # fmt: skip
"""By the name of a constant in a user's recipe: (the least value, the largest, whether it must be a whole number)."""
for _row in _ROWS:
    check_row(
        f"{_row.name} in _ROWS (hoicli/corruption/catalogue.py)",
        ("levels", _row.levels, "give them: hoicli-1 has all of hoicli's own"),
        *(("constants", name in LIMITS, f"add {name} to LIMITS of the same file") for name in _row.constants),
    )


def family_of(name: str) -> str:
    """Return the family (a key of FAMILIES) of the corruption of this name; OTHER if it is not one of hoicli's."""
    return CORRUPTIONS[name].family if name in CORRUPTIONS else OTHER


def expand_groups(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of corruptions, each once, with those of GROUPS replaced by what they stand for."""
    return tuple(dict.fromkeys(chain.from_iterable(GROUPS.get(name, (name,)) for name in names)))


class Added(NamedTuple):
    """A corruption that another installed package adds, what it does, and its package as `package@version`."""

    corruption: Corruption
    effect: Effect
    owner: str


@cache
def added_corruption(name: str) -> Added | None:
    """Return the corruption that another installed package adds under this name, as an entry point; None if there is
    none. The package is imported. Raises `UsageError` for an entry point that is no pair (Corruption, Effect)."""
    added = plugin("corruptions", name)
    if added is None:
        return None
    match added.value:
        case (Corruption() as row, Effect() as effect) if row.name == name:
            pass
        case _:
            raise UsageError(f"{name} of {added.owner} must be a pair: a Corruption called {name}, and its Effect")
    return Added(row, effect, added.owner)


def corruption(name: str) -> Corruption | None:
    """Return the corruption of that name, hoicli's own or another package's; None if there is none."""
    added = None if name in CORRUPTIONS else added_corruption(name)
    return CORRUPTIONS.get(name) if added is None else added.corruption


RECIPE = "hoicli-1"
"""The constants that `hoicli corrupt` uses by default. RoHOI describes its corruptions in words and publishes no
constants, so numbers from these images cannot be compared with the paper's."""
IMAGENET_C = "imagenet-c"
"""The published constants of ImageNet-C, for the corruptions that it has too."""
KEPT = "+kept"
"""The end of a recipe's name in records whose boxes stay as annotated (`corrupt --boxes kept`)."""


class Recipe(NamedTuple):
    """The constants of corruptions at five severities.

    name: what records and rows call the recipe; words: whose constants they are, for people; levels: by corruption, the
    constants at each severity; usual: the corruptions that are made if the user names none; owners: by corruption, the
    package that adds it, as `package@version`; hoicli's own have none."""

    name: str
    words: str
    levels: Mapping[str, Levels]
    usual: tuple[str, ...]
    owners: Mapping[str, str] = {}

    def level(self, name: str, severity: int) -> Level:
        """Return the constants of a corruption at a severity from 1 to 5."""
        return self.levels[name][severity - 1]

    def recipe_text(self, name: str, *, boxes_kept: bool = False) -> str:
        """Return the recipe's name in records of the corruption `name`: `hoicli-1`, or `hoicli-1+kept` if boxes stay as
        annotated, followed by `+PACKAGE@VERSION` for a corruption of another package."""
        return self.name + (KEPT if boxes_kept else "") + (f"+{self.owners[name]}" if name in self.owners else "")


def split_recipe_text(recipe: str) -> tuple[str, str]:
    """Return (the recipe's name, perhaps with `+kept`; `PACKAGE@VERSION`, or "" for a corruption of hoicli's own).
    recipe: a text that `Recipe.recipe_text` returned."""
    match = re.fullmatch(r"(.+?)\+([^+@]+@[^@]+)", recipe)
    return (match[1], match[2]) if match else (recipe, "")


def _built_in_recipe(name: str, words: str, levels: Mapping[str, Levels]) -> Recipe:
    """Return a recipe of hoicli's own. levels: by corruption; those without levels are left out, and the rest of ROHOI
    is what the recipe usually makes. name, words: as in `Recipe`."""
    present = {corruption_name: constants for corruption_name, constants in levels.items() if constants}
    usual = tuple(corruption_name for corruption_name in ROHOI if corruption_name in present)
    return Recipe(name, words, present, usual)


_HOICLI_WORDS = "hoicli's own, except speckle_noise's from ImageNet-C"
HOICLI_1 = _built_in_recipe(RECIPE, _HOICLI_WORDS, {row.name: row.levels for row in _ROWS})
RECIPES: Mapping[str, Recipe] = {
    RECIPE: HOICLI_1,
    IMAGENET_C: _built_in_recipe(IMAGENET_C, "ImageNet-C's", {row.name: row.published for row in _ROWS}),
}


def scale_of(height: int, width: int) -> float:
    """Return what to multiply constants in pixels with for an image of this size: 1 up to a longer side of
    REFERENCE_SIDE, above it the ratio of the two."""
    return max(1.0, max(height, width) / REFERENCE_SIDE)
