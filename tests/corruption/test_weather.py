"""Night and weather: what each does, and that it is made only where it is named."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from hoicli.corruption import weather
from hoicli.corruption.catalogue import CORRUPTIONS, HOICLI_1, ROHOI, SEVERITIES, WEATHER, expand_groups
from hoicli.corruption.effects import EFFECTS, corrupt, draw
from tests.corruption.test_added import MIST, Add, add, image
from tests.corruption.test_definitions import flat
from tests.support.pictures import textured
from tests.support.project import Hoicli, parsed, saved
from tests.support.strength import retention

__all__ = ["add", "image"]  # fixtures


def test_night_is_darker_warmer_and_noisier() -> None:
    scene = flat(180, 120, 160)
    results = [corrupt(scene, "night", severity).astype(float) for severity in SEVERITIES]
    for result, darker in pairwise(results):
        assert result.mean() > darker.mean()
        assert (
            result[..., 0].mean() / result[..., 2].mean() < darker[..., 0].mean() / darker[..., 2].mean()
        )  # red, blue
    assert results[0][..., 0].mean() > results[0][..., 2].mean()
    darkness = draw("night", scene.shape, image_id="", seed=0)
    assert darkness.lamp_light.max() > 0.9
    # a stop is half of the light: sRGB 128 is 0.2159 of it, and 0.1079 is sRGB 92
    assert (weather.night(flat(128, 120, 160), darkness, 1.0, 0.0, 1e9, 0.0) == 92).all()
    noise = weather.night(flat(128, 120, 160), darkness, 0.0, 0.0, 100.0, 0.0)
    slope = 255 * 1.055 / 2.4 * 0.2159 ** (1 / 2.4 - 1)  # of sRGB's curve at this light
    assert noise.std() == pytest.approx(slope * (0.2159 / 100) ** 0.5, rel=0.05)


def test_fog_lets_the_share_of_light_pass_that_its_thickness_says() -> None:
    clouds = draw("fog", (120, 160, 3), image_id="", seed=0)
    assert (clouds.min(), clouds.max()) == (0, 255)
    steps = np.abs(np.diff(clouds.astype(int), axis=0))
    assert steps.mean() < 6  # smooth
    for value in (0, 100, 255):
        passed = np.exp(-1.2)
        even = weather.fog(flat(value, 120, 160), clouds, 1.2, 0.0)
        assert np.abs(even - (value * passed + weather.FOG_COLOUR * (1 - passed))).max() <= 1.5
    patchy = weather.fog(flat(0, 120, 160), clouds, 1.2, 1.0)[:, :, 0]
    assert (np.diff(patchy.ravel()[np.argsort(clouds.ravel(), kind="stable")].astype(int)) >= 0).all()


@pytest.mark.parametrize(("name", "colour"), [("rain", weather.RAIN_COLOUR), ("snow", weather.SNOW_COLOUR)])
def test_rain_and_snow_only_add_to_what_lower_shares_have(name: str, colour: int) -> None:
    scene = flat(20, 120, 160)
    fall = draw(name, scene.shape, image_id="", seed=0)
    shares = (0.001, 0.004, 0.016)
    results = [EFFECTS[name].apply(scene, fall, share, 6, 1.0, 0.0)[:, :, 0].astype(int) for share in shares]
    for fewer, more in pairwise(results):
        assert (more >= fewer).all()
        assert (more > 20).sum() > (fewer > 20).sum() > 0
    assert colour * 0.5 < results[-1].max() <= colour
    bare = EFFECTS[name].apply(scene, fall, 0.001, 6, 0.0, 0.3)
    assert np.abs(bare - (20 * 0.7 + weather.VEIL_COLOUR * 0.3)).max() <= 1


def test_a_streak_of_rain_is_long_and_thin_and_slants_as_drawn() -> None:
    height, width = 200, 200
    bits = np.full((height, width), 65535, dtype=np.uint16)
    bits[100, 100] = 0
    for slope in (-0.3, 0.0, 0.3):
        fall = weather.Falling(slope, (bits,))
        y, x = np.nonzero(weather.rain(flat(0, height, width), fall, 0.001, 40, 1.0, 0.0)[:, :, 0] > 20)
        assert np.ptp(y) == pytest.approx(40, abs=3)
        assert np.ptp(x) == pytest.approx(40 * abs(slope), abs=3)
        if slope:
            assert np.corrcoef(x, y)[0, 1] * slope > 0


def test_the_pictures_of_more_pixels_look_alike() -> None:
    """Drops and flakes are as large a share of a large picture as of a small one."""
    for name in ("rain", "snow"):
        covered = [(corrupt(flat(0, side * 3 // 4, side), name, 5) > 100).mean() for side in (640, 1280)]
        assert covered[0] == pytest.approx(covered[1], rel=0.15)


def test_they_are_made_only_where_they_are_named(hoicli: Hoicli, tmp_path: Path) -> None:
    assert set(WEATHER).isdisjoint(ROHOI)
    assert set(WEATHER).isdisjoint(HOICLI_1.usual)
    assert {name for name, row in CORRUPTIONS.items() if row.family == "weather"} == set(WEATHER)
    assert expand_groups(["jpeg", "weather", "fog"]) == ("jpeg", *WEATHER)
    PIL.Image.fromarray(textured(40, 56)).save(tmp_path / "a.png")
    truth = saved(tmp_path / "gt.jsonl", '{"file_name": "a.png", "boxes": [[3, 4, 30, 20]]}\n')
    call = ("corrupt", "--images", tmp_path, "--save-images", tmp_path / "out", "--severity", "1,5")
    records = parsed(hoicli(*call, "--corruption", "weather", truth).out)
    assert [record["corruption"] for record in records] == [name for name in WEATHER for _ in range(2)]
    for record in records:
        assert (record["boxes"], record["visibility"], record["recipe"]) == ([[3, 4, 30, 20]], [1.0], "hoicli-1")
    alone = hoicli("corrupt", "--records-only", "--corruption", "all", "--severity", 1, "--images", tmp_path, truth)
    assert [record["corruption"] for record in parsed(alone.out)] == list(ROHOI)


def test_a_package_that_has_one_of_the_name_is_told(hoicli: Hoicli, add: Add, image: str) -> None:
    add(MIST, "fog")
    for options in (("--list",), ("--save-images", "out", "--corruption", "fog", image)):
        result = hoicli("corrupt", *options)
        assert result.code == 0
        assert "hoicli: fog is hoicli's own; that of an installed package is not used" in result.err


@pytest.mark.long
@pytest.mark.parametrize("name", WEATHER)
def test_the_detector_loses_more_with_each_severity(name: str) -> None:
    (values,) = retention([name])
    assert all(milder >= worse for milder, worse in pairwise(values))
    assert 100 >= values[0] >= 90
    assert values[-1] < 100
