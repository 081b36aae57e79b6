"""PSNR and SSIM are scikit-image's, and both fall with every severity of every corruption on real photographs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hoicli.corruption.catalogue import SEVERITIES
from hoicli.corruption.effects import EFFECTS, corrupt
from hoicli.corruption.pixels import round_to_bytes
from hoicli.corruption.quality import Original
from tests.support.pictures import PHOTOS, Image, photograph, textured

SIDE = 400
"""Pixels: the constants are for pictures of 640; on texture reduced to less, two strong blurs are equally far away."""


def some_pairs() -> list[tuple[Image, Image]]:
    rng = np.random.default_rng(3)
    scene = textured(70, 91)
    noise = rng.integers(0, 256, (70, 91, 3), dtype=np.uint8)
    white = np.full_like(scene, 255)
    pairs = [(scene, noise), (white, noise), (white, white - 1), (scene, 255 - scene), (noise, noise)]
    pairs += [(scene, corrupt(scene, name, 3)) for name in EFFECTS]
    pairs += [(one[:, :, :1], other[:, :, :1]) for one, other in pairs[:4]]
    pairs += [(one[:7], other[:7]) for one, other in pairs[:2]]
    return [(np.ascontiguousarray(one), np.ascontiguousarray(other)) for one, other in pairs]


@pytest.mark.filterwarnings("ignore:(?s).*skimage2")  # from 0.27 on, it announces other functions of these names
def test_ssim_and_psnr_are_those_of_scikit_image() -> None:
    metrics = pytest.importorskip("skimage.metrics")
    for one, other in some_pairs():
        original = Original(one)
        expected = metrics.structural_similarity(one, other, channel_axis=2, data_range=255)
        assert original.ssim(other) == pytest.approx(expected, abs=1e-6)
        assert original.ssim(other) == original.ssim(other)  # what is kept of the original changes nothing
        psnr = original.psnr(other)
        if psnr is None:
            assert (one == other).all()
        else:
            assert psnr == pytest.approx(metrics.peak_signal_noise_ratio(one, other, data_range=255), abs=1e-4)


@pytest.mark.parametrize(
    "shape",
    [(256,), (1,), (2,), (3,), (4,), (4, 1), (3, 1), (1, 1), (1, 4), (40, 50), (40, 50, 1), (40, 1, 3), (40, 50, 3)],
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rounding_is_numpy_s(shape: tuple[int, ...], kind: type[np.floating]) -> None:
    near = np.rint(np.random.default_rng(5).random(shape) * 400 - 60).astype(kind)
    halves = near + kind(0.5)
    for values in (near, halves, np.nextafter(halves, kind(-1e9)), np.nextafter(halves, kind(1e9)), halves[::-1]):
        assert np.array_equal(round_to_bytes(values), np.clip(np.rint(values), 0, 255).astype(np.uint8))


def test_psnr_and_ssim_by_hand() -> None:
    dark, light = np.full((9, 9, 1), 100, dtype=np.uint8), np.full((9, 9, 1), 110, dtype=np.uint8)
    assert Original(dark).psnr(light) == round(10 * np.log10(255**2 / 100), 4)
    luminance = (2 * 100 * 110 + 6.5025) / (100**2 + 110**2 + 6.5025)  # no contrast: the other factor is 1
    assert Original(dark).ssim(light) == pytest.approx(luminance, abs=1e-6)
    assert Original(dark).psnr(dark) is None
    assert Original(dark).ssim(dark) == 1
    assert Original(dark[:6]).ssim(light[:6]) is None
    assert Original(dark[:6]).psnr(light[:6]) == Original(dark).psnr(light)


def test_a_grey_picture_is_compared_with_colours_as_three_channels() -> None:
    grey = textured(40, 50, 1)
    coloured = corrupt(grey, "rainbow", 3)
    expected = Original(np.repeat(grey, 3, axis=2))
    ours = Original(grey)
    assert (ours.psnr(coloured), ours.ssim(coloured)) == (expected.psnr(coloured), expected.ssim(coloured))


@pytest.mark.parametrize("name", [PHOTOS[0], *(pytest.param(name, marks=pytest.mark.long) for name in PHOTOS[1:])])
def test_every_severity_is_worse_than_the_one_before(name: str) -> None:
    photo = photograph(name, SIDE)
    original = Original(photo)
    for corruption in EFFECTS:
        results = [corrupt(photo, corruption, severity, image_id=name) for severity in SEVERITIES]
        for measure in (original.psnr, original.ssim):
            values = [measure(result) for result in results]
            numbers = [value for value in values if value is not None]
            assert len(numbers) == 5
            assert all(milder > worse for milder, worse in pairwise(numbers)), (corruption, values)
