"""Boxes go where the pixels go, and visibility is what is still to be seen of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hoicli.corruption import cracks
from hoicli.corruption.catalogue import CORRUPTIONS, HOICLI_1, SEVERITIES
from hoicli.corruption.effects import EFFECTS, corrupt, draw
from hoicli.corruption.engine import cell_record, share_visible
from hoicli.corruption.warps import Displacement, Lens, Zoom, moved_boxes, share_in_frame
from tests.corruption.test_definitions import hidden

Image = NDArray[np.uint8]
Box = tuple[int, int, int, int]

HEIGHT, WIDTH = 480, 640
BOXES: tuple[Box, ...] = (
    (300, 200, 340, 280), (40, 30, 120, 90), (500, 350, 600, 460), (250, 20, 420, 60), (20, 200, 60, 300),
    (150, 100, 480, 380),
)  # fmt: skip
LEVELS = pytest.mark.parametrize("severity", SEVERITIES)


def record_of(
    name: str,
    severity: int,
    boxes: list[Any],
    image_id: object,
    size: tuple[int, int] = (HEIGHT, WIDTH),
    kept: bool = False,
) -> Any:
    shape = (*size, 3)
    drawn = draw(name, shape, image_id=image_id, seed=0)
    record = {"image_id": image_id, "file_name": "a.png", "boxes": boxes}
    return cell_record(record, (name, severity), 0, (1.0, 0.5), shape, drawn, boxes_kept=kept)


def solid(box: Box) -> Image:
    """White between x1 and x2, y1 and y2, half white at their pixels: half of the light is where the box ends."""
    image = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
    image[box[1] : box[3] + 1, box[0] : box[2] + 1] = 128
    image[box[1] + 1 : box[3], box[0] + 1 : box[2]] = 255
    return image


def found(image: Image) -> tuple[float, float, float, float]:
    light = image[:, :, 0] > 127
    rows, columns = np.flatnonzero(light.any(axis=1)), np.flatnonzero(light.any(axis=0))
    return float(columns[0]), float(rows[0]), float(columns[-1]), float(rows[-1])


@LEVELS
@pytest.mark.parametrize("name", ["elastic", "perspective"])
@pytest.mark.parametrize("image_id", ["a", "c", "d"])
def test_a_painted_box_is_found_where_the_record_says(name: str, severity: int, image_id: str) -> None:
    record = record_of(name, severity, [list(box) for box in BOXES], image_id)
    for box, moved in zip(BOXES, record["boxes"], strict=True):
        seen = found(corrupt(solid(box), name, severity, image_id=image_id))
        assert moved == pytest.approx(seen, abs=1.5)


def test_both_lenses_are_among_those() -> None:
    drawn = {draw("perspective", (HEIGHT, WIDTH, 3), image_id=image_id, seed=0) for image_id in "acd"}
    assert drawn == {True, False}


MARKS = [(120, 90), (320, 240), (500, 130), (150, 380), (470, 350)]


@pytest.mark.long
@pytest.mark.parametrize("name", CORRUPTIONS)
@pytest.mark.parametrize("severity", [1, 3, 5])
def test_where_a_mark_goes_its_box_goes(name: str, severity: int) -> None:
    """One rule for all: the mean of a small bright mark's light is the middle of its box."""
    rows, columns = np.ogrid[0:HEIGHT, 0:WIDTH]
    for image_id in "ab":
        plain = np.full((HEIGHT, WIDTH, 3), 100, dtype=np.uint8)
        before = corrupt(plain, name, severity, image_id=image_id).sum(axis=2, dtype=np.int64)
        for x, y in MARKS:
            image = plain.copy()
            image[y - 3 : y + 4, x - 3 : x + 4] = 160
            light = corrupt(image, name, severity, image_id=image_id).sum(axis=2, dtype=np.int64) - before
            box = [x - 3, y - 3, x + 3, y + 3]
            record = record_of(name, severity, [box], image_id)
            assert record_of(name, severity, [box], image_id, kept=True)["boxes"] == [box]
            (moved,), (visible,) = record["boxes"], record["visibility"]
            if visible < 1 or light.sum() <= 0:
                continue  # hidden, or partly
            if name == "zoom_blur":  # a larger picture of the mark has more of its light; each layer counts alike
                light = light / ((columns - (WIDTH - 1) / 2) ** 2 + (rows - (HEIGHT - 1) / 2) ** 2 + 1)
            if name in ("jpeg", "gaussian_noise", "speckle_noise", "shot_noise"):  # noise far away is none of the mark
                light[np.maximum(abs(columns - x), abs(rows - y)) > 12] = 0
            at = (light * columns).sum() / light.sum(), (light * rows).sum() / light.sum()
            middle = (moved[0] + moved[2]) / 2, (moved[1] + moved[3]) / 2
            # elastic and splinters: the smallest box around a mark torn apart; half a block, or a random step
            near = {"elastic": 3.0, "screen_crack": 2.0, "pixelate": 10.0, "glass_blur": 7.0, "jpeg": 4.0}.get(
                name, 1.0
            )
            assert at == pytest.approx(middle, abs=near), (image_id, x, y)


def test_the_share_of_a_box_is_of_what_was_in_the_image() -> None:
    still = Displacement(np.zeros((20, 30)), np.zeros((20, 30)))
    for box in ((0, 0, 30, 20), (-10, -10, 40, 50), (25, 15, 90, 90)):
        assert share_in_frame(still, box) == 1.0
    for outside in ((-10, 0, -5, 10), (30, 0, 40, 10), (0, 20, 10, 30), (5, 5, 5, 10), (5, 5, 10, 5)):
        assert share_in_frame(still, outside) == 0.0


def test_what_moves_moves_by_more_than_that() -> None:
    """The rule would say nothing if marks stayed."""
    box = [470, 347, 476, 353]
    for name, least in (("motion_blur", 10), ("zoom_blur", 20), ("perspective", 5), ("elastic", 1)):
        (moved,) = record_of(name, 5, [box], "b")["boxes"]
        assert max(abs(one - other) for one, other in zip(moved, box, strict=True)) > least, name


def test_a_zoomed_box_by_hand() -> None:
    moved, visible = moved_boxes(Zoom((101, 201), 1.5), [[90, 40, 110, 60], [0, 0, 40, 100], [180, 0, 200, 20]])
    assert moved == [[85.0, 35.0, 115.0, 65.0], [0.0, 0.0, 10.0, 101.0], [201.0, 0.0, 201.0, 5.0]]
    assert visible[0] == 1
    # of 40 columns those from 33.3 on are still there, of 100 rows those from 16.7 to 83.3
    assert visible[1] == pytest.approx((40 - 33.3) / 40 * 66.7 / 100, abs=0.02)
    assert visible[2] == 0


def test_a_box_that_leaves_lies_on_the_border_and_is_not_seen() -> None:
    lens = Lens((HEIGHT, WIDTH), -0.3)
    (moved,), (visible,) = moved_boxes(lens, [[0, 0, 12, 9]])
    assert visible == 0
    assert moved[0] == 0
    assert moved[1] == 0
    assert moved[2] <= 0.01
    record = record_of("perspective", 5, [[0, 0, 12, 9], [630, 470, 700, 500], [5, 5, 5, 5], [-50, -50, -40, -40]], "c")
    for box in record["boxes"]:
        assert 0 <= box[0] <= box[2] <= WIDTH
        assert 0 <= box[1] <= box[3] <= HEIGHT


@given(st.sampled_from([-0.14, -0.05, 0.0, 0.1, 0.4]), st.floats(0, 639), st.floats(0, 479))
def test_the_lens_forward_undoes_where_pixels_come_from(k: float, x: float, y: float) -> None:
    lens = Lens((HEIGHT, WIDTH), k)
    (to,) = lens.forward(np.array([[x, y]]))
    offset = to - lens.centre
    nearest = (239.5 / lens.radius) ** 2
    back = lens.centre + offset * (1 + k * (offset**2).sum() / lens.radius**2) / (1 + k * nearest)
    assert back == pytest.approx([x, y], abs=1e-6)


def test_a_displacement_moves_a_box_by_itself() -> None:
    shift = Displacement(np.full((100, 120), -3.0), np.full((100, 120), 2.0))
    assert moved_boxes(shift, [[50, 40, 70, 60]]) == ([[53, 38, 73, 58]], [1.0])
    moved, (visible,) = moved_boxes(shift, [[110, 0, 119, 10]])
    assert moved == [[113, 0, 119, 8]]
    assert visible == pytest.approx(6.5 / 9 * 8.5 / 10, abs=0.03)
    assert moved_boxes(shift, [[50.2, 40, 50.4, 40.3]])[0][0] == pytest.approx([53.2, 38, 53.4, 38.3], abs=0.01)


@pytest.mark.parametrize("name", [name for name, row in EFFECTS.items() if row.motion is None])
def test_what_does_not_move_leaves_boxes_as_they_are(name: str) -> None:
    boxes = [[319, 50, 398.25, 348], [-4.5, 0, 900, 10], [5, 5, 5, 5]]
    record = record_of(name, 5, boxes, 7)
    assert record["boxes"] == boxes
    if EFFECTS[name].hidden is None:
        assert record["visibility"] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("name", ["occlusion", "packet_loss", "screen_crack"])
@LEVELS
def test_visibility_is_the_share_of_the_pixels_that_are_not_hidden(name: str, severity: int) -> None:
    size = (90, 120)
    mask = hidden(name, severity, (*size, 3), "x")
    boxes = [[0, 0, 120, 90], [10, 10, 40, 70], [60, 20, 61, 21], [100, 80, 140, 95], [200, 10, 210, 20]]
    record = record_of(name, severity, boxes, "x", size, kept=True)
    slow = []
    for x1, y1, x2, y2 in boxes:
        seen = [not mask[y, x] for y in range(y1, min(y2, 90)) for x in range(x1, min(x2, 120))]
        slow.append(sum(seen) / len(seen) if seen else 0.0)
    assert record["visibility"] == pytest.approx(slow, abs=5e-5)
    assert record["visibility"][0] == pytest.approx(1 - mask.mean(), abs=5e-5)


def test_what_is_hidden_counts_where_the_box_went() -> None:
    shape = (HEIGHT, WIDTH, 3)
    level = HOICLI_1.level("screen_crack", 5)
    drawn = draw("screen_crack", shape, image_id="x", seed=0)
    record = record_of("screen_crack", 5, [list(box) for box in BOXES], "x")
    moved, shares = moved_boxes(cracks.splinter_motion(shape, drawn, *level), BOXES)
    lines = cracks.covered_by_cracks(shape, drawn, *level)
    assert record["boxes"] == moved != [list(box) for box in BOXES]
    expected = [share * share_visible(lines, box) for share, box in zip(shares, moved, strict=True)]
    assert record["visibility"] == pytest.approx(expected, abs=5e-5)


def test_visibility_by_hand() -> None:
    hidden = np.zeros((10, 10), dtype=bool)
    hidden[2:4, 3:6] = True
    assert share_visible(hidden, [2, 1, 7, 5]) == round(1 - 6 / 20, 4)
    assert share_visible(hidden, [3, 2, 6, 4]) == 0
    assert share_visible(hidden, [3.5, 2.5, 3.6, 2.6]) == 0  # at least a pixel
    assert share_visible(hidden, [-5, -5, 0, 0]) == 0  # not in the image
    assert share_visible(hidden, [0, 0, 2, 2]) == 1
